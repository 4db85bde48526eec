//! Instructions of the fifth generation of tensor cores (manual, section 9.7.16).
//!
//! Tensor memory is addressed by 32 bits in brackets; shared memory through 64-bit descriptors. All instructions of a kernel
//! must name the same `.cta_group`.

use super::target::*;
use crate::{Effect::Warp, Mod as M, Type::*, Var::T, *};

static CTA_GROUP: Class = Class::new("CTA group", &[M::CtaGroup1, M::CtaGroup2]);
static OPT_SHARED_CTA: Class = Class::new("state space", &[M::SharedCta]);
static OPT_SHARED_CLUSTER: Class = Class::new("state space", &[M::SharedCluster]);
static MULTICAST: Class = Class::new("multicast", &[M::MulticastCluster, M::MulticastCluster16b, M::MulticastCluster32b]);

/// A tensor-memory address.
const fn tmem(name: &'static str) -> Opnd {
    operand(name, Role::Addr, Ty::Is(U32))
}
/// The same for products: ptxas requires `.b32` registers.
const fn matrix(name: &'static str) -> Opnd {
    operand(name, Role::Addr, Ty::Untyped(B32))
}
const fn desc(name: &'static str) -> Opnd {
    src(Ty::Is(U64)).named(name)
}

static COLUMNS: &[i64] = &[32, 64, 128, 256, 512];
static EXCLUSIVE: Class = Class::new("sharing", &[M::Exclusive]);
static ALLOC: Rows = rows("9.7.16.7.1", &[
    form(&[one(M::Alloc), req(&CTA_GROUP), one(M::Sync), one(M::Aligned), opt(&EXCLUSIVE), opt(&OPT_SHARED_CTA), T.of(&[B32])], &[addr().named("dst"), src(Ty::Is(U32)).named("nCols").values(COLUMNS)]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::Dealloc), req(&CTA_GROUP), one(M::Sync), one(M::Aligned), opt(&EXCLUSIVE), T.of(&[B32])],                    &[src(Ty::Is(U32)).named("taddr"), src(Ty::Is(U32)).named("nCols").values(COLUMNS)]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::RelinquishAllocPermit), req(&CTA_GROUP), one(M::Sync), one(M::Aligned)],                    &[]).fixed(1).ptx(8, 6).targets(F100),
]);

static S64: Class = Class::new("shape", &[M::S16x64b, M::S32x32b]);
static X1_TO_128: Class = Class::new("repetitions", &[M::X1, M::X2, M::X4, M::X8, M::X16, M::X32, M::X64, M::X128]);
static X1_TO_64: Class = Class::new("repetitions", &[M::X1, M::X2, M::X4, M::X8, M::X16, M::X32, M::X64]);
static X1_TO_32: Class = Class::new("repetitions", &[M::X1, M::X2, M::X4, M::X8, M::X16, M::X32]);
static X2_TO_128: Class = Class::new("repetitions", &[M::X2, M::X4, M::X8, M::X16, M::X32, M::X64, M::X128]);
static PACK: Class = Class::new("packing", &[M::Pack16b]);
static UNPACK: Class = Class::new("unpacking", &[M::Unpack16b]);
static MIN_MAX: Class = Class::new("reduction", &[M::Min, M::Max]);
static ABS: Class = Class::new("absolute value", &[M::Abs]);
static NAN: Class = Class::new("NaN propagation", &[M::PropagateNan]);

/// Registers of a lane: those of the shape, times the repetitions.
static REGS: &[(M, u8)] = &[
    (M::S16x128b, 2), (M::S16x256b, 4), (M::X2, 2), (M::X4, 4), (M::X8, 8), (M::X16, 16), (M::X32, 32), (M::X64, 64), (M::X128, 128),
];
const fn loaded(ty: Type) -> Opnd {
    dst(Ty::Is(ty)).named("r").count(Count::Table(REGS))
}
const fn stored() -> Opnd {
    src(Ty::Is(B32)).named("r").count(Count::Table(REGS))
}
const fn split() -> Opnd {
    imm(Ty::Is(S32)).named("immHalfSplitoff")
}

