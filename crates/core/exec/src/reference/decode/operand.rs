//! Decodes operands: registers as rows, constants as splatted rows; everything else is computed into a temporary first.

use super::super::{
    code::{Address, Base, Dst, MemOp, NOWHERE, Op, Order, Shape, Src},
    step,
};
use super::{Decoder, append, splat};
use crate::{
    Image, Stop,
    sem::atomic::{AtomicOp, Rmw},
};
use margay_ir::{FrameId, FrameRole, Func, Inst, MemBase, MemSpace, Operand, operand_types};
use margay_isa::Type;

/// Rows for inverted predicates: an instruction reads at most two, a call's arguments more.
pub const PRED_TEMPS: u32 = 8;

impl Decoder<'_> {
    /// Allocates a temporary that lives until the end of the instruction.
    pub(super) fn temp(&mut self, ty: Type) -> Dst {
        let shape = Shape::of(ty);
        // A group may be blocked with operands in temporaries while another one executes other instructions. The bits
        // of a predicate belong to all lanes, so predicates have rows of their own.
        let row = if shape == Shape::Pred {
            self.pred_temps += 1;
            self.code.rows + (self.pred_temps - 1) % PRED_TEMPS
        } else {
            self.temps += shape.rows() as u32;
            self.code.rows + PRED_TEMPS + self.temps - shape.rows() as u32
        };
        self.most_temps = self.most_temps.max(PRED_TEMPS + self.temps);
        Dst { row, shape, bits: ty.bits() as u8 }
    }

    /// A splatted constant as a source.
    pub(super) fn constant(&mut self, bits: u64, ty: Type) -> Src {
        let shape = Shape::of(ty);
        if let Some(known) = self.known.get(&(bits, shape as u8)) {
            return *known;
        }
        let s = Src::constant(self.code.consts.len() as u32, shape);
        self.code.consts.extend(splat(bits, ty));
        self.known.insert((bits, shape as u8), s);
        s
    }

    /// The value of an operand that is the same in every lane and launch.
    fn fixed(&self, o: &Operand) -> Option<u64> {
        Some(match o {
            Operand::Imm(v) => *v,
            Operand::GlobalAddr(g, offset) => self.image.addresses[g.0 as usize].wrapping_add_signed(*offset),
            Operand::ParamAddr(offset) => *offset as u64,
            Operand::Func(f) => Image::function_address(self.image.ir.address_size, *f),
            Operand::Sink => 0,
            _ => return None,
        })
    }

    /// A source operand; adds the ops that compute it.
    pub(super) fn source(&mut self, o: &Operand, ty: Type) -> Result<Src, Stop> {
        if let Some(bits) = self.fixed(o) {
            return Ok(self.constant(bits, ty));
        }
        Ok(match o {
            Operand::Reg(r) => Src::reg(self.row(*r), Shape::of(self.code.func.regs[r.0 as usize])),
            Operand::Not(r) => {
                let (row, d) = (self.row(*r), self.temp(Type::Pred));
                let src = [Src::reg(row, Shape::Pred); 3];
                self.push(Op { dst: d.row, shape: Shape::Pred, src, ..Self::blank(step::pure::invert) });
                Src::reg(d.row, Shape::Pred)
            }
            Operand::Special(..) | Operand::FrameAddr(..) => {
                let d = self.temp(ty);
                self.compute(o, d);
                Src::reg(d.row, d.shape)
            }
            _ => return Err(self.unsupported("a memory operand among values".into())),
        })
    }

    /// Adds the op that computes a special register or an address; false for other operands.
    fn compute(&mut self, o: &Operand, d: Dst) -> bool {
        match o {
            Operand::Special(s, c) => {
                let x = append(&mut self.code.specials, (*s, *c));
                self.push(Op { dst: d.row, shape: d.shape, y: d.bits, x, ..Self::blank(step::special::read) });
                true
            }
            Operand::FrameAddr(id, offset) => {
                let (base, offset) = self.frame_base(*id, *offset);
                let address = Address { space: MemSpace::Local, base, offset };
                let x = append(&mut self.code.mems, MemOp { dst: vec![d], ..plain(address) });
                self.push(Op { x, ..Self::blank(step::stack::frame_address) });
                true
            }
            _ => false,
        }
    }

    /// `mov` of a special register or a frame variable's address: computes directly into the destination.
    pub(super) fn move_special(&mut self, func: &Func, inst: &Inst, source: &Operand, d: Operand, ty: Type) -> bool {
        let d = self.dst(func, &d, ty);
        if !self.compute(source, d) {
            return false;
        }
        let guard = self.guard(inst);
        if let Some(op) = self.code.ops.last_mut() {
            op.guard = guard;
        }
        true
    }

    /// A destination; `ty` is the type for a sink `_`.
    pub(super) fn dst(&self, func: &Func, o: &Operand, ty: Type) -> Dst {
        match o {
            Operand::Reg(r) => {
                let ty = func.regs[r.0 as usize];
                Dst { row: self.row(*r), shape: Shape::of(ty), bits: ty.bits() as u8 }
            }
            _ => Dst { row: NOWHERE, shape: Shape::of(ty), bits: ty.bits() as u8 },
        }
    }

    /// All destinations of an instruction.
    pub(super) fn destinations(&self, func: &Func, inst: &Inst) -> Vec<Dst> {
        let types = operand_types(func, inst);
        func.operands(inst.dsts).iter().zip(&types.dsts).map(|(o, ty)| self.dst(func, o, *ty)).collect()
    }

    /// Base and offset of a frame variable.
    pub(super) fn frame_base(&self, id: FrameId, offset: i64) -> (Base, i64) {
        let var = &self.code.func.frame[id.0 as usize];
        if let FrameRole::Formal(f) = var.role
            && self.code.func.sig.params[f as usize].is_unsized
        {
            let start = self.places.interface.incoming.map_or(0, |i| i.offset);
            return (Base::Incoming, offset.wrapping_add(start.into()));
        }
        (Base::Frame, offset.wrapping_add(self.places.frame[id.0 as usize].into()))
    }

    /// Decodes a memory operand.
    pub(super) fn address(&mut self, o: &Operand, space: MemSpace) -> Result<Address, Stop> {
        let Operand::Mem(base, offset) = o else {
            return Err(self.unsupported("an address of this shape".into()));
        };
        // A thread has a window of local memory whether or not something in the kernel has a name there.
        self.code.local |= space == MemSpace::Local;
        let (base, offset) = match base {
            MemBase::Reg(r) => {
                (Base::Reg(Src::reg(self.row(*r), Shape::of(self.code.func.regs[r.0 as usize]))), *offset)
            }
            MemBase::Global(g) => (Base::Fixed, (self.image.addresses[g.0 as usize] as i64).wrapping_add(*offset)),
            MemBase::Frame(id) => self.frame_base(*id, *offset),
            MemBase::KernelParam | MemBase::Absolute => (Base::Fixed, *offset),
        };
        Ok(Address { space, base, offset })
    }
}

/// A memory operation that consists of an address only.
pub fn plain(address: Address) -> MemOp {
    MemOp {
        address,
        ty: Type::B32,
        size: 4,
        count: 1,
        dst: Vec::new(),
        src: Vec::new(),
        order: Order::Relaxed,
        atomic: Rmw { op: AtomicOp::Add, ty: Type::B32 },
        straddles: false,
    }
}
