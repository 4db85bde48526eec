//! Check, explain and run NVIDIA PTX without a GPU.
//!
//! Each stage of a module is a crate of its own (`margay_syntax`, `margay_check`, `margay_ir`, `margay_exec`, `margay_runtime`);
//! [`Module`] combines them for the common case. The modules below are shared by the command line, the driver library and the test
//! tools; their interfaces change without notice.
//!
//! ```
//! let text = "
//!     .version 7.0
//!     .target sm_50
//!     .address_size 64
//!     .visible .entry twice(.param .u64 numbers) {
//!         .reg .b32 %x, %i;
//!         .reg .b64 %at, %offset;
//!         mov.u32 %i, %tid.x;
//!         ld.param.u64 %at, [numbers];
//!         mul.wide.u32 %offset, %i, 4;
//!         add.u64 %at, %at, %offset;
//!         ld.global.u32 %x, [%at];
//!         add.u32 %x, %x, %x;
//!         st.global.u32 [%at], %x;
//!         ret;
//!     }";
//! let module = margay::Module::parse(text)?.check()?;
//! let device = margay::device()?;
//! let context = device.context();
//! let loaded = module.load(&context)?;
//!
//! let numbers = context.buffer(4 * 32)?;
//! numbers.write(0, &(0u32..32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>())?;
//! let kernel = loaded.kernel("twice")?;
//! let mut arguments = kernel.arguments();
//! arguments.push_address(numbers.address())?;
//! kernel.launch(&margay::LaunchConfig::new([1, 1, 1], [32, 1, 1]), &arguments.finish()?)?;
//! assert_eq!(numbers.to_vec()?[4 * 31..], 62u32.to_le_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An invalid module yields diagnostics with their locations:
//!
//! ```
//! let error = margay::Module::parse(".version 7.0\n.target sm_50\n.entry k() { frobnicate; }")?.check().unwrap_err();
//! assert_eq!(error.diagnostics[0].span().start, 40);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod capture;
pub mod compare;
pub mod element;
pub mod findings;
pub mod format;
pub mod host;
pub mod image;
pub mod installed;
pub mod npy;
pub mod nvcc;
pub mod output;
pub mod picture;
pub mod profile;
pub mod programs;
pub mod quantity;
pub mod render;
pub mod requirements;
pub mod smi;
pub mod spec;
pub mod tensormap;
mod waiting;

pub use margay_check::{Options, Verdict};
pub use margay_exec::{Fault, FaultKind, Stop};
pub use margay_runtime::{
    Buffer, Cancel, Context, Device, DeviceOptions, Engine, Error, Event, Kernel, LaunchConfig, LaunchShape,
    LaunchStats, Limits, LoadOptions, Param, Params, SourceText, Stream,
};
pub use margay_syntax::{Code, Diagnostic, Severity};

use margay_check::Checked;
use margay_ir::Source;
use margay_syntax::{LineIndex, Parsed};
use std::{fmt, sync::Arc};

/// All engines of this build, the default first: `tiered` starts on the reference engine and compiles in the background, `simd` and
/// `simd-full` wait for compiled code, `reference` compiles nothing.
pub fn engines() -> Vec<Engine> {
    let reference: Arc<dyn margay_exec::Engine> = Arc::new(margay_exec::Reference);
    #[cfg(feature = "simd")]
    {
        use margay_exec::Effort;
        margay_llvm::look_first(installed::llvm);
        let simd = Arc::new(margay_llvm::SimdEngine);
        vec![
            Engine::tiered("tiered", reference.clone(), simd.clone()),
            Engine::interpreted(reference.clone()),
            Engine::compiled("simd", simd.clone(), Effort::Light, Some(reference.clone())),
            Engine::compiled("simd-full", simd, Effort::Full, Some(reference)),
        ]
    }
    #[cfg(not(feature = "simd"))]
    vec![Engine::interpreted(reference)]
}

/// Notes that this thread, if it is the main thread, may end the process: the compiler is then stopped first. Threads that create devices
/// have already done this.
pub fn ends_process() {
    #[cfg(feature = "simd")]
    margay_llvm::watch_thread();
}

/// For tests: CTAs run alternately on the reference engine and as compiled code. `None` in builds without the compiler.
#[doc(hidden)]
pub fn alternating() -> Option<Engine> {
    both().map(|(reference, simd)| Engine::alternating("alternating", reference, simd))
}

