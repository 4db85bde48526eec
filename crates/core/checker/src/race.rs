//! Races: overlapping accesses, at least one of them a write, that are neither ordered nor morally strong (manual,
//! section 8.7).
//!
//! Two stores of the same value are not reported (compute-sanitizer lists them as information): programs set a flag
//! from many threads. Volatile accesses are strong and do not race (section 8.4.2). Yet a volatile write and read in
//! shared memory by lanes of one warp are reported if they are unordered and no fence makes the location a flag: such
//! code relies on warps executing in lockstep.

use crate::{
    Checker, Finding, FindingKind, Party, State,
    clock::{Side, Time},
    lanes, name,
    shadow::{AGENT, Cell, Crew, Record, Shadow, WORD},
    site::{Kind, Site},
    threads::{CtaThreads, Seen, Threads, Who},
};
use margay_exec::{AccessKind, LANES, MemoryEvent, ObjectStep, Ordering, Scope, Semantics, SyncEvent};

/// What is missing between two accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    /// A wait for an asynchronous copy.
    Copy,
    /// A scope that includes the other thread.
    Scope,
    /// Equal sizes: both accesses are strong.
    Size,
    /// Strength of one of the accesses.
    Plain,
    /// A barrier between volatile accesses of a warp.
    Volatile,
    /// A barrier.
    Order,
}

/// The narrowest group that contains two threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Distance {
    Thread,
    Warp,
    Cta,
    Cluster,
    Grid,
}

/// A group of lanes that access memory now.
struct Row {
    /// Its CTA, and the number of the CTA's first warp in the launch.
    cta: u32,
    first: u32,
    /// Warps of a CTA.
    warps: u32,
    warp: u32,
    site: u32,
    kind: Kind,
    agent: bool,
    now: Time,
    /// What all of its lanes have seen.
    seen: Seen,
    /// The time of the last release by the warp.
    published: Time,
}

/// An earlier access by one lane that is unordered with the present one.
pub struct Hit {
    earlier: Record,
    other: Crew,
    lane: u32,
    word: u64,
    mask: u32,
}

impl Row {
    fn who(&self) -> u32 {
        (self.first + self.warp) | if self.agent { AGENT } else { 0 }
    }

    /// Whether lanes certainly have seen an earlier access; if not, [`unordered`] decides.
    #[inline(always)]
    fn has_seen(&self, r: Record, lanes: u32) -> bool {
        let warp = r.who.wrapping_sub(self.first);
        if warp < self.warps {
            let own = warp == self.warp && (r.time <= self.seen.warp || r.lanes == lanes);
            return r.time <= self.seen.cta || own;
        }
        !r.is_agent() && r.time <= self.seen.cta && r.cta(self.warps) == self.cta
    }

    /// The fast path: records an access of a word with at most two earlier records, if there is no race and no list is
    /// needed. False if the slow path must run.
    #[inline(always)]
    fn quick(&self, cell: &mut Cell, kinds: &[Kind], lanes: u32, mask: u32) -> bool {
        if self.kind.strong || self.agent {
            return false;
        }
        let Some(records) = cell.records() else { return false };
        let new = Record::new((self.who(), lanes), self.now, self.site, mask);
        if self.kind.writes {
            let passed = |r: &Record| !r.is_some() || r.bytes() & !mask == 0 && self.has_seen(*r, lanes);
            let passed = passed(&records[0]) && passed(&records[1]);
            if passed {
                *records = [new, Record::none()];
            }
            return passed;
        }
        for r in records.iter().filter(|r| r.is_some() && r.bytes() & mask != 0) {
            if kinds[r.site() as usize].writes && !self.has_seen(*r, lanes) {
                return false;
            }
        }
        let crew = Crew { cta: self.cta, warp: self.warp, lanes };
        for r in records.iter_mut().filter(|r| r.is_some() && r.site() == self.site && r.bytes() == mask) {
            if r.time > self.published && r.join(crew, self.warps) {
                return true;
            }
            if r.who == new.who && r.lanes & !lanes == 0 {
                *r = new;
                return true;
            }
        }
        match records.iter_mut().find(|r| !r.is_some()) {
            Some(free) => {
                *free = new;
                true
            }
            None => false,
        }
    }

