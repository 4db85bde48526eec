//! Recordings: results of cases on a GPU, stored in `tests/golden` and compared with margay's results.
//!
//! A [`Machine`] can load a module and launch its kernels: a GPU through CUDA's driver, or margay itself. A recording
//! is a text file: a line that starts with `#` names device and driver, and each other line has the number of a launch,
//! the name of a buffer, its size, and its bytes after the launch in hexadecimal (a hash for large buffers).

use crate::{
    case::{Case, Launch, Value},
    run::{Buffers, Named, Store},
};
use margay::{SourceText, Verdict, npy::Array};
use margay_runtime::{Buffer, Context, LaunchConfig, LoadOptions, Module};
use std::{collections::HashMap, fmt::Write, path::Path, sync::Arc};

/// Size in bytes up to which buffers are recorded in full.
const WHOLE: usize = 4096;

/// A machine that runs PTX.
pub trait Machine {
    /// Loads one module, which replaces the previous one.
    fn load(&mut self, text: &str) -> Result<(), String>;

    /// Copies bytes to new memory; returns its address.
    fn place(&mut self, bytes: &[u8]) -> Result<u64, String>;

    /// Reads memory.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), String>;

    /// Launches a kernel with these arguments and waits for its end.
    fn launch(&mut self, launch: &Launch, arguments: &[Vec<u8>]) -> Result<(), String>;
}

/// Why a case was not recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Left {
    /// It needs features that a [`Machine`] does not have.
    Skipped(String),
    /// The machine rejected or stopped it.
    Failed(String),
}

/// The results of a case on a machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recording {
    /// The lines of the recording, without the one for the device.
    pub text: String,
    /// Expectations that do not hold on the machine.
    pub unmet: Vec<String>,
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// Runs the launches of a case on a machine.
pub fn record(path: &Path, machine: &mut dyn Machine) -> Result<Recording, Left> {
    let text = std::fs::read_to_string(path).map_err(|e| Left::Failed(format!("{}: {e}", path.display())))?;
    let case = Case::parse(&text).map_err(|e| Left::Failed(e.to_string()))?;
    suits(&case).map_err(|why| Left::Skipped(why.into()))?;
    machine.load(&text).map_err(Left::Failed)?;
    let mut buffers = Buffers { by_name: HashMap::new() };
    let mut recording = Recording::default();
    for (number, launch) in case.launches.iter().enumerate() {
        let arguments = arguments(launch, &mut buffers, machine).map_err(Left::Failed)?;
        machine.launch(launch, &arguments).map_err(Left::Failed)?;
        let mut names: Vec<&String> = buffers.by_name.keys().collect();
        names.sort();
        let names: Vec<String> = names.into_iter().cloned().collect();
        for name in names {
            let Some(named) = buffers.by_name.get_mut(&name) else { continue };
            let Store::Elsewhere(address) = named.device else { continue };
            machine.read(address, &mut named.now.data).map_err(Left::Failed)?;
            let data = &named.now.data;
            // Approximate results need not be reproduced bit by bit.
            if launch.expects.iter().any(|e| e.buffer == name && e.tolerance > 0.0) {
                continue;
            }
            let _ = write!(recording.text, "{number} {name} {} ", data.len());
            let _ = match data.len() {
                ..=WHOLE => writeln!(recording.text, "{}", data.iter().map(|b| format!("{b:02x}")).collect::<String>()),
                _ => writeln!(recording.text, "fnv {:016x}", hash(data)),
            };
        }
        recording.unmet.extend(launch.expects.iter().filter_map(|e| buffers.holds(e).err()));
    }
    Ok(recording)
}

