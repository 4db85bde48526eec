//! Detects accesses that leave what their pointer points to and hit a neighbor, which violates no bounds: through a
//! kernel argument another allocation than its own, from one variable in shared memory the next one.
//!
//! The argument or variable that an address derives from is found by a data-flow analysis of the kernel's code, once per kernel:
//! from loads of 64-bit parameters through `mov`, `cvta`, additions, subtractions and selections. Differences of two
//! pointers, and addresses with two sources, derive from no argument. Calls of functions that are not inlined are not
//! analyzed.

use crate::{Finding, FindingKind, Sanitizer, State, hash::Map, lanes, name, unshared::Accessed};
use margay_exec::{Memory, MemoryEvent};
use margay_ir::{Func, FuncId, GlobalId, Inst, Ir, MemBase, MemSpace, Operand, Placed, SourcePlace, VReg};
use margay_isa::{Opcode, Space};

/// What the value of a register derives from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// No pointer.
    Number,
    /// The argument at an offset of the parameter block, plus any distance.
    Argument(u32),
    /// The address of a variable in shared memory, plus any distance.
    Variable(GlobalId),
    /// The address of a variable in global memory, plus any distance.
    Global(GlobalId),
    /// One of several of these, or a value computed from them.
    Unclear,
}

impl Source {
    fn join(self, other: Source) -> Source {
        if self == other { self } else { Source::Unclear }
    }

    fn plus(self, other: Source) -> Source {
        match (self, other) {
            (Source::Number, other) | (other, Source::Number) => other,
            _ => Source::Unclear,
        }
    }
}

/// The arguments and variables that the addresses of the kernel's accesses derive from, by place.
#[derive(Default)]
pub struct Arguments {
    /// The analyzed kernel.
    kernel: Option<FuncId>,
    by_place: Map<u32, Source>,
    /// The sources of the addresses at which instructions access memory that other CTAs may access, by index of the instruction.
    accesses: Vec<(u32, Source)>,
    /// The first and last address of each argument's allocation; `None` if it is not a pointer.
    targets: Map<u32, Option<(u64, u64)>>,
}

/// The source of an instruction's result.
fn result(func: &Func, inst: &Inst, of: impl Fn(&Operand) -> Option<Source>) -> Option<Source> {
    let (variant, srcs) = (func.variant(inst), func.operands(inst.srcs));
    let at = |i: usize| srcs.get(i).map_or(Some(Source::Unclear), &of);
    Some(match variant.op {
        Opcode::Mov | Opcode::Cvta => at(0)?,
        Opcode::Add => at(0)?.plus(at(1)?),
        Opcode::Sub => match (at(0)?, at(1)?) {
            (first, Source::Number) => first,
            _ => Source::Unclear,
        },
        Opcode::Mad => match (at(0)?, at(1)?, at(2)?) {
            (Source::Unclear, ..) | (_, Source::Unclear, _) => Source::Unclear,
            (_, _, third) => third,
        },
        Opcode::Selp => at(0)?.join(at(1)?),
        // `-G` has addresses of shared variables in 32 bits, and extends them.
        Opcode::Cvt if variant.t().bits() == 64 && matches!(at(0)?, Source::Variable(_)) => at(0)?,
        // A size passed as an argument.
        Opcode::Mul | Opcode::Shl | Opcode::Cvt | Opcode::Div | Opcode::Rem => Source::Number,
        Opcode::Ld | Opcode::Ldu | Opcode::Atom => Source::Number,
        _ => srcs
            .iter()
            .map(&of)
            .try_fold(Source::Number, |all, s| Some(if s? == Source::Number { all } else { Source::Unclear }))?,
    })
}

