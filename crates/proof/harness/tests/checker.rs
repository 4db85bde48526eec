//! The labeled programs of `tests/checker`: CUDA, and the PTX that nvcc made of it.
//!
//! A kernel is a line that begins with `K NAME(`. It is wrong if lines of it end in `//~ KIND`: then findings of that kind must come,
//! at seed 0, whose threads are at those lines; `//~ KIND, KIND` for several. In functions that a kernel calls, `//~ KIND KERNEL` names the kernel. A kernel without
//! marks is right, and nothing may be found under any seed. A report has what follows `//?` on a line of the kernel. The kind `fault` is a fault, which ends the launch. `//@ WORDS` on the line
//! before says how to launch it: `grid=4`, `block=32`, `cluster=2`, `shared=512`, `coop`; `zero` for buffers of zeros (else elements are 0
//! to 7 in turn), `uninit=0` for an argument that the host does not write, `alias=1` for one that is the first buffer again, `null=1` for a null pointer; `findings=1` how many there are; `unlined`, that the PTX has no
//! line information, so that only the kinds of findings are compared. Numbers are 4. `MARGAY_CHECKER_FOLDER` names another folder of such
//! programs, to try some before they belong here.

use libtest_mimic::{Arguments, Failed, Trial};
use margay::findings::{Files, Item, cuda, human};
use margay::{Context, Device, DeviceOptions, Error, LaunchConfig, LaunchShape, LoadOptions, SourceText};
use margay_exec::Stop;
use margay_ir::{FuncId, SourcePlace};
use margay_isa::Type;
use margay_runtime::Module;
use margay_sanitizer::{Checks, Finding, Sanitizer};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Elements of a buffer.
const ELEMENTS: u64 = 1024;
/// Seeds under which correct programs must have no findings.
const SEEDS: std::ops::RangeInclusive<u64> = 0..=20;

/// A kernel with its expectations.
#[derive(Clone, Debug)]
struct Label {
    kernel: String,
    words: Vec<String>,
    /// Kind and line.
    marks: BTreeSet<(String, u32)>,
    /// What the reports contain.
    texts: Vec<String>,
}

impl Label {
    fn number(&self, word: &str, otherwise: u32) -> u32 {
        let value = self.words.iter().find_map(|w| w.strip_prefix(word)?.strip_prefix('='));
        value.map_or(otherwise, |v| v.parse().expect("a number"))
    }

    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|w| w == word)
    }
}

fn labels(text: &str) -> Vec<Label> {
    let (mut all, mut words, mut foreign) = (Vec::<Label>::new(), Vec::new(), Vec::new());
    let mut inside = false;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(directive) = line.strip_prefix("//@") {
            words = directive.split_whitespace().map(str::to_owned).collect();
        }
        if let Some((kernel, _)) = line.strip_prefix("K ").and_then(|rest| rest.split_once('(')) {
            let words = std::mem::take(&mut words);
            all.push(Label { kernel: kernel.into(), words, marks: BTreeSet::new(), texts: Vec::new() });
            inside = true;
        }
        if let (Some((_, text)), Some(label)) = (line.split_once("//? "), all.last_mut()) {
            label.texts.push(text.trim().into());
        }
        let marks = line.split_once("//~ ").map(|(_, marks)| marks.split(',')).into_iter().flatten();
        for mark in marks.map(str::trim) {
            match mark.rsplit_once(' ') {
                Some((kind, kernel)) if kernel.ends_with("_wrong") => {
                    foreign.push((kernel.to_owned(), (kind.to_owned(), number)));
                }
                _ if inside => drop(all.last_mut().expect("a kernel").marks.insert((mark.into(), number))),
                _ => panic!("line {number}: a mark outside of a kernel"),
            }
        }
        inside &= line != "}";
    }
    for (kernel, mark) in foreign {
        all.iter_mut().find(|l| l.kernel == kernel).expect("the kernel of a mark").marks.insert(mark);
    }
    all
}

/// The findings, and where the kernel faulted.
type Outcome = (Vec<Finding>, Option<(FuncId, SourcePlace)>);

