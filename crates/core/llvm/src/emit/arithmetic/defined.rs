//! Finds the registers of 32 bits that only certain instructions define, and copies of such registers.

use margay_ir::{FormalHome, Func, Operand, pass::liveness::inst_writes};
use margay_isa::{Opcode, Type, Variant};

/// How a register is defined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defined {
    /// Only by the requested rows and constants, and by copies of registers that are defined this way.
    pub only: bool,
    /// Not by constants alone.
    pub computed: bool,
}

/// The operands that a row copies bit by bit to a register of 32 bits.
fn copied<'o>(variant: &Variant, srcs: &'o [Operand]) -> Option<&'o [Operand]> {
    let word = matches!(variant.t(), Type::F32 | Type::B32);
    match (variant.op, srcs) {
        (Opcode::Mov, [_]) if word => Some(srcs),
        (Opcode::Selp, [_, _, _]) if word => Some(&srcs[..2]),
        (Opcode::Shfl, [_, ..]) => Some(&srcs[..1]),
        _ => None,
    }
}

/// By register: whether rows for which `row` is true define it, and constants for which `constant` is.
pub(super) fn defined_by(func: &Func, row: impl Fn(&Variant) -> bool, constant: impl Fn(f32) -> bool) -> Vec<Defined> {
    let mut found = vec![Defined { only: true, computed: false }; func.regs.len()];
    let is_word = |r: usize| func.regs[r].bits() == 32;
    // From a register to its copy.
    let mut copies = Vec::new();
    for inst in &func.insts {
        let variant = func.variant(inst);
        let operands = copied(variant, func.operands(inst.srcs));
        let good = operands.map_or_else(
            || row(variant),
            |operands| {
                operands.iter().all(|o| match o {
                    Operand::Imm(v) => constant(f32::from_bits(*v as u32)),
                    Operand::Reg(r) => is_word(r.0 as usize),
                    _ => false,
                })
            },
        );
        let mut first = true;
        inst_writes(func, inst, &mut |r| {
            let to = r.0 as usize;
            // The second destination of a shuffle is a predicate.
            found[to].only &= good && std::mem::take(&mut first) && is_word(to);
            let registers = operands.into_iter().flatten().filter_map(|o| match o {
                Operand::Reg(from) => Some(from.0 as usize),
                _ => None,
            });
            let before = copies.len();
            copies.extend(registers.map(|from| (from, to)));
            found[to].computed |= operands.is_none() || copies.len() > before;
        });
    }
    for home in func.params.iter() {
        if let FormalHome::Regs(regs) = home {
            regs.iter().for_each(|r| found[r.0 as usize].only = false);
        }
    }
    let mut changed = true;
    while changed {
        changed = false;
        for (from, to) in &copies {
            if found[*to].only && !found[*from].only {
                found[*to].only = false;
                changed = true;
            }
        }
    }
    found
}
