//! Fuzzing for a given time: `make fuzz TIME=600`.
//!
//! ```text
//! fuzz --seconds N [--from SEED] [--engines-only]
//! fuzz worker                                          a child process (`attack::worker`)
//! ```
//!
//! One thread mutates the modules of `tests/run` and `examples` and checks the properties of `crates/proof/fuzz` on the
//! front end. The others run mutated modules that still pass the check, and attacks, on both engines in child
//! processes: the former may have any outcome but a crash, since mutations create races and undefined results; the
//! latter must have equivalent outcomes.

use margay_harness::{
    attack::{
        Class, Shape,
        watch::Watch,
        worker::{self, Job},
    },
    files,
    mutate::Mutator,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

#[path = "../../../fuzz/claims.rs"]
mod claims;

/// Limit of warp instructions for a mutated module.
const FUEL: u64 = 200_000;
/// Time limit for shrinking an attack.
const SHRINK: Duration = Duration::from_secs(30);

struct Run {
    texts: Vec<(String, String)>,
    next: AtomicU64,
    failures: AtomicU64,
    until: Instant,
}

impl Run {
    fn seed(&self) -> Option<u64> {
        (Instant::now() < self.until).then(|| self.next.fetch_add(1, Relaxed))
    }

    fn fails(&self, what: &str) {
        self.failures.fetch_add(1, Relaxed);
        println!("=== {what}");
    }

    /// A test module with random mutations, and its name.
    fn damaged(&self, seed: u64) -> (&str, String) {
        let mut mutator = Mutator::new(seed);
        let (name, text) = &self.texts[mutator.below(self.texts.len())];
        (name, mutator.mutate(text))
    }

    fn front(&self) -> u64 {
        let mut count = 0;
        while let Some(seed) = self.seed() {
            let (name, text) = self.damaged(seed);
            type Claim = (&'static str, fn(&str));
            let claims: [Claim; 3] = [("reads", claims::reads), ("prints", claims::prints), ("checks", claims::checks)];
            for (claim, holds) in claims {
                if catch_unwind(AssertUnwindSafe(|| holds(&text))).is_err() {
                    self.fails(&format!("seed {seed}, damage to {name}: the claim `{claim}` does not hold\n{text}"));
                }
            }
            count += 1;
        }
        count
    }

    fn engines(&self, program: &std::path::Path) -> (u64, u64) {
        let (mut watch, mut ran, mut attacks) = (Watch::new(program), 0, 0);
        while let Some(seed) = self.seed() {
            if seed % 2 == 0 {
                attacks += 1;
                if let (_, _, Some(failure)) = watch.attempt(seed, Class::ALL) {
                    let (small, why) = watch.shrink(&failure, SHRINK);
                    let (class, shape) = (failure.class.name(), &small.shape);
                    self.fails(&format!(
                        "attack {seed}, {class}: {why}\n// {shape:?}, by {:?}\n{}",
                        small.who,
                        small.text()
                    ));
                }
                continue;
            }
            let (name, text) = self.damaged(seed);
            if margay::Module::parse(&text).and_then(|m| m.check()).is_err() {
                continue;
            }
            ran += 1;
            let shape = Shape { grid: [2, 1, 1], block: [64, 1, 1], cluster: 1, shared: 1024, stack: 4096, threads: 2 };
            for engine in ["reference", "simd"] {
                let end = watch.run(&Job { engine, shape: shape.clone(), fuel: FUEL, text: &text });
                if end.is_a_crash() {
                    self.fails(&format!("seed {seed}, damage to {name}, engine {engine}: {}\n{text}", end.show()));
                }
            }
        }
        (ran, attacks)
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().map(String::as_str) == Some("worker") {
        worker::serve();
        return ExitCode::SUCCESS;
    }
    let value = |name: &str| {
        let at = args.iter().position(|a| a == name)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    let (Some(seconds), Ok(program)) = (value("--seconds"), std::env::current_exe()) else {
        eprintln!("fuzz: --seconds N is needed");
        return ExitCode::from(2);
    };
    let read = |(name, path): (String, std::path::PathBuf)| Some((name, std::fs::read_to_string(path).ok()?));
    let texts: Vec<(String, String)> =
        files("examples").into_iter().chain(files("tests/run")).filter_map(read).collect();
    // Other seeds every time; a failing one is printed.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs() << 20);
    let run = Run {
        texts,
        next: AtomicU64::new(value("--from").unwrap_or(now)),
        failures: AtomicU64::new(0),
        until: Instant::now() + Duration::from_secs(seconds),
    };
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get());
    let front = !args.iter().any(|a| a == "--engines-only");
    let (read, ran, attacks) = std::thread::scope(|scope| {
        let engines: Vec<_> = (1..threads.max(2)).map(|_| scope.spawn(|| run.engines(&program))).collect();
        let read = if front { run.front() } else { 0 };
        let both = engines.into_iter().filter_map(|e| e.join().ok());
        let (ran, attacks) = both.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        (read, ran, attacks)
    });
    let failures = run.failures.into_inner();
    println!("{read} damaged texts read, {ran} damaged modules and {attacks} attacks run, {failures} failures");
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
