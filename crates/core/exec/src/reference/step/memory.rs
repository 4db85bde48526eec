//! Loads and stores (manual, sections 9.7.9.8 to 9.7.9.13).
//!
//! Weak, relaxed and volatile accesses are relaxed atomics of the host; acquire and release add fences.

use super::super::{
    code::{Dst, Flow, Handler, MemOp, NOWHERE, Op, Order, Shape, Src},
    ctx::Ctx,
    state::lanes,
};
use super::address::{Region, addresses, bad_access, find_allocation, first_bad, observe};
use super::{quad, row, watch};
use crate::{
    AccessKind, LANES,
    lanes::{u32s, u32s_mut, u64s, u64s_mut, u128s},
    mem::{self, Block, Kind, Scalar},
};
use std::sync::atomic::{Ordering, fence};

/// Maximum number of elements of an access.
pub const LIMIT: usize = 8;

/// An unsigned integer of an element's size in memory.
pub trait Element: Scalar + Default {
    /// Zero-extended.
    fn zero(self) -> u64;
    /// Sign-extended.
    fn sign(self) -> u64;
    /// Truncation.
    fn cut(value: u64) -> Self;
}

macro_rules! elements {
    ($($t:ty, $s:ty;)*) => { $(impl Element for $t {
        #[inline(always)] fn zero(self) -> u64 { self as u64 }
        #[inline(always)] fn sign(self) -> u64 { self as $s as i64 as u64 }
        #[inline(always)] fn cut(value: u64) -> $t { value as $t }
    })* };
}

elements! { u8, i8; u16, i16; u32, i32; u64, i64; }

/// The relation between the addresses of all 32 lanes.
#[derive(PartialEq, Eq)]
enum Pattern {
    /// Consecutive: coalesced.
    Run,
    /// All the same.
    Same,
    /// Anything else, or inactive lanes.
    Any,
}

#[inline(always)]
fn pattern(a: &[u64; LANES], active: u32, size: u64) -> Pattern {
    if active != u32::MAX {
        return Pattern::Any;
    }
    let (mut run, mut same) = (0, 0);
    for i in 0..LANES {
        run |= a[i] ^ a[0].wrapping_add(i as u64 * size);
        same |= a[i] ^ a[0];
    }
    match (run, same) {
        (0, _) => Pattern::Run,
        (_, 0) => Pattern::Same,
        _ => Pattern::Any,
    }
}

/// Whether some active lane's address is not a multiple of the access size; vectors are aligned as a whole.
#[inline(always)]
fn misaligned(a: &[u64; LANES], active: u32, align: u64) -> bool {
    let mut low = 0;
    for i in 0..LANES {
        low |= if active >> i & 1 == 1 { a[i] } else { 0 };
    }
    low & (align - 1) != 0
}

/// Loads one lane's elements, aligned as a whole; `None` if they are not inside the block.
///
/// The manual leaves the order of a vector's elements open (section 8.2.4), but every GPU moves up to 16 bytes of a
/// thread at once, and device-wide algorithms rely on that to publish a value together with its state. So up to 16
/// bytes are one access of the host; longer vectors are one per 16 bytes.
#[inline(always)]
fn read<T: Element, const N: usize>(block: &Block, at: u64) -> Option<[T; N]> {
    let size = size_of::<T>();
    let mut values = [T::default(); N];
    let mut cut = |first: usize, bits: u128| {
        for (k, v) in values.iter_mut().skip(first).take(16 / size).enumerate() {
            *v = T::cut((bits >> (8 * size * k)) as u64);
        }
    };
    match N * size {
        _ if N == 1 => values[0] = T::get(block.cell(at)?),
        2 => cut(0, u16::get(block.cell(at)?).into()),
        4 => cut(0, u32::get(block.cell(at)?).into()),
        8 => cut(0, u64::get(block.cell(at)?).into()),
        whole => {
            let cells = block.cells(at, whole / 16)?;
            cells.iter().enumerate().for_each(|(i, c)| cut(i * 16 / size, u128::get(c)));
        }
    }
    Some(values)
}

/// Stores one lane's elements; see [`read`].
#[inline(always)]
fn write<T: Element, const N: usize>(block: &Block, at: u64, values: [T; N]) -> Option<()> {
    let size = size_of::<T>();
    let joined = |first: usize| {
        let part = values.iter().skip(first).take(16 / size).enumerate();
        part.fold(0, |bits, (k, v)| bits | u128::from(v.zero()) << (8 * size * k))
    };
    match N * size {
        _ if N == 1 => T::set(block.cell(at)?, values[0]),
        2 => u16::set(block.cell(at)?, joined(0) as u16),
        4 => u32::set(block.cell(at)?, joined(0) as u32),
        8 => u64::set(block.cell(at)?, joined(0) as u64),
        whole => {
            let cells = block.cells(at, whole / 16)?;
            cells.iter().enumerate().for_each(|(i, c)| u128::set(c, joined(i * 16 / size)));
        }
    }
    Some(())
}

