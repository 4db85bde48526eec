//! Faults are said once, at their place, with their repair, and hide nothing after them.

use margay_syntax::{LineIndex, Parsed, Severity, format, parse};

const HEAD: &str = ".version 8.7\n.target sm_80\n.address_size 64\n";

/// `LINE:COLUMN CODE` of every finding; lines count after the head.
fn places(text: &str) -> (Vec<String>, Parsed) {
    let text = format!("{HEAD}{text}");
    let parsed = parse(&text);
    let lines = LineIndex::new(&text);
    let places = parsed
        .diagnostics
        .iter()
        .map(|d| {
            let (line, column) = lines.line_column(&text, d.span().start);
            format!("{}:{column} {}", line - 3, d.code.info().number)
        })
        .collect();
    (places, parsed)
}

#[track_caller]
fn finds(text: &str, wanted: &[&str]) -> Parsed {
    let (places, parsed) = places(text);
    assert_eq!(places, wanted, "{text}\n{:#?}", parsed.diagnostics);
    parsed
}

/// The text after all machine-applicable repairs.
fn repaired(parsed: &Parsed) -> String {
    let mut text = parsed.tree.text.to_string();
    let mut edits: Vec<_> = parsed
        .diagnostics
        .iter()
        .flat_map(|d| d.suggestions.iter().filter(|s| s.machine_applicable))
        .flat_map(|s| s.edits.clone())
        .collect();
    edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    for (span, new) in edits {
        text.replace_range(span.range(), &new);
    }
    text
}

#[track_caller]
fn repairs(text: &str, wanted: &[&str]) {
    let parsed = finds(text, wanted);
    let text = repaired(&parsed);
    let again = parse(&text);
    assert!(!again.diagnostics.iter().any(|d| d.severity == Severity::Error), "{text}\n{:#?}", again.diagnostics);
    assert!(format(&again, &Default::default()).is_ok());
}

fn kernel(body: &str) -> String {
    format!(".entry k() {{\n{body}\nret;\n}}\n")
}

#[test]
fn a_missing_semicolon_is_one_fault_at_the_end_of_its_line() {
    repairs(&kernel("mov.u32 %r1, %tid.x\nadd.s32 %r1, %r1, 1;"), &["2:20 E0003"]);
    repairs(&kernel("add.s32 %r1, %r1, 1 // why\n\n"), &["2:20 E0003"]);
    repairs(&kernel("ret\nL: add.s32 %r1, %r1, 1\n@%p bra L"), &["2:4 E0003", "3:23 E0003", "4:10 E0003"]);
    repairs(&kernel(".reg .b32 x\n.reg .b32 y"), &["2:12 E0003", "3:12 E0003"]);
    repairs(".global .u32 x = 3\n.global .u32 y\n", &["1:19 E0003", "2:15 E0003"]);
    repairs(".entry k() { ret }", &["1:17 E0003"]);
    repairs(".entry k() .pragma \"nounroll\" { ret; }", &["1:30 E0003"]);
    let parsed = finds(&kernel("mov.u32 %r1, %tid.x\nadd.s32 %r1, %r1, 1;"), &["2:20 E0003"]);
    assert_eq!(parsed.tree.instrs.len(), 3);
}

#[test]
fn a_missing_comma_is_put_back() {
    repairs(&kernel("mov.u32 %r1 %tid.x;\nmul.lo.s32 %r3, %r1 %r2;"), &["2:12 E0002", "3:20 E0002"]);
    repairs(&kernel("call (%r1) f (%r2);"), &["2:11 E0002", "2:13 E0002"]);
    repairs(".func f(.param .b32 a .param .b32 b);", &["1:22 E0002"]);
    let parsed = finds(&kernel("mov.u32 %r1 %tid.x;"), &["2:12 E0002"]);
    assert_eq!(parsed.tree.instrs[0].operands.len, 2);
}

#[test]
fn brackets_end_with_their_statement() {
    let rest = "\nadd.s32 %r1, %r1, 1;";
    finds(&kernel(&format!("ld.u32 %r1, [%r2;{rest}")), &["2:17 E0005"]);
    finds(&kernel(&format!("mov.b64 {{%r1, %r2, %rd;{rest}")), &["2:23 E0005"]);
    finds(&kernel(&format!("call (%r1), f, (%r2;{rest}")), &["2:20 E0005"]);
    finds(&kernel(&format!("mov.u32 %r1, (1 + 2;{rest}")), &["2:20 E0005"]);
    finds(".global .b8 x[3] = {1, 2;\n.global .u32 y;\n", &["1:25 E0005"]);
    finds(".func f(.param .b32 a\n{\nret;\n}\n.func g() { ret; }\n", &["2:1 E0005"]);
    let parsed = finds(&kernel(&format!("ld.u32 %r1, [%r2;{rest}")), &["2:17 E0005"]);
    assert_eq!(parsed.tree.instrs.len(), 3);
}

