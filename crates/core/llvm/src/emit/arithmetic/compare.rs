//! Comparison, selection and tests (manual, sections 9.7.3.1, 9.7.6 and 9.7.7).

use crate::emit::{
    arithmetic::half::Half,
    function::{Emitter, Result},
    text::{Elem, Val, constant},
};
use margay_ir::Operand;
use margay_isa::{Kind, Mod, Type, Var, Variant, Word};

/// The comparison operator of a variant: its first modifier.
fn operator(variant: &Variant) -> Option<Mod> {
    variant.words.iter().find_map(|w| match w {
        Word::Mod(m) => Some(*m),
        Word::Type(_) => None,
    })
}

/// The LLVM instruction of a float comparison.
fn float_relation(operator: Mod) -> Option<&'static str> {
    Some(match operator {
        Mod::Eq => "fcmp oeq",
        Mod::Ne => "fcmp one",
        Mod::Lt => "fcmp olt",
        Mod::Le => "fcmp ole",
        Mod::Gt => "fcmp ogt",
        Mod::Ge => "fcmp oge",
        Mod::Equ => "fcmp ueq",
        Mod::Neu => "fcmp une",
        Mod::Ltu => "fcmp ult",
        Mod::Leu => "fcmp ule",
        Mod::Gtu => "fcmp ugt",
        Mod::Geu => "fcmp uge",
        Mod::Num => "fcmp ord",
        Mod::Nan => "fcmp uno",
        _ => return None,
    })
}

/// The LLVM instruction of an integer comparison.
fn integer_relation(operator: Mod, signed: bool) -> Option<&'static str> {
    Some(match (operator, signed) {
        (Mod::Eq, _) => "icmp eq",
        (Mod::Ne, _) => "icmp ne",
        (Mod::Lt, true) => "icmp slt",
        (Mod::Le, true) => "icmp sle",
        (Mod::Gt, true) => "icmp sgt",
        (Mod::Ge, true) => "icmp sge",
        (Mod::Lt | Mod::Lo, false) => "icmp ult",
        (Mod::Le | Mod::Ls, false) => "icmp ule",
        (Mod::Gt | Mod::Hi, false) => "icmp ugt",
        (Mod::Ge | Mod::Hs, false) => "icmp uge",
        _ => return None,
    })
}

