//! Computed addresses: elements of arrays by an index in a register, `ld.global.u64 d, a[%r1+2]` (manual, section 6.4.2), and variables of
//! the CTA in its cluster.

use super::{
    LowerError,
    body::{Builder, Place},
    thread::variant,
};
use crate::{Operand, RANK_SHIFT, VReg};
use margay_check::{RegId, SymRef};
use margay_isa::{Component, Mod, Special, Type, Word};

impl Builder<'_> {
    /// The address of an array, plus `size` times a register, plus `offset`. ptxas computes the distance from the array's start with 32
    /// bits and extends it with zeros; of a wider index it takes the lower half (measured: ULEA on `tab[%rd1]`).
    pub(super) fn element(
        &mut self,
        array: SymRef,
        index: RegId,
        size: u32,
        offset: i32,
        at: Place,
    ) -> Result<VReg, LowerError> {
        let ty = self.body.decl(index).ty;
        let index = self.read_scalar(index, at)?;
        let index = match ty.bits() {
            32 => index,
            16 if ty == Type::S16 => self.convert(Type::U32, Type::S16, index, at)?,
            16 => self.convert(Type::U32, Type::U16, index, at)?,
            64 => self.convert(Type::U32, Type::U64, index, at)?,
            _ => return Err(self.unsupported(at.span, format!("an index of `{ty}`"))),
        };
        let srcs = [Operand::Reg(index), Operand::Imm(size.into()), Operand::Imm((offset as u32).into())];
        let mut distance = self.made("mad", &[Word::Mod(Mod::Lo), Word::Type(Type::U32)], Type::U32, &srcs, at)?;
        let width = if self.program.address_size == 64 { Type::U64 } else { Type::U32 };
        if width == Type::U64 {
            distance = self.convert(width, Type::U32, distance, at)?;
        }
        let start = self.symbol(array, 0, at)?;
        let start = self.made("mov", &[Word::Type(width)], width, &[start], at)?;
        self.made("add", &[Word::Type(width)], width, &[Operand::Reg(start), Operand::Reg(distance)], at)
    }

    /// The address of a shared variable and, in bits 24 to 31, the rank of the CTA in its cluster; as wide as a type.
    pub(super) fn with_rank(&mut self, address: Operand, ty: Type, at: Place) -> Result<VReg, LowerError> {
        let word = [Word::Type(Type::U32)];
        let rank = [Operand::Special(Special::ClusterCtarank, Component::X)];
        let rank = self.made("mov", &word, Type::U32, &rank, at)?;
        let shift = [Operand::Reg(rank), Operand::Imm(RANK_SHIFT.into())];
        let mut rank = self.made("shl", &[Word::Type(Type::B32)], Type::U32, &shift, at)?;
        let width = if ty.bits() == 64 { Type::U64 } else { Type::U32 };
        if width == Type::U64 {
            rank = self.convert(width, Type::U32, rank, at)?;
        }
        self.made("add", &[Word::Type(width)], width, &[address, Operand::Reg(rank)], at)
    }

    fn convert(&mut self, to: Type, from: Type, value: VReg, at: Place) -> Result<VReg, LowerError> {
        self.made("cvt", &[Word::Type(to), Word::Type(from)], to, &[Operand::Reg(value)], at)
    }

    /// The result of an instruction, in a fresh register.
    fn made(&mut self, op: &str, words: &[Word], ty: Type, srcs: &[Operand], at: Place) -> Result<VReg, LowerError> {
        let result = self.temp(ty);
        self.synthetic(variant(op, words), None, &[Operand::Reg(result)], srcs, None, at)?;
        Ok(result)
    }
}
