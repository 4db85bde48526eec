//! Texture instructions (manual, section 9.7.10).
//!
//! Coordinates that a geometry does not use are ignored: `.3d` and cubes have four. For arrays, the layer precedes the coordinates.
//! In independent mode a sampler is required, in unified mode not allowed. Offsets `e` are integers, the reference `f` of a depth
//! comparison is a float; forms without either are older.

use super::class::UNI;
use crate::{Effect::Memory, Mod as M, Type::*, Var::{T, U}, *};

static LINE: Class = Class::new("geometry", &[M::D1, M::D2]);
static SPACE: Class = Class::new("geometry", &[M::D3]);
static LAYERS: Class = Class::new("geometry", &[M::A1d, M::A2d]);
static CUBE: Class = Class::new("geometry", &[M::Cube]);
static CUBES: Class = Class::new("geometry", &[M::Acube]);
static SAMPLES: Class = Class::new("geometry", &[M::D2ms, M::A2dms]);
static SQUARE: Class = Class::new("geometry", &[M::D2]);
static SQUARES: Class = Class::new("geometry", &[M::A2d]);
static COMPONENT: Class = Class::new("component", &[M::R, M::G, M::B, M::A]);

/// Coordinates, the layer counted.
static COORDS: &[(M, u8)] = &[(M::D2, 2), (M::D3, 4), (M::A1d, 2), (M::A2d, 4), (M::Cube, 4), (M::Acube, 4), (M::D2ms, 4), (M::A2dms, 4)];
/// Offsets and gradients: no layer, no sample.
static DIRECTIONS: &[(M, u8)] = &[(M::D2, 2), (M::D3, 4), (M::A2d, 2), (M::Cube, 4), (M::Acube, 4), (M::D2ms, 2), (M::A2dms, 2)];

const fn texture() -> Opnd {
    operand("a", Role::Handle(TexRef), Ty::Any)
}
const fn sampler() -> Opnd {
    operand("b", Role::Handle(SamplerRef), Ty::Any)
}
const fn coords() -> Opnd {
    src(Ty::Of(U)).named("c").count(Count::AtLeast(COORDS))
}
/// `[a, c]` and `[a, b, c]`, without and with a layer.
static POINT: &[Opnd] = &[texture(), coords()];
static SAMPLED: &[Opnd] = &[texture(), sampler(), coords()];
static LAYERED: &[Opnd] = &[texture(), coords().lead(Ty::Is(U32))];
static LAYERED_SAMPLED: &[Opnd] = &[texture(), sampler(), coords().lead(Ty::Is(U32))];

const fn fetch(parts: &'static [Opnd]) -> Opnd {
    operand("[a, c]", Role::Group(parts), Ty::Any)
}
/// Four elements, or two pairs of halves; and whether the texel is resident.
const fn texel(n: u8) -> Opnd {
    dst(Ty::Of(T)).count(Count::Exactly(n)).pair(Ty::Is(Pred))
}
/// Floats go to any registers of their width.
const fn float_texel(n: u8) -> Opnd {
    dst(Ty::Size(T)).count(Count::Exactly(n)).pair(Ty::Is(Pred))
}
const fn offset() -> Opnd {
    src(Ty::Is(S32)).named("e").count(Count::AtLeast(DIRECTIONS))
}
const fn depth() -> Opnd {
    src(Ty::Is(F32)).named("f")
}
const fn lod() -> Opnd {
    src(Ty::Of(U)).named("lod")
}
const fn gradient(name: &'static str) -> Opnd {
    src(Ty::Is(F32)).named(name).count(Count::Table(DIRECTIONS))
}

/// Registers as handles, the predicate, and the mode that omits or requires the sampler.
static UNIFIED: &[Rule] = &[Rule::HandleRegister, Rule::ResidentPredicate, Rule::ShortCoordinates, Rule::UnifiedMode];
static INDEPENDENT: &[Rule] = &[Rule::HandleRegister, Rule::ResidentPredicate, Rule::IndependentMode];

