//! Expressions of `expect:`: numbers, the index `i`, elements of buffers, and C's operators.

use margay::element::{Number, parse_f64, parse_int};
use std::fmt;

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// An integer or a float.
    Number(Number),
    /// Exact bits: `0f7FC00000`, `0d7FF8000000000000`.
    Bits(u64),
    /// The index of the element compared, or another name bound by the case.
    Name(String),
    /// `a[expr]`
    Element(String, Box<Expr>),
    /// `-x`, `~x`, `!x`
    Unary(char, Box<Expr>),
    /// `a + b`
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `c ? a : b`
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `min(a, b)`
    Call(String, Vec<Expr>),
    /// `sum(k, n, body)`: the sum of the body for k from 0 to n - 1
    Sum(String, Box<Expr>, Box<Expr>),
}

/// The environment of an expression.
pub trait Scope {
    /// The value of a name.
    fn name(&self, name: &str) -> Option<Number>;
    /// The value of a buffer's element.
    fn element(&self, buffer: &str, index: i128) -> Option<Number>;
}

/// An error in an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExprError(pub String);

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Expr {
    /// Parses an expression.
    pub fn parse(text: &str) -> Result<Expr, ExprError> {
        let mut parser = Parser { rest: text };
        let expr = parser.select()?;
        match parser.rest.trim() {
            "" => Ok(expr),
            rest => Err(ExprError(format!("`{rest}` after an expression"))),
        }
    }

    /// Evaluates the expression. Integers are exact (128 bits); operations with a float are in double precision.
    pub fn eval(&self, scope: &dyn Scope) -> Result<Number, ExprError> {
        let error = |what: &str| ExprError(what.to_string());
        Ok(match self {
            Expr::Number(n) => *n,
            Expr::Bits(_) => return Err(error("exact bits cannot be computed with")),
            Expr::Name(name) => scope.name(name).ok_or_else(|| ExprError(format!("nothing is called `{name}`")))?,
            Expr::Element(buffer, index) => {
                let Number::Int(at) = index.eval(scope)? else { return Err(error("an index is an integer")) };
                scope.element(buffer, at).ok_or_else(|| ExprError(format!("`{buffer}[{at}]` does not exist")))?
            }
            Expr::Unary(op, a) => match (op, a.eval(scope)?) {
                ('-', Number::Int(a)) => Number::Int(a.wrapping_neg()),
                ('-', Number::Float(a)) => Number::Float(-a),
                ('~', Number::Int(a)) => Number::Int(!a),
                (_, a) => Number::Int(i128::from(a.as_f64() == 0.0)),
            },
            Expr::Binary(op, a, b) => binary(op, a.eval(scope)?, b.eval(scope)?)?,
            Expr::Select(c, a, b) => match c.eval(scope)?.as_f64() == 0.0 {
                false => a.eval(scope)?,
                true => b.eval(scope)?,
            },
            Expr::Sum(index, count, body) => {
                let Number::Int(count) = count.eval(scope)? else { return Err(error("a count is an integer")) };
                let mut total = Number::Int(0);
                for value in 0..count {
                    let inner = Bound { name: index, value: Number::Int(value), outer: scope };
                    total = binary("+", total, body.eval(&inner)?)?;
                }
                total
            }
            Expr::Call(name, args) => {
                let values = args.iter().map(|a| a.eval(scope)).collect::<Result<Vec<_>, _>>()?;
                call(name, &values)?
            }
        })
    }
}

/// A scope with one more binding.
struct Bound<'s> {
    name: &'s str,
    value: Number,
    outer: &'s dyn Scope,
}

impl Scope for Bound<'_> {
    fn name(&self, name: &str) -> Option<Number> {
        if name == self.name { Some(self.value) } else { self.outer.name(name) }
    }
    fn element(&self, buffer: &str, index: i128) -> Option<Number> {
        self.outer.element(buffer, index)
    }
}

