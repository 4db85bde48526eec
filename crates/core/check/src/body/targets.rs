//! Labels referenced by instructions and tables: `bra`, `.branchtargets`, `.calltargets` (manual, sections 11.3.1 and 11.3.2).

use super::LabelId;
use super::names::Binding;
use super::walk::Walker;
use crate::consts::{self, Const};
use crate::{FuncId, Symbol};
use margay_isa::Special;
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
    tree::{Directive, Kind, Operand},
};

impl Walker<'_, '_> {
    /// The labels of a `.branchtargets`.
    pub(super) fn branch_targets(&mut self, d: &Directive) -> Vec<LabelId> {
        let mut targets = Vec::new();
        for o in self.tree.operands(d.args) {
            match o.kind {
                Kind::Apply { head, argument } => self.family_of_labels(o.span, head, argument, &mut targets),
                _ => targets.extend(self.branch_target(o)),
            }
        }
        targets
    }

    /// The functions of a `.calltargets`.
    pub(super) fn call_targets(&mut self, d: &Directive) -> Vec<FuncId> {
        let mut targets = Vec::new();
        for o in self.tree.operands(d.args) {
            match o.kind {
                Kind::Apply { head, argument } => self.family_of_functions(o.span, head, argument, &mut targets),
                _ => targets.extend(self.call_target(o)),
            }
        }
        targets
    }

    /// Prefix and count of `N<3>`.
    fn family(&self, head: u32, argument: u32) -> (String, i64) {
        let count = consts::eval_index(self.tree, argument).ok().and_then(Const::as_int).unwrap_or(0);
        (self.tree.str(self.tree.operands[head as usize].span).to_owned(), count)
    }

    /// `N<3>`: the labels `N0` to `N2`.
    fn family_of_labels(&mut self, span: Span, head: u32, argument: u32, targets: &mut Vec<LabelId>) {
        let (prefix, count) = self.family(head, argument);
        for i in 0..count {
            let name = format!("{prefix}{i}");
            match self.names.get(&name) {
                Some((Binding::Label(id), _)) => targets.push(id),
                Some((Binding::Faulty, _)) => return,
                None if self.may_have_lost_labels() => return,
                _ => {
                    let family = format!("the labels `{prefix}0` to `{prefix}{}`", count - 1);
                    let message = format!("no label `{name}` in `{}`", self.func.name);
                    return self.report.push(Diagnostic::new(Code::UnknownLabel, span, message).here(family));
                }
            }
        }
    }

    /// `g<3>`: the functions `g0` to `g2`.
    fn family_of_functions(&mut self, span: Span, head: u32, argument: u32, targets: &mut Vec<FuncId>) {
        let (prefix, count) = self.family(head, argument);
        if count <= 0 {
            let d = Diagnostic::new(Code::UnknownFunction, span, "an empty set of functions");
            return self.report.push(d);
        }
        for i in 0..count {
            let name = format!("{prefix}{i}");
            match self.module.symbol(&name) {
                Some(Symbol::Func(f)) if self.module.func(f).first.start <= span.start => targets.push(f),
                _ => {
                    let family = format!("the functions `{prefix}0` to `{prefix}{}`", count - 1);
                    let message = format!("no function `{name}` is declared before this");
                    return self.report.push(Diagnostic::new(Code::UnknownFunction, span, message).here(family));
                }
            }
        }
    }

    fn branch_target(&mut self, o: &Operand) -> Option<LabelId> {
        if !matches!(o.kind, Kind::Name) {
            return None;
        }
        if let Some((Binding::Table(id), _)) = self.names.at(&self.tree.text, o.span)
            && id.0 == self.tables_seen
        {
            return Some(self.own_label(o.span));
        }
        self.label_named(o.span)
    }

    /// ptxas lets a table name its own label, which is the position of the table.
    #[cold]
    fn own_label(&mut self, span: Span) -> LabelId {
        let message = format!("`{}` is the table itself, not the label of an instruction", self.tree.str(span));
        self.report.text_only(Diagnostic::new(Code::OperandKind, span, message));
        self.body.labels.push((self.body.insts.len() as u32, span));
        LabelId(self.body.labels.len() as u32 - 1)
    }

    /// The label of this name; reports an error if there is none.
    pub(super) fn label_named(&mut self, span: Span) -> Option<LabelId> {
        let name = self.tree.str(span);
        match self.names.get(name) {
            Some((Binding::Label(id), _)) => {
                if let Some(at) = self.means_other(id, span) {
                    self.hidden_by_other(span, at);
                    return None;
                }
                if let Some(last) = self.branches.get_mut(id.0 as usize) {
                    *last = span.start;
                }
                Some(id)
            }
            Some((Binding::Faulty, _)) => None,
            Some((other, _)) => {
                self.not_a_label(span, Some(other));
                None
            }
            None => {
                self.not_a_label(span, None);
                None
            }
        }
    }

    /// The place of a label that is defined after `span`, if its name has another meaning before that.
    pub(super) fn means_other(&self, id: LabelId, span: Span) -> Option<Span> {
        let at = self.labels.get(id.0 as usize)?.0;
        (span.start < at.start && self.is_known_outside(self.tree.str(span), span)).then_some(at)
    }

    /// Whether a name has a meaning before a function's labels are known: a special register, or what the module declares above.
    fn is_known_outside(&self, name: &str, span: Span) -> bool {
        match self.module.symbol(name) {
            Some(Symbol::Func(f)) => self.module.func(f).first.start <= span.start,
            Some(Symbol::Alias(a)) => self.module.aliases[a as usize].first.start <= span.start,
            Some(Symbol::Global(g)) => self.module.globals[g.0 as usize].span.start <= span.start,
            None => Special::from_name(name).is_some(),
        }
    }

    /// A branch forward to a label whose name has another meaning up to the label.
    #[cold]
    fn hidden_by_other(&mut self, span: Span, label: Span) {
        let name = self.tree.str(span);
        let what = if self.module.symbol(name).is_some() { "declared by the module" } else { "a special register" };
        let message = format!("`{name}` is {what} before the label of this name");
        let d = Diagnostic::new(Code::OperandKind, span, message).label(label, "the label");
        self.report.push(d.help("rename the label"));
    }

    fn call_target(&mut self, o: &Operand) -> Option<FuncId> {
        if !matches!(o.kind, Kind::Name) {
            return None;
        }
        self.function_named(o.span)
    }
}
