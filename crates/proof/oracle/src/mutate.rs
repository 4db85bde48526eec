//! Single random faults in the text of a module: a token dropped, duplicated, exchanged or replaced; a modifier, type,
//! space or number changed; a line moved, a directive added, another version or target.

use crate::Random;
use margay_isa::{Target, Version};

/// The kind of a token, as far as faults are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// White space and comments.
    Space,
    /// `.f32`, `.global`, `.L2::cache_hint`
    Dotted,
    /// `%r1`, `add`, `$L1`
    Name,
    /// `0x10`, `1.5`
    Number,
    /// `"text"`
    Text,
    /// Anything else, one character.
    Sign,
}

/// The kind of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A token is dropped.
    Drop,
    /// A token is duplicated.
    Double,
    /// Two neighboring tokens are exchanged.
    Exchange,
    /// A token is replaced by another one of its kind in the module.
    Replace,
    /// A token of any kind is inserted.
    Insert,
    /// A letter is added, dropped or changed.
    Misspell,
    /// A modifier, type or space is changed or added.
    Modifier,
    /// A number is changed.
    Number,
    /// A line is dropped, duplicated or moved.
    Line,
    /// A directive is inserted where it is not allowed.
    Directive,
    /// The space, type, vector, linkage or attribute of a declaration is changed or added.
    Declaration,
    /// An alignment is changed or added.
    Alignment,
    /// The size of an array or a register family is changed or dropped.
    Extent,
    /// A parameter in a header or a call is dropped, duplicated, or changed in type.
    Parameter,
    /// An earlier `.version` or `.target`.
    Downward,
    /// Another `.version`.
    Version,
    /// Another `.target`.
    Target,
}

impl Fault {
    /// All faults; those of single tokens several times, since they have more variants.
    const DRAWN: &'static [Fault] = {
        use Fault::*;
        &[
            Drop, Drop, Double, Exchange, Replace, Replace, Replace, Insert, Misspell, Misspell, Modifier, Modifier,
            Modifier, Modifier, Number, Number, Line, Line, Line, Directive, Version, Target,
        ]
    };
    /// Faults in declarations and directives.
    const DECLARED: &'static [Fault] = {
        use Fault::*;
        &[Declaration, Declaration, Declaration, Alignment, Extent, Extent, Parameter, Parameter, Directive, Downward]
    };
}

/// Keywords of declarations.
#[rustfmt::skip]
const DECLARED: &[&str] = &[
    ".reg", ".param", ".local", ".shared", ".global", ".const", ".tex", ".b8", ".b16", ".b32", ".b64", ".b128", ".u8", ".u16",
    ".u32", ".u64", ".s8", ".s16", ".s32", ".s64", ".f16", ".f16x2", ".bf16", ".f32", ".f64", ".pred", ".texref", ".samplerref",
    ".surfref", ".v2", ".v4", ".v8", ".extern", ".visible", ".weak", ".common", ".attribute(.managed)",
    ".attribute(.unified(1, 2))", ".ptr", ".ptr .global .align 8", ".const[0]", ".const[3]",
];

#[rustfmt::skip]
const MODIFIERS: &[&str] = &[
    ".b8", ".b16", ".b32", ".b64", ".b128", ".u8", ".u16", ".u32", ".u64", ".s8", ".s16", ".s32", ".s64", ".f16", ".f16x2",
    ".bf16", ".bf16x2", ".tf32", ".f32", ".f32x2", ".f64", ".pred", ".global", ".shared", ".local", ".const", ".param",
    ".reg", ".shared::cta", ".shared::cluster", ".rn", ".rz", ".rm", ".rni", ".ftz", ".sat", ".satfinite", ".approx", ".full",
    ".lo", ".hi", ".wide", ".cc", ".eq", ".ne", ".lt", ".geu", ".and", ".or", ".v2", ".v4", ".v8", ".ca", ".cg", ".nc",
    ".volatile", ".relaxed", ".acquire", ".release", ".weak", ".cta", ".gpu", ".sys", ".cluster", ".sync", ".aligned", ".uni",
    ".to", ".up", ".all", ".add", ".min", ".exch", ".cas", ".relu", ".x", ".y", ".x2", ".x4", ".trans", ".row", ".col",
    ".noftz", ".1d", ".2d", ".a2d", ".cube", ".trap", ".clamp", ".async", ".bulk", ".tensor", ".mbarrier", ".L1::no_allocate",
    ".L2::cache_hint", ".align", ".bogus",
];

