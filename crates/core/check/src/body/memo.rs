//! Maps mnemonics to table rows. A module repeats a few hundred mnemonics, so each text is resolved once, and everything derived
//! from it (candidate forms, types of operands, availability) is cached.

use super::short_str::ShortStr;
use crate::compat::{self, Constants, Types};
use crate::report::{Lack, lacking, since};
use crate::{FxHashMap, Module};
use margay_isa::{Asked, Mod, Opcode, Opnd, Role, Rule, Space, Ty, Type, Until, Variant, Version, Word, resolve};
use margay_syntax::tree::List;

/// How an instruction uses a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Its value is used.
    Read,
    /// It gets a value.
    Written,
}

/// The requirements on an operand, with all type variables bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    /// The row's operand.
    pub(crate) opnd: &'static Opnd,
    /// Its type; nothing where anything fits or a rule decides.
    pub(crate) ty: Option<Type>,
    /// Registers that it takes.
    pub(crate) regs: Types,
    /// Constants that it takes.
    pub(crate) constants: Constants,
    /// Registers in a vector; nothing where it is left open.
    pub(crate) count: Option<u32>,
    /// True for an element of a vector.
    pub(crate) element: bool,
    /// Registers that the partner after `|` may be.
    pub(crate) pair: Types,
    /// The contents of a bracketed list, see [`Candidate::inside`].
    pub(crate) inner: List<Want>,
    /// How a register alone in this place is used, if only its type needs to be right.
    pub(crate) plain: Option<Access>,
}

/// A form that the mnemonic may mean. Operands decide between several.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Opcode, form, modifiers.
    pub(crate) variant: Variant,
    /// False if the modifiers stood in another order than the manual's.
    pub(crate) in_order: bool,
    /// True if a space splits a mnemonic that is one word for ptxas (`mul .lo`).
    pub(crate) parted: bool,
    /// Operands.
    pub(crate) wants: Box<[Want]>,
    /// The contents of their bracketed lists.
    inside: Box<[Want]>,
    /// Fewest operands.
    pub(crate) min: usize,
    /// The state space that the instruction names.
    pub(crate) space: Option<Mod>,
    /// Why the module may not use it.
    pub(crate) unavailable: Option<Unavailable>,
    /// True for `call`, whose operands are its own matter.
    pub(crate) call: bool,
    /// True for `cvta.const` and `cvta.to.const`.
    pub(crate) cvta_const: bool,
    /// Bytes that one access moves, for the alignment lint; 0 if it is not a plain access.
    pub(crate) access: u32,
    /// Cross-instruction rules.
    pub(crate) rules: &'static [Rule],
}

impl Candidate {
    /// The contents of this form's bracketed lists.
    pub(crate) fn inside(&self, want: &Want) -> &[Want] {
        &self.inside[want.inner.range()]
    }
}

/// Why a form is not available.
#[derive(Clone, Debug)]
pub(crate) enum Unavailable {
    /// The version or target of the module is too low. What needs more, and what is needed.
    Lacks(String, Lack),
    /// Removed since.
    Removed(Until),
    /// It names a bank of constant memory.
    NoBanks(Until),
}

/// One mnemonic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Range in the candidates; empty if nothing fits.
    pub(crate) start: u32,
    /// Number of candidates.
    pub(crate) len: u32,
}

/// Mnemonics seen so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memo {
    entries: FxHashMap<Box<str>, Entry>,
    /// Those of short ones once more, in the places that [`ShortStr::slot`] gives; of several with the same place, the last.
    quick: Vec<Option<(ShortStr, Entry)>>,
    candidates: Vec<Candidate>,
}

impl Memo {
    /// The meaning of a mnemonic, if it was seen before.
    #[inline]
    pub(crate) fn get(&self, text: &str) -> Option<Entry> {
        if let Some(brief) = ShortStr::of(text)
            && let Some(Some((known, entry))) = self.quick.get(brief.slot())
            && *known == brief
        {
            return Some(*entry);
        }
        self.entries.get(text).copied()
    }

    /// Resolves a mnemonic.
    pub(crate) fn add(&mut self, text: &str, module: &Module) -> Entry {
        let start = self.candidates.len() as u32;
        self.candidates.extend(candidates(text, module));
        let entry = Entry { start, len: self.candidates.len() as u32 - start };
        self.entries.insert(text.into(), entry);
        if let Some(brief) = ShortStr::of(text) {
            self.quick.resize(ShortStr::SLOTS, None);
            self.quick[brief.slot()] = Some((brief, entry));
        }
        entry
    }

