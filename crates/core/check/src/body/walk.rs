//! Walks the statements of a body: blocks, labels, tables, declarations, instructions.

use super::memo::Memos;
use super::names::{Binding, Names};
use super::{Body, Facts, LabelId, Memo, RegDecl, RegId};
use crate::module::Module;
use crate::report::Report;
use crate::rules::pointers::Origins;
use crate::rules::sequence::{Run, Use};
use crate::{FormalSpace, FuncId, Function, FxHashMap, GlobalId, Symbol};
use margay_syntax::{
    Span, Tree,
    diag::{Code, Diagnostic},
    tree::Stmt,
};

/// Memory that is reused from body to body.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Per candidate of the memo: the body that used it last (a number), and its variant there.
    variants: Vec<(u32, u32)>,
    epoch: u32,
    body: Body,
    written: Vec<u64>,
}

/// Resolves and checks the body of a function; a function without one has no facts.
pub(crate) fn examine(
    tree: &Tree,
    module: &Module,
    func: FuncId,
    memo: &mut Memo,
    scratch: &mut Scratch,
    report: &mut Report,
) -> Facts {
    let mut body = std::mem::take(&mut scratch.body);
    body.clear();
    let mut walker = Walker::new(tree, module, func, scratch, report, body);
    walker.run(&mut Memos { shared: None, own: memo });
    let Walker { body, mut facts, written, .. } = walker;
    facts.globals.sort_by_key(|g| g.0);
    facts.globals.dedup_by_key(|g| g.0);
    (scratch.body, scratch.written) = (body, written);
    facts
}

/// Resolves the body of a function of a module that has passed.
pub(crate) fn resolve(tree: &Tree, module: &Module, func: FuncId, shared: &Memo) -> Option<Body> {
    module.funcs.get(func.0 as usize).filter(|f| f.defined)?;
    let (mut memo, mut scratch, mut report) = (Memo::default(), Scratch::default(), Report::silent());
    let mut walker = Walker::new(tree, module, func, &mut scratch, &mut report, Body::default());
    walker.run(&mut Memos { shared: Some(shared), own: &mut memo });
    Some(walker.body)
}

impl Body {
    fn clear(&mut self) {
        self.regs.clear();
        self.locals.clear();
        self.variants.clear();
        self.insts.clear();
        self.operands.clear();
        self.labels.clear();
        self.tables.clear();
        self.locs.clear();
    }
}

/// One pass over one body.
pub(crate) struct Walker<'a, 'm> {
    pub(crate) tree: &'a Tree,
    pub(crate) module: &'a Module,
    pub(crate) func: &'a Function,
    pub(super) names: Names<'a>,
    variants: &'m mut Vec<(u32, u32)>,
    epoch: u32,
    pub(crate) report: &'m mut Report,
    pub(crate) body: Body,
    pub(crate) facts: Facts,
    /// Registers so far.
    pub(super) next: u32,
    /// One bit per register: written somewhere.
    pub(crate) written: Vec<u64>,
    /// First reads, for the lint of registers that are never written.
    pub(crate) reads: Vec<(RegId, Span)>,
    /// One bit per register: in `reads`.
    read: Vec<u64>,
    /// Registers that hold addresses of parameters.
    pub(crate) origins: Origins,
    /// True once the address of a parameter was taken.
    pub(crate) follow: bool,
    /// `.param` variables of the body, by local.
    pub(crate) params: Vec<Use>,
    /// The run of accesses to `.param` variables that is going on.
    pub(crate) run: Run,
    /// Alignments of registers that were declared with one.
    pub(super) alignments: Vec<(u32, u32)>,
    pub(super) labels_seen: u32,
    pub(super) tables_seen: u32,
    /// Whether a label directly precedes the statement.
    pub(super) labeled: bool,
    /// The instruction and the operand that are being looked at, for messages.
    pub(super) current: Place,
    /// Labels of all blocks: name, the one before it in the same block, its id.
    pub(super) labels: Vec<(Span, u32, LabelId)>,
    /// First label of each block, in order of the blocks.
    pub(super) blocks: Vec<u32>,
    pub(super) blocks_seen: usize,
    /// Where the open blocks begin.
    pub(super) opened: Vec<u32>,
    /// The place of the last branch to each label, or 0.
    pub(super) branches: Vec<u32>,
    /// The representatives of module-scope registers in this body.
    pub(super) module_registers: FxHashMap<GlobalId, RegId>,
}

