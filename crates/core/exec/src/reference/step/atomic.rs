//! Atomic operations and reductions (manual, sections 9.7.13.5 to 9.7.13.7).
//!
//! The lanes of a group go one after the other. Each element is one atomic operation of the host, so that CTAs on several
//! host threads see each other's. All orderings are the strongest.

use super::super::{
    code::{AtomicOp, Flow, MemOp, Op, Shape},
    ctx::Ctx,
    state::lanes,
};
use super::address::{Region, addresses, bad_access, find_allocation, observe};
use super::memory::put_quad;
use crate::{
    AccessKind, LANES,
    mem::{AtomicU128, Block, Kind},
    sem::fp,
};
use margay_isa::{Kind as TypeKind, Type};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

/// Extreme of floating-point numbers: the other one if one is NaN; -0 is below +0.
fn extreme(a: f32, b: f32, max: bool) -> f32 {
    let below = |a: f32, b: f32| a < b || a == b && a.is_sign_negative() && b.is_sign_positive();
    match (a.is_nan(), b.is_nan()) {
        (true, true) => f32::from_bits(fp::NAN32),
        (true, false) => b,
        (false, true) => a,
        _ if below(a, b) == max => b,
        _ => a,
    }
}

fn half(op: AtomicOp, ty: Type, a: u16, b: u16) -> u16 {
    let bf16 = matches!(ty, Type::Bf16 | Type::Bf16x2);
    let from = if bf16 { fp::from_bf16 } else { fp::from_f16 };
    let to = if bf16 { fp::to_bf16 } else { fp::to_f16 };
    let (x, y) = (from(a), from(b));
    // The exact sum of two halves needs more than 24 bits only where the smaller one is below a quarter of the larger one's last
    // place; rounding to odd first (in double precision, where the sum of two bfloats of any size may still be inexact) is what
    // `to_f16` and `to_bf16` need to be right.
    let r = match op {
        AtomicOp::Min => extreme(x, y, false),
        AtomicOp::Max => extreme(x, y, true),
        _ => fp::narrow_odd(sum_odd(x, y)),
    };
    if r.is_nan() { fp::NAN16 } else { to(r) }
}

/// The sum in double precision, rounded to odd.
fn sum_odd(x: f32, y: f32) -> f64 {
    fp::fma_odd(f64::from(x), 1.0, f64::from(y))
}

/// The new value of a word of up to 32 bits.
fn word(op: AtomicOp, ty: Type, flush: bool, old: u32, b: u32, c: u32) -> u32 {
    match ty {
        Type::F32 if op == AtomicOp::Add => {
            let f = |v: u32| if flush { fp::flush(f32::from_bits(v)) } else { f32::from_bits(v) };
            let sum = f(old) + f(b);
            return fp::canon(if flush { fp::flush(sum) } else { sum }).to_bits();
        }
        Type::F16 | Type::Bf16 if op != AtomicOp::Exch => return half(op, ty, old as u16, b as u16).into(),
        Type::F16x2 | Type::Bf16x2 if op != AtomicOp::Exch => {
            let low = half(op, ty, old as u16, b as u16);
            let high = half(op, ty, (old >> 16) as u16, (b >> 16) as u16);
            return u32::from(high) << 16 | u32::from(low);
        }
        _ => {}
    }
    integer(op, ty, 32, old.into(), b.into(), c.into()) as u32
}

/// The new value of 64 bits.
fn double(op: AtomicOp, ty: Type, old: u64, b: u64, c: u64) -> u64 {
    if op == AtomicOp::Add && ty == Type::F64 {
        let (x, y) = (f64::from_bits(old), f64::from_bits(b));
        return fp::keep64(x + y, x, y).to_bits();
    }
    integer(op, ty, 64, old, b, c)
}

/// The new value of an integer of so many bits, zero-extended; bits above are the caller's to cut.
fn integer(op: AtomicOp, ty: Type, bits: u32, old: u64, b: u64, c: u64) -> u64 {
    let signed = ty.kind() == TypeKind::Signed;
    // The order of signed numbers is that of unsigned ones with the sign turned over.
    let key = |v: u64| if signed { v ^ 1 << (bits - 1) } else { v };
    match op {
        AtomicOp::And => old & b,
        AtomicOp::Or => old | b,
        AtomicOp::Xor => old ^ b,
        AtomicOp::Exch => b,
        AtomicOp::Cas if old == b => c,
        AtomicOp::Cas => old,
        AtomicOp::Add => old.wrapping_add(b),
        AtomicOp::Inc if old >= b => 0,
        AtomicOp::Inc => old + 1,
        AtomicOp::Dec if old == 0 || old > b => b,
        AtomicOp::Dec => old - 1,
        AtomicOp::Min => {
            if key(b) < key(old) {
                b
            } else {
                old
            }
        }
        AtomicOp::Max => {
            if key(b) > key(old) {
                b
            } else {
                old
            }
        }
    }
}

