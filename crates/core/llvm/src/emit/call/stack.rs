//! `alloca`, `stacksave`, `stackrestore` (manual, section 9.7.17): each lane has its own stack end, above the frame.

use crate::ctx::at;
use crate::emit::{
    function::{Emitter, Result},
    site::SiteKind,
    text::{Elem, Ty, Val, constant, int, named},
};
use margay_ir::{Func, Inst, Operand};
use margay_isa::Opcode;

/// Whether an instruction reads or moves the end of the stack.
pub(in crate::emit) fn moves_stack(func: &Func, inst: &Inst) -> bool {
    matches!(func.variant(inst).op, Opcode::Alloca | Opcode::Stacksave | Opcode::Stackrestore)
}

impl Emitter<'_> {
    /// Offset in the local window of the first byte after the function's frame.
    pub fn frame_end(&mut self) -> Val {
        let places = &self.ir.stage.funcs[self.id.0 as usize];
        let size = i128::from(places.frame_size);
        match self.func.kind {
            margay_check::FuncKind::Kernel => int(Elem::I32, i128::from(places.base) + size),
            _ => self.w.op_const("add", &named(Ty::scalar(Elem::I32), "%frame"), size),
        }
    }

    /// Initializes the lanes' stack ends, if some instruction moves them.
    pub fn begin_stack(&mut self) {
        if !self.func.insts.iter().any(|i| moves_stack(self.func, i)) {
            return;
        }
        let top = self.w.alloca("<32 x i32>", 64);
        let end = self.frame_end();
        let end = self.w.splat(&end);
        self.w.store(&end, &top, 64);
        self.calls.stack_ends = Some(top);
    }

    /// Lowest offset for a callee's frame: after the longest stack of any calling lane.
    pub fn next_frame(&mut self) -> Val {
        let Some(top) = self.calls.stack_ends.clone() else { return self.frame_end() };
        let mut tops = self.w.load(Ty::lanes(Elem::I32), &top, 64);
        if let Some(active) = self.lanes(None) {
            tops = self.w.select(&active, &tops, &constant(Ty::lanes(Elem::I32), 0));
        }
        self.w.intrinsic_named("llvm.vector.reduce.umax.v32i32", Ty::scalar(Elem::I32), &[&tops])
    }

    /// Emits one of the three instructions.
    pub fn stack_op(&mut self, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let (Some(top), wide) = (self.calls.stack_ends.clone(), Ty::lanes(Elem::I64)) else {
            return self.refuse("a stack");
        };
        let srcs = self.func.operands(inst.srcs).to_vec();
        let old = self.w.load(Ty::lanes(Elem::I32), &top, 64);
        let old = self.w.cast("zext", &old, Elem::I64);
        let result = match (variant.op, srcs.first()) {
            (Opcode::Stacksave, _) => old,
            (Opcode::Stackrestore, Some(v)) => {
                let v = self.value(v, Elem::I64)?;
                let v = self.w.splat(&v);
                let bottom = self.frame_end();
                let bottom = self.w.resize(&bottom, Elem::I64, false);
                let bottom = self.w.splat(&bottom);
                let (low, high) = (self.w.cmp("icmp ult", &v, &bottom), self.w.cmp("icmp ugt", &v, &old));
                let bad = self.w.op("or", &low, &high);
                self.refuse_if(&bad, SiteKind::Restore, [&v, &bottom, &old]);
                let v = self.w.cast("trunc", &v, Elem::I32);
                self.store_lanes(&v, &top);
                return Ok(());
            }
            (_, Some(size)) => {
                let align = match srcs.get(1) {
                    Some(Operand::Imm(align)) => i128::from(*align).max(8),
                    _ => 8,
                };
                if align.count_ones() != 1 || align > 1 << 23 {
                    return self.refuse(format!("`alloca` with an alignment of {align}"));
                }
                let size = self.value(size, Elem::I64)?;
                let size = self.w.splat(&size);
                let at = self.w.op_const("add", &old, align - 1);
                let at = self.w.op_const("and", &at, -align);
                // Even an allocation of zero bytes has a unique address.
                let taken = self.w.intrinsic("llvm.umax", wide, &[&size, &constant(wide, 1)]);
                let end = self.w.op("add", &at, &taken);
                self.local.used = true;
                let limit = self.ctx_value(Elem::I64, at::LOCAL_SIZE);
                let limit = self.w.splat(&limit);
                let (beyond, wraps) = (self.w.cmp("icmp ugt", &end, &limit), self.w.cmp("icmp ult", &end, &taken));
                let bad = self.w.op("or", &beyond, &wraps);
                self.refuse_if(&bad, SiteKind::Alloca, [&size, &at, &limit]);
                let end = self.w.cast("trunc", &end, Elem::I32);
                self.store_lanes(&end, &top);
                at
            }
            _ => return self.refuse(variant.to_string()),
        };
        if let Some(Operand::Reg(d)) = self.func.operands(inst.dsts).first().copied() {
            let v = self.w.resize(&result, self.slots[d.0 as usize].elem, false);
            self.write(d, &v, None);
        }
        Ok(())
    }
}
