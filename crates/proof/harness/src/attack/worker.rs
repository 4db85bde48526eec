//! The child process: reads modules, runs them, and writes a line per outcome.
//!
//! ```text
//! parent → child   run ENGINE GRID BLOCK CLUSTER SHARED STACK THREADS FUEL SEED CHECKED BYTES, then that many bytes of PTX
//! child → parent   panic TEXT      at once, since the process may not survive
//!                  end FIELDS…     separated by tabs
//! ```

use super::{
    Shape,
    end::{End, Fault, without_addresses},
};
use crate::{
    kernels::{COUNTERS, INPUT, WORDS},
    random::Random,
};
use margay::{Buffer, Error, LaunchConfig, LaunchShape, Limits, LoadOptions, SourceText, Stop};
use margay_runtime::{Device, DeviceOptions, Kernel, Module, StopReport};
use margay_sanitizer::{Checks, Sanitizer};
use std::{
    hash::{DefaultHasher, Hasher},
    io::{BufRead, Read, Write},
    sync::Arc,
    time::Duration,
};

/// Time after which a launch whose threads only poll is a deadlock.
const STALL: Duration = Duration::from_millis(20);

/// A job for a child.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// Name of the engine.
    pub engine: &'a str,
    /// The launch.
    pub shape: Shape,
    /// Limit of warp instructions.
    pub fuel: u64,
    /// The scheduling seed of the launch; 0 for the natural order. It also changes the addresses of buffers.
    pub seed: u64,
    /// Whether the sanitizer observes the launch ([`End::Flawed`]).
    pub checked: bool,
    /// The module.
    pub text: &'a str,
}

impl<'a> Job<'a> {
    /// A job with the natural order and without the sanitizer.
    pub fn new(engine: &'a str, shape: &Shape, fuel: u64, text: &'a str) -> Job<'a> {
        Job { engine, shape: shape.clone(), fuel, seed: 0, checked: false, text }
    }

    /// Encodes the job for the pipe.
    pub fn encode(&self) -> Vec<u8> {
        let Shape { grid: g, block: b, cluster, shared, stack, threads } = &self.shape;
        let head = format!(
            "run {} {} {} {} {} {} {} {cluster} {shared} {stack} {threads} {} {} {} {}\n",
            self.engine,
            g[0],
            g[1],
            g[2],
            b[0],
            b[1],
            b[2],
            self.fuel,
            self.seed,
            u8::from(self.checked),
            self.text.len()
        );
        [head.as_bytes(), self.text.as_bytes()].concat()
    }
}

/// Serves jobs until the input ends.
pub fn serve() {
    std::panic::set_hook(Box::new(|info| {
        println!("panic\t{}", escape(&info.to_string()));
        let _ = std::io::stdout().flush();
    }));
    let engines = margay::engines();
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    while input.read_line(&mut line).is_ok_and(|n| n > 0) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| words.get(i).and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
        let small = |i: usize| number(i) as u32;
        let mut text = vec![0; number(15) as usize];
        if input.read_exact(&mut text).is_err() {
            break;
        }
        let job = Job {
            engine: words.get(1).copied().unwrap_or_default(),
            shape: Shape {
                grid: [small(2), small(3), small(4)],
                block: [small(5), small(6), small(7)],
                cluster: small(8),
                shared: small(9),
                stack: small(10),
                threads: number(11) as usize,
            },
            fuel: number(12),
            seed: number(13),
            checked: number(14) != 0,
            text: &String::from_utf8_lossy(&text),
        };
        let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&job, &engines)))
            .unwrap_or_else(|_| End::Panic(String::new()));
        println!("end\t{}", encode(&end));
        let _ = std::io::stdout().flush();
        line.clear();
    }
}

