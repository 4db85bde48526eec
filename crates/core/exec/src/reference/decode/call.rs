//! Call sites and formals: plans with their registers numbered, homes with their rows.

use super::super::{
    code::{CallOp, Piece, Shape, Target, Travel, Wire},
    step::{self, Home},
};
use super::Decoder;
use crate::Stop;
use margay_check::FuncKind;
use margay_ir::{
    Arg, Callee, FormalHome, Func, FuncId, Inst, Operand,
    abi::{self, Place, Value},
};

/// Where an unsized array starts in the outgoing area.
pub fn start(pieces: &[abi::Piece]) -> u32 {
    match pieces.first().map(|p| p.at) {
        Some(Place::Stack { offset } | Place::Space { offset }) => offset,
        Some(Place::Reg(_) | Place::Behind(_)) | None => 0,
    }
}

/// Bytes of one register of a value.
fn element_bytes(value: &Value) -> u32 {
    value.ty.bytes().max(1)
}

impl Decoder<'_> {
    fn pieces(&mut self, pieces: &[abi::Piece]) -> Vec<Piece> {
        let number = |p: &abi::Piece| {
            let at = match p.at {
                Place::Reg(r) => Wire::Reg(self.wires.row(r)),
                Place::Stack { offset } | Place::Space { offset } => Wire::Area(offset),
                Place::Behind(r) => Wire::Behind(self.wires.row(r)),
            };
            Piece { start: p.bytes.start, len: p.bytes.end - p.bytes.start, at }
        };
        pieces.iter().map(number).collect()
    }

    /// Homes of the function's own formals and returns.
    pub(super) fn formals(&mut self) -> Result<(), Stop> {
        let func = self.func();
        if func.kind == FuncKind::Kernel {
            return Ok(());
        }
        let plan = self.places.plan.clone();
        for (i, (value, home)) in func.sig.params.iter().zip(&func.params).enumerate() {
            let pieces = self.pieces(&plan.args[i]);
            let at = value.is_unsized.then(|| start(&plan.args[i]));
            let home = match home {
                FormalHome::Regs(regs) => {
                    let dst = |r: &margay_ir::VReg| self.dst(&func, &Operand::Reg(*r), value.ty);
                    Home::Write(regs.iter().map(dst).collect(), element_bytes(value))
                }
                FormalHome::Frame(id) => Home::Frame(self.places.frame[id.0 as usize]),
                FormalHome::Kernel(_) => Home::None,
            };
            self.code.args.push(Travel { size: value.size, home, pieces, at });
        }
        for (i, (value, home)) in func.sig.rets.iter().zip(&func.rets).enumerate() {
            let pieces = self.pieces(&plan.rets[i]);
            for p in &pieces {
                if let Wire::Behind(r) = p.at {
                    self.code.hidden.push(r);
                }
            }
            let home = match home {
                FormalHome::Regs(regs) => {
                    let dst = |r: &margay_ir::VReg| self.dst(&func, &Operand::Reg(*r), value.ty);
                    Home::Write(regs.iter().map(dst).collect(), element_bytes(value))
                }
                FormalHome::Frame(id) => Home::Frame(self.places.frame[id.0 as usize]),
                FormalHome::Kernel(_) => Home::None,
            };
            self.code.rets.push(Travel { size: value.size, home, pieces, at: None });
        }
        Ok(())
    }

    fn target(&self, callee: &Callee) -> Target {
        match callee {
            Callee::Direct(id) => self.direct_target(*id),
            Callee::Indirect(r, _) => {
                let shape = Shape::of(self.code.func.regs[r.0 as usize]);
                Target::Indirect(super::super::code::Src::reg(self.row(*r), shape))
            }
        }
    }

    fn direct_target(&self, id: FuncId) -> Target {
        let func = self.image.ir.func(id);
        match func.builtin {
            Some(builtin) => Target::Builtin(builtin),
            None if func.blocks.is_empty() => Target::Undefined(id),
            None => Target::Func(id),
        }
    }

    pub(super) fn call(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let Some(Operand::Call(index)) = func.operands(inst.srcs).first() else {
            return Err(self.unsupported("a call without call site".into()));
        };
        let site = &func.calls[*index as usize];
        let plan = self.places.calls[*index as usize].clone();
        let mut args = Vec::new();
        for (i, (arg, value)) in site.args.iter().zip(&site.sig.params).enumerate() {
            let (size, home) = match arg {
                Arg::Values(values) => {
                    let mut srcs = Vec::new();
                    for v in values {
                        srcs.push(self.source(v, value.ty)?);
                    }
                    (value.size, Home::Read(srcs, element_bytes(value)))
                }
                Arg::Frame(id) => {
                    let size = if value.is_unsized { func.frame[id.0 as usize].size } else { value.size };
                    (size, Home::Frame(self.places.frame[id.0 as usize]))
                }
                Arg::Omitted => (if value.is_unsized { 0 } else { value.size }, Home::None),
            };
            let at = value.is_unsized.then(|| start(&plan.args[i]));
            args.push(Travel { size, home, pieces: self.pieces(&plan.args[i]), at });
        }
        let mut rets = Vec::new();
        for (i, (ret, value)) in site.rets.iter().zip(&site.sig.rets).enumerate() {
            let home = match ret {
                Arg::Values(values) => {
                    let dsts = values.iter().map(|v| self.dst(func, v, value.ty)).collect();
                    Home::Write(dsts, element_bytes(value))
                }
                Arg::Frame(id) => Home::Frame(self.places.frame[id.0 as usize]),
                Arg::Omitted => Home::None,
            };
            rets.push(Travel { size: value.size, home, pieces: self.pieces(&plan.rets[i]), at: None });
        }
        let places = self.places;
        let buffers = places.buffers[*index as usize].iter().map(|b| (self.wires.row(b.pointer), b.at)).collect();
        let callee = self.target(&site.callee);
        let op = CallOp { callee, site: *index, args, rets, buffers };
        self.code.calls.push(op);
        let x = self.code.calls.len() - 1;
        self.emit(inst, step::call::call, x);
        Ok(())
    }
}
