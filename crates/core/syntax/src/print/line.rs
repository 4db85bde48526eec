//! Layout of tokens: which are joined, where spaces go, where a long line is broken; comments between statements.

use super::{COLUMN, DEEPEST, Printer};
use crate::Span;
use crate::lex::{Lexer, T};

/// What a statement is made of.
#[derive(Clone, Copy)]
pub(super) enum Piece {
    Token(T, Span),
    Comment(Span),
}

impl Piece {
    pub(super) fn span(self) -> Span {
        let (Piece::Token(_, span) | Piece::Comment(span)) = self;
        span
    }
}

impl Printer<'_> {
    /// Begins a line for the text at `start`, after the comments before it.
    pub(super) fn begin(&mut self, start: u32) {
        self.comments(start);
        let gap = self.gap(start);
        self.end_line();
        if gap && !self.opened {
            self.empty_line();
        }
        self.opened = false;
        self.indentation(self.depth);
    }

    /// Whether the source has an empty line between the last output and an offset.
    fn gap(&self, start: u32) -> bool {
        self.lines_between(self.last, start) > 1
    }

    fn lines_between(&self, from: u32, to: u32) -> usize {
        self.tree.str(Span::new(from, to.max(from))).bytes().filter(|b| *b == b'\n').count()
    }

    /// Writes the comments before an offset: trailing comments after the current line, others on lines of
    /// their own.
    pub(super) fn comments(&mut self, before: u32) {
        while let Some(comment) = self.tree.comments.get(self.comment).copied().filter(|c| c.start < before) {
            self.comment += 1;
            let behind = self.lines_between(self.last, comment.start) == 0 && !self.line_is_empty();
            let marker = self.tree.str(comment).starts_with('#');
            if behind && !marker {
                self.out.push(' ');
            } else {
                let gap = self.gap(comment.start);
                self.end_line();
                if gap && !self.opened {
                    self.empty_line();
                }
                self.opened = false;
                if !marker {
                    self.indentation(self.depth);
                }
            }
            self.comment_text(comment);
            self.last = comment.end;
        }
    }

    /// Passes over comments that were written with their statement.
    pub(super) fn skip_comments(&mut self, before: u32) {
        while self.tree.comments.get(self.comment).is_some_and(|c| c.start < before) {
            self.comment += 1;
        }
    }

    fn comment_text(&mut self, comment: Span) {
        let text = self.tree.str(comment).trim_end();
        if text.contains('\r') {
            self.out.push_str(&text.replace("\r\n", "\n").replace('\r', " "));
        } else {
            self.out.push_str(text);
        }
    }

    fn line_is_empty(&self) -> bool {
        self.out.len() == self.line
    }

    pub(super) fn end_line(&mut self) {
        if !self.line_is_empty() {
            self.out.truncate(self.out.trim_end_matches(' ').len());
            self.out.push('\n');
        }
        self.line = self.out.len();
    }

    fn empty_line(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
            self.line = self.out.len();
        }
    }

    pub(super) fn indentation(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n(' ', depth.min(DEEPEST) * self.options.indent));
    }

    /// Fills up to the column of operands.
    pub(super) fn column(&mut self) {
        let width = self.out.len() - self.line;
        let wanted = self.depth.min(DEEPEST) * self.options.indent + COLUMN;
        self.out.extend(std::iter::repeat_n(' ', wanted.saturating_sub(width).max(1)));
    }

    /// Notes that the next token, of that kind, has been written.
    pub(super) fn past(&mut self, kind: T) {
        let span = self.find(kind);
        // Comments before it move after it: `a /* x */, b` is written `a, /* x */`.
        if self.tree.comments.get(self.comment).is_none_or(|c| c.start > span.start) {
            self.last = span.end;
        }
    }

    /// The next unwritten token of this kind.
    pub(super) fn find(&self, kind: T) -> Span {
        let mut lexer = Lexer::starting_at(&self.tree.text, self.last as usize);
        loop {
            let token = lexer.next();
            if token.kind == kind || token.kind == T::Eof {
                return token.span;
            }
        }
    }

    /// Tokens and comments of a range. The comments count as written.
    pub(super) fn pieces(&mut self, span: Span) -> Vec<Piece> {
        let mut lexer = Lexer::starting_at(&self.tree.text, span.start as usize);
        let mut pieces = Vec::new();
        let mut comments = 0;
        loop {
            let token = lexer.next();
            for comment in &lexer.comments[comments..] {
                if comment.start < span.end {
                    pieces.push(Piece::Comment(*comment));
                }
            }
            comments = lexer.comments.len();
            if token.kind == T::Eof || token.span.start >= span.end {
                break;
            }
            pieces.push(Piece::Token(token.kind, token.span));
        }
        // Comments after the last token belong to the next statement.
        while matches!(pieces.last(), Some(Piece::Comment(_))) {
            pieces.pop();
        }
        pieces
    }

    /// Guard, opcode and modifiers.
    pub(super) fn mnemonic(&mut self, pieces: &[Piece]) {
        let mut before = None;
        for piece in pieces {
            match (before, piece) {
                (_, Piece::Comment(_)) => {
                    self.joined_from(before, std::slice::from_ref(piece), false);
                }
                // Modifiers follow without a space; a guard does not.
                (Some(T::Ident), Piece::Token(T::Ident, _)) => {
                    self.out.push(' ');
                    self.out.push_str(self.tree.str(piece.span()));
                }
                _ => self.out.push_str(self.tree.str(piece.span())),
            }
            if let Piece::Token(kind, _) = piece {
                before = Some(*kind);
            }
        }
        if let Some(last) = pieces.last() {
            self.skip_comments(last.span().end);
        }
    }

    /// A statement, or a part of one.
    pub(super) fn joined(&mut self, pieces: &[Piece]) {
        self.joined_from(None, pieces, false);
    }

    /// A directive, whose words are separated: `function_name .debug_str`.
    pub(super) fn spaced(&mut self, pieces: &[Piece]) {
        self.joined_from(None, pieces, true);
    }

    fn joined_from(&mut self, first: Option<T>, pieces: &[Piece], apart: bool) {
        let mut spacing =
            Spacing { before: first, unary: false, tight: false, count: false, cast: false, apart, word: "" };
        for (n, piece) in pieces.iter().enumerate() {
            match *piece {
                Piece::Comment(span) => {
                    let text = self.tree.str(span);
                    if text.starts_with('#') {
                        self.end_line();
                    } else if !self.line_is_empty() {
                        self.out.push(' ');
                    }
                    self.comment_text(span);
                    if text.starts_with("//") || text.starts_with('#') {
                        self.end_line();
                        self.continuation();
                        spacing.before = None;
                    } else if spacing.before.is_none() {
                        self.out.push(' ');
                    }
                    self.skip_comments(span.end);
                }
                Piece::Token(kind, span) => {
                    let word = self.tree.str(span);
                    let blank = spacing.blank(kind);
                    if blank && spacing.before == Some(T::Comma) && self.too_long(&pieces[n..]) {
                        self.end_line();
                        self.continuation();
                    } else if blank {
                        self.out.push(' ');
                    }
                    self.out.push_str(word);
                    spacing.step(kind, word);
                }
            }
        }
    }

    /// Begins a further line of a statement.
    fn continuation(&mut self) {
        self.indentation(self.depth);
        self.out.push_str("        ");
    }

    /// Whether the text up to the next comma (of this or an outer list) would exceed the line.
    fn too_long(&self, pieces: &[Piece]) -> bool {
        // With the space after the comma.
        let mut width = self.out.len() - self.line + 1;
        let mut depth = 0i32;
        for piece in pieces {
            let span = piece.span();
            width += span.len() as usize;
            if width > self.options.width {
                return true;
            }
            match piece {
                Piece::Comment(_) => width += 1,
                Piece::Token(T::Comma, _) => {
                    if depth <= 0 {
                        return false;
                    }
                    width += 1;
                }
                Piece::Token(T::LParen | T::LBrace | T::LBrack, _) => depth += 1,
                Piece::Token(T::RParen | T::RBrace | T::RBrack, _) => depth -= 1,
                _ => {}
            }
        }
        false
    }
}