fn run(job: &Job<'_>, engines: &[margay::Engine]) -> End {
    // Only the engines outlive a job: what a kernel leaves on the device heap would affect the next one.
    let device = match Device::with(DeviceOptions {
        threads: Some(job.shape.threads),
        engines: engines.to_vec(),
        ..DeviceOptions::default()
    }) {
        Ok(device) => device,
        Err(e) => return End::Exhausted(e.to_string()),
    };
    let context = device.context();
    context.set_output(Box::new(std::io::sink()));
    context.set_limits(Limits {
        instructions: Some(job.fuel),
        stall: STALL,
        stack: job.shape.stack,
        ..Limits::default()
    });
    let options = LoadOptions { engine: Some(job.engine.into()), ..LoadOptions::default() };
    let module = match context.load(&[SourceText { name: "attack", text: job.text }], &options) {
        Ok(module) => module,
        Err(e) => return of_error(&e, Vec::new),
    };
    // Attacks have one kernel of this name; damaged test modules have others.
    let names = module.kernel_names();
    let name = if names.contains(&"k") { "k" } else { names.first().copied().unwrap_or("k") };
    let kernel = match module.kernel(name) {
        Ok(kernel) => kernel,
        Err(e) => return of_error(&e, Vec::new),
    };
    launch(job, &context, &module, &kernel).unwrap_or_else(|e| of_error(&e, Vec::new))
}

fn launch(job: &Job<'_>, context: &Arc<margay::Context>, module: &Module, kernel: &Kernel) -> Result<End, Error> {
    let shape = &job.shape;
    let threads: u32 = shape.grid.iter().chain(&shape.block).product();
    let mut random = Random::new(5);
    let mut words = |n: u32| -> Vec<u8> { (0..n).flat_map(|_| (random.bits() as u32).to_le_bytes()).collect() };
    // With a seed, buffers have other addresses too: which results depend on addresses is then visible.
    let mut displacing = Vec::new();
    let mut buffer = |name: &str, data: &[u8]| -> Result<Buffer, Error> {
        for _ in 0..job.seed {
            displacing.push(context.buffer(data.len() as u64)?);
        }
        let buffer = context.named_buffer(name, data.len() as u64)?;
        buffer.write(0, data)?;
        Ok(buffer)
    };
    let input = buffer("input", &words(INPUT))?;
    let own = buffer("own", &vec![0; (threads * (WORDS + 32) * 4) as usize])?;
    let sums = buffer("counters", &words(COUNTERS))?;
    let mut block = kernel.arguments();
    for (i, p) in kernel.params().iter().enumerate() {
        let bytes: Vec<u8> = match p.size {
            8 if !p.array => [&input, &own, &sums][i % 3].address().to_le_bytes().to_vec(),
            size => (0..size).map(|at| (at * 7 + 1) as u8).collect(),
        };
        block.push(&bytes).map_err(|e| Error::BadLaunch(e.to_string()))?;
    }
    let block = block.finish().map_err(|e| Error::BadLaunch(e.to_string()))?;
    let dims = LaunchShape {
        shared: shape.shared,
        cluster: (shape.cluster > 1).then_some([shape.cluster, 1, 1]),
        ..LaunchShape::new(shape.grid, shape.block)
    };
    let sanitizer = job.checked.then(|| Sanitizer::new(Checks::ALL, kernel.image().clone(), str::to_owned, dims));
    let config = LaunchConfig {
        threads: Some(shape.threads),
        seed: job.seed,
        observer: sanitizer.as_ref().map(|s| s as &dyn margay_exec::Observer),
        ..LaunchConfig::of(dims)
    };
    let bases = || {
        let mut bases: Vec<(String, u64)> = [("input", &input), ("own", &own), ("counters", &sums)]
            .map(|(name, buffer)| (name.to_owned(), buffer.address()))
            .into();
        for name in names(job.text) {
            bases.extend(module.variable(&name).ok().map(|v| (name, v.address)));
        }
        bases
    };
    Ok(match kernel.launch(&config, &block) {
        Ok(_) => match sanitizer.and_then(|s| s.findings().into_iter().next()) {
            Some(finding) => End::Flawed(finding.title),
            None => {
                let mut sum = DefaultHasher::new();
                for buffer in [&own, &sums, &input] {
                    sum.write(&buffer.to_vec()?);
                }
                End::Done(sum.finish())
            }
        },
        Err(e) => of_error(&e, bases),
    })
}

