//! One function: blocks, instructions, registers, frame variables, call sites, source locations.

use crate::{FuncId, GlobalId, abi::Signature};
use margay_check::{FuncKind, PtrAttr};
use margay_isa::{Component, Special, Type, Variant};
use margay_syntax::{Span, tree::List};
use std::sync::Arc;

/// A scalar virtual register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct VReg(pub u32);

/// Index into [`Func::blocks`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct BlockId(pub u32);

/// Index into [`Func::frame`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FrameId(pub u32);

/// The state space of a memory access, with all defaults of `.param` and all sub-qualifiers resolved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemSpace {
    /// A generic address.
    Generic,
    /// Global memory.
    Global,
    /// Constant banks.
    Const,
    /// The CTA's shared window; 32-bit offsets.
    Shared,
    /// Shared windows of the cluster (`.shared::cluster`).
    SharedCluster,
    /// The thread's local window, in which formals and `.param` variables of functions live too.
    Local,
    /// The kernel's parameter block.
    KernelParam,
}

impl MemSpace {
    /// As PTX writes it: `shared::cluster`; a generic address has no qualifier, and is `generic`.
    pub const fn name(self) -> &'static str {
        match self {
            MemSpace::Generic => "generic",
            MemSpace::Global => "global",
            MemSpace::Const => "const",
            MemSpace::Shared => "shared",
            MemSpace::SharedCluster => "shared::cluster",
            MemSpace::Local => "local",
            MemSpace::KernelParam => "param",
        }
    }
}

/// A function of the device library that engines implement by name; it has no blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Builtin {
    /// `int vprintf(const char *format, void *arguments)`
    Vprintf,
    /// `void *malloc(size_t)`
    Malloc,
    /// `void free(void *)`
    Free,
    /// `void __assertfail(const void *message, const void *file, uint32 line, const void *function, size_t charsize)`
    AssertFail,
    /// `uint64 __margay_parameter_bytes(void *kernel)`: size of a kernel's parameter block; all ones if it is not a kernel.
    ParameterBytes,
    /// `uint32 __margay_launch(void *description, uint64 stream)`: queues a launch; `margay_exec::device::Launch` says how it is described.
    Launch,
    /// `uint32 __margay_copy(void *to, const void *from, uint64 bytes, uint64 stream)`: queues a copy.
    Copy,
    /// `uint32 __margay_fill(void *to, uint32 byte, uint64 bytes, uint64 stream)`: queues a fill.
    Fill,
    /// `uint32 __margay_launch_graph(void *graph, uint64 stream)`: queues a launch of an executable graph.
    LaunchGraph,
    /// `uint32 __margay_last_error(uint32 keep)`: the last error of the calling thread, which is cleared unless `keep`.
    LastError,
    /// `int64 __margay_ask(uint32 query, uint64 a, uint64 b, uint64 c)`: what the driver answers to a query
    /// (`margay_exec::device::Query`); the negative error code if it is invalid.
    Ask,
    /// `uint32 __margay_update_node(uint64 node, uint32 field, uint64 a, uint64 b, uint64 c)`: changes a kernel node of a graph
    /// (`margay_exec::device::Change`).
    UpdateNode,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Builtin; 12] = [
        Builtin::Vprintf,
        Builtin::Malloc,
        Builtin::Free,
        Builtin::AssertFail,
        Builtin::ParameterBytes,
        Builtin::Launch,
        Builtin::Copy,
        Builtin::Fill,
        Builtin::LaunchGraph,
        Builtin::LastError,
        Builtin::Ask,
        Builtin::UpdateNode,
    ];

    /// Whether it queues work.
    pub fn queues(self) -> bool {
        matches!(self, Builtin::Launch | Builtin::Copy | Builtin::Fill | Builtin::LaunchGraph)
    }

    /// The function of that name.
    pub fn from_name(name: &str) -> Option<Builtin> {
        Some(match name {
            "vprintf" => Builtin::Vprintf,
            "malloc" => Builtin::Malloc,
            "free" => Builtin::Free,
            "__assertfail" => Builtin::AssertFail,
            "__margay_parameter_bytes" => Builtin::ParameterBytes,
            "__margay_launch" => Builtin::Launch,
            "__margay_copy" => Builtin::Copy,
            "__margay_fill" => Builtin::Fill,
            "__margay_launch_graph" => Builtin::LaunchGraph,
            "__margay_last_error" => Builtin::LastError,
            "__margay_ask" => Builtin::Ask,
            "__margay_update_node" => Builtin::UpdateNode,
            _ => return None,
        })
    }
}

