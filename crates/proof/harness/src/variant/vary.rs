//! Random variations of a module that most of the time still pass the check: other registers, numbers and modifiers, instructions left
//! out, repeated, exchanged, predicated or followed by a branch, other offsets. What [`crate::mutate`] makes rarely passes it.

use crate::random::Random;
use std::collections::BTreeMap;

/// Numbers at the limits of types, sizes, alignments, lanes and barriers, and special values of both floating-point types.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "12",
    "15",
    "16",
    "17",
    "20",
    "24",
    "28",
    "31",
    "32",
    "33",
    "48",
    "63",
    "64",
    "65",
    "96",
    "127",
    "128",
    "255",
    "256",
    "1000",
    "1024",
    "4096",
    "4097",
    "32768",
    "65535",
    "65536",
    "1048576",
    "0x7fffffff",
    "0x80000000",
    "0xffffffff",
    "-1",
    "-2",
    "-4",
    "-8",
    "-16",
    "0x7fffffffffffffff",
    "0x8000000000000000",
    "0xffffffff00000000",
    "4294967296",
    "0x5555555555555555",
    "0f00000000",
    "0f7FC00000",
    "0f80000000",
    "0f7F800000",
    "0f3F800000",
    "0d7FF8000000000000",
    "0d0000000000000000",
];

/// Words of a mnemonic that are often exchangeable; the empty one leaves a modifier out. The check decides whether the result exists.
const EXCHANGEABLE: &[&[&str]] = &[
    &["lo", "hi", "wide"],
    &["eq", "ne", "lt", "le", "gt", "ge", "ltu", "geu", "num", "nan", "lo", "ls", "hi", "hs"],
    &["rn", "rz", "rm", "rp"],
    &["rni", "rzi", "rmi", "rpi"],
    &["u8", "s8", "b8"],
    &["u16", "s16", "b16", "f16"],
    &["u32", "s32", "b32", "f32"],
    &["u64", "s64", "b64", "f64"],
    &["global", "shared", "local", "const"],
    &["add", "sub", "min", "max", "and", "or", "xor", "mul", "exch", "inc", "dec", "cas"],
    &["div", "rem"],
    &["shl", "shr"],
    &["popc", "clz", "brev"],
    &["exit", "ret", "trap"],
    &["sync", "arrive", "red"],
    &["up", "down", "bfly", "idx"],
    &["all", "any", "uni", "ballot"],
    &["l", "r"],
    &["clamp", "wrap"],
    &["v2", "v4"],
    &["sat", ""],
    &["ftz", ""],
    &["relaxed", "acquire", "release", "acq_rel", "volatile", "weak"],
    &["cta", "cluster", "gpu", "sys"],
    &["shared::cta", "shared::cluster"],
    &["1d", "2d", "3d"],
    &["arrive", "wait", "test_wait", "try_wait", "init", "inval", "expect_tx", "complete_tx", "arrive_drop"],
    &["x1", "x2", "x4"],
    &["trans", ""],
    &["row", "col"],
    &["approx", "full", "rn"],
    &["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"],
];

/// Varies one to three instructions of a module.
pub fn vary(random: &mut Random, text: &str) -> String {
    let mut module = Module::of(text);
    if module.instructions.is_empty() {
        return text.to_owned();
    }
    for _ in 0..1 + random.below(3) {
        module.once(random);
    }
    module.lines.join("\n")
}

struct Module {
    lines: Vec<String>,
    /// Lines with an instruction.
    instructions: Vec<usize>,
    /// Registers by the letters of their names, which usually stand for a type (`%rd`).
    registers: BTreeMap<String, Vec<String>>,
    labels: Vec<String>,
}

impl Module {
    fn of(text: &str) -> Module {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let instructions: Vec<usize> = (0..lines.len()).filter(|i| is_instruction(&lines[*i])).collect();
        let mut registers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in instructions.iter().map(|i| &lines[*i]) {
            for name in words(line).into_iter().map(|(from, to)| &line[from..to]) {
                let Some(letters) = letters(name) else { continue };
                let known = registers.entry(letters.to_owned()).or_default();
                if !known.iter().any(|n| n == name) {
                    known.push(name.to_owned());
                }
            }
        }
        let labels = lines.iter().filter_map(|l| l.trim().strip_suffix(':').map(str::to_owned)).collect();
        Module { lines, instructions, registers, labels }
    }

    fn predicate(&self, random: &mut Random) -> Option<&str> {
        let names = self.registers.get("%p")?;
        Some(&names[random.below(names.len())])
    }