/// A load of `N` elements per lane, aligned as a whole.
#[inline(always)]
fn load<T: Element, const N: usize>(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m: &MemOp = &ctx.func.mems[op.x as usize];
    if N == 1 && row::load::<T>(ctx, m).is_some() {
        return Flow::Next;
    }
    let size = (N * size_of::<T>()) as u32;
    let mut at = [0; LANES];
    let region = match addresses(ctx, &m.address, (size, false), &mut at) {
        Ok(region) => region,
        Err(flow) => return flow,
    };
    // A misaligned single element has no cell, so only vectors need this check.
    if (N > 1 || m.straddles) && misaligned(&at, ctx.active, u64::from(size)) {
        if m.straddles {
            return load_straddling::<T>(ctx, m, region, &at);
        }
        return first_bad(ctx, &m.address, region, &at, (size, size), false);
    }
    observe(ctx, &m.address, &at, size, AccessKind::Load);
    let first = ctx.first();
    let Some(found) = find_allocation!(ctx, region, at[first], first) else {
        return bad_access(ctx, first, &m.address, region, at[first], (size, size), false);
    };
    let mut values = [[T::default(); LANES]; N];
    let mut missing = 0u32;
    // At generic addresses in local windows, each lane may access only its own window.
    let own = found.kind == Kind::Local && region == Region::Generic;
    let whole = N == 1 && found.kind != Kind::Local;
    let lie = if whole { pattern(&at, ctx.active, size.into()) } else { Pattern::Any };
    match lie {
        Pattern::Run if let Some(cells) = found.block.cells::<T::Cell>(at[0], LANES) => {
            for i in 0..LANES {
                values[0][i] = T::get(&cells[i]);
            }
        }
        Pattern::Same if let Some(cell) = found.block.cell::<T::Cell>(at[0]) => values[0] = [T::get(cell); LANES],
        _ => {
            for i in lanes(ctx.active) {
                match read::<T, N>(&found.block, at[i]).filter(|_| !own) {
                    Some(read) => (0..N).for_each(|k| values[k][i] = read[k]),
                    None => missing |= 1 << i,
                }
            }
        }
    }
    // Lanes whose address lies in another allocation than the first lane's, or is generic and local.
    for i in lanes(missing) {
        match find_allocation!(ctx, region, at[i], i).and_then(|a| read::<T, N>(&a.block, at[i])) {
            Some(read) => (0..N).for_each(|k| values[k][i] = read[k]),
            None => return bad_access(ctx, i, &m.address, region, at[i], (size, size), false),
        }
    }
    if m.order == Order::Acquire {
        fence(Ordering::Acquire);
    }
    let signed = m.ty.is_signed();
    for (d, values) in m.dst.iter().zip(&values) {
        put(ctx, *d, values, signed);
    }
    Flow::Next
}

#[inline(always)]
fn put<T: Element>(ctx: &mut Ctx<'_>, d: Dst, values: &[T; LANES], signed: bool) {
    if d.row == NOWHERE {
        return;
    }
    let everywhere = ctx.active == ctx.full;
    let to = &mut ctx.regs[d.row as usize..d.row as usize + d.shape.rows()];
    match d.shape {
        Shape::Word => {
            let mut wide = [0; LANES];
            if signed {
                let cut = if d.bits < 32 { (1u32 << d.bits) - 1 } else { u32::MAX };
                for i in 0..LANES {
                    wide[i] = values[i].sign() as u32 & cut;
                }
            } else {
                for i in 0..LANES {
                    wide[i] = values[i].zero() as u32;
                }
            }
            if everywhere {
                *u32s_mut(to) = wide;
            } else {
                ctx.warp.select.merge_words(u32s_mut(to), &wide, ctx.active);
            }
        }
        Shape::Double => {
            let mut wide = [0; LANES];
            for i in 0..LANES {
                wide[i] = if signed { values[i].sign() } else { values[i].zero() };
            }
            if everywhere {
                *u64s_mut(to) = wide;
            } else {
                ctx.warp.select.merge_doubles(u64s_mut(to), &wide, ctx.active);
            }
        }
        Shape::Quad | Shape::Pred => {
            let wide = std::array::from_fn(|i| if signed { values[i].sign() } else { values[i].zero() });
            ctx.write(d, &wide, ctx.active);
        }
    }
}