/// An operand of an instruction.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Place {
    /// Index into the tree's instructions.
    pub(super) node: u32,
    /// Which operand, from 0.
    pub(super) operand: usize,
    /// Bits of a register that an error has called too wide or too narrow for the instruction.
    pub(super) width_error: Option<u32>,
}

impl<'a, 'm> Walker<'a, 'm> {
    fn new(
        tree: &'a Tree,
        module: &'a Module,
        func: FuncId,
        scratch: &'m mut Scratch,
        report: &'m mut Report,
        body: Body,
    ) -> Walker<'a, 'm> {
        scratch.epoch += 1;
        let mut written = std::mem::take(&mut scratch.written);
        written.clear();
        Walker {
            tree,
            module,
            func: module.func(func),
            names: Names::default(),
            epoch: scratch.epoch,
            variants: &mut scratch.variants,
            report,
            body,
            facts: Facts::default(),
            next: 0,
            written,
            reads: Vec::new(),
            read: Vec::new(),
            origins: Origins::default(),
            follow: false,
            params: Vec::new(),
            run: Run::default(),
            alignments: Vec::new(),
            labels_seen: 0,
            tables_seen: 0,
            labeled: false,
            current: Place::default(),
            labels: Vec::new(),
            opened: Vec::new(),
            branches: Vec::new(),
            blocks: Vec::new(),
            blocks_seen: 0,
            module_registers: FxHashMap::default(),
        }
    }

    fn run(&mut self, memos: &mut Memos) {
        let Some(list) = self.tree.funcs[self.func.node as usize].body else { return };
        let stmts = self.tree.stmts(list);
        self.formals();
        self.find_labels(stmts);
        self.bind_labels();
        for (index, stmt) in stmts.iter().enumerate() {
            self.labeled = index > 0 && matches!(stmts[index - 1], Stmt::Label(_));
            match *stmt {
                Stmt::Instr(i) => self.instr(memos, i),
                Stmt::Label(_) => self.label(stmts, index),
                Stmt::Var(v) => self.variable(v),
                Stmt::Directive(d) => self.directive(&self.tree.directives[d as usize]),
                Stmt::Prototype(f) => self.prototype(f),
                Stmt::Open(at) => {
                    self.opened.push(at.start);
                    self.names.open();
                    self.bind_labels();
                }
                // The parser has complained about one that closes nothing.
                Stmt::Close(_) => {
                    self.opened.pop();
                    self.names.close();
                }
            }
        }
        crate::rules::body::finish(self);
    }

    /// Declares the formals, and binds `.reg` ones to registers: returns first, then parameters.
    fn formals(&mut self) {
        let func = self.func;
        for (formals, ret) in [(&func.rets, true), (&func.params, false)] {
            for (index, formal) in formals.iter().enumerate() {
                let name = self.tree.str(formal.span);
                let binding = match (formal.space, ret) {
                    (FormalSpace::Reg, _) => {
                        let id = self.register(formal.ty, formal.vector, 1, false, formal.span, None);
                        self.alignments.push((id, formal.align));
                        self.wrote(RegId(self.body.regs[id as usize].first.0));
                        Binding::Reg(id)
                    }
                    (FormalSpace::Param, true) => Binding::Ret(index as u32),
                    (FormalSpace::Param, false) => Binding::Param(index as u32),
                };
                if name == "_" {
                    continue;
                }
                if let Err(first) = self.names.declare(name, formal.span, binding) {
                    self.duplicate(name, formal.span, first);
                }
            }
        }
    }

