//! Asynchronous warpgroup matrix instructions (manual, section 9.7.15).
//!
//! A comes from registers or through a descriptor of shared memory, B always through a descriptor. The accumulator has 64 by N
//! elements over 128 threads. `.aligned` is mandatory in the manual but optional in ptxas. Signs of the factors and transpositions
//! are constants; `scale-d` selects whether D is accumulated.

use super::{class::ALIGNED, target::*};
use crate::{Effect::Warp, Mod as M, Type::*, Var::{T, U, V}, *};

/// Shapes of `.tf32`.
static K8: Class = Class::new("shape", &[
    M::M64n8k8, M::M64n16k8, M::M64n24k8, M::M64n32k8, M::M64n40k8, M::M64n48k8, M::M64n56k8, M::M64n64k8,
    M::M64n72k8, M::M64n80k8, M::M64n88k8, M::M64n96k8, M::M64n104k8, M::M64n112k8, M::M64n120k8, M::M64n128k8,
    M::M64n136k8, M::M64n144k8, M::M64n152k8, M::M64n160k8, M::M64n168k8, M::M64n176k8, M::M64n184k8, M::M64n192k8,
    M::M64n200k8, M::M64n208k8, M::M64n216k8, M::M64n224k8, M::M64n232k8, M::M64n240k8, M::M64n248k8, M::M64n256k8,
]);
/// Shapes of 16-bit elements, and of sparse `.tf32`.
static K16: Class = Class::new("shape", &[
    M::M64n8k16, M::M64n16k16, M::M64n24k16, M::M64n32k16, M::M64n40k16, M::M64n48k16, M::M64n56k16, M::M64n64k16,
    M::M64n72k16, M::M64n80k16, M::M64n88k16, M::M64n96k16, M::M64n104k16, M::M64n112k16, M::M64n120k16, M::M64n128k16,
    M::M64n136k16, M::M64n144k16, M::M64n152k16, M::M64n160k16, M::M64n168k16, M::M64n176k16, M::M64n184k16, M::M64n192k16,
    M::M64n200k16, M::M64n208k16, M::M64n216k16, M::M64n224k16, M::M64n232k16, M::M64n240k16, M::M64n248k16, M::M64n256k16,
]);
/// Shapes of 8-bit floats, and of sparse 16-bit elements.
static K32: Class = Class::new("shape", &[
    M::M64n8k32, M::M64n16k32, M::M64n24k32, M::M64n32k32, M::M64n40k32, M::M64n48k32, M::M64n56k32, M::M64n64k32,
    M::M64n72k32, M::M64n80k32, M::M64n88k32, M::M64n96k32, M::M64n104k32, M::M64n112k32, M::M64n120k32, M::M64n128k32,
    M::M64n136k32, M::M64n144k32, M::M64n152k32, M::M64n160k32, M::M64n168k32, M::M64n176k32, M::M64n184k32, M::M64n192k32,
    M::M64n200k32, M::M64n208k32, M::M64n216k32, M::M64n224k32, M::M64n232k32, M::M64n240k32, M::M64n248k32, M::M64n256k32,
]);
/// Shapes of sparse 8-bit floats.
static K64: Class = Class::new("shape", &[
    M::M64n8k64, M::M64n16k64, M::M64n24k64, M::M64n32k64, M::M64n40k64, M::M64n48k64, M::M64n56k64, M::M64n64k64,
    M::M64n72k64, M::M64n80k64, M::M64n88k64, M::M64n96k64, M::M64n104k64, M::M64n112k64, M::M64n120k64, M::M64n128k64,
    M::M64n136k64, M::M64n144k64, M::M64n152k64, M::M64n160k64, M::M64n168k64, M::M64n176k64, M::M64n184k64, M::M64n192k64,
    M::M64n200k64, M::M64n208k64, M::M64n216k64, M::M64n224k64, M::M64n232k64, M::M64n240k64, M::M64n248k64, M::M64n256k64,
]);
/// Shapes of 8-bit integers.
static K32_INT: Class = Class::new("shape", &[
    M::M64n8k32, M::M64n16k32, M::M64n24k32, M::M64n32k32, M::M64n48k32, M::M64n64k32, M::M64n80k32, M::M64n96k32,
    M::M64n112k32, M::M64n128k32, M::M64n144k32, M::M64n160k32, M::M64n176k32, M::M64n192k32, M::M64n208k32, M::M64n224k32,
    M::M64n240k32, M::M64n256k32,
]);
/// Shapes of sparse 8-bit integers.
static K64_INT: Class = Class::new("shape", &[
    M::M64n8k64, M::M64n16k64, M::M64n24k64, M::M64n32k64, M::M64n48k64, M::M64n64k64, M::M64n80k64, M::M64n96k64,
    M::M64n112k64, M::M64n128k64, M::M64n144k64, M::M64n160k64, M::M64n176k64, M::M64n192k64, M::M64n208k64, M::M64n224k64,
    M::M64n240k64, M::M64n256k64,
]);
/// Shapes of single bits.
static K256: Class = Class::new("shape", &[
    M::M64n8k256, M::M64n16k256, M::M64n24k256, M::M64n32k256, M::M64n48k256, M::M64n64k256, M::M64n80k256, M::M64n96k256,
    M::M64n112k256, M::M64n128k256, M::M64n144k256, M::M64n160k256, M::M64n176k256, M::M64n192k256, M::M64n208k256, M::M64n224k256,
    M::M64n240k256, M::M64n256k256,
]);
/// Registers of an accumulator of 32-bit elements.
static WORDS: &[(M, u8)] = &[
    (M::M64n8k8, 4), (M::M64n8k16, 4), (M::M64n8k32, 4), (M::M64n8k64, 4), (M::M64n8k256, 4),
    (M::M64n16k8, 8), (M::M64n16k16, 8), (M::M64n16k32, 8), (M::M64n16k64, 8), (M::M64n16k256, 8),
    (M::M64n24k8, 12), (M::M64n24k16, 12), (M::M64n24k32, 12), (M::M64n24k64, 12), (M::M64n24k256, 12),
    (M::M64n32k8, 16), (M::M64n32k16, 16), (M::M64n32k32, 16), (M::M64n32k64, 16), (M::M64n32k256, 16),
    (M::M64n40k8, 20), (M::M64n40k16, 20), (M::M64n40k32, 20), (M::M64n40k64, 20), (M::M64n40k256, 20),
    (M::M64n48k8, 24), (M::M64n48k16, 24), (M::M64n48k32, 24), (M::M64n48k64, 24), (M::M64n48k256, 24),
    (M::M64n56k8, 28), (M::M64n56k16, 28), (M::M64n56k32, 28), (M::M64n56k64, 28), (M::M64n56k256, 28),
    (M::M64n64k8, 32), (M::M64n64k16, 32), (M::M64n64k32, 32), (M::M64n64k64, 32), (M::M64n64k256, 32),
    (M::M64n72k8, 36), (M::M64n72k16, 36), (M::M64n72k32, 36), (M::M64n72k64, 36), (M::M64n72k256, 36),
    (M::M64n80k8, 40), (M::M64n80k16, 40), (M::M64n80k32, 40), (M::M64n80k64, 40), (M::M64n80k256, 40),
    (M::M64n88k8, 44), (M::M64n88k16, 44), (M::M64n88k32, 44), (M::M64n88k64, 44), (M::M64n88k256, 44),
    (M::M64n96k8, 48), (M::M64n96k16, 48), (M::M64n96k32, 48), (M::M64n96k64, 48), (M::M64n96k256, 48),
    (M::M64n104k8, 52), (M::M64n104k16, 52), (M::M64n104k32, 52), (M::M64n104k64, 52), (M::M64n104k256, 52),
    (M::M64n112k8, 56), (M::M64n112k16, 56), (M::M64n112k32, 56), (M::M64n112k64, 56), (M::M64n112k256, 56),
    (M::M64n120k8, 60), (M::M64n120k16, 60), (M::M64n120k32, 60), (M::M64n120k64, 60), (M::M64n120k256, 60),
    (M::M64n128k8, 64), (M::M64n128k16, 64), (M::M64n128k32, 64), (M::M64n128k64, 64), (M::M64n128k256, 64),
    (M::M64n136k8, 68), (M::M64n136k16, 68), (M::M64n136k32, 68), (M::M64n136k64, 68), (M::M64n136k256, 68),
    (M::M64n144k8, 72), (M::M64n144k16, 72), (M::M64n144k32, 72), (M::M64n144k64, 72), (M::M64n144k256, 72),
    (M::M64n152k8, 76), (M::M64n152k16, 76), (M::M64n152k32, 76), (M::M64n152k64, 76), (M::M64n152k256, 76),
    (M::M64n160k8, 80), (M::M64n160k16, 80), (M::M64n160k32, 80), (M::M64n160k64, 80), (M::M64n160k256, 80),
    (M::M64n168k8, 84), (M::M64n168k16, 84), (M::M64n168k32, 84), (M::M64n168k64, 84), (M::M64n168k256, 84),
    (M::M64n176k8, 88), (M::M64n176k16, 88), (M::M64n176k32, 88), (M::M64n176k64, 88), (M::M64n176k256, 88),
    (M::M64n184k8, 92), (M::M64n184k16, 92), (M::M64n184k32, 92), (M::M64n184k64, 92), (M::M64n184k256, 92),
    (M::M64n192k8, 96), (M::M64n192k16, 96), (M::M64n192k32, 96), (M::M64n192k64, 96), (M::M64n192k256, 96),
    (M::M64n200k8, 100), (M::M64n200k16, 100), (M::M64n200k32, 100), (M::M64n200k64, 100), (M::M64n200k256, 100),
    (M::M64n208k8, 104), (M::M64n208k16, 104), (M::M64n208k32, 104), (M::M64n208k64, 104), (M::M64n208k256, 104),
    (M::M64n216k8, 108), (M::M64n216k16, 108), (M::M64n216k32, 108), (M::M64n216k64, 108), (M::M64n216k256, 108),
    (M::M64n224k8, 112), (M::M64n224k16, 112), (M::M64n224k32, 112), (M::M64n224k64, 112), (M::M64n224k256, 112),
    (M::M64n232k8, 116), (M::M64n232k16, 116), (M::M64n232k32, 116), (M::M64n232k64, 116), (M::M64n232k256, 116),
    (M::M64n240k8, 120), (M::M64n240k16, 120), (M::M64n240k32, 120), (M::M64n240k64, 120), (M::M64n240k256, 120),
    (M::M64n248k8, 124), (M::M64n248k16, 124), (M::M64n248k32, 124), (M::M64n248k64, 124), (M::M64n248k256, 124),
    (M::M64n256k8, 128), (M::M64n256k16, 128), (M::M64n256k32, 128), (M::M64n256k64, 128), (M::M64n256k256, 128),
];
/// Registers of an accumulator of pairs of halves.
static HALVES: &[(M, u8)] = &[
    (M::M64n8k8, 2), (M::M64n8k16, 2), (M::M64n8k32, 2), (M::M64n8k64, 2), (M::M64n8k256, 2),
    (M::M64n16k8, 4), (M::M64n16k16, 4), (M::M64n16k32, 4), (M::M64n16k64, 4), (M::M64n16k256, 4),
    (M::M64n24k8, 6), (M::M64n24k16, 6), (M::M64n24k32, 6), (M::M64n24k64, 6), (M::M64n24k256, 6),
    (M::M64n32k8, 8), (M::M64n32k16, 8), (M::M64n32k32, 8), (M::M64n32k64, 8), (M::M64n32k256, 8),
    (M::M64n40k8, 10), (M::M64n40k16, 10), (M::M64n40k32, 10), (M::M64n40k64, 10), (M::M64n40k256, 10),
    (M::M64n48k8, 12), (M::M64n48k16, 12), (M::M64n48k32, 12), (M::M64n48k64, 12), (M::M64n48k256, 12),
    (M::M64n56k8, 14), (M::M64n56k16, 14), (M::M64n56k32, 14), (M::M64n56k64, 14), (M::M64n56k256, 14),
    (M::M64n64k8, 16), (M::M64n64k16, 16), (M::M64n64k32, 16), (M::M64n64k64, 16), (M::M64n64k256, 16),
    (M::M64n72k8, 18), (M::M64n72k16, 18), (M::M64n72k32, 18), (M::M64n72k64, 18), (M::M64n72k256, 18),
    (M::M64n80k8, 20), (M::M64n80k16, 20), (M::M64n80k32, 20), (M::M64n80k64, 20), (M::M64n80k256, 20),
    (M::M64n88k8, 22), (M::M64n88k16, 22), (M::M64n88k32, 22), (M::M64n88k64, 22), (M::M64n88k256, 22),
    (M::M64n96k8, 24), (M::M64n96k16, 24), (M::M64n96k32, 24), (M::M64n96k64, 24), (M::M64n96k256, 24),
    (M::M64n104k8, 26), (M::M64n104k16, 26), (M::M64n104k32, 26), (M::M64n104k64, 26), (M::M64n104k256, 26),
    (M::M64n112k8, 28), (M::M64n112k16, 28), (M::M64n112k32, 28), (M::M64n112k64, 28), (M::M64n112k256, 28),
    (M::M64n120k8, 30), (M::M64n120k16, 30), (M::M64n120k32, 30), (M::M64n120k64, 30), (M::M64n120k256, 30),
    (M::M64n128k8, 32), (M::M64n128k16, 32), (M::M64n128k32, 32), (M::M64n128k64, 32), (M::M64n128k256, 32),
    (M::M64n136k8, 34), (M::M64n136k16, 34), (M::M64n136k32, 34), (M::M64n136k64, 34), (M::M64n136k256, 34),
    (M::M64n144k8, 36), (M::M64n144k16, 36), (M::M64n144k32, 36), (M::M64n144k64, 36), (M::M64n144k256, 36),
    (M::M64n152k8, 38), (M::M64n152k16, 38), (M::M64n152k32, 38), (M::M64n152k64, 38), (M::M64n152k256, 38),
    (M::M64n160k8, 40), (M::M64n160k16, 40), (M::M64n160k32, 40), (M::M64n160k64, 40), (M::M64n160k256, 40),
    (M::M64n168k8, 42), (M::M64n168k16, 42), (M::M64n168k32, 42), (M::M64n168k64, 42), (M::M64n168k256, 42),
    (M::M64n176k8, 44), (M::M64n176k16, 44), (M::M64n176k32, 44), (M::M64n176k64, 44), (M::M64n176k256, 44),
    (M::M64n184k8, 46), (M::M64n184k16, 46), (M::M64n184k32, 46), (M::M64n184k64, 46), (M::M64n184k256, 46),
    (M::M64n192k8, 48), (M::M64n192k16, 48), (M::M64n192k32, 48), (M::M64n192k64, 48), (M::M64n192k256, 48),
    (M::M64n200k8, 50), (M::M64n200k16, 50), (M::M64n200k32, 50), (M::M64n200k64, 50), (M::M64n200k256, 50),
    (M::M64n208k8, 52), (M::M64n208k16, 52), (M::M64n208k32, 52), (M::M64n208k64, 52), (M::M64n208k256, 52),
    (M::M64n216k8, 54), (M::M64n216k16, 54), (M::M64n216k32, 54), (M::M64n216k64, 54), (M::M64n216k256, 54),
    (M::M64n224k8, 56), (M::M64n224k16, 56), (M::M64n224k32, 56), (M::M64n224k64, 56), (M::M64n224k256, 56),
    (M::M64n232k8, 58), (M::M64n232k16, 58), (M::M64n232k32, 58), (M::M64n232k64, 58), (M::M64n232k256, 58),
    (M::M64n240k8, 60), (M::M64n240k16, 60), (M::M64n240k32, 60), (M::M64n240k64, 60), (M::M64n240k256, 60),
    (M::M64n248k8, 62), (M::M64n248k16, 62), (M::M64n248k32, 62), (M::M64n248k64, 62), (M::M64n248k256, 62),
    (M::M64n256k8, 64), (M::M64n256k16, 64), (M::M64n256k32, 64), (M::M64n256k64, 64), (M::M64n256k256, 64),
];

