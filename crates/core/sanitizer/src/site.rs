//! Sites: instructions with their call stacks, to which records in shadow memory refer.

use crate::{
    hash::{Map, Mix},
    instructions,
    shadow::MAX_SITES,
};
use margay_exec::{AccessKind, Actor, Frame, Image, Ordering, Scope, Semantics, Tensor};
use margay_ir::{Func, FuncId, MemBase, Operand, SourcePlace, pass::liveness::only_definition};
use margay_isa::Opcode;
use std::{
    cell::OnceCell,
    hash::{Hash, Hasher},
};

/// A place in the program.
pub type Place = (FuncId, SourcePlace);

/// An instruction that accesses memory, with a call stack.
#[derive(Clone, Debug)]
pub struct Site {
    /// Function and place.
    pub at: Place,
    /// Callers, innermost first.
    pub callers: Vec<Frame>,
    /// The kind of access.
    pub access: AccessKind,
    /// Its memory ordering.
    pub order: Ordering,
    /// Size of an element in bytes.
    pub element: u32,
    /// Whether it [stands for an access of a part of the element](Site::stands_for_part), once that is known.
    part: OnceCell<bool>,
}

impl Site {
    /// Whether the operation is strong (manual, section 8.4).
    pub fn is_strong(&self) -> bool {
        self.order.semantics != Semantics::Weak
    }

    /// Whether it is a strong access of the word or halfword in which a smaller element lies: its address was rounded down to a multiple of its
    /// size. That is how libcu++ implements atomic operations on bytes and halfwords: it loads halfwords, and modifies words.
    pub fn stands_for_part(&self, image: &Image) -> bool {
        let rounds = || {
            let func = image.ir.func(self.at.0);
            instructions(func, self.at.1).any(|i| is_rounded(func, i, self.element))
        };
        self.is_strong() && matches!(self.element, 2 | 4) && *self.part.get_or_init(rounds)
    }

    /// The place in the kernel: of the instruction, or of the outermost call that leads to it.
    pub fn in_kernel(&self) -> Place {
        self.callers.last().map_or(self.at, |f| (f.func, f.at))
    }
}

/// Whether an instruction's address was rounded down to a multiple of `size`, a power of two.
fn is_rounded(func: &Func, inst: u32, size: u32) -> bool {
    let srcs = func.operands(func.insts[inst as usize].srcs);
    let base = srcs.iter().find_map(|o| if let Operand::Mem(MemBase::Reg(base), 0) = o { Some(*base) } else { None });
    let Some(and) = base.and_then(|base| only_definition(func, base)).filter(|i| func.variant(i).op == Opcode::And)
    else {
        return false;
    };
    let down = |o: &Operand| matches!(o, Operand::Imm(bits) if *bits as u32 == size.wrapping_neg());
    func.operands(and.srcs).iter().any(down)
}

/// The properties of an access that matter for races.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Whether it writes.
    pub writes: bool,
    /// Whether the operation is strong (manual, section 8.4).
    pub strong: bool,
    /// Whether it is volatile.
    pub volatile: bool,
    /// Whether it is performed in the async proxy.
    pub proxy: bool,
    /// Whether it is a load through the non-coherent cache.
    pub cached: bool,
    /// What it is to the tensor cores.
    pub tensor: Tensor,
    /// The scope.
    pub scope: Scope,
    /// The size of an element in bytes.
    pub element: u32,
}

impl Kind {
    /// Whether two accesses of the same bytes are morally strong whichever threads of the device perform them (manual, section 8.7.1), so that
    /// they do not race. Volatile accesses by lanes of a warp are left out.
    pub fn is_morally_strong_with(self, other: Kind) -> bool {
        let device = self.scope >= Scope::Gpu && other.scope >= Scope::Gpu;
        self.strong && other.strong && device && self.element == other.element && !(self.volatile && other.volatile)
    }
}

/// All sites seen in a launch.
#[derive(Default)]
pub struct Sites {
    /// The race-relevant properties of each site.
    pub kinds: Vec<Kind>,
    list: Vec<Site>,
    index: Map<u64, u32>,
    /// By place, the latest one without callers, and its number plus one.
    recent: Vec<(Known, u32)>,
}

/// What distinguishes sites without callers.
type Known = (u32, u32, AccessKind, Ordering, u32);

/// Size of the table of recent sites.
const RECENT: usize = 256;

impl Sites {
    /// The number of a site.
    #[inline]
    pub fn number(&mut self, actor: &Actor<'_>, access: AccessKind, order: Ordering, element: u32) -> u32 {
        let known = (actor.at.0.0, actor.at.1.span.start, access, order, element);
        let slot = (known.1 as usize ^ known.1 as usize >> 8) % RECENT;
        if actor.callers.is_empty()
            && let Some((recent, number)) = self.recent.get(slot)
            && *recent == known
            && *number != 0
        {
            return number - 1;
        }
        let number = self.find(actor, access, order, element);
        if actor.callers.is_empty() {
            self.recent.resize(RECENT, (known, 0));
            self.recent[slot] = (known, number + 1);
        }
        number
    }

    fn find(&mut self, actor: &Actor<'_>, access: AccessKind, order: Ordering, element: u32) -> u32 {
        let mut h = Mix::default();
        (actor.at.0.0, actor.at.1.span.start, access.writes(), access == AccessKind::Atomic, order, element)
            .hash(&mut h);
        actor.callers.iter().for_each(|f| (f.func.0, f.at.span.start).hash(&mut h));
        let (list, kinds, most) = (&mut self.list, &mut self.kinds, MAX_SITES);
        *self.index.entry(h.finish()).or_insert_with(|| {
            if list.len() < most as usize {
                let strong = order.semantics != Semantics::Weak;
                let Ordering { volatile, scope, proxy, tensor, cached, .. } = order;
                kinds.push(Kind { writes: access.writes(), strong, volatile, proxy, cached, tensor, scope, element });
                let part = OnceCell::new();
                list.push(Site { at: actor.at, callers: actor.callers.to_vec(), access, order, element, part });
            }
            list.len() as u32 - 1
        })
    }

    /// A site by its number.
    pub fn get(&self, number: u32) -> &Site {
        &self.list[number as usize]
    }
}

/// What is known of a site, in a list by its number; nothing at first.
pub fn of_site<T: Clone>(list: &mut Vec<Option<T>>, site: u32) -> &mut Option<T> {
    let place = site as usize;
    if list.len() <= place {
        list.resize(place + 1, None);
    }
    &mut list[place]
}
