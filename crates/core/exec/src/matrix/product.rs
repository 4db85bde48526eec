//! `mma`, `mma.sp` and `wmma.mma`: converts fragments to matrices, multiplies them, and converts the result back.

use super::{
    dense::{Matrix, to_s32},
    element::{self, Element},
    fragment::{self, Coord, Factor, Quad},
    shape,
};
use crate::{
    LANES, Row,
    lanes::u64s,
    sem::soft::{self, Num, Rnd},
};
use margay_isa::{Mod, Opcode, Type, Var, Variant};

/// The registers of D, A, B and C, and the types of their elements.
pub struct Operands {
    /// Registers of each operand.
    pub registers: [usize; 4],
    /// Type of D.
    pub d: Type,
    /// Elements of A.
    pub a: Element,
    /// Elements of B.
    pub b: Element,
    /// Type of C.
    pub c: Type,
}

/// The operands of a variant.
pub fn operands(v: &Variant) -> Option<Operands> {
    let mut counts = v.operands().map(|o| v.count(o).unwrap_or(1) as usize);
    let registers = [counts.next()?, counts.next()?, counts.next()?, counts.next()?];
    let d = v.ty(Var::T)?;
    // `wmma.mma` of halves names only the types of D and C.
    let (a, b) = (v.ty(Var::U).unwrap_or(Type::F16), v.ty(Var::V).unwrap_or(Type::F16));
    Some(Operands { registers, d, a: Element::of(a, v), b: Element::of(b, v), c: v.ty(Var::W)? })
}

/// Executes a product.
pub fn run(v: &Variant, src: &[&[Row]], dst: &mut [Row]) {
    let (Some((m, n, k)), Some(o)) = (shape(v), operands(v)) else { return };
    let [_, na, nb, nc] = o.registers;
    let Some((a, rest)) = src.split_at_checked(na) else { return };
    let Some((b, rest)) = rest.split_at_checked(nb) else { return };
    let Some((c, extra)) = rest.split_at_checked(nc) else { return };
    match o.d {
        Type::F64 => double(v, (m, n, k), a, b, c, dst),
        Type::S32 => integer(v, &o, (m, n, k), (a, b, c), extra, dst),
        _ if v.op == Opcode::Mma && (m, n, k) == (8, 8, 4) => quads(v, &o, (a, b, c), dst),
        _ => float(v, &o, (m, n, k), (a, b, c), extra, dst),
    }
}

/// The layout of the fragments.
#[derive(Clone, Copy)]
struct Places {
    wmma: bool,
    size: (usize, usize, usize),
    /// Elements per register of A, B and C.
    per: [usize; 3],
}

impl Places {
    fn new(v: &Variant, o: &Operands, size: (usize, usize, usize)) -> Places {
        let halves = if o.c == Type::F16 { 2 } else { 1 };
        Places { wmma: v.op == Opcode::Wmma, size, per: [o.a.per_register(), o.b.per_register(), halves] }
    }

    /// A, expanded if it is sparse, and B.
    fn factors<T: Copy + Default>(
        &self,
        v: &Variant,
        o: &Operands,
        (a, b): (&[&[Row]], &[&[Row]]),
        extra: &[&[Row]],
        value: impl Fn(Element, u32) -> T,
    ) -> (Matrix<T>, Matrix<T>) {
        let (m, n, k) = self.size;
        let depth = if sparse(v) { k / 2 } else { k };
        // The other registers of `wmma` fragments repeat these.
        let registers = |elements: usize, per: usize| elements / (LANES * per);
        let a = &a[..a.len().min(registers(m * k, self.per[0]))];
        let b = &b[..b.len().min(registers(k * n, self.per[1]))];
        let mut left = Matrix::new(m, depth);
        left.gather(o.a, a, self.a(), |bits| value(o.a, bits));
        if sparse(v) {
            left = spread(o.a, k, &left, extra);
        }
        let mut right = Matrix::new(k, n);
        right.gather(o.b, b, self.b(), |bits| value(o.b, bits));
        (left, right)
    }

    fn a(self) -> impl Fn(usize, usize) -> Coord {
        let Places { wmma, size, per: [e, ..] } = self;
        move |lane, i| {
            if wmma { fragment::wmma(Factor::A, size, e, lane, i) } else { fragment::a(size.0, e, lane, i) }
        }
    }

    fn b(self) -> impl Fn(usize, usize) -> Coord {
        let Places { wmma, size, per: [_, e, _] } = self;
        move |lane, i| if wmma { fragment::wmma(Factor::B, size, e, lane, i) } else { fragment::b(e, lane, i) }
    }

    fn c(self) -> impl Fn(usize, usize) -> Coord {
        let Places { wmma, size, per: [.., e] } = self;
        move |lane, i| if wmma { fragment::wmma(Factor::C, size, e, lane, i) } else { fragment::c(lane, i) }
    }
}

