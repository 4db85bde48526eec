//! The call graph: what a function can reach, and whether it can reach itself.

use crate::{
    Arg, Callee, Func, FuncId, GlobalId, GlobalInit, Inst, Ir, MemBase, MemSpace, Operand, Pointee, Stage, Terminator,
};
use margay_isa::{Effect, Mod, Opcode};
use std::collections::HashSet;

/// What an operand names.
pub fn pointee(o: &Operand) -> Option<Pointee> {
    match o {
        Operand::GlobalAddr(g, _) | Operand::Mem(MemBase::Global(g), _) => Some(Pointee::Global(*g)),
        Operand::Func(f) => Some(Pointee::Func(*f)),
        _ => None,
    }
}

/// What a kernel can reach: by calls, through addresses that its code or its variables hold, and, where it calls through a
/// register without a list of targets, all functions whose address is taken in the program ([`Ir::address_taken`]).
#[derive(Debug)]
pub struct Reached {
    /// The kernel first. Functions without a body are among them.
    pub funcs: Vec<FuncId>,
    /// Variables.
    pub globals: HashSet<GlobalId>,
}

/// What a kernel can reach.
pub fn reached<S: Stage>(ir: &Ir<S>, kernel: FuncId) -> Reached {
    let (mut seen, mut globals) = (HashSet::from([kernel]), HashSet::new());
    let (mut funcs, mut work) = (Vec::new(), vec![Pointee::Func(kernel)]);
    let mut named = Vec::new();
    while let Some(next) = work.pop() {
        match next {
            Pointee::Func(f) => {
                funcs.push(f);
                named_by(ir, ir.func(f), &mut named);
            }
            Pointee::Global(g) => named.extend(ir.global(g).init.iter().filter_map(|init| match init {
                GlobalInit::Address { of, .. } => Some(*of),
                GlobalInit::Bytes(..) | GlobalInit::Property(..) => None,
            })),
        }
        work.extend(named.drain(..).filter(|p| match p {
            Pointee::Func(f) => seen.insert(*f),
            Pointee::Global(g) => globals.insert(*g),
        }));
    }
    Reached { funcs, globals }
}

fn named_by<S: Stage>(ir: &Ir<S>, func: &Func, named: &mut Vec<Pointee>) {
    let in_calls = func.calls.iter().flat_map(|call| call.args.iter().chain(&call.rets)).flat_map(|arg| match arg {
        Arg::Values(values) => values.as_slice(),
        Arg::Frame(_) | Arg::Omitted => &[],
    });
    named.extend(func.operands.iter().chain(in_calls).filter_map(pointee));
    for call in &func.calls {
        match &call.callee {
            Callee::Direct(f) => named.push(Pointee::Func(*f)),
            Callee::Indirect(_, targets) => {
                let targets = targets.as_deref().unwrap_or(&ir.address_taken);
                named.extend(targets.iter().map(|f| Pointee::Func(*f)));
            }
        }
    }
}

/// Functions that a kernel can call, itself first; see [`reached`].
pub fn reachable<S: Stage>(ir: &Ir<S>, kernel: FuncId) -> Vec<FuncId> {
    reached(ir, kernel).funcs
}

/// Whether calls of a function concern no other thread, so that observers need not see its accesses: the function, and all functions that it
/// calls directly, access only local memory, constants and memory that the kernel never writes (`ld.global.nc`), and have no other effects.
pub fn is_quiet<S: Stage>(ir: &Ir<S>, func: FuncId) -> bool {
    let (mut seen, mut work) = (HashSet::from([func]), vec![func]);
    while let Some(next) = work.pop() {
        let func = ir.func(next);
        let exits = func.blocks.iter().any(|b| b.term == Terminator::Exit);
        if func.blocks.is_empty() || exits || !func.insts.iter().all(|inst| is_quiet_instruction(func, inst)) {
            return false;
        }
        for call in &func.calls {
            let Callee::Direct(callee) = call.callee else { return false };
            if seen.insert(callee) {
                work.push(callee);
            }
        }
    }
    true
}

fn is_quiet_instruction(func: &Func, inst: &Inst) -> bool {
    let variant = func.variant(inst);
    match (variant.op.row().effect, variant.op) {
        (Effect::Pure | Effect::Call, _) => true,
        (Effect::Control, op) => !matches!(op, Opcode::Nanosleep | Opcode::Pmevent),
        // A generic address of local memory may be given to other threads.
        (Effect::Machine, op) => op != Opcode::Cvta || !variant.has(Mod::Local) || variant.has(Mod::To),
        (Effect::Memory, Opcode::Ld) => match inst.space {
            Some(MemSpace::Local | MemSpace::Const | MemSpace::KernelParam) => true,
            Some(MemSpace::Global) => variant.has(Mod::Nc),
            _ => false,
        },
        (Effect::Memory, Opcode::St) => inst.space == Some(MemSpace::Local),
        _ => false,
    }
}

/// A function that reaches itself by direct calls.
pub fn recursive<S: Stage>(ir: &Ir<S>, among: &[FuncId]) -> Option<FuncId> {
    // What remains after repeatedly removing functions without calls.
    let n = ir.funcs.len();
    let (mut callers, mut open) = (vec![Vec::new(); n], vec![0usize; n]);
    let direct = |f: FuncId| {
        ir.func(f).calls.iter().filter_map(|c| match &c.callee {
            Callee::Direct(f) => Some(*f),
            Callee::Indirect(..) => None,
        })
    };
    for f in among {
        for callee in direct(*f) {
            callers[callee.0 as usize].push(*f);
            open[f.0 as usize] += 1;
        }
    }
    let mut done: Vec<FuncId> = (0..n as u32).map(FuncId).filter(|f| open[f.0 as usize] == 0).collect();
    let mut next = 0;
    while let Some(f) = done.get(next).copied() {
        next += 1;
        for caller in &callers[f.0 as usize] {
            open[caller.0 as usize] -= 1;
            if open[caller.0 as usize] == 0 {
                done.push(*caller);
            }
        }
    }
    // Those left either lie on a cycle or call into one; walking along the open ones ends on a cycle.
    let mut f = among.iter().copied().find(|f| open[f.0 as usize] > 0)?;
    for _ in 0..n {
        f = direct(f).find(|c| open[c.0 as usize] > 0)?;
    }
    Some(f)
}
