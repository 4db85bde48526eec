//! A kernel and all that it calls, from IR to linked code.

use crate::{
    Form, cache,
    emit::{self, Options, Refused, Site, SiteKind},
    ffi::Linked,
    machine::{self, Effort},
};
use inkwell::{context::Context, memory_buffer::MemoryBuffer, module::Module};
use margay_exec::sem::{self, PureFn};
use margay_ir::{
    Callee, FuncId, Ir, Placed,
    pass::{reachable, recursive},
};
use std::{collections::BTreeSet, fmt::Write, sync::Arc};

/// A compiled kernel.
pub struct Compiled {
    /// Keeps the code mapped.
    _linked: Linked,
    /// Entry of the kernel.
    pub entry: usize,
    /// Entries of device functions by id; 0 where there is none.
    pub functions: Vec<usize>,
    draft: Arc<Draft>,
}

impl std::ops::Deref for Compiled {
    type Target = Draft;

    fn deref(&self) -> &Draft {
        &self.draft
    }
}

/// A kernel as LLVM IR, and what the host must know of it.
pub struct Draft {
    text: String,
    reached: Vec<FuncId>,
    kernel: FuncId,
    funcs: usize,
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
    /// Bytes of a thread's local window that the kernel itself takes.
    pub frame: u32,
    /// Device functions may call themselves, so the host's stack must be deep.
    pub recursive: bool,
}

impl Draft {
    /// Writes the LLVM IR of a kernel and what it reaches.
    pub fn new(ir: &Ir<Placed>, kernel: FuncId, options: &Options) -> Result<Draft, Refused> {
        let mut uses_local = false;
        let mut sites = Vec::new();
        let mut declared = BTreeSet::new();
        let mut bodies = String::new();
        let (mut keep_size, mut by_warp) = (0, false);
        let mut functions = reachable(ir, kernel);
        functions.retain(|f| !ir.func(*f).blocks.is_empty());
        let what = emit::Reached::new(ir, &functions, kernel, options);
        for f in &functions {
            let emitted = emit::emit(ir, *f, options, &what, &mut sites)?;
            bodies.push_str(&emitted.text);
            declared.extend(emitted.declared);
            keep_size = keep_size.max(emitted.keep_size);
            by_warp |= emitted.by_warp;
            uses_local |= emitted.uses_local;
        }
        let pure = pure_functions(ir, &sites)?;
        let indirect = |f: &FuncId| ir.func(*f).calls.iter().any(|c| matches!(c.callee, Callee::Indirect(..)));
        Ok(Draft {
            text: module(&bodies, &declared),
            recursive: functions.iter().any(indirect) || recursive(ir, &functions).is_some(),
            reached: functions,
            kernel,
            funcs: ir.funcs.len(),
            sites,
            pure,
            keep_size,
            by_warp,
            uses_local,
            frame: ir.stage.funcs[kernel.0 as usize].frame_size,
        })
    }

    /// Bytes of native stack that the frames of the kernel's functions may take, far more than they mostly do. A vector takes up to
    /// 256 bytes and about 100 of text, and with little effort LLVM gives each a place of its own.
    pub fn frames(&self) -> usize {
        self.text.len() * 4
    }

    /// Whether some instructions are left to the reference engine.
    pub fn leaves_effects(&self) -> bool {
        self.sites.iter().any(|s| matches!(s.kind, SiteKind::Effect { .. }))
    }

    /// The object that an earlier compilation left in the cache.
    pub fn cached(&self, effort: Effort) -> Option<Vec<u8>> {
        cache::find(&self.text, effort)
    }

    /// Compiles; an error is a bug of ours.
    pub fn compile(&self, effort: Effort) -> Result<Vec<u8>, String> {
        let context = inkwell::context::Context::create();
        let object = machine::emit_object(&self.parse(&context)?, effort)?;
        cache::keep(&self.text, effort, &object);
        Ok(object)
    }

    fn parse<'c>(&self, context: &'c Context) -> Result<Module<'c>, String> {
        let buffer = MemoryBuffer::create_from_memory_range_copy(self.text.as_bytes(), "kernel");
        context.create_module_from_ir(buffer).map_err(|e| e.to_string())
    }

    /// Makes an object callable.
    pub fn link(self: &Arc<Draft>, object: &[u8]) -> Result<Compiled, String> {
        let linked = Linked::object("kernel", object)?;
        let mut functions = vec![0; self.funcs];
        for f in &self.reached {
            functions[f.0 as usize] = linked.address(&emit::symbol(*f))?;
        }
        Ok(Compiled { entry: functions[self.kernel.0 as usize], _linked: linked, functions, draft: self.clone() })
    }

    /// The code, for people.
    pub fn show(self, form: Form) -> Result<String, String> {
        if form == Form::Emitted {
            return Ok(self.text);
        }
        let context = Context::create();
        let module = self.parse(&context)?;
        machine::optimize(&module, Effort::Full)?;
        match form {
            Form::Assembly => machine::emit_assembly(&module, Effort::Full),
            Form::Emitted | Form::Optimized => Ok(module.print_to_string().to_string()),
        }
    }
}

/// Semantic functions of the rows that go through the host.
fn pure_functions(ir: &Ir<Placed>, sites: &[Site]) -> Result<Vec<Option<PureFn>>, Refused> {
    let find = |site: &Site| {
        let SiteKind::Pure { srcs, dsts } = &site.kind else { return Ok(None) };
        let func = &ir.funcs[site.func as usize];
        let variant = func.variant(&func.insts[site.inst as usize]);
        match sem::pure(variant, srcs, dsts) {
            Some(f) => Ok(Some(f)),
            None => Err(Refused { what: variant.to_string(), func: FuncId(site.func), at: site.at }),
        }
    };
    sites.iter().map(find).collect()
}

/// The text of a module: declarations, helpers, functions, attributes, metadata.
fn module(bodies: &str, declared: &BTreeSet<String>) -> String {
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
    out.push_str(bodies);
    out.push_str(
        "attributes #0 = { nounwind }\nattributes #1 = { nounwind }\nattributes #2 = { nounwind noinline cold }\n!0 = !{!\"branch_weights\", i32 1, i32 4000}\n\
         !1 = distinct !{!1, !\"margay\"}\n!2 = distinct !{!2, !1, !\"the program's memory\"}\n!3 = !{!2}\n!4 = !{}\n",
    );
    out
}
