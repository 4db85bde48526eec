//! Barriers of CTAs and clusters (manual, sections 9.7.13.1 and 9.7.13.3).
//!
//! Threads arrive one by one, as since Volta: a barrier without a count opens when all threads of the CTA that have not ended
//! are there; one with a count, when so many threads are, where a warp whose remaining threads have all arrived counts 32. So
//! barriers in divergent code, and in functions called from there, work.

use super::super::{
    code::{BarrierKind, BarrierOp, Flow, Op},
    ctx::Ctx,
    state::{Barrier, Wait, lanes},
};
use super::warp::notify;
use crate::{FaultKind, LANES, SyncKind};

/// `bar`, `barrier`
pub fn barrier(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let b: &BarrierOp = &ctx.func.barriers[op.x as usize];
    let ids = ctx.words(b.id);
    let counts = b.count.map(|c| ctx.words(c));
    let first = ctx.first();
    let (id, count) = (ids[first], counts.map(|c| c[first]));
    let wrong = |what: String| FaultKind::Barrier(what);
    if id > 15 {
        return ctx.fault(first, wrong(format!("barrier {id}; there are 0 to 15")), Vec::new());
    }
    if let Some(count) = count.filter(|c| c % LANES as u32 != 0 || *c == 0) {
        let what = format!("a barrier of {count} threads: the number must be a multiple of 32, and not 0");
        return ctx.fault(first, wrong(what), Vec::new());
    }
    let [x, y, z] = ctx.grid.launch.block;
    let threads = (x * y * z).next_multiple_of(LANES as u32);
    if let Some(count) = count.filter(|c| *c > threads) {
        let what = format!("a barrier of {count} threads in a CTA of {}", x * y * z);
        return ctx.fault(first, wrong(what), Vec::new());
    }
    let expected = count.filter(|c| *c != threads).unwrap_or(0);
    let agrees = |i: &usize| ids[*i] == id && counts.is_none_or(|c| Some(c[*i]) == count);
    let same = lanes(ctx.active).filter(agrees).fold(0u32, |m, i| m | 1 << i);
    notify(ctx, same, SyncKind::Barrier(id));
    let warp = ctx.warp.index as usize;
    let truth = b.pred.map(|p| ctx.pred(p));
    let state = &mut ctx.cta.barriers[id as usize];
    if state.open && state.expected != expected {
        let name = |n: u32| if n == 0 { "all".into() } else { n.to_string() };
        let what = format!("barrier {id} of {} threads is used with {}", name(state.expected), name(expected));
        return ctx.fault(first, wrong(what), Vec::new());
    }
    if let Some(lane) = lanes(state.arrived[warp] & same).next() {
        let what = format!("lane {lane} arrives at barrier {id} again before it has completed");
        return ctx.fault(lane, wrong(what), Vec::new());
    }
    state.open = true;
    state.expected = expected;
    state.arrived[warp] |= same;
    if let Some(truth) = truth {
        state.votes += same.count_ones();
        state.truths += (truth & same).count_ones();
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

/// Whether a barrier opens, given the live lanes of each warp.
pub fn is_complete(barrier: &Barrier, live: impl Iterator<Item = u32>) -> bool {
    if !barrier.open {
        return false;
    }
    let mut pairs = barrier.arrived.iter().copied().zip(live);
    match barrier.expected {
        0 => pairs.all(|(arrived, live)| live & !arrived == 0),
        wanted => {
            let count = |(arrived, live): (u32, u32)| match arrived {
                0 => 0,
                _ if live & !arrived == 0 => LANES as u32,
                _ => arrived.count_ones(),
            };
            pairs.map(count).sum::<u32>() >= wanted
        }
    }
}

/// `barrier.cluster.arrive`
pub fn cluster_arrive(ctx: &mut Ctx<'_>, _: &Op) -> Flow {
    if let Some(lane) = lanes(ctx.warp.cluster_arrived & ctx.active).next() {
        let what = format!("lane {lane} arrives at the cluster barrier again before it has completed");
        return ctx.fault(lane, FaultKind::Barrier(what), Vec::new());
    }
    notify(ctx, ctx.active, SyncKind::Cluster);
    ctx.warp.cluster_arrived |= ctx.active;
    ctx.cta.dirty = true;
    ctx.put_ready(ctx.mask, ctx.pc + 1);
    ctx.give_back();
    Flow::Park
}

/// `barrier.cluster.wait`: lanes whose arrival the barrier has not used up yet wait.
pub fn cluster_wait(ctx: &mut Ctx<'_>, _: &Op) -> Flow {
    let waiting = ctx.active & ctx.warp.cluster_arrived;
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
