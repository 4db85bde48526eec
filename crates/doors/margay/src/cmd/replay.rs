//! `margay replay FOLDER`: replays one captured launch.

use super::{Result, device, failure};
use crate::{
    exit::{Failure, Outcome},
    report::{Style, emit},
};
use clap::Args;
use margay::{capture::Capture, quantity::count, render::demangled};
use margay_runtime::{LaunchConfig, LoadOptions, SourceText};
use std::path::PathBuf;

/// `margay replay`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  margay exec --capture launches ./a.out         store launches in launches/0001, launches/0002, …
  margay exec --capture launches --kernel-name reduce --launches 2:1 ./a.out
  margay replay launches/0007                    replay one launch and show its faults or changes
  margay replay launches/0007 --engine reference")]
pub struct ReplayArgs {
    /// The folder of a captured launch
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The engine: `tiered`, `reference`, `simd` or `simd-full`
    #[arg(long, value_name = "NAME", value_parser = crate::args::engine)]
    pub engine: Option<String>,
    /// Number of host threads that run CTAs; with one, the result is deterministic
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: u32,
    /// The seed of a reproducible interleaving of threads and CTAs; 0 is the natural order
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Write the memory contents after the launch to a file, in the order of `memory.bin`
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &ReplayArgs, style: Style) -> Result {
    let capture = Capture::read(&args.folder).map_err(Failure::usage)?;
    let context = device(Some(args.threads as usize))?.context();
    let sources: Vec<SourceText<'_>> = capture.modules.iter().map(|(name, text)| SourceText { name, text }).collect();
    let mut options = LoadOptions { engine: args.engine.clone(), writable_constants: true, ..LoadOptions::default() };
    // As the driver library did when it loaded the module.
    options.check.address_size = Some(64);
    let module = context.load(&sources, &options).map_err(|e| failure(e, style))?;
    let kernel = module.kernel(&capture.kernel).map_err(|e| failure(e, style))?;
    let (params, restored) = capture.restore(&context, &kernel).map_err(Failure::usage)?;
    let config = LaunchConfig { seed: args.seed, ..LaunchConfig::of(capture.shape) };
    let stats = kernel.launch(&config, &params).map_err(|e| failure(e, style))?;
    let after = restored.contents(&capture, context.device().memory()).map_err(Failure::usage)?;
    let mut words = format!(
        "{} ran on the {} engine in {:.3?}, captured on {}\n",
        demangled(&capture.kernel),
        kernel.engine(),
        stats.time,
        capture.device,
    );
    let mut digest = Digest::default();
    for (region, now) in capture.regions.iter().zip(&after) {
        digest.add(now);
        let changed = region.bytes.iter().zip(now).filter(|(old, new)| old != new).count();
        if changed > 0 {
            words += &format!("  {region}: {} changed\n", count(changed as u64, "byte", "bytes"));
        }
    }
    words += &format!("memory after the launch: {:016x}\n", digest.0);
    emit(&words);
    if let Some(path) = &args.output {
        std::fs::write(path, after.concat())
            .map_err(|e| Failure::usage(format!("cannot write {}: {e}", path.display())))?;
    }
    Ok(Outcome::Clean)
}

/// FNV-1a, for comparing two replays: stable across machines and versions.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
