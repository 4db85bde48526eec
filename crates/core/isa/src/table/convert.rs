//! Conversion: `cvt` and `cvt.pack` (manual, sections 9.7.9.21 and 9.7.9.22).
//!
//! The rows determine the rounding of a pair of types: `.rni` and similar where a fraction is dropped, `.rn` and
//! similar where precision is lost, none where the value is preserved.

use super::class::*;
use crate::{Effect::Pure, Mod as M, Ty::*, Type::*, Var::*, *};

static IRND: Class = Class::new("integer rounding", &[M::Rni, M::Rzi, M::Rmi, M::Rpi]);
static RND2: Class = Class::new("rounding", &[M::Rn, M::Rz]);
static RND3: Class = Class::new("rounding", &[M::Rz, M::Rp]);
static SATFINITE: Class = Class::new("saturation", &[M::Satfinite]);
static SCALED: Class = Class::new("scaling", &[M::ScaledN2Ue8m0]);
static ANY_INT: &[Type] = &[U8, U16, U32, U64, S8, S16, S32, S64];
/// The family-specific targets of the small formats.
const SMALL: &[Target] = &[Target::arch(100), Target::family(100), Target::arch(110), Target::family(110), Target::arch(120), Target::family(120)];
/// From here on: `.ue5m3x2`, one scale for both values, other roundings of the small formats, and `-0` as `+0`.
const RUBIN: &[Target] = &[Target::family(107)];
static PZO: Class = Class::new("positive zero", &[M::Pzo]);
static SCALED1: Class = Class::new("scaling", &[M::ScaledN1Ue8m0]);
static RND_ZP: Class = Class::new("rounding", &[M::Rn, M::Rz, M::Rp]);
/// The additions of PTX ISA 9.4 to the conversions to small formats.
const SMALL_NEW: &[Need] =
    &[m(M::Rz, 9, 4, 0).targets(RUBIN), m(M::Pzo, 9, 4, 0).targets(RUBIN), m(M::ScaledN1Ue8m0, 9, 4, 0).targets(RUBIN)];
const PZO_NEED: &[Need] = &[m(M::Satfinite, 8, 1, 0), m(M::Pzo, 9, 4, 0).targets(RUBIN)];
const SCALE1: Opnd = src(Untyped(B8)).named("scale-factor").reg().when(&[M::ScaledN1Ue8m0]);
const STOCHASTIC: &[Target] = &[Target::arch(100), Target::arch(103), Target::arch(107)];
const S2F6: &[Target] = &[Target::arch(100), Target::arch(103), Target::arch(107), Target::arch(110), Target::arch(120), Target::arch(121)];
const SATFINITE_NEED: &[Need] = &[m(M::Satfinite, 8, 1, 0)];
/// With types of 64 bits (and from bytes) `.ftz` came after PTX ISA 1.4.
const FTZ_TO_LONG: &[Need] = &[m(M::Ftz, 1, 5, 0).with(&[Word::Type(U64)]), m(M::Ftz, 1, 5, 0).with(&[Word::Type(S64)])];
const FTZ_FROM_BYTE: &[Need] = &[m(M::Ftz, 1, 5, 0).with(&[Word::Type(U8)]), m(M::Ftz, 1, 5, 0).with(&[Word::Type(S8)])];
const FTZ_TO_DOUBLE: &[Need] = &[m(M::Ftz, 1, 5, 0)];
const D: Opnd = d(T).wider();
const A: Opnd = a(U).wider();
const B: Opnd = b(U).wider();
const RBITS: Opnd = src(Untyped(B32)).named("rbits").reg();
const SCALE: Opnd = src(Untyped(B16)).named("scale-factor").reg().when(&[M::ScaledN2Ue8m0]);
const E5M2: &[Type] = &[E4m3x2, E5m2x2];

