//! Runs hostile modules on both engines: `make attack SEEDS=20000 FROM=0`.
//!
//! ```text
//! attack [--seeds N] [--from N] [--seconds N] [--jobs N] [--class NAME,…] [--known]   runs seeds; exits with 1 if the engines differ
//! attack --show SEED [--class NAME,…]                                      prints the module of a seed
//! attack worker                                                            a child process (`attack::worker`)
//! ```

use margay_harness::attack::{Attack, Class, end::End, watch::Watch, worker};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// Time limit for shrinking a failure.
const SHRINK: Duration = Duration::from_secs(20);

struct Options {
    seeds: u64,
    from: u64,
    seconds: Option<u64>,
    jobs: usize,
    classes: Vec<Class>,
    show: Option<u64>,
    shrink: bool,
}

fn options() -> Result<Options, String> {
    let mut o = Options {
        seeds: 1000,
        from: 0,
        seconds: None,
        jobs: std::thread::available_parallelism().map_or(1, |n| n.get()),
        classes: Class::ALL.to_vec(),
        show: None,
        shrink: true,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        if name == "--no-shrink" {
            o.shrink = false;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{name} takes a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name} takes a number, not {value}"));
        match name.as_str() {
            "--seeds" => o.seeds = number()?,
            "--from" => o.from = number()?,
            "--seconds" => o.seconds = Some(number()?),
            "--jobs" => o.jobs = number()?.max(1) as usize,
            "--show" => o.show = Some(number()?),
            "--class" => {
                let named = |n: &str| Class::named(n).ok_or_else(|| format!("no class {n}"));
                o.classes = value.split(',').map(named).collect::<Result<_, _>>()?;
            }
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(o)
}

#[derive(Default)]
struct Tally {
    /// Per class: the kinds of outcomes and their numbers.
    ends: BTreeMap<Class, BTreeMap<String, u32>>,
    rejected: Vec<String>,
    by_order: Vec<u64>,
    failures: u32,
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("worker") {
        worker::serve();
        return ExitCode::SUCCESS;
    }
    let options = match options() {
        Ok(options) => options,
        Err(why) => {
            eprintln!("attack: {why}");
            return ExitCode::from(2);
        }
    };
    if let Some(seed) = options.show {
        let attack = Attack::new(seed, &options.classes);
        println!("// {} {:?}, by {:?}\n{}", attack.class.name(), attack.shape, attack.who, attack.text());
        return ExitCode::SUCCESS;
    }
    let Ok(program) = std::env::current_exe() else { return ExitCode::from(2) };
    let (next, tally, start) = (AtomicU64::new(options.from), Mutex::new(Tally::default()), Instant::now());
    let over = |seed: u64| match options.seconds {
        Some(seconds) => start.elapsed() >= Duration::from_secs(seconds),
        None => seed >= options.from + options.seeds,
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                let mut watch = Watch::new(&program);
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    if over(seed) {
                        break;
                    }
                    one(&mut watch, seed, &options, &tally);
                }
                tally.lock().by_order.append(&mut watch.by_order);
            });
        }
    });
    let tally = tally.into_inner();
    let count: u32 = tally.ends.values().flat_map(|kinds| kinds.values()).sum();
    println!(
        "{count} modules in {:.1} s, {} on which the engines do not agree",
        start.elapsed().as_secs_f64(),
        tally.failures
    );
    for (class, kinds) in &tally.ends {
        let kinds: Vec<String> = kinds.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
        println!("  {:11} {}", class.name(), kinds.join(", "));
    }
    if !tally.by_order.is_empty() {
        println!("  alike on one host thread only, as the order of the CTAs decides: seeds {:?}", tally.by_order);
    }
    for why in tally.rejected.iter().take(10) {
        println!("  refused: {why}");
    }
    if tally.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn one(watch: &mut Watch, seed: u64, options: &Options, tally: &Mutex<Tally>) {
    let (attack, end, failure) = watch.attempt(seed, &options.classes);
    let kind = match &end {
        End::Fault(fault) => fault.kind.clone(),
        End::Done(_) => "done".into(),
        end => format!("{end:?}").split(['(', ' ']).next().unwrap_or_default().to_lowercase(),
    };
    let mut report = String::new();
    if let Some(failure) = &failure {
        let alone = failure.only_after.map_or(String::new(), |n| format!(" (only after {n} others)"));
        report = format!("=== seed {seed}, {}{alone}: {}\n", failure.class.name(), failure.why);
        if options.shrink && failure.only_after.is_none() {
            let (small, why) = watch.shrink(failure, SHRINK);
            report += &format!("--- {why}\n// {:?}, by {:?}\n{}\n", small.shape, small.who, small.text());
        }
    }
    let mut tally = tally.lock();
    *tally.ends.entry(attack.class).or_default().entry(kind).or_default() += 1;
    if let End::Rejected(why) | End::BadLaunch(why) | End::Unsupported(why) = &end {
        tally.rejected.push(format!("seed {seed}, {}: {why}", attack.class.name()));
    }
    if failure.is_some() {
        tally.failures += 1;
        println!("{report}");
    }
}
