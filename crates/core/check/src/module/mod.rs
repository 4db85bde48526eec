//! Module scope: directives, symbols, signatures. This file contains the types; the others build and check them.

mod build;
mod debug;
mod decl;
mod func;
mod header;
mod init;

pub(crate) use build::{add_alias, check, examine};
pub(crate) use decl::{Shape, ShapeAt, constant_error, declare, extent, family, no_samplers, wide_type};
pub(crate) use func::{narrow, signature};
pub(crate) use init::evaluate;

use crate::FxHashMap;
use margay_isa::{Space, Target, Type, Version};
use margay_syntax::Span;
use std::collections::HashMap;

/// Index into [`Module::funcs`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FuncId(pub u32);

/// Index into [`Module::globals`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct GlobalId(pub u32);

/// The meaning of a module-level name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Symbol {
    /// A function or kernel (aliases resolve to their aliasee in [`Module::aliases`]).
    Func(FuncId),
    /// A variable.
    Global(GlobalId),
    /// Index into [`Module::aliases`].
    Alias(u32),
}

/// Linkage of a symbol (section 11.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Linkage {
    /// No word: visible in this module only.
    #[default]
    Internal,
    /// `.visible`
    Visible,
    /// `.extern`
    Extern,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
}

/// Whether the module uses the stack-based ABI (section 7.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Abi {
    /// As always since PTX 2.0 on sm_20.
    #[default]
    Stack,
    /// Disabled: several `.reg` returns, or module-scope `.reg`/`.local` before PTX 3.0.
    Off,
}

/// Everything that module-level directives say.
#[derive(Clone, Debug)]
pub struct Module {
    /// `.version`
    pub version: Version,
    /// `.target`
    pub target: Target,
    /// The number after `.version`; nothing if the module has no known version (there is an error then).
    pub version_at: Option<Span>,
    /// The name after `.target`; nothing if the module has no known target (there is an error then).
    pub target_at: Option<Span>,
    /// The first variable with `.attribute(.unified(...))`.
    pub(crate) unified_at: Option<Span>,
    /// `.address_size`, 32 or 64.
    pub address_size: u32,
    /// `.target ..., texmode_independent`: samplers are variables of their own.
    pub texmode_independent: bool,
    /// `.target ..., debug`
    pub debug: bool,
    /// The span of the directive.
    pub(crate) debug_at: Option<Span>,
    /// Stack-based or not.
    pub abi: Abi,
    /// Variables of all spaces, module-scope `.reg` and `.local` of old versions included.
    pub globals: Vec<Global>,
    /// Functions and kernels; declarations and definition of one name are one entry.
    pub funcs: Vec<Function>,
    /// `.alias alias, aliasee;`
    pub aliases: Vec<Alias>,
    /// Functions whose address some body takes, in ascending order. Initializers of variables name further ones.
    pub address_taken: Vec<FuncId>,
    /// Names to symbols.
    pub names: FxHashMap<Box<str>, Symbol>,
    /// `.file` directives: index to path.
    pub files: HashMap<u32, Box<str>>,
}

/// `.alias a, b;`
#[derive(Clone, Debug)]
pub struct Alias {
    /// The new name.
    pub name: Box<str>,
    /// The aliased function.
    pub of: FuncId,
    /// The directive.
    pub span: Span,
    /// The name in the declaration of the alias as a function; the alias is known from there on.
    pub first: Span,
}

/// Array extent of a variable or formal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Not an array.
    Scalar,
    /// That many elements in all (dimensions multiplied).
    Array(u64),
    /// `[]`
    Unsized,
}

impl Extent {
    /// Size of a variable in bytes, with elements of that many: 0 if it has none.
    pub(crate) fn bytes(self, element: u64) -> u64 {
        match self {
            Extent::Scalar => element,
            Extent::Array(n) => n * element,
            Extent::Unsized => 0,
        }
    }
}

/// A variable at module level.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its name.
    pub name: Box<str>,
    /// State space.
    pub space: Space,
    /// `.const[3]`
    pub bank: Option<u32>,
    /// Element type.
    pub ty: Type,
    /// `.v2`, `.v4`: elements of the vector; else 1.
    pub vector: u8,
    /// Array extent.
    pub extent: Extent,
    /// How many dimensions the array has.
    pub dimensions: u32,
    /// Alignment in bytes, explicit or natural.
    pub align: u32,
    /// Size in bytes; 0 for unsized.
    pub size: u64,
    /// Linkage.
    pub linkage: Linkage,
    /// `.attribute(.managed)`
    pub managed: bool,
    /// Initial contents.
    pub init: Vec<Init>,
    /// The declared name.
    pub span: Span,
    /// The name in the first declaration; the variable is known from there on.
    pub first: Span,
}

