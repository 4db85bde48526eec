//! Memory of Python's objects that kernels use in place: taken in for a launch, given back after it.
//!
//! Arguments may overlap, and other threads may launch with the same arrays. So the ranges of a launch are first joined where they
//! touch, and a range that another launch has already is shared where it lies within; where it does not, the launch waits for the other
//! one's end. All ranges of a launch are taken at once, so no two launches wait for each other.

use crate::{errors, raw};
use margay_exec::{Memory, mem::Kind};
use pyo3::prelude::*;
use std::{
    collections::BTreeMap,
    fs::File,
    os::unix::fs::FileExt,
    sync::{Arc, Condvar, Mutex, PoisonError},
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

#[derive(Debug)]
struct Held {
    range: Range,
    users: u32,
}

/// What the device has on loan, by address.
#[derive(Debug, Default)]
pub struct Loans {
    held: Mutex<BTreeMap<u64, Held>>,
    ended: Condvar,
}

/// The loans of a launch; they end when it is dropped.
pub struct Lent {
    loans: Arc<Loans>,
    device: Arc<margay_runtime::Device>,
    addresses: Vec<u64>,
}

impl Loans {
    /// Takes memory in. Waits where another launch has a part of it on other terms.
    pub fn take(self: &Arc<Loans>, device: &Arc<margay_runtime::Device>, ranges: Vec<Range>) -> PyResult<Lent> {
        let ranges = joined(ranges);
        ranges.iter().try_for_each(reachable)?;
        let mut lent = Lent { loans: self.clone(), device: device.clone(), addresses: Vec::new() };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while ranges.iter().any(|range| conflicts(&held, range)) {
            held = self.ended.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        for range in ranges {
            if let Some(known) = around(&mut held, &range) {
                known.users += 1;
                lent.addresses.push(known.range.address);
                continue;
            }
            adopt(device.memory(), &range)?;
            lent.addresses.push(range.address);
            held.insert(range.address, Held { range, users: 1 });
        }
        Ok(lent)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut held = self.loans.held.lock().unwrap_or_else(PoisonError::into_inner);
        for address in &self.addresses {
            let Some(known) = held.get_mut(address) else { continue };
            known.users -= 1;
            if known.users == 0 {
                held.remove(address);
                // It is there: only these loans have it.
                let _ = self.device.memory().free(*address);
            }
        }
        drop(held);
        self.loans.ended.notify_all();
    }
}

fn adopt(memory: &Memory, range: &Range) -> PyResult<()> {
    let block = raw::on_loan(range.address, range.len).ok_or_else(|| errors::value("a null address"))?;
    let kind = if range.readonly { Kind::ReadOnly } else { Kind::Global };
    memory.adopt_as(block, kind, &range.name).map_err(|other| {
        errors::value(format!("{}: its memory overlaps the {other}, which the device has of its own", range.name))
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
            "{}: the {} bytes at {:#x} are no memory of this process that the processor can reach",
            range.name, range.len, range.address
        ))),
        // Without the file nobody can tell.
        Ok(true) | Err(_) => Ok(()),
    }
}
