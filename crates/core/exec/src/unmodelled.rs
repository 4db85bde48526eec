//! What the check knows and no engine executes: instructions of PTX ISA 9.2 and later for machines that nobody could observe yet.

use margay_isa::{Mod, Opcode, Type, Var, Variant};

/// Words that change what an instruction does in ways that the engines do not know.
const WORDS: &[Mod] = &[
    // tensor maps whose fields an instruction replaces
    Mod::OverrideGlobalAddress,
    // barriers that report what was copied
    Mod::ReportPer16Bytes8,
    Mod::ReportPer16Bytes80,
    Mod::ReportPer16Bytes8000,
    Mod::ReportPer16Bytes80000000,
    Mod::ReportPerElementFf,
    Mod::LayoutV1,
    Mod::CheckLayout,
    Mod::PhasePrimary,
    Mod::PhaseConditional,
    // products whose element types no manual at hand names
    Mod::KindTi16,
    // sparse loads from tensor memory, operands from look-up tables
    Mod::Spcompress,
    Mod::DecompressLutB,
    // policies for other devices' memory
    Mod::Fabric,
];

/// Whether every engine must end in "unsupported" at this instruction.
pub fn unmodelled(v: &Variant) -> bool {
    match v.op {
        Opcode::Fabric | Opcode::Spcompress | Opcode::Spdecompress => true,
        // Of several formats: what `.ftz` flushes where singles become `.f16`, and how often sums of packed bytes are rounded,
        // is not known.
        Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Fma => {
            v.ty(Var::U).is_some() && !matches!(v.ty(Var::T), Some(Type::F32 | Type::F32x2 | Type::Bf16x2))
        }
        _ => WORDS.iter().any(|w| v.has(*w)),
    }
}
