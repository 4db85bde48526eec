//! `rsqrt` in single precision without the host's square roots and divisions in double precision: it would take four of each.
//!
//! From the host's estimate `y` of 14 bits, the Newton step `y + y/2 (1 - x y^2)` leaves an error of about a unit in the last place. The
//! residue `1 - x y^2` is then computed from the product `x y` in two parts, with an error below 2^-46. If the second step rounds to the same
//! number with 2^-44 added and with 2^-44 subtracted, that number is the nearest one; otherwise, about once in 2^20 numbers, the result is
//! computed in double precision. So are the results for zeros, infinities, NaNs and negative numbers, which have no residue.
//!
//! `sqrt` would not gain from this: its single instruction executes in parallel with the surrounding multiplications.

use crate::emit::{
    function::Emitter,
    text::{Elem, Ty, Val, constant, int},
};

/// The bound for the error of the residue of `rsqrt`.
const SLACK: f32 = 1.0 / (1u64 << 44) as f32;

fn single(like: &Val, x: f32) -> Val {
    constant(like.ty, i128::from(x.to_bits()))
}

impl Emitter<'_> {
    /// `1 / sqrt(x)` in single precision: the quotient in double precision, rounded.
    pub(super) fn rsqrt(&mut self, x: &Val) -> Val {
        if !self.refines(x) {
            return self.wide_rsqrt(x);
        }
        let one = single(x, 1.0);
        let (y, half) = self.near_rsqrt(x);
        let high = self.w.op("fmul", x, &y);
        let minus = self.w.value(high.ty, format_args!("fneg {} {high}", high.ty));
        let low = self.w.intrinsic("llvm.fma", x.ty, &[x, &y, &minus]);
        let less = self.w.intrinsic("llvm.fma", x.ty, &[&minus, &y, &one]);
        let low = self.w.value(low.ty, format_args!("fneg {} {low}", low.ty));
        let residue = self.w.intrinsic("llvm.fma", x.ty, &[&low, &y, &less]);
        let [below, above] = [("fsub", SLACK), ("fadd", SLACK)].map(|(op, slack)| {
            let residue = self.w.op(op, &residue, &single(x, slack));
            self.w.intrinsic("llvm.fma", x.ty, &[&half, &residue, &y])
        });
        let bad = self.w.cmp("fcmp une", &below, &above);
        let bad = self.is_any(&bad);
        self.repair(&below, &bad, |e| e.wide_rsqrt(x))
    }

    /// `1 / sqrt(x)` to about a unit in the last place, and its half.
    fn near_rsqrt(&mut self, x: &Val) -> (Val, Val) {
        let y = self.estimate("rsqrt14", x);
        let product = self.w.op("fmul", x, &y);
        let minus = self.w.value(product.ty, format_args!("fneg {} {product}", product.ty));
        let residue = self.w.intrinsic("llvm.fma", x.ty, &[&minus, &y, &single(x, 1.0)]);
        let half = self.w.op("fmul", &y, &single(x, 0.5));
        let y = self.w.intrinsic("llvm.fma", x.ty, &[&half, &residue, &y]);
        let half = self.w.op("fmul", &y, &single(x, 0.5));
        (y, half)
    }

    fn wide_rsqrt(&mut self, x: &Val) -> Val {
        let wide = self.w.cast("fpext", x, Elem::F64);
        let root = self.w.intrinsic("llvm.sqrt", wide.ty, &[&wide]);
        let one = constant(wide.ty, i128::from(1f64.to_bits()));
        let y = self.w.op("fdiv", &one, &root);
        self.w.cast("fptrunc", &y, Elem::F32)
    }

    fn is_any(&mut self, lanes: &Val) -> Val {
        let bits = self.w.value(Ty::scalar(Elem::I32), format_args!("bitcast {} {lanes} to i32", lanes.ty));
        self.w.cmp("icmp ne", &bits, &int(Elem::I32, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::SLACK;

    /// Estimates of `1 / sqrt(x)` with errors up to the 2^-14 of `VRSQRT14PS` (Intel's manual).
    fn estimates(x: f32) -> impl Iterator<Item = f32> {
        let exact = 1.0 / f64::from(x).sqrt();
        [-1.0, -0.6, 0.0, 0.6, 1.0].into_iter().map(move |part| (exact * (1.0 + part / 16384.0)) as f32)
    }

    /// The Newton step, and half of its result.
    fn near(x: f32, y: f32) -> (f32, f32) {
        let y = (0.5 * y).mul_add((-(x * y)).mul_add(y, 1.0), y);
        (y, 0.5 * y)
    }

    /// Powers of four scale all steps alike.
    fn operands() -> impl Iterator<Item = f32> {
        (0..1u32 << 24).map(|significand| f32::from_bits(1f32.to_bits() + significand))
    }

    /// Where the test of both neighbors passes, which is nearly everywhere.
    #[test]
    fn reciprocal_roots_round_correctly() {
        let mut repaired = 0;
        for x in operands() {
            let exact = (1.0 / f64::from(x).sqrt()) as f32;
            for y in estimates(x) {
                let (y, half) = near(x, y);
                let high = x * y;
                let low = x.mul_add(y, -high);
                let residue = (-low).mul_add(y, (-high).mul_add(y, 1.0));
                let below = half.mul_add(residue - SLACK, y);
                let above = half.mul_add(residue + SLACK, y);
                assert!(below != above || below == exact, "1 / sqrt({x:e}) from {y:e}");
                repaired += u32::from(below != above);
            }
        }
        assert!(repaired < 1000, "{repaired} of 5 * 2^24 were computed in double precision");
    }
}
