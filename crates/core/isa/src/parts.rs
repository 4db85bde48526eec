//! The parts of a register that operands of video instructions select (manual, section 9.7.18).

/// Which parts of a 32-bit register an operand of a video instruction may select after a dot (section 9.7.18).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Parts {
    /// One byte or half: `.b0` to `.b3`, `.h0`, `.h1`.
    One,
    /// Two halves out of the four of `a` and `b`: `.h00` to `.h33`, higher first.
    Halves,
    /// Four bytes out of the eight of `a` and `b`: `.b0000` to `.b7777`, highest first.
    Bytes,
    /// Halves that are written: `.h0`, `.h1`, `.h10`.
    HalfMask,
    /// Bytes that are written: `.b0` to `.b3210`, in falling order.
    ByteMask,
}

/// A selection that [`Parts::parse`] understood.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Part {
    /// Bits of an element: 8 or 16.
    pub bits: u8,
    /// How many elements are selected.
    pub len: u8,
    /// Their indices, lowest place first (the text has the highest first).
    pub index: [u8; 4],
}

impl Parts {
    /// Reads a selector without its dot: `b0`, `h32`, `b3210`.
    pub fn parse(self, text: &str) -> Option<Part> {
        let (unit, digits) = (text.as_bytes().first()?, text.as_bytes().get(1..)?);
        let bits = match unit {
            b'b' => 8,
            b'h' => 16,
            _ => return None,
        };
        let (bits_wanted, lengths, limit) = match self {
            Parts::One => (bits, 1..=1, if bits == 8 { 4 } else { 2 }),
            Parts::Halves => (16, 2..=2, 4),
            Parts::Bytes => (8, 4..=4, 8),
            Parts::HalfMask => (16, 1..=2, 2),
            Parts::ByteMask => (8, 1..=4, 4),
        };
        if bits != bits_wanted || !lengths.contains(&digits.len()) {
            return None;
        }
        let mut part = Part { bits, len: digits.len() as u8, index: [0; 4] };
        for (slot, digit) in part.index.iter_mut().zip(digits.iter().rev()) {
            *slot = digit.wrapping_sub(b'0');
            if *slot >= limit {
                return None;
            }
        }
        let falling = part.index[..digits.len()].windows(2).all(|w| w[0] < w[1]);
        (falling || !matches!(self, Parts::HalfMask | Parts::ByteMask)).then_some(part)
    }
}

impl Part {
    /// The selection in one word, for stages that carry it as a constant operand: nibble `i` is the index of element `i` plus 1
    /// (0 where nothing is selected), bit 16 distinguishes halves from bytes. A register without selector is 0.
    pub const fn code(self) -> u32 {
        let mut code = if self.bits == 16 { 1 << 16 } else { 0 };
        let mut i = 0;
        while i < self.len {
            code |= (self.index[i as usize] as u32 + 1) << (4 * i);
            i += 1;
        }
        code
    }
}
