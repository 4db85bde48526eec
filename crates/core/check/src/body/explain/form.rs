//! Mnemonics that no row of the instruction table takes: unknown instructions and modifiers, and modifiers that no form combines.

use super::*;

/// The modifiers that select a scope, from the narrowest to the widest.
const SCOPES: [Mod; 4] = [Mod::Cta, Mod::Cluster, Mod::Gpu, Mod::Sys];

/// The memory orders that have a scope (section 8.4).
const ORDERS: [Mod; 4] = [Mod::Relaxed, Mod::Acquire, Mod::Release, Mod::AcqRel];

/// The maximum number of modifiers that a message lists.
const MAX_LISTED: usize = 16;

fn is_order(m: Mod) -> bool {
    ORDERS.contains(&m)
}

fn is_a_space(w: &Word) -> bool {
    matches!(w, Word::Mod(m) if super::super::space_of(*m).is_some())
}

/// A mnemonic, word by word.
struct Mnemonic<'t> {
    op: Opcode,
    text: &'t str,
    span: Span,
    /// The opcode and the modifiers, with their offsets in the mnemonic.
    parts: &'t [(usize, &'t str)],
    /// The modifiers, up to the first that no instruction has.
    found: Vec<Word>,
}

impl<'t> Mnemonic<'t> {
    fn new(op: Opcode, instr: &Instr, text: &'t str, parts: &'t [(usize, &'t str)]) -> Self {
        let found = parts[1..].iter().map_while(|(_, word)| Word::from_name(word)).collect();
        Mnemonic { op, text, span: instr.mnemonic, parts, found }
    }

    fn name(&self) -> &'static str {
        self.op.row().name
    }

    /// Where a modifier is, with its dot.
    fn modifier(&self, i: usize) -> Span {
        let word = word_at(self.span, self.parts[i + 1]);
        Span::new(word.start.saturating_sub(1), word.end)
    }

    /// Whether some form has the opcode with these modifiers.
    fn takes(&self, words: &[Word]) -> bool {
        resolve(self.op, words, |_| true).is_ok()
    }

    /// The modifiers with another in one's place.
    fn replaced(&self, i: usize, by: Word) -> Vec<Word> {
        let mut words = self.found.clone();
        words[i] = by;
        words
    }

    /// The modifiers without one.
    fn without(&self, i: usize) -> Vec<Word> {
        let mut words = self.found.clone();
        words.remove(i);
        words
    }

    /// The modifiers with one more before that of this index.
    fn with(&self, i: usize, word: Word) -> Vec<Word> {
        let mut words = self.found.clone();
        words.insert(i, word);
        words
    }

    /// The indices of the modifiers that are types.
    fn types(&self) -> impl Iterator<Item = usize> {
        self.found.iter().enumerate().filter(|(_, w)| matches!(w, Word::Type(_))).map(|(i, _)| i)
    }

    /// The types that would make the mnemonic valid in place of the word at an index, without those that ptxas overlooks.
    fn types_in_place(&self, i: usize) -> Vec<Type> {
        let known = self.possible();
        let types = Type::ALL.iter().copied().filter(|t| known.contains(&Word::Type(*t)));
        types.filter(|t| self.takes(&self.replaced(i, Word::Type(*t)))).collect()
    }

    /// Every modifier of the instruction, in the table's order, which is the manual's: common forms come first.
    fn possible(&self) -> Vec<Word> {
        let mut seen = std::collections::HashSet::new();
        let words = self.op.row().forms.iter().flat_map(|f| f.slots).flat_map(slot_words);
        words.filter(|w| seen.insert(*w)).collect()
    }
}

/// Where a word of a mnemonic is, without its dot.
fn word_at(mnemonic: Span, (offset, word): (usize, &str)) -> Span {
    let start = mnemonic.start + offset as u32;
    Span::new(start, start + word.len() as u32)
}

impl Walker<'_, '_> {
    /// No row of the table takes this mnemonic.
    #[cold]
    pub(in crate::body) fn no_such_form(&mut self, instr: &Instr) {
        let text = self.tree.str(instr.mnemonic);
        let parts = words(text);
        let Some(first) = parts.first() else { return };
        let name = first.1;
        let at = word_at(instr.mnemonic, *first);
        let Some(op) = Opcode::from_name(name) else { return self.unknown_instruction(name, at) };
        if parts.len() > MAX_WORDS {
            let message = format!("`{name}` has {} modifiers, more than any of its forms", parts.len() - 1);
            return self.report.push(Diagnostic::new(Code::WrongModifier, at, message));
        }
        if !self.report.may_explain() {
            let message = format!("`{name}` has no form with these modifiers");
            return self.report.push(Diagnostic::new(Code::WrongModifier, instr.mnemonic, message));
        }
        let m = Mnemonic::new(op, instr, text, &parts);
        let found = if m.found.len() + 1 < parts.len() {
            Some(unknown_modifier(&m, m.found.len()))
        } else {
            wrong_rounding(&m)
                .or_else(|| lacks_scope(&m))
                .or_else(|| lacks_order(&m))
                .or_else(|| wrong_word(&m, is_order))
                .or_else(|| wrong_word(&m, |m| matches!(m, Mod::Row | Mod::Col)))
                .or_else(|| wrong_shape(&m))
                .or_else(|| superfluous(&m))
                .or_else(|| lacks_modifier(&m))
                .or_else(|| wrong_type(&m))
                .or_else(|| wrong_word(&m, |m| matches!(m, Mod::Shared | Mod::SharedCta)))
                .or_else(|| lacks_type(&m, |wanted| self.likely_type(instr, wanted)))
                .or_else(|| stops_matching(&m))
        };
        if let Some(d) = found {
            self.report.push(d);
        }
    }

