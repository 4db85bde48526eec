//! Facts about values, and their propagation through arithmetic on indices and addresses.

use super::{Shape, WIDTHS};
use crate::{Operand, pass::Relation};
use margay_isa::{Kind, Mod, Opcode, Var, Variant};

/// All that is known of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::pass) struct Fact {
    pub shape: Shape,
    /// Whether the shape always holds; else it holds unless an index wraps around inside a row.
    pub sure: bool,
    /// Log2 of a power of two that divides the first value of each row; 64 for zero.
    pub(super) align: u8,
    /// Log2 of a bound that all values are below.
    pub(super) high: u8,
    /// For rows of equal values narrower than a warp: the stride from one row's value to the next, and log2 of a power of two that
    /// divides the first row's.
    pub(super) outer: Option<(i64, u8)>,
}

impl Fact {
    pub const VARYING: Fact = Fact { shape: Shape::Varying, sure: true, align: 0, high: 64, outer: None };
    pub const UNIFORM: Fact = Fact { shape: Shape::Uniform, sure: true, align: 0, high: 64, outer: None };

    /// A uniform value of `bits` bits.
    pub(super) fn uniform(bits: u32) -> Fact {
        Fact { high: bits.min(64) as u8, ..Fact::UNIFORM }
    }

    pub fn constant(v: u64) -> Fact {
        Fact { align: v.trailing_zeros() as u8, high: (64 - v.leading_zeros()) as u8, ..Fact::UNIFORM }
    }

    /// Row width and stride; uniform values are rows of 32 with stride 0.
    pub(super) fn rows(self) -> Option<(u32, i64)> {
        match self.shape {
            Shape::Uniform => Some((32, 0)),
            Shape::Affine { width, stride } => Some((width, stride)),
            Shape::Varying => None,
        }
    }

    pub(super) fn of_rows(width: u32, stride: i64, align: u8, high: u8, sure: bool) -> Fact {
        let shape = match (width, stride) {
            (32, 0) if sure => Shape::Uniform,
            (32, 0) => return Fact::VARYING,
            _ => Shape::Affine { width, stride },
        };
        Fact { shape, sure, align, high, outer: None }
    }

    /// The same value in narrower rows.
    fn narrowed(self, width: u32) -> Option<Fact> {
        let (own, stride) = self.rows().filter(|(own, _)| *own >= width)?;
        // Modulo 2 to the 64, as the lanes count.
        let step = if own == width { 64 } else { i64::from(width).wrapping_mul(stride).trailing_zeros() as u8 };
        Some(Fact::of_rows(width, stride, self.align.min(step), self.high, self.sure))
    }

    /// The fact that holds for both values.
    pub fn join(self, other: Fact) -> Fact {
        let (Some((a, s)), Some((b, t))) = (self.rows(), other.rows()) else { return Fact::VARYING };
        let width = a.min(b);
        match (self.narrowed(width), other.narrowed(width)) {
            (Some(x), Some(y)) if s == t => {
                let joined = Fact::of_rows(width, s, x.align.min(y.align), x.high.max(y.high), x.sure && y.sure);
                let outer = self.outer.filter(|_| self.outer == other.outer && joined.shape != Shape::Varying);
                Fact { outer, ..joined }
            }
            _ => Fact::VARYING,
        }
    }

    /// Bounds that grow from round to round are given up at once.
    pub fn widened(self, before: Fact) -> Fact {
        if self.high > before.high { Fact { high: 64, ..self } } else { self }
    }

    /// How far the last lane of a row lies from the first; `None` if that is a long way.
    fn span(self) -> Option<u64> {
        let (width, stride) = self.rows()?;
        stride.unsigned_abs().checked_mul(u64::from(width) - 1).filter(|s| *s < 1 << 30)
    }

    /// Whether along no row a carry leaves the low bits in which the first value is zero; at most `bits` of them count.
    fn carry_free(self, bits: u32) -> bool {
        let Some((_, stride)) = self.rows() else { return false };
        stride >= 0 && self.span().is_some_and(|s| s < 1u64 << u32::from(self.align).min(bits).min(63))
    }

    /// Whether no lane of a row wraps around in 32 bits, signed or not.
    fn straight(self) -> bool {
        self.sure && (self.carry_free(31) || self.high <= 31 && self.span().is_some())
    }
}

