//! Frame variables: promoted ones live in vectors of words, the others in the threads' local windows.

use crate::emit::{
    function::Emitter,
    text::{Elem, Ty, Val},
};
use margay_ir::{
    FrameRole, MemBase, Operand,
    explicit::{Access, Object, access},
    pass::live_frame,
};
use margay_isa::Opcode;

/// Promotes the frame variables that are only loaded, stored and passed at constant offsets, so that no address of them
/// exists.
pub(in crate::emit) fn promote(e: &mut Emitter<'_>) -> Vec<Option<Val>> {
    let func = e.func;
    let mut fits: Vec<bool> = func
        .frame
        .iter()
        .map(|v| !v.address_taken && v.size > 0 && v.size <= 4096 && v.role != FrameRole::Local)
        .collect();
    for inst in &func.insts {
        let variant = func.variant(inst);
        for operand in func.operands(inst.srcs).iter().chain(func.operands(inst.dsts)) {
            match operand {
                Operand::FrameAddr(f, _) => fits[f.0 as usize] = false,
                Operand::Mem(MemBase::Frame(f), offset) => {
                    let bytes = variant.t().bytes();
                    let proven = access(e.ir, func, operand, bytes * variant.vec());
                    let whole = matches!(bytes, 1..=8) && offset % i64::from(bytes) == 0;
                    let moves = matches!(variant.op, Opcode::Ld | Opcode::St);
                    let inside = matches!(proven, Access::Proven(Object::Variable(_)) | Access::Straddling);
                    fits[f.0 as usize] &= inside && whole && moves;
                }
                _ => {}
            }
        }
    }
    // Uninitialized variables are zeroed, so that no `undef` reaches a branch.
    let read = live_frame(func, &e.prepared.cfg);
    let mut variables = Vec::with_capacity(fits.len());
    for (f, (var, fits)) in func.frame.iter().zip(fits).enumerate() {
        let uninitialized = var.role == FrameRole::Param && read.first().is_some_and(|r| r.has(f as u32));
        variables.push(fits.then(|| {
            let words = var.size.div_ceil(4);
            let variable = e.w.alloca(&format!("[{words} x <32 x i32>]"), 64);
            if uninitialized || matches!(var.role, FrameRole::Return(_)) {
                e.local.uninitialized.push((variable.clone(), u64::from(words) * 128));
            }
            e.pin_if_many(&variable);
            variable
        }));
    }
    variables
}

impl Emitter<'_> {
    fn word(&mut self, frame: &Val, index: u32) -> Val {
        self.w.offset_const(frame, u64::from(index) * 128)
    }

    /// Reads an integer of `bytes` bytes from a promoted variable.
    pub fn frame_load(&mut self, frame: &Val, offset: u32, bytes: u32) -> Val {
        let p = self.word(frame, offset / 4);
        let low = self.w.load(Ty::lanes(Elem::I32), &p, 64);
        match bytes {
            8 => {
                let p = self.word(frame, offset / 4 + 1);
                let high = self.w.load(Ty::lanes(Elem::I32), &p, 64);
                let (low, high) = (self.w.cast("zext", &low, Elem::I64), self.w.cast("zext", &high, Elem::I64));
                let high = self.w.op_const("shl", &high, 32);
                self.w.op("or", &low, &high)
            }
            4 => low,
            _ => {
                let shifted = self.w.op_const("lshr", &low, i128::from(offset % 4 * 8));
                self.w.cast("trunc", &shifted, Elem::int(bytes * 8))
            }
        }
    }

    /// Writes an integer of `bytes` bytes to a promoted variable, in the active lanes of `mask`.
    pub fn frame_store(&mut self, frame: &Val, offset: u32, bytes: u32, v: &Val, mask: Option<&Val>) {
        let v = self.w.splat(v);
        let put = |e: &mut Self, index: u32, word: Val| {
            let p = e.word(frame, index);
            let word = match e.lanes(mask) {
                Some(m) => {
                    let old = e.w.load(word.ty, &p, 64);
                    e.w.select(&m, &word, &old)
                }
                None => word,
            };
            e.w.store(&word, &p, 64);
        };
        match bytes {
            8 => {
                let low = self.w.cast("trunc", &v, Elem::I32);
                let high = self.w.op_const("lshr", &v, 32);
                let high = self.w.cast("trunc", &high, Elem::I32);
                put(self, offset / 4, low);
                put(self, offset / 4 + 1, high);
            }
            4 => put(self, offset / 4, v),
            _ => {
                let p = self.word(frame, offset / 4);
                let old = self.w.load(Ty::lanes(Elem::I32), &p, 64);
                let shift = offset % 4 * 8;
                let field = ((1u64 << (bytes * 8)) - 1) << shift;
                let wide = self.w.resize(&v, Elem::I32, false);
                let wide = self.w.op_const("shl", &wide, i128::from(shift));
                let kept = self.w.op_const("and", &old, i128::from(!(field as u32)));
                let word = self.w.op("or", &kept, &wide);
                put(self, offset / 4, word);
            }
        }
    }
}
