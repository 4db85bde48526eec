//! Dense `mma` and `wmma.mma` of fixed shapes: the same results as [`super::product`], without branches in the loops.
//!
//! A register of a fragment of `mma` is a block of eight rows of A (columns of B) and `4 e` neighbors along k, where `e` elements
//! share a register: its words in the order of the lanes are that block row by row (see [`super::fragment`]). A fragment of `wmma` is the
//! matrix itself, cut into lanes.

use super::{
    blocked::{self, Loops},
    dense::to_s32,
    element::{self, Element},
    product::{operands, sparse},
    shape,
};
use crate::{LANES, Row, sem::PureFn};
use margay_isa::{Mod, Opcode, Type, Var, Variant};
use std::marker::PhantomData;

/// The function of a product; `None` if its shape or types have no fast path here.
pub fn find(v: &Variant) -> Option<PureFn> {
    let o = operands(v)?;
    let plain = !sparse(v) && !v.has(Mod::BlockScale);
    if !plain || [o.a, o.b].iter().any(|e| e.bits < 8) {
        return None;
    }
    let wmma = v.op == Opcode::Wmma;
    let size = shape(v)?;
    let (float, integer, double) = match o.d {
        Type::F16 | Type::F32 => (true, false, false),
        Type::S32 => (false, true, false),
        Type::F64 => (false, false, true),
        _ => return None,
    };
    Some(match (wmma, size) {
        // Four products of eight lanes each.
        (false, (8, 8, 4)) if float => return None,
        _ if double && !blocked::fuses() => return None,
        _ if double && [Mod::Rz, Mod::Rm, Mod::Rp].iter().any(|m| v.has(*m)) => return None,
        (false, (8, 8, 4)) if double => double_product::<8, 4, 1, 1, 1>,
        (false, (16, 8, 4)) if double => double_product::<16, 4, 2, 1, 2>,
        (false, (16, 8, 8)) if double => double_product::<16, 8, 4, 2, 2>,
        (false, (16, 8, 16)) if double => double_product::<16, 16, 8, 4, 2>,
        (false, (16, 8, 4)) if float => product::<Floats, Mma, 16, 8, 4>,
        (false, (16, 8, 8)) if float => product::<Floats, Mma, 16, 8, 8>,
        (false, (16, 8, 16)) if float => product::<Floats, Mma, 16, 8, 16>,
        (false, (16, 8, 32)) if float => product::<Floats, Mma, 16, 8, 32>,
        (true, (16, 16, 8)) if float => product::<Floats, Wmma, 16, 16, 8>,
        (true, (16, 16, 16)) if float => product::<Floats, Wmma, 16, 16, 16>,
        (true, (32, 8, 16)) if float => product::<Floats, Wmma, 32, 8, 16>,
        (true, (8, 32, 16)) if float => product::<Floats, Wmma, 8, 32, 16>,
        (false, (8, 8, 16)) if integer => product::<Integers, Mma, 8, 8, 16>,
        (false, (16, 8, 16)) if integer => product::<Integers, Mma, 16, 8, 16>,
        (false, (16, 8, 32)) if integer => product::<Integers, Mma, 16, 8, 32>,
        (true, (16, 16, 16)) if integer => product::<Integers, Wmma, 16, 16, 16>,
        (true, (32, 8, 16)) if integer => product::<Integers, Wmma, 32, 8, 16>,
        (true, (8, 32, 16)) if integer => product::<Integers, Wmma, 8, 32, 16>,
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

/// As [`crate::sem::fp::from_f16`] but for NaNs, of which none is left in the end: the fields of an `.f16` in those of an `.f32` have the
/// value times a power of two, subnormals included.
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
struct Brain;

impl Format<f64> for Brain {
    const PER: usize = 2;
    #[inline(always)]
    fn value(&self, word: u32, i: usize) -> f64 {
        f64::from(f32::from_bits(if i == 0 { word << 16 } else { word & 0xffff_0000 }))
    }
}

/// Single precision, of which only the bits in a mask count.
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

/// Conversion between fragments and matrices. Loops run over the 32 words of a register where possible, so that they
/// are vectorized.
trait Layout {
    /// The registers of a fragment of A or B with `elements` elements.
    #[inline(always)]
    fn registers(e: Element, elements: usize) -> usize {
        elements / (LANES * e.per_register())
    }
    /// Fills A; the element at depth `k` of a row is stored at index `order(k)`, see [`Layout::order`].
    fn a<T: Copy + Default, F: Format<T>, const M: usize, const K: usize>(f: F, from: &[&[Row]], to: &mut [[T; K]; M]);
    /// The index of each depth in the rows of A, with `per` elements per register.
    fn order<const K: usize>(per: usize) -> &'static [usize; K];
    /// Fills B.
    fn b<T: Copy + Default, F: Format<T>, const N: usize, const K: usize>(f: F, from: &[&[Row]], to: &mut [[T; N]; K]);
    /// Fills C, with the columns in the order of [`Layout::b`].
    fn c<T: Copy + Default, F: Format<T>, const N: usize, const M: usize>(f: F, from: &[&[Row]], to: &mut [[T; N]; M]);
    /// Writes D, with `PER` elements per register.
    fn d<T: Copy + Default, const PER: usize, const N: usize, const M: usize>(
        from: &[[T; N]; M],
        to: &mut [Row],
        word: impl Fn([T; PER]) -> u32,
    );
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

/// The layout of `mma`. In rows of A, and in columns of B, C and D, the even ones of adjacent elements come first: they
/// occupy registers (or halves) of their own, spread over four threads.
struct Mma;

impl Layout for Mma {
    #[inline(always)]
    fn a<T: Copy + Default, F: Format<T>, const M: usize, const K: usize>(f: F, from: &[&[Row]], to: &mut [[T; K]; M]) {
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

    #[inline(always)]
    fn order<const K: usize>(per: usize) -> &'static [usize; K] {
        match per {
            1 => const { &interleaved::<K>(1) },
            2 => const { &interleaved::<K>(2) },
            _ => const { &interleaved::<K>(4) },
        }
    }

    #[inline(always)]
    fn b<T: Copy + Default, F: Format<T>, const N: usize, const K: usize>(f: F, from: &[&[Row]], to: &mut [[T; N]; K]) {
        for (r, register) in from.iter().enumerate().take(K / (4 * F::PER)) {
            let Some(register) = register.first() else { return };
            for t in 0..4 {
                let words: [u32; 8] = std::array::from_fn(|c| register.0[4 * (c % 4 * 2 + c / 4) + t]);
                for i in 0..F::PER {
                    let row = &mut to[(4 * r + t) * F::PER + i];
                    row.iter_mut().zip(words).for_each(|(x, word)| *x = f.value(word, i));
                }
            }
        }
    }

    #[inline(always)]
    fn c<T: Copy + Default, F: Format<T>, const N: usize, const M: usize>(f: F, from: &[&[Row]], to: &mut [[T; N]; M]) {
        for (block, registers) in to.as_chunks_mut::<8>().0.iter_mut().zip(from.chunks_exact(2 / F::PER)) {
            for i in 0..2 {
                let values = values(f, registers[i / F::PER], i % F::PER);
                for (row, four) in block.iter_mut().zip(values.as_chunks::<4>().0) {
                    row[4 * i..4 * i + 4].copy_from_slice(four);
                }
            }
        }
    }

    #[inline(always)]
    fn d<T: Copy + Default, const PER: usize, const N: usize, const M: usize>(
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
}

/// The layout of `wmma`: the matrix, row by row, lane by lane; fragments with spare room hold it twice.
struct Wmma;

impl Wmma {
    #[inline(always)]
    fn load<T: Copy + Default, F: Format<T>>(f: F, from: &[&[Row]], to: &mut [T]) {
        let held = from.len() * F::PER;
        // Of two copies the second one counts.
        let first = LANES.saturating_sub(to.len() / held.max(1));
        for (r, register) in from.iter().enumerate() {
            for i in 0..F::PER {
                let places = to.iter_mut().skip(r * F::PER + i).step_by(held);
                places.zip(&values(f, register, i)[first..]).for_each(|(to, v)| *to = *v);
            }
        }
    }
}

impl Layout for Wmma {
    #[inline(always)]
    fn registers(e: Element, elements: usize) -> usize {
        if e.ty == Type::F16 { 8 } else { elements / (LANES * e.per_register()) }
    }

    #[inline(always)]
    fn a<T: Copy + Default, F: Format<T>, const M: usize, const K: usize>(f: F, from: &[&[Row]], to: &mut [[T; K]; M]) {
        Wmma::load(f, from, to.as_flattened_mut());
    }

    #[inline(always)]
    fn order<const K: usize>(_per: usize) -> &'static [usize; K] {
        const { &interleaved::<K>(1) }
    }

    #[inline(always)]
    fn b<T: Copy + Default, F: Format<T>, const N: usize, const K: usize>(f: F, from: &[&[Row]], to: &mut [[T; N]; K]) {
        Wmma::load(f, from, to.as_flattened_mut());
    }

    #[inline(always)]
    fn c<T: Copy + Default, F: Format<T>, const N: usize, const M: usize>(f: F, from: &[&[Row]], to: &mut [[T; N]; M]) {
        Wmma::load(f, from, to.as_flattened_mut());
    }

    #[inline(always)]
    fn d<T: Copy + Default, const PER: usize, const N: usize, const M: usize>(
        from: &[[T; N]; M],
        to: &mut [Row],
        word: impl Fn([T; PER]) -> u32,
    ) {
        let (from, held) = (from.as_flattened(), to.len() * PER);
        for (r, register) in to.iter_mut().enumerate() {
            let values =
                std::array::from_fn(|i| std::array::from_fn(|lane| from[(lane * held + r * PER + i) % from.len()]));
            words(&values, register, &word);
        }
    }
}

/// Elements of A and B, types of C and D.
fn types(v: &Variant) -> Option<(Element, Element, Type, Type)> {
    // `wmma.mma` of halves names only the types of D and C.
    let factor = |var| Element::unpacked(v.ty(var).unwrap_or(Type::F16));
    Some((factor(Var::U), factor(Var::V), v.ty(Var::W)?, v.ty(Var::T)?))
}

/// Registers of A, B and C.
fn split<'r, 's>(counts: [usize; 3], src: &'r [&'s [Row]]) -> Option<[&'r [&'s [Row]]; 3]> {
    let (a, rest) = src.split_at_checked(counts[0])?;
    let (b, rest) = rest.split_at_checked(counts[1])?;
    Some([a, b, rest.get(..counts[2])?])
}

/// Computes a product of fixed shape by the loops of its number type, [`Floats`] or [`Integers`], and the layout of its
/// fragments.
fn product<T, L, const M: usize, const N: usize, const K: usize>(
    v: &Variant,
    _active: u32,
    src: &[&[Row]],
    dst: &mut [Row],
) where
    for<'a> Product<'a, T, L, M, N, K>: Loops,
{
    blocked::vectorize(Product::<T, L, M, N, K>(v, src, dst, PhantomData));
}

/// A product by number type and fragment layout.
struct Product<'a, T, L, const M: usize, const N: usize, const K: usize>(
    &'a Variant,
    &'a [&'a [Row]],
    &'a mut [Row],
    PhantomData<(T, L)>,
);

