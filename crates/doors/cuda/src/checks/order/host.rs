//! Accesses of the program itself to memory that work in streams accesses too: managed and page-locked memory.
//!
//! The program's code is not instrumented. Instead, when a piece of work has ended and the program has not synchronized with its end, the pages
//! of such memory that the work has accessed entirely are protected. The program's next access to them is a page fault, which is reported, and
//! the program continues. Pages are accessible while any work runs; calls that submit work wait for it for a short time, so that this is
//! rare. Correct programs never access protected pages, not even in system calls, because only whole pages are protected. Work that
//! synchronizes with the program by accesses or fences of system scope, rather than by its end, is left out.

use super::{Order, Piece, locked};
use crate::{
    checks::{faults, stacks},
    code::Outcome,
    context::{Context, Owner},
    memory::pages::{self, Access, PAGE},
    work::{
        stream::StreamRef,
        worker::{is_at_work, is_called_back},
    },
};
use margay_sanitizer::{Finding, FindingKind};
use std::{
    backtrace::Backtrace,
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Pages that a piece of work has accessed as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pages {
    start: usize,
    len: usize,
    /// All of their bytes are written.
    written: bool,
}

impl Pages {
    fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.len
    }

    fn meets(&self, other: &Pages) -> bool {
        self.start < other.start + other.len && other.start < self.start + self.len
    }

    fn allow(&self, access: Access) {
        pages::allow(self.start, self.len, access);
    }
}

