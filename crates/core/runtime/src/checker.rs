//! What a launch does that the manual leaves undefined: races in shared memory, reads of shared and local memory that nobody
//! wrote, uses of registers that nothing was written to, lanes that a warp instruction counts on and that do not take part.
//!
//! Order comes from clocks. Each warp counts what it publishes at barriers, barrier objects, atomics and ordered accesses, and
//! knows how far it has seen each other warp; within a warp each lane does the same with the other lanes. Two accesses of one
//! byte race if one is a plain write and neither thread had seen the other's. Clocks between warps are coarse: a barrier
//! that one lane passes orders all lanes of its warp, so that a race may be missed there, and none is invented.
//!
//! A load from local memory is told of if none of its bytes was written: compilers copy structures with their holes.
//! Not looked at: global memory and the device heap, accesses to the shared memory of other CTAs of a cluster, and those of
//! matrix instructions.

use margay_exec::{AccessKind, Fault, FaultKind, LANES, MemoryEvent, Observer, SyncEvent, SyncKind, UndefinedEvent};
use margay_ir::{FuncId, SourcePlace};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

/// Readers of a byte that are remembered.
const READERS: usize = 4;

/// Watches a launch ([`crate::LaunchConfig::observer`]) and keeps what it found.
pub struct Checker {
    block: [u32; 3],
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By the host address of the shared memory.
    ctas: HashMap<u64, Cta>,
    /// Host addresses of bytes of local memory that were written, by CTA and warp.
    locals: HashMap<([u32; 3], u32), HashSet<u64>>,
    /// Events so far: lanes of one instruction have no order among them.
    events: u64,
    /// By places and sort, with how often.
    found: BTreeMap<(u32, u32, u32, String), (Fault, u64)>,
}

/// Something that threads publish to and learn from.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Barrier(u32),
    Cluster,
    /// A warp's member mask.
    Members(u32, u32),
    /// A word that atomics or ordered accesses use, or a barrier object.
    Word(u64),
}

/// How far somebody has seen all others: by warp, and by lane within a warp.
#[derive(Clone, Default)]
struct Seen {
    warps: Vec<u32>,
    lanes: HashMap<u32, [u32; LANES]>,
}

struct Warp {
    warps: Vec<u32>,
    lanes: [[u32; LANES]; LANES],
    /// Barriers that lanes have arrived at; past them they know what was published there.
    arrived: Vec<(u32, Key)>,
}

impl Warp {
    fn new(index: usize) -> Warp {
        let mut warps = vec![0; index + 1];
        warps[index] = 1;
        Warp { warps, lanes: std::array::from_fn(|l| std::array::from_fn(|k| u32::from(k == l))), arrived: Vec::new() }
    }
}

/// One access of a byte.
#[derive(Clone, Copy)]
struct Stamp {
    warp: u32,
    lane: u32,
    clocks: (u32, u32),
    event: u64,
    at: (FuncId, SourcePlace),
}

#[derive(Clone, Default)]
struct Byte {
    written: bool,
    write: Option<Stamp>,
    reads: Vec<Stamp>,
}

#[derive(Default)]
struct Cta {
    id: [u32; 3],
    warps: HashMap<u32, Warp>,
    published: HashMap<Key, Seen>,
    bytes: HashMap<u64, Byte>,
}

fn join(to: &mut Vec<u32>, from: &[u32]) {
    to.resize(to.len().max(from.len()), 0);
    to.iter_mut().zip(from).for_each(|(t, f)| *t = (*t).max(*f));
}

fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    (0..LANES as u32).filter(move |l| mask >> l & 1 == 1)
}

impl Cta {
    fn warp(&mut self, index: u32) -> &mut Warp {
        self.warps.entry(index).or_insert_with(|| Warp::new(index as usize))
    }

    fn publish(&mut self, warp: u32, mask: u32, key: Key) {
        let w = self.warps.entry(warp).or_insert_with(|| Warp::new(warp as usize));
        let seen = self.published.entry(key).or_default();
        join(&mut seen.warps, &w.warps);
        w.warps[warp as usize] += 1;
        let common = seen.lanes.entry(warp).or_insert([0; LANES]);
        for l in lanes(mask) {
            let own = &mut w.lanes[l as usize];
            common.iter_mut().zip(own.iter()).for_each(|(c, o)| *c = (*c).max(*o));
            own[l as usize] += 1;
        }
    }

