//! Control dependence: whether values decide if an instruction is executed.

use super::Slice;
use crate::{BlockId, Func, pass::Cfg};

/// Whether the values that the instructions at `sources` yield may decide whether the one at `target` is executed: by a branch or a guard
/// that is computed from them, or from values in shared or local memory that depend on them. All are indices into [`Func::insts`].
pub fn controls(func: &Func, sources: &[u32], target: u32) -> bool {
    let cfg = Cfg::new(func, |_, _| false);
    let mut slice = Slice::new(func, &cfg, sources);
    let mut more = true;
    while std::mem::take(&mut more) {
        slice.extend();
        for b in &cfg.order {
            if slice.controlled.has(b.0) || slice.has_branch(*b) {
                more |= slice.add_controlled_by(*b);
            }
        }
    }
    slice.controlled.iter().any(|b| func.blocks[b as usize].insts.range().contains(&(target as usize)))
        || func.insts[target as usize].guard.is_some_and(|(p, _)| slice.regs.has(p.0))
}

impl Slice<'_> {
    /// Adds the blocks whose execution the branch at the end of a block decides, which are those between it and where its sides meet;
    /// whether there were new ones.
    fn add_controlled_by(&mut self, branch: BlockId) -> bool {
        let meet = self.cfg.ipdom[branch.0 as usize];
        let mut more = false;
        for side in &self.cfg.succs[branch.0 as usize] {
            let mut next = Some(*side);
            while let Some(b) = next.filter(|b| Some(*b) != meet) {
                more |= !self.controlled.has(b.0);
                self.controlled.insert(b.0);
                next = self.cfg.ipdom[b.0 as usize].filter(|n| *n != b);
            }
        }
        more
    }
}
