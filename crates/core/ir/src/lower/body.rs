//! Turns the flat list of a function's resolved instructions into a control-flow graph (manual, sections 9.3 and 9.7.12).
//!
//! Blocks begin at labels that are jump targets and after `bra`, `brx.idx`, `ret` and `exit`. Guards on these become
//! branches. Falling off the end of a body returns. Unreachable blocks are dropped; the rest are in reverse post-order,
//! with the block that follows in the text first where there is a choice.

use super::{
    LowerError,
    info::Info,
    link::{Home, Program, Refs},
    operand::Parts,
    register::Registers,
};
use crate::{
    Block, BlockId, FormalHome, FrameId, FrameRole, FrameVar, Func, FuncId, Global, GlobalId, Operand, SourcePlace,
    Terminator, VReg, abi,
};
use margay_check::{self as check, Body, FormalSpace, FuncKind, Function, LabelId, RegId, TargetTable};
use margay_isa::{Kind, Mod, Opcode, Space, Type, Variant, Version};
use margay_syntax::{Span, Tree, tree::List};
use std::{collections::HashMap, rc::Rc, sync::Arc};

/// Index into [`Func::places`], with the span for messages.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub index: u32,
    pub span: Span,
}

/// Where a variable that a body names lives.
#[derive(Clone, Copy)]
pub(super) enum VarHome {
    Frame(FrameId),
    Global(GlobalId),
    /// A kernel parameter at that offset.
    Kernel(u32),
}

/// A function under construction.
pub(super) struct Builder<'p> {
    pub program: &'p mut Program,
    pub module: usize,
    pub tree: Arc<Tree>,
    pub body: Body,
    pub func: Func,
    pub refs: Refs,
    /// By index of [`Body::locals`].
    pub locals: Vec<VarHome>,
    pub infos: Rc<[Info]>,
    /// Scratch space of [`Builder::inst`].
    pub parts: Parts,
    regs: Registers,
    /// Some registers are of module scope.
    thread_regs: bool,
    carry: Option<VReg>,
    temps: u32,
}

/// A block before unreachable ones are dropped; targets are indices of such blocks.
struct Raw {
    /// Instructions of the body that stay instructions.
    insts: std::ops::Range<u32>,
    /// The instruction that ends the block; `None` where it falls through.
    end: Option<u32>,
    next: Next,
    label: Option<Span>,
}

enum Next {
    Jump(usize),
    Branch { then: usize, other: usize },
    Switch(Vec<usize>),
    Ret,
    Exit,
}

impl Next {
    /// Successors; the one that should follow directly comes last.
    fn targets(&self) -> Vec<usize> {
        match self {
            Next::Jump(t) => vec![*t],
            Next::Branch { then, other } => vec![*then, *other],
            Next::Switch(targets) => targets.iter().rev().copied().collect(),
            Next::Ret | Next::Exit => Vec::new(),
        }
    }
}

/// Which instructions end a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Bra,
    Brx,
    Ret,
    Exit,
}

fn ends(variant: &Variant) -> Option<Ends> {
    match variant.op {
        Opcode::Bra => Some(Ends::Bra),
        Opcode::Ret => Some(Ends::Ret),
        Opcode::Exit => Some(Ends::Exit),
        Opcode::Brx => Some(Ends::Brx),
        _ => None,
    }
}

/// Lowers the body of a defined function.
pub(super) fn lower(program: &mut Program, id: FuncId) -> Result<(Func, Refs), LowerError> {
    let entry = &program.funcs[id.0 as usize];
    let (module, at) = (entry.module, entry.id);
    let func = (*entry.func).clone();
    let checked = &program.modules[module].1;
    let (tree, decl) = (checked.tree.clone(), checked.module.clone());
    let function = &decl.funcs[at.0 as usize];
    let Some(body) = checked.body(at) else {
        let message = format!("the body of `{}` does not resolve", function.name);
        return Err(LowerError::unsupported(&func.source, function.span, message));
    };
    let (refs, infos, regs) = (Refs::default(), body.variants.iter().map(Info::new).collect(), Registers::new(&body));
    let thread_regs = body.regs.iter().any(|d| d.global.is_some());
    let mut b = Builder {
        program,
        module,
        tree,
        body,
        func,
        refs,
        locals: Vec::new(),
        infos,
        parts: Parts::default(),
        regs,
        thread_regs,
        carry: None,
        temps: 0,
    };
    b.func.variants = b.body.variants.clone();
    b.variables(function, decl.version)?;
    b.formals(function);
    b.blocks(function)?;
    super::web::split(&mut b.func);
    Ok((b.func, b.refs))
}