    fn learn(&mut self, warp: u32, mask: u32, key: Key) {
        let Some(seen) = self.published.get(&key).cloned() else { return };
        let w = self.warp(warp);
        join(&mut w.warps, &seen.warps);
        if let Some(common) = seen.lanes.get(&warp) {
            for l in lanes(mask) {
                w.lanes[l as usize].iter_mut().zip(common).for_each(|(o, c)| *o = (*o).max(*c));
            }
        }
    }

    /// Lanes do something again: they are past the barriers that they arrived at.
    fn pass(&mut self, warp: u32, mask: u32) {
        let arrived = std::mem::take(&mut self.warp(warp).arrived);
        let (past, still): (Vec<_>, Vec<_>) = arrived.into_iter().partition(|(who, _)| who & mask != 0);
        self.warp(warp).arrived = still;
        for (who, key) in past {
            self.learn(warp, who, key);
        }
    }

    fn stamp(&mut self, warp: u32, lane: u32, event: u64, at: (FuncId, SourcePlace)) -> Stamp {
        let w = self.warp(warp);
        let clocks = (w.warps[warp as usize], w.lanes[lane as usize][lane as usize]);
        Stamp { warp, lane, clocks, event, at }
    }

    /// Whether an access came before what a thread does now.
    fn before(&self, earlier: &Stamp, now: &Stamp) -> bool {
        if earlier.event == now.event || (earlier.warp, earlier.lane) == (now.warp, now.lane) {
            return true;
        }
        let Some(w) = self.warps.get(&now.warp) else { return false };
        match earlier.warp == now.warp {
            true => w.lanes[now.lane as usize][earlier.lane as usize] >= earlier.clocks.1,
            false => w.warps.get(earlier.warp as usize).is_some_and(|seen| *seen >= earlier.clocks.0),
        }
    }
}

impl Checker {
    /// For launches with CTAs of that shape.
    pub fn new(block: [u32; 3]) -> Checker {
        Checker { block, state: Mutex::default() }
    }

    /// What was found: one for each pair of places, as a fault with the number of times in its notes.
    pub fn findings(&self) -> Vec<Fault> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = |(fault, times): &(Fault, u64)| {
            let mut fault = fault.clone();
            if *times > 1 {
                fault.notes.push(format!("{times} times in this launch; the first is shown"));
            }
            fault
        };
        state.found.values().map(counted).collect()
    }

    fn thread(&self, warp: u32, lane: u32) -> [u32; 3] {
        let (t, [x, y, _]) = (warp * LANES as u32 + lane, self.block.map(|n| n.max(1)));
        [t % x, t / x % y, t / x / y]
    }

    fn name(&self, warp: u32, lane: u32) -> String {
        let [x, y, z] = self.thread(warp, lane);
        format!("thread ({x}, {y}, {z})")
    }

    fn report(
        &self,
        state: &mut State,
        cta: [u32; 3],
        now: &Stamp,
        other: Option<&Stamp>,
        what: String,
        notes: Vec<String>,
    ) {
        let place = |s: &Stamp| s.at.1.span.start;
        // The words without numbers say of what sort it is.
        let sort = what.split_whitespace().filter(|w| !w.contains(|c: char| c.is_ascii_digit())).collect();
        let key = (now.at.0.0, place(now), other.map_or(u32::MAX, place), sort);
        let fault = Fault {
            kind: FaultKind::Hazard(what),
            thread: self.thread(now.warp, now.lane),
            cta,
            at: Some(now.at),
            stack: Vec::new(),
            notes,
        };
        state.found.entry(key).or_insert((fault, 0)).1 += 1;
    }

    /// Follows the accesses of an event that go to local memory.
    fn local(&self, state: &mut State, e: &MemoryEvent<'_>) {
        let (base, size) = e.local;
        let inside = |host: u64| host.wrapping_sub(base) < size;
        for lane in lanes(e.lanes).filter(|l| inside(e.addresses[*l as usize])) {
            let host = e.addresses[lane as usize];
            let written = state.locals.entry((e.cta, e.warp)).or_default();
            let mut known = false;
            for byte in host..host.saturating_add(e.size.into()) {
                // What is told of is told of once.
                known |= !written.insert(byte);
            }
            if e.access == AccessKind::Load && !known {
                let now = Stamp { warp: e.warp, lane, clocks: (0, 0), event: 0, at: e.at };
                let what = "uninitialised: reads local memory that the thread has not written".to_owned();
                self.report(state, e.cta, &now, None, what, Vec::new());
            }
        }
    }

    fn byte(&self, state: &mut State, base: u64, host: u64, now: Stamp, access: AccessKind) -> bool {
        let Some(cta) = state.ctas.get_mut(&base) else { return true };
        let mut byte = cta.bytes.remove(&host).unwrap_or_default();
        let verb = if access == AccessKind::Store { "writes" } else { "reads" };
        let mut clash: Option<(Stamp, &str)> = None;
        if let Some(w) = byte.write.filter(|w| !cta.before(w, &now)) {
            clash = Some((w, "wrote"));
        }
        if access == AccessKind::Store
            && clash.is_none()
            && let Some(r) = byte.reads.iter().find(|r| !cta.before(r, &now))
        {
            clash = Some((*r, "read"));
        }
        let missing = access == AccessKind::Load && !byte.written;
        match access {
            AccessKind::Store => byte = Byte { written: true, write: Some(now), reads: Vec::new() },
            _ => {
                byte.reads.retain(|r| !cta.before(r, &now));
                if byte.reads.len() < READERS {
                    byte.reads.push(now);
                }
                // Said once.
                byte.written = true;
            }
        }
        let id = cta.id;
        cta.bytes.insert(host, byte);
        let at = host - base;
        if let Some((other, did)) = clash {
            let who = self.name(other.warp, other.lane);
            let what =
                format!("race: {verb} .shared+{at:#x}, which {who} {did} with nothing in between that orders the two");
            let (func, place) = other.at;
            let note = format!("the other access: function {}, byte {} of the text", func.0, place.span.start);
            self.report(state, id, &now, Some(&other), what, vec![note]);
            return false;
        }
        if missing {
            let what = format!("uninitialised: reads .shared+{at:#x}, which nobody has written");
            self.report(state, id, &now, None, what, Vec::new());
            return false;
        }
        true
    }
}

