//! Findings as JSON, one object each.

use super::{Files, Item, Line, cuda, ptx};
use margay_exec::Image;
use margay_sanitizer::Party;
use serde_json::{Value, json};

fn line(l: Line) -> Value {
    json!({ "file": l.file, "line": l.line, "column": l.column, "text": l.text })
}

fn party(image: &Image, p: &Party, files: &mut Files) -> Value {
    let callers: Vec<Value> = p
        .callers
        .iter()
        .map(|c| {
            let lines: Vec<Value> = cuda(image, (c.func, c.at), files).into_iter().map(line).collect();
            let function = &image.ir.func(c.func).name;
            json!({ "function": function, "source": lines, "ptx": line(ptx(image, (c.func, c.at))) })
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
}

/// A finding as an object.
pub fn finding(item: Item<'_>, files: &mut Files) -> Value {
    let f = item.finding;
    let parties: Vec<Value> = match item.image {
        Some(image) => f.parties.iter().map(|p| party(image, p, files)).collect(),
        None => Vec::new(),
    };
    json!({
        "kind": f.kind.name(),
        "title": f.title,
        "kernel": item.kernel,
        "threads": parties,
        "notes": f.notes,
        "help": f.help,
        "times": f.times,
    })
}
