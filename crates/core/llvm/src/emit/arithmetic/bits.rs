//! Bit fields, searches, bytes and their dot products (manual, sections 9.7.1.14 to 9.7.1.25, 9.7.8 and 9.7.9.7).

use crate::emit::{
    function::Emitter,
    text::{Elem, Ty, Val, constant, int},
};
use margay_ir::Operand;
use margay_isa::{Mod, Var, Variant};

impl Emitter<'_> {
    /// Unsigned minimum with a constant.
    fn at_most(&mut self, v: &Val, most: i128) -> Val {
        self.w.intrinsic("llvm.umin", v.ty, &[v, &constant(v.ty, most)])
    }

    /// A mask of the `n` lowest bits, for `n` from 0 to the width.
    fn low_ones(&mut self, n: &Val) -> Val {
        let bits = i128::from(n.ty.elem.bits());
        let amount = self.w.op_const("and", n, bits - 1);
        let one = self.w.op("shl", &constant(n.ty, 1), &amount);
        let ones = self.w.op_const("sub", &one, 1);
        let all = self.w.cmp("icmp uge", n, &constant(n.ty, bits));
        self.w.select(&all, &constant(n.ty, -1), &ones)
    }

    /// `bfe` on 64 bits: position and length are 8 bits wide; bits beyond the top are the sign or zero.
    pub fn bfe(&mut self, a: &Val, position: &Val, length: &Val, signed: bool, bits: u32) -> Val {
        let wide = self.w.resize(a, Elem::I64, signed);
        let [position, length] = [position, length].map(|v| {
            let v = self.w.op_const("and", v, 255);
            self.w.cast("zext", &v, Elem::I64)
        });
        let last = self.at_most(&position, 63);
        let shifted = self.w.op(if signed { "ashr" } else { "lshr" }, &wide, &last);
        let field = if signed {
            let up = self.w.op("sub", &constant(length.ty, 64), &length);
            let up = self.w.op_const("and", &up, 63);
            let moved = self.w.op("shl", &shifted, &up);
            let field = self.w.op("ashr", &moved, &up);
            let end = self.w.op("add", &position, &length);
            let beyond = self.w.cmp("icmp ugt", &end, &constant(end.ty, i128::from(bits)));
            let field = self.w.select(&beyond, &shifted, &field);
            let empty = self.w.cmp("icmp eq", &length, &constant(length.ty, 0));
            self.w.select(&empty, &constant(field.ty, 0), &field)
        } else {
            let ones = self.low_ones(&length);
            let field = self.w.op("and", &shifted, &ones);
            let beyond = self.w.cmp("icmp ugt", &position, &constant(position.ty, 63));
            self.w.select(&beyond, &constant(field.ty, 0), &field)
        };
        self.w.resize(&field, Elem::int(bits), false)
    }

    /// `bfi` on 64 bits.
    pub fn bfi(&mut self, a: &Val, b: &Val, position: &Val, length: &Val) -> Val {
        let elem = a.ty.elem;
        let [a, b] = [a, b].map(|v| self.w.resize(v, Elem::I64, false));
        let [position, length] = [position, length].map(|v| {
            let v = self.w.op_const("and", v, 255);
            self.w.cast("zext", &v, Elem::I64)
        });
        let ones = self.low_ones(&length);
        let amount = self.w.op_const("and", &position, 63);
        let (mask, moved) = (self.w.op("shl", &ones, &amount), self.w.op("shl", &a, &amount));
        let inside = self.w.op("and", &moved, &mask);
        let kept = self.w.op_const("xor", &mask, -1);
        let kept = self.w.op("and", &b, &kept);
        let both = self.w.op("or", &inside, &kept);
        let beyond = self.w.cmp("icmp ugt", &position, &constant(position.ty, 63));
        let both = self.w.select(&beyond, &b, &both);
        self.w.resize(&both, elem, false)
    }

    /// `bfind`: all ones if every bit equals the sign.
    pub fn bfind(&mut self, a: &Val, signed: bool, amount: bool) -> Val {
        let bits = i128::from(a.ty.elem.bits());
        let magnitude = if signed {
            let sign = self.w.op_const("ashr", a, bits - 1);
            self.w.op("xor", a, &sign)
        } else {
            a.clone()
        };
        let full = format!("llvm.ctlz.{}", crate::emit::text::mangle(a.ty));
        let zeros = self.w.intrinsic_named(&full, a.ty, &[&magnitude, &int(Elem::I1, 0)]);
        let place = if amount { zeros } else { self.w.op("sub", &constant(a.ty, bits - 1), &zeros) };
        let none = self.w.cmp("icmp eq", &magnitude, &constant(a.ty, 0));
        let found = self.w.select(&none, &constant(a.ty, -1), &place);
        self.w.resize(&found, Elem::I32, false)
    }

    /// `szext`
    pub fn szext(&mut self, a: &Val, n: &Val, signed: bool, clamp: bool) -> Val {
        let n = if clamp { self.at_most(n, 32) } else { self.w.op_const("and", n, 31) };
        let ones = self.low_ones(&n);
        if !signed {
            return self.w.op("and", a, &ones);
        }
        let up = self.w.op("sub", &constant(n.ty, 32), &n);
        let up = self.w.op_const("and", &up, 31);
        let moved = self.w.op("shl", a, &up);
        let field = self.w.op("ashr", &moved, &up);
        let empty = self.w.cmp("icmp eq", &n, &constant(n.ty, 0));
        self.w.select(&empty, &constant(field.ty, 0), &field)
    }

    /// `bmsk`
    pub fn bmsk(&mut self, a: &Val, b: &Val, clamp: bool) -> Val {
        let width = if clamp { self.at_most(b, 32) } else { self.w.op_const("and", b, 31) };
        let ones = self.low_ones(&width);
        let amount = self.w.op_const("and", a, 31);
        let mask = self.w.op("shl", &ones, &amount);
        if !clamp {
            return mask;
        }
        let beyond = self.w.cmp("icmp ugt", a, &constant(a.ty, 31));
        self.w.select(&beyond, &constant(mask.ty, 0), &mask)
    }

    /// `prmt` in all modes.
    pub fn prmt(&mut self, variant: &Variant, a: &Val, b: &Val, control: &Val, operand: &Operand) -> Val {
        let modes = [Mod::F4e, Mod::B4e, Mod::Rc8, Mod::Ecl, Mod::Ecr, Mod::Rc16];
        let mode = modes.into_iter().find(|m| variant.has(*m));
        if let (Operand::Imm(c), None) = (operand, mode)
            && c & 0x8888 == 0
        {
            let (a, b) = self.w.agree(a, b);
            return self.pick_bytes(&a, &b, *c as u32);
        }
        let (low, high) = (self.w.cast("zext", a, Elem::I64), self.w.cast("zext", b, Elem::I64));
        let high = self.w.op_const("shl", &high, 32);
        let source = self.w.op("or", &low, &high);
        let mut word: Option<Val> = None;
        for i in 0..4i128 {
            let number = match mode {
                None => self.w.op_const("lshr", control, 4 * i),
                Some(Mod::Rc16) => {
                    let c = self.w.op_const("and", control, 1);
                    let c = self.w.op_const("shl", &c, 1);
                    self.w.op_const("or", &c, i & 1)
                }
                Some(mode) => {
                    let c = self.w.op_const("and", control, 3);
                    match mode {
                        Mod::F4e => self.w.op_const("add", &c, i),
                        Mod::B4e => self.w.op_const("sub", &c, i),
                        Mod::Ecl => self.w.intrinsic("llvm.umax", c.ty, &[&c, &constant(c.ty, i)]),
                        Mod::Ecr => self.at_most(&c, i),
                        _ => c,
                    }
                }
            };
            let place = self.w.op_const("and", &number, 7);
            let place = self.w.op_const("shl", &place, 3);
            let place = self.w.cast("zext", &place, Elem::I64);
            let byte = self.w.op("lshr", &source, &place);
            let byte = self.w.cast("trunc", &byte, Elem::I8);
            let byte = if mode.is_none() {
                let sign = self.w.op_const("ashr", &byte, 7);
                let asked = self.w.op_const("and", &number, 8);
                let asked = self.w.cmp("icmp ne", &asked, &constant(asked.ty, 0));
                self.w.select(&asked, &sign, &byte)
            } else {
                byte
            };
            let byte = self.w.cast("zext", &byte, Elem::I32);
            let byte = self.w.op_const("shl", &byte, 8 * i);
            word = Some(match word {
                Some(w) => self.w.op("or", &w, &byte),
                None => byte,
            });
        }
        word.unwrap_or_else(|| constant(a.ty, 0))
    }

    /// `prmt` with a constant control that replicates no sign: one byte shuffle.
    fn pick_bytes(&mut self, a: &Val, b: &Val, control: u32) -> Val {
        let words = if a.ty.vector { 32 } else { 1 };
        let bytes = Ty::lanes(Elem::I8).part(4 * words);
        let picks: Vec<String> = (0..4 * words)
            .map(|at| {
                let n = control >> (4 * (at % 4)) & 7;
                let from = at / 4 * 4 + n % 4 + if n < 4 { 0 } else { 4 * words };
                format!("i32 {from}")
            })
            .collect();
        let [x, y] = [a, b].map(|v| self.w.value(v.ty, format_args!("bitcast {} {v} to {bytes}", v.ty)));
        let picked = self.w.value(
            a.ty,
            format_args!("shufflevector {bytes} {x}, {bytes} {y}, <{} x i32> <{}>", 4 * words, picks.join(", ")),
        );
        self.w.value(a.ty, format_args!("bitcast {bytes} {picked} to {}", a.ty))
    }

    /// `dp4a` and `dp2a`: dot product of bytes with bytes, or of halves with the bytes of one half, plus `c`.
    pub fn dot(&mut self, variant: &Variant, halves: bool, v: &[Val; 3]) -> Val {
        let signs = [variant.t().is_signed(), variant.ty(Var::U).is_some_and(margay_isa::Type::is_signed)];
        let (count, bits) = if halves { (2, 16) } else { (4, 8) };
        let first = if halves && variant.has(Mod::Hi) { 2 } else { 0 };
        let mut sum = v[2].clone();
        for i in 0..count {
            let x = self.field(&v[0], i * bits, bits, signs[0]);
            let y = self.field(&v[1], (i + first) * 8, 8, signs[1]);
            let p = self.w.op("mul", &x, &y);
            sum = self.w.op("add", &sum, &p);
        }
        sum
    }

    /// Extracts a bit field of a word, with sign or zero extension.
    fn field(&mut self, v: &Val, at: u32, bits: u32, signed: bool) -> Val {
        let up = self.w.op_const("shl", v, i128::from(32 - bits - at));
        self.w.op_const(if signed { "ashr" } else { "lshr" }, &up, i128::from(32 - bits))
    }
}
