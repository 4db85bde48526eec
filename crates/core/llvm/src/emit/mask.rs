//! Conversions between masks and words, and the origins of values, which allow cheaper code.
//!
//! Without mask registers, a mask of 32 lanes is four vectors of words, and the sign bits of those are 32 bits of a word. LLVM needs long
//! to select instructions for either direction, so code that must compile quickly calls a function for each, and combines masks as words
//! where they are known as words already.

use crate::emit::text::{Elem, Name, Ty, Val, Writer, constant, fill, int, per_lane};

/// How masks become words of 32 bits, and words masks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Masks {
    /// By moves: masks live in mask registers (AVX-512).
    Registers,
    /// By instructions that LLVM selects: masks live in vector registers.
    #[default]
    Vectors,
    /// The same by calls of a function each, for code that must compile quickly: LLVM takes longer to select instructions for one such
    /// conversion than for ten additions. Masks are combined as words where that needs fewer conversions.
    Calls,
}

/// How a mask, or a vector of addresses, was computed.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    And(Val, Val),
    Or(Val, Val),
    Xor(Val, Val),
    Add(Val, Val),
    /// Of words without their signs.
    Widened(Val),
    /// Of words with their signs.
    Signed(Val),
    /// Shifted to the left by a constant.
    Shifted(Val, u32),
    /// The same in all lanes.
    Splat(Val),
}

/// Addresses of 64 bits as elements at indices of 32 bits.
#[derive(Clone, Debug)]
pub(super) struct Indexed {
    /// The address of the element at index 0: `i64`.
    pub base: Val,
    /// `<32 x i32>`
    pub index: Val,
    /// Log2 of the bytes from one element to the next, at most [`MAX_SHIFT`].
    pub shift: u32,
    /// Indices have signs.
    pub signed: bool,
}

/// The maximum shift of an index.
const MAX_SHIFT: u32 = 6;

/// Maximum number of operations through which the origin of a value is traced.
const ORIGIN_DEPTH: u32 = 4;

impl Writer {
    pub(super) fn note(&mut self, v: &Val, origin: Origin) {
        let wanted = self.masks == Masks::Calls || v.ty.elem == Elem::I64;
        if let (true, true, Name::Temp(number)) = (wanted, v.ty.vector, &v.name) {
            self.origins.insert(*number, origin);
        }
    }

    fn origin(&self, v: &Val) -> Option<&Origin> {
        match v.name {
            Name::Temp(number) => self.origins.get(&number),
            Name::Text(_) => None,
        }
    }

    /// Converts 32 bits to `<32 x i1>`.
    pub fn mask(&mut self, bits: &Val) -> Val {
        let ty = Ty::lanes(Elem::I1);
        let text = format!("bitcast i32 {bits} to {ty}");
        let mask = if self.masks != Masks::Calls {
            self.value(ty, format_args!("{text}"))
        } else if let Some(word @ (0 | 0xffff_ffff)) = bits.unsigned() {
            return constant(ty, (word & 1) as i128);
        } else if let Some(known) = self.known.result(&text) {
            return known.clone();
        } else {
            self.declare_mask_calls();
            let words = self.value(ty.with(Elem::I32), format_args!("call <32 x i32> @margay.lanes(i32 {bits})"));
            self.cmp("icmp slt", &words, &constant(words.ty, 0))
        };
        self.same(format_args!("{text}"), &mask);
        self.same(format_args!("bitcast {ty} {mask} to i32"), bits);
        mask
    }

    /// Converts `<32 x i1>` to 32 bits.
    pub fn bits(&mut self, mask: &Val) -> Val {
        let mask = self.splat(mask);
        let text = format!("bitcast {} {mask} to i32", mask.ty);
        let word = Ty::scalar(Elem::I32);
        let bits = if let Some(every) = mask.unsigned() {
            return int(Elem::I32, -(every as i128));
        } else if self.masks != Masks::Calls {
            self.value(word, format_args!("{text}"))
        } else if let Some(known) = self.known.result(&text) {
            return known.clone();
        } else if let Some((name, a, b)) = self.logic(&mask)
            && (self.has_bits(&a, ORIGIN_DEPTH) || self.has_bits(&b, ORIGIN_DEPTH))
        {
            let (a, b) = (self.bits(&a), self.bits(&b));
            self.op(name, &a, &b)
        } else {
            self.declare_mask_calls();
            let signs = self.cast("sext", &mask, Elem::I32);
            self.value(word, format_args!("call i32 @margay.bits(<32 x i32> {signs})"))
        };
        self.same(format_args!("{text}"), &bits);
        self.same(format_args!("bitcast i32 {bits} to {}", mask.ty), &mask);
        bits
    }

