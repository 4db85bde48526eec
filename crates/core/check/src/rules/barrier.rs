//! A lint that ptxas does not have: barriers that only some threads reach (manual, section 9.7.13.1: all threads of the CTA
//! that participate must arrive).
//!
//! Registers that differ between the threads of a CTA are found by following `%tid` and similar registers through the body, without
//! regard to order. Two patterns are certain enough to report: a barrier with a guard that differs, and one between a
//! branch with such a guard and the label directly after the barrier.

use crate::FxHashMap;
use crate::body::{Body, Inst, Operand, RegId, Walker};
use margay_isa::{Effect, Mod, Opcode, Role, Special};
use margay_syntax::diag::{Code, Diagnostic};

/// Whether an instruction waits for the other threads of the CTA.
fn waits(body: &Body, inst: &Inst) -> bool {
    let variant = &body.variants[inst.variant.0 as usize];
    matches!(variant.op, Opcode::Bar | Opcode::Barrier)
        && ![Mod::Arrive, Mod::Warp, Mod::Cluster].iter().any(|m| variant.has(*m))
}

/// After the last statement of a body.
pub(crate) fn finish(w: &mut Walker<'_, '_>) {
    let body = &w.body;
    // Places first: registers are followed only for a function that has one.
    let mut found: Vec<(usize, Option<usize>)> = Vec::new();
    for i in (0..body.insts.len()).filter(|i| waits(body, &body.insts[*i])) {
        if body.insts[i].guard.is_some() {
            found.push((i, None));
        } else if let Some(branch) = around(body, i) {
            found.push((i, Some(branch)));
        }
    }
    if found.is_empty() {
        return;
    }
    let varying = varying(body);
    found.retain(|(i, branch)| body.insts[branch.unwrap_or(*i)].guard.is_some_and(|g| varying.contains_key(&g.reg)));
    for (i, branch) in found {
        let (inst, tree) = (w.body.insts[i], w.tree);
        let instr = &tree.instrs[inst.node as usize];
        let name = tree.str(instr.mnemonic);
        let mut d =
            Diagnostic::new(Code::DivergentBarrier, instr.mnemonic, format!("some threads may skip this `{name}`"));
        let guarded = branch.map_or(&inst, |b: usize| &w.body.insts[b]);
        let guard = &tree.instrs[guarded.node as usize];
        if let Some(g) = guard.guard {
            d = d.label(g.name, "differs between the threads of a CTA");
        }
        w.report.push(
            d.note("a barrier that some threads skip deadlocks or counts the wrong threads; ptxas does not warn")
                .help("let all threads reach it, or use a separate barrier number with a thread count"),
        );
    }
}

/// How far a barrier is looked around.
const NEAR: usize = 256;

/// The guarded branch that jumps over a barrier: nothing but straight code between the branch, the barrier and the label.
fn around(body: &Body, barrier: usize) -> Option<usize> {
    let plain = |i: usize| {
        let effect = body.variants[body.insts[i].variant.0 as usize].op.row().effect;
        !matches!(effect, Effect::Control)
    };
    // Labels are in text order.
    let labeled = |i: usize| body.labels.binary_search_by_key(&(i as u32), |l| l.0).is_ok();
    let mut branch = barrier;
    loop {
        if labeled(branch) || barrier - branch > NEAR {
            return None;
        }
        branch = branch.checked_sub(1)?;
        if !plain(branch) {
            break;
        }
    }
    let inst = &body.insts[branch];
    inst.guard?;
    let [Operand::Label(target)] = *body.operands(inst.operands) else { return None };
    let target = body.labels.get(target.0 as usize)?.0 as usize;
    (target > barrier && target - barrier < NEAR && (barrier + 1..target).all(|i| plain(i) && !labeled(i)))
        .then_some(branch)
}

/// Registers whose values differ between the threads of a CTA.
fn varying(body: &Body) -> FxHashMap<RegId, ()> {
    let mut varying: FxHashMap<RegId, ()> = FxHashMap::default();
    // Each pass continues where the one before stopped; loops carry values backwards a few times at most.
    for _ in 0..8 {
        let before = varying.len();
        for inst in &body.insts {
            let variant = &body.variants[inst.variant.0 as usize];
            if variant.op.row().effect == Effect::Call {
                continue;
            }
            let operands = body.operands(inst.operands);
            let dsts = variant.operands().take_while(|o| o.role == Role::Dst).count().min(operands.len());
            let (dsts, srcs) = operands.split_at(dsts);
            if dsts.is_empty() {
                continue;
            }
            let guard = inst.guard.is_some_and(|g| varying.contains_key(&g.reg));
            if guard || srcs.iter().any(|o| reads(body, *o, &varying)) {
                dsts.iter().for_each(|o| write(body, *o, &mut varying));
            }
        }
        if varying.len() == before {
            break;
        }
    }
    varying
}

fn reads(body: &Body, operand: Operand, varying: &FxHashMap<RegId, ()>) -> bool {
    use crate::body::Base;
    match operand {
        Operand::Reg(r) | Operand::Element(r, _) | Operand::Not(r) | Operand::Part { reg: r, .. } => {
            varying.contains_key(&r)
        }
        Operand::Address(Base::Reg(r), _) => varying.contains_key(&r),
        Operand::Special(s, _) => matches!(
            s,
            Special::Tid
                | Special::LaneId
                | Special::WarpId
                | Special::LanemaskEq
                | Special::LanemaskGe
                | Special::LanemaskGt
                | Special::LanemaskLe
                | Special::LanemaskLt
        ),
        Operand::Group(list) | Operand::Vector(list) | Operand::List(list) => {
            list.range().any(|i| reads(body, body.operands[i], varying))
        }
        _ => false,
    }
}

fn write(body: &Body, operand: Operand, varying: &mut FxHashMap<RegId, ()>) {
    match operand {
        Operand::Reg(r) | Operand::Element(r, _) | Operand::Part { reg: r, .. } => drop(varying.insert(r, ())),
        Operand::Vector(list) => list.range().for_each(|i| write(body, body.operands[i], varying)),
        Operand::Pair(p) => {
            write(body, body.operands[p as usize], varying);
            write(body, body.operands[p as usize + 1], varying);
        }
        _ => {}
    }
}
