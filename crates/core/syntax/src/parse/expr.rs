//! Constant expressions (section 4.5.4), parsed with an operator stack instead of recursion.

use super::{Parser, Reported, Result};
use crate::lex::{T, Token};
use crate::tree::{BinaryOp, Expr, Kind, Operand, UnaryOp, Word};
use crate::{Code, Diagnostic, Span};

/// An operator whose right side is being read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pending {
    Paren(Span),
    Unary(UnaryOp, u32),
    Binary(BinaryOp),
    /// `c ?`
    Question,
    /// `c ? a :`
    Colon,
}

/// Operators that wait at once; ptxas's parser gives up at 9,978 parentheses (measured).
const WAITING: usize = 9978;

/// Precedence of section 4.5.4, table 4; higher binds tighter.
fn binary(kind: T) -> Option<(BinaryOp, u8)> {
    use BinaryOp::*;
    Some(match kind {
        T::Star => (Mul, 12),
        T::Slash => (Div, 12),
        T::Percent => (Rem, 12),
        T::Plus => (Add, 11),
        T::Minus => (Sub, 11),
        T::Shl => (Shl, 10),
        T::Shr => (Shr, 10),
        T::Lt => (Lt, 9),
        T::Gt => (Gt, 9),
        T::Le => (Le, 9),
        T::Ge => (Ge, 9),
        T::EqEq => (Eq, 8),
        T::Ne => (Ne, 8),
        T::Amp => (BitAnd, 7),
        T::Caret => (BitXor, 6),
        T::Pipe => (BitOr, 5),
        T::AmpAmp => (And, 4),
        T::PipePipe => (Or, 3),
        _ => return None,
    })
}

fn precedence(op: BinaryOp) -> u8 {
    use BinaryOp::*;
    match op {
        Mul | Div | Rem => 12,
        Add | Sub => 11,
        Shl | Shr => 10,
        Lt | Gt | Le | Ge => 9,
        Eq | Ne => 8,
        BitAnd => 7,
        BitXor => 6,
        BitOr => 5,
        And => 4,
        Or => 3,
    }
}

/// `?:` binds least of all.
const TERNARY: u8 = 2;

