//! Fat binaries in a program's memory, as nvcc embeds them; [`margay_image::fatbin`] parses them. Only their PTX is
//! used.
//!
//! ```text
//! wrapper  0 magic 0x466243b1   4 version (u32)   8 address of the fat binary
//!         16 of version 2: address of a list of the fat binaries that were linked, which a zero ends
//! ```

use crate::{code::Code, device::capability, raw::Host};
use margay_image::fatbin::{self, Entry, HEADER, Kind};

const WRAPPER: u32 = 0x4662_43b1;
/// Version of a wrapper around a program linked by nvlink.
const LINKED: u32 = 2;
/// Limit of fat binaries in a program, against unterminated lists.
const LIMIT: usize = 1 << 24;

/// The PTX of a fat binary for the most suitable architecture; `None` for other images.
pub fn read(image: Host) -> Result<Option<Vec<String>>, Code> {
    let at = match image.value::<u32>(0)? {
        WRAPPER if image.value::<u32>(4)? == LINKED => return linked(image.value(16)?).map(Some),
        WRAPPER => image.value(8)?,
        _ => image,
    };
    match payload(at)? {
        Some(entries) => suitable(&entries, || super::holder(at)).map(Some),
        None => Ok(None),
    }
}

/// The PTX of a program of several files linked by nvlink: the result is machine code, but the fat binaries of the
/// files are still there, to be linked again.
fn linked(list: Host) -> Result<Vec<String>, Code> {
    let mut texts = Vec::new();
    for i in 0..LIMIT {
        let one: Host = list.value(8 * i)?;
        if one.address() == 0 {
            break;
        }
        let entries = payload(one)?.ok_or(Code::INVALID_IMAGE)?;
        texts.extend(suitable(&entries, || super::holder(one))?.into_iter().map(super::with_own_runtime));
    }
    Ok(texts)
}

/// The entries of a fat binary; `None` for other images.
fn payload(image: Host) -> Result<Option<Vec<u8>>, Code> {
    if image.value::<u32>(0)? != fatbin::MAGIC {
        return Ok(None);
    }
    let (start, size) = fatbin::extent(&image.bytes(0, HEADER)?).ok_or(Code::INVALID_IMAGE)?;
    image.bytes(start, size).map(Some)
}

/// The PTX of all fat binaries in a host object file or library.
pub fn inside(file: &[u8]) -> Result<Vec<String>, Code> {
    let mut texts = Vec::new();
    for entries in fatbin::inside(file) {
        texts.extend(best(&entries, super::name)?);
    }
    Ok(texts)
}

fn suitable(bytes: &[u8], holder: impl Fn() -> Option<String>) -> Result<Vec<String>, Code> {
    best(&fatbin::entries(bytes).ok_or(Code::INVALID_IMAGE)?, holder)
}

/// The PTX entries for the most suitable architecture.
fn best(entries: &[Entry<'_>], holder: impl Fn() -> Option<String>) -> Result<Vec<String>, Code> {
    let (major, minor) = capability();
    let own = (major * 10 + minor) as u32;
    let ptx = || entries.iter().filter(|e| e.kind == Kind::Ptx);
    let Some((best, exact)) = fatbin::most_suitable(ptx().map(|e| e.architecture), own) else {
        super::no_ptx(entries, holder());
        return Err(Code::NO_BINARY_FOR_GPU);
    };
    let texts = ptx().filter(|e| e.architecture == best).map(|e| e.text().ok_or(Code::INVALID_IMAGE));
    Ok(fatbin::of_one_target(texts.collect::<Result<_, _>>()?, String::as_str, exact))
}
