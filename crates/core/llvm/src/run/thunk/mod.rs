//! The helpers that generated code calls, as C functions. One of the five files of this crate that may use `unsafe`.
#![allow(unsafe_code)]

use crate::{
    ctx::{HELPERS, Helper, WarpCtx, status},
    emit::{PERIOD, SiteKind},
    run::enter::{self, Call},
    run::host::Host,
    run::observe::Addresses,
};
use margay_exec::{Bug, FaultKind, LANES, Row, Stop, lanes, unix_time};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::LazyLock,
};

/// Addresses of the helpers, in the order of [`Helper`].
pub fn table() -> &'static [usize; HELPERS] {
    static TABLE: LazyLock<[usize; HELPERS]> = LazyLock::new(|| {
        let mut table = [0; HELPERS];
        table[Helper::Check as usize] = check as *const () as usize;
        table[Helper::CheckEarlier as usize] = check_earlier as *const () as usize;
        table[Helper::CheckTogether as usize] = check_together as *const () as usize;
        table[Helper::CheckGroup as usize] = check_group as *const () as usize;
        table[Helper::Pure as usize] = pure as *const () as usize;
        table[Helper::Fault as usize] = fault as *const () as usize;
        table[Helper::Tick as usize] = tick as *const () as usize;
        table[Helper::Yield as usize] = yield_to_others as *const () as usize;
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
        table[Helper::Observe as usize] = observe as *const () as usize;
        table[Helper::ObserveRow as usize] = observe_row as *const () as usize;
        table[Helper::Loads as usize] = loads as *const () as usize;
        table[Helper::Notes as usize] = notes as *const () as usize;
        table[Helper::Strays as usize] = strays as *const () as usize;
        table[Helper::Event as usize] = event as *const () as usize;
        table[Helper::Time as usize] = time as *const () as usize;
        table
    });
    &TABLE
}

/// Runs the body of a helper with the caller's context and host state. An error ends the launch, and so does a panic,
/// which must not unwind into generated code.
///
/// # Safety
/// `ctx` is the context of the generated code that is running ([`enter::Context`]), so both it and its `host`
/// are alive.
unsafe fn help(ctx: *mut WarpCtx, body: impl FnOnce(&WarpCtx, &Host<'_>) -> Result<(), Box<Stop>>) -> u32 {
    // SAFETY: the context is alive, and everything written while this reference lives is a cell.
    let ctx = unsafe { &*ctx };
    // SAFETY: the host state is alive, and no unique reference to it exists.
    let host = unsafe { &*std::ptr::with_exposed_provenance::<Host<'_>>(ctx.host as usize) };
    match catch_unwind(AssertUnwindSafe(|| {
        #[cfg(test)]
        tests::inject();
        body(ctx, host)
    })) {
        // Helpers without a status still end the launch if they panicked.
        Ok(Ok(())) if !host.is_stopped() => 0,
        Ok(Ok(())) => status::STOP,
        Ok(Err(stop)) => host.stop(*stop),
        Err(panic) => host.stop(Stop::Bug(Bug::of_panic("a helper", &*panic))),
    }
}

extern "C" fn check(ctx: *mut WarpCtx, site: u32, mask: u32, addresses: *const [u64; LANES]) -> u32 {
    // SAFETY: generated code passes its own context and a buffer of 32 addresses on its stack.
    unsafe { help(ctx, |ctx, host| host.check(ctx, site as usize, mask, &*addresses)) }
}

extern "C" fn check_earlier(ctx: *mut WarpCtx, site: u32, mask: u32, addresses: *const [u64; LANES]) -> u32 {
    // SAFETY: generated code passes its own context and a buffer of 32 addresses on its stack.
    unsafe { help(ctx, |ctx, host| host.check_earlier(ctx, site as usize, mask, &*addresses)) }
}

extern "C" fn check_together(
    ctx: *mut WarpCtx,
    site: u32,
    mask: u32,
    addresses: *const [u64; LANES],
    bytes: u64,
) -> u32 {
    let mut together = false;
    // SAFETY: generated code passes its own context and a buffer of 32 addresses on its stack.
    let stopped = unsafe {
        help(ctx, |ctx, host| {
            together = host.check_together(ctx, site as usize, mask, &*addresses, bytes);
            Ok(())
        })
    };
    stopped | u32::from(!together)
}

extern "C" fn check_group(ctx: *mut WarpCtx, site: u32, mask: u32, addresses: *const [u64; LANES]) -> u32 {
    let mut member = 0;
    // SAFETY: generated code passes its own context and a buffer of 32 addresses on its stack.
    let stopped = unsafe {
        help(ctx, |ctx, host| {
            host.check_group(ctx, site as usize, mask, &*addresses).map_err(|(failed, stop)| {
                member = failed;
                stop
            })
        })
    };
    // A panic belongs to no access.
    if stopped == status::DONE { 0 } else { member as u32 + 1 }
}

extern "C" fn pure(ctx: *mut WarpCtx, site: u32, mask: u32, input: *const Row, output: *mut Row) {
    let body = |_: &WarpCtx, host: &Host<'_>| {
        let SiteKind::Pure { srcs, dsts } = &host.code.compiled.sites[site as usize].kind else { return wrong_site() };
        let rows = |bits: &[u32]| bits.iter().map(|b| lanes::rows(*b)).sum::<usize>();
        // SAFETY: `input` and `output` are buffers on the caller's stack, with as many rows as the site's widths
        // require.
        let (input, output) = unsafe {
            (std::slice::from_raw_parts(input, rows(srcs)), std::slice::from_raw_parts_mut(output, rows(dsts)))
        };
        host.pure(site as usize, mask, input, output);
        Ok(())
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) };
}

