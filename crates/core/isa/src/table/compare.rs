//! Comparison and selection, in single, double and half precision (manual, sections 9.7.6 and 9.7.7).

use super::class::*;
use super::target::F107;
use crate::{Effect::Pure, Ty::*, Type::*, Var::*, *};

static BITWISE: &[Type] = &[B16, B32, B64];
static UNSIGNED: &[Type] = &[U16, U32, U64];
static HALF: &[Type] = &[F16];
static HALF2: &[Type] = &[F16x2];
static BRAIN: &[Type] = &[Bf16];
static BRAIN2: &[Type] = &[Bf16x2];
/// What `set` writes: all ones, or 1.0.
static SET: &[Type] = &[U32, S32, F32];
static SET16: &[Type] = &[U16, S16, U32, S32];
static SET_PAIR: &[Type] = &[U32, S32];

pub static SET_: Op = joined!("set", Pure, "Compare; write all ones, or 1.0, for true.",
    rows("9.7.6.1", &[
        form(&[req(&CMP_EQ), T.of(SET), U.of(BITWISE)],                              &[d(T), a(U), b(U)]),
        form(&[req(&CMP_EQ), req(&BOOL), T.of(SET), U.of(BITWISE)],                  &[d(T), a(U), b(U), p_in()]),
        form(&[req(&CMP_UNSIGNED), T.of(SET), U.of(UNSIGNED)],                       &[d(T), a(U), b(U)]),
        form(&[req(&CMP_UNSIGNED), req(&BOOL), T.of(SET), U.of(UNSIGNED)],           &[d(T), a(U), b(U), p_in()]),
        form(&[req(&CMP), T.of(SET), U.of(SIGNED)],                                  &[d(T), a(U), b(U)]),
        form(&[req(&CMP), req(&BOOL), T.of(SET), U.of(SIGNED)],                      &[d(T), a(U), b(U), p_in()]),
        form(&[req(&CMP_FLOAT), opt(&FTZ), T.of(SET), U.of(&[F32])],                 &[d(T), a(U), b(U)]),
        form(&[req(&CMP_FLOAT), req(&BOOL), opt(&FTZ), T.of(SET), U.of(&[F32])],     &[d(T), a(U), b(U), p_in()]),
        form(&[req(&CMP_FLOAT), T.of(SET), U.of(&[F64])],                            &[d(T), a(U), b(U)]),
        form(&[req(&CMP_FLOAT), req(&BOOL), T.of(SET), U.of(&[F64])],                &[d(T), a(U), b(U), p_in()]),
    ]),
    rows("9.7.6.1", &[
        form(&[req(&CMP_UNSIGNED), T.of(&[U8x4, U16x2])],                            &[d(T), a(T), b(T)]).ptx(9, 4).targets(F107),
        form(&[req(&CMP), T.of(&[S8x4, S16x2])],                                     &[d(T), a(T), b(T)]).ptx(9, 4).targets(F107),
    ]),
    rows("9.7.7.1", &[
        form(&[req(&CMP_EQ), T.of(HALF), U.of(BITWISE)],                             &[d(T), a(U), b(U)]).ptx(4, 2).sm(53),
        form(&[req(&CMP_EQ), req(&BOOL), T.of(HALF), U.of(BITWISE)],                 &[d(T), a(U), b(U), p_in()]).ptx(4, 2).sm(53),
        form(&[req(&CMP_UNSIGNED), T.of(HALF), U.of(UNSIGNED)],                      &[d(T), a(U), b(U)]).ptx(4, 2).sm(53),
        form(&[req(&CMP_UNSIGNED), req(&BOOL), T.of(HALF), U.of(UNSIGNED)],          &[d(T), a(U), b(U), p_in()]).ptx(4, 2).sm(53),
        form(&[req(&CMP), T.of(HALF), U.of(SIGNED)],                                 &[d(T), a(U), b(U)]).ptx(4, 2).sm(53),
        form(&[req(&CMP), req(&BOOL), T.of(HALF), U.of(SIGNED)],                     &[d(T), a(U), b(U), p_in()]).ptx(4, 2).sm(53),
        form(&[req(&CMP_FLOAT), opt(&FTZ), T.of(HALF), U.of(&[F16, F32])],           &[d(T), a(U), b(U)]).ptx(4, 2).sm(53),
        form(&[req(&CMP_FLOAT), req(&BOOL), opt(&FTZ), T.of(HALF), U.of(&[F16, F32])], &[d(T), a(U), b(U), p_in()]).ptx(4, 2).sm(53),
        form(&[req(&CMP_FLOAT), T.of(HALF), U.of(&[F64])],                           &[d(T), a(U), b(U)]).ptx(4, 2).sm(53),
        form(&[req(&CMP_FLOAT), req(&BOOL), T.of(HALF), U.of(&[F64])],               &[d(T), a(U), b(U), p_in()]).ptx(4, 2).sm(53),
        form(&[req(&CMP_EQ), T.of(BRAIN), U.of(BITWISE)],                            &[d(T), a(U), b(U)]).ptx(7, 8).sm(90),
        form(&[req(&CMP_EQ), req(&BOOL), T.of(BRAIN), U.of(BITWISE)],                &[d(T), a(U), b(U), p_in().reg()]).ptx(7, 8).sm(90),
        form(&[req(&CMP_UNSIGNED), T.of(BRAIN), U.of(UNSIGNED)],                     &[d(T), a(U), b(U)]).ptx(7, 8).sm(90),
        form(&[req(&CMP_UNSIGNED), req(&BOOL), T.of(BRAIN), U.of(UNSIGNED)],         &[d(T), a(U), b(U), p_in().reg()]).ptx(7, 8).sm(90),
        form(&[req(&CMP), T.of(BRAIN), U.of(SIGNED)],                                &[d(T), a(U), b(U)]).ptx(7, 8).sm(90),
        form(&[req(&CMP), req(&BOOL), T.of(BRAIN), U.of(SIGNED)],                    &[d(T), a(U), b(U), p_in().reg()]).ptx(7, 8).sm(90),
        form(&[req(&CMP_FLOAT), T.of(BRAIN), U.of(&[F16, Bf16, F32, F64])],                &[d(T), a(U), b(U)]).ptx(7, 8).sm(90),
        form(&[req(&CMP_FLOAT), req(&BOOL), T.of(BRAIN), U.of(&[F16, Bf16, F32, F64])],    &[d(T), a(U), b(U), p_in().reg()]).ptx(7, 8).sm(90),
        form(&[req(&CMP_FLOAT), opt(&FTZ), T.of(SET16), U.of(HALF)],                 &[d(T), a(U), b(U)]).ptx(6, 5).sm(53),
        form(&[req(&CMP_FLOAT), req(&BOOL), opt(&FTZ), T.of(SET16), U.of(HALF)],     &[d(T), a(U), b(U), p_in()]).ptx(6, 5).sm(53),
        form(&[req(&CMP_FLOAT), T.of(SET16), U.of(BRAIN)],                           &[d(T), a(U), b(U)]).ptx(7, 8).sm(90),
        form(&[req(&CMP_FLOAT), req(&BOOL), T.of(SET16), U.of(BRAIN)],               &[d(T), a(U), b(U), p_in().reg()]).ptx(7, 8).sm(90),
        form(&[req(&CMP_FLOAT), opt(&FTZ), T.of(HALF2), U.of(HALF2)],                &[d(T), a(U), b(U)]).ptx(4, 2).sm(53),
        form(&[req(&CMP_FLOAT), req(&BOOL), opt(&FTZ), T.of(HALF2), U.of(HALF2)],    &[d(T), a(U), b(U), p_in()]).ptx(4, 2).sm(53),
        form(&[req(&CMP_FLOAT), opt(&FTZ), T.of(SET_PAIR), U.of(HALF2)],             &[d(T), a(U), b(U)]).ptx(6, 5).sm(53),
        form(&[req(&CMP_FLOAT), req(&BOOL), opt(&FTZ), T.of(SET_PAIR), U.of(HALF2)], &[d(T), a(U), b(U), p_in()]).ptx(6, 5).sm(53),
        form(&[req(&CMP_FLOAT), T.of(&[Bf16x2, U32, S32]), U.of(BRAIN2)],            &[d(T), a(U), b(U)]).ptx(7, 8).sm(90),
        form(&[req(&CMP_FLOAT), req(&BOOL), T.of(&[Bf16x2, U32, S32]), U.of(BRAIN2)], &[d(T), a(U), b(U), p_in().reg()]).ptx(7, 8).sm(90),
    ]));
