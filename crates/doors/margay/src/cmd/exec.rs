//! `margay exec -- PROGRAM ARGUMENTS`: runs a CUDA program with margay's `libcuda.so.1` in place of NVIDIA's.

use super::Result;
use crate::{
    args::{CheckedArgs, ExecArgs},
    exit::{Failure, Outcome},
};
use margay::{findings::Suppressions, programs::Programs};
use std::{
    env,
    ffi::OsString,
    fs::File,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

/// Runs the command: this process becomes the program, so its exit code is the program's.
pub fn run(args: &ExecArgs) -> Result {
    let own = env::current_exe();
    let own = own.map_err(|e| Failure::usage(format!("cannot find margay's executable: {e}")))?;
    let programs = Programs::new(&own).map_err(Failure::usage)?;
    if args.print_path {
        crate::report::emit(&format!("{}\n", programs.folder().display()));
        return Ok(Outcome::Clean);
    }
    if args.print_env {
        let lines = programs.environment(&own).map_err(Failure::usage)?.into_iter();
        let lines = lines.map(|(name, value)| format!("export {name}='{}'\n", value.to_string_lossy()));
        crate::report::emit(&lines.collect::<String>());
        return Ok(Outcome::Clean);
    }
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Failure::usage("missing program; expected `margay exec -- PROGRAM ARGUMENTS`"));
    };
    let mut command = Command::new(program);
    command.args(rest).envs(programs.environment(Path::new(program)).map_err(Failure::usage)?);
    if args.doors {
        command.env("MARGAY_DOORS", "1");
    }
    let chosen = [
        ("MARGAY_ENGINE", &args.engine),
        ("MARGAY_DEVICE", &args.device),
        ("MARGAY_CHECK", &args.check),
        ("MARGAY_FAULT_ENDS", &args.fault_ends),
    ];
    for (variable, value) in chosen {
        value.as_ref().map(|value| command.env(variable, value));
    }
    command.envs(checks(args)?);
    command.envs(captures(args));
    if args.stats {
        command.env("MARGAY_STATS", "1");
    }
    if !args.keep_exit_code && args.fault_exit_code != 0 {
        command.env("MARGAY_FAULT_EXIT", args.fault_exit_code.to_string());
    }
    let error = command.exec(); // returns only on failure
    Err(Failure::usage(format!("cannot run {}: {error}", program.to_string_lossy())))
}

/// The environment variables that tell the driver library what to check.
fn checks(args: &ExecArgs) -> Result<Vec<(&'static str, OsString)>> {
    let CheckedArgs { kernel_name, launches, sample, seed, message_format, output, suppress, stop_at_first } =
        &args.checks;
    if let Some(file) = suppress {
        Suppressions::read(file).map_err(Failure::usage)?;
    }
    // The program may change its working directory before the library reads the paths.
    let absolute = |file: &PathBuf| std::path::absolute(file).unwrap_or(file.clone()).into_os_string();
    let set = [
        ("MARGAY_CHECK_KERNELS", (!kernel_name.is_empty()).then(|| kernel_name.join(",").into())),
        ("MARGAY_CHECK_LAUNCHES", launches.as_ref().map(OsString::from)),
        ("MARGAY_CHECK_SAMPLE", sample.map(|n| n.to_string().into())),
        ("MARGAY_CHECK_SEED", seed.map(|n| n.to_string().into())),
        ("MARGAY_CHECK_FORMAT", message_format.as_ref().map(OsString::from)),
        ("MARGAY_CHECK_OUTPUT", output.as_ref().map(absolute)),
        ("MARGAY_CHECK_SUPPRESS", suppress.as_ref().map(absolute)),
        ("MARGAY_CHECK_STOP", stop_at_first.then(|| "1".into())),
    ];
    // All processes of the program append to it.
    if let Some(file) = output
        && args.check.is_some()
    {
        File::create(file).map_err(|e| Failure::usage(format!("cannot write {}: {e}", file.display())))?;
    }
    let set: Vec<_> = set.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    if args.capture.is_some() || set.is_empty() || args.check.is_some() || env::var_os("MARGAY_CHECK").is_some() {
        return Ok(set);
    }
    Err(Failure::usage("these options require `--check` or `--capture`"))
}

/// The environment variables that tell the driver library which launches to capture.
fn captures(args: &ExecArgs) -> Vec<(&'static str, OsString)> {
    let Some(folder) = &args.capture else { return Vec::new() };
    let folder = std::path::absolute(folder).unwrap_or(folder.clone());
    let kernels = args.checks.kernel_name.join(",");
    let launches = args.checks.launches.clone().unwrap_or_default();
    vec![
        ("MARGAY_CAPTURE", folder.into_os_string()),
        ("MARGAY_CAPTURE_KERNELS", kernels.into()),
        ("MARGAY_CAPTURE_LAUNCHES", launches.into()),
    ]
}
