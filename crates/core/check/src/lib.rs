//! Turns a tree into a [`Checked`] module: resolves names to ids and mnemonics to table rows, and checks types, availability and rules.
//!
//! ```text
//! Tree → module.rs (symbols, signatures, version, target) → body.rs (one function: names, variants, operands)
//!      → operand rules from the table → rules/*.rs (one file per cross-instruction rule) → diagnostics
//! ```
//!
//! A module may have megabytes of code, so bodies are not kept: [`check()`] resolves, checks and drops one [`Body`] at a time,
//! and lowering requests a function again with [`Checked::body`]. Both use the same code.
#![forbid(unsafe_code)]

mod body;
mod compat;
mod consts;
mod module;
mod options;
mod report;
mod rules;

pub use body::{
    Base, Body, Guard, Inst, LabelId, Local, Operand, RegDecl, RegId, SymRef, TableId, TargetTable, VariantId,
};
pub use module::{
    Abi, Alias, Extent, Formal, FormalSpace, FuncId, FuncKind, Function, Global, GlobalId, Init, Linkage, Module,
    PtrAttr, Symbol,
};
pub use options::{Options, Verdict};

use margay_syntax::{Diagnostic, Parsed, Tree};
use std::{collections::HashMap, sync::Arc};

/// A module that passed the check: the witness that `ir` requires.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The tree that all ids and spans refer to.
    pub tree: Arc<Tree>,
    /// Symbols, signatures, version, target.
    pub module: Arc<Module>,
    /// The meaning of the module's mnemonics.
    memo: Arc<body::Memo>,
}

/// The hash map for hot paths. Keys are short strings of the module, and the standard hasher costs more than the lookup.
type FxHashMap<K, V> = std::collections::HashMap<K, V, rustc_hash::FxBuildHasher>;

/// Checks a parsed module. `None` if there are errors; warnings do not matter.
/// The diagnostics include those of the parser, in order of position.
pub fn check(parsed: Parsed, options: &Options) -> (Option<Checked>, Vec<Diagnostic>) {
    module::check(parsed, options)
}

/// The findings of a text, with what is needed to show them.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The tree with the text; that of [`examine()`] may lack the bodies.
    pub tree: Arc<Tree>,
    /// `.file` directives: index to path.
    pub files: HashMap<u32, Box<str>>,
    /// As [`check()`] has them.
    pub diagnostics: Vec<Diagnostic>,
}

/// The findings of a text. Those of [`check()`], in a fraction of its memory: bodies are also parsed one at a time.
/// A text with errors is checked a second time as a whole, so that every message has all of it to look at.
pub fn examine(text: Arc<String>, options: &Options) -> Examined {
    module::examine(&text, options).unwrap_or_else(|| check_text(text, options).1)
}

/// Parses and checks a text as a whole.
pub fn check_text(text: Arc<String>, options: &Options) -> (Option<Checked>, Examined) {
    let parsed = margay_syntax::parse_shared(text);
    let tree = parsed.tree.clone();
    let (checked, diagnostics) = check(parsed, options);
    let files = checked.as_ref().map(|c| c.module.files.clone()).unwrap_or_default();
    (checked, Examined { tree, files, diagnostics })
}

impl Checked {
    /// Resolves the body of a function that has one. The module passed, so this finds no errors.
    pub fn body(&self, func: FuncId) -> Option<Body> {
        body::resolve(&self.tree, &self.module, func, &self.memo)
    }
}
