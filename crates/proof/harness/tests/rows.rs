//! Every row of the table decodes and runs on the reference engine, with operands from the table's generator.
//!
//! Each kernel has one instruction. Results are tested elsewhere; here a row must not end in "unsupported" or a bug. A
//! fault is acceptable, since all addresses are zero. `tests/unsupported.txt` lists what does not run yet, by prefix of
//! the mnemonic; the list may only shrink.

use margay::{LaunchConfig, Limits, LoadOptions, SourceText, Stop};
use margay_harness::{parallel, root};
use margay_isa::{Effect, Opcode, Target, Variant, Version, sample};
use margay_runtime::{Context, Device, Error};
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

/// Mnemonics tried per form.
const LIMIT: usize = 6;

/// The newest version with a target that has the instruction.
fn place(v: &Variant) -> Option<(Version, Target)> {
    let newest = Target::ALL.iter().rev().map(|(t, _)| (Version::LAST, *t));
    let old = Version::ALL.iter().rev().flat_map(|version| {
        Target::ALL.iter().rev().filter(|(_, since)| since <= version).map(|(t, _)| (*version, *t))
    });
    newest.chain(old).find(|(version, target)| v.available(*version, *target).is_ok())
}

/// Why the instruction does not run; `None` if it does, or if the check rejects the sample.
fn attempt(context: &Arc<Context>, text: &str) -> Option<String> {
    let options = LoadOptions::default();
    let module = context.load(&[SourceText { name: "row", text }], &options).ok()?;
    let stopped = |e: Error| match e {
        Error::Stopped(report) => match &report.stop {
            Stop::Unsupported(u) => Some(format!("unsupported: {}", u.what)),
            Stop::Bug(b) => Some(format!("bug: {}", b.0)),
            Stop::Fault(_) | Stop::Exhausted(_) => None,
        },
        Error::BadLaunch(_) | Error::NoPlan(_) => None,
        e => Some(e.to_string()),
    };
    let kernel = match module.kernel("k") {
        Ok(kernel) => kernel,
        Err(e) => return stopped(e),
    };
    let block = vec![0; kernel.params().iter().map(|p| p.offset + p.size).max().unwrap_or(0) as usize];
    kernel.launch(&LaunchConfig::new([1; 3], [128, 1, 1]), &block).err().and_then(stopped)
}

/// What came of the rows of an opcode.
#[derive(Default)]
struct Outcome<'k> {
    tried: usize,
    /// Lines of the list that were met.
    met: HashSet<&'k str>,
    /// Rows that do not run, and why.
    wrong: BTreeMap<String, String>,
}

fn rows_of<'k>(context: &Arc<Context>, op: Opcode, known: &[&'k str]) -> Outcome<'k> {
    let row = op.row();
    let (mut rng, mut out) = (sample::Rng(op as u64 + 1), Outcome::default());
    for (index, form) in row.forms.iter().enumerate() {
        for words in sample::mnemonics(form, LIMIT, &mut rng) {
            let variant = Variant::new(op, index as u16, &words).expect("a mnemonic of the form");
            let Some((version, target)) = place(&variant).filter(|_| variant.clash().is_none()) else { continue };
            let Some(shapes) = sample::operands(&variant, &mut rng) else { continue };
            let text = sample::text(&variant.to_string(), &shapes);
            let (module, _) = sample::module(version, target, std::slice::from_ref(&text));
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| attempt(context, &module)));
            out.tried += 1;
            let why = match result {
                Ok(None) => continue,
                // What no engine knows is refused by name.
                Ok(Some(why)) if margay_exec::unmodeled(&variant) && why.starts_with("unsupported") => continue,
                Ok(Some(why)) => why,
                Err(_) => format!("a panic\n{module}"),
            };
            match known.iter().find(|k| variant.to_string().starts_with(**k)) {
                Some(k) => drop(out.met.insert(*k)),
                None => drop(out.wrong.entry(row.notation(form)).or_insert(format!("{text}: {why}"))),
            }
        }
    }
    out
}

#[test]
fn every_row_decodes_and_runs() {
    let context = Device::new().expect("a device").context();
    context.set_limits(Limits { instructions: Some(10_000), ..Limits::default() });
    let text = std::fs::read_to_string(root().join("tests/unsupported.txt")).unwrap_or_default();
    let known: Vec<&str> = text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).collect();
    let opcodes: Vec<Opcode> = Opcode::ALL.iter().copied().filter(|op| op.row().effect != Effect::Call).collect();
    let outcomes = parallel(&opcodes, |op| rows_of(&context, *op, &known));
    let tried: usize = outcomes.iter().map(|o| o.tried).sum();
    println!("{tried} instructions tried");
    assert!(tried > 1000);
    let list: Vec<String> =
        outcomes.iter().flat_map(|o| &o.wrong).map(|(row, why)| format!("{row}\n    {why}")).collect();
    let stale: Vec<&&str> = known.iter().filter(|k| !outcomes.iter().any(|o| o.met.contains(*k))).collect();
    assert!(stale.is_empty(), "tests/unsupported.txt lists what runs: {stale:?}");
    assert!(list.is_empty(), "{} rows do not run:\n{}", list.len(), list.join("\n"));
}
