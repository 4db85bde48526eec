//! `margay explain CODE`: prints the page of a diagnostic code.

use super::Result;
use crate::{
    args::ExplainArgs,
    exit::{Failure, Outcome},
    report::{emit, severity},
};
use margay_syntax::Code;

/// Runs the command.
pub fn run(args: &ExplainArgs) -> Result {
    let Some(text) = &args.code else {
        for code in Code::ALL {
            let info = code.info();
            emit(&format!("{} {:32} {:8} {}\n", info.number, info.name, severity(info.severity), info.summary));
        }
        return Ok(Outcome::Clean);
    };
    // The number alone is accepted.
    let by_number = || ["E", "W"].iter().find_map(|kind| Code::find(&format!("{kind}{text:0>4}")));
    let code = Code::find(text).or_else(by_number).ok_or_else(|| {
        Failure::usage(format!("unknown code `{text}`; `margay explain` without an argument lists all codes"))
    })?;
    let info = code.info();
    emit(&match code.page() {
        "" => format!("{} ({}), {}: {}\n", info.number, info.name, severity(info.severity), info.summary),
        page => page.to_string(),
    });
    Ok(Outcome::Clean)
}
