//! Maps an opcode and its modifier words to a row: [`resolve()`], and the [`Variant`] that it returns.

use crate::{
    Asked, COMMON, Class, Count, Form, Missing, Mod, Op, Opcode, Opnd, Role, Rule, Since, Slot, Space, Target, Type,
    VARS, Var, Version, Word, table,
};

/// An instruction's opcode, form and chosen modifiers: what every stage after `check` carries.
///
/// Words are in the manual's order, regardless of the order in the text, so [`Variant`]'s `Display` is the canonical mnemonic.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Variant {
    /// The opcode.
    pub op: Opcode,
    /// Index into [`Op::forms`].
    pub form: u16,
    /// The chosen words, in the order of the form's slots; absent optional ones left out.
    pub words: Box<[Word]>,
    types: [Option<Type>; VARS],
}

impl Variant {
    /// The form's variant with these words, which are in the form's order.
    pub fn new(op: Opcode, form: u16, words: &[Word]) -> Option<Variant> {
        let (words, types) = match_in_order(op.row().forms.get(usize::from(form))?, words)?;
        Some(Variant { op, form, words, types })
    }

    /// The row.
    pub fn row(&self) -> &'static Form {
        &self.op.row().forms[usize::from(self.form)]
    }

    /// The operands that the instruction takes: those of the row, less those whose modifier ([`crate::Opnd::when`]) is absent.
    pub fn operands(&self) -> impl Iterator<Item = &'static Opnd> + '_ {
        self.inside(self.row().operands)
    }

    /// The same of a bracketed list ([`Role::Group`]).
    pub fn inside(&self, list: &'static [Opnd]) -> impl Iterator<Item = &'static Opnd> + '_ {
        list.iter().filter(|o| o.when.is_empty() || o.when.iter().any(|m| self.has(*m)))
    }

    /// How many registers an operand holds; `None` where the row leaves it open ([`Count::Free`]).
    pub fn count(&self, operand: &Opnd) -> Option<u32> {
        Some(match operand.count {
            Count::One => 1,
            Count::ByVec => self.vec(),
            Count::Exactly(n) => u32::from(n),
            Count::Table(table) | Count::AtLeast(table) => {
                table.iter().filter(|(m, _)| self.has(*m)).map(|(_, n)| u32::from(*n)).product()
            }
            Count::Free => return None,
        })
    }

    /// Whether a module of that version and target has this instruction; if not, the word that it lacks (none: the form as
    /// a whole) and what that needs.
    pub fn available(&self, version: Version, target: Target) -> Result<(), (Option<Word>, Missing)> {
        for (asked, since) in self.asks() {
            let word = if let Asked::Word(need) = asked { Some(need.word) } else { None };
            since.check(version, target).map_err(|m| (word, m))?;
        }
        match self.row().until.filter(|u| version >= u.ptx && target.sm >= u.sm) {
            Some(until) => Err((None, Missing::Removed(until))),
            None => Ok(()),
        }
    }

    /// What it asks of version and target: the form, a generic address that it may use (section 5.1 has them since 2.0), and
    /// the words that need more.
    pub fn asks(&self) -> impl Iterator<Item = (Asked, Since)> {
        let row = self.row();
        let generic =
            self.space() == Space::Generic && row.operands.iter().any(|o| o.role == Role::Addr && o.space.is_none());
        let address = generic.then_some((Asked::GenericAddress, Since::new(2, 0, 20)));
        // A row's requirement for a word replaces the general one.
        let common = COMMON.iter().filter(|c| row.needs.iter().all(|n| (n.word, n.with) != (c.word, c.with)));
        let words = row.needs.iter().chain(common).filter(|n| n.applies(&self.words));
        [(Asked::Form, row.since)].into_iter().chain(address).chain(words.map(|n| (Asked::Word(n), n.since)))
    }

    /// The rule of the row that these words break together, and the words; nothing if they go together.
    pub fn clash(&self) -> Option<(Rule, [Option<Word>; 2])> {
        let of = |mods: &[Mod]| mods.iter().find(|m| self.has(**m)).map(|m| Word::Mod(*m));
        let evicts_l2 = of(table::L2_EVICT.of);
        let space = self.words.iter().find(|w| w.as_space().is_some()).copied();
        let global = matches!(self.space(), Space::Generic | Space::Global);
        let bits = self.vec() * self.t().bits();
        let wide = bits == 256 && self.t().bits() <= 64 && global;
        self.row().rules.iter().find_map(|rule| match rule {
            Rule::VectorWidth => {
                let fits = self.vec() == 1 || bits <= 128 || wide;
                (!fits).then(|| (*rule, [of(table::VEC.of), Some(Word::Type(self.t()))]))
            }
            Rule::NarrowVector => {
                let fits = self.vec() == 1 || bits <= 128;
                (!fits).then(|| (*rule, [of(table::VEC.of), Some(Word::Type(self.t()))]))
            }
            Rule::GlobalHint if !global => {
                let hint = of(table::HINT.of).or(of(table::PREFETCH.of)).or(of(table::L1_EVICT.of)).or(evicts_l2);
                hint.map(|h| (*rule, [Some(h), space]))
            }
            Rule::WideEviction if !wide => evicts_l2.map(|e| (*rule, [Some(e), of(table::VEC.of)])),
            Rule::GlobalHint | Rule::WideEviction => None,
            // These look at operands and belong to `check`.
            Rule::MovOperand | Rule::ParamWindow | Rule::CallSignature | Rule::VmadNegation => None,
            Rule::BracedVector | Rule::HandleRegister | Rule::ResidentPredicate | Rule::ShortCoordinates => None,
            Rule::UnifiedMode | Rule::IndependentMode => None,
            Rule::CopySourceSize
            | Rule::SharedVariable
            | Rule::GenericWidth
            | Rule::SinkOnly
            | Rule::ScaleSelector
            | Rule::TensorMapValue
            | Rule::PolicyFraction
            | Rule::PolicyRange => None,
            Rule::StackAlignment => None,
        })
    }

    /// How many of the words ptxas reads as one with the opcode: they cannot be preceded by a space.
    pub fn glued(&self) -> usize {
        let row = self.row();
        row.slots
            .iter()
            .take(row.glued.into())
            .fold(0, |n, slot| n + usize::from(self.words.get(n).is_some_and(|word| fits(slot, *word))))
    }

    /// Whether the modifier was written.
    pub fn has(&self, m: Mod) -> bool {
        self.words.contains(&Word::Mod(m))
    }

    /// The modifier of that class that was written.
    pub fn pick(&self, class: &Class) -> Option<Mod> {
        self.words.iter().find_map(|w| match w {
            Word::Mod(m) if class.of.contains(m) => Some(*m),
            _ => None,
        })
    }

    /// The type bound to a variable, if the form has the variable and it was written.
    pub fn ty(&self, v: Var) -> Option<Type> {
        self.types[v as usize]
    }

    /// The type bound to `T`; every form that moves data has it. `.b32` where a form has none.
    pub fn t(&self) -> Type {
        self.types[0].unwrap_or(Type::B32)
    }

    /// Number of elements that `.v2`, `.v4`, `.v8` ask for; 1 without one.
    pub fn vec(&self) -> u32 {
        match () {
            _ if self.has(Mod::V2) => 2,
            _ if self.has(Mod::V4) => 4,
            _ if self.has(Mod::V8) => 8,
            _ => 1,
        }
    }
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.op.row().name)?;
        self.words.iter().try_for_each(|w| write!(f, ".{}", w.name()))
    }
}

