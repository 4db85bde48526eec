//! What is said when an instruction does not fit: always the operand, what was found, what was wanted, and where the other
//! half of the story stands. Nothing here runs for a right module.

use super::address::want_space;
use super::memo::{Unavailable, words};
use super::names::Binding;
use super::operand::Named;
use super::walk::Walker;
use super::{Candidate, Operand, SymRef, Want};
use crate::compat::{self, Constants};
use crate::report::{count, lacking, list};
use margay_isa::{
    Component, Kind as TypeKind, Mod, Opcode, Parts, Role, Since, Space, Special, Ty, Type, Word, resolve,
};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic, Suggestion, nearest},
    tree::{self, Instr, Kind},
};

fn ticks<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> Vec<String> {
    items.into_iter().map(|t| format!("`{t}`")).collect()
}

fn dotted(words: &[Word]) -> Vec<String> {
    words.iter().map(|w| format!("`.{}`", w.name())).collect()
}

impl<'a> Walker<'a, '_> {
    // ---- the mnemonic ----

    /// No row of the table takes this mnemonic.
    #[cold]
    pub(super) fn no_such_form(&mut self, instr: &Instr) {
        let text = self.tree.str(instr.mnemonic);
        let parts = words(text);
        let at = |i: usize| {
            let (offset, word) = parts[i];
            let start = instr.mnemonic.start + offset as u32;
            Span::new(start, start + word.len() as u32)
        };
        let dot = |i: usize| Span::new(at(i).start.saturating_sub(1), at(i).end);
        let Some((_, name)) = parts.first() else { return };
        let Some(op) = Opcode::from_name(name) else {
            let mut d = Diagnostic::new(Code::UnknownInstruction, at(0), format!("unknown instruction `{name}`"));
            if self.report.may_suggest() {
                let near = nearest(name, Opcode::ALL.iter().map(|o| o.row().name));
                d = suggest(d, at(0), near.unwrap_or_default());
            }
            return self.report.push(d);
        };
        let forms = op.row().forms;
        let possible = || {
            let words = forms.iter().flat_map(|f| f.slots).flat_map(slot_words);
            let mut all: Vec<Word> = words.collect();
            all.sort();
            all.dedup();
            all
        };
        for (i, (_, word)) in parts.iter().enumerate().skip(1) {
            if Word::from_name(word).is_none() {
                let all = possible();
                return self.unknown_modifier(op, &parts, i, &all, dot(i));
            }
        }
        let found: Vec<Word> = parts[1..].iter().filter_map(|(_, w)| Word::from_name(w)).collect();
        let types: Vec<usize> = (0..found.len()).filter(|i| matches!(found[*i], Word::Type(_))).collect();
        // One word too many?
        for i in 0..found.len() {
            let mut fewer = found.clone();
            fewer.remove(i);
            if matches!(found[i], Word::Mod(_)) && resolve(op, &fewer, |_| true).is_ok() {
                return self.superfluous(op, &found, i, &|i| at(i + 1), &|i| dot(i + 1));
            }
        }
        // One word too few?
        if !types.is_empty()
            && let Some((gap, fits)) = missing_word(op, &found, &possible())
        {
            let after = dot(gap);
            let choices = list(&dotted(&fits), "or");
            let d = Diagnostic::new(Code::MissingModifier, instr.mnemonic, format!("`{text}` lacks a modifier"))
                .here(format!("expected {choices} after `{}`", self.tree.str(after).trim_start_matches('.')));
            return self.report.push(d);
        }
        // Another type?
        for i in types.iter().copied() {
            let fits: Vec<Type> = Type::ALL
                .iter()
                .copied()
                .filter(|t| {
                    let mut other = found.clone();
                    other[i] = Word::Type(*t);
                    resolve(op, &other, |_| true).is_ok()
                })
                .collect();
            if !fits.is_empty() {
                let word = found[i].name();
                let with: Vec<Word> = found.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, w)| *w).collect();
                let beside =
                    if with.is_empty() { String::new() } else { format!(" beside {}", list(&dotted(&with), "and")) };
                let takes = list(&ticks(&fits), "or");
                let d = Diagnostic::new(
                    Code::InstructionType,
                    dot(i + 1),
                    format!("`{name}` does not take `.{word}`{beside}"),
                )
                .here(format!("expected {takes}"));
                return self.report.push(d);
            }
        }
        let Err(why) = resolve(op, &found, |_| true) else { return };
        let wanted_types: Vec<Type> =
            why.expected.iter().filter_map(|w| if let Word::Type(t) = w { Some(*t) } else { None }).collect();
        if types.is_empty() && why.at >= found.len() && !wanted_types.is_empty() {
            let d = Diagnostic::new(Code::MissingType, instr.mnemonic, format!("`{text}` has no type"))
                .here(format!("expected {}", list(&ticks(&wanted_types), "or")));
            let likely = self.likely_type(instr, &wanted_types);
            let d = match likely {
                Some(t) => suggest(d, instr.mnemonic.after(), &format!("{t}")),
                None => d,
            };
            return self.report.push(d);
        }
        let choices = list(&dotted(&why.expected), "or");
        if why.at >= found.len() {
            self.report.push(
                Diagnostic::new(Code::MissingModifier, instr.mnemonic, format!("`{text}` lacks a modifier"))
                    .here(format!("expected {choices} next")),
            );
        } else {
            let word = found[why.at].name();
            let (code, message) = match found[why.at] {
                Word::Type(_) => (Code::InstructionType, format!("`{name}` does not take `.{word}` here")),
                Word::Mod(_) => (Code::WrongModifier, format!("`{name}` does not take `.{word}` here")),
            };
            let d = Diagnostic::new(code, dot(why.at + 1), message);
            let d = if why.expected.is_empty() {
                d.here("nothing more was expected")
            } else {
                d.here(format!("expected {choices}"))
            };
            self.report.push(d);
        }
    }

    /// A word that no instruction has.
    fn unknown_modifier(&mut self, op: Opcode, parts: &[(usize, &str)], i: usize, all: &[Word], at: Span) {
        let (name, word) = (op.row().name, parts[i].1);
        // What would be right in its place, if the rest is right?
        let rest: Option<Vec<Word>> =
            parts.iter().enumerate().skip(1).filter(|(j, _)| *j != i).map(|(_, (_, w))| Word::from_name(w)).collect();
        let fits: Vec<Word> = match &rest {
            Some(rest) => {
                let takes = |w: &&Word| {
                    let mut words = rest.clone();
                    words.insert(i - 1, **w);
                    resolve(op, &words, |_| true).is_ok_and(|r| r.in_order)
                };
                all.iter().filter(takes).copied().collect()
            }
            None => Vec::new(),
        };
        let types = rest.iter().flatten().filter(|w| matches!(w, Word::Type(_)));
        let beside: String = types.map(|w| format!(".{}", w.name())).collect();
        let choices = if fits.is_empty() { all } else { &fits };
        let near =
            nearest(word, choices.iter().map(|w| w.name())).or_else(|| nearest(word, all.iter().map(|w| w.name())));
        let mut d = Diagnostic::new(Code::UnknownModifier, at, format!("`.{word}` is no modifier of `{name}{beside}`"));
        if let Some(shapes) = shapes_like(word, choices) {
            d = d.note(format!("shapes that go with the rest: {}", shapes.join(" ")));
        } else if choices.len() <= 24 {
            let names: Vec<String> = choices.iter().map(|w| format!(".{}", w.name())).collect();
            d = d.note(format!("here it takes {}", names.join(" ")));
        }
        self.report.push(suggest(d, at, &near.map(|n| format!(".{n}")).unwrap_or_default()));
    }

    /// The mnemonic would be right without one of its modifiers.
    fn superfluous(
        &mut self,
        op: Opcode,
        found: &[Word],
        i: usize,
        _at: &dyn Fn(usize) -> Span,
        dot: &dyn Fn(usize) -> Span,
    ) {
        let name = op.row().name;
        let word = found[i].name();
        if found[..i].contains(&found[i]) {
            let first = found.iter().position(|w| *w == found[i]).unwrap_or(0);
            return self.report.push(
                Diagnostic::new(Code::WrongModifier, dot(i), format!("`.{word}` twice"))
                    .label(dot(first), "first here")
                    .fix(dot(i), "", "remove it"),
            );
        }
        let types: Vec<usize> = (0..found.len()).filter(|j| matches!(found[*j], Word::Type(_))).collect();
        // With which types does the modifier go?
        let mut goes: Vec<Type> = Vec::new();
        if let Some(j) = types.first().copied() {
            goes.extend(Type::ALL.iter().copied().filter(|t| {
                let mut other = found.to_vec();
                other[j] = Word::Type(*t);
                resolve(op, &other, |_| true).is_ok()
            }));
        }
        let mut d = match types.first() {
            Some(j) if !goes.is_empty() => {
                let ty = found[*j].name();
                Diagnostic::new(Code::WrongModifier, dot(i), format!("`{name}.{ty}` takes no `.{word}`"))
                    .here(format!("goes with {}", list(&ticks(&goes), "and")))
                    .label(dot(*j), "not with this type")
            }
            _ => Diagnostic::new(Code::WrongModifier, dot(i), format!("`{name}` takes no `.{word}` here")),
        };
        d = d.fix(dot(i), "", format!("remove `.{word}`"));
        self.report.push(d);
    }

    /// The type that the first register among the operands suggests.
    fn likely_type(&self, instr: &Instr, wanted: &[Type]) -> Option<Type> {
        let tys =
            self.tree.operands(instr.operands).iter().filter_map(|o| match self.names.get(self.tree.str(o.span)) {
                Some((Binding::Reg(decl), _)) => Some(self.body.regs[decl as usize].ty),
                _ => None,
            });
        let first = tys.into_iter().next()?;
        let mut fits: Vec<Type> =
            wanted.iter().copied().filter(|t| compat::has(compat::registers(*t, false), first)).collect();
        // Signed integers are the most common meaning of untyped registers.
        fits.sort_by_key(|t| (*t != first, !t.is_signed()));
        fits.first().copied()
    }

    /// The form exists, but not here, or its modifiers stand in another order.
    #[cold]
    pub(super) fn about_mnemonic(&mut self, c: &Candidate, instr: &Instr) {
        let text = self.tree.str(instr.mnemonic);
        match &c.unavailable {
            Some(Unavailable::Lacks(what, lack)) => {
                let mut d = lack.diagnose(self.module, what, instr.mnemonic);
                if let Some(other) = alternative(c) {
                    d = d.help(other);
                }
                self.report.push(d);
            }
            Some(Unavailable::Removed(until)) => {
                let d = Diagnostic::new(
                    Code::NoLongerSupported,
                    instr.mnemonic,
                    format!("`{}` was removed in PTX ISA {} for targets from sm_{} on", c.variant, until.ptx, until.sm),
                );
                let d = match (self.module.version_at, self.module.target_at) {
                    (Some(v), Some(t)) => d
                        .label(v, format!("the module says {}", self.module.version))
                        .label(t, format!("and `{}`", self.module.target)),
                    _ => d,
                };
                let sync = format!("{}.sync", c.variant.op.row().name);
                let d = if c
                    .variant
                    .op
                    .row()
                    .forms
                    .iter()
                    .any(|f| f.slots.iter().any(|s| slot_words(s).contains(&Word::Mod(Mod::Sync))))
                {
                    d.help(format!("write `{sync}...` with a mask of the lanes that take part"))
                } else {
                    d
                };
                self.report.push(d);
            }
            None => {}
        }
        if !c.in_order {
            let canonical = c.variant.to_string();
            self.report.push(
                Diagnostic::new(Code::ModifierOrder, instr.mnemonic, format!("the manual's order is `{canonical}`"))
                    .here(format!("`{text}` means the same"))
                    .fix(instr.mnemonic, canonical, "put the modifiers in order"),
            );
        }
    }

    // ---- names ----

    /// Nothing of that name.
    #[cold]
    pub(super) fn unknown(&mut self, span: Span, what: &str) -> Operand {
        let tree = self.tree;
        let name = tree.str(span);
        let code = match what {
            "register" | "argument" | "name" => Code::UnknownRegister,
            "table" | "label" => Code::UnknownLabel,
            _ => Code::UnknownVariable,
        };
        let noun = match what {
            "argument" => "name",
            "table" => "label",
            "constant" => "name",
            other => other,
        };
        let mut d = Diagnostic::new(code, span, format!("unknown {noun} `{name}`"));
        if let Some((n, at)) = self.names.family_of(name) {
            let stem = super::names::prefix(name);
            let last =
                if n == 0 { "nothing".to_owned() } else { format!("`{stem}0` to `{stem}{}`", n.saturating_sub(1)) };
            d = d.label(at, format!("this declares {last}"));
            let number: Option<u32> = name[stem.len()..].parse().ok();
            if let Some(number) = number.filter(|n| *n < 1 << 20) {
                d = d.help(format!("raise the family to `{stem}<{}>`", number + 1));
            }
        }
        if self.report.may_suggest() && !name.is_empty() {
            let near = self.near(name, what);
            if let Some(near) = near {
                d = suggest(d, span, &near);
            }
        }
        self.report.push(d);
        self.names.fault(name, span);
        Operand::Error
    }

    /// The known name nearest to an unknown one, of the kind that is wanted.
    fn near(&self, name: &str, what: &str) -> Option<String> {
        const MOST: usize = 4000;
        let stem = super::names::prefix(name);
        if what == "register" || what == "name" || what == "argument" {
            // `%r11` past `%r<8>` may be `%r1` with a finger too many.
            if let Some((n, _)) = self.names.family_of(name) {
                let digits = &name[stem.len()..];
                let shorter =
                    (1..digits.len()).rev().map(|l| &digits[..l]).find(|d| d.parse::<u32>().is_ok_and(|x| x < n));
                return shorter.map(|d| format!("{stem}{d}"));
            }
        }
        let wanted = move |b: Binding| match what {
            "register" => matches!(b, Binding::Reg(_)),
            "parameter" => matches!(b, Binding::Param(_) | Binding::Ret(_) | Binding::Local(_)),
            "variable" => matches!(b, Binding::Local(_) | Binding::Param(_) | Binding::Ret(_)),
            "label" => matches!(b, Binding::Label(_)),
            "table" => matches!(b, Binding::Table(_)),
            _ => !matches!(b, Binding::Label(_) | Binding::Table(_) | Binding::Faulty),
        };
        let mut candidates: Vec<&str> = self.names.candidates(wanted).take(MOST).collect();
        if matches!(what, "variable" | "name" | "parameter" | "argument") {
            candidates.extend(self.module.globals.iter().take(MOST).map(|g| &*g.name));
        }
        candidates.sort_unstable();
        nearest(name, candidates).map(str::to_owned)
    }

    /// The name is declared, but further down.
    #[cold]
    pub(super) fn too_early(&mut self, span: Span, at: Span) {
        let name = self.tree.str(span);
        self.report.push(
            Diagnostic::new(Code::UsedBeforeDeclaration, span, format!("`{name}` is used before its declaration"))
                .label(at, "declared here")
                .help("move the declaration up, or declare it before with `.extern` or as a prototype"),
        );
    }

    /// No function of that name.
    #[cold]
    pub(super) fn no_function(&mut self, span: Span) {
        let name = self.tree.str(span);
        if let Some(crate::Symbol::Global(id)) = self.module.symbol(name) {
            let at = self.module.global(id).span;
            return self.report.push(
                Diagnostic::new(Code::UnknownFunction, span, format!("`{name}` is a variable, not a function"))
                    .label(at, "declared here"),
            );
        }
        let mut d = Diagnostic::new(Code::UnknownFunction, span, format!("unknown function `{name}`"));
        let known =
            || self.module.funcs.iter().filter(|f| f.kind == crate::FuncKind::Device && f.first.start < span.start);
        let names: Vec<&str> = known().map(|f| &*f.name).take(4000).collect();
        if self.report.may_suggest()
            && let Some(near) = nearest(name, names.iter().copied())
        {
            d = suggest(d, span, near);
        }
        if !names.is_empty() && names.len() <= 8 {
            d = d.note(format!("functions known here: {}", list(&ticks(&names), "and")));
        }
        d = d.help(format!("if it is defined elsewhere, declare it: `.extern .func {name} (...);`"));
        self.report.push(d);
    }

    /// The name is no label, or of no label that can be seen from here.
    #[cold]
    pub(super) fn not_a_label(&mut self, span: Span, found: Option<Binding>) {
        let name = self.tree.str(span);
        if let Some(binding) = found {
            let what = match binding {
                Binding::Reg(_) => "a register",
                Binding::Table(_) => "a table",
                _ => "a variable",
            };
            return self.report.push(Diagnostic::new(
                Code::OperandKind,
                span,
                format!("`{name}` is {what}, not a label"),
            ));
        }
        if let Some(crate::Symbol::Func(_) | crate::Symbol::Alias(_)) = self.module.symbol(name) {
            return self.report.push(
                Diagnostic::new(Code::OperandKind, span, format!("`{name}` is a function, not a label"))
                    .help(format!("write `call {name};`")),
            );
        }
        if let Some(crate::Symbol::Global(_)) = self.module.symbol(name) {
            return self.report.push(Diagnostic::new(
                Code::OperandKind,
                span,
                format!("`{name}` is a variable, not a label"),
            ));
        }
        // The label may stand in what the parser had to skip.
        if self.report.is_broken(self.tree.funcs[self.func.node as usize].span) {
            return;
        }
        let mut d = Diagnostic::new(Code::UnknownLabel, span, format!("no label `{name}` in `{}`", self.func.name));
        if let Some(at) = self.hidden_label(name) {
            d = d
                .label(at, "this one belongs to an inner block")
                .note("labels are known in their own block and in the blocks inside it");
        } else {
            let mut labels: Vec<&str> = self.names.candidates(|b| matches!(b, Binding::Label(_))).take(4000).collect();
            labels.sort_unstable();
            if self.report.may_suggest()
                && let Some(near) = nearest(name, labels.iter().copied())
            {
                d = suggest(d, span, near);
            }
            if !labels.is_empty() && labels.len() <= 8 {
                d = d.note(format!("labels here: {}", list(&ticks(&labels), "and")));
            }
        }
        self.report.push(d);
        self.names.fault(name, span);
    }

    #[cold]
    pub(super) fn not_a_table(&mut self, span: Span) {
        let name = self.tree.str(span);
        let text = self.tree.str(self.mnemonic());
        if let Some((Binding::Table(_), _)) = self.names.get(name) {
            return self.report.push(
                Diagnostic::new(
                    Code::OperandKind,
                    span,
                    format!("`{name}` is a table of functions; `{text}` takes labels"),
                )
                .here("expected the label of `.branchtargets`"),
            );
        }
        self.report.push(
            Diagnostic::new(Code::OperandKind, span, format!("`{name}` is not the label of a table")).note(
                "tables are `.callprototype`, `.calltargets` and `.branchtargets`, declared before they are used",
            ),
        );
    }

    // ---- registers ----

    /// Complains if a register does not have a type that the operand takes.
    pub(super) fn register_fits(&mut self, c: &Candidate, want: &Want, takes: compat::Types, decl: u32, span: Span) {
        if !compat::has(takes, self.body.regs[decl as usize].ty) {
            self.wrong_register(c, want, takes, decl, span);
        }
    }

    #[cold]
    fn wrong_register(&mut self, c: &Candidate, want: &Want, takes: compat::Types, decl: u32, span: Span) {
        let d = self.body.regs[decl as usize];
        let name = self.tree.str(span);
        let text = self.tree.str(self.mnemonic());
        let verb = if want.opnd.role == Role::Dst { "writes" } else { "reads" };
        let ty = want.ty.unwrap_or(Type::B64);
        let width = if takes == compat::addresses() { 64 } else { ty.bits() };
        let addresses = takes == compat::addresses();
        let narrow = want.opnd.wider && d.ty.bits() < width;
        let same_width = d.ty.bits() == width || (want.opnd.wider && d.ty.bits() >= width) || addresses;
        let place = format!("operand {} (`{}`)", self.current.operand + 1, want.opnd.name);
        let declared = if d.numbered {
            format!("`.reg {} {}<{}>`", d.ty, self.tree.str(d.name), d.count)
        } else {
            format!("`.reg {} {}`", d.ty, self.tree.str(d.name))
        };
        let pred = (d.ty == Type::Pred, ty == Type::Pred);
        let (code, message) = match pred {
            (true, false) => {
                (Code::OperandType, format!("`{name}` is a predicate; {place} of `{text}` is {}", wanted(want, takes)))
            }
            (false, true) => (Code::OperandType, format!("`{name}` is `{}`; {place} of `{text}` is a predicate", d.ty)),
            _ if same_width => {
                (Code::OperandType, format!("`{name}` is `{}`; {place} of `{text}` is {}", d.ty, wanted(want, takes)))
            }
            _ => (
                Code::OperandWidth,
                format!(
                    "`{name}` is {} bits wide; {place} of `{text}` {verb} {}{width}",
                    d.ty.bits(),
                    if narrow { "at least " } else { "" }
                ),
            ),
        };
        let mut e = Diagnostic::new(code, span, message)
            .here(format!("expected {}", registers(takes)))
            .label(d.name, format!("declared as {declared}"));
        for help in self.conversions(c, want, ty, d.ty, span) {
            e = e.help(help);
        }
        self.report.push(e);
    }

    /// What would make a register of type `have` fit where `want` is wanted.
    fn conversions(&self, c: &Candidate, want: &Want, ty: Type, have: Type, span: Span) -> Vec<String> {
        let op = c.variant.op.row().name;
        let name = self.tree.str(span);
        let dst = want.opnd.role == Role::Dst;
        let mut out = Vec::new();
        let kind = |t: Type| t.kind();
        match (ty, have) {
            (Type::Pred, _) if op == "setp" => {
                out.push(format!("`setp` writes `.pred`; `set` writes a number: `set.{}...`", rest_of(c, "u32")));
            }
            (Type::Pred, _) if !dst => {
                out.push(format!("compare first: `setp.ne.{}{} p, {name}, 0;`", "b", have.bits().max(16)))
            }
            (_, Type::Pred) if !dst => out.push(format!(
                "make a number of it: `selp{} t, 1, 0, {name};`",
                if ty.is_int() { ty } else { Type::B32 }
            )),
            (_, Type::Pred) => {}
            _ if dst || c.variant.op.row().name == "cvt" => {}
            _ if kind(ty) != TypeKind::Float && have.is_float() => {
                let int = if ty.is_int() { ty } else { Type::S32 };
                out.push(format!("convert the value: `cvt.rni{int}{have}`"));
            }
            _ if ty.is_float() && (have.is_int() || have.kind() == TypeKind::Bits) && have.bits() >= 16 => {
                let int = if have.is_int() { have } else { as_signed(have) };
                out.push(format!("convert the value: `cvt.rn{ty}{int}`"));
            }
            _ if ty.is_float() && have.is_float() => {
                let rn = if ty.bits() < have.bits() { ".rn" } else { "" };
                out.push(format!("convert the value: `cvt{rn}{ty}{have}`"));
            }
            _ if ty.bits() != have.bits() && have.bits() <= 64 && ty.bits() <= 64 => {
                let to = unsigned(ty);
                let from = unsigned(have);
                out.push(format!("convert the value: `cvt{to}{from}`"));
            }
            _ => {}
        }
        // Another type of the same instruction?
        let slot = c.variant.words.iter().rposition(|w| matches!(w, Word::Type(_)));
        if let (Some(slot), false) = (slot, have == Type::Pred && !dst) {
            let mut words: Vec<Word> = c.variant.words.to_vec();
            let typed = if have.kind() == TypeKind::Bits && have.bits() >= 16 && ty.is_int() {
                [if ty.is_signed() { as_signed(have) } else { unsigned(have) }, have]
            } else {
                [have, have]
            };
            for t in typed {
                words[slot] = Word::Type(t);
                if let Ok(found) = resolve(c.variant.op, &words, |_| true)
                    && found.variant.row().operands.len() == c.variant.row().operands.len()
                {
                    out.push(format!("or use `{}`", found.variant));
                    break;
                }
            }
        }
        out
    }

    /// Complains if a register's vector size is not the operand's.
    pub(super) fn vector_fits(&mut self, want: &Want, decl: u32, span: Span) {
        let d = self.body.regs[decl as usize];
        let Some(n) = want.count else { return };
        if n == u32::from(d.vector) {
            return;
        }
        let name = self.tree.str(span);
        let text = self.tree.str(self.mnemonic());
        let (message, help) = if d.vector > 1 && n == 1 {
            (
                format!(
                    "`{name}` is a vector of {}; operand {} of `{text}` is a scalar",
                    d.vector,
                    self.current.operand + 1
                ),
                format!("name one element: `{name}.x`"),
            )
        } else if d.vector == 1 {
            (
                format!("`{text}` moves {n} values here, `{name}` holds one"),
                format!("write a vector: `{{{name}, ...}}`"),
            )
        } else {
            (format!("`{text}` moves {n} values here, `{name}` holds {}", d.vector), format!("use `.v{}`", d.vector))
        };
        self.report.push(Diagnostic::new(Code::VectorSize, span, message).label(d.name, "declared here").help(help));
    }

    /// A load or store of a texture, sampler or surface.
    #[cold]
    pub(super) fn opaque_access(&mut self, ty: margay_isa::Type, span: Span, declared: Span) {
        let (name, text) = (self.tree.str(span), self.tree.str(self.mnemonic()));
        self.report.push(
            Diagnostic::new(Code::OperandType, span, format!("`{name}` is `{ty}`; `{text}` accesses plain data"))
                .label(declared, "declared here")
                .help("only texture and surface instructions use it by name; `mov.u64` takes its handle"),
        );
    }

    /// A constant where a vector is wanted.
    #[cold]
    pub(super) fn constant_for_vector(&mut self, want: &Want, op: &tree::Operand) -> Operand {
        let (text, n) = (self.tree.str(self.mnemonic()), count(want.count.unwrap_or(1) as usize, "register"));
        let operand = format!("operand {} (`{}`)", self.current.operand + 1, want.opnd.name);
        let found = self.tree.str(op.span);
        self.report.push(
            Diagnostic::new(
                Code::VectorSize,
                op.span,
                format!("{operand} of `{text}` is a vector of {n}, found the constant {found}"),
            )
            .help("name the registers in braces"),
        );
        Operand::Error
    }

    /// A vector in braces has another number of elements.
    #[cold]
    pub(super) fn wrong_vector(&mut self, c: &Candidate, want: &Want, op: &tree::Operand, found: usize) -> Operand {
        if let Kind::Braces(list) = op.kind
            && self.tree.operands(list).iter().any(|o| matches!(o.kind, Kind::Error))
        {
            return Operand::Error;
        }
        let text = self.tree.str(self.mnemonic());
        let vec = c.variant.vec();
        let operand = format!("operand {} (`{}`)", self.current.operand + 1, want.opnd.name);
        let d = match want.count {
            Some(1) if found == 1 => {
                let inner = self.tree.str(op.span).trim_matches(['{', '}', ' ']).to_owned();
                Diagnostic::new(Code::VectorSize, op.span, format!("{operand} of `{text}` is a scalar, without braces"))
                    .fix(op.span, inner, "remove the braces")
            }
            Some(1) => Diagnostic::new(
                Code::VectorSize,
                op.span,
                format!("{operand} of `{text}` is a scalar, not a vector of {found}"),
            )
            .help(if c.variant.op.row().name == "ld" || c.variant.op.row().name == "st" {
                format!("write `.v{found}` to move {found} values")
            } else {
                "name one register".to_owned()
            }),
            Some(n) if vec == n && vec > 1 => {
                Diagnostic::new(Code::VectorSize, op.span, format!("`.v{n}` moves {n} values, {found} given"))
                    .here(format!("expected {}", count(n as usize, "element")))
            }
            Some(n) => {
                let ty = want.ty.map(|t| format!(" `{t}`")).unwrap_or_default();
                let others: Vec<String> = c
                    .wants
                    .iter()
                    .filter_map(|w| w.count.filter(|n| *n > 1).map(|n| format!("{} {n}", w.opnd.name)))
                    .collect();
                let d = Diagnostic::new(
                    Code::VectorSize,
                    op.span,
                    format!("{operand} of `{text}` holds {n}{ty} registers, {found} given"),
                )
                .here(format!("expected {}", count(n as usize, "register")));
                if others.len() > 1 { d.note(format!("registers of each operand: {}", others.join(", "))) } else { d }
            }
            None => Diagnostic::new(
                Code::VectorSize,
                op.span,
                format!("`{text}` cannot be split into {} of equal width", count(found, "element")),
            ),
        };
        self.report.push(d);
        Operand::Error
    }

    /// The partner after `|` is missing.
    #[cold]
    pub(super) fn missing_partner(&mut self, want: &Want, op: &tree::Operand) -> Operand {
        let text = self.tree.str(self.mnemonic());
        let partner = want.opnd.pair.map_or(String::new(), |_| registers(want.pair));
        self.report.push(
            Diagnostic::new(
                Code::OperandForm,
                op.span,
                format!("`{text}` writes two results, `{}|...`", want.opnd.name),
            )
            .here(format!("expected `{}|p` with a register of type {partner}", self.tree.str(op.span))),
        );
        Operand::Error
    }

    /// Something that is no register where a result goes.
    #[cold]
    pub(super) fn no_destination(&mut self, op: &tree::Operand) -> Operand {
        let text = self.tree.str(op.span);
        let what = match op.kind {
            Kind::Int { .. } | Kind::Float { .. } | Kind::Expr(_) => "a constant",
            Kind::Brackets(_) => "an address",
            Kind::Not(_) => "a negated predicate",
            _ => "no register",
        };
        let d = Diagnostic::new(
            Code::DestinationRegister,
            op.span,
            format!("the destination of `{}` must be a register, found `{text}`", self.tree.str(self.mnemonic())),
        )
        .here(format!("this is {what}"));
        self.report.push(d);
        Operand::Error
    }

    // ---- kinds ----

    #[cold]
    pub(super) fn wrong_kind(&mut self, want: &Want, op: &tree::Operand, wanted: &str) -> Operand {
        let text = self.tree.str(op.span);
        let d = Diagnostic::new(
            Code::OperandKind,
            op.span,
            format!(
                "operand {} (`{}`) of `{}` is {wanted}, found `{text}`",
                self.current.operand + 1,
                want.opnd.name,
                self.tree.str(self.mnemonic())
            ),
        )
        .here(format!("expected {wanted}"));
        self.report.push(d);
        Operand::Error
    }

    #[cold]
    pub(super) fn missing_brackets(&mut self, want: &Want, op: &tree::Operand) -> Operand {
        let text = self.tree.str(op.span);
        let mut d = Diagnostic::new(
            Code::MissingBrackets,
            op.span,
            format!(
                "operand {} (`{}`) of `{}` is an address, in brackets",
                self.current.operand + 1,
                want.opnd.name,
                self.tree.str(self.mnemonic())
            ),
        )
        .here("expected `[`");
        if matches!(op.kind, Kind::Name | Kind::Sum { .. } | Kind::Int { .. }) {
            d = d.fix(op.span, format!("[{text}]"), format!("write `[{text}]`"));
        }
        self.report.push(d);
        if matches!(op.kind, Kind::Name) {
            // An unknown name is another fault, and a known one is read.
            let _ = self.named(op.span);
        }
        Operand::Error
    }

    #[cold]
    pub(super) fn needless_brackets(&mut self, op: &tree::Operand) -> Operand {
        let text = self.tree.str(self.mnemonic());
        self.report.push(
            Diagnostic::new(Code::MissingBrackets, op.span, format!("`{text}` reads registers, not memory"))
                .here("expected a register or constant")
                .help("load the value first, with `ld`"),
        );
        Operand::Error
    }

    #[cold]
    pub(super) fn wrong_group(&mut self, want: &Want, op: &tree::Operand, found: usize, min: usize) -> Operand {
        let names: Vec<&str> = want.inner.iter().map(|w| w.opnd.name).collect();
        let wants = if min == names.len() { format!("{min}") } else { format!("{min} to {}", names.len()) };
        self.report.push(
            Diagnostic::new(
                Code::OperandCount,
                op.span,
                format!("the brackets of `{}` hold {wants} things, found {found}", self.tree.str(self.mnemonic())),
            )
            .note(format!("they are [{}]", names.join(", "))),
        );
        Operand::Error
    }

    // ---- constants ----

    #[cold]
    pub(super) fn no_integer(&mut self, c: &Candidate, want: &Want, value: i64, span: Span) -> Operand {
        let text = self.tree.str(self.mnemonic());
        let operand = format!("operand {} (`{}`) of `{text}`", self.current.operand + 1, want.opnd.name);
        let written = self.tree.str(span);
        let d = if !want.opnd.imm {
            Diagnostic::new(Code::OperandKind, span, format!("{operand} is a register, not a constant"))
                .help("move the constant into a register first")
        } else if want.constants == Constants::Float {
            let ty = want.ty.unwrap_or(Type::F32);
            let exact = if ty == Type::F32 {
                format!("0f{:08X}", (value as f32).to_bits())
            } else {
                format!("0d{:016X}", (value as f64).to_bits())
            };
            Diagnostic::new(Code::ConstantType, span, format!("{operand} is `{ty}`, found the integer {written}"))
                .help(format!("write `{written}.0` or `{exact}`"))
        } else {
            let ty = want.ty.map(|t| format!("`{t}`")).unwrap_or_default();
            Diagnostic::new(Code::ConstantType, span, format!("{operand} is {ty}, which has no constants"))
                .help("move the bits into a register first: `mov.b16`, `mov.b32`")
        };
        let _ = c;
        self.report.push(d);
        Operand::Error
    }

    #[cold]
    pub(super) fn no_float(&mut self, want: &Want, single: bool, span: Span) {
        let text = self.tree.str(self.mnemonic());
        let operand = format!("operand {} (`{}`) of `{text}`", self.current.operand + 1, want.opnd.name);
        let written = self.tree.str(span);
        let ty = want.ty.map(|t| format!("`{t}`")).unwrap_or_default();
        let d = Diagnostic::new(
            Code::ConstantType,
            span,
            format!("{operand} is {ty}, found the floating-point constant {written}"),
        );
        let d = match want.constants {
            Constants::Bits if want.ty.is_some_and(|t| t.bits() == 32) => {
                d.help("give the bits of a single: `0f3F800000`")
            }
            Constants::Bits if want.ty.is_some_and(|t| t.bits() == 64) && single => {
                d.help("give the bits of a double: `0d3FF0000000000000`")
            }
            Constants::Int => d.help("write an integer"),
            _ => d.help("move the bits into a register first"),
        };
        self.report.push(d);
    }

    #[cold]
    pub(super) fn truncated(&mut self, ty: Type, value: i64, span: Span) {
        let bits = ty.bits();
        let kept = value & ((1i64 << bits.min(62)) - 1);
        let needs = if value < 0 { 65 - (!value).leading_zeros() } else { 64 - value.leading_zeros() };
        self.report.push(
            Diagnostic::new(
                Code::TruncatedConstant,
                span,
                format!("the constant needs {needs} bits; `{ty}` keeps {kept:#x}"),
            )
            .note("ptxas says nothing about it"),
        );
    }

    /// A fragment of one register that lacks its braces.
    #[cold]
    pub(super) fn needs_braces(&mut self, want: &Want, op: &tree::Operand) {
        let text = self.tree.str(op.span);
        let name = self.tree.str(self.mnemonic());
        self.report.push(
            Diagnostic::new(Code::VectorSize, op.span, format!("`{}` of `{name}` is a vector of one", want.opnd.name))
                .help(format!("write `{{{text}}}`")),
        );
    }

    #[cold]
    pub(super) fn in_range(&mut self, want: &Want, value: i64, span: Span) {
        let name = self.tree.str(self.mnemonic());
        let operand = format!("operand {} (`{}`) of `{name}`", self.current.operand + 1, want.opnd.name);
        if let Some((low, high)) = want.opnd.range
            && !(low..=high).contains(&value)
        {
            self.report.push(Diagnostic::new(
                Code::ConstantRange,
                span,
                format!("{operand} lies in {low}..{high}, found {value}"),
            ));
        } else if want.opnd.step > 1 && value % want.opnd.step != 0 {
            let step = want.opnd.step;
            self.report.push(Diagnostic::new(
                Code::ConstantRange,
                span,
                format!("{operand} is a multiple of {step}, found {value}"),
            ));
        } else if !want.opnd.values.is_empty() && !want.opnd.values.contains(&value) {
            let values = list(&want.opnd.values.iter().map(i64::to_string).collect::<Vec<_>>(), "or");
            self.report.push(Diagnostic::new(
                Code::ConstantRange,
                span,
                format!("{operand} is {values}, found {value}"),
            ));
        }
    }

    // ---- predicates ----

    #[cold]
    pub(super) fn no_guard(&mut self, span: Span, found: Option<Binding>) {
        let name = self.tree.str(span);
        match found {
            Some(Binding::Faulty) => {}
            Some(Binding::Reg(decl)) => {
                let d = self.body.regs[decl as usize];
                self.report.push(
                    Diagnostic::new(
                        Code::GuardPredicate,
                        span,
                        format!("a guard is a predicate; `{name}` is `{}`", d.ty),
                    )
                    .label(d.name, "declared here")
                    .help(format!("compare first: `setp.ne.b{} p, {name}, 0;`", d.ty.bits().clamp(16, 64))),
                );
            }
            Some(_) => self.report.push(Diagnostic::new(
                Code::GuardPredicate,
                span,
                format!("a guard is a predicate register; `{name}` is none"),
            )),
            None => {
                if Special::from_name(name).is_some() || self.module.symbol(name).is_some() {
                    self.report.push(Diagnostic::new(
                        Code::GuardPredicate,
                        span,
                        format!("a guard is a predicate register; `{name}` is none"),
                    ));
                } else {
                    let _ = self.unknown(span, "register");
                }
            }
        }
    }

    #[cold]
    pub(super) fn no_negation(&mut self, span: Span, name: Span, decl: u32) {
        let d = self.body.regs[decl as usize];
        self.report.push(
            Diagnostic::new(
                Code::Negation,
                span,
                format!("`!` negates predicates; `{}` is `{}`", self.tree.str(name), d.ty),
            )
            .label(d.name, "declared here")
            .help(format!("`not.b{}` inverts the bits of a register", d.ty.bits().max(16))),
        );
    }

    // ---- special registers and selectors ----

    /// Availability of a special register.
    pub(super) fn check_special(&mut self, special: Special, name: &str, span: Span) {
        let info = special.info();
        let since = Since { ptx: info.since, sm: info.sm, ..Since::ALWAYS };
        if let Some(lack) = lacking(self.module, &since) {
            let d = lack.diagnose(self.module, &format!("`{name}`"), span);
            self.report.push(d);
        }
    }

    /// A special register as a source: allowed at all, and of a type that fits?
    pub(super) fn special_fits(
        &mut self,
        c: &Candidate,
        want: &Want,
        special: Special,
        component: Option<Component>,
        span: Span,
    ) {
        let name = self.tree.str(span);
        let info = special.info();
        let text = self.tree.str(self.mnemonic());
        if !want.opnd.special && c.variant.op.row().name != "cvt" {
            let d = Diagnostic::new(Code::SpecialRegister, span, format!("`{text}` does not read special registers"))
                .help(format!("move it first: `mov{} t, {name};`", info.ty));
            return self.report.push(d);
        }
        let whole = component.is_none() && info.width > 1;
        let n = want.count.unwrap_or(1);
        if whole && n == 1 || !whole && n > 1 {
            let d = if whole {
                Diagnostic::new(Code::VectorSize, span, format!("`{name}` is a vector of 4"))
                    .help(format!("name one element: `{name}.x`"))
            } else {
                Diagnostic::new(Code::VectorSize, span, format!("`{name}` is a scalar, `{text}` moves {n} values"))
            };
            return self.report.push(d);
        }
        if let Some(ty) = want.ty {
            // Before 2.0 the vector registers had 16 bits, and `mov.u16` reads their lower half still.
            let half = ty.bits() == 16 && info.width > 1 && !ty.is_float();
            let kind = match info.ty {
                Type::Pred => ty == Type::Pred,
                _ => !ty.is_float() && ty != Type::Pred,
            };
            let width = ty.bits() == info.ty.bits() || half || (special == Special::GridId && ty.bits() == 32);
            if !kind {
                self.report.push(Diagnostic::new(
                    Code::SpecialRegister,
                    span,
                    format!("`{name}` is `{}`; `{text}` reads `{ty}`", info.ty),
                ));
            } else if !(width || want.opnd.wider && ty.bits() <= info.ty.bits()) {
                self.report.push(
                    Diagnostic::new(
                        Code::OperandWidth,
                        span,
                        format!("`{name}` is {} bits wide; `{text}` reads {}", info.ty.bits(), ty.bits()),
                    )
                    .help(format!("write `mov{}`", info.ty)),
                );
            }
        }
    }

    #[cold]
    pub(super) fn bad_selector(&mut self, span: Span, dot: u32, width: u8) {
        let name = self.tree.str(span);
        let selector = Span::new(span.start + dot, span.end);
        let d = if width > 1 {
            Diagnostic::new(
                Code::VectorSelector,
                selector,
                format!("`{}` is no element of a vector of {width}", self.tree.str(selector)),
            )
            .note(if width == 2 {
                "elements are .x and .y (or .r and .g)"
            } else {
                "elements are .x .y .z .w (or .r .g .b .a)"
            })
        } else {
            Diagnostic::new(
                Code::VectorSelector,
                selector,
                format!("`{name}` selects from something that is no vector"),
            )
        };
        self.report.push(d);
    }

    #[cold]
    pub(super) fn bad_part(&mut self, parts: Parts, selector: Span) {
        let examples = match parts {
            Parts::One => ".b0 to .b3, .h0, .h1",
            Parts::Halves => "two halves, .h00 to .h33",
            Parts::Bytes => "four bytes, .b0000 to .b7777",
            Parts::HalfMask => ".h0, .h1, .h10",
            Parts::ByteMask => ".b0 to .b3210, in falling order",
        };
        self.report.push(
            Diagnostic::new(
                Code::VectorSelector,
                selector,
                format!("`.{}` is no part that can be selected here", self.tree.str(selector)),
            )
            .note(format!("parts are {examples}")),
        );
    }

    // ---- addresses ----

    #[cold]
    pub(super) fn no_address(&mut self, want: &Want, decl: u32, span: Span) {
        let d = self.body.regs[decl as usize];
        let name = self.tree.str(span);
        let what = if d.vector > 1 { format!("a vector of {}", d.vector) } else { format!("`{}`", d.ty) };
        let wanted = match want.opnd.ty {
            Ty::Pointer => "an address is an integer",
            _ => "an address in tensor memory has 32 bits",
        };
        self.report.push(
            Diagnostic::new(Code::AddressType, span, format!("{wanted}; `{name}` is {what}"))
                .label(d.name, "declared here"),
        );
    }

    #[cold]
    pub(super) fn narrow_address(&mut self, c: &Candidate, want: &Want, decl: u32, span: Span) {
        let space = want_space(c, want);
        // Windows of a CTA and of a thread have less than 4 GiB, so 32 bits hold their addresses.
        if matches!(space, Some(Space::Shared | Space::Local | Space::Param | Space::Const))
            || c.access == 0 && space.is_none()
        {
            return;
        }
        let d = self.body.regs[decl as usize];
        let name = self.tree.str(span);
        let what = space.map_or("generic".to_owned(), |s| format!("`{s}`"));
        self.report.push(
            Diagnostic::new(
                Code::NarrowAddress,
                span,
                format!("`{name}` is 32 bits wide; {what} addresses have 64 under `.address_size 64`"),
            )
            .label(d.name, "declared here")
            .help(format!("widen it first: `cvt.u64.u32 t, {name};`"))
            .note("ptxas calls this 32-bit compilation and refuses the module"),
        );
    }

    #[cold]
    pub(super) fn no_address_name(&mut self, span: Span) {
        let name = self.tree.str(span);
        let what = match self.named(span) {
            Named::Label(_) => "a label",
            Named::Table(_) => "a table",
            Named::Special(..) => "a special register",
            Named::Symbol(_) => "a variable, and none lies in tensor memory",
            _ => "an element of a vector",
        };
        self.report.push(Diagnostic::new(
            Code::AddressType,
            span,
            format!("an address starts from a register or a variable; `{name}` is {what}"),
        ));
    }

    #[cold]
    pub(super) fn constant_address(&mut self, c: &Candidate, want: &Want, span: Span) {
        let space = want_space(c, want).map_or("generic memory".to_owned(), |s| format!("`{s}`"));
        self.report.push(
            Diagnostic::new(Code::ConstantAddress, span, format!("a constant address in {space}"))
                .here("only `.local` takes one")
                .help("declare a variable and use its name, or put the address into a register"),
        );
    }

    #[cold]
    pub(super) fn wrong_space(&mut self, c: &Candidate, want: &Want, symbol: SymRef, span: Span) {
        let name = self.tree.str(span).to_owned();
        let text = self.tree.str(self.mnemonic());
        if let SymRef::Func(f) = symbol {
            let at = self.module.func(f).span;
            return self.report.push(
                Diagnostic::new(Code::AddressSpace, span, format!("`{name}` is a function; `{text}` accesses memory"))
                    .label(at, "declared here"),
            );
        }
        let (_, at) = self.type_of_symbol(symbol);
        let found = self.symbol_space(symbol);
        let d = match want_space(c, want) {
            Some(space) => Diagnostic::new(
                Code::AddressSpace,
                span,
                format!("`{name}` is in `{found}`; `{text}` accesses `{space}`"),
            )
            .label(at, format!("declared in `{found}`")),
            None => Diagnostic::new(
                Code::AddressSpace,
                span,
                format!("`{name}` is in `{found}`, which has no generic addresses"),
            )
            .label(at, "declared here"),
        };
        let fixed = c.space.and_then(super::space_of).zip(mod_of(found)).map(|(_, m)| {
            let words: Vec<Word> = c
                .variant
                .words
                .iter()
                .map(|w| if Some(*w) == c.space.map(Word::Mod) { Word::Mod(m) } else { *w })
                .collect();
            resolve(c.variant.op, &words, |_| true)
        });
        let mnemonic = self.mnemonic();
        let d = match fixed {
            Some(Ok(found)) => {
                let with = found.variant.to_string();
                let mut d = d;
                d.suggestions.push(Suggestion {
                    message: format!("write `{with}`"),
                    edits: vec![(mnemonic, with)],
                    machine_applicable: false,
                });
                d
            }
            _ => d,
        };
        self.report.push(d);
    }

    #[cold]
    pub(super) fn no_symbol_here(&mut self, c: &Candidate, want: &Want, symbol: SymRef, span: Span) -> Operand {
        let name = self.tree.str(span);
        let text = self.tree.str(self.mnemonic());
        let (_, at) = self.type_of_symbol(symbol);
        let what = if matches!(symbol, SymRef::Func(_)) { "function" } else { "variable" };
        let d = Diagnostic::new(
            Code::OperandKind,
            span,
            format!(
                "operand {} (`{}`) of `{text}` is a register; `{name}` is a {what}",
                self.current.operand + 1,
                want.opnd.name
            ),
        )
        .label(at, "declared here");
        let d = if c.variant.op.row().name == "mov" {
            d.help("an address is an integer: `mov.u64`")
        } else if what == "variable" && self.symbol_space(symbol) == Space::Param {
            d.help(format!("load its value first: `ld.param... t, [{name}];`"))
        } else {
            d.help(format!("take its address first: `mov.u64 t, {name};`"))
        };
        self.report.push(d);
        Operand::Error
    }

    // ---- handles and callees ----

    #[cold]
    pub(super) fn no_handle(&mut self, span: Span, decl: u32) {
        let d = self.body.regs[decl as usize];
        self.report.push(
            Diagnostic::new(
                Code::OperandType,
                span,
                format!("a handle is a 64-bit integer; `{}` is `{}`", self.tree.str(span), d.ty),
            )
            .label(d.name, "declared here"),
        );
    }

    #[cold]
    pub(super) fn other_handle(&mut self, wanted: Type, found: Type, span: Span, declared: Span) {
        self.report.push(
            Diagnostic::new(
                Code::OperandType,
                span,
                format!("`{}` is `{found}`; a `{wanted}` is wanted", self.tree.str(span)),
            )
            .label(declared, "declared here"),
        );
    }

    #[cold]
    pub(super) fn no_callee(&mut self, span: Span, decl: Option<u32>) {
        let name = self.tree.str(span);
        let d = match decl {
            Some(decl) => {
                let d = self.body.regs[decl as usize];
                Diagnostic::new(
                    Code::OperandType,
                    span,
                    format!("a function's address is an integer; `{name}` is `{}`", d.ty),
                )
                .label(d.name, "declared here")
            }
            None => Diagnostic::new(Code::UnknownFunction, span, format!("`{name}` is no function here"))
                .note("a variable, label or parameter of that name hides functions of the module"),
        };
        self.report.push(d);
    }

    /// A label of that name in an inner block.
    fn hidden_label(&self, name: &str) -> Option<Span> {
        let list = self.tree.funcs[self.func.node as usize].body?;
        self.tree.stmts(list).iter().find_map(|s| match s {
            tree::Stmt::Label(at) if self.tree.str(*at) == name => Some(*at),
            _ => None,
        })
    }
}

