//! Random kernels compute the same results on every engine and under every ABI.
//!
//! `MARGAY_KERNELS=1000` runs more kernels, starting at seed `MARGAY_KERNELS_FROM`, each under all ABIs.

use margay::{Buffer, Error, LaunchConfig, Limits, LoadOptions, SourceText, Stop};
use margay_harness::{
    kernels::{COUNTERS, Exits, INPUT, Module, WORDS, Whole},
    number,
    random::Random,
};
use margay_runtime::{Device, DeviceOptions, Tier};
use std::{
    cell::Cell,
    sync::Arc,
    time::{Duration, Instant},
};

/// Limit of warp instructions; kernels that exceed it are skipped.
const FUEL: u64 = 2_000_000;
/// Launches after which an engine has compiled a kernel with full effort.
const LAUNCHES: usize = 3;

thread_local! {
    /// Kernels of which compiled code has taken CTAs over.
    static MOVED: Cell<usize> = const { Cell::new(0) };
}

/// A kernel `k` and how it is launched.
struct Subject {
    text: String,
    grid: [u32; 3],
    block: [u32; 3],
    scalars: [u32; 2],
}

impl Subject {
    fn of(m: &Module) -> Subject {
        Subject { text: m.text(), grid: m.grid, block: m.block, scalars: m.scalars }
    }
}

/// The outcome of a launch.
#[derive(PartialEq, Debug)]
enum End {
    Bytes(Vec<u8>),
    Stopped(String),
    /// It ran too long, or the ABI has no plan.
    Skipped,
}

fn stopped(e: &Error) -> End {
    match e {
        Error::NoPlan(_) => End::Skipped,
        Error::Stopped(report) => match &report.stop {
            Stop::Exhausted(_) => End::Skipped,
            Stop::Fault(fault) => End::Stopped(format!("{e} {}", fault.notes.join("; "))),
            _ => End::Stopped(e.to_string()),
        },
        e => End::Stopped(format!("{e} {e:?}")),
    }
}

/// The outcome of each launch.
fn run(device: &Arc<Device>, m: &Subject, engine: &str, abi: &str, launches: usize) -> Vec<End> {
    let context = device.context();
    context.set_limits(Limits { instructions: Some(FUEL), ..Limits::default() });
    let options = LoadOptions { abi: Some(abi.into()), engine: Some(engine.into()), ..LoadOptions::default() };
    let launch = || -> Result<Vec<End>, Error> {
        let kernel = context.load(&[SourceText { name: "kernel", text: &m.text }], &options)?.kernel("k")?;
        let threads: u32 = m.grid.iter().chain(&m.block).product();
        let mut random = Random::new(5);
        let mut words = |n: u32| -> Vec<u8> { (0..n).flat_map(|_| (random.bits() as u32).to_le_bytes()).collect() };
        let (input, sums) = (words(INPUT), words(COUNTERS));
        let own = vec![0; (threads * (WORDS + 32) * 4) as usize];
        let mut ends = Vec::new();
        for _ in 0..launches {
            let buffer = |data: &[u8]| -> Result<Buffer, Error> {
                let buffer = context.buffer(data.len() as u64)?;
                buffer.write(0, data)?;
                Ok(buffer)
            };
            let (input, own, sums) = (buffer(&input)?, buffer(&own)?, buffer(&sums)?);
            let mut block = kernel.arguments();
            for buffer in [&input, &own, &sums] {
                block.push_address(buffer.address()).expect("an address fits");
            }
            for scalar in m.scalars {
                block.push(&scalar.to_le_bytes()).expect("a scalar fits");
            }
            let block = block.finish().expect("all arguments are there");
            ends.push(match kernel.launch(&LaunchConfig::new(m.grid, m.block), &block) {
                Ok(_) => End::Bytes([own.to_vec()?, sums.to_vec()?].concat()),
                Err(e) => stopped(&e),
            });
        }
        let moved = engine == "taking-over" && kernel.tiers().iter().any(|t| t.tier != Tier::Reference);
        MOVED.set(MOVED.get() + usize::from(moved));
        Ok(ends)
    };
    launch().unwrap_or_else(|e| vec![stopped(&e)])
}

/// The first word in which two outcomes differ, as text.
fn difference(want: &End, got: &End, m: &Subject) -> Option<String> {
    match (want, got) {
        (End::Skipped, _) | (_, End::Skipped) => None,
        (End::Bytes(a), End::Bytes(b)) if a == b => None,
        (End::Bytes(a), End::Bytes(b)) => {
            let at = a.iter().zip(b).position(|(x, y)| x != y)? & !3;
            let word = |v: &[u8]| u32::from_le_bytes([v[at], v[at + 1], v[at + 2], v[at + 3]]);
            let threads: u32 = m.grid.iter().chain(&m.block).product();
            let (thread, word_at) = (at as u32 / (WORDS * 4), at as u32 % (WORDS * 4));
            let place = match () {
                () if thread < threads => format!("thread {thread}, byte {word_at}"),
                () => format!("byte {} behind", at as u32 - threads * WORDS * 4),
            };
            Some(format!("{place}: {:#x} expected, {:#x} found", word(a), word(b)))
        }
        (End::Stopped(_), End::Stopped(_)) if want == got => Some(format!("both stop: {want:?}")),
        (a, b) => {
            let name = |e: &End| match e {
                End::Stopped(why) => why.clone(),
                _ => "the end".into(),
            };
            Some(format!("{} expected, {} found", name(a), name(b)))
        }
    }
}

