//! Reader for sections and symbols of 64-bit ELF files ("System V Application Binary Interface", chapters 4 and 5).
//! Reads only what is needed, since libraries of gigabytes are inspected when they are loaded.

use memchr::memmem;
use std::{cell::RefCell, collections::HashMap, fs::File, io, os::unix::fs::FileExt, rc::Rc};

/// A file with its section table.
#[derive(Debug)]
pub struct Elf {
    file: File,
    len: u64,
    /// `e_machine`
    pub machine: u16,
    /// All sections, in the file's order.
    pub sections: Vec<Section>,
    /// String tables that were read, by section: those of large libraries take as long to read as to search.
    strings: RefCell<HashMap<u32, Rc<[u8]>>>,
}

/// A section of the file.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Offset of its bytes in the file; unused for `SHT_NOBITS`.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// Index of the linked section, such as a symbol table's string table.
    link: u32,
}

/// A function defined by the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Its address relative to the load address.
    pub address: u64,
    /// Size of its code in bytes.
    pub size: u64,
}

/// `e_machine` of x86-64.
pub const X86_64: u16 = 62;
/// Limit of bytes read of any table.
const LIMIT: u64 = 1 << 30;
const NO_BITS: u32 = 8;
const FUNCTION: u8 = 2;
const INDIRECT_FUNCTION: u8 = 10;

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut wide = [0; 8];
    if let Some(found) = bytes.get(at..at + N) {
        wide[..N].copy_from_slice(found);
    }
    u64::from_le_bytes(wide)
}

/// A NUL-terminated name in a string table.
fn name(names: &[u8], at: u64) -> &[u8] {
    let rest = usize::try_from(at).ok().and_then(|at| names.get(at..)).unwrap_or_default();
    rest.split(|b| *b == 0).next().unwrap_or_default()
}

impl Elf {
    /// Opens a file; `None` if it is not a 64-bit little-endian ELF file.
    pub fn open(file: File) -> io::Result<Option<Elf>> {
        let len = file.metadata()?.len();
        let mut head = [0; 64];
        if len < 64 || file.read_exact_at(&mut head, 0).is_err() || head[..6] != *b"\x7fELF\x02\x01" {
            return Ok(None);
        }
        let (table, each, count) = (number::<8>(&head, 40), number::<2>(&head, 58), number::<2>(&head, 60));
        let mut elf = Elf {
            file,
            len,
            machine: number::<2>(&head, 18) as u16,
            sections: Vec::new(),
            strings: RefCell::default(),
        };
        if each < 64 || table == 0 {
            return Ok(Some(elf)); // nothing is said of sections
        }
        let bytes = elf.read(table, each * count)?;
        let entry = |i: u64| bytes.get((i * each) as usize..).unwrap_or_default();
        let part = |of: &[u8]| {
            let size = if number::<4>(of, 4) as u32 == NO_BITS { 0 } else { number::<8>(of, 32) };
            Section { name: String::new(), offset: number::<8>(of, 24), size, link: number::<4>(of, 40) as u32 }
        };
        let names = part(entry(number::<2>(&head, 62)));
        let names = elf.read(names.offset, names.size)?;
        elf.sections = (0..count)
            .map(|i| {
                let found = String::from_utf8_lossy(name(&names, number::<4>(entry(i), 0))).into_owned();
                Section { name: found, ..part(entry(i)) }
            })
            .collect();
        Ok(Some(elf))
    }

    /// The section of this name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name && s.size > 0)
    }

    /// Reads bytes of the file; an error if they lie outside or are implausibly many.
    pub fn read(&self, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        if size > LIMIT || offset.checked_add(size).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; size as usize];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// The string table of a symbol table (`.symtab`, `.dynsym`); empty if there is none.
    fn names(&self, table: &str) -> Rc<[u8]> {
        let Some(link) = self.section(table).map(|table| table.link) else { return Rc::default() };
        let read = || {
            let names = self.sections.get(link as usize);
            names.and_then(|names| self.read(names.offset, names.size).ok()).unwrap_or_default().into()
        };
        self.strings.borrow_mut().entry(link).or_insert_with(read).clone()
    }

    /// Whether the string table of a symbol table contains a name.
    pub fn names_contain(&self, table: &str, name: &str) -> bool {
        memmem::find(&self.names(table), &[name.as_bytes(), b"\0"].concat()).is_some()
    }

    /// The functions defined in a symbol table whose names are `wanted`, in order of address.
    pub fn functions(&self, table: &str, wanted: impl Fn(&str) -> bool) -> Vec<Symbol> {
        self.symbols(table, |symbol| symbol.defined && symbol.function && wanted(symbol.name))
    }

    /// Whether a symbol table has this symbol as undefined.
    pub fn asks_for(&self, table: &str, wanted: &str) -> bool {
        !self.symbols(table, |symbol| !symbol.defined && symbol.name == wanted).is_empty()
    }

    fn symbols(&self, table: &str, wanted: impl Fn(&Entry<'_>) -> bool) -> Vec<Symbol> {
        let names = self.names(table);
        let entries = self.section(table).and_then(|t| self.read(t.offset, t.size).ok()).unwrap_or_default();
        let mut found: Vec<Symbol> = entries
            .chunks_exact(24)
            .filter_map(|entry| {
                let kind = entry[4] & 15;
                let symbol = Entry {
                    name: std::str::from_utf8(name(&names, number::<4>(entry, 0))).ok()?,
                    defined: number::<2>(entry, 6) != 0,
                    function: kind == FUNCTION || kind == INDIRECT_FUNCTION,
                };
                let (address, size) = (number::<8>(entry, 8), number::<8>(entry, 16));
                wanted(&symbol).then(|| Symbol { name: symbol.name.into(), address, size })
            })
            .collect();
        found.sort_by(|a, b| (a.address, &a.name).cmp(&(b.address, &b.name)));
        found
    }
}

/// The fields of a symbol.
struct Entry<'a> {
    name: &'a str,
    defined: bool,
    function: bool,
}
