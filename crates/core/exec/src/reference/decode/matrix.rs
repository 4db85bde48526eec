//! Decodes warp-level matrix instructions (manual, section 9.7.14).

use super::super::{
    code::{Handler, MatrixOp},
    step,
};
use super::{Decoder, append};
use crate::{Stop, matrix};
use margay_ir::{Func, Inst, MemSpace, Operand, operand_types};
use margay_isa::{Mod, Opcode};

impl Decoder<'_> {
    /// `mma`, `wmma`, `ldmatrix`, `stmatrix`, `movmatrix`.
    pub(super) fn matrix(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        let run: Handler = match v.op {
            _ if matrix::pure(v).is_some() => step::matrix::product,
            _ if !matrix::transfers(v) => return Err(self.unsupported(format!("`{v}`"))),
            Opcode::Ldmatrix => step::matrix::load,
            Opcode::Stmatrix => step::matrix::store,
            _ if v.has(Mod::Load) => step::matrix::wmma_load,
            _ => step::matrix::wmma_store,
        };
        let mut op = self.matrix_operands(func, inst)?;
        op.pure = matrix::pure(v);
        let x = append(&mut self.code.matrices, op);
        self.emit(inst, run, x);
        Ok(())
    }

    /// `wgmma`: only the products do anything; what orders and awaits them only reports to observers, since they are done at issue.
    pub(super) fn warpgroup(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        if !func.variant(inst).has(Mod::MmaAsync) {
            let pending =
                func.operands(inst.srcs).iter().find_map(|o| if let Operand::Imm(n) = o { Some(*n) } else { None });
            self.emit(inst, step::matrix::warpgroup_group, pending.unwrap_or(0) as u32);
            return Ok(());
        }
        let op = self.matrix_operands(func, inst)?;
        let x = append(&mut self.code.matrices, op);
        self.emit(inst, step::matrix::warpgroup, x);
        Ok(())
    }

    /// The fragments as single registers, and the address if there is one.
    pub(super) fn matrix_operands(&mut self, func: &Func, inst: &Inst) -> Result<MatrixOp, Stop> {
        let types = operand_types(func, inst);
        let space = inst.space.unwrap_or(MemSpace::Generic);
        let (mut src, mut address) = (Vec::new(), None);
        for (o, ty) in func.operands(inst.srcs).to_vec().iter().zip(&types.srcs) {
            match o {
                Operand::Mem(..) => address = Some(self.address(o, space)?),
                _ => src.push(self.source(o, *ty)?),
            }
        }
        let dst = self.destinations(func, inst);
        Ok(MatrixOp { dst, src, address, pure: None })
    }
}
