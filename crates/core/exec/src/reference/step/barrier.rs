//! Barriers of CTAs and clusters (manual, sections 9.7.13.1 and 9.7.13.3); [`crate::barrier`] counts arrivals.

use super::super::{
    code::{BarrierKind, BarrierOp, Flow, Op},
    ctx::Ctx,
    state::{Wait, lanes},
};
use super::watch::notify;
use crate::{FaultKind, Semantics, SyncKind, barrier};
use margay_isa::Mod;

/// `bar`, `barrier`
pub fn sync(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let b: &BarrierOp = &ctx.func.barriers[op.x as usize];
    let ids = ctx.words(b.id);
    let counts = b.count.map(|c| ctx.words(c));
    let first = ctx.first();
    let (id, count) = (ids[first], counts.map(|c| c[first]));
    let wrong = |what: String| FaultKind::Barrier(what);
    let expected = match barrier::expected(id, count, ctx.grid.launch.shape.block) {
        Ok(expected) => expected,
        Err(what) => return ctx.fault(first, wrong(what), Vec::new()),
    };
    let agrees = |i: &usize| ids[*i] == id && counts.is_none_or(|c| Some(c[*i]) == count);
    let same = lanes(ctx.active).filter(agrees).fold(0u32, |m, i| m | 1 << i);
    let warp = ctx.warp.index as usize;
    let truth = b.pred.map(|p| ctx.pred(p));
    if let Err((lane, what)) = ctx.cta.barriers[id as usize].arrive(id, warp, same, expected, truth) {
        return ctx.fault(lane, wrong(what), Vec::new());
    }
    if ctx.grid.observer.is_some() {
        notify(ctx, same, SyncKind::Barrier { id, aligned: b.aligned, counted: b.count.is_some() });
    }
    ctx.cta.dirty = true;
    let (skipped, others) = (ctx.mask & !ctx.active, ctx.active & !same);
    if others != 0 {
        ctx.put_ready(others, ctx.pc);
    }
    let past = skipped | if b.kind == BarrierKind::Arrive { same } else { 0 };
    if past != 0 {
        ctx.put_ready(past, ctx.pc + 1);
    }
    if b.kind != BarrierKind::Arrive {
        ctx.block(same, Wait::Barrier(id));
    }
    ctx.give_back();
    Flow::Park
}

/// `barrier.cluster.arrive`
pub fn cluster_arrive(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    if let Some(lane) = lanes(ctx.warp.cluster_arrived & ctx.active).next() {
        let what = format!("lane {lane} arrives at the cluster barrier again before it has completed");
        return ctx.fault(lane, FaultKind::Barrier(what), Vec::new());
    }
    // `.release` is the default (section 9.7.13.3).
    let relaxed = ctx.func.variant(op).has(Mod::Relaxed);
    notify(ctx, ctx.active, SyncKind::ClusterArrive(if relaxed { Semantics::Relaxed } else { Semantics::Release }));
    ctx.warp.cluster_arrived |= ctx.active;
    ctx.cta.dirty = true;
    ctx.put_ready(ctx.mask, ctx.pc + 1);
    ctx.give_back();
    Flow::Park
}

/// `barrier.cluster.wait`: blocks the lanes whose phase has not completed.
pub fn cluster_wait(ctx: &mut Ctx<'_>, _: &Op) -> Flow {
    let waiting = ctx.active & ctx.warp.cluster_arrived;
    notify(ctx, ctx.active & !waiting, SyncKind::ClusterPassed);
    if waiting == 0 {
        return Flow::Next;
    }
    let past = ctx.mask & !waiting;
    if past != 0 {
        ctx.put_ready(past, ctx.pc + 1);
    }
    ctx.block(waiting, Wait::Cluster);
    ctx.cta.dirty = true;
    ctx.give_back();
    Flow::Park
}
