//! Accesses of a thread to consecutive elements that are performed as one, such as the bytes of a word or the members of a struct.
//!
//! If each lane has an address of its own, every access costs a gather, whatever its size, so one gather of words replaces several of bytes.
//! Accesses that share a check ([`super::group`]) are fused: once it has passed, none of them can fault. Nothing between the first and the
//! last of them writes memory or waits; if they are stores, nothing between them accesses memory at all. So no thread can observe when each
//! was performed: the order of weak accesses of one thread to different locations is open (manual, section 8.9). Loads are performed at the
//! first of them, stores at the last, unless another store to the same bytes comes between.

use super::{
    address::{LaneAccess, name},
    group::{Group, Grouped, Member},
    unit::{Direction, Strength, near, strength},
};
use crate::emit::{
    function::{Emitter, Result, affine::affine_form},
    memory::address::Address,
    text::{Elem, Ty, Val},
};
use margay_ir::{Func, Inst, MemBase, MemSpace, Operand, VReg, pass::Shape};
use margay_isa::{Effect, Opcode, Type};
use std::{collections::HashMap, rc::Rc};

/// Accesses that are performed as one.
#[derive(Debug)]
struct Fused {
    /// In program order.
    members: Vec<Member>,
    /// The offset of the lowest element.
    least: i64,
    held: Held,
}

/// How elements are held between the first and the last access.
#[derive(Debug)]
enum Held {
    /// All of a lane in a word of this type, in a variable `<32 x word>`.
    Word(Elem, Val),
    /// Each in a variable of its own, `<32 x elem>`: they are all that lies between one lane's and the next one's, so that they are stored as a
    /// row.
    Row(Vec<Val>),
}

/// One of several accesses that are performed as one.
#[derive(Clone, Debug)]
pub(in crate::emit) struct Part {
    fused: Rc<Fused>,
    /// Its place among the members.
    place: usize,
}

impl Part {
    /// The position of its element in the word, in bits.
    fn shift(&self) -> u32 {
        (self.fused.members[self.place].offset - self.fused.least) as u32 * 8
    }
}

/// An access that may be fused with others of the same epoch.
struct Candidate {
    member: Member,
    epoch: u32,
}

/// The members of a group that may be fused, by [`Direction`].
fn candidates(func: &Func, group: &Group) -> [Vec<Candidate>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    let (Some(first), Some(last)) = (group.members.first(), group.members.last()) else { return found };
    let mut members = group.members.iter().peekable();
    // By direction, the number of the current stretch: without writes, for loads; without accesses other than this group's, for stores.
    let mut epochs = [0, 0];
    for i in first.inst..=last.inst {
        let inst = &func.insts[i as usize];
        let variant = func.variant(inst);
        let member = members.next_if(|m| m.inst == i);
        let direction = if variant.op == Opcode::St { Direction::Store } else { Direction::Load };
        let simple = variant.vec() == 1 && strength(variant) == Strength::Weak && variant.t().bytes() <= 4;
        if !matches!(variant.op.row().effect, Effect::Pure) {
            epochs[0] +=
                u32::from(!matches!(variant.op, Opcode::Ld | Opcode::Ldu) || strength(variant) != Strength::Weak);
            epochs[1] += u32::from(member.is_none() || direction == Direction::Load || !simple);
        }
        if let Some(member) = member.filter(|_| simple) {
            found[direction as usize].push(Candidate { member: *member, epoch: epochs[direction as usize] });
        }
    }
    found
}

impl Fused {
    /// Bytes of all elements of a lane.
    fn bytes(&self) -> u32 {
        self.members.iter().map(|m| m.bytes).sum()
    }
}

/// The elements of a word and its type: 4 bytes, 2 halves, or 2 elements of 4 bytes.
fn word(bytes: u32) -> (usize, Elem) {
    match bytes {
        1 => (4, Elem::I32),
        2 => (2, Elem::I32),
        _ => (2, Elem::I64),
    }
}

