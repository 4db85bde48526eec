//! Tracks uninitialised registers, in observed launches.
//!
//! As in MemorySanitizer, undefinedness propagates: a result is undefined if an operand is, and only uses that matter
//! are reported: as a guard or branch condition, as an address, as a value that reaches other threads or memory other
//! than the thread's own. Compilers move and combine bits that nobody uses later, so a combination of bits counts as
//! defined if one operand is.

use super::{code::FuncCode, ctx::Ctx, state::lanes};
use crate::Concern;
use margay_ir::{
    FormalHome, Func, Inst, MemBase, MemSpace, Operand, VReg,
    pass::{
        Cfg,
        liveness::{Liveness, inst_reads, inst_writes, reads, term_reads},
    },
};
use margay_isa::{Effect, Opcode};

/// What starts at an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Site {
    /// An instruction, by its index in the function.
    Inst(u32),
    /// The terminator of a block.
    Term(u32),
    /// Nothing: the op continues an instruction.
    None,
}

/// Whether some path through a function reads a register before any write; only then it is checked.
fn may_read_undefined(func: &Func) -> bool {
    let live = Liveness::new(func, &Cfg::new(func, |_, _| false)).live_in.into_iter().next();
    let formals = func.params.iter().filter_map(|home| if let FormalHome::Regs(r) = home { Some(r) } else { None });
    let formals: Vec<u32> = formals.flatten().map(|r| r.0).collect();
    live.is_some_and(|live| live.iter().any(|r| !formals.contains(&r)))
}

/// What starts at each op of a function; empty if no register can be undefined.
pub fn sites(func: &FuncCode) -> Vec<Site> {
    if !may_read_undefined(&func.func) {
        return Vec::new();
    }
    let mut sites = vec![Site::None; func.ops.len()];
    for (block, first) in func.by_term.iter().enumerate() {
        if let Some(site) = sites.get_mut(*first as usize) {
            *site = Site::Term(block as u32);
        }
    }
    // Instructions last: an op is not a terminator's if the terminator has none.
    for (i, (first, end)) in func.by_inst.iter().enumerate().filter(|(_, (first, end))| first < end) {
        debug_assert!(*end as usize <= sites.len());
        sites[*first as usize] = Site::Inst(i as u32);
    }
    sites
}

/// Whether one defined operand suffices for a defined result.
fn combines(op: Opcode) -> bool {
    matches!(
        op,
        Opcode::And
            | Opcode::Or
            | Opcode::Lop3
            | Opcode::Prmt
            | Opcode::Bfi
            | Opcode::Selp
            | Opcode::Slct
            | Opcode::Mov
    )
}

/// Whether an access makes values visible beyond the CTA. Shared memory does not count: tiles have rows that are never
/// used.
fn is_observable(inst: &Inst, op: Opcode, base: Option<MemBase>) -> bool {
    let shared = matches!(inst.space, Some(MemSpace::Shared | MemSpace::SharedCluster)) && op == Opcode::St;
    inst.space != Some(MemSpace::Local) && !shared && !matches!(base, Some(MemBase::Frame(_)))
}

/// Checks the op that a group is about to execute.
#[cold]
pub fn check_uses(ctx: &mut Ctx<'_>) {
    let code = ctx.func;
    let func: &Func = &code.func;
    let sites = code.sites.get_or_init(|| sites(code));
    if sites.is_empty() {
        return;
    }
    let site = sites.get(ctx.pc as usize).copied().unwrap_or(Site::None);
    let mut written = std::mem::take(&mut ctx.warp.frames[ctx.frame as usize].written);
    if written.len() != func.regs.len() {
        written = vec![0; func.regs.len()];
        let formals = func.params.iter().filter_map(|home| if let FormalHome::Regs(r) = home { Some(r) } else { None });
        formals.flatten().for_each(|r| written[r.0 as usize] = u32::MAX);
    }
    match site {
        Site::Inst(i) => instruction(ctx, &func.insts[i as usize], &mut written),
        Site::Term(block) => {
            let term = &func.blocks[block as usize].term;
            let mut sources = Vec::new();
            term_reads(func, term, &mut |r| sources.push(r));
            sources.iter().for_each(|r| report_once(ctx, *r, ctx.mask, &mut written, "branches on"));
        }
        Site::None => {}
    }
    ctx.warp.frames[ctx.frame as usize].written = written;
}

fn instruction(ctx: &Ctx<'_>, inst: &Inst, written: &mut [u32]) {
    let func: &Func = &ctx.func.func;
    let variant = func.variant(inst);
    let effect = variant.op.row().effect;
    let mut active = ctx.mask;
    if let Some((p, negated)) = inst.guard {
        report_once(ctx, p, active, written, "is guarded by");
        let row = ctx.func.row_of[p.0 as usize];
        let truth = if row == u32::MAX { 0 } else { ctx.regs[row as usize].0[0] };
        active &= if negated { !truth } else { truth };
    }
    let mut undefined = 0;
    let mut defined = 0;
    match effect {
        Effect::Pure | Effect::Machine => inst_reads(func, inst, &mut |r| {
            undefined |= !written[r.0 as usize];
            defined |= written[r.0 as usize];
        }),
        // Arguments may be structures with padding; accumulators of `wgmma` may be disabled.
        Effect::Call => {}
        _ if variant.op == Opcode::Wgmma => {}
        // A lane receives the definedness of the lane that it reads.
        Effect::Warp if variant.op == Opcode::Shfl => undefined = shuffled(ctx, inst, written),
        Effect::Memory | Effect::Control | Effect::Warp => {
            let operands = func.operands(inst.srcs);
            let base = operands.iter().find_map(|o| if let Operand::Mem(base, _) = o { Some(*base) } else { None });
            let values = is_observable(inst, variant.op, base);
            for operand in operands {
                let address = matches!(operand, Operand::Mem(..));
                let verb = if address { "uses as an address" } else { "makes known" };
                if address || values {
                    reads(operand, &mut |r| report_once(ctx, r, active, written, verb));
                }
            }
        }
    }
    if combines(variant.op) {
        undefined &= !defined;
    }
    inst_writes(func, inst, &mut |r| {
        let w = &mut written[r.0 as usize];
        *w = *w & !active | active & !undefined;
    });
}

/// Lanes for which a shuffle yields an undefined value.
fn shuffled(ctx: &Ctx<'_>, inst: &Inst, written: &[u32]) -> u32 {
    let func: &Func = &ctx.func.func;
    let Some(Operand::Reg(value)) = func.operands(inst.srcs).first() else { return 0 };
    let Some(op) = ctx.func.ops.get(ctx.pc as usize) else { return 0 };
    let missing = !written[value.0 as usize];
    if missing == 0 {
        return 0;
    }
    let sources = super::step::warp::sources(ctx, op);
    // Other groups' values are not known yet.
    let missing = missing & ctx.mask;
    lanes(ctx.mask).filter(|lane| missing >> sources[*lane] & 1 == 1).fold(0, |m, lane| m | 1 << lane)
}

/// Reports lanes in which a register is undefined, once.
fn report_once(ctx: &Ctx<'_>, r: VReg, active: u32, written: &mut [u32], verb: &str) {
    let Some(w) = written.get_mut(r.0 as usize) else { return };
    let Some(lane) = lanes(active & !*w).next() else { return };
    *w |= active;
    let func = &ctx.func.func;
    let name = func.reg_names.get(r.0 as usize).map_or("a register", |n| n);
    let what = format!("{verb} `{name}`, whose value comes from no write");
    super::step::watch::undefined(ctx, lane, Concern::Uninitialised, what);
}