    fn unknown_instruction(&mut self, name: &str, at: Span) {
        let mut d = Diagnostic::new(Code::UnknownInstruction, at, format!("unknown instruction `{name}`"));
        if self.report.may_suggest() {
            let near = elsewhere(name).or_else(|| nearest(name, Opcode::ALL.iter().map(|o| o.row().name)));
            d = suggest(d, at, near.unwrap_or_default());
        }
        self.report.push(d);
    }

    /// The type that the first register among the operands suggests.
    fn likely_type(&self, instr: &Instr, wanted: &[Type]) -> Option<Type> {
        let tys =
            self.tree.operands(instr.operands).iter().filter_map(|o| match self.names.at(&self.tree.text, o.span) {
                Some((Binding::Reg(decl), _)) => Some(self.body.regs[decl as usize].ty),
                _ => None,
            });
        let first = tys.into_iter().next()?;
        let mut fits: Vec<Type> =
            wanted.iter().copied().filter(|t| compat::has(compat::registers(*t, false), first)).collect();
        // Signed integers are the most common meaning of untyped registers.
        fits.sort_by_key(|t| (*t != first, !t.is_signed()));
        fits.first().copied()
    }
}

/// A word that no instruction has.
fn unknown_modifier(m: &Mnemonic, i: usize) -> Diagnostic {
    let word = m.parts[i + 1].1;
    let at = m.modifier(i);
    // What would be right in its place, if the rest is right?
    let others = m.parts.iter().skip(1).enumerate().filter(|(j, _)| *j != i);
    let rest: Option<Vec<Word>> = others.map(|(_, (_, w))| Word::from_name(w)).collect();
    let all = m.possible();
    let fits: Vec<Word> = match &rest {
        Some(rest) => {
            let takes = |w: &&Word| {
                let mut words = rest.clone();
                words.insert(i, **w);
                resolve(m.op, &words, |_| true).is_ok_and(|r| r.in_order)
            };
            all.iter().filter(takes).copied().collect()
        }
        None => Vec::new(),
    };
    let types = rest.iter().flatten().filter(|w| matches!(w, Word::Type(_)));
    let beside: String = types.map(|w| format!(".{}", w.name())).collect();
    let choices = if fits.is_empty() { &all } else { &fits };
    // `.v3` is not a typo, and another number of elements is another instruction.
    let vector = word.strip_prefix('v').is_some_and(|n| n.parse::<u32>().is_ok());
    let own = margay_syntax::foreign_type(word).map(|t| t.trim_start_matches('.'));
    let own = own.and_then(|t| choices.iter().map(|w| w.name()).find(|n| *n == t));
    let near = own
        .or_else(|| nearest(word, choices.iter().map(|w| w.name())))
        .or_else(|| nearest(word, all.iter().map(|w| w.name())))
        .filter(|_| !vector);
    let message = format!("`.{word}` is not a modifier of `{}{beside}`", m.name());
    let mut d = Diagnostic::new(Code::UnknownModifier, at, message);
    if let Some(shapes) = shapes_like(word, choices) {
        // Which of them is meant the operands would have to say.
        return d.note(format!("shapes that match the other modifiers: {}", shapes.join(" ")));
    } else if choices.len() <= 24 {
        let names: Vec<String> = choices.iter().map(|w| format!(".{}", w.name())).collect();
        d = d.note(format!("expected one of {}", names.join(" ")));
    }
    suggest(d, at, &near.map(|n| format!(".{n}")).unwrap_or_default())
}

/// The mnemonic would be valid without one of its modifiers: the second of two equal ones, or else the first that is not a state space. If an
/// operation does not exist in a state space, the message names the operation.
fn superfluous(m: &Mnemonic) -> Option<Diagnostic> {
    let unneeded = || (0..m.found.len()).filter(|i| matches!(m.found[*i], Word::Mod(_)) && m.takes(&m.without(*i)));
    let first = |i: usize| m.found[..i].iter().position(|w| *w == m.found[i]);
    if let Some((i, first)) = unneeded().find_map(|i| Some((i, first(i)?))) {
        let (word, at) = (m.found[i].name(), m.modifier(i));
        let d = Diagnostic::new(Code::WrongModifier, at, format!("`.{word}` twice"));
        return Some(d.label(m.modifier(first), "first here").fix(at, "", "remove it"));
    }
    let i = unneeded().find(|i| !is_a_space(&m.found[*i])).or_else(|| unneeded().next())?;
    let (name, word, at) = (m.name(), m.found[i].name(), m.modifier(i));
    // The type that the modifier does not go with, if it goes with others.
    let with = m.types().next().map(|j| (j, m.types_in_place(j))).filter(|(_, goes)| !goes.is_empty());
    let d = match with {
        Some((j, goes)) => {
            let ty = m.found[j].name();
            Diagnostic::new(Code::WrongModifier, at, format!("`{name}.{ty}` does not take `.{word}`"))
                .here(format!("goes with {}", list(&ticks(&goes), "and")))
                .label(m.modifier(j), "not with this type")
        }
        None => {
            let d = Diagnostic::new(Code::WrongModifier, at, format!("`{name}` does not take `.{word}` here"));
            beside_another(m, i, d)
        }
    };
    Some(match m.found[i] {
        Word::Mod(Mod::V2 | Mod::V4) if matches!(m.op, Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Fma) => {
            d.help("arithmetic is scalar; use `.f32x2` (sm_100) for two floats in one register")
        }
        Word::Mod(modifier) if says_nothing(modifier, &m.found) => d.fix(at, "", format!("remove `.{word}`")),
        Word::Mod(Mod::Const) if matches!(m.op, Opcode::St | Opcode::Atom | Opcode::Red) => {
            d.help("kernels cannot write constant memory; declare the variable in `.global`")
        }
        Word::Mod(Mod::Sat) if m.op == Opcode::Sub => {
            d.help("for an unsigned difference that saturates at 0, use `min.u32 t, a, b; sub.u32 d, a, t;`")
        }
        Word::Mod(Mod::Sat) if m.op == Opcode::Add => {
            d.help("for a saturating unsigned sum, use `not.b32 t, a; min.u32 t, t, b; add.u32 d, a, t;`")
        }
        _ => d,
    })
}

/// Names the modifier that the superfluous one does not go with: a state space that could be another one, or a modifier that could
/// be left out as well.
fn beside_another(m: &Mnemonic, i: usize, d: Diagnostic) -> Diagnostic {
    let others = || (0..m.found.len()).filter(|j| *j != i);
    let spaces = |j: usize| -> Vec<Word> {
        let others = m.possible().into_iter().filter(|w| *w != m.found[j] && is_a_space(w));
        others.filter(|w| m.takes(&m.replaced(j, *w))).collect()
    };
    let place = others().find(|j| is_a_space(&m.found[*j])).map(|j| (j, spaces(j)));
    if let Some((j, goes)) = place.filter(|(_, goes)| !goes.is_empty()) {
        return d
            .here(format!("goes with {}", list(&dotted(&goes), "and")))
            .label(m.modifier(j), "not with this space");
    }
    match others().find(|j| matches!(m.found[*j], Word::Mod(_)) && m.takes(&m.without(*j))) {
        Some(j) => d.label(m.modifier(j), "excludes it"),
        None => d,
    }
}

/// The mnemonic would be valid with one more modifier.
fn lacks_modifier(m: &Mnemonic) -> Option<Diagnostic> {
    if m.types().next().is_none() && m.op != Opcode::Cp {
        return None;
    }
    let (gap, fits) = missing_word(m.op, &m.found, &m.possible())?;
    let after = gap.checked_sub(1).map_or(m.name(), |i| m.found[i].name());
    let message = format!("`{}` is missing a modifier", m.text);
    let d = Diagnostic::new(Code::MissingModifier, m.span, message)
        .here(format!("expected {} after `{after}`", list(&dotted(&fits), "or")));
    Some(match meaning(&fits) {
        Some(note) => d.note(note),
        None => d,
    })
}

/// The mnemonic would be valid with another type.
fn wrong_type(m: &Mnemonic) -> Option<Diagnostic> {
    let (i, fits) = m.types().map(|i| (i, m.types_in_place(i))).find(|(_, fits)| !fits.is_empty())?;
    let (name, word, at) = (m.name(), m.found[i].name(), m.modifier(i));
    let others = m.without(i);
    let beside = if others.is_empty() { String::new() } else { format!(" with {}", list(&dotted(&others), "and")) };
    let d = Diagnostic::new(Code::InstructionType, at, format!("`{name}` does not take `.{word}`{beside}"))
        .here(format!("expected {}", list(&ticks(&fits), "or")));
    let Word::Type(t) = m.found[i] else { return Some(d) };
    let d = if let Some(other) = same_bits(m.op, t, &fits) {
        suggest(d, at, &other.to_string())
    } else if let Some([signed, unsigned]) = signs(t, &fits) {
        d.help(format!("bit-size types have no sign: use `{signed}` or `{unsigned}`"))
    } else if m.op == Opcode::Abs && t.is_int() {
        d.help("an unsigned number is its own absolute value")
    } else {
        d
    };
    Some(if m.op == Opcode::Setp && t == Type::Pred {
        d.help("predicates are equal if their `xor.pred` is false")
    } else {
        d
    })
}

/// `cvt.rn.s32.f32`, `cvt.rni.f32.s32`: a rounding to floating-point numbers in a conversion to integers, or vice versa.
fn wrong_rounding(m: &Mnemonic) -> Option<Diagnostic> {
    const ROUNDINGS: [(Mod, Mod); 4] =
        [(Mod::Rn, Mod::Rni), (Mod::Rz, Mod::Rzi), (Mod::Rm, Mod::Rmi), (Mod::Rp, Mod::Rpi)];
    if m.op != Opcode::Cvt {
        return None;
    }
    let other = |word: &Word| {
        ROUNDINGS.iter().find_map(|(float, integer)| match word {
            Word::Mod(m) if m == float => Some((*integer, "an integer")),
            Word::Mod(m) if m == integer => Some((*float, "a floating-point number")),
            _ => None,
        })
    };
    let candidates = m.found.iter().enumerate().filter_map(|(i, word)| Some((i, other(word)?)));
    let (i, (other, kind)) =
        candidates.into_iter().find(|(i, (other, _))| m.takes(&m.replaced(*i, Word::Mod(*other))))?;
    let to = m.types().next().map(|i| format!(".{}", m.found[i].name()));
    let message = format!("a conversion to `{}` rounds to {kind}", to.unwrap_or_default());
    let d = Diagnostic::new(Code::WrongModifier, m.modifier(i), message).here(format!("expected `.{}`", other.name()));
    Some(d.fix(m.modifier(i), format!(".{}", other.name()), format!("write `.{}`", other.name())))
}

/// A memory order without its scope.
fn lacks_scope(m: &Mnemonic) -> Option<Diagnostic> {
    let i = m.found.iter().position(|w| matches!(w, Word::Mod(m) if is_order(*m)))?;
    if m.found.iter().any(|w| matches!(w, Word::Mod(m) if SCOPES.contains(m))) {
        return None;
    }
    let fits: Vec<Word> = SCOPES.into_iter().map(Word::Mod).filter(|scope| m.takes(&m.with(i + 1, *scope))).collect();
    if fits.is_empty() {
        return None;
    }
    let message = format!("`.{}` must be followed by a scope", m.found[i].name());
    let d = Diagnostic::new(Code::MissingModifier, m.modifier(i), message)
        .here(format!("expected {} after it", list(&dotted(&fits), "or")));
    Some(d.note(
        "section 8.5: the scope selects the threads for which the order holds: those of the CTA, the cluster, the GPU or the system",
    ))
}

/// A scope without the memory order that it belongs to.
fn lacks_order(m: &Mnemonic) -> Option<Diagnostic> {
    let i = m.found.iter().position(|w| matches!(w, Word::Mod(m) if SCOPES.contains(m)))?;
    let fits: Vec<Word> = ORDERS.into_iter().map(Word::Mod).filter(|order| m.takes(&m.with(i, *order))).collect();
    if fits.is_empty() {
        return None;
    }
    let message = format!("`.{}` must follow a memory order", m.found[i].name());
    let d = Diagnostic::new(Code::MissingModifier, m.modifier(i), message);
    Some(d.here(format!("expected {} before it", list(&dotted(&fits), "or"))))
}

/// A modifier of some kind that would be right as another of that kind.
fn wrong_word(m: &Mnemonic, kind: fn(Mod) -> bool) -> Option<Diagnostic> {
    let of_kind = |w: &Word| matches!(w, Word::Mod(m) if kind(*m));
    let stem = |w: &Word| w.name().split("::").next();
    let fits = |i: usize| -> Vec<Word> {
        let word = m.found[i];
        let alike = |w: &Word| *w != word && (stem(w) == stem(&word) || of_kind(w));
        m.possible().into_iter().filter(alike).filter(|w| m.takes(&m.replaced(i, *w))).collect()
    };
    let candidates = (0..m.found.len()).filter(|i| of_kind(&m.found[*i])).map(|i| (i, fits(i)));
    let (i, fits) = candidates.into_iter().find(|(_, fits)| !fits.is_empty())?;
    let message = format!("`{}` does not take `.{}` here", m.name(), m.found[i].name());
    let d = Diagnostic::new(Code::WrongModifier, m.modifier(i), message)
        .here(format!("expected {}", list(&dotted(&fits), "or")));
    Some(match &fits[..] {
        [only] => suggest(d, m.modifier(i), &format!(".{}", only.name())),
        _ => d,
    })
}

/// A shape that the instruction has, but not with these types.
fn wrong_shape(m: &Mnemonic) -> Option<Diagnostic> {
    let is_shape = |w: &Word| shapes_like(w.name(), &[*w]).is_some();
    let i = m.found.iter().position(is_shape)?;
    let others = m.possible().into_iter().filter(|w| is_shape(w) && *w != m.found[i]);
    let fits: Vec<Word> = others.filter(|w| m.takes(&m.replaced(i, *w))).collect();
    if fits.is_empty() {
        return None;
    }
    let types: String = m.types().map(|i| format!(".{}", m.found[i].name())).collect();
    let message = format!("`{}` has no shape `.{}` with `{types}`", m.name(), m.found[i].name());
    let d = Diagnostic::new(Code::WrongModifier, m.modifier(i), message);
    Some(d.here(format!("expected {}", list(&dotted(&fits), "or"))))
}

/// The mnemonic ends where a type has to follow, which `likely` chooses among several.
fn lacks_type(m: &Mnemonic, likely: impl FnOnce(&[Type]) -> Option<Type>) -> Option<Diagnostic> {
    let why = resolve(m.op, &m.found, |_| true).err()?;
    let wanted: Vec<Type> =
        why.expected.iter().filter_map(|w| if let Word::Type(t) = w { Some(*t) } else { None }).collect();
    if m.types().next().is_some() || why.at < m.found.len() || wanted.is_empty() {
        return None;
    }
    let d = Diagnostic::new(Code::MissingType, m.span, format!("`{}` has no type", m.text))
        .here(format!("expected {}", list(&ticks(&wanted), "or")));
    Some(match likely(&wanted) {
        Some(t) => suggest(d, m.span.after(), &format!("{t}")),
        None => d,
    })
}

/// Nothing simpler explains it: the first modifier with which no form is left.
fn stops_matching(m: &Mnemonic) -> Option<Diagnostic> {
    let why = resolve(m.op, &m.found, |_| true).err()?;
    let Some(word) = m.found.get(why.at) else {
        let choices = list(&dotted(&why.expected), "or");
        let d = Diagnostic::new(Code::MissingModifier, m.span, format!("`{}` is missing a modifier", m.text));
        return Some(d.here(format!("expected {choices} next")));
    };
    // Of many choices, those of the same kind.
    let is_type = |w: &Word| matches!(w, Word::Type(_));
    let alike = || why.expected.iter().filter(|w| is_type(w) == is_type(word)).copied().collect();
    let choices: Vec<Word> = if why.expected.len() <= MAX_LISTED { why.expected.clone() } else { alike() };
    let code = match word {
        Word::Type(_) => Code::InstructionType,
        Word::Mod(_) => Code::WrongModifier,
    };
    let message = format!("`{}` does not take `.{}` here", m.name(), word.name());
    let d = Diagnostic::new(code, m.modifier(why.at), message);
    Some(match choices.len() {
        _ if why.expected.is_empty() => d.here("nothing more was expected"),
        1..=MAX_LISTED => d.here(format!("expected {}", list(&dotted(&choices), "or"))),
        _ => d,
    })
}

/// Whether a modifier has no effect here: the result is the same without it.
fn says_nothing(m: Mod, found: &[Word]) -> bool {
    let types = || found.iter().filter_map(|w| if let Word::Type(t) = w { Some(*t) } else { None });
    match m {
        // Integers are exact, and only single and half precision have subnormal numbers to flush.
        Mod::Rn | Mod::Rz | Mod::Rm | Mod::Rp => types().count() == 1 && types().all(Type::is_int),
        Mod::Ftz => types().all(|t| t.is_int() || t == Type::F64),
        Mod::Uni | Mod::Aligned => true,
        Mod::Ca | Mod::Cg | Mod::Cs | Mod::Lu | Mod::Wb | Mod::Wt => true,
        Mod::L2B64 | Mod::L2B128 | Mod::L2B256 => true,
        Mod::L1EvictNormal | Mod::L1EvictUnchanged | Mod::L1EvictFirst | Mod::L1EvictLast | Mod::L1NoAllocate => true,
        Mod::L2EvictNormal | Mod::L2EvictFirst | Mod::L2EvictLast => true,
        _ => false,
    }
}

/// What other instruction sets call an instruction of PTX.
fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "return" => "ret",
        "br" | "jmp" | "goto" | "branch" => "bra",
        "load" => "ld",
        "store" => "st",
        "atomic" => "atom",
        "cmp" | "icmp" | "fcmp" => "setp",
        "select" => "selp",
        "mod" => "rem",
        "sra" | "lsr" | "asr" => "shr",
        "lsl" | "sll" => "shl",
        "syncthreads" => "bar",
        "ffma" | "mac" => "fma",
        _ => return None,
    })
}

