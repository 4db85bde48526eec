//! The account of a process: kernels launched and their cost (`MARGAY_STATS=1`), faults, and the exit code of a program
//! whose kernel failed (`MARGAY_FAULT_EXIT=1`).

use crate::{
    api::report_error,
    code::Code,
    raw::{Out, end_with, is_forked, when_it_ends},
};
use margay::{quantity::count, render::demangled};
use margay_runtime::{Kernel, LaunchStats, Tier, TierTime};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::c_char,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The account of one kernel.
#[derive(Default)]
struct Launched {
    times: u64,
    time: Duration,
    compile: Duration,
    engine: &'static str,
    /// The latest kernel of this name, for its tiers.
    kernel: Option<Kernel>,
}

#[derive(Default)]
struct Account {
    kernels: BTreeMap<String, Launched>,
    copies: u64,
    copied: u64,
    filled: u64,
    /// Number of failed launches, and the first line of the first report.
    faults: u64,
    first: String,
    /// The number of findings.
    findings: u64,
    /// Functions that were called and are not supported.
    unsupported: BTreeSet<&'static str>,
    /// Modules that could not be loaded: the first lines of the reports.
    unloadable: BTreeSet<String>,
    /// Kernels that could not be prepared: the first lines of the reports.
    unpreparable: BTreeSet<String>,
    /// Launches that have begun and not ended, if statistics are requested: the kernels' names, and when.
    under_way: BTreeMap<u64, (String, Instant)>,
    /// Number of launches that did not begin because the kernel's module could not be loaded, or the kernel not be prepared.
    refused: u64,
}

fn account() -> MutexGuard<'static, Account> {
    static ACCOUNT: OnceLock<Mutex<Account>> = OnceLock::new();
    ACCOUNT.get_or_init(Mutex::default).lock()
}

/// Whether statistics are requested.
fn wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| env::var("MARGAY_STATS").is_ok_and(|v| !v.is_empty() && v != "0"))
}

/// A program asked for counts ([`margayCountKernels`]).
static COUNTS: AtomicBool = AtomicBool::new(false);

crate::api::function! {
    /// Counts launches from now on, for [`margayKernels`].
    margayCountKernels() {
        COUNTS.store(true, Relaxed);
        Ok(())
    }
}

crate::api::function! {
    /// What was launched since [`margayCountKernels`], as text: a line for each kernel, with its launches, the nanoseconds that they
    /// took, those that compiling it took, the engine and the demangled name, separated by tabs. If `text` is
    /// null, only tells the length, including the terminating zero.
    margayKernels(text: Out<c_char>, len: usize, needed: Out<usize>) {
        let lines = account().lines();
        needed.offer(lines.len() + 1);
        match text.is_null() {
            true => Ok(()),
            false if len <= lines.len() => Err(Code::INVALID_VALUE),
            false => text.set_text(&lines, len),
        }
    }
}

crate::api::function! {
    /// Records that the runtime could not launch a kernel because the module could not be loaded.
    margayLaunchRefused() {
        account().refused += 1;
        Ok(())
    }
}

/// The exit code for a program whose kernel failed and that would exit with 0.
fn fault_exit() -> Option<i32> {
    env::var("MARGAY_FAULT_EXIT").ok()?.parse().ok().filter(|code| *code != 0)
}

/// Registers the report at exit.
pub fn open() {
    when_it_ends(close);
    if wanted() || crate::checks::watch::wanted().is_some() {
        crate::process::interrupted::before_termination(interrupted);
    }
}

/// A launch that statistics show as long as it continues.
pub struct UnderWay(Option<u64>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.map(|number| account().under_way.remove(&number));
    }
}

/// Records the beginning of a launch.
pub fn begins(kernel: &Kernel) -> UnderWay {
    if !wanted() {
        return UnderWay(None);
    }
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    account().under_way.insert(number, (kernel.name().into(), Instant::now()));
    UnderWay(Some(number))
}

/// Records a successful launch.
pub fn launched(kernel: &Kernel, stats: &LaunchStats) {
    if !wanted() && !COUNTS.load(Relaxed) {
        return;
    }
    let mut account = account();
    let entry = account.kernels.entry(kernel.name().into()).or_default();
    if entry.times == 0 {
        entry.compile = kernel.prepare_time();
    }
    entry.times += 1;
    entry.time += stats.time;
    entry.compile += stats.compile;
    entry.engine = kernel.engine();
    entry.kernel = Some(kernel.clone());
}

/// Records a copy.
pub fn copied(bytes: u64) {
    if wanted() {
        let mut account = account();
        account.copies += 1;
        account.copied += bytes;
    }
}

/// Records a fill.
pub fn filled(bytes: u64) {
    if wanted() {
        account().filled += bytes;
    }
}

/// Records a failed launch and its report.
pub fn failed(words: &str) {
    crate::process::interrupted::before_termination(interrupted);
    let mut account = account();
    account.faults += 1;
    if account.faults == 1 {
        account.first = first_line(words);
    }
}

/// Records the call of a function that is not supported.
pub fn unsupported(name: &'static str) {
    account().unsupported.insert(name);
}

/// Records a module that could not be loaded, and the report.
pub fn unloadable(words: &str) {
    account().unloadable.insert(first_line(words));
}

/// Records a kernel that could not be prepared, and the report.
pub fn unpreparable(words: &str) {
    account().unpreparable.insert(first_line(words));
}

/// Records a launch of a kernel that could not be prepared.
pub fn refused() {
    crate::process::interrupted::before_termination(interrupted);
    account().refused += 1;
}

/// The first line of a report, without its severity.
fn first_line(words: &str) -> String {
    let line = words.lines().next().unwrap_or_default();
    let line = line.trim_start_matches("margay: ");
    match line.strip_prefix("error").and_then(|rest| rest.split_once(": ")) {
        Some((_, message)) => message.into(),
        None => line.into(),
    }
}