static SATFINITE: Class = Class::new("saturation", &[M::Satfinite]);
static F8: &[Type] = &[E4m3, E5m2];

const fn acc(ty: Type, count: &'static [(M, u8)]) -> Opnd {
    dst(Ty::Is(ty)).count(Count::Table(count))
}
const fn a_regs(ty: Ty) -> Opnd {
    src(ty).named("a").count(Count::Exactly(4))
}
const fn desc(name: &'static str) -> Opnd {
    src(Ty::Is(U64)).named(name)
}
const fn scale_d() -> Opnd {
    p_in().named("scale-d").range(0, 1)
}
const fn sign(name: &'static str) -> Opnd {
    imm(Ty::Is(S32)).named(name).values(&[-1, 1])
}
const fn trans(name: &'static str) -> Opnd {
    imm(Ty::Is(S32)).named(name).values(&[0, 1])
}
const fn meta() -> Opnd {
    src(Ty::Is(B32)).named("sp-meta").reg()
}
const fn sel(max: i64) -> Opnd {
    imm(Ty::Is(S32)).named("sp-sel").range(0, max)
}

/// A through a descriptor, then in registers: shape, D with its register type and count, types of A and B, type of A's
/// registers, what stands between the shape and the types and what after them, the signs, and the transpositions of A and B.
macro_rules! dense {
    ($($shape:ident $d:ident $reg:ident $count:ident, $a:expr, $b:expr, $ar:expr, [$($sat:expr)?] [$($op:expr),*] [$($sign:expr),*] [$($ta:expr)?] [$($tb:expr)?], ($major:literal, $minor:literal);)*) => { &[$(
        form(&[one(M::MmaAsync), one(M::Sync), opt(&ALIGNED), req(&$shape), $($sat,)? T.of(&[$d]), U.of($a), V.of($b) $(, $op)*],
             &[acc($reg, $count), desc("a-desc"), desc("b-desc"), scale_d() $(, $sign)* $(, $ta)? $(, $tb)?]).fixed(1).ptx($major, $minor).targets(A90),
        form(&[one(M::MmaAsync), one(M::Sync), opt(&ALIGNED), req(&$shape), $($sat,)? T.of(&[$d]), U.of($a), V.of($b) $(, $op)*],
             &[acc($reg, $count), a_regs($ar), desc("b-desc"), scale_d() $(, $sign)* $(, $tb)?]).fixed(1).ptx($major, $minor).targets(A90),
    )*] };
}
/// The same with sparse A: metadata and a selector up to the number given.
macro_rules! sparse {
    ($($shape:ident $d:ident $reg:ident $count:ident, $a:expr, $b:expr, $ar:expr, $max:literal, [$($sat:expr)?] [$($sign:expr),*] [$($ta:expr)?] [$($tb:expr)?], ($major:literal, $minor:literal);)*) => { &[$(
        form(&[one(M::MmaAsync), one(M::Sp), one(M::Sync), opt(&ALIGNED), req(&$shape), $($sat,)? T.of(&[$d]), U.of($a), V.of($b)],
             &[acc($reg, $count), desc("a-desc"), desc("b-desc"), meta(), sel($max), scale_d() $(, $sign)* $(, $ta)? $(, $tb)?]).fixed(2).glued(1).ptx($major, $minor).targets(A90),
        form(&[one(M::MmaAsync), one(M::Sp), one(M::Sync), opt(&ALIGNED), req(&$shape), $($sat,)? T.of(&[$d]), U.of($a), V.of($b)],
             &[acc($reg, $count), a_regs($ar), desc("b-desc"), meta(), sel($max), scale_d() $(, $sign)* $(, $tb)?]).fixed(2).glued(1).ptx($major, $minor).targets(A90),
    )*] };
}
/// Bit-size registers only, as ptxas requires except for `.f16` and integers.
const STRICT: Ty = Ty::Untyped(B32);

