//! The limits of shared memory per kernel, and of constant memory per module.

use super::Graph;
use crate::report::Report;
use crate::{FuncKind, Function, Global, GlobalId, Linkage};
use margay_isa::Space;
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
};

impl Graph<'_> {
    /// Static shared memory of each kernel (what it and the functions it reaches declare or name).
    pub(super) fn shared(&self, report: &mut Report) {
        // With `-c` the linker counts.
        if self.options.relocatable {
            return;
        }
        const LIMIT: u64 = 48 << 10;
        const OLD_LIMIT: u64 = 16 << 10;
        let limit = if self.module.target_at.is_some() && self.module.target.sm < 20 { OLD_LIMIT } else { LIMIT };
        // With what alignment may add to each.
        let local = self.facts.iter().flat_map(|f| &f.shared).map(|s| (s.1, s.2));
        let globals = self.module.globals.iter().filter(|g| g.space == Space::Shared).map(|g| (g.size, g.align));
        let most = |total: u64, (size, align): (u64, u32)| total.saturating_add(size).saturating_add(align.into());
        if local.chain(globals).fold(0, most) <= limit {
            return;
        }
        for (i, f) in self.module.funcs.iter().enumerate().filter(|(_, f)| f.kind == FuncKind::Kernel && f.defined) {
            let (mut seen, mut open) = (vec![false; self.facts.len()], vec![i]);
            let mut vars: Vec<(Span, u64, u32)> = Vec::new();
            let mut named: Vec<GlobalId> = Vec::new();
            while let Some(j) = open.pop() {
                if j >= seen.len() || std::mem::replace(&mut seen[j], true) {
                    continue;
                }
                vars.extend(&self.facts[j].shared);
                named.extend(self.facts[j].globals.iter().map(|g| g.0));
                open.extend(self.next(j));
            }
            named.sort();
            named.dedup();
            let globals = named.iter().map(|g| self.module.global(*g)).filter(|g| g.space == Space::Shared);
            vars.extend(globals.map(|g| (g.span, g.size, g.align)));
            let end = vars
                .iter()
                .fold(0u64, |at, (_, size, align)| at.next_multiple_of(u64::from(*align)).saturating_add(*size));
            if end > limit {
                report.push(too_much_shared(f, &mut vars, end, limit));
            }
        }
    }

    /// Constant memory of the module, variables of bodies included.
    pub(super) fn constant_space(&self, report: &mut Report) {
        const LIMIT: u64 = 64 << 10;
        let counted = |g: &&Global| {
            let external = g.linkage == Linkage::Extern && self.options.relocatable;
            g.space == Space::Const && g.bank.is_none_or(|b| b == 0) && !external
        };
        let mut vars: Vec<(Span, u64, u32)> =
            self.module.globals.iter().filter(counted).map(|g| (g.span, g.size, g.align)).collect();
        vars.extend(self.facts.iter().flat_map(|f| &f.constants));
        let end = vars.iter().fold(0u64, |at, v| at.next_multiple_of(u64::from(v.2)).saturating_add(v.1));
        vars.sort_by_key(|v| (std::cmp::Reverse(v.1), v.0));
        let Some(largest) = vars.first().filter(|_| end > LIMIT) else { return };
        let mut d = Diagnostic::new(
            Code::ConstantSpace,
            largest.0,
            format!("the module has {end} bytes of constant memory; the limit is {LIMIT}"),
        )
        .here(format!("{} bytes", largest.1));
        for (at, size, _) in vars.iter().skip(1).take(7) {
            d = d.label(*at, format!("{size} bytes"));
        }
        report.push(d.help("keep large tables in `.global`"));
    }
}

fn too_much_shared(f: &Function, vars: &mut [(Span, u64, u32)], end: u64, limit: u64) -> Diagnostic {
    vars.sort_by_key(|v| (std::cmp::Reverse(v.1), v.0));
    let mut d = Diagnostic::new(
        Code::SharedSpace,
        f.span,
        format!("`{}` has {end} bytes of static shared memory; the limit is {limit}", f.name),
    );
    for (at, size, _) in vars.iter().filter(|v| v.1 > 0).take(8) {
        d = d.label(*at, format!("{size} bytes"));
    }
    d.help("use dynamic shared memory: `.extern .shared .align 16 .b8 s[];`")
}
