//! Findings as annotations of GitHub's workflows: `::error file=k.cu,line=3,col=5,title=race::message`.

use super::{Files, Item};
use crate::output::{github_message, github_property};

/// An annotation.
pub fn finding(item: Item<'_>, files: &mut Files) -> String {
    let place = match item.line(files) {
        Some(l) if l.column > 0 => format!("file={},line={},col={},", github_property(&l.file), l.line, l.column),
        Some(l) => format!("file={},line={},", github_property(&l.file), l.line),
        None => String::new(),
    };
    let f = item.finding;
    let rest = f.notes.iter().chain(&f.help).fold(f.title.clone(), |text, more| text + "\n" + more);
    format!("::error {place}title={}::{}\n", github_property(f.kind.name()), github_message(&rest))
}
