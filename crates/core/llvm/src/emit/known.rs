//! Value numbering while IR is emitted.
//!
//! Emitters request what they need as if nothing had been computed: operands for each instruction, the mask for each
//! access. A pure operation that was computed on all paths to the insertion point is not emitted again, and neither is
//! the load of a variable whose last stored value is known. LLVM would find most of that, but every line costs compile
//! time.
//!
//! Knowledge is a stack. A block with arbitrary predecessors starts without any; where code branches around something
//! and joins again, the knowledge at the branch holds after the join, except about variables that were written in
//! between.

use crate::emit::text::Val;
use std::collections::HashMap;

/// The key of a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Key {
    /// The result of an operation without effects, by its text.
    Result(Box<str>),
    /// The content of a part of a variable, by its offset.
    Variable(u32, u64),
}

#[derive(Debug)]
struct Entry {
    key: Key,
    /// `None`: no longer known.
    value: Option<Val>,
    /// The previous entry of the same key.
    before: Option<usize>,
}

/// A snapshot to return to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    entries: usize,
    from: usize,
}

/// The values known at the insertion point.
#[derive(Default, Debug)]
pub(super) struct Known {
    entries: Vec<Entry>,
    latest: HashMap<Key, usize>,
    /// Entries before this index do not dominate the insertion point.
    from: usize,
}

impl Known {
    fn find(&self, key: &Key) -> Option<&Val> {
        let at = *self.latest.get(key)?;
        if at < self.from { None } else { self.entries[at].value.as_ref() }
    }

    fn push(&mut self, key: Key, value: Option<Val>) {
        let before = self.latest.insert(key.clone(), self.entries.len());
        self.entries.push(Entry { key, value, before });
    }

    /// The result of an operation.
    pub fn result(&self, text: &str) -> Option<&Val> {
        self.find(&Key::Result(text.into()))
    }

    /// Records the result of an operation.
    pub fn computed(&mut self, text: &str, value: &Val) {
        self.push(Key::Result(text.into()), Some(value.clone()));
    }

    /// The known content of a part of a variable.
    pub fn variable(&self, variable: u32, offset: u64) -> Option<&Val> {
        self.find(&Key::Variable(variable, offset))
    }

    /// Records the content of a part of a variable.
    pub fn holds(&mut self, variable: u32, offset: u64, value: &Val) {
        self.push(Key::Variable(variable, offset), Some(value.clone()));
    }

    /// Drops all knowledge.
    pub fn forget(&mut self) {
        self.from = self.entries.len();
    }

    /// A snapshot of the present knowledge.
    pub fn mark(&self) -> Mark {
        Mark { entries: self.entries.len(), from: self.from }
    }

    /// Restores the knowledge of a snapshot, except about variables written since.
    pub fn back_to(&mut self, mark: Mark) {
        let mut written = Vec::new();
        for Entry { key, before, .. } in self.entries.drain(mark.entries..).rev() {
            match before {
                Some(before) => _ = self.latest.insert(key.clone(), before),
                None => _ = self.latest.remove(&key),
            }
            if matches!(key, Key::Variable(..)) && !written.contains(&key) {
                written.push(key);
            }
        }
        self.from = mark.from;
        written.into_iter().for_each(|key| self.push(key, None));
    }
}

/// Whether an operation is pure and deterministic.
pub(super) fn is_pure(operation: &str) -> bool {
    matches!(
        operation,
        "add"
            | "sub"
            | "mul"
            | "and"
            | "or"
            | "xor"
            | "shl"
            | "lshr"
            | "ashr"
            | "udiv"
            | "sdiv"
            | "urem"
            | "srem"
            | "icmp"
            | "fcmp"
            | "select"
            | "zext"
            | "sext"
            | "trunc"
            | "bitcast"
            | "inttoptr"
            | "ptrtoint"
            | "fpext"
            | "fptrunc"
            | "sitofp"
            | "uitofp"
            | "fptosi"
            | "fptoui"
            | "fadd"
            | "fsub"
            | "fmul"
            | "fdiv"
            | "fneg"
            | "getelementptr"
            | "insertelement"
            | "extractelement"
            | "shufflevector"
            | "extractvalue"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::{Elem, int};

    fn value(n: i128) -> Val {
        int(Elem::I32, n)
    }

    #[test]
    fn values_of_code_that_may_not_have_run_are_not_reused() {
        let mut known = Known::default();
        known.computed("add a, b", &value(1));
        let mark = known.mark();
        known.computed("add a, c", &value(2));
        known.back_to(mark);
        assert_eq!(known.result("add a, b"), Some(&value(1)));
        assert_eq!(known.result("add a, c"), None);
        known.forget();
        assert_eq!(known.result("add a, b"), None);
        known.computed("add a, b", &value(3));
        assert_eq!(known.result("add a, b"), Some(&value(3)));
        known.back_to(mark);
        assert_eq!(known.result("add a, b"), Some(&value(1)));
    }

    #[test]
    fn stores_invalidate_what_is_known_of_variables() {
        let mut known = Known::default();
        known.holds(1, 0, &value(1));
        known.holds(2, 0, &value(2));
        let outer = known.mark();
        known.forget();
        let inner = known.mark();
        known.holds(2, 0, &value(3));
        assert_eq!(known.variable(2, 0), Some(&value(3)));
        known.back_to(inner);
        assert_eq!(known.variable(2, 0), None);
        known.back_to(outer);
        assert_eq!(known.variable(1, 0), Some(&value(1)));
        assert_eq!(known.variable(2, 0), None);
    }
}
