//! The lanes of its warp that an instruction waits for. The meaning of `.sync` is derived from the row, so that both engines agree, and a
//! new row needs no entry here.

use margay_isa::{Mod, Opcode, Variant, name};

/// The lanes of a warp that execute an instruction together: those that come first wait for the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Convergence {
    /// Each lane executes it for itself, or waits for threads of the CTA instead (`bar.sync`).
    Independent,
    /// The lanes that the operand `membermask` names (manual, sections 9.7.9.6 and 9.7.13).
    Members,
    /// All 32 lanes (manual, sections 9.7.13.16, 9.7.14 to 9.7.16 and 9.7.19.5).
    Warp,
}

impl Convergence {
    /// The convergence that an instruction requires.
    pub fn of(v: &Variant) -> Convergence {
        match () {
            _ if !v.has(Mod::Sync) => Convergence::Independent,
            _ if v.operands().any(|o| o.name == name::MEMBERMASK) => Convergence::Members,
            _ if matches!(v.op, Opcode::Bar | Opcode::Barrier) => Convergence::Independent,
            _ => Convergence::Warp,
        }
    }
}

/// Whether an instruction with [`Convergence::Warp`] does nothing beyond converging: everything is done at issue, so there is nothing to
/// order or to wait for. If lanes have ended, the others continue without them.
pub fn only_converges(v: &Variant) -> bool {
    match v.op {
        Opcode::Setmaxnreg => true,
        Opcode::Wgmma => !v.has(Mod::MmaAsync),
        Opcode::Tcgen05 => v.has(Mod::WaitLd) || v.has(Mod::WaitSt),
        _ => false,
    }
}

/// Whether the lanes of a warp exchange values in an operation (manual, sections 9.7.9.6 and 9.7.13.8 to 9.7.13.14). `activemask` is not
/// one of them: it waits for no other lane.
pub fn exchanges_values(op: Opcode) -> bool {
    matches!(op, Opcode::Shfl | Opcode::Vote | Opcode::Match | Opcode::Redux | Opcode::Elect)
}

/// The text of the fault of lanes that wait at such an instruction for others that will not come.
pub fn incomplete(v: &Variant, missing: u32) -> String {
    format!("`{v}` requires all 32 lanes of the warp; lanes {missing:#010x} have exited or do not execute it")
}