/// What [`resolve()`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resolved {
    /// The row and its words.
    pub variant: Variant,
    /// False when the words stood in another order than the manual's.
    pub in_order: bool,
}

/// Why no form fits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Index of the first word that fits no form that the words before it allow; `words.len()` if one is missing at the end.
    pub at: usize,
    /// The words that are allowed there instead.
    pub expected: Vec<Word>,
}

/// Finds the form of `op` that takes these words. The manual's order is tried first; then any order in which every
/// required slot is filled, as ptxas accepts (`ld.u32.global`). `accept` says whether the operands fit too
/// ([`Variant::operands`]): forms that differ in operands only (`call` with and without a table) are distinguished by it.
pub fn resolve(op: Opcode, words: &[Word], mut accept: impl FnMut(&Variant) -> bool) -> Result<Resolved, Mismatch> {
    let row = op.row();
    let mut fallback = None;
    let repeated = |i: usize| matches!(words[i], Word::Mod(m) if m.repeatable()) && words[..i].contains(&words[i]);
    let once: Vec<Word> = (0..words.len()).filter(|i| !repeated(*i)).map(|i| words[i]).collect();
    let idle = |w: &Word| match w {
        Word::Mod(m) => m.idle(),
        Word::Type(t) => idle_type(op, words, *t),
    };
    let any_idle = once.iter().any(idle);
    // Where an operation has a use for the word in one of its forms, ptxas does not overlook it in the others.
    let known = |w: &Word| row.forms.iter().any(|f| opens(f, words) && f.slots.iter().any(|s| fits(s, *w)));
    for in_order in [true, false] {
        let words = if in_order { words } else { &once };
        for (index, form) in row.forms.iter().enumerate() {
            let matched = if in_order {
                match_in_order(form, words)
            } else if any_idle {
                let fixed = usize::from(form.fixed);
                let idles = |(i, w): &(usize, Word)| *i >= fixed && idle(w) && !known(w);
                let used: Vec<Word> = words.iter().copied().enumerate().filter(|w| !idles(w)).map(|w| w.1).collect();
                match_any_order(form, &used)
            } else {
                match_any_order(form, words)
            };
            if let Some((chosen, types)) = matched {
                let variant = Variant { op, form: index as u16, words: chosen, types };
                if accept(&variant) {
                    return Ok(Resolved { variant, in_order });
                }
                fallback.get_or_insert(Resolved { variant, in_order });
            }
        }
        if let Some(found) = fallback.take() {
            return Ok(found);
        }
    }
    Err(explain(row, words))
}

