//! The diagnostics for invalid instructions. Each names the operand, what was found, what was expected and, if known, the related place,
//! such as a declaration. Nothing here runs for a valid module.

mod address;
mod constant;
mod form;
mod mnemonic;
mod names;
mod operand;
mod register;
mod special;

use super::address::want_space;
use super::memo::{MAX_WORDS, Unavailable, words};
use super::names::Binding;
use super::operand::Named;
use super::source::spreads;
use super::vector::{ignores_rest, reads_specials};
use super::walk::Walker;
use super::{Candidate, Operand, SymRef, Want};
use crate::compat::{self, Constants};
use crate::report::{count, lacking, list};
use margay_isa::{
    Component, Kind as TypeKind, Mod, Opcode, Parts, Role, Since, Space, Special, Ty, Type, Variant, Word, resolve,
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

/// Adds "did you mean", with an edit that is never applied automatically.
fn suggest(mut d: Diagnostic, span: Span, with: &str) -> Diagnostic {
    if !with.is_empty() {
        let message = format!("did you mean `{with}`?");
        d.suggestions.push(Suggestion { message, edits: vec![(span, with.to_owned())], machine_applicable: false });
    }
    d
}

/// A position (after the word of this index, the opcode being 0) where one more modifier makes the mnemonic valid, and the
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

/// An older form that does nearly the same.
fn alternative(c: &Candidate) -> Option<&'static str> {
    match c.variant.op {
        Opcode::Mbarrier if c.variant.has(Mod::TryWait) => Some("`mbarrier.test_wait` works on sm_80"),
        Opcode::Redux => Some("a loop over `shfl.sync` reduces on older targets"),
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
