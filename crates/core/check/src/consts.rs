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

/// The literal of floating point for an integer: `7.0` for `7`, and the value of anything longer, such as `32.0` for `WARP_SZ`.
pub(crate) fn as_float(written: &str, value: i64) -> String {
    match is_decimal(written) {
        true => format!("{written}.0"),
        false => format!("{value}.0"),
    }
}

/// Whether an integer is written in decimal digits, with a sign at most.
pub(crate) fn is_decimal(written: &str) -> bool {
    let digits = written.strip_prefix('-').unwrap_or(written);
    digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::as_float;

    #[test]
    fn integers_as_floats() {
        for (written, value, float) in [
            ("7", 7, "7.0"),
            ("-7", -7, "-7.0"),
            ("WARP_SZ", 32, "32.0"),
            ("1+1", 2, "2.0"),
            ("010", 8, "8.0"),
            ("0", 0, "0.0"),
        ] {
            assert_eq!(as_float(written, value), float);
        }
    }
}
