//! The order between pieces of work in streams, for finding races between them (`MARGAY_CHECK=races`).
//!
//! Whether two pieces are ordered must not depend on when they happened to run. So it follows from the program's calls alone: each stream,
//! and the program's threads as one, has a vector clock that says how much of each stream is known to be done (Mattern, "Virtual Time and
//! Global States of Distributed Systems", 1989). Work that is submitted knows what its stream and the program know. Events carry clocks
//! between streams; calls that wait for work, or find that it is done, carry them to the program. Two pieces that access the same bytes
//! race if neither knows of the other.
//!
//! A graph counts as one piece; its nodes are compared with each other ([`graph`]). Once order has other sources (memory operations of
//! streams, events of other processes), no more races are reported.

mod graph;
pub mod host;
mod programmatic;

pub use graph::Nodes;

use crate::{checks::stacks, code::Outcome, context::Context, driver::driver, work::stream::StreamRef};
use margay::{quantity::count, render::short_name};
use margay_sanitizer::{Conflict, Finding, FindingKind, Footprint, Overlap};
use parking_lot::{Mutex, MutexGuard};
use std::{
    backtrace::Backtrace,
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// How much is known to be done: the number of the last piece, by stream.
#[derive(Clone, Default, Debug)]
pub struct Clock(BTreeMap<u64, u64>);

impl Clock {
    fn join(&mut self, other: &Clock) {
        for (stream, number) in &other.0 {
            let own = self.0.entry(*stream).or_default();
            *own = (*own).max(*number);
        }
    }

    fn knows(&self, stream: u64, number: u64) -> bool {
        self.0.get(&stream).is_some_and(|last| *last >= number)
    }
}

/// A stream that has been used.
struct StreamState {
    context: usize,
    /// It takes turns with the default stream.
    takes_turns: bool,
    clock: Clock,
}

/// A piece of work that was submitted.
pub struct Piece {
    context: Arc<Context>,
    stream: u64,
    number: u64,
    knows: Clock,
    /// What it is, and in which stream, for people.
    name: String,
    place: String,
    /// It frees the memory that it is recorded as writing.
    frees: bool,
    submitted: Backtrace,
    touched: Footprint,
    /// If it is a launch into a stream: whether it may begin before the one before it has ended.
    launch: Option<bool>,
    overlap: Overlap,
    /// Memory that the program must not access before it knows that the work is done.
    pages: Vec<host::Pages>,
}

#[derive(Default)]
struct Order {
    streams: HashMap<u64, StreamState>,
    host: Clock,
    /// Pieces that are done although the program does not know it, and neither may work that is submitted later.
    unknown: Vec<Piece>,
    /// The places of the races that were found: a loop over streams shows one bug many times.
    found: HashSet<[String; 2]>,
    /// Order has sources that are not tracked.
    lost: bool,
    /// Pieces that run.
    running: usize,
    /// Pages that are protected from the program now, and those that were.
    protected: Vec<host::Pages>,
    opened: Vec<host::Pages>,
}

/// The maximum number of pieces to remember; beyond, the oldest are forgotten.
const LIMIT: usize = 2048;

/// Number of threads that the program has launched.
static LAUNCHED: AtomicU64 = AtomicU64::new(0);
/// Number of threads after which the accesses of launches are recorded only if other work may run at the same time.
const MANY: u64 = 1 << 20;

thread_local! {
    /// The piece that this thread performs.
    static CURRENT: RefCell<Option<Piece>> = const { RefCell::new(None) };
}

fn locked() -> Option<MutexGuard<'static, Order>> {
    static ORDER: OnceLock<Option<Mutex<Order>>> = OnceLock::new();
    let wanted = || crate::checks::watch::wanted().filter(|what| what.races).map(|_| Mutex::default());
    let order = ORDER.get_or_init(wanted).as_ref()?;
    Some(order.lock())
}

fn order<T>(act: impl FnOnce(&mut Order) -> T) -> Option<T> {
    let mut order = locked()?;
    (!order.lost).then(|| act(&mut order))
}

/// Applies a function to the piece of work that this thread performs, if order is tracked.
fn current<T>(act: impl FnOnce(&mut Piece) -> T) -> Option<T> {
    CURRENT.try_with(|current| current.borrow_mut().as_mut().map(act)).ok().flatten() // it is destroyed as the process exits
}

