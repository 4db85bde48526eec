//! Operations on barrier objects (`mbarrier`) in shared memory (manual, section 9.7.13.15). A cluster runs on one host thread, so plain loads and
//! stores are atomic.

use super::super::{
    code::{Flow, MbarrierOp, Op},
    ctx::Ctx,
    schedule::SPINS,
    state::lanes,
};
use super::address::{Region, addresses, bad_access, find_allocation};
use super::{copy::peers, watch};
use crate::{
    FaultKind, LANES, ObjectStep, mem,
    object::{LIMIT, MbarrierKind, Object, PHASE},
};

/// Updates the object at a host address; returns its previous bits.
fn update(
    ctx: &mut Ctx<'_>,
    lane: usize,
    (region, host): (Region, u64),
    b: &MbarrierOp,
    done: ObjectStep,
    change: impl FnOnce(Object) -> Result<Object, &'static str>,
) -> Result<u64, Flow> {
    let found = find_allocation!(ctx, region, host, lane).filter(|a| a.kind.writable());
    let found = found.and_then(|a| mem::load::<u64>(&a.block, host));
    let Some(old) = found else { return Err(bad_access(ctx, lane, &b.address, region, host, (8, 8), true)) };
    let wrong = |ctx: &mut Ctx<'_>, what: &str| ctx.fault(lane, FaultKind::Barrier(what.into()), Vec::new());
    let Some(object) = Object::unpack(old) else {
        return Err(wrong(ctx, "an mbarrier operation on memory without an initialized mbarrier object"));
    };
    match change(object) {
        Ok(new) => {
            if new.pack() != old {
                ctx.cta.note_effect();
            }
            if let Some(a) = find_allocation!(ctx, region, host, lane) {
                mem::store(&a.block, host, new.pack());
            }
            // Waits are reported by the caller, which knows their outcome.
            if !matches!(done, ObjectStep::Waited { .. }) {
                watch::object(ctx, lane, host, done, new.phase != object.phase);
            }
            Ok(old)
        }
        Err(what) => Err(wrong(ctx, &format!("invalid use of an mbarrier object: {what}"))),
    }
}

/// Completes transactions of the object at a host address.
pub fn complete(ctx: &mut Ctx<'_>, lane: usize, place: (Region, u64), b: &MbarrierOp, bytes: u64) -> Result<(), Flow> {
    update(ctx, lane, place, b, ObjectStep::Complete, |o| Ok(o.expect(-(bytes as i64))?.advance())).map(drop)
}

/// Arrives once at the object at a host address, when products and copies of the tensor cores have completed.
pub fn arrive(ctx: &mut Ctx<'_>, lane: usize, place: (Region, u64), b: &MbarrierOp) -> Result<(), Flow> {
    update(ctx, lane, place, b, ObjectStep::ArriveAfterProducts, |o| o.arrive(1)).map(drop)
}

/// `mbarrier`, and other instructions that operate on barrier objects.
pub fn execute(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let b: &MbarrierOp = &ctx.func.mbarriers[op.x as usize];
    let operands = b.operand.map(|s| ctx.doubles(s));
    let mut results = [0; LANES];
    if b.kind == MbarrierKind::Pending {
        if let Some(d) = b.dst {
            let states = operands.unwrap_or([0; LANES]);
            ctx.write(d, &states.map(|s| s & LIMIT), ctx.active);
        }
        return Flow::Next;
    }
    let mut at = [0; LANES];
    let region = match addresses(ctx, &b.address, (8, true), &mut at) {
        Ok(region) => region,
        Err(flow) => return flow,
    };
    let ctas = b.ctas.map(|s| ctx.words(s));
    let common = if ctas.is_none() { together(ctx, (region, &at), b, operands.as_ref()) } else { None };
    for i in lanes(if common.is_some() { 0 } else { ctx.active }) {
        let operand = operands.map_or(1, |o| o[i]);
        let done = match ctas {
            None => one(ctx, i, (region, at[i]), b, operand),
            // Operates on the object at the same offset in each CTA of the mask.
            Some(masks) => lanes(masks[i]).try_fold(0, |_, rank| {
                let [host] = peers(ctx, i, rank, [at[i]])?;
                one(ctx, i, (Region::Generic, host), b, operand)
            }),
        };
        match done {
            Ok(result) => results[i] = result,
            Err(flow) => return flow,
        }
    }
    let results = common.unwrap_or(results);
    let waits = matches!(b.kind, MbarrierKind::Wait | MbarrierKind::WaitParity);
    if waits && lanes(ctx.active).any(|i| results[i] == 0) {
        ctx.warp.spins = SPINS;
    }
    if let Some(d) = b.dst {
        ctx.write(d, &results, ctx.active);
    }
    Flow::Next
}

