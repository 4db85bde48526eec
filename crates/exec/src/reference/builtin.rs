//! Functions of the device library, called by lanes: `vprintf`, `malloc`, `free`, `__assertfail`.

use super::{
    code::{CallOp, Flow},
    ctx::Ctx,
    state::lanes,
    step::{
        address::{Region, find_allocation},
        call::{argument, result},
    },
};
use crate::{Access, FaultKind, LANES, mem};
use margay_ir::Builtin;

/// Calls one with the active lanes.
pub fn call(ctx: &mut Ctx<'_>, site: &CallOp, builtin: Builtin) -> Flow {
    match builtin {
        Builtin::Vprintf => vprintf(ctx, site),
        Builtin::Malloc => {
            let sizes = argument(ctx, site, 0);
            let mut pointers = [0; LANES];
            for i in lanes(ctx.active) {
                pointers[i] = ctx.grid.memory.heap_alloc(sizes[i]);
            }
            result(ctx, site, &pointers);
            Flow::Next
        }
        Builtin::Free => {
            let pointers = argument(ctx, site, 0);
            for i in lanes(ctx.active) {
                if let Err(e) = ctx.grid.memory.heap_free(pointers[i]) {
                    let access = Access { write: true, address: pointers[i], size: 0, space: "the device heap" };
                    let note = format!("`free` of something that `malloc` did not return: {}", e.note);
                    return ctx.fault(i, FaultKind::OutOfBounds(access), vec![note]);
                }
            }
            Flow::Next
        }
        Builtin::AssertFail => {
            let lane = ctx.first();
            let [message, file, line, function] = [0, 1, 2, 3].map(|k| argument(ctx, site, k)[lane]);
            let [message, file, function] = [message, file, function].map(|at| text(ctx, at, lane));
            ctx.fault(lane, FaultKind::Assert(message, file, line as u32, function), Vec::new())
        }
    }
}

fn vprintf(ctx: &mut Ctx<'_>, site: &CallOp) -> Flow {
    let (formats, buffers) = (argument(ctx, site, 0), argument(ctx, site, 1));
    let mut used = [0; LANES];
    for i in lanes(ctx.active) {
        match crate::builtin::format(formats[i], buffers[i], |at| byte(ctx, at, i)) {
            Ok((bytes, n)) => {
                (ctx.grid.output)(&bytes);
                used[i] = n.into();
            }
            Err(address) => {
                let access = Access { write: false, address, size: 1, space: "generic" };
                let notes = vec![
                    "`vprintf` reads its format, its arguments or a string".into(),
                    ctx.grid.memory.describe(address),
                ];
                return ctx.fault(i, FaultKind::OutOfBounds(access), notes);
            }
        }
    }
    result(ctx, site, &used);
    Flow::Next
}

/// A byte at a generic address.
fn byte(ctx: &mut Ctx<'_>, at: u64, lane: usize) -> Option<u8> {
    find_allocation!(ctx, Region::Generic, at, lane).and_then(|a| mem::load::<u8>(&a.block, at))
}

fn text(ctx: &mut Ctx<'_>, at: u64, lane: usize) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < 1024 {
        match byte(ctx, at.wrapping_add(bytes.len() as u64), lane) {
            Some(c) if c != 0 => bytes.push(c),
            _ => break,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