impl Builder<'_> {
    pub(super) fn error(&self, span: Span, message: impl Into<String>) -> LowerError {
        LowerError::new(&self.func.source, span, message.into())
    }

    pub(super) fn unsupported(&self, span: Span, what: impl Into<String>) -> LowerError {
        LowerError::unsupported(&self.func.source, span, what)
    }

    /// Homes of formals and of the body's variables; statics of the body become variables of the program.
    fn variables(&mut self, function: &Function, version: Version) -> Result<(), LowerError> {
        let kernel = function.kind == FuncKind::Kernel;
        let locals = std::mem::take(&mut self.body.locals);
        // Before PTX 1.4 kernel parameters were declared in the body.
        let in_body = kernel && version < Version::new(1, 4);
        if in_body {
            let declared = locals.iter().filter(|l| l.space == Space::Param);
            self.func.param_names.extend(declared.map(|l| Box::from(self.tree.str(l.name))));
            let sig = Arc::make_mut(&mut self.func.sig);
            sig.params.extend(locals.iter().filter(|l| l.space == Space::Param).map(|l| abi::Value {
                ty: l.ty,
                vector: l.vector,
                space: FormalSpace::Param,
                size: l.size as u32,
                align: l.align.max(1),
                array: l.extent != check::Extent::Scalar,
                is_unsized: false,
                varying: false,
            }));
        }
        let offsets = if kernel { abi::kernel_layout(&self.func.sig).offsets } else { Vec::new() };
        let mut in_body_offsets = offsets.iter().skip(function.params.len());
        for local in &locals {
            let name = self.tree.str(local.name);
            let home = match local.space {
                Space::Param if in_body => VarHome::Kernel(in_body_offsets.next().copied().unwrap_or(0)),
                Space::Local | Space::Param => {
                    let role = if local.space == Space::Local { FrameRole::Local } else { FrameRole::Param };
                    let Ok(size) = u32::try_from(local.size) else {
                        return Err(
                            self.unsupported(local.name, format!("a variable of {} bytes in a frame", local.size))
                        );
                    };
                    let name = name.into();
                    VarHome::Frame(self.frame_var(FrameVar {
                        name,
                        role,
                        size,
                        align: local.align.max(1),
                        address_taken: false,
                    }))
                }
                Space::Reg | Space::Sreg | Space::Generic => {
                    return Err(self.unsupported(local.name, format!("a variable in `{}`", local.space)));
                }
                Space::Const | Space::Global | Space::Shared | Space::Tex => {
                    let opaque = local.ty.kind() == Kind::Opaque;
                    let external = local.space == Space::Shared && local.size == 0;
                    let global = Global {
                        name: format!("{}::{name}", function.name).into(),
                        space: if opaque { Space::Tex } else { local.space },
                        reference: opaque.then_some(local.ty),
                        size: local.size,
                        align: local.align.max(1),
                        init: self.program.convert_init(self.module, &local.init, local.name)?,
                        visible: false,
                        external,
                        managed: false,
                    };
                    self.program.globals.push(global.into());
                    self.program.global_places.push((self.module, local.name));
                    VarHome::Global(GlobalId(self.program.globals.len() as u32 - 1))
                }
            };
            self.locals.push(home);
        }
        self.body.locals = locals;
        self.func.params = offsets.iter().map(|o| FormalHome::Kernel(*o)).collect();
        Ok(())
    }

    fn frame_var(&mut self, var: FrameVar) -> FrameId {
        self.func.frame.push(var);
        FrameId(self.func.frame.len() as u32 - 1)
    }

    /// Homes of formals. `.reg` ones are the first declarations of the body: returns, then parameters.
    fn formals(&mut self, function: &Function) {
        let mut decls = self.body.regs.clone().into_iter();
        for (returns, formals) in [(true, &function.rets), (false, &function.params)] {
            for (i, formal) in formals.iter().enumerate() {
                let home = match formal.space {
                    FormalSpace::Reg => {
                        let first = decls.next().map(|d| self.register(d.first).collect()).unwrap_or_default();
                        FormalHome::Regs(first)
                    }
                    FormalSpace::Param if function.kind == FuncKind::Kernel => continue,
                    FormalSpace::Param => {
                        let role = if returns { FrameRole::Return(i as u32) } else { FrameRole::Formal(i as u32) };
                        let name = formal.name.clone();
                        let (size, align) = (formal.size, formal.align.max(1));
                        FormalHome::Frame(self.frame_var(FrameVar { name, role, size, align, address_taken: false }))
                    }
                };
                if returns { self.func.rets.push(home) } else { self.func.params.push(home) }
            }
        }
    }

    /// The registers of a declared register: one, or one an element of a vector.
    pub(super) fn register(&mut self, reg: RegId) -> impl Iterator<Item = VReg> + use<> {
        let (first, count) = self.regs.get(reg, &self.body, &self.tree, &mut self.func);
        (first.0..first.0 + count).map(VReg)
    }

    /// The offset in the thread block of a register of module scope; `None` for one of the body.
    pub(super) fn thread_offset(&self, reg: RegId) -> Option<u32> {
        let global = if self.thread_regs { self.body.decl(reg).global? } else { return None };
        match self.program.global_ids[self.module][global.0 as usize] {
            Home::Thread(offset) => Some(offset),
            Home::Global(_) => None,
        }
    }

    /// A new register.
    pub(super) fn temp(&mut self, ty: Type) -> VReg {
        self.func.regs.push(ty);
        self.func.reg_names.push(format!("tmp{}", self.temps).into());
        self.temps += 1;
        VReg(self.func.regs.len() as u32 - 1)
    }

    /// The carry flag, which `.cc` sets and `addc`, `subc` and `madc` read (section 9.7.2).
    pub(super) fn carry(&mut self) -> VReg {
        if let Some(cc) = self.carry {
            return cc;
        }
        self.func.regs.push(Type::Pred);
        self.func.reg_names.push("cc".into());
        let cc = VReg(self.func.regs.len() as u32 - 1);
        self.carry = Some(cc);
        cc
    }

    pub(super) fn list(&mut self, operands: &[Operand]) -> List<Operand> {
        if operands.is_empty() {
            return super::link::empty();
        }
        self.func.operands.extend_from_slice(operands);
        List::new((self.func.operands.len() - operands.len()) as u32, operands.len() as u32)
    }

    pub(super) fn variant(&mut self, variant: Variant) -> u32 {
        let known = self.func.variants.iter().position(|v| *v == variant);
        let index = known.unwrap_or_else(|| {
            self.func.variants.push(variant);
            self.func.variants.len() - 1
        });
        index as u32
    }

    /// The place of an instruction of the body.
    fn place(&mut self, inst: u32) -> Place {
        let span = match self.body.insts.get(inst as usize) {
            Some(i) => self.tree.instrs.get(i.node as usize).map_or(Span::default(), |n| n.span),
            None => Span::default(),
        };
        self.place_at(inst, span)
    }

    fn place_at(&mut self, inst: u32, span: Span) -> Place {
        let next = self.body.locs.partition_point(|l| l.0 <= inst);
        let loc = if next == 0 { (0, 0, 0) } else { without_inst(self.body.locs[next - 1]) };
        self.func.places.push(SourcePlace { span, loc });
        Place { index: self.func.places.len() as u32 - 1, span }
    }

    fn blocks(&mut self, function: &Function) -> Result<(), LowerError> {
        let count = self.body.insts.len();
        self.func.insts.reserve(count);
        self.func.places.reserve(count);
        self.func.operands.reserve(3 * count);
        let raws = self.raw_blocks()?;
        let order = reverse_post_order(&raws);
        let mut ids = vec![BlockId(u32::MAX); raws.len()];
        for (i, raw) in order.iter().enumerate() {
            ids[*raw] = BlockId(i as u32);
        }
        let close = self.tree.funcs.get(function.node as usize).map_or(function.span, |f| f.braces.1);
        let end = self.body.insts.len() as u32;
        for raw in order.iter().map(|i| &raws[*i]) {
            let first = self.func.insts.len() as u32;
            for i in raw.insts.clone() {
                if !self.does_nothing(i) {
                    let at = self.place(i);
                    self.inst(i, at)?;
                }
            }
            let at = match raw.end {
                Some(i) => self.place(i),
                None if matches!(raw.next, Next::Ret) => self.place_at(end, close),
                None => self.place(raw.insts.end.saturating_sub(1).max(raw.insts.start)),
            };
            let term = self.terminator(raw, &ids, at)?;
            let insts = List::new(first, self.func.insts.len() as u32 - first);
            let label = raw.label.map(|l| self.tree.str(l).into());
            self.func.blocks.push(Block { insts, term, at: at.index, label });
        }
        self.func.types = crate::types::row_types(&self.func);
        Ok(())
    }

    /// Whether ptxas makes no instruction of one that it accepts: `testp` without a property, whose predicate keeps its value.
    fn does_nothing(&self, i: u32) -> bool {
        let variant = self.body.variant(&self.body.insts[i as usize]);
        variant.op == Opcode::Testp && variant.words.len() == 1
    }

    fn terminator(&mut self, raw: &Raw, ids: &[BlockId], at: Place) -> Result<Terminator, LowerError> {
        let inst = raw.end.map(|i| self.body.insts[i as usize]);
        let uniform = inst.is_some_and(|i| self.body.variant(&i).has(Mod::Uni));
        Ok(match &raw.next {
            Next::Jump(t) => Terminator::Jump(ids[*t]),
            Next::Ret => Terminator::Ret,
            Next::Exit => Terminator::Exit,
            Next::Branch { then, other } => {
                let Some(guard) = inst.and_then(|i| i.guard) else {
                    return Err(self.error(at.span, "a branch without predicate has two ways"));
                };
                let pred = self.read_scalar(guard.reg, at)?;
                Terminator::Branch { pred, negated: guard.negated, then: ids[*then], other: ids[*other], uniform }
            }
            Next::Switch(targets) => {
                let operand = inst.and_then(|i| self.body.operands(i.operands).first().copied());
                let Some(operand) = operand else { return Err(self.error(at.span, "`brx.idx` without index")) };
                let mut values = Vec::new();
                self.value(operand, Type::U32, false, &mut values, at)?;
                let index = values.first().copied().unwrap_or(Operand::Imm(0));
                Terminator::Switch { index, targets: targets.iter().map(|t| ids[*t]).collect(), uniform }
            }
        })
    }

    /// The instruction after a label.
    fn label_at(&self, label: LabelId) -> u32 {
        self.body.labels.get(label.0 as usize).map_or(0, |l| l.0)
    }

    /// Labels that an instruction may jump to.
    fn jump_labels(&self, inst: &check::Inst, what: Ends) -> Vec<LabelId> {
        let operands = self.body.operands(inst.operands);
        match what {
            Ends::Bra => {
                operands.iter().filter_map(|o| if let check::Operand::Label(l) = o { Some(*l) } else { None }).collect()
            }
            Ends::Brx => {
                let table =
                    operands.iter().find_map(|o| if let check::Operand::Table(t) = o { Some(*t) } else { None });
                match table.and_then(|t| self.body.tables.get(t.0 as usize)) {
                    Some(TargetTable::Branch(labels)) => labels.clone(),
                    _ => Vec::new(),
                }
            }
            Ends::Ret | Ends::Exit => Vec::new(),
        }
    }

    fn raw_blocks(&self) -> Result<Vec<Raw>, LowerError> {
        let count = self.body.insts.len() as u32;
        let mut leader = vec![false; count as usize + 1];
        leader[0] = true;
        leader[count as usize] = true;
        for (i, inst) in self.body.insts.iter().enumerate() {
            if let Some(what) = ends(self.body.variant(inst)) {
                leader[i + 1] = true;
                for label in self.jump_labels(inst, what) {
                    leader[self.label_at(label).min(count) as usize] = true;
                }
            }
        }
        let starts: Vec<u32> = (0..=count).filter(|i| leader[*i as usize]).collect();
        // The block that begins at an instruction which is a leader.
        let block_at = |inst: u32| starts.partition_point(|s| *s < inst.min(count));
        let mut names: HashMap<u32, Span> = HashMap::new();
        for (at, name) in self.body.labels.iter().rev() {
            names.insert(*at, *name);
        }
        let mut raws = Vec::with_capacity(starts.len());
        let mut extra = Vec::new();
        for (k, start) in starts.iter().copied().enumerate() {
            let label = names.get(&start).copied();
            let Some(stop) = starts.get(k + 1).copied() else {
                raws.push(Raw { insts: count..count, end: None, next: Next::Ret, label });
                break;
            };
            let last = &self.body.insts[stop as usize - 1];
            let Some(what) = ends(self.body.variant(last)) else {
                raws.push(Raw { insts: start..stop, end: None, next: Next::Jump(k + 1), label });
                continue;
            };
            let targets: Vec<usize> =
                self.jump_labels(last, what).into_iter().map(|l| block_at(self.label_at(l))).collect();
            let taken = match what {
                Ends::Bra => match targets.first() {
                    Some(t) => Next::Jump(*t),
                    None => {
                        return Err(self.unsupported(self.span_of(last), "a branch to something that is not a label"));
                    }
                },
                Ends::Brx if targets.is_empty() => {
                    return Err(self.unsupported(self.span_of(last), "`brx.idx` without a list of targets"));
                }
                Ends::Brx => Next::Switch(targets),
                Ends::Ret => Next::Ret,
                Ends::Exit => Next::Exit,
            };
            let end = Some(stop - 1);
            let next = match (last.guard, taken) {
                (None, taken) => taken,
                (Some(_), Next::Jump(t)) if t == k + 1 => Next::Jump(t),
                (Some(_), Next::Jump(t)) => Next::Branch { then: t, other: k + 1 },
                (Some(_), taken) => {
                    extra.push(Raw { insts: stop - 1..stop - 1, end, next: taken, label: None });
                    Next::Branch { then: starts.len() + extra.len() - 1, other: k + 1 }
                }
            };
            raws.push(Raw { insts: start..stop - 1, end, next, label });
        }
        raws.append(&mut extra);
        Ok(raws)
    }

    fn span_of(&self, inst: &check::Inst) -> Span {
        self.tree.instrs.get(inst.node as usize).map_or(Span::default(), |n| n.span)
    }
}

/// File, line and column of a `.loc` entry.
fn without_inst((_, file, line, column): (u32, u32, u32, u32)) -> (u32, u32, u32) {
    (file, line, column)
}

/// Reachable blocks in reverse post-order, without recursion: bodies can have a hundred thousand blocks.
fn reverse_post_order(raws: &[Raw]) -> Vec<usize> {
    let mut seen = vec![false; raws.len()];
    let mut post = Vec::new();
    let mut stack: Vec<(usize, std::vec::IntoIter<usize>)> = Vec::new();
    if let Some(first) = raws.first() {
        seen[0] = true;
        stack.push((0, first.next.targets().into_iter()));
    }
    while let Some((block, targets)) = stack.last_mut() {
        // Taken targets are visited first, so that the fall-through finishes last and directly follows.
        match targets.next() {
            Some(next) if seen[next] => {}
            Some(next) => {
                seen[next] = true;
                stack.push((next, raws[next].next.targets().into_iter()));
            }
            None => {
                post.push(*block);
                stack.pop();
            }
        }
    }
    post.reverse();
    post
}
