//! Litmus tests on every engine and several host threads show no outcome that the memory consistency model forbids.
//!
//! `MARGAY_LITMUS=2000` runs more configurations, starting at seed `MARGAY_LITMUS_FROM`, each in
//! `MARGAY_LITMUS_LAUNCHES` launches of some thousand instances, and prints the outcomes. `make litmus` does so.

use margay::{Error, LaunchConfig, LoadOptions, SourceText};
use margay_harness::{
    litmus::{APART, Config, LOCATIONS, Outcome, REGISTERS, RESULTS, SHAPES},
    number,
};
use margay_runtime::{Context, Device};
use std::{collections::BTreeMap, sync::Arc};

/// Runs a configuration; counts its outcomes.
fn run(
    context: &Arc<Context>,
    config: &Config,
    engine: &str,
    (rounds, launches): (u32, u32),
) -> Result<BTreeMap<Outcome, u64>, Error> {
    let rounds = config.rounds(rounds);
    let instances = config.instances(rounds) as usize;
    let text = config.text(rounds);
    let options = LoadOptions { engine: Some(engine.into()), ..LoadOptions::default() };
    let kernel = context.load(&[SourceText { name: "litmus", text: &text }], &options)?.kernel("k")?;
    let size = LOCATIONS * instances * APART;
    let (locations, results) = (context.buffer(size as u64)?, context.buffer((instances * RESULTS * 4) as u64)?);
    let start = context.buffer(u64::from(rounds) * 4)?;
    let mut seen = BTreeMap::new();
    for _ in 0..launches {
        locations.write(0, &vec![0; size])?;
        results.write(0, &vec![0; instances * RESULTS * 4])?;
        start.write(0, &vec![0; rounds as usize * 4])?;
        let mut block = kernel.arguments();
        for buffer in [&locations, &results, &start] {
            block.push_address(buffer.address()).expect("an address fits");
        }
        block.push(&rounds.to_le_bytes()).expect("a number fits");
        let block = block.finish().expect("all arguments are there");
        kernel.launch(&LaunchConfig::new([config.ctas(), 1, 1], [config.block(), 1, 1]), &block)?;
        let (locations, results) = (locations.to_vec()?, results.to_vec()?);
        for i in 0..instances {
            let word = |k: usize| results[(i * RESULTS + k) * 4];
            let last = |k: usize| match config.is_shared() {
                true => word(REGISTERS + k),
                false => locations[(k * instances + i) * APART],
            };
            let outcome = Outcome { r: std::array::from_fn(word), last: std::array::from_fn(last) };
            *seen.entry(outcome).or_insert(0) += 1;
        }
    }
    Ok(seen)
}

#[test]
fn no_forbidden_outcome_is_seen() {
    let from = number("MARGAY_LITMUS_FROM").unwrap_or(0);
    let count = number("MARGAY_LITMUS");
    let launches = number("MARGAY_LITMUS_LAUNCHES").unwrap_or(1) as u32;
    let device = Device::with(margay::device_options(Some(4))).expect("a device");
    let context = device.context();
    let (mut instances, mut varied, mut wrong) = (0, 0, Vec::new());
    for seed in from..from + count.unwrap_or(SHAPES.len() as u64 * 2) {
        let config = Config::random(seed);
        for engine in device.engine_names() {
            // The reference engine compiles nothing and runs slower.
            let rounds = if engine == "reference" { 24 } else { 96 };
            let seen = match run(&context, &config, engine, (rounds, launches)) {
                Ok(seen) => seen,
                Err(e) => panic!("{seed}: {config}, engine {engine}: {e}\n{}", config.text(config.rounds(rounds))),
            };
            instances += seen.values().sum::<u64>();
            varied += usize::from(seen.len() > 1);
            for (outcome, n) in &seen {
                if let Some(why) = config.forbids(outcome) {
                    wrong.push(format!("{seed}: {config}, engine {engine}: {n} times {outcome:?}, against {why}"));
                }
            }
        }
    }
    if count.is_some() {
        eprintln!(
            "{instances} instances; {varied} configurations ended in more than one way; {} forbidden",
            wrong.len()
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