static INTEGERS: &[Type] = &[U32, S32];
static FLOATS: &[Type] = &[F16, F32];
static PAIRS: &[Type] = &[F16x2];
static NEEDS: &[Need] = &[
    t(F16, 4, 2, 53), t(F16x2, 4, 2, 53), m(M::A1d, 2, 3, 0), m(M::A2d, 2, 3, 0), m(M::Cube, 3, 0, 0), m(M::Acube, 3, 0, 20),
    m(M::D2ms, 3, 2, 30), m(M::A2dms, 3, 2, 30), UNI_NEED,
];
/// The manual does not list `.uni` for textures.
const UNI_NEED: Need = m(M::Uni, 3, 2, 0);

/// All forms of one way to choose the level of detail: for each geometry and coordinate type the operands that follow the
/// fetch, then since when; each with and without sampler.
macro_rules! tex {
    ($name:ident, $fixed:literal: $(($($way:ident)?) $geom:ident [$ctype:ident] $plain:ident $sampled:ident [$($more:expr),*] ($major:literal, $minor:literal) $sm:literal;)*) => {
        static $name: Rows = rows("9.7.10.3", &[$(
            form(&[$(one(M::$way),)? opt(&UNI), req(&$geom), one(M::V4), T.of(INTEGERS), U.of(&[$ctype])], &[texel(4), fetch($plain) $(, $more)*]).fixed($fixed).ptx($major, $minor).sm($sm).only(NEEDS).rules(UNIFIED),
            form(&[$(one(M::$way),)? opt(&UNI), req(&$geom), one(M::V4), T.of(INTEGERS), U.of(&[$ctype])], &[texel(4), fetch($sampled) $(, $more)*]).fixed($fixed).ptx($major, $minor).sm($sm).only(NEEDS).rules(INDEPENDENT),
            form(&[$(one(M::$way),)? opt(&UNI), req(&$geom), one(M::V4), T.of(FLOATS), U.of(&[$ctype])], &[float_texel(4), fetch($plain) $(, $more)*]).fixed($fixed).ptx($major, $minor).sm($sm).only(NEEDS).rules(UNIFIED),
            form(&[$(one(M::$way),)? opt(&UNI), req(&$geom), one(M::V4), T.of(FLOATS), U.of(&[$ctype])], &[float_texel(4), fetch($sampled) $(, $more)*]).fixed($fixed).ptx($major, $minor).sm($sm).only(NEEDS).rules(INDEPENDENT),
            form(&[$(one(M::$way),)? opt(&UNI), req(&$geom), one(M::V2), T.of(PAIRS), U.of(&[$ctype])], &[texel(2), fetch($plain) $(, $more)*]).fixed($fixed).ptx($major, $minor).sm($sm).only(NEEDS).rules(UNIFIED),
            form(&[$(one(M::$way),)? opt(&UNI), req(&$geom), one(M::V2), T.of(PAIRS), U.of(&[$ctype])], &[texel(2), fetch($sampled) $(, $more)*]).fixed($fixed).ptx($major, $minor).sm($sm).only(NEEDS).rules(INDEPENDENT),
        )*]);
    };
}
tex! { PLAIN, 0:
    () LINE    [F32] POINT   SAMPLED         [] (1, 0) 0;
    () LINE    [F32] POINT   SAMPLED         [offset(), depth().opt()] (4, 3) 30;
    () LINE    [F32] POINT   SAMPLED         [depth()] (4, 3) 30;
    () LINE    [S32] POINT   SAMPLED         [] (1, 0) 0;
    () LINE    [S32] POINT   SAMPLED         [offset()] (4, 3) 30;
    () SPACE   [F32] POINT   SAMPLED         [] (1, 0) 0;
    () SPACE   [F32] POINT   SAMPLED         [offset()] (4, 3) 30;
    () SPACE   [S32] POINT   SAMPLED         [] (1, 0) 0;
    () SPACE   [S32] POINT   SAMPLED         [offset()] (4, 3) 30;
    () LAYERS  [F32] LAYERED LAYERED_SAMPLED [] (2, 3) 0;
    () LAYERS  [F32] LAYERED LAYERED_SAMPLED [offset(), depth().opt()] (4, 3) 30;
    () LAYERS  [F32] LAYERED LAYERED_SAMPLED [depth()] (4, 3) 30;
    () LAYERS  [S32] LAYERED LAYERED_SAMPLED [] (2, 3) 0;
    () LAYERS  [S32] LAYERED LAYERED_SAMPLED [offset()] (4, 3) 30;
    () CUBE    [F32] POINT   SAMPLED         [] (3, 0) 0;
    () CUBE    [F32] POINT   SAMPLED         [depth()] (4, 3) 30;
    () CUBES   [F32] LAYERED LAYERED_SAMPLED [] (3, 0) 20;
    () CUBES   [F32] LAYERED LAYERED_SAMPLED [depth()] (4, 3) 30;
    () SAMPLES [S32] POINT   SAMPLED         [] (3, 2) 30;
    () SAMPLES [S32] POINT   SAMPLED         [offset()] (4, 3) 30;
}
tex! { BASE, 1:
    (Base) LINE    [F32] POINT   SAMPLED         [] (3, 1) 20;
    (Base) LINE    [F32] POINT   SAMPLED         [offset(), depth().opt()] (4, 3) 30;
    (Base) LINE    [F32] POINT   SAMPLED         [depth()] (4, 3) 30;
    (Base) LINE    [S32] POINT   SAMPLED         [] (3, 1) 20;
    (Base) LINE    [S32] POINT   SAMPLED         [offset()] (4, 3) 30;
    (Base) SPACE   [F32] POINT   SAMPLED         [] (3, 1) 20;
    (Base) SPACE   [F32] POINT   SAMPLED         [offset()] (4, 3) 30;
    (Base) SPACE   [S32] POINT   SAMPLED         [] (3, 1) 20;
    (Base) SPACE   [S32] POINT   SAMPLED         [offset()] (4, 3) 30;
    (Base) LAYERS  [F32] LAYERED LAYERED_SAMPLED [] (3, 1) 20;
    (Base) LAYERS  [F32] LAYERED LAYERED_SAMPLED [offset(), depth().opt()] (4, 3) 30;
    (Base) LAYERS  [F32] LAYERED LAYERED_SAMPLED [depth()] (4, 3) 30;
    (Base) LAYERS  [S32] LAYERED LAYERED_SAMPLED [] (3, 1) 20;
    (Base) LAYERS  [S32] LAYERED LAYERED_SAMPLED [offset()] (4, 3) 30;
    (Base) CUBE    [F32] POINT   SAMPLED         [] (3, 1) 20;
    (Base) CUBE    [F32] POINT   SAMPLED         [depth()] (4, 3) 30;
    (Base) CUBES   [F32] LAYERED LAYERED_SAMPLED [] (3, 1) 20;
    (Base) CUBES   [F32] LAYERED LAYERED_SAMPLED [depth()] (4, 3) 30;
    (Base) SAMPLES [S32] POINT   SAMPLED         [] (3, 2) 30;
    (Base) SAMPLES [S32] POINT   SAMPLED         [offset()] (4, 3) 30;
}
tex! { LEVEL, 1:
    (Level) LINE    [F32] POINT   SAMPLED         [lod()] (3, 1) 20;
    (Level) LINE    [F32] POINT   SAMPLED         [lod(), offset(), depth().opt()] (4, 3) 30;
    (Level) LINE    [F32] POINT   SAMPLED         [lod(), depth()] (4, 3) 30;
    (Level) LINE    [S32] POINT   SAMPLED         [lod()] (3, 1) 20;
    (Level) LINE    [S32] POINT   SAMPLED         [lod(), offset()] (4, 3) 30;
    (Level) SPACE   [F32] POINT   SAMPLED         [lod()] (3, 1) 20;
    (Level) SPACE   [F32] POINT   SAMPLED         [lod(), offset()] (4, 3) 30;
    (Level) SPACE   [S32] POINT   SAMPLED         [lod()] (3, 1) 20;
    (Level) SPACE   [S32] POINT   SAMPLED         [lod(), offset()] (4, 3) 30;
    (Level) LAYERS  [F32] LAYERED LAYERED_SAMPLED [lod()] (3, 1) 20;
    (Level) LAYERS  [F32] LAYERED LAYERED_SAMPLED [lod(), offset(), depth().opt()] (4, 3) 30;
    (Level) LAYERS  [F32] LAYERED LAYERED_SAMPLED [lod(), depth()] (4, 3) 30;
    (Level) LAYERS  [S32] LAYERED LAYERED_SAMPLED [lod()] (3, 1) 20;
    (Level) LAYERS  [S32] LAYERED LAYERED_SAMPLED [lod(), offset()] (4, 3) 30;
    (Level) CUBE    [F32] POINT   SAMPLED         [lod()] (3, 1) 20;
    (Level) CUBE    [F32] POINT   SAMPLED         [lod(), depth()] (4, 3) 30;
    (Level) CUBES   [F32] LAYERED LAYERED_SAMPLED [lod()] (3, 1) 20;
    (Level) CUBES   [F32] LAYERED LAYERED_SAMPLED [lod(), depth()] (4, 3) 30;
}
tex! { GRAD, 1:
    (Grad) LINE    [F32] POINT   SAMPLED         [gradient("dPdx"), gradient("dPdy")] (3, 1) 20;
    (Grad) LINE    [F32] POINT   SAMPLED         [gradient("dPdx"), gradient("dPdy"), offset(), depth().opt()] (4, 3) 30;
    (Grad) LINE    [F32] POINT   SAMPLED         [gradient("dPdx"), gradient("dPdy"), depth()] (4, 3) 30;
    (Grad) LINE    [S32] POINT   SAMPLED         [gradient("dPdx"), gradient("dPdy")] (3, 1) 20;
    (Grad) LINE    [S32] POINT   SAMPLED         [gradient("dPdx"), gradient("dPdy"), offset()] (4, 3) 30;
    (Grad) SPACE   [F32] POINT   SAMPLED         [gradient("dPdx"), gradient("dPdy")] (3, 1) 20;
    (Grad) SPACE   [F32] POINT   SAMPLED         [gradient("dPdx"), gradient("dPdy"), offset()] (4, 3) 30;
    (Grad) SPACE   [S32] POINT   SAMPLED         [gradient("dPdx"), gradient("dPdy")] (3, 1) 20;
    (Grad) SPACE   [S32] POINT   SAMPLED         [gradient("dPdx"), gradient("dPdy"), offset()] (4, 3) 30;
    (Grad) LAYERS  [F32] LAYERED LAYERED_SAMPLED [gradient("dPdx"), gradient("dPdy")] (3, 1) 20;
    (Grad) LAYERS  [F32] LAYERED LAYERED_SAMPLED [gradient("dPdx"), gradient("dPdy"), offset(), depth().opt()] (4, 3) 30;
    (Grad) LAYERS  [F32] LAYERED LAYERED_SAMPLED [gradient("dPdx"), gradient("dPdy"), depth()] (4, 3) 30;
    (Grad) LAYERS  [S32] LAYERED LAYERED_SAMPLED [gradient("dPdx"), gradient("dPdy")] (3, 1) 20;
    (Grad) LAYERS  [S32] LAYERED LAYERED_SAMPLED [gradient("dPdx"), gradient("dPdy"), offset()] (4, 3) 30;
    (Grad) CUBE    [F32] POINT   SAMPLED         [gradient("dPdx"), gradient("dPdy")] (4, 3) 20;
    (Grad) CUBE    [F32] POINT   SAMPLED         [gradient("dPdx"), gradient("dPdy"), depth()] (4, 3) 30;
    (Grad) CUBES   [F32] LAYERED LAYERED_SAMPLED [gradient("dPdx"), gradient("dPdy")] (4, 3) 20;
    (Grad) CUBES   [F32] LAYERED LAYERED_SAMPLED [gradient("dPdx"), gradient("dPdy"), depth()] (4, 3) 30;
}
pub static TEX: Op = joined!("tex", Memory, "Sample a texture.", PLAIN, BASE, LEVEL, GRAD);

