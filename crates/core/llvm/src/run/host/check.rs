//! Slow paths of address checks: compiled code calls them where the range cached for a site does not contain an address.

use crate::{
    ctx::WarpCtx,
    emit::{GroupSite, SiteKind},
    run::host::Host,
};
use margay_exec::{
    Access, Bug, FaultKind, LANES, Stop,
    mem::{self, Allocation, Arena},
    single_step::OTHER_THREAD,
};
use std::sync::atomic::{Ordering::SeqCst, fence};

/// From this number of checks on that have found a small allocation, one of [`SMALL_ENTERED`] enters it as its site's range.
const MANY_SMALL: u32 = 64;
const SMALL_ENTERED: u32 = 8;

/// The valid range around an address.
#[derive(Clone, Copy)]
struct Extent {
    start: u64,
    length: u64,
    writable: bool,
    /// Belongs to one lane: invalid for the others.
    per_lane: bool,
    /// One of the device heap's small objects.
    heap: bool,
}

impl Extent {
    /// Whether an access of `bytes` bytes at an address lies within.
    fn holds(&self, address: u64, bytes: u64) -> bool {
        let offset = address.checked_sub(self.start).filter(|o| *o <= self.length);
        offset.is_some_and(|o| bytes <= self.length - o)
    }
}

/// What a site accesses.
#[derive(Clone, Copy)]
struct Place {
    /// Size in bytes per lane.
    bytes: u64,
    align: u64,
    write: bool,
    space: &'static str,
}

