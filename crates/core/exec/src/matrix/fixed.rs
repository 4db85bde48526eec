//! Dense `mma` and `wmma.mma` of fixed shapes: the same results as [`super::product`], without branches in the loops.
//!
//! A register of a fragment is a block of eight rows of A (columns of B) and `4 e` neighbors along k, where `e` elements
//! share a register: its words in the order of the lanes are that block row by row (see [`super::fragment`]). A product of `wmma`
//! is several products of tiles, each with the fragments of an `mma`.

use super::{
    blocked::{self, Loops},
    dense::to_s32,
    element, fragment,
    product::{Operands, operands, sparse},
    shape,
};
use crate::{LANES, Row, sem::PureFn};
use margay_isa::{Mod, Opcode, Type, Variant};
use std::marker::PhantomData;

/// Columns of a tile of B, C and D.
const N: usize = fragment::TILE_COLUMNS;

/// The function of a product; `None` if its shape or types have no fast path here.
pub fn find(v: &Variant) -> Option<PureFn> {
    let o = operands(v)?;
    let plain = !sparse(v) && !v.has(Mod::BlockScale);
    if !plain || [o.a, o.b].iter().any(|e| e.bits < 8) {
        return None;
    }
    let (m, n, k) = shape(v)?;
    let (float, integer, double) = match o.d {
        Type::F16 | Type::F32 => (true, false, false),
        Type::S32 => (false, true, false),
        Type::F64 => (false, false, true),
        _ => return None,
    };
    Some(match (m.min(fragment::TILE_ROWS), k) {
        // Four products of eight lanes each.
        _ if float && (v.op, m, k) == (Opcode::Mma, 8, 4) => return None,
        _ if double && !blocked::fuses() => return None,
        _ if double && [Mod::Rz, Mod::Rm, Mod::Rp].iter().any(|m| v.has(*m)) => return None,
        _ if n % N != 0 => return None,
        (8, 4) if double => double_product::<8, 4, 1, 1, 1>,
        (16, 4) if double => double_product::<16, 4, 2, 1, 2>,
        (16, 8) if double => double_product::<16, 8, 4, 2, 2>,
        (16, 16) if double => double_product::<16, 16, 8, 4, 2>,
        (16, 4) if float => product::<Floats, 16, 4>,
        (16, 8) if float => product::<Floats, 16, 8>,
        (8, 16) if float => product::<Floats, 8, 16>,
        (16, 16) if float => product::<Floats, 16, 16>,
        (16, 32) if float => product::<Floats, 16, 32>,
        (8, 16) if integer => product::<Integers, 8, 16>,
        (16, 16) if integer => product::<Integers, 16, 16>,
        (16, 32) if integer => product::<Integers, 16, 32>,
        _ => return None,
    })
}

/// The encoding of elements in words, and their values.
trait Format<T>: Copy {
    /// Elements of a word.
    const PER: usize;
    /// The value of element `i` of a word.
    fn value(&self, word: u32, i: usize) -> T;
}

/// As [`crate::sem::fp::from_f16`], except for the payloads of NaNs, which no result keeps. The fields of an `.f16`, moved to those of an
/// `.f32`, represent the value times a power of two, also for subnormals.
#[inline(always)]
pub fn half(bits: u16) -> f32 {
    let (h, power) = (u32::from(bits), f32::from_bits((127 + 112) << 23));
    let finite = f32::from_bits((h & 0x7fff) << 13) * power;
    let infinite = if h & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(finite.to_bits() | infinite | (h & 0x8000) << 16)
}

#[derive(Clone, Copy)]
struct Half;

impl Format<f64> for Half {
    const PER: usize = 2;
    #[inline(always)]
    fn value(&self, word: u32, i: usize) -> f64 {
        f64::from(half((word >> (16 * i)) as u16))
    }
}

#[derive(Clone, Copy)]
struct Bfloat;

impl Format<f64> for Bfloat {
    const PER: usize = 2;
    #[inline(always)]
    fn value(&self, word: u32, i: usize) -> f64 {
        f64::from(f32::from_bits(if i == 0 { word << 16 } else { word & 0xffff_0000 }))
    }
}

/// Single precision, in which only the bits of a mask count.
#[derive(Clone, Copy)]
struct Single(u32);

impl Format<f64> for Single {
    const PER: usize = 1;
    #[inline(always)]
    fn value(&self, word: u32, _: usize) -> f64 {
        f64::from(f32::from_bits(word & self.0))
    }
}