/// Expands a sparse A: the stored elements at their positions, zeros elsewhere.
pub fn spread<T: Copy + Default>(e: Element, k: usize, stored: &Matrix<T>, extra: &[&[Row]]) -> Matrix<T> {
    let rows = stored.rows();
    let mut whole = Matrix::new(rows, k);
    let (Some(meta), Some(selector)) = (extra.first(), extra.get(1)) else { return whole };
    let (Some(meta), Some(selector)) = (meta.first(), selector.first()) else { return whole };
    let selector = selector.0[0] as usize;
    // Elements per index: pairs of 4-bit elements; a `.tf32` element takes two indices.
    let together = if e.bits == 4 { 2 } else { 1 };
    let per_chunk = if e.bits == 32 { 1 } else { 2 * together };
    let chunks = stored.columns() / per_chunk;
    let half = e.bits >= 16;
    for row in 0..rows {
        for s in 0..stored.columns() {
            let chunk = s / per_chunk;
            let nibble = fragment::metadata(|lane| meta.0[lane], half, chunks, selector, row, chunk) as usize;
            let which = s % per_chunk / together;
            let index = nibble >> (2 * which) & 3;
            let column = match e.bits {
                32 => 2 * s + index / 2,
                4 => 8 * chunk + 2 * index + s % 2,
                _ => 4 * chunk + index,
            };
            whole.set((row, column), stored.at((row, s)));
        }
    }
    whole
}

/// Whether A is sparse.
pub fn sparse(v: &Variant) -> bool {
    v.has(Mod::Sp) || v.has(Mod::SpOrderedMetadata)
}

fn float(
    v: &Variant,
    o: &Operands,
    size: (usize, usize, usize),
    (a, b, c): Registers<'_, '_>,
    extra: &[&[Row]],
    dst: &mut [Row],
) {
    let (m, n, _) = size;
    let places = Places::new(v, o, size);
    let (mut left, mut right) = places.factors(v, o, (a, b), extra, Element::float);
    if v.has(Mod::BlockScale) {
        let scales = if sparse(v) { extra.get(2..) } else { Some(extra) };
        block_scale(v, scales.unwrap_or(&[]), &mut left, &mut right);
    }
    let c_element = Element::of(o.c, v);
    let mut sum = Matrix::new(m, n);
    sum.gather(c_element, c, places.c(), |bits| c_element.float(bits));
    sum.add_product(&left, &right);
    if v.has(Mod::Satfinite) {
        let limit = if o.d == Type::F16 { 65504.0 } else { f64::from(f32::MAX) };
        sum.map(|x| if x.is_nan() { 0.0 } else { x.clamp(-limit, limit) });
    }
    scatter(o.d, dst, places.c(), &sum);
}

/// Writes D: halves in pairs, or single floats.
fn scatter(d: Type, dst: &mut [Row], place: impl Fn(usize, usize) -> Coord, sum: &Matrix<f64>) {
    if d == Type::F16 {
        for (r, row) in dst.iter_mut().enumerate() {
            for lane in 0..LANES {
                let half = |i| u32::from(element::to_f16(sum.at(place(lane, 2 * r + i))));
                row.0[lane] = half(0) | half(1) << 16;
            }
        }
        return;
    }
    for (r, row) in dst.iter_mut().enumerate() {
        for lane in 0..LANES {
            row.0[lane] = element::to_f32(sum.at(place(lane, r)));
        }
    }
}

type Registers<'r, 's> = (&'r [&'s [Row]], &'r [&'s [Row]], &'r [&'s [Row]]);

/// Multiplies rows of A and columns of B by their scale factors (section 9.7.14.3). In every group of four lanes, one
/// pair supplies the factors of two rows of A, and one lane that of a column of B.
fn block_scale(v: &Variant, extra: &[&[Row]], left: &mut Matrix<f64>, right: &mut Matrix<f64>) {
    let [data_a, byte_a, thread_a, data_b, byte_b, thread_b] = extra else { return };
    let ty = v.ty(Var::X).unwrap_or(Type::Ue8m0);
    let factors = match () {
        _ if v.has(Mod::ScaleVec4X) => 4,
        _ if v.has(Mod::ScaleVec2X) || v.has(Mod::KindMxf4) => 2,
        _ => 1,
    };
    let value = |rows: &[Row], lane: usize| rows.first().map_or(0, |r| r.0[lane]);
    let factor = |data: &[Row], byte: &[Row], lane: usize, j: usize| {
        element::scale(ty, (value(data, lane) >> ((value(byte, lane) as usize + j) % 4 * 8)) as u8)
    };
    let (k, n) = (left.columns(), right.columns());
    let chunk = k / factors;
    for row in 0..left.rows() {
        let lane = row % 8 * 4 + (2 * (value(thread_a, row % 8 * 4) as usize % 2) + row / 8) % 4;
        for depth in 0..k {
            let scaled = left.at((row, depth)) * factor(data_a, byte_a, lane, depth / chunk);
            left.set((row, depth), scaled);
        }
    }
    for column in 0..n {
        let lane = column % 8 * 4 + value(thread_b, column % 8 * 4) as usize % 4;
        for depth in 0..k {
            let scaled = right.at((depth, column)) * factor(data_b, byte_b, lane, depth / chunk);
            right.set((depth, column), scaled);
        }
    }
}

