//! Labels of a body, and the tables of targets and prototypes that stand behind labels.

use super::names::Binding;
use super::walk::Walker;
use super::{LabelId, TableId, TargetTable};
use crate::module;
use margay_syntax::{
    Span,
    tree::{FuncKind, Stmt},
};

/// The end of a list of labels.
const NONE: u32 = u32::MAX;

impl Walker<'_, '_> {
    /// Finds the labels of each block, so that branches may go forward.
    pub(super) fn find_labels(&mut self, stmts: &[Stmt]) {
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
        self.branches.resize(labels as usize, 0);
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
    pub(super) fn bind_labels(&mut self) {
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
        self.names.reserve(block.len());
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

    pub(super) fn label(&mut self, stmts: &[Stmt], index: usize) {
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

    /// Fills the table of the preceding label. A table without a label is useless, and the parser has reported it.
    pub(super) fn table(&mut self, table: TargetTable) {
        if !self.labeled {
            return;
        }
        if let Some(slot) = self.body.tables.get_mut(self.tables_seen as usize) {
            *slot = table;
        }
        self.tables_seen += 1;
    }

    pub(super) fn prototype(&mut self, node: u32) {
        debug_assert!(matches!(self.tree.funcs[node as usize].kind, FuncKind::Prototype));
        crate::rules::reach::directive(self, self.tree.funcs[node as usize].header, "`.callprototype`");
        let function = module::signature(self.tree, self.module, node, self.report);
        self.table(TargetTable::Prototype(Box::new(function)));
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

    /// ptxas 13.5: "Label expected for forward reference of 'L'".
    #[test]
    fn names_of_labels_that_a_block_declares_later() {
        let on = |text: &str| crate::rules::testing::codes(&crate::rules::testing::kernel("8.0", "sm_90", text));
        for bad in [
            "{ bra L; .reg .b32 L; } L:",
            "{ { bra L; } .reg .b32 L; } L:",
            "{ bra L; .local .b32 L; } L:",
            "L: { bra L; .reg .b32 L; }",
            "{ t: .branchtargets L; .reg .b32 L; } L:",
        ] {
            assert_eq!(on(bad), ["E0405"], "{bad}");
        }
        for good in [
            "bra L; { .reg .b32 L; } L:",
            "{ bra L; } { .reg .b32 L; } L:",
            "{ bra L; .reg .b32 L<3>; } L:",
            "{ bra L1; .reg .b32 L<3>; } L1:",
        ] {
            assert_eq!(on(good), [""; 0], "{good}");
        }
    }
}
