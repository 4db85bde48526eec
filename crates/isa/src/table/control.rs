//! Control flow (manual, section 9.7.12).

use super::class::*;
use crate::{Effect::*, *};

#[rustfmt::skip]
pub static BRA: Op = op("bra", "9.7.12.3", Control, "Branch to a label.", &[
    form(&[opt(&UNI)], &[operand("tgt", Role::Label, Ty::Any)]),
]);
#[rustfmt::skip]
pub static CALL: Op = op("call", "9.7.12.5", Call, "Call a function; where operands travel is the ABI's business.", &[
    form(&[opt(&UNI)], &[operand("ret-param", Role::Rets, Ty::Any).opt(), operand("func", Role::Callee, Ty::Any), operand("param-list", Role::Args, Ty::Any).opt(),
                         operand("flist", Role::Table, Ty::Any).opt()]),
]);
#[rustfmt::skip]
pub static RET: Op = op("ret", "9.7.12.6", Control, "Return from a function; ends the thread in a kernel.", &[
    form(&[opt(&UNI)], &[]),
]);
#[rustfmt::skip]
pub static EXIT: Op = op("exit", "9.7.12.7", Control, "End the thread.", &[
    form(&[], &[]),
]);
