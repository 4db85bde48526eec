//! Integer arithmetic, logic and shifts (manual, sections 9.7.1 and 9.7.8).

use crate::emit::{
    function::{Emitter, Result},
    text::{Elem, Val, constant, int, named},
};
use margay_ir::Operand;
use margay_isa::{Mod, Opcode, Type, Variant};

impl Emitter<'_> {
    /// Emits a row on integers of 16 to 64 bits or predicates; `None` where the helper must do it.
    pub fn integer_row(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Option<Val>> {
        let (op, t) = (variant.op, variant.t());
        let (signed, bits) = (t.is_signed(), t.bits());
        let saturates = variant.has(Mod::Sat) && !(matches!(op, Opcode::Add | Opcode::Sub) && bits == 32);
        let raised = variant.has(Mod::Relu) && !(matches!(op, Opcode::Min | Opcode::Max) && t == Type::S32);
        if saturates || raised || bits > 64 || (bits < 16 && t != Type::Pred) {
            return Ok(None);
        }
        let v = self.integer_operands(variant, srcs)?;
        Ok(match (op, &v[..]) {
            (Opcode::Add | Opcode::Sub, [a, b]) if variant.has(Mod::Sat) => {
                let (a, b) = self.w.agree(a, b);
                let full = format!("llvm.{}{}.sat", if signed { "s" } else { "u" }, op.row().name);
                Some(self.w.intrinsic(&full, a.ty, &[&a, &b]))
            }
            (Opcode::Add, [a, b]) => Some(self.w.op("add", a, b)),
            (Opcode::Sub, [a, b]) => Some(self.w.op("sub", a, b)),
            (Opcode::Neg, [a]) => Some(self.w.op("sub", &constant(a.ty, 0), a)),
            (Opcode::Mul, [a, b]) => {
                (!variant.has(Mod::Wide) || bits < 64).then(|| self.product(variant, a, b, signed))
            }
            (Opcode::Mad, [a, b, c]) => {
                let p = self.product(variant, a, b, signed);
                Some(self.w.op("add", &p, c))
            }
            (Opcode::Mul24, [a, b]) => Some(self.product24(variant, a, b, signed)),
            (Opcode::Mad24, [a, b, c]) => {
                let p = self.product24(variant, a, b, signed);
                Some(self.w.op("add", &p, c))
            }
            (Opcode::Sad, [a, b, c]) => {
                let [less, more] = [Opcode::Min, Opcode::Max].map(|op| self.integer_extreme(op, a, b, signed));
                let difference = self.w.op("sub", &more, &less);
                Some(self.w.op("add", &difference, c))
            }
            (Opcode::Min | Opcode::Max, [a, b]) => {
                let r = self.integer_extreme(op, a, b, signed);
                let zero = constant(r.ty, 0);
                Some(if variant.has(Mod::Relu) { self.w.intrinsic("llvm.smax", r.ty, &[&r, &zero]) } else { r })
            }
            (Opcode::Abs, [a]) => {
                let full = format!("llvm.abs.{}", crate::emit::text::mangle(a.ty));
                Some(self.w.intrinsic_named(&full, a.ty, &[a, &int(Elem::I1, 0)]))
            }
            (Opcode::Div | Opcode::Rem, [a, b]) => self.divide(op, a, b, signed, bits),
            (Opcode::Dp4a | Opcode::Dp2a, [a, b, c]) => {
                Some(self.dot(variant, op == Opcode::Dp2a, &[a.clone(), b.clone(), c.clone()]))
            }
            _ => self.bit_row(variant, srcs, &v),
        })
    }

    /// The rows that act on single bits and fields of bits.
    fn bit_row(&mut self, variant: &Variant, srcs: &[Operand], v: &[Val]) -> Option<Val> {
        let (op, t) = (variant.op, variant.t());
        let (signed, bits) = (t.is_signed(), t.bits());
        match (op, v) {
            (Opcode::And, [a, b]) => Some(self.w.op("and", a, b)),
            (Opcode::Or, [a, b]) => Some(self.w.op("or", a, b)),
            (Opcode::Xor, [a, b]) => Some(self.w.op("xor", a, b)),
            (Opcode::Not, [a]) => Some(self.w.op_const("xor", a, -1)),
            (Opcode::Shl | Opcode::Shr, [a, b]) => Some(self.shift(op, a, b, bits, signed)),
            (Opcode::Brev, [a]) => Some(self.w.intrinsic("llvm.bitreverse", a.ty, &[a])),
            (Opcode::Popc, [a]) => {
                let count = self.w.intrinsic("llvm.ctpop", a.ty, &[a]);
                Some(self.w.resize(&count, Elem::I32, false))
            }
            (Opcode::Clz, [a]) => {
                let full = format!("llvm.ctlz.{}", crate::emit::text::mangle(a.ty));
                let count = self.w.intrinsic_named(&full, a.ty, &[a, &int(Elem::I1, 0)]);
                Some(self.w.resize(&count, Elem::I32, false))
            }
            (Opcode::Cnot, [a]) => {
                let zero = self.w.cmp("icmp eq", a, &constant(a.ty, 0));
                Some(self.w.cast("zext", &zero, Elem::int(bits)))
            }
            (Opcode::Lop3, [a, b, c, _]) => match srcs[3] {
                Operand::Imm(table) if !variant.has(Mod::And) && !variant.has(Mod::Or) => {
                    Some(self.lop3(a, b, c, table as u8))
                }
                _ => None,
            },
            (Opcode::Bfe, [a, ..]) if !signed && let Some((from, length)) = field(srcs, bits) => {
                let v = self.w.op_const("lshr", a, i128::from(from));
                Some(self.w.op_const("and", &v, (1 << length) - 1))
            }
            (Opcode::Bfe, [a, position, length]) => Some(self.bfe(a, position, length, signed, bits)),
            (Opcode::Bfi, [a, b, position, length]) => Some(self.bfi(a, b, position, length)),
            (Opcode::Bfind, [a]) => Some(self.bfind(a, signed, variant.has(Mod::Shiftamt))),
            (Opcode::Szext, [a, n]) => Some(self.szext(a, n, signed, variant.has(Mod::Clamp))),
            (Opcode::Bmsk, [a, b]) => Some(self.bmsk(a, b, variant.has(Mod::Clamp))),
            (Opcode::Prmt, [a, b, c]) => Some(self.prmt(variant, a, b, c, &srcs[2])),
            (Opcode::Shf, [a, b, c]) => Some(self.funnel_shift(variant, a, b, c)),
            _ => None,
        }
    }

    /// The source operands, each as wide as the manual says.
    fn integer_operands(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Vec<Val>> {
        let (op, bits) = (variant.op, variant.t().bits());
        let width = |i| match (op, i) {
            (Opcode::Shl | Opcode::Shr, 1) => Elem::I32,
            (Opcode::Mad, 2) if variant.has(Mod::Wide) => Elem::int(bits * 2),
            (Opcode::Bfe, 1 | 2)
            | (Opcode::Bfi, 2 | 3)
            | (Opcode::Szext, 1)
            | (Opcode::Bmsk, _)
            | (Opcode::Dp4a | Opcode::Dp2a | Opcode::Prmt, _) => Elem::I32,
            _ => Elem::int(bits),
        };
        srcs.iter().enumerate().map(|(i, s)| self.value(s, width(i))).collect()
    }

    /// The smaller or the greater operand (`min`, `max`).
    fn integer_extreme(&mut self, op: Opcode, a: &Val, b: &Val, signed: bool) -> Val {
        let function = match (op, signed) {
            (Opcode::Min, true) => "llvm.smin",
            (Opcode::Min, false) => "llvm.umin",
            (_, true) => "llvm.smax",
            (_, false) => "llvm.umax",
        };
        let (a, b) = self.w.agree(a, b);
        self.w.intrinsic(function, a.ty, &[&a, &b])
    }

    /// `shf`: 32 of the 64 bits of `b` and `a`, shifted by `c`.
    fn funnel_shift(&mut self, variant: &Variant, a: &Val, b: &Val, c: &Val) -> Val {
        let left = variant.has(Mod::L);
        // The intrinsics take the distance modulo 32, as `.wrap` does.
        let name = if left { "llvm.fshl" } else { "llvm.fshr" };
        let vector = a.ty.vector || b.ty.vector || c.ty.vector;
        let [high, low, by] = [b, a, c].map(|v| if vector { self.w.splat(v) } else { v.clone() });
        let shifted = self.w.intrinsic(name, high.ty, &[&high, &low, &by]);
        if !variant.has(Mod::Clamp) {
            return shifted;
        }
        // Distances from 32 on leave the other word.
        let far = self.w.cmp("icmp ugt", &by, &int(Elem::I32, 31));
        self.w.select(&far, if left { &low } else { &high }, &shifted)
    }

    /// The product, its high half (`.hi`), or the full product (`.wide`).
    pub fn product(&mut self, variant: &Variant, a: &Val, b: &Val, signed: bool) -> Val {
        let bits = a.ty.elem.bits();
        if !variant.has(Mod::Wide) && !variant.has(Mod::Hi) {
            return self.w.op("mul", a, b);
        }
        if bits > 32 {
            return self.upper_half(a, b, signed);
        }
        let wide = Elem::int(bits * 2);
        let (x, y) = (self.w.resize(a, wide, signed), self.w.resize(b, wide, signed));
        let p = self.w.op("mul", &x, &y);
        if variant.has(Mod::Wide) {
            return p;
        }
        let high = self.w.op_const("lshr", &p, i128::from(bits));
        self.w.resize(&high, a.ty.elem, false)
    }

    /// The high 64 bits of a 64-bit product, from four products of 32-bit halves.
    fn upper_half(&mut self, a: &Val, b: &Val, signed: bool) -> Val {
        let low = 0xffff_ffff;
        let [(a0, a1), (b0, b1)] = [a, b].map(|v| (self.w.op_const("and", v, low), self.w.op_const("lshr", v, 32)));
        let (p00, p01) = (self.w.op("mul", &a0, &b0), self.w.op("mul", &a0, &b1));
        let (p10, p11) = (self.w.op("mul", &a1, &b0), self.w.op("mul", &a1, &b1));
        let mut middle = self.w.op_const("lshr", &p00, 32);
        let mut high = p11;
        for p in [p01, p10] {
            let (below, above) = (self.w.op_const("and", &p, low), self.w.op_const("lshr", &p, 32));
            middle = self.w.op("add", &middle, &below);
            high = self.w.op("add", &high, &above);
        }
        let carried = self.w.op_const("lshr", &middle, 32);
        let mut high = self.w.op("add", &high, &carried);
        if signed {
            for (sign, other) in [(a, b), (b, a)] {
                let negative = self.w.op_const("ashr", sign, 63);
                let less = self.w.op("and", &negative, other);
                high = self.w.op("sub", &high, &less);
            }
        }
        high
    }

    /// Bits 31 to 0, or 47 to 16 (`.hi`), of a product of 24-bit integers.
    fn product24(&mut self, variant: &Variant, a: &Val, b: &Val, signed: bool) -> Val {
        let [a, b] = [a, b].map(|v| {
            let v = self.w.op_const("shl", v, 8);
            let v = self.w.op_const(if signed { "ashr" } else { "lshr" }, &v, 8);
            self.w.resize(&v, Elem::I64, signed)
        });
        let p = self.w.op("mul", &a, &b);
        let p = if variant.has(Mod::Hi) { self.w.op_const("lshr", &p, 16) } else { p };
        self.w.cast("trunc", &p, Elem::I32)
    }

    /// Shifts; amounts of the width or more give zero, or copies of the sign.
    fn shift(&mut self, op: Opcode, a: &Val, b: &Val, bits: u32, signed: bool) -> Val {
        let limit = i128::from(bits) - 1;
        let big = self.w.cmp("icmp ugt", b, &constant(b.ty, limit));
        let amount = self.w.op_const("and", b, limit);
        let amount = self.w.resize(&amount, a.ty.elem, false);
        let operation = match (op, signed) {
            (Opcode::Shl, _) => "shl",
            (_, true) => "ashr",
            _ => "lshr",
        };
        let shifted = self.w.op(operation, a, &amount);
        let beyond = if operation == "ashr" { self.w.op_const("ashr", a, limit) } else { constant(a.ty, 0) };
        self.w.select(&big, &beyond, &shifted)
    }

    /// A sum of minterms, which LLVM simplifies.
    fn lop3(&mut self, a: &Val, b: &Val, c: &Val, table: u8) -> Val {
        let mut result: Option<Val> = None;
        for row in 0..8u8 {
            if table >> row & 1 == 0 {
                continue;
            }
            let mut term: Option<Val> = None;
            for (v, bit) in [(a, 4), (b, 2), (c, 1)] {
                let v = if row & bit != 0 { v.clone() } else { self.w.op_const("xor", v, -1) };
                term = Some(match term {
                    Some(t) => self.w.op("and", &t, &v),
                    None => v,
                });
            }
            result = match (result, term) {
                (Some(r), Some(t)) => Some(self.w.op("or", &r, &t)),
                (None, t) => t,
                (r, None) => r,
            };
        }
        result.unwrap_or_else(|| constant(a.ty, 0))
    }

    /// Division that cannot trap: divisors that would are replaced, and the results fixed up. Up to 32 bits, vectors
    /// are divided in double precision, which is exact enough for every quotient; wider ones and scalars use the host's
    /// division.
    fn divide(&mut self, op: Opcode, a: &Val, b: &Val, signed: bool, bits: u32) -> Option<Val> {
        if bits > 32 || !(a.ty.vector || b.ty.vector) {
            return Some(self.divide_integers(op, a, b, signed));
        }
        let (a, b) = self.w.agree(a, b);
        let (a, b) = (self.w.resize(&a, Elem::I32, signed), self.w.resize(&b, Elem::I32, signed));
        let zero = self.w.cmp("icmp eq", &b, &constant(b.ty, 0));
        let safe = self.w.select(&zero, &constant(b.ty, 1), &b);
        let to = if signed { "sitofp" } else { "uitofp" };
        let (x, y) = (self.w.cast(to, &a, Elem::F64), self.w.cast(to, &safe, Elem::F64));
        let q = self.w.op("fdiv", &x, &y);
        let q = self.w.intrinsic("llvm.trunc", q.ty, &[&q]);
        let q = self.low_word(&q);
        let r = if op == Opcode::Div {
            self.w.select(&zero, &constant(q.ty, -1), &q)
        } else {
            let back = self.w.op("mul", &q, &safe);
            let rest = self.w.op("sub", &a, &back);
            self.w.select(&zero, &constant(rest.ty, -1), &rest)
        };
        Some(self.w.resize(&r, Elem::int(bits), signed))
    }

    /// The low 32 bits of integers below 2^51 in double precision, in two's complement: those of the significand once a number has been added that
    /// leaves no room for a fraction. Conversions to 64 bits would go lane by lane before AVX-512, and those to 32 bits not include 2^31.
    fn low_word(&mut self, integral: &Val) -> Val {
        let shift = named(integral.ty, format!("splat (double {:.1})", (3u64 << 51) as f64));
        let sum = self.w.op("fadd", integral, &shift);
        let bits = self.w.cast("bitcast", &sum, Elem::I64);
        self.w.cast("trunc", &bits, Elem::I32)
    }

    /// Division by zero gives all ones, as quotient and as remainder; the least number by -1 gives itself.
    fn divide_integers(&mut self, op: Opcode, a: &Val, b: &Val, signed: bool) -> Val {
        let zero = self.w.cmp("icmp eq", b, &constant(b.ty, 0));
        let minus = self.w.cmp("icmp eq", b, &constant(b.ty, -1));
        let unsafe_divisor = if signed { self.w.op("or", &zero, &minus) } else { zero.clone() };
        let safe = self.w.select(&unsafe_divisor, &constant(b.ty, 1), b);
        let q = self.w.op(if signed { "sdiv" } else { "udiv" }, a, &safe);
        let q = if signed {
            let negated = self.w.op("sub", &constant(a.ty, 0), a);
            self.w.select(&minus, &negated, &q)
        } else {
            q
        };
        let r = if op == Opcode::Div {
            q
        } else {
            let back = self.w.op("mul", &q, b);
            self.w.op("sub", a, &back)
        };
        self.w.select(&zero, &constant(r.ty, -1), &r)
    }

    /// Emits a row on pairs of 16-bit integers.
    pub fn packed_row(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Option<Val>> {
        let (op, t) = (variant.op, variant.t());
        if !matches!(t, Type::U16x2 | Type::S16x2) || variant.ty(margay_isa::Var::U).is_some() {
            return Ok(None);
        }
        let signed = t == Type::S16x2;
        let v = srcs.iter().map(|s| self.value(s, Elem::I32)).collect::<Result<Vec<Val>>>()?;
        let function = match (op, v.len(), variant.has(Mod::Sat)) {
            (Opcode::Add | Opcode::Sub, 2, false) => None,
            (Opcode::Add | Opcode::Sub, 2, true) => {
                Some(format!("llvm.{}{}.sat", if signed { "s" } else { "u" }, op.row().name))
            }
            (Opcode::Min | Opcode::Max, 2, false) => {
                Some(format!("llvm.{}{}", if signed { "s" } else { "u" }, op.row().name))
            }
            _ => return Ok(None),
        };
        let [low, high] = self.by_halves(&v, |e, v| {
            let (a, b) = e.w.agree(&v[0], &v[1]);
            let r = match &function {
                Some(f) => e.w.intrinsic(f, a.ty, &[&a, &b]),
                None => e.w.op(op.row().name, &a, &b),
            };
            let zero = constant(r.ty, 0);
            if variant.has(Mod::Relu) { e.w.intrinsic("llvm.smax", r.ty, &[&r, &zero]) } else { r }
        });
        Ok(Some(self.join_halves(&low, &high)))
    }
}

/// Position and length of a bit field within `bits` bits, if both are constants.
fn field(srcs: &[Operand], bits: u32) -> Option<(u32, u32)> {
    let [_, Operand::Imm(from), Operand::Imm(length)] = srcs else { return None };
    let (from, length) = ((from & 255) as u32, (length & 255) as u32);
    (from + length <= bits && from < bits).then_some((from, length))
}
