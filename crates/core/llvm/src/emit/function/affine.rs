//! Affine values: in each row of lanes, `base + stride * lane`. They are kept as one scalar base per row, not as a
//! vector.
//!
//! An affine operation is one scalar operation per row, on the bases. Registers that are affine only as long as no
//! index wraps around (`Uniformity::hints`) live in vectors like all varying ones, with a *shadow*: the bases, and the
//! lanes for which they are valid. So do registers that would be affine if lanes never diverged, such as indices in code
//! that a guard restricts to part of a warp; after a masked write, the shadow is valid for the lanes written. Only addresses use shadows.

use crate::emit::{
    function::{Emitter, Mode, Result, Slot},
    text::{Elem, Ty, Val, int, per_lane},
};
use margay_ir::{
    Operand, VReg,
    pass::{BitSet, Shape},
};
use margay_isa::{Component, Mod, Opcode, Special, Var, Variant};
use std::fmt::Write;

/// The affine form of a register that lives in a vector.
#[derive(Clone, Debug)]
pub(in crate::emit) struct Shadow {
    /// Lanes per row.
    pub width: u32,
    /// Difference between neighboring lanes.
    pub stride: i64,
    /// Values of the first lane of each row: `[32 / width x elem]`.
    pub bases: Val,
    /// `i32`: the lanes for which the bases hold.
    pub valid: Val,
    /// Lanes may differ in which instruction has written the register last.
    pub whole: bool,
}

/// A row of lanes: its width, and its index in the warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::emit) struct Row {
    pub width: u32,
    pub index: u32,
}

impl Row {
    pub fn lane(self) -> u32 {
        self.width * self.index
    }
}

/// The rows of width `width` of a warp.
pub(in crate::emit) fn rows(width: u32) -> impl Iterator<Item = Row> {
    (0..32 / width).map(move |index| Row { width, index })
}

/// Row width and stride of a shape; `None` if it is varying.
pub(in crate::emit) fn affine_form(shape: Shape) -> Option<(u32, i64)> {
    match shape {
        Shape::Uniform => Some((32, 0)),
        Shape::Affine { width, stride } => Some((width, stride)),
        Shape::Varying => None,
    }
}

/// How many of the first operands of an instruction it converts, to 64 bits if they are shorter, and whether with their sign.
pub(in crate::emit) fn widened_operands(variant: &Variant) -> Option<(usize, bool)> {
    match variant.op {
        Opcode::Cvt => Some((1, variant.ty(Var::U).is_some_and(margay_isa::Type::is_signed))),
        Opcode::Mul | Opcode::Mad if variant.has(Mod::Wide) => Some((2, variant.t().is_signed())),
        _ => None,
    }
}

/// LLVM type of the variable of an affine register.
pub(in crate::emit) fn slot_type(width: u32, elem: Elem) -> String {
    match width {
        32 => Ty::scalar(elem).to_string(),
        w => format!("[{} x {}]", 32 / w, Ty::scalar(elem)),
    }
}

