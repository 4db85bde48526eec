//! Helpers that generated code calls. One of the four files of this crate that may use `unsafe`.
#![allow(unsafe_code)]

use crate::{
    ctx::{HELPERS, Helper, WarpCtx, status},
    emit::{PERIOD, SiteKind},
    run::enter,
    run::fiber::Call,
    run::host::Host,
};
use margay_exec::{LANES, Row, lanes};
use std::sync::LazyLock;

/// The helpers in the order of [`Helper`].
pub fn table() -> &'static [usize; HELPERS] {
    static TABLE: LazyLock<[usize; HELPERS]> = LazyLock::new(|| {
        let mut table = [0; HELPERS];
        table[Helper::Check as usize] = check as *const () as usize;
        table[Helper::Pure as usize] = pure as *const () as usize;
        table[Helper::Fault as usize] = fault as *const () as usize;
        table[Helper::Tick as usize] = tick as *const () as usize;
        table[Helper::Yield as usize] = let_others as *const () as usize;
        table[Helper::Arrive as usize] = arrive as *const () as usize;
        table[Helper::Wait as usize] = wait as *const () as usize;
        table[Helper::Effect as usize] = effect as *const () as usize;
        table[Helper::Builtin as usize] = builtin as *const () as usize;
        table[Helper::Park as usize] = park as *const () as usize;
        table[Helper::Unwind as usize] = unwind as *const () as usize;
        table[Helper::Spawn as usize] = spawn as *const () as usize;
        table[Helper::Finish as usize] = finish as *const () as usize;
        table[Helper::Cluster as usize] = cluster as *const () as usize;
        table[Helper::Refuse as usize] = refuse as *const () as usize;
        table
    });
    &TABLE
}

