//! Short texts as keys of two words: they are compared and hashed as a whole, not byte by byte.

/// Bytes of a word.
const WORD: usize = 8;

/// A text of up to sixteen bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ShortStr {
    /// The first eight bytes, and zeros behind a shorter text.
    first: u64,
    /// The last eight bytes of a text of more than eight; some may be in `first` as well.
    last: u64,
    len: u8,
}

impl ShortStr {
    /// How many slots there are.
    pub(super) const SLOTS: usize = 512;

    /// The key of a text; nothing for a longer one.
    #[inline(always)]
    pub(super) fn of(text: &str) -> Option<ShortStr> {
        let bytes = text.as_bytes();
        let len = bytes.len();
        let (first, last) = match (bytes.first_chunk(), bytes.last_chunk()) {
            _ if len > 2 * WORD => return None,
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => (bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0),
        };
        Some(ShortStr { first, last, len: len as u8 })
    }

    /// A number below [`ShortStr::SLOTS`] that distinguishes most texts of a module.
    #[inline(always)]
    pub(super) fn slot(self) -> usize {
        let mixed = (self.first ^ self.last.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (u64::BITS - ShortStr::SLOTS.ilog2())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_texts_have_different_keys() {
        let texts = [
            "",
            "a",
            "a\0",
            "ret",
            "bar.sync",
            "add.s32",
            "fma.rn.f32",
            "fma.rz.f32",
            "0123456789abcdef",
            "0123456789ab7cdef",
        ];
        for (i, a) in texts.iter().enumerate() {
            for b in &texts[..i] {
                assert!(ShortStr::of(a).is_none() || ShortStr::of(a) != ShortStr::of(b), "{a} {b}");
            }
        }
        assert_eq!(ShortStr::of("0123456789abcdefg"), None);
    }
}
