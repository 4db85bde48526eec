//! The shape of an operand, and whether a row accepts it (manual, chapter 6 and section 9.4.1).
//!
//! A [`Shape`] is an operand without its names: a register of a type, a constant, an address. [`Variant::accepts`] is the
//! table's verdict on a list of them; rules that need more than the shape ([`crate::Rule`]) are not applied.

use crate::{Count, Kind, Mod, Opcode, Opnd, Role, Rule, Space, Ty, Type, Variant};

/// An operand without its names. `Display` prints it with the names that [`crate::sample::module`] declares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A register of that type; the number distinguishes several.
    Reg(Type, u8),
    /// A special register of that type.
    Special(Type),
    /// An integer constant.
    Int(i64),
    /// A floating-point constant, in single (`0f`) or double (`0d`) precision.
    Float {
        /// Written as `0f`.
        single: bool,
    },
    /// A variable's address as a value: `x`.
    Symbol(Space),
    /// `[r]` for a register of that type, `[x]` for a variable of that space.
    Address(Box<Shape>),
    /// `[r].unified`
    Unified(Box<Shape>),
    /// `{a, b}`
    Vector(Vec<Shape>),
    /// `[a, b]`
    Group(Vec<Shape>),
    /// `a|b`
    Pair(Box<Shape>, Box<Shape>),
    /// `!p`
    Not(Box<Shape>),
    /// `_`
    Sink,
    /// A label.
    Label,
    /// The label of a table of labels.
    Table,
    /// A name that stands for a texture, a sampler or a surface.
    Handle(Type),
}

impl Type {
    /// Whether a register declared with type `reg` can be an operand of this instruction type. `wider` relaxes the
    /// width, as `ld`, `st` and `cvt` do (section 9.4.1). Settled by asking ptxas for every pair: `.f16x2` registers count as
    /// 32 untyped bits except where a single float is wanted; the alternate formats travel in registers of bits.
    pub fn takes(self, reg: Type, wider: bool) -> bool {
        if self == Type::Pred || reg == Type::Pred {
            return self == reg;
        }
        let bits = self.bits().max(8).next_power_of_two();
        let untyped = reg.kind() == Kind::Bits;
        // A float register never holds more than its own format; bits and integers may be wider.
        let fits = reg.bits() == bits || wider && reg.bits() > bits && (self.kind() != Kind::Float || untyped);
        fits && match self.kind() {
            Kind::Bits => true,
            Kind::Signed | Kind::Unsigned => untyped || reg.is_int() || reg == Type::F16x2,
            Kind::Float => match self {
                Type::F16 | Type::F16x2 | Type::F32 | Type::F64 => untyped || reg == self,
                _ => untyped,
            },
            Kind::Packed => untyped || reg == Type::F16x2,
            Kind::Pred => false,
            Kind::Opaque => untyped || reg.is_int(),
        }
    }

    /// Whether a register of this type may hold an address.
    pub fn holds_address(self) -> bool {
        self.is_register() && self.bits() <= 64 && (self.is_int() || self.kind() == Kind::Bits || self == Type::F16x2)
    }

    /// Whether an integer constant can be an operand of this type.
    pub fn takes_int(self) -> bool {
        matches!(self.kind(), Kind::Bits | Kind::Signed | Kind::Unsigned | Kind::Pred)
    }

    /// Whether a floating-point constant may: any for `.f32` and `.f64`; for bits only one of their width.
    pub fn takes_float(self, single: bool) -> bool {
        match self {
            Type::F32 | Type::F64 => true,
            Type::B32 => single,
            Type::B64 => !single,
            _ => false,
        }
    }

    /// The integer or float of the same kind with twice the bits.
    pub fn doubled(self) -> Option<Type> {
        Some(match self {
            Type::U8 => Type::U16,
            Type::U16 => Type::U32,
            Type::U32 => Type::U64,
            Type::S8 => Type::S16,
            Type::S16 => Type::S32,
            Type::S32 => Type::S64,
            Type::B8 => Type::B16,
            Type::B16 => Type::B32,
            Type::B32 => Type::B64,
            Type::B64 => Type::B128,
            _ => return None,
        })
    }

