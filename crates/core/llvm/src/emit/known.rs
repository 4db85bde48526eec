//! What the code written so far has computed already.
//!
//! Emitters ask for what they need as if nothing was there: operands anew for each instruction, the mask anew for each access. What
//! was computed on every way to the place that is being written is used again instead, and so is what was last stored in a variable.
//! LLVM would find most of that too, but every line costs it time.
//!
//! Knowledge is a stack. A block that can be entered from anywhere begins with none; where code branches around something and meets
//! again, what was known at the branch is known behind, but for the variables that were written in between.

use crate::emit::text::Val;
use std::collections::HashMap;

/// What a value is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Key {
    /// The result of an operation without effects, by its text.
    Result(Box<str>),
    /// What the part of a variable at an offset holds.
    Variable(u32, u64),
}

#[derive(Debug)]
struct Entry {
    key: Key,
    /// `None`: no longer known.
    value: Option<Val>,
    /// The entry of the same key before.
    before: Option<usize>,
}

/// A place to come back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    entries: usize,
    from: usize,
}

/// The values known at the place that is being written.
#[derive(Default, Debug)]
pub(super) struct Known {
    entries: Vec<Entry>,
    latest: HashMap<Key, usize>,
    /// Entries before are of code that need not have run.
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

    /// Notes it.
    pub fn computed(&mut self, text: &str, value: &Val) {
        self.push(Key::Result(text.into()), Some(value.clone()));
    }

    /// What part of a variable holds.
    pub fn variable(&self, variable: u32, offset: u64) -> Option<&Val> {
        self.find(&Key::Variable(variable, offset))
    }

    /// Notes it.
    pub fn holds(&mut self, variable: u32, offset: u64, value: &Val) {
        self.push(Key::Variable(variable, offset), Some(value.clone()));
    }

    /// Nothing is known any more.
    pub fn forget(&mut self) {
        self.from = self.entries.len();
    }

    /// The present place.
    pub fn mark(&self) -> Mark {
        Mark { entries: self.entries.len(), from: self.from }
    }

    /// What was known at a place is, but for variables that were written since.
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

/// Whether operations of a name have no effects, and give the same each time.
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
    fn code_that_need_not_have_run_is_not_used() {
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
    fn variables_written_in_between_are_not_known_behind() {
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
