//! LLVM's library, loaded when the first kernel is compiled.
//!
//! Loading it costs tens of megabytes and milliseconds, which a process that only checks modules should not pay. So nothing links
//! the library: the functions of its C API that this crate and inkwell call are defined here, and each hands its arguments on.
//! A function that is missing from the list is an undefined symbol when the program is linked.
//!
//! One of the four files of this crate that may use `unsafe`.
#![allow(unsafe_code)]
#![allow(non_snake_case)] // LLVM's names.

use inkwell::llvm_sys::{
    LLVMDiagnosticHandler,
    error::LLVMErrorRef,
    execution_engine::LLVMExecutionEngineRef,
    orc2::{lljit::*, *},
    prelude::*,
    target::LLVMTargetDataRef,
    target_machine::*,
    transforms::pass_builder::LLVMPassBuilderOptionsRef,
};
use std::{
    ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void},
    os::unix::ffi::OsStrExt,
    sync::LazyLock,
};

/// Where the library may be, in this order; `MARGAY_LLVM` stands before all.
const NAMES: [&str; 3] = if cfg!(feature = "llvm22") {
    ["libLLVM.so.22.1", "libLLVM-22.so", "/usr/lib/llvm-22/lib/libLLVM.so.22.1"]
} else if cfg!(feature = "llvm21") {
    ["libLLVM.so.21.1", "libLLVM-21.so", "/usr/lib/llvm-21/lib/libLLVM.so.21.1"]
} else if cfg!(feature = "llvm20") {
    ["libLLVM.so.20.1", "libLLVM-20.so", "/usr/lib/llvm-20/lib/libLLVM.so.20.1"]
} else {
    ["libLLVM.so.19.1", "libLLVM-19.so", "/usr/lib/llvm-19/lib/libLLVM.so.19.1"]
};

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

/// Resolve functions when they are called first.
const RTLD_LAZY: c_int = 1;

/// The handle of the library, or why there is none.
static LIBRARY: LazyLock<Result<usize, String>> = LazyLock::new(|| {
    let named = std::env::var_os("MARGAY_LLVM");
    let names: Vec<&OsStr> = named.as_deref().into_iter().chain(NAMES.iter().map(OsStr::new)).collect();
    let mut why = String::new();
    for name in names {
        let Ok(name) = CString::new(name.as_bytes()) else { continue };
        // SAFETY: the name ends in a NUL. LLVM's constructors run here; they depend on nothing of ours.
        let library = unsafe { dlopen(name.as_ptr(), RTLD_LAZY) } as usize;
        if library == 0 {
            // SAFETY: after a failure `dlerror` gives a message that lives until the next call in this thread.
            let message = unsafe { dlerror() };
            if why.is_empty() && !message.is_null() {
                // SAFETY: as above.
                why = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
            }
            continue;
        }
        return match FUNCTIONS.iter().find(|f| address(library, f) == 0) {
            Some(missing) => Err(format!("{} has no {}", name.to_string_lossy(), missing.to_string_lossy())),
            None => Ok(library),
        };
    }
    Err(format!("the SIMD engine needs LLVM, which cannot be loaded: {why} (`MARGAY_LLVM` may name the library)"))
});

fn address(library: usize, name: &CStr) -> usize {
    // SAFETY: the handle is one of `dlopen` and never closed; the name ends in a NUL.
    unsafe { dlsym(library as *mut c_void, name.as_ptr()) as usize }
}

/// Loads the library; everything else of LLVM needs that first.
pub fn ready() -> Result<(), String> {
    LIBRARY.as_ref().map(|_| ()).map_err(String::clone)
}

/// Defines functions that hand their arguments on to the library.
macro_rules! forward {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;)*) => {
        /// Every function that is forwarded.
        const FUNCTIONS: &[&CStr] = &[$($(#[$meta])* name(concat!(stringify!($name), "\0")),)*];

        $($(#[$meta])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            static ADDRESS: LazyLock<usize> = LazyLock::new(|| match &*LIBRARY {
                Ok(library) => address(*library, name(concat!(stringify!($name), "\0"))),
                // No caller gets here without `ready`.
                Err(why) => panic!("{why}"),
            });
            // SAFETY: the library's function of this name has this type, by LLVM's headers, from which llvm-sys has it, too.
            let function: unsafe extern "C" fn($($ty),*) $(-> $ret)? = unsafe { std::mem::transmute(*ADDRESS) };
            // SAFETY: the caller vouches for the arguments.
            unsafe { function($($arg),*) }
        })*
    };
}

const fn name(text: &str) -> &CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name ends in a NUL"),
    }
}

