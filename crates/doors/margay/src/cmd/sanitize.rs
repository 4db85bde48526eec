//! `margay sanitize ARGUMENTS`: accepts compute-sanitizer's command line and runs `margay exec --check` with the equivalent options, so
//! scripts only need to change the command's name.

use super::Result;
use crate::{
    args::{Cli, Command, SanitizeArgs},
    exit::Failure,
};
use clap::Parser;
use std::{collections::VecDeque, ffi::OsString};

/// Options with a value that have no effect here: they are always on, or concern machine code.
const PASSED_OVER: [&str; 26] = [
    "--coredump-behavior",
    "--coredump-name",
    "--demangle",
    "--destroy-on-device-error",
    "--force-synchronization-limit",
    "--initcheck-address-space",
    "--injection-path",
    "--injection-path32",
    "--launch-timeout",
    "--max-connections",
    "--num-callers-device",
    "--num-callers-host",
    "--num-cuda-barriers",
    "--padding",
    "--port",
    "--prefix",
    "--preload-library",
    "--print-level",
    "--print-limit",
    "--racecheck-detect-level",
    "--racecheck-num-workers",
    "--racecheck-report",
    "--show-backtrace",
    "--target-processes",
    "--target-processes-filter",
    "--unused-memory-threshold",
];
/// Switches without an effect here: `yes` or `no` may follow.
const SWITCHES: [&str; 21] = [
    "--binary-patching",
    "--check-api-memory-access",
    "--check-bulk-copy",
    "--check-cache-control",
    "--check-device-heap",
    "--check-exit-code",
    "--check-optix",
    "--check-optix-leaks",
    "--check-warpgroup-mma",
    "--force-blocking-launches",
    "--generate-coredump",
    "--kill",
    "--missing-barrier-init-is-fatal",
    "--nvtx",
    "--print-session-details",
    "--quiet",
    "--racecheck-indirect-barriers",
    "--racecheck-memcpy-async",
    "--require-cuda-init",
    "--strip-paths",
    "--support-32bit",
];

/// The tools, and the checks that they stand for.
fn tool(name: &str) -> std::result::Result<Vec<&'static str>, Failure> {
    match name {
        // Bounds, alignment, and failing API calls.
        "memcheck" => Ok(vec!["memory", "api"]),
        "racecheck" => Ok(vec!["races"]),
        "initcheck" => Ok(vec!["init"]),
        "synccheck" => Ok(vec!["sync"]),
        other => {
            Err(Failure::usage(format!("unknown tool `{other}`; expected memcheck, racecheck, initcheck or synccheck")))
        }
    }
}

/// `kernel_name=k`, `kns=part`: a pattern of `margay exec --kernel-name`.
fn kernel(filter: &str) -> std::result::Result<String, Failure> {
    match filter.split_once('=') {
        Some(("kernel_name" | "kne", name)) => Ok(name.into()),
        Some(("kernel_substring" | "kns", part)) => Ok(format!("*{part}*")),
        None => Ok(filter.into()),
        Some((key, _)) => {
            Err(Failure::usage(format!("unknown filter `{key}`; expected kernel_name or kernel_substring")))
        }
    }
}

/// Whether a switch is on. The next word is its value only if it can be: `--nvtx ./a.out` names the program.
fn is_on(given: Option<String>, words: &mut VecDeque<OsString>) -> bool {
    let next = words.front().and_then(|w| w.to_str()).filter(|w| matches!(*w, "yes" | "no")).map(str::to_owned);
    if given.is_none() && next.is_some() {
        words.pop_front();
    }
    given.or(next).as_deref() != Some("no")
}