fn binary(op: &str, a: Number, b: Number) -> Result<Number, ExprError> {
    let truth = |v: bool| Ok(Number::Int(i128::from(v)));
    if let (Number::Int(a), Number::Int(b)) = (a, b) {
        let shift = u32::try_from(b).unwrap_or(127).min(127);
        return match op {
            "+" => Ok(Number::Int(a.wrapping_add(b))),
            "-" => Ok(Number::Int(a.wrapping_sub(b))),
            "*" => Ok(Number::Int(a.wrapping_mul(b))),
            "/" | "%" if b == 0 => Err(ExprError("division by zero".into())),
            "/" => Ok(Number::Int(a.wrapping_div(b))),
            "%" => Ok(Number::Int(a.wrapping_rem(b))),
            "<<" => Ok(Number::Int(a.wrapping_shl(shift))),
            ">>" => Ok(Number::Int(a >> shift)),
            "&" => Ok(Number::Int(a & b)),
            "|" => Ok(Number::Int(a | b)),
            "^" => Ok(Number::Int(a ^ b)),
            "&&" => truth(a != 0 && b != 0),
            "||" => truth(a != 0 || b != 0),
            "==" => truth(a == b),
            "!=" => truth(a != b),
            "<" => truth(a < b),
            ">" => truth(a > b),
            "<=" => truth(a <= b),
            _ => truth(a >= b),
        };
    }
    let (a, b) = (a.as_f64(), b.as_f64());
    match op {
        "+" => Ok(Number::Float(a + b)),
        "-" => Ok(Number::Float(a - b)),
        "*" => Ok(Number::Float(a * b)),
        "/" => Ok(Number::Float(a / b)),
        "%" => Ok(Number::Float(a % b)),
        "==" => truth(a == b),
        "!=" => truth(a != b),
        "<" => truth(a < b),
        ">" => truth(a > b),
        "<=" => truth(a <= b),
        ">=" => truth(a >= b),
        "&&" => truth(a != 0.0 && b != 0.0),
        "||" => truth(a != 0.0 || b != 0.0),
        _ => Err(ExprError(format!("`{op}` of floats"))),
    }
}

