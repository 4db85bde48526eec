//! `wgmma.mma_async`: the share of one warp, 16 of the 64 rows (manual, sections 9.7.15.5 and 9.7.15.6).
//!
//! The warps of a group are independent: each one reads its rows of A and all of B. So each one computes its share at
//! issue, and `wgmma.fence`, `commit_group` and `wait_group` are no-ops: a program must not access A, B and D before it
//! has waited, so the difference is not observable.

use super::{
    dense::{Matrix, to_s32},
    descriptor::Descriptor,
    element::{self, Element},
    fragment::{self, Coord},
    product::{sparse, spread},
    shape,
};
use crate::Row;
use margay_isa::{Mod, Type, Var, Variant, name};

/// Rows of A and D that one warp has.
const ROWS: usize = 16;

/// Row (among those of the warp) and column of element `i` of D.
fn place(lane: usize, i: usize) -> Coord {
    (lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + lane % 4 * 2 + i % 2)
}

/// The operands of a `wgmma.mma_async`.
pub struct Operands<'r> {
    /// The index of the warp in its group.
    pub warp: usize,
    /// The accumulator's registers.
    pub d: Vec<&'r [Row]>,
    /// The other operands, in the order of the instruction.
    pub src: Vec<&'r [Row]>,
}

/// Executes the share of one warp; `memory` reads 16 bytes of the CTA's shared window. The result has one row per
/// register of D.
pub fn multiply<E>(
    v: &Variant,
    o: &Operands<'_>,
    memory: &mut impl FnMut(u64) -> Result<[u8; 16], E>,
) -> Result<Vec<Row>, E> {
    let Some(product) = Product::of(v, o) else { return Ok(Vec::new()) };
    let (left, right) = (product.left(memory)?, product.right(memory)?);
    Ok(match v.t() {
        Type::S32 => product.of_integers(&left, &right),
        _ => product.of_floats(&left, &right),
    })
}

/// One product, with N and K of its shape. Elements are kept as bits until their type matters.
struct Product<'p> {
    v: &'p Variant,
    o: &'p Operands<'p>,
    /// Names of the operands in `o.src`.
    names: Vec<&'static str>,
    n: usize,
    k: usize,
    a: Element,
    b: Element,
    c: Element,
}

impl<'p> Product<'p> {
    fn of(v: &'p Variant, o: &'p Operands<'p>) -> Option<Product<'p>> {
        let (_, n, k) = shape(v)?;
        let (a, b) = (Element::of(v.ty(Var::U)?, v), Element::of(v.ty(Var::V)?, v));
        let names = v.operands().skip(1).flat_map(|o| vec![o.name; v.count(o).unwrap_or(1) as usize]).collect();
        Some(Product { v, o, names, n, k, a, b, c: Element::of(v.t(), v) })
    }

    fn operand(&self, name: &str) -> Option<&'p [Row]> {
        self.names.iter().position(|n| *n == name).and_then(|i| self.o.src.get(i)).copied()
    }

    fn word(&self, name: &str) -> Option<u32> {
        self.operand(name).and_then(|rows| rows.first()).map(|row| row.0[0])
    }

    fn is_set(&self, name: &str) -> bool {
        self.word(name).unwrap_or(0) != 0
    }

    fn descriptor(&self, name: &str) -> Option<Descriptor> {
        let rows = self.operand(name).filter(|rows| rows.len() == 2)?;
        Some(Descriptor::wgmma(crate::lanes::u64s(rows)[0]))
    }

