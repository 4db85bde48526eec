//! Functions that need no device: checking, canonical form, the tables of calling conventions, the pages of codes, where programs find margay.

use crate::errors;
use margay::{format::Formatter, programs::Programs, render::json::severity};
use margay_check::{Options, Verdict};
use margay_ir::abi::{html, report::report};
use margay_isa::{Target, Version};
use margay_runtime::{Error, SourceText, check_signatures, find_abi, signatures};
use margay_syntax::Code;
use pyo3::{
    exceptions::{PyLookupError, PyRuntimeError},
    prelude::*,
};
use serde_json::{Value, json};

/// What to check against: `verdict` is `ptxas`, `text` or `strict`.
pub fn options(verdict: &str, target: Option<&str>, version: Option<&str>, relocatable: bool) -> PyResult<Options> {
    let verdict = match verdict {
        "ptxas" => Verdict::Ptxas,
        "text" => Verdict::Text,
        "strict" => Verdict::Strict,
        other => return Err(errors::value(format!("`{other}` is not a verdict; expected ptxas, text or strict"))),
    };
    let parse_target = |text: &str| {
        let found = Target::parse(text).or_else(|| Target::parse(&format!("sm_{text}")));
        found.ok_or_else(|| errors::value(format!("`{text}` is not a target such as sm_80 or sm_90a")))
    };
    let parse_version = |text: &str| {
        let numbers = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let known = numbers.and_then(|(major, minor): (u16, u16)| {
            Version::ALL.iter().copied().find(|v| (v.major(), v.minor()) == (major, minor))
        });
        known.ok_or_else(|| errors::value(format!("`{text}` is not a PTX ISA version such as 8.3")))
    };
    Ok(Options {
        verdict,
        relocatable,
        target: target.map(parse_target).transpose()?,
        version: version.map(parse_version).transpose()?,
        ..Options::default()
    })
}

/// Diagnostics of a text, as a list in JSON.
#[pyfunction]
pub fn check(
    py: Python<'_>,
    text: &str,
    name: &str,
    verdict: &str,
    target: Option<&str>,
    version: Option<&str>,
    relocatable: bool,
) -> PyResult<String> {
    let options = options(verdict, target, version, relocatable)?;
    Ok(py.detach(|| {
        let (source, _, found) = margay_runtime::check(&SourceText { name, text }, &options);
        errors::diagnostics(&source, &found).to_string()
    }))
}

/// The canonical form of a text.
#[pyfunction]
pub fn fmt(py: Python<'_>, text: &str) -> PyResult<String> {
    let formatted = py.detach(|| Formatter::default().format(text));
    formatted
        .map_err(|why| errors::value(format!("the text has {why} and cannot be formatted; `margay.check` shows them")))
}

/// The tables of a module under a calling convention: in JSON, as text and as a page.
#[pyfunction]
pub fn abi(py: Python<'_>, text: &str, name: &str, abi: &str) -> PyResult<(String, String, String)> {
    let abi = find_abi(abi).map_err(|e| errors::raise(&e))?;
    let (source, checked, found) = py.detach(|| check_signatures(&SourceText { name, text }));
    let Some(checked) = checked else { return Err(errors::rejected(&source, &found)) };
    let modules = [(source, checked)];
    let ir = py.detach(|| signatures(&modules)).map_err(|e| errors::raise(&Error::from(e)))?;
    let report = report(&ir, abi);
    Ok((report.json(name), report.text(), html::page(&report, abi, name)))
}

/// The page of a code.
#[pyfunction]
pub fn explain(code: &str) -> PyResult<String> {
    let by_number = || ["E", "W"].iter().find_map(|kind| Code::find(&format!("{kind}{code:0>4}")));
    let found = Code::find(code)
        .or_else(by_number)
        .ok_or_else(|| PyLookupError::new_err(format!("unknown code `{code}`; `margay.codes()` lists all codes")))?;
    let info = found.info();
    Ok(match found.page() {
        "" => format!("{} ({}), {}: {}\n", info.number, info.name, severity(info.severity), info.summary),
        page => page.to_string(),
    })
}

/// All codes, as a list in JSON.
#[pyfunction]
pub fn codes() -> String {
    let all = Code::ALL.iter().map(|code| {
        let info = code.info();
        json!({ "code": info.number, "name": info.name, "severity": severity(info.severity), "summary": info.summary })
    });
    all.collect::<Value>().to_string()
}

/// For a command `margay`: the folder with the libraries under the names that programs ask for, and the variables with which `margay
/// exec` starts programs.
#[pyfunction]
pub fn programs(command: std::path::PathBuf) -> PyResult<(String, Vec<(&'static str, String)>)> {
    let failed = |why: String| PyRuntimeError::new_err(why);
    let programs = Programs::new(&command).map_err(failed)?;
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    let all = programs.environment(&command).map_err(failed)?;
    let all = all.into_iter().map(|(name, value)| (name, text(value))).collect();
    Ok((text(programs.folder().into()), all))
}
