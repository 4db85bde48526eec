//! Decoded call sites and the transfers of their arguments and results.

use super::Src;
use crate::reference::step::Home;
use margay_ir::{Builtin, FuncId};

/// The transfer of a value between its home in the caller or callee and its ABI locations.
pub struct Transfer {
    /// Size in bytes.
    pub size: u32,
    /// Home of the value in this function.
    pub home: Home,
    /// The pieces of the value.
    pub pieces: Vec<Piece>,
}

/// A piece of a value in a plan, with decoded registers.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Offset in the value, in bytes.
    pub start: u32,
    /// Length in bytes.
    pub len: u32,
    /// ABI location.
    pub at: Location,
}

/// An ABI location, with decoded registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// First row of the register in the model register file.
    Reg(u32),
    /// Offset in the caller's outgoing area.
    Stack(u32),
    /// Offset in the call's parameter block.
    Space(u32),
    /// Behind the 32-bit pointer in this register.
    Behind(u32),
}

/// The argument for an unsized parameter.
pub struct Passed {
    /// Offset of the variable in the caller's frame; `None` if nothing is passed.
    pub from: Option<u32>,
    /// Size in bytes.
    pub size: u32,
    /// Offset in the outgoing area.
    pub at: u32,
}

/// A call site.
pub struct CallOp {
    /// The callee.
    pub callee: Target,
    /// Index of the call site in the function.
    pub site: u32,
    /// Arguments.
    pub args: Vec<Transfer>,
    /// Results.
    pub rets: Vec<Transfer>,
    /// The argument for an unsized parameter.
    pub passed: Option<Passed>,
    /// For values passed by pointer: the register, and the offset of the buffer in the caller's frame.
    pub buffers: Vec<(u32, u32)>,
    /// Size of the parameter block in rows.
    pub space: u32,
}

/// The callee of a call.
#[derive(Clone, Debug)]
pub enum Target {
    /// A function with a body.
    Func(FuncId),
    /// A function of the device library.
    Builtin(Builtin),
    /// A function without a body.
    Undefined(FuncId),
    /// The function whose address is in a register.
    Indirect(Src),
}
