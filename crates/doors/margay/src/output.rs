//! Common parts of the machine-readable formats of diagnostics and findings.

use serde_json::{Value, json};

/// A SARIF 2.1.0 log (OASIS standard) with one run.
pub fn sarif(rules: Vec<Value>, results: Vec<Value>) -> Value {
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "margay", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// A file name as a relative URI: everything that is not unreserved is percent-encoded (RFC 3986).
pub fn uri(name: &str) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-._~/".contains(b);
    name.bytes().map(|b| if plain(&b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// The message of an annotation of GitHub's workflows, encoded as GitHub's runner asks.
pub fn github_message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of an annotation of GitHub's workflows, such as `file=`.
pub fn github_property(text: &str) -> String {
    github_message(text).replace(':', "%3A").replace(',', "%2C")
}
