//! From LLVM IR to callable code: compilation by LLVM, the cache on disk, linking.

pub mod cache;
pub mod callable;
mod claim;
pub mod compile;
pub mod ffi;
pub mod key;
pub mod library;
pub mod link;
pub mod load;
mod narrow;
pub mod serialized;
pub mod target;