    /// An access of some lanes at one address, word by word.
    #[inline(always)]
    fn access(
        &self,
        (shadow, buffer): (&mut Shadow, &mut Vec<Record>),
        (cta, kinds): (&CtaThreads, &[Kind]),
        group: u32,
        (address, size): (u64, u32),
        hits: &mut Vec<Hit>,
    ) {
        let end = address + u64::from(size);
        let mut word = address & !(WORD - 1);
        while word < end {
            let (from, to) = (address.max(word) - word, end.min(word + WORD) - word);
            let mask = (1u32 << to) - (1 << from);
            if !self.quick(shadow.cell(word), kinds, group, mask) {
                shadow.update(word, |list| access_word(self, (cta, kinds), group, (word, mask), list, hits), buffer);
            }
            word += WORD;
        }
    }

    /// Removes from an earlier record the lanes that now repeat the access by the same instruction; whether any are
    /// left.
    fn supersede(&self, r: &mut Record, lanes: u32, mask: u32) -> bool {
        if r.site() != self.site || r.bytes() != mask {
            return true;
        }
        if r.who == self.who() {
            r.lanes &= !lanes;
        } else if !self.agent
            && !r.is_agent()
            && r.crews(self.warps).any(|c| (c.cta, c.warp) == (self.cta, self.warp) && c.lanes & !lanes == 0)
        {
            r.lanes &= !(1 << self.warp);
        }
        r.is_some()
    }
}

/// Applies release and acquire patterns at a location.
fn follow_order(threads: &mut Threads, cta: &mut CtaThreads, e: &MemoryEvent<'_>, group: u32, address: u64) {
    let strong = e.order.semantics != Semantics::Weak && !e.order.asynchronous;
    for lane in lanes(group) {
        let at = (e.actor.warp, lane);
        if strong && e.access != AccessKind::Store && !e.order.reduction {
            threads.read(cta, at, address, e.order);
        }
        if e.access.writes() {
            threads.write(cta, at, address, e.order, e.access == AccessKind::Atomic);
        }
    }
}

/// A lane that did not see an earlier access by one of its lanes: the two, if there are any.
fn unordered(cta: &CtaThreads, earlier: &Record, (warp, lanes, warps): (u32, u32, u32)) -> Option<(u32, Crew)> {
    let side = if earlier.is_agent() { Side::Agent } else { Side::Program };
    earlier.crews(warps).find_map(|crew| {
        let found = cta.unseen(Who { warp, lanes }, (crew.cta, crew.warp, crew.lanes), side, earlier.time);
        found.map(|(lane, other)| (lane, Crew { lanes: 1 << other, ..crew }))
    })
}

impl Checker {
    fn distance(&self, other: Crew, (cta, warp): ([u32; 3], u32), lane: u32) -> Distance {
        let id = self.cta_of(other.cta);
        match () {
            _ if id == cta && other.warp == warp && other.lanes == 1 << lane => Distance::Thread,
            _ if id == cta && other.warp == warp => Distance::Warp,
            _ if id == cta => Distance::Cta,
            _ if self.cluster_of(id) == self.cluster_of(cta) => Distance::Cluster,
            _ => Distance::Grid,
        }
    }

    /// Whether two accesses are morally strong: both strong, in each other's scopes, and completely overlapping
    /// (section 8.7).
    fn morally_strong(&self, (a, b): (&Site, &Site), distance: Distance) -> Result<(), Cause> {
        match (a.is_strong(), b.is_strong()) {
            (true, true) => {}
            (false, false) => return Err(Cause::Order),
            _ => return Err(Cause::Plain),
        }
        let needed = match distance {
            Distance::Thread | Distance::Warp | Distance::Cta => Scope::Cta,
            Distance::Cluster => Scope::Cluster,
            Distance::Grid => Scope::Gpu,
        };
        if a.order.scope.min(b.order.scope) < needed {
            return Err(Cause::Scope);
        }
        if a.element != b.element { Err(Cause::Size) } else { Ok(()) }
    }

