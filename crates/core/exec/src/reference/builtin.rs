//! Calls of device library functions.

use super::{
    code::{CallOp, Flow},
    ctx::Ctx,
    step::{
        address::{Region, find_allocation},
        call::{argument, result},
        watch::{callers, notify, report_free},
    },
};
use crate::{
    Initiator, LANES, SyncKind,
    builtin::{self, Call, Failure},
    mem::{self, Path},
};
use margay_ir::Builtin;
use std::sync::Arc;

/// Callers of `free` that are remembered.
const MAX_CALLERS: usize = 16;

/// Calls a function of the device library for the active lanes.
pub fn call(ctx: &mut Ctx<'_>, site: &CallOp, builtin: Builtin) -> Flow {
    let args: Vec<_> = (0..site.args.len()).map(|k| argument(ctx, site, k)).collect();
    let (grid, active) = (ctx.grid, ctx.active);
    if builtin == Builtin::Free && grid.observer.is_some() {
        report_free(ctx, args.first().unwrap_or(&[0; LANES]));
    }
    if builtin.queues() && grid.observer.is_some() {
        notify(ctx, active, SyncKind::Queue);
    }
    let (tid, cta) = (ctx.warp.tid, ctx.cta.id);
    let thread = |lane: usize| Initiator::Thread(std::array::from_fn(|d| tid[d].0[lane]), cta);
    let path = match builtin {
        Builtin::Free => path(ctx),
        Builtin::Malloc if grid.memory.origins().is_on() => path(ctx),
        _ => Path::default(),
    };
    let mut byte = |at: u64, lane: usize| {
        find_allocation!(ctx, Region::Generic, at, lane).and_then(|a| mem::load::<u8>(&a.block, at))
    };
    let call = Call { grid, args: &args, byte: &mut byte, thread: &thread, path: &|| path.clone() };
    match builtin::call(builtin, active, call) {
        Ok(values) => {
            result(ctx, site, &values);
            Flow::Next
        }
        Err(Failure { lane, kind, notes }) => ctx.fault(lane, kind, notes),
    }
}

/// Where the current call is, and what led there.
fn path(ctx: &Ctx<'_>) -> Path {
    let here = (ctx.func.id, ctx.func.place(ctx.pc));
    let calls = callers(&ctx.code.funcs, ctx.warp, ctx.frame, MAX_CALLERS).into_iter().map(|f| (f.func, f.at));
    let all = std::iter::once(here).chain(calls);
    Path(all.map(|(func, at)| (Arc::clone(&ctx.grid.image.ir.func(func).source), at)).collect())
}
