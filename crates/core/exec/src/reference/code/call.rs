//! Calls, and how values travel in them.

use super::Src;
use crate::reference::step::Home;
use margay_ir::{Builtin, FuncId};

/// A value on its way between its home on this side of a call and its places.
pub struct Transfer {
    /// Bytes.
    pub size: u32,
    /// Where it lives on this side.
    pub home: Home,
    /// Its pieces.
    pub pieces: Vec<Piece>,
}

/// A piece of a plan, with registers numbered.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// First byte of the value.
    pub start: u32,
    /// Bytes.
    pub len: u32,
    /// Where it is.
    pub at: Location,
}

/// A place, with registers numbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// First row of the register in the model register file.
    Reg(u32),
    /// Offset in the caller's outgoing area.
    Stack(u32),
    /// Offset in the call's parameter block.
    Space(u32),
    /// Behind the 32-bit pointer in that register.
    Behind(u32),
}

/// What goes through a formal without size.
pub struct Passed {
    /// Offset of the variable in the caller's frame; none if nothing is passed.
    pub from: Option<u32>,
    /// Bytes.
    pub size: u32,
    /// Offset in the outgoing area.
    pub at: u32,
}

/// A call site.
pub struct CallOp {
    /// Who is called.
    pub callee: Target,
    /// Index of the site in the function.
    pub site: u32,
    /// Inputs on the caller's side.
    pub args: Vec<Transfer>,
    /// Returns on the caller's side.
    pub rets: Vec<Transfer>,
    /// What goes through a formal without size.
    pub passed: Option<Passed>,
    /// For values behind pointers: register and offset of the buffer in the caller's frame.
    pub buffers: Vec<(u32, u32)>,
    /// Rows of the parameter block.
    pub space: u32,
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
