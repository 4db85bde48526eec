//! `mma` and `mma.sp`, `ldmatrix`, `stmatrix`, `movmatrix` (manual, sections 9.7.14.3, 9.7.14.5 and 9.7.14.6).
//!
//! A fragment is in braces even if it is a single register. Register types are those that ptxas accepts: `.f16` fragments are
//! `.b32` or `.f16x2`; `.bf16`, `.tf32` and block-scaled ones `.b32` only; other small elements take any 32 bits. Constants may
//! appear in the fragments that are read, `_` in the one that is written.

use super::{class::*, target::*};
use crate::{Effect::Warp, Mod as M, Type::*, Var::{T, U, V, W, X}, *};

static SHARED: Class = Class::new("state space", &[M::Shared, M::SharedCta]);
static LAYOUT: Class = Class::new("layout", &[M::Row, M::Col]);
static SATFINITE: Class = Class::new("saturation", &[M::Satfinite]);
static BIT_OP: Class = Class::new("bit operation", &[M::And, M::Xor]);
static TRANS: Class = Class::new("transposition", &[M::Trans]);
static NUM: Class = Class::new("number of matrices", &[M::X1, M::X2, M::X4]);
static NUM2: Class = Class::new("number of matrices", &[M::X1, M::X2]);
static PACKED: Class = Class::new("source format", &[M::B6x16P32, M::B4x16P64]);
static SP: Class = Class::new("sparsity", &[M::Sp, M::SpOrderedMetadata]);
static ORDERED_ONLY: Class = Class::new("sparsity", &[M::SpOrderedMetadata]);
static X1: Class = Class::new("scale vector size", &[M::ScaleVec1X]);
static X2: Class = Class::new("scale vector size", &[M::ScaleVec2X]);

static F8: &[Type] = &[E4m3, E5m2];
static F864: &[Type] = &[E4m3, E5m2, E3m2, E2m3, E2m1];
static I8: &[Type] = &[U8, S8];
static I4: &[Type] = &[U4, S4];

/// One register for each matrix.
static MATRICES: &[(M, u8)] = &[(M::X2, 2), (M::X4, 4)];
/// A matrix of 16 by 16 bytes takes two registers.
static MATRICES16: &[(M, u8)] = &[(M::M16n16, 2), (M::X2, 2)];

/// The result: `n` registers of a type.
const fn out(ty: Type, n: u8) -> Opnd {
    dst(Ty::Is(ty)).count(Count::Exactly(n)).sink()
}
/// A multiplicand or the addend.
const fn frag(name: &'static str, ty: Type, n: u8) -> Opnd {
    src(Ty::Is(ty)).named(name).count(Count::Exactly(n))
}

/// The manual has `.kind::f8f6f4` for `sm_120` only; with 8-bit types ptxas takes it on `sm_100` and `sm_110` too.
static NARROW: &[Need] = &[t(E3m2, 8, 7, 0).targets(F120), t(E2m3, 8, 7, 0).targets(F120), t(E2m1, 8, 7, 0).targets(F120)];

