//! Local memory whose lanes are interleaved, as on a GPU: the same element of all lanes is one row of a vector.
//!
//! In the threads' local windows, the memory of one thread is contiguous, so an array that all lanes index equally costs a gather or scatter
//! for each access. If no address of a kernel's frame leaves `.local`, only the kernel's own loads and stores access the frame, so the engine is
//! free to choose its layout: the frame is stored in rows after the windows of its warp. Addresses remain offsets in the windows. Memory outside
//! the frame, such as the variables of the module, remains in the windows; an access that may reach it takes an address for each lane.

use super::{
    address::LaneAccess,
    group::Member,
    unit::{Strength, strength},
};
use crate::{
    ctx::at,
    emit::{
        function::{Emitter, Result, Role},
        memory::address::Address,
        text::{Elem, Ty, Val, constant, fill, int, per_lane},
    },
};
use margay_ir::{
    Func, Inst, Ir, MemBase, MemSpace, Operand, Placed,
    explicit::{Access, access},
    pass::Shape,
};
use margay_isa::{Effect, Opcode};

/// Largest frame that is interleaved, in bytes.
const LARGEST: u32 = 1 << 14;

/// The part of the threads' local windows whose lanes are interleaved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interleaved {
    /// Its offset in the windows, a multiple of 16.
    pub start: u32,
    /// Bytes per thread, a multiple of 16.
    pub size: u32,
    /// Bytes of one lane that stay together: a power of two, up to 8.
    pub unit: u32,
}

impl Interleaved {
    /// Where a byte of a lane's window lies, from the first row of its warp on.
    pub fn place(self, lane: u32, offset: u32) -> u64 {
        let within = offset - self.start;
        u64::from(within / self.unit * self.unit) * 32 + u64::from(lane * self.unit + within % self.unit)
    }
}

/// The frame of a kernel, if only its loads and stores at `.local` addresses access it.
fn find(ir: &Ir<Placed>, func: &Func, kernel: u32) -> Option<Interleaved> {
    let places = &ir.stage.funcs[kernel as usize];
    let (start, end) = (places.base / 16 * 16, (places.base + places.frame_size).next_multiple_of(16));
    if func.kind != margay_check::FuncKind::Kernel || !func.calls.is_empty() || !(1..=LARGEST).contains(&(end - start))
    {
        return None;
    }
    let mut unit = 1;
    let mut used = false;
    for inst in &func.insts {
        let variant = func.variant(inst);
        let bytes = variant.t().bytes();
        let operands = || func.operands(inst.srcs).iter().chain(func.operands(inst.dsts));
        if inst.space != Some(MemSpace::Local) {
            // Addresses of the frame may be computed with, and kept anywhere, but mean nothing in other spaces.
            let pure = matches!(variant.op.row().effect, Effect::Pure) || variant.op == Opcode::St;
            if operands().any(|o| matches!(o, Operand::FrameAddr(..))) && !pure {
                return None;
            }
            continue;
        }
        let moves = matches!(variant.op, Opcode::Ld | Opcode::St) && strength(variant) == Strength::Weak;
        let known = |o: &Operand| match o {
            Operand::Mem(MemBase::Frame(_) | MemBase::Reg(_) | MemBase::Absolute, _) => {
                let found = access(ir, func, o, bytes * variant.vec());
                matches!(found, Access::Proven(_) | Access::Checked)
            }
            Operand::Mem(..) => false,
            _ => true,
        };
        if !moves || !matches!(bytes, 1 | 2 | 4 | 8) || !operands().all(known) {
            return None;
        }
        (unit, used) = (unit.max(bytes), true);
    }
    used.then_some(Interleaved { start, size: end - start, unit })
}

