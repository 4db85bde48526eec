//! Branches on comparisons of affine values, decided by the first and the last lane.
//!
//! `if (i < n)` is uniform in all warps but one. With `i` affine and `n` uniform, comparing the first and the last lane
//! shows that, and only divergent warps compare all lanes.

use crate::emit::{
    function::affine::{Row, affine_form},
    function::{Emitter, Result},
    text::{Elem, Val, int},
};
use margay_ir::{BlockId, Inst, Operand, VReg, pass::liveness::inst_writes};
use margay_isa::{Mod, Opcode, Type};

/// Whether a comparison holds in all lanes, or in none; both are scalars, and both false if lanes diverge.
pub struct Decided {
    /// Holds in all lanes.
    pub all: Val,
    /// Holds in no lane.
    pub none: Val,
    /// The comparison, to be emitted lane by lane where neither is true.
    pub inst: Inst,
}

impl Emitter<'_> {
    /// Decides the comparison that a block's branch depends on by its extreme lanes, if both operands are affine.
    pub fn decide_by_extremes(&mut self, block: BlockId, pred: VReg) -> Result<Option<Decided>> {
        let func = self.func;
        let insts = func.insts(&func.blocks[block.0 as usize]);
        let writes = |inst: &Inst, r: VReg| {
            let mut found = false;
            inst_writes(func, inst, &mut |w| found |= w == r);
            found
        };
        let Some(at) = insts.iter().rposition(|i| writes(i, pred)) else { return Ok(None) };
        let inst = insts[at];
        let variant = func.variant(&inst);
        let (srcs, dsts) = (func.operands(inst.srcs), func.operands(inst.dsts));
        let ([a, b], [Operand::Reg(d)], None) = (srcs, dsts, inst.guard) else { return Ok(None) };
        let t = variant.t();
        let known = variant.op == Opcode::Setp && *d == pred && matches!(t, Type::S32 | Type::U32 | Type::B32);
        let changed = |o: &Operand| matches!(o, Operand::Reg(r) if insts[at + 1..].iter().any(|i| writes(i, *r)));
        if !known || changed(a) || changed(b) {
            return Ok(None);
        }
        let less = [Mod::Lt, Mod::Lo, Mod::Ge, Mod::Hs].iter().any(|m| variant.has(*m));
        let more = [Mod::Gt, Mod::Hi, Mod::Le, Mod::Ls].iter().any(|m| variant.has(*m));
        // `>=` and `<=` are the negations of `<` and `>`.
        let inverted = [Mod::Ge, Mod::Hs, Mod::Le, Mod::Ls].iter().any(|m| variant.has(*m));
        if less == more {
            return Ok(None);
        }
        let (low, high) = if less { (a, b) } else { (b, a) };
        let (Some(low), Some(high)) = (self.ends(low, t)?, self.ends(high, t)?) else { return Ok(None) };
        // In 64 bits, so that a row that wraps around is detected.
        let straight = self.w.op("and", &low.straight, &high.straight);
        let holds = self.w.cmp("icmp slt", &low.most, &high.least);
        let fails = self.w.cmp("icmp sge", &low.least, &high.most);
        let holds = self.w.op("and", &holds, &straight);
        let fails = self.w.op("and", &fails, &straight);
        let (all, none) = if inverted { (fails, holds) } else { (holds, fails) };
        Ok(Some(Decided { all, none, inst }))
    }

    /// Smallest and largest value of an operand over the lanes, as 64-bit integers.
    fn ends(&mut self, operand: &Operand, t: Type) -> Result<Option<Ends>> {
        let shape = match operand {
            Operand::Reg(r) => self.slots[r.0 as usize].shape,
            Operand::Special(s, c) => self.options.warp.special(*s, *c),
            Operand::Imm(_) => margay_ir::pass::Shape::Uniform,
            _ => return Ok(None),
        };
        let Some((32, stride)) = affine_form(shape) else { return Ok(None) };
        self.row = Some(Row { width: 32, index: 0 });
        let first = self.raw_value(operand, Elem::I32);
        self.row = None;
        let signed = t.is_signed();
        let first = first?;
        let first = self.w.resize(&first, Elem::I64, signed);
        if stride == 0 {
            return Ok(Some(Ends { least: first.clone(), most: first, straight: int(Elem::I1, 1) }));
        }
        let last = self.w.op_const("add", &first, i128::from(31 * stride));
        let narrow = self.w.resize(&last, Elem::I32, false);
        let again = self.w.resize(&narrow, Elem::I64, signed);
        let straight = self.w.cmp("icmp eq", &last, &again);
        let (least, most) = if stride > 0 { (first, last) } else { (last, first) };
        Ok(Some(Ends { least, most, straight }))
    }
}

struct Ends {
    least: Val,
    most: Val,
    straight: Val,
}
