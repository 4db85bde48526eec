//! Findings of a sanitizer as text: both threads with their CUDA line, PTX line and call stack; values; the missing synchronization.

use super::Item;
use crate::render::{Files, short_name};
use margay_exec::Image;
use margay_ir::{FuncId, SourcePlace};
use margay_sanitizer::Party;
use std::fmt::Write;

/// A location in CUDA or PTX source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// The file, as the compiler or the user named it.
    pub file: String,
    /// 1-based.
    pub line: u32,
    /// 1-based; 0 if not known.
    pub column: u32,
    /// The text of the line, if the file exists.
    pub text: Option<String>,
}

/// The CUDA lines of a location, innermost first, including where it was inlined.
pub fn cuda(image: &Image, (func, at): (FuncId, SourcePlace), files: &mut Files) -> Vec<Line> {
    let source = &image.ir.func(func).source;
    let origins = source.tree.origins(at.span.start);
    let line = |o: &margay_syntax::Origin<'_>| Line {
        file: o.file.to_owned(),
        line: o.line,
        column: o.column,
        text: files.line(&source.name, o.file, o.line).map(|text| text.trim_start().to_owned()),
    };
    origins.iter().filter(|o| o.line > 0).map(line).collect()
}

/// The PTX line of a place.
pub fn ptx(image: &Image, (func, at): (FuncId, SourcePlace)) -> Line {
    let source = &image.ir.func(func).source;
    let (line, column) = source.lines().line_column(&source.tree.text, at.span.start);
    let text = source.tree.text.lines().nth(line.saturating_sub(1) as usize).map(|t| t.trim().to_owned());
    Line { file: source.name.clone(), line, column, text }
}

fn triple([x, y, z]: [u32; 3]) -> String {
    format!("({x}, {y}, {z})")
}

fn write_line(out: &mut String, how: &str, line: &Line) {
    let column = if line.column > 0 { format!(":{}", line.column) } else { String::new() };
    let text = line.text.as_ref().map(|t| format!(": {t}")).unwrap_or_default();
    let _ = writeln!(out, "    {how} {}:{}{column}{text}", line.file, line.line);
}

/// The lines to omit of a deep chain of inlined library functions, of which only the ends are shown: those between the innermost line and the
/// last one that is not in the same file as the outermost.
fn hidden(lines: &[Line]) -> std::ops::Range<usize> {
    /// Chains up to this length are shown.
    const LIMIT: usize = 4;
    let own = lines.last().map(|outermost| lines.iter().position(|l| l.file == outermost.file).unwrap_or(0));
    match own {
        Some(own) if own > LIMIT => 1..own,
        _ => 0..0,
    }
}

fn party(out: &mut String, image: &Image, p: &Party, files: &mut Files) {
    let _ = writeln!(out, "  thread {} of CTA {} {}", triple(p.thread), triple(p.cta), p.verb);
    let lines = cuda(image, p.at, files);
    let hidden = hidden(&lines);
    for (i, line) in lines.iter().enumerate().filter(|(i, _)| !hidden.contains(i)) {
        write_line(out, if i == 0 { "at" } else { "inlined at" }, line);
        if i + 1 == hidden.start && !hidden.is_empty() {
            let _ = writeln!(out, "    through {} inlined functions of other files", hidden.len());
        }
    }
    write_line(out, "ptx", &ptx(image, p.at));
    let _ = writeln!(out, "    in `{}`", short_name(&image.ir.func(p.at.0).name));
    for frame in &p.callers {
        let name = short_name(&image.ir.func(frame.func).name);
        let place = (frame.func, frame.at);
        let lines = cuda(image, place, files);
        write_line(out, &format!("called by `{name}` at"), lines.first().unwrap_or(&ptx(image, place)));
    }
}

/// A finding, followed by an empty line.
pub fn human(item: Item<'_>, files: &mut Files) -> String {
    let finding = item.finding;
    let mut out = format!("error: {}\n", finding.title);
    for (p, image) in finding.parties.iter().filter_map(|p| Some((p, item.image?))) {
        party(&mut out, image, p, files);
    }
    for note in &finding.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    if let Some(help) = &finding.help {
        let _ = writeln!(out, "  help: {help}");
    }
    if finding.times > 1 {
        let _ = writeln!(out, "  {} times in this launch; the first is shown", finding.times);
    }
    out.push('\n');
    out
}