impl Emitter<'_> {
    /// Creates shadows for the registers that some address depends on.
    pub fn make_shadows(&mut self) {
        let wanted = self.wanted_hints();
        for r in wanted.iter() {
            let Some((width, stride)) = affine_form(self.prepared.uniformity.hints[r as usize]) else { continue };
            let elem = self.slots[r as usize].elem;
            let bases = self.w.alloca(&slot_type(width, elem), 8);
            let valid = self.w.alloca("i32", 4);
            self.pin_if_many(&bases);
            self.pin_if_many(&valid);
            let _ = writeln!(self.w.entry, "  store i32 0, ptr {valid}, align 4");
            self.slots[r as usize].shadow =
                Some(Shadow { width, stride, bases, valid, whole: self.prepared.uniformity.whole[r as usize] });
        }
    }

    fn wanted_hints(&self) -> BitSet {
        let func = self.func;
        let hinted = |r: VReg| self.prepared.uniformity.hints[r.0 as usize] != Shape::Varying;
        let mut wanted = BitSet::new(func.regs.len());
        let mut changed = true;
        while changed {
            changed = false;
            for inst in func.insts.iter().rev() {
                let feeds = match func.operands(inst.dsts) {
                    [Operand::Reg(d)] => wanted.has(d.0),
                    _ => false,
                };
                for s in func.operands(inst.srcs) {
                    let r = match s {
                        Operand::Mem(margay_ir::MemBase::Reg(r), _) => r,
                        Operand::Reg(r) if feeds => r,
                        _ => continue,
                    };
                    if hinted(*r) && !wanted.has(r.0) {
                        wanted.insert(r.0);
                        changed = true;
                    }
                }
            }
        }
        wanted
    }

    /// Offset of a row's scalar from the first one, in bytes.
    fn row_offset(elem: Elem, index: u32) -> u64 {
        u64::from(index * elem.bits().div_ceil(8))
    }

    /// The value of an affine register in the first lane of `row`, which may be narrower than the register's rows.
    fn row_scalar(&mut self, pointer: &Val, elem: Elem, (width, stride): (u32, i64), row: Row) -> Val {
        let offset = Self::row_offset(elem, row.lane() / width);
        let base = self.w.get(Ty::scalar(elem), pointer, offset, 1);
        match i128::from(row.lane() % width) * i128::from(stride) {
            0 => base,
            step => self.w.op_const("add", &base, step),
        }
    }

    /// The value of a register in the first lane of a row; `None` if it has no affine form.
    pub fn read_row(&mut self, r: VReg, row: Row) -> Option<Val> {
        let slot = self.slots[r.0 as usize].clone();
        match (affine_form(slot.shape), &slot.shadow) {
            (Some(rows), _) => Some(self.row_scalar(&slot.pointer, slot.elem, rows, row)),
            (None, Some(s)) => Some(self.row_scalar(&s.bases, slot.elem, (s.width, s.stride), row)),
            (None, None) => None,
        }
    }

    /// An affine register as a vector.
    pub fn read_spread(&mut self, slot: &Slot, width: u32, stride: i64) -> Val {
        let bases: Vec<Val> =
            rows(width).map(|row| self.row_scalar(&slot.pointer, slot.elem, (width, stride), row)).collect();
        self.spread_rows(&bases, slot.elem, width, stride)
    }

    /// The vector of an affine value with these bases.
    pub fn spread_rows(&mut self, bases: &[Val], elem: Elem, width: u32, stride: i64) -> Val {
        let first = self.broadcast_rows(bases, elem, width);
        match stride {
            0 => first,
            _ => self.w.op("add", &first, &per_lane(elem, |l| i128::from(l % width) * i128::from(stride))),
        }
    }

    /// Broadcasts each base to the lanes of its row.
    pub fn broadcast_rows(&mut self, bases: &[Val], elem: Elem, width: u32) -> Val {
        if let [one] = bases {
            return self.w.splat(one);
        }
        let (scalar, piece) = (Ty::scalar(elem), Ty::lanes(elem).part(width));
        let pieces: Vec<Val> = bases
            .iter()
            .map(|b| {
                let one = self.w.value(scalar, format_args!("insertelement {piece} poison, {scalar} {b}, i32 0"));
                self.w.value(
                    scalar,
                    format_args!("shufflevector {piece} {one}, {piece} poison, <{width} x i32> zeroinitializer"),
                )
            })
            .collect();
        self.concat(pieces, elem, width)
    }

    /// Concatenates vectors of `width` lanes to one of 32.
    pub fn concat(&mut self, mut pieces: Vec<Val>, elem: Elem, mut width: u32) -> Val {
        while pieces.len() > 1 {
            let half = Ty::lanes(elem).part(width);
            let order = (0..2 * width).map(|l| format!("i32 {l}")).collect::<Vec<_>>().join(", ");
            pieces = pieces
                .chunks(2)
                .map(|pair| {
                    self.w.value(
                        Ty::lanes(elem),
                        format_args!(
                            "shufflevector {half} {}, {half} {}, <{} x i32> <{order}>",
                            pair[0],
                            pair[1],
                            2 * width
                        ),
                    )
                })
                .collect();
            width *= 2;
        }
        pieces.swap_remove(0)
    }

    /// The lanes of a row of a vector, as a vector of `row.width`.
    pub fn piece(&mut self, v: &Val, row: Row) -> Val {
        if row.width == 32 {
            return v.clone();
        }
        let order = (0..row.width).map(|l| format!("i32 {}", row.lane() + l)).collect::<Vec<_>>().join(", ");
        let ty = v.ty;
        self.w.value(ty, format_args!("shufflevector {ty} {v}, {ty} poison, <{} x i32> <{order}>", row.width))
    }

    /// Stores the bases of an affine register.
    pub fn write_rows(&mut self, pointer: &Val, elem: Elem, bases: &[Val]) {
        for (i, base) in bases.iter().enumerate() {
            self.w.set(base, pointer, Self::row_offset(elem, i as u32), 1);
        }
    }

    /// Writes an affine register from a scalar, the same for all rows, or from a vector.
    pub fn write_shaped(&mut self, slot: &Slot, v: &Val, mask: Option<&Val>) {
        let Some((width, _)) = affine_form(slot.shape) else { return };
        for row in rows(width) {
            let v = if v.ty.vector { self.w.extract(v, &int(Elem::I32, i128::from(row.lane()))) } else { v.clone() };
            let offset = Self::row_offset(slot.elem, row.index);
            let v = match mask {
                Some(m) => {
                    let old = self.w.get(v.ty, &slot.pointer, offset, 1);
                    self.w.select(m, &v, &old)
                }
                None => v,
            };
            self.w.set(&v, &slot.pointer, offset, 1);
        }
    }

    /// The value of a special register in the first lane of a row.
    pub fn special_row(&mut self, s: Special, c: Component, row: Row) -> Result<Val> {
        Ok(match s {
            // Where a row of threads is a row of lanes, the coordinates of the rows' first lanes differ by constants.
            Special::Tid if c == Component::X && self.row_of_threads(row.width) => int(Elem::I32, 0),
            Special::Tid if c == Component::Y && row.index > 0 && self.row_of_threads(row.width) => {
                let first = self.special_row(s, c, Row { index: 0, ..row })?;
                self.w.op_const("add", &first, i128::from(row.index))
            }
            Special::Tid => self.tid_of(c, row.lane()),
            Special::LaneId => int(Elem::I32, i128::from(row.lane())),
            _ => self.special(s, c)?,
        })
    }

    /// Whether `%tid.x` restarts at every row of this width, and `%tid.y` increments from row to row within a warp.
    fn row_of_threads(&self, width: u32) -> bool {
        self.options.warp.block.is_some_and(|[x, y, z]| x == width && (z == 1 || y % (32 / width) == 0))
    }

    /// Computes the bases of an affine result: calls `f` once per row, during which operands read as scalars.
    pub fn by_rows(&mut self, width: u32, mut f: impl FnMut(&mut Self) -> Result<Val>) -> Result<Vec<Val>> {
        let mut bases = Vec::new();
        for row in rows(width) {
            self.row = Some(row);
            let v = f(self);
            self.row = None;
            bases.push(v?);
        }
        Ok(bases)
    }

    /// Whether code for parts of a warp keeps a shadow; lean code does without, which would double its accesses.
    pub fn keeps(&self, shadow: &Shadow) -> bool {
        !shadow.whole || self.mode == Mode::Full || !self.options.lean
    }

    /// The lanes for which the bases that an instruction computes hold, as far as that depends on the lanes that execute it.
    pub fn written_lanes(&mut self, shadow: &Shadow) -> Val {
        if shadow.whole { self.lane_bits(None) } else { int(Elem::I32, -1) }
    }

    /// Whether the bases of a shadow hold for all lanes that execute the current instruction: `i1`, true if they do not.
    pub fn is_wrapped(&mut self, shadow: &Shadow) -> Val {
        let valid = self.w.get(Ty::scalar(Elem::I32), &shadow.valid, 0, 4);
        if !shadow.whole || self.mode == Mode::Full {
            return self.w.cmp("icmp ne", &valid, &int(Elem::I32, -1));
        }
        let active = self.lane_bits(None);
        let others = self.w.op_const("xor", &valid, -1);
        let invalid = self.w.op("and", &active, &others);
        self.w.cmp("icmp ne", &invalid, &int(Elem::I32, 0))
    }

    /// Computes the new shadow of a register (bases and valid lanes) before its vector is written; `f` computes one row as in
    /// [`Emitter::by_rows`].
    pub fn shadow_of(
        &mut self,
        d: VReg,
        variant: &Variant,
        srcs: &[Operand],
        f: impl FnMut(&mut Self) -> Result<Val>,
    ) -> Result<Option<(Vec<Val>, Val)>> {
        let Some(shadow) = self.slots[d.0 as usize].shadow.clone() else { return Ok(None) };
        if !self.keeps(&shadow) {
            return Ok(None);
        }
        let mut valid = self.written_lanes(&shadow);
        for s in srcs {
            if let Operand::Reg(r) = s
                && let Some(of) = self.slots[r.0 as usize].shadow.clone()
            {
                let lanes = self.w.get(Ty::scalar(Elem::I32), &of.valid, 0, 4);
                valid = self.w.op("and", &valid, &lanes);
            }
        }
        if let Some(wrapped) = self.wraps(variant, srcs, shadow.width) {
            valid = self.w.select(&wrapped, &int(Elem::I32, 0), &valid);
        }
        Ok(Some((self.by_rows(shadow.width, f)?, valid)))
    }

    /// Stores the shadow of a register after its vector was written.
    pub fn write_shadow(&mut self, d: VReg, (bases, valid): &(Vec<Val>, Val)) {
        let slot = self.slots[d.0 as usize].clone();
        let Some(shadow) = slot.shadow else { return };
        self.write_rows(&shadow.bases, slot.elem, bases);
        self.w.set(valid, &shadow.valid, 0, 4);
    }

    /// Whether a widening operand is no longer affine in the wider type: `i1`; `None` if it certainly is.
    fn wraps(&mut self, variant: &Variant, srcs: &[Operand], width: u32) -> Option<Val> {
        let mut wrapped: Option<Val> = None;
        let Some((widened, signed)) = widened_operands(variant) else { return wrapped };
        for s in srcs.iter().take(widened) {
            let stride = match s {
                Operand::Reg(r) => {
                    let slot = &self.slots[r.0 as usize];
                    slot.shadow.as_ref().map(|s| s.stride).or(affine_form(slot.shape).map(|(_, s)| s))
                }
                Operand::Special(s, c) => affine_form(self.options.warp.special(*s, *c)).map(|(_, s)| s),
                _ => None,
            };
            let Some(stride) = stride.filter(|s| *s != 0) else { continue };
            for row in rows(width) {
                let first = match s {
                    Operand::Reg(r) => self.read_row(*r, row),
                    Operand::Special(s, c) => self.special_row(*s, *c, row).ok(),
                    _ => None,
                };
                let Some(first) = first.filter(|f| f.ty.elem == Elem::I32) else {
                    return Some(int(Elem::I1, 1));
                };
                let first = self.w.resize(&first, Elem::I64, signed);
                let last = self.w.op_const("add", &first, i128::from(i64::from(width - 1) * stride));
                let narrow = self.w.resize(&last, Elem::I32, false);
                let again = self.w.resize(&narrow, Elem::I64, signed);
                let differs = self.w.cmp("icmp ne", &last, &again);
                wrapped = Some(self.either(wrapped, differs));
            }
        }
        wrapped
    }

    /// Recomputes the shadow of a register from its vector, after something other than an instruction has written it.
    pub fn restore_shadow(&mut self, r: u32) {
        let slot = self.slots[r as usize].clone();
        let Some(shadow) = slot.shadow else { return };
        let v = self.w.get(Ty::lanes(slot.elem), &slot.pointer, 0, 64);
        let bases: Vec<Val> =
            rows(shadow.width).map(|row| self.w.extract(&v, &int(Elem::I32, i128::from(row.lane())))).collect();
        let straight = self.spread_rows(&bases, slot.elem, shadow.width, shadow.stride);
        let off = self.w.cmp("icmp ne", &v, &straight);
        let off = self.bits(&off);
        let valid = self.w.op_const("xor", &off, -1);
        self.write_rows(&shadow.bases, slot.elem, &bases);
        self.w.set(&valid, &shadow.valid, 0, 4);
    }

    /// Invalidates the shadow of a register that was written lane by lane.
    pub fn invalidate_shadow(&mut self, r: VReg) {
        if let Some(shadow) = self.slots[r.0 as usize].shadow.clone() {
            self.w.set(&int(Elem::I32, 0), &shadow.valid, 0, 4);
        }
    }
}
