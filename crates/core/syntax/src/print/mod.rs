//! The printer: a tree back to text, in one canonical layout, with all comments.
//!
//! One statement per line, indentation by four spaces, operands in a column, labels one step to the left, at most one empty line, long
//! lists wrapped. Only white space changes, and the order of modifiers if the caller requests it; the tokens stay unchanged. So
//! [`format()`] is idempotent and preserves the meaning of the text.

mod line;

use crate::lex::T;
use crate::tree::*;
use crate::{Parsed, Severity, Span, Tree};
use line::Piece;

/// Given opcode and modifiers without blanks (`ld.u32.global`), the same in canonical order, or `None` to keep them.
pub type Reorder<'f> = &'f dyn Fn(&str) -> Option<String>;

/// How [`format()`] writes.
pub struct FormatOptions<'f> {
    /// Blanks of one step of indentation.
    pub indent: usize,
    /// Lines are wrapped beyond that many characters, if they can be.
    pub width: usize,
    /// How modifiers are put in order: the printer knows no instruction.
    pub mnemonic: Option<Reorder<'f>>,
}

impl Default for FormatOptions<'_> {
    fn default() -> Self {
        FormatOptions { indent: 4, width: 100, mnemonic: None }
    }
}

/// Why a file was left alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unformatted {
    /// Index of the first syntax error in [`Parsed::diagnostics`].
    pub diagnostic: usize,
    /// How many there are.
    pub errors: usize,
}

impl std::fmt::Display for Unformatted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} syntax error{}", self.errors, if self.errors == 1 { "" } else { "s" })
    }
}

impl std::error::Error for Unformatted {}

/// The module in canonical layout. A module with syntax errors is not formatted: what could not be read would be lost.
pub fn format(parsed: &Parsed, options: &FormatOptions<'_>) -> Result<String, Unformatted> {
    let errors = || parsed.diagnostics.iter().enumerate().filter(|(_, d)| d.severity == Severity::Error);
    if let Some((diagnostic, _)) = errors().next() {
        return Err(Unformatted { diagnostic, errors: errors().count() });
    }
    let tree = &*parsed.tree;
    let mut printer = Printer {
        tree,
        options,
        out: String::with_capacity(tree.text.len() + tree.text.len() / 8),
        comment: 0,
        last: 0,
        depth: 0,
        opened: true,
        line: 0,
    };
    printer.module();
    // A file keeps its kind of line ends.
    let windows = memchr::memchr(b'\n', tree.text.as_bytes()).is_some_and(|n| tree.text[..n].ends_with('\r'));
    Ok(if windows { printer.out.replace("\r\n", "\n").replace('\n', "\r\n") } else { printer.out })
}

/// Blanks are not worth more than that.
const DEEPEST: usize = 24;
/// Operands begin this many characters after the indentation, or one after a longer mnemonic.
const COLUMN: usize = 16;

struct Printer<'t> {
    tree: &'t Tree,
    options: &'t FormatOptions<'t>,
    out: String,
    /// The next comment to be written.
    comment: usize,
    /// Where, in the text, what has been written so far ends.
    last: u32,
    /// Open blocks, the function's own included.
    depth: usize,
    /// Whether this block or file is still empty, so no empty line is written.
    opened: bool,
    /// Where the current line begins in `out`.
    line: usize,
}

/// A statement of a body, or an item that ptxas allows there.
#[derive(Clone, Copy)]
enum Part {
    Stmt(Stmt),
    Item(Item),
}

