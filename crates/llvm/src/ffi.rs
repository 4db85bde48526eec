//! LLVM's ORC just-in-time linker, of which inkwell has no binding: object code in memory becomes callable code.
//!
//! One of the three files of this crate that may use `unsafe`.
#![allow(unsafe_code)]

use inkwell::llvm_sys::{error::*, orc2::lljit::*, orc2::*};
use std::{ffi::CStr, ffi::CString, ptr};

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
            let buffer = inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy(
                object.as_ptr().cast(),
                object.len(),
                name.as_ptr(),
            );
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