impl Emitter<'_> {
    /// Decides whether the kernel's frame is interleaved.
    pub fn interleave_frame(&mut self) {
        self.local.private = self.is_local_private();
        let reported = self.options.observe.is_some() && !self.local.private;
        if !reported && !self.options.count && self.role != Role::Device {
            let worth = !self.options.lean || self.mostly_rows();
            self.local.interleaved = find(self.ir, self.func, self.id.0).filter(|_| worth);
        }
    }

    /// Whether at least half of the accesses to local memory are rows, being at one offset in all lanes: the others take more code.
    fn mostly_rows(&self) -> bool {
        let func = self.func;
        let local = func.insts.iter().filter(|inst| inst.space == Some(MemSpace::Local));
        let by_lanes = |inst: &&Inst| {
            let varies = |o: &Operand| matches!(o, Operand::Mem(MemBase::Reg(r), _) if self.slots[r.0 as usize].shape != Shape::Uniform);
            func.operands(inst.srcs).iter().any(varies)
        };
        2 * local.clone().filter(by_lanes).count() <= local.count()
    }

    /// How an access to local memory finds the kernel's frame, if that is interleaved.
    pub(super) fn interleaved(&self, inst: &Inst) -> Option<Interleaved> {
        self.local.interleaved.filter(|_| inst.space == Some(MemSpace::Local))
    }

    /// Loads consecutive elements of each lane; `f` gets them.
    pub(super) fn load_interleaved(
        &mut self,
        source: &Operand,
        (elem, count): (Elem, u32),
        mask: Option<&Val>,
        mut f: impl FnMut(&mut Self, &[Val]),
    ) -> Result<()> {
        self.access_interleaved(source, (elem.bits() / 8, count, false), mask, |e, addresses| {
            let found: Vec<Val> = addresses
                .iter()
                .flat_map(|at| match row_of_frame(at, elem) {
                    // Rows lie in the frame with all their lanes, so there is no need to leave any out.
                    Some(first) => {
                        let (ty, pointer) = (Ty::lanes(elem), e.pointer(first));
                        vec![e.load_piece(&ty.to_string(), ty, &pointer, elem.bits() / 8)]
                    }
                    None => e.fetch(at, elem, 1, mask, Strength::Weak),
                })
                .collect();
            f(e, &found);
        })
    }

    /// Stores consecutive elements of each lane.
    pub(super) fn store_interleaved(&mut self, target: &Operand, values: &[Val], mask: Option<&Val>) -> Result<()> {
        let bytes = values.first().map_or(0, |v| v.ty.elem.bits() / 8);
        self.access_interleaved(target, (bytes, values.len() as u32, true), mask, |e, addresses| {
            for (at, v) in addresses.iter().zip(values) {
                if !e.blend_row(at, v, mask) {
                    e.put(at, std::slice::from_ref(v), bytes, mask, Strength::Weak);
                }
            }
        })
    }

    /// Stores some lanes of a row with what the others hold, which only this warp accesses; without mask registers, stores of some lanes
    /// take longer, above all of bytes. Returns whether it has.
    fn blend_row(&mut self, at: &Address, v: &Val, mask: Option<&Val>) -> bool {
        let (Some(first), false) = (row_of_frame(at, v.ty.elem), self.options.mask_registers) else { return false };
        let Some(lanes) = self.lanes(mask) else { return false };
        let (ty, bytes, pointer) = (Ty::lanes(v.ty.elem), v.ty.elem.bits() / 8, self.pointer(first));
        let (v, whole) = (self.w.splat(v), ty.to_string());
        let before = self.load_piece(&whole, ty, &pointer, bytes);
        let after = self.w.select(&lanes, &v, &before);
        self.store_piece(&whole, &after, &pointer, bytes);
        true
    }

    /// Emits an access to `count` elements of `bytes` bytes; `f` gets the address of each, and is called a second time if the access may
    /// leave the frame. In lean code, what each lane accesses at an offset of its own is performed once, whether it leaves the frame or not.
    fn access_interleaved(
        &mut self,
        operand: &Operand,
        (bytes, count, write): (u32, u32, bool),
        mask: Option<&Val>,
        mut f: impl FnMut(&mut Self, &[Address]),
    ) -> Result<()> {
        let (Some(frame), Operand::Mem(base, offset)) = (self.local.interleaved, operand) else {
            return self.refuse("a local address");
        };
        let total = bytes * count;
        let at = self.local_offset(base, *offset);
        let within = self.w.op_const("sub", &at, frame.start.into());
        let elements = |e: &mut Self, first: &Val| -> Vec<Val> {
            (0..count).map(|i| e.w.op_const("add", first, (i * bytes).into())).collect()
        };
        if matches!(access(self.ir, self.func, operand, total), Access::Proven(_)) {
            let addresses: Vec<Address> =
                elements(self, &within).iter().map(|v| self.address_interleaved(frame, v, bytes)).collect();
            f(self, &addresses);
            return Ok(());
        }
        let members = &[Member { inst: self.inst, offset: *offset, bytes: total }];
        let what =
            LaneAccess { space: MemSpace::Local, name: ".local", offset: *offset, bytes: total, write, mask, members };
        let anywhere = |e: &mut Self| -> Vec<Address> {
            e.checked_local(&at, Some(&what.check()), mask);
            elements(e, &at).iter().map(|v| e.address_anywhere(frame, v)).collect()
        };
        let bad = self.leaves_frame(frame, (&at, &within), total);
        let done = self.w.label("accessed");
        let (hot, mark) = self.unlikely(&bad, mask);
        let cold = anywhere(self);
        let together = self.options.lean && at.ty.vector && count == 1;
        let variable = together.then(|| self.w.alloca(&Ty::lanes(Elem::I64).to_string(), 64));
        let mut perform = |e: &mut Self, addresses: &[Address]| match (&variable, addresses) {
            (Some(variable), [one]) => {
                let lanes = e.spread(one);
                e.w.store(&lanes, variable, 64);
            }
            _ => f(e, addresses),
        };
        perform(self, &cold);
        self.w.jump(&done);
        self.w.join(&hot, mark);
        let addresses: Vec<Address> =
            elements(self, &within).iter().map(|v| self.address_interleaved(frame, v, bytes)).collect();
        perform(self, &addresses);
        self.w.jump(&done);
        self.w.join(&done, mark);
        if let Some(variable) = variable {
            let lanes = self.w.get_changed(Ty::lanes(Elem::I64), &variable, 0, 64);
            f(self, &[Address::Lanes(lanes)]);
        }
        Ok(())
    }

    /// The offset in the window that an address with this base has.
    fn local_offset(&mut self, base: &MemBase, offset: i64) -> Val {
        match base {
            MemBase::Frame(f) => self.frame_address(f.0, offset),
            MemBase::Reg(r) => {
                let v = self.read(*r);
                let v = self.w.resize(&v, Elem::I32, false);
                self.w.op_const("add", &v, i128::from(offset as i32))
            }
            _ => int(Elem::I32, i128::from(offset as i32)),
        }
    }

    /// Whether an access to `bytes` bytes, at the offset `at` in the window and `within` in the frame, leaves the frame or is misaligned.
    fn leaves_frame(&mut self, frame: Interleaved, (at, within): (&Val, &Val), bytes: u32) -> Val {
        let places = frame.size.saturating_sub(bytes - 1);
        let outside = self.w.cmp("icmp uge", within, &constant(within.ty, places.into()));
        let odd = i128::from(margay_ir::explicit::alignment(bytes)) - 1;
        if odd == 0 {
            return outside;
        }
        let rest = self.w.op_const("and", at, odd);
        let misaligned = self.w.cmp("icmp ne", &rest, &constant(rest.ty, 0));
        self.w.op("or", &outside, &misaligned)
    }

    /// The first row of the warp.
    fn rows_of_frame(&mut self) -> Val {
        self.local.used = true;
        let (windows, stride) = (self.ctx_value(Elem::I64, at::LOCAL), self.ctx_value(Elem::I64, at::LOCAL_STRIDE));
        let size = self.w.op_const("shl", &stride, 5);
        self.w.op("add", &windows, &size)
    }

    /// The addresses of elements that surely lie in the frame, `within` bytes from its start.
    fn address_interleaved(&mut self, frame: Interleaved, within: &Val, bytes: u32) -> Address {
        let unit = i128::from(frame.unit);
        let (whole, rest) = if bytes == frame.unit {
            (within.clone(), None)
        } else {
            (self.w.op_const("and", within, -unit), Some(self.w.op_const("and", within, unit - 1)))
        };
        let mut place = self.w.op_const("shl", &whole, 5);
        if let Some(rest) = rest {
            place = self.w.op("add", &place, &rest);
        }
        let rows = self.rows_of_frame();
        if !place.ty.vector {
            let wide = self.w.resize(&place, Elem::I64, false);
            let first = self.w.op("add", &rows, &wide);
            return Address::Affine { bases: vec![first], width: 32, stride: frame.unit.into() };
        }
        let lanes = per_lane(Elem::I32, |lane| i128::from(lane) * unit);
        let place = self.w.op("add", &place, &lanes);
        let wide = self.w.resize(&place, Elem::I64, false);
        Address::Lanes(self.w.op("add", &rows, &wide))
    }

    /// The addresses of elements anywhere in the windows.
    fn address_anywhere(&mut self, frame: Interleaved, at: &Val) -> Address {
        let windows = self.local_lanes(at);
        let (windows, at) = (self.spread(&windows), self.w.splat(at));
        let rows = self.rows_of_frame();
        self.w.declared.insert(anywhere(frame));
        let lanes = Ty::lanes(Elem::I64);
        Address::Lanes(
            self.w.value(
                lanes,
                format_args!("call {lanes} @margay.local(i64 {rows}, <32 x i32> {at}, {lanes} {windows})"),
            ),
        )
    }
}

/// The address of the first lane, if lanes access consecutive elements of a row of the frame.
fn row_of_frame(at: &Address, elem: Elem) -> Option<&Val> {
    match at {
        Address::Affine { bases, width: 32, stride } if *stride == i64::from(elem.bits() / 8) => bases.first(),
        _ => None,
    }
}

/// A function that finds the bytes at offsets in the windows.
fn anywhere(Interleaved { start, size, unit }: Interleaved) -> String {
    fill(
        include_str!("interleaved/anywhere.ll"),
        &[
            ("start", &start),
            ("size", &size),
            ("whole", &-(unit as i32)),
            ("rest", &(unit - 1)),
            ("lanes", &per_lane(Elem::I32, |lane| i128::from(lane) * i128::from(unit))),
        ],
    )
}
