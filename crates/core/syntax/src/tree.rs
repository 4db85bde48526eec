//! The tree: flat pools of nodes, names as spans. Nothing is resolved yet; `ld`, `.s32` and `%r1` are only text.
//!
//! Statements of a body are a flat sequence in which `{` and `}` are statements of their own; code that needs scopes keeps a
//! stack. Lists ([`List`]) are ranges of a pool.

use crate::Span;
use std::{marker::PhantomData, sync::Arc};

/// A range of one of the tree's pools.
#[derive(Debug)]
pub struct List<T> {
    /// Index of the first element.
    pub start: u32,
    /// Number of elements.
    pub len: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for List<T> {}
impl<T> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.start, self.len) == (other.start, other.len)
    }
}
impl<T> Eq for List<T> {}
impl<T> std::hash::Hash for List<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.start, self.len).hash(state);
    }
}

impl<T> List<T> {
    /// `len` elements from `start` on.
    pub const fn new(start: u32, len: u32) -> List<T> {
        List { start, len, of: PhantomData }
    }

    /// No elements.
    pub const fn empty() -> List<T> {
        List::new(0, 0)
    }

    /// As a range for slicing the pool.
    pub const fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }

    /// True without elements.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// A whole file.
#[derive(Default, Debug)]
pub struct Tree {
    /// The text that all spans point into. Not an `Arc<str>`, for which a text read from a file would have to be copied.
    pub text: Arc<String>,
    /// Module-level statements in order.
    pub items: Vec<Item>,
    /// Statements of all bodies.
    pub stmts: Vec<Stmt>,
    /// Instructions of all bodies.
    pub instrs: Vec<Instr>,
    /// Operands of all instructions, directives and initializers.
    pub operands: Vec<Operand>,
    /// Inner nodes of constant expressions.
    pub exprs: Vec<Expr>,
    /// Variable declarations: module level, bodies, parameter lists.
    pub vars: Vec<Var>,
    /// The names that a [`Var`] declares.
    pub declarators: Vec<Declarator>,
    /// Functions and kernels.
    pub funcs: Vec<Func>,
    /// Directives with arguments.
    pub directives: Vec<Directive>,
    /// Comments, in order of position, `//` ones without their line end; and the line markers `# 7 "file.cu"` of a preprocessor.
    pub comments: Vec<Span>,
}

/// A statement at module scope. Declarations of functions and aliases in bodies, which ptxas accepts, are here, too.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    /// `.global .u32 x = 3;` Index into [`Tree::vars`].
    Var(u32),
    /// `.entry`, `.func`. Index into [`Tree::funcs`].
    Func(u32),
    /// `.version 8.0`, `.target sm_80, debug`, `.address_size 64`, `.file`, `.section`, `.alias a, b;`, `.pragma`, and any
    /// unknown one. Index into [`Tree::directives`].
    Directive(u32),
}

/// A statement of a body.
#[derive(Clone, Copy, Debug)]
pub enum Stmt {
    /// An instruction. Index into [`Tree::instrs`].
    Instr(u32),
    /// `name:` (the span holds the name only).
    Label(Span),
    /// A declaration. Index into [`Tree::vars`].
    Var(u32),
    /// `.loc`, `.pragma`, `.file`; and `.branchtargets`, `.calltargets`, which belong to the label before them.
    Directive(u32),
    /// `.callprototype`, which belongs to the label before it. Index into [`Tree::funcs`].
    Prototype(u32),
    /// `{`
    Open(Span),
    /// `}`
    Close(Span),
}

/// `@!%p add.rn.f32 %f1, %f2, 0f3F800000;`
#[derive(Clone, Copy, Debug)]
pub struct Instr {
    /// `@p` or `@!p`.
    pub guard: Option<Guard>,
    /// Opcode and modifiers as written, `add.rn.f32`; may hold blanks or comments between words.
    pub mnemonic: Span,
    /// Comma-separated operands. For `call`, the parenthesized lists are [`Kind::Paren`] operands in their positions.
    pub operands: List<Operand>,
    /// From the guard to the semicolon.
    pub span: Span,
}

