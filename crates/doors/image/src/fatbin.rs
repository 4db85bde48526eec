//! Parser for fat binaries, as nvcc embeds them in programs and object files: a header, and entries of PTX or machine
//! code for one architecture each, possibly compressed.
//!
//! ```text
//! header   0 magic 0xba55ed50   6 bytes of the header (u16)   8 bytes of all entries (u64)
//! entry    0 kind (u16)   4 bytes of its header (u32)   8 bytes of the payload with padding (u64)
//!         16 bytes of the payload if compressed (u32)   28 architecture (u32; 80 for sm_80)
//!         40 flags (u64; 0x2000 LZ4, 0x8000 Zstandard)   56 bytes when unpacked (u64)
//! ```

use std::{fmt, io::Read};

/// Magic number of a fat binary.
pub const MAGIC: u32 = 0xba55_ed50;
/// Size of the header in bytes.
pub const HEADER: usize = 16;
const LZ4: u64 = 0x2000;
const ZSTANDARD: u64 = 0x8000;
/// Limit of an entry's size in bytes, against invalid headers.
const LIMIT: u64 = 1 << 31;

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// PTX.
    Ptx,
    /// Machine code of one architecture.
    Code,
    /// NVVM intermediate code for link-time optimization.
    Lto,
    /// Something else.
    Other(u16),
}

impl Kind {
    fn of(number: u16) -> Kind {
        match number {
            1 => Kind::Ptx,
            2 => Kind::Code,
            8 => Kind::Lto,
            other => Kind::Other(other),
        }
    }
}

/// An entry of a fat binary.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Architecture: 80 for sm_80.
    pub architecture: u32,
    payload: &'a [u8],
    compressed: usize,
    flags: u64,
    unpacked: u64,
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Ptx => write!(f, "compute_{}", self.architecture),
            Kind::Code => write!(f, "sm_{}", self.architecture),
            Kind::Lto => write!(f, "lto_{}", self.architecture),
            Kind::Other(kind) => write!(f, "kind {kind} for {}", self.architecture),
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(word(bytes, at)?) | u64::from(word(bytes, at + 4)?) << 32)
}

/// Offset and size of the entries of a fat binary, from its first [`HEADER`] bytes; `None` if they are not a header.
pub fn extent(header: &[u8]) -> Option<(usize, usize)> {
    let (start, size) = (word(header, 4)? >> 16, long(header, 8)?);
    let sound = word(header, 0)? == MAGIC && start as usize >= HEADER && size <= LIMIT;
    sound.then_some((start as usize, size as usize))
}

/// Parses all entries; `None` if the bytes are not a list of entries.
pub fn entries(mut bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    let mut found = Vec::new();
    while bytes.len() >= 64 {
        let (kind, header, padded) =
            (word(bytes, 0)?, word(bytes, 4)? as usize, usize::try_from(long(bytes, 8)?).ok()?);
        let end = header.checked_add(padded).filter(|end| *end > 0)?;
        found.push(Entry {
            kind: Kind::of(kind as u16),
            architecture: word(bytes, 28)?,
            payload: bytes.get(header..end)?,
            compressed: word(bytes, 16)? as usize,
            flags: long(bytes, 40)?,
            unpacked: long(bytes, 56)?,
        });
        bytes = &bytes[end..];
    }
    Some(found)
}

/// The entries of each fat binary in a file or section.
pub fn inside(file: &[u8]) -> Vec<Vec<Entry<'_>>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = file[at..].windows(4).position(|w| w == MAGIC.to_le_bytes()) {
        at += next;
        // The magic number may occur in other data too.
        let whole = extent(&file[at..]).and_then(|(start, size)| {
            let bytes = file[at..].get(start..start.checked_add(size)?)?;
            Some((entries(bytes)?, start + size))
        });
        match whole {
            Some((list, len)) => {
                found.push(list);
                at += len;
            }
            None => at += 4,
        }
    }
    found
}

/// Of the `architectures` of PTX, the best one for a device of architecture `own`, and whether to prefer code for that very architecture
/// ([`of_one_target`]). If all are newer than the device, which a GPU refuses, the oldest one stands in for the device that the program was
/// compiled for: `nvcc -arch=sm_90a` of CUDA 13.5 adds PTX for `compute_90` in which code guarded by `__CUDA_ARCH_FEAT_SM90_ALL` is missing.
pub fn most_suitable(architectures: impl Iterator<Item = u32> + Clone, own: u32) -> Option<(u32, bool)> {
    let best = architectures.clone().filter(|a| *a <= own).max().or_else(|| architectures.min())?;
    Some((best, best >= own))
}