static DENSE: Rows = rows("9.7.15.5.2", dense! {
    K16 F16 F16x2 HALVES, &[F16],  &[F16],  Ty::Is(F16x2), [] [] [sign("imm-scale-a"), sign("imm-scale-b")] [trans("imm-trans-a")] [trans("imm-trans-b")], (8, 0);
    K16 F32 F32   WORDS,  &[F16],  &[F16],  Ty::Is(F16x2), [] [] [sign("imm-scale-a"), sign("imm-scale-b")] [trans("imm-trans-a")] [trans("imm-trans-b")], (8, 0);
    K16 F32 F32   WORDS,  &[Bf16], &[Bf16], STRICT,        [] [] [sign("imm-scale-a"), sign("imm-scale-b")] [trans("imm-trans-a")] [trans("imm-trans-b")], (8, 0);
    K8  F32 F32   WORDS,  &[Tf32], &[Tf32], STRICT,        [] [] [sign("imm-scale-a"), sign("imm-scale-b")] [] [], (8, 0);
    K32 F16 F16x2 HALVES, F8, F8, STRICT,                  [] [] [sign("imm-scale-a"), sign("imm-scale-b")] [] [], (8, 0);
    K32 F32 F32   WORDS,  F8, F8, STRICT,                  [] [] [sign("imm-scale-a"), sign("imm-scale-b")] [] [], (8, 0);
    K32_INT S32 S32 WORDS, &[S8], &[S8], Ty::Is(B32),      [opt(&SATFINITE)] [] [] [] [], (8, 0);
    K32_INT S32 S32 WORDS, &[U8], &[U8], Ty::Is(B32),      [opt(&SATFINITE)] [] [] [] [], (8, 0);
    K32_INT S32 S32 WORDS, &[S8], &[U8], Ty::Is(B32),      [opt(&SATFINITE)] [] [] [] [], (8, 4);
    K32_INT S32 S32 WORDS, &[U8], &[S8], Ty::Is(B32),      [opt(&SATFINITE)] [] [] [] [], (8, 4);
    K256 S32 S32 WORDS,   &[B1], &[B1], Ty::Is(B32),       [] [one(M::And), one(M::Popc)] [] [] [], (8, 0);
});
static SPARSE: Rows = rows("9.7.15.6.3", sparse! {
    K32 F16 F16x2 HALVES, &[F16],  &[F16],  Ty::Is(F16x2), 1, [] [sign("imm-scale-a"), sign("imm-scale-b")] [trans("imm-trans-a")] [trans("imm-trans-b")], (8, 2);
    K32 F32 F32   WORDS,  &[F16],  &[F16],  Ty::Is(F16x2), 1, [] [sign("imm-scale-a"), sign("imm-scale-b")] [trans("imm-trans-a")] [trans("imm-trans-b")], (8, 2);
    K32 F32 F32   WORDS,  &[Bf16], &[Bf16], STRICT,        1, [] [sign("imm-scale-a"), sign("imm-scale-b")] [trans("imm-trans-a")] [trans("imm-trans-b")], (8, 2);
    K16 F32 F32   WORDS,  &[Tf32], &[Tf32], STRICT,        1, [] [sign("imm-scale-a"), sign("imm-scale-b")] [] [], (8, 2);
    K64 F16 F16x2 HALVES, F8, F8, STRICT,                  0, [] [sign("imm-scale-a"), sign("imm-scale-b")] [] [], (8, 2);
    K64 F32 F32   WORDS,  F8, F8, STRICT,                  0, [] [sign("imm-scale-a"), sign("imm-scale-b")] [] [], (8, 2);
    K64_INT S32 S32 WORDS, &[S8], &[S8], Ty::Is(B32),      0, [opt(&SATFINITE)] [] [] [], (8, 2);
    K64_INT S32 S32 WORDS, &[U8], &[U8], Ty::Is(B32),      0, [opt(&SATFINITE)] [] [] [], (8, 2);
    K64_INT S32 S32 WORDS, &[S8], &[U8], Ty::Is(B32),      0, [opt(&SATFINITE)] [] [] [], (8, 4);
    K64_INT S32 S32 WORDS, &[U8], &[S8], Ty::Is(B32),      0, [opt(&SATFINITE)] [] [] [], (8, 4);
});
static FENCE: Rows = rows("9.7.15.7.1", &[
    form(&[one(M::Fence), one(M::Sync), opt(&ALIGNED)],       &[]).fixed(1).ptx(8, 0).targets(A90),
]);
static GROUPS: Rows = rows("9.7.15.7.2", &[
    form(&[one(M::CommitGroup), one(M::Sync), opt(&ALIGNED)], &[]).fixed(1).ptx(8, 0).targets(A90),
    form(&[one(M::WaitGroup), one(M::Sync), opt(&ALIGNED)],   &[imm(Ty::Is(U32)).named("N").range(0, i32::MAX as i64)]).fixed(1).ptx(8, 0).targets(A90),
]);

pub static WGMMA: Op = joined!("wgmma", Warp, "Multiply matrices asynchronously with four warps; order, commit and wait for groups of products.",
    DENSE, SPARSE, FENCE, GROUPS);
