//! Decides which unordered accesses are races, and describes those.

use crate::{
    Finding, FindingKind, Party, Sanitizer, State,
    clash::Clash,
    clock::Side,
    instructions, name,
    row::{Hit, Missing},
    shadow::{AGENT, WORD, WarpLanes},
    site::{Place, Site},
    tensor,
    threads::{CtaThreads, WarpMask},
    ticket,
};
use margay_exec::{AccessKind, MemoryEvent, Scope, Tensor};
use margay_ir::Operand;

/// What is missing between two accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    /// A wait for an asynchronous copy.
    Copy,
    /// A wait for a product of the tensor cores.
    Product,
    /// A proxy fence.
    Proxy,
    /// A load that looks at memory.
    Coherence,
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
pub enum Distance {
    Thread,
    Warp,
    Cta,
    Cluster,
    Grid,
}

/// Two unordered accesses, of which the event is the later one.
struct Pair<'p> {
    e: &'p MemoryEvent<'p>,
    hit: &'p Hit,
    /// The site of the later one.
    site: u32,
    distance: Distance,
}

impl Pair<'_> {
    fn sites<'s>(&self, state: &'s State) -> (&'s Site, &'s Site) {
        (state.sites.get(self.hit.earlier.site()), state.sites.get(self.site))
    }

    /// The address of the later access.
    fn address(&self) -> u64 {
        self.e.addresses[self.hit.lane as usize]
    }

    /// Whether both store to memory of the threads' own CTA.
    fn in_own_window(&self) -> bool {
        self.e.windows.first().is_some_and(|(base, size)| self.hit.word.wrapping_sub(*base) < *size)
    }

    fn in_shared(&self) -> bool {
        let address = self.address();
        self.e.windows.iter().any(|(base, size)| address.wrapping_sub(*base) < *size)
    }

    /// Whether the later access stores what is in memory already, as far as both access it.
    fn stores_what_is_there(&self) -> bool {
        let (Hit { earlier, lane, word, mask, .. }, Some(values)) = (self.hit, self.e.values) else { return false };
        let mut present = [0; WORD as usize];
        let (address, common) = (self.address(), mask & earlier.bytes());
        (0..WORD).filter(|i| common >> i & 1 == 1).all(|i| {
            let byte = &mut present[i as usize..][..1];
            let offset = (word + i).wrapping_sub(address);
            offset < u64::from(self.e.size)
                && (self.e.peek)(word + i, byte)
                && byte[0] == values(*lane as usize, offset as usize)
        })
    }

    /// The address of the element that both access, and its size; of at most so many bytes.
    fn element(&self, most: u32) -> (u64, u32) {
        let (address, element) = (self.address(), self.e.element.clamp(1, most.max(1)));
        (address + (self.hit.word.max(address) - address) / u64::from(element) * u64::from(element), element)
    }

    /// What memory holds, and what is written.
    fn values(&self) -> Option<String> {
        let size = self.e.size as usize;
        let mut present = vec![0; size.min(8)];
        if size > 8 || !(self.e.peek)(self.address(), &mut present) {
            return None;
        }
        let hex = |bytes: &[u8]| bytes.iter().rev().fold(String::from("0x"), |s, b| s + &format!("{b:02x}"));
        let lane = self.hit.lane as usize;
        let incoming = self.e.values.map(|v| (0..size).map(|i| v(lane, i)).collect::<Vec<_>>());
        let then = incoming.map(|new| format!(", and the write stores {}", hex(&new))).unwrap_or_default();
        Some(format!("memory holds {}{then}", hex(&present)))
    }
}

impl Sanitizer {
    fn distance(&self, other: WarpLanes, (cta, warp): ([u32; 3], u32), lane: u32) -> Distance {
        let id = self.cta_of(other.cta);
        match () {
            _ if id == cta && other.warp == warp && other.lanes == 1 << lane => Distance::Thread,
            _ if id == cta && other.warp == warp => Distance::Warp,
            _ if id == cta => Distance::Cta,
            _ if self.cluster_of(id) == self.cluster_of(cta) => Distance::Cluster,
            _ => Distance::Grid,
        }
    }