/// Of PTX texts for one architecture, those for one target. A program may be compiled for `sm_90` and for `sm_90a`, say: code for the very
/// architecture of a device (`a`) is the best one for it (`exact`), then that for its family (`f`), but other devices do not run the former
/// (manual, section 11.1.2).
pub fn of_one_target<T>(found: Vec<T>, text: impl Fn(&T) -> &str, exact: bool) -> Vec<T> {
    let rank = |one: &T| match target(text(one)).and_then(|t| t.chars().last()) {
        Some('a') => 3 * u32::from(exact),
        Some('f') => 1 + u32::from(exact),
        _ => 1 + u32::from(!exact),
    };
    let best = found.iter().map(rank).max();
    found.into_iter().filter(|one| Some(rank(one)) == best).collect()
}

/// The target of a PTX text: `sm_90a`.
pub fn target(text: &str) -> Option<&str> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(".target"))?;
    line.split([',', ' ', '\t', '/']).find(|word| word.starts_with("sm_"))
}

impl Entry<'_> {
    /// The decompressed payload; `None` if it is damaged.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        if self.unpacked > LIMIT {
            return None;
        }
        if self.flags & ZSTANDARD != 0 {
            let mut bytes = Vec::new();
            let decoder = ruzstd::decoding::StreamingDecoder::new(self.payload.get(..self.compressed)?).ok()?;
            decoder.take(self.unpacked).read_to_end(&mut bytes).ok()?;
            Some(bytes)
        } else if self.flags & LZ4 != 0 {
            lz4_flex::block::decompress(self.payload.get(..self.compressed)?, self.unpacked as usize).ok()
        } else {
            Some(self.payload.to_vec())
        }
    }

    /// The text of a PTX entry, up to its NUL.
    pub fn text(&self) -> Option<String> {
        let mut bytes = self.bytes()?;
        bytes.truncate(bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len()));
        String::from_utf8(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an uncompressed entry.
    fn entry(kind: u16, architecture: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0u8; 64];
        bytes[..2].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&64u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes[28..32].copy_from_slice(&architecture.to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn fatbin(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn every_entry_of_every_fat_binary_is_found() {
        let mut file = b"before ".to_vec();
        file.extend(MAGIC.to_le_bytes()); // the mark in other data
        file.extend(fatbin(&[entry(2, 80, b"machine!"), entry(1, 80, b".version\0\0\0\0\0\0\0\0")]));
        file.extend(b" between ");
        file.extend(fatbin(&[entry(8, 90, b"bitcode!")]));
        let found = inside(&file);
        let names: Vec<Vec<String>> = found.iter().map(|f| f.iter().map(Entry::to_string).collect()).collect();
        assert_eq!(names, [vec!["sm_80".to_string(), "compute_80".into()], vec!["lto_90".into()]]);
        assert_eq!(found[0][1].text().as_deref(), Some(".version"));
    }

    #[test]
    fn damaged_containers_yield_nothing() {
        let whole = fatbin(&[entry(1, 80, b".version\0\0\0\0\0\0\0\0")]);
        for len in 0..whole.len() {
            assert!(inside(&whole[..len]).is_empty(), "{len} bytes");
        }
        assert!(entries(&[0; 64]).is_none(), "an entry of no bytes would never end");
    }

    #[test]
    fn the_newest_architecture_that_the_device_runs_is_chosen() {
        let of = |list: &[u32], own| most_suitable(list.iter().copied(), own);
        assert_eq!(of(&[75, 90, 80], 89), Some((80, false)));
        assert_eq!(of(&[75, 90, 80], 90), Some((90, true)));
        assert_eq!(of(&[90, 100], 103), Some((100, false)));
        // Compiled for other devices only: as these would run it.
        assert_eq!(of(&[100, 90, 90], 89), Some((90, true)));
        assert_eq!(of(&[], 89), None);
    }

    #[test]
    fn one_of_several_targets_is_chosen() {
        let [plain, own, family] = ["sm_90", "sm_90a", "sm_90f"]
            .map(|t| format!("//\n.version 8.8\n.target {t}, debug // one\n.address_size 64\n"));
        let all = || vec![plain.clone(), own.clone(), family.clone(), plain.clone()];
        assert_eq!(of_one_target(all(), String::as_str, true), std::slice::from_ref(&own));
        assert_eq!(of_one_target(all(), String::as_str, false), [plain.clone(), plain.clone()]);
        assert_eq!(of_one_target(vec![family.clone(), plain.clone()], String::as_str, true), [family]);
        assert_eq!(of_one_target(vec![own.clone()], String::as_str, false), [own]);
        assert_eq!(of_one_target(vec![String::new()], String::as_str, false), [String::new()]);
    }
}
