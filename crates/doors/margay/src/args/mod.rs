//! The command line, as types for clap.

mod exec;
mod run;

pub use exec::{CheckedArgs, ExecArgs, SanitizeArgs, engine};
pub use run::{RunArgs, StatsFormat};

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::{ops::Range, path::PathBuf};

/// Check, explain and run NVIDIA PTX without a GPU.
#[derive(Debug, Parser)]
#[command(name = "margay", version, max_term_width = 120, propagate_version = true)]
#[command(after_help = "\
Examples:
  margay check kernel.ptx                        find errors
  margay abi kernel.ptx                          show how parameters are passed
  margay run saxpy.ptx --grid 8 --block 128 \\
      --arg 1000 --arg 2.5 --arg x.npy --arg y.npy:out.npy
  margay explain E0204                           explain a diagnostic code

Environment:
  MARGAY_CACHE, MARGAY_CACHE_DIR, MARGAY_CACHE_SIZE     the cache of compiled code; see `margay cache --help`
  MARGAY_LLVM                                           path of the LLVM library that compiles kernels
  MARGAY_CPU=x86-64-v3                                  compile for a level of the x86-64 psABI (v2, v3, v4), not for this processor

Exit codes: 0 clean, 1 findings, 2 usage or I/O error, 3 unsupported by margay, 101 bug in margay.")]
pub struct Cli {
    /// When to color the output; `NO_COLOR` is respected
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,

    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// When to color the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[allow(missing_docs)]
pub enum Color {
    Auto,
    Always,
    Never,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check modules as ptxas does, with readable diagnostics
    Check(CheckArgs),
    /// Write modules in canonical form
    Fmt(FmtArgs),
    /// Show how parameters are passed: parameters, results, call sites, and the kernels' parameters as the host sees them
    Abi(AbiArgs),
    /// Write a C header and Rust structs with the layout of each kernel's parameters
    Bindgen(BindgenArgs),
    /// Run a kernel on the CPU
    Run(Box<RunArgs>),
    /// Run a CUDA program on the CPU, with margay's libcuda.so.1 instead of NVIDIA's
    Exec(ExecArgs),
    /// Replay a launch that `margay exec --capture` stored
    Replay(crate::cmd::replay::ReplayArgs),
    /// Check a program, with the command line of NVIDIA's compute-sanitizer
    Sanitize(SanitizeArgs),
    /// Stand in for NVIDIA's ptxas: check a module and write an image that margay's libcuda.so.1 can load
    Ptxas(PtxasArgs),
    /// List the GPU code in a program, library or wheel, and extract its PTX
    Extract(ExtractArgs),
    /// Explain a diagnostic code, with its reason, the manual section, and a wrong and a right example
    Explain(ExplainArgs),
    /// Show the forms, types, PTX versions and targets of an instruction
    Doc(DocArgs),
    /// Show the intermediate representation of a kernel and the functions it reaches
    Ir(IrArgs),
    /// Show, trim or clear the cache of compiled code
    Cache(CacheArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// `margay check`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  margay check a.ptx b.ptx                       check several files in parallel
  nvcc -ptx -o - k.cu | margay check -           check standard input
  margay check --deny warnings --message-format github *.ptx
  margay check --strict k.ptx                    report everything that ptxas or the manual rejects as an error
  margay check --fix k.ptx                       apply the safe fixes
  margay check --requirements k.ptx              print the lowest version and target that the module needs")]
pub struct CheckArgs {
    /// Files to check; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Output format of the diagnostics
    #[arg(long, value_enum, default_value_t = MessageFormat::Human, value_name = "FORMAT")]
    pub message_format: MessageFormat,

    /// Report a lint (a code or name) as a warning; `warnings` stands for all lints that are not named, here and below
    #[arg(short = 'W', long = "warn", value_name = "LINT")]
    pub warn: Vec<String>,

    /// Report a lint as an error
    #[arg(short = 'D', long = "deny", value_name = "LINT")]
    pub deny: Vec<String>,

    /// Do not report a lint
    #[arg(short = 'A', long = "allow", value_name = "LINT")]
    pub allow: Vec<String>,

    /// Show at most N errors per file; 0 shows all
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub error_limit: usize,

    /// Apply the safe fixes in place
    #[arg(long)]
    pub fix: bool,

    /// Print the lowest version and target that each module needs, and why
    #[arg(long)]
    pub requirements: bool,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub verdict: VerdictArgs,
}

/// What to check against.
#[derive(Debug, Args)]
pub struct VerdictArgs {
    /// Report everything that ptxas or the manual rejects as an error
    #[arg(long, conflicts_with = "text")]
    pub strict: bool,

    /// Enforce only the manual: report what only ptxas rejects as a warning
    #[arg(long)]
    pub text: bool,

    /// Check as relocatable code, which may have undefined externals
    #[arg(short = 'c', long)]
    pub relocatable: bool,

    /// Override the module's `.target`, for example with `sm_90`
    #[arg(long, value_name = "SM")]
    pub target: Option<String>,

    /// Override the module's `.version`, for example with `8.0`
    #[arg(long, value_name = "VERSION")]
    pub ptx_version: Option<String>,
}

/// Output formats of diagnostics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum MessageFormat {
    /// Text, with source lines and suggested fixes
    Human,
    /// One JSON object per line
    Json,
    /// A SARIF 2.1.0 log
    Sarif,
    /// Annotations for GitHub workflows
    Github,
}

/// Parses `1..50`, an inclusive range.
fn seeds(text: &str) -> Result<Range<u64>, String> {
    let numbers = text.split_once("..").and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    match numbers {
        Some((from, to)) if from <= to && to < u64::MAX => Ok(from..to + 1),
        _ => Err(format!("`{text}` is not a range of seeds such as `1..50`")),
    }
}

/// `margay fmt`
#[derive(Debug, Args)]
pub struct FmtArgs {
    /// Files to format in place; `-` reads standard input and writes standard output
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Write nothing, and exit with 1 if a file is not in canonical form
    #[arg(long)]
    pub check: bool,
}

/// `margay abi`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  margay abi kernel.ptx                          print the table of every function and kernel
  margay abi kernel.ptx --abi sm                 show how ptxas passes parameters on a GPU
  margay abi kernel.ptx --json                   print JSON")]
pub struct AbiArgs {
    /// The module; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The calling convention
    #[arg(long, default_value = "ptx", value_name = "NAME")]
    pub abi: String,