fn call(name: &str, args: &[Number]) -> Result<Number, ExprError> {
    match (name, args) {
        ("min", [Number::Int(a), Number::Int(b)]) => Ok(Number::Int(*a.min(b))),
        ("max", [Number::Int(a), Number::Int(b)]) => Ok(Number::Int(*a.max(b))),
        ("min", [a, b]) => Ok(Number::Float(a.as_f64().min(b.as_f64()))),
        ("max", [a, b]) => Ok(Number::Float(a.as_f64().max(b.as_f64()))),
        ("abs", [Number::Int(a)]) => Ok(Number::Int(a.abs())),
        ("abs", [a]) => Ok(Number::Float(a.as_f64().abs())),
        ("popc", [Number::Int(a)]) => Ok(Number::Int(i128::from(a.count_ones()))),
        ("sqrt", [a]) => Ok(Number::Float(a.as_f64().sqrt())),
        ("exp2", [a]) => Ok(Number::Float(a.as_f64().exp2())),
        ("f32", [a]) => Ok(Number::Float(f64::from(a.as_f64() as f32))),
        ("u32", [Number::Int(a)]) => Ok(Number::Int(i128::from(*a as u32))),
        ("s32", [Number::Int(a)]) => Ok(Number::Int(i128::from(*a as i32))),
        ("u64", [Number::Int(a)]) => Ok(Number::Int(i128::from(*a as u64))),
        ("s64", [Number::Int(a)]) => Ok(Number::Int(i128::from(*a as i64))),
        _ => Err(ExprError(format!("no function `{name}` of {} arguments", args.len()))),
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn eat(&mut self, token: &str) -> bool {
        let trimmed = self.rest.trim_start();
        match trimmed.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn need(&mut self, token: &str) -> Result<(), ExprError> {
        match self.eat(token) {
            true => Ok(()),
            false => Err(ExprError(format!("`{token}` expected before `{}`", self.rest.trim()))),
        }
    }

    fn select(&mut self) -> Result<Expr, ExprError> {
        let condition = self.level(0)?;
        if !self.eat("?") {
            return Ok(condition);
        }
        let yes = self.select()?;
        self.need(":")?;
        let no = self.select()?;
        Ok(Expr::Select(condition.into(), yes.into(), no.into()))
    }

    fn level(&mut self, level: usize) -> Result<Expr, ExprError> {
        let Some(ops) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        while let Some(op) = self.operator(ops) {
            let right = self.level(level + 1)?;
            left = Expr::Binary(op, left.into(), right.into());
        }
        Ok(left)
    }

    /// Consumes one of the operators, unless it is a prefix of a longer one.
    fn operator(&mut self, ops: &[&'static str]) -> Option<&'static str> {
        let trimmed = self.rest.trim_start();
        let longest =
            LEVELS.iter().copied().flatten().filter(|op| trimmed.starts_with(**op)).max_by_key(|op| op.len())?;
        // `+-` starts a tolerance.
        if trimmed.starts_with("+-") || !ops.contains(longest) {
            return None;
        }
        self.rest = &trimmed[longest.len()..];
        Some(longest)
    }

    fn unary(&mut self) -> Result<Expr, ExprError> {
        for op in ['-', '~', '!'] {
            if self.eat(op.encode_utf8(&mut [0; 4])) {
                return Ok(Expr::Unary(op, self.unary()?.into()));
            }
        }
        if self.eat("(") {
            let inner = self.select()?;
            self.need(")")?;
            return Ok(inner);
        }
        let word = self.word();
        if word.is_empty() {
            return Err(ExprError(format!("a value expected before `{}`", self.rest.trim())));
        }
        if let Some(bits) = word.strip_prefix("0f").or(word.strip_prefix("0d")).filter(|h| matches!(h.len(), 8 | 16)) {
            return u64::from_str_radix(bits, 16)
                .map(Expr::Bits)
                .map_err(|_| ExprError(format!("`{word}` is not a literal")));
        }
        if let Some(value) = parse_int(word) {
            return Ok(Expr::Number(Number::Int(value)));
        }
        if let Some(value) = parse_f64(word) {
            return Ok(Expr::Number(Number::Float(value)));
        }
        if self.eat("[") {
            let index = self.select()?;
            self.need("]")?;
            return Ok(Expr::Element(word.into(), index.into()));
        }
        if self.eat("(") {
            let mut args = Vec::new();
            while !self.eat(")") {
                args.push(self.select()?);
                self.eat(",");
            }
            return Ok(match (word, &args[..]) {
                ("sum", [Expr::Name(index), count, body]) => {
                    Expr::Sum(index.clone(), count.clone().into(), body.clone().into())
                }
                _ => Expr::Call(word.into(), args),
            });
        }
        Ok(Expr::Name(word.into()))
    }

    /// Consumes a name or a number, including a signed exponent.
    fn word(&mut self) -> &'a str {
        let trimmed = self.rest.trim_start();
        let number = trimmed.starts_with(|c: char| c.is_ascii_digit());
        let hex = trimmed.starts_with("0x") || trimmed.starts_with("0f") || trimmed.starts_with("0d");
        let mut previous = ' ';
        let end = trimmed
            .find(|c: char| {
                let exponent = number && !hex && matches!(previous, 'e' | 'E') && matches!(c, '+' | '-');
                let inside = c.is_ascii_alphanumeric() || c == '_' || (number && c == '.') || exponent;
                previous = c;
                !inside
            })
            .unwrap_or(trimmed.len());
        // `0..8` is a range, not a number with dots.
        let end = trimmed[..end].find("..").unwrap_or(end);
        let (word, rest) = trimmed.split_at(end);
        self.rest = rest;
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Scope for Fixed {
        fn name(&self, name: &str) -> Option<Number> {
            (name == "i").then_some(Number::Int(7))
        }
        fn element(&self, buffer: &str, index: i128) -> Option<Number> {
            (buffer == "a").then_some(Number::Int(index * 10))
        }
    }

    fn int(text: &str) -> i128 {
        match Expr::parse(text).and_then(|e| e.eval(&Fixed)) {
            Ok(Number::Int(v)) => v,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn operators_bind_as_in_c() {
        assert_eq!(int("1 + 2 * 3"), 7);
        assert_eq!(int("(1 + 2) * 3 - -4"), 13);
        assert_eq!(int("1 << 3 | 1"), 9);
        assert_eq!(int("i % 4 == 3 ? a[i - 1] : 0"), 60);
        assert_eq!(int("i < 3 && 1 || i >= 7"), 1);
        assert_eq!(int("u32(-1)"), 0xffff_ffff);
        assert_eq!(int("max(i, 0x10) & ~1"), 16);
        assert_eq!(int("1 + sum(k, 4, sum(j, k, a[j]) + i)"), 1 + 10 + 10 + 20 + 28);
        assert_eq!(Expr::parse("1e-3").unwrap().eval(&Fixed), Ok(Number::Float(0.001)));
        assert_eq!(Expr::parse("0f7FC00000"), Ok(Expr::Bits(0x7fc0_0000)));
        assert!(Expr::parse("1 +").is_err() && Expr::parse("a[1").is_err());
        assert!(Expr::parse("1 / 0").unwrap().eval(&Fixed).is_err());
    }
}
