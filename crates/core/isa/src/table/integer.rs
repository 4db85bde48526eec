//! Integer arithmetic (manual, section 9.7.1). Opcodes with floating-point forms collect their rows here.

use super::{alternate, class::*, extended, float, half, mixed};
use crate::{Effect::Pure, Mod as M, Ty::*, Type::*, Var::*, *};

pub static ADD: Op = joined!("add", Pure, "`d = a + b`; integers wrap unless `.sat`.",
    rows("9.7.1.1", &[
        //    modifiers as written                operands                since / target / exceptions
        form(&[T.of(INT)],                        &[d(T), a(T), b(T)]),
        form(&[one(M::Sat), T.of(&[S32])],        &[d(T), a(T), b(T)]),
        form(&[T.of(&[U16x2, S16x2])],            &[d(T), a(T), b(T)]).ptx(8, 0).sm(90),
        form(&[one(M::Sat), T.of(&[U32, U16x2, S16x2])], &[d(T), a(T), b(T)]).ptx(9, 2).targets(PACKED),
        form(&[opt(&SAT), T.of(&[U8x4, S8x4])],   &[d(T), a(T), b(T)]).ptx(9, 2).targets(PACKED),
    ]), extended::ADD_CC, float::ADD, half::ADD, mixed::ADD, mixed::ADD_PACKED, alternate::ADD);
/// Four bytes at a time, and saturation of packed halves.
const PACKED: &[Target] = &[Target::family(107), Target::family(120), Target::arch(120)];
pub static SUB: Op = joined!("sub", Pure, "`d = a - b`; integers wrap unless `.sat`.",
    rows("9.7.1.2", &[
        form(&[T.of(INT)],                        &[d(T), a(T), b(T)]),
        form(&[one(M::Sat), T.of(&[S32])],        &[d(T), a(T), b(T)]),
        form(&[opt(&SAT), T.of(&[U8x4, S8x4])],   &[d(T), a(T), b(T)]).ptx(9, 2).targets(PACKED),
    ]), extended::SUB_CC, float::SUB, half::SUB, mixed::SUB, mixed::SUB_PACKED, alternate::SUB);
pub static MUL: Op = joined!("mul", Pure, "`d = a * b`, with half of the product or all of it.",
    rows("9.7.1.3", &[
        form(&[req(&HI_LO), T.of(INT)],           &[d(T), a(T), b(T)]).fixed(1),
        form(&[one(M::Wide), T.of(&[U16, U32, S16, S32])], &[dst(Wide(T)), a(T), b(T)]).fixed(1),
    ]), float::MUL, half::MUL, mixed::MUL_PACKED, alternate::MUL);
pub static MAD: Op = joined!("mad", Pure, "`d = a * b + c` with half of the product or all of it.",
    rows("9.7.1.4", &[
        form(&[req(&HI_LO), T.of(INT)],           &[d(T), a(T), b(T), c(T)]).fixed(1),
        form(&[one(M::Wide), T.of(&[U16, U32, S16, S32])], &[dst(Wide(T)), a(T), b(T), src(Wide(T)).named("c")]).fixed(1),
        form(&[one(M::Hi), one(M::Sat), T.of(&[S32])], &[d(T), a(T), b(T), c(T)]).fixed(1),
    ]), extended::MAD_CC, float::MAD);
pub static CLMAD: Op = op("clmad", "9.7.1", Pure, "Carry-less product of `a` and `b`, its low or high half, xor `c`.", &[
    form(&[req(&HI_LO), T.of(INT64)],             &[d(T), a(T), b(T), c(T)]).fixed(1).ptx(9, 3).sm(80),
]);
pub static MUL24: Op = op("mul24", "9.7.1.5", Pure, "The low or high 32 bits of a 48-bit product.", &[
    form(&[req(&HI_LO), T.of(INT32)],             &[d(T), a(T), b(T)]).fixed(1),
]);
pub static MAD24: Op = op("mad24", "9.7.1.6", Pure, "The low or high 32 bits of a 48-bit product, plus `c`.", &[
    form(&[req(&HI_LO), T.of(INT32)],             &[d(T), a(T), b(T), c(T)]).fixed(1),
    form(&[one(M::Hi), one(M::Sat), T.of(&[S32])], &[d(T), a(T), b(T), c(T)]).fixed(1),
]);
pub static SAD: Op = op("sad", "9.7.1.7", Pure, "`d = c + |a - b|`.", &[
    form(&[T.of(INT)],                            &[d(T), a(T), b(T), c(T)]),
]);
pub static DIV: Op = joined!("div", Pure, "`d = a / b`.",
    rows("9.7.1.8", &[
        form(&[T.of(INT)],                        &[d(T), a(T), b(T)]),
    ]), float::DIV);
pub static REM: Op = op("rem", "9.7.1.9", Pure, "The remainder of `a / b`.", &[
    form(&[T.of(INT)],                            &[d(T), a(T), b(T)]),
]);
pub static ABS_: Op = joined!("abs", Pure, "`d = |a|`.",
    rows("9.7.1.10", &[
        form(&[T.of(SIGNED)],                     &[d(T), a(T)]),
    ]), float::ABS_, half::ABS_);