/// Which tokens are joined.
struct Spacing<'t> {
    before: Option<T>,
    /// The token before is an operator with one operand.
    unary: bool,
    /// It is the `+` of an address or the `|` of a pair, which have no spaces around them.
    tight: bool,
    /// Inside `<8>`.
    count: bool,
    /// The token before ends a cast, `(.s64)`.
    cast: bool,
    /// Dotted words are separated from names.
    apart: bool,
    /// The text of the token before.
    word: &'t str,
}

impl<'t> Spacing<'t> {
    /// Whether a space precedes a token.
    fn blank(&self, kind: T) -> bool {
        let Some(before) = self.before else { return false };
        if self.unary || self.tight || self.count || self.cast {
            return false;
        }
        match (before, kind) {
            (_, T::Comma | T::Semi | T::RParen | T::RBrack | T::RBrace) => false,
            (T::LParen | T::LBrack | T::LBrace | T::At, _) => false,
            // A suffix, `%tid.x`, or the next word of a directive.
            (T::Ident, T::Dot) => self.apart,
            (T::Ident | T::Int, T::LParen) => false,
            (T::Dot, T::LParen) => !matches!(self.word, ".attribute" | ".unified"),
            (T::Ident | T::Underscore | T::RBrack, T::LBrack) => false,
            (T::Dot, T::LBrack) => self.word != ".const",
            (T::Ident, T::Lt) => false,
            (T::Ident | T::Underscore | T::Dot | T::RBrace, T::Plus | T::Pipe) => false,
            _ => true,
        }
    }

    /// Goes past a token.
    fn step(&mut self, kind: T, word: &'t str) {
        let named = matches!(self.before, Some(T::Ident | T::Underscore | T::Dot | T::RBrace));
        let number = matches!(self.before, Some(T::WarpSize | T::Int | T::Float | T::Single | T::RParen | T::RBrack));
        let operand_before = (named || number) && !self.cast;
        self.unary = matches!(kind, T::Plus | T::Minus | T::Not | T::Tilde) && !operand_before;
        self.tight = matches!(kind, T::Plus | T::Pipe) && named;
        self.cast = kind == T::RParen && self.before == Some(T::Dot) && matches!(self.word, ".s64" | ".u64");
        match kind {
            T::Lt if self.before == Some(T::Ident) => self.count = true,
            T::Gt => self.count = false,
            _ => {}
        }
        self.before = Some(kind);
        self.word = word;
    }
}
