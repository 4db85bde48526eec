//! Integer registers as linear functions of a thread's coordinates in the grid, for one launch, whose shape and arguments are known numbers.
//! An address such as `base + 4 * (%ctaid.x * %ntid.x + %tid.x)` shows which bytes each thread accesses.
//!
//! The analysis is flow-insensitive: a register with several definitions, such as a loop's counter, has a *period*, the distance between its
//! possible values. It assumes that such registers do not wrap around: a loop would leave every allocation before its counter does.

mod condition;
mod value;

pub use condition::Condition;
pub use value::{AXES, Linear};

use crate::{
    BlockId, FormalHome, Func, GlobalId, Inst, MemBase, Operand, VReg,
    pass::{
        Cfg,
        liveness::{inst_writes, only_definitions},
    },
};
use margay_isa::{Component, Kind, Mod, Opcode, Special, Type, Var};

/// The values of a launch that are known before it begins.
#[derive(Clone, Copy)]
pub struct LaunchValues<'a> {
    /// CTAs.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// The parameter block.
    pub params: &'a [u8],
    /// The address of a variable in global memory, if it is known.
    pub address: &'a dyn Fn(GlobalId) -> Option<u64>,
}

impl LaunchValues<'_> {
    /// The number of coordinates on each axis of a [`Linear`].
    pub fn extents(&self) -> [i64; AXES] {
        let [[a, b, c], [x, y, z]] = [self.block, self.grid];
        [a, b, c, x, y, z].map(i64::from)
    }
}

/// The value of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    /// No definition is known yet.
    Unseen,
    Known(Linear),
    Unknown,
}

/// The values of a kernel's registers.
pub struct LinearValues<'a> {
    func: &'a Func,
    launch: LaunchValues<'a>,
    cfg: Cfg,
    values: Vec<Value>,
    /// By register: its only definition, unless that is guarded.
    definition: Vec<Option<u32>>,
    /// By instruction: its block.
    block_of: Vec<Option<BlockId>>,
}

