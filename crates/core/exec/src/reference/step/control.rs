//! Branches and the exit of threads (manual, sections 9.7.12 and 9.5).

use super::super::{
    code::{Flow, Op},
    ctx::Ctx,
    state::NO_FRAME,
};
use super::watch::notify;
use crate::{FaultKind, SyncKind, jump_beyond};

/// `bra`
pub fn jump(_: &mut Ctx<'_>, op: &Op) -> Flow {
    Flow::Jump(op.x)
}

/// `@p bra`: to `x` if taken, else to the next op. If lanes diverge the group is split, and the scheduler continues
/// with the lanes that are earlier in the layout, so that they reconverge as soon as possible.
pub fn branch(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let truth = ctx.regs[op.dst as usize].0[0] ^ if op.y != 0 { u32::MAX } else { 0 };
    let taken = ctx.mask & truth;
    if taken == ctx.mask {
        return Flow::Jump(op.x);
    }
    if taken == 0 {
        return Flow::Jump(ctx.pc + 1);
    }
    let (next, rest) = (ctx.pc + 1, ctx.mask & !taken);
    ctx.put_ready(taken, op.x);
    ctx.put_ready(rest, next);
    ctx.give_back();
    Flow::Park
}

/// `brx.idx`
pub fn switch(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let index = ctx.words(op.src[0]);
    let table = &ctx.func.switches[op.x as usize];
    let lane = ctx.first();
    let Some(target) = table.get(index[lane] as usize).copied() else {
        return ctx.fault(lane, jump_beyond(index[lane], table.len()), Vec::new());
    };
    let same = (0..32).filter(|i| index[*i] == index[lane]).fold(0, |m, i| m | 1 << i) & ctx.mask;
    if same == ctx.mask {
        return Flow::Jump(target);
    }
    ctx.put_ready(same, target);
    ctx.put_ready(ctx.mask & !same, ctx.pc);
    ctx.give_back();
    Flow::Park
}

/// `exit`, and `ret` of a kernel.
pub fn exit(ctx: &mut Ctx<'_>, _: &Op) -> Flow {
    let (frame, mask, rest) = (ctx.frame, ctx.active, ctx.mask & !ctx.active);
    if rest != 0 {
        ctx.put_ready(rest, ctx.pc + 1);
    }
    notify(ctx, mask, SyncKind::Exit);
    ctx.give_back();
    debug_assert_ne!(frame, NO_FRAME);
    ctx.warp.exit(frame, mask);
    ctx.cta.dirty = true;
    Flow::Park
}

/// `trap`
pub fn trap(ctx: &mut Ctx<'_>, _: &Op) -> Flow {
    ctx.fault(ctx.first(), FaultKind::Trap, Vec::new())
}

/// `brkpt`
pub fn breakpoint(ctx: &mut Ctx<'_>, _: &Op) -> Flow {
    ctx.fault(ctx.first(), FaultKind::Breakpoint, Vec::new())
}