macro_rules! gather {
    ($($geom:ident $plain:ident $sampled:ident [$($more:expr),*] ($major:literal, $minor:literal) $sm:literal;)*) => { &[$(
        form(&[req(&COMPONENT), opt(&UNI), req(&$geom), one(M::V4), T.of(INTEGERS), U.of(&[F32])], &[texel(4), fetch($plain) $(, $more)*]).ptx($major, $minor).sm($sm).only(&[UNI_NEED]).rules(UNIFIED),
        form(&[req(&COMPONENT), opt(&UNI), req(&$geom), one(M::V4), T.of(INTEGERS), U.of(&[F32])], &[texel(4), fetch($sampled) $(, $more)*]).ptx($major, $minor).sm($sm).only(&[UNI_NEED]).rules(INDEPENDENT),
        form(&[req(&COMPONENT), opt(&UNI), req(&$geom), one(M::V4), T.of(&[F32]), U.of(&[F32])],   &[float_texel(4), fetch($plain) $(, $more)*]).ptx($major, $minor).sm($sm).only(&[UNI_NEED]).rules(UNIFIED),
        form(&[req(&COMPONENT), opt(&UNI), req(&$geom), one(M::V4), T.of(&[F32]), U.of(&[F32])],   &[float_texel(4), fetch($sampled) $(, $more)*]).ptx($major, $minor).sm($sm).only(&[UNI_NEED]).rules(INDEPENDENT),
    )*] };
}
pub static TLD4: Op = op("tld4", "9.7.10.4", Memory, "Fetch one component of the four texels that bilinear filtering would read.", gather! {
    SQUARE  POINT   SAMPLED         [] (2, 2) 20;
    SQUARE  POINT   SAMPLED         [offset(), depth().opt()] (4, 3) 30;
    SQUARE  POINT   SAMPLED         [depth()] (4, 3) 30;
    SQUARES LAYERED LAYERED_SAMPLED [] (4, 3) 30;
    SQUARES LAYERED LAYERED_SAMPLED [offset(), depth().opt()] (4, 3) 30;
    SQUARES LAYERED LAYERED_SAMPLED [depth()] (4, 3) 30;
    CUBE    POINT   SAMPLED         [depth().opt()] (4, 3) 30;
    CUBES   LAYERED LAYERED_SAMPLED [depth().opt()] (4, 3) 30;
});

