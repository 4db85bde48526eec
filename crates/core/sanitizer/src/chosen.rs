//! Loads ahead of the condition under which their value is used.
//!
//! Compilers load from a variable that always exists before they know whether the program reads it: `ready ? data : 0` becomes an acquiring
//! load of `ready`, a load of `data`, and a selection. A lane that has read `ready` as 0 does not read `data` in CUDA, so its load is no
//! access. The condition may depend on strong loads before it in the same block, of which the values are remembered, and on the index
//! of the thread.

use crate::{
    Sanitizer, State,
    hash::Map,
    instructions,
    site::{Site, of_site},
    unused::{Code, DEPTH, definitions},
};
use margay_exec::{AccessKind, LANES, MemoryEvent, Row};
use margay_ir::{
    Func, FuncId, Operand, VReg,
    pass::{
        BitSet, conditions_of_use,
        liveness::{inst_reads, inst_writes},
    },
};
use margay_isa::{Opcode, Type};
use std::sync::Arc;

/// A load whose value is used under conditions.
#[derive(Debug)]
struct Load {
    /// At least one predicate must have this value.
    conditions: Vec<(VReg, bool)>,
    /// What strong loads before it in the block yield, and where they begin in the text.
    sources: Vec<(VReg, u32)>,
    /// The instructions that define registers, as far as these hold the values that the conditions depend on.
    defs: Vec<Option<u32>>,
}

/// What is known of such loads.
#[derive(Default)]
pub struct Chosen {
    /// By site, once it is known.
    loads: Vec<Option<Option<Arc<Load>>>>,
    /// By site, once it is known: whether a condition may depend on what it yields.
    sources: Vec<Option<bool>>,
    /// By CTA, warp, function and position of a strong load: what the lanes have read by it.
    values: Map<(u32, u32, u32, u32), Row>,
}

impl Load {
    /// The plain load of a site, if its value is used under conditions of which something may be known.
    fn of(func: &Func, site: &Site) -> Option<Load> {
        let mut here = instructions(func, site.at.1);
        let (Some(load), None) = (here.next(), here.next()) else { return None };
        let conditions = conditions_of_use(func, load)?;
        let block = func.blocks.iter().map(|b| b.insts.range()).find(|range| range.contains(&(load as usize)))?;
        let mut defs = definitions(func);
        // Of a loop, a predicate outside the block may be of an earlier round than what is loaded in it.
        let (mut varies, mut sources) = (BitSet::new(func.regs.len()), Vec::new());
        for i in block.start..load as usize {
            let inst = &func.insts[i];
            let (Opcode::Ld | Opcode::Atom, [Operand::Reg(r)]) = (func.variant(inst).op, func.operands(inst.dsts))
            else {
                continue;
            };
            if defs[r.0 as usize] == Some(i as u32) && func.regs[r.0 as usize].bits() <= 32 {
                varies.insert(r.0);
                sources.push((*r, func.places[inst.at as usize].span.start));
            }
        }
        let mut more = true;
        while std::mem::take(&mut more) {
            for inst in &func.insts {
                let mut reads = false;
                inst_reads(func, inst, &mut |r| reads |= varies.has(r.0));
                inst_writes(func, inst, &mut |r| {
                    more |= reads && !varies.has(r.0);
                    if reads {
                        varies.insert(r.0);
                    }
                });
            }
        }
        for r in varies.iter() {
            let def = &mut defs[r as usize];
            *def = def.filter(|i| block.contains(&(*i as usize)));
        }
        Some(Load { conditions, sources, defs })
    }
}

