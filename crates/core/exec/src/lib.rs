//! The semantics of PTX instructions, and the reference engine that executes them exactly.
//!
//! Two halves that never mix. `sem` holds *pure* functions from bits to bits, one for each pure row of the table; they
//! know of no machine. `reference/step` holds *effects*: memory, control, calls, warps, barriers. The reference engine
//! maps the pure half over the lanes of a warp and drives the effects; other engines call the same pure functions.
//!
//! Memory is flat: a global address is the host address of a byte inside an allocation that [`Memory`] knows. `.shared` and
//! `.local` addresses are offsets into windows whose host base makes them generic (`cvta` adds it).

pub mod barrier;
pub mod builtin;
mod convergence;
mod count;
pub mod deadlock;
pub mod device;
mod engine;
mod fault;
mod grid;
mod image;
mod known;
pub mod lanes;
mod launch;
mod layout;
pub mod matrix;
pub mod mem;
pub mod object;
mod observe;
mod reference;
mod resume;
pub mod sem;
mod target;
pub mod tensor_map;
pub mod texture;
mod time;
mod units;
mod unmodeled;
mod work;

pub use convergence::{Convergence, exchanges_values, incomplete, only_converges};
pub use count::{COUNTED_SPACES, COUNTS, Count, Counts};
pub use engine::{Batch, CodeShape, Compiler, Cta, Effort, Engine, Kernel, Meter, NoCode, Program, Progress, Slice};
pub use fault::{Access, Bug, Exhausted, Fault, FaultKind, Frame, Stop, Unsupported, panic_message};
pub use grid::Grid;
pub use image::{Image, RESERVED_SHARED};
pub use known::{Known, splat};
pub use lanes::{LANES, Row};
pub use launch::{Launch, LaunchShape, coordinates, thread_index};
pub use layout::{SharedLayout, SharedSizes};
pub use mem::{Initiator, Memory};
pub use observe::{
    AccessKind, Actor, BarrierEvent, Concern, CtaEvent, Grouped, Interest, LINE_BYTES, LineUse, LineUses,
    LockedObserver, MemoryEvent, ObjectStep, Observer, Ordering, RowEvent, RowLoad, RowLoads, RowPlace, Scope,
    Semantics, SpreadEvent, SyncEvent, SyncKind, Tensor, TensorEvent, Undefined, UndefinedEvent,
};
pub use reference::{MULTIPROCESSORS, Reference, left_out, returned, single_step};
pub use resume::{CtaWindows, LiveRegister, Snapshot, StoppedWarp};
pub use target::{alloca_beyond, jump_beyond, local_beyond, parameter_beyond, restore_beyond, stack_note};
pub use time::unix_time;
pub use units::Units;
pub use unmodeled::unmodeled;
pub use work::{Log, Work};
