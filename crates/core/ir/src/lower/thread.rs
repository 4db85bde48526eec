//! Module-scope `.reg` and `.local` variables (PTX before 3.0; manual, section 7.1.1): each thread has its own, and all
//! functions see the same ones. They are in the thread block (see [`crate::Ir::thread_block`]).
//!
//! Such a register is loaded before an instruction that reads it and stored after one that writes it, with plain `ld.local`
//! and `st.local`, so engines need not know of them. Predicates are stored as the words 0 and 1.

use super::{
    LowerError,
    body::{Builder, Place},
    constant,
};
use crate::{Inst, MemBase, MemSpace, Operand, VReg};
use margay_check::Global;
use margay_isa::{Mod, Opcode, Type, Variant, Word, resolve};

/// The layout of the block.
#[derive(Clone, Default, Debug)]
pub(super) struct ThreadBlock {
    end: u32,
}

/// Local address 0 stays free: programs compare pointers with it.
const FIRST: u32 = 16;

impl ThreadBlock {
    /// Room for a variable; `None` if the block grows beyond what a local window holds.
    pub fn add(&mut self, g: &Global) -> Option<u32> {
        let size = match g.ty {
            Type::Pred => 4,
            _ => u32::try_from(g.size).ok()?,
        };
        let at = self.end.max(FIRST).checked_next_multiple_of(g.align.max(4))?;
        self.end = at.checked_add(size)?;
        (self.end < 1 << 24).then_some(at)
    }

    pub fn size(&self) -> u32 {
        self.end.next_multiple_of(16)
    }
}

pub(super) fn variant(op: &str, words: &[Word]) -> Option<Variant> {
    resolve(Opcode::from_name(op)?, words, |_| true).ok().map(|r| r.variant)
}

impl Builder<'_> {
    /// A fresh register with the value of the one at `offset` of the thread block.
    pub(super) fn thread_load(&mut self, offset: u32, ty: Type, at: Place) -> Result<VReg, LowerError> {
        let pred = ty == Type::Pred;
        let mem = if pred { Type::B32 } else { ty.untyped() };
        let temp = self.temp(if pred { Type::B32 } else { ty });
        let load = variant("ld", &[Word::Mod(Mod::Local), Word::Type(mem)]);
        let address = Operand::Mem(MemBase::Absolute, i64::from(offset));
        self.synthetic(load, None, &[Operand::Reg(temp)], &[address], Some(MemSpace::Local), at)?;
        if !pred {
            return Ok(temp);
        }
        let flag = self.temp(Type::Pred);
        let test = variant("setp", &[Word::Mod(Mod::Ne), Word::Type(Type::U32)]);
        self.synthetic(test, None, &[Operand::Reg(flag)], &[Operand::Reg(temp), Operand::Imm(0)], None, at)?;
        Ok(flag)
    }

    /// The sum of an integer register and a constant, in the register's width: what ptxas compiles a register with an offset to that
    /// stands for a value.
    pub(super) fn plus(&mut self, base: VReg, offset: i64, at: Place) -> Result<VReg, LowerError> {
        let ty = self.func.regs[base.0 as usize];
        let width = match ty.bits() {
            16 => Type::U16,
            32 => Type::U32,
            64 => Type::U64,
            _ => Type::Pred,
        };
        if width == Type::Pred || ty.is_float() {
            return Err(self.unsupported(at.span, format!("a register of `{ty}` with an offset as a value")));
        }
        let sum = self.temp(ty);
        let offset = Operand::Imm(constant::int_bits(width, offset));
        self.synthetic(
            variant("add", &[Word::Type(width)]),
            None,
            &[Operand::Reg(sum)],
            &[Operand::Reg(base), offset],
            None,
            at,
        )?;
        Ok(sum)
    }

    /// Stores a register to the thread block, under the guard of the instruction that wrote it.
    pub(super) fn thread_store(
        &mut self,
        offset: u32,
        from: VReg,
        guard: Option<(VReg, bool)>,
        at: Place,
    ) -> Result<(), LowerError> {
        let ty = self.func.regs[from.0 as usize];
        let (value, mem) = if ty == Type::Pred {
            let word = self.temp(Type::B32);
            let select = variant("selp", &[Word::Type(Type::B32)]);
            let srcs = [Operand::Imm(constant::int_bits(Type::B32, 1)), Operand::Imm(0), Operand::Reg(from)];
            self.synthetic(select, None, &[Operand::Reg(word)], &srcs, None, at)?;
            (word, Type::B32)
        } else {
            (from, ty.untyped())
        };
        let store = variant("st", &[Word::Mod(Mod::Local), Word::Type(mem)]);
        let address = Operand::Mem(MemBase::Absolute, i64::from(offset));
        self.synthetic(store, guard, &[], &[address, Operand::Reg(value)], Some(MemSpace::Local), at)
    }

    pub(super) fn synthetic(
        &mut self,
        variant: Option<Variant>,
        guard: Option<(VReg, bool)>,
        dsts: &[Operand],
        srcs: &[Operand],
        space: Option<MemSpace>,
        at: Place,
    ) -> Result<(), LowerError> {
        let Some(variant) = variant else {
            return Err(LowerError::unsupported(&self.func.source, at.span, "an instruction that this one is made of"));
        };
        let variant = self.variant(variant);
        let (dsts, srcs) = (self.list(dsts), self.list(srcs));
        self.func.insts.push(Inst { variant, guard, dsts, srcs, space, at: at.index });
        Ok(())
    }
}