impl Emitter<'_> {
    /// `setp`: the result and its complement; for pairs of halves, the results of the low and the high half.
    pub fn setp(&mut self, variant: &Variant, srcs: &[Operand], dsts: &[Operand]) -> Result<Option<Vec<Val>>> {
        let t = variant.t();
        let Some(compared) = self.compare(variant, &srcs[0], &srcs[1], t)? else { return Ok(None) };
        let mut out = vec![self.combined(variant, &compared[0], srcs)?];
        if dsts.len() > 1 {
            let second = match compared.get(1) {
                Some(upper) => upper.clone(),
                None => self.w.op_const("xor", &compared[0], 1),
            };
            out.push(self.combined(variant, &second, srcs)?);
        }
        Ok(Some(out))
    }

    /// Combines a comparison with the predicate in source 2, if there is one.
    fn combined(&mut self, variant: &Variant, v: &Val, srcs: &[Operand]) -> Result<Val> {
        let Some(c) = srcs.get(2) else { return Ok(v.clone()) };
        let c = self.value(c, Elem::I1)?;
        let name = match () {
            _ if variant.has(Mod::And) => "and",
            _ if variant.has(Mod::Or) => "or",
            _ => "xor",
        };
        Ok(self.w.op(name, v, &c))
    }

    /// A comparison as a predicate; two predicates for pairs of halves.
    fn compare(&mut self, variant: &Variant, a: &Operand, b: &Operand, t: Type) -> Result<Option<Vec<Val>>> {
        let Some(operator) = operator(variant) else { return Ok(None) };
        let ftz = variant.has(Mod::Ftz);
        match t {
            Type::F32 | Type::F64 => {
                let Some(name) = float_relation(operator) else { return Ok(None) };
                let (a, b) = (self.float(a, t, ftz)?, self.float(b, t, ftz)?);
                Ok(Some(vec![self.w.cmp(name, &a, &b)]))
            }
            Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2 => {
                let half = Half::flushing(matches!(t, Type::Bf16 | Type::Bf16x2), ftz);
                let Some(name) = float_relation(operator).filter(|_| self.has_halves(half.bf16)) else {
                    return Ok(None);
                };
                let elem = Elem::int(t.bits());
                let v = [self.value(a, elem)?, self.value(b, elem)?];
                let one = |e: &mut Self, v: &[Val]| {
                    let (a, b) = (e.read_half(half, &v[0]), e.read_half(half, &v[1]));
                    e.w.cmp(name, &a, &b)
                };
                Ok(Some(if t.bits() == 32 { self.by_halves(&v, one).to_vec() } else { vec![one(self, &v)] }))
            }
            _ if t.kind() == Kind::Packed || t.is_float() || t.bits() > 64 => Ok(None),
            _ => {
                let Some(name) = integer_relation(operator, t.is_signed()) else { return Ok(None) };
                let elem = Elem::int(t.bits());
                let (a, b) = (self.value(a, elem)?, self.value(b, elem)?);
                Ok(Some(vec![self.w.cmp(name, &a, &b)]))
            }
        }
    }

    /// `set`: all ones or 1.0 where the comparison holds, else zero.
    pub fn set(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Option<Val>> {
        let (t, Some(u)) = (variant.t(), variant.ty(Var::U)) else { return Ok(None) };
        let one = match t {
            Type::U32 | Type::S32 | Type::U16 | Type::S16 => -1,
            Type::F32 => 0x3f80_0000,
            Type::F16 | Type::F16x2 => 0x3c00,
            Type::Bf16 | Type::Bf16x2 => 0x3f80,
            _ => return Ok(None),
        };
        let Some(compared) = self.compare(variant, &srcs[0], &srcs[1], u)? else { return Ok(None) };
        let pair = compared.len() == 2;
        let elem = if pair { Elem::I16 } else { Elem::int(t.bits()) };
        let mut parts = Vec::new();
        for v in &compared {
            let v = self.combined(variant, v, srcs)?;
            let ty = v.ty.with(elem);
            parts.push(self.w.select(&v, &constant(ty, one), &constant(ty, 0)));
        }
        Ok(Some(match &parts[..] {
            [low, high] => self.join_halves(low, high),
            _ => parts.swap_remove(0),
        }))
    }

    /// `slct`: `a` where `c >= 0`, else `b`, also where `c` is a NaN.
    pub fn slct(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Option<Val>> {
        let (elem, Some(u)) = (Elem::int(variant.t().bits()), variant.ty(Var::U)) else { return Ok(None) };
        let (a, b) = (self.value(&srcs[0], elem)?, self.value(&srcs[1], elem)?);
        let first = if u == Type::F32 {
            let c = self.float(&srcs[2], u, variant.has(Mod::Ftz))?;
            self.w.cmp("fcmp oge", &c, &constant(c.ty, 0))
        } else {
            let c = self.value(&srcs[2], Elem::I32)?;
            self.w.cmp("icmp sge", &c, &constant(c.ty, 0))
        };
        Ok(Some(self.w.select(&first, &a, &b)))
    }

    /// `testp`, on the bits; zero is normal.
    pub fn testp(&mut self, variant: &Variant, operand: &Operand) -> Result<Option<Val>> {
        let t = variant.t();
        let elem = Elem::int(t.bits());
        let (magnitude, infinity, smallest) = match t {
            Type::F32 => {
                (i128::from(i32::MAX), i128::from(f32::INFINITY.to_bits()), i128::from(f32::MIN_POSITIVE.to_bits()))
            }
            Type::F64 => {
                (i128::from(i64::MAX), i128::from(f64::INFINITY.to_bits()), i128::from(f64::MIN_POSITIVE.to_bits()))
            }
            _ => return Ok(None),
        };
        let v = self.value(operand, elem)?;
        let v = self.w.op_const("and", &v, magnitude);
        let is = |e: &mut Self, name: &str, bound: i128| e.w.cmp(name, &v, &constant(v.ty, bound));
        // Compares `v - 1`, so that zero wraps around to the top of the range.
        let less = |e: &mut Self, name: &str, bound: i128| {
            let v = e.w.op_const("sub", &v, 1);
            e.w.cmp(name, &v, &constant(v.ty, bound - 1))
        };
        Ok(Some(match () {
            _ if variant.has(Mod::Finite) => is(self, "icmp ult", infinity),
            _ if variant.has(Mod::Infinite) => is(self, "icmp eq", infinity),
            _ if variant.has(Mod::Number) => is(self, "icmp ule", infinity),
            _ if variant.has(Mod::Notanumber) => is(self, "icmp ugt", infinity),
            _ if variant.has(Mod::Subnormal) => less(self, "icmp ult", smallest),
            _ if variant.has(Mod::Normal) => {
                let (large, finite) = (less(self, "icmp uge", smallest), is(self, "icmp ult", infinity));
                self.w.op("and", &large, &finite)
            }
            _ => return Ok(None),
        }))
    }
}
