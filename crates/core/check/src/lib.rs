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
use std::sync::Arc;

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

impl Checked {
    /// Resolves the body of a function that has one. The module passed, so this finds no errors.
    pub fn body(&self, func: FuncId) -> Option<Body> {
        body::resolve(&self.tree, &self.module, func, &self.memo)
    }
}
