//! Errors in addresses: bases, state spaces and symbols.

use super::*;

impl<'a> Walker<'a, '_> {
    #[cold]
    pub(in crate::body) fn no_address(&mut self, want: &Want, decl: u32, span: Span) {
        let d = self.body.regs[decl as usize];
        let name = self.tree.str(span);
        let what = if d.vector > 1 { format!("a vector of {}", d.vector) } else { format!("`{}`", d.ty) };
        let wanted = match want.opnd.ty {
            Ty::Pointer => "an address is an integer",
            _ => "a tensor memory address has 32 bits",
        };
        self.report.push(
            Diagnostic::new(Code::AddressType, span, format!("{wanted}; `{name}` is {what}"))
                .label(d.name, "declared here"),
        );
    }

    #[cold]
    pub(in crate::body) fn narrow_address(&mut self, c: &Candidate, want: &Want, decl: u32, span: Span) {
        let space = want_space(c, want);
        // Windows of a CTA and of a thread have less than 4 GiB, so 32 bits hold their addresses.
        if matches!(space, Some(Space::Shared | Space::Local | Space::Param | Space::Const)) {
            return;
        }
        // Elsewhere ptxas extends the register with zeros, as section 6.4.1 has it for all.
        use Opcode::{Applypriority, Atom, Discard, Ld, Ldu, Mbarrier, Multimem, Prefetch, Prefetchu, Red, St};
        let looks = match c.variant.op {
            Ld | Ldu | Atom | Red | Prefetchu | Discard | Applypriority | Mbarrier | Multimem => true,
            St => !c.variant.has(Mod::Bulk),
            Prefetch => !c.variant.has(Mod::Tensormap),
            _ => false,
        };
        if !looks {
            return;
        }
        let d = self.body.regs[decl as usize];
        let name = self.tree.str(span);
        let what = space.map_or("generic".to_owned(), |s| format!("`{s}`"));
        self.report.push(
            Diagnostic::new(
                Code::NarrowAddress,
                span,
                format!("`{name}` is 32 bits wide; {what} addresses have 64 under `.address_size 64`"),
            )
            .label(d.name, "declared here")
            .help(format!("widen the address first: `cvt.u64.u32 t, {name};`"))
            .note("ptxas reports this as 32-bit compilation and rejects the module"),
        );
    }

    /// Whether ptxas takes a register that cannot hold this address; if so, that it does is said.
    #[cold]
    pub(in crate::body) fn forgotten_type(&mut self, want: &Want, decl: u32, span: Span) -> bool {
        let d = self.body.regs[decl as usize];
        if compat::has(want.regs, d.ty) || d.vector != 1 || d.ty.bits() == 32 && !d.ty.is_float() {
            return false;
        }
        let found = Diagnostic::new(
            Code::AddressType,
            span,
            format!("an address is a 64-bit integer; `{}` is `{}`", self.tree.str(span), d.ty),
        )
        .label(d.name, "declared here");
        self.report.text_only(found);
        true
    }

    #[cold]
    pub(in crate::body) fn no_address_name(&mut self, span: Span) {
        let name = self.tree.str(span);
        let what = match self.named(span) {
            Named::Label(_) => "a label",
            Named::Table(_) => "a table",
            Named::Special(..) => "a special register",
            Named::Symbol(_) => "a variable, and tensor memory has no variables",
            _ => "an element of a vector",
        };
        self.report.push(Diagnostic::new(
            Code::AddressType,
            span,
            format!("the base of an address is a register or a variable; `{name}` is {what}"),
        ));
    }

    #[cold]
    pub(in crate::body) fn constant_address(&mut self, c: &Candidate, want: &Want, span: Span) {
        let space = want_space(c, want).map_or("generic memory".to_owned(), |s| format!("`{s}`"));
        self.report.push(
            Diagnostic::new(Code::ConstantAddress, span, format!("a constant address in {space}"))
                .here("only `.local` allows one")
                .help("declare a variable and use its name, or move the address to a register"),
        );
    }

    #[cold]
    pub(in crate::body) fn wrong_space(&mut self, c: &Candidate, want: &Want, symbol: SymRef, span: Span) {
        let name = self.tree.str(span).to_owned();
        let text = self.tree.str(self.mnemonic());
        if let SymRef::Func(f) = symbol {
            let at = self.module.func(f).span;
            return self.report.push(
                Diagnostic::new(Code::AddressSpace, span, format!("`{name}` is a function; `{text}` accesses memory"))
                    .label(at, "declared here"),
            );
        }
        let (_, at) = self.type_of_symbol(symbol);
        let found = self.symbol_space(symbol);
        let d = match want_space(c, want) {
            Some(space) => Diagnostic::new(
                Code::AddressSpace,
                span,
                format!("`{name}` is in `{found}`; `{text}` accesses `{space}`"),
            )
            .label(at, format!("declared in `{found}`")),
            None if c.variant.op == Opcode::Prefetchu && !matches!(found, Space::Const | Space::Param) => Diagnostic::new(
                Code::AddressSpace,
                span,
                format!("`{name}` is in `{found}`; `{text}` requires a generic address in a register or a variable in `.global`"),
            )
            .label(at, "declared here"),
            None if found == Space::Const => Diagnostic::new(
                Code::AddressSpace,
                span,
                format!("`{name}` is in `.const`; `{text}` has no state space and accepts such an address only in a register"),
            )
            .label(at, "declared here"),
            None => Diagnostic::new(
                Code::AddressSpace,
                span,
                format!("`{name}` is in `{found}`, which has no generic addresses"),
            )
            .label(at, "declared here"),
        };
        let fixed = c.space.and_then(crate::body::space_of).zip(mod_of(found)).map(|(_, m)| {
            let words: Vec<Word> = c
                .variant
                .words
                .iter()
                .map(|w| if Some(*w) == c.space.map(Word::Mod) { Word::Mod(m) } else { *w })
                .collect();
            resolve(c.variant.op, &words, |_| true)
        });
        let mnemonic = self.mnemonic();
        let d = match fixed {
            Some(Ok(found)) => {
                let with = found.variant.to_string();
                let mut d = d;
                d.suggestions.push(Suggestion {
                    message: format!("write `{with}`"),
                    edits: vec![(mnemonic, with)],
                    machine_applicable: false,
                });
                d
            }
            _ => d,
        };
        self.report.push(d);
    }

    #[cold]
    pub(in crate::body) fn no_symbol_here(
        &mut self,
        c: &Candidate,
        want: &Want,
        symbol: SymRef,
        span: Span,
    ) -> Operand {
        let name = self.tree.str(span);
        let text = self.tree.str(self.mnemonic());
        let (_, at) = self.type_of_symbol(symbol);
        let what = if matches!(symbol, SymRef::Func(_)) { "function" } else { "variable" };
        let d = Diagnostic::new(
            Code::OperandKind,
            span,
            format!(
                "operand {} (`{}`) of `{text}` is a register; `{name}` is a {what}",
                self.current.operand + 1,
                want.opnd.name
            ),
        )
        .label(at, "declared here");
        let d = if c.variant.op == Opcode::Mov {
            d.help("an address is an integer: `mov.u64`")
        } else if what == "variable" && self.symbol_space(symbol) == Space::Param {
            d.help(format!("load its value first: `ld.param... t, [{name}];`"))
        } else {
            d.help(format!("take its address first: `mov.u64 t, {name};`"))
        };
        self.report.push(d);
        Operand::Error
    }

    #[cold]
    pub(in crate::body) fn no_handle(&mut self, span: Span, decl: u32) {
        let d = self.body.regs[decl as usize];
        self.report.push(
            Diagnostic::new(
                Code::OperandType,
                span,
                format!("a handle is a 64-bit integer; `{}` is `{}`", self.tree.str(span), d.ty),
            )
            .label(d.name, "declared here"),
        );
    }

    #[cold]
    pub(in crate::body) fn other_handle(&mut self, wanted: Type, found: Type, span: Span, declared: Span) {
        self.report.push(
            Diagnostic::new(
                Code::OperandType,
                span,
                format!("`{}` is `{found}`, expected `{wanted}`", self.tree.str(span)),
            )
            .label(declared, "declared here"),
        );
    }

    #[cold]
    pub(in crate::body) fn array_of_handles(&mut self, ty: margay_isa::Type, span: Span, declared: Span) {
        let name = self.tree.str(span);
        self.report.push(
            Diagnostic::new(Code::OperandType, span, format!("`{name}` is an array, expected one `{ty}`"))
                .label(declared, "declared here")
                .help(format!("use a register with the address of an element: `mov.b64 r, {name};`")),
        );
    }

    #[cold]
    pub(in crate::body) fn no_callee(&mut self, span: Span, decl: Option<u32>) {
        let name = self.tree.str(span);
        let d = match decl {
            Some(decl) => {
                let d = self.body.regs[decl as usize];
                Diagnostic::new(
                    Code::OperandType,
                    span,
                    format!("a function's address is an integer; `{name}` is `{}`", d.ty),
                )
                .label(d.name, "declared here")
            }
            None => Diagnostic::new(Code::UnknownFunction, span, format!("`{name}` is not a function here"))
                .note("a variable, label or parameter of this name hides the function"),
        };
        self.report.push(d);
    }

    /// A label of that name in an inner block.
    pub(super) fn hidden_label(&self, name: &str) -> Option<Span> {
        let list = self.tree.funcs[self.func.node as usize].body?;
        self.tree.stmts(list).iter().find_map(|s| match s {
            tree::Stmt::Label(at) if self.tree.str(*at) == name => Some(*at),
            _ => None,
        })
    }
}
