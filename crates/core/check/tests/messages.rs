//! The anchor to beat: 54 mistakes, what ptxas 13.5 says of each, and what margay says. `BLESS=1` rewrites `messages.txt`; the
//! codes and lines that the modules expect (`//~`) are not rewritten by anything.

mod common;

use common::{cases, found, places, render};

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages.txt");

#[test]
fn as_expected_and_as_recorded() {
    let mut rendered = String::new();
    let cases = cases("messages");
    assert_eq!(cases.len(), 54);
    for case in &cases {
        let found = found(&case.text, &case.options);
        assert_eq!(places(&case.text, &found), case.expected, "{}", case.name);
        rendered += &format!("==== {}: {}\n\nptxas:\n", case.name.trim_end_matches(".ptx"), case.title);
        match case.ptxas.is_empty() {
            true => rendered += "  (nothing)\n",
            false => case.ptxas.iter().for_each(|p| rendered += &format!("  {p}\n")),
        }
        rendered += "\nmargay:\n";
        for d in found.iter().take(3) {
            rendered += &render(&case.name, &case.text, d);
        }
        if found.len() > 3 {
            rendered += &format!("... and {} more\n", found.len() - 3);
        }
        rendered.push('\n');
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(SNAPSHOT, &rendered).unwrap();
    }
    let recorded = std::fs::read_to_string(SNAPSHOT).unwrap_or_default();
    let first = rendered.lines().zip(recorded.lines()).position(|(a, b)| a != b);
    assert!(rendered == recorded, "messages.txt differs at line {:?}; look, then BLESS=1", first.map(|i| i + 1));
}

/// One mistake, one finding: causes without consequences.
#[test]
fn no_cascades() {
    for case in cases("messages") {
        let one = !matches!(case.name.get(..2), Some("50" | "51" | "52"));
        let found = found(&case.text, &case.options);
        assert!(!one || found.len() == 1, "{}: {} findings", case.name, found.len());
        // A second place or a way out, beyond the bare statement.
        for d in &found {
            let more =
                d.labels.len() > 1 || !d.labels[0].text.is_empty() || !d.notes.is_empty() || !d.suggestions.is_empty();
            assert!(more || case.name.starts_with("51"), "{}: {}", case.name, d.message);
        }
    }
}