/// The host's side of the CTA that a warp belongs to.
///
/// # Safety
/// `ctx` must come from generated code that [`crate::run::enter::enter`] called: then both it and its `host` are alive.
unsafe fn host<'a>(ctx: *mut WarpCtx) -> (&'a WarpCtx, &'a Host<'a>) {
    // SAFETY: `enter` was given both by reference for the duration of the call.
    unsafe { (&*ctx, &*std::ptr::with_exposed_provenance::<Host<'a>>((*ctx).host as usize)) }
}

extern "C" fn check(ctx: *mut WarpCtx, site: u32, mask: u32, addresses: *const [u64; LANES]) -> u32 {
    // SAFETY: generated code passes its own context and a buffer of 32 addresses on its stack.
    let ((ctx, host), addresses) = unsafe { (host(ctx), &*addresses) };
    match host.check(ctx, site as usize, mask, addresses) {
        Ok([start, length]) => {
            let SiteKind::Access { size, span, shift, .. } = host.code.compiled.sites[site as usize].kind else {
                return 0;
            };
            for (at, span, shift) in [(site, span, shift), (site + 1, u64::from(size), 0)] {
                let low = start.next_multiple_of(1 << shift);
                let places = (length + 1).saturating_sub(span).saturating_sub(low - start);
                let entry = [low, places.div_ceil(1 << shift)];
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
    let SiteKind::Pure { srcs, dsts } = &host.code.compiled.sites[site as usize].kind else { return };
    let rows = |bits: &[u32]| bits.iter().map(|b| lanes::rows(*b)).sum::<usize>();
    // SAFETY: see above.
    let (input, output) =
        unsafe { (std::slice::from_raw_parts(input, rows(srcs)), std::slice::from_raw_parts_mut(output, rows(dsts))) };
    host.pure(site as usize, mask, input, output);
}

extern "C" fn effect(ctx: *mut WarpCtx, site: u32, live: u32, mask: u32, input: *const Row, output: *mut Row) -> u32 {
    // SAFETY: as above; `input` and `output` are buffers on the caller's stack of as many rows as the site says.
    let (state, host) = unsafe { host(ctx) };
    let SiteKind::Effect { reads, writes } = host.code.compiled.sites[site as usize].kind else { return 0 };
    // SAFETY: see above.
    let (input, output) =
        unsafe { (std::slice::from_raw_parts(input, reads), std::slice::from_raw_parts_mut(output, writes)) };
    loop {
        match host.effect(state, site as usize, (live, mask), input, output) {
            Ok(true) => return 0,
            // Only where warps have stacks.
            Ok(false) => {
                // SAFETY: nobody else uses the context while its warp runs.
                unsafe { ((*ctx).polls, (*ctx).polled) = (site + 1, mask) };
                if let_others(ctx) != 0 {
                    return status::STOP;
                }
            }
            Err(stop) => return host.stop(*stop),
        }
    }
}

extern "C" fn builtin(
    ctx: *mut WarpCtx,
    site: u32,
    mask: u32,
    input: *const [u64; LANES],
    output: *mut [u64; LANES],
) -> u32 {
    // SAFETY: as above; `input` and `output` are buffers on the caller's stack, of as many arguments as the site says and of one.
    let (ctx, host) = unsafe { host(ctx) };
    let SiteKind::Builtin { builtin, args } = host.code.compiled.sites[site as usize].kind else { return 0 };
    // SAFETY: see above.
    let (input, output) = unsafe { (std::slice::from_raw_parts(input, args), &mut *output) };
    match host.builtin(ctx, site as usize, builtin, mask, input) {
        Ok(results) => {
            *output = results;
            0
        }
        Err(stop) => host.stop(*stop),
    }
}

extern "C" fn fault(ctx: *mut WarpCtx, site: u32, mask: u32) -> u32 {
    // SAFETY: as above.
    let (ctx, host) = unsafe { host(ctx) };
    let lane = mask.trailing_zeros().min(31);
    host.stop(host.fault(ctx, site as usize, lane));
    status::STOP
}

extern "C" fn refuse(ctx: *mut WarpCtx, site: u32, mask: u32, address: u64) -> u32 {
    // SAFETY: as above.
    let (ctx, host) = unsafe { host(ctx) };
    host.stop(host.refusal(ctx, site as usize, mask.trailing_zeros().min(31), address))
}

extern "C" fn unwind(ctx: *mut WarpCtx, site: u32) {
    // SAFETY: as above.
    let (_, host) = unsafe { host(ctx) };
    host.unwind(site as usize);
}

/// Warp instructions that a back edge stands for.
const LOOP_BODY: u64 = 8;

extern "C" fn tick(ctx: *mut WarpCtx) -> u32 {
    // SAFETY: as above.
    let (_, host) = unsafe { host(ctx) };
    let Some(meter) = host.meter else {
        // A warp with a stack: its CTA's owner looks after fuel.
        return let_others(ctx);
    };
    match meter.spend(u64::from(PERIOD) * LOOP_BODY) {
        Ok(()) => 0,
        Err(stop) => host.stop(stop),
    }
}

extern "C" fn let_others(ctx: *mut WarpCtx) -> u32 {
    enter::suspend(ctx);
    // SAFETY: as above.
    let (_, host) = unsafe { host(ctx) };
    // A function that was called from here may have stopped meanwhile.
    if host.is_stopped() { status::STOP } else { 0 }
}

extern "C" fn spawn(
    ctx: *mut WarpCtx,
    site: u32,
    lanes: u32,
    frame: u32,
    args: usize,
    rets: usize,
    entry: usize,
) -> u32 {
    // SAFETY: as above.
    let (_, host) = unsafe { host(ctx) };
    host.fibers.borrow_mut().calls.push(Call { entry, lanes, frame, args, rets, site: site as usize });
    0
}

extern "C" fn finish(ctx: *mut WarpCtx, lanes: u32) {
    // SAFETY: as above.
    let (_, host) = unsafe { host(ctx) };
    host.fibers.borrow_mut().finished |= lanes;
}

extern "C" fn arrive(
    ctx: *mut WarpCtx,
    site: u32,
    mask: u32,
    ids: *const [u32; LANES],
    counts: *const [u32; LANES],
    truth: u32,
) -> u32 {
    // SAFETY: as above; `ids` and `counts` are rows on the caller's stack.
    let ((ctx, host), ids, counts) = unsafe { (host(ctx), &*ids, &*counts) };
    let SiteKind::Barrier { counted, reduces, arrives } = &host.code.compiled.sites[site as usize].kind else {
        return 0;
    };
    let counts = counted.then_some(counts);
    let truth = reduces.map(|_| truth);
    let arrived = host.barriers.borrow_mut().arrive(
        (ctx.warp as usize, site as usize),
        mask,
        ids,
        counts,
        truth,
        (*reduces, !arrives),
    );
    match arrived {
        Ok(()) => 0,
        Err((lane, what)) => {
            let kind = margay_exec::FaultKind::Barrier(what);
            host.stop(host.fault_at(ctx, site as usize, lane as u32, kind, Vec::new()))
        }
    }
}

extern "C" fn cluster(ctx: *mut WarpCtx, site: u32, lanes: u32) -> u32 {
    // SAFETY: as above.
    let (ctx, host) = unsafe { host(ctx) };
    let (warp, site) = (ctx.warp as usize, site as usize);
    let mut barriers = host.barriers.borrow_mut();
    if let SiteKind::Cluster { waits: true } = host.code.compiled.sites[site].kind {
        barriers.wait_in_cluster((warp, site), lanes);
        return 0;
    }
    match barriers.arrive_in_cluster(warp, lanes) {
        Ok(()) => 0,
        Err((lane, what)) => {
            let kind = margay_exec::FaultKind::Barrier(what);
            host.stop(host.fault_at(ctx, site, lane as u32, kind, Vec::new()))
        }
    }
}

extern "C" fn park(ctx: *mut WarpCtx, site: u32, live: u32, mask: u32, input: *const Row) -> u32 {
    // SAFETY: as above; `input` is a buffer on the caller's stack of as many rows as the site says.
    let (ctx, host) = unsafe { host(ctx) };
    let SiteKind::Effect { reads, .. } = host.code.compiled.sites[site as usize].kind else { return 0 };
    // SAFETY: see above.
    let input = unsafe { std::slice::from_raw_parts(input, reads) };
    match host.park(ctx, site as usize, (live, mask), input) {
        Ok(()) => 0,
        Err(stop) => host.stop(*stop),
    }
}

/// Rows of results that a warp operation has at most.
const MOST_RESULTS: usize = 4;

extern "C" fn wait(ctx: *mut WarpCtx, lanes: u32, released: *mut u32, output: *mut Row, patient: u32) -> u32 {
    loop {
        // SAFETY: as above; the context is not read by anybody else while its warp runs.
        let (state, host) = unsafe { host(ctx) };
        let warp = state.warp as usize;
        let mut found = host.barriers.borrow_mut().take(warp, lanes);
        if found.is_none() {
            found = host.fibers.borrow_mut().take_returned(warp).map(|lanes| (lanes, 0));
        }
        if found.is_none() && !output.is_null() {
            let mut rows = [Row::ZERO; MOST_RESULTS];
            if let Some((lanes, count)) = host.met(warp as u32, lanes, state.alive, &mut rows) {
                // SAFETY: `output` has room for the results of any operation that lanes of this function wait at.
                unsafe { std::slice::from_raw_parts_mut(output, count) }.copy_from_slice(&rows[..count]);
                found = Some((lanes, 0));
            }
        }
        if found.is_none() && patient == 0 {
            found = Some((0, 0));
        } else if found.is_some() {
            host.fibers.borrow_mut().woken += 1;
        }
        // SAFETY: as above.
        unsafe { (*ctx).waits = u32::from(found.is_none()) };
        if let Some((lanes, reduced)) = found {
            // SAFETY: `released` points to a variable on the caller's stack.
            unsafe { ((*ctx).reduced, *released) = (reduced, lanes) };
            return 0;
        }
        if let_others(ctx) != 0 {
            return status::STOP;
        }
    }
}