/// A dense form: shape, D, A, B, C with types and registers.
macro_rules! dense {
    ($shape:ident, $d:ident $dt:ident $dn:literal, $at:expr, $bt:expr, $a:ident $an:literal, $bn:literal, $c:ident $(, $extra:expr)?) => {
        form(&[one(M::Sync), one(M::Aligned), one(M::$shape), one(M::Row), one(M::Col), $($extra,)? T.of(&[$d]), U.of($at), V.of($bt), W.of(&[$c])],
             &[out($dt, $dn), frag("a", $a, $an), frag("b", $a, $bn), frag("c", $dt, $dn)])
    };
}
/// `.f64`: ptxas accepts any 64-bit registers, except in a result of four.
macro_rules! double {
    ($shape:ident, $dt:ident $dn:literal, $an:literal, $bn:literal) => {
        form(&[one(M::Sync), one(M::Aligned), one(M::$shape), one(M::Row), one(M::Col), opt(&RND), T.of(&[F64]), U.of(&[F64]), V.of(&[F64]), W.of(&[F64])],
             &[out($dt, $dn), frag("a", B64, $an), frag("b", B64, $bn), frag("c", B64, $dn)])
    };
}
/// A sparse form: as a dense one with A of half the width, its metadata `e` and the selector `f`.
macro_rules! sparse {
    ($sp:ident, $shape:ident, $d:ident $dt:ident $dn:literal, $at:expr, $bt:expr, $a:ident $an:literal, $bn:literal, $c:ident, $max:literal $(, $extra:expr)?) => {
        form(&[req(&$sp), one(M::Sync), one(M::Aligned), one(M::$shape), one(M::Row), one(M::Col), $($extra,)? T.of(&[$d]), U.of($at), V.of($bt), W.of(&[$c])],
             &[out($dt, $dn), frag("a", $a, $an), frag("b", $a, $bn), frag("c", $dt, $dn), src(Ty::Is(B32)).named("e").reg().braced(), imm(Ty::Is(U32)).named("f").range(0, $max)])

    };
}
/// Scale data and who brings it: `scale-a-data, {byte-id-a, thread-id-a}`, and for b.
macro_rules! scaled {
    ($shape:ident, $kind:ident, $size:expr, $at:expr, $st:expr, [$($front:expr),*], $an:literal, $bn:literal, [$($meta:expr),*]) => {
        form(&[$($front,)* one(M::Sync), one(M::Aligned), one(M::$shape), one(M::Row), one(M::Col), one(M::$kind), one(M::BlockScale), $size, T.of(&[F32]), U.of($at), V.of($at), W.of(&[F32]), X.of($st)],
             &[out(F32, 4), frag("a", E4m3x4, $an), frag("b", E4m3x4, $bn), frag("c", F32, 4), $($meta,)*
               src(Ty::Is(B32)).named("scale-a-data").reg().braced(), src(Ty::Is(U16)).named("{byte-id-a, thread-id-a}").count(Count::Exactly(2)),
               src(Ty::Is(B32)).named("scale-b-data").reg().braced(), src(Ty::Is(U16)).named("{byte-id-b, thread-id-b}").count(Count::Exactly(2))])
        .rules(&[Rule::ScaleSelector])
    };
}

/// `.m8n8k4` on `.f16`: four products by quads of eight lanes.
macro_rules! quad {
    ($d:ident $dt:ident $dn:literal, $c:ident $ct:ident $cn:literal) => {
        form(&[one(M::Sync), one(M::Aligned), one(M::M8n8k4), req(&LAYOUT), req(&LAYOUT), T.of(&[$d]), U.of(&[F16]), V.of(&[F16]), W.of(&[$c])],
             &[out($dt, $dn), frag("a", F16x2, 2), frag("b", F16x2, 2), frag("c", $ct, $cn)]).ptx(6, 4).sm(70)
    };
}

