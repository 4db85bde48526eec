//! Addresses of variables: which can be taken, and the reach of constant offsets (lints that ptxas does not have).

use crate::FuncKind;
use crate::body::{Candidate, SymRef, Walker};
use crate::report::{lacking, since};
use margay_isa::{Opcode, Space};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
};

/// The address of a symbol becomes a value (sections 5.1.6.1 and 5.1.6.4; functions: section 9.7.9.3).
pub(crate) fn taken(w: &mut Walker<'_, '_>, c: &Candidate, symbol: SymRef, span: Span) {
    match symbol {
        SymRef::Local(i) if w.body.locals[i as usize].space == Space::Param => {
            let at = w.body.locals[i as usize].name;
            let name = w.tree.str(at);
            w.report.push(
                Diagnostic::new(
                    Code::ParameterAddress,
                    span,
                    format!("`{name}` has no address: it exists only for calls"),
                )
                .label(at, "a `.param` variable of this body")
                .note("section 5.1.6.4: the address of a locally scoped `.param` variable cannot be taken")
                .help("keep the data in a `.local` variable and copy it for the call"),
            );
        }
        SymRef::Ret(_) => {
            w.follow = true;
            if let Some(lack) = lacking(w.module, &since(6, 0, 0)) {
                let d = lack.diagnose(w.module, "the address of a return parameter", span);
                w.report.push(d);
            }
        }
        SymRef::Param(_) => w.follow = true,
        SymRef::Func(f) => {
            let kernel = w.module.func(f).kind == FuncKind::Kernel;
            // ptxas asks it of `mov` only.
            if kernel && c.variant.op != Opcode::Mov {
                return;
            }
            let (needs, what) = if kernel {
                (since(3, 1, 35), "the address of a kernel")
            } else {
                (since(2, 1, 0), "the address of a function")
            };
            if let Some(lack) = lacking(w.module, &needs) {
                let d = lack.diagnose(w.module, what, span);
                w.report.push(d);
            }
        }
        SymRef::Local(_) | SymRef::Global(_) => {}
    }
}

/// An access at a constant offset from a variable: within it, and aligned. One word about it is enough.
pub(crate) fn constant(w: &mut Walker<'_, '_>, c: &Candidate, symbol: SymRef, offset: i64, span: Span) {
    let (size, align) = w.symbol_size(symbol);
    let bytes = u64::from(c.access);
    let end = (offset as u64).wrapping_add(bytes);
    if size > 0 && (offset < 0 || end > size) {
        return outside(w, c, symbol, size, offset, span);
    }
    // Parameters have a rule of their own (`rules/param.rs`).
    if c.access < 2 || w.symbol_space(symbol) == Space::Param {
        return;
    }
    // Report only certain errors: an offset that is misaligned whatever the variable's alignment, or a variable whose alignment is less
    // than a vector or its elements need.
    let off = !offset.unsigned_abs().is_multiple_of(bytes.next_power_of_two());
    let natural = c.variant.t().bytes();
    if off || (c.variant.vec() > 1 && align < c.access) || align < natural.min(c.access) {
        misaligned(w, c, symbol, align, offset, span);
    }
}

#[cold]
fn misaligned(w: &mut Walker<'_, '_>, c: &Candidate, symbol: SymRef, align: u32, offset: i64, span: Span) {
    let (_, at) = w.type_of_symbol(symbol);
    let known = if offset == 0 { align } else { align.min(1 << offset.trailing_zeros().min(16)) };
    let name = w.tree.str(span);
    let d = Diagnostic::new(
        Code::MisalignedAccess,
        span,
        format!("`{name}` is aligned to {known}; `{}` needs {}", c.variant, c.access),
    )
    .label(at, format!("aligned to {align}"))
    .note("ptxas does not warn; the access traps or reads other bytes");
    let d = if align < c.access { d.help(format!("declare the variable with `.align {}`", c.access)) } else { d };
    w.report.push(d);
}

#[cold]
fn outside(w: &mut Walker<'_, '_>, c: &Candidate, symbol: SymRef, size: u64, offset: i64, span: Span) {
    let space = w.symbol_space(symbol);
    let (_, at) = w.type_of_symbol(symbol);
    let name = w.tree.str(at).to_owned();
    let code = if space == Space::Param { Code::ParameterOverread } else { Code::OutOfBounds };
    let bytes = c.access;
    let message = if offset == 0 {
        format!("`{}` accesses {bytes} bytes; `{name}` has {size}", c.variant)
    } else {
        format!("bytes {offset} to {} are outside `{name}`, which has {size}", offset + i64::from(bytes) - 1)
    };
    w.report.push(Diagnostic::new(code, span, message).label(at, format!("{size} bytes")).note("ptxas accepts it"));
}
