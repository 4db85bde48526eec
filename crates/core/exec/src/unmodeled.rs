//! Instructions that the check accepts and no engine executes: PTX ISA 9.2 and later, for hardware that could not be
//! observed yet.

use margay_isa::{Mod, Opcode, Type, Var, Variant};

/// Modifiers whose effect the engines do not model.
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

/// Whether every engine must refuse this instruction as unsupported.
pub fn unmodeled(v: &Variant) -> bool {
    match v.op {
        Opcode::Fabric | Opcode::Spcompress | Opcode::Spdecompress => true,
        // Mixed formats: it is not known what `.ftz` flushes where singles become `.f16`, nor how often sums of packed
        // bytes are rounded.
        Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Fma => {
            v.ty(Var::U).is_some() && !matches!(v.ty(Var::T), Some(Type::F32 | Type::F32x2 | Type::Bf16x2))
        }
        _ => WORDS.iter().any(|w| v.has(*w)),
    }
}
