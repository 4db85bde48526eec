//! Pure rows: native vector code where a row has earned it, the semantic function of `exec` through a helper elsewhere.
//!
//! Native code must yield the very bits of the semantic function. Two things need care. NaN results of arithmetic are
//! canonical in PTX (`0x7fffffff`) and not on the host: values are made canonical where their bits can be seen (a store, an
//! integer operation), and registers that only arithmetic writes are marked so that arithmetic on them needs not bother.
//! Inactive lanes hold anything, so nothing that traps on the host (division) may see them.

use super::{
    func::{Emitter, Result},
    rows::rows_of,
    site::SiteKind,
    text::{Elem, Ty, Val, constant, int},
};
use crate::ctx::Helper;
use margay_ir::{Inst, Operand, pass::Shape};
use margay_isa::{Kind, Mod, Opcode, Type, Var, Variant};

/// Single-precision rows whose results may carry the host's NaNs until somebody looks at their bits. Double precision keeps
/// payloads in PTX as on the host.
pub(super) fn arithmetic(variant: &Variant) -> bool {
    let row = matches!(variant.op.row().name, "add" | "sub" | "mul" | "fma" | "mad");
    row && variant.t() == Type::F32 && rounds_to_nearest(variant)
}

fn rounds_to_nearest(variant: &Variant) -> bool {
    ![Mod::Rz, Mod::Rm, Mod::Rp].iter().any(|m| variant.has(*m))
}

