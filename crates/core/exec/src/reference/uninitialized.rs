//! Tracks uninitialized registers, in observed launches.
//!
//! As in MemorySanitizer, undefinedness propagates: a result is undefined if an operand is, and only uses that matter
//! are reported: as a guard or branch condition, as an address, as a value that reaches other threads or memory other
//! than the thread's own. Compilers move and combine bits that are never used, so a combination of bits counts as
//! defined if one operand is.
//!
//! Loads of uninitialized memory yield undefined values too ([`note_loaded`]): algorithms read past the end of their
//! tiles and drop what they got, and `-G` keeps variables in local memory. From the first such load on, a frame is
//! tracked. Copies of structures copy their padding, word by word ([`partial`]).

use super::{code::FuncCode, ctx::Ctx, in_flight, state::lanes, step::address::offsets};
use crate::{LANES, Undefined, mem::Block};
use margay_ir::{
    FormalHome, Func, Inst, MemBase, MemSpace, Operand, VReg,
    pass::{
        Adjacent, Cfg, adjacent,
        liveness::{inst_reads, inst_writes, read_early, reads, term_reads},
    },
};
use margay_isa::{Effect, Mod, Opcode, Type, Variant};
use std::collections::HashMap;

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
    read_early(func, &Cfg::new(func, |_, _| false)).iter().next().is_some()
}

/// Where an undefined value was loaded: the op's index plus one; 0 if it was not. With [`OWN`] for local memory.
pub type Origin = u32;
/// Set in the [`Origin`] of values that were loaded from the thread's own memory.
const OWN: Origin = 1 << 31;

/// Set in the [`Origin`] of values that a shuffle has read from an inactive lane, whose number follows the op's.
const STRAY: Origin = 1 << 30;
/// Bits of an op's index in the [`Origin`] of such values.
const STRAY_BITS: u32 = 25;

/// Set in the [`Origin`] of values that were computed from what was loaded, and not only copied; not in those of shuffles.
const COMPUTED: Origin = 1 << 29;

/// The op that an undefined value comes from.
fn source_of(origin: Origin) -> Option<u32> {
    let op = if origin & STRAY != 0 { origin & ((1 << STRAY_BITS) - 1) } else { origin & !(OWN | COMPUTED) };
    op.checked_sub(1)
}

/// What starts at each op of a function.
pub struct Sites {
    list: Vec<Site>,
    /// Whether some path reads a register before any write.
    partial: bool,
    /// Whether loaded values are tracked. Not in functions with matrix instructions: unused rows of their operands
    /// may be undefined, and a whole row of lanes would be so after them.
    follows: bool,
    /// Whether it has products of warpgroups.
    products: bool,
    /// Runs of stores.
    runs: HashMap<u32, Adjacent>,
}

/// Whether the uses of uninitialized values that the group loads are reported.
pub fn follows(ctx: &Ctx<'_>) -> bool {
    let code = ctx.func;
    code.sites.get_or_init(|| sites(code)).follows
}

fn sites(func: &FuncCode) -> Sites {
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
    let f = &func.func;
    let matrix = |i: &Inst| matches!(f.variant(i).op, Opcode::Mma | Opcode::Wmma | Opcode::Wgmma);
    let follows = !f.insts.iter().any(matrix);
    let products = f.insts.iter().any(|i| f.variant(i).op == Opcode::Wgmma);
    Sites { list: sites, products, partial: may_read_undefined(f), follows, runs: adjacent(f) }
}

/// Whether one defined operand suffices for a defined result.
fn combines(op: Opcode) -> bool {
    matches!(op, Opcode::And | Opcode::Or | Opcode::Lop3 | Opcode::Prmt | Opcode::Bfi | Opcode::Slct | Opcode::Mov)
}

/// Whether results are operands or bits of them: what compilers copy structures with.
fn copies(op: Opcode) -> bool {
    matches!(
        op,
        Opcode::Cvt | Opcode::Selp | Opcode::Shl | Opcode::Shr | Opcode::Shf | Opcode::Bfe | Opcode::Xor | Opcode::Not
    ) || combines(op)
}

