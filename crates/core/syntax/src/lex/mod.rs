//! The lexer (sections 4.1 to 4.5). It returns one token at a time without allocation, and records comments.
//!
//! Tokens are split as in ptxas, by longest match without regard to what follows: `0f3F80` is `0` and `f3F80`, `5%3` is `5`
//! and the name `%3`. Text with an obvious meaning that is not a token (`0f3F80`, `5ull`, `–1` with a typographic dash)
//! becomes the intended token, with a diagnostic, so that parsing can continue.

mod invalid;
mod number;

use crate::{Code, Diagnostic, Span};

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
/// Whether the character may follow the first one of an identifier.
const FOLLOW: u8 = 16;
/// Begins an identifier if a character that may continue one follows.
const SIGN: u8 = 32;

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
        if matches!(b, b'%' | b'_' | b'$') {
            class |= SIGN;
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

/// Characters that are always tokens on their own.
const SINGLE: [Option<T>; 256] = {
    let mut table = [None; 256];
    table[b',' as usize] = Some(T::Comma);
    table[b';' as usize] = Some(T::Semi);
    table[b'[' as usize] = Some(T::LBrack);
    table[b']' as usize] = Some(T::RBrack);
    table[b'{' as usize] = Some(T::LBrace);
    table[b'}' as usize] = Some(T::RBrace);
    table[b'(' as usize] = Some(T::LParen);
    table[b')' as usize] = Some(T::RParen);
    table[b':' as usize] = Some(T::Colon);
    table[b'-' as usize] = Some(T::Minus);
    table[b'+' as usize] = Some(T::Plus);
    table[b'*' as usize] = Some(T::Star);
    table[b'~' as usize] = Some(T::Tilde);
    table[b'^' as usize] = Some(T::Caret);
    table[b'?' as usize] = Some(T::Question);
    table
};

/// Reads tokens off a text.
#[derive(Clone)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    /// The value of the last token if that is an integer of nothing but a few decimal digits, as nearly all numbers are.
    pub decimal: Option<u64>,
    /// Comments and `# 7 "file"` line markers so far.
    pub comments: Vec<Span>,
    /// What was wrong so far.
    pub diagnostics: Vec<Diagnostic>,
    /// A comment runs to the end of the file, so errors about missing tokens there are suppressed.
    pub cut_off: bool,
    /// Nothing is read any more, see [`LIMIT`].
    pub stopped: bool,
}