    pub(crate) fn look_for_races(&self, state: &mut State, e: &MemoryEvent<'_>) {
        let site = state.sites.number(&e.actor, e.access, e.order, e.element);
        if e.access == AccessKind::Store && e.order.semantics == Semantics::Weak {
            self.compare_lanes(state, e);
        }
        // Stores get a time of their own.
        if e.access.writes() {
            state.advance();
        }
        let first = e.addresses[e.actor.lanes.trailing_zeros() as usize];
        let uniform = e.access != AccessKind::Store && lanes(e.actor.lanes).all(|l| e.addresses[l as usize] == first);
        let strong = e.order.semantics != Semantics::Weak && !e.order.asynchronous;
        let State { shadow, ctas, sites, threads, buffer, hits, .. } = state;
        let Some(cta) = ctas.get_mut(&self.index(e.actor.cta)) else { return };
        let row = self.row(&mut cta.threads, (site, sites.kinds[site as usize]), e, threads.now);
        let mut left = e.actor.lanes;
        while left != 0 {
            let lane = left.trailing_zeros();
            // Lanes that load the same address are one access, and so are lanes of one atomic; stores are performed one
            // after another.
            let group = if uniform { left } else { 1 << lane };
            left &= !group;
            let address = e.addresses[lane as usize];
            if address.wrapping_sub(e.local.0) < e.local.1 {
                continue;
            }
            row.access((shadow, buffer), (&cta.threads, &sites.kinds), group, (address, e.size), hits);
            if strong || e.access.writes() && threads.is_released(address) {
                follow_order(threads, &mut cta.threads, e, group, address);
            }
        }
        self.judge_all(state, e);
        // What is released here must be distinguishable from what follows.
        if e.access.writes() && e.order.semantics != Semantics::Weak {
            state.advance();
        }
    }

    fn row(&self, cta: &mut CtaThreads, (site, kind): (u32, Kind), e: &MemoryEvent<'_>, now: Time) -> Row {
        let (warp, warps) = (e.actor.warp, self.warps);
        Row {
            cta: cta.index,
            first: cta.index * warps,
            warps,
            warp,
            site,
            kind,
            agent: e.order.asynchronous,
            now,
            seen: cta.seen(Who { warp, lanes: e.actor.lanes }),
            published: cta.published(warp),
        }
    }

    fn judge_all(&self, state: &mut State, e: &MemoryEvent<'_>) {
        if state.hits.is_empty() {
            return;
        }
        let mut hits = std::mem::take(&mut state.hits);
        hits.drain(..).for_each(|hit| self.judge(state, e, &hit));
        state.hits = hits;
    }

