//! Pure rows: native vector code where there is some, else the semantic function of `exec` through a helper.
//!
//! Native code must give the same bits as the semantic function, which `tests/native.rs` checks. Inactive lanes hold
//! arbitrary values, so nothing that can trap on the host (division) may see them.

pub(in crate::emit) mod approx;
pub(in crate::emit) mod bits;
pub(in crate::emit) mod carry;
pub(in crate::emit) mod compare;
pub(in crate::emit) mod convert;
mod defined;
mod directed;
pub(in crate::emit) mod float;
pub(in crate::emit) mod half;
pub(in crate::emit) mod helper;
pub(in crate::emit) mod integer;
pub(in crate::emit) mod nan;
mod reciprocal;
mod rsqrt;
pub(in crate::emit) mod subnormal;

use crate::emit::{
    function::affine::affine_form,
    function::{Emitter, Result},
    text::{Elem, Val},
};
use margay_ir::{Inst, Operand, pass::Shape};
use margay_isa::{Kind, Mod, Opcode, Type, Variant};

impl Emitter<'_> {
    /// Emits a row with effect `Pure`.
    pub fn pure(&mut self, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let srcs: Vec<Operand> = self.func.operands(inst.srcs).to_vec();
        let dsts: Vec<Operand> = self.func.operands(inst.dsts).to_vec();
        // An affine result: only the scalar of each row of lanes is computed.
        if let [Operand::Reg(d)] = dsts[..] {
            let slot = self.slots[d.0 as usize].clone();
            let in_rows = |e: &Self, o: &Operand| {
                let shape = match o {
                    Operand::Reg(r) => e.slots[r.0 as usize].shape,
                    Operand::Special(s, c) => e.options.warp.special(*s, *c),
                    _ => Shape::Uniform,
                };
                matches!(shape, Shape::Affine { .. })
            };
            if let Some((width, _)) = affine_form(slot.shape)
                && (width < 32 || srcs.iter().any(|s| in_rows(self, s)))
                && inst.guard.is_none()
            {
                let bases = self.by_rows(width, |e| e.scalar_result(&variant, &srcs, &dsts, slot.elem))?;
                self.write_rows(&slot.pointer, slot.elem, &bases);
                return Ok(());
            }
        }
        let Some(results) = self.native(&variant, &srcs, &dsts)? else {
            return self.thunk(inst, &srcs, &dsts);
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

    /// Converts a result to the element type of a register.
    fn fit(&mut self, v: &Val, elem: Elem, variant: &Variant) -> Val {
        if v.ty.elem.bits() == elem.bits() {
            return self.w.cast("bitcast", v, elem);
        }
        let v = self.w.cast("bitcast", v, Elem::int(v.ty.elem.bits()));
        self.w.resize(&v, elem, variant.t().is_signed())
    }

    /// The result of a row whose operands all read as scalars.
    fn scalar_result(&mut self, variant: &Variant, srcs: &[Operand], dsts: &[Operand], elem: Elem) -> Result<Val> {
        match self.native(variant, srcs, dsts)?.as_deref() {
            Some([v]) if !v.ty.vector => Ok(self.fit(v, elem, variant)),
            _ => self.refuse(format!("{variant} in rows")),
        }
    }

    /// Native code of a row: one value per destination, or `None` where the helper must do it.
    fn native(&mut self, variant: &Variant, srcs: &[Operand], dsts: &[Operand]) -> Result<Option<Vec<Val>>> {
        let (op, t) = (variant.op, variant.t());
        if srcs.iter().any(|s| matches!(s, Operand::Sink)) {
            return Ok(None);
        }
        if let Some(found) = self.carry_row(variant, srcs)? {
            return Ok(Some(found));
        }
        if variant.has(Mod::Cc) {
            return Ok(None);
        }
        match op {
            Opcode::Mov => return self.mov(variant, srcs, dsts),
            Opcode::Cvt => return Ok(self.cvt(variant, srcs)?.map(|v| vec![v])),
            Opcode::Setp => return self.setp(variant, srcs, dsts),
            Opcode::Selp => {
                let elem = Elem::int(t.bits());
                let [a, b] = [0, 1].map(|i| self.copied_value(&srcs[i], &dsts[0], elem));
                let (a, b, c) = (a?, b?, self.value(&srcs[2], Elem::I1)?);
                return Ok(Some(vec![self.w.select(&c, &a, &b)]));
            }
            Opcode::Set => return Ok(self.set(variant, srcs)?.map(|v| vec![v])),
            Opcode::Slct => return Ok(self.slct(variant, srcs)?.map(|v| vec![v])),
            Opcode::Testp => return Ok(self.testp(variant, &srcs[0])?.map(|v| vec![v])),
            Opcode::Copysign if matches!(t, Type::F32 | Type::F64) => return self.copysign(t, srcs),
            _ => {}
        }
        Ok(match t.kind() {
            Kind::Float if matches!(t, Type::F32 | Type::F64) => self.float_row(variant, srcs, dsts)?.map(|v| vec![v]),
            Kind::Float => self.half_row(variant, srcs)?.map(|v| vec![v]),
            Kind::Packed => self.packed_row(variant, srcs)?.map(|v| vec![v]),
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
            // Unpack, low part first.
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

    /// The magnitude of the second operand with the sign of the first.
    fn copysign(&mut self, t: Type, srcs: &[Operand]) -> Result<Option<Vec<Val>>> {
        let elem = Elem::int(t.bits());
        let (sign, size) = (self.value(&srcs[0], elem)?, self.value(&srcs[1], elem)?);
        let rest = (1i128 << (t.bits() - 1)) - 1;
        let (sign, size) = (self.w.op_const("and", &sign, !rest), self.w.op_const("and", &size, rest));
        Ok(Some(vec![self.w.op("or", &sign, &size)]))
    }
}