/// The lexer stops after this many errors in characters and literals: a binary file has millions.
const LIMIT: usize = 200;

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Lexer<'t> {
        Lexer {
            text,
            bytes: text.as_bytes(),
            at: 0,
            decimal: None,
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

    /// A copy that starts at the current position, for lookahead; its errors are not recorded.
    pub fn ahead(&self) -> Lexer<'t> {
        Lexer {
            text: self.text,
            bytes: self.bytes,
            at: self.at,
            decimal: None,
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
    pub fn next(&mut self) -> Token {
        loop {
            let mut start = self.at;
            while is(self.byte(start), SPACE) {
                start += 1;
            }
            let first = self.byte(start);
            let kind = match SINGLE[first as usize] {
                Some(kind) => {
                    self.at = start + 1;
                    kind
                }
                None if self.begins_name(start, first) => self.name(start, first),
                None if first == b'.' && is(self.byte(start + 1), ALPHA) => {
                    self.dotted_word(start);
                    T::Dot
                }
                None if is(first, DIGIT) => self.number(start),
                None => match self.other(start) {
                    Some(kind) => kind,
                    None => continue,
                },
            };
            return Token { kind, span: Span::new(start as u32, self.at as u32) };
        }
    }

    /// The same, made for places where a name is most likely.
    #[inline(always)]
    pub fn next_name(&mut self) -> Token {
        let mut start = self.at;
        while is(self.byte(start), SPACE) {
            start += 1;
        }
        let first = self.byte(start);
        if !self.begins_name(start, first) {
            return self.next();
        }
        let kind = self.name(start, first);
        Token { kind, span: Span::new(start as u32, self.at as u32) }
    }

    #[inline(always)]
    fn begins_name(&self, start: usize, first: u8) -> bool {
        is(first, ALPHA) || is(first, SIGN) && is(self.byte(start + 1), FOLLOW)
    }

    #[inline(always)]
    fn name(&mut self, start: usize, first: u8) -> T {
        self.follow(start + 1);
        if first == b'W' && &self.bytes[start..self.at] == b"WARP_SZ" { T::WarpSize } else { T::Ident }
    }

    /// A token of a rarer kind; `None` for a comment or an error.
    #[inline(never)]
    fn other(&mut self, start: usize) -> Option<T> {
        self.at = start;
        let kind = match self.byte(start) {
            b'.' => self.dot(start),
            b'/' => match self.byte(start + 1) {
                b'/' => {
                    let rest = &self.bytes[start..];
                    let end = start + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                    self.at = end;
                    self.comment(start, if self.byte(end - 1) == b'\r' { end - 1 } else { end });
                    return None;
                }
                b'*' => {
                    let rest = &self.bytes[start + 2..];
                    match memchr::memmem::find(rest, b"*/") {
                        Some(n) => self.at = start + 2 + n + 2,
                        None => self.unclosed_comment(start),
                    }
                    self.comment(start, self.at);
                    return None;
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
            b'&' => self.one_or_two(b'&', T::Amp, T::AmpAmp),
            b'"' => self.string(start),
            b'_' => self.one(T::Underscore),
            b'%' => self.one(T::Percent),
            0 if start >= self.bytes.len() => {
                self.at = self.bytes.len();
                T::Eof
            }
            b'#' if self.line_marker(start) => return None,
            _ => return self.unexpected_character(start),
        };
        Some(kind)
    }

    /// The byte directly after the last token, for callers that need no token; 0 at the end.
    #[inline(always)]
    pub fn peek(&self) -> u8 {
        self.byte(self.at)
    }

    /// Moves past the byte of [`Lexer::peek`], which makes a token of its own; the place of that.
    #[inline(always)]
    pub fn skip(&mut self) -> Span {
        let start = self.at as u32;
        self.at += 1;
        Span::new(start, start + 1)
    }

    /// The dotted word that directly follows the last token.
    #[inline(always)]
    pub fn attached(&mut self) -> Option<Span> {
        let start = self.at;
        if self.byte(start) != b'.' || !is(self.byte(start + 1), ALPHA) {
            return None;
        }
        self.dotted_word(start);
        Some(Span::new(start as u32, self.at as u32))
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

    /// `.word`, `.word::word`
    #[inline(always)]
    fn dotted_word(&mut self, start: usize) {
        self.follow(start + 2);
        if self.byte(self.at) == b':' {
            self.qualified();
        }
    }

    /// The rest of a dotted word whose first part has been read.
    fn qualified(&mut self) {
        while self.byte(self.at) == b':' && self.byte(self.at + 1) == b':' && is(self.byte(self.at + 2), FOLLOW) {
            let at = self.at + 2;
            self.follow(self.at + 3);
            // `.sp::2:4`
            if is(self.byte(at), DIGIT) && self.byte(self.at) == b':' && is(self.byte(self.at + 1), DIGIT) {
                self.follow(self.at + 2);
            }
        }
    }

    /// `.2d`, `.5`, `.`
    fn dot(&mut self, start: usize) -> T {
        if is(self.byte(start + 1), DIGIT) {
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
        // All but a dot that begins a word.
        while self.byte(self.at) == b'.' && !is(self.byte(self.at + 1), ALPHA | DIGIT) {
            self.at += 1;
        }
        let span = Span::new(start as u32, self.at as u32);
        self.report(|| match span.end - span.start {
            1 => Diagnostic::new(Code::UnexpectedCharacter, span, "a single `.`")
                .here("a directive or modifier must follow at once, as in `.global`"),
            _ => Diagnostic::new(Code::UnexpectedCharacter, span, "dots without a word")
                .note("PTX has no variadic functions; the last parameter may be an unsized array, `.param .b8 a[]`"),
        });
        T::Bad
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
                        .here("the file contains no further `\"`")
                });
            }
        }
        T::String
    }
}
