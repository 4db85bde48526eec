//! Approximate functions as vector code: the operations of `margay_exec::sem::approx` in the same order, in double
//! precision with one final rounding, so that both engines agree bit for bit. Nothing here may be fused or
//! reassociated.

use crate::emit::{
    function::Emitter,
    text::{Elem, Val, constant},
};
use margay_exec::sem::approx::constants::*;
use margay_isa::Opcode;

fn double(like: &Val, x: f64) -> Val {
    constant(like.ty.with(Elem::F64), i128::from(x.to_bits()))
}

impl Emitter<'_> {
    fn f64_op(&mut self, name: &str, a: &Val, b: f64) -> Val {
        let b = double(a, b);
        self.w.op(name, a, &b)
    }

    /// `p * x + c` with two roundings.
    fn horner(&mut self, p: &Val, x: &Val, c: f64) -> Val {
        let product = self.w.op("fmul", p, x);
        self.f64_op("fadd", &product, c)
    }

    fn polynomial(&mut self, x: &Val, coefficients: &[f64]) -> Val {
        let mut p = double(x, coefficients[0]);
        for c in &coefficients[1..] {
            p = self.horner(&p, x, *c);
        }
        p
    }

    /// `2^x`
    pub fn exp2(&mut self, x: &Val) -> Val {
        let low = double(x, -EXP2_BOUND);
        let below = self.w.cmp("fcmp olt", x, &low);
        let x = self.w.select(&below, &low, x);
        let high = double(&x, EXP2_BOUND);
        let above = self.w.cmp("fcmp ogt", &x, &high);
        let x = self.w.select(&above, &high, &x);
        let shifted = self.f64_op("fadd", &x, ROUND);
        let n = self.w.cast("bitcast", &shifted, Elem::I64);
        let n = self.w.op_const("shl", &n, 52);
        let whole = self.f64_op("fsub", &shifted, ROUND);
        let t = self.w.op("fsub", &x, &whole);
        let t = self.f64_op("fmul", &t, std::f64::consts::LN_2);
        let p = self.polynomial(&t, &EXP);
        let p = self.w.cast("bitcast", &p, Elem::I64);
        let p = self.w.op("add", &p, &n);
        self.w.cast("bitcast", &p, Elem::F64)
    }

    /// `log2 x` for positive finite `x`.
    fn log2(&mut self, x: &Val) -> Val {
        let bits = self.w.cast("bitcast", x, Elem::I64);
        let b = self.w.op_const("sub", &bits, i128::from(ROOT_HALF));
        let m = self.w.op_const("and", &b, 0x000f_ffff_ffff_ffff);
        let m = self.w.op_const("add", &m, i128::from(ROOT_HALF));
        let m = self.w.cast("bitcast", &m, Elem::F64);
        let e = self.w.op_const("ashr", &b, 52);
        let e = self.w.cast("trunc", &e, Elem::I32);
        let e = self.w.cast("sitofp", &e, Elem::F64);
        let (less, more) = (self.f64_op("fsub", &m, 1.0), self.f64_op("fadd", &m, 1.0));
        let s = self.w.op("fdiv", &less, &more);
        let z = self.w.op("fmul", &s, &s);
        let p = self.polynomial(&z, &LOG);
        let s = self.f64_op("fmul", &s, LOG_SCALE);
        let s = self.w.op("fmul", &s, &p);
        self.w.op("fadd", &e, &s)
    }

    /// Sine (`quarter` 0) or cosine (`quarter` 1).
    fn circular(&mut self, x: &Val, quarter: i128) -> Val {
        let wide = self.w.cast("fpext", x, Elem::F64);
        let turns = self.f64_op("fmul", &wide, TURNS);
        let size = self.w.intrinsic("llvm.fabs", turns.ty, &[&turns]);
        let limit = double(&turns, MOST_TURNS);
        let small = self.w.cmp("fcmp olt", &size, &limit);
        let nothing = self.f64_op("fmul", &turns, 0.0);
        let turns = self.w.select(&small, &turns, &nothing);
        let quarters = self.w.op("fmul", &double(&turns, 4.0), &turns);
        let shifted = self.f64_op("fadd", &quarters, ROUND);
        let n = self.w.cast("bitcast", &shifted, Elem::I64);
        let n = self.w.op_const("add", &n, quarter);
        let whole = self.f64_op("fsub", &shifted, ROUND);
        let t = self.w.op("fsub", &quarters, &whole);
        let t = self.f64_op("fmul", &t, std::f64::consts::FRAC_PI_2);
        let z = self.w.op("fmul", &t, &t);
        let s = self.polynomial(&z, &SIN);
        let s = self.w.op("fmul", &t, &s);
        let c = self.polynomial(&z, &COS);
        let odd = self.w.op_const("and", &n, 1);
        let even = self.w.cmp("icmp eq", &odd, &constant(odd.ty, 0));
        let magnitude = self.w.select(&even, &s, &c);
        let turned = self.w.op_const("and", &n, 2);
        let upper = self.w.cmp("icmp eq", &turned, &constant(turned.ty, 0));
        let negative = self.w.value(magnitude.ty, format_args!("fneg {} {magnitude}", magnitude.ty));
        self.w.select(&upper, &magnitude, &negative)
    }

    /// Emits an approximate row with one `.f32` operand, NaNs not canonicalized; `None` for other rows.
    pub fn approximate(&mut self, op: Opcode, x: &Val) -> Option<Val> {
        Some(match op {
            Opcode::Ex2 => {
                let wide = self.w.cast("fpext", x, Elem::F64);
                let y = self.exp2(&wide);
                self.w.cast("fptrunc", &y, Elem::F32)
            }
            Opcode::Lg2 => {
                let wide = self.w.cast("fpext", x, Elem::F64);
                let y = self.log2(&wide);
                let y = self.w.cast("fptrunc", &y, Elem::F32);
                let single = |b: f32| constant(x.ty, i128::from(b.to_bits()));
                let (zero, infinity) = (single(0.0), single(f32::INFINITY));
                let positive = self.w.cmp("fcmp ogt", x, &zero);
                let finite = self.w.cmp("fcmp olt", x, &infinity);
                let y = self.w.select(&finite, &y, x);
                let naught = self.w.cmp("fcmp oeq", x, &zero);
                let rest = self.w.select(&naught, &single(f32::NEG_INFINITY), &single(f32::from_bits(0x7fff_ffff)));
                self.w.select(&positive, &y, &rest)
            }
            Opcode::Sin | Opcode::Cos => {
                let y = self.circular(x, i128::from(op == Opcode::Cos));
                self.w.cast("fptrunc", &y, Elem::F32)
            }
            Opcode::Rsqrt => {
                let wide = self.w.cast("fpext", x, Elem::F64);
                let root = self.w.intrinsic("llvm.sqrt", wide.ty, &[&wide]);
                let y = self.w.op("fdiv", &double(&wide, 1.0), &root);
                self.w.cast("fptrunc", &y, Elem::F32)
            }
            Opcode::Tanh => {
                let size = self.w.intrinsic("llvm.fabs", x.ty, &[x]);
                let t = self.w.cast("fpext", &size, Elem::F64);
                let bound = double(&t, TANH_BOUND);
                let far = self.w.cmp("fcmp ogt", &t, &bound);
                let t = self.w.select(&far, &bound, &t);
                let twice = self.f64_op("fmul", &t, LOG_SCALE);
                let e = self.exp2(&twice);
                let (less, more) = (self.f64_op("fsub", &e, 1.0), self.f64_op("fadd", &e, 1.0));
                let quotient = self.w.op("fdiv", &less, &more);
                let cube = self.w.op("fmul", &t, &t);
                let cube = self.w.op("fmul", &cube, &t);
                let third = self.f64_op("fmul", &cube, 1.0 / 3.0);
                let series = self.w.op("fsub", &t, &third);
                let near = double(&t, TANH_SERIES);
                let near = self.w.cmp("fcmp olt", &t, &near);
                let y = self.w.select(&near, &series, &quotient);
                let y = self.w.cast("fptrunc", &y, Elem::F32);
                self.w.intrinsic("llvm.copysign", y.ty, &[&y, x])
            }
            _ => return None,
        })
    }
}
