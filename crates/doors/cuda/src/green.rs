//! Green contexts (CUDA Driver API, "Green Contexts"): streams of a device's primary context that are to run on a part of the device. The parts
//! have the sizes that a GPU would give them, but kernels run on all threads of the host, whatever part their stream has.
//!
//! A green context and the `CUcontext` into which `cuCtxFromGreenCtx` converts it have the same handle, which is used for the primary context.

use crate::{
    api::api,
    checks::order,
    code::{Code, Outcome},
    context::{Context, unique},
    device::{capability, check, multiprocessors, profile},
    driver::{current_handle, driver},
    handle::Handle,
    raw::{In, Out},
    work::{
        event::Event,
        stream::{Stream, StreamHandle, create_in},
        worker::not_at_work,
    },
};
use bytemuck::{AnyBitPattern, Zeroable};
use margay_runtime::Mark;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

/// A green context.
pub struct Green {
    device: i32,
    /// The primary context of the device, which it retains.
    pub primary: Handle<Context>,
    id: u64,
    part: Part,
    /// What null denotes while it is current.
    pub default_stream: Arc<Stream>,
}

/// `CUdevSmResource`: multiprocessors.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
struct Part {
    count: u32,
    /// The smallest part that it can be split into.
    least: u32,
    /// Multiprocessors that run the CTAs of a cluster together.
    together: u32,
    flags: u32,
    domain: u32,
}

/// `CUdevResource`. Its padding holds what later calls need to know.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Resource {
    kind: u32,
    device: i32,
    /// The call that split it off; 0 for a whole.
    split: u32,
    padding: [u32; 21],
    part: Part,
    rest: [u32; 5],
    next: u64,
}

/// `CUdevResourceType`
mod kind {
    pub const SM: u32 = 1;
    pub const WORKQUEUE_CONFIG: u32 = 1000;
    pub const WORKQUEUE: u32 = 10000;
}

/// `CU_DEV_SM_RESOURCE_GROUP_PARAMS`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Group {
    count: u32,
    together: u32,
    preferred: u32,
    flags: u32,
    reserved: [u32; 12],
}

/// `CU_DEV_SM_RESOURCE_GROUP_BACKFILL`
const BACKFILL: u32 = 1;

/// What `cuDevResourceGenerateDesc` makes.
pub struct Descriptor {
    device: i32,
    part: Option<Part>,
}

/// The least part of a device, and the multiprocessors that run together: those of GPUs if the profile says how many there are ("Green
/// Contexts", `smCoscheduledAlignment`). margay's own device has one a thread of the host, and any of them may be a part.
fn granularity() -> (u32, u32) {
    match (profile().multiprocessors.is_some(), capability().0) {
        (false, _) => (1, 1),
        (true, 9..) => (8, 8),
        (true, 8) => (4, 2),
        (true, 7) => (2, 2),
        (true, _) => (1, 1),
    }
}

impl Part {
    fn whole() -> Part {
        let (least, together) = granularity();
        Part { count: multiprocessors() as u32, least, together, flags: 0, domain: 0 }
    }
}

impl Resource {
    fn part(device: i32, split: u32, part: Part) -> Resource {
        Resource { kind: kind::SM, device, split, part, ..Resource::zeroed() }
    }

    /// A resource of a device, or of a context with this part of it.
    fn of(device: i32, kind: u32, part: Part) -> Result<Resource, Code> {
        const CONNECTIONS: u32 = 8; // what `CUDA_DEVICE_MAX_CONNECTIONS` is without being set
        match kind {
            kind::SM => Ok(Resource::part(device, 0, part)),
            // Device, number of streams at a time, and the scope: one for all contexts.
            kind::WORKQUEUE_CONFIG => {
                let part = Part { count: device as u32, least: CONNECTIONS, ..Part::zeroed() };
                Ok(Resource { kind, device, part, ..Resource::zeroed() })
            }
            kind::WORKQUEUE => Ok(Resource { kind, device, ..Resource::zeroed() }),
            _ => Err(Code::INVALID_RESOURCE_TYPE),
        }
    }

    /// The multiprocessors of an input.
    fn input(self) -> Result<Part, Code> {
        match self.kind {
            kind::SM => Ok(self.part),
            _ => Err(Code::INVALID_RESOURCE_TYPE),
        }
    }

