//! Undeclared names, and names of a different kind.

use super::*;

impl<'a> Walker<'a, '_> {
    /// Nothing of that name.
    #[cold]
    pub(in crate::body) fn unknown(&mut self, span: Span, what: &str) -> Operand {
        let tree = self.tree;
        let name = tree.str(span);
        if self.report.may_have_lost(tree, crate::body::names::prefix(name)) {
            self.names.fault(name, span);
            return Operand::Error;
        }
        let code = match what {
            "register" | "argument" | "name" => Code::UnknownRegister,
            "table" | "label" => Code::UnknownLabel,
            _ => Code::UnknownVariable,
        };
        let noun = match what {
            "argument" => "name",
            "table" => "label",
            "constant" => "name",
            other => other,
        };
        let mut d = Diagnostic::new(code, span, format!("unknown {noun} `{name}`"));
        if let Some((n, at)) = self.names.family_of(name) {
            if !self.names.too_small(at) {
                self.names.fault(name, span);
                return Operand::Error;
            }
            let stem = crate::body::names::prefix(name);
            let last =
                if n == 0 { "nothing".to_owned() } else { format!("`{stem}0` to `{stem}{}`", n.saturating_sub(1)) };
            d = d.label(at, format!("this declares {last}"));
            if let Some(number) = self.largest(stem).filter(|n| *n < 1 << 20) {
                d = d.help(format!("increase the count to `{stem}<{}>`", number + 1));
            }
        } else if let Some((_, at)) = self.names.hidden_family(name) {
            d = d.label(at, "a parameterized name whose prefix ends in a digit").note(format!(
                "all trailing digits of a name form its number: `{name}` would belong to `{}<...>`",
                crate::body::names::prefix(name)
            ));
        }
        let mut known = false;
        if self.report.may_suggest() && !name.is_empty() {
            let near = foreign(name).map(str::to_owned).or_else(|| self.near(name, what));
            if let Some(near) = near {
                d = suggest(d, span, &near);
                if let Some(fix) = d.suggestions.last_mut() {
                    self.whole_family(name, &near, span, &mut fix.edits);
                }
                known = true;
            }
        }
        let stem = crate::body::names::prefix(name);
        let register = matches!(what, "register" | "name" | "argument");
        if register && stem.len() < name.len() && !stem.is_empty() && self.names.family_of(name).is_none() {
            if !known && stem.starts_with('%') {
                d = self.declare_family(d, stem);
            } else if self.largest(stem).is_some_and(|n| name != format!("{stem}{n}")) {
                d = d.note(format!("the function uses other undeclared names `{stem}...` as well"));
            }
            self.names.fault_family(stem, span);
        }
        self.report.push(d);
        self.names.fault(name, span);
        Operand::Error
    }

    /// Extends the change of one name to the other numbered names in the instruction with the same error: `r2` as well as `r1`.
    fn whole_family(&self, name: &str, near: &str, span: Span, edits: &mut Vec<(Span, String)>) {
        let (stem, new) = (crate::body::names::prefix(name), crate::body::names::prefix(near));
        let Some(instr) = self.tree.instrs.get(self.current.node as usize) else { return };
        if stem.is_empty() || new.len() == near.len() || name[stem.len()..] != near[new.len()..] {
            return;
        }
        let text = self.tree.str(instr.span);
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
        for (at, _) in text.match_indices(stem).filter(|(at, _)| !text[..*at].ends_with(word)) {
            // The stem itself may have letters that no name has.
            let rest = &text[at + stem.len()..];
            let digits = &rest[..rest.find(|c| !word(c)).unwrap_or(rest.len())];
            let end = at + stem.len() + digits.len();
            let place = Span::new(instr.span.start + at as u32, instr.span.start + end as u32);
            if place != span && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
                edits.push((place, format!("{new}{digits}")));
            }
        }
    }

    /// Reports how many undeclared registers `stem<N>` are used, and a declaration for them.
    fn declare_family(&self, d: Diagnostic, stem: &str) -> Diagnostic {
        let Some(largest) = self.largest(stem).filter(|n| *n < 1 << 20) else { return d };
        let d = d.note(format!("`{}` does not declare `{stem}<...>` but uses up to `{stem}{largest}`", self.func.name));
        // The names that compilers give them.
        let ty = match stem {
            "%p" => ".pred",
            "%rs" | "%h" | "%hh" => ".b16",
            "%r" => ".b32",
            "%rd" => ".b64",
            "%f" => ".f32",
            "%fd" | "%d" => ".f64",
            _ => return d.help(format!("declare them: `.reg .b32 {stem}<{}>;`, or another type", largest + 1)),
        };
        d.help(format!("declare them: `.reg {ty} {stem}<{}>;`", largest + 1))
    }

    /// The largest number after this stem in the function.
    fn largest(&self, stem: &str) -> Option<u32> {
        let text = self.tree.str(self.tree.funcs[self.func.node as usize].span);
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
        text.match_indices(stem)
            .filter(|(at, _)| !text[..*at].ends_with(word))
            .filter_map(|(at, _)| {
                let behind = &text[at + stem.len()..];
                behind[..behind.find(|c| !word(c)).unwrap_or(behind.len())].parse().ok()
            })
            .max()
    }

    /// The known name nearest to an unknown one, of the kind that is wanted.
    pub(super) fn near(&self, name: &str, what: &str) -> Option<String> {
        const LIMIT: usize = 4000;
        // `@P0` for `@%p0`, `r1` for `%r1`.
        let small = name.to_ascii_lowercase();
        for other in [format!("%{small}"), small] {
            if other != name && self.names.get(&other).is_some_and(|(b, _)| matches!(b, Binding::Reg(_))) {
                return Some(other);
            }
        }
        let stem = crate::body::names::prefix(name);
        if what == "register" || what == "name" || what == "argument" {
            // `%r11` past `%r<8>` may be `%r1` with a finger too many.
            if let Some((n, _)) = self.names.family_of(name) {
                let digits = &name[stem.len()..];
                let shorter =
                    (1..digits.len()).rev().map(|l| &digits[..l]).find(|d| d.parse::<u32>().is_ok_and(|x| x < n));
                return shorter.map(|d| format!("{stem}{d}"));
            }
        }
        let wanted = move |b: Binding| match what {
            "register" => matches!(b, Binding::Reg(_)),
            "parameter" => matches!(b, Binding::Param(_) | Binding::Ret(_) | Binding::Local(_)),
            "variable" => matches!(b, Binding::Local(_) | Binding::Param(_) | Binding::Ret(_)),
            "label" => matches!(b, Binding::Label(_)),
            "table" => matches!(b, Binding::Table(_)),
            _ => !matches!(b, Binding::Label(_) | Binding::Table(_) | Binding::Faulty),
        };
        let mut candidates: Vec<&str> = self.names.candidates(wanted).take(LIMIT).collect();
        if matches!(what, "variable" | "name" | "parameter" | "argument") {
            candidates.extend(self.module.globals.iter().take(LIMIT).map(|g| &*g.name));
        }
        candidates.sort_unstable();
        nearest(name, candidates).map(str::to_owned)
    }

    /// The name is declared, but further down.
    #[cold]
    pub(in crate::body) fn too_early(&mut self, span: Span, at: Span) {
        let name = self.tree.str(span);
        self.report.push(
            Diagnostic::new(Code::UsedBeforeDeclaration, span, format!("`{name}` is used before its declaration"))
                .label(at, "declared here")
                .help("move the declaration up, or add an `.extern` declaration or a prototype before the use"),
        );
    }

    /// No function of that name.
    #[cold]
    pub(in crate::body) fn no_function(&mut self, span: Span) {
        let name = self.tree.str(span);
        if let Some(crate::Symbol::Global(id)) = self.module.symbol(name) {
            let at = self.module.global(id).span;
            return self.report.push(
                Diagnostic::new(Code::UnknownFunction, span, format!("`{name}` is a variable, not a function"))
                    .label(at, "declared here"),
            );
        }
        let mut d = Diagnostic::new(Code::UnknownFunction, span, format!("unknown function `{name}`"));
        let known =
            || self.module.funcs.iter().filter(|f| f.kind == crate::FuncKind::Device && f.first.start < span.start);
        let names: Vec<&str> = known().map(|f| &*f.name).take(4000).collect();
        if self.report.may_suggest()
            && let Some(near) = nearest(name, names.iter().copied())
        {
            d = suggest(d, span, near);
        }
        if !names.is_empty() && names.len() <= 8 {
            d = d.note(format!("functions declared here: {}", list(&ticks(&names), "and")));
        }
        d = d.help(format!("if it is defined elsewhere, declare it: `.extern .func {name} (...);`"));
        self.report.push(d);
    }

    /// Whether a label may be in text that the parser skipped, or after a brace that closes the body too early.
    pub(in crate::body) fn may_have_lost_labels(&self) -> bool {
        let body = self.tree.funcs[self.func.node as usize].span;
        let next = self.tree.funcs.get(self.func.node as usize + 1).map_or(u32::MAX, |f| f.span.start);
        self.report.is_broken(Span::new(body.start, body.end.max(next)))
    }

    /// The name is not a label, or not a label that is visible here.
    #[cold]
    pub(in crate::body) fn not_a_label(&mut self, span: Span, found: Option<Binding>) {
        let name = self.tree.str(span);
        if let Some(binding) = found {
            let what = match binding {
                Binding::Reg(_) => "a register",
                Binding::Table(_) => "a table",
                _ => "a variable",
            };
            return self.report.push(Diagnostic::new(
                Code::OperandKind,
                span,
                format!("`{name}` is {what}, not a label"),
            ));
        }
        if let Some(crate::Symbol::Func(_) | crate::Symbol::Alias(_)) = self.module.symbol(name) {
            return self.report.push(
                Diagnostic::new(Code::OperandKind, span, format!("`{name}` is a function, not a label"))
                    .help(format!("write `call {name};`")),
            );
        }
        if let Some(crate::Symbol::Global(_)) = self.module.symbol(name) {
            return self.report.push(Diagnostic::new(
                Code::OperandKind,
                span,
                format!("`{name}` is a variable, not a label"),
            ));
        }
        if self.may_have_lost_labels() {
            return;
        }
        let mut d = Diagnostic::new(Code::UnknownLabel, span, format!("no label `{name}` in `{}`", self.func.name));
        // Both searches go over all names.
        let may = self.report.may_suggest();
        if let Some(at) = may.then(|| self.hidden_label(name)).flatten() {
            d = d
                .label(at, "this one is in a nested block")
                .note("a label is visible in its block and in nested blocks");
        } else {
            let labels = self.names.candidates(|b| matches!(b, Binding::Label(_)));
            let mut labels: Vec<&str> = labels.take(if may { 4000 } else { 0 }).collect();
            labels.sort_unstable();
            if let Some(near) = nearest(name, labels.iter().copied()) {
                d = suggest(d, span, near);
            }
            if !labels.is_empty() && labels.len() <= 8 {
                d = d.note(format!("labels here: {}", list(&ticks(&labels), "and")));
            }
        }
        self.report.push(d);
        self.names.fault(name, span);
    }

    #[cold]
    pub(in crate::body) fn not_a_table(&mut self, span: Span) {
        let name = self.tree.str(span);
        let text = self.tree.str(self.mnemonic());
        if let Some((Binding::Table(_), _)) = self.names.get(name) {
            return self.report.push(
                Diagnostic::new(
                    Code::OperandKind,
                    span,
                    format!("`{name}` is a table of functions; `{text}` requires labels"),
                )
                .here("expected the label of `.branchtargets`"),
            );
        }
        self.report.push(
            Diagnostic::new(Code::OperandKind, span, format!("`{name}` is not the label of a table")).note(
                "tables are `.callprototype`, `.calltargets` and `.branchtargets`, and arrays of `.u32` or `.u64` in `.global` or \
                 `.const` that are initialized with functions; they are declared before their use",
            ),
        );
    }
}

/// PTX's name for what CUDA C++, OpenCL and SASS call otherwise.
fn foreign(name: &str) -> Option<&'static str> {
    Some(match name.strip_prefix('%').unwrap_or(name) {
        "threadIdx" | "tid" => "%tid",
        "blockIdx" | "ctaid" => "%ctaid",
        "blockDim" | "ntid" => "%ntid",
        "gridDim" | "nctaid" => "%nctaid",
        "threadIdx.x" | "tid.x" | "tidx" | "tid_x" | "SR_TID.X" => "%tid.x",
        "ctaidx" | "ctaid_x" => "%ctaid.x",
        "ntidx" | "ntid_x" => "%ntid.x",
        "warpSize" | "WARPSIZE" | "WARP_SIZE" => "WARP_SZ",
        "laneid" | "laneId" | "laneID" | "lane_id" | "SR_LANEID" => "%laneid",
        "warpid" | "warpId" | "warp_id" => "%warpid",
        "smid" | "smId" | "sm_id" => "%smid",
        "clock" => "%clock",
        "clock64" => "%clock64",
        _ => return None,
    })
}
