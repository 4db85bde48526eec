//! The intermediate representation: a control-flow graph whose instructions are rows of the `isa` table.
//!
//! There is no second list of opcodes here: an [`Inst`] carries a [`margay_isa::Variant`]. What lowering adds is *shape*:
//! basic blocks and terminators; scalar virtual registers (vectors split, the carry flag made explicit); operands
//! sorted into destinations and sources; constants as bits of the operand's type; call sites; and every variable
//! in a thread's frame (`.local`, `.param`, parameters) as a [`FrameVar`].
//!
//! * [`lower()`]: links modules and lowers their functions; [`verify()`] checks the invariants of a program; [`print()`] prints it.
//! * [`pass`]: analyses, which change nothing.
//! * [`abi`]: calling conventions as plans, frames, and the report of `margay abi`.
//! * [`explicit`]: calls as guards and moves, for every engine.
//!
//! Stages are types. [`lower()`] returns `Ir<Virtual>`; [`abi::place`] turns it into `Ir<Placed>`, which has a frame layout for
//! every function and a [`abi::Plan`] for every signature. Engines take `Ir<Placed>` only.
#![forbid(unsafe_code)]

pub mod abi;
mod atomic;
pub mod explicit;
mod func;
mod lower;
pub mod pass;
mod print;
mod program;
mod types;
mod verify;

pub use atomic::AtomicOp;
pub use func::*;
pub use lower::{Linked, LowerError, LowerOptions, declare, lower, lower_with, signature};
pub use print::{print, print_func};
pub use program::*;
pub use types::{OperandTypes, operand_types};
pub use verify::{IrError, verify};