pub static NEG: Op = joined!("neg", Pure, "`d = -a`.",
    rows("9.7.1.11", &[
        form(&[T.of(SIGNED)],                     &[d(T), a(T)]),
        form(&[T.of(&[S8x4])],                    &[d(T), a(T)]).ptx(9, 2).targets(PACKED),
    ]), float::NEG, half::NEG);
pub static MIN: Op = joined!("min", Pure, "The smaller of `a` and `b`.",
    rows("9.7.1.12", &[
        form(&[T.of(INT)],                        &[d(T), a(T), b(T)]),
        form(&[T.of(&[U16x2, S16x2])],            &[d(T), a(T), b(T)]).ptx(8, 0).sm(90),
        form(&[one(M::Relu), T.of(&[S16x2, S32])], &[d(T), a(T), b(T)]).ptx(8, 0).sm(90),
        form(&[T.of(&[U8x4])],                    &[d(T), a(T), b(T)]).ptx(9, 2).targets(PACKED),
        form(&[opt(&RELU), T.of(&[S8x4])],        &[d(T), a(T), b(T)]).ptx(9, 2).targets(PACKED),
    ]), float::MIN, half::MIN);
pub static MAX: Op = joined!("max", Pure, "The larger of `a` and `b`.",
    rows("9.7.1.13", &[
        form(&[T.of(INT)],                        &[d(T), a(T), b(T)]),
        form(&[T.of(&[U16x2, S16x2])],            &[d(T), a(T), b(T)]).ptx(8, 0).sm(90),
        form(&[one(M::Relu), T.of(&[S16x2, S32])], &[d(T), a(T), b(T)]).ptx(8, 0).sm(90),
        form(&[T.of(&[U8x4])],                    &[d(T), a(T), b(T)]).ptx(9, 2).targets(PACKED),
        form(&[opt(&RELU), T.of(&[S8x4])],        &[d(T), a(T), b(T)]).ptx(9, 2).targets(PACKED),
    ]), float::MAX, half::MAX);
pub static POPC: Op = op("popc", "9.7.1.14", Pure, "The number of set bits.", &[
    form(&[T.of(BITS32)],                         &[dst(Is(U32)), a(T)]).ptx(2, 0).sm(20),
]);
pub static CLZ: Op = op("clz", "9.7.1.15", Pure, "The number of leading zeros.", &[
    form(&[T.of(BITS32)],                         &[dst(Is(U32)), a(T)]).ptx(2, 0).sm(20),
]);
pub static BFIND: Op = op("bfind", "9.7.1.16", Pure, "The position of the most significant non-sign bit.", &[
    form(&[opt(&SHIFTAMT), T.of(&[U32, U64, S32, S64])], &[dst(Is(U32)), a(T)]).ptx(2, 0).sm(20),
]);
static SHIFTAMT: Class = Class::new("shift amount", &[M::Shiftamt]);
pub static FNS: Op = op("fns", "9.7.1.17", Pure, "The position of the n-th set bit from a base.", &[
    form(&[T.of(&[B32])], &[d(T), src(Is(B32)).named("mask"), src(Is(B32)).named("base"), src(Is(B32)).named("offset")]).ptx(6, 0).sm(30),
]);
pub static BREV: Op = op("brev", "9.7.1.18", Pure, "The bits in reverse order.", &[
    form(&[T.of(BITS32)],                         &[d(T), a(T)]).ptx(2, 0).sm(20),
]);
pub static BFE: Op = op("bfe", "9.7.1.19", Pure, "Extract a bit field and extend it.", &[
    form(&[T.of(&[U32, U64, S32, S64])],          &[d(T), a(T), src(Is(U32)).named("b").range(0, 255), src(Is(U32)).named("c").range(0, 255)]).ptx(2, 0).sm(20),
]);
pub static BFI: Op = op("bfi", "9.7.1.20", Pure, "Insert a bit field of `a` into `b`.", &[
    form(&[T.of(BITS32)], &[d(T).named("f"), a(T), b(T), src(Is(U32)).named("c").range(0, 255), src(Is(U32)).named("d").range(0, 255)]).ptx(2, 0).sm(20),
]);
pub static SZEXT: Op = op("szext", "9.7.1.21", Pure, "Sign- or zero-extend the low N bits.", &[
    form(&[req(&CLAMP_WRAP), T.of(INT32)],        &[d(T), a(T), src(Is(U32)).named("b")]).ptx(7, 6).sm(70),
]);
pub static BMSK: Op = op("bmsk", "9.7.1.22", Pure, "A mask of `b` bits from position `a`.", &[
    form(&[req(&CLAMP_WRAP), T.of(&[B32])],       &[dst(Is(U32)), src(Is(U32)), src(Is(U32)).named("b")]).ptx(7, 6).sm(70),
]);
pub static DP4A: Op = op("dp4a", "9.7.1.23", Pure, "Dot product of four bytes, plus `c`.", &[
    form(&[T.of(INT32), U.of(INT32)],             &[dst(Is(U32)), a(T), b(U), src(Is(U32)).named("c")]).ptx(5, 0).sm(61),
]);
pub static DP2A: Op = op("dp2a", "9.7.1.24", Pure, "Dot product of two halves and two bytes, plus `c`.", &[
    form(&[req(&HI_LO), T.of(INT32), U.of(INT32)], &[dst(Is(U32)), a(T), b(U), src(Is(U32)).named("c")]).fixed(1).ptx(5, 0).sm(61),
]);
