//! The options of `margay run`.

use super::{VerdictArgs, dim3, seeds};
use clap::{Args, ValueEnum};
use margay::findings::Format;
use margay_checker::What;
use std::{ops::Range, path::PathBuf};

/// `margay run`
#[derive(Debug, Args)]
#[command(after_help = "\
Arguments, in the order of the kernel's parameters:
  3  -1.5  0x10  inf  nan           a scalar of the parameter's type (0f3F800000: by bits)
  f32=2                             a scalar of that type
  x.npy                             a buffer with the contents of a file
  y.npy:out.npy                     the same, written to out.npy afterwards
  f32[4,8]=zeros:out.npy            a buffer of that type and shape; also iota, fill:V, rand:SEED; without :OUT not saved
  hex:0011aabb                      the bytes of a by-value parameter
  {u8=3, f64=2.5, f32[16]=iota}     a struct by value, laid out as C does; buffers become pointers
  tex:x.npy,filter=linear           a texture object: an array as above, then words
  surf:x.npy:out.npy                a surface object
OUT may also end in .bin (raw bytes), or .png or .ppm for u8[h,w] and u8[h,w,3].

Images are [w], [h,w] or [d,h,w]. Words say what they are: channels=2|4 (the last extent), layers, cube (the first), samples,
size=WxHxD with layers=N, levels=N; unorm, snorm, linear; and how textures read them: filter=point|linear, mip=point|linear,
address=wrap|mirror|clamp|border, normalized, read=normalized, border=R/G/B/A, lod=LOW/HIGH, bias=X, compare=less|...
--bind NAME=tex:..., NAME=surf:... or NAME=sampler:filter=linear,... does the same for .texref, .surfref and .samplerref.

Examples:
  margay run blur.ptx --grid 4,4 --block 8,8 --arg tex:u8[32,32]=rand:1,filter=linear,read=normalized,normalized --arg surf:f32[32,32]=zeros:out.npy
  margay run saxpy.ptx --grid 8 --block 128 --arg 1000 --arg 2.5 --arg f32[1000]=iota --arg f32[1000]=fill:1 --print 3[0..8]
  margay run k.ptx lib.ptx --kernel main --block 32 --arg x.npy:out.npy --expect 0=ref.npy --rtol 1e-5
  margay run k.ptx --block 64 --arg u32[64]=zeros --seed 7        one interleaving, the same every time")]
pub struct RunArgs {
    /// The module; several files are linked; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The kernel; optional if there is only one
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,

    /// CTAs of the grid
    #[arg(long, default_value = "1", value_name = "X[,Y[,Z]]", value_parser = dim3)]
    pub grid: [u32; 3],

    /// Threads of a CTA
    #[arg(long, default_value = "1", value_name = "X[,Y[,Z]]", value_parser = dim3)]
    pub block: [u32; 3],

    /// CTAs of a cluster
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = dim3)]
    pub cluster: Option<[u32; 3]>,

    /// An argument, once for each parameter, in order
    #[arg(long = "arg", value_name = "SPEC", allow_hyphen_values = true)]
    pub args: Vec<String>,

    /// A texture, sampler or surface behind a reference of the module
    #[arg(long, value_name = "NAME=SPEC")]
    pub bind: Vec<String>,

    /// Bytes of dynamic shared memory
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    pub shared: u32,

    /// The engine: `tiered` begins at once and compiles what pays, `reference` compiles nothing, `simd` and `simd-full` wait for compiled
    /// code
    #[arg(long, value_name = "NAME")]
    pub engine: Option<String>,

    /// The calling convention to execute under
    #[arg(long, value_name = "NAME")]
    pub abi: Option<String>,

    /// One reproducible interleaving of threads and CTAs for each seed; 0 is the natural order
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,

    /// Threads of the host that run CTAs
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// Look for errors that do not stop the kernel: `memory` (accesses that leave their
    /// variable), `races`, `init` (reads of uninitialised memory), `sync` (barriers and warp instructions that not all threads
    /// reach), `leaks` (of the device's heap), several separated by commas, or `all`
    #[arg(long, value_name = "WHAT", value_parser = What::parse)]
    pub check: Option<What>,

    /// With `--check`: try these interleavings, each from the same arguments, such as `1..50`
    #[arg(long, value_name = "FROM..TO", value_parser = seeds, requires = "check", conflicts_with_all = ["repeat", "seed"])]
    pub seeds: Option<Range<u64>>,

    /// Output format of `--check`: `human`, `json`, `sarif`, `github` or `xml`
    #[arg(long, default_value = "human", value_name = "FORMAT", value_parser = Format::parse)]
    pub message_format: Format,

    /// With `--check`: a file of findings to suppress: lines of a kind and a pattern (`race *reduce*`, `* k.cu:12`), or XML as
    /// compute-sanitizer takes it
    #[arg(long, value_name = "FILE", requires = "check")]
    pub suppress: Option<PathBuf>,

    /// Cooperative launch: CTAs may wait for each other (grid barriers)
    #[arg(long)]
    pub cooperative: bool,

    /// Bytes of stack of a thread
    #[arg(long, value_name = "BYTES")]
    pub stack: Option<u32>,

    /// Bytes of the device's heap (`malloc` of kernels)
    #[arg(long, value_name = "BYTES")]
    pub heap: Option<u64>,

    /// Stop after this many warp instructions
    #[arg(long, value_name = "N")]
    pub fuel: Option<u64>,

    /// Print elements of an argument's buffer afterwards: `2`, `2[0..8]`, `2[5]`, `2[0..2,3]`
    #[arg(long, value_name = "INDEX[RANGE]")]
    pub print: Vec<String>,

    /// Compare an argument's buffer with a file afterwards; exit with 1 if it differs
    #[arg(long, value_name = "INDEX=REF.npy")]
    pub expect: Vec<String>,

    /// Relative tolerance of `--expect`
    #[arg(long, default_value_t = 0.0, value_name = "R")]
    pub rtol: f64,

    /// Absolute tolerance of `--expect`
    #[arg(long, default_value_t = 0.0, value_name = "A")]
    pub atol: f64,

    /// Launch this many times on the same buffers
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,

    /// Print statistics of the launches, as text or `json`
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "human", value_name = "FORMAT")]
    pub stats: Option<StatsFormat>,

    /// Count instructions, active lanes, gathers and bytes in the first launch, which takes longer; `--stats` for people does so
    #[arg(long)]
    pub count: bool,

    /// Write a timeline for Perfetto or Chrome
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub verdict: VerdictArgs,
}

impl RunArgs {
    /// Whether the first launch is to be counted.
    pub fn counts(&self) -> bool {
        self.count || self.stats == Some(StatsFormat::Human)
    }
}

/// How to write statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum StatsFormat {
    /// For people
    Human,
    /// One JSON object on the last line of standard output
    Json,
}