/// Names of the variables in `.global` and `.const`.
fn names(text: &str) -> Vec<String> {
    let declares = |l: &&str| l.starts_with(".global") || l.starts_with(".const");
    let name = |l: &str| {
        let head = l.split(['[', '=', ';']).next()?;
        head.split_whitespace().last().map(str::to_owned)
    };
    text.lines().filter(declares).filter_map(name).collect()
}

fn of_error(e: &Error, bases: impl Fn() -> Vec<(String, u64)>) -> End {
    match e {
        Error::Rejected(files) => {
            let mut errors = files.iter().flat_map(|f| f.diagnostics.iter().map(move |d| (f, d)));
            let first = errors.find(|(_, d)| d.severity == margay::Severity::Error);
            End::Rejected(first.map_or(String::new(), |(f, d)| {
                format!("line {}: {} {}", f.source.lines().line(d.span().start), d.code.info().number, d.message)
            }))
        }
        Error::Lower(e) if e.unsupported => End::Unsupported(e.message.to_string()),
        Error::Lower(e) => End::Rejected(e.message.to_string()),
        Error::BadLaunch(why) => End::BadLaunch(why.clone()),
        Error::OutOfMemory { .. } => End::Exhausted(e.to_string()),
        Error::Stopped(report) => match &report.stop {
            Stop::Fault(fault) => End::Fault(Box::new(of_fault(fault, report, bases()))),
            Stop::Unsupported(what) => End::Unsupported(what.what.clone()),
            Stop::Exhausted(what) => End::Exhausted(what.0.clone()),
            Stop::Bug(what) => End::Bug(what.0.clone()),
        },
        e => End::Rejected(e.to_string()),
    }
}

