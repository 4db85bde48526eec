//! Diagnostics and the ends of executions as JSON. A diagnostic has at least `severity`, `code`, `message`, `file`, `line`, `column`; in
//! a declaration over several lines, `end_line` is its last one, which is the line that ptxas names. The first label has the exact place.

use margay_exec::{FaultKind, Image, Stop};
use margay_ir::{FuncId, Source, SourcePlace};
use margay_runtime::StopReport;
use margay_syntax::{Diagnostic, Severity, Span};
use serde_json::{Value, json};

/// `error`, `warning`, `note`.
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// 1-based line and column of both ends of a span.
pub fn region(source: &Source, span: Span) -> [u32; 4] {
    let (line, column) = source.lines().line_column(&source.tree.text, span.start);
    let (end_line, end_column) = source.lines().line_column(&source.tree.text, span.end.max(span.start));
    [line, column, end_line, end_column]
}

/// A diagnostic as an object. Lines and columns count from 1, columns in characters.
pub fn diagnostic(source: &Source, d: &Diagnostic) -> Value {
    let [line, column, mut end_line, mut end_column] = region(source, d.span());
    if let Some(whole) = source.tree.declaration(d.span().start) {
        let [_, _, last_line, last_column] = region(source, whole);
        if last_line > end_line {
            (end_line, end_column) = (last_line, last_column);
        }
    }
    let place = |span| {
        let [line, column, end_line, end_column] = region(source, span);
        json!({ "line": line, "column": column, "end_line": end_line, "end_column": end_column })
    };
    let with = |mut object: Value, key: &str, value: Value| {
        object[key] = value;
        object
    };
    let labels: Vec<Value> = d.labels.iter().map(|l| with(place(l.span), "text", l.text.clone().into())).collect();
    let suggestions: Vec<Value> = d
        .suggestions
        .iter()
        .map(|s| {
            let edits: Vec<Value> =
                s.edits.iter().map(|(span, new)| with(place(*span), "replacement", new.clone().into())).collect();
            json!({ "message": s.message, "machine_applicable": s.machine_applicable, "edits": edits })
        })
        .collect();
    let origins: Vec<Value> = source
        .tree
        .origins(d.span().start)
        .iter()
        .map(|o| json!({ "file": o.file, "line": o.line, "column": o.column }))
        .collect();
    json!({
        "severity": severity(d.severity),
        "code": d.code.info().number,
        "name": d.code.info().name,
        "message": d.message,
        "file": source.name,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "labels": labels,
        "notes": d.notes,
        "suggestions": suggestions,
        "origins": origins,
    })
}

/// Why an execution stopped, as an object: `stop` says which of the four kinds it is; a fault has its kind by a word, the thread, the
/// CTA, the place with its PTX and CUDA lines, the callers and the notes; `report` is the text form.
pub fn stop(report: &StopReport) -> Value {
    let image = &report.image;
    let text = super::stop(report, false);
    match &report.stop {
        Stop::Fault(fault) => {
            let callers: Vec<Value> = fault.stack.iter().map(|f| place(image, f.func, f.at)).collect();
            json!({
                "stop": "fault",
                "kind": kind(&fault.kind),
                "title": super::fault::title(&fault.kind),
                "thread": fault.thread,
                "cta": fault.cta,
                "place": fault.at.map(|(func, at)| place(image, func, at)),
                "callers": callers,
                "notes": fault.notes,
                "report": text,
            })
        }
        Stop::Unsupported(u) => {
            let at = u.func.zip(u.at).map(|(func, at)| place(image, func, at));
            json!({ "stop": "unsupported", "title": u.what, "place": at, "report": text })
        }
        Stop::Exhausted(e) => json!({ "stop": "exhausted", "title": e.0, "report": text }),
        Stop::Bug(b) => json!({ "stop": "bug", "title": b.0, "report": text }),
    }
}

/// The function, the PTX line and the CUDA line of an instruction. Lines and columns count from 1; a column of 0 is not known.
fn place(image: &Image, func: FuncId, at: SourcePlace) -> Value {
    let function = image.ir.func(func);
    let (line, column) = function.source.lines().line_column(&function.source.tree.text, at.span.start);
    let (file, cuda_line, cuda_column) = at.loc;
    let cuda = function.source.files.get(&file).filter(|_| cuda_line > 0);
    json!({
        "function": super::demangled(&function.name),
        "file": function.source.name,
        "line": line,
        "column": column,
        "cuda": cuda.map(|name| json!({ "file": &**name, "line": cuda_line, "column": cuda_column })),
    })
}

/// The name of a fault's kind.
pub fn kind(kind: &FaultKind) -> &'static str {
    match kind {
        FaultKind::OutOfBounds(_) => "out-of-bounds",
        FaultKind::UseAfterFree(_) => "use-after-free",
        FaultKind::Misaligned(_) => "misaligned",
        FaultKind::ReadOnly(_) => "read-only",
        FaultKind::BadFree { .. } => "bad-free",
        FaultKind::Trap => "trap",
        FaultKind::Breakpoint => "breakpoint",
        FaultKind::Assert(..) => "assert",
        FaultKind::Stack(_) => "stack",
        FaultKind::BadTarget(_) => "bad-target",
        FaultKind::Deadlock(_) => "deadlock",
        FaultKind::Barrier(_) => "barrier",
        FaultKind::Descriptor(_) => "descriptor",
        FaultKind::BadHandle(_) => "bad-handle",
        FaultKind::Hazard(_) => "hazard",
        FaultKind::Undefined(_) => "undefined",
    }
}
