//! How values depend on the lane: shapes, and arithmetic on shapes for addresses.
//!
//! A warp of a 16 x 16 block is two rows of 16 threads. In general, the lanes of a warp form rows of 4, 8, 16 or all 32 of
//! them along which `%tid.x` increases, and an index is a base for each row plus a stride along it. Sums, differences and
//! products with constants preserve this form in arithmetic of the register's width. Widening preserves it only if no lane wraps
//! around inside a row; two more facts prove that for most indices: the alignment of the first value of each row, and
//! a power of two that bounds all values. If they do not, the shape is a *hint*: code must check at run time.

use crate::{MemSpace, Operand};
use margay_isa::{Component, Effect, Kind, Mod, Opcode, Special, Var, Variant};

/// How a value depends on the lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Equal in all lanes that execute together.
    Uniform,
    /// In rows of `width` lanes: lane `i` holds the value of its row's first lane plus `stride * (i % width)`, in the
    /// arithmetic of the register's width.
    Affine {
        /// Lanes of a row: 4, 8, 16 or 32.
        width: u32,
        /// From one lane to the next.
        stride: i64,
    },
    /// Anything.
    Varying,
}

/// The widths that rows can have, widest first.
const WIDTHS: [u32; 4] = [32, 16, 8, 4];

/// What is known of the block shape: threads in x, y, z, if the code is specialized for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct WarpShape {
    /// `%ntid`, if known.
    pub block: Option<[u32; 3]>,
    /// Lanes may be at different iterations of a loop at the same time (an engine that lets lanes overtake others that spin):
    /// then nothing that a loop defines is shared by lanes.
    pub interleaved: bool,
    /// Lanes of a warp may wait for each other in the middle of a sweep, so a block may be executed again for others of them: then
    /// lanes share only what nothing but constants and parameters had a hand in.
    pub divergent: bool,
    /// The question is about all threads of a CTA instead of the lanes of a warp: what is uniform is equal in all of them, and
    /// what is divergent is reached by a part of them. Threads of different warps are not in step, so only values that no
    /// memory but constants and parameters had a hand in count.
    pub cta: bool,
    /// Registers whose rows are narrower count as varying, and so do those whose rows are narrower than a warp and not sure: code
    /// for many rows is long. 0: rows of all widths count.
    pub narrowest: u32,
}

/// All that is known of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fact {
    pub shape: Shape,
    /// The shape holds for sure; else it holds unless an index wrapped around inside a row.
    pub sure: bool,
    /// The first value of each row is a multiple of two to this; 64 for zero.
    align: u8,
    /// All values are below two to this.
    high: u8,
    /// For rows of equal values narrower than a warp: what the value grows by from one row to the next, and by which power of
    /// two that of the first is divisible.
    outer: Option<(i64, u8)>,
}

impl Fact {
    pub const VARYING: Fact = Fact { shape: Shape::Varying, sure: true, align: 0, high: 64, outer: None };
    pub const UNIFORM: Fact = Fact { shape: Shape::Uniform, sure: true, align: 0, high: 64, outer: None };

    /// A uniform value of so many bits.
    fn uniform(bits: u32) -> Fact {
        Fact { high: bits.min(64) as u8, ..Fact::UNIFORM }
    }

    pub fn constant(v: u64) -> Fact {
        Fact { align: v.trailing_zeros() as u8, high: (64 - v.leading_zeros()) as u8, ..Fact::UNIFORM }
    }

    /// Row width and stride; uniform values are rows of 32 with stride 0.
    fn rows(self) -> Option<(u32, i64)> {
        match self.shape {
            Shape::Uniform => Some((32, 0)),
            Shape::Affine { width, stride } => Some((width, stride)),
            Shape::Varying => None,
        }
    }

