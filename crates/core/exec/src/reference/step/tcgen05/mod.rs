//! Tensor memory: allocation, moves, products and their completion (manual, sections 9.7.16.7 to 9.7.16.12).
//!
//! Products and copies are done at issue, so waits and fences only report to observers, and a commit arrives at its barrier object at
//! once.

mod moves;

pub use moves::{load, store, wait};

use super::super::{
    code::{Address, Flow, Op, Tcgen05Op},
    ctx::Ctx,
    state::{Wait, lanes},
    tensor_memory::{COLUMNS, LANES as TENSOR_LANES, TensorMemory},
};
use super::address::{addresses, offsets, out_of_bounds, rank_of};
use super::copy::{peers, transactions};
use super::matrix::{Units, gather, read_unit};
use super::watch::{Cells, report_access, report_units};
use super::{address::Region, mbarrier};
use crate::{
    Access, AccessKind, FaultKind, LANES,
    matrix::{
        descriptor::Descriptor,
        tcgen05::{self, Memories, Operands, Refused, split},
        unpack,
    },
    mem,
};
use margay_ir::MemSpace;
use margay_isa::{Mod, Variant, name};
use parking_lot::MutexGuard;

fn table<'c>(ctx: &Ctx<'c>, op: &Op) -> &'c Tcgen05Op {
    let func = ctx.func;
    &func.tcgen05s[op.x as usize]
}

/// The tensor memory of a CTA of the cluster. A cluster runs on one host thread, so the lock is never contended.
fn memory<'c>(ctx: &Ctx<'c>, rank: usize) -> Option<MutexGuard<'c, TensorMemory>> {
    let windows = ctx.windows;
    windows.tensor.get(rank).map(|m| m.lock())
}

fn own<'c>(ctx: &mut Ctx<'c>) -> Result<MutexGuard<'c, TensorMemory>, Flow> {
    memory(ctx, ctx.cta.rank as usize).ok_or_else(|| ctx.bug("a CTA without tensor memory"))
}

fn wrong(ctx: &mut Ctx<'_>, lane: usize, what: String) -> Flow {
    ctx.fault(lane, FaultKind::Descriptor(what), Vec::new())
}

fn outside(ctx: &mut Ctx<'_>, lane: usize, at: (usize, usize), write: bool) -> Flow {
    let address = ((at.0 as u64) << 16) | at.1 as u64;
    let access = Access { write, address, size: 4, space: "tensor memory" };
    let note = format!("lane {} of column {} is not allocated", at.0, at.1);
    ctx.fault(lane, FaultKind::OutOfBounds(access), vec![note])
}

/// A 32-bit operand of one lane.
fn value(ctx: &Ctx<'_>, f: &Tcgen05Op, name: &str, lane: usize) -> Option<u32> {
    f.values.iter().find(|(n, _)| *n == name).map(|(_, s)| ctx.words(*s)[lane])
}

fn long(ctx: &Ctx<'_>, f: &Tcgen05Op, name: &str, lane: usize) -> Option<u64> {
    f.values.iter().find(|(n, _)| *n == name).map(|(_, s)| ctx.doubles(*s)[lane])
}

/// A tensor-memory address operand of one lane.
fn place(ctx: &Ctx<'_>, f: &Tcgen05Op, name: &str, lane: usize) -> Option<u32> {
    let (_, address) = f.addresses.iter().find(|(n, _)| *n == name)?;
    let mut out = [0; LANES];
    offsets(ctx, address, &mut out);
    Some(out[lane] as u32)
}

/// The host address of one lane's operand in shared memory.
fn shared(ctx: &mut Ctx<'_>, a: &Address, lane: usize) -> Result<(Region, u64), Flow> {
    let mut at = [0; LANES];
    let active = std::mem::replace(&mut ctx.active, 1 << lane);
    let region = addresses(ctx, a, (4, true), &mut at);
    ctx.active = active;
    Ok((region?, at[lane]))
}

/// `tcgen05.alloc`: blocks while too few columns are free.
pub fn allocate(ctx: &mut Ctx<'_>, op: &Op) -> Result<(), Flow> {
    gather(ctx, op)?;
    let f = table(ctx, op);
    let columns = value(ctx, f, name::N_COLS, 0).unwrap_or(0);
    if !columns.is_power_of_two() || !(32..=512).contains(&columns) {
        let what = format!("{columns} columns of tensor memory; the number must be 32, 64, 128, 256 or 512");
        return Err(wrong(ctx, 0, what));
    }
    let mut tensor = own(ctx)?;
    if tensor.relinquished {
        return Err(wrong(ctx, 0, "the CTA has relinquished its permit to allocate tensor memory".into()));
    }
    let Some(start) = tensor.allocate(columns) else {
        ctx.block(u32::MAX, Wait::TensorMemory);
        ctx.give_back();
        return Err(Flow::Park);
    };
    let Some((_, address)) = f.addresses.first() else { return Err(ctx.bug("an allocation without a place")) };
    let (region, host) = shared(ctx, address, 0)?;
    report_access(ctx, 1, address, &[host; LANES], 4, AccessKind::Store);
    let found = super::address::find_allocation!(ctx, region, host, 0);
    match found.and_then(|a| mem::store(&a.block, host, start)) {
        Some(()) => Ok(()),
        None => Err(super::address::bad_access(ctx, 0, address, region, host, (4, 4), true)),
    }
}

