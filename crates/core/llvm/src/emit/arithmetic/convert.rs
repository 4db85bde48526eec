//! `cvt` (manual, section 9.7.9.21).

use crate::emit::{
    arithmetic::half::Half,
    function::{Emitter, Result},
    text::{Elem, Val, constant},
};
use margay_ir::Operand;
use margay_isa::{Mod, Type, Var, Variant, Word};

/// The modifiers of a `cvt`.
#[derive(Clone, Copy)]
struct Modes {
    ftz: bool,
    sat: bool,
    relu: bool,
    /// The rounding to an integral value, if any.
    integral: Option<&'static str>,
    /// The rounding direction, unless to nearest even.
    direction: Option<Mod>,
}

impl Modes {
    /// Reads the modifiers; `None` if there is no native code for one of them.
    fn of(variant: &Variant) -> Option<Modes> {
        let mut modes = Modes { ftz: false, sat: false, relu: false, integral: None, direction: None };
        for word in &variant.words {
            let Word::Mod(m) = word else { continue };
            match m {
                Mod::Rn => {}
                Mod::Ftz => modes.ftz = true,
                Mod::Sat => modes.sat = true,
                Mod::Relu => modes.relu = true,
                Mod::Rni => modes.integral = Some("llvm.roundeven"),
                Mod::Rzi => modes.integral = Some("llvm.trunc"),
                Mod::Rmi => modes.integral = Some("llvm.floor"),
                Mod::Rpi => modes.integral = Some("llvm.ceil"),
                Mod::Rz | Mod::Rm | Mod::Rp | Mod::Rna => modes.direction = Some(*m),
                _ => return None,
            }
        }
        Some(modes)
    }

    /// Whether a conversion of a format to itself is a plain move.
    fn moves(self) -> bool {
        !(self.ftz || self.sat || self.relu) && self.integral.is_none()
    }
}

/// The class of a scalar format.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Integer,
    Half { bf16: bool },
    Single,
    Double,
    Tf32,
    Other,
}

fn format(t: Type) -> Format {
    match t {
        _ if t.is_int() => Format::Integer,
        Type::F16 => Format::Half { bf16: false },
        Type::Bf16 => Format::Half { bf16: true },
        Type::F32 => Format::Single,
        Type::F64 => Format::Double,
        Type::Tf32 => Format::Tf32,
        _ => Format::Other,
    }
}

