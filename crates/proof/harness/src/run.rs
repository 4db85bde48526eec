//! Runs a case on every engine and under every ABI that has a plan for it.

use crate::{
    case::{Arg, At, BufferInit, Case, Expect, Launch, Value},
    expr::{Expr, Scope},
};
use margay::{
    Buffer, Context, DeviceOptions, Error, LaunchConfig, LaunchStats, LoadOptions, Options, SourceText, Stop,
    compare::{Tolerance, close},
    element::{Element, Number},
    image::{Image, reference},
    npy::Array,
    spec::Fill,
};
use margay_ir::abi::registry;
use margay_runtime::{Device, Module};
use parking_lot::Mutex;
use std::{collections::HashMap, io::Write, path::Path, sync::Arc};

/// Environment variables that name the engines and ABIs to test; all without them.
const ENGINE: &str = "MARGAY_TEST_ENGINE";
const ABI: &str = "MARGAY_TEST_ABI";
/// Warp instructions after which a case counts as hanging.
const FUEL: u64 = 50_000_000;
/// Time after which a launch whose threads only poll is a deadlock.
const STALL: std::time::Duration = std::time::Duration::from_millis(20);

/// Those of the engines or ABIs that the environment selects (`MARGAY_TEST_ENGINE=simd`, `MARGAY_TEST_ABI="ptx sysv"`) and the case
/// admits.
fn selected<'n>(variable: &str, names: &[&'n str], only: Option<&[String]>) -> Result<Vec<&'n str>, String> {
    let list = std::env::var(variable).unwrap_or_default();
    let chosen: Vec<&str> = list.split([' ', ',']).filter(|w| !w.is_empty()).collect();
    let admitted = only.unwrap_or_default().iter().map(String::as_str);
    if let Some(unknown) = chosen.iter().copied().chain(admitted).find(|w| !names.contains(w)) {
        return Err(format!("`{unknown}` is none of {}", names.join(", ")));
    }
    let is_wanted = |name: &&str| {
        (chosen.is_empty() || chosen.contains(name)) && only.is_none_or(|only| only.iter().any(|o| o == name))
    };
    Ok(names.iter().copied().filter(is_wanted).collect())
}

/// Runs a case file. The error names engine, ABI and seed.
pub fn run(path: &Path) -> Result<(), String> {
    run_text(path, std::fs::read_to_string(path).map_err(|e| e.to_string())?)
}

/// Like [`run`], for a text; modules that it links are found relative to its path.
pub fn run_text(path: &Path, text: String) -> Result<(), String> {
    let case = Case::parse(&text).map_err(|e| e.to_string())?;
    let mut texts = vec![(path.display().to_string(), text)];
    for link in &case.links {
        let other = path.parent().unwrap_or(Path::new("")).join(link);
        texts.push((other.display().to_string(), std::fs::read_to_string(&other).map_err(|e| format!("{link}: {e}"))?));
    }
    // Cases are too small for tiers: each engine runs alone, and with several CTAs also both in turn.
    let engines: Vec<_> =
        margay::engines().into_iter().chain(margay::alternating()).chain(margay::taking_over()).collect();
    let names: Vec<&str> = engines.iter().map(|e| e.name()).collect();
    let mut of_engines = selected(ENGINE, &names, case.only_engines.as_deref())?;
    let parallel = case.launches.iter().any(|l| l.shape.grid != [1; 3]);
    of_engines.retain(|name| *name != "tiered" && (parallel || *name != "alternating"));
    let abis: Vec<&str> = registry().iter().map(|abi| abi.name()).collect();
    let of_abis = selected(ABI, &abis, case.only_abis.as_deref())?;
    let restricted = [ENGINE, ABI].iter().any(|variable| std::env::var_os(variable).is_some());
    let options = DeviceOptions { threads: Some(2), engines, ..DeviceOptions::default() };
    let device = Device::with(options).map_err(|e| e.to_string())?;
    let mut placed = Vec::new();
    for engine in &of_engines {
        for abi in &of_abis {
            // What it adds is the same under every ABI.
            if *engine == "taking-over" && *abi != "ptx" {
                continue;
            }
            for seed in std::iter::once(0).chain(case.seeds.iter().copied()) {
                let setting = format!("engine {engine}, ABI {abi}, seed {seed}");
                match under(&case, &texts, &device, engine, abi, seed) {
                    Ok(Ran::Yes) => placed.push(*abi),
                    Ok(Ran::NoPlan(why)) if *abi == "ptx" => return Err(format!("{setting}: no plan: {why}")),
                    Ok(Ran::NoPlan(_)) => break,
                    Err(why) => return Err(format!("{setting}: {why}")),
                }
            }
        }
    }
    if restricted {
        return Ok(());
    }
    if placed.is_empty() {
        return Err("no engine runs it under any ABI".into());
    }
    match case.must_place.iter().find(|abi| !placed.contains(&abi.as_str())) {
        Some(abi) => Err(format!("the ABI {abi} cannot place it")),
        None => Ok(()),
    }
}

