//! Directives in a body: source positions, tables of targets, pragmas.

use super::TargetTable;
use super::walk::Walker;
use crate::{
    FuncKind, module,
    report::{lacking, since},
    rules::{pragma, reach},
};
use margay_syntax::tree::{Directive, Kind};

impl Walker<'_, '_> {
    pub(super) fn directive(&mut self, d: &Directive) {
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
                reach::directive(self, d.span, "`.calltargets`");
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
}