static FLOAT: Rows = rows("9.7.14.5.14", &[
    // ptxas refuses an `.f16` result of an `.f32` addend
    quad!(F16 F16x2 4, F16 F16x2 4),
    quad!(F32 F32 8,   F16 F16x2 4),
    quad!(F32 F32 8,   F32 F32 8),
    dense!(M16n8k8,  F16 F16x2 2, &[F16], &[F16], F16x2 2, 1, F16).ptx(6, 5).sm(75),
    dense!(M16n8k8,  F32 F32 4,   &[F16], &[F16], F16x2 2, 1, F32).ptx(6, 5).sm(75),
    dense!(M16n8k16, F16 F16x2 2, &[F16], &[F16], F16x2 4, 2, F16).ptx(7, 0).sm(80),
    dense!(M16n8k16, F32 F32 4,   &[F16], &[F16], F16x2 4, 2, F32).ptx(7, 0).sm(80),
    dense!(M16n8k8,  F32 F32 4, &[Bf16], &[Bf16], Bf16x2 2, 1, F32).ptx(7, 0).sm(80),
    dense!(M16n8k16, F32 F32 4, &[Bf16], &[Bf16], Bf16x2 4, 2, F32).ptx(7, 0).sm(80),
    dense!(M16n8k4,  F32 F32 4, &[Tf32], &[Tf32], Tf32 2, 1, F32).ptx(7, 0).sm(80),
    dense!(M16n8k8,  F32 F32 4, &[Tf32], &[Tf32], Tf32 4, 2, F32).ptx(7, 0).sm(80),
    dense!(M16n8k16, F16 F16x2 2, F8, F8, B32 2, 1, F16).ptx(8, 7).sm(89),
    dense!(M16n8k16, F32 F32 4,   F8, F8, B32 2, 1, F32).ptx(8, 7).sm(89),
    dense!(M16n8k32, F16 F16x2 2, F8, F8, B32 4, 2, F16).ptx(8, 7).sm(89),
    dense!(M16n8k32, F32 F32 4,   F8, F8, B32 4, 2, F32).ptx(8, 4).sm(89),
    dense!(M16n8k32, F16 F16x2 2, F864, F864, B32 4, 2, F16, one(M::KindF8f6f4)).ptx(8, 7).targets(F100_F120).only(NARROW),
    dense!(M16n8k32, F32 F32 4,   F864, F864, B32 4, 2, F32, one(M::KindF8f6f4)).ptx(8, 6).targets(F100_F120).only(NARROW),
    double!(M8n8k4,   B64 2, 1, 1).ptx(7, 0).sm(80),
    double!(M16n8k4,  F64 4, 2, 1).ptx(7, 8).sm(90),
    double!(M16n8k8,  F64 4, 4, 2).ptx(7, 8).sm(90),
    double!(M16n8k16, F64 4, 8, 4).ptx(7, 8).sm(90),
]);
static SCALED: Rows = rows("9.7.14.5.14", &[
    scaled!(M16n8k64, KindMxf4,     opt(&X2),           &[E2m1], &[Ue8m0], [], 4, 2, []).ptx(8, 7).targets(F120),
    scaled!(M16n8k64, KindMxf4nvf4, one(M::ScaleVec2X), &[E2m1], &[Ue8m0], [], 4, 2, []).ptx(8, 7).targets(F120),
    scaled!(M16n8k64, KindMxf4nvf4, one(M::ScaleVec4X), &[E2m1], &[Ue8m0, Ue4m3], [], 4, 2, []).ptx(8, 7).targets(F120).only(&[t(Ue8m0, 9, 1, 0)]),
    scaled!(M16n8k32, KindMxf8f6f4, opt(&X1),           F864,    &[Ue8m0], [], 4, 2, []).ptx(8, 7).targets(F120),
]);
static INTEGER: Rows = rows("9.7.14.5.14", &[
    dense!(M8n8k16,  S32 S32 2, I8, I8, B32 1, 1, S32, opt(&SATFINITE)).ptx(6, 5).sm(75),
    dense!(M16n8k16, S32 S32 4, I8, I8, B32 2, 1, S32, opt(&SATFINITE)).ptx(7, 0).sm(80),
    dense!(M16n8k32, S32 S32 4, I8, I8, B32 4, 2, S32, opt(&SATFINITE)).ptx(7, 0).sm(80),
    dense!(M8n8k32,  S32 S32 2, I4, I4, B32 1, 1, S32, opt(&SATFINITE)).ptx(6, 5).sm(75),
    dense!(M16n8k32, S32 S32 4, I4, I4, B32 2, 1, S32, opt(&SATFINITE)).ptx(7, 0).sm(80),
    dense!(M16n8k64, S32 S32 4, I4, I4, B32 4, 2, S32, opt(&SATFINITE)).ptx(7, 0).sm(80),
]);
/// The operation may be anywhere; the manual has it last.
macro_rules! bits {
    ($shape:ident, $dn:literal, $an:literal, $bn:literal) => {
        form(&[one(M::Sync), one(M::Aligned), one(M::$shape), one(M::Row), one(M::Col), T.of(&[S32]), U.of(&[B1]), V.of(&[B1]), W.of(&[S32]), req(&BIT_OP), one(M::Popc)],
             &[out(S32, $dn), frag("a", B32, $an), frag("b", B32, $bn), frag("c", S32, $dn)])
    };
}
static BIT: Rows = rows("9.7.14.5.14", &[
    bits!(M8n8k128,  2, 1, 1).ptx(7, 0).sm(75).only(&[m(M::And, 7, 1, 80)]),
    bits!(M16n8k128, 4, 2, 1).ptx(7, 0).sm(80).only(&[m(M::And, 7, 1, 80)]),
    bits!(M16n8k256, 4, 4, 2).ptx(7, 0).sm(80).only(&[m(M::And, 7, 1, 80)]),
]);

