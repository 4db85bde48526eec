//! Calling conventions: pure functions from a [`Signature`] to a [`Plan`] that assigns a location to every byte.
//!
//! PTX hides the convention (manual, chapter 7), so the same text can have several. An ABI only assigns *locations*; everything
//! that moves bytes (call sequences, prologues, `margay abi`) is written once against the plan, and [`verify()`] checks any
//! plan: every byte once, aligned, nothing overlapping.

pub mod html;
mod json;
mod kernel;
mod legacy;
mod place;
mod ptx;
mod registry;
pub mod report;
mod simd;
mod sm;
mod sysv;
mod verify;

pub use kernel::{KernelLayout, kernel_layout, kernel_limit};
pub use legacy::Legacy;
pub use place::{kernel_plan, place};
pub use ptx::Ptx;
pub use registry::{DEFAULT, by_name, registry};
pub use simd::Simd;
pub use sm::{Sm, return_address};
pub use sysv::SysV;
pub use verify::{PlanError, verify, verify_with};

use crate::{
    Ir, Virtual,
    explicit::{Interface, Sequence},
};
use margay_check::FormalSpace;
use margay_isa::Type;
use std::ops::Range;

/// A parameter or return value as an ABI sees it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Value {
    /// Element type.
    pub ty: Type,
    /// Elements of a `.v2`/`.v4`; else 1.
    pub vector: u8,
    /// `.reg` or `.param`.
    pub space: FormalSpace,
    /// Size in bytes; 0 for an unsized array, whose size the caller determines. A predicate counts as 1.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// True for arrays, sized or not: passed as a block of bytes.
    pub array: bool,
    /// True for `[]`.
    pub is_unsized: bool,
    /// Whether it may differ between the lanes of a warp.
    pub varying: bool,
}

impl Value {
    /// An array of bytes in `.param` space.
    pub fn bytes(size: u32, align: u32) -> Value {
        Value { array: true, ..Value::scalar(Type::B8, FormalSpace::Param) }.sized(size, align)
    }

    /// A scalar.
    pub fn scalar(ty: Type, space: FormalSpace) -> Value {
        let size = ty.bytes().max(1);
        Value { ty, vector: 1, space, size, align: size, array: false, is_unsized: false, varying: true }
    }

    fn sized(mut self, size: u32, align: u32) -> Value {
        (self.size, self.align) = (size, align);
        self
    }
}

/// The signature that caller and callee agree on.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Signature {
    /// Inputs in order.
    pub params: Vec<Value>,
    /// Return values in order; more than one only without the stack-based ABI.
    pub rets: Vec<Value>,
    /// `.abi_preserve N`
    pub preserve: Option<u32>,
    /// `.abi_preserve_control N`
    pub preserve_control: Option<u32>,
}

/// A register of an ABI's machine. Which bytes a register holds is [`Reg::bytes`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Reg {
    /// Class: `R` (32-bit GPUs' general registers), `rdi`-like names use `I`, `xmm` use `X`, SIMD scalars `S`, vectors `V`.
    pub class: char,
    /// Number within the class.
    pub index: u16,
    /// Width in bytes (per lane).
    pub bytes: u16,
}

/// The location of bytes at the call (or at the return).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// In a register, from its byte 0.
    Reg(Reg),
    /// In the outgoing area of the caller's stack, at an offset.
    Stack {
        /// Bytes from the area's start.
        offset: u32,
    },
    /// In PTX's own parameter space, at an offset of the call's parameter block.
    Space {
        /// Bytes from the block's start.
        offset: u32,
    },
    /// In memory of the caller whose address is in the register (hidden pointer).
    Behind(Reg),
}

/// A part of a value at a location; a value may be split.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Piece {
    /// Which bytes of the value.
    pub bytes: Range<u32>,
    /// Where they are. For [`Place::Behind`], at offset `bytes.start` from the pointer.
    pub at: Place,
}

/// The locations of all inputs and return values.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Plan {
    /// The pieces of each input. An unsized array has one `Stack` or `Space` piece with an empty range, which gives its start.
    pub args: Vec<Vec<Piece>>,
    /// Pieces of each return.
    pub rets: Vec<Vec<Piece>>,
    /// Bytes of the outgoing area (stack or parameter block), without unsized arrays.
    pub stack: u32,
    /// Registers that the callee may overwrite.
    pub clobbers: Vec<Reg>,
}

