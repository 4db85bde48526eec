//! Errors of the library as Python's exceptions: the classes are `margay._errors`'s.

use margay::{findings, render};
use margay_exec::Stop;
use margay_ir::Source;
use margay_runtime::{Error, StopReport};
use margay_syntax::Diagnostic;
use pyo3::{
    exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError},
    prelude::*,
};
use serde_json::{Value, json};

/// An exception of a class in `margay._errors`, made of a message and an object in JSON.
fn make(class: &str, message: &str, data: &Value) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import("margay._errors")
            .and_then(|module| module.getattr(class))
            .and_then(|class| class.call_method1("_of", (message, data.to_string())));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Diagnostics with their text for people, as JSON.
pub fn diagnostics(source: &Source, found: &[Diagnostic]) -> Value {
    let one = |d: &Diagnostic| {
        let mut object = render::json::diagnostic(source, d);
        object["rendered"] = render::diagnostic(source, d, false).into();
        object
    };
    found.iter().map(one).collect()
}

/// A module that did not pass the check.
pub fn rejected(source: &Source, found: &[Diagnostic]) -> PyErr {
    let errors = found.iter().filter(|d| d.severity == margay_syntax::Severity::Error);
    let text: String = errors.take(20).map(|d| render::diagnostic(source, d, false)).collect();
    let message = format!("{text}{} did not pass the check", source.name);
    make("CheckError", &message, &diagnostics(source, found))
}

/// What margay lacks.
pub fn unsupported(message: &str) -> PyErr {
    make("Unsupported", message, &Value::Null)
}

/// Any error of the runtime.
pub fn raise(error: &Error) -> PyErr {
    match error {
        Error::Rejected(files) => match files.first() {
            Some(file) => rejected(&file.source, &file.diagnostics),
            None => PyValueError::new_err(error.to_string()),
        },
        Error::Lower(e) if e.unsupported => unsupported(&format!("{}: margay does not support {}", e.file, e.message)),
        Error::Lower(e) => PyValueError::new_err(format!("{}: {}", e.file, e.message)),
        Error::NoPlan(_) => unsupported(&error.to_string()),
        Error::Stopped(report) => stopped(report),
        Error::OutOfMemory { .. } => pyo3::exceptions::PyMemoryError::new_err(error.to_string()),
        Error::Canceled => PyKeyboardInterrupt::new_err(error.to_string()),
        Error::NoSuch { what: "kernel" | "variable", .. } => {
            pyo3::exceptions::PyLookupError::new_err(error.to_string())
        }
        Error::NoSuch { .. } | Error::BadLaunch(_) | Error::BadArray(_) | Error::BadAddress { .. } => {
            PyValueError::new_err(error.to_string())
        }
    }
}

fn stopped(report: &StopReport) -> PyErr {
    let data = render::json::stop(report);
    let text = render::stop(report, false);
    match &report.stop {
        Stop::Fault(_) => make("Fault", text.trim_end(), &data),
        Stop::Unsupported(_) => make("Unsupported", text.trim_end(), &data),
        Stop::Exhausted(_) => pyo3::exceptions::PyMemoryError::new_err(text),
        Stop::Bug(_) => PyRuntimeError::new_err(text),
    }
}

/// A wrong word or number of the caller.
pub fn value(message: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(message.to_string())
}

/// A finding of a sanitizer, as JSON.
pub fn finding(image: &margay_exec::Image, found: &margay_sanitizer::Finding, files: &mut findings::Files) -> Value {
    let place = |(func, at)| {
        let ptx = findings::ptx(image, (func, at));
        let cuda: Vec<Value> = findings::cuda(image, (func, at), &mut findings::Files::default())
            .into_iter()
            .map(|l| json!({ "file": l.file, "line": l.line, "column": l.column }))
            .collect();
        let name = render::demangled(&image.ir.func(func).name);
        json!({ "function": name, "file": ptx.file, "line": ptx.line, "column": ptx.column, "cuda": cuda.first() })
    };
    let threads: Vec<Value> = found
        .parties
        .iter()
        .map(|p| {
            let callers: Vec<Value> = p.callers.iter().map(|c| place((c.func, c.at))).collect();
            json!({ "verb": p.verb, "thread": p.thread, "cta": p.cta, "place": place(p.at), "callers": callers })
        })
        .collect();
    json!({
        "kind": found.kind.name(),
        "title": found.title,
        "threads": threads,
        "notes": found.notes,
        "help": found.help,
        "times": found.times,
        "report": findings::human(findings::Item { image: Some(image), kernel: "", finding: found }, files).trim_end(),
    })
}