#[rustfmt::skip]
const NUMBERS: &[&str] = &[
    "0", "1", "-1", "3", "7", "33", "256", "65536", "0xffffffff", "0x1ffffffff", "18446744073709551616", "0f3F800000", "1.0",
    "0d3FF0000000000000", "08", "'a'", "5U", "99999999999",
];

#[rustfmt::skip]
const DIRECTIVES: &[&str] = &[
    ".maxntid 256", ".minnctapersm 2", ".maxnreg 32", ".reqntid 32, 1, 1", ".pragma \"nounroll\";", ".visible", ".extern",
    ".weak", ".noreturn", ".reg .b32 %added;", ".shared .align 4 .b8 added[16];", ".global .u32 added = 5;",
    ".local .b32 added[4];", ".param .b32 added;", ".loc 1 2 3", ".file 1 \"a.cu\"", ".version 7.0", ".target sm_80",
    ".address_size 64", ".entry added() { ret; }", ".func added() { ret; }", ".explicitcluster", ".reqnctapercluster 2",
    ".maxclusterrank 8", ".callprototype ();", ".alias a, b;", "{", "}", ";", "@%p1", ".blocksareclusters", "ret;", "exit;",
    "added:",
];

/// The module with one fault; `None` if it has no place for the fault drawn.
pub fn mutant(text: &str, random: &mut Random) -> Option<(Fault, String)> {
    drawn(text, *random.pick(Fault::DRAWN), random)
}

/// The module with a fault in a declaration, a header or a directive.
pub fn mutant_of_declarations(text: &str, random: &mut Random) -> Option<(Fault, String)> {
    drawn(text, *random.pick(Fault::DECLARED), random)
}

fn drawn(text: &str, fault: Fault, random: &mut Random) -> Option<(Fault, String)> {
    let new = match fault {
        Fault::Declaration | Fault::Alignment | Fault::Extent | Fault::Parameter => declared(text, fault, random),
        Fault::Downward => downward(text, random),
        Fault::Version => header(text, ".version", &random.pick(Version::ALL).to_string()),
        Fault::Target => header(text, ".target", &random.pick(Target::ALL).0.to_string()),
        Fault::Line | Fault::Directive => Some(lines(text, fault, random)),
        _ => tokens_changed(text, fault, random),
    }?;
    (new != text).then_some((fault, new))
}

/// Replaces the word after a directive of the header.
fn header(text: &str, directive: &str, word: &str) -> Option<String> {
    let at = text.find(directive)? + directive.len();
    let start = at + text[at..].find(|c: char| !c.is_whitespace())?;
    let end = start + text[start..].find(|c: char| c.is_whitespace() || c == ',')?;
    Some(format!("{}{word}{}", &text[..start], &text[end..]))
}

/// An earlier version or target than the module's.
fn downward(text: &str, random: &mut Random) -> Option<String> {
    let word = |directive: &str| {
        let rest = text.split_once(directive)?.1;
        rest.split(|c: char| c.is_whitespace() || c == ',').find(|w| !w.is_empty())
    };
    if random.chance(50) {
        let now = Version::parse(word(".version")?)?;
        let earlier: Vec<Version> = Version::ALL.iter().copied().filter(|v| *v < now).collect();
        return if earlier.is_empty() { None } else { header(text, ".version", &random.pick(&earlier).to_string()) };
    }
    let now = Target::parse(word(".target")?)?;
    let earlier: Vec<Target> = Target::ALL.iter().map(|t| t.0).filter(|t| t.sm < now.sm).collect();
    if earlier.is_empty() { None } else { header(text, ".target", &random.pick(&earlier).to_string()) }
}