    /// A candidate by index.
    pub(crate) fn candidate(&self, index: u32) -> &Candidate {
        &self.candidates[index as usize]
    }

    /// Number of candidates.
    pub(crate) fn len(&self) -> usize {
        self.candidates.len()
    }
}

/// The words of a mnemonic with their offsets; blanks and comments between them are skipped, and so is a bank of constant memory
/// (section 5.1.3.1).
pub(crate) fn words(text: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut rest = text;
    let offset = |s: &str| s.as_ptr() as usize - text.as_ptr() as usize;
    loop {
        rest = rest.trim_start();
        if let Some(tail) = rest.strip_prefix("//") {
            rest = tail.split_once('\n').map_or("", |t| t.1);
        } else if let Some(tail) = rest.strip_prefix("/*") {
            rest = tail.split_once("*/").map_or("", |t| t.1);
        } else if let Some(tail) = rest.strip_prefix('.') {
            rest = tail;
        } else if rest.is_empty() {
            return out;
        } else {
            let end = rest.find(|c: char| c == '.' || c.is_whitespace() || c == '/').unwrap_or(rest.len()).max(1);
            let end = (end..=rest.len()).find(|e| rest.is_char_boundary(*e)).unwrap_or(rest.len());
            out.push((offset(rest), without_bank(&rest[..end])));
            rest = &rest[end..];
        }
    }
}

/// `const` of `const[2]`, if that is one of the banks 0 to 10.
fn without_bank(word: &str) -> &str {
    let bank = |number: &str| number.parse::<u8>().is_ok_and(|n| n <= 10);
    match word.strip_suffix(']').and_then(|w| w.split_once('[')) {
        Some((space, number)) if bank(number) => space,
        _ => word,
    }
}

/// More words than any form has, even with its repeatable ones repeated; matching takes time quadratic in their number.
pub(crate) const MAX_WORDS: usize = 64;

fn candidates(text: &str, module: &Module) -> Vec<Candidate> {
    let words = words(text);
    let Some(((_, name), rest)) = words.split_first() else { return Vec::new() };
    // Words that follow the opcode without a blank between.
    let joins = |w: &&[(usize, &str)]| w[0].0 + w[0].1.len() + 1 == w[1].0;
    let joined = words.windows(2).take_while(joins).count();
    if rest.len() > MAX_WORDS {
        return Vec::new();
    }
    let Some(op) = Opcode::from_name(name) else { return Vec::new() };
    let Some(words) = rest.iter().map(|(_, w)| Word::from_name(w)).collect::<Option<Vec<Word>>>() else {
        return Vec::new();
    };
    let mut out: Vec<Candidate> = Vec::new();
    // `resolve` stops at the first form whose operands fit. Refusing those seen already lists them all; when nothing new
    // comes, it falls back to the first.
    while let Ok(found) = resolve(op, &words, |v| out.iter().all(|c| c.variant.form != v.form)) {
        if out.iter().any(|c| c.variant.form == found.variant.form) {
            break;
        }
        out.push(candidate(found.variant, found.in_order, joined, module));
    }
    if let Some((_, number)) = text.split_once('[') {
        let bank = bank(module, number.starts_with("0]"));
        out.iter_mut().filter(|c| c.unavailable.is_none()).for_each(|c| c.unavailable = bank.clone());
    }
    out
}

/// Banks of constant memory are part of PTX ISA 1.5 to 2.1, the first one also before.
fn bank(module: &Module, first: bool) -> Option<Unavailable> {
    if let Some(lack) = lacking(module, &since(1, 5, 0)).filter(|_| !first) {
        return Some(Unavailable::Lacks("a bank of constant memory".to_owned(), lack));
    }
    let until = Until { ptx: Version::new(2, 2), sm: 0 };
    (module.version_at.is_some() && module.version >= until.ptx).then_some(Unavailable::NoBanks(until))
}

fn candidate(variant: Variant, in_order: bool, joined: usize, module: &Module) -> Candidate {
    let mut inside = Vec::new();
    let wants: Box<[Want]> = variant.operands().map(|o| want(&variant, o, &mut inside)).collect();
    let min = wants.iter().position(|w| w.opnd.optional).unwrap_or(wants.len());
    let space = variant.words.iter().find_map(|w| match w {
        Word::Mod(m) if space_of(*m).is_some() => Some(*m),
        _ => None,
    });
    let access = match variant.op {
        Opcode::Ld | Opcode::Ldu | Opcode::St | Opcode::Atom | Opcode::Red => variant.t().bytes() * variant.vec(),
        _ => 0,
    };
    Candidate {
        unavailable: unavailable(&variant, module),
        call: variant.op == Opcode::Call,
        cvta_const: variant.op == Opcode::Cvta && space == Some(Mod::Const),
        rules: variant.row().rules,
        parted: joined < variant.glued(),
        in_order,
        wants,
        inside: inside.into(),
        min,
        space,
        access,
        variant,
    }
}

