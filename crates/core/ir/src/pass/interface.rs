//! Which parameters and return values are the same for all calling lanes: the uniformity of arguments and results, over the call
//! graph.
//!
//! The analysis is optimistic, like [`Uniformity`]: every parameter and return value of a function that is only called directly starts as
//! uniform. A parameter becomes varying if some call site passes a value that may differ between its lanes, a return value if
//! lanes of one call may store different values or return at different points, until nothing changes. Functions whose address
//! is taken, and those visible to other modules, have varying parameters and return values.

use crate::{
    Arg, Callee, FormalHome, FrameId, FrameRole, Func, FuncId, Ir, Operand, Stage, Terminator,
    abi::Signature,
    pass::{
        Cfg, Uniformity, WarpShape, branch_around, liveness::inst_writes, propagate_constants, spins, split_after,
        split_before,
    },
};
use margay_check::FuncKind;
use margay_isa::{Effect, Mod, Opcode};
use std::{collections::HashSet, sync::Arc};

/// The uniformity of a function's interface, by formal and by return value.
#[derive(Clone)]
struct Interface {
    formals: Vec<bool>,
    returns: Vec<bool>,
    /// The signature with this information.
    sig: Arc<Signature>,
}

/// Marks the formals and returns of device functions that are the same in all lanes of every call
/// ([`crate::abi::Value::varying`]), at the functions and at the sites that call them by name.
pub fn mark_uniform_values<S: Stage>(ir: &mut Ir<S>) {
    let closed = closed_functions(ir);
    if !closed.contains(&true) {
        return;
    }
    let called_here = |c: &crate::CallSite| match c.callee {
        Callee::Direct(id) if closed[id.0 as usize] => Some(id.0 as usize),
        Callee::Direct(_) | Callee::Indirect(..) => None,
    };
    // By function: the functions that call it.
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); ir.funcs.len()];
    for (i, func) in ir.funcs.iter().enumerate() {
        func.calls.iter().filter_map(called_here).for_each(|callee| callers[callee].push(i));
    }
    callers.iter_mut().for_each(|list| list.dedup());
    let called = |i: usize| closed[i] && !callers[i].is_empty();
    let concerns = |i: usize| called(i) || ir.funcs[i].calls.iter().any(|c| called_here(c).is_some());
    let risky = ir.funcs.iter().any(|f| !f.blocks.is_empty() && waits(f));
    let mut bodies: Vec<Option<Body>> =
        (0..ir.funcs.len()).map(|i| concerns(i).then(|| Body::new(&ir.funcs[i], risky))).collect();
    let begin = |i: usize| {
        let sig = &ir.funcs[i].sig;
        let (formals, returns) = (vec![called(i); sig.params.len()], vec![called(i); sig.rets.len()]);
        let sig = if called(i) { Arc::new(marked(sig, &formals, &returns)) } else { sig.clone() };
        Interface { formals, returns, sig }
    };
    let mut known: Vec<Interface> = (0..ir.funcs.len()).map(begin).collect();
    let mut dirty: Vec<bool> = bodies.iter().map(Option::is_some).collect();
    while let Some(i) = dirty.iter().position(|d| *d) {
        dirty[i] = false;
        let (Some(body), original) = (&mut bodies[i], &ir.funcs[i]) else { continue };
        let found = body.analyze(original, i, &known);
        for (c, site) in original.calls.iter().enumerate() {
            let Some(callee) = called_here(site) else { continue };
            let passes = |formal: usize| passes_uniform(original, &found, c as u32, formal);
            let taken: Vec<usize> = (0..site.args.len()).filter(|f| known[callee].formals[*f] && !passes(*f)).collect();
            if !taken.is_empty() {
                taken.into_iter().for_each(|f| known[callee].formals[f] = false);
                known[callee].mark(&ir.funcs[callee]);
                dirty[callee] = true;
            }
        }
        let taken: Vec<usize> = (0..known[i].returns.len())
            .filter(|r| known[i].returns[*r] && !returns_uniform(&body.func, &body.cfg, &found, *r))
            .collect();
        if !taken.is_empty() {
            taken.into_iter().for_each(|r| known[i].returns[r] = false);
            known[i].mark(original);
            callers[i].iter().for_each(|caller| dirty[*caller] = true);
        }
    }
    for i in (0..bodies.len()).filter(|i| bodies[*i].is_some()) {
        let func = Arc::make_mut(&mut ir.funcs[i]);
        if known[i].formals.contains(&true) || known[i].returns.contains(&true) {
            func.sig = known[i].sig.clone();
        }
        for site in &mut func.calls {
            if let Some(callee) = called_here(site) {
                site.sig = known[callee].sig.clone();
            }
        }
    }
}

impl Interface {
    fn mark(&mut self, func: &Func) {
        self.sig = Arc::new(marked(&func.sig, &self.formals, &self.returns));
    }
}

/// The signature with what is known of its formals and returns.
fn marked(sig: &Signature, formals: &[bool], returns: &[bool]) -> Signature {
    let mut sig = sig.clone();
    for (value, uniform) in sig.params.iter_mut().zip(formals).chain(sig.rets.iter_mut().zip(returns)) {
        value.varying = !uniform || value.is_unsized;
    }
    sig
}

