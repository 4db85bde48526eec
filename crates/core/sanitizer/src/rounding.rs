//! Values that differ only by rounding.
//!
//! Lanes that add up by butterfly shuffles all have the same sum, except that it may be rounded differently: of `a * a + b * b`, one lane
//! has fused the one product and its partner the other. Triton lets all lanes store what their warp has computed like this. Such stores count
//! as stores of the same value, as all of the values are equally good.

use crate::{hash::Map, instructions, site::Place};
use margay_exec::{Image, LANES};
use margay_ir::{
    Func, Inst, Operand, VReg,
    pass::liveness::{defines, only_definition},
};
use margay_isa::{Effect, Mod, Opcode};

/// By function and position of a store: the bits in which lanes may differ that store a value that is the same up to rounding.
pub type Butterflies = Map<(u32, u32), u32>;

/// Whether what two lanes store at a place is the same up to rounding.
pub fn alike(known: &mut Butterflies, image: &Image, place: Place, (a, b): (u32, u32)) -> bool {
    let find = || {
        let func = image.ir.func(place.0);
        instructions(func, place.1).fold(LANES as u32 - 1, |all, i| all & stored(func, &func.insts[i as usize]))
    };
    let covered = *known.entry((place.0.0, place.1.span.start)).or_insert_with(find);
    (a ^ b) & !covered == 0
}

/// The bits for all values that a store stores.
fn stored(func: &Func, store: &Inst) -> u32 {
    let mut values = func.operands(store.srcs).iter().filter(|o| !matches!(o, Operand::Mem(..)));
    let of = |value: &Operand| match value {
        Operand::Reg(r) => butterflies(func, *r),
        _ => 0,
    };
    match values.next() {
        Some(first) => values.fold(of(first), |all, value| all & of(value)),
        None => 0,
    }
}

/// The bits of the lanes' numbers over which butterfly shuffles have spread a value that is the result of floating-point arithmetic.
fn butterflies(func: &Func, value: VReg) -> u32 {
    let mut seen = vec![value];
    let (mut at, mut covered) = (0, 0);
    while let Some(&reg) = seen.get(at) {
        at += 1;
        for inst in func.insts.iter().filter(|inst| defines(func, inst, reg)) {
            let variant = func.variant(inst);
            let srcs = func.operands(inst.srcs);
            let exchanges = variant.op == Opcode::Shfl;
            match (variant.op.row().effect, srcs) {
                _ if reg == value && !(variant.op.row().effect == Effect::Pure && variant.t().is_float()) => return 0,
                (_, [_, mask, ..]) if exchanges && variant.has(Mod::Bfly) => {
                    // In a loop, all masks may come.
                    covered |= constant(func, *mask).unwrap_or(u32::MAX) & (LANES as u32 - 1);
                }
                (Effect::Pure, _) => {}
                _ => continue,
            }
            for operand in if exchanges { &srcs[..1] } else { srcs } {
                if let Operand::Reg(r) = operand
                    && !seen.contains(r)
                {
                    seen.push(*r);
                }
            }
        }
    }
    covered
}

/// The value of an operand that is a constant, or a register that one `mov` sets to one.
fn constant(func: &Func, operand: Operand) -> Option<u32> {
    let reg = match operand {
        Operand::Imm(bits) => return Some(bits as u32),
        Operand::Reg(reg) => reg,
        _ => return None,
    };
    let inst = only_definition(func, reg).filter(|inst| func.variant(inst).op == Opcode::Mov)?;
    match func.operands(inst.srcs) {
        [Operand::Imm(bits), ..] => Some(*bits as u32),
        _ => None,
    }
}