/// Whether the ABI has a plan for the module.
enum Ran {
    Yes,
    NoPlan(String),
}

fn under(
    case: &Case,
    texts: &[(String, String)],
    device: &Arc<Device>,
    engine: &str,
    abi: &str,
    seed: u64,
) -> Result<Ran, String> {
    let context = device.context();
    let printed = Arc::new(Mutex::new(Vec::new()));
    context.set_output(Box::new(Recorder(printed.clone())));
    let sources: Vec<SourceText<'_>> = texts.iter().map(|(name, text)| SourceText { name, text }).collect();
    let check = Options { relocatable: case.relocatable, verdict: case.verdict, ..Options::default() };
    let options = LoadOptions { check, abi: Some(abi.into()), engine: Some(engine.into()), ..LoadOptions::default() };
    let module = context.load(&sources, &options).map_err(|e| explain(&e))?;
    let mut buffers = Buffers { by_name: HashMap::new() };
    for launch in &case.launches {
        let mut limits = margay::Limits { instructions: Some(FUEL), stall: STALL, ..margay::Limits::default() };
        limits.stack = launch.stack.unwrap_or(limits.stack);
        context.set_limits(limits);
        printed.lock().clear();
        let kernel = match module.kernel(&launch.kernel) {
            Ok(kernel) => kernel,
            Err(Error::NoPlan(why)) => return Ok(Ran::NoPlan(why.reason)),
            Err(e) => return Err(explain(&e)),
        };
        let mut block = kernel.arguments();
        for arg in &launch.args {
            if let Value::Sampler(sampler) = &arg.value {
                let (name, index) = reference(&arg.name);
                module.bind_sampler(name, index, *sampler).map_err(|e| format!("line {}: {e}", launch.line))?;
                continue;
            }
            let fail = |e: &dyn std::fmt::Display| format!("line {}: `{}`: {e}", launch.line, arg.name);
            match buffers.argument(&context, arg).map_err(|e| fail(&e))? {
                Given::Bytes(bytes) => block.push(&bytes).map(drop),
                Given::Address(address) => block.push_address(address).map(drop),
                Given::Bound => {
                    buffers.bind(&module, &arg.name).map_err(|e| fail(&e))?;
                    Ok(())
                }
            }
            .map_err(|e| fail(&e))?;
        }
        let block = block.finish().map_err(|e| format!("line {}: {e}", launch.line))?;
        let config = LaunchConfig { seed, ..LaunchConfig::of(launch.shape) };
        let result = kernel.launch(&config, &block);
        verdict(launch, result)?;
        buffers.refresh()?;
        for arg in &launch.args {
            buffers.unchanged(arg)?;
        }
        for expect in &launch.expects {
            buffers.holds(expect)?;
        }
        if let Some(wanted) = &launch.prints {
            let got = String::from_utf8_lossy(&printed.lock()).into_owned();
            if &got != wanted {
                return Err(format!("line {}: printed {got:?}, expected {wanted:?}", launch.line));
            }
        }
    }
    Ok(Ran::Yes)
}