    /// Varies one instruction; does nothing if what is drawn does not suit it.
    fn once(&mut self, random: &mut Random) {
        let at = self.instructions[random.below(self.instructions.len())];
        let other = self.instructions[random.below(self.instructions.len())];
        let line = self.lines[at].clone();
        if !is_instruction(&line) {
            return;
        }
        // An argument or result that is never stored is undefined, and the sanitizer does not see it.
        let passes = |line: &str| line.contains("st.param");
        let kind = random.below(14);
        if matches!(kind, 6 | 10 | 11) && passes(&line) || kind == 10 && passes(&self.lines[other]) {
            return;
        }
        let changed = match kind {
            0..=2 => self.other_register(random, &line),
            3..=5 => other_number(random, &line),
            6 => Some(String::new()),
            7 => Some(format!("{line} {}", self.lines[other])),
            8 | 9 => other_modifier(random, &line),
            10 => {
                self.lines.swap(at, other);
                None
            }
            11 => self.other_guard(random, &line),
            12 => self.with_a_branch(random, &line),
            _ => other_offset(random, &line),
        };
        if let Some(changed) = changed {
            self.lines[at] = changed;
        }
    }

    fn other_register(&self, random: &mut Random, line: &str) -> Option<String> {
        let named: Vec<(usize, usize)> =
            words(line).into_iter().filter(|(from, to)| letters(&line[*from..*to]).is_some()).collect();
        let (from, to) = *named.get(random.below(named.len()))?;
        let names = self.registers.get(letters(&line[from..to])?)?;
        Some(replaced(line, (from, to), &names[random.below(names.len())]))
    }

    /// Guards the instruction, or negates the guard that it has.
    fn other_guard(&self, random: &mut Random, line: &str) -> Option<String> {
        if let Some(at) = line.find('@') {
            let negated = line[at + 1..].starts_with('!');
            return Some(replaced(line, (at, at + 1 + usize::from(negated)), if negated { "@" } else { "@!" }));
        }
        let sense = if random.chance(50) { "!" } else { "" };
        Some(format!("@{sense}{} {}", self.predicate(random)?, line.trim()))
    }

    fn with_a_branch(&self, random: &mut Random, line: &str) -> Option<String> {
        let label = self.labels.get(random.below(self.labels.len()))?;
        let guard = self.predicate(random).map(|p| format!("@{p} ")).unwrap_or_default();
        Some(format!("{line} {guard}bra {label};"))
    }
}

fn other_number(random: &mut Random, line: &str) -> Option<String> {
    let is_number = |&(from, to): &(usize, usize)| {
        line[from..to].starts_with(|c: char| c.is_ascii_digit()) && !line[..from].ends_with(['.', ':'])
    };
    let numbers: Vec<(usize, usize)> = words(line).into_iter().filter(is_number).collect();
    let range = *numbers.get(random.below(numbers.len()))?;
    Some(replaced(line, range, random.pick(NUMBERS)))
}

fn other_modifier(random: &mut Random, line: &str) -> Option<String> {
    let start = line.len() - line.trim_start().len();
    let guard = if line[start..].starts_with('@') { line[start..].find(' ')? + 1 } else { 0 };
    let end = start + guard + line[start + guard..].find([' ', ';'])?;
    let choices: Vec<((usize, usize), &[&str])> = words(&line[..end])
        .into_iter()
        .filter_map(|(from, to)| Some(((from, to), *EXCHANGEABLE.iter().find(|e| e.contains(&&line[from..to]))?)))
        .collect();
    let ((from, to), words) = *choices.get(random.below(choices.len()))?;
    Some(match random.pick(words) {
        "" => replaced(line, (from.saturating_sub(1), to), ""),
        word => replaced(line, (from, to), word),
    })
}

fn other_offset(random: &mut Random, line: &str) -> Option<String> {
    let at = line.find(']').filter(|at| !line[..*at].contains('+'))?;
    Some(replaced(line, (at, at), &format!("+{}", random.pick(NUMBERS))))
}

fn replaced(line: &str, (from, to): (usize, usize), by: &str) -> String {
    format!("{}{by}{}", &line[..from], &line[to..])
}

fn is_instruction(line: &str) -> bool {
    let text = line.trim();
    let text = if text.starts_with('@') { text.split_once(' ').map_or("", |(_, rest)| rest).trim() } else { text };
    text.ends_with(';') && text.starts_with(|c: char| c.is_ascii_lowercase()) && !text.contains('"')
}

/// `%rd` of `%rd12`; `None` for what is not such a register.
fn letters(name: &str) -> Option<&str> {
    let digits = name.strip_prefix('%')?.find(|c: char| c.is_ascii_digit())? + 1;
    name[digits..].chars().all(|c| c.is_ascii_digit()).then(|| &name[..digits])
}

/// Ranges of names, words of mnemonics and numbers; `shared::cta` is one.
fn words(line: &str) -> Vec<(usize, usize)> {
    let (mut words, mut start) = (Vec::new(), None);
    for (i, c) in line.char_indices() {
        let inside = c.is_ascii_alphanumeric()
            || "_%$".contains(c)
            || line[i..].starts_with("::")
            || line[..i].ends_with(':') && c == ':';
        match (inside, start) {
            (true, None) => start = Some(i),
            (false, Some(from)) => {
                words.push((from, i));
                start = None;
            }
            _ => {}
        }
    }
    words.extend(start.map(|from| (from, line.len())));
    words
}