    /// Untyped bits of the same width.
    pub fn untyped(self) -> Type {
        Type::of_bits(self.bits())
    }
}

impl Variant {
    /// The type that a type expression stands for here; `None` for addresses and where a rule decides.
    pub fn resolve_ty(&self, ty: Ty) -> Option<Type> {
        match ty {
            Ty::Of(v) => self.ty(v),
            Ty::Is(t) | Ty::Untyped(t) => Some(t),
            Ty::Wide(v) => self.ty(v).and_then(Type::doubled),
            Ty::Size(v) => self.ty(v).map(Type::untyped),
            Ty::Int(v) => self.ty(v).map(|t| match t.untyped() {
                Type::B16 => Type::U16,
                Type::B32 => Type::U32,
                Type::B64 => Type::U64,
                other => other,
            }),
            Ty::Pointer | Ty::Any => None,
        }
    }

    /// Whether a register declared with type `reg` can be this operand, or a part of it with the type `ty`: an element, a partner, or
    /// the base of an address in brackets.
    pub fn takes_register(&self, opnd: &Opnd, ty: Ty, reg: Type) -> bool {
        let wide = |t: Type| t.bits() >= 32 && t != Type::F16x2;
        match (ty, self.resolve_ty(ty)) {
            (Ty::Any, _) => true,
            (Ty::Untyped(wanted), _) => reg == wanted,
            // A packed register is 32 untyped bits to an instruction's own type, but not where the manual fixes `.u32`.
            (Ty::Is(wanted), _) if wanted.is_int() && reg == Type::F16x2 => false,
            (_, Some(wanted)) => wanted.takes(reg, opnd.wider),
            (Ty::Pointer, None) => reg.holds_address() && (opnd.role == Role::Addr || wide(reg)),
            // An optional type that was left out.
            (_, None) => true,
        }
    }

    /// The state space that the instruction names; [`Space::Generic`] without one.
    pub fn space(&self) -> Space {
        self.words.iter().find_map(|w| w.as_space()).unwrap_or(Space::Generic)
    }

    /// Whether these operands fit this variant's row, as far as shapes show.
    pub fn accepts(&self, shapes: &[Shape]) -> bool {
        let mut rest = shapes;
        let mut left_out = false;
        if let [Shape::Vector(_), Shape::Vector(_)] = shapes
            && self.row().rules.contains(&Rule::MovOperand)
        {
            return false; // one side is a scalar
        }
        if self.row().rules.contains(&Rule::SinkOnly) && shapes.first().is_some_and(|s| *s != Shape::Sink) {
            return false;
        }
        for opnd in self.operands() {
            match rest.split_first() {
                Some((shape, tail)) if !left_out && self.takes(opnd, shape) => rest = tail,
                None if opnd.optional => left_out = true,
                _ => return false,
            }
        }
        rest.is_empty()
    }

