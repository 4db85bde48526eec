//! `margay fmt`: formats modules.

use super::{Result, listing, name, read};
use crate::{
    args::FmtArgs,
    exit::{Failure, Outcome, complain},
    report::emit,
};

/// Runs the command.
pub fn run(args: &FmtArgs) -> Result {
    let mut outcome = Outcome::Clean;
    let formatter = margay::format::Formatter::default();
    for path in &args.files {
        let (name, text) = (name(path), read(path)?);
        if listing(&name, &text)?.is_some() {
            return Err(Failure::usage(format!(
                "{name} is the output of cuobjdump; `margay extract {name} --output DIR` writes its modules to files"
            )));
        }
        let formatted = match formatter.format(&text) {
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
