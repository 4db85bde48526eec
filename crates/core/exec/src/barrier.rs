//! The sixteen barriers of a CTA (manual, section 9.7.13.1), shared by all engines.
//!
//! Threads arrive individually, as on Volta and later: a barrier without a count completes when all threads of the CTA
//! that have not exited have arrived; one with a count, when that many threads have, where a warp of which all
//! remaining threads have arrived counts as 32. So barriers work in divergent code, and in functions called from there.

use crate::LANES;
use margay_isa::{Mod, Opcode, Variant};

/// What `bar` and `barrier` say, for every engine: the operands, whether all threads of a warp must execute the same one, and what is
/// reduced.
#[derive(Clone, Copy)]
pub struct Operands<T> {
    /// The barrier's number.
    pub id: T,
    /// The number of threads that participate, if the instruction gives it.
    pub count: Option<T>,
    /// The predicate (`.red`).
    pub predicate: Option<T>,
    /// `.aligned`
    pub aligned: bool,
    /// The threads only arrive, and continue (`.arrive`).
    pub arrives: bool,
    /// How the predicates are reduced: `.popc`, `.and` or `.or`.
    pub reduction: Option<Mod>,
}

impl<T: Copy> Operands<T> {
    /// Tells a variant's sources apart; `None` without a barrier number.
    pub fn of(v: &Variant, sources: &[T]) -> Option<Operands<T>> {
        let (numbers, predicate) = match sources.split_last() {
            Some((p, numbers)) if v.has(Mod::Red) => (numbers, Some(*p)),
            _ => (sources, None),
        };
        // `bar` is `barrier.aligned`.
        let aligned = v.op == Opcode::Bar || v.has(Mod::Aligned);
        let reduction = [Mod::Popc, Mod::And, Mod::Or].into_iter().find(|m| v.has(*m)).filter(|_| predicate.is_some());
        let (id, count, arrives) = (*numbers.first()?, numbers.get(1).copied(), v.has(Mod::Arrive));
        Some(Operands { id, count, predicate, aligned, arrives, reduction })
    }
}

/// Number of barriers of a CTA.
pub const BARRIERS: usize = 16;

/// One of a CTA's sixteen barriers.
#[derive(Clone, Debug, Default)]
pub struct Barrier {
    /// Lanes that have arrived, by warp.
    pub arrived: Vec<u32>,
    /// Number of threads to wait for; 0 for all. Valid while `open`.
    pub expected: u32,
    /// Some thread has arrived in the current phase.
    pub open: bool,
    /// Number of true predicates (`.red`).
    pub truths: u32,
    /// Number of predicates.
    pub votes: u32,
}

/// The number of threads that a barrier instruction waits for, 0 for all; an error says which operand is invalid.
pub fn expected(id: u32, count: Option<u32>, block: [u32; 3]) -> Result<u32, String> {
    let size: u32 = block.iter().product();
    let threads = size.next_multiple_of(LANES as u32);
    if id as usize >= BARRIERS {
        return Err(format!("barrier {id}: a barrier number must be 0 to 15"));
    }
    match count {
        Some(count) if count % LANES as u32 != 0 || count == 0 => {
            Err(format!("a barrier of {count} threads: the count must be a positive multiple of 32"))
        }
        Some(count) if count > threads => Err(format!("a barrier of {count} threads in a CTA of {size}")),
        count => Ok(count.filter(|c| *c != threads).unwrap_or(0)),
    }
}

impl Barrier {
    /// A barrier of a CTA with `warps` warps.
    pub fn new(warps: usize) -> Barrier {
        Barrier { arrived: vec![0; warps], ..Barrier::default() }
    }

    /// Lanes of a warp arrive, with their predicates if any. An error names a lane and the rule that it broke.
    pub fn arrive(
        &mut self,
        id: u32,
        warp: usize,
        lanes: u32,
        expected: u32,
        truth: Option<u32>,
    ) -> Result<(), (usize, String)> {
        if self.open && self.expected != expected {
            let name = |n: u32| if n == 0 { "all".into() } else { n.to_string() };
            let what = format!("barrier {id} is in use with {} threads, found {}", name(self.expected), name(expected));
            return Err((lanes.trailing_zeros() as usize, what));
        }
        let twice = self.arrived[warp] & lanes;
        if twice != 0 {
            let lane = twice.trailing_zeros() as usize;
            return Err((lane, format!("lane {lane} arrives at barrier {id} again before it has completed")));
        }
        self.open = true;
        self.expected = expected;
        self.arrived[warp] |= lanes;
        if let Some(truth) = truth {
            self.votes += lanes.count_ones();
            self.truths += (truth & lanes).count_ones();
        }
        Ok(())
    }

    /// Whether the phase is complete, given the live lanes of each warp.
    pub fn is_complete(&self, live: impl Iterator<Item = u32>) -> bool {
        if !self.open {
            return false;
        }
        let mut pairs = self.arrived.iter().copied().zip(live);
        match self.expected {
            0 => pairs.all(|(arrived, live)| live & !arrived == 0),
            wanted => {
                let count = |(arrived, live): (u32, u32)| match arrived {
                    0 => 0,
                    _ if live & !arrived == 0 => LANES as u32,
                    _ => arrived.count_ones(),
                };
                pairs.map(count).sum::<u32>() >= wanted
            }
        }
    }

    /// Lanes that have arrived, by warp, and whether all threads of the CTA participate.
    pub fn participants(&self) -> (&[u32], bool) {
        (&self.arrived, self.expected == 0)
    }

    /// The result of `.red`: `.popc`, `.and` or `.or`.
    pub fn reduction(&self, mode: Mod) -> u32 {
        match mode {
            Mod::Popc => self.truths,
            Mod::And => u32::from(self.truths == self.votes),
            _ => u32::from(self.truths != 0),
        }
    }

    /// How many threads have arrived and how many are expected, for messages.
    pub fn describe(&self, id: usize) -> String {
        let here: u32 = self.arrived.iter().map(|a| a.count_ones()).sum();
        let wanted = if self.expected == 0 { "all".to_owned() } else { self.expected.to_string() };
        format!("at barrier {id}, where {here} threads of {wanted} have arrived")
    }

    /// Starts the next phase.
    pub fn reset(&mut self) {
        self.arrived.fill(0);
        (self.open, self.truths, self.votes) = (false, 0, 0);
    }
}
