//! Control flow (manual, section 9.7.12).

use super::class::*;
use crate::{Effect::*, Mod as M, Ty::*, Type::*, *};

pub static BRA: Op = op("bra", "9.7.12.3", Control, "Branch to a label.", &[
    form(&[opt(&UNI)], &[operand("tgt", Role::Label, Any)]),
]);
pub static BRX: Op = op("brx", "9.7.12.4", Control, "Branch to a label in a table, selected by an index.", &[
    form(&[one(M::Idx), opt(&UNI)], &[src(Is(U32)).named("index"), operand("tlist", Role::Table, Any)]).fixed(1).ptx(6, 0).sm(30),
]);
pub static CALL: Op = op("call", "9.7.12.5", Call, "Call a function; the ABI determines how operands are passed.", &[
    form(&[opt(&UNI)], &[operand("ret-param", Role::Rets, Any).opt(), operand("func", Role::Callee, Any), operand("param-list", Role::Args, Any).opt(),
                         operand("flist", Role::Table, Any).opt()]).rules(&[Rule::CallSignature]),
]);
pub static RET: Op = op("ret", "9.7.12.6", Control, "Return from a function; in a kernel, exit the thread.", &[
    form(&[opt(&UNI)], &[]),
]);
pub static EXIT: Op = op("exit", "9.7.12.7", Control, "Exit the thread.", &[
    form(&[], &[]),
]);