impl Order {
    /// What comes before work that is submitted to a stream now, the program's knowledge aside.
    fn position(&mut self, stream: &StreamRef) -> Clock {
        let (id, context) = (stream.stream().id, stream.context().handle.number());
        let default = stream.context().default_stream.id;
        let takes_turns = stream.takes_turns();
        let new = || StreamState { context, takes_turns, clock: Clock::default() };
        let mut clock = self.streams.entry(id).or_insert_with(new).clock.clone();
        match stream {
            StreamRef::Default(_) => {
                let others = self.streams.values().filter(|lane| lane.takes_turns && lane.context == context);
                others.for_each(|lane| clock.join(&lane.clock));
            }
            StreamRef::Made(..) if takes_turns => {
                if let Some(lane) = self.streams.get(&default) {
                    clock.join(&lane.clock);
                }
            }
            StreamRef::Made(..) => {}
        }
        clock
    }

    /// The program knows more, so that some pieces are known to whatever comes.
    fn seen(&mut self, clock: &Clock) {
        self.host.join(clock);
        self.open();
        let host = &self.host;
        self.unknown.retain(|piece| !host.knows(piece.stream, piece.number));
        self.protect();
    }
}

/// Work that is submitted to a stream; `None` if order is not tracked.
pub fn submitted(stream: &StreamRef, name: impl FnOnce() -> String) -> Option<Piece> {
    order(|order| {
        let mut clock = order.position(stream);
        clock.join(&order.host);
        let id = stream.stream().id;
        let number = {
            let number = clock.0.entry(id).or_default();
            *number += 1;
            *number
        };
        if let Some(lane) = order.streams.get_mut(&id) {
            lane.clock = clock.clone();
        }
        let place = match stream {
            StreamRef::Default(_) => "the default stream".to_owned(),
            StreamRef::Made(..) => format!("stream {id}"),
        };
        Piece {
            context: stream.context().clone(),
            stream: id,
            number,
            knows: clock,
            name: name(),
            place,
            frees: false,
            submitted: Backtrace::force_capture(),
            touched: Footprint::default(),
            launch: None,
            overlap: Overlap::default(),
            pages: Vec::new(),
        }
    })
}

impl Piece {
    /// If the piece is a launch: whether it may begin before the one before it has ended.
    pub fn of_launch(self, programmatic: Option<bool>) -> Piece {
        Piece { launch: programmatic, ..self }
    }
}

/// Performs a piece of work, and compares its accesses with those of the pieces that are not ordered with it.
pub fn perform(piece: Option<Piece>, work: impl FnOnce() -> Outcome) -> Outcome {
    let Some(piece) = piece else { return work() };
    let Ok(before) = CURRENT.try_with(|current| current.replace(Some(piece))) else { return work() };
    locked().iter_mut().for_each(|order| order.begin_work());
    let outcome = work();
    if let Ok(Some(piece)) = CURRENT.try_with(|current| current.replace(before)) {
        done(piece);
    }
    locked().iter_mut().for_each(|order| order.end_work());
    outcome
}

fn done(mut piece: Piece) {
    piece.pages = host::pages_of(&piece);
    let found = order(|order| {
        if order.host.knows(piece.stream, piece.number) {
            return None;
        }
        let ordered = |other: &&Piece| {
            piece.knows.knows(other.stream, other.number) || other.knows.knows(piece.stream, piece.number)
        };
        let mut others = order.unknown.iter().filter(|other| !ordered(other));
        let met = others.find_map(|other| Some((other, piece.touched.conflict(&other.touched)?)));
        let finding = met.and_then(|(other, conflict)| {
            let submitted = [piece.by(), other.by()];
            let finding = race([&piece, other], &submitted, conflict, EVENT);
            order.found.insert(submitted).then_some(finding)
        });
        let finding = finding.or_else(|| order.overlapping(&piece));
        if order.unknown.len() >= LIMIT {
            order.unknown.remove(0);
        }
        order.unknown.push(piece);
        finding
    });
    if let Some(Some(finding)) = found {
        crate::checks::watch::report(&finding);
    }
}

