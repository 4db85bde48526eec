//! Parameter blocks, laid out as by `cuLaunchKernel`.

use crate::Param;

/// A parameter block under construction.
#[derive(Clone, Debug)]
pub struct Params<'a> {
    params: &'a [Param],
    bytes: Vec<u8>,
    next: usize,
}

/// An argument that does not match the parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParamsError {
    /// More arguments than parameters; the number of parameters.
    TooMany(usize),
    /// Fewer arguments than parameters: arguments given, parameters.
    TooFew(usize, usize),
    /// Parameter index, its size in bytes, size of the argument.
    WrongSize(usize, u32, usize),
}

impl std::fmt::Display for ParamsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ParamsError::TooMany(n) => write!(f, "the kernel has {n} parameters, found more arguments"),
            ParamsError::TooFew(given, n) => {
                write!(f, "the kernel has {n} parameters, found {given} arguments")
            }
            ParamsError::WrongSize(i, wanted, given) => {
                write!(f, "argument {i} has {given} bytes, but the parameter has {wanted}")
            }
        }
    }
}

impl std::error::Error for ParamsError {}

/// Bytes of the block of a kernel's parameters.
pub(crate) fn block_size(params: &[Param]) -> usize {
    params.iter().map(|p| p.offset + p.size).max().unwrap_or(0) as usize
}

impl<'a> Params<'a> {
    /// A zeroed block for these parameters.
    pub(crate) fn new(params: &'a [Param]) -> Params<'a> {
        Params { params, bytes: vec![0; block_size(params)], next: 0 }
    }

    /// Appends the value of the next parameter, of exactly its size.
    pub fn push(&mut self, bytes: &[u8]) -> Result<&mut Self, ParamsError> {
        let index = self.next;
        let param = self.params.get(index).ok_or(ParamsError::TooMany(self.params.len()))?;
        if bytes.len() != param.size as usize {
            return Err(ParamsError::WrongSize(index, param.size, bytes.len()));
        }
        self.bytes[param.offset as usize..][..bytes.len()].copy_from_slice(bytes);
        self.next += 1;
        Ok(self)
    }

    /// Appends an address as the next parameter, of 4 or 8 bytes; an error if it does not fit.
    pub fn push_address(&mut self, address: u64) -> Result<&mut Self, ParamsError> {
        let size = self.params.get(self.next).map_or(8, |p| p.size.min(8));
        if size < 8 && address >> (8 * size) != 0 {
            return Err(ParamsError::WrongSize(self.next, size, 8));
        }
        self.push(&address.to_le_bytes()[..size as usize])
    }

    /// The complete block; an error if parameters are missing.
    pub fn finish(self) -> Result<Vec<u8>, ParamsError> {
        match self.next == self.params.len() {
            true => Ok(self.bytes),
            false => Err(ParamsError::TooFew(self.next, self.params.len())),
        }
    }
}
