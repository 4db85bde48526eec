//! Machine state: frames and groups of lanes in a warp, barriers of a CTA.
//!
//! A warp's lanes are partitioned into *groups*: lanes at the same op of the same frame. A divergent branch splits a
//! group; groups that arrive at the same op merge. Every call creates a frame for the lanes of its group; frames form a
//! tree by their parents, so lanes may be in different functions, or in the same one at different depths.

use super::{in_flight::InFlight, polling::Effects, uninitialized::Origin};
use crate::{
    LANES, Row,
    barrier::Barrier,
    lanes::{u64s, u64s_mut},
    mem::{Allocation, Lookaside},
};
use std::{cell::Cell, sync::Arc};

/// Index into [`Warp::frames`].
pub type FrameIndex = u32;

/// Null value of a frame index.
pub const NO_FRAME: FrameIndex = u32::MAX;

/// A group of lanes at the same op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// The lanes; at least one.
    pub mask: u32,
    /// Their frame.
    pub frame: FrameIndex,
    /// The op to execute next.
    pub pc: u32,
    /// The warp's turn in which it ran last.
    pub since: u64,
}

/// The reason why a group is blocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Waits for the other lanes of a member mask, at an instruction of the same class.
    Lanes {
        /// See [`super::code::WarpOp::class`].
        class: u32,
        /// Member mask.
        members: u32,
    },
    /// Waits for all lanes of the warp, at the same instruction ([`crate::Convergence::Warp`]).
    Warp,
    /// Waits for columns of tensor memory.
    TensorMemory,
    /// A CTA barrier.
    Barrier(u32),
    /// The cluster barrier.
    Cluster,
    /// Stopped at the header of a loop, until all threads have arrived there ([`super::pause`]).
    Pause,
}

/// The activation of a function by some lanes.
pub struct Frame {
    /// Function id.
    pub func: u32,
    /// The caller's frame.
    pub parent: FrameIndex,
    /// The op after the call in the caller.
    pub ret: u32,
    /// Index of the call site in the caller.
    pub call: u32,
    /// Number of callers.
    pub depth: u32,
    /// Lanes that have not returned or exited.
    pub lanes: u32,
    /// Registers.
    pub regs: Vec<Row>,
    /// Lanes in which each virtual register is defined, in observed launches.
    pub written: Vec<u32>,
    /// Where the undefined value of each virtual register was loaded.
    pub origins: Vec<Origin>,
    /// Local address of the frame, per lane.
    pub base: Row,
    /// First free local address above the frame, per lane.
    pub top: Row,
    /// Local address of the caller's outgoing area, per lane.
    pub incoming: Row,
    /// Bytes passed through an unsized parameter.
    pub passed: u32,
    /// Hidden pointers passed for large results.
    pub hidden: Vec<Row>,
}

/// Where the local windows of a warp's lanes are, [`super::ctx::Windows::stride`] apart.
#[derive(Clone)]
pub struct LocalWindows {
    /// Those of all threads of the CTA, warp by warp.
    pub memory: Arc<Allocation>,
    /// Host address of the first lane's.
    pub base: u64,
}

impl LocalWindows {
    /// Those of a warp in the memory of its CTA.
    pub fn of(memory: Arc<Allocation>, warp: u32, stride: u64) -> LocalWindows {
        let base = memory.block.base() + u64::from(warp) * LANES as u64 * stride;
        LocalWindows { memory, base }
    }

    /// Host address of a lane's.
    pub fn of_lane(&self, lane: usize, stride: u64) -> u64 {
        self.base + lane as u64 * stride
    }
}

/// A warp.
pub struct Warp {
    /// Index in the CTA.
    pub index: u32,
    /// `%tid` by lane: x, y, z.
    pub tid: [Row; 3],
    /// Lanes that exist and have not exited.
    pub live: u32,
    /// Frames; those without lanes are free.
    pub frames: Vec<Frame>,
    /// Indices of free frames.
    pub free: Vec<FrameIndex>,
    /// Groups that can run.
    pub ready: Vec<Group>,
    /// Blocked groups, and why they are.
    pub blocked: Vec<(Group, Wait)>,
    /// Lanes that have arrived in the current phase of the cluster barrier.
    pub cluster_arrived: u32,
    /// Lanes have exited since the blocked groups were checked.
    pub ended: bool,
    /// Number of picks so far.
    pub turn: u64,
    /// Polling ops since the last switch of warps.
    pub spins: u32,
    /// A group executes `nanosleep`: other groups and warps run next.
    pub slept: bool,
    /// The favored lanes, and the number of picks that they remain so.
    pub favored: (u32, u32),
    /// Local windows of the lanes.
    pub local: Option<LocalWindows>,
    /// Highest local address handed out, to limit what must be cleared.
    pub local_high: u32,
    /// The ABI's model register file.
    pub registers: Vec<Row>,
    /// The parameter block of a call, in words: word `w` of all lanes is row `w`.
    pub space: Vec<Row>,
    /// A value in transit through a call; kept so that calls do not allocate.
    pub stage: Vec<Row>,
    /// Scratch rows for results.
    pub scratch: Vec<Row>,
    /// Lane masks for merging results into registers.
    pub select: Select,
    /// Cache of allocations.
    pub lookaside: Lookaside,
    /// Registers of products, if they are observed.
    pub in_flight: InFlight,
}

