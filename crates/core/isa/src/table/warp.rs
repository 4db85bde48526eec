//! Operations that the lanes of a warp perform together (manual, sections 9.7.13.8 to 9.7.13.14).

use super::class::*;
use crate::{Effect::*, Mod as M, Ty::*, Type::*, Var::*, *};

static VOTE_MODE: Class = Class::new("vote", &[M::All, M::Any, M::Uni]);
const MASK: Opnd = src(Is(U32)).named("membermask");
const PREDICATE: Opnd = p_in().named("a");

pub static VOTE: Op = joined!("vote", Warp, "Vote on a predicate across the lanes of a warp.",
    rows("9.7.13.9", &[
        form(&[one(M::Sync), req(&VOTE_MODE), T.of(&[Pred])],  &[d(T), PREDICATE, MASK]).ptx(6, 0).sm(30),
        form(&[one(M::Sync), one(M::Ballot), T.of(&[B32])],    &[d(T), PREDICATE, MASK]).ptx(6, 0).sm(30),
    ]),
    rows("9.7.13.8", &[
        form(&[req(&VOTE_MODE), T.of(&[Pred])],                &[d(T), PREDICATE]).ptx(1, 2).sm(12).until(6, 4, 70),
        form(&[one(M::Ballot), T.of(&[B32])],                  &[d(T), PREDICATE]).ptx(2, 0).sm(20).until(6, 4, 70),
    ]));
pub static MATCH: Op = op("match", "9.7.13.10", Warp, "A mask of the lanes with the same value.", &[
    form(&[one(M::Any), one(M::Sync), T.of(BITS32)],           &[dst(Is(U32)), a(T), MASK]).ptx(6, 0).sm(70),
    form(&[one(M::All), one(M::Sync), T.of(BITS32)],           &[dst(Is(U32)).pair(Is(Pred)).sink(), a(T), MASK]).ptx(6, 0).sm(70),
]);
pub static ACTIVEMASK: Op = op("activemask", "9.7.13.11", Warp, "A mask of the executing lanes.", &[
    form(&[T.of(&[B32])],                                      &[d(T)]).ptx(6, 2).sm(30),
]);
static ADD_MIN_MAX: Class = Class::new("operation", &[M::Add, M::Min, M::Max]);
static EXTREME: Class = Class::new("operation", &[M::Min, M::Max]);
static BITWISE: Class = Class::new("operation", &[M::And, M::Or, M::Xor]);
pub static REDUX: Op = op("redux", "9.7.13.12", Warp, "Combine a value over the lanes of a warp.", &[
    form(&[one(M::Sync), req(&ADD_MIN_MAX), T.of(INT32)],      &[dst(Is(U32)), src(Is(U32)), MASK]).ptx(7, 0).sm(80),
    form(&[one(M::Sync), req(&BITWISE), T.of(&[B32])],         &[dst(Is(U32)), src(Is(U32)), MASK]).ptx(7, 0).sm(80),
    form(&[one(M::Sync), req(&EXTREME), opt(&ABS), opt(&NAN), T.of(&[F32])], &[d(T), a(T), MASK]).ptx(8, 6).targets(&[Target::arch(100), Target::family(100)]),
]);
pub static ELECT: Op = op("elect", "9.7.13.14", Warp, "Elect one lane.", &[
    form(&[one(M::Sync)], &[dst(Is(U32)).paired(Is(Pred)).sink(), MASK]).ptx(8, 0).sm(90),
]);
