//! Engines by name: what runs a kernel at once, what compiles it, and who waits for whom.

use margay_exec::{Compiler, Effort, Engine as Interpreter};
use std::sync::Arc;

/// A way to run kernels, with a name to choose it by.
#[derive(Clone)]
pub struct Engine {
    pub(crate) name: &'static str,
    /// Runs kernels as they stand.
    pub(crate) base: Option<Arc<dyn Interpreter>>,
    pub(crate) compiler: Option<Arc<dyn Compiler>>,
    pub(crate) policy: Policy,
}

/// When kernels are compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Policy {
    /// Never.
    Never,
    /// When it pays; nobody waits for it.
    WhenItPays,
    /// Before they run, with so much effort. With light effort they are compiled again if they run for long, which nobody waits for.
    Before(Effort),
    /// Before they run; then CTAs go to the reference engine and to compiled code by turns.
    Alternate,
}

impl Engine {
    /// Kernels run as they stand.
    pub fn interpreted(engine: Arc<dyn Interpreter>) -> Engine {
        Engine { name: engine.name(), base: Some(engine), compiler: None, policy: Policy::Never }
    }

    /// Every launch begins at once, on code that is there or else on `base`. Kernels for which it pays are compiled beside that, and
    /// CTAs that have not begun move over to the better code when it is there.
    pub fn tiered(name: &'static str, base: Arc<dyn Interpreter>, compiler: Arc<dyn Compiler>) -> Engine {
        Engine { name, base: Some(base), compiler: Some(compiler), policy: Policy::WhenItPays }
    }

    /// Launches wait until there is code. What the compiler refuses goes to `base`; without one, a refusal ends the launch by name.
    pub fn compiled(
        name: &'static str,
        compiler: Arc<dyn Compiler>,
        effort: Effort,
        base: Option<Arc<dyn Interpreter>>,
    ) -> Engine {
        Engine { name, base, compiler: Some(compiler), policy: Policy::Before(effort) }
    }

    /// For tests: launches wait until there is code, and then every other range of CTAs goes to `base`, so that CTAs of one grid meet
    /// each other's traces in memory across engines.
    pub fn alternating(name: &'static str, base: Arc<dyn Interpreter>, compiler: Arc<dyn Compiler>) -> Engine {
        Engine { name, base: Some(base), compiler: Some(compiler), policy: Policy::Alternate }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}
