//! Symbols that a link leaves undefined. `nvJitLinkComplete` fails for them, as the real library's does ("nvJitLink", "Linking").

use margay_syntax::{
    Tree, parse,
    tree::{Directive, Item, Kind, List},
};
use std::collections::{BTreeMap, HashSet};

/// Functions that the driver provides: those of the device library and, in `RUNTIME`, the prefixes of those of the device runtime.
const PROVIDED: [&str; 5] = ["vprintf", "vfprintf", "malloc", "free", "__assertfail"];
const RUNTIME: [&str; 2] = ["cuda", "__cuda"];

/// The names that some text declares `.extern` and uses and that no text defines, each with the first such text. Only uses in the texts that
/// `is_whole` selects count: the others are members of libraries, which are linked only if they are needed.
pub fn undefined(texts: &[&str], is_whole: impl Fn(usize) -> bool) -> BTreeMap<String, usize> {
    let all: Vec<Names> = texts.iter().map(|text| Names::new(&parse(text).tree)).collect();
    let provided = |name: &str| PROVIDED.contains(&name) || RUNTIME.iter().any(|start| name.starts_with(start));
    let defined = |name: &str| all.iter().any(|names| names.defined.contains(name));
    let mut found = BTreeMap::new();
    for (i, names) in all.iter().enumerate().filter(|(i, _)| is_whole(*i)) {
        for name in names.used.iter().filter(|name| !provided(name) && !defined(name)) {
            found.entry(name.clone()).or_insert(i);
        }
    }
    found
}

/// Names that a text shares with others.
#[derive(Default)]
struct Names {
    /// Not `.extern`.
    defined: HashSet<String>,
    /// `.extern`, and used in a body or an initial value.
    used: HashSet<String>,
}

impl Names {
    fn new(tree: &Tree) -> Names {
        let mut defined = HashSet::new();
        let mut external = HashSet::new();
        let is_extern =
            |linkage: List<Directive>| tree.directives[linkage.range()].iter().any(|d| tree.str(d.name) == ".extern");
        for item in &tree.items {
            match *item {
                Item::Func(f) => {
                    let func = &tree.funcs[f as usize];
                    let names = if is_extern(func.linkage) { &mut external } else { &mut defined };
                    names.insert(tree.str(func.name));
                }
                Item::Var(v) => {
                    let var = &tree.vars[v as usize];
                    let names = tree.declarators[var.declarators.range()].iter().map(|d| tree.str(d.name));
                    match is_extern(var.linkage) {
                        false => defined.extend(names),
                        // Shared memory without a definition is that of the launch (section 5.1.7).
                        true if tree.str(var.space).starts_with(".shared") => {}
                        true => external.extend(names),
                    }
                }
                Item::Directive(_) => {}
            }
        }
        // The operands of the whole text: names that are declared are not among them.
        let names = tree.operands.iter().filter(|o| matches!(o.kind, Kind::Name)).map(|o| tree.str(o.span));
        let used = names.filter(|name| external.contains(name)).map(str::to_owned).collect();
        Names { defined: defined.into_iter().map(str::to_owned).collect(), used }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: &str = ".extern .func (.param .b32 r) f\n(\n.param .b32 a\n)\n;\n.extern .global .align 4 .b8 t[4];\n\
                         .visible .entry k() { call (r), f, (a); mov.u64 %rd1, t; ret; }";

    fn names<const N: usize>(all: [(&str, usize); N]) -> BTreeMap<String, usize> {
        all.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
    }

    #[test]
    fn names_that_no_text_defines_are_found() {
        assert_eq!(undefined(&[CALLS], |_| true), names([("f", 0), ("t", 0)]));
        let function = ".visible .func (.param .b32 r) f(.param .b32 a) { ret; }";
        assert_eq!(undefined(&[function, CALLS], |_| true), names([("t", 1)]));
        assert_eq!(undefined(&[CALLS, CALLS], |i| i == 1), names([("f", 1), ("t", 1)]));
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
        assert_eq!(undefined(&[table], |_| true), names([("f", 0)]));
        let one = ".extern .func f();\n.visible .global .u64 t = f;";
        assert_eq!(undefined(&[one], |_| true), names([("f", 0)]));
        assert!(
            undefined(&[table, ".visible .func g();\n.visible .func f() { ret; }\n.alias f, g;"], |_| true).is_empty()
        );
    }
}