/// The difference between engines or ABIs, if any.
fn wrong(device: &Arc<Device>, m: &Module, abis: &[&str]) -> Option<String> {
    // Without calls, all ABIs have equal code.
    compare(device, &Subject::of(m), if m.functions.is_empty() { &["ptx"] } else { abis })
}

fn compare(device: &Arc<Device>, m: &Subject, abis: &[&str]) -> Option<String> {
    let want = run(device, m, "reference", "ptx", 1).pop()?;
    if want == End::Skipped {
        return None;
    }
    if let End::Stopped(why) = &want {
        return Some(format!("the reference engine, launch 0: stops: {why}"));
    }
    for engine in device.engine_names() {
        for (i, abi) in abis.iter().enumerate() {
            let launches = if engine != "reference" && i == 0 { LAUNCHES } else { 1 };
            for (n, got) in run(device, m, engine, abi, launches).iter().enumerate() {
                if let Some(why) = difference(&want, got, m) {
                    return Some(format!("engine {engine}, ABI {abi}, launch {n}: {why}"));
                }
            }
        }
    }
    None
}

/// A device with all engines, also those for tests.
fn device() -> Arc<Device> {
    let more = margay::alternating().into_iter().chain(margay::taking_over());
    let engines = margay::engines().into_iter().chain(more).collect();
    Device::with(DeviceOptions { threads: Some(2), engines, ..DeviceOptions::default() }).expect("a device")
}

#[test]
fn whole_warps_agree() {
    let (device, from) = (device(), number("MARGAY_KERNELS_FROM").unwrap_or(0));
    for seed in from..from + number("MARGAY_KERNELS").unwrap_or(40) {
        let Whole { text, grid, block } = Whole::new(seed);
        let m = Subject { text, grid, block, scalars: [seed as u32, 0] };
        if let Some(why) = compare(&device, &m, &["ptx"]) {
            panic!("module {seed}, block {block:?}, c = {}: {why}\n{}", m.scalars[0], m.text);
        }
    }
}

#[test]
fn kernels_with_many_exits_agree() {
    let (device, from) = (device(), number("MARGAY_KERNELS_FROM").unwrap_or(0));
    let mut wrong = Vec::new();
    for seed in from..from + number("MARGAY_KERNELS").unwrap_or(25) {
        let Exits { text, block } = Exits::new(seed);
        let m = Subject { text, grid: [1; 3], block, scalars: [0; 2] };
        if let Some(why) = compare(&device, &m, &["ptx"]) {
            eprintln!("module {seed}, block {block:?}: {why}");
            wrong.push((m.text.len(), seed, m.text));
        }
    }
    // The smallest shows most.
    if let Some((_, seed, text)) = wrong.iter().min() {
        panic!("{} modules differ, such as module {seed}:\n{text}", wrong.len());
    }
}

#[test]
fn random_kernels_agree() {
    let (device, from) = (device(), number("MARGAY_KERNELS_FROM").unwrap_or(0));
    let all: Vec<&str> = margay_ir::abi::registry().iter().map(|a| a.name()).collect();
    let count = number("MARGAY_KERNELS");
    let mut movable = 0;
    for seed in from..from + count.unwrap_or(11) {
        if count.is_some() && seed % 50 == 0 {
            eprintln!("module {seed}");
        }
        let mut m = Module::new(seed);
        movable += usize::from(m.movable);
        let abis = if count.is_some() { all.clone() } else { vec!["ptx", all[seed as usize % all.len()]] };
        let Some(mut why) = wrong(&device, &m, &abis) else { continue };
        eprintln!("module {seed}: {why}");
        // A smaller module must fail at the same place: other failures are artefacts of shrinking.
        let place = |why: &str| why.split(", launch").next().unwrap_or_default().to_string();
        let first = place(&why);
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(120) {
            let again = |s: &Module| wrong(&device, s, &abis).filter(|w| place(w) == first);
            let smaller = m.smaller().into_iter().find_map(|s| Some((again(&s)?, s)));
            let Some((w, s)) = smaller else { break };
            (why, m) = (w, s);
        }
        panic!("module {seed}, grid {:?}, block {:?}, scalars {:?}: {why}\n{}", m.grid, m.block, m.scalars, m.text());
    }
    // Among the seeds of the ordinary test are enough kernels that can move, unless nothing can be compiled.
    if count.is_none() && margay::taking_over().is_some() {
        let moved = MOVED.get();
        assert!(3 * moved >= movable, "{moved} of {movable} were taken over");
    }
}
