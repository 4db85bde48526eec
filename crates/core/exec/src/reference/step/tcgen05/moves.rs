//! Moves between registers and tensor memory: `tcgen05.ld`, `tcgen05.st` and what waits for them (manual, section 9.7.16.8).

use super::{
    super::{
        matrix::{converge, gather, scatter_rows},
        warp::reduce,
        watch::{Cells, notify},
    },
    outside, own, place, table, value, wrong,
};
use crate::{
    AccessKind, LANES, Row, SyncKind,
    lanes::u32s,
    matrix::tcgen05::split,
    reference::{
        code::{Flow, Op, Reduction, Tcgen05Op},
        ctx::Ctx,
    },
};
use margay_isa::{Mod, Variant, name};

/// Row and column of register `r` of a thread (section 9.7.16.2.3.1); columns of 32 bits, or of 16 when packed.
fn cell(v: &Variant, lane: usize, r: usize) -> (usize, usize) {
    match () {
        _ if v.has(Mod::S32x32b) => (lane, r),
        _ if v.has(Mod::S16x64b) => (8 * (lane % 2) + lane / 4, lane / 2 % 2 + 2 * r),
        _ if v.has(Mod::S16x128b) => (lane / 4 + 8 * (r % 2), lane % 4 + 4 * (r / 2)),
        _ if v.has(Mod::S16x256b) => (lane / 4 + 8 * (r / 2 % 2), 2 * (lane % 4) + r % 2 + 8 * (r / 4)),
        // `.16x32bx2`: the upper lanes use other columns.
        _ => (lane % 16, r),
    }
}

/// Maps registers of `tcgen05.ld` and `.st` to lanes and columns of tensor memory.
struct Tile<'v> {
    variant: &'v Variant,
    first: (usize, usize),
    split: usize,
    packed: bool,
}

impl<'v> Tile<'v> {
    fn new(ctx: &mut Ctx<'_>, variant: &'v Variant, f: &Tcgen05Op) -> Result<Tile<'v>, Flow> {
        let Some(address) = place(ctx, f, name::TADDR, 0) else {
            return Err(ctx.bug("not an address in tensor memory"));
        };
        let first = split(address);
        let rows = if variant.has(Mod::S32x32b) { 32 } else { 16 };
        let quarter = ctx.warp.index as usize % 4 * 32;
        if first.0 < quarter || first.0 + rows > quarter + 32 {
            let what = format!(
                "lanes {} to {} of tensor memory; this warp can access only {quarter} to {}",
                first.0,
                first.0 + rows - 1,
                quarter + 31
            );
            return Err(wrong(ctx, 0, what));
        }
        let split = value(ctx, f, name::IMM_HALF_SPLITOFF, 0).unwrap_or(0) as usize;
        Ok(Tile { variant, first, split, packed: variant.has(Mod::Pack16b) || variant.has(Mod::Unpack16b) })
    }

    fn note(&self, cells: &mut Cells, (row, column): (usize, usize)) {
        (0..if self.packed { 2 } else { 1 }).for_each(|i| cells.note(row, column + i));
    }

    fn at(&self, lane: usize, r: usize) -> (usize, usize) {
        let (row, column) = cell(self.variant, lane, r);
        let column = if self.packed { 2 * column } else { column };
        let shift = if self.variant.has(Mod::S16x32bx2) && lane >= 16 { self.split } else { 0 };
        (self.first.0 + row, self.first.1 + column + shift)
    }
}

/// `tcgen05.ld`
pub fn load(ctx: &mut Ctx<'_>, op: &Op) -> Result<(), Flow> {
    gather(ctx, op)?;
    let f = table(ctx, op);
    let func = ctx.func;
    let variant = func.variant(op);
    let loaded = variant.operands().next().and_then(|o| variant.count(o)).unwrap_or(1) as usize;
    let tile = Tile::new(ctx, variant, f)?;
    let tensor = own(ctx)?;
    let mut rows = vec![Row::ZERO; f.dst.len()];
    let mut cells = Cells::new(ctx);
    for (r, row) in rows.iter_mut().enumerate().take(loaded) {
        for lane in 0..LANES {
            let at = tile.at(lane, r);
            tile.note(&mut cells, at);
            let (low, high) =
                (tensor.load(at.0, at.1), if tile.packed { tensor.load(at.0, at.1 + 1) } else { Some(0) });
            let (Some(low), Some(high)) = (low, high) else { return Err(outside(ctx, lane, at, false)) };
            row.0[lane] = if tile.packed { low & 0xffff | high << 16 } else { low };
        }
    }
    cells.report(ctx, u32::MAX, ctx.cta.rank as usize, AccessKind::Load);
    if variant.has(Mod::Red) {
        let reduction = Reduction::of(variant);
        let values = |lane: usize| rows[..loaded].iter().map(move |r| r.0[lane]);
        let reduced = std::array::from_fn(|lane| reduce(reduction, variant.t(), values(lane)));
        if let Some(last) = rows.last_mut() {
            last.0 = reduced;
        }
    }
    scatter_rows(ctx, &f.dst, &rows);
    Ok(())
}

/// `tcgen05.st`
pub fn store(ctx: &mut Ctx<'_>, op: &Op) -> Result<(), Flow> {
    gather(ctx, op)?;
    let f = table(ctx, op);
    let func = ctx.func;
    let tile = Tile::new(ctx, func.variant(op), f)?;
    let mut tensor = own(ctx)?;
    ctx.cta.note_effect();
    let stored = f.values.iter().filter(|(n, _)| *n == name::R);
    let mut cells = Cells::new(ctx);
    for (r, (_, source)) in stored.enumerate() {
        let row = *u32s(ctx.src(*source));
        for (lane, word) in row.iter().enumerate() {
            let at = tile.at(lane, r);
            tile.note(&mut cells, at);
            let done = match tile.packed {
                true => tensor.store(at.0, at.1, word & 0xffff).and(tensor.store(at.0, at.1 + 1, word >> 16)),
                false => tensor.store(at.0, at.1, *word),
            };
            if done.is_none() {
                return Err(outside(ctx, lane, at, true));
            }
        }
    }
    cells.report(ctx, u32::MAX, ctx.cta.rank as usize, AccessKind::Store);
    Ok(())
}

/// `tcgen05.wait`
pub fn wait(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let flow = converge(ctx, op);
    if matches!(flow, Flow::Next) {
        notify(ctx, ctx.active, SyncKind::WaitTensor { stores: ctx.func.variant(op).has(Mod::WaitSt) });
    }
    flow
}