thread_local! {
    /// How many functions of the API this thread is in.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// Runs a function of the API, whose accesses are not the program's own.
pub fn inside<T>(function: impl FnOnce() -> T) -> T {
    INSIDE.set(INSIDE.get() + 1);
    let result = function();
    INSIDE.set(INSIDE.get() - 1);
    result
}

/// How long a call waits for the work that it submits. The limit is for kernels that wait for the program's next step.
const PATIENCE: Duration = Duration::from_secs(4);
/// After this many waits that timed out, calls no longer wait.
const MAX_TIMEOUTS: u32 = 2;
static TIMEOUTS: AtomicU32 = AtomicU32::new(0);

/// Whether there is memory in a context that the program itself can access.
pub fn has_host_memory(context: &Context) -> bool {
    context.allocations.lock().values().any(|allocation| allocation.owner != Owner::Device)
}

/// Submits work for a call that need not wait for it. If the program might access memory of the work, the call waits for a time.
pub fn submit(stream: &StreamRef, work: impl FnOnce(&Arc<Context>) -> Outcome + Send + 'static) -> Outcome {
    let waits = TIMEOUTS.load(Relaxed) < MAX_TIMEOUTS && faults::CAN_CATCH && locked().is_some_and(|order| !order.lost);
    if !waits || !has_host_memory(stream.context()) {
        stream.work_later(work);
        return Ok(());
    }
    let began = Instant::now();
    let outcome = stream.work_for(PATIENCE, work);
    if began.elapsed() >= PATIENCE {
        TIMEOUTS.fetch_add(1, Relaxed);
    }
    outcome
}

/// The pages that a piece of work has accessed, of memory that the program may access.
pub fn pages_of(piece: &Piece) -> Vec<Pages> {
    let mut all: Vec<Pages> = Vec::new();
    if !faults::CAN_CATCH || piece.touched.is_system() {
        return all;
    }
    let memory = piece.context.allocations.lock();
    for (base, allocated) in memory.iter().filter(|(_, allocated)| allocated.owner != Owner::Device) {
        // Allocations have their last pages to themselves, the program's own memory has not.
        let own = !matches!(allocated.owner, Owner::Registered(_));
        let (first, end) = (base.next_multiple_of(PAGE as u64), base + allocated.len as u64);
        for start in (first..end).step_by(PAGE) {
            let bytes = (end - start).min(PAGE as u64);
            let whole = if own || bytes == PAGE as u64 { piece.touched.whole(start, bytes) } else { None };
            let Some(written) = whole else { continue };
            match all.last_mut() {
                Some(last) if last.start + last.len == start as usize && last.written == written => last.len += PAGE,
                _ => all.push(Pages { start: start as usize, len: PAGE, written }),
            }
        }
    }
    all
}

impl Order {
    /// Work begins, which may access everything.
    pub fn begin_work(&mut self) {
        self.open();
        self.running += 1;
    }

    /// Work has ended.
    pub fn end_work(&mut self) {
        self.running = self.running.saturating_sub(1);
        self.protect();
    }

    /// Makes all pages accessible.
    pub fn open(&mut self) {
        for pages in self.protected.drain(..) {
            pages.allow(Access::All);
            if !self.opened.contains(&pages) {
                self.opened.push(pages);
            }
        }
    }

    /// Protects the memory that the program must not access now.
    pub fn protect(&mut self) {
        if self.running > 0 || self.lost {
            return;
        }
        let all = |written| {
            let pages = self.unknown.iter().flat_map(|piece| piece.pages.iter());
            pages.filter(move |pages| pages.written == written).copied()
        };
        let protected: Vec<Pages> = all(false).chain(all(true)).collect();
        if !protected.is_empty() && !faults::catch(met) {
            return;
        }
        protected.iter().for_each(|p| p.allow(if p.written { Access::None } else { Access::Read }));
        self.protected = protected;
    }

    /// A range is freed or allocated anew.
    pub fn release(&mut self, address: u64, bytes: u64) {
        let range = Pages { start: address as usize, len: bytes as usize, written: true };
        self.open();
        self.opened.retain(|p| !p.meets(&range));
        self.unknown.iter_mut().for_each(|piece| piece.pages.retain(|p| !p.meets(&range)));
        self.protect();
    }
}

/// Handles an access by this thread to a protected page; returns whether these checks protect it. `writes`: whether the access is a write, if
/// known.
fn met(address: usize, writes: Option<bool>) -> bool {
    let Some(mut order) = locked() else { return false };
    if !order.protected.iter().any(|pages| pages.contains(address)) {
        // Another thread may have opened it meanwhile.
        return order.opened.iter().any(|pages| pages.contains(address));
    }
    order.open();
    // A function of the API continues, and the next work protects the pages again.
    if (INSIDE.get() > 0 || is_at_work()) && !is_called_back() {
        return true;
    }
    let hit = |pages: &&Pages| pages.contains(address) && (pages.written || writes != Some(false));
    let mut latest = order.unknown.iter().rev();
    let met = latest.find_map(|piece| Some((piece, *piece.pages.iter().find(hit)?)));
    let Some((piece, pages)) = met else { return true };
    let by = stacks::program(&Backtrace::force_capture().to_string());
    let parties = [by.iter().take(3).cloned().collect::<Vec<_>>().join(", "), piece.by()];
    let finding = report(piece, &parties[1], address as u64, (writes, pages.written), &by);
    // One finding for the pages is enough.
    for piece in &mut order.unknown {
        piece.pages.retain(|p| !p.meets(&pages));
    }
    order.protect();
    let is_new = order.found.insert(parties);
    drop(order);
    if is_new {
        crate::checks::watch::report(&finding);
    }
    true
}

fn report(
    piece: &Piece,
    submitted: &str,
    address: u64,
    (writes, written): (Option<bool>, bool),
    by: &[String],
) -> Finding {
    let verb = |writes: Option<bool>| match writes {
        Some(true) => "writes",
        Some(false) => "reads",
        None => "accesses",
    };
    let other = verb(Some(written));
    let mut notes = Vec::from_iter(piece.allocation(address));
    let submitted = if submitted == piece.name { String::new() } else { format!(", submitted by {submitted}") };
    notes.push(format!("{} in {} {other}{submitted}", piece.name, piece.place));
    notes.extend(stacks::format_stack(&format!("the program {} in", verb(writes)), by));
    Finding {
        kind: FindingKind::Race,
        title: format!(
            "race: the program {} memory at {address:#x} that {} in {} {other}, and has not waited for it",
            verb(writes),
            piece.name,
            piece.place,
        ),
        parties: Vec::new(),
        notes,
        help: Some("wait for the work before the program accesses the memory (`cudaStreamSynchronize`)".into()),
        times: 1,
    }
}