    /// Reports a race between unordered accesses, unless they are morally strong or store the same value.
    fn judge(&self, state: &mut State, e: &MemoryEvent<'_>, hit: &Hit) {
        let Hit { earlier, other, lane, word, mask } = *hit;
        let site = state.sites.number(&e.actor, e.access, e.order, e.element);
        // Lanes of the same instruction are compared by `compare_lanes`.
        let here = (self.index(e.actor.cta), e.actor.warp);
        if earlier.time == state.threads.now && (other.cta, other.warp) == here && earlier.site() == site {
            return;
        }
        let (a, b) = (state.sites.get(earlier.site()), state.sites.get(site));
        let distance = self.distance(other, (e.actor.cta, e.actor.warp), lane);
        let copies = earlier.is_agent() || e.order.asynchronous;
        let cause = match self.morally_strong((a, b), distance) {
            _ if copies && !(a.is_strong() && b.is_strong()) => Cause::Copy,
            Err(cause) => cause,
            Ok(()) => {
                let address = e.addresses[lane as usize];
                let in_shared = e.windows.iter().any(|(base, size)| address.wrapping_sub(*base) < *size);
                let read = !a.access.writes() || !b.access.writes();
                let flag = !in_shared || state.threads.is_released(word);
                if !(a.order.volatile && b.order.volatile && read && distance == Distance::Warp) || flag {
                    return;
                }
                Cause::Volatile
            }
        };
        let address = e.addresses[lane as usize];
        let size = e.size.min(16) as usize;
        let mut present = vec![0; size];
        let known = (e.peek)(address, &mut present);
        let incoming: Option<Vec<u8>> = e.values.map(|v| (0..size).map(|i| v(lane as usize, i)).collect());
        if cause == Cause::Order
            && (a.access, b.access) == (AccessKind::Store, AccessKind::Store)
            && known
            && let Some(new) = &incoming
        {
            let here = (word..word + WORD).enumerate().filter(|(i, _)| (mask & earlier.bytes()) >> i & 1 == 1);
            let mut offsets = here.filter_map(|(_, at)| at.checked_sub(address)).map(|at| at as usize);
            if e.size <= 16 && offsets.all(|at| new.get(at) == present.get(at)) {
                return;
            }
        }
        let places = (a.at, Some(e.actor.at));
        if state.is_known(FindingKind::Race, places) {
            return state.count(FindingKind::Race, places);
        }
        let (a, b) = (state.sites.get(earlier.site()), state.sites.get(site));
        let element = e.element.max(1);
        let at = word.max(address);
        let at = address + (at - address) / u64::from(element) * u64::from(element);
        let what = match e.windows.iter().find(|(base, size)| at.wrapping_sub(*base) < *size) {
            Some((base, _)) => name::shared(&self.image, self.names, at - base, element),
            None => name::global(e.memory, self.names, at, element),
        };
        let verb = |site: &Site, agent: bool| match (site.access, agent) {
            (AccessKind::Load, false) => "reads",
            (AccessKind::Store, false) => "writes",
            (AccessKind::Atomic, false) => "updates atomically",
            (AccessKind::Load, true) => "reads by an asynchronous copy",
            (_, true) => "writes by an asynchronous copy",
        };
        let first = Party {
            verb: verb(a, earlier.is_agent()).into(),
            thread: self.thread(other.warp, other.lanes.trailing_zeros()),
            cta: self.cta_of(other.cta),
            at: a.at,
            callers: a.callers.clone(),
        };
        let second = self.party(&e.actor, lane, verb(b, e.order.asynchronous));
        let mut notes = Vec::new();
        if known && size <= 8 {
            let hex = |bytes: &[u8]| bytes.iter().rev().fold(String::from("0x"), |s, b| s + &format!("{b:02x}"));
            let then = incoming.map(|new| format!(", and {} is written now", hex(&new))).unwrap_or_default();
            notes.push(format!("memory holds {}{then}", hex(&present)));
        }
        let help = self.missing(cause, distance, (a, b));
        let (x, y) = (short(a.access), short(b.access));
        let title = match cause {
            Cause::Copy => format!(
                "race: an asynchronous copy and {} of {what} without a wait between",
                article(if earlier.who & AGENT != 0 { y } else { x })
            ),
            Cause::Scope => format!(
                "race: {} and {} of {what}, with a scope that does not include the other thread",
                article(x),
                article(y)
            ),
            Cause::Size => format!("race: {} and {} of {what} of different sizes", article(x), article(y)),
            Cause::Plain => {
                format!("race: {} and {} of {what}, one of them plain, are not ordered", article(x), article(y))
            }
            Cause::Volatile => {
                format!("race: volatile {x} and {y} of {what} by lanes of one warp without `__syncwarp()`")
            }
            Cause::Order => format!("race: {} and {} of {what} are not ordered", article(x), article(y)),
        };
        let (earlier, now) = (first.at, second.at);
        state.report(FindingKind::Race, (earlier, Some(now)), || Finding {
            kind: FindingKind::Race,
            title,
            parties: vec![second, first],
            notes,
            help: Some(help),
            times: 1,
        });
    }

