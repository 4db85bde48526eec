//! Device memory that is allocated and never used (`MARGAY_CHECK=unused`).

use crate::{
    checks::stacks,
    context::{Context, Owner},
};
use margay_sanitizer::{Finding, FindingKind, Footprint};
use parking_lot::{Mutex, MutexGuard};

/// Whether the check is requested.
fn wanted() -> bool {
    crate::checks::watch::wanted().is_some_and(|what| what.unused)
}

/// Everything that launches, copies and fills have accessed.
fn used() -> MutexGuard<'static, Footprint> {
    static USED: Mutex<Footprint> = Mutex::new(Footprint::new());
    USED.lock()
}

/// Memory that was copied or filled.
pub fn touched(address: u64, bytes: u64) {
    if wanted() {
        used().add(address, bytes, true);
    }
}

/// The memory that a launch has accessed.
pub fn launched(footprint: &Footprint) {
    if wanted() {
        used().join(footprint);
    }
}

/// Memory that is freed.
pub fn freed(address: u64, bytes: u64, owner: Owner) {
    if wanted() {
        let finding = unused(address, bytes, owner);
        used().forget(address, bytes);
        finding.iter().for_each(crate::checks::watch::report);
    }
}

/// At the end of a context: memory that was not freed.
pub fn left(context: &Context) {
    if wanted() {
        let all: Vec<(u64, u64, Owner)> =
            context.allocations.lock().iter().map(|(at, a)| (*at, a.len as u64, a.owner)).collect();
        all.into_iter()
            .filter_map(|(at, len, owner)| unused(at, len, owner))
            .for_each(|f| crate::checks::watch::report(&f));
    }
}

/// The report of an allocation that is partly unused. Memory that the host can access without calls is not considered.
fn unused(address: u64, bytes: u64, owner: Owner) -> Option<Finding> {
    let (Owner::Device, function) = (owner, owner.allocator()?) else { return None };
    let accessed = used().accessed(address, bytes);
    if accessed == bytes {
        return None;
    }
    let title = match accessed {
        0 => format!("unused: none of the {bytes} bytes at {address:#x} is ever accessed; they come from {function}"),
        _ => format!(
            "unused: {} of the {bytes} bytes at {address:#x} are never accessed; they come from {function}",
            bytes - accessed
        ),
    };
    let notes = stacks::allocation(address);
    Some(Finding { kind: FindingKind::Unused, title, parties: Vec::new(), notes, help: None, times: 1 })
}
