//! Findings do not depend on whether all bodies are in memory at once: [`examine`] has those of [`check`].

mod common;

use margay_check::{Options, check, examine};
use margay_syntax::parse;
use std::{path::Path, sync::Arc};

fn same(name: &str, text: &str, options: &Options) {
    let (checked, whole) = check(parse(text), options);
    let apart = examine(Arc::new(text.to_owned()), options);
    assert_eq!(format!("{whole:#?}"), format!("{:#?}", apart.diagnostics), "{name}");
    let files = checked.map(|c| c.module.files.clone()).unwrap_or_default();
    assert_eq!(files, apart.files, "{name}");
}

fn modules(directory: &Path, found: &mut Vec<(String, String)>) {
    let mut entries: Vec<_> = std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            modules(&path, found);
        } else if path.extension().is_some_and(|e| e == "ptx") {
            found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// All modules of the tests, and each with its last line left out, a line doubled, and a brace moved to the start of its line.
#[test]
fn findings_are_those_of_the_whole_module() {
    let mut all = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    modules(&root.join("tests"), &mut all);
    modules(&root.join("../../../tests"), &mut all);
    assert!(all.len() > 500, "{} modules", all.len());
    for (seed, (name, text)) in all.iter().enumerate() {
        let lines: Vec<&str> = text.lines().collect();
        let options = Options::default();
        same(name, text, &options);
        same(name, &lines[..lines.len().saturating_sub(1)].join("\n"), &options);
        let doubled = seed * 7919 % lines.len().max(1);
        let mut twice = lines.clone();
        twice.insert(doubled, lines.get(doubled).unwrap_or(&""));
        same(name, &twice.join("\n"), &options);
        same(name, &text.replace('}', "\n}"), &options);
        same(name, &text.replace("\n}", " }"), &options);
    }
}

/// The cases of messages with their own options.
#[test]
fn messages_are_those_of_the_whole_module() {
    for directory in ["fail", "old"] {
        for case in common::cases(directory) {
            same(&case.name, &case.text, &case.options);
        }
    }
}

/// Where inlined code was called is mostly said in the same body; else all bodies are parsed at once.
#[test]
fn debugging_information_needs_no_other_body() {
    let inlined = ".loc 1 7 3, function_name $L_name, inlined_at 1 3 4";
    let bodies = |first: &str, second: &str, label: &str| {
        let text = format!(
            ".version 8.0\n.target sm_80, debug\n.address_size 64\n.entry a() {{\n{first}\nret;\n}}\n\
             .entry b() {{\n{second}\n{inlined}\nret;\n}}\n.file 1 \"a.cu\"\n.section .debug_str\n{{\n{label}:\n.b8 97,0\n}}\n"
        );
        same("inlined code", &text, &Options::default());
        examine(Arc::new(text), &Options::default()).tree.instrs.len()
    };
    assert_eq!(bodies("", ".loc 1 3 4", "$L_name"), 0);
    assert_eq!(bodies(".loc 1 3 4", "", "$L_name"), 2);
    assert_eq!(bodies("", "", "$L_name"), 2);
    assert_eq!(bodies("", ".loc 1 3 4", "$L_other"), 2);
}