    /// What a split left; invalid if that is nothing.
    fn rest(self, split: u32, count: u32) -> Resource {
        match count {
            0 => Resource::zeroed(),
            _ => Resource::part(self.device, split, Part { count, ..self.part }),
        }
    }
}

/// A number for a split.
fn next_split() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Relaxed)
}

/// Says how a larger device is had: margay's own is as large as the host.
fn too_few(wanted: u32, part: Part) -> Code {
    if profile().multiprocessors.is_none() {
        crate::api::report_error(&format!(
            "margay: {wanted} of {} multiprocessors were requested; MARGAY_DEVICE describes a larger device (for example MARGAY_DEVICE=h100)",
            part.count
        ));
    }
    Code::INVALID_VALUE
}

fn split_by_count(
    result: Out<Resource>,
    groups: Out<u32>,
    input: Resource,
    rest: Out<Resource>,
    flags: u32,
    least: u32,
) -> Outcome {
    const IGNORE_COSCHEDULING: u32 = 1;
    const LARGEST_CLUSTER: u32 = 2;
    let part = input.input()?;
    if flags & !(IGNORE_COSCHEDULING | LARGEST_CLUSTER) != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if least > part.count {
        return Err(too_few(least, part));
    }
    let alone = flags & IGNORE_COSCHEDULING != 0;
    let (smallest, together) =
        if alone { (part.least.min(2), part.together.min(2)) } else { (part.least, part.together) };
    let each = least.max(smallest).max(1).next_multiple_of(together.max(1));
    let possible = part.count / each;
    let count = if result.is_null() { possible } else { possible.min(groups.get()?) };
    let split = next_split();
    let group = Part { count: each, least: smallest, together, ..part };
    if !result.is_null() {
        (0..count).try_for_each(|i| result.set_nth(i as usize, Resource::part(input.device, split, group)))?;
    }
    rest.offer(input.rest(split, part.count - count * each));
    groups.set(count)
}

/// The size of a group, taken from the `left` remaining multiprocessors; 0 if the size was to be determined and none fits.
fn group_size(group: &Group, part: Part, left: u32) -> Result<u32, Code> {
    let (unit, most) =
        if capability().0 >= 9 { (2.min(part.least), 32) } else { (2.min(part.least), part.together.max(2)) };
    let fills = group.flags & BACKFILL != 0;
    if group.together > most || !group.together.is_multiple_of(unit.max(1)) {
        return Err(Code::INVALID_VALUE);
    }
    match group.count {
        0 if fills && left >= group.together => Ok(left),
        0 => Ok(left / group.together * group.together),
        n if n > part.count => Err(too_few(n, part)),
        n if !n.is_multiple_of(unit.max(1)) || !(fills || n.is_multiple_of(group.together)) => Err(Code::INVALID_VALUE),
        n if n > left => Err(Code::INVALID_RESOURCE_CONFIGURATION),
        n => Ok(n),
    }
}

fn split(
    result: Out<Resource>,
    n: u32,
    input: Resource,
    rest: Out<Resource>,
    flags: u32,
    groups: Out<Group>,
) -> Outcome {
    let part = input.input()?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let (mut left, split) = (part.count, next_split());
    for i in 0..n as usize {
        let mut group = groups.nth(i)?;
        if group.together == 0 {
            group.together = part.together.max(1);
        }
        if group.preferred == 0 {
            group.preferred = group.together;
        }
        group.count = group_size(&group, part, left)?;
        if !result.is_null() {
            if group.count < group.together {
                return Err(Code::INVALID_RESOURCE_CONFIGURATION);
            }
            let part = Part { count: group.count, together: group.together, flags: group.flags, ..part };
            result.set_nth(i, Resource::part(input.device, split, part))?;
        }
        left -= group.count;
        groups.set_nth(i, group)?;
    }
    rest.offer(input.rest(split, left));
    Ok(())
}

fn describe(resources: In<Resource>, count: usize) -> Result<Descriptor, Code> {
    let list = resources.list(count)?;
    let Some(first) = list.first() else { return Err(Code::INVALID_VALUE) };
    let mut parts: Vec<Resource> = Vec::new();
    for resource in &list {
        match resource.kind {
            kind::SM => parts.push(*resource),
            kind::WORKQUEUE_CONFIG | kind::WORKQUEUE => {}
            _ => return Err(Code::INVALID_RESOURCE_TYPE),
        }
    }
    let mixed = |r: &Resource| {
        (r.device, r.split, r.part.together) != (parts[0].device, parts[0].split, parts[0].part.together)
    };
    if list.iter().any(|r| r.device != first.device) || parts.iter().any(mixed) {
        return Err(Code::INVALID_RESOURCE_CONFIGURATION);
    }
    let count = parts.iter().map(|r| r.part.count).sum();
    Ok(Descriptor { device: first.device, part: parts.first().map(|r| Part { count, ..r.part }) })
}

