//! Places in generated code that come back to the host: what a helper must know about them.

use std::borrow::Cow;

/// What a site does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SiteKind {
    /// A memory access whose range is checked; `WarpCtx::sites` keeps where the accesses of a whole row may begin: an address
    /// and a number of bytes. [`SiteKind::Lanes`] comes next.
    Access {
        /// Bytes of one lane's access.
        size: u32,
        /// Writes.
        write: bool,
        /// The space as people write it.
        space: &'static str,
        /// Bytes from the first to behind the last lane of a row.
        span: u64,
        /// Rows begin at multiples of two to this from where the memory begins, and are counted in steps of as much.
        shift: u32,
    },
    /// The same for the lanes of the access before one by one.
    Lanes,
    /// A pure row without native code: bits of each source and destination.
    Pure {
        /// Source widths.
        srcs: Vec<u32>,
        /// Destination widths.
        dsts: Vec<u32>,
    },
    /// An instruction that the reference engine executes: rows of the registers read, and of those written.
    Effect {
        /// Rows read.
        reads: usize,
        /// Rows written.
        writes: usize,
        /// Only where a program does what PTX leaves undefined.
        seldom: bool,
    },
    /// A barrier of the CTA, where warps have stacks.
    Barrier {
        /// It has a thread count.
        counted: bool,
        /// How predicates are combined.
        reduces: Option<margay_isa::Mod>,
        /// Nobody waits.
        arrives: bool,
    },
    /// The barrier of the cluster, where warps have stacks.
    Cluster {
        /// Lanes wait, instead of arriving.
        waits: bool,
    },
    /// A call, for the callers that a fault names.
    Call,
    /// An access of so many bytes by the name of a formal without size; it may lie outside of what was passed.
    Passed {
        /// Bytes.
        size: u32,
    },
    /// An `alloca`.
    Alloca,
    /// A `stackrestore`.
    Restore,
    /// Where threads look for what others do.
    Poll,
    /// A function of the device library, with so many arguments.
    Builtin {
        /// Which.
        builtin: margay_ir::Builtin,
        /// Arguments.
        args: usize,
    },
    /// A fault that the code detected.
    Fault(Cow<'static, str>),
    /// Lanes that their member mask leaves out: the launch notes it, and they go on.
    LeftOut,
    /// A fault of every lane that comes here.
    Fails(margay_exec::FaultKind),
}

/// A site: function, instruction, kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// Index into `Ir::funcs`.
    pub func: u32,
    /// Index into `Func::insts`; `u32::MAX` for a terminator.
    pub inst: u32,
    /// Index into `Func::places`.
    pub at: u32,
    /// What it does.
    pub kind: SiteKind,
}
