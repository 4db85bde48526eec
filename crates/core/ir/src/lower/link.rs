//! Linking: every function and variable of every module gets its id; names are resolved across modules (section 11.6).
//!
//! `.visible` symbols are strong: one definition in all modules. A strong definition overrides `.weak` ones; if there is none, the first weak
//! one is used. `.common` variables of the same name are merged into one of the largest size. A name that is only declared refers to
//! the definition in any module; without one it stays an undefined function or an external variable. Symbols without
//! a linkage directive are local to their module.

use super::{LowerError, globals::link_globals, thread::ThreadBlock};
use crate::{
    Builtin, Func, FuncId, Global, GlobalId, GlobalInit, Ir, Pointee, Source, Virtual,
    abi::{Signature, Value},
};
use margay_check::{self as check, Checked, Extent, Formal, FuncKind, Function, Linkage};
use margay_isa::{Space, Suffix, Target, Version};
use margay_syntax::{Span, tree::List};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

/// The program under construction. What all kernels of a module have in common is shared, so that a copy costs little
/// however many functions and variables there are.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub modules: Arc<[(Arc<Source>, Checked)]>,
    pub funcs: Vec<Entry>,
    pub globals: Vec<Arc<Global>>,
    /// Where each variable is declared, for messages.
    pub global_places: Vec<(usize, Span)>,
    /// By module and `check`'s id.
    pub func_ids: Arc<Vec<Vec<FuncId>>>,
    /// By module and `check`'s id.
    pub global_ids: Arc<Vec<Vec<Home>>>,
    /// As [`Ir::address_taken`].
    pub address_taken: Arc<[FuncId]>,
    /// Kernels and visible functions.
    pub names: Arc<HashMap<Box<str>, FuncId>>,
    pub global_names: Arc<HashMap<Box<str>, GlobalId>>,
    pub thread: ThreadBlock,
    target: Target,
    version: Version,
    pub address_size: u32,
    /// As [`Ir::ranked_addresses`].
    pub ranked_addresses: bool,
}

/// Where a module-level variable of `check` lives in the program.
#[derive(Clone, Copy, Debug)]
pub(super) enum Home {
    /// Static storage.
    Global(GlobalId),
    /// At an offset of the thread block: module-scope `.reg` and `.local`.
    Thread(u32),
}

/// A function of the program.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The module whose definition (or first declaration) this is.
    pub module: usize,
    /// The function there.
    pub id: check::FuncId,
    /// The function to lower; `None` without a definition.
    pub body: Option<check::FuncId>,
    /// What is known so far: all but the body.
    pub func: Arc<Func>,
}

impl Entry {
    pub fn is_kernel(&self) -> bool {
        self.func.kind == FuncKind::Kernel
    }
}

impl Program {
    pub fn source(&self, module: usize) -> &Arc<Source> {
        &self.modules[module].0
    }

    pub fn finish(self) -> Ir<Virtual> {
        Ir {
            funcs: self.funcs.into_iter().map(|e| e.func).collect(),
            globals: self.globals,
            address_taken: self.address_taken,
            func_names: self.names,
            global_names: self.global_names,
            target: self.target,
            version: self.version,
            address_size: self.address_size,
            thread_block: self.thread.size(),
            ranked_addresses: self.ranked_addresses,
            stage: Virtual,
        }
    }
}

/// Whether a module mentions clusters: their barriers, scopes, special registers, directives or windows. Bodies are not resolved yet.
fn names_clusters(source: &Source, target: Target) -> bool {
    const FIRST: u16 = 90;
    let words = [".cluster", "::cluster", "%cluster_", "nctapercluster", "mapa."];
    target.sm >= FIRST && words.iter().any(|word| source.tree.text.contains(word))
}

/// `; there are ...`, for messages about a kernel that is not there.
pub(super) fn kernels(program: &Program) -> String {
    let mut names: Vec<&str> = program.funcs.iter().filter(|e| e.is_kernel()).map(|e| &*e.func.name).collect();
    names.sort_unstable();
    match names.len() {
        0 => "; the module has no kernels".to_string(),
        n if n > 12 => format!("; the module has {n} kernels, among them `{}`", names[..12].join("`, `")),
        _ => format!("; there is `{}`", names.join("`, `")),
    }
}

