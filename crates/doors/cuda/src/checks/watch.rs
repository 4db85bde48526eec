//! Checks of a program (`MARGAY_CHECK`): selects the launches to check, collects their findings, and reports them.
//!
//! A finding is reported when it first occurs; the same places in later launches are only counted.

use crate::{api, checks::stacks, code::Code, context::Context, process::account};
use margay::{
    findings::{Files, Format, Item, Settings, Suppressions, Writer, heap_leak, human},
    quantity::count,
    render::short_name,
};
use margay_exec::{Image, LaunchShape, Memory};
use margay_ir::{Builtin, FrameRole, Func};
use margay_isa::Opcode;
use margay_runtime::{By, Kernel, StopReport};
use margay_sanitizer::{Checks, Family, Finding, FindingKind, Footprint, Sanitizer};
use parking_lot::{Mutex, MutexGuard};
use std::{
    backtrace::Backtrace,
    collections::HashMap,
    io::Write,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

/// The identity of a finding: the program, the kind, and its places in the program, or the title if there are none; for a failing call, also
/// where the call is.
type Key = (usize, FindingKind, Vec<u64>, String);

/// The state of the checks in this process.
struct Watch {
    settings: Settings,
    suppressions: Suppressions,
    writer: Writer,
    files: Files,
    /// The occurrences of each finding; images are kept alive as long as a key refers to them.
    seen: HashMap<Key, u64>,
    images: HashMap<usize, Arc<Image>>,
    /// The launches that pass the filter, and those of them that were checked.
    passed: u64,
    watched: u64,
    suppressed: u64,
    /// The launches that failed.
    faults: u64,
    ended: bool,
}

/// The settings from the environment; `None` if no checks are requested.
fn settings() -> Option<&'static Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    let read = || Settings::from_environment(|name| std::env::var(name).ok()).ok().flatten();
    SETTINGS.get_or_init(read).as_ref()
}

/// Rejects invalid settings.
pub fn check_environment() -> Result<(), String> {
    if let Some(settings) = Settings::from_environment(|name| std::env::var(name).ok())? {
        settings.suppressions()?;
    }
    Ok(())
}

/// The selected checks, if any.
pub fn wanted() -> Option<Checks> {
    settings().map(|s| s.what)
}

fn watch() -> Option<MutexGuard<'static, Watch>> {
    static WATCH: OnceLock<Option<Mutex<Watch>>> = OnceLock::new();
    let make = || {
        let settings = settings()?.clone();
        let out: Box<dyn Write + Send> = match &settings.output {
            Some(path) => match std::fs::OpenOptions::new().create(true).append(true).open(path) {
                Ok(file) => Box::new(file),
                Err(e) => {
                    api::report_error(&format!("margay: cannot write {}: {e}", path.display()));
                    Box::new(std::io::stderr())
                }
            },
            None => Box::new(std::io::stderr()),
        };
        Some(Mutex::new(Watch {
            suppressions: settings.suppressions().unwrap_or_default(),
            writer: Writer::new(settings.format, out),
            settings,
            files: Files::default(),
            seen: HashMap::new(),
            images: HashMap::new(),
            passed: 0,
            watched: 0,
            suppressed: 0,
            faults: 0,
            ended: false,
        }))
    };
    WATCH.get_or_init(make).as_ref().map(|w| w.lock())
}

/// Whether the checks of a launch need the events of the reference engine. Bounds are checked by every engine; the rest
/// of `memory` concerns local variables.
fn needs_events(what: Checks, kernel: &Kernel) -> bool {
    what.races || what.init || what.sync || what.unused || what.memory && has_local_arrays(kernel)
}

fn has_local_arrays(kernel: &Kernel) -> bool {
    let funcs = &kernel.image().ir.funcs;
    funcs.iter().any(|f| f.frame.iter().any(|v| v.role == FrameRole::Local))
}

/// The seed of the interleaving of checked launches.
pub fn seed() -> u64 {
    settings().map_or(0, |s| s.seed)
}

/// Whether a kernel may launch others, or let the launch behind it begin before it ends.
fn has_successors(kernel: &Kernel) -> bool {
    let launches = |builtin: Option<Builtin>| {
        matches!(builtin, Some(Builtin::Launch | Builtin::Copy | Builtin::Fill | Builtin::LaunchGraph))
    };
    let triggers = |func: &Func| func.insts.iter().any(|i| func.variant(i).op == Opcode::Griddepcontrol);
    kernel.image().ir.funcs.iter().any(|func| launches(func.builtin) || triggers(func))
}

