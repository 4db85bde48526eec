//! The origin of PTX: the source line that `.loc` (section 11.5.4) and `.file` (section 11.5.3) give for a location.

use crate::tree::{Item, Kind, Operand, Stmt, Tree};

/// A place in the source that a compiler made the PTX from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin<'t> {
    /// The path of `.file`; empty if no `.file` has that number.
    pub file: &'t str,
    /// 1-based line.
    pub line: u32,
    /// 1-based column; 0 if the compiler did not say.
    pub column: u32,
}

impl std::fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = if self.file.is_empty() { "?" } else { self.file };
        write!(f, "{file}:{}", self.line)?;
        if self.column > 0 { write!(f, ":{}", self.column) } else { Ok(()) }
    }
}

impl Tree {
    /// The source location of an offset, and the chain of locations it was inlined at, innermost first. Empty outside
    /// of bodies and before the first `.loc` of one.
    pub fn origins(&self, offset: u32) -> Vec<Origin<'_>> {
        let body =
            self.funcs.iter().find(|f| f.braces.0.start <= offset && offset < f.braces.1.end).and_then(|f| f.body);
        let Some(body) = body else { return Vec::new() };
        let stmts = self.stmts(body);
        let before = stmts.partition_point(|s| self.stmt_start(*s) <= offset);
        let mut locs = stmts[..before].iter().rev().filter_map(|s| match s {
            Stmt::Directive(d) => {
                let d = self.directives.get(*d as usize)?;
                (self.str(d.name) == ".loc").then(|| self.operands(d.args))
            }
            _ => None,
        });
        let mut origins = Vec::new();
        let mut args = locs.next();
        while let Some(place) = args {
            if origins.is_empty() {
                origins.extend(self.position(place));
            }
            // `function_name NAME, inlined_at FILE LINE COLUMN`; that place was named before, with where it was inlined in turn.
            let inlined = place.iter().position(|o| matches!(o.kind, Kind::Name) && self.str(o.span) == "inlined_at");
            let Some(outer) = inlined.and_then(|at| self.position(&place[at + 1..])) else { break };
            origins.push(outer);
            args = locs.find(|args| self.position(args) == Some(outer));
        }
        origins
    }

    fn stmt_start(&self, stmt: Stmt) -> u32 {
        match stmt {
            Stmt::Instr(i) => self.instrs[i as usize].span.start,
            Stmt::Var(v) => self.vars[v as usize].span.start,
            Stmt::Directive(d) => self.directives[d as usize].span.start,
            Stmt::Prototype(f) => self.funcs[f as usize].span.start,
            Stmt::Label(s) | Stmt::Open(s) | Stmt::Close(s) => s.start,
        }
    }

    fn position(&self, args: &[Operand]) -> Option<Origin<'_>> {
        let number = |n: usize| match args.get(n)?.kind {
            Kind::Int { value, .. } => Some(value.get()),
            _ => None,
        };
        let (file, line, column) = (number(0)?, number(1)?, number(2)?);
        Some(Origin {
            file: self.file(file).unwrap_or(""),
            line: u32::try_from(line).ok()?,
            column: u32::try_from(column).ok()?,
        })
    }

    /// The path of `.file NUMBER "PATH"`.
    fn file(&self, number: u64) -> Option<&str> {
        self.items.iter().find_map(|item| {
            let Item::Directive(d) = item else { return None };
            let d = self.directives.get(*d as usize)?;
            let [index, path, ..] = self.operands(d.args) else { return None };
            let same = matches!(index.kind, Kind::Int { value, .. } if value.get() == number);
            (self.str(d.name) == ".file" && same).then(|| self.str(path.span).trim_matches('"'))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;

    #[test]
    fn places_lead_to_the_source() {
        let text = ".version 8.0\n.target sm_80\n.file 1 \"k.cu\"\n.file 7 \"inline.h\"\n.entry k() {\nadd;\n.loc 1 10 3\nsub;\n{ mul; }\n\
                    .loc 7 2 0, function_name $L, inlined_at 1 11 5\nor;\n.loc 7 9 1, function_name $M, inlined_at 7 2 0\nret;\n}\n\
                    .entry other() { ret; }\n";
        let tree = parse(text).tree;
        let at = |what: &str| {
            let origins = tree.origins(text.find(what).expect("there") as u32);
            origins.iter().map(|o| o.to_string()).collect::<Vec<_>>().join(" < ")
        };
        assert_eq!(at("add;"), "");
        assert_eq!(at("sub;"), "k.cu:10:3");
        assert_eq!(at("mul;"), "k.cu:10:3");
        assert_eq!(at("or;"), "inline.h:2 < k.cu:11:5");
        assert_eq!(at("ret;\n}"), "inline.h:9:1 < inline.h:2 < k.cu:11:5");
        assert_eq!(at("ret; }"), "");
    }
}
