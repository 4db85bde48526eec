//! The operands of a form: their roles, types and numbers of registers, and what else is allowed there (manual, chapter 6).

use crate::{Mod, Parts, Type, Var, name};

/// The type that an operand must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ty {
    /// The type bound to a variable.
    Of(Var),
    /// Always this type.
    Is(Type),
    /// Twice the width of the variable's type, same kind (`mul.wide`).
    Wide(Var),
    /// Bits of the variable's size: any register of this width.
    Size(Var),
    /// A signed or unsigned integer or bits, of the variable's width.
    Int(Var),
    /// This bit-size type, in a register declared with exactly this type.
    Untyped(Type),
    /// An integer or bits of 32 or 64 bits, as addresses are.
    Pointer,
    /// Anything: a named [`Rule`](crate::Rule) decides.
    Any,
}

/// How many registers an operand holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// A scalar.
    One,
    /// As many as `.v2`, `.v4`, `.v8` on the instruction say; a scalar without one.
    ByVec,
    /// Exactly this many, in braces.
    Exactly(u8),
    /// A scalar or any vector: a named [`Rule`](crate::Rule) decides (`mov.b64 {a,b}, c`).
    Free,
    /// The product of the numbers of those modifiers in the table that were written: a fragment's registers by its shape.
    /// In braces, even a single one.
    Table(&'static [(Mod, u8)]),
    /// Like [`Count::Table`], but a scalar is allowed for one, and extra elements of a vector of two or four are ignored: the
    /// coordinates of a texel.
    AtLeast(&'static [(Mod, u8)]),
}

/// The role of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A register that is written.
    Dst,
    /// A value that is read: register, immediate, special register where the row allows it.
    Src,
    /// A constant expression.
    Imm,
    /// A bracketed address `[a+4]` in the instruction's space.
    Addr,
    /// The name of a variable with or without an offset, or a register with its address; no brackets (`cvta`, `mapa`).
    Var,
    /// A bracketed list: `[tex, sampler, {x, y}]`, `[map, {c0, c1}]`.
    Group(&'static [Opnd]),
    /// A label.
    Label,
    /// A function name, or a register that holds a function's address.
    Callee,
    /// The parenthesized list of return arguments.
    Rets,
    /// The parenthesized list of arguments.
    Args,
    /// The label of a `.branchtargets`, `.calltargets` or `.callprototype`.
    Table,
    /// The name of a `.texref`, `.samplerref` or `.surfref` variable (or formal), or a 64-bit register that holds its handle.
    Handle(Type),
}
/// One operand of a form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opnd {
    /// The manual's name for it: `d`, `a`, `b`.
    pub name: &'static str,
    /// Its role.
    pub role: Role,
    /// Its type.
    pub ty: Ty,
    /// How many registers.
    pub count: Count,
    /// Type of the partner after `|` (`p|q`, `d|p`), if one is allowed.
    pub pair: Option<Ty>,
    /// The partner is required.
    pub paired: bool,
    /// May be omitted (together with everything after it).
    pub optional: bool,
    /// `_` is allowed here.
    pub sink: bool,
    /// `!` is allowed before it.
    pub not: bool,
    /// A register wider than the type is allowed (section 9.4.1).
    pub wider: bool,
    /// Immediates are allowed ([`Role::Src`] only).
    pub imm: bool,
    /// Present exactly when one of these modifiers is written (`.L2::cache_hint` and its policy). Empty: always.
    pub when: &'static [Mod],
    /// The only constants allowed; empty for no such limit.
    pub values: &'static [i64],
    /// For addresses: in this state space, regardless of the instruction's own.
    pub space: Option<Mod>,
    /// A part of the register may be selected (video instructions).
    pub parts: Option<Parts>,
    /// `-` is allowed before the register (`vmad`).
    pub neg: bool,
    /// Type of the first element of a vector, where it is another than that of the rest: the layer before coordinates.
    pub lead: Option<Ty>,
    /// Special registers are allowed (`mov`).
    pub special: bool,
    /// `.unified` may follow the bracket (`ld`, section 9.7.9.8).
    pub unified: bool,
    /// Smallest and largest value of a constant, where ptxas checks it.
    pub range: Option<(i64, i64)>,
    /// A constant must be a multiple of this.
    pub step: i64,
    /// ptxas ignores braces around it.
    pub braced: bool,
    /// ptxas does not check the type of a register here.
    pub untyped: bool,
}

impl Opnd {
    /// Whether it gives the coordinates in a texture, a surface or a tensor.
    pub fn is_coordinate(&self) -> bool {
        matches!(self.count, Count::AtLeast(_)) || self.name == name::TENSOR_COORDS
    }

