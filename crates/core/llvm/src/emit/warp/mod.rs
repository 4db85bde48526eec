//! Instructions that communicate between the lanes of a warp.
//!
//! The lanes with one member mask execute a `.sync` instruction together. Sweeps reconverge lanes at the post-dominator of the
//! branch at which they diverged, which is where compilers put such instructions. In functions where a lane may have to wait for
//! others even so (`function/members.rs`), lanes are parked until these arrive (`rendezvous`). If a mask leaves out an executing
//! lane, all executing lanes participate (`exec/src/reference/step/warp.rs` explains why), and the launch notes it.

pub(in crate::emit) mod double;
pub(in crate::emit) mod fragment;
pub(in crate::emit) mod held;
pub(in crate::emit) mod matrix;
pub(in crate::emit) mod product;
pub(in crate::emit) mod rendezvous;
pub(in crate::emit) mod rows;
pub(in crate::emit) mod single_step;

use crate::emit::{
    function::affine::{Row, rows},
    function::{Emitter, Mode, Result},
    site::SiteKind,
    text::{Elem, Ty, Val, constant, fill, int, per_lane},
    warp::fragment::pick_lanes,
};
use margay_exec::only_converges;
use margay_ir::{Inst, Operand, pass::Shape};
use margay_isa::{Mod, Opcode, Variant};

