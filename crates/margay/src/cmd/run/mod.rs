//! `margay run`: arguments made, kernel launched, results saved, printed and compared.

mod arguments;
mod results;

use super::{Result, device, failure, load, options};
use crate::{
    args::{RunArgs, StatsFormat},
    exit::Failure,
    report::{Style, emit},
};
use arguments::Argument;
use margay_runtime::{Context, Kernel, LaunchConfig, LoadOptions, Module};
use serde_json::json;
use std::{
    io::{IsTerminal, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Runs the command.
pub fn run(args: &RunArgs, style: Style) -> Result {
    let wanted = results::Wanted::parse(args)?;
    let context = device(args.threads)?.context();
    set_limits(&context, args);
    let load_options =
        LoadOptions { check: options(&args.verdict)?, abi: args.abi.clone(), engine: args.engine.clone() };
    let started = Instant::now();
    let module = load(&context, &args.files, &load_options, style)?;
    let kernel = module.kernel(kernel_name(&module, args)?).map_err(|e| failure(e, style))?;
    let compile = started.elapsed();

    let bound = arguments::bind(&context, &module, &args.bind)?;
    let (arguments, block) = arguments::make(&context, &kernel, &args.args)?;
    wanted.check(&arguments)?;
    let mut times = Vec::new();
    for _ in 0..args.repeat {
        times.push(launch(args, &kernel, &block).map_err(|e| failure(e, style))?);
    }
    for argument in arguments.iter().chain(&bound) {
        argument.save()?;
    }
    let outcome = wanted.report(&arguments, args)?;
    if let Some(format) = args.stats {
        stats(format, args, &context, &kernel, compile, &mut times);
    }
    Ok(outcome)
}

fn set_limits(context: &Arc<Context>, args: &RunArgs) {
    let mut limits = context.limits();
    limits.stack = args.stack.unwrap_or(limits.stack);
    limits.instructions = args.fuel;
    context.set_limits(limits);
    if let Some(heap) = args.heap {
        context.device().memory().set_heap_limit(heap);
    }
}

/// The kernel asked for, or the only one.
fn kernel_name<'a>(module: &'a Module, args: &'a RunArgs) -> Result<&'a str> {
    let names = module.kernel_names();
    match (&args.kernel, &names[..]) {
        (Some(name), _) => Ok(name),
        (None, [only]) => Ok(only),
        (None, []) => Err(Failure::usage("the module has no kernel (`.entry`)")),
        (None, many) => Err(Failure::usage(format!(
            "the module has {} kernels; choose with --kernel: {}",
            many.len(),
            many.join(", ")
        ))),
    }
}

fn launch(args: &RunArgs, kernel: &Kernel, block: &[u8]) -> std::result::Result<Duration, margay_runtime::Error> {
    let bar = Bar::new();
    let progress = |done, total| bar.update(done, total);
    let watched = std::io::stderr().is_terminal();
    let config = LaunchConfig {
        cluster: args.cluster,
        shared: args.shared,
        seed: args.seed,
        cooperative: args.cooperative,
        threads: args.threads,
        progress: watched.then_some(&progress),
        ..LaunchConfig::new(args.grid, args.block)
    };
    let result = kernel.launch(&config, block);
    bar.clear();
    result.map(|stats| stats.time)
}

/// A line on the terminal for grids that take longer than a second.
struct Bar {
    started: Instant,
    /// Milliseconds after the start at which the line is due again.
    due: AtomicU64,
    shown: Mutex<bool>,
}

impl Bar {
    const FIRST: u64 = 1000;
    const EVERY: u64 = 200;

    fn new() -> Bar {
        Bar { started: Instant::now(), due: AtomicU64::new(Bar::FIRST), shown: Mutex::new(false) }
    }

    fn update(&self, done: u64, total: u64) {
        let now = self.started.elapsed().as_millis() as u64;
        let due = self.due.load(Relaxed);
        if now < due || self.due.compare_exchange(due, now + Bar::EVERY, Relaxed, Relaxed).is_err() {
            return;
        }
        let (width, percent) = (30, 100 * done / total.max(1));
        let full = (width * done / total.max(1)) as usize;
        let bar = "█".repeat(full) + &"░".repeat(width as usize - full);
        let left = now as f64 / 1e3 * (total - done.min(total)) as f64 / done.max(1) as f64;
        if let Ok(mut shown) = self.shown.lock() {
            eprint!("\r{bar} {percent:3} % of {total} CTAs, {left:.0} s left  ");
            let _ = std::io::stderr().flush();
            *shown = true;
        }
    }

    fn clear(&self) {
        if self.shown.lock().is_ok_and(|shown| *shown) {
            eprint!("\r{:78}\r", "");
        }
    }
}

fn stats(
    format: StatsFormat,
    args: &RunArgs,
    context: &Context,
    kernel: &Kernel,
    compile: Duration,
    times: &mut [Duration],
) {
    times.sort();
    let (least, median) = (times[0], times[times.len() / 2]);
    let threads = args.threads.unwrap_or_else(|| context.device().threads());
    let text = match format {
        StatsFormat::Json => json!({
            "kernel": kernel.name(),
            "engine": kernel.engine(),
            "threads": threads,
            "compile_ns": compile.as_nanos() as u64,
            "kernel_ns_min": least.as_nanos() as u64,
            "kernel_ns_median": median.as_nanos() as u64,
            "launches": times.len(),
        })
        .to_string(),
        StatsFormat::Human => {
            let ctas: u64 = args.grid.iter().map(|n| u64::from(*n)).product();
            let each: u64 = args.block.iter().map(|n| u64::from(*n)).product();
            format!(
                "{} on the {} engine: {} CTAs of {} threads, {} launch{} on {} host thread{}\n  check and compile {:.3?}, kernel {:.3?} (median {:.3?})",
                kernel.name(),
                kernel.engine(),
                ctas,
                each,
                times.len(),
                if times.len() == 1 { "" } else { "es" },
                threads,
                if threads == 1 { "" } else { "s" },
                compile,
                least,
                median,
            )
        }
    };
    emit(&format!("{text}\n"));
}

/// An argument by number, for messages: "argument 2 (`n`, .u32)".
fn title(index: usize, kernel: &Kernel) -> String {
    match kernel.params().get(index) {
        Some(p) if p.array => format!("argument {index} (`{}`, {} bytes)", p.name, p.size),
        Some(p) => format!("argument {index} (`{}`, {})", p.name, p.ty),
        None => format!("argument {index}"),
    }
}
