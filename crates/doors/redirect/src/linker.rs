//! Replacement of NVIDIA's run-time linker nvJitLink: when programs ask it for machine code, they get PTX that margay's
//! driver loads.
//!
//! * PTX is passed through ([`margay_image::linked`]); the driver links it.
//! * Intermediate code for link-time optimization (LTO-IR) is linked by the real library, with the option `-ptx`.
//! * Machine code cannot be converted: an error that names the input.

use crate::undefined::undefined;
use margay_image::{
    fatbin::{self, Kind},
    linked::{limited, pack, unpack},
};
use std::collections::BTreeMap;

/// `nvJitLinkInputType`
pub mod input {
    pub const CUBIN: u32 = 1;
    pub const PTX: u32 = 2;
    pub const LTO: u32 = 3;
    pub const FATBIN: u32 = 4;
    pub const OBJECT: u32 = 5;
    pub const LIBRARY: u32 = 6;
    pub const ANY: u32 = 10;
}

/// The start of a library: an archive of object files.
const ARCHIVE: &[u8] = b"!<arch>\n";

/// `nvJitLinkResult`
pub mod result {
    pub const SUCCESS: u32 = 0;
    pub const INVALID_INPUT: u32 = 3;
    /// The real library's result for undefined symbols.
    pub const INTERNAL: u32 = 6;
    pub const UNRECOGNIZED_INPUT: u32 = 8;
    pub const LTO_NOT_ENABLED: u32 = 18;
}

/// A link, in progress or complete.
#[derive(Debug, Default)]
pub struct Link {
    /// The real library's handle, if link-time optimization was requested.
    pub real: Option<usize>,
    /// Whether an input was passed to the real library.
    pub given: bool,
    /// The maximum number of registers of a thread (`-maxrregcount`).
    pub registers: Option<u32>,
    texts: Vec<String>,
    /// The input that each text came from; none for the members of libraries, since a link takes only those it needs.
    names: Vec<Option<String>>,
    image: Vec<u8>,
    log: String,
}

/// What was done with an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// Added to the link.
    Here,
    /// To be passed to the real library.
    Real,
    /// Rejected with this result.
    Refused(u32),
}

impl Link {
    /// Creates a link with the given options, and with the real library's handle if it participates.
    pub fn new(real: Option<usize>, options: &[String]) -> Link {
        let registers = options.iter().find_map(|word| word.strip_prefix("-maxrregcount=")?.parse().ok());
        Link { real, registers, ..Link::default() }
    }

