//! Running launches, and the memory freed while they run.
//!
//! Compiled code caches valid address ranges, and a thread may be between the check of an address and the access. So
//! freed memory is removed at once from all tables of ranges that running launches use, but *kept* until every launch
//! that ran at the time has ended. Memory of the device heap may be reused earlier, by device code only.

use super::{Allocation, Block, Kind, Ranges};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// Bytes that the host may free during launches before a `free` waits for them.
const MAX_KEPT: u64 = 1 << 30;
/// Freed heap blocks tried for reuse before new memory is allocated.
const MAX_TRIES: usize = 4;
/// Bytes that a block takes beyond its contents.
const OVERHEAD: u64 = 3 * super::RED_ZONE as u64;

/// Freed memory, and the number of the latest launch at that time.
type Kept = (u64, Arc<Allocation>);

/// Freed heap blocks, by the logarithm of their capacity.
#[derive(Debug)]
struct Heap([VecDeque<Kept>; 64]);

impl Default for Heap {
    fn default() -> Heap {
        Heap(std::array::from_fn(|_| VecDeque::new()))
    }
}

/// The running launches of a memory.
#[derive(Default, Debug)]
pub struct Launches {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default, Debug)]
struct State {
    /// Number of the latest launch.
    begun: u64,
    /// Numbers of the running launches, ascending.
    running: Vec<u64>,
    /// Threads that wait for launches to end.
    waiting: u32,
    /// Tables of ranges that they use.
    tables: Vec<(u64, Arc<Ranges>)>,
    /// Memory freed by the host, oldest first, and its size in bytes.
    kept: VecDeque<Kept>,
    bytes: u64,
    /// Memory freed by device code, and its size in bytes.
    heap: Heap,
    heap_bytes: u64,
}

/// A running launch; it ends when this is dropped.
#[derive(Debug)]
pub struct Running<'a> {
    launches: &'a Launches,
    number: u64,
}

impl Running<'_> {
    /// Its number, unique in the process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Registers a table, whose ranges are emptied when their memory is freed until the launch ends. Ranges entered
    /// before may already be stale: compare [`super::Memory::epoch`], read after this call.
    pub fn watch(&self, table: &Arc<Ranges>) {
        self.launches.state.lock().tables.push((self.number, table.clone()));
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        drop(self.launches.end(self.number));
    }
}

impl Launches {
    /// Starts a launch.
    pub fn begin(&self) -> Running<'_> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let mut state = self.state.lock();
        // Under the lock, so that the numbers of one memory ascend.
        let number = NUMBERS.fetch_add(1, Relaxed);
        state.begun = number;
        state.running.push(number);
        Running { launches: self, number }
    }

    /// Ends a launch; returns the memory that is no longer in use, to be dropped outside the lock.
    fn end(&self, number: u64) -> Vec<Kept> {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.running.retain(|n| *n != number);
        state.tables.retain(|(n, _)| *n != number);
        if state.waiting > 0 {
            self.ended.notify_all();
        }
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
        self.state.lock().tables.iter().for_each(|(_, table)| table.forget(base));
    }

    /// Keeps freed memory while launches run; returns whether the host holds too much of it.
    pub fn keep(&self, gone: Arc<Allocation>) -> bool {
        let mut state = self.state.lock();
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
        state.bytes > MAX_KEPT
    }

    /// Reuses a freed heap block of capacity `room`, if such blocks take more than `bytes` bytes; it then has `len`
    /// zero bytes.
    pub fn reuse(&self, room: u64, len: usize, bytes: u64) -> Option<Block> {
        let mut state = self.state.lock();
        if state.heap_bytes <= bytes {
            return None;
        }
        let state = &mut *state;
        let list = &mut state.heap.0[class(room as usize)];
        for _ in 0..list.len().min(MAX_TRIES) {
            let (at, oldest) = list.pop_front()?;
            match Arc::try_unwrap(oldest) {
                Ok(found) => {
                    state.heap_bytes -= cost(&found.block);
                    let mut block = found.block;
                    block.renew(len);
                    return Some(block);
                }
                // The reference engine holds a reference.
                Err(used) => list.push_back((at, used)),
            }
        }
        None
    }

    /// Waits until all launches that run now have ended.
    pub fn wait(&self) {
        let mut state = self.state.lock();
        let now = state.begun;
        let some = |s: &mut State| s.running.first().is_some_and(|n| *n <= now);
        state.waiting += 1;
        self.ended.wait_while(&mut state, some);
        state.waiting -= 1;
    }
}

fn cost(block: &Block) -> u64 {
    block.room() as u64 + OVERHEAD
}

fn class(room: usize) -> usize {
    room.max(1).ilog2() as usize
}
