//! Text to [`Tree`].
//!
//! A hand-written parser with one token of look-ahead for the grammar that ptxas 13.5 accepts (found by experiment; the manual gives
//! no grammar). An error is reported once and skipped up to the end of its statement; a missing semicolon or comma is
//! assumed to be present, so that nothing after it is lost. Nothing here recurses over the nesting of the text: blocks are flat in the
//! tree, expressions use an explicit stack, initializers stop at [`NESTED_BRACES`].
//!
//! What the grammar leaves to `check`: `.ptr` on parameters of a `.func`, `.reg` parameters of a kernel, unknown modifiers and
//! suffixes (`%r1.foo`), missing spaces (`.u32 x;`), initializers where they are not allowed, casts other than `.s64` and `.u64`.

mod body;
mod debug;
mod expr;
pub(crate) mod foreign;
mod func;
mod head;
mod init;
mod module;
mod operand;
mod outline;
mod param;
mod recover;
mod var;
mod word;

pub use outline::Outline;

use crate::lex::{Lexer, T, Token};
use crate::tree::*;
use crate::{Code, Diagnostic, Span, Tree};
use std::sync::Arc;

/// A tree and what could not be read.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The tree of everything that could be parsed.
    pub tree: Arc<Tree>,
    /// In order of position. The parser stops after a few hundred, which the last one then reports.
    pub diagnostics: Vec<Diagnostic>,
}

/// The parser stops after this many syntax errors: the file is not PTX.
const ERRORS: usize = 400;
/// Nested blocks of a body that ptxas takes before its parser gives up ("memory exhausted"), measured.
const NESTED_BLOCKS: usize = 1663;
/// Nested braces of an initializer: one for each dimension.
const NESTED_BRACES: u32 = 64;

/// Parses a file. Never fails, never panics; linear in the length of the text.
pub fn parse(text: &str) -> Parsed {
    parse_shared(Arc::new(text.into()))
}

/// [`parse`] for a text that is already shared; saves a copy.
pub fn parse_shared(text: Arc<String>) -> Parsed {
    if u32::try_from(text.len()).is_err() {
        let message = format!("the file has {} bytes; the limit is 4 GiB", text.len());
        let tree = Parser::new("").tree;
        return Parsed {
            tree: Arc::new(tree),
            diagnostics: vec![Diagnostic::new(Code::TooLarge, Span::default(), message)],
        };
    }
    let mut parser = Parser::new(&text);
    if let Some(nul) = memchr::memchr(0, text.as_bytes()) {
        let span = Span::new(nul as u32, nul as u32 + 1);
        let d = Diagnostic::new(Code::UnexpectedCharacter, span, "unexpected character U+0000 (NUL)")
            .here("ptxas stops reading here");
        parser.report(d);
    }
    parser.module();
    let mut diagnostics = parser.diagnostics;
    diagnostics.append(&mut parser.lex.diagnostics);
    diagnostics.sort_by_key(|d| d.span());
    if parser.lex.stopped
        && let Some(last) = diagnostics.last_mut()
    {
        last.notes.push("too many syntax errors: the rest of the file was not read".into());
    }
    let mut tree = parser.tree;
    tree.comments = parser.lex.comments;
    tree.shrink();
    tree.text = text;
    Parsed { tree: Arc::new(tree), diagnostics }
}

/// An error was reported; the caller continues after it.
struct Reported;

type Result<T> = std::result::Result<T, Reported>;

struct Parser<'t> {
    text: &'t str,
    lex: Lexer<'t>,
    /// The token to be read next.
    t: Token,
    /// The one before.
    prev: Span,
    tree: Tree,
    buffers: Buffers,
    /// Whether bodies are passed over, so that the tree gets empty ones.
    passing: outline::Passing,
    diagnostics: Vec<Diagnostic>,
    /// The head of the module is incomplete or out of order, which has been reported.
    headless: bool,
}