    /// Adds an input, unless it is the real library's or invalid.
    pub fn add(&mut self, kind: u32, data: &[u8], name: &str) -> Taken {
        let is_text = data.iter().take(64).all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace() || *b == 0);
        let texts = match kind {
            input::PTX => texts_of(data),
            // What NVRTC or an earlier link returns as machine code is PTX here.
            input::CUBIN | input::ANY if is_text => texts_of(data),
            input::LTO => return self.add_intermediate(name),
            input::FATBIN | input::OBJECT | input::LIBRARY | input::ANY => newest(data),
            _ => Vec::new(),
        };
        if texts.is_empty() {
            // Unknown data is passed to the real library, if it participates.
            return match (kind, self.real) {
                (input::ANY, Some(_)) => self.hand_over(),
                (input::FATBIN | input::OBJECT | input::LIBRARY | input::ANY, _) if is_intermediate(data) => {
                    self.add_intermediate(name)
                }
                _ => {
                    self.refuse(name, "contains machine code and no PTX; compile it to PTX", result::UNRECOGNIZED_INPUT)
                }
            };
        }
        let is_library = data.starts_with(ARCHIVE);
        self.names.resize(self.texts.len() + texts.len(), (!is_library).then(|| or_anonymous(name).into()));
        self.texts.extend(texts);
        Taken::Here
    }

    /// Leaves LTO-IR to the real library, which takes it only if the program asked for link-time optimization.
    fn add_intermediate(&mut self, name: &str) -> Taken {
        match self.real {
            Some(_) => self.hand_over(),
            None => self.refuse(name, "is LTO-IR, but the option -lto is missing", result::LTO_NOT_ENABLED),
        }
    }

    fn hand_over(&mut self) -> Taken {
        self.given = true;
        Taken::Real
    }

    fn refuse(&mut self, name: &str, why: &str, result: u32) -> Taken {
        self.append(&format!("{} {why}", or_anonymous(name)));
        Taken::Refused(result)
    }

    fn append(&mut self, words: &str) {
        let line = format!("margay: nvJitLink: {words}\n");
        eprint!("{line}");
        self.log += &line;
    }

    /// Completes the link, with the PTX from the real library if any.
    pub fn complete(&mut self, linked: Option<String>) -> u32 {
        let optimized = linked.is_some();
        self.names.extend(linked.iter().map(|_| Some("the LTO-IR".into())));
        self.texts.extend(linked);
        if self.texts.is_empty() {
            self.log += "margay: nvJitLink: nothing was linked\n";
            return result::INVALID_INPUT;
        }
        if self.lacks_symbols(optimized) {
            return result::INTERNAL;
        }
        if let Some(most) = self.registers {
            self.texts.iter_mut().for_each(|text| *text = limited(text, most));
        }
        self.image = pack(&self.texts);
        result::SUCCESS
    }

    /// Reports the symbols that are used and not defined; whether there are any.
    fn lacks_symbols(&mut self, optimized: bool) -> bool {
        let texts: Vec<&str> = self.texts.iter().map(String::as_str).collect();
        let missing = undefined(&texts, |i| self.names[i].is_some()).into_iter();
        let at = |(name, text): (String, usize)| {
            // nvJitLink's own words, which clients look for.
            format!("Undefined reference to '{name}' in '{}'", self.names[text].as_deref().unwrap_or_default())
        };
        let lines: Vec<String> = missing.map(at).collect();
        lines.iter().for_each(|line| self.append(line));
        if optimized && !lines.is_empty() {
            self.append(
                "link-time optimization removes what only PTX uses of LTO-IR; compile all inputs to LTO-IR, or all to PTX",
            );
        }
        !lines.is_empty()
    }

    /// The result returned as machine code; empty before the link is complete.
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// Whether errors were logged here.
    pub fn has_log(&self) -> bool {
        !self.log.is_empty()
    }

    /// The error log, NUL-terminated.
    pub fn log(&self) -> Vec<u8> {
        [self.log.as_bytes(), b"\0"].concat()
    }
}

fn or_anonymous(name: &str) -> &str {
    if name.is_empty() { "an input" } else { name }
}

/// The modules in an input of text: one, or those of an earlier link.
fn texts_of(data: &[u8]) -> Vec<String> {
    let end = data.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let one = || std::str::from_utf8(&data[..end]).map(|text| vec![text.to_string()]).unwrap_or_default();
    unpack(&data[..end]).map_or_else(one, Result::unwrap_or_default)
}

/// Whether an input holds LTO-IR, such as an object file of `nvcc -dlto`.
fn is_intermediate(data: &[u8]) -> bool {
    fatbin::inside(data).iter().flatten().any(|entry| entry.kind == Kind::Lto)
}

/// The PTX of the newest architecture in each fat binary of an input.
fn newest(data: &[u8]) -> Vec<String> {
    let of = |entries: Vec<fatbin::Entry<'_>>| {
        let ptx = || entries.iter().filter(|e| e.kind == Kind::Ptx);
        let best = ptx().map(|e| e.architecture).max();
        let texts = ptx().filter(|e| Some(e.architecture) == best).filter_map(fatbin::Entry::text);
        fatbin::of_one_target(texts.collect(), String::as_str, true)
    };
    fatbin::inside(data).into_iter().flat_map(of).collect()
}

/// The links of a process by handle, and the real library's functions.
#[derive(Debug, Default)]
pub struct Linker {
    /// The real functions, by documented name.
    pub real: BTreeMap<&'static str, usize>,
    /// Links by handle: the real library's, or one of margay's.
    pub links: BTreeMap<usize, Link>,
    next: usize,
}

impl Linker {
    /// A new handle of margay's, which is odd and so not an address.
    pub fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next << 4 | 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_is_linked_unchanged() {
        let mut link = Link::default();
        assert_eq!(link.add(input::PTX, b".version 7.0\n\0", "a"), Taken::Here);
        assert_eq!(link.add(input::ANY, b".version 8.0\n", "b"), Taken::Here);
        assert_eq!(link.complete(None), result::SUCCESS);
        assert_eq!(link.image(), pack(&[".version 7.0\n".into(), ".version 8.0\n".into()]));
    }