static LD: Rows = rows("9.7.16.8.3", &[
    form(&[one(M::Ld), one(M::Sync), one(M::Aligned), req(&S64), req(&X1_TO_128), opt(&PACK), T.of(&[B32])],             &[loaded(B32), tmem("taddr")]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::Ld), one(M::Sync), one(M::Aligned), one(M::S16x128b), req(&X1_TO_64), opt(&PACK), T.of(&[B32])],       &[loaded(B32), tmem("taddr")]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::Ld), one(M::Sync), one(M::Aligned), one(M::S16x256b), req(&X1_TO_32), opt(&PACK), T.of(&[B32])],       &[loaded(B32), tmem("taddr")]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::Ld), one(M::Sync), one(M::Aligned), one(M::S16x32bx2), req(&X1_TO_128), opt(&PACK), T.of(&[B32])],     &[loaded(B32), tmem("taddr"), split()]).fixed(1).ptx(8, 6).targets(F100),
]);
/// `sm_100` itself lacks it.
static REDUCING: &[Target] = &[Target::family(103), Target::family(110)];
static LD_RED: Rows = rows("9.7.16.8.3", &[
    form(&[one(M::Ld), one(M::Red), one(M::Sync), one(M::Aligned), one(M::S32x32b), req(&X2_TO_128), req(&MIN_MAX), opt(&ABS), opt(&NAN), T.of(&[F32])],   &[loaded(F32), d(T).named("redval"), tmem("taddr")]).fixed(2).ptx(8, 8).targets(REDUCING),
    form(&[one(M::Ld), one(M::Red), one(M::Sync), one(M::Aligned), one(M::S32x32b), req(&X2_TO_128), req(&MIN_MAX), T.of(&[U32, S32])],                    &[loaded(B32), d(T).named("redval"), tmem("taddr")]).fixed(2).ptx(8, 8).targets(REDUCING),
    form(&[one(M::Ld), one(M::Red), one(M::Sync), one(M::Aligned), one(M::S16x32bx2), req(&X2_TO_128), req(&MIN_MAX), opt(&ABS), opt(&NAN), T.of(&[F32])], &[loaded(F32), d(T).named("redval"), tmem("taddr"), split()]).fixed(2).ptx(8, 8).targets(REDUCING),
    form(&[one(M::Ld), one(M::Red), one(M::Sync), one(M::Aligned), one(M::S16x32bx2), req(&X2_TO_128), req(&MIN_MAX), T.of(&[U32, S32])],                  &[loaded(B32), d(T).named("redval"), tmem("taddr"), split()]).fixed(2).ptx(8, 8).targets(REDUCING),
]);
/// Loads that keep two of every four elements (PTX ISA 9.4, section 9.7.18.8).
static LD_SPARSE: Rows = rows("9.7.18.8.3", &[
    form(&[one(M::Ld), one(M::Spcompress), one(M::Sync), one(M::Aligned), one(M::S32x32b), req(&X4_TO_128), req(&MIN_MAX), one(M::Sp2to4), opt(&ABS), T.of(&[F32]), Var::U.of(&[B2])],
         &[indices(), kept(), tmem("taddr")]).fixed(2).ptx(9, 4).targets(A107),
    form(&[one(M::Ld), one(M::Red), one(M::Spcompress), one(M::Sync), one(M::Aligned), one(M::S32x32b), req(&X4_TO_128), req(&MIN_MAX), one(M::Sp2to4), opt(&ABS), opt(&NAN), T.of(&[F32]), Var::U.of(&[B2])],
         &[indices(), kept(), d(T).named("redval"), tmem("taddr")]).fixed(3).ptx(9, 4).targets(A107),
]);
static A107: &[Target] = &[Target::arch(107)];
static X4_TO_128: Class = Class::new("repetitions", &[M::X4, M::X8, M::X16, M::X32, M::X64, M::X128]);
const fn indices() -> Opnd {
    static COUNT: &[(M, u8)] = &[(M::X64, 2), (M::X128, 4)];
    dst(Ty::Is(B32)).named("mdata").count(Count::Table(COUNT))
}
const fn kept() -> Opnd {
    static COUNT: &[(M, u8)] = &[(M::X4, 2), (M::X8, 4), (M::X16, 8), (M::X32, 16), (M::X64, 32), (M::X128, 64)];
    dst(Ty::Is(B32)).named("cdata").count(Count::Table(COUNT))
}
static ST: Rows = rows("9.7.16.8.4", &[
    form(&[one(M::St), one(M::Sync), one(M::Aligned), req(&S64), req(&X1_TO_128), opt(&UNPACK), T.of(&[B32])],           &[tmem("taddr"), stored()]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::St), one(M::Sync), one(M::Aligned), one(M::S16x128b), req(&X1_TO_64), opt(&UNPACK), T.of(&[B32])],     &[tmem("taddr"), stored()]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::St), one(M::Sync), one(M::Aligned), one(M::S16x256b), req(&X1_TO_32), opt(&UNPACK), T.of(&[B32])],     &[tmem("taddr"), stored()]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::St), one(M::Sync), one(M::Aligned), one(M::S16x32bx2), req(&X1_TO_128), opt(&UNPACK), T.of(&[B32])],   &[tmem("taddr"), split(), stored()]).fixed(1).ptx(8, 6).targets(F100),
]);
static WAIT: Rows = rows("9.7.16.8.5", &[
    form(&[one(M::WaitLd), one(M::Sync), one(M::Aligned)], &[]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::WaitSt), one(M::Sync), one(M::Aligned)], &[]).fixed(1).ptx(8, 6).targets(F100),
]);

