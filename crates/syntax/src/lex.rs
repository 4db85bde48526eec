//! Text to tokens (sections 4.1 to 4.5). One token at a time, no allocation; comments are noted by the way.
//!
//! Tokens are cut as ptxas cuts them, by longest match without regard to what follows: `0f3F80` is `0` and `f3F80`, `5%3` is `5`
//! and the name `%3`. What is plainly meant as one thing but is not a token (`0f3F80`, `5ull`, `–1` with a typographic dash)
//! becomes the token that was meant, with a diagnostic, so that parsing goes on.

use crate::{Code, Diagnostic, Span, confusable};

/// Kinds of tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum T {
    /// End of the text.
    Eof,
    /// `foo`, `%r1`, `$L__BB0_1`, `_x`
    Ident,
    /// `_`
    Underscore,
    /// `WARP_SZ`
    WarpSize,
    /// `.global`, `.shared::cta`, `.2d`, `.32x32b`
    Dot,
    /// An integer literal.
    Int,
    /// A floating-point literal of double precision: `1.5`, `0d3FF0000000000000`.
    Float,
    /// `0f3F800000`
    Single,
    /// `"text"`
    String,
    /// `@@DWARF`
    Dwarf,
    Semi,
    Comma,
    Colon,
    LParen,
    RParen,
    LBrack,
    RBrack,
    LBrace,
    RBrace,
    At,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Not,
    Tilde,
    Amp,
    AmpAmp,
    Pipe,
    PipePipe,
    Caret,
    Question,
    Lt,
    Gt,
    Le,
    Ge,
    EqEq,
    Ne,
    Shl,
    Shr,
    Assign,
    /// A character that has no business here; reported.
    Bad,
}

/// A token and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: T,
    pub span: Span,
}

const SPACE: u8 = 1;
const ALPHA: u8 = 2;
const DIGIT: u8 = 4;
const HEX: u8 = 8;
/// May stand in an identifier after its first character.
const FOLLOW: u8 = 16;

const CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        let mut class = 0;
        if matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0c | 0x1a) {
            class |= SPACE;
        }
        if b.is_ascii_alphabetic() {
            class |= ALPHA | FOLLOW;
        }
        if b.is_ascii_digit() {
            class |= DIGIT | FOLLOW;
        }
        if b.is_ascii_hexdigit() {
            class |= HEX;
        }
        if matches!(b, b'_' | b'$') {
            class |= FOLLOW;
        }
        table[i] = class;
        i += 1;
    }
    table
};

#[inline(always)]
fn is(byte: u8, class: u8) -> bool {
    CLASS[byte as usize] & class != 0
}

/// Reads tokens off a text.
#[derive(Clone)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    /// Comments and `# 7 "file"` line markers so far.
    pub comments: Vec<Span>,
    /// What was wrong so far.
    pub diagnostics: Vec<Diagnostic>,
    /// A comment runs to the end of the file; what is missing there is no wonder.
    pub cut_off: bool,
    /// Nothing is read any more, see [`LIMIT`].
    pub stopped: bool,
}