/// Whether ptxas overlooks the type where no form has a use for it: those of opaque variables and predicates on operations on numbers
/// that also come in half precision, and `.b2` on all others.
fn idle_type(op: Opcode, words: &[Word], ty: Type) -> bool {
    use Opcode::*;
    let has = |m: Mod| words.contains(&Word::Mod(m));
    let numbers = || match op {
        Abs | Add | Atom | Cos | Cvt | Ex2 | Fma | Ldmatrix | Lg2 | Max | Min | Multimem | Neg | Rcp | Red | Rsqrt
        | Set | Setp | Sin | Sqrt | Sub | Tanh => true,
        Mul => !has(Mod::Lo) && !has(Mod::Hi) && !has(Mod::Wide),
        Cp => has(Mod::Reduce) && !has(Mod::Tensor),
        Wgmma => has(Mod::MmaAsync),
        _ => false,
    };
    match ty {
        Type::TexRef | Type::SamplerRef | Type::SurfRef | Type::Pred => numbers(),
        Type::B2 => op != Mma && !numbers(),
        _ => false,
    }
}

/// Whether the words begin with those that belong to the form's opcode.
fn opens(form: &Form, words: &[Word]) -> bool {
    let fixed = usize::from(form.fixed);
    words.len() >= fixed && form.slots.iter().zip(words).take(fixed).all(|(slot, word)| fits(slot, *word))
}

type Chosen = (Box<[Word]>, [Option<Type>; VARS]);

fn fits(slot: &Slot, word: Word) -> bool {
    match (slot, word) {
        (Slot::One(m), Word::Mod(w)) => *m == w,
        (Slot::Opt(c) | Slot::Req(c), Word::Mod(w)) => c.of.contains(&w),
        (Slot::Type(_, ts) | Slot::OptType(_, ts), Word::Type(t)) => ts.contains(&t),
        _ => false,
    }
}

