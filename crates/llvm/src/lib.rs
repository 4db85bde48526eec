//! The SIMD engine: whole warps as vectors, compiled by LLVM.
//!
//! `emit` writes LLVM IR, `compile` turns it into code, `cta` runs it. Kernels that use what the engine has no code for run on
//! the engine that it was given as its fallback, so the two together take every kernel that the fallback takes.

mod cache;
mod compile;
mod cta;
mod ctx;
pub mod emit;
mod enter;
mod ffi;
mod machine;
mod thunk;

pub use machine::Effort;

use compile::{CompileError, Compiled};
use margay_exec::{Bug, Cta, Engine, Grid, Image, Kernel, Stop, Unsupported};
use margay_ir::{FuncId, pass::WarpShape};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

/// The SIMD engine.
pub struct SimdEngine {
    fallback: Option<Arc<dyn Engine>>,
    mask_registers: bool,
}

impl SimdEngine {
    /// An engine that hands what it refuses to `fallback`; without one, a refusal ends a launch by name.
    pub fn new(fallback: Option<Arc<dyn Engine>>) -> SimdEngine {
        machine::initialize();
        let mask_registers = machine::host().1.split(',').any(|f| f == "+avx512vl");
        SimdEngine { fallback, mask_registers }
    }

    /// The LLVM IR or the assembly of a kernel, for people.
    pub fn show(&self, image: &Image, kernel: FuncId, block: Option<[u32; 3]>, assembly: bool) -> Result<String, Stop> {
        let options =
            emit::Options { warp: WarpShape { block, ..WarpShape::default() }, mask_registers: self.mask_registers };
        compile::show(&image.ir, kernel, &options, assembly).map_err(|e| match e {
            CompileError::Refused(r) => Stop::Bug(Bug(format!("the SIMD engine does not take {}", r.what))),
            CompileError::Bug(b) => Stop::Bug(Bug(b)),
        })
    }
}

impl Engine for SimdEngine {
    fn name(&self) -> &'static str {
        "simd"
    }

    fn prepare(&self, image: Arc<Image>, kernel: FuncId) -> Result<Arc<dyn Kernel>, Stop> {
        let fallback = OnceLock::new();
        let engine = self.fallback.clone();
        Ok(Arc::new(SimdKernel {
            image,
            kernel,
            mask_registers: self.mask_registers,
            engine,
            fallback,
            pool: cta::Pool::default(),
            compiled: Mutex::default(),
        }))
    }
}

/// Code for a block shape, or why there is none.
type Code = Result<Arc<Compiled>, emit::Refused>;

struct SimdKernel {
    image: Arc<Image>,
    kernel: FuncId,
    mask_registers: bool,
    engine: Option<Arc<dyn Engine>>,
    fallback: OnceLock<Arc<dyn Kernel>>,
    /// By block shape.
    pool: cta::Pool,
    compiled: Mutex<HashMap<[u32; 3], Code>>,
}

impl SimdKernel {
    fn code(&self, block: [u32; 3]) -> Result<Code, Stop> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = compiled.get(&block) {
            return Ok(found.clone());
        }
        let options = emit::Options {
            warp: WarpShape { block: Some(block), ..WarpShape::default() },
            mask_registers: self.mask_registers,
        };
        let made = match compile::compile(&self.image.ir, self.kernel, &options, Effort::Full) {
            Ok(c) => Ok(Arc::new(c)),
            Err(CompileError::Refused(r)) => Err(r),
            Err(CompileError::Bug(b)) => return Err(Stop::Bug(Bug(b))),
        };
        compiled.insert(block, made.clone());
        Ok(made)
    }
}

impl Kernel for SimdKernel {
    fn start<'a>(&'a self, grid: &'a Grid<'a>, first: [u32; 3]) -> Result<Box<dyn Cta + 'a>, Stop> {
        let launch = grid.launch;
        let refused = if launch.cluster != [1; 3] || launch.cooperative {
            emit::Refused { what: "a cluster or cooperative launch".into(), func: self.kernel, at: u32::MAX }
        } else {
            match self.code(launch.block)? {
                Ok(code) if grid.observer.is_none() => {
                    return Ok(Box::new(cta::SimdCta::new(code, grid, &self.pool, first)?));
                }
                Ok(_) => emit::Refused { what: "a watched launch".into(), func: self.kernel, at: u32::MAX },
                Err(refused) => refused,
            }
        };
        let Some(engine) = &self.engine else {
            let at = self.image.ir.func(refused.func).places.get(refused.at as usize).copied();
            return Err(Stop::Unsupported(Unsupported { what: refused.what, func: Some(refused.func), at }));
        };
        if self.fallback.get().is_none() {
            let prepared = engine.prepare(self.image.clone(), self.kernel)?;
            let _ = self.fallback.set(prepared);
        }
        match self.fallback.get() {
            Some(kernel) => kernel.start(grid, first),
            None => Err(Stop::Bug(Bug("the fallback engine is gone".into()))),
        }
    }
}
