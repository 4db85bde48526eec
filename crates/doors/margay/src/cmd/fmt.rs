//! `margay fmt`

use super::{Result, name, read};
use crate::{
    args::FmtArgs,
    exit::{Failure, Outcome, complain},
    report::emit,
};

use margay_isa::{Opcode, Word, resolve};
use margay_syntax::FormatOptions;
use std::{cell::RefCell, collections::HashMap};

/// Opcode and modifiers in the manual's order, if they stand in another.
fn canonical(written: &str) -> Option<String> {
    let (opcode, modifiers) = written.split_once('.')?;
    let words: Vec<Word> = modifiers.split('.').map(Word::from_name).collect::<Option<_>>()?;
    let found = resolve(Opcode::from_name(opcode)?, &words, |_| true).ok()?;
    (!found.in_order).then(|| found.variant.to_string())
}

/// Runs the command.
pub fn run(args: &FmtArgs) -> Result {
    let mut outcome = Outcome::Clean;
    let known: RefCell<HashMap<String, Option<String>>> = RefCell::default();
    let mnemonic = |written: &str| {
        let entry = known.borrow().get(written).cloned();
        entry.unwrap_or_else(|| {
            let canonical = canonical(written);
            known.borrow_mut().insert(written.into(), canonical.clone());
            canonical
        })
    };
    let options = FormatOptions { mnemonic: Some(&mnemonic), ..FormatOptions::default() };
    for path in &args.files {
        let (name, text) = (name(path), read(path)?);
        let parsed = margay_syntax::parse(&text);
        let formatted = match margay_syntax::format(&parsed, &options) {
            Ok(formatted) => formatted,
            Err(why) => {
                complain(format_args!("error: {name} has {why} (`margay check` shows them), and was left alone"));
                outcome = Outcome::Findings;
                continue;
            }
        };
        if args.check {
            if formatted != text {
                emit(&format!("{name} is not in canonical form\n"));
                outcome = Outcome::Findings;
            }
        } else if path.as_os_str() == "-" {
            emit(&formatted);
        } else if formatted != text {
            std::fs::write(path, formatted).map_err(|e| Failure::usage(format!("cannot write {name}: {e}")))?;
        }
    }
    Ok(outcome)
}
