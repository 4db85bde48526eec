//! Analyses over a function's control-flow graph. Each is a pure function of [`crate::Func`]; those that
//! rewrite work on a copy that an engine makes for itself.
//!
//! * [`reached`], [`recursive`]: the call graph; [`is_quiet`]: functions that concern no other thread.
//! * [`Cfg`]: predecessors, layout order, loops, post-dominators.
//! * [`Liveness`]: which registers are live where blocks begin.
//! * [`Uniformity`]: which registers are the same in all lanes of a warp, which are affine in the lane, which blocks only part
//!   of a warp may reach.
//! * [`mark_uniform_values`]: the same for parameters and return values, over the call graph.
//! * [`spins`]: loops that may wait for other threads, or never end; [`mark_observing_calls`]: calls in which they may; [`awaits`]: the reads
//!   that wait; [`Termination`]: loops that terminate.
//! * [`Relation`]: what a comparison tests.
//! * [`Ranges`]: bounds of integer registers.
//! * [`LinearValues`]: integer registers as linear functions of a thread's place in the grid.
//! * [`propagate_constants`]: constants in registers become operands, and addresses of local variables become bases of accesses;
//!   [`constants_at`]: constants that other registers still hold.
//! * [`controls`]: whether values decide if an instruction is executed; [`depends_on_reads`]: whether address and control dependences
//!   order reads before an access; [`conditions_of_use`]: under which conditions what a load yields is used; [`Decision`]: reads whose value
//!   decides a branch and nothing else; [`recomputes`]: updates in several steps.
//! * [`adjacent()`]: loads and stores of adjacent elements.
//! * [`split_after`], [`split_before`], [`branch_around`]: splitting blocks.
//! * [`Regions`]: the code between the barriers of a kernel.
//! * [`Resume`]: the form of a kernel that continues at a loop's header.

mod adjacent;
mod bounds;
mod calls;
pub mod cfg;
mod constants;
mod dependence;
mod interface;
mod linear;
pub mod liveness;
mod regions;
mod relation;
mod resume;
mod shape;
mod spin;
mod split;
mod termination;
mod uniformity;

pub use adjacent::{Adjacent, adjacent};
pub use bounds::{Bounds, Ranges};
pub use calls::{Reached, is_quiet, pointee, reachable, reached, recursive};
pub use cfg::{Cfg, Loop};
pub use constants::{constants_at, propagate_constants};
pub use dependence::{Decision, conditions_of_use, controls, depends_on_reads, recomputes, tests_and_sets};
pub use interface::{mark_uniform_values, passes_uniform, returns_uniform};
pub use linear::{AXES, Condition, LaunchValues, Linear, LinearValues};
pub use liveness::{BitSet, Liveness};
pub use regions::{Region, Regions, is_cta_barrier, live_frame};
pub use relation::Relation;
pub use resume::{Held, Layout, Paused, Pausing, Resume, Slot, pausing, slot_bytes, written_from};
pub use shape::{Shape, WarpShape, is_weak};
pub use spin::{awaits, awaits_result, changes_nothing, mark_observing_calls, observes_others, shares_work, spins};
pub use split::{Cut, branch_around, split_after, split_before};
pub use termination::{Ends, Termination};
pub use uniformity::Uniformity;