/// Adds "did you mean", with an edit that nobody applies unasked.
fn suggest(mut d: Diagnostic, span: Span, with: &str) -> Diagnostic {
    if !with.is_empty() {
        let message = format!("did you mean `{with}`?");
        d.suggestions.push(Suggestion { message, edits: vec![(span, with.to_owned())], machine_applicable: false });
    }
    d
}

/// A place (behind the word of that index, the opcode being 0) where one more modifier makes the mnemonic right, and the
/// modifiers that do.
fn missing_word(op: Opcode, found: &[Word], possible: &[Word]) -> Option<(usize, Vec<Word>)> {
    (0..=found.len()).find_map(|gap| {
        let fits: Vec<Word> = possible
            .iter()
            .filter(|w| matches!(w, Word::Mod(_)))
            .filter(|w| {
                let mut more = found.to_vec();
                more.insert(gap, **w);
                resolve(op, &more, |_| true).is_ok_and(|r| r.in_order)
            })
            .copied()
            .collect();
        (!fits.is_empty()).then_some((gap, fits))
    })
}

/// Words that a slot takes.
fn slot_words(slot: &margay_isa::Slot) -> Vec<Word> {
    use margay_isa::Slot;
    match slot {
        Slot::One(m) => vec![Word::Mod(*m)],
        Slot::Opt(c) | Slot::Req(c) => c.of.iter().map(|m| Word::Mod(*m)).collect(),
        Slot::Type(_, ts) | Slot::OptType(_, ts) => ts.iter().map(|t| Word::Type(*t)).collect(),
    }
}