static BROAD: Class = Class::new("shape", &[M::S128x256b, M::S4x256b, M::S128x128b]);
static HALVES: Class = Class::new("multicast", &[M::Warpx20213, M::Warpx20123]);
static PACKED: Class = Class::new("source format", &[M::B6x16P32, M::B4x16P64]);
static CP: Rows = rows("9.7.16.9.2", &[
    form(&[one(M::Cp), req(&CTA_GROUP), req(&BROAD)],                                                        &[tmem("taddr"), desc("s-desc")]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::Cp), req(&CTA_GROUP), req(&BROAD), one(M::B8x16), req(&PACKED)],                           &[tmem("taddr"), desc("s-desc")]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::Cp), req(&CTA_GROUP), one(M::S64x128b), req(&HALVES)],                                     &[tmem("taddr"), desc("s-desc")]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::Cp), req(&CTA_GROUP), one(M::S64x128b), req(&HALVES), one(M::B8x16), req(&PACKED)],        &[tmem("taddr"), desc("s-desc")]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::Cp), req(&CTA_GROUP), one(M::S32x128b), one(M::Warpx4)],                                   &[tmem("taddr"), desc("s-desc")]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::Cp), req(&CTA_GROUP), one(M::S32x128b), one(M::Warpx4), one(M::B8x16), req(&PACKED)],      &[tmem("taddr"), desc("s-desc")]).fixed(1).ptx(8, 6).targets(F100),
]);
static SHIFT: Rows = rows("9.7.16.9.3", &[
    form(&[one(M::Shift), req(&CTA_GROUP), one(M::Down)], &[tmem("taddr")]).fixed(1).ptx(8, 6).targets(A100),
]);
static FENCE: Rows = rows("9.7.16.11.1", &[
    form(&[one(M::FenceBeforeThreadSync)], &[]).fixed(1).ptx(8, 6).targets(F100),
    form(&[one(M::FenceAfterThreadSync)],  &[]).fixed(1).ptx(8, 6).targets(F100),
]);
static RESTRICT: Class = Class::new("restriction", &[M::SyncRestrictReadMmaA]);
static COMMIT: Rows = rows("9.7.16.12.1", &[
    form(&[one(M::Commit), req(&CTA_GROUP), one(M::MbarrierArriveOne), opt(&RESTRICT), opt(&OPT_SHARED_CLUSTER), opt(&MULTICAST), T.of(&[B64])],
         &[addr().named("mbar"), src(Ty::Is(U16)).named("ctaMask").when(&[M::MulticastCluster, M::MulticastCluster16b]),
           src(Ty::Is(U32)).named("ctaMask").when(&[M::MulticastCluster32b])]).fixed(1).ptx(8, 6).targets(F100),
]);

/// Architectures with `tcgen05.shift` and sparse `.kind::mxf4`; those with `.kind::i8`.
static A100: &[Target] = ARCHS;
static A100_I8: &[Target] = &[Target::arch(100), Target::arch(110)];