/// Results of the operations that indices and addresses are made of.
pub(super) fn arithmetic(variant: &Variant, srcs: &[Fact], ops: &[Operand]) -> Fact {
    let t = variant.t();
    let bits = t.bits();
    let integer = (t.is_int() || t.kind() == Kind::Bits) && (bits == 32 || bits == 64);
    let high = variant.has(Mod::Hi) && variant.op != Opcode::Setp;
    let plain = !variant.has(Mod::Sat) && !variant.has(Mod::Cc) && !high;
    if !integer || !plain {
        return Fact::VARYING;
    }
    let found = match (variant.op, srcs) {
        (Opcode::Add, [a, b]) => sum(*a, *b, 1, bits),
        (Opcode::Sub, [a, b]) => sum(*a, *b, -1, bits),
        // Of values without common bits.
        (Opcode::Or | Opcode::Xor, [a, b]) => match (a.narrow_to(b), b.narrow_to(a)) {
            (Some(x), Some(y)) if x.disjoint(y) || y.disjoint(x) => sum(*a, *b, 1, bits),
            _ => mixed(*a, *b, bits).or_else(|| mixed(*b, *a, bits)),
        },
        (Opcode::Mul, [a, b]) => product(variant, *a, *b, ops),
        (Opcode::Mad, [a, b, c]) => {
            product(variant, *a, *b, ops).and_then(|p| sum(p, *c, 1, if variant.has(Mod::Wide) { 64 } else { bits }))
        }
        (Opcode::Shl, [a, _]) => match ops[1] {
            Operand::Imm(k) if k < 31 => scaled(*a, 1 << k, bits),
            _ => None,
        },
        (Opcode::Shr, [a, _]) => match ops[1] {
            Operand::Imm(k) if k < u64::from(bits) => shifted(*a, k as u32, bits, t.is_signed()),
            _ => None,
        },
        (Opcode::And, [a, b]) => match (ops[0], ops[1]) {
            (_, Operand::Imm(m)) => masked(*a, m, bits),
            (Operand::Imm(m), _) => masked(*b, m, bits),
            _ => None,
        },
        (Opcode::Bfe, [a, _, _]) => match (ops[1], ops[2]) {
            (Operand::Imm(from), Operand::Imm(length)) => field(*a, from & 255, length & 255, bits, t.is_signed()),
            _ => None,
        },
        (Opcode::Selp, [a, b, p]) if p.shape == Shape::Uniform => Some(a.join(*b)),
        (Opcode::Div, [a, _]) if !t.is_signed() => match ops[1] {
            Operand::Imm(d) if d.is_power_of_two() => shifted(*a, d.trailing_zeros(), bits, false),
            _ => None,
        },
        (Opcode::Rem, [a, _]) if !t.is_signed() => match ops[1] {
            Operand::Imm(d) if d.is_power_of_two() => masked(*a, d - 1, bits),
            _ => None,
        },
        (Opcode::Setp, [a, b]) => compared(variant, *a, *b, ops[1]),
        (Opcode::Mov, [a]) => Some(*a),
        (Opcode::Cvt, [a]) => match variant.ty(Var::U) {
            Some(u) if u.is_int() && u.bits() == 32 && bits == 64 => widened(*a, u.is_signed()),
            Some(u) if u.is_int() && u.bits() == bits => Some(*a),
            Some(u) if u.is_int() && u.bits() == 64 && bits == 32 => cut(*a, 32),
            _ => None,
        },
        _ => None,
    };
    found.unwrap_or(Fact::VARYING)
}

impl Fact {
    fn narrow_to(self, other: &Fact) -> Option<Fact> {
        let (width, _) = other.rows()?;
        self.narrowed(width.min(self.rows()?.0))
    }

    /// Whether every bit that `low` may have is zero in this value, in every lane of it.
    fn disjoint(self, low: Fact) -> bool {
        let stride = self.rows().map_or(0, |(_, s)| s);
        let zeros = self.align.min(if stride == 0 { 64 } else { stride.trailing_zeros() as u8 });
        low.high <= zeros
    }
}

/// To the arithmetic of a width.
fn cut(f: Fact, bits: u32) -> Option<Fact> {
    let (width, stride) = f.rows()?;
    let stride = if bits == 32 { i64::from(stride as i32) } else { stride };
    let align = if u32::from(f.align) >= bits { 64 } else { f.align };
    Some(Fact::of_rows(width, stride, align, f.high.min(bits as u8), f.sure))
}

