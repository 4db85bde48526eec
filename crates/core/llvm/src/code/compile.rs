//! Compilation of a kernel and everything it calls: IR, object, linked code.

use crate::{
    Form,
    code::cache,
    code::ffi::{CompilerScope, Listener},
    code::key::{CacheKey, Content},
    code::library::{self, Library, LibraryFunction, Texts},
    code::link::Linked,
    code::narrow::{exchanges_lanes, narrow, narrow_demanded},
    code::serialized::{Decoder, Encoder},
    code::target,
    emit::{self, Interleaved, LARGEST, Options, Refused, Site, SiteKind, exchange::exchanged},
};
use inkwell::{context::Context, memory_buffer::MemoryBuffer, module::Module, targets::TargetMachine};
use margay_check::FuncKind;
use margay_exec::{
    Effort, Image, Log, NoCode, matrix,
    sem::{self, PureFn},
    thread_index,
};
use margay_ir::{
    Callee, FuncId, Ir, Placed,
    pass::{reachable, recursive},
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// A compiled kernel.
pub struct Compiled {
    /// Keep the code mapped.
    _linked: Linked,
    _library: Library,
    /// Entry of the kernel.
    pub entry: usize,
    /// The kernel.
    pub kernel: FuncId,
    /// Native stack that its functions need.
    pub frames: Frames,
    /// Its lanes follow `%tid.y`.
    exchanged: bool,
    facts: Arc<Facts>,
}

impl Compiled {
    /// The block shape of a launch as the code numbers its threads.
    pub fn block(&self, launched: [u32; 3]) -> [u32; 3] {
        if self.exchanged { exchanged(launched) } else { launched }
    }

    /// Index of a lane's thread in a CTA of `launched` threads.
    pub fn thread_index(&self, launched: [u32; 3], warp: u32, lane: u32) -> [u32; 3] {
        self.block(thread_index(self.block(launched), warp, lane))
    }
}

impl std::ops::Deref for Compiled {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

/// What the host must know of a kernel's code; stored with it in the cache.
pub struct Facts {
    /// The compiled functions: the kernel and everything it may call.
    reached: Vec<FuncId>,
    /// Sites by number. The code passes these numbers to helpers.
    pub sites: Vec<Site>,
    /// Per site: the semantic function, for `Pure` sites.
    pub pure: Vec<Option<PureFn>>,
    /// Size in bytes of a CTA's spill area.
    pub spill_size: u64,
    /// The entry runs one warp, on a fiber, rather than a range of CTAs.
    pub by_warp: bool,
    /// Some function accesses local windows.
    pub uses_local: bool,
    /// The part of them whose lanes are interleaved.
    pub interleaved: Option<Interleaved>,
    /// Device functions may recurse, which calls for a deep native stack.
    pub recursive: bool,
}

impl Facts {
    /// Sites of instructions that the reference engine executes.
    pub fn single_steps(&self) -> impl Iterator<Item = &Site> {
        self.sites.iter().filter(|s| matches!(s.kind, SiteKind::Effect { .. }))
    }

    /// Serializes the facts, with what is known of the object; `None` if a site has no serialized form.
    fn store(&self, frames: Frames, library: &Library) -> Option<Vec<u8>> {
        let Facts { reached, sites, pure: _, spill_size, by_warp, uses_local, interleaved, recursive } = self;
        let mut out = Encoder::default();
        [frames.sum, frames.largest].into_iter().for_each(|n| out.number(n as u64));
        out.numbers(reached.iter().map(|f| u64::from(f.0)));
        let flags = [by_warp, uses_local, recursive].map(|flag| u64::from(*flag));
        let frame = interleaved.map_or([0; 3], |Interleaved { start, size, unit }| [start, size, unit]);
        frame.into_iter().for_each(|n| out.number(n.into()));
        out.library(library.iter().map(|(function, _)| function));
        [*spill_size].into_iter().chain(flags).chain([sites.len() as u64]).for_each(|n| out.number(n));
        sites.iter().all(|site| out.site(site)).then_some(out.0)
    }

    fn restore(bytes: &[u8], ir: &Ir<Placed>) -> Option<(Facts, Frames, Vec<LibraryFunction>)> {
        let mut bytes = Decoder(bytes);
        let mut size = || usize::try_from(bytes.number()?).ok();
        let frames = Frames { sum: size()?, largest: size()? };
        let reached = bytes.numbers()?.into_iter().map(FuncId).collect();
        let mut word = || u32::try_from(bytes.number()?).ok();
        let (start, size, unit) = (word()?, word()?, word()?);
        let interleaved = (size > 0).then_some(Interleaved { start, size, unit });
        let library = bytes.library()?;
        let spill_size = bytes.number()?;
        let (by_warp, uses_local, recursive) = (bytes.bit()?, bytes.bit()?, bytes.bit()?);
        let sites = bytes.sites()?;
        let pure = pure_functions(ir, &sites).ok()?;
        Some((Facts { reached, sites, pure, spill_size, by_warp, uses_local, interleaved, recursive }, frames, library))
    }
}

/// Native stack of the compiled functions, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// Sum of all frames.
    pub sum: usize,
    /// Largest frame.
    pub largest: usize,
}

impl Frames {
    /// What LLVM's sizes omit: return address, saved registers, alignment.
    const BESIDE: usize = 256;

    /// Reads the diagnostics that LLVM emits for functions with the attribute `"warn-stack-size"="0"`.
    fn from_notes(notes: &[String], functions: usize) -> Frames {
        let size = |note: &String| {
            let (number, _) = note.split_once("stack frame size (")?.1.split_once(')')?;
            number.parse::<usize>().ok()
        };
        let sizes = || notes.iter().filter_map(size);
        Frames {
            sum: sizes().sum::<usize>() + functions * Frames::BESIDE,
            largest: sizes().max().unwrap_or(0) + Frames::BESIDE,
        }
    }
}

/// What to compile, and under which key it is cached.
pub struct Recipe {
    pub image: Arc<Image>,
    pub kernel: FuncId,
    pub options: Options,
    key: CacheKey,
}

/// Relocatable object code, and what the host must know of it.
pub struct Object {
    pub facts: Arc<Facts>,
    frames: Frames,
    bytes: Vec<u8>,
    library: Library,
}

impl Recipe {
    /// For a kernel with this content under options.
    pub fn new(image: Arc<Image>, kernel: FuncId, content: Content, options: Options) -> Recipe {
        let key = CacheKey::new(content, &options);
        Recipe { image, kernel, options, key }
    }

    /// Looks up the object of an earlier compilation in the cache.
    pub fn cached(&self, effort: Effort) -> Option<Object> {
        let entry = cache::find(self.key, effort)?;
        let (facts, frames, library) = Facts::restore(&entry.facts, &self.image.ir)?;
        let library = library.into_iter().map(|f| f.find().map(|linked| (f, linked))).collect::<Option<Library>>()?;
        Some(Object { facts: Arc::new(facts), frames, bytes: entry.object, library })
    }

    /// Notes that the code would have paid; see [`margay_exec::Program::note_demand`].
    pub fn note_demand(&self, effort: Effort, spent: Duration) {
        cache::note_demand(self.key, effort, spent);
    }

    /// Whether that was noted.
    pub fn has_demand(&self) -> bool {
        cache::has_demand(self.key)
    }

    /// Emits the kernel as LLVM IR.
    pub fn emit(&self) -> Result<Draft, Refused> {
        Draft::new(&self.image.ir, self.kernel, &self.options)
    }

    /// Compiles a draft and stores the object in the cache.
    pub fn compile(&self, draft: &Draft, effort: Effort, log: &Log) -> Result<Object, NoCode> {
        // Waiting for another process leaves the processor to it; a second compilation would not.
        let claim = log.time("wait", || cache::claim(self.key, effort));
        if claim.waited
            && let Some(object) = self.cached(effort)
        {
            return Ok(object);
        }
        let Some(_scope) = CompilerScope::enter() else { return Err(NoCode::Unavailable("the process ends".into())) };
        log.time("load LLVM", target::initialize).map_err(NoCode::Unavailable)?;
        let (bytes, frames, library) = draft.compile(effort, log)?;
        if let Some(facts) = draft.facts.store(frames, &library) {
            log.time("store", || cache::store(self.key, effort, &facts, &bytes));
        }
        Ok(Object { facts: draft.facts.clone(), frames, bytes, library })
    }

    /// Links an object, so that it can be called.
    pub fn link(&self, object: &Object) -> Result<Compiled, String> {
        let library = object.library.clone();
        let linked = Linked::object(&object.bytes, &library)?;
        let entry = linked.address(&emit::symbol(self.kernel))?;
        let (kernel, facts) = (self.kernel, object.facts.clone());
        let exchanged = self.options.exchanged;
        Ok(Compiled { entry, _linked: linked, _library: library, kernel, frames: object.frames, exchanged, facts })
    }
}

/// A kernel as LLVM IR text.
pub struct Draft {
    /// The kernel and everything it may call.
    bodies: String,
    /// What these functions need: declarations, constants, and definitions.
    declared: BTreeSet<String>,
    /// Threads of a CTA; the greatest number if that is unknown.
    threads: u32,
    facts: Arc<Facts>,
}

impl Draft {
    /// Emits a kernel and everything it may call.
    pub fn new(ir: &Ir<Placed>, kernel: FuncId, options: &Options) -> Result<Draft, Refused> {
        let (mut uses_local, mut interleaved) = (false, None);
        let mut sites = Vec::new();
        let mut declared = BTreeSet::new();
        let mut bodies = String::new();
        let (mut spill_size, mut by_warp) = (0, false);
        let mut functions = reachable(ir, kernel);
        // A kernel is never a call target, even if its address is taken.
        functions.retain(|f| !ir.func(*f).blocks.is_empty() && (*f == kernel || ir.func(*f).kind != FuncKind::Kernel));
        let what = emit::Reached::new(ir, &functions, kernel, options);
        for f in &functions {
            let emitted = emit::emit(ir, *f, options, &what, &mut sites)?;
            bodies.push_str(&emitted.text);
            declared.extend(emitted.declared);
            spill_size = spill_size.max(emitted.spill_size);
            by_warp |= emitted.by_warp;
            uses_local |= emitted.uses_local;
            interleaved = interleaved.or(emitted.interleaved);
        }
        let pure = pure_functions(ir, &sites)?;
        let indirect = |f: &FuncId| ir.func(*f).calls.iter().any(|c| matches!(c.callee, Callee::Indirect(..)));
        let recursive = functions.iter().any(indirect) || recursive(ir, &functions).is_some();
        let size = bodies.len() + declared.iter().map(String::len).sum::<usize>();
        if size > LARGEST {
            return Err(Refused::too_large(size, kernel));
        }
        let facts = Facts { reached: functions, sites, pure, spill_size, by_warp, uses_local, interleaved, recursive };
        Ok(Draft { bodies, declared, threads: options.threads().unwrap_or(u32::MAX), facts: Arc::new(facts) })
    }

    fn compile(&self, effort: Effort, log: &Log) -> Result<(Vec<u8>, Frames, Library), NoCode> {
        let texts = Texts::new(&self.declared);
        let library = log.time("library", || library::link(&texts.library(&self.bodies), effort))?;
        let linked: Vec<&str> = library.iter().map(|(function, _)| function.symbol.as_str()).collect();
        let text = texts.module(&self.bodies, &linked);
        let (bytes, notes) = compile_text(&text, self.threads, effort, log).map_err(NoCode::Bug)?;
        Ok((bytes, Frames::from_notes(&notes, self.facts.reached.len()), library))
    }

    /// The code of the given form as text. All functions are part of the module.
    pub fn show(self, effort: Effort, form: Form) -> Result<String, String> {
        let text = Texts::new(&self.declared).module(&self.bodies, &[]);
        if form == Form::Emitted {
            return Ok(text);
        }
        target::initialize()?;
        let context = Context::create();
        let (module, machine) = optimized(&context, &text, self.threads, effort, &Log::default())?;
        match form {
            Form::Assembly => target::emit_assembly(&module, &machine),
            Form::Emitted | Form::Optimized => Ok(module.print_to_string().to_string()),
        }
    }
}

/// Compiles a module for CTAs of at most `threads` threads to an object; also gives LLVM's notes.
pub(super) fn compile_text(
    text: &str,
    threads: u32,
    effort: Effort,
    log: &Log,
) -> Result<(Vec<u8>, Vec<String>), String> {
    let context = Context::create();
    let listener = Listener::new(&context);
    let (module, machine) = optimized(&context, text, threads, effort, log)?;
    let object = log.time("generate", || target::emit_object(&module, &machine))?;
    Ok((object, listener.notes()))
}

/// A module as the code generator gets it.
fn optimized<'c>(
    context: &'c Context,
    text: &str,
    threads: u32,
    effort: Effort,
    log: &Log,
) -> Result<(Module<'c>, TargetMachine), String> {
    let module = log.time("parse", || parse(context, text))?;
    let (divides, exchanges) = (target::narrows(effort), effort == Effort::Full && exchanges_lanes(text));
    let machine = log.time("optimize", || target::optimize(&module, effort, text.len(), divides || exchanges))?;
    if !divides && !exchanges {
        return Ok((module, machine));
    }
    let module = log.time("narrow", || {
        let mut text = module.print_to_string().to_string();
        let demanded = if exchanges { narrow_demanded(&text) } else { None };
        if !divides && demanded.is_none() {
            return Ok(module);
        }
        text = demanded.unwrap_or(text);
        if divides {
            text = narrow(&text, threads);
        }
        parse(context, &text)
    })?;
    Ok((module, machine))
}