/// Compares the outcome of a launch with the expected one.
fn verdict(launch: &Launch, result: Result<LaunchStats, Error>) -> Result<(), String> {
    match (&launch.fault, result) {
        (None, Ok(stats)) => {
            let noted = stats.undefined.map(|report| format!("{:?}", report.stop));
            match (&launch.undefined, noted) {
                (None, None) => Ok(()),
                (Some(text), Some(noted)) if noted.contains(text.as_str()) => Ok(()),
                (wanted, noted) => Err(format!("line {}: noted {noted:?}, expected {wanted:?}", launch.line)),
            }
        }
        (None, Err(e)) => Err(explain(&e)),
        (Some((kind, _)), Ok(_)) => Err(format!("line {}: ended well, expected the fault {kind}", launch.line)),
        (Some((kind, text)), Err(Error::Stopped(report))) => {
            let Stop::Fault(fault) = &report.stop else { return Err(explain(&Error::Stopped(report))) };
            let debug = format!("{:?}", fault.kind);
            let name = debug.split(['(', ' ', '{']).next().unwrap_or_default();
            let ([x, y, z], [i, j, k]) = (fault.thread, fault.cta);
            let who = format!("thread ({x}, {y}, {z}) of CTA ({i}, {j}, {k})");
            let ir = &report.image.ir;
            let callers: String = fault.stack.iter().map(|f| format!(" called by {}", ir.func(f.func).name)).collect();
            let all = format!("{debug} {} {who}{callers}", fault.notes.join(" "));
            match name == kind && all.contains(text.as_str()) {
                true => Ok(()),
                false => Err(format!("line {}: ended with {all}, expected {kind} {text}", launch.line)),
            }
        }
        (Some(_), Err(e)) => Err(explain(&e)),
    }
}

/// The text of an error, for the case's author.
fn explain(error: &Error) -> String {
    match error {
        Error::Rejected(files) => {
            let line = |r: &margay_runtime::Rejected, d: &margay::Diagnostic| {
                format!(
                    "{}:{}: {} {}",
                    r.source.name,
                    r.source.lines().line(d.span().start),
                    d.code.info().number,
                    d.message
                )
            };
            let errors = |r: &margay_runtime::Rejected| -> Vec<String> {
                let errors = r.diagnostics.iter().filter(|d| d.severity == margay::Severity::Error);
                errors.map(|d| line(r, d)).collect()
            };
            files.iter().flat_map(errors).collect::<Vec<_>>().join("\n")
        }
        Error::Stopped(report) => {
            let place = match &report.stop {
                Stop::Fault(fault) => fault.at,
                Stop::Unsupported(u) => u.func.zip(u.at),
                Stop::Exhausted(_) | Stop::Bug(_) => None,
            };
            let line = place.map(|(func, at)| report.image.ir.func(func).source.lines().line(at.span.start));
            let notes = if let Stop::Fault(fault) = &report.stop { fault.notes.join("; ") } else { String::new() };
            format!("{error} {}{notes}", line.map(|l| format!("in line {l} ")).unwrap_or_default())
        }
        _ => error.to_string(),
    }
}

struct Recorder(Arc<Mutex<Vec<u8>>>);

