//! Loads from memory that the kernel never writes, which are part of no race: they are not recorded.
//!
//! Kernels cannot write constants. Otherwise, all accesses by which the kernel writes must derive from arguments or variables that are known, and calls and asynchronous
//! copies must be absent. A load through an argument is then ignored within what the argument points to, unless that is also
//! the target of a write. A write that strays into such memory is out of bounds (`--check memory`), and is not compared with
//! the loads that came before.

use crate::{
    Sanitizer, State,
    provenance::{Arguments, Source, target},
    site::{Place, of_site},
};
use margay_exec::{AccessKind, Memory, MemoryEvent, Semantics};
use margay_ir::{Func, Inst, MemSpace};
use margay_isa::{Effect, Mod, Opcode};

/// First and last address of no memory.
const NOWHERE: (u64, u64) = (1, 0);
/// Those of all memory that an instruction can access.
const ANYWHERE: (u64, u64) = (0, u64::MAX >> 1);

/// Memory in which the loads of a site are part of no race: the first and the last address.
pub type Ignored = Option<(u64, u64)>;

/// What an instruction writes outside of shared and local memory.
pub enum Written {
    Nothing,
    /// What its address derives from.
    Target,
    /// That is unknown.
    Anything,
}

impl Written {
    pub fn by(func: &Func, inst: &Inst) -> Written {
        let variant = func.variant(inst);
        let own = matches!(inst.space, Some(MemSpace::Shared | MemSpace::Local));
        match (variant.op.row().effect, variant.op) {
            (Effect::Pure | Effect::Machine | Effect::Control, _) => Written::Nothing,
            (Effect::Memory, Opcode::Ld | Opcode::Ldu | Opcode::Membar | Opcode::Fence) => Written::Nothing,
            (Effect::Memory, Opcode::St | Opcode::Atom | Opcode::Red) if own => Written::Nothing,
            (Effect::Memory, Opcode::St | Opcode::Atom | Opcode::Red) if !variant.has(Mod::Async) => Written::Target,
            (Effect::Warp, Opcode::Bar | Opcode::Barrier | Opcode::Shfl | Opcode::Vote | Opcode::Match) => {
                Written::Nothing
            }
            (Effect::Warp, Opcode::Redux | Opcode::Activemask | Opcode::Elect | Opcode::Mma) => Written::Nothing,
            _ => Written::Anything,
        }
    }
}

impl Arguments {
    /// Memory that is read through an argument, if the kernel does not write it.
    fn unwritten(&mut self, sanitizer: &Sanitizer, memory: &Memory, place: Place) -> Ignored {
        let Some(Source::Argument(offset)) = self.source(place.1) else { return None };
        let read = sanitizer.pointer(offset).and_then(|at| target(memory, at))?;
        let apart = |source: &Source| {
            let pointer = match source {
                Source::Argument(offset) => sanitizer.pointer(*offset),
                Source::Global(id) => sanitizer.image.addresses.get(id.0 as usize).copied(),
                Source::Variable(_) => return true,
                Source::Number | Source::Unclear => None,
            };
            // Nothing can be written through a null pointer.
            pointer == Some(0)
                || pointer.and_then(|at| target(memory, at)).is_some_and(|(base, end)| end <= read.0 || read.1 <= base)
        };
        self.written()?.iter().all(apart).then_some((read.0, read.1 - 1))
    }
}

impl Sanitizer {
    /// Whether all lanes load from memory that the kernel does not write.
    pub(crate) fn is_ignored(&self, state: &mut State, e: &MemoryEvent<'_>, site: u32) -> bool {
        let plain = e.order.semantics == Semantics::Weak && !e.order.asynchronous;
        if e.access != AccessKind::Load || !plain {
            return false;
        }
        if !matches!(e.space, MemSpace::Global | MemSpace::Generic | MemSpace::Const) {
            return false;
        }
        let known = state.ignored.get(site as usize).copied().flatten();
        let ignored = known.unwrap_or_else(|| {
            let found = match e.actor.callers {
                _ if e.space == MemSpace::Const => Some(ANYWHERE),
                [] => self.arguments(state, e.actor.at.0).unwritten(self, e.memory, e.actor.at),
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

    /// Where loads of a place need not be reported, of which `memo` gives the site.
    pub(crate) fn ignored_range(&self, state: &State, memo: u32) -> (u64, u64) {
        let site = memo.checked_sub(1).filter(|_| !self.footprints);
        site.and_then(|site| state.ignored.get(site as usize).copied().flatten().flatten()).unwrap_or(NOWHERE)
    }
}
