//! Findings of checkers as JSON: one object for each.

use margay::render::{Files, Line, cuda, ptx};
use margay_checker::{Finding, Party};
use margay_exec::Image;
use serde_json::{Value, json};

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
