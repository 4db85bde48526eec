//! Findings as one SARIF 2.1.0 log (OASIS standard): the thread that was noticed first is the location, the others are related.

use super::{Files, Item, Line, cuda, ptx};
use margay_exec::Image;
use margay_sanitizer::{FindingKind, Party};
use serde_json::{Value, json};

/// Rules, in the order of their index: what each is about.
const RULES: [(FindingKind, &str); 8] = [
    (FindingKind::Race, "Two accesses, at least one of them a write, are neither ordered nor both morally strong"),
    (FindingKind::Uninitialized, "An uninitialized value is used"),
    (FindingKind::Synchronization, "A barrier or warp instruction is not reached by all threads that it requires"),
    (FindingKind::Bounds, "An access is outside its variable or allocation"),
    (FindingKind::Leak, "Memory is never freed"),
    (FindingKind::Api, "A CUDA API call fails"),
    (FindingKind::Unused, "Memory is never accessed"),
    (FindingKind::Fault, "A launch does not complete"),
];

/// A file name as a relative URI: everything that is not unreserved is percent-encoded (RFC 3986).
fn uri(name: &str) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-._~/".contains(b);
    name.bytes().map(|b| if plain(&b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn location(image: &Image, p: &Party, files: &mut Files) -> Value {
    let line: Line = cuda(image, p.at, files).pop().unwrap_or_else(|| ptx(image, p.at));
    let mut region = json!({ "startLine": line.line });
    if line.column > 0 {
        region["startColumn"] = line.column.into();
    }
    let (thread, cta) = (p.thread, p.cta);
    json!({
        "physicalLocation": { "artifactLocation": { "uri": uri(&line.file) }, "region": region },
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
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "margay", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}
