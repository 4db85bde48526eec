//! `bench-frontend [--mb N] [--rounds N] [FILE...]`: throughput of the front end on one core, and bytes of tree per byte of text.
//!
//! Without files, a module is made of the repository's examples and benchmark kernels, copied with new names until it has N
//! megabytes. With a ptxas at hand (`MARGAY_PTXAS` names it, or `make oracle` installed it), its parse-and-check mode is timed on
//! the same text.
#![forbid(unsafe_code)]

use margay_check::Options;
use margay_syntax::{Severity, parse, tree::Item};
use std::{
    collections::HashSet,
    hint::black_box,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

fn main() {
    let (mut megabytes, mut rounds, mut files) = (20usize, 5usize, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|n| n.parse().ok()).unwrap_or_else(|| usage());
        match arg.as_str() {
            "--mb" => megabytes = number(),
            "--rounds" => rounds = number().max(1),
            "--bench" => {} // what `cargo bench` adds
            file if !file.starts_with('-') => files.push(PathBuf::from(file)),
            _ => usage(),
        }
    }
    let text = if files.is_empty() { replicate(&sources(), megabytes << 20) } else { join(&files) };
    println!("{:.1} MB, {} lines", mb(text.len()), text.lines().count());

    let resident = rss();
    let parsed = parse(&text);
    let tree = rss().saturating_sub(resident);
    let errors = parsed.diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
    if errors > 0 {
        println!("the text has {errors} syntax errors: {}", parsed.diagnostics[0].message);
    }
    println!("tree: {:.2} bytes per byte of text, the text's own copy included", tree as f64 / text.len() as f64);
    drop(parsed);

    let options = Options::default();
    let parse_time = best(rounds, || drop(black_box(parse(&text))));
    let mut found = 0;
    let both_time = best(rounds, || {
        let (checked, diagnostics) = margay_check::check(parse(&text), &options);
        found = diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
        black_box(checked);
    });
    let speed = |time: Duration| mb(text.len()) / time.as_secs_f64();
    println!("parse:         {:7.1} MB/s", speed(parse_time));
    println!("parse + check: {:7.1} MB/s ({found} errors)", speed(both_time));
    println!("peak memory:   {:.2} bytes per byte of text", peak() as f64 / text.len() as f64);
    if let Some(ptxas) = ptxas()
        && let Some(time) = time_ptxas(&ptxas, &text)
    {
        println!("ptxas -arch=compute_80: {:.1} MB/s, start included", speed(time));
    }
}

fn usage() -> ! {
    eprintln!("usage: bench-frontend [--mb N] [--rounds N] [FILE...]");
    std::process::exit(2)
}

fn mb(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

fn best(rounds: usize, mut work: impl FnMut()) -> Duration {
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..rounds).map(|_| time(&mut work)).min().unwrap_or_default()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default()
}

/// Modules of the repository that are right.
fn sources() -> Vec<String> {
    let mut paths = Vec::new();
    for folder in ["examples", "benches/kernels"] {
        let entries = std::fs::read_dir(root().join(folder)).into_iter().flatten().flatten();
        paths.extend(entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "ptx")));
    }
    paths.retain(|p| p.file_stem().is_none_or(|s| s != "mistakes"));
    paths.sort();
    paths.iter().filter_map(|p| std::fs::read_to_string(p).ok()).collect()
}

fn join(files: &[PathBuf]) -> String {
    match files {
        [one] => std::fs::read_to_string(one).unwrap_or_else(|e| {
            eprintln!("{}: {e}", one.display());
            std::process::exit(2)
        }),
        many => replicate(&many.iter().filter_map(|p| std::fs::read_to_string(p).ok()).collect::<Vec<_>>(), 0),
    }
}

/// One module out of many copies: headers once, every module-level name with the copy's number.
fn replicate(sources: &[String], bytes: usize) -> String {
    let mut text = String::from(".version 9.5\n.target sm_90\n.address_size 64\n");
    let names: Vec<HashSet<String>> = sources.iter().map(|s| module_names(s)).collect();
    for copy in 0.. {
        for (source, names) in sources.iter().zip(&names) {
            append(&mut text, source, names, copy);
        }
        if text.len() >= bytes || sources.is_empty() {
            break;
        }
    }
    text
}

fn module_names(source: &str) -> HashSet<String> {
    let tree = parse(source).tree;
    let name = |item: &Item| match item {
        Item::Func(f) => vec![tree.funcs[*f as usize].name],
        Item::Var(v) => tree.declarators(&tree.vars[*v as usize]).iter().map(|d| d.name).collect(),
        Item::Directive(_) => Vec::new(),
    };
    tree.items.iter().flat_map(name).map(|span| tree.str(span).to_string()).collect()
}

fn append(text: &mut String, source: &str, names: &HashSet<String>, copy: usize) {
    for line in source.lines() {
        if [".version", ".target", ".address_size", ".file"].iter().any(|d| line.trim_start().starts_with(d)) {
            continue;
        }
        let mut rest = line;
        while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            let end = rest[start..].find(|c: char| !c.is_ascii_alphanumeric() && !"_$".contains(c)).map_or(rest.len(), |n| start + n);
            text.push_str(&rest[..end]);
            if names.contains(&rest[start..end]) {
                text.push_str(&format!("_{copy}"));
            }
            rest = &rest[end..];
        }
        text.push_str(rest);
        text.push('\n');
    }
}

/// A line of `/proc/self/status` in bytes; 0 where there is none.
fn status(key: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with(key)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse::<usize>().ok()).unwrap_or(0) * 1024
}

fn rss() -> usize {
    status("VmRSS:")
}

fn peak() -> usize {
    status("VmHWM:")
}

fn ptxas() -> Option<PathBuf> {
    let named = std::env::var_os("MARGAY_PTXAS").map(PathBuf::from);
    [named, Some(root().join(".oracle/bin/ptxas"))].into_iter().flatten().find(|p| p.is_file())
}

fn time_ptxas(ptxas: &Path, text: &str) -> Option<Duration> {
    let file = std::env::temp_dir().join(format!("bench-frontend-{}.ptx", std::process::id()));
    std::fs::write(&file, text).ok()?;
    let start = Instant::now();
    let status = std::process::Command::new(ptxas).args(["-arch=compute_90", "-o", "/dev/null"]).arg(&file).output().ok()?;
    let time = start.elapsed();
    let _ = std::fs::remove_file(&file);
    status.status.success().then_some(time)
}
