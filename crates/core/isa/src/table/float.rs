//! Floating-point arithmetic in single and double precision (manual, section 9.7.3).
//!
//! Up to PTX ISA 1.3 the roots, quotients and transcendental functions had no `.approx` and no rounding; those spellings are
//! separate rows, rejected since 1.4.

use super::{class::*, half};
use crate::{Effect::Pure, Mod as M, Type::*, Var::*, *};

/// Directed rounding of `.f32` needs `sm_20`.
const DIRECTED32: &[Need] = &[m(M::Rm, 1, 0, 20), m(M::Rp, 1, 0, 20)];
/// Directed rounding of `.f64` sums and products needs `sm_13`.
const DIRECTED64_13: &[Need] = &[m(M::Rm, 1, 0, 13), m(M::Rp, 1, 0, 13)];
static F32_: &[Type] = &[F32];
static F64_: &[Type] = &[F64];

pub static TESTP: Op = op("testp", "9.7.3.1", Pure, "Test a property of a floating-point number.", &[
    form(&[req(&PROPERTY), T.of(&[F32, F64])],        &[p_out(), a(T)]).ptx(2, 0).sm(20),
    form(&[T.of(&[F32, F64])],                        &[p_out(), a(T)]).ptx(2, 0).sm(20), // not in the manual
]);
static PROPERTY: Class =
    Class::new("property", &[M::Finite, M::Infinite, M::Number, M::Notanumber, M::Normal, M::Subnormal]);
pub static COPYSIGN: Op = op("copysign", "9.7.3.2", Pure, "The magnitude of `b` with the sign of `a`.", &[
    form(&[T.of(&[F32, F64])],                        &[d(T), a(T), b(T)]).ptx(2, 0).sm(20),
]);
pub static ADD: Rows = rows("9.7.3.3", &[
    form(&[opt(&RND), opt(&FTZ), opt(&SAT), T.of(F32_)], &[d(T), a(T), b(T)]).only(DIRECTED32),
    form(&[opt(&RND), opt(&FTZ), T.of(&[F32x2])],     &[d(T), a(T), b(T)]).ptx(8, 6).sm(100),
    form(&[opt(&RND), T.of(F64_)],                    &[d(T), a(T), b(T)]).only(DIRECTED64_13),
]);
pub static SUB: Rows = rows("9.7.3.4", &[
    form(&[opt(&RND), opt(&FTZ), opt(&SAT), T.of(F32_)], &[d(T), a(T), b(T)]).only(DIRECTED32),
    form(&[opt(&RND), opt(&FTZ), T.of(&[F32x2])],     &[d(T), a(T), b(T)]).ptx(8, 6).sm(100),
    form(&[opt(&RND), T.of(F64_)],                    &[d(T), a(T), b(T)]).only(DIRECTED64_13),
]);
pub static MUL: Rows = rows("9.7.3.5", &[
    form(&[opt(&RND), opt(&FTZ), opt(&SAT), T.of(F32_)], &[d(T), a(T), b(T)]).only(DIRECTED32),
    form(&[opt(&RND), opt(&FTZ), T.of(&[F32x2])],     &[d(T), a(T), b(T)]).ptx(8, 6).sm(100),
    form(&[opt(&RND), T.of(F64_)],                    &[d(T), a(T), b(T)]).only(DIRECTED64_13),
]);
pub static FMA: Op = joined!("fma", Pure, "`d = a * b + c` with one rounding.",
    rows("9.7.3.6", &[
        form(&[req(&RND), opt(&FTZ), opt(&SAT), T.of(F32_)], &[d(T), a(T), b(T), c(T)]).ptx(2, 0).sm(20),
        form(&[req(&RND), opt(&FTZ), T.of(&[F32x2])], &[d(T), a(T), b(T), c(T)]).ptx(8, 6).sm(100),
        form(&[req(&RND), T.of(F64_)],                &[d(T), a(T), b(T), c(T)]).ptx(1, 4).only(DIRECTED64_13),
    ]), half::FMA, super::mixed::FMA, super::alternate::FMA);
