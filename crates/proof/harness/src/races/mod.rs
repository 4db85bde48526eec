//! Random kernels that access shared or global memory between barriers, and which of their accesses race (manual, section 8.7).
//!
//! What a thread does depends on its number alone: so all executions have the same accesses and the same order between them, which
//! [`Program::races`] computes from every pair of accesses to a byte. A statement's number is the line that `.loc` gives it.

mod order;
mod text;

use crate::random::Random;
pub use order::Races;

/// Bytes of the memory that all access.
pub const BYTES: u32 = 2048;
/// The maximum number of threads of a CTA.
pub const THREADS: u32 = 128;
/// The maximum number of CTAs.
pub const CTAS: u32 = 3;
/// Lanes of a warp.
const WARP: u32 = 32;

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A weak load, or a relaxed one.
    Load {
        /// Whether it is relaxed.
        strong: bool,
    },
    /// A weak store, or a relaxed one.
    Store {
        /// Whether it is relaxed.
        strong: bool,
    },
    /// A relaxed atomic addition, with a result or without.
    Atomic {
        /// Whether the old value is wanted.
        result: bool,
    },
}

impl Action {
    fn writes(self) -> bool {
        !matches!(self, Action::Load { .. })
    }

    fn is_strong(self) -> bool {
        matches!(self, Action::Load { strong: true } | Action::Store { strong: true } | Action::Atomic { .. })
    }
}

/// Which unit of an access' size a thread accesses.
#[derive(Clone, Copy, Debug)]
pub enum Index {
    /// One after another.
    Thread(u32),
    /// The same for all warps, one after another in each.
    Lane(u32),
    /// Each some units after the one before.
    Spaced {
        /// How many.
        by: u32,
        /// The first.
        from: u32,
    },
    /// One before another.
    Down {
        /// The first.
        from: u32,
    },
    /// The same for all.
    Same(u32),
    /// The thread's number times a factor, of which a mask leaves some bits.
    Scattered {
        /// The factor.
        factor: u32,
        /// The bits that are left.
        mask: u32,
        /// What is added.
        from: u32,
    },
}

impl Index {
    /// Whether [`Program::apart`] counts.
    fn differs_by_cta(self) -> bool {
        matches!(self, Index::Thread(_) | Index::Spaced { .. } | Index::Down { .. })
    }

    fn of(self, thread: u32) -> u32 {
        match self {
            Index::Thread(from) => thread + from,
            Index::Lane(from) => thread % WARP + from,
            Index::Spaced { by, from } => thread * by + from,
            Index::Down { from } => from - thread,
            Index::Same(at) => at,
            Index::Scattered { factor, mask, from } => ((thread * factor) & mask) + from,
        }
    }
}

/// Which threads execute an access.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    /// All.
    All,
    /// Those with smaller numbers.
    Below(u32),
    /// A warp.
    Warp(u32),
    /// Those whose number has a remainder modulo a power of two.
    Every {
        /// The power of two.
        of: u32,
        /// The remainder.
        rest: u32,
    },
}

impl Who {
    fn has(self, thread: u32) -> bool {
        match self {
            Who::All => true,
            Who::Below(n) => thread < n,
            Who::Warp(w) => thread / WARP == w,
            Who::Every { of, rest } => thread % of == rest,
        }
    }
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// An access.
    Access {
        /// What it does.
        action: Action,
        /// Where.
        index: Index,
        /// By whom.
        who: Who,
        /// Whether the scope is the CTA and not the device, if it is strong.
        narrow: bool,
        /// Bytes of an element.
        size: u32,
        /// Elements of a thread's access.
        elements: u32,
    },
    /// A barrier of the CTA.
    Barrier,
    /// A barrier of each warp.
    WarpBarrier,
    /// A barrier, by number, of the warps 0 and 1.
    Pair(u32),
    /// As [`Statement::Pair`], but warp 0 only arrives.
    Arrive(u32),
    /// Threads from this one on end.
    Exit(u32),
}

/// A kernel: statements, of which a range is a loop.
#[derive(Clone, Debug)]
pub struct Program {
    /// Threads of a CTA.
    pub threads: u32,
    /// CTAs. The memory is shared if there is one, else global.
    pub ctas: u32,
    /// The units from the place of a thread to that of the same thread of the next CTA; not where [`Index::Lane`], [`Index::Same`] or
    /// [`Index::Scattered`] gives the place.
    pub apart: u32,
    /// The statements.
    pub statements: Vec<Statement>,
    /// The first statement of the loop, the one behind it, and how often it runs.
    pub repeated: (usize, usize, u32),
}

impl Program {
    /// The program of a seed.
    pub fn new(seed: u64) -> Program {
        let random = &mut Random::new(seed);
        let threads = random.pick(&[32, 48, 64, 96, THREADS, THREADS]);
        let ctas = if random.chance(60) { 1 } else { 2 + random.below(CTAS as usize - 1) as u32 };
        let count = 2 + random.below(9);
        let from = random.below(count);
        let to = (from + 1 + random.below(4)).min(count);
        let times = if random.chance(50) { 2 + random.below(2) as u32 } else { 1 };
        let mut program = Program { threads, ctas, apart: 0, statements: Vec::new(), repeated: (from, to, times) };
        // Most programs are about few places and kinds of accesses: that is where they meet.
        let places: Vec<u32> = (0..1 + random.below(3)).map(|_| random.below(8) as u32 * 16).collect();
        let full = random.chance(40);
        let mut exited = false;
        for i in 0..count {
            let repeated = (from..to).contains(&i);
            let statement = match random.below(100) {
                0..24 => Statement::Barrier,
                24..29 if !exited => Statement::WarpBarrier,
                29..33 if threads >= 2 * WARP && !exited => Statement::Pair(1),
                33..36 if threads >= 2 * WARP && !exited && !repeated => Statement::Arrive(2 + i as u32),
                36..38 if !repeated && i > 0 && !exited => {
                    exited = true;
                    Statement::Exit(1 + random.below(threads as usize) as u32)
                }
                _ => access(random, threads, &places, full),
            };
            program.statements.push(statement);
        }
        program
    }

