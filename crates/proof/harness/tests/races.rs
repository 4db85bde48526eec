//! Which races the sanitizer finds in random kernels with accesses to shared or global memory, against all pairs of accesses.
//!
//! * It reports no pair of statements that does not race.
//! * Where accesses race at a word, it reports one of the pairs that race there.
//! * What it reports does not depend on the engine, and not on whether accesses are put off (`Sanitizer::at_once`).
//!
//! `MARGAY_RACES=10000` runs more kernels, starting at seed `MARGAY_RACES_FROM`.

use margay::{Device, DeviceOptions, LaunchConfig, LaunchShape, LoadOptions, SourceText};
use margay_harness::{
    number,
    races::{BYTES, CTAS, Program, THREADS},
};
use margay_runtime::Module;
use margay_sanitizer::{Checks, Finding, Sanitizer};
use std::{collections::BTreeSet, fmt::Write};

/// Programs in which one access races with several others at a word, of which records are kept in different orders.
const SEVERAL_AT_ONCE: [u64; 2] = [50_209, 53_066];

/// The pairs of statements that findings name.
fn pairs(module: &Module, findings: &[Finding]) -> BTreeSet<(usize, usize)> {
    let kernel = module.kernel("k").expect("the kernel");
    let image = kernel.image();
    let statement = |party: &margay_sanitizer::Party| {
        let (func, at) = party.at;
        let origins = image.ir.func(func).source.tree.origins(at.span.start);
        origins.last().expect("a line").line as usize - 1
    };
    let pair = |f: &Finding| {
        let (a, b) = (statement(&f.parties[0]), statement(&f.parties[1]));
        (a.min(b), a.max(b))
    };
    findings.iter().map(pair).collect()
}

/// The findings of a launch: the pairs, and all of them as text, without how often something was seen, and which of several threads is
/// shown.
fn launch(
    program: &Program,
    text: &str,
    (engine, seed, at_once): (&str, u64, bool),
) -> Result<(BTreeSet<(usize, usize)>, String), String> {
    let options = DeviceOptions { threads: Some(1), engines: margay::engines(), ..DeviceOptions::default() };
    let context = Device::with(options).map_err(|e| e.to_string())?.context();
    let options = LoadOptions { engine: Some(engine.into()), ..LoadOptions::default() };
    let module = context.load(&[SourceText { name: "k", text }], &options).map_err(|e| e.to_string())?;
    let kernel = module.kernel("k").map_err(|e| e.to_string())?;
    let results = context.buffer((4 * THREADS * CTAS).into()).map_err(|e| e.to_string())?;
    let data = context.buffer(BYTES.into()).map_err(|e| e.to_string())?;
    data.write(0, &[0; BYTES as usize]).map_err(|e| e.to_string())?;
    let mut arguments = kernel.arguments();
    for buffer in [&results, &data] {
        arguments.push_address(buffer.address()).map_err(|e| e.to_string())?;
    }
    let block = arguments.finish().map_err(|e| e.to_string())?;
    let shape = LaunchShape::new([program.ctas, 1, 1], [program.threads, 1, 1]);
    let what = Checks { races: true, ..Checks::NONE };
    let sanitizer = Sanitizer::new(what, kernel.image().clone(), str::to_owned, shape).with_params(&block);
    let sanitizer = if at_once { sanitizer.at_once() } else { sanitizer };
    let config = LaunchConfig { seed, observer: Some(&sanitizer), ..LaunchConfig::of(shape) };
    kernel.launch(&config, &block).map_err(|e| e.to_string())?;
    let found = sanitizer.findings();
    let mut all = String::new();
    for f in &found {
        let verbs: Vec<_> = f.parties.iter().map(|p| &p.verb).collect();
        let _ = writeln!(all, "{} {verbs:?} {:?}", f.title, f.notes);
    }
    Ok((pairs(&module, &found), all))
}

/// What is wrong with the sanitizer's verdict on a program.
fn examine(program: &Program, text: &str, seed: u64) -> Result<bool, String> {
    let races = program.races();
    let mut reports = Vec::new();
    for way in [("reference", 0, true), ("reference", 0, false), ("simd", 0, false), ("reference", seed + 1, false)] {
        if !margay::engines().iter().any(|e| e.name() == way.0) {
            continue;
        }
        let (pairs, report) = launch(program, text, way)?;
        if let Some(pair) = pairs.difference(&races.all).next() {
            return Err(format!("{way:?}: {pair:?} do not race\n{report}"));
        }
        let missed =
            |(word, at): &(usize, &BTreeSet<_>)| !races.silent[*word] && !at.is_empty() && pairs.is_disjoint(at);
        if let Some((word, at)) = races.at.iter().enumerate().find(missed) {
            return Err(format!("{way:?}: nothing of {at:?} at word {word} is reported, but\n{report}"));
        }
        reports.push((way, report));
    }
    let ((first, expected), others) = reports.split_first().expect("a launch");
    match others.iter().find(|((_, seed, _), report)| *seed == 0 && report != expected) {
        Some((way, report)) => Err(format!("{first:?}:\n{expected}{way:?}:\n{report}")),
        None => Ok(!races.all.is_empty()),
    }
}

#[test]
fn races_of_random_kernels_are_found() {
    let from = number("MARGAY_RACES_FROM").unwrap_or(0);
    let (mut racy, mut failed) = (0, 0);
    let count = number("MARGAY_RACES").unwrap_or(300);
    for seed in (from..from + count).chain(SEVERAL_AT_ONCE) {
        let new = || Program::new(seed);
        for program in [new(), new().spaced(seed), new().apart(seed)] {
            match examine(&program, &program.ptx(), seed) {
                Ok(has_races) => racy += u64::from(has_races),
                Err(what) => {
                    failed += 1;
                    if failed <= 3 {
                        println!("seed {seed}: {what}\n{program:#?}");
                    }
                }
            }
        }
    }
    let count = 3 * count;
    println!("{racy} of {count} race");
    assert_eq!(failed, 0, "of {count} programs");
    assert!(count < 100 || (count / 4..count - count / 10).contains(&racy), "{racy} of {count} programs race");
}
