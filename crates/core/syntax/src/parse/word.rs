//! The dotted keywords of the grammar (section 4.3.1), and common substitutes from other languages.

/// What a dotted word begins or belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// `.version`, `.target`, `.address_size`
    Head,
    /// `.extern`, `.visible`, `.weak`, `.common`
    Linkage,
    /// A state space.
    Space,
    /// A type, opaque ones included.
    Type,
    /// `.v2`, `.v4`
    Vector,
    Align,
    Attribute,
    Ptr,
    Entry,
    Func,
    Alias,
    Pragma,
    File,
    Section,
    Loc,
    CallPrototype,
    CallTargets,
    BranchTargets,
    /// Between the parameters and the body of a kernel.
    Tuning,
    /// `.noreturn`, `.abi_preserve`, `.abi_preserve_control`: of a function or a prototype.
    FuncNote,
    /// `.language` (PTX 9.2): of both.
    Language,
    Unknown,
}

/// Classifies a dotted word.
pub(super) fn classify(word: &str) -> Word {
    match word {
        ".reg" | ".param" | ".local" | ".shared" | ".global" | ".const" | ".tex" => Word::Space,
        ".b8" | ".b16" | ".b32" | ".b64" | ".b128" | ".u8" | ".u16" | ".u32" | ".u64" | ".s8" | ".s16" | ".s32"
        | ".s64" | ".f16" | ".f16x2" | ".f32" | ".f64" | ".bf16" | ".bf16x2" | ".tf32" | ".e4m3" | ".e5m2"
        | ".e4m3x2" | ".e5m2x2" | ".e3m2x2" | ".e2m3x2" | ".e2m1x2" | ".ue8m0x2" | ".s2f6x2" | ".e4m3x4"
        | ".e5m2x4" | ".e3m2x4" | ".e2m3x4" | ".e2m1x4" | ".u16x2" | ".s16x2" | ".f32x2" | ".pred" | ".texref"
        | ".samplerref" | ".surfref" => Word::Type,
        ".v2" | ".v4" => Word::Vector,
        ".loc" | ".loc_intermediate" => Word::Loc,
        ".align" => Word::Align,
        ".pragma" => Word::Pragma,
        ".visible" | ".extern" | ".weak" | ".common" => Word::Linkage,
        ".entry" => Word::Entry,
        ".func" => Word::Func,
        ".ptr" => Word::Ptr,
        ".attribute" => Word::Attribute,
        ".callprototype" => Word::CallPrototype,
        ".calltargets" => Word::CallTargets,
        ".branchtargets" => Word::BranchTargets,
        ".alias" => Word::Alias,
        ".file" => Word::File,
        ".section" => Word::Section,
        ".version" | ".target" | ".address_size" => Word::Head,
        ".maxntid" | ".reqntid" | ".minnctapersm" | ".maxnctapersm" | ".maxnreg" | ".maxclusterrank"
        | ".minperctamemory" | ".local_maxnreg" | ".explicitcluster" | ".reqnctapercluster" | ".blocksareclusters" => {
            Word::Tuning
        }
        ".noreturn" | ".abi_preserve" | ".abi_preserve_control" => Word::FuncNote,
        ".language" => Word::Language,
        _ => Word::Unknown,
    }
}

/// Every directive, for suggestions.
const DIRECTIVES: &[&str] = &[
    ".abi_preserve",
    ".abi_preserve_control",
    ".address_size",
    ".alias",
    ".align",
    ".attribute",
    ".blocksareclusters",
    ".branchtargets",
    ".callprototype",
    ".calltargets",
    ".common",
    ".const",
    ".entry",
    ".explicitcluster",
    ".extern",
    ".file",
    ".func",
    ".global",
    ".language",
    ".loc",
    ".loc_intermediate",
    ".local",
    ".local_maxnreg",
    ".maxclusterrank",
    ".maxnctapersm",
    ".maxnreg",
    ".maxntid",
    ".minnctapersm",
    ".minperctamemory",
    ".noreturn",
    ".param",
    ".pragma",
    ".ptr",
    ".reg",
    ".reqnctapercluster",
    ".reqntid",
    ".section",
    ".shared",
    ".target",
    ".tex",
    ".version",
    ".visible",
    ".weak",
];

/// The directive that was probably meant.
pub(super) fn suggest(word: &str) -> Option<&'static str> {
    // Words of CUDA C++, LLVM and other assemblers, which no distance of letters finds.
    let known = match word {
        ".maxthreads" | ".maxthreadsperblock" | ".launch_bounds" | ".maxntidx" => ".maxntid",
        ".reqthreads" | ".reqntidx" | ".blockdim" => ".reqntid",
        ".maxregs" | ".maxrregcount" => ".maxnreg",
        ".minblocks" | ".minblockspermultiprocessor" | ".minnctas" => ".minnctapersm",
        ".cluster_dims" | ".reqcluster" => ".reqnctapercluster",
        ".kernel" | ".kern" => ".entry",
        ".function" | ".device" => ".func",
        ".globl" | ".public" | ".export" => ".visible",
        ".import" | ".external" => ".extern",
        ".register" => ".reg",
        ".constant" => ".const",
        ".smem" => ".shared",
        ".parameter" | ".arg" => ".param",
        ".arch" => ".target",
        _ => return crate::diag::nearest(word, DIRECTIVES.iter().copied()),
    };
    Some(known)
}