/// The predicate before an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    /// The predicate's name, without `@` and `!`.
    pub name: Span,
    /// `@!p`
    pub negated: bool,
}

/// An operand and its location.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// What it is.
    pub kind: Kind,
    /// All of it, brackets included.
    pub span: Span,
}

/// 64 bits with the alignment of 32, which keeps an [`Operand`] at 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word([u32; 2]);

impl Word {
    /// Stores a value.
    pub const fn new(value: u64) -> Word {
        Word([value as u32, (value >> 32) as u32])
    }

    /// The value.
    pub const fn get(self) -> u64 {
        self.0[0] as u64 | (self.0[1] as u64) << 32
    }
}

/// The shapes of operands, arguments of directives and initializers.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `%r1`, `foo`, `$L`, `_`, `%tid.x`, `v.xy`: a name with all its dotted suffixes; the operand's span is the name.
    Name,
    /// An integer literal; `unsigned` if it carries `U`. Negative ones are `Expr`.
    Int {
        /// The value, wrapped to 64 bits.
        value: Word,
        /// Written with `U`, or too large for `.s64`.
        unsigned: bool,
    },
    /// A floating-point literal: `1.5`, `0d3FF0000000000000` (double) or `0f3F800000` (single).
    Float {
        /// Bits of the double; a single-precision literal (`0f`) has its 32 bits in the low half.
        bits: Word,
        /// Written as `0f`.
        single: bool,
    },
    /// A constant expression that is more than a literal or a name. Index into [`Tree::exprs`].
    Expr(u32),
    /// `name+expr`: an address with an offset (`name+-4` has an offset that is an `Expr`). In initializers `generic(x)+4` too.
    Sum {
        /// Index of the base operand, a name (or a [`Kind::Apply`]).
        base: u32,
        /// Index of the offset operand.
        offset: u32,
        /// `-` instead of `+`; ptxas and the parser reject it, but the tree records the intended meaning.
        minus: bool,
    },
    /// `a[3]`: an element of an array by index (section 6.4.2).
    Index {
        /// Index of the array's operand, a name.
        base: u32,
        /// Index of the index operand.
        index: u32,
    },
    /// `addr_mode_0 = wrap` in the initializer of a sampler or texture. Index of the name's operand, of the value's operand.
    Field(u32, u32),
    /// `!p`. Index of the name's operand. A negated name, `-a`, is an [`Expr::Unary`] over it.
    Not(u32),
    /// `p|q`. Index of `p` (a name, or `{a, b}`); the name `q` is the operand after it.
    Pair(u32),
    /// `{a, b}`: vectors, nested initializers.
    Braces(List<Operand>),
    /// `[a]`, `[a+4]`, `[tex, {x, y}]`.
    Brackets(List<Operand>),
    /// `(a, b)`: the lists of a call; `generic(x)` and masks (`0xFF(x)`) in initializers are [`Kind::Apply`].
    Paren(List<Operand>),
    /// `generic(x)`, `0xFF00(x)`, `.unified(1, 2)`: something before a parenthesis; `L<3>` in `.branchtargets` too.
    Apply {
        /// Index of the operand before the parenthesis.
        head: u32,
        /// Index of what is between the parentheses: the argument itself if there is one, else a [`Kind::Paren`].
        argument: u32,
    },
    /// `"text"`, quotes in the span.
    String,
    /// An operand that could not be parsed, with a diagnostic. An instruction with such an operand (always its last) should be skipped.
    Error,
}

/// An inner node of a constant expression (section 4.5). Leaves are operands of kind `Int`, `Float` or `Name` (`WARP_SZ`).
#[derive(Clone, Copy, Debug)]
pub enum Expr {
    /// Operator character(s) as [`UnaryOp`] and operand index.
    Unary(UnaryOp, u32),
    /// Operator and two operand indices.
    Binary(BinaryOp, u32, u32),
    /// `c ? a : b`, operand indices.
    Select(u32, u32, u32),
}

