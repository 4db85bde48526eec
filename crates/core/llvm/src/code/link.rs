//! Links object code in memory: maps sections, applies relocations, protects pages.
//!
//! LLVM's own linker would do, but a process whose code all comes from the cache needs nothing else of LLVM, and
//! loading that library takes longer than such a process runs. The objects are our own: ELF for x86-64,
//! position-independent code of the small model, without exceptions or thread-local data. Anything else in an object is
//! an error. (System V Application Binary Interface, "Object Files", and its AMD64 supplement, "Relocation".)
//!
//! One of the five files of this crate that may use `unsafe`.
#![allow(unsafe_code)]

use crate::code::library::Library;
use std::{
    collections::HashMap,
    ffi::{CString, c_void},
    ptr::{self, NonNull},
};

/// Page size in bytes: sections with different protections start on pages of their own.
const PAGE: usize = 4096;
/// `SHF_ALLOC` (the section occupies memory) and `SHF_EXECINSTR` (it holds code).
const ALLOC: u64 = 2;
const CODE: u64 = 4;
/// `SHF_WRITE`
const WRITE: u64 = 1;
/// Section types: `SHT_SYMTAB`, `SHT_RELA`, `SHT_NOBITS`.
const SYMBOLS: u32 = 2;
const RELOCATIONS: u32 = 4;
const NO_BITS: u32 = 8;
/// Relocation types: `R_X86_64_64`, `R_X86_64_PC32`, `R_X86_64_PLT32`.
const ABSOLUTE: u32 = 1;
const PC_RELATIVE: u32 = 2;
const PLT_RELATIVE: u32 = 4;
/// `R_X86_64_GOTPCREL`, `R_X86_64_GOTPCRELX`, `R_X86_64_REX_GOTPCRELX`: relative to the table entry with the symbol's
/// address.
const GOT_RELATIVE: [u32; 3] = [9, 41, 42];
/// `SHN_UNDEF`, and `SHN_LORESERVE`: the first of the section indices with special meanings.
const UNDEFINED: u16 = 0;
const RESERVED: u16 = 0xff00;
/// Size in bytes of a stub that jumps to a function of this process: `jmp *0(%rip)`, the address, two bytes of padding.
const JUMP: usize = 16;

/// Linked code. Dropping it unmaps the code: holders of addresses into it must hold this too.
pub struct Linked {
    start: NonNull<u8>,
    size: usize,
    symbols: HashMap<String, usize>,
}

// SAFETY: the mapping is written before it is shared and is read-only from then on.
unsafe impl Send for Linked {}
// SAFETY: as above.
unsafe impl Sync for Linked {}

/// An object file. It may come from disk, so every access is checked.
struct Object<'o>(&'o [u8]);

/// The fields of a section header that matter here.
#[derive(Clone, Copy)]
struct Section {
    /// Offset of its name in the string table.
    name: usize,
    kind: u32,
    flags: u64,
    offset: usize,
    size: usize,
    link: usize,
    info: usize,
    align: usize,
}

/// An entry of a relocation table, with the addend.
#[derive(Clone, Copy)]
struct Relocation {
    /// Offset in the section that is relocated.
    offset: usize,
    kind: u32,
    /// Index of the symbol.
    symbol: usize,
    addend: u64,
}

impl Relocation {
    /// Relocates the image, to be mapped at the address `base`, at offset `from`, for a symbol at offset `to`. The table of addresses is at
    /// offset `addresses`.
    fn apply(self, image: &mut [u8], base: usize, addresses: usize, (from, to): (usize, usize)) -> Result<(), String> {
        let by_table = GOT_RELATIVE.contains(&self.kind);
        let word = addresses + 8 * self.symbol;
        if by_table {
            image[word..word + 8].copy_from_slice(&((base + to) as u64).to_le_bytes());
        }
        let value = (if by_table { word } else { to } as u64).wrapping_add(self.addend);
        match self.kind {
            ABSOLUTE => {
                let room = image.get_mut(from..).and_then(|i| i.get_mut(..8)).ok_or_else(damaged)?;
                room.copy_from_slice(&value.wrapping_add(base as u64).to_le_bytes());
            }
            kind if by_table || kind == PC_RELATIVE || kind == PLT_RELATIVE => {
                let distance = value.wrapping_sub(from as u64) as i64;
                let distance = i32::try_from(distance).map_err(|e| e.to_string())?;
                let room = image.get_mut(from..).and_then(|i| i.get_mut(..4)).ok_or_else(damaged)?;
                room.copy_from_slice(&distance.to_le_bytes());
            }
            kind => return Err(format!("compiled code has a relocation of kind {kind}")),
        }
        Ok(())
    }
}

fn damaged() -> String {
    "an object that cannot be read".into()
}

/// A symbol: name, section index, offset in the section.
struct Symbol<'o> {
    name: &'o str,
    section: u16,
    value: usize,
}

