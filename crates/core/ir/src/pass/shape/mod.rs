//! How values depend on the lane: shapes, and arithmetic on shapes for addresses.
//!
//! A warp of a 16 x 16 block is two rows of 16 threads. In general, the lanes of a warp form rows of 4, 8, 16 or all 32 of
//! them along which `%tid.x` increases, and an index is a base for each row plus a stride along it. Sums, differences and
//! products with constants preserve this form in arithmetic of the register's width. Widening preserves it only if no lane wraps
//! around inside a row; two more facts prove that for most indices: the alignment of the first value of each row, and
//! a power of two that bounds all values. If they do not, the shape is a *hint*: code must check at run time.

mod fact;

pub(super) use fact::Fact;

use crate::{MemSpace, Operand};
use fact::arithmetic;
use margay_isa::{Component, Effect, Mod, Opcode, Special, Variant};

/// How a value depends on the lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Equal in all lanes that execute together.
    Uniform,
    /// In rows of `width` lanes: lane `i` holds the value of its row's first lane plus `stride * (i % width)`, in the
    /// arithmetic of the register's width.
    Affine {
        /// Lanes of a row: 4, 8, 16 or 32.
        width: u32,
        /// From one lane to the next.
        stride: i64,
    },
    /// Anything.
    Varying,
}

/// The widths that rows can have, widest first.
const WIDTHS: [u32; 4] = [32, 16, 8, 4];

/// What is known of the block shape: threads in x, y, z, if the code is specialized for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct WarpShape {
    /// `%ntid`, if known.
    pub block: Option<[u32; 3]>,
    /// Lanes may be at different iterations of a loop at the same time (an engine that lets lanes overtake others that spin):
    /// then nothing that a loop defines is shared by lanes.
    pub interleaved: bool,
    /// Lanes of a warp may wait for each other in the middle of a sweep, so a block may be executed again for other lanes: then only values
    /// derived from constants and parameters are shared by lanes.
    pub divergent: bool,
    /// The analysis is of all threads of a CTA instead of the lanes of a warp: uniform values are equal in all of them, and divergent blocks
    /// are reached by a part of them. Threads of different warps are not in lockstep, so values derived from memory other than constants
    /// and parameters do not count as uniform.
    pub cta: bool,
    /// With `cta`: weak loads of global and shared memory from an address that is the same in all threads count too. Between two barriers,
    /// threads of a CTA load different values from one place only if they race with a write.
    pub loads: bool,
    /// Registers with narrower rows count as varying, because code for many rows is long. So do registers whose rows are narrower than a warp
    /// and not certain. 0: rows of all widths count.
    pub narrowest: u32,
}

impl WarpShape {
    /// Shape of a coordinate.
    fn tid(self, component: Component) -> Fact {
        let Some([x, y, z]) = self.block else { return Fact { high: 10, ..Fact::VARYING } };
        let (below, own, above) = match component {
            Component::X => (1, x, y * z),
            Component::Y => (x, y, z),
            Component::Z => (x.saturating_mul(y), z, 1),
            Component::W => return Fact::constant(0),
        };
        let high = (32 - own.saturating_sub(1).leading_zeros()) as u8;
        if own == 1 {
            return Fact::constant(0);
        }
        // Lanes beyond the last thread may hold anything.
        if below == 1 && above == 1 {
            return Fact::of_rows(32, 1, 5, high, true);
        }
        let counts = below == 1;
        let period = if counts { own } else { below };
        let Some(width) = WIDTHS.into_iter().find(|w| period % w == 0) else { return Fact { high, ..Fact::VARYING } };
        let align = match counts {
            true if own == width => 64,
            true => width.trailing_zeros() as u8,
            false => 0,
        };
        Fact::of_rows(width, i64::from(counts), align, high, true)
    }