/// For tests: CTAs start on the reference engine, and compiled code takes them over as early as possible. `None` in builds without the
/// compiler.
#[doc(hidden)]
pub fn taking_over() -> Option<Engine> {
    both().map(|(reference, simd)| Engine::taking_over("taking-over", reference, simd))
}

/// The reference engine and the SIMD engine; `None` in builds without the latter.
fn both() -> Option<(Arc<dyn margay_exec::Engine>, Arc<dyn margay_exec::Compiler>)> {
    #[cfg(feature = "simd")]
    return Some((Arc::new(margay_exec::Reference), Arc::new(margay_llvm::SimdEngine)));
    #[cfg(not(feature = "simd"))]
    None
}

/// A device with all engines of this build and one thread per processor.
pub fn device() -> Result<Arc<Device>, Error> {
    Device::with(device_options(None))
}

/// The same with a given number of threads. On a terminal, waiting for the compiler for more than a second is reported.
pub fn device_options(threads: Option<usize>) -> DeviceOptions {
    ends_process();
    DeviceOptions { threads, engines: engines(), waiting: waiting::on_terminal() }
}

/// A parsed module that is not checked yet.
#[derive(Debug)]
pub struct Unchecked {
    name: String,
    parsed: Parsed,
}

/// A module that passed the check.
#[derive(Clone, Debug)]
pub struct Module {
    source: Arc<Source>,
    checked: Checked,
    warnings: Vec<Diagnostic>,
}

/// The errors of a module.
#[derive(Clone)]
pub struct Findings {
    /// Name of the file.
    pub name: String,
    /// In order of position, warnings included.
    pub diagnostics: Vec<Diagnostic>,
    lines: LineIndex,
    text: Arc<String>,
}

impl Module {
    /// Parses a text. Fails on syntax errors; [`Unchecked::check`] finds all others.
    pub fn parse(text: &str) -> Result<Unchecked, Findings> {
        Module::parse_named("module.ptx", text)
    }

    /// The same, with a file name for messages.
    pub fn parse_named(name: &str, text: &str) -> Result<Unchecked, Findings> {
        let parsed = margay_syntax::parse(text);
        match parsed.diagnostics.iter().any(|d| d.severity == Severity::Error) {
            true => Err(Findings::new(name, &parsed.tree.text.clone(), parsed.diagnostics)),
            false => Ok(Unchecked { name: name.into(), parsed }),
        }
    }

    /// The warnings of a module that passed.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Symbols, signatures, bodies.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// Loads the module into a context, to be executed by the device's first engine under the default ABI.
    pub fn load(&self, context: &Arc<Context>) -> Result<margay_runtime::Module, Error> {
        self.load_with(context, &LoadOptions::default())
    }

    /// Loads the module with a given engine and ABI.
    pub fn load_with(&self, context: &Arc<Context>, options: &LoadOptions) -> Result<margay_runtime::Module, Error> {
        Ok(context.load_checked(vec![(self.source.clone(), self.checked.clone())], options))
    }
}

impl Unchecked {
    /// Checks like ptxas.
    pub fn check(self) -> Result<Module, Findings> {
        self.check_with(&Options::default())
    }

    /// Checks with options: strictness, target, version.
    pub fn check_with(self, options: &Options) -> Result<Module, Findings> {
        let (name, tree) = (self.name, self.parsed.tree.clone());
        let (checked, diagnostics) = margay_check::check(self.parsed, options);
        match checked {
            Some(checked) => {
                let source = Arc::new(Source::new(&name, tree, checked.module.files.clone()));
                Ok(Module { source, checked, warnings: diagnostics })
            }
            None => Err(Findings::new(&name, &tree.text, diagnostics)),
        }
    }
}

impl Findings {
    fn new(name: &str, text: &Arc<String>, diagnostics: Vec<Diagnostic>) -> Findings {
        Findings { name: name.into(), diagnostics, lines: LineIndex::new(text), text: text.clone() }
    }
}

impl fmt::Display for Findings {
    /// One line per finding: `file:line:column: error[E0204]: message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for d in &self.diagnostics {
            let (line, column) = self.lines.line_column(&self.text, d.span().start);
            let (code, severity) = (d.code.info().number, format!("{:?}", d.severity).to_lowercase());
            writeln!(f, "{}:{line}:{column}: {severity}[{code}]: {}", self.name, d.message)?;
        }
        Ok(())
    }
}

/// The output of `main` if it returns this error: the findings, not the fields.
impl fmt::Debug for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} did not pass the check\n{self}", self.name)
    }
}

impl std::error::Error for Findings {}
