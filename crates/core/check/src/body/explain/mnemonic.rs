//! Mnemonics without a row, and modifiers that a row does not accept.

use super::*;

impl<'a> Walker<'a, '_> {
    /// No row of the table takes this mnemonic.
    #[cold]
    pub(in crate::body) fn no_such_form(&mut self, instr: &Instr) {
        let text = self.tree.str(instr.mnemonic);
        let parts = words(text);
        let at = |i: usize| {
            let (offset, word) = parts[i];
            let start = instr.mnemonic.start + offset as u32;
            Span::new(start, start + word.len() as u32)
        };
        let dot = |i: usize| Span::new(at(i).start.saturating_sub(1), at(i).end);
        let Some((_, name)) = parts.first() else { return };
        let Some(op) = Opcode::from_name(name) else {
            let mut d = Diagnostic::new(Code::UnknownInstruction, at(0), format!("unknown instruction `{name}`"));
            if self.report.may_suggest() {
                let near = elsewhere(name).or_else(|| nearest(name, Opcode::ALL.iter().map(|o| o.row().name)));
                d = suggest(d, at(0), near.unwrap_or_default());
            }
            return self.report.push(d);
        };
        if parts.len() > MOST_WORDS {
            let message = format!("`{name}` has {} modifiers, more than any of its forms", parts.len() - 1);
            return self.report.push(Diagnostic::new(Code::WrongModifier, at(0), message));
        }
        if !self.report.may_explain() {
            let message = format!("`{name}` has no form with these modifiers");
            return self.report.push(Diagnostic::new(Code::WrongModifier, instr.mnemonic, message));
        }
        let forms = op.row().forms;
        // In the table's order, which is the manual's: common forms come first.
        let possible = || {
            let mut seen = std::collections::HashSet::new();
            let words = forms.iter().flat_map(|f| f.slots).flat_map(slot_words);
            words.filter(|w| seen.insert(*w)).collect::<Vec<Word>>()
        };
        for (i, (_, word)) in parts.iter().enumerate().skip(1) {
            if Word::from_name(word).is_none() {
                let all = possible();
                return self.unknown_modifier(op, &parts, i, &all, dot(i));
            }
        }
        let found: Vec<Word> = parts[1..].iter().filter_map(|(_, w)| Word::from_name(w)).collect();
        let types: Vec<usize> = (0..found.len()).filter(|i| matches!(found[*i], Word::Type(_))).collect();
        if self.wrong_rounding(op, &found, &|i| dot(i + 1))
            || self.lacks_scope(op, &found, &|i| dot(i + 1))
            || self.wrong_word(op, &found, &possible(), |m| matches!(m, Mod::Row | Mod::Col), &|i| dot(i + 1))
            || self.wrong_shape(op, &found, &possible(), &|i| dot(i + 1))
        {
            return;
        }
        // One word too many?
        for i in 0..found.len() {
            let mut fewer = found.clone();
            fewer.remove(i);
            if matches!(found[i], Word::Mod(_)) && resolve(op, &fewer, |_| true).is_ok() {
                return self.superfluous(op, &found, i, &|i| at(i + 1), &|i| dot(i + 1));
            }
        }
        // One word too few?
        if (!types.is_empty() || op == Opcode::Cp)
            && let Some((gap, fits)) = missing_word(op, &found, &possible())
        {
            let after = if gap == 0 { at(0) } else { dot(gap) };
            let choices = list(&dotted(&fits), "or");
            let d = Diagnostic::new(Code::MissingModifier, instr.mnemonic, format!("`{text}` is missing a modifier"))
                .here(format!("expected {choices} after `{}`", self.tree.str(after).trim_start_matches('.')));
            return self.report.push(match meaning(&fits) {
                Some(note) => d.note(note),
                None => d,
            });
        }
        // Another type?
        for i in types.iter().copied() {
            let fits: Vec<Type> = Type::ALL
                .iter()
                .copied()
                .filter(|t| {
                    let mut other = found.clone();
                    other[i] = Word::Type(*t);
                    resolve(op, &other, |_| true).is_ok()
                })
                .collect();
            if !fits.is_empty() {
                let word = found[i].name();
                let with: Vec<Word> = found.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, w)| *w).collect();
                let beside =
                    if with.is_empty() { String::new() } else { format!(" with {}", list(&dotted(&with), "and")) };
                let takes = list(&ticks(&fits), "or");
                let d = Diagnostic::new(
                    Code::InstructionType,
                    dot(i + 1),
                    format!("`{name}` does not take `.{word}`{beside}"),
                )
                .here(format!("expected {takes}"));
                let d = match found[i] {
                    Word::Type(t) => match (same_bits(op, t, &fits), signs(t, &fits)) {
                        (Some(other), _) => suggest(d, dot(i + 1), &other.to_string()),
                        (None, Some([signed, unsigned])) => {
                            d.help(format!("bit-size types have no sign: use `{signed}` or `{unsigned}`"))
                        }
                        (None, None) if op == Opcode::Abs && t.is_int() => {
                            d.help("an unsigned number is its own absolute value")
                        }
                        (None, None) => d,
                    },
                    Word::Mod(_) => d,
                };
                return self.report.push(match op {
                    Opcode::Setp if word == "pred" => d.help("predicates are equal if their `xor.pred` is false"),
                    _ => d,
                });
            }
        }
        if self.wrong_word(op, &found, &possible(), |m| matches!(m, Mod::Shared | Mod::SharedCta), &|i| dot(i + 1)) {
            return;
        }
        let Err(why) = resolve(op, &found, |_| true) else { return };
        let wanted_types: Vec<Type> =
            why.expected.iter().filter_map(|w| if let Word::Type(t) = w { Some(*t) } else { None }).collect();
        if types.is_empty() && why.at >= found.len() && !wanted_types.is_empty() {
            let d = Diagnostic::new(Code::MissingType, instr.mnemonic, format!("`{text}` has no type"))
                .here(format!("expected {}", list(&ticks(&wanted_types), "or")));
            let likely = self.likely_type(instr, &wanted_types);
            let d = match likely {
                Some(t) => suggest(d, instr.mnemonic.after(), &format!("{t}")),
                None => d,
            };
            return self.report.push(d);
        }
        let choices = list(&dotted(&why.expected), "or");
        if why.at >= found.len() {
            self.report.push(
                Diagnostic::new(Code::MissingModifier, instr.mnemonic, format!("`{text}` is missing a modifier"))
                    .here(format!("expected {choices} next")),
            );
        } else {
            let word = found[why.at].name();
            let (code, message) = match found[why.at] {
                Word::Type(_) => (Code::InstructionType, format!("`{name}` does not take `.{word}` here")),
                Word::Mod(_) => (Code::WrongModifier, format!("`{name}` does not take `.{word}` here")),
            };
            let d = Diagnostic::new(code, dot(why.at + 1), message);
            let d = if why.expected.is_empty() {
                d.here("nothing more was expected")
            } else {
                d.here(format!("expected {choices}"))
            };
            self.report.push(d);
        }
    }

    /// A word that no instruction has.
    pub(super) fn unknown_modifier(&mut self, op: Opcode, parts: &[(usize, &str)], i: usize, all: &[Word], at: Span) {
        let (name, word) = (op.row().name, parts[i].1);
        // What would be right in its place, if the rest is right?
        let rest: Option<Vec<Word>> =
            parts.iter().enumerate().skip(1).filter(|(j, _)| *j != i).map(|(_, (_, w))| Word::from_name(w)).collect();
        let fits: Vec<Word> = match &rest {
            Some(rest) => {
                let takes = |w: &&Word| {
                    let mut words = rest.clone();
                    words.insert(i - 1, **w);
                    resolve(op, &words, |_| true).is_ok_and(|r| r.in_order)
                };
                all.iter().filter(takes).copied().collect()
            }
            None => Vec::new(),
        };
        let types = rest.iter().flatten().filter(|w| matches!(w, Word::Type(_)));
        let beside: String = types.map(|w| format!(".{}", w.name())).collect();
        let choices = if fits.is_empty() { all } else { &fits };
        // `.v3` is not a typo, and another number of elements is another instruction.
        let vector = word.strip_prefix('v').is_some_and(|n| n.parse::<u32>().is_ok());
        let own = margay_syntax::foreign_type(word).map(|t| t.trim_start_matches('.'));
        let own = own.and_then(|t| choices.iter().map(|w| w.name()).find(|n| *n == t));
        let near = own
            .or_else(|| nearest(word, choices.iter().map(|w| w.name())))
            .or_else(|| nearest(word, all.iter().map(|w| w.name())))
            .filter(|_| !vector);
        let mut d =
            Diagnostic::new(Code::UnknownModifier, at, format!("`.{word}` is not a modifier of `{name}{beside}`"));
        if let Some(shapes) = shapes_like(word, choices) {
            // Which of them is meant the operands would have to say.
            return self.report.push(d.note(format!("shapes that match the other modifiers: {}", shapes.join(" "))));
        } else if choices.len() <= 24 {
            let names: Vec<String> = choices.iter().map(|w| format!(".{}", w.name())).collect();
            d = d.note(format!("expected one of {}", names.join(" ")));
        }
        self.report.push(suggest(d, at, &near.map(|n| format!(".{n}")).unwrap_or_default()));
    }

    /// The mnemonic would be right without one of its modifiers.
    pub(super) fn superfluous(
        &mut self,
        op: Opcode,
        found: &[Word],
        i: usize,
        _at: &dyn Fn(usize) -> Span,
        dot: &dyn Fn(usize) -> Span,
    ) {
        let name = op.row().name;
        let word = found[i].name();
        if found[..i].contains(&found[i]) {
            let first = found.iter().position(|w| *w == found[i]).unwrap_or(0);
            return self.report.push(
                Diagnostic::new(Code::WrongModifier, dot(i), format!("`.{word}` twice"))
                    .label(dot(first), "first here")
                    .fix(dot(i), "", "remove it"),
            );
        }
        let types: Vec<usize> = (0..found.len()).filter(|j| matches!(found[*j], Word::Type(_))).collect();
        // With which types does the modifier go?
        let mut goes: Vec<Type> = Vec::new();
        if let Some(j) = types.first().copied() {
            goes.extend(Type::ALL.iter().copied().filter(|t| {
                let mut other = found.to_vec();
                other[j] = Word::Type(*t);
                resolve(op, &other, |_| true).is_ok()
            }));
        }
        let mut d = match types.first() {
            Some(j) if !goes.is_empty() => {
                let ty = found[*j].name();
                Diagnostic::new(Code::WrongModifier, dot(i), format!("`{name}.{ty}` does not take `.{word}`"))
                    .here(format!("goes with {}", list(&ticks(&goes), "and")))
                    .label(dot(*j), "not with this type")
            }
            _ => Diagnostic::new(Code::WrongModifier, dot(i), format!("`{name}` does not take `.{word}` here")),
        };
        d = match found[i] {
            Word::Mod(Mod::V2 | Mod::V4) if matches!(op, Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Fma) => {
                d.help("arithmetic is scalar; use `.f32x2` (sm_100) for two floats in one register")
            }
            Word::Mod(m) if says_nothing(m, found) => d.fix(dot(i), "", format!("remove `.{word}`")),
            Word::Mod(Mod::Const) if matches!(op, Opcode::St | Opcode::Atom | Opcode::Red) => {
                d.help("kernels cannot write constant memory; declare the variable in `.global`")
            }
            Word::Mod(Mod::Sat) if op == Opcode::Sub => {
                d.help("for an unsigned difference that saturates at 0, use `min.u32 t, a, b; sub.u32 d, a, t;`")
            }
            Word::Mod(Mod::Sat) if op == Opcode::Add => {
                d.help("for a saturating unsigned sum, use `not.b32 t, a; min.u32 t, t, b; add.u32 d, a, t;`")
            }
            _ => d,
        };
        self.report.push(d);
    }

    /// `cvt.rn.s32.f32`, `cvt.rni.f32.s32`: the rounding is one to the other kind of number. Whether it was that.
    fn wrong_rounding(&mut self, op: Opcode, found: &[Word], dot: &dyn Fn(usize) -> Span) -> bool {
        const ROUNDINGS: [(Mod, Mod); 4] =
            [(Mod::Rn, Mod::Rni), (Mod::Rz, Mod::Rzi), (Mod::Rm, Mod::Rmi), (Mod::Rp, Mod::Rpi)];
        if op != Opcode::Cvt {
            return false;
        }
        for (i, word) in found.iter().enumerate() {
            for (float, integer) in ROUNDINGS {
                let other = match word {
                    Word::Mod(m) if *m == float => integer,
                    Word::Mod(m) if *m == integer => float,
                    _ => continue,
                };
                let mut words = found.to_vec();
                words[i] = Word::Mod(other);
                if resolve(op, &words, |_| true).is_err() {
                    continue;
                }
                let to = found.iter().find_map(|w| if let Word::Type(t) = w { Some(t.to_string()) } else { None });
                let kind = if other == integer { "an integer" } else { "a floating-point number" };
                let message = format!("a conversion to `{}` rounds to {kind}", to.unwrap_or_default());
                let d = Diagnostic::new(Code::WrongModifier, dot(i), message)
                    .here(format!("expected `.{}`", other.name()))
                    .fix(dot(i), format!(".{}", other.name()), format!("write `.{}`", other.name()));
                self.report.push(d);
                return true;
            }
        }
        false
    }

    /// A memory order without its scope. Whether this was the error.
    fn lacks_scope(&mut self, op: Opcode, found: &[Word], dot: &dyn Fn(usize) -> Span) -> bool {
        const SCOPES: [Mod; 4] = [Mod::Cta, Mod::Cluster, Mod::Gpu, Mod::Sys];
        let order = |w: &Word| matches!(w, Word::Mod(Mod::Acquire | Mod::Release | Mod::Relaxed | Mod::AcqRel));
        let Some(i) = found.iter().position(order) else { return false };
        if found.iter().any(|w| matches!(w, Word::Mod(m) if SCOPES.contains(m))) {
            return false;
        }
        let with = |scope: Mod| {
            let mut words = found.to_vec();
            words.insert(i + 1, Word::Mod(scope));
            resolve(op, &words, |_| true).is_ok()
        };
        let fits: Vec<Word> = SCOPES.into_iter().filter(|m| with(*m)).map(Word::Mod).collect();
        if fits.is_empty() {
            return false;
        }
        let word = found[i].name();
        let d = Diagnostic::new(Code::MissingModifier, dot(i), format!("`.{word}` must be followed by a scope"))
            .here(format!("expected {} after it", list(&dotted(&fits), "or")));
        self.report.push(d.note(
            "section 8.5: the scope selects the threads for which the order holds: those of the CTA, the cluster, the GPU or the system",
        ));
        true
    }

    /// One word of some kind that would be right as another of that kind. Whether it was that.
    fn wrong_word(
        &mut self,
        op: Opcode,
        found: &[Word],
        possible: &[Word],
        kind: fn(Mod) -> bool,
        dot: &dyn Fn(usize) -> Span,
    ) -> bool {
        for (i, word) in found.iter().enumerate().filter(|(_, w)| matches!(w, Word::Mod(m) if kind(*m))) {
            let stem = |w: &Word| w.name().split("::").next() == word.name().split("::").next();
            let alike = |w: &&Word| **w != *word && (stem(w) || matches!(w, Word::Mod(m) if kind(*m)));
            let fits: Vec<Word> = possible
                .iter()
                .filter(alike)
                .copied()
                .filter(|w| {
                    let mut words = found.to_vec();
                    words[i] = *w;
                    resolve(op, &words, |_| true).is_ok()
                })
                .collect();
            let Some(first) = fits.first() else { continue };
            let name = op.row().name;
            let d =
                Diagnostic::new(Code::WrongModifier, dot(i), format!("`{name}` does not take `.{}` here", word.name()))
                    .here(format!("expected {}", list(&dotted(&fits), "or")));
            let one = fits.len() == 1;
            self.report.push(if one { suggest(d, dot(i), &format!(".{}", first.name())) } else { d });
            return true;
        }
        false
    }

    /// A shape that the instruction has, but not with these types. Whether it was that.
    fn wrong_shape(&mut self, op: Opcode, found: &[Word], possible: &[Word], dot: &dyn Fn(usize) -> Span) -> bool {
        let Some(i) = found.iter().position(|w| shapes_like(w.name(), &[*w]).is_some()) else { return false };
        let fits: Vec<Word> = possible
            .iter()
            .copied()
            .filter(|w| shapes_like(w.name(), &[*w]).is_some() && *w != found[i])
            .filter(|w| {
                let mut words = found.to_vec();
                words[i] = *w;
                resolve(op, &words, |_| true).is_ok()
            })
            .collect();
        if fits.is_empty() {
            return false;
        }
        let types: String =
            found.iter().filter(|w| matches!(w, Word::Type(_))).map(|w| format!(".{}", w.name())).collect();
        let message = format!("`{}` has no shape `.{}` with `{types}`", op.row().name, found[i].name());
        let d = Diagnostic::new(Code::WrongModifier, dot(i), message)
            .here(format!("expected {}", list(&dotted(&fits), "or")));
        self.report.push(d);
        true
    }

    /// The type that the first register among the operands suggests.
    pub(super) fn likely_type(&self, instr: &Instr, wanted: &[Type]) -> Option<Type> {
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

    /// The form exists, but not here, or its modifiers are in a different order.
    #[cold]
    pub(in crate::body) fn about_mnemonic(&mut self, c: &Candidate, instr: &Instr) {
        let text = self.tree.str(instr.mnemonic);
        match &c.unavailable {
            Some(Unavailable::Lacks(what, lack)) => {
                let mut d = lack.diagnose(self.module, what, instr.mnemonic);
                if let Some(other) = alternative(c) {
                    d = d.help(other);
                }
                self.report.push(d);
            }
            Some(Unavailable::Removed(until)) => {
                let place = if until.sm > 0 { format!("for sm_{} and later ", until.sm) } else { String::new() };
                let message = format!("`{}` was removed {place}in PTX ISA {}", c.variant, until.ptx);
                let mut d = Diagnostic::new(Code::NoLongerSupported, instr.mnemonic, message);
                if let Some(v) = self.module.version_at {
                    d = d.label(v, format!("the module has {}", self.module.version));
                }
                if let (Some(t), true) = (self.module.target_at, until.sm > 0) {
                    d = d.label(t, format!("and `{}`", self.module.target));
                }
                let new = successors(c);
                if let [(word, first), rest @ ..] = &new[..] {
                    let mask = if *word == Mod::Sync { " with a mask of the participating lanes" } else { "" };
                    d = d.help(format!("write `{first}`{mask}"));
                    if !rest.is_empty() && *word == Mod::Approx {
                        d.suggestions.clear();
                        let others: Vec<String> = rest.iter().map(|(_, v)| format!("`{v}`")).collect();
                        d = d.help(format!(
                            "write `{first}`, which means the same, or {} for more precision",
                            list(&others, "or")
                        ));
                    }
                }
                self.report.push(d);
            }
            None => {}
        }
        if c.parted {
            let name = c.variant.op.row().name;
            let glued = c.variant.words.iter().take(c.variant.glued());
            let opcode = glued.fold(name.to_owned(), |text, word| text + "." + word.name());
            let whole = c.variant.to_string();
            return self.report.push(
                Diagnostic::new(Code::UnknownInstruction, instr.mnemonic, format!("`{opcode}` must be one word"))
                    .here("it contains a space")
                    .fix(instr.mnemonic, whole.clone(), format!("write `{whole}`")),
            );
        }
        if !c.in_order {
            let canonical = c.variant.to_string();
            self.report.push(
                Diagnostic::new(Code::ModifierOrder, instr.mnemonic, format!("the manual's order is `{canonical}`"))
                    .here(format!("`{text}` is equivalent"))
                    .fix(instr.mnemonic, canonical, "reorder the modifiers"),
            );
        }
    }
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

/// The forms that took the place of a removed one: the same with a modifier that has to be said since.
fn successors(c: &Candidate) -> Vec<(Mod, Variant)> {
    let words = |word: Mod| std::iter::once(Word::Mod(word)).chain(c.variant.words.iter().copied()).collect::<Vec<_>>();
    [Mod::Approx, Mod::Full, Mod::Rn, Mod::Sync, Mod::Aligned]
        .into_iter()
        .filter_map(|word| {
            let found = resolve(c.variant.op, &words(word), |v| v.row().until.is_none()).ok()?;
            found.variant.row().until.is_none().then_some((word, found.variant))
        })
        .collect()
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
