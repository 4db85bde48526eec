//! `ld.param` and `st.param`: which parameters can be read or written (manual, sections 5.1.6 and 7.1).

use crate::body::{Base, Candidate, Inst, Operand, SymRef, Walker};
use crate::{FuncKind, Verdict};
use margay_isa::{Mod, Opcode, Space};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
};

/// One `ld` or `st` (of any space; those of others are let go at once).
pub(crate) fn check(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    let Some(space) = c.space.filter(|m| matches!(m, Mod::Param | Mod::ParamEntry | Mod::ParamFunc | Mod::Local))
    else {
        return;
    };
    let store = c.variant.op == Opcode::St;
    let position = usize::from(!store);
    let operands = w.body.operands(inst.operands);
    let Some(&Operand::Address(base, offset)) = operands.get(position) else { return };
    let instr = &w.tree.instrs[inst.node as usize];
    let span = w.tree.operands(instr.operands).get(position).map_or(instr.span, |o| o.span);
    match base {
        Base::Sym(symbol) if space != Mod::Local && w.symbol_space(symbol) == Space::Param => {
            named(w, c, inst, Access { symbol, offset, space, store, span });
        }
        // Functions have addresses of their parameters in registers, kernels name those of the functions that they call.
        Base::Reg(_) if space == Mod::ParamFunc && w.func.kind == FuncKind::Kernel => {
            let message = format!("in a kernel, `{}` requires the name of a parameter", c.variant);
            let found = Diagnostic::new(Code::ParameterQualifier, span, message).here("an address in a register");
            w.report.ptxas_only(found.help("write `.param` alone, or name the parameter"));
        }
        Base::Reg(reg) => {
            let space = if space == Mod::Local { Space::Local } else { Space::Param };
            super::pointers::access(w, reg, space, store, span);
        }
        Base::Sym(_) | Base::Absolute => {}
    }
}

/// An access by name.
struct Access {
    symbol: SymRef,
    offset: i64,
    space: Mod,
    store: bool,
    /// The operand, brackets included.
    span: Span,
}

/// The formal that ptxas mistakes a variable of this body for: one of the same name, which an inner block hides. Stores are
/// refused as those into inputs, loads as those from results.
fn shadowed(w: &Walker<'_, '_>, symbol: SymRef, store: bool) -> Option<Span> {
    let SymRef::Local(i) = symbol else { return None };
    let name = w.tree.str(w.body.locals[i as usize].name);
    let formals = if store { &w.func.params } else { &w.func.rets };
    formals.iter().find(|f| &*f.name == name && f.space == crate::FormalSpace::Param).map(|f| f.span)
}

fn named(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst, access: Access) {
    let Access { symbol, offset, store, span, .. } = access;
    let at = w.type_of_symbol(symbol).1;
    if !is_qualified_right(w, &access, at) {
        return;
    }
    if let Some(formal) = shadowed(w, symbol, store) {
        let (code, what) = match store {
            true => (Code::ParameterWrite, "written: an input parameter"),
            false => (Code::ParameterRead, "read: a return parameter"),
        };
        let message = format!("`{}` cannot be {what} of the function has the same name", access.name(w));
        let found = Diagnostic::new(code, span, message).label(at, "declared here").label(formal, "the parameter");
        return w.report.ptxas_only(found.help("give the variable another name"));
    }
    if let Some(found) = wrong_direction(w, &access) {
        return w.report.push(found.label(at, "declared here"));
    }
    if let SymRef::Local(i) = symbol {
        if inst.guard.is_some() {
            predicated(w, inst, store, at);
        }
        super::sequence::access(w, i, store, span);
    }
    alignment(w, c, symbol, offset, span, at);
}

impl Access {
    /// The variable's name as the text has it.
    fn name<'a>(&self, w: &Walker<'a, '_>) -> &'a str {
        let text = w.tree.str(self.span);
        text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text).trim()
    }

    /// The kind of variable.
    fn what(&self, w: &Walker<'_, '_>) -> &'static str {
        match self.symbol {
            SymRef::Param(_) if w.func.kind == FuncKind::Kernel => "a parameter of the kernel",
            SymRef::Param(_) => "an input parameter",
            SymRef::Ret(_) => "a return parameter",
            _ => "a variable of this body",
        }
    }
}