/// The members of consecutive elements among candidates, each in program order; `counts` says how many of a size.
fn runs(candidates: &mut [Candidate], direction: Direction, counts: impl Fn(u32) -> Option<usize>) -> Vec<Vec<Member>> {
    candidates.sort_by_key(|c| (c.epoch, c.member.bytes, c.member.offset, c.member.inst));
    let stored = match direction {
        Direction::Load => Stored::default(),
        Direction::Store => Stored::new(candidates),
    };
    let mut found = Vec::new();
    let mut rest = &candidates[..];
    while let [first, others @ ..] = rest {
        let bytes = first.member.bytes;
        let Some(count) = counts(bytes) else {
            rest = others;
            continue;
        };
        let follows = |(k, c): (usize, &Candidate)| {
            let at = first.member.offset + k as i64 * i64::from(bytes);
            c.epoch == first.epoch && c.member.bytes == bytes && c.member.offset == at
        };
        if rest.len() < count || !rest[..count].iter().enumerate().all(follows) {
            rest = others;
            continue;
        }
        let mut members: Vec<Member> = rest[..count].iter().map(|c| c.member).collect();
        members.sort_by_key(|m| m.inst);
        if stored.comes_between(first.epoch, &members) {
            rest = others;
            continue;
        }
        found.push(members);
        rest = &rest[count..];
    }
    found
}

/// By epoch and offset of a byte: the stores to it.
#[derive(Default)]
struct Stored(HashMap<(u32, i64), Vec<u32>>);

impl Stored {
    fn new(candidates: &[Candidate]) -> Stored {
        let mut stored = Stored::default();
        for Candidate { member, epoch } in candidates {
            for byte in member.offset..member.offset + i64::from(member.bytes) {
                stored.0.entry((*epoch, byte)).or_default().push(member.inst);
            }
        }
        stored.0.values_mut().for_each(|stores| stores.sort_unstable());
        stored
    }

    /// Whether a byte of these members, which are in program order, is stored again before the last member, where all are performed.
    fn comes_between(&self, epoch: u32, members: &[Member]) -> bool {
        let Some(last) = members.last() else { return false };
        members.iter().any(|m| {
            let again = |byte: i64| {
                let stores = self.0.get(&(epoch, byte)).map_or(&[][..], Vec::as_slice);
                stores.get(stores.partition_point(|i| *i <= m.inst)).is_some_and(|i| *i < last.inst)
            };
            (m.offset..m.offset + i64::from(m.bytes)).any(again)
        })
    }
}

/// Adds accesses that are performed as one.
fn add(parts: &mut HashMap<u32, Part>, members: Vec<Member>, held: Held) {
    let least = members.iter().map(|m| m.offset).min().unwrap_or(0);
    let fused = Rc::new(Fused { members, least, held });
    for (place, member) in fused.members.iter().enumerate() {
        parts.insert(member.inst, Part { fused: fused.clone(), place });
    }
}

/// The address register of an access.
fn base(func: &Func, inst: u32) -> Option<VReg> {
    match func.operands(func.insts[inst as usize].srcs).first() {
        Some(Operand::Mem(MemBase::Reg(r), _)) => Some(*r),
        _ => None,
    }
}

