//! Checks of addresses ahead of the loop over warps.
//!
//! A register that is computed from parameters and indices can be computed for any warp before the first one runs. Where it changes by the
//! same amount from each warp to the next, its values in the first and the last warp bound those in between: if both pass an access's check,
//! all warps do. So one flag, computed once for a CTA and region, replaces the checks of all warps. It is false where they may fail (in the
//! last CTA of a grid, or as long as the allocation is not known), and then each access is checked as usual.

use crate::emit::{
    function::affine::{affine_form, rows, widened_operands},
    function::{Emitter, Mode, Result},
    memory::address::{Address, LaneAccess},
    memory::bounds::{Check, Lead, Rows, Window},
    text::{Elem, Ty, Val, int},
};
use margay_ir::{MemSpace, Operand, VReg, pass::BitSet};
use margay_isa::{Component, Mod, Opcode, Special, Var, Variant};
use std::collections::HashMap;

/// Fewer warps are not worth the computation.
const FEW_WARPS: u32 = 4;
/// Accesses of a region that are checked ahead, to bound the code.
const LIMIT: usize = 8;
/// Bound of steps, so that products with them do not overflow.
const FAR: Step = 1 << 40;

/// How a value depends on the warp, at a fixed lane: it changes by a constant from each warp to the next, in the arithmetic of its type.
/// 0 if it is the same in all warps.
type Step = i64;

/// An access covered by the region's flag.
struct Ahead {
    register: VReg,
    width: u32,
    stride: i64,
    /// The constant that the address adds to the register.
    offset: i64,
    check: Check,
    rows: Rows,
    lead: Lead,
}

/// The checks ahead of a region's loop.
#[derive(Default)]
pub(in crate::emit) struct ChecksAhead {
    /// The flag: a variable of the function.
    flag: Option<Val>,
    /// The accesses that it covers in the current region.
    accesses: Vec<Ahead>,
    /// By register; `None` for all other dependences on the warp.
    steps: HashMap<u32, Option<Step>>,
}

/// An operand of 32 bits that changes with the warp and is extended to 64 bits.
struct Extended {
    register: VReg,
    signed: bool,
    step: Step,
}

/// The values computed for one warp.
struct Sample {
    /// Whether a row of lanes wraps around.
    wrapped: Val,
    /// By access: the addresses of its rows.
    bases: Vec<Vec<Val>>,
    /// By operand: the values of its rows' first lanes.
    operands: Vec<Vec<Val>>,
}

