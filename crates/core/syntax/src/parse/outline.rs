//! A module whose bodies are parsed one at a time.

use super::{Buffers, Parser};
use crate::lex::Lexer;
use crate::tree::{Directive, List};
use crate::{Span, Tree};
use std::sync::Arc;

/// A module without its bodies; [`Outline::body`] parses one of them at a time. The tree of a large module is several times as large as
/// its text, and building it takes most of its time for fetching new memory; here, every body reuses the memory of the one before.
///
/// For texts without faults: any fault ends in `None` or `false`, and [`super::parse`] then finds the details.
#[derive(Debug)]
pub struct Outline {
    tree: Tree,
    /// Lengths of the pools without the body.
    mark: Mark,
    buffers: Buffers,
    /// The function whose body the tree has.
    open: Option<u32>,
}

/// How much of each pool belongs to the module.
#[derive(Clone, Copy, Default, Debug)]
struct Mark {
    items: usize,
    stmts: usize,
    instrs: usize,
    operands: usize,
    exprs: usize,
    vars: usize,
    declarators: usize,
    funcs: usize,
    directives: usize,
}

impl Outline {
    /// Parses all but the bodies.
    pub fn new(text: Arc<String>) -> Option<Outline> {
        if u32::try_from(text.len()).is_err() || memchr::memchr(0, text.as_bytes()).is_some() {
            return None;
        }
        let mut parser = Parser::with(&text, Lexer::new(&text), Tree::default(), Buffers::default());
        parser.passing = Passing::Undecided;
        parser.module();
        if parser.lex.stopped || !parser.diagnostics.is_empty() || !parser.lex.diagnostics.is_empty() {
            return None;
        }
        let Parser { mut tree, buffers, .. } = parser;
        tree.text = text;
        let mark = Mark::of(&tree);
        Some(Outline { tree, mark, buffers, open: None })
    }

    /// The module, with the body that was asked for last. [`Tree::comments`] is empty.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The module without any body.
    pub fn into_tree(mut self) -> Tree {
        self.close();
        self.tree
    }

    /// The directives of the body that was asked for last.
    pub fn directives(&self) -> &[Directive] {
        &self.tree.directives[self.mark.directives..]
    }

    /// Parses the body of a function that has one, in place of the previous body. False if it has a fault, or a declaration for the whole
    /// module.
    pub fn body(&mut self, func: u32) -> bool {
        self.close();
        let (open, close) = self.tree.funcs[func as usize].braces;
        let text = self.tree.text.clone();
        let lexer = Lexer::starting_at(&text, open.end as usize);
        let tree = std::mem::take(&mut self.tree);
        let mut parser = Parser::with(&text, lexer, tree, std::mem::take(&mut self.buffers));
        let (list, end) = parser.body(open);
        let whole = end == close && parser.diagnostics.is_empty() && parser.lex.diagnostics.is_empty();
        (self.tree, self.buffers) = (parser.tree, parser.buffers);
        self.tree.funcs[func as usize].body = Some(list);
        self.open = Some(func);
        whole && self.tree.items.len() == self.mark.items
    }

    /// Forgets the body that the tree has.
    fn close(&mut self) {
        let Some(func) = self.open.take() else { return };
        let (tree, mark) = (&mut self.tree, self.mark);
        tree.items.truncate(mark.items);
        tree.stmts.truncate(mark.stmts);
        tree.instrs.truncate(mark.instrs);
        tree.operands.truncate(mark.operands);
        tree.exprs.truncate(mark.exprs);
        tree.vars.truncate(mark.vars);
        tree.declarators.truncate(mark.declarators);
        tree.funcs.truncate(mark.funcs);
        tree.directives.truncate(mark.directives);
        tree.funcs[func as usize].body = Some(List::empty());
    }
}

impl Mark {
    fn of(tree: &Tree) -> Mark {
        Mark {
            items: tree.items.len(),
            stmts: tree.stmts.len(),
            instrs: tree.instrs.len(),
            operands: tree.operands.len(),
            exprs: tree.exprs.len(),
            vars: tree.vars.len(),
            declarators: tree.declarators.len(),
            funcs: tree.funcs.len(),
            directives: tree.directives.len(),
        }
    }
}

/// How bodies are passed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passing {
    /// They are parsed.
    Never,
    /// As the first one shows.
    Undecided,
    /// By counting braces.
    Counting,
    /// By looking for a brace at the start of a line, where compilers end their bodies: much faster, and a guess.
    Guessing,
}

impl Parser<'_> {
    /// Goes past a body, the current token its opening brace; the braces. [`Outline::body`] finds out whether that was right.
    pub(super) fn pass_body(&mut self) -> (Span, Span) {
        let (text, open) = (self.text.as_bytes(), self.t.span);
        let start = open.end as usize;
        let guess = (self.passing == Passing::Guessing).then(|| likely_end(text, start)).flatten();
        let Some(close) = guess.or_else(|| closing_brace(text, start)) else {
            // The file ends: nothing more is read, which says enough.
            self.lex.stop();
            self.bump();
            return (open, open);
        };
        // A search that has reached the end of the text is not repeated.
        self.passing = match self.passing {
            Passing::Undecided if text[close - 1] == b'\n' => Passing::Guessing,
            Passing::Guessing if guess.is_some() => Passing::Guessing,
            _ => Passing::Counting,
        };
        // What the lexer has found in the header counts.
        let diagnostics = std::mem::take(&mut self.lex.diagnostics);
        self.lex = Lexer::starting_at(self.text, close);
        self.lex.diagnostics = diagnostics;
        self.bump();
        (open, self.bump().span)
    }
}

