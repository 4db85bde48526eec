//! The parent process: child processes that run modules, recovery when one dies, and the shrinking of failures.

use super::{
    Attack, Class, Shape,
    end::{End, difference, never_ends},
    worker::{self, Job},
};
use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::{Duration, Instant},
};

/// Limit of warp instructions per module, far more than any terminating one needs.
const FUEL: u64 = 2_000_000;
/// Limit for the second engine if only that one ran out: the engines count slices of different sizes.
const MORE_FUEL: u64 = 50_000_000;
/// Processor time after which a silent child counts as hanging: on a busy machine, the time that has passed says little.
const BUSY: Duration = Duration::from_secs(60);
/// Silence after which a child counts as hanging that uses no processor time.
const SILENCE: Duration = Duration::from_secs(600);
/// How often a silent child is looked at.
const POLL: Duration = Duration::from_secs(5);
/// Ticks of a second in the kernel's accounts of processes, on all of Linux's usual architectures.
const TICKS: u64 = 100;
/// Modules after which a child is replaced.
const LIFE: u32 = 500;
/// Address space of a child in KiB: enough for any module, but limits runaway growth.
const SPACE: u64 = 24 << 20;

struct Living {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    served: u32,
}

/// Child processes that run modules, one at a time.
pub struct Watch {
    /// The program that serves jobs when its first argument is `worker`.
    program: PathBuf,
    /// The engine compared with the reference engine; the reference engine itself in a build without the SIMD engine.
    second: &'static str,
    /// Seeds whose outcomes are equivalent on one host thread only: what CTAs read from each other depends on which of them comes
    /// first (`atom.exch` by all threads, for instance), so such a difference says nothing about the engines.
    pub by_order: Vec<u64>,
    living: Option<Living>,
}

/// An attack on which the engines differ.
#[derive(Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// Its class.
    pub class: Class,
    /// The difference.
    pub why: String,
    /// Number of seeds that the child had run before, if a fresh child does not reproduce the failure.
    pub only_after: Option<u32>,
    /// The attack as drawn.
    pub attack: Attack,
}

impl Watch {
    /// Creates a watch whose children run `program`.
    pub fn new(program: &Path) -> Watch {
        let second = margay::engines().iter().map(|e| e.name()).find(|name| *name == "simd").unwrap_or("reference");
        Watch { program: program.to_path_buf(), second, by_order: Vec::new(), living: None }
    }

