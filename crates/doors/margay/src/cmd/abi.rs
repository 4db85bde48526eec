//! `margay abi`: where every byte of every formal and argument travels.

use super::{Result, failure, modules, name, options};
use crate::{
    args::{AbiArgs, VerdictArgs},
    exit::{Failure, Outcome},
    report::{self, Style, emit},
};
use margay_check::Checked;
use margay_ir::{
    LowerOptions, Source,
    abi::{html, report::report},
    declare, lower_with,
};
use margay_runtime::{SourceText, check, find_abi};
use margay_syntax::Severity;
use std::sync::Arc;

/// Runs the command.
pub fn run(args: &AbiArgs, style: Style) -> Result {
    let abi = find_abi(&args.abi).map_err(Failure::usage)?;
    let (name, texts) = (name(&args.file), modules(&args.file)?);
    let modules = texts.iter().map(|(name, text)| checked(name, text, style)).collect::<Result<Vec<_>>>()?;
    // Signatures do not depend on bodies: what cannot be lowered still has its tables, without call sites.
    let ir = match lower_with(&modules, &LowerOptions { kernel: None, relocatable: true }) {
        Err(e) if e.unsupported => declare(&modules),
        other => other,
    };
    let ir = ir.map_err(|e| failure(e.into(), style))?;
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

/// Checks as relocatable code: signatures are wanted, not a whole program.
pub fn checked(name: &str, text: &str, style: Style) -> Result<(Arc<Source>, Checked)> {
    let verdict = VerdictArgs { strict: false, text: false, relocatable: true, target: None, ptx_version: None };
    let (source, checked, diagnostics) = check(&SourceText { name, text }, &options(&verdict)?);
    match checked {
        Some(checked) => Ok((source, checked)),
        None => {
            let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).take(20);
            let message = errors.map(|d| report::human(&source, d, style.err)).collect();
            Err(Failure { message, outcome: Outcome::Findings })
        }
    }
}