impl<'a> LinearValues<'a> {
    /// Analyses a kernel.
    pub fn new(func: &'a Func, launch: LaunchValues<'a>) -> LinearValues<'a> {
        let mut definition = only_definitions(func);
        for d in &mut definition {
            *d = d.filter(|i| func.insts[*i as usize].guard.is_none());
        }
        let mut values = vec![Value::Unseen; func.regs.len()];
        for inst in &func.insts {
            inst_writes(func, inst, &mut |r| {
                // Results of calls.
                if !func.operands(inst.dsts).contains(&Operand::Reg(r)) {
                    values[r.0 as usize] = Value::Unknown;
                }
            });
        }
        for home in &func.params {
            if let FormalHome::Regs(regs) = home {
                regs.iter().for_each(|r| values[r.0 as usize] = Value::Unknown);
            }
        }
        let cfg = Cfg::new(func, |_, _| false);
        let mut all = LinearValues { func, launch, cfg, values, definition, block_of: func.blocks_of_insts() };
        all.join_definitions();
        all
    }

    fn join_definitions(&mut self) {
        let (func, mut changed) = (self.func, true);
        while std::mem::take(&mut changed) {
            for inst in &func.insts {
                for (i, dst) in func.operands(inst.dsts).iter().enumerate() {
                    let Operand::Reg(r) = dst else { continue };
                    let (old, new) = (self.values[r.0 as usize], self.result(inst, i));
                    let both = match (old, new) {
                        (Value::Unseen, v) | (v, Value::Unseen) => v,
                        (Value::Known(a), Value::Known(b)) => a.join(b).map_or(Value::Unknown, Value::Known),
                        _ => Value::Unknown,
                    };
                    changed |= both != old;
                    self.values[r.0 as usize] = both;
                }
            }
        }
    }

    /// The address that an instruction accesses in memory, if it is linear.
    pub fn address(&self, inst: &Inst) -> Option<Linear> {
        let operands = || self.func.operands(inst.srcs).iter().chain(self.func.operands(inst.dsts));
        operands()
            .find_map(|o| match o {
                Operand::Mem(base, offset) => Some((base, *offset)),
                _ => None,
            })
            .and_then(|(base, offset)| match base {
                MemBase::Reg(r) if self.bits(*r) == 64 => {
                    self.known(&Operand::Reg(*r), 64)?.plus(Linear::number(offset))
                }
                MemBase::Global(id) => self.known(&Operand::GlobalAddr(*id, offset), 64),
                _ => None,
            })
    }

    /// Conditions that hold whenever the instruction at this index of [`Func::insts`] is executed.
    pub fn conditions(&self, at: u32) -> Vec<Condition> {
        condition::of(self, at)
    }

    fn bits(&self, r: VReg) -> u32 {
        self.func.regs[r.0 as usize].bits()
    }

    /// The value of an operand, if it is known: equal to the linear function modulo 2 to the power of `bits`.
    fn known(&self, o: &Operand, bits: u32) -> Option<Linear> {
        match self.operand(o, bits) {
            Value::Known(v) => Some(v),
            _ => None,
        }
    }

    fn operand(&self, o: &Operand, bits: u32) -> Value {
        let LaunchValues { grid, block, address, .. } = self.launch;
        let number = |v: u64| match bits {
            32 => Value::Known(Linear::number((v as i32).into())),
            _ => Value::Known(Linear::number(v as i64)),
        };
        match o {
            Operand::Reg(r) if self.bits(*r) == bits => self.values[r.0 as usize],
            Operand::Imm(v) => number(*v),
            Operand::GlobalAddr(id, offset) if bits == 64 => match address(*id) {
                Some(at) => number(at.wrapping_add_signed(*offset)),
                None => Value::Unknown,
            },
            Operand::Special(_, Component::W) => Value::Unknown,
            Operand::Special(special, component) => match special {
                Special::Tid => Value::Known(Linear::axis(*component as usize)),
                Special::Ctaid => Value::Known(Linear::axis(3 + *component as usize)),
                Special::Ntid => number(block[*component as usize].into()),
                Special::Nctaid => number(grid[*component as usize].into()),
                _ => Value::Unknown,
            },
            _ => Value::Unknown,
        }
    }

    /// The `index`-th result of an instruction.
    fn result(&self, inst: &Inst, index: usize) -> Value {
        let (variant, srcs) = (self.func.variant(inst), self.func.operands(inst.srcs));
        let t = variant.t();
        let wide = if variant.has(Mod::Wide) { 2 * t.bits() } else { t.bits() };
        let fits = matches!(self.func.operands(inst.dsts).get(index), Some(Operand::Reg(d)) if self.bits(*d) == wide);
        if !fits || t.is_float() || !matches!(wide, 32 | 64) {
            return Value::Unknown;
        }
        if let (Opcode::Ld, Some(Operand::Mem(MemBase::KernelParam, at))) = (variant.op, srcs.first()) {
            return self.parameter(*at + (index as u32 * wide / 8) as i64, wide);
        }
        let plain = t.is_int() || t.kind() == Kind::Bits;
        if index > 0 || !plain || [Mod::Sat, Mod::Cc, Mod::Hi].iter().any(|m| variant.has(*m)) {
            return Value::Unknown;
        }
        let count = match variant.op {
            Opcode::Mov | Opcode::Cvt => 1,
            Opcode::Cvta if variant.has(Mod::Global) => 1,
            Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Shl | Opcode::Or => 2,
            Opcode::Mad | Opcode::Selp => 3,
            _ => return Value::Unknown,
        };
        if srcs.len() != count {
            return Value::Unknown;
        }
        let mut values = [Linear::number(0); 3];
        for (i, (o, v)) in srcs.iter().zip(&mut values).enumerate() {
            let width = match (variant.op, i) {
                (Opcode::Mad, 2) => wide,
                (Opcode::Cvt, _) => variant.ty(Var::U).map_or(0, Type::bits),
                (Opcode::Shl, 1) => 32,
                (Opcode::Selp, 2) => continue,
                _ => t.bits(),
            };
            match self.operand(o, width) {
                Value::Known(known) => *v = known,
                other => return other,
            }
        }
        self.computed((variant.op, t, wide), variant.ty(Var::U), values).map_or(Value::Unknown, Value::Known)
    }

    /// A result that is computed from known operands.
    fn computed(
        &self,
        (op, t, wide): (Opcode, Type, u32),
        from: Option<Type>,
        [a, b, c]: [Linear; 3],
    ) -> Option<Linear> {
        let product = || match wide == t.bits() {
            true => a.times(b),
            false => self.widened(a, t)?.times(self.widened(b, t)?),
        };
        match op {
            Opcode::Mov | Opcode::Cvta => Some(a),
            Opcode::Add => a.plus(b),
            Opcode::Sub => a.plus(b.times(Linear::number(-1))?),
            Opcode::Mul => product(),
            Opcode::Mad => product()?.plus(c),
            Opcode::Shl => a.times(Linear::number(1 << b.as_number().filter(|k| (0..31).contains(k))?)),
            Opcode::Or => a.mixed(b, &self.launch.extents()),
            Opcode::Selp => a.join(b),
            Opcode::Cvt => {
                let from = from.filter(|u| u.is_int() || u.kind() == Kind::Bits)?;
                // Truncation keeps the value modulo the smaller power of two.
                if from.bits() >= t.bits() { Some(a) } else { self.widened(a, from) }
            }
            _ => None,
        }
    }

    fn parameter(&self, at: i64, bits: u32) -> Value {
        let start = usize::try_from(at).ok();
        let Some(bytes) = start.and_then(|at| self.launch.params.get(at..at + bits as usize / 8)) else {
            return Value::Unknown;
        };
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        self.operand(&Operand::Imm(u64::from_le_bytes(all)), bits)
    }

    /// The value as a number of the type `t`, if it lies in the type's range for every thread.
    fn widened(&self, v: Linear, t: Type) -> Option<Linear> {
        let (least, most) = v.range(&self.launch.extents())?;
        let (low, high) = match (t.bits(), t.is_signed()) {
            (32, true) => (i32::MIN.into(), i32::MAX.into()),
            (32, false) => (0, u32::MAX.into()),
            (64, true) => (i64::MIN, i64::MAX),
            (64, false) => (0, i64::MAX),
            _ => return None,
        };
        (low <= least && most <= high).then_some(v)
    }
}
