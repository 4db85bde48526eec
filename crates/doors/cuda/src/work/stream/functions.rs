//! Functions on streams (CUDA Driver API, "Stream Management").

use super::{Attribute, Stream, StreamHandle, create_in};
use crate::{
    api::api,
    checks::order,
    code::{Code, Outcome},
    context::Context,
    driver::{current, driver},
    green::{self, Green},
    handle::Handle,
    memory::DevicePtr,
    raw::{Callback, Host, In, Out, StreamCallback, UserData},
    work::{
        Work,
        event::{self, Event},
        graph::{Capture, Graph, NodeRef, capture},
        worker::{at_work, calling_back},
    },
};

fn create(out: Out<Handle<Stream>>, flags: u32, priority: i32) -> Outcome {
    out.set(create_in(&*current()?, green::current().map(|(handle, _)| handle), flags, priority)?)
}

fn destroy(handle: StreamHandle) -> Outcome {
    let stream = driver()?.streams.remove(handle.0)?;
    if let Some(capture) = stream.capture.lock().take_if(|c| c.sequence.origin == handle.number()) {
        let _ = capture.end(driver()?); // with the stream, its graph is out of reach
    }
    if let Ok(context) = driver()?.contexts.get(stream.context) {
        context.forget(&stream.queue);
    }
    Ok(())
}

fn begin(handle: StreamHandle, mode: u32, graph: Option<(Handle<Graph>, Vec<Handle<NodeRef>>)>) -> Outcome {
    let handle = handle.resolve();
    if handle.0.number() <= 1 {
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED); // the legacy stream cannot be captured
    }
    let stream = handle.get()?;
    let mut capture = stream.stream().capture.lock();
    if capture.is_some() {
        return Err(Code::ILLEGAL_STATE);
    }
    *capture = Some(Capture::begin(&stream, handle, mode, graph)?);
    Ok(())
}

/// `CUstreamCaptureStatus`: none, active, or invalidated.
fn status(capture: Option<&Capture>) -> u32 {
    capture.map_or(0, |capture| 1 + u32::from(capture.sequence.is_invalid()))
}

/// The state of a stream's capture, and its number while it is active.
fn brief(handle: StreamHandle, is: Out<u32>, id: Out<u64>) -> Outcome {
    let stream = handle.get()?;
    stream.check_capture_query()?;
    let capture = stream.stream().capture.lock();
    is.set(status(capture.as_ref()))?;
    if let Some(capture) = &*capture {
        id.offer(capture.sequence.id);
    }
    Ok(())
}

