//! The results of atomic operations and reductions (manual, sections 9.7.13.5, 9.7.13.6 and 9.7.9.14), for every
//! engine.
//!
//! An [`Rmw`] is an operation on elements of a type. Engines choose how to make it atomic; signedness of comparisons,
//! NaN results and flushing of subnormals are defined here.

use super::fp;
pub use margay_ir::AtomicOp;
use margay_isa::{Kind, Type, Variant};

/// How an operation interprets the bits of an element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Number {
    /// An integer, or bits.
    Integer {
        /// Whether `Min` and `Max` compare signed numbers.
        signed: bool,
    },
    /// One `.f16` or `.bf16`, or a pair of them, each an atomic operation of its own.
    Half {
        /// `.bf16` instead of `.f16`.
        bf16: bool,
        /// A pair.
        packed: bool,
    },
    /// Single precision: a NaN becomes [`fp::NAN32`].
    Single,
    /// Double precision: the first operand that is a NaN is the result (see [`fp::keep64`]).
    Double,
}

/// An operation on elements of a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rmw {
    /// The operation.
    pub op: AtomicOp,
    /// The type of an element.
    pub ty: Type,
}

impl Rmw {
    /// The operation of a variant; `None` if it has none.
    pub fn of(v: &Variant) -> Option<Rmw> {
        Some(Rmw { op: AtomicOp::of(v)?, ty: v.t() })
    }

    /// The interpretation of the bits. Operations that only move values treat every type as bits.
    pub fn number(self) -> Number {
        let moves = matches!(self.op, AtomicOp::Exch | AtomicOp::Cas);
        match self.ty {
            _ if moves => Number::Integer { signed: false },
            Type::F16 => Number::Half { bf16: false, packed: false },
            Type::F16x2 => Number::Half { bf16: false, packed: true },
            Type::Bf16 => Number::Half { bf16: true, packed: false },
            Type::Bf16x2 => Number::Half { bf16: true, packed: true },
            Type::F32 if self.op == AtomicOp::Add => Number::Single,
            Type::F64 if self.op == AtomicOp::Add => Number::Double,
            ty => Number::Integer { signed: ty.kind() == Kind::Signed },
        }
    }

    /// Whether subnormal operands and results are flushed to zeros of their sign: for single-precision sums everywhere
    /// but in shared memory, regardless of the state space of the address in the instruction (manual, section 9.7.13.5).
    pub fn flushes(self, shared: bool) -> bool {
        self.number() == Number::Single && !shared
    }

    /// The new value of an element of up to 64 bits, zero-extended as `old`, `b` and `c` are; `flush` is the result of
    /// [`Rmw::flushes`].
    #[inline]
    pub fn apply(self, flush: bool, old: u64, b: u64, c: u64) -> u64 {
        match self.number() {
            Number::Integer { signed } => self.integer(signed, old, b, c),
            Number::Single => {
                let f = |v: u64| if flush { fp::flush(f32::from_bits(v as u32)) } else { f32::from_bits(v as u32) };
                let sum = f(old) + f(b);
                fp::canon(if flush { fp::flush(sum) } else { sum }).to_bits().into()
            }
            Number::Double => {
                let (x, y) = (f64::from_bits(old), f64::from_bits(b));
                fp::keep64(x + y, x, y).to_bits()
            }
            Number::Half { bf16, packed: false } => self.half(bf16, old as u16, b as u16).into(),
            Number::Half { bf16, packed: true } => {
                let low = self.half(bf16, old as u16, b as u16);
                let high = self.half(bf16, (old >> 16) as u16, (b >> 16) as u16);
                u64::from(high) << 16 | u64::from(low)
            }
        }
    }

    /// Whether the operation changes memory: polling with an atomic must not count as progress.
    pub fn changes(self, flush: bool, old: u64, b: u64, c: u64) -> bool {
        let mask = u64::MAX >> (64 - self.ty.bits().min(64));
        (self.apply(flush, old, b, c) ^ old) & mask != 0
    }

    fn integer(self, signed: bool, old: u64, b: u64, c: u64) -> u64 {
        let bits = self.ty.bits().min(64);
        let mask = u64::MAX >> (64 - bits);
        // Flipping the sign bit turns the signed order into the unsigned one.
        let key = |v: u64| if signed { v ^ 1 << (bits - 1) } else { v };
        let (old, b, c) = (old & mask, b & mask, c & mask);
        let new = match self.op {
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
            AtomicOp::Min if key(b) < key(old) => b,
            AtomicOp::Max if key(b) > key(old) => b,
            AtomicOp::Min | AtomicOp::Max => old,
        };
        new & mask
    }

    fn half(self, bf16: bool, a: u16, b: u16) -> u16 {
        let from = if bf16 { fp::from_bf16 } else { fp::from_f16 };
        let to = if bf16 { fp::to_bf16 } else { fp::to_f16 };
        let (x, y) = (from(a), from(b));
        // The exact sum of two halves needs more than 24 bits only where the smaller one is below a quarter of the
        // larger one's last place; `to_f16` and `to_bf16` round correctly if the sum is rounded to odd first (in double
        // precision, where the sum of two bfloats of very different size may still be inexact).
        let r = match self.op {
            AtomicOp::Min => extreme(x, y, false),
            AtomicOp::Max => extreme(x, y, true),
            _ => fp::narrow_odd(fp::fma_odd(f64::from(x), 1.0, f64::from(y))),
        };
        if r.is_nan() { fp::NAN16 } else { to(r) }
    }
}