fn parse<'c>(context: &'c Context, text: &str) -> Result<Module<'c>, String> {
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
    context.create_module_from_ir(buffer).map_err(|e| e.to_string())
}

/// The semantic function of every `Pure` site.
fn pure_functions(ir: &Ir<Placed>, sites: &[Site]) -> Result<Vec<Option<PureFn>>, Refused> {
    let find = |site: &Site| {
        let SiteKind::Pure { srcs, dsts } = &site.kind else { return Ok(None) };
        let func = &ir.funcs[site.func as usize];
        let variant = func.variant(&func.insts[site.inst as usize]);
        match sem::pure(variant, srcs, dsts).or_else(|| matrix::pure(variant)) {
            Some(f) => Ok(Some(f)),
            None => Err(Refused { what: variant.to_string(), func: FuncId(site.func), at: site.at }),
        }
    };
    sites.iter().map(find).collect()
}

/// The end of every module: attributes and metadata.
pub(super) fn trailer() -> &'static str {
    // LLVM reports the size of each frame; large frames probe every page, so that none can skip a guard page.
    "attributes #0 = { nounwind \"warn-stack-size\"=\"0\" \"probe-stack\"=\"inline-asm\" }\n\
     attributes #1 = { nounwind }\n\
     attributes #2 = { nounwind noinline cold }\n\
     !0 = !{!\"branch_weights\", i32 1, i32 4000}\n\
     !1 = distinct !{!1, !\"margay\"}\n\
     !2 = distinct !{!2, !1, !\"the program's memory\"}\n\
     !3 = !{!2}\n\
     !4 = !{}\n"
}
