//! Fat binaries, as nvcc embeds them in programs and object files: a header, and entries that are PTX or machine code for one
//! architecture each, compressed or not. Only the PTX is of use here.
//!
//! ```text
//! wrapper  0 magic 0x466243b1   4 version (u32)   8 address of the fat binary
//!         16 of version 2: address of a list of the fat binaries that were linked, which a zero ends
//! header   0 magic 0xba55ed50   6 bytes of the header (u16)   8 bytes of all entries (u64)
//! entry    0 kind (u16; 1 PTX, 2 ELF)   4 bytes of its header (u32)   8 bytes of the payload with padding (u64)
//!         16 bytes of the payload if compressed (u32)   28 architecture (u32; 80 for sm_80)
//!         40 flags (u64; 0x2000 LZ4, 0x8000 Zstandard)   56 bytes when unpacked (u64)
//! ```

use crate::{code::Code, device::capability, raw::Host};
use std::io::Read;

const WRAPPER: u32 = 0x4662_43b1;
const MAGIC: u32 = 0xba55_ed50;
/// Version of a wrapper around what nvlink linked.
const LINKED: u32 = 2;
const PTX: u16 = 1;
const LZ4: u64 = 0x2000;
const ZSTANDARD: u64 = 0x8000;
/// More than any module has; guards against headers that are none.
const MOST: u64 = 1 << 31;

struct Entry {
    architecture: u32,
    text: String,
}

/// The PTX of a fat binary for the architecture that suits the device best; `None` for other images.
pub fn read(image: Host) -> Result<Option<Vec<String>>, Code> {
    let image = match image.value::<u32>(0)? {
        WRAPPER if image.value::<u32>(4)? == LINKED => return linked(Host::at(image.value(16)?)).map(Some),
        WRAPPER => Host::at(image.value(8)?),
        _ => image,
    };
    match payload(image)? {
        Some(entries) => suitable(&entries).map(Some),
        None => Ok(None),
    }
}

/// The PTX of a program of several files that nvlink put together: what it made is machine code, but the files' own fat
/// binaries are still there, to be linked again.
fn linked(list: Host) -> Result<Vec<String>, Code> {
    let mut texts = Vec::new();
    for i in 0..MOST as usize {
        let one: u64 = list.value(8 * i)?;
        if one == 0 {
            break;
        }
        let entries = payload(Host::at(one))?.ok_or(Code::INVALID_IMAGE)?;
        texts.extend(suitable(&entries)?.into_iter().map(super::with_own_runtime));
    }
    Ok(texts)
}

/// The entries of a fat binary; `None` for other images.
fn payload(image: Host) -> Result<Option<Vec<u8>>, Code> {
    if image.value::<u32>(0)? != MAGIC {
        return Ok(None);
    }
    let (header, size) = (u64::from(image.value::<u16>(6)?), image.value::<u64>(8)?);
    if size > MOST {
        return Err(Code::INVALID_IMAGE);
    }
    image.bytes(header as usize, size as usize).map(Some)
}

/// The PTX of all fat binaries inside a file: an object file of the host, or a library of them.
pub fn inside(file: &[u8]) -> Result<Vec<String>, Code> {
    let mut texts = Vec::new();
    let mut at = 0;
    while let Some(found) = file[at..].windows(4).position(|w| w == MAGIC.to_le_bytes()) {
        let image = &file[at + found..];
        at += found + 4;
        let Some(header) = image.first_chunk::<16>() else { break };
        let start = u16::from_le_bytes([header[6], header[7]]) as usize;
        let size = u64::from_le_bytes(std::array::from_fn(|i| header[8 + i])) as usize;
        // The mark may stand in other data too.
        let Some(entries) = image.get(start..start.saturating_add(size)).filter(|_| start >= 16) else { continue };
        texts.extend(suitable(entries)?);
        at += start + size - 4;
    }
    Ok(texts)
}

/// The PTX among some entries for the architecture that suits the device best.
fn suitable(bytes: &[u8]) -> Result<Vec<String>, Code> {
    let entries = entries(bytes).ok_or(Code::INVALID_IMAGE)?;
    let (major, minor) = capability();
    let own = (major * 10 + minor) as u32;
    let suitable = entries.iter().map(|e| e.architecture).filter(|a| *a <= own).max();
    // A program for newer devices only still has its PTX run.
    let Some(best) = suitable.or_else(|| entries.iter().map(|e| e.architecture).min()) else {
        crate::api::tell(
            "margay: this program holds machine code of GPUs and no PTX; compile with `-gencode arch=compute_80,code=compute_80`",
        );
        return Err(Code::NO_BINARY_FOR_GPU);
    };
    Ok(entries.into_iter().filter(|e| e.architecture == best).map(|e| e.text).collect())
}

/// All PTX entries; `None` where the bytes are no list of entries.
fn entries(mut bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut found = Vec::new();
    while bytes.len() >= 64 {
        let word = |at: usize| bytes.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let long = |at: usize| Some(u64::from(word(at)?) | u64::from(word(at + 4)?) << 32);
        let (kind, header, padded) = (word(0)? as u16, word(4)? as usize, usize::try_from(long(8)?).ok()?);
        let payload = bytes.get(header..header.checked_add(padded)?)?;
        if kind == PTX {
            let (compressed, flags, unpacked) = (word(16)? as usize, long(40)?, long(56)?);
            let text = unpack(payload, compressed, flags, unpacked)?;
            found.push(Entry { architecture: word(28)?, text });
        }
        bytes = &bytes[header + padded..];
    }
    Some(found)
}

fn unpack(payload: &[u8], compressed: usize, flags: u64, unpacked: u64) -> Option<String> {
    if unpacked > MOST {
        return None;
    }
    let bytes = if flags & ZSTANDARD != 0 {
        let mut text = Vec::new();
        let packed = payload.get(..compressed)?;
        let decoder = ruzstd::decoding::StreamingDecoder::new(packed).ok()?;
        decoder.take(unpacked).read_to_end(&mut text).ok()?;
        text
    } else if flags & LZ4 != 0 {
        lz4_flex::block::decompress(payload.get(..compressed)?, unpacked as usize).ok()?
    } else {
        payload.to_vec()
    };
    let text = bytes.split(|b| *b == 0).next().unwrap_or_default();
    String::from_utf8(text.to_vec()).ok()
}
