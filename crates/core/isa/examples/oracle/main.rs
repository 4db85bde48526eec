//! Compares the instruction table with ptxas: `MARGAY_PTXAS=/path/to/ptxas cargo run --example oracle [OPCODE...]`.
//!
//! Four questions, each over instructions made from the table, some hundred to a module; ptxas names errors by line, so one
//! run judges most of them.
//! * `available`: is every form accepted under exactly the versions and targets that its row says?
//! * `words`: are mnemonics with one fault refused exactly where the table refuses them?
//! * `operands`: the same for one fault in the operands.
//!
//! * `blanks`: is a blank refused exactly inside what is one word to ptxas?
//!
//! Options: `--mode available|words|blanks|operands`, `--fault TEXT` only faults of operands whose description has TEXT,
//! `--seed N`, `--limit N` mnemonics a form, `--show N` examples a difference, `--listed` how often each listed difference was
//! seen, with examples; a whole run names those that were not seen at all. Differences that are wanted are in
//! `tools/oracle_isa.keep`, one `opcode<TAB>part of the verdict<TAB>part of the instruction<TAB>reason` a line; `*` is any opcode.
//! Instead of a part of the instruction there may appear what makes its mnemonic one of the table's: `+word word`: one or all of
//! these words left out; `~`: the words in another order.

mod ptxas;

use margay_isa::{Opcode, Shape, Space, Target, Type, Variant, Version, Word, resolve, sample};
use ptxas::Ptxas;
use std::{collections::BTreeMap, process::ExitCode};

/// Differences, by opcode, form and what ptxas says, with examples.
#[derive(Default)]
struct Differences {
    found: BTreeMap<(String, u16, String), Vec<String>>,
    asked: usize,
    /// What differs on purpose.
    keep: Vec<Kept>,
}

/// A line of the list of wanted differences.
struct Kept {
    /// Opcode, part of the verdict, part of the instruction.
    line: [String; 3],
    /// How often it differed so.
    times: usize,
    /// What it covered: verdict and mnemonic, with an example of each.
    covered: BTreeMap<(String, String), String>,
}

impl Differences {
    fn note(&mut self, op: Opcode, form: u16, expected: Result<(), String>, ptxas: &[String], at: String) {
        self.asked += 1;
        if expected.is_ok() == ptxas.is_empty() {
            return;
        }
        let said = match expected {
            Ok(()) => format!("REFUSED  {}", ptxas.join(" | ")),
            Err(why) => format!("ACCEPTED although {why}"),
        };
        let wanted =
            |[o, t, i]: &[String; 3]| (o == "*" || o == op.row().name) && said.contains(t) && covers(op, i, &at);
        if let Some(kept) = self.keep.iter_mut().find(|k| wanted(&k.line)) {
            kept.times += 1;
            let mnemonic = at.split(' ').nth(2).unwrap_or_default().to_owned();
            kept.covered.entry((said, mnemonic)).or_insert(at);
            return;
        }
        self.found.entry((op.row().name.to_owned(), form, said)).or_default().push(at);
    }
}

/// Whether the third column of a listed difference covers an instruction, `version target: mnemonic operands`.
fn covers(op: Opcode, part: &str, at: &str) -> bool {
    let words = || -> Vec<Word> {
        let mnemonic = at.split(' ').nth(2).unwrap_or_default();
        mnemonic.split('.').skip(1).filter_map(Word::from_name).collect()
    };
    let fits = |words: &[Word]| resolve(op, words, |_| true).is_ok();
    if let Some(extra) = part.strip_prefix('+') {
        let is_extra = |w: &Word| extra.split(' ').any(|e| e == w.name());
        let all = words();
        let without = |i: usize| all.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, w)| *w).collect::<Vec<_>>();
        let none: Vec<Word> = all.iter().copied().filter(|w| !is_extra(w)).collect();
        return fits(&none) && none.len() < all.len() || (0..all.len()).any(|i| is_extra(&all[i]) && fits(&without(i)));
    }
    if part == "~" {
        return any_order(&mut words(), 0, &fits);
    }
    at.contains(part)
}

