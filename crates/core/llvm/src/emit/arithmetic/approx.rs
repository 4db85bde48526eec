//! Approximate functions as vector code: the operations of `margay_exec::sem::approx` in the same order and precision, so that both
//! engines agree bit for bit. Nothing here may be fused or reassociated.

use crate::emit::{
    function::{Emitter, affine::rows},
    text::{Elem, Ty, Val, constant},
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

    /// `2^x` in single precision.
    fn ex2(&mut self, x: &Val) -> Val {
        let single = |c: f32| constant(x.ty, i128::from(c.to_bits()));
        let (low, high, round) = (single(-EX2_BOUND), single(EX2_BOUND), single(ROUND_SINGLE));
        let below = self.w.cmp("fcmp olt", x, &low);
        let x = self.w.select(&below, &low, x);
        let above = self.w.cmp("fcmp ogt", &x, &high);
        let x = self.w.select(&above, &high, &x);
        let shifted = self.w.op("fadd", &x, &round);
        let whole = self.w.op("fsub", &shifted, &round);
        let t = self.w.op("fsub", &x, &whole);
        let mut p = single(EX2[0]);
        for c in &EX2[1..] {
            let product = self.w.op("fmul", &p, &t);
            p = self.w.op("fadd", &product, &single(*c));
        }
        if x.ty.vector && self.options.mask_registers {
            return self.scale(&p, &whole);
        }
        let n = self.w.cast("bitcast", &shifted, Elem::I32);
        let n = self.w.op_const("sub", &n, i128::from(ROUND_SINGLE.to_bits()));
        let half = self.w.op_const("ashr", &n, 1);
        let rest = self.w.op("sub", &n, &half);
        for part in [half, rest] {
            let part = self.w.op_const("add", &part, 127);
            let part = self.w.op_const("shl", &part, 23);
            let power = self.w.cast("bitcast", &part, Elem::F32);
            p = self.w.op("fmul", &p, &power);
        }
        p
    }

    /// `p * 2^n` for whole numbers `n`, rounded once: an instruction of AVX-512.
    fn scale(&mut self, p: &Val, n: &Val) -> Val {
        let (name, half) = ("llvm.x86.avx512.mask.scalef.ps.512", "<16 x float>");
        self.w.declared.insert(format!("declare {half} @{name}({half}, {half}, {half}, i16, i32)"));
        let halves = rows(16)
            .map(|row| {
                let (p, n) = (self.piece(p, row), self.piece(n, row));
                let call =
                    format!("call {half} @{name}({half} {p}, {half} {n}, {half} zeroinitializer, i16 -1, i32 4)");
                self.w.value(Ty::lanes(Elem::F32), format_args!("{call}"))
            })
            .collect();
        self.concat(halves, Elem::F32, 16)
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
        let limit = double(&turns, MAX_TURNS);
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
            Opcode::Ex2 => self.ex2(x),
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
            Opcode::Rsqrt => self.rsqrt(x),
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