/// A function.
#[derive(Clone, Debug)]
pub struct Func {
    /// Its name.
    pub name: Box<str>,
    /// Declared but not defined, and known to every engine.
    pub builtin: Option<Builtin>,
    /// Kernel or device function.
    pub kind: FuncKind,
    /// Formals and returns.
    pub sig: Arc<Signature>,
    /// Names of the formals, by index of [`Signature::params`].
    pub param_names: Vec<Box<str>>,
    /// `.ptr` attributes of a kernel's parameters, by the same index; none where there is no entry.
    pub pointers: Vec<Option<PtrAttr>>,
    /// The same for returns.
    pub ret_names: Vec<Box<str>>,
    /// The home of each parameter in the body, by index of [`Signature::params`].
    pub params: Vec<FormalHome>,
    /// The same for returns.
    pub rets: Vec<FormalHome>,
    /// Types of the virtual registers.
    pub regs: Vec<Type>,
    /// Names of the virtual registers as in the text, for people (`%r5`, `v.x`, `cc`).
    pub reg_names: Vec<Box<str>>,
    /// Variables in the frame.
    pub frame: Vec<FrameVar>,
    /// Basic blocks in reverse post-order; block 0 is the entry. Empty for an undefined external.
    pub blocks: Vec<Block>,
    /// Instructions of all blocks.
    pub insts: Vec<Inst>,
    /// Operands of all instructions.
    pub operands: Vec<Operand>,
    /// The operand types according to the rows, by index of [`Func::operands`]: see [`crate::operand_types`].
    pub types: Vec<Type>,
    /// Distinct variants.
    pub variants: Vec<Variant>,
    /// Call sites.
    pub calls: Vec<CallSite>,
    /// Places, by [`Inst::at`].
    pub places: Vec<SourcePlace>,
    /// The file that [`SourcePlace::span`] points into.
    pub source: Arc<Source>,
    /// `.noreturn`
    pub noreturn: bool,
    /// `.reqntid`
    pub reqntid: Option<[u32; 3]>,
    /// `.maxntid`
    pub maxntid: Option<[u32; 3]>,
    /// `.reqnctapercluster`
    pub reqnctapercluster: Option<[u32; 3]>,
    /// `.maxnreg`
    pub maxnreg: Option<u32>,
    /// None of its loops waits for other threads or runs forever, whatever [`crate::pass::spins`] finds in its code: it continues a
    /// function in the middle ([`crate::pass::Resume`]), and what precedes its loops there shows it.
    pub never_spins: bool,
}

/// A source file, for messages.
#[derive(Debug)]
pub struct Source {
    /// Name as given by the user.
    pub name: String,
    /// The tree, with its text.
    pub tree: Arc<margay_syntax::Tree>,
    /// `.file` table.
    pub files: std::collections::HashMap<u32, Box<str>>,
    /// Computed on request, because modules without findings need no lines.
    lines: std::sync::OnceLock<margay_syntax::LineIndex>,
}

impl Source {
    /// A file with its tree and its `.file` table.
    pub fn new(name: &str, tree: Arc<margay_syntax::Tree>, files: std::collections::HashMap<u32, Box<str>>) -> Source {
        Source { name: name.into(), tree, files, lines: Default::default() }
    }