/// Whether the words from `from` on fit in any order.
fn any_order(words: &mut [Word], from: usize, fits: &dyn Fn(&[Word]) -> bool) -> bool {
    if from == words.len() {
        return fits(words);
    }
    (from..words.len()).any(|i| {
        words.swap(from, i);
        let found = any_order(words, from + 1, fits);
        words.swap(from, i);
        found
    })
}

fn main() -> ExitCode {
    let Some(path) = std::env::var_os("MARGAY_PTXAS") else {
        eprintln!("oracle: MARGAY_PTXAS is not set; nothing compared");
        return ExitCode::SUCCESS;
    };
    let (mut seed, mut limit, mut show, mut modes, mut names) =
        (1, 24, 3, vec!["available", "words", "blanks", "operands", "repeats"], Vec::new());
    let (mut listed, mut whole) = (false, true);
    let mut only: Option<String> = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|n| n.parse().ok()).expect("a number");
        match arg.as_str() {
            "--seed" => seed = number(),
            "--limit" => limit = number() as usize,
            "--fault" => only = args.next(),
            "--show" => show = number() as usize,
            "--listed" => listed = true,
            "--mode" => {
                whole = false;
                let wanted = args.next().expect("a mode");
                modes.retain(|m| wanted.split(',').any(|w| w == *m));
            }
            _ => names.push(arg),
        }
    }
    whole &= names.is_empty() && only.is_none();
    let ops: Vec<Opcode> =
        Opcode::ALL.iter().copied().filter(|o| names.is_empty() || names.iter().any(|n| n == o.row().name)).collect();
    let mut ptxas = Ptxas::new(path.into());
    let keep = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tools/oracle_isa.keep"))
        .unwrap_or_default();
    let keep = keep.lines().filter(|l| !l.starts_with('#')).filter_map(|l| {
        let mut parts = l.split('\t');
        let line = [parts.next()?.to_owned(), parts.next()?.to_owned(), parts.next()?.to_owned()];
        Some(Kept { line, times: 0, covered: BTreeMap::new() })
    });
    let mut differences = Differences { keep: keep.collect(), ..Differences::default() };
    for mode in modes {
        let mut rng = sample::Rng(seed);
        ptxas.progress.mode = mode;
        match mode {
            "available" => available(&ops, limit, &mut rng, &mut ptxas, &mut differences),
            "repeats" => repeats(&ops, limit, &mut rng, &mut ptxas),
            "words" => words(&ops, limit, &mut rng, &mut ptxas, &mut differences),
            "blanks" => blanks(&ops, limit, &mut rng, &mut ptxas, &mut differences),
            _ => operands(&ops, limit, only.as_deref(), &mut rng, &mut ptxas, &mut differences),
        }
    }
    let mut count = 0;
    for ((op, form, said), at) in &differences.found {
        count += at.len();
        println!("{op} form {form}: {said}  ({} times)", at.len());
        for a in at.iter().take(show) {
            println!("      {a}");
        }
    }
    for Kept { line, times, covered } in &differences.keep {
        // Only a whole run can show that a line is obsolete.
        if *times > 0 && listed || *times == 0 && whole {
            println!("{times} differ as listed: {}", line.join("  "));
            for ((said, _), at) in covered.iter().take(show) {
                println!("      {said}: {at}");
            }
        }
    }
    let kept: usize = differences.keep.iter().map(|k| k.times).sum();
    println!("{} verdicts compared in {} runs: {count} differ, {kept} differ as listed", differences.asked, ptxas.runs);
    ExitCode::from(u8::from(count > 0))
}

/// Valid instructions of these opcodes: variant, text.
fn valid(ops: &[Opcode], limit: usize, rng: &mut sample::Rng) -> Vec<(Variant, Vec<Shape>)> {
    let mut out = Vec::new();
    for op in ops {
        for (index, form) in op.row().forms.iter().enumerate() {
            for words in sample::mnemonics(form, limit, rng) {
                let variant = Variant::new(*op, index as u16, &words).expect("a mnemonic of the form");
                if variant.clash().is_some() {
                    continue;
                }
                if let Some(shapes) = sample::operands(&variant, rng) {
                    out.push((variant, shapes));
                }
            }
        }
    }
    out
}