/// Minimum or maximum of floating-point numbers: if one is NaN, the other; -0 is below +0.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn new(op: AtomicOp, ty: Type, old: u64, b: u64) -> u64 {
        Rmw { op, ty }.apply(false, old, b, 0)
    }

    #[test]
    fn counters_wrap_as_the_manual_says() {
        // inc(r, s) = r >= s ? 0 : r + 1; dec(r, s) = r == 0 || r > s ? s : r - 1
        let w = |op, old, b| new(op, Type::U32, old, b);
        assert_eq!([w(AtomicOp::Inc, 3, 5), w(AtomicOp::Inc, 5, 5), w(AtomicOp::Inc, 9, 5)], [4, 0, 0]);
        assert_eq!([w(AtomicOp::Dec, 3, 5), w(AtomicOp::Dec, 0, 5), w(AtomicOp::Dec, 9, 5)], [2, 5, 5]);
    }

    #[test]
    fn signs_decide_extremes() {
        let ones = u64::from(u32::MAX);
        assert_eq!(new(AtomicOp::Min, Type::S32, 1, ones), ones);
        assert_eq!(new(AtomicOp::Min, Type::U32, 1, ones), 1);
        assert_eq!(new(AtomicOp::Max, Type::S64, 1, u64::MAX), 1);
        assert_eq!(new(AtomicOp::Max, Type::U64, 1, u64::MAX), u64::MAX);
    }

    #[test]
    fn integers_keep_to_their_width() {
        assert_eq!(new(AtomicOp::Add, Type::U32, u32::MAX.into(), 1), 0);
        assert_eq!(Rmw { op: AtomicOp::Cas, ty: Type::B16 }.apply(false, 5, 0xabcd_0005, 0x1_0007), 7);
        assert_eq!(new(AtomicOp::Exch, Type::F32, 1, 0xffff_ffff), 0xffff_ffff);
    }

    #[test]
    fn global_single_sums_flush_subnormals_and_shared_ones_do_not() {
        let sum = Rmw { op: AtomicOp::Add, ty: Type::F32 };
        assert_eq!(sum.apply(sum.flushes(false), 1, 1, 0), 0);
        assert_eq!(sum.apply(sum.flushes(true), 1, 1, 0), 2);
        assert!(!Rmw { ty: Type::F64, ..sum }.flushes(false));
        assert!(!Rmw { op: AtomicOp::Exch, ..sum }.flushes(false));
    }

    #[test]
    fn operations_without_a_change_are_recognized() {
        let change = |op, old, b, c| Rmw { op, ty: Type::U32 }.changes(false, old, b, c);
        assert!(!change(AtomicOp::Add, 7, 0, 0) && change(AtomicOp::Add, 7, 1, 0));
        assert!(!change(AtomicOp::Max, 7, 7, 0) && change(AtomicOp::Max, 7, 8, 0));
        assert!(!change(AtomicOp::Cas, 7, 6, 5) && change(AtomicOp::Cas, 7, 7, 5));
        assert!(!change(AtomicOp::Inc, 0, 0, 0) && change(AtomicOp::Dec, 0, 3, 0));
    }

    #[test]
    fn neutral_operands_change_nothing() {
        let types = [Type::U32, Type::S32, Type::B32, Type::U64, Type::S64, Type::B64, Type::B16];
        for (op, ty) in AtomicOp::ALL.into_iter().flat_map(|op| types.map(|ty| (op, ty))) {
            let Some(neutral) = op.neutral(ty) else { continue };
            for old in [0, 1, 7, 0x7fff, 0x8000, i32::MAX as u64, 1 << 31, i64::MAX as u64, 1 << 63, u64::MAX] {
                assert!(!Rmw { op, ty }.changes(false, old, neutral, 0), "{op:?} {ty:?} {old:#x}");
            }
        }
        let without = [AtomicOp::Exch, AtomicOp::Cas, AtomicOp::Inc, AtomicOp::Dec];
        assert!(without.iter().all(|op| op.neutral(Type::U32).is_none()) && AtomicOp::Add.neutral(Type::F32).is_none());
    }

    #[test]
    fn half_sums_round_once() {
        // 1 + 2^-11 is a tie in f16 (ten bits of fraction) and goes to even; anything above it goes up.
        let add = |a, b| new(AtomicOp::Add, Type::F16, a, b);
        assert_eq!(add(0x3c00, 0x1000), 0x3c00);
        assert_eq!(add(0x3c00, 0x1001), 0x3c01);
        assert_eq!(add(0x3c01, 0x1000), 0x3c02);
        assert_eq!(add(0x7bff, 0x7bff), 0x7c00);
        // bfloat16: 2^100 + 2^-100 keeps 2^100; 1 + 2^-8 ties to even.
        let add = |a, b| new(AtomicOp::Add, Type::Bf16, a, b);
        assert_eq!(add(0x7180, 0x0d80), 0x7180);
        assert_eq!(add(0x3f80, 0x3b80), 0x3f80);
        assert_eq!(add(0x3f81, 0x3b80), 0x3f82);
    }
}