fn of_fault(fault: &margay::Fault, report: &StopReport, bases: Vec<(String, u64)>) -> Fault {
    use margay::FaultKind::*;
    let place = |func, at: &margay_ir::SourcePlace| {
        let func = report.image.ir.func(func);
        format!("{}:{}@{}", func.name, func.source.lines().line(at.span.start), at.span.start)
    };
    let mut places: Vec<String> = vec![fault.at.as_ref().map_or("nowhere".into(), |(func, at)| place(*func, at))];
    places.extend(fault.stack.iter().map(|frame| place(frame.func, &frame.at)));
    if places.len() > 8 {
        // The depth at which a recursion overflows is unspecified; the place is not.
        places.truncate(2);
    }
    let (words, access) = match &fault.kind {
        OutOfBounds(a) | UseAfterFree(a) | Misaligned(a) | ReadOnly(a) => {
            (String::new(), Some((a.write, a.address, a.size, a.space.to_owned())))
        }
        Assert(message, file, line, function) => (format!("{message:?} {file:?} {line} {function:?}"), None),
        BadFree { address, .. } => (String::new(), Some((true, *address, 0, "heap".to_owned()))),
        Trap | Breakpoint => (String::new(), None),
        Stack(w) | BadTarget(w) | Deadlock(w) | Barrier(w) | Descriptor(w) | BadHandle(w) | Hazard(w)
        | Undefined(w) => (w.clone(), None),
    };
    let kind = format!("{:?}", fault.kind);
    Fault {
        kind: kind.split(['(', ' ', '{']).next().unwrap_or_default().to_owned(),
        words: without_addresses(&words),
        access,
        thread: fault.thread,
        cta: fault.cta,
        places,
        notes: fault.notes.join("; "),
        bases,
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescape(text: &str) -> String {
    let (mut out, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        out.push(match (c, c == '\\') {
            (c, false) => c,
            _ => match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                c => c.unwrap_or('\\'),
            },
        });
    }
    out
}

fn encode(end: &End) -> String {
    let fields: Vec<String> = match end {
        End::Done(sum) => vec!["done".into(), sum.to_string()],
        End::Flawed(what) => vec!["flawed".into(), what.clone()],
        End::Rejected(why) => vec!["rejected".into(), why.clone()],
        End::BadLaunch(why) => vec!["launch".into(), why.clone()],
        End::Unsupported(why) => vec!["unsupported".into(), why.clone()],
        End::Exhausted(why) => vec!["exhausted".into(), why.clone()],
        End::Bug(why) => vec!["bug".into(), why.clone()],
        End::Panic(why) => vec!["panic".into(), why.clone()],
        End::Died(why) => vec!["died".into(), why.clone()],
        End::Hang => vec!["hang".into()],
        End::Fault(f) => {
            let triple = |v: [u32; 3]| format!("{} {} {}", v[0], v[1], v[2]);
            let access =
                f.access.as_ref().map_or(String::new(), |(w, a, n, s)| format!("{} {a} {n} {s}", u8::from(*w)));
            let bases: Vec<String> = f.bases.iter().map(|(name, at)| format!("{name} {at}")).collect();
            vec![
                "fault".into(),
                f.kind.clone(),
                f.words.clone(),
                access,
                triple(f.thread),
                triple(f.cta),
                f.places.join("|"),
                f.notes.clone(),
                bases.join("|"),
            ]
        }
    };
    fields.iter().map(|f| escape(f)).collect::<Vec<_>>().join("\t")
}

/// Decodes what [`encode`] has written.
pub(super) fn decode(line: &str) -> Option<End> {
    let fields: Vec<String> = line.split('\t').map(unescape).collect();
    let field = |i: usize| fields.get(i).cloned().unwrap_or_default();
    Some(match field(0).as_str() {
        "done" => End::Done(field(1).parse().ok()?),
        "flawed" => End::Flawed(field(1)),
        "rejected" => End::Rejected(field(1)),
        "launch" => End::BadLaunch(field(1)),
        "unsupported" => End::Unsupported(field(1)),
        "exhausted" => End::Exhausted(field(1)),
        "bug" => End::Bug(field(1)),
        "panic" => End::Panic(field(1)),
        "fault" => {
            let triple = |i: usize| {
                let mut v = [0; 3];
                for (to, word) in v.iter_mut().zip(field(i).split(' ')) {
                    *to = word.parse().unwrap_or(0);
                }
                v
            };
            let access = field(3);
            let access: Vec<&str> = access.split(' ').collect();
            let access = (access.len() == 4).then(|| {
                (access[0] == "1", access[1].parse().unwrap_or(0), access[2].parse().unwrap_or(0), access[3].to_owned())
            });
            let base = |b: &str| b.split_once(' ').and_then(|(name, at)| Some((name.to_owned(), at.parse().ok()?)));
            End::Fault(Box::new(Fault {
                kind: field(1),
                words: field(2),
                access,
                thread: triple(4),
                cta: triple(5),
                places: field(6).split('|').map(str::to_owned).collect(),
                notes: field(7),
                bases: field(8).split('|').filter_map(base).collect(),
            }))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_survive_the_way_to_the_parent() {
        let fault = Fault {
            kind: "OutOfBounds".into(),
            words: "tab\there \\ and\nthere".into(),
            access: Some((true, u64::MAX, 16, ".shared".into())),
            thread: [1, 2, 3],
            cta: [4, 5, 6],
            places: vec!["f:3@77".into(), "k:9@123".into()],
            notes: "near".into(),
            bases: vec![("own".into(), 4096)],
        };
        for end in [End::Fault(Box::new(fault)), End::Done(u64::MAX), End::Rejected("a\\tb".into())] {
            assert_eq!(decode(&encode(&end)), Some(end));
        }
    }
}
