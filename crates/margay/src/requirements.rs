//! The lowest `.version` and `.target` that a module needs, and why: which driver and which GPU will take it.

use margay_check::Checked;
use margay_isa::{Target, Version, Word};
use margay_syntax::{LineIndex, Span};

/// What a module needs, with the first place that needs it.
#[derive(Clone, Debug)]
pub struct Requirements {
    /// The version, and what needs it.
    pub version: (Version, Option<Reason>),
    /// The lowest `sm_` number, and what needs it.
    pub sm: (u16, Option<Reason>),
    /// Architecture- or family-specific targets, one of which is needed, and what needs them.
    pub only: Option<(Vec<Target>, Reason)>,
}

/// Something that needs a version or a target.
#[derive(Clone, Debug)]
pub struct Reason {
    /// The instruction, as in the manual.
    pub what: String,
    /// Where it stands first.
    pub span: Span,
}

/// Walks all bodies of a checked module.
pub fn of(checked: &Checked) -> Requirements {
    let mut needs = Requirements { version: (Version::FIRST, None), sm: (0, None), only: None };
    for index in 0..checked.module.funcs.len() {
        let Some(body) = checked.body(margay_check::FuncId(index as u32)) else { continue };
        for inst in &body.insts {
            let variant = body.variant(inst);
            let row = variant.row();
            let reason =
                || Some(Reason { what: variant.to_string(), span: checked.tree.instrs[inst.node as usize].mnemonic });
            let words = row.needs.iter().filter(|n| has(variant, n.word)).map(|n| &n.since);
            for since in std::iter::once(&row.since).chain(words) {
                if since.ptx > needs.version.0 {
                    needs.version = (since.ptx, reason());
                }
                if since.sm > needs.sm.0 {
                    needs.sm = (since.sm, reason());
                }
                if !since.only.is_empty() && needs.only.is_none() {
                    needs.only = reason().map(|r| (since.only.to_vec(), r));
                }
            }
        }
    }
    needs
}

fn has(variant: &margay_isa::Variant, word: Word) -> bool {
    variant.words.contains(&word)
}

impl Requirements {
    /// For people, a line each.
    pub fn render(&self, name: &str, text: &str) -> String {
        let lines = LineIndex::new(text);
        let why = |reason: &Option<Reason>| match reason {
            Some(r) => format!("`{}` in line {}", r.what, lines.line(r.span.start)),
            None => "nothing in it asks for more".into(),
        };
        let mut out = format!("{name}: needs .version {} or later: {}\n", self.version.0, why(&self.version.1));
        out += &format!("{name}: needs .target sm_{} or higher: {}\n", self.sm.0.max(10), why(&self.sm.1));
        if let Some((targets, reason)) = &self.only {
            let list: Vec<String> = targets.iter().map(Target::to_string).collect();
            out += &format!("{name}: needs one of {}: {}\n", list.join(", "), why(&Some(reason.clone())));
        }
        out
    }
}
