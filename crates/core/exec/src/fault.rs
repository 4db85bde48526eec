//! The ways in which an execution stops early, as four kinds that never share a type: the program is wrong ([`Fault`]);
//! the module needs something that margay lacks ([`Unsupported`]); the host ran out of a resource ([`Exhausted`]);
//! margay has a bug ([`Bug`]).

use crate::Unsupported;
use margay_ir::{FuncId, SourcePlace};

/// Why an execution stopped early.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The device program faulted.
    Fault(Box<Fault>),
    /// margay lacks something that the program needs.
    Unsupported(Unsupported),
    /// The host ran out of memory, threads or time.
    Exhausted(Exhausted),
    /// margay has a bug.
    Bug(Bug),
}

/// A fault of the device program, as data.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// Thread index in its CTA.
    pub thread: [u32; 3],
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Function and place of the faulting instruction.
    pub at: Option<(FuncId, SourcePlace)>,
    /// Call stack, innermost caller first.
    pub stack: Vec<Frame>,
    /// Further facts: the nearest allocation, who waits where.
    pub notes: Vec<String>,
}

/// A caller in a fault's call stack.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The calling function.
    pub func: FuncId,
    /// The place of the call.
    pub at: SourcePlace,
}

/// A memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Whether it is a store.
    pub write: bool,
    /// Address in its space.
    pub address: u64,
    /// Size in bytes.
    pub size: u32,
    /// State space, as in messages: `.shared`.
    pub space: &'static str,
}

/// What a fault consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// An access outside every allocation or outside its window.
    OutOfBounds(Access),
    /// An address that is not a multiple of the access size.
    Misaligned(Access),
    /// A store to constant or parameter memory.
    ReadOnly(Access),
    /// A `free` of a pointer that `malloc` did not return, or that was freed before.
    BadFree {
        /// The pointer.
        address: u64,
        /// Whether `malloc` had returned it and it was freed since.
        twice: bool,
    },
    /// `trap`
    Trap,
    /// `brkpt`
    Breakpoint,
    /// `__assertfail`: message, file, line, function.
    Assert(String, String, u32, String),
    /// The thread's stack overflowed, or `stackrestore` got a value that `stacksave` did not return.
    Stack(String),
    /// An indirect call or `brx.idx` without a valid target, or of a function with another signature.
    BadTarget(String),
    /// All threads wait.
    Deadlock(String),
    /// A barrier or warp operation used against its rules.
    Barrier(String),
    /// An invalid tensor map or matrix descriptor, or one that the instruction cannot use.
    Descriptor(String),
    /// An invalid handle of a texture, sampler or surface, or one that nothing is bound to.
    BadHandle(String),
    /// A use that the manual leaves undefined: found by a checker, or noted ([`crate::Grid::note_undefined`]).
    Hazard(String),
    /// A call of a function without a body.
    Undefined(String),
}

/// The host ran out of a resource.
#[derive(Clone, Debug)]
pub struct Exhausted(pub String);

/// A bug of margay.
#[derive(Clone, Debug)]
pub struct Bug(pub String);
