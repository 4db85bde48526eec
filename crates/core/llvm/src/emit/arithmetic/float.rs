//! Arithmetic on single and double precision (manual, section 9.7.3).
//!
//! NaN results of single-precision arithmetic are canonical in PTX (`0x7fffffff`) but not on the host. They are
//! canonicalized where their bits become visible (a store, an integer operation): registers that only arithmetic writes
//! are marked *lazy*, so that arithmetic on them needs no canonicalization. In double precision, PTX preserves payloads
//! as the host does.

use crate::emit::{
    arithmetic::{directed::direction, reciprocal::Results},
    function::{Emitter, Result},
    text::{Elem, Val, constant},
};
use margay_ir::{Operand, pass::liveness};
use margay_isa::{Mod, Opcode, Type, Var, Variant, Word};

/// Whether a row is single-precision arithmetic whose result may keep the host's NaN until its bits become visible.
pub(in crate::emit) fn arithmetic(variant: &Variant) -> bool {
    let exact = matches!(
        variant.op,
        Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Fma | Opcode::Mad | Opcode::Div | Opcode::Sqrt | Opcode::Rcp
    );
    // Their result is a NaN only if that is what they were given, or what they must return.
    let picks = matches!(variant.op, Opcode::Min | Opcode::Max);
    (exact || picks || is_approximation(variant))
        && variant.t() == Type::F32
        && direction(variant).is_none()
        && variant.ty(Var::U).is_none()
}

/// The value of a constant of single precision that is neither a NaN nor subnormal.
fn normal_constant(operand: &Operand) -> Option<f32> {
    let Operand::Imm(bits) = operand else { return None };
    Some(f32::from_bits(*bits as u32)).filter(|x| !x.is_nan() && !x.is_subnormal())
}

/// Whether a row approximates an elementary function.
fn is_approximation(variant: &Variant) -> bool {
    let op = variant.op;
    matches!(op, Opcode::Ex2 | Opcode::Lg2 | Opcode::Sin | Opcode::Cos | Opcode::Rsqrt | Opcode::Tanh)
        && variant.t() == Type::F32
        && variant.has(Mod::Approx)
}

