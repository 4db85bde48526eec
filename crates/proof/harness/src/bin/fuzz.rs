//! Fuzzing for a given time: `make fuzz TIME=600`, `make variants TIME=600 FILES=...`.
//!
//! ```text
//! fuzz --seconds N [--from SEED] [--engines-only | --variants] [FILE or FOLDER]…
//! fuzz --seconds N [--from SEED] --instructions [OPCODE]…
//! fuzz --show SEED [FILE or FOLDER | --instructions OPCODE]…   prints the variation, or the random kernel, of a seed
//! fuzz worker                                          a child process (`attack::worker`)
//! ```
//!
//! One thread mutates modules, by default those of `tests/run` and `examples`, and checks the properties of `crates/proof/fuzz` on the
//! front end. The others run modules on both engines in child processes: mutated ones that still pass the check, which may
//! have any outcome but a crash, and variations, attacks and kernels of random instructions, which must have equivalent outcomes. With
//! `--variants` or `--instructions`, all threads run variations, or such kernels.

use margay_harness::{
    attack::{
        Class, Shape,
        watch::Watch,
        worker::{self, Job},
    },
    files, instructions,
    mutate::Mutator,
    variant::{self, Variant, Verdict},
};
use margay_isa::Opcode;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
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

#[derive(Default)]
struct Options {
    seconds: Option<u64>,
    from: Option<u64>,
    show: Option<u64>,
    engines_only: bool,
    variants: bool,
    /// Only kernels of random instructions, of these opcodes if there are any.
    instructions: Option<Vec<Opcode>>,
    files: Vec<(String, PathBuf)>,
}

impl Options {
    fn of_process() -> Result<Options, String> {
        let mut options = Options::default();
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut number = || {
                let value = args.next().and_then(|v| v.parse().ok());
                value.map(Some).ok_or_else(|| format!("{arg} takes a number"))
            };
            match arg.as_str() {
                "--seconds" => options.seconds = number()?,
                "--from" => options.from = number()?,
                "--show" => options.show = number()?,
                "--engines-only" => options.engines_only = true,
                "--variants" => options.variants = true,
                "--instructions" => options.instructions = Some(Vec::new()),
                _ if arg.starts_with('-') => return Err(format!("unknown option {arg}")),
                _ if let Some(opcodes) = &mut options.instructions => {
                    let named = Opcode::ALL.iter().find(|op| op.row().name == arg);
                    opcodes.push(*named.ok_or_else(|| format!("unknown opcode {arg}"))?);
                }
                _ if Path::new(&arg).is_file() => options.files.push((arg.clone(), arg.into())),
                _ => options.files.extend(files(&arg)),
            }
        }
        if options.files.is_empty() {
            options.files = files("examples").into_iter().chain(files("tests/run")).collect();
        }
        Ok(options)
    }
}

struct Run {
    texts: Vec<(String, String)>,
    /// Those of the modules that can be varied.
    bases: Vec<(String, String)>,
    instructions: Option<Vec<Opcode>>,
    next: AtomicU64,
    failures: AtomicU64,
    /// What became of the variations.
    verdicts: Mutex<BTreeMap<String, u64>>,
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

    /// Runs modules of all kinds; returns the number of damaged modules and of attacks.
    fn engines(&self, program: &Path) -> (u64, u64) {
        let (mut watch, mut ran, mut attacks) = (Watch::new(program), 0, 0);
        while let Some(seed) = self.seed() {
            match seed % 4 {
                0 => {
                    attacks += 1;
                    self.attack(&mut watch, seed);
                }
                1 => ran += u64::from(self.damage(&mut watch, seed)),
                2 => self.judge(&mut watch, seed, &instructions::kernel(seed, &[])),
                _ => self.vary(&mut watch, seed),
            }
        }
        (ran, attacks)
    }

    fn variants(&self, program: &Path) {
        let mut watch = Watch::new(program);
        while let Some(seed) = self.seed() {
            self.vary(&mut watch, seed);
        }
    }

