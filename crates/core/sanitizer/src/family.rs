//! Races between a grid and the work that its threads queue: launches from device code, copies, fills (CUDA C++ Programming Guide, "CUDA
//! Dynamic Parallelism", "Memory Coherence and Consistency").
//!
//! * What a thread has done, and what it knows to be done, precedes what it queues from then on.
//! * No grid can wait for what it has queued, so nothing else of it is ordered with that, unless it is queued to the tail stream, which
//!   begins when the grid and its other work have ended.
//! * Work that threads of one CTA queue to the same stream is performed in order. Other streams, streams of other CTAs, and all of the
//!   fire-and-forget stream, are not ordered. A grid has ended when all that it has queued has ended.

use crate::{
    Finding, FindingKind, Party, Sanitizer, State,
    clock::Clock,
    footprint::Footprint,
    hash::Map,
    lanes,
    marks::Marks,
    name,
    row::side,
    shadow::{Record, WORD, WarpLanes},
    site::{Place, Site},
};
use margay_exec::{
    AccessKind, Initiator, LANES, Memory,
    device::{FIRE_AND_FORGET, Origin},
};
use std::collections::HashSet;

/// The maximum number of pieces of work to remember, and the maximum number of bytes of what they have written.
const LIMIT: usize = 1024;
const MAX_BYTES: u64 = 64 << 20;

/// What a thread has queued.
pub struct Queued {
    /// What precedes it.
    pub clock: Clock,
    /// Where it was queued.
    pub at: Place,
}

/// The linear index of a thread in its grid, with full warps.
pub fn thread(cta: u32, warps: u32, (warp, lane): (u32, u32)) -> u64 {
    (u64::from(cta) * u64::from(warps) + u64::from(warp)) * LANES as u64 + u64::from(lane)
}

/// A piece of work.
struct Piece {
    /// The number of the grid that has queued it, and its thread.
    by: Option<(usize, Origin)>,
    /// If it is a grid: what it has done.
    sanitizer: Option<Sanitizer>,
    name: String,
    /// It stands for a wait of its stream for an event: a fill of no bytes.
    waits: bool,
    touched: Footprint,
    /// The values of 64 bytes each of what it has written, by address.
    values: Map<u64, [u8; 64]>,
}

/// A grid that the host has launched, and all that was queued by it, in the order in which it was performed.
#[derive(Default)]
pub struct Family {
    pieces: Vec<Piece>,
    bytes: u64,
}

/// An access of a piece of work to a word.
struct Access {
    record: Option<Record>,
    writes: bool,
}

impl Family {
    /// Adds a grid, and what it has touched; `by` says who has queued it. Returns the races with earlier pieces.
    pub fn add_grid(
        &mut self,
        by: Option<(usize, Origin)>,
        name: &str,
        (sanitizer, touched): (Option<Sanitizer>, Footprint),
        memory: &Memory,
    ) -> Vec<Finding> {
        let name = name.to_owned();
        self.add(Piece { by, sanitizer, name, waits: false, touched, values: Map::default() }, memory)
    }

    /// Adds a copy or fill.
    pub fn add_move(
        &mut self,
        by: (usize, Origin),
        (read, written): (Option<(u64, u64)>, (u64, u64)),
        memory: &Memory,
    ) -> Vec<Finding> {
        let mut touched = Footprint::default();
        if let Some((at, bytes)) = read {
            touched.add(at, bytes, false);
        }
        touched.add(written.0, written.1, true);
        let name = if read.is_some() { "a copy" } else { "a fill" };
        let waits = read.is_none() && written.1 == 0;
        let piece = Piece { by: Some(by), sanitizer: None, name: name.into(), waits, touched, values: Map::default() };
        self.add(piece, memory)
    }

    /// Adds a piece of work that has just ended, and keeps what it has written.
    fn add(&mut self, mut piece: Piece, memory: &Memory) -> Vec<Finding> {
        if self.pieces.len() >= LIMIT {
            return Vec::new();
        }
        for (at, _) in piece.touched.written() {
            let line = at / 64 * 64;
            if self.bytes < MAX_BYTES && !piece.values.contains_key(&line) {
                piece.values.insert(line, contents(memory, line));
                self.bytes += 64;
            }
        }
        self.pieces.push(piece);
        let new = self.pieces.len() - 1;
        let (mut found, mut places) = (Vec::new(), HashSet::new());
        for earlier in 0..new {
            if let Some(queued) = self.unordered(earlier, new) {
                self.compare((earlier, new, queued), memory, &mut places, &mut found);
            }
        }
        found
    }

    /// The pieces from one up to the grid of the host.
    fn line(&self, from: usize) -> Vec<usize> {
        let up = |at: &usize| self.pieces.get(*at)?.by.map(|(grid, _)| grid);
        std::iter::successors(Some(from), up).collect()
    }