/// Floats of at most 8 bits, by a table.
#[derive(Clone, Copy)]
struct Small(&'static [f64; 256]);

impl Format<f64> for Small {
    const PER: usize = 4;
    #[inline(always)]
    fn value(&self, word: u32, i: usize) -> f64 {
        self.0[(word >> (8 * i)) as usize & 255]
    }
}

#[derive(Clone, Copy)]
struct Signed;

impl Format<i32> for Signed {
    const PER: usize = 4;
    #[inline(always)]
    fn value(&self, word: u32, i: usize) -> i32 {
        i32::from((word >> (8 * i)) as i8)
    }
}

#[derive(Clone, Copy)]
struct Whole;

impl Format<i32> for Whole {
    const PER: usize = 1;
    #[inline(always)]
    fn value(&self, word: u32, _: usize) -> i32 {
        word as i32
    }
}

#[derive(Clone, Copy)]
struct Unsigned;

impl Format<i32> for Unsigned {
    const PER: usize = 4;
    #[inline(always)]
    fn value(&self, word: u32, i: usize) -> i32 {
        (word >> (8 * i) & 255) as i32
    }
}

/// An order for `per` elements of each of four threads: the first elements of all four threads come before the second
/// ones.
const fn interleaved<const K: usize>(per: usize) -> [usize; K] {
    let (mut order, mut k) = ([0; K], 0);
    while k < K {
        order[k] = k / (4 * per) * (4 * per) + k % per * 4 + k / per % 4;
        k += 1;
    }
    order
}

/// Element `i` of every word.
#[inline(always)]
fn values<T: Copy + Default, F: Format<T>>(f: F, register: &[Row], i: usize) -> [T; LANES] {
    let mut values = [T::default(); LANES];
    if let Some(row) = register.first() {
        values.iter_mut().zip(&row.0).for_each(|(v, word)| *v = f.value(*word, i));
    }
    values
}

/// Packs words from one element of each array.
#[inline(always)]
fn words<T: Copy, const PER: usize>(values: &[[T; LANES]; PER], to: &mut Row, word: impl Fn([T; PER]) -> u32) {
    for (lane, to) in to.0.iter_mut().enumerate() {
        *to = word(std::array::from_fn(|i| values[i][lane]));
    }
}

/// Fills A. In its rows, as in the columns of B, C and D, the even ones of adjacent elements come first: they occupy registers (or
/// halves) of their own, spread over four threads. The element at depth `k` is stored at index [`order`].
#[inline(always)]
fn load_a<T: Copy + Default, F: Format<T>, const M: usize, const K: usize>(
    f: F,
    from: &[&[Row]],
    to: &mut [[T; K]; M],
) {
    let (tall, wide) = (M / 8, 4 * F::PER);
    for (r, register) in from.iter().enumerate().take(K / wide * tall) {
        for i in 0..F::PER {
            let values = values(f, register, i);
            for (group, four) in values.as_chunks::<4>().0.iter().enumerate() {
                to[group + 8 * (r % tall)][r / tall * wide + 4 * i..][..4].copy_from_slice(four);
            }
        }
    }
}

/// The index of each depth in the rows of A, with `per` elements per register.
fn order<const K: usize>(per: usize) -> &'static [usize; K] {
    match per {
        1 => const { &interleaved::<K>(1) },
        2 => const { &interleaved::<K>(2) },
        _ => const { &interleaved::<K>(4) },
    }
}

/// Fills B.
#[inline(always)]
fn load_b<T: Copy + Default, F: Format<T>, const K: usize>(f: F, from: &[&[Row]], to: &mut [[T; N]; K]) {
    for (r, register) in from.iter().enumerate().take(K / (4 * F::PER)) {
        let Some(register) = register.first() else { return };
        for t in 0..4 {
            let words: [u32; N] = std::array::from_fn(|c| register.0[4 * (c % 4 * 2 + c / 4) + t]);
            for i in 0..F::PER {
                let row = &mut to[(4 * r + t) * F::PER + i];
                row.iter_mut().zip(words).for_each(|(x, word)| *x = f.value(word, i));
            }
        }
    }
}

/// Fills C, with the columns in the order of [`load_b`].
#[inline(always)]
fn load_c<T: Copy + Default, F: Format<T>, const M: usize>(f: F, from: &[&[Row]], to: &mut [[T; N]; M]) {
    for (block, registers) in to.as_chunks_mut::<8>().0.iter_mut().zip(from.chunks_exact(2 / F::PER)) {
        for i in 0..2 {
            let values = values(f, registers[i / F::PER], i % F::PER);
            for (row, four) in block.iter_mut().zip(values.as_chunks::<4>().0) {
                row[4 * i..4 * i + 4].copy_from_slice(four);
            }
        }
    }
}

