//! What inkwell has no binding for: what LLVM says while it compiles. And how a process ends while it does.
//!
//! One of the five files of this crate that may use `unsafe`.
#![allow(unsafe_code)]

use crate::code::load;
use inkwell::{
    context::Context,
    llvm_sys::{core::*, prelude::LLVMDiagnosticInfoRef},
};
use std::{
    cell::RefCell,
    ffi::{CStr, c_int, c_void},
    ptr,
    sync::{
        Mutex, Once, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// Hears what LLVM has to say about the code that it compiles in a context.
pub struct Listener<'c> {
    context: &'c Context,
    notes: Box<RefCell<Vec<String>>>,
}

extern "C" fn hear(info: LLVMDiagnosticInfoRef, notes: *mut c_void) {
    // SAFETY: `notes` is what `Listener::new` gave, and its drop takes the handler away; LLVM calls on the thread that compiles.
    let notes = unsafe { &*notes.cast::<RefCell<Vec<String>>>() };
    // SAFETY: `info` is alive for the call; the message is copied before it is disposed of.
    let note = unsafe {
        let text = LLVMGetDiagInfoDescription(info);
        let note = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        note
    };
    notes.borrow_mut().push(note);
}

impl Listener<'_> {
    /// Begins to listen.
    pub fn new(context: &Context) -> Listener<'_> {
        let notes: Box<RefCell<Vec<String>>> = Box::default();
        let cookie = ptr::from_ref(&*notes).cast_mut().cast();
        // SAFETY: the context is alive, and `notes` stays where it is until the handler is gone.
        unsafe { LLVMContextSetDiagnosticHandler(context.raw(), Some(hear), cookie) };
        Listener { context, notes }
    }

    /// What was said so far.
    pub fn notes(&self) -> Vec<String> {
        self.notes.take()
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        // SAFETY: the context is alive.
        unsafe { LLVMContextSetDiagnosticHandler(self.context.raw(), None, ptr::null_mut()) };
    }
}

// How a process ends.
//
// When a process ends, destructors of LLVM's static data run, and a thread that is inside of LLVM then may fall over them. So
// before they run, threads are given a moment, in which one finishes that is nearly done; the others are stopped where they are, by
// a signal whose handler never returns. That is safe only while they hold no lock of the C library, which the end of the
// process may need: so the handler looks where it has interrupted the thread, and returns, to be tried again, unless that is in LLVM's
// own code. While the library is being loaded, that is never so.
//
// Functions that are registered for the end of a process run in the opposite order of their registration, so what LLVM registers while
// it compiles runs before anything of ours. But first of all run the destructors of the thread that ends the process, which as a
// rule is its first one, and as a rule that one has asked for a kernel.

/// A thread that is inside of LLVM.
struct Guest {
    thread: libc::pthread_t,
    since: Instant,
}

static GUESTS: Mutex<Vec<Guest>> = Mutex::new(Vec::new());
/// The process ends.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Answers of interrupted threads: how often one was somewhere else, and how many have stopped.
static ELSEWHERE: AtomicU32 = AtomicU32::new(0);
static STOPPED: AtomicU32 = AtomicU32::new(0);

/// Nobody waits longer than that for a thread, nor longer than an eighth of the time that it was inside for.
const MOMENT: Duration = Duration::from_millis(150);
/// By default this signal does nothing, and hardly any program uses it.
const SIGNAL: c_int = libc::SIGURG;
/// Stays after which the end of the process is registered again: LLVM makes some of its static data when it first needs them, and
/// what is registered last runs first.
const UNSETTLED: u32 = 16;

/// A stay inside of LLVM.
pub struct Inside(());