fn launch(
    context: &Arc<Context>,
    module: &Module,
    label: &Label,
    (seed, what): (u64, Checks),
) -> Result<Outcome, String> {
    let kernel = module.kernel(&label.kernel).map_err(|e| e.to_string())?;
    let mut arguments = kernel.arguments();
    let mut buffers: Vec<margay::Buffer> = Vec::new();
    for (i, param) in kernel.params().iter().enumerate() {
        if !matches!(param.ty, Type::U64 | Type::B64) {
            arguments.push(&4u32.to_le_bytes()).map_err(|e| e.to_string())?;
            continue;
        }
        let is = |word: &str| label.number(word, u32::MAX) == i as u32;
        if is("null") {
            arguments.push_address(0).map_err(|e| e.to_string())?;
            continue;
        }
        if let Some(first) = buffers.first().filter(|_| is("alias")) {
            arguments.push_address(first.address()).map_err(|e| e.to_string())?;
            continue;
        }
        let buffer = context.buffer(4 * ELEMENTS).map_err(|e| e.to_string())?;
        let element = |i: u64| if label.has("zero") { 0 } else { (i % 8) as u32 };
        if !is("uninit") {
            let bytes: Vec<u8> = (0..ELEMENTS).flat_map(|i| element(i).to_le_bytes()).collect();
            buffer.write(0, &bytes).map_err(|e| e.to_string())?;
        }
        arguments.push_address(buffer.address()).map_err(|e| e.to_string())?;
        buffers.push(buffer);
    }
    let block = arguments.finish().map_err(|e| e.to_string())?;
    let line = |word: &str, otherwise: u32| [label.number(word, otherwise), 1, 1];
    let (grid, threads, cluster) = (line("grid", 1), line("block", 128), line("cluster", 1));
    let shape = LaunchShape {
        shared: label.number("shared", 0),
        cluster: (cluster != [1; 3]).then_some(cluster),
        cooperative: label.has("coop"),
        ..LaunchShape::new(grid, threads)
    };
    let sanitizer = Sanitizer::new(what, kernel.image().clone(), margay::render::short_name, shape).with_params(&block);
    let config = LaunchConfig { seed, observer: Some(&sanitizer), ..LaunchConfig::of(shape) };
    match kernel.launch(&config, &block) {
        Ok(_) => Ok((sanitizer.findings(), None)),
        Err(Error::Stopped(report)) if label.marks.iter().any(|(kind, _)| kind == "fault") => match report.stop {
            Stop::Fault(fault) => Ok((sanitizer.findings(), fault.at)),
            other => Err(format!("seed {seed}: {other:?}")),
        },
        Err(e) => Err(format!("seed {seed}: {e}")),
    }
}

/// Kinds and CUDA lines of the findings' threads.
fn seen(module: &Module, label: &Label, findings: &[Finding]) -> Result<BTreeSet<(String, u32)>, String> {
    let kernel = module.kernel(&label.kernel).map_err(|e| e.to_string())?;
    let mut all = BTreeSet::new();
    let mut files = Files::default();
    for finding in findings {
        for party in &finding.parties {
            let places = std::iter::once(party.at).chain(party.callers.iter().map(|c| (c.func, c.at)));
            for place in places {
                for line in cuda(kernel.image(), place, &mut files) {
                    if line.file.ends_with(".cu") {
                        all.insert((finding.kind.name().to_owned(), line.line));
                    }
                }
            }
        }
    }
    Ok(all)
}

fn show(module: &Module, label: &Label, findings: &[Finding]) -> String {
    let Ok(kernel) = module.kernel(&label.kernel) else { return String::new() };
    let mut files = Files::default();
    findings
        .iter()
        .map(|finding| human(Item { image: Some(kernel.image()), kernel: &label.kernel, finding }, &mut files))
        .collect()
}

/// A program of the corpus, on an engine.
fn load(path: &Path, engine: &str) -> Result<(Arc<Context>, Module), Failed> {
    let ptx = path.with_extension("ptx");
    let text = std::fs::read_to_string(&ptx)?;
    let options = DeviceOptions { threads: Some(1), engines: margay::engines(), ..DeviceOptions::default() };
    let device = Device::with(options).map_err(|e| e.to_string())?;
    device.memory().track_writes();
    let context = device.context();
    let limits = margay::Limits { instructions: Some(50_000_000), ..margay::Limits::default() };
    context.set_limits(limits);
    let name = ptx.display().to_string();
    let options = LoadOptions { engine: Some(engine.into()), ..LoadOptions::default() };
    let module = context.load(&[SourceText { name: &name, text: &text }], &options).map_err(|e| e.to_string())?;
    Ok((context, module))
}