/// The equivalent arguments of `margay exec`.
fn translate(words: &[OsString]) -> std::result::Result<Vec<OsString>, Failure> {
    let mut words: VecDeque<OsString> = words.iter().cloned().collect();
    let (mut what, mut options) = (tool("memcheck")?, Vec::<OsString>::new());
    let (mut skip, mut count, mut code) = (None, None, "0".to_owned());
    let (mut xml, mut output) = (false, None);
    let (mut leaks, mut unused, mut errors, mut streams) = (false, false, true, false);
    while let Some(word) = words.front().and_then(|w| w.to_str()).filter(|w| w.starts_with('-')).map(str::to_owned) {
        words.pop_front();
        if word == "--" {
            break;
        }
        let (name, mut given) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
            _ => (word.clone(), None),
        };
        if name == "--track-unused-memory" {
            unused = is_on(given, &mut words);
            continue;
        }
        if SWITCHES.contains(&name.as_str()) {
            is_on(given, &mut words);
            continue;
        }
        let mut value = || {
            let next = given.take().or_else(|| words.pop_front().and_then(|w| w.into_string().ok()));
            next.ok_or_else(|| Failure::usage(format!("`{name}` requires a value")))
        };
        match name.as_str() {
            "--tool" => what = tool(&value()?)?,
            "--kernel-name" | "--kernel-regex" | "-k" | "--filter" => {
                options.extend(["--kernel-name".into(), kernel(&value()?)?.into()]);
            }
            "--exclude" | "--kernel-name-exclude" | "--kernel-regex-exclude" => {
                options.extend(["--kernel-name".into(), format!("!{}", kernel(&value()?)?).into()]);
            }
            "--launch-skip" | "-s" => skip = Some(value()?),
            "--launch-count" | "-c" => count = Some(value()?),
            "--error-exitcode" => code = value()?,
            "--track-stream-ordered-races" => streams = value()? != "no",
            "--mode" => match value()?.as_str() {
                "launch-and-attach" => {}
                mode => return Err(Failure::unsupported(format!("`--mode {mode}` of compute-sanitizer"))),
            },
            "--version" | "-V" => return Ok(vec!["exec".into(), "--version".into()]),
            "--leak-check" => leaks = value()? == "full",
            "--report-api-errors" => errors = value()? != "no",
            "--xml" => xml = true,
            "--save" | "--log-file" => output = Some(value()?),
            "--suppressions" => options.extend(["--suppress".into(), value()?.into()]),
            "--language" | "--read" => {
                return Err(Failure::unsupported(format!("`{name}` of compute-sanitizer")));
            }
            "--help" | "-h" => return Ok(vec!["exec".into(), "--help".into()]),
            name if PASSED_OVER.contains(&name) => drop(value()?),
            other => {
                return Err(Failure::usage(format!(
                    "margay does not support the option `{other}` of compute-sanitizer"
                )));
            }
        }
    }
    what.retain(|w| errors || *w != "api");
    if streams && !what.contains(&"races") {
        what.push("races");
    }
    if leaks {
        what.push("leaks");
    }
    if unused {
        what.push("unused");
    }
    if skip.is_some() || count.is_some() {
        let launches = format!("{}:{}", skip.unwrap_or_default(), count.unwrap_or_default());
        options.extend(["--launches".into(), launches.into()]);
    }
    if xml {
        options.extend(["--message-format".into(), "xml".into()]);
    }
    if let Some(file) = output {
        options.extend(["--output".into(), file.into()]);
    }
    let mut all: Vec<OsString> =
        ["exec", "--check", &what.join(","), "--error-exitcode", &code].map(OsString::from).into();
    all.append(&mut options);
    all.push("--".into());
    all.extend(words);
    Ok(all)
}

/// Runs the command.
pub fn run(args: &SanitizeArgs) -> Result {
    let words = translate(&args.words)?;
    let cli = Cli::parse_from(std::iter::once("margay".into()).chain(words));
    match &cli.command {
        Command::Exec(args) => super::exec::run(args),
        _ => Err(Failure::usage("missing program")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> std::result::Result<String, String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let words = translate(&words).map_err(|e| e.message)?;
        Ok(words.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn command_lines_of_compute_sanitizer_are_translated() {
        for (from, to) in [
            ("./a.out -x 3", "exec --check memory,api --error-exitcode 0 -- ./a.out -x 3"),
            (
                "--kernel-name-exclude kns=x --tool initcheck a",
                "exec --check init --error-exitcode 0 --kernel-name !*x* -- a",
            ),
            (
                "--tool racecheck --error-exitcode 9 --kernel-name kns=sum a --tool",
                "exec --check races --error-exitcode 9 --kernel-name *sum* -- a --tool",
            ),
            (
                "--leak-check=full --launch-skip 2 --launch-count=3 --show-backtrace no --xml --save f.xml -- a",
                "exec --check memory,api,leaks --error-exitcode 0 --launches 2:3 --message-format xml --output f.xml -- a",
            ),
            ("--tool initcheck --suppressions s.xml a", "exec --check init --error-exitcode 0 --suppress s.xml -- a"),
            // Switches take a value only if it is one.
            (
                "--tool racecheck --force-blocking-launches --racecheck-detect-level info --require-cuda-init no a",
                "exec --check races --error-exitcode 0 -- a",
            ),
            ("--check-optix --track-unused-memory a yes", "exec --check memory,api,unused --error-exitcode 0 -- a yes"),
            ("--track-unused-memory no a", "exec --check memory,api --error-exitcode 0 -- a"),
            ("--track-stream-ordered-races all a", "exec --check memory,api,races --error-exitcode 0 -- a"),
        ] {
            assert_eq!(of(from).as_deref(), Ok(to), "{from}");
        }
        assert!(of("--mode attach a").unwrap_err().contains("--mode attach"));
        assert!(of("--read x a").unwrap_err().contains("--read"));
        assert!(of("--tool leakcheck a").unwrap_err().contains("unknown tool"));
        assert!(of("--no-such-thing a").unwrap_err().contains("--no-such-thing"));
        assert!(of("--tool").unwrap_err().contains("requires a value"));
    }
}
