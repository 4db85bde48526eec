//! Memory of CTAs that have ended, for later ones of the same kernel.

use super::{cluster, state::Warp};
use crate::{Row, mem::Allocation};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// CTAs whose memory a kernel keeps at most.
const LIMIT: usize = 64;
/// Bytes that all kernels of a process keep. Test suites have thousands of kernels.
const BUDGET: u64 = 256 << 20;
/// Bytes that they keep now.
static KEPT: AtomicU64 = AtomicU64::new(0);

/// The memory of a CTA.
#[derive(Default)]
pub struct CtaMemory {
    pub warps: Vec<Warp>,
    pub shared: Option<Arc<Allocation>>,
    /// The local windows of all threads, `stride` bytes apart.
    pub local: Option<Arc<Allocation>>,
    pub stride: u64,
}

impl CtaMemory {
    /// Bytes that stay in use. Local windows do not count, since most of their pages were never touched.
    fn bytes(&self) -> u64 {
        let rows = |w: &Warp| w.register_rows() + w.registers.len() + w.space.len() + w.stage.len() + w.scratch.len();
        let rows: usize = self.warps.iter().map(rows).sum();
        (rows * size_of::<Row>()) as u64 + self.shared.as_ref().map_or(0, |s| s.block.len() as u64)
    }
}

/// The memory of ended CTAs of one kernel.
#[derive(Default)]
pub struct Spare(Mutex<Vec<(CtaMemory, Share)>>);

impl Spare {
    /// Takes memory of a CTA of this shape, if there is some.
    pub fn take(&self, shared: u64, stride: u64, warps: usize) -> CtaMemory {
        let mut spare = self.0.lock();
        let fits = |(m, _): &(CtaMemory, Share)| {
            m.stride == stride
                && m.warps.len() == warps
                && m.shared.as_ref().is_some_and(|s| s.block.len() as u64 == shared)
        };
        match spare.iter().position(fits) {
            Some(i) => spare.swap_remove(i).0,
            None => {
                spare.clear();
                CtaMemory::default()
            }
        }
    }

    /// Keeps the memory of a CTA that has ended, unless too much is kept already.
    pub fn give(&self, mut memories: CtaMemory) {
        let Some(share) = Share::of(memories.bytes()) else { return };
        memories.warps.iter_mut().for_each(|w| cluster::clean(w, memories.stride));
        let mut spare = self.0.lock();
        if spare.len() < LIMIT {
            spare.push((memories, share));
        }
    }
}

/// A part of [`BUDGET`].
struct Share(u64);

impl Share {
    fn of(bytes: u64) -> Option<Share> {
        let more = |kept: u64| kept.checked_add(bytes).filter(|all| *all <= BUDGET);
        KEPT.fetch_update(Relaxed, Relaxed, more).is_ok().then_some(Share(bytes))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        KEPT.fetch_sub(self.0, Relaxed);
    }
}
