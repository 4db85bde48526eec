//! Which accesses of a program race, by definition: every pair of threads' accesses to every byte.

use super::{Action, BYTES, Program, Statement, WARP};
use std::collections::BTreeSet;

/// The pairs of statements that race, the lower number first.
#[derive(Default, Debug)]
pub struct Races {
    /// All.
    pub all: BTreeSet<(usize, usize)>,
    /// Those at each word.
    pub at: Vec<BTreeSet<(usize, usize)>>,
    /// Words where a race may go without a report: one statement stores different values, which nobody reads, or stores of less than a
    /// word happen to store what is there.
    pub silent: Vec<bool>,
}

/// What each thread knows to be done: by thread, the number of the last executed statement plus one.
type Known = Vec<Vec<usize>>;

/// An access to a byte: when, by whom, and what it does.
#[derive(Clone)]
struct Access {
    when: usize,
    cta: u32,
    /// Its number in the grid.
    thread: u32,
    statement: usize,
    action: Action,
    /// Bytes of an element.
    element: u32,
    /// Whether its scope is its CTA.
    narrow: bool,
    /// What its thread knew.
    known: Vec<usize>,
}

/// All of `from` have come when `to` go on.
fn meet(known: &mut Known, when: usize, from: impl Iterator<Item = u32>, to: impl Iterator<Item = u32>) {
    let threads = known.len();
    let mut all = vec![0; threads];
    for thread in from {
        known[thread as usize][thread as usize] = when + 1;
        all.iter_mut().zip(&known[thread as usize]).for_each(|(all, one)| *all = (*all).max(*one));
    }
    for thread in to {
        known[thread as usize].iter_mut().zip(&all).for_each(|(one, all)| *one = (*one).max(*all));
    }
}

impl Program {
    /// The races of the program.
    pub fn races(&self) -> Races {
        let mut known: Known = vec![vec![0; (self.ctas * self.threads) as usize]; (self.ctas * self.threads) as usize];
        let mut bytes: Vec<Vec<Access>> = vec![Vec::new(); BYTES as usize];
        (0..self.ctas).for_each(|cta| self.execute(cta, &mut known, &mut bytes));
        let words = (BYTES / 4) as usize;
        let mut races = Races { all: BTreeSet::new(), at: vec![BTreeSet::new(); words], silent: vec![false; words] };
        for (byte, list) in bytes.iter().enumerate() {
            for (i, b) in list.iter().enumerate() {
                list[..i].iter().filter(|a| is_race(a, b)).for_each(|a| races.add(byte / 4, (a, b), self.ctas == 1));
            }
        }
        races
    }

    /// Adds the accesses of a CTA.
    fn execute(&self, cta: u32, known: &mut Known, bytes: &mut [Vec<Access>]) {
        let first = cta * self.threads;
        let (all, mut live) = (first..first + self.threads, self.threads);
        for (when, (number, _)) in self.executed().into_iter().enumerate() {
            match self.statements[number] {
                Statement::Access { action, index, who, narrow, size, elements } => {
                    for thread in (0..live).filter(|t| who.has(*t)) {
                        let at = self.unit(index, cta, thread) * size * elements;
                        let thread = first + thread;
                        let known = known[thread as usize].clone();
                        let access =
                            Access { when, cta, thread, statement: number, action, element: size, narrow, known };
                        (at..at + size * elements).for_each(|byte| bytes[byte as usize].push(access.clone()));
                    }
                }
                // Threads that have ended count as arrived.
                Statement::Barrier => meet(known, when, all.clone(), first..first + live),
                Statement::WarpBarrier => {
                    for warp in (0..live).step_by(WARP as usize) {
                        let warp = first + warp..first + (warp + WARP).min(live);
                        meet(known, when, warp.clone(), warp);
                    }
                }
                Statement::Pair(_) => meet(known, when, first..first + 2 * WARP, first..first + 2 * WARP),
                Statement::Arrive(_) => meet(known, when, first..first + 2 * WARP, first + WARP..first + 2 * WARP),
                Statement::Exit(from) => live = live.min(from),
            }
        }
    }
}

/// Whether the later access, or the one of the same statement, races with an earlier one.
fn is_race(a: &Access, b: &Access) -> bool {
    let ordered = a.thread == b.thread || b.known[a.thread as usize] > a.when;
    let scoped = a.cta == b.cta || !a.narrow && !b.narrow;
    let morally_strong = a.action.is_strong() && b.action.is_strong() && a.element == b.element && scoped;
    !ordered && !morally_strong && (a.action.writes() || b.action.writes())
}

impl Races {
    fn add(&mut self, word: usize, (a, b): (&Access, &Access), shared: bool) {
        let pair = (a.statement.min(b.statement), a.statement.max(b.statement));
        self.all.insert(pair);
        self.at[word].insert(pair);
        let stores = [a, b].iter().all(|x| x.action == Action::Store { strong: false });
        self.silent[word] |= stores && (shared && a.statement == b.statement || a.element.min(b.element) < 4);
    }
}
