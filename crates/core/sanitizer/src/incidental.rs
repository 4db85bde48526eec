//! Order that an execution happened to have.
//!
//! A thread that reads what another one has released comes after it. If it then accesses memory whatever the value was, it could as well have
//! read the value before: the access is ordered with those of the other thread in this execution, and races with them in another one. So the
//! verdict does not depend on which of the two was faster. A seqlock's reader copies plain data and tests the sequence number afterwards;
//! a thread that finds an object under construction uses it without waiting.
//!
//! The order counts if the access depends on the value: behind a loop that waits for it, on one side of a branch, or at an address that
//! it gives ([`depends_on_reads`]). What a thread passes on by a barrier or a shuffle counts as well, unless no instruction uses the value:
//! then nothing can depend on it.

use crate::{
    Sanitizer, State,
    clock::{Clock, Side, Time},
    instructions, lanes,
    row::{Hit, Missing, side},
    shadow::{Record, WORD},
    site::Place,
    threads::CtaThreads,
};
use margay_exec::{Image, MemoryEvent};
use margay_ir::pass::depends_on_reads;

/// Whether an access in a function depends on what was read at another place of it.
pub(crate) fn is_needed(image: &Image, (func, read): Place, (other, access): Place) -> bool {
    let code = image.ir.func(func);
    let sources: Vec<u32> = instructions(code, read).collect();
    func != other || sources.is_empty() || instructions(code, access).any(|to| depends_on_reads(code, &sources, to))
}

impl Sanitizer {
    /// Compares an access by lanes that know of others by chance with what those have done.
    pub(crate) fn look_for_incidental_order(&self, state: &mut State, e: &MemoryEvent<'_>, site: u32) {
        let index = self.index(e.actor.cta);
        let uncertain = |cta: &CtaThreads| cta.uncertain(e.actor.warp) & e.actor.lanes;
        if e.order.asynchronous || state.ctas.get_mut(index).is_none_or(|cta| uncertain(&cta.threads) == 0) {
            return;
        }
        self.settle(state, index);
        let State { shadow, ctas, sites, needs, image, hits, .. } = state;
        let (Some(cta), Some(image)) = (ctas.get_mut(index), image) else { return };
        let access = sites.get(site).in_kernel();
        let mut needed = |read: Place| {
            let key = (read.1.span.start, access.1.span.start);
            *needs.entry(key).or_insert_with(|| is_needed(image, read, access))
        };
        for lane in lanes(uncertain(&cta.threads)) {
            let (address, end) = (e.addresses[lane as usize], e.addresses[lane as usize] + u64::from(e.size));
            if address.wrapping_sub(e.local.0) < e.local.1 {
                continue;
            }
            for word in (address / WORD * WORD..end).step_by(WORD as usize) {
                let mask = (1u32 << (end.min(word + WORD) - word)) - (1 << (address.max(word) - word));
                let conflicts = |r: &Record| {
                    let writes = e.access.writes() || sites.kinds[r.site() as usize].writes;
                    r.bytes() & mask != 0 && writes
                };
                for earlier in shadow.records(word).into_iter().filter(conflicts) {
                    let by_chance = earlier.warp_lanes(self.warps).find_map(|group| {
                        let others = (group.cta, group.warp, group.lanes);
                        let when = (side(&earlier, sites.kinds[earlier.site() as usize]), earlier.time);
                        let (other, reads) = cta.threads.known_by_chance((e.actor.warp, lane), others, when)?;
                        let read = *reads.first()?;
                        let chance = !reads.into_iter().any(&mut needed);
                        chance.then_some((crate::shadow::WarpLanes { lanes: 1 << other, ..group }, read))
                    });
                    if let Some((other, read)) = by_chance {
                        hits.push(Hit { earlier, other, lane, word, mask, missing: Missing::Wait(read) });
                    }
                }
            }
        }
        self.judge_all(state, e);
    }

    /// What is missing where the order of two accesses is incidental.
    pub(crate) fn missing_wait(&self, read: Place) -> String {
        format!(
            "the later access is ordered only if {} happens to read what the other thread has released, and it is executed in any case: wait \
             until that is read, or access only then",
            self.line(read)
        )
    }
}

impl CtaThreads {
    /// Of lanes of `others`, one whose access at `time` a lane knows only from what it has read by chance, and where it has read that.
    fn known_by_chance(
        &self,
        (warp, lane): (u32, u32),
        (cta, other, others): (u32, u32, u32),
        (side, time): (Side, Time),
    ) -> Option<(u32, Vec<Place>)> {
        let (clock, certain, uncertain_clocks) = self.uncertain_clocks(warp, lane)?;
        let own = |o: &u32| (cta, other, *o) == (self.index, warp, lane) && side == Side::Program;
        let known = |clock: &Clock, o: u32| clock.get((cta, other, o), side) >= time;
        let o = lanes(others).find(|o| !own(o) && known(clock, *o) && !known(certain, *o))?;
        let reads = uncertain_clocks.iter().filter(|c| known(&c.clock, o)).map(|c| c.read.place).collect();
        Some((o, reads))
    }
}
