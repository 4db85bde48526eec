//! The command line as types.

mod run;

pub use run::{RunArgs, StatsFormat};

use clap::{Args, Parser, Subcommand, ValueEnum};
use margay::findings::Format;
use margay_checker::What;
use std::{ops::Range, path::PathBuf};

/// Check, explain and run NVIDIA PTX without a GPU.
#[derive(Debug, Parser)]
#[command(name = "margay", version, max_term_width = 120, propagate_version = true)]
#[command(after_help = "\
Examples:
  margay check kernel.ptx                        is it right?
  margay abi kernel.ptx                          how do its functions talk to each other?
  margay run saxpy.ptx --grid 8 --block 128 \\
      --arg 1000 --arg 2.5 --arg x.npy --arg y.npy:out.npy
  margay explain E0204                           what does this code mean?

Environment:
  MARGAY_CACHE, MARGAY_CACHE_DIR, MARGAY_CACHE_SIZE     compiled code on disk: see `margay cache --help`
  MARGAY_LLVM                                           the file of LLVM's library, which compiles kernels

Exit codes: 0 clean, 1 findings, 2 usage or input/output, 3 unsupported by margay, 101 a bug of margay.")]
pub struct Cli {
    /// When to colour the output; `NO_COLOR` is respected
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// When to colour.
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
    /// Show how parameters are passed: formals, results, call sites, and kernels as the host sees them
    Abi(AbiArgs),
    /// Write a C header and Rust structs with the layout of each kernel's parameters
    Bindgen(BindgenArgs),
    /// Run a kernel on the CPU
    Run(Box<RunArgs>),
    /// Run a CUDA program on the CPU, with margay's libcuda.so.1 in place of NVIDIA's
    Exec(ExecArgs),
    /// Run one launch alone that `margay exec --capture` has written, with its memory
    Replay(crate::cmd::replay::ReplayArgs),
    /// Act as NVIDIA's compute-sanitizer: `margay exec --check` with its options
    Sanitize(SanitizeArgs),
    /// Act as NVIDIA's ptxas for tools that call it: check, and write an image that margay's libcuda.so.1 loads
    Ptxas(PtxasArgs),
    /// List the GPU code in a program, library or wheel, and extract its PTX
    Extract(ExtractArgs),
    /// Explain a diagnostic's code: what it means, why, the manual's section, a wrong and a right example
    Explain(ExplainArgs),
    /// Show the forms, types, versions and targets of an instruction
    Doc(DocArgs),
    /// Show the intermediate representation of a kernel and what it reaches
    Ir(IrArgs),
    /// Show, trim or clear the cache of compiled code
    Cache(CacheArgs),
    /// Write a completion script for a shell
    Completions(CompletionsArgs),
}

/// `margay check`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  margay check a.ptx b.ptx                       several files, in parallel
  nvcc -ptx -o - k.cu | margay check -           from standard input
  margay check --deny warnings --message-format github *.ptx
  margay check --strict k.ptx                    what either ptxas or the manual refuses is an error
  margay check --fix k.ptx                       apply the fixes that are surely right
  margay check --requirements k.ptx              the lowest version and target that the module needs")]
pub struct CheckArgs {
    /// Files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Output format of the diagnostics
    #[arg(long, value_enum, default_value_t = MessageFormat::Human, value_name = "FORMAT")]
    pub message_format: MessageFormat,

    /// Report a lint (by code or name) as a warning; `warnings` means all that are not named, here and below
    #[arg(short = 'W', long = "warn", value_name = "LINT")]
    pub warn: Vec<String>,

    /// Report a lint as an error
    #[arg(short = 'D', long = "deny", value_name = "LINT")]
    pub deny: Vec<String>,

    /// Do not report a lint
    #[arg(short = 'A', long = "allow", value_name = "LINT")]
    pub allow: Vec<String>,

    /// Show at most this many errors per file; 0 for all
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub error_limit: usize,

    /// Apply the fixes that are certain to be right, in place
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
    /// Report as errors what either ptxas or the manual rejects
    #[arg(long, conflicts_with = "text")]
    pub strict: bool,

    /// Enforce the manual only: what only ptxas rejects is a warning
    #[arg(long)]
    pub text: bool,

