//! The callbacks of the dynamic linker, and the code that overwrites functions; the only file of this crate with
//! `unsafe`.
#![allow(unsafe_code)]

use crate::{
    doors::{Doors, Jump, program},
    linker::{Link, Linker, Taken, result},
};
use parking_lot::Mutex;
use std::{
    ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void},
    io,
    os::unix::ffi::OsStrExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::LazyLock,
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
/// Size of a jump with its address in bytes.
const LEN: usize = JUMP.len() + 8;
/// `endbr64`, which is preserved for indirect branch tracking.
const LANDING: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// Bytes that compilers place between functions: `int3`, and the bytes of multi-byte `nop`s.
const PADDING: [u8; 11] = [0x00, 0x0f, 0x1f, 0x2e, 0x40, 0x44, 0x66, 0x80, 0x84, 0x90, 0xcc];

/// The documented part of `struct link_map` (dlinfo(3)).
#[repr(C)]
pub struct LinkMap {
    base: usize,
    name: *const c_char,
}

/// The namespace of the program (dlmopen(3)); auditing libraries live in others.
const LM_ID_BASE: isize = 0;
/// `LA_ACT_CONSISTENT`
const CONSISTENT: c_uint = 0;
/// `LA_SER_ORIG`
const ORIGINAL: c_uint = 1;

fn with_doors<T>(act: impl FnOnce(&mut Doors) -> T) -> Option<T> {
    static DOORS: LazyLock<Mutex<Doors>> = LazyLock::new(|| Mutex::new(Doors::new()));
    let acted = catch_unwind(AssertUnwindSafe(|| act(&mut DOORS.lock())));
    acted.inspect_err(|_| eprintln!("margay has a bug: its redirection panicked; please report it")).ok()
}

/// A path passed by the dynamic linker.
fn path(name: *const c_char) -> PathBuf {
    if name.is_null() {
        return PathBuf::new();
    }
    // SAFETY: the dynamic linker passes NUL-terminated strings (rtld-audit(7)).
    PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()))
}

/// Negotiates the version of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn la_version(version: c_uint) -> c_uint {
    version
}

/// Substitutes the file of a library that is looked up.
#[unsafe(no_mangle)]
pub extern "C" fn la_objsearch(name: *const c_char, _cookie: *mut usize, flag: c_uint) -> *const c_char {
    if flag != ORIGINAL {
        return name;
    }
    let instead = with_doors(|doors| doors.instead_of(&path(name))).flatten();
    let instead = instead.and_then(|found| CString::new(found.into_os_string().into_encoded_bytes()).ok());
    // Leaked, since the linker may keep it.
    instead.map_or(name, |found| found.into_raw().cast_const())
}

/// Records a mapped object. Returns 0: calls between objects are not audited.
#[unsafe(no_mangle)]
pub extern "C" fn la_objopen(map: *const LinkMap, namespace: isize, _cookie: *mut usize) -> c_uint {
    if namespace != LM_ID_BASE || map.is_null() {
        return 0;
    }
    // SAFETY: the dynamic linker passes the object's own entry, valid while the object is loaded.
    let LinkMap { base, name } = unsafe { map.read() };
    let name = path(name);
    let file = if name.as_os_str().is_empty() { program() } else { name };
    with_doors(|doors| doors.announce(&file, base));
    0
}

/// Called when all objects of a `dlopen` are mapped and none of their constructors has run.
#[unsafe(no_mangle)]
pub extern "C" fn la_activity(_cookie: *mut usize, flag: c_uint) {
    if flag != CONSISTENT {
        return;
    }
    with_doors(|doors| {
        for work in doors.settle() {
            let written = write_all(&work.jumps);
            if doors.is_verbose() {
                eprintln!("margay: {}: {}", work.path.display(), work.words);
            }
            match written {
                Ok(short) if short > 0 && doors.is_verbose() => eprintln!("  {short} of them are too short for a jump"),
                Ok(_) => {}
                Err(error) => report_error(&work.path, &error),
            }
        }
    });
}

fn report_error(path: &Path, error: &io::Error) {
    eprintln!(
        "margay: the CUDA runtime in {} cannot be replaced ({error}); build with `-cudart shared`, for example with \
         NVCC_APPEND_FLAGS='-cudart shared'",
        path.display()
    );
}

