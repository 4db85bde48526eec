//! Names that end in digits: `%r12` is number 12 of the stem `%r`.
//!
//! Nearly every operand is such a name of a few characters, so the characters are not processed one by one: up to eight bytes form
//! one word, which is split and read as a whole, for any number.

use margay_syntax::Span;

/// The text before the digits, as a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stem<'a> {
    /// Up to eight bytes, the first one in the lowest place. Names hold no NUL, so the bytes say how many they are.
    Short(u64),
    /// More.
    Long(&'a str),
}

/// Bytes of a word.
const WORD: u32 = 8;
/// The digit 0 in every byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;

impl<'a> Stem<'a> {
    /// How many slots there are.
    pub(super) const SLOTS: usize = 32;

    /// A number below [`Stem::SLOTS`] that distinguishes most stems of a body; all long stems share one.
    #[inline(always)]
    pub(super) fn slot(self) -> usize {
        match self {
            Stem::Short(word) => (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - Stem::SLOTS.ilog2())) as usize,
            Stem::Long(_) => 0,
        }
    }

    /// The key of a stem.
    pub(super) fn of(text: &'a str) -> Stem<'a> {
        if text.len() > WORD as usize {
            return Stem::Long(text);
        }
        Stem::Short(text.bytes().rev().fold(0, |word, byte| word << 8 | u64::from(byte)))
    }
}

/// Splits the name at a place of the text. Nothing if it has no digits at its end or nothing before them, if it is longer than a
/// word, and at the very end of the text, where no word can be read.
#[inline]
pub(super) fn split(text: &str, name: Span) -> Option<(Stem<'static>, u32)> {
    let len = name.len();
    if len == 0 || len > WORD {
        return None;
    }
    let word = u64::from_le_bytes(*text.as_bytes().get(name.start as usize..)?.first_chunk()?);
    // The last byte of the name is the highest one, and bytes that are none of the name's are gone.
    let word = word << (8 * (WORD - len));
    let values = word ^ ZEROS;
    // The high bit of each byte that is not a digit: adding 0x76 carries a value above 9 into it.
    let others = (values | ((values & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080;
    let digits = others.leading_zeros() / 8;
    if digits == 0 || digits >= len {
        return None;
    }
    let stem = word << (8 * digits) >> (8 * (digits + WORD - len));
    // Neighbors are joined to numbers of two, four and eight digits; the bytes below are zeros before the number.
    let below = 8 * (WORD - digits);
    let ones = values >> below << below;
    let twos = (ones & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(10 << 8 | 1) >> 8;
    let fours = (twos & 0x00ff_00ff_00ff_00ff).wrapping_mul(100 << 16 | 1) >> 16;
    let eights = (fours & 0x0000_ffff_0000_ffff).wrapping_mul(10_000 << 32 | 1) >> 32;
    Some((Stem::Short(stem), eights as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_into_stem_and_number() {
        let apart = |name: &str| {
            let text = format!("x{name}, and more");
            split(&text, Span::new(1, 1 + name.len() as u32))
        };
        let known = |stem, number| Some((Stem::of(stem), number));
        assert_eq!(apart("%r1"), known("%r", 1));
        assert_eq!(apart("%rd90"), known("%rd", 90));
        assert_eq!(apart("%f12345"), known("%f", 12_345));
        assert_eq!(apart("r1234567"), known("r", 1_234_567));
        assert_eq!(apart("a/0:9"), known("a/0:", 9), "the neighbors of the digits are none");
        assert_eq!(apart("é7"), known("é", 7));
        assert_eq!(apart("%r007"), known("%r", 7));
        for name in ["%r", "%tid.x", "", "12345678", "7", "%r1234567"] {
            assert_eq!(apart(name), None, "{name}");
        }
        assert_eq!(split("%r1", Span::new(0, 3)), None, "no word can be read there");
    }
}
