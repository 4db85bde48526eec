//! Parsing, checking, lowering and running mutated modules terminates without a panic, and variations of modules and kernels of random
//! instructions end alike on all engines.
//!
//! `MARGAY_MUTATIONS=10000` runs the full number; by default fewer are run. `MARGAY_VARIANTS` is the number of variations, and
//! `MARGAY_VARIANTS_FROM` the seed of the first one; `make variants` runs them for a given time. `MARGAY_INSTRUCTIONS` is the number of
//! kernels of random instructions (`make instructions`).

use margay::{LaunchConfig, LaunchShape, Limits, LoadOptions, SourceText};
use margay_harness::{
    attack::watch::Watch,
    files, instructions,
    mutate::Mutator,
    number, parallel,
    variant::{self, Variant, Verdict},
};
use margay_runtime::Device;
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Generous, since the machine may be busy; only hangs must be found.
const LONGEST: Duration = Duration::from_secs(20);

#[test]
fn damaged_modules_never_panic_or_hang() {
    let count = number("MARGAY_MUTATIONS").unwrap_or(1000);
    let texts: Vec<(String, String)> = files("examples")
        .into_iter()
        .chain(files("tests/run"))
        .filter_map(|(name, path)| Some((name, std::fs::read_to_string(path).ok()?)))
        .collect();
    assert!(texts.len() > 10, "the examples are there");
    let device = Device::with(margay::device_options(Some(1))).expect("a device");
    let seeds: Vec<u64> = (0..count).collect();
    let outcomes = parallel(&seeds, |seed| {
        let seed = *seed;
        let mut mutator = Mutator::new(seed);
        let (name, text) = &texts[mutator.below(texts.len())];
        let damaged = mutator.mutate(text);
        let started = Instant::now();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| attempt(&device, name, &damaged)));
        let Ok((did_pass, did_run)) = outcome else { panic!("mutation {seed} of {name} panics:\n{damaged}") };
        assert!(started.elapsed() < LONGEST, "mutation {seed} of {name} took {:?}:\n{damaged}", started.elapsed());
        (did_pass, did_run)
    });
    let passed = outcomes.iter().filter(|o| o.0).count();
    let ran = outcomes.iter().filter(|o| o.1).count();
    println!("{count} mutations: {passed} passed the check, {ran} ran to an end");
}

/// Whether the module passed the check, and whether a kernel of it was launched.
fn attempt(device: &std::sync::Arc<Device>, name: &str, text: &str) -> (bool, bool) {
    let context = device.context();
    context.set_limits(Limits { instructions: Some(20_000), stack: 4096, ..Limits::default() });
    context.set_output(Box::new(std::io::sink()));
    let Ok(module) = context.load(&[SourceText { name, text }], &LoadOptions::default()) else { return (false, false) };
    let names: Vec<String> = module.kernel_names().iter().map(|n| n.to_string()).collect();
    let mut ran = false;
    for name in names.iter().take(2) {
        let Ok(kernel) = module.kernel(name) else { continue };
        let size = kernel.params().iter().map(|p| p.offset + p.size).max().unwrap_or(0) as usize;
        let Ok(buffer) = context.buffer(1 << 16) else { continue };
        let mut block = vec![0; size];
        for p in kernel.params().iter().filter(|p| p.size == 8 && !p.array) {
            block[p.offset as usize..][..8].copy_from_slice(&buffer.address().to_le_bytes());
        }
        // A fault is an acceptable outcome.
        let _ = kernel
            .launch(&LaunchConfig::of(LaunchShape { shared: 1024, ..LaunchShape::new([2, 1, 1], [64, 1, 1]) }), &block);
        ran = true;
    }
    (true, ran)
}

#[test]
fn random_instructions_end_alike() {
    let seeds: Vec<u64> = (0..number("MARGAY_INSTRUCTIONS").unwrap_or(40)).collect();
    assert_alike(&seeds, |seed| instructions::kernel(seed, &[]));
}

#[test]
fn variations_of_modules_end_alike() {
    let bases = variant::bases(files("examples").into_iter().chain(files("tests/run")));
    let from = number("MARGAY_VARIANTS_FROM").unwrap_or(0);
    let seeds: Vec<u64> = (from..from + number("MARGAY_VARIANTS").unwrap_or(60)).collect();
    assert_alike(&seeds, |seed| Variant::new(seed, &bases));
}

fn assert_alike(seeds: &[u64], make: impl Fn(u64) -> Variant + Sync) {
    let program = Path::new(env!("CARGO_BIN_EXE_fuzz"));
    let differences = parallel(seeds, |seed| {
        let variant = make(*seed);
        let verdict = variant.judge(&mut Watch::new(program));
        matches!(verdict, Verdict::Differs(..))
            .then(|| format!("seed {seed}, {}\n{}", variant.report(&verdict), variant.text))
    });
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