/// A fault in a declaration: a statement or parameter that starts with a space or a linkage.
fn declared(text: &str, fault: Fault, random: &mut Random) -> Option<String> {
    let mut tokens = tokens(text);
    let spaces = [".reg", ".param", ".local", ".shared", ".global", ".const", ".tex"];
    // After an opcode, such a keyword is a state space and declares nothing.
    let starts = |i: usize, tokens: &[(Kind, String)]| {
        let before = tokens[..i].iter().rev().find(|t| t.0 != Kind::Space);
        let opens = before.is_none_or(|t| matches!(&*t.1, ";" | "{" | "}" | "(" | "," | ":") || t.0 != Kind::Name);
        let apart = i == 0 || matches!(tokens[i - 1].0, Kind::Space | Kind::Sign);
        opens && apart && tokens[i].0 == Kind::Dotted && spaces.contains(&&*tokens[i].1)
    };
    let places: Vec<usize> = (0..tokens.len()).filter(|i| starts(*i, &tokens)).collect();
    if places.is_empty() {
        return None;
    }
    let start = *random.pick(&places);
    let length = tokens[start..].iter().position(|t| matches!(&*t.1, ";" | "," | ")" | "=" | "{"))?;
    let end = start + length;
    let word = |text: &str| (Kind::Dotted, text.to_owned());
    let blank = || (Kind::Space, " ".to_owned());
    let dotted: Vec<usize> = (start..end).filter(|i| tokens[*i].0 == Kind::Dotted).collect();
    match fault {
        Fault::Declaration => {
            let at = *random.pick(&dotted);
            match random.below(4) {
                0 => drop(tokens.remove(at)),
                1 => drop(tokens.splice(at..at, [word(random.pick::<&str>(DECLARED)), blank()])),
                _ => tokens[at] = word(random.pick::<&str>(DECLARED)),
            }
        }
        Fault::Alignment => {
            let value =
                *random.pick(&["0", "1", "2", "3", "4", "8", "16", "32", "128", "256", "65536", "-4", "8.0", "x"]);
            match (start..end).find(|i| tokens[*i].1 == ".align") {
                Some(at) => {
                    let number = (at..end).find(|i| tokens[*i].0 == Kind::Number)?;
                    tokens[number].1 = value.to_owned();
                }
                None => drop(tokens.splice(start + 1..start + 1, [word(&format!(" .align {value}"))])),
            }
        }
        Fault::Extent => {
            let value = *random.pick(&["0", "1", "3", "-1", "65536", "99999999999", "", "x", "2.0", "4][2"]);
            match (start..end).rfind(|i| tokens[*i].0 == Kind::Number) {
                Some(number) => tokens[number].1 = value.to_owned(),
                None => tokens.insert(end, (Kind::Sign, format!("[{value}]"))),
            }
        }
        _ => {
            let inside = tokens[end].1 == ")" || tokens[end].1 == ",";
            if !inside {
                return None;
            }
            let parameter: Vec<(Kind, String)> = tokens[start..end].to_vec();
            match random.below(3) {
                0 => drop(tokens.drain(start..end + usize::from(tokens[end].1 == ","))),
                1 => {
                    let comma = (Kind::Sign, ",".to_owned());
                    let twice = std::iter::once(comma).chain(parameter).map(|(kind, text)| match kind {
                        Kind::Name => (kind, text + "_2"),
                        _ => (kind, text),
                    });
                    drop(tokens.splice(end..end, twice.collect::<Vec<_>>()));
                }
                _ => {
                    let at = *random.pick(&dotted[dotted.len().min(2) - 1..]);
                    tokens[at] = word(
                        random.pick::<&str>(&[".b8", ".u16", ".b32", ".u64", ".f32", ".f64", ".b128", ".v2 .b32"]),
                    );
                }
            }
        }
    }
    Some(tokens.into_iter().map(|t| t.1).collect())
}

fn lines(text: &str, fault: Fault, random: &mut Random) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let at = random.below(lines.len() as u64) as usize;
    if fault == Fault::Directive {
        lines.insert(at, *random.pick(DIRECTIVES));
    } else {
        match random.below(3) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at]),
            _ => {
                let line = lines.remove(at);
                lines.insert(random.below(lines.len() as u64 + 1) as usize, line);
            }
        }
    }
    lines.join("\n") + "\n"
}

