//! The form of a kernel that continues in the middle: it begins at a loop's header, with the values that the live registers have there.
//!
//! An engine that takes a CTA over from another one runs this form. Its entry block loads the live registers: values that all threads of the
//! CTA share from the kernel's parameters, and values of single warps or threads from a *state* in global memory, whose address is a
//! parameter too. Registers that are affine in `%tid` are computed, so that the analyses recognize them again. Everything that the
//! header does not reach is dropped.

mod code;

use crate::{
    Block, BlockId, FormalHome, Func, FuncId, Inst, Ir, Placed, Terminator, VReg,
    abi::Value,
    explicit::parameter_bytes,
    pass::{Cfg, Uniformity, WarpShape, cfg::successors, is_cta_barrier, liveness::inst_writes, spins},
};
use code::{Entry, Pause, Written};
use margay_isa::{Effect, Type};
use margay_syntax::tree::List;
use std::{collections::HashSet, sync::Arc};

/// How the threads of a CTA hold a register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Held {
    /// A base plus `steps[0] * %tid.x + steps[1] * %tid.y`, in wrapping arithmetic of the register's width. The base is the same in all
    /// threads of the CTA, or of each warp. Only integers and bits of 32 and 64 bits have steps.
    Shared {
        /// The base is one for the whole CTA.
        cta: bool,
        /// Steps in x and y.
        steps: [i64; 2],
    },
    /// Each thread has a value of its own.
    Lane,
}

/// The place where a kernel continues, and how its live registers are passed there.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Resume {
    /// A block of the kernel.
    pub header: BlockId,
    /// The registers that are live there.
    pub held: Vec<(VReg, Held)>,
    /// Threads of the CTA may have ended already.
    pub ended: bool,
    /// Warps of the CTA.
    pub warps: u32,
    /// Threads pause: after reaching the header as many times as a parameter says, they store their registers and end.
    pub pauses: bool,
}

/// Where the entry block finds a register, or its base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// At this offset of the parameter block.
    Parameter(u32),
    /// In an array in the state that begins at this offset, with an element of [`slot_bytes`] bytes per warp.
    Warp(u32),
    /// In an array in the state that begins at this offset, with an element of [`slot_bytes`] bytes per thread,
    /// in the order of warps and lanes.
    Lane(u32),
}

/// The parameters and the state of a [`Resume`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Offset of the state's address in the parameter block.
    pub address: u32,
    /// Offset of the number of turns after which threads pause, a word, in the parameter block.
    pub turns: u32,
    /// Size in bytes of the parameter block.
    pub parameters: u32,
    /// By register of [`Resume::held`].
    pub slots: Vec<Slot>,
    /// Where threads that pause store their registers; empty if they do not pause.
    pub paused: Paused,
    /// Size in bytes of the state. It begins with the mask of the lanes that have not ended, one word per warp.
    pub state: u32,
}

/// Where threads that pause store their registers: arrays in the state with an element per thread, as for [`Slot::Lane`].
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Paused {
    /// Offset of an array of words: 1 for threads that have paused.
    pub flags: u32,
    /// By register of [`Resume::held`]: the offset of its values; `None` if it keeps the one from the begin.
    pub rows: Vec<Option<u32>>,
}

/// Bytes of a register in a slot: those of a predicate are a word, 0 or 1.
pub fn slot_bytes(ty: Type) -> u32 {
    if ty == Type::Pred { 4 } else { ty.bytes().next_power_of_two() }
}

