//! The `margay` command.

mod args;
mod cmd;
mod exit;
mod report;

use args::{Cli, Command};
use clap::Parser;
use exit::{Failure, Outcome};
use std::{ffi::OsString, io::Write, path::Path, process::ExitCode};

fn main() -> ExitCode {
    exit::report_panics();
    margay::ends_process();
    if called_as(cmd::nvcc::NAME) {
        let words: Vec<OsString> = std::env::args_os().skip(1).collect();
        return ended(cmd::nvcc::run(&words)).into();
    }
    if called_as(margay::smi::NAME) {
        let words: Vec<String> = std::env::args().skip(1).collect();
        return ended(cmd::smi::run(&words)).into();
    }
    let cli = Cli::parse_from(words());
    // On a thread of its own: deep nesting in a module must not meet a small main stack, and a panic ends in code 101.
    let worker = std::thread::Builder::new().stack_size(64 << 20).spawn(move || run(&cli));
    let outcome = worker.map_or(Outcome::Usage, |thread| thread.join().unwrap_or(Outcome::Bug));
    outcome.into()
}

/// The command line. Called by the name of NVIDIA's assembler, this is `margay ptxas`.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if called_as("ptxas") {
        words.insert(1, "ptxas".into());
    }
    words
}

/// Whether the program was called by a certain name.
fn called_as(name: &str) -> bool {
    std::env::args_os().next().is_some_and(|own| Path::new(&own).file_name().is_some_and(|own| own == name))
}

fn run(cli: &Cli) -> Outcome {
    let style = report::Style::new(cli.color);
    let result = match &cli.command {
        Command::Check(args) => cmd::check::run(args, style),
        Command::Fmt(args) => cmd::fmt::run(args),
        Command::Abi(args) => cmd::abi::run(args, style),
        Command::Bindgen(args) => cmd::bindgen::run(args, style),
        Command::Run(args) => cmd::run::run(args, style),
        Command::Exec(args) => cmd::exec::run(args),
        Command::Replay(args) => cmd::replay::run(args, style),
        Command::Sanitize(args) => cmd::sanitize::run(args),
        Command::Ptxas(args) => cmd::ptxas::run(args, style),
        Command::Extract(args) => cmd::extract::run(args),
        Command::Explain(args) => cmd::explain::run(args),
        Command::Doc(args) => cmd::doc::run(args),
        Command::Ir(args) => cmd::ir::run(args, style),
        Command::Cache(args) => cmd::cache::run(args),
        Command::Completions(args) => cmd::completions(args),
    };
    let outcome = ended(result);
    // A closed pipe (`margay ... | head`) is not a failure.
    let _ = std::io::stdout().flush();
    outcome
}

/// Prints a command's failure, and returns its outcome.
fn ended(result: cmd::Result) -> Outcome {
    result.unwrap_or_else(|Failure { message, outcome }| {
        if !message.is_empty() {
            exit::complain(message.trim_end());
        }
        outcome
    })
}
