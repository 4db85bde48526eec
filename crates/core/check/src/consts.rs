//! Constant expressions (manual, section 4.5): 64-bit integers, signed or unsigned, and doubles.
//!
//! The rules are those of table 5 of the manual, with one addition of ptxas: a division by zero is an error, and so is mixing
//! integers with floating point.

use margay_syntax::{
    Span, Tree,
    tree::{BinaryOp, Expr, Kind, Operand, UnaryOp},
};

/// The value of a constant expression.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Const {
    /// `.s64` or `.u64`: the bits, and whether they are unsigned.
    Int {
        /// Two's complement.
        value: i64,
        /// `.u64`
        unsigned: bool,
    },
    /// `.f64`
    Double(f64),
    /// `0f3F800000`: 32 bits that keep their exact value.
    Single(u32),
}

impl Const {
    /// A signed integer.
    pub(crate) fn int(value: i64) -> Const {
        Const::Int { value, unsigned: false }
    }

    /// The bits of an integer; nothing for floating point.
    pub(crate) fn as_int(self) -> Option<i64> {
        match self {
            Const::Int { value, .. } => Some(value),
            Const::Double(_) | Const::Single(_) => None,
        }
    }
}

/// Why an expression has no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConstError {
    /// A name (other than `WARP_SZ`), a register, a vector: the place.
    NotConstant(Span),
    /// Integer and floating point meet, or an integer operator got floating point.
    Mixed(Span),
    /// Division or remainder by zero.
    DivisionByZero(Span),
    /// Nested deeper than [`DEPTH`].
    TooDeep(Span),
    /// The parser has complained already.
    Bad,
}

/// How deep expressions may nest: far beyond any real one, and safe for any stack.
const DEPTH: u32 = 200;

/// Threads per warp, on every target so far (manual, section 4.5.1).
const WARP_SIZE: i64 = 32;

/// Evaluates an operand as a constant.
pub(crate) fn eval(tree: &Tree, operand: &Operand) -> Result<Const, ConstError> {
    eval_at(tree, operand, 0)
}

/// Evaluates an operand by index.
pub(crate) fn eval_index(tree: &Tree, index: u32) -> Result<Const, ConstError> {
    tree.operands.get(index as usize).map_or(Err(ConstError::Bad), |o| eval(tree, o))
}

fn eval_at(tree: &Tree, operand: &Operand, depth: u32) -> Result<Const, ConstError> {
    if depth > DEPTH {
        return Err(ConstError::TooDeep(operand.span));
    }
    match operand.kind {
        Kind::Int { value, unsigned } => Ok(Const::Int { value: value.get() as i64, unsigned }),
        Kind::Float { bits, single: true } => Ok(Const::Single(bits.get() as u32)),
        Kind::Float { bits, single: false } => Ok(Const::Double(f64::from_bits(bits.get()))),
        Kind::Name if tree.str(operand.span) == "WARP_SZ" => Ok(Const::int(WARP_SIZE)),
        Kind::Expr(index) => expr(tree, operand.span, index, depth + 1),
        Kind::Sum { base, offset, minus } => {
            let (a, b) = (at(tree, base, depth + 1)?, at(tree, offset, depth + 1)?);
            binary(if minus { BinaryOp::Sub } else { BinaryOp::Add }, a, b, operand.span)
        }
        Kind::Error => Err(ConstError::Bad),
        _ => Err(ConstError::NotConstant(operand.span)),
    }
}

fn at(tree: &Tree, index: u32, depth: u32) -> Result<Const, ConstError> {
    tree.operands.get(index as usize).map_or(Err(ConstError::Bad), |o| eval_at(tree, o, depth))
}

fn expr(tree: &Tree, span: Span, index: u32, depth: u32) -> Result<Const, ConstError> {
    match tree.exprs.get(index as usize) {
        None => Err(ConstError::Bad),
        Some(Expr::Unary(op, x)) => unary(*op, at(tree, *x, depth)?, span),
        Some(Expr::Binary(op, x, y)) => binary(*op, at(tree, *x, depth)?, at(tree, *y, depth)?, span),
        Some(Expr::Select(c, x, y)) => {
            let (c, x, y) = (at(tree, *c, depth)?, at(tree, *x, depth)?, at(tree, *y, depth)?);
            let Const::Int { value, .. } = c else { return Err(ConstError::Mixed(span)) };
            match (x, y) {
                (Const::Int { value: x, unsigned: a }, Const::Int { value: y, unsigned: b }) => {
                    Ok(Const::Int { value: if value != 0 { x } else { y }, unsigned: a || b })
                }
                (Const::Double(x), Const::Double(y)) => Ok(Const::Double(if value != 0 { x } else { y })),
                _ => Err(ConstError::Mixed(span)),
            }
        }
    }
}

