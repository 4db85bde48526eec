//! Numbers (section 4.5): decimal, octal, hexadecimal and binary integers, and floats as decimals or bits.

use super::{DIGIT, FOLLOW, HEX, Lexer, T, is};
use crate::{Code, Diagnostic, Span};

/// Digits that surely fit in `.s64`.
const DECIMALS: usize = 18;

impl Lexer<'_> {
    /// The end of an optional exponent at `at`; `at` if there is none.
    pub(super) fn exponent(&self, at: usize) -> usize {
        if !matches!(self.byte(at), b'e' | b'E') {
            return at;
        }
        let mut digits = at + 1;
        if matches!(self.byte(digits), b'+' | b'-') {
            digits += 1;
        }
        if !is(self.byte(digits), DIGIT) {
            return at;
        }
        while is(self.byte(digits), DIGIT) {
            digits += 1;
        }
        digits
    }

    pub(super) fn number(&mut self, start: usize) -> T {
        self.decimal = None;
        let (mut at, mut value) = (start, 0u64);
        while is(self.byte(at), DIGIT) {
            value = value.wrapping_mul(10).wrapping_add(u64::from(self.byte(at) - b'0'));
            at += 1;
        }
        let octal = self.byte(start) == b'0' && at > start + 1;
        let kind = match self.byte(at) {
            b'.' => {
                // `1.` and `1.5` are numbers; in `5.x` the dot belongs to the number, too.
                at += 1;
                while is(self.byte(at), DIGIT) {
                    at += 1;
                }
                at = self.exponent(at);
                T::Float
            }
            b'e' | b'E' if self.exponent(at) != at => {
                at = self.exponent(at);
                T::Float
            }
            mark @ (b'x' | b'X' | b'f' | b'F' | b'd' | b'D' | b'b' | b'B')
                if at == start + 1 && self.byte(start) == b'0' =>
            {
                return self.marked(start, mark);
            }
            b'U' => {
                at += 1;
                T::Int
            }
            next => {
                if !octal && at - start <= DECIMALS && !is(next, FOLLOW) {
                    self.decimal = Some(value);
                }
                T::Int
            }
        };
        self.at = at;
        if kind == T::Int && self.byte(start) == b'0' && self.bytes[start..at].iter().any(|b| matches!(b, b'8' | b'9'))
        {
            self.bad_literal(start, at, "an octal literal (with a leading `0`) has only the digits 0 to 7", None);
            return T::Int;
        }
        if is(self.byte(at), FOLLOW) { self.trailing(start, kind) } else { kind }
    }

    /// `0x1F`, `0b101`, `0f3F800000`, `0d3FF0000000000000`
    fn marked(&mut self, start: usize, mark: u8) -> T {
        let digits = start + 2;
        let mut at = digits;
        let (kind, wanted) = match mark {
            b'x' | b'X' => (T::Int, 0),
            b'b' | b'B' => (T::Int, 0),
            b'f' | b'F' => (T::Single, 8),
            _ => (T::Float, 16),
        };
        let binary = matches!(mark, b'b' | b'B');
        while if binary { matches!(self.byte(at), b'0' | b'1') } else { is(self.byte(at), HEX) } {
            at += 1;
        }
        if wanted == 0 {
            let empty = at == digits;
            if self.byte(at) == b'U' {
                at += 1;
            }
            self.at = at;
            if empty {
                let what = if binary {
                    "a binary literal requires the digits 0 and 1 after `0b`"
                } else {
                    "a hexadecimal literal requires digits after `0x`"
                };
                self.follow(at);
                self.bad_literal(start, self.at, what, None);
                return T::Int;
            }
            return if is(self.byte(at), FOLLOW) { self.trailing(start, kind) } else { kind };
        }
        let found = at - digits;
        self.follow(at);
        if found != wanted || self.at != at {
            let end = self.at;
            let mark = mark as char;
            let precision = if wanted == 8 { "single" } else { "double" };
            let message = if self.at != at {
                format!("a `0{mark}` literal has {wanted} hexadecimal digits and nothing after them")
            } else {
                format!(
                    "a `0{mark}` literal ({precision} precision) requires {wanted} hexadecimal digits, found {found}"
                )
            };
            self.bad_literal(start, end, &message, None);
        }
        kind
    }

    /// A number followed by letters: `5ull`, `1.0f`, `0x1p3`.
    #[cold]
    fn trailing(&mut self, start: usize, kind: T) -> T {
        let number = self.at;
        // ptxas starts a new token; the grammar has a name after a number only in `.ptr .align 8 name`.
        if kind == T::Int && self.text[..start].trim_end().ends_with(".align") {
            return kind;
        }
        self.follow(number);
        // ptxas, too, sees a new token where `%` or `$` begins a name; letters and digits can only be a mistake.
        let suffix = &self.text[number..self.at];
        let advice = match suffix {
            "u" | "ul" | "ull" | "UL" | "ULL" | "Ul" | "uL" => {
                Some((Span::new(number as u32, self.at as u32), "U", "the suffix for unsigned integers is `U`"))
            }
            "f" | "F" | "l" | "L" | "ll" | "LL" => {
                Some((Span::new(number as u32, self.at as u32), "", "literals have no size suffix"))
            }
            _ => None,
        };
        let message = format!("`{suffix}` after a number");
        self.bad_literal(start, self.at, &message, advice);
        kind
    }

    #[cold]
    fn bad_literal(&mut self, start: usize, end: usize, message: &str, fix: Option<(Span, &str, &str)>) {
        self.report(|| {
            let d = Diagnostic::new(Code::BadLiteral, Span::new(start as u32, end as u32), message)
                .here("not a valid number");
            match fix {
                Some((span, with, why)) => d.fix(span, with, why),
                None => d,
            }
        });
    }
}