impl Parser<'_> {
    /// A constant expression. A literal by itself stays a literal.
    pub(super) fn constant(&mut self) -> Result<Operand> {
        // Most are one literal.
        if matches!(self.t.kind, T::Int | T::Float | T::Single) {
            let value = self.take_literal();
            if matches!(self.t.kind, T::Comma | T::Semi | T::RBrack | T::RBrace | T::RParen) {
                return Ok(value);
            }
            return self.operators(Some(value));
        }
        self.operators(None)
    }

    /// The rest of an expression whose first literal has been read.
    pub(super) fn constant_from(&mut self, first: Operand) -> Result<Operand> {
        self.operators(Some(first))
    }

    /// Takes the current token, a literal.
    #[inline(always)]
    pub(super) fn take_literal(&mut self) -> Operand {
        if let (T::Int, Some(value)) = (self.t.kind, self.lex.decimal) {
            let span = self.bump().span;
            return Operand { kind: Kind::Int { value: Word::new(value), unsigned: false }, span };
        }
        let token = self.bump();
        self.literal(token)
    }

    /// The value of a literal.
    pub(super) fn literal(&mut self, token: Token) -> Operand {
        let text = self.str(token.span);
        let kind = match token.kind {
            T::Int => {
                let (value, unsigned) = match integer(text) {
                    Integer::Fits(value) => (value, value > i64::MAX as u64 || text.ends_with('U')),
                    other => (self.odd_integer(token.span, other), true),
                };
                Kind::Int { value: Word::new(value), unsigned }
            }
            T::Single => Kind::Float {
                bits: Word::new(u64::from_str_radix(text.get(2..).unwrap_or(""), 16).unwrap_or(0)),
                single: true,
            },
            T::Float => Kind::Float { bits: Word::new(self.double(token.span)), single: false },
            _ => Kind::Name,
        };
        Operand { kind, span: token.span }
    }

    /// Reports the error of an invalid integer literal; returns a value for it nevertheless.
    #[cold]
    fn odd_integer(&mut self, span: Span, integer: Integer) -> u64 {
        match integer {
            Integer::Fits(value) => value,
            Integer::Wraps(value) => {
                let message = "the number does not fit in 64 bits; ptxas silently drops the upper bits";
                self.report(Diagnostic::new(Code::LiteralWraps, span, message).here(format!("becomes {value:#x}")));
                value
            }
            Integer::Overflows => {
                self.report(
                    Diagnostic::new(Code::BadLiteral, span, "the number does not fit in 64 bits")
                        .here("more than 64 bits"),
                );
                0
            }
            // The lexer has said so.
            Integer::NoNumber => 0,
        }
    }

    /// Bits of a literal of double precision; 0 for what was reported.
    fn double(&mut self, span: Span) -> u64 {
        let text = self.str(span);
        if let Some(b"0d" | b"0D") = text.as_bytes().get(..2) {
            return u64::from_str_radix(&text[2..], 16).unwrap_or(0);
        }
        let Ok(value) = text.parse::<f64>() else { return 0 };
        let mantissa = text.split(['e', 'E']).next().unwrap_or("");
        let zero = mantissa.bytes().all(|b| matches!(b, b'0' | b'.'));
        if !value.is_finite() || (!value.is_normal() && !zero) {
            let message = "the number is outside the range of normal doubles";
            self.report(
                Diagnostic::new(Code::BadLiteral, span, message)
                    .here("write its bits as `0d` and 16 hexadecimal digits"),
            );
        }
        value.to_bits()
    }

    fn operators(&mut self, first: Option<Operand>) -> Result<Operand> {
        let (operators, values) = (self.buffers.operators.len(), self.buffers.values.len());
        let result = self.expression(first, operators, values);
        self.buffers.operators.truncate(operators);
        self.buffers.values.truncate(values);
        result
    }

    fn expression(&mut self, first: Option<Operand>, operators: usize, values: usize) -> Result<Operand> {
        let mut want_operand = match first {
            Some(value) => {
                self.buffers.values.push(value);
                false
            }
            None => true,
        };
        loop {
            if self.buffers.operators.len() - operators > WAITING {
                self.report(
                    Diagnostic::new(Code::TooDeep, self.t.span, "the expression is nested too deeply")
                        .here("exceeds the limit here"),
                );
                return Err(Reported);
            }
            if want_operand {
                want_operand = self.operand_of_expression()?;
                continue;
            }
            if let Some((op, level)) = binary(self.t.kind) {
                self.reduce(operators, level)?;
                self.bump();
                self.buffers.operators.push(Pending::Binary(op));
                want_operand = true;
                continue;
            }
            match self.t.kind {
                T::Question => {
                    self.reduce(operators, TERNARY + 1)?;
                    self.bump();
                    self.buffers.operators.push(Pending::Question);
                    want_operand = true;
                }
                T::Colon if self.question(operators) => {
                    self.apply_down_to(|p| matches!(p, Pending::Question))?;
                    self.bump();
                    self.buffers.operators.push(Pending::Colon);
                    want_operand = true;
                }
                T::RParen if self.open_paren(operators) => {
                    let close = self.bump().span;
                    let paren = self.apply_down_to(|p| matches!(p, Pending::Paren(_)))?;
                    if let (Some(Pending::Paren(open)), Some(value)) = (paren, self.buffers.values.last_mut()) {
                        value.span = open.to(close);
                    }
                }
                _ => return self.finish(operators, values),
            }
        }
    }

    /// Applies pending operators down to one that is not applied, but removed and returned.
    fn apply_down_to(&mut self, stop: impl Fn(&Pending) -> bool) -> Result<Option<Pending>> {
        while let Some(p) = self.buffers.operators.pop() {
            if stop(&p) {
                return Ok(Some(p));
            }
            self.apply(p)?;
        }
        Ok(None)
    }

    /// Applies all pending operators of an expression; its value.
    fn finish(&mut self, operators: usize, values: usize) -> Result<Operand> {
        while self.buffers.operators.len() > operators {
            match self.buffers.operators.pop() {
                Some(Pending::Paren(open)) => return Err(self.unclosed(T::RParen, open)),
                Some(Pending::Question) => return Err(self.expected("`:` of `? :`")),
                Some(p) => self.apply(p)?,
                None => break,
            }
        }
        match self.buffers.values.pop() {
            Some(value) if self.buffers.values.len() == values => Ok(value),
            _ => Err(self.expected("a constant")),
        }
    }

    /// Reads an operand or a prefix; true if an operand is still wanted.
    fn operand_of_expression(&mut self) -> Result<bool> {
        let prefix = match self.t.kind {
            T::Int | T::Float | T::Single | T::WarpSize => {
                let token = self.bump();
                let value = self.literal(token);
                self.buffers.values.push(value);
                return Ok(false);
            }
            T::LParen => {
                let open = self.bump().span;
                if !self.at(T::Dot) {
                    self.buffers.operators.push(Pending::Paren(open));
                    return Ok(true);
                }
                let word = self.word();
                let op = match word {
                    ".s64" => UnaryOp::CastSigned,
                    ".u64" => UnaryOp::CastUnsigned,
                    _ => {
                        let message = format!("a constant cannot be cast to `{word}`");
                        return Err(self.wrong(self.t.span, message, "only `.s64` and `.u64`"));
                    }
                };
                self.bump();
                self.close(T::RParen, open)?;
                self.buffers.operators.push(Pending::Unary(op, open.start));
                return Ok(true);
            }
            T::Plus => UnaryOp::Plus,
            T::Minus => UnaryOp::Minus,
            T::Not => UnaryOp::LogicalNot,
            T::Tilde => UnaryOp::BitNot,
            T::Ident => {
                let message = format!("expected a constant, found {}", self.found());
                let d = Diagnostic::new(Code::Syntax, self.t.span, message)
                    .here("symbols cannot be part of a constant expression");
                let register = self.word().starts_with('%');
                let alone = matches!(self.buffers.operators.last(), Some(Pending::Paren(open)) if open.end == self.t.span.start);
                self.report(match register {
                    true if alone => d.help(
                        "parentheses are only for constants and for the lists of a call; write registers without them",
                    ),
                    true => {
                        d.help("an address is one register or symbol plus a constant; add registers with `add` first")
                    }
                    false => d,
                });
                return Err(Reported);
            }
            _ => return Err(self.expected("a constant")),
        };
        let start = self.bump().span.start;
        self.buffers.operators.push(Pending::Unary(prefix, start));
        Ok(true)
    }

    /// A `?` of this parenthesis waits for its `:`.
    fn question(&self, from: usize) -> bool {
        for p in self.buffers.operators[from..].iter().rev() {
            match p {
                Pending::Question => return true,
                Pending::Paren(_) => return false,
                _ => {}
            }
        }
        false
    }

    /// A parenthesis is open, and no `?` within it waits for its `:`.
    fn open_paren(&self, from: usize) -> bool {
        for p in self.buffers.operators[from..].iter().rev() {
            match p {
                Pending::Paren(_) => return true,
                Pending::Question => return false,
                _ => {}
            }
        }
        false
    }

    /// Applies what binds at least as tightly.
    fn reduce(&mut self, from: usize, level: u8) -> Result<()> {
        while self.buffers.operators.len() > from {
            let Some(top) = self.buffers.operators.last().copied() else { break };
            let tight = match top {
                Pending::Unary(..) => true,
                Pending::Binary(op) => precedence(op) >= level,
                // `a ? b : c ? d : e` groups to the right.
                Pending::Colon => level < TERNARY,
                Pending::Paren(_) | Pending::Question => false,
            };
            if !tight {
                break;
            }
            self.buffers.operators.pop();
            self.apply(top)?;
        }
        Ok(())
    }

    fn apply(&mut self, operator: Pending) -> Result<()> {
        let last = self.pop_value()?;
        let (expr, span) = match operator {
            Pending::Unary(op, start) => {
                let span = Span::new(start, last.span.end);
                (Expr::Unary(op, self.keep(last)), span)
            }
            Pending::Binary(op) => {
                let left = self.pop_value()?;
                let span = left.span.to(last.span);
                let left = self.keep(left);
                (Expr::Binary(op, left, self.keep(last)), span)
            }
            Pending::Colon => {
                let then = self.pop_value()?;
                let condition = self.pop_value()?;
                let span = condition.span.to(last.span);
                let (condition, then) = (self.keep(condition), self.keep(then));
                (Expr::Select(condition, then, self.keep(last)), span)
            }
            Pending::Paren(_) | Pending::Question => {
                self.buffers.values.push(last);
                return Ok(());
            }
        };
        let value = self.keep_expr(expr, span);
        self.buffers.values.push(value);
        Ok(())
    }

    /// Puts an inner node of an expression into its pool.
    pub(super) fn keep_expr(&mut self, expr: Expr, span: Span) -> Operand {
        self.tree.exprs.push(expr);
        Operand { kind: Kind::Expr(self.tree.exprs.len() as u32 - 1), span }
    }

    /// An operand of an operator. Single-precision literals are not allowed in expressions (section 4.5.2).
    fn pop_value(&mut self) -> Result<Operand> {
        match self.buffers.values.pop() {
            Some(Operand { kind: Kind::Float { single: true, .. }, span }) => {
                Err(self.wrong(span, "a `0f` literal cannot be part of an expression", "only denotes its 32 bits"))
            }
            Some(value) => Ok(value),
            None => Err(self.expected("a constant")),
        }
    }
}

