//! Constants that a type or a row does not accept.

use super::*;

impl<'a> Walker<'a, '_> {
    #[cold]
    pub(in crate::body) fn no_integer(&mut self, c: &Candidate, want: &Want, value: i64, span: Span) -> Operand {
        let text = self.tree.str(self.mnemonic());
        let operand = format!("operand {} (`{}`) of `{text}`", self.current.operand + 1, want.opnd.name);
        let written = self.tree.str(span);
        let d = if !want.opnd.imm {
            Diagnostic::new(Code::OperandKind, span, format!("{operand} is a register, not a constant"))
                .help("move the constant into a register first")
        } else if want.constants == Constants::Float {
            let ty = want.ty.unwrap_or(Type::F32);
            let exact = if ty == Type::F32 {
                format!("0f{:08X}", (value as f32).to_bits())
            } else {
                format!("0d{:016X}", (value as f64).to_bits())
            };
            let d =
                Diagnostic::new(Code::ConstantType, span, format!("{operand} is `{ty}`, found the integer {written}"));
            // Hexadecimal digits that fill the type are its bits.
            let digits = written.strip_prefix("0x").or_else(|| written.strip_prefix("0X"));
            let (prefix, width) = if ty == Type::F32 { ("0f", 8) } else { ("0d", 16) };
            match digits {
                Some(digits) if digits.len() == width && digits.bytes().all(|b| b.is_ascii_hexdigit()) => suggest(
                    d.help("with the prefix `0f` or `0d`, these digits are the bits of the number"),
                    span,
                    &format!("{prefix}{}", digits.to_uppercase()),
                ),
                Some(_) => d.help(format!("write `{exact}`")),
                None => d.help(format!("write `{}` or `{exact}`", crate::consts::as_float(written, value))),
            }
        } else {
            let ty = want.ty.map(|t| format!("`{t}`")).unwrap_or_default();
            Diagnostic::new(Code::ConstantType, span, format!("{operand} is {ty}, which allows no constants"))
                .help("move the bits into a register first: `mov.b16`, `mov.b32`")
        };
        let _ = c;
        self.report.push(d);
        Operand::Error
    }

    #[cold]
    pub(in crate::body) fn no_float(&mut self, want: &Want, single: bool, span: Span) {
        let text = self.tree.str(self.mnemonic());
        let operand = format!("operand {} (`{}`) of `{text}`", self.current.operand + 1, want.opnd.name);
        let written = self.tree.str(span);
        let ty = want.ty.map(|t| format!("`{t}`")).unwrap_or_default();
        let d = Diagnostic::new(
            Code::ConstantType,
            span,
            format!("{operand} is {ty}, found the floating-point constant {written}"),
        );
        let d = match want.constants {
            Constants::Bits if want.ty.is_some_and(|t| t.bits() == 32) => {
                d.help("write the bits of a single: `0f3F800000`")
            }
            Constants::Bits if want.ty.is_some_and(|t| t.bits() == 64) && single => {
                d.help("write the bits of a double: `0d3FF0000000000000`")
            }
            Constants::Int => d.help("write an integer"),
            _ => d.help("move the bits into a register first"),
        };
        self.report.push(d);
    }

    #[cold]
    pub(in crate::body) fn truncated(&mut self, ty: Type, value: i64, span: Span) {
        let bits = ty.bits();
        let kept = value & ((1i64 << bits.min(62)) - 1);
        let needs = if value < 0 { 65 - (!value).leading_zeros() } else { 64 - value.leading_zeros() };
        self.report.push(
            Diagnostic::new(
                Code::TruncatedConstant,
                span,
                format!("the constant has {needs} bits; `{ty}` truncates it to {kept:#x}"),
            )
            .note("ptxas does not warn"),
        );
    }

    /// A fragment of one register that lacks its braces.
    #[cold]
    pub(in crate::body) fn needs_braces(&mut self, want: &Want, op: &tree::Operand) {
        let text = self.tree.str(op.span);
        let name = self.tree.str(self.mnemonic());
        self.report.push(
            Diagnostic::new(Code::VectorSize, op.span, format!("`{}` of `{name}` is a vector of one", want.opnd.name))
                .help(format!("write `{{{text}}}`")),
        );
    }

    /// Whether a constant is one of those that the operand may be.
    pub(in crate::body) fn in_range(&mut self, c: &Candidate, want: &Want, value: i64, span: Span) {
        let opnd = want.opnd;
        let limit = if let Some((low, high)) = opnd.range
            && !(low..=high).contains(&value)
        {
            format!("must be in {low}..{high}")
        } else if opnd.step > 1 && value % opnd.step != 0 {
            format!("must be a multiple of {}", opnd.step)
        } else if !opnd.values.is_empty() && !opnd.values.contains(&value) {
            format!("must be {}", list(&opnd.values.iter().map(i64::to_string).collect::<Vec<_>>(), "or"))
        } else {
            return;
        };
        let (name, number) = (self.tree.str(self.mnemonic()), self.current.operand + 1);
        let message = format!("operand {number} (`{}`) of `{name}` {limit}, found {value}", opnd.name);
        let d = Diagnostic::new(Code::ConstantRange, span, message);
        let narrow = c.variant.op == Opcode::Cp && c.variant.has(Mod::Cg) && matches!(value, 4 | 8);
        self.report.push(if narrow { d.help("`.ca` copies 4, 8 or 16 bytes") } else { d });
    }
}