/// A definition or declaration of a name.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub module: usize,
    /// Index in the module's functions or variables.
    pub index: u32,
    pub linkage: Linkage,
    pub defined: bool,
}

/// The definition that a name refers to: a strong one, else the first weak one, else the largest common one.
pub(super) fn choose(
    modules: &[(Arc<Source>, Checked)],
    name: &str,
    candidates: &[Candidate],
    size: impl Fn(&Candidate) -> u64,
    span: impl Fn(&Candidate) -> Span,
) -> Result<Option<Candidate>, LowerError> {
    let mut strong = candidates.iter().filter(|c| c.defined && c.linkage == Linkage::Visible);
    let first = strong.next();
    if let (Some(a), Some(b)) = (first, strong.next()) {
        let message = format!("`{name}` is defined twice");
        return Err(LowerError::new(&modules[b.module].0, span(b), message).and(&modules[a.module].0, span(a)));
    }
    let weak = || candidates.iter().find(|c| c.defined && c.linkage == Linkage::Weak);
    let common = || candidates.iter().filter(|c| c.defined && c.linkage == Linkage::Common).max_by_key(|c| size(c));
    Ok(first.or_else(weak).or_else(common).copied())
}

pub(super) fn link(modules: &[(Arc<Source>, Checked)]) -> Result<Program, LowerError> {
    let mut program = Program {
        modules: modules.into(),
        funcs: Vec::new(),
        globals: Vec::new(),
        global_places: Vec::new(),
        func_ids: Arc::default(),
        global_ids: Arc::default(),
        address_taken: Arc::default(),
        names: Arc::default(),
        global_names: Arc::default(),
        thread: ThreadBlock::default(),
        target: Target { sm: 0, suffix: Suffix::None },
        version: Version::FIRST,
        address_size: modules.first().map_or(64, |m| m.1.module.address_size),
        ranked_addresses: modules.iter().any(|(source, checked)| names_clusters(source, checked.module.target)),
    };
    for (source, checked) in modules {
        let module = &checked.module;
        program.target = program.target.max(module.target);
        program.version = program.version.max(module.version);
        if module.address_size != program.address_size {
            let message =
                format!("both `.address_size {}` and `.address_size {}`", module.address_size, program.address_size);
            return Err(LowerError::new(source, Span::default(), message));
        }
    }
    link_funcs(&mut program, modules)?;
    link_globals(&mut program, modules)?;
    program.address_taken = address_taken(&program);
    Ok(program)
}

fn address_taken(program: &Program) -> Arc<[FuncId]> {
    let in_code = program.modules.iter().zip(&*program.func_ids);
    let in_code =
        in_code.flat_map(|((_, checked), ids)| checked.module.address_taken.iter().map(|f| ids[f.0 as usize]));
    let in_data = program.globals.iter().flat_map(|g| &g.init).filter_map(|init| match init {
        GlobalInit::Address { of: Pointee::Func(f), .. } => Some(*f),
        _ => None,
    });
    let taken: BTreeSet<FuncId> = in_code.chain(in_data).collect();
    taken.into_iter().filter(|f| !program.funcs[f.0 as usize].is_kernel()).collect()
}

