//! Instructions that ptxas expands into calls of its own functions. It then compares a register's `.align` with the
//! natural alignment of the parameter's type, although registers have no addresses and the manual does not mention this.
//! The set of these instructions depends on the target; it was determined with ptxas 13.5, form by form.

use crate::body::{Candidate, Inst, Operand, RegId, Walker};
use margay_isa::{Mod, Opcode, Role, Type, Variant};
use margay_syntax::diag::{Code, Diagnostic};

/// Which operands of an instruction become arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arguments {
    /// Those in braces.
    Vectors,
    /// All that are read.
    Sources,
    /// Results too.
    All,
}

fn expanded(v: &Variant, sm: u16) -> Option<Arguments> {
    let of = |t: Type| v.words.contains(&margay_isa::Word::Type(t));
    match v.op {
        Opcode::Wmma => Some(Arguments::Vectors),
        Opcode::Redux if sm < 90 => Some(Arguments::All),
        Opcode::Barrier if sm < 90 && !v.has(Mod::Cluster) => {
            Some(if v.has(Mod::Red) { Arguments::All } else { Arguments::Sources })
        }
        Opcode::Bar if v.has(Mod::Warp) && sm < 90 => Some(Arguments::Sources),
        Opcode::Shfl | Opcode::Vote | Opcode::Match if v.has(Mod::Sync) && sm < 90 => Some(Arguments::Sources),
        Opcode::Mma if v.has(Mod::M8n8k4) && of(Type::F16) && sm >= 80 => Some(Arguments::Vectors),
        Opcode::Mma if (of(Type::U4) || of(Type::S4)) && sm >= 90 => Some(Arguments::Vectors),
        Opcode::Mma if of(Type::B1) && sm >= 100 => Some(Arguments::Vectors),
        _ => None,
    }
}

/// After a matrix instruction: special registers among the results are not arguments.
pub(crate) fn results(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    let Some(Operand::Vector(list)) = w.body.operands(inst.operands).first().copied() else { return };
    if !w.body.operands(list).iter().any(|o| matches!(o, Operand::Special(..))) {
        return;
    }
    if expanded(&c.variant, w.module.target.sm).is_some() {
        let instr = &w.tree.instrs[inst.node as usize];
        let Some(at) = w.tree.operands(instr.operands).first().map(|o| o.span) else { return };
        let message = format!("`{}` cannot write a special register", w.tree.str(instr.mnemonic));
        w.report.push(Diagnostic::new(Code::SpecialRegister, at, message));
    }
}

/// After an instruction of a body that declares registers with an alignment.
#[cold]
pub(crate) fn check(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    let Some(arguments) = expanded(&c.variant, w.module.target.sm) else { return };
    let operands = w.body.operands(inst.operands);
    let mut found: Vec<(usize, RegId)> = Vec::new();
    for (i, operand) in operands.iter().enumerate() {
        let result = c.variant.row().operands.get(i).is_some_and(|o| matches!(o.role, Role::Dst));
        match operand {
            Operand::Reg(r) if arguments != Arguments::Vectors && (!result || arguments == Arguments::All) => {
                found.push((i, *r));
            }
            Operand::Vector(list) => {
                let registers = w.body.operands(*list).iter();
                found.extend(registers.filter_map(|o| if let Operand::Reg(r) = o { Some((i, *r)) } else { None }));
            }
            _ => {}
        }
    }
    for (i, reg) in found {
        let decl = *w.body.decl(reg);
        let natural = decl.ty.bits().div_ceil(8).max(1);
        let Some(align) = w.register_alignment(reg).filter(|a| *a > natural && decl.ty != Type::Pred) else { continue };
        let tree = w.tree;
        let instr = &tree.instrs[inst.node as usize];
        let Some(at) = tree.operands(instr.operands).get(i).map(|o| o.span) else { continue };
        let name = tree.str(instr.mnemonic);
        let d = Diagnostic::new(
            Code::CallAlignment,
            at,
            format!("a register aligned to {align} cannot be an operand of `{name}`"),
        )
        .label(decl.name, format!("`{}` has {natural} bytes", decl.ty))
        .note("ptxas implements this instruction as a call, whose arguments have the alignment of their type")
        .help("remove `.align`: registers have no addresses");
        return w.report.ptxas_only(d);
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::{codes, kernel};

    /// Each as ptxas 13.5 has it.
    #[test]
    fn aligned_registers() {
        let of = |sm: &str, align: u32, text: &str| {
            codes(&kernel("8.5", sm, &format!(".reg .align {align} .b32 %a<4>;\nmov.b32 %a1, 1;\n{text}")))
        };
        assert_eq!(of("sm_80", 8, "bar.warp.sync %a1;"), ["E0522"]);
        assert!(of("sm_80", 4, "bar.warp.sync %a1;").is_empty());
        assert!(of("sm_80", 2, "bar.warp.sync %a1;").is_empty());
        assert!(of("sm_90", 8, "bar.warp.sync %a1;").is_empty());
        assert!(of("sm_80", 8, "bar.sync %a1;").is_empty());
        assert_eq!(of("sm_80", 8, "barrier.sync %a1;"), ["E0522"]);
        let load = "wmma.load.a.sync.aligned.row.m8n8k32.s4 {%a0}, [%rd0];";
        assert_eq!(of("sm_90", 16, load), ["E0522"]);
    }
}