/// Floats, summed in double precision.
struct Floats;

/// Integers, summed modulo 2^32.
struct Integers;

/// Elements of C or D in a register.
fn per(ty: Type) -> usize {
    if ty == Type::F16 { 2 } else { 1 }
}

/// Loads a fragment of floats by a function of [`Layout`].
macro_rules! load_floats {
    ($load:path, $e:expr, $registers:expr, $to:expr) => {
        match $e.ty {
            Type::F16 => $load(Half, $registers, $to),
            Type::Bf16 => $load(Brain, $registers, $to),
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

impl<L: Layout, const M: usize, const N: usize, const K: usize> Loops for Product<'_, Floats, L, M, N, K> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Product(v, src, dst, _) = self;
        let Some((a_type, b_type, c_type, d_type)) = types(v) else { return };
        let counts = [L::registers(a_type, M * K), L::registers(b_type, K * N), M * N / LANES / per(c_type)];
        let Some([a, b, c]) = split(counts, src) else { return };
        let mut left = [[0.0; K]; M];
        let mut right = [[0.0; N]; K];
        load_floats!(L::a, a_type, a, &mut left);
        load_floats!(L::b, b_type, b, &mut right);
        let mut sum = [[0.0; N]; M];
        match c_type {
            Type::F16 => L::c(Half, c, &mut sum),
            _ => L::c(Single(u32::MAX), c, &mut sum),
        }
        let order = L::order::<K>(a_type.per_register());
        blocked::accumulate::<FUSED, f64>(
            sum.as_flattened_mut(),
            left.as_flattened(),
            right.as_flattened(),
            (N, K),
            |k| order[k],
        );
        if v.has(Mod::Satfinite) {
            let limit = if d_type == Type::F16 { 65504.0 } else { f64::from(f32::MAX) };
            sum.as_flattened_mut().iter_mut().for_each(|x| *x = if x.is_nan() { 0.0 } else { x.clamp(-limit, limit) });
        }
        match d_type {
            Type::F16 => L::d(&sum, dst, |[low, high]: [f64; 2]| {
                u32::from(element::to_f16(low)) | u32::from(element::to_f16(high)) << 16
            }),
            _ => L::d(&sum, dst, |[x]: [f64; 1]| element::to_f32(x)),
        }
    }
}

impl<L: Layout, const M: usize, const N: usize, const K: usize> Loops for Product<'_, Integers, L, M, N, K> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Product(v, src, dst, _) = self;
        let Some((a_type, b_type, ..)) = types(v) else { return };
        let counts = [L::registers(a_type, M * K), L::registers(b_type, K * N), M * N / LANES];
        let Some([a, b, c]) = split(counts, src) else { return };
        let mut left = [[0; K]; M];
        let mut right = [[0; N]; K];
        match a_type.ty.is_signed() {
            true => L::a(Signed, a, &mut left),
            false => L::a(Unsigned, a, &mut left),
        }
        match b_type.ty.is_signed() {
            true => L::b(Signed, b, &mut right),
            false => L::b(Unsigned, b, &mut right),
        }
        let order = L::order::<K>(4);
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
        L::c(Whole, c, &mut addend);
        let saturate = v.has(Mod::Satfinite);
        for (s, c) in sum.as_flattened_mut().iter_mut().zip(addend.as_flattened()) {
            *s = to_s32(i64::from(*s) + i64::from(*c), saturate) as i32;
        }
        L::d(&sum, dst, |[x]: [i32; 1]| x as u32);
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
        let Some([a, b, c]) = split([A, B, 2 * C], src) else { return };
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