impl Arguments {
    fn of(program: &Ir<Placed>, kernel: FuncId) -> Arguments {
        let func = program.func(kernel);
        let variable = |id: GlobalId| {
            let v = program.global(id);
            match v.space {
                // The size of dynamic shared memory is the launch's.
                Space::Shared if v.size > 0 => Source::Variable(id),
                Space::Global => Source::Global(id),
                _ => Source::Unclear,
            }
        };
        let mut known: Vec<Option<Source>> = vec![None; func.regs.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for inst in &func.insts {
                let source = |o: &Operand| match o {
                    Operand::Reg(VReg(r)) | Operand::Not(VReg(r)) => known[*r as usize],
                    Operand::Imm(_) | Operand::Special(..) => Some(Source::Number),
                    Operand::GlobalAddr(id, _) => Some(variable(*id)),
                    _ => Some(Source::Unclear),
                };
                let variant = func.variant(inst);
                let parameter = match (variant.op, func.operands(inst.srcs).first()) {
                    (Opcode::Ld, Some(Operand::Mem(MemBase::KernelParam, at))) if variant.t().bits() == 64 => Some(*at),
                    _ => None,
                };
                let made = if parameter.is_some() { None } else { result(func, inst, source) };
                for (i, dst) in func.operands(inst.dsts).iter().enumerate() {
                    let Operand::Reg(r) = dst else { continue };
                    let new = match parameter {
                        Some(at) => u32::try_from(at + 8 * i as i64).ok().map(Source::Argument),
                        None => made,
                    };
                    let old = known[r.0 as usize];
                    let both = old.zip(new).map(|(old, new)| old.join(new)).or(old).or(new);
                    changed |= both != old;
                    known[r.0 as usize] = both;
                }
            }
        }
        let mut by_place = Map::default();
        let mut accesses = Vec::new();
        for (i, inst) in func.insts.iter().enumerate() {
            let mut bases = func.operands(inst.srcs).iter().chain(func.operands(inst.dsts)).filter_map(|o| match o {
                Operand::Mem(MemBase::Reg(r), _) => Some(known[r.0 as usize]),
                Operand::Mem(MemBase::Global(id), _) => Some(Some(variable(*id))),
                Operand::Mem(..) => Some(None),
                _ => None,
            });
            let source = match (bases.next(), bases.next()) {
                (Some(Some(to)), None) => to,
                _ => Source::Unclear,
            };
            if matches!(source, Source::Argument(_) | Source::Variable(_)) {
                by_place.insert(func.places[inst.at as usize].span.start, source);
            }
            if Accessed::by(func, inst) != Accessed::Nothing {
                accesses.push((i as u32, source));
            }
        }
        Arguments { kernel: Some(kernel), by_place, accesses, targets: Map::default() }
    }

    /// What the address of an access derives from.
    pub fn source(&self, at: SourcePlace) -> Option<Source> {
        self.by_place.get(&at.span.start).copied()
    }

    /// The sources of the addresses at which instructions access memory that other CTAs may access, by index of the instruction.
    pub fn sources(&self) -> &[(u32, Source)] {
        &self.accesses
    }
}

/// The allocation around an address, joined with adjacent ones: a reservation is mapped piece by piece.
pub fn target(memory: &Memory, address: u64) -> Option<(u64, u64)> {
    let found = memory.find(address)?;
    let (mut base, mut end) = (found.block.base(), found.end());
    while let Some(next) = memory.find(end).filter(|a| a.block.base() == end && a.block.len() > 0) {
        end = next.end();
    }
    while let Some(before) = base.checked_sub(1).and_then(|at| memory.find(at)).filter(|a| a.block.base() < base) {
        base = before.block.base();
    }
    Some((base, end))
}

/// Whether all that a device function reads in global memory are variables of the program.
pub fn reads_variables(program: &Ir<Placed>, func: FuncId) -> bool {
    let reads = Arguments::of(program, func).accesses;
    reads.iter().all(|(inst, source)| {
        let func = program.func(func);
        let reads = Accessed::by(func, &func.insts[*inst as usize]) == Accessed::Read;
        !reads || matches!(source, Source::Global(_))
    })
}

