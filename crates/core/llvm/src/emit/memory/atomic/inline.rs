//! Updates of shared memory by all lanes, one after another, in the code of the kernel: a call would cost as much again.

use super::{Code, operation::Operation};
use crate::ctx::at;
use crate::emit::{
    function::Emitter,
    memory::{PROGRAM, address::Address, group::Member},
    text::{Elem, Ty, Val, int},
};
use margay_ir::{MemBase, Operand};

impl Emitter<'_> {
    /// Emits operations of all lanes on shared memory whose old values are unused; returns whether that was possible. `operand` is what
    /// the address comes from.
    pub(super) fn in_line(
        &mut self,
        code: Code,
        (address, operand): (&Address, &Operand),
        operands: &[Val],
        mask: Option<&Val>,
    ) -> bool {
        let [v] = operands else { return false };
        let simple =
            matches!(code.op, Operation::Add | Operation::And | Operation::Or | Operation::Xor | Operation::FAdd);
        if code.locked || code.result || !simple || self.options.lean || self.lanes(mask).is_some() {
            return false;
        }
        let (align, scalar) = (code.elem.bits() / 8, Ty::scalar(code.elem));
        let (addresses, base) = (self.spread(address), self.ctx_value(Elem::I64, at::SHARED));
        let offsets = self.w.op("sub", &addresses, &base);
        let near = match operand {
            Operand::Mem(MemBase::Reg(r), offset) => {
                self.shared_end(*r, &[Member { inst: self.inst, offset: *offset, bytes: align }])
            }
            _ => None,
        };
        let near = near.is_some_and(|end| end <= 1 << 16);
        let offsets = self.w.resize(&offsets, if near { Elem::I16 } else { Elem::I32 }, false);
        let window = self.pointer(&base);
        for (lane, at) in self.each_offset(&offsets).into_iter().enumerate() {
            let lane = int(Elem::I32, lane as i128);
            let p = self.w.offset(&window, &at);
            let v = if v.ty.vector { self.w.extract(v, &lane) } else { v.clone() };
            let v = self.w.cast("bitcast", &v, code.elem);
            let old = self.w.value(scalar, format_args!("load {scalar}, ptr {p}, align {align}, {PROGRAM}"));
            let new = self.w.op(code.op.word(), &old, &v);
            let new = if code.elem == Elem::F32 { self.canonical(&new) } else { new };
            self.w.line(format_args!("store {} {new}, ptr {p}, align {align}, {PROGRAM}", new.ty));
        }
        true
    }

    /// The lanes of a vector of offsets, as numbers of 64 bits.
    ///
    /// They come from registers, since loads of single lanes from a vector that was just stored take longer, and several at once, since a
    /// move from a vector takes as long as an update. It also makes consecutive updates be addressed by different registers: on Zen 4
    /// an update takes 6 ns instead of 0.3 if all go by the same one, as if memory renaming mistook them for one word.
    fn each_offset(&mut self, offsets: &Val) -> Vec<Val> {
        let bits = offsets.ty.elem.bits();
        let (word, each) = (Ty::scalar(Elem::I64), 64 / bits);
        // A vector of fewer lanes, which only the extractions name.
        let words = format!("<{} x i64>", 32 / each);
        let packed = self.w.value(word, format_args!("bitcast {} {offsets} to {words}", offsets.ty));
        let mut all = Vec::new();
        for at in 0..32 / each {
            let mut whole = self.w.value(word, format_args!("extractelement {words} {packed}, i32 {at}"));
            if each > 2 {
                // LLVM would extract each part by itself.
                whole = self.w.value(word, format_args!("call i64 asm \"\", \"=r,0\"(i64 {whole})"));
            }
            for part in 0..each {
                let low = self.w.op_const("lshr", &whole, i128::from(part * bits));
                all.push(if part + 1 == each { low } else { self.w.op_const("and", &low, (1 << bits) - 1) });
            }
        }
        all
    }
}