    /// Whether accesses by threads of different CTAs are morally strong.
    pub(crate) fn are_morally_strong_in_grid(&self, sites: (&Site, &Site)) -> bool {
        self.morally_strong(sites, Distance::Grid).is_ok()
    }

    /// Whether accesses by another thread, and by a lane of a warp of a CTA, are morally strong.
    pub(crate) fn are_morally_strong(
        &self,
        sites: (&Site, &Site),
        (other, cta, warp, lane): (WarpLanes, [u32; 3], u32, u32),
    ) -> bool {
        self.morally_strong(sites, self.distance(other, (cta, warp), lane)).is_ok()
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
        let of_part = |site: &Site| site.stands_for_part(&self.image);
        if a.element == b.element || of_part(a) || of_part(b) { Ok(()) } else { Err(Cause::Size) }
    }

    pub(crate) fn judge_all(&self, state: &mut State, e: &MemoryEvent<'_>) {
        if state.hits.is_empty() {
            return;
        }
        let mut hits = std::mem::take(&mut state.hits);
        // How the records of a word are kept decides in which order they are met, which must not decide which finding comes first.
        let place = |hit: &Hit| {
            let Site { at: (func, at), callers, access, .. } = state.sites.get(hit.earlier.site());
            let callers: Vec<_> = callers.iter().map(|frame| (frame.func.0, frame.at.span.start)).collect();
            let WarpLanes { cta, warp, lanes } = hit.other;
            (hit.lane, hit.word, (func.0, at.span.start, callers, *access as u8), (cta, warp, lanes))
        };
        if hits.len() > 1 {
            hits.sort_by_cached_key(place);
        }
        hits.drain(..).for_each(|hit| self.judge(state, e, &hit));
        state.hits = hits;
    }

    /// Reports a race between unordered accesses, unless they are morally strong or store the same value.
    fn judge(&self, state: &mut State, e: &MemoryEvent<'_>, hit: &Hit) {
        let site = state.sites.number(&e.actor, e.access, e.order, e.element);
        // Lanes of the same instruction are compared by `compare_lanes`.
        let here = (self.index(e.actor.cta), e.actor.warp);
        if hit.earlier.time == state.threads.now
            && (hit.other.cta, hit.other.warp) == here
            && hit.earlier.site() == site
        {
            return;
        }
        let distance = self.distance(hit.other, (e.actor.cta, e.actor.warp), hit.lane);
        let pair = Pair { e, hit, site, distance };
        let Some(cause) = self.cause(state, &pair) else { return };
        let (a, b) = pair.sites(state);
        let loads = [a, b].iter().any(|site| site.access == AccessKind::Load && !site.is_strong());
        let stores = (a.access, b.access) == (AccessKind::Store, AccessKind::Store);
        if stores && matches!(cause, Cause::Order | Cause::Copy) && pair.stores_what_is_there() {
            return;
        }
        let places = (a.at, Some(e.actor.at));
        if state.is_known(FindingKind::Race, places) {
            self.widen(state, &pair, cause, places);
            return state.count(FindingKind::Race, places);
        }
        if loads && self.is_unused(state, e, hit, site) {
            return;
        }
        let waits = stores && cause == Cause::Order && Sanitizer::may_be_unread(state, &pair);
        let finding = self.race(state, &pair, cause, waits);
        if waits {
            let (address, element) = pair.element(u32::MAX);
            return state.await_reader(Clash { address, bytes: element.into(), places, finding });
        }
        state.report(FindingKind::Race, places, || finding);
    }

