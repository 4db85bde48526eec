//! Correctly rounded reciprocals without a division.
//!
//! Processors divide at a fraction of the rate at which they multiply. The reciprocal is refined from the host's
//! approximation `y` of 14 bits by `e = 1 - a y`, `y + e y`, twice. The first step is accurate to 28 bits, and rounds to
//! one of the two neighbors of `1 / a`; from there the second step rounds correctly, except where its `e` is exactly half a
//! unit of 1, or to subnormal numbers (the tests try all). These are divided, and so are operands for which `e` is not a number: zeros,
//! infinities, NaNs, and subnormal numbers of up to 2^-128, whose approximation is infinite (Intel's manual, `VRCP14PS`).

use crate::emit::{
    function::{Emitter, Mode, affine::Row},
    text::{Elem, Ty, Val, constant, int},
};

/// `e` of the reciprocals that the second step may round wrongly.
const TIE: f32 = 1.0 / (1 << 24) as f32;
/// The class of subnormal numbers (Intel's manual, `VFPCLASSPS`).
const SUBNORMAL: u32 = 1 << 5;
/// Lanes of a 512-bit vector.
const WIDTH: u32 = 16;

/// What is known of reciprocals.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Results {
    Any,
    /// None is subnormal.
    Normal,
}

fn single(like: &Val, x: f32) -> Val {
    constant(like.ty, i128::from(x.to_bits()))
}

impl Emitter<'_> {
    /// `1 / a` in single or double precision, rounded to the nearest. `range` is what is known of the results.
    pub(super) fn reciprocal(&mut self, a: &Val, range: Results) -> Val {
        let one = if a.ty.elem == Elem::F64 { i128::from(1f64.to_bits()) } else { i128::from(1f32.to_bits()) };
        let one = constant(a.ty, one);
        if !self.refines(a) {
            return self.w.op("fdiv", &one, a);
        }
        let y = self.estimate("rcp14", a);
        let minus = self.w.value(a.ty, format_args!("fneg {} {a}", a.ty));
        let e = self.w.intrinsic("llvm.fma", a.ty, &[&minus, &y, &one]);
        let near = self.w.intrinsic("llvm.fma", a.ty, &[&y, &e, &y]);
        let e = self.w.intrinsic("llvm.fma", a.ty, &[&minus, &near, &one]);
        let refined = self.w.intrinsic("llvm.fma", a.ty, &[&near, &e, &near]);
        let bad = self.is_any_bad(&e, &near, range);
        self.repair(&refined, &bad, |e| e.w.op("fdiv", &one, a))
    }

    /// Whether a division or root with this operand is refined from an estimate. Only in full code: arbitrary values of inactive lanes
    /// would take the slow path.
    pub(super) fn refines(&self, a: &Val) -> bool {
        let full = self.mode == Mode::Full && !self.options.lean;
        a.ty == Ty::lanes(Elem::F32) && self.options.mask_registers && full
    }

    /// `refined`, or in a warp with a `bad` lane, which is unlikely, what `exact` computes.
    pub(super) fn repair(&mut self, refined: &Val, bad: &Val, exact: impl FnOnce(&mut Self) -> Val) -> Val {
        let result = self.w.alloca(&refined.ty.to_string(), 64);
        self.w.store(refined, &result, 64);
        let (slow, done) = (self.w.label("exact"), self.w.label("rounded"));
        self.w.branch_unlikely(bad, &slow, &done);
        self.detour(&slow, &done, |e| {
            let exact = exact(e);
            e.w.store(&exact, &result, 64);
        });
        self.w.load(refined.ty, &result, 64)
    }

    /// Whether the second step, from `near` with `e`, may round wrongly in some lane. Tests halves, for which the host has instructions.
    fn is_any_bad(&mut self, e: &Val, near: &Val, range: Results) -> Val {
        let (part, like) = (e.ty.part(WIDTH), e.ty.with(Elem::I1));
        let (mask, tie) = (like.part(WIDTH), single(e, TIE));
        let name = "llvm.x86.avx512.fpclass.ps.512";
        if range == Results::Any {
            self.w.declared.insert(format!("declare {mask} @{name}({part}, i32)"));
        }
        let mut bad: Option<Val> = None;
        for index in 0..32 / WIDTH {
            let row = Row { width: WIDTH, index };
            let (e, near) = (self.piece(e, row), self.piece(near, row));
            let tie = self.w.value(like, format_args!("fcmp ueq {part} {e}, {tie}"));
            let either = if range == Results::Normal {
                tie
            } else {
                let tiny = self.w.value(like, format_args!("call {mask} @{name}({part} {near}, i32 {SUBNORMAL})"));
                self.w.value(like, format_args!("or {mask} {tie}, {tiny}"))
            };
            bad = Some(match bad {
                Some(bad) => self.w.value(like, format_args!("or {mask} {bad}, {either}")),
                None => either,
            });
        }
        let Some(bad) = bad else { return int(Elem::I1, 0) };
        let bits = self.w.value(Ty::scalar(Elem::I16), format_args!("bitcast {mask} {bad} to i{WIDTH}"));
        self.w.cmp("icmp ne", &bits, &int(Elem::I16, 0))
    }

    /// The host's approximation to 14 bits by the instruction `name`: `1 / a` or `1 / sqrt(a)`.
    pub(super) fn estimate(&mut self, name: &str, a: &Val) -> Val {
        let part = a.ty.part(WIDTH);
        let name = format!("llvm.x86.avx512.{name}.ps.512");
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

    /// The two neighbors of the reciprocal.
    fn neighbors(a: f32) -> [f32; 2] {
        let nearest = 1.0 / a;
        let other = match 1.0 / f64::from(a) {
            exact if exact > f64::from(nearest) => nearest.next_up(),
            exact if exact < f64::from(nearest) => nearest.next_down(),
            _ => nearest,
        };
        [nearest, other]
    }

    /// From either neighbor of the reciprocal of any significand. Powers of two scale all steps equally.
    #[test]
    fn the_second_step_rounds_correctly() {
        for significand in 0..1u32 << 23 {
            let a = f32::from_bits(1f32.to_bits() | significand);
            let exact = 1.0 / a;
            for near in neighbors(a) {
                let e = (-a).mul_add(near, 1.0);
                assert!(near.mul_add(e, near) == exact || e == TIE, "1 / {a:e} from {near:e}");
            }
        }
    }

    /// The same near the ends of the range, where powers of two do not scale all steps alike: from large operands, unless the neighbor is
    /// subnormal, and from subnormal ones.
    #[test]
    fn the_second_step_rounds_correctly_near_the_ends_of_the_range() {
        let large = (253 << 23)..(255 << 23);
        let small = (1 << 21) + 1..1 << 23;
        for bits in large.chain(small) {
            let a = f32::from_bits(bits);
            let exact = 1.0 / a;
            for near in neighbors(a).into_iter().filter(|near| near.is_normal()) {
                let e = (-a).mul_add(near, 1.0);
                assert!(near.mul_add(e, near) == exact || e == TIE, "1 / {a:e} from {near:e}");
            }
        }
    }
}