    fn start(&self) -> std::io::Result<Living> {
        let script = format!("ulimit -v {SPACE} -c 0; exec \"$0\" worker");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .arg(&self.program)
            // Kernels are never reused, so caching them is pointless.
            .env("MARGAY_CACHE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::Error::other("a child without pipes"));
        };
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Living { child, input, lines, served: 0 })
    }

    fn stop(&mut self) {
        if let Some(mut living) = self.living.take() {
            let _ = living.child.kill();
            let _ = living.child.wait();
        }
    }

    /// Runs a job in a child process, and determines the outcome even if the child crashes.
    pub fn run(&mut self, job: &Job<'_>) -> End {
        if self.living.as_ref().is_some_and(|l| l.served >= LIFE) {
            self.stop();
        }
        if self.living.is_none() {
            match self.start() {
                Ok(living) => self.living = Some(living),
                Err(e) => return End::Died(format!("no child: {e}")),
            }
        }
        let Some(living) = &mut self.living else { return End::Died("no child".into()) };
        living.served += 1;
        let (before, start) = (used(&living.child), Instant::now());
        let sent = living.input.write_all(&job.encode()).and_then(|()| living.input.flush());
        let mut panic = String::new();
        while sent.is_ok() {
            match living.lines.recv_timeout(POLL) {
                Ok(line) => match line.split_once('\t') {
                    Some(("panic", text)) => panic = text.to_owned(),
                    Some(("end", fields)) => {
                        return match worker::decode(fields) {
                            Some(End::Panic(_)) => End::Panic(panic),
                            Some(end) => end,
                            None => End::Died(format!("an unknown end: {fields}")),
                        };
                    }
                    _ => {}
                },
                Err(RecvTimeoutError::Timeout) => {
                    if used(&living.child).saturating_sub(before) < BUSY && start.elapsed() < SILENCE {
                        continue;
                    }
                    self.stop();
                    return End::Hang;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = living.child.wait();
        self.living = None;
        let how = match status {
            Ok(status) => match status.signal() {
                Some(signal) => format!("signal {signal}"),
                None => format!("exit code {:?}", status.code()),
            },
            Err(e) => e.to_string(),
        };
        End::Died(if panic.is_empty() { how } else { format!("{how} after a panic: {panic}") })
    }

    fn end(&mut self, attack: &Attack, text: &str, engine: &str, fuel: u64) -> End {
        self.run(&Job::new(engine, &attack.shape, fuel, text))
    }

    /// The outcomes of an attack on both engines, and why they are not equivalent.
    pub fn ends(&mut self, attack: &Attack) -> (End, End, Option<String>) {
        let text = attack.text();
        let mut reference = self.end(attack, &text, "reference", FUEL);
        if matches!(reference, End::Rejected(_)) {
            return (reference.clone(), reference, None);
        }
        let mut other = self.end(attack, &text, self.second, FUEL);
        match (&reference, &other) {
            (End::Exhausted(_), End::Exhausted(_)) => {}
            (a, b) if never_ends(a, b) => {}
            (End::Exhausted(_), _) => reference = self.end(attack, &text, "reference", MORE_FUEL),
            (_, End::Exhausted(_)) => other = self.end(attack, &text, self.second, MORE_FUEL),
            _ => {}
        }
        let why = difference(attack, &reference, &other);
        (reference, other, why)
    }

    /// Whether an attack that differs on several host threads ends alike on one, where both engines execute CTAs in order. A crash is
    /// never a matter of order.
    fn depends_on_order(&mut self, attack: &Attack, ends: [&End; 2]) -> bool {
        if attack.shape.threads == 1 || ends.iter().any(|end| end.is_a_crash()) {
            return false;
        }
        let shape = Shape { threads: 1, ..attack.shape.clone() };
        self.ends(&Attack { shape, ..attack.clone() }).2.is_none()
    }

    /// Runs the attack of a seed; a failure is confirmed in a fresh child.
    pub fn attempt(&mut self, seed: u64, classes: &[Class]) -> (Attack, End, Option<Failure>) {
        let attack = Attack::new(seed, classes);
        let (end, other, why) = self.ends(&attack);
        let Some(mut why) = why else { return (attack, end, None) };
        if self.depends_on_order(&attack, [&end, &other]) {
            self.by_order.push(seed);
            return (attack, end, None);
        }
        let served = self.living.as_ref().map_or(0, |l| l.served);
        self.stop();
        let again = self.ends(&attack).2;
        self.stop();
        let only_after = again.is_none().then_some(served);
        why = again.unwrap_or(why);
        let failure = Failure { seed, class: attack.class, why, only_after, attack: attack.clone() };
        (attack, end, Some(failure))
    }

    /// The smallest attack found within `time` with the same kind of difference, and that difference.
    pub fn shrink(&mut self, failure: &Failure, time: Duration) -> (Attack, String) {
        let (mut attack, mut why) = (failure.attack.clone(), failure.why.clone());
        let sort = |why: &str| why.split([':', ' ']).next().unwrap_or_default().to_owned();
        let start = Instant::now();
        while start.elapsed() < time {
            let next = attack.smaller().into_iter().take_while(|_| start.elapsed() < time).find_map(|s| {
                let (reference, other, why) = self.ends(&s);
                let found = why.filter(|w| sort(w) == sort(&failure.why))?;
                (!self.depends_on_order(&s, [&reference, &other])).then_some((s, found))
            });
            let Some(next) = next else { break };
            (attack, why) = next;
        }
        (attack, why)
    }
}

/// The processor time that a process and its threads have used.
fn used(child: &Child) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    // The name in parentheses may contain blanks; the 12th and 13th field after it are the times of the program and the kernel.
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    let ticks: u64 = fields.skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
    }
}
