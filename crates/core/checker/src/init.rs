//! Reads of uninitialised memory: shared, local, global and the device heap.
//!
//! An element counts as uninitialised if none of its bytes was written, since compilers copy structures with their
//! padding. Host writes, copies and fills count as writes ([`margay_exec::mem::Writes`]), and so do initial values of
//! variables. Each memory location is reported once.

use crate::{Checker, Finding, FindingKind, State, lanes, name};
use margay_exec::{AccessKind, MemoryEvent};

/// The memory that an address belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    Shared(u64),
    Local,
    Global,
}

fn home(e: &MemoryEvent<'_>, address: u64) -> Home {
    if let Some((base, _)) = e.windows.iter().find(|(base, size)| address.wrapping_sub(*base) < *size) {
        return Home::Shared(*base);
    }
    if address.wrapping_sub(e.local.0) < e.local.1 { Home::Local } else { Home::Global }
}

impl Checker {
    pub(crate) fn look_for_uninitialised(&self, state: &mut State, e: &MemoryEvent<'_>) {
        let size = u64::from(e.size);
        if self.is_whole_row(state, e) {
            return;
        }
        for lane in lanes(e.actor.lanes) {
            let address = e.addresses[lane as usize];
            let home = home(e, address);
            if home == Home::Global && state.written.as_ref().is_none_or(|w| !w.contains(address)) {
                state.written = e.memory.writes().find(address);
                if state.written.is_none() {
                    continue;
                }
            }
            if e.access != AccessKind::Store {
                let step = u64::from(e.element.clamp(1, 8)).min(size);
                let elements = (0..size.div_ceil(step)).map(|i| (address + i * step, step.min(size - i * step)));
                let mut blank = |(at, bytes): &(u64, u64)| match home {
                    Home::Global => state.written.as_ref().is_some_and(|w| w.is_blank(*at, *bytes)),
                    _ => state.marks.is_blank(*at, *bytes),
                };
                // A local access may copy a structure with padding: it is initialised if any element was written.
                let missing = match home {
                    Home::Local => elements.clone().all(|x| blank(&x)).then_some((address, step)),
                    _ => elements.clone().find(|x| blank(x)),
                };
                if let Some((at, _)) = missing {
                    self.report_uninitialised(state, e, lane, (home, at));
                }
            }
            match (&state.written, home) {
                (Some(written), Home::Global) => written.mark(address, size),
                (None, Home::Global) => {}
                _ => state.marks.mark(address, size),
            }
        }
    }

    /// Whether all that lies between the first and the last byte of an access of a row of lanes was written: the usual case of lanes
    /// that are neighbours.
    fn is_whole_row(&self, state: &mut State, e: &MemoryEvent<'_>) -> bool {
        /// Bytes at most, that this is less work than to look at each lane.
        const MOST: u64 = 8192;
        let (mut low, mut high) = (u64::MAX, 0);
        for lane in lanes(e.actor.lanes) {
            let address = e.addresses[lane as usize];
            (low, high) = (low.min(address), high.max(address));
        }
        let end = high.saturating_add(e.size.into());
        if end - low > MOST {
            return false;
        }
        match home(e, low) {
            Home::Shared(base) => {
                let within = e.windows.iter().any(|(b, size)| *b == base && end - base <= *size);
                within && state.marks.is_whole(low, end - low)
            }
            Home::Local => end - e.local.0 <= e.local.1 && state.marks.is_whole(low, end - low),
            Home::Global => {
                let written = state.written.as_ref().filter(|w| w.contains(low) && w.contains(end - 1));
                written.is_some_and(|w| w.is_whole(low, end - low))
            }
        }
    }

    fn report_uninitialised(&self, state: &mut State, e: &MemoryEvent<'_>, lane: u32, (home, at): (Home, u64)) {
        let (what, whose) = match home {
            Home::Shared(base) => {
                (name::shared(&self.image, self.names, at - base, e.element), "nobody in the CTA has")
            }
            Home::Local => ("local memory".to_owned(), "the thread has not"),
            Home::Global => (name::global(e.memory, self.names, at, e.element), "neither the host nor the kernel has"),
        };
        let verb = if e.access == AccessKind::Atomic { "updates" } else { "reads" };
        let kind = FindingKind::Uninitialised;
        state.report(kind, (e.actor.at, None), || Finding {
            kind,
            title: format!("uninitialised: {verb} {what}, which {whose} written"),
            parties: vec![self.party(&e.actor, lane, verb)],
            notes: Vec::new(),
            help: (home != Home::Local).then(|| format!("{what} must be written before this access")),
            times: 1,
        });
    }
}