    /// The synchronisation that would order two accesses, and where to add it.
    fn missing(&self, cause: Cause, distance: Distance, (first, second): (&Site, &Site)) -> String {
        let (from, to) = (self.line(first.in_kernel()), self.line(second.in_kernel()));
        let between =
            if from == to { format!("between two turns of {from}") } else { format!("between {from} and {to}") };
        match cause {
            Cause::Copy => format!(
                "a wait for the copy is missing {between}: `cp.async.wait_group`, `__pipeline_wait_prior`, `pipeline.consumer_wait()` \
                 or a wait at its mbarrier, and then a barrier for other threads"
            ),
            Cause::Scope => match distance {
                Distance::Cluster => "scope `.cluster` or wider is needed on both sides".into(),
                _ => "scope `.gpu` or wider is needed on both sides (`atomicAdd` instead of `atomicAdd_block`, \
                      `cuda::thread_scope_device`)"
                    .into(),
            },
            Cause::Size => "strong accesses order each other only if they overlap completely".into(),
            Cause::Volatile => {
                format!("`__syncwarp()` is missing {between}: lanes of a warp do not run in step since Volta")
            }
            _ => {
                let plain = if cause == Cause::Plain { "; or make the plain access atomic" } else { "" };
                match distance {
                    Distance::Thread | Distance::Warp => {
                        format!("`__syncwarp()` (or `__syncthreads()`) is missing {between}{plain}")
                    }
                    Distance::Cta => format!(
                        "`__syncthreads()` is missing {between}, or a flag with release and acquire (`__threadfence_block()`){plain}"
                    ),
                    Distance::Cluster => format!("`cluster.sync()` is missing {between}{plain}"),
                    Distance::Grid => format!(
                        "nothing orders the two CTAs: it takes a flag with release and acquire (`__threadfence()` before it is set \
                         and after it is read), `grid.sync()`, or two kernels{plain}"
                    ),
                }
            }
        }
    }

    /// Reports lanes of one store that write different values to one address: the result is undefined.
    fn compare_lanes(&self, state: &mut State, e: &MemoryEvent<'_>) {
        let Some(values) = e.values else { return };
        let mut order: Vec<u32> = lanes(e.actor.lanes).collect();
        order.sort_by_key(|l| e.addresses[*l as usize]);
        let clash = order.windows(2).find_map(|pair| {
            let [a, b] = [pair[0] as usize, pair[1] as usize];
            let apart = e.addresses[b] - e.addresses[a];
            let common = u64::from(e.size).checked_sub(apart)? as usize;
            let differs = (0..common).any(|i| values(a, i + apart as usize) != values(b, i));
            differs.then_some((a as u32, b as u32))
        });
        let Some((a, b)) = clash else { return };
        let address = e.addresses[b as usize];
        if address.wrapping_sub(e.local.0) < e.local.1 {
            return;
        }
        let what = match e.windows.iter().find(|(base, size)| address.wrapping_sub(*base) < *size) {
            Some((base, _)) => name::shared(&self.image, self.names, address - base, e.element),
            None => name::global(e.memory, self.names, address, e.element),
        };
        let hex = |lane: u32| {
            (0..e.size.min(8) as usize)
                .rev()
                .fold(String::from("0x"), |s, i| s + &format!("{:02x}", values(lane as usize, i)))
        };
        let note = format!("{} and {} are written at once; which one stays is undefined", hex(a), hex(b));
        let parties = vec![self.party(&e.actor, b, "writes"), self.party(&e.actor, a, "writes")];
        state.report(FindingKind::Race, (e.actor.at, Some(e.actor.at)), || Finding {
            kind: FindingKind::Race,
            title: format!("race: lanes of one store write different values to {what}"),
            parties,
            notes: vec![note],
            help: Some("one thread must be chosen, or an atomic used".into()),
            times: 1,
        });
    }

