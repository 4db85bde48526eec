//! Checks files and prints what is found, one line each: `cargo run --example check -- a.ptx b.ptx`.
//! Options: `-c` (relocatable), `--strict`, `--text`, `--quiet` (errors only).

use margay_check::{Options, Verdict, check};
use margay_syntax::{LineIndex, diag::Severity, parse};

fn main() {
    let mut options = Options::default();
    let (mut files, mut quiet) = (Vec::new(), false);
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "-c" => options.relocatable = true,
            "--strict" => options.verdict = Verdict::Strict,
            "--text" => options.verdict = Verdict::Text,
            "--quiet" => quiet = true,
            _ => files.push(arg),
        }
    }
    for file in files {
        let text = match std::fs::read(&file) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) => {
                eprintln!("{file}: {e}");
                continue;
            }
        };
        let (checked, diagnostics) = check(parse(&text), &options);
        let lines = LineIndex::new(&text);
        for d in &diagnostics {
            if quiet && d.severity != Severity::Error {
                continue;
            }
            let (line, column) = lines.line_column(&text, d.span().start);
            println!("{file}:{line}:{column}: {:?} {}: {}", d.severity, d.code.info().number, d.message);
            for (i, l) in d.labels.iter().enumerate().filter(|(_, l)| !l.text.is_empty()) {
                let (line, column) = lines.line_column(&text, l.span.start);
                let at = if i == 0 { "here".to_owned() } else { format!("{line}:{column}") };
                println!("    {at}: {}", l.text);
            }
            d.notes.iter().for_each(|n| println!("    note: {n}"));
            d.suggestions.iter().for_each(|s| println!("    help: {}", s.message));
        }
        println!("{file}: {}", if checked.is_some() { "ok" } else { "refused" });
    }
}
