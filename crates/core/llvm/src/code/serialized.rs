//! Serialization of [`crate::code::compile::Facts`], stored with the code on disk.

use crate::code::{key::CacheKey, library::LibraryFunction};
use crate::emit::{GroupSite, Moment, Site, SiteKind};
use margay_exec::{AccessKind, FaultKind};
use margay_ir::Builtin;
use margay_isa::Mod;

/// Names of spaces in [`SiteKind::Access`]; serialized by index.
const SPACES: [&str; 6] = [".shared", ".local", ".param", ".global", ".const", "generic"];
/// Reductions of barriers; serialized by index.
const REDUCTIONS: [Mod; 3] = [Mod::And, Mod::Or, Mod::Popc];

/// Kinds of accesses in [`SiteKind::Observed`]; serialized by index.
const ACCESSES: [AccessKind; 4] = [AccessKind::Load, AccessKind::Store, AccessKind::Atomic, AccessKind::Free];

/// Fault kinds that carry a text; serialized by index.
const FAULTS: [fn(String) -> FaultKind; 6] = [
    FaultKind::Stack,
    FaultKind::BadTarget,
    FaultKind::Barrier,
    FaultKind::Descriptor,
    FaultKind::BadHandle,
    FaultKind::Undefined,
];

/// The index of a kind in [`FAULTS`], and its text.
fn fault(kind: &FaultKind) -> Option<(u64, &str)> {
    Some(match kind {
        FaultKind::Stack(text) => (0, text),
        FaultKind::BadTarget(text) => (1, text),
        FaultKind::Barrier(text) => (2, text),
        FaultKind::Descriptor(text) => (3, text),
        FaultKind::BadHandle(text) => (4, text),
        FaultKind::Undefined(text) => (5, text),
        _ => return None,
    })
}

/// The index of an element in a list, from which [`Decoder`] takes it; a number that no list has if it is not there.
fn position<T: PartialEq>(list: &[T], element: &T) -> u64 {
    list.iter().position(|e| e == element).map_or(u64::MAX, |i| i as u64)
}

/// Writes numbers and texts. Numbers are LEB128: seven bits per byte, lowest first; the eighth bit marks continuation.
#[derive(Default)]
pub struct Encoder(pub Vec<u8>);

impl Encoder {
    pub fn number(&mut self, n: u64) {
        let mut n = n;
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    pub fn numbers(&mut self, all: impl ExactSizeIterator<Item = u64>) {
        self.number(all.len() as u64);
        all.for_each(|n| self.number(n));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    /// Writes the functions of the library that code calls.
    pub fn library<'f>(&mut self, functions: impl ExactSizeIterator<Item = &'f LibraryFunction>) {
        self.number(functions.len() as u64);
        for LibraryFunction { symbol, key } in functions {
            self.bytes(symbol.as_bytes());
            key.0.iter().for_each(|n| self.number(*n));
        }
    }

    /// Writes the tag of a kind of site, and its fields.
    fn record<const N: usize>(&mut self, tag: u64, fields: [u64; N]) {
        self.number(tag);
        fields.into_iter().for_each(|field| self.number(field));
    }

    /// Writes a site; false if it has no serialized form.
    #[must_use]
    pub fn site(&mut self, site: &Site) -> bool {
        for n in [site.func, site.inst, site.at] {
            self.number(n.into());
        }
        match &site.kind {
            SiteKind::Access { size, write, space, span, shift } => {
                let space = position(&SPACES, space);
                self.record(0, [u64::from(*size), u64::from(*write), space, *span, u64::from(*shift)]);
            }
            SiteKind::Lanes => self.record(1, []),
            SiteKind::Pure { srcs, dsts } => {
                self.record(2, []);
                [srcs, dsts].into_iter().for_each(|bits| self.numbers(bits.iter().map(|b| u64::from(*b))));
            }
            SiteKind::Effect { reads, writes, seldom } => {
                self.record(3, [*reads as u64, *writes as u64, u64::from(*seldom)]);
            }
            SiteKind::Barrier { counted, reduces, arrives } => {
                let reduces = reduces.map_or(0, |m| position(&REDUCTIONS, &m).wrapping_add(1));
                self.record(4, [u64::from(*counted), reduces, u64::from(*arrives)]);
            }
            SiteKind::Fault(what) => {
                self.record(5, []);
                self.bytes(what.as_bytes());
            }
            SiteKind::Poll => self.record(6, []),
            SiteKind::Builtin { builtin, args } => self.record(7, [position(&Builtin::ALL, builtin), *args as u64]),
            SiteKind::Fails(kind) => {
                let Some((kind, text)) = fault(kind) else { return false };
                self.record(8, [kind]);
                self.bytes(text.as_bytes());
            }
            SiteKind::Call => self.record(9, []),
            SiteKind::Cluster { waits } => self.record(10, [u64::from(*waits)]),
            SiteKind::Parameter { size, write, passed } => {
                self.record(11, [u64::from(*size), u64::from(*write), u64::from(*passed)]);
            }
            SiteKind::Alloca => self.record(12, []),
            SiteKind::Restore => self.record(13, []),
            SiteKind::LeftOut => self.record(14, []),
            SiteKind::Jump => self.record(15, []),
            SiteKind::Held => self.record(16, []),
            SiteKind::Observed { bytes, access, stride } => {
                self.record(17, [u64::from(*bytes), position(&ACCESSES, access), *stride]);
            }
            SiteKind::Moment(moment) => self.record(18, [position(&Moment::ALL, moment)]),
            SiteKind::Bounded { bytes, access, span } => {
                self.record(19, [u64::from(*bytes), position(&ACCESSES, access), *span]);
            }
            SiteKind::Group(GroupSite { members, lead, least, span, odd, odd_at }) => {
                self.record(20, [*lead as u64, *least as u64, *span, *odd, *odd_at as u64]);
                let members: Vec<u64> = members.iter().flat_map(|(site, plus)| [*site as u64, *plus as u64]).collect();
                self.numbers(members.into_iter());
            }
            SiteKind::Returned => self.record(21, []),
            SiteKind::Overrun { bytes, access, bottom, top } => {
                self.record(22, [u64::from(*bytes), position(&ACCESSES, access), u64::from(*bottom), u64::from(*top)]);
            }
        }
        true
    }
}

/// Reads what [`Encoder`] has written; `None` for anything else.
pub struct Decoder<'a>(pub &'a [u8]);