fn optional(slot: &Slot) -> bool {
    matches!(slot, Slot::Opt(_) | Slot::OptType(..))
}

fn bind(types: &mut [Option<Type>; VARS], slot: &Slot, word: Word) {
    if let (Slot::Type(v, _) | Slot::OptType(v, _), Word::Type(t)) = (slot, word) {
        types[*v as usize] = Some(t);
    }
}

fn match_in_order(form: &Form, words: &[Word]) -> Option<Chosen> {
    let mut types = [None; VARS];
    let mut rest = words;
    for slot in form.slots {
        match rest.split_first() {
            Some((w, tail)) if fits(slot, *w) => {
                bind(&mut types, slot, *w);
                rest = tail;
            }
            _ if optional(slot) => {}
            _ => return None,
        }
    }
    rest.is_empty().then(|| (words.into(), types))
}

/// Like ptxas: words that belong to the opcode come first; types, and the modifiers of each [series](Mod::series),
/// keep their relative order; the other modifiers may be anywhere.
fn match_any_order(form: &Form, words: &[Word]) -> Option<Chosen> {
    let mut types = [None; VARS];
    let mut used = vec![false; words.len()];
    let mut chosen = Vec::with_capacity(words.len());
    for (index, slot) in form.slots.iter().enumerate() {
        let done = chosen.len();
        let mut unused = (0..words.len()).filter(|i| !used[*i]);
        let found = match slot {
            _ if index < usize::from(form.fixed) => unused.next().filter(|i| *i == done && fits(slot, words[*i])),
            Slot::Type(..) | Slot::OptType(..) => {
                unused.find(|i| matches!(words[*i], Word::Type(_))).filter(|i| fits(slot, words[*i]))
            }
            Slot::One(_) | Slot::Opt(_) | Slot::Req(_) => {
                let series = |i: usize| match words[i] {
                    Word::Mod(m) => m.series(),
                    Word::Type(_) => None,
                };
                let first = |i: &usize| series(*i).is_none_or(|s| (0..*i).all(|j| used[j] || series(j) != Some(s)));
                unused.find(|i| fits(slot, words[*i])).filter(first)
            }
        };
        match found {
            Some(i) => {
                used[i] = true;
                bind(&mut types, slot, words[i]);
                chosen.push(words[i]);
            }
            None if optional(slot) => {}
            None => return None,
        }
    }
    used.iter().all(|u| *u).then(|| (chosen.into(), types))
}

fn explain(row: &Op, words: &[Word]) -> Mismatch {
    let mut best = Mismatch { at: 0, expected: Vec::new() };
    for form in row.forms {
        let (mut at, mut expected, mut slots) = (0, Vec::new(), form.slots.iter());
        for slot in slots.by_ref() {
            match words.get(at) {
                Some(w) if fits(slot, *w) => {
                    at += 1;
                    expected.clear();
                }
                _ => {
                    push_choices(&mut expected, slot);
                    if !optional(slot) {
                        break;
                    }
                }
            }
        }
        if at > best.at {
            best = Mismatch { at, expected };
        } else if at == best.at {
            best.expected.extend(expected);
        }
    }
    best.expected.sort();
    best.expected.dedup();
    best
}