/// Memory that the piece of work of this thread reads or writes.
pub fn touches(address: u64, bytes: u64, writes: bool) {
    crate::checks::usage::touched(address, bytes);
    current(|piece| piece.touched.add(address, bytes, writes));
}

/// Memory that the piece of work of this thread frees.
pub fn frees(address: u64, bytes: u64) {
    order(|order| order.release(address, bytes));
    touches(address, bytes, true);
    current(|piece| piece.frees = true);
}

/// The program takes back page-locked memory by a call that is not documented to wait: work that the program does not know to be done might
/// still access the memory on a device. Here, all work is done by now.
pub fn taken_back(context: &Arc<Context>, by: &str, address: u64, bytes: u64) {
    let found = order(|order| {
        order.release(address, bytes);
        if order.unknown.is_empty() {
            return None;
        }
        let mut touched = Footprint::default();
        touched.add(address, bytes, true);
        let by = stacks::call().0.unwrap_or_else(|| by.to_owned());
        let piece = Piece {
            context: context.clone(),
            stream: 0,
            number: 0,
            knows: order.host.clone(),
            name: format!("`{by}`"),
            place: "the program".into(),
            frees: true,
            submitted: Backtrace::force_capture(),
            touched,
            launch: None,
            overlap: Overlap::default(),
            pages: Vec::new(),
        };
        let mut unknown = order.unknown.iter().filter(|other| !order.host.knows(other.stream, other.number));
        let (other, conflict) = unknown.find_map(|other| Some((other, piece.touched.conflict(&other.touched)?)))?;
        let submitted = [piece.by(), other.by()];
        let finding = race([&piece, other], &submitted, conflict, EVENT);
        order.found.insert(submitted).then_some(finding)
    });
    if let Some(Some(finding)) = found {
        crate::checks::watch::report(&finding);
    }
}

/// Whether no other work will run beside the launch of `threads` threads that is this thread's current piece of work: the context has one
/// stream, and the program itself cannot access the context's memory. Programs that create streams do so before they launch much.
pub fn is_alone(context: &Context, threads: u64) -> bool {
    if LAUNCHED.fetch_add(threads, Relaxed) < MANY {
        return false;
    }
    let plain = current(|piece| piece.launch == Some(false)).unwrap_or(false);
    let made = || driver().is_ok_and(|driver| driver.streams.find(|_| true).is_some());
    let others = || made() || order(|order| order.streams.len() > 1).unwrap_or(false);
    plain && !others() && !host::has_host_memory(context)
}

/// What a launch of the piece of work of this thread has touched, and how it overlaps with adjacent launches.
pub fn launched(footprint: &Footprint, overlap: Overlap) {
    crate::checks::usage::launched(footprint);
    current(|piece| {
        piece.touched.join(footprint);
        if piece.launch.is_some() {
            piece.overlap = overlap;
        }
    });
}

/// Memory was just allocated: earlier accesses to its addresses concern other memory.
pub fn allocated(address: u64, bytes: u64) {
    order(|order| {
        order.unknown.iter_mut().for_each(|piece| piece.touched.forget(address, bytes));
        order.release(address, bytes);
    });
}

/// Memory that was allocated in the order of a stream: other streams may use it only afterwards, as if the allocation wrote it.
pub fn allocated_in(stream: &StreamRef, address: u64, bytes: u64) -> Outcome {
    let piece = submitted(stream, || "an allocation".into());
    perform(piece, || {
        current(|piece| piece.touched.add(address, bytes, true));
        Ok(())
    })
}

/// The clock of an event that is recorded in a stream now.
pub fn recorded(stream: &StreamRef) -> Clock {
    order(|order| order.position(stream)).unwrap_or_default()
}

/// The clock of an event that the work of this thread records.
pub fn recorded_here() -> Clock {
    current(|piece| piece.knows.clone()).unwrap_or_default()
}

/// The work of this thread has waited for an event.
pub fn thread_waited(clock: &Clock) {
    current(|piece| piece.knows.join(clock));
}

/// A stream waits for an event.
pub fn waits(stream: &StreamRef, clock: &Clock) {
    order(|order| {
        let mut all = order.position(stream);
        all.join(clock);
        if let Some(lane) = order.streams.get_mut(&stream.stream().id) {
            lane.clock = all;
        }
    });
}