/// `tcgen05.dealloc`
pub fn free(ctx: &mut Ctx<'_>, op: &Op) -> Result<(), Flow> {
    gather(ctx, op)?;
    let f = table(ctx, op);
    let (Some(address), Some(columns)) = (value(ctx, f, name::TADDR, 0), value(ctx, f, name::N_COLS, 0)) else {
        return Err(ctx.bug("tensor memory is freed without an address"));
    };
    let mut tensor = own(ctx)?;
    let mut cells = Cells::new(ctx);
    if ctx.grid.observer.is_some() {
        let columns = address as usize..(address as usize).saturating_add(columns as usize).min(COLUMNS);
        columns.for_each(|column| (0..TENSOR_LANES).for_each(|lane| cells.note(lane, column)));
    }
    cells.report(ctx, u32::MAX, ctx.cta.rank as usize, AccessKind::Free);
    if !tensor.free(address, columns) {
        let what = format!("{columns} columns of tensor memory at {address:#x} do not match an allocation");
        return Err(wrong(ctx, 0, what));
    }
    // Groups that wait for columns retry.
    (ctx.cta.dirty, ctx.cta.freed) = (true, true);
    Ok(())
}

/// `tcgen05.relinquish_alloc_permit`
pub fn relinquish(ctx: &mut Ctx<'_>, op: &Op) -> Result<(), Flow> {
    gather(ctx, op)?;
    own(ctx)?.relinquished = true;
    Ok(())
}

/// Ranks of the CTAs of the CTA group.
fn group(ctx: &Ctx<'_>, v: &Variant) -> Vec<usize> {
    let rank = ctx.cta.rank as usize;
    if v.has(Mod::CtaGroup2) { vec![rank & !1, rank | 1] } else { vec![rank] }
}

fn check_group(ctx: &mut Ctx<'_>, lane: usize, ranks: &[usize]) -> Result<(), Flow> {
    if ranks.iter().all(|r| *r < ctx.windows.shared.len()) {
        return Ok(());
    }
    let what = format!("`.cta_group::2` in a cluster of {}", ctx.windows.shared.len());
    Err(wrong(ctx, lane, what))
}

/// Lanes of tensor memory that receive a row of the source.
fn targets(v: &Variant, row: usize) -> Vec<usize> {
    match () {
        _ if v.has(Mod::S32x128b) => (0..4).map(|w| row + 32 * w).collect(),
        _ if v.has(Mod::Warpx20213) => vec![row, row + 64],
        _ if v.has(Mod::Warpx20123) => vec![row % 32 + 64 * (row / 32), row % 32 + 64 * (row / 32) + 32],
        _ if v.has(Mod::S4x256b) => vec![32 * row],
        _ => vec![row],
    }
}

/// `tcgen05.cp`
pub fn copy(ctx: &mut Ctx<'_>, op: &Op) -> Result<(), Flow> {
    let f = table(ctx, op);
    let func = ctx.func;
    let v = func.variant(op);
    ctx.cta.note_effect();
    for lane in lanes(ctx.active) {
        let (Some(to), Some(bits)) = (place(ctx, f, name::TADDR, lane), long(ctx, f, name::S_DESC, lane)) else {
            return Err(ctx.bug("a copy without addresses"));
        };
        let Some(from) = Descriptor::tcgen05(bits) else {
            return Err(wrong(ctx, lane, format!("the matrix descriptor {bits:#018x} has no swizzling mode")));
        };
        let ranks = group(ctx, v);
        check_group(ctx, lane, &ranks)?;
        for rank in ranks {
            copy_in_cta(ctx, v, lane, rank, from, split(to))?;
        }
    }
    Ok(())
}