impl Emitter<'_> {
    /// An operand to be copied to a register: a lazy register may receive the host's NaNs.
    pub fn copied_value(&mut self, source: &Operand, to: &Operand, elem: Elem) -> Result<Val> {
        match to {
            Operand::Reg(r) if self.floats.lazy_nans[r.0 as usize] => self.raw_value(source, elem),
            _ => self.value(source, elem),
        }
    }

    /// Canonicalizes single-precision NaNs.
    pub fn canonical(&mut self, v: &Val) -> Val {
        let bits = self.w.cast("bitcast", v, Elem::I32);
        // LLVM folds floating-point NaN tests of square roots.
        let is_nan = if self.floats.roots {
            let magnitude = self.w.op_const("and", &bits, 0x7fff_ffff);
            self.w.cmp("icmp ugt", &magnitude, &constant(bits.ty, 0x7f80_0000))
        } else {
            let v = self.w.cast("bitcast", v, Elem::F32);
            self.w.cmp("fcmp uno", &v, &v)
        };
        self.w.select(&is_nan, &constant(bits.ty, 0x7fff_ffff), &bits)
    }

    /// Flushes subnormals to zero, preserving the sign.
    pub fn flush(&mut self, v: &Val) -> Val {
        let bits = self.w.cast("bitcast", v, Elem::I32);
        let exponent = self.w.op_const("and", &bits, 0x7f80_0000);
        let small = self.w.cmp("icmp eq", &exponent, &constant(bits.ty, 0));
        let zero = self.w.op_const("and", &bits, i128::from(0x8000_0000u32 as i32));
        let flushed = self.w.select(&small, &zero, &bits);
        self.w.cast("bitcast", &flushed, Elem::F32)
    }

    /// An operand of arithmetic, where a lazy register's NaNs need no canonicalization.
    pub fn float(&mut self, operand: &Operand, ty: Type, ftz: bool) -> Result<Val> {
        let (integer, float) = if ty == Type::F64 { (Elem::I64, Elem::F64) } else { (Elem::I32, Elem::F32) };
        let v = self.raw_value(operand, integer)?;
        let v = self.w.cast("bitcast", &v, float);
        Ok(if ftz && ty == Type::F32 && !self.is_normal(operand) { self.flush(&v) } else { v })
    }

    /// Whether an operand is in a register that never holds a subnormal (see `subnormal.rs`).
    fn is_normal(&self, operand: &Operand) -> bool {
        matches!(operand, Operand::Reg(r) if self.floats.normal[r.0 as usize])
    }

    /// Whether an operand is in a register that only a square root of single precision writes.
    fn is_root(&self, operand: &Operand) -> bool {
        let Operand::Reg(r) = operand else { return false };
        liveness::only_definition(self.func, *r).is_some_and(|inst| {
            let variant = self.func.variant(inst);
            variant.op == Opcode::Sqrt && variant.t() == Type::F32
        })
    }

    /// Quiets signaling NaNs, since LLVM folds operations such as `x * 1` to `x`.
    fn quiet(&mut self, v: &Val) -> Val {
        let bits = self.w.cast("bitcast", v, Elem::I64);
        let quiet = self.w.op_const("or", &bits, 0x0008_0000_0000_0000);
        let magnitude = self.w.op_const("and", &bits, i128::from(i64::MAX));
        let is_nan = self.w.cmp("icmp ugt", &magnitude, &constant(bits.ty, 0x7ff0_0000_0000_0000));
        let bits = self.w.select(&is_nan, &quiet, &bits);
        self.w.cast("bitcast", &bits, Elem::F64)
    }

    /// The result of a row of floating-point arithmetic; `None` if there is no code for it.
    pub fn float_row(&mut self, variant: &Variant, srcs: &[Operand], dsts: &[Operand]) -> Result<Option<Val>> {
        let (op, t, ftz) = (variant.op, variant.t(), variant.has(Mod::Ftz));
        let single = t == Type::F32;
        if !self.has_float_row(variant, srcs.len()) {
            return Ok(None);
        }
        let operands = srcs.iter().map(|s| self.float_operand(variant, s)).collect::<Result<Vec<Val>>>()?;
        let Some(result) = self.float_result(variant, srcs, &operands) else { return Ok(None) };
        let keeps_bits = matches!(op, Opcode::Neg | Opcode::Abs);
        // The result is one of the operands.
        let picks = matches!(op, Opcode::Min | Opcode::Max);
        let result = if ftz && single && !keeps_bits && !picks { self.flush(&result) } else { result };
        let trivial = |s: &Operand| matches!(s, Operand::Imm(x) if [0.0, 1.0].contains(&f64::from_bits(*x).abs()));
        let folds =
            !single && matches!(op, Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Fma | Opcode::Mad | Opcode::Div);
        let result = if folds && srcs.iter().any(trivial) { self.quiet(&result) } else { result };
        let result = if variant.has(Mod::Sat) { self.saturate(&result, t) } else { result };
        // A lazy register needs no canonical value.
        let lazy = matches!(dsts, [Operand::Reg(d)] if self.floats.lazy_nans[d.0 as usize]);
        Ok(Some(if single && !lazy && !keeps_bits { self.canonical_float(&result) } else { result }))
    }

    /// Whether there is code for a row of `count` operands.
    fn has_float_row(&self, variant: &Variant, count: usize) -> bool {
        let (op, single) = (variant.op, variant.t() == Type::F32);
        let directed = direction(variant).is_some();
        // Rows with two types widen their operands first (section 9.7.5).
        if directed && !self.rounds(variant, single) || count > 3 || variant.ty(Var::U).is_some() {
            return false;
        }
        let plain = variant.words.iter().all(|w| match w {
            Word::Mod(m) => {
                let pick =
                    matches!(m, Mod::PropagateNan | Mod::Abs | Mod::Xorsign) && matches!(op, Opcode::Min | Opcode::Max);
                let rounds = matches!(m, Mod::Rn | Mod::Rz | Mod::Rm | Mod::Rp);
                pick || rounds || matches!(m, Mod::Ftz | Mod::Sat | Mod::Approx | Mod::Full)
            }
            Word::Type(_) => true,
        });
        let rounded = directed || variant.has(Mod::Rn) || variant.has(Mod::Approx) && single || variant.has(Mod::Full);
        plain
            && match op {
                Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Fma | Opcode::Mad => true,
                Opcode::Div | Opcode::Sqrt | Opcode::Rcp => rounded,
                Opcode::Neg | Opcode::Abs => true,
                Opcode::Min | Opcode::Max => single || count == 2,
                _ => is_approximation(variant),
            }
    }

    fn float_operand(&mut self, variant: &Variant, s: &Operand) -> Result<Val> {
        let (ftz, single) = (variant.has(Mod::Ftz), variant.t() == Type::F32);
        // Rows that copy a NaN's bits or sign need canonical operands.
        if !matches!(variant.op, Opcode::Neg | Opcode::Abs) && !variant.has(Mod::Xorsign) {
            return self.float(s, variant.t(), ftz);
        }
        let x = self.value(s, if single { Elem::I32 } else { Elem::I64 })?;
        let x = self.w.cast("bitcast", &x, if single { Elem::F32 } else { Elem::F64 });
        Ok(if ftz && single && !self.is_normal(s) { self.flush(&x) } else { x })
    }

    /// The result of a row before it is flushed, saturated and made canonical.
    fn float_result(&mut self, variant: &Variant, srcs: &[Operand], v: &[Val]) -> Option<Val> {
        let (op, single) = (variant.op, variant.t() == Type::F32);
        Some(match (op, v) {
            _ if let Some(direction) = direction(variant) => self.directed(op, direction, v),
            (Opcode::Add, [a, b]) => self.w.op("fadd", a, b),
            (Opcode::Sub, [a, b]) => self.w.op("fsub", a, b),
            (Opcode::Mul, [a, b]) => self.w.op("fmul", a, b),
            (Opcode::Fma | Opcode::Mad, [a, b, c]) => {
                let (a, b) = self.w.agree(a, b);
                let (a, c) = self.w.agree(&a, c);
                let (a, b) = self.w.agree(&a, &b);
                self.w.intrinsic("llvm.fma", a.ty, &[&a, &b, &c])
            }
            (Opcode::Div, [a, b]) if variant.has(Mod::Approx) => self.approximate_quotient(a, b),
            (Opcode::Div, [a, b]) => self.w.op("fdiv", a, b),
            (Opcode::Rcp, [a]) => {
                // Roots are zero, at least 2^-75, or not finite.
                let range = if self.is_root(&srcs[0]) { Results::Normal } else { Results::Any };
                self.reciprocal(a, range)
            }
            (Opcode::Sqrt, [a]) => self.w.intrinsic("llvm.sqrt", a.ty, &[a]),
            (Opcode::Neg, [a]) => self.w.value(a.ty, format_args!("fneg {} {a}", a.ty)),
            (Opcode::Abs, [a]) => self.w.intrinsic("llvm.fabs", a.ty, &[a]),
            (Opcode::Min | Opcode::Max, _) if single => self.extreme_of(variant, srcs, v),
            (Opcode::Min | Opcode::Max, [a, b]) => {
                // The result is a NaN only if both operands are.
                let (a, b) = self.w.agree(a, b);
                let r = self.extreme(op == Opcode::Min, &a, &b);
                self.quiet(&r)
            }
            (_, [a]) => self.approximate(op, a)?,
            _ => return None,
        })
    }

    /// `div.approx`: divisors beyond 2^126 give a zero of the right sign (manual, section 9.7.3.8).
    fn approximate_quotient(&mut self, a: &Val, b: &Val) -> Val {
        let q = self.w.op("fdiv", a, b);
        let size = self.w.intrinsic("llvm.fabs", b.ty, &[b]);
        let limit = constant(b.ty, 0x7e80_0000);
        let big = self.w.cmp("fcmp ogt", &size, &limit);
        let zero = self.w.intrinsic("llvm.copysign", b.ty, &[&constant(b.ty, 0), b]);
        let nothing = self.w.op("fmul", a, &zero);
        self.w.select(&big, &nothing, &q)
    }

    /// `min` and `max` of two or three single-precision operands, with `.NaN`, `.abs` and `.xorsign`.
    fn extreme_of(&mut self, variant: &Variant, srcs: &[Operand], v: &[Val]) -> Val {
        let min = variant.op == Opcode::Min;
        let special = [Mod::PropagateNan, Mod::Abs, Mod::Xorsign].iter().any(|m| variant.has(*m));
        if let ([a, b], [x, y], false) = (srcs, v, special) {
            let known = [(x, normal_constant(b)), (y, normal_constant(a))];
            if let Some((x, bound)) = known.into_iter().find_map(|(x, bound)| Some((x, bound?))) {
                return self.extreme_with(min, x, bound);
            }
        }
        let sized: Vec<Val> = v
            .iter()
            .map(|v| if variant.has(Mod::Abs) { self.w.intrinsic("llvm.fabs", v.ty, &[v]) } else { v.clone() })
            .collect();
        let mut result = sized[0].clone();
        for next in &sized[1..] {
            let (a, b) = self.w.agree(&result, next);
            let r = self.extreme(min, &a, &b);
            result = r;
            if variant.has(Mod::PropagateNan) {
                let bad = self.w.cmp("fcmp uno", &a, &b);
                let nan = constant(result.ty, 0x7fff_ffff);
                result = self.w.select(&bad, &nan, &result);
            }
        }
        if !variant.has(Mod::Xorsign) {
            return result;
        }
        let bits: Vec<Val> = v.iter().chain([&result]).map(|v| self.w.cast("bitcast", v, Elem::I32)).collect();
        let signs = self.w.op("xor", &bits[0], &bits[1]);
        let sign = self.w.op_const("and", &signs, i128::from(i32::MIN));
        let magnitude = self.w.op_const("and", &bits[bits.len() - 1], 0x7fff_ffff);
        let signed = self.w.op("or", &magnitude, &sign);
        let is_nan = self.w.cmp("icmp ugt", &magnitude, &constant(magnitude.ty, 0x7f80_0000));
        let bits = self.w.select(&is_nan, &bits[bits.len() - 1], &signed);
        self.w.cast("bitcast", &bits, Elem::F32)
    }

    /// The smaller or larger of a float and a constant, which is the result for a NaN.
    fn extreme_with(&mut self, min: bool, v: &Val, bound: f32) -> Val {
        // A zero that equals the bound is the result unless the bound is the zero beyond it.
        let relation = match (min, bound == 0.0 && bound.is_sign_positive() == min) {
            (true, true) => "fcmp ole",
            (true, false) => "fcmp olt",
            (false, true) => "fcmp oge",
            (false, false) => "fcmp ogt",
        };
        let bound = constant(v.ty, bound.to_bits().into());
        let wins = self.w.cmp(relation, v, &bound);
        self.w.select(&wins, v, &bound)
    }

    /// The smaller or larger of two floats: a NaN operand loses, and -0 is below +0 (manual, sections 9.7.3.11 and
    /// 9.7.3.12). LLVM has this as `llvm.minimumnum` from version 20 on.
    fn extreme(&mut self, min: bool, a: &Val, b: &Val) -> Val {
        let (relation, merge) = if min { ("fcmp olt", "or") } else { ("fcmp ogt", "and") };
        let wins = self.w.cmp(relation, a, b);
        let only = self.w.cmp("fcmp uno", b, b);
        let first = self.w.op("or", &wins, &only);
        let chosen = self.w.select(&first, a, b);
        // Operands that compare equal differ at most in the sign of zero.
        let equal = self.w.cmp("fcmp oeq", a, b);
        let bits = Elem::int(a.ty.elem.bits());
        let (a_bits, b_bits) = (self.w.cast("bitcast", a, bits), self.w.cast("bitcast", b, bits));
        let merged = self.w.op(merge, &a_bits, &b_bits);
        let merged = self.w.cast("bitcast", &merged, a.ty.elem);
        self.w.select(&equal, &merged, &chosen)
    }

    pub fn canonical_float(&mut self, v: &Val) -> Val {
        let bits = self.canonical(v);
        self.w.cast("bitcast", &bits, Elem::F32)
    }

    /// Clamps to [0, 1]; NaN becomes +0.
    pub fn saturate(&mut self, v: &Val, t: Type) -> Val {
        let one = if t == Type::F64 { 1f64.to_bits() } else { u64::from(1f32.to_bits()) };
        let (zero, one) = (constant(v.ty, 0), constant(v.ty, i128::from(one)));
        let positive = self.w.cmp("fcmp ogt", v, &zero);
        let v = self.w.select(&positive, v, &zero);
        let small = self.w.cmp("fcmp olt", &v, &one);
        self.w.select(&small, &v, &one)
    }
}
