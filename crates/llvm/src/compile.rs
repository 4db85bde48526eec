//! A kernel and all that it calls, from IR to linked code.

use crate::{
    Form, cache,
    emit::{self, Options, Refused, Site, SiteKind},
    ffi::Linked,
    machine::{self, Effort},
};
use margay_exec::sem::{self, PureFn};
use margay_ir::{Callee, FuncId, GlobalInit, Ir, Operand, Placed, Pointee};
use std::{collections::BTreeSet, fmt::Write};

/// A compiled kernel.
pub struct Compiled {
    /// Keeps the code mapped.
    _linked: Linked,
    /// Entry of the kernel.
    pub entry: usize,
    /// Entries of device functions by id; 0 where there is none.
    pub functions: Vec<usize>,
    /// Sites by number.
    pub sites: Vec<Site>,
    /// Semantic functions of `Pure` sites.
    pub pure: Vec<Option<PureFn>>,
    /// Bytes that the warps of a CTA keep across barriers.
    pub keep_size: u64,
    /// The entry runs one warp, on a stack of its own, instead of a range of CTAs.
    pub by_warp: bool,
    /// Threads need local windows.
    pub uses_local: bool,
    /// Device functions may call themselves, so the host's stack must be deep.
    pub recursive: bool,
}

/// Why there is no code.
#[derive(Debug)]
pub enum CompileError {
    /// The SIMD engine does not take this kernel; the reference engine does.
    Refused(Refused),
    /// LLVM complained: a bug of ours.
    Bug(String),
}

/// Functions that a kernel can reach, itself first: by calls, and by address if anything calls indirectly.
fn reachable(ir: &Ir<Placed>, kernel: FuncId) -> Vec<FuncId> {
    let mut seen = BTreeSet::from([kernel]);
    let mut order = vec![kernel];
    let mut next = 0;
    let mut add = |f: FuncId, order: &mut Vec<FuncId>| {
        if !ir.func(f).blocks.is_empty() && seen.insert(f) {
            order.push(f);
        }
    };
    for global in &ir.globals {
        for init in &global.init {
            if let GlobalInit::Address { of: Pointee::Func(f), .. } = init
                && ir.func(*f).kind == margay_check::FuncKind::Device
            {
                add(*f, &mut order);
            }
        }
    }
    while let Some(f) = order.get(next).copied() {
        next += 1;
        let func = ir.func(f);
        for site in &func.calls {
            match &site.callee {
                Callee::Direct(f) => add(*f, &mut order),
                Callee::Indirect(_, targets) => targets.iter().flatten().for_each(|f| add(*f, &mut order)),
            }
        }
        for operand in &func.operands {
            if let Operand::Func(f) = operand {
                add(*f, &mut order);
            }
        }
    }
    order
}

/// Whether some function can be in flight twice: by a cycle of calls, or because somebody calls indirectly.
fn recursive(ir: &Ir<Placed>, kernel: FuncId) -> bool {
    // Depth-first search with an explicit stack; a call to a function that is being visited closes a cycle.
    let callees = |f: FuncId| -> Option<Vec<FuncId>> {
        let callee = |site: &margay_ir::CallSite| match &site.callee {
            Callee::Direct(f) => Some(*f),
            Callee::Indirect(..) => None,
        };
        ir.func(f).calls.iter().map(callee).collect()
    };
    let mut state = vec![0u8; ir.funcs.len()];
    let mut stack = vec![(kernel, 0)];
    while let Some((f, next)) = stack.pop() {
        state[f.0 as usize] = 1;
        let Some(list) = callees(f) else { return true };
        match list.get(next) {
            None => state[f.0 as usize] = 2,
            Some(g) => {
                stack.push((f, next + 1));
                match state[g.0 as usize] {
                    0 => stack.push((*g, 0)),
                    1 => return true,
                    _ => {}
                }
            }
        }
    }
    false
}

/// The LLVM IR of a kernel and what it reaches.
pub struct Text {
    /// The module.
    pub text: String,
    sites: Vec<Site>,
    keep_size: u64,
    by_warp: bool,
    functions: Vec<FuncId>,
    uses_local: bool,
}