/// A piece of a variable's initial contents; bytes not covered are zero.
#[derive(Clone, Debug)]
pub enum Init {
    /// Constant bytes at an offset.
    Bytes {
        /// Offset into the variable.
        at: u64,
        /// The bytes, little-endian elements.
        bytes: Vec<u8>,
    },
    /// An address, or one byte of it selected by a mask (`0xFF00(x)`).
    Address {
        /// Offset into the variable.
        at: u64,
        /// Bytes written: 1, 2, 4 or 8.
        size: u8,
        /// Right shift of the address before it is cut to `size`.
        shift: u8,
        /// The symbol.
        of: Symbol,
        /// Added to the address.
        offset: i64,
        /// `generic(x)`: the generic address rather than the one in the symbol's space.
        generic: bool,
    },
    /// A property of a texture, sampler or surface: `addr_mode_0 = clamp_to_border` (section 5.3).
    Property {
        /// Its name.
        name: Box<str>,
        /// A number or a word.
        value: Box<str>,
    },
}

/// What kind of function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FuncKind {
    /// `.entry`
    Kernel,
    /// `.func`
    Device,
}

/// State space of a formal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FormalSpace {
    /// `.reg`
    Reg,
    /// `.param`
    Param,
}

/// `.ptr .space .align N`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PtrAttr {
    /// Space pointed to; `None` for generic.
    pub space: Option<Space>,
    /// Alignment of what is pointed to; 4 if not given.
    pub align: u32,
}

/// A formal parameter or return parameter.
#[derive(Clone, Debug)]
pub struct Formal {
    /// Its name; `_` in prototypes.
    pub name: Box<str>,
    /// `.reg` or `.param`.
    pub space: FormalSpace,
    /// Element type.
    pub ty: Type,
    /// `.v2`, `.v4`; else 1.
    pub vector: u8,
    /// Array extent.
    pub extent: Extent,
    /// Alignment in bytes, explicit or natural.
    pub align: u32,
    /// Size in bytes; 0 for unsized. `.pred` counts as 1.
    pub size: u32,
    /// Attribute of a kernel parameter.
    pub ptr: Option<PtrAttr>,
    /// The declaration.
    pub span: Span,
}

/// A function, kernel or call prototype.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: Box<str>,
    /// Kernel or device function.
    pub kind: FuncKind,
    /// Linkage.
    pub linkage: Linkage,
    /// Return parameters.
    pub rets: Vec<Formal>,
    /// Parameters.
    pub params: Vec<Formal>,
    /// `.noreturn`
    pub noreturn: bool,
    /// `.abi_preserve N`
    pub abi_preserve: Option<u32>,
    /// `.abi_preserve_control N`
    pub abi_preserve_control: Option<u32>,
    /// `.reqntid` (exact) or `.maxntid` (bound): x, y, z; 1 where not given.
    pub reqntid: Option<[u32; 3]>,
    /// `.maxntid`
    pub maxntid: Option<[u32; 3]>,
    /// `.reqnctapercluster`
    pub reqnctapercluster: Option<[u32; 3]>,
    /// `.maxnreg`
    pub maxnreg: Option<u32>,
    /// `.minnctapersm`
    pub minnctapersm: Option<u32>,
    /// `.maxclusterrank`
    pub maxclusterrank: Option<u32>,
    /// `.explicitcluster`
    pub explicitcluster: bool,
    /// `.blocksareclusters`
    pub blocksareclusters: bool,
    /// `.attribute(.unified(a, b))`
    pub unified: Option<(u64, u64)>,
    /// Index into `Tree::funcs` of the definition, or of the last declaration.
    pub node: u32,
    /// Whether [`Function::node`] has a body.
    pub defined: bool,
    /// Whether a parameter list has an error, so that calls and other declarations are not compared with it.
    pub faulty: bool,
    /// The name in the definition or declaration.
    pub span: Span,
    /// The name in the first declaration; the function is known from there on.
    pub first: Span,
}

impl Module {
    /// The symbol of that name.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.names.get(name).copied()
    }

    /// A function.
    pub fn func(&self, id: FuncId) -> &Function {
        &self.funcs[id.0 as usize]
    }

    /// A variable.
    pub fn global(&self, id: GlobalId) -> &Global {
        &self.globals[id.0 as usize]
    }
}
