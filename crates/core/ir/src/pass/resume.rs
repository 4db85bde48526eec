//! The form of a kernel that continues in the middle: it begins at a loop's header, with the values that the live registers have there.
//!
//! An engine that takes a CTA over from another one runs this form. Its entry block loads the live registers: what all threads of the
//! CTA share from the kernel's parameters, what is different for each warp or thread from a *state* in global memory, whose address is a
//! parameter too. Registers that are affine in `%tid` are computed, so that the analyses recognize them again. Everything that the
//! header does not reach is dropped.

use crate::{
    Block, BlockId, FormalHome, Func, FuncId, Inst, Ir, MemBase, MemSpace, Operand, Placed, Terminator, VReg,
    abi::Value,
    explicit::parameter_bytes,
    pass::{Cfg, cfg::successors, spins},
};
use margay_isa::{Component, Mod, Opcode, Special, Type, Variant, Word, resolve};
use margay_syntax::tree::List;
use std::sync::Arc;

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
    /// Size in bytes of the parameter block.
    pub parameters: u32,
    /// By register of [`Resume::held`].
    pub slots: Vec<Slot>,
    /// Size in bytes of the state. It begins with the mask of the lanes that have not ended, one word per warp.
    pub state: u32,
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
        Layout { address, parameters, slots, state }
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
        let insts = Entry::new(&mut func, at).write(self, &layout)?;
        renumber(&mut func, self.header, insts);
        func.types = crate::types::row_types(&func);
        let mut ir = ir.clone();
        ir.funcs[kernel.0 as usize] = Arc::new(func);
        Some(ir)
    }
}

/// What the entry block consists of.
struct Written {
    insts: List<Inst>,
    /// Whether the thread has not ended, if some may have.
    alive: Option<VReg>,
}

/// Writes the entry block.
struct Entry<'f> {
    func: &'f mut Func,
    at: u32,
    first: u32,
    tid: [Option<VReg>; 2],
}