/// Writes the jumps for one object; returns the number of functions that are too short. No function has been called
/// yet.
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
    // SAFETY: the pages hold code of an object that was just mapped and has not run yet; this library's own code lies
    // elsewhere.
    match unsafe { mprotect(address, end - start, protection) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Writes one jump, if the function with its padding has room before the end of the writable pages.
fn write(jump: &Jump, end: usize) -> bool {
    if end - jump.at < LANDING.len() + LEN {
        return false;
    }
    let at: *mut u8 = std::ptr::with_exposed_provenance_mut(jump.at);
    // SAFETY: `protect` has made the pages up to `end` readable and writable.
    let found: [u8; LANDING.len() + LEN] = unsafe { at.cast::<[u8; LANDING.len() + LEN]>().read_unaligned() };
    let skip = if found.starts_with(&LANDING) { LANDING.len() } else { 0 };
    let padded = |from: usize| found[from..skip + LEN].iter().all(|b| PADDING.contains(b));
    if jump.size < skip + LEN && !padded(jump.size) {
        return false;
    }
    let mut code = [0; LEN];
    code[..JUMP.len()].copy_from_slice(&JUMP);
    code[JUMP.len()..].copy_from_slice(&jump.to.to_le_bytes());
    // SAFETY: as above; no other thread accesses these pages while the dynamic linker holds its lock.
    unsafe { at.add(skip).cast::<[u8; LEN]>().write_unaligned(code) };
    true
}

/// Accesses the links of the process.
pub fn with_linker<T>(act: impl FnOnce(&mut Linker) -> T) -> T {
    static LINKER: LazyLock<Mutex<Linker>> = LazyLock::new(Mutex::default);
    act(&mut LINKER.lock())
}

/// The replacements of nvJitLink's functions, by name ("nvJitLink", "Linking").
pub fn stand_ins() -> [(&'static str, usize); 13] {
    let functions: [(&'static str, *const ()); 13] = [
        ("nvJitLinkCreate", create as *const ()),
        ("nvJitLinkDestroy", destroy as *const ()),
        ("nvJitLinkAddData", add_data as *const ()),
        ("nvJitLinkAddFile", add_file as *const ()),
        ("nvJitLinkComplete", complete as *const ()),
        ("nvJitLinkGetLinkedCubinSize", image_size as *const ()),
        ("nvJitLinkGetLinkedCubin", image as *const ()),
        ("nvJitLinkGetLinkedPtxSize", image_size as *const ()),
        ("nvJitLinkGetLinkedPtx", image as *const ()),
        ("nvJitLinkGetErrorLogSize", log_size as *const ()),
        ("nvJitLinkGetErrorLog", log as *const ()),
        ("nvJitLinkGetInfoLogSize", no_log_size as *const ()),
        ("nvJitLinkGetInfoLog", no_log as *const ()),
    ];
    functions.map(|(name, address)| (name, address.expose_provenance()))
}

/// Calls a function of the real library with a handle or a pointer to it, and up to four more integers or pointers.
fn real(name: &str, first: usize, words: [usize; 4]) -> u32 {
    type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> u32;
    let Some(address) = with_linker(|linker| linker.real.get(name).copied()) else { return result::INVALID_INPUT };
    // SAFETY: the address is that of the documented function of this name.
    let function = unsafe { std::mem::transmute::<usize, Function>(address) };
    // SAFETY: the function takes at most five words in registers and ignores the others; the callers below pass what it
    // needs.
    unsafe { function(first, words[0], words[1], words[2], words[3]) }
}

/// A string argument; empty for null.
fn string(text: *const c_char) -> String {
    path(text).to_string_lossy().into_owned()
}

/// Writes a result through a pointer argument.
fn put<T>(place: *mut T, value: T) -> u32 {
    if place.is_null() {
        return result::INVALID_INPUT;
    }
    // SAFETY: the C caller guarantees room for the result.
    unsafe { place.write(value) };
    result::SUCCESS
}

fn put_bytes(place: *mut u8, bytes: &[u8]) -> u32 {
    if place.is_null() {
        return result::INVALID_INPUT;
    }
    // SAFETY: the C caller asked for the size before and guarantees that much room ("Linking").
    unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    result::SUCCESS
}

fn with_link(handle: usize, act: impl FnOnce(&mut Link) -> u32) -> u32 {
    with_linker(|linker| linker.links.get_mut(&handle).map_or(result::INVALID_INPUT, act))
}

extern "C" fn create(out: *mut usize, count: u32, options: *const *const c_char) -> u32 {
    // SAFETY: the C caller guarantees that many strings.
    let mut given: Vec<*const c_char> = (0..count as usize).map(|i| unsafe { options.add(i).read() }).collect();
    let words: Vec<String> = given.iter().map(|text| string(*text)).collect();
    let requests = |word: &str| words.iter().any(|w| w == word);
    let (mut handle, mut known) = (0usize, None);
    if requests("-lto") {
        if !requests("-ptx") {
            given.push(c"-ptx".as_ptr());
        }
        let words = [given.len(), given.as_ptr().expose_provenance(), 0, 0];
        match real("nvJitLinkCreate", (&raw mut handle).expose_provenance(), words) {
            result::SUCCESS => known = Some(handle),
            error => return error,
        }
    } else {
        handle = with_linker(Linker::fresh);
    }
    with_linker(|linker| linker.links.insert(handle, Link::new(known, &words)));
    put(out, handle)
}

extern "C" fn destroy(handle: *mut usize) -> u32 {
    if handle.is_null() {
        return result::INVALID_INPUT;
    }
    // SAFETY: the C caller passes the address of its handle.
    let number = unsafe { handle.read() };
    match with_linker(|linker| linker.links.remove(&number)) {
        None => result::INVALID_INPUT,
        Some(Link { real: Some(_), .. }) => real("nvJitLinkDestroy", handle.expose_provenance(), [0; 4]),
        Some(_) => put(handle, 0),
    }
}

/// Adds data to a link, here or in the real library.
fn add(handle: usize, kind: u32, data: &[u8], name: *const c_char) -> u32 {
    let mut taken = Taken::Here;
    let added = with_link(handle, |link| {
        taken = link.add(kind, data, &string(name));
        result::SUCCESS
    });
    match taken {
        Taken::Here => added,
        Taken::Refused(why) => why,
        Taken::Real => {
            let words = [kind as usize, data.as_ptr().expose_provenance(), data.len(), name.expose_provenance()];
            real("nvJitLinkAddData", handle, words)
        }
    }
}

extern "C" fn add_data(handle: usize, kind: u32, data: *const u8, size: usize, name: *const c_char) -> u32 {
    if data.is_null() {
        return result::INVALID_INPUT;
    }
    // SAFETY: the C caller guarantees that many bytes.
    add(handle, kind, unsafe { std::slice::from_raw_parts(data, size) }, name)
}

extern "C" fn add_file(handle: usize, kind: u32, name: *const c_char) -> u32 {
    match std::fs::read(path(name)) {
        Ok(bytes) => add(handle, kind, &bytes, name),
        Err(_) => result::INVALID_INPUT,
    }
}

extern "C" fn complete(handle: usize) -> u32 {
    let given = with_linker(|linker| linker.links.get(&handle).is_some_and(|link| link.given));
    match given.then(|| real_ptx(handle)).transpose() {
        Ok(linked) => with_link(handle, |link| link.complete(linked)),
        Err(error) => error,
    }
}

/// The PTX that the real library links from its inputs.
fn real_ptx(handle: usize) -> Result<String, u32> {
    let call = |name: &str, word: usize| match real(name, handle, [word, 0, 0, 0]) {
        result::SUCCESS => Ok(()),
        error => Err(error),
    };
    let mut size = 0usize;
    call("nvJitLinkComplete", 0)?;
    call("nvJitLinkGetLinkedPtxSize", (&raw mut size).expose_provenance())?;
    let mut text = vec![0u8; size];
    call("nvJitLinkGetLinkedPtx", text.as_mut_ptr().expose_provenance())?;
    Ok(String::from_utf8_lossy(&text).trim_end_matches('\0').to_string())
}

extern "C" fn image_size(handle: usize, size: *mut usize) -> u32 {
    with_link(handle, |link| put(size, link.image().len()))
}

extern "C" fn image(handle: usize, out: *mut u8) -> u32 {
    with_link(handle, |link| put_bytes(out, link.image()))
}

/// Whether the log of a link is the real library's.
fn has_real_log(handle: usize) -> bool {
    with_linker(|linker| linker.links.get(&handle).is_some_and(|link| link.real.is_some() && !link.has_log()))
}

extern "C" fn log_size(handle: usize, size: *mut usize) -> u32 {
    match has_real_log(handle) {
        true => real("nvJitLinkGetErrorLogSize", handle, [size.expose_provenance(), 0, 0, 0]),
        false => with_link(handle, |link| put(size, link.log().len())),
    }
}

extern "C" fn log(handle: usize, out: *mut u8) -> u32 {
    match has_real_log(handle) {
        true => real("nvJitLinkGetErrorLog", handle, [out.expose_provenance(), 0, 0, 0]),
        false => with_link(handle, |link| put_bytes(out, &link.log())),
    }
}

extern "C" fn no_log_size(handle: usize, size: *mut usize) -> u32 {
    match has_real_log(handle) {
        true => real("nvJitLinkGetInfoLogSize", handle, [size.expose_provenance(), 0, 0, 0]),
        false => with_link(handle, |_| put(size, 1)),
    }
}

extern "C" fn no_log(handle: usize, out: *mut u8) -> u32 {
    match has_real_log(handle) {
        true => real("nvJitLinkGetInfoLog", handle, [out.expose_provenance(), 0, 0, 0]),
        false => with_link(handle, |_| put_bytes(out, b"\0")),
    }
}