    /// The same program, but that units of threads do not adjoin in some accesses, or follow in reverse order.
    pub fn spaced(mut self, seed: u64) -> Program {
        let random = &mut Random::new(seed);
        for statement in &mut self.statements {
            let Statement::Access { index, size, elements, .. } = statement else { continue };
            let Index::Thread(from) = *index else { continue };
            let units = BYTES / (*size * *elements);
            let by = random.pick(&[1, 2, 3, 6, 33]);
            *index = match random.chance(30) {
                true => Index::Down { from: from + self.threads - 1 },
                false => Index::Spaced { by, from: from / 2 },
            };
            if !(0..self.threads).all(|t| index.of(t) < units) {
                *index = Index::Thread(from);
            }
        }
        self
    }

    /// The same program, but that CTAs access global memory at different places, and most accesses are alike, so that often each thread has
    /// bytes of its own. All accesses are weak.
    pub fn apart(mut self, seed: u64) -> Program {
        let before = self.clone();
        let random = &mut Random::new(seed);
        self.ctas = self.ctas.max(2);
        let (by, from) = (random.pick(&[1, 1, 1, 2]), random.below(16) as u32);
        let (size, elements) = random.pick(&[(4, 1), (4, 1), (8, 1), (1, 1), (4, 2)]);
        let count = self.threads * by;
        self.apart = random.pick(&[count, count, count, count + 5, count - 1, count / 2, 0]);
        for statement in &mut self.statements {
            let Statement::Access { index, size: own, elements: many, action, .. } = statement else { continue };
            // What a CTA reads before a barrier precedes what others write that have seen what it stores behind it (`docs/checker.md`):
            // pairs of accesses do not show that.
            *action = match action.writes() {
                true => Action::Store { strong: false },
                false => Action::Load { strong: false },
            };
            if random.chance(15) {
                continue;
            }
            (*own, *many) = (size, elements);
            *index = Index::Spaced { by, from: from + u32::from(random.chance(15)) };
        }
        let fits = |program: &Program| {
            let last = |t: &Statement| match t {
                Statement::Access { index, size, elements, .. } => {
                    let ends = [0, program.threads - 1].map(|t| program.unit(*index, program.ctas - 1, t));
                    (ends[0].max(ends[1]) + 1) * size * elements
                }
                _ => 0,
            };
            program.statements.iter().map(last).max().is_none_or(|last| last <= BYTES)
        };
        while !fits(&self) && self.apart > 0 {
            self.apart /= 2;
        }
        if fits(&self) { self } else { before }
    }

    /// Which unit a thread of a CTA accesses.
    fn unit(&self, index: Index, cta: u32, thread: u32) -> u32 {
        let apart = if index.differs_by_cta() { self.apart } else { 0 };
        index.of(thread) + cta * apart
    }

    /// The statements in the order of their execution, and the turn of the loop.
    fn executed(&self) -> Vec<(usize, u32)> {
        let (from, to, times) = self.repeated;
        let all = 0..self.statements.len();
        let turns = (0..times).flat_map(|turn| (from..to).map(move |i| (i, turn)));
        let before = all.clone().filter(|i| *i < from).map(|i| (i, 0));
        before.chain(turns).chain(all.filter(|i| *i >= to).map(|i| (i, 0))).collect()
    }
}

fn access(random: &mut Random, threads: u32, places: &[u32], full: bool) -> Statement {
    let action = match random.below(20) {
        0..9 => Action::Load { strong: false },
        9..14 => Action::Store { strong: false },
        14 => Action::Load { strong: true },
        15 => Action::Store { strong: true },
        _ => Action::Atomic { result: random.chance(50) },
    };
    let (size, elements) = match action {
        Action::Atomic { .. } => (random.pick(&[4, 4, 4, 8]), 1),
        Action::Load { strong: false } | Action::Store { strong: false } => {
            random.pick(&[(4, 1), (4, 1), (4, 1), (4, 1), (1, 1), (2, 1), (8, 1), (4, 2), (4, 4), (8, 2)])
        }
        _ => (random.pick(&[4, 4, 8, 2]), 1),
    };
    let units = BYTES / (size * elements);
    let from = random.pick(places) * 4 / (size * elements) + random.pick(&[0, 0, 0, 1, 16, 32]);
    // All of the smallest accesses fit.
    let index = match random.below(10) {
        0..5 => Index::Thread(from),
        5 => Index::Lane(from),
        6..8 => Index::Same(from),
        _ => Index::Scattered { factor: random.pick(&[1, 2, 3, 7, 33]), mask: random.pick(&[3, 31, 63, 127]), from },
    };
    let index = if (0..threads).all(|t| index.of(t) < units) { index } else { Index::Lane(random.below(32) as u32) };
    let who = match random.below(10) {
        _ if full => Who::All,
        0..4 => Who::All,
        4..6 => Who::Below(1 + random.below(threads as usize) as u32),
        6..8 => Who::Warp(random.below(threads.div_ceil(WARP) as usize) as u32),
        _ => {
            let of = random.pick(&[2, 4, 32, 128]);
            Who::Every { of, rest: random.below(of as usize) as u32 % threads }
        }
    };
    Statement::Access { action, index, who, narrow: random.chance(30), size, elements }
}
