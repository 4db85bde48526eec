//! Types, values and constants of LLVM IR as text, and the folding of operations on constants.

use std::fmt;

/// Element type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Elem {
    I1,
    I8,
    I16,
    I32,
    I64,
    I128,
    F16,
    F32,
    F64,
    Ptr,
}

impl Elem {
    /// The integer type of `bits` bits.
    pub fn int(bits: u32) -> Elem {
        match bits {
            1 => Elem::I1,
            8 => Elem::I8,
            16 => Elem::I16,
            32 => Elem::I32,
            64 => Elem::I64,
            _ => Elem::I128,
        }
    }

    /// Width in bits.
    pub fn bits(self) -> u32 {
        match self {
            Elem::I1 => 1,
            Elem::I8 => 8,
            Elem::I16 | Elem::F16 => 16,
            Elem::I32 | Elem::F32 => 32,
            Elem::I64 | Elem::F64 | Elem::Ptr => 64,
            Elem::I128 => 128,
        }
    }

    /// LLVM's name of it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Elem::I1 => "i1",
            Elem::I8 => "i8",
            Elem::I16 => "i16",
            Elem::I32 => "i32",
            Elem::I64 => "i64",
            Elem::I128 => "i128",
            Elem::F16 => "half",
            Elem::F32 => "float",
            Elem::F64 => "double",
            Elem::Ptr => "ptr",
        }
    }
}

/// Type of a value: a scalar, or a vector of 32 lanes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ty {
    /// The element.
    pub elem: Elem,
    /// Whether it is a vector of 32.
    pub vector: bool,
}

impl Ty {
    /// A scalar type.
    pub const fn scalar(elem: Elem) -> Ty {
        Ty { elem, vector: false }
    }

    /// A vector of 32 lanes.
    pub const fn lanes(elem: Elem) -> Ty {
        Ty { elem, vector: true }
    }

    /// Whether its elements are integers, `i1` included.
    pub(super) fn is_integer(self) -> bool {
        !matches!(self.elem, Elem::F16 | Elem::F32 | Elem::F64 | Elem::Ptr)
    }

    /// The same shape with another element.
    pub const fn with(self, elem: Elem) -> Ty {
        Ty { elem, vector: self.vector }
    }
}

impl Ty {
    /// The LLVM type of a vector of `lanes` such elements.
    pub fn part(self, lanes: u32) -> String {
        format!("<{lanes} x {}>", self.elem.name())
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.vector { write!(f, "<32 x {}>", self.elem.name()) } else { f.write_str(self.elem.name()) }
    }
}

/// Part of an intrinsic's name for a type: `v32i32`, `f32`, `i64`.
pub fn mangle(ty: Ty) -> String {
    let elem = match ty.elem {
        Elem::F16 => "f16",
        Elem::F32 => "f32",
        Elem::F64 => "f64",
        Elem::Ptr => "p0",
        e => e.name(),
    };
    if ty.vector { format!("v32{elem}") } else { elem.into() }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::emit) enum Name {
    Temp(u32),
    Text(Box<str>),
}

/// An SSA value or constant of the function being written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Val {
    /// Its type.
    pub ty: Ty,
    pub(in crate::emit) name: Name,
}

impl fmt::Display for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Name::Temp(n) => write!(f, "%t{n}"),
            Name::Text(t) => f.write_str(t),
        }
    }
}

/// A named value: an argument, an `alloca`, a global.
pub fn named(ty: Ty, name: impl Into<Box<str>>) -> Val {
    Val { ty, name: Name::Text(name.into()) }
}

/// A scalar integer constant.
pub fn int(elem: Elem, value: i128) -> Val {
    let text = match elem {
        Elem::I1 => if value & 1 == 1 { "true" } else { "false" }.into(),
        Elem::I8 => (value as i8).to_string(),
        Elem::I16 => (value as i16).to_string(),
        Elem::I32 => (value as i32).to_string(),
        Elem::I64 => (value as i64).to_string(),
        Elem::F32 => format!("0x{:016X}", f64::from(f32::from_bits(value as u32)).to_bits()),
        Elem::F16 => format!("0xH{:04X}", value as u16),
        Elem::F64 => format!("0x{:016X}", value as u64),
        Elem::I128 | Elem::Ptr => value.to_string(),
    };
    named(Ty::scalar(elem), text)
}

