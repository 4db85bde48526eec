//! Threads that may take one phase of a barrier for another one.
//!
//! * A barrier of a given number of threads completes with whichever threads come first. A thread that arrives for the next phase without
//!   knowing of all arrivals of the last one could have arrived before them, in the place of one of them (manual, section 9.7.13.1).
//! * A wait at a barrier object that names the phase by its parity returns at once if the phase before the previous one is the last that
//!   has completed: the two have the same parity. So a thread that waits for a phase must know that the previous one is complete.

use crate::{Finding, FindingKind, Sanitizer, State, who};
use margay_exec::{SyncEvent, SyncKind};

impl Sanitizer {
    /// Reports threads that arrive at a barrier, or wait at a barrier object, in a phase that depends on who is faster.
    pub(crate) fn look_for_mixed_phases(&self, state: &mut State, e: &SyncEvent<'_>) {
        let State { ctas, threads, .. } = &*state;
        let Some(cta) = ctas.get(self.index(e.actor.cta)).map(|cta| &cta.threads) else { return };
        let (title, note, help) = match e.kind {
            SyncKind::Barrier { id, .. } => {
                let Some(other) = cta.could_have_joined(who(&e.actor), id) else { return };
                let [x, y, z] = self.thread(other.warp, other.lanes.trailing_zeros());
                (
                    format!("barrier: which threads meet at barrier {id} depends on which of them come first"),
                    format!("it has completed before with thread ({x}, {y}, {z}), and nothing orders the two arrivals"),
                    "let the number of threads include all that use the barrier, use another barrier, or order the phases by a second one",
                )
            }
            SyncKind::Object { at, done, .. } => {
                if threads.unknown_phase(cta, who(&e.actor), (at, done)).is_none() {
                    return;
                }
                (
                    "barrier: a wait at a barrier object for the phase after one that the thread does not know to be complete".into(),
                    "while the previous phase is not complete, a wait with this parity returns at once: it is that of the phase before".into(),
                    "wait for each phase in turn: the parity is 0 for the first one, and changes with each phase",
                )
            }
            _ => return,
        };
        let kind = FindingKind::Synchronization;
        let lane = e.actor.lanes.trailing_zeros();
        let verb = if matches!(e.kind, SyncKind::Barrier { .. }) { "arrives" } else { "waits" };
        let parties = vec![self.party(&e.actor, lane, verb)];
        state.report(kind, (e.actor.at, None), || Finding {
            kind,
            title,
            parties,
            notes: vec![note],
            help: Some(help.into()),
            times: 1,
        });
    }
}
