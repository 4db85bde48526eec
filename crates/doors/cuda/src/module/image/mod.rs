//! Images that programs load: PTX text, fat binaries with PTX, and results of `cuLinkComplete`.

mod device_runtime;
mod fatbin;
mod holder;

pub use device_runtime::{own_runtime, with_own_runtime};
pub use fatbin::inside;
pub use holder::{foreign_runtimes, name, named};
pub use margay_image::linked::{limit_of, pack};

use holder::{holder, no_ptx};

use crate::{
    code::Code,
    raw::{Host, In, Out},
};
use margay_image::linked::unpack;
use margay_runtime::Error;

/// The first word of an ELF file: machine code of a GPU.
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");

/// The PTX texts of an image of unknown length.
pub fn texts(image: Host) -> Result<Vec<String>, Code> {
    // Any image has at least four bytes, even an invalid string.
    let first: u8 = image.value(0)?;
    if first == b'/'
        && let Some(texts) = unpack(&image.until_zero()?)
    {
        let texts = texts.map_err(|_| Code::INVALID_IMAGE)?;
        return Ok(texts.into_iter().map(with_own_runtime).collect());
    }
    match fatbin::read(image)? {
        Some(found) => Ok(found),
        None if first == 0x7f && image.value::<u32>(0)? == ELF => {
            holder::machine_code(image);
            Err(Code::NO_BINARY_FOR_GPU)
        }
        None => Ok(vec![text(image.until_zero()?)?]),
    }
}

/// The PTX texts of an image of known length, which need not be NUL-terminated.
pub fn texts_of(image: &[u8]) -> Result<Vec<String>, Code> {
    let mut bytes = image.to_vec();
    bytes.push(0);
    texts(Host::of(&bytes))
}

fn text(bytes: Vec<u8>) -> Result<String, Code> {
    String::from_utf8(bytes).map_err(|_| Code::INVALID_IMAGE)
}

/// An error as text, as the command line would show it.
pub fn words(error: &Error) -> String {
    match error {
        Error::Rejected(files) => {
            let all = files.iter().flat_map(|file| file.diagnostics.iter().map(|d| (&file.source, d)));
            let errors = all.filter(|(_, d)| d.severity == margay::Severity::Error);
            errors.map(|(source, d)| margay::render::diagnostic(source, d, false)).collect()
        }
        Error::Stopped(report) => margay::render::stop(report, false),
        other => format!("error: {other}"),
    }
}

/// JIT options (`CUjit_option`); only the logs are honored.
pub struct JitOptions {
    keys: Vec<u32>,
    /// Address of the values.
    values: u64,
}

/// `CUjit_option`
mod jit {
    pub const MAX_REGISTERS: u32 = 0;
    pub const WALL_TIME: u32 = 2;
    pub const INFO_LOG: u32 = 3;
    pub const INFO_LOG_SIZE: u32 = 4;
    pub const ERROR_LOG: u32 = 5;
    pub const ERROR_LOG_SIZE: u32 = 6;
}

impl JitOptions {
    /// No options.
    pub fn none() -> JitOptions {
        JitOptions { keys: Vec::new(), values: 0 }
    }

    /// Options as the API passes them: keys, and values that are numbers or addresses.
    pub fn new(count: u32, keys: In<u32>, values: Out<u64>) -> JitOptions {
        JitOptions { keys: (0..count as usize).map_while(|i| keys.nth(i).ok()).collect(), values: values.address() }
    }

    fn place(&self, key: u32) -> Option<usize> {
        self.keys.iter().position(|k| *k == key)
    }

    /// The place of a value.
    fn at(&self, place: usize) -> Host {
        Host::unified(self.values).offset(place * size_of::<u64>())
    }

    fn value(&self, key: u32) -> Option<u64> {
        let mut value = [0; size_of::<u64>()];
        self.place(key).and_then(|i| self.at(i).read(&mut value).ok())?;
        Some(u64::from_ne_bytes(value))
    }

    /// The limit of registers per thread; 0 is none.
    pub fn max_registers(&self) -> Option<u32> {
        self.value(jit::MAX_REGISTERS).map(|most| most as u32).filter(|most| *most > 0)
    }

    /// Fills the error log, and returns its length in the options.
    pub fn report(&self, errors: &str) -> Result<(), Code> {
        self.log(jit::ERROR_LOG, jit::ERROR_LOG_SIZE, errors)?;
        self.log(jit::INFO_LOG, jit::INFO_LOG_SIZE, "")?;
        match self.place(jit::WALL_TIME) {
            Some(i) => self.at(i).write(&0u64.to_ne_bytes()),
            None => Ok(()),
        }
    }

    /// Whether the program provides an error log.
    pub fn reads_errors(&self) -> bool {
        self.value(jit::ERROR_LOG).is_some_and(|at| at != 0)
    }

    fn log(&self, buffer: u32, size: u32, text: &str) -> Result<(), Code> {
        let (Some(at), Some(place)) = (self.value(buffer), self.place(size)) else { return Ok(()) };
        let room = self.value(size).unwrap_or(0) as usize;
        if at == 0 || room == 0 {
            return Ok(());
        }
        let mut end = text.len().min(room - 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = text.as_bytes()[..end].to_vec();
        bytes.push(0);
        Host::unified(at).write(&bytes)?;
        self.at(place).write(&(end as u64).to_ne_bytes())
    }
}