/// One element: its old value; `None` when there is no cell.
#[inline(always)]
pub fn element(block: &Block, at: u64, (op, ty): (AtomicOp, Type), flush: bool, b: u64, c: u64) -> Option<u64> {
    Some(match ty.bytes() {
        2 => {
            let cell = block.cell::<AtomicU16>(at)?;
            let new = |old: u16| Some(word(op, ty, flush, old.into(), b as u32, c as u32) as u16);
            cell.fetch_update(SeqCst, SeqCst, new).unwrap_or_else(|old| old).into()
        }
        4 => {
            let cell = block.cell::<AtomicU32>(at)?;
            if op == AtomicOp::Add && !ty.is_float() {
                return Some(cell.fetch_add(b as u32, SeqCst).into());
            }
            let new = |old| Some(word(op, ty, flush, old, b as u32, c as u32));
            cell.fetch_update(SeqCst, SeqCst, new).unwrap_or_else(|old| old).into()
        }
        _ => {
            let cell = block.cell::<AtomicU64>(at)?;
            cell.fetch_update(SeqCst, SeqCst, |old| Some(double(op, ty, old, b, c))).unwrap_or_else(|old| old)
        }
    })
}

/// Whether an operation has changed what was there: those that programs poll with must not count as effects.
fn changes((op, ty): (AtomicOp, Type), flush: bool, old: u64, b: u64, c: u64) -> bool {
    let bits = ty.bits();
    let cut = |v: u64| if bits < 64 { v & ((1 << bits) - 1) } else { v };
    let new = match bits {
        16 | 32 => word(op, ty, flush, old as u32, b as u32, c as u32).into(),
        _ => double(op, ty, old, b, c),
    };
    cut(new) != cut(old)
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
    let flush = m.ty == Type::F32 && region != Region::Shared;
    for k in 0..count {
        let b = ctx.doubles(m.src[k]);
        let c = if m.src.len() > count { ctx.doubles(m.src[count]) } else { [0; LANES] };
        let mut old = [0; LANES];
        for i in lanes(ctx.active) {
            let address = at[i] + (k as u64) * u64::from(m.size);
            let found = find_allocation!(ctx, region, address, i).filter(|a| a.kind.writable());
            let done = found.filter(|_| at[i].is_multiple_of(size.into())).and_then(|a| {
                element(&a.block, address, (m.atomic, m.ty), flush && a.kind != Kind::Shared, b[i], c[i])
            });
            match done {
                Some(value) => {
                    old[i] = value;
                    if changes((m.atomic, m.ty), flush, value, b[i], c[i]) {
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
        put_quad(ctx, *d, &old);
    }
    Flow::Next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_wrap_as_the_manual_says() {
        // inc(r, s) = r >= s ? 0 : r + 1; dec(r, s) = r == 0 || r > s ? s : r - 1
        let w = |op, old, b| word(op, Type::U32, false, old, b, 0);
        assert_eq!([w(AtomicOp::Inc, 3, 5), w(AtomicOp::Inc, 5, 5), w(AtomicOp::Inc, 9, 5)], [4, 0, 0]);
        assert_eq!([w(AtomicOp::Dec, 3, 5), w(AtomicOp::Dec, 0, 5), w(AtomicOp::Dec, 9, 5)], [2, 5, 5]);
    }

    #[test]
    fn signs_decide_extremes() {
        assert_eq!(word(AtomicOp::Min, Type::S32, false, 1, u32::MAX, 0), u32::MAX);
        assert_eq!(word(AtomicOp::Min, Type::U32, false, 1, u32::MAX, 0), 1);
        assert_eq!(double(AtomicOp::Max, Type::S64, 1, u64::MAX, 0), 1);
        assert_eq!(double(AtomicOp::Max, Type::U64, 1, u64::MAX, 0), u64::MAX);
    }

    #[test]
    fn global_single_sums_flush_subnormals_and_shared_ones_do_not() {
        let tiny = 1;
        assert_eq!(word(AtomicOp::Add, Type::F32, true, tiny, tiny, 0), 0);
        assert_eq!(word(AtomicOp::Add, Type::F32, false, tiny, tiny, 0), 2);
    }

    #[test]
    fn half_sums_round_once() {
        // 1 + 2^-11 is a tie in f16 (ten bits of fraction) and goes to even; anything above it goes up.
        let add = |a, b| half(AtomicOp::Add, Type::F16, a, b);
        assert_eq!(add(0x3c00, 0x1000), 0x3c00);
        assert_eq!(add(0x3c00, 0x1001), 0x3c01);
        assert_eq!(add(0x3c01, 0x1000), 0x3c02);
        assert_eq!(add(0x7bff, 0x7bff), 0x7c00);
        // bfloat16: 2^100 + 2^-100 keeps 2^100; 1 + 2^-8 ties to even.
        let add = |a, b| half(AtomicOp::Add, Type::Bf16, a, b);
        assert_eq!(add(0x7180, 0x0d80), 0x7180);
        assert_eq!(add(0x3f80, 0x3b80), 0x3f80);
        assert_eq!(add(0x3f81, 0x3b80), 0x3f82);
    }
}
