//! Arrays of bytes as pictures: PNG (not compressed, to stay simple) and PPM.

use crate::{element::Element, npy::Array};
use margay_isa::Type;

/// Width, height and RGB bytes of a `u8` array of shape `[h,w]` (gray) or `[h,w,3]`.
fn pixels(array: &Array) -> Result<(u32, u32, Vec<u8>), String> {
    let extent = |n: u64| u32::try_from(n).ok().filter(|n| *n > 0);
    let shape = match array.shape[..] {
        [h, w] | [h, w, 3] => extent(h).zip(extent(w)),
        _ => None,
    };
    match (array.element, shape) {
        (Element::Ptx(Type::U8 | Type::B8), Some((h, w))) => {
            let rgb = if array.shape.len() == 3 {
                array.data.clone()
            } else {
                array.data.iter().flat_map(|b| [*b; 3]).collect()
            };
            Ok((w, h, rgb))
        }
        _ => Err(format!("a picture requires `u8[h,w]` or `u8[h,w,3]`, found `{}`", array.describe())),
    }
}

/// A binary PPM file.
pub fn ppm(array: &Array) -> Result<Vec<u8>, String> {
    let (w, h, rgb) = pixels(array)?;
    Ok([format!("P6\n{w} {h}\n255\n").as_bytes(), &rgb].concat())
}

/// A PNG file (ISO/IEC 15948): 8-bit RGB, one stored zlib stream.
pub fn png(array: &Array) -> Result<Vec<u8>, String> {
    let (w, h, rgb) = pixels(array)?;
    let rows = rgb.chunks(w as usize * 3).flat_map(|row| std::iter::once(&0).chain(row)).copied().collect::<Vec<u8>>();
    let mut stream = vec![0x78, 0x01];
    let mut blocks = rows.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let n = block.len() as u16;
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend(n.to_le_bytes().into_iter().chain((!n).to_le_bytes()));
        stream.extend(block);
    }
    let (a, b) = rows.iter().fold((1u32, 0u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (b + a) % 65521)
    });
    stream.extend((b << 16 | a).to_be_bytes());

    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let header = [&w.to_be_bytes()[..], &h.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    for (name, data) in [(b"IHDR", &header), (b"IDAT", &stream), (b"IEND", &Vec::new())] {
        file.extend((data.len() as u32).to_be_bytes());
        let body = [&name[..], data].concat();
        file.extend(&body);
        file.extend(crc32(&body).to_be_bytes());
    }
    Ok(file)
}

fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_follow_the_standards() {
        let array = Array { element: Element::Ptx(Type::U8), shape: vec![1, 2], data: vec![7, 9] };
        assert_eq!(ppm(&array).unwrap(), b"P6\n2 1\n255\n\x07\x07\x07\x09\x09\x09");
        assert_eq!(crc32(b"IEND"), 0xae42_6082, "the standard's value for the empty IEND chunk");
        let file = png(&array).unwrap();
        assert!(file.ends_with(&[0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82]));
        let wrong = Array { element: Element::Ptx(Type::F32), shape: vec![1, 2], data: vec![0; 8] };
        assert!(png(&wrong).unwrap_err().contains("f32[1,2]"));
    }
}
