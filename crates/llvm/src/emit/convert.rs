//! `cvt` (manual, section 9.7.9.21).

use super::{
    func::{Emitter, Result},
    text::{Elem, Val, constant},
};
use margay_ir::Operand;
use margay_isa::{Mod, Type, Var, Variant};

impl Emitter<'_> {
    /// `cvt` between integers and floats of 32 and 64 bits; `None` for the helper.
    pub fn cvt(&mut self, variant: &Variant, srcs: &[Operand]) -> Result<Option<Val>> {
        let (to, Some(from)) = (variant.t(), variant.ty(Var::U)) else { return Ok(None) };
        if variant.has(Mod::Sat) || srcs.len() != 1 || to.bits() > 64 || from.bits() > 64 {
            return Ok(None);
        }
        let ftz = variant.has(Mod::Ftz);
        if to.is_int() && from.is_int() {
            let v = self.value(&srcs[0], Elem::int(from.bits().max(8)))?;
            return Ok(Some(self.w.resize(&v, Elem::int(to.bits()), from.is_signed())));
        }
        let float = |t: Type| match t {
            Type::F32 => Some(Elem::F32),
            Type::F64 => Some(Elem::F64),
            _ => None,
        };
        let modifiers =
            variant.words.iter().filter(|w| matches!(w, margay_isa::Word::Mod(m) if *m != Mod::Ftz)).count();
        let nearest = variant.has(Mod::Rn) || modifiers == 0;
        let rounding =
            [(Mod::Rni, "llvm.roundeven"), (Mod::Rzi, "llvm.trunc"), (Mod::Rmi, "llvm.floor"), (Mod::Rpi, "llvm.ceil")]
                .into_iter()
                .find(|(m, _)| variant.has(*m));
        match (float(to), float(from)) {
            (Some(f), None) if from.is_int() && nearest => {
                let v = self.value(&srcs[0], Elem::int(from.bits()))?;
                Ok(Some(self.w.cast(if from.is_signed() { "sitofp" } else { "uitofp" }, &v, f)))
            }
            (Some(Elem::F64), Some(Elem::F32)) if nearest => {
                let bits = self.value(&srcs[0], Elem::I32)?;
                let v = self.w.cast("bitcast", &bits, Elem::F32);
                let v = if ftz { self.flush(&v) } else { v };
                Ok(Some(self.w.cast("fpext", &v, Elem::F64)))
            }
            (Some(Elem::F32), Some(Elem::F64)) if nearest => {
                let v = self.float(&srcs[0], from, false)?;
                let v = self.w.cast("fptrunc", &v, Elem::F32);
                Ok(Some(if ftz { self.flush(&v) } else { v }))
            }
            (Some(Elem::F32), Some(Elem::F32)) if !ftz => match rounding {
                Some((_, name)) => {
                    let v = self.float(&srcs[0], from, false)?;
                    let v = self.w.intrinsic(name, v.ty, &[&v]);
                    Ok(Some(self.canonical_float(&v)))
                }
                None => Ok(None),
            },
            (None, Some(Elem::F32)) if matches!(to, Type::S32 | Type::U32) => {
                let Some((mode, name)) = rounding else { return Ok(None) };
                if ftz && !matches!(mode, Mod::Rzi | Mod::Rni) {
                    return Ok(None);
                }
                let v = self.float(&srcs[0], from, false)?;
                let v = if mode == Mod::Rzi { v } else { self.w.intrinsic(name, v.ty, &[&v]) };
                Ok(Some(self.clamped_integer(&v, to.is_signed())))
            }
            _ => Ok(None),
        }
    }

    /// A float as a 32-bit integer, towards zero: NaN gives 0, what is out of range the nearest end.
    fn clamped_integer(&mut self, v: &Val, signed: bool) -> Val {
        let single = |x: f32| constant(v.ty, i128::from(x.to_bits()));
        let (low, high) = if signed { (-2_147_483_648.0, 2_147_483_648.0) } else { (0.0, 4_294_967_296.0) };
        let (least, most) = if signed { (i32::MIN, i32::MAX) } else { (0, -1) };
        let enough = self.w.cmp("fcmp oge", v, &single(low));
        let fits = self.w.cmp("fcmp olt", v, &single(high));
        let inside = self.w.op("and", &enough, &fits);
        let safe = self.w.select(&inside, v, &single(0.0));
        let n = self.w.cast(if signed { "fptosi" } else { "fptoui" }, &safe, Elem::I32);
        let beyond = self.w.cmp("fcmp oge", v, &single(high));
        let n = self.w.select(&beyond, &constant(n.ty, i128::from(most)), &n);
        let below = self.w.cmp("fcmp olt", v, &single(low));
        self.w.select(&below, &constant(n.ty, i128::from(least)), &n)
    }
}