/// Copies a matrix from the shared memory of a CTA to lanes and columns of its tensor memory, for an executing lane.
fn copy_in_cta(
    ctx: &mut Ctx<'_>,
    v: &Variant,
    lane: usize,
    rank: usize,
    from: Descriptor,
    (first_lane, first_column): (usize, usize),
) -> Result<(), Flow> {
    let rows = match () {
        _ if v.has(Mod::S4x256b) => 4,
        _ if v.has(Mod::S32x128b) => 32,
        _ if v.has(Mod::S64x128b) => 64,
        _ => 128,
    };
    let units = if v.has(Mod::S128x256b) || v.has(Mod::S4x256b) { 2 } else { 1 };
    let Some(mut tensor) = memory(ctx, rank) else { return Err(ctx.bug("a CTA without tensor memory")) };
    let (mut read, mut cells) = (Units::new(ctx), Cells::new(ctx));
    for (row, unit) in (0..rows).flat_map(|row| (0..units).map(move |unit| (row, unit))) {
        let address = from.address(true, unit, row);
        read.note(address);
        let bytes = read_unit(&ctx.windows.shared[rank], address)
            .map_err(|at| out_of_bounds(ctx, lane, MemSpace::Shared, at, 16, false))?;
        let words = unpack(v, bytes);
        let words = words.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        for target in targets(v, row) {
            for (i, word) in words.clone().enumerate() {
                let at = (first_lane + target, first_column + 4 * unit + i);
                cells.note(at.0, at.1);
                if tensor.store(at.0, at.1, word).is_none() {
                    return Err(outside(ctx, lane, at, true));
                }
            }
        }
    }
    report_units(ctx, 1 << lane, &ctx.windows.shared[rank].block, &read.ranges());
    cells.report(ctx, 1 << lane, rank, AccessKind::Store);
    Ok(())
}

/// `tcgen05.shift`: each of 31 lanes receives 32 bytes of the next lane; the last keeps its own.
pub fn shift(ctx: &mut Ctx<'_>, op: &Op) -> Result<(), Flow> {
    const WORDS: usize = 8;
    let f = table(ctx, op);
    let func = ctx.func;
    ctx.cta.note_effect();
    for lane in lanes(ctx.active) {
        let Some(address) = place(ctx, f, name::TADDR, lane) else { return Err(ctx.bug("a shift of nothing")) };
        let (first, column) = split(address);
        if first % LANES != 0 {
            let what = format!("a shift from lane {first} of tensor memory, which must be a multiple of {LANES}");
            return Err(wrong(ctx, lane, what));
        }
        let ranks = group(ctx, func.variant(op));
        check_group(ctx, lane, &ranks)?;
        for rank in ranks {
            let Some(mut tensor) = memory(ctx, rank) else { return Err(ctx.bug("a CTA without tensor memory")) };
            let mut cells = Cells::new(ctx);
            for (row, word) in (first..first + LANES - 1).flat_map(|row| (0..WORDS).map(move |word| (row, word))) {
                let at = (row, column + word);
                cells.note(at.0, at.1);
                let moved = tensor.load(row + 1, at.1).and_then(|value| tensor.store(row, at.1, value));
                if moved.is_none() {
                    return Err(outside(ctx, lane, at, true));
                }
            }
            cells.report(ctx, 1 << lane, rank, AccessKind::Store);
        }
    }
    Ok(())
}

/// The memories of a CTA group.
struct Group<'g, 'c> {
    ctx: &'g Ctx<'c>,
    ranks: &'g [usize],
    tensors: Vec<MutexGuard<'c, TensorMemory>>,
    /// What is read of shared memory, by CTA of the group.
    read: [Units; 2],
    /// What is read and written of tensor memory, by CTA of the group.
    cells: [[Cells; 2]; 2],
}

/// The matrix address at which a product failed.
enum Missing {
    Shared(u64),
    Tensor((usize, usize), bool),
}

impl Memories for Group<'_, '_> {
    type Error = Missing;

    fn shared(&mut self, cta: usize, address: u64) -> Result<[u8; 16], Missing> {
        self.read[cta].note(address);
        read_unit(&self.ctx.windows.shared[self.ranks[cta]], address).map_err(Missing::Shared)
    }

    fn load(&mut self, cta: usize, lane: usize, column: usize) -> Result<u32, Missing> {
        self.cells[cta][0].note(lane, column);
        self.tensors[cta].load(lane, column).ok_or(Missing::Tensor((lane, column), false))
    }

    fn store(&mut self, cta: usize, lane: usize, column: usize, value: u32) -> Result<(), Missing> {
        self.cells[cta][1].note(lane, column);
        self.tensors[cta].store(lane, column, value).ok_or(Missing::Tensor((lane, column), true))
    }
}

/// `tcgen05.mma`
pub fn product(ctx: &mut Ctx<'_>, op: &Op) -> Result<(), Flow> {
    let f = table(ctx, op);
    let func = ctx.func;
    let v = func.variant(op);
    lanes(ctx.active).try_for_each(|lane| one_product(ctx, f, v, lane))
}

