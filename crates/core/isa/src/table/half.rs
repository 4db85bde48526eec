//! Half precision: `.f16`, `.f16x2`, `.bf16`, `.bf16x2` (manual, section 9.7.4).

use super::class::*;
use crate::{Mod as M, Type::*, Var::*, *};

static HALF: &[Type] = &[F16, F16x2];
static BRAIN: &[Type] = &[Bf16, Bf16x2];

pub static ADD: Rows = rows("9.7.4.1", &[
    form(&[opt(&RN), opt(&FTZ), opt(&SAT), T.of(HALF)], &[d(T), a(T), b(T)]).ptx(4, 2).sm(53),
    form(&[opt(&RN), T.of(BRAIN)],                    &[d(T), a(T), b(T)]).ptx(7, 8).sm(90),
]);
pub static SUB: Rows = rows("9.7.4.2", &[
    form(&[opt(&RN), opt(&FTZ), opt(&SAT), T.of(HALF)], &[d(T), a(T), b(T)]).ptx(4, 2).sm(53),
    form(&[opt(&RN), T.of(BRAIN)],                    &[d(T), a(T), b(T)]).ptx(7, 8).sm(90),
]);
pub static MUL: Rows = rows("9.7.4.3", &[
    form(&[opt(&RN), opt(&FTZ), opt(&SAT), T.of(HALF)], &[d(T), a(T), b(T)]).ptx(4, 2).sm(53),
    form(&[opt(&RN), T.of(BRAIN)],                    &[d(T), a(T), b(T)]).ptx(7, 8).sm(90),
]);
pub static FMA: Rows = rows("9.7.4.4", &[
    form(&[one(M::Rn), opt(&FTZ), opt(&SAT), T.of(HALF)], &[d(T), a(T), b(T), c(T)]).ptx(4, 2).sm(53),
    form(&[one(M::Rn), opt(&FTZ), one(M::Relu), T.of(HALF)], &[d(T), a(T), b(T), c(T)]).ptx(7, 0).sm(80),
    form(&[one(M::Rn), opt(&RELU), T.of(BRAIN)],      &[d(T), a(T), b(T), c(T)]).ptx(7, 0).sm(80),
    form(&[one(M::Rn), one(M::Oob), opt(&RELU), T.of(&[F16, F16x2, Bf16, Bf16x2])], &[d(T), a(T), b(T), c(T)]).ptx(8, 1).sm(90),
    form(&[one(M::Rn), one(M::Oob), one(M::Sat), T.of(HALF)], &[d(T), a(T), b(T), c(T)]).ptx(8, 1).sm(90), // not in the manual
    form(&[req(&DIRECTED), opt(&RELU), T.of(BRAIN)],  &[d(T), a(T), b(T), c(T)]).ptx(7, 0).sm(80), // not in the manual
    form(&[req(&DIRECTED), one(M::Oob), opt(&RELU), T.of(BRAIN)], &[d(T), a(T), b(T), c(T)]).ptx(8, 1).sm(90), // not in the manual
]);
static DIRECTED: Class = Class::new("rounding", &[M::Rz, M::Rm, M::Rp]);
pub static NEG: Rows = rows("9.7.4.5", &[
    form(&[opt(&FTZ), T.of(HALF)],                    &[d(T), a(T)]).ptx(6, 0).sm(53),
    form(&[T.of(BRAIN)],                              &[d(T), a(T)]).ptx(7, 0).sm(80),
]);
pub static ABS_: Rows = rows("9.7.4.6", &[
    form(&[opt(&FTZ), T.of(HALF)],                    &[d(T), a(T)]).ptx(6, 5).sm(53),
    form(&[T.of(BRAIN)],                              &[d(T), a(T)]).ptx(7, 0).sm(80),
]);
pub static MIN: Rows = rows("9.7.4.7", EXTREME);
pub static MAX: Rows = rows("9.7.4.8", EXTREME);
static EXTREME: &[Form] = &[
    form(&[opt(&FTZ), opt(&NAN), T.of(HALF)],         &[d(T), a(T), b(T)]).ptx(7, 0).sm(80),
    form(&[opt(&NAN), T.of(BRAIN)],                   &[d(T), a(T), b(T)]).ptx(7, 0).sm(80),
    form(&[opt(&FTZ), opt(&NAN), one(M::Xorsign), one(M::Abs), T.of(HALF)], &[d(T), a(T), b(T)]).ptx(7, 2).sm(86),
    form(&[opt(&NAN), one(M::Xorsign), one(M::Abs), T.of(BRAIN)], &[d(T), a(T), b(T)]).ptx(7, 2).sm(86),
];
pub static TANH: Rows = rows("9.7.4.9", &[
    form(&[one(M::Approx), T.of(HALF)],               &[d(T), a(T)]).ptx(7, 0).sm(75).absolute(-10.987),
    form(&[one(M::Approx), T.of(BRAIN)],              &[d(T), a(T)]).ptx(7, 8).sm(90).absolute(-8.0),
]);
pub static EX2: Rows = rows("9.7.4.10", &[
    form(&[one(M::Approx), T.of(HALF)],               &[d(T), a(T)]).ptx(7, 0).sm(75).relative(-9.9),
    form(&[one(M::Approx), one(M::Ftz), T.of(BRAIN)], &[d(T), a(T)]).ptx(7, 8).sm(90).relative(-7.0),
]);