/// Changes the dependencies of the next node of a captured stream.
fn update(handle: StreamHandle, nodes: In<Handle<NodeRef>>, count: usize, flags: u32) -> Outcome {
    const ADD: u32 = 0;
    const SET: u32 = 1;
    let stream = handle.get()?;
    let mut capture = stream.stream().capture.lock();
    let capture = capture.as_mut().ok_or(Code::ILLEGAL_STATE)?;
    match flags {
        ADD | SET => capture.wait_for(nodes.list(count)?, flags == SET),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn info(
    handle: StreamHandle,
    is: Out<u32>,
    id: Out<u64>,
    graph: Out<Handle<Graph>>,
    after: Out<u64>,
    count: Out<usize>,
) -> Outcome {
    brief(handle, is, id)?;
    let stream = handle.get()?;
    if let Some(capture) = &*stream.stream().capture.lock() {
        graph.offer(capture.handle);
        let list = capture.last_for_c();
        after.offer(list.0);
        count.offer(list.1);
    }
    Ok(())
}

api! {
    2000 fn cuStreamCreate(stream: Out<Handle<Stream>>, flags: u32) { create(stream, flags, 0) }
    5050 fn cuStreamCreateWithPriority(stream: Out<Handle<Stream>>, flags: u32, priority: i32) {
        create(stream, flags, priority)
    }
    2000 fn cuStreamDestroy(stream: StreamHandle) { destroy(stream) }
    4000 fn cuStreamDestroy_v2(stream: StreamHandle) { destroy(stream) }
    5050 + ptsz fn cuStreamGetPriority(stream: StreamHandle, priority: Out<i32>) { priority.set(stream.get()?.stream().priority) }
    5050 + ptsz fn cuStreamGetFlags(stream: StreamHandle, flags: Out<u32>) { flags.set(stream.get()?.stream().flags) }
    12000 + ptsz fn cuStreamGetId(stream: StreamHandle, id: Out<u64>) { id.set(stream.get()?.stream().id) }
    12080 + ptsz fn cuStreamGetDevice(stream: StreamHandle, device: Out<i32>) {
        device.set(stream.get()?.context().device)
    }
    9020 + ptsz fn cuStreamGetCtx(stream: StreamHandle, context: Out<Handle<Context>>) {
        context.set(stream.get()?.context().handle)
    }
    12050 + ptsz fn cuStreamGetCtx_v2(stream: StreamHandle, context: Out<Handle<Context>>, green: Out<Handle<Green>>) {
        let stream = stream.get()?;
        green.offer(stream.stream().green.unwrap_or(Handle::NULL));
        context.set(stream.context().handle)
    }
    3020 + ptsz fn cuStreamWaitEvent(stream: StreamHandle, event: Handle<Event>, flags: u32) {
        event::wait(event, stream, flags)
    }
    5000 + ptsz fn cuStreamAddCallback(stream: StreamHandle, callback: StreamCallback, data: UserData, flags: u32) {
        if callback.is_null() || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        stream.get()?.check_capture()?;
        let (used, number) = (stream.get()?, stream.0.number());
        let context = used.context().clone();
        // It is called after a fault too, with its code as status.
        let clock = order::recorded(&used);
        used.queue().push(used.turn(), move || at_work(|| {
            order::seen(&clock);
            let status = context.failure().unwrap_or(Code::SUCCESS);
            calling_back(|| callback.call(number, status, data));
        }));
        Ok(())
    }
    10000 + ptsz fn cuLaunchHostFunc(stream: StreamHandle, function: Callback, data: UserData) {
        stream.submit(Work::Host(function, data))
    }
    13010 + ptsz fn cuLaunchHostFunc_v2(stream: StreamHandle, function: Callback, data: UserData, _mode: u32) {
        stream.submit(Work::Host(function, data))
    }
    6000 + ptsz fn cuStreamAttachMemAsync(stream: StreamHandle, _address: DevicePtr, _bytes: usize, _flags: u32) {
        stream.get().map(drop)
    }
    2000 + ptsz fn cuStreamQuery(stream: StreamHandle) {
        let stream = stream.get()?;
        stream.check_capture()?;
        if !stream.mark().is_reached() {
            return Err(Code::NOT_READY);
        }
        order::seen_stream(&stream);
        stream.context().waited()
    }
    2000 + ptsz fn cuStreamSynchronize(stream: StreamHandle) { stream.get()?.settle() }
    11000 + ptsz fn cuStreamCopyAttributes(to: StreamHandle, from: StreamHandle) {
        let (to, from) = (to.get()?, from.get()?);
        let copied = from.stream().attributes.lock().clone();
        *to.stream().attributes.lock() = copied;
        Ok(())
    }
    11000 + ptsz fn cuStreamGetAttribute(stream: StreamHandle, attribute: u32, value: Out<Attribute>) {
        value.set(stream.get()?.stream().attribute(attribute))
    }
    11000 + ptsz fn cuStreamSetAttribute(stream: StreamHandle, attribute: u32, value: In<Attribute>) {
        stream.get()?.stream().attributes.lock().insert(attribute, value.get()?);
        Ok(())
    }

    10000 + ptsz fn cuStreamBeginCapture(stream: StreamHandle) { begin(stream, capture::mode::GLOBAL, None) }
    10010 + ptsz fn cuStreamBeginCapture_v2(stream: StreamHandle, mode: u32) { begin(stream, mode, None) }
    12030 + ptsz fn cuStreamBeginCaptureToGraph(
        stream: StreamHandle, graph: Handle<Graph>, after: In<Handle<NodeRef>>, _edges: Host, count: usize, mode: u32,
    ) {
        begin(stream, mode, Some((graph, after.list(count)?)))
    }
    10000 + ptsz fn cuStreamEndCapture(stream: StreamHandle, graph: Out<Handle<Graph>>) {
        let stream = stream.resolve();
        let stream_ref = stream.get()?;
        let mut captured = stream_ref.stream().capture.lock();
        captured.as_ref().ok_or(Code::ILLEGAL_STATE)?.check_end(stream)?;
        let capture = captured.take().ok_or(Code::ILLEGAL_STATE)?;
        drop(captured);
        graph.offer(Handle::NULL);
        graph.offer(capture.end(driver()?)?);
        Ok(())
    }
    10010 fn cuThreadExchangeStreamCaptureMode(mode: Out<u32>) { mode.set(capture::exchange_mode(mode.get()?)?) }
    10000 + ptsz fn cuStreamIsCapturing(stream: StreamHandle, is: Out<u32>) { brief(stream, is, Out::null()) }
    10010 + ptsz fn cuStreamGetCaptureInfo(stream: StreamHandle, is: Out<u32>, id: Out<u64>) { brief(stream, is, id) }
    11030 + ptsz fn cuStreamGetCaptureInfo_v2(
        stream: StreamHandle, is: Out<u32>, id: Out<u64>, graph: Out<Handle<Graph>>, after: Out<u64>, count: Out<usize>,
    ) {
        info(stream, is, id, graph, after, count)
    }
    12030 + ptsz fn cuStreamGetCaptureInfo_v3(
        stream: StreamHandle, is: Out<u32>, id: Out<u64>, graph: Out<Handle<Graph>>, after: Out<u64>, edges: Out<u64>,
        count: Out<usize>,
    ) {
        edges.offer(0);
        info(stream, is, id, graph, after, count)
    }

    11030 + ptsz fn cuStreamUpdateCaptureDependencies(
        stream: StreamHandle, nodes: In<Handle<NodeRef>>, count: usize, flags: u32,
    ) {
        update(stream, nodes, count, flags)
    }
    12030 + ptsz fn cuStreamUpdateCaptureDependencies_v2(
        stream: StreamHandle, nodes: In<Handle<NodeRef>>, _data: In<u64>, count: usize, flags: u32,
    ) {
        update(stream, nodes, count, flags)
    }
}
