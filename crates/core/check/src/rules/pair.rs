//! Tensor memory belongs to single CTAs or to pairs of them: the instructions of a kernel and its callees must agree on
//! `.cta_group` (manual, section 9.7.16.5).

use crate::body::{Facts, Walker};
use margay_isa::{Mod, Opcode};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
};

/// The first place of each group that a body names.
pub(crate) type Groups = [Option<Span>; 2];

/// Notes the groups of a body.
pub(crate) fn note(w: &mut Walker<'_, '_>) {
    for (group, word) in [Mod::CtaGroup1, Mod::CtaGroup2].into_iter().enumerate() {
        let named = |v: &margay_isa::Variant| v.op == Opcode::Tcgen05 && v.has(word);
        if w.body.variants.iter().any(named) {
            let first = w.body.insts.iter().find(|i| named(w.body.variant(i)));
            w.facts.groups[group] = first.map(|i| w.tree.instrs[i.node as usize].mnemonic);
        }
    }
}

/// The complaint about a kernel that reaches those functions.
pub(crate) fn mixed<'a>(name: &str, reached: impl Iterator<Item = &'a Facts>) -> Option<Diagnostic> {
    let mut groups = Groups::default();
    for facts in reached {
        for (group, found) in groups.iter_mut().zip(facts.groups) {
            *group = group.or(found);
        }
    }
    let [Some(one), Some(two)] = groups else { return None };
    let (first, second) = (one.min(two), one.max(two));
    Some(
        Diagnostic::new(
            Code::ModifierRule,
            second,
            format!("`{name}` uses tensor memory both per CTA (`.cta_group::1`) and per CTA pair (`.cta_group::2`)"),
        )
        .label(first, "the other group is here"),
    )
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::{codes, kernel};

    #[test]
    fn a_kernel_has_one_group() {
        let both = |a: &str, b: &str| codes(&kernel("8.8", "sm_100a", &format!("{a} [%r1]; {b} [%r2];")));
        let (one, two) = ("tcgen05.shift.cta_group::1.down", "tcgen05.shift.cta_group::2.down");
        assert_eq!(both(one, one), [""; 0]);
        assert_eq!(both(two, two), [""; 0]);
        assert_eq!(both(one, two), ["E0207"]);
    }
}
