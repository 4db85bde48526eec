//! Correctly rounded reciprocals without a division.
//!
//! Processors divide at a fraction of the rate at which they multiply. The reciprocal is refined from the host's
//! approximation `y` of 14 bits by `e = 1 - a y`, `y + e y`, twice. The first step is accurate to 28 bits, and rounds to
//! one of the two neighbors of `1 / a`; from there the second step rounds correctly, except where its `e` is exactly half a
//! unit of 1 (the test tries all). These, and operands whose reciprocal is not far inside the normal range, are divided.

use crate::emit::{
    function::{Emitter, Mode, affine::Row},
    text::{Elem, Ty, Val, constant},
};

/// `e` of the reciprocals that the second step may round wrongly.
const TIE: f32 = 1.0 / (1 << 24) as f32;
/// Exponents of approximations for which no intermediate result leaves the normal range; biased.
const EXPONENTS: std::ops::Range<i128> = 2..253;
/// Lanes of a 512-bit vector.
const WIDTH: u32 = 16;

fn single(like: &Val, x: f32) -> Val {
    constant(like.ty, i128::from(x.to_bits()))
}

impl Emitter<'_> {
    /// `1 / a` in single or double precision, rounded to the nearest.
    pub(super) fn reciprocal(&mut self, a: &Val) -> Val {
        let one = if a.ty.elem == Elem::F64 { i128::from(1f64.to_bits()) } else { i128::from(1f32.to_bits()) };
        let one = constant(a.ty, one);
        // Inactive lanes may hold what has to be divided.
        let full = self.mode == Mode::Full && !self.options.lean;
        if a.ty != Ty::lanes(Elem::F32) || !self.options.mask_registers || !full {
            return self.w.op("fdiv", &one, a);
        }
        let result = self.w.alloca(&a.ty.to_string(), 64);
        let y = self.approximate_reciprocal(a);
        let minus = self.w.value(a.ty, format_args!("fneg {} {a}", a.ty));
        let e = self.w.intrinsic("llvm.fma", a.ty, &[&minus, &y, &one]);
        let near = self.w.intrinsic("llvm.fma", a.ty, &[&y, &e, &y]);
        let e = self.w.intrinsic("llvm.fma", a.ty, &[&minus, &near, &one]);
        let refined = self.w.intrinsic("llvm.fma", a.ty, &[&near, &e, &near]);
        self.w.store(&refined, &result, 64);
        let bits = self.w.cast("bitcast", &y, Elem::I32);
        let magnitude = self.w.op_const("shl", &bits, 1);
        let above = self.w.op_const("sub", &magnitude, EXPONENTS.start << 24);
        let limit = constant(above.ty, i128::from(((EXPONENTS.end - EXPONENTS.start) << 24) as i32));
        let outside = self.w.cmp("icmp uge", &above, &limit);
        let tie = self.w.cmp("fcmp oeq", &e, &single(&e, TIE));
        let bad = self.w.op("or", &outside, &tie);
        let bad = self.any(&bad);
        let (divide, done) = (self.w.label("divide"), self.w.label("divided"));
        self.w.branch_unlikely(&bad, &divide, &done);
        let mark = self.w.mark();
        self.w.follow(&divide);
        let quotient = self.w.op("fdiv", &one, a);
        self.w.store(&quotient, &result, 64);
        self.w.jump(&done);
        self.w.join(&done, mark);
        self.w.load(a.ty, &result, 64)
    }

    /// `1 / a`, accurate to 14 bits.
    fn approximate_reciprocal(&mut self, a: &Val) -> Val {
        let part = a.ty.part(WIDTH);
        let name = "llvm.x86.avx512.rcp14.ps.512";
        self.w.declared.insert(format!("declare {part} @{name}({part}, {part}, i16)"));
        let pieces = (0..32 / WIDTH)
            .map(|index| {
                let piece = self.piece(a, Row { width: WIDTH, index });
                self.w.value(a.ty, format_args!("call {part} @{name}({part} {piece}, {part} zeroinitializer, i16 -1)"))
            })
            .collect();
        self.concat(pieces, Elem::F32, WIDTH)
    }
}

#[cfg(test)]
mod tests {
    use super::TIE;

    /// From either neighbor of the reciprocal of any significand. Powers of two scale all steps alike.
    #[test]
    fn the_second_step_rounds_correctly() {
        for significand in 0..1u32 << 23 {
            let a = f32::from_bits(1f32.to_bits() | significand);
            let exact = 1.0 / a;
            let error = (-a).mul_add(exact, 1.0);
            // The neighbor on the other side of the exact reciprocal.
            let other = match error {
                e if e > 0.0 => exact.next_up(),
                e if e < 0.0 => exact.next_down(),
                _ => exact,
            };
            for near in [exact, other] {
                let e = (-a).mul_add(near, 1.0);
                assert!(near.mul_add(e, near) == exact || e == TIE, "1 / {a:e} from {near:e}");
            }
        }
    }
}