fn want(variant: &Variant, opnd: &'static Opnd, inside: &mut Vec<Want>) -> Want {
    let ty = variant.resolve_ty(opnd.ty);
    let regs = |ty: Ty| match ty {
        Ty::Any => Types::MAX,
        _ => compat::those(|reg| variant.takes_register(opnd, ty, reg)),
    };
    let mut inner = List::empty();
    if let Role::Group(list) = opnd.role {
        let wants: Vec<Want> = variant.inside(list).map(|o| want(variant, o, inside)).collect();
        inner = List::new(inside.len() as u32, wants.len() as u32);
        inside.extend(wants);
    }
    let (count, pair) = (variant.count(opnd), opnd.pair.map_or(0, regs));
    let (in_braces, with_partner) = (opnd.braces() && count == Some(1), opnd.paired && pair != 0);
    let plain = match opnd.role {
        _ if in_braces || with_partner => None,
        Role::Dst => Some(Access::Written),
        Role::Src => Some(Access::Read),
        _ => None,
    };
    Want {
        opnd,
        ty,
        regs: regs(opnd.ty),
        constants: match opnd.ty {
            Ty::Pointer => Constants::Int,
            Ty::Any => Constants::Any,
            _ => ty.map_or(Constants::Any, compat::constants),
        },
        count,
        element: false,
        pair,
        inner,
        plain,
    }
}

fn unavailable(variant: &Variant, module: &Module) -> Option<Unavailable> {
    let op = variant.op.row();
    let found = variant.asks().find_map(|(asked, since)| Some((asked, lacking(module, &since)?)));
    if let Some((asked, lack)) = found {
        let what = match asked {
            // Either all forms of the opcode are too new, or this form is.
            Asked::Form if op.forms.iter().all(|f| lacking(module, &f.since).is_some()) => {
                let fixed = variant.words.iter().take(variant.row().fixed.into());
                format!("`{}`", fixed.fold(op.name.to_owned(), |name, word| name + "." + word.name()))
            }
            Asked::Form => format!("`{variant}`"),
            Asked::GenericAddress => format!("a generic address on `{}`", op.name),
            Asked::Word(need) => match need.with {
                [] => format!("`.{}` on `{}`", need.word.name(), op.name),
                with => {
                    let with: Vec<String> = with.iter().map(|w| format!("`.{}`", w.name())).collect();
                    format!("`.{}` with {} on `{}`", need.word.name(), with.join(" "), op.name)
                }
            },
        };
        return Some(Unavailable::Lacks(what, lack));
    }
    let until = variant.row().until.filter(|u| {
        module.version_at.is_some() && module.target_at.is_some() && module.version >= u.ptx && module.target.sm >= u.sm
    });
    until.map(Unavailable::Removed)
}

/// The state space that a modifier names.
pub(crate) fn space_of(m: Mod) -> Option<Space> {
    Some(match m {
        Mod::Const => Space::Const,
        Mod::Global => Space::Global,
        Mod::Local => Space::Local,
        Mod::Param | Mod::ParamEntry | Mod::ParamFunc => Space::Param,
        Mod::Shared | Mod::SharedCta | Mod::SharedCluster => Space::Shared,
        _ => return None,
    })
}

/// The frozen memo of a module that has passed, if there is one, and the growing one.
pub(super) struct Memos<'m> {
    pub(super) shared: Option<&'m Memo>,
    pub(super) own: &'m mut Memo,
}

impl Memos<'_> {
    fn frozen(&self) -> u32 {
        self.shared.map_or(0, Memo::len) as u32
    }

    /// The entry of a mnemonic.
    pub(super) fn entry(&mut self, text: &str, module: &Module) -> Entry {
        if let Some(entry) = self.shared.and_then(|m| m.get(text)) {
            return entry;
        }
        let entry = match self.own.get(text) {
            Some(entry) => entry,
            None => self.own.add(text, module),
        };
        Entry { start: entry.start + self.frozen(), ..entry }
    }

    /// A candidate by index.
    pub(super) fn candidate(&self, index: u32) -> &Candidate {
        match self.shared {
            Some(memo) if index < self.frozen() => memo.candidate(index),
            _ => self.own.candidate(index - self.frozen()),
        }
    }
}
