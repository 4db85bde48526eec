//! The rules between operands or instructions that a row can name.

/// Named rules that a row asks for; `check` holds their code, one file each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rule {
    /// `mov`: packing and unpacking of vectors, addresses of variables, labels and functions.
    MovOperand,
    /// `st.param`, `ld.param`: which parameter may be read or written where.
    ParamWindow,
    /// `call`: arguments against the callee's signature or prototype.
    CallSignature,
    /// Vectors hold at most 128 bits in all, or, in generic or global memory, 256 bits as `.v8.b32` or `.v4.b64`.
    VectorWidth,
    /// Vectors hold at most 128 bits in all.
    NarrowVector,
    /// A vector is written in braces, not as the name of a register declared as a vector.
    BracedVector,
    /// Cache hints, eviction priorities and prefetch sizes are for generic and global addresses.
    GlobalHint,
    /// An L2 eviction priority needs an access of 256 bits.
    WideEviction,
    /// `cp.async`: a constant `src-size` is at most `cp-size`.
    CopySourceSize,
    /// `cvta`: generic addresses have the bits that `.address_size` says.
    GenericWidth,
    /// Without a space word the address is generic, but a variable that is named must lie in `.shared`.
    SharedVariable,
    /// The destination must be `_`: an arrival at another CTA's barrier has no state.
    SinkOnly,
    /// `mma` with block scaling: of a constant selector `{byte-id, thread-id}` the byte is 0 to 3 with `.scale_vec::1X` (the
    /// default of `.kind::mxf8f6f4`), 0 or 2 with `::2X`, 0 with `::4X`; the thread is 0 or 1 for A, 0 to 3 for B.
    ScaleSelector,
    /// `alloca`: the alignment is a power of two, at most 2^23.
    StackAlignment,
    /// A register as a handle of a texture, sampler or surface needs PTX ISA 3.1 and `sm_20`.
    HandleRegister,
    /// A predicate after `|` (is the texel resident?) needs PTX ISA 7.1 and `sm_60`.
    ResidentPredicate,
    /// `tex`: coordinates in a vector of fewer than four elements came with PTX ISA 1.2.
    ShortCoordinates,
    /// No sampler is named: the module must be in unified texturing mode.
    UnifiedMode,
    /// A sampler is named: the module must be in independent texturing mode.
    IndependentMode,
    /// `tensormap.replace`: `.elemtype` 13 to 15 need PTX ISA 8.7 and `sm_100` or later families, `.swizzle_mode` 4 needs 8.8
    /// and `sm_103a`.
    TensorMapValue,
    /// `createpolicy.fractional`: the fraction is greater than 0 and at most 1.
    PolicyFraction,
    /// `createpolicy.range`: the primary range is no larger than the whole.
    PolicyRange,
    /// `vmad`: the product is negated when exactly one of `a` and `b` is; not both the product and `c` may be negated.
    VmadNegation,
}
