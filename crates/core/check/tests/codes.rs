//! Every code of the check has a page whose wrong example earns it and whose right example does not; and the files under
//! `fail/` earn exactly what their lines say.

mod common;

use common::{cases, found, places};
use margay_check::Options;
use margay_isa::Target;
use margay_syntax::diag::{Code, Severity};

/// Makes a module of an example: a whole one, what is at module level, or statements of a body.
fn complete(example: &str) -> String {
    const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";
    let starts = |words: &[&str]| words.iter().any(|w| example.trim_start().starts_with(w));
    let module = [".entry", ".func", ".alias"].iter().any(|w| example.contains(w))
        || starts(&[".global", ".const", ".extern", ".visible", ".weak", ".common", ".file", ".pragma", ".tex"])
        || (starts(&[".shared"]) && !example.contains("[s"));
    if example.contains(".version") {
        example.to_owned()
    } else if module && (!example.contains("%r") || [".entry", ".func"].iter().any(|w| example.contains(w))) {
        format!("{HEAD}{example}")
    } else {
        let regs = ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .b128 %q<5>;
                    .reg .f32 %f<8>; .reg .f64 %fd<8>;";
        let head = HEAD.replace("8.0", "8.3");
        format!("{head}.entry k()\n{{\n{regs}\n{example}\nret;\n}}\n")
    }
}

/// The fenced example after a word.
fn example(page: &str, word: &str) -> String {
    let at = page.find(&format!("\n{word}:\n")).unwrap_or_else(|| panic!("no {word} example: {page}"));
    let fence = "```ptx\n";
    let start = at + page[at..].find(fence).unwrap() + fence.len();
    let end = start + page[start..].find("```").unwrap();
    page[start..end].to_owned()
}

/// Codes that the check itself reports; the parser's have tests of their own.
fn ours() -> impl Iterator<Item = Code> {
    let parser = |c: &Code| c.info().number.starts_with("E00") || matches!(c.info().number, "W0010" | "E0101");
    Code::ALL.iter().copied().filter(move |c| !parser(c))
}

#[test]
fn examples_of_pages_mean_what_they_say() {
    let mut wrong = Vec::new();
    for code in ours() {
        let number = code.info().number;
        let page = code.page();
        assert!(!page.is_empty(), "no page for {number}");
        let mut options = Options::default();
        if page.contains("--arch sm_80") {
            options.arch = Target::parse("sm_80");
        }
        let bad = found(&complete(&example(page, "Wrong")), &options);
        let good = found(&complete(&example(page, "Right")), &options);
        let codes = |ds: &[margay_syntax::Diagnostic]| ds.iter().map(|d| d.code.info().number).collect::<Vec<_>>();
        if codes(&bad) != [number] {
            wrong.push(format!("{number}: the wrong example earns {:?}", codes(&bad)));
        }
        if good.iter().any(|d| d.severity == Severity::Error || d.code == code) {
            wrong.push(format!("{number}: the right example earns {:?}", codes(&good)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn failing_files_fail_where_they_say() {
    let mut wrong = Vec::new();
    for case in cases("fail") {
        let found = places(&case.text, &found(&case.text, &case.options));
        if found != case.expected {
            let missing: Vec<_> = case.expected.iter().filter(|e| !found.contains(e)).collect();
            let extra: Vec<_> = found.iter().filter(|f| !case.expected.contains(f)).collect();
            wrong.push(format!("{}: missing {missing:?}, unexpected {extra:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
