//! Updates of shared memory by all lanes, one after another, inlined into the kernel: a call would double the cost.

use super::{Code, operation::Operation};
use crate::ctx::at;
use crate::emit::{
    function::Emitter,
    memory::{PROGRAM, address::Address, group::Member},
    text::{Elem, Ty, Val, int},
};
use margay_ir::{MemBase, Operand, VReg, pass::Bounds};

/// The form in which offsets in shared memory are moved from vectors: as small numbers, several per move.
#[derive(Clone, Copy)]
struct Granules {
    /// The least offset, from which they are counted.
    least: u64,
    /// Log2 of their unit in bytes.
    shift: u32,
    /// The type of one number.
    elem: Elem,
}

impl Granules {
    /// Bytes from the start of shared memory on.
    const BYTES: Granules = Granules { least: 0, shift: 0, elem: Elem::I32 };
}

impl Emitter<'_> {
    /// Emits operations of all lanes on shared memory whose old values are unused; returns whether that was possible. `operand` is the
    /// operand with the address.
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
        let granules = match operand {
            Operand::Mem(MemBase::Reg(r), offset) => {
                self.granules(*r, Member { inst: self.inst, offset: *offset, bytes: align })
            }
            _ => Granules::BYTES,
        };
        let window = self.pointer(&base);
        for (lane, at) in self.each_offset(&offsets, granules).into_iter().enumerate() {
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

    /// How the offsets of an access by a register are extracted.
    fn granules(&self, r: VReg, access: Member) -> Granules {
        if self.shared_end(r, &[access]).is_none_or(|end| end > u64::from(u32::MAX)) {
            return Granules::BYTES;
        }
        let fitting = |bounds: Bounds| {
            let shift = bounds.align.min(access.odd().count_ones());
            let first = bounds.least >> shift;
            let elem = match (bounds.most >> shift) - first {
                ..0x100 => Elem::I8,
                0x100..0x1_0000 => Elem::I16,
                _ => return None,
            };
            Some(Granules { least: (first << shift).checked_add_signed(access.offset)?, shift, elem })
        };
        self.bounds_here(r).and_then(fitting).unwrap_or(Granules::BYTES)
    }

    /// The lanes of a vector of offsets, as numbers of 64 bits.
    ///
    /// They are extracted from registers, since reloading single lanes of a vector that was just stored takes longer; and several at once,
    /// since a move from a vector takes as long as an update. This also gives consecutive updates different address registers: on Zen 4,
    /// an update takes 6 ns instead of 0.3 ns if all use the same one, as if memory renaming mistook them for one word.
    fn each_offset(&mut self, offsets: &Val, granules: Granules) -> Vec<Val> {
        let Granules { least, shift, elem } = granules;
        let from = self.w.op_const("sub", offsets, i128::from(least));
        let from = self.w.op_const("lshr", &from, i128::from(shift));
        let numbers = self.w.resize(&from, elem, false);
        let bits = elem.bits();
        let (word, each) = (Ty::scalar(Elem::I64), 64 / bits);
        // A vector of fewer lanes, which only the extractions name.
        let words = format!("<{} x i64>", 32 / each);
        let packed = self.w.value(word, format_args!("bitcast {} {numbers} to {words}", numbers.ty));
        let mut all = Vec::new();
        for at in 0..32 / each {
            let mut whole = self.w.value(word, format_args!("extractelement {words} {packed}, i32 {at}"));
            if each > 2 {
                // LLVM would extract each part by itself.
                whole = self.w.value(word, format_args!("call i64 asm \"\", \"=r,0\"(i64 {whole})"));
            }
            for part in 0..each {
                let low = self.w.op_const("lshr", &whole, i128::from(part * bits));
                let number = if part + 1 == each { low } else { self.w.op_const("and", &low, (1 << bits) - 1) };
                let distance = self.w.op_const("shl", &number, i128::from(shift));
                all.push(self.w.op_const("add", &distance, i128::from(least)));
            }
        }
        all
    }
}
