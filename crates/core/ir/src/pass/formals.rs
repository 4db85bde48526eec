//! Which formals hold one value for all lanes that call: the uniformity of arguments, over the call graph.
//!
//! The analysis is optimistic, as [`Uniformity`] is: every formal of a function that is only called by name begins uniform, and
//! is taken back where some call site passes what may differ between the lanes that call there, until nothing changes.
//! Functions whose address is known, and those that other modules see, keep formals that vary.

use crate::{
    Arg, Callee, FrameId, FrameRole, Func, FuncId, Ir, MemBase, Operand, Stage,
    abi::Signature,
    pass::{Cfg, Uniformity, WarpShape, branch_around, propagate_constants},
};
use margay_check::FuncKind;
use margay_isa::{Effect, Mod, Opcode};
use std::sync::Arc;

/// Marks the formals of device functions that are the same in all lanes of every call ([`crate::abi::Value::varying`]).
pub fn mark_uniform_formals<S: Stage>(ir: &mut Ir<S>) {
    let closed = closed_functions(ir);
    if !closed.contains(&true) {
        return;
    }
    let calls = |f: &Func| f.calls.iter().any(|c| matches!(c.callee, Callee::Direct(id) if closed[id.0 as usize]));
    let risky = ir.funcs.iter().any(|f| !f.blocks.is_empty() && waits(f));
    let mut callers: Vec<Caller> = ir.funcs.iter().filter(|f| calls(f)).map(|f| Caller::new(f, risky)).collect();
    // By function and formal; a function that nobody calls keeps formals that vary.
    let mut uniform: Vec<Vec<bool>> = ir.funcs.iter().map(|f| vec![true; f.sig.params.len()]).collect();
    let mut called = vec![false; ir.funcs.len()];
    let ids: Vec<usize> = (0..ir.funcs.len()).filter(|i| calls(&ir.funcs[*i])).collect();
    let mut dirty = vec![true; ids.len()];
    while let Some(k) = dirty.iter().position(|d| *d) {
        dirty[k] = false;
        let (caller, original) = (&mut callers[k], &ir.funcs[ids[k]]);
        let found = caller.analyse(original, closed[ids[k]].then_some(&uniform[ids[k]]));
        for (c, site) in original.calls.iter().enumerate() {
            let Callee::Direct(callee) = site.callee else { continue };
            called[callee.0 as usize] = true;
            for formal in 0..site.args.len() {
                if uniform[callee.0 as usize][formal] && !passes_uniform(original, &found, c as u32, formal) {
                    uniform[callee.0 as usize][formal] = false;
                    if let Some(k) = ids.iter().position(|id| *id == callee.0 as usize) {
                        dirty[k] = true;
                    }
                }
            }
        }
    }
    for (i, func) in ir.funcs.iter_mut().enumerate() {
        if closed[i] && called[i] && uniform[i].contains(&true) {
            Arc::make_mut(func).sig = Arc::new(marked(&func.sig, &uniform[i]));
        }
    }
}

/// The signature with what is known of its formals.
fn marked(sig: &Signature, uniform: &[bool]) -> Signature {
    let mut sig = sig.clone();
    for (value, uniform) in sig.params.iter_mut().zip(uniform) {
        value.varying = !uniform || value.is_unsized;
    }
    sig
}

/// Device functions all of whose calls are in sight.
fn closed_functions<S: Stage>(ir: &Ir<S>) -> Vec<bool> {
    let device = |f: &Arc<Func>| f.kind == FuncKind::Device && !f.blocks.is_empty();
    let mut closed: Vec<bool> = ir.funcs.iter().map(device).collect();
    let mut open = |f: FuncId| closed[f.0 as usize] = false;
    ir.func_names.values().for_each(|f| open(*f));
    ir.address_taken.iter().for_each(|f| open(*f));
    for func in &ir.funcs {
        for call in &func.calls {
            if let Callee::Indirect(_, Some(list)) = &call.callee {
                list.iter().for_each(|f| open(*f));
            }
        }
    }
    closed
}

/// Whether lanes of a function may fall out of step: they may wait for others, or loop until others do something. Engines then
/// let lanes of one warp be at different rounds of a loop.
fn waits(func: &Func) -> bool {
    let waits = |inst: &crate::Inst| {
        let v = func.variant(inst);
        let strong = [Mod::Volatile, Mod::Acquire, Mod::Relaxed, Mod::Mmio].iter().any(|m| v.has(*m));
        v.op.row().effect == Effect::Warp
            || matches!(v.op, Opcode::Bar | Opcode::Barrier | Opcode::Mbarrier | Opcode::Atom | Opcode::Red)
            || strong
    };
    func.insts.iter().any(waits)
}

