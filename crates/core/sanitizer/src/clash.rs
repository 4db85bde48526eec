//! Stores of different values to one address, by lanes of one instruction or by one location of the program, which an unrolled loop has
//! several times.
//!
//! Which value remains is undefined. In shared memory that is reported when somebody reads the value: programs let threads that have
//! nothing to store write to a slot that nobody reads, such as CUB's run-length encoding.

use crate::{Finding, FindingKind, Party, Sanitizer, State, lanes, name, rounding, site::Place};
use margay_exec::{AccessKind, LANES, MemoryEvent};

/// Unordered stores of different values, by one location of the program, to a place in shared memory: a finding as soon as somebody
/// reads what remains.
#[derive(Debug)]
pub struct Clash {
    /// Host address of the bytes that both write, and their number.
    pub address: u64,
    pub bytes: u64,
    /// What the finding is about.
    pub places: (Place, Option<Place>),
    /// The finding.
    pub finding: Finding,
}

impl State {
    /// Remembers stores until somebody reads or overwrites the value.
    pub(crate) fn await_reader(&mut self, clash: Clash) {
        if !self.clashes.iter().any(|c| c.address == clash.address) {
            self.clashes.push(clash);
        }
    }
}

impl Sanitizer {
    /// Finds lanes of one store that write different values to one address.
    pub(crate) fn compare_lanes(&self, state: &mut State, e: &MemoryEvent<'_>) {
        let Some(values) = e.values else { return };
        let mut list = [0; LANES];
        let mut count = 0;
        lanes(e.actor.lanes).for_each(|lane| {
            list[count] = lane;
            count += 1;
        });
        let order = &mut list[..count];
        let at = |lane: u32| e.addresses[lane as usize];
        let apart = |pair: &[u32]| at(pair[0]) < at(pair[1]) && at(pair[1]) - at(pair[0]) >= u64::from(e.size);
        if order.windows(2).all(apart) {
            return;
        }
        order.sort_unstable_by_key(|lane| (at(*lane), *lane));
        let value = |lane: u32| {
            let byte = |i: usize| u64::from(values(lane as usize, i)) << (8 * i);
            (0..e.size.min(8) as usize).map(byte).sum::<u64>()
        };
        for pair in order.windows(2) {
            let [a, b] = [pair[0] as usize, pair[1] as usize];
            let apart = e.addresses[b] - e.addresses[a];
            let Some(common) = u64::from(e.size).checked_sub(apart) else { continue };
            let address = e.addresses[b];
            let differs = (0..common as usize).any(|i| values(a, i + apart as usize) != values(b, i));
            if !differs || address.wrapping_sub(e.local.0) < e.local.1 {
                continue;
            }
            if rounding::alike(&mut state.butterflies, &self.image, e.actor.at, (pair[0], pair[1])) {
                continue;
            }
            let window = e.windows.iter().find(|(base, size)| address.wrapping_sub(*base) < *size);
            let what = match window {
                Some((base, _)) => name::shared(&self.image, self.names, address - base, e.element),
                None => name::global(e.memory, self.names, address, e.element),
            };
            let party = |lane: u32| -> Party { self.party(&e.actor, lane, "writes") };
            let digits = 2 + 2 * e.size.min(8) as usize;
            let (first, second) = (value(pair[0]), value(pair[1]));
            let finding = Finding {
                kind: FindingKind::Race,
                title: format!("race: lanes of one store write different values to {what}"),
                parties: vec![party(pair[1]), party(pair[0])],
                notes: vec![format!(
                    "{first:#0digits$x} and {second:#0digits$x} are written at the same time; which value remains is undefined"
                )],
                help: Some("let one thread write the value, or use an atomic".into()),
                times: 1,
            };
            let places = (e.actor.at, Some(e.actor.at));
            if window.is_none() {
                return state.report(FindingKind::Race, places, || finding);
            }
            state.await_reader(Clash { address, bytes: common, places, finding });
        }
    }

    /// Reports stores of different values to what an access reads, and drops those that it overwrites.
    pub(crate) fn look_for_clashes(state: &mut State, e: &MemoryEvent<'_>) {
        let mut clashes = std::mem::take(&mut state.clashes);
        clashes.retain(|clash| {
            let size = u64::from(e.size);
            let touches = |lane: &u32| {
                let at = e.addresses[*lane as usize];
                at < clash.address + clash.bytes && clash.address < at + size
            };
            let covers = |lane: u32| {
                let at = e.addresses[lane as usize];
                at <= clash.address && clash.address + clash.bytes <= at + size
            };
            match e.access {
                AccessKind::Load | AccessKind::Atomic => {
                    let read = lanes(e.actor.lanes).any(|lane| touches(&lane));
                    if read {
                        state.report(FindingKind::Race, clash.places, || clash.finding.clone());
                    }
                    !read
                }
                _ => !lanes(e.actor.lanes).any(covers),
            }
        });
        state.clashes = clashes;
    }
}