/// The value of an integer literal (section 4.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Integer {
    Fits(u64),
    /// Too large, but ptxas keeps the lower 64 bits.
    Wraps(u64),
    /// Too large for ptxas, too.
    Overflows,
    NoNumber,
}

pub(crate) fn integer(text: &str) -> Integer {
    let digits = text.strip_suffix('U').unwrap_or(text);
    let bytes = digits.as_bytes();
    if bytes.len() <= 18 && bytes.first() != Some(&b'0') {
        let mut value = 0u64;
        for b in bytes {
            let digit = b.wrapping_sub(b'0');
            if digit > 9 {
                return Integer::NoNumber;
            }
            value = value * 10 + digit as u64;
        }
        return Integer::Fits(value);
    }
    if bytes == b"0" {
        return Integer::Fits(0);
    }
    let (digits, radix) = match bytes.get(..2) {
        Some(b"0x" | b"0X") => (&digits[2..], 16),
        Some(b"0b" | b"0B") => (&digits[2..], 2),
        Some([b'0', _]) => (&digits[1..], 8),
        _ => (digits, 10),
    };
    if let Ok(value) = u64::from_str_radix(digits, radix) {
        return Integer::Fits(value);
    }
    // ptxas 13.5 rejects a digit after a value that has reached 2^63, and otherwise drops the carry (measured).
    let mut value = 0u64;
    for c in digits.chars() {
        let Some(digit) = c.to_digit(radix) else { return Integer::NoNumber };
        if value > i64::MAX as u64 {
            return Integer::Overflows;
        }
        value = value.wrapping_mul(radix as u64).wrapping_add(digit as u64);
    }
    if digits.is_empty() { Integer::NoNumber } else { Integer::Wraps(value) }
}
