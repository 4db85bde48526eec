//! Makes calls and accesses explicit: what an engine must check first, and which bytes move where.
//!
//! This stage is between a placed program and the engines. [`make`] computes it once per function, from the plans of its
//! ABI: an [`Interface`] is the callee's side of its calls, a [`Sequence`] is a call site. Both list [`Transfer`]s, one per
//! value: its home on that side, and the pieces of the plan that carry it. A whole array is one piece or a few,
//! regardless of its size. Engines execute transfers and decide nothing; none of them has a convention of its own.
//!
//! * [`access()`]: the proof that a memory access needs no check, or that it needs one.
//! * [`Target`] and [`admits`]: the guard of a call, which functions it may call.
//! * [`Carriers`]: the registers and areas in a fixed order, which are the signature of compiled functions.

mod access;
mod carriers;
mod guard;
mod transfer;

pub(crate) use access::holds;
pub use access::{Access, Object, access, alignment, parameter_bytes};
pub use carriers::{Carrier, Carriers, Carries};
pub(crate) use guard::Admitted;
pub use guard::{Refusal, Target, admits};
pub(crate) use transfer::make;
pub use transfer::{Home, Incoming, Interface, Passed, Sequence, Transfer};