fn push_choices(out: &mut Vec<Word>, slot: &Slot) {
    match slot {
        Slot::One(m) => out.push(Word::Mod(*m)),
        Slot::Opt(c) | Slot::Req(c) => out.extend(c.of.iter().map(|m| Word::Mod(*m))),
        Slot::Type(_, ts) | Slot::OptType(_, ts) => out.extend(ts.iter().map(|t| Word::Type(*t))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        text.split('.').map(|w| Word::from_name(w).unwrap()).collect()
    }

    #[test]
    fn canonical_order_is_restored() {
        let found = resolve(Opcode::Ld, &words("u32.global"), |_| true).unwrap();
        assert!(!found.in_order);
        assert_eq!(found.variant.to_string(), "ld.global.u32");
    }

    /// As ptxas 13.5 has it: some words are overlooked by operations that never use them, and only by those.
    #[test]
    fn modifiers_that_a_form_does_not_use_are_ignored_as_by_ptxas() {
        let accepted = |op: Opcode, text: &str| resolve(op, &words(text), |_| true).is_ok();
        assert!(accepted(Opcode::Add, "u32.b8x16"));
        assert!(accepted(Opcode::Ld, "global.u32.rank"));
        assert!(!accepted(Opcode::Ldmatrix, "sync.aligned.m8n8.x2.b8x16.b16"));
        assert!(accepted(Opcode::Ldmatrix, "sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32"));
        assert!(!accepted(Opcode::Ldmatrix, "sync.aligned.m8n16.x1.shared.b6x16_p32.b8x16"));
        assert!(!accepted(Opcode::Testp, "finite.infinite.f32"));
        assert!(accepted(Opcode::Add, "u64.pred") && accepted(Opcode::Mul, "texref.f32"));
        assert!(accepted(Opcode::Mul, "lo.b2.u32") && accepted(Opcode::Ret, "b2"));
        assert!(!accepted(Opcode::Add, "b2.u64") && !accepted(Opcode::Ld, "global.texref.u32"));
        assert!(!accepted(Opcode::Mul, "lo.pred.u32") && !accepted(Opcode::Add, "u64.b1"));
        assert!(!accepted(Opcode::Multimem, "ld_reduce.acc::f32.add.s32"));
        assert!(!accepted(Opcode::Tensormap, "replace.tile.swizzle_mode.rank.b1024.b32"));
    }

    /// As ptxas 13.5 has it: when operations on wide and floating values came, and where words came earlier than elsewhere.
    #[test]
    fn availability() {
        let since = |op: Opcode, text: &str, version: (u16, u16), sm: u16| {
            let variant = resolve(op, &words(text), |_| true).unwrap().variant;
            let at = |v: Version, t: u16| variant.available(v, Target::sm(t)).is_ok();
            let version = Version::new(version.0, version.1);
            let before = Version::ALL.iter().copied().filter(|v| *v < version).max().unwrap();
            assert!(at(version, sm) && !at(before, sm), "{text} {version}");
            let below = Target::ALL.iter().map(|t| t.0.sm).filter(|t| *t < sm).max();
            assert!(below.is_none_or(|below| !at(Version::LAST, below)), "{text} sm_{sm}");
        };
        for op in [Opcode::Atom, Opcode::Red] {
            since(op, "global.and.b64", (3, 1), 32);
            since(op, "shared.min.s64", (3, 1), 32);
            since(op, "max.u64", (3, 1), 32);
            since(op, "global.add.u64", (1, 2), 12);
            since(op, "shared.add.u64", (2, 0), 20);
            since(op, "global.add.f32", (2, 0), 20);
            since(op, "global.add.f64", (5, 0), 60);
        }
        since(Opcode::Atom, "global.cas.b64", (1, 2), 12);
        since(Opcode::Atom, "shared.exch.b64", (2, 0), 20);
        since(Opcode::Cp, "async.ca.shared::cta.global", (7, 0), 80);
        since(Opcode::Tex, "uni.2d.v4.u32.f32", (3, 2), 0);
        since(Opcode::Sured, "b.add.3d.u32.zero", (3, 0), 20);
        since(Opcode::Suld, "b.2d.b32.clamp", (2, 0), 0);
        since(Opcode::Cp, "async.bulk.weak.global.shared::cta.bulk_group", (9, 3), 90);
        since(Opcode::Cp, "async.bulk.global.shared::cta.bulk_group", (8, 0), 90);
    }

    #[test]
    fn a_mismatch_names_the_choices() {
        let why = resolve(Opcode::Add, &words("sat.u16"), |_| true).unwrap_err();
        assert_eq!(why.at, 1);
        assert!(why.expected.contains(&Word::Type(Type::S32)));
    }
}