impl Emitter<'_> {
    /// Lets accesses rely on the flag that [`Emitter::check_ahead`] sets, if that is worthwhile.
    pub fn begin_checks_ahead(&mut self) {
        let worthwhile = self.warps() >= FEW_WARPS && !self.options.lean;
        // Memory that a call frees must not be accessed afterwards, and code for checks reports every access.
        let plain = self.func.calls.is_empty() && self.options.observe.is_none();
        if worthwhile && plain {
            self.accesses.ahead.flag = Some(self.w.alloca("i1", 1));
        }
    }

    /// Emits the check of an access at a register and an offset, skipped if it was checked ahead.
    pub(super) fn check_unless_ahead(
        &mut self,
        register: VReg,
        address: &Address,
        what: &LaneAccess<'_>,
        check: &Check,
    ) {
        let &LaneAccess { space, offset, mask, .. } = what;
        let flag = self.accesses.ahead.flag.clone().filter(|_| self.may_check_ahead(register, space, check));
        let (Some(flag), &Address::Affine { width, stride, .. }) = (flag, address) else {
            _ = self.check(address, check, space, mask);
            return;
        };
        let passed = self.w.load(Ty::scalar(Elem::I1), &flag, 1);
        let (each, on) = (self.w.label("each"), self.w.label("passed"));
        self.w.branch(&passed, &on, &each);
        let decided = self.detour(&each, &on, |e| e.check(address, check, space, mask));
        if let Some((rows, lead)) = decided {
            let check = check.clone();
            self.accesses.ahead.accesses.push(Ahead { register, width, stride, offset, check, rows, lead });
        }
    }

    fn may_check_ahead(&mut self, register: VReg, space: MemSpace, check: &Check) -> bool {
        let by_allocation = matches!(space, MemSpace::Global | MemSpace::Generic | MemSpace::Const);
        by_allocation
            && self.mode == Mode::Full
            && self.accesses.ahead.accesses.len() < LIMIT
            && self.slots[register.0 as usize].elem == Elem::I64
            && self.rematerializes(register)
            && self.step_of_register(register).is_some_and(|step| step & check.odd().0 == 0)
    }

    /// Emits the computation of the current region's flag, before its loop over warps.
    pub fn check_ahead(&mut self) -> Result<()> {
        let Some(flag) = self.accesses.ahead.flag.clone() else { return Ok(()) };
        let accesses = std::mem::take(&mut self.accesses.ahead.accesses);
        if accesses.is_empty() {
            self.w.store(&int(Elem::I1, 0), &flag, 1);
            return Ok(());
        }
        let operands = self.extended_operands(&accesses);
        let first = self.sample_warp(0, &accesses, &operands)?;
        let last = self.sample_warp(self.warps() - 1, &accesses, &operands)?;
        let mut bad = self.w.op("or", &first.wrapped, &last.wrapped);
        for (i, operand) in operands.iter().enumerate() {
            let wraps = self.wraps_between(&first.operands[i], &last.operands[i], operand);
            bad = self.w.op("or", &bad, &wraps);
        }
        for (i, a) in accesses.iter().enumerate() {
            for bases in [&first.bases[i], &last.bases[i]] {
                let address = Address::Affine { bases: bases.clone(), width: a.width, stride: a.stride };
                let outside = self.outside(&address, &a.check, &a.rows, (&Window::Cached, &a.lead));
                bad = self.w.op("or", &bad, &outside.unwrap_or(int(Elem::I1, 1)));
            }
        }
        let passed = self.w.op_const("xor", &bad, 1);
        self.w.store(&passed, &flag, 1);
        Ok(())
    }

    /// Computes addresses, and operands that they depend on, for a warp.
    fn sample_warp(&mut self, warp: u32, accesses: &[Ahead], operands: &[Extended]) -> Result<Sample> {
        if let Some(current) = &mut self.grid_loop.current {
            current.warp = int(Elem::I32, warp.into());
        }
        let mut wrapped = int(Elem::I1, 0);
        let mut done = BitSet::new(self.func.regs.len());
        for a in accesses {
            self.recompute(a.register, &mut done)?;
            if let Some(shadow) = self.slots[a.register.0 as usize].shadow.clone() {
                let here = self.is_wrapped(&shadow);
                wrapped = self.w.op("or", &wrapped, &here);
            }
        }
        let bases = accesses.iter().map(|a| self.first_lanes(a.register, a.width, a.offset)).collect();
        let operands = operands.iter().map(|e| self.first_lanes_of_operand(e.register)).collect();
        Ok(Sample { wrapped, bases, operands })
    }

    /// A register plus a constant, in the first lanes of rows.
    fn first_lanes(&mut self, r: VReg, width: u32, offset: i64) -> Vec<Val> {
        let firsts: Vec<Val> = rows(width).filter_map(|row| self.read_row(r, row)).collect();
        firsts.iter().map(|v| self.w.op_const("add", v, i128::from(offset))).collect()
    }

    /// A register in the first lanes of its own rows; empty if it has none.
    fn first_lanes_of_operand(&mut self, r: VReg) -> Vec<Val> {
        let slot = &self.slots[r.0 as usize];
        let width = match &slot.shadow {
            Some(shadow) => Some(shadow.width),
            None => affine_form(slot.shape).map(|(width, _)| width),
        };
        width.map_or(Vec::new(), |width| self.first_lanes(r, width, 0))
    }

    /// Whether an operand with these values in the first and the last warp, by row, wraps around in between.
    fn wraps_between(&mut self, first: &[Val], last: &[Val], operand: &Extended) -> Val {
        let expected = i128::from(operand.step) * i128::from(self.warps() - 1);
        let mut wraps = int(Elem::I1, first.is_empty().into());
        for (from, to) in first.iter().zip(last) {
            let [from, to] = [from, to].map(|v| self.w.resize(v, Elem::I64, operand.signed));
            let distance = self.w.op("sub", &to, &from);
            let differs = self.w.cmp("icmp ne", &distance, &int(Elem::I64, expected));
            wraps = self.w.op("or", &wraps, &differs);
        }
        wraps
    }

    /// The operands that change with the warp and are extended on the way to the addresses of accesses.
    fn extended_operands(&mut self, accesses: &[Ahead]) -> Vec<Extended> {
        let mut found = Vec::new();
        let mut seen = BitSet::new(self.func.regs.len());
        let mut open: Vec<VReg> = accesses.iter().map(|a| a.register).collect();
        while let Some(r) = open.pop() {
            if seen.has(r.0) {
                continue;
            }
            seen.insert(r.0);
            let func = self.func;
            let Some(inst) = self.spills.definition[r.0 as usize].map(|i| &func.insts[i as usize]) else { continue };
            let widened = widened_operands(func.variant(inst));
            for (i, s) in func.operands(inst.srcs).iter().enumerate() {
                let Operand::Reg(register) = *s else { continue };
                open.push(register);
                if let Some((_, signed)) = widened.filter(|(count, _)| i < *count)
                    && let Some(step) = self.step_of_register(register).filter(|step| *step != 0)
                {
                    found.push(Extended { register, signed, step });
                }
            }
        }
        found
    }

    /// How a rematerialized register depends on the warp; `None` if not by a constant step.
    fn step_of_register(&mut self, r: VReg) -> Option<Step> {
        if let Some(known) = self.accesses.ahead.steps.get(&r.0) {
            return *known;
        }
        let func = self.func;
        let inst = func.insts[self.spills.definition[r.0 as usize]? as usize];
        let operands = func.operands(inst.srcs);
        let steps = operands.iter().map(|o| self.step_of(o)).collect::<Option<Vec<Step>>>();
        let step = steps.and_then(|steps| step_of_result(func.variant(&inst), operands, &steps));
        self.accesses.ahead.steps.insert(r.0, step);
        step
    }

    fn step_of(&mut self, operand: &Operand) -> Option<Step> {
        match operand {
            Operand::Reg(r) => self.step_of_register(*r),
            Operand::Special(Special::Tid, c) => self.step_of_thread(*c),
            Operand::Special(Special::WarpId, _) => Some(1),
            // All other dependences of a rematerialized register are on registers that are the same in all warps.
            Operand::Not(r) => self.step_of_register(*r).filter(|step| *step == 0),
            _ => Some(0),
        }
    }

    fn step_of_thread(&self, c: Component) -> Option<Step> {
        let [x, y, z] = self.options.warp.block?;
        // Threads per increment of the component, and after how many it begins again.
        let (step, period) = match c {
            Component::X => (1, x),
            Component::Y => (x, x * y),
            Component::Z => (x * y, x * y * z),
            Component::W => return Some(0),
        };
        match () {
            () if 32 % period == 0 || step == period => Some(0),
            () if 32 % step == 0 && period == x * y * z => Some(i64::from(32 / step)),
            () => None,
        }
    }
}