/// Lanes whose access makes values visible beyond the CTA, and lanes that access shared memory, which does not count: tiles have rows
/// that are never used. Arguments and results of calls are like shared memory.
fn reach(ctx: &Ctx<'_>, inst: &Inst, variant: &Variant, base: Option<MemBase>) -> (u32, u32) {
    let op = variant.op;
    match inst.space {
        _ if op == Opcode::St && (variant.has(Mod::Param) || variant.has(Mod::ParamFunc)) => (0, u32::MAX),
        Some(MemSpace::Local) => (0, 0),
        _ if matches!(base, Some(MemBase::Frame(_))) => (0, 0),
        Some(MemSpace::Shared | MemSpace::SharedCluster) if op == Opcode::St => (0, u32::MAX),
        Some(MemSpace::Generic) if op == Opcode::St => {
            let found = ctx.func.ops.get(ctx.pc as usize).and_then(|op| ctx.func.mems.get(op.x as usize));
            let Some(m) = found else { return (u32::MAX, 0) };
            let mut at = [0; LANES];
            offsets(ctx, &m.address, &mut at);
            let mask = |b: &Block| {
                let within = |l: &usize| at[*l].wrapping_sub(b.base()) < b.len() as u64;
                lanes(ctx.mask).filter(within).fold(0, |mask, lane| mask | 1 << lane)
            };
            let own = ctx.warp.local.as_ref().map_or(0, |l| mask(&l.memory.block));
            let shared = mask(&ctx.cta.shared.block);
            (!(own | shared), shared)
        }
        _ => (u32::MAX, 0),
    }
}

/// Lanes in which a store, or one that it adjoins, stores some defined value: copies of structures copy their padding.
fn partial(func: &Func, run: Option<&Adjacent>, inst: &Inst, written: &[u32]) -> u32 {
    let values = |inst: &Inst| -> (usize, u32) {
        let values = func.operands(inst.srcs).iter().filter(|o| !matches!(o, Operand::Mem(..)));
        let defined = |o: &Operand| if let Operand::Reg(r) = o { written[r.0 as usize] } else { u32::MAX };
        values.fold((0, 0), |(count, any), o| (count + 1, any | defined(o)))
    };
    match (run, values(inst)) {
        (Some(run), _) => run.members.iter().fold(0, |any, i| any | values(&func.insts[*i as usize]).1),
        (None, (2.., any)) => any,
        _ => 0,
    }
}

/// The lanes in which the current instruction stores undefined values, by element, and the ops that have loaded these. In shared memory,
/// only loaded values count: tiles have rows that are never written, whose registers hold nothing.
pub fn stored(ctx: &Ctx<'_>) -> (Undefined, [Option<u32>; 8]) {
    let (mut all, mut loads) = (Undefined::default(), [None; 8]);
    let frame = &ctx.warp.frames[ctx.frame as usize];
    if frame.written.is_empty() {
        return (all, loads);
    }
    let Some(inst) = inst_at(ctx) else { return (all, loads) };
    let operands = ctx.func.func.operands(inst.srcs);
    let base = operands.iter().find_map(|o| if let Operand::Mem(base, _) = o { Some(*base) } else { None });
    let variant = ctx.func.func.variant(inst);
    let passes = variant.has(Mod::Param) || variant.has(Mod::ParamFunc);
    let shared = if passes { 0 } else { reach(ctx, inst, variant, base).1 };
    let values = operands.iter().filter(|o| !matches!(o, Operand::Mem(..)));
    for ((lanes, load), value) in all.iter_mut().zip(&mut loads).zip(values) {
        let Operand::Reg(r) = value else { continue };
        let origin = frame.origins.get(r.0 as usize).filter(|o| *o & OWN == 0).and_then(|o| source_of(*o));
        *lanes = !frame.written[r.0 as usize] & ctx.active & if origin.is_some() { u32::MAX } else { !shared };
        *load = origin.filter(|_| *lanes != 0);
    }
    (all, loads)
}