fn available(ops: &[Opcode], limit: usize, rng: &mut sample::Rng, ptxas: &mut Ptxas, out: &mut Differences) {
    let instructions = valid(ops, limit, rng);
    let newest = |v: Version| {
        Target::ALL
            .iter()
            .filter(move |(t, since)| *since <= v && t.suffix == margay_isa::Suffix::None)
            .max_by_key(|(t, _)| t.sm)
    };
    let mut places: Vec<(Version, Target)> = Target::ALL.iter().map(|(t, _)| (Version::LAST, *t)).collect();
    for v in Version::ALL {
        places.extend(newest(*v).map(|(t, _)| (*v, *t)));
        for arch in [
            Target::arch(90),
            Target::arch(100),
            Target::family(100),
            Target::arch(103),
            Target::arch(120),
            Target::family(110),
        ] {
            if arch.since().is_some_and(|s| s <= *v) {
                places.push((*v, arch));
            }
        }
    }
    let count = places.len();
    for (place, (version, target)) in places.into_iter().enumerate() {
        // Registers that old versions do not know would hide what is asked.
        let fit: Vec<_> = instructions.iter().filter(|(_, s)| known(version, target, s)).collect();
        let list: Vec<String> = fit.iter().map(|(v, s)| sample::text(&v.to_string(), s)).collect();
        ptxas.progress.begin(place, count, list.len());
        for (((variant, shapes), verdict), text) in fit.iter().zip(ptxas.judge(version, target, &list)).zip(&list) {
            let expected = best(variant, shapes, version, target);
            out.note(variant.op, variant.form, expected, &verdict, format!("{version} {target}: {text}"));
        }
    }
}

/// Whether any form takes the mnemonic with these operands under that version and target.
fn best(variant: &Variant, shapes: &[Shape], version: Version, target: Target) -> Result<(), String> {
    verdict(variant.op, &variant.words, shapes, version, target)
}

fn verdict(op: Opcode, words: &[Word], shapes: &[Shape], version: Version, target: Target) -> Result<(), String> {
    let fits = |v: &Variant| v.clash().is_none() && v.accepts(shapes);
    let found = resolve(op, words, |v| fits(v) && v.available(version, target).is_ok())
        .map_err(|m| format!("no form has these words: {m:?}"))?;
    let mut variant = found.variant;
    if !fits(&variant) || variant.available(version, target).is_err() {
        variant = resolve(op, words, fits).map_err(|m| format!("{m:?}"))?.variant;
    }
    if let Some((rule, words)) = variant.clash() {
        return Err(format!("{rule:?} forbids {words:?}"));
    }
    if !variant.accepts(shapes) {
        return Err("the operands do not fit".to_owned());
    }
    variant.available(version, target).map_err(|(word, missing)| format!("{word:?} {missing:?}"))
}

fn known(version: Version, target: Target, shapes: &[Shape]) -> bool {
    shapes.iter().all(|s| match s {
        Shape::Reg(Type::B128, _) => version >= Version::new(8, 3) && target.sm >= 70,
        Shape::Reg(Type::F16 | Type::F16x2, _) => version >= Version::new(4, 2) && target.sm >= 53,
        Shape::Address(b) | Shape::Unified(b) | Shape::Not(b) => known(version, target, std::slice::from_ref(b)),
        Shape::Symbol(margay_isa::Space::Param) => version >= Version::new(1, 4),
        Shape::Handle(Type::SamplerRef) => version >= Version::new(1, 5),
        Shape::Vector(v) | Shape::Group(v) => known(version, target, v),
        Shape::Pair(a, b) => known(version, target, &[(**a).clone(), (**b).clone()]),
        _ => true,
    })
}

const PLACES: [(Version, Target); 4] = [
    (Version::LAST, Target::arch(100)),
    (Version::LAST, Target::arch(120)),
    (Version::LAST, Target::arch(90)),
    (Version::new(6, 3), Target::sm(62)),
];