/// How the result of an instruction depends on the warp, given its operands and how they do.
fn step_of_result(variant: &Variant, operands: &[Operand], steps: &[Step]) -> Option<Step> {
    if steps.iter().all(|step| *step == 0) {
        return Some(0);
    }
    let types = [Some(variant.t()), variant.ty(Var::U)];
    if types.into_iter().flatten().any(|t| t.bits() < 32) {
        return None;
    }
    let (bits, unsigned) = (variant.t().bits(), variant.has(Mod::Wide) && !variant.t().is_signed());
    let constant = |i: usize| match operands[i] {
        Operand::Imm(v) if bits == 32 && unsigned => Some(i64::from(v as u32)),
        Operand::Imm(v) if bits == 32 => Some(i64::from(v as i32)),
        Operand::Imm(v) => Some(v as i64),
        _ => None,
    };
    let product = |a: usize, b: usize| match (steps[a], steps[b]) {
        (0, 0) => Some(0),
        (step, 0) => step.checked_mul(constant(b)?),
        (0, step) => step.checked_mul(constant(a)?),
        _ => None,
    };
    let step = match (variant.op, steps) {
        (Opcode::Mov | Opcode::Cvta | Opcode::Cvt, [step]) => Some(*step),
        (Opcode::Add, [a, b]) => a.checked_add(*b),
        (Opcode::Sub, [a, b]) => a.checked_sub(*b),
        (Opcode::Mul, [_, _]) if !variant.has(Mod::Hi) => product(0, 1),
        (Opcode::Mad, [_, _, c]) if !variant.has(Mod::Hi) => product(0, 1)?.checked_add(*c),
        (Opcode::Shl, [step, 0]) => match constant(1) {
            Some(bits @ 0..32) => step.checked_mul(1 << bits),
            _ => None,
        },
        _ => None,
    };
    step.filter(|step| step.abs() < FAR)
}