impl Emitter<'_> {
    /// `cvt` among integers and floats and to pairs of halves; `None` where the helper must do it.
    pub fn cvt(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Option<Val>> {
        let (to, Some(from), Some(modes)) = (variant.t(), variant.ty(Var::U), Modes::of(variant)) else {
            return Ok(None);
        };
        if let (Type::F16x2 | Type::Bf16x2, Type::F32, [high, low]) = (to, from, srcs) {
            return self.pair_of_halves([high, low], Half::plain(to == Type::Bf16x2), modes);
        }
        let [source] = srcs else { return Ok(None) };
        if to.bits() > 64 || from.bits() > 64 || from.bits() < 8 {
            return Ok(None);
        }
        // The result for NaN is zero in destinations of 32 bits and less.
        let nan = if to.bits() == 64 { 1 << 63 } else { 0 };
        match (format(from), format(to)) {
            (Format::Integer, Format::Integer) => {
                let v = self.value(source, Elem::int(from.bits()))?;
                let v = if modes.sat { self.clamped(&v, from, to) } else { v };
                Ok(Some(self.w.resize(&v, Elem::int(to.bits()), from.is_signed())))
            }
            (Format::Integer, Format::Single | Format::Double) => self.integer_to_float(source, from, to, modes),
            (Format::Half { bf16 }, Format::Integer | Format::Single) if self.has_halves(bf16) => {
                let v = self.value(source, Elem::I16)?;
                let v = self.read_half(Half::plain(bf16), &v);
                if modes.relu || modes.ftz || modes.direction.is_some() {
                    return Ok(None);
                }
                if to.is_int() {
                    return Ok(self.float_to_integer(&v, to, modes, nan));
                }
                Ok(modes.integral.is_none().then(|| self.finished_single(&v, modes)))
            }
            (Format::Single, Format::Integer) => {
                let v = self.float(source, from, modes.ftz)?;
                Ok(self.float_to_integer(&v, to, modes, nan))
            }
            (Format::Double, Format::Integer) => {
                let v = self.float(source, from, false)?;
                Ok(self.float_to_integer(&v, to, modes, 1 << (to.bits() - 1)))
            }
            (Format::Single, Format::Half { bf16 }) => {
                let v = self.float(source, from, modes.ftz)?;
                Ok(self.rounded_to_half(&v, Half::plain(bf16), modes))
            }
            (Format::Single, Format::Tf32) => {
                let v = self.value(source, Elem::I32)?;
                Ok(self.rounded_to_tf32(&v, modes))
            }
            (Format::Single | Format::Double, Format::Single | Format::Double) => {
                self.float_to_float(source, from, to, modes)
            }
            _ => Ok(None),
        }
    }

    /// `cvt` of two floats to a pair of halves.
    fn pair_of_halves(&mut self, floats: [&Operand; 2], half: Half, modes: Modes) -> Result<Option<Val>> {
        let [high, low] = floats.map(|s| self.float(s, Type::F32, false));
        let (Some(high), Some(low)) =
            (self.rounded_to_half(&high?, half, modes), self.rounded_to_half(&low?, half, modes))
        else {
            return Ok(None);
        };
        Ok(Some(self.join_halves(&low, &high)))
    }

    /// `cvt` among `.f32` and `.f64`.
    fn float_to_float(&mut self, source: &Operand, from: Type, to: Type, modes: Modes) -> Result<Option<Val>> {
        match (from, to) {
            (Type::F32, Type::F64) if !modes.sat && modes.integral.is_none() && !modes.relu => {
                let bits = self.value(source, Elem::I32)?;
                let v = self.w.cast("bitcast", &bits, Elem::F32);
                let v = if modes.ftz { self.flush(&v) } else { v };
                Ok(Some(self.w.cast("fpext", &v, Elem::F64)))
            }
            (Type::F64, Type::F32) if !modes.sat && modes.integral.is_none() && !modes.relu => {
                let v = self.float(source, from, false)?;
                let v = self.narrowed(&v, modes.direction);
                Ok(Some(if modes.ftz { self.flush(&v) } else { v }))
            }
            // A plain move, which preserves NaNs.
            _ if to == from && modes.moves() => Ok(Some(self.value(source, Elem::int(from.bits()))?)),
            (Type::F32, Type::F32) if modes.direction.is_none() && !modes.relu => {
                let v = self.float(source, from, modes.ftz)?;
                let v = match modes.integral {
                    Some(name) => self.w.intrinsic(name, v.ty, &[&v]),
                    None => v,
                };
                Ok(Some(self.finished_single(&v, modes)))
            }
            (Type::F64, Type::F64) if !modes.sat && modes.direction.is_none() => {
                let Some(name) = modes.integral else { return Ok(None) };
                let v = self.float(source, from, false)?;
                Ok(Some(self.w.intrinsic(name, v.ty, &[&v])))
            }
            _ => Ok(None),
        }
    }

    fn finished_single(&mut self, v: &Val, modes: Modes) -> Val {
        if modes.sat { self.saturate(v, Type::F32) } else { self.canonical_float(v) }
    }

    /// Clamps an integer to the range of another type.
    fn clamped(&mut self, v: &Val, from: Type, to: Type) -> Val {
        let range = |t: Type| match t.is_signed() {
            true => (-(1i128 << (t.bits() - 1)), (1i128 << (t.bits() - 1)) - 1),
            false => (0, (1i128 << t.bits()) - 1),
        };
        let ((least, most), (low, high)) = (range(from), range(to));
        let [raise, lower] = if from.is_signed() { ["llvm.smax", "llvm.smin"] } else { ["llvm.umax", "llvm.umin"] };
        let mut v = v.clone();
        for (name, bound, needed) in [(raise, low, low > least), (lower, high, high < most)] {
            if needed {
                v = self.w.intrinsic(name, v.ty, &[&v, &constant(v.ty, bound)]);
            }
        }
        v
    }

    /// Converts an integer to a float. Directed rounding goes through double precision, so the integer must fit into
    /// that exactly.
    fn integer_to_float(&mut self, source: &Operand, from: Type, to: Type, modes: Modes) -> Result<Option<Val>> {
        if modes.sat || modes.relu || modes.direction.is_some() && from.bits() == 64 {
            return Ok(None);
        }
        let v = self.value(source, Elem::int(from.bits()))?;
        let name = if from.is_signed() { "sitofp" } else { "uitofp" };
        Ok(Some(match (to, modes.direction) {
            (Type::F32, None) => self.w.cast(name, &v, Elem::F32),
            (Type::F32, direction) => {
                let v = self.w.cast(name, &v, Elem::F64);
                self.narrowed(&v, direction)
            }
            _ => self.w.cast(name, &v, Elem::F64),
        }))
    }

    /// Converts double to single precision. For directed rounding, a nearest result on the wrong side is moved by one
    /// ulp.
    fn narrowed(&mut self, x: &Val, direction: Option<Mod>) -> Val {
        let y = self.w.cast("fptrunc", x, Elem::F32);
        let Some(direction) = direction else { return y };
        let back = self.w.cast("fpext", &y, Elem::F64);
        let bits = self.w.cast("bitcast", &y, Elem::I32);
        // Decrementing the bits moves towards zero, incrementing them away from it.
        let negative = self.w.cmp("icmp slt", &bits, &constant(bits.ty, 0));
        let (less, more) = (constant(bits.ty, -1), constant(bits.ty, 1));
        let (wrong, step) = match direction {
            Mod::Rz => {
                let [far, size] = [&back, x].map(|v| self.w.intrinsic("llvm.fabs", v.ty, &[v]));
                (self.w.cmp("fcmp ogt", &far, &size), less)
            }
            Mod::Rm => (self.w.cmp("fcmp ogt", &back, x), self.w.select(&negative, &more, &less)),
            _ => (self.w.cmp("fcmp olt", &back, x), self.w.select(&negative, &less, &more)),
        };
        let moved = self.w.op("add", &bits, &step);
        let bits = self.w.select(&wrong, &moved, &bits);
        self.w.cast("bitcast", &bits, Elem::F32)
    }

    /// Converts single precision to a half.
    fn rounded_to_half(&mut self, v: &Val, half: Half, modes: Modes) -> Option<Val> {
        if modes.integral.is_some() || !self.has_halves(half.bf16) {
            return None;
        }
        match modes.direction {
            None => Some(self.write_half(half.with(modes.sat, modes.relu), v)),
            Some(Mod::Rz) if half.bf16 && !modes.sat && !modes.relu => {
                let bits = self.w.cast("bitcast", v, Elem::I32);
                let upper = self.w.op_const("lshr", &bits, 16);
                let upper = self.w.cast("trunc", &upper, Elem::I16);
                Some(self.canonical_half(&bits, &upper))
            }
            _ => None,
        }
    }

    /// Rounds the bits of a single to ten mantissa bits (`tf32`).
    fn rounded_to_tf32(&mut self, bits: &Val, modes: Modes) -> Option<Val> {
        if modes.sat || modes.relu || modes.ftz || modes.integral.is_some() {
            return None;
        }
        let sum = match modes.direction {
            Some(Mod::Rna) => self.w.op_const("add", bits, 0x1000),
            Some(Mod::Rz) => bits.clone(),
            None => {
                let lowest = self.w.op_const("lshr", bits, 13);
                let odd = self.w.op_const("and", &lowest, 1);
                let up = self.w.op_const("add", &odd, 0xfff);
                self.w.op("add", bits, &up)
            }
            _ => return None,
        };
        let rounded = self.w.op_const("and", &sum, !0x1fff);
        let magnitude = self.w.op_const("and", bits, 0x7fff_ffff);
        let is_nan = self.w.cmp("icmp ugt", &magnitude, &constant(bits.ty, 0x7f80_0000));
        Some(self.w.select(&is_nan, &constant(bits.ty, 0x7fff_ffff), &rounded))
    }

    /// Converts a float to an integer, saturating; NaN becomes `nan`.
    fn float_to_integer(&mut self, v: &Val, to: Type, modes: Modes, nan: i128) -> Option<Val> {
        let name = modes.integral?;
        if modes.relu {
            return None;
        }
        let v = if name == "llvm.trunc" { v.clone() } else { self.w.intrinsic(name, v.ty, &[v]) };
        let (bits, signed) = (to.bits(), to.is_signed());
        let elem = Elem::int(bits.max(32));
        let two = |n: u32| 2f64.powi(n as i32);
        let (low, high) = if signed { (-two(bits - 1), two(bits - 1)) } else { (0.0, two(bits)) };
        let ones = |n: u32| (1i128 << n) - 1;
        let (least, most) = if signed { (-(1i128 << (bits - 1)), ones(bits - 1)) } else { (0, ones(bits)) };
        let single = v.ty.elem == Elem::F32;
        let float =
            |x: f64| constant(v.ty, if single { i128::from((x as f32).to_bits()) } else { i128::from(x.to_bits()) });
        let enough = self.w.cmp("fcmp oge", &v, &float(low));
        let beyond = self.w.cmp("fcmp oge", &v, &float(high));
        let fits = self.w.cmp("fcmp olt", &v, &float(high));
        let inside = self.w.op("and", &enough, &fits);
        let safe = self.w.select(&inside, &v, &float(0.0));
        let n = self.w.cast(if signed { "fptosi" } else { "fptoui" }, &safe, elem);
        let n = self.w.select(&beyond, &constant(n.ty, most), &n);
        let below = self.w.cmp("fcmp olt", &v, &float(low));
        let n = self.w.select(&below, &constant(n.ty, least), &n);
        let n = if nan == 0 {
            n
        } else {
            let is_nan = self.w.cmp("fcmp uno", &v, &v);
            let nan = if signed { nan - (1i128 << bits) } else { nan };
            self.w.select(&is_nan, &constant(n.ty, nan), &n)
        };
        Some(n)
    }
}
