//! The progress line of a launch, its cancellation by Ctrl-C, and its trace.

use crate::exit::Failure;
use margay_exec::Work;
use margay_runtime::{Cancel, Span};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{
    io::{IsTerminal, Write},
    path::Path,
    sync::{
        Arc, LazyLock, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The maximum number of points of the curve of finished CTAs, and of spans, in a trace.
const MAX_POINTS: usize = 100_000;

/// Rows of a trace.
const MAIN: usize = 1;
const COMPILE: usize = 2;
const BACKGROUND: usize = 3;
const FIRST_WORKER: usize = 4;

/// The flag that Ctrl-C sets. A second Ctrl-C ends the process at once.
pub fn interrupt() -> Cancel {
    static SWITCH: OnceLock<Cancel> = OnceLock::new();
    let switch = SWITCH.get_or_init(|| {
        let cancel = Cancel::default();
        let thrown = cancel.clone();
        // Without a handler, Ctrl-C ends the process as usual.
        let _ = ctrlc::set_handler(move || {
            if thrown.is_canceled() {
                std::process::exit(130);
            }
            thrown.cancel();
        });
        cancel
    });
    switch.clone()
}

/// Whether standard error is a terminal, asked once and not with every launch.
static TERMINAL: LazyLock<bool> = LazyLock::new(|| std::io::stderr().is_terminal());

/// Follows a launch: a line on the terminal for grids that take longer than a second, and points for the trace.
pub struct Watch<'t> {
    started: Instant,
    /// The time of the next update of the line, in milliseconds after the start.
    due: AtomicU64,
    shown: Mutex<bool>,
    terminal: bool,
    counts: [AtomicU64; 2],
    trace: Option<&'t Trace>,
}

impl<'t> Watch<'t> {
    const FIRST: u64 = 1000;
    const EVERY: u64 = 200;

    /// Begins with a launch.
    pub fn new(trace: Option<&'t Trace>) -> Watch<'t> {
        Watch {
            started: Instant::now(),
            due: AtomicU64::new(Self::FIRST),
            shown: Mutex::new(false),
            terminal: *TERMINAL,
            counts: [AtomicU64::new(0), AtomicU64::new(0)],
            trace,
        }
    }

    /// Notes the number of finished CTAs.
    pub fn update(&self, done: u64, total: u64) {
        self.counts[0].fetch_max(done, Relaxed);
        self.counts[1].store(total, Relaxed);
        if let Some(trace) = self.trace {
            trace.point(done);
        }
        let now = self.started.elapsed().as_millis() as u64;
        let due = self.due.load(Relaxed);
        let taken = || self.due.compare_exchange(due, now + Self::EVERY, Relaxed, Relaxed).is_ok();
        if !self.terminal || now < due || !taken() {
            return;
        }
        let (width, percent) = (30, 100 * done / total.max(1));
        let full = (width * done / total.max(1)) as usize;
        let bar = "█".repeat(full) + &"░".repeat(width as usize - full);
        let left = now as f64 / 1e3 * (total - done.min(total)) as f64 / done.max(1) as f64;
        let mut shown = self.shown.lock();
        let mut to = std::io::stderr();
        let _ = write!(to, "\r{bar} {percent:3} % of {total} CTAs, {left:.0} s left  ").and_then(|()| to.flush());
        *shown = true;
    }

    /// Removes the line.
    pub fn clear(&self) {
        if *self.shown.lock() {
            let _ = write!(std::io::stderr(), "\r{:78}\r", "");
        }
    }

    /// The message for a canceled launch.
    pub fn canceled(&self, launch: usize) -> Failure {
        let [done, total] = self.counts.each_ref().map(|c| c.load(Relaxed));
        let after = self.started.elapsed();
        let of = if total == 0 { String::new() } else { format!(" of {total}") };
        Failure::usage(format!("launch {launch} was canceled after {after:.1?}: {done}{of} CTAs finished"))
    }
}

/// Events in the format that Perfetto and Chrome's `about:tracing` open.
pub struct Trace {
    zero: Instant,
    events: Mutex<Vec<Value>>,
    points: Mutex<Vec<(Duration, u64)>>,
}

impl Trace {
    /// A trace whose clock starts now.
    pub fn new() -> Arc<Trace> {
        Arc::new(Trace { zero: Instant::now(), events: Mutex::default(), points: Mutex::default() })
    }

    /// Something that the main thread did from `start` until now.
    pub fn span(&self, name: &str, start: Instant, details: Value) {
        self.add(name, MAIN, (start, start.elapsed()), details);
    }

    /// CTAs that a thread of a launch ran.
    pub fn work(&self, span: Span) {
        let name = match span.ctas {
            1 => format!("CTA {}", span.first),
            n => format!("CTAs {} to {}", span.first, span.first + n - 1),
        };
        self.add(&name, FIRST_WORKER + span.worker, (span.started, span.time), json!({ "CTAs": span.ctas }));
    }

    /// A step in which an engine produced code.
    pub fn works(&self, works: &[Work]) {
        for work in works {
            let thread = if work.background { BACKGROUND } else { COMPILE };
            self.add(work.what, thread, (work.started, work.time), json!({}));
        }
    }

    fn add(&self, name: &str, thread: usize, (start, took): (Instant, Duration), details: Value) {
        let mut events = self.events.lock();
        if events.len() < MAX_POINTS {
            let micros = |d: Duration| d.as_nanos() as f64 / 1e3;
            let at = micros(start.duration_since(self.zero));
            events.push(json!({
                "name": name, "ph": "X", "pid": 1, "tid": thread, "ts": at, "dur": micros(took), "args": details,
            }));
        }
    }

    fn point(&self, done: u64) {
        let mut points = self.points.lock();
        if points.len() < MAX_POINTS {
            points.push((self.zero.elapsed(), done));
        }
    }

    /// Writes it.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let mut events = self.events.lock().clone();
        let mut threads: Vec<u64> = events.iter().filter_map(|e| e["tid"].as_u64()).collect();
        threads.sort_unstable();
        threads.dedup();
        for thread in threads {
            let name = match thread as usize {
                MAIN => "main".into(),
                COMPILE => "compile".into(),
                BACKGROUND => "compile in the background".into(),
                worker => format!("worker {}", worker - FIRST_WORKER),
            };
            events.push(json!({
                "name": "thread_name", "ph": "M", "pid": 1, "tid": thread, "args": { "name": name },
            }));
        }
        for (at, done) in self.points.lock().iter() {
            let ts = at.as_nanos() as f64 / 1e3;
            events.push(json!({ "name": "CTAs done", "ph": "C", "pid": 1, "ts": ts, "args": { "CTAs": done } }));
        }
        let text = json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string();
        std::fs::write(path, text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))
    }
}
