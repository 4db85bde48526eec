//! Textures and surfaces: texturing modes, handles in registers, residency (manual, sections 9.7.10 and 9.7.11).

use crate::Extent;
use crate::body::{Candidate, Inst, Operand, Walker};
use crate::report::{lacking, since};
use margay_isa::{Kind as TypeKind, Opcode, Role, Type, Version};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
    tree::Kind,
};

/// The span of operand `index` as written.
fn at(w: &Walker<'_, '_>, inst: &Inst, index: usize) -> Option<Span> {
    w.tree.operands(w.tree.instrs[inst.node as usize].operands).get(index).map(|o| o.span)
}

/// `mov`: the address of a texture, sampler or surface, for indirect access, which the manual has since PTX ISA 3.1. Its type is
/// `.u64`. ptxas asks none of this of arrays and of addresses with an offset. True if the instruction is such a `mov`.
pub(crate) fn address(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) -> bool {
    let [_, Operand::Symbol(symbol, _)] = *w.body.operands(inst.operands) else { return false };
    let (ty, _) = w.type_of_symbol(symbol);
    let operands = w.tree.operands(w.tree.instrs[inst.node as usize].operands);
    let plain = operands.get(1).filter(|o| matches!(o.kind, Kind::Name));
    let (true, Extent::Scalar, Some(at)) = (ty.kind() == TypeKind::Opaque, w.symbol_extent(symbol), plain) else {
        return false;
    };
    let (at, name) = (at.span, w.tree.str(at.span));
    let first = if ty == Type::SamplerRef { since(4, 3, 30) } else { since(3, 1, 20) };
    // Textures had no addresses in independent mode at first: they were useless without those of samplers.
    let mode = w.module.texmode_independent && ty == Type::TexRef && w.module.version < Version::new(4, 0);
    if let Some(lack) = lacking(w.module, &first) {
        let d = lack.diagnose(w.module, &format!("the address of a `{ty}`"), at);
        w.report.push(d);
    } else if mode && w.module.version_at.is_some() {
        let message = format!("in independent texturing mode, the address of a `{ty}` needs PTX ISA 4.0");
        w.report.push(Diagnostic::new(Code::TooNew, at, message).help("name the texture where it is used"));
    }
    if c.variant.t() != Type::U64 {
        let message =
            format!("the address of `{name}`, a `{ty}`, is a `.u64`, but `{}` moves a `{}`", c.variant, c.variant.t());
        let d = Diagnostic::new(Code::OperandType, at, message).help(format!("write `mov.u64 %rd, {name};`"));
        if c.variant.t().bits() == 64 { w.report.ptxas_only(d) } else { w.report.push(d) }
    }
    true
}

/// A register as a handle: indirect access came later than the references themselves, and that of samplers last.
pub(crate) fn handle_register(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    // A sampler beside the texture. Queries of either have been as they are since PTX ISA 3.1.
    let samples = matches!(c.variant.op, Opcode::Tex | Opcode::Tld4) && w.module.texmode_independent;
    let first = if samples { since(4, 3, 30) } else { since(3, 1, 20) };
    let Some(lack) = lacking(w.module, &first) else { return };
    let operands = w.body.operands(inst.operands);
    let Some(index) = c.wants.iter().position(|want| matches!(want.opnd.role, Role::Group(_))) else { return };
    let Some(Operand::Group(list)) = operands.get(index) else { return };
    let handles = w.body.operands(*list).iter().zip(c.inside(&c.wants[index]));
    let register = handles.into_iter().any(|(o, want)| {
        matches!(want.opnd.role, Role::Handle(_)) && matches!(o, Operand::Reg(_) | Operand::Element(..))
    });
    if let (true, Some(span)) = (register, at(w, inst, index)) {
        let d = lack.diagnose(w.module, "a handle in a register", span);
        w.report.push(d);
    }
}

/// `|p`: whether the texel is resident.
pub(crate) fn resident_predicate(w: &mut Walker<'_, '_>, _c: &Candidate, inst: &Inst) {
    if !matches!(w.body.operands(inst.operands).first(), Some(Operand::Pair(_))) {
        return;
    }
    if let (Some(lack), Some(span)) = (lacking(w.module, &since(7, 1, 60)), at(w, inst, 0)) {
        let d = lack.diagnose(w.module, "a predicate in addition to the texel", span);
        w.report.push(d);
    }
}