/// Ordered metadata came later than `mma.sp` itself.
static ORDERED: &[Need] = &[m(M::SpOrderedMetadata, 8, 5, 80)];
static SPARSE: Rows = rows("9.7.14.6.3", &[
    sparse!(SP, M16n8k16, F16 F16x2 2, &[F16], &[F16], F16x2 2, 2, F16, 3).ptx(7, 1).sm(80).only(ORDERED),
    sparse!(SP, M16n8k16, F32 B32 4,   &[F16], &[F16], F16x2 2, 2, F32, 3).ptx(7, 1).sm(80).only(ORDERED),
    sparse!(SP, M16n8k32, F16 F16x2 2, &[F16], &[F16], F16x2 4, 4, F16, 1).ptx(7, 1).sm(80).only(ORDERED),
    sparse!(SP, M16n8k32, F32 B32 4,   &[F16], &[F16], F16x2 4, 4, F32, 3).ptx(7, 1).sm(80).only(ORDERED),
    sparse!(SP, M16n8k16, F32 B32 4, &[Bf16], &[Bf16], B32 2, 2, F32, 3).ptx(7, 1).sm(80).only(ORDERED),
    sparse!(SP, M16n8k32, F32 B32 4, &[Bf16], &[Bf16], B32 4, 4, F32, 1).ptx(7, 1).sm(80).only(ORDERED),
    sparse!(SP, M16n8k8,  F32 B32 4, &[Tf32], &[Tf32], B32 2, 2, F32, 3).ptx(7, 1).sm(80).only(ORDERED),
    sparse!(SP, M16n8k16, F32 B32 4, &[Tf32], &[Tf32], B32 4, 4, F32, 1).ptx(7, 1).sm(80).only(ORDERED),
    sparse!(SP, M16n8k64, F32 F32 4,   F8, F8, B32 4, 4, F32, 0).ptx(8, 4).sm(89).only(ORDERED),
    // of the `.m16n8k32` that the manual has for these types ptxas knows nothing; `.f16` results only with ordered metadata
    sparse!(ORDERED_ONLY, M16n8k64, F16 F16x2 2, F8, F8, B32 4, 4, F16, 0).ptx(8, 7).targets(F120),
    sparse!(ORDERED_ONLY, M16n8k64, F16 F16x2 2, F864, F864, B32 4, 4, F16, 0, one(M::KindF8f6f4)).ptx(8, 7).targets(F120),
    sparse!(ORDERED_ONLY, M16n8k64, F32 F32 4,   F864, F864, B32 4, 4, F32, 0, one(M::KindF8f6f4)).ptx(8, 6).targets(F100_F120).only(NARROW),
    sparse!(SP, M16n8k32,  S32 S32 4, I8, I8, B32 2, 2, S32, 1, opt(&SATFINITE)).ptx(7, 1).sm(80).only(ORDERED),
    sparse!(SP, M16n8k64,  S32 S32 4, I8, I8, B32 4, 4, S32, 0, opt(&SATFINITE)).ptx(7, 1).sm(80).only(ORDERED),
    sparse!(SP, M16n8k64,  S32 S32 4, I4, I4, B32 2, 2, S32, 1, opt(&SATFINITE)).ptx(7, 1).sm(80).only(ORDERED),
    sparse!(SP, M16n8k128, S32 S32 4, I4, I4, B32 4, 4, S32, 0, opt(&SATFINITE)).ptx(7, 1).sm(80).only(ORDERED),
]);
/// Targets with `ldmatrix` from `.s4`, as ptxas takes it.
static FOURS: &[Target] = &[Target::arch(90), Target::family(100), Target::family(110), Target::family(120)];
static A120: &[Target] = &[Target::arch(120), Target::arch(121)];
static SPARSE_SCALED: Rows = rows("9.7.14.6.3", &[
    scaled!(M16n8k128, KindMxf4,     opt(&X2),           &[E2m1], &[Ue8m0], [one(M::SpOrderedMetadata)], 4, 4, [src(Ty::Is(B32)).named("e").reg().braced(), imm(Ty::Is(U32)).named("f").range(0, 0)]).ptx(8, 7).targets(A120).rules(&[Rule::ScaleSelector]),
    scaled!(M16n8k128, KindMxf4nvf4, one(M::ScaleVec2X), &[E2m1], &[Ue8m0], [one(M::SpOrderedMetadata)], 4, 4, [src(Ty::Is(B32)).named("e").reg().braced(), imm(Ty::Is(U32)).named("f").range(0, 0)]).ptx(8, 7).targets(A120).rules(&[Rule::ScaleSelector]),
    scaled!(M16n8k128, KindMxf4nvf4, one(M::ScaleVec4X), &[E2m1], &[Ue8m0, Ue4m3], [one(M::SpOrderedMetadata)], 4, 4, [src(Ty::Is(B32)).named("e").reg().braced(), imm(Ty::Is(U32)).named("f").range(0, 0)]).ptx(8, 7).targets(A120).only(&[t(Ue8m0, 9, 1, 0)]).rules(&[Rule::ScaleSelector]),
    scaled!(M16n8k64,  KindMxf8f6f4, opt(&X1),           F864,    &[Ue8m0], [one(M::SpOrderedMetadata)], 4, 4, [src(Ty::Is(B32)).named("e").reg().braced(), imm(Ty::Is(U32)).named("f").range(0, 0)]).ptx(8, 7).targets(F120).rules(&[Rule::ScaleSelector]),
]);

