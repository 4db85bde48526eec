//! Branches on comparisons of affine values, decided by the first and the last lane.
//!
//! `if (i < n)` is uniform in all warps but one. With `i` affine and `n` uniform, comparing the first and the last lane
//! shows that, and only divergent warps compare all lanes. `if (i == n)` fails in all lanes of all warps but one.

use crate::emit::{
    function::affine::{Row, affine_form},
    function::{Emitter, Result},
    text::{Elem, Val, int},
};
use margay_ir::{
    BlockId, Inst, Operand, VReg,
    pass::{
        Relation, Shape,
        liveness::{defines, only_definition},
    },
};
use margay_isa::{Component, Opcode, Special, Type};

/// Whether a comparison holds in all lanes, or in none: scalars, both false if lanes diverge, and absent where that is never certain.
pub struct Decided {
    /// Holds in all lanes.
    pub all: Option<Val>,
    /// Holds in no lane.
    pub none: Option<Val>,
    /// The comparison, to be emitted lane by lane where neither is true.
    pub inst: Inst,
    /// The only warp for which neither is true: the index of its first thread, and its value.
    pub warp: Option<(Val, u32)>,
}

impl Decided {
    /// The same of the negated comparison.
    fn negated_if(self, negated: bool) -> Decided {
        let (all, none) = if negated { (self.none, self.all) } else { (self.all, self.none) };
        Decided { all, none, ..self }
    }
}

