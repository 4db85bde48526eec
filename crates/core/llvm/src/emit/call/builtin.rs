//! Calls of device library functions (`vprintf`, `malloc`, `free`, `__assertfail`): a helper serves all lanes at once.

use crate::ctx::Helper;
use crate::emit::{
    function::{Emitter, Result, elem_of},
    site::SiteKind,
    text::{Elem, Ty, Val, int},
};
use margay_ir::{Arg, Builtin, CallSite, Operand};

/// Size of a row of 32 64-bit values in bytes.
const ROW: u64 = 256;

impl Emitter<'_> {
    /// Calls a function of the device library for the active lanes, or for those of `lanes`.
    pub fn builtin(&mut self, builtin: Builtin, call: &CallSite, lanes: Option<&Val>) -> Result<()> {
        let count = call.args.len();
        let input = self.w.alloca(&format!("[{} x <32 x i64>]", count.max(1)), 64);
        let output = self.w.alloca("<32 x i64>", 64);
        for (k, (arg, value)) in call.args.iter().zip(&call.sig.params).enumerate() {
            let v = match arg {
                Arg::Values(values) => match values.first() {
                    Some(v) => {
                        let v = self.value(v, elem_of(value.ty))?;
                        self.w.resize(&v, Elem::I64, false)
                    }
                    None => int(Elem::I64, 0),
                },
                Arg::Frame(f) => {
                    let side = self.variable(f.0);
                    self.side_bytes(&side, &(0..value.size.clamp(1, 8)))?
                }
                Arg::Omitted => int(Elem::I64, 0),
            };
            let v = self.w.resize(&v, Elem::I64, false);
            let (v, p) = (self.w.splat(&v), self.w.offset_const(&input, k as u64 * ROW));
            self.w.store(&v, &p, 64);
        }
        let site = self.site(SiteKind::Builtin { builtin, args: count });
        let mask = self.lane_bits(lanes);
        self.helper(Helper::Builtin, &[&int(Elem::I32, site as i128), &mask, &input, &output]);
        let result = |e: &mut Self| e.w.load(Ty::lanes(Elem::I64), &output, 64);
        match (call.rets.first(), call.sig.rets.first()) {
            (Some(Arg::Values(values)), _) => {
                if let Some(Operand::Reg(r)) = values.first() {
                    let v = result(self);
                    let v = self.w.resize(&v, self.slots[r.0 as usize].elem, false);
                    self.write(*r, &v, lanes);
                }
            }
            (Some(Arg::Frame(f)), Some(value)) => {
                let v = result(self);
                let side = self.variable(f.0);
                self.set_variable(&side, &(0..value.size.min(8)), &v, lanes);
            }
            _ => {}
        }
        Ok(())
    }

    /// Stops with a fault in the active lanes.
    pub fn fail(&mut self, kind: margay_exec::FaultKind) {
        let bits = self.active_bits();
        let site = self.site(SiteKind::Fails(kind));
        self.helper(Helper::Fault, &[&int(Elem::I32, site as i128), &bits]);
    }

    /// The value of the first active lane; for values that are uniform over the active lanes.
    pub fn first_active(&mut self, v: &Val) -> Val {
        let bits = self.active_bits();
        self.first_of(v, &bits)
    }

    /// The value of the first of some lanes, given as bits.
    pub fn first_of(&mut self, v: &Val, bits: &Val) -> Val {
        let lane = self.w.intrinsic_named("llvm.cttz.i32", Ty::scalar(Elem::I32), &[bits, &int(Elem::I1, 0)]);
        let lane = self.w.op_const("and", &lane, 31);
        self.w.extract(v, &lane)
    }
}