    /// Whether an operand of this row may look like that.
    pub fn takes(&self, opnd: &Opnd, shape: &Shape) -> bool {
        match (opnd.role, shape) {
            (Role::Dst, Shape::Pair(d, q)) => match opnd.pair {
                Some(_) if opnd.paired && **q == Shape::Sink => false,
                Some(ty) => self.element(opnd, opnd.ty, d) && self.element(opnd, ty, q),
                None => false,
            },
            (Role::Dst, Shape::Sink) if opnd.count == Count::ByVec => opnd.sink,
            (Role::Dst | Role::Src | Role::Imm, Shape::Vector(elements)) if opnd.braced && elements.len() == 1 => {
                self.takes(opnd, &elements[0])
            }
            (Role::Dst | Role::Src, Shape::Vector(elements)) => match self.count(opnd) {
                // Loads and stores take the braces of a vector around a single value, too.
                Some(1) if opnd.count == Count::ByVec && elements.len() == 1 && self.op.moves_vectors() => {
                    self.takes(opnd, &elements[0])
                }
                Some(1) if opnd.count == Count::One || opnd.count == Count::ByVec => false,
                Some(n) => {
                    let spare = matches!(opnd.count, Count::AtLeast(_)) && matches!(elements.len(), 2 | 4);
                    let (lead, rest) = elements.split_at(usize::from(opnd.lead.is_some()).min(elements.len()));
                    // ptxas reads `{%r1, %r2}` of an `.f32` vector as bits; a scalar it would refuse.
                    let bits = matches!(opnd.count, Count::ByVec)
                        && rest.iter().all(|e| matches!(e, Shape::Sink) || matches!(e, Shape::Reg(t, _) if t.is_int()));
                    let ty = if bits { opnd.ty.untyped() } else { opnd.ty };
                    (elements.len() == n as usize || spare && elements.len() > n as usize)
                        && alike(rest)
                        && lead.iter().zip(opnd.lead).all(|(e, ty)| self.element(&opnd.sink_inside(), ty, e))
                        && rest.iter().all(|e| self.element(&opnd.sink_inside(), ty, e))
                }
                None => self.pack(opnd, elements),
            },
            (Role::Dst, _) if opnd.paired => false,
            (Role::Dst | Role::Src, shape) => {
                self.count(opnd).is_none_or(|n| n == 1) && !opnd.braces() && self.element(opnd, opnd.ty, shape)
            }
            (Role::Imm, Shape::Int(v)) => opnd.takes_constant(*v),
            (Role::Addr, Shape::Address(base)) => self.address(opnd, base),
            (Role::Addr, Shape::Unified(inner)) => opnd.unified && self.takes(opnd, inner),
            (Role::Var, Shape::Symbol(space)) => {
                let named = opnd.space.and_then(Mod::space).unwrap_or(self.space());
                named == Space::Generic || *space == named
            }
            (Role::Var, Shape::Int(_)) => true,
            (Role::Var, Shape::Reg(t, _)) => self.takes_register(opnd, opnd.ty, *t),
            (Role::Group(inner), Shape::Group(shapes)) => {
                let mut rest = &shapes[..];
                self.inside(inner).all(|o| match rest.split_first() {
                    Some((shape, tail)) if self.takes(o, shape) => {
                        rest = tail;
                        true
                    }
                    Some(_) => false,
                    None => o.optional,
                }) && rest.is_empty()
            }
            (Role::Label, Shape::Label) | (Role::Table, Shape::Table) => true,
            (Role::Handle(t), Shape::Handle(u)) => t == *u,
            (Role::Handle(_), Shape::Reg(t, _)) => Type::U64.takes(*t, false),
            _ => false,
        }
    }

    /// `mov`: two or four registers that together have the width of the type.
    fn pack(&self, opnd: &Opnd, elements: &[Shape]) -> bool {
        let bits = self.t().bits() / elements.len().max(1) as u32;
        matches!(elements.len(), 1 | 2 | 4)
            && alike(elements)
            && elements.iter().any(|e| *e != Shape::Sink)
            && elements.iter().all(|e| match e {
                Shape::Reg(t, _) => t.bits() == bits && *t != Type::Pred,
                Shape::Sink => opnd.role == Role::Dst,
                Shape::Int(_) => opnd.role == Role::Src,
                _ => false,
            })
    }

    fn address(&self, opnd: &Opnd, base: &Shape) -> bool {
        let space = opnd.space.and_then(Mod::space).unwrap_or(self.space());
        match base {
            Shape::Reg(t, _) => self.takes_register(opnd, opnd.ty, *t),
            Shape::Symbol(_) if opnd.ty != Ty::Pointer => false,
            // Constant memory has generic addresses, but variables in it must be accessed with an explicit state space.
            Shape::Symbol(s) if space == Space::Generic => match self.row().rules.contains(&Rule::SharedVariable) {
                true => *s == Space::Shared,
                false if self.op == Opcode::Prefetchu => *s == Space::Global,
                false => !matches!(s, Space::Param | Space::Const),
            },
            Shape::Symbol(s) => *s == space,
            Shape::Int(_) => space == Space::Local,
            _ => false,
        }
    }