extern "C" fn effect(ctx: *mut WarpCtx, site: u32, live: u32, mask: u32, input: *const Row, output: *mut Row) -> u32 {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        let SiteKind::Effect { reads, writes, .. } = host.code.compiled.sites[site as usize].kind else {
            return wrong_site();
        };
        // SAFETY: `input` and `output` are buffers on the caller's stack of as many rows as the site says.
        let (input, output) =
            unsafe { (std::slice::from_raw_parts(input, reads), std::slice::from_raw_parts_mut(output, writes)) };
        while !host.effect(ctx, site as usize, (live, mask), input, output)? {
            // Retries happen on fibers only.
            ctx.polls.set(site + 1);
            let polling = ctx.polled.iter().enumerate().filter(|(lane, _)| mask >> lane & 1 == 1);
            polling.for_each(|(_, polled)| polled.set(site + 1));
            // SAFETY: called by generated code on a fiber; this frame owns nothing that must be dropped.
            unsafe { enter::suspend(ctx) };
            if host.is_stopped() {
                break;
            }
        }
        Ok(())
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) }
}

extern "C" fn builtin(
    ctx: *mut WarpCtx,
    site: u32,
    mask: u32,
    input: *const [u64; LANES],
    output: *mut [u64; LANES],
) -> u32 {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        let SiteKind::Builtin { builtin, args } = host.code.compiled.sites[site as usize].kind else {
            return wrong_site();
        };
        // SAFETY: `input` and `output` are buffers on the caller's stack: the site's number of arguments, and one
        // result.
        let (input, output) = unsafe { (std::slice::from_raw_parts(input, args), &mut *output) };
        *output = host.builtin(ctx, site as usize, builtin, mask, input)?;
        Ok(())
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) }
}

extern "C" fn fault(ctx: *mut WarpCtx, site: u32, mask: u32) -> u32 {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        let lane = mask.trailing_zeros().min(31);
        if let SiteKind::LeftOut | SiteKind::Returned = host.code.compiled.sites[site as usize].kind {
            host.note_undefined(ctx, site as usize, lane);
            return Ok(());
        }
        Err(Box::new(host.fault(ctx, site as usize, lane)))
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) }
}

extern "C" fn refuse(ctx: *mut WarpCtx, site: u32, mask: u32, a: u64, b: u64, c: u64) -> u32 {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        Err(Box::new(host.refusal(ctx, site as usize, mask.trailing_zeros().min(31), [a, b, c])))
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) }
}

/// The elements that a site stores, each a row of lanes.
///
/// # Safety
/// `values` is a buffer on the caller's stack of as many bytes as the site says for each lane.
unsafe fn stored<'v>(host: &Host<'_>, site: u32, values: *const u8) -> Option<&'v [u8]> {
    let bytes = host.stored(site as usize).filter(|_| !values.is_null())?;
    // SAFETY: as above.
    Some(unsafe { std::slice::from_raw_parts(values, bytes * LANES) })
}