    /// Operations on a barrier object are strong accesses to it; its initialisation is a plain write.
    pub(crate) fn access_object(
        &self,
        state: &mut State,
        e: &SyncEvent<'_>,
        at: u64,
        done: ObjectStep,
        order: Ordering,
    ) {
        let weak = done == ObjectStep::Initialise;
        if weak {
            state.marks.mark(at, 8);
        }
        if !self.what.races {
            return;
        }
        let order = Ordering {
            semantics: if weak { Semantics::Weak } else { Semantics::Relaxed },
            scope: Scope::Sys,
            volatile: false,
            asynchronous: false,
            ..order
        };
        let access = if weak { AccessKind::Store } else { AccessKind::Atomic };
        let site = state.sites.number(&e.actor, access, order, 8);
        let windows = state.ctas.values().map(|c| c.shared).find(|(base, size)| at.wrapping_sub(*base) < *size);
        let window = windows.map(|w| [w]);
        let memory = margay_exec::Memory::new(0);
        let event = MemoryEvent {
            actor: e.actor,
            addresses: &[at; LANES],
            size: 8,
            element: 8,
            space: margay_ir::MemSpace::Shared,
            access,
            order,
            windows: window.as_ref().map_or(&[], |w| &w[..]),
            local: (0, 0),
            values: None,
            peek: &|_, _| false,
            memory: &memory,
            tracked: false,
        };
        state.advance();
        let State { shadow, ctas, sites, threads, buffer, hits, .. } = state;
        let Some(cta) = ctas.get_mut(&self.index(e.actor.cta)) else { return };
        let row = self.row(&mut cta.threads, (site, sites.kinds[site as usize]), &event, threads.now);
        for lane in lanes(e.actor.lanes) {
            row.access((shadow, buffer), (&cta.threads, &sites.kinds), 1 << lane, (at, event.size), hits);
        }
        self.judge_all(state, &event);
    }
}

/// Compares an access of a word with the records in `list`, and updates the list to what later accesses must be
/// compared with.
fn access_word(
    row: &Row,
    (cta, kinds): (&CtaThreads, &[Kind]),
    group: u32,
    (word, mask): (u64, u32),
    list: &mut Vec<Record>,
    hits: &mut Vec<Hit>,
) {
    let Kind { writes, strong, volatile, scope, element } = row.kind;
    let crew = Crew { cta: row.cta, warp: row.warp, lanes: group };
    let crowded = list.len() > 8 && list.len().is_power_of_two();
    let (mut joined, mut kept) = (false, 0);
    for i in 0..list.len() {
        let mut r = list[i];
        let keep = 'keep: {
            if r.bytes() & mask == 0 {
                break 'keep true;
            }
            let same = r.site() == row.site && r.bytes() == mask && (!writes || strong);
            if same && !joined && !row.agent && r.time > row.published && r.join(crew, row.warps) {
                joined = true;
                break 'keep true;
            }
            let earlier = kinds[r.site() as usize];
            if !writes && !earlier.writes {
                // Two reads: one of them may stand for both.
                let covered = || unordered(cta, &r, (row.warp, group, row.warps)).is_none();
                if crowded && strong == earlier.strong && !r.is_agent() && covered() {
                    break 'keep false;
                }
                break 'keep row.agent || row.supersede(&mut r, group, mask);
            }
            // Whoever these are, they do not race.
            let device = scope >= Scope::Gpu && earlier.scope >= Scope::Gpu && element == earlier.element;
            if strong && earlier.strong && device && !(volatile && earlier.volatile) {
                break 'keep !same || row.agent || row.supersede(&mut r, group, mask);
            }
            // A later access that races with the earlier one races with this one too.
            let narrower = earlier.strong && scope <= earlier.scope && r.cta(row.warps) == row.cta;
            let covers = (writes || !earlier.writes) && (!strong || narrower) && r.bytes() & !mask == 0;
            let before = unordered(cta, &r, (row.warp, group, row.warps));
            if let Some((lane, other)) = before {
                hits.push(Hit { earlier: r, other, lane, word, mask });
            }
            let told = !strong && !earlier.strong && writes;
            !(covers && (before.is_none() || told))
        };
        if keep {
            list[kept] = r;
            kept += 1;
        }
    }
    list.truncate(kept);
    if !joined {
        list.push(Record::new((row.who(), group), row.now, row.site, mask));
        if writes {
            // The last write stands in front: it never gives way.
            list.swap(0, kept);
        }
    }
}

fn short(access: AccessKind) -> &'static str {
    match access {
        AccessKind::Load => "read",
        AccessKind::Store => "write",
        AccessKind::Atomic => "atomic update",
    }
}

fn article(word: &str) -> String {
    format!("{} {word}", if word.starts_with('a') { "an" } else { "a" })
}