#[inline(always)]
fn values_of<T: Element>(ctx: &Ctx<'_>, s: Src, values: &mut [T; LANES]) {
    let rows = ctx.src(s);
    match s.shape() {
        Shape::Word | Shape::Pred => {
            let from = u32s(rows);
            for i in 0..LANES {
                values[i] = T::cut(from[i].into());
            }
        }
        Shape::Double => {
            let from = u64s(rows);
            for i in 0..LANES {
                values[i] = T::cut(from[i]);
            }
        }
        Shape::Quad => {
            let from = u128s(rows);
            for i in 0..LANES {
                values[i] = T::cut(from[i] as u64);
            }
        }
    }
}

/// A store of `N` elements per lane. If lanes store to the same address, the highest lane wins.
#[inline(always)]
fn store<T: Element, const N: usize>(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m: &MemOp = &ctx.func.mems[op.x as usize];
    if N == 1 && row::store::<T>(ctx, m).is_some() {
        return Flow::Next;
    }
    let size = (N * size_of::<T>()) as u32;
    let mut at = [0; LANES];
    let region = match addresses(ctx, &m.address, (size, true), &mut at) {
        Ok(region) => region,
        Err(flow) => return flow,
    };
    if (N > 1 || m.straddles) && misaligned(&at, ctx.active, u64::from(size)) {
        if m.straddles {
            return store_straddling::<T>(ctx, m, region, &at);
        }
        return first_bad(ctx, &m.address, region, &at, (size, size), true);
    }
    observe(ctx, &m.address, &at, size, AccessKind::Store);
    let mut values = [[T::default(); LANES]; N];
    for (v, s) in values.iter_mut().zip(&m.src) {
        values_of(ctx, *s, v);
    }
    if m.order == Order::Release {
        fence(Ordering::Release);
    }
    let first = ctx.first();
    let found = find_allocation!(ctx, region, at[first], first).filter(|a| a.kind.writable());
    let Some(found) = found else {
        return bad_access(ctx, first, &m.address, region, at[first], (size, size), true);
    };
    if N == 1
        && found.kind != Kind::Local
        && pattern(&at, ctx.active, size.into()) == Pattern::Run
        && let Some(cells) = found.block.cells::<T::Cell>(at[0], LANES)
    {
        for i in 0..LANES {
            T::set(&cells[i], values[0][i]);
        }
        return Flow::Next;
    }
    let mut missing = 0u32;
    let own = found.kind == Kind::Local && region == Region::Generic;
    for i in lanes(ctx.active) {
        if own || write::<T, N>(&found.block, at[i], values.map(|v| v[i])).is_none() {
            missing |= 1 << i;
        }
    }
    for i in lanes(missing) {
        let found = find_allocation!(ctx, region, at[i], i).filter(|a| a.kind.writable());
        if found.and_then(|a| write::<T, N>(&a.block, at[i], values.map(|v| v[i]))).is_none() {
            return bad_access(ctx, i, &m.address, region, at[i], (size, size), true);
        }
    }
    Flow::Next
}

/// A load at an unaligned address, byte by byte.
#[cold]
fn load_straddling<T: Element>(ctx: &mut Ctx<'_>, m: &MemOp, region: Region, at: &[u64; LANES]) -> Flow {
    for (k, d) in m.dst.iter().enumerate() {
        let mut values = [T::default(); LANES];
        for i in lanes(ctx.active) {
            let (address, mut bytes) = (at[i] + u64::from(m.size) * k as u64, [0; 8]);
            let part = &mut bytes[..size_of::<T>()];
            let found = find_allocation!(ctx, region, address, i);
            if found.and_then(|a| mem::load_bytes(&a.block, address, part)).is_none() {
                return bad_access(ctx, i, &m.address, region, address, (m.size, 1), false);
            }
            values[i] = T::cut(u64::from_le_bytes(bytes));
        }
        put(ctx, *d, &values, m.ty.is_signed());
    }
    Flow::Next
}

/// A store at an unaligned address, byte by byte.
#[cold]
fn store_straddling<T: Element>(ctx: &mut Ctx<'_>, m: &MemOp, region: Region, at: &[u64; LANES]) -> Flow {
    for (k, s) in m.src.iter().enumerate() {
        let mut values = [T::default(); LANES];
        values_of(ctx, *s, &mut values);
        for i in lanes(ctx.active) {
            let (address, bytes) = (at[i] + u64::from(m.size) * k as u64, values[i].zero().to_le_bytes());
            let found = find_allocation!(ctx, region, address, i).filter(|a| a.kind.writable());
            if found.and_then(|a| mem::store_bytes(&a.block, address, &bytes[..size_of::<T>()])).is_none() {
                return bad_access(ctx, i, &m.address, region, address, (m.size, 1), true);
            }
        }
    }
    Flow::Next
}

