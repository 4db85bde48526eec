//! Call sites (manual, sections 7.1 and 9.7.12.5).

use super::{
    LowerError,
    body::{Builder, Place, VarHome},
    constant::{float_bits, int_bits},
    link::signature,
};
use crate::{
    Arg, CallSite, Callee, FrameId, FrameRole, FuncId, Inst, Operand, VReg,
    abi::{Signature, Value},
};
use margay_check::{self as check, SymRef, TargetTable};
use margay_isa::Mod;
use margay_syntax::Span;
use std::sync::Arc;

impl Builder<'_> {
    pub(super) fn call(
        &mut self,
        inst: &check::Inst,
        variant: u32,
        guard: Option<(VReg, bool)>,
        at: Place,
    ) -> Result<(), LowerError> {
        let operands: Vec<check::Operand> = self.body.operands(inst.operands).to_vec();
        let [rets, callee, args, table] = operands[..] else {
            return Err(self.error(at.span, "a call whose operands did not resolve"));
        };
        let (callee, sig) = self.callee(callee, table, at)?;
        let args = self.elements(args);
        let mut inputs = Vec::with_capacity(sig.params.len());
        for (i, formal) in sig.params.iter().enumerate() {
            inputs.push(match args.get(i) {
                Some(arg) => self.argument(*arg, formal, at)?,
                None if formal.is_unsized => Arg::Omitted,
                None => return Err(self.error(at.span, format!("argument {} is missing", i + 1))),
            });
        }
        if args.len() > sig.params.len() {
            return Err(self.error(at.span, "more arguments than formals"));
        }
        let mut stores = Vec::new();
        let mut outputs = Vec::with_capacity(sig.rets.len());
        for (i, operand) in self.elements(rets).into_iter().enumerate() {
            let Some(formal) = sig.rets.get(i) else {
                return Err(self.error(at.span, "more results than the function returns"));
            };
            outputs.push(self.result(operand, formal, &mut stores, at)?);
        }
        outputs.resize(sig.rets.len(), Arg::Omitted);
        let uniform = self.body.variant(inst).has(Mod::Uni);
        let index = self.func.calls.len() as u32;
        self.func.calls.push(CallSite { callee, sig, args: inputs, rets: outputs, uniform, observes: false });
        let srcs = self.list(&[Operand::Call(index)]);
        self.func.insts.push(Inst { variant, guard, dsts: super::link::empty(), srcs, space: None, at: at.index });
        for (offset, value) in stores {
            self.thread_store(offset, value, guard, at)?;
        }
        Ok(())
    }

    /// The operands of a parenthesized list; none where the list was left out.
    fn elements(&self, operand: check::Operand) -> Vec<check::Operand> {
        match operand {
            check::Operand::List(list) => self.body.operands(list).to_vec(),
            _ => Vec::new(),
        }
    }

    fn program_func(&mut self, f: check::FuncId, span: Span) -> FuncId {
        let id = self.program.func_ids[self.module][f.0 as usize];
        self.refs.func(id, span);
        id
    }

    fn callee(
        &mut self,
        callee: check::Operand,
        table: check::Operand,
        at: Place,
    ) -> Result<(Callee, Arc<Signature>), LowerError> {
        if let check::Operand::Symbol(SymRef::Func(f), _) = callee {
            let id = self.program_func(f, at.span);
            return Ok((Callee::Direct(id), self.program.funcs[id.0 as usize].func.sig.clone()));
        }
        let target = match callee {
            check::Operand::Reg(r) => self.read_scalar(r, at)?,
            _ => return Err(self.unsupported(at.span, "a call to something that is neither a function nor a register")),
        };
        let check::Operand::Table(table) = table else {
            return Err(self.error(at.span, "an indirect call without prototype or targets"));
        };
        match self.body.tables.get(table.0 as usize).cloned() {
            Some(TargetTable::Prototype(f)) => Ok((Callee::Indirect(target, None), Arc::new(signature(&f)))),
            Some(TargetTable::Calls(funcs)) => {
                let ids: Vec<FuncId> = funcs.into_iter().map(|f| self.program_func(f, at.span)).collect();
                let Some(first) = ids.first() else {
                    return Err(self.error(at.span, "an empty list of call targets"));
                };
                let sig = self.program.funcs[first.0 as usize].func.sig.clone();
                Ok((Callee::Indirect(target, Some(ids)), sig))
            }
            Some(TargetTable::Branch(_)) | None => Err(self.error(at.span, "a call through a list of branch targets")),
        }
    }

    /// A `.param` variable of the caller that is large enough for the formal.
    fn param_variable(&self, symbol: SymRef, formal: &Value, at: Place) -> Result<FrameId, LowerError> {
        let home = match symbol {
            SymRef::Local(i) => self.locals.get(i as usize),
            SymRef::Global(_) | SymRef::Param(_) | SymRef::Ret(_) | SymRef::Func(_) => None,
        };
        let Some(VarHome::Frame(id)) = home else {
            return Err(self.error(at.span, "an argument or result that is not a `.param` variable of the caller"));
        };
        let var = &self.func.frame[id.0 as usize];
        if var.role != FrameRole::Param || var.size < formal.size {
            return Err(self.error(at.span, format!("`{}` does not match its parameter", var.name)));
        }
        Ok(*id)
    }

    fn argument(&mut self, arg: check::Operand, formal: &Value, at: Place) -> Result<Arg, LowerError> {
        Ok(match arg {
            check::Operand::Symbol(symbol, 0) => Arg::Frame(self.param_variable(symbol, formal, at)?),
            check::Operand::Int(v) => Arg::Values(vec![Operand::Imm(int_bits(formal.ty, v))]),
            check::Operand::Float { bits, single } => {
                Arg::Values(vec![Operand::Imm(float_bits(formal.ty, bits, single))])
            }
            other => {
                let mut values = Vec::new();
                self.value(other, formal.ty, formal.vector > 1, &mut values, at)?;
                self.elements_of(values, formal, at)?
            }
        })
    }

    /// As many values as the formal has elements, none of them `_`.
    fn elements_of(&self, values: Vec<Operand>, formal: &Value, at: Place) -> Result<Arg, LowerError> {
        let fits =
            values.len() == usize::from(formal.vector.max(1)) && !formal.array && !values.contains(&Operand::Sink);
        if fits {
            Ok(Arg::Values(values))
        } else {
            Err(self.error(at.span, "an argument that does not match its parameter"))
        }
    }

    fn result(
        &mut self,
        operand: check::Operand,
        formal: &Value,
        stores: &mut Vec<(u32, VReg)>,
        at: Place,
    ) -> Result<Arg, LowerError> {
        Ok(match operand {
            check::Operand::Sink => Arg::Omitted,
            check::Operand::Reg(r) => {
                let mut values = Vec::new();
                self.written(r, None, &mut values, stores);
                self.elements_of(values, formal, at)?
            }
            check::Operand::Element(r, c) => {
                let mut values = Vec::new();
                self.written(r, Some(c as u8), &mut values, stores);
                self.elements_of(values, formal, at)?
            }
            check::Operand::Symbol(symbol, 0) => Arg::Frame(self.param_variable(symbol, formal, at)?),
            _ => return Err(self.unsupported(at.span, "a result of this shape")),
        })
    }
}
