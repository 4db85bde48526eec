//! The relations that comparisons of numbers test.

use margay_isa::{Mod, Variant};

/// The relation of the first operand of a comparison to the second one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// `.eq`
    Equal,
    /// `.ne`
    Unequal,
    /// `.lt`, `.lo`
    Less,
    /// `.le`, `.ls`
    AtMost,
    /// `.gt`, `.hi`
    Greater,
    /// `.ge`, `.hs`
    AtLeast,
}

impl Relation {
    /// The relation that an instruction tests; `None` for tests of floating-point numbers that are true for NaNs (`.ltu`) or only look for
    /// them (`.nan`).
    pub fn of(variant: &Variant) -> Option<Relation> {
        let has = |m: Mod| variant.has(m);
        Some(match () {
            () if has(Mod::Eq) => Relation::Equal,
            () if has(Mod::Ne) => Relation::Unequal,
            () if has(Mod::Lt) || has(Mod::Lo) => Relation::Less,
            () if has(Mod::Le) || has(Mod::Ls) => Relation::AtMost,
            () if has(Mod::Gt) || has(Mod::Hi) => Relation::Greater,
            () if has(Mod::Ge) || has(Mod::Hs) => Relation::AtLeast,
            () => return None,
        })
    }

    /// The relation of integers for which this one does not hold.
    pub fn inverse(self) -> Relation {
        match self {
            Relation::Equal => Relation::Unequal,
            Relation::Unequal => Relation::Equal,
            Relation::Less => Relation::AtLeast,
            Relation::AtMost => Relation::Greater,
            Relation::Greater => Relation::AtMost,
            Relation::AtLeast => Relation::Less,
        }
    }

    /// The relation of the second operand to the first one.
    pub fn mirrored(self) -> Relation {
        match self {
            Relation::Equal | Relation::Unequal => self,
            Relation::Less => Relation::Greater,
            Relation::AtMost => Relation::AtLeast,
            Relation::Greater => Relation::Less,
            Relation::AtLeast => Relation::AtMost,
        }
    }
}
