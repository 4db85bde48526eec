//! The output formats of findings: text, JSON lines, a SARIF log, annotations for GitHub's workflows, and XML with compute-sanitizer's
//! element names.

mod github;
mod human;
mod json;
mod sarif;
mod settings;
mod stopped;
mod suppress;
mod xml;

pub use crate::render::Files;
pub use human::{Line, cuda, human, ptx};
pub use settings::{Settings, launches};
pub use stopped::stopped;
pub use suppress::Suppressions;

use margay_exec::{Image, Initiator, Memory, mem::Kind};
use margay_sanitizer::{Finding, FindingKind};
use serde_json::Value;
use std::io::Write;

/// An output format.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Format {
    /// Text: both threads, their lines, the missing synchronization.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
    /// One SARIF 2.1.0 log.
    Sarif,
    /// Annotations of GitHub's workflows.
    Github,
    /// XML with the element names of compute-sanitizer.
    Xml,
}

impl Format {
    /// All formats with their names.
    pub const ALL: [(&'static str, Format); 5] = [
        ("human", Format::Human),
        ("json", Format::Json),
        ("sarif", Format::Sarif),
        ("github", Format::Github),
        ("xml", Format::Xml),
    ];

    /// The format of that name.
    pub fn parse(word: &str) -> Result<Format, String> {
        let known = Format::ALL.iter().find(|(name, _)| *name == word);
        known.map(|(_, format)| *format).ok_or_else(|| {
            let names: Vec<&str> = Format::ALL.iter().map(|(name, _)| *name).collect();
            format!("`{word}` is not a format; expected one of {}", names.join(", "))
        })
    }
}

/// A finding with its program and kernel.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The program that locations refer to; without one, there are no locations.
    pub image: Option<&'a Image>,
    /// The kernel that was launched, mangled; empty outside launches.
    pub kernel: &'a str,
    /// The finding.
    pub finding: &'a Finding,
}

impl Item<'_> {
    /// Its line: in the CUDA source if that is known, else in the PTX.
    pub fn line(&self, files: &mut Files) -> Option<Line> {
        let (image, party) = (self.image?, self.finding.parties.first()?);
        // Inlined code is often in a header: the outermost line is the kernel's.
        Some(cuda(image, party.at, files).pop().unwrap_or_else(|| ptx(image, party.at)))
    }
}

/// Writes findings, one after the other.
pub struct Writer {
    format: Format,
    out: Box<dyn Write + Send>,
    files: Files,
    results: Vec<Value>,
    begun: bool,
}

impl Writer {
    /// A writer to a file or stream.
    pub fn new(format: Format, out: Box<dyn Write + Send>) -> Writer {
        Writer { format, out, files: Files::default(), results: Vec::new(), begun: false }
    }

    /// Writes one. A closed pipe is not a failure.
    pub fn write(&mut self, item: Item<'_>) {
        let files = &mut self.files;
        let text = match self.format {
            Format::Human => human(item, files),
            Format::Json => format!("{}\n", json::finding(item, files)),
            Format::Github => github::finding(item, files),
            Format::Xml => {
                let start = if self.begun { "" } else { xml::START };
                self.begun = true;
                start.to_owned() + &xml::finding(item, files)
            }
            Format::Sarif => {
                self.results.push(sarif::result(item, files));
                return;
            }
        };
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }

    /// Ends the document, in formats whose output is one document.
    pub fn finish(&mut self) {
        let text = match self.format {
            Format::Human | Format::Json | Format::Github => return,
            Format::Xml => format!("{}{}", if self.begun { "" } else { xml::START }, xml::END),
            Format::Sarif => format!("{}\n", sarif::log(std::mem::take(&mut self.results))),
        };
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

/// The maximum number of locations of leaks that are reported.
const MAX_PLACES: usize = 8;

/// The finding for memory of the device heap that kernels have allocated and not freed.
pub fn heap_leak(memory: &Memory) -> Option<Finding> {
    let left: Vec<usize> =
        memory.allocations().iter().filter(|a| a.kind == Kind::Heap).map(|a| a.block.len()).collect();
    let bytes: usize = left.iter().sum();
    let note = |(place, count, by): (String, usize, Initiator)| {
        let thread = match by {
            Initiator::Thread(thread, cta) => format!("thread {thread:?} of CTA {cta:?}"),
            Initiator::Host => "the host".into(),
        };
        format!("{count} of them allocated{place}; one by {}", thread.replace('[', "(").replace(']', ")"))
    };
    (!left.is_empty()).then(|| Finding {
        kind: FindingKind::Leak,
        title: format!("leak: {bytes} bytes in {} allocations on the device heap are never freed", left.len()),
        parties: Vec::new(),
        notes: memory.origins().places().into_iter().take(MAX_PLACES).map(note).collect(),
        help: Some("`free` or `delete` is missing in a kernel".into()),
        times: 1,
    })
}