fn one_product(ctx: &mut Ctx<'_>, f: &Tcgen05Op, v: &Variant, lane: usize) -> Result<(), Flow> {
    ctx.cta.note_effect();
    let idesc = value(ctx, f, name::IDESC, lane).unwrap_or(0);
    let job = tcgen05::job(v, idesc).map_err(|refused| match refused {
        Refused::Unsupported(what) => ctx.unsupported(what),
        Refused::Invalid(what) => wrong(ctx, lane, what),
    })?;
    if long(ctx, f, name::ZERO_COLUMN_MASK_DESC, lane).is_some_and(|d| d >> 39 & 1 == 1 || d >> 56 & 63 != 0) {
        let what = format!("`{v}` with a mask of zero columns");
        return Err(ctx.unsupported(what));
    }
    let masks: Vec<u32> =
        f.values.iter().filter(|(n, _)| *n == name::DISABLE_OUTPUT_LANE).map(|(_, s)| ctx.words(*s)[lane]).collect();
    let mut disabled = [0u128; 2];
    for (i, word) in masks.iter().enumerate().take(8) {
        disabled[i / 4] |= u128::from(*word) << (32 * (i % 4));
    }
    let enabled =
        f.values.iter().find(|(n, _)| *n == name::ENABLE_INPUT_D).is_some_and(|(_, s)| ctx.pred(*s) >> lane & 1 == 1);
    let tensor = |name| place(ctx, f, name, lane).unwrap_or(0);
    let a = long(ctx, f, name::A_DESC, lane).ok_or_else(|| tensor(name::A_TMEM));
    let b = long(ctx, f, name::B_DESC, lane).unwrap_or(0);
    for bits in [a.unwrap_or(b), b] {
        if Descriptor::tcgen05(bits).is_none() {
            return Err(wrong(ctx, lane, format!("the matrix descriptor {bits:#018x} has no swizzling mode")));
        }
    }
    let operands = Operands {
        d: tensor(name::D_TMEM),
        a,
        b,
        metadata: tensor(name::SP_META_TMEM),
        scales: [tensor(name::SCALE_A_TMEM), tensor(name::SCALE_B_TMEM)],
        input: enabled.then(|| value(ctx, f, name::SCALE_INPUT_D, lane).unwrap_or(0)),
        disabled,
    };
    let ranks = group(ctx, v);
    check_group(ctx, lane, &ranks)?;
    let tensors = ranks.iter().filter_map(|r| memory(ctx, *r)).collect();
    let (read, cells) = ([(); 2].map(|()| Units::new(ctx)), [(); 2].map(|()| [Cells::new(ctx), Cells::new(ctx)]));
    let mut memories = Group { ctx, ranks: &ranks, tensors, read, cells };
    let done = job.run(&operands, &mut memories);
    for ((rank, read), [loaded, stored]) in ranks.iter().zip(memories.read).zip(memories.cells) {
        report_units(ctx, 1 << lane, &ctx.windows.shared[*rank].block, &read.ranges());
        loaded.report(ctx, 1 << lane, *rank, AccessKind::Load);
        stored.report(ctx, 1 << lane, *rank, AccessKind::Store);
    }
    done.map_err(|missing| match missing {
        Missing::Shared(at) => out_of_bounds(ctx, lane, MemSpace::Shared, at, 16, false),
        Missing::Tensor(at, write) => outside(ctx, lane, at, write),
    })
}

/// The barrier object of a commit. The machine instruction takes an offset into the cluster's windows: ptxas gives it the low 32 bits of a
/// generic address, so an offset that was widened to one, as in code of Triton 3.5, denotes the same object on every GPU.
fn barrier_object(ctx: &mut Ctx<'_>, address: &Address, lane: usize) -> Result<(Region, u64), Flow> {
    let (region, host) = shared(ctx, address, lane)?;
    let is_offset = address.space == MemSpace::Generic && host >> 32 == 0 && rank_of(ctx, host).is_none();
    if is_offset {
        return shared(ctx, &Address { space: MemSpace::SharedCluster, ..*address }, lane);
    }
    Ok((region, host))
}

/// `tcgen05.commit`
pub fn commit(ctx: &mut Ctx<'_>, op: &Op) -> Result<(), Flow> {
    let f = table(ctx, op);
    let Some((_, address)) = f.addresses.first() else { return Err(ctx.bug("a commit without a barrier object")) };
    let object = transactions(*address);
    for lane in lanes(ctx.active) {
        let (region, host) = barrier_object(ctx, address, lane)?;
        match value(ctx, f, name::CTA_MASK, lane) {
            None => mbarrier::arrive(ctx, lane, (region, host), &object)?,
            Some(mask) => lanes(mask).try_for_each(|rank| {
                let [host] = peers(ctx, lane, rank, [host])?;
                mbarrier::arrive(ctx, lane, (Region::Generic, host), &object)
            })?,
        }
    }
    Ok(())
}
