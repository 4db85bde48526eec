//! Forms that the module cannot use, and modifiers in another order than the manual's.

use super::*;

impl Walker<'_, '_> {
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
            Some(Unavailable::NoBanks(until)) => {
                let message = format!("banks of constant memory were removed in PTX ISA {}", until.ptx);
                let help = format!("write `{}`", c.variant);
                self.report.push(Diagnostic::new(Code::Removed, instr.mnemonic, message).help(help));
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
