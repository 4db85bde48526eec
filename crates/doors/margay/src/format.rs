//! Modules in canonical form: layout, and modifiers in the manual's order.

use margay_isa::{Opcode, Word, resolve};
use margay_syntax::FormatOptions;
use std::{cell::RefCell, collections::HashMap};

/// Writes modules in canonical form; keeps resolved mnemonics from one text to the next.
#[derive(Default)]
pub struct Formatter {
    known: RefCell<HashMap<String, Option<String>>>,
}

impl Formatter {
    /// The canonical form of a text. Fails if the text is not PTX.
    pub fn format(&self, text: &str) -> Result<String, String> {
        let mnemonic = |written: &str| {
            let entry = self.known.borrow().get(written).cloned();
            entry.unwrap_or_else(|| {
                let canonical = canonical(written);
                self.known.borrow_mut().insert(written.into(), canonical.clone());
                canonical
            })
        };
        let options = FormatOptions { mnemonic: Some(&mnemonic), ..FormatOptions::default() };
        margay_syntax::format(&margay_syntax::parse(text), &options).map_err(|why| why.to_string())
    }
}

/// Opcode and modifiers in the manual's order, if they are in a different one.
fn canonical(written: &str) -> Option<String> {
    let (opcode, modifiers) = written.split_once('.')?;
    let words: Vec<Word> = modifiers.split('.').map(Word::from_name).collect::<Option<_>>()?;
    let found = resolve(Opcode::from_name(opcode)?, &words, |_| true).ok()?;
    (!found.in_order).then(|| found.variant.to_string())
}
