//! Random kernels with nested, divergent control flow, whose results every engine must agree on under every ABI.
//!
//! A kernel is a tree of [`Node`]s: straight code, branches, loops, switches, jumps that no structure has, calls. It is free of
//! races by construction. A thread writes its own places only; what others may read lies between two barriers
//! (`straight::exchange`); atomic operations on shared places, and sums behind locks, commute and drop their result; and warp
//! operations name the lanes that are there, which each branch and loop counts by a vote on entry. A node can be left out
//! without harm to the rest, which is how [`Module::smaller`] shrinks a module that fails.

mod straight;
mod text;
mod tree;

pub use tree::{Function, Module, Node};

/// 32-bit words of the buffer that kernels read, a power of two.
pub const INPUT: u32 = 1024;
/// 32-bit words of the buffer of atomic operations: 16 for each operation.
pub const COUNTERS: u32 = 16 * 9;
/// 32-bit words of two locks and the sums behind them.
pub const LOCKS: u32 = 4;
/// 32-bit words that a thread writes: 32 of its own, then its registers.
pub const WORDS: u32 = 32 + 32;
/// Threads of the largest block.
pub const THREADS: u32 = 256;

/// The shapes of blocks that kernels are launched with.
pub const BLOCKS: &[[u32; 3]] =
    &[[1, 1, 1], [31, 1, 1], [32, 1, 1], [33, 1, 1], [64, 3, 1], [7, 5, 3], [8, 4, 1], [128, 1, 1], [2, 2, 9]];
/// And of grids.
pub const GRIDS: &[[u32; 3]] = &[[1, 1, 1], [3, 1, 1], [2, 2, 1], [1, 2, 3], [5, 1, 1]];
