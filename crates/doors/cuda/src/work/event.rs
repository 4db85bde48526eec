//! Events (CUDA Driver API, "Event Management"): marks in streams, with the time at which all work before them was done.

use crate::{
    api::api,
    checks::order::{self, Clock},
    code::{Code, Outcome},
    context::Context,
    driver::{current, driver},
    handle::Handle,
    memory::ipc::SharedEvent,
    raw::Out,
    work::{
        Work,
        graph::{CapturedAt, capture::check_default_stream},
        stream::{StreamHandle, StreamRef},
        worker::not_at_work,
    },
};
use margay_runtime::{Mark, milliseconds};
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};

/// `CU_EVENT_BLOCKING_SYNC`: the driver waits that way anyway.
const BLOCKING: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING`
const NO_TIMING: u32 = 2;
/// `CU_EVENT_INTERPROCESS`
const INTERPROCESS: u32 = 4;

/// How long a measurement waits for its events. A thread of margay's may need that long to notice that the work before an event of the
/// default stream is done. A GPU notices at once, and programs that have waited for that work rely on it.
const LAG: Duration = Duration::from_millis(20);

/// An event.
pub struct Event {
    /// Handle of its context.
    pub context: Handle<Context>,
    flags: u32,
    state: Mutex<State>,
    /// What other processes know of it.
    shared: Option<Arc<SharedEvent>>,
}

#[derive(Default)]
struct State {
    mark: Option<Mark>,
    /// What is done when it has happened.
    clock: Clock,
    captured: Option<CapturedAt>,
    /// Launches of graphs that will record it, and the end of the last of them.
    launches: u32,
    end: Option<Mark>,
}

impl Event {
    /// Records that the event occurs now, in a graph.
    pub fn happen(&self) {
        let clock = order::recorded_here();
        let mut state = self.state.lock();
        let launches = state.launches.saturating_sub(1);
        let end = state.end.take().filter(|_| launches > 0);
        *state = State { mark: Some(Mark::now()), clock, captured: None, launches, end };
    }

    /// Records it at a mark.
    pub fn record(&self, mark: Mark, clock: Clock) {
        *self.state.lock() = State { mark: Some(mark), clock, ..State::default() };
    }

    /// A graph that records the event is about to be launched: waits from now on are for that record.
    pub fn announce(&self) {
        self.state.lock().launches += 1;
    }

    /// The graph announced was launched, and ends at a mark.
    pub fn launched(&self, end: &Mark) {
        let mut state = self.state.lock();
        if state.launches > 0 {
            state.end = Some(end.clone());
        }
    }

    /// The end of the last graph that was launched to record it and has not yet.
    pub fn end(&self) -> Option<Mark> {
        self.state.lock().end.clone()
    }

    /// Where it was recorded last, or will have been by a graph that was launched.
    pub fn mark(&self) -> Option<Mark> {
        let state = self.state.lock();
        state.end.clone().or_else(|| state.mark.clone())
    }

    /// Where it was recorded last, if it was.
    pub fn recorded(&self) -> Option<Mark> {
        self.state.lock().mark.clone()
    }

    /// What is done when its last record has happened.
    pub fn clock(&self) -> Clock {
        self.state.lock().clock.clone()
    }

    /// The place in a captured stream at which it was recorded last.
    pub fn captured(&self) -> Option<CapturedAt> {
        self.state.lock().captured.clone()
    }

    /// Whether its last record, by any process, has happened.
    fn is_reached_anywhere(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.is_reached(shared.recorded()))
    }

    fn capture(&self, at: CapturedAt) {
        self.state.lock().captured = Some(at);
    }
}

/// Records an event in a stream; in a captured one, it marks the place for streams that wait for it.
pub fn record(event: Handle<Event>, stream: StreamHandle) -> Outcome {
    let event = driver()?.events.get(event)?;
    let stream = stream.get()?;
    if event.context != stream.context().handle {
        return Err(Code::INVALID_HANDLE); // as `cuEventRecord` says
    }
    match &*stream.stream().capture.lock() {
        Some(capture) => event.capture(capture.here()),
        None => {
            if let StreamRef::Default(context) = &stream {
                check_default_stream(context.handle)?;
            }
            let mark = stream.mark();
            event.record(mark.clone(), order::recorded(&stream));
            if let Some(shared) = event.shared.clone() {
                let number = shared.record();
                stream.after(mark, move || shared.reach(number));
            }
        }
    }
    Ok(())
}

/// `CU_EVENT_WAIT_EXTERNAL`: a node of the captured graph waits for the event, instead of an edge that stands for it.
const EXTERNAL: u32 = 1;

/// Makes a stream wait for an event.
pub fn wait(event: Handle<Event>, stream: StreamHandle, flags: u32) -> Outcome {
    let (handle, stream) = (stream, stream.get()?);
    let event = driver()?.events.get(event)?;
    if flags & !EXTERNAL != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if let StreamRef::Default(context) = &stream {
        check_default_stream(context.handle)?;
    }
    let is_recorded = event.mark().is_some() || event.shared.is_some();
    match &*stream.stream().capture.lock() {
        None if flags & EXTERNAL != 0 => return Err(Code::INVALID_VALUE),
        Some(capture) if flags & EXTERNAL == 0 && is_recorded && event.captured().is_none() => {
            capture.sequence.invalidate();
            return Err(Code::STREAM_CAPTURE_ISOLATION);
        }
        _ => {}
    }
    if flags & EXTERNAL != 0 {
        return handle.submit(Work::Wait(event));
    }
    match (event.captured(), event.mark(), &event.shared) {
        (Some(at), ..) => at.join(stream.stream())?,
        (None, _, Some(shared)) => {
            let (shared, number) = (shared.clone(), shared.recorded());
            if !shared.is_reached(number) {
                stream.work_later(move |context| {
                    shared.wait(number, || context.failure().is_some());
                    Ok(())
                });
            }
        }
        (None, Some(mark), None) => {
            order::waits(&stream, &event.clock());
            stream.wait_for(mark);
        }
        (None, None, None) => {}
    }
    Ok(())
}

fn create(flags: u32) -> Result<Handle<Event>, Code> {
    let context = current()?;
    if flags & !(BLOCKING | NO_TIMING | INTERPROCESS) != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let shared = match flags & INTERPROCESS != 0 {
        true if flags & NO_TIMING == 0 => return Err(Code::INVALID_VALUE),
        true => Some(Arc::new(SharedEvent::new()?)),
        false => None,
    };
    Ok(driver()?.events.add(Event { context: context.handle, flags, state: Mutex::default(), shared }))
}

/// An event of another process.
pub fn import(shared: SharedEvent) -> Result<Handle<Event>, Code> {
    let context = current()?;
    order::lose();
    let (flags, shared) = (NO_TIMING | INTERPROCESS, Some(Arc::new(shared)));
    Ok(driver()?.events.add(Event { context: context.handle, flags, state: Mutex::default(), shared }))
}

/// The part of an event that other processes see; an error for an event that is not for them.
pub fn export(event: Handle<Event>) -> Result<Arc<SharedEvent>, Code> {
    driver()?.events.get(event)?.shared.clone().ok_or(Code::INVALID_VALUE)
}

/// Records an event after all work of a context.
pub fn record_all(event: Handle<Event>, context: &Context) -> Outcome {
    let event = driver()?.events.get(event)?;
    let clock = order::context_clock(context);
    event.record(context.default_stream.queue.mark_after(context.others(true)), clock);
    Ok(())
}

fn destroy(event: Handle<Event>) -> Outcome {
    driver()?.events.remove(event).map(drop)
}

/// An event, and where it was recorded if that was in no capture. (One that was never recorded has happened.)
fn outside(event: Handle<Event>) -> Result<(Arc<Event>, Option<Mark>), Code> {
    let event = driver()?.events.get(event)?;
    match event.captured() {
        Some(at) => Err(at.refuse()),
        None => {
            let mark = event.mark();
            Ok((event, mark))
        }
    }
}

/// What a call returns that has found an event happened.
fn happened(event: &Event) -> Outcome {
    order::seen(&event.clock());
    driver()?.contexts.get(event.context).map_or(Ok(()), |context| context.waited())
}

fn query(event: Handle<Event>) -> Outcome {
    match outside(event)? {
        (event, _) if event.shared.is_some() => match event.is_reached_anywhere() {
            true => happened(&event),
            false => Err(Code::NOT_READY),
        },
        (_, Some(mark)) if !mark.is_reached() => Err(Code::NOT_READY),
        (event, _) => happened(&event),
    }
}

fn synchronize(event: Handle<Event>) -> Outcome {
    let (event, mark) = outside(event)?;
    if let Some(mark) = mark.filter(|mark| !mark.is_reached()) {
        not_at_work()?;
        mark.wait();
    }
    if let Some(shared) = &event.shared {
        not_at_work()?;
        shared.wait(shared.recorded(), || false);
    }
    happened(&event)
}

fn elapsed(ms: Out<f32>, start: Handle<Event>, end: Handle<Event>) -> Outcome {
    let (start, end) = (driver()?.events.get(start)?, driver()?.events.get(end)?);
    if (start.flags | end.flags) & NO_TIMING != 0 || start.context != end.context {
        return Err(Code::INVALID_HANDLE);
    }
    let (Some(from), Some(to)) = (start.mark(), end.mark()) else { return Err(Code::INVALID_HANDLE) };
    let _ = from.wait_for(LAG) && to.wait_for(LAG);
    let (Some(from), Some(to)) = (from.time(), to.time()) else { return Err(Code::NOT_READY) };
    [start, end].iter().for_each(|event| order::seen(&event.clock()));
    ms.set(milliseconds(from, to) as f32)
}

api! {
    2000 fn cuEventCreate(event: Out<Handle<Event>>, flags: u32) {
        event.set(create(flags)?)
    }
    2000 + ptsz fn cuEventRecord(event: Handle<Event>, stream: StreamHandle) { record(event, stream) }
    11010 + ptsz fn cuEventRecordWithFlags(event: Handle<Event>, stream: StreamHandle, flags: u32) {
        match flags {
            0 => record(event, stream),
            // `CU_EVENT_RECORD_EXTERNAL`: a node of the captured graph.
            _ => stream.submit(Work::Record(driver()?.events.get(event)?)),
        }
    }
    2000 fn cuEventQuery(event: Handle<Event>) { query(event) }
    2000 fn cuEventSynchronize(event: Handle<Event>) { synchronize(event) }
    2000 fn cuEventDestroy(event: Handle<Event>) { destroy(event) }
    4000 fn cuEventDestroy_v2(event: Handle<Event>) { destroy(event) }
    2000 fn cuEventElapsedTime(ms: Out<f32>, start: Handle<Event>, end: Handle<Event>) { elapsed(ms, start, end) }
    12080 fn cuEventElapsedTime_v2(ms: Out<f32>, start: Handle<Event>, end: Handle<Event>) { elapsed(ms, start, end) }
}
