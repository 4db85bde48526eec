//! Finds the *lazy* registers: those that may hold the host's NaNs until their bits become visible (see `float.rs`).

use crate::emit::arithmetic::{defined::defined_by, float::arithmetic};
use margay_ir::Func;
use margay_isa::Mod;

/// The lazy registers: defined only by arithmetic, constants and copies of lazy registers, and not by constants alone.
pub(in crate::emit) fn lazy_registers(func: &Func) -> Vec<bool> {
    let found = defined_by(func, |row| arithmetic(row) && !row.has(Mod::Sat), |constant| !constant.is_nan());
    found.iter().map(|d| d.only && d.computed).collect()
}
