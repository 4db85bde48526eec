//! Matrix instructions: constants that depend on the modifiers (manual, section 9.7.14.3).

use crate::body::{Candidate, Inst, Operand, Walker};
use margay_isa::Mod;
use margay_syntax::diag::{Code, Diagnostic};

/// Of a selector `{byte-id, thread-id}` the byte is one at which the scale factors of that vector size may begin, and the
/// thread one of the pair (for A) or quad (for B) that supplies them.
pub(crate) fn scale_selector(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    let bytes: &[i64] = match () {
        _ if c.variant.has(Mod::ScaleVec4X) => &[0],
        _ if c.variant.has(Mod::ScaleVec2X) || c.variant.has(Mod::KindMxf4) => &[0, 2],
        _ => &[0, 1, 2, 3],
    };
    let count = w.body.operands(inst.operands).len();
    // The selectors are the last operand and the last but two.
    for (index, threads) in [(count.wrapping_sub(3), 2), (count.wrapping_sub(1), 4)] {
        let Some(Operand::Vector(list)) = w.body.operands(inst.operands).get(index).copied() else { continue };
        let elements = w.body.operands(list);
        let byte = elements.first().is_some_and(|o| matches!(o, Operand::Int(v) if !bytes.contains(v)));
        let thread = elements.get(1).is_some_and(|o| matches!(o, Operand::Int(v) if !(0..threads).contains(v)));
        let operands = w.tree.operands(w.tree.instrs[inst.node as usize].operands);
        let Some(at) = operands.get(index).map(|o| o.span) else { continue };
        if byte {
            let choices: Vec<_> = bytes.iter().map(i64::to_string).collect();
            let text = format!("the byte selector is {} with this vector size", choices.join(" or "));
            w.report.push(Diagnostic::new(Code::ConstantRange, at, text));
        }
        if thread {
            let text = format!("the thread selector must be in 0..{}", threads - 1);
            w.report.push(Diagnostic::new(Code::ConstantRange, at, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::{codes, kernel};

    fn scaled(kind: &str, size: &str, ty: &str, a: &str, b: &str) -> Vec<&'static str> {
        codes(&kernel(
            "8.7",
            "sm_120a",
            &format!(
                "mma.sync.aligned.m16n8k64.row.col.kind::{kind}.block_scale{size}.f32.e2m1.e2m1.f32.{ty}
                 {{%f0,%f1,%f2,%f3}}, {{%r0,%r1,%r2,%r3}}, {{%r4,%r5}}, {{%f4,%f5,%f6,%f7}}, %r6, {a}, %r7, {b};"
            ),
        ))
    }

    #[test]
    fn selectors_follow_the_vector_size() {
        assert_eq!(scaled("mxf4", "", "ue8m0", "{2,1}", "{0,3}"), [""; 0]);
        assert_eq!(scaled("mxf4", "", "ue8m0", "{1,0}", "{0,0}"), ["E0315"]);
        assert_eq!(scaled("mxf4", "", "ue8m0", "{0,2}", "{0,0}"), ["E0315"]);
        assert_eq!(scaled("mxf4nvf4", ".scale_vec::4X", "ue4m3", "{0,0}", "{2,0}"), ["E0315"]);
        assert_eq!(scaled("mxf4nvf4", ".scale_vec::4X", "ue4m3", "{0,1}", "{0,3}"), [""; 0]);
    }

    #[test]
    fn fragments_and_addresses() {
        let on = |target: &str, text: &str| codes(&kernel("9.0", target, text));
        let d4 = "{%f0,%f1,%f2,%f3}";
        let ok =
            format!("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d4}, {{%r0,%r1,%r2,%r3}}, {{%r4,%r5}}, {d4};");
        assert_eq!(on("sm_80", &ok), [""; 0]);
        assert_eq!(on("sm_75", &ok).len(), 1);
        assert_eq!(on("sm_80", &ok.replace("{%r4,%r5}", "{%r4}")), ["E0307"]);
        assert_eq!(on("sm_80", &ok.replace("row.col", "col.col")).len(), 1);
        assert_eq!(on("sm_80", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r1];"), [""; 0]);
        assert_eq!(on("sm_80", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r0, [%r1];"), ["E0307"]);
        assert_eq!(on("sm_100a", "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0,%r1}, [%r2];"), [""; 0]);
        assert_eq!(on("sm_100a", "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0,%r1}, [%rd2];").len(), 1);
        assert_eq!(
            on(
                "sm_90a",
                "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd0, %rd1, %p0, 1, -1, 0, 1;"
            ),
            [""; 0]
        );
        assert_eq!(
            on(
                "sm_90a",
                "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd0, %rd1, %p0, 1, -1, 0, 1;"
            ),
            ["E0307"]
        );
        assert_eq!(on("sm_90", "wgmma.fence.sync.aligned;").len(), 1);
    }
}
