//! What a sanitizer knows of a launch.

use crate::{
    barrier::{self, Arrivals},
    chosen, clash, decision,
    deferred::Deferred,
    ended, family,
    finding::{Finding, FindingKind},
    footprint::Footprint,
    hash::Map,
    init, judge, line_key, lost,
    marks::Marks,
    programmatic, provenance, rounding, row,
    shadow::{Record, Shadow},
    site::{Place, Sites},
    threads::{CtaThreads, Threads},
    ticket, unshared,
};
use margay_exec::Image;
use std::{collections::BTreeMap, sync::Arc};

/// A CTA in flight.
pub struct Cta {
    pub threads: CtaThreads,
    pub arrivals: Arrivals,
    /// Host address and size of its shared memory.
    pub shared: (u64, u64),
    /// Host address and size of what the local windows of all its warps lie in.
    pub locals: (u64, u64),
    /// Number of threads that have not exited.
    pub live: u32,
    /// What those knew that have.
    pub end: ended::End,
    pub deferred: Deferred,
}

impl Cta {
    /// Another CTA in place of one that has ended, with so many threads.
    pub fn restart(&mut self, index: u32, cluster: u32, live: u32) {
        self.threads.restart(index, cluster);
        self.arrivals.restart();
        self.deferred.restart();
        self.live = live;
        self.end = ended::End::default();
    }
}

/// The CTAs in flight, by linear index.
#[derive(Default)]
pub struct Ctas {
    list: Vec<(u32, Box<Cta>)>,
    /// Where in the list the one stands that was looked up last.
    recent: usize,
    /// The one that ended last.
    spare: Option<Box<Cta>>,
}

impl Ctas {
    #[inline]
    fn place(&self, index: u32) -> Option<usize> {
        match self.list.get(self.recent) {
            Some((known, _)) if *known == index => Some(self.recent),
            _ => self.list.iter().position(|(known, _)| *known == index),
        }
    }

    pub fn get(&self, index: u32) -> Option<&Cta> {
        Some(&self.list[self.place(index)?].1)
    }

    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut Cta> {
        self.recent = self.place(index)?;
        Some(&mut self.list[self.recent].1)
    }

    pub fn insert(&mut self, index: u32, cta: Box<Cta>) {
        self.remove(index);
        self.list.push((index, cta));
    }

    pub fn remove(&mut self, index: u32) {
        if let Some(place) = self.place(index) {
            self.spare = Some(self.list.swap_remove(place).1);
        }
    }

    /// The CTA that ended last, if it had the same shared memory: the next one may take its place.
    pub fn spare(&mut self, shared: (u64, u64)) -> Option<Box<Cta>> {
        self.spare.take().filter(|cta| cta.shared == shared)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Cta> {
        self.list.iter().map(|(_, cta)| &**cta)
    }
}

/// Identifies a finding: its kind and two [line keys](line_key).
pub type Key = (FindingKind, u64, u64);

#[derive(Default)]
pub struct State {
    pub threads: Threads,
    pub ctas: Ctas,
    pub shadow: Shadow,
    /// Bytes of shared and local memory that were written.
    pub marks: Marks,
    /// The CTAs of clusters by the host address of their shared memory, and the accesses of others to it.
    pub windows: Map<u64, u32>,
    pub remotes: Map<u32, Vec<ended::Remote>>,
    /// What loads have read that was undefined.
    pub loaded: init::Loaded,
    /// Where undefined values were stored in shared memory.
    pub copied: Map<u64, Arc<init::Source>>,
    /// What the next access stores of these, by element: where it was loaded.
    pub passed: Vec<(usize, Place)>,
    pub runs: init::Runs,
    pub sites: Sites,
    /// The program, once the launch is known, and the line key of each place.
    pub image: Option<Arc<Image>>,
    pub lines: Map<(u32, u32), u64>,
    pub barriers: barrier::Reach,
    pub found: BTreeMap<Key, Finding>,
    /// The keys in the order of their first occurrence.
    pub order: Vec<Key>,
    /// All that the latest access spans was written before it.
    pub whole: bool,
    /// Bitmap of the allocation looked up last.
    pub written: Option<Arc<margay_exec::mem::Written>>,
    pub buffer: Vec<Record>,
    pub arguments: provenance::Arguments,
    pub unshared: unshared::Unshared,
    /// By site, once it is known: the memory in which its accesses cannot race.
    pub ignored: Vec<Option<unshared::Ignored>>,
    pub hits: Vec<row::Hit>,
    /// Stores of different values to shared memory that nobody has read or overwritten since.
    pub clashes: Vec<clash::Clash>,
    /// By key of a race: how far apart its threads are, for whom its help is.
    pub reach: Map<(u64, u64), judge::Distance>,
    /// What is missing between two sites, for these.
    pub helps: Map<(u32, u32, u8), String>,
    pub footprint: Footprint,
    pub overlapping: programmatic::Overlapping,
    /// By address: who has read what a location holds by strong operations.
    pub tickets: Map<u64, ticket::Tickets>,
    pub updates: lost::Updates,
    pub butterflies: rounding::Butterflies,
    /// By site: whether what it yields is used.
    pub yields: Vec<Option<bool>>,
    /// Whether an access depends on what was read, by the positions of the read and the access in the kernel.
    pub needs: Map<(u32, u32), bool>,
    /// By function, position of a load and warp: the lanes that do not use its value.
    pub unused: Map<(u32, u32, u32), u32>,
    pub chosen: chosen::Chosen,
    pub decisions: decision::Decisions,
    /// By site, once it is known: whether threads wait by its reads.
    pub awaits: Vec<Option<bool>>,
    /// What was queued, by thread (linear index in the grid): what precedes it, and where.
    pub queued: Map<u64, Vec<family::Queued>>,
    /// What this grid has allocated on the heap.
    pub allocated: Marks,
    /// Whether tensor memory was accessed.
    pub tensor: bool,
    /// Time has overflowed, so that nothing more is checked.
    pub over: bool,
}

impl State {
    pub fn key(&mut self, kind: FindingKind, (a, b): (Place, Option<Place>)) -> Key {
        let State { image, lines, .. } = self;
        let mut of = |place: Place| {
            let make = || image.as_ref().map_or(0, |image| line_key(image, place));
            *lines.entry((place.0.0, place.1.span.start)).or_insert_with(make)
        };
        let (a, b) = (of(a), b.map_or(u64::MAX, of));
        (kind, a.min(b), a.max(b))
    }

    /// Adds a finding, or counts another occurrence of it.
    pub fn report(&mut self, kind: FindingKind, places: (Place, Option<Place>), make: impl FnOnce() -> Finding) {
        let key = self.key(kind, places);
        match self.found.get_mut(&key) {
            Some(finding) => finding.times += 1,
            None => {
                self.found.insert(key, make());
                self.order.push(key);
            }
        }
    }

    /// Whether a finding exists already.
    pub fn is_known(&mut self, kind: FindingKind, places: (Place, Option<Place>)) -> bool {
        let key = self.key(kind, places);
        self.found.contains_key(&key)
    }

    /// Counts one more of a finding that is there.
    pub fn count(&mut self, kind: FindingKind, places: (Place, Option<Place>)) {
        let key = self.key(kind, places);
        if let Some(finding) = self.found.get_mut(&key) {
            finding.times += 1;
        }
    }

    pub fn advance(&mut self) {
        self.over |= !self.threads.advance();
    }
}