fn unary(op: UnaryOp, x: Const, span: Span) -> Result<Const, ConstError> {
    Ok(match (op, x) {
        (UnaryOp::Plus, x @ (Const::Int { .. } | Const::Double(_))) => x,
        (UnaryOp::Minus, Const::Int { value, unsigned }) => Const::Int { value: value.wrapping_neg(), unsigned },
        (UnaryOp::Minus, Const::Double(x)) => Const::Double(-x),
        (UnaryOp::LogicalNot, Const::Int { value, .. }) => Const::int(i64::from(value == 0)),
        (UnaryOp::BitNot, Const::Int { value, .. }) => Const::Int { value: !value, unsigned: true },
        (UnaryOp::CastSigned, Const::Int { value, .. }) => Const::int(value),
        (UnaryOp::CastUnsigned, Const::Int { value, .. }) => Const::Int { value, unsigned: true },
        _ => return Err(ConstError::Mixed(span)),
    })
}

fn binary(op: BinaryOp, x: Const, y: Const, span: Span) -> Result<Const, ConstError> {
    match (x, y) {
        (Const::Int { value: x, unsigned: a }, Const::Int { value: y, unsigned: b }) => {
            integers(op, x, y, a, a || b, span)
        }
        (Const::Double(_), Const::Double(0.0)) if op == BinaryOp::Div => Err(ConstError::DivisionByZero(span)),
        (Const::Double(x), Const::Double(y)) => doubles(op, x, y).ok_or(ConstError::Mixed(span)),
        _ => Err(ConstError::Mixed(span)),
    }
}

fn integers(op: BinaryOp, x: i64, y: i64, first: bool, unsigned: bool, span: Span) -> Result<Const, ConstError> {
    let (ux, uy) = (x as u64, y as u64);
    let wide = |value: i64| Const::Int { value, unsigned };
    let truth = |b: bool| Const::int(i64::from(b));
    if matches!(op, BinaryOp::Div | BinaryOp::Rem) && y == 0 {
        return Err(ConstError::DivisionByZero(span));
    }
    Ok(match op {
        BinaryOp::Mul => wide(x.wrapping_mul(y)),
        BinaryOp::Div if unsigned => wide((ux / uy) as i64),
        BinaryOp::Div => wide(x.wrapping_div(y)),
        BinaryOp::Rem => Const::int((ux % uy) as i64),
        BinaryOp::Add => wide(x.wrapping_add(y)),
        BinaryOp::Sub => wide(x.wrapping_sub(y)),
        // The manual does not say what counts of 64 and more do; ptxas 13.5 takes them modulo 64.
        BinaryOp::Shl => Const::Int { value: x.wrapping_shl(uy as u32), unsigned: first },
        BinaryOp::Shr if first => Const::Int { value: ux.wrapping_shr(uy as u32) as i64, unsigned: true },
        BinaryOp::Shr => Const::int(x.wrapping_shr(uy as u32)),
        BinaryOp::Lt => truth(if unsigned { ux < uy } else { x < y }),
        BinaryOp::Gt => truth(if unsigned { ux > uy } else { x > y }),
        BinaryOp::Le => truth(if unsigned { ux <= uy } else { x <= y }),
        BinaryOp::Ge => truth(if unsigned { ux >= uy } else { x >= y }),
        BinaryOp::Eq => truth(x == y),
        BinaryOp::Ne => truth(x != y),
        BinaryOp::BitAnd => Const::Int { value: x & y, unsigned: true },
        BinaryOp::BitXor => Const::Int { value: x ^ y, unsigned: true },
        BinaryOp::BitOr => Const::Int { value: x | y, unsigned: true },
        BinaryOp::And => truth(x != 0 && y != 0),
        BinaryOp::Or => truth(x != 0 || y != 0),
    })
}

fn doubles(op: BinaryOp, x: f64, y: f64) -> Option<Const> {
    let truth = |b: bool| Some(Const::int(i64::from(b)));
    match op {
        BinaryOp::Mul => Some(Const::Double(x * y)),
        BinaryOp::Div => Some(Const::Double(x / y)),
        BinaryOp::Add => Some(Const::Double(x + y)),
        BinaryOp::Sub => Some(Const::Double(x - y)),
        BinaryOp::Lt => truth(x < y),
        BinaryOp::Gt => truth(x > y),
        BinaryOp::Le => truth(x <= y),
        BinaryOp::Ge => truth(x >= y),
        BinaryOp::Eq => truth(x == y),
        BinaryOp::Ne => truth(x != y),
        BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => None,
        BinaryOp::BitAnd | BinaryOp::BitXor | BinaryOp::BitOr | BinaryOp::And | BinaryOp::Or => None,
    }
}