pub static CVT: Op = joined!("cvt", Pure, "Convert between types.",
    rows("9.7.9.21", &[
        // integer to integer; `.sat` only where a value can be out of range
        form(&[T.of(ANY_INT), U.of(ANY_INT)],                                         &[D, A.special()]),
        form(&[one(M::Sat), T.of(&[U8]),  U.of(&[U16, U32, U64, S8, S16, S32, S64])], &[D, A.special()]),
        form(&[one(M::Sat), T.of(&[U16]), U.of(&[U32, U64, S8, S16, S32, S64])],      &[D, A.special()]),
        form(&[one(M::Sat), T.of(&[U32]), U.of(&[U64, S8, S16, S32, S64])],           &[D, A.special()]),
        form(&[one(M::Sat), T.of(&[U64]), U.of(&[S8, S16, S32, S64])],                &[D, A.special()]),
        form(&[one(M::Sat), T.of(&[S8]),  U.of(&[U8, U16, U32, U64, S16, S32, S64])], &[D, A.special()]),
        form(&[one(M::Sat), T.of(&[S16]), U.of(&[U16, U32, U64, S32, S64])],          &[D, A.special()]),
        form(&[one(M::Sat), T.of(&[S32]), U.of(&[U32, U64, S64])],                    &[D, A.special()]),
        form(&[one(M::Sat), T.of(&[S64]), U.of(&[U64])],                              &[D, A.special()]),
        // float to integer, integer to float
        form(&[req(&IRND), opt(&FTZ), opt(&SAT), T.of(ANY_INT), U.of(&[F32])],        &[D, A]).only(FTZ_TO_LONG),
        form(&[req(&IRND), opt(&SAT), T.of(ANY_INT), U.of(&[F16, F64])],              &[D, A]),
        form(&[req(&RND), opt(&FTZ), opt(&SAT), T.of(&[F32]), U.of(ANY_INT)],         &[D, A]).only(FTZ_FROM_BYTE),
        form(&[req(&RND), opt(&SAT), T.of(&[F16, F64]), U.of(ANY_INT)],               &[D, A]),
        // float to float: widening, same size, narrowing
        form(&[opt(&FTZ), opt(&SAT), T.of(&[F32]), U.of(&[F16])],                     &[D, A]),
        form(&[opt(&FTZ), opt(&SAT), T.of(&[F64]), U.of(&[F32])],                     &[D, A]).only(FTZ_TO_DOUBLE),
        form(&[opt(&SAT), T.of(&[F64]), U.of(&[F16])],                                &[D, A]),
        form(&[opt(&IRND), opt(&FTZ), opt(&SAT), T.of(&[F32]), U.of(&[F32])],         &[D, A]),
        form(&[opt(&IRND), opt(&SAT), T.of(&[F16]), U.of(&[F16])],                    &[D, A]),
        form(&[opt(&IRND), opt(&SAT), T.of(&[F64]), U.of(&[F64])],                    &[D, A]),
        form(&[req(&RND), opt(&FTZ), opt(&SAT), T.of(&[F16]), U.of(&[F32])],          &[D, A]),
        form(&[req(&RND), opt(&SAT), T.of(&[F16]), U.of(&[F64])],                     &[D, A]),
        form(&[req(&RND), opt(&FTZ), opt(&SAT), T.of(&[F32]), U.of(&[F64])],          &[D, A]),
        form(&[req(&RND2), one(M::Relu), opt(&SATFINITE), opt(&PZO), T.of(&[F16]), U.of(&[F32])], &[D, A]).ptx(7, 0).sm(80).only(PZO_NEED),
        form(&[req(&RND2), one(M::Satfinite), opt(&PZO), T.of(&[F16]), U.of(&[F32])],            &[D, A]).ptx(8, 1).sm(70).only(PZO_NEED),
        form(&[req(&RND2), opt(&RELU), opt(&SATFINITE), opt(&PZO), T.of(&[F16x2]), U.of(&[F32])], &[D, A, B]).ptx(7, 0).sm(80).only(PZO_NEED),
        // bf16 and tf32; to and from `.f16`, ptxas accepts a rounding mode on exact conversions, and none on inexact ones
        form(&[req(&RND), opt(&FTZ), T.of(&[Bf16]), U.of(&[F32])],                    &[d(T), a(U)]).ptx(7, 0).sm(80),
        form(&[req(&RND2), opt(&RELU), opt(&SATFINITE), opt(&PZO), T.of(&[Bf16]), U.of(&[F32])], &[d(T), a(U)]).ptx(7, 0).sm(80).only(PZO_NEED),
        form(&[req(&RND2), opt(&RELU), opt(&SATFINITE), opt(&PZO), T.of(&[Bf16x2]), U.of(&[F32])], &[d(T), a(U), b(U)]).ptx(7, 0).sm(80).only(PZO_NEED),
        form(&[one(M::Rs), opt(&RELU), opt(&SATFINITE), T.of(&[F16x2]), U.of(&[F32])], &[D, A, B, RBITS]).ptx(8, 7).targets(STOCHASTIC),
        form(&[one(M::Rs), opt(&RELU), opt(&SATFINITE), T.of(&[Bf16x2]), U.of(&[F32])], &[d(T), a(U), b(U), RBITS]).ptx(8, 7).targets(STOCHASTIC),
        form(&[one(M::Rna), opt(&SATFINITE), T.of(&[Tf32]), U.of(&[F32])],            &[d(T), a(U)]).ptx(7, 0).sm(80).only(SATFINITE_NEED),
        form(&[req(&RND), one(M::Pzo), T.of(&[F16, Bf16]), U.of(&[F32])],              &[d(T), a(U)]).ptx(9, 4).targets(RUBIN),
        form(&[req(&RND2), opt(&SATFINITE), opt(&RELU), opt(&PZO), T.of(&[Tf32]), U.of(&[F32])], &[d(T), a(U)]).ptx(7, 8).sm(90).only(&[m(M::Satfinite, 8, 6, 100), m(M::Pzo, 9, 4, 0).targets(RUBIN)]),
        form(&[opt(&RND), opt(&FTZ), T.of(&[F32]), U.of(&[Bf16])],                    &[d(T), a(U)]).ptx(7, 1).sm(80).only(&[m(M::Ftz, 7, 8, 90)]),
        form(&[req(&RND), T.of(&[Bf16]), U.of(&[U8, U16, U32, U64, S8, S16, S32, S64, F64])], &[d(T), a(U)]).ptx(7, 8).sm(90),
        form(&[opt(&RND), T.of(&[Bf16]), U.of(&[F16])],                               &[d(T), a(U)]).ptx(7, 8).sm(90),
        form(&[req(&IRND), T.of(ANY_INT), U.of(&[Bf16])],                             &[d(T), a(U)]).ptx(7, 8).sm(90),
        form(&[opt(&RND), T.of(&[F16, F64]), U.of(&[Bf16])],                          &[d(T), a(U)]).ptx(7, 8).sm(90),
        form(&[opt(&IRND), T.of(&[Bf16]), U.of(&[Bf16])],                             &[d(T), a(U)]).ptx(7, 8).sm(90),
        // eight, six and four bits
        form(&[req(&RND2), one(M::Satfinite), opt(&RELU), opt(&PZO), opt(&SCALED1), T.of(E5M2), U.of(&[F32])],  &[d(T), a(U), b(U), SCALE1]).ptx(7, 8).sm(90).or(&[Since::new(8, 1, 89)]).only(SMALL_NEW),
        form(&[req(&RND2), one(M::Satfinite), opt(&RELU), opt(&PZO), opt(&SCALED1), T.of(E5M2), U.of(&[F16x2])], &[d(T), a(U), SCALE1]).ptx(7, 8).sm(90).or(&[Since::new(8, 1, 89)]).only(SMALL_NEW),
        form(&[req(&RND2), one(M::Satfinite), opt(&RELU), opt(&PZO), opt(&SCALED1), T.of(E5M2), U.of(&[Bf16x2])], &[d(T), a(U), SCALE1]).ptx(9, 1).targets(SMALL).only(SMALL_NEW),
        form(&[one(M::Rn), opt(&SATFINITE), opt(&RELU), opt(&SCALED), T.of(&[Bf16x2]), U.of(&[E4m3x2, E5m2x2, E2m1x2, E2m3x2, E3m2x2])], &[d(T), a(U), SCALE]).ptx(9, 2).targets(SMALL),
        form(&[req(&RND_ZP), opt(&SATFINITE), T.of(&[Ue5m3x2]), U.of(&[F32])],        &[d(T), a(U), b(U)]).ptx(9, 4).targets(RUBIN),
        form(&[req(&RND_ZP), opt(&SATFINITE), T.of(&[Ue5m3x2]), U.of(&[F16x2, Bf16x2])], &[d(T), a(U)]).ptx(9, 4).targets(RUBIN),
        form(&[req(&RND2), opt(&SATFINITE), one(M::ScaledN1Ue8m0), T.of(&[Ue5m3x2]), U.of(&[F32])], &[d(T), a(U), b(U), SCALE1]).ptx(9, 4).targets(RUBIN),
        form(&[req(&RND2), opt(&SATFINITE), one(M::ScaledN1Ue8m0), T.of(&[Ue5m3x2]), U.of(&[F16x2, Bf16x2])], &[d(T), a(U), SCALE1]).ptx(9, 4).targets(RUBIN),
        form(&[one(M::Rn), T.of(&[F16x2]), U.of(&[Ue5m3x2])],                         &[d(T), a(U)]).ptx(9, 4).targets(RUBIN),
        form(&[one(M::Rn), opt(&SATFINITE), opt(&SCALED), T.of(&[Bf16x2]), U.of(&[Ue5m3x2])], &[d(T), a(U), SCALE]).ptx(9, 4).targets(RUBIN),
        form(&[one(M::Rn), opt(&RELU), T.of(&[F16x2]), U.of(E5M2)],                   &[d(T), a(U)]).ptx(7, 8).sm(90).or(&[Since::new(8, 1, 89)]),
        form(&[one(M::Rs), opt(&RELU), one(M::Satfinite), T.of(&[E4m3x4, E5m2x4, E2m3x4, E3m2x4, E2m1x4]), U.of(&[F32])],
             &[d(T), a(U).count(Count::Exactly(4)), RBITS]).ptx(8, 7).targets(STOCHASTIC),
        form(&[req(&RND2), one(M::Satfinite), opt(&RELU), opt(&PZO), opt(&SCALED1), T.of(&[E2m1x2, E2m3x2, E3m2x2]), U.of(&[F32])], &[d(T), a(U), b(U), SCALE1]).ptx(8, 6).targets(SMALL).only(SMALL_NEW),
        form(&[req(&RND2), one(M::Satfinite), opt(&RELU), opt(&PZO), opt(&SCALED1), T.of(&[E2m1x2, E2m3x2, E3m2x2]), U.of(&[F16x2, Bf16x2])], &[d(T), a(U), SCALE1]).ptx(9, 1).targets(SMALL).only(SMALL_NEW),
        form(&[one(M::Rn), opt(&RELU), T.of(&[F16x2]), U.of(&[E2m1x2, E2m3x2, E3m2x2])], &[d(T), a(U)]).ptx(8, 6).targets(SMALL),
        form(&[req(&RND3), opt(&SATFINITE), T.of(&[Ue8m0x2]), U.of(&[F32])],          &[d(T), a(U), b(U)]).ptx(8, 6).targets(SMALL),
        form(&[req(&RND3), opt(&SATFINITE), T.of(&[Ue8m0x2]), U.of(&[Bf16x2])],       &[d(T), a(U)]).ptx(8, 6).targets(SMALL),
        form(&[one(M::Rn), T.of(&[Bf16x2]), U.of(&[Ue8m0x2])],                        &[d(T), a(U)]).ptx(8, 6).targets(SMALL),
        form(&[req(&RND2), one(M::Satfinite), opt(&RELU), opt(&SCALED), T.of(&[S2f6x2]), U.of(&[F32])], &[d(T), a(U), b(U), SCALE]).ptx(9, 1).targets(S2F6).only(&[m(M::Rz, 9, 4, 0).targets(RUBIN)]),
        form(&[req(&RND2), one(M::Satfinite), opt(&RELU), opt(&SCALED), T.of(&[S2f6x2]), U.of(&[Bf16x2])], &[d(T), a(U), SCALE]).ptx(9, 1).targets(S2F6).only(&[m(M::Rz, 9, 4, 0).targets(RUBIN)]),
        form(&[one(M::Rn), opt(&SATFINITE), opt(&RELU), opt(&SCALED), T.of(&[Bf16x2]), U.of(&[S2f6x2])], &[d(T), a(U), SCALE]).ptx(9, 1).targets(S2F6),
    ]),
    rows("9.7.9.22", &[
        form(&[one(M::Pack), one(M::Sat), T.of(&[U16, S16]), U.of(&[S32])], &[dst(Int(U)).wider(), A, B]).fixed(1).ptx(6, 5).sm(72),
        form(&[one(M::Pack), one(M::Sat), T.of(&[U2, S2, U4, S4, U8, S8]), U.of(&[S32]), V.of(&[B32])], &[dst(Int(U)).wider(), A, B, c(V).wider()]).fixed(1).ptx(6, 5).sm(72)
            .only(&[t(U4, 6, 5, 75), t(S4, 6, 5, 75), t(U2, 6, 5, 75), t(S2, 6, 5, 75)]),
    ]));
