//! CTAs whose lanes follow `%tid.y` instead of `%tid.x`.
//!
//! Neighboring threads of a warp differ in `%tid.x` (CUDA C++ Programming Guide, "Thread Hierarchy"), and their accesses are contiguous if they
//! access neighboring elements. A kernel that takes `%tid.x` for the row of a matrix accesses a column with each warp. If threads neither
//! communicate nor ask for their lane, no result depends on which of them form a warp. So the code may be that of a CTA whose first two
//! dimensions are exchanged: `%tid.x` reads the second coordinate of a thread, and `%tid.y` the first.

use crate::emit::function::prepare::graph;
use margay_ir::{
    Func, FuncId, Ir, MemBase, MemSpace, Operand, Placed,
    pass::{Shape, Uniformity, WarpShape, is_weak, propagate_constants, reachable},
};
use margay_isa::{Component, Effect, Opcode, Special};

/// The cost of a gather, in contiguous accesses.
const GATHER: u64 = 16;

/// A block shape with its first two dimensions exchanged.
pub fn exchanged([x, y, z]: [u32; 3]) -> [u32; 3] {
    [y, x, z]
}

/// Whether code for the exchanged block shape computes the same as that for `block`, with far more contiguous accesses.
pub fn gains(ir: &Ir<Placed>, kernel: FuncId, block: [u32; 3]) -> bool {
    let func = ir.func(kernel);
    if block[0] < 2 || block[1] < 2 || !is_independent(func) || reachable(ir, kernel).len() > 1 {
        return false;
    }
    let mut as_exchanged = func.clone();
    exchange(&mut as_exchanged);
    3 * cost(as_exchanged, exchanged(block)) < 2 * cost(func.clone(), block)
}

/// Makes a function read the coordinates of threads from the exchanged dimensions.
pub fn exchange(func: &mut Func) {
    for operand in &mut func.operands {
        if let Operand::Special(Special::Tid | Special::Ntid, component) = operand {
            *component = match *component {
                Component::X => Component::Y,
                Component::Y => Component::X,
                other => other,
            };
        }
    }
}

/// Whether threads communicate neither within warps nor by shared memory, atomics or strong accesses, and use no number of a lane or warp.
fn is_independent(func: &Func) -> bool {
    let numbered = |o: &Operand| {
        use Special::*;
        let lanes = [LaneId, WarpId, NwarpId, LanemaskEq, LanemaskLe, LanemaskLt, LanemaskGe, LanemaskGt];
        matches!(o, Operand::Special(special, _) if lanes.contains(special))
    };
    func.frame.is_empty()
        && func.calls.is_empty()
        && !func.operands.iter().any(numbered)
        && func.insts.iter().all(|inst| {
            let variant = func.variant(inst);
            let private = matches!(inst.space, Some(MemSpace::Shared | MemSpace::SharedCluster | MemSpace::Local));
            !private
                && match variant.op.row().effect {
                    Effect::Pure | Effect::Machine | Effect::Control => true,
                    Effect::Memory => matches!(variant.op, Opcode::Ld | Opcode::St) && is_weak(variant),
                    Effect::Call | Effect::Warp => false,
                }
        })
}

/// The cost of a warp's accesses in a CTA of this shape, in contiguous accesses.
fn cost(mut func: Func, block: [u32; 3]) -> u64 {
    propagate_constants(&mut func);
    let cfg = graph(&func);
    let uniformity = Uniformity::new(&func, &cfg, WarpShape { block: Some(block), ..WarpShape::default() });
    let of_address = |operand: &Operand| {
        let Operand::Mem(MemBase::Reg(r), _) = operand else { return 0 };
        let r = r.0 as usize;
        let shape = match uniformity.shapes[r] {
            Shape::Varying => uniformity.hints[r],
            known => known,
        };
        match shape {
            Shape::Uniform => 1,
            Shape::Affine { width, stride } if stride.unsigned_abs() <= 16 => {
                u64::from(32 / width.max(1)).clamp(1, GATHER)
            }
            _ => GATHER,
        }
    };
    let mut sum = 0u64;
    for (position, b) in (0..).zip(&cfg.order) {
        for inst in func.insts(&func.blocks[b.0 as usize]) {
            let operands = func.operands(inst.srcs).iter().chain(func.operands(inst.dsts));
            sum += operands.map(of_address).sum::<u64>() * cfg.frequency(position);
        }
    }
    sum
}
