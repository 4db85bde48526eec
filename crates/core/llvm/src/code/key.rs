//! The cache key of a kernel: a hash of everything that its code depends on, so that equal keys mean equal code.
//!
//! Hashed are the instructions of all functions that the kernel may call, their locations under the ABI, the properties of
//! variables, and where the shared ones lie; names and source positions are not, so a module that was only moved or renamed still
//! hits.

use crate::{code::target, emit::Options};
use margay_exec::SharedLayout;
use margay_ir::{Func, FuncId, Global, Ir, Placed, pass};
use std::hash::{Hash, Hasher};

/// A 128-bit hash of a kernel, its callees and the way it is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CacheKey(pub [u64; 2]);

/// A 128-bit hash of a kernel and its callees.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Content([u64; 2]);

impl CacheKey {
    /// The key of a kernel under `options`, for this version of the engine on this host.
    pub fn new(content: Content, options: &Options) -> CacheKey {
        CacheKey::of((content, options))
    }

    /// The key of a module, for this version of the engine on this host.
    pub fn of_text(module: &str) -> CacheKey {
        CacheKey::of(module)
    }

    fn of(what: impl Hash) -> CacheKey {
        let mut h = DoubleHash::default();
        (env!("CARGO_PKG_VERSION"), env!("MARGAY_ENGINE"), target::host(), target::library()).hash(&mut h);
        what.hash(&mut h);
        CacheKey(h.both())
    }
}

impl Content {
    /// That of a kernel of a program. This reads all of its instructions, so it is for the caller to keep.
    pub fn new(ir: &Ir<Placed>, kernel: FuncId) -> Content {
        let mut h = DoubleHash::default();
        // Destructured without `..`, so that adding a field requires a decision whether to hash it.
        let Ir {
            funcs,
            globals,
            address_taken: _,
            func_names: _,
            global_names: _,
            target,
            version,
            address_size,
            thread_block,
            ranked_addresses,
            stage,
        } = ir;
        (funcs.len(), target, version, address_size, thread_block, ranked_addresses, stage.abi).hash(&mut h);
        for global in globals {
            let Global { name: _, space, reference, size, align, init: _, visible: _, external, managed } = &**global;
            (space, reference, size, align, external, managed).hash(&mut h);
        }
        let reached = pass::reached(ir, kernel);
        SharedLayout::new(ir, &reached).hash(&mut h);
        for f in reached.funcs {
            f.hash(&mut h);
            function(ir.func(f), &mut h);
            // A call of an undefined function fails with its name.
            ir.func(f).blocks.is_empty().then_some(&ir.func(f).name).hash(&mut h);
            stage.funcs.get(f.0 as usize).hash(&mut h);
        }
        Content(h.both())
    }
}

fn function(func: &Func, h: &mut DoubleHash) {
    let Func {
        name: _,
        builtin,
        kind,
        sig,
        param_names: _,
        pointers: _,
        ret_names: _,
        params,
        rets,
        regs,
        reg_names: _,
        frame,
        blocks,
        insts,
        operands,
        types: _,
        variants,
        calls,
        places: _,
        source: _,
        noreturn,
        reqntid,
        maxntid,
        reqnctapercluster,
        maxnreg: _,
        never_spins,
    } = func;
    (builtin, kind, sig, params, rets, regs, frame).hash(h);
    (blocks, insts, operands, variants, calls).hash(h);
    (noreturn, reqntid, maxntid, reqnctapercluster, never_spins).hash(h);
}

/// Two hashes of the same data that have nothing in common but the data. Kernels have thousands of instructions, and a launch waits for
/// their hash, so each word costs two multiplications: both halves of the product are kept, added without carries.
#[derive(Default)]
struct DoubleHash([u64; 2]);

/// By hash: a factor, what is added, and a rotation that gives neighboring words different weights.
const MIX: [(u64, u64, u32); 2] =
    [(0x9e37_79b9_7f4a_7c15, 0xa076_1d64_78bd_642f, 31), (0xd6e8_feb8_6659_fd93, 0x2545_f491_4f6c_dd1d, 23)];

impl DoubleHash {
    fn word(&mut self, word: u64) {
        for (h, (factor, plus, turn)) in self.0.iter_mut().zip(MIX) {
            let product = u128::from(h.rotate_left(turn) ^ word ^ plus) * u128::from(factor);
            *h = product as u64 ^ (product >> 64) as u64;
        }
    }

    fn both(mut self) -> [u64; 2] {
        // What came last has to reach all bits too.
        (0..3).for_each(|last| self.word(last));
        self.0
    }
}

impl Hasher for DoubleHash {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|w| self.word(u64::from_le_bytes(*w)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // Unlike any whole word before it: the length stands in a byte that a rest cannot fill.
        last[7] = rest.len() as u8;
        self.word(u64::from_le_bytes(last));
    }

    fn write_u8(&mut self, n: u8) {
        self.word(n.into());
    }

    fn write_u16(&mut self, n: u16) {
        self.word(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.word(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }

    fn finish(&self) -> u64 {
        self.0[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(words: &[u64]) -> [u64; 2] {
        let mut h = DoubleHash::default();
        words.iter().for_each(|w| w.hash(&mut h));
        h.both()
    }

    /// Sequences that differ in a bit, or in a bit of each of two neighbors, have other hashes, in both halves.
    #[test]
    fn similar_sequences_have_different_hashes() {
        let mut seen = [std::collections::HashSet::new(), std::collections::HashSet::new()];
        let mut tried = 0;
        for words in [[0; 4], [1, 2, 3, 4], [u64::MAX; 4]] {
            for a in 0..256 {
                for b in a..256 {
                    let mut changed: [u64; 4] = words;
                    changed[a / 64] ^= 1 << (a % 64);
                    if b != a {
                        changed[b / 64] ^= 1 << (b % 64);
                    }
                    tried += 1;
                    seen.iter_mut().zip(hash(&changed)).for_each(|(seen, h)| _ = seen.insert(h));
                }
            }
        }
        assert_eq!([seen[0].len(), seen[1].len()], [tried; 2]);
    }

    /// Bytes that are a prefix of others, and zeros of other lengths, have other hashes.
    #[test]
    fn lengths_are_part_of_the_hash() {
        let mut seen = std::collections::HashSet::new();
        for length in 0..40 {
            let mut h = DoubleHash::default();
            h.write(&vec![0; length]);
            assert!(seen.insert(h.both()), "{length} zeros");
        }
    }
}