impl Decoder<'_> {
    pub fn number(&mut self) -> Option<u64> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            n |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(n);
            }
        }
        None
    }

    /// Reads a count of elements, each of which takes a byte or more.
    fn length(&mut self) -> Option<usize> {
        let n = usize::try_from(self.number()?).ok()?;
        (n <= self.0.len()).then_some(n)
    }

    pub fn numbers<T: TryFrom<u64>>(&mut self) -> Option<Vec<T>> {
        (0..self.length()?).map(|_| T::try_from(self.number()?).ok()).collect()
    }

    /// Reads the functions of the library that code calls.
    pub fn library(&mut self) -> Option<Vec<LibraryFunction>> {
        (0..self.length()?)
            .map(|_| {
                let symbol = self.text()?;
                Some(LibraryFunction { symbol, key: CacheKey([self.number()?, self.number()?]) })
            })
            .collect()
    }

    /// Reads all sites.
    pub fn sites(&mut self) -> Option<Vec<Site>> {
        (0..self.length()?).map(|_| self.site()).collect()
    }

    /// Reads a truth value.
    pub fn bit(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Reads a number that fits in a narrower type.
    fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    /// Reads the element of a list that is stored by its index.
    fn element<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        list.get(self.small::<usize>()?).copied()
    }

    fn text(&mut self) -> Option<String> {
        let length = self.length()?;
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn site(&mut self) -> Option<Site> {
        let (func, inst, at) = (self.small()?, self.small()?, self.small()?);
        let kind = match self.number()? {
            0 => SiteKind::Access {
                size: self.small()?,
                write: self.bit()?,
                space: self.element(&SPACES)?,
                span: self.number()?,
                shift: self.small()?,
            },
            1 => SiteKind::Lanes,
            2 => SiteKind::Pure { srcs: self.numbers()?, dsts: self.numbers()? },
            3 => SiteKind::Effect { reads: self.small()?, writes: self.small()?, seldom: self.bit()? },
            4 => SiteKind::Barrier {
                counted: self.bit()?,
                reduces: match self.small::<usize>()? {
                    0 => None,
                    n => Some(*REDUCTIONS.get(n - 1)?),
                },
                arrives: self.bit()?,
            },
            5 => SiteKind::Fault(self.text()?.into()),
            6 => SiteKind::Poll,
            7 => SiteKind::Builtin { builtin: self.element(&Builtin::ALL)?, args: self.small()? },
            8 => SiteKind::Fails(self.element(&FAULTS)?(self.text()?)),
            9 => SiteKind::Call,
            10 => SiteKind::Cluster { waits: self.bit()? },
            11 => SiteKind::Parameter { size: self.small()?, write: self.bit()?, passed: self.bit()? },
            12 => SiteKind::Alloca,
            13 => SiteKind::Restore,
            14 => SiteKind::LeftOut,
            15 => SiteKind::Jump,
            16 => SiteKind::Held,
            17 => SiteKind::Observed { bytes: self.small()?, access: self.element(&ACCESSES)?, stride: self.number()? },
            18 => SiteKind::Moment(self.element(&Moment::ALL)?),
            19 => SiteKind::Bounded { bytes: self.small()?, access: self.element(&ACCESSES)?, span: self.number()? },
            20 => {
                let (lead, least, span) = (self.small::<usize>()?, self.number()? as i64, self.number()?);
                let (odd, odd_at) = (self.number()?, self.number()? as i64);
                let members = self.numbers::<u64>()?;
                let members = members.as_chunks().0.iter().map(|[site, plus]| (*site as usize, *plus as i64)).collect();
                SiteKind::Group(GroupSite { members, lead, least, span, odd, odd_at })
            }
            21 => SiteKind::Returned,
            22 => SiteKind::Overrun {
                bytes: self.small()?,
                access: self.element(&ACCESSES)?,
                bottom: self.small()?,
                top: self.small()?,
            },
            _ => return None,
        };
        Some(Site { func, inst, at, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_library_round_trip() {
        let function = |symbol: &str, n| LibraryFunction { symbol: symbol.into(), key: CacheKey([n, !n]) };
        let all = vec![function("margay.gather.i32", 7), function("margay.scatter.8", u64::MAX)];
        let mut out = Encoder::default();
        out.library(all.iter());
        assert_eq!(Decoder(&out.0).library(), Some(all));
        for cut in 0..out.0.len() {
            assert_eq!(Decoder(&out.0[..cut]).library(), None, "{cut} of {} bytes", out.0.len());
        }
    }

    #[test]
    fn sites_round_trip() {
        let kinds = [
            SiteKind::Access { size: 16, write: true, space: "generic", span: 512, shift: 3 },
            SiteKind::Lanes,
            SiteKind::Group(GroupSite {
                members: vec![(2, -8), (5, 0)],
                lead: 5,
                least: -8,
                span: 12,
                odd: 7,
                odd_at: -1,
            }),
            SiteKind::Pure { srcs: vec![32, 1], dsts: vec![64] },
            SiteKind::Effect { reads: 3, writes: 0, seldom: true },
            SiteKind::Barrier { counted: true, reduces: Some(Mod::Popc), arrives: false },
            SiteKind::Barrier { counted: false, reduces: None, arrives: true },
            SiteKind::Fault("trap".into()),
            SiteKind::Poll,
            SiteKind::Call,
            SiteKind::Parameter { size: 8, write: false, passed: true },
            SiteKind::Alloca,
            SiteKind::Restore,
            SiteKind::LeftOut,
            SiteKind::Returned,
            SiteKind::Jump,
            SiteKind::Held,
            SiteKind::Cluster { waits: true },
            SiteKind::Builtin { builtin: Builtin::Free, args: 1 },
            SiteKind::Observed { bytes: 8, access: AccessKind::Atomic, stride: 0u64.wrapping_sub(4) },
            SiteKind::Bounded { bytes: 4, access: AccessKind::Store, span: 128 },
            SiteKind::Overrun { bytes: 16, access: AccessKind::Load, bottom: 16, top: 40 },
            SiteKind::Moment(Moment::Complete),
            SiteKind::Fails(FaultKind::Undefined("f".into())),
        ];
        let sites: Vec<Site> = kinds.into_iter().map(|kind| Site { func: 1, inst: u32::MAX, at: 7, kind }).collect();
        let mut out = Encoder::default();
        out.number(sites.len() as u64);
        assert!(sites.iter().all(|s| out.site(s)));
        assert_eq!(Decoder(&out.0).sites(), Some(sites));
        for cut in 0..out.0.len() {
            assert_eq!(Decoder(&out.0[..cut]).sites(), None, "{cut} of {} bytes", out.0.len());
        }
    }
}
