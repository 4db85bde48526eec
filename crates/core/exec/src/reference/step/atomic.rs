//! Atomic operations and reductions (manual, sections 9.7.13.5 to 9.7.13.7).
//!
//! The lanes of a group operate one after another. Each element is one atomic operation of the host, so that CTAs on
//! different host threads are atomic with respect to each other. Every ordering is sequentially consistent.

use super::super::{
    code::{Flow, MemOp, Op, Shape},
    ctx::Ctx,
    state::lanes,
};
use super::address::{addresses, bad_access, find_allocation, observe};
use super::quad;
use crate::{
    AccessKind, LANES,
    mem::{AtomicU128, Block, Kind},
    sem::atomic::{AtomicOp, Number, Rmw},
};
use margay_ir::MemSpace;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

/// Operates on one element; returns its old value, `None` if there is no cell.
#[inline(always)]
pub fn element(block: &Block, at: u64, rmw: Rmw, flush: bool, b: u64, c: u64) -> Option<u64> {
    Some(match rmw.ty.bytes() {
        2 => {
            let cell = block.cell::<AtomicU16>(at)?;
            let new = |old: u16| Some(rmw.apply(flush, old.into(), b, c) as u16);
            cell.fetch_update(SeqCst, SeqCst, new).unwrap_or_else(|old| old).into()
        }
        4 => {
            let cell = block.cell::<AtomicU32>(at)?;
            if rmw.op == AtomicOp::Add && matches!(rmw.number(), Number::Integer { .. }) {
                return Some(cell.fetch_add(b as u32, SeqCst).into());
            }
            let new = |old: u32| Some(rmw.apply(flush, old.into(), b, c) as u32);
            cell.fetch_update(SeqCst, SeqCst, new).unwrap_or_else(|old| old).into()
        }
        _ => {
            let cell = block.cell::<AtomicU64>(at)?;
            cell.fetch_update(SeqCst, SeqCst, |old| Some(rmw.apply(flush, old, b, c))).unwrap_or_else(|old| old)
        }
    })
}

/// `atom` and `red` of elements of up to 64 bits, scalars and vectors.
pub fn atomic(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m: &MemOp = &ctx.func.mems[op.x as usize];
    let (count, size) = (m.count as usize, m.count * m.size);
    let mut at = [0; LANES];
    let region = match addresses(ctx, &m.address, (size, true), &mut at) {
        Ok(region) => region,
        Err(flow) => return flow,
    };
    observe(ctx, &m.address, &at, size, AccessKind::Atomic);
    ctx.warp.spins += 1;
    let before = ctx.cta.effects.get();
    for k in 0..count {
        let b = ctx.doubles(m.src[k]);
        let c = if m.src.len() > count { ctx.doubles(m.src[count]) } else { [0; LANES] };
        let mut old = [0; LANES];
        for i in lanes(ctx.active) {
            let address = at[i] + (k as u64) * u64::from(m.size);
            let found = find_allocation!(ctx, region, address, i).filter(|a| a.kind.writable());
            let done = found.filter(|_| at[i].is_multiple_of(size.into())).and_then(|a| {
                let flush = m.atomic.flushes(a.kind == Kind::Shared);
                Some((element(&a.block, address, m.atomic, flush, b[i], c[i])?, flush))
            });
            match done {
                Some((value, flush)) => {
                    old[i] = value;
                    if m.atomic.changes(flush, value, b[i], c[i]) {
                        ctx.cta.note_effect();
                    }
                }
                None => return bad_access(ctx, i, &m.address, region, at[i], (size, size), true),
            }
        }
        if let Some(d) = m.dst.get(k) {
            ctx.write(*d, &old, ctx.active);
        }
    }
    if ctx.cta.yielding.when.publishes && ctx.cta.effects.get() != before {
        ctx.cta.yielding.publish(m.address.space == MemSpace::Shared, ctx.warp.index);
    }
    Flow::Next
}

/// `atom.cas.b128`, `atom.exch.b128`.
pub fn atomic_quad(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m: &MemOp = &ctx.func.mems[op.x as usize];
    let mut at = [0; LANES];
    let region = match addresses(ctx, &m.address, (16, true), &mut at) {
        Ok(region) => region,
        Err(flow) => return flow,
    };
    observe(ctx, &m.address, &at, 16, AccessKind::Atomic);
    ctx.warp.spins += 1;
    let (b, c) = (ctx.quads(m.src[0]), m.src.get(1).map(|s| ctx.quads(*s)));
    let mut old = [0u128; LANES];
    for i in lanes(ctx.active) {
        let found = find_allocation!(ctx, region, at[i], i).filter(|a| a.kind.writable());
        let Some(cell) = found.and_then(|a| a.block.cell::<AtomicU128>(at[i])) else {
            return bad_access(ctx, i, &m.address, region, at[i], (16, 16), true);
        };
        let changed = match &c {
            Some(c) => {
                old[i] = cell.compare_exchange(b[i], c[i]);
                old[i] == b[i] && b[i] != c[i]
            }
            None => {
                old[i] = cell.update(|_| b[i]);
                old[i] != b[i]
            }
        };
        if changed {
            ctx.cta.note_effect();
        }
    }
    if let Some(d) = m.dst.first() {
        debug_assert!(d.shape == Shape::Quad || d.row == super::super::code::NOWHERE);
        quad::put(ctx, *d, &old);
    }
    Flow::Next
}
