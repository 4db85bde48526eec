//! Surface instructions (manual, section 9.7.11).
//!
//! `.b` addresses bytes in x, `.p` samples. `.3d` and `.a2d` have four coordinates, of which the last is ignored.

use crate::{Effect::Memory, Mod as M, Type::*, Var::T, *};

static GEOMETRY: Class = Class::new("geometry", &[M::D1, M::D2, M::D3, M::A1d, M::A2d]);
static PLAIN: Class = Class::new("geometry", &[M::D1, M::D2, M::D3]);
static CLAMP: Class = Class::new("clamping", &[M::Trap, M::Clamp, M::Zero]);
static LOAD_CACHE: Class = Class::new("cache operator", &[M::Ca, M::Cg, M::Cs, M::Cv]);
static STORE_CACHE: Class = Class::new("cache operator", &[M::Wb, M::Cg, M::Cs, M::Wt]);
static VEC: Class = Class::new("vector width", &[M::V2, M::V4]);
static MIN_MAX: Class = Class::new("operation", &[M::Min, M::Max]);
static AND_OR: Class = Class::new("operation", &[M::And, M::Or]);

/// Coordinates, the layer counted.
static COORDS: &[(M, u8)] = &[(M::D2, 2), (M::D3, 4), (M::A1d, 2), (M::A2d, 4)];
static POINT: &[Opnd] = &[operand("a", Role::Handle(SurfRef), Ty::Any), src(Ty::Is(S32)).named("b").count(Count::AtLeast(COORDS))];

const fn at() -> Opnd {
    operand("[a, b]", Role::Group(POINT), Ty::Any)
}
const fn value() -> Opnd {
    a(T).named("c").count(Count::ByVec)
}

static RULES: &[Rule] = &[Rule::HandleRegister, Rule::NarrowVector];
static NEEDS: &[Need] = &[
    m(M::D3, 3, 0, 20), m(M::A1d, 3, 0, 20), m(M::A2d, 3, 0, 20), m(M::Clamp, 2, 0, 0), m(M::Zero, 2, 0, 0),
    m(M::Ca, 2, 0, 20), m(M::Cg, 2, 0, 20), m(M::Cs, 2, 0, 20), m(M::Cv, 2, 0, 20), m(M::Wb, 2, 0, 20), m(M::Wt, 2, 0, 20),
];

pub static SULD: Op = op("suld", "9.7.11.1", Memory, "Load from a surface.", &[
    form(&[one(M::B), req(&GEOMETRY), opt(&LOAD_CACHE), opt(&VEC), T.of(&[B8, B16, B32, B64]), req(&CLAMP)],  &[d(T).count(Count::ByVec).wider(), at()]).fixed(1).ptx(1, 5).only(NEEDS).rules(RULES),
]);
static SAMPLE_NEEDS: &[Need] = &[m(M::D3, 3, 0, 20), m(M::A1d, 4, 1, 30), m(M::A2d, 4, 1, 30)];
pub static SUST: Op = op("sust", "9.7.11.2", Memory, "Store to a surface.", &[
    form(&[one(M::B), req(&GEOMETRY), opt(&STORE_CACHE), opt(&VEC), T.of(&[B8, B16, B32, B64]), req(&CLAMP)], &[at(), value().wider()]).fixed(1).ptx(1, 5).only(NEEDS).rules(RULES),
    // the manual has no arrays and no cache operators here; ptxas takes them
    form(&[one(M::P), req(&GEOMETRY), opt(&STORE_CACHE), opt(&VEC), T.of(&[B32]), req(&CLAMP)],               &[at(), value().wider()]).fixed(1).ptx(2, 0).sm(20).only(SAMPLE_NEEDS).rules(RULES),
]);
static CUBOID: &[Need] = &[m(M::D3, 3, 0, 20)];
static WIDE_MIN_MAX: &[Need] = &[t(U64, 8, 1, 50), t(S64, 8, 1, 50), t(B64, 8, 1, 50), m(M::D3, 3, 0, 20)];
pub static SURED: Op = op("sured", "9.7.11.3", Memory, "Reduce a value into a surface.", &[
    form(&[one(M::B), one(M::Add), req(&PLAIN), T.of(&[U32, U64, S32]), req(&CLAMP)],           &[at(), a(T).named("c").wider()]).fixed(1).ptx(2, 0).sm(20).only(CUBOID).rules(RULES),
    form(&[one(M::B), req(&MIN_MAX), req(&PLAIN), T.of(&[U32, S32, U64, S64]), req(&CLAMP)],    &[at(), a(T).named("c").wider()]).fixed(1).ptx(2, 0).sm(20).only(WIDE_MIN_MAX).rules(RULES),
    form(&[one(M::B), req(&AND_OR), req(&PLAIN), T.of(&[B32]), req(&CLAMP)],                    &[at(), a(T).named("c").wider()]).fixed(1).ptx(2, 0).sm(20).only(CUBOID).rules(RULES),
    form(&[one(M::P), one(M::Add), req(&PLAIN), T.of(&[B32]), req(&CLAMP)],                     &[at(), a(T).named("c").wider()]).fixed(1).ptx(2, 0).sm(20).only(CUBOID).rules(RULES),
    form(&[one(M::P), req(&MIN_MAX), req(&PLAIN), T.of(&[B32, B64]), req(&CLAMP)],              &[at(), a(T).named("c").wider()]).fixed(1).ptx(2, 0).sm(20).only(WIDE_MIN_MAX).rules(RULES),
    form(&[one(M::P), req(&AND_OR), req(&PLAIN), T.of(&[B32]), req(&CLAMP)],                    &[at(), a(T).named("c").wider()]).fixed(1).ptx(2, 0).sm(20).only(CUBOID).rules(RULES),
]);
static QUERY: Class = Class::new("query", &[M::Width, M::Height, M::Depth, M::ChannelDataType, M::ChannelOrder, M::ArraySize, M::MemoryLayout]);
static SURFACE: &[Opnd] = &[operand("a", Role::Handle(SurfRef), Ty::Any)];
pub static SUQ: Op = op("suq", "9.7.11.4", Memory, "Query a property of a surface.", &[
    form(&[req(&QUERY), T.of(&[B32])], &[d(T), operand("[a]", Role::Group(SURFACE), Ty::Any)]).ptx(1, 5)
        .only(&[m(M::ChannelDataType, 2, 1, 0), m(M::ChannelOrder, 2, 1, 0), m(M::ArraySize, 4, 1, 0), m(M::MemoryLayout, 4, 2, 0)]).rules(RULES),
]);