    /// Check as for relocatable code: undefined externals are fine
    #[arg(short = 'c', long)]
    pub relocatable: bool,

    /// Check as if `.target` said this, such as `sm_90`
    #[arg(long, value_name = "SM")]
    pub target: Option<String>,

    /// Check as if `.version` said this, such as `8.0`
    #[arg(long, value_name = "VERSION")]
    pub ptx_version: Option<String>,
}

/// How to write diagnostics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum MessageFormat {
    /// For people: the line, the place, what to do
    Human,
    /// One JSON object a line
    Json,
    /// One SARIF 2.1.0 log
    Sarif,
    /// Annotations of GitHub's workflows
    Github,
}

/// Words of [`What`], as they stand.
fn words_to_check(text: &str) -> Result<String, String> {
    What::parse(text).map(|_| text.to_owned())
}

/// `SKIP:COUNT`, as it stands.
fn launches(text: &str) -> Result<String, String> {
    margay::findings::launches(text).map(|_| text.to_owned())
}

/// `1..50`, inclusive.
fn seeds(text: &str) -> Result<Range<u64>, String> {
    let numbers = text.split_once("..").and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    match numbers {
        Some((from, to)) if from <= to && to < u64::MAX => Ok(from..to + 1),
        _ => Err(format!("`{text}` is no range of seeds; write `1..50`")),
    }
}

/// `margay fmt`
#[derive(Debug, Args)]
pub struct FmtArgs {
    /// Files to write in place; `-` reads standard input and writes standard output
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Write nothing; exit with 1 if a file is not in canonical form
    #[arg(long)]
    pub check: bool,
}

/// `margay abi`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  margay abi kernel.ptx                          the table of every function and kernel
  margay abi kernel.ptx --abi sm                 where ptxas puts the bytes on a GPU
  margay abi kernel.ptx --json                   for programs")]
pub struct AbiArgs {
    /// The module; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The calling convention
    #[arg(long, default_value = "ptx", value_name = "NAME")]
    pub abi: String,

    /// Only this function
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,

    /// One JSON object
    #[arg(long, conflicts_with = "html")]
    pub json: bool,

    /// One self-contained HTML page
    #[arg(long)]
    pub html: bool,
}

/// `margay bindgen`
#[derive(Debug, Args)]
pub struct BindgenArgs {
    /// The module; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The language
    #[arg(long, value_enum, default_value_t = Language::C)]
    pub lang: Language,
}

/// Languages that `bindgen` writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Language {
    /// A C header
    C,
    /// Rust structs
    Rust,
}

/// `margay exec`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  margay exec -- python train.py
  margay exec --engine reference -- ./vector_add       exactly, with every access checked
  margay exec --device t4,memory=4G -- ./vector_add    on a device like a T4 with less memory
  margay exec --doors --stats -- ./vector_add          what is loaded, what ran and what it cost
  margay exec --capture launches -- ./vector_add       every launch, for `margay replay launches/0001`
  eval \"$(margay exec --print-env)\"                   for the whole shell

The program must bring PTX; nvcc's default does, and so does `-gencode arch=compute_80,code=compute_80`. A CUDA runtime
inside the program is replaced, unless its symbols were stripped (`nvcc -cudart shared` is the way out). Faults of
kernels are printed with their place.

Environment, also of programs that the program starts:
  MARGAY_ENGINE=tiered|reference|simd   the engine (--engine)
  MARGAY_DEVICE=h100,sms=8        the device (--device)
  MARGAY_COMPUTE_CAPABILITY=9.0   the compute capability alone
  MARGAY_CHECK=all                what to look for (--check)
  MARGAY_CHECK_KERNELS, MARGAY_CHECK_LAUNCHES, MARGAY_CHECK_FORMAT, MARGAY_CHECK_OUTPUT, MARGAY_CHECK_SUPPRESS,
  MARGAY_CHECK_SAMPLE, MARGAY_CHECK_SEED, MARGAY_CHECK_STOP=1      where, and how it is told (--kernel-name, --launches, ...)
  MARGAY_CAPTURE=FOLDER, MARGAY_CAPTURE_KERNELS, MARGAY_CAPTURE_LAUNCHES=SKIP:COUNT   launches to write down (--capture)
  CUDA_LAUNCH_BLOCKING=1          launches return when their kernel has ended, so that an error is that of its own launch
  MARGAY_LOG=api|quiet            show every call of the driver; or nothing at all
  MARGAY_REPORTS=FILE             append what goes wrong to a file, for a harness of tests
  MARGAY_FORGIVE=1                a kernel's fault is reported once, and the context is of use again
  MARGAY_DOORS=1                  list what is loaded (--doors)
  MARGAY_STATS=1                  say at the end what ran (--stats)
  MARGAY_FAULT_EXIT=1             the exit code after a failed launch, where it would be 0 (--fault-exit-code)
  MARGAY_CACHE=off, MARGAY_CACHE_DIR=DIR, MARGAY_CACHE_SIZE=64M   compiled kernels: see `margay cache --help`
  MARGAY_LLVM=FILE                the library of LLVM")]