impl Emitter<'_> {
    /// Decides the comparison that a block's branch depends on by its extreme lanes, if both operands are affine.
    pub fn decide_by_extremes(&mut self, block: BlockId, pred: VReg) -> Result<Option<Decided>> {
        let func = self.func;
        let insts = func.insts(&func.blocks[block.0 as usize]);
        let Some(at) = insts.iter().rposition(|i| defines(func, i, pred)) else { return Ok(None) };
        let inst = insts[at];
        let variant = func.variant(&inst);
        let (srcs, dsts) = (func.operands(inst.srcs), func.operands(inst.dsts));
        let ([a, b], [Operand::Reg(d)], None) = (srcs, dsts, inst.guard) else { return Ok(None) };
        let t = variant.t();
        let known = variant.op == Opcode::Setp && *d == pred && matches!(t, Type::S32 | Type::U32 | Type::B32);
        let changed =
            |o: &Operand| matches!(o, Operand::Reg(r) if insts[at + 1..].iter().any(|i| defines(func, i, *r)));
        if !known || changed(a) || changed(b) {
            return Ok(None);
        }
        let Some(relation) = Relation::of(variant) else { return Ok(None) };
        if matches!(relation, Relation::Equal | Relation::Unequal) {
            let equal = self.decide_equality(a, b, inst)?;
            return Ok(equal.map(|e| e.negated_if(relation == Relation::Unequal)));
        }
        let less = matches!(relation, Relation::Less | Relation::AtLeast);
        // `>=` and `<=` are the negations of `<` and `>`.
        let inverted = matches!(relation, Relation::AtLeast | Relation::AtMost);
        let (low, high) = if less { (a, b) } else { (b, a) };
        if let Some(decided) = self.decide_thread(low, high, inst)? {
            return Ok(Some(decided.negated_if(inverted)));
        }
        let (Some(low), Some(high)) = (self.ends(low, t)?, self.ends(high, t)?) else { return Ok(None) };
        // In 64 bits, so that a row that wraps around is detected.
        let straight = self.w.op("and", &low.straight, &high.straight);
        let holds = self.w.cmp("icmp slt", &low.most, &high.least);
        let fails = self.w.cmp("icmp sge", &low.least, &high.most);
        let holds = self.w.op("and", &holds, &straight);
        let fails = self.w.op("and", &fails, &straight);
        let decided = Decided { all: Some(holds), none: Some(fails), inst, warp: None };
        Ok(Some(decided.negated_if(inverted)))
    }

    /// Decides `low < high` if one is the thread's index in a row of warps and the other a constant.
    fn decide_thread(&mut self, low: &Operand, high: &Operand, inst: Inst) -> Result<Option<Decided>> {
        // Threads below `bound`, or at it and above.
        let (thread, bound, below) = match (low, high) {
            (thread, Operand::Imm(bound)) => (thread, *bound, true),
            (Operand::Imm(before), thread) => (thread, before.wrapping_add(1), false),
            _ => return Ok(None),
        };
        if !self.is_thread_in_row(thread) || bound > i32::MAX as u64 {
            return Ok(None);
        }
        let first = self.first_lane(thread)?;
        let (warp, whole) = (bound as u32 & !31, bound % 32 == 0);
        let at = int(Elem::I32, warp.into());
        let before = self.w.cmp("icmp ult", &first, &at);
        let after = self.w.cmp(if whole { "icmp uge" } else { "icmp ugt" }, &first, &at);
        let decided = Decided { all: Some(before), none: Some(after), inst, warp: (!whole).then_some((first, warp)) };
        Ok(Some(decided.negated_if(!below)))
    }

    /// Decides whether a uniform operand equals an affine one of 32 bits; `None` if they are not of these shapes.
    fn decide_equality(&mut self, a: &Operand, b: &Operand, inst: Inst) -> Result<Option<Decided>> {
        let form = |o: &Operand| self.shape_of(o).and_then(affine_form);
        let (affine, stride, uniform) = match (form(a), form(b)) {
            (Some((32, stride)), Some((32, 0))) if stride != 0 => (a, stride, b),
            (Some((32, 0)), Some((32, stride))) if stride != 0 => (b, stride, a),
            _ => return Ok(None),
        };
        let reach = 31 * i128::from(stride.unsigned_abs());
        if reach > i128::from(i32::MAX) {
            return Ok(None);
        }
        let (first, wanted) = (self.first_lane(affine)?, self.first_lane(uniform)?);
        if let Operand::Imm(thread) = uniform
            && self.is_thread_in_row(affine)
        {
            let warp = *thread as u32 & !31;
            let apart = self.w.cmp("icmp ne", &first, &int(Elem::I32, warp.into()));
            return Ok(Some(Decided { all: None, none: Some(apart), inst, warp: Some((first, warp)) }));
        }
        let distance = if stride > 0 { self.w.op("sub", &wanted, &first) } else { self.w.op("sub", &first, &wanted) };
        let apart = self.w.cmp("icmp ugt", &distance, &int(Elem::I32, reach));
        Ok(Some(Decided { all: None, none: Some(apart), inst, warp: None }))
    }

    /// Tells LLVM which warp the code that follows is about, so that its masks are constants.
    pub fn assume_warp(&mut self, (first, warp): &(Val, u32)) {
        let same = self.w.cmp("icmp eq", first, &int(Elem::I32, (*warp).into()));
        self.w.declared.insert("declare void @llvm.assume(i1)".into());
        self.w.line(format_args!("call void @llvm.assume(i1 {same})"));
    }

    /// Whether an operand is `%tid.x`, which counts up from a multiple of 32 in each warp: rows of threads are made of whole warps.
    fn is_thread_in_row(&self, operand: &Operand) -> bool {
        let whole = self.options.warp.block.is_some_and(|[x, y, z]| x % 32 == 0 || y * z == 1);
        let source = match operand {
            Operand::Reg(r) => self.only_source(*r),
            other => Some(other),
        };
        whole && matches!(source, Some(Operand::Special(Special::Tid, Component::X)))
    }

    /// What the only instruction that writes a register copies to it.
    fn only_source(&self, r: VReg) -> Option<&Operand> {
        let func = self.func;
        let inst = only_definition(func, r)?;
        let copies = func.variant(inst).op == Opcode::Mov && inst.guard.is_none();
        match func.operands(inst.srcs) {
            [source] if copies => Some(source),
            _ => None,
        }
    }

    fn shape_of(&self, operand: &Operand) -> Option<Shape> {
        match operand {
            Operand::Reg(r) => Some(self.slots[r.0 as usize].shape),
            Operand::Special(s, c) => Some(self.options.warp.special(*s, *c)),
            Operand::Imm(_) => Some(Shape::Uniform),
            _ => None,
        }
    }

    /// The value of an affine operand of 32 bits in the first lane.
    fn first_lane(&mut self, operand: &Operand) -> Result<Val> {
        self.row = Some(Row { width: 32, index: 0 });
        let first = self.raw_value(operand, Elem::I32);
        self.row = None;
        first
    }

    /// Smallest and largest value of an operand over the lanes, as 64-bit integers.
    fn ends(&mut self, operand: &Operand, t: Type) -> Result<Option<Ends>> {
        let Some((32, stride)) = self.shape_of(operand).and_then(affine_form) else { return Ok(None) };
        let signed = t.is_signed();
        let first = self.first_lane(operand)?;
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
