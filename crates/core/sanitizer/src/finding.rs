//! Findings, and the selection of what to look for.

use crate::site::Place;
use margay_exec::{Frame, Image};

/// The selected checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checks {
    /// Accesses that leave their variable.
    pub memory: bool,
    /// Races.
    pub races: bool,
    /// Uses of uninitialized values.
    pub init: bool,
    /// Barriers and warp operations that not all required threads reach.
    pub sync: bool,
    /// Memory not freed when the program ends. Detected by the owner of the memory, not by the sanitizer of a launch.
    pub leaks: bool,
    /// API calls that fail. Detected by the driver.
    pub api: bool,
    /// Memory that nothing accesses. Detected by the driver; no part of [`Checks::ALL`], since it is no error.
    pub unused: bool,
}

impl Checks {
    /// All checks for errors.
    pub const ALL: Checks =
        Checks { memory: true, races: true, init: true, sync: true, leaks: true, api: true, ..Checks::NONE };
    /// No checks.
    pub const NONE: Checks =
        Checks { memory: false, races: false, init: false, sync: false, leaks: false, api: false, unused: false };

    /// Whether anything is looked for that only events of a launch show.
    pub fn is_of_launches(self) -> bool {
        self.memory || self.races || self.init || self.sync
    }

    /// Comma-separated words: `memory`, `races`, `init`, `sync`, `leaks`, `api`, `unused`, `all`. `bounds` is an older word for
    /// `memory`, and `undefined` for `all`. The error names the invalid word.
    pub fn parse(words: &str) -> Result<Checks, String> {
        let mut what = Checks::NONE;
        for word in words.split(',').map(str::trim) {
            match word {
                "memory" | "bounds" => what.memory = true,
                "races" => what.races = true,
                "init" => what.init = true,
                "sync" => what.sync = true,
                "leaks" => what.leaks = true,
                "api" => what.api = true,
                "unused" => what.unused = true,
                "all" | "undefined" => what = Checks { unused: what.unused, ..Checks::ALL },
                other => {
                    return Err(format!(
                        "`{other}` is not a check; expected memory, races, init, sync, leaks, api, unused or all"
                    ));
                }
            }
        }
        Ok(what)
    }
}

/// The kind of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FindingKind {
    /// Two accesses without order.
    Race,
    /// The use of an uninitialized value.
    Uninitialized,
    /// A barrier or warp operation that not all required threads reach.
    Synchronization,
    /// An access outside its variable.
    Bounds,
    /// Leaked memory.
    Leak,
    /// A failed API call.
    Api,
    /// Memory that nothing accesses.
    Unused,
    /// A launch that did not come to its end.
    Fault,
}

impl FindingKind {
    /// The name in messages and machine-readable reports.
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::Race => "race",
            FindingKind::Uninitialized => "uninitialized",
            FindingKind::Synchronization => "synchronization",
            FindingKind::Bounds => "out of bounds",
            FindingKind::Leak => "leak",
            FindingKind::Api => "api",
            FindingKind::Unused => "unused",
            FindingKind::Fault => "fault",
        }
    }
}

/// A thread's part in a finding.
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

/// A finding.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// A one-line description.
    pub title: String,
    /// The threads: the one at which it was noticed first, then the earlier one.
    pub parties: Vec<Party>,
    /// Values and further facts.
    pub notes: Vec<String>,
    /// The missing synchronization, and where to add it.
    pub help: Option<String>,
    /// Number of occurrences.
    pub times: u64,
}

impl Finding {
    /// The [line keys](crate::line_key) of its threads, in ascending order.
    pub fn lines(&self, image: &Image) -> Vec<u64> {
        let mut all: Vec<u64> = self.parties.iter().map(|p| crate::line_key(image, p.at)).collect();
        all.sort_unstable();
        all
    }

    /// Whether two findings of a program have the same kind and places.
    pub fn is_like(&self, other: &Finding, image: &Image) -> bool {
        self.kind == other.kind && self.lines(image) == other.lines(image)
    }
}
