//! Mixed precision: half-precision operands, single-precision results and the reverse (manual, section 9.7.5).
//!
//! The packed forms are those of PTX ISA 9.4.

use super::{class::*, target::F107};
use crate::{Mod as M, Type::*, Var::*, *};

static HALF: &[Type] = &[F16, Bf16];
static HALVES: &[Type] = &[F16x2, Bf16x2];
static SINGLE: &[Type] = &[F32];
static PAIR: &[Type] = &[F32x2];

/// Pairs of singles, rounded towards zero to halves.
macro_rules! narrowed {
    ($($more:expr)?) => { &[
        $($more,)?
        form(&[one(M::Rz), one(M::Ftz), T.of(&[F16x2]), U.of(PAIR), V.of(PAIR)], &[d(T), a(U), c(V)]).ptx(9, 4).targets(F107),
        form(&[one(M::Rz), T.of(&[Bf16x2]), U.of(PAIR), V.of(PAIR)],             &[d(T), a(U), c(V)]).ptx(9, 4).targets(F107),
    ] };
}
static SUMS: &[Form] = narrowed! {
    form(&[opt(&RND), T.of(PAIR), U.of(HALVES), V.of(PAIR)],                     &[d(T), a(U), c(V)]).ptx(9, 4).targets(F107)
};

pub static ADD: Rows = rows("9.7.5.1", &[
    form(&[opt(&RND), opt(&SAT), T.of(SINGLE), U.of(HALF)], &[d(T), a(U), c(T)]).ptx(8, 6).sm(100),
]);
pub static ADD_PACKED: Rows = rows("9.7.5.1", SUMS);
pub static SUB: Rows = rows("9.7.5.2", &[
    form(&[opt(&RND), opt(&SAT), T.of(SINGLE), U.of(HALF)], &[d(T), a(U), c(T)]).ptx(8, 6).sm(100),
]);
pub static SUB_PACKED: Rows = rows("9.7.5.2", SUMS);
pub static MUL_PACKED: Rows = rows("9.7.5.4", narrowed!());
pub static FMA: Rows = rows("9.7.5.3", &[
    form(&[req(&RND), opt(&SAT), T.of(SINGLE), U.of(HALF)], &[d(T), a(U), b(U), c(T)]).ptx(8, 6).sm(100),
    form(&[req(&RND), T.of(PAIR), U.of(HALVES), V.of(PAIR), W.of(PAIR)], &[d(T), a(U), b(V), c(W)]).ptx(9, 4).targets(F107),
]);
