//! Machine state: frames and groups of lanes in a warp, barriers of a CTA.
//!
//! A warp's lanes are partitioned into *groups*: lanes that stand at the same op of the same frame. A divergent branch splits a
//! group, groups that meet merge. Every call makes a frame for the lanes of its group; frames form a tree through their
//! parents, so lanes may be in different functions, or in the same one at different depths.

use crate::{
    LANES, Row,
    barrier::Barrier,
    lanes::{u64s, u64s_mut},
    mem::{Allocation, Memory},
};
use std::{cell::Cell, sync::Arc};

/// Index into [`Warp::frames`].
pub type FrameIndex = u32;

/// No frame.
pub const NO_FRAME: FrameIndex = u32::MAX;

/// Lanes that stand at the same place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// The lanes; never none.
    pub mask: u32,
    /// Their frame.
    pub frame: FrameIndex,
    /// The op that they execute next.
    pub pc: u32,
    /// The warp's turn in which they last ran.
    pub since: u64,
}

/// What a blocked group waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// The other lanes of a member mask, at an instruction of the same class.
    Lanes {
        /// See [`super::code::WarpOp::class`].
        class: u32,
        /// Member mask.
        members: u32,
    },
    /// All lanes of the warp, at the same matrix instruction.
    Warp,
    /// Columns of tensor memory.
    TensorMemory,
    /// A CTA barrier.
    Barrier(u32),
    /// The cluster barrier.
    Cluster,
}

/// One function's activation for some lanes.
pub struct Frame {
    /// Function id.
    pub func: u32,
    /// The caller's frame.
    pub parent: FrameIndex,
    /// The op after the call in the caller.
    pub ret: u32,
    /// Index of the call op's table entry in the caller.
    pub call: u32,
    /// Number of callers below.
    pub depth: u32,
    /// Lanes that have not returned or ended.
    pub lanes: u32,
    /// Registers.
    pub regs: Vec<Row>,
    /// Lanes in which each virtual register is defined, in launches that are watched.
    pub written: Vec<u32>,
    /// Local address of the frame, by lane.
    pub base: Row,
    /// First free local address above, by lane.
    pub top: Row,
    /// Local address of the caller's outgoing area, by lane.
    pub incoming: Row,
    /// Bytes that were passed through an unsized formal.
    pub passed: u32,
    /// Hidden pointers that were passed for large returns.
    pub hidden: Vec<Row>,
}

/// Allocations that were hit last.
#[derive(Default)]
pub struct Lookaside {
    epoch: u64,
    slots: [Option<Arc<Allocation>>; 4],
    next: usize,
}

impl Lookaside {
    /// The allocation that holds an address; `own` is the launch's.
    #[inline]
    pub fn find(&mut self, (memory, own): (&Memory, &Allocation), address: u64) -> Option<&Arc<Allocation>> {
        let epoch = memory.epoch();
        if epoch != self.epoch {
            *self = Lookaside { epoch, ..Lookaside::default() };
        }
        let hit = self.slots.iter().position(|s| s.as_ref().is_some_and(|a| a.block.contains(address, 1)));
        let index = match hit {
            Some(i) => i,
            None => {
                let found = memory.remember(address, own)?;
                self.next = (self.next + 1) % self.slots.len();
                self.slots[self.next] = Some(found);
                self.next
            }
        };
        self.slots[index].as_ref()
    }
}

/// A warp.
pub struct Warp {
    /// Index in the CTA.
    pub index: u32,
    /// `%tid` by lane: x, y, z.
    pub tid: [Row; 3],
    /// Lanes that exist and have not ended.
    pub live: u32,
    /// Frames; those without lanes are free.
    pub frames: Vec<Frame>,
    /// Indices of free frames.
    pub free: Vec<FrameIndex>,
    /// Groups that can run.
    pub ready: Vec<Group>,
    /// Groups that wait.
    pub blocked: Vec<(Group, Wait)>,
    /// Lanes that arrived at the cluster barrier's current phase.
    pub cluster_arrived: u32,
    /// Lanes ended since blocked groups were looked at.
    pub ended: bool,
    /// Counts picks of a group.
    pub turn: u64,
    /// Ops since the last switch that suggest that a group spins.
    pub spins: u32,
    /// A lane that must get ahead, and for how many picks.
    pub favoured: (u32, u32),
    /// Local windows of the lanes, [`super::cta::Windows::stride`] apart.
    pub local: Option<Arc<Allocation>>,
    /// Highest local address handed out, for cleaning.
    pub local_high: u32,
    /// Model registers of the ABI.
    pub registers: Vec<Row>,
    /// The parameter block of a call, in words: word `w` of all lanes is row `w`.
    pub space: Vec<Row>,
    /// A value on its way through a call, kept so that calls allocate nothing.
    pub stage: Vec<Row>,
    /// Rows for results on their way to a register.
    pub scratch: Vec<Row>,
    /// Merges results into registers.
    pub select: Select,
    /// Where addresses were found last.
    pub lookaside: Lookaside,
}

impl Warp {
    /// A frame for some lanes, registers zero.
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
        frame.regs.resize(rows as usize, Row::ZERO);
        index
    }

    /// Takes lanes out of a frame; it is freed when none are left.
    pub fn leave(&mut self, frame: FrameIndex, lanes: u32) {
        let f = &mut self.frames[frame as usize];
        f.lanes &= !lanes;
        if f.lanes == 0 {
            self.free.push(frame);
        }
    }

    /// Ends lanes: they leave their frame and all frames below.
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

    /// Rows that all frames hold.
    pub fn register_rows(&self) -> usize {
        self.frames.iter().map(|f| f.regs.capacity()).sum()
    }
}

/// What the warps of a CTA share.
pub struct CtaState {
    /// Index in the grid.
    pub id: [u32; 3],
    /// Index in the cluster, linear.
    pub rank: u32,
    /// Shared window.
    pub shared: Arc<Allocation>,
    /// Barriers.
    pub barriers: Vec<Barrier>,
    /// A barrier may have completed.
    pub dirty: bool,
    /// Counts what threads do that others can see.
    pub effects: Cell<u64>,
    /// Tensor memory was given back.
    pub freed: bool,
    /// Warp instructions executed and nanoseconds slept: what `%clock` counts.
    pub clock: u64,
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

/// All bits of a lane for each lane of a mask: merging with it is three operations on whole vectors.
#[derive(Clone)]
pub struct Select {
    mask: u32,
    words: Row,
    wide_mask: u32,
    doubles: [Row; 2],
}

/// Lanes of a nibble.
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

    /// Writes the lanes of `mask` only.
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
    /// Notes that a thread did something that others can see.
    #[inline(always)]
    pub fn note_effect(&self) {
        self.effects.set(self.effects.get() + 1);
    }
}