/// Operators with one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum UnaryOp {
    Plus,
    Minus,
    LogicalNot,
    BitNot,
    /// `(.s64)`
    CastSigned,
    /// `(.u64)`
    CastUnsigned,
}

/// Operators with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Mul,
    Div,
    Rem,
    Add,
    Sub,
    Shl,
    Shr,
    Lt,
    Gt,
    Le,
    Ge,
    Eq,
    Ne,
    BitAnd,
    BitXor,
    BitOr,
    And,
    Or,
}

/// A declaration of one or more variables, or one parameter.
#[derive(Clone, Debug)]
pub struct Var {
    /// `.extern`, `.visible`, `.weak`, `.common` words before the space, in order.
    pub linkage: List<Directive>,
    /// `.reg`, `.global`, ...; with bank suffix (`.const[2]`) included. Empty if the text has none (`.u32 x;`).
    pub space: Span,
    /// `.align N`: the operand. The parts between space and name may be in any order: the parser accepts every order that
    /// ptxas accepts, and reports all others.
    pub align: Option<u32>,
    /// `.v2`, `.v4`.
    pub vector: Option<Span>,
    /// `.u32`; absent when the text lacks it (an error, or an opaque type's own space such as `.tex`).
    pub ty: Option<Span>,
    /// `.ptr` attribute of a kernel parameter.
    pub ptr: Option<Ptr>,
    /// `.attribute(.managed, .unified(1,2))`, the last one. Index into [`Tree::directives`].
    pub attribute: Option<u32>,
    /// The names.
    pub declarators: List<Declarator>,
    /// From linkage to semicolon (or to the end of the parameter).
    pub span: Span,
}

/// `.ptr .global .align 8`
#[derive(Clone, Copy, Debug)]
pub struct Ptr {
    /// The word `.ptr`.
    pub word: Span,
    /// `.global`
    pub space: Option<Span>,
    /// Operand of `.align`.
    pub align: Option<u32>,
}

/// One declared name.
#[derive(Clone, Copy, Debug)]
pub struct Declarator {
    /// `%r` of `%r<8>`, or the whole name.
    pub name: Span,
    /// Operand `8` of `%r<8>`.
    pub count: Option<u32>,
    /// `[4][]`: one operand a dimension; an empty one is [`Kind::Error`] with an empty span.
    pub dims: List<Operand>,
    /// Operand after `=`.
    pub init: Option<u32>,
    /// Name, dimensions and initializer.
    pub span: Span,
}

/// The kind of a function, from its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FuncKind {
    /// `.entry`
    Entry,
    /// `.func`
    Func,
    /// `.callprototype`; its name is `_`.
    Prototype,
}

/// A function, a kernel, or a prototype.
#[derive(Clone, Debug)]
pub struct Func {
    /// `.extern`, `.visible`, `.weak`.
    pub linkage: List<Directive>,
    /// Which of the three.
    pub kind: FuncKind,
    /// `.attribute(...)` before the name.
    pub attribute: Option<u32>,
    /// Return parameters; `None` without parentheses.
    pub rets: Option<List<Var>>,
    /// The name.
    pub name: Span,
    /// Parameters; `None` without parentheses.
    pub params: Option<List<Var>>,
    /// `.maxntid 128, 1, 1`, `.noreturn`, `.abi_preserve 4`, ..., before the body, in order.
    pub directives: List<Directive>,
    /// Statements between the outermost braces (not included); `None` for a declaration.
    pub body: Option<List<Stmt>>,
    /// Opening and closing brace; empty spans for a declaration.
    pub braces: (Span, Span),
    /// From linkage to the last directive before the body.
    pub header: Span,
    /// Everything.
    pub span: Span,
}