/// Checks the op that a group is about to execute.
#[cold]
pub fn check_uses(ctx: &mut Ctx<'_>) {
    let code = ctx.func;
    let func: &Func = &code.func;
    let sites = code.sites.get_or_init(|| sites(code));
    if sites.products && !matches!(sites.list.get(ctx.pc as usize), Some(Site::None) | None) {
        in_flight::check(ctx);
    }
    if !sites.partial && ctx.warp.frames[ctx.frame as usize].written.is_empty() {
        return;
    }
    let site = sites.list.get(ctx.pc as usize).copied().unwrap_or(Site::None);
    let mut written = std::mem::take(&mut ctx.warp.frames[ctx.frame as usize].written);
    if written.len() != func.regs.len() {
        written = vec![0; func.regs.len()];
        let formals = func.params.iter().filter_map(|home| if let FormalHome::Regs(r) = home { Some(r) } else { None });
        formals.flatten().for_each(|r| written[r.0 as usize] = u32::MAX);
    }
    let mut origins = std::mem::take(&mut ctx.warp.frames[ctx.frame as usize].origins);
    match site {
        Site::Inst(i) => instruction(ctx, i, &mut written, &mut origins),
        Site::Term(block) => {
            let term = &func.blocks[block as usize].term;
            let mut sources = Vec::new();
            term_reads(func, term, &mut |r| sources.push(r));
            sources.iter().for_each(|r| report_once(ctx, *r, ctx.mask, (&mut written, &origins), "branches on"));
        }
        Site::None => {}
    }
    let frame = &mut ctx.warp.frames[ctx.frame as usize];
    (frame.written, frame.origins) = (written, origins);
}

/// The instruction that an op belongs to.
pub fn inst_at<'c>(ctx: &Ctx<'c>) -> Option<&'c Inst> {
    let code: &'c FuncCode = ctx.func;
    let sites = &code.sites.get_or_init(|| sites(code)).list;
    let before = sites.get(..=ctx.pc as usize)?;
    match before.iter().rev().find(|s| **s != Site::None)? {
        Site::Inst(i) => code.func.insts.get(*i as usize),
        _ => None,
    }
}

/// Records that the load that was just executed has yielded undefined values.
#[cold]
pub fn note_loaded(ctx: &mut Ctx<'_>) {
    let (undefined, own) = ctx.undefined_lanes.take();
    let Some(inst) = inst_at(ctx) else { return };
    let func: &Func = &ctx.func.func;
    let frame = &mut ctx.warp.frames[ctx.frame as usize];
    if frame.written.is_empty() {
        frame.written = vec![u32::MAX; func.regs.len()];
    }
    frame.origins.resize(func.regs.len(), 0);
    for (dst, lanes) in func.operands(inst.dsts).iter().zip(undefined) {
        if let Operand::Reg(r) = dst
            && lanes != 0
        {
            frame.written[r.0 as usize] &= !lanes;
            frame.origins[r.0 as usize] = (ctx.pc + 1) | if own { OWN } else { 0 };
        }
    }
}

/// Records that the shuffle that is about to be executed reads `from`, which is inactive, in these lanes: that matters if the value is
/// used. False if uses are not followed here.
#[cold]
pub fn note_stray(ctx: &mut Ctx<'_>, lanes: u32, from: u32) -> bool {
    let Some(inst) = inst_at(ctx) else { return false };
    let func: &Func = &ctx.func.func;
    let Some(Operand::Reg(r)) = func.operands(inst.dsts).first() else { return false };
    if !follows(ctx) || ctx.pc + 1 >= 1 << STRAY_BITS {
        return false;
    }
    let frame = &mut ctx.warp.frames[ctx.frame as usize];
    if frame.written.is_empty() {
        frame.written = vec![u32::MAX; func.regs.len()];
    }
    frame.origins.resize(func.regs.len(), 0);
    // Other lanes may receive what was loaded from memory that nobody has written: that comes first.
    let received = !frame.written[r.0 as usize] & ctx.mask & !lanes != 0 && frame.origins[r.0 as usize] != 0;
    frame.written[r.0 as usize] &= !lanes;
    if !received {
        frame.origins[r.0 as usize] = STRAY | from << STRAY_BITS | (ctx.pc + 1);
    }
    true
}