static FLOAT_KINDS: Class = Class::new("kind", &[M::KindF16, M::KindTf32, M::KindF8f6f4, M::KindTi16]);
static SCALED_KINDS: Class = Class::new("kind", &[M::KindF16, M::KindTf32]);
static FILL_A: Class = Class::new("collector usage", &[M::CollectorAFill, M::CollectorAUse, M::CollectorALastuse, M::CollectorADiscard]);
static KEEP_A: Class = Class::new("collector usage", &[M::CollectorALastuse, M::CollectorADiscard]);
static FILL_B: Class = Class::new("collector usage", &[
    M::CollectorB0Fill, M::CollectorB0Use, M::CollectorB0Lastuse, M::CollectorB0Discard, M::CollectorB1Fill, M::CollectorB1Use, M::CollectorB1Lastuse, M::CollectorB1Discard,
    M::CollectorB2Fill, M::CollectorB2Use, M::CollectorB2Lastuse, M::CollectorB2Discard, M::CollectorB3Fill, M::CollectorB3Use, M::CollectorB3Lastuse, M::CollectorB3Discard,
]);
static REUSE_B: Class = Class::new("collector usage", &[M::CollectorBFill, M::CollectorBUse, M::CollectorBLastuse, M::CollectorBDiscard]);
static MXF8_SIZE: Class = Class::new("scale vector size", &[M::ScaleVec1X, M::Block32]);
static MXF4_SIZE: Class = Class::new("scale vector size", &[M::ScaleVec2X, M::Block32]);
static NVF4_SIZE: Class = Class::new("scale vector size", &[M::ScaleVec2X, M::ScaleVec4X, M::Block16, M::Block32]);

/// Lanes of D that are left alone: a mask of 128 bits, for each CTA of the group.
static LANES: &[(M, u8)] = &[(M::CtaGroup1, 4), (M::CtaGroup2, 8)];
const fn lanes() -> Opnd {
    src(Ty::Is(B32)).named("disable-output-lane").count(Count::Table(LANES))
}
const fn enable() -> Opnd {
    p_in().named("enable-input-d")
}
const fn scale_input() -> Opnd {
    imm(Ty::Is(U32)).named("scale-input-d").range(0, 15)
}
const fn idesc() -> Opnd {
    src(Ty::Is(U32)).named("idesc")
}
const fn zero_mask() -> Opnd {
    src(Ty::Is(U64)).named("zero-column-mask-desc").opt()
}

/// `.block16` and `.block32` came later than `.scale_vec`, which families lack.
static BLOCKS: &[Need] = &[
    m(M::Block16, 8, 8, 0), m(M::Block32, 8, 8, 0), m(M::ScaleVec1X, 8, 6, 0).targets(ARCHS), m(M::ScaleVec2X, 8, 6, 0).targets(ARCHS),
    m(M::ScaleVec4X, 8, 6, 0).targets(ARCHS),
];
static ARCHS: &[Target] = &[Target::arch(100), Target::arch(103), Target::arch(107), Target::arch(110)];