/// Whether ptxas accepts the qualifier of `.param`; reports an error otherwise. `at`: the declaration of the variable.
fn is_qualified_right(w: &mut Walker<'_, '_>, access: &Access, at: Span) -> bool {
    let Access { symbol, space, store, span, .. } = *access;
    let (name, what) = (access.name(w), access.what(w));
    let entry = matches!(symbol, SymRef::Param(_)) && w.func.kind == FuncKind::Kernel;
    let misfit = match space {
        Mod::ParamFunc => entry,
        Mod::ParamEntry => matches!(symbol, SymRef::Local(_) | SymRef::Ret(_)),
        _ => false,
    };
    if misfit {
        let (has, wants) = if space == Mod::ParamFunc { ("::func", "::entry") } else { ("::entry", "::func") };
        let help = match store {
            true => "a kernel's parameters cannot be written".to_owned(),
            false => format!("write `.param{wants}`, or `.param` alone"),
        };
        let message = format!("`{name}` is {what}, which `{has}` cannot access");
        w.report.push(Diagnostic::new(Code::ParameterQualifier, span, message).label(at, "declared here").help(help));
    } else if space == Mod::ParamEntry && !entry {
        let message = format!("`{name}` is {what}; `::entry` is only for kernel parameters");
        w.report.text_only(Diagnostic::new(Code::ParameterQualifier, span, message).label(at, "declared here"));
    }
    !misfit
}

/// A store to an input parameter, or a load of a return parameter.
fn wrong_direction(w: &Walker<'_, '_>, access: &Access) -> Option<Diagnostic> {
    let (name, what) = (access.name(w), access.what(w));
    match (access.symbol, access.store) {
        (SymRef::Param(_), true) => {
            let help = match w.func.kind {
                FuncKind::Kernel => "kernel parameters are read-only",
                FuncKind::Device => "copy it into a register, or take its address with `mov` and use `st.local`",
            };
            let message = format!("`{name}` is {what} and cannot be written");
            Some(Diagnostic::new(Code::ParameterWrite, access.span, message).help(help))
        }
        (SymRef::Ret(_), false) => {
            let message = format!("`{name}` is a return parameter and cannot be read");
            let help = "keep the value in a register and store it here at the end";
            Some(Diagnostic::new(Code::ParameterRead, access.span, message).help(help))
        }
        _ => None,
    }
}

/// Reports the guard of an access to an argument or result.
fn predicated(w: &mut Walker<'_, '_>, inst: &Inst, store: bool, at: Span) {
    let guard = w.tree.instrs[inst.node as usize].span;
    let (verb, help) = match store {
        true => ("store of an argument", "select the value with `selp` and always store it"),
        false => ("load of a result", "always load it and select afterwards"),
    };
    w.report.push(
        Diagnostic::new(Code::PredicatedParameter, guard, format!("the {verb} cannot be predicated"))
            .label(at, "a `.param` variable of this body")
            .help(help),
    );
}

/// Accesses to parameters are aligned to their size (section 7.1).
fn alignment(w: &mut Walker<'_, '_>, c: &Candidate, symbol: SymRef, offset: i64, span: Span, at: Span) {
    let bytes = c.access;
    if bytes < 2 {
        return;
    }
    let (size, align) = w.symbol_size(symbol);
    let outside = size > 0 && (offset < 0 || (offset as u64).wrapping_add(u64::from(bytes)) > size);
    if outside && w.report.verdict == Verdict::Ptxas {
        // That it reads past the end has been said.
        return;
    }
    let needed = bytes.next_power_of_two();
    let known = if offset == 0 { align } else { align.min(1 << offset.trailing_zeros().min(16)) };
    if known >= needed {
        return;
    }
    let name = w.tree.str(span);
    let d = Diagnostic::new(
        Code::ParameterAlignment,
        span,
        format!("{name} is aligned to {known}; `{}` accesses {bytes} bytes", c.variant),
    )
    .label(at, format!("aligned to {align}"))
    .note("section 7.1: memory accesses must be aligned to a multiple of the access size");
    w.report.text_only(d);
}