    /// Lines of the text.
    pub fn lines(&self) -> &margay_syntax::LineIndex {
        self.lines.get_or_init(|| margay_syntax::LineIndex::new(&self.tree.text))
    }
}

/// The location of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SourcePlace {
    /// In the PTX text.
    pub span: Span,
    /// `.loc`: file index, line, column; 0 without one.
    pub loc: (u32, u32, u32),
}

/// The home of a parameter inside its function.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FormalHome {
    /// A `.reg` formal: its registers (more than one for a vector).
    Regs(Vec<VReg>),
    /// A `.param` formal of a device function: a variable of the frame.
    Frame(FrameId),
    /// A kernel parameter: byte offset in the parameter block, as cuLaunchKernel lays it out.
    Kernel(u32),
}

/// A variable in a thread's frame.
#[derive(Clone, Hash, Debug)]
pub struct FrameVar {
    /// Its name.
    pub name: Box<str>,
    /// What it is.
    pub role: FrameRole,
    /// Size in bytes; 0 for an unsized parameter, which is where the caller put the array.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// Whether the body takes its address (`mov`), so that it must be in memory.
    pub address_taken: bool,
}

/// The role of a frame variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FrameRole {
    /// `.local`
    Local,
    /// `.param` declared in the body, for calls.
    Param,
    /// The function's own input formal.
    Formal(u32),
    /// The function's own return formal.
    Return(u32),
}

/// A basic block.
#[derive(Clone, Hash, Debug)]
pub struct Block {
    /// First instruction and number.
    pub insts: List<Inst>,
    /// What comes next.
    pub term: Terminator,
    /// Place of the terminator.
    pub at: u32,
    /// The label in the text, if any.
    pub label: Option<Box<str>>,
}

/// How a block ends.
#[derive(Clone, PartialEq, Hash, Debug)]
pub enum Terminator {
    /// To that block.
    Jump(BlockId),
    /// By a predicate.
    Branch {
        /// The predicate.
        pred: VReg,
        /// Taken when it is false.
        negated: bool,
        /// The target if taken.
        then: BlockId,
        /// The target if not taken.
        other: BlockId,
        /// `.uni`: all threads agree.
        uniform: bool,
    },
    /// `brx.idx`: an index beyond the table is undefined (a fault here).
    Switch {
        /// `.u32` index.
        index: Operand,
        /// By index.
        targets: Vec<BlockId>,
        /// `.uni`
        uniform: bool,
    },
    /// Return to the caller; in a kernel, end the thread.
    Ret,
    /// End the thread.
    Exit,
}

/// An instruction inside a block. Branches, `ret` and `exit` are terminators (their guards have become branches).
#[derive(Clone, Copy, Hash, Debug)]
pub struct Inst {
    /// Index into [`Func::variants`].
    pub variant: u32,
    /// Predicate, and whether it is negated.
    pub guard: Option<(VReg, bool)>,
    /// Registers written, in the order of the row: vectors split, then the partner after `|`, then the carry flag.
    /// [`Operand::Reg`] or [`Operand::Sink`].
    pub dsts: List<Operand>,
    /// Values read, in the order of the row: vectors and groups split, then the carry flag. An operand from which a part
    /// may be selected ([`margay_isa::Opnd::parts`]) or that may be negated is followed by a constant: [`margay_isa::Part::code`],
    /// with bit 31 for `-`; that of a destination precedes all sources.
    pub srcs: List<Operand>,
    /// For memory instructions: the resolved state space.
    pub space: Option<MemSpace>,
    /// Index into [`Func::places`].
    pub at: u32,
}

