//! Tensor copies and reductions, done at issue, and tensor map updates (manual, sections 9.7.9.27.1 and 9.7.9.28).

use super::super::{
    code::{Address, Base, Flow, MapOp, Op, TensorKind, TensorMode, TensorOp},
    ctx::Ctx,
    state::lanes,
};
use super::address::{Region, addresses, bad_access, find_allocation};
use super::copy::{End, peers, read, transactions, write};
use super::{copy, mbarrier};
use crate::{
    FaultKind, LANES, mem,
    sem::atomic::Rmw,
    tensor_map::{self, Access, Halo, Plan, Refusal, Span, TensorMap},
};
use margay_ir::MemSpace;

/// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`
pub fn copy(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let func = ctx.func;
    let t = &func.tensors[op.x as usize];
    match lanes(ctx.active).try_for_each(|lane| one(ctx, op, t, lane)) {
        Ok(()) => Flow::Next,
        Err(flow) => flow,
    }
}

/// The host address of one lane's operand.
fn place(ctx: &mut Ctx<'_>, a: &Address, align: u32, lane: usize) -> Result<(Region, u64), Flow> {
    let mut at = [0; LANES];
    let active = std::mem::replace(&mut ctx.active, 1 << lane);
    let region = addresses(ctx, a, (align, false), &mut at);
    ctx.active = active;
    Ok((region?, at[lane]))
}

fn wrong(ctx: &mut Ctx<'_>, lane: usize, what: String) -> Flow {
    ctx.fault(lane, FaultKind::Descriptor(what), Vec::new())
}

/// Reads the tensor map and resolves the access of a lane.
fn plan(ctx: &mut Ctx<'_>, op: &Op, t: &TensorOp, lane: usize) -> Result<(TensorMap, Plan), Flow> {
    let (region, host) = place(ctx, &t.map, 64, lane)?;
    let mut bytes = [0; tensor_map::SIZE];
    if !host.is_multiple_of(64) {
        return Err(bad_access(ctx, lane, &t.map, region, host, (tensor_map::SIZE as u32, 64), false));
    }
    read(ctx, lane, End { address: &t.map, region, host }, &mut bytes)?;
    let map = TensorMap::decode(&bytes).map_err(|what| wrong(ctx, lane, what))?;
    if map.interleave != 0 {
        let what = format!("`{}` with an interleaved tensor map", ctx.func.variant(op));
        return Err(ctx.unsupported(what));
    }
    let mut at = [0i32; 5];
    for (to, s) in at.iter_mut().zip(&t.coordinates) {
        *to = ctx.words(*s)[lane] as i32;
    }
    let mut offsets = [0u16; 3];
    for (to, s) in offsets.iter_mut().zip(&t.offsets) {
        *to = ctx.words(*s)[lane] as u16;
    }
    let (rank, access) = match t.mode {
        TensorMode::Tile => (t.coordinates.len(), Access::Tile(at)),
        TensorMode::Rows => (2, Access::Rows(at[0], [at[1], at[2], at[3], at[4]])),
        TensorMode::Pixels => (t.coordinates.len(), Access::Pixels(at, offsets)),
        TensorMode::Wide { grouped } => {
            let halo = Halo { pixels: offsets[0], offset: offsets[1] as i16, grouped };
            (t.coordinates.len(), Access::Wide(at, halo))
        }
    };
    let plan = map.plan(rank, access).map_err(|refusal| match refusal {
        Refusal::Unsupported(what) => ctx.unsupported(what),
        Refusal::Invalid(what) => wrong(ctx, lane, what),
    })?;
    Ok((map, plan))
}

fn one(ctx: &mut Ctx<'_>, op: &Op, t: &TensorOp, lane: usize) -> Result<(), Flow> {
    ctx.cta.note_effect();
    let (map, plan) = plan(ctx, op, t, lane)?;
    let (region, host) = place(ctx, &t.shared, 128, lane)?;
    if !host.is_multiple_of(128) {
        let access = (plan.bytes as u32, 128);
        return Err(bad_access(ctx, lane, &t.shared, region, host, access, t.kind == TensorKind::Load));
    }
    let end = End { address: &t.shared, region, host };
    let global = Address { space: MemSpace::Global, base: Base::Fixed, offset: 0 };
    let (_, unit, padded) = map.element.unit().unwrap_or((1, 1, 1));
    match t.kind {
        TensorKind::Load => {
            let mut image = map.fill(plan.bytes);
            for Span { shared, global: from, units } in &plan.spans {
                let mut row = vec![0; units * unit];
                read(ctx, lane, End { address: &global, region: Region::Global, host: *from }, &mut row)?;
                map.element.load(&mut row);
                for (i, packed) in row.chunks_exact(unit).enumerate() {
                    let at = shared + i * padded;
                    image[at..at + padded].fill(0);
                    image[at..at + unit].copy_from_slice(packed);
                }
            }
            deliver(ctx, t, lane, &map, end, &image, plan.counted as u64)
        }
        TensorKind::Store | TensorKind::Reduce(_) => {
            let mut image = vec![0; plan.bytes];
            for (i, to) in image.chunks_mut(16).enumerate() {
                let (at, flip) = exchange(ctx, &map, host, 16 * i as u64);
                read(ctx, lane, End { host: at, ..end }, to)?;
                if flip {
                    to.rotate_left(8);
                }
            }
            for Span { shared, global: to, units } in &plan.spans {
                let row: Vec<u8> = image[*shared..shared + units * padded]
                    .chunks_exact(padded)
                    .flat_map(|u| if padded == unit { u.to_vec() } else { pack(u) })
                    .collect();
                let target = End { address: &global, region: Region::Global, host: *to };
                match t.kind {
                    TensorKind::Reduce(_) => reduce(ctx, lane, t, &map, target, &row)?,
                    _ => write(ctx, lane, target, &row)?,
                }
            }
            Ok(())
        }
    }
}

