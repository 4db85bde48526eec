//! Prefetches for what CTAs read after each other.
//!
//! A CTA of several rows of threads reads a piece of each of many rows of a matrix, and the next CTA the adjacent pieces:
//! as many streams as the CTA has rows, too far apart for the processor to foresee. In loops, a warp reads one stream for a
//! while, which it does foresee.

use super::unit::Kind;
use crate::emit::{
    function::{Emitter, Mode, Role},
    memory::address::Address,
};
use margay_ir::{Inst, MemSpace};

/// By how many CTAs along x the prefetches are ahead.
const AHEAD: u32 = 4;
/// Bytes of a cache line.
const LINE: u32 = 64;

impl Emitter<'_> {
    /// Fetches into the cache what the same warp of a later CTA will read, where each lane reads `bytes` bytes.
    pub(super) fn prefetch(&mut self, inst: &Inst, address: &Address, bytes: u32, kind: Kind) {
        // Narrower rows share too many lines with the next CTAs to gain by this.
        let Address::Affine { bases, width: 32, stride } = address else { return };
        let Some([x, y, z]) = self.options.warp.block else { return };
        let rows = y.saturating_mul(z) > 1;
        let reads_row = *stride == i64::from(bytes) && inst.space == Some(MemSpace::Global) && kind == Kind::Weak;
        let full = !self.options.lean && self.mode == Mode::Full && self.role == Role::Grid;
        if !(rows && reads_row && full) || self.loops() {
            return;
        }
        self.w.declared.insert("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)".into());
        for first in bases {
            let p = self.pointer(first);
            for line in 0..(32 * bytes).div_ceil(LINE) {
                let p = self.w.offset_const(&p, u64::from(AHEAD * x * bytes + line * LINE));
                // For reading, of high locality, data.
                self.w.line(format_args!("call void @llvm.prefetch.p0(ptr {p}, i32 0, i32 3, i32 1)"));
            }
        }
    }

    /// Whether the current instruction is part of a loop.
    fn loops(&self) -> bool {
        let at = self.inst as usize;
        let block = self.func.blocks.iter().position(|b| b.insts.range().contains(&at));
        block.is_some_and(|b| self.cfg.innermost(self.cfg.position[b]).is_some())
    }
}