    fn attack(&self, watch: &mut Watch, seed: u64) {
        if let (_, _, Some(failure)) = watch.attempt(seed, Class::ALL) {
            let (small, why) = watch.shrink(&failure, SHRINK);
            let (class, shape) = (failure.class.name(), &small.shape);
            self.fails(&format!("attack {seed}, {class}: {why}\n// {shape:?}, by {:?}\n{}", small.who, small.text()));
        }
    }

    /// Whether the damaged module of a seed passes the check and was run.
    fn damage(&self, watch: &mut Watch, seed: u64) -> bool {
        let (name, text) = self.damaged(seed);
        if margay::Module::parse(&text).and_then(|m| m.check()).is_err() {
            return false;
        }
        let shape = Shape { grid: [2, 1, 1], block: [64, 1, 1], cluster: 1, shared: 1024, stack: 4096, threads: 2 };
        for engine in ["reference", "simd"] {
            let end = watch.run(&Job::new(engine, &shape, FUEL, &text));
            if end.is_a_crash() {
                self.fails(&format!("seed {seed}, damage to {name}, engine {engine}: {}\n{text}", end.show()));
            }
        }
        true
    }

    fn vary(&self, watch: &mut Watch, seed: u64) {
        let variant = match &self.instructions {
            Some(opcodes) => instructions::kernel(seed, opcodes),
            None => Variant::new(seed, &self.bases),
        };
        self.judge(watch, seed, &variant);
    }

    fn judge(&self, watch: &mut Watch, seed: u64, variant: &Variant) {
        let verdict = variant.judge(watch);
        if let Verdict::Differs(..) = verdict {
            self.fails(&format!("variation {seed}, {}\n{}", variant.report(&verdict), variant.text));
        }
        let mut verdicts = self.verdicts.lock();
        *verdicts.entry(verdict.word().to_owned()).or_default() += 1;
    }
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("worker") {
        worker::serve();
        return ExitCode::SUCCESS;
    }
    let options = match Options::of_process() {
        Ok(options) => options,
        Err(why) => {
            eprintln!("fuzz: {why}");
            return ExitCode::from(2);
        }
    };
    let bases = variant::bases(options.files.clone());
    if bases.is_empty() {
        eprintln!("fuzz: no modules");
        return ExitCode::from(2);
    }
    if let Some(seed) = options.show {
        let variant = match &options.instructions {
            Some(opcodes) => instructions::kernel(seed, opcodes),
            None => Variant::new(seed, &bases),
        };
        println!("// a variation of {}, {:?}\n{}", variant.name, variant.shape, variant.text);
        return ExitCode::SUCCESS;
    }
    let (Some(seconds), Ok(program)) = (options.seconds, std::env::current_exe()) else {
        eprintln!("fuzz: --seconds N is needed");
        return ExitCode::from(2);
    };
    let read = |(name, path): (String, PathBuf)| Some((name, std::fs::read_to_string(path).ok()?));
    // Other seeds every time; a failing one is printed.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs() << 20);
    let run = Run {
        texts: options.files.into_iter().filter_map(read).collect(),
        bases,
        instructions: options.instructions.clone(),
        next: AtomicU64::new(options.from.unwrap_or(now)),
        failures: AtomicU64::new(0),
        verdicts: Mutex::default(),
        until: Instant::now() + Duration::from_secs(seconds),
    };
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get());
    let (read, ran, attacks) = std::thread::scope(|scope| {
        if options.variants || options.instructions.is_some() {
            (0..threads).for_each(|_| drop(scope.spawn(|| run.variants(&program))));
            return (0, 0, 0);
        }
        let engines: Vec<_> = (1..threads.max(2)).map(|_| scope.spawn(|| run.engines(&program))).collect();
        let read = if options.engines_only { 0 } else { run.front() };
        let both = engines.into_iter().filter_map(|e| e.join().ok());
        let (ran, attacks) = both.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        (read, ran, attacks)
    });
    let verdicts = run.verdicts.into_inner();
    let failures = run.failures.into_inner();
    println!(
        "{read} damaged texts read, {ran} damaged modules, {} variations and {attacks} attacks run, {failures} failures",
        verdicts.values().sum::<u64>()
    );
    let verdicts: Vec<String> = verdicts.iter().map(|(word, n)| format!("{word} {n}")).collect();
    println!("variations: {}", verdicts.join(", "));
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
