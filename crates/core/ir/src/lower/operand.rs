//! Instructions and their operands: sorted into destinations and sources, vectors split, constants as bits, state spaces
//! resolved (manual, chapter 6 and section 5.1.6).

use super::{
    LowerError,
    body::{Builder, Place, VarHome},
    constant::{float_bits, int_bits},
    info::{Named, Slot},
    link::Home,
};
use crate::{FormalHome, Inst, MemBase, MemSpace, Operand, VReg};
use margay_check::{self as check, Base, FuncKind, RegDecl, RegId, SymRef};
use margay_isa::{Component, Part, Role, Space, Special, Type};
use margay_syntax::tree::List;

/// State that is collected while the operands of an instruction are walked.
#[derive(Default)]
pub(super) struct Parts {
    dsts: Vec<Operand>,
    partners: Vec<Operand>,
    srcs: Vec<Operand>,
    /// Registers of module scope to store afterwards: offset in the thread block, value.
    stores: Vec<(u32, VReg)>,
    /// The first memory operand's base and the space of its symbol.
    base: Option<(Base, Option<MemSpace>)>,
}

impl Parts {
    fn clear(&mut self) {
        self.dsts.clear();
        self.partners.clear();
        self.srcs.clear();
        self.stores.clear();
        self.base = None;
    }
}

