//! A fast path for common accesses to global memory: all 32 lanes of a full warp load or store consecutive elements of
//! 4 or 8 bytes, or load the same one. Everything else (partial groups, faults, observers, counters, orderings) is left
//! to [`super::memory`], with no effect here.

use super::super::{
    code::{Base, MemOp, NOWHERE, Order, Shape, Src},
    ctx::Ctx,
};
use super::address::{Region, find_allocation};
use super::memory::Element;
use crate::{
    LANES, Row,
    lanes::u64s,
    mem::{Kind, Scalar},
};
use margay_ir::MemSpace;

/// The relation between the addresses of a warp's lanes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    Run,
    Same,
}

/// The address of lane 0, and its relation to the others; `None` for other accesses.
#[inline(always)]
fn relation(ctx: &Ctx<'_>, m: &MemOp, size: u64) -> Option<(Relation, u64, Region)> {
    let Base::Reg(base) = m.address.base else { return None };
    let region = match m.address.space {
        MemSpace::Global | MemSpace::Const => Region::Global,
        MemSpace::Generic => Region::Generic,
        _ => return None,
    };
    let watched = ctx.grid.observer.is_some() || ctx.grid.counts.is_some();
    if watched || ctx.active != u32::MAX || m.order != Order::Relaxed || m.straddles || base.shape() != Shape::Double {
        return None;
    }
    let at = u64s(ctx.src(base));
    let same = at[1] == at[0];
    let step = if same { 0 } else { size };
    let mut other = 0;
    for i in 0..LANES {
        other |= at[i] ^ at[0].wrapping_add(i as u64 * step);
    }
    let relation = if same { Relation::Same } else { Relation::Run };
    (other == 0).then(|| (relation, at[0].wrapping_add_signed(m.address.offset), region))
}

/// Whether a register is one row of whole elements.
fn fits<T>(shape: Shape, bits: u32) -> bool {
    matches!((size_of::<T>(), shape, bits), (4, Shape::Word, 32) | (8, Shape::Double, 64))
}

/// Performs a load if it is of the common kind.
#[inline(always)]
pub fn load<T: Element>(ctx: &mut Ctx<'_>, m: &MemOp) -> Option<()> {
    let d = m.dst.first().filter(|d| d.row != NOWHERE && fits::<T>(d.shape, d.bits.into()))?;
    let (relation, first, region) = relation(ctx, m, size_of::<T>() as u64)?;
    let found = find_allocation!(ctx, region, first, 0).filter(|a| a.kind != Kind::Local)?;
    let rows = &mut ctx.regs[d.row as usize..d.row as usize + d.shape.rows()];
    if relation == Relation::Same {
        let value = T::get(found.block.cell::<T::Cell>(first)?);
        let pair = if size_of::<T>() == 4 { value.zero() | value.zero() << 32 } else { value.zero() };
        doubles(rows).fill(pair);
    } else if let Some(pairs) = found.block.cells::<<u64 as Scalar>::Cell>(first, 4 * size_of::<T>()) {
        doubles(rows).iter_mut().zip(pairs).for_each(|(d, c)| *d = u64::get(c));
    } else {
        // 4-byte elements at an address that is not a multiple of 8.
        let cells = found.block.cells::<<u32 as Scalar>::Cell>(first, LANES).filter(|_| size_of::<T>() == 4)?;
        rows[0].0.iter_mut().zip(cells).for_each(|(d, c)| *d = u32::get(c));
    }
    Some(())
}

/// Performs a store if it is of the common kind.
#[inline(always)]
pub fn store<T: Element>(ctx: &mut Ctx<'_>, m: &MemOp) -> Option<()> {
    let s: Src = *m.src.first().filter(|s| fits::<T>(s.shape(), 8 * size_of::<T>() as u32))?;
    let (_, first, region) = relation(ctx, m, size_of::<T>() as u64).filter(|l| l.0 == Relation::Run)?;
    let found = find_allocation!(ctx, region, first, 0).filter(|a| a.kind.writable() && a.kind != Kind::Local)?;
    let rows = s.of(&ctx.regs, &ctx.func.consts);
    if let Some(pairs) = found.block.cells::<<u64 as Scalar>::Cell>(first, 4 * size_of::<T>()) {
        let from: &[u64] = bytemuck::cast_slice(rows);
        from.iter().zip(pairs).for_each(|(v, c)| u64::set(c, *v));
    } else {
        let cells = found.block.cells::<<u32 as Scalar>::Cell>(first, LANES).filter(|_| size_of::<T>() == 4)?;
        rows[0].0.iter().zip(cells).for_each(|(v, c)| u32::set(c, *v));
    }
    match region {
        Region::Shared => ctx.cta.note_shared_effect(),
        _ => ctx.cta.note_effect(),
    }
    Some(())
}

fn doubles(rows: &mut [Row]) -> &mut [u64] {
    bytemuck::cast_slice_mut(rows)
}
