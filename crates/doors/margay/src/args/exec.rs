//! The options of `margay exec` and `margay sanitize`.

use clap::Args;
use margay::findings::Format;
use margay_sanitizer::Checks;
use std::path::PathBuf;

/// Validates the words of `--check` and returns them unchanged.
fn words_to_check(text: &str) -> Result<String, String> {
    Checks::parse(text).map(|_| text.to_owned())
}

/// Validates `SKIP:COUNT` and returns it unchanged.
fn launches(text: &str) -> Result<String, String> {
    margay::findings::launches(text).map(|_| text.to_owned())
}

/// `margay exec`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  margay exec -- python train.py
  margay exec --engine reference -- ./vector_add       run on the exact engine
  margay exec --device t4,memory=4G -- ./vector_add    present a T4 with less memory
  margay exec --doors --stats -- ./vector_add          list loaded libraries and launched kernels
  margay exec --capture launches -- ./vector_add       store every launch for `margay replay launches/0001`
  eval \"$(margay exec --print-env)\"                   set up the current shell

The program must contain PTX, which nvcc includes by default and with `-gencode arch=compute_80,code=compute_80`, and
clang with `--cuda-include-ptx=all`. A static CUDA runtime in the program is replaced, unless its symbols were stripped
(then compile with `nvcc -cudart shared`). Kernel faults are printed with their location.

Environment, which child processes inherit:
  MARGAY_ENGINE=tiered|reference|simd   the engine (--engine)
  MARGAY_DEVICE=h100,sms=8        the device (--device)
  MARGAY_COMPUTE_CAPABILITY=9.0   only the compute capability
  MARGAY_CHECK=all                what to check (--check)
  MARGAY_CHECK_KERNELS, MARGAY_CHECK_LAUNCHES, MARGAY_CHECK_FORMAT, MARGAY_CHECK_OUTPUT, MARGAY_CHECK_SUPPRESS,
  MARGAY_CHECK_SAMPLE, MARGAY_CHECK_SEED, MARGAY_CHECK_STOP=1      details of the check (--kernel-name, --launches, ...)
  MARGAY_CAPTURE=FOLDER, MARGAY_CAPTURE_KERNELS, MARGAY_CAPTURE_LAUNCHES=SKIP:COUNT   launches to store (--capture)
  CUDA_VISIBLE_DEVICES=0,2        which of the devices the program sees
  CUDA_LAUNCH_BLOCKING=1          launches return when their kernel has finished, so they return their own errors
  MARGAY_LOG=api|quiet            print every driver call, or nothing at all
  MARGAY_REPORTS=FILE             append reports of faults to a file, for test runners
  MARGAY_FORGIVE=1                make the context usable again after a kernel's fault was reported
  MARGAY_FAULT_ENDS=kernel        a kernel's fault leaves the context usable (--fault-ends)
  MARGAY_DOORS=1                  list loaded libraries (--doors)
  MARGAY_STATS=1                  print statistics at exit (--stats)
  MARGAY_FAULT_EXIT=1             the exit code after a failed launch if it would be 0 (--fault-exit-code)
  MARGAY_CACHE=off, MARGAY_CACHE_DIR=DIR, MARGAY_CACHE_SIZE=64M   compiled kernels; see `margay cache --help`
  MARGAY_LLVM=FILE                path of the LLVM library
  MARGAY_CPU=x86-64-v3            compile for a level of the x86-64 psABI (v2, v3, v4), not for this processor")]