    /// Adds a declaration of registers; its index.
    pub(super) fn register(
        &mut self,
        ty: margay_isa::Type,
        vector: u8,
        count: u32,
        numbered: bool,
        name: Span,
        global: Option<GlobalId>,
    ) -> u32 {
        let first = RegId(self.next);
        // Beyond four billion registers everything is one: the declaration was refused.
        self.next = self.next.saturating_add(count);
        self.body.regs.push(RegDecl { first, count, numbered, ty, vector, name, global });
        self.body.regs.len() as u32 - 1
    }

    pub(super) fn duplicate(&mut self, name: &str, span: Span, first: Span) {
        // Labels are declared when their block begins: the earlier of the two may be the one that is declared now.
        let (span, first) = if span.start < first.start { (first, span) } else { (span, first) };
        let place = match self.names.family_of(name) {
            Some((count, at)) if at == first => format!("`{}<{count}>` declares it already", self.tree.str(first)),
            _ => "first declared here".to_owned(),
        };
        self.report.push(
            Diagnostic::new(Code::Duplicate, span, format!("`{name}` is declared twice in one scope"))
                .label(first, place),
        );
    }

    /// The function of that name, if it is declared before this place; complains if not.
    pub(super) fn function_named(&mut self, span: Span) -> Option<FuncId> {
        let name = self.tree.str(span);
        let found = match self.module.symbol(name) {
            Some(Symbol::Func(f)) => Some(f),
            Some(Symbol::Alias(a)) if self.module.aliases[a as usize].first.start <= span.start => {
                return Some(self.module.aliases[a as usize].of);
            }
            Some(Symbol::Alias(a)) => {
                self.too_early(span, self.module.aliases[a as usize].first);
                return None;
            }
            _ => None,
        };
        match found {
            Some(f) if self.module.func(f).first.start <= span.start => Some(f),
            Some(f) => {
                self.too_early(span, self.module.func(f).first);
                None
            }
            None => {
                self.no_function(span);
                None
            }
        }
    }

    /// The variant that a candidate has in this body.
    pub(super) fn variant(&mut self, memos: &Memos, index: u32) -> u32 {
        if self.variants.len() <= index as usize {
            self.variants.resize(index as usize + 1, (0, 0));
        }
        let (epoch, id) = self.variants[index as usize];
        if epoch == self.epoch {
            return id;
        }
        let id = self.body.variants.len() as u32;
        self.body.variants.push(memos.candidate(index).variant.clone());
        self.variants[index as usize] = (self.epoch, id);
        id
    }

    /// The alignment that a register was declared with.
    pub(crate) fn register_alignment(&self, reg: RegId) -> Option<u32> {
        let decl = self.body.regs.partition_point(|d| d.first <= reg) as u32 - 1;
        self.alignments.iter().find(|(d, _)| *d == decl).map(|(_, a)| *a)
    }

    /// Notes that a register is written.
    pub(super) fn wrote(&mut self, reg: RegId) {
        let (word, bit) = (reg.0 as usize / 64, reg.0 % 64);
        if self.written.len() <= word {
            self.written.resize((self.next as usize / 64).min(MANY) + 1, 0);
        }
        if let Some(w) = self.written.get_mut(word) {
            *w |= 1 << bit;
        }
    }

    /// Notes that a register is read.
    #[inline]
    pub(super) fn reads(&mut self, reg: RegId, span: Span) {
        if self.read.get(reg.0 as usize / 64).is_none_or(|word| word >> (reg.0 % 64) & 1 == 0) {
            self.reads_first(reg, span);
        }
    }

    #[inline(never)]
    fn reads_first(&mut self, reg: RegId, span: Span) {
        let (word, bit) = (reg.0 as usize / 64, reg.0 % 64);
        if self.read.len() <= word {
            self.read.resize((self.next as usize / 64).min(MANY) + 1, 0);
        }
        if let Some(w) = self.read.get_mut(word) {
            *w |= 1 << bit;
            self.reads.push((reg, span));
        }
    }
}

/// Registers beyond this many words of 64 are not watched by lints.
const MANY: usize = 1 << 20;