impl Sanitizer {
    /// What is known of a kernel's addresses.
    pub(crate) fn arguments<'s>(&self, state: &'s mut State, kernel: FuncId) -> &'s mut Arguments {
        if state.arguments.kernel != Some(kernel) {
            state.arguments = Arguments::of(&self.image.ir, kernel);
        }
        &mut state.arguments
    }

    /// The argument at an offset of the parameter block.
    pub(crate) fn pointer(&self, offset: u32) -> Option<u64> {
        let bytes = self.params.get(offset as usize..offset as usize + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Finds lanes that leave what their address derives from. Returns the first and the last address within that, or all addresses if
    /// nothing is known of it.
    pub(crate) fn look_for_strays(&self, state: &mut State, e: &MemoryEvent<'_>) -> (u64, u64) {
        const ANY: (u64, u64) = (0, u64::MAX);
        let (func, at) = e.actor.at;
        if !e.actor.callers.is_empty() || !matches!(e.space, MemSpace::Global | MemSpace::Generic | MemSpace::Shared) {
            return ANY;
        }
        let arguments = self.arguments(state, func);
        let offset = match arguments.source(at) {
            Some(Source::Argument(offset)) if !self.params.is_empty() => offset,
            Some(Source::Variable(id)) => return self.look_behind_variable(state, e, id),
            _ => return ANY,
        };
        let pointer = || target(e.memory, self.pointer(offset)?);
        let Some((base, end)) = *arguments.targets.entry(offset).or_insert_with(pointer) else { return ANY };
        let target = (base, end - 1);
        let size = u64::from(e.size);
        let inside = |address: u64| e.memory.find(address).is_some_and(|a| address + size <= a.end());
        let stray = lanes(e.actor.lanes).find(|l| {
            let address = e.addresses[*l as usize];
            // An access outside every allocation is a fault.
            (address < base || address + size > end) && inside(address)
        });
        let Some(lane) = stray else { return target };
        let address = e.addresses[lane as usize];
        let number = self.image.ir.func(func).params.iter().position(|home| match home {
            margay_ir::FormalHome::Kernel(at) => *at == offset,
            _ => false,
        });
        let argument =
            number.map_or(format!("the pointer at byte {offset} of the arguments"), |n| format!("argument {n}"));
        let verb = if e.access.writes() { "writes" } else { "reads" };
        let (what, kind) = (name::global(e.memory, self.names, address, e.element), FindingKind::Bounds);
        let gap = if address < base {
            format!("{} bytes before", base - address)
        } else {
            format!("{} bytes after", address + size - end)
        };
        state.report(kind, (e.actor.at, None), || Finding {
            kind,
            title: format!("out of bounds: {verb} {what} through {argument}, which points to another allocation"),
            parties: vec![self.party(&e.actor, lane, verb)],
            notes: vec![format!("{gap} the {} bytes at {base:#x} that {argument} points to", end - base)],
            help: None,
            times: 1,
        });
        target
    }

    /// Finds lanes whose address derives from a variable in shared memory but is outside it.
    fn look_behind_variable(&self, state: &mut State, e: &MemoryEvent<'_>, id: GlobalId) -> (u64, u64) {
        let variable = self.image.ir.global(id);
        let (Some((window, bytes)), Some(at)) = (e.windows.first(), self.image.addresses.get(id.0 as usize)) else {
            return (0, u64::MAX);
        };
        let (low, high) = (window + at, window + at + variable.size);
        let target = (low, high - 1);
        let size = u64::from(e.size);
        // Compilers also load what follows a variable in its last vector.
        let padded = !e.access.writes() && e.size > e.element;
        let end = if padded { low + self.image.shared_room(id) } else { high };
        let stray = lanes(e.actor.lanes).find(|l| {
            let address = e.addresses[*l as usize];
            address.wrapping_sub(*window) < *bytes && (address < low || address + size > end)
        });
        let Some(lane) = stray else { return target };
        let address = e.addresses[lane as usize];
        let verb = if e.access.writes() { "writes" } else { "reads" };
        let (name, kind) = ((self.names)(&variable.name), FindingKind::Bounds);
        let gap = match low.checked_sub(address) {
            Some(before) if before > 0 => format!("{before} bytes before its first"),
            _ => format!("{} bytes after its last", address + size - high),
        };
        state.report(kind, (e.actor.at, None), || Finding {
            kind,
            title: format!(
                "out of bounds: {verb} {} through `{name}`, which has {} bytes",
                name::shared(&self.image, self.names, address - window, e.element),
                variable.size
            ),
            parties: vec![self.party(&e.actor, lane, verb)],
            notes: vec![format!("the access {} {gap}", if address < low { "begins" } else { "ends" })],
            help: None,
            times: 1,
        });
        target
    }
}
