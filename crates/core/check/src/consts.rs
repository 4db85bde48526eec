//! Constant expressions (manual, section 4.5) as operands, evaluated by [`margay_syntax::eval`].

use margay_syntax::{
    EvalError, Span, Tree, Value,
    tree::{Kind, Operand},
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
    /// The bits of an integer; nothing for floating point.
    pub(crate) fn as_int(self) -> Option<i64> {
        match self {
            Const::Int { value, .. } => Some(value),
            Const::Double(_) | Const::Single(_) => None,
        }
    }
}

/// Evaluates an operand as a constant.
pub(crate) fn eval(tree: &Tree, operand: &Operand) -> Result<Const, EvalError> {
    // Most operands are literals.
    if let Kind::Int { value, unsigned } = operand.kind {
        return Ok(Const::Int { value: value.get() as i64, unsigned });
    }
    Ok(match margay_syntax::eval(tree, operand)? {
        Value::Signed(value) => Const::Int { value, unsigned: false },
        Value::Unsigned(value) => Const::Int { value: value as i64, unsigned: true },
        Value::Double(x) => Const::Double(x),
        Value::Single(bits) => Const::Single(bits),
    })
}

/// Evaluates an operand by index.
pub(crate) fn eval_index(tree: &Tree, index: u32) -> Result<Const, EvalError> {
    tree.operands.get(index as usize).map_or(Err(EvalError::Unreadable(Span::default())), |o| eval(tree, o))
}