/// Until PTX ISA 1.1 coordinates were one register or a vector of four.
pub(crate) fn short_coordinates(w: &mut Walker<'_, '_>, inst: &Inst) {
    if w.module.version >= Version::new(1, 2) || w.module.version_at.is_none() {
        return;
    }
    let operands = w.tree.operands(w.tree.instrs[inst.node as usize].operands);
    let Some(Kind::Brackets(list)) = operands.get(1).map(|o| o.kind) else { return };
    let Some(coordinates) = w.tree.operands(list).last() else { return };
    let Kind::Braces(elements) = coordinates.kind else { return };
    if w.tree.operands(elements).len() < 4
        && let Some(lack) = lacking(w.module, &since(1, 2, 0))
    {
        let d = lack.diagnose(w.module, "a vector of fewer than four coordinates", coordinates.span);
        w.report.push(d.help("pad the vector with unused elements: `{x, y, y, y}`"));
    }
}

/// Samplers are named exactly in independent mode.
pub(crate) fn mode(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst, independent: bool) {
    if w.module.texmode_independent == independent {
        return;
    }
    let index = c.wants.iter().position(|want| matches!(want.opnd.role, Role::Group(_))).unwrap_or(0);
    let Some(span) = at(w, inst, index) else { return };
    let d = if independent {
        Diagnostic::new(Code::OperandForm, span, "in unified texturing mode, a texture includes its sampler")
            .help("omit the sampler, or write `.target ..., texmode_independent`")
    } else {
        Diagnostic::new(Code::OperandForm, span, "in independent texturing mode, a sampler is required")
            .help("write `[texture, sampler, coordinates]`")
    };
    w.report.push(d);
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::codes;

    fn verdict(target: &str, version: &str, text: &str) -> Vec<&'static str> {
        let sampler = if target.contains("independent") { ".global .samplerref smp;" } else { "" };
        codes(&format!(
            ".version {version} .target {target} .global .texref tex0; {sampler} .global .surfref srf;
             .entry k() {{ .reg .pred %p<4>; .reg .b32 %r<16>; .reg .f32 %f<16>; .reg .b64 %rd<4>; {text} exit; }}"
        ))
    }
    const PLAIN: &str = "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [tex0, {%f4,%f5}];";
    const SAMPLED: &str = "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [tex0, smp, {%f4,%f5}];";

    #[test]
    fn samplers_belong_to_independent_mode() {
        assert_eq!(verdict("sm_80", "8.0", PLAIN), [""; 0]);
        assert_eq!(verdict("sm_80, texmode_independent", "8.0", SAMPLED), [""; 0]);
        assert_eq!(verdict("sm_80, texmode_independent", "8.0", PLAIN), ["E0319"]);
        assert_eq!(verdict("sm_80", "8.0", &PLAIN.replace("tex0,", "tex0, %rd0,")), ["E0319"]);
    }

    #[test]
    fn coordinates() {
        let tex = |rest: &str| verdict("sm_80", "8.0", &format!("tex.{rest};"));
        let texel = "{%f0,%f1,%f2,%f3}";
        assert_eq!(tex(&format!("1d.v4.f32.f32 {texel}, [tex0, %f4]")), [""; 0]);
        assert_eq!(tex(&format!("1d.v4.f32.s32 {texel}, [tex0, {{%r4}}]")), [""; 0]);
        assert_eq!(tex(&format!("a1d.v4.f32.f32 {texel}, [tex0, {{%r4,%f5}}]")), [""; 0]);
        assert_eq!(tex(&format!("a2d.v4.f32.f32 {texel}, [tex0, {{%r4,%f5,%f6,%f6}}]")), [""; 0]);
        assert_eq!(tex(&format!("a1d.v4.f32.f32 {texel}, [tex0, {{%f4,%f5}}]")), ["E0302"]);
        assert_eq!(tex(&format!("3d.v4.f32.f32 {texel}, [tex0, {{%f4,%f5}}]")), ["E0307"]);
        assert_eq!(tex(&format!("2d.v4.f32.f32 {texel}, [tex0, {{%f4,%f5}}], {{%r0,%r1}}, %f7")), [""; 0]);
        assert_eq!(tex(&format!("2d.v4.f32.f32 {texel}|%p0, [%rd0, {{%f4,%f5}}], %f7")), [""; 0]);
        assert_eq!(tex(&format!("level.2d.v4.f32.f32 {texel}, [tex0, {{%f4,%f5}}], %f7")), [""; 0]);
        assert_eq!(tex(&format!("grad.1d.v4.f32.f32 {texel}, [tex0, %f4], %f7, %f8")).len(), 2);
    }

    /// ptxas 13.5: "Arguments mismatch for instruction 'tex'" for each of these, also for an array of one.
    #[test]
    fn arrays_of_handles() {
        let with = |module: &str, text: &str| {
            codes(&format!(
                ".version 8.0 .target sm_90 {module} .entry k(.param .texref p[2]) {{
                 .reg .b32 %r<2>; .reg .f32 %f<4>; .reg .b64 %h; {text} ret; }}"
            ))
        };
        let tex = |name: &str| format!("tex.1d.v4.f32.s32 {{%f0,%f1,%f2,%f3}}, [{name}, {{%r0}}];");
        let module = ".global .texref t[2]; .global .texref one[1]; .global .surfref s[2];";
        for text in [&tex("t"), &tex("one"), &tex("p"), "txq.width.b32 %r0, [t];", "suq.width.b32 %r0, [s];"] {
            assert_eq!(with(module, text), ["E0302"], "{text}");
        }
        assert_eq!(with(module, &format!("mov.b64 %h, t; {}", tex("%h"))), [""; 0]);
    }

    /// Section 5.1.8, and ptxas's "Variable 't' must be type .u32 or .u64".
    #[test]
    fn types_of_texture_variables() {
        let tex = |declaration: &str| {
            codes(&format!(".version 1.4 .target sm_13 .tex {declaration}; .entry k() {{ exit; }}"))
        };
        assert_eq!([tex(".u32 t"), tex(".u64 t")], [[""; 0]; 2]);
        for wrong in [".s32 t", ".b32 t", ".f32 t", ".v2 .u32 t", ".u32 t[2]"] {
            assert_eq!(tex(wrong), ["E0121"], "{wrong}");
        }
    }

    /// ptxas 13.5: "Illegal type for .common symbol", which it does not ask of arrays.
    #[test]
    fn common_handles() {
        let common = |t: &str| codes(&format!(".version 8.0 .target sm_90 .common .global {t}; .entry k() {{ ret; }}"));
        assert_eq!([common(".texref t"), common(".surfref t")], [["E0132"]; 2]);
        assert_eq!([common(".texref t[2]"), common(".u32 t")], [[""; 0]; 2]);
    }

    /// ptxas 13.5: "Feature 'indirect texture access' requires PTX ISA .version 3.1 or later", "Feature 'indirect sampler
    /// access' requires PTX ISA .version 4.3 or later", "Indirect access to texture requires .u64 type" and "... requires
    /// unified texture mode".
    #[test]
    fn addresses_of_handles() {
        let unified = |version: &str, text: &str| verdict("sm_30", version, text);
        let independent = |version: &str, text: &str| verdict("sm_30, texmode_independent", version, text);
        for name in ["tex0", "srf"] {
            let address = format!("mov.u64 %rd0, {name};");
            assert_eq!(unified("3.0", &address), ["E0601"]);
            assert_eq!(unified("3.1", &address), [""; 0]);
            for narrow in [format!("mov.u32 %r0, {name};"), format!("mov.b32 %r0, {name};")] {
                assert_eq!(unified("8.0", &narrow), ["E0302"], "{narrow}");
            }
            for other in [format!("mov.b64 %rd0, {name};"), format!("mov.s64 %rd0, {name};")] {
                assert_eq!(unified("8.0", &other), ["E0302"], "{other}");
            }
            assert_eq!(unified("8.0", &format!("mov.b64 %rd0, {name}+8;")), [""; 0]);
        }
        assert_eq!(independent("4.2", "mov.u64 %rd0, smp;"), ["E0601"]);
        assert_eq!(independent("4.3", "mov.u64 %rd0, smp;"), [""; 0]);
        assert_eq!(independent("3.2", "mov.u64 %rd0, tex0;"), ["E0601"]);
        assert_eq!(independent("3.2", "mov.u64 %rd0, srf;"), [""; 0]);
        assert_eq!(independent("4.0", "mov.u64 %rd0, tex0;"), [""; 0]);
    }

    /// ptxas 13.5: "Illegal expression '%v'". Without braces, what a vector holds beyond the coordinates is ignored.
    #[test]
    fn vectors_in_vectors() {
        let on = |text: &str| verdict("sm_80", "8.0", &format!(".reg .v2 .f32 %v; .reg .v2 .b32 %w; {text}"));
        assert_eq!(on("tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [tex0, %v];"), [""; 0]);
        assert_eq!(on("tex.1d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [tex0, %v];"), [""; 0]);
        for text in [
            "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [tex0, {%v,%f2}];",
            "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [tex0, {%f1,%v}];",
            "suld.b.2d.b32.trap %r1, [srf, {%w,%r2}];",
            "suld.b.1d.v2.b32.trap {%w,%r1}, [srf, {%r2}];",
            "sust.b.1d.v2.b32.trap [srf, {%r2}], {%r1,%w};",
        ] {
            assert_eq!(on(text), ["E0307"], "{text}");
        }
    }

    #[test]
    fn features_of_later_versions() {
        let indirect = PLAIN.replace("tex0", "%rd0");
        assert_eq!(verdict("sm_30", "3.1", &indirect), [""; 0]);
        assert_eq!(verdict("sm_30", "3.0", &indirect).len(), 1);
        let sampled = SAMPLED.replace("smp", "%rd0");
        let independent =
            |sm: &str, version: &str, text: &str| verdict(&format!("{sm}, texmode_independent"), version, text);
        assert_eq!(independent("sm_30", "4.3", &sampled), [""; 0]);
        assert_eq!(independent("sm_30", "4.2", &sampled), ["E0601"]);
        assert_eq!(independent("sm_20", "4.3", &sampled), ["E0601"]);
        let resident = PLAIN.replace("%f3}", "%f3}|%p0");
        assert_eq!(verdict("sm_60", "7.1", &resident), [""; 0]);
        assert_eq!(verdict("sm_60", "7.0", &resident).len(), 1);
        assert_eq!(verdict("sm_53", "7.1", &resident).len(), 1);
    }

    /// As ptxas 13.5 has it of a `.tex` variable.
    #[test]
    fn coordinates_of_the_first_versions() {
        let old = |version: &str, rest: &str| {
            codes(&format!(
                ".version {version} .target sm_11 .tex .u32 tex0;
                 .entry k() {{ .reg .f32 %f<16>; tex.{rest}; exit; }}"
            ))
        };
        let texel = "v4.f32.f32 {%f0,%f1,%f2,%f3}";
        for (version, short) in [("1.0", &["E0601"][..]), ("1.1", &["E0601"]), ("1.2", &[])] {
            assert_eq!(old(version, &format!("2d.{texel}, [tex0, {{%f4,%f5}}]")), short);
            assert_eq!(old(version, &format!("1d.{texel}, [tex0, {{%f4}}]")), short);
            assert_eq!(old(version, &format!("2d.{texel}, [tex0, {{%f4,%f5,%f5,%f5}}]")), [""; 0]);
            assert_eq!(old(version, &format!("1d.{texel}, [tex0, %f4]")), [""; 0]);
        }
    }

    #[test]
    fn surfaces() {
        let on = |text: &str| verdict("sm_80", "8.0", text);
        assert_eq!(on("suld.b.2d.v2.b32.clamp {%r0,%r1}, [srf, {%r2,%r3}];"), [""; 0]);
        assert_eq!(on("suld.b.1d.v4.b64.clamp {%rd0,%rd1,%rd2,%rd3}, [srf, %r2];"), ["E0207"]);
        assert_eq!(on("sust.p.1d.b32.zero [srf, {%r2}], %r0;"), [""; 0]);
        assert_eq!(on("sured.b.add.1d.u32.trap [%rd0, {%r2}], %r0;"), [""; 0]);
        assert_eq!(on("suq.width.b32 %r0, [srf];"), [""; 0]);
        assert_eq!(on("suq.width.b32 %r0, [tex0];").len(), 1);
        assert_eq!(on("txq.level.height.b32 %r0, [tex0], 1;"), [""; 0]);
        assert_eq!(on("istypep.texref %p0, %rd0;"), [""; 0]);
    }
}
