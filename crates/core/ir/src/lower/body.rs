//! Turns the resolved body of a function into a [`Func`]: homes of its variables and formals, registers, places. Its blocks are lowered in
//! `blocks`, their instructions in `operand`.

use super::{
    LowerError,
    info::Info,
    link::{Home, Program, Refs},
    operand::Parts,
    register::Registers,
};
use crate::{
    FormalHome, FrameId, FrameRole, FrameVar, Func, FuncId, Global, GlobalId, Operand, SourcePlace, VReg, abi,
};
use margay_check::{self as check, Body, FormalSpace, FuncKind, Function, RegId};
use margay_isa::{Kind, Space, Type, Variant, Version};
use margay_syntax::{Span, Tree, tree::List};
use std::{rc::Rc, sync::Arc};

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

    /// Homes of kernel parameters and of the body's variables; statics of the body become variables of the program.
    fn variables(&mut self, function: &Function, version: Version) -> Result<(), LowerError> {
        let kernel = function.kind == FuncKind::Kernel;
        let locals = std::mem::take(&mut self.body.locals);
        // Before PTX 1.4 kernel parameters were declared in the body.
        let in_body = kernel && version < Version::new(1, 4);
        if in_body {
            self.parameters_in_body(&locals);
        }
        let offsets = if kernel { abi::kernel_layout(&self.func.sig).offsets } else { Vec::new() };
        let mut in_body_offsets = offsets.iter().skip(function.params.len());
        for local in &locals {
            let home = match local.space {
                Space::Param if in_body => VarHome::Kernel(in_body_offsets.next().copied().unwrap_or(0)),
                Space::Local | Space::Param => {
                    let role = if local.space == Space::Local { FrameRole::Local } else { FrameRole::Param };
                    let Ok(size) = u32::try_from(local.size) else {
                        let what = format!("a variable of {} bytes in a frame", local.size);
                        return Err(self.unsupported(local.name, what));
                    };
                    let (name, align) = (self.tree.str(local.name).into(), local.align.max(1));
                    VarHome::Frame(self.frame_var(FrameVar { name, role, size, align, address_taken: false }))
                }
                Space::Reg | Space::Sreg | Space::Generic => {
                    return Err(self.unsupported(local.name, format!("a variable in `{}`", local.space)));
                }
                Space::Const | Space::Global | Space::Shared | Space::Tex => {
                    VarHome::Global(self.static_variable(function, local)?)
                }
            };
            self.locals.push(home);
        }
        self.body.locals = locals;
        self.func.params = offsets.iter().map(|o| FormalHome::Kernel(*o)).collect();
        Ok(())
    }

    /// Adds the `.param` variables of a kernel's body to its signature.
    fn parameters_in_body(&mut self, locals: &[check::Local]) {
        let declared = || locals.iter().filter(|l| l.space == Space::Param);
        self.func.param_names.extend(declared().map(|l| Box::from(self.tree.str(l.name))));
        let sig = Arc::make_mut(&mut self.func.sig);
        sig.params.extend(declared().map(|l| abi::Value {
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

    /// A variable of the body that exists once, whatever calls the function.
    fn static_variable(&mut self, function: &Function, local: &check::Local) -> Result<GlobalId, LowerError> {
        let opaque = local.ty.kind() == Kind::Opaque;
        let global = Global {
            name: format!("{}::{}", function.name, self.tree.str(local.name)).into(),
            space: if opaque { Space::Tex } else { local.space },
            reference: opaque.then_some(local.ty),
            size: local.size,
            align: local.align.max(1),
            init: self.program.convert_init(self.module, &local.init, local.name)?,
            visible: false,
            external: local.space == Space::Shared && local.size == 0,
            managed: false,
        };
        self.program.globals.push(global.into());
        self.program.global_places.push((self.module, local.name));
        Ok(GlobalId(self.program.globals.len() as u32 - 1))
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
    pub(super) fn place(&mut self, inst: u32) -> Place {
        let span = match self.body.insts.get(inst as usize) {
            Some(i) => self.tree.instrs.get(i.node as usize).map_or(Span::default(), |n| n.span),
            None => Span::default(),
        };
        self.place_at(inst, span)
    }

    /// A place in the text, with the source position of the `.loc` before an instruction of the body.
    pub(super) fn place_at(&mut self, inst: u32, span: Span) -> Place {
        let next = self.body.locs.partition_point(|l| l.0 <= inst);
        let loc = if next == 0 { (0, 0, 0) } else { without_inst(self.body.locs[next - 1]) };
        self.func.places.push(SourcePlace { span, loc });
        Place { index: self.func.places.len() as u32 - 1, span }
    }
}

/// File, line and column of a `.loc` entry.
fn without_inst((_, file, line, column): (u32, u32, u32, u32)) -> (u32, u32, u32) {
    (file, line, column)
}
