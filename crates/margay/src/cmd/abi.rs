//! `margay abi`: where every byte of every formal travels, as a table or as JSON.

mod html;
mod model;

use super::{Result, name, options, read};
use crate::{
    args::{AbiArgs, VerdictArgs},
    exit::{Failure, Outcome},
    report::{self, Style, emit},
};
use margay_runtime::{SourceText, check, find_abi};
use margay_syntax::Severity;
use model::{Entry, Row};

/// Runs the command.
pub fn run(args: &AbiArgs, style: Style) -> Result {
    let abi = find_abi(&args.abi).map_err(Failure::usage)?;
    let (name, text) = (name(&args.file), read(&args.file)?);
    let module = checked(&name, &text, style)?;
    let mut entries = model::entries(&module, abi);
    if let Some(wanted) = &args.function {
        entries.retain(|e| &e.name == wanted);
        if entries.is_empty() {
            return Err(Failure::usage(format!("{name} has no function `{wanted}`")));
        }
    }
    match (args.json, args.html) {
        (true, _) => emit(&format!("{}\n", model::json(&name, abi.name(), &entries))),
        (_, true) => emit(&html::page(&name, abi.name(), &entries)),
        _ => entries.iter().for_each(|e| emit(&table(e))),
    }
    Ok(Outcome::Clean)
}

/// Checks as relocatable code: signatures are wanted, not a whole program.
pub fn checked(name: &str, text: &str, style: Style) -> Result<margay_check::Checked> {
    let verdict = VerdictArgs { strict: false, text: false, relocatable: true, target: None, ptx_version: None };
    let (source, checked, diagnostics) = check(&SourceText { name, text }, &options(&verdict)?);
    checked.ok_or_else(|| {
        let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).take(20);
        let message = errors.map(|d| report::human(&source, d, style.err)).collect();
        Failure { message, outcome: Outcome::Findings }
    })
}

fn table(entry: &Entry) -> String {
    let mut out = format!("{} {}\n", entry.kind, entry.name);
    if let Some(why) = &entry.no_plan {
        return out + &format!("  this ABI cannot carry it: {why}\n\n");
    }
    let header = Row::header(entry.is_kernel).map(str::to_string).to_vec();
    let rows: Vec<Vec<String>> = entry.rows.iter().map(|r| r.cells(entry.is_kernel).to_vec()).collect();
    if rows.is_empty() {
        out += "  no parameters, no results\n";
    } else {
        let lines: Vec<&Vec<String>> = std::iter::once(&header).chain(&rows).collect();
        let widths: Vec<usize> =
            (0..header.len()).map(|c| lines.iter().map(|l| l[c].chars().count()).max().unwrap_or(0)).collect();
        for line in lines {
            let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, w)| format!("{cell:w$}")).collect();
            out += &format!("  {}\n", cells.join("  ").trim_end());
        }
    }
    for note in &entry.notes {
        out += &format!("  {note}\n");
    }
    out + "\n"
}
