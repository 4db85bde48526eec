//! Extended-precision integer arithmetic: the carry flag CC.CF (manual, section 9.7.2).
//!
//! According to the manual, all 64-bit forms require PTX ISA 4.3; ptxas requires it only for `.cc` (see [`COMMON`]).

use super::class::*;
use crate::{Effect::Pure, Mod as M, Type::*, Var::*, *};

static CARRY: &[Type] = &[U32, S32, U64, S64];

pub static ADD_CC: Rows = rows("9.7.2.1", &[
    form(&[one(M::Cc), T.of(CARRY)],             &[d(T), a(T), b(T)]).ptx(1, 2),
]);
pub static ADDC: Op = op("addc", "9.7.2.2", Pure, "`d = a + b + carry`.", &[
    form(&[opt(&CC), T.of(CARRY)],               &[d(T), a(T), b(T)]).ptx(1, 2),
]);
pub static SUB_CC: Rows = rows("9.7.2.3", &[
    form(&[one(M::Cc), T.of(CARRY)],             &[d(T), a(T), b(T)]).ptx(1, 3),
]);
pub static SUBC: Op = op("subc", "9.7.2.4", Pure, "`d = a + ~b + carry`: subtracts one more if the carry is clear.", &[
    form(&[opt(&CC), T.of(CARRY)],               &[d(T), a(T), b(T)]).ptx(1, 3),
]);
pub static MAD_CC: Rows = rows("9.7.2.5", &[
    form(&[req(&HI_LO), one(M::Cc), T.of(CARRY)], &[d(T), a(T), b(T), c(T)]).fixed(1).ptx(3, 0).sm(20),
]);
pub static MADC: Op = op("madc", "9.7.2.6", Pure, "`d = half of a * b + c + carry`.", &[
    form(&[req(&HI_LO), opt(&CC), T.of(CARRY)],  &[d(T), a(T), b(T), c(T)]).fixed(1).ptx(3, 0).sm(20),
]);
