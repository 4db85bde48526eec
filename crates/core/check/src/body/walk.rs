//! Walks the statements of a body: blocks, labels, tables, declarations, instructions.

use super::names::{Binding, Names};
use super::{Body, Entry, LabelId, Memo, RegDecl, RegId, TableId, TargetTable};
use crate::module::{self, Module};
use crate::report::{Report, lacking, since};
use crate::rules::pointers::Origins;
use crate::rules::pragma;
use crate::rules::sequence::{Run, Use};
use crate::{FormalSpace, FuncId, FuncKind, Function, FxHashMap, GlobalId, Symbol};
use margay_syntax::{
    Span, Tree,
    diag::{Code, Diagnostic},
    tree::{Directive, FuncKind as TreeKind, Kind, Stmt},
};

/// What the rules of the whole module need to know of a body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Functions called directly, with the first place of each.
    pub(crate) calls: Vec<(FuncId, Span)>,
    /// Functions whose address is taken.
    pub(crate) taken: Vec<(FuncId, Span)>,
    /// Module-level variables that are named, with the first place of each.
    pub(crate) globals: Vec<(GlobalId, Span)>,
    /// `.shared` variables that the body declares: name, bytes, alignment.
    pub(crate) shared: Vec<(Span, u64, u32)>,
    /// `.const` variables that the body declares.
    pub(crate) constants: Vec<(Span, u64, u32)>,
    /// The first indirect call.
    pub(crate) indirect: Option<Span>,
    /// Prototypes that calls name, with the place of the call.
    pub(crate) prototypes: Vec<(Box<Function>, Span)>,
    /// Targets of the lists that calls name, with the place of the call.
    pub(crate) listed: Vec<(FuncId, Span)>,
    /// The groups of CTAs that share tensor memory.
    pub(crate) groups: crate::rules::pair::Groups,
    /// The first `.unified` of a variable that the body declares.
    pub(crate) unified: Option<Span>,
    /// The first `cvta.const` or `cvta.to.const`.
    pub(crate) cvta_const: Option<Span>,
    /// The first `ld.param` of a call's result that no earlier call feeds.
    pub(crate) stray_load: Option<(Span, Span)>,
}

/// Memory that is reused from body to body.
#[derive(Debug, Default)]
pub(crate) struct Scratch<'a> {
    names: Names<'a>,
    /// Per candidate of the memo: the body that used it last (a number), and its variant there.
    variants: Vec<(u32, u32)>,
    epoch: u32,
    body: Body,
    written: Vec<u64>,
}

/// Resolves and checks the body of a function; a function without one has no facts.
pub(crate) fn examine<'a>(
    tree: &'a Tree,
    module: &'a Module,
    func: FuncId,
    memo: &mut Memo,
    scratch: &mut Scratch<'a>,
    report: &mut Report,
) -> Facts {
    let mut body = std::mem::take(&mut scratch.body);
    body.clear();
    let mut walker = Walker::new(tree, module, func, scratch, report, body);
    walker.run(&mut Memos { shared: None, own: memo });
    let Walker { body, mut facts, names, written, .. } = walker;
    facts.globals.sort_by_key(|g| g.0);
    facts.globals.dedup_by_key(|g| g.0);
    (scratch.body, scratch.names, scratch.written) = (body, names, written);
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
    labels_seen: u32,
    pub(super) tables_seen: u32,
    /// Whether a label directly precedes the statement.
    labeled: bool,
    /// The instruction and the operand that are being looked at, for messages.
    pub(super) current: Place,
    /// Labels of all blocks: name, the one before it in the same block, its id.
    pub(super) labels: Vec<(Span, u32, LabelId)>,
    /// First label of each block, in order of the blocks.
    blocks: Vec<u32>,
    blocks_seen: usize,
    /// What represents registers of module scope in this body.
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
    pub(super) told: Option<u32>,
}

const NONE: u32 = u32::MAX;

