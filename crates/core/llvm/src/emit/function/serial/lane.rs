//! The code for single lanes.

use super::{Section, Variables};
use crate::emit::{
    function::{Emitter, Mode, Result, Slot, elem_of, prepare::trivial_exit},
    text::{Elem, Ty, Val, int},
};
use margay_ir::{BlockId, Terminator, VReg, pass::Shape};

impl Emitter<'_> {
    pub(super) fn serial_label(&self, k: usize, what: &str) -> String {
        format!("{}serial{k}.{what}", self.region.tag)
    }

    fn lane_label(&self, b: BlockId) -> String {
        format!("{}b{}.lane", self.region.tag, b.0)
    }

    /// Emits the code for single lanes of the sections that were entered.
    pub(in crate::emit) fn serial_bodies(&mut self) -> Result<()> {
        for k in std::mem::take(&mut self.serial.entered) {
            self.serial_body(k)?;
        }
        Ok(())
    }

    fn serial_body(&mut self, k: usize) -> Result<()> {
        let [begin, next, last] = ["begin", "next", "last"].map(|what| self.serial_label(k, what));
        let (lanes, most) = (self.variables(k).lanes.clone(), self.variables(k).most.clone());
        self.w.block(&begin);
        self.w.store(&int(Elem::I64, 0), &most, 8);
        self.w.jump(&next);
        self.w.block(&next);
        let slots = self.slots.clone();
        let fused = std::mem::take(&mut self.accesses.fused);
        self.serial.single_lane = true;
        let lane = self.next_lane(k);
        self.begin_lane(k, &lane);
        let entry = self.lane_label(self.section_at(k).entry);
        self.w.jump(&entry);
        for b in self.section_at(k).blocks.clone() {
            self.lane_block(k, b)?;
        }
        self.end_lane(k, &lane, [&next, &last]);
        self.slots = slots;
        self.accesses.fused = fused;
        self.serial.single_lane = false;
        self.w.block(&last);
        let (together, most) = (self.variables(k).together.clone(), self.w.load(Ty::scalar(Elem::I64), &most, 8));
        self.add_cost(&together, &most);
        let bits = self.w.load(Ty::scalar(Elem::I32), &lanes, 4);
        self.continue_together(k, &bits)
    }

    /// Takes the next lane, and makes it the only active one; returns its number.
    fn next_lane(&mut self, k: usize) -> Val {
        let left = self.variables(k).left.clone();
        let bits = self.w.load(Ty::scalar(Elem::I32), &left, 4);
        self.declare_cttz();
        let ty = Ty::scalar(Elem::I32);
        let lane = self.w.value(ty, format_args!("call i32 @llvm.cttz.i32(i32 {bits}, i1 true)"));
        let less = self.w.op_const("sub", &bits, 1);
        let rest = self.w.op("and", &bits, &less);
        self.w.store(&rest, &left, 4);
        let one = self.w.op("shl", &int(Elem::I32, 1), &lane);
        self.mode = Mode::Masked;
        self.active = self.unpack_bits(&one);
        lane
    }

    /// Gives the section's registers scalar variables, with the values that a lane brings.
    fn begin_lane(&mut self, k: usize, lane: &Val) {
        let Section { inputs, registers, .. } = self.section_at(k);
        let (inputs, registers) = (inputs.clone(), registers.clone());
        let brought: Vec<(VReg, Val)> = inputs
            .iter()
            .map(|r| match self.variables(k).rows.get(r).cloned() {
                Some(row) => (*r, self.element(*r, &row, lane)),
                None => (*r, self.read(*r)),
            })
            .collect();
        for r in registers {
            let elem = elem_of(self.func.regs[r.0 as usize]);
            let pointer = self.w.alloca(&self.slot_type(Shape::Uniform, elem), 8);
            self.slots[r.0 as usize] = Slot { pointer, shape: Shape::Uniform, elem, shadow: None };
        }
        for (r, v) in brought {
            self.write(r, &v, None);
        }
        let own = self.variables(k).own.clone();
        self.w.store(&int(Elem::I64, 0), &own, 8);
    }

    /// The value of a register in a lane, from the row of all lanes.
    fn element(&mut self, r: VReg, row: &Val, lane: &Val) -> Val {
        let elem = elem_of(self.func.regs[r.0 as usize]);
        if elem == Elem::I1 {
            let bits = self.w.load(Ty::scalar(Elem::I32), row, 4);
            let first = self.w.op("lshr", &bits, lane);
            return self.w.resize(&first, Elem::I1, false);
        }
        let at = self.place_in_row(row, elem, lane);
        self.w.load(Ty::scalar(elem), &at, elem.bits() / 8)
    }

    fn place_in_row(&mut self, row: &Val, elem: Elem, lane: &Val) -> Val {
        let wide = self.w.resize(lane, Elem::I64, false);
        let bytes = self.w.op_const("mul", &wide, (elem.bits() / 8).into());
        self.w.offset(row, &bytes)
    }

    fn lane_block(&mut self, k: usize, b: BlockId) -> Result<()> {
        let label = self.lane_label(b);
        self.w.block(&label);
        if let Some(cost) = self.section_at(k).loops.get(&b).copied() {
            let (own, apart) = (self.variables(k).own.clone(), self.variables(k).apart.clone());
            self.add_cost(&own, &int(Elem::I64, cost.together.into()));
            self.add_cost(&apart, &int(Elem::I64, cost.apart.into()));
        }
        let (func, block) = (self.func, &self.func.blocks[b.0 as usize]);
        self.here = b;
        for i in block.insts.range() {
            let inst = func.insts[i];
            (self.inst, self.at) = (i as u32, inst.at);
            self.instruction(&inst)?;
        }
        (self.inst, self.at) = (u32::MAX, block.at);
        match &block.term {
            Terminator::Branch { pred, negated, then, other, .. } => {
                let p = self.read(*pred);
                let (yes, no) = if *negated { (*other, *then) } else { (*then, *other) };
                let (yes, no) = (self.edge(k, b, yes), self.edge(k, b, no));
                self.w.branch(&p, &yes.0, &no.0);
                for (label, back) in [yes, no] {
                    if let Some(target) = back {
                        self.w.block(&label);
                        self.count_back_edge(&target);
                    }
                }
            }
            Terminator::Jump(to) => {
                let (label, back) = self.edge(k, b, *to);
                self.w.jump(&label);
                if let Some(target) = back {
                    self.w.block(&label);
                    self.count_back_edge(&target);
                }
            }
            _ => return self.refuse("the end of a block"),
        }
        Ok(())
    }

    /// Where an edge of a section leads; and where it goes on if it is a back edge, which is counted there.
    fn edge(&mut self, k: usize, from: BlockId, to: BlockId) -> (String, Option<String>) {
        let position = |b: BlockId| self.prepared.cfg.position[b.0 as usize];
        let leaves = Some(to) == self.section_at(k).exit || trivial_exit(self.func, to);
        let target = if leaves { self.serial_label(k, "left") } else { self.lane_label(to) };
        if !leaves && position(to) <= position(from) { (self.w.label("back"), Some(target)) } else { (target, None) }
    }

    /// A lane leaves the section: keeps what others read, and goes to the next lane or to the end.
    fn end_lane(&mut self, k: usize, lane: &Val, [next, last]: [&str; 2]) {
        let label = self.serial_label(k, "left");
        self.w.block(&label);
        for r in self.section_at(k).outputs.clone() {
            let (v, row) = (self.read(r), self.variables(k).rows[&r].clone());
            if v.ty.elem == Elem::I1 {
                let before = self.w.load(Ty::scalar(Elem::I32), &row, 4);
                let one = self.w.op("shl", &int(Elem::I32, 1), lane);
                let without = self.w.op_const("xor", &one, -1);
                let without = self.w.op("and", &before, &without);
                let with = self.w.op("or", &before, &one);
                let after = self.w.select(&v, &with, &without);
                self.w.store(&after, &row, 4);
                continue;
            }
            let at = self.place_in_row(&row, v.ty.elem, lane);
            self.w.store(&v, &at, v.ty.elem.bits() / 8);
        }
        let Variables { own, most, left, .. } = self.variables(k);
        let (own, most, left) = (own.clone(), most.clone(), left.clone());
        let [took, longest] = [&own, &most].map(|sum| self.w.load(Ty::scalar(Elem::I64), sum, 8));
        let longest = self.w.intrinsic("llvm.umax", Ty::scalar(Elem::I64), &[&took, &longest]);
        self.w.store(&longest, &most, 8);
        let left = self.w.load(Ty::scalar(Elem::I32), &left, 4);
        let more = self.w.cmp("icmp ne", &left, &int(Elem::I32, 0));
        self.w.branch(&more, next, last);
    }

    /// All lanes go on at the section's exit, or end.
    fn continue_together(&mut self, k: usize, bits: &Val) -> Result<()> {
        let Section { entry, before, exit, outputs, .. } = self.section_at(k);
        let (from, exit, outputs) = (before.unwrap_or(*entry), *exit, outputs.clone());
        self.here = from;
        let active = self.unpack_bits(bits);
        self.active = active.clone();
        for r in outputs {
            let (row, elem) = (self.variables(k).rows[&r].clone(), elem_of(self.func.regs[r.0 as usize]));
            let v = match elem {
                Elem::I1 => {
                    let bits = self.w.load(Ty::scalar(Elem::I32), &row, 4);
                    self.unpack_bits(&bits)
                }
                _ => self.w.load(Ty::lanes(elem), &row, 64),
            };
            self.write(r, &v, Some(&active));
        }
        let position = self.prepared.cfg.position[from.0 as usize];
        let Some(exit) = exit else { return self.end(position) };
        if !self.only_masked() {
            let all = self.w.cmp("icmp eq", bits, &int(Elem::I32, -1));
            let (full, some) = (self.full_label(exit), self.w.label("some"));
            self.w.branch(&all, &full, &some);
            self.w.follow(&some);
        }
        self.go(position, &[(exit, None)])
    }
}