/// Whether a case needs kernels and buffers only.
fn suits(case: &Case) -> Result<(), &'static str> {
    let plain = |value: &Value| {
        matches!(value, Value::Scalar(..) | Value::Bytes(_) | Value::Same | Value::Buffer { image: None, .. })
    };
    let each = |f: &dyn Fn(&Launch) -> bool| case.launches.iter().any(f);
    match () {
        () if case.launches.is_empty() => Err("it launches nothing"),
        () if !case.links.is_empty() || case.relocatable => Err("it is linked"),
        () if case.verdict == Verdict::Text => Err("ptxas refuses it"),
        () if each(&|l| l.fault.is_some() || l.prints.is_some()) => Err("it faults or prints"),
        () if each(&|l| l.shape.cluster.is_some() || l.shape.cooperative) => {
            Err("it needs a cluster or a cooperative launch")
        }
        () if each(&|l| l.args.iter().any(|a| !plain(&a.value))) => Err("it has textures, surfaces or tensor maps"),
        () => Ok(()),
    }
}

fn arguments(launch: &Launch, buffers: &mut Buffers, machine: &mut dyn Machine) -> Result<Vec<Vec<u8>>, String> {
    let mut all = Vec::new();
    for arg in &launch.args {
        all.push(match &arg.value {
            Value::Scalar(element, text) => element.parse(text)?,
            Value::Bytes(bytes) => bytes.clone(),
            Value::Buffer { element, shape, init, .. } => {
                let data = buffers.contents(*element, shape.iter().product(), init)?;
                let address = machine.place(&data)?;
                let before = Array { element: *element, shape: shape.clone(), data };
                let device = Store::Elsewhere(address);
                buffers.by_name.insert(arg.name.clone(), Named { device, now: before.clone(), before });
                address.to_le_bytes().to_vec()
            }
            Value::Same => match buffers.by_name.get(&arg.name).map(|named| &named.device) {
                Some(Store::Elsewhere(address)) => address.to_le_bytes().to_vec(),
                _ => return Err(format!("no earlier launch has `{}`", arg.name)),
            },
            Value::Sampler(_) | Value::TensorMap(..) => return Err(format!("`{}` is not a plain argument", arg.name)),
        });
    }
    Ok(all)
}

/// margay's reference engine as a machine.
pub struct Simulated {
    context: Arc<Context>,
    module: Option<Module>,
    memory: Vec<Buffer>,
}

impl Simulated {
    /// Creates the machine in a context.
    pub fn new(context: Arc<Context>) -> Simulated {
        Simulated { context, module: None, memory: Vec::new() }
    }
}

impl Machine for Simulated {
    fn load(&mut self, text: &str) -> Result<(), String> {
        self.memory.clear();
        let options = LoadOptions { engine: Some("reference".into()), ..LoadOptions::default() };
        let module = self.context.load(&[SourceText { name: "case", text }], &options).map_err(|e| e.to_string())?;
        self.module = Some(module);
        Ok(())
    }

    fn place(&mut self, bytes: &[u8]) -> Result<u64, String> {
        let buffer = self.context.buffer(bytes.len() as u64).map_err(|e| e.to_string())?;
        buffer.write(0, bytes).map_err(|e| e.to_string())?;
        self.memory.push(buffer);
        Ok(self.memory.last().map_or(0, Buffer::address))
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), String> {
        let buffer = self.memory.iter().find(|b| b.address() == address).ok_or("no such buffer")?;
        buffer.read(0, bytes).map_err(|e| e.to_string())
    }

    fn launch(&mut self, launch: &Launch, arguments: &[Vec<u8>]) -> Result<(), String> {
        let module = self.module.as_ref().ok_or("no module")?;
        let kernel = module.kernel(&launch.kernel).map_err(|e| e.to_string())?;
        let mut block = kernel.arguments();
        for bytes in arguments {
            // Addresses are eight bytes, but the kernel may have smaller ones.
            block.push(bytes).map(drop).map_err(|e| e.to_string())?;
        }
        let block = block.finish().map_err(|e| e.to_string())?;
        let config = LaunchConfig::of(launch.shape);
        kernel.launch(&config, &block).map(drop).map_err(|e| e.to_string())
    }
}