impl Sanitizer {
    fn conditional<'s>(&self, state: &'s mut State, site: u32) -> Option<&'s Arc<Load>> {
        let State { sites, chosen: Chosen { loads, .. }, .. } = state;
        let of = |site: &Site| {
            let plain = site.access == AccessKind::Load && !site.is_strong() && !site.order.asynchronous;
            let load = if plain { Load::of(self.image.ir.func(site.at.0), site) } else { None };
            load.filter(|load| self.may_be_decided(site.at.0, load)).map(Arc::new)
        };
        of_site(loads, site).get_or_insert_with(|| of(sites.get(site))).as_ref()
    }

    /// A function for a warp in which the sources of a load have yielded these values.
    fn code<'a>(&'a self, func: FuncId, warp: u32, load: &'a Load, values: Vec<(VReg, Row)>) -> Code<'a> {
        let threads = std::array::from_fn(|lane| self.thread(warp, lane as u32));
        Code { func: self.image.ir.func(func), threads, block: self.block, defs: load.defs[..].into(), values }
    }

    /// Whether enough may be known to decide that some lane does not use what a load yields.
    fn may_be_decided(&self, func: FuncId, load: &Load) -> bool {
        let read = |value: u32| load.sources.iter().map(|(r, _)| (*r, Row([value; LANES]))).collect::<Vec<_>>();
        let known = |values: Vec<(VReg, Row)>| {
            let of = |warp| {
                let code = self.code(func, warp, load, values.clone());
                let known = |p: VReg| {
                    code.certain(&Operand::Reg(p), true, DEPTH) | code.certain(&Operand::Reg(p), false, DEPTH)
                };
                load.conditions.iter().all(|(p, _)| known(*p) != 0)
            };
            (0..self.warps).any(of)
        };
        known(read(0)) || known(read(u32::MAX))
    }

    /// Whether an access is a load whose value is used under conditions, or a strong one on which these may depend.
    pub(crate) fn may_choose(&self, state: &mut State, site: u32) -> bool {
        self.conditional(state, site).is_some() || self.is_source(state, site)
    }

    /// Whether a condition may depend on what a site yields.
    fn is_source(&self, state: &mut State, site: u32) -> bool {
        let State { sites, chosen: Chosen { sources, .. }, .. } = state;
        *of_site(sources, site).get_or_insert_with(|| {
            let site = sites.get(site);
            let func = self.image.ir.func(site.at.0);
            if !site.is_strong() || site.access == AccessKind::Store || site.order.asynchronous || site.element > 4 {
                return false;
            }
            let blocks = || func.blocks.iter().map(|b| b.insts.range());
            let follows = |i: u32| {
                let block = blocks().find(|range| range.contains(&(i as usize))).unwrap_or(0..0);
                let loads = |l: &usize| func.variant(&func.insts[*l]).op == Opcode::Ld;
                (i as usize + 1..block.end).filter(loads).any(|l| conditions_of_use(func, l as u32).is_some())
            };
            instructions(func, site.at.1).any(follows)
        })
    }

    /// The lanes of an access that need what it reads, as far as known; notes what strong loads yield.
    pub(crate) fn lanes_that_choose(&self, state: &mut State, e: &MemoryEvent<'_>, site: u32) -> u32 {
        // Of other sites, the engine remembers the number.
        if e.memo.get() != 0 || e.access == AccessKind::Store {
            return e.actor.lanes;
        }
        let (func, at) = e.actor.at;
        let key = |start: u32| (self.index(e.actor.cta), e.actor.warp, func.0, start);
        if self.is_source(state, site) {
            let mut values = *state.chosen.values.get(&key(at.span.start)).unwrap_or(&Row::ZERO);
            let mut whole = e.size <= 4 && self.extends_by_zeros(site, state);
            for lane in crate::lanes(e.actor.lanes) {
                let (mut bytes, address) = ([0; 4], e.addresses[lane as usize]);
                // Of lanes that update one location, each reads another value.
                let alone = |other: u32| other == lane || e.addresses[other as usize] != address;
                whole &= e.access == AccessKind::Load || crate::lanes(e.actor.lanes).all(alone);
                whole = whole && (e.peek)(address, &mut bytes[..e.size as usize]);
                values.0[lane as usize] = u32::from_le_bytes(bytes);
            }
            match whole {
                true => state.chosen.values.insert(key(at.span.start), values),
                false => state.chosen.values.remove(&key(at.span.start)),
            };
            return e.actor.lanes;
        }
        let Some(load) = self.conditional(state, site).cloned() else { return e.actor.lanes };
        let read = |(r, start): &(VReg, u32)| Some((*r, *state.chosen.values.get(&key(*start))?));
        let values = load.sources.iter().filter_map(read).collect();
        let code = self.code(func, e.actor.warp, &load, values);
        let unused = |(p, value): &(VReg, bool)| code.certain(&Operand::Reg(*p), !value, DEPTH);
        e.actor.lanes & !load.conditions.iter().map(unused).fold(u32::MAX, |all, lanes| all & lanes)
    }

    /// Whether a register is as what a site loads in all its bytes, and zero beyond.
    fn extends_by_zeros(&self, site: u32, state: &State) -> bool {
        let site = state.sites.get(site);
        let func = self.image.ir.func(site.at.0);
        let signed = |i: u32| matches!(func.variant(&func.insts[i as usize]).t(), Type::S8 | Type::S16);
        !instructions(func, site.at.1).any(signed)
    }
}