/// The manual does not list `.memory_layout` for textures.
static QUERY: Class = Class::new("query", &[
    M::Width, M::Height, M::Depth, M::ChannelDataType, M::ChannelOrder, M::NormalizedCoords, M::ArraySize, M::NumMipmapLevels, M::NumSamples, M::MemoryLayout,
]);
static LEVEL_QUERY: Class = Class::new("query", &[M::Width, M::Height, M::Depth]);
static SAMPLER_QUERY: Class = Class::new("query", &[M::ForceUnnormalizedCoords, M::FilterMode, M::AddrMode0, M::AddrMode1, M::AddrMode2]);
/// In unified mode the texture has the sampler's properties (but ptxas refuses `.force_unnormalized_coords`).
static UNIFIED_QUERY: Class = Class::new("query", &[M::FilterMode, M::AddrMode0, M::AddrMode1, M::AddrMode2]);

const fn of(handle: Opnd) -> Opnd {
    match handle.role {
        Role::Handle(TexRef) => operand("[a]", Role::Group(const { &[texture()] }), Ty::Any),
        _ => operand("[a]", Role::Group(const { &[sampler()] }), Ty::Any),
    }
}
static QUERY_NEEDS: &[Need] = &[
    m(M::ChannelDataType, 2, 1, 0), m(M::ChannelOrder, 2, 1, 0), m(M::ForceUnnormalizedCoords, 2, 2, 0), m(M::ArraySize, 4, 1, 0),
    m(M::NumMipmapLevels, 4, 1, 20), m(M::NumSamples, 4, 1, 30), m(M::MemoryLayout, 4, 2, 0),
];
pub static TXQ: Op = op("txq", "9.7.10.5", Memory, "Query a property of a texture or sampler.", &[
    form(&[req(&QUERY), T.of(&[B32])],                           &[d(T), of(texture())]).ptx(1, 5).only(QUERY_NEEDS).rules(&[Rule::HandleRegister]),
    form(&[one(M::Level), req(&LEVEL_QUERY), T.of(&[B32])],      &[d(T), of(texture()), src(Ty::Is(U32)).named("lod").braced()]).fixed(1).ptx(4, 3).sm(30).rules(&[Rule::HandleRegister]),
    form(&[req(&SAMPLER_QUERY), T.of(&[B32])],                   &[d(T), of(sampler())]).ptx(1, 5).only(QUERY_NEEDS).rules(&[Rule::HandleRegister]),
    form(&[req(&UNIFIED_QUERY), T.of(&[B32])],                   &[d(T), of(texture())]).ptx(1, 5).rules(&[Rule::HandleRegister, Rule::UnifiedMode]),
]);
pub static ISTYPEP: Op = op("istypep", "9.7.10.6", Effect::Machine, "Whether a handle is of a texture, sampler or surface.", &[
    form(&[T.of(&[TexRef, SamplerRef, SurfRef])], &[p_out(), src(Ty::Is(U64)).reg()]).ptx(4, 0).sm(30),
]);
