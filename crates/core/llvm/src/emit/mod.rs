//! From a placed function to LLVM IR.
//!
//! A warp is 32 lanes. A register that is equal in all lanes is a scalar, one that counts up along rows of lanes is a scalar for
//! each row, everything else is a vector. Each function is written twice: a *full* version that runs while all 32 lanes are active
//! and knows no masks, and a *masked* version for parts of a warp. Control moves from full to masked where lanes part, and
//! back where all 32 have met again.
//!
//! The masked version visits blocks in layout order. Each block has a mask of lanes that wait to execute it; a block without
//! any is skipped; the last block of a loop goes back to the header while lanes wait there. Every lane that waits at a block
//! before the sweep comes by executes it in one go, so lanes meet again at the post-dominator of the branch that parted them.
//!
//! A kernel whose threads all reach the same barriers loops over CTAs and warps itself (`kernel`, `keep`). One that waits in
//! other ways (`barrier`, loops that spin) is called warp by warp, each warp on a stack of its own.

mod arithmetic;
mod barrier;
mod call;
mod function;
mod memory;
mod site;
pub mod text;
mod warp;

pub use function::reach::Reached;
pub use function::{Options, PERIOD, Refused, emit, symbol};
pub use site::{Site, SiteKind};