    /// Whether an earlier piece may race with a later one. If it is a grid among the later one's ancestors, `Some(Some(piece))` is what it
    /// has queued on the way there.
    fn unordered(&self, earlier: usize, later: usize) -> Option<Option<usize>> {
        let (a, b) = (self.line(earlier), self.line(later));
        let common = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
        let below = |line: &[usize]| line.len().checked_sub(common + 1).map(|at| line[at]);
        let second = below(&b)?;
        let by = |piece: usize| self.pieces[piece].by.map(|(_, origin)| origin);
        if by(second)?.is_tail() {
            return None;
        }
        let Some(first) = below(&a) else { return Some(Some(second)) };
        (!self.in_order((first, by(first)?), (second, by(second)?))).then_some(None)
    }

    /// Whether of two pieces that threads of one grid have queued the first is over when the second begins.
    fn in_order(&self, (first, a): (usize, Origin), (second, b): (usize, Origin)) -> bool {
        let (Initiator::Thread(_, cta), Initiator::Thread(_, other)) = (a.thread, b.thread) else { return true };
        if cta != other || a.is_tail() {
            return a.is_tail();
        }
        let lone = a.stream == FIRE_AND_FORGET || b.stream == FIRE_AND_FORGET;
        if a.stream == b.stream && !lone {
            return true;
        }
        // A wait for an event comes after all that the CTA has queued before it.
        let waits = |piece: &Piece| {
            let same = |(grid, by): (usize, Origin)| {
                let alike = matches!(by.thread, Initiator::Thread(_, c) if c == cta);
                Some(grid) == self.pieces[first].by.map(|(grid, _)| grid) && alike && by.stream == b.stream
            };
            piece.waits && piece.by.is_some_and(same)
        };
        self.pieces[first..second].iter().any(waits)
    }

    /// Finds races of two pieces.
    fn compare(
        &self,
        (earlier, later, queued): (usize, usize, Option<usize>),
        memory: &Memory,
        places: &mut HashSet<(u64, u64)>,
        found: &mut Vec<Finding>,
    ) {
        let (a, b) = (&self.pieces[earlier], &self.pieces[later]);
        let mut ranges = Vec::new();
        a.touched.conflicts(&b.touched, &mut |at, size| ranges.push((at, size)));
        if ranges.is_empty() {
            return;
        }
        let states = [a, b].map(|piece| piece.sanitizer.as_ref().map(|s| s.state.lock()));
        let [mine, theirs] = states.each_ref().map(|state| state.as_deref());
        let before = queued.and_then(|piece| {
            let (Initiator::Thread(tid, cta), number) = self.pieces[piece].by.map(|(_, o)| (o.thread, o.number))?
            else {
                return None;
            };
            let sanitizer = a.sanitizer.as_ref()?;
            mine?.queued.get(&sanitizer.number_of(tid, cta))?.get(number as usize)
        });
        if queued.is_some() && before.is_none() {
            return;
        }
        let mut last = u64::MAX;
        for word in ranges.iter().flat_map(|(at, size)| (at / WORD..(at + size).div_ceil(WORD)).map(|word| word * WORD))
        {
            if word == last {
                continue;
            }
            last = word;
            if theirs.is_some_and(|state| state.allocated.contains(word)) {
                continue;
            }
            let line = word / 64 * 64;
            let now = contents(memory, line);
            let at = (word - line) as usize;
            let equal = a.values.get(&line).is_some_and(|then| then[at..at + 4] == now[at..at + 4]);
            for x in a.accesses(mine, word) {
                let known =
                    |r: Record| before.is_some_and(|queued| is_known(&queued.clock, r, mine, a.sanitizer.as_ref()));
                if x.record.is_some_and(known) {
                    continue;
                }
                for y in b.accesses(theirs, word) {
                    let sites = (site(mine, &x), site(theirs, &y));
                    if !conflict((a, &x), (b, &y), sites) || x.writes && y.writes && equal {
                        continue;
                    }
                    let key = |site: Option<&Site>| site.map_or(u64::MAX, |s| s.at.1.span.start.into());
                    if places.insert((key(sites.0), key(sites.1))) {
                        found.push(race((a, &x, sites.0), (b, &y, sites.1), (word, before.map(|q| q.at)), memory));
                    }
                }
            }
        }
    }
}

/// What memory holds at a line of 64 bytes; zeros where nothing is allocated.
fn contents(memory: &Memory, line: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    if memory.read(line, &mut bytes).is_err() {
        for (word, at) in bytes.chunks_mut(4).zip((line..).step_by(4)) {
            let _ = memory.read(at, word);
        }
    }
    bytes
}

fn site<'s>(state: Option<&'s State>, access: &Access) -> Option<&'s Site> {
    Some(state?.sites.get(access.record?.site()))
}

/// Whether an access precedes what the clock belongs to.
fn is_known(clock: &Clock, record: Record, state: Option<&State>, sanitizer: Option<&Sanitizer>) -> bool {
    let (Some(state), Some(sanitizer)) = (state, sanitizer) else { return false };
    let side = side(&record, state.sites.kinds[record.site() as usize]);
    record.warp_lanes(sanitizer.warps).all(|WarpLanes { cta, warp, lanes: mask }| {
        lanes(mask).all(|lane| clock.get((cta, warp, lane), side) >= record.time)
    })
}

