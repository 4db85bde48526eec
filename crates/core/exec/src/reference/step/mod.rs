//! Handlers of ops, by section of the manual's chapter 9.

pub mod address;
pub mod atomic;
pub mod barrier;
pub mod call;
pub mod control;
pub mod convert;
pub mod copy;
pub mod matrix;
pub mod mbarrier;
pub mod memory;
pub mod pure;
mod quad;
pub mod row;
pub mod special;
pub mod stack;
pub mod surface;
pub mod tcgen05;
pub mod tensor;
pub mod texture;
mod transfer;
pub mod warp;
pub mod watch;

pub use transfer::Home;
