//! What the dynamic linker calls, and what writes into a program's code: the memory behind this library's safe half.
#![allow(unsafe_code)]

use crate::doors::{Doors, Jump, program};
use std::{
    ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void},
    io,
    os::unix::ffi::OsStrExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
};

unsafe extern "C" {
    fn mprotect(address: *mut c_void, len: usize, protection: c_int) -> c_int;
}

const READ: c_int = 1;
const WRITE: c_int = 2;
const EXECUTE: c_int = 4;
const PAGE: usize = 4096;

/// `jmp *0(%rip)`, followed by the address.
const JUMP: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];
/// Bytes of a jump with its address.
const LEN: usize = JUMP.len() + 8;
/// `endbr64`, which stays in front where indirect calls are checked for it.
const LANDING: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// Bytes that compilers put between functions: `int3`, and what `nop`s of all lengths consist of.
const PADDING: [u8; 11] = [0x00, 0x0f, 0x1f, 0x2e, 0x40, 0x44, 0x66, 0x80, 0x84, 0x90, 0xcc];

/// `struct link_map`, as far as it is documented (dlinfo(3)).
#[repr(C)]
pub struct LinkMap {
    base: usize,
    name: *const c_char,
}

/// The namespace of the program (dlmopen(3)); auditing libraries have others.
const LM_ID_BASE: isize = 0;
/// `LA_ACT_CONSISTENT`
const CONSISTENT: c_uint = 0;
/// `LA_SER_ORIG`
const ORIGINAL: c_uint = 1;

fn with_doors<T>(act: impl FnOnce(&mut Doors) -> T) -> Option<T> {
    static DOORS: LazyLock<Mutex<Doors>> = LazyLock::new(|| Mutex::new(Doors::new()));
    let acted = catch_unwind(AssertUnwindSafe(|| act(&mut DOORS.lock().unwrap_or_else(PoisonError::into_inner))));
    acted.inspect_err(|_| eprintln!("margay has a bug: its redirection panicked; please report it")).ok()
}

/// A path that the dynamic linker names.
fn path(name: *const c_char) -> PathBuf {
    if name.is_null() {
        return PathBuf::new();
    }
    // SAFETY: the dynamic linker passes strings that end with a zero (rtld-audit(7)).
    PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()))
}

/// Agrees on a version of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn la_version(version: c_uint) -> c_uint {
    version
}

/// Says where a library is to be looked for.
#[unsafe(no_mangle)]
pub extern "C" fn la_objsearch(name: *const c_char, _cookie: *mut usize, flag: c_uint) -> *const c_char {
    if flag != ORIGINAL {
        return name;
    }
    let instead = with_doors(|doors| doors.instead_of(&path(name))).flatten();
    let instead = instead.and_then(|found| CString::new(found.into_os_string().into_encoded_bytes()).ok());
    // The linker keeps it for as long as it likes.
    instead.map_or(name, |found| found.into_raw().cast_const())
}

/// Hears of an object that was mapped. No calls between objects are watched: the answer is 0.
#[unsafe(no_mangle)]
pub extern "C" fn la_objopen(map: *const LinkMap, namespace: isize, _cookie: *mut usize) -> c_uint {
    if namespace != LM_ID_BASE || map.is_null() {
        return 0;
    }
    // SAFETY: the dynamic linker passes the object's own entry, which stays while the object is loaded.
    let LinkMap { base, name } = unsafe { map.read() };
    let name = path(name);
    let file = if name.as_os_str().is_empty() { program() } else { name };
    with_doors(|doors| doors.announce(&file, base));
    0
}

/// Hears that all objects of a call are mapped; none of their constructors has run.
#[unsafe(no_mangle)]
pub extern "C" fn la_activity(_cookie: *mut usize, flag: c_uint) {
    if flag != CONSISTENT {
        return;
    }
    with_doors(|doors| {
        for work in doors.settle() {
            let written = write_all(&work.jumps);
            if doors.tells() {
                eprintln!("margay: {}: {}", work.path.display(), work.words);
            }
            match written {
                Ok(short) if short > 0 && doors.tells() => eprintln!("  {short} of them are too short for a jump"),
                Ok(_) => {}
                Err(error) => complain(&work.path, &error),
            }
        }
    });
}

fn complain(path: &Path, error: &io::Error) {
    eprintln!(
        "margay: the CUDA runtime inside {} cannot be replaced ({error}); build with `-cudart shared`, for example with \
         NVCC_APPEND_FLAGS='-cudart shared'",
        path.display()
    );
}

/// Writes jumps over functions of one object; counts those that are too short. The functions have not been called yet.
fn write_all(jumps: &[Jump]) -> io::Result<usize> {
    if !cfg!(target_arch = "x86_64") && !jumps.is_empty() {
        return Err(io::Error::other("only on x86-64 processors"));
    }
    let ends = jumps.iter().map(|j| j.at + j.size.max(1)).max();
    let (Some(first), Some(last)) = (jumps.iter().map(|j| j.at).min(), ends) else { return Ok(0) };
    let (start, end) = (first & !(PAGE - 1), last.next_multiple_of(PAGE));
    protect(start, end, READ | WRITE)?;
    let short = jumps.iter().filter(|jump| !write(jump, end)).count();
    protect(start, end, READ | EXECUTE)?;
    Ok(short)
}

fn protect(start: usize, end: usize, protection: c_int) -> io::Result<()> {
    let address = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: the pages hold the code of an object that was just mapped. None of it runs: its constructors come later, and
    // this library's own code stands elsewhere.
    match unsafe { mprotect(address, end - start, protection) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Writes one jump, if the function and the padding behind it have room for it before the end of the writable pages.
fn write(jump: &Jump, end: usize) -> bool {
    if end - jump.at < LANDING.len() + LEN {
        return false;
    }
    let at: *mut u8 = std::ptr::with_exposed_provenance_mut(jump.at);
    // SAFETY: `protect` made the pages up to `end` readable and writable.
    let found: [u8; LANDING.len() + LEN] = unsafe { at.cast::<[u8; LANDING.len() + LEN]>().read_unaligned() };
    let skip = if found.starts_with(&LANDING) { LANDING.len() } else { 0 };
    let padded = |from: usize| found[from..skip + LEN].iter().all(|b| PADDING.contains(b));
    if jump.size < skip + LEN && !padded(jump.size) {
        return false;
    }
    let mut code = [0; LEN];
    code[..JUMP.len()].copy_from_slice(&JUMP);
    code[JUMP.len()..].copy_from_slice(&jump.to.to_le_bytes());
    // SAFETY: as above; nobody else has these pages in hand while the dynamic linker holds its lock.
    unsafe { at.add(skip).cast::<[u8; LEN]>().write_unaligned(code) };
    true
}