    /// Why two unordered accesses are a race; `None` if they are not.
    fn cause(&self, state: &State, pair: &Pair<'_>) -> Option<Cause> {
        let Pair { e, hit: Hit { earlier, other, lane, word, .. }, distance, .. } = *pair;
        let (a, b) = pair.sites(state);
        let threads = || state.ctas.get(self.index(e.actor.cta)).map(|cta| &cta.threads);
        let flagged = || {
            let group = (other.cta, other.warp, other.lanes);
            threads().is_some_and(|threads| threads.knows_read((e.actor.warp, *lane), group, earlier.time))
        };
        let reads = a.access == AccessKind::Load && !earlier.is_agent() && !e.order.asynchronous;
        if reads && state.threads.any_hints() && flagged() {
            return None;
        }
        if threads().is_some_and(|cta| ticket::permits(state, cta, e, pair.hit, (a, b))) {
            return None;
        }
        match pair.hit.missing {
            Missing::Proxy => return Some(Cause::Proxy),
            Missing::Coherence => return Some(Cause::Coherence),
            Missing::Order | Missing::Wait(_) => {}
        }
        // Whole warps wait for what they do together; who does not even know that it was started lacks a barrier rather than a wait.
        let started = |threads: &CtaThreads| {
            let (now, group) =
                (WarpMask { warp: e.actor.warp, lanes: 1 << lane }, (other.cta, other.warp, other.lanes));
            threads.unseen(now, group, Side::Program, earlier.time).is_none()
        };
        let lacks_wait = earlier.is_agent() && (earlier.lanes != u32::MAX || threads().is_some_and(started));
        match self.morally_strong((a, b), distance) {
            _ if lacks_wait && a.order.tensor != Tensor::No => Some(Cause::Product),
            _ if lacks_wait && !(a.is_strong() && b.is_strong()) => Some(Cause::Copy),
            Err(cause) => Some(cause),
            Ok(()) => {
                let read = !a.access.writes() || !b.access.writes();
                let flag = !pair.in_shared() || state.threads.is_released(*word);
                let lockstep = a.order.volatile && b.order.volatile && read && distance == Distance::Warp;
                (lockstep && !flag).then_some(Cause::Volatile)
            }
        }
    }

    /// Whether stores to shared memory may be such as nobody reads: by one location of the program. Without `.loc`, the copies of an
    /// unrolled loop's store cannot be distinguished from others of the function.
    fn may_be_unread(state: &mut State, pair: &Pair<'_>) -> bool {
        if !pair.in_own_window() || pair.distance > Distance::Cta {
            return false;
        }
        let (a, b) = pair.sites(state);
        let alike = a.at.0 == b.at.0 && a.element == b.element && a.callers.len() == b.callers.len();
        let places = (a.at, Some(b.at));
        let (_, first, second) = state.key(FindingKind::Race, places);
        first == second || alike && !crate::has_lines(first) && !crate::has_lines(second)
    }

    /// Lets the help of a race that was found before suffice for these threads: a barrier of the warp is not enough for those of a CTA.
    fn widen(&self, state: &mut State, pair: &Pair<'_>, cause: Cause, places: (Place, Option<Place>)) {
        let (key, distance) = (state.key(FindingKind::Race, places), pair.distance);
        let applies = matches!((cause, pair.hit.missing), (Cause::Order | Cause::Plain, Missing::Order));
        match state.reach.get_mut(&(key.1, key.2)) {
            Some(known) if applies && *known < distance => *known = distance,
            _ => return,
        }
        let flag = if cause == Cause::Order { self.incomplete_flag(state, pair.e, pair.hit, distance) } else { None };
        let (a, b) = pair.sites(state);
        let help = flag.unwrap_or_else(|| self.missing(cause, distance, (a, b)));
        if let Some(finding) = state.found.get_mut(&key) {
            finding.help = Some(help);
        }
    }

