//! Advice about managed memory, and prefetches (CUDA Driver API, "Unified Addressing"). Memory does not move, so advice
//! has no effect; it is stored for programs that query it.

use crate::{
    api::api,
    code::{Code, Outcome},
    driver::{current, driver},
    memory::{DevicePtr, Location, is_managed},
    raw::{Host, In},
    work::stream::StreamHandle,
};
use parking_lot::MutexGuard;

/// The subject of an advice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Subject {
    ReadMostly,
    Preferred,
    AccessedBy,
    Prefetched,
}

/// An advice about a range; later ones override earlier ones.
pub struct Advice {
    start: DevicePtr,
    end: DevicePtr,
    subject: Subject,
    /// `None` if the advice was withdrawn.
    location: Option<Location>,
}

fn advice() -> Result<MutexGuard<'static, Vec<Advice>>, Code> {
    Ok(driver()?.advice.lock())
}

fn say(start: DevicePtr, bytes: usize, subject: Subject, location: Option<Location>) -> Outcome {
    if !is_managed(&*current()?, start, bytes) {
        return Err(Code::INVALID_VALUE);
    }
    let end = start.checked_add(bytes as u64).ok_or(Code::INVALID_VALUE)?;
    let mut all = advice()?;
    all.retain(|a| a.subject != subject || a.start < start || a.end > end);
    all.push(Advice { start, end, subject, location });
    Ok(())
}

/// Drops the advice about memory that is freed.
pub fn forget(start: DevicePtr, bytes: usize) {
    if let Ok(mut all) = advice() {
        all.retain(|a| a.start < start || a.end > start + bytes as u64);
    }
}

/// Records a prefetch of a range.
pub fn prefetch(start: DevicePtr, bytes: usize, location: Location) -> Outcome {
    say(start, bytes, Subject::Prefetched, Some(location))
}

/// The advice that holds for a whole range; `None` if it differs within.
fn about(start: DevicePtr, bytes: usize, subject: Subject) -> Result<Option<Location>, Code> {
    let end = start.checked_add(bytes as u64).filter(|end| *end > start).ok_or(Code::INVALID_VALUE)?;
    let all = advice()?;
    let of = |at: DevicePtr| {
        let last = all.iter().rev().find(|a| a.subject == subject && (a.start..a.end).contains(&at));
        last.and_then(|a| a.location)
    };
    let first = of(start);
    let borders = all.iter().flat_map(|a| [a.start, a.end]).filter(|at| *at > start && *at < end);
    Ok(first.filter(|_| borders.into_iter().all(|at| of(at) == first)))
}

fn advise(start: DevicePtr, bytes: usize, number: u32, location: Location) -> Outcome {
    let (subject, withdrawn) = match number {
        1 => (Subject::ReadMostly, false),
        2 => (Subject::ReadMostly, true),
        3 => (Subject::Preferred, false),
        4 => (Subject::Preferred, true),
        5 => (Subject::AccessedBy, false),
        6 => (Subject::AccessedBy, true),
        _ => return Err(Code::INVALID_VALUE),
    };
    say(start, bytes, subject, (!withdrawn).then_some(location))
}

/// `CU_DEVICE_CPU`, `CU_DEVICE_INVALID`
const CPU: i32 = -1;
const NOWHERE: i32 = -2;

/// A location as a device number.
fn device_of(location: Option<Location>) -> i32 {
    location.map_or(NOWHERE, |l| if l.kind == Location::DEVICE.kind { l.id } else { CPU })
}

fn location_of(device: i32) -> Location {
    const HOST: u32 = 2;
    if device == CPU { Location { kind: HOST, id: 0 } } else { Location { kind: Location::DEVICE.kind, id: device } }
}

/// Writes a `CUmem_range_attribute`.
fn attribute(out: Host, size: usize, number: u32, start: DevicePtr, bytes: usize) -> Outcome {
    const ACCESSED_BY: u32 = 3;
    let of = |subject| about(start, bytes, subject);
    let value = match number {
        1 => i32::from(of(Subject::ReadMostly)?.is_some()),
        2 => device_of(of(Subject::Preferred)?),
        ACCESSED_BY => device_of(of(Subject::AccessedBy)?),
        4 => device_of(of(Subject::Prefetched)?),
        5 => of(Subject::Preferred)?.map_or(0, |l| l.kind as i32),
        6 => of(Subject::Preferred)?.map_or(0, |l| l.id),
        7 => of(Subject::Prefetched)?.map_or(0, |l| l.kind as i32),
        8 => of(Subject::Prefetched)?.map_or(0, |l| l.id),
        _ => return Err(Code::INVALID_VALUE),
    };
    if size == 0 || !size.is_multiple_of(4) || number != ACCESSED_BY && size != 4 {
        return Err(Code::INVALID_VALUE);
    }
    (1..size / 4).try_for_each(|i| out.set_value(4 * i, NOWHERE))?;
    out.set_value(0, value)
}

api! {
    8000 + ptsz fn cuMemPrefetchAsync(address: DevicePtr, bytes: usize, device: i32, stream: StreamHandle) {
        stream.get()?;
        prefetch(address, bytes, location_of(device))
    }
    12020 + ptsz fn cuMemPrefetchAsync_v2(
        address: DevicePtr, bytes: usize, location: Location, _flags: u32, stream: StreamHandle,
    ) {
        stream.get()?;
        prefetch(address, bytes, location)
    }
    8000 fn cuMemAdvise(address: DevicePtr, bytes: usize, number: u32, device: i32) {
        advise(address, bytes, number, location_of(device))
    }
    12020 fn cuMemAdvise_v2(address: DevicePtr, bytes: usize, number: u32, location: Location) {
        advise(address, bytes, number, location)
    }
    8000 fn cuMemRangeGetAttribute(out: Host, size: usize, number: u32, address: DevicePtr, bytes: usize) {
        current()?;
        attribute(out, size, number, address, bytes)
    }
    8000 fn cuMemRangeGetAttributes(
        outs: In<u64>, sizes: In<usize>, numbers: In<u32>, count: usize, address: DevicePtr, bytes: usize,
    ) {
        current()?;
        (0..count).try_for_each(|i| attribute(outs.pointers().nth(i)?, sizes.nth(i)?, numbers.nth(i)?, address, bytes))
    }
}
