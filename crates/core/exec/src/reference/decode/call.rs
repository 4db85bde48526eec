//! Decodes call sites and formals: transfers with numbered registers, homes with their rows.

use super::super::{
    code::{CallOp, Location, Passed, Piece, Shape, Src, Target, Transfer},
    step::{self, Home},
};
use super::{Decoder, append};
use crate::Stop;
use margay_ir::{
    Arg, Callee, FormalHome, Func, Inst, Operand,
    abi::{self, Place},
    explicit,
};

impl Decoder<'_> {
    fn pieces(&mut self, pieces: &[abi::Piece]) -> Vec<Piece> {
        let number = |p: &abi::Piece| {
            let at = match p.at {
                Place::Reg(r) => Location::Reg(self.registers.row(r)),
                Place::Stack { offset } => Location::Stack(offset),
                Place::Space { offset } => Location::Space(offset),
                Place::Behind(r) => Location::Behind(self.registers.row(r)),
            };
            Piece { start: p.bytes.start, len: p.bytes.end - p.bytes.start, at }
        };
        pieces.iter().map(number).collect()
    }

    /// Decodes a transfer; `elements` finds the registers that hold the value.
    fn transfer(&mut self, t: &explicit::Transfer, elements: impl FnOnce(&Self, u32) -> Home) -> Transfer {
        let home = match t.home {
            explicit::Home::Elements(bytes) => elements(self, bytes),
            explicit::Home::Variable(id) => Home::Frame(self.places.frame[id.0 as usize]),
            explicit::Home::Nowhere => Home::None,
        };
        Transfer { size: t.bytes, home, pieces: self.pieces(&t.pieces) }
    }

    /// Decodes the homes of the function's formals and return values.
    pub(super) fn formals(&mut self) {
        let func = self.func();
        let interface = &self.places.interface;
        let sides = [(&interface.args, &func.params, &func.sig.params), (&interface.rets, &func.rets, &func.sig.rets)];
        for (side, (transfers, homes, values)) in sides.into_iter().enumerate() {
            for ((t, home), value) in transfers.iter().zip(homes).zip(values) {
                let made = self.transfer(t, |decoder, bytes| match home {
                    FormalHome::Regs(regs) => {
                        let dst = |r: &margay_ir::VReg| decoder.dst(&func, &Operand::Reg(*r), value.ty);
                        Home::Write(regs.iter().map(dst).collect(), bytes)
                    }
                    FormalHome::Frame(_) | FormalHome::Kernel(_) => Home::None,
                });
                if side == 0 {
                    self.code.args.push(made);
                    continue;
                }
                for piece in &made.pieces {
                    if let Location::Behind(r) = piece.at {
                        self.code.hidden.push(r);
                    }
                }
                self.code.rets.push(made);
            }
        }
        self.code.space = interface.carriers.space.div_ceil(4);
        self.code.start = interface.incoming.map_or(0, |i| i.offset);
    }

    pub(super) fn call(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let Some(Operand::Call(index)) = func.operands(inst.srcs).first() else {
            return Err(self.unsupported("a call without call site".into()));
        };
        let site = &func.calls[*index as usize];
        let sequence = &self.places.sequences[*index as usize];
        let callee = match (&sequence.target, &site.callee) {
            (explicit::Target::Function(id), _) => Target::Func(*id),
            (explicit::Target::Builtin(builtin), _) => Target::Builtin(*builtin),
            (explicit::Target::Undefined(id), _) => Target::Undefined(*id),
            (explicit::Target::Admitted(_), Callee::Indirect(r, _)) => {
                Target::Indirect(Src::reg(self.row(*r), Shape::of(func.regs[r.0 as usize])))
            }
            (explicit::Target::Admitted(_), Callee::Direct(_)) => {
                return Err(self.unsupported("a call by name of what only a register names".into()));
            }
        };
        let mut args = Vec::new();
        for ((t, arg), value) in sequence.args.iter().zip(&site.args).zip(&site.sig.params) {
            let mut srcs = Vec::new();
            if let Arg::Values(values) = arg {
                for v in values {
                    srcs.push(self.source(v, value.ty)?);
                }
            }
            args.push(self.transfer(t, |_, bytes| Home::Read(srcs, bytes)));
        }
        let mut rets = Vec::new();
        for ((t, ret), value) in sequence.rets.iter().zip(&site.rets).zip(&site.sig.rets) {
            rets.push(self.transfer(t, |decoder, bytes| match ret {
                Arg::Values(values) => {
                    Home::Write(values.iter().map(|v| decoder.dst(func, v, value.ty)).collect(), bytes)
                }
                Arg::Frame(_) | Arg::Omitted => Home::None,
            }));
        }
        let passed = sequence.passed.map(|p| Passed {
            from: p.var.map(|id| self.places.frame[id.0 as usize]),
            size: p.bytes,
            at: p.offset,
        });
        let buffers = sequence.buffers.iter().map(|b| (self.registers.row(b.pointer), b.at)).collect();
        let space = sequence.carriers.space.div_ceil(4);
        let x = append(&mut self.code.calls, CallOp { callee, site: *index, args, rets, passed, buffers, space });
        self.emit(inst, step::call::call, x);
        Ok(())
    }
}
