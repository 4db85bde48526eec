//! Modifier words: everything after a dot on an instruction that is not a type.

use crate::Type;

/// One dotted word of a mnemonic: a type or a modifier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Word {
    /// `.s32`
    Type(Type),
    /// `.rn`
    Mod(Mod),
}

impl Word {
    /// The word of that name (no dot), if PTX has one anywhere.
    pub fn from_name(name: &str) -> Option<Word> {
        Type::from_name(name).map(Word::Type).or_else(|| Mod::from_name(name).map(Word::Mod))
    }

    /// The name without its dot.
    pub fn name(self) -> &'static str {
        match self {
            Word::Type(t) => t.name(),
            Word::Mod(m) => m.name(),
        }
    }
}

/// A class of modifiers of which one may (or must) be chosen, in the manual's words: "rounding", "scope".
#[derive(PartialEq, Eq, Debug)]
pub struct Class {
    /// What messages call it.
    pub name: &'static str,
    /// The choices, in the manual's order.
    pub of: &'static [Mod],
}

impl Class {
    /// A class from its name and choices; an empty one is a mistake in the table and does not compile.
    pub const fn new(name: &'static str, of: &'static [Mod]) -> Class {
        assert!(!of.is_empty(), "a class has at least one modifier");
        Class { name, of }
    }
}

macro_rules! modifiers {
    ($($variant:ident = $name:literal,)*) => {
        /// A modifier word of the instruction set, one variant per spelling (`::` and all).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u16)]
        pub enum Mod { $(#[doc = concat!("`.", $name, "`")] $variant,)* }

        impl Mod {
            /// Every modifier, in declaration order.
            pub const ALL: &'static [Mod] = &[$(Mod::$variant,)*];

            /// The spelling without its dot.
            pub const fn name(self) -> &'static str { match self { $(Mod::$variant => $name,)* } }

            /// The modifier of that spelling (no dot).
            pub fn from_name(name: &str) -> Option<Mod> { match name { $($name => Some(Mod::$variant),)* _ => None } }
        }
    };
}

modifiers! {
    // rounding, flushing, saturation, precision
    Rn = "rn", Rz = "rz", Rm = "rm", Rp = "rp", Rna = "rna", Rs = "rs", Rni = "rni", Rzi = "rzi", Rmi = "rmi", Rpi = "rpi",
    Ftz = "ftz", Sat = "sat", Satfinite = "satfinite", Relu = "relu", Approx = "approx", Full = "full",
    // integer
    Hi = "hi", Lo = "lo", Wide = "wide", Cc = "cc", Wrap = "wrap", Clamp = "clamp", L = "l", R = "r", Shiftamt = "shiftamt",
    F4e = "f4e", B4e = "b4e", Rc8 = "rc8", Ecl = "ecl", Ecr = "ecr", Rc16 = "rc16",
    // comparison, logic, tests
    Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge", Ls = "ls", Hs = "hs",
    Equ = "equ", Neu = "neu", Ltu = "ltu", Leu = "leu", Gtu = "gtu", Geu = "geu", Num = "num", Nan = "nan",
    And = "and", Or = "or", Xor = "xor", Finite = "finite", Infinite = "infinite", Number = "number", Notanumber = "notanumber",
    Normal = "normal", Subnormal = "subnormal", XorsignAbs = "xorsign", Abs = "abs",
    // spaces
    Const = "const", Global = "global", Local = "local", Param = "param", Shared = "shared", Reg = "reg",
    ParamEntry = "param::entry", ParamFunc = "param::func", SharedCta = "shared::cta", SharedCluster = "shared::cluster",
    // vectors
    V2 = "v2", V4 = "v4", V8 = "v8",
    // memory ordering, scopes, caches
    Weak = "weak", Relaxed = "relaxed", Acquire = "acquire", Release = "release", AcqRel = "acq_rel", Sc = "sc", Volatile = "volatile",
    Mmio = "mmio", Cta = "cta", Cluster = "cluster", Gpu = "gpu", Sys = "sys", Gl = "gl",
    Ca = "ca", Cg = "cg", Cs = "cs", Lu = "lu", Cv = "cv", Wb = "wb", Wt = "wt", Nc = "nc",
    // control, warps, barriers
    Uni = "uni", Idx = "idx", Sync = "sync", Arrive = "arrive", Red = "red", Aligned = "aligned", Warp = "warp",
    All = "all", Any = "any", Ballot = "ballot", Up = "up", Down = "down", Bfly = "bfly",
    Popc = "popc", Add = "add", Min = "min", Max = "max", Inc = "inc", Dec = "dec", Exch = "exch", Cas = "cas", Noftz = "noftz",
    // cvta
    To = "to",
}