fn conflict((a, x): (&Piece, &Access), (b, y): (&Piece, &Access), sites: (Option<&Site>, Option<&Site>)) -> bool {
    if !x.writes && !y.writes {
        return false;
    }
    if let (Some(x), Some(y)) = (x.record, y.record)
        && x.bytes() & y.bytes() == 0
    {
        return false;
    }
    match (sites, &a.sanitizer, &b.sanitizer) {
        ((Some(x), Some(y)), Some(sanitizer), Some(_)) => !sanitizer.are_morally_strong_in_grid((x, y)),
        _ => true,
    }
}

impl Piece {
    fn accesses(&self, state: Option<&State>, word: u64) -> Vec<Access> {
        match state {
            Some(state) => {
                let of = |record: Record| Access {
                    record: Some(record),
                    writes: state.sites.get(record.site()).access.writes(),
                };
                state.shadow.records(word).into_iter().map(of).collect()
            }
            None => {
                let [reads, writes] = self.touched.plain(word, WORD);
                let of = |writes| Access { record: None, writes };
                [(reads, false), (writes, true)].into_iter().filter(|(is, _)| *is).map(|(_, w)| of(w)).collect()
            }
        }
    }

    /// Who makes an access, for people.
    fn party(&self, access: &Access, site: Option<&Site>) -> Option<Party> {
        let (record, site, sanitizer) = (access.record?, site?, self.sanitizer.as_ref()?);
        let group = record.warp_lanes(sanitizer.warps).next()?;
        let verb = match site.access {
            AccessKind::Load => "reads",
            AccessKind::Store => "writes",
            AccessKind::Atomic => "updates atomically",
            AccessKind::Free => "frees",
        };
        Some(Party {
            verb: verb.into(),
            thread: sanitizer.thread(group.warp, group.lanes.trailing_zeros()),
            cta: sanitizer.cta_of(group.cta),
            at: site.at,
            callers: site.callers.clone(),
        })
    }
}

fn race(
    (a, x, first): (&Piece, &Access, Option<&Site>),
    (b, y, second): (&Piece, &Access, Option<&Site>),
    (word, queued): (u64, Option<Place>),
    memory: &Memory,
) -> Finding {
    let kind = |writes: bool| if writes { "write" } else { "read" };
    let element = second.or(first).map_or(4, |s| s.element);
    let names = a.sanitizer.as_ref().or(b.sanitizer.as_ref()).map(|c| c.names);
    let what = names.map_or_else(String::new, |names| name::global(memory, names, word, element));
    let mut notes = Vec::new();
    let of = |piece: &Piece, access: &Access, site: Option<&Site>| {
        let party = piece.party(access, site);
        match (party, site, &piece.sanitizer) {
            (Some(p), Some(site), Some(sanitizer)) => {
                let three = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
                let (thread, cta, line) = (three(p.thread), three(p.cta), sanitizer.line(site.at));
                format!("thread {thread} of CTA {cta} of `{}` {} at {line}", piece.name, p.verb)
            }
            _ => format!("{} {}s", piece.name, kind(access.writes)),
        }
    };
    notes.push(of(a, x, first));
    if second.is_none() {
        notes.push(of(b, y, second));
    }
    if let (Some(at), Some(sanitizer)) = (queued, &a.sanitizer) {
        notes.push(format!("`{}` has queued it before, at {}", a.name, sanitizer.line(at)));
    }
    let quoted =
        |piece: &Piece| if piece.sanitizer.is_some() { format!("`{}`", piece.name) } else { piece.name.clone() };
    let (title, help) = match queued.is_some() {
        true => (
            format!(
                "race: a {} of {what} by {} and a {} by `{}`, whose threads have launched it, are not ordered",
                kind(y.writes),
                quoted(b),
                kind(x.writes),
                a.name
            ),
            "a grid sees what the launching thread has done or knows to be done (`__syncthreads()` before the launch), and its parent cannot \
             wait for it; what comes after it belongs in a grid in `cudaStreamTailLaunch`",
        ),
        false => (
            format!(
                "race: a {} of {what} by {} and a {} by {}, which threads of one grid have launched, are not ordered",
                kind(y.writes),
                quoted(b),
                kind(x.writes),
                quoted(a)
            ),
            "launch both from one CTA into the same stream, or the later one into `cudaStreamTailLaunch`",
        ),
    };
    let parties = b.party(y, second).into_iter().collect();
    Finding { kind: FindingKind::Race, title, parties, notes, help: Some(help.into()), times: 1 }
}

impl Sanitizer {
    /// The linear index of a thread in its grid.
    fn number_of(&self, tid: [u32; 3], cta: [u32; 3]) -> u64 {
        let t = tid[0] + self.block[0] * (tid[1] + self.block[1] * tid[2]);
        thread(self.index(cta), self.warps, (t / LANES as u32, t % LANES as u32))
    }
}

impl Marks {
    /// Whether the byte at an address is marked.
    fn contains(&self, address: u64) -> bool {
        Marks::count(&[self], address, 1) > 0
    }
}