    /// The functions for [`Masks::Calls`]: of one word for each lane, the sign counts.
    fn declare_mask_calls(&mut self) {
        let shifts = per_lane(Elem::I32, |lane| i128::from(31 - lane));
        self.declared.insert(fill(include_str!("mask/bits.ll"), &[]));
        self.declared.insert(fill(include_str!("mask/lanes.ll"), &[("shifts", &shifts)]));
    }

    /// The operation that has computed a mask.
    fn logic(&self, mask: &Val) -> Option<(&'static str, Val, Val)> {
        Some(match self.origin(mask)?.clone() {
            Origin::And(a, b) => ("and", a, b),
            Origin::Or(a, b) => ("or", a, b),
            Origin::Xor(a, b) => ("xor", a, b),
            _ => return None,
        })
    }

    /// Whether the bits of a mask are found without converting another one.
    fn has_bits(&self, mask: &Val, depth: u32) -> bool {
        let known = || self.known.result(&format!("bitcast {} {mask} to i32", mask.ty)).is_some();
        let both = |(_, a, b): (_, Val, Val)| self.has_bits(&a, depth - 1) && self.has_bits(&b, depth - 1);
        mask.unsigned().is_some() || known() || depth > 0 && self.logic(mask).is_some_and(both)
    }

    /// Addresses of 64 bits as one number and a word for each lane, without signs, if that is how they were computed: calls with words as
    /// arguments need half the code.
    pub fn base_and_words(&mut self, addresses: &Val) -> Option<(Val, Val)> {
        let (base, words, plus) = self.split_base(addresses, ORIGIN_DEPTH)?;
        Some((self.op_const("add", &base, plus.into()), words))
    }

    fn split_base(&self, v: &Val, depth: u32) -> Option<(Val, Val, i64)> {
        let (base, other, plus) = self.split_sum(v, depth)?;
        if let Some(Origin::Widened(words)) = self.origin(&other) {
            return Some((base, words.clone(), plus));
        }
        let steps = other.each()?;
        let least = steps.iter().min().copied()?;
        let above = |step: &i64| u32::try_from(step.checked_sub(least)?).ok();
        let words = steps.iter().map(above).collect::<Option<Vec<u32>>>()?;
        let words = per_lane(Elem::I32, |lane| words[lane as usize].into());
        Some((base, words, plus.wrapping_add(least)))
    }

    /// A sum, split into the part that all lanes share, the other part and a constant.
    fn split_sum(&self, v: &Val, depth: u32) -> Option<(Val, Val, i64)> {
        let Origin::Add(a, b) = self.origin(v)? else { return None };
        if let Some(plus) = b.unsigned() {
            let (base, other, before) = self.split_sum(a, depth.checked_sub(1)?)?;
            return Some((base, other, before.wrapping_add(plus as i64)));
        }
        match (self.origin(a), self.origin(b)) {
            (Some(Origin::Splat(base)), _) => Some((base.clone(), b.clone(), 0)),
            (_, Some(Origin::Splat(base))) => Some((base.clone(), a.clone(), 0)),
            _ => None,
        }
    }

    /// Addresses of 64 bits as a base and an index for each lane, if that is how they were computed.
    pub(super) fn indexed(&mut self, addresses: &Val) -> Option<Indexed> {
        let (base, other, plus) = self.split_sum(addresses, ORIGIN_DEPTH)?;
        let (index, shift, signed) = self.index(&other, ORIGIN_DEPTH)?;
        let base = self.op_const("add", &base, plus.into());
        (shift <= MAX_SHIFT).then_some(Indexed { base, index, shift, signed })
    }

    /// The words that a value was made of, their shift, and whether they have signs.
    fn index(&self, v: &Val, depth: u32) -> Option<(Val, u32, bool)> {
        match self.origin(v)? {
            Origin::Widened(words) => Some((words.clone(), 0, false)),
            Origin::Signed(words) => Some((words.clone(), 0, true)),
            Origin::Shifted(of, by) => {
                let (words, before, signed) = self.index(of, depth.checked_sub(1)?)?;
                Some((words, before.saturating_add(*by), signed))
            }
            _ => None,
        }
    }
}

