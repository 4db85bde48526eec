//! Helpers that generated code calls. One of the three files of this crate that may use `unsafe`.
#![allow(unsafe_code)]

use crate::{
    cta::Host,
    ctx::{Helper, WarpCtx, status},
    emit::SiteKind,
};
use margay_exec::{LANES, Row, lanes};

/// The helpers in the order of [`Helper`].
pub fn table() -> [usize; 3] {
    let mut table = [0; 3];
    table[Helper::Check as usize] = check as *const () as usize;
    table[Helper::Pure as usize] = pure as *const () as usize;
    table[Helper::Fault as usize] = fault as *const () as usize;
    table
}

/// The host's side of the CTA that a warp belongs to.
///
/// # Safety
/// `ctx` must come from generated code that [`crate::enter::enter`] called: then both it and its `host` are alive.
unsafe fn host<'a>(ctx: *mut WarpCtx) -> (&'a WarpCtx, &'a Host<'a>) {
    // SAFETY: `enter` was given both by reference for the duration of the call.
    unsafe { (&*ctx, &*std::ptr::with_exposed_provenance::<Host<'a>>((*ctx).host as usize)) }
}

extern "C" fn check(ctx: *mut WarpCtx, site: u32, mask: u32, addresses: *const [u64; LANES]) -> u32 {
    // SAFETY: generated code passes its own context and a buffer of 32 addresses on its stack.
    let ((ctx, host), addresses) = unsafe { (host(ctx), &*addresses) };
    match host.check(ctx, site as usize, mask, addresses) {
        Ok([start, length]) => {
            let SiteKind::Access { size, span, .. } = host.compiled.sites[site as usize].kind else { return 0 };
            for (at, span) in [(site, span), (site + 1, u64::from(size))] {
                let entry = [start, (length + 1).saturating_sub(span)];
                // SAFETY: `sites` has one entry for every site of the kernel, and every access has two sites; only this thread
                // uses them during the call.
                unsafe {
                    *std::ptr::with_exposed_provenance_mut::<[u64; 2]>(ctx.sites as usize).add(at as usize) = entry
                };
            }
            0
        }
        Err(stop) => host.stop(*stop),
    }
}

extern "C" fn pure(ctx: *mut WarpCtx, site: u32, mask: u32, input: *const Row, output: *mut Row) {
    // SAFETY: as above; `input` and `output` are buffers on the caller's stack of as many rows as the site's widths say.
    let (_, host) = unsafe { host(ctx) };
    let SiteKind::Pure { srcs, dsts } = &host.compiled.sites[site as usize].kind else { return };
    let rows = |bits: &[u32]| bits.iter().map(|b| lanes::rows(*b)).sum::<usize>();
    // SAFETY: see above.
    let (input, output) =
        unsafe { (std::slice::from_raw_parts(input, rows(srcs)), std::slice::from_raw_parts_mut(output, rows(dsts))) };
    host.pure(site as usize, mask, input, output);
}

extern "C" fn fault(ctx: *mut WarpCtx, site: u32, mask: u32) -> u32 {
    // SAFETY: as above.
    let (ctx, host) = unsafe { host(ctx) };
    let lane = mask.trailing_zeros().min(31);
    host.stop(host.fault(ctx, site as usize, lane));
    status::STOP
}
