//! Accesses that cannot race because of the memory they access: the kernel never writes it, or each thread has bytes of its own there. They
//! are not recorded.
//!
//! Kernels cannot write constants. For other memory, the addresses of all writes must derive from known arguments or variables, and the kernel
//! must not contain calls or asynchronous copies. Accesses that may overlap form a group. A group cannot race if it only reads, or if its
//! addresses are the same linear function of the thread's coordinates, by which every thread has bytes of its own (`apart.rs`). A
//! write that strays into such memory is out of bounds (`--check memory`), and is not compared with these accesses.

mod apart;

use crate::{
    Sanitizer, State,
    hash::Map,
    provenance::{Source, target},
    site::{Place, of_site},
};
use apart::Layout;
use margay_exec::{AccessKind, Memory, MemoryEvent, Semantics};
use margay_ir::{
    Callee, Func, FuncId, Inst, MemSpace, Operand,
    pass::{AXES, Condition, LaunchValues, Linear, LinearValues, is_quiet},
};
use margay_isa::{Effect, Mod, Opcode, Space};
use std::cell::OnceCell;

/// The first and last address of no memory.
const NOWHERE: (u64, u64) = (1, 0);
/// The first and last address of all memory that an instruction can access.
const ANYWHERE: (u64, u64) = (0, u64::MAX >> 1);

/// Memory in which the accesses of a site cannot race: its first and last address.
pub type Ignored = Option<(u64, u64)>;

/// How an instruction accesses memory that other CTAs may access.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Accessed {
    Nothing,
    /// It reads at its address.
    Read,
    /// It writes at its address.
    Written,
    /// It may access any memory.
    Anything,
}

impl Accessed {
    pub fn by(func: &Func, inst: &Inst) -> Accessed {
        let variant = func.variant(inst);
        let own =
            matches!(inst.space, Some(MemSpace::Shared | MemSpace::Local | MemSpace::KernelParam | MemSpace::Const));
        match (variant.op.row().effect, variant.op) {
            (Effect::Pure | Effect::Machine | Effect::Control, _) => Accessed::Nothing,
            (
                Effect::Memory,
                Opcode::Membar | Opcode::Fence | Opcode::Mbarrier | Opcode::Prefetch | Opcode::Prefetchu,
            ) => Accessed::Nothing,
            (Effect::Memory, Opcode::Ld | Opcode::Ldu | Opcode::St | Opcode::Atom | Opcode::Red) if own => {
                Accessed::Nothing
            }
            (Effect::Memory, Opcode::Ld | Opcode::Ldu) => Accessed::Read,
            (Effect::Memory, Opcode::St | Opcode::Atom | Opcode::Red)
                if !variant.has(Mod::Async) && !variant.has(Mod::Bulk) =>
            {
                Accessed::Written
            }
            (Effect::Warp, Opcode::Bar | Opcode::Barrier | Opcode::Shfl | Opcode::Vote | Opcode::Match) => {
                Accessed::Nothing
            }
            (Effect::Warp, Opcode::Redux | Opcode::Activemask | Opcode::Elect | Opcode::Mma) => Accessed::Nothing,
            _ => Accessed::Anything,
        }
    }
}

/// The memory in which the accesses of a kernel cannot race.
#[derive(Default)]
pub struct Unshared {
    /// The analyzed kernel.
    kernel: Option<FuncId>,
    /// By position of the instruction in the text.
    by_place: Map<u32, Ignored>,
}

/// An access to memory that other CTAs may access.
struct Access {
    /// Index of the instruction, and its position in the text.
    inst: u32,
    place: u32,
    writes: bool,
    /// Whether it is a load through the non-coherent cache.
    cached: bool,
    size: i64,
    /// The address, if it is linear.
    address: Option<Linear>,
    /// The range of addresses that it may access; the end is exclusive.
    extent: (u64, u64),
    /// What holds where it is executed, once that is asked.
    conditions: OnceCell<Vec<Condition>>,
}

impl Access {
    fn conditions(&self, values: &LinearValues<'_>) -> &[Condition] {
        self.conditions.get_or_init(|| values.conditions(self.inst))
    }
}