pub struct ExecArgs {
    /// The engine that runs kernels: `tiered`, `reference`, `simd` or `simd-full`
    #[arg(long, value_name = "NAME", value_parser = engine)]
    pub engine: Option<String>,
    /// The device that the program sees: a GPU's name such as `h100`, `rtx4090`, `t4`; or `name=…`, `capability=9.0`, `sms=16`,
    /// `memory=8G`, `count=2`, separated by commas
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub device: Option<String>,
    /// Report errors that a GPU would not notice: `memory` (allocations end with their last byte, accesses that leave their variable),
    /// `races`, `init` (reads of uninitialised memory), `sync` (barriers that not all threads reach), `leaks` (memory that is not
    /// freed), `api` (calls that fail, copies past the end), several separated by commas, or `all`; `unused` (memory that nothing
    /// accesses) is no part of `all`
    #[arg(long, value_name = "WHAT", value_parser = words_to_check)]
    pub check: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub checks: CheckedArgs,
    /// Say at the end which kernels ran, how long, what compiling took, and how much was copied
    #[arg(long)]
    pub stats: bool,
    /// The exit code after a failed launch or a finding of `--check` if the program itself exits with 0; 0 keeps that
    #[arg(long, alias = "error-exitcode", value_name = "N", default_value_t = 1)]
    pub fault_exit_code: u8,
    /// Keep the program's own exit code even if a kernel failed
    #[arg(long, conflicts_with = "fault_exit_code")]
    pub keep_exit_code: bool,
    /// Write every launch, with the memory that it can reach, to a folder of its own inside this one, for `margay replay`;
    /// `--kernel-name` and `--launches` choose some of them
    #[arg(long, value_name = "FOLDER")]
    pub capture: Option<PathBuf>,
    /// List every object that has to do with CUDA when it is loaded: the runtime that it brings, the PTX and machine code in its fat
    /// binaries, and how it is served
    #[arg(long)]
    pub doors: bool,
    /// Print the folder of the libraries and exit
    #[arg(long)]
    pub print_path: bool,
    /// Print the environment variables that make programs run on margay, and exit
    #[arg(long)]
    pub print_env: bool,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<std::ffi::OsString>,
}

/// Which launches `--check` watches, and how it tells.
#[derive(Debug, Default, Args)]
pub struct CheckedArgs {
    /// With `--check` or `--capture`: only kernels of that name, mangled or not; `*` stands for anything; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub kernel_name: Vec<String>,
    /// With `--check` or `--capture`: only launches after the first SKIP of those kernels, and COUNT of them
    #[arg(long, value_name = "SKIP:COUNT", value_parser = launches)]
    pub launches: Option<String>,
    /// With `--check`: look at the accesses of one CTA in N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sample: Option<u32>,
    /// With `--check`: one reproducible interleaving of the threads and CTAs of each launch; 0 is the natural order
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// With `--check`: how to write findings: `human`, `json`, `sarif`, `github` or `xml`
    #[arg(long, value_name = "FORMAT", value_parser = |word: &str| Format::parse(word).map(|_| word.to_owned()))]
    pub message_format: Option<String>,
    /// With `--check`: write findings to a file and not to standard error
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// With `--check`: a file of findings to suppress: lines of a kind and a pattern (`race *reduce*`, `* k.cu:12`), or XML
    /// as compute-sanitizer takes it
    #[arg(long, value_name = "FILE")]
    pub suppress: Option<PathBuf>,
    /// With `--check`: the first finding ends the program's use of the device, as a fault does
    #[arg(long)]
    pub stop_at_first: bool,
}