fn words(ops: &[Opcode], limit: usize, rng: &mut sample::Rng, ptxas: &mut Ptxas, out: &mut Differences) {
    for (place, (version, target)) in PLACES.into_iter().enumerate() {
        let mut asked = Vec::new();
        for (variant, shapes) in valid(ops, limit / 2, rng) {
            if best(&variant, &shapes, version, target).is_err() || !known(version, target, &shapes) {
                continue;
            }
            for words in sample::mutants(variant.op, &variant.words, rng) {
                let expected = verdict(variant.op, &words, &shapes, version, target);
                asked.push((
                    variant.op,
                    variant.form,
                    expected,
                    sample::text(&sample::mnemonic(variant.op, &words), &shapes),
                ));
            }
        }
        settle(place, asked, ptxas, out);
    }
}

/// Where a blank may appear in a mnemonic: after what is one word to ptxas.
fn blanks(ops: &[Opcode], limit: usize, rng: &mut sample::Rng, ptxas: &mut Ptxas, out: &mut Differences) {
    for (place, (version, target)) in PLACES.into_iter().enumerate() {
        let mut asked = Vec::new();
        for (variant, shapes) in valid(ops, limit / 4, rng) {
            if best(&variant, &shapes, version, target).is_err() || !known(version, target, &shapes) {
                continue;
            }
            let mnemonic = variant.to_string();
            for (k, (at, _)) in mnemonic.match_indices('.').enumerate() {
                let expected = match k < variant.glued() {
                    true => Err(format!("word {k} belongs to the opcode")),
                    false => Ok(()),
                };
                let parted = format!("{} {}", &mnemonic[..at], &mnemonic[at..]);
                asked.push((variant.op, variant.form, expected, sample::text(&parted, &shapes)));
            }
        }
        settle(place, asked, ptxas, out);
    }
}

fn operands(
    ops: &[Opcode],
    limit: usize,
    only: Option<&str>,
    rng: &mut sample::Rng,
    ptxas: &mut Ptxas,
    out: &mut Differences,
) {
    for (place, (version, target)) in PLACES.into_iter().enumerate() {
        let mut asked = Vec::new();
        for (variant, shapes) in valid(ops, limit / 2, rng) {
            if best(&variant, &shapes, version, target).is_err() || !known(version, target, &shapes) {
                continue;
            }
            for (what, mutant) in faulty(&shapes, rng) {
                if !known(version, target, &mutant) || only.is_some_and(|o| !what.contains(o)) {
                    continue;
                }
                let expected = verdict(variant.op, &variant.words, &mutant, version, target)
                    .map_err(|why| format!("{what}: {why}"));
                asked.push((variant.op, variant.form, expected, sample::text(&variant.to_string(), &mutant)));
            }
        }
        settle(place, asked, ptxas, out);
    }
}

/// Which modifiers ptxas lets stand twice.
fn repeats(ops: &[Opcode], limit: usize, rng: &mut sample::Rng, ptxas: &mut Ptxas) {
    let mut verdicts: BTreeMap<&str, [Vec<String>; 2]> = BTreeMap::new();
    for (place, (version, target)) in PLACES.into_iter().enumerate() {
        let mut asked = Vec::new();
        for (variant, shapes) in valid(ops, limit / 2, rng) {
            if best(&variant, &shapes, version, target).is_ok() && known(version, target, &shapes) {
                for (i, w) in variant.words.iter().enumerate().filter(|(_, w)| matches!(w, Word::Mod(_))) {
                    let mut words = variant.words.to_vec();
                    words.insert(i, *w);
                    asked.push((w.name(), sample::text(&sample::mnemonic(variant.op, &words), &shapes)));
                }
            }
        }
        ptxas.progress.begin(place, PLACES.len(), asked.len());
        for chunk in asked.chunks(2000) {
            let list: Vec<String> = chunk.iter().map(|a| a.1.clone()).collect();
            for ((name, text), verdict) in chunk.iter().zip(ptxas.judge(version, target, &list)) {
                verdicts.entry(name).or_default()[usize::from(verdict.is_empty())]
                    .push(text.clone() + "  " + &verdict.join("|"));
            }
        }
    }
    for (name, [no, yes]) in verdicts {
        println!(
            "{name:30} {:4} yes {:4} no   {}   {}",
            yes.len(),
            no.len(),
            yes.first().map_or("", |s| s),
            no.first().map_or("", |s| s)
        );
    }
}

