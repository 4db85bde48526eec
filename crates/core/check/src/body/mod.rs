//! A resolved function body: every name is an id, every mnemonic a [`Variant`], every constant a number. This file contains
//! the types; the others resolve and check.

mod address;
mod call;
mod call_table;
mod declare;
mod destination;
mod directive;
mod explain;
mod facts;
mod instr;
mod join;
mod labels;
mod memo;
mod names;
mod operand;
mod short_str;
mod source;
mod stem;
mod symbol;
mod targets;
mod vector;
mod walk;

pub(crate) use facts::Facts;
pub(crate) use memo::{Access, Candidate, Entry, Memo, Want, space_of};
pub(crate) use names::Binding;
pub(crate) use walk::{Scratch, Walker, examine, resolve};

use crate::{FuncId, Function, GlobalId};
use margay_isa::{Component, Part, Space, Special, Type, Variant};
use margay_syntax::{Span, tree::List};

/// A register of a body: an index over all declared registers (`%r<8>` declares eight).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RegId(pub u32);

/// Index into [`Body::labels`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LabelId(pub u32);

/// Index into [`Body::tables`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TableId(pub u32);

/// Index into [`Body::variants`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct VariantId(pub u32);

/// A resolved body.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Declarations of registers, in order; `.reg` formals come first (returns, then parameters).
    pub regs: Vec<RegDecl>,
    /// Variables in memory that the body declares: `.local`, `.shared`, `.param`, `.global`, `.const`.
    pub locals: Vec<Local>,
    /// Distinct (opcode, form, modifiers) of this body.
    pub variants: Vec<Variant>,
    /// Instructions in order of the text.
    pub insts: Vec<Inst>,
    /// Operands of all instructions.
    pub operands: Vec<Operand>,
    /// Labels: the index of the instruction that each precedes, and its name.
    pub labels: Vec<(u32, Span)>,
    /// `.branchtargets`, `.calltargets`, `.callprototype`, in the order of their labels, and arrays of functions that calls name.
    pub tables: Vec<TargetTable>,
    /// `.loc` directives: (index of the first instruction they hold for, file, line, column).
    pub locs: Vec<(u32, u32, u32, u32)>,
}

/// A `.reg` declaration of one name or of a numbered family.
#[derive(Clone, Copy, Debug)]
pub struct RegDecl {
    /// First register.
    pub first: RegId,
    /// How many; 1 for a plain name.
    pub count: u32,
    /// True for `%r<8>`: names carry a number.
    pub numbered: bool,
    /// Type.
    pub ty: Type,
    /// `.v2`, `.v4`; else 1.
    pub vector: u8,
    /// The name, without number.
    pub name: Span,
    /// Set for a register of module scope (PTX before 3.0) that the body names: such registers get declarations after those
    /// of the body, `name` is then the module's.
    pub global: Option<GlobalId>,
}

/// A variable in memory declared in a body.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its name.
    pub name: Span,
    /// State space.
    pub space: Space,
    /// Element type.
    pub ty: Type,
    /// `.v2`, `.v4`; else 1.
    pub vector: u8,
    /// Bytes in all; 0 for `[]`.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u32,
    /// Array extent.
    pub extent: crate::Extent,
    /// How many dimensions the array has.
    pub dimensions: u32,
    /// Initial contents (`.global`, `.const`).
    pub init: Vec<crate::Init>,
}

/// A memory symbol as an operand sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SymRef {
    /// A module-level variable.
    Global(GlobalId),
    /// A variable of this body; index into [`Body::locals`].
    Local(u32),
    /// A `.param` formal of this function (kernel or device), by index into [`Function::params`].
    Param(u32),
    /// A `.param` return formal, by index into [`Function::rets`].
    Ret(u32),
    /// A function, as an address or as a callee.
    Func(FuncId),
}

/// The base of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// A register.
    Reg(RegId),
    /// A variable.
    Sym(SymRef),
    /// Nothing: the offset is the address.
    Absolute,
}

/// A resolved operand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Operand {
    /// A register.
    Reg(RegId),
    /// `v.x` of a vector register.
    Element(RegId, Component),
    /// An integer constant, two's complement in 64 bits.
    Int(i64),
    /// A floating constant: a double's bits, or (if `single`) a float's bits.
    Float {
        /// The bits.
        bits: u64,
        /// Written as `0f`.
        single: bool,
    },
    /// A special register, with its component for vectors.
    Special(Special, Option<Component>),
    /// A name used as a value: its address plus an offset (`mov.u64 %rd1, table+8`), or an argument of a call.
    Symbol(SymRef, i64),
    /// A bracketed address.
    Address(Base, i64),
    /// A register and an offset as a value (`%r1+4`): ptxas adds them.
    Sum(RegId, i64),
    /// `a[%r1+2]`: the element of an array that a register selects (section 6.4.2).
    Indexed {
        /// The array.
        array: SymRef,
        /// The register.
        index: RegId,
        /// Bytes of an element of the declared type.
        size: u32,
        /// Bytes to add to the element's address.
        offset: i32,
    },
    /// An operand that ptxas accepts but the manual gives no meaning: one value for a vector, a vector for one element of a surface.
    Computed,
    /// A bracketed list.
    Group(List<Operand>),
    /// A vector in braces.
    Vector(List<Operand>),
    /// A parenthesized list of a call.
    List(List<Operand>),
    /// `p|q`: at this index of the pool and the next.
    Pair(u32),
    /// `!p`
    Not(RegId),
    /// `-r.h1`: an operand of a video instruction that is more than a plain register.
    Part {
        /// The register.
        reg: RegId,
        /// The selector.
        part: Option<Part>,
        /// With `-` before it (`vmad`).
        neg: bool,
    },
    /// `_`
    Sink,
    /// A label.
    Label(LabelId),
    /// A label of a table of targets or a prototype.
    Table(TableId),
    /// A `.texref`, `.samplerref`, `.surfref` is a [`Operand::Symbol`]; this is anything else given by name.
    Text(Span),
    /// A mistake that has its diagnostic already.
    Error,
}

/// A predicate before an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guard {
    /// The predicate register.
    pub reg: RegId,
    /// `@!p`
    pub negated: bool,
}

/// A resolved instruction.
#[derive(Clone, Copy, Debug)]
pub struct Inst {
    /// Opcode, form, modifiers.
    pub variant: VariantId,
    /// `@p`
    pub guard: Option<Guard>,
    /// Operands, in the order of the form; left-out optional ones are absent at the end. For `call` always four: returns
    /// ([`Operand::List`]), callee ([`Operand::Symbol`] or [`Operand::Reg`]), arguments ([`Operand::List`]), and the table
    /// ([`Operand::Table`] or [`Operand::Sink`]).
    pub operands: List<Operand>,
    /// Index into `Tree::instrs`: the place.
    pub node: u32,
}

/// A table that a label names.
#[derive(Clone, Debug)]
pub enum TargetTable {
    /// `.branchtargets`
    Branch(Vec<LabelId>),
    /// `.calltargets`, or an array of functions
    Calls(Vec<FuncId>),
    /// `.callprototype`
    Prototype(Box<Function>),
}

impl Body {
    /// Operands of an instruction or list.
    pub fn operands(&self, list: List<Operand>) -> &[Operand] {
        &self.operands[list.range()]
    }

    /// The variant of an instruction.
    pub fn variant(&self, inst: &Inst) -> &Variant {
        &self.variants[inst.variant.0 as usize]
    }

    /// The declaration of a register.
    pub fn decl(&self, reg: RegId) -> &RegDecl {
        &self.regs[self.regs.partition_point(|d| d.first <= reg) - 1]
    }
}