pub static MAD: Rows = rows("9.7.3.7", &[
    // without rounding: for sm_1x, and elsewhere up to PTX ISA 3.1, where it means `.rn`
    form(&[opt(&FTZ), opt(&SAT), T.of(F32_)],         &[d(T), a(T), b(T), c(T)]).until(3, 2, 20),
    form(&[req(&RND), opt(&FTZ), opt(&SAT), T.of(F32_)], &[d(T), a(T), b(T), c(T)]).sm(20),
    form(&[req(&RND), T.of(F64_)],                    &[d(T), a(T), b(T), c(T)]).only(DIRECTED64_13),
    form(&[T.of(F64_)],                               &[d(T), a(T), b(T), c(T)]).until(1, 4, 0),
]);
pub static DIV: Rows = rows("9.7.3.8", &[
    form(&[one(M::Approx), opt(&FTZ), T.of(F32_)],    &[d(T), a(T), b(T)]).ptx(1, 4).ulp(2.0),
    form(&[one(M::Full), opt(&FTZ), T.of(F32_)],      &[d(T), a(T), b(T)]).fixed(1).ptx(1, 4).ulp(2.0),
    form(&[req(&RND), opt(&FTZ), T.of(F32_)],         &[d(T), a(T), b(T)]).ptx(1, 4).sm(20),
    form(&[req(&RND), T.of(F64_)],                    &[d(T), a(T), b(T)]).only(DIRECTED64),
    form(&[T.of(&[F32, F64])],                        &[d(T), a(T), b(T)]).until(1, 4, 0).ulp(2.0),
]);
/// `.rz`, `.rm`, `.rp` of `.f64` quotients and roots need `sm_20`.
const DIRECTED64: &[Need] = &[m(M::Rz, 1, 4, 20), m(M::Rm, 1, 4, 20), m(M::Rp, 1, 4, 20)];
pub static ABS_: Rows = rows("9.7.3.9", &[
    form(&[opt(&FTZ), T.of(F32_)],                    &[d(T), a(T)]),
    form(&[T.of(F64_)],                               &[d(T), a(T)]),
]);
pub static NEG: Rows = rows("9.7.3.10", &[
    form(&[opt(&FTZ), T.of(F32_)],                    &[d(T), a(T)]),
    form(&[T.of(F64_)],                               &[d(T), a(T)]),
]);
pub static MIN: Rows = rows("9.7.3.11", EXTREME);
pub static MAX: Rows = rows("9.7.3.12", EXTREME);
static EXTREME: &[Form] = &[
    form(&[opt(&FTZ), opt(&NAN), T.of(F32_)],         &[d(T), a(T), b(T)]).only(&[m(M::PropagateNan, 7, 0, 80)]),
    form(&[opt(&FTZ), opt(&NAN), one(M::Xorsign), one(M::Abs), T.of(F32_)], &[d(T), a(T), b(T)]).ptx(7, 2).sm(86),
    form(&[opt(&FTZ), opt(&NAN), opt(&ABS), T.of(F32_)], &[d(T), a(T), b(T), c(T)]).ptx(8, 8).sm(100),
    form(&[T.of(F64_)],                               &[d(T), a(T), b(T)]),
];
pub static RCP: Op = op("rcp", "9.7.3.13", Pure, "`d = 1 / a`.", &[
    form(&[one(M::Approx), opt(&FTZ), T.of(F32_)],    &[d(T), a(T)]).ptx(1, 4).ulp(1.0),
    form(&[req(&RND), opt(&FTZ), T.of(F32_)],         &[d(T), a(T)]).ptx(1, 4).sm(20),
    form(&[req(&RND), T.of(F64_)],                    &[d(T), a(T)]).ptx(1, 4).only(DIRECTED64),
    form(&[one(M::Approx), one(M::Ftz), T.of(F64_)],  &[d(T), a(T)]).ptx(2, 1).sm(20).relative(-20.0).section("9.7.3.14"),
    form(&[req(&RND), one(M::Ftz), T.of(F64_)],       &[d(T), a(T)]).ptx(1, 4).only(DIRECTED64), // not in the manual
    form(&[T.of(F32_)],                               &[d(T), a(T)]).until(1, 4, 0).ulp(1.0), // ptxas refuses `rcp.f64`
]);
pub static SQRT: Op = op("sqrt", "9.7.3.15", Pure, "The square root.", &[
    form(&[one(M::Approx), opt(&FTZ), T.of(F32_)],    &[d(T), a(T)]).ptx(1, 4).relative(-23.0),
    form(&[req(&RND), opt(&FTZ), T.of(F32_)],         &[d(T), a(T)]).ptx(1, 4).sm(20),
    form(&[req(&RND), T.of(F64_)],                    &[d(T), a(T)]).only(DIRECTED64),
    form(&[T.of(&[F32, F64])],                        &[d(T), a(T)]).until(1, 4, 0).relative(-23.0),
]);
pub static RSQRT: Op = op("rsqrt", "9.7.3.16", Pure, "The reciprocal of the square root.", &[
    form(&[one(M::Approx), opt(&FTZ), T.of(F32_)],    &[d(T), a(T)]).ptx(1, 4).relative(-22.9),
    form(&[one(M::Approx), T.of(F64_)],               &[d(T), a(T)]).ptx(1, 4).relative(-20.0),
    form(&[one(M::Approx), one(M::Ftz), T.of(F64_)],  &[d(T), a(T)]).ptx(4, 0).sm(20).relative(-20.0).section("9.7.3.17"),
    form(&[T.of(&[F32, F64])],                        &[d(T), a(T)]).until(1, 4, 0).relative(-22.9),
]);
pub static SIN: Op = op("sin", "9.7.3.18", Pure, "The sine, in radians.", &[
    form(&[one(M::Approx), opt(&FTZ), T.of(F32_)],    &[d(T), a(T)]).ptx(1, 4).absolute(-20.5),
    form(&[T.of(F32_)],                               &[d(T), a(T)]).until(1, 4, 0).absolute(-20.5),
]);
pub static COS: Op = op("cos", "9.7.3.19", Pure, "The cosine, in radians.", &[
    form(&[one(M::Approx), opt(&FTZ), T.of(F32_)],    &[d(T), a(T)]).ptx(1, 4).absolute(-20.5),
    form(&[T.of(F32_)],                               &[d(T), a(T)]).until(1, 4, 0).absolute(-20.5),
]);
pub static LG2: Op = op("lg2", "9.7.3.20", Pure, "The base-2 logarithm.", &[
    form(&[one(M::Approx), opt(&FTZ), T.of(F32_)],    &[d(T), a(T)]).ptx(1, 4).absolute(-22.0),
    form(&[T.of(F32_)],                               &[d(T), a(T)]).until(1, 4, 0).absolute(-22.0),
]);
pub static EX2: Op = joined!("ex2", Pure, "2 to the power of `a`.",
    rows("9.7.3.21", &[
        form(&[one(M::Approx), opt(&FTZ), T.of(F32_)], &[d(T), a(T)]).ptx(1, 4).ulp(2.0),
        form(&[T.of(F32_)],                           &[d(T), a(T)]).until(1, 4, 0).ulp(2.0),
    ]), half::EX2);
pub static TANH: Op = joined!("tanh", Pure, "The hyperbolic tangent.",
    rows("9.7.3.22", &[
        form(&[one(M::Approx), T.of(F32_)],           &[d(T), a(T)]).ptx(7, 0).sm(75).relative(-11.0),
    ]), half::TANH);
