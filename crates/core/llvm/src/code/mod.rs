//! From emitted LLVM IR to machine code: LLVM itself, what is asked of it, and where its results are kept.

pub mod cache;
pub mod callable;
pub mod compile;
pub mod ffi;
pub mod key;
pub mod link;
pub mod load;
pub mod serialised;
pub mod target;