/// By function: whether it is a device function whose calls are all known.
fn closed_functions<S: Stage>(ir: &Ir<S>) -> Vec<bool> {
    let device = |f: &Arc<Func>| f.kind == FuncKind::Device && !f.blocks.is_empty();
    let mut closed: Vec<bool> = ir.funcs.iter().map(device).collect();
    let mut open = |f: FuncId| closed[f.0 as usize] = false;
    ir.func_names.values().for_each(|f| open(*f));
    ir.address_taken.iter().for_each(|f| open(*f));
    // All functions that a call through a register may enter take their parameters in the same places.
    let mut shapes = HashSet::new();
    for call in ir.funcs.iter().flat_map(|f| &f.calls) {
        match &call.callee {
            Callee::Indirect(_, Some(list)) => list.iter().for_each(|f| open(*f)),
            Callee::Indirect(_, None) => drop(shapes.insert(call.sig.shape())),
            Callee::Direct(_) => {}
        }
    }
    for (closed, func) in closed.iter_mut().zip(&ir.funcs).filter(|(closed, _)| **closed && !shapes.is_empty()) {
        *closed = !shapes.contains(&func.sig.shape());
    }
    closed
}

/// Whether lanes of a function may diverge in time: they may wait for others, or loop until others do something. Engines then
/// let lanes of one warp be in different iterations of a loop.
fn waits(func: &Func) -> bool {
    let waits = |inst: &crate::Inst| {
        let v = func.variant(inst);
        let strong = [Mod::Volatile, Mod::Acquire, Mod::Relaxed, Mod::Mmio].iter().any(|m| v.has(*m));
        may_wait(func, inst) || matches!(v.op, Opcode::Mbarrier | Opcode::Atom | Opcode::Red) || strong
    };
    func.insts.iter().any(waits) || spins(func, &Cfg::new(func, |_, _| false))
}

/// Whether lanes may wait at an instruction for other lanes or threads.
fn may_wait(func: &Func, inst: &crate::Inst) -> bool {
    let op = func.variant(inst).op;
    op.row().effect == Effect::Warp || matches!(op, Opcode::Bar | Opcode::Barrier)
}

/// A function that calls others or is called, prepared as by an engine.
struct Body {
    func: Func,
    cfg: Cfg,
    warp: WarpShape,
}

impl Body {
    fn new(original: &Func, risky: bool) -> Body {
        let mut func = original.clone();
        branch_around(&mut func, |f, i| f.variant(i).op.row().effect != Effect::Pure);
        if risky {
            // Engines end blocks where lanes may wait for others, and run what follows for some lanes before others get there.
            split_before(&mut func, may_wait);
            split_after(&mut func, |f, i| may_wait(f, i) || f.variant(i).op.row().effect == Effect::Call);
        }
        propagate_constants(&mut func);
        let cfg = Cfg::new(&func, |_, _| false);
        // A loop that reads memory may wait for what others write there.
        let loads = func.insts.iter().any(|i| func.variant(i).op == Opcode::Ld);
        let divergent = risky || loads && !cfg.loops.is_empty();
        Body { func, cfg, warp: WarpShape { divergent, interleaved: divergent, ..WarpShape::default() } }
    }

    /// Analyzes the function, whose number is `own`, given the known interfaces of it and its callees.
    fn analyze(&mut self, original: &Func, own: usize, known: &[Interface]) -> Uniformity {
        self.func.sig = known[own].sig.clone();
        for (site, original) in self.func.calls.iter_mut().zip(&original.calls) {
            site.sig = match original.callee {
                Callee::Direct(id) => known[id.0 as usize].sig.clone(),
                Callee::Indirect(..) => original.sig.clone(),
            };
        }
        Uniformity::new(&self.func, &self.cfg, self.warp)
    }
}

/// Whether lanes that call a function together get one value from it: they return together, and what all of them have stored is
/// uniform. `func` is the function as it was analyzed.
pub fn returns_uniform(func: &Func, cfg: &Cfg, known: &Uniformity, ret: usize) -> bool {
    let together = |b: &crate::BlockId| !known.divergent[b.0 as usize];
    let returns = |b: &crate::BlockId| func.blocks[b.0 as usize].term == Terminator::Ret;
    if !cfg.order.iter().filter(|b| returns(b)).all(together) {
        return false;
    }
    let registers: &[crate::VReg] = match &func.rets[ret] {
        FormalHome::Regs(regs) => regs,
        FormalHome::Frame(id) => return keeps_uniform(func, cfg, known, *id),
        FormalHome::Kernel(_) => return false,
    };
    registers.iter().all(|r| known.is_uniform(&Operand::Reg(*r)))
        && cfg.order.iter().filter(|b| !together(b)).all(|b| {
            let mut writes = false;
            for inst in func.insts(&func.blocks[b.0 as usize]) {
                inst_writes(func, inst, &mut |r| writes |= registers.contains(&r));
            }
            !writes
        })
}

