//! Findings as XML, with the element names that compute-sanitizer uses: `kind`, `level`, `what`, `where`.

use super::{Files, Item, cuda, ptx};
use margay_exec::Image;
use margay_sanitizer::{FindingKind, Party};
use std::fmt::Write;

/// The text before the first record.
pub const START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ComputeSanitizerOutput>\n";
/// The text after the last record.
pub const END: &str = "</ComputeSanitizerOutput>\n";

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// compute-sanitizer's name of a kind.
pub fn kind(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Race => "Racecheck",
        FindingKind::Uninitialized | FindingKind::Unused => "Initcheck",
        FindingKind::Synchronization => "Synccheck",
        FindingKind::Bounds | FindingKind::Fault => "Memcheck",
        FindingKind::Leak => "Leak",
        FindingKind::Api => "APIError",
    }
}

fn place(out: &mut String, image: &Image, p: &Party, files: &mut Files) {
    let line = cuda(image, p.at, files).pop().unwrap_or_else(|| ptx(image, p.at));
    let _ = writeln!(out, "      <func>{}</func>", escape(&crate::render::demangled(&image.ir.func(p.at.0).name)));
    let _ = writeln!(out, "      <file>{}</file>\n      <line>{}</line>", escape(&line.file), line.line);
    for (name, [x, y, z]) in [("threadIdx", p.thread), ("blockIdx", p.cta)] {
        let _ = writeln!(out, "      <{name}><x>{x}</x><y>{y}</y><z>{z}</z></{name}>");
    }
}

/// A record.
pub fn finding(item: Item<'_>, files: &mut Files) -> String {
    let f = item.finding;
    let mut out = format!("  <record>\n    <kind>{}</kind>\n    <level>Error</level>\n", kind(f.kind));
    let _ = writeln!(out, "    <what>\n      <text>{}</text>", escape(&f.title));
    for note in f.notes.iter().chain(&f.help) {
        let _ = writeln!(out, "      <note>{}</note>", escape(note));
    }
    let _ = writeln!(out, "      <count>{}</count>\n    </what>", f.times.max(1));
    for p in &f.parties {
        let Some(image) = item.image else { break };
        let _ = writeln!(out, "    <where>\n      <access>{}</access>", escape(&p.verb));
        place(&mut out, image, p, files);
        out.push_str("    </where>\n");
    }
    out.push_str("  </record>\n");
    out
}