impl Observer for Checker {
    fn memory(&self, e: &MemoryEvent<'_>) {
        let Some((base, size)) = e.windows.first().copied() else { return };
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        state.events += 1;
        let event = state.events;
        let cta = state.ctas.entry(base).or_default();
        if cta.id != e.cta {
            let gone = cta.id;
            *cta = Cta { id: e.cta, ..Cta::default() };
            state.locals.retain(|(id, _), _| *id != gone);
        }
        self.local(state, e);
        let cta = state.ctas.entry(base).or_default();
        cta.pass(e.warp, e.lanes);
        for lane in lanes(e.lanes) {
            let host = e.addresses[lane as usize];
            if e.strong || e.access == AccessKind::Atomic {
                let key = Key::Word(host & !3);
                let cta = state.ctas.entry(base).or_default();
                if e.access != AccessKind::Store {
                    cta.learn(e.warp, 1 << lane, key);
                }
                if e.access != AccessKind::Load {
                    cta.publish(e.warp, 1 << lane, key);
                }
            }
            let bytes = host..host.saturating_add(e.size.into());
            let plain = !e.strong && e.access != AccessKind::Atomic;
            let own = host >= base && host - base < size;
            let home =
                if own { Some(base) } else { e.windows.iter().find(|w| host.wrapping_sub(w.0) < w.1).map(|w| w.0) };
            let Some(home) = home else { continue };
            if own && plain {
                let cta = state.ctas.entry(base).or_default();
                let now = cta.stamp(e.warp, lane, event, e.at);
                for host in bytes {
                    if !self.byte(state, base, host, now, e.access) {
                        break;
                    }
                }
            } else if e.access != AccessKind::Load {
                // Ordered otherwise, or by another CTA.
                let cta = state.ctas.entry(home).or_default();
                for host in bytes {
                    cta.bytes.insert(host, Byte { written: true, ..Byte::default() });
                }
            }
        }
    }

    fn undefined(&self, e: UndefinedEvent) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Stamp { warp: e.warp, lane: e.lane, clocks: (0, 0), event: 0, at: e.at };
        self.report(&mut state, e.cta, &now, None, e.what, Vec::new());
    }

    fn sync(&self, e: &SyncEvent) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(cta) = state.ctas.values_mut().find(|c| c.id == e.cta) else { return };
        cta.pass(e.warp, e.lanes);
        let key = match e.kind {
            SyncKind::Barrier(id) => Key::Barrier(id),
            SyncKind::Cluster => Key::Cluster,
            SyncKind::Warp(members) => Key::Members(e.warp, members),
            SyncKind::Object(host) => Key::Word(host & !3),
            SyncKind::BarrierDone(_) | SyncKind::Fence => return,
        };
        if matches!(key, Key::Word(_)) {
            cta.learn(e.warp, e.lanes, key);
        }
        cta.publish(e.warp, e.lanes, key);
        if !matches!(key, Key::Word(_)) {
            cta.warp(e.warp).arrived.push((e.lanes, key));
        }
    }
}
