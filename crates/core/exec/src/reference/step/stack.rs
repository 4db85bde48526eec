//! The stack of a thread (manual, section 9.7.17). It grows upwards: a frame lies above its caller's.

use super::super::{
    code::{Flow, Op},
    ctx::Ctx,
    state::lanes,
};
use crate::{LANES, alloca_beyond, lanes::each, restore_beyond};

/// `stacksave`
pub fn save(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let top = each(&ctx.warp.frames[ctx.frame as usize].top.0, u64::from);
    let d = ctx.func.operand_lists[op.x as usize].dst[0];
    ctx.write(d, &top, ctx.active);
    Flow::Next
}

/// `stackrestore`
pub fn restore(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let values = ctx.doubles(ctx.func.operand_lists[op.x as usize].src[0]);
    for i in lanes(ctx.active) {
        let size = ctx.func.frame_size;
        let frame = &mut ctx.warp.frames[ctx.frame as usize];
        let (bottom, top) = (frame.base.0[i] + size, frame.top.0[i]);
        if values[i] < u64::from(bottom) || values[i] > u64::from(top) {
            let (kind, note) = restore_beyond(values[i], bottom.into(), top.into());
            return ctx.fault(i, kind, vec![note]);
        }
        frame.top.0[i] = values[i] as u32;
    }
    Flow::Next
}

/// `alloca`
pub fn alloca(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let w = &ctx.func.operand_lists[op.x as usize];
    let sizes = ctx.doubles(w.src[0]);
    let align = u64::from(op.dst.max(8));
    let mut pointers = [0; LANES];
    for i in lanes(ctx.active) {
        let frame = &mut ctx.warp.frames[ctx.frame as usize];
        let at = u64::from(frame.top.0[i]).next_multiple_of(align);
        // Even an allocation of zero bytes has a unique address.
        let end = at.checked_add(sizes[i].max(1));
        match end.filter(|end| *end <= u64::from(ctx.windows.local_size)) {
            Some(end) => {
                frame.top.0[i] = end as u32;
                pointers[i] = at;
                ctx.warp.local_high = ctx.warp.local_high.max(end as u32);
            }
            None => {
                let (kind, note) = alloca_beyond(sizes[i], at, ctx.windows.local_size);
                return ctx.fault(i, kind, vec![note]);
            }
        }
    }
    let d = ctx.func.operand_lists[op.x as usize].dst[0];
    ctx.write(d, &pointers, ctx.active);
    Flow::Next
}

/// Computes the local address of a frame variable into a temporary or a register.
pub fn frame_address(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let w = &ctx.func.mems[op.x as usize];
    let mut at = [0; LANES];
    super::address::offsets(ctx, &w.address, &mut at);
    let d = w.dst[0];
    ctx.write(d, &at, ctx.active);
    Flow::Next
}
