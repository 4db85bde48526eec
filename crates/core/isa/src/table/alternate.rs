//! Sums and products of four packed 8-, 6- and 4-bit floats (section 9.7.6 of the manual of PTX ISA 9.4).

use super::class::*;
use crate::{Mod as M, Type::*, Var::*, *};

static RESULT: &[Type] = &[E5m2x4, E4m3x4];
static OPERAND: &[Type] = &[E5m2x4, E4m3x4, E3m2x4, E2m3x4, E2m1x4, E2m1p4x4, Ue8m0x4];
static ARCHS: &[Target] = &[Target::arch(100), Target::arch(103)];
static SATFINITE: Class = Class::new("saturation", &[M::Satfinite]);

static SUM: &[Form] = &[form(&[opt(&RN), opt(&SATFINITE), T.of(RESULT), U.of(OPERAND)], &[d(T).braced(), a(U).braced(), c(T).braced()]).ptx(9, 4).targets(ARCHS)];
pub static ADD: Rows = rows("9.7.6.1", SUM);
pub static SUB: Rows = rows("9.7.6.2", SUM);
pub static MUL: Rows = rows("9.7.6.3", &[
    form(&[opt(&RN), opt(&SATFINITE), T.of(RESULT), U.of(OPERAND), V.of(OPERAND)], &[d(T).braced(), a(U).braced(), c(V).braced()]).ptx(9, 4).targets(ARCHS),
]);
pub static FMA: Rows = rows("9.7.6.4", &[
    form(&[opt(&RN), opt(&SATFINITE), T.of(RESULT), U.of(OPERAND), V.of(OPERAND)], &[d(T).braced(), a(U).braced(), b(V).braced(), c(T).braced()]).ptx(9, 4).targets(ARCHS),
]);
