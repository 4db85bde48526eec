//! Values of constant expressions (sections 4.5.4 to 4.5.6).
//!
//! Integers have 64 bits and are signed or unsigned; floating-point values are doubles. The rules are those of the manual: those of C, with
//! all cases defined. Differences of ptxas 13.5 are noted at the operator.

use crate::tree::{BinaryOp, Expr, Kind, Operand, UnaryOp};
use crate::{Span, Tree};
use std::cmp::Ordering;

/// The value of a constant expression.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// `.s64`
    Signed(i64),
    /// `.u64`
    Unsigned(u64),
    /// `.f64`
    Double(f64),
    /// `0f3F800000`: 32 bits that stay as they are. Never part of an expression.
    Single(u32),
}

impl Value {
    /// The 64 bits of an integer; `None` for floating point.
    pub fn bits(self) -> Option<u64> {
        match self {
            Value::Signed(v) => Some(v as u64),
            Value::Unsigned(v) => Some(v),
            Value::Double(_) | Value::Single(_) => None,
        }
    }

    /// A double, also from a single-precision literal; `None` for integers.
    pub fn double(self) -> Option<f64> {
        match self {
            Value::Double(v) => Some(v),
            Value::Single(bits) => Some(f32::from_bits(bits) as f64),
            Value::Signed(_) | Value::Unsigned(_) => None,
        }
    }
}

/// Why an expression has no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EvalError {
    /// `5 / 0`, `5 % 0`; the place is the divisor's.
    DivisionByZero(Span),
    /// An integer and a floating-point value meet; the place is the expression's.
    Mixed(Span),
    /// `1.5 << 2`, `~1.0`, `1.0 ? 2 : 3`: the operator requires integers; the span is the operand's.
    WantsInteger(Span),
    /// `1 ? 1.5 : 2.5`: a double according to the manual, but ptxas 13.5 requires integers; the span is the expression's.
    SelectOfDoubles(Span),
    /// A name or an address, which is not a constant.
    NotConstant(Span),
    /// The parser has complained already.
    Unreadable(Span),
}

impl EvalError {
    /// Where.
    pub fn span(self) -> Span {
        let (EvalError::DivisionByZero(s)
        | EvalError::Mixed(s)
        | EvalError::WantsInteger(s)
        | EvalError::SelectOfDoubles(s)
        | EvalError::NotConstant(s)
        | EvalError::Unreadable(s)) = self;
        s
    }
}

/// `WARP_SZ` on every target so far.
const WARP_SIZE: i64 = 32;

/// Steps of the evaluation, on a stack of its own: expressions may be nested thousands deep.
enum Step {
    Value(Operand),
    Unary(UnaryOp, Span),
    /// The places of both sides and of the expression itself.
    Binary(BinaryOp, Span, Span, Span),
    /// The places of the condition and of the expression itself.
    Select(Span, Span),
}

/// The value of an operand that is a literal, `WARP_SZ` or a constant expression.
pub fn eval(tree: &Tree, operand: &Operand) -> Result<Value, EvalError> {
    // Nearly all are literals, or literals with a sign, and need no stacks.
    if let Some(value) = literal(operand.kind) {
        return Ok(value);
    }
    if let Kind::Expr(index) = operand.kind
        && let Some(Expr::Unary(op, inner)) = tree.exprs.get(index as usize)
        && let Some(value) = tree.operands.get(*inner as usize).and_then(|o| literal(o.kind))
        && let Some(value) = unary(*op, value)
    {
        return Ok(value);
    }
    let mut values: Vec<Value> = Vec::new();
    let mut steps = vec![Step::Value(*operand)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Value(o) => match o.kind {
                Kind::Int { .. } | Kind::Float { .. } => values.extend(literal(o.kind)),
                Kind::Name if tree.str(o.span) == "WARP_SZ" => values.push(Value::Signed(WARP_SIZE)),
                Kind::Expr(_) | Kind::Sum { .. } => parts(tree, &o, &mut steps).ok_or(EvalError::Unreadable(o.span))?,
                Kind::Error => return Err(EvalError::Unreadable(o.span)),
                _ => return Err(EvalError::NotConstant(o.span)),
            },
            Step::Unary(op, at) => {
                let v = values.pop().ok_or(EvalError::Unreadable(at))?;
                values.push(unary(op, v).ok_or(EvalError::WantsInteger(at))?);
            }
            Step::Binary(op, a, b, whole) => {
                let (Some(y), Some(x)) = (values.pop(), values.pop()) else {
                    return Err(EvalError::Unreadable(whole));
                };
                let value = binary(op, x, y).map_err(|e| match e {
                    Fault::Zero => EvalError::DivisionByZero(b),
                    Fault::Mixed => EvalError::Mixed(whole),
                    Fault::Left => EvalError::WantsInteger(a),
                    Fault::Right => EvalError::WantsInteger(b),
                })?;
                values.push(value);
            }
            Step::Select(c, whole) => {
                let (Some(y), Some(x), Some(condition)) = (values.pop(), values.pop(), values.pop()) else {
                    return Err(EvalError::Unreadable(whole));
                };
                let Some(condition) = condition.bits() else { return Err(EvalError::WantsInteger(c)) };
                match usual(x, y).ok_or(EvalError::Mixed(whole))?.0 {
                    Value::Double(_) => return Err(EvalError::SelectOfDoubles(whole)),
                    // Unlike C, ptxas 13.5 keeps the type of the operand that it chooses.
                    _ => values.push(if condition != 0 { x } else { y }),
                }
            }
        }
    }
    values.pop().ok_or(EvalError::Unreadable(operand.span))
}