pub static MMA: Op = joined!("mma", Warp, "`D = A * B + C` on fragments held by the lanes of a warp; with `.sp`, A is 2:4 sparse.",
    FLOAT, SCALED, INTEGER, BIT, SPARSE, SPARSE_SCALED);

pub static LDMATRIX: Op = op("ldmatrix", "9.7.14.5.15", Warp, "Load matrices from shared memory into fragments; lanes provide the row addresses.", &[
    form(&[one(M::Sync), one(M::Aligned), one(M::M8n8), req(&NUM), opt(&TRANS), opt(&SHARED), T.of(&[B16])],                   &[dst(Ty::Is(B32)).named("r").count(Count::Table(MATRICES)).sink(), addr().named("p")]).ptx(6, 5).sm(75).only(&[m(M::SharedCta, 7, 8, 75)]),
    form(&[one(M::Sync), one(M::Aligned), one(M::M16n16), req(&NUM2), one(M::Trans), opt(&SHARED), T.of(&[B8])],               &[dst(Ty::Is(B32)).named("r").count(Count::Table(MATRICES16)).sink(), addr().named("p")]).ptx(8, 6).targets(F100_F120),
    form(&[one(M::Sync), one(M::Aligned), one(M::M8n16), req(&NUM), opt(&SHARED), one(M::B8x16), req(&PACKED)],                &[dst(Ty::Is(B32)).named("r").count(Count::Table(MATRICES)).sink(), addr().named("p")]).ptx(8, 6).targets(F100_F120),
    form(&[one(M::Sync), one(M::Aligned), one(M::M8n16), req(&NUM), opt(&SHARED), T.of(&[S8]), U.of(&[S4])],                   &[dst(Ty::Is(B32)).named("r").count(Count::Table(MATRICES)).sink(), addr().named("p")]).ptx(9, 4).targets(FOURS),
    form(&[one(M::Sync), one(M::Aligned), one(M::M16n16), req(&NUM2), one(M::Trans), opt(&SHARED), one(M::B8x16), req(&PACKED)], &[dst(Ty::Is(B32)).named("r").count(Count::Table(MATRICES16)).sink(), addr().named("p")]).ptx(8, 6).targets(F100_F120),
]);
pub static STMATRIX: Op = op("stmatrix", "9.7.14.5.16", Warp, "Store fragments to shared memory as matrices; lanes provide the row addresses.", &[
    form(&[one(M::Sync), one(M::Aligned), one(M::M8n8), req(&NUM), opt(&TRANS), opt(&SHARED), T.of(&[B16])],    &[addr().named("p"), src(Ty::Is(B32)).named("r").count(Count::Table(MATRICES))]).ptx(7, 8).sm(90),
    form(&[one(M::Sync), one(M::Aligned), one(M::M16n8), req(&NUM), one(M::Trans), opt(&SHARED), T.of(&[B8])],  &[addr().named("p"), src(Ty::Is(B32)).named("r").count(Count::Table(MATRICES))]).ptx(8, 6).targets(F100_F120),
]);
pub static MOVMATRIX: Op = op("movmatrix", "9.7.14.5.17", Warp, "Transpose a matrix held by the lanes of a warp.", &[
    form(&[one(M::Sync), one(M::Aligned), one(M::M8n8), one(M::Trans), T.of(&[B16])], &[dst(Ty::Is(B32)), src(Ty::Is(B32)).reg()]).ptx(7, 8).sm(75),
]);
