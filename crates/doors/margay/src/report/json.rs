//! Diagnostics as JSON: one object for each, with at least `severity`, `code`, `message`, `file`, `line`, `column`; in a
//! declaration over several lines, `end_line` is its last one, which is the line that ptxas names. The first label has the exact place.

use super::{region, severity};
use margay::render::{Files, Line, cuda, ptx};
use margay_checker::{Finding, Party};
use margay_exec::Image;
use margay_ir::Source;
use margay_syntax::Diagnostic;
use serde_json::{Value, json};

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

/// A finding of a checker as an object.
pub fn finding(image: &Image, f: &Finding, files: &mut Files) -> Value {
    let line = |l: Line| json!({ "file": l.file, "line": l.line, "column": l.column, "text": l.text });
    let mut party = |p: &Party| {
        let callers: Vec<Value> = p
            .callers
            .iter()
            .map(|c| {
                let lines: Vec<Value> = cuda(image, (c.func, c.at), files).into_iter().map(line).collect();
                json!({ "function": image.ir.func(c.func).name, "source": lines, "ptx": line(ptx(image, (c.func, c.at))) })
            })
            .collect();
        let lines: Vec<Value> = cuda(image, p.at, files).into_iter().map(line).collect();
        json!({
            "verb": p.verb,
            "thread": p.thread,
            "cta": p.cta,
            "function": image.ir.func(p.at.0).name,
            "source": lines,
            "ptx": line(ptx(image, p.at)),
            "callers": callers,
        })
    };
    let parties: Vec<Value> = f.parties.iter().map(&mut party).collect();
    json!({
        "kind": f.kind.name(),
        "title": f.title,
        "threads": parties,
        "notes": f.notes,
        "help": f.help,
        "times": f.times,
    })
}
