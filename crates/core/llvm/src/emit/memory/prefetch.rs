//! Prefetches of data that consecutive CTAs, or iterations of a loop, read.
//!
//! A CTA of several rows of threads reads a piece of each of many rows of a matrix, and the next CTA the adjacent pieces:
//! as many streams as the CTA has rows, too far apart for the processor to foresee.
//!
//! In loops, the rows of a warp are often a whole grid or a row of a matrix apart, which processors do not foresee either: their
//! prefetchers stop at pages.

use super::unit::Strength;
use crate::emit::{
    function::{Emitter, Mode, Role},
    memory::address::Address,
    text::{Elem, Ty, Val, int},
};
use margay_ir::{Inst, MemSpace};
use std::fmt::Write;

/// By how many CTAs along x the prefetches are ahead.
const AHEAD: u32 = 4;
/// By how many instructions the prefetches of loops are ahead, and by how many iterations at most: a warp takes some nanoseconds for an
/// instruction, so the lines arrive in time, and prefetches of unrolled loops do not reach beyond the loop's end.
const INSTRUCTIONS: usize = 128;
const ITERATIONS: usize = 8;
/// Lines that are a multiple of this apart fall into one set of the first-level cache, and displace each other.
const PAGE: i128 = 4096;
/// By how many iterations prefetches are ahead at most if lines fall into one set.
const IN_ONE_SET: usize = 2;
/// Loads of a function whose loops prefetch.
const LIMIT: u32 = 8;
/// Bytes of a cache line.
const LINE: u32 = 64;

impl Emitter<'_> {
    /// Fetches into the cache what the same warp of a later CTA will read, where each lane reads `bytes` bytes.
    pub(super) fn prefetch(&mut self, inst: &Inst, address: &Address, bytes: u32, strength: Strength) {
        // Narrower rows share too many lines with the next CTAs to gain by this.
        let Address::Affine { bases, width: 32, stride } = address else { return };
        let Some([x, y, z]) = self.options.warp.block else { return };
        let rows = y.saturating_mul(z) > 1;
        let reads_row =
            *stride == i64::from(bytes) && inst.space == Some(MemSpace::Global) && strength == Strength::Weak;
        let full = !self.options.lean && self.role == Role::Grid;
        if !(reads_row && full) {
            return;
        }
        if let Some(looped) = self.innermost() {
            let waits = self
                .prepared
                .barriers
                .iter()
                .any(|cut| looped.contains(&self.prepared.cfg.position[cut.block.0 as usize]));
            if let ([first], false) = (&bases[..], waits) {
                let length =
                    |p: u32| self.func.blocks[self.prepared.cfg.order[p as usize].0 as usize].insts.range().len();
                let length: usize = looped.map(length).sum();
                let ahead = (INSTRUCTIONS / length.max(1)).clamp(1, ITERATIONS);
                self.prefetch_iterations(first, bytes, ahead);
            }
            return;
        }
        if !rows || self.mode == Mode::Masked {
            return;
        }
        for first in bases {
            let p = self.pointer(first);
            self.prefetch_row(&p, AHEAD * x * bytes, bytes);
        }
    }

    /// Fetches what the load will read some iterations `ahead`, if the last two steps were the same.
    fn prefetch_iterations(&mut self, first: &Val, bytes: u32, ahead: usize) {
        if self.accesses.prefetched >= LIMIT {
            return;
        }
        self.accesses.prefetched += 1;
        let variable = |e: &mut Self| {
            let variable = e.w.alloca("i64", 8);
            let _ = writeln!(e.w.entry, "  store i64 0, ptr {variable}, align 8");
            variable
        };
        let (last, stride) = (variable(self), variable(self));
        let word = Ty::scalar(Elem::I64);
        let (before, expected) = (self.w.get(word, &last, 0, 8), self.w.get(word, &stride, 0, 8));
        let step = self.w.op("sub", first, &before);
        self.w.set(first, &last, 0, 8);
        self.w.set(&step, &stride, 0, 8);
        let steady = self.w.cmp("icmp eq", &step, &expected);
        let step = self.w.select(&steady, &step, &int(Elem::I64, 0));
        let mut distance = self.w.op_const("mul", &step, ahead as i128);
        if ahead > IN_ONE_SET {
            let low = self.w.op_const("and", &step, PAGE - 1);
            let meets = self.w.cmp("icmp eq", &low, &int(Elem::I64, 0));
            let less = self.w.op_const("mul", &step, IN_ONE_SET as i128);
            distance = self.w.select(&meets, &less, &distance);
        }
        let ahead = self.w.op("add", first, &distance);
        let p = self.pointer(&ahead);
        self.prefetch_row(&p, 0, bytes);
    }

    /// Fetches a row of lanes of `bytes` bytes each into the cache.
    fn prefetch_row(&mut self, pointer: &Val, offset: u32, bytes: u32) {
        self.w.declared.insert("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)".into());
        for line in 0..(32 * bytes).div_ceil(LINE) {
            let p = self.w.offset_const(pointer, u64::from(offset + line * LINE));
            // For reading, of high locality, data.
            self.w.line(format_args!("call void @llvm.prefetch.p0(ptr {p}, i32 0, i32 3, i32 1)"));
        }
    }

    /// The positions of the innermost loop that the current instruction is part of.
    fn innermost(&self) -> Option<std::ops::RangeInclusive<u32>> {
        let at = self.inst as usize;
        let block = self.func.blocks.iter().position(|b| b.insts.range().contains(&at))?;
        let found = &self.prepared.cfg.loops[self.prepared.cfg.innermost(self.prepared.cfg.position[block])?];
        Some(found.first..=found.last)
    }
}