/// Whether all values stored in a variable are uniform, and stored by all lanes of the function.
fn keeps_uniform(func: &Func, cfg: &Cfg, known: &Uniformity, id: FrameId) -> bool {
    if func.frame[id.0 as usize].address_taken {
        return false;
    }
    let names = |o: &Operand| o.frame_variable() == Some(id);
    let harmless = |b: &crate::BlockId, inst: &crate::Inst| {
        let operands = func.operands(inst.srcs);
        if !operands.iter().chain(func.operands(inst.dsts)).any(names) {
            return true;
        }
        let guard = inst.guard.is_none_or(|(p, _)| known.is_uniform(&Operand::Reg(p)));
        match (func.variant(inst).op, operands) {
            (Opcode::Ld, _) => true,
            (Opcode::St, [to, values @ ..]) => {
                guard
                    && !known.divergent[b.0 as usize]
                    && matches!(to, Operand::Mem(..))
                    && values.iter().all(|o| known.is_uniform(o))
            }
            _ => false,
        }
    };
    let takes = |ret: &Arg| ret.frame_variable() == Some(id);
    !func.calls.iter().flat_map(|c| &c.rets).any(takes)
        && cfg.order.iter().all(|b| func.insts(&func.blocks[b.0 as usize]).iter().all(|i| harmless(b, i)))
}

/// Whether a call passes one value for all its lanes, as far as is known of registers. `func` is the function as it was lowered: all
/// instructions of a block are executed by the same lanes, except those with a guard.
pub fn passes_uniform(func: &Func, known: &Uniformity, call: u32, formal: usize) -> bool {
    match func.calls[call as usize].args.get(formal) {
        Some(Arg::Values(values)) => values.iter().all(|o| known.is_uniform(o)),
        Some(Arg::Frame(id)) => holds_uniform(func, known, call, *id),
        Some(Arg::Omitted) | None => true,
    }
}

/// Whether a variable holds one value for all lanes of a call: all values stored in it are uniform, and stored in the block of the
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
            if let [Operand::Call(c)] = operands {
                let site = &func.calls[*c as usize];
                if site.rets.iter().any(|ret| ret.frame_variable() == Some(id)) {
                    return false;
                }
                if *c == call {
                    home = Some((b, here));
                }
                continue;
            }
            if !operands.iter().chain(func.operands(inst.dsts)).any(|o| o.frame_variable() == Some(id)) {
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
    // All stores are in the block of the call, before it.
    home.is_some_and(|(_, before)| before == stores)
}

/// Frame variables that hold a parameter which is the same in all lanes, and that are never written.
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
        let operands = func.operands(inst.srcs).iter().chain(func.operands(inst.dsts));
        operands.filter_map(Operand::frame_variable).for_each(|f| uniform[f.0 as usize] = false);
    }
    let rets = func.calls.iter().flat_map(|c| &c.rets);
    rets.filter_map(Arg::frame_variable).for_each(|f| uniform[f.0 as usize] = false);
    uniform
}

/// A variable that holds the result of one call and that nothing else writes.
#[derive(Clone)]
pub(super) struct ResultVariable {
    pub call: u32,
    pub ret: usize,
    /// The block of the call.
    pub block: u32,
    /// The blocks of all loads, and of calls that the variable is passed to.
    pub uses: Vec<u32>,
}

/// Frame variables that hold the result of one call, whose address is never taken.
pub(super) fn result_variables(func: &Func) -> Vec<Option<ResultVariable>> {
    let mut found: Vec<Option<ResultVariable>> = vec![None; func.frame.len()];
    if func.calls.iter().all(|c| c.sig.rets.iter().all(|r| r.varying)) {
        return found;
    }
    let mut other: Vec<bool> = func.frame.iter().map(|v| v.address_taken || v.role != FrameRole::Param).collect();
    let mut uses: Vec<Vec<u32>> = vec![Vec::new(); func.frame.len()];
    for (b, block) in func.blocks.iter().enumerate() {
        for inst in func.insts(block) {
            for o in func.operands(inst.srcs).iter().chain(func.operands(inst.dsts)) {
                if let Some(f) = o.frame_variable() {
                    match func.variant(inst).op {
                        Opcode::Ld => uses[f.0 as usize].push(b as u32),
                        _ => other[f.0 as usize] = true,
                    }
                }
                let Operand::Call(call) = *o else { continue };
                let site = &func.calls[call as usize];
                let args = site.args.iter().filter_map(Arg::frame_variable);
                args.for_each(|f| uses[f.0 as usize].push(b as u32));
                for (ret, arg) in site.rets.iter().enumerate() {
                    let Some(f) = arg.frame_variable() else { continue };
                    let home = ResultVariable { call, ret, block: b as u32, uses: Vec::new() };
                    let twice = found[f.0 as usize].replace(home).is_some();
                    other[f.0 as usize] |= twice || inst.guard.is_some();
                }
            }
        }
    }
    for ((slot, uses), other) in found.iter_mut().zip(uses).zip(other) {
        match slot {
            Some(variable) if !other => variable.uses = uses,
            _ => *slot = None,
        }
    }
    found
}