fn get(green: Handle<Green>) -> Result<Arc<Green>, Code> {
    driver()?.greens.get(green).map_err(|_| Code::INVALID_CONTEXT)
}

/// The green context that is current, if one is.
pub fn current() -> Option<(Handle<Green>, Arc<Green>)> {
    let handle = Handle::of(current_handle().number());
    Some((handle, driver().ok()?.greens.get(handle).ok()?))
}

fn create(descriptor: Handle<Descriptor>, device: i32, flags: u32) -> Result<Handle<Green>, Code> {
    check(device)?;
    let driver = driver()?;
    let descriptor = driver.descriptors.get(descriptor).map_err(|_| Code::INVALID_VALUE)?;
    if flags > 1 || descriptor.device != device {
        return Err(Code::INVALID_VALUE);
    }
    let primary = driver.retain_primary(device)?;
    let context = driver.contexts.get(primary)?;
    let part = descriptor.part.unwrap_or_else(Part::whole);
    let (handle, green) = driver.greens.add_with(|handle| {
        let default_stream = Arc::new(Stream::new(primary, context.queue(true), 0, 0).of_green(Some(handle)));
        Green { device, primary, id: unique(), part, default_stream }
    });
    driver.streams.add_arc(green.default_stream.clone()); // among the others, so that captures find it
    Ok(handle)
}

fn destroy(handle: Handle<Green>) -> Outcome {
    let driver = driver()?;
    let green = driver.greens.remove(handle).map_err(|_| Code::INVALID_CONTEXT)?;
    streams(handle, |stream| {
        stream.queue.settle();
        if let Some(capture) = &*stream.capture.lock() {
            capture.sequence.invalidate();
        }
    })?;
    driver.streams.remove_if(|stream| std::ptr::eq(stream, &*green.default_stream));
    driver.release_primary(green.device)
}

/// Calls a function for every stream of a green context.
fn streams(green: Handle<Green>, mut of: impl FnMut(&Arc<Stream>)) -> Outcome {
    let mut all = Vec::new();
    driver()?.streams.each_shared(|stream| all.extend((stream.green == Some(green)).then(|| stream.clone())));
    all.iter().for_each(&mut of);
    Ok(())
}