/// A value read, a register written, or a memory operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// A register.
    Reg(VReg),
    /// A predicate register, inverted.
    Not(VReg),
    /// A constant: bits of the operand's type, zero-extended. `.pred` constants are 0 or 1.
    Imm(u64),
    /// A special register; scalars have component `X`.
    Special(Special, Component),
    /// The address of a variable, in its space, plus an offset. Where an instruction takes a texture, sampler or surface by
    /// name: that variable; [`Operand::ParamAddr`] is then the kernel parameter that holds the handle.
    GlobalAddr(GlobalId, i64),
    /// The local address of a frame variable, plus an offset.
    FrameAddr(FrameId, i64),
    /// The address of a kernel parameter in parameter space: a byte offset.
    ParamAddr(i64),
    /// A function's address.
    Func(FuncId),
    /// A memory operand: `[base+offset]`.
    Mem(MemBase, i64),
    /// A call site; the only source of a `call`.
    Call(u32),
    /// `_`, or an omitted optional operand before one that is present.
    Sink,
}

/// Base of a memory operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemBase {
    /// A register; 32-bit registers are zero-extended.
    Reg(VReg),
    /// A static variable.
    Global(GlobalId),
    /// A frame variable.
    Frame(FrameId),
    /// The kernel's parameter block.
    KernelParam,
    /// None: the offset is the address.
    Absolute,
}

/// A call.
#[derive(Clone, Hash, Debug)]
pub struct CallSite {
    /// The callee.
    pub callee: Callee,
    /// The signature that the caller expects; for direct calls, the callee's.
    pub sig: Arc<Signature>,
    /// One per input parameter; `Omitted` for an unsized parameter without an argument.
    pub args: Vec<Arg>,
    /// One per return parameter.
    pub rets: Vec<Arg>,
    /// `.uni`
    pub uniform: bool,
    /// Whether the callee's results may depend on the progress of other threads ([`crate::pass::mark_observing_calls`]).
    pub observes: bool,
}

/// The callee.
#[derive(Clone, Hash, Debug)]
pub enum Callee {
    /// A function of the program.
    Direct(FuncId),
    /// Through a register; with the `.calltargets` list if there is one.
    Indirect(VReg, Option<Vec<FuncId>>),
}

impl Terminator {
    /// The predicate that decides whether this branch leads to `to`, one of its targets, and its value if it does.
    pub fn condition(&self, to: BlockId) -> Option<(VReg, bool)> {
        match *self {
            Terminator::Branch { pred, negated, then, other, .. } if then != other => {
                Some((pred, (to == then) != negated))
            }
            _ => None,
        }
    }
}

/// An argument, or the destination of a return value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Arg {
    /// Values (several for a vector).
    Values(Vec<Operand>),
    /// A `.param` variable of the caller's frame.
    Frame(FrameId),
    /// Nothing is passed through an unsized parameter, or a result is discarded (`_`).
    Omitted,
}

impl Operand {
    /// The frame variable that an operand accesses, or whose address it is.
    pub fn frame_variable(&self) -> Option<FrameId> {
        match self {
            Operand::Mem(MemBase::Frame(id), _) | Operand::FrameAddr(id, _) => Some(*id),
            _ => None,
        }
    }
}

impl Arg {
    /// The frame variable that holds an argument or a result.
    pub fn frame_variable(&self) -> Option<FrameId> {
        match self {
            Arg::Frame(id) => Some(*id),
            Arg::Values(_) | Arg::Omitted => None,
        }
    }
}

impl Func {
    /// Operands of a list.
    pub fn operands(&self, list: List<Operand>) -> &[Operand] {
        &self.operands[list.range()]
    }

    /// Instructions of a block.
    pub fn insts(&self, block: &Block) -> &[Inst] {
        &self.insts[block.insts.range()]
    }

    /// By instruction: its block.
    pub fn blocks_of_insts(&self) -> Vec<Option<BlockId>> {
        let mut found = vec![None; self.insts.len()];
        for (b, block) in self.blocks.iter().enumerate() {
            found[block.insts.range()].fill(Some(BlockId(b as u32)));
        }
        found
    }

    /// The variant of an instruction.
    pub fn variant(&self, inst: &Inst) -> &Variant {
        &self.variants[inst.variant as usize]
    }
}