/// What one lane's operation does to an object, other than to initialize or invalidate it.
#[inline]
fn change(kind: MbarrierKind, operand: u64, o: Object) -> Result<Object, &'static str> {
    let (count, bytes) = (operand & 0xffff_ffff, (operand & 0xffff_ffff) as i64);
    match kind {
        MbarrierKind::Expect => o.expect(bytes),
        MbarrierKind::Complete => Ok(o.expect(-bytes)?.advance()),
        MbarrierKind::Arrive => o.arrive(count),
        MbarrierKind::Drop => o.drop_one(count)?.arrive(count),
        MbarrierKind::ArriveExpect => o.expect(bytes)?.arrive(1),
        MbarrierKind::DropExpect => o.expect(bytes)?.drop_one(1)?.arrive(1),
        MbarrierKind::AfterCopies(true) => o.arrive(1),
        // Increments and decrements the pending count.
        MbarrierKind::AfterCopies(false) => Ok(o.advance()),
        MbarrierKind::Wait | MbarrierKind::WaitParity => Ok(o),
        MbarrierKind::Init | MbarrierKind::Inval | MbarrierKind::Pending => Ok(o),
    }
}

/// What a lane gets from an operation on an object with these bits: the previous state, or the result of a wait.
#[inline]
fn result(kind: MbarrierKind, operand: u64, old: u64) -> u64 {
    match kind {
        MbarrierKind::Wait => u64::from((old ^ operand) & PHASE != 0),
        MbarrierKind::WaitParity => u64::from(old >> 63 != operand & 1),
        _ => old,
    }
}

/// Performs the operation of all active lanes on one object if nobody observes it and it succeeds in all of them.
fn together(
    ctx: &mut Ctx<'_>,
    (region, at): (Region, &[u64; LANES]),
    b: &MbarrierOp,
    operands: Option<&[u64; LANES]>,
) -> Option<[u64; LANES]> {
    let first = ctx.active.trailing_zeros() as usize;
    let host = *at.get(first)?;
    let plain = !matches!(b.kind, MbarrierKind::Init | MbarrierKind::Inval);
    if !plain || ctx.grid.observer.is_some() || lanes(ctx.active).any(|i| at[i] != host) {
        return None;
    }
    let a = find_allocation!(ctx, region, host, first).filter(|a| a.kind.writable())?;
    let old = mem::load::<u64>(&a.block, host)?;
    let mut object = Object::unpack(old)?;
    let (mut results, mut now) = ([0; LANES], old);
    let changes = !matches!(b.kind, MbarrierKind::Wait | MbarrierKind::WaitParity);
    for i in lanes(ctx.active) {
        let operand = operands.map_or(1, |o| o[i]);
        results[i] = result(b.kind, operand, now);
        if changes {
            object = change(b.kind, operand, object).ok()?;
            now = object.pack();
        }
    }
    if now != old {
        mem::store(&a.block, host, now);
        ctx.cta.note_effect();
    }
    Some(results)
}

/// Performs one lane's operation on one object; returns the previous state, or the result of a wait.
fn one(ctx: &mut Ctx<'_>, lane: usize, place: (Region, u64), b: &MbarrierOp, operand: u64) -> Result<u64, Flow> {
    let step = match b.kind {
        MbarrierKind::Init | MbarrierKind::Inval => return initialize(ctx, lane, place, b, operand & 0xffff_ffff),
        MbarrierKind::Pending => return Ok(0),
        MbarrierKind::Expect => ObjectStep::Expect,
        MbarrierKind::Complete => ObjectStep::Complete,
        MbarrierKind::AfterCopies(_) => ObjectStep::ArriveAfterCopies,
        MbarrierKind::Wait => ObjectStep::Waited { parity: false },
        MbarrierKind::WaitParity => ObjectStep::Waited { parity: true },
        _ => ObjectStep::Arrive,
    };
    let old = update(ctx, lane, place, b, step, |o| change(b.kind, operand, o))?;
    let result = result(b.kind, operand, old);
    if let ObjectStep::Waited { parity } = step {
        // The observer learns the outcome.
        let step = if result != 0 { step } else { ObjectStep::Pending { parity } };
        watch::object(ctx, lane, place.1, step, false);
    }
    Ok(result)
}

fn initialize(
    ctx: &mut Ctx<'_>,
    lane: usize,
    (region, host): (Region, u64),
    b: &MbarrierOp,
    count: u64,
) -> Result<u64, Flow> {
    let found = find_allocation!(ctx, region, host, lane).filter(|a| a.kind.writable());
    let Some(found) = found.filter(|a| mem::load::<u64>(&a.block, host).is_some()) else {
        return Err(bad_access(ctx, lane, &b.address, region, host, (8, 8), true));
    };
    if b.kind == MbarrierKind::Init && (count == 0 || count > LIMIT) {
        let what = format!("an mbarrier object for {count} arrivals; the count must be 1 to {LIMIT}");
        return Err(ctx.fault(lane, FaultKind::Barrier(what), Vec::new()));
    }
    let new = match b.kind {
        MbarrierKind::Init => Object { phase: false, pending: count, expected: count, transactions: 0 }.pack(),
        _ => 0,
    };
    mem::store(&found.block, host, new);
    ctx.cta.note_effect();
    let step = if b.kind == MbarrierKind::Init { ObjectStep::Initialize } else { ObjectStep::Invalidate };
    watch::object(ctx, lane, host, step, false);
    Ok(0)
}
