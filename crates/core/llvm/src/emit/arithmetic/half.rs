//! Half precision: `.f16` and `.bf16`, scalars and pairs (manual, section 9.7.4).
//!
//! Operands are widened to single precision, which is exact, and results are rounded back once. An intermediate result
//! that single precision cannot hold is rounded *to odd*: its lowest bit is sticky, so that the second rounding is
//! correct. Hosts with AVX512-FP16 compute in the format itself. NaN results are `0x7fff`.

use crate::emit::{
    function::{Emitter, Result},
    text::{Elem, Val, constant},
};
use margay_ir::Operand;
use margay_isa::{Mod, Opcode, Type, Variant, Word};

/// The canonical NaN of half-precision rows.
const NAN: i128 = 0x7fff;

/// A half-precision format with the modifiers of a row.
#[derive(Clone, Copy)]
pub(in crate::emit) struct Half {
    pub bf16: bool,
    pub ftz: bool,
    sat: bool,
    relu: bool,
    propagate: bool,
    xorsign: bool,
}

impl Half {
    /// The format and modifiers of a row; `None` if there is no native code for a modifier.
    pub fn of(variant: &Variant, t: Type) -> Option<Half> {
        let bf16 = match t {
            Type::F16 | Type::F16x2 => false,
            Type::Bf16 | Type::Bf16x2 => true,
            _ => return None,
        };
        let known = |w: &Word| match w {
            Word::Mod(m) => {
                matches!(m, Mod::Rn | Mod::Ftz | Mod::Sat | Mod::Relu | Mod::PropagateNan | Mod::Xorsign | Mod::Abs)
            }
            Word::Type(_) => true,
        };
        let has = |m| variant.has(m);
        variant.words.iter().all(known).then(|| Half {
            bf16,
            ftz: has(Mod::Ftz),
            sat: has(Mod::Sat),
            relu: has(Mod::Relu),
            propagate: has(Mod::PropagateNan),
            xorsign: has(Mod::Xorsign),
        })
    }

    /// A format without modifiers.
    pub fn plain(bf16: bool) -> Half {
        Half { bf16, ftz: false, sat: false, relu: false, propagate: false, xorsign: false }
    }

    /// A format, with or without flushing of subnormal operands.
    pub fn flushing(bf16: bool, ftz: bool) -> Half {
        Half { ftz, ..Half::plain(bf16) }
    }

    /// The same format with these modifiers.
    pub fn with(self, sat: bool, relu: bool) -> Half {
        Half { sat, relu, ..self }
    }

    fn infinity(self) -> i128 {
        if self.bf16 { 0x7f80 } else { 0x7c00 }
    }
}

