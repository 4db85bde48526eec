//! `margay sanitize ARGUMENTS`: accepts compute-sanitizer's command line and runs `margay exec --check` with the equivalent options, so
//! scripts only need to change the command's name.

use super::Result;
use crate::{
    args::{Cli, Command, SanitizeArgs},
    exit::{Failure, Outcome},
};
use clap::Parser;
use std::{collections::VecDeque, ffi::OsString};

/// Options with a value that have no effect here: they are always on, or concern machine code.
const WITHOUT_EFFECT: [&str; 25] = [
    "--coredump-behavior",
    "--coredump-name",
    "--demangle",
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

/// The text of `--help`, before the options without an effect.
const HELP: &str = "\
Check a program, with the command line of NVIDIA's compute-sanitizer

Usage: margay sanitize [OPTIONS] [--] PROGRAM [ARGUMENTS]

Options:
  --tool memcheck|racecheck|initcheck|synccheck
                                 what to check: `margay exec --check memory,api`, `races`, `init` or `sync` [default: memcheck]
  --leak-check full|no           report memory that is never freed
  --report-api-errors all|explicit|no
                                 whether memcheck reports API calls that fail
  --track-unused-memory          report memory that is never accessed
  --track-stream-ordered-races all|...|no
                                 compare the work of different streams, too
  --kernel-name FILTER, --kernel-name-exclude FILTER
                                 check some kernels: `kernel_name=NAME` (`kne=`) or `kernel_substring=TEXT` (`kns=`)
  --launch-skip N, --launch-count N
                                 check some launches
  --error-exitcode N             the exit code if something is found; 0 keeps the program's [default: 0]
  --destroy-on-device-error context|kernel
                                 what a fault ends
  --suppressions FILE            findings to ignore, in compute-sanitizer's format or margay's
  --xml                          write XML
  --save FILE, --log-file FILE   write findings to a file
  --version, --help

`margay exec --check` can do more, such as several checks in one run and other output formats. Accepted without an effect:
";

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

/// The meaning of compute-sanitizer's options.
struct Requested {
    /// Words of `--check`.
    what: Vec<&'static str>,
    /// Options that `margay exec` takes as they are.
    options: Vec<OsString>,
    skip: Option<String>,
    count: Option<String>,
    exit_code: String,
    xml: bool,
    output: Option<String>,
    leaks: bool,
    unused: bool,
    api_errors: bool,
    streams: bool,
}

impl Requested {
    fn new() -> std::result::Result<Requested, Failure> {
        Ok(Requested {
            what: tool("memcheck")?,
            options: Vec::new(),
            skip: None,
            count: None,
            exit_code: "0".to_owned(),
            xml: false,
            output: None,
            leaks: false,
            unused: false,
            api_errors: true,
            streams: false,
        })
    }

    /// Reads an option; `value` takes its value.
    fn option(
        &mut self,
        name: &str,
        mut value: impl FnMut() -> std::result::Result<String, Failure>,
    ) -> std::result::Result<(), Failure> {
        match name {
            "--tool" => self.what = tool(&value()?)?,
            "--kernel-name" | "--kernel-regex" | "-k" | "--filter" => {
                self.options.extend(["--kernel-name".into(), kernel(&value()?)?.into()]);
            }
            "--exclude" | "--kernel-name-exclude" | "--kernel-regex-exclude" => {
                self.options.extend(["--kernel-name".into(), format!("!{}", kernel(&value()?)?).into()]);
            }
            "--launch-skip" | "-s" => self.skip = Some(value()?),
            "--launch-count" | "-c" => self.count = Some(value()?),
            "--error-exitcode" => self.exit_code = value()?,
            "--track-stream-ordered-races" => self.streams = value()? != "no",
            "--mode" => match value()?.as_str() {
                "launch-and-attach" => {}
                mode => return Err(Failure::unsupported(format!("`--mode {mode}` of compute-sanitizer"))),
            },
            "--leak-check" => self.leaks = value()? == "full",
            "--report-api-errors" => self.api_errors = value()? != "no",
            "--xml" => self.xml = true,
            "--save" | "--log-file" => self.output = Some(value()?),
            "--destroy-on-device-error" => {
                if value()? == "kernel" {
                    self.options.extend(["--fault-ends".into(), "kernel".into()]);
                }
            }
            "--suppressions" => self.options.extend(["--suppress".into(), value()?.into()]),
            "--language" | "--read" => {
                return Err(Failure::unsupported(format!("`{name}` of compute-sanitizer")));
            }
            name if WITHOUT_EFFECT.contains(&name) => drop(value()?),
            other => {
                return Err(Failure::usage(format!(
                    "margay does not support the option `{other}` of compute-sanitizer"
                )));
            }
        }
        Ok(())
    }

    /// The arguments of `margay exec`, before the program.
    fn into_arguments(mut self) -> Vec<OsString> {
        self.what.retain(|w| self.api_errors || *w != "api");
        if self.streams && !self.what.contains(&"races") {
            self.what.push("races");
        }
        if self.leaks {
            self.what.push("leaks");
        }
        if self.unused {
            self.what.push("unused");
        }
        let mut all: Vec<OsString> =
            ["exec", "--check", &self.what.join(","), "--error-exitcode", &self.exit_code].map(OsString::from).into();
        all.append(&mut self.options);
        if self.skip.is_some() || self.count.is_some() {
            let launches = format!("{}:{}", self.skip.unwrap_or_default(), self.count.unwrap_or_default());
            all.extend(["--launches".into(), launches.into()]);
        }
        if self.xml {
            all.extend(["--message-format".into(), "xml".into()]);
        }
        if let Some(file) = self.output {
            all.extend(["--output".into(), file.into()]);
        }
        all
    }
}

/// The equivalent arguments of `margay exec`.
fn translate(words: &[OsString]) -> std::result::Result<Vec<OsString>, Failure> {
    let mut words: VecDeque<OsString> = words.iter().cloned().collect();
    let mut requested = Requested::new()?;
    while let Some(word) = words.front().and_then(|w| w.to_str()).filter(|w| w.starts_with('-')).map(str::to_owned) {
        words.pop_front();
        if word == "--" {
            break;
        }
        let (name, mut given) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
            _ => (word.clone(), None),
        };
        match name.as_str() {
            "--version" | "-V" => return Ok(vec!["exec".into(), "--version".into()]),
            "--track-unused-memory" => requested.unused = is_on(given, &mut words),
            name if SWITCHES.contains(&name) => _ = is_on(given, &mut words),
            name => requested.option(name, || {
                let next = given.take().or_else(|| words.pop_front().and_then(|w| w.into_string().ok()));
                next.ok_or_else(|| Failure::usage(format!("`{name}` requires a value")))
            })?,
        }
    }
    let mut all = requested.into_arguments();
    all.push("--".into());
    all.extend(words);
    Ok(all)
}

/// The text of `--help`.
fn help() -> String {
    let mut names: Vec<&str> = WITHOUT_EFFECT.iter().chain(&SWITCHES).copied().collect();
    names.sort_unstable();
    let lines = names.chunks(4).map(|line| format!("  {}\n", line.join(" ")));
    HELP.to_owned() + &lines.collect::<String>()
}

/// Runs the command.
pub fn run(args: &SanitizeArgs) -> Result {
    let options = args.words.iter().take_while(|word| word.to_string_lossy().starts_with('-'));
    if args.words.is_empty() || options.into_iter().any(|word| word == "--help" || word == "-h") {
        print!("{}", help());
        return Ok(Outcome::Clean);
    }
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
    fn help_names_every_option() {
        let text = help();
        assert!(text.contains("--leak-check full") && text.contains("--padding") && text.contains("--nvtx"));
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
            (
                "--destroy-on-device-error kernel a",
                "exec --check memory,api --error-exitcode 0 --fault-ends kernel -- a",
            ),
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
