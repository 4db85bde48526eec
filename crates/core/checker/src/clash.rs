//! Stores by which lanes of one instruction write different values to one address.

use crate::{Checker, Finding, FindingKind, State, lanes, name, site::Place};
use margay_exec::{AccessKind, Actor, Frame, LANES, MemoryEvent};

/// Where a value was stored.
#[derive(Debug)]
enum What {
    /// At an offset in shared memory.
    Shared(u64),
    /// In global memory, by name.
    Global(String),
}

/// An actor that outlives its event.
#[derive(Debug)]
struct Owned {
    cta: [u32; 3],
    warp: u32,
    lanes: u32,
    at: Place,
    callers: Vec<Frame>,
}

impl Owned {
    fn of(actor: &Actor<'_>) -> Owned {
        let Actor { cta, warp, lanes, at, callers } = *actor;
        Owned { cta, warp, lanes, at, callers: callers.to_vec() }
    }

    fn actor(&self) -> Actor<'_> {
        Actor { cta: self.cta, warp: self.warp, lanes: self.lanes, at: self.at, callers: &self.callers }
    }
}

/// Such a store, of two of the lanes.
#[derive(Debug)]
pub struct Clash {
    /// Host address of the bytes that both write, and their number.
    pub address: u64,
    bytes: u64,
    element: u32,
    /// Hexadecimal digits of a value.
    digits: usize,
    values: [u64; 2],
    lanes: [u32; 2],
    actor: Owned,
    what: What,
}

impl Checker {
    /// Finds lanes of one store that write different values to one address: which one remains is undefined. In global memory that is
    /// reported at once, in shared memory when somebody reads the value: programs let lanes that have nothing to store write to a
    /// slot that nobody reads.
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
            let window = e.windows.iter().find(|(base, size)| address.wrapping_sub(*base) < *size);
            let what = match window {
                Some((base, _)) => What::Shared(address - base),
                None => What::Global(name::global(e.memory, self.names, address, e.element)),
            };
            let clash = Clash {
                address,
                bytes: common,
                element: e.element,
                digits: 2 * e.size.min(8) as usize,
                values: [value(pair[0]), value(pair[1])],
                lanes: [pair[0], pair[1]],
                actor: Owned::of(&e.actor),
                what,
            };
            if window.is_none() {
                return self.report_clash(state, &clash);
            }
            if !state.clashes.iter().any(|c| c.address == address) {
                state.clashes.push(clash);
            }
        }
    }

    /// Reports stores of different values to what an access reads, and drops those that it overwrites.
    pub(crate) fn look_for_clashes(&self, state: &mut State, e: &MemoryEvent<'_>) {
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
                        self.report_clash(state, clash);
                    }
                    !read
                }
                _ => !lanes(e.actor.lanes).any(covers),
            }
        });
        state.clashes = clashes;
    }

    fn report_clash(&self, state: &mut State, clash: &Clash) {
        let Clash { actor, digits, values: [a, b], .. } = clash;
        let what = match &clash.what {
            What::Shared(offset) => name::shared(&self.image, self.names, *offset, clash.element),
            What::Global(name) => name.clone(),
        };
        let parties = [1, 0].map(|i| self.party(&actor.actor(), clash.lanes[i], "writes")).to_vec();
        state.report(FindingKind::Race, (actor.at, Some(actor.at)), || Finding {
            kind: FindingKind::Race,
            title: format!("race: lanes of one store write different values to {what}"),
            parties,
            notes: vec![format!(
                "0x{a:0digits$x} and 0x{b:0digits$x} are written at the same time; which value remains is undefined"
            )],
            help: Some("let one thread write the value, or use an atomic".into()),
            times: 1,
        });
    }
}
