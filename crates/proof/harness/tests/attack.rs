//! Hostile modules have equivalent outcomes on both engines, and never cause a signal, a panic or a hang.
//!
//! `MARGAY_ATTACKS=5000` runs more seeds, starting at `MARGAY_ATTACKS_FROM`; `make attack` has more options.

use margay_harness::{
    attack::{Class, watch::Watch},
    number,
};
use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

#[test]
fn hostile_modules_end_alike() {
    let from = number("MARGAY_ATTACKS_FROM").unwrap_or(0);
    let to = from + number("MARGAY_ATTACKS").unwrap_or(200);
    let program = Path::new(env!("CARGO_BIN_EXE_attack"));
    let next = AtomicU64::new(from);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let (mut watch, mut found) = (Watch::new(program), Vec::new());
                    loop {
                        let seed = next.fetch_add(1, Relaxed);
                        if seed >= to || !found.is_empty() {
                            break found;
                        }
                        if let (_, _, Some(failure)) = watch.attempt(seed, Class::ALL) {
                            let (small, why) = watch.shrink(&failure, Duration::from_secs(20));
                            let (class, shape, who, text) = (failure.class, &small.shape, &small.who, small.text());
                            found.push(format!("seed {seed}, {class:?}: {why}\n{shape:?}, by {who:?}\n{text}"));
                        }
                    }
                })
            })
            .collect();
        workers.into_iter().flat_map(|w| w.join().expect("a worker's end")).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Attacks are effective: nearly all of them pass the check, and many fault.
#[test]
fn hostile_modules_pass_the_check() {
    let refused: Vec<String> = (0..400)
        .filter_map(|seed| {
            let attack = margay_harness::attack::Attack::new(seed, Class::ALL);
            let checked = margay::Module::parse(&attack.text()).and_then(|m| m.check());
            checked.err().map(|findings| format!("seed {seed}, {:?}: {findings}", attack.class))
        })
        .collect();
    assert!(refused.len() <= 12, "{} of 400 modules are refused:\n{}", refused.len(), refused.join("\n"));
}
