//! One instruction: guard, mnemonic, selection among the candidate forms, operands.

use super::memo::Memos;
use super::walk::{Place, Walker};
use super::{Access, Binding, Candidate, Entry, Guard, Inst, Operand, RegId, VariantId, Want};
use crate::report::count;
use crate::{
    Symbol,
    compat::{self, Constants},
};
use margay_isa::{Kind as TypeKind, Opcode, Role, Type};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
    tree::{self, Instr, Kind, List},
};

impl<'a> Walker<'a, '_> {
    pub(super) fn instr(&mut self, memos: &mut Memos, node: u32) {
        let tree = self.tree;
        let instr = &tree.instrs[node as usize];
        self.current = Place { node, ..Place::default() };
        let guard = instr.guard.and_then(|g| self.guard(&g));
        let entry = memos.entry(tree.str(instr.mnemonic), self.module);
        let ops = tree.operands(instr.operands);
        if entry.len == 0 {
            return self.no_such_form(instr);
        }
        let index = if entry.len == 1 { entry.start } else { self.choose(memos, entry, ops) };
        let variant = VariantId(self.variant(memos, index));
        let c = memos.candidate(index);
        if c.unavailable.is_some() || c.parted || !c.in_order {
            self.about_mnemonic(c, instr);
        }
        let operands = if c.call { self.call(c, instr, ops) } else { self.operands(c, instr, ops) };
        // Made twice: a copy would have to wait for the parts to arrive in memory.
        self.body.insts.push(Inst { variant, guard, operands, node });
        let inst = Inst { variant, guard, operands, node };
        for rule in c.rules {
            crate::rules::instruction(*rule, self, c, &inst);
        }
        if matches!(c.variant.op, Opcode::Wmma | Opcode::Mma) {
            crate::rules::expanded::results(self, c, &inst);
        }
        if !self.alignments.is_empty() {
            crate::rules::expanded::check(self, c, &inst);
        }
        if self.follow {
            crate::rules::pointers::follow(self, &inst);
        }
        if c.cvta_const {
            self.facts.cvta_const.get_or_insert(instr.mnemonic);
        }
    }

    fn guard(&mut self, guard: &tree::Guard) -> Option<Guard> {
        let found = self.names.at(&self.tree.text, guard.name);
        if let Some((Binding::Reg(decl), number)) = found {
            let d = &self.body.regs[decl as usize];
            let reg = RegId(d.first.0.saturating_add(number));
            if d.ty == Type::Pred {
                self.reads(reg, guard.name);
                return Some(Guard { reg, negated: guard.negated });
            }
        }
        if let Some(operand) = self.module_register(guard.name)
            && let Operand::Reg(reg) = operand
            && self.body.decl(reg).ty == Type::Pred
        {
            return Some(Guard { reg, negated: guard.negated });
        }
        self.no_guard(guard.name, found.map(|f| f.0));
        None
    }

    /// The candidate that the operands fit best; the first of equals.
    fn choose(&self, memos: &Memos, entry: Entry, ops: &[tree::Operand]) -> u32 {
        let range = entry.start..entry.start + entry.len;
        range.min_by_key(|i| self.misfit(memos.candidate(*i), ops)).unwrap_or(entry.start)
    }

    /// How badly operands fit a form: 0 if they do.
    fn misfit(&self, c: &Candidate, ops: &[tree::Operand]) -> u32 {
        let lack = c.min.saturating_sub(ops.len()) + ops.len().saturating_sub(c.wants.len());
        let shapes: u32 = c.wants.iter().zip(ops).map(|(w, o)| self.misfit_of(c, w, o)).sum();
        shapes + 100 * lack as u32 + 10 * u32::from(c.unavailable.is_some() || c.parted)
    }

    fn misfit_of(&self, c: &Candidate, want: &Want, o: &tree::Operand) -> u32 {
        let brackets = matches!(o.kind, Kind::Brackets(_));
        match want.opnd.role {
            Role::Addr | Role::Group(_) if brackets => {
                let Kind::Brackets(list) = o.kind else { return 0 };
                match want.opnd.role {
                    Role::Group(_) => {
                        let (wants, inner) = (c.inside(want), self.tree.operands(list));
                        let lack = wants.len().abs_diff(inner.len()) as u32;
                        5 * lack + wants.iter().zip(inner).map(|(w, o)| self.misfit_of(c, w, o)).sum::<u32>()
                    }
                    _ => 5 * u32::from(list.len > 1),
                }
            }
            Role::Addr => u32::from(!matches!(o.kind, Kind::Index { .. })) * 20,
            _ if brackets => 20,
            Role::Imm if !matches!(o.kind, Kind::Int { .. } | Kind::Expr(_) | Kind::Float { .. }) => {
                5 * u32::from(self.tree.str(o.span) != "WARP_SZ")
            }
            _ => match o.kind {
                Kind::Braces(list) => match want.count {
                    Some(n) => 5 * u32::from(n != list.len),
                    None => 0,
                },
                Kind::Pair(_) => 10 * u32::from(want.pair == 0),
                Kind::Int { .. } | Kind::Float { .. } | Kind::Expr(_) if want.count.is_some_and(|n| n > 1) => 10,
                Kind::Float { .. } if matches!(want.constants, Constants::Int) => 5,
                Kind::Int { .. } | Kind::Float { .. } | Kind::Expr(_) => 5 * u32::from(!want.opnd.imm),
                Kind::Not(_) => 3 * u32::from(!compat::has(want.regs, Type::Pred)),
                Kind::Name => match self.names.at(&self.tree.text, o.span) {
                    Some((Binding::Reg(decl), _)) => {
                        let d = &self.body.regs[decl as usize];
                        let vector = want.count.is_some_and(|n| n != u32::from(d.vector));
                        3 * u32::from(!compat::has(want.regs, d.ty)) + 3 * u32::from(vector)
                    }
                    found => match want.opnd.role {
                        Role::Handle(ty) => 3 * u32::from(self.opaque(o, found).is_some_and(|t| t != ty)),
                        _ => 0,
                    },
                },
                _ => 0,
            },
        }
    }

    /// The type of a variable or parameter that denotes a texture, sampler or surface.
    fn opaque(&self, o: &tree::Operand, found: Option<(Binding, u32)>) -> Option<Type> {
        let ty = match found {
            Some((Binding::Param(i), _)) => self.func.params.get(i as usize)?.ty,
            Some(_) => return None,
            None => match self.module.symbol(self.tree.str(o.span))? {
                Symbol::Global(g) => self.module.global(g).ty,
                Symbol::Func(_) | Symbol::Alias(_) => return None,
            },
        };
        (ty.kind() == TypeKind::Opaque).then_some(ty)
    }

    /// Resolves and checks the operands of an instruction. The list has as many as were written.
    fn operands(&mut self, c: &Candidate, instr: &'a Instr, ops: &'a [tree::Operand]) -> List<Operand> {
        let start = self.body.operands.len() as u32;
        if ops.len() < c.min || ops.len() > c.wants.len() {
            self.wrong_count(c, instr, ops);
            return List::new(start, 0);
        }
        let list = List::new(start, ops.len() as u32);
        if let (Opcode::Ld, [first, second, ..]) = (c.variant.op, ops)
            && matches!(first.kind, Kind::Brackets(_))
            && matches!(second.kind, Kind::Name)
        {
            // The operands of a store; that is one mistake.
            let _ = self.no_destination(first);
            return List::new(start, 0);
        }
        if c.variant.op == Opcode::Selp && self.predicate_second(ops) {
            // Said of the predicate; the operand in its place follows from it.
            self.current.operand = 1;
            let _ = self.operand(c, &c.wants[1], &ops[1]);
            return List::new(start, 0);
        }
        self.body.operands.resize(start as usize + ops.len(), Operand::Error);
        for (i, (want, op)) in c.wants.iter().zip(ops).enumerate() {
            self.current.operand = i;
            self.body.operands[start as usize + i] =
                match want.plain.and_then(|access| self.plain_register(access, want, op)) {
                    Some(register) => Operand::Reg(register),
                    None => self.operand(c, want, op),
                };
        }
        list
    }

    /// The register that an operand names, if it already fits: this is nearly always so, and quick to check. Nothing
    /// where there is more to be looked at.
    #[inline]
    pub(super) fn plain_register(&mut self, access: Access, want: &Want, op: &tree::Operand) -> Option<RegId> {
        if !matches!(op.kind, Kind::Name) {
            return None;
        }
        let (Binding::Reg(decl), number) = self.names.at(&self.tree.text, op.span)? else { return None };
        let d = &self.body.regs[decl as usize];
        if !compat::has(want.regs, d.ty) || want.count != Some(u32::from(d.vector)) {
            return None;
        }
        let reg = RegId(d.first.0.saturating_add(number));
        match access {
            Access::Read => self.reads(reg, op.span),
            Access::Written => self.wrote(reg),
        }
        Some(reg)
    }

    #[cold]
    fn wrong_count(&mut self, c: &Candidate, instr: &Instr, ops: &[tree::Operand]) {
        // An operand that could not be read has its error, and may hide others.
        if ops.iter().any(|o| matches!(o.kind, Kind::Error)) {
            return;
        }
        if self.guard_as_operand(c, instr, ops) {
            return;
        }
        let name = self.tree.str(instr.mnemonic);
        let wants = if c.min == c.wants.len() {
            count(c.min, "operand")
        } else {
            let between = if c.wants.len() == c.min + 1 { "or" } else { "to" };
            format!("{} {between} {} operands", c.min, c.wants.len())
        };
        let wants = if c.wants.is_empty() { "no operands".to_owned() } else { wants };
        let names: Vec<String> = c.wants.iter().map(|w| w.opnd.name.to_owned()).collect();
        let form = format!("its operands are `{}`", names.join(", "));
        let given = match ops.len() {
            0 => "found none".to_owned(),
            1 => "found 1".to_owned(),
            n => format!("found {n}"),
        };
        let message = format!("`{name}` takes {wants}, {given}");
        let d = if ops.len() < c.min {
            let missing: Vec<String> = names[ops.len()..c.min].iter().map(|n| format!("`{n}`")).collect();
            let at = ops.last().map_or(instr.mnemonic, |o| o.span);
            let d = Diagnostic::new(Code::OperandCount, at, message)
                .here(format!("{} missing after this", crate::report::list(&missing, "and")));
            let address_first = ops.first().is_some_and(|o| matches!(o.kind, Kind::Brackets(_)));
            match c.variant.op {
                Opcode::Bar | Opcode::Barrier if ops.is_empty() => d.help("the barrier of `__syncthreads()` is `0`"),
                Opcode::Atom if address_first => {
                    d.help("`atom` has a destination; `red` is the same operation without one")
                }
                _ => d,
            }
        } else {
            let extra = ops[c.wants.len()].span.to(ops[ops.len() - 1].span);
            let d = Diagnostic::new(Code::OperandCount, extra, message).here("too many");
            match c.wants.len() {
                0 => {
                    let all = Span::new(instr.mnemonic.end, extra.end);
                    return self.report.push(d.fix(all, "", "remove it"));
                }
                2 if c.variant.op == Opcode::Mov && matches!(ops.len(), 3 | 5) => {
                    let parts = ops[1].span.to(extra);
                    let braces = format!("{{{}}}", self.tree.str(parts));
                    d.fix(parts, &braces, "put the registers that are packed into one in braces")
                }
                _ if c.variant.op == Opcode::Red && ops.len() == 3 => {
                    let name = Span::new(instr.mnemonic.start, instr.mnemonic.start + 3);
                    d.fix(name, "atom", "`red` has no result; `atom` returns the old value")
                }
                n => d.fix(ops[n - 1].span.after().to(extra), "", "remove the extra operands"),
            }
        };
        self.report.push(d.note(form));
    }

    /// `bra %p1, L`: the predicate of a branch precedes it. Whether this was the error.
    fn guard_as_operand(&mut self, c: &Candidate, instr: &Instr, ops: &[tree::Operand]) -> bool {
        let [p, target] = ops else { return false };
        let (name, negated) = match p.kind {
            Kind::Name => (p.span, ""),
            Kind::Not(inner) => match self.tree.operands.get(inner as usize) {
                Some(inner) => (inner.span, "!"),
                None => return false,
            },
            _ => return false,
        };
        if c.variant.op != Opcode::Bra || !self.is_predicate(name) || instr.guard.is_some() {
            return false;
        }
        let text = |span| self.tree.str(span);
        let whole = format!("@{negated}{} {} {}", text(name), text(instr.mnemonic), text(target.span));
        let message =
            format!("`{}` takes only a label; write the predicate as a guard before it", text(instr.mnemonic));
        let d = Diagnostic::new(Code::OperandCount, p.span, message).here("a guard, not an operand");
        self.report.push(d.fix(instr.mnemonic.to(target.span), whole.clone(), format!("write `{whole}`")));
        true
    }

    fn is_predicate(&self, name: Span) -> bool {
        match self.names.at(&self.tree.text, name) {
            Some((Binding::Reg(decl), _)) => self.body.regs[decl as usize].ty == Type::Pred,
            _ => false,
        }
    }

    /// Whether the predicate of `selp` directly follows the destination.
    fn predicate_second(&self, ops: &[tree::Operand]) -> bool {
        let [_, p, _, last] = ops else { return false };
        matches!(p.kind, Kind::Name) && self.is_predicate(p.span) && !self.is_predicate(last.span)
    }

    /// The span of the mnemonic of the current instruction.
    pub(super) fn mnemonic(&self) -> Span {
        self.tree.instrs[self.current.node as usize].mnemonic
    }
}
