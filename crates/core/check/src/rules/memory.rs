//! `ld`, `st` and similar instructions: the width of vectors, and cache hints (manual, sections 9.7.9.8 to 9.7.9.11).

use crate::body::{Candidate, Inst, Operand, Walker};
use crate::report::{lacking, since};
use margay_isa::{Mod, Word};
use margay_syntax::diag::{Code, Diagnostic};

/// Bits that one access moves.
fn bits(c: &Candidate) -> u32 {
    c.variant.t().bits() * c.variant.vec()
}

/// Vectors of at most 128 bits; of 256 in generic or global memory.
pub(crate) fn vector_width(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    if bits(c) <= 128 {
        return;
    }
    let at = w.tree.instrs[inst.node as usize].mnemonic;
    let far = matches!(c.space, None | Some(Mod::Global));
    let shape =
        (c.variant.vec() == 8 && c.variant.t().bits() == 32) || (c.variant.vec() == 4 && c.variant.t().bits() == 64);
    if !far || !shape {
        return narrow_vector(w, c, inst);
    }
    if let Some(lack) = lacking(w.module, &since(8, 8, 100)) {
        let d = lack.diagnose(w.module, "an access of 256 bits", at);
        w.report.push(d);
    }
}

/// Vectors of at most 128 bits.
pub(crate) fn narrow_vector(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    if bits(c) <= 128 {
        return;
    }
    let at = w.tree.instrs[inst.node as usize].mnemonic;
    let (n, ty) = (c.variant.vec(), c.variant.t());
    w.report.push(
        Diagnostic::new(
            Code::ModifierRule,
            at,
            format!("`.v{n}{ty}` has {} bits; an access has at most 128 here", bits(c)),
        )
        .note("accesses of 256 bits require generic or global addresses and `.v8.b32` or `.v4.b64`"),
    );
}

/// Hints about caches are for generic and global addresses.
pub(crate) fn global_hint(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    let hint = c.variant.words.iter().find_map(|word| match word {
        Word::Mod(m) if m.is_cache_hint() => Some(*m),
        _ => None,
    });
    let (Some(hint), Some(space)) = (hint, c.space.filter(|s| *s != Mod::Global)) else { return };
    let at = w.tree.instrs[inst.node as usize].mnemonic;
    w.report.push(Diagnostic::new(
        Code::ModifierRule,
        at,
        format!("`.{}` is only for generic and global addresses, not for `.{}`", hint.name(), space.name()),
    ));
}

/// A register declared as a vector, where ptxas takes vectors in braces only.
pub(crate) fn braced_vector(w: &mut Walker<'_, '_>, inst: &Inst) {
    let vector = |o: &Operand| match o {
        Operand::Reg(r) => Some(*w.body.decl(*r)).filter(|d| d.vector > 1),
        _ => None,
    };
    let found = w.body.operands(inst.operands).iter().enumerate().find_map(|(i, o)| Some((i, vector(o)?)));
    let Some((i, decl)) = found else { return };
    let instr = &w.tree.instrs[inst.node as usize];
    let Some(at) = w.tree.operands(instr.operands).get(i).map(|o| o.span) else { return };
    let (name, text) = (w.tree.str(at), w.tree.str(instr.mnemonic));
    let elements: Vec<String> = "xyzw".chars().take(decl.vector.into()).map(|e| format!("{name}.{e}")).collect();
    let braced = format!("{{{}}}", elements.join(", "));
    w.report.ptxas_only(
        Diagnostic::new(Code::OperandForm, at, format!("`{text}` takes the registers of a vector in braces"))
            .label(decl.name, "declared as a vector")
            .fix(at, braced, "name its elements"),
    );
}

/// An L2 eviction priority needs 256 bits.
pub(crate) fn wide_eviction(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    let priority = c.variant.words.iter().find_map(|word| match word {
        Word::Mod(m) if m.is_l2_eviction() => Some(*m),
        _ => None,
    });
    if let Some(m) = priority.filter(|_| bits(c) != 256) {
        let at = w.tree.instrs[inst.node as usize].mnemonic;
        w.report.push(
            Diagnostic::new(
                Code::ModifierRule,
                at,
                format!("`.{}` requires an access of 256 bits; this one has {}", m.name(), bits(c)),
            )
            .help("use `.v8.b32` or `.v4.b64`, or `.L2::cache_hint` with a policy"),
        );
    }
}

/// The fraction of `createpolicy.fractional`: greater than 0 and at most 1 (section 9.7.9.18), as a single-precision number.
pub(crate) fn policy_fraction(w: &mut Walker<'_, '_>, inst: &Inst) {
    let Some(&Operand::Float { bits, single }) = w.body.operands(inst.operands).get(1) else { return };
    let value = if single { f32::from_bits(bits as u32) } else { f64::from_bits(bits) as f32 };
    if value > 0.0 && value <= 1.0 {
        return;
    }
    let instr = &w.tree.instrs[inst.node as usize];
    let at = w.tree.operands(instr.operands).get(1).map_or(instr.span, |o| o.span);
    let message = format!("the fraction of accesses must be greater than 0 and at most 1, found {value:?}");
    w.report.push(Diagnostic::new(Code::ConstantRange, at, message));
}

/// The sizes of `createpolicy.range`: the primary one is at most the total one (section 9.7.9.18), as unsigned numbers of 32 bits.
pub(crate) fn policy_range(w: &mut Walker<'_, '_>, inst: &Inst) {
    let &[_, _, Operand::Int(primary), Operand::Int(total)] = w.body.operands(inst.operands) else { return };
    if primary as u32 <= total as u32 {
        return;
    }
    let instr = &w.tree.instrs[inst.node as usize];
    let at = w.tree.operands(instr.operands).get(2).map_or(instr.span, |o| o.span);
    let (primary, total) = (primary as u32, total as u32);
    let message = format!("the primary size must be at most the total size, {total}, found {primary}");
    w.report.push(Diagnostic::new(Code::ConstantRange, at, message));
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::{codes, kernel};

    /// Each as ptxas 13.5 has it.
    #[test]
    fn unified_addresses() {
        let body = |text: &str| codes(&kernel("8.0", "sm_80", &format!(".local .b32 l; {text}")));
        for good in [
            "ld.global.b32 %r0, [%rd0].unified;",
            "ld.b32 %r0, [%rd0+4] .unified;",
            "ld.global.L2::cache_hint.b32 %r0, [%rd0].unified, %rd1;",
            "ld.acquire.sys.b32 %r0, [%rd0].unified;",
            "atom.global.add.u32 %r0, [%rd0].unified, 1;",
        ] {
            assert!(body(good).is_empty(), "{good}");
        }
        for bad in [
            "ld.local.b32 %r0, [l].unified;",
            "ld.shared.b32 %r0, [%r1].unified;",
            "st.global.b32 [%rd0].unified, %r0;",
            "ld.global.b32 %r0, [%rd0].foo;",
            "ld.global.b32 %r0, [%rd0].unified.unified;",
        ] {
            assert_eq!(body(bad).len(), 1, "{bad}");
        }
    }
}