impl Resume {
    /// Lays out parameters and state for a kernel.
    pub fn layout(&self, kernel: &Func) -> Layout {
        let align = |at: u32| at.next_multiple_of(16);
        let address = align(parameter_bytes(kernel) as u32);
        let (mut parameters, mut state) = (address + 16, align(4 * self.warps));
        let mut slots = Vec::new();
        for (register, held) in &self.held {
            let bytes = slot_bytes(kernel.regs[register.0 as usize]);
            let (slot, end) = match held {
                Held::Shared { cta: true, .. } => (Slot::Parameter(parameters), parameters + bytes),
                Held::Shared { cta: false, .. } => (Slot::Warp(state), state + bytes * self.warps),
                Held::Lane => (Slot::Lane(state), state + bytes * 32 * self.warps),
            };
            slots.push(slot);
            match slot {
                Slot::Parameter(_) => parameters = align(end),
                Slot::Warp(_) | Slot::Lane(_) => state = align(end),
            }
        }
        let mut paused = Paused::default();
        if self.pauses {
            let written = written_from(kernel, self.header);
            let mut array = |bytes: u32| {
                let at = state;
                state = align(at + bytes * 32 * self.warps);
                at
            };
            paused.flags = array(4);
            let rows = self.held.iter().zip(&slots).map(|((register, _), slot)| match slot {
                _ if !written.contains(register) => None,
                Slot::Lane(at) => Some(*at),
                _ => Some(array(slot_bytes(kernel.regs[register.0 as usize]))),
            });
            paused.rows = rows.collect();
        }
        Layout { address, turns: address + 8, parameters, slots, paused, state }
    }

    /// The program with the kernel's other form in its place; `None` if the table lacks an instruction for it.
    pub fn rewrite(&self, ir: &Ir<Placed>, kernel: FuncId) -> Option<Ir<Placed>> {
        let mut func = ir.func(kernel).clone();
        let layout = self.layout(&func);
        func.never_spins = !spins(&func, &Cfg::new(&func, |_, _| false));
        let mut sig = (*func.sig).clone();
        sig.params.push(Value::bytes(layout.parameters - layout.address, 16));
        func.sig = Arc::new(sig);
        func.params.push(FormalHome::Kernel(layout.address));
        func.param_names.push("resume".into());
        let at = func.blocks[self.header.0 as usize].at;
        let mut code = Entry::new(&mut func, at);
        let mut entry = code.write(self, &layout)?;
        let pause = match self.pauses {
            true => Some(code.write_pause(self, &layout, &mut entry)?),
            false => None,
        };
        renumber(&mut func, self.header, &entry, pause.as_ref());
        func.types = crate::types::row_types(&func);
        let mut ir = ir.clone();
        ir.funcs[kernel.0 as usize] = Arc::new(func);
        Some(ir)
    }
}

/// How the threads of a form pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pausing {
    /// They need no others, and pause and end at different times.
    Apart,
    /// All of a warp, or of the CTA, pause together.
    Together,
}

/// How the threads of a form ([`Resume::rewrite`]) for CTAs of `block` threads may pause at the header where it begins; `None` if they must
/// not. If they later need other threads of their warp or CTA, all of these must have reached the header equally often. So it must be the
/// header of a loop that no other loop contains and that they leave together.
pub fn pausing(form: &Func, block: [u32; 3]) -> Option<Pausing> {
    let insts = || form.blocks.iter().flat_map(|b| form.insts(b));
    let effect = |inst: &Inst| form.variant(inst).op.row().effect;
    if insts().any(|i| effect(i) == Effect::Call) {
        return None;
    }
    if !insts().any(|i| effect(i) == Effect::Warp) {
        return Some(Pausing::Apart);
    }
    let cfg = Cfg::new(form, |_, _| false);
    let (Terminator::Jump(header) | Terminator::Branch { then: header, .. }) = form.blocks[0].term else {
        return None;
    };
    let at = cfg.position[header.0 as usize];
    let mut around = cfg.loops.iter().filter(|l| l.holds(at));
    let (Some(own), None) = (around.next(), around.next()) else { return None };
    let cta = insts().any(|i| is_cta_barrier(form, i));
    let uniformity = Uniformity::new(form, &cfg, WarpShape { block: Some(block), cta, ..WarpShape::default() });
    let inside = |b: BlockId| own.holds(cfg.position[b.0 as usize]);
    let together = own.first == at
        && !own.irreducible
        && cfg.blocks(own).iter().all(|b| {
            let leaves = successors(&form.blocks[b.0 as usize].term).into_iter().any(|to| !inside(to));
            !leaves || !uniformity.branches[b.0 as usize] && !uniformity.divergent[b.0 as usize]
        });
    together.then_some(Pausing::Together)
}