/// Creates the sanitizer of a launch, if it is to be checked; `alone` if no other work can run beside it.
pub fn sanitizer(kernel: &Kernel, shape: LaunchShape, params: &[u8], alone: bool) -> Option<Sanitizer> {
    let mut watch = watch()?;
    let settings = &watch.settings;
    if !settings.watches(kernel.name()) {
        return None;
    }
    let (what, sample, range) = (settings.what, settings.sample, settings.skip..);
    if !needs_events(what, kernel) {
        // The bounds of global memory are checked whatever launches are selected.
        watch.passed += u64::from(what.memory);
        watch.watched += u64::from(what.memory);
        return None;
    }
    let number = watch.passed;
    watch.passed += 1;
    if !range.contains(&number) || number - range.start >= watch.settings.count {
        return None;
    }
    watch.watched += 1;
    let sanitizer = Sanitizer::new(what, kernel.image().clone(), short_name, kernel.shape_of(shape))
        .with_params(params)
        .sampled(sample);
    // What a launch touches is compared with what runs beside it, or counted.
    let compared = !alone || what.unused || shape.programmatic || has_successors(kernel);
    let sanitizer = if compared { sanitizer.with_footprint() } else { sanitizer };
    Some(if shape.programmatic { sanitizer.overlapping() } else { sanitizer })
}

/// Reports the progress of a checked launch from time to time: it takes much longer than an unchecked one.
pub struct Clock<'k> {
    kernel: &'k Kernel,
    started: Instant,
    due: AtomicU64,
}

impl<'k> Clock<'k> {
    /// Seconds until the first words, and from one to the next.
    const EVERY: u64 = 20;

    /// Begins with a launch.
    pub fn new(kernel: &'k Kernel) -> Clock<'k> {
        Clock { kernel, started: Instant::now(), due: AtomicU64::new(Clock::EVERY) }
    }

    /// So many of all CTAs are done.
    pub fn progress(&self, done: u64, total: u64) {
        let now = self.started.elapsed().as_secs();
        let due = self.due.load(Relaxed);
        if now >= due && self.due.compare_exchange(due, now + Clock::EVERY, Relaxed, Relaxed).is_ok() {
            let name = short_name(self.kernel.name());
            api::say(&format!("margay: checking `{name}`: {done} of {total} CTAs after {now} s"));
        }
    }
}

impl Watch {
    /// Reports a finding, unless it is suppressed or was reported before; returns whether it counts.
    fn report(&mut self, image: Option<&Arc<Image>>, kernel: &str, finding: &Finding) -> bool {
        let item = Item { image: image.map(|i| &**i), kernel, finding };
        if self.suppressions.cover(item, &mut self.files) {
            self.suppressed += finding.times;
            return false;
        }
        crate::process::reports::note("finding", &human(item, &mut self.files));
        let program = image.map_or(0, |i| Arc::as_ptr(i) as usize);
        let places = image.map_or(Vec::new(), |image| finding.lines(image));
        let mut title = if places.is_empty() { finding.title.clone() } else { String::new() };
        if finding.kind == FindingKind::Api {
            title.extend(finding.notes.iter().filter(|note| note.starts_with("called")).map(String::as_str));
        }
        let times = self.seen.entry((program, finding.kind, places, title)).or_default();
        *times += finding.times.max(1);
        if *times > finding.times.max(1) {
            return true;
        }
        if let Some(image) = image {
            self.images.insert(program, image.clone());
        }
        if self.settings.format != Format::Human || self.settings.output.is_some() || !api::asked("MARGAY_LOG", "quiet")
        {
            self.writer.write(item);
        }
        account::found();
        true
    }
}

/// Reports the findings of a launch, and the call that launched it; returns whether to fail the context for them.
pub fn report_findings((kernel, from): (&Kernel, Option<&Backtrace>), sanitizer: &Sanitizer) -> bool {
    let mut found = sanitizer.findings();
    if found.is_empty() {
        return false;
    }
    let launched = from.map_or(Vec::new(), |from| stacks::launched(from, kernel.name()));
    found.iter_mut().for_each(|f| f.notes.extend_from_slice(&launched));
    let Some(mut watch) = watch() else { return false };
    let reported = found.iter().filter(|f| watch.report(Some(kernel.image()), kernel.name(), f)).count();
    reported > 0 && watch.settings.stop
}

/// The checked work that a launch of the program has brought about.
#[derive(Default)]
pub struct LaunchFamily(Family);

impl LaunchFamily {
    /// A grid has ended: its sanitizer, and the memory that it has accessed.
    pub fn launched(
        &mut self,
        by: Option<By>,
        kernel: &Kernel,
        checked: Option<(Sanitizer, Footprint)>,
        memory: &Memory,
    ) {
        if wanted().is_none_or(|what| !what.races) {
            return;
        }
        let (sanitizer, touched) = checked.map_or((None, Footprint::default()), |(c, t)| (Some(c), t));
        let by = by.map(|by| (by.grid, by.origin));
        let found = self.0.add_grid(by, &short_name(kernel.name()), (sanitizer, touched), memory);
        if let Some(mut watch) = watch() {
            found.iter().for_each(|f| _ = watch.report(Some(kernel.image()), kernel.name(), f));
        }
    }

