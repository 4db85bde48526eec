//! `margay exec -- PROGRAM ARGUMENTS`: runs a CUDA program with margay's `libcuda.so.1` in the place of NVIDIA's.

use super::Result;
use crate::{
    args::ExecArgs,
    exit::{Failure, Outcome},
};
use margay::programs::Programs;
use std::{env, os::unix::process::CommandExt, process::Command};

/// Runs the command: this process becomes the program, so it ends as the program ends.
pub fn run(args: &ExecArgs) -> Result {
    let own = env::current_exe();
    let own = own.map_err(|e| Failure::usage(format!("cannot find this program's own file: {e}")))?;
    let programs = Programs::new(&own).map_err(Failure::usage)?;
    if args.print_path {
        crate::report::emit(&format!("{}\n", programs.folder().display()));
        return Ok(Outcome::Clean);
    }
    if args.print_env {
        let lines = programs.linking().into_iter();
        let lines = lines.map(|(name, value)| format!("export {name}='{}'\n", value.to_string_lossy()));
        crate::report::emit(&lines.collect::<String>());
        return Ok(Outcome::Clean);
    }
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Failure::usage("no program was given: margay exec -- PROGRAM ARGUMENTS"));
    };
    let mut command = Command::new(program);
    command.args(rest).envs(programs.environment().map_err(Failure::usage)?);
    if args.doors {
        command.env("MARGAY_DOORS", "1");
    }
    let chosen = [("MARGAY_ENGINE", &args.engine), ("MARGAY_DEVICE", &args.device), ("MARGAY_CHECK", &args.check)];
    for (variable, value) in chosen {
        value.as_ref().map(|value| command.env(variable, value));
    }
    if args.stats {
        command.env("MARGAY_STATS", "1");
    }
    if !args.keep_exit_code {
        command.env("MARGAY_FAULT_EXIT", args.fault_exit_code.to_string());
    }
    let error = command.exec(); // comes back only if it failed
    Err(Failure::usage(format!("cannot run {}: {error}", program.to_string_lossy())))
}
