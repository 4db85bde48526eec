//! `margay run`: arguments made, kernel launched, results saved, printed and compared.

mod arguments;
mod results;
mod watch;

use super::{Result, device, failure, load, options};
use crate::{
    args::{RunArgs, StatsFormat},
    exit::Failure,
    report::{Style, emit},
};
use arguments::Argument;
use margay_runtime::{Context, Kernel, LaunchConfig, LaunchStats, LoadOptions, Module};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use watch::{Trace, Watch};

/// Runs the command.
pub fn run(args: &RunArgs, style: Style) -> Result {
    let wanted = results::Wanted::parse(args)?;
    let context = device(args.threads)?.context();
    set_limits(&context, args);
    let load_options =
        LoadOptions { check: options(&args.verdict)?, abi: args.abi.clone(), engine: args.engine.clone() };
    let trace = args.trace.as_ref().map(|_| Trace::new());
    let started = Instant::now();
    let module = load(&context, &args.files, &load_options, style)?;
    let kernel = module.kernel(kernel_name(&module, args)?).map_err(|e| failure(e, style))?;
    let mut compile = started.elapsed();
    if let Some(trace) = &trace {
        trace.span("check and prepare", started, json!({}));
    }

    let bound = arguments::bind(&context, &module, &args.bind)?;
    let (arguments, block) = arguments::make(&context, &kernel, &args.args)?;
    wanted.check(&arguments)?;
    let mut times = Vec::new();
    for number in 1..=args.repeat as usize {
        let ran = launch(args, &kernel, &block, trace.as_deref(), number, style);
        if let (Some(trace), Some(path), true) = (&trace, &args.trace, ran.is_err() || number == args.repeat as usize) {
            trace.write(path)?;
        }
        let cost = ran?;
        compile += cost.compile;
        times.push(cost.time);
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

fn launch(
    args: &RunArgs,
    kernel: &Kernel,
    block: &[u8],
    trace: Option<&Trace>,
    number: usize,
    style: Style,
) -> std::result::Result<LaunchStats, Failure> {
    let watch = Watch::new(trace);
    let progress = |done, total| watch.update(done, total);
    let config = LaunchConfig {
        cluster: args.cluster,
        shared: args.shared,
        seed: args.seed,
        cooperative: args.cooperative,
        threads: args.threads,
        cancel: Some(watch::interrupt()),
        // Many launches are for measuring.
        progress: (args.repeat == 1 || trace.is_some()).then_some(&progress),
        ..LaunchConfig::new(args.grid, args.block)
    };
    let started = Instant::now();
    let result = kernel.launch(&config, block);
    watch.clear();
    if let Some(trace) = trace {
        let details = json!({ "grid": args.grid, "block": args.block, "engine": kernel.engine() });
        trace.span(kernel.name(), started, details);
    }
    match result {
        Ok(stats) => Ok(stats),
        Err(margay_runtime::Error::Cancelled) => Err(watch.cancelled(number)),
        Err(e) => Err(failure(e, style)),
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
            "fallback": kernel.fallback(),
            "threads": threads,
            "compile_ns": compile.as_nanos() as u64,
            "kernel_ns_min": least.as_nanos() as u64,
            "kernel_ns_median": median.as_nanos() as u64,
            "launches": times.len(),
            "compile_steps_ns": steps(kernel, false).into_iter().collect::<serde_json::Map<_, _>>(),
            "background_steps_ns": steps(kernel, true).into_iter().collect::<serde_json::Map<_, _>>(),
        })
        .to_string(),
        StatsFormat::Human => {
            let ctas: u64 = args.grid.iter().map(|n| u64::from(*n)).product();
            let each: u64 = args.block.iter().map(|n| u64::from(*n)).product();
            let fallback = kernel.fallback().map(|why| format!("\n  by the reference engine, for {why}"));
            format!(
                "{} on the {} engine: {} CTAs of {} threads, {} launch{} on {} host thread{}{}\n  check and compile {:.3?}, kernel {:.3?} (median {:.3?})",
                kernel.name(),
                kernel.engine(),
                ctas,
                each,
                times.len(),
                if times.len() == 1 { "" } else { "es" },
                threads,
                if threads == 1 { "" } else { "s" },
                fallback.unwrap_or_default(),
                compile,
                least,
                median,
            )
        }
    };
    emit(&format!("{text}\n"));
}

/// What the engine did to make code, and the nanoseconds that each step took in all.
fn steps(kernel: &Kernel, background: bool) -> Vec<(String, serde_json::Value)> {
    let mut steps: Vec<(&str, u64)> = Vec::new();
    for work in kernel.works().iter().filter(|w| w.background == background) {
        let time = work.time.as_nanos() as u64;
        match steps.iter_mut().find(|(what, _)| *what == work.what) {
            Some((_, sum)) => *sum += time,
            None => steps.push((work.what, time)),
        }
    }
    steps.into_iter().map(|(what, time)| (what.to_string(), time.into())).collect()
}

/// An argument by number, for messages: "argument 2 (`n`, .u32)".
fn title(index: usize, kernel: &Kernel) -> String {
    match kernel.params().get(index) {
        Some(p) if p.array => format!("argument {index} (`{}`, {} bytes)", p.name, p.size),
        Some(p) => format!("argument {index} (`{}`, {})", p.name, p.ty),
        None => format!("argument {index}"),
    }
}
