//! The verdicts of ptxas on instructions.

use margay_isa::{Target, Version, sample};
use std::{
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

/// ptxas, asked about many instructions in one module.
pub struct Ptxas {
    path: PathBuf,
    file: PathBuf,
    /// How often it ran.
    pub runs: usize,
    /// What is shown meanwhile.
    pub progress: Progress,
}

/// What is shown while the comparison runs.
pub struct Progress {
    start: Instant,
    shown: Instant,
    /// The question.
    pub mode: &'static str,
    /// Which of how many versions and targets it is asked for.
    place: [usize; 2],
    /// Instructions that are to be judged there, and those that have been.
    of: usize,
    done: usize,
}

/// How often progress is shown.
const SHOWN: Duration = Duration::from_secs(5);

impl Progress {
    fn new() -> Progress {
        let now = Instant::now();
        Progress { start: now, shown: now, mode: "", place: [0; 2], of: 0, done: 0 }
    }

    /// Begins the `place`th of `places` versions and targets.
    pub fn begin(&mut self, place: usize, places: usize, of: usize) {
        (self.place, self.of, self.done) = ([place + 1, places], of, 0);
    }

    fn judged(&mut self, count: usize) {
        self.done += count;
        if self.shown.elapsed() >= SHOWN {
            self.shown = Instant::now();
            let Progress { start, mode, place: [place, places], of, done, .. } = self;
            let seconds = start.elapsed().as_secs();
            eprintln!("{seconds:5} s  {mode:9} place {place} of {places}, instruction {done} of {of}");
        }
    }
}

/// Why ptxas gave up, at which instruction if it says so, and the verdicts on those before it.
struct Stop {
    at: Option<usize>,
    message: String,
    before: Vec<Vec<String>>,
}

impl Drop for Ptxas {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

impl Ptxas {
    /// The program at `path`.
    pub fn new(path: PathBuf) -> Ptxas {
        let file = std::env::temp_dir().join(format!("margay-oracle-{}.ptx", std::process::id()));
        Ptxas { path, file, runs: 0, progress: Progress::new() }
    }

    /// One verdict an instruction: the errors that ptxas reports on its line.
    pub fn judge(&mut self, version: Version, target: Target, list: &[String]) -> Vec<Vec<String>> {
        // A module has textures with samplers of their own or without, never both.
        let (samplers, others): (Vec<usize>, Vec<usize>) =
            (0..list.len()).partition(|i| list[*i].contains("samplerref_v"));
        let mut verdicts = vec![Vec::new(); list.len()];
        for chunk in samplers.chunks(CHUNK).chain(others.chunks(CHUNK)) {
            let texts: Vec<String> = chunk.iter().map(|i| list[*i].clone()).collect();
            for (i, verdict) in chunk.iter().zip(self.judge_together(version, target, &texts)) {
                verdicts[*i] = verdict;
            }
            self.progress.judged(chunk.len());
        }
        verdicts
    }

    /// ptxas stops at the first instruction that it cannot parse, and has reported by then what is wrong with those before it.
    /// So the next run starts after that one; those before it without an error are asked again together, since ptxas reports
    /// some errors only at the end of a function.
    fn judge_together(&mut self, version: Version, target: Target, list: &[String]) -> Vec<Vec<String>> {
        let mut verdicts = vec![Vec::new(); list.len()];
        let mut clean: Vec<usize> = Vec::new();
        let mut open: Vec<usize> = (0..list.len()).collect();
        while !open.is_empty() || !clean.is_empty() {
            if open.is_empty() {
                open = std::mem::take(&mut clean);
            }
            let texts: Vec<String> = open.iter().map(|i| list[*i].clone()).collect();
            match self.run(version, target, &texts) {
                Ok(found) => {
                    for (i, v) in open.drain(..).zip(found) {
                        verdicts[i] = v;
                    }
                }
                Err(Stop { at: Some(at), message, before }) => {
                    let rest = open.split_off(at + 1);
                    verdicts[open[at]].push(message);
                    for (i, v) in open.drain(..at).zip(before) {
                        if v.is_empty() {
                            clean.push(i);
                        }
                        verdicts[i] = v;
                    }
                    open = rest;
                }
                Err(Stop { message, .. }) if open.len() == 1 => {
                    verdicts[open[0]].push(message);
                    open.clear();
                }
                Err(_) => {
                    let (left, right) = texts.split_at(texts.len() / 2);
                    let mut both = self.judge_together(version, target, left);
                    both.extend(self.judge_together(version, target, right));
                    for (i, v) in open.drain(..).zip(both) {
                        verdicts[i] = v;
                    }
                }
            }
        }
        verdicts
    }

    /// Runs ptxas once. `Err` when it gave up.
    fn run(&mut self, version: Version, target: Target, list: &[String]) -> Result<Vec<Vec<String>>, Stop> {
        let nowhere = |message| Stop { at: None, message, before: Vec::new() };
        let (text, first) = sample::module(version, target, list);
        let arch = match target.sm {
            0..75 | 82 => "compute_80".to_owned(),
            101 => target.to_string().replace("sm_101", "compute_110"),
            _ => target.to_string().replace("sm_", "compute_"),
        };
        self.runs += 1;
        std::fs::write(&self.file, text).expect("temporary file");
        let run = Command::new(&self.path)
            .arg(format!("-arch={arch}"))
            .arg(&self.file)
            .args(["-o", "/dev/null"])
            .output()
            .expect("ptxas");
        if run.status.code().is_none() {
            return Err(nowhere("ptxas crashed".to_owned()));
        }
        let log = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        let mut verdicts = vec![Vec::new(); list.len()];
        for line in log.lines() {
            let Some((place, message)) = line.split_once("; ").and_then(|(p, m)| Some((p.rsplit_once("line ")?.1, m)))
            else {
                if line.contains("fatal")
                    && !line.contains("aborted due to errors")
                    && !line.contains("higher than default")
                {
                    return Err(nowhere(log));
                }
                continue;
            };
            let Some((kind, message)) = message.split_once(':') else { continue };
            if !matches!(kind.trim(), "error" | "fatal") {
                continue;
            }
            let at = place.parse::<usize>().ok().and_then(|n| n.checked_sub(first)).filter(|n| *n < list.len());
            if kind.trim() == "fatal" || message.contains("syntax error") {
                return Err(Stop { at, message: message.trim().to_owned(), before: verdicts });
            }
            match at {
                Some(n) => verdicts[n].push(message.trim().to_owned()),
                None => return Err(nowhere(log)),
            }
        }
        if !run.status.success() && verdicts.iter().all(Vec::is_empty) && !log.contains("higher than default") {
            return Err(nowhere(log));
        }
        Ok(verdicts)
    }
}

/// Instructions in one module: few, since each that cannot be parsed costs another run; many, since a run costs something.
const CHUNK: usize = 300;
