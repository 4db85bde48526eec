//! Events (CUDA Driver API, "Event Management"). Work runs at submission, so an event occurs when it is recorded, and
//! has that time.

use crate::{
    api::api,
    code::{Code, Outcome},
    context::Context,
    driver::{current, driver},
    graph::CapturedAt,
    handle::Handle,
    raw::Out,
    stream::StreamHandle,
    work::Work,
};
use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

/// `CU_EVENT_DISABLE_TIMING`
const NO_TIMING: u32 = 2;

/// An event.
pub struct Event {
    /// Handle of its context.
    pub context: Handle<Context>,
    flags: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    time: Option<Instant>,
    captured: Option<CapturedAt>,
}

impl Event {
    /// Records that the event occurs now.
    pub fn happen(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) =
            State { time: Some(Instant::now()), captured: None };
    }

    /// The place in a captured stream at which it was recorded last.
    pub fn captured(&self) -> Option<CapturedAt> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).captured.clone()
    }

    fn capture(&self, at: CapturedAt) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).captured = Some(at);
    }

    fn time(&self) -> Option<Instant> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).time
    }
}

/// Records an event in a stream; in a captured one, it marks the place for streams that wait for it.
pub fn record(event: Handle<Event>, stream: StreamHandle) -> Outcome {
    let event = driver()?.events.get(event)?;
    let stream = stream.get()?;
    match &*stream.stream().capture() {
        Some(capture) => event.capture(capture.here()),
        None => event.happen(),
    }
    Ok(())
}

fn destroy(event: Handle<Event>) -> Outcome {
    driver()?.events.remove(event).map(drop)
}

/// Whether the event has occurred: it has, unless it marks a place in a capture.
fn done(event: Handle<Event>) -> Outcome {
    match driver()?.events.get(event)?.captured() {
        Some(_) => Err(Code::CAPTURED_EVENT),
        None => Ok(()),
    }
}

fn elapsed(ms: Out<f32>, start: Handle<Event>, end: Handle<Event>) -> Outcome {
    let (start, end) = (driver()?.events.get(start)?, driver()?.events.get(end)?);
    if (start.flags | end.flags) & NO_TIMING != 0 {
        return Err(Code::INVALID_HANDLE);
    }
    let (Some(from), Some(to)) = (start.time(), end.time()) else { return Err(Code::INVALID_HANDLE) };
    let seconds = match to.checked_duration_since(from) {
        Some(later) => later.as_secs_f64(),
        None => -(from - to).as_secs_f64(),
    };
    ms.set((seconds * 1e3) as f32)
}

api! {
    2000 fn cuEventCreate(event: Out<Handle<Event>>, flags: u32) {
        let context = current()?;
        let made = Event { context: context.handle, flags, state: Mutex::default() };
        event.set(driver()?.events.add(made))
    }
    2000 + ptsz fn cuEventRecord(event: Handle<Event>, stream: StreamHandle) { record(event, stream) }
    11010 + ptsz fn cuEventRecordWithFlags(event: Handle<Event>, stream: StreamHandle, flags: u32) {
        match flags {
            0 => record(event, stream),
            // `CU_EVENT_RECORD_EXTERNAL`: a node of the captured graph.
            _ => stream.submit(Work::Record(driver()?.events.get(event)?)),
        }
    }
    2000 fn cuEventQuery(event: Handle<Event>) { done(event) }
    2000 fn cuEventSynchronize(event: Handle<Event>) { done(event) }
    2000 fn cuEventDestroy(event: Handle<Event>) { destroy(event) }
    4000 fn cuEventDestroy_v2(event: Handle<Event>) { destroy(event) }
    2000 fn cuEventElapsedTime(ms: Out<f32>, start: Handle<Event>, end: Handle<Event>) { elapsed(ms, start, end) }
    12080 fn cuEventElapsedTime_v2(ms: Out<f32>, start: Handle<Event>, end: Handle<Event>) { elapsed(ms, start, end) }
}