/// The accesses of a kernel to memory that other CTAs may access.
struct Accesses {
    known: Vec<Access>,
    /// Whether there are others, at unknown addresses; they only read.
    others: bool,
}

impl Unshared {
    fn of(sanitizer: &Sanitizer, memory: &Memory, kernel: FuncId, sources: &[(u32, Source)]) -> Unshared {
        let program = &sanitizer.image.ir;
        let address = |id| (program.global(id).space == Space::Global).then(|| sanitizer.global(id)).flatten();
        let launch =
            LaunchValues { grid: sanitizer.grid, block: sanitizer.block, params: &sanitizer.params, address: &address };
        let values = LinearValues::new(program.func(kernel), launch);
        let mut by_place = Map::default();
        let extents = launch.extents();
        if let Some(accesses) = sanitizer.accesses(memory, kernel, sources, (&values, &extents)) {
            let others = accesses.others;
            for group in groups(accesses.known) {
                let (low, high) =
                    group.iter().fold((u64::MAX, 0), |(low, high), a| (low.min(a.extent.0), high.max(a.extent.1)));
                let apart = !group.iter().any(|a| a.writes) || !others && are_apart(&values, &group, &extents);
                for access in &group {
                    let found = apart.then_some((low, high - 1));
                    by_place
                        .entry(access.place)
                        .and_modify(|known: &mut Ignored| *known = known.filter(|k| Some(*k) == found))
                        .or_insert(found);
                }
            }
        }
        Unshared { kernel: Some(kernel), by_place }
    }
}

/// Divides accesses into groups that do not overlap.
fn groups(mut all: Vec<Access>) -> Vec<Vec<Access>> {
    all.sort_by_key(|a| a.extent);
    let (mut groups, mut end) = (Vec::<Vec<Access>>::new(), 0);
    for access in all {
        let (low, high) = access.extent;
        match groups.last_mut() {
            Some(group) if low < end => group.push(access),
            _ => groups.push(vec![access]),
        }
        end = end.max(high);
    }
    groups
}

/// Whether no two threads access the same byte through a group.
fn are_apart(values: &LinearValues<'_>, group: &[Access], extents: &[i64; AXES]) -> bool {
    let Some(first) = group.first().and_then(|a| a.address) else { return false };
    let alike =
        |a: &Access| !a.cached && a.address.is_some_and(|v| (v.factors, v.period) == (first.factors, first.period));
    if !group.iter().all(alike) {
        return false;
    }
    // The conditions that all of them have in common.
    let mut conditions = group[0].conditions(values).to_vec();
    for access in &group[1..] {
        let here = access.conditions(values);
        conditions.retain_mut(|known| {
            let same = here.iter().find(|c| c.value == known.value);
            same.inspect(|c| (known.least, known.most) = (known.least.min(c.least), known.most.max(c.most))).is_some()
        });
    }
    let mut offsets: Vec<i64> = group.iter().filter_map(|a| a.address).map(|v| v.constant).collect();
    offsets.sort();
    offsets.dedup();
    let size = group.iter().map(|a| a.size).max().unwrap_or(0);
    Layout::all(first, &conditions, extents).any(|layout| layout.is_apart(&offsets, size, first.period))
}

impl Sanitizer {
    /// The address of a variable.
    fn global(&self, id: margay_ir::GlobalId) -> Option<u64> {
        self.image.addresses.get(id.0 as usize).copied()
    }