impl Printer<'_> {
    fn module(&mut self) {
        let mut items: Vec<(Span, Item)> = self.tree.items.iter().map(|i| (self.item_span(*i), *i)).collect();
        items.sort_by_key(|(span, _)| span.start);
        let mut rest = &items[..];
        while let Some(((span, item), behind)) = rest.split_first() {
            // The parser moves items inside a function out of its body.
            let inside = behind.iter().take_while(|(s, _)| s.start < span.end).count();
            let (lifted, behind) = behind.split_at(inside);
            self.item(*item, lifted);
            rest = behind;
        }
        self.comments(self.tree.text.len() as u32);
        self.end_line();
    }

    fn item_span(&self, item: Item) -> Span {
        match item {
            Item::Var(v) => self.tree.vars[v as usize].span,
            Item::Func(f) => self.tree.funcs[f as usize].span,
            Item::Directive(d) => self.tree.directives[d as usize].span,
        }
    }

    fn item(&mut self, item: Item, lifted: &[(Span, Item)]) {
        match item {
            Item::Var(v) => self.var(v),
            Item::Func(f) => self.func(&self.tree.funcs[f as usize], lifted),
            Item::Directive(d) => self.directive(&self.tree.directives[d as usize]),
        }
    }

    fn var(&mut self, index: u32) {
        let span = self.tree.vars[index as usize].span;
        self.begin(span.start);
        let pieces = self.pieces(span);
        // In a body, names are in the column of operands.
        let head = pieces.iter().position(|p| !matches!(p, Piece::Token(T::Dot, _))).unwrap_or(0);
        if self.depth > 0 && head > 0 && !matches!(pieces[head], Piece::Comment(_)) && self.plain_head(&pieces[..head])
        {
            let (words, names) = pieces.split_at(head);
            self.joined(words);
            self.column();
            self.joined(names);
        } else {
            self.joined(&pieces);
        }
        self.last = span.end;
    }

    /// Whether there are only words, without `.align 4`, whose number would be in the column of names.
    fn plain_head(&self, head: &[Piece]) -> bool {
        head.last().is_some_and(
            |p| !matches!(p, Piece::Token(_, s) if self.tree.str(*s) == ".align" || self.tree.str(*s) == ".attribute"),
        )
    }

    fn directive(&mut self, directive: &Directive) {
        self.begin(directive.span.start);
        let raw = self.tree.operands(directive.args).last().filter(|o| matches!(o.kind, Kind::String)).map(|o| o.span);
        match (self.tree.str(directive.name), raw) {
            (".section", Some(body)) => self.section(directive, body),
            ("@@DWARF", _) => self.out.push_str(self.tree.str(directive.span).trim_end()),
            _ => {
                let pieces = self.pieces(directive.span);
                self.spaced(&pieces);
            }
        }
        self.skip_comments(directive.span.end);
        self.last = directive.span.end;
    }

    /// `.section .debug_info { ... }`: the lines as they are, indented.
    fn section(&mut self, directive: &Directive, body: Span) {
        let head = Span::new(directive.span.start, body.start);
        let pieces = self.pieces(head);
        self.joined(&pieces);
        self.last = pieces.last().map_or(head.end, |p| p.span().end);
        // The text after the brace is raw, so a comment before it stays before it.
        self.comments(body.start);
        let line_comment = self.tree.comments[..self.comment]
            .last()
            .is_some_and(|c| c.start > head.start && !self.tree.str(*c).starts_with("/*"));
        if line_comment {
            self.end_line();
            self.out.push('{');
        } else {
            self.out.push_str(" {");
        }
        let text = self.tree.str(body);
        let inner = text.get(1..text.len().max(2) - 1).unwrap_or("");
        let lines = inner.lines().map(str::trim).filter(|l| !l.is_empty());
        for line in lines {
            self.end_line();
            // A line marker is one at the start of its line only.
            if !line.starts_with('#') {
                self.indentation(1);
            }
            self.out.push_str(line);
        }
        self.end_line();
        self.out.push('}');
    }

    fn func(&mut self, func: &Func, lifted: &[(Span, Item)]) {
        self.begin(func.span.start);
        self.header(func);
        let Some(body) = func.body else {
            // The semicolon of a declaration may be missing; ptxas takes that.
            if self.tree.str(func.span).ends_with(';') {
                self.out.push(';');
            }
            self.last = func.span.end;
            self.opened = false;
            return;
        };
        self.begin(func.braces.0.start);
        self.out.push('{');
        self.last = func.braces.0.end;
        self.depth += 1;
        self.opened = true;
        self.body(body, lifted);
        self.close(func.braces.1);
    }

    fn close(&mut self, brace: Span) {
        self.comments(brace.start);
        self.depth = self.depth.saturating_sub(1);
        self.opened = true;
        self.begin(brace.start);
        self.out.push('}');
        self.opened = false;
        self.last = brace.end;
    }

    /// Everything up to the body or the semicolon: in one line if it fits, else a line for each parameter.
    fn header(&mut self, func: &Func) {
        let start = func.header.start;
        let end = func.header.end;
        let directives = self.tree.directives(func.directives);
        let signature_end = directives.first().map_or(end, |d| d.span.start);
        let pieces = self.pieces(Span::new(start, signature_end));
        let commented = pieces.iter().any(|p| matches!(p, Piece::Comment(_)));
        let width: usize = pieces.iter().map(|p| p.span().len() as usize + 1).sum();
        let params = func.params.unwrap_or(List::empty());
        if params.is_empty() || (!commented && width < self.options.width) {
            self.head_line(&pieces);
        } else {
            let vars = self.tree.vars(params);
            let first = vars.first().map_or(end, |v| v.span.start);
            let open: Vec<Piece> =
                self.pieces(Span::new(start, first)).into_iter().filter(|p| !matches!(p, Piece::Comment(_))).collect();
            let before: Vec<Piece> = open[..open.len().saturating_sub(1)].to_vec();
            self.head_line(&before);
            self.out.push('(');
            self.last = open.last().map_or(first, |p| p.span().end);
            self.depth += 1;
            for (n, var) in vars.iter().enumerate() {
                // Comments before the parenthesis move after it.
                self.opened = true;
                self.begin(var.span.start);
                let pieces = self.pieces(var.span);
                self.joined(&pieces);
                self.last = var.span.end;
                if n + 1 < vars.len() {
                    self.out.push(',');
                    self.past(T::Comma);
                }
            }
            let close = self.find(T::RParen);
            self.comments(close.start);
            self.depth -= 1;
            self.opened = true;
            self.begin(close.start);
            self.out.push(')');
            self.last = close.end;
        }
        self.last = self.last.max(self.tree.str(Span::new(start, signature_end)).trim_end().len() as u32 + start);
        for directive in directives {
            self.opened = true;
            self.directive(directive);
        }
        self.opened = true;
    }

    /// The signature of a function: `.visible .func (.param .b32 r) f(.param .b32 a)`.
    fn head_line(&mut self, pieces: &[Piece]) {
        self.joined(pieces);
        if let Some(last) = pieces.last() {
            self.last = self.last.max(last.span().end);
        }
    }

    fn body(&mut self, body: List<Stmt>, lifted: &[(Span, Item)]) {
        let mut lifted = lifted.iter().peekable();
        for stmt in self.tree.stmts(body) {
            let start = self.stmt_span(*stmt).start;
            while let Some((_, item)) = lifted.next_if(|(s, _)| s.start < start) {
                self.part(Part::Item(*item));
            }
            self.part(Part::Stmt(*stmt));
        }
        for (_, item) in lifted {
            self.part(Part::Item(*item));
        }
    }

    fn stmt_span(&self, stmt: Stmt) -> Span {
        match stmt {
            Stmt::Instr(i) => self.tree.instrs[i as usize].span,
            Stmt::Var(v) => self.tree.vars[v as usize].span,
            Stmt::Directive(d) => self.tree.directives[d as usize].span,
            Stmt::Prototype(f) => self.tree.funcs[f as usize].span,
            Stmt::Label(s) | Stmt::Open(s) | Stmt::Close(s) => s,
        }
    }

    fn part(&mut self, part: Part) {
        match part {
            Part::Item(item) => self.item(item, &[]),
            Part::Stmt(Stmt::Instr(i)) => self.instr(&self.tree.instrs[i as usize]),
            Part::Stmt(Stmt::Var(v)) => self.var(v),
            Part::Stmt(Stmt::Directive(d)) => self.directive(&self.tree.directives[d as usize]),
            Part::Stmt(Stmt::Prototype(f)) => {
                let span = self.tree.funcs[f as usize].span;
                self.begin(span.start);
                let pieces = self.pieces(span);
                self.spaced(&pieces);
                self.last = span.end;
            }
            Part::Stmt(Stmt::Label(name)) => {
                // Comments belong to the labeled statement, and have its indentation.
                self.depth = self.depth.saturating_sub(1);
                self.begin(name.start);
                self.depth += 1;
                self.out.push_str(self.tree.str(name));
                self.out.push(':');
                self.last = name.end;
                self.past(T::Colon);
            }
            Part::Stmt(Stmt::Open(brace)) => {
                self.begin(brace.start);
                self.out.push('{');
                self.last = brace.end;
                self.depth += 1;
                self.opened = true;
            }
            Part::Stmt(Stmt::Close(brace)) => self.close(brace),
        }
    }

    fn instr(&mut self, instr: &Instr) {
        self.begin(instr.span.start);
        let pieces = self.pieces(instr.span);
        let head = pieces.iter().position(|p| p.span().start >= instr.mnemonic.end).unwrap_or(pieces.len());
        let (words, operands) = pieces.split_at(head);
        let commented = words.iter().any(|p| matches!(p, Piece::Comment(_)));
        let reordered = match self.options.mnemonic {
            Some(reorder) if !commented => {
                let written: String = self.tree.str(instr.mnemonic).chars().filter(|c| !c.is_whitespace()).collect();
                reorder(&written)
            }
            _ => None,
        };
        match reordered {
            Some(mnemonic) => {
                let guard = words.iter().take_while(|p| p.span().start < instr.mnemonic.start).count();
                self.joined(&words[..guard]);
                if guard > 0 {
                    self.out.push(' ');
                }
                self.out.push_str(&mnemonic);
            }
            None => self.mnemonic(words),
        }
        if operands.len() > 1 {
            self.column();
        }
        self.joined(operands);
        self.last = instr.span.end;
    }
}