    /// Show only this function
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,

    /// Print one JSON object
    #[arg(long, conflicts_with = "html")]
    pub json: bool,

    /// Print one self-contained HTML page
    #[arg(long)]
    pub html: bool,
}

/// `margay bindgen`
#[derive(Debug, Args)]
pub struct BindgenArgs {
    /// The module; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The output language
    #[arg(long, value_enum, default_value_t = Language::C)]
    pub lang: Language,
}

/// Output languages of `bindgen`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Language {
    /// A C header
    C,
    /// Rust structs
    Rust,
}

/// `margay extract`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  margay extract a.out                    list the contents
  margay extract a.out --output ptx       write each module to its own file")]
pub struct ExtractArgs {
    /// Programs, libraries, object files or wheels
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The folder for the PTX, created if necessary
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// `margay cache`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  margay cache                       show its folder and size
  margay cache trim --to 64M         remove the least recently used files
  margay cache clear

Environment:
  MARGAY_CACHE=off       disable the cache
  MARGAY_CACHE_DIR       its folder (default: $XDG_CACHE_HOME/margay or ~/.cache/margay)
  MARGAY_CACHE_SIZE      its maximum size, in bytes or with K, M or G (default: 256M)")]
pub struct CacheArgs {
    /// The action
    #[arg(value_enum, default_value_t = CacheAction::Show, value_name = "ACTION")]
    pub action: CacheAction,

    /// With `trim`: the size to keep, in bytes or with K, M or G [default: the maximum size]
    #[arg(long, value_name = "SIZE")]
    pub to: Option<String>,
}

/// Actions on the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum CacheAction {
    /// Print its folder, number of files and size
    Show,
    /// Remove the least recently used files
    Trim,
    /// Remove all files
    Clear,
}

/// `margay ptxas`
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct PtxasArgs {
    /// ptxas's arguments: files, `-o FILE`, `-arch sm_XX`, `-c`; code generation options are ignored
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// `margay explain`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A code such as `E0204`, or its name; lists all codes if omitted
    #[arg(value_name = "CODE")]
    pub code: Option<String>,
}

/// `margay doc`
#[derive(Debug, Args)]
pub struct DocArgs {
    /// An instruction, with or without modifiers: `add`, `add.rn.f32`; lists all instructions if omitted
    #[arg(value_name = "INSTR")]
    pub instruction: Option<String>,
}

/// `margay ir`
#[derive(Debug, Args)]
pub struct IrArgs {
    /// The module; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The kernel [default: all; for `llvm`, `optimized` and `asm` the only one]
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,

    /// The stage to show
    #[arg(long, value_enum, default_value_t = Stage::Lowered)]
    pub stage: Stage,

    /// The calling convention, for all stages except `lowered`
    #[arg(long, default_value = margay_ir::abi::DEFAULT, value_name = "NAME")]
    pub abi: String,

    /// The CTA size for which `llvm`, `optimized` and `asm` are specialized [default: what the kernel requires, or 128]
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = dim3)]
    pub block: Option<[u32; 3]>,

    /// The tier of the code that `llvm`, `optimized` and `asm` show
    #[arg(long, value_enum, default_value_t = CodeTier::Full)]
    pub tier: CodeTier,
}

/// Tiers of compiled code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum CodeTier {
    /// Compiled quickly; runs first
    Light,
    /// Compiled with all optimizations
    Full,
}

/// Stages of the intermediate representation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Stage {
    /// Control-flow graph over virtual registers
    Lowered,
    /// With locations for frames, parameters and arguments
    Placed,
    /// The LLVM IR of the SIMD engine
    Llvm,
    /// The same after LLVM's passes
    Optimized,
    /// The host's assembly
    Asm,
}

/// `margay completions`
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

fn dim3(text: &str) -> Result<[u32; 3], String> {
    let mut dims = [1; 3];
    let parts: Vec<&str> = text.split([',', 'x']).collect();
    if parts.len() > 3 {
        return Err("at most three sizes: X,Y,Z".into());
    }
    for (dim, part) in dims.iter_mut().zip(&parts) {
        *dim = part.trim().parse().map_err(|_| format!("`{part}` is not a size; expected X, X,Y or X,Y,Z"))?;
    }
    Ok(dims)
}