impl Host<'_> {
    /// Checks the access of every active lane and caches the range around the first lane's for the site.
    pub fn check(&self, ctx: &WarpCtx, site: usize, mask: u32, addresses: &[u64; LANES]) -> Result<(), Box<Stop>> {
        let Some(place) = self.place(site) else {
            return Err(Box::new(Stop::Bug(Bug("a check at a site without an access".into()))));
        };
        let epoch = self.grid.memory.epoch();
        let found = self.find_range(ctx, &place, mask, addresses);
        let range = found.map_err(|refused| Box::new(self.refused(ctx, site, &place, refused, addresses)))?;
        self.enter(site, range, epoch);
        Ok(())
    }

    /// Whether every active lane may access `bytes` bytes as the access of a site does, all in one piece of memory.
    pub fn check_together(&self, ctx: &WarpCtx, site: usize, mask: u32, addresses: &[u64; LANES], bytes: u64) -> bool {
        let Some(place) = self.place(site) else { return false };
        let epoch = self.grid.memory.epoch();
        // Compiled code has compared the alignment, which differs by access.
        let found = self.find_range(ctx, &Place { bytes, align: 1, ..place }, mask, addresses);
        found.is_ok_and(|range| {
            self.enter(site, range, epoch);
            true
        })
    }

    /// Checks accesses at distances from the addresses of the active lanes, one after another; an error names the one that fails.
    pub fn check_group(
        &self,
        ctx: &WarpCtx,
        site: usize,
        mask: u32,
        addresses: &[u64; LANES],
    ) -> Result<(), (usize, Box<Stop>)> {
        let SiteKind::Group(group) = &self.code.compiled.sites[site].kind else {
            return Err((0, Box::new(Stop::Bug(Bug("a check at a site without a group".into())))));
        };
        if self.holds_group(ctx, group, mask, addresses) {
            return Ok(());
        }
        for (i, (site, plus)) in group.members.iter().enumerate() {
            let addresses = addresses.map(|a| a.wrapping_add_signed(*plus));
            self.check(ctx, *site, mask, &addresses).map_err(|stop| (i, stop))?;
        }
        Ok(())
    }

    /// Whether all accesses of a group lie together: in the range of the site that leads it, in the lanes' own windows, or in memory that
    /// has to be looked up.
    fn holds_group(&self, ctx: &WarpCtx, group: &GroupSite, mask: u32, addresses: &[u64; LANES]) -> bool {
        let SiteKind::Access { size, space, .. } = self.code.compiled.sites[group.lead].kind else { return false };
        if mem::lanes_misaligned(addresses, group.odd_at as u64, group.odd) & mask != 0 {
            return false;
        }
        let within = |start: u64, step: u64, room: u64| match room.checked_sub(group.span) {
            Some(most) => mem::lanes_at_home(addresses, (start.wrapping_add_signed(-group.least), step), most),
            None => 0,
        };
        if space == ".shared" {
            return mask & !within(self.windows().shared.block.base(), 0, self.windows().shared.block.len() as u64)
                == 0;
        }
        let (low, places) = self.windows().ranges.get(group.lead + 1);
        let room = if places == 0 { 0 } else { places - 1 + u64::from(size) };
        let mut rest = mask & !within(low, 0, room);
        if rest != 0 && space == "generic" {
            let room = ctx.local_size.min(ctx.local_stride);
            rest &= !within(ctx.local.get(), ctx.local_stride, room);
        }
        if rest == 0 || group.members.len() == 1 {
            return rest == 0;
        }
        let addresses = addresses.map(|a| a.wrapping_add_signed(group.least));
        self.check_together(ctx, group.lead, mask, &addresses, group.span)
    }

    /// Caches a range for a site, found at an epoch of the memory.
    fn enter(&self, site: usize, [start, length]: [u64; 2], epoch: u64) {
        // Where code goes from one small object to the next, a range that is entered serves no later access.
        if mem::is_small(length) {
            let count = self.small.get().wrapping_add(1);
            self.small.set(count);
            if count > MANY_SMALL && !count.is_multiple_of(SMALL_ENTERED) && self.windows().ranges.places(site + 1) != 0
            {
                return;
            }
        }
        let SiteKind::Access { size, span, shift, .. } = self.code.compiled.sites[site].kind else { return };
        let is_heap = |heap: &&Arena| heap.find(start).is_some();
        if self.grid.memory.heap_objects().filter(is_heap).is_some_and(|heap| !heap.note_cached(start)) {
            return;
        }
        // Site `site` holds the range for affine rows, `site + 1` the one for single lanes.
        for (at, span, shift) in [(site, span, shift), (site + 1, u64::from(size), 0)] {
            let low = start.next_multiple_of(1 << shift);
            let places = (length + 1).saturating_sub(span).saturating_sub(low - start);
            self.windows().ranges.set(at, low, places.div_ceil(1 << shift));
        }
        // Whoever frees this memory concurrently has either emptied the range before `set`, or changed the epoch before
        // this load.
        fence(SeqCst);
        if self.grid.memory.epoch() != epoch {
            [site, site + 1].iter().for_each(|at| self.windows().ranges.empty(*at));
        }
    }

    /// Checks an access that comes before one whose check has failed: its fault takes the place of the other's.
    pub fn check_earlier(
        &self,
        ctx: &WarpCtx,
        site: usize,
        mask: u32,
        addresses: &[u64; LANES],
    ) -> Result<(), Box<Stop>> {
        let later = self.stopped.take();
        let found = self.check(ctx, site, mask, addresses);
        if found.is_ok() {
            self.stopped.replace(later);
        }
        found
    }

    /// What a site accesses; `None` if it is not one of an access.
    fn place(&self, site: usize) -> Option<Place> {
        let SiteKind::Access { size, write, space, .. } = self.code.compiled.sites[site].kind else { return None };
        Some(Place { bytes: size.into(), align: size.next_power_of_two().min(32).into(), write, space })
    }

    /// Looks up what every active lane accesses; returns start and length of the range around the first lane's address, or the first lane
    /// that may not access what it does, and the memory there.
    fn find_range(
        &self,
        ctx: &WarpCtx,
        place: &Place,
        mask: u32,
        addresses: &[u64; LANES],
    ) -> Result<[u64; 2], (u32, Option<Extent>)> {
        let (mut range, mut rest) = ([0, 0], mask);
        while rest != 0 {
            let lane = rest.trailing_zeros();
            let address = addresses[lane as usize];
            let found = self.window(ctx, lane, address, place.space);
            let Some(w) = found.filter(|w| w.holds(address, place.bytes)) else { return Err((lane, None)) };
            if !address.is_multiple_of(place.align) || place.write && !w.writable {
                return Err((lane, Some(w)));
            }
            rest &= !(1 << lane);
            if let Some(heap) = w.heap.then(|| self.grid.memory.heap_objects()).flatten() {
                // Each lane may access another object.
                let aligned = rest & !mem::lanes_misaligned(addresses, 0, place.align - 1);
                rest &= !heap.lanes_within(addresses, aligned, place.bytes);
            }
            if !w.per_lane {
                // Neighboring lanes mostly access the same allocation.
                let within = mem::lanes_within(addresses, (w.start, w.length - place.bytes));
                rest &= !within | mem::lanes_misaligned(addresses, 0, place.align - 1);
                range = if range[1] == 0 { [w.start, w.length] } else { range };
            }
        }
        Ok(range)
    }

    /// The fault of a lane that may not access what it does.
    fn refused(
        &self,
        ctx: &WarpCtx,
        site: usize,
        place: &Place,
        (lane, found): (u32, Option<Extent>),
        addresses: &[u64; LANES],
    ) -> Stop {
        let (address, space) = (addresses[lane as usize], place.space);
        let relative = address.wrapping_sub(self.start(ctx, lane, space));
        // Offsets into the windows are 32 bits wide.
        let relative = if matches!(space, ".shared" | ".local") { relative & u64::from(u32::MAX) } else { relative };
        let access = Access { write: place.write, address: relative, size: place.bytes as u32, space };
        let (kind, note) = match found {
            None => {
                let freed = matches!(space, ".global" | "generic") && self.grid.memory.freed(address).is_some();
                let kind = if freed { FaultKind::UseAfterFree(access) } else { FaultKind::OutOfBounds(access) };
                (kind, self.note(ctx, address, space))
            }
            Some(_) if !address.is_multiple_of(place.align) => {
                (FaultKind::Misaligned(access), format!("{}-byte alignment is required", place.align))
            }
            Some(_) => (FaultKind::ReadOnly(access), self.grid.memory.describe(address)),
        };
        self.fault_at(ctx, site, lane, kind, vec![note])
    }

    /// The address at which a space's window starts.
    fn start(&self, ctx: &WarpCtx, lane: u32, space: &str) -> u64 {
        match space {
            ".shared" => self.windows().shared.block.base(),
            ".local" => ctx.local.get() + u64::from(lane) * ctx.local_stride,
            ".param" => self.grid.params().block.base(),
            _ => 0,
        }
    }

    /// The note of a fault at an address outside all memory.
    fn note(&self, ctx: &WarpCtx, address: u64, space: &str) -> String {
        let own = std::slice::from_ref(&self.windows().shared);
        match space {
            ".shared" => format!("the CTA's shared window has {} bytes", self.windows().shared.block.len()),
            ".local" => format!("the thread's local window has {} bytes", ctx.local_size),
            ".param" => format!("the parameter block has {} bytes", self.grid.params().block.len()),
            "generic" if self.windows().local.block.contains(address, 1) => OTHER_THREAD.to_owned(),
            "generic" if self.cluster.is_empty() => self.grid.memory.describe_among(address, own),
            "generic" => self.grid.memory.describe_among(address, &self.cluster),
            _ => self.grid.memory.describe(address),
        }
    }

    /// The valid range around an address of a space, if any.
    fn window(&self, ctx: &WarpCtx, lane: u32, address: u64, space: &str) -> Option<Extent> {
        let inside = |a: &Allocation| a.block.contains(address, 1);
        let all = |a: &Allocation| Extent {
            start: a.block.base(),
            length: a.block.len() as u64,
            writable: a.kind.writable(),
            per_lane: false,
            heap: false,
        };
        let own = || Extent {
            start: self.start(ctx, lane, ".local"),
            length: ctx.local_size.min(ctx.local_stride),
            writable: true,
            per_lane: true,
            heap: false,
        };
        match space {
            ".shared" => return Some(all(&self.windows().shared)),
            ".local" => return Some(own()),
            ".param" => {
                self.transient.set(true);
                return Some(all(self.grid.params()));
            }
            "generic" if inside(&self.windows().shared) => return Some(all(&self.windows().shared)),
            // A thread may only access its own local window.
            "generic" if inside(&self.windows().local) => return Some(own()),
            "generic" => {
                if let Some(a) = self.cluster.iter().find(|a| inside(a)) {
                    // The windows of a cluster are other ones in the next cluster.
                    self.transient.set(true);
                    return Some(all(a));
                }
            }
            _ => {}
        }
        if inside(self.grid.params()) {
            self.transient.set(true);
            return Some(all(self.grid.params()));
        }
        if let Some([start, length]) = self.grid.memory.heap_objects().and_then(|heap| heap.find(address)) {
            return Some(Extent { start, length, writable: true, per_lane: false, heap: true });
        }
        self.windows().lookaside.borrow_mut().find((self.grid.memory, self.grid.params()), address).map(|a| all(a))
    }

    /// The byte at a generic address of a lane, if it may read it.
    pub(super) fn byte(&self, ctx: &WarpCtx, lane: u32, address: u64) -> Option<u8> {
        let w = self.window(ctx, lane, address, "generic").filter(|w| w.holds(address, 1))?;
        let windows = [&self.windows().shared, &self.windows().local].into_iter().chain(&*self.cluster);
        match windows.into_iter().find(|a| w.start >= a.block.base() && w.start < a.end()) {
            Some(a) => mem::load::<u8>(&a.block, address),
            None => mem::load::<u8>(&self.grid.memory.find(address)?.block, address),
        }
    }
}
