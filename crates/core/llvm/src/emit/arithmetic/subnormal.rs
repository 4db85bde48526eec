//! Finds the registers that never hold a subnormal number in single precision. Instructions with `.ftz` flush their operands, which is most
//! of the work of a sum or product; operands computed by other instructions with `.ftz` need no flush. Code compiled with `-use_fast_math`
//! consists of such instructions.

use crate::emit::arithmetic::{defined::defined_by, float::arithmetic};
use margay_ir::Func;
use margay_isa::{Mod, Opcode, Type, Var, Variant};

/// Whether the result of a row is never subnormal.
fn flushes(variant: &Variant) -> bool {
    let signs = matches!(variant.op, Opcode::Neg | Opcode::Abs);
    if arithmetic(variant) || signs && variant.t() == Type::F32 && variant.ty(Var::U).is_none() {
        return variant.has(Mod::Ftz);
    }
    // An integer that is not 0 is at least 1.
    variant.op == Opcode::Cvt && variant.t() == Type::F32 && variant.ty(Var::U).is_some_and(Type::is_int)
}

/// By register: defined only by rows that flush, by other constants than subnormals, and by copies of such registers.
pub(in crate::emit) fn normal_registers(func: &Func) -> Vec<bool> {
    defined_by(func, flushes, |constant| !constant.is_subnormal()).iter().map(|d| d.only).collect()
}
