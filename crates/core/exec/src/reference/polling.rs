//! Distinguishes a cluster that makes progress from one whose threads only poll memory, or repeat a state.

/// Ops without a side effect after which a cluster counts as quiet.
const QUIET: u64 = 1 << 18;
/// Slices between two recorded states, since recording one takes a while.
const SLICES: u32 = 4;
/// The longest cycle of recorded states that is detected, so that a cycle that has ended is soon forgotten.
const LONGEST: u64 = 16;

/// Side effects that other threads can see.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects {
    /// All of them.
    pub all: u64,
    /// Those beyond the shared memory of the cluster.
    pub outside: u64,
}

/// A cluster's behavior since its last side effect. Brent's cycle detection finds repeated states.
#[derive(Default)]
pub(super) struct Polling {
    effects: Effects,
    /// Ops since the last one.
    ops: u64,
    /// No side effect since the last question whether it only polls.
    only_polls: bool,
    /// Nor anything but polls since the answer that it does.
    still_polls: bool,
    /// A state since the last side effect, and the number of states seen.
    anchor: u64,
    samples: u64,
    /// Whether the state has recurred.
    repeats: bool,
    inside: Inside,
}

/// A cluster's behavior since its last side effect outside.
#[derive(Default)]
struct Inside {
    ops: u64,
    slices: u32,
    /// A state since then, with shared memory, its number and that of the last one.
    anchor: u64,
    anchored: u64,
    samples: u64,
    /// The state that was the anchor's again, last, and how many states later that is each time.
    recurred: u64,
    period: u64,
}

impl Polling {
    /// Notes a round of `ops` ops, after which the cluster has had `effects` side effects.
    pub fn ran(&mut self, effects: Effects, ops: u64) {
        let inside = match effects.outside == self.effects.outside {
            true => Inside { ops: self.inside.ops.saturating_add(ops), ..std::mem::take(&mut self.inside) },
            false => Inside::default(),
        };
        match effects == self.effects {
            true => (self.ops, self.inside) = (self.ops.saturating_add(ops), inside),
            false => *self = Polling { effects, inside, ..Polling::default() },
        }
    }

    /// Whether there has been no side effect for a long time. The threads of a cluster with a random schedule then take turns in order, because
    /// a state can only repeat if all rounds are the same.
    pub fn is_quiet(&self) -> bool {
        self.ops >= QUIET
    }

    /// Whether there was no side effect since the last question.
    pub fn only_polls(&mut self) -> bool {
        self.still_polls = std::mem::replace(&mut self.only_polls, true);
        self.still_polls
    }

    /// Whether it has only polled since it was found to do so; if so, whether its state has recurred by then.
    pub fn still_polls(&self) -> Option<bool> {
        self.still_polls.then_some(self.repeats)
    }

    /// Notes a round in which some thread did more than poll.
    pub fn advanced(&mut self) {
        self.still_polls = false;
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

    /// After a slice in which a cluster did more than poll: whether it keeps returning to one state, which includes shared memory. Then only
    /// others can end what it does, such as a loop in which a CTA meets at a barrier until another CTA has set a flag.
    pub fn is_cycling(&mut self, state: impl FnOnce() -> u64) -> bool {
        let seen = &mut self.inside;
        seen.slices = seen.slices.wrapping_add(1);
        if seen.ops >= QUIET && seen.slices.is_multiple_of(SLICES) {
            let state = state();
            seen.samples += 1;
            if seen.anchored > 0 && state == seen.anchor {
                let last = if seen.period > 0 { seen.recurred } else { seen.anchored };
                (seen.recurred, seen.period) = (seen.samples, seen.samples - last);
            } else if seen.samples - seen.recurred > seen.period {
                seen.period = 0;
                if seen.samples.is_power_of_two() {
                    (seen.anchor, seen.anchored) = (state, seen.samples);
                }
            }
        }
        (1..=LONGEST).contains(&seen.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a cluster is cycling after these states.
    fn circles(polling: &mut Polling, states: impl IntoIterator<Item = u64>) -> bool {
        let mut found = false;
        for state in states {
            (0..SLICES).for_each(|_| found = polling.is_cycling(|| state));
        }
        found
    }

    #[test]
    fn a_state_that_recurs_is_found_while_it_does() {
        let inside = |all| Effects { all, outside: 0 };
        let mut polling = Polling::default();
        polling.ran(inside(1), QUIET - 1);
        assert!(!circles(&mut polling, [1, 2, 3].repeat(4)), "too early to look");
        polling.ran(inside(2), 1);
        assert!(!circles(&mut polling, 10..200), "a counter");
        assert!(circles(&mut polling, [1, 2, 3].repeat(100)), "effects in shared memory are part of the state");
        assert!(!circles(&mut polling, 200..210), "it goes on");
        assert!(circles(&mut polling, [1, 2, 3].repeat(200)));
        polling.ran(Effects { all: 3, outside: 1 }, QUIET);
        assert!(!circles(&mut polling, [1]), "an effect outside");
    }
}