/// `a + sign * b`
fn sum(a: Fact, b: Fact, sign: i64, bits: u32) -> Option<Fact> {
    let (wa, sa) = a.rows()?;
    let (wb, sb) = b.rows()?;
    let width = wa.min(wb);
    let (a, b) = (a.narrowed(width)?, b.narrowed(width)?);
    let stride = sa.checked_add(sb.checked_mul(sign)?)?;
    // A difference may be below zero, and a sum beyond the width comes back from below.
    let high = if sign > 0 { a.high.max(b.high).saturating_add(1) } else { 64 };
    let high = if u32::from(high) > bits { 64 } else { high };
    cut(Fact::of_rows(width, stride, a.align.min(b.align), high, a.sure && b.sure), bits)
}

/// `k * a`
fn scaled(a: Fact, k: i64, bits: u32) -> Option<Fact> {
    let (width, stride) = a.rows()?;
    let align = a.align.saturating_add(k.trailing_zeros() as u8).min(64);
    let high = if k > 0 { a.high.saturating_add(64 - k.leading_zeros() as u8) } else { 64 };
    let high = if u32::from(high) > bits { 64 } else { high };
    cut(Fact::of_rows(width, stride.checked_mul(k)?, align, high, a.sure), bits)
}

fn product(variant: &Variant, a: Fact, b: Fact, ops: &[Operand]) -> Option<Fact> {
    let (t, wide) = (variant.t(), variant.has(Mod::Wide));
    let bits = if wide { 64 } else { t.bits() };
    if wide && t.bits() != 32 {
        return None;
    }
    let extend = |f: Fact| if wide { widened(f, t.is_signed()) } else { Some(f) };
    let constant = |o: &Operand| match o {
        Operand::Imm(v) if t.bits() == 32 && (t.is_signed() || !wide) => Some(i64::from(*v as u32 as i32)),
        Operand::Imm(v) if t.bits() == 32 => Some(i64::from(*v as u32)),
        Operand::Imm(v) => Some(*v as i64),
        _ => None,
    };
    match (constant(&ops[0]), constant(&ops[1])) {
        (_, Some(k)) => scaled(extend(a)?, k, bits),
        (Some(k), _) => scaled(extend(b)?, k, bits),
        _ => {
            let (a, b) = (extend(a)?, extend(b)?);
            let ((wa, 0), (wb, 0)) = (a.rows()?, b.rows()?) else { return None };
            let high = a.high.saturating_add(b.high);
            let high = if u32::from(high) > bits { 64 } else { high };
            let align = a.align.saturating_add(b.align).min(64);
            cut(Fact::of_rows(wa.min(wb), 0, align, high, a.sure && b.sure), bits)
        }
    }
}

/// From 32 to 64 bits.
fn widened(a: Fact, signed: bool) -> Option<Fact> {
    let (width, stride) = a.rows()?;
    a.span()?;
    let high = if signed && a.high > 31 { 64 } else { a.high.min(32) };
    // Values that the operand does not prove to stay in their row may still do so.
    let sure = a.sure && (stride == 0 || a.straight());
    Some(Fact::of_rows(width, stride, a.align, high, sure))
}

/// `a >> k`, where what is shifted out is the same along each row, or nothing.
fn shifted(a: Fact, k: u32, bits: u32, signed: bool) -> Option<Fact> {
    let (own, _) = a.rows()?;
    let (k8, high) = (k as u8, if signed && u32::from(a.high) >= bits { 64 } else { a.high.min(bits as u8) });
    let high = if high == 64 { 64 } else { high.saturating_sub(k8) };
    let first = a;
    WIDTHS.into_iter().filter(|w| *w <= own).find_map(|w| {
        let a = a.narrowed(w)?;
        let (_, stride) = a.rows()?;
        let align = if a.align == 64 { 64 } else { a.align.saturating_sub(k8) };
        // Lanes differ only below bit k.
        if a.carry_free(k) {
            let step = i64::from(w) * stride;
            let even = own == 32 && step % (1i64 << k.min(62)) == 0;
            let outer = even.then(|| (step >> k.min(62), first.align.saturating_sub(k8)));
            return Some(Fact { outer, ..Fact::of_rows(w, 0, align, high, a.sure) });
        }
        let whole = k < 62 && stride % (1i64 << k) == 0 && u32::from(a.align) >= k;
        (whole && a.carry_free(bits - 1)).then(|| Fact::of_rows(w, stride >> k, align, high, a.sure))
    })
}

