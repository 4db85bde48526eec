//! Diagnostics as JSON: one object for each, with at least `severity`, `code`, `message`, `file`, `line`, `column`.

use super::{region, severity};
use margay_ir::Source;
use margay_syntax::Diagnostic;
use serde_json::{Value, json};

/// A diagnostic as an object. Lines and columns count from 1, columns in characters.
pub fn diagnostic(source: &Source, d: &Diagnostic) -> Value {
    let [line, column, end_line, end_column] = region(source, d.span());
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