/// Reports the uses of undefined registers by an instruction, and notes in which lanes its results are defined.
fn instruction(ctx: &Ctx<'_>, number: u32, written: &mut [u32], origins: &mut [Origin]) {
    let func: &Func = &ctx.func.func;
    let inst = &func.insts[number as usize];
    let variant = func.variant(inst);
    let effect = variant.op.row().effect;
    let mut active = ctx.mask;
    if let Some((p, negated)) = inst.guard {
        report_once(ctx, p, active, (written, origins), "is guarded by");
        let truth = ctx.func.truth(&ctx.regs, p);
        active &= if negated { !truth } else { truth };
    }
    let mut undefined = 0;
    let mut defined = 0;
    let mut origin = 0;
    match effect {
        _ if variant.op == Opcode::Selp => undefined = selected(ctx, inst, written),
        _ if matches!(variant.op, Opcode::And | Opcode::Or) && variant.t() == Type::Pred => {
            undefined = connected(ctx, inst, written);
        }
        Effect::Pure | Effect::Machine => inst_reads(func, inst, &mut |r| {
            undefined |= !written[r.0 as usize];
            defined |= written[r.0 as usize];
        }),
        // Arguments may be structures with padding; accumulators of `wgmma` may be disabled.
        Effect::Call => {}
        _ if variant.op == Opcode::Wgmma => {}
        // A lane receives the definedness of the lane that it reads.
        Effect::Warp if variant.op == Opcode::Shfl => undefined = shuffled(ctx, inst, written),
        Effect::Memory | Effect::Control | Effect::Warp => report_operands(ctx, number, active, (written, origins)),
    }
    if combines(variant.op) && variant.t() != Type::Pred {
        undefined &= !defined;
    }
    if undefined & active != 0 && !origins.is_empty() {
        inst_reads(func, inst, &mut |r| {
            // The lanes that a shuffle reads are others than those that it writes.
            let here = if variant.op == Opcode::Shfl { u32::MAX } else { undefined & active };
            if here & !written[r.0 as usize] != 0 && origins[r.0 as usize] != 0 {
                origin = origins[r.0 as usize];
            }
        });
        if effect == Effect::Pure && !copies(variant.op) && origin & STRAY == 0 && origin != 0 {
            origin |= COMPUTED;
        }
    }
    // The predicate of `shfl` says whether the source lane exists, regardless of its value.
    let truth = func.operands(inst.dsts).get(1).filter(|_| variant.op == Opcode::Shfl);
    inst_writes(func, inst, &mut |r| {
        let undefined = if truth == Some(&Operand::Reg(r)) { 0 } else { undefined };
        let w = &mut written[r.0 as usize];
        *w = *w & !active | active & !undefined;
        if let Some(o) = origins.get_mut(r.0 as usize).filter(|_| undefined & active != 0) {
            *o = origin;
        }
    });
}