impl<'a, 'm> Walker<'a, 'm> {
    fn new(
        tree: &'a Tree,
        module: &'a Module,
        func: FuncId,
        scratch: &'m mut Scratch<'a>,
        report: &'m mut Report,
        body: Body,
    ) -> Walker<'a, 'm> {
        let mut names = std::mem::take(&mut scratch.names);
        names.clear();
        scratch.epoch += 1;
        let mut written = std::mem::take(&mut scratch.written);
        written.clear();
        Walker {
            tree,
            module,
            func: module.func(func),
            names,
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
                Stmt::Open(_) => {
                    self.names.open();
                    self.bind_labels();
                }
                // The parser has complained about one that closes nothing.
                Stmt::Close(_) => drop(self.names.close()),
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

    /// Finds the labels of each block, so that branches may go forward.
    fn find_labels(&mut self, stmts: &[Stmt]) {
        let mut open: Vec<usize> = vec![0];
        self.blocks.push(NONE);
        let (mut labels, mut tables) = (0, 0);
        for (index, stmt) in stmts.iter().enumerate() {
            match *stmt {
                Stmt::Open(_) => {
                    open.push(self.blocks.len());
                    self.blocks.push(NONE);
                }
                Stmt::Close(_) if open.len() > 1 => drop(open.pop()),
                Stmt::Label(name) => {
                    if self.is_table(stmts, index) {
                        tables += 1;
                        continue;
                    }
                    let block = open.last().copied().unwrap_or(0);
                    self.labels.push((name, self.blocks[block], LabelId(labels)));
                    self.blocks[block] = labels;
                    labels += 1;
                }
                _ => {}
            }
        }
        self.body.labels.resize(labels as usize, (0, Span::default()));
        self.body.tables.resize(tables, TargetTable::Branch(Vec::new()));
    }

    fn is_table(&self, stmts: &[Stmt], index: usize) -> bool {
        match stmts.get(index + 1) {
            Some(Stmt::Prototype(_)) => true,
            Some(Stmt::Directive(d)) => {
                matches!(self.tree.str(self.tree.directives[*d as usize].name), ".branchtargets" | ".calltargets")
            }
            _ => false,
        }
    }

    /// Declares the labels of the block that begins here. Tables become visible at their position.
    fn bind_labels(&mut self) {
        let mut at = self.blocks.get(self.blocks_seen).copied().unwrap_or(NONE);
        self.blocks_seen += 1;
        if at == NONE {
            return;
        }
        // The list runs backwards; the first of two equal labels should be the first declared.
        let mut block = Vec::new();
        while at != NONE {
            let (name, before, id) = self.labels[at as usize];
            block.push((name, id));
            at = before;
        }
        for (name, id) in block.into_iter().rev() {
            let text = self.tree.str(name);
            // A name without its colon may also be one that stands at the wrong place, whose declaration counts.
            let lost = self.report.is_broken(name);
            let binding = if lost { Binding::Faulty } else { Binding::Label(id) };
            if let Err(first) = self.names.declare(text, name, binding)
                && !lost
            {
                self.duplicate(text, name, first);
            }
        }
    }

    fn label(&mut self, stmts: &[Stmt], index: usize) {
        let Stmt::Label(name) = stmts[index] else { return };
        if self.is_table(stmts, index) {
            let text = self.tree.str(name);
            let id = TableId(self.tables_seen);
            if let Err(first) = self.names.declare(text, name, Binding::Table(id)) {
                self.duplicate(text, name, first);
            }
            return;
        }
        let here = self.body.insts.len() as u32;
        self.run.label(here);
        if let Some(label) = self.body.labels.get_mut(self.labels_seen as usize) {
            *label = (here, name);
        }
        self.labels_seen += 1;
    }

    pub(super) fn duplicate(&mut self, name: &str, span: Span, first: Span) {
        let place = match self.names.family_of(name) {
            Some((count, at)) if at == first => format!("`{}<{count}>` declares it already", self.tree.str(first)),
            _ => "first declared here".to_owned(),
        };
        self.report.push(
            Diagnostic::new(Code::Duplicate, span, format!("`{name}` is declared twice in one scope"))
                .label(first, place),
        );
    }

    fn directive(&mut self, d: &Directive) {
        let tree = self.tree;
        match tree.str(d.name) {
            ".loc" => self.loc(d),
            // Not in the manual.
            name @ ".loc_intermediate" => {
                if let Some(lack) = lacking(self.module, &since(9, 4, 0)) {
                    self.report.push(lack.diagnose(self.module, &format!("`{name}`"), d.name));
                }
                self.position(d);
            }
            ".branchtargets" => {
                if let Some(lack) = lacking(self.module, &since(6, 0, 0)) {
                    self.report.push(lack.diagnose(self.module, "`.branchtargets`", d.name));
                }
                let targets = self.branch_targets(d);
                self.table(TargetTable::Branch(targets));
            }
            ".calltargets" => {
                crate::rules::reach::directive(self, d.span, "`.calltargets`");
                let targets = self.call_targets(d);
                self.table(TargetTable::Calls(targets));
            }
            ".pragma" => {
                let place =
                    if self.func.kind == FuncKind::Kernel { pragma::Place::Kernel } else { pragma::Place::Function };
                pragma::check(tree, self.module, d, place, self.report);
            }
            _ => {}
        }
    }

    /// Fills the table of the preceding label. A table without a label is useless, and the parser has reported it.
    fn table(&mut self, table: TargetTable) {
        if !self.labeled {
            return;
        }
        if let Some(slot) = self.body.tables.get_mut(self.tables_seen as usize) {
            *slot = table;
        }
        self.tables_seen += 1;
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

    fn prototype(&mut self, node: u32) {
        debug_assert!(matches!(self.tree.funcs[node as usize].kind, TreeKind::Prototype));
        crate::rules::reach::directive(self, self.tree.funcs[node as usize].header, "`.callprototype`");
        let function = module::signature(self.tree, self.module, node, self.report);
        self.table(TargetTable::Prototype(Box::new(function)));
    }

    fn loc(&mut self, d: &Directive) {
        let [file, line, column] = self.position(d);
        self.body.locs.push((self.body.insts.len() as u32, file, line, column));
    }

    /// File, line and column.
    fn position(&mut self, d: &Directive) -> [u32; 3] {
        let mut numbers = [0; 3];
        for (slot, o) in numbers.iter_mut().zip(self.tree.operands(d.args)) {
            if let Kind::Int { value, .. } = o.kind {
                *slot = module::narrow(self.tree, o.span, value.get(), self.report).unwrap_or(0);
            }
        }
        numbers
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
    pub(super) fn reads(&mut self, reg: RegId, span: Span) {
        let (word, bit) = (reg.0 as usize / 64, reg.0 % 64);
        if self.read.len() <= word {
            self.read.resize((self.next as usize / 64).min(MANY) + 1, 0);
        }
        if let Some(w) = self.read.get_mut(word)
            && *w >> bit & 1 == 0
        {
            *w |= 1 << bit;
            self.reads.push((reg, span));
        }
    }
}

/// Registers beyond this many words of 64 are not watched by lints.
const MANY: usize = 1 << 20;

/// The frozen memo of a module that has passed, if there is one, and the growing one.
pub(super) struct Memos<'m> {
    shared: Option<&'m Memo>,
    own: &'m mut Memo,
}

impl Memos<'_> {
    fn frozen(&self) -> u32 {
        self.shared.map_or(0, Memo::len) as u32
    }

    /// The entry of a mnemonic.
    pub(super) fn entry(&mut self, text: &str, module: &Module) -> Entry {
        if let Some(entry) = self.shared.and_then(|m| m.get(text)) {
            return entry;
        }
        let entry = match self.own.get(text) {
            Some(entry) => entry,
            None => self.own.add(text, module),
        };
        Entry { start: entry.start + self.frozen(), ..entry }
    }

    /// A candidate by index.
    pub(super) fn candidate(&self, index: u32) -> &super::Candidate {
        match self.shared {
            Some(memo) if index < self.frozen() => memo.candidate(index),
            _ => self.own.candidate(index - self.frozen()),
        }
    }
}

#[cfg(test)]
mod tests {
    /// A list of targets that no label names takes no place among the tables.
    #[test]
    fn tables_keep_their_labels() {
        let text = ".version 7.8\n.target sm_80\n.address_size 64\n.entry k() {\n.reg .b64 %d;\n.branchtargets L;\n\
                    P: .callprototype ();\ncall %d, P;\nL: ret;\n}\n";
        let (checked, found) = crate::check(margay_syntax::parse(text), &crate::Options::default());
        assert!(checked.is_none());
        assert!(found.iter().all(|d| d.code != margay_syntax::diag::Code::CallTable), "{found:?}");
    }
}