/// The program has seen that an event has happened.
pub fn seen(clock: &Clock) {
    order(|order| order.seen(clock));
}

/// The program has seen that everything in a stream is done.
pub fn seen_stream(stream: &StreamRef) {
    seen(&recorded(stream));
}

/// The clock of an event that is recorded behind all work of a context.
pub fn context_clock(context: &Context) -> Clock {
    let handle = context.handle.number();
    let join = |order: &mut Order| {
        let mut all = Clock::default();
        order.streams.values().filter(|lane| lane.context == handle).for_each(|lane| all.join(&lane.clock));
        all
    };
    order(join).unwrap_or_default()
}

/// The program has seen that everything in a context is done.
pub fn seen_context(context: &Context) {
    seen(&context_clock(context));
}

/// The work of this thread calls a function of the program. The call orders what precedes the work before the function; meanwhile the program
/// runs, not the work.
pub fn called_back<T>(function: impl FnOnce() -> T) -> T {
    seen(&recorded_here());
    if current(|_| ()).is_none() {
        return function();
    }
    locked().iter_mut().for_each(|order| order.end_work());
    let done = function();
    locked().iter_mut().for_each(|order| order.begin_work());
    done
}

/// Order has sources that are not tracked.
pub fn lose() {
    order(|order| {
        order.lost = true;
        order.open();
        order.unknown = Vec::new();
    });
}

impl Piece {
    /// Who has submitted it, for people; its name if the program's symbols were stripped.
    fn by(&self) -> String {
        let stack = stacks::program(&self.submitted.to_string());
        let frames: Vec<String> = stack.iter().take(3).map(|frame| stacks::named(frame)).collect();
        if frames.is_empty() { self.name.clone() } else { frames.join(", called by ") }
    }

    /// A description of the memory at an address, for people.
    fn allocation(&self, address: u64) -> Option<String> {
        let found = self.context.device_memory().find(address)?;
        let (base, len) = (found.block.base(), found.block.len());
        let what = match &*found.name {
            "" => format!("the {len} bytes allocated at {base:#x}"),
            name => format!("`{}`, which has {len} bytes at {base:#x}", short_name(name)),
        };
        Some(format!("from byte {} of {what}", address - base))
    }
}

/// Help for ordering two pieces.
const EVENT: &str = "record an event behind the one that must come first, and have the other's stream wait for it (`cudaStreamWaitEvent`), or \
                     wait for it in the program (`cudaStreamSynchronize`)";

fn race([piece, other]: [&Piece; 2], submitted: &[String; 2], conflict: Conflict, help: &str) -> Finding {
    let Conflict { address, bytes, writes } = conflict;
    let verb = |party: &Piece, writes: bool| match writes {
        true if party.frees => "frees",
        true => "writes",
        false => "reads",
    };
    let amount = count(bytes, "byte", "bytes");
    let mut notes = Vec::from_iter(piece.allocation(address));
    for ((party, by), writes) in [piece, other].into_iter().zip(submitted).zip(writes) {
        let by = if *by == party.name { String::new() } else { format!(", submitted by {by}") };
        notes.push(format!("{} in {} {}{by}", party.name, party.place, verb(party, writes)));
    }
    Finding {
        kind: FindingKind::Race,
        title: format!(
            "race: {} in {} {} {amount} at {address:#x} that {} in {} {}, and nothing orders the two",
            piece.name,
            piece.place,
            verb(piece, writes[0]),
            other.name,
            other.place,
            verb(other, writes[1]),
        ),
        parties: Vec::new(),
        notes,
        help: Some(help.to_owned()),
        times: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn clocks_know_what_they_have_joined() {
        let clock = |of: &[(u64, u64)]| Clock(of.iter().copied().collect());
        let mut a = clock(&[(1, 3), (2, 1)]);
        assert!(a.knows(1, 3) && a.knows(1, 2) && !a.knows(1, 4) && !a.knows(3, 1));
        a.join(&clock(&[(1, 2), (3, 5)]));
        assert!(a.knows(1, 3) && !a.knows(1, 4) && a.knows(3, 5));
    }
}
