//! Comparisons of margay with NVIDIA's own tools.
//!
//! The programs of this crate generate modules, let ptxas compile them, and compare. They need ptxas and cuobjdump: the folder
//! with them is named by `MARGAY_PTXAS`, else they are looked for on the path. Nothing here is needed to use margay.
#![forbid(unsafe_code)]

pub mod compare;
pub mod fold;
pub mod modules;
pub mod mutate;
pub mod options;
pub mod sass;
pub mod tools;

/// Reproducible pseudo-random numbers (xorshift64*); the seed tells the whole run.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.bits() >> 11) % n.max(1)
    }

    /// One of a list that is not empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }

    /// True in `percent` of all cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
