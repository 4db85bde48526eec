//! Engines by name: an interpreter, a compiler, and the policy of when to compile.

use margay_exec::{Compiler, Effort, Engine as Interpreter};
use std::sync::Arc;

/// A named way to run kernels.
#[derive(Clone)]
pub struct Engine {
    pub(crate) name: &'static str,
    /// Runs kernels without compiling them.
    pub(crate) base: Option<Arc<dyn Interpreter>>,
    pub(crate) compiler: Option<Arc<dyn Compiler>>,
    pub(crate) policy: Policy,
}

/// When kernels are compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Policy {
    /// Never.
    Never,
    /// When it pays, in the background.
    WhenItPays,
    /// Before they run, with this effort. After light effort, they are recompiled in the background if they run for
    /// long.
    Before(Effort),
    /// Before they run; then the reference engine and compiled code take ranges of CTAs in turn.
    Alternate,
    /// As soon as a CTA of the reference engine can be taken over.
    TakeOver,
}

impl Engine {
    /// An engine that only interprets.
    pub fn interpreted(engine: Arc<dyn Interpreter>) -> Engine {
        Engine { name: engine.name(), base: Some(engine), compiler: None, policy: Policy::Never }
    }

    /// An engine whose launches start at once, on existing code or on `base`. Kernels for which it pays are compiled in
    /// the background, and CTAs that have not started move to the better code.
    pub fn tiered(name: &'static str, base: Arc<dyn Interpreter>, compiler: Arc<dyn Compiler>) -> Engine {
        Engine { name, base: Some(base), compiler: Some(compiler), policy: Policy::WhenItPays }
    }

    /// An engine whose launches wait for code. Kernels that the compiler refuses run on `base`; without one, that is an
    /// error.
    pub fn compiled(
        name: &'static str,
        compiler: Arc<dyn Compiler>,
        effort: Effort,
        base: Option<Arc<dyn Interpreter>>,
    ) -> Engine {
        Engine { name, base, compiler: Some(compiler), policy: Policy::Before(effort) }
    }

    /// For tests: launches wait for code, and then every other range of CTAs runs on `base`, so that CTAs of one grid
    /// communicate through memory across engines.
    pub fn alternating(name: &'static str, base: Arc<dyn Interpreter>, compiler: Arc<dyn Compiler>) -> Engine {
        Engine { name, base: Some(base), compiler: Some(compiler), policy: Policy::Alternate }
    }

    /// For tests: all CTAs start on `base`, and compiled code takes them over as early as possible.
    pub fn taking_over(name: &'static str, base: Arc<dyn Interpreter>, compiler: Arc<dyn Compiler>) -> Engine {
        Engine { name, base: Some(base), compiler: Some(compiler), policy: Policy::TakeOver }
    }

    /// The name of the engine.
    pub fn name(&self) -> &'static str {
        self.name
    }
}
