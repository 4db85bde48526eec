//! Logic and shifts (manual, section 9.7.8).

use super::class::*;
use crate::{Effect::Pure, Mod as M, Ty::*, Type::*, Var::*, *};

static LOGIC: &[Type] = &[Pred, B16, B32, B64];
/// Shift counts always have 32 bits.
const COUNT: Opnd = src(Is(U32)).named("b");

pub static AND: Op = op("and", "9.7.8.1", Pure, "Bitwise and.", &[
    form(&[T.of(LOGIC)],                         &[d(T), a(T), b(T)]),
]);
pub static OR: Op = op("or", "9.7.8.2", Pure, "Bitwise or.", &[
    form(&[T.of(LOGIC)],                         &[d(T), a(T), b(T)]),
]);
pub static XOR: Op = op("xor", "9.7.8.3", Pure, "Bitwise exclusive or.", &[
    form(&[T.of(LOGIC)],                         &[d(T), a(T), b(T)]),
]);
pub static NOT: Op = op("not", "9.7.8.4", Pure, "Bitwise complement.", &[
    form(&[T.of(LOGIC)],                         &[d(T), a(T)]),
]);
pub static CNOT: Op = op("cnot", "9.7.8.5", Pure, "`d = a == 0 ? 1 : 0`.", &[
    form(&[T.of(BITS)],                          &[d(T), a(T)]),
]);
pub static LOP3: Op = op("lop3", "9.7.8.6", Pure, "Any bitwise function of three inputs, given by its truth table.", &[
    form(&[T.of(&[B32])],                        &[d(T).sink(), a(T), b(T), c(T), imm(Is(U32)).named("immLut")]).ptx(4, 3).sm(50),
    form(&[req(&LOP3_BOOL), T.of(&[B32])],       &[d(T).paired(Is(Pred)).sink(), a(T), b(T), c(T), imm(Is(U32)).named("immLut"), src(Is(Pred)).named("q")]).ptx(8, 2).sm(70),
]);
static LOP3_BOOL: Class = Class::new("combination", &[M::Or, M::And]);
pub static SHF: Op = op("shf", "9.7.8.7", Pure, "Shift the 64 bits of `b` and `a`; return one half.", &[
    form(&[req(&DIRECTION), req(&CLAMP_WRAP), T.of(&[B32])], &[d(T), a(T), b(T), src(Is(U32)).named("c")]).fixed(1).ptx(3, 1).sm(32),
]);
static DIRECTION: Class = Class::new("direction", &[M::L, M::R]);
pub static SHL: Op = op("shl", "9.7.8.8", Pure, "Shift left.", &[
    form(&[T.of(BITS)],                          &[d(T), a(T), COUNT]),
]);
pub static SHR: Op = op("shr", "9.7.8.9", Pure, "Shift right; arithmetic for signed types.", &[
    form(&[T.of(&[B16, B32, B64, U16, U32, U64, S16, S32, S64])], &[d(T), a(T), COUNT]),
]);
