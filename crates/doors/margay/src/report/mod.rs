//! Output of diagnostics as text, JSON lines, SARIF or GitHub annotations; and the exit of a command whose kernel stopped.

mod sarif;

use crate::{
    args::{Color, MessageFormat},
    exit::{Failure, Outcome},
};
use margay::output::{github_message, github_property};
use margay::render::json::{diagnostic as json_diagnostic, region};
use margay_exec::Stop;
use margay_ir::Source;
use margay_runtime::StopReport;
use margay_syntax::{Diagnostic, Severity};
use std::{
    io::{IsTerminal, Write},
    sync::Arc,
};

pub use margay::render::json::severity;
pub use sarif::log as sarif;

/// Whether to color standard output and standard error.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Standard output.
    pub out: bool,
    /// Standard error.
    pub err: bool,
}

impl Style {
    /// From the command line, the environment and the terminal.
    pub fn new(color: Color) -> Style {
        let allowed = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        match color {
            Color::Always => Style { out: true, err: true },
            Color::Never => Style { out: false, err: false },
            Color::Auto => Style {
                out: allowed && std::io::stdout().is_terminal(),
                err: allowed && std::io::stderr().is_terminal(),
            },
        }
    }
}

/// Writes to standard output. A closed pipe is not an error.
pub fn emit(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// The diagnostics of one file.
#[derive(Clone, Debug)]
pub struct Found {
    /// The file.
    pub source: Arc<Source>,
    /// In order of position, severities decided.
    pub diagnostics: Vec<Diagnostic>,
}

/// The findings of a file as text; SARIF is one log for all files, see [`sarif`].
pub fn render(found: &Found, format: MessageFormat, color: bool) -> String {
    let lines = found.diagnostics.iter();
    match format {
        MessageFormat::Human => lines.map(|d| human(&found.source, d, color)).collect(),
        MessageFormat::Json => lines.map(|d| format!("{}\n", json_diagnostic(&found.source, d))).collect(),
        MessageFormat::Github => lines.map(|d| github(&found.source, d)).collect(),
        MessageFormat::Sarif => String::new(),
    }
}

/// A diagnostic as text.
pub fn human(source: &Source, diagnostic: &Diagnostic, color: bool) -> String {
    margay::render::diagnostic(source, diagnostic, color)
}

/// The exit of a command whose kernel stopped.
pub fn stopped(report: &StopReport, color: bool) -> Failure {
    let outcome = match &report.stop {
        Stop::Fault(_) => Outcome::Findings,
        Stop::Unsupported(_) => Outcome::Unsupported,
        Stop::Exhausted(_) => Outcome::Usage,
        Stop::Bug(_) => Outcome::Bug,
    };
    Failure { message: margay::render::stop(report, color), outcome }
}

/// An annotation of GitHub's workflows: `::error file=k.ptx,line=3,col=5,title=E0204::message`.
fn github(source: &Source, diagnostic: &Diagnostic) -> String {
    let level = match diagnostic.severity {
        Severity::Note => "notice",
        other => severity(other),
    };
    let [line, column, end_line, end_column] = region(source, diagnostic.span());
    let (file, code) = (github_property(&source.name), diagnostic.code.info().number);
    let message = github_message(&diagnostic.message);
    format!(
        "::{level} file={file},line={line},col={column},endLine={end_line},endColumn={end_column},title={code}::{message}\n"
    )
}