impl<'o> Object<'o> {
    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn u16(&self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    fn u32(&self, at: usize) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    fn u64(&self, at: usize) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }

    fn size(&self, at: usize) -> Option<usize> {
        usize::try_from(self.u64(at)?).ok()
    }

    /// Parses the section headers of a relocatable object for x86-64.
    fn sections(&self) -> Option<Vec<Section>> {
        // `\x7fELF`, 64 bits, little-endian; `ET_REL`; `EM_X86_64`.
        let known =
            self.0.starts_with(b"\x7fELF\x02\x01") && (self.u16(16)?, self.u16(18)?) == (1, 62) && self.u16(58)? == 64;
        let (table, count) = (self.size(40)?, usize::from(self.u16(60)?));
        let section = |i: usize| {
            let at = table.checked_add(64 * i)?;
            self.bytes::<64>(at)?;
            Some(Section {
                name: self.u32(at)? as usize,
                kind: self.u32(at + 4)?,
                flags: self.u64(at + 8)?,
                offset: self.size(at + 24)?,
                size: self.size(at + 32)?,
                link: self.u32(at + 40)? as usize,
                info: self.u32(at + 44)? as usize,
                align: self.size(at + 48)?.max(1),
            })
        };
        if !known {
            return None;
        }
        (0..count).map(section).collect()
    }

    /// Reads an entry of a relocation table.
    fn relocation(&self, at: usize) -> Option<Relocation> {
        let (offset, info, addend) = (self.size(at)?, self.u64(at + 8)?, self.u64(at + 16)?);
        Some(Relocation { offset, kind: info as u32, symbol: (info >> 32) as usize, addend })
    }

    fn content(&self, section: &Section) -> Option<&'o [u8]> {
        self.0.get(section.offset..section.offset.checked_add(section.size)?)
    }

    /// Whether a section holds variables. `.data.rel.ro` is allowed: it holds constant tables of relocated addresses.
    fn has_variables(&self, sections: &[Section]) -> Option<bool> {
        let names = self.content(sections.get(usize::from(self.u16(62)?))?)?;
        let mut writable = sections.iter().filter(|s| s.flags & (ALLOC | WRITE) == ALLOC | WRITE && s.size > 0);
        Some(!writable.all(|s| names.get(s.name..).is_some_and(|n| n.starts_with(b".data.rel.ro"))))
    }

    fn symbols(&self, sections: &[Section]) -> Option<Vec<Symbol<'o>>> {
        let Some(table) = sections.iter().find(|s| s.kind == SYMBOLS) else { return Some(Vec::new()) };
        let names = self.content(sections.get(table.link)?)?;
        self.content(table)?;
        let symbol = |i: usize| {
            let at = table.offset + 24 * i;
            let name = names.get(self.u32(at)? as usize..)?;
            let end = name.iter().position(|b| *b == 0)?;
            let name = std::str::from_utf8(&name[..end]).ok()?;
            Some(Symbol { name, section: self.u16(at + 6)?, value: self.size(at + 8)? })
        };
        (0..table.size / 24).map(symbol).collect()
    }
}

/// Offsets in the mapping: code and stubs first, then read-only data.
struct Layout {
    /// By section; `None` for sections that occupy no memory.
    sections: Vec<Option<usize>>,
    /// The stubs, one per undefined symbol.
    jumps: usize,
    /// The end of code and stubs.
    code: usize,
    /// One word per symbol, for its address.
    addresses: usize,
    size: usize,
}

impl Layout {
    fn new(sections: &[Section], jumps: usize, symbols: usize) -> Option<Layout> {
        let mut places = vec![None; sections.len()];
        let mut size = 0usize;
        let mut put = |code: bool, size: &mut usize| {
            for (place, section) in places.iter_mut().zip(sections) {
                if section.flags & ALLOC != 0 && (section.flags & CODE != 0) == code {
                    let at = size.checked_next_multiple_of(section.align.min(PAGE))?;
                    *size = at.checked_add(section.size)?;
                    *place = Some(at);
                }
            }
            Some(())
        };
        put(true, &mut size)?;
        let jumps_at = size.checked_next_multiple_of(JUMP)?;
        size = jumps_at.checked_add(jumps.checked_mul(JUMP)?)?;
        let code = size.checked_next_multiple_of(PAGE)?;
        size = code;
        put(false, &mut size)?;
        let addresses = size.checked_next_multiple_of(8)?;
        let size = addresses.checked_add(symbols.checked_mul(8)?)?;
        let size = size.checked_next_multiple_of(PAGE)?.max(PAGE);
        // Displacements must fit into 32 bits.
        (size < 1 << 30).then_some(Layout { sections: places, jumps: jumps_at, code, addresses, size })
    }