/// Size, alignment, elements, whether an array, and whether unsized, of the inputs and of the return values.
pub type Shape = [Vec<(u32, u32, u8, bool, bool)>; 2];

impl Signature {
    /// The parts of the signature that matter to indirect calls; types do not.
    pub fn shape(&self) -> Shape {
        let shape = |v: &Value| (v.size, v.align, v.vector, v.array, v.is_unsized);
        [&self.params, &self.rets].map(|values| values.iter().map(shape).collect())
    }

    /// Whether a caller that expects `self` may call a function with `other`: the same sizes, alignments and kinds of
    /// values. Types do not matter.
    pub fn compatible(&self, other: &Signature) -> bool {
        self.shape() == other.shape()
    }
}

/// Why an ABI has no plan for a signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoPlan {
    /// The value, if it concerns one: `args[2]`.
    pub value: Option<String>,
    /// Why.
    pub reason: String,
}

impl NoPlan {
    /// Without a particular value.
    pub fn new(reason: impl Into<String>) -> NoPlan {
        NoPlan { value: None, reason: reason.into() }
    }

    /// About one value: `args[2]`.
    pub fn of(value: impl Into<String>, reason: impl Into<String>) -> NoPlan {
        NoPlan { value: Some(value.into()), reason: reason.into() }
    }
}

impl std::fmt::Display for NoPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{value}: {}", self.reason),
            None => write!(f, "{}", self.reason),
        }
    }
}

impl std::error::Error for NoPlan {}

/// A calling convention.
pub trait Abi: Send + Sync {
    /// `ptx`, `sm`, `sysv`, `simd`, `legacy`.
    fn name(&self) -> &'static str;
    /// All registers that its plans may use.
    fn registers(&self) -> &[Reg];
    /// The plan of a signature. Pure: the same signature has the same plan. `lanes` is the number of lanes of a vector register.
    fn plan(&self, sig: &Signature, lanes: u32) -> Result<Plan, NoPlan>;

    /// Checks for whole-program restrictions: an ABI without a stack rejects recursion here.
    fn accepts(&self, _program: &Ir<Virtual>) -> Result<(), NoPlan> {
        Ok(())
    }

    /// Whether values that are the same in all lanes of a call are passed differently: if so, [`place()`] determines them.
    fn distinguishes_uniform(&self) -> bool {
        false
    }

    /// The registers that can carry inputs, in order of assignment, if the list is short. For diagrams.
    fn argument_registers(&self) -> Vec<Reg> {
        Vec::new()
    }

    /// A one-line description of the convention.
    fn about(&self) -> &'static str {
        ""
    }

    /// The usual name of a register.
    fn register_name(&self, reg: Reg) -> String {
        format!("{}{}", reg.class, reg.index)
    }
}

/// What [`place()`] adds to a function.
#[derive(Clone, Hash, Debug)]
pub struct FuncPlaces {
    /// Plan of the function's own signature.
    pub plan: Plan,
    /// Offset of every frame variable from the frame's base, by [`crate::FrameId`]. Unsized formals: see [`Plan::args`].
    pub frame: Vec<u32>,
    /// Local address of a kernel's frame, above module-scope variables; 0 in device functions, whose frames are placed where they are
    /// called.
    pub base: u32,
    /// Bytes of the frame, the outgoing area and buffers included.
    pub frame_size: u32,
    /// Alignment of the frame.
    pub frame_align: u32,
    /// Offset of the outgoing area in the frame.
    pub outgoing: u32,
    /// Plans of call sites, by index of [`crate::Func::calls`].
    pub calls: Vec<Plan>,
    /// The function's own side of its calls.
    pub interface: Interface,
    /// Call sites, by index of [`crate::Func::calls`].
    pub sequences: Vec<std::sync::Arc<Sequence>>,
}

/// Space in a caller's frame for a value that a plan passes by pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Buffer {
    /// The register that carries the pointer.
    pub pointer: Reg,
    /// Offset in the frame.
    pub at: u32,
    /// Bytes.
    pub size: u32,
}

impl FuncPlaces {
    /// Size in bytes of the local window of a thread that runs this kernel, given the stack size for its callees.
    pub fn local_size(&self, stack: u32) -> u32 {
        let size = self.base.saturating_add(self.frame_size).saturating_add(stack);
        size.checked_next_multiple_of(16).unwrap_or(!15)
    }
}
