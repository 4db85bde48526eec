//! The values that atomic operations leave in memory, over whole registers, as [`Rmw::apply`] defines them, and whether those differ
//! from the old ones, as [`Rmw::changes`] does.

use crate::emit::{
    function::Emitter,
    text::{Elem, Val, constant},
};
use margay_exec::sem::atomic::{AtomicOp, Number, Rmw};

impl Emitter<'_> {
    /// The new values of locations that held `old`, integers of the type's width. `flush` is the result of [`Rmw::flushes`].
    pub(super) fn updated(&mut self, rmw: Rmw, flush: bool, old: &Val, operands: &[Val]) -> Val {
        let b = &operands[0];
        let signed = match rmw.number() {
            Number::Integer { signed } => signed,
            _ => return self.sum_of_floats(rmw, flush, old, b),
        };
        match rmw.op {
            AtomicOp::Add => self.w.op("add", old, b),
            AtomicOp::And => self.w.op("and", old, b),
            AtomicOp::Or => self.w.op("or", old, b),
            AtomicOp::Xor => self.w.op("xor", old, b),
            AtomicOp::Min => self.w.intrinsic(if signed { "llvm.smin" } else { "llvm.umin" }, old.ty, &[old, b]),
            AtomicOp::Max => self.w.intrinsic(if signed { "llvm.smax" } else { "llvm.umax" }, old.ty, &[old, b]),
            AtomicOp::Exch => b.clone(),
            // The comparand comes first.
            AtomicOp::Cas => {
                let met = self.w.cmp("icmp eq", old, b);
                self.w.select(&met, &operands[1], old)
            }
            AtomicOp::Inc => {
                let (wraps, next) = (self.w.cmp("icmp uge", old, b), self.w.op_const("add", old, 1));
                self.w.select(&wraps, &constant(old.ty, 0), &next)
            }
            AtomicOp::Dec => {
                let (zero, above) = (self.w.cmp("icmp eq", old, &constant(old.ty, 0)), self.w.cmp("icmp ugt", old, b));
                let (wraps, next) = (self.w.op("or", &zero, &above), self.w.op_const("sub", old, 1));
                self.w.select(&wraps, b, &next)
            }
        }
    }

    /// Single and double precision, as bits.
    fn sum_of_floats(&mut self, rmw: Rmw, flush: bool, old: &Val, b: &Val) -> Val {
        let single = rmw.number() == Number::Single;
        let elem = if single { Elem::F32 } else { Elem::F64 };
        let [x, y] = [old, b].map(|v| {
            let v = self.w.cast("bitcast", v, elem);
            if flush { self.flush(&v) } else { v }
        });
        let sum = self.w.op("fadd", &x, &y);
        match single {
            true => {
                let sum = if flush { self.flush(&sum) } else { sum };
                self.canonical(&sum)
            }
            false => self.w.cast("bitcast", &sum, old.ty.elem),
        }
    }

    /// Whether an operation changes memory, from the old values.
    pub(super) fn changes(&mut self, rmw: Rmw, flush: bool, old: &Val, operands: &[Val]) -> Val {
        let operands: Vec<Val> = operands.iter().map(|v| self.w.splat(v)).collect();
        let new = self.updated(rmw, flush, old, &operands);
        self.w.cmp("icmp ne", &new, old)
    }
}