impl Emitter<'_> {
    /// An operand on its way into a register: NaNs stay as they are where the register may hold the host's.
    pub fn copied_value(&mut self, source: &Operand, to: &Operand, elem: Elem) -> Result<Val> {
        match to {
            Operand::Reg(r) if self.lazy[r.0 as usize] => self.raw_value(source, elem),
            _ => self.value(source, elem),
        }
    }

    /// Makes single-precision NaNs canonical.
    pub fn canonical(&mut self, v: &Val) -> Val {
        // Tested on the bits: LLVM drops floating-point tests for NaN behind square roots.
        let bits = self.w.cast("bitcast", v, Elem::I32);
        let magnitude = self.w.op_const("and", &bits, 0x7fff_ffff);
        let is_nan = self.w.cmp("icmp ugt", &magnitude, &constant(bits.ty, 0x7f80_0000));
        self.w.select(&is_nan, &constant(bits.ty, 0x7fff_ffff), &bits)
    }

    /// Subnormals to zeros of their sign.
    pub fn flush(&mut self, v: &Val) -> Val {
        let bits = self.w.cast("bitcast", v, Elem::I32);
        let exponent = self.w.op_const("and", &bits, 0x7f80_0000);
        let small = self.w.cmp("icmp eq", &exponent, &constant(bits.ty, 0));
        let zero = self.w.op_const("and", &bits, i128::from(0x8000_0000u32 as i32));
        let flushed = self.w.select(&small, &zero, &bits);
        self.w.cast("bitcast", &flushed, Elem::F32)
    }

    /// A float operand in arithmetic: host NaNs of lazy registers are welcome.
    pub fn float(&mut self, operand: &Operand, ty: Type, ftz: bool) -> Result<Val> {
        let (integer, float) = if ty == Type::F64 { (Elem::I64, Elem::F64) } else { (Elem::I32, Elem::F32) };
        let v = self.raw_value(operand, integer)?;
        let v = self.w.cast("bitcast", &v, float);
        Ok(if ftz && ty == Type::F32 { self.flush(&v) } else { v })
    }

    /// A half-precision operand of mixed-precision arithmetic, widened.
    fn half(&mut self, operand: &Operand, ty: Type) -> Result<Val> {
        let v = self.value(operand, Elem::I16)?;
        Ok(if ty == Type::F16 {
            let v = self.w.cast("bitcast", &v, Elem::F16);
            self.w.cast("fpext", &v, Elem::F32)
        } else {
            let v = self.w.cast("zext", &v, Elem::I32);
            let v = self.w.op_const("shl", &v, 16);
            self.w.cast("bitcast", &v, Elem::F32)
        })
    }

    /// LLVM takes `x * 1` and its like for `x`, and leaves signaling NaNs as they are.
    fn quiet(&mut self, v: &Val) -> Val {
        let bits = self.w.cast("bitcast", v, Elem::I64);
        let quiet = self.w.op_const("or", &bits, 0x0008_0000_0000_0000);
        let magnitude = self.w.op_const("and", &bits, i128::from(i64::MAX));
        let is_nan = self.w.cmp("icmp ugt", &magnitude, &constant(bits.ty, 0x7ff0_0000_0000_0000));
        let bits = self.w.select(&is_nan, &quiet, &bits);
        self.w.cast("bitcast", &bits, Elem::F64)
    }

    /// A row with effect `Pure`.
    pub fn pure(&mut self, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        // Pure by the table, but functions of the machine's address map.
        if matches!(variant.op, Opcode::Createpolicy | Opcode::Mapa | Opcode::Getctarank | Opcode::Istypep) {
            return self.effect(inst);
        }
        let srcs: Vec<Operand> = self.func.operands(inst.srcs).to_vec();
        let dsts: Vec<Operand> = self.func.operands(inst.dsts).to_vec();
        // Results in rows: arithmetic on the first lane of each is all there is.
        if let [Operand::Reg(d)] = dsts[..] {
            let slot = self.slots[d.0 as usize].clone();
            let in_rows = |e: &Self, o: &Operand| {
                let shape = match o {
                    Operand::Reg(r) => e.slots[r.0 as usize].shape,
                    Operand::Special(s, c) => e.options.warp.special(*s, *c),
                    _ => Shape::Uniform,
                };
                matches!(shape, Shape::Rows { .. })
            };
            if let Some((width, _)) = rows_of(slot.shape)
                && (width < 32 || srcs.iter().any(|s| in_rows(self, s)))
                && inst.guard.is_none()
            {
                let bases = self.by_rows(width, |e| e.scalar_result(&variant, &srcs, &dsts, slot.elem))?;
                self.write_rows(&slot.pointer, slot.elem, &bases);
                return Ok(());
            }
        }
        let Some(results) = self.native(&variant, &srcs, &dsts)? else {
            return self.thunk(inst, &variant, &srcs, &dsts);
        };
        let guard = self.guard(inst);
        let shadow = match (&dsts[..], &guard) {
            ([Operand::Reg(d)], None) => {
                let elem = self.slots[d.0 as usize].elem;
                self.shadow_of(*d, &variant, &srcs, |e| e.scalar_result(&variant, &srcs, &dsts, elem))?
            }
            _ => None,
        };
        for (d, v) in dsts.iter().zip(&results) {
            if let Operand::Reg(r) = d {
                let v = self.fit(v, self.slots[r.0 as usize].elem, &variant);
                self.write(*r, &v, guard.as_ref());
                if let Some(shadow) = &shadow {
                    self.write_shadow(*r, shadow);
                }
            }
        }
        Ok(())
    }

    /// A result as the bits of a register's element.
    fn fit(&mut self, v: &Val, elem: Elem, variant: &Variant) -> Val {
        if v.ty.elem.bits() == elem.bits() {
            return self.w.cast("bitcast", v, elem);
        }
        let v = self.w.cast("bitcast", v, Elem::int(v.ty.elem.bits()));
        self.w.resize(&v, elem, variant.t().is_signed())
    }

    /// The only result of a row while operands read as scalars.
    fn scalar_result(&mut self, variant: &Variant, srcs: &[Operand], dsts: &[Operand], elem: Elem) -> Result<Val> {
        match self.native(variant, srcs, dsts)?.as_deref() {
            Some([v]) if !v.ty.vector => Ok(self.fit(v, elem, variant)),
            _ => self.refuse(format!("{variant} in rows")),
        }
    }

    /// Native code of a row: one value for each destination, or `None` for the helper.
    fn native(&mut self, variant: &Variant, srcs: &[Operand], dsts: &[Operand]) -> Result<Option<Vec<Val>>> {
        let (name, t) = (variant.op.row().name, variant.t());
        if srcs.iter().any(|s| matches!(s, Operand::Sink)) || variant.has(Mod::Cc) {
            return Ok(None);
        }
        match name {
            "mov" => return self.mov(variant, srcs, dsts),
            "cvt" => return Ok(self.cvt(variant, srcs)?.map(|v| vec![v])),
            "setp" => return self.setp(variant, srcs, dsts),
            "selp" => {
                let elem = Elem::int(t.bits());
                let [a, b] = [0, 1].map(|i| self.copied_value(&srcs[i], &dsts[0], elem));
                let (a, b, c) = (a?, b?, self.value(&srcs[2], Elem::I1)?);
                return Ok(Some(vec![self.w.select(&c, &a, &b)]));
            }
            "cvta" => return Ok(None),
            _ => {}
        }
        Ok(match t.kind() {
            Kind::Float if matches!(t, Type::F32 | Type::F64) => self.float_row(variant, srcs, dsts)?.map(|v| vec![v]),
            Kind::Signed | Kind::Unsigned | Kind::Bits | Kind::Pred => {
                self.integer_row(variant, srcs)?.map(|v| vec![v])
            }
            _ => None,
        })
    }

    fn mov(&mut self, variant: &Variant, srcs: &[Operand], dsts: &[Operand]) -> Result<Option<Vec<Val>>> {
        let bits = variant.t().bits();
        Ok(match (srcs, dsts) {
            ([s], [d]) => Some(vec![self.copied_value(s, d, Elem::int(bits))?]),
            // Unpack: parts from the low end.
            ([s], parts) if bits <= 64 => {
                let whole = self.value(s, Elem::int(bits))?;
                let part = bits / parts.len() as u32;
                let values = (0..parts.len() as u32).map(|i| {
                    let shifted = self.w.op_const("lshr", &whole, i128::from(i * part));
                    self.w.resize(&shifted, Elem::int(part), false)
                });
                Some(values.collect())
            }
            (parts, [_]) if bits <= 64 => {
                let part = bits / parts.len() as u32;
                let mut whole: Option<Val> = None;
                for (i, s) in parts.iter().enumerate() {
                    let v = self.value(s, Elem::int(part))?;
                    let v = self.w.resize(&v, Elem::int(bits), false);
                    let v = self.w.op_const("shl", &v, i128::from(i as u32 * part));
                    whole = Some(match whole {
                        Some(w) => self.w.op("or", &w, &v),
                        None => v,
                    });
                }
                whole.map(|w| vec![w])
            }
            _ => None,
        })
    }

    fn setp(&mut self, variant: &Variant, srcs: &[Operand], dsts: &[Operand]) -> Result<Option<Vec<Val>>> {
        let t = variant.t();
        let Some(compared) = self.compare(variant, &srcs[0], &srcs[1], t)? else { return Ok(None) };
        let combine = |e: &mut Self, v: &Val| -> Result<Val> {
            let Some(c) = srcs.get(2) else { return Ok(v.clone()) };
            let c = e.value(c, Elem::I1)?;
            let name =
                [(Mod::And, "and"), (Mod::Or, "or"), (Mod::Xor, "xor")].into_iter().find(|(m, _)| variant.has(*m));
            Ok(match name {
                Some((_, name)) => e.w.op(name, v, &c),
                None => v.clone(),
            })
        };
        let p = combine(self, &compared)?;
        let mut out = vec![p];
        if dsts.len() > 1 {
            let inverse = self.w.op_const("xor", &compared, 1);
            out.push(combine(self, &inverse)?);
        }
        Ok(Some(out))
    }

    /// A comparison as a predicate.
    fn compare(&mut self, variant: &Variant, a: &Operand, b: &Operand, t: Type) -> Result<Option<Val>> {
        let word = variant.words.iter().find_map(|w| match w {
            margay_isa::Word::Mod(m) if !matches!(m, Mod::And | Mod::Or | Mod::Xor | Mod::Ftz) => Some(*m),
            _ => None,
        });
        let Some(word) = word else { return Ok(None) };
        if matches!(t, Type::F32 | Type::F64) {
            let (a, b) = (self.float(a, t, variant.has(Mod::Ftz))?, self.float(b, t, variant.has(Mod::Ftz))?);
            let name = match word {
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
                _ => return Ok(None),
            };
            return Ok(Some(self.w.cmp(name, &a, &b)));
        }
        if t.is_float() || t.kind() == Kind::Packed {
            return Ok(None);
        }
        let signed = t.is_signed();
        let name = match (word, signed) {
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
            _ => return Ok(None),
        };
        let elem = Elem::int(t.bits());
        let (a, b) = (self.value(a, elem)?, self.value(b, elem)?);
        Ok(Some(self.w.cmp(name, &a, &b)))
    }

    fn integer_row(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Option<Val>> {
        let (name, t) = (variant.op.row().name, variant.t());
        let (elem, signed, bits) = (Elem::int(t.bits()), t.is_signed(), t.bits());
        if variant.has(Mod::Sat) || variant.has(Mod::Relu) || bits > 64 || (bits < 16 && t != Type::Pred) {
            return Ok(None);
        }
        let mut v = Vec::new();
        for (i, s) in srcs.iter().enumerate() {
            let width = match (name, i) {
                ("shl" | "shr", 1) => Elem::I32,
                ("mad", 2) if variant.has(Mod::Wide) => Elem::int(bits * 2),
                ("bfe", 1 | 2) | ("bfi", 2 | 3) => Elem::I32,
                _ => elem,
            };
            v.push(self.value(s, width)?);
        }
        let two = |name: &str, e: &mut Self, v: &[Val]| Some(e.w.op(name, &v[0], &v[1]));
        Ok(match (name, &v[..]) {
            ("add", [_, _]) => two("add", self, &v),
            ("sub", [_, _]) => two("sub", self, &v),
            ("and", [_, _]) => two("and", self, &v),
            ("or", [_, _]) => two("or", self, &v),
            ("xor", [_, _]) => two("xor", self, &v),
            ("not", [a]) => Some(self.w.op_const("xor", a, -1)),
            ("neg", [a]) => Some(self.w.op("sub", &constant(a.ty, 0), a)),
            ("mul", [a, b]) => self.product(variant, a, b, signed),
            ("mad", [a, b, c]) => self.product(variant, a, b, signed).map(|p| self.w.op("add", &p, c)),
            ("min" | "max", [a, b]) => {
                let name = match (name, signed) {
                    ("min", true) => "llvm.smin",
                    ("min", false) => "llvm.umin",
                    (_, true) => "llvm.smax",
                    (_, false) => "llvm.umax",
                };
                let (a, b) = self.w.agree(a, b);
                Some(self.w.intrinsic(name, a.ty, &[&a, &b]))
            }
            ("abs", [a]) => {
                let full = format!("llvm.abs.{}", super::text::mangle(a.ty));
                Some(self.w.intrinsic_named(&full, a.ty, &[a, &int(Elem::I1, 0)]))
            }
            ("shl" | "shr", [a, b]) => Some(self.shift(name, a, b, bits, signed)),
            ("popc" | "clz" | "brev", [a]) => {
                let r = match name {
                    "popc" => self.w.intrinsic("llvm.ctpop", a.ty, &[a]),
                    "brev" => self.w.intrinsic("llvm.bitreverse", a.ty, &[a]),
                    _ => {
                        let full = format!("llvm.ctlz.{}", super::text::mangle(a.ty));
                        self.w.intrinsic_named(&full, a.ty, &[a, &int(Elem::I1, 0)])
                    }
                };
                Some(if name == "brev" { r } else { self.w.resize(&r, Elem::I32, false) })
            }
            ("cnot", [a]) => {
                let zero = self.w.cmp("icmp eq", a, &constant(a.ty, 0));
                Some(self.w.cast("zext", &zero, elem))
            }
            ("lop3", [a, b, c, _]) => match srcs[3] {
                Operand::Imm(table) if !variant.has(Mod::And) && !variant.has(Mod::Or) => {
                    Some(self.lop3(a, b, c, table as u8))
                }
                _ => None,
            },
            ("div" | "rem", [a, b]) => self.divide(name, a, b, signed, bits),
            ("bfe", [a, position, length]) if bits == 32 => Some(self.bfe(a, position, length, signed)),
            ("shf", [a, b, c]) => {
                let shift = if variant.has(Mod::Clamp) {
                    let (c, limit) = self.w.agree(c, &int(Elem::I32, 32));
                    self.w.intrinsic("llvm.umin", c.ty, &[&c, &limit])
                } else {
                    self.w.op_const("and", c, 31)
                };
                let (low, high) = (self.w.cast("zext", a, Elem::I64), self.w.cast("zext", b, Elem::I64));
                let high = self.w.op_const("shl", &high, 32);
                let both = self.w.op("or", &low, &high);
                let shift = self.w.cast("zext", &shift, Elem::I64);
                Some(if variant.has(Mod::L) {
                    let moved = self.w.op("shl", &both, &shift);
                    let moved = self.w.op_const("lshr", &moved, 32);
                    self.w.cast("trunc", &moved, Elem::I32)
                } else {
                    let moved = self.w.op("lshr", &both, &shift);
                    self.w.cast("trunc", &moved, Elem::I32)
                })
            }
            _ => None,
        })
    }

    fn product(&mut self, variant: &Variant, a: &Val, b: &Val, signed: bool) -> Option<Val> {
        let bits = a.ty.elem.bits();
        if !variant.has(Mod::Wide) && !variant.has(Mod::Hi) {
            return Some(self.w.op("mul", a, b));
        }
        if bits > 32 {
            return None;
        }
        let wide = Elem::int(bits * 2);
        let (x, y) = (self.w.resize(a, wide, signed), self.w.resize(b, wide, signed));
        let p = self.w.op("mul", &x, &y);
        Some(if variant.has(Mod::Wide) {
            p
        } else {
            let high = self.w.op_const("lshr", &p, i128::from(bits));
            self.w.resize(&high, a.ty.elem, false)
        })
    }

    /// Shifts by the width or more give zeros, or copies of the sign.
    fn shift(&mut self, name: &str, a: &Val, b: &Val, bits: u32, signed: bool) -> Val {
        let limit = i128::from(bits) - 1;
        let big = self.w.cmp("icmp ugt", b, &constant(b.ty, limit));
        let amount = self.w.op_const("and", b, limit);
        let amount = self.w.resize(&amount, a.ty.elem, false);
        let operation = match (name, signed) {
            ("shl", _) => "shl",
            (_, true) => "ashr",
            _ => "lshr",
        };
        let shifted = self.w.op(operation, a, &amount);
        let beyond = if operation == "ashr" { self.w.op_const("ashr", a, limit) } else { constant(a.ty, 0) };
        self.w.select(&big, &beyond, &shifted)
    }

    /// Sum of minterms, simplified by LLVM.
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

    /// Division that cannot trap: divisors that would are replaced and the results set as the semantics say. 32 bits go
    /// through doubles, which are exact enough for every quotient; wider ones and scalars through the machine's division.
    fn divide(&mut self, name: &str, a: &Val, b: &Val, signed: bool, bits: u32) -> Option<Val> {
        if bits > 32 || !(a.ty.vector || b.ty.vector) {
            return Some(self.divide_integers(name, a, b, signed));
        }
        let (a, b) = self.w.agree(a, b);
        let (a, b) = (self.w.resize(&a, Elem::I32, signed), self.w.resize(&b, Elem::I32, signed));
        let zero = self.w.cmp("icmp eq", &b, &constant(b.ty, 0));
        let safe = self.w.select(&zero, &constant(b.ty, 1), &b);
        let (to, from) = if signed { ("sitofp", "fptosi") } else { ("uitofp", "fptoui") };
        let (x, y) = (self.w.cast(to, &a, Elem::F64), self.w.cast(to, &safe, Elem::F64));
        let q = self.w.op("fdiv", &x, &y);
        // Through 64 bits, so that -2^31 / -1 does not leave the range of the conversion.
        let _ = from;
        let q = self.w.cast("fptosi", &q, Elem::I64);
        let q = self.w.cast("trunc", &q, Elem::I32);
        let r = if name == "div" {
            self.w.select(&zero, &constant(q.ty, -1), &q)
        } else {
            let back = self.w.op("mul", &q, &safe);
            let rest = self.w.op("sub", &a, &back);
            self.w.select(&zero, &constant(rest.ty, -1), &rest)
        };
        Some(self.w.resize(&r, Elem::int(bits), signed))
    }

    /// Division by zero gives all ones, and so does its remainder; the least number by -1 gives itself.
    fn divide_integers(&mut self, name: &str, a: &Val, b: &Val, signed: bool) -> Val {
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
        let r = if name == "div" {
            q
        } else {
            let back = self.w.op("mul", &q, b);
            self.w.op("sub", a, &back)
        };
        self.w.select(&zero, &constant(r.ty, -1), &r)
    }

    fn bfe(&mut self, a: &Val, position: &Val, length: &Val, signed: bool) -> Val {
        // Manual 9.7.1.19: positions and lengths are 8 bits; beyond the top, the sign (or zero) goes on.
        let (position, length) = (self.w.op_const("and", position, 255), self.w.op_const("and", length, 255));
        let ext = if signed { "sext" } else { "zext" };
        let wide = self.w.cast(ext, a, Elem::I64);
        let (p, limit) = self.w.agree(&position, &int(Elem::I32, 32));
        let p = self.w.intrinsic("llvm.umin", p.ty, &[&p, &limit]);
        let p = self.w.cast("zext", &p, Elem::I64);
        let shifted = self.w.op(if signed { "ashr" } else { "lshr" }, &wide, &p);
        let (l, limit) = self.w.agree(&length, &int(Elem::I32, 33));
        let l = self.w.intrinsic("llvm.umin", l.ty, &[&l, &limit]);
        let l64 = self.w.cast("zext", &l, Elem::I64);
        let keep = self.w.op("sub", &constant(l64.ty, 64), &l64);
        let empty = self.w.cmp("icmp eq", &l64, &constant(l64.ty, 0));
        let keep = self.w.select(&empty, &constant(keep.ty, 63), &keep);
        let up = self.w.op("shl", &shifted, &keep);
        let down = self.w.op(if signed { "ashr" } else { "lshr" }, &up, &keep);
        let down = self.w.cast("trunc", &down, Elem::I32);
        self.w.select(&empty, &constant(down.ty, 0), &down)
    }

    fn float_row(&mut self, variant: &Variant, srcs: &[Operand], dsts: &[Operand]) -> Result<Option<Val>> {
        let (name, t, ftz) = (variant.op.row().name, variant.t(), variant.has(Mod::Ftz));
        // Rows of two types widen their operands first (section 9.7.5).
        if !rounds_to_nearest(variant) || srcs.len() > 3 || variant.ty(Var::U).is_some() {
            return Ok(None);
        }
        let single = t == Type::F32;
        let plain = variant.words.iter().all(|w| match w {
            margay_isa::Word::Mod(m) => matches!(m, Mod::Rn | Mod::Ftz | Mod::Sat | Mod::Approx | Mod::Full),
            margay_isa::Word::Type(_) => true,
        });
        let approximate =
            matches!(name, "ex2" | "lg2" | "sin" | "cos" | "rsqrt" | "tanh") && single && variant.has(Mod::Approx);
        let rounded = variant.has(Mod::Rn) || variant.has(Mod::Approx) && single || variant.has(Mod::Full);
        let known = match name {
            "add" | "sub" | "mul" | "fma" | "mad" => true,
            "div" | "sqrt" | "rcp" => rounded,
            "neg" | "abs" => true,
            "min" | "max" => single && srcs.len() == 2,
            _ => approximate,
        };
        if !plain || !known {
            return Ok(None);
        }
        let mixed = variant.ty(Var::U).filter(|u| single && matches!(u, Type::F16 | Type::Bf16));
        let mut v = Vec::new();
        for (i, s) in srcs.iter().enumerate() {
            // Rows that keep a NaN's bits must not see the host's.
            let x = if let Some(u) = mixed.filter(|_| i + 1 < srcs.len()) {
                self.half(s, u)?
            } else if matches!(name, "neg" | "abs") {
                let x = self.value(s, if single { Elem::I32 } else { Elem::I64 })?;
                let x = self.w.cast("bitcast", &x, if single { Elem::F32 } else { Elem::F64 });
                if ftz && single { self.flush(&x) } else { x }
            } else {
                self.float(s, t, ftz)?
            };
            v.push(x);
        }
        let one =
            |v: &Val| constant(v.ty, if single { i128::from(1f32.to_bits()) } else { i128::from(1f64.to_bits()) });
        let result = match (name, &v[..]) {
            ("add", [a, b]) => self.w.op("fadd", a, b),
            ("sub", [a, b]) => self.w.op("fsub", a, b),
            ("mul", [a, b]) => self.w.op("fmul", a, b),
            ("fma" | "mad", [a, b, c]) => {
                let (a, b) = self.w.agree(a, b);
                let (a, c) = self.w.agree(&a, c);
                let (a, b) = self.w.agree(&a, &b);
                self.w.intrinsic("llvm.fma", a.ty, &[&a, &b, &c])
            }
            ("div", [a, b]) => {
                let q = self.w.op("fdiv", a, b);
                if !variant.has(Mod::Approx) {
                    q
                } else {
                    // Zero of the sign for divisors beyond 2^126 (manual 9.7.3.8).
                    let size = self.w.intrinsic("llvm.fabs", b.ty, &[b]);
                    let limit = constant(b.ty, 0x7e80_0000);
                    let big = self.w.cmp("fcmp ogt", &size, &limit);
                    let zero = self.w.intrinsic("llvm.copysign", b.ty, &[&constant(b.ty, 0), b]);
                    let nothing = self.w.op("fmul", a, &zero);
                    self.w.select(&big, &nothing, &q)
                }
            }
            ("rcp", [a]) => self.w.op("fdiv", &one(a), a),
            ("sqrt", [a]) => self.w.intrinsic("llvm.sqrt", a.ty, &[a]),
            ("neg", [a]) => self.w.value(a.ty, format_args!("fneg {} {a}", a.ty)),
            ("abs", [a]) => self.w.intrinsic("llvm.fabs", a.ty, &[a]),
            ("min" | "max", [a, b]) => {
                let (a, b) = self.w.agree(a, b);
                let r = self.extreme(name == "min", &a, &b);
                self.canonical_float(&r)
            }
            (_, [a]) => match self.approximate(name, a) {
                Some(r) => self.canonical_float(&r),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let keeps_bits = matches!(name, "neg" | "abs");
        let result = if ftz && single && !keeps_bits { self.flush(&result) } else { result };
        let trivial = |s: &Operand| matches!(s, Operand::Imm(x) if [0.0, 1.0].contains(&f64::from_bits(*x).abs()));
        let folds = !single && matches!(name, "add" | "sub" | "mul" | "fma" | "mad" | "div");
        let result = if folds && srcs.iter().any(trivial) { self.quiet(&result) } else { result };
        let result = if variant.has(Mod::Sat) { self.saturate(&result, t) } else { result };
        // A register that other rows write as well is read without a look at its NaNs.
        let lazy = matches!(dsts, [Operand::Reg(d)] if self.lazy[d.0 as usize]);
        Ok(Some(if single && !lazy && !keeps_bits { self.canonical_float(&result) } else { result }))
    }

    /// The smaller or larger of two floats; the other one where one is NaN; -0 is below +0 (manual 9.7.3.11, 9.7.3.12).
    /// `llvm.minimumnum` is this, from LLVM 20 on.
    fn extreme(&mut self, min: bool, a: &Val, b: &Val) -> Val {
        let (relation, merge) = if min { ("fcmp olt", "or") } else { ("fcmp ogt", "and") };
        let wins = self.w.cmp(relation, a, b);
        let alone = self.w.cmp("fcmp uno", b, b);
        let first = self.w.op("or", &wins, &alone);
        let chosen = self.w.select(&first, a, b);
        // Equal values differ at most in the signs of zeros.
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

    /// Clamps to [0, 1]; NaN gives +0.
    fn saturate(&mut self, v: &Val, t: Type) -> Val {
        let one = if t == Type::F64 { 1f64.to_bits() } else { u64::from(1f32.to_bits()) };
        let (zero, one) = (constant(v.ty, 0), constant(v.ty, i128::from(one)));
        let positive = self.w.cmp("fcmp ogt", v, &zero);
        let v = self.w.select(&positive, v, &zero);
        let small = self.w.cmp("fcmp olt", &v, &one);
        self.w.select(&small, &v, &one)
    }

    // ---- helpers ----

    /// Calls the semantic function: sources to rows in memory, results back.
    fn thunk(&mut self, inst: &Inst, variant: &Variant, srcs: &[Operand], dsts: &[Operand]) -> Result<()> {
        let results = self.through_rows(inst, srcs, dsts, Helper::Pure)?;
        let guard = self.guard(inst);
        let _ = variant;
        for (d, v) in dsts.iter().zip(&results) {
            if let Operand::Reg(r) = d {
                self.write(*r, v, guard.as_ref());
            }
        }
        Ok(())
    }

    /// Buffers of so many rows that a helper reads, and of so many that it writes.
    pub fn buffers(&mut self, read: usize, written: usize) -> [Val; 2] {
        [(read, false), (written, true)].map(|(rows, out)| {
            let w = &mut self.w;
            let new = || w.alloca(&format!("[{} x <32 x i32>]", rows.max(1)), 64);
            self.buffers.entry((rows, out)).or_insert_with(new).clone()
        })
    }

    fn through_rows(&mut self, inst: &Inst, srcs: &[Operand], dsts: &[Operand], helper: Helper) -> Result<Vec<Val>> {
        let types = margay_ir::operand_types(self.func, inst);
        let src_bits: Vec<u32> = types.srcs.iter().map(|t| t.bits()).collect();
        let dst_bits: Vec<u32> = types.dsts.iter().map(|t| t.bits()).collect();
        let rows = |bits: &[u32]| bits.iter().map(|b| margay_exec::lanes::rows(*b)).sum();
        let [input, output] = self.buffers(rows(&src_bits), rows(&dst_bits));
        let mut at = 0u64;
        for (s, bits) in srcs.iter().zip(&src_bits) {
            let p = self.w.offset_const(&input, at * 128);
            if *bits == 1 {
                let v = self.value(s, Elem::I1)?;
                let v = self.bits(&v);
                self.w.store(&v, &p, 64);
            } else {
                let v = self.value(s, Elem::int((*bits).max(8)))?;
                let v = self.w.resize(&v, Elem::int((*bits).max(32)), false);
                let v = self.w.splat(&v);
                self.w.store(&v, &p, 64);
            }
            at += margay_exec::lanes::rows(*bits) as u64;
        }
        let kind = SiteKind::Pure { srcs: src_bits, dsts: dst_bits.clone() };
        let site = self.site(kind);
        let mask = self.active_bits();
        self.helper(helper, &[&int(Elem::I32, site as i128), &mask, &input, &output], false);
        let mut results = Vec::new();
        let mut at = 0u64;
        for (d, bits) in dsts.iter().zip(&dst_bits) {
            let p = self.w.offset_const(&output, at * 128);
            let elem = match d {
                Operand::Reg(r) => self.slots[r.0 as usize].elem,
                _ => Elem::I32,
            };
            results.push(if *bits == 1 {
                let v = self.w.load(Ty::scalar(Elem::I32), &p, 64);
                self.unpack_bits(&v)
            } else {
                let v = self.w.load(Ty::lanes(Elem::int((*bits).max(32))), &p, 64);
                self.w.resize(&v, elem, false)
            });
            at += margay_exec::lanes::rows(*bits) as u64;
        }
        Ok(results)
    }
}
