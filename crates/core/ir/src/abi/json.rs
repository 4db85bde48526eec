//! The report of `margay abi` as JSON.

use super::{
    Place, Reg,
    report::{CallReport, FuncReport, Passed, PieceReport, Report, Row},
};
use serde_json::{Value, json};

impl Report {
    /// One JSON object.
    pub fn json(&self, file: &str) -> String {
        let functions: Vec<Value> = self.functions.iter().map(function).collect();
        json!({ "file": file, "abi": self.abi, "about": self.about, "functions": functions }).to_string()
    }
}

fn function(f: &FuncReport) -> Value {
    let rows = |rows: &[Row]| rows.iter().map(row).collect::<Vec<_>>();
    json!({
        "name": f.name,
        "kind": f.kind_name(),
        "defined": f.defined,
        "attributes": f.attributes,
        "no_plan": f.no_plan,
        "rets": rows(&f.rets),
        "params": rows(&f.params),
        "stack": f.stack,
        "clobbers": f.clobbers,
        "block": f.block.map(|b| json!({ "bytes": b.size, "padding": b.padding, "limit": b.limit })),
        "calls": f.calls.iter().map(call).collect::<Vec<_>>(),
    })
}

fn row(r: &Row) -> Value {
    json!({
        "name": r.name,
        "type": r.ty,
        "bytes": r.bytes,
        "align": r.align,
        "padding": r.padding,
        "address_taken": r.address_taken,
        "pieces": pieces(&r.pieces),
    })
}

fn call(c: &CallReport) -> Value {
    let passed = |list: &[Passed]| -> Vec<Value> {
        list.iter().map(|p| json!({ "what": p.what, "formal": p.formal, "pieces": pieces(&p.pieces) })).collect()
    };
    json!({
        "line": c.line,
        "callee": c.callee,
        "no_plan": c.no_plan,
        "args": passed(&c.args),
        "rets": passed(&c.rets),
    })
}

fn pieces(list: &[PieceReport]) -> Vec<Value> {
    list.iter().map(piece).collect()
}

/// A piece's bytes and place: `kind` says which of the other members there are.
fn piece(p: &PieceReport) -> Value {
    let mut piece = json!({ "from": p.bytes.start, "to": p.bytes.end, "at": p.at });
    let reg = |kind: &str, r: Reg| json!({ "kind": kind, "class": r.class.to_string(), "index": r.index });
    let place = match p.place {
        Place::Reg(r) => reg("register", r),
        Place::Stack { offset } => json!({ "kind": "stack", "offset": offset }),
        Place::Space { offset } => json!({ "kind": "param", "offset": offset }),
        Place::Behind(r) => reg("behind", r),
    };
    if let (Some(piece), Value::Object(place)) = (piece.as_object_mut(), place) {
        piece.extend(place);
    }
    piece
}