/// The operands with one fault.
fn faulty(shapes: &[Shape], rng: &mut sample::Rng) -> Vec<(String, Vec<Shape>)> {
    let registers: Vec<Type> = Type::ALL.iter().copied().filter(|t| t.is_register()).collect();
    let mut out = Vec::new();
    for i in 0..shapes.len() {
        let mut put = |what: String, shape: Shape| {
            let mut all = shapes.to_vec();
            all[i] = shape;
            out.push((what, all));
        };
        for _ in 0..3 {
            let t = *rng.pick(&registers).unwrap_or(&Type::B32);
            put(format!("operand {i} a {t} register"), Shape::Reg(t, 3));
        }
        put(format!("operand {i} an integer"), Shape::Int(5));
        put(format!("operand {i} a large integer"), Shape::Int(1000));
        if i > 0 || rng.once_in(20) {
            put(format!("operand {i} a float"), Shape::Float { single: rng.once_in(2) });
        }
        if i == 0 && rng.once_in(20) {
            put("operand 0 a sink".to_owned(), Shape::Sink);
        }
        put(format!("operand {i} an address"), Shape::Address(Box::new(Shape::Reg(Type::B64, 6))));
        put(
            format!("operand {i} a special register"),
            Shape::Special(if rng.once_in(2) { Type::U32 } else { Type::U64 }),
        );
        // Other shapes in braces or before a bar are no PTX at all, and ptxas stops at each of those.
        if !matches!(
            shapes[i],
            Shape::Vector(_) | Shape::Group(_) | Shape::Pair(..) | Shape::Not(_) | Shape::Address(_)
        ) {
            put(format!("operand {i} alone in braces"), Shape::Vector(vec![shapes[i].clone()]));
        }
        if let Shape::Address(_) = shapes[i] {
            for space in [Space::Global, Space::Const, Space::Shared, Space::Local, Space::Param] {
                put(format!("operand {i} a name in .{}", space.name()), Shape::Address(Box::new(Shape::Symbol(space))));
            }
        }
        if let Shape::Reg(..) = shapes[i] {
            put(format!("operand {i} negated"), Shape::Not(Box::new(shapes[i].clone())));
            put(format!("operand {i} a pair in braces"), Shape::Vector(vec![shapes[i].clone(), shapes[i].clone()]));
            if i == 0 && rng.once_in(20) {
                let pair = Shape::Pair(Box::new(shapes[i].clone()), Box::new(Shape::Reg(Type::Pred, 4)));
                put("operand 0 with a partner".to_owned(), pair);
            }
        }
        let mut fewer = shapes.to_vec();
        fewer.remove(i);
        out.push((format!("without operand {i}"), fewer));
    }
    let mut more = shapes.to_vec();
    more.push(Shape::Reg(Type::B32, 5));
    out.push(("one operand more".to_owned(), more));
    out
}

type Asked = (Opcode, u16, Result<(), String>, String);

fn settle(place: usize, mut asked: Vec<Asked>, ptxas: &mut Ptxas, out: &mut Differences) {
    let (version, target) = PLACES[place];
    let mut seen = std::collections::HashSet::new();
    asked.retain(|a| seen.insert(a.3.clone()));
    ptxas.progress.begin(place, PLACES.len(), asked.len());
    for chunk in asked.chunks(100) {
        let list: Vec<String> = chunk.iter().map(|a| a.3.clone()).collect();
        for ((op, form, expected, text), verdict) in chunk.iter().zip(ptxas.judge(version, target, &list)) {
            out.note(*op, *form, expected.clone(), &verdict, format!("{version} {target}: {text}"));
        }
    }
}