/// `.b6p2x16`: packs the low six bits of each of 16 bytes.
fn pack(unit: &[u8]) -> Vec<u8> {
    let all = unit.iter().rev().fold(0u128, |sum, b| sum << 6 | u128::from(b & 0x3f));
    all.to_le_bytes()[..12].to_vec()
}

/// The host address of 16 bytes of the box in shared memory: swizzling depends on the offset in the CTA's window.
fn exchange(ctx: &Ctx<'_>, map: &TensorMap, host: u64, offset: u64) -> (u64, bool) {
    let bases = ctx.windows.shared.iter().map(|w| &w.block).chain([&ctx.cta.shared.block]);
    let base = bases.into_iter().find(|b| b.contains(host, 1)).map_or(0, |b| b.base());
    let (at, flip) = map.exchange(host.wrapping_sub(base).wrapping_add(offset));
    (at.wrapping_add(base), flip)
}

/// Writes a box to shared memory, of all CTAs of a mask if there is one, and signals the barrier objects.
fn deliver(
    ctx: &mut Ctx<'_>,
    t: &TensorOp,
    lane: usize,
    map: &TensorMap,
    end: End<'_>,
    image: &[u8],
    counted: u64,
) -> Result<(), Flow> {
    let Some(flag) = &t.mbarrier else { return Err(ctx.bug("a tensor is loaded without a barrier object")) };
    let (region, signal) = place(ctx, flag, 8, lane)?;
    let done = transactions(*flag);
    let Some(mask) = t.mask else {
        put(ctx, lane, map, end, image)?;
        return mbarrier::complete(ctx, lane, (region, signal), &done, counted);
    };
    let ctas = ctx.words(mask)[lane];
    // With `.cta_group::2`, the signal goes to the CTA of each pair whose rank has the parity of the barrier object's.
    let odd = super::address::rank_of(ctx, signal).map_or(ctx.cta.rank, |(rank, _)| rank) & 1;
    for rank in lanes(ctas) {
        let [data] = peers(ctx, lane, rank, [end.host])?;
        put(ctx, lane, map, End { region: Region::Generic, host: data, ..end }, image)?;
        let target = if t.pair { rank & !1 | odd as usize } else { rank };
        let [flag] = peers(ctx, lane, target, [signal])?;
        mbarrier::complete(ctx, lane, (Region::Generic, flag), &done, counted)?;
    }
    Ok(())
}

fn put(ctx: &mut Ctx<'_>, lane: usize, map: &TensorMap, end: End<'_>, image: &[u8]) -> Result<(), Flow> {
    for (i, from) in image.chunks(16).enumerate() {
        let (at, flip) = exchange(ctx, map, end.host, 16 * i as u64);
        let mut unit = from.to_vec();
        if flip {
            unit.rotate_left(8);
        }
        write(ctx, lane, End { host: at, ..end }, &unit)?;
    }
    Ok(())
}

fn reduce(ctx: &mut Ctx<'_>, lane: usize, t: &TensorOp, map: &TensorMap, end: End<'_>, row: &[u8]) -> Result<(), Flow> {
    let TensorKind::Reduce(op) = t.kind else { return Ok(()) };
    let ty = map.element.ty();
    let size = ty.bytes() as usize;
    if size < 2 || map.element.unit() != Some((1, size, size)) {
        return Err(wrong(ctx, lane, format!("a reduction of elements of type number {}", map.element.0)));
    }
    copy::reduce(ctx, lane, end, Rmw { op, ty }, row)
}

/// `tensormap.replace`
pub fn replace(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let func = ctx.func;
    let m: &MapOp = &func.maps[op.x as usize];
    if m.at as usize + m.size > tensor_map::SIZE {
        let what = "`tensormap.replace` of a stride that does not exist; strides are 0 to 3".to_owned();
        return ctx.fault(ctx.first(), FaultKind::Descriptor(what), Vec::new());
    }
    ctx.cta.note_effect();
    let values = ctx.doubles(m.value);
    let mut at = [0; LANES];
    let region = match addresses(ctx, &m.address, (64, true), &mut at) {
        Ok(region) => region,
        Err(flow) => return flow,
    };
    for lane in lanes(ctx.active) {
        let host = at[lane].wrapping_add(m.at);
        let found = find_allocation!(ctx, region, at[lane], lane)
            .filter(|a| a.kind.writable() && a.block.contains(at[lane], tensor_map::SIZE));
        let done = found.and_then(|a| mem::store_bytes(&a.block, host, &values[lane].to_le_bytes()[..m.size]));
        if done.is_none() || !at[lane].is_multiple_of(64) {
            return bad_access(ctx, lane, &m.address, region, at[lane], (tensor_map::SIZE as u32, 64), true);
        }
    }
    Flow::Next
}
