//! How an execution stops before its end. Four kinds that never share a type: your program is wrong ([`Fault`]); the module
//! asks for what margay does not do ([`Unsupported`]); the machine ran out ([`Exhausted`]); margay has a bug ([`Bug`]).

use crate::Unsupported;
use margay_ir::{FuncId, SourcePlace};

/// Why an execution stopped.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The device program did something wrong.
    Fault(Box<Fault>),
    /// margay does not support what the program asks for.
    Unsupported(Unsupported),
    /// The host ran out of memory, threads or time.
    Exhausted(Exhausted),
    /// margay is wrong.
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
    /// Function and place of the instruction.
    pub at: Option<(FuncId, SourcePlace)>,
    /// Callers, innermost first: function and place of its call.
    pub stack: Vec<Frame>,
    /// Further facts: nearest allocation, who waits where.
    pub notes: Vec<String>,
}

/// A caller.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The calling function.
    pub func: FuncId,
    /// The call.
    pub at: SourcePlace,
}

/// A memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Written, not read.
    pub write: bool,
    /// Address in its space.
    pub address: u64,
    /// Bytes.
    pub size: u32,
    /// Space as people write it: `.shared`.
    pub space: &'static str,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// Outside every allocation, or outside the window.
    OutOfBounds(Access),
    /// Address is no multiple of the access size.
    Misaligned(Access),
    /// Write to constant or parameter memory.
    ReadOnly(Access),
    /// `free` of what `malloc` did not return: the address, and whether it was freed before.
    BadFree {
        /// What `free` was given.
        address: u64,
        /// `malloc` had returned it, and it was freed since.
        twice: bool,
    },
    /// `trap`
    Trap,
    /// `brkpt`
    Breakpoint,
    /// `__assertfail`: message, file, line, function.
    Assert(String, String, u32, String),
    /// The thread's stack is full, or `stackrestore` got a value that is no saved one.
    Stack(String),
    /// An indirect call or `brx.idx` to nowhere, or to a function of another signature.
    BadTarget(String),
    /// Every thread waits.
    Deadlock(String),
    /// A barrier, shuffle or vote used against its rules.
    Barrier(String),
    /// Bits that describe no tensor map, no matrix in memory, or one that the instruction cannot use.
    Descriptor(String),
    /// A handle of a texture, sampler or surface that is none, or that nothing is bound to.
    BadHandle(String),
    /// A use whose result the manual leaves undefined: found by a checker, or noted ([`crate::Grid::note_undefined`]).
    Hazard(String),
    /// An undefined function was called.
    Undefined(String),
}

/// The host ran out of something.
#[derive(Clone, Debug)]
pub struct Exhausted(pub String);

/// margay is wrong.
#[derive(Clone, Debug)]
pub struct Bug(pub String);
