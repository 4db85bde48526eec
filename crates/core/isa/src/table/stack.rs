//! The stack of a thread (manual, section 9.7.17).

use super::class::*;
use crate::{Effect::*, Ty::*, Type::*, Var::*, *};

pub static STACKSAVE: Op = op("stacksave", "9.7.17.1", Memory, "Read the stack pointer.", &[
    form(&[T.of(POINTER)],  &[d(T)]).ptx(7, 3).sm(52),
]);
pub static STACKRESTORE: Op = op("stackrestore", "9.7.17.2", Memory, "Set the stack pointer.", &[
    form(&[T.of(POINTER)],  &[a(T).reg()]).ptx(7, 3).sm(52),
]);
pub static ALLOCA: Op = op("alloca", "9.7.17.3", Memory, "Allocate memory on the stack.", &[
    form(&[T.of(POINTER)],  &[d(T).named("ptr"), a(T).named("size"), imm(Is(U32)).named("immAlign").opt()]).ptx(7, 3).sm(52).rules(&[Rule::StackAlignment]),
]);
