//! Launches that run, and what was freed while they did.
//!
//! Compiled code remembers ranges of addresses that it found valid, and a thread may be between the check of an address and the
//! access. So what is freed is *forgotten* at once, by all tables of ranges that running launches use, and *kept* until the launches
//! have ended that ran at the time. Memory of the device heap may be handed out again before that, to device code only.

use super::{Allocation, Block, Kind, Ranges};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// Bytes that the host may free while launches run before it waits for their end.
const MOST_KEPT: u64 = 1 << 30;
/// Freed blocks that are looked at before memory of the device heap is taken from the host.
const MOST_TRIES: usize = 4;
/// What a block costs beside its bytes.
const OVERHEAD: u64 = 3 * super::RED_ZONE as u64;

/// What was freed, and the number of the latest launch at that time.
type Kept = (u64, Arc<Allocation>);

/// By the logarithm of their room.
#[derive(Debug)]
struct Heap([VecDeque<Kept>; 64]);

impl Default for Heap {
    fn default() -> Heap {
        Heap(std::array::from_fn(|_| VecDeque::new()))
    }
}

/// Launches that run.
#[derive(Default, Debug)]
pub struct Launches {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default, Debug)]
struct State {
    /// Number of the one that began last.
    begun: u64,
    /// Those that run, ascending.
    running: Vec<u64>,
    /// Tables that they use.
    tables: Vec<(u64, Arc<Ranges>)>,
    /// Freed by the host, oldest first, and their bytes.
    kept: VecDeque<Kept>,
    bytes: u64,
    /// Freed by device code, and what it all takes.
    heap: Heap,
    heap_bytes: u64,
}

/// A launch that runs.
#[derive(Debug)]
pub struct Running<'a> {
    launches: &'a Launches,
    number: u64,
}

impl Running<'_> {
    /// Its number; no two launches have the same.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Ranges in a table are emptied when their memory is freed, until the launch has ended. What the table held before may have been
    /// freed already: [`super::Memory::epoch`] tells, if it is read after this.
    pub fn watch(&self, table: &Arc<Ranges>) {
        self.launches.lock().tables.push((self.number, table.clone()));
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        drop(self.launches.end(self.number));
    }
}

impl Launches {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A launch begins.
    pub fn begin(&self) -> Running<'_> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let mut state = self.lock();
        // While the lock is held: numbers of a memory ascend.
        let number = NUMBERS.fetch_add(1, Relaxed);
        state.begun = number;
        state.running.push(number);
        Running { launches: self, number }
    }

    /// A launch has ended; gives what nobody can use any more, to be dropped without the lock.
    fn end(&self, number: u64) -> Vec<Kept> {
        let mut state = self.lock();
        let state = &mut *state;
        state.running.retain(|n| *n != number);
        state.tables.retain(|(n, _)| *n != number);
        self.ended.notify_all();
        let oldest = state.running.first().copied().unwrap_or(u64::MAX);
        let take = |list: &mut VecDeque<Kept>| {
            let first = list.iter().position(|(at, _)| *at >= oldest).unwrap_or(list.len());
            list.drain(..first).collect::<Vec<Kept>>()
        };
        let mut gone = take(&mut state.kept);
        state.bytes -= gone.iter().map(|(_, a)| a.block.len() as u64).sum::<u64>();
        if state.heap_bytes > 0 {
            let heap: Vec<Kept> = state.heap.0.iter_mut().flat_map(take).collect();
            state.heap_bytes -= heap.iter().map(|(_, a)| cost(&a.block)).sum::<u64>();
            gone.extend(heap);
        }
        gone
    }

    /// Empties all ranges in the allocation that begins at `base`.
    pub fn forget(&self, base: u64) {
        self.lock().tables.iter().for_each(|(_, table)| table.forget(base));
    }

    /// Keeps what was freed while launches run; whether that is too much of the host's memory.
    pub fn keep(&self, gone: Arc<Allocation>) -> bool {
        let mut state = self.lock();
        if state.running.is_empty() {
            drop(state);
            return false; // and `gone` goes
        }
        let now = state.begun;
        if gone.kind == Kind::Heap {
            state.heap_bytes += cost(&gone.block);
            state.heap.0[class(gone.block.room())].push_back((now, gone));
            return false;
        }
        state.bytes += gone.block.len() as u64;
        state.kept.push_back((now, gone));
        state.bytes > MOST_KEPT
    }

    /// A block of the device heap that was freed and has `room`, if there are more than so many bytes of such blocks; it has `len`
    /// zero bytes then.
    pub fn reuse(&self, room: u64, len: usize, bytes: u64) -> Option<Block> {
        let mut state = self.lock();
        if state.heap_bytes <= bytes {
            return None;
        }
        let state = &mut *state;
        let list = &mut state.heap.0[class(room as usize)];
        for _ in 0..list.len().min(MOST_TRIES) {
            let (at, oldest) = list.pop_front()?;
            match Arc::try_unwrap(oldest) {
                Ok(found) => {
                    state.heap_bytes -= cost(&found.block);
                    let mut block = found.block;
                    block.renew(len);
                    return Some(block);
                }
                // The reference engine is about to look at it.
                Err(used) => list.push_back((at, used)),
            }
        }
        None
    }

    /// Waits until all launches have ended that run now.
    pub fn wait(&self) {
        let state = self.lock();
        let now = state.begun;
        let some = |s: &mut State| s.running.first().is_some_and(|n| *n <= now);
        drop(self.ended.wait_while(state, some).unwrap_or_else(PoisonError::into_inner));
    }
}

fn cost(block: &Block) -> u64 {
    block.room() as u64 + OVERHEAD
}

fn class(room: usize) -> usize {
    room.max(1).ilog2() as usize
}