    /// The accesses of a kernel; `None` if it may write anything.
    fn accesses(
        &self,
        memory: &Memory,
        kernel: FuncId,
        sources: &[(u32, Source)],
        (values, extents): (&LinearValues<'_>, &[i64; AXES]),
    ) -> Option<Accesses> {
        let func = self.image.ir.func(kernel);
        let mut all = Accesses { known: Vec::new(), others: false };
        for (inst, source) in sources {
            let code = &func.insts[*inst as usize];
            if self.calls_quiet(func, code) {
                continue;
            }
            let accessed = Accessed::by(func, code);
            let writes = match accessed {
                Accessed::Nothing => continue,
                Accessed::Anything => return None,
                Accessed::Read | Accessed::Written => accessed == Accessed::Written,
            };
            let (pointer, variable) = match source {
                Source::Variable(_) => continue,
                Source::Argument(offset) => (self.pointer(*offset), None),
                Source::Global(id) => (self.global(*id), Some(self.image.ir.global(*id).size)),
                Source::Number | Source::Unclear => (None, None),
            };
            // Nothing can be accessed through a null pointer.
            if pointer == Some(0) {
                continue;
            }
            let around =
                pointer.and_then(|at| variable.map_or_else(|| target(memory, at), |size| Some((at, at + size))));
            let variant = func.variant(code);
            let size = i64::from(variant.vec() * variant.t().bytes());
            let address = pointer.and_then(|_| values.address(code));
            let conditions = OnceCell::new();
            let here = || conditions.get_or_init(|| values.conditions(*inst));
            let exact = address.filter(|v| v.period == 0).and_then(|v| Layout::extent(v, here(), extents));
            let exact = exact.and_then(|(least, most)| {
                Some((u64::try_from(least).ok()?, u64::try_from(most.checked_add(size)?).ok()?))
            });
            let extent = match (exact, around) {
                (Some((low, high)), Some((base, end))) => Some((low.clamp(base, end), high.clamp(base, end))),
                (exact, around) => exact.or(around),
            };
            let Some(extent) = extent.filter(|(low, high)| low < high) else {
                all.others = true;
                if writes {
                    return None;
                }
                continue;
            };
            let place = func.places[code.at as usize].span.start;
            let (inst, cached) = (*inst, variant.has(Mod::Nc));
            all.known.push(Access { inst, place, writes, cached, size, address, extent, conditions });
        }
        Some(all)
    }

    /// Whether an instruction calls a function that [concerns no other thread](is_quiet).
    fn calls_quiet(&self, func: &Func, inst: &Inst) -> bool {
        let site = match func.operands(inst.srcs).last() {
            Some(Operand::Call(site)) => func.calls.get(*site as usize),
            _ => None,
        };
        matches!(site.map(|site| &site.callee), Some(Callee::Direct(callee)) if is_quiet(&self.image.ir, *callee))
    }

    /// Whether the access cannot race in any lane.
    pub(crate) fn is_ignored(&self, state: &mut State, e: &MemoryEvent<'_>, site: u32) -> bool {
        let plain = e.order.semantics == Semantics::Weak && !e.order.asynchronous;
        if e.access == AccessKind::Free || !plain {
            return false;
        }
        if !matches!(e.space, MemSpace::Global | MemSpace::Generic | MemSpace::Const) {
            return false;
        }
        let known = state.ignored.get(site as usize).copied().flatten();
        let ignored = known.unwrap_or_else(|| {
            let found = match e.actor.callers {
                _ if e.space == MemSpace::Const => Some(ANYWHERE),
                [] => self.unshared(state, e.memory, e.actor.at),
                _ => None,
            };
            *of_site(&mut state.ignored, site) = Some(found);
            found
        });
        let Some((first, last)) = ignored else { return false };
        let size = u64::from(e.size);
        let within = |at: u64| first <= at && at.wrapping_add(size - 1) <= last && at <= last;
        match e.row {
            Some((base, stride)) if e.actor.lanes == u32::MAX => {
                within(base) && within(base.wrapping_add(stride.wrapping_mul(31)))
            }
            _ => crate::lanes(e.actor.lanes).all(|lane| within(e.addresses[lane as usize])),
        }
    }

    fn unshared(&self, state: &mut State, memory: &Memory, (kernel, at): Place) -> Ignored {
        if state.unshared.kernel != Some(kernel) {
            let sources = self.arguments(state, kernel).sources();
            state.unshared = Unshared::of(self, memory, kernel, sources);
        }
        state.unshared.by_place.get(&at.span.start).copied().flatten()
    }

    /// The memory in which accesses at the site of a memo need not be reported.
    pub(crate) fn ignored_range(&self, state: &State, memo: u32) -> (u64, u64) {
        let site = memo.checked_sub(1).filter(|_| !self.footprints);
        site.and_then(|site| state.ignored.get(site as usize).copied().flatten().flatten()).unwrap_or(NOWHERE)
    }
}