/// Reports uses of undefined registers by an instruction with an effect: in addresses, and in values that other threads may see.
fn report_operands(ctx: &Ctx<'_>, number: u32, active: u32, (written, origins): (&mut [u32], &[Origin])) {
    let func: &Func = &ctx.func.func;
    let inst = &func.insts[number as usize];
    let variant = func.variant(inst);
    let operands = func.operands(inst.srcs);
    let base = operands.iter().find_map(|o| if let Operand::Mem(base, _) = o { Some(*base) } else { None });
    let incomplete = |o: &Operand| match o {
        Operand::Reg(r) | Operand::Mem(MemBase::Reg(r), _) => active & !written[r.0 as usize] != 0,
        _ => false,
    };
    let operands = if operands.iter().any(incomplete) { operands } else { &[] };
    let store = variant.op == Opcode::St && !operands.is_empty();
    let sites = ctx.func.sites.get_or_init(|| sites(ctx.func));
    let partial = if store { partial(func, sites.runs.get(&number), inst, written) } else { 0 };
    let (far, shared) = if operands.is_empty() { (0, 0) } else { reach(ctx, inst, variant, base) };
    for operand in operands {
        let address = matches!(operand, Operand::Mem(..));
        let verb = if address { "uses as an address" } else { "makes known" };
        // Values in memory are followed, arguments are not.
        let passed = if variant.has(Mod::Param) || variant.has(Mod::ParamFunc) { shared } else { 0 };
        let loaded = |r: &VReg| origins.get(r.0 as usize).is_some_and(|o| *o != 0 && *o & OWN == 0);
        if !address && store && passed != 0 {
            reads(operand, &mut |r| {
                if loaded(&r) {
                    report_once(ctx, r, active & !partial, (written, origins), "passes");
                }
            });
        }
        reads(operand, &mut |r| {
            // The value of an inactive lane counts as used wherever others may read it.
            let stray = origins.get(r.0 as usize).is_some_and(|o| o & STRAY != 0);
            let near = if stray { shared } else { 0 };
            // Padding is copied, and not computed with. Vectors may have an element that is not used.
            let computed = origins.get(r.0 as usize).is_some_and(|o| *o & (COMPUTED | STRAY) == COMPUTED);
            let partial = if computed && sites.runs.contains_key(&number) { 0 } else { partial };
            let active = if address { active } else { active & (far | near) & !partial };
            report_once(ctx, r, active, (written, origins), verb);
        });
    }
}

/// Lanes for which `and` or `or` of predicates yields an undefined one: no defined operand decides alone.
fn connected(ctx: &Ctx<'_>, inst: &Inst, written: &[u32]) -> u32 {
    let func: &Func = &ctx.func.func;
    let disjunction = func.variant(inst).op == Opcode::Or;
    let (mut undefined, mut decided) = (0, 0);
    for operand in func.operands(inst.srcs) {
        let (Operand::Reg(p) | Operand::Not(p)) = operand else { continue };
        let truth = ctx.func.truth(&ctx.regs, *p);
        let truth = if matches!(operand, Operand::Not(_)) { !truth } else { truth };
        undefined |= !written[p.0 as usize];
        decided |= written[p.0 as usize] & if disjunction { truth } else { !truth };
    }
    undefined & !decided
}

/// Lanes for which a selection yields an undefined value: the value that is not selected does not count.
fn selected(ctx: &Ctx<'_>, inst: &Inst, written: &[u32]) -> u32 {
    let undefined = |o: &Operand| if let Operand::Reg(r) = o { !written[r.0 as usize] } else { 0 };
    let [a, b, choice] = ctx.func.func.operands(inst.srcs) else { return 0 };
    let (Operand::Reg(p) | Operand::Not(p)) = choice else { return 0 };
    let truth = ctx.func.truth(&ctx.regs, *p);
    let truth = if matches!(choice, Operand::Not(_)) { !truth } else { truth };
    let chosen = undefined(a) & truth | undefined(b) & !truth;
    // Either may be chosen by an undefined predicate.
    let unclear = !written[p.0 as usize];
    chosen & !unclear | (undefined(a) | undefined(b)) & unclear
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
fn report_once(ctx: &Ctx<'_>, r: VReg, active: u32, (written, origins): (&mut [u32], &[Origin]), verb: &str) {
    let Some(w) = written.get_mut(r.0 as usize) else { return };
    let Some(lane) = lanes(active & !*w).next() else { return };
    *w |= active;
    let func = &ctx.func.func;
    let name = func.reg_names.get(r.0 as usize).map_or("a register", |n| n);
    let origin = origins.get(r.0 as usize).copied().unwrap_or(0);
    match source_of(origin) {
        Some(pc) if origin & STRAY != 0 => {
            let from = origin >> STRAY_BITS & 31;
            super::step::watch::stray(ctx, lane, (pc, from), format!("{verb} `{name}`, which depends on it"));
        }
        pc => super::step::watch::undefined(ctx, lane, format!("{verb} `{name}`, whose value is undefined"), pc),
    }
}
