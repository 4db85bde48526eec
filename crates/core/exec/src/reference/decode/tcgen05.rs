//! Decodes `tcgen05` instructions (manual, section 9.7.16).

use super::super::{
    code::{Handler, Tcgen05Op},
    step,
};
use super::{Decoder, tensor::named};
use crate::Stop;
use margay_ir::{Func, Inst, MemSpace, Operand};
use margay_isa::Mod;

impl Decoder<'_> {
    /// `tcgen05`
    pub(super) fn tcgen05(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        use step::tcgen05 as run;
        let v = func.variant(inst);
        let handler: Handler = match () {
            _ if v.has(Mod::Alloc) => run::allocate,
            _ if v.has(Mod::Dealloc) => run::free,
            _ if v.has(Mod::RelinquishAllocPermit) => run::relinquish,
            _ if v.has(Mod::Ld) => run::load,
            _ if v.has(Mod::St) => run::store,
            _ if v.has(Mod::Cp) => run::copy,
            _ if v.has(Mod::Mma) => run::product,
            _ if v.has(Mod::Commit) => run::commit,
            // Everything is done at issue.
            _ if v.has(Mod::WaitLd) || v.has(Mod::WaitSt) => run::wait,
            _ if v.has(Mod::FenceBeforeThreadSync) || v.has(Mod::FenceAfterThreadSync) => step::memory::nothing,
            _ if v.has(Mod::Shift) => run::shift,
            _ => return Err(self.unsupported(format!("`{v}`"))),
        };
        let space = inst.space.unwrap_or(MemSpace::Generic);
        let (mut values, mut addresses) = (Vec::new(), Vec::new());
        for n in named(func, inst) {
            match n.operand {
                Operand::Mem(..) => addresses.push((n.name, self.address(&n.operand, space)?)),
                Operand::Sink => {}
                _ => values.push((n.name, self.source(&n.operand, n.ty)?)),
            }
        }
        let types = margay_ir::operand_types(func, inst).dsts;
        let dst = func.operands(inst.dsts).iter().zip(&types).map(|(o, ty)| self.dst(func, o, *ty)).collect();
        self.code.tcgen05s.push(Tcgen05Op { dst, values, addresses });
        let x = self.code.tcgen05s.len() - 1;
        self.emit(inst, handler, x);
        Ok(())
    }
}
