//! The invariants of every program. Engines rely on them without checking:
//!
//! 1. A function with a body has blocks; block 0 is the entry; every other block has a predecessor before it (so all are
//!    reachable, and a walk in order sees a block after one that leads to it). Targets exist.
//! 2. Each instruction belongs to at most one block. All indices (variants, operands, places, call sites) are in range.
//! 3. No instruction inside a block is a branch, `ret` or `exit`.
//! 4. Destinations are registers or `_`. Registers exist; guards, branch conditions and `!p` are predicates.
//! 5. All named variables, functions and frame variables exist; a frame variable whose address is used as a value is marked.
//! 6. A memory operand has a state space; `KernelParam` bases belong to kernels, frame bases to local memory.
//! 7. A call has a call site and nothing else; the numbers of arguments and results match the signature, a frame argument is a
//!    `.param` variable of the caller that is large enough, a vector has all its elements.
//! 8. Parameters and return values have homes: as many as in the signature, registers for `.reg`, frame variables of their role for
//!    `.param` formals of device functions, offsets in the parameter block for kernels.

use crate::{
    Arg, Callee, FormalHome, FrameId, FrameRole, Func, FuncId, GlobalId, Inst, Ir, MemBase, MemSpace, Operand, Stage,
    Terminator, VReg, abi::Value,
};
use margay_check::{FormalSpace, FuncKind};
use margay_isa::{Effect, Opcode, Type};

