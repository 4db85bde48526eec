//! Where device code allocated the memory that it has not freed, for reports of leaks.

use super::history::{Initiator, Path};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// Limit of allocations whose origin is recorded.
const LIMIT: usize = 1 << 12;

/// Who called `malloc`, and where, by the address that it returned.
#[derive(Default, Debug)]
pub struct Origins {
    on: AtomicBool,
    all: Mutex<BTreeMap<u64, (Initiator, Path)>>,
}

impl Origins {
    /// Starts to remember.
    pub fn start(&self) {
        self.on.store(true, Relaxed);
    }

    /// Whether they are remembered.
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Remembers an allocation.
    pub fn add(&self, address: u64, by: Initiator, path: impl FnOnce() -> Path) {
        let mut all = self.all.lock();
        if all.len() < LIMIT {
            all.insert(address, (by, path()));
        }
    }

    /// Forgets one, which is freed.
    pub fn remove(&self, address: u64) {
        if self.is_on() {
            self.all.lock().remove(&address);
        }
    }

    /// The places of the allocations that are left, each with the number of these and one of the threads.
    pub fn places(&self) -> Vec<(String, usize, Initiator)> {
        let mut places = BTreeMap::<String, (usize, Initiator)>::new();
        for (by, path) in self.all.lock().values() {
            places.entry(path.to_string()).or_insert((0, *by)).0 += 1;
        }
        places.into_iter().map(|(place, (count, by))| (place, count, by)).collect()
    }
}