/// Reading stops behind so many faults of characters and literals: a binary file has millions.
const LIMIT: usize = 200;

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Lexer<'t> {
        Lexer {
            text,
            bytes: text.as_bytes(),
            at: 0,
            comments: Vec::new(),
            diagnostics: Vec::new(),
            cut_off: false,
            stopped: false,
        }
    }

    /// Begins in the middle, between two tokens.
    pub fn starting_at(text: &'t str, offset: usize) -> Lexer<'t> {
        let mut lexer = Lexer::new(text);
        lexer.at = offset;
        lexer
    }

    /// A copy that reads on from here, for looking ahead; what it finds is not recorded.
    pub fn ahead(&self) -> Lexer<'t> {
        Lexer {
            text: self.text,
            bytes: self.bytes,
            at: self.at,
            comments: Vec::new(),
            diagnostics: Vec::new(),
            cut_off: false,
            stopped: false,
        }
    }

    #[inline(always)]
    fn byte(&self, at: usize) -> u8 {
        match self.bytes.get(at) {
            Some(b) => *b,
            None => 0,
        }
    }

    #[cold]
    fn report(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        self.diagnostics.push(diagnostic());
        if self.diagnostics.len() >= LIMIT {
            self.stop();
        }
    }

    /// Reads nothing any more.
    pub fn stop(&mut self) {
        self.at = self.bytes.len();
        self.stopped = true;
    }

    /// The next token; `Eof` for ever at the end.
    #[inline]
    pub fn next(&mut self) -> Token {
        loop {
            while is(self.byte(self.at), SPACE) {
                self.at += 1;
            }
            let start = self.at;
            let first = self.byte(start);
            let kind = match first {
                b'a'..=b'z' | b'A'..=b'Z' => {
                    self.follow(start + 1);
                    if first == b'W' && &self.bytes[start..self.at] == b"WARP_SZ" { T::WarpSize } else { T::Ident }
                }
                b'%' | b'$' | b'_' if is(self.byte(start + 1), FOLLOW) => {
                    self.follow(start + 2);
                    T::Ident
                }
                b'.' => self.dot(start),
                b',' => self.one(T::Comma),
                b';' => self.one(T::Semi),
                b'0'..=b'9' => self.number(start),
                b'[' => self.one(T::LBrack),
                b']' => self.one(T::RBrack),
                b'{' => self.one(T::LBrace),
                b'}' => self.one(T::RBrace),
                b'(' => self.one(T::LParen),
                b')' => self.one(T::RParen),
                b':' => self.one(T::Colon),
                b'/' => match self.byte(start + 1) {
                    b'/' => {
                        let rest = &self.bytes[start..];
                        let end = start + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                        self.at = end;
                        self.comment(start, if self.byte(end - 1) == b'\r' { end - 1 } else { end });
                        continue;
                    }
                    b'*' => {
                        let rest = &self.bytes[start + 2..];
                        match memchr::memmem::find(rest, b"*/") {
                            Some(n) => self.at = start + 2 + n + 2,
                            None => self.unclosed_comment(start),
                        }
                        self.comment(start, self.at);
                        continue;
                    }
                    _ => self.one(T::Slash),
                },
                b'@' => {
                    if self.bytes[start..].starts_with(b"@@DWARF") {
                        self.at = start + 7;
                        T::Dwarf
                    } else {
                        self.one(T::At)
                    }
                }
                b'-' => self.one(T::Minus),
                b'+' => self.one(T::Plus),
                b'|' => self.one_or_two(b'|', T::Pipe, T::PipePipe),
                b'!' => self.one_or_two(b'=', T::Not, T::Ne),
                b'=' => self.one_or_two(b'=', T::Assign, T::EqEq),
                b'<' => match self.byte(start + 1) {
                    b'<' => self.two(T::Shl),
                    b'=' => self.two(T::Le),
                    _ => self.one(T::Lt),
                },
                b'>' => match self.byte(start + 1) {
                    b'>' => self.two(T::Shr),
                    b'=' => self.two(T::Ge),
                    _ => self.one(T::Gt),
                },
                b'"' => self.string(start),
                b'_' => self.one(T::Underscore),
                b'%' => self.one(T::Percent),
                b'*' => self.one(T::Star),
                b'~' => self.one(T::Tilde),
                b'&' => self.one_or_two(b'&', T::Amp, T::AmpAmp),
                b'^' => self.one(T::Caret),
                b'?' => self.one(T::Question),
                0 if start >= self.bytes.len() => {
                    self.at = self.bytes.len();
                    T::Eof
                }
                b'#' if self.line_marker(start) => continue,
                _ => match self.strange(start) {
                    Some(kind) => kind,
                    None => continue,
                },
            };
            return Token { kind, span: Span::new(start as u32, self.at as u32) };
        }
    }

    fn comment(&mut self, start: usize, end: usize) {
        self.comments.push(Span::new(start as u32, end as u32));
    }

    #[inline(always)]
    fn one(&mut self, kind: T) -> T {
        self.at += 1;
        kind
    }

    #[inline(always)]
    fn two(&mut self, kind: T) -> T {
        self.at += 2;
        kind
    }

    #[inline(always)]
    fn one_or_two(&mut self, second: u8, one: T, two: T) -> T {
        if self.byte(self.at + 1) == second { self.two(two) } else { self.one(one) }
    }

    /// Moves past the rest of an identifier.
    #[inline(always)]
    fn follow(&mut self, from: usize) {
        let mut at = from;
        while is(self.byte(at), FOLLOW) {
            at += 1;
        }
        self.at = at;
        if self.byte(at) >= 0x80 {
            self.foreign_identifier();
        }
    }

    /// `.word`, `.word::word`, `.2d`, `.5`, `.`
    fn dot(&mut self, start: usize) -> T {
        let first = self.byte(start + 1);
        if is(first, ALPHA) {
            self.follow(start + 2);
            while self.byte(self.at) == b':' && self.byte(self.at + 1) == b':' && is(self.byte(self.at + 2), FOLLOW) {
                self.follow(self.at + 3);
            }
            return T::Dot;
        }
        if is(first, DIGIT) {
            let mut at = start + 2;
            while is(self.byte(at), DIGIT) {
                at += 1;
            }
            // `.1d`, `.32x32b` are words, `.5`, `.5e3` numbers.
            if is(self.byte(at), ALPHA) && self.exponent(at) == at {
                self.follow(at);
                return T::Dot;
            }
            self.at = self.exponent(at);
            return T::Float;
        }
        self.at = start + 1;
        self.report(|| {
            Diagnostic::new(Code::UnexpectedCharacter, Span::new(start as u32, start as u32 + 1), "a single `.`")
                .here("a directive or modifier must follow at once, as in `.global`")
        });
        T::Bad
    }

    /// Where an exponent that may stand at `at` ends; `at` if there is none.
    fn exponent(&self, at: usize) -> usize {
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

    fn number(&mut self, start: usize) -> T {
        let mut at = start + 1;
        while is(self.byte(at), DIGIT) {
            at += 1;
        }
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
            _ => T::Int,
        };
        self.at = at;
        if kind == T::Int && self.byte(start) == b'0' && self.bytes[start..at].iter().any(|b| matches!(b, b'8' | b'9'))
        {
            self.bad_literal(start, at, "an octal literal (it begins with `0`) has digits from 0 to 7 only", None);
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
                    "a binary literal needs digits 0 and 1 after `0b`"
                } else {
                    "a hexadecimal literal needs digits after `0x`"
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
                format!("a `0{mark}` literal has {wanted} hexadecimal digits and nothing behind them")
            } else {
                format!("a `0{mark}` literal ({precision} precision) needs {wanted} hexadecimal digits, found {found}")
            };
            self.bad_literal(start, end, &message, None);
        }
        kind
    }

    /// A number with letters behind it: `5ull`, `1.0f`, `0x1p3`.
    #[cold]
    fn trailing(&mut self, start: usize, kind: T) -> T {
        let number = self.at;
        self.follow(number);
        // ptxas, too, sees a new token where `%` or `$` begins a name; letters and digits can only be a mistake.
        let suffix = &self.text[number..self.at];
        let advice = match suffix {
            "u" | "ul" | "ull" | "UL" | "ULL" | "Ul" | "uL" => {
                Some((Span::new(number as u32, self.at as u32), "U", "the suffix for unsigned is `U`"))
            }
            "f" | "F" | "l" | "L" | "ll" | "LL" => {
                Some((Span::new(number as u32, self.at as u32), "", "literals have no suffix for their size"))
            }
            _ => None,
        };
        let message = format!("`{suffix}` behind a number");
        self.bad_literal(start, self.at, &message, advice);
        kind
    }

    #[cold]
    fn bad_literal(&mut self, start: usize, end: usize, message: &str, fix: Option<(Span, &str, &str)>) {
        self.report(|| {
            let d = Diagnostic::new(Code::BadLiteral, Span::new(start as u32, end as u32), message)
                .here("not a number of PTX");
            match fix {
                Some((span, with, why)) => d.fix(span, with, why),
                None => d,
            }
        });
    }

    fn string(&mut self, start: usize) -> T {
        let rest = &self.bytes[start + 1..];
        match memchr::memchr(b'"', rest) {
            Some(n) => {
                self.at = start + 1 + n + 1;
                if !rest[..n].is_ascii() {
                    self.foreign_in_string(start, self.at);
                }
            }
            None => {
                let mut end = start + 1 + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                while end > start + 1 && matches!(self.byte(end - 1), b'\r' | b' ' | b';') {
                    end -= 1;
                }
                self.at = end;
                self.report(|| {
                    Diagnostic::new(Code::Unclosed, Span::new(start as u32, end as u32), "a string is never closed")
                        .here("no `\"` follows in the whole file")
                });
            }
        }
        T::String
    }

    #[cold]
    fn unclosed_comment(&mut self, start: usize) {
        self.at = self.bytes.len();
        self.cut_off = true;
        self.report(|| {
            Diagnostic::new(Code::Unclosed, Span::new(start as u32, start as u32 + 2), "a comment is never closed")
                .here("no `*/` follows")
        });
    }

    /// `# 7 "file.cu"` and `#line 7 "file.cu"` at the start of a line, which a preprocessor leaves behind.
    #[cold]
    fn line_marker(&mut self, start: usize) -> bool {
        if start > 0 && self.byte(start - 1) != b'\n' {
            return false;
        }
        let rest = &self.text[start..];
        let line = &rest[..memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len())];
        let mut words = line[1..].trim_start_matches("line").trim_start().splitn(2, [' ', '\t']);
        let number = words.next().unwrap_or("");
        let file = words.next().unwrap_or("").trim();
        if number.is_empty()
            || !number.bytes().all(|b| b.is_ascii_digit())
            || !file.starts_with('"')
            || !file[1..].contains('"')
        {
            return false;
        }
        self.at = start + line.trim_end().len();
        self.comment(start, self.at);
        true
    }

    /// What no token begins with: control characters, characters beyond ASCII, stray punctuation. `None` to go on behind it.
    #[cold]
    fn strange(&mut self, start: usize) -> Option<T> {
        let c = self.text[start..].chars().next().unwrap_or('\0');
        if c.is_alphabetic() {
            self.at = start;
            self.foreign_identifier();
            return Some(T::Ident);
        }
        let end = start + c.len_utf8();
        self.at = end;
        let meant = confusable::ascii(c);
        // A run of the same strange character is one fault.
        while self.text[self.at..].starts_with(c) && meant.is_none_or(|m| m.is_whitespace()) {
            self.at += c.len_utf8();
        }
        if c == '\0' {
            // Reported for the whole file at once: it matters in comments, too.
            return None;
        }
        let span = Span::new(start as u32, self.at as u32);
        if c == '#' {
            let rest = &self.bytes[start..];
            self.at = start + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        }
        self.report(|| {
            let d = Diagnostic::new(
                Code::UnexpectedCharacter,
                span,
                format!("unexpected character {}", confusable::describe(c)),
            );
            match (c, meant) {
                (_, Some(m)) if m.is_whitespace() => d.fix(span, " ", "write an ordinary blank"),
                (_, Some(m)) => d.fix(span, m.to_string(), format!("write `{m}`")),
                ('\u{feff}', _) => d.fix(span, "", "remove the byte order mark"),
                ('#', _) => d.help(
                    "run the preprocessor first: PTX knows only the line markers `# LINE \"FILE\"` that it leaves",
                ),
                _ => d,
            }
        });
        match meant {
            Some('-') => Some(T::Minus),
            Some(';') => Some(T::Semi),
            Some(',') => Some(T::Comma),
            Some(':') => Some(T::Colon),
            Some('(') => Some(T::LParen),
            Some(')') => Some(T::RParen),
            Some('[') => Some(T::LBrack),
            Some(']') => Some(T::RBrack),
            Some('{') => Some(T::LBrace),
            Some('}') => Some(T::RBrace),
            Some('+') => Some(T::Plus),
            Some('*') => Some(T::Star),
            Some('=') => Some(T::Assign),
            _ => None,
        }
    }

    /// Letters beyond ASCII in, or as, an identifier: one fault for all of it.
    #[cold]
    fn foreign_identifier(&mut self) {
        let from = self.at;
        let rest = &self.text[from..];
        let letters = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let len = rest.find(|c| !letters(c)).unwrap_or(rest.len());
        if len == 0 {
            return;
        }
        self.at = from + len;
        let c = rest.chars().find(|c| !c.is_ascii()).unwrap_or('\0');
        let at = from + rest.find(c).unwrap_or(0);
        let span = Span::new(at as u32, (at + c.len_utf8()) as u32);
        self.report(|| {
            Diagnostic::new(
                Code::UnexpectedCharacter,
                span,
                format!("unexpected character {}", confusable::describe(c)),
            )
            .note("names in PTX are made of a-z, A-Z, 0-9, `_`, `$` and a leading `%`")
        });
    }

    #[cold]
    fn foreign_in_string(&mut self, start: usize, end: usize) {
        let Some((n, c)) = self.text[start..end].char_indices().find(|(_, c)| !c.is_ascii()) else { return };
        let span = Span::new((start + n) as u32, (start + n + c.len_utf8()) as u32);
        self.report(|| {
            Diagnostic::new(
                Code::UnexpectedCharacter,
                span,
                format!("unexpected character {} in a string", confusable::describe(c)),
            )
            .note("outside comments, PTX is ASCII")
        });
    }
}