/// Puts the entry block in front, and the code for pauses on the way back to `header`; drops the blocks that it does not reach.
fn renumber(func: &mut Func, header: BlockId, entry: &Written, pause: Option<&Pause>) {
    const ENDED: BlockId = BlockId(1);
    const COUNT: BlockId = BlockId(2);
    const STORE: BlockId = BlockId(3);
    let at = func.blocks[header.0 as usize].at;
    let old = std::mem::take(&mut func.blocks);
    let added = if pause.is_some() { 4 } else { 2 };
    let moved = |b: BlockId| BlockId(b.0 + added);
    let branch = |pred, then, other| Terminator::Branch { pred, negated: false, then, other, uniform: false };
    let block = |insts, term| Block { insts, term, at, label: None };
    let begin = match entry.alive {
        Some(alive) => branch(alive, moved(header), ENDED),
        None => Terminator::Jump(moved(header)),
    };
    func.blocks.push(block(entry.insts, begin));
    func.blocks.push(block(List::new(0, 0), Terminator::Exit));
    if let Some(pause) = pause {
        func.blocks.push(block(pause.count, branch(pause.last, STORE, moved(header))));
        func.blocks.push(block(pause.store, Terminator::Exit));
    }
    func.blocks.extend(old.into_iter().map(|mut block| {
        block.term = retarget(block.term, |to| if to == header && pause.is_some() { COUNT } else { moved(to) });
        block
    }));
    let mut reached = vec![false; func.blocks.len()];
    let mut work = vec![BlockId(0)];
    while let Some(b) = work.pop() {
        if !std::mem::replace(&mut reached[b.0 as usize], true) {
            work.extend(successors(&func.blocks[b.0 as usize].term));
        }
    }
    compact(func, |f| (0..f.blocks.len() as u32).map(BlockId).filter(|b| reached[b.0 as usize]).collect());
    compact(func, |f| Cfg::new(f, |_, _| false).order);
}

/// Leaves the blocks of a list, in its order; they lead nowhere else.
fn compact(func: &mut Func, order: impl FnOnce(&Func) -> Vec<BlockId>) {
    let order = order(func);
    let mut ids = vec![BlockId(u32::MAX); func.blocks.len()];
    order.iter().enumerate().for_each(|(i, b)| ids[b.0 as usize] = BlockId(i as u32));
    let block = |b: &BlockId| {
        let mut block = func.blocks[b.0 as usize].clone();
        block.term = retarget(block.term, |b| ids[b.0 as usize]);
        block
    };
    func.blocks = order.iter().map(block).collect();
}

fn retarget(term: Terminator, to: impl Fn(BlockId) -> BlockId) -> Terminator {
    match term {
        Terminator::Jump(b) => Terminator::Jump(to(b)),
        Terminator::Branch { pred, negated, then, other, uniform } => {
            Terminator::Branch { pred, negated, then: to(then), other: to(other), uniform }
        }
        Terminator::Switch { index, targets, uniform } => {
            Terminator::Switch { index, targets: targets.into_iter().map(to).collect(), uniform }
        }
        Terminator::Ret | Terminator::Exit => term,
    }
}

/// Registers that are written in blocks that a block reaches, itself included.
pub fn written_from(func: &Func, block: BlockId) -> HashSet<VReg> {
    let mut reached = HashSet::from([block]);
    let mut written = HashSet::new();
    let mut work = vec![block];
    while let Some(b) = work.pop() {
        let block = &func.blocks[b.0 as usize];
        for inst in func.insts(block) {
            inst_writes(func, inst, &mut |r| _ = written.insert(r));
        }
        work.extend(successors(&block.term).into_iter().filter(|to| reached.insert(*to)));
    }
    written
}