impl Inside {
    /// Enters; `None` when the process ends.
    pub fn enter() -> Option<Inside> {
        if LOST.load(SeqCst) {
            return None;
        }
        // SAFETY: always succeeds, for the calling thread.
        let thread = unsafe { libc::pthread_self() };
        guests().push(Guest { thread, since: Instant::now() });
        let inside = Inside(());
        (!ENDING.load(SeqCst)).then_some(inside)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        static STAYS: AtomicU32 = AtomicU32::new(0);
        if STAYS.load(SeqCst) < UNSETTLED && !ENDING.load(SeqCst) {
            STAYS.fetch_add(1, SeqCst);
            register();
        }
        // SAFETY: as above.
        let own = unsafe { libc::pthread_self() };
        let mut guests = guests();
        if let Some(at) = guests.iter().position(|g| g.thread == own) {
            guests.swap_remove(at);
        }
    }
}

fn guests() -> std::sync::MutexGuard<'static, Vec<Guest>> {
    GUESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the process's first thread leaves when it ends.
struct Leaving;

impl Drop for Leaving {
    fn drop(&mut self) {
        // SAFETY: both always succeed.
        if unsafe { libc::gettid() == libc::getpid() } {
            at_end();
        }
    }
}

/// If this thread ends the process, threads that are inside of LLVM are stopped first.
pub fn watch_thread() {
    thread_local!(static LEAVING: Leaving = const { Leaving });
    // A thread that is ending already needs no watch.
    let _ = LEAVING.try_with(|_| ());
}

/// Asks to be called at the end of the process, before everything that was registered earlier.
pub fn register() {
    static FORK: Once = Once::new();
    // SAFETY: the functions are of this process and stay there; they use nothing that may not be used at those times.
    unsafe {
        FORK.call_once(|| _ = libc::pthread_atfork(None, None, Some(forked)));
        libc::atexit(at_end);
    }
}

/// The child of a fork has none of its parent's threads. Whether one of them held the lock, nobody can tell any more.
extern "C" fn forked() {
    match GUESTS.try_lock() {
        Ok(mut guests) => guests.clear(),
        Err(_) => LOST.store(true, SeqCst),
    }
}

/// The lock of [`GUESTS`] will never be free: this process does without LLVM.
static LOST: AtomicBool = AtomicBool::new(false);

extern "C" fn at_end() {
    if ENDING.swap(true, SeqCst) || LOST.load(SeqCst) {
        return;
    }
    // SAFETY: always succeeds.
    let own = unsafe { libc::pthread_self() };
    let began = Instant::now();
    let nap = || std::thread::sleep(Duration::from_micros(500));
    loop {
        let stays =
            |g: &Guest| g.thread != own && began.elapsed() < (began.saturating_duration_since(g.since) / 8).min(MOMENT);
        if !guests().iter().any(stays) {
            break;
        }
        nap();
    }
    // SAFETY: `action` is all zero but for what is set; the handler is a function of this signature.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = stop as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(SIGNAL, &action, ptr::null_mut());
    }
    // A thread that is somewhere else comes back to LLVM, or out of it, soon; one that blocks the signal cannot be helped.
    while began.elapsed() < 10 * MOMENT {
        let Some(thread) = guests().iter().find(|g| g.thread != own).map(|g| g.thread) else { return };
        let (elsewhere, stopped) = (ELSEWHERE.load(SeqCst), STOPPED.load(SeqCst));
        // SAFETY: the thread has entered and, by its entry, cannot have ended: it leaves before.
        unsafe { libc::pthread_kill(thread, SIGNAL) };
        let asked = Instant::now();
        while ELSEWHERE.load(SeqCst) == elsewhere && STOPPED.load(SeqCst) == stopped && asked.elapsed() < MOMENT {
            std::thread::yield_now();
        }
        if STOPPED.load(SeqCst) != stopped {
            guests().retain(|g| g.thread != thread);
        } else {
            nap();
        }
    }
}

/// Stops the thread that it interrupts, if that was in code of LLVM.
extern "C" fn stop(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system hands a `ucontext_t` to handlers that were installed with `SA_SIGINFO`.
    let at = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] };
    if !load::code().contains(&(at as usize)) {
        ELSEWHERE.fetch_add(1, SeqCst);
        return;
    }
    STOPPED.fetch_add(1, SeqCst);
    loop {
        // SAFETY: waits for signals, whose handlers may run as ever.
        unsafe { libc::pause() };
    }
}
