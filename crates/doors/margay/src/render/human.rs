//! Messages with source locations as text, in the style of rustc.

use super::Files;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Patch, Renderer, Snippet};
use margay_ir::Source;
use margay_syntax::{Diagnostic, Severity, Span, Suggestion};

/// The maximum number of lines between two places that are shown in one snippet.
const NEAR: u32 = 40;

/// A message with places.
pub struct Message<'a> {
    /// The severity of a diagnostic.
    pub severity: Severity,
    /// A published code, if it has one.
    pub code: Option<&'a str>,
    /// The first line.
    pub title: &'a str,
    /// The line that the place was compiled from: shown first.
    pub origin: Option<&'a Excerpt>,
    /// Places, the primary one first.
    pub labels: Vec<(Span, &'a str)>,
    /// Further facts.
    pub notes: &'a [String],
    /// Suggestions.
    pub suggestions: &'a [Suggestion],
}

/// A line of the file that PTX was compiled from.
pub struct Excerpt {
    /// The file's name, as the module has it.
    pub path: String,
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1, in bytes; 0 if the module does not say.
    pub column: u32,
    /// The line's text.
    pub text: String,
}

impl Excerpt {
    /// Reads the source line of a module's code; `None` if the file does not exist or has no such line.
    pub fn read(module: &str, place: &margay_syntax::Origin<'_>) -> Option<Excerpt> {
        let text = Files::default().line(module, place.file, place.line)?;
        Some(Excerpt { path: place.file.into(), line: place.line, column: place.column, text })
    }

    /// The line with the word at the column marked, or the whole line.
    fn snippet(&self) -> Snippet<'_, Annotation<'_>> {
        let text = &self.text;
        let start = match self.column.checked_sub(1) {
            Some(at) if (at as usize) < text.len() => floor(text, at as usize),
            _ => text.len() - text.trim_start().len(),
        };
        let word = text[start..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len() - start);
        let end = match self.column {
            0 => text.len(),
            _ => start + word.max(text[start..].chars().next().map_or(0, char::len_utf8)),
        };
        Snippet::source(text.as_str())
            .line_start(self.line as usize)
            .path(self.path.as_str())
            .annotation(AnnotationKind::Primary.span(start..end))
    }
}

/// A diagnostic as text.
pub fn diagnostic(source: &Source, d: &Diagnostic, color: bool) -> String {
    let mut notes = d.notes.clone();
    let origins: Vec<String> = source.tree.origins(d.span().start).iter().map(|o| o.to_string()).collect();
    if !origins.is_empty() {
        notes.push(format!("compiled from {}", origins.join(", inlined at ")));
    }
    let message = Message {
        severity: d.severity,
        code: Some(d.code.info().number),
        title: &d.message,
        origin: None,
        labels: d.labels.iter().map(|l| (l.span, l.text.as_str())).collect(),
        notes: &notes,
        suggestions: &d.suggestions,
    };
    render(source, &message, color)
}

/// A message in text form, followed by an empty line.
pub fn render(source: &Source, message: &Message<'_>, color: bool) -> String {
    let level = match message.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(message.title);
    let title = match message.code {
        Some(code) => title.id(code),
        None => title,
    };
    let mut group = title.elements(message.origin.map(Excerpt::snippet));
    group = group.elements(snippets(source, &message.labels));
    for note in message.notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    let mut groups = vec![group];
    for suggestion in message.suggestions {
        match suggestion.edits.is_empty() {
            true => {
                let last = groups.pop().unwrap_or_else(|| Group::with_level(Level::HELP));
                groups.push(last.element(Level::HELP.message(suggestion.message.as_str())));
            }
            false => groups.push(patch(source, suggestion)),
        }
    }
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    format!("{}\n\n", renderer.render(&groups))
}

/// Excerpts of the text, one for each group of nearby places, so that the cost does not depend on the file's size.
fn snippets<'a>(source: &'a Source, labels: &[(Span, &'a str)]) -> Vec<Snippet<'a, Annotation<'a>>> {
    let mut pieces: Vec<(u32, u32, Vec<usize>)> = Vec::new();
    for (i, (span, _)) in labels.iter().enumerate() {
        let (from, to) = (source.lines().line(span.start), source.lines().line(span.end.max(span.start)));
        match pieces.iter_mut().find(|(a, b, _)| from <= *b + NEAR && to + NEAR >= *a) {
            Some((a, b, inside)) => {
                (*a, *b) = (from.min(*a), to.max(*b));
                inside.push(i);
            }
            None => pieces.push((from, to, vec![i])),
        }
    }
    let text = &source.tree.text;
    let piece = |(from, to, inside): (u32, u32, Vec<usize>)| {
        let range = lines(source, from, to);
        let within = |span: Span| {
            let clamp = |at: u32| floor(text, (at as usize).clamp(range.start, range.end)) - range.start;
            clamp(span.start)..clamp(span.end.max(span.start))
        };
        let annotation = |i: usize| {
            let kind = if i == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            let annotation = kind.span(within(labels[i].0));
            if labels[i].1.is_empty() { annotation } else { annotation.label(labels[i].1) }
        };
        Snippet::source(&text[range.clone()])
            .line_start(from as usize)
            .path(source.name.as_str())
            .annotations(inside.into_iter().map(annotation))
    };
    pieces.into_iter().map(piece).collect()
}

fn patch<'a>(source: &'a Source, suggestion: &'a Suggestion) -> Group<'a> {
    let lines_of = |f: fn(u32, u32) -> u32, at: fn(&Span) -> u32| {
        suggestion.edits.iter().map(|(s, _)| source.lines().line(at(s))).reduce(f).unwrap_or(1)
    };
    let (from, to) = (lines_of(u32::min, |s| s.start), lines_of(u32::max, |s| s.end));
    let range = lines(source, from, to);
    let text = &source.tree.text;
    let within = |at: u32| floor(text, (at as usize).clamp(range.start, range.end)) - range.start;
    let patches =
        suggestion.edits.iter().map(|(span, new)| Patch::new(within(span.start)..within(span.end), new.as_str()));
    Level::HELP.secondary_title(suggestion.message.as_str()).element(
        Snippet::source(&text[range.clone()])
            .line_start(from as usize)
            .path(source.name.as_str())
            .patches(patches.collect::<Vec<_>>()),
    )
}

/// Bytes of the lines `from..=to`.
fn lines(source: &Source, from: u32, to: u32) -> std::ops::Range<usize> {
    let text = &source.tree.text;
    let start = source.lines().start(from).unwrap_or(text.len() as u32) as usize;
    let end = source.lines().start(to + 1).map_or(text.len(), |s| s as usize);
    start.min(text.len())..end.clamp(start, text.len())
}

/// The nearest character boundary at or before an offset.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}