extern "C" fn observe(ctx: *mut WarpCtx, site: u32, mask: u32, addresses: *const [u64; LANES], values: *const u8) {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        // SAFETY: both are buffers on the caller's stack, `values` of the size that the site says.
        let (addresses, values) = unsafe { (&*addresses, stored(host, site, values)) };
        host.observe(ctx, site as usize, mask, Addresses::Lanes(addresses), values);
        Ok(())
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) };
}

extern "C" fn observe_row(ctx: *mut WarpCtx, site: u32, mask: u32, first: u64, stride: u64, values: *const u8) {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        // SAFETY: a buffer on the caller's stack of the size that the site says.
        let values = unsafe { stored(host, site, values) };
        host.observe(ctx, site as usize, mask, Addresses::Row(first, stride), values);
        Ok(())
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) };
}

extern "C" fn loads(ctx: *mut WarpCtx) {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        host.flush(ctx);
        Ok(())
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) };
}

extern "C" fn notes(ctx: *mut WarpCtx) {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        host.report_noted(ctx);
        Ok(())
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) };
}

extern "C" fn strays(ctx: *mut WarpCtx, site: u32, mask: u32, addresses: *const [u64; LANES]) {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        // SAFETY: a buffer on the caller's stack.
        host.strays(ctx, site as usize, mask, unsafe { &*addresses });
        Ok(())
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) };
}

extern "C" fn event(ctx: *mut WarpCtx, site: u32, mask: u32) {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        host.report_moment(ctx, site as usize, mask);
        Ok(())
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) };
}

extern "C" fn unwind(ctx: *mut WarpCtx, site: u32) {
    let body = |_: &WarpCtx, host: &Host<'_>| {
        host.unwind(site as usize);
        Ok(())
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) };
}

/// Warp instructions charged per back edge.
const LOOP_BODY: u64 = 8;

extern "C" fn time(ctx: *mut WarpCtx, to: *mut u64) {
    let body = |_: &WarpCtx, _: &Host<'_>| {
        // SAFETY: a variable on the caller's stack.
        unsafe { *to = unix_time() };
        Ok(())
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) };
}

extern "C" fn tick(ctx: *mut WarpCtx) -> u32 {
    let body = |ctx: &WarpCtx, host: &Host<'_>| match host.meter {
        Some(meter) => meter.spend(u64::from(PERIOD) * LOOP_BODY).map_err(Box::new),
        // On a fiber: the scheduler of its CTA counts fuel.
        None => {
            // SAFETY: called by generated code on a fiber; this frame owns nothing that must be dropped.
            unsafe { enter::suspend(ctx) };
            Ok(())
        }
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) }
}

extern "C" fn yield_to_others(ctx: *mut WarpCtx) -> u32 {
    let body = |ctx: &WarpCtx, _: &Host<'_>| {
        // SAFETY: called by generated code on a fiber; this frame owns nothing that must be dropped.
        unsafe { enter::suspend(ctx) };
        Ok(())
    };
    // SAFETY: generated code passes its own context. (A device function may have stopped meanwhile, which `help`
    // reports.)
    unsafe { help(ctx, body) }
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
    let body = |_: &WarpCtx, host: &Host<'_>| {
        // SAFETY: generated code passes an entry of its table of functions, and buffers in a frame that outlives the
        // call.
        let call = unsafe { Call::new(entry, (lanes, frame), (args, rets), site as usize) };
        host.fibers.borrow_mut().calls.push(call);
        Ok(())
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) }
}

extern "C" fn finish(ctx: *mut WarpCtx, lanes: u32) {
    let body = |_: &WarpCtx, host: &Host<'_>| {
        host.fibers.borrow_mut().finished |= lanes;
        Ok(())
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) };
}

extern "C" fn arrive(
    ctx: *mut WarpCtx,
    site: u32,
    mask: u32,
    ids: *const [u32; LANES],
    counts: *const [u32; LANES],
    truth: u32,
) -> u32 {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        // SAFETY: `ids` and `counts` are rows on the caller's stack.
        let (ids, counts) = unsafe { (&*ids, &*counts) };
        let SiteKind::Barrier { counted, reduces, arrives } = &host.code.compiled.sites[site as usize].kind else {
            return wrong_site();
        };
        let arrived = host.barriers.borrow_mut().arrive(
            (ctx.warp.get() as usize, site as usize),
            (mask, ctx.alive.get()),
            ids,
            counted.then_some(counts),
            reduces.map(|_| truth),
            (*reduces, !arrives),
        );
        arrived.map_err(|why| misused(ctx, host, site, why))
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) }
}

