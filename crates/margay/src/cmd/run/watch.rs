//! What a person sees of a launch while it runs and afterwards: the bar, the end by Ctrl-C, the trace.

use crate::exit::Failure;
use margay_runtime::Cancel;
use serde_json::{Value, json};
use std::{
    io::{IsTerminal, Write},
    path::Path,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Points of the curve of finished CTAs that a trace keeps.
const MOST_POINTS: usize = 100_000;

/// The switch that Ctrl-C throws. A second Ctrl-C ends the process at once.
pub fn interrupt() -> Cancel {
    static SWITCH: OnceLock<Cancel> = OnceLock::new();
    let switch = SWITCH.get_or_init(|| {
        let cancel = Cancel::default();
        let thrown = cancel.clone();
        // Without a handler Ctrl-C ends the process as ever.
        let _ = ctrlc::set_handler(move || {
            if thrown.is_cancelled() {
                std::process::exit(130);
            }
            thrown.cancel();
        });
        cancel
    });
    switch.clone()
}

/// Follows a launch: a line on the terminal for grids that take longer than a second, and points for the trace.
pub struct Watch<'t> {
    started: Instant,
    /// Milliseconds after the start at which the line is due again.
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
            terminal: std::io::stderr().is_terminal(),
            counts: [AtomicU64::new(0), AtomicU64::new(0)],
            trace,
        }
    }

    /// So many CTAs are done.
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
        if let Ok(mut shown) = self.shown.lock() {
            eprint!("\r{bar} {percent:3} % of {total} CTAs, {left:.0} s left  ");
            let _ = std::io::stderr().flush();
            *shown = true;
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if self.shown.lock().is_ok_and(|shown| *shown) {
            eprint!("\r{:78}\r", "");
        }
    }

    /// What to say of a launch that was cancelled.
    pub fn cancelled(&self, launch: usize) -> Failure {
        let [done, total] = self.counts.each_ref().map(|c| c.load(Relaxed));
        let after = self.started.elapsed();
        let of = if total == 0 { String::new() } else { format!(" of {total}") };
        Failure::usage(format!("launch {launch} was cancelled after {after:.1?}: {done}{of} CTAs were done"))
    }
}

/// Events in the format that Perfetto and Chrome's `about:tracing` open.
pub struct Trace {
    zero: Instant,
    events: Mutex<Vec<Value>>,
    points: Mutex<Vec<(Duration, u64)>>,
}

impl Trace {
    /// A trace whose time begins now.
    pub fn new() -> Arc<Trace> {
        Arc::new(Trace { zero: Instant::now(), events: Mutex::default(), points: Mutex::default() })
    }

    /// Something that took from `start` until now.
    pub fn span(&self, name: &str, start: Instant, details: Value) {
        let (at, took) = (start.duration_since(self.zero), start.elapsed());
        let micros = |d: Duration| d.as_nanos() as f64 / 1e3;
        let event = json!({
            "name": name, "ph": "X", "pid": 1, "tid": 1, "ts": micros(at), "dur": micros(took), "args": details,
        });
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    fn point(&self, done: u64) {
        let mut points = self.points.lock().unwrap_or_else(PoisonError::into_inner);
        if points.len() < MOST_POINTS {
            points.push((self.zero.elapsed(), done));
        }
    }

    /// Writes it.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (at, done) in self.points.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let ts = at.as_nanos() as f64 / 1e3;
            events.push(json!({ "name": "CTAs done", "ph": "C", "pid": 1, "ts": ts, "args": { "CTAs": done } }));
        }
        let text = json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string();
        std::fs::write(path, text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))
    }
}