forward! {
    fn LLVMGetVersion(major: *mut c_uint, minor: *mut c_uint, patch: *mut c_uint);
    fn LLVMContextCreate() -> LLVMContextRef;
    fn LLVMContextDispose(context: LLVMContextRef);
    fn LLVMContextSetDiagnosticHandler(context: LLVMContextRef, handler: LLVMDiagnosticHandler, cookie: *mut c_void);
    fn LLVMGetDiagInfoDescription(info: LLVMDiagnosticInfoRef) -> *mut c_char;
    fn LLVMCreateMemoryBufferWithMemoryRangeCopy(data: *const c_char, length: usize, name: *const c_char) -> LLVMMemoryBufferRef;
    fn LLVMGetBufferStart(buffer: LLVMMemoryBufferRef) -> *const c_char;
    fn LLVMGetBufferSize(buffer: LLVMMemoryBufferRef) -> usize;
    fn LLVMDisposeMemoryBuffer(buffer: LLVMMemoryBufferRef);
    #[cfg(feature = "llvm22")]
    fn LLVMParseIRInContext2(
        context: LLVMContextRef, buffer: LLVMMemoryBufferRef, module: *mut LLVMModuleRef, message: *mut *mut c_char,
    ) -> LLVMBool;
    #[cfg(not(feature = "llvm22"))]
    fn LLVMParseIRInContext(
        context: LLVMContextRef, buffer: LLVMMemoryBufferRef, module: *mut LLVMModuleRef, message: *mut *mut c_char,
    ) -> LLVMBool;
    fn LLVMPrintModuleToString(module: LLVMModuleRef) -> *mut c_char;
    fn LLVMGetDataLayoutStr(module: LLVMModuleRef) -> *const c_char;
    fn LLVMSetDataLayout(module: LLVMModuleRef, layout: *const c_char);
    fn LLVMSetTarget(module: LLVMModuleRef, triple: *const c_char);
    fn LLVMDisposeModule(module: LLVMModuleRef);
    fn LLVMDisposeExecutionEngine(engine: LLVMExecutionEngineRef);
    fn LLVMDisposeMessage(message: *mut c_char);
    fn LLVMGetErrorMessage(error: LLVMErrorRef) -> *mut c_char;
    fn LLVMConsumeError(error: LLVMErrorRef);
    fn LLVMDisposeErrorMessage(message: *mut c_char);

    fn LLVMInitializeX86TargetInfo();
    fn LLVMInitializeX86Target();
    fn LLVMInitializeX86TargetMC();
    fn LLVMInitializeX86AsmParser();
    fn LLVMInitializeX86AsmPrinter();
    fn LLVMInitializeX86Disassembler();
    fn LLVMGetDefaultTargetTriple() -> *mut c_char;
    fn LLVMGetHostCPUName() -> *mut c_char;
    fn LLVMGetHostCPUFeatures() -> *mut c_char;
    fn LLVMGetTargetFromTriple(triple: *const c_char, target: *mut LLVMTargetRef, message: *mut *mut c_char) -> LLVMBool;
    fn LLVMCreateTargetMachine(
        target: LLVMTargetRef, triple: *const c_char, cpu: *const c_char, features: *const c_char, level: LLVMCodeGenOptLevel,
        reloc: LLVMRelocMode, model: LLVMCodeModel,
    ) -> LLVMTargetMachineRef;
    fn LLVMGetTargetMachineTriple(machine: LLVMTargetMachineRef) -> *mut c_char;
    fn LLVMCreateTargetDataLayout(machine: LLVMTargetMachineRef) -> LLVMTargetDataRef;
    fn LLVMCopyStringRepOfTargetData(data: LLVMTargetDataRef) -> *mut c_char;
    fn LLVMDisposeTargetData(data: LLVMTargetDataRef);
    fn LLVMDisposeTargetMachine(machine: LLVMTargetMachineRef);
    fn LLVMTargetMachineEmitToMemoryBuffer(
        machine: LLVMTargetMachineRef, module: LLVMModuleRef, kind: LLVMCodeGenFileType, message: *mut *mut c_char,
        buffer: *mut LLVMMemoryBufferRef,
    ) -> LLVMBool;
    fn LLVMCreatePassBuilderOptions() -> LLVMPassBuilderOptionsRef;
    fn LLVMDisposePassBuilderOptions(options: LLVMPassBuilderOptionsRef);
    fn LLVMRunPasses(
        module: LLVMModuleRef, passes: *const c_char, machine: LLVMTargetMachineRef, options: LLVMPassBuilderOptionsRef,
    ) -> LLVMErrorRef;

    fn LLVMOrcCreateLLJIT(jit: *mut LLVMOrcLLJITRef, builder: LLVMOrcLLJITBuilderRef) -> LLVMErrorRef;
    fn LLVMOrcDisposeLLJIT(jit: LLVMOrcLLJITRef) -> LLVMErrorRef;
    fn LLVMOrcLLJITGetMainJITDylib(jit: LLVMOrcLLJITRef) -> LLVMOrcJITDylibRef;
    fn LLVMOrcLLJITGetGlobalPrefix(jit: LLVMOrcLLJITRef) -> c_char;
    fn LLVMOrcLLJITAddObjectFile(
        jit: LLVMOrcLLJITRef, library: LLVMOrcJITDylibRef, object: LLVMMemoryBufferRef,
    ) -> LLVMErrorRef;
    fn LLVMOrcLLJITLookup(
        jit: LLVMOrcLLJITRef, address: *mut LLVMOrcExecutorAddress, name: *const c_char,
    ) -> LLVMErrorRef;
    fn LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
        generator: *mut LLVMOrcDefinitionGeneratorRef, prefix: c_char, filter: LLVMOrcSymbolPredicate, context: *mut c_void,
    ) -> LLVMErrorRef;
    fn LLVMOrcJITDylibAddGenerator(library: LLVMOrcJITDylibRef, generator: LLVMOrcDefinitionGeneratorRef);
}
