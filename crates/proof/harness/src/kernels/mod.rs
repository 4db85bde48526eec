//! Random kernels with nested, divergent control flow, whose results every engine must agree on under every ABI.
//!
//! A kernel is a tree of [`Node`]s: straight-line code, branches, loops, switches, irreducible control flow, calls. It
//! is free of races by construction: a thread writes its own memory only; what others may read is written before a
//! barrier and read before the next (`straight::exchange`); atomic operations on shared locations, and sums protected
//! by locks, commute and discard their results; and warp operations name the active lanes, which each branch and loop
//! determines by a vote on entry. Any node can be left out, which is how [`Module::smaller`] shrinks a failing module.

mod exits;
mod graph;
mod straight;
mod text;
mod tree;
mod whole;

pub use exits::Exits;
pub use graph::{Block, Edge, Graph};
pub use tree::{Function, Module, Node};
pub use whole::Whole;

/// Size of the input buffer in 32-bit words, a power of two.
pub const INPUT: u32 = 1024;
/// Size of the buffer of atomic operations in 32-bit words: 16 per operation.
pub const COUNTERS: u32 = 16 * 9;
/// Size of two locks and their sums in 32-bit words.
pub const LOCKS: u32 = 4;
/// 32-bit words written per thread: 32 of its own, then its registers.
pub const WORDS: u32 = 32 + 32;
/// Threads of the largest block.
pub const THREADS: u32 = 256;

/// Block shapes of launches.
pub const BLOCKS: &[[u32; 3]] = &[
    [1, 1, 1],
    [5, 1, 1],
    [12, 1, 1],
    [20, 1, 1],
    [31, 1, 1],
    [32, 1, 1],
    [33, 1, 1],
    [64, 3, 1],
    [7, 5, 3],
    [8, 4, 1],
    [128, 1, 1],
    [2, 2, 9],
];
/// Grid shapes of launches.
pub const GRIDS: &[[u32; 3]] = &[[1, 1, 1], [3, 1, 1], [2, 2, 1], [1, 2, 3], [5, 1, 1]];