/// If the word looks like a shape, the shapes among the candidates.
fn shapes_like(word: &str, all: &[Word]) -> Option<Vec<String>> {
    let shape = |w: &str| w.starts_with('m') && w.contains('n') && w.contains(|c: char| c.is_ascii_digit());
    let shapes: Vec<String> = all.iter().map(|w| w.name()).filter(|w| shape(w)).map(|w| format!(".{w}")).collect();
    (shape(word) && !shapes.is_empty()).then_some(shapes)
}

/// What does nearly the same and is older.
fn alternative(c: &Candidate) -> Option<&'static str> {
    match c.variant.op.row().name {
        "mbarrier" if c.variant.has(Mod::TryWait) => Some("`mbarrier.test_wait` works on sm_80"),
        "redux" => Some("a loop over `shfl.sync` reduces on older targets"),
        _ => None,
    }
}

fn wanted(want: &Want, takes: compat::Types) -> String {
    match want.ty {
        Some(ty) => format!("`{ty}`"),
        None if takes == compat::addresses() => "an address".to_owned(),
        None => "of another type".to_owned(),
    }
}

/// The register types of a set, for a message.
fn registers(takes: compat::Types) -> String {
    let types: Vec<&Type> = Type::ALL.iter().filter(|t| compat::has(takes, **t) && **t != Type::F16x2).collect();
    let types = if types.is_empty() { Type::ALL.iter().filter(|t| compat::has(takes, **t)).collect() } else { types };
    list(&ticks(types), "or")
}

fn unsigned(t: Type) -> Type {
    match t.bits() {
        0..=8 => Type::U8,
        9..=16 => Type::U16,
        17..=32 => Type::U32,
        _ => Type::U64,
    }
}

fn as_signed(t: Type) -> Type {
    match t.bits() {
        0..=8 => Type::S8,
        9..=16 => Type::S16,
        17..=32 => Type::S32,
        _ => Type::S64,
    }
}

fn mod_of(space: Space) -> Option<Mod> {
    Some(match space {
        Space::Const => Mod::Const,
        Space::Global => Mod::Global,
        Space::Local => Mod::Local,
        Space::Param => Mod::Param,
        Space::Shared => Mod::Shared,
        Space::Reg | Space::Sreg | Space::Tex | Space::Generic => return None,
    })
}

/// The modifiers of a comparison with the type of a result before the type compared: `eq.u32.s32`.
fn rest_of(c: &Candidate, result: &str) -> String {
    let words: Vec<&str> = c.variant.words.iter().map(|w| w.name()).collect();
    match words.split_last() {
        Some((last, init)) => format!("{}.{result}.{last}", init.join(".")),
        None => result.to_owned(),
    }
}
