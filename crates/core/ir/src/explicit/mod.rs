//! What the engines have in common between a placed program and execution: calls as guards and moves.
//!
//! [`admits`] is the guard of an indirect call: which functions it may enter.

mod guard;

pub use guard::{Refusal, admits};