/// `.m8n8k4` on `.f16`: four products at once.
fn quads(v: &Variant, o: &Operands, (a, b, c): Registers<'_, '_>, dst: &mut [Row]) {
    let mut layouts = v.words.iter().filter(|w| matches!(w, margay_isa::Word::Mod(Mod::Row | Mod::Col)));
    let mut column_major = || layouts.next().is_some_and(|w| *w == margay_isa::Word::Mod(Mod::Col));
    let (a_columns, b_columns) = (column_major(), column_major());
    // The products are side by side: rows 8 q to 8 q + 7 of every matrix belong to product q.
    let quad = |lane: usize, (row, column): Coord, height: usize| (Quad::of(lane) * height + row, column);
    let mut left = Matrix::new(32, 4);
    left.gather(o.a, a, |lane, i| quad(lane, Quad::a(a_columns, lane, i), 8), |bits| o.a.float(bits));
    let mut right = Matrix::new(16, 8);
    right.gather(o.b, b, |lane, i| quad(lane, Quad::b(b_columns, lane, i), 4), |bits| o.b.float(bits));
    let c_element = Element::of(o.c, v);
    let mut sum = Matrix::new(32, 8);
    sum.gather(c_element, c, |lane, i| quad(lane, Quad::c(o.c == Type::F32, lane, i), 8), |bits| c_element.float(bits));
    for row in 0..32 {
        for column in 0..8 {
            let from = sum.at((row, column));
            let total = (0..4).fold(from, |s, k| s + left.at((row, k)) * right.at((row / 8 * 4 + k, column)));
            sum.set((row, column), total);
        }
    }
    let single = o.d == Type::F32;
    scatter(o.d, dst, |lane, i| quad(lane, Quad::c(single, lane, i), 8), &sum);
}

fn integer(
    v: &Variant,
    o: &Operands,
    size: (usize, usize, usize),
    (a, b, c): Registers<'_, '_>,
    extra: &[&[Row]],
    dst: &mut [Row],
) {
    let (m, n, _) = size;
    let places = Places::new(v, o, size);
    let (left, right) = places.factors(v, o, (a, b), extra, Element::integer);
    let c_element = Element::of(Type::S32, v);
    let mut sum = Matrix::new(m, n);
    sum.gather(c_element, c, places.c(), |bits| c_element.integer(bits));
    let single_bits = o.a.ty == Type::B1;
    let and = v.has(Mod::And);
    match single_bits && !and {
        false => sum.add_product(&left, &right, |x, y| x * y),
        true => sum.add_product(&left, &right, |x, y| x ^ y),
    }
    let saturate = v.has(Mod::Satfinite);
    let place = places.c();
    for (r, row) in dst.iter_mut().enumerate() {
        for lane in 0..LANES {
            row.0[lane] = to_s32(sum.at(place(lane, r)), saturate);
        }
    }
}

/// `.f64`: a register holds two rows.
fn double(v: &Variant, (m, n, k): (usize, usize, usize), a: &[&[Row]], b: &[&[Row]], c: &[&[Row]], dst: &mut [Row]) {
    let rnd = match () {
        _ if v.has(Mod::Rz) => Rnd::Zero,
        _ if v.has(Mod::Rm) => Rnd::Down,
        _ if v.has(Mod::Rp) => Rnd::Up,
        _ => Rnd::Nearest,
    };
    let gather = |registers: &[&[Row]], size: (usize, usize), place: &dyn Fn(usize, usize) -> Coord| {
        let mut matrix = Matrix::new(size.0, size.1);
        for (i, rows) in registers.iter().enumerate() {
            if rows.len() < 2 {
                continue;
            }
            let lanes = u64s(rows);
            for (lane, bits) in lanes.iter().enumerate() {
                matrix.set(place(lane, i), *bits);
            }
        }
        matrix
    };
    let places = Places { wmma: v.op == Opcode::Wmma, size: (m, n, k), per: [1; 3] };
    let (a_place, b_place, c_place) = (places.a(), places.b(), places.c());
    let left: Matrix<u64> = gather(a, (m, k), &a_place);
    let right: Matrix<u64> = gather(b, (k, n), &b_place);
    let mut sum: Matrix<u64> = gather(c, (m, n), &c_place);
    for row in 0..m {
        for column in 0..n {
            let total =
                (0..k).fold(sum.at((row, column)), |s, d| fma(left.at((row, d)), right.at((d, column)), s, rnd));
            sum.set((row, column), total);
        }
    }
    for (i, pair) in dst.chunks_exact_mut(2).enumerate() {
        for (lane, bits) in crate::lanes::u64s_mut(pair).iter_mut().enumerate() {
            *bits = sum.at(c_place(lane, i));
        }
    }
}

fn fma(a: u64, b: u64, c: u64, rnd: Rnd) -> u64 {
    const NAN: u64 = 0x7fff_ffff_ffff_ffff;
    if rnd == Rnd::Nearest {
        let r = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
        return if r.is_nan() { NAN } else { r.to_bits() };
    }
    match soft::fma(soft::F64.unpack(a), soft::F64.unpack(b), soft::F64.unpack(c), rnd) {
        Num::Nan => NAN,
        sum => soft::F64.pack(sum, rnd, false),
    }
}
