//! The options of `margay run`.

use super::{VerdictArgs, dim3, seeds};
use clap::{Args, ValueEnum};
use margay::findings::Format;
use margay_sanitizer::Checks;
use std::{ops::Range, path::PathBuf};

/// `margay run`
#[derive(Debug, Args)]
#[command(after_help = "\
Arguments, in the order of the kernel's parameters:
  3  -1.5  0x10  inf  nan           a scalar of the parameter's type (0f3F800000 gives its bits)
  f32=2                             a scalar of the given type
  x.npy                             a buffer with the contents of the file
  y.npy:out.npy                     the same, saved to out.npy afterwards
  f32[4,8]=zeros:out.npy            a buffer of this type and shape; also iota, fill:V, rand:SEED; saved only with :OUT
  hex:0011aabb                      the bytes of a by-value parameter
  {u8=3, f64=2.5, f32[16]=iota}     a by-value struct with C layout; buffers become pointers
  tex:x.npy,filter=linear           a texture object: an array as above, then options
  surf:x.npy:out.npy                a surface object
OUT may also end in .bin (raw bytes), or in .png or .ppm for u8[h,w] and u8[h,w,3].

Images are [w], [h,w] or [d,h,w]. Options describe the image: channels=2|4 (the last extent), layers, cube (the first), samples,
size=WxHxD with layers=N, levels=N; unorm, snorm, linear; and the sampling: filter=point|linear, mip=point|linear,
address=wrap|mirror|clamp|border, normalized, read=normalized, border=R/G/B/A, lod=LOW/HIGH, bias=X, compare=less|...
--bind NAME=tex:..., NAME=surf:... or NAME=sampler:filter=linear,... does the same for .texref, .surfref and .samplerref.

Examples:
  margay run blur.ptx --grid 4,4 --block 8,8 --arg tex:u8[32,32]=rand:1,filter=linear,read=normalized,normalized --arg surf:f32[32,32]=zeros:out.npy
  margay run saxpy.ptx --grid 8 --block 128 --arg 1000 --arg 2.5 --arg f32[1000]=iota --arg f32[1000]=fill:1 --print 3[0..8]
  margay run k.ptx lib.ptx --kernel main --block 32 --arg x.npy:out.npy --expect 0=ref.npy --rtol 1e-5
  margay run k.ptx --block 64 --arg u32[64]=zeros --seed 7        use a reproducible interleaving")]
pub struct RunArgs {
    /// The module; `-` is standard input; several files are linked
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The kernel; optional if there is only one
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,

    /// Size of the grid in CTAs
    #[arg(long, default_value = "1", value_name = "X[,Y[,Z]]", value_parser = dim3)]
    pub grid: [u32; 3],

    /// Size of a CTA in threads
    #[arg(long, default_value = "1", value_name = "X[,Y[,Z]]", value_parser = dim3)]
    pub block: [u32; 3],

    /// Size of a cluster in CTAs
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = dim3)]
    pub cluster: Option<[u32; 3]>,

    /// An argument; once per parameter, in order
    #[arg(long = "arg", value_name = "SPEC", allow_hyphen_values = true)]
    pub args: Vec<String>,

    /// Bind a texture, sampler or surface to a reference of the module
    #[arg(long, value_name = "NAME=SPEC")]
    pub bind: Vec<String>,

    /// Size of dynamic shared memory in bytes
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    pub shared: u32,

    /// The engine: `tiered` starts at once and compiles in the background, `reference` compiles nothing, `simd` and `simd-full` wait for
    /// compiled code
    #[arg(long, value_name = "NAME")]
    pub engine: Option<String>,

    /// The calling convention to use
    #[arg(long, value_name = "NAME")]
    pub abi: Option<String>,

    /// The seed of a reproducible interleaving of threads and CTAs; 0 is the natural order
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,

    /// Number of host threads that run CTAs
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// Report errors that do not stop the kernel: `memory` (accesses outside their
    /// variable), `races`, `init` (uses of uninitialized memory), `sync` (barriers and warp instructions that some threads
    /// skip), `leaks` (on the device heap); separate several with commas, or use `all`
    #[arg(long, value_name = "WHAT", value_parser = Checks::parse)]
    pub check: Option<Checks>,

    /// With `--check`: try several interleavings, such as `1..50`, each with the same arguments
    #[arg(long, value_name = "FROM..TO", value_parser = seeds, requires = "check", conflicts_with_all = ["repeat", "seed"])]
    pub seeds: Option<Range<u64>>,

    /// Output format of `--check`: `human`, `json`, `sarif`, `github` or `xml`
    #[arg(long, default_value = "human", value_name = "FORMAT", value_parser = Format::parse)]
    pub message_format: Format,

    /// With `--check`: a file of findings to suppress: lines with a kind and a pattern (`race *reduce*`, `* k.cu:12`), or XML in
    /// compute-sanitizer's format
    #[arg(long, value_name = "FILE", requires = "check")]
    pub suppress: Option<PathBuf>,

    /// Cooperative launch: CTAs may wait for each other (grid barriers)
    #[arg(long)]
    pub cooperative: bool,

    /// Stack size of a thread in bytes
    #[arg(long, value_name = "BYTES")]
    pub stack: Option<u32>,

    /// Size of the device heap in bytes (for `malloc` in kernels)
    #[arg(long, value_name = "BYTES")]
    pub heap: Option<u64>,

    /// Stop after N warp instructions
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

    /// Launch N times on the same buffers
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,

    /// Print launch statistics as text or JSON
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "human", value_name = "FORMAT")]
    pub stats: Option<StatsFormat>,

    /// Count instructions, active lanes, gathers and bytes in the first launch, which slows it down; implied by `--stats human`
    #[arg(long)]
    pub count: bool,

    /// Write a timeline for Perfetto or Chrome tracing
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

/// Output formats of statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum StatsFormat {
    /// Text
    Human,
    /// One JSON object on the last line of standard output
    Json,
}