/// `a ^ b` or `a | b`, where `b` is the same along rows whose lanes differ only in bits that are zero in it.
fn mixed(a: Fact, b: Fact, bits: u32) -> Option<Fact> {
    let (wa, _) = a.rows()?;
    let (wb, 0) = b.rows()? else { return None };
    WIDTHS.into_iter().filter(|w| *w <= wa.min(wb)).find_map(|w| {
        let (a, b) = (a.narrowed(w)?, b.narrowed(w)?);
        let (_, stride) = a.rows()?;
        let fits = a.carry_free(u32::from(b.align).min(bits));
        fits.then(|| Fact::of_rows(w, stride, a.align.min(b.align), a.high.max(b.high), a.sure && b.sure))
    })
}

/// `length` bits of `a`, from bit `from` on.
fn field(a: Fact, from: u64, length: u64, bits: u32, signed: bool) -> Option<Fact> {
    if length == 0 || from + length > u64::from(bits) || length >= u64::from(bits) {
        return None;
    }
    let found = masked(shifted(a, from as u32, bits, false)?, (1 << length) - 1, bits)?;
    // The highest bit of the field is its sign.
    let positive = u64::from(found.high) < length;
    match found.rows()? {
        (width, 0) if signed && !positive => Some(Fact::of_rows(width, 0, found.align, 64, found.sure)),
        _ => (!signed || positive).then_some(found),
    }
}

/// `a < b` and its like, where `b` lies where no row of `a` passes by.
pub(super) fn compared(variant: &Variant, a: Fact, b: Fact, bound: Operand) -> Option<Fact> {
    // The bits in which lanes differ, and in which the bound must be zero, or all ones where rows end on it.
    let k = 64 - a.span()?.leading_zeros();
    if b.shape != Shape::Uniform {
        return None;
    }
    let begins = match bound {
        Operand::Imm(v) => v.trailing_zeros(),
        _ => u32::from(b.align),
    };
    let ends = match bound {
        Operand::Imm(v) => v.trailing_ones(),
        _ => 0,
    };
    let agrees = match Relation::of(variant)? {
        Relation::Less | Relation::AtLeast => begins >= k,
        Relation::Greater | Relation::AtMost => ends >= k,
        Relation::Equal | Relation::Unequal => false,
    };
    (agrees && a.carry_free(k) && a.rows()?.0 == 32 && a.sure).then_some(Fact::UNIFORM)
}

/// `a & mask`, for masks of low bits and masks that clear low bits.
fn masked(a: Fact, mask: u64, bits: u32) -> Option<Fact> {
    let all = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let mask = mask & all;
    let (own, _) = a.rows()?;
    let low = mask & mask.wrapping_add(1) == 0;
    let k = if low { mask.count_ones() } else { mask.trailing_zeros() };
    let high = if low { a.high.min(k as u8) } else { a.high.min((64 - mask.leading_zeros()) as u8) };
    // Rows that differ only in bits that are dropped.
    if let Some((step, align)) = a.outer
        && !low
        && step >= 0
        && step.checked_mul(i64::from(32 / own) - 1).is_some_and(|s| (s as u64) < 1 << k.min(u32::from(align)).min(62))
    {
        return Some(Fact::of_rows(32, 0, mask.trailing_zeros() as u8, high, a.sure));
    }
    WIDTHS.into_iter().filter(|w| *w <= own).find_map(|w| {
        let a = a.narrowed(w)?;
        let (_, stride) = a.rows()?;
        // Lanes differ only below bit k: those bits are kept whole or dropped whole.
        let within = a.carry_free(k);
        if low && within {
            let align = if u32::from(a.align) >= k { 64 } else { a.align };
            return Some(Fact::of_rows(w, stride, align, high, a.sure));
        }
        let dropped = !low && within;
        (dropped || stride == 0).then(|| Fact::of_rows(w, 0, a.align.max(mask.trailing_zeros() as u8), high, a.sure))
    })
}

#[cfg(test)]
mod tests;