    /// The finding.
    fn race(&self, state: &mut State, pair: &Pair<'_>, cause: Cause, waits: bool) -> Finding {
        let Pair { e, hit: Hit { earlier, other, lane, .. }, distance, .. } = *pair;
        let thread = (other.cta, other.warp, other.lanes.trailing_zeros());
        let early = state.threads.early_read(self.index(e.actor.cta), thread, earlier.time);
        let flag = match (cause, pair.hit.missing) {
            (_, Missing::Wait(read)) => Some(self.missing_wait(read)),
            (Cause::Order, _) if early.is_some() => early.map(|read| self.ends_early(read)),
            (Cause::Order, _) if !waits && distance > Distance::Warp => {
                self.incomplete_flag(state, e, pair.hit, distance)
            }
            _ => None,
        };
        if flag.is_none() && !waits && matches!(cause, Cause::Order | Cause::Plain) {
            let (_, x, y) = state.key(FindingKind::Race, (pair.sites(state).0.at, Some(e.actor.at)));
            state.reach.insert((x, y), distance);
        }
        let (a, b) = (state.sites.get(earlier.site()), state.sites.get(pair.site));
        // Copies and products access more at once than the elements of a variable.
        let (at, element) = pair.element(a.element);
        let what = match e.windows.iter().find(|(base, size)| at.wrapping_sub(*base) < *size) {
            Some((base, _)) => name::shared(&self.image, self.names, at - base, element),
            None if at >= tensor::MEMORY => tensor::name(at),
            None => name::global(e.memory, self.names, at, element),
        };
        let first = Party {
            verb: verb(a, earlier.is_agent()).into(),
            thread: self.thread(other.warp, other.lanes.trailing_zeros()),
            cta: self.cta_of(other.cta),
            at: a.at,
            callers: a.callers.clone(),
        };
        let second = self.party(&e.actor, *lane, verb(b, e.order.asynchronous));
        // What waits for a reader may come often, and looking for lines takes long.
        let help = match waits {
            false => flag.unwrap_or_else(|| self.missing(cause, distance, (a, b))),
            true => {
                let text = state.helps.entry((earlier.site(), pair.site, distance as u8));
                text.or_insert_with(|| self.missing(cause, distance, (a, b))).clone()
            }
        };
        let by = (earlier.who & AGENT != 0, a.order.tensor, b.order.tensor);
        let title = title(cause, (short(a.access), short(b.access)), by, &what);
        let notes = pair.values().into_iter().collect();
        Finding { kind: FindingKind::Race, title, parties: vec![second, first], notes, help: Some(help), times: 1 }
    }

    /// Whether one access reads what the other writes by the same address, on one line: `count++`, `if (d < best[v]) best[v] = d`.
    fn is_update(&self, first: &Site, second: &Site) -> bool {
        let (load, store) = if second.access == AccessKind::Load { (second, first) } else { (first, second) };
        if (load.access, store.access) != (AccessKind::Load, AccessKind::Store) {
            return false;
        }
        let address = |site: &Site| {
            let func = self.image.ir.func(site.at.0);
            let operands = instructions(func, site.at.1).flat_map(|i| func.operands(func.insts[i as usize].srcs));
            operands.copied().find(|o| matches!(o, Operand::Mem(..)))
        };
        let calls = |site: &Site| site.callers.iter().map(|f| (f.func, f.at.span.start)).collect::<Vec<_>>();
        let one = load.at.0 == store.at.0 && self.line(load.at) == self.line(store.at) && calls(load) == calls(store);
        one && address(load) == address(store)
    }

    /// The synchronization that would order two accesses, and where to add it.
    fn missing(&self, cause: Cause, distance: Distance, (first, second): (&Site, &Site)) -> String {
        let (from, to) = self.lines(first, second);
        let between = match from == to {
            true if first.at == second.at => format!("between two executions of {from}"),
            true => format!("between the two accesses of {from}"),
            false => format!("between {from} and {to}"),
        };
        match cause {
            Cause::Copy => format!(
                "a wait for the copy is missing {between}: `cp.async.wait_group`, `__pipeline_wait_prior`, `pipeline.consumer_wait()` \
                 or a wait at its mbarrier, and then a barrier for other threads"
            ),
            Cause::Product if first.order.tensor.is_move() => format!(
                "`tcgen05.wait::{}` is missing {between}, and then a barrier for other threads",
                if first.order.tensor == Tensor::Load { "ld" } else { "st" }
            ),
            Cause::Product => format!(
                "a wait for the product is missing {between}: `wgmma.commit_group` and `wgmma.wait_group`, or `tcgen05.commit` and a wait at \
                 its mbarrier, and then a barrier for other threads"
            ),
            Cause::Proxy => format!(
                "`fence.proxy.async` (`cuda::ptx::fence_proxy_async`) is missing {between}: after the write, before the barrier that comes \
                 before the {}",
                if second.order.tensor != Tensor::No { "product" } else { "copy" }
            ),
            Cause::Coherence => "a `const` pointer must not be `__restrict__`, nor read by `__ldg()`, if the kernel writes what it points to".into(),
            Cause::Scope => match distance {
                Distance::Cluster => "both sides need scope `.cluster` or wider".into(),
                _ => "both sides need scope `.gpu` or wider (`atomicAdd` instead of `atomicAdd_block`, \
                      `cuda::thread_scope_device`)"
                    .into(),
            },
            Cause::Size => "strong accesses order each other only if they overlap completely".into(),
            Cause::Volatile => {
                format!("`__syncwarp()` is missing {between}: since Volta, lanes of a warp do not execute in lockstep")
            }
            Cause::Order if self.is_update(first, second) => format!(
                "several threads read, change and write it at {to}: use an atomic operation (`atomicAdd()`, `atomicMin()`, `atomicCAS()`, ...), \
                 or {}",
                match distance {
                    Distance::Thread | Distance::Warp => "`__syncwarp()` between them",
                    Distance::Cta => "`__syncthreads()` between them",
                    Distance::Cluster => "`cluster.sync()` between them",
                    Distance::Grid => "two kernels",
                }
            ),
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
                        "nothing orders the two CTAs; use a flag with release and acquire (`__threadfence()` before it is set \
                         and after it is read), `grid.sync()`, or two kernels{plain}"
                    ),
                }
            }
        }
    }
}

