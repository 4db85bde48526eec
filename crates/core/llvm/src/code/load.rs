//! Loads LLVM's shared library when the first kernel is compiled.
//!
//! Loading it takes milliseconds and tens of megabytes, which a process that only checks modules should not pay. So
//! nothing links the library: the functions of its C API that this crate and inkwell call are defined here as
//! trampolines that resolve the library's function on first use. A function missing from the list is an undefined
//! symbol when the program is linked.
//!
//! One of the five files of this crate that may use `unsafe`.
#![allow(unsafe_code)]
#![allow(non_snake_case)] // LLVM's names.

use crate::code::ffi;
use inkwell::llvm_sys::{
    LLVMDiagnosticHandler, error::LLVMErrorRef, execution_engine::LLVMExecutionEngineRef, prelude::*,
    target::LLVMTargetDataRef, target_machine::*, transforms::pass_builder::LLVMPassBuilderOptionsRef,
};
use std::{
    ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void},
    ops::Range,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    sync::{
        LazyLock, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// Names of the system's library, tried in this order, after `MARGAY_LLVM` and what [`look_first`] finds.
pub const NAMES: [&str; 3] = if cfg!(feature = "llvm22") {
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

/// Bind functions lazily.
const RTLD_LAZY: c_int = 1;

/// Finds a library that was installed with this program.
static INSTALLED: OnceLock<fn() -> Option<PathBuf>> = OnceLock::new();

/// Sets the function that finds a library installed with this program. It is called on first use and takes precedence
/// over the system's library.
pub fn look_first(find: fn() -> Option<PathBuf>) {
    let _ = INSTALLED.set(find); // one process, one installation
}

/// The handle of the library, or why there is none.
static LIBRARY: LazyLock<Result<usize, String>> = LazyLock::new(|| {
    let named = std::env::var_os("MARGAY_LLVM");
    let installed = INSTALLED.get().and_then(|find| find());
    let first = named.as_deref().into_iter().chain(installed.as_ref().map(|path| path.as_os_str()));
    let names: Vec<&OsStr> = first.chain(NAMES.iter().map(OsStr::new)).collect();
    let mut why = String::new();
    for name in names {
        let Ok(name) = CString::new(name.as_bytes()) else { continue };
        // SAFETY: the name is NUL-terminated. LLVM's constructors run here and depend on nothing of ours.
        let library = unsafe { dlopen(name.as_ptr(), RTLD_LAZY) } as usize;
        if library == 0 {
            // SAFETY: after a failure `dlerror` returns a message that is valid until the next call in this thread.
            let message = unsafe { dlerror() };
            if why.is_empty() && !message.is_null() {
                // SAFETY: as above.
                why = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
            }
            continue;
        }
        if let Some(missing) = FUNCTIONS.iter().find(|f| address(library, f) == 0) {
            return Err(format!("{} has no {}", name.to_string_lossy(), missing.to_string_lossy()));
        }
        examine(address(library, c"LLVMContextCreate"));
        // `atexit` order: our function must be registered after the library's own.
        ffi::register();
        return Ok(library);
    }
    Err(format!("the SIMD engine needs LLVM, which cannot be loaded: {why} (`MARGAY_LLVM` may name the library)"))
});

fn address(library: usize, name: &CStr) -> usize {
    // SAFETY: the handle comes from `dlopen` and is never closed; the name is NUL-terminated.
    unsafe { dlsym(library as *mut c_void, name.as_ptr()) as usize }
}

/// Address range of the library's code.
static CODE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Address range of the library's code; empty before it is loaded. Async-signal-safe.
pub fn code() -> Range<usize> {
    CODE[0].load(Relaxed)..CODE[1].load(Relaxed)
}

/// Finds the library that contains an address: notes where its code is, and keeps its data for as long as the process
/// lives.
fn examine(inside: usize) {
    extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, inside: *mut c_void) -> c_int {
        // SAFETY: the dynamic linker passes a description of a loaded library that is valid during the call.
        let (base, headers) = unsafe {
            let info = &*info;
            (info.dlpi_addr as usize, std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()))
        };
        for header in headers.iter().filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_X != 0) {
            let start = base + header.p_vaddr as usize;
            let end = start + header.p_memsz as usize;
            if (start..end).contains(&(inside as usize)) {
                CODE[0].store(start, Relaxed);
                CODE[1].store(end, Relaxed);
                keep_data(base, headers);
                return 1;
            }
        }
        0
    }
    // SAFETY: `look` has the callback's signature; its last argument is a number, never dereferenced.
    unsafe { libc::dl_iterate_phdr(Some(look), inside as *mut c_void) };
}

/// Entries of a library's dynamic section (System V ABI, chapter 5; x86-64 supplement, table 4.10).
mod elf {
    pub const DT_PLTRELSZ: u64 = 2;
    pub const DT_STRTAB: u64 = 5;
    pub const DT_SYMTAB: u64 = 6;
    pub const DT_RELA: u64 = 7;
    pub const DT_RELASZ: u64 = 8;
    pub const DT_JMPREL: u64 = 23;
    pub const R_X86_64_GLOB_DAT: u64 = 6;
    pub const R_X86_64_JUMP_SLOT: u64 = 7;