    /// A copy or fill was performed, which reads and writes ranges.
    pub fn moved(&mut self, by: By, ranges: (Option<(u64, u64)>, (u64, u64)), memory: &Memory) {
        if wanted().is_some_and(|what| what.races) {
            self.0.add_move((by.grid, by.origin), ranges, memory).iter().for_each(report);
        }
    }
}

/// Reports a finding that is of no single launch.
pub fn report(finding: &Finding) {
    if let Some(mut watch) = watch() {
        watch.report(None, "", finding);
    }
}

/// Records a launch that failed. The fault is on standard error already, so it is written only to machine-readable or
/// redirected output.
pub fn stopped(report: &StopReport) {
    let Some(mut watch) = watch() else { return };
    watch.faults += 1;
    if watch.settings.format == Format::Human && watch.settings.output.is_none() {
        return;
    }
    let finding = margay::findings::stopped(report);
    watch.writer.write(Item { image: Some(&report.image), kernel: "", finding: &finding });
}

/// Codes that are results rather than errors.
fn is_answer(code: Code) -> bool {
    matches!(code, Code::NOT_READY | Code::PEER_ACCESS_ALREADY_ENABLED | Code::DEINITIALIZED)
}

/// Whether programs use a function to probe for features.
fn is_question(function: &str) -> bool {
    ["Get", "Query", "Is", "Can", "GetProcAddress"].iter().any(|word| function[2..].contains(word))
}

/// Reports a failed call, with its cause if known.
pub fn failed(function: &'static str, code: Code, why: Option<String>) {
    if is_answer(code) || code.is_sticky() || is_question(function) || wanted().is_none_or(|what| !what.api) {
        return;
    }
    let meaning = Code::of(code.number()).map_or("", |(_, text)| text);
    let (runtime, stack) = stacks::call();
    let called = runtime.map_or(format!("`{function}`"), |runtime| format!("`{runtime}` (`{function}`)"));
    report_failed_call(&called, (code.name(), meaning), why, stack);
}

/// Reports that a function of the runtime API has refused a call without asking the driver.
pub fn runtime_failed(function: &str, error: (&str, &str), why: String) {
    if !is_question(function) && wanted().is_some_and(|what| what.api) {
        report_failed_call(&format!("`{function}`"), error, Some(why).filter(|why| !why.is_empty()), stacks::call().1);
    }
}

fn report_failed_call(called: &str, (error, meaning): (&str, &str), why: Option<String>, stack: Vec<String>) {
    let Some(mut watch) = watch() else { return };
    let finding = Finding {
        kind: FindingKind::Api,
        title: format!("api: {called} fails with {error}: {meaning}"),
        parties: Vec::new(),
        notes: why.into_iter().chain(stack).collect(),
        help: None,
        times: 1,
    };
    watch.report(None, "", &finding);
}

/// Reports unfreed memory at the end of a context or of the process.
pub fn leaks(context: &Context) {
    // A context with a sticky error cannot free anything, so it leaks nothing.
    if wanted().is_none_or(|what| !what.leaks) || context.check().is_err() {
        return;
    }
    let mut found: Vec<Finding> = Vec::new();
    let left: Vec<(u64, usize, &str)> = context
        .allocations
        .lock()
        .iter()
        .filter_map(|(at, allocated)| Some((*at, allocated.len, allocated.owner.allocator()?)))
        .collect();
    for (at, bytes, function) in left {
        found.push(Finding {
            kind: FindingKind::Leak,
            title: format!("leak: {bytes} bytes at {at:#x} are never freed; {function} allocated them"),
            parties: Vec::new(),
            notes: stacks::allocation(at),
            help: None,
            times: 1,
        });
    }
    found.extend(heap_leak(context.device_memory()));
    let Some(mut watch) = watch() else { return };
    for finding in &found {
        watch.report(None, "", finding);
    }
}

/// Completes the output at the end of the process, with a summary.
pub fn close() {
    let Some(mut watch) = watch() else { return };
    if std::mem::replace(&mut watch.ended, true) {
        return;
    }
    watch.writer.finish();
    if watch.settings.format != Format::Human {
        return;
    }
    let mut line = match watch.seen.len() as u64 + watch.faults {
        0 => String::from("margay: no findings"),
        n => format!("margay: {}", count(n, "finding", "findings")),
    };
    let what = watch.settings.what;
    if what.is_of_launches() || what.unused {
        line += &format!(" in {}", count(watch.watched, "checked launch", "checked launches"));
    }
    if watch.passed > watch.watched {
        line += &format!(" of {}", watch.passed);
    }
    if watch.suppressed > 0 {
        line += &format!("; {} suppressed", watch.suppressed);
    }
    api::say(&line);
}