/// What an access does, by a thread or by a copy that it has started.
fn verb(site: &Site, agent: bool) -> &'static str {
    match (site.access, agent) {
        (AccessKind::Load, true) if site.order.tensor == Tensor::Product => "reads by a product of the tensor cores",
        (AccessKind::Store, true) if site.order.tensor == Tensor::Product => "writes by a product of the tensor cores",
        (AccessKind::Load, _) if site.order.tensor == Tensor::Load => "loads",
        (AccessKind::Store, _) if site.order.tensor == Tensor::Store => "stores",
        (AccessKind::Load, false) => "reads",
        (AccessKind::Store, false) => "writes",
        (AccessKind::Atomic, false) => "updates atomically",
        (AccessKind::Free, _) => "frees",
        (AccessKind::Load, true) => "reads by an asynchronous copy",
        (_, true) => "writes by an asynchronous copy",
    }
}

fn title(
    cause: Cause,
    (x, y): (&str, &str),
    (by_copy, first_by, then_by): (bool, Tensor, Tensor),
    what: &str,
) -> String {
    let both = format!("{} and {} of {what}", article(x), article(y));
    match cause {
        Cause::Copy => {
            let other = article(if by_copy { y } else { x });
            format!("race: an asynchronous copy and {other} of {what} without a wait in between")
        }
        Cause::Product => {
            let name = |by, access| match by {
                Tensor::Product => "a product of the tensor cores".to_owned(),
                Tensor::Free => "the deallocation".to_owned(),
                _ => article(access),
            };
            let (first, then) = (name(first_by, x), name(then_by, y));
            format!("race: {first} and {then} of {what} without a wait in between")
        }
        Cause::Proxy if then_by != Tensor::No => format!(
            "race: a product of the tensor cores reads {what}, which a thread has written, without a proxy fence in between"
        ),
        Cause::Proxy => format!(
            "race: an asynchronous copy of {what}, which a thread has written, without a proxy fence in between"
        ),
        Cause::Coherence => {
            format!("race: a read of {what}, which the same kernel has written, through the non-coherent cache")
        }
        Cause::Scope => format!("race: {both}, with a scope that does not include the other thread"),
        Cause::Size => format!("race: {both} of different sizes"),
        Cause::Plain => format!("race: {both}, one of them plain, are not ordered"),
        Cause::Volatile => format!("race: volatile {x} and {y} of {what} by lanes of one warp without `__syncwarp()`"),
        Cause::Order => format!("race: {both} are not ordered"),
    }
}

fn short(access: AccessKind) -> &'static str {
    match access {
        AccessKind::Load => "read",
        AccessKind::Store => "write",
        AccessKind::Atomic => "atomic update",
        AccessKind::Free => "`free()`",
    }
}

fn article(word: &str) -> String {
    format!("{} {word}", if word.starts_with('a') { "an" } else { "a" })
}
