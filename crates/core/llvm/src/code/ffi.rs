//! Bindings that inkwell lacks: LLVM's diagnostics during a compilation, and the end of a process while LLVM compiles.
//!
//! One of the five files of this crate that may use `unsafe`.
#![allow(unsafe_code)]

use crate::code::load;
use inkwell::{
    context::Context,
    llvm_sys::{core::*, prelude::LLVMDiagnosticInfoRef},
};
use parking_lot::Mutex;
use std::{
    cell::RefCell,
    ffi::{CStr, c_int, c_void},
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// Collects the diagnostics that LLVM emits in a context while it compiles.
pub struct Listener<'c> {
    context: &'c Context,
    notes: Box<RefCell<Vec<String>>>,
}

extern "C" fn on_diagnostic(info: LLVMDiagnosticInfoRef, notes: *mut c_void) {
    // SAFETY: `notes` was set by `Listener::new` and is valid until its drop removes the handler; LLVM calls on the
    // compiling thread.
    let notes = unsafe { &*notes.cast::<RefCell<Vec<String>>>() };
    // SAFETY: `info` is valid during the call; the message is copied before it is disposed of.
    let note = unsafe {
        let text = LLVMGetDiagInfoDescription(info);
        let note = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        note
    };
    notes.borrow_mut().push(note);
}

impl Listener<'_> {
    /// Installs the diagnostic handler of a context.
    pub fn new(context: &Context) -> Listener<'_> {
        let notes: Box<RefCell<Vec<String>>> = Box::default();
        let cookie = ptr::from_ref(&*notes).cast_mut().cast();
        // SAFETY: the context is alive, and `notes` is boxed, so its address is stable until the handler is removed.
        unsafe { LLVMContextSetDiagnosticHandler(context.raw(), Some(on_diagnostic), cookie) };
        Listener { context, notes }
    }

    /// Takes the diagnostics collected so far.
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

// The end of a process.
//
// At exit, destructors of LLVM's static data run, and a thread that compiles at that time may crash on freed data. So
// before they run, compiling threads get a short time to finish; those that do not are stopped by a signal whose
// handler never returns. That is safe only while they hold no lock of the C library, which `exit` itself may need: the
// handler checks where it has interrupted the thread, and returns unless that is in LLVM's own code; the signal is then
// sent again. Before the library is loaded, it always returns.
//
// `atexit` functions run in the reverse order of their registration. LLVM's are registered when it is loaded, just
// before ours; what it would register later, on the first use of some data, `load` prevents. Thread destructors run
// before all of them: those of the thread that calls `exit`, which is usually the main thread. It is watched from the
// moment when the program or library is loaded, since others may ask for all kernels.

/// A thread that is executing code of LLVM.
struct CompilerThread {
    thread: libc::pthread_t,
    since: Instant,
}

static COMPILER_THREADS: Mutex<Vec<CompilerThread>> = Mutex::new(Vec::new());
/// The thread that ends the process, once it does.
static ENDING: OnceLock<libc::pthread_t> = OnceLock::new();
/// Counted by the signal handler: interruptions outside LLVM's code, and threads stopped.
static ELSEWHERE: AtomicU32 = AtomicU32::new(0);
static STOPPED: AtomicU32 = AtomicU32::new(0);

/// Longest wait for a thread; nor is a thread waited for longer than an eighth of the time it has been compiling.
const GRACE: Duration = Duration::from_millis(150);
/// Ignored by default, and rarely used by programs.
const SIGNAL: c_int = libc::SIGURG;

/// Marks the current thread as executing code of LLVM, until it is dropped.
pub struct CompilerScope(());

impl CompilerScope {
    /// Registers the thread. When the process is ending, this does not return, as if the thread had been stopped while it compiled:
    /// no failure must be reported. `None` for the thread that ends it, and for a child that cannot use LLVM.
    pub fn enter() -> Option<CompilerScope> {
        if LOCK_LOST.load(SeqCst) {
            return None;
        }
        // SAFETY: always succeeds, for the calling thread.
        let thread = unsafe { libc::pthread_self() };
        COMPILER_THREADS.lock().push(CompilerThread { thread, since: Instant::now() });
        let scope = CompilerScope(());
        let Some(last) = ENDING.get() else { return Some(scope) };
        drop(scope);
        if *last == thread {
            return None;
        }
        loop {
            std::thread::park();
        }
    }
}

