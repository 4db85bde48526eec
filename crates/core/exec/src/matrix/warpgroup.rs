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
use crate::{LANES, Row};
use margay_isa::{Mod, Type, Var, Variant};

/// Row and column (among 16 rows) of element `i` of D.
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
    let (Some((_, n, k)), Some(a_type), Some(b_type)) = (shape(v), v.ty(Var::U), v.ty(Var::V)) else {
        return Ok(Vec::new());
    };
    let (a, b) = (Element::of(a_type, v), Element::of(b_type, v));
    let names: Vec<&str> = v.operands().skip(1).flat_map(|o| vec![o.name; v.count(o).unwrap_or(1) as usize]).collect();
    let operand = |name: &str| names.iter().position(|n| *n == name).and_then(|i| o.src.get(i));
    let word = |name: &str| operand(name).and_then(|r| r.first()).map(|r| r.0[0]);
    let descriptor = |name: &str| operand(name).filter(|r| r.len() == 2).map(|r| crate::lanes::u64s(r)[0]);
    let set = |name: &str| word(name).unwrap_or(0) != 0;
    let accumulate = word("scale-d").unwrap_or(0) & 1 == 1;
    let depth = if sparse(v) { k / 2 } else { k };
    let mut left = Matrix::new(16, depth);
    match descriptor("a-desc") {
        Some(bits) => {
            let rows = 16 * o.warp..16 * o.warp + 16;
            let unit = (a.bits, 128 / a.bits as usize);
            let first = rows.start;
            let d = Descriptor::wgmma(bits);
            let by_k = !set("imm-trans-a");
            d.read(by_k, unit, rows, depth, memory, |r, k, xs| left.set_run((r - first, k), !by_k, xs))?;
        }
        None => {
            let registers = &o.src[..o.src.len().min(4)];
            left.gather(a, registers, |lane, i| fragment::a(16, a.per_register(), lane, i), |bits| bits);
        }
    }
    let mut right = Matrix::new(k, n);
    if let Some(bits) = descriptor("b-desc") {
        let unit = (b.bits, 128 / b.bits as usize);
        let by_k = !set("imm-trans-b");
        Descriptor::wgmma(bits).read(by_k, unit, 0..n, k, memory, |c, k, xs| right.set_run((k, c), by_k, xs))?;
    }
    if sparse(v)
        && let (Some(meta), Some(selector)) = (operand("sp-meta"), operand("sp-sel"))
    {
        left = spread(a, k, &left, &[meta, selector]);
    }
    let c = Element::of(v.t(), v);
    let mut result = vec![Row::ZERO; o.d.len()];
    if v.t() == Type::S32 {
        let (left, right) = (convert(&left, |x| a.integer(x)), convert(&right, |x| b.integer(x)));
        let mut sum = Matrix::new(16, n);
        if accumulate {
            sum.gather(c, &o.d, place, |bits| c.integer(bits));
        }
        sum.add_product(&left, &right, |x, y| x * y);
        let saturate = v.has(Mod::Satfinite);
        for (r, row) in result.iter_mut().enumerate() {
            row.0 = std::array::from_fn(|lane| to_s32(sum.at(place(lane, r)), saturate));
        }
        return Ok(result);
    }
    let sign = |name: &str| if word(name) == Some(-1i32 as u32) { -1.0 } else { 1.0 };
    let (sign_a, sign_b) = (sign("imm-scale-a"), sign("imm-scale-b"));
    let (left, right) = (a.floats(&left, sign_a), b.floats(&right, sign_b));
    let mut sum = Matrix::new(16, n);
    if accumulate {
        sum.gather(c, &o.d, place, |bits| c.float(bits));
    }
    sum.add_product(&left, &right);
    let half = v.t() == Type::F16;
    for (r, row) in result.iter_mut().enumerate() {
        for lane in 0..LANES {
            row.0[lane] = if half {
                let half = |i| u32::from(element::to_f16(sum.at(place(lane, 2 * r + i))));
                half(0) | half(1) << 16
            } else {
                element::to_f32(sum.at(place(lane, r)))
            };
        }
    }
    Ok(result)
}

/// The values of elements.
pub fn convert<T: Copy + Default>(from: &Matrix<u32>, value: impl Fn(u32) -> T) -> Matrix<T> {
    let mut to = Matrix::new(from.rows(), from.columns());
    for row in 0..from.rows() {
        to.row_mut(row).iter_mut().zip(from.row(row)).for_each(|(t, f)| *t = value(*f));
    }
    to
}