impl Val {
    /// The elements of a constant vector of 64 bits that is not the same in all lanes.
    fn each(&self) -> Option<Vec<i64>> {
        let Name::Text(text) = &self.name else { return None };
        let elements = text.strip_prefix('<')?.strip_suffix('>')?.split(", ");
        elements.map(|e| e.strip_prefix("i64 ")?.parse().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::named;

    fn calls(w: &Writer) -> usize {
        w.body.matches("call ").count()
    }

    /// Lanes pending elsewhere and a comparison make a mask: the comparison is converted, and its complement is not.
    #[test]
    fn masks_are_combined_as_words() {
        let mut w = Writer::new(Masks::Calls);
        let active = w.mask(&named(Ty::scalar(Elem::I32), "%bits"));
        let (a, b) = (named(Ty::lanes(Elem::I32), "%a"), named(Ty::lanes(Elem::I32), "%b"));
        let less = w.cmp("icmp ult", &a, &b);
        let more = w.op_const("xor", &less, 1);
        let before = calls(&w);
        for mask in [&less, &more] {
            let lanes = w.op("and", &active, mask);
            let bits = w.bits(&lanes);
            assert!(!bits.ty.vector);
            assert_eq!(w.mask(&bits), lanes);
        }
        assert_eq!(calls(&w), before + 1);
        assert_eq!(w.bits(&constant(less.ty, 1)), int(Elem::I32, -1));
        assert_eq!(w.mask(&int(Elem::I32, 0)), constant(less.ty, 0));
    }

    /// Two comparisons are combined before they are converted.
    #[test]
    fn comparisons_are_converted_once() {
        let mut w = Writer::new(Masks::Calls);
        let [a, b, c] = ["%a", "%b", "%c"].map(|name| named(Ty::lanes(Elem::I32), name));
        let (first, second) = (w.cmp("icmp ult", &a, &b), w.cmp("icmp ult", &b, &c));
        let both = w.op("and", &first, &second);
        w.bits(&both);
        assert_eq!(calls(&w), 1);
    }

    #[test]
    fn addresses_split_into_base_and_words() {
        let mut w = Writer::new(Masks::Calls);
        let base = named(Ty::scalar(Elem::I64), "%base");
        let words = named(Ty::lanes(Elem::I32), "%words");
        let wide = w.cast("zext", &words, Elem::I64);
        let sum = w.op("add", &base, &wide);
        assert_eq!(w.base_and_words(&sum), Some((base.clone(), words.clone())));
        let behind = w.op_const("add", &sum, 8);
        let (later, words) = w.base_and_words(&behind).unwrap();
        assert!(w.body.contains(&format!("{later} = add i64 %base, 8")) && words.to_string() == "%words");
        // Steps of constant size, down from the base: words count up from the lowest address.
        let down = w.op("add", &base, &per_lane(Elem::I64, |lane| -4 * i128::from(lane)));
        let (lowest, words) = w.base_and_words(&down).unwrap();
        assert!(w.body.contains(&format!("{lowest} = add i64 %base, -124")));
        assert_eq!(words, per_lane(Elem::I32, |lane| 124 - 4 * i128::from(lane)));
        // Signed offsets have no such form.
        let signed = w.cast("sext", &named(Ty::lanes(Elem::I32), "%signed"), Elem::I64);
        let sum = w.op("add", &base, &signed);
        assert_eq!(w.base_and_words(&sum), None);
    }

    /// As PTX computes them: the product of an index and a size in 64 bits, a base, and the offset of an operand.
    #[test]
    fn addresses_split_into_base_and_indices() {
        let mut w = Writer::new(Masks::Registers);
        let base = named(Ty::scalar(Elem::I64), "%base");
        let words = named(Ty::lanes(Elem::I32), "%words");
        for (extension, operation, by, shift) in [("sext", "mul", 8, 3), ("zext", "shl", 2, 2), ("sext", "shl", 0, 0)] {
            let wide = w.cast(extension, &words, Elem::I64);
            let bytes = w.op_const(operation, &wide, by);
            let first = w.op("add", &bytes, &base);
            let address = w.op_const("add", &first, 12);
            let Indexed { base: moved, index, shift: found, signed } = w.indexed(&address).unwrap();
            assert!(w.body.contains(&format!("{moved} = add i64 %base, 12")));
            assert_eq!((index, found, signed), (words.clone(), shift, extension == "sext"));
        }
        // Not a power of two, and a base of each lane.
        let wide = w.cast("sext", &words, Elem::I64);
        let bytes = w.op_const("mul", &wide, 12);
        let sum = w.op("add", &base, &bytes);
        assert!(w.indexed(&sum).is_none());
        let sum = w.op("add", &named(Ty::lanes(Elem::I64), "%bases"), &wide);
        assert!(w.indexed(&sum).is_none());
    }
}