/// Counts a finding.
pub fn found() {
    account().findings += 1;
}

impl Account {
    /// The kernels, a line each.
    fn lines(&self) -> String {
        let line = |(name, k): (&String, &Launched)| {
            let (time, compile) = (k.time.as_nanos(), k.compile.as_nanos());
            format!("{}\t{time}\t{compile}\t{}\t{}\n", k.times, k.engine, demangled(name))
        };
        self.kernels.iter().map(line).collect()
    }

    /// The statistics as text, kernels by decreasing time.
    fn stats(&self) -> String {
        let mut kernels: Vec<_> = self.kernels.iter().collect();
        kernels.sort_by_key(|(_, k)| std::cmp::Reverse(k.time));
        let launches: u64 = kernels.iter().map(|(_, k)| k.times).sum();
        let sum = |of: fn(&Launched) -> Duration| kernels.iter().map(|(_, k)| of(k)).sum::<Duration>();
        let failed = if self.faults > 0 { format!(", {} failed", self.faults) } else { String::new() };
        let mut out = format!(
            "margay: process {}: {} of {}{failed} in {:.3?}, {:.3?} compile time; {} bytes in {}, {} bytes filled",
            std::process::id(),
            count(launches, "launch", "launches"),
            count(kernels.len() as u64, "kernel", "kernels"),
            sum(|k| k.time),
            sum(|k| k.compile),
            self.copied,
            count(self.copies, "copy", "copies"),
            self.filled,
        );
        for (name, since) in self.under_way.values() {
            out += &format!("\n  under way for {:.3?}: {}", since.elapsed(), demangled(name));
        }
        for (name, k) in kernels {
            let (times, time, compile, engine) = (k.times, k.time, k.compile, k.engine);
            out += &format!(
                "\n  {times:>7} × {} on the {engine} engine: {time:.3?}, compiled in {compile:.3?}",
                demangled(name)
            );
            let Some(kernel) = &k.kernel else { continue };
            let tiers = kernel.tiers();
            let tier = |t: &TierTime| {
                let name = match t.tier {
                    Tier::Reference => "reference engine",
                    Tier::Light => "light code",
                    Tier::Full => "full code",
                };
                format!("{name} {:.3?}", t.time)
            };
            let tiers: Vec<String> = tiers.iter().map(tier).collect();
            let beside: Duration = kernel.works().iter().filter(|w| w.background).map(|w| w.time).sum();
            out += &format!(
                "\n            on all threads: {}; {beside:.3?} compile time in the background",
                tiers.join(", ")
            );
            if let Some(why) = kernel.fallback() {
                out += &format!("\n            on the reference engine: {why}");
            }
            let single = kernel.single_steps();
            if !single.is_empty() {
                out += &format!("\n            one at a time on the reference engine: {}", single.join(", "));
            }
        }
        out
    }
}

/// At exit: prints the statistics, and sets the exit code if a kernel failed.
fn close(status: i32) {
    if is_forked() {
        return; // what there is to say is the parent's
    }
    crate::process::logs::close();
    crate::work::stream::end();
    crate::driver::look_for_leaks();
    crate::checks::watch::close();
    let account = std::mem::take(&mut *account());
    if wanted() {
        eprintln!("{}", account.stats());
    }
    let code = fault_exit().filter(|_| status == 0 && account.has_failures());
    let ended = match code {
        Some(code) => format!("the program's exit code was 0; margay changed it to {code}"),
        None => String::new(),
    };
    account.report_failures(status != 0, &ended);
    if let Some(code) = code {
        end_with(code);
    }
}

/// Prints the statistics so far and the failures, before a signal ends the process. Does not wait for work in progress.
fn interrupted(signal: &'static str) {
    crate::checks::watch::close();
    let account = std::mem::take(&mut *account());
    if wanted() {
        eprintln!("{}", account.stats());
    }
    account.report_failures(true, &format!("{signal} ended the process"));
}

impl Account {
    /// Whether the exit code should show a failure.
    fn has_failures(&self) -> bool {
        self.faults > 0 || self.refused > 0 || self.findings > 0
    }

    /// Prints the failures, and how the process `ended`, with or without an error of its own.
    fn report_failures(&self, process_failed: bool, ended: &str) {
        let failed = process_failed || self.faults > 0 || self.refused > 0;
        if failed && !self.unsupported.is_empty() {
            let missed: Vec<String> = self.unsupported.iter().map(|name| format!("`{name}`")).collect();
            report_error(&format!("margay: the program called unsupported functions: {}", missed.join(", ")));
        }
        let report = |reasons: &BTreeSet<String>, one: &str, many: &str| {
            if failed && !reasons.is_empty() {
                let what = if reasons.len() == 1 { one } else { many };
                let reasons: Vec<&str> = reasons.iter().map(String::as_str).collect();
                report_error(&format!("margay: {what}: {}", reasons.join("; ")));
            }
        };
        report(&self.unloadable, "a module could not be loaded", "modules could not be loaded");
        report(&self.unpreparable, "a kernel cannot run", "kernels cannot run");
        if !self.has_failures() {
            return;
        }
        let more = match self.faults {
            0 => String::new(),
            1 => format!("1 launch failed: {}", self.first),
            n => format!("{n} launches failed, first: {}", self.first),
        };
        let not_begun = match self.refused {
            0 => String::new(),
            n => format!("{} did not begin", count(n, "launch", "launches")),
        };
        let words: Vec<&str> = [&more, &not_begun, ended].into_iter().filter(|w| !w.is_empty()).collect();
        if !words.is_empty() {
            report_error(&format!("margay: {}", words.join("; ")));
        }
    }
}