/// A function that calls others, as an engine prepares it.
struct Caller {
    func: Func,
    cfg: Cfg,
    warp: WarpShape,
}

impl Caller {
    fn new(original: &Func, risky: bool) -> Caller {
        let mut func = original.clone();
        branch_around(&mut func, |f, i| f.variant(i).op.row().effect != Effect::Pure);
        propagate_constants(&mut func);
        let cfg = Cfg::new(&func, |_, _| false);
        // A loop that reads memory may wait for what others write there.
        let loads = func.insts.iter().any(|i| func.variant(i).op == Opcode::Ld);
        let divergent = risky || loads && !cfg.loops.is_empty();
        Caller { func, cfg, warp: WarpShape { divergent, interleaved: divergent, ..WarpShape::default() } }
    }

    fn analyse(&mut self, original: &Func, formals: Option<&Vec<bool>>) -> Uniformity {
        self.func.sig = match formals {
            Some(uniform) => Arc::new(marked(&original.sig, uniform)),
            None => original.sig.clone(),
        };
        Uniformity::new(&self.func, &self.cfg, self.warp)
    }
}

/// Whether a call passes one value for all its lanes, by what is known of registers. `func` is the function as it was lowered:
/// the instructions of one of its blocks are executed by the same lanes, but for those that have a guard.
pub fn passes_uniform(func: &Func, known: &Uniformity, call: u32, formal: usize) -> bool {
    match func.calls[call as usize].args.get(formal) {
        Some(Arg::Values(values)) => values.iter().all(|o| known.is_uniform(o)),
        Some(Arg::Frame(id)) => holds_uniform(func, known, call, *id),
        Some(Arg::Omitted) | None => true,
    }
}

/// Whether a variable holds one value for all lanes of a call: all that is stored in it is uniform, and stored in the block of the
/// call by all lanes that execute it.
fn holds_uniform(func: &Func, known: &Uniformity, call: u32, id: FrameId) -> bool {
    let var = &func.frame[id.0 as usize];
    if var.address_taken || var.role != FrameRole::Param {
        return false;
    }
    let mut stores = 0;
    let mut home = None;
    for (b, block) in func.blocks.iter().enumerate() {
        let mut here = 0;
        for inst in func.insts(block) {
            let operands = func.operands(inst.srcs);
            let named = |o: &Operand| match o {
                Operand::Mem(MemBase::Frame(f), _) | Operand::FrameAddr(f, _) => *f == id,
                _ => false,
            };
            if let [Operand::Call(c)] = operands {
                let site = &func.calls[*c as usize];
                if site.rets.iter().any(|r| matches!(r, Arg::Frame(f) if *f == id)) {
                    return false;
                }
                if *c == call {
                    home = Some((b, here));
                }
                continue;
            }
            if !operands.iter().chain(func.operands(inst.dsts)).any(named) {
                continue;
            }
            match (func.variant(inst).op, operands) {
                (Opcode::Ld, _) => {}
                (Opcode::St, [_, values @ ..]) => {
                    if inst.guard.is_some() || !values.iter().all(|o| known.is_uniform(o)) {
                        return false;
                    }
                    (stores, here) = (stores + 1, here + 1);
                }
                _ => return false,
            }
        }
    }
    // All stores stand in the block of the call, before it.
    home.is_some_and(|(_, before)| before == stores)
}

/// Frame variables that hold a formal which is the same in all lanes, and that nobody writes.
pub(super) fn uniform_variables(func: &Func) -> Vec<bool> {
    let formal = |role: FrameRole| match role {
        FrameRole::Formal(f) => !func.sig.params[f as usize].varying,
        FrameRole::Local | FrameRole::Param | FrameRole::Return(_) => false,
    };
    let mut uniform: Vec<bool> = func.frame.iter().map(|v| formal(v.role) && !v.address_taken).collect();
    if !uniform.contains(&true) {
        return uniform;
    }
    for inst in func.insts.iter().filter(|i| func.variant(i).op != Opcode::Ld) {
        for o in func.operands(inst.srcs).iter().chain(func.operands(inst.dsts)) {
            if let Operand::Mem(MemBase::Frame(f), _) | Operand::FrameAddr(f, _) = o {
                uniform[f.0 as usize] = false;
            }
        }
    }
    for ret in func.calls.iter().flat_map(|c| &c.rets) {
        if let Arg::Frame(f) = ret {
            uniform[f.0 as usize] = false;
        }
    }
    uniform
}