impl Write for Recorder {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The contribution of an argument to the parameter block.
enum Given {
    Bytes(Vec<u8>),
    Address(u64),
    /// None: it is bound to a reference of the module.
    Bound,
}

/// The location of a buffer.
pub(crate) enum Store {
    Buffer(Buffer),
    /// On another machine, at this address.
    Elsewhere(u64),
    /// An image, and whether it is bound to a reference.
    Image(Image, bool),
}

pub(crate) struct Named {
    pub(crate) device: Store,
    /// Contents before the launch.
    pub(crate) before: Array,
    /// Contents after the launch.
    pub(crate) now: Array,
}

pub(crate) struct Buffers {
    pub(crate) by_name: HashMap<String, Named>,
}

impl Buffers {
    /// The bytes of an argument; creates its buffer, or takes that of an earlier launch.
    fn argument(&mut self, context: &Arc<Context>, arg: &Arg) -> Result<Given, String> {
        match &arg.value {
            Value::Scalar(element, text) => element.parse(text).map(Given::Bytes),
            Value::Bytes(bytes) => Ok(Given::Bytes(bytes.clone())),
            Value::TensorMap(of, options) => {
                let named = self.by_name.get(of).ok_or("the buffer must come before its map")?;
                let Store::Buffer(buffer) = &named.device else {
                    return Err("an image is not a buffer in linear memory".into());
                };
                let map = options.encode(named.now.element, &named.now.shape, buffer.address())?;
                Ok(Given::Bytes(map.to_vec()))
            }
            Value::Same => {
                let named = self.by_name.get_mut(&arg.name).ok_or("no earlier launch has it")?;
                named.before = named.now.clone();
                match &mut named.device {
                    Store::Buffer(buffer) => Ok(Given::Address(buffer.address())),
                    Store::Elsewhere(address) => Ok(Given::Address(*address)),
                    Store::Image(_, true) => Ok(Given::Bound),
                    Store::Image(image, false) => image.handle(context).map(Given::Address),
                }
            }
            Value::Sampler(_) => Ok(Given::Bound),
            Value::Buffer { element, shape, init, image: Some(shown), .. } => {
                let data = self.contents(*element, shape.iter().product(), init)?;
                let mut image = shown.spec.make(context, *element, shape, &data)?;
                let given = if shown.bound { Given::Bound } else { Given::Address(image.handle(context)?) };
                let before = Array { element: *element, shape: shape.clone(), data };
                let device = Store::Image(image, shown.bound);
                self.by_name.insert(arg.name.clone(), Named { device, now: before.clone(), before });
                Ok(given)
            }
            Value::Buffer { element, shape, init, .. } => {
                let data = self.contents(*element, shape.iter().product(), init)?;
                let device = context.named_buffer(&arg.name, data.len() as u64).map_err(|e| e.to_string())?;
                device.write(0, &data).map_err(|e| e.to_string())?;
                let address = device.address();
                let before = Array { element: *element, shape: shape.clone(), data };
                let device = Store::Buffer(device);
                self.by_name.insert(arg.name.clone(), Named { device, now: before.clone(), before });
                Ok(Given::Address(address))
            }
        }
    }

    pub(crate) fn contents(&self, element: Element, n: u64, init: &BufferInit) -> Result<Vec<u8>, String> {
        Ok(match init {
            BufferInit::Fill(Fill::Zeros | Fill::Nothing) => vec![0; n as usize * element.bytes()],
            BufferInit::Fill(Fill::Iota) => (0..n).flat_map(|i| element.iota(i)).collect(),
            BufferInit::Fill(Fill::Value(text)) => element.parse(text)?.repeat(n as usize),
            BufferInit::Fill(Fill::Random(seed)) => (0..n).flat_map(|i| element.random(*seed, i)).collect(),
            BufferInit::List(values) => {
                let mut data = Vec::new();
                for value in values {
                    data.extend(element.parse(value)?);
                }
                data.resize(n as usize * element.bytes(), 0);
                data
            }
            BufferInit::Formula(expr) => {
                let mut data = Vec::new();
                for i in 0..n {
                    let value = expr.eval(&At0 { buffers: self, index: i }).map_err(|e| e.to_string())?;
                    data.extend(bytes_of(element, value)?);
                }
                data
            }
        })
    }

    fn bind(&self, module: &Module, name: &str) -> Result<(), String> {
        match self.by_name.get(name).map(|named| &named.device) {
            Some(Store::Image(image, _)) => image.bind(module, name).map_err(|e| e.to_string()),
            _ => Err("nothing to bind".into()),
        }
    }