/// The value of a literal.
fn literal(kind: Kind) -> Option<Value> {
    Some(match kind {
        Kind::Int { value, unsigned: true } => Value::Unsigned(value.get()),
        Kind::Int { value, unsigned: false } => Value::Signed(value.get() as i64),
        Kind::Float { bits, single: true } => Value::Single(bits.get() as u32),
        Kind::Float { bits, single: false } => Value::Double(f64::from_bits(bits.get())),
        _ => return None,
    })
}

/// Pushes the operands of an expression, and above them the operation on their values. `None` for an invalid tree.
fn parts(tree: &Tree, o: &Operand, steps: &mut Vec<Step>) -> Option<()> {
    let at = |n: u32| tree.operands.get(n as usize).copied();
    let binary = |op: BinaryOp, a: Operand, b: Operand| {
        [Step::Binary(op, a.span, b.span, o.span), Step::Value(b), Step::Value(a)]
    };
    match o.kind {
        Kind::Sum { base, offset, minus } => {
            steps.extend(binary(if minus { BinaryOp::Sub } else { BinaryOp::Add }, at(base)?, at(offset)?));
        }
        Kind::Expr(e) => match *tree.exprs.get(e as usize)? {
            Expr::Unary(op, a) => {
                let a = at(a)?;
                steps.extend([Step::Unary(op, a.span), Step::Value(a)]);
            }
            Expr::Binary(op, a, b) => steps.extend(binary(op, at(a)?, at(b)?)),
            Expr::Select(c, a, b) => {
                let c = at(c)?;
                steps.extend([Step::Select(c.span, o.span), Step::Value(at(b)?), Step::Value(at(a)?), Step::Value(c)]);
            }
        },
        _ => return None,
    }
    Some(())
}

fn unary(op: UnaryOp, v: Value) -> Option<Value> {
    use Value::*;
    Some(match (op, v) {
        (UnaryOp::Plus, Signed(_) | Unsigned(_) | Double(_)) => v,
        (UnaryOp::Minus, Signed(v)) => Signed(v.wrapping_neg()),
        (UnaryOp::Minus, Unsigned(v)) => Unsigned(v.wrapping_neg()),
        (UnaryOp::Minus, Double(v)) => Double(-v),
        (UnaryOp::LogicalNot, Signed(_) | Unsigned(_)) => Signed((v.bits() == Some(0)) as i64),
        (UnaryOp::BitNot, Signed(_) | Unsigned(_)) => Unsigned(!v.bits()?),
        (UnaryOp::CastSigned, Signed(_) | Unsigned(_)) => Signed(v.bits()? as i64),
        (UnaryOp::CastUnsigned, Signed(_) | Unsigned(_)) => Unsigned(v.bits()?),
        (_, Double(_) | Single(_)) => return None,
    })
}

/// The usual arithmetic conversions: both unsigned if either is. `None` if an integer meets a double.
fn usual(x: Value, y: Value) -> Option<(Value, Value)> {
    use Value::*;
    Some(match (x, y) {
        (Signed(_), Signed(_)) | (Double(_), Double(_)) => (x, y),
        (Signed(_) | Unsigned(_), Signed(_) | Unsigned(_)) => (Unsigned(x.bits()?), Unsigned(y.bits()?)),
        _ => return None,
    })
}

