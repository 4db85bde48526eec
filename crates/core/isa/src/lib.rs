//! The instruction table of PTX: which forms exist, which operands they take, and since when.
//!
//! Everything here is `const` data plus lookup. The crate knows nothing about text, trees or engines, and has no
//! dependencies. All other crates use this table; there is no second list of opcodes.
//!
//! * [`Type`], [`Space`], [`Version`], [`Target`], [`Special`]: the vocabulary of chapters 4, 5, 10 and 11.
//! * [`Mod`] and [`Class`]: modifier words that are not types, and their classes (`.rn .rz .rm .rp`).
//! * [`Op`], [`Form`], [`Slot`], [`Opnd`]: a row of the table. A *form* is one line of the manual's grammar.
//! * [`name`]: the names by which engines find operands.
//! * [`resolve()`]: maps an opcode and modifier words to a [`Variant`], or returns what was expected instead.
//! * [`table`]: the rows, one file per manual section.
#![forbid(unsafe_code)]

mod modifier;
pub mod name;
mod notation;
mod operand;
mod parts;
mod resolve;
mod row;
mod rule;
pub mod sample;
mod shape;
mod since;
mod space;
mod special;
pub mod table;
mod target;
mod types;

pub use modifier::{Class, Mod, Word};
pub use operand::*;
pub use parts::{Part, Parts};
pub use resolve::{Mismatch, Resolved, Variant, resolve};
pub use row::*;
pub use rule::Rule;
pub use shape::Shape;
pub use since::{Asked, COMMON, Missing, Need, Since, Until, m, need, need_on, t};
pub use space::Space;
pub use special::{Component, Special, SpecialInfo};
pub use table::Opcode;
pub use target::{Suffix, Target, Version};
pub use types::{Kind, Type};
