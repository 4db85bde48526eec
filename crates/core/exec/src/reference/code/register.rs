//! How registers lie in rows, and how operands name them.

use crate::Row;
use margay_isa::Type;

/// The layout of a register in rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Shape {
    /// One row, 32 bits a lane or fewer.
    Word,
    /// Two rows, 64 bits a lane.
    Double,
    /// Four rows, 128 bits a lane.
    Quad,
    /// One row whose word 0 is a mask of lanes.
    Pred,
}

impl Shape {
    /// The shape of a register of a type.
    pub const fn of(ty: Type) -> Shape {
        match ty.bits() {
            1 if matches!(ty, Type::Pred) => Shape::Pred,
            0..=32 => Shape::Word,
            33..=64 => Shape::Double,
            _ => Shape::Quad,
        }
    }

    /// Rows that it takes.
    #[inline(always)]
    pub const fn rows(self) -> usize {
        match self {
            Shape::Word | Shape::Pred => 1,
            Shape::Double => 2,
            Shape::Quad => 4,
        }
    }
}

/// A register or a splatted constant that is read: index of its first row, number of rows, and which of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Src(u32);

const CONST: u32 = 1 << 31;

const PRED: u32 = 1 << 29;

const ROWS_AT: u32 = 26;

const INDEX: u32 = (1 << ROWS_AT) - 1;

impl Src {
    /// A register.
    pub const fn reg(row: u32, shape: Shape) -> Src {
        let pred = if matches!(shape, Shape::Pred) { PRED } else { 0 };
        Src(row | (shape.rows() as u32) << ROWS_AT | pred)
    }

    /// A constant.
    pub const fn constant(row: u32, shape: Shape) -> Src {
        Src(Src::reg(row, shape).0 | CONST)
    }

    /// Whether it is a constant.
    #[inline(always)]
    pub const fn is_const(self) -> bool {
        self.0 & CONST != 0
    }

    /// First row.
    #[inline(always)]
    pub const fn row(self) -> usize {
        (self.0 & INDEX) as usize
    }

    /// Its shape.
    #[inline(always)]
    pub const fn shape(self) -> Shape {
        match self.rows() {
            1 if self.0 & PRED != 0 => Shape::Pred,
            1 => Shape::Word,
            2 => Shape::Double,
            _ => Shape::Quad,
        }
    }

    /// Number of rows.
    #[inline(always)]
    pub const fn rows(self) -> usize {
        (self.0 >> ROWS_AT & 7) as usize
    }

    /// Its rows.
    #[inline(always)]
    pub fn of<'r>(self, regs: &'r [Row], consts: &'r [Row]) -> &'r [Row] {
        let from = if self.is_const() { consts } else { regs };
        &from[self.row()..self.row() + self.rows()]
    }
}

/// A register that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dst {
    /// First row; [`NOWHERE`] for `_`.
    pub row: u32,
    /// Its shape.
    pub shape: Shape,
    /// Bits of the register.
    pub bits: u8,
}

/// No register.
pub const NOWHERE: u32 = u32::MAX;