/// A property that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IrError {
    /// In which function.
    pub func: String,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for IrError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`: {}", self.func, self.message)
    }
}

impl std::error::Error for IrError {}

/// Checks a whole program.
pub fn verify<S: Stage>(ir: &Ir<S>) -> Result<(), IrError> {
    for func in &ir.funcs {
        let checker = Checker { func, funcs: ir.funcs.len(), globals: ir.globals.len() };
        checker.function().map_err(|message| IrError { func: func.name.to_string(), message })?;
    }
    Ok(())
}

struct Checker<'a> {
    func: &'a Func,
    funcs: usize,
    globals: usize,
}

type Check = Result<(), String>;

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(message()) }
}

impl Checker<'_> {
    fn function(&self) -> Check {
        let f = self.func;
        ensure(f.regs.len() == f.reg_names.len(), || "registers and names differ in number".into())?;
        if f.blocks.is_empty() {
            return Ok(());
        }
        self.formals()?;
        let mut owner = vec![false; f.insts.len()];
        let mut reached = vec![false; f.blocks.len()];
        reached[0] = true;
        for (b, block) in f.blocks.iter().enumerate() {
            let at = |message: String| format!("block {b}: {message}");
            ensure(reached[b], || at("no predecessor before it".into()))?;
            ensure(block.insts.range().end <= f.insts.len(), || at("instructions out of range".into()))?;
            ensure((block.at as usize) < f.places.len(), || at("no place".into()))?;
            for i in block.insts.range() {
                ensure(!std::mem::replace(&mut owner[i], true), || at(format!("instruction {i} is shared")))?;
                self.inst(&f.insts[i]).map_err(|m| at(format!("instruction {i}: {m}")))?;
            }
            for target in self.term(&block.term).map_err(at)? {
                reached[target] = true;
            }
        }
        Ok(())
    }

    fn formals(&self) -> Check {
        let f = self.func;
        let lists = [(&f.params, &f.sig.params, false), (&f.rets, &f.sig.rets, true)];
        for (homes, values, returns) in lists {
            ensure(homes.len() == values.len(), || "formals without home".into())?;
            for (i, (home, value)) in homes.iter().zip(values).enumerate() {
                let role = if returns { FrameRole::Return(i as u32) } else { FrameRole::Formal(i as u32) };
                let fine = match home {
                    FormalHome::Regs(regs) => {
                        regs.iter().try_for_each(|r| self.reg(*r).map(|_| ()))?;
                        value.space == FormalSpace::Reg && regs.len() == usize::from(value.vector.max(1))
                    }
                    FormalHome::Frame(id) => {
                        self.frame(*id)?;
                        value.space == FormalSpace::Param
                            && f.frame[id.0 as usize].role == role
                            && f.kind == FuncKind::Device
                    }
                    FormalHome::Kernel(_) => f.kind == FuncKind::Kernel && !returns,
                };
                ensure(fine, || format!("formal {i} has the wrong kind of home"))?;
            }
        }
        Ok(())
    }

    fn reg(&self, reg: VReg) -> Result<Type, String> {
        self.func.regs.get(reg.0 as usize).copied().ok_or_else(|| format!("no register {}", reg.0))
    }

    fn pred(&self, reg: VReg) -> Check {
        let ty = self.reg(reg)?;
        ensure(ty == Type::Pred, || format!("register {} is {ty}, not a predicate", reg.0))
    }

    fn frame(&self, id: FrameId) -> Check {
        ensure((id.0 as usize) < self.func.frame.len(), || format!("no frame variable {}", id.0))
    }

    fn global(&self, id: GlobalId) -> Check {
        ensure((id.0 as usize) < self.globals, || format!("no variable {}", id.0))
    }

    fn function_id(&self, id: FuncId) -> Check {
        ensure((id.0 as usize) < self.funcs, || format!("no function {}", id.0))
    }

    fn term(&self, term: &Terminator) -> Result<Vec<usize>, String> {
        let targets: Vec<usize> = match term {
            Terminator::Jump(t) => vec![t.0 as usize],
            Terminator::Branch { pred, then, other, .. } => {
                self.pred(*pred)?;
                vec![then.0 as usize, other.0 as usize]
            }
            Terminator::Switch { index, targets, .. } => {
                self.operand(*index, None)?;
                targets.iter().map(|t| t.0 as usize).collect()
            }
            Terminator::Ret | Terminator::Exit => Vec::new(),
        };
        ensure(targets.iter().all(|t| *t < self.func.blocks.len()), || "a target that is not a block".into())?;
        Ok(targets)
    }

    fn inst(&self, inst: &Inst) -> Check {
        let f = self.func;
        let variant = f.variants.get(inst.variant as usize).ok_or("no such variant")?;
        ensure(!matches!(variant.op, Opcode::Bra | Opcode::Brx | Opcode::Ret | Opcode::Exit), || {
            format!("`{variant}` inside a block")
        })?;
        ensure((inst.at as usize) < f.places.len(), || "no place".into())?;
        ensure(inst.dsts.range().end <= f.operands.len() && inst.srcs.range().end <= f.operands.len(), || {
            "operands out of range".into()
        })?;
        if let Some((p, _)) = inst.guard {
            self.pred(p)?;
        }
        for dst in f.operands(inst.dsts) {
            match dst {
                Operand::Reg(r) => self.reg(*r).map(|_| ())?,
                Operand::Sink => {}
                other => return Err(format!("{other:?} is not a destination")),
            }
        }
        let srcs = f.operands(inst.srcs);
        for src in srcs {
            self.operand(*src, inst.space)?;
        }
        let calls = srcs.iter().any(|o| matches!(o, Operand::Call(_)));
        let is_call = variant.op.row().effect == Effect::Call;
        ensure(calls == is_call && (!calls || (srcs.len() == 1 && inst.dsts.is_empty())), || "a malformed call".into())
    }

    fn operand(&self, operand: Operand, space: Option<MemSpace>) -> Check {
        match operand {
            Operand::Reg(r) => self.reg(r).map(|_| ()),
            Operand::Not(r) => self.pred(r),
            Operand::Imm(_) | Operand::Special(..) | Operand::ParamAddr(_) | Operand::Sink => Ok(()),
            Operand::GlobalAddr(g, _) => self.global(g),
            Operand::FrameAddr(id, _) => {
                self.frame(id)?;
                ensure(self.func.frame[id.0 as usize].address_taken, || {
                    format!("the address of {} is taken silently", id.0)
                })
            }
            Operand::Func(id) => self.function_id(id),
            Operand::Mem(base, _) => self.memory(base, space),
            Operand::Call(index) => self.call(index),
        }
    }

    fn memory(&self, base: MemBase, space: Option<MemSpace>) -> Check {
        ensure(space.is_some(), || "a memory operand without space".into())?;
        match base {
            MemBase::Reg(r) => self.reg(r).map(|_| ()),
            MemBase::Global(g) => self.global(g),
            MemBase::Frame(id) => self.frame(id),
            MemBase::KernelParam => {
                ensure(self.func.kind == FuncKind::Kernel, || "a kernel parameter in a device function".into())
            }
            MemBase::Absolute => Ok(()),
        }
    }

    fn call(&self, index: u32) -> Check {
        let call = self.func.calls.get(index as usize).ok_or("no such call site")?;
        match &call.callee {
            Callee::Direct(id) => self.function_id(*id)?,
            Callee::Indirect(r, targets) => {
                self.reg(*r)?;
                targets.iter().flatten().try_for_each(|id| self.function_id(*id))?;
            }
        }
        let sides = [(&call.args, &call.sig.params, false), (&call.rets, &call.sig.rets, true)];
        for (args, values, returns) in sides {
            ensure(args.len() == values.len(), || "arguments and formals differ in number".into())?;
            for (arg, value) in args.iter().zip(values) {
                self.arg(arg, value, returns)?;
            }
        }
        Ok(())
    }

    fn arg(&self, arg: &Arg, value: &Value, returns: bool) -> Check {
        match arg {
            Arg::Omitted => ensure(returns || value.is_unsized, || "an argument is left out".into()),
            Arg::Frame(id) => {
                self.frame(*id)?;
                let var = &self.func.frame[id.0 as usize];
                ensure(var.role == FrameRole::Param, || format!("`{}` is not a `.param` variable", var.name))?;
                ensure(var.size >= value.size, || format!("`{}` is too small for its formal", var.name))
            }
            Arg::Values(values) => {
                let elements = usize::from(value.vector.max(1));
                ensure(values.len() == elements, || format!("{} values for {elements} elements", values.len()))?;
                for v in values {
                    self.operand(*v, None)?;
                    ensure(!returns || matches!(v, Operand::Reg(_) | Operand::Sink), || {
                        "a result in no register".into()
                    })?;
                }
                Ok(())
            }
        }
    }
}
