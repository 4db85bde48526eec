//! Tells a cluster whose threads only poll memory from one that works.

/// Ops without a side effect after which a cluster counts as quiet.
const QUIET: u64 = 1 << 18;

/// What is known of a cluster since its last side effect. A state that it repeats is found by Brent's cycle detection.
#[derive(Default)]
pub(super) struct Polling {
    /// Number of side effects so far.
    effects: u64,
    /// Ops since the last one.
    ops: u64,
    /// No side effect since the last question whether it only polls.
    only_polls: bool,
    /// A state since the last side effect, and the number of states seen.
    anchor: u64,
    samples: u64,
    /// Whether the state has recurred.
    repeats: bool,
}

impl Polling {
    /// Notes a round of `ops` ops, after which the cluster has had `effects` side effects.
    pub fn ran(&mut self, effects: u64, ops: u64) {
        match effects == self.effects {
            true => self.ops = self.ops.saturating_add(ops),
            false => *self = Polling { effects, ..Polling::default() },
        }
    }

    /// Whether there was no side effect for long. The threads of a cluster whose schedule is random then take turns in order, since they
    /// repeat their state only in rounds that are alike.
    pub fn is_quiet(&self) -> bool {
        self.ops >= QUIET
    }

    /// Whether there was no side effect since the last question.
    pub fn only_polls(&mut self) -> bool {
        std::mem::replace(&mut self.only_polls, true)
    }

    /// Notes the state of a cluster that only polls; returns whether it has recurred since the last side effect.
    pub fn repeats(&mut self, state: u64) -> bool {
        self.repeats |= self.samples > 0 && state == self.anchor;
        if (self.samples + 1).is_power_of_two() {
            self.anchor = state;
        }
        self.samples += 1;
        self.repeats
    }
}