    fn refresh(&mut self) -> Result<(), String> {
        for named in self.by_name.values_mut() {
            let data = match &named.device {
                Store::Buffer(buffer) => buffer.to_vec(),
                Store::Elsewhere(_) => continue,
                Store::Image(image, _) => image.contents(),
            };
            named.now.data = data.map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn unchanged(&self, arg: &Arg) -> Result<(), String> {
        let read_only = matches!(arg.value, Value::Buffer { read_only: true, .. });
        match self.by_name.get(&arg.name).filter(|_| read_only) {
            Some(named) if named.before != named.now => Err(format!("`{}` is `in` and was changed", arg.name)),
            _ => Ok(()),
        }
    }

    pub(crate) fn holds(&self, expect: &Expect) -> Result<(), String> {
        let fail = |why: String| format!("line {}: {}: {why}", expect.line, expect.text);
        let named = self.by_name.get(&expect.buffer).ok_or_else(|| fail("no buffer of that name".into()))?;
        let index = |e: &Expr| match e.eval(&At0 { buffers: self, index: 0 }) {
            Ok(Number::Int(i)) => u64::try_from(i).map_err(|_| fail("a negative index".into())),
            Ok(Number::Float(_)) => Err(fail("an index is an integer".into())),
            Err(e) => Err(fail(e.0)),
        };
        let (from, to) = match &expect.at {
            At::All => (0, named.now.len()),
            At::One(e) => (index(e)?, index(e)? + 1),
            At::Range(from, to) => (index(from)?, index(to)?),
        };
        if to > named.now.len() || from >= to {
            return Err(fail(format!("`{}` has {} elements", expect.buffer, named.now.len())));
        }
        if expect.wanted.len() > 1 && expect.wanted.len() as u64 != to - from {
            return Err(fail(format!("{} elements are compared with {} values", to - from, expect.wanted.len())));
        }
        for i in from..to {
            let wanted = if expect.wanted.len() == 1 { &expect.wanted[0] } else { &expect.wanted[(i - from) as usize] };
            let got = named.now.at(i);
            if !self.equal(named.now.element, got, wanted, i, expect.tolerance).map_err(fail)? {
                let wanted = match wanted {
                    Expr::Bits(bits) => format!("bits {bits:#x}"),
                    e => e.eval(&At0 { buffers: self, index: i }).map_or(String::new(), |n| format!("{n:?}")),
                };
                let bits: String = got.iter().rev().map(|b| format!("{b:02x}")).collect();
                let value = named.now.element.show(got);
                return Err(fail(format!("`{}[{i}]` is {value} (0x{bits}), expected {wanted}", expect.buffer)));
            }
        }
        Ok(())
    }

    fn equal(&self, element: Element, got: &[u8], wanted: &Expr, index: u64, tolerance: f64) -> Result<bool, String> {
        if let Expr::Bits(bits) = wanted {
            return Ok(got == &bits.to_le_bytes()[..got.len().min(8)]);
        }
        let value = wanted.eval(&At0 { buffers: self, index }).map_err(|e| e.0)?;
        let number = element.number(got);
        if tolerance > 0.0 {
            return Ok(close(number, value, Tolerance { relative: 0.0, absolute: tolerance }));
        }
        let is_nan = |n: Number| matches!(n, Number::Float(f) if f.is_nan());
        Ok(is_nan(number) && is_nan(value) || got == bytes_of(element, value)?)
    }
}

/// A number in the format of an element: integers wrap, floats are rounded.
fn bytes_of(element: Element, value: Number) -> Result<Vec<u8>, String> {
    let float = matches!(element.number(&vec![0; element.bytes()]), Number::Float(_));
    match value {
        Number::Int(v) if !float => Ok(v.to_le_bytes()[..element.bytes().min(16)].to_vec()),
        Number::Float(_) if !float => Err(format!("a float is compared with `{element}`")),
        Number::Int(v) => element.parse(&v.to_string()),
        Number::Float(v) => element.parse(&format!("{v:?}")),
    }
}

/// The scope of expressions at one index.
struct At0<'a> {
    buffers: &'a Buffers,
    index: u64,
}

impl Scope for At0<'_> {
    fn name(&self, name: &str) -> Option<Number> {
        match name {
            "i" => Some(Number::Int(i128::from(self.index))),
            "inf" => Some(Number::Float(f64::INFINITY)),
            "nan" => Some(Number::Float(f64::NAN)),
            _ => None,
        }
    }

    fn element(&self, buffer: &str, index: i128) -> Option<Number> {
        let array = &self.buffers.by_name.get(buffer)?.now;
        let index = u64::try_from(index).ok().filter(|i| *i < array.len())?;
        Some(array.element.number(array.at(index)))
    }
}
