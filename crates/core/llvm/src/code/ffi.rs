//! What inkwell has no binding for: LLVM's ORC just-in-time linker, which makes callable code of object code in memory, and what
//! LLVM says while it compiles.
//!
//! One of the four files of this crate that may use `unsafe`.
#![allow(unsafe_code)]

use inkwell::{
    context::Context,
    llvm_sys::{core::*, error::*, orc2::lljit::*, orc2::*, prelude::LLVMDiagnosticInfoRef},
};
use std::{
    cell::RefCell,
    ffi::{CStr, CString, c_void},
    ptr,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

/// Linked code. Dropping it unmaps the code, so whoever holds addresses of it holds this too.
pub struct Linked {
    jit: LLVMOrcLLJITRef,
}

// SAFETY: LLJIT is internally synchronised; after linking we only look symbols up and, at the end, dispose of it.
unsafe impl Send for Linked {}
// SAFETY: as above.
unsafe impl Sync for Linked {}

fn message(error: LLVMErrorRef) -> String {
    // SAFETY: `error` is a live error value that this call consumes; the message is copied before it is disposed of.
    unsafe {
        let text = LLVMGetErrorMessage(error);
        let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(text);
        owned
    }
}

fn check(error: LLVMErrorRef) -> Result<(), String> {
    if error.is_null() { Ok(()) } else { Err(message(error)) }
}

impl Linked {
    /// Links one relocatable object; undefined symbols (`memcpy` and its like) come from this process.
    pub fn object(name: &str, object: &[u8]) -> Result<Linked, String> {
        let name = CString::new(name).map_err(|e| e.to_string())?;
        // SAFETY: every pointer handed over is live for the call; LLJIT copies or takes ownership as its C API documents
        // (the buffer copy is owned by the JIT from `AddObjectFile` on, the generator by the library from `AddGenerator` on).
        unsafe {
            let mut jit = ptr::null_mut();
            check(LLVMOrcCreateLLJIT(&mut jit, ptr::null_mut()))?;
            let linked = Linked { jit };
            let library = LLVMOrcLLJITGetMainJITDylib(jit);
            let mut generator = ptr::null_mut();
            let prefix = LLVMOrcLLJITGetGlobalPrefix(jit);
            check(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&mut generator, prefix, None, ptr::null_mut()))?;
            LLVMOrcJITDylibAddGenerator(library, generator);
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(object.as_ptr().cast(), object.len(), name.as_ptr());
            check(LLVMOrcLLJITAddObjectFile(jit, library, buffer))?;
            Ok(linked)
        }
    }

    /// The address of a symbol; links what it needs on the first request.
    pub fn address(&self, symbol: &str) -> Result<usize, String> {
        let name = CString::new(symbol).map_err(|e| e.to_string())?;
        let mut address = 0;
        // SAFETY: `jit` lives as long as `self`; `name` lives for the call.
        check(unsafe { LLVMOrcLLJITLookup(self.jit, &mut address, name.as_ptr()) })?;
        Ok(address as usize)
    }
}

impl Drop for Linked {
    fn drop(&mut self) {
        // SAFETY: `jit` was created by us and is disposed of once. An error here has no listener.
        unsafe {
            let error = LLVMOrcDisposeLLJIT(self.jit);
            if !error.is_null() {
                LLVMConsumeError(error);
            }
        }
    }
}

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

/// Threads that are inside of LLVM for something that nobody waits for.
static BUSY: AtomicUsize = AtomicUsize::new(0);
/// The process ends.
static ENDING: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    fn atexit(f: extern "C" fn()) -> std::ffi::c_int;
}

/// Runs before LLVM's own destructors do: whoever is inside of it must leave first.
extern "C" fn wait_for_all() {
    ENDING.store(true, SeqCst);
    while BUSY.load(SeqCst) > 0 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// A stay inside of LLVM that the end of the process waits for.
pub struct Busy(());

impl Busy {
    /// Enters; `None` when the process is about to end.
    pub fn enter() -> Option<Busy> {
        static ONCE: std::sync::Once = std::sync::Once::new();
        // SAFETY: the function is one of this process, and it calls nothing that may not be called at its end.
        ONCE.call_once(|| _ = unsafe { atexit(wait_for_all) });
        BUSY.fetch_add(1, SeqCst);
        let busy = Busy(());
        (!ENDING.load(SeqCst)).then_some(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.fetch_sub(1, SeqCst);
    }
}
