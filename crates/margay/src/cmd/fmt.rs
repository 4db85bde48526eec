//! `margay fmt`

use super::{Result, name, read};
use crate::{
    args::FmtArgs,
    exit::{Failure, Outcome},
    report::emit,
};

/// Runs the command.
pub fn run(args: &FmtArgs) -> Result {
    let mut outcome = Outcome::Clean;
    for path in &args.files {
        let (name, text) = (name(path), read(path)?);
        let parsed = margay_syntax::parse(&text);
        let formatted = match margay_syntax::format(&parsed, &margay_syntax::FormatOptions::default()) {
            Ok(formatted) => formatted,
            Err(why) => {
                eprintln!("error: {name} has {why} (`margay check` shows them), and was left alone");
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
