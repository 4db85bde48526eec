//! Calls of device library functions.

use super::{
    code::{CallOp, Flow},
    ctx::Ctx,
    step::{
        address::{Region, find_allocation},
        call::{argument, result},
        watch::{notify, report_free},
    },
};
use crate::{
    Freer, SyncKind,
    builtin::{self, Failure},
    mem,
};
use margay_ir::Builtin;

/// Calls a function of the device library for the active lanes.
pub fn call(ctx: &mut Ctx<'_>, site: &CallOp, builtin: Builtin) -> Flow {
    let args = [0, 1, 2, 3].map(|k| argument(ctx, site, k));
    let (grid, active) = (ctx.grid, ctx.active);
    if builtin == Builtin::Free && grid.observer.is_some() {
        report_free(ctx, &args[0]);
    }
    if builtin.queues() && grid.observer.is_some() {
        notify(ctx, active, SyncKind::Queue);
    }
    let (tid, cta) = (ctx.warp.tid, ctx.cta.id);
    let thread = |lane: usize| Freer::Thread(std::array::from_fn(|d| tid[d].0[lane]), cta);
    let mut byte = |at: u64, lane: usize| {
        find_allocation!(ctx, Region::Generic, at, lane).and_then(|a| mem::load::<u8>(&a.block, at))
    };
    match builtin::call(builtin, grid, active, &args, &mut byte, &thread) {
        Ok(values) => {
            result(ctx, site, &values);
            Flow::Next
        }
        Err(Failure { lane, kind, notes }) => ctx.fault(lane, kind, notes),
    }
}
