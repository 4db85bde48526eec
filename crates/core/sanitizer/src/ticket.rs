//! Tickets: "the last CTA adds up, and resets the counter".
//!
//! A thread that updates a location by a strong atomic operation learns which of the others have updated it before. If the value decides
//! that the thread then accesses the location plainly, it does so because it is the last one, and what came before its own update in
//! coherence order cannot come after the plain access: that would contradict the order of the atomics among themselves, which
//! are morally strong (manual, section 8.10). Formally the plain access and the others' atomics still need causality order, which
//! no program establishes after the update itself.
//!
//! If the value decides nothing (`i = atomicAdd(n, 1); if (blockIdx.x == 0) *n = 0;`), the thread only happened to come last.

use crate::{
    State,
    clock::Side,
    lanes,
    row::Hit,
    site::{Site, of_site},
    threads::{CtaThreads, WarpMask},
};
use margay_exec::{AccessKind, Image, LANES, MemoryEvent, Scope, Semantics};
use margay_ir::{
    FuncId, Inst,
    pass::{
        BitSet, controls,
        liveness::{inst_reads, inst_writes, term_reads},
    },
};

/// Threads whose latest operation at a location is kept.
const LIMIT: usize = 8;
/// Locations of which that is known: counters are few.
const MAX_LOCATIONS: usize = 1 << 16;

/// A strong operation that returned the value of a location.
#[derive(Clone, Copy, Default)]
pub struct Ticket {
    cta: u32,
    warp: u32,
    lane: u32,
    pub time: crate::clock::Time,
    pub site: u32,
}

impl Ticket {
    /// Whether all these threads have seen the operation, or are the thread that performed it.
    pub fn precedes(&self, cta: &CtaThreads, now: WarpMask) -> bool {
        cta.unseen(now, (self.cta, self.warp, 1 << self.lane), Side::Program, self.time).is_none()
    }
}

/// The latest ones of a location; one of each thread.
#[derive(Clone, Copy, Default)]
pub struct Tickets {
    list: [Ticket; LIMIT],
    count: u8,
}

impl Tickets {
    /// All of them, the newest last.
    pub fn all(&self) -> &[Ticket] {
        &self.list[..usize::from(self.count)]
    }

    /// Adds that of the last one of some lanes, which may replace others: those of lanes that came before it in the instruction, and the
    /// threads' last ones.
    fn add(&mut self, new: Ticket, lanes: u32) {
        let mine = |t: &Ticket| (t.cta, t.warp) == (new.cta, new.warp);
        let outlived = |t: &Ticket| mine(t) && (lanes >> t.lane & 1 == 1 || t.time == new.time);
        let full = usize::from(self.count) == LIMIT && !self.all().iter().any(outlived);
        let mut kept = 0;
        for i in usize::from(full)..usize::from(self.count) {
            let ticket = self.list[i];
            if !outlived(&ticket) {
                self.list[kept] = ticket;
                kept += 1;
            }
        }
        self.list[kept] = new;
        self.count = kept as u8 + 1;
    }
}

/// Whether an event is of operations that return what locations held.
pub fn is_noted(e: &MemoryEvent<'_>) -> bool {
    let reads = e.access != AccessKind::Store && !e.order.reduction;
    reads && e.order.semantics != Semantics::Weak && !e.order.asynchronous
}

/// Notes operations by lanes of a warp that return values. Of lanes at one address, the last one has seen what the others did.
pub fn note(state: &mut State, cta: u32, warp: u32, (addresses, mask): (&[u64; LANES], u32), site: u32) {
    let (time, tickets) = (state.threads.now, &mut state.tickets);
    let mut left = mask;
    while left != 0 {
        let at = addresses[left.trailing_zeros() as usize];
        let group = lanes(left).take_while(|lane| addresses[*lane as usize] == at).fold(0, |all, lane| all | 1 << lane);
        left &= !group;
        let known =
            if tickets.len() < MAX_LOCATIONS { Some(tickets.entry(at).or_default()) } else { tickets.get_mut(&at) };
        let Some(list) = known else { return };
        let lane = 31 - u32::leading_zeros(group);
        list.add(Ticket { cta, warp, lane, time, site }, group);
    }
}

/// Whether any instruction reads what those of a site yield: counters of histograms inform nobody.
pub fn is_used(state: &mut State, site: u32) -> bool {
    let State { yields, sites, image, .. } = state;
    let Some(image) = image else { return true };
    *of_site(yields, site).get_or_insert_with(|| {
        let (func, at) = sites.get(site).at;
        let code = image.ir.func(func);
        let mut yielded = BitSet::new(code.regs.len());
        let here = |i: &&Inst| code.places[i.at as usize].span.start == at.span.start;
        code.insts.iter().filter(here).for_each(|i| inst_writes(code, i, &mut |r| yielded.insert(r.0)));
        let mut used = false;
        code.insts.iter().for_each(|i| inst_reads(code, i, &mut |r| used |= yielded.has(r.0)));
        code.blocks.iter().for_each(|b| term_reads(code, &b.term, &mut |r| used |= yielded.has(r.0)));
        used
    })
}

/// Whether the thread of a plain access, or one that precedes it, has learned from a location's value that an earlier strong write there
/// was over, and accesses it because of that.
pub fn permits(
    state: &State,
    cta: &CtaThreads,
    e: &MemoryEvent<'_>,
    hit: &Hit,
    (earlier, later): (&Site, &Site),
) -> bool {
    if later.is_strong() || !earlier.is_strong() || !earlier.access.writes() || earlier.order.asynchronous {
        return false;
    }
    let Some(tickets) = state.tickets.get(&e.addresses[hit.lane as usize]) else { return false };
    let now = WarpMask { warp: e.actor.warp, lanes: 1 << hit.lane };
    tickets.all().iter().any(|t| {
        let site = state.sites.get(t.site);
        let wide = t.cta == hit.other.cta || earlier.order.scope.min(site.order.scope) >= Scope::Gpu;
        t.time >= hit.earlier.time && wide && site.element == earlier.element && t.precedes(cta, now) && {
            let places = [site, later].map(Site::in_kernel);
            state.image.as_ref().is_some_and(|image| is_decided(image, places.map(|(func, at)| (func, at.span.start))))
        }
    })
}

/// Whether the value that the first instruction yields may decide whether the second one is executed.
fn is_decided(image: &Image, [(func, ticket), (other, access)]: [(FuncId, u32); 2]) -> bool {
    let code = image.ir.func(func);
    let at = |start: u32| {
        let here = move |i: &u32| code.places[code.insts[*i as usize].at as usize].span.start == start;
        (0..code.insts.len() as u32).filter(here)
    };
    let sources: Vec<u32> = at(ticket).collect();
    func == other && at(access).any(|target| controls(code, &sources, target))
}
