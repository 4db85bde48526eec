//! Emission: from a placed function to LLVM IR.
//!
//! A warp is 32 lanes. A uniform register is a scalar, an affine one is a scalar per row of lanes, every other one is a
//! vector. Each function is emitted twice: a *full* version that runs while all 32 lanes are active and has no masks,
//! and a *masked* version for parts of a warp. Control moves from full to masked where lanes diverge, and back where
//! all 32 have reconverged.
//!
//! The masked version sweeps over the blocks in layout order. Each block has a mask of pending lanes; a block without
//! any is skipped; the last block of a loop jumps back to the header while lanes are pending there. All lanes that are
//! pending at a block when the sweep reaches it execute it together, so lanes reconverge at the post-dominator of the
//! branch at which they diverged.
//!
//! A kernel whose threads all reach the same barriers loops over CTAs and warps itself (`barrier/kernel.rs`,
//! `barrier/spill.rs`). One that waits in other ways (divergent barriers, loops that poll) runs one warp per call, each
//! on a fiber.

mod arithmetic;
mod barrier;
mod call;
pub mod exchange;
mod function;
mod known;
mod mask;
mod memory;
mod observe;
mod sink;
mod site;
pub mod text;
mod tidy;
mod warp;

pub use function::reach::Reached;
pub use function::{LARGEST, Options, PERIOD, Refused, emit, symbol};
pub use memory::interleaved::Interleaved;
pub use site::{GroupSite, Moment, Site, SiteKind};