impl Emitter<'_> {
    /// Applies `f` to the low and to the high halves of words.
    pub fn by_halves<T>(&mut self, words: &[Val], mut f: impl FnMut(&mut Self, &[Val]) -> T) -> [T; 2] {
        [0, 16].map(|shift| {
            let part = |v: &Val| {
                let v = self.w.op_const("lshr", v, shift);
                self.w.resize(&v, Elem::I16, false)
            };
            let parts: Vec<Val> = words.iter().map(part).collect();
            f(self, &parts)
        })
    }

    /// Packs two halves into a word.
    pub fn join_halves(&mut self, low: &Val, high: &Val) -> Val {
        let (low, high) = (self.w.cast("zext", low, Elem::I32), self.w.cast("zext", high, Elem::I32));
        let high = self.w.op_const("shl", &high, 16);
        self.w.op("or", &low, &high)
    }

    /// Emits arithmetic on halves; `None` where the helper must do it.
    pub fn half_row(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Option<Val>> {
        let (op, t) = (variant.op, variant.t());
        let Some(half) = Half::of(variant, t).filter(|h| self.has_halves(h.bf16)) else { return Ok(None) };
        let known = matches!(
            (op, srcs.len()),
            (Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Min | Opcode::Max, 2)
                | (Opcode::Fma, 3)
                | (Opcode::Neg | Opcode::Abs, 1)
        );
        if !known || variant.ty(margay_isa::Var::U).is_some() {
            return Ok(None);
        }
        let packed = t.bits() == 32;
        let elem = Elem::int(t.bits());
        let v = srcs.iter().map(|s| self.value(s, elem)).collect::<Result<Vec<Val>>>()?;
        if !packed {
            return Ok(Some(self.half_result(op, half, &v)));
        }
        let [low, high] = self.by_halves(&v, |e, v| e.half_result(op, half, v));
        Ok(Some(self.join_halves(&low, &high)))
    }

    /// Whether the host converts this format: `.f16` needs F16C.
    pub fn has_halves(&self, bf16: bool) -> bool {
        bf16 || self.options.half_floats
    }

    fn half_result(&mut self, op: Opcode, half: Half, v: &[Val]) -> Val {
        match op {
            Opcode::Neg | Opcode::Abs => {
                let v = match op {
                    Opcode::Neg => self.w.op_const("xor", &v[0], 0x8000),
                    _ => self.w.op_const("and", &v[0], 0x7fff),
                };
                // `neg` and `abs` never flush `.bf16`.
                if half.ftz && !half.bf16 { self.flush_half(half, &v) } else { v }
            }
            Opcode::Min | Opcode::Max => self.half_extreme(op == Opcode::Max, half, &v[0], &v[1]),
            // Saturation and `.relu` are rare.
            _ if self.options.half_arithmetic && !half.bf16 && !half.sat && !half.relu => self.native_half(op, half, v),
            _ => {
                let x: Vec<Val> = v.iter().map(|v| self.read_half(half, v)).collect();
                let r = match (op, half.bf16) {
                    (Opcode::Add, _) => self.w.op("fadd", &x[0], &x[1]),
                    (Opcode::Sub, _) => self.w.op("fsub", &x[0], &x[1]),
                    (Opcode::Mul, false) => self.w.op("fmul", &x[0], &x[1]),
                    (Opcode::Mul, true) => {
                        let [a, b] = [0, 1].map(|i| self.w.cast("fpext", &x[i], Elem::F64));
                        let p = self.w.op("fmul", &a, &b);
                        self.narrow_odd(&p)
                    }
                    (_, false) => self.fused_odd(&x[0], &x[1], &x[2]),
                    (_, true) => {
                        let [a, b, c] = [0, 1, 2].map(|i| self.w.cast("fpext", &x[i], Elem::F64));
                        let s = self.fused_odd(&a, &b, &c);
                        self.narrow_odd(&s)
                    }
                };
                self.write_half(half, &r)
            }
        }
    }

    /// `add`, `sub`, `mul` or `fma` by the host's own arithmetic on `.f16`, which rounds once and keeps subnormals whatever
    /// the control register says of other formats.
    fn native_half(&mut self, op: Opcode, half: Half, v: &[Val]) -> Val {
        let read = |e: &mut Self, v: &Val| {
            let v = if half.ftz { e.flush_half(half, v) } else { v.clone() };
            e.w.cast("bitcast", &v, Elem::F16)
        };
        let x: Vec<Val> = v.iter().map(|v| read(self, v)).collect();
        let r = match op {
            Opcode::Add => self.w.op("fadd", &x[0], &x[1]),
            Opcode::Sub => self.w.op("fsub", &x[0], &x[1]),
            Opcode::Mul => self.w.op("fmul", &x[0], &x[1]),
            _ => {
                let (a, b) = self.w.agree(&x[0], &x[1]);
                let (a, c) = self.w.agree(&a, &x[2]);
                let (a, b) = self.w.agree(&a, &b);
                self.w.intrinsic("llvm.fma", a.ty, &[&a, &b, &c])
            }
        };
        let is_nan = self.w.cmp("fcmp uno", &r, &r);
        let bits = self.w.cast("bitcast", &r, Elem::I16);
        let bits = self.w.select(&is_nan, &constant(bits.ty, NAN), &bits);
        if half.ftz { self.flush_half(half, &bits) } else { bits }
    }

    /// Flushes subnormals to zero, preserving the sign.
    fn flush_half(&mut self, half: Half, v: &Val) -> Val {
        let exponent = self.w.op_const("and", v, half.infinity());
        let small = self.w.cmp("icmp eq", &exponent, &constant(v.ty, 0));
        let zero = self.w.op_const("and", v, 0x8000);
        self.w.select(&small, &zero, v)
    }

    /// Widens a half to single precision, exactly; NaN payloads are unspecified.
    pub fn read_half(&mut self, half: Half, v: &Val) -> Val {
        let v = if half.ftz { self.flush_half(half, v) } else { v.clone() };
        if half.bf16 {
            let v = self.w.cast("zext", &v, Elem::I32);
            let v = self.w.op_const("shl", &v, 16);
            return self.w.cast("bitcast", &v, Elem::F32);
        }
        let v = self.w.cast("bitcast", &v, Elem::F16);
        self.w.cast("fpext", &v, Elem::F32)
    }

    /// Rounds a single to nearest even and applies the modifiers.
    pub fn write_half(&mut self, half: Half, v: &Val) -> Val {
        let v = if half.sat { self.saturate(v, Type::F32) } else { v.clone() };
        let zero = constant(v.ty, 0);
        let v = if half.relu {
            let low = self.w.cmp("fcmp ole", &v, &zero);
            self.w.select(&low, &zero, &v)
        } else {
            v
        };
        let bits = self.w.cast("bitcast", &v, Elem::I32);
        let rounded = if half.bf16 {
            let lowest = self.w.op_const("lshr", &bits, 16);
            let odd = self.w.op_const("and", &lowest, 1);
            let up = self.w.op_const("add", &odd, 0x7fff);
            let sum = self.w.op("add", &bits, &up);
            let upper = self.w.op_const("lshr", &sum, 16);
            self.w.cast("trunc", &upper, Elem::I16)
        } else {
            let h = self.w.cast("fptrunc", &v, Elem::F16);
            self.w.cast("bitcast", &h, Elem::I16)
        };
        let rounded = self.canonical_half(&bits, &rounded);
        if half.ftz { self.flush_half(half, &rounded) } else { rounded }
    }

    /// Replaces a half by the canonical NaN where the single it came from is a NaN.
    pub fn canonical_half(&mut self, bits: &Val, half: &Val) -> Val {
        let magnitude = self.w.op_const("and", bits, 0x7fff_ffff);
        let is_nan = self.w.cmp("icmp ugt", &magnitude, &constant(bits.ty, 0x7f80_0000));
        self.w.select(&is_nan, &constant(half.ty, NAN), half)
    }

    /// `min` and `max` on the encodings, which are ordered like the values once negative ones are inverted; -0 is below
    /// +0.
    fn half_extreme(&mut self, max: bool, half: Half, a: &Val, b: &Val) -> Val {
        let signs = self.w.op("xor", a, b);
        let signs = self.w.op_const("and", &signs, 0x8000);
        let [a, b] = [a, b].map(|v| {
            let v = if half.ftz { self.flush_half(half, v) } else { v.clone() };
            if half.xorsign { self.w.op_const("and", &v, 0x7fff) } else { v }
        });
        let [(a_nan, a_key), (b_nan, b_key)] = [&a, &b].map(|v| {
            let magnitude = self.w.op_const("and", v, 0x7fff);
            let nan = self.w.cmp("icmp ugt", &magnitude, &constant(v.ty, half.infinity()));
            let sign = self.w.op_const("ashr", v, 15);
            let flip = self.w.op_const("or", &sign, 0x8000);
            (nan, self.w.op("xor", v, &flip))
        });
        let wins = self.w.cmp(if max { "icmp ugt" } else { "icmp ult" }, &a_key, &b_key);
        let a_counts = self.w.op_const("xor", &a_nan, 1);
        let wins = self.w.op("and", &wins, &a_counts);
        let first = self.w.op("or", &wins, &b_nan);
        let d = self.w.select(&first, &a, &b);
        let d = if half.xorsign {
            let magnitude = self.w.op_const("and", &d, 0x7fff);
            self.w.op("or", &magnitude, &signs)
        } else {
            d
        };
        let bad = self.w.op(if half.propagate { "or" } else { "and" }, &a_nan, &b_nan);
        self.w.select(&bad, &constant(d.ty, NAN), &d)
    }

    /// `a * b + c` with an exact product, rounded to odd: Knuth's TwoSum yields the rounding error of the sum.
    pub fn fused_odd(&mut self, a: &Val, b: &Val, c: &Val) -> Val {
        let p = self.w.op("fmul", a, b);
        let s = self.w.op("fadd", &p, c);
        let back = self.w.op("fsub", &s, &p);
        let rest = self.w.op("fsub", &s, &back);
        let (first, second) = (self.w.op("fsub", &p, &rest), self.w.op("fsub", c, &back));
        let error = self.w.op("fadd", &first, &second);
        let integer = Elem::int(s.ty.elem.bits());
        let (bits, toward) = (self.w.cast("bitcast", &s, integer), self.w.cast("bitcast", &error, integer));
        let signs = self.w.op("xor", &bits, &toward);
        let inward = self.w.cmp("icmp slt", &signs, &constant(signs.ty, 0));
        let step = self.w.select(&inward, &constant(bits.ty, -1), &constant(bits.ty, 1));
        let lowest = self.w.op_const("and", &bits, 1);
        let even = self.w.cmp("icmp eq", &lowest, &constant(bits.ty, 0));
        let inexact = self.w.cmp("fcmp one", &error, &constant(error.ty, 0));
        let moves = self.w.op("and", &even, &inexact);
        let moved = self.w.op("add", &bits, &step);
        let bits = self.w.select(&moves, &moved, &bits);
        self.w.cast("bitcast", &bits, s.ty.elem)
    }

    /// Converts double to single precision, rounding to odd.
    fn narrow_odd(&mut self, x: &Val) -> Val {
        let y = self.w.cast("fptrunc", x, Elem::F32);
        let back = self.w.cast("fpext", &y, Elem::F64);
        let [large, size] = [&back, x].map(|v| self.w.intrinsic("llvm.fabs", v.ty, &[v]));
        let too_big = self.w.cmp("fcmp ogt", &large, &size);
        let inexact = self.w.cmp("fcmp one", &back, x);
        let bits = self.w.cast("bitcast", &y, Elem::I32);
        let [too_big, inexact] = [too_big, inexact].map(|v| self.w.cast("zext", &v, Elem::I32));
        let bits = self.w.op("sub", &bits, &too_big);
        let bits = self.w.op("or", &bits, &inexact);
        self.w.cast("bitcast", &bits, Elem::F32)
    }
}