/// Offset of the first brace at the start of a line, from `at` on, behind which no body continues.
fn likely_end(text: &[u8], at: usize) -> Option<usize> {
    let goes_on = |mut rest: &[u8]| {
        rest = rest.trim_ascii_start();
        while rest.starts_with(b"//") {
            let line = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            rest = rest[line..].trim_ascii_start();
        }
        let inside: [&[u8]; 5] = [b".reg", b".loc", b".param", b".pragma", b".branchtargets"];
        !(rest.is_empty() || rest.starts_with(b".") || rest.starts_with(b"@@"))
            || inside.iter().any(|w| rest.starts_with(w))
    };
    let ends = memchr::memmem::find_iter(&text[at..], b"\n}").map(|n| at + n + 1);
    ends.into_iter().find(|end| !goes_on(&text[end + 1..]))
}

/// Offset of the brace that closes what is open at `at`, if braces in comments and strings do not count.
fn closing_brace(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0;
    loop {
        at += text[at..].iter().position(|b| matches!(b, b'{' | b'}' | b'/' | b'"'))?;
        match text[at] {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            b'"' => at += 1 + memchr::memchr(b'"', text.get(at + 1..)?)?,
            _ => match text.get(at + 1)? {
                b'/' => at += memchr::memchr(b'\n', &text[at..])?,
                // Its second character may not end it.
                b'*' => at += 3 + memchr::memmem::find(text.get(at + 2..)?, b"*/")?,
                _ => {}
            },
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    fn outline(text: &str) -> Option<Outline> {
        Outline::new(Arc::new(format!("{HEAD}{text}")))
    }

    /// Every body is as in the whole tree: the same statements at the same places.
    #[test]
    fn bodies_are_those_of_the_whole_tree() {
        let text = ".global .u32 g = 3;\n\
            .func (.reg .u32 %o) f (.param .u32 a) { .reg .u32 %r<3>; { ld.param.u32 %r1, [a]; } mov.u32 %o, %r1; ret; }\n\
            .func later;\n\
            .entry a () {\n ret;\n}\n.entry b () {\n{\n ret;\n}\nret;\n}\n.entry c() { ret; }\n\
            .entry k () { // }\n .pragma \"}{\"; /* } */ .reg .v2 .u32 %v; mov.v2.u32 %v, {1, 2}; /*}*/ L: bra L; }\n";
        let mut apart = outline(text).unwrap();
        let whole = super::super::parse(&format!("{HEAD}{text}")).tree;
        assert_eq!(apart.tree().items.len(), whole.items.len());
        for (index, func) in whole.funcs.iter().enumerate() {
            let Some(list) = func.body else { continue };
            assert!(apart.body(index as u32));
            let tree = apart.tree();
            let shown = |t: &Tree, list| {
                let spans = t.stmts(list).iter().map(|s| match s {
                    crate::tree::Stmt::Instr(i) => t.instrs[*i as usize].span,
                    crate::tree::Stmt::Var(v) => t.vars[*v as usize].span,
                    crate::tree::Stmt::Directive(d) => t.directives[*d as usize].span,
                    crate::tree::Stmt::Prototype(f) => t.funcs[*f as usize].span,
                    crate::tree::Stmt::Label(s) | crate::tree::Stmt::Open(s) | crate::tree::Stmt::Close(s) => *s,
                });
                spans.collect::<Vec<_>>()
            };
            assert_eq!(shown(tree, tree.funcs[index].body.unwrap()), shown(&whole, list));
            assert_eq!(tree.funcs[index].braces, func.braces);
            assert_eq!(tree.funcs[index].span, func.span);
        }
        assert!(apart.into_tree().instrs.is_empty());
    }

    /// A wrong guess about where a body ends is noticed: the declaration here belongs to a body.
    #[test]
    fn wrong_guesses_are_left_to_the_parser() {
        let apart = outline(".entry a () {\n ret;\n}\n.entry b () { {\n ret;\n}\n.shared .u32 s;\n ret; }\n");
        assert!(apart.is_none_or(|mut apart| !apart.body(1)));
    }

    /// Every body ends where it cannot be distinguished from a block: no search goes to the end of the text for each of them.
    #[test]
    fn vain_guesses_take_linear_time() {
        let text = ".entry k$ () {\n ret;\n}\n.pragma \"nounroll\";\n";
        let many: String = (0..200_000).map(|n| text.replace('$', &n.to_string())).collect();
        let mut apart = outline(&many).unwrap();
        assert_eq!(apart.tree().funcs.len(), 200_000);
        assert!(apart.body(199_999));
    }

    #[test]
    fn faults_are_left_to_the_parser() {
        for faulty in [
            ".entry k () { ret;",
            ".entry k () { /* }",
            ".entry k () {} }",
            ".entry k ( {}",
            ".entry k () {\0}",
            ".entry 9k () {}",
        ] {
            assert!(outline(faulty).is_none(), "{faulty}");
        }
        for faulty in ["ret", "ret; } .reg .u32 %r; {", "add..u32 %r1,; ", ".func f; ret;", "ret; /"] {
            let apart = outline(&format!(".entry k () {{ {faulty} }}"));
            assert!(!apart.is_some_and(|mut apart| apart.body(0)), "{faulty}");
        }
    }
}
