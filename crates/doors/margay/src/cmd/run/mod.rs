//! `margay run`: creates the arguments, launches the kernel, and saves, prints and compares the results.

mod arguments;
mod results;
mod stats;
mod watch;

use super::{Result, device, failure, kernel_name, load, options};
use crate::{
    args::RunArgs,
    exit::{Failure, Outcome, complain},
    report::{Style, emit},
};
use arguments::Argument;
use margay::findings::{Files, Format, Item, Suppressions, Writer, heap_leak};
use margay_exec::{Counts, Observer};
use margay_runtime::{Context, Kernel, LaunchConfig, LaunchShape, LaunchStats, LoadOptions};
use margay_sanitizer::{Finding, Sanitizer};
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
    let load_options = LoadOptions {
        check: options(&args.verdict)?,
        abi: args.abi.clone(),
        engine: args.engine.clone(),
        ..LoadOptions::default()
    };
    let trace = args.trace.as_ref().map(|_| Trace::new());
    let started = Instant::now();
    let module = load(&context, &args.files, &load_options, style)?;
    let kernel = module.kernel(kernel_name(&module, args.kernel.as_deref())?).map_err(|e| failure(e, style))?;
    let front = started.elapsed();
    if let Some(trace) = &trace {
        trace.span("check and prepare", started, json!({}));
    }

    if args.check.is_some_and(|what| what.init) {
        context.device().memory().track_writes();
    }
    if args.check.is_some_and(|what| what.leaks) {
        context.device().memory().origins().start();
    }
    let bound = arguments::bind(&context, &module, &args.bind)?;
    if let Some(seeds) = args.seeds.clone() {
        return explore(args, &context, &kernel, seeds, style);
    }
    let (arguments, block) = arguments::make(&context, &kernel, &args.args)?;
    wanted.check(&arguments)?;
    let counts = args.counts().then(Counts::default);
    let Times { compile, mut launches } =
        launch_repeatedly(args, &kernel, &block, (trace.as_deref(), counts.as_ref()), style)?;
    for argument in arguments.iter().chain(&bound) {
        argument.save()?;
    }
    if args.check.is_some_and(|what| what.leaks)
        && let Some(leak) = heap_leak(context.device().memory())
        && show(args, &kernel, &[leak])? > 0
    {
        return Ok(Outcome::Findings);
    }
    let outcome = wanted.report(&arguments, args)?;
    if let Some(format) = args.stats {
        launches.sort();
        let measured = stats::Measured {
            kernel: &kernel,
            threads: args.threads.unwrap_or_else(|| context.device().threads()),
            compile: front + compile,
            front,
            times: launches,
            counts: counts.as_ref(),
        };
        emit(&format!("{}\n", measured.show(format, args)));
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

/// How long the launches of a run took.
struct Times {
    /// Compilation that launches waited for.
    compile: Duration,
    /// The launches that were not slowed down by counting.
    launches: Vec<Duration>,
}

/// Launches the kernel `--repeat` times; the first launch counts what it executes. Writes the trace after the last one.
fn launch_repeatedly(
    args: &RunArgs,
    kernel: &Kernel,
    block: &[u8],
    (trace, counts): (Option<&Trace>, Option<&Counts>),
    style: Style,
) -> std::result::Result<Times, Failure> {
    let mut times = Times { compile: Duration::ZERO, launches: Vec::new() };
    for number in 1..=args.repeat as usize {
        let ran = launch(args, kernel, block, (trace, counts.filter(|_| number == 1)), number, style);
        if let (Some(trace), Some(path), true) = (trace, &args.trace, ran.is_err() || number == args.repeat as usize) {
            trace.works(&kernel.works());
            trace.write(path)?;
        }
        let cost = ran?;
        times.compile += cost.compile;
        if counts.is_none() || number > 1 || args.repeat == 1 {
            times.launches.push(cost.time);
        }
    }
    Ok(times)
}

/// Performs one launch, and reports what the sanitizer found.
fn launch(
    args: &RunArgs,
    kernel: &Kernel,
    block: &[u8],
    (trace, counts): (Option<&Trace>, Option<&Counts>),
    number: usize,
    style: Style,
) -> std::result::Result<LaunchStats, Failure> {
    let watch = Watch::new(trace);
    let progress = |done, total| watch.update(done, total);
    let spans = |span| {
        if let Some(trace) = trace {
            trace.work(span);
        }
    };
    let config = LaunchConfig {
        seed: args.seed,
        threads: args.threads,
        cancel: Some(watch::interrupt()),
        // Many launches are for measuring.
        progress: (args.repeat == 1 || trace.is_some()).then_some(&progress),
        spans: trace.is_some().then_some(&spans),
        counts,
        ..LaunchConfig::of(shape(args))
    };
    let sanitizer = sanitizer(args, kernel, block);
    let config = LaunchConfig { observer: sanitizer.as_ref().map(|c| c as &dyn Observer), ..config };
    let started = Instant::now();
    let result = kernel.launch(&config, block);
    watch.clear();
    if let Some(trace) = trace {
        let details = json!({ "grid": args.grid, "block": args.block, "engine": kernel.engine() });
        trace.span(kernel.name(), started, details);
    }
    let mut found = sanitizer.map(|c| c.findings()).unwrap_or_default();
    found.extend(result.as_ref().err().and_then(|e| stopped(args, e)));
    let shown = show(args, kernel, &found)?;
    match result {
        Ok(_) if shown > 0 => Err(Failure { message: String::new(), outcome: Outcome::Findings }),
        Ok(stats) => {
            // The sanitizer has reported it already.
            let known = args.check.is_some_and(|what| what.sync) || number > 1;
            if let Some(undefined) = stats.undefined.as_ref().filter(|_| !known) {
                complain(margay::render::undefined(undefined, style.err).trim_end());
            }
            Ok(stats)
        }
        Err(margay_runtime::Error::Canceled) => Err(watch.canceled(number)),
        Err(e) => Err(failure(e, style)),
    }
}

fn shape(args: &RunArgs) -> LaunchShape {
    let RunArgs { grid, block, cluster, shared, cooperative, .. } = *args;
    LaunchShape { cluster, shared, cooperative, ..LaunchShape::new(grid, block) }
}

/// The sanitizer of a launch, if one of the requested checks needs it.
fn sanitizer(args: &RunArgs, kernel: &Kernel, block: &[u8]) -> Option<Sanitizer> {
    let what = args.check.filter(|what| what.is_of_launches())?;
    let shape = kernel.shape_of(shape(args));
    Some(Sanitizer::new(what, kernel.image().clone(), margay::render::short_name, shape).with_params(block))
}

/// The finding for a launch that has failed, for formats that programs read: people read it with the error.
fn stopped(args: &RunArgs, error: &margay_runtime::Error) -> Option<Finding> {
    match error {
        margay_runtime::Error::Stopped(report) if args.check.is_some() && args.message_format != Format::Human => {
            Some(margay::findings::stopped(report))
        }
        _ => None,
    }
}

/// Writes the findings that are not suppressed, as text to standard error or in a machine-readable format to standard output; returns
/// their number.
fn show(args: &RunArgs, kernel: &Kernel, found: &[Finding]) -> std::result::Result<usize, Failure> {
    let suppressions = args.suppress.as_deref().map_or(Ok(Suppressions::default()), Suppressions::read);
    let suppressions = suppressions.map_err(Failure::usage)?;
    let mut files = Files::default();
    let item = |finding| Item { image: Some(kernel.image()), kernel: kernel.name(), finding };
    let shown: Vec<&Finding> = found.iter().filter(|f| !suppressions.cover(item(f), &mut files)).collect();
    let mut writer = match args.message_format {
        Format::Human => Writer::new(Format::Human, Box::new(std::io::stderr())),
        format => Writer::new(format, Box::new(std::io::stdout())),
    };
    shown.iter().for_each(|finding| writer.write(item(finding)));
    if args.check.is_some() {
        writer.finish();
    }
    Ok(shown.len())
}

/// Launches once per seed, each time with the same arguments, and reports each finding once.
fn explore(
    args: &RunArgs,
    context: &Arc<Context>,
    kernel: &Kernel,
    seeds: std::ops::Range<u64>,
    style: Style,
) -> Result {
    let mut all: Vec<Finding> = Vec::new();
    let mut failed = None;
    for seed in seeds {
        let (_arguments, block) = arguments::make(context, kernel, &args.args)?;
        let sanitizer = sanitizer(args, kernel, &block);
        let config = LaunchConfig {
            seed,
            cancel: Some(watch::interrupt()),
            observer: sanitizer.as_ref().map(|c| c as &dyn Observer),
            ..LaunchConfig::of(shape(args))
        };
        let result = kernel.launch(&config, &block);
        for mut finding in sanitizer.map(|c| c.findings()).unwrap_or_default() {
            match all.iter_mut().find(|f| f.is_like(&finding, kernel.image())) {
                Some(known) => known.times += finding.times,
                None => {
                    finding.notes.push(format!("first seen with --seed {seed}"));
                    all.push(finding);
                }
            }
        }
        if let Err(e) = result {
            failed = Some((seed, e));
            break;
        }
    }
    all.extend(failed.as_ref().and_then(|(_, e)| stopped(args, e)));
    let shown = show(args, kernel, &all)?;
    match failed {
        Some((seed, e)) => {
            let mut failure = failure(e, style);
            failure.message += &format!("\n(with --seed {seed})");
            Err(failure)
        }
        None if shown == 0 => Ok(Outcome::Clean),
        None => Ok(Outcome::Findings),
    }
}

/// An argument by number, for messages: "argument 2 (`n`, .u32)".
fn title(index: usize, kernel: &Kernel) -> String {
    match kernel.params().get(index) {
        Some(p) if p.array => format!("argument {index} (`{}`, {} bytes)", p.name, p.size),
        Some(p) => format!("argument {index} (`{}`, {})", p.name, p.ty),
        None => format!("argument {index}"),
    }
}