/// Writes the LLVM IR of a kernel and what it reaches.
pub fn text(ir: &Ir<Placed>, kernel: FuncId, options: &Options) -> Result<Text, Refused> {
    let mut uses_local = false;
    let mut sites = Vec::new();
    let mut declared = BTreeSet::new();
    let mut bodies = String::new();
    let (mut keep_size, mut by_warp) = (0, false);
    let functions = reachable(ir, kernel);
    let callees = functions.iter().filter(|f| **f != kernel);
    let waits = callees.map(|f| emit::waits(ir.func(*f))).max().unwrap_or(emit::Waits::Never);
    for f in &functions {
        let emitted = emit::emit(ir, *f, options, waits, &mut sites)?;
        bodies.push_str(&emitted.text);
        declared.extend(emitted.declared);
        keep_size = keep_size.max(emitted.keep_size);
        by_warp |= emitted.by_warp;
        uses_local |= emitted.uses_local;
    }
    // Definitions of helpers bring declarations of their own: one line each, once.
    let lines: BTreeSet<&str> = declared.iter().flat_map(|d| d.lines().filter(|l| l.starts_with("declare"))).collect();
    let mut out = String::with_capacity(bodies.len() + 4096);
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
    for d in declared.iter().filter(|d| d.starts_with("define")) {
        d.lines().filter(|l| !l.starts_with("declare")).for_each(|l| {
            let _ = writeln!(out, "{l}");
        });
    }
    out.push_str(&bodies);
    out.push_str(
        "attributes #0 = { nounwind }\nattributes #1 = { nounwind }\nattributes #2 = { nounwind noinline cold }\n!0 = !{!\"branch_weights\", i32 1, i32 4000}\n\
         !1 = distinct !{!1, !\"margay\"}\n!2 = distinct !{!2, !1, !\"the program's memory\"}\n!3 = !{!2}\n!4 = !{}\n",
    );
    Ok(Text { text: out, sites, keep_size, by_warp, functions, uses_local })
}

/// Compiles and links a kernel.
pub fn compile(ir: &Ir<Placed>, kernel: FuncId, options: &Options, effort: Effort) -> Result<Compiled, CompileError> {
    let Text { text, sites, keep_size, by_warp, functions: reached, uses_local } =
        text(ir, kernel, options).map_err(CompileError::Refused)?;
    let mut pure = Vec::with_capacity(sites.len());
    for site in &sites {
        pure.push(match &site.kind {
            SiteKind::Pure { srcs, dsts } => {
                let func = &ir.funcs[site.func as usize];
                let variant = func.variant(&func.insts[site.inst as usize]);
                let found = sem::pure(variant, srcs, dsts);
                if found.is_none() {
                    let refused = Refused { what: variant.to_string(), func: FuncId(site.func), at: site.at };
                    return Err(CompileError::Refused(refused));
                }
                found
            }
            _ => None,
        });
    }
    let object = match cache::find(&text, effort) {
        Some(object) => object,
        None => {
            let context = inkwell::context::Context::create();
            let buffer = inkwell::memory_buffer::MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
            let module = context.create_module_from_ir(buffer).map_err(|e| CompileError::Bug(format!("{e}")))?;
            let object = machine::emit_object(&module, effort).map_err(CompileError::Bug)?;
            cache::keep(&text, effort, &object);
            object
        }
    };
    let linked = Linked::object("kernel", &object).map_err(CompileError::Bug)?;
    let mut functions = vec![0; ir.funcs.len()];
    for f in &reached {
        functions[f.0 as usize] = linked.address(&format!("f{}", f.0)).map_err(CompileError::Bug)?;
    }
    Ok(Compiled {
        entry: functions[kernel.0 as usize],
        _linked: linked,
        functions,
        sites,
        pure,
        keep_size,
        by_warp,
        uses_local,
        recursive: recursive(ir, kernel),
    })
}

/// The code of a kernel, for people.
pub fn show(ir: &Ir<Placed>, kernel: FuncId, options: &Options, form: Form) -> Result<String, CompileError> {
    let Text { text, .. } = text(ir, kernel, options).map_err(CompileError::Refused)?;
    if form == Form::Emitted {
        return Ok(text);
    }
    let context = inkwell::context::Context::create();
    let buffer = inkwell::memory_buffer::MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
    let module = context.create_module_from_ir(buffer).map_err(|e| CompileError::Bug(format!("{e}")))?;
    machine::optimize(&module, Effort::Full).map_err(CompileError::Bug)?;
    match form {
        Form::Assembly => machine::emit_assembly(&module, Effort::Full).map_err(CompileError::Bug),
        Form::Emitted | Form::Optimized => Ok(module.print_to_string().to_string()),
    }
}