    #[repr(C)]
    pub struct Dynamic {
        pub tag: u64,
        pub value: u64,
    }

    #[repr(C)]
    pub struct Relocation {
        pub offset: u64,
        pub info: u64,
        pub addend: i64,
    }

    #[repr(C)]
    pub struct Symbol {
        pub name: u32,
        pub kind: [u8; 4],
        pub value: u64,
        pub size: u64,
    }
}

/// What the library calls from now on to have static data destroyed at exit: nothing is registered. The data that it
/// creates on first use would be destroyed before [`ffi::register`]'s function stops the threads that use them.
extern "C" fn no_destructor(_: usize, _: usize, _: usize) -> c_int {
    0
}

/// Lets a library's calls of `__cxa_atexit` register nothing.
fn keep_data(base: usize, headers: &[libc::Elf64_Phdr]) {
    let Some(dynamic) = headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC) else { return };
    let mut entries = (base + dynamic.p_vaddr as usize) as *const elf::Dynamic;
    let mut table = [0_usize; 24];
    // SAFETY: the section ends in an entry `DT_NULL`, 0.
    while let elf::Dynamic { tag: tag @ 1.., value } = unsafe { &*entries } {
        if let Some(entry) = table.get_mut(*tag as usize) {
            *entry = *value as usize;
        }
        // SAFETY: not the last entry.
        entries = unsafe { entries.add(1) };
    }
    // The GNU loader replaces offsets in the section by addresses; others leave them.
    let at = |tag: u64| match table[tag as usize] {
        offset if offset < base => base + offset,
        address => address,
    };
    let (names, symbols) = (at(elf::DT_STRTAB), at(elf::DT_SYMTAB) as *const elf::Symbol);
    for (tag, size) in [(elf::DT_JMPREL, elf::DT_PLTRELSZ), (elf::DT_RELA, elf::DT_RELASZ)] {
        let count = table[size as usize] / size_of::<elf::Relocation>();
        if count == 0 {
            continue;
        }
        // SAFETY: the section gives the table's address and size.
        let relocations = unsafe { std::slice::from_raw_parts(at(tag) as *const elf::Relocation, count) };
        let slots = relocations
            .iter()
            .filter(|r| matches!(r.info & 0xffff_ffff, elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT));
        for slot in slots {
            // SAFETY: a relocation's symbol is in the symbol table, and a symbol's name ends in a NUL.
            let name = unsafe {
                CStr::from_ptr((names + (*symbols.add((slot.info >> 32) as usize)).name as usize) as *const c_char)
            };
            if name == c"__cxa_atexit" {
                replace(base + slot.offset as usize, no_destructor as *const () as usize, headers, base);
            }
        }
    }
}

/// Writes the address of a function to a slot of a library's table of functions.
fn replace(slot: usize, function: usize, headers: &[libc::Elf64_Phdr], base: usize) {
    // SAFETY: the page is part of the library's data, which the loader alone protects; slots are aligned words, which other
    // threads may read meanwhile. Slots in a segment that is read-only after relocation become so again.
    unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let start = (slot & !(page - 1)) as *mut c_void;
        if libc::mprotect(start, page, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            return; // the process may then end as before, with a crash in rare cases
        }
        (*(slot as *const AtomicUsize)).store(function, Relaxed);
        let read_only = |h: &libc::Elf64_Phdr| {
            // The loader protects whole pages only.
            let (from, to) = (base + h.p_vaddr as usize, base + (h.p_vaddr + h.p_memsz) as usize);
            h.p_type == libc::PT_GNU_RELRO && (from & !(page - 1)..to & !(page - 1)).contains(&slot)
        };
        if headers.iter().any(read_only) {
            libc::mprotect(start, page, libc::PROT_READ);
        }
    }
}

/// Loads the library; must succeed before any other function of LLVM is called.
pub fn ready() -> Result<(), String> {
    LIBRARY.as_ref().map(|_| ()).map_err(String::clone)
}

/// Defines trampolines to functions of the library.
macro_rules! forward {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;)*) => {
        /// Names of all functions that have a trampoline.
        const FUNCTIONS: &[&CStr] = &[$($(#[$meta])* name(concat!(stringify!($name), "\0")),)*];

        $($(#[$meta])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            static ADDRESS: LazyLock<usize> = LazyLock::new(|| match &*LIBRARY {
                Ok(library) => address(*library, name(concat!(stringify!($name), "\0"))),
                // Nobody calls LLVM before `ready` has succeeded.
                Err(why) => panic!("{why}"),
            });
            // SAFETY: the library's function of this name has this type, according to LLVM's headers and llvm-sys.
            let function: unsafe extern "C" fn($($ty),*) $(-> $ret)? = unsafe { std::mem::transmute(*ADDRESS) };
            // SAFETY: the caller guarantees the arguments.
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
}
