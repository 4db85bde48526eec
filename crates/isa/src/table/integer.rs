//! Integer arithmetic (manual, section 9.7.1).

use super::class::*;
use crate::{Effect::Pure, Mod, Type, Var::T, *};

#[rustfmt::skip] // one row a line: the table is read down its columns
pub static ADD: Op = op("add", "9.7.1.1", Pure, "`d = a + b`; integers wrap unless `.sat`.", &[
    //    modifiers as written                                operands              since / target / exceptions
    form(&[T.of(INT)],                                        &[d(T), a(T), a(T)]),
    form(&[one(Mod::Sat), T.of(&[Type::S32])],                &[d(T), a(T), a(T)]),
    form(&[opt(&RND), opt(&FTZ), opt(&SAT), T.of(&[Type::F32])], &[d(T), a(T), a(T)]),
]);
