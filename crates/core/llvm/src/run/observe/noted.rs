//! What generated code notes instead of reporting it (`emit/observe/noted.rs`).

use super::Observation;
use crate::{ctx::WarpCtx, run::host::Host};
use margay_exec::{LineUse, LineUses, RowLoad, RowLoads};
use std::{cell::Cell, sync::Arc};

/// Accesses that are noted before the observer gets them; a barrier forgets them.
pub const LIMIT: usize = 4096;

impl Observation<'_> {
    /// Tells generated code where it notes accesses.
    pub fn give_buffers(&self, ctx: &mut WarpCtx) {
        let range = |list: &[Cell<RowLoad>]| {
            let first = list.as_ptr().expose_provenance() as u64;
            (first, first + size_of_val(list) as u64)
        };
        (ctx.loads_begin, ctx.loads_end) = range(&self.loads);
        ctx.loads.set(ctx.loads_begin);
        (ctx.notes_begin, ctx.notes_end) = range(&self.notes);
        ctx.notes.set(ctx.notes_begin);
    }

    /// What generated code has noted in a buffer that ends there, up to `next`, which it moves to the beginning.
    pub(super) fn take<'n>(list: &'n [Cell<RowLoad>], next: &Cell<u64>, end: u64) -> &'n [Cell<RowLoad>] {
        let noted = list.len() - (end - next.get().min(end)) as usize / size_of::<RowLoad>();
        next.set(end - size_of_val(list) as u64);
        &list[..noted]
    }
}

impl Host<'_> {
    /// Whether nothing has been noted since the last report to the observer.
    pub(super) fn nothing_is_noted(&self, ctx: &WarpCtx) -> bool {
        ctx.met.get() == 0 && ctx.loads.get() == ctx.loads_begin && ctx.notes.get() == ctx.notes_begin
    }

    /// Reports the barriers that the CTA has completed since the last report.
    pub(super) fn report_met(&self, ctx: &WarpCtx) {
        let times = ctx.met.replace(0);
        if times > 0
            && let Some(observation) = self.observation.as_deref()
            && let Some(locked) = &mut *observation.lock()
        {
            locked.met(ctx.cta.get(), &observation.born, times);
        }
    }

    /// Reports what generated code has noted.
    pub fn report_noted(&self, ctx: &WarpCtx) {
        let Some(observation) = self.observation.as_deref() else { return };
        let Observation { notes, places, .. } = observation;
        self.report_met(ctx);
        let list = Observation::take(notes, &ctx.notes, ctx.notes_end);
        if list.is_empty() {
            return;
        }
        if let Some(locked) = &mut *observation.lock() {
            locked.noted(&RowLoads { cta: ctx.cta.get(), list, places, local: self.local_of(ctx, 0) });
        }
    }

    /// Lets generated code note what need not be reported from now on; `begin` if a CTA has just begun, on whose shared memory it may
    /// do so.
    pub(super) fn allow_notes(&self, ctx: &WarpCtx, begin: bool) {
        let Some(observation) = self.observation.as_deref() else { return };
        let locked = observation.locked.borrow();
        let uses = locked.as_ref().and_then(|locked| locked.uses(ctx.cta.get()));
        let mut known = observation.uses.borrow_mut();
        if begin {
            *known = uses.cloned();
        }
        // A CTA that has begun elsewhere has other lines.
        let same = |uses: &&LineUses| known.as_ref().is_some_and(|known| Arc::ptr_eq(&known.lines, &uses.lines));
        let Some(uses) = uses.filter(same) else { return ctx.line_count.set(0) };
        ctx.uses.set(uses.lines.as_ptr().expose_provenance() as u64);
        ctx.first_line.set(uses.first);
        ctx.line_count.set(uses.lines.len() as u64);
        ctx.line_read.set(LineUse::new(uses.interval, LineUse::READ).0);
    }

    /// Forgets what was noted.
    pub(super) fn drop_noted(&self, ctx: &WarpCtx) {
        if let Some(observation) = self.observation.as_deref() {
            Observation::take(&observation.notes, &ctx.notes, ctx.notes_end);
        }
    }
}
