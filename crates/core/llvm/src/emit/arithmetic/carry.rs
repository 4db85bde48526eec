//! Extended-precision arithmetic (manual, section 9.7.2). The carry is a predicate: the last source of rows that read
//! it, the last destination of rows that write it. After a subtraction it is set if there was no borrow.

use crate::emit::{
    function::{Emitter, Result},
    text::{Elem, Val},
};
use margay_ir::Operand;
use margay_isa::{Mod, Opcode, Variant};

impl Emitter<'_> {
    /// Emits a row that reads or writes the carry: result, then carry. `None` for other rows.
    pub fn carry_row(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Option<Vec<Val>>> {
        let reads = matches!(variant.op, Opcode::Addc | Opcode::Subc | Opcode::Madc);
        let bits = variant.t().bits();
        if !(reads || variant.has(Mod::Cc)) || !matches!(bits, 32 | 64) {
            return Ok(None);
        }
        let numbers = srcs.len() - usize::from(reads);
        let v = srcs[..numbers].iter().map(|s| self.value(s, Elem::int(bits))).collect::<Result<Vec<Val>>>()?;
        let carry = match srcs.last() {
            Some(flag) if reads => Some(self.value(flag, Elem::I1)?),
            _ => None,
        };
        Ok(Some(match (variant.op, &v[..]) {
            (Opcode::Add | Opcode::Addc, [a, b]) => self.sum_and_carry(a, b, carry.as_ref()),
            (Opcode::Sub | Opcode::Subc, [a, b]) => {
                // `a + ~b + 1`
                let b = self.w.op_const("xor", b, -1);
                let carry = carry.unwrap_or_else(|| crate::emit::text::int(Elem::I1, 1));
                self.sum_and_carry(a, &b, Some(&carry))
            }
            (Opcode::Mad | Opcode::Madc, [a, b, c]) => {
                let p = self.product(variant, a, b, variant.t().is_signed());
                self.sum_and_carry(&p, c, carry.as_ref())
            }
            _ => return Ok(None),
        }))
    }

    fn sum_and_carry(&mut self, a: &Val, b: &Val, carry: Option<&Val>) -> Vec<Val> {
        let sum = self.w.op("add", a, b);
        let over = self.w.cmp("icmp ult", &sum, b);
        let Some(carry) = carry else { return vec![sum, over] };
        let one = self.w.cast("zext", carry, sum.ty.elem);
        let more = self.w.op("add", &sum, &one);
        let again = self.w.cmp("icmp ult", &more, &sum);
        let over = self.w.op("or", &over, &again);
        vec![more, over]
    }
}