    /// The offset of a symbol; an undefined one is among `imports`, and has a stub.
    fn place(&self, symbol: &Symbol<'_>, imports: &[&str]) -> Option<usize> {
        match symbol.section {
            UNDEFINED => imports.iter().position(|n| *n == symbol.name).map(|i| self.jumps + JUMP * i),
            RESERVED.. => None,
            section => self.sections.get(usize::from(section))?.and_then(|at| at.checked_add(symbol.value)),
        }
    }
}

/// The address of a function of this process, such as `memcpy`, which LLVM calls on its own account.
fn process_symbol(name: &str) -> Result<u64, String> {
    let symbol = CString::new(name).map_err(|e| e.to_string())?;
    // SAFETY: the name is NUL-terminated and outlives the call.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) };
    match address.is_null() {
        true => Err(format!("compiled code calls `{name}`, which this process does not have")),
        false => Ok(address as u64),
    }
}

impl Linked {
    /// Links one relocatable object; undefined symbols are resolved in the library, else in this process. Callers of
    /// the code must hold the library too.
    pub fn object(bytes: &[u8], library: &Library) -> Result<Linked, String> {
        let object = Object(bytes);
        let sections = object.sections().ok_or_else(damaged)?;
        if object.has_variables(&sections).ok_or_else(damaged)? {
            return Err("compiled code has variables".into());
        }
        let symbols = object.symbols(&sections).ok_or_else(damaged)?;
        let imports: Vec<&str> =
            symbols.iter().filter(|s| s.section == UNDEFINED && !s.name.is_empty()).map(|s| s.name).collect();
        let layout = Layout::new(&sections, imports.len(), symbols.len()).ok_or_else(damaged)?;
        let mut image = vec![0u8; layout.size];
        for (section, place) in sections.iter().zip(&layout.sections) {
            if let (Some(at), true) = (place, section.kind != NO_BITS) {
                image[*at..at + section.size].copy_from_slice(object.content(section).ok_or_else(damaged)?);
            }
        }
        for (i, name) in imports.iter().enumerate() {
            let jump = &mut image[layout.jumps + JUMP * i..][..JUMP];
            jump[..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
            let address = match library.iter().find(|(function, _)| function.symbol == *name) {
                Some((_, linked)) => linked.address(name)? as u64,
                None => process_symbol(name)?,
            };
            jump[6..14].copy_from_slice(&address.to_le_bytes());
        }
        let mut linked = Linked::map(layout.size)?;
        let base = linked.start.as_ptr().addr();
        for table in sections.iter().filter(|s| s.kind == RELOCATIONS) {
            let Some(Some(section)) = layout.sections.get(table.info) else { continue };
            object.content(table).ok_or_else(damaged)?;
            for at in (table.offset..table.offset + table.size / 24 * 24).step_by(24) {
                let relocation = object.relocation(at).ok_or_else(damaged)?;
                let symbol = symbols.get(relocation.symbol).ok_or_else(damaged)?;
                let to = layout.place(symbol, &imports);
                let to = to.ok_or_else(|| format!("compiled code needs `{}`", symbol.name))?;
                let from = section.checked_add(relocation.offset).ok_or_else(damaged)?;
                relocation.apply(&mut image, base, layout.addresses, (from, to))?;
            }
        }
        linked.fill(&image, layout.code)?;
        let defined = symbols.iter().filter(|s| s.section != UNDEFINED && !s.name.is_empty());
        let address = |symbol| Some(base + layout.place(symbol, &imports)?);
        linked.symbols = defined.filter_map(|s| Some((s.name.to_owned(), address(s)?))).collect();
        Ok(linked)
    }

    /// Maps writable pages, to be protected by [`Linked::fill`].
    fn map(size: usize) -> Result<Linked, String> {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: an anonymous mapping at an address of the kernel's choice affects no existing memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), size, rights, flags, -1, 0) };
        match NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Linked { start, size, symbols: HashMap::new() }),
            None => Err(format!("no memory for {size} bytes of code: {}", std::io::Error::last_os_error())),
        }
    }

    /// Copies the image and protects it: the first `code` bytes become executable, the rest read-only.
    fn fill(&mut self, image: &[u8], code: usize) -> Result<(), String> {
        assert!(image.len() <= self.size && code <= self.size && code.is_multiple_of(PAGE));
        let start = self.start.as_ptr();
        // SAFETY: the mapping has `size` writable bytes, at least as many as the image, and is not shared yet.
        unsafe { ptr::copy_nonoverlapping(image.as_ptr(), start, image.len()) };
        let protect = |at: usize, size: usize, rights| {
            // SAFETY: the pages lie in the mapping, which `self` owns; no reference into it exists.
            let failed = size > 0 && unsafe { libc::mprotect(start.add(at).cast::<c_void>(), size, rights) } != 0;
            if failed { Err(format!("code cannot be protected: {}", std::io::Error::last_os_error())) } else { Ok(()) }
        };
        protect(0, code, libc::PROT_READ | libc::PROT_EXEC)?;
        protect(code, self.size - code, libc::PROT_READ)
    }

    /// The address of a symbol.
    pub fn address(&self, symbol: &str) -> Result<usize, String> {
        self.symbols.get(symbol).copied().ok_or_else(|| format!("compiled code has no `{symbol}`"))
    }
}

