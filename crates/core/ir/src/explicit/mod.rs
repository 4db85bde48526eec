//! Calls and accesses made explicit: what an engine must test before one, and which bytes move from where to where.
//!
//! This stage lies between a placed program and the engines. [`make`] computes it once for a function, from the plans of its
//! ABI: an [`Interface`] is the callee's side of its calls, a [`Sequence`] is a call site. Both list [`Transfer`]s, one for
//! each value: its home on that side, and the pieces of the plan by which it travels. A whole array is one piece or few,
//! however large it is. Engines execute transfers and decide nothing; none of them has a convention of its own.
//!
//! * [`access`]: the proof that a memory access needs no check, or that it needs one.
//! * [`Target`] and [`admits`]: the guard of a call, which functions it may enter.
//! * [`Carriers`]: what crosses in registers and areas, in a fixed order: the signature of compiled functions.

mod access;
mod carriers;
mod guard;
mod transfer;

pub use access::{Access, Object, access, alignment};
pub use carriers::{Carrier, Carriers, Carries};
pub(crate) use guard::Admitted;
pub use guard::{Refusal, Target, admits};
pub(crate) use transfer::make;
pub use transfer::{Home, Incoming, Interface, Passed, Sequence, Transfer};