extern "C" fn cluster(ctx: *mut WarpCtx, site: u32, lanes: u32) -> u32 {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        let (warp, at) = (ctx.warp.get() as usize, site as usize);
        if let SiteKind::Cluster { waits: true } = host.code.compiled.sites[at].kind {
            host.barriers.borrow_mut().wait_in_cluster((warp, at), lanes);
            return Ok(());
        }
        // The phase may have completed already: it ends at once when the last thread arrives (section 9.7.13.3), but only the
        // scheduler of the cluster sees the other CTAs. It resumes this fiber before any other.
        if host.meter.is_none() && host.barriers.borrow().has_arrived_in_cluster(warp, lanes) {
            host.fibers.borrow_mut().asks_for_phase = true;
            // SAFETY: called by generated code on a fiber; this frame owns nothing that must be dropped.
            unsafe { enter::suspend(ctx) };
        }
        let arrived = host.barriers.borrow_mut().arrive_in_cluster(warp, lanes);
        arrived.map_err(|why| misused(ctx, host, site, why))
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) }
}

/// The fault of a lane that broke a rule of barriers.
fn misused(ctx: &WarpCtx, host: &Host<'_>, site: u32, (lane, what): (usize, String)) -> Box<Stop> {
    Box::new(host.fault_at(ctx, site as usize, lane as u32, FaultKind::Barrier(what), Vec::new()))
}

fn wrong_site() -> Result<(), Box<Stop>> {
    Err(Box::new(Stop::Bug(Bug("a helper was called at a site of another one".into()))))
}

extern "C" fn park(ctx: *mut WarpCtx, site: u32, live: u32, mask: u32, input: *const Row) -> u32 {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        let SiteKind::Effect { reads, .. } = host.code.compiled.sites[site as usize].kind else { return wrong_site() };
        // SAFETY: `input` is a buffer on the caller's stack of as many rows as the site says.
        let input = unsafe { std::slice::from_raw_parts(input, reads) };
        host.park(ctx, site as usize, (live, mask), input)
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) }
}

/// The largest number of result rows of a warp operation.
const MAX_RESULTS: usize = 4;

extern "C" fn wait(ctx: *mut WarpCtx, lanes: u32, released: *mut u32, output: *mut Row, park: u32) -> u32 {
    let body = |ctx: &WarpCtx, host: &Host<'_>| {
        let warp = ctx.warp.get();
        // Resuming the fiber clears them.
        let (held, gathered) = ((ctx.held.get(), ctx.held_lanes.get()), ctx.gathered.get());
        loop {
            let mut found = host.barriers.borrow_mut().take(warp as usize, lanes);
            if found.is_none() {
                found = host.fibers.borrow_mut().take_returned(warp as usize).map(|lanes| (lanes, 0));
            }
            if found.is_none() && !output.is_null() {
                let mut rows = [Row::ZERO; MAX_RESULTS];
                if let Some((lanes, count)) = host.take_released(warp, lanes, ctx.alive.get(), &mut rows) {
                    // SAFETY: `output` has room for the results of every operation at which lanes of this function
                    // wait.
                    unsafe { std::slice::from_raw_parts_mut(output, count) }.copy_from_slice(&rows[..count]);
                    found = Some((lanes, 0));
                }
            }
            // Lanes that only wait for the rest of their warp do not park once some have ended.
            if found.is_none() && (park == 0 || gathered != 0 && ctx.alive.get() != u32::MAX) {
                found = Some((0, 0));
            } else if found.is_some() {
                host.fibers.borrow_mut().woken += 1;
            }
            ctx.waits.set(u32::from(found.is_none()));
            if let Some((lanes, reduced)) = found {
                ctx.reduced.set(reduced);
                // SAFETY: `released` points to a variable on the caller's stack.
                unsafe { *released = lanes };
                return Ok(());
            }
            ctx.held.set(held.0);
            ctx.held_lanes.set(held.1);
            // SAFETY: called by generated code on a fiber; this frame owns nothing that must be dropped.
            unsafe { enter::suspend(ctx) };
            if host.is_stopped() {
                return Ok(());
            }
        }
    };
    // SAFETY: generated code passes its own context.
    unsafe { help(ctx, body) }
}

#[cfg(test)]
mod tests;