/// The handler of a load of `count` elements of `size` bytes.
pub fn loader(size: u32, count: u32) -> Handler {
    match (size, count) {
        (1, 1) => |ctx, op| load::<u8, 1>(ctx, op),
        (1, 2) => |ctx, op| load::<u8, 2>(ctx, op),
        (1, 4) => |ctx, op| load::<u8, 4>(ctx, op),
        (1, 8) => |ctx, op| load::<u8, 8>(ctx, op),
        (2, 1) => |ctx, op| load::<u16, 1>(ctx, op),
        (2, 2) => |ctx, op| load::<u16, 2>(ctx, op),
        (2, 4) => |ctx, op| load::<u16, 4>(ctx, op),
        (2, 8) => |ctx, op| load::<u16, 8>(ctx, op),
        (4, 1) => |ctx, op| load::<u32, 1>(ctx, op),
        (4, 2) => |ctx, op| load::<u32, 2>(ctx, op),
        (4, 4) => |ctx, op| load::<u32, 4>(ctx, op),
        (4, 8) => |ctx, op| load::<u32, 8>(ctx, op),
        (8, 1) => |ctx, op| load::<u64, 1>(ctx, op),
        (8, 2) => |ctx, op| load::<u64, 2>(ctx, op),
        (8, 4) => |ctx, op| load::<u64, 4>(ctx, op),
        (8, 8) => |ctx, op| load::<u64, 8>(ctx, op),
        _ => quad::load,
    }
}

/// A load that programs poll with (`.volatile`, `.relaxed`, `.acquire`); many of them in a row yield to other groups
/// and warps.
pub fn poll(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    ctx.warp.spins += 1;
    let m = &ctx.func.mems[op.x as usize];
    loader(m.size, m.count)(ctx, op)
}

/// The handler of a store of `count` elements of `size` bytes.
pub fn storer(size: u32, count: u32) -> Handler {
    match (size, count) {
        (1, 1) => |ctx, op| store::<u8, 1>(ctx, op),
        (1, 2) => |ctx, op| store::<u8, 2>(ctx, op),
        (1, 4) => |ctx, op| store::<u8, 4>(ctx, op),
        (1, 8) => |ctx, op| store::<u8, 8>(ctx, op),
        (2, 1) => |ctx, op| store::<u16, 1>(ctx, op),
        (2, 2) => |ctx, op| store::<u16, 2>(ctx, op),
        (2, 4) => |ctx, op| store::<u16, 4>(ctx, op),
        (2, 8) => |ctx, op| store::<u16, 8>(ctx, op),
        (4, 1) => |ctx, op| store::<u32, 1>(ctx, op),
        (4, 2) => |ctx, op| store::<u32, 2>(ctx, op),
        (4, 4) => |ctx, op| store::<u32, 4>(ctx, op),
        (4, 8) => |ctx, op| store::<u32, 8>(ctx, op),
        (8, 1) => |ctx, op| store::<u64, 1>(ctx, op),
        (8, 2) => |ctx, op| store::<u64, 2>(ctx, op),
        (8, 4) => |ctx, op| store::<u64, 4>(ctx, op),
        (8, 8) => |ctx, op| store::<u64, 8>(ctx, op),
        _ => quad::store,
    }
}

/// A load of a kernel parameter at a constant offset: uniform, without an address computation.
pub fn load_param(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m: &MemOp = &ctx.func.mems[op.x as usize];
    let address = ctx.windows.params.wrapping_add_signed(m.address.offset);
    let block = &ctx.grid.params().block;
    let mut value = [0; LIMIT];
    for (k, v) in value.iter_mut().enumerate().take(m.count as usize) {
        let at = address + k as u64 * u64::from(m.size);
        let read = match (m.size, m.ty.is_signed()) {
            (1, true) => mem::load::<u8>(block, at).map(u8::sign),
            (1, false) => mem::load::<u8>(block, at).map(u8::zero),
            (2, true) => mem::load::<u16>(block, at).map(u16::sign),
            (2, false) => mem::load::<u16>(block, at).map(u16::zero),
            (4, true) => mem::load::<u32>(block, at).map(u32::sign),
            (4, false) => mem::load::<u32>(block, at).map(u32::zero),
            _ => mem::load::<u64>(block, at),
        };
        match read {
            Some(read) => *v = read,
            None => {
                let whole = m.size * m.count;
                return bad_access(ctx, ctx.first(), &m.address, Region::Params, address, (whole, whole), false);
            }
        }
    }
    for (d, value) in m.dst.iter().zip(value) {
        ctx.write(*d, &[value; LANES], ctx.active);
    }
    Flow::Next
}

/// `fence`, `membar`: a sequentially consistent fence of the host.
pub fn barrier(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    watch::fence(ctx, op);
    fence(Ordering::SeqCst);
    Flow::Next
}

/// `griddepcontrol`: grids run one after another.
pub fn dependents(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    watch::dependents(ctx, op);
    Flow::Next
}

/// No-ops: `prefetch`, `applypriority`, `discard`, `pmevent`.
pub fn no_op(_: &mut Ctx<'_>, _: &Op) -> Flow {
    Flow::Next
}