/// Memory that lists and expressions need while they are read.
#[derive(Default, Debug)]
struct Buffers {
    /// Elements of lists that are being read; they move to their pool when the list ends.
    list: Vec<Operand>,
    /// Operators of the constant expression that is being read.
    operators: Vec<expr::Pending>,
    /// Its operands.
    values: Vec<Operand>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Parser<'t> {
        let n = text.len();
        let tree = Tree {
            stmts: Vec::with_capacity(n / 32),
            instrs: Vec::with_capacity(n / 36),
            operands: Vec::with_capacity(n / 9),
            ..Tree::default()
        };
        Parser::with(text, Lexer::new(text), tree, Buffers::default())
    }

    /// Reads on into a tree.
    fn with(text: &'t str, mut lex: Lexer<'t>, tree: Tree, buffers: Buffers) -> Parser<'t> {
        let t = lex.next();
        Parser {
            text,
            lex,
            t,
            prev: Span::default(),
            tree,
            buffers,
            passing: outline::Passing::Never,
            diagnostics: Vec::new(),
            headless: false,
        }
    }

    /// Takes the current token.
    #[inline(always)]
    fn bump(&mut self) -> Token {
        let taken = self.t;
        self.prev = taken.span;
        self.t = self.lex.next();
        taken
    }

    /// Takes the current token and, if it directly follows, this character, which is a token of its own. This is
    /// how names and numbers nearly always end.
    #[inline(always)]
    fn bump_with(&mut self, mark: u8) -> bool {
        let found = self.lex.peek() == mark;
        if found {
            self.prev = self.lex.skip();
            self.t = self.lex.next_name();
        }
        found
    }

    /// Takes the current token, a word, and the dotted words that directly follow it.
    #[inline(always)]
    fn bump_dotted(&mut self) -> Token {
        let taken = self.t;
        self.prev = taken.span;
        while let Some(word) = self.lex.attached() {
            self.prev = word;
        }
        self.t = self.lex.next_name();
        taken
    }

    #[inline(always)]
    fn at(&self, kind: T) -> bool {
        self.t.kind == kind
    }

    /// Takes the current token if it is of that kind.
    #[inline(always)]
    fn eat(&mut self, kind: T) -> bool {
        let found = self.t.kind == kind;
        if found {
            self.bump();
        }
        found
    }

    fn str(&self, span: Span) -> &'t str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// The text of the current token.
    fn word(&self) -> &'t str {
        self.str(self.t.span)
    }

    /// The token after the current one.
    fn second(&self) -> Token {
        self.lex.ahead().next()
    }

    /// Whether the current token is the first of its line.
    fn first_of_line(&self) -> bool {
        let gap = self.text.as_bytes().get(self.prev.end as usize..self.t.span.start as usize);
        gap.is_some_and(|gap| match gap {
            // Most are this short, and no search is worth its call.
            &[one] => one == b'\n',
            &[one, two] => one == b'\n' || two == b'\n',
            longer => longer.contains(&b'\n'),
        })
    }

    /// From an offset to the end of the last token taken.
    fn since(&self, start: u32) -> Span {
        Span::new(start, self.prev.end.max(start))
    }

    /// Moves the elements since `base` from the scratch space to the pool.
    #[inline]
    fn list(&mut self, base: usize) -> List<Operand> {
        let start = self.tree.operands.len() as u32;
        let len = (self.buffers.list.len() - base) as u32;
        match &self.buffers.list[base..] {
            // Most are short, and copied faster without a call.
            short @ [_, ..] if short.len() <= 4 => short.iter().for_each(|o| self.tree.operands.push(*o)),
            all => self.tree.operands.extend_from_slice(all),
        }
        self.buffers.list.truncate(base);
        List::new(start, len)
    }

    /// Puts an operand into the pool by itself.
    #[inline]
    fn keep(&mut self, operand: Operand) -> u32 {
        self.tree.operands.push(operand);
        self.tree.operands.len() as u32 - 1
    }

    /// Puts a directive into its pool.
    fn directive(&mut self, name: Span, args: List<Operand>, span: Span) -> u32 {
        self.tree.directives.push(Directive { name, args, span });
        self.tree.directives.len() as u32 - 1
    }

    /// A name that the grammar requires here.
    fn name(&mut self, what: &str) -> Result<Span> {
        if self.at(T::Ident) { Ok(self.bump().span) } else { Err(self.expected(what)) }
    }

    /// A closing bracket.
    fn close(&mut self, kind: T, open: Span) -> Result<()> {
        if self.eat(kind) { Ok(()) } else { Err(self.unclosed(kind, open)) }
    }
}
