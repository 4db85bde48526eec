//! Symbols that a link leaves undefined. `nvJitLinkComplete` fails for them, as the real library's does ("nvJitLink", "Linking").

use std::collections::{BTreeMap, HashSet};

/// Functions that the driver provides: the device's library, and by their beginning the device runtime.
const PROVIDED: [&str; 5] = ["vprintf", "vfprintf", "malloc", "free", "__assertfail"];
const RUNTIME: [&str; 2] = ["cuda", "__cuda"];

/// The names that some text declares `.extern` and uses and that no text defines, each with the first such text. Only the texts that
/// `is_whole` selects count: of the others, which are members of libraries, a link takes what it needs.
pub fn undefined<'a>(texts: &[&'a str], is_whole: impl Fn(usize) -> bool) -> BTreeMap<&'a str, usize> {
    let all: Vec<Names<'a>> = texts.iter().map(|text| names(text)).collect();
    let provided = |name: &str| PROVIDED.contains(&name) || RUNTIME.iter().any(|start| name.starts_with(start));
    let defined = |name: &str| all.iter().any(|names| names.defined.contains(name));
    let mut found = BTreeMap::new();
    for (i, names) in all.iter().enumerate().filter(|(i, _)| is_whole(*i)) {
        for name in names.used.iter().filter(|name| !provided(name) && !defined(name)) {
            found.entry(*name).or_insert(i);
        }
    }
    found
}

/// Names that a text shares with others.
#[derive(Default)]
struct Names<'a> {
    /// Not `.extern`.
    defined: HashSet<&'a str>,
    /// `.extern`, and used in a body or an initial value.
    used: HashSet<&'a str>,
}

/// Collects the names of a text (manual, sections 11.6 and 4.4): statements of the module end at `;` or a body.
fn names(text: &str) -> Names<'_> {
    let (mut names, mut external) = (Names::default(), HashSet::new());
    let mut depth = 0;
    let mut head: Vec<&str> = Vec::new();
    for word in Words(text) {
        match word {
            "{" if depth == 0 && !head.contains(&"=") => {
                declare(&head, &mut names, &mut external);
                head.clear();
                depth = 1;
            }
            "{" => depth += 1,
            "}" => depth -= 1,
            ";" if depth == 0 => {
                declare(&head, &mut names, &mut external);
                head.clear();
            }
            word if depth == 0 => head.push(word),
            word if external.contains(word) => {
                names.used.insert(word);
            }
            _ => {}
        }
    }
    names
}

/// Takes in a declaration of the module.
fn declare<'a>(head: &[&'a str], names: &mut Names<'a>, external: &mut HashSet<&'a str>) {
    let is_function = head.iter().any(|word| [".func", ".entry"].contains(word));
    let Some(name) = (if is_function { function(head) } else { variable(head) }) else { return };
    let value = head.iter().skip_while(|word| **word != "=");
    names.used.extend(value.filter(|word| external.contains(*word)));
    // Shared memory without a definition is that of the launch (section 5.1.7).
    if !head.contains(&".extern") {
        names.defined.insert(name);
    } else if !head.contains(&".shared") {
        external.insert(name);
    }
}

/// The name of a function: the word behind `.func` and the returned parameter.
fn function<'a>(head: &[&'a str]) -> Option<&'a str> {
    let at = head.iter().position(|word| [".func", ".entry"].contains(word))? + 1;
    let at = match head.get(at)? {
        &"(" => at + head[at..].iter().position(|word| *word == ")")? + 1,
        _ => at,
    };
    head.get(at..)?.iter().copied().find(|word| is_name(word))
}

/// The name of a variable: the last name in front of its size or initial value. The second name of `.alias a, b` is a use.
fn variable<'a>(head: &[&'a str]) -> Option<&'a str> {
    let spaces = [".global", ".const", ".shared", ".alias", ".tex"];
    let at = head.iter().position(|word| spaces.contains(word))? + 1;
    let end = head[at..].iter().position(|word| ["[", "=", ","].contains(word)).map_or(head.len(), |i| at + i);
    head[at..end].iter().rev().copied().find(|word| is_name(word))
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || "_$%".contains(c))
}

/// The words of a text: names, directives and numbers as a whole, other characters one by one; no comments and strings.
struct Words<'a>(&'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            let text = self.0.trim_start();
            let skip = |end: Option<usize>, len: usize| end.map_or("", |end| &text[end + len..]);
            self.0 = if text.starts_with("//") {
                skip(text.find('\n'), 1)
            } else if text.starts_with("/*") {
                skip(text.find("*/"), 2)
            } else if let Some(rest) = text.strip_prefix('"') {
                rest.find('"').map_or("", |end| &rest[end + 1..])
            } else {
                let part = |c: char| c.is_ascii_alphanumeric() || "_$%".contains(c);
                let first = text.chars().next()?;
                let len = first.len_utf8();
                let whole = part(first) || first == '.';
                let end = text[len..].find(|c| !part(c)).map_or(text.len(), |end| end + len);
                let (word, rest) = text.split_at(if whole { end } else { len });
                self.0 = rest;
                return Some(word);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: &str = ".extern .func (.param .b32 r) f\n(\n.param .b32 a\n)\n;\n.extern .global .align 4 .b8 t[4];\n\
                         .visible .entry k() { call (r), f, (a); mov.u64 %rd1, t; ret; }";

    #[test]
    fn names_that_no_text_defines_are_found() {
        assert_eq!(undefined(&[CALLS], |_| true), BTreeMap::from([("f", 0), ("t", 0)]));
        let function = ".visible .func (.param .b32 r) f(.param .b32 a) { ret; }";
        assert_eq!(undefined(&[function, CALLS], |_| true), BTreeMap::from([("t", 1)]));
        assert_eq!(undefined(&[CALLS, CALLS], |i| i == 1), BTreeMap::from([("f", 1), ("t", 1)]));
        assert!(undefined(&[CALLS], |_| false).is_empty());
        let variable = ".visible .global .align 4 .b8 t[4] = {1, 2, 3, 4};";
        assert!(undefined(&[CALLS, function, variable], |_| true).is_empty());
    }

    #[test]
    fn what_is_not_used_or_provided_needs_no_definition() {
        let head =
            ".extern .func f();\n.extern .shared .b8 s[];\n.extern .func (.param .b32 r) vprintf(.param .b64 a);\n";
        let body = ".entry k() { // f\n mov.u64 %rd1, s; /* f */ call (r), vprintf, (a); .pragma \"f\"; }";
        assert!(undefined(&[&format!("{head}{body}")], |_| true).is_empty());
    }

    #[test]
    fn tables_of_functions_use_them() {
        let table = ".extern .func f();\n.visible .global .u64 t[1] = {f};\n.visible .func g() { ret; }";
        assert_eq!(undefined(&[table], |_| true), BTreeMap::from([("f", 0)]));
        let one = ".extern .func f();\n.visible .global .u64 t = f;";
        assert_eq!(undefined(&[one], |_| true), BTreeMap::from([("f", 0)]));
        assert!(
            undefined(&[table, ".visible .func g();\n.visible .func f() { ret; }\n.alias f, g;"], |_| true).is_empty()
        );
    }
}