pub struct ExecArgs {
    /// The engine that runs kernels: `tiered`, `reference`, `simd` or `simd-full`
    #[arg(long, value_name = "NAME", value_parser = engine)]
    pub engine: Option<String>,
    /// The device that the program sees: the name of a GPU, such as `h100`, `rtx4090` or `t4`, and `name=…`, `capability=9.0`, `sms=16`,
    /// `memory=8G`, `count=2`, separated by commas
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub device: Option<String>,
    /// Report errors that a GPU would not detect: `memory` (accesses past the last byte of an allocation or outside a variable),
    /// `races`, `init` (uses of uninitialized memory), `sync` (barriers that some threads skip), `leaks` (memory that is never
    /// freed), `api` (failing calls, copies past the end), `unused` (memory that is never accessed); separate several with commas, or use
    /// `all`, which excludes `unused`
    #[arg(long, value_name = "WHAT", value_parser = words_to_check)]
    pub check: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub checks: CheckedArgs,
    /// Print statistics at exit, also at Ctrl-C and at the limit of `timeout`: the kernels that ran or are running, their time, compile
    /// time, and copied bytes
    #[arg(long)]
    pub stats: bool,
    /// The exit code after a failed launch or a finding of `--check` if the program itself exits with 0; 0 keeps the program's
    #[arg(long, alias = "error-exitcode", value_name = "N", default_value_t = 1)]
    pub fault_exit_code: u8,
    /// What a kernel's fault ends: the `context`, so that all later calls fail as on a device, or only the `kernel`, so that the program
    /// continues
    #[arg(long, value_name = "WHAT", value_parser = ["context", "kernel"])]
    pub fault_ends: Option<String>,
    /// Keep the program's own exit code even if a kernel failed
    #[arg(long, conflicts_with = "fault_exit_code")]
    pub keep_exit_code: bool,
    /// Store every launch and the memory it can reach in a subfolder, for `margay replay`;
    /// `--kernel-name` and `--launches` select launches
    #[arg(long, value_name = "FOLDER")]
    pub capture: Option<PathBuf>,
    /// List every CUDA-related library as it is loaded: the runtime it contains, the PTX and machine code in its fat
    /// binaries, and how margay serves it
    #[arg(long)]
    pub doors: bool,
    /// Print the path of the library folder and exit
    #[arg(long)]
    pub print_path: bool,
    /// Print the environment variables that make programs run on margay, and exit
    #[arg(long)]
    pub print_env: bool,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<std::ffi::OsString>,
}

/// The launches that `--check` covers, and the format of its findings.
#[derive(Debug, Default, Args)]
pub struct CheckedArgs {
    /// With `--check` or `--capture`: select kernels by name, mangled or not; `*` matches anything, and `!PATTERN` excludes
    /// kernels; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub kernel_name: Vec<String>,
    /// With `--check` or `--capture`: skip the first SKIP launches of those kernels, and select the next COUNT
    #[arg(long, value_name = "SKIP:COUNT", value_parser = launches)]
    pub launches: Option<String>,
    /// With `--check`: check the accesses of one CTA in N for races
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sample: Option<u32>,
    /// With `--check`: the seed of a reproducible interleaving of threads and CTAs; 0 is the natural order
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// With `--check`: the output format: `human`, `json`, `sarif`, `github` or `xml`
    #[arg(long, value_name = "FORMAT", value_parser = |word: &str| Format::parse(word).map(|_| word.to_owned()))]
    pub message_format: Option<String>,
    /// With `--check`: write findings to a file instead of standard error
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// With `--check`: a file of findings to suppress: lines with a kind and a pattern (`race *reduce*`, `* k.cu:12`), or XML
    /// in compute-sanitizer's format
    #[arg(long, value_name = "FILE")]
    pub suppress: Option<PathBuf>,
    /// With `--check`: stop using the device at the first finding, as after a fault
    #[arg(long)]
    pub stop_at_first: bool,
}

/// The name of an engine.
pub fn engine(text: &str) -> Result<String, String> {
    let engines = margay::engines();
    let names: Vec<&str> = engines.iter().map(|e| e.name()).collect();
    if names.contains(&text) { Ok(text.into()) } else { Err(format!("expected one of {}", names.join(", "))) }
}

fn device(text: &str) -> Result<String, String> {
    margay::profile::Profile::parse(text).map(|_| text.into()).map_err(|e| e.to_string())
}

/// `margay sanitize`
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct SanitizeArgs {
    /// compute-sanitizer's options (`--tool memcheck|racecheck|initcheck|synccheck`, `--kernel-name`, `--error-exitcode N`, ...),
    /// the program and its arguments
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<std::ffi::OsString>,
}
