//! Comparisons of margay with NVIDIA's tools.
//!
//! The programs of this crate generate modules, compile them with ptxas, and compare. They need ptxas and cuobjdump, in
//! the folder named by `MARGAY_PTXAS` or on the path. margay itself does not need this crate.
#![forbid(unsafe_code)]

pub mod compare;
pub mod fold;
pub mod modules;
pub mod mutate;
pub mod options;
pub mod sass;
pub mod tools;

/// Reproducible pseudo-random numbers (xorshift64*); the seed determines the whole run.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Seeds a generator.
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

    /// A random element of a non-empty list.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }

    /// True with a probability of `percent`.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
