//! Memory of Python's objects that kernels use in place: taken in for a launch, given back after it.
//!
//! Arguments may overlap, and other threads may launch with the same arrays. So the ranges of a launch are first joined where they
//! touch, and a range that another launch has already is shared where it lies within; where it does not, the launch waits for the other
//! one's end. All ranges of a launch are taken at once, so no two launches wait for each other.
//!
//! Memory is returned without waiting for concurrent launches: they no longer find it, and the objects stay alive until these have
//! ended that ran at the time, since an access may be under way.

use crate::{errors, launch::LOOK, raw};
use margay_exec::{
    Memory,
    mem::{Kind, Retracted},
};
use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    os::unix::fs::FileExt,
    sync::Arc,
};

/// Memory that a launch is to use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Range {
    /// Host address of the first byte.
    pub address: u64,
    /// Bytes, more than none.
    pub len: usize,
    /// Kernels may not write there.
    pub readonly: bool,
    /// For messages: the parameter.
    pub name: String,
}

impl Range {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.len as u64)
    }
}

/// The memory that launches have on loan.
struct Held {
    range: Range,
    users: u32,
    /// The objects that the memory belongs to.
    owners: Vec<Py<PyAny>>,
}

/// Memory that no launch can reach any more but those that ran when it was given back: an access of one of them may be under way.
struct Returned {
    ran: BTreeSet<u64>,
    /// Alive until then.
    _memory: Vec<Retracted>,
    _owners: Vec<Py<PyAny>>,
}

#[derive(Default)]
struct State {
    held: BTreeMap<u64, Held>,
    /// Launches by number.
    launches: u64,
    running: BTreeSet<u64>,
    returned: Vec<Returned>,
}

/// The memory that the device has on loan, by address.
#[derive(Default)]
pub struct Loans {
    state: Mutex<State>,
    ended: Condvar,
}

/// The loans of a launch; they end when it is dropped.
pub struct LoanGuard {
    loans: Arc<Loans>,
    device: Arc<margay_runtime::Device>,
    launch: u64,
    addresses: Vec<u64>,
}

impl Loans {
    /// Takes memory in. Waits where another launch has a part of it on other terms, and hears of Python's signals meanwhile.
    pub fn take(
        self: &Arc<Loans>,
        device: &Arc<margay_runtime::Device>,
        ranges: Vec<Range>,
        owner: Py<PyAny>,
    ) -> PyResult<LoanGuard> {
        let ranges = joined(ranges);
        ranges.iter().try_for_each(reachable)?;
        let mut state = self.state.lock();
        while ranges.iter().any(|range| conflicts(&state.held, range)) {
            if self.ended.wait_for(&mut state, LOOK).timed_out() {
                drop(state);
                Python::attach(|py| py.check_signals())?;
                state = self.state.lock();
            }
        }
        state.launches += 1;
        let launch = state.launches;
        state.running.insert(launch);
        // From here on, dropping it cleans up in every case.
        let mut lent = LoanGuard { loans: self.clone(), device: device.clone(), launch, addresses: Vec::new() };
        for range in ranges {
            let address = range.address;
            let known = match around(&mut state.held, &range) {
                Some(known) => known,
                None => {
                    if let Err(error) = adopt(device.memory(), &range) {
                        drop(state);
                        return Err(error);
                    }
                    state.held.entry(address).or_insert(Held { range, users: 0, owners: Vec::new() })
                }
            };
            known.users += 1;
            known.owners.push(Python::attach(|py| owner.clone_ref(py)));
            lent.addresses.push(known.range.address);
        }
        drop(state);
        Ok(lent)
    }
}

impl Drop for LoanGuard {
    /// Does not wait for concurrent launches.
    fn drop(&mut self) {
        let mut state = self.loans.state.lock();
        state.running.remove(&self.launch);
        let (mut gone, mut owners) = (Vec::new(), Vec::new());
        for address in &self.addresses {
            let Some(known) = state.held.get_mut(address) else { continue };
            known.users -= 1;
            if known.users == 0
                && let Some(known) = state.held.remove(address)
            {
                gone.push(*address);
                owners.extend(known.owners);
            }
        }
        let (memory, _) = self.device.memory().exchange(&gone, Vec::new(), Kind::Global);
        let ran = state.running.clone();
        state.returned.push(Returned { ran, _memory: memory, _owners: owners });
        for returned in &mut state.returned {
            returned.ran.remove(&self.launch);
        }
        let done: Vec<Returned> = state.returned.extract_if(.., |returned| returned.ran.is_empty()).collect();
        drop(state);
        self.loans.ended.notify_all();
        drop(done);
    }
}

fn adopt(memory: &Memory, range: &Range) -> PyResult<()> {
    let block = raw::on_loan(range.address, range.len).ok_or_else(|| errors::value("a null address"))?;
    let kind = if range.readonly { Kind::ReadOnly } else { Kind::Global };
    memory.adopt_as(block, kind, &range.name).map_err(|other| {
        errors::value(format!("{}: its memory overlaps the {other}, which belongs to the device", range.name))
    })
}

/// Another launch has a part of it, but not all of it on the same terms.
fn conflicts(held: &BTreeMap<u64, Held>, range: &Range) -> bool {
    let before = held.range(..range.end()).next_back();
    before.is_some_and(|(_, known)| known.range.end() > range.address && !shares(&known.range, range))
}

fn shares(known: &Range, range: &Range) -> bool {
    known.address <= range.address && known.end() >= range.end() && known.readonly == range.readonly
}

fn around<'a>(held: &'a mut BTreeMap<u64, Held>, range: &Range) -> Option<&'a mut Held> {
    let (_, known) = held.range_mut(..=range.address).next_back()?;
    shares(&known.range, range).then_some(known)
}

/// In order of address, those that overlap joined. What may be written under one name may be written.
fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.retain(|range| range.len > 0);
    ranges.sort_by_key(|range| range.address);
    let mut all: Vec<Range> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if range.address < last.end() => {
                last.len = last.len.max((range.end() - last.address) as usize);
                last.readonly &= range.readonly;
                if last.name != range.name {
                    last.name = format!("{}, {}", last.name, range.name);
                }
            }
            _ => all.push(range),
        }
    }
    all
}

/// Whether the host can read the range's ends: memory of a real GPU has an address too, and is out of reach.
fn reachable(range: &Range) -> PyResult<()> {
    let mut byte = [0];
    let memory = File::open("/proc/self/mem");
    let ends = [range.address, range.end() - 1];
    match memory.map(|memory| ends.iter().all(|at| memory.read_at(&mut byte, *at).is_ok_and(|n| n == 1))) {
        Ok(false) => Err(errors::value(format!(
            "{}: the {} bytes at {:#x} are not accessible memory of this process",
            range.name, range.len, range.address
        ))),
        // Without the file, this is unknown.
        Ok(true) | Err(_) => Ok(()),
    }
}