enum Fault {
    Zero,
    Mixed,
    Left,
    Right,
}

fn binary(op: BinaryOp, x: Value, y: Value) -> Result<Value, Fault> {
    use BinaryOp::*;
    use Value::*;
    let integers = || match (x.bits(), y.bits()) {
        (Some(a), Some(b)) => Ok((a, b)),
        (None, _) => Err(Fault::Left),
        (_, None) => Err(Fault::Right),
    };
    let truth = |b: bool| Signed(b as i64);
    match op {
        // Operands are taken as unsigned (section 4.5.5). The result is signed by table 5, unsigned for ptxas 13.5; as it computes
        // what runs, so does this.
        Rem => {
            let (a, b) = integers()?;
            if b == 0 { Err(Fault::Zero) } else { Ok(Unsigned(a % b)) }
        }
        Shl | Shr => {
            let (_, by) = integers()?;
            // The manual does not say what amounts of 64 and more do; ptxas 13.5 takes them modulo 64.
            let by = by as u32;
            Ok(match (op, x) {
                (Shl, Signed(v)) => Signed(v.wrapping_shl(by)),
                (Shl, _) => Unsigned(x.bits().unwrap_or(0).wrapping_shl(by)),
                (_, Signed(v)) => Signed(v.wrapping_shr(by)),
                _ => Unsigned(x.bits().unwrap_or(0).wrapping_shr(by)),
            })
        }
        And => integers().map(|(a, b)| truth(a != 0 && b != 0)),
        Or => integers().map(|(a, b)| truth(a != 0 || b != 0)),
        BitAnd | BitXor | BitOr => {
            let (a, b) = integers()?;
            let v = match op {
                BitAnd => a & b,
                BitXor => a ^ b,
                _ => a | b,
            };
            let signed = matches!((x, y), (Signed(_), Signed(_)));
            Ok(if signed { Signed(v as i64) } else { Unsigned(v) })
        }
        Mul | Div | Add | Sub => arithmetic(op, x, y),
        Lt | Gt | Le | Ge | Eq | Ne => compare(op, x, y).map(truth),
    }
}

/// `*`, `/`, `+`, `-` on operands after the usual conversions.
fn arithmetic(op: BinaryOp, x: Value, y: Value) -> Result<Value, Fault> {
    use BinaryOp::*;
    use Value::*;
    Ok(match usual(x, y).ok_or(Fault::Mixed)? {
        (Double(a), Double(b)) => Double(match op {
            Mul => a * b,
            Div if b == 0.0 => return Err(Fault::Zero),
            Div => a / b,
            Add => a + b,
            _ => a - b,
        }),
        (Signed(a), Signed(b)) => Signed(match op {
            Mul => a.wrapping_mul(b),
            Div if b == 0 => return Err(Fault::Zero),
            Div => a.wrapping_div(b),
            Add => a.wrapping_add(b),
            _ => a.wrapping_sub(b),
        }),
        (a, b) => {
            let (a, b) = (a.bits().unwrap_or(0), b.bits().unwrap_or(0));
            Unsigned(match op {
                Mul => a.wrapping_mul(b),
                Div => a.checked_div(b).ok_or(Fault::Zero)?,
                Add => a.wrapping_add(b),
                _ => a.wrapping_sub(b),
            })
        }
    })
}

/// A comparison of operands after the usual conversions. With a NaN only `!=` is true.
fn compare(op: BinaryOp, x: Value, y: Value) -> Result<bool, Fault> {
    use BinaryOp::*;
    use Value::*;
    let order = match usual(x, y).ok_or(Fault::Mixed)? {
        (Double(a), Double(b)) => a.partial_cmp(&b),
        (Signed(a), Signed(b)) => Some(a.cmp(&b)),
        (a, b) => Some(a.bits().cmp(&b.bits())),
    };
    Ok(match op {
        Lt => order.is_some_and(Ordering::is_lt),
        Gt => order.is_some_and(Ordering::is_gt),
        Le => order.is_some_and(Ordering::is_le),
        Ge => order.is_some_and(Ordering::is_ge),
        Eq => order == Some(Ordering::Equal),
        _ => order != Some(Ordering::Equal),
    })
}
