//! Nothing panics; the printer keeps every token and comment, changes nothing twice, and its result reads.

use margay_syntax::{FormatOptions, Parsed, Severity, eval, format, parse};
use proptest::prelude::*;

const SAMPLE: &str = include_str!("sample.ptx");

/// Text without blanks, and without comments; the comments without blanks.
fn essence(parsed: &Parsed) -> (String, Vec<String>) {
    let squeeze = |s: &str| s.chars().filter(|c| !c.is_whitespace() && *c != '\u{1a}').collect::<String>();
    let text = &parsed.tree.text;
    let (mut out, mut at) = (String::new(), 0);
    for comment in &parsed.tree.comments {
        out += &text[at..comment.start as usize];
        at = comment.end as usize;
    }
    out += &text[at..];
    (squeeze(&out), parsed.tree.comments.iter().map(|c| squeeze(parsed.tree.str(*c))).collect())
}

/// Reads a text, looks at everything, prints it.
fn exercise(text: &str) {
    let parsed = parse(text);
    let tree = &parsed.tree;
    for d in &parsed.diagnostics {
        assert!(!d.labels.is_empty());
        for span in
            d.labels.iter().map(|l| l.span).chain(d.suggestions.iter().flat_map(|s| s.edits.iter().map(|e| e.0)))
        {
            assert!(text.get(span.range()).is_some(), "{d:?}");
        }
    }
    assert!(parsed.diagnostics.windows(2).all(|w| w[0].span() <= w[1].span()));
    for n in 0..tree.operands.len() {
        assert!(text.get(tree.operands[n].span.range()).is_some());
        let _ = eval(tree, &tree.operands[n]);
    }
    for width in [30, 100] {
        let options = FormatOptions { width, ..Default::default() };
        match format(&parsed, &options) {
            Err(_) => assert!(parsed.diagnostics.iter().any(|d| d.severity == Severity::Error)),
            Ok(once) => {
                let again = parse(&once);
                assert!(
                    !again.diagnostics.iter().any(|d| d.severity == Severity::Error),
                    "{once}\n{:#?}",
                    again.diagnostics
                );
                assert_eq!(essence(&parsed), essence(&again), "{text}\n----\n{once}");
                assert_eq!(
                    (
                        tree.stmts.len(),
                        tree.instrs.len(),
                        tree.operands.len(),
                        tree.exprs.len(),
                        tree.vars.len(),
                        tree.funcs.len()
                    ),
                    (
                        again.tree.stmts.len(),
                        again.tree.instrs.len(),
                        again.tree.operands.len(),
                        again.tree.exprs.len(),
                        again.tree.vars.len(),
                        again.tree.funcs.len()
                    )
                );
                assert_eq!(format(&again, &options).as_deref(), Ok(&*once), "not stable");
            }
        }
    }
}

/// Pieces of text that tokens and their surroundings are made of.
fn pieces() -> Vec<&'static str> {
    let mut pieces: Vec<&str> =
        SAMPLE.split_inclusive([' ', '\n', ',', ';', '[', ']', '(', ')', '{', '}', '.', '+', ':']).collect();
    pieces.sort_unstable();
    pieces.dedup();
    pieces.extend([
        "\u{2013}",
        "\u{0}",
        "\"",
        "/*",
        "//",
        "\r\n",
        "0f3F80",
        "0x",
        "1e",
        "@@DWARF",
        "# 1 \"x\"\n",
        "?",
        "(.s64)",
        "\u{e9}",
    ]);
    pieces
}

fn cut(text: &str, at: usize) -> usize {
    (0..=at % (text.len() + 1)).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

#[test]
fn the_sample() {
    exercise(SAMPLE);
}

#[test]
fn every_prefix_and_every_missing_line() {
    for (at, _) in SAMPLE.char_indices().filter(|(at, _)| at % 7 == 0) {
        exercise(&SAMPLE[..at]);
    }
    let lines: Vec<&str> = SAMPLE.lines().collect();
    for n in 0..lines.len() {
        exercise(&[&lines[..n], &lines[n + 1..]].concat().join("\n"));
    }
}

#[test]
fn a_comment_in_every_gap() {
    let gaps = SAMPLE.match_indices([' ', '\n', ',', ';', '(', ')', '{', '}', '[', ']', ':', '+']).map(|(i, _)| i);
    for at in gaps {
        for with in [" /* c */ ", " // c\n"] {
            for at in [at, at + 1] {
                let mut text = SAMPLE.to_string();
                text.insert_str(at, with);
                exercise(&text);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        exercise(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn token_soup(choice in proptest::collection::vec(any::<prop::sample::Index>(), 0..120), head in any::<bool>()) {
        let pieces = pieces();
        let soup: String = choice.iter().map(|i| *i.get(&pieces)).collect();
        exercise(&if head { format!(".version 8.0\n.target sm_80\n.entry k() {{\n{soup}\nret;\n}}\n") } else { soup });
    }

    #[test]
    fn mutated_sample(edits in proptest::collection::vec((any::<usize>(), 0usize..12, any::<prop::sample::Index>()), 1..4)) {
        let pieces = pieces();
        let mut text = SAMPLE.to_string();
        for (at, remove, with) in edits {
            let start = cut(&text, at);
            let end = cut(&text, (start + remove).min(text.len())).max(start);
            let with: &str = with.get::<&str>(&pieces);
            text.replace_range(start..end, with);
        }
        exercise(&text);
    }

    #[test]
    fn blanks_and_comments_anywhere(places in proptest::collection::vec((any::<usize>(), 0usize..5), 1..6)) {
        let mut text = SAMPLE.to_string();
        for (at, what) in places {
            let blanks: Vec<usize> = text.match_indices([' ', '\n']).map(|(i, _)| i).collect();
            text.insert_str(blanks[at % blanks.len()], ["\n", " /* c */ ", " // c\n", "\n\n\n", "\t"][what]);
        }
        exercise(&text);
    }
}