impl Emitter<'_> {
    /// Emits a row with effect `Warp`.
    pub fn warp_op(&mut self, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let srcs: Vec<Operand> = self.func.operands(inst.srcs).to_vec();
        let dsts: Vec<Operand> = self.func.operands(inst.dsts).to_vec();
        let results = match variant.op {
            Opcode::Shfl => self.shuffle(&variant, &srcs, &dsts)?,
            Opcode::Match | Opcode::Redux if variant.t().is_float() || srcs.len() != 2 => return self.effect(inst),
            Opcode::Vote | Opcode::Match | Opcode::Redux if srcs.get(1).is_some_and(|members| self.varies(members)) => {
                return self.by_mask(inst, &variant, &srcs, &dsts);
            }
            Opcode::Vote => vec![self.vote(&variant, &srcs)?],
            Opcode::Match => self.matching(&variant, &srcs)?,
            Opcode::Redux => vec![self.redux(&variant, &srcs)?],
            Opcode::Activemask => vec![self.active_bits()],
            // Elects the lowest member.
            Opcode::Elect
                if self.mode == Mode::Full && srcs.first().and_then(|o| self.constant_word(o)) == Some(u32::MAX) =>
            {
                vec![int(Elem::I32, 0), per_lane(Elem::I1, |l| i128::from(l == 0))]
            }
            Opcode::Mma | Opcode::Wmma | Opcode::Ldmatrix | Opcode::Stmatrix | Opcode::Movmatrix => {
                return self.matrix(inst);
            }
            Opcode::Nanosleep => {
                self.let_others_run();
                return Ok(());
            }
            Opcode::Griddepcontrol | Opcode::Pmevent => return Ok(()),
            // Lanes have waited (`held`), unless some of the warp have ended.
            _ if only_converges(&variant) => return Ok(()),
            _ => return self.effect(inst),
        };
        self.write_all(&dsts, &results);
        Ok(())
    }

    fn write_all(&mut self, dsts: &[Operand], results: &[Val]) {
        for (d, v) in dsts.iter().zip(results) {
            if let Operand::Reg(r) = d {
                self.write(*r, v, None);
            }
        }
    }

    /// `bar.warp.sync`: lanes have reconverged, and memory is already ordered.
    pub fn warp_barrier(&mut self, inst: &Inst) -> Result<()> {
        let Some(members) = self.func.operands(inst.srcs).first().copied() else { return Ok(()) };
        self.note_members(&members)
    }

    /// The lanes that their own member mask leaves out, which is undefined (manual, sections 9.7.9.6 and 9.7.13.2).
    pub fn left_out(&mut self, members: &Operand) -> Result<Val> {
        let own = self.value(members, Elem::I32)?;
        let lane = per_lane(Elem::I32, i128::from);
        let own = self.w.op("lshr", &own, &lane);
        let own = self.w.op_const("and", &own, 1);
        Ok(self.w.cmp("icmp eq", &own, &constant(own.ty, 0)))
    }

    /// Whether an active lane's member mask names an active lane with another mask.
    pub fn masks_differ(&mut self, masks: &Val) -> Val {
        let here = self.active_bits();
        self.w.declared.insert(fill(include_str!("agree.ll"), &[]));
        let call = format_args!("call i1 @margay.agree({} {masks}, i32 {here})", masks.ty);
        let agree = self.w.value(Ty::scalar(Elem::I1), call);
        self.w.op_const("xor", &agree, 1)
    }

    /// The value of an operand of 32 bits that is constant, or in a register that is known to hold a constant here.
    fn constant_word(&mut self, operand: &Operand) -> Option<u32> {
        let v = self.value(operand, Elem::I32).ok()?;
        v.unsigned().map(|v| v as u32)
    }

    /// Notes lanes that their own mask leaves out. All other members of the mask are active and have the same mask: where that is
    /// not known in advance (`function/members.rs`), lanes wait for each other (`rendezvous`).
    fn note_members(&mut self, members: &Operand) -> Result<()> {
        if self.constant_word(members) != Some(u32::MAX) {
            let lanes = self.left_out(members)?;
            self.note_if(&lanes, SiteKind::LeftOut);
        }
        Ok(())
    }

    /// `shfl`: the values, and whether the source lanes are in range.
    fn shuffle(&mut self, variant: &Variant, srcs: &[Operand], dsts: &[Operand]) -> Result<Vec<Val>> {
        let [value, by, bounds, rest @ ..] = srcs else { return self.refuse("shfl") };
        if let Some(members) = rest.first() {
            self.note_members(members)?;
        }
        let a = match dsts.first() {
            Some(d) => self.copied_value(value, d, Elem::I32)?,
            None => self.value(value, Elem::I32)?,
        };
        let mut a = self.w.splat(&a);
        if self.mode == Mode::Masked {
            // As in the reference engine, a shuffle gets 0 from inactive lanes.
            let active = self.active.clone();
            a = self.w.select(&active, &a, &constant(a.ty, 0));
        }
        let mode = ShuffleMode::of(variant);
        if let (Some(b), Some(c)) = (self.constant_word(by), self.constant_word(bounds)) {
            let taken = pick_lanes(&mut self.w, &a, |l| source_lane(mode, l, b, c).0);
            return Ok(vec![taken, per_lane(Elem::I1, |l| i128::from(source_lane(mode, l, b, c).1))]);
        }
        let (b, c) = (self.value(by, Elem::I32)?, self.value(bounds, Elem::I32)?);
        let b = self.w.op_const("and", &b, 31);
        let (source, valid) = self.source_lanes(mode, &b, &c);
        let taken = match mode {
            // A load at another offset than that of the preceding stores waits for them, so permutations by indices are faster.
            _ if b.ty.vector || self.options.mask_registers && mode != ShuffleMode::Index => self.look_up(&a, &source),
            ShuffleMode::Butterfly => self.butterfly(&a, &b),
            ShuffleMode::Up | ShuffleMode::Down => self.slide(&a, &b, mode),
            ShuffleMode::Index if c.unsigned().is_some_and(|c| c >> 8 & 31 == 0) => {
                let one = self.w.extract(&a, &b);
                self.w.splat(&one)
            }
            ShuffleMode::Index => self.look_up(&a, &source),
        };
        let taken = self.w.select(&valid, &taken, &a);
        let valid = self.w.splat(&valid);
        Ok(vec![taken, valid])
    }

    /// [`source_lane`] for all lanes at run time: the lanes that a shuffle reads, and whether they are in range; `b` is less than 32.
    fn source_lanes(&mut self, mode: ShuffleMode, b: &Val, c: &Val) -> (Val, Val) {
        // Manual, section 9.7.9.6: `c` holds a clamp in bits 0 to 4 and a segment mask in bits 8 to 12.
        let lane = per_lane(Elem::I32, i128::from);
        let clamp = self.w.op_const("and", c, 31);
        let segment = self.w.op_const("lshr", c, 8);
        let segment = self.w.op_const("and", &segment, 31);
        let outside = self.w.op_const("xor", &segment, 31);
        let first = self.w.op("and", &lane, &segment);
        let within = self.w.op("and", &clamp, &outside);
        let last = self.w.op("or", &first, &within);
        let source = match mode {
            ShuffleMode::Up => self.w.op("sub", &lane, b),
            ShuffleMode::Down => self.w.op("add", &lane, b),
            ShuffleMode::Butterfly => self.w.op("xor", &lane, b),
            ShuffleMode::Index => {
                let low = self.w.op("and", b, &outside);
                self.w.op("or", &first, &low)
            }
        };
        let in_range = if mode == ShuffleMode::Up { "icmp sge" } else { "icmp sle" };
        let valid = self.w.cmp(in_range, &source, &last);
        (source, valid)
    }

    /// Lane `l ^ b` for a uniform `b`, bit by bit.
    fn butterfly(&mut self, a: &Val, b: &Val) -> Val {
        let mut v = a.clone();
        for bit in [16, 8, 4, 2, 1] {
            let crossed = pick_lanes(&mut self.w, &v, |l| l ^ bit);
            let set = self.w.op_const("and", b, i128::from(bit));
            let set = self.w.cmp("icmp ne", &set, &constant(set.ty, 0));
            v = self.w.select(&set, &crossed, &v);
        }
        v
    }

    /// Lane `l + b` or `l - b` for a uniform `b`: an unaligned load from a longer row.
    fn slide(&mut self, a: &Val, b: &Val, mode: ShuffleMode) -> Val {
        let row = self.w.alloca("[64 x i32]", 64);
        let (start, from) = if mode == ShuffleMode::Up { (32, 32) } else { (0, 0) };
        let p = self.w.offset_const(&row, start * 4);
        self.w.store(a, &p, 64);
        let first = match mode {
            ShuffleMode::Up => self.w.op("sub", &constant(b.ty, from), b),
            _ => b.clone(),
        };
        let first = self.w.cast("zext", &first, Elem::I64);
        let bytes = self.w.op_const("shl", &first, 2);
        let p = self.w.offset(&row, &bytes);
        self.w.load(a.ty, &p, 4)
    }

    /// `a[index]` in every lane; indices are taken modulo 32.
    fn look_up(&mut self, a: &Val, index: &Val) -> Val {
        if self.options.mask_registers {
            let index = self.w.splat(index);
            let [low, high] = [0, 1].map(|index| self.piece(a, Row { width: 16, index }));
            let halves = rows(16)
                .map(|row| {
                    let picks = self.piece(&index, row);
                    let (name, half) = ("llvm.x86.avx512.vpermi2var.d.512", "<16 x i32>");
                    self.w.declared.insert(format!("declare {half} @{name}({half}, {half}, {half})"));
                    self.w.value(a.ty, format_args!("call {half} @{name}({half} {low}, {half} {picks}, {half} {high})"))
                })
                .collect();
            return self.concat(halves, Elem::I32, 16);
        }
        if self.options.lean {
            let index = self.w.splat(index);
            self.w.declared.insert(fill(include_str!("look_up.ll"), &[]));
            let lanes = a.ty;
            return self.w.value(lanes, format_args!("call {lanes} @margay.look.up({lanes} {a}, {lanes} {index})"));
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

    /// The lanes that participate in an operation: as one word or, if the member mask is varying, as a word for each lane, whose own mask
    /// must not omit it.
    fn taking(&mut self, members: &Operand) -> Result<Val> {
        let active = self.active_bits();
        if self.constant_word(members) == Some(u32::MAX) {
            return Ok(active);
        }
        let varies = self.varies(members);
        let members = self.value(members, Elem::I32)?;
        let named = self.w.op("and", &active, &members);
        if varies {
            return Ok(named);
        }
        // If the mask omits an active lane, all active lanes participate.
        let all = self.w.cmp("icmp ne", &named, &active);
        Ok(self.w.select(&all, &active, &named))
    }

    /// A vote, match or reduction whose member mask is varying.
    fn by_mask(&mut self, inst: &Inst, variant: &Variant, srcs: &[Operand], dsts: &[Operand]) -> Result<()> {
        let outside = self.left_out(&srcs[1])?;
        let outside = self.active_among(&outside);
        let outside = self.w.cmp("icmp ne", &outside, &int(Elem::I32, 0));
        let (odd, usual, done) = (self.w.label("outside"), self.w.label("inside"), self.w.label("done"));
        self.w.branch_unlikely(&outside, &odd, &usual);
        self.w.block(&odd);
        self.cold_effect(inst)?;
        self.w.jump(&done);
        self.w.block(&usual);
        let results = match variant.op {
            Opcode::Match => self.matching(variant, srcs)?,
            Opcode::Redux => vec![self.redux(variant, srcs)?],
            _ => vec![self.vote(variant, srcs)?],
        };
        self.write_all(dsts, &results);
        self.w.jump(&done);
        self.w.block(&done);
        Ok(())
    }

    /// `vote`.
    fn vote(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Val> {
        if let Some(members) = srcs.get(1) {
            self.note_members(members)?;
        }
        let p = self.value(&srcs[0], Elem::I1)?;
        let p = self.w.splat(&p);
        let mut bits = self.bits(&p);
        let taking = match srcs.get(1) {
            None => self.active_bits(),
            Some(members) => self.taking(members)?,
        };
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

    /// Whether an operand is varying.
    fn varies(&self, o: &Operand) -> bool {
        matches!(o, Operand::Reg(r) if self.slots[r.0 as usize].shape != Shape::Uniform)
    }

    /// `match`: the participating lanes that hold the same value. With `.all`, all of them if they hold one value, else none; and whether
    /// they do.
    fn matching(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Vec<Val>> {
        self.note_members(&srcs[1])?;
        let value = self.value(&srcs[0], Elem::int(variant.t().bits()))?;
        let value = self.w.splat(&value);
        let here = self.taking(&srcs[1])?;
        if variant.has(Mod::Any) {
            return Ok(vec![self.lanes_with_same(&value, &here)]);
        }
        let same = if self.varies(&srcs[1]) {
            self.lanes_with_same(&value, &here)
        } else {
            // With one mask for all lanes, they hold one value if they equal the first of them.
            let first = self.first_active(&value);
            let same = self.w.cmp("icmp eq", &value, &first);
            let same = self.bits(&same);
            self.w.op("and", &same, &here)
        };
        let here = if same.ty.vector { self.w.splat(&here) } else { here };
        let all = self.w.cmp("icmp eq", &same, &here);
        Ok(vec![self.w.select(&all, &here, &constant(here.ty, 0)), all])
    }

    /// For each lane, the lanes with the same value among the participating ones, which are one word or a word for each lane.
    fn lanes_with_same(&mut self, value: &Val, here: &Val) -> Val {
        let (elem, words) = (Ty::scalar(value.ty.elem), Ty::lanes(Elem::I32));
        self.w.declared.insert(fill(include_str!("match.ll"), &[("t", &elem)]));
        let among = if here.ty.vector { self.active_bits() } else { here.clone() };
        let call = format_args!("call {words} @margay.match.{elem}({} {value}, i32 {among})", value.ty);
        let same = self.w.value(words, call);
        if here.ty.vector { self.w.op("and", &same, here) } else { same }
    }

    /// `redux` on integers.
    fn redux(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Val> {
        let t = variant.t();
        self.note_members(&srcs[1])?;
        let a = self.value(&srcs[0], Elem::I32)?;
        let a = self.w.splat(&a);
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
        if self.varies(&srcs[1]) {
            let (here, masks) = (self.active_bits(), self.value(&srcs[1], Elem::I32)?);
            let masks = self.w.splat(&masks);
            self.w.declared.insert(fill(include_str!("redux.ll"), &[("name", &name), ("neutral", &neutral)]));
            let call = format_args!("call {ty} @margay.redux.{name}({ty} {a}, {ty} {masks}, i32 {here})", ty = a.ty);
            return Ok(self.w.value(a.ty, call));
        }
        let taking = self.taking(&srcs[1])?;
        let taking = self.unpack_bits(&taking);
        let a = self.w.select(&taking, &a, &constant(a.ty, neutral));
        let full = format!("llvm.vector.reduce.{name}.v32i32");
        Ok(self.w.intrinsic_named(&full, Ty::scalar(Elem::I32), &[&a]))
    }
}

/// The mode of a shuffle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

impl ShuffleMode {
    fn of(variant: &Variant) -> ShuffleMode {
        match () {
            _ if variant.has(Mod::Up) => ShuffleMode::Up,
            _ if variant.has(Mod::Down) => ShuffleMode::Down,
            _ if variant.has(Mod::Bfly) => ShuffleMode::Butterfly,
            _ => ShuffleMode::Index,
        }
    }
}

/// The lane that a shuffle reads, its own if that is out of range; and whether it is in range.
fn source_lane(mode: ShuffleMode, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let first = lane & segment;
    let last = first | clamp & !segment & 31;
    let (source, inside) = match mode {
        ShuffleMode::Up => (lane.wrapping_sub(b), lane as i32 - b as i32 >= last as i32),
        ShuffleMode::Down => (lane + b, lane + b <= last),
        ShuffleMode::Butterfly => (lane ^ b, lane ^ b <= last),
        ShuffleMode::Index => {
            let j = first | b & !segment & 31;
            (j, j <= last)
        }
    };
    (if inside { source } else { lane }, inside)
}