impl<'f> Entry<'f> {
    fn new(func: &'f mut Func, at: u32) -> Entry<'f> {
        let first = func.insts.len() as u32;
        Entry { func, at, first, tid: [None; 2] }
    }

    fn write(mut self, resume: &Resume, layout: &Layout) -> Option<Written> {
        let state = self.temp(Type::B64);
        self.load_parameter(state, layout.address)?;
        let [warp, lane] = [Special::WarpId, Special::LaneId].map(|s| self.special(s, Component::X));
        let (warp, lane) = (warp?, lane?);
        for ((register, held), slot) in resume.held.iter().zip(&layout.slots) {
            let steps = match held {
                Held::Shared { steps, .. } => *steps,
                Held::Lane => [0; 2],
            };
            let ty = self.func.regs[register.0 as usize];
            let bytes = slot_bytes(ty);
            let affine = steps != [0; 2];
            let to = if affine { self.temp(ty) } else { *register };
            match *slot {
                Slot::Parameter(offset) => self.load_parameter(to, offset)?,
                Slot::Warp(offset) => {
                    let address = self.element(state, warp, bytes)?;
                    self.load_state(to, address, offset)?;
                }
                Slot::Lane(offset) => {
                    let row = self.element(state, warp, 32 * bytes)?;
                    let address = self.element(row, lane, bytes)?;
                    self.load_state(to, address, offset)?;
                }
            }
            if affine {
                self.add_steps(*register, to, steps)?;
            }
        }
        let alive = match resume.ended {
            true => Some(self.alive(state, warp, lane)?),
            false => None,
        };
        let count = self.func.insts.len() as u32 - self.first;
        Some(Written { insts: List::new(self.first, count), alive })
    }

    fn temp(&mut self, ty: Type) -> VReg {
        self.func.regs.push(ty);
        self.func.reg_names.push("resume".into());
        VReg(self.func.regs.len() as u32 - 1)
    }

    fn list(&mut self, operands: &[Operand]) -> List<Operand> {
        let start = self.func.operands.len() as u32;
        self.func.operands.extend_from_slice(operands);
        List::new(start, operands.len() as u32)
    }

    fn emit(&mut self, op: Opcode, words: &[Word], dst: VReg, srcs: &[Operand], space: Option<MemSpace>) -> Option<()> {
        let variant: Variant = resolve(op, words, |_| true).ok()?.variant;
        self.func.variants.push(variant);
        let variant = self.func.variants.len() as u32 - 1;
        let (dsts, srcs) = (self.list(&[Operand::Reg(dst)]), self.list(srcs));
        self.func.insts.push(Inst { variant, guard: None, dsts, srcs, space, at: self.at });
        Some(())
    }

    fn special(&mut self, special: Special, component: Component) -> Option<VReg> {
        let to = self.temp(Type::U32);
        self.emit(Opcode::Mov, &[Word::Type(Type::U32)], to, &[Operand::Special(special, component)], None)?;
        Some(to)
    }

    fn load_parameter(&mut self, to: VReg, offset: u32) -> Option<()> {
        let from = Operand::Mem(MemBase::KernelParam, offset.into());
        self.load(to, from, Mod::Param, MemSpace::KernelParam)
    }

    fn load_state(&mut self, to: VReg, address: VReg, offset: u32) -> Option<()> {
        let from = Operand::Mem(MemBase::Reg(address), offset.into());
        self.load(to, from, Mod::Global, MemSpace::Global)
    }

    fn load(&mut self, to: VReg, from: Operand, qualifier: Mod, space: MemSpace) -> Option<()> {
        let ty = self.func.regs[to.0 as usize];
        let pred = ty == Type::Pred;
        let (loaded, bits) = if pred { (self.temp(Type::B32), Type::B32) } else { (to, Type::of_bits(ty.bits())) };
        self.emit(Opcode::Ld, &[Word::Mod(qualifier), Word::Type(bits)], loaded, &[from], Some(space))?;
        if pred {
            self.differs_from_zero(to, loaded)?;
        }
        Some(())
    }

    fn differs_from_zero(&mut self, to: VReg, word: VReg) -> Option<()> {
        let srcs = [Operand::Reg(word), Operand::Imm(0)];
        self.emit(Opcode::Setp, &[Word::Mod(Mod::Ne), Word::Type(Type::U32)], to, &srcs, None)
    }

    /// The address of an element of `bytes` bytes.
    fn element(&mut self, base: VReg, index: VReg, bytes: u32) -> Option<VReg> {
        let to = self.temp(Type::B64);
        let srcs = [Operand::Reg(index), Operand::Imm(bytes.into()), Operand::Reg(base)];
        self.emit(Opcode::Mad, &[Word::Mod(Mod::Wide), Word::Type(Type::U32)], to, &srcs, None)?;
        Some(to)
    }

    fn add_steps(&mut self, to: VReg, base: VReg, steps: [i64; 2]) -> Option<()> {
        let ty = self.func.regs[to.0 as usize];
        let wide = ty.bits() == 64;
        let mut sum = base;
        let moving: Vec<usize> = (0..2).filter(|d| steps[*d] != 0).collect();
        for (i, d) in moving.iter().enumerate() {
            let index = self.index(*d, wide)?;
            let step = if wide { steps[*d] as u64 } else { u64::from(steps[*d] as u32) };
            let next = if i + 1 == moving.len() { to } else { self.temp(ty) };
            let srcs = [Operand::Reg(index), Operand::Imm(step), Operand::Reg(sum)];
            let as_signed = if wide { Type::S64 } else { Type::S32 };
            self.emit(Opcode::Mad, &[Word::Mod(Mod::Lo), Word::Type(as_signed)], next, &srcs, None)?;
            sum = next;
        }
        Some(())
    }

    /// `%tid.x` or `%tid.y`, in 32 or 64 bits.
    fn index(&mut self, dimension: usize, wide: bool) -> Option<VReg> {
        let index = match self.tid[dimension] {
            Some(index) => index,
            None => self.special(Special::Tid, [Component::X, Component::Y][dimension])?,
        };
        self.tid[dimension] = Some(index);
        if !wide {
            return Some(index);
        }
        let to = self.temp(Type::U64);
        let words = [Word::Type(Type::U64), Word::Type(Type::U32)];
        self.emit(Opcode::Cvt, &words, to, &[Operand::Reg(index)], None)?;
        Some(to)
    }

    /// Whether the thread has not ended.
    fn alive(&mut self, state: VReg, warp: VReg, lane: VReg) -> Option<VReg> {
        let address = self.element(state, warp, 4)?;
        let [mask, shifted, bit] = [Type::B32; 3].map(|ty| self.temp(ty));
        self.load_state(mask, address, 0)?;
        let pair = [Operand::Reg(mask), Operand::Reg(lane)];
        self.emit(Opcode::Shr, &[Word::Type(Type::B32)], shifted, &pair, None)?;
        self.emit(Opcode::And, &[Word::Type(Type::B32)], bit, &[Operand::Reg(shifted), Operand::Imm(1)], None)?;
        let alive = self.temp(Type::Pred);
        self.differs_from_zero(alive, bit)?;
        Some(alive)
    }
}

/// Puts the entry block in front and drops the blocks that `header` does not reach.
fn renumber(func: &mut Func, header: BlockId, entry: Written) {
    let at = func.blocks[header.0 as usize].at;
    let old = std::mem::take(&mut func.blocks);
    let moved = |b: BlockId| BlockId(b.0 + 2);
    let term = match entry.alive {
        Some(pred) => {
            Terminator::Branch { pred, negated: false, then: moved(header), other: BlockId(1), uniform: false }
        }
        None => Terminator::Jump(moved(header)),
    };
    func.blocks.push(Block { insts: entry.insts, term, at, label: None });
    func.blocks.push(Block { insts: List::new(0, 0), term: Terminator::Exit, at, label: None });
    func.blocks.extend(old.into_iter().map(|mut block| {
        block.term = retarget(block.term, moved);
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