impl Builder<'_> {
    /// Lowers one instruction that is not a terminator.
    pub(super) fn inst(&mut self, index: u32, at: Place) -> Result<(), LowerError> {
        let inst = self.body.insts[index as usize];
        let infos = self.infos.clone();
        let info = &infos[inst.variant.0 as usize];
        let guard = match inst.guard {
            Some(g) => Some((self.read_scalar(g.reg, at)?, g.negated)),
            None => None,
        };
        if info.is_call {
            return self.call(&inst, inst.variant.0, guard, at);
        }
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        self.walk(&info.operands, inst.operands, &mut parts, at)?;
        parts.dsts.append(&mut parts.partners);
        if info.sets_carry {
            parts.dsts.push(Operand::Reg(self.carry()));
        }
        if info.reads_carry {
            parts.srcs.push(Operand::Reg(self.carry()));
        }
        let space = self.space(info.space, parts.base);
        if matches!(space, Some(MemSpace::Shared | MemSpace::Local)) {
            // Addresses in windows have 32 bits.
            let offset = parts.srcs.iter_mut().find_map(|o| if let Operand::Mem(_, at) = o { Some(at) } else { None });
            offset.into_iter().for_each(|at| *at = i64::from(*at as i32));
        }
        let (dsts, srcs) = (self.list(&parts.dsts), self.list(&parts.srcs));
        self.func.insts.push(Inst { variant: inst.variant.0, guard, dsts, srcs, space, at: at.index });
        for (offset, value) in parts.stores.drain(..) {
            self.thread_store(offset, value, guard, at)?;
        }
        self.parts = parts;
        Ok(())
    }

    fn walk(
        &mut self,
        slots: &[Slot],
        operands: List<check::Operand>,
        parts: &mut Parts,
        at: Place,
    ) -> Result<(), LowerError> {
        for (slot, i) in slots.iter().zip(operands.range()) {
            self.operand(slot, self.body.operands[i], parts, at)?;
        }
        Ok(())
    }

    fn operand(
        &mut self,
        slot: &Slot,
        operand: check::Operand,
        parts: &mut Parts,
        at: Place,
    ) -> Result<(), LowerError> {
        let opnd = slot.opnd;
        match opnd.role {
            Role::Dst => self.destination(operand, parts, at)?,
            Role::Src | Role::Imm | Role::Var | Role::Handle(_) => self.source(slot, operand, parts, at)?,
            Role::Addr => self.address(operand, parts, at)?,
            Role::Group(_) => match operand {
                check::Operand::Group(list) | check::Operand::Vector(list) => {
                    self.walk(&slot.inner, list, parts, at)?
                }
                single => {
                    if let Some(first) = slot.inner.first() {
                        self.operand(first, single, parts, at)?;
                    }
                }
            },
            Role::Label | Role::Table | Role::Callee | Role::Rets | Role::Args => {
                return Err(self.unsupported(at.span, "an instruction with a label or table as operand"));
            }
        }
        if opnd.parts.is_some() || opnd.neg {
            let selector = match operand {
                check::Operand::Part { part, neg, .. } => part.map_or(0, Part::code) | u32::from(neg) << 31,
                _ => 0,
            };
            parts.srcs.push(Operand::Imm(u64::from(selector)));
        }
        Ok(())
    }

    /// A value that is read, as one source or several.
    fn source(&mut self, slot: &Slot, operand: check::Operand, parts: &mut Parts, at: Place) -> Result<(), LowerError> {
        let start = parts.srcs.len();
        match (operand, slot.lead) {
            (check::Operand::Pair(first), _) => {
                for i in [first, first + 1] {
                    self.value(self.body.operands[i as usize], slot.ty, false, &mut parts.srcs, at)?;
                }
                return Ok(());
            }
            (check::Operand::Vector(list), Some(lead)) => {
                for (k, i) in list.range().enumerate() {
                    let ty = if k == 0 { lead } else { slot.ty };
                    self.value(self.body.operands[i], ty, false, &mut parts.srcs, at)?;
                }
            }
            _ => self.value(operand, slot.ty, parts.dsts.len() > 1, &mut parts.srcs, at)?,
        }
        parts.srcs.truncate(slot.most.map_or(usize::MAX, |n| start + n));
        Ok(())
    }

    /// A register that is read as one scalar: a guard, an address, an index.
    pub(super) fn read_scalar(&mut self, reg: RegId, at: Place) -> Result<VReg, LowerError> {
        if let Some(offset) = self.thread_offset(reg) {
            return self.thread_load(offset, self.body.decl(reg).ty, at);
        }
        self.register(reg).next().ok_or_else(|| self.error(at.span, "not a register"))
    }

    /// Reads a register, or one element of a vector.
    fn read(&mut self, reg: RegId, element: Option<u8>, out: &mut Vec<Operand>, at: Place) -> Result<(), LowerError> {
        if let Some(offset) = self.thread_offset(reg) {
            let decl = *self.body.decl(reg);
            for e in elements(&decl, element) {
                let at_offset = offset + u32::from(e) * decl.ty.bytes();
                out.push(Operand::Reg(self.thread_load(at_offset, decl.ty, at)?));
            }
            return Ok(());
        }
        let mut regs = self.register(reg);
        match element {
            None => out.extend(regs.map(Operand::Reg)),
            Some(e) => out.extend(regs.nth(usize::from(e)).map(Operand::Reg)),
        }
        Ok(())
    }

    /// Registers that are written: the body's own, or temporaries whose values go to the thread block afterwards.
    pub(super) fn written(
        &mut self,
        reg: RegId,
        element: Option<u8>,
        out: &mut Vec<Operand>,
        stores: &mut Vec<(u32, VReg)>,
    ) {
        if let Some(offset) = self.thread_offset(reg) {
            let decl = *self.body.decl(reg);
            for e in elements(&decl, element) {
                let temp = self.temp(decl.ty);
                stores.push((offset + u32::from(e) * decl.ty.bytes(), temp));
                out.push(Operand::Reg(temp));
            }
            return;
        }
        let mut regs = self.register(reg);
        match element {
            None => out.extend(regs.map(Operand::Reg)),
            Some(e) => out.extend(regs.nth(usize::from(e)).map(Operand::Reg)),
        }
    }

    fn destination(&mut self, operand: check::Operand, parts: &mut Parts, at: Place) -> Result<(), LowerError> {
        match operand {
            check::Operand::Reg(r) | check::Operand::Part { reg: r, .. } => {
                self.written(r, None, &mut parts.dsts, &mut parts.stores);
            }
            check::Operand::Element(r, c) => self.written(r, Some(c as u8), &mut parts.dsts, &mut parts.stores),
            check::Operand::Sink => parts.dsts.push(Operand::Sink),
            check::Operand::Vector(list) => {
                for i in list.range() {
                    self.destination(self.body.operands[i], parts, at)?;
                }
            }
            check::Operand::Pair(first) => {
                let (a, b) = (self.body.operands[first as usize], self.body.operands[first as usize + 1]);
                self.destination(a, parts, at)?;
                let kept = std::mem::take(&mut parts.dsts);
                self.destination(b, parts, at)?;
                let partner = std::mem::replace(&mut parts.dsts, kept);
                parts.partners.extend(partner);
            }
            _ => return Err(self.unsupported(at.span, "a destination that is not a register")),
        }
        Ok(())
    }

    /// A value read. `ty` is the type that an immediate takes; `expand` says that a special vector register is read whole.
    pub(super) fn value(
        &mut self,
        operand: check::Operand,
        ty: Type,
        expand: bool,
        out: &mut Vec<Operand>,
        at: Place,
    ) -> Result<(), LowerError> {
        match operand {
            check::Operand::Reg(r) => self.read(r, None, out, at)?,
            check::Operand::Element(r, c) => self.read(r, Some(c as u8), out, at)?,
            check::Operand::Part { reg, .. } => self.read(reg, None, out, at)?,
            check::Operand::Not(r) => out.push(Operand::Not(self.read_scalar(r, at)?)),
            check::Operand::Int(v) => out.push(Operand::Imm(int_bits(ty, v))),
            check::Operand::Float { bits, single } => out.push(Operand::Imm(float_bits(ty, bits, single))),
            check::Operand::Special(s, c) => special(s, c, expand, out),
            check::Operand::Symbol(symbol, offset) => {
                let value = self.symbol(symbol, offset, at)?;
                out.push(self.ranked(value, ty, at)?);
            }
            check::Operand::Vector(list) | check::Operand::Group(list) | check::Operand::List(list) => {
                for i in list.range() {
                    self.value(self.body.operands[i], ty, false, out, at)?;
                }
            }
            check::Operand::Sink => out.push(Operand::Sink),
            check::Operand::Address(base, offset) => {
                let (base, offset, _) = self.base(base, offset, at)?;
                out.push(Operand::Mem(base, offset));
            }
            check::Operand::Sum(reg, offset) => {
                let base = self.read_scalar(reg, at)?;
                let sum = self.plus(base, offset, at)?;
                out.push(Operand::Reg(sum));
            }
            check::Operand::Indexed { array, index, size, offset } => {
                let address = self.element(array, index, size, offset, at)?;
                let start = self.symbol(array, 0, at)?;
                let address =
                    if self.is_ranked(&start) { self.with_rank(Operand::Reg(address), ty, at)? } else { address };
                out.push(Operand::Reg(address));
            }
            check::Operand::Computed => {
                return Err(self.unsupported(at.span, "an operand that ptxas accepts and the manual does not define"));
            }
            check::Operand::Label(_) => return Err(self.unsupported(at.span, "the address of a label")),
            check::Operand::Table(_) => return Err(self.unsupported(at.span, "the address of a table of targets")),
            check::Operand::Text(span) => {
                let what = format!("the selector `{}`", self.tree.str(span));
                return Err(self.unsupported(at.span, what));
            }
            check::Operand::Pair(_) => return Err(self.unsupported(at.span, "`|` in an operand that is read")),
            check::Operand::Error => return Err(self.error(at.span, "an operand that did not resolve")),
        }
        Ok(())
    }

    /// The home of a memory symbol; `None` for functions and for variables of the thread block (second value).
    fn home(&self, symbol: SymRef) -> Result<VarHome, Option<u32>> {
        Ok(match symbol {
            SymRef::Global(g) => match self.program.global_ids[self.module][g.0 as usize] {
                Home::Global(id) => VarHome::Global(id),
                Home::Thread(offset) => return Err(Some(offset)),
            },
            SymRef::Local(i) => self.locals[i as usize],
            SymRef::Param(i) => formal_home(self.func.params.get(i as usize)).ok_or(None)?,
            SymRef::Ret(i) => formal_home(self.func.rets.get(i as usize)).ok_or(None)?,
            SymRef::Func(_) => return Err(None),
        })
    }

    /// A symbol as a value: its address.
    pub(super) fn symbol(&mut self, symbol: SymRef, offset: i64, at: Place) -> Result<Operand, LowerError> {
        if let SymRef::Func(f) = symbol {
            let id = self.program.func_ids[self.module][f.0 as usize];
            self.refs.func(id, at.span);
            if offset != 0 {
                return Err(self.unsupported(at.span, "an offset to the address of a function"));
            }
            return Ok(Operand::Func(id));
        }
        Ok(match self.home(symbol) {
            Ok(VarHome::Global(id)) => {
                self.refs.global(id, at.span);
                Operand::GlobalAddr(id, offset)
            }
            Ok(VarHome::Frame(id)) => {
                self.func.frame[id.0 as usize].address_taken = true;
                Operand::FrameAddr(id, offset)
            }
            Ok(VarHome::Kernel(start)) => Operand::ParamAddr(i64::from(start).wrapping_add(offset)),
            Err(Some(start)) => Operand::Imm(i64::from(start).wrapping_add(offset) as u64),
            Err(None) => return Err(self.error(at.span, "the address of something that is not a variable")),
        })
    }

    /// Whether the address has the rank of the CTA in its upper bits ([`crate::Ir::ranked_addresses`]).
    fn is_ranked(&self, address: &Operand) -> bool {
        let Operand::GlobalAddr(id, _) = address else { return false };
        self.program.ranked_addresses && self.program.globals[id.0 as usize].space == Space::Shared
    }

    /// The address of a variable as a value of this type.
    fn ranked(&mut self, address: Operand, ty: Type, at: Place) -> Result<Operand, LowerError> {
        if !self.is_ranked(&address) {
            return Ok(address);
        }
        Ok(Operand::Reg(self.with_rank(address, ty, at)?))
    }

    /// Base, offset and, for a variable, its space.
    fn base(&mut self, base: Base, offset: i64, at: Place) -> Result<(MemBase, i64, Option<MemSpace>), LowerError> {
        let symbol = match base {
            Base::Reg(r) => return Ok((MemBase::Reg(self.read_scalar(r, at)?), offset, None)),
            Base::Absolute => return Ok((MemBase::Absolute, offset, None)),
            Base::Sym(symbol) => symbol,
        };
        Ok(match self.home(symbol) {
            Ok(VarHome::Global(id)) => {
                self.refs.global(id, at.span);
                let space = match self.program.globals[id.0 as usize].space {
                    Space::Const => MemSpace::Const,
                    Space::Shared => MemSpace::Shared,
                    _ => MemSpace::Global,
                };
                (MemBase::Global(id), offset, Some(space))
            }
            Ok(VarHome::Frame(id)) => (MemBase::Frame(id), offset, Some(MemSpace::Local)),
            Ok(VarHome::Kernel(start)) => {
                (MemBase::KernelParam, i64::from(start).wrapping_add(offset), Some(MemSpace::KernelParam))
            }
            Err(Some(start)) => (MemBase::Absolute, i64::from(start).wrapping_add(offset), Some(MemSpace::Local)),
            Err(None) => return Err(self.error(at.span, "a memory operand that is not a variable")),
        })
    }

    fn address(&mut self, operand: check::Operand, parts: &mut Parts, at: Place) -> Result<(), LowerError> {
        let (base, offset) = match operand {
            check::Operand::Address(base, offset) => (base, offset),
            check::Operand::Symbol(symbol, offset) => (Base::Sym(symbol), offset),
            check::Operand::Reg(r) => (Base::Reg(r), 0),
            check::Operand::Indexed { array, index, size, offset } => {
                let (_, _, space) = self.base(Base::Sym(array), 0, at)?;
                let address = self.element(array, index, size, offset, at)?;
                parts.base.get_or_insert((Base::Sym(array), space));
                parts.srcs.push(Operand::Mem(MemBase::Reg(address), 0));
                return Ok(());
            }
            check::Operand::Sink => {
                parts.srcs.push(Operand::Sink);
                return Ok(());
            }
            _ => return Err(self.unsupported(at.span, "an address of this shape")),
        };
        let (mem, offset, space) = self.base(base, offset, at)?;
        parts.base.get_or_insert((base, space));
        parts.srcs.push(Operand::Mem(mem, offset));
        Ok(())
    }

    /// The space of a memory instruction: the first one named; that of the variable where none is; else generic. `.param` is
    /// the kernel's block for kernels, with `::entry`, and for address arithmetic (`cvta`, `isspacep`); in device functions
    /// parameters live in the frame, so it is local memory (section 5.1.6.4; measured: ptxas emits LDL for `ld.param [reg]`).
    fn space(&self, named: Option<Named>, base: Option<(Base, Option<MemSpace>)>) -> Option<MemSpace> {
        let symbol_space = base.and_then(|b| b.1);
        match (named, base) {
            (Some(Named::Is(space)), _) => Some(space),
            (Some(Named::Param), Some(_)) if self.func.kind == FuncKind::Device => {
                Some(symbol_space.unwrap_or(MemSpace::Local))
            }
            (Some(Named::Param), _) => Some(symbol_space.unwrap_or(MemSpace::KernelParam)),
            (None, Some(_)) => Some(symbol_space.unwrap_or(MemSpace::Generic)),
            (None, None) => None,
        }
    }
}

/// Which elements of a register are meant: one, or all.
fn elements(decl: &RegDecl, element: Option<u8>) -> std::ops::Range<u8> {
    match element {
        Some(e) => e..e + 1,
        None => 0..decl.vector.max(1),
    }
}

fn formal_home(home: Option<&FormalHome>) -> Option<VarHome> {
    match home? {
        FormalHome::Frame(id) => Some(VarHome::Frame(*id)),
        FormalHome::Kernel(offset) => Some(VarHome::Kernel(*offset)),
        FormalHome::Regs(_) => None,
    }
}

fn special(s: Special, c: Option<Component>, expand: bool, out: &mut Vec<Operand>) {
    match c {
        Some(c) => out.push(Operand::Special(s, c)),
        None if expand && s.info().width == 4 => {
            out.extend([Component::X, Component::Y, Component::Z, Component::W].map(|c| Operand::Special(s, c)));
        }
        None => out.push(Operand::Special(s, Component::X)),
    }
}