/// A constant of type `ty`, the same in all lanes.
pub fn constant(ty: Ty, value: i128) -> Val {
    let scalar = int(ty.elem, value);
    if ty.vector { named(ty, format!("splat ({} {scalar})", Ty::scalar(ty.elem))) } else { scalar }
}

impl Val {
    /// The bits of an integer constant that is the same in all lanes.
    pub(in crate::emit) fn unsigned(&self) -> Option<u128> {
        let Name::Text(text) = &self.name else { return None };
        if !self.ty.is_integer() {
            return None;
        }
        let mut text = &text[..];
        if let Some(inner) = text.strip_prefix("splat (") {
            text = inner.strip_suffix(')')?.split_once(' ')?.1;
        }
        let value = match text {
            "true" => 1,
            "false" => 0,
            number => number.parse::<i128>().ok()?,
        };
        Some(cut(value as u128, self.ty.elem.bits()))
    }
}

/// The lowest `bits` bits of a value.
fn cut(value: u128, bits: u32) -> u128 {
    value & (u128::MAX >> (128 - bits))
}

/// The lowest `bits` bits of a value as a signed number.
pub(super) fn signed(value: u128, bits: u32) -> i128 {
    let up = 128 - bits;
    ((value << up) as i128) >> up
}

/// Folds an operation that needs no code.
pub(super) fn folded(name: &str, a: &Val, b: &Val) -> Option<Val> {
    let vector = a.ty.vector || b.ty.vector;
    let (ty, bits) = (Ty { elem: a.ty.elem, vector }, a.ty.elem.bits());
    let (x, y) = (a.unsigned(), b.unsigned());
    if let (Some(x), Some(y)) = (x, y) {
        let value = match name {
            "add" => x.wrapping_add(y),
            "sub" => x.wrapping_sub(y),
            "mul" => x.wrapping_mul(y),
            "and" => x & y,
            "or" => x | y,
            "xor" => x ^ y,
            "shl" if y < u128::from(bits) => x << y,
            "lshr" if y < u128::from(bits) => x >> y,
            _ => return None,
        };
        return Some(constant(ty, signed(cut(value, bits), bits)));
    }
    let all = cut(u128::MAX, bits);
    // One of them represents the result, if it has its shape.
    let kept = match (name, x, y) {
        ("add" | "sub" | "or" | "xor" | "shl" | "lshr" | "ashr", _, Some(0)) | ("mul", _, Some(1)) => a,
        ("add" | "or" | "xor", Some(0), _) | ("mul", Some(1), _) => b,
        ("and", _, Some(y)) if y == all => a,
        ("and", Some(x), _) if x == all => b,
        ("and" | "mul", _, Some(0)) | ("and" | "mul", Some(0), _) => return Some(constant(ty, 0)),
        ("or", _, Some(y)) if y == all => return Some(constant(ty, -1)),
        ("or", Some(x), _) if x == all => return Some(constant(ty, -1)),
        ("and" | "or", ..) if a == b => a,
        _ => return None,
    };
    (kept.ty.vector == vector).then(|| kept.clone())
}

/// Evaluates a comparison of integer constants.
pub(super) fn compared(name: &str, x: u128, y: u128) -> Option<bool> {
    Some(match name {
        "icmp eq" => x == y,
        "icmp ne" => x != y,
        "icmp ult" => x < y,
        "icmp ule" => x <= y,
        "icmp ugt" => x > y,
        "icmp uge" => x >= y,
        _ => return None,
    })
}

/// A vector constant, lane by lane.
pub fn per_lane(elem: Elem, f: impl Fn(u32) -> i128) -> Val {
    let lanes: Vec<String> = (0..32).map(|l| format!("{} {}", Ty::scalar(elem), int(elem, f(l)))).collect();
    named(Ty::lanes(elem), format!("<{}>", lanes.join(", ")))
}