impl Drop for CompilerScope {
    fn drop(&mut self) {
        // SAFETY: as above.
        let own = unsafe { libc::pthread_self() };
        let mut threads = COMPILER_THREADS.lock();
        if let Some(at) = threads.iter().position(|t| t.thread == own) {
            threads.swap_remove(at);
        }
    }
}

/// Its thread-local value is dropped when the thread ends.
struct ThreadExit;

impl Drop for ThreadExit {
    fn drop(&mut self) {
        // SAFETY: both always succeed.
        if unsafe { libc::gettid() == libc::getpid() } {
            at_end();
        }
    }
}

/// Makes the end of this thread stop compiling threads, if the thread is the main thread.
pub fn watch_thread() {
    thread_local!(static THREAD_EXIT: ThreadExit = const { ThreadExit });
    // Fails for a thread that is already being destroyed, which needs no watch.
    let _ = THREAD_EXIT.try_with(|_| ());
}

extern "C" fn watch_loading_thread() {
    watch_thread();
}

/// Called by the dynamic loader in the thread that loads this code, which is the main thread but for libraries that another one
/// opens.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the section holds pointers to functions that the loader calls; this one ignores the arguments that it is given.
#[unsafe(link_section = ".init_array")]
static WATCH_LOADING_THREAD: extern "C" fn() = watch_loading_thread;

/// Registers `at_end` with `atexit`, so that it runs before everything registered earlier. Called once, when the library is loaded.
pub fn register() {
    // SAFETY: the functions are never unloaded, and restrict themselves to what is allowed after a fork and at exit.
    unsafe {
        libc::pthread_atfork(None, None, Some(forked));
        libc::atexit(at_end);
    }
}

/// The child of a fork has none of its parent's other threads; one of them may have held the lock.
extern "C" fn forked() {
    match COMPILER_THREADS.try_lock() {
        Some(mut threads) => threads.clear(),
        None => LOCK_LOST.store(true, SeqCst),
    }
}

/// The lock of [`COMPILER_THREADS`] was held across a fork and will never be released: this process must not use LLVM.
static LOCK_LOST: AtomicBool = AtomicBool::new(false);

extern "C" fn at_end() {
    // SAFETY: always succeeds.
    let own = unsafe { libc::pthread_self() };
    if ENDING.set(own).is_err() || LOCK_LOST.load(SeqCst) {
        return;
    }
    let began = Instant::now();
    let nap = || std::thread::sleep(Duration::from_micros(500));
    loop {
        let in_grace = |t: &CompilerThread| {
            t.thread != own && began.elapsed() < (began.saturating_duration_since(t.since) / 8).min(GRACE)
        };
        if !COMPILER_THREADS.lock().iter().any(in_grace) {
            break;
        }
        nap();
    }
    if !COMPILER_THREADS.lock().iter().any(|t| t.thread != own) {
        return;
    }
    // SAFETY: `action` is zeroed and then filled in; the handler has the signature that `SA_SIGINFO` requires.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = stop as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(SIGNAL, &action, ptr::null_mut());
    }
    // A thread outside LLVM's code will soon be back in it or leave; one that blocks the signal is given up.
    while began.elapsed() < 10 * GRACE {
        let Some(thread) = COMPILER_THREADS.lock().iter().find(|t| t.thread != own).map(|t| t.thread) else { return };
        let (elsewhere, stopped) = (ELSEWHERE.load(SeqCst), STOPPED.load(SeqCst));
        // SAFETY: the thread is registered, and it unregisters before it ends, so it is alive.
        unsafe { libc::pthread_kill(thread, SIGNAL) };
        let asked = Instant::now();
        while ELSEWHERE.load(SeqCst) == elsewhere && STOPPED.load(SeqCst) == stopped && asked.elapsed() < GRACE {
            std::thread::yield_now();
        }
        if STOPPED.load(SeqCst) != stopped {
            COMPILER_THREADS.lock().retain(|t| t.thread != thread);
        } else {
            nap();
        }
    }
}

/// Signal handler: stops the thread that it interrupts, if that was in code of LLVM.
extern "C" fn stop(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: handlers installed with `SA_SIGINFO` receive a `ucontext_t`.
    let at = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] };
    if !load::code().contains(&(at as usize)) {
        ELSEWHERE.fetch_add(1, SeqCst);
        return;
    }
    STOPPED.fetch_add(1, SeqCst);
    loop {
        // SAFETY: waits for signals, whose handlers may run as usual.
        unsafe { libc::pause() };
    }
}