/// The name of an engine.
pub fn engine(text: &str) -> Result<String, String> {
    let engines = margay::engines();
    let names: Vec<&str> = engines.iter().map(|e| e.name()).collect();
    if names.contains(&text) { Ok(text.into()) } else { Err(format!("there is {}", names.join(", "))) }
}

fn device(text: &str) -> Result<String, String> {
    margay::profile::Profile::parse(text).map(|_| text.into()).map_err(|e| e.to_string())
}

/// `margay sanitize`
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct SanitizeArgs {
    /// What compute-sanitizer takes: `--tool memcheck|racecheck|initcheck|synccheck`, `--kernel-name`, `--error-exitcode N`, ...,
    /// the program and its arguments
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<std::ffi::OsString>,
}

/// `margay extract`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  margay extract a.out                    what is inside
  margay extract a.out --output ptx       every module in a file of its own")]
pub struct ExtractArgs {
    /// Programs, libraries, object files, wheels
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// A folder for the PTX, created if it is missing
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// `margay cache`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  margay cache                       where it is, how much it holds
  margay cache trim --to 64M         what was not used for longest goes first
  margay cache clear

Environment:
  MARGAY_CACHE=off       neither read nor write it
  MARGAY_CACHE_DIR       its folder; otherwise $XDG_CACHE_HOME/margay or ~/.cache/margay
  MARGAY_CACHE_SIZE      what it may hold: bytes, or with K, M or G; 256M unless said otherwise")]
pub struct CacheArgs {
    /// What to do
    #[arg(value_enum, default_value_t = CacheAction::Show, value_name = "ACTION")]
    pub action: CacheAction,

    /// With `trim`: bytes that may stay, also with K, M or G; otherwise what the cache may hold
    #[arg(long, value_name = "SIZE")]
    pub to: Option<String>,
}

/// What to do with the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum CacheAction {
    /// Print its folder, the number of files, their size
    Show,
    /// Remove the least recently used files
    Trim,
    /// Remove all of it
    Clear,
}

/// `margay ptxas`
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct PtxasArgs {
    /// ptxas's arguments: files, `-o FILE`, `-arch sm_XX`, `-c`; options for code generation are ignored
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// `margay explain`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A code such as `E0204`, or its name; without one, all codes are listed
    #[arg(value_name = "CODE")]
    pub code: Option<String>,
}

/// `margay doc`
#[derive(Debug, Args)]
pub struct DocArgs {
    /// An instruction, with or without modifiers: `add`, `add.rn.f32`; without one, all are listed
    #[arg(value_name = "INSTR")]
    pub instruction: Option<String>,
}

/// `margay ir`
#[derive(Debug, Args)]
pub struct IrArgs {
    /// The module; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The kernel; without one, everything
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,

    /// How far to go
    #[arg(long, value_enum, default_value_t = Stage::Lowered)]
    pub stage: Stage,

    /// The calling convention of all stages but `lowered`
    #[arg(long, default_value = margay_ir::abi::DEFAULT, value_name = "NAME")]
    pub abi: String,

    /// Threads of a CTA that `llvm`, `optimized` and `asm` are specialised for [default: what the kernel requires, or 128]
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = dim3)]
    pub block: Option<[u32; 3]>,

    /// The tier whose code `llvm`, `optimized` and `asm` show
    #[arg(long, value_enum, default_value_t = CodeTier::Full)]
    pub tier: CodeTier,
}

/// Tiers of compiled code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum CodeTier {
    /// Quickly compiled: what runs first
    Light,
    /// Compiled with all optimisations
    Full,
}

/// Stages of the intermediate representation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Stage {
    /// Control-flow graph over virtual registers
    Lowered,
    /// With locations for frames, formals and arguments
    Placed,
    /// The LLVM IR of the SIMD engine
    Llvm,
    /// The same after LLVM's passes
    Optimized,
    /// The host's instructions
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
        *dim = part.trim().parse().map_err(|_| format!("`{part}` is no size; expected X, X,Y or X,Y,Z"))?;
    }
    Ok(dims)
}