/// Dense or sparse (`[$sp]`, with `[$meta]` before the instruction descriptor) products, A from a descriptor or from tensor
/// memory.
macro_rules! mma {
    ($name:ident, $section:literal, [$($sp:expr)?], [$($meta:expr)?], $fixed:literal, $fours:expr) => {
        static $name: Rows = rows($section, &[
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), req(&FLOAT_KINDS), opt(&FILL_A), opt(&REUSE_B)],                        &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), $($meta,)? idesc(), enable()]).fixed($fixed).ptx(8, 6).targets(F100),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), req(&FLOAT_KINDS), opt(&FILL_A), opt(&REUSE_B)],                        &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), $($meta,)? idesc(), lanes(), enable()]).fixed($fixed).ptx(8, 6).targets(F100),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), req(&FLOAT_KINDS), opt(&FILL_A), opt(&REUSE_B)],                        &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), enable()]).fixed($fixed).ptx(8, 6).targets(F100),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), req(&FLOAT_KINDS), opt(&FILL_A), opt(&REUSE_B)],                        &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), lanes(), enable()]).fixed($fixed).ptx(8, 6).targets(F100),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), req(&FLOAT_KINDS), one(M::Ashift), opt(&KEEP_A), opt(&REUSE_B)],        &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), enable()]).fixed($fixed).ptx(8, 6).targets(F100),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), req(&FLOAT_KINDS), one(M::Ashift), opt(&KEEP_A), opt(&REUSE_B)],        &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), lanes(), enable()]).fixed($fixed).ptx(8, 6).targets(F100),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), req(&SCALED_KINDS), opt(&FILL_A), opt(&REUSE_B)],                       &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), $($meta,)? idesc(), enable(), scale_input()]).fixed($fixed).ptx(8, 6).targets(F_SCALE_D),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), req(&SCALED_KINDS), opt(&FILL_A), opt(&REUSE_B)],                       &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), $($meta,)? idesc(), lanes(), enable(), scale_input()]).fixed($fixed).ptx(8, 6).targets(F_SCALE_D),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), req(&SCALED_KINDS), opt(&FILL_A), opt(&REUSE_B)],                       &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), enable(), scale_input()]).fixed($fixed).ptx(8, 6).targets(F_SCALE_D),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), req(&SCALED_KINDS), opt(&FILL_A), opt(&REUSE_B)],                       &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), lanes(), enable(), scale_input()]).fixed($fixed).ptx(8, 6).targets(F_SCALE_D),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), req(&SCALED_KINDS), one(M::Ashift), opt(&KEEP_A), opt(&REUSE_B)],       &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), enable(), scale_input()]).fixed($fixed).ptx(8, 6).targets(F_SCALE_D),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), req(&SCALED_KINDS), one(M::Ashift), opt(&KEEP_A), opt(&REUSE_B)],       &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), lanes(), enable(), scale_input()]).fixed($fixed).ptx(8, 6).targets(F_SCALE_D),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), one(M::KindI8), opt(&FILL_A), opt(&REUSE_B)],                           &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), $($meta,)? idesc(), enable()]).fixed($fixed).ptx(8, 6).targets(A100_I8),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), one(M::KindI8), opt(&FILL_A), opt(&REUSE_B)],                           &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), $($meta,)? idesc(), lanes(), enable()]).fixed($fixed).ptx(8, 6).targets(A100_I8),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), one(M::KindI8), opt(&FILL_A), opt(&REUSE_B)],                           &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), enable()]).fixed($fixed).ptx(8, 6).targets(A100_I8),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), one(M::KindI8), opt(&FILL_A), opt(&REUSE_B)],                           &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), lanes(), enable()]).fixed($fixed).ptx(8, 6).targets(A100_I8),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), one(M::KindI8), one(M::Ashift), opt(&KEEP_A), opt(&REUSE_B)],           &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), enable()]).fixed($fixed).ptx(8, 6).targets(A100_I8),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), one(M::KindI8), one(M::Ashift), opt(&KEEP_A), opt(&REUSE_B)],           &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), lanes(), enable()]).fixed($fixed).ptx(8, 6).targets(A100_I8),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), one(M::KindMxf8f6f4), one(M::BlockScale), opt(&MXF8_SIZE), opt(&FILL_A), opt(&REUSE_B)], &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), $($meta,)? idesc(), matrix("scale-A-tmem"), matrix("scale-B-tmem"), enable()]).fixed($fixed).ptx(8, 6).targets(F100).only(BLOCKS),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), one(M::KindMxf8f6f4), one(M::BlockScale), opt(&MXF8_SIZE), opt(&FILL_A), opt(&REUSE_B)], &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), matrix("scale-A-tmem"), matrix("scale-B-tmem"), enable()]).fixed($fixed).ptx(8, 6).targets(F100).only(BLOCKS),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), one(M::KindMxf4), one(M::BlockScale), opt(&MXF4_SIZE), opt(&FILL_A), opt(&REUSE_B)],     &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), $($meta,)? idesc(), matrix("scale-A-tmem"), matrix("scale-B-tmem"), enable()]).fixed($fixed).ptx(8, 6).targets($fours).only(BLOCKS),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), one(M::KindMxf4), one(M::BlockScale), opt(&MXF4_SIZE), opt(&FILL_A), opt(&REUSE_B)],     &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), matrix("scale-A-tmem"), matrix("scale-B-tmem"), enable()]).fixed($fixed).ptx(8, 6).targets($fours).only(BLOCKS),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), one(M::KindMxf4nvf4), one(M::BlockScale), req(&NVF4_SIZE), opt(&FILL_A), opt(&REUSE_B)], &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), $($meta,)? idesc(), matrix("scale-A-tmem"), matrix("scale-B-tmem"), enable()]).fixed($fixed).ptx(8, 7).targets($fours).only(BLOCKS),
            form(&[one(M::Mma), $($sp,)? req(&CTA_GROUP), one(M::KindMxf4nvf4), one(M::BlockScale), req(&NVF4_SIZE), opt(&FILL_A), opt(&REUSE_B)], &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), matrix("scale-A-tmem"), matrix("scale-B-tmem"), enable()]).fixed($fixed).ptx(8, 7).targets($fours).only(BLOCKS),
        ]);
    };
}
/// Targets that scale D on the way in.
static F_SCALE_D: &[Target] = &[Target::family(100)];
mma!(MMA, "9.7.16.10.9.1", [], [], 1, F100);
mma!(MMA_SP, "9.7.16.10.9.2", [one(M::Sp)], [matrix("sp-meta-tmem")], 1, A100);
/// Products whose B is looked up in a table of tensor memory (PTX ISA 9.4, section 9.7.18.10).
static MMA_LUT: Rows = rows("9.7.18.10.9.1", &[
    form(&[one(M::Mma), req(&CTA_GROUP), one(M::KindF8f6f4), one(M::DecompressLutB), opt(&FILL_A), opt(&REUSE_B)], &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), matrix("lut-tmem"), idesc(), enable()]).fixed(1).ptx(9, 4).targets(F107),
    form(&[one(M::Mma), req(&CTA_GROUP), one(M::KindF8f6f4), one(M::DecompressLutB), opt(&FILL_A), opt(&REUSE_B)], &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), matrix("lut-tmem"), idesc(), lanes(), enable()]).fixed(1).ptx(9, 4).targets(F107),
    form(&[one(M::Mma), req(&CTA_GROUP), one(M::KindF8f6f4), one(M::DecompressLutB), opt(&FILL_A), opt(&REUSE_B)], &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), matrix("lut-tmem"), idesc(), enable()]).fixed(1).ptx(9, 4).targets(F107),
    form(&[one(M::Mma), req(&CTA_GROUP), one(M::KindF8f6f4), one(M::DecompressLutB), opt(&FILL_A), opt(&REUSE_B)], &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), matrix("lut-tmem"), idesc(), lanes(), enable()]).fixed(1).ptx(9, 4).targets(F107),
    form(&[one(M::Mma), req(&CTA_GROUP), one(M::KindMxf8f6f4), one(M::BlockScale), one(M::DecompressLutB), opt(&MXF8_SIZE), opt(&FILL_A), opt(&REUSE_B)], &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), matrix("lut-tmem"), idesc(), matrix("scale-A-tmem"), matrix("scale-B-tmem"), enable()]).fixed(1).ptx(9, 4).targets(F107).only(BLOCKS),
    form(&[one(M::Mma), req(&CTA_GROUP), one(M::KindMxf8f6f4), one(M::BlockScale), one(M::DecompressLutB), opt(&MXF8_SIZE), opt(&FILL_A), opt(&REUSE_B)], &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), matrix("lut-tmem"), idesc(), matrix("scale-A-tmem"), matrix("scale-B-tmem"), enable()]).fixed(1).ptx(9, 4).targets(F107).only(BLOCKS),
]);

