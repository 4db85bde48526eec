//! `margay abi`: shows where each byte of each parameter and argument is passed.

use super::{Result, failure, modules, name};
use crate::{
    args::AbiArgs,
    exit::{Failure, Outcome},
    report::{self, Style, emit},
};
use margay_check::Checked;
use margay_ir::{
    Source,
    abi::{html, report::report},
};
use margay_runtime::{SourceText, check_signatures, find_abi, signatures};
use margay_syntax::Severity;
use std::sync::Arc;

/// Runs the command.
pub fn run(args: &AbiArgs, style: Style) -> Result {
    let abi = find_abi(&args.abi).map_err(Failure::usage)?;
    let (name, texts) = (name(&args.file), modules(&args.file)?);
    let modules = texts.iter().map(|(name, text)| checked(name, text, style)).collect::<Result<Vec<_>>>()?;
    let ir = signatures(&modules).map_err(|e| failure(e.into(), style))?;
    let mut report = report(&ir, abi);
    if let Some(wanted) = &args.function {
        report.functions.retain(|f| *f.name == **wanted);
        if report.functions.is_empty() {
            return Err(Failure::usage(format!("{name} has no function `{wanted}`")));
        }
    }
    emit(&match (args.json, args.html) {
        (true, _) => report.json(&name) + "\n",
        (_, true) => html::page(&report, abi, &name),
        _ => report.text(),
    });
    Ok(Outcome::Clean)
}

/// Checks a module of which only the signatures are needed.
pub fn checked(name: &str, text: &str, style: Style) -> Result<(Arc<Source>, Checked)> {
    let (source, checked, diagnostics) = check_signatures(&SourceText { name, text });
    match checked {
        Some(checked) => Ok((source, checked)),
        None => {
            let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).take(20);
            let message = errors.map(|d| report::human(&source, d, style.err)).collect();
            Err(Failure { message, outcome: Outcome::Findings })
        }
    }
}
