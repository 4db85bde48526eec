//! Counters of executed instructions and accessed bytes, emitted only if a launch counts.

use crate::ctx::at;
use crate::emit::{
    function::{Emitter, Mode},
    memory::address::Address,
    text::{Elem, Ty, Val, int},
};
use margay_exec::Count;
use margay_ir::MemSpace;

impl Emitter<'_> {
    /// Counts `instructions` for the active lanes. Lanes whose guard is false count as active.
    pub fn count_block(&mut self, instructions: usize) {
        if !self.options.count || instructions == 0 {
            return;
        }
        let n = instructions as i128;
        self.count(Count::Instructions, &int(Elem::I64, n));
        let lanes = match self.mode {
            Mode::Full => int(Elem::I64, 32 * n),
            Mode::Masked => {
                let bits = self.active_bits();
                let lanes = self.number(&bits);
                self.w.op_const("mul", &lanes, n)
            }
        };
        self.count(Count::Lanes, &lanes);
    }

    /// Counts an access of `bytes` bytes by each active lane of `mask`.
    pub fn count_access(&mut self, space: MemSpace, bytes: u32, address: &Address, mask: Option<&Val>) {
        if !self.options.count {
            return;
        }
        let shape = match address {
            Address::Affine { stride: 0, .. } => Count::Uniform,
            Address::Affine { stride, .. } if *stride == i64::from(bytes) => Count::Contiguous,
            _ => Count::Scattered,
        };
        self.count(shape, &int(Elem::I64, 1));
        let bits = self.lane_bits(mask);
        let lanes = self.number(&bits);
        let bytes = self.w.op_const("mul", &lanes, bytes.into());
        self.count(Count::Bytes(space), &bytes);
    }

    fn number(&mut self, bits: &Val) -> Val {
        let number = self.w.intrinsic("llvm.ctpop", bits.ty, &[bits]);
        self.w.resize(&number, Elem::I64, false)
    }

    fn count(&mut self, count: Count, n: &Val) {
        let Some(cell) = count.cell() else { return };
        let cells = self.ctx_value(Elem::Ptr, at::COUNTS);
        let p = self.w.offset_const(&cells, cell as u64 * 8);
        let old = self.w.load(Ty::scalar(Elem::I64), &p, 8);
        let new = self.w.op("add", &old, n);
        self.w.store(&new, &p, 8);
    }
}