/// `p|q`: the comparison and its complement.
const P: Opnd = p_out().sink();
const PQ: Opnd = p_out().pair(Is(Pred)).sink();
pub static SETP: Op = joined!("setp", Pure, "Compare; write a predicate and its complement.",
    rows("9.7.6.2", &[
        form(&[req(&CMP_EQ), T.of(BITWISE)],                           &[PQ, a(T), b(T)]),
        form(&[req(&CMP_EQ), req(&BOOL), T.of(BITWISE)],               &[PQ, a(T), b(T), p_in()]),
        form(&[req(&CMP_UNSIGNED), T.of(UNSIGNED)],                    &[PQ, a(T), b(T)]),
        form(&[req(&CMP_UNSIGNED), req(&BOOL), T.of(UNSIGNED)],        &[PQ, a(T), b(T), p_in()]),
        form(&[req(&CMP), T.of(SIGNED)],                               &[PQ, a(T), b(T)]),
        form(&[req(&CMP), req(&BOOL), T.of(SIGNED)],                   &[PQ, a(T), b(T), p_in()]),
        form(&[req(&CMP_FLOAT), opt(&FTZ), T.of(&[F32])],              &[PQ, a(T), b(T)]),
        form(&[req(&CMP_FLOAT), req(&BOOL), opt(&FTZ), T.of(&[F32])],  &[PQ, a(T), b(T), p_in()]),
        form(&[req(&CMP_FLOAT), T.of(&[F64])],                         &[PQ, a(T), b(T)]),
        form(&[req(&CMP_FLOAT), req(&BOOL), T.of(&[F64])],             &[PQ, a(T), b(T), p_in()]),
    ]),
    rows("9.7.7.2", &[
        form(&[req(&CMP_FLOAT), opt(&FTZ), T.of(HALF)],                &[P, a(T), b(T)]).ptx(4, 2).sm(53),
        form(&[req(&CMP_FLOAT), req(&BOOL), opt(&FTZ), T.of(HALF)],    &[P, a(T), b(T), p_in()]).ptx(4, 2).sm(53),
        form(&[req(&CMP_FLOAT), opt(&FTZ), T.of(HALF2)],               &[PQ, a(T), b(T)]).ptx(4, 2).sm(53),
        form(&[req(&CMP_FLOAT), req(&BOOL), opt(&FTZ), T.of(HALF2)],   &[PQ, a(T), b(T), p_in()]).ptx(4, 2).sm(53),
        form(&[req(&CMP_FLOAT), T.of(BRAIN)],                          &[P, a(T), b(T)]).ptx(7, 8).sm(90),
        form(&[req(&CMP_FLOAT), req(&BOOL), T.of(BRAIN)],              &[P, a(T), b(T), p_in().reg()]).ptx(7, 8).sm(90),
        form(&[req(&CMP_FLOAT), T.of(BRAIN2)],                         &[PQ, a(T), b(T)]).ptx(7, 8).sm(90),
        form(&[req(&CMP_FLOAT), req(&BOOL), T.of(BRAIN2)],             &[PQ, a(T), b(T), p_in().reg()]).ptx(7, 8).sm(90),
    ]));
pub static SELP: Op = op("selp", "9.7.6.3", Pure, "`d = c ? a : b` for a predicate `c`.", &[
    form(&[T.of(SELECT)],                                &[d(T), a(T), b(T), src(Is(Pred)).named("c")]),
]);
pub static SLCT: Op = op("slct", "9.7.6.4", Pure, "`d = c >= 0 ? a : b`.", &[
    form(&[T.of(SELECT), U.of(&[S32])],                  &[d(T), a(T), b(T), c(U)]),
    form(&[opt(&FTZ), T.of(SELECT), U.of(&[F32])],       &[d(T), a(T), b(T), c(U)]),
]);
