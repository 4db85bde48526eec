//! Calls, and how values travel in them.

use super::Src;
use crate::reference::step::Home;
use margay_ir::{Builtin, FuncId};

/// A value that travels in a call: where it lives on this side, and its plan.
pub struct Travel {
    /// Bytes.
    pub size: u32,
    /// Where it lives on this side.
    pub home: Home,
    /// Its pieces.
    pub pieces: Vec<Piece>,
    /// An unsized array: it lies at this offset of the outgoing area, `size` bytes of it.
    pub at: Option<u32>,
}

/// A piece of a plan, with registers numbered.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// First byte of the value.
    pub start: u32,
    /// Bytes.
    pub len: u32,
    /// Where it is.
    pub at: Wire,
}

/// A place, with registers numbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// First row of the register in the model register file.
    Reg(u32),
    /// Offset in the caller's outgoing area.
    Area(u32),
    /// Behind the 32-bit pointer in that register.
    Behind(u32),
}

/// A call site.
pub struct CallOp {
    /// Who is called.
    pub callee: Target,
    /// Index of the site in the function.
    pub site: u32,
    /// Inputs on the caller's side.
    pub args: Vec<Travel>,
    /// Returns on the caller's side.
    pub rets: Vec<Travel>,
    /// For returns behind pointers: register and offset of the buffer in the caller's frame.
    pub buffers: Vec<(u32, u32)>,
}

/// Who is called.
#[derive(Clone, Debug)]
pub enum Target {
    /// A function with a body.
    Func(FuncId),
    /// A function of the device library.
    Builtin(Builtin),
    /// A function without a body.
    Undefined(FuncId),
    /// Through a register.
    Indirect(Src),
}
