//! Availability: from which PTX ISA version and on which targets a form, a word or a register exists
//! (the "PTX ISA Notes" and "Target ISA Notes" of each section).

use crate::{Mod, Target, Type, Version, Word};

/// The first version and target with a feature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Since {
    /// First PTX ISA version.
    pub ptx: Version,
    /// Lowest target number; 0 means all.
    pub sm: u16,
    /// If not empty: only these architecture- or family-specific targets (and, for families, their later members).
    pub only: &'static [Target],
    /// Other pairs of version and target under which it exists as well.
    pub or: &'static [Since],
}

/// The first version and target without a feature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Until {
    /// First version that refuses it.
    pub ptx: Version,
    /// Lowest target for which it does.
    pub sm: u16,
}

/// An alternative of a form that needs more than the form itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Need {
    /// The word that needs it.
    pub word: Word,
    /// Other words that must be present for the requirement to apply.
    pub with: &'static [Word],
    /// What it needs.
    pub since: Since,
}

/// What of an instruction asks for a version and target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// The form itself.
    Form,
    /// An address without a state space.
    GenericAddress,
    /// One of its words.
    Word(&'static Need),
}

/// Why a feature is not available.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// `.version` must be this or later.
    Ptx(Version),
    /// `.target` must be `sm_NN` or higher.
    Sm(u16),
    /// `.target` must be one of these, or, for families (`sm_100f`), a later member of one.
    Targets(&'static [Target]),
    /// Refused from this version and target on.
    Removed(Until),
}

/// The family of `sm_107`.
static RUBIN: &[Target] = &[Target::family(107)];

/// The requirements of these words on any instruction.
#[rustfmt::skip]
pub static COMMON: &[Need] = &[
    m(Mod::Ftz, 1, 4, 0), m(Mod::Satfinite, 6, 0, 70), m(Mod::Cluster, 7, 8, 90), m(Mod::L2CacheHint, 7, 4, 80),
    m(Mod::SharedCta, 7, 8, 0),
    m(Mod::Cc, 4, 3, 20).with(&[Word::Type(Type::U64)]), m(Mod::Cc, 4, 3, 20).with(&[Word::Type(Type::S64)]),
    need_on(Word::Mod(Mod::MulticastCluster32b), (9, 4), RUBIN), need_on(Word::Mod(Mod::KindTi16), (9, 4), RUBIN),
    need_on(Word::Mod(Mod::Im2colNoOffsW), (9, 4), RUBIN), need_on(Word::Mod(Mod::SyncRestrictReadMmaA), (9, 4), RUBIN),
    need_on(Word::Mod(Mod::OverrideGlobalAddress), (9, 4), RUBIN), need_on(Word::Mod(Mod::ReportDisabled), (9, 4), RUBIN),
    need_on(Word::Mod(Mod::ReportPer16Bytes8), (9, 4), RUBIN), need_on(Word::Mod(Mod::ReportPer16Bytes80), (9, 4), RUBIN),
    need_on(Word::Mod(Mod::ReportPer16Bytes8000), (9, 4), RUBIN), need_on(Word::Mod(Mod::ReportPer16Bytes80000000), (9, 4), RUBIN),
    need_on(Word::Mod(Mod::ReportPerElementFf), (9, 4), RUBIN), need_on(Word::Mod(Mod::DecompressLutB), (9, 4), RUBIN),
    need_on(Word::Mod(Mod::CollectorBFill), (9, 4), RUBIN), need_on(Word::Mod(Mod::CollectorBUse), (9, 4), RUBIN),
    need_on(Word::Mod(Mod::CollectorBLastuse), (9, 4), RUBIN), need_on(Word::Mod(Mod::CollectorBDiscard), (9, 4), RUBIN),
    m(Mod::MulticastCluster16b, 9, 4, 90),
    m(Mod::Exclusive, 9, 4, 0),
    m(Mod::Sys, 8, 4, 0).with(&[Word::Type(Type::B128)]), m(Mod::SharedCluster, 7, 8, 90),
];

impl Since {
    /// Every version and target has it.
    pub const ALWAYS: Since = Since::new(1, 0, 0);

    /// PTX ISA `major.minor` and `sm_NN`.
    pub const fn new(major: u16, minor: u16, sm: u16) -> Since {
        Since { ptx: Version::new(major, minor), sm, only: &[], or: &[] }
    }

    /// PTX ISA `major.minor` on specific targets.
    pub const fn on(major: u16, minor: u16, only: &'static [Target]) -> Since {
        Since { ptx: Version::new(major, minor), sm: 0, only, or: &[] }
    }

    /// Adds other pairs of version and target.
    pub const fn or(mut self, or: &'static [Since]) -> Since {
        self.or = or;
        self
    }

    /// Whether a module of that version and target has it. The target is judged first: a newer version is easily had.
    pub fn check(&self, version: Version, target: Target) -> Result<(), Missing> {
        let first = self.alone(version, target);
        if first.is_ok() || self.or.iter().any(|s| s.check(version, target).is_ok()) { Ok(()) } else { first }
    }

    fn alone(&self, version: Version, target: Target) -> Result<(), Missing> {
        if !self.only.is_empty() && !self.only.iter().any(|t| target.provides(*t)) {
            return Err(Missing::Targets(self.only));
        }
        if target.sm < self.sm {
            return Err(Missing::Sm(self.sm));
        }
        // ptxas judges 5.1, the version in which `sm_70` was tried out, as 6.0.
        let version = if version == Version::new(5, 1) { Version::new(6, 0) } else { version };
        if version < self.ptx {
            return Err(Missing::Ptx(self.ptx));
        }
        Ok(())
    }
}

/// The modifier needs PTX ISA `major.minor` and `sm_NN`.
pub const fn m(m: Mod, major: u16, minor: u16, sm: u16) -> Need {
    Need { word: Word::Mod(m), with: &[], since: Since::new(major, minor, sm) }
}

/// The type needs PTX ISA `major.minor` and `sm_NN`.
pub const fn t(t: Type, major: u16, minor: u16, sm: u16) -> Need {
    Need { word: Word::Type(t), with: &[], since: Since::new(major, minor, sm) }
}

/// A word that needs PTX ISA `ptx` and `sm`.
pub const fn need(word: Word, ptx: (u16, u16), sm: u16) -> Need {
    Need { word, with: &[], since: Since::new(ptx.0, ptx.1, sm) }
}

/// A word that needs PTX ISA `ptx` and one of these specific targets.
pub const fn need_on(word: Word, ptx: (u16, u16), only: &'static [Target]) -> Need {
    Need { word, with: &[], since: Since::on(ptx.0, ptx.1, only) }
}

impl Need {
    /// The requirement applies only together with these other words.
    pub const fn with(mut self, words: &'static [Word]) -> Need {
        self.with = words;
        self
    }

    /// On specific targets only.
    pub const fn targets(mut self, only: &'static [Target]) -> Need {
        self.since.only = only;
        self
    }

    /// Other pairs of version and target.
    pub const fn or(mut self, or: &'static [Since]) -> Need {
        self.since.or = or;
        self
    }

    /// Whether the need arises for an instruction with these words.
    pub fn applies(&self, words: &[Word]) -> bool {
        words.contains(&self.word) && self.with.iter().all(|w| words.contains(w))
    }
}