/// Writes D, with `PER` elements per register.
#[inline(always)]
fn store_d<T: Copy + Default, const PER: usize, const M: usize>(
    from: &[[T; N]; M],
    to: &mut [Row],
    word: impl Fn([T; PER]) -> u32,
) {
    for (block, registers) in from.as_chunks::<8>().0.iter().zip(to.chunks_exact_mut(2 / PER)) {
        for (part, register) in registers.iter_mut().enumerate() {
            let mut values = [[T::default(); LANES]; PER];
            for (i, values) in values.iter_mut().enumerate() {
                let first = 4 * (part * PER + i);
                for (row, four) in block.iter().zip(values.as_chunks_mut::<4>().0) {
                    four.copy_from_slice(&row[first..first + 4]);
                }
            }
            words(&values, register, &word);
        }
    }
}

/// Computes a product of fixed shape by the loops of its number type, [`Floats`] or [`Integers`], tile by tile.
fn product<T, const M: usize, const K: usize>(v: &Variant, _active: u32, src: &[&[Row]], dst: &mut [Row])
where
    for<'a> Product<'a, T, M, K>: Loops,
{
    let (Some((m, n, _)), Some(o)) = (shape(v), operands(v)) else { return };
    let [_, na, nb, nc] = o.registers;
    let Some((a, rest)) = src.split_at_checked(na) else { return };
    let Some((b, rest)) = rest.split_at_checked(nb) else { return };
    let (tall, across) = (m / M, n / N);
    let registers = |elements: usize, per: usize| elements / (LANES * per);
    let (pa, pb) = (registers(M * K, o.a.per_register()), registers(N * K, o.b.per_register()));
    let (pc, pd) = (nc / (tall * across), dst.len() / (tall * across));
    for (tile, dst) in dst.chunks_exact_mut(pd).enumerate() {
        let (Some(a), Some(b), Some(c)) =
            (piece(a, tile / across, pa), piece(b, tile % across, pb), piece(rest, tile, pc))
        else {
            return;
        };
        blocked::vectorize(Product::<T, M, K> { v, o: &o, a, b, c, dst, number: PhantomData });
    }
}

/// The registers of a tile, which has `per` of them.
fn piece<'r, 's>(all: &'r [&'s [Row]], tile: usize, per: usize) -> Option<&'r [&'s [Row]]> {
    all.get(tile * per..(tile + 1) * per)
}

/// A product of tiles by number type.
struct Product<'a, T, const M: usize, const K: usize> {
    v: &'a Variant,
    o: &'a Operands,
    a: &'a [&'a [Row]],
    b: &'a [&'a [Row]],
    c: &'a [&'a [Row]],
    dst: &'a mut [Row],
    number: PhantomData<T>,
}

/// Floats, summed in double precision.
struct Floats;

/// Integers, summed modulo 2^32.
struct Integers;

/// Loads a fragment of floats.
macro_rules! load_floats {
    ($load:path, $e:expr, $registers:expr, $to:expr) => {
        match $e.ty {
            Type::F16 => $load(Half, $registers, $to),
            Type::Bf16 => $load(Bfloat, $registers, $to),
            // The low bits of the register are ignored.
            Type::Tf32 => $load(Single(0xffff_e000), $registers, $to),
            Type::F32 => $load(Single(u32::MAX), $registers, $to),
            _ => match $e.small() {
                Some(values) => $load(Small(values), $registers, $to),
                None => return,
            },
        }
    };
}

impl<const M: usize, const K: usize> Loops for Product<'_, Floats, M, K> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Product { v, o, a, b, c, dst, .. } = self;
        let mut left = [[0.0; K]; M];
        let mut right = [[0.0; N]; K];
        load_floats!(load_a, o.a, a, &mut left);
        load_floats!(load_b, o.b, b, &mut right);
        let mut sum = [[0.0; N]; M];
        match o.c {
            Type::F16 => load_c(Half, c, &mut sum),
            _ => load_c(Single(u32::MAX), c, &mut sum),
        }
        let order = order::<K>(o.a.per_register());
        blocked::accumulate::<FUSED, f64>(
            sum.as_flattened_mut(),
            left.as_flattened(),
            right.as_flattened(),
            (N, K),
            |k| order[k],
        );
        if v.has(Mod::Satfinite) {
            let limit = if o.d == Type::F16 { 65504.0 } else { f64::from(f32::MAX) };
            sum.as_flattened_mut().iter_mut().for_each(|x| *x = if x.is_nan() { 0.0 } else { x.clamp(-limit, limit) });
        }
        match o.d {
            Type::F16 => store_d(&sum, dst, |[low, high]: [f64; 2]| {
                u32::from(element::to_f16(low)) | u32::from(element::to_f16(high)) << 16
            }),
            _ => store_d(&sum, dst, |[x]: [f64; 1]| element::to_f32(x)),
        }
    }
}

