//! Reader of wheels and other ZIP archives (PKWARE's APPNOTE, sections 4.3 and 4.4) with stored or deflated files.
//!
//! ```text
//! end of directory  0 "PK\5\6"   10 entries (u16)   16 offset of the directory (u32)
//! directory entry   0 "PK\1\2"   10 method (u16; 0 stored, 8 deflated)   20 bytes packed (u32)   24 bytes unpacked (u32)
//!                  28 bytes of name, of extra fields, of comment (u16 each)   42 offset of the local header (u32)   46 name
//! local header      0 "PK\3\4"   26 bytes of name, of extra fields (u16 each)   30 name, extra fields, then the data
//! ```

/// A file in an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packed<'a> {
    /// Its name.
    pub name: String,
    method: u16,
    data: &'a [u8],
    unpacked: usize,
}

const END: [u8; 4] = *b"PK\x05\x06";
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]))
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
}

/// The files of an archive; `None` if the bytes are not an archive. ZIP64 is not supported.
pub fn files(bytes: &[u8]) -> Option<Vec<Packed<'_>>> {
    if !bytes.starts_with(b"PK\x03\x04") {
        return None;
    }
    let end = bytes.windows(4).rposition(|w| w == END)?;
    let (count, mut at) = (half(bytes, end + 10)?, word(bytes, end + 16)?);
    let mut found = Vec::new();
    for _ in 0..count {
        let entry = bytes.get(at..).filter(|e| e.starts_with(&ENTRY))?;
        let lens = [half(entry, 28)?, half(entry, 30)?, half(entry, 32)?].map(usize::from);
        let name = String::from_utf8_lossy(entry.get(46..46 + lens[0])?).into_owned();
        let (method, packed, unpacked, local) =
            (half(entry, 10)?, word(entry, 20)?, word(entry, 24)?, word(entry, 42)?);
        let header = bytes.get(local..)?;
        let start = 30 + usize::from(half(header, 26)?) + usize::from(half(header, 28)?);
        let data = header.get(start..start.checked_add(packed)?)?;
        found.push(Packed { name, method, data, unpacked });
        at += 46 + lens.iter().sum::<usize>();
    }
    Some(found)
}

impl Packed<'_> {
    /// The contents of the file; `None` if it is damaged or compressed by another method.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self.method {
            STORED => Some(self.data.to_vec()),
            DEFLATED => miniz_oxide::inflate::decompress_to_vec_with_limit(self.data, self.unpacked).ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an archive of one file.
    fn archive(name: &str, method: u16, data: &[u8], unpacked: usize) -> Vec<u8> {
        let sizes = [data.len() as u32, unpacked as u32].map(u32::to_le_bytes).concat();
        let mut bytes = b"PK\x03\x04".to_vec();
        bytes.extend([0; 22]);
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend([0; 2]);
        bytes.extend(name.bytes().chain(data.iter().copied()));
        let directory = bytes.len() as u32;
        bytes.extend(ENTRY);
        bytes.extend([0; 6]);
        bytes.extend(method.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(sizes);
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend([0; 16]);
        bytes.extend(name.bytes());
        bytes.extend(END);
        bytes.extend([0; 6]);
        bytes.extend(1u16.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(directory.to_le_bytes());
        bytes.extend([0; 2]);
        bytes
    }

    #[test]
    fn stored_and_deflated_files_are_read() {
        let text = b"PTX PTX PTX PTX PTX PTX PTX PTX".to_vec();
        let stored = archive("a/b.so", STORED, &text, text.len());
        let deflated = miniz_oxide::deflate::compress_to_vec(&text, 6);
        let packed = archive("c.so", DEFLATED, &deflated, text.len());
        for (bytes, name) in [(&stored, "a/b.so"), (&packed, "c.so")] {
            let found = files(bytes).unwrap();
            assert_eq!((found.len(), found[0].name.as_str()), (1, name));
            assert_eq!(found[0].bytes().as_deref(), Some(&text[..]));
        }
    }

    #[test]
    fn damaged_archives_yield_nothing() {
        let whole = archive("c.so", STORED, b"text", 4);
        assert!((0..whole.len() - 2).all(|len| files(&whole[..len]).is_none_or(|f| f.is_empty())));
        assert!(files(b"\x7fELF").is_none());
    }
}
