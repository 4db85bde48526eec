//! Writes modules with random valid instructions of the table into a folder: `cargo run --example modules -- DIR COUNT SEED`.
//! Each holds some instructions of one opcode under a version and target that has them. Food for tools that compare judges.
//! `modules -- VERSION TARGET COUNT SEED` prints COUNT instructions of every form that the version and target have instead.

use margay_isa::{Opcode, Suffix, Target, Variant, Version, sample};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [version, target, count, seed] = args.as_slice() {
        let (Some(version), Some(target)) = (Version::parse(version), Target::parse(target)) else { return };
        return lines(version, target, count.parse().unwrap_or(1), seed.parse().unwrap_or(1));
    }
    let [dir, count, seed] = args.as_slice() else {
        eprintln!("modules: wants a folder, a number of modules and a seed");
        std::process::exit(2);
    };
    let (count, seed) = (count.parse().unwrap_or(100), seed.parse().unwrap_or(1));
    let mut rng = sample::Rng(seed);
    let mut made = 0;
    while made < count {
        let Some(op) = rng.pick(Opcode::ALL).copied() else { return };
        let version = if rng.once_in(3) { *rng.pick(Version::ALL).unwrap_or(&Version::LAST) } else { Version::LAST };
        let targets: Vec<Target> = Target::ALL.iter().filter(|(_, s)| *s <= version).map(|(t, _)| *t).collect();
        let specific: Vec<Target> = targets.iter().copied().filter(|t| t.suffix != Suffix::None).collect();
        let pool = if rng.once_in(2) && !specific.is_empty() { &specific } else { &targets };
        let Some(target) = rng.pick(pool).copied() else { continue };
        let mut lines = Vec::new();
        for _ in 0..40 {
            let form = rng.below(op.row().forms.len());
            let all = sample::mnemonics(&op.row().forms[form], 6, &mut rng);
            let Some(words) = rng.pick(&all).cloned() else { continue };
            let Some(variant) = Variant::new(op, form as u16, &words) else { continue };
            if variant.clash().is_some() || variant.available(version, target).is_err() {
                continue;
            }
            if let Some(shapes) = sample::operands(&variant, &mut rng) {
                lines.push(sample::text(&variant.to_string(), &shapes));
            }
            if lines.len() == 6 {
                break;
            }
        }
        if lines.is_empty() {
            continue;
        }
        let (text, _) = sample::module(version, target, &lines);
        std::fs::write(format!("{dir}/gen{made}.ptx"), text).expect("a file in the folder");
        made += 1;
    }
}

fn lines(version: Version, target: Target, count: usize, seed: u64) {
    let mut rng = sample::Rng(seed);
    for op in Opcode::ALL {
        for (form, row) in op.row().forms.iter().enumerate() {
            let all = sample::mnemonics(row, count * 4, &mut rng);
            let mut left = count;
            for words in all {
                let Some(variant) = Variant::new(*op, form as u16, &words) else { continue };
                if left == 0 || variant.clash().is_some() || variant.available(version, target).is_err() {
                    continue;
                }
                if let Some(shapes) = sample::operands(&variant, &mut rng) {
                    println!("{}", sample::text(&variant.to_string(), &shapes));
                    left -= 1;
                }
            }
        }
    }
}