fn link_funcs(program: &mut Program, modules: &[(Arc<Source>, Checked)]) -> Result<(), LowerError> {
    let funcs = |m: usize| &modules[m].1.module.funcs;
    // Aliases are declared as functions without a body; they denote the function that they name.
    let aliases: Vec<HashMap<&str, check::FuncId>> =
        modules.iter().map(|(_, c)| c.module.aliases.iter().map(|a| (&*a.name, a.of)).collect()).collect();
    let aliasee = |m: usize, f: &Function| if f.defined { None } else { aliases[m].get(&*f.name).copied() };

    let mut by_name: BTreeMap<&str, Vec<Candidate>> = BTreeMap::new();
    for m in 0..modules.len() {
        for (index, f) in funcs(m).iter().enumerate() {
            let alias = aliasee(m, f);
            if f.linkage != Linkage::Internal || (!f.defined && alias.is_none()) {
                let defined = f.defined || alias.is_some();
                let candidate = Candidate { module: m, index: index as u32, linkage: f.linkage, defined };
                by_name.entry(&f.name).or_default().push(candidate);
            }
        }
    }
    let mut chosen: HashMap<&str, (usize, u32)> = HashMap::new();
    for (name, candidates) in &by_name {
        let span = |c: &Candidate| funcs(c.module)[c.index as usize].span;
        let found = choose(modules, name, candidates, |_| 0, span)?.unwrap_or(candidates[0]);
        chosen.insert(name, (found.module, found.index));
        for c in candidates {
            agree(modules, (found.module, found.index), (c.module, c.index))?;
        }
    }
    // Which function of which module each name refers to; then ids in text order.
    let stands_for = |m: usize, index: u32| -> (usize, u32) {
        let f = &funcs(m)[index as usize];
        let external = f.linkage != Linkage::Internal || (!f.defined && aliasee(m, f).is_none());
        let (m, index) = if external { chosen[&*f.name] } else { (m, index) };
        let f = &funcs(m)[index as usize];
        (m, aliasee(m, f).map_or(index, |of| of.0))
    };
    let mut ids: HashMap<(usize, u32), FuncId> = HashMap::new();
    let mut signatures = HashMap::new();
    let (mut func_ids, mut names) = (Vec::with_capacity(modules.len()), HashMap::new());
    for m in 0..modules.len() {
        let mut of_module = Vec::with_capacity(funcs(m).len());
        for index in 0..funcs(m).len() as u32 {
            let target = stands_for(m, index);
            let id = *ids.entry(target).or_insert_with(|| {
                program.funcs.push(entry(modules, target.0, check::FuncId(target.1), &mut signatures));
                FuncId(program.funcs.len() as u32 - 1)
            });
            of_module.push(id);
            let f = &funcs(m)[index as usize];
            if f.linkage != Linkage::Internal || f.kind == FuncKind::Kernel {
                names.entry(f.name.clone()).or_insert(id);
            }
        }
        func_ids.push(of_module);
    }
    (program.func_ids, program.names) = (func_ids.into(), names.into());
    Ok(())
}

/// A declaration and its definition must have the same signature (section 11.2.2).
fn agree(modules: &[(Arc<Source>, Checked)], a: (usize, u32), b: (usize, u32)) -> Result<(), LowerError> {
    let (f, g) = (&modules[a.0].1.module.funcs[a.1 as usize], &modules[b.0].1.module.funcs[b.1 as usize]);
    let same = |x: &[Formal], y: &[Formal]| {
        x.len() == y.len()
            && x.iter()
                .zip(y)
                .all(|(x, y)| (x.size, x.align, x.vector, is_array(x)) == (y.size, y.align, y.vector, is_array(y)))
    };
    if a == b || (f.kind == g.kind && same(&f.params, &g.params) && same(&f.rets, &g.rets)) {
        return Ok(());
    }
    let message = format!("`{}` is declared here with a different signature than its definition", g.name);
    Err(LowerError::new(&modules[b.0].0, g.span, message).and(&modules[a.0].0, f.span))
}

/// `signatures` has those of the functions before: equal ones are shared.
fn entry(
    modules: &[(Arc<Source>, Checked)],
    module: usize,
    id: check::FuncId,
    signatures: &mut HashMap<Signature, Arc<Signature>>,
) -> Entry {
    let (source, checked) = &modules[module];
    let f = &checked.module.funcs[id.0 as usize];
    let func = Func {
        name: f.name.clone(),
        builtin: if f.defined { None } else { Builtin::from_name(&f.name) },
        kind: f.kind,
        sig: signatures.entry(signature(f)).or_insert_with_key(|sig| Arc::new(sig.clone())).clone(),
        param_names: f.params.iter().map(|p| p.name.clone()).collect(),
        pointers: f.params.iter().map(|p| p.ptr).collect(),
        ret_names: f.rets.iter().map(|p| p.name.clone()).collect(),
        params: Vec::new(),
        rets: Vec::new(),
        regs: Vec::new(),
        reg_names: Vec::new(),
        frame: Vec::new(),
        blocks: Vec::new(),
        insts: Vec::new(),
        operands: Vec::new(),
        types: Vec::new(),
        variants: Vec::new(),
        calls: Vec::new(),
        places: Vec::new(),
        source: source.clone(),
        noreturn: f.noreturn,
        reqntid: f.reqntid,
        maxntid: f.maxntid,
        reqnctapercluster: f.reqnctapercluster,
        maxnreg: f.maxnreg,
        never_spins: false,
    };
    Entry { module, id, body: f.defined.then_some(id), func: Arc::new(func) }
}