    /// The warp's rows of A: 16 by K.
    fn left<E>(&self, memory: &mut impl FnMut(u64) -> Result<[u8; 16], E>) -> Result<Matrix<u32>, E> {
        let is_sparse = sparse(self.v);
        let depth = if is_sparse { self.k / 2 } else { self.k };
        let mut left = Matrix::new(ROWS, depth);
        match self.descriptor(name::A_DESC) {
            Some(descriptor) => {
                let first = ROWS * self.o.warp;
                let by_k = !self.is_set(name::IMM_TRANS_A);
                let set = |r, k, run: &[u32]| left.set_run((r - first, k), !by_k, run);
                descriptor.read(by_k, unit(self.a), first..first + ROWS, depth, memory, set)?;
            }
            None => {
                let registers = &self.o.src[..self.o.src.len().min(4)];
                left.gather(
                    self.a,
                    registers,
                    |lane, i| fragment::a(ROWS, self.a.per_register(), lane, i),
                    |bits| bits,
                );
            }
        }
        match (self.operand(name::SP_META), self.operand(name::SP_SEL)) {
            (Some(metadata), Some(selector)) if is_sparse => Ok(spread(self.a, self.k, &left, &[metadata, selector])),
            _ => Ok(left),
        }
    }

    /// All of B: K by N.
    fn right<E>(&self, memory: &mut impl FnMut(u64) -> Result<[u8; 16], E>) -> Result<Matrix<u32>, E> {
        let mut right = Matrix::new(self.k, self.n);
        if let Some(descriptor) = self.descriptor(name::B_DESC) {
            let by_k = !self.is_set(name::IMM_TRANS_B);
            let set = |c, k, run: &[u32]| right.set_run((k, c), by_k, run);
            descriptor.read(by_k, unit(self.b), 0..self.n, self.k, memory, set)?;
        }
        Ok(right)
    }

    /// D before the product, or zeros if it is not added.
    fn accumulator<T: Copy + Default>(&self, value: impl Fn(u32) -> T) -> Matrix<T> {
        let mut sum = Matrix::new(ROWS, self.n);
        if self.word(name::SCALE_D).unwrap_or(0) & 1 == 1 {
            sum.gather(self.c, &self.o.d, place, value);
        }
        sum
    }

    /// The registers of D, from the words of one lane and register.
    fn registers(&self, word: impl Fn(usize, usize) -> u32) -> Vec<Row> {
        (0..self.o.d.len()).map(|r| Row(std::array::from_fn(|lane| word(lane, r)))).collect()
    }

    fn of_integers(&self, left: &Matrix<u32>, right: &Matrix<u32>) -> Vec<Row> {
        let (left, right) = (convert(left, |x| self.a.integer(x)), convert(right, |x| self.b.integer(x)));
        let mut sum = self.accumulator(|bits| self.c.integer(bits));
        sum.add_product(&left, &right, |x, y| x * y);
        let saturate = self.v.has(Mod::Satfinite);
        self.registers(|lane, r| to_s32(sum.at(place(lane, r)), saturate))
    }

    fn of_floats(&self, left: &Matrix<u32>, right: &Matrix<u32>) -> Vec<Row> {
        let sign = |name: &str| if self.word(name) == Some(-1i32 as u32) { -1.0 } else { 1.0 };
        let left = self.a.floats(left, sign(name::IMM_SCALE_A));
        let right = self.b.floats(right, sign(name::IMM_SCALE_B));
        let mut sum = self.accumulator(|bits| self.c.float(bits));
        sum.add_product(&left, &right);
        if self.v.t() != Type::F16 {
            return self.registers(|lane, r| element::to_f32(sum.at(place(lane, r))));
        }
        self.registers(|lane, r| {
            let half = |i| u32::from(element::to_f16(sum.at(place(lane, 2 * r + i))));
            half(0) | half(1) << 16
        })
    }
}

/// The bits of an element in shared memory, and the number of elements in 128 bits.
fn unit(e: Element) -> (u32, usize) {
    (e.bits, 128 / e.bits as usize)
}

/// The values of elements.
pub fn convert<T: Copy + Default>(from: &Matrix<u32>, value: impl Fn(u32) -> T) -> Matrix<T> {
    let mut to = Matrix::new(from.rows(), from.columns());
    for row in 0..from.rows() {
        to.row_mut(row).iter_mut().zip(from.row(row)).for_each(|(t, f)| *t = value(*f));
    }
    to
}
