//! The SIMD engine: whole warps as vectors, compiled by LLVM.
//!
//! `emit` writes LLVM IR, `code` compiles it to callable code, `run` calls that. The engine compiles synchronously, on
//! request: who waits for code, and what runs meanwhile, is up to the runtime. A construct that the engine cannot
//! compile is refused by name.

mod code;
mod ctx;
pub mod emit;
mod run;

pub use code::{cache, ffi::watch_thread, load::look_first};

use code::{
    callable::Code,
    compile::{Draft, Recipe},
    key::Content,
};
use margay_exec::{CodeShape, Compiler, Effort, Image, Kernel, Log, NoCode, Program, Unsupported};
use margay_ir::{
    FuncId, Ir, Placed,
    pass::{WarpShape, reachable},
};
use margay_isa::Effect;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

/// The SIMD engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimdEngine;

impl SimdEngine {
    /// Renders a kernel's code for a block shape, as text; an error says why the engine has no code for it.
    pub fn show(
        &self,
        ir: &Ir<Placed>,
        kernel: FuncId,
        block: [u32; 3],
        effort: Effort,
        form: Form,
    ) -> Result<String, String> {
        let shape = CodeShape { block, cluster: [1; 3], turns: false, count: false, observe: None };
        let options = options(&shape, effort, |block| emit::exchange::gains(ir, kernel, block));
        let refused = |r: emit::Refused| {
            format!("the SIMD engine leaves this kernel to the reference engine, for {}", explain(ir, &r))
        };
        Draft::new(ir, kernel, &options).map_err(refused)?.show(effort, form)
    }
}

/// Says which construct was refused, and in which line.
fn explain(ir: &Ir<Placed>, refused: &emit::Refused) -> String {
    let func = ir.func(refused.func);
    let line = func.places.get(refused.at as usize).map(|p| func.source.lines().line(p.span.start));
    let at = line.map(|l| format!(" in line {l}")).unwrap_or_default();
    format!("{}{at}", refused.what)
}

/// The stage at which compiled code is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// LLVM IR as the engine writes it.
    Emitted,
    /// LLVM IR after LLVM's passes.
    Optimized,
    /// Instructions of the host.
    Assembly,
}

/// The emission options of an effort for launches of a shape. `gains` says whether a kernel should run as if the first two dimensions of
/// its CTAs were exchanged.
fn options(shape: &CodeShape, effort: Effort, gains: impl FnOnce([u32; 3]) -> bool) -> emit::Options {
    let cluster = Some(shape.cluster).filter(|c| *c != [1; 3]);
    let narrowest = if effort == Effort::Light { 16 } else { 0 };
    let alone = cluster.is_none() && !shape.turns && shape.observe.is_none();
    let exchanged = effort == Effort::Full && alone && gains(shape.block);
    let block = if exchanged { emit::exchange::exchanged(shape.block) } else { shape.block };
    emit::Options {
        warp: WarpShape { block: Some(block), narrowest, ..WarpShape::default() },
        exchanged,
        mask_registers: code::target::mask_registers(),
        gathers: code::target::gathers(),
        half_floats: code::target::half_floats(),
        half_arithmetic: code::target::half_arithmetic(),
        fused: code::target::fused(),
        lean: effort == Effort::Light,
        stacks: shape.turns || cluster.is_some(),
        count: shape.count,
        observe: shape.observe,
        cluster,
    }
}

impl Compiler for SimdEngine {
    fn program(&self, image: Arc<Image>, kernel: FuncId) -> Arc<dyn Program> {
        code::ffi::watch_thread();
        let mut instructions = [0; 2];
        for func in reachable(&image.ir, kernel) {
            let func = image.ir.func(func);
            for inst in &func.insts {
                let simple = func.variant(inst).op.row().effect == Effect::Pure;
                instructions[usize::from(!simple)] += 1;
            }
        }
        Arc::new(Source { image, kernel, instructions, content: OnceLock::new(), exchanged: Mutex::default() })
    }

    fn takes_over(&self) -> bool {
        true
    }
}

/// A kernel of an image that this engine may compile.
struct Source {
    image: Arc<Image>,
    kernel: FuncId,
    /// Its instructions and those of its callees: pure functions, and others.
    instructions: [u32; 2],
    /// For cache keys.
    content: OnceLock<Content>,
    /// By block shape, whether code for the exchanged one is better.
    exchanged: Mutex<HashMap<[u32; 3], bool>>,
}

impl Source {
    fn recipe(&self, shape: &CodeShape, effort: Effort) -> Recipe {
        let content = *self.content.get_or_init(|| Content::new(&self.image.ir, self.kernel));
        let options = options(shape, effort, |block| self.gains_exchanged(block));
        Recipe::new(self.image.clone(), self.kernel, content, options)
    }

    fn gains_exchanged(&self, block: [u32; 3]) -> bool {
        let mut known = self.exchanged.lock();
        *known.entry(block).or_insert_with(|| emit::exchange::gains(&self.image.ir, self.kernel, block))
    }
}

impl Program for Source {
    fn estimate(&self, effort: Effort) -> Duration {
        // Microseconds, from the kernels of `benches/cold`. Accesses to memory and warp operations become several times the code of arithmetic,
        // and without mask registers, LLVM makes about twice the code of vectors.
        let (fixed, pure, other) = match (effort, code::target::mask_registers()) {
            (Effort::Light, true) => (18_000, 90, 260),
            (Effort::Light, false) => (36_000, 180, 520),
            (Effort::Full, true) => (40_000, 300, 2_000),
            (Effort::Full, false) => (80_000, 650, 4_300),
        };
        let [simple, others] = self.instructions.map(u64::from);
        Duration::from_micros(fixed + pure * simple + other * others)
    }

    fn note_demand(&self, shape: &CodeShape, effort: Effort, spent: Duration) {
        self.recipe(shape, effort).note_demand(effort, spent);
    }

    fn demand(&self, shape: &CodeShape) -> Option<Effort> {
        [Effort::Full, Effort::Light].into_iter().find(|effort| self.recipe(shape, *effort).has_demand())
    }

    fn find(&self, shape: &CodeShape, least: Effort, log: &Log) -> Option<(Arc<dyn Kernel>, Effort)> {
        let with = |effort| {
            let recipe = self.recipe(shape, effort);
            Some((recipe.cached(effort)?, recipe, effort))
        };
        let (object, recipe, effort) = log.time("look up", || {
            with(Effort::Full).or_else(|| if least == Effort::Light { with(Effort::Light) } else { None })
        })?;
        Some((Code::new(&recipe, &object, log).ok()?, effort))
    }

    fn compile(&self, shape: &CodeShape, effort: Effort, log: &Log) -> Result<Arc<dyn Kernel>, NoCode> {
        let recipe = self.recipe(shape, effort);
        let refused = |r: emit::Refused| {
            let at = self.image.ir.func(r.func).places.get(r.at as usize).copied();
            NoCode::Refused(Unsupported { what: r.what, func: Some(r.func), at })
        };
        let draft = log.time("emit", || recipe.emit()).map_err(refused)?;
        let object = recipe.compile(&draft, effort, log)?;
        Ok(Code::new(&recipe, &object, log).map_err(NoCode::Bug)?)
    }
}