/// A report without what differs from run to run, and without how often something was seen, which depends on the order of threads.
fn stable(report: &str) -> String {
    let varies = |line: &&str| {
        let counts = line.contains(" times in this launch");
        counts || line.contains("note: ") && line.contains(" bytes at 0x")
    };
    let address = |word: &str| word.starts_with("0x") && word.len() > 10;
    let words = |line: &str| line.split(' ').filter(|w| !address(w)).collect::<Vec<_>>().join(" ") + "\n";
    report.lines().filter(|line| !varies(line)).map(words).collect()
}

/// Compiled code, where it may be observed, has the findings of the reference engine, word for word.
fn compare(path: &Path, label: &Label) -> Result<(), Failed> {
    let order = Checks { races: true, sync: true, ..Checks::NONE };
    for what in [order, Checks { races: false, ..order }, Checks { memory: true, ..order }] {
        let mut all = Vec::new();
        for engine in ["reference", "simd"] {
            let (context, module) = load(path, engine)?;
            let (found, fault) = launch(&context, &module, label, (0, what))?;
            all.push(format!("{}{fault:?}", stable(&show(&module, label, &found))));
        }
        if all[0] != all[1] {
            return Err(format!("the reference engine finds\n{}\nand the SIMD engine\n{}", all[0], all[1]).into());
        }
    }
    Ok(())
}

fn run(path: &Path, label: &Label) -> Result<(), Failed> {
    let (context, module) = load(path, "reference")?;
    let (found, fault) = launch(&context, &module, label, (0, Checks::ALL))?;
    if label.marks.is_empty() {
        // A launch finds in variables what the one before it has left there.
        let keeps = std::fs::read_to_string(path.with_extension("ptx"))?.lines().any(|l| l.contains(".global .align"));
        let mut fresh = (context, module);
        for seed in SEEDS {
            if keeps && seed > 0 {
                fresh = load(path, "reference")?;
            }
            let (context, module) = &fresh;
            let found = if seed == 0 { found.clone() } else { launch(context, module, label, (seed, Checks::ALL))?.0 };
            if !found.is_empty() {
                return Err(format!("it is right, and with seed {seed}:\n{}", show(module, label, &found)).into());
            }
        }
        return Ok(());
    }
    if label.number("findings", found.len() as u32) != found.len() as u32 {
        return Err(format!("another number of findings:\n{}", show(&module, label, &found)).into());
    }
    let mut lines = seen(&module, label, &found)?;
    if let Some(fault) = fault {
        let kernel = module.kernel(&label.kernel).map_err(|e| e.to_string())?;
        let places = cuda(kernel.image(), fault, &mut Files::default());
        lines.extend(places.iter().map(|line| ("fault".to_owned(), line.line)));
    }
    let announced = |(kind, _): &&(String, u32)| label.has("unlined") && found.iter().any(|f| f.kind.name() == kind);
    let missing: Vec<_> = label.marks.difference(&lines).filter(|mark| !announced(mark)).collect();
    if !missing.is_empty() {
        return Err(format!("nothing found at {missing:?}; there is\n{}", show(&module, label, &found)).into());
    }
    let reports = show(&module, label, &found);
    if let Some(text) = label.texts.iter().find(|text| !reports.contains(text.as_str())) {
        return Err(format!("no report has `{text}`; there is\n{reports}").into());
    }
    // What is told of besides must be of a kind that was announced. A race may read what nobody has written yet, and
    // nobody has written what lies beyond.
    let mut kinds: BTreeSet<&str> = label.marks.iter().map(|(kind, _)| kind.as_str()).collect();
    if kinds.contains("race") || kinds.contains("out of bounds") {
        kinds.insert("uninitialized");
    }
    match found.iter().find(|f| !kinds.contains(f.kind.name())) {
        Some(other) => Err(format!("another kind:\n{}", show(&module, label, std::slice::from_ref(other))).into()),
        None => Ok(()),
    }
}

fn main() {
    let own = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/checker");
    let folder = std::env::var_os("MARGAY_CHECKER_FOLDER").map_or_else(own, PathBuf::from);
    let mut trials = Vec::new();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("tests/checker").map(|f| f.expect("a file").path()).collect();
    files.sort();
    for path in files.into_iter().filter(|p| p.extension().is_some_and(|e| e == "cu")) {
        let text = std::fs::read_to_string(&path).expect("CUDA text");
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        for label in labels(&text) {
            let (path, name) = (path.clone(), format!("{stem}::{}", label.kernel));
            if margay::engines().iter().any(|e| e.name() == "simd") {
                let (path, label) = (path.clone(), label.clone());
                trials.push(Trial::test(format!("simd::{name}"), move || compare(&path, &label)));
            }
            trials.push(Trial::test(name, move || run(&path, &label)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
