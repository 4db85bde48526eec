//! Modules in the style of the toolkits from CUDA 1.0 to 5.5, which `ptxas -arch=compute_80` accepts, are accepted before and after
//! formatting.

use margay_check::{Options, check};
use margay_syntax::{Diagnostic, Severity, format, parse};

fn errors(text: &str) -> Vec<Diagnostic> {
    let (checked, mut found) = check(parse(text), &Options::default());
    found.retain(|d| d.severity == Severity::Error);
    assert_eq!(checked.is_some(), found.is_empty());
    found
}

#[test]
fn modules_of_old_toolkits() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/old");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(errors(&text).is_empty(), "{}: {:?}", path.display(), errors(&text).first());
        let formatted = format(&parse(&text), &Default::default()).unwrap();
        assert!(errors(&formatted).is_empty(), "formatted {}", path.display());
        count += 1;
    }
    assert_eq!(count, 5);
}

/// Since 1.4 the precision is said; before, there was only one.
#[test]
fn forms_that_are_gone() {
    let module = |version: &str| {
        format!(
            ".version {version}\n.target sm_10\n.entry k {{ .reg .f32 a; mov.f32 a, 0f00000000; sin.f32 a, a; exit; }}"
        )
    };
    assert!(errors(&module("1.3")).is_empty());
    let found = errors(&module("1.4"));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "`sin.f32` was removed in PTX ISA 1.4");
    assert_eq!(found[0].suggestions[0].message, "write `sin.approx.f32`");
}