fn is_array(f: &Formal) -> bool {
    f.extent != Extent::Scalar
}

/// A function's interface as an ABI sees it. Kernel parameters are the same for all threads.
pub fn signature(f: &Function) -> Signature {
    let value = |p: &Formal| Value {
        ty: p.ty,
        vector: p.vector,
        space: p.space,
        size: p.size,
        align: p.align.max(1),
        array: is_array(p),
        is_unsized: matches!(p.extent, Extent::Unsized | Extent::Array(0)),
        varying: f.kind == FuncKind::Device,
    };
    Signature {
        params: f.params.iter().map(value).collect(),
        rets: f.rets.iter().map(value).collect(),
        preserve: f.abi_preserve,
        preserve_control: f.abi_preserve_control,
    }
}

/// Symbols that a body names, each with its first place.
#[derive(Default)]
pub(super) struct Refs {
    pub funcs: Vec<(FuncId, Span)>,
    pub globals: Vec<(GlobalId, Span)>,
    seen: (HashSet<FuncId>, HashSet<GlobalId>),
}

impl Refs {
    pub fn func(&mut self, id: FuncId, span: Span) {
        if self.seen.0.insert(id) {
            self.funcs.push((id, span));
        }
    }

    pub fn global(&mut self, id: GlobalId, span: Span) {
        if self.seen.1.insert(id) {
            self.globals.push((id, span));
        }
    }

    /// Everything named has a definition, is known to engines, or is dynamic shared memory.
    pub fn check_defined(&self, program: &Program, func: &Func) -> Result<(), LowerError> {
        for (id, span) in &self.funcs {
            let e = &program.funcs[id.0 as usize];
            if e.body.is_none() && e.func.builtin.is_none() {
                let (user, name) = (&func.name, &e.func.name);
                let declared = program.modules[e.module].1.module.funcs[e.id.0 as usize].span;
                let lack = lacking(name);
                let message = match lack {
                    Some(lack) => format!("{lack}: `{user}` uses `{name}`"),
                    None => format!("`{user}` uses the function `{name}`, which no module defines"),
                };
                let error = LowerError::new(&func.source, *span, message).and(program.source(e.module), declared);
                return Err(LowerError { unsupported: lack.is_some(), ..error });
            }
        }
        for (id, span) in &self.globals {
            let g = &program.globals[id.0 as usize];
            if g.external && g.space != Space::Shared {
                let message = format!("`{}` uses the variable `{}`, which no module defines", func.name, g.name);
                let (module, declared) = program.global_places[id.0 as usize];
                return Err(LowerError::new(&func.source, *span, message).and(program.source(module), declared));
            }
        }
        Ok(())
    }
}

/// What margay lacks of CUDA's device runtime, which NVIDIA's toolkit links with, by the name of an entry point.
fn lacking(name: &str) -> Option<&'static str> {
    match name {
        // The first version of dynamic parallelism had them, which has none for sm_90 and later (CUDA C++ Programming Guide,
        // "CUDA Dynamic Parallelism", "CDP2 vs CDP1").
        "cudaDeviceSynchronize" | "__cudaDeviceSynchronizeDeprecationAvoidance" => {
            Some("device code that waits for its launches (CUDA removed this for sm_90 and later)")
        }
        _ => name.starts_with("__cudaCDP").then_some("this part of the device runtime (dynamic parallelism)"),
    }
}

/// An empty list of a pool.
pub(super) fn empty<T>() -> List<T> {
    List::empty()
}