impl Warp {
    /// Creates a frame for some lanes, with zeroed registers.
    pub fn new_frame(&mut self, func: u32, rows: u32, lanes: u32) -> FrameIndex {
        let index = self.free.pop().unwrap_or_else(|| {
            self.frames.push(Frame {
                func: 0,
                parent: NO_FRAME,
                ret: 0,
                call: 0,
                depth: 0,
                lanes: 0,
                regs: Vec::new(),
                written: Vec::new(),
                origins: Vec::new(),
                base: Row::ZERO,
                top: Row::ZERO,
                incoming: Row::ZERO,
                passed: 0,
                hidden: Vec::new(),
            });
            self.frames.len() as u32 - 1
        });
        let frame = &mut self.frames[index as usize];
        frame.func = func;
        frame.lanes = lanes;
        frame.parent = NO_FRAME;
        (frame.ret, frame.call, frame.depth, frame.passed) = (0, 0, 0, 0);
        frame.regs.clear();
        frame.written.clear();
        frame.origins.clear();
        frame.regs.resize(rows as usize, Row::ZERO);
        index
    }

    /// Removes lanes from a frame, which is freed with its last lane.
    pub fn leave(&mut self, frame: FrameIndex, lanes: u32) {
        let f = &mut self.frames[frame as usize];
        f.lanes &= !lanes;
        if f.lanes == 0 {
            self.free.push(frame);
        }
    }

    /// Lanes exit: they leave their frame and all frames of callers.
    pub fn exit(&mut self, frame: FrameIndex, lanes: u32) {
        self.live &= !lanes;
        self.ended = true;
        let mut at = frame;
        while at != NO_FRAME {
            let parent = self.frames[at as usize].parent;
            self.leave(at, lanes);
            at = parent;
        }
    }

    /// Number of rows that all frames hold.
    pub fn register_rows(&self) -> usize {
        self.frames.iter().map(|f| f.regs.capacity()).sum()
    }
}

/// State shared by the warps of a CTA.
pub struct CtaState {
    /// Index in the grid.
    pub id: [u32; 3],
    /// Linear index in the cluster.
    pub rank: u32,
    /// Shared window.
    pub shared: Arc<Allocation>,
    /// Barriers.
    pub barriers: Vec<Barrier>,
    /// Some barrier may have completed.
    pub dirty: bool,
    /// Numbers of side effects so far.
    pub effects: Cell<Effects>,
    /// Tensor memory was freed.
    pub freed: bool,
    /// What `%clock` counts: warp instructions executed and nanoseconds slept.
    pub clock: u64,
    /// By op of the kernel: jumps back to it, of all warps; empty unless they are counted.
    pub visits: Vec<u32>,
    /// When its warps yield.
    pub yielding: Yielding,
}

/// How many times a CTA yields in any case when its threads have tested a place that they set then.
const MAX_TESTS: u64 = 64;

/// How many places the warps that run ahead test before they yield.
const LEAD: u64 = 16;

/// After what the warps of a kernel yield: nothing, unless the launch is observed.
#[derive(Clone, Copy, Default)]
pub struct Yields {
    /// When they have published something to others: its threads wait for each other or take work.
    pub publishes: bool,
    /// When they have tested a place that they set then.
    pub tested: bool,
}

/// When a warp yields to the others, and a CTA to other CTAs.
///
/// In their natural order, a CTA runs to its end unless it waits: the first CTA does all work that CTAs take from a counter, and no thread
/// ever waits for a lock. So in launches that are observed for races, a thread that has published something to others yields: often at first, and
/// then less and less often, since some mistakes show only if threads proceed at the same speed, and others only if one runs ahead. Neighboring
/// CTAs begin differently: a CTA sees the first value that its neighbor published, or the last one, or runs ahead of it.
///
/// A thread also yields between a test of a word and the store that sets it (`if (!*taken) *taken = 1;`), so that other threads read the same
/// value. Every second warp does so at each test, and the other warps run ahead of these.
#[derive(Default)]
pub struct Yielding {
    pub when: Yields,
    /// The sum of the CTA's coordinates, in which neighbors differ by one.
    index: u64,
    /// How many times its threads have published something to others, and at which number they yield next: in the shared memory of the CTA, and
    /// elsewhere.
    published: [Cell<(u64, u64)>; 2],
    /// The same for tests of places that are set then: those of warps that run ahead, and those of warps that wait.
    tested: [Cell<(u64, u64)>; 2],
    /// The warp ends its turn.
    pub warp: Cell<bool>,
    /// The CTA ends its slice.
    pub cta: Cell<bool>,
    /// Which warp goes first then.
    pub next: Cell<usize>,
}