    fn of_rows(width: u32, stride: i64, align: u8, high: u8, sure: bool) -> Fact {
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

    /// What holds of both.
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

impl WarpShape {
    /// Shape of a coordinate.
    fn tid(self, component: Component) -> Fact {
        let Some([x, y, z]) = self.block else { return Fact { high: 10, ..Fact::VARYING } };
        let (below, own, above) = match component {
            Component::X => (1, x, y * z),
            Component::Y => (x, y, z),
            Component::Z => (x.saturating_mul(y), z, 1),
            Component::W => return Fact::constant(0),
        };
        let high = (32 - own.saturating_sub(1).leading_zeros()) as u8;
        if own == 1 {
            return Fact::constant(0);
        }
        // Lanes beyond the last thread may hold anything.
        if below == 1 && above == 1 {
            return Fact::of_rows(32, 1, 5, high, true);
        }
        let counts = below == 1;
        let period = if counts { own } else { below };
        let Some(width) = WIDTHS.into_iter().find(|w| period % w == 0) else { return Fact { high, ..Fact::VARYING } };
        let align = match counts {
            true if own == width => 64,
            true => width.trailing_zeros() as u8,
            false => 0,
        };
        Fact::of_rows(width, i64::from(counts), align, high, true)
    }

    /// What is known of a special register.
    pub(super) fn fact(self, special: Special, component: Component) -> Fact {
        use Special::*;
        match special {
            Tid if self.cta => match self.block {
                Some(b) if component == Component::W || b[component as usize] == 1 => Fact::UNIFORM,
                _ => Fact::VARYING,
            },
            Ntid | Ctaid | Nctaid | NwarpId | GridId | DynamicSmemSize | TotalSmemSize if self.cta => Fact::UNIFORM,
            _ if self.cta => Fact::VARYING,
            Clock | ClockHi | Clock64 | GlobalTimer | GlobalTimerLo | GlobalTimerHi if self.divergent => Fact::VARYING,
            Tid => self.tid(component),
            Ntid => match self.block {
                Some(b) if component != Component::W => Fact::constant(u64::from(b[component as usize])),
                _ => Fact::uniform(32),
            },
            Ctaid => Fact::uniform(31),
            LaneId => Fact::of_rows(32, 1, 64, 5, true),
            LanemaskEq | LanemaskGe | LanemaskGt | LanemaskLe | LanemaskLt => Fact::VARYING,
            _ => Fact::uniform(special.info().ty.bits()),
        }
    }

    /// What is left of a fact about a register. Rows by which a division by a mask may become uniform again are kept.
    pub(super) fn wide_enough(self, fact: Fact) -> Fact {
        match fact.shape {
            Shape::Affine { width, .. } if width < self.narrowest && fact.outer.is_none() => Fact::VARYING,
            _ => fact,
        }
    }

    /// The same for what is not sure, for which code checks at run time.
    pub(super) fn wide_enough_to_hint(self, hint: Shape) -> Shape {
        match hint {
            Shape::Affine { width, .. } if width < 32 && self.narrowest > 0 => Shape::Varying,
            _ => hint,
        }
    }

    /// Shape of a special register.
    pub fn special(self, special: Special, component: Component) -> Shape {
        self.fact(special, component).shape
    }
}

/// The result of an instruction without a guard, from what is known of its operands. `plain`: one destination, and no register
/// wider than the row's types.
pub(super) fn result(
    warp: WarpShape,
    space: Option<MemSpace>,
    variant: &Variant,
    srcs: &[Fact],
    ops: &[Operand],
    plain: bool,
) -> Fact {
    let uniform = srcs.iter().all(|s| s.shape == Shape::Uniform);
    match variant.op.row().effect {
        _ if variant.op == Opcode::Cvta => match (srcs, variant.has(Mod::Local)) {
            ([s, ..], false) => Fact { align: 0, high: 64, outer: None, ..*s },
            _ => Fact::VARYING,
        },
        Effect::Pure | Effect::Machine => match if plain { arithmetic(variant, srcs, ops) } else { Fact::VARYING } {
            found if uniform && found.shape != Shape::Uniform => Fact::UNIFORM,
            found => found,
        },
        Effect::Memory if variant.op == Opcode::Ld && uniform => match space {
            Some(MemSpace::Local) | Some(MemSpace::Generic) | None => Fact::VARYING,
            Some(MemSpace::KernelParam | MemSpace::Const) => loaded(variant),
            Some(_) if warp.cta || warp.divergent => Fact::VARYING,
            Some(_) => loaded(variant),
        },
        // So is the phase of one barrier object.
        _ if variant.op == Opcode::Mbarrier && (variant.has(Mod::TestWait) || variant.has(Mod::TryWait)) => {
            if uniform && !warp.cta && !warp.divergent { Fact::UNIFORM } else { Fact::VARYING }
        }
        // Votes are the same for all lanes that participate together; lanes with other member masks participate in other votes.
        Effect::Warp if variant.op == Opcode::Activemask && !warp.cta && !warp.divergent => Fact::UNIFORM,
        Effect::Warp if variant.op == Opcode::Vote && !warp.cta && !warp.divergent => match srcs.get(1) {
            Some(members) if members.shape != Shape::Uniform => Fact::VARYING,
            _ => Fact::UNIFORM,
        },
        _ => Fact::VARYING,
    }
}

fn loaded(variant: &Variant) -> Fact {
    if variant.t().is_signed() { Fact::UNIFORM } else { Fact::uniform(variant.t().bits()) }
}

/// Results of the operations that indices and addresses are made of.
fn arithmetic(variant: &Variant, srcs: &[Fact], ops: &[Operand]) -> Fact {
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
fn compared(variant: &Variant, a: Fact, b: Fact, bound: Operand) -> Option<Fact> {
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
    let has = |mods: &[Mod]| mods.iter().any(|m| variant.has(*m));
    let apart = has(&[Mod::Lt, Mod::Ge, Mod::Lo, Mod::Hs]) && begins >= k
        || has(&[Mod::Gt, Mod::Le, Mod::Hi, Mod::Ls]) && ends >= k;
    (apart && a.carry_free(k) && a.rows()?.0 == 32 && a.sure).then_some(Fact::UNIFORM)
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
mod tests {
    use super::*;

    /// A value of which everything is known: what it is in each lane, and what the analysis says.
    #[derive(Clone, Copy)]
    struct Known {
        lanes: [u64; 32],
        fact: Fact,
        bits: u32,
    }

    impl Known {
        fn map(self, bits: u32, fact: Option<Fact>, f: impl Fn(u64) -> u64) -> Known {
            let all = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            Known { lanes: self.lanes.map(|v| f(v) & all), fact: fact.unwrap_or(Fact::VARYING), bits }
        }

        /// Whether what is said is true. A fact that is not sure may fail only where an index wrapped around.
        fn check(&self, made: &str) {
            let Fact { shape, sure, align, high, .. } = self.fact;
            let all = if self.bits == 64 { u64::MAX } else { (1 << self.bits) - 1 };
            if let (Some((width, stride)), true) = (self.fact.rows(), sure) {
                for (l, v) in self.lanes.iter().enumerate() {
                    let first = self.lanes[l / width as usize * width as usize];
                    let want = first.wrapping_add((stride as u64).wrapping_mul(l as u64 % u64::from(width))) & all;
                    assert_eq!(*v, want, "lane {l} of {made}: {shape:?}");
                    let zeros = if first == 0 { 64 } else { first.trailing_zeros() };
                    assert!(zeros >= u32::from(align), "lane {l} of {made}: {first:#x} is no multiple of 2^{align}");
                }
            }
            if shape != Shape::Varying {
                let most = self.lanes.iter().max().copied().unwrap_or(0);
                assert!(high >= 64 || most >> high == 0, "{made}: {most:#x} is not below 2^{high}");
            }
        }
    }

    /// `%tid.x < b` is the same along a warp only where `b` divides warps.
    #[test]
    fn comparisons_that_warps_agree_on() {
        let warp = WarpShape { block: Some([256, 1, 1]), ..WarpShape::default() };
        let tid = warp.fact(Special::Tid, Component::X);
        let setp = Opcode::ALL.iter().find(|op| **op == Opcode::Setp).expect("a row");
        let variant = |m: Mod| {
            let words = [margay_isa::Word::Mod(m), margay_isa::Word::Type(margay_isa::Type::U32)];
            (0..setp.row().forms.len() as u16).find_map(|form| Variant::new(*setp, form, &words)).expect("a variant")
        };
        for m in [Mod::Lt, Mod::Le, Mod::Gt, Mod::Ge, Mod::Eq] {
            for bound in 0..300u64 {
                let agree = (0..8).all(|w| {
                    let holds = |t: u64| match m {
                        Mod::Lt => t < bound,
                        Mod::Le => t <= bound,
                        Mod::Gt => t > bound,
                        Mod::Ge => t >= bound,
                        _ => t == bound,
                    };
                    (0..32).all(|l| holds(32 * w + l) == holds(32 * w))
                });
                let found = compared(&variant(m), tid, Fact::constant(bound), Operand::Imm(bound));
                assert!(found.is_none() || agree, "%tid.x {m:?} {bound}");
                let divides = match m {
                    Mod::Lt | Mod::Ge => bound % 32 == 0,
                    Mod::Le | Mod::Gt => bound % 32 == 31,
                    _ => false,
                };
                assert_eq!(found.is_some(), divides, "%tid.x {m:?} {bound}");
            }
        }
        let varying = Operand::Special(Special::Tid, Component::X);
        assert!(compared(&variant(Mod::Lt), Fact::constant(32), tid, varying).is_none());
    }

    /// Chains of operations on `%tid` in blocks of all shapes, against what they compute.
    #[test]
    fn shapes_hold() {
        let mut state = 1u64;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let blocks = [
            [256, 1, 1],
            [16, 16, 1],
            [8, 8, 4],
            [48, 2, 1],
            [4, 64, 1],
            [32, 8, 1],
            [64, 4, 1],
            [24, 4, 3],
            [12, 8, 1],
        ];
        for round in 0..60_000u64 {
            let block: [u32; 3] = blocks[random(blocks.len() as u64) as usize];
            let warp = WarpShape { block: Some(block), ..WarpShape::default() };
            let threads = block.iter().product::<u32>() / 32;
            let first = random(u64::from(threads)) as u32 * 32;
            let [x, y, _] = block;
            let tid = |c: Component| {
                let lanes = std::array::from_fn(|l| {
                    let t = first + l as u32;
                    u64::from(match c {
                        Component::X => t % x,
                        Component::Y => t / x % y,
                        _ => t / (x * y),
                    })
                });
                Known { lanes, fact: warp.fact(Special::Tid, c), bits: 32 }
            };
            let mut values = vec![tid(Component::X), tid(Component::Y), tid(Component::Z)];
            values.iter().zip("xyz".chars()).for_each(|(v, c)| v.check(&format!("tid.{c} of {block:?}")));
            let mut made = format!("{block:?}, warp {first}");
            for _ in 0..6 {
                let a = values[random(values.len() as u64) as usize];
                let b = values[random(values.len() as u64) as usize];
                let k = random(12) as u32;
                let constant =
                    [1, 2, 3, 4, 8, 12, 16, 31, 32, 0x1fff_fffc, 0xffff_fff0, 0xffff_fffb][random(12) as usize];
                let both = |f: &dyn Fn(u64, u64) -> u64, fact| {
                    let all = if a.bits == 64 { u64::MAX } else { (1 << a.bits) - 1 };
                    let lanes = std::array::from_fn(|l| f(a.lanes[l], b.lanes[l]) & all);
                    Known { lanes, fact: Option::unwrap_or(fact, Fact::VARYING), bits: a.bits }
                };
                let sign = |v: u64, bits: u64| ((v << (64 - bits)) as i64 >> (64 - bits)) as u64;
                let (name, v) = match random(13) {
                    0 if a.bits == b.bits => ("add", both(&|a, b| a.wrapping_add(b), sum(a.fact, b.fact, 1, a.bits))),
                    1 if a.bits == b.bits => ("sub", both(&|a, b| a.wrapping_sub(b), sum(a.fact, b.fact, -1, a.bits))),
                    2 => (
                        "add",
                        a.map(a.bits, sum(a.fact, Fact::constant(constant), 1, a.bits), |v| v.wrapping_add(constant)),
                    ),
                    3 => ("mul", a.map(a.bits, scaled(a.fact, constant as i64, a.bits), |v| v.wrapping_mul(constant))),
                    4 => ("shl", a.map(a.bits, scaled(a.fact, 1 << k, a.bits), |v| v << k)),
                    5 => ("shr", a.map(a.bits, shifted(a.fact, k, a.bits, false), |v| v >> k)),
                    6 if a.bits == 32 => {
                        ("shr.s32", a.map(32, shifted(a.fact, k, 32, true), |v| (v as i32 >> k) as u32 as u64))
                    }
                    7 => ("and", a.map(a.bits, masked(a.fact, constant, a.bits), |v| v & constant)),
                    9 if a.bits == b.bits => {
                        let found = mixed(a.fact, b.fact, a.bits).or_else(|| mixed(b.fact, a.fact, a.bits));
                        if round % 2 == 0 {
                            ("xor", both(&|a, b| a ^ b, found))
                        } else {
                            ("or", both(&|a, b| a | b, found))
                        }
                    }
                    10 => {
                        let (from, length) = (random(6), 1 + u64::from(k));
                        let found = field(a.fact, from, length, a.bits, false);
                        ("bfe.u", a.map(a.bits, found, |v| v >> from & ((1 << length) - 1)))
                    }
                    11 if a.bits == 32 => {
                        let (from, length) = (random(6), 1 + u64::from(k));
                        ("bfe.s", a.map(32, field(a.fact, from, length, 32, true), |v| sign(v >> from, length)))
                    }
                    12 if a.bits == b.bits => {
                        let first = round % 2 == 0;
                        ("selp", both(&|a, b| if first { a } else { b }, Some(a.fact.join(b.fact))))
                    }
                    8 if a.bits == 32 && round % 2 == 0 => ("cvt.u64.u32", a.map(64, widened(a.fact, false), |v| v)),
                    8 if a.bits == 32 => ("cvt.s64.s32", a.map(64, widened(a.fact, true), |v| v as i32 as i64 as u64)),
                    _ => continue,
                };
                made = format!("{made}; {name} ({constant:#x} or {k})");
                v.check(&made);
                values.push(v);
            }
        }
    }
}
