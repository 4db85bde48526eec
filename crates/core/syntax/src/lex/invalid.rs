//! Invalid tokens: non-ASCII characters, control characters, stray punctuation, unterminated comments and strings,
//! and the line markers of a preprocessor.

use super::{Lexer, T};
use crate::{Code, Diagnostic, Span, confusable};

impl Lexer<'_> {
    #[cold]
    pub(super) fn unclosed_comment(&mut self, start: usize) {
        self.at = self.bytes.len();
        self.cut_off = true;
        self.report(|| {
            Diagnostic::new(Code::Unclosed, Span::new(start as u32, start as u32 + 2), "a comment is never closed")
                .here("no `*/` follows")
        });
    }

    /// The line markers `# 7 "file.cu"` and `#line 7 "file.cu"` of a preprocessor, at the start of a line.
    #[cold]
    pub(super) fn line_marker(&mut self, start: usize) -> bool {
        let before = self.text[..start].trim_end_matches([' ', '\t']);
        if !before.is_empty() && !before.ends_with('\n') {
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

    /// Whether ptxas takes the backslash: before the opcode of an instruction other than a call, on the same line or the one before.
    fn quotes_opcode(&self, start: usize, end: usize) -> bool {
        const LIMIT: usize = 256;
        let behind = self.text[end..].trim_start();
        let word = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(behind.len());
        let opcode = behind.starts_with(|c: char| c.is_ascii_alphabetic())
            && !behind[word..].trim_start().starts_with(':')
            && !matches!(behind[..word].split('.').next(), Some("call"));
        let mut from = start.saturating_sub(LIMIT);
        while !self.text.is_char_boundary(from) {
            from -= 1;
        }
        let before = self.text[from..start].trim_end();
        let statement = before.rfind([';', '{', '}', ':']).map_or(before, |at| &before[at + 1..]).trim_start();
        opcode && before.contains([';', '{', '}']) && (statement.is_empty() || is_guard(statement))
    }

    /// A character literal of C, `'a'`: one fault.
    fn character(&mut self, start: usize) -> bool {
        let mut inside = self.text[start + 1..].chars();
        let Some(c) = inside.next().filter(|c| !matches!(c, '\\' | '\'' | '\n')) else { return false };
        if !inside.as_str().starts_with('\'') {
            return false;
        }
        self.at = self.text.len() - inside.as_str().len() + 1;
        let span = Span::new(start as u32, self.at as u32);
        self.report(|| {
            let d = Diagnostic::new(Code::UnexpectedCharacter, span, "PTX has no character literals");
            d.help(format!("write its code: `{}`", u32::from(c)))
        });
        true
    }

    /// A character that begins no token: control characters, non-ASCII characters, stray punctuation. `None` to continue after it.
    #[cold]
    pub(super) fn unexpected_character(&mut self, start: usize) -> Option<T> {
        let c = self.text[start..].chars().next().unwrap_or('\0');
        if c.is_alphabetic() {
            self.at = start;
            self.foreign_identifier();
            return Some(T::Ident);
        }
        let end = start + c.len_utf8();
        if c == '\'' && self.character(start) {
            return Some(T::Bad);
        }
        self.at = end;
        let meant = confusable::ascii(c);
        // A run of the same character is one fault.
        while self.text[self.at..].starts_with(c) && meant.is_none_or(|m| m.is_whitespace()) {
            self.at += c.len_utf8();
        }
        if c == '\0' {
            // Reported for the whole file at once: it matters in comments, too.
            return None;
        }
        if c == '\\' && self.quotes_opcode(start, end) {
            self.at = end;
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
                (_, Some(m)) if m.is_whitespace() => d.fix(span, " ", "write an ordinary space"),
                (_, Some(m)) => d.fix(span, m.to_string(), format!("write `{m}`")),
                ('\u{feff}', _) => d.fix(span, "", "remove the byte order mark"),
                ('#', _) => d.help("run the preprocessor first: PTX accepts only its line markers, `# LINE \"FILE\"`"),
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
            // A name without its letters, in the place of one.
            None if c == '$' => Some(T::Bad),
            _ => None,
        }
    }

    /// Letters beyond ASCII in, or as, an identifier: one fault for all of it.
    #[cold]
    pub(super) fn foreign_identifier(&mut self) {
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
            .note("names in PTX consist of a-z, A-Z, 0-9, `_`, `$` and a leading `%`")
        });
    }

    #[cold]
    pub(super) fn foreign_in_string(&mut self, start: usize, end: usize) {
        let Some((n, c)) = self.text[start..end].char_indices().find(|(_, c)| !c.is_ascii()) else { return };
        let span = Span::new((start + n) as u32, (start + n + c.len_utf8()) as u32);
        self.report(|| {
            Diagnostic::new(
                Code::UnexpectedCharacter,
                span,
                format!("unexpected character {} in a string", confusable::describe(c)),
            )
            .note("PTX is ASCII outside comments")
        });
    }
}

/// `@p`, `@!p`
fn is_guard(text: &str) -> bool {
    text.starts_with('@') && !text.contains(char::is_whitespace)
}
