//! Conversion of addresses between a space and the generic one: `cvta`, `isspacep`.

use crate::ctx::at;
use crate::emit::{
    function::affine::affine_form,
    function::{Emitter, Result},
    text::{Elem, Val, int},
};
use margay_ir::{Inst, MemSpace, Operand};
use margay_isa::{Mod, Opcode, Variant};

impl Emitter<'_> {
    /// `cvta`: adds or subtracts the base of a window.
    pub fn cvta(&mut self, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        if variant.has(Mod::SharedCluster) {
            return self.effect(inst);
        }
        let srcs = self.func.operands(inst.srcs).to_vec();
        let (Some(src), Some(Operand::Reg(dst))) =
            (srcs.first().copied(), self.func.operands(inst.dsts).first().copied())
        else {
            return self.refuse("cvta");
        };
        let slot = self.slots[dst.0 as usize].clone();
        let own = affine_form(slot.shape).is_some() || !self.may_be_remote();
        if variant.has(Mod::To) && variant.has(Mod::Shared) && !own {
            return self.effect(inst);
        }
        if let Some((width, _)) = affine_form(slot.shape)
            && inst.guard.is_none()
        {
            let bases = self.by_rows(width, |e| e.convert_address(&variant, &src, slot.elem))?;
            self.write_rows(&slot.pointer, slot.elem, &bases);
            return Ok(());
        }
        let v = self.convert_address(&variant, &src, slot.elem)?;
        let guard = self.guard(inst);
        let shadow = match guard {
            None => self.shadow_of(dst, &variant, &srcs[..1], |e| e.convert_address(&variant, &src, slot.elem))?,
            Some(_) => None,
        };
        self.write(dst, &v, guard.as_ref());
        if let Some(shadow) = shadow {
            self.write_shadow(dst, &shadow);
        }
        Ok(())
    }

    /// Whether a generic address may lie in the window of another CTA of the cluster: `mapa` yields such.
    fn may_be_remote(&self) -> bool {
        let maps = |inst: &Inst| {
            let variant = self.func.variant(inst);
            variant.op == Opcode::Mapa && !variant.has(Mod::SharedCluster)
        };
        self.options.cluster.is_some()
            && (self.func.kind != margay_check::FuncKind::Kernel || self.func.insts.iter().any(maps))
    }

    fn convert_address(&mut self, variant: &Variant, src: &Operand, elem: Elem) -> Result<Val> {
        let to = variant.has(Mod::To);
        let shared = variant.has(Mod::Shared) || variant.has(Mod::SharedCta);
        let param = variant.has(Mod::Param) || variant.has(Mod::ParamEntry);
        let v = self.value(src, elem)?;
        let v = self.w.resize(&v, Elem::I64, false);
        let rank = if shared { self.rank_in_addresses() } else { None };
        let v = match rank {
            Some(_) if !to => {
                let narrow = self.w.resize(&v, Elem::I32, false);
                let narrow = self.without_rank(MemSpace::Shared, narrow);
                self.w.resize(&narrow, Elem::I64, false)
            }
            _ => v,
        };
        let v = if shared || param {
            let base = self.ctx_value(Elem::I64, if shared { at::SHARED } else { at::PARAMS });
            self.w.op(if to { "sub" } else { "add" }, &v, &base)
        } else if variant.has(Mod::Local) {
            let windows = self.local_lanes(&int(Elem::I32, 0));
            let windows = self.spread(&windows);
            self.w.op(if to { "sub" } else { "add" }, &v, &windows)
        } else {
            v
        };
        let v = match rank {
            Some(rank) if to => {
                let rank = self.w.resize(&rank, Elem::I64, false);
                self.w.op("add", &v, &rank)
            }
            _ => v,
        };
        Ok(self.w.resize(&v, elem, false))
    }

    /// `isspacep`: tests whether a generic address lies in a window.
    pub fn isspacep(&mut self, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let (Some(src), Some(Operand::Reg(dst))) =
            (self.func.operands(inst.srcs).first().copied(), self.func.operands(inst.dsts).first().copied())
        else {
            return self.refuse("isspacep");
        };
        let v = self.value(&src, Elem::I64)?;
        let within = |e: &mut Self, base: &Val, size: &Val| {
            let offset = e.w.op("sub", &v, base);
            e.w.cmp("icmp ult", &offset, size)
        };
        let shared = |e: &mut Self| {
            let (base, size) = (e.ctx_value(Elem::I64, at::SHARED), e.ctx_value(Elem::I64, at::SHARED_SIZE));
            within(e, &base, &size)
        };
        let local = |e: &mut Self| {
            let windows = e.local_lanes(&int(Elem::I32, 0));
            let windows = e.spread(&windows);
            let size = e.ctx_value(Elem::I64, at::LOCAL_SIZE);
            within(e, &windows, &size)
        };
        if variant.has(Mod::Global) {
            // The reference engine distinguishes constant from global memory, but does not know the lanes' local windows.
            self.effect(inst)?;
            self.local.used = true;
            let (base, stride) = (self.ctx_value(Elem::I64, at::LOCAL), self.ctx_value(Elem::I64, at::LOCAL_STRIDE));
            let size = self.w.op_const("mul", &stride, 32);
            let local = within(self, &base, &size);
            let other = self.w.op_const("xor", &local, 1);
            let rest = self.read(dst);
            let global = self.w.op("and", &rest, &other);
            let guard = self.guard(inst);
            self.write(dst, &global, guard.as_ref());
            return Ok(());
        }
        if self.options.cluster.is_some() && variant.has(Mod::SharedCluster) {
            return self.effect(inst);
        }
        let inside = if variant.has(Mod::Shared) || variant.has(Mod::SharedCta) || variant.has(Mod::SharedCluster) {
            shared(self)
        } else if variant.has(Mod::Local) {
            local(self)
        } else {
            return self.effect(inst);
        };
        let guard = self.guard(inst);
        self.write(dst, &inside, guard.as_ref());
        Ok(())
    }
}
