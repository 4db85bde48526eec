//! Accesses to local memory outside of the kernel's variables (`emit/observe/frame.rs`).

use crate::{ctx::WarpCtx, run::host::Host};
use margay_exec::{AccessKind, Actor, Concern, LANES, UndefinedEvent, local_beyond};
use std::ops::Range;

impl Host<'_> {
    /// Reports the first lane whose access, at an offset in its window, leaves what is `occupied`, as the reference engine does.
    pub(super) fn overrun(
        &self,
        ctx: &WarpCtx,
        site: usize,
        (mask, offsets): (u32, &[u64; LANES]),
        (bytes, access, occupied): (u32, AccessKind, Range<u32>),
    ) {
        let end = |lane: usize| offsets[lane].saturating_add(u64::from(bytes));
        let occupied = u64::from(occupied.start)..u64::from(occupied.end);
        let outside = |lane: usize| offsets[lane] < occupied.start || end(lane) > occupied.end;
        let leaves = |lane: &usize| mask >> lane & 1 == 1 && offsets[*lane] < ctx.local_size && outside(*lane);
        let Some(observation) = self.observation.as_deref() else { return };
        let Some(lane) = (0..LANES).find(leaves) else { return };
        self.release_observer(ctx);
        let at = observation.places[site].at;
        let func = self.grid.image.ir.func(at.0);
        let actor = Actor { cta: ctx.cta.get(), warp: ctx.warp.get(), lanes: 1 << lane, at, callers: &[] };
        let what = local_beyond(func, access, (offsets[lane], bytes), occupied);
        observation.observer.undefined(UndefinedEvent {
            actor,
            concern: Concern::Bounds,
            what,
            origin: None,
            usage: None,
        });
    }
}