#[test]
fn an_unclosed_body_ends_before_the_next_function() {
    let parsed = finds(".entry a() {\nret;\n\n.visible .entry b() {\nret;\n}\n", &["4:1 E0005"]);
    assert_eq!(parsed.tree.funcs.len(), 2);
    assert_eq!(parsed.diagnostics[0].labels[1].span.start as usize, HEAD.len() + 11, "names the opening");
    finds(".entry a() {\n{\nret;\n}\n.func b() {\nret;\n}\n", &["5:1 E0005"]);
    finds(".entry a() {\nret;\n", &["2:5 E0005"]);
    finds(".entry a() { ret; }\n}\n.entry b() { ret; }\n", &["2:1 E0002"]);
}

#[test]
fn unknown_directives_name_the_one_that_was_meant() {
    for (text, meant) in [
        (".entry k()\n.maxthreads 256\n{\nret;\n}", ".maxntid"),
        (".entry k()\n.maxntdi 256\n{\nret;\n}", ".maxntid"),
        (".kernel k()\n{\nret;\n}\n.entry b() { ret; }", ".entry"),
        (".globl .u32 x;", ".visible"),
        (".entry k() {\n.sharde .u32 x;\nret;\n}", ".shared"),
    ] {
        let (places, parsed) = places(text);
        assert_eq!(places.len(), 1, "{places:?}");
        assert!(
            parsed.diagnostics[0].suggestions.iter().any(|s| s.message.contains(meant)),
            "{:#?}",
            parsed.diagnostics
        );
    }
}

#[test]
fn misplaced_words_are_moved() {
    repairs(&kernel(".param .b8 .align 8 y[12];"), &["2:12 E0007"]);
    repairs(".func f(.param .b8 .align 8 y[12]);", &["1:20 E0007"]);
    repairs(".shared .b32 .v4 x;", &["1:14 E0007"]);
    repairs(".entry k(.param .u64 .ptr .align 8 .global a) { ret; }", &["1:36 E0007"]);
    let parsed = finds(&kernel(".param .b8 .align 8 y[12];"), &["2:12 E0007"]);
    assert!(repaired(&parsed).contains(".param .align 8 .b8 y[12];"));
}

#[test]
fn characters_and_literals() {
    repairs(&kernel("add.s32 %r1, %r1, \u{2013}1;"), &["2:19 E0001"]);
    repairs(&kernel("add.s32 %r1,\u{a0}%r1, 1;"), &["2:13 E0001"]);
    repairs(&kernel("mov.u32 %r1, 5ull;"), &["2:14 E0004"]);
    repairs(&kernel("mov.f32 %f1, 1.5f;"), &["2:14 E0004"]);
    repairs(&kernel("ld.u32 %r1, [%r2-4];"), &["2:17 E0002"]);
    repairs(&kernel("ret;;;"), &["2:5 E0002"]);
    finds(&kernel("mov.f32 %f1, 0f3F80;\nmov.f64 %fd1, 0d3FF;"), &["2:14 E0004", "3:15 E0004"]);
    finds(&kernel("caf\u{e9}.s32 %r1;"), &["2:4 E0001"]);
    finds(&kernel("/* for ever"), &["2:1 E0005"]);
    let (_, parsed) = places(&kernel("add.s32 %r1, %r1, \u{2013}1;"));
    assert!(parsed.diagnostics[0].message.contains("U+2013 EN DASH"));
}

#[test]
fn lines_may_end_as_on_windows() {
    let text = format!("{HEAD}{}", kernel("mov.u32 %r1, %tid.x\n\tadd.s32\t%r1, %r1, 1;")).replace('\n', "\r\n");
    let parsed = parse(&text);
    assert_eq!(parsed.diagnostics.len(), 1);
    assert_eq!(LineIndex::new(&text).line_column(&text, parsed.diagnostics[0].span().start), (5, 20));
}

#[test]
fn depth_is_no_danger() {
    for (open, close) in [("{", "}"), ("(", ")"), ("[", "]")] {
        for text in [open.repeat(20_000), open.repeat(20_000) + &close.repeat(20_000)] {
            finds_some(&kernel(&text));
            finds_some(&kernel(&format!("mov.u32 %r1, {text};")));
            finds_some(&format!(".global .u32 x = {text};"));
            finds_some(&format!(".func f({text});"));
        }
    }
    for text in ["- ".repeat(20_000) + "1", "1 ? 1 : ".repeat(20_000) + "1"] {
        finds_some(&format!(".global .u32 x = {text};"));
    }
    // ptxas takes these.
    finds(&kernel(&format!("{}{}", "{".repeat(1663), "}".repeat(1663))), &[]);
    finds(&format!(".global .u32 x = {}1{};", "(".repeat(9978), ")".repeat(9978)), &[]);
    finds(&format!(".global .u32 x = {}1;", "1 + ".repeat(20_000)), &[]);
}

fn finds_some(text: &str) {
    assert!(!places(text).0.is_empty());
}

#[test]
fn reading_stops_behind_hundreds_of_faults() {
    for text in [
        ";\nx ".repeat(1_000_000),
        "\u{1}".repeat(1_000_000),
        "\u{2013}x".repeat(100_000),
        ".foo\n".repeat(300_000),
        "{ } ".repeat(300_000),
    ] {
        let parsed = parse(&format!("{HEAD}{text}"));
        assert!((1..1000).contains(&parsed.diagnostics.len()));
    }
}