impl Yielding {
    /// That of a CTA.
    pub fn new(when: Yields, cta: [u32; 3]) -> Yielding {
        let index = cta.iter().map(|i| u64::from(*i)).sum::<u64>();
        let published = [Cell::new((0, 0)), Cell::new((0, index % 3))];
        let tested = [Cell::new((0, LEAD)), Cell::new((0, 0))];
        Yielding { when, index, published, tested, ..Yielding::default() }
    }

    /// Threads of a warp have changed memory by an atomic or a strong store: that of the CTA, or memory that others share.
    pub fn publish(&self, shared: bool, warp: u32) {
        // Those that run ahead stay ahead of those that wait.
        if self.when.tested && !self.waits(warp) && self.tested[0].get().0 < LEAD {
            return;
        }
        self.count(&self.published[usize::from(!shared)], shared, 0);
    }

    /// Threads of a warp test a place that they set then: others may do the same before they do.
    pub fn test(&self, shared: bool, warp: u32) {
        let waits = self.waits(warp);
        self.count(&self.tested[usize::from(waits)], shared, if waits { MAX_TESTS } else { 0 });
    }

    /// Whether a warp waits each time that it has tested a place.
    fn waits(&self, warp: u32) -> bool {
        (self.index + u64::from(warp)).is_multiple_of(2)
    }

    /// Counts one more, and yields the first `always` times and then when it is the turn.
    fn count(&self, times: &Cell<(u64, u64)>, shared: bool, always: u64) {
        let (count, next) = times.get();
        let yields = count == next;
        times.set((count + 1, if yields { if next < always { next + 1 } else { 2 * next + 2 } } else { next }));
        if yields {
            self.warp.set(true);
            self.cta.set(self.cta.get() || !shared);
        }
    }
}

/// Iterates over the lanes of a mask.
#[inline(always)]
pub fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(lane)
    })
}

/// Cached lane masks as vectors with all bits of a lane set, so that merging is three vector operations.
#[derive(Clone)]
pub struct Select {
    mask: u32,
    words: Row,
    wide_mask: u32,
    doubles: [Row; 2],
}

/// The masks of four lanes.
const WORDS: [[u32; 4]; 16] = {
    let mut table = [[0; 4]; 16];
    let mut i = 0;
    while i < 64 {
        table[i / 4][i % 4] = if (i / 4) >> (i % 4) & 1 == 1 { u32::MAX } else { 0 };
        i += 1;
    }
    table
};

impl Default for Select {
    fn default() -> Select {
        Select { mask: 0, words: Row::ZERO, wide_mask: 0, doubles: [Row::ZERO; 2] }
    }
}

impl Select {
    #[inline(always)]
    fn words(&mut self, mask: u32) -> &[u32; LANES] {
        if self.mask != mask {
            self.mask = mask;
            for (k, part) in self.words.0.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&WORDS[(mask >> (4 * k) & 15) as usize]);
            }
        }
        &self.words.0
    }

    #[inline(always)]
    fn doubles(&mut self, mask: u32) -> &[u64; LANES] {
        if self.wide_mask != mask {
            self.wide_mask = mask;
            let words = *self.words(mask);
            let doubles = u64s_mut(&mut self.doubles);
            for i in 0..LANES {
                doubles[i] = u64::from(words[i]) | u64::from(words[i]) << 32;
            }
        }
        u64s(&self.doubles)
    }

    /// Copies the lanes of `mask`.
    #[inline(always)]
    pub fn merge_words(&mut self, to: &mut [u32; LANES], from: &[u32; LANES], mask: u32) {
        let chosen = self.words(mask);
        for i in 0..LANES {
            to[i] = from[i] & chosen[i] | to[i] & !chosen[i];
        }
    }

    /// See [`Select::merge_words`].
    #[inline(always)]
    pub fn merge_doubles(&mut self, to: &mut [u64; LANES], from: &[u64; LANES], mask: u32) {
        let chosen = self.doubles(mask);
        for i in 0..LANES {
            to[i] = from[i] & chosen[i] | to[i] & !chosen[i];
        }
    }
}

impl CtaState {
    /// Counts a side effect visible to other threads.
    #[inline(always)]
    pub fn note_effect(&self) {
        let Effects { all, outside } = self.effects.get();
        self.effects.set(Effects { all: all + 1, outside: outside + 1 });
    }

    /// Counts one in the shared memory of the cluster.
    #[inline(always)]
    pub fn note_shared_effect(&self) {
        let effects = self.effects.get();
        self.effects.set(Effects { all: effects.all + 1, ..effects });
    }
}
