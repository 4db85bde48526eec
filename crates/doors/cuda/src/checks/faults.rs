//! The signal handler for accesses to protected pages. It is `unsafe` because of the system calls, and because it forwards other faults to the
//! handler that was installed before.
#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
pub use linux::catch;

/// Whether faults can be caught here.
pub const CAN_CATCH: bool = cfg!(target_os = "linux");

/// Catches accesses to protected pages: an address, and whether the access writes, if that is known. A handler that returns whether
/// the access may be repeated.
pub type Handler = fn(usize, Option<bool>) -> bool;

/// Faults cannot be caught here.
#[cfg(not(target_os = "linux"))]
pub fn catch(_: Handler) -> bool {
    false
}

#[cfg(target_os = "linux")]
mod linux {
    use super::Handler;
    use parking_lot::Mutex;
    use std::{
        cell::Cell,
        ffi::{c_int, c_void},
        mem::zeroed,
        ptr,
        sync::OnceLock,
    };

    static HANDLER: OnceLock<Handler> = OnceLock::new();
    /// The handler that was installed before.
    static BEFORE: Mutex<Option<libc::sigaction>> = Mutex::new(None);

    thread_local! {
        /// This thread has passed a fault on.
        static PASSED: Cell<bool> = const { Cell::new(false) };
    }

    type Action = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

    /// Installs the handler unless it is the one installed; whether it is now.
    pub fn catch(handler: Handler) -> bool {
        HANDLER.get_or_init(|| handler);
        let own = fault as Action as usize;
        // SAFETY: valid pointers to actions, of which any bits are a value; the handler lives as long as the process, since this library
        // is never unloaded. It runs on the stack of the thread: the threads' stacks for signals are too small for it.
        unsafe {
            let mut before: libc::sigaction = zeroed();
            if libc::sigaction(libc::SIGSEGV, ptr::null(), &mut before) != 0 {
                return false;
            }
            if before.sa_sigaction == own {
                return true;
            }
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = own;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
            *BEFORE.lock() = Some(before);
            libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut()) == 0
        }
    }

    /// Whether an access writes.
    #[cfg(target_arch = "x86_64")]
    fn writes(context: *mut c_void) -> Option<bool> {
        /// The bit of a page fault's error code that says so (Intel SDM, volume 3, section 4.7).
        const WRITE: i64 = 2;
        // SAFETY: the system hands this to a handler with `SA_SIGINFO`.
        let error = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_ERR as usize] };
        Some(error & WRITE != 0)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn writes(_: *mut c_void) -> Option<bool> {
        None
    }

    extern "C" fn fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        /// `SEGV_ACCERR`: the page is there, and does not allow the access.
        const REFUSED: c_int = 2;
        // SAFETY: the system hands a valid description to a handler with `SA_SIGINFO`; a SIGSEGV with this code has an address.
        let (code, address) = unsafe { ((*info).si_code, (*info).si_addr()) };
        if code == REFUSED && HANDLER.get().is_some_and(|handler| handler(address.addr(), writes(context))) {
            return;
        }
        pass_on(signal, info, context);
    }

    /// The fault has nothing to do with protected pages.
    fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        let before = *BEFORE.lock();
        let next = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
        if next == libc::SIG_DFL || next == libc::SIG_IGN || PASSED.replace(true) {
            // SAFETY: as in `catch`. The access is repeated, and ends the process as it would have without this handler.
            unsafe {
                let mut action: libc::sigaction = zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &action, ptr::null_mut());
            }
            return;
        }
        // SAFETY: a handler that the program has installed, of the kind that its flags say.
        unsafe {
            if before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0) {
                std::mem::transmute::<usize, Action>(next)(signal, info, context);
            } else {
                std::mem::transmute::<usize, extern "C" fn(c_int)>(next)(signal);
            }
        }
        PASSED.set(false);
    }
}
