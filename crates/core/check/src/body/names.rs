//! Names of a body: scopes, parameterized register names, labels.
//!
//! Parameters and the outermost block are one scope; inner blocks shadow it. A name is visible from its declaration on, a label in
//! its whole block. Parameterized names (`%r<8>`) are stored by prefix, so that a thousand registers need one entry.

use super::stem::{self, Stem};
use super::{LabelId, TableId};
use crate::FxHashMap;
use margay_syntax::Span;

/// The meaning of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Binding {
    /// Index into [`super::Body::regs`].
    Reg(u32),
    /// Index into [`super::Body::locals`].
    Local(u32),
    /// A `.param` formal.
    Param(u32),
    /// A `.param` return formal.
    Ret(u32),
    /// A label.
    Label(LabelId),
    /// A label of a table or prototype.
    Table(TableId),
    /// Something about it was wrong and has been said.
    Faulty,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    binding: Binding,
    depth: u32,
    span: Span,
}

#[derive(Clone, Copy, Debug)]
struct Family {
    binding: Binding,
    count: u32,
    depth: u32,
    span: Span,
}

#[derive(Debug)]
enum Undo<'a> {
    Plain(&'a str, Option<Slot>),
    Family(Stem<'a>, Option<Family>),
}

/// The families by their stems. A body has a handful and asks for them with nearly every operand, so those with short stems
/// are kept where no search is needed, too.
#[derive(Debug, Default)]
struct Families<'a> {
    all: FxHashMap<Stem<'a>, Family>,
    /// One place for each value of [`Stem::slot`]; of several families with the same one it holds the last.
    quick: [Option<(Stem<'static>, Family)>; Stem::SLOTS],
}

impl<'a> Families<'a> {
    #[inline(always)]
    fn get(&self, stem: Stem<'a>) -> Option<&Family> {
        match &self.quick[stem.slot()] {
            Some((known, family)) if *known == stem => Some(family),
            _ => self.all.get(&stem),
        }
    }

    fn insert(&mut self, stem: Stem<'a>, family: Family) -> Option<Family> {
        if let Stem::Short(word) = stem {
            self.quick[stem.slot()] = Some((Stem::Short(word), family));
        }
        self.all.insert(stem, family)
    }

    fn remove(&mut self, stem: Stem<'a>) {
        self.quick[stem.slot()] = None;
        self.all.remove(&stem);
    }
}

/// How many declarations of outer blocks are searched for a register that an inner family does not have: deeply nested blocks must not
/// take quadratic time.
const OUTER: usize = 4096;

/// All names that are known at a point of a body.
#[derive(Debug, Default)]
pub(crate) struct Names<'a> {
    plain: FxHashMap<&'a str, Slot>,
    families: Families<'a>,
    /// Prefixes of plain names that end in digits: only these can meet a family.
    prefixes: FxHashMap<&'a str, ()>,
    /// Families that were found to be too small, by where they are declared: that is said once.
    short: Vec<Span>,
    /// True once a plain name and a family share a prefix.
    mixed: bool,
    undo: Vec<Undo<'a>>,
    marks: Vec<usize>,
}

/// A name without the digits at its end.
pub(crate) fn prefix(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

fn number(digits: &str) -> Option<u32> {
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    Some(digits.bytes().fold(0, |n, b| n * 10 + u32::from(b - b'0')))
}

impl<'a> Names<'a> {
    fn depth(&self) -> u32 {
        self.marks.len() as u32
    }

    /// A block begins.
    pub(crate) fn open(&mut self) {
        self.marks.push(self.undo.len());
    }

    /// A block ends. False if none is open.
    pub(crate) fn close(&mut self) -> bool {
        let Some(mark) = self.marks.pop() else { return false };
        while self.undo.len() > mark {
            match self.undo.pop() {
                Some(Undo::Plain(name, Some(slot))) => drop(self.plain.insert(name, slot)),
                Some(Undo::Plain(name, None)) => drop(self.plain.remove(name)),
                Some(Undo::Family(stem, Some(family))) => drop(self.families.insert(stem, family)),
                Some(Undo::Family(stem, None)) => self.families.remove(stem),
                None => {}
            }
        }
        true
    }

    /// Makes room for that many plain names.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.plain.reserve(more);
    }

    /// Declares a name. If the scope has it already, the place of the first declaration comes back and nothing changes.
    pub(crate) fn declare(&mut self, name: &'a str, span: Span, binding: Binding) -> Result<(), Span> {
        let depth = self.depth();
        let stem = prefix(name);
        if stem.len() < name.len() && !matches!(binding, Binding::Label(_) | Binding::Table(_)) {
            self.prefixes.insert(stem, ());
        }
        if let Some(family) = self.families.get(Stem::of(stem)) {
            self.mixed = true;
            let number = number(&name[stem.len()..]);
            if family.depth == depth && number.is_some_and(|n| n < family.count) {
                return Err(family.span);
            }
        }
        let slot = Slot { binding, depth, span };
        match self.plain.insert(name, slot) {
            Some(old) if old.depth == depth && old.binding != Binding::Faulty => {
                self.plain.insert(name, old);
                return Err(old.span);
            }
            old if !self.marks.is_empty() => self.undo.push(Undo::Plain(name, old)),
            _ => {}
        }
        Ok(())
    }

    /// Declares a family `prefix<count>`.
    pub(crate) fn declare_family(
        &mut self,
        stem: &'a str,
        count: u32,
        span: Span,
        binding: Binding,
    ) -> Result<(), Span> {
        let depth = self.depth();
        if self.prefixes.contains_key(stem) {
            self.mixed = true;
            let clash = |(name, slot): (&&str, &Slot)| {
                let here = slot.depth == depth && prefix(name) == stem;
                (here && number(&name[stem.len()..]).is_some_and(|n| n < count)).then_some(slot.span)
            };
            if let Some(first) = self.plain.iter().filter_map(clash).min() {
                return Err(first);
            }
        }
        let family = Family { binding, count, depth, span };
        let stem = Stem::of(stem);
        match self.families.insert(stem, family) {
            Some(old) if old.depth == depth => {
                self.families.insert(stem, old);
                return Err(old.span);
            }
            old if !self.marks.is_empty() => self.undo.push(Undo::Family(stem, old)),
            _ => {}
        }
        Ok(())
    }

    /// Makes a name faulty in the outermost scope: it has been complained about.
    pub(crate) fn fault(&mut self, name: &'a str, span: Span) {
        self.plain.entry(name).or_insert(Slot { binding: Binding::Faulty, depth: 0, span });
    }

    /// Marks all names with this stem and a number as faulty if none are declared: one error is enough.
    pub(crate) fn fault_family(&mut self, stem: &'a str, span: Span) {
        let family = Family { binding: Binding::Faulty, count: u32::MAX, depth: 0, span };
        let stem = Stem::of(stem);
        if self.families.get(stem).is_none() {
            self.families.insert(stem, family);
        }
    }

    /// The meaning of the name at a place of the text, and its number within its family.
    #[inline]
    pub(crate) fn at(&self, text: &str, name: Span) -> Option<(Binding, u32)> {
        if !self.mixed
            && let Some((stem, number)) = stem::split(text, name)
            && let Some(family) = self.families.get(stem)
            && number < family.count
        {
            return Some((family.binding, number));
        }
        self.get(text.get(name.range()).unwrap_or(""))
    }

    /// The meaning of a name, and its number within its family.
    pub(crate) fn get(&self, name: &str) -> Option<(Binding, u32)> {
        let bytes = name.as_bytes();
        let mut split = bytes.len();
        while split > 0 && bytes[split - 1].is_ascii_digit() {
            split -= 1;
        }
        let mut found: Option<(Family, u32)> = None;
        if split < bytes.len() && split > 0 {
            found = self.family(name, split);
            if let (Some((family, n)), false) = (found, self.mixed) {
                return Some((family.binding, n));
            }
        }
        match (self.plain.get(name), found) {
            (Some(slot), Some((family, n))) if family.depth > slot.depth => Some((family.binding, n)),
            (Some(slot), _) => Some((slot.binding, 0)),
            (None, Some((family, n))) => Some((family.binding, n)),
            (None, None) => None,
        }
    }

    fn family(&self, name: &str, split: usize) -> Option<(Family, u32)> {
        let stem = Stem::of(&name[..split]);
        let family = *self.families.get(stem)?;
        let number = number(&name[split..])?;
        if number < family.count {
            return Some((family, number));
        }
        // `%r<9>` of an inner block hides only the first nine of an outer `%r<20>`.
        let outer = self.undo.iter().rev().take(OUTER).find_map(|undo| match undo {
            Undo::Family(known, Some(outer)) if *known == stem && number < outer.count => Some(*outer),
            _ => None,
        })?;
        Some((outer, number))
    }

    /// The family with that prefix: how many it has, and where it is declared.
    pub(crate) fn family_of(&self, name: &str) -> Option<(u32, Span)> {
        self.families.get(Stem::of(prefix(name))).map(|f| (f.count, f.span))
    }

    /// Notes that a family is too small; whether that is news.
    pub(crate) fn too_small(&mut self, family: Span) -> bool {
        let news = !self.short.contains(&family);
        if news {
            self.short.push(family);
        }
        news
    }

    /// The family that seems to have the name, but whose own prefix ends in digits: ptxas takes all digits at the end of a name
    /// for its number, so nothing of such a family (`%r1<4>`) can be named.
    pub(crate) fn hidden_family(&self, name: &str) -> Option<(u32, Span)> {
        let inside = prefix(name).len() + 1..name.len();
        inside.rev().find_map(|split| self.family(name, split)).map(|(f, _)| (f.count, f.span))
    }

    /// Names of a kind, for suggestions. Families give their prefix.
    pub(crate) fn candidates(&self, want: impl Fn(Binding) -> bool) -> impl Iterator<Item = &'a str> {
        self.plain.iter().filter(move |(_, s)| want(s.binding)).map(|(n, _)| *n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Span = Span::new(0, 0);

    #[test]
    fn families_and_plain_names() {
        let mut n = Names::default();
        n.declare_family("%r", 4, AT, Binding::Reg(0)).unwrap();
        n.declare("%r10", AT, Binding::Reg(1)).unwrap();
        assert_eq!(n.declare("%r2", AT, Binding::Reg(2)), Err(AT));
        assert_eq!(n.get("%r3"), Some((Binding::Reg(0), 3)));
        assert_eq!(n.get("%r03"), Some((Binding::Reg(0), 3)), "as ptxas reads it");
        assert_eq!(n.get("%r10"), Some((Binding::Reg(1), 0)));
        assert_eq!(n.get("%r4"), None);
        n.open();
        n.declare_family("%r", 2, AT, Binding::Reg(3)).unwrap();
        assert_eq!(n.get("%r1"), Some((Binding::Reg(3), 1)));
        assert_eq!(n.get("%r3"), Some((Binding::Reg(0), 3)), "not hidden, as ptxas has it");
        assert_eq!(n.get("%r4"), None);
        n.close();
        assert_eq!(n.get("%r1"), Some((Binding::Reg(0), 1)));
    }

    /// ptxas 13.5 knows no `%a12` after `.reg .b32 %a1<3>;`.
    #[test]
    fn numbers_are_all_the_digits() {
        let mut n = Names::default();
        n.declare_family("%a1", 3, AT, Binding::Reg(0)).unwrap();
        assert_eq!(n.get("%a12"), None);
        assert_eq!(n.hidden_family("%a12"), Some((3, AT)));
        assert_eq!(n.hidden_family("%a13"), None);
        n.declare_family("%a", 20, AT, Binding::Reg(1)).unwrap();
        assert_eq!(n.get("%a12"), Some((Binding::Reg(1), 12)));
    }
}
