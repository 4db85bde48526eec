//! Decodes `tcgen05` instructions (manual, section 9.7.16).

use super::super::{
    code::{Flow, Handler, Tcgen05Op},
    step,
};
use super::{Decoder, append, tensor::named};
use crate::Stop;
use margay_ir::{Func, Inst, MemSpace, Operand};
use margay_isa::Mod;

impl Decoder<'_> {
    /// `tcgen05`
    pub(super) fn tcgen05(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        use step::tcgen05 as run;
        let v = func.variant(inst);
        let handler: Handler = match () {
            _ if v.has(Mod::Alloc) => |ctx, op| Flow::after(run::allocate(ctx, op)),
            _ if v.has(Mod::Dealloc) => |ctx, op| Flow::after(run::free(ctx, op)),
            _ if v.has(Mod::RelinquishAllocPermit) => |ctx, op| Flow::after(run::relinquish(ctx, op)),
            _ if v.has(Mod::Ld) => |ctx, op| Flow::after(run::load(ctx, op)),
            _ if v.has(Mod::St) => |ctx, op| Flow::after(run::store(ctx, op)),
            _ if v.has(Mod::Cp) => |ctx, op| Flow::after(run::copy(ctx, op)),
            _ if v.has(Mod::Mma) => |ctx, op| Flow::after(run::product(ctx, op)),
            _ if v.has(Mod::Commit) => |ctx, op| Flow::after(run::commit(ctx, op)),
            // Everything is done at issue.
            _ if v.has(Mod::WaitLd) || v.has(Mod::WaitSt) => run::wait,
            _ if v.has(Mod::FenceBeforeThreadSync) || v.has(Mod::FenceAfterThreadSync) => step::memory::no_op,
            _ if v.has(Mod::Shift) => |ctx, op| Flow::after(run::shift(ctx, op)),
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
        let dst = self.destinations(func, inst);
        let x = append(&mut self.code.tcgen05s, Tcgen05Op { dst, values, addresses });
        self.emit(inst, handler, x);
        Ok(())
    }
}