/// Refuses what depends on all streams while one of them is captured.
fn check_capture(green: Handle<Green>) -> Outcome {
    let mut outcome = Ok(());
    streams(green, |stream| {
        if let Some(capture) = &*stream.capture.lock() {
            capture.sequence.invalidate();
            outcome = Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
    })?;
    outcome
}

/// Waits for the streams of a green context; `None` if it is none.
pub fn synchronize(handle: Handle<Green>, context: &Context) -> Option<Outcome> {
    get(handle).ok()?;
    let settle = || {
        check_capture(handle)?;
        not_at_work()?;
        streams(handle, |stream| stream.queue.settle())?;
        context.waited()
    };
    Some(settle())
}

fn record(handle: Handle<Green>, event: Handle<Event>) -> Outcome {
    let (green, event) = (get(handle)?, driver()?.events.get(event)?);
    if event.context != green.primary {
        return Err(Code::INVALID_HANDLE);
    }
    check_capture(handle)?;
    let mut marks: Vec<Mark> = Vec::new();
    streams(handle, |stream| marks.push(stream.queue.mark()))?;
    let context = driver()?.contexts.get(green.primary)?;
    let clock = order::context_clock(&context);
    event.record(green.default_stream.queue.mark_after(marks), clock);
    Ok(())
}

fn wait(handle: Handle<Green>, event: Handle<Event>) -> Outcome {
    get(handle)?;
    let event = driver()?.events.get(event)?;
    check_capture(handle)?;
    if let Some(at) = event.captured() {
        return Err(at.refuse());
    }
    let Some(mark) = event.mark().filter(|mark| !mark.is_reached()) else { return Ok(()) };
    streams(handle, |stream| stream.queue.push(vec![mark.clone()], || ()))
}

fn stream(green: Handle<Green>, flags: u32, priority: i32) -> Result<Handle<Stream>, Code> {
    const NON_BLOCKING: u32 = 1;
    let of = get(green)?;
    if flags != NON_BLOCKING {
        return Err(Code::INVALID_VALUE);
    }
    let context = driver()?.contexts.get(of.primary)?;
    create_in(&context, Some(green), flags, priority)
}

/// The resources of a context: the part of a green one, or the whole device.
fn of_context(context: Handle<Context>, kind: u32) -> Result<Resource, Code> {
    let context = if context.is_null() { current_handle() } else { context };
    match driver()?.greens.get(Handle::of(context.number())) {
        Ok(green) => Resource::of(green.device, kind, green.part),
        Err(_) => {
            let device = driver()?.context(context).map_err(|_| Code::INVALID_CONTEXT)?.device;
            Resource::of(device, kind, Part::whole())
        }
    }
}

api! {
    12040 fn cuDeviceGetDevResource(device: i32, resource: Out<Resource>, kind: u32) {
        check(device)?;
        match kind {
            kind::WORKQUEUE => Err(Code::INVALID_RESOURCE_TYPE), // those of contexts
            _ => resource.set(Resource::of(device, kind, Part::whole())?),
        }
    }
    12040 fn cuCtxGetDevResource(context: Handle<Context>, resource: Out<Resource>, kind: u32) {
        resource.set(of_context(context, kind)?)
    }
    12040 fn cuGreenCtxGetDevResource(green: Handle<Green>, resource: Out<Resource>, kind: u32) {
        let green = get(green)?;
        resource.set(Resource::of(green.device, kind, green.part)?)
    }
    12040 fn cuDevSmResourceSplitByCount(
        result: Out<Resource>, groups: Out<u32>, input: In<Resource>, rest: Out<Resource>, flags: u32, least: u32,
    ) {
        driver()?;
        split_by_count(result, groups, input.get()?, rest, flags, least)
    }
    13010 fn cuDevSmResourceSplit(
        result: Out<Resource>, count: u32, input: In<Resource>, rest: Out<Resource>, flags: u32, groups: Out<Group>,
    ) {
        driver()?;
        split(result, count, input.get()?, rest, flags, groups)
    }
    12040 fn cuDevResourceGenerateDesc(descriptor: Out<Handle<Descriptor>>, resources: In<Resource>, count: u32) {
        descriptor.set(driver()?.descriptors.add(describe(resources, count as usize)?))
    }
    12040 fn cuGreenCtxCreate(green: Out<Handle<Green>>, descriptor: Handle<Descriptor>, device: i32, flags: u32) {
        green.set(create(descriptor, device, flags)?)
    }
    12040 fn cuGreenCtxDestroy(green: Handle<Green>) { destroy(green) }
    12040 fn cuCtxFromGreenCtx(context: Out<Handle<Context>>, green: Handle<Green>) {
        get(green)?;
        context.set(Handle::of(green.number()))
    }
    12040 fn cuGreenCtxRecordEvent(green: Handle<Green>, event: Handle<Event>) { record(green, event) }
    12040 fn cuGreenCtxWaitEvent(green: Handle<Green>, event: Handle<Event>) { wait(green, event) }
    12050 fn cuGreenCtxStreamCreate(stream_out: Out<Handle<Stream>>, green: Handle<Green>, flags: u32, priority: i32) {
        stream_out.set(stream(green, flags, priority)?)
    }
    12090 fn cuGreenCtxGetId(green: Handle<Green>, id: Out<u64>) {
        let green = match green.is_null() {
            true => current().ok_or(Code::INVALID_CONTEXT)?.1,
            false => get(green)?,
        };
        id.set(green.id)
    }
    12040 + ptsz fn cuStreamGetGreenCtx(stream: StreamHandle, green: Out<Handle<Green>>) {
        green.set(stream.get()?.stream().green.unwrap_or(Handle::NULL))
    }
    13010 + ptsz fn cuStreamGetDevResource(stream: StreamHandle, resource: Out<Resource>, kind: u32) {
        if kind != kind::SM {
            return Err(Code::INVALID_RESOURCE_TYPE);
        }
        let stream = stream.get()?;
        let part = match stream.stream().green {
            Some(green) => get(green)?.part,
            None => Part::whole(),
        };
        resource.set(Resource::of(stream.context().device, kind, part)?)
    }
}