    #[test]
    fn a_limit_of_registers_goes_with_every_text() {
        let mut link = Link::new(None, &["-arch=sm_80".into(), "-maxrregcount=38".into()]);
        assert_eq!(link.add(input::PTX, b".version 7.0\n", "a"), Taken::Here);
        assert_eq!(link.add(input::PTX, b".version 7.1\n", "b"), Taken::Here);
        assert_eq!(link.complete(None), result::SUCCESS);
        assert_eq!(link.image(), pack(&[limited(".version 7.0\n", 38), limited(".version 7.1\n", 38)]));
    }

    #[test]
    fn lto_ir_is_left_to_nvidias_library() {
        let mut link = Link { real: Some(8), ..Link::default() };
        assert_eq!(link.add(input::LTO, b"\xde\xc0\x17\x0b", "a"), Taken::Real);
        assert_eq!(link.complete(Some(".version 9.0\n".into())), result::SUCCESS);
        assert_eq!(link.image(), b".version 9.0\n\0");
        let alone = Link::default().add(input::LTO, b"BC", "a");
        assert_eq!(alone, Taken::Refused(result::LTO_NOT_ENABLED));
    }

    #[test]
    fn what_nvrtc_returns_in_place_of_machine_code_is_linked() {
        let mut link = Link::default();
        assert_eq!(link.add(input::CUBIN, b".version 7.0\n\0", "a"), Taken::Here);
        let earlier = pack(&[".version 7.1\n".into(), ".version 7.2\n".into()]);
        assert_eq!(link.add(input::CUBIN, &earlier, "b"), Taken::Here);
        assert_eq!(link.complete(None), result::SUCCESS);
        let all = [".version 7.0\n", ".version 7.1\n", ".version 7.2\n"].map(String::from);
        assert_eq!(link.image(), pack(&all));
    }

    /// The layout is in the crate `margay-image` (`fatbin.rs`): a header of 16 bytes, then entries with headers of their own.
    #[test]
    fn lto_ir_in_a_fat_binary_is_left_to_nvidias_library() {
        let mut entry = vec![0u8; 64];
        entry[..2].copy_from_slice(&8u16.to_le_bytes()); // LTO-IR
        entry[4..8].copy_from_slice(&64u32.to_le_bytes());
        entry[8..16].copy_from_slice(&8u64.to_le_bytes());
        entry[28..32].copy_from_slice(&80u32.to_le_bytes());
        entry.extend(b"\xde\xc0\x17\x0b\0\0\0\0");
        let mut fat = 0xba55_ed50u32.to_le_bytes().to_vec();
        fat.extend(1u16.to_le_bytes().into_iter().chain(16u16.to_le_bytes()));
        fat.extend((entry.len() as u64).to_le_bytes());
        fat.extend(entry);
        let mut link = Link { real: Some(8), ..Link::default() };
        assert_eq!(link.add(input::FATBIN, &fat, "a.fatbin"), Taken::Real);
        assert_eq!(Link::default().add(input::FATBIN, &fat, "a"), Taken::Refused(result::LTO_NOT_ENABLED));
    }

    #[test]
    fn undefined_symbols_fail_by_name() {
        const CALLER: &[u8] = b".extern .func f();\n.visible .entry k() { call f, (); ret; }";
        let mut link = Link::default();
        assert_eq!(link.add(input::PTX, CALLER, "k.ptx"), Taken::Here);
        assert_eq!(link.complete(None), result::INTERNAL);
        assert_eq!(link.log(), b"margay: nvJitLink: Undefined reference to 'f' in 'k.ptx'\n\0");
        let mut link = Link { real: Some(8), ..Link::default() };
        assert_eq!(link.add(input::PTX, CALLER, ""), Taken::Here);
        assert_eq!(link.complete(Some(".visible .entry l() { ret; }".into())), result::INTERNAL);
        let log = String::from_utf8(link.log()).unwrap();
        assert!(log.contains("'f' in 'an input'\n") && log.contains("removes what only PTX uses"), "{log}");
    }

    #[test]
    fn machine_code_is_refused_by_name() {
        let mut link = Link::default();
        assert_eq!(link.add(input::CUBIN, b"\x7fELF", "kernel.cubin"), Taken::Refused(result::UNRECOGNIZED_INPUT));
        assert!(String::from_utf8(link.log()).unwrap().contains("kernel.cubin contains machine code"));
        assert_eq!(link.complete(None), result::INVALID_INPUT);
    }
}