    /// The fact about a special register.
    pub(super) fn fact(self, special: Special, component: Component) -> Fact {
        use Special::*;
        match special {
            Tid if self.cta => match self.block {
                Some(b) if component == Component::W || b[component as usize] == 1 => Fact::UNIFORM,
                _ => Fact::VARYING,
            },
            Ntid | Ctaid | Nctaid | NwarpId | GridId | DynamicSmemSize | TotalSmemSize if self.cta => Fact::UNIFORM,
            _ if self.cta => Fact::VARYING,
            Clock | ClockHi | Clock64 | GlobalTimer | GlobalTimerLo | GlobalTimerHi if self.divergent => Fact::VARYING,
            Tid => self.tid(component),
            Ntid => match self.block {
                Some(b) if component != Component::W => Fact::constant(u64::from(b[component as usize])),
                _ => Fact::uniform(32),
            },
            Ctaid => Fact::uniform(31),
            LaneId => Fact::of_rows(32, 1, 64, 5, true),
            LanemaskEq | LanemaskGe | LanemaskGt | LanemaskLe | LanemaskLt => Fact::VARYING,
            _ => Fact::uniform(special.info().ty.bits()),
        }
    }

    /// The part of a fact about a register that is kept. That includes rows that a division by a mask may make uniform again.
    pub(super) fn wide_enough(self, fact: Fact) -> Fact {
        match fact.shape {
            Shape::Affine { width, .. } if width < self.narrowest && fact.outer.is_none() => Fact::VARYING,
            _ => fact,
        }
    }

    /// The same for shapes that are not certain, which code checks at run time.
    pub(super) fn wide_enough_to_hint(self, hint: Shape) -> Shape {
        match hint {
            Shape::Affine { width, .. } if width < 32 && self.narrowest > 0 => Shape::Varying,
            _ => hint,
        }
    }

    /// Shape of a special register.
    pub fn special(self, special: Special, component: Component) -> Shape {
        self.fact(special, component).shape
    }
}

/// The result of an instruction without a guard, from what is known of its operands. `plain`: one destination, and no register
/// wider than the row's types.
pub(super) fn result(
    warp: WarpShape,
    space: Option<MemSpace>,
    variant: &Variant,
    srcs: &[Fact],
    ops: &[Operand],
    plain: bool,
) -> Fact {
    let uniform = srcs.iter().all(|s| s.shape == Shape::Uniform);
    match variant.op.row().effect {
        _ if variant.op == Opcode::Cvta => match (srcs, variant.has(Mod::Local)) {
            ([s, ..], false) => Fact { align: 0, high: 64, outer: None, ..*s },
            _ => Fact::VARYING,
        },
        Effect::Pure | Effect::Machine => match if plain { arithmetic(variant, srcs, ops) } else { Fact::VARYING } {
            found if uniform && found.shape != Shape::Uniform => Fact::UNIFORM,
            found => found,
        },
        Effect::Memory if variant.op == Opcode::Ld && uniform => match space {
            // A generic address that lanes share is in no local variable of theirs: `cvta.local` gives each lane another one.
            Some(MemSpace::Local) | None => Fact::VARYING,
            Some(MemSpace::KernelParam | MemSpace::Const) => loaded(variant),
            Some(MemSpace::Global | MemSpace::Shared) if warp.loads && is_weak(variant) => loaded(variant),
            Some(_) if warp.cta || warp.divergent => Fact::VARYING,
            Some(_) => loaded(variant),
        },
        // So is the phase of one barrier object.
        _ if variant.op == Opcode::Mbarrier && (variant.has(Mod::TestWait) || variant.has(Mod::TryWait)) => {
            if uniform && !warp.cta && !warp.divergent { Fact::UNIFORM } else { Fact::VARYING }
        }
        // Votes are the same for all lanes that participate together; lanes with other member masks participate in other votes.
        Effect::Warp if variant.op == Opcode::Activemask && !warp.cta && !warp.divergent => Fact::UNIFORM,
        Effect::Warp if variant.op == Opcode::Vote && !warp.cta && !warp.divergent => match srcs.get(1) {
            Some(members) if members.shape != Shape::Uniform => Fact::VARYING,
            _ => Fact::UNIFORM,
        },
        _ => Fact::VARYING,
    }
}

/// Whether a load or store is weak (manual, section 8.4.1): other threads' accesses while it runs are races. Programs poll by `ld.cv` too, which
/// fetches again what others may have written (section 9.7.9.1).
pub fn is_weak(variant: &Variant) -> bool {
    ![Mod::Volatile, Mod::Relaxed, Mod::Acquire, Mod::Release, Mod::Mmio, Mod::Cv].iter().any(|m| variant.has(*m))
}

fn loaded(variant: &Variant) -> Fact {
    if variant.t().is_signed() { Fact::UNIFORM } else { Fact::uniform(variant.t().bits()) }
}