/// Weight-stationary products.
macro_rules! mma_ws {
    ($name:ident, $section:literal, [$($sp:expr)?], [$($meta:expr)?], $fixed:literal) => {
        static $name: Rows = rows($section, &[
            form(&[one(M::Mma), one(M::Ws), $($sp,)? one(M::CtaGroup1), req(&FLOAT_KINDS), opt(&FILL_B)], &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), $($meta,)? idesc(), enable(), zero_mask()]).fixed($fixed).ptx(8, 6).targets(F100),
            form(&[one(M::Mma), one(M::Ws), $($sp,)? one(M::CtaGroup1), req(&FLOAT_KINDS), opt(&FILL_B)], &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), enable(), zero_mask()]).fixed($fixed).ptx(8, 6).targets(F100),
            form(&[one(M::Mma), one(M::Ws), $($sp,)? one(M::CtaGroup1), one(M::KindI8), opt(&FILL_B)],    &[matrix("d-tmem"), desc("a-desc"), desc("b-desc"), $($meta,)? idesc(), enable(), zero_mask()]).fixed($fixed).ptx(8, 6).targets(A100_I8),
            form(&[one(M::Mma), one(M::Ws), $($sp,)? one(M::CtaGroup1), one(M::KindI8), opt(&FILL_B)],    &[matrix("d-tmem"), matrix("a-tmem"), desc("b-desc"), $($meta,)? idesc(), enable(), zero_mask()]).fixed($fixed).ptx(8, 6).targets(A100_I8),
        ]);
    };
}
mma_ws!(MMA_WS, "9.7.16.10.9.3", [], [], 2);
mma_ws!(MMA_WS_SP, "9.7.16.10.9.4", [one(M::Sp)], [matrix("sp-meta-tmem")], 2);

pub static TCGEN05: Op = joined!("tcgen05", Warp, "Allocate, move and multiply in tensor memory.",
    ALLOC, LD, LD_RED, LD_SPARSE, ST, WAIT, CP, SHIFT, MMA, MMA_SP, MMA_LUT, MMA_WS, MMA_WS_SP, FENCE, COMMIT);