/// The type of the same width for the same bits, if the instruction computes the same result.
fn same_bits(op: Opcode, found: Type, fits: &[Type]) -> Option<Type> {
    use Opcode::{And, Atom, Bfi, Brev, Clz, Cnot, Lop3, Neg, Not, Or, Popc, Prmt, Red, Selp, Shfl, Shl, Xor};
    let bits = fits.iter().copied().find(|t| t.kind() == TypeKind::Bits && t.bits() == found.bits());
    match op {
        And | Or | Xor | Not | Cnot | Shl | Lop3 | Prmt | Shfl | Atom | Red | Selp | Popc | Clz | Brev | Bfi => {
            bits.filter(|_| found.is_int())
        }
        Neg => fits.iter().copied().find(|t| t.is_signed() && t.is_int() && t.bits() == found.bits() && found.is_int()),
        _ => None,
    }
}

/// The signed and the unsigned type of this width, if the instruction requires one of them.
fn signs(found: Type, fits: &[Type]) -> Option<[Type; 2]> {
    let alike = |t: &Type| t.is_int() && t.bits() == found.bits();
    let one = |signed: bool| fits.iter().copied().filter(alike).find(|t| t.is_signed() == signed);
    (found.kind() == TypeKind::Bits).then_some([one(true)?, one(false)?])
}

/// What the choices mean, where their names do not say it.
fn meaning(fits: &[Word]) -> Option<&'static str> {
    let has = |m: Mod| fits.contains(&Word::Mod(m));
    if has(Mod::Lo) && has(Mod::Wide) {
        Some(
            "`.lo` returns the lower half of the product, `.hi` the upper half, `.wide` the whole product in a register twice as wide",
        )
    } else if has(Mod::Rzi) {
        Some("`.rzi` rounds toward zero, like a cast in C; `.rni` rounds to the nearest integer")
    } else if has(Mod::Rn) && has(Mod::Rz) {
        Some("`.rn` rounds to nearest even, like C")
    } else {
        None
    }
}
