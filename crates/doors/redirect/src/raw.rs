//! What the dynamic linker calls, and what writes into a program's code: the memory behind this library's safe half.
#![allow(unsafe_code)]

use crate::{
    doors::{Doors, Jump, program},
    linker::{Link, Linker, Taken, result},
};
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

/// What acts on the links of the process.
pub fn with_linker<T>(act: impl FnOnce(&mut Linker) -> T) -> T {
    static LINKER: LazyLock<Mutex<Linker>> = LazyLock::new(Mutex::default);
    act(&mut LINKER.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The functions that stand in for nvJitLink's, by name ("nvJitLink", "Linking").
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

/// Calls one of the real library's functions: a handle or its address, and at most four more integers or addresses.
fn real(name: &str, first: usize, words: [usize; 4]) -> u32 {
    type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> u32;
    let Some(address) = with_linker(|linker| linker.real.get(name).copied()) else { return result::INVALID_INPUT };
    // SAFETY: the address is that of the documented function of this name.
    let function = unsafe { std::mem::transmute::<usize, Function>(address) };
    // SAFETY: the function takes five words or fewer in registers, of which it looks at its own; the callers below pass those.
    unsafe { function(first, words[0], words[1], words[2], words[3]) }
}

/// A string that a program passes; empty for null.
fn string(text: *const c_char) -> String {
    path(text).to_string_lossy().into_owned()
}

/// Writes to a place that a program passes.
fn put<T>(place: *mut T, value: T) -> u32 {
    if place.is_null() {
        return result::INVALID_INPUT;
    }
    // SAFETY: the caller of the documented function promises room for its result.
    unsafe { place.write(value) };
    result::SUCCESS
}

fn put_bytes(place: *mut u8, bytes: &[u8]) -> u32 {
    if place.is_null() {
        return result::INVALID_INPUT;
    }
    // SAFETY: the caller asked for the size first and promises that much room ("Linking").
    unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    result::SUCCESS
}

fn with_link(handle: usize, act: impl FnOnce(&mut Link) -> u32) -> u32 {
    with_linker(|linker| linker.links.get_mut(&handle).map_or(result::INVALID_INPUT, act))
}

extern "C" fn create(out: *mut usize, count: u32, options: *const *const c_char) -> u32 {
    // SAFETY: the caller promises that many strings.
    let mut given: Vec<*const c_char> = (0..count as usize).map(|i| unsafe { options.add(i).read() }).collect();
    let words: Vec<String> = given.iter().map(|text| string(*text)).collect();
    let asks = |word: &str| words.iter().any(|w| w == word);
    let (mut handle, mut known) = (0usize, None);
    if asks("-lto") {
        if !asks("-ptx") {
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
    with_linker(|linker| linker.links.insert(handle, Link::new(known)));
    put(out, handle)
}

extern "C" fn destroy(handle: *mut usize) -> u32 {
    if handle.is_null() {
        return result::INVALID_INPUT;
    }
    // SAFETY: the caller passes the address of its handle.
    let number = unsafe { handle.read() };
    match with_linker(|linker| linker.links.remove(&number)) {
        None => result::INVALID_INPUT,
        Some(Link { real: Some(_), .. }) => real("nvJitLinkDestroy", handle.expose_provenance(), [0; 4]),
        Some(_) => put(handle, 0),
    }
}

/// Adds bytes to a link, or has the real library do so.
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
    // SAFETY: the caller promises that many bytes.
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

/// The PTX that the real library makes of what it was given.
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

/// Whether the real library keeps the log of a link.
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