fn tokens_changed(text: &str, fault: Fault, random: &mut Random) -> Option<String> {
    let mut tokens = tokens(text);
    let wanted: fn(Kind) -> bool = match fault {
        Fault::Modifier => |k| k == Kind::Dotted,
        Fault::Number => |k| k == Kind::Number,
        Fault::Misspell => |k| matches!(k, Kind::Name | Kind::Dotted),
        _ => |k| k != Kind::Space,
    };
    let places: Vec<usize> = (0..tokens.len()).filter(|i| wanted(tokens[*i].0)).collect();
    if places.is_empty() {
        return None;
    }
    let at = *random.pick(&places);
    let (kind, token) = tokens[at].clone();
    match fault {
        Fault::Drop => drop(tokens.remove(at)),
        Fault::Double => {
            tokens.insert(at, (Kind::Space, " ".to_owned()));
            tokens.insert(at, (kind, token));
        }
        Fault::Exchange => {
            let other = *places.iter().find(|i| **i > at)?;
            tokens.swap(at, other);
        }
        Fault::Replace => {
            let alike: Vec<usize> = places.iter().copied().filter(|i| tokens[*i].0 == kind).collect();
            tokens[at].1 = tokens[*random.pick(&alike)].1.clone();
        }
        Fault::Insert => {
            let added = tokens[*random.pick(&places)].clone();
            tokens.splice(at..at, [added, (Kind::Space, " ".to_owned())]);
        }
        Fault::Misspell => {
            let place = 1.min(token.len() - 1) + random.below(token.len().max(2) as u64 - 1) as usize;
            let letter = *random.pick(&["a", "c", "x", "0", "2", "_"]);
            let end = (place + random.below(2) as usize).min(token.len());
            let spelled = |from: usize| token.get(from..).unwrap_or_default();
            tokens[at].1 = format!("{}{letter}{}", token.get(..place).unwrap_or_default(), spelled(end));
        }
        Fault::Modifier => match random.below(4) {
            0 => tokens[at].1.clear(),
            1 => tokens[at].1 += *random.pick(MODIFIERS),
            _ => tokens[at].1 = (*random.pick(MODIFIERS)).to_owned(),
        },
        Fault::Number => tokens[at].1 = (*random.pick(NUMBERS)).to_owned(),
        _ => return None,
    }
    Some(tokens.into_iter().map(|t| t.1).collect())
}

fn tokens(text: &str) -> Vec<(Kind, String)> {
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '%');
    let mut out: Vec<(Kind, String)> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let until = |stop: &dyn Fn(char) -> bool| rest.find(stop).unwrap_or(rest.len());
        let (kind, end) = match first {
            _ if rest.starts_with("//") => (Kind::Space, until(&|c| c == '\n')),
            _ if rest.starts_with("/*") => (Kind::Space, rest.find("*/").map_or(rest.len(), |n| n + 2)),
            c if c.is_whitespace() => (Kind::Space, until(&|c| !c.is_whitespace())),
            '"' => (Kind::Text, rest[1..].find('"').map_or(rest.len(), |n| n + 2)),
            '.' if rest[1..].starts_with(word) => {
                (Kind::Dotted, rest[1..].find(|c| !word(c) && c != ':').map_or(rest.len(), |n| n + 1))
            }
            c if c.is_ascii_digit() => (Kind::Number, until(&|c| !word(c) && c != '.')),
            c if word(c) => (Kind::Name, until(&|c| !word(c))),
            c => (Kind::Sign, c.len_utf8()),
        };
        let (token, tail) = rest.split_at(end);
        out.push((kind, token.to_owned()));
        rest = tail;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_make_up_the_text() {
        let text = "ld.global.L2::cache_hint.f32 %f1, [a+0x10]; // here\n\"s\" 1.5 /* x */ @!%p";
        let joined: String = tokens(text).into_iter().map(|t| t.1).collect();
        assert_eq!(joined, text);
    }

    #[test]
    fn every_fault_changes_something() {
        let text = ".version 8.0\n.target sm_80\n.entry k() {\n.reg .b32 %r<3>;\nadd.u32 %r1, %r2, 5;\nret;\n}\n";
        let mut random = Random::new(1);
        let made: Vec<_> = (0..400).filter_map(|_| mutant(text, &mut random)).collect();
        assert!(made.len() > 350);
        assert!(made.iter().all(|(_, new)| new != text));
        assert!(Fault::DRAWN.iter().all(|f| made.iter().any(|m| m.0 == *f)));
    }

    #[test]
    fn every_fault_of_declarations_changes_something() {
        let text = ".version 8.0\n.target sm_80\n.global .align 4 .b8 g[8];\n.func f(.param .b32 a, .param .b64 b) { ret; }\n\
                    .entry k(.param .u64 out) {\n.reg .b32 %r<3>;\nld.param.u32 %r1, [out];\nret;\n}\n";
        let mut random = Random::new(1);
        let made: Vec<_> = (0..400).filter_map(|_| mutant_of_declarations(text, &mut random)).collect();
        assert!(made.len() > 300);
        // Instructions are left alone.
        assert!(made.iter().all(|(f, new)| *f == Fault::Directive || new.contains("ld.param.u32 %r1, [out];")));
        assert!(Fault::DECLARED.iter().all(|f| made.iter().any(|m| m.0 == *f)));
    }
}
