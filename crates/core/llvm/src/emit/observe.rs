//! Reports to the observer of a launch: accesses before they take effect, barriers, warp operations, the begin and end of CTAs.
//!
//! Only kernels that loop over CTAs and warps themselves are compiled for an observer, and no device functions: the others
//! stay on the reference engine. What is not reported here is executed by the reference engine, which reports it: copies,
//! matrices in memory, fences, operations of a part of a warp.

use crate::ctx::Helper;
use crate::emit::{
    function::{Emitter, Mode, Result, Role},
    memory::address::Address,
    site::{Moment, SiteKind},
    text::{Elem, Ty, Val, int, named},
};
use margay_exec::AccessKind;
use margay_ir::{Builtin, Inst, MemSpace, Operand};
use margay_isa::{Effect, Mod, Opcode, Variant};

impl Emitter<'_> {
    /// Refuses what an observer could not be told of.
    pub fn require_observable(&self) -> Result<()> {
        if self.options.observe && (self.role != Role::Grid || self.options.cluster.is_some()) {
            return self.refuse("checks of a kernel whose warps run on fibers, or that calls functions");
        }
        Ok(())
    }

    /// Refuses calls whose effects are reported by the reference engine only.
    pub fn require_observable_call(&self, builtin: Option<Builtin>) -> Result<()> {
        match builtin {
            _ if !self.options.observe => Ok(()),
            Some(Builtin::Free) => self.refuse("checks of a kernel that frees memory"),
            Some(_) => Ok(()),
            None => self.refuse("checks of a kernel that calls functions"),
        }
    }

    /// Whether an instruction must be executed by the reference engine for the observer's sake, although it has native code.
    pub fn reported_elsewhere(&self, inst: &Inst) -> bool {
        if !self.options.observe {
            return false;
        }
        let variant = self.func.variant(inst);
        match (variant.op.row().effect, variant.op) {
            (Effect::Memory, Opcode::Ld | Opcode::Ldu | Opcode::St | Opcode::Atom | Opcode::Red) => false,
            (Effect::Memory, Opcode::Cp | Opcode::Membar | Opcode::Fence) => true,
            (Effect::Warp, Opcode::Bar | Opcode::Barrier) => variant.has(Mod::Warp) && !self.is_whole(inst),
            (Effect::Warp, Opcode::Ldmatrix | Opcode::Stmatrix) => true,
            (Effect::Warp, Opcode::Wmma) => variant.has(Mod::Load) || variant.has(Mod::Store),
            (Effect::Warp, Opcode::Activemask) => false,
            (Effect::Warp, _) if exchanges(variant) => !self.is_whole(inst),
            _ => false,
        }
    }

    /// Whether all 32 lanes of a warp execute an operation, and its member mask names them all.
    fn is_whole(&self, inst: &Inst) -> bool {
        let variant = self.func.variant(inst);
        let members = match variant.has(Mod::Sync) || matches!(variant.op, Opcode::Bar | Opcode::Barrier) {
            true => self.func.operands(inst.srcs).last().copied(),
            false => Some(Operand::Imm(u32::MAX.into())),
        };
        let all = matches!(members, Some(Operand::Imm(v)) if v as u32 == u32::MAX);
        self.mode == Mode::Full && inst.guard.is_none() && all
    }

    /// Reports a warp operation that has native code.
    pub fn observe_warp(&mut self, inst: &Inst) {
        let variant = self.func.variant(inst);
        if matches!(variant.op, Opcode::Bar | Opcode::Barrier) {
            self.observe(Moment::Warp);
        } else if exchanges(variant) {
            self.observe(Moment::Exchange);
        }
    }

    /// Reports something that the active lanes do at the current instruction.
    pub fn observe(&mut self, moment: Moment) {
        if !self.options.observe {
            return;
        }
        let (site, lanes) = (self.site(SiteKind::Moment(moment)), self.active_bits());
        self.helper(Helper::Event, &[&int(Elem::I32, site as i128), &lanes], false);
    }

    /// Reports an access by the active lanes of a mask; `values` are the elements that it stores.
    pub fn observe_access(
        &mut self,
        (inst, access): (&Inst, AccessKind),
        address: &Address,
        bytes: u32,
        values: &[Val],
        mask: Option<&Val>,
    ) {
        let space = inst.space.unwrap_or(MemSpace::Generic);
        if !self.options.observe || matches!(space, MemSpace::Const | MemSpace::KernelParam) {
            return;
        }
        let site = self.site(SiteKind::Observed { bytes, access });
        let site = int(Elem::I32, site as i128);
        let lanes = self.lane_bits(mask);
        let stored = match values.first() {
            None => named(Ty::scalar(Elem::Ptr), "null"),
            Some(first) => {
                let size = u64::from(first.ty.elem.bits() / 8) * 32;
                let row = self.w.alloca(&format!("[{} x i8]", size * values.len() as u64), 64);
                for (k, v) in values.iter().enumerate() {
                    let (v, p) = (self.w.splat(v), self.w.offset_const(&row, k as u64 * size));
                    self.w.store(&v, &p, 8);
                }
                row
            }
        };
        match address {
            Address::Affine { bases, width: 32, stride } => {
                let stride = int(Elem::I64, i128::from(*stride));
                self.helper(Helper::ObserveRow, &[&site, &lanes, &bases[0], &stride, &stored], false);
            }
            _ => {
                let all = self.spread(address);
                let list = self.w.alloca(&Ty::lanes(Elem::I64).to_string(), 64);
                self.w.store(&all, &list, 64);
                self.helper(Helper::Observe, &[&site, &lanes, &list, &stored], false);
            }
        }
    }
}

/// Whether lanes tell each other something in a warp operation, of which the reference engine reports the completion.
fn exchanges(variant: &Variant) -> bool {
    use Opcode::{Activemask, Elect, Match, Redux, Shfl, Vote};
    matches!(variant.op, Shfl | Vote | Match | Redux | Activemask | Elect)
}