impl Drop for Linked {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned, and every possible caller into it has held this value.
        unsafe { libc::munmap(self.start.as_ptr().cast::<c_void>(), self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object with a function `f` in `.text` (`lea 0(%rip), %rax; ret`), whose displacement is relocated against
    /// `.rodata`.
    fn object(kind: u32) -> Vec<u8> {
        let code = [0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xc3];
        let names = b"\0f\0memcpy\0";
        let mut o = vec![0; 64];
        o[..6].copy_from_slice(b"\x7fELF\x02\x01");
        o[16..20].copy_from_slice(&[1, 0, 62, 0]);
        o[58..60].copy_from_slice(&64u16.to_le_bytes());
        o[60..62].copy_from_slice(&6u16.to_le_bytes());
        o[62..64].copy_from_slice(&4u16.to_le_bytes());
        let mut at = |bytes: &[u8]| {
            o.extend(bytes);
            ((o.len() - bytes.len()) as u64, bytes.len() as u64)
        };
        let (text, data, names) = (at(&code), at(&[7; 4]), at(names));
        let mut symbols = vec![0; 24];
        for (name, section, value) in [(0u32, 2u16, 0u64), (1, 1, 0), (3, 0, 0)] {
            symbols.extend(name.to_le_bytes());
            symbols.extend([0, 0]);
            symbols.extend(section.to_le_bytes());
            symbols.extend(value.to_le_bytes());
            symbols.extend([0; 8]);
        }
        let symbols = at(&symbols);
        // Offset 3 of `.text`: symbol 1 (`.rodata`) - 4.
        let relocation = [3u64, 1 << 32 | u64::from(kind), (-4i64) as u64].map(u64::to_le_bytes).concat();
        let relocations = at(&relocation);
        let table = o.len() as u64;
        o[40..48].copy_from_slice(&table.to_le_bytes());
        let all = [
            (0u32, 0u64, (0, 0), 0u32, 0u32),
            (1, ALLOC | CODE, text, 0, 0),
            (1, ALLOC, data, 0, 0),
            (SYMBOLS, 0, symbols, 4, 0),
            (3, 0, names, 0, 0),
            (RELOCATIONS, 0, relocations, 3, 1),
        ];
        for (kind, flags, (offset, size), link, info) in all {
            o.extend([0; 4]);
            o.extend(kind.to_le_bytes());
            o.extend(flags.to_le_bytes());
            o.extend([0; 8]);
            o.extend(offset.to_le_bytes());
            o.extend(size.to_le_bytes());
            o.extend(link.to_le_bytes());
            o.extend(info.to_le_bytes());
            o.extend(4u64.to_le_bytes());
            o.extend([0; 8]);
        }
        o
    }

    #[test]
    fn code_finds_its_data() {
        let linked = Linked::object(&object(PC_RELATIVE), &Library::new()).unwrap();
        let f = linked.address("f").unwrap();
        // SAFETY: the code of `f` lies there; it takes no arguments and returns a pointer.
        let f = unsafe { std::mem::transmute::<usize, extern "C" fn() -> *const u8>(f) };
        // SAFETY: what comes back is the address of `.rodata`, which lives as long as `linked`.
        assert_eq!(unsafe { *f() }, 7);
        assert!(linked.address("g").is_err());
    }

    #[test]
    fn addresses_come_from_a_table() {
        let linked = Linked::object(&object(GOT_RELATIVE[2]), &Library::new()).unwrap();
        let f = linked.address("f").unwrap();
        // SAFETY: as above; `f` returns the address of the word that holds the address of `.rodata`.
        let word = unsafe { std::mem::transmute::<usize, extern "C" fn() -> *const *const u8>(f) }();
        // SAFETY: both lie in the mapping of `linked`.
        assert_eq!(unsafe { **word }, 7);
    }

    #[test]
    fn unknown_relocations_and_damaged_objects_are_errors() {
        assert!(Linked::object(&object(10), &Library::new()).is_err(), "R_X86_64_32");
        let whole = object(PC_RELATIVE);
        for n in 0..whole.len() {
            assert!(Linked::object(&whole[..n], &Library::new()).is_err(), "{n} bytes");
        }
        // A corrupted byte may give an object or an error, but no panic.
        for n in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[n] ^= 0x80;
            let _ = Linked::object(&bytes, &Library::new());
        }
    }
}
