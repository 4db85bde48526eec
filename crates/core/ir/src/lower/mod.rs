//! Turns checked modules into one program: linking (manual, sections 11.2.3 and 11.6), then each function.
//!
//! * `link` gives every function and variable of every module its id in the program, resolving names across modules; `globals` does so for variables.
//! * `body` turns one resolved body into a control-flow graph; `operand`, `call` and `constant` are its parts.
//! * `thread` puts module-scope `.reg` and `.local` variables of old PTX into the thread block.

mod blocks;
mod body;
mod call;
mod constant;
mod element;
mod globals;
mod info;
mod link;
mod operand;
mod register;
mod thread;
mod web;

pub(crate) use constant::immediate_type;
pub use link::signature;

use crate::{Callee, FuncId, GlobalInit, Ir, Pointee, Source, Virtual};
use margay_check::Checked;
use margay_syntax::Span;
use std::sync::Arc;

/// Why modules do not become a program.
#[derive(Clone, Debug)]
pub struct LowerError {
    /// Name of the file.
    pub file: String,
    /// Where.
    pub span: Span,
    /// What is wrong, or what margay does not support.
    pub message: String,
    /// True if the module is valid but uses a feature that margay lacks.
    pub unsupported: bool,
    /// The second place: the other definition, the declaration.
    pub other: Option<(String, Span)>,
}

impl LowerError {
    fn new(source: &Source, span: Span, message: String) -> LowerError {
        LowerError { file: source.name.clone(), span, message, unsupported: false, other: None }
    }

    fn unsupported(source: &Source, span: Span, what: impl Into<String>) -> LowerError {
        LowerError { unsupported: true, ..LowerError::new(source, span, what.into()) }
    }

    fn and(mut self, source: &Source, span: Span) -> LowerError {
        self.other = Some((source.name.clone(), span));
        self
    }
}

impl std::fmt::Display for LowerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}{}", self.file, if self.unsupported { "unsupported: " } else { "" }, self.message)
    }
}

impl std::error::Error for LowerError {}

/// What to lower.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LowerOptions<'a> {
    /// Only this kernel and what it reaches (by calls, by addresses taken, by initializers) gets a body; everything else
    /// stays a name.
    pub kernel: Option<&'a str>,
    /// References to externals that no module defines are allowed, as in an object file that is linked later.
    pub relocatable: bool,
}

/// Links and lowers modules. With `kernel`, only that kernel and what it reaches gets a body. See [`LowerOptions`].
pub fn lower(modules: &[(Arc<Source>, Checked)], kernel: Option<&str>) -> Result<Ir<Virtual>, LowerError> {
    Linked::new(modules)?.lower(&LowerOptions { kernel, relocatable: false })
}

/// Links modules without lowering a body: signatures, variables, names.
pub fn declare(modules: &[(Arc<Source>, Checked)]) -> Result<Ir<Virtual>, LowerError> {
    Ok(link::link(modules)?.finish())
}

/// Links and lowers modules.
pub fn lower_with(modules: &[(Arc<Source>, Checked)], options: &LowerOptions<'_>) -> Result<Ir<Virtual>, LowerError> {
    Linked::new(modules)?.lower(options)
}

/// Linked modules, from which kernels are lowered one by one: linking looks at all functions and variables, and a module may
/// have thousands of them, so it is done once.
#[derive(Clone, Debug)]
pub struct Linked {
    program: link::Program,
}

impl Linked {
    /// Links modules.
    pub fn new(modules: &[(Arc<Source>, Checked)]) -> Result<Linked, LowerError> {
        Ok(Linked { program: link::link(modules)? })
    }

    /// Lowers a kernel with what it reaches, or everything.
    pub fn lower(&self, options: &LowerOptions<'_>) -> Result<Ir<Virtual>, LowerError> {
        lower_linked(self.program.clone(), options)
    }
}

fn lower_linked(mut program: link::Program, options: &LowerOptions<'_>) -> Result<Ir<Virtual>, LowerError> {
    let mut queue: Vec<FuncId> = match options.kernel {
        None => (0..program.funcs.len() as u32).rev().map(FuncId).collect(),
        Some(name) => {
            let id = program.names.get(name).copied().filter(|id| program.funcs[id.0 as usize].is_kernel());
            let Some(id) = id else {
                let source = program.modules.first().map(|m| m.0.name.clone()).unwrap_or_default();
                let message = format!("no kernel `{name}`{}", link::kernels(&program));
                return Err(LowerError {
                    file: source,
                    span: Span::default(),
                    message,
                    unsupported: false,
                    other: None,
                });
            };
            vec![id]
        }
    };
    let mut seen_globals = vec![false; program.globals.len()];
    let mut lowered = vec![false; program.funcs.len()];
    while let Some(id) = queue.pop() {
        if std::mem::replace(&mut lowered[id.0 as usize], true) || program.funcs[id.0 as usize].body.is_none() {
            continue;
        }
        let (func, refs) = body::lower(&mut program, id)?;
        seen_globals.resize(program.globals.len(), false);
        if !options.relocatable {
            refs.check_defined(&program, &func)?;
        }
        // The address of a kernel is only used to launch it: its code is not part of this kernel.
        queue.extend(refs.funcs.iter().map(|r| r.0).filter(|f| !program.funcs[f.0 as usize].is_kernel()));
        if func.calls.iter().any(|call| matches!(call.callee, Callee::Indirect(_, None))) {
            queue.extend(&*program.address_taken);
        }
        let mut globals: Vec<_> = refs.globals.iter().map(|r| r.0).collect();
        while let Some(global) = globals.pop() {
            if std::mem::replace(&mut seen_globals[global.0 as usize], true) {
                continue;
            }
            for init in &program.globals[global.0 as usize].init {
                match init {
                    GlobalInit::Address { of: Pointee::Func(f), .. } => {
                        queue.extend(Some(*f).filter(|f| !program.funcs[f.0 as usize].is_kernel()));
                    }
                    GlobalInit::Address { of: Pointee::Global(g), .. } => globals.push(*g),
                    GlobalInit::Bytes(..) | GlobalInit::Property(..) => {}
                }
            }
        }
        program.funcs[id.0 as usize].func = Arc::new(func);
    }
    Ok(program.finish())
}
