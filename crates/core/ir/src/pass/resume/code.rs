//! The code that a resumed form adds to a kernel: loads of the live registers at its entry, stores of them at a pause.

use super::{Held, Layout, Resume, Slot, slot_bytes};
use crate::{Func, Inst, MemBase, MemSpace, Operand, VReg};
use margay_isa::{Component, Mod, Opcode, Special, Type, Variant, Word, resolve};
use margay_syntax::tree::List;

/// The parts of the entry block.
pub(super) struct Written {
    pub insts: List<Inst>,
    /// Whether the thread has not ended, if some may have.
    pub alive: Option<VReg>,
    /// What is needed to store registers again.
    place: Place,
}

/// Registers that the entry block has defined.
#[derive(Clone, Copy)]
struct Place {
    /// Address of the state.
    state: VReg,
    warp: VReg,
    lane: VReg,
}

/// The code with which a thread pauses.
pub(super) struct Pause {
    /// Counts a turn.
    pub count: List<Inst>,
    /// Whether that was the last one.
    pub last: VReg,
    /// Stores the registers.
    pub store: List<Inst>,
}

/// Writes the entry block.
pub(super) struct Entry<'f> {
    func: &'f mut Func,
    at: u32,
    first: u32,
    tid: [Option<VReg>; 2],
}

impl<'f> Entry<'f> {
    pub fn new(func: &'f mut Func, at: u32) -> Entry<'f> {
        let first = func.insts.len() as u32;
        Entry { func, at, first, tid: [None; 2] }
    }

    /// Writes the entry block.
    pub fn write(&mut self, resume: &Resume, layout: &Layout) -> Option<Written> {
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
        Some(Written { insts: self.written(), alive, place: Place { state, warp, lane } })
    }

    /// Writes the code for pauses; the entry block gets another instruction for it.
    pub fn write_pause(&mut self, resume: &Resume, layout: &Layout, entry: &mut Written) -> Option<Pause> {
        let turns = self.temp(Type::B32);
        self.load_parameter(turns, layout.turns)?;
        entry.insts = List::new(entry.insts.range().start as u32, entry.insts.len + self.written().len);
        let last = self.temp(Type::Pred);
        let pair = [Operand::Reg(turns), Operand::Imm(1)];
        self.emit(Opcode::Sub, &[Word::Type(Type::U32)], turns, &pair, None)?;
        let words = [Word::Mod(Mod::Eq), Word::Type(Type::U32)];
        self.emit(Opcode::Setp, &words, last, &[Operand::Reg(turns), Operand::Imm(0)], None)?;
        let count = self.written();
        for ((register, _), row) in resume.held.iter().zip(&layout.paused.rows) {
            if let Some(row) = row {
                self.store_state(*register, entry.place, *row)?;
            }
        }
        let one = self.temp(Type::B32);
        self.emit(Opcode::Mov, &[Word::Type(Type::B32)], one, &[Operand::Imm(1)], None)?;
        self.store_state(one, entry.place, layout.paused.flags)?;
        Some(Pause { count, last, store: self.written() })
    }

    /// The instructions since the last call.
    fn written(&mut self) -> List<Inst> {
        let end = self.func.insts.len() as u32;
        let first = std::mem::replace(&mut self.first, end);
        List::new(first, end - first)
    }

    /// Stores a thread's value of a register to the array at an offset of the state.
    fn store_state(&mut self, register: VReg, Place { state, warp, lane }: Place, offset: u32) -> Option<()> {
        let ty = self.func.regs[register.0 as usize];
        let (bits, value) = match ty {
            Type::Pred => {
                let word = self.temp(Type::B32);
                let srcs = [Operand::Imm(1), Operand::Imm(0), Operand::Reg(register)];
                self.emit(Opcode::Selp, &[Word::Type(Type::B32)], word, &srcs, None)?;
                (Type::B32, word)
            }
            _ => (Type::of_bits(ty.bits()), register),
        };
        let row = self.element(state, warp, 32 * slot_bytes(ty))?;
        let address = self.element(row, lane, slot_bytes(ty))?;
        let srcs = [Operand::Mem(MemBase::Reg(address), offset.into()), Operand::Reg(value)];
        self.push(Opcode::St, &[Word::Mod(Mod::Global), Word::Type(bits)], &[], &srcs, Some(MemSpace::Global))
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
        self.push(op, words, &[Operand::Reg(dst)], srcs, space)
    }

    fn push(
        &mut self,
        op: Opcode,
        words: &[Word],
        dsts: &[Operand],
        srcs: &[Operand],
        space: Option<MemSpace>,
    ) -> Option<()> {
        let variant: Variant = resolve(op, words, |_| true).ok()?.variant;
        self.func.variants.push(variant);
        let variant = self.func.variants.len() as u32 - 1;
        let (dsts, srcs) = (self.list(dsts), self.list(srcs));
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
