//! Findings as one SARIF 2.1.0 log (OASIS standard). The first thread of a finding is its location, the others are
//! related locations.

use super::{Files, Item, Line, cuda, ptx};
use margay_exec::Image;
use margay_sanitizer::{FindingKind, Party};
use serde_json::{Value, json};

/// Rules with their descriptions, in the order of their index.
pub(super) const RULES: [(FindingKind, &str); 8] = [
    (FindingKind::Race, "Two accesses, at least one of them a write, are neither ordered nor both morally strong"),
    (FindingKind::Uninitialized, "An uninitialized value is used"),
    (FindingKind::Synchronization, "A barrier or warp instruction is not reached by all threads that it requires"),
    (FindingKind::Bounds, "An access is outside its variable or allocation"),
    (FindingKind::Leak, "Memory is never freed"),
    (FindingKind::Api, "A CUDA API call fails"),
    (FindingKind::Unused, "Memory is never accessed"),
    (FindingKind::Fault, "A launch does not complete"),
];

fn location(image: &Image, p: &Party, files: &mut Files) -> Value {
    let line: Line = cuda(image, p.at, files).pop().unwrap_or_else(|| ptx(image, p.at));
    let mut region = json!({ "startLine": line.line });
    if line.column > 0 {
        region["startColumn"] = line.column.into();
    }
    let (thread, cta) = (p.thread, p.cta);
    json!({
        "physicalLocation": { "artifactLocation": { "uri": crate::output::uri(&line.file) }, "region": region },
        "logicalLocations": [{ "name": crate::render::demangled(&image.ir.func(p.at.0).name), "kind": "function" }],
        "message": { "text": format!("thread {thread:?} of CTA {cta:?} {}", p.verb) },
    })
}

/// One result.
pub fn result(item: Item<'_>, files: &mut Files) -> Value {
    let f = item.finding;
    let index = RULES.iter().position(|(kind, _)| *kind == f.kind).unwrap_or(0);
    let text = f.notes.iter().chain(&f.help).fold(f.title.clone(), |text, more| text + "\n" + more);
    let mut places = match item.image {
        Some(image) => f.parties.iter().map(|p| location(image, p, files)).collect(),
        None => Vec::new(),
    };
    let related = places.split_off(places.len().min(1));
    json!({
        "ruleId": f.kind.name(),
        "ruleIndex": index,
        "level": "error",
        "message": { "text": text },
        "locations": places,
        "relatedLocations": related,
        "occurrenceCount": f.times.max(1),
    })
}

/// The log.
pub fn log(results: Vec<Value>) -> Value {
    let rules: Vec<Value> =
        RULES.iter().map(|(kind, text)| json!({ "id": kind.name(), "shortDescription": { "text": text } })).collect();
    crate::output::sarif(rules, results)
}
