//! Programmatic dependent launch: a grid may begin before the grids before it in its stream have ended (manual, section 9.7.13.13).
//!
//! `griddepcontrol.launch_dependents` lets the next grid begin. What that one does before `griddepcontrol.wait` is not ordered with the
//! grid before it; what comes after a wait of any thread that it is ordered with is. So a wait counts as if the thread had seen a thread of
//! a CTA that does not exist, and barriers pass that on.

use crate::{Sanitizer, State, clock::Time, footprint::Footprint, lanes, site::Place, threads::CtaThreads, who};
use margay_exec::{MemoryEvent, SyncEvent};

/// The thread that stands for the grids before this one, and the time at which it has done everything.
pub const BEFORE: (u32, u32, u32) = (u32::MAX, 0, 0);
pub const DONE: Time = 1;

/// The maximum number of lines to tell apart.
const LIMIT: usize = 64;

/// How a grid overlaps with those before and after it in its stream.
#[derive(Default)]
pub struct Overlap {
    /// It has executed `griddepcontrol.launch_dependents`, so that the next grid may begin before this one ends.
    pub triggers: bool,
    /// All CTAs that did had not waited: the next grid may begin before the grids before this one have ended.
    pub at_once: bool,
    /// What it has accessed without having waited, by line of the program; the last one stands for all others.
    pub early: Vec<(String, Footprint)>,
}

/// What is known of that while a grid runs.
#[derive(Default)]
pub struct Overlapping {
    /// Some thread has let the next grid begin, and some had waited before.
    triggers: bool,
    waited: bool,
    early: Vec<(Place, Footprint)>,
}

impl Sanitizer {
    /// The grid may begin before those before it in its stream have ended (`cudaLaunchAttributeProgrammaticStreamSerialization`).
    pub fn overlapping(self) -> Sanitizer {
        Sanitizer { overlaps: true, ..self }
    }

    /// How the launch overlaps with others.
    pub fn overlap(&self) -> Overlap {
        let Overlapping { triggers, waited, early } = std::mem::take(&mut self.state.lock().overlapping);
        let early = early.into_iter().map(|(place, touched)| (self.line(place), touched)).collect();
        Overlap { triggers, at_once: triggers && !waited && self.overlaps, early }
    }

    /// Threads let the next grid begin.
    pub(crate) fn trigger(&self, state: &mut State, e: &SyncEvent<'_>) {
        let State { ctas, overlapping, .. } = state;
        let Some(cta) = ctas.get(self.index(e.actor.cta)) else { return };
        overlapping.triggers = true;
        overlapping.waited |= lanes(e.actor.lanes).any(|lane| cta.threads.has_waited(who(&e.actor).warp, lane));
    }

    /// Notes what lanes access that do not know the grids before this one to have ended.
    pub(crate) fn note_early(&self, state: &mut State, e: &MemoryEvent<'_>) {
        let State { ctas, overlapping, sites, .. } = state;
        let Some(cta) = ctas.get(self.index(e.actor.cta)) else { return };
        let early = lanes(e.actor.lanes).filter(|lane| !cta.threads.has_waited(e.actor.warp, *lane));
        let early = early.fold(0, |mask, lane| mask | 1 << lane);
        if early == 0 {
            return;
        }
        let site = sites.number(&e.actor, e.access, e.order, e.element);
        let place = sites.get(site).in_kernel();
        let list = &mut overlapping.early;
        let known = list.iter().position(|(at, _)| (at.0, at.1.span.start) == (place.0, place.1.span.start));
        let at = known.unwrap_or_else(|| {
            if list.len() < LIMIT {
                list.push((place, Footprint::default()));
            }
            list.len() - 1
        });
        list[at].1.note(&MemoryEvent { actor: margay_exec::Actor { lanes: early, ..e.actor }, ..*e });
    }
}

impl CtaThreads {
    /// Whether a thread knows that the grids before this one have ended.
    fn has_waited(&self, warp: u32, lane: u32) -> bool {
        self.knows((warp, lane), BEFORE, DONE)
    }
}
