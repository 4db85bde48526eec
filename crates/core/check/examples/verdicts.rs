//! Judges the files whose names stand on standard input, one a line: `ok FILE` or `refused FILE LINE CODE MESSAGE`,
//! separated by tabs; the line is that of the first error. For tools that compare many modules with another judge.
//! Options: `-c` (relocatable), `--all` (an `error FILE LINE CODE MESSAGE` for each further error).

use margay_check::{Options, check};
use margay_syntax::{LineIndex, diag::Severity, parse};
use std::{io::BufRead, panic::catch_unwind};

fn main() {
    let options = Options { relocatable: std::env::args().any(|a| a == "-c"), ..Options::default() };
    let all = std::env::args().any(|a| a == "--all");
    for file in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(bytes) = std::fs::read(&file) else {
            println!("missing\t{file}");
            continue;
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let judged = catch_unwind(|| {
            let (checked, found) = check(parse(&text), &options);
            let first = found.iter().filter(|d| d.severity == Severity::Error).min_by_key(|d| d.span().start);
            let lines = LineIndex::new(&text);
            if all {
                for d in found.iter().filter(|d| d.severity == Severity::Error) {
                    let (line, _) = lines.line_column(&text, d.span().start);
                    println!("error\t{file}\t{line}\t{}\t{}", d.code.info().number, d.message.replace('\n', " "));
                }
            }
            match (first, checked) {
                (Some(d), _) => {
                    let (line, _) = lines.line_column(&text, d.span().start);
                    format!("refused\t{file}\t{line}\t{}\t{}", d.code.info().number, d.message.replace('\n', " "))
                }
                (None, Some(_)) => format!("ok\t{file}"),
                (None, None) => format!("refused\t{file}\t0\tnone\trefused without an error"),
            }
        });
        println!("{}", judged.unwrap_or_else(|_| format!("panic\t{file}")));
    }
}