impl<const M: usize, const K: usize> Loops for Product<'_, Integers, M, K> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Product { v, o, a, b, c, dst, .. } = self;
        let mut left = [[0; K]; M];
        let mut right = [[0; N]; K];
        match o.a.ty.is_signed() {
            true => load_a(Signed, a, &mut left),
            false => load_a(Unsigned, a, &mut left),
        }
        match o.b.ty.is_signed() {
            true => load_b(Signed, b, &mut right),
            false => load_b(Unsigned, b, &mut right),
        }
        let order = order::<K>(4);
        // 32 products of bytes are far from overflowing 32 bits; with C they may overflow.
        let mut sum = [[0; N]; M];
        blocked::accumulate::<FUSED, i32>(
            sum.as_flattened_mut(),
            left.as_flattened(),
            right.as_flattened(),
            (N, K),
            |k| order[k],
        );
        let mut addend = [[0; N]; M];
        load_c(Whole, c, &mut addend);
        let saturate = v.has(Mod::Satfinite);
        for (s, c) in sum.as_flattened_mut().iter_mut().zip(addend.as_flattened()) {
            *s = to_s32(i64::from(*s) + i64::from(*c), saturate) as i32;
        }
        store_d(&sum, dst, |[x]: [i32; 1]| x as u32);
    }
}

/// `.f64`, rounded to nearest: the registers of `A` and `B`, and half of those of C.
fn double_product<const M: usize, const K: usize, const A: usize, const B: usize, const C: usize>(
    _v: &Variant,
    _active: u32,
    src: &[&[Row]],
    dst: &mut [Row],
) {
    blocked::vectorize(Doubles::<M, K, A, B, C>(src, dst));
}

struct Doubles<'a, const M: usize, const K: usize, const A: usize, const B: usize, const C: usize>(
    &'a [&'a [Row]],
    &'a mut [Row],
);

impl<const M: usize, const K: usize, const A: usize, const B: usize, const C: usize> Loops
    for Doubles<'_, M, K, A, B, C>
{
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        const NAN: u64 = 0x7fff_ffff_ffff_ffff;
        let Doubles(src, dst) = self;
        let Some((a, rest)) = src.split_at_checked(A) else { return };
        let Some((b, rest)) = rest.split_at_checked(B) else { return };
        let Some(c) = rest.get(..2 * C) else { return };
        if src.iter().any(|r| r.len() != 2) {
            return;
        }
        let lanes = |r: &[Row]| crate::lanes::u64s(r).map(f64::from_bits);
        let (mut left, mut right, mut sum) = ([[0.0; K]; M], [[0.0; 8]; K], [[0.0; 8]; M]);
        for (r, register) in a.iter().enumerate() {
            for (lane, x) in lanes(register).into_iter().enumerate() {
                left[lane / 4 + 8 * (r % (M / 8))][lane % 4 + 4 * (r / (M / 8))] = x;
            }
        }
        for (r, register) in b.iter().enumerate() {
            for (lane, x) in lanes(register).into_iter().enumerate() {
                right[lane % 4 + 4 * r][lane / 4] = x;
            }
        }
        for (r, register) in c.iter().enumerate() {
            for (lane, x) in lanes(register).into_iter().enumerate() {
                sum[lane / 4 + 8 * (r / 2)][lane % 4 * 2 + r % 2] = x;
            }
        }
        blocked::accumulate::<FUSED, f64>(
            sum.as_flattened_mut(),
            left.as_flattened(),
            right.as_flattened(),
            (8, K),
            |k| k,
        );
        for (r, pair) in dst.chunks_exact_mut(2).enumerate() {
            for (lane, to) in crate::lanes::u64s_mut(pair).iter_mut().enumerate() {
                let x = sum[lane / 4 + 8 * (r / 2)][lane % 4 * 2 + r % 2];
                *to = if x.is_nan() { NAN } else { x.to_bits() };
            }
        }
    }
}