    const fn new(name: &'static str, role: Role, ty: Ty) -> Opnd {
        let imm = matches!(role, Role::Src | Role::Imm);
        Opnd {
            name,
            role,
            ty,
            count: Count::One,
            pair: None,
            paired: false,
            optional: false,
            sink: false,
            not: false,
            wider: false,
            imm,
            when: &[],
            values: &[],
            space: None,
            parts: None,
            neg: false,
            lead: None,
            special: false,
            unified: false,
            range: None,
            step: 1,
            braced: false,
            untyped: false,
        }
    }

    /// May be omitted.
    pub const fn opt(mut self) -> Opnd {
        self.optional = true;
        self
    }

    /// `_` is allowed here.
    pub const fn sink(mut self) -> Opnd {
        self.sink = true;
        self
    }

    /// Has the manual's name `name`.
    pub const fn named(mut self, name: &'static str) -> Opnd {
        self.name = name;
        self
    }

    /// May have a partner of type `ty` after `|`.
    pub const fn pair(mut self, ty: Ty) -> Opnd {
        self.pair = Some(ty);
        self
    }

    /// Must have a partner of type `ty` after `|`.
    pub const fn paired(mut self, ty: Ty) -> Opnd {
        self.pair = Some(ty);
        self.paired = true;
        self
    }

    /// Registers only, no immediate.
    pub const fn reg(mut self) -> Opnd {
        self.imm = false;
        self
    }

    /// Registers may be wider than the type.
    pub const fn wider(mut self) -> Opnd {
        self.wider = true;
        self
    }

    /// Present exactly when one of these modifiers is written.
    pub const fn when(mut self, mods: &'static [Mod]) -> Opnd {
        self.when = mods;
        self
    }

    /// Takes only these constants.
    pub const fn values(mut self, values: &'static [i64]) -> Opnd {
        self.values = values;
        self
    }

    /// An address in that space.
    pub const fn space(mut self, space: Mod) -> Opnd {
        self.space = Some(space);
        self
    }

    /// A part may be selected.
    pub const fn parts(mut self, parts: Parts) -> Opnd {
        self.parts = Some(parts);
        self
    }

    /// May be negated.
    pub const fn neg(mut self) -> Opnd {
        self.neg = true;
        self
    }

    /// Its first element has that type.
    pub const fn lead(mut self, ty: Ty) -> Opnd {
        self.lead = Some(ty);
        self
    }

    /// Special registers are allowed.
    pub const fn special(mut self) -> Opnd {
        self.special = true;
        self
    }

    /// `.unified` may follow.
    pub const fn unified(mut self) -> Opnd {
        self.unified = true;
        self
    }

    /// A constant must lie between `low` and `high`.
    pub const fn range(mut self, low: i64, high: i64) -> Opnd {
        self.range = Some((low, high));
        self
    }

    /// A constant must be a multiple of `step`.
    pub const fn step(mut self, step: i64) -> Opnd {
        self.step = step;
        self
    }

    /// Braces around it are ignored.
    pub const fn braced(mut self) -> Opnd {
        self.braced = true;
        self
    }

    /// The type of a register is not checked.
    pub const fn untyped(mut self) -> Opnd {
        self.untyped = true;
        self
    }

    /// `!` is allowed before it.
    pub const fn not(mut self) -> Opnd {
        self.not = true;
        self
    }

    /// Holds `count` registers.
    pub const fn count(mut self, count: Count) -> Opnd {
        self.count = count;
        self
    }
}

/// A destination of the variable's type.
pub const fn d(v: Var) -> Opnd {
    Opnd::new("d", Role::Dst, Ty::Of(v))
}

/// A source of the variable's type.
pub const fn a(v: Var) -> Opnd {
    Opnd::new("a", Role::Src, Ty::Of(v))
}

/// A second source of the variable's type.
pub const fn b(v: Var) -> Opnd {
    a(v).named("b")
}

/// A third source of the variable's type.
pub const fn c(v: Var) -> Opnd {
    a(v).named("c")
}

/// A destination of a type expression.
pub const fn dst(ty: Ty) -> Opnd {
    Opnd::new("d", Role::Dst, ty)
}

/// A source of a type expression.
pub const fn src(ty: Ty) -> Opnd {
    Opnd::new("a", Role::Src, ty)
}

/// A predicate that is read, `!p` allowed.
pub const fn p_in() -> Opnd {
    let mut o = Opnd::new("c", Role::Src, Ty::Is(Type::Pred));
    o.not = true;
    o
}

/// A predicate that is written.
pub const fn p_out() -> Opnd {
    Opnd::new("p", Role::Dst, Ty::Is(Type::Pred))
}

/// An address in brackets.
pub const fn addr() -> Opnd {
    Opnd::new("a", Role::Addr, Ty::Pointer)
}

/// A constant.
pub const fn imm(ty: Ty) -> Opnd {
    Opnd::new("imm", Role::Imm, ty)
}

/// An operand of any other role.
pub const fn operand(name: &'static str, role: Role, ty: Ty) -> Opnd {
    Opnd::new(name, role, ty)
}
