//! Tensor memory: 128 lanes of 512 words for each CTA (manual, section 9.7.16.1). Shadow memory keeps it at addresses that no other
//! memory has.
//!
//! Products, copies and shifts complete when a barrier object signals a `tcgen05.commit`, loads and stores when the warp waits for
//! them (section 9.7.16.6.2.1). Pairs that are pipelined need no wait, but order between the threads that issue them. What lanes of a warp
//! load or store they do together.

use crate::{Finding, FindingKind, Party, Sanitizer, State, inferred::Inferred};
use margay_exec::{MemoryEvent, TensorEvent, UndefinedEvent};

/// The first address; a CTA has its part by its index in the grid.
pub const MEMORY: u64 = 1 << 62;
const TENSOR_LANES: u64 = 128;
const COLUMNS: u64 = 512;
const WORD: u64 = 4;
const BYTES: u64 = TENSOR_LANES * COLUMNS * WORD;

/// The name of a cell.
pub fn name(at: u64) -> String {
    let cell = (at - MEMORY) / WORD % (TENSOR_LANES * COLUMNS);
    format!("lane {}, column {} of tensor memory", cell / COLUMNS, cell % COLUMNS)
}

impl Sanitizer {
    /// Reports the use of a register that a product has not written yet.
    pub(crate) fn report_in_flight(&self, state: &mut State, e: &UndefinedEvent<'_>) {
        let Some(product) = e.origin else { return };
        let lane = e.actor.lanes.trailing_zeros();
        let places = (e.actor.at, Some(product));
        let (from, to) = (self.line(product), self.line(e.actor.at));
        state.report(FindingKind::Race, places, || Finding {
            kind: FindingKind::Race,
            title: format!("race: {}, which a product of the tensor cores writes, without a wait in between", e.what),
            parties: vec![
                self.party(&e.actor, lane, "reads"),
                Party { at: product, ..self.party(&e.actor, lane, "writes by a product of the tensor cores") },
            ],
            notes: Vec::new(),
            help: Some(format!("`wgmma.wait_group` is missing between {from} and {to}, after `wgmma.commit_group`")),
            times: 1,
        });
    }

    /// The tensor memory of a CTA that starts holds nothing.
    pub(crate) fn forget_tensor_memory(&self, state: &mut State, cta: [u32; 3]) {
        if state.tensor {
            state.shadow.forget(MEMORY + u64::from(self.index(cta)) * BYTES, BYTES);
        }
    }

    /// Looks for races with an access to tensor memory.
    pub(crate) fn look_at_tensor_memory(&self, state: &mut State, e: &TensorEvent<'_>) {
        if state.over {
            return;
        }
        state.tensor = true;
        if e.access.writes() {
            state.advance();
        }
        let base = MEMORY + u64::from(self.index(e.cta)) * BYTES;
        let site = state.sites.number(&e.actor, e.access, e.order, WORD as u32);
        for (lane, column, count) in e.runs {
            let address = base + (u64::from(*lane) * COLUMNS + u64::from(*column)) * WORD;
            let size = count * WORD as u32;
            let State { shadow, ctas, sites, threads, buffer, hits, .. } = &mut *state;
            let Some(cta) = ctas.get_mut(self.index(e.actor.cta)) else { return };
            let who = (e.actor.warp, e.actor.lanes, e.order.asynchronous);
            let row = self.row(&mut cta.threads, (site, sites.kinds[site as usize]), who, threads.now);
            row.access((shadow, buffer), (&cta.threads, &sites.kinds), e.actor.lanes, (address, size), hits);
            if hits.is_empty() {
                continue;
            }
            let inferred = Inferred::at(address);
            let event = inferred.event(e.actor, e.access, e.order, size);
            self.judge_all(state, &MemoryEvent { element: WORD as u32, ..event });
        }
    }
}
