//! Rows that need the other lanes of the warp.
//!
//! The lanes that a `.sync` row names must all be active where it executes: sweeps bring lanes together again at the
//! post-dominator of whatever parted them, which is where compilers put such rows. A row that waits for lanes that are
//! elsewhere is a fault that says so; the reference engine executes it.

use super::{
    func::{Emitter, Mode, Result},
    text::{Elem, Ty, Val, constant, per_lane},
};
use margay_ir::{Inst, Operand};
use margay_isa::{Mod, Variant};

impl Emitter<'_> {
    /// A row with effect `Warp`.
    pub fn warp_op(&mut self, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let srcs: Vec<Operand> = self.func.operands(inst.srcs).to_vec();
        let dsts: Vec<Operand> = self.func.operands(inst.dsts).to_vec();
        if inst.guard.is_some() {
            return self.refuse(format!("{variant} with a guard"));
        }
        let results = match variant.op.row().name {
            "shfl" => self.shuffle(&variant, &srcs, &dsts)?,
            "vote" => vec![self.vote(&variant, &srcs)?],
            "activemask" => vec![self.active_bits()],
            "redux" => match self.redux(&variant, &srcs)? {
                Some(v) => vec![v],
                None => return self.effect(inst),
            },
            "nanosleep" | "griddepcontrol" | "pmevent" | "setmaxnreg" => return Ok(()),
            _ => return self.effect(inst),
        };
        for (d, v) in dsts.iter().zip(&results) {
            if let Operand::Reg(r) = d {
                self.write(*r, v, None);
            }
        }
        Ok(())
    }

    /// All lanes that the mask names must be here.
    fn gathered(&mut self, members: &Operand) -> Result<()> {
        if !matches!(members, Operand::Imm(m) if *m as u32 == u32::MAX) {
            let own = self.value(members, Elem::I32)?;
            let lane = per_lane(Elem::I32, i128::from);
            let own = self.w.op("lshr", &own, &lane);
            let own = self.w.op_const("and", &own, 1);
            let outside = self.w.cmp("icmp eq", &own, &constant(own.ty, 0));
            self.fault_if(&outside, "a warp operation whose member mask leaves the lane out");
        }
        if self.mode == Mode::Full {
            return Ok(());
        }
        let members = self.value(members, Elem::I32)?;
        let active = self.active.clone();
        let here = self.bits(&active);
        let alive = self.alive_bits();
        let away = self.w.op_const("xor", &here, -1);
        let away = self.w.op("and", &away, &alive);
        let waited = self.w.op("and", &members, &away);
        let missing = self.w.cmp("icmp ne", &waited, &constant(waited.ty, 0));
        self.fault_if(&missing, "a warp operation that waits for lanes elsewhere");
        Ok(())
    }

    fn shuffle(&mut self, variant: &Variant, srcs: &[Operand], dsts: &[Operand]) -> Result<Vec<Val>> {
        let [a, b, c, rest @ ..] = srcs else { return self.refuse("shfl") };
        if let Some(members) = rest.first() {
            self.gathered(members)?;
        }
        let a = match dsts.first() {
            Some(d) => self.copied_value(a, d, Elem::I32)?,
            None => self.value(a, Elem::I32)?,
        };
        let a = self.w.splat(&a);
        let (b, c) = (self.value(b, Elem::I32)?, self.value(c, Elem::I32)?);
        // Manual 9.7.9.6: c holds a clamp in bits 0..4 and a segment mask in bits 8..12.
        let lane = per_lane(Elem::I32, i128::from);
        let b = self.w.op_const("and", &b, 31);
        let clamp = self.w.op_const("and", &c, 31);
        let segment = self.w.op_const("lshr", &c, 8);
        let segment = self.w.op_const("and", &segment, 31);
        let outside = self.w.op_const("xor", &segment, 31);
        let first = self.w.op("and", &lane, &segment);
        let within = self.w.op("and", &clamp, &outside);
        let last = self.w.op("or", &first, &within);
        let (source, valid) = if variant.has(Mod::Up) {
            let j = self.w.op("sub", &lane, &b);
            let ok = self.w.cmp("icmp sge", &j, &last);
            (j, ok)
        } else {
            let j = if variant.has(Mod::Down) {
                self.w.op("add", &lane, &b)
            } else if variant.has(Mod::Bfly) {
                self.w.op("xor", &lane, &b)
            } else {
                let low = self.w.op("and", &b, &outside);
                self.w.op("or", &first, &low)
            };
            let ok = self.w.cmp("icmp sle", &j, &last);
            (j, ok)
        };
        let source = self.w.select(&valid, &source, &lane);
        let taken = self.permute(&a, &source, srcs, variant);
        let valid = self.w.splat(&valid);
        Ok(vec![taken, valid])
    }

    /// `a[index]` in every lane. Constant patterns become one shuffle.
    fn permute(&mut self, a: &Val, index: &Val, srcs: &[Operand], variant: &Variant) -> Val {
        if let (Operand::Imm(b), Operand::Imm(c)) = (srcs[1], srcs[2]) {
            let picks: Vec<String> =
                (0..32u32).map(|l| format!("i32 {}", source_lane(variant, l, b as u32, c as u32))).collect();
            let ty = a.ty;
            return self
                .w
                .value(ty, format_args!("shufflevector {ty} {a}, {ty} poison, <32 x i32> <{}>", picks.join(", ")));
        }
        let buffer = self.w.alloca("<32 x i32>", 64);
        self.w.store(a, &buffer, 64);
        let index = self.w.op_const("and", index, 31);
        let base = self.w.cast("ptrtoint", &buffer, Elem::I64);
        let index = self.w.cast("zext", &index, Elem::I64);
        let bytes = self.w.op_const("shl", &index, 2);
        let addresses = self.w.op("add", &base, &bytes);
        self.gather_lanes(&addresses)
    }

    fn vote(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Val> {
        if let Some(members) = srcs.get(1) {
            self.gathered(members)?;
        }
        let p = self.value(&srcs[0], Elem::I1)?;
        let p = self.w.splat(&p);
        let mut bits = self.bits(&p);
        let active = self.active_bits();
        let mut taking = active.clone();
        if let Some(members) = srcs.get(1) {
            let members = self.value(members, Elem::I32)?;
            taking = self.w.op("and", &taking, &members);
        }
        bits = self.w.op("and", &bits, &taking);
        let ty = bits.ty;
        Ok(if variant.has(Mod::Ballot) {
            bits
        } else if variant.has(Mod::All) {
            self.w.cmp("icmp eq", &bits, &taking)
        } else if variant.has(Mod::Any) {
            self.w.cmp("icmp ne", &bits, &constant(ty, 0))
        } else {
            let none = self.w.cmp("icmp eq", &bits, &constant(ty, 0));
            let all = self.w.cmp("icmp eq", &bits, &taking);
            self.w.op("or", &none, &all)
        })
    }

    fn redux(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Option<Val>> {
        let t = variant.t();
        if t.is_float() || srcs.len() != 2 {
            return Ok(None);
        }
        // One group only: the mask must be the same in all lanes.
        if let Operand::Reg(r) = srcs[1]
            && self.slots[r.0 as usize].shape != margay_ir::pass::Shape::Uniform
        {
            return Ok(None);
        }
        self.gathered(&srcs[1])?;
        let (a, members) = (self.value(&srcs[0], Elem::I32)?, self.value(&srcs[1], Elem::I32)?);
        let a = self.w.splat(&a);
        let active = self.active_bits();
        let taking = self.w.op("and", &active, &members);
        let taking = self.unpack_bits(&taking);
        let signed = t.is_signed();
        let (name, neutral) = match () {
            _ if variant.has(Mod::Add) => ("add", 0),
            _ if variant.has(Mod::And) => ("and", -1),
            _ if variant.has(Mod::Or) => ("or", 0),
            _ if variant.has(Mod::Xor) => ("xor", 0),
            _ if variant.has(Mod::Min) && signed => ("smin", i128::from(i32::MAX)),
            _ if variant.has(Mod::Min) => ("umin", -1),
            _ if variant.has(Mod::Max) && signed => ("smax", i128::from(i32::MIN)),
            _ => ("umax", 0),
        };
        let a = self.w.select(&taking, &a, &constant(a.ty, neutral));
        let full = format!("llvm.vector.reduce.{name}.v32i32");
        Ok(Some(self.w.intrinsic_named(&full, Ty::scalar(Elem::I32), &[&a])))
    }
}

/// Lane that a shuffle reads, for constant operands; its own where that lies outside.
fn source_lane(variant: &Variant, lane: u32, b: u32, c: u32) -> u32 {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let first = lane & segment;
    let last = first | clamp & !segment & 31;
    let (source, ok) = if variant.has(Mod::Up) {
        (lane.wrapping_sub(b), lane as i32 - b as i32 >= last as i32)
    } else {
        let j = if variant.has(Mod::Down) {
            lane + b
        } else if variant.has(Mod::Bfly) {
            lane ^ b
        } else {
            first | b & !segment & 31
        };
        (j, j <= last)
    };
    if ok { source } else { lane }
}
