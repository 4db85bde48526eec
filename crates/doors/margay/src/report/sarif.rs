//! Findings as one SARIF 2.1.0 log (OASIS standard), as code-scanning services read it.

use super::{Found, region};
use margay::output::uri;
use margay_ir::Source;
use margay_syntax::{Code, Diagnostic, Severity, Span};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The log of all files.
pub fn log(found: &[Found]) -> Value {
    let codes: BTreeSet<Code> = found.iter().flat_map(|f| &f.diagnostics).map(|d| d.code).collect();
    let rules: Vec<Value> = codes.iter().map(|c| rule(*c)).collect();
    let index = |code: Code| codes.iter().position(|c| *c == code).unwrap_or(0);
    let results: Vec<Value> =
        found.iter().flat_map(|f| f.diagnostics.iter().map(|d| result(&f.source, d, index(d.code)))).collect();
    margay::output::sarif(rules, results)
}

fn level(severity: Severity) -> &'static str {
    super::severity(severity)
}

fn rule(code: Code) -> Value {
    let info = code.info();
    json!({
        "id": info.number,
        "name": info.name,
        "shortDescription": { "text": info.summary },
        "defaultConfiguration": { "level": level(info.severity) },
    })
}

fn physical(source: &Source, span: Span) -> Value {
    json!({
        "artifactLocation": { "uri": uri(&source.name) },
        "region": region_of(source, span),
    })
}

fn region_of(source: &Source, span: Span) -> Value {
    let [line, column, end_line, end_column] = region(source, span);
    json!({ "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column })
}

fn result(source: &Source, d: &Diagnostic, rule_index: usize) -> Value {
    let mut text = d.message.clone();
    for note in &d.notes {
        text.push('\n');
        text.push_str(note);
    }
    let related: Vec<Value> = d
        .labels
        .iter()
        .skip(1)
        .map(|l| json!({ "physicalLocation": physical(source, l.span), "message": { "text": l.text } }))
        .collect();
    let fixes: Vec<Value> = d.suggestions.iter().filter(|s| !s.edits.is_empty()).map(|s| fix(source, s)).collect();
    json!({
        "ruleId": d.code.info().number,
        "ruleIndex": rule_index,
        "level": level(d.severity),
        "message": { "text": text },
        "locations": [{ "physicalLocation": physical(source, d.span()) }],
        "relatedLocations": related,
        "fixes": fixes,
    })
}

fn fix(source: &Source, suggestion: &margay_syntax::Suggestion) -> Value {
    let replacements: Vec<Value> = suggestion
        .edits
        .iter()
        .map(|(span, new)| json!({ "deletedRegion": region_of(source, *span), "insertedContent": { "text": new } }))
        .collect();
    json!({
        "description": { "text": suggestion.message },
        "artifactChanges": [{ "artifactLocation": { "uri": uri(&source.name) }, "replacements": replacements }],
    })
}
