//! Findings as annotations of GitHub's workflows: `::error file=k.cu,line=3,col=5,title=race::message`.

use super::{Files, Item};

/// Properties and messages are percent-encoded as GitHub's runner asks.
fn encode(text: &str, property: bool) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    if property { text.replace(':', "%3A").replace(',', "%2C") } else { text }
}

/// An annotation.
pub fn finding(item: Item<'_>, files: &mut Files) -> String {
    let place = match item.line(files) {
        Some(l) if l.column > 0 => format!("file={},line={},col={},", encode(&l.file, true), l.line, l.column),
        Some(l) => format!("file={},line={},", encode(&l.file, true), l.line),
        None => String::new(),
    };
    let f = item.finding;
    let rest = f.notes.iter().chain(&f.help).fold(f.title.clone(), |text, more| text + "\n" + more);
    format!("::error {place}title={}::{}\n", encode(f.kind.name(), true), encode(&rest, false))
}
