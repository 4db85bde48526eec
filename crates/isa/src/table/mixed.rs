//! Mixed precision: half-precision operands, single-precision result (manual, section 9.7.5).

use super::class::*;
use crate::{Type::*, Var::*, *};

static HALF: &[Type] = &[F16, Bf16];
static SINGLE: &[Type] = &[F32];

pub static ADD: Rows = rows("9.7.5.1", &[
    form(&[opt(&RND), opt(&SAT), T.of(SINGLE), U.of(HALF)], &[d(T), a(U), c(T)]).ptx(8, 6).sm(100),
]);
pub static SUB: Rows = rows("9.7.5.2", &[
    form(&[opt(&RND), opt(&SAT), T.of(SINGLE), U.of(HALF)], &[d(T), a(U), c(T)]).ptx(8, 6).sm(100),
]);
pub static FMA: Rows = rows("9.7.5.3", &[
    form(&[req(&RND), opt(&SAT), T.of(SINGLE), U.of(HALF)], &[d(T), a(U), b(U), c(T)]).ptx(8, 6).sm(100),
]);
