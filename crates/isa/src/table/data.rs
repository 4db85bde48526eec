//! Data movement (manual, section 9.7.9).

use super::class::*;
use crate::{Effect::*, Type, Var::T, *};

#[rustfmt::skip]
pub static LD: Op = op("ld", "9.7.9.8", Memory, "Load from a state space.", &[
    form(&[opt(&WEAK), opt(&LD_SPACE), opt(&VEC), T.of(DATA)], &[d(T).count(Count::ByVec).wider(), addr()]).rules(&[Rule::ParamWindow]),
]);
#[rustfmt::skip]
pub static ST: Op = op("st", "9.7.9.12", Memory, "Store to a state space.", &[
    form(&[opt(&WEAK), opt(&ST_SPACE), opt(&VEC), T.of(DATA)], &[addr(), a(T).count(Count::ByVec).wider()]).rules(&[Rule::ParamWindow]),
]);
#[rustfmt::skip]
pub static MOV: Op = op("mov", "9.7.9.2", Pure, "Move a value, an address, or pack and unpack vectors.", &[
    form(&[T.of(&[Type::Pred, Type::B16, Type::B32, Type::B64, Type::U16, Type::U32, Type::U64, Type::S16, Type::S32, Type::S64, Type::F32, Type::F64])],
         &[d(T).count(Count::Free), a(T).count(Count::Free)]).rules(&[Rule::MovOperand]),
]);
