//! Pure rows without native code: a helper evaluates their semantic functions. Operands and results are passed in
//! memory as rows of 32 words.

use crate::ctx::Helper;
use crate::emit::{
    function::{Emitter, Result},
    site::SiteKind,
    text::{Elem, Ty, Val, int},
};
use margay_ir::{Inst, Operand};

impl Emitter<'_> {
    /// Calls the semantic function of a row and writes its results.
    pub fn thunk(&mut self, inst: &Inst, srcs: &[Operand], dsts: &[Operand]) -> Result<()> {
        let types = margay_ir::operand_types(self.func, inst);
        let [read, written] = [&types.srcs, &types.dsts].map(|t| t.iter().map(|t| t.bits()).collect());
        let site = self.site(SiteKind::Pure { srcs: read, dsts: written });
        let mask = self.active_bits();
        self.in_memory(inst, srcs, dsts, |e, input, output| {
            e.helper(Helper::Pure, &[&int(Elem::I32, site as i128), &mask, input, output]);
        })
    }

    /// Stores the operands as rows, has `f` compute rows of results, and writes these.
    pub fn in_memory(
        &mut self,
        inst: &Inst,
        srcs: &[Operand],
        dsts: &[Operand],
        f: impl FnOnce(&mut Self, &Val, &Val),
    ) -> Result<()> {
        let results = self.through_rows(inst, srcs, dsts, f)?;
        let guard = self.guard(inst);
        for (d, v) in dsts.iter().zip(&results) {
            if let Operand::Reg(r) = d {
                self.write(*r, v, guard.as_ref());
            }
        }
        Ok(())
    }

    /// The function's buffers of `read` rows for a helper's operands and `written` rows for its results; shared by all
    /// calls.
    pub fn buffers(&mut self, read: usize, written: usize) -> [Val; 2] {
        [(read, false), (written, true)].map(|(rows, out)| {
            let w = &mut self.w;
            let new = || w.alloca(&format!("[{} x <32 x i32>]", rows.max(1)), 64);
            self.entry.buffers.entry((rows, out)).or_insert_with(new).clone()
        })
    }

    fn through_rows(
        &mut self,
        inst: &Inst,
        srcs: &[Operand],
        dsts: &[Operand],
        f: impl FnOnce(&mut Self, &Val, &Val),
    ) -> Result<Vec<Val>> {
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
        f(self, &input, &output);
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
