//! What is reported.

use crate::site::Place;
use margay_exec::Frame;

/// What a checker looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct What {
    /// Accesses that leave their variable.
    pub memory: bool,
    /// Races.
    pub races: bool,
    /// Uses of values that nobody wrote.
    pub init: bool,
    /// Barriers and warp instructions that not all threads reach that should.
    pub sync: bool,
}

impl What {
    /// Everything.
    pub const ALL: What = What { memory: true, races: true, init: true, sync: true };
    /// Nothing.
    pub const NONE: What = What { memory: false, races: false, init: false, sync: false };

    /// Words with commas between: `memory`, `races`, `init`, `sync`, `all`. The error names the word that is none.
    pub fn parse(words: &str) -> Result<What, String> {
        let mut what = What::NONE;
        for word in words.split(',').map(str::trim) {
            match word {
                "memory" => what.memory = true,
                "races" => what.races = true,
                "init" => what.init = true,
                "sync" => what.sync = true,
                "all" | "undefined" => what = What::ALL,
                other => {
                    return Err(format!("`{other}` is nothing to check; there is memory, races, init, sync and all"));
                }
            }
        }
        Ok(what)
    }
}

/// Sorts of findings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FindingKind {
    /// Two accesses without order.
    Race,
    /// A value that nobody wrote.
    Uninitialised,
    /// A barrier or warp instruction that not all threads reach.
    Synchronisation,
    /// An access outside of its variable.
    Bounds,
}

impl FindingKind {
    /// The word for `--check` and for machines.
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::Race => "race",
            FindingKind::Uninitialised => "uninitialised",
            FindingKind::Synchronisation => "synchronisation",
            FindingKind::Bounds => "out of bounds",
        }
    }
}

/// Who did something, and where.
#[derive(Clone, Debug)]
pub struct Party {
    /// `reads`, `writes`, `updates atomically`, `waits`.
    pub verb: String,
    /// Thread index in its CTA.
    pub thread: [u32; 3],
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Function and place.
    pub at: Place,
    /// Callers, innermost first.
    pub callers: Vec<Frame>,
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its sort.
    pub kind: FindingKind,
    /// In one line.
    pub title: String,
    /// The threads: the one that was noticed first, then the earlier one.
    pub parties: Vec<Party>,
    /// Values and further facts.
    pub notes: Vec<String>,
    /// The synchronisation that is missing, and where it would go.
    pub help: Option<String>,
    /// How often it was seen.
    pub times: u64,
}

impl Finding {
    /// The same sort at the same places.
    pub fn is_like(&self, other: &Finding) -> bool {
        let places = |f: &Finding| {
            let mut all: Vec<(u32, u32)> = f.parties.iter().map(|p| (p.at.0.0, p.at.1.span.start)).collect();
            all.sort_unstable();
            all
        };
        self.kind == other.kind && places(self) == places(other)
    }
}
