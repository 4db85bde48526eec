//! Sites: the places in generated code from which helpers are called, with the facts about each that a helper needs.

use std::borrow::Cow;

/// The kind of a site, with the parameters that its helper needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SiteKind {
    /// A checked memory access. `WarpCtx::sites` caches where an access of a whole affine row may start: an address,
    /// and a number of steps. A [`SiteKind::Lanes`] follows.
    Access {
        /// Size of one lane's access in bytes.
        size: u32,
        /// Whether it is a store.
        write: bool,
        /// The state space, as in messages.
        space: &'static str,
        /// Bytes from the start of a row's first access to the end of its last.
        span: u64,
        /// Log2 of the alignment of a row's start within the memory, which is also the step in which starts are
        /// counted.
        shift: u32,
    },
    /// The preceding access, checked lane by lane.
    Lanes,
    /// The check of several accesses that add different constants to one address.
    Group(GroupSite),
    /// A pure row evaluated by its semantic function.
    Pure {
        /// Widths of the sources in bits.
        srcs: Vec<u32>,
        /// Widths of the destinations in bits.
        dsts: Vec<u32>,
    },
    /// An instruction executed by the reference engine.
    Effect {
        /// Rows of the registers read.
        reads: usize,
        /// Rows of the registers written.
        writes: usize,
        /// Reached only if the program does what PTX leaves undefined.
        seldom: bool,
    },
    /// A barrier of the CTA, in code on fibers.
    Barrier {
        /// Has a thread count.
        counted: bool,
        /// The reduction of predicates, if any.
        reduces: Option<margay_isa::Mod>,
        /// Arrives without waiting (`bar.arrive`).
        arrives: bool,
    },
    /// The barrier of the cluster, in code on fibers.
    Cluster {
        /// Waits, rather than arrives.
        waits: bool,
    },
    /// A call, recorded for the call stack of a fault.
    Call,
    /// An access by name that leaves its `.param` variable.
    Parameter {
        /// Size of the access in bytes.
        size: u32,
        /// It stores.
        write: bool,
        /// The call determines the size of the variable.
        passed: bool,
    },
    /// An `alloca`.
    Alloca,
    /// A `stackrestore`.
    Restore,
    /// A jump through a table, maybe beyond it.
    Jump,
    /// A load in a loop that polls memory.
    Poll,
    /// A call of a function of the device library.
    Builtin {
        /// The function.
        builtin: margay_ir::Builtin,
        /// Number of its arguments.
        args: usize,
    },
    /// A fault that generated code detects.
    Fault(Cow<'static, str>),
    /// Lanes that their own member mask leaves out: noted by the launch, which continues.
    LeftOut,
    /// The return of a function with `.noreturn`: noted by the launch, which continues.
    Returned,
    /// An instruction at which lanes wait for the rest of their warp.
    Held,
    /// A fault of every lane that reaches the site.
    Fails(margay_exec::FaultKind),
    /// An access that is reported to the launch's observer.
    Observed {
        /// Size of one lane's access in bytes.
        bytes: u32,
        /// Load, store or atomic.
        access: margay_exec::AccessKind,
        /// Bytes from one lane to the next, if that is known.
        stride: u64,
    },
    /// An access that is reported if it leaves the range cached for the site.
    Bounded {
        /// Size of one lane's access in bytes.
        bytes: u32,
        /// Load, store or atomic.
        access: margay_exec::AccessKind,
        /// Bytes from the lowest address of a row to the end of its last access.
        span: u64,
    },
    /// An access that is reported if it lies in the thread's local window and leaves the kernel's variables.
    Overrun {
        /// Size of one lane's access in bytes.
        bytes: u32,
        /// Load, store or atomic.
        access: margay_exec::AccessKind,
        /// Where the variables begin in the window.
        bottom: u32,
        /// Where they end.
        top: u32,
    },
    /// Something else that is reported to the launch's observer.
    Moment(Moment),
}

/// Accesses that add different constants to one address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupSite {
    /// The site of each access, in program order, and the distance of the access from the address.
    pub members: Vec<(usize, i64)>,
    /// The site of the access whose check covers all: of a store, if there is one.
    pub lead: usize,
    /// Distance of the first byte accessed from the address.
    pub least: i64,
    /// Bytes from the first one accessed to the end of the last one.
    pub span: u64,
    /// The bits of the address that must be zero, where `odd_at` is added to it.
    pub odd: u64,
    /// See `odd`.
    pub odd_at: i64,
}

/// The events besides accesses that are reported to an observer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// A CTA begins.
    Begin,
    /// Lanes synchronize by `bar.warp.sync`.
    Warp,
    /// Lanes participate in another operation of their warp.
    Exchange,
    /// Lanes arrive at a barrier of the CTA.
    Arrive,
    /// All threads have arrived at a barrier of the CTA.
    Complete,
    /// All threads of a CTA have ended.
    End,
}

impl Moment {
    /// All of them; serialized by index.
    pub const ALL: [Moment; 6] =
        [Moment::Begin, Moment::Warp, Moment::Exchange, Moment::Arrive, Moment::Complete, Moment::End];
}

/// A site, with the instruction that it belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// Index into `Ir::funcs`.
    pub func: u32,
    /// Index into `Func::insts`; `u32::MAX` for a terminator.
    pub inst: u32,
    /// Index into `Func::places`.
    pub at: u32,
    /// The facts that the helper needs.
    pub kind: SiteKind,
}