impl Emitter<'_> {
    /// Finds the accesses that are performed as one.
    pub fn fuse_accesses(&mut self) {
        if self.options.observe.is_some() || self.options.count {
            return;
        }
        let func = self.func;
        let mut groups: Vec<Group> = self
            .accesses
            .groups
            .values()
            .filter_map(|g| match g {
                Grouped::First(group) => Some(group.clone()),
                Grouped::Later => None,
            })
            .collect();
        groups.sort_by_key(|g| g.members.first().map(|m| m.inst));
        let mut parts = HashMap::new();
        for group in &groups {
            let Some(r) = group.members.first().and_then(|m| base(func, m.inst)) else { continue };
            let [mut loads, mut stores] = candidates(func, group);
            for members in runs(&mut stores, Direction::Store, |bytes| self.elements_of_row(r, bytes)) {
                let elem = Ty::lanes(Elem::int(8 * members[0].bytes)).to_string();
                let held = Held::Row(members.iter().map(|_| self.w.alloca(&elem, 64)).collect());
                stores.retain(|c| !members.iter().any(|m| m.inst == c.member.inst));
                add(&mut parts, members, held);
            }
            for (candidates, direction) in [(&mut loads, Direction::Load), (&mut stores, Direction::Store)] {
                for members in runs(candidates, direction, |bytes| Some(word(bytes).0)) {
                    let (_, word) = word(members[0].bytes);
                    if self.gains(r, members[0].bytes, direction) {
                        let variable = self.w.alloca(&Ty::lanes(word).to_string(), 64);
                        add(&mut parts, members, Held::Word(word, variable));
                    }
                }
            }
        }
        self.accesses.fused = parts;
    }

    /// How many elements of a size lie between the addresses of neighboring lanes, if there are few and the addresses are rows.
    fn elements_of_row(&self, r: VReg, bytes: u32) -> Option<usize> {
        let slot = &self.slots[r.0 as usize];
        let own = affine_form(slot.shape).map(|(_, stride)| stride);
        let stride = u32::try_from(own.or_else(|| slot.shadow.as_ref().map(|s| s.stride))?).ok()?;
        (stride.is_multiple_of(bytes) && (2..=4).contains(&(stride / bytes))).then_some((stride / bytes) as usize)
    }

    /// Whether fusing accesses at a register pays. Rows of adjacent or nearby elements are not worth it: they are loaded together with the
    /// elements between them anyway.
    fn gains(&self, r: VReg, bytes: u32, direction: Direction) -> bool {
        let slot = &self.slots[r.0 as usize];
        let form = affine_form(slot.shape);
        if direction == Direction::Store {
            return slot.shape != Shape::Uniform;
        }
        match form {
            None => slot.shadow.is_none(),
            Some((width, stride)) => {
                let adjacent = stride == i64::from(bytes);
                stride != 0 && !adjacent && near(stride, Elem::int(8 * bytes), width).is_none()
            }
        }
    }

    /// The part of a fused access that the current instruction is.
    pub(super) fn fused(&self, operand: &Operand) -> Option<Part> {
        let found = self.accesses.fused.get(&self.inst)?;
        matches!(operand, Operand::Mem(MemBase::Reg(_), _)).then(|| found.clone())
    }

    /// Emits a load that is performed together with others.
    pub(super) fn load_fused(&mut self, source: &Operand, part: Part, ty: Type, dsts: &[Operand]) -> Result<()> {
        let Part { fused, place } = &part;
        let Held::Word(elem, variable) = &fused.held else { return self.refuse("a load in a row") };
        if *place == 0 {
            self.access_fused(fused, source, false, |e, address| {
                let found = e.fetch(address, *elem, 1, None, Strength::Weak);
                let all = e.w.splat(&found[0]);
                e.w.store(&all, variable, 64);
                Ok(())
            })?;
        }
        let all = self.w.get_changed(Ty::lanes(*elem), variable, 0, 64);
        let one = self.w.op_const("lshr", &all, part.shift().into());
        let one = self.w.resize(&one, Elem::int(ty.bits()), false);
        dsts.iter().for_each(|d| self.write_extended(d, &one, ty, None));
        Ok(())
    }

    /// Emits a store that is performed together with others.
    pub(super) fn store_fused(&mut self, inst: &Inst, target: &Operand, part: Part, value: &Val) -> Result<()> {
        let Part { fused, place } = &part;
        if *place == 0 {
            // The check of all accesses comes before the first of them.
            self.access(inst, target, (fused.members[0].bytes, true), None, |_, _| Ok(()))?;
        }
        let (own, is_last) = (self.w.splat(value), place + 1 == fused.members.len());
        let (word, variable) = match &fused.held {
            Held::Word(word, variable) => (*word, variable),
            Held::Row(variables) => {
                self.w.store(&own, &variables[*place], 64);
                return if is_last { self.store_row(fused, variables, target, own.ty) } else { Ok(()) };
            }
        };
        let own = self.w.resize(&own, word, false);
        let mut all = self.w.op_const("shl", &own, part.shift().into());
        if *place > 0 {
            let before = self.w.get_changed(Ty::lanes(word), variable, 0, 64);
            all = self.w.op("or", &before, &all);
        }
        if !is_last {
            self.w.store(&all, variable, 64);
            return Ok(());
        }
        self.access_fused(fused, target, true, |e, address| {
            e.put(address, std::slice::from_ref(&all), word.bits() / 8, None, Strength::Weak);
            Ok(())
        })
    }

    /// Stores elements that make up a row, or as words where lanes are left out or addresses are no row after all.
    fn store_row(&mut self, fused: &Fused, variables: &[Val], target: &Operand, ty: Ty) -> Result<()> {
        let mut parts: Vec<(i64, &Val)> = fused.members.iter().map(|m| m.offset - fused.least).zip(variables).collect();
        parts.sort_by_key(|(offset, _)| *offset);
        let values: Vec<Val> = parts.iter().map(|(_, p)| self.w.get_changed(ty, p, 0, 64)).collect();
        let (bytes, all) = (fused.members[0].bytes, i64::from(fused.bytes()));
        self.access_fused(fused, target, true, |e, address| {
            if matches!(address, Address::Affine { stride, .. } if *stride == all) && e.lanes(None).is_none() {
                e.put(address, &values, bytes, None, Strength::Weak);
                return Ok(());
            }
            let (count, elem) = word(bytes);
            for (elements, k) in values.chunks(count).zip(0..) {
                let at = address.plus(&mut e.w, k * count as i64 * i64::from(bytes));
                if elements.len() == count {
                    let all = e.packed(elements, elem);
                    e.put(&at, &[all], elem.bits() / 8, None, Strength::Weak);
                    continue;
                }
                for (element, k) in elements.iter().zip(0..) {
                    let at = at.plus(&mut e.w, k * i64::from(bytes));
                    e.put(&at, std::slice::from_ref(element), bytes, None, Strength::Weak);
                }
            }
            Ok(())
        })
    }

    /// Elements of a lane as one word, the first one in the lowest bits.
    fn packed(&mut self, elements: &[Val], word: Elem) -> Val {
        let mut all = self.w.resize(&elements[0], word, false);
        for (element, k) in elements.iter().zip(0..).skip(1) {
            let element = self.w.resize(element, word, false);
            let element = self.w.op_const("shl", &element, k * i128::from(elements[0].ty.elem.bits()));
            all = self.w.op("or", &all, &element);
        }
        all
    }

    /// Emits an access to all elements, which is aligned as each of them is.
    fn access_fused(
        &mut self,
        fused: &Fused,
        operand: &Operand,
        write: bool,
        f: impl FnMut(&mut Self, &super::Address) -> Result<()>,
    ) -> Result<()> {
        let (Operand::Mem(base, _), Member { inst, bytes, .. }) = (operand, fused.members[0]) else {
            return self.refuse("an address");
        };
        let space = self.func.insts[inst as usize].space.unwrap_or(MemSpace::Generic);
        let Some(name) = name(space) else { return self.refuse(".shared::cluster") };
        let what = LaneAccess {
            space,
            name,
            offset: fused.least,
            bytes: fused.bytes(),
            write,
            mask: None,
            members: &fused.members,
        };
        self.accesses.aligned = Some(bytes);
        let done = self.access_as(operand, base, &what, f);
        self.accesses.aligned = None;
        done
    }
}