/// What a position in the text belongs to ([`Tree::whole`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whole {
    /// The header of a function, and the function.
    Header(Span, Span),
    /// The declaration of a variable.
    Declaration(Span),
    /// An instruction.
    Instruction(Span),
}

/// A dotted word with arguments.
#[derive(Clone, Copy, Debug)]
pub struct Directive {
    /// `.maxntid`, dot included.
    pub name: Span,
    /// Arguments. `.section` has its name, the labels that it defines and all that is more than a plain number, and its raw body as
    /// a [`Kind::String`]; `.version 8.0` has one `Float` operand.
    pub args: List<Operand>,
    /// Everything.
    pub span: Span,
}

impl Tree {
    /// Releases unused memory of the pools.
    pub(crate) fn shrink(&mut self) {
        self.items.shrink_to_fit();
        self.stmts.shrink_to_fit();
        self.instrs.shrink_to_fit();
        self.operands.shrink_to_fit();
        self.exprs.shrink_to_fit();
        self.vars.shrink_to_fit();
        self.declarators.shrink_to_fit();
        self.funcs.shrink_to_fit();
        self.directives.shrink_to_fit();
        self.comments.shrink_to_fit();
    }

    /// Bytes that the pools take, without the text.
    pub fn bytes(&self) -> usize {
        fn of<T>(pool: &Vec<T>) -> usize {
            pool.capacity() * size_of::<T>()
        }
        of(&self.items)
            + of(&self.stmts)
            + of(&self.instrs)
            + of(&self.operands)
            + of(&self.exprs)
            + of(&self.vars)
            + of(&self.declarators)
            + of(&self.funcs)
            + of(&self.directives)
            + of(&self.comments)
    }

    /// What a position belongs to: the header of a function with all its parameters, the declaration of a variable, or an
    /// instruction. If it spans several lines, messages point to the error; ptxas reports the last line of a declaration,
    /// and the first of an instruction.
    pub fn whole(&self, at: u32) -> Option<Whole> {
        let holds = |s: &Span| s.start <= at && at <= s.end;
        if let Some(f) = self.funcs.iter().find(|f| holds(&f.header)) {
            return Some(Whole::Header(f.header, f.span));
        }
        let vars = self.vars.iter().map(|v| v.span).filter(holds).min_by_key(|s| s.len());
        let instrs = || self.instrs.iter().map(|i| i.span).find(holds);
        vars.map(Whole::Declaration).or_else(|| instrs().map(Whole::Instruction))
    }

    /// The declaration, or the header of a function, that contains a position.
    pub fn declaration(&self, at: u32) -> Option<Span> {
        match self.whole(at) {
            Some(Whole::Header(span, _) | Whole::Declaration(span)) => Some(span),
            Some(Whole::Instruction(_)) | None => None,
        }
    }

    /// The text under a span.
    #[inline]
    pub fn str(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// Whether that is the text under a span; of a text of another length, no byte is read.
    #[inline]
    pub fn is(&self, span: Span, text: &str) -> bool {
        span.len() as usize == text.len() && self.text.as_bytes().get(span.range()) == Some(text.as_bytes())
    }

    /// Operands of a list.
    #[inline]
    pub fn operands(&self, list: List<Operand>) -> &[Operand] {
        &self.operands[list.range()]
    }

    /// Statements of a body.
    #[inline]
    pub fn stmts(&self, list: List<Stmt>) -> &[Stmt] {
        &self.stmts[list.range()]
    }

    /// Variables of a parameter list.
    pub fn vars(&self, list: List<Var>) -> &[Var] {
        &self.vars[list.range()]
    }

    /// Declared names of a variable declaration.
    pub fn declarators(&self, var: &Var) -> &[Declarator] {
        &self.declarators[var.declarators.range()]
    }

    /// Directives of a list.
    pub fn directives(&self, list: List<Directive>) -> &[Directive] {
        &self.directives[list.range()]
    }
}