    fn element(&self, opnd: &Opnd, ty: Ty, shape: &Shape) -> bool {
        let read = opnd.role == Role::Src;
        match (shape, self.resolve_ty(ty)) {
            (Shape::Sink, _) => opnd.sink && !read,
            (Shape::Not(inner), Some(Type::Pred)) => read && matches!(**inner, Shape::Reg(Type::Pred, _)),
            (Shape::Reg(t, _), _) => self.takes_register(opnd, ty, *t),
            (Shape::Special(t), Some(ty)) => {
                read && opnd.special
                    && !ty.is_float()
                    && ty != Type::Pred
                    && (ty.bits() == t.bits() || opnd.wider && ty.bits() <= t.bits())
            }
            (Shape::Int(v), Some(ty)) => read && opnd.imm && ty.takes_int() && opnd.takes_constant(*v),
            (Shape::Int(v), None) => read && opnd.imm && opnd.takes_constant(*v),
            (Shape::Float { single }, Some(ty)) => read && opnd.imm && ty.takes_float(*single),
            (Shape::Symbol(_), _) => read && opnd.special,
            _ => false,
        }
    }
}

impl Ty {
    /// Bits of the same width, where a variable decides.
    fn untyped(self) -> Ty {
        if let Ty::Of(v) = self { Ty::Size(v) } else { self }
    }
}

impl Opnd {
    /// Whether a constant of that value is allowed.
    pub fn takes_constant(&self, value: i64) -> bool {
        value % self.step == 0
            && (self.values.is_empty() || self.values.contains(&value))
            && self.range.is_none_or(|(low, high)| (low..=high).contains(&value))
    }

    /// Whether the operand is in braces even if it is a single register.
    pub const fn braces(&self) -> bool {
        matches!(self.count, Count::Exactly(_) | Count::Table(_))
    }

    /// As an element of a vector: `_` is allowed in every vector that is written.
    fn sink_inside(&self) -> Opnd {
        if self.role == Role::Dst { self.sink() } else { *self }
    }
}

/// Whether the registers of a vector are of one size, and all integers and bits or all floats of one format.
fn alike(elements: &[Shape]) -> bool {
    let mut types = elements.iter().filter_map(|e| match e {
        Shape::Reg(t, _) => Some((t.bits(), t.is_float())),
        _ => None,
    });
    types.next().is_none_or(|first| types.all(|t| t == first))
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        fn list(f: &mut std::fmt::Formatter<'_>, open: &str, shapes: &[Shape], close: &str) -> std::fmt::Result {
            write!(f, "{open}")?;
            for (i, s) in shapes.iter().enumerate() {
                write!(f, "{}{s}", if i > 0 { ", " } else { "" })?;
            }
            write!(f, "{close}")
        }
        match self {
            Shape::Reg(t, n) => write!(f, "%{}_{n}", t.name()),
            Shape::Special(t) => f.write_str(if t.bits() == 64 { "%clock64" } else { "%laneid" }),
            Shape::Int(v) => write!(f, "{v}"),
            Shape::Float { single: true } => f.write_str("0f3F800000"),
            Shape::Float { single: false } => f.write_str("0d3FF0000000000000"),
            Shape::Symbol(space) => write!(f, "{}_v", space.name()),
            Shape::Address(base) => write!(f, "[{base}]"),
            Shape::Unified(inner) => write!(f, "{inner}.unified"),
            Shape::Vector(v) => list(f, "{", v, "}"),
            Shape::Group(v) => list(f, "[", v, "]"),
            Shape::Pair(p, q) => write!(f, "{p}|{q}"),
            Shape::Not(p) => write!(f, "!{p}"),
            Shape::Sink => f.write_str("_"),
            Shape::Label => f.write_str("$L"),
            Shape::Table => f.write_str("$T"),
            Shape::Handle(t) => write!(f, "{}_v", t.name()),
        }
    }
}
