//! `wmma.load`, `wmma.store`, `wmma.mma` (manual, section 9.7.14.4).
//!
//! Only the hardware knows which element is in which lane; the number of registers is fixed by shape and
//! type. `.aligned` is required from PTX ISA 6.3 on and implied before.

use super::class::*;
use crate::{Effect::Warp, Mod as M, Type::*, Var::{T, U, V, W}, *};

static SPACE: Class = Class::new("state space", &[M::Global, M::Shared, M::SharedCta]);
static LAYOUT: Class = Class::new("layout", &[M::Row, M::Col]);
static SHAPE: Class = Class::new("shape", &[M::M16n16k16, M::M8n32k16, M::M32n8k16]);
static SATFINITE: Class = Class::new("saturation", &[M::Satfinite]);
static BIT_OP: Class = Class::new("bit operation", &[M::And, M::Xor]);

/// Registers of A with elements of 8 and 16 bits (`.bf16` has one element for two lanes less).
static A8: &[(M, u8)] = &[(M::M16n16k16, 2), (M::M8n32k16, 1), (M::M32n8k16, 4)];
static B8_: &[(M, u8)] = &[(M::M16n16k16, 2), (M::M8n32k16, 4), (M::M32n8k16, 1)];
static A16: &[(M, u8)] = &[(M::M16n16k16, 4), (M::M8n32k16, 2), (M::M32n8k16, 8)];
static B16_: &[(M, u8)] = &[(M::M16n16k16, 4), (M::M8n32k16, 8), (M::M32n8k16, 2)];

const fn out(ty: Type, count: Count) -> Opnd {
    dst(Ty::Is(ty)).count(count).sink()
}
const fn frag(name: &'static str, ty: Type, count: Count) -> Opnd {
    src(Ty::Is(ty)).named(name).count(count)
}
const fn n(n: u8) -> Count {
    Count::Exactly(n)
}
const fn by(table: &'static [(M, u8)]) -> Count {
    Count::Table(table)
}
const fn stride() -> Opnd {
    src(Ty::Is(U32)).named("stride").opt()
}

/// The requirements of the shapes and of `.shared::cta`.
static NEEDS: &[Need] = &[m(M::SharedCta, 7, 8, 70), m(M::M8n32k16, 6, 1, 70), m(M::M32n8k16, 6, 1, 70)];

macro_rules! load {
    ($($which:ident, $layout:expr, $shape:expr, $ty:ident, $reg:ident, $count:expr, ($major:literal, $minor:literal), $sm:literal;)*) => { &[$(
        form(&[one(M::Load), one(M::$which), one(M::Sync), one(M::Aligned), $layout, $shape, opt(&SPACE), T.of(&[$ty])], &[out($reg, $count), addr().named("p"), stride()]).fixed(2).ptx($major, $minor).sm($sm).only(NEEDS),
    )*] };
}
static LOAD: Rows = rows("9.7.14.4.3", load! {
    A, req(&LAYOUT), req(&SHAPE), F16, F16x2, n(8), (6, 3), 70;
    B, req(&LAYOUT), req(&SHAPE), F16, F16x2, n(8), (6, 3), 70;
    C, req(&LAYOUT), req(&SHAPE), F16, F16x2, n(4), (6, 3), 70;
    C, req(&LAYOUT), req(&SHAPE), F32, F32,   n(8), (6, 3), 70;
    A, req(&LAYOUT), req(&SHAPE), S8,  S32, by(A8),  (6, 3), 72;
    A, req(&LAYOUT), req(&SHAPE), U8,  S32, by(A8),  (6, 3), 72;
    B, req(&LAYOUT), req(&SHAPE), S8,  S32, by(B8_), (6, 3), 72;
    B, req(&LAYOUT), req(&SHAPE), U8,  S32, by(B8_), (6, 3), 72;
    C, req(&LAYOUT), req(&SHAPE), S32, S32, n(8),    (6, 3), 72;
    A, req(&LAYOUT), req(&SHAPE), Bf16, Bf16x2, by(A16),  (7, 0), 80;
    B, req(&LAYOUT), req(&SHAPE), Bf16, Bf16x2, by(B16_), (7, 0), 80;
    A, req(&LAYOUT), one(M::M16n16k8), Tf32, Tf32, n(4), (7, 0), 80;
    B, req(&LAYOUT), one(M::M16n16k8), Tf32, Tf32, n(4), (7, 0), 80;
    C, req(&LAYOUT), one(M::M16n16k8), F32,  F32, n(8), (7, 0), 80;
    A, req(&LAYOUT), one(M::M8n8k4), F64, F64, n(1), (7, 0), 80;
    B, req(&LAYOUT), one(M::M8n8k4), F64, F64, n(1), (7, 0), 80;
    C, req(&LAYOUT), one(M::M8n8k4), F64, F64, n(2), (7, 0), 80;
    A, one(M::Row),  one(M::M8n8k32), S4, B32, n(1), (6, 3), 75;
    A, one(M::Row),  one(M::M8n8k32), U4, B32, n(1), (6, 3), 75;
    B, one(M::Col),  one(M::M8n8k32), S4, B32, n(1), (6, 3), 75;
    B, one(M::Col),  one(M::M8n8k32), U4, B32, n(1), (6, 3), 75;
    C, req(&LAYOUT), one(M::M8n8k32), S32, S32, n(2), (6, 3), 75;
    A, one(M::Row),  one(M::M8n8k128), B1, B32, n(1), (6, 3), 75;
    B, one(M::Col),  one(M::M8n8k128), B1, B32, n(1), (6, 3), 75;
    C, req(&LAYOUT), one(M::M8n8k128), S32, S32, n(2), (6, 3), 75;
});

macro_rules! store {
    ($($shape:expr, $ty:ident, $reg:ident, $count:expr, ($major:literal, $minor:literal), $sm:literal;)*) => { &[$(
        form(&[one(M::Store), one(M::D), one(M::Sync), one(M::Aligned), req(&LAYOUT), $shape, opt(&SPACE), T.of(&[$ty])], &[addr().named("p"), frag("r", $reg, $count), stride()]).fixed(2).ptx($major, $minor).sm($sm).only(NEEDS),
    )*] };
}
/// Before `.aligned` became a word that must be written.
static LOAD_OLD: Rows = rows("9.7.14.4.3", &[
    form(&[one(M::Load), one(M::A), one(M::Sync), req(&LAYOUT), req(&SHAPE), opt(&SPACE), T.of(&[F16])], &[out(F16x2, n(8)), addr().named("p"), stride()]).fixed(2).ptx(6, 0).sm(70).until(6, 3, 0).only(NEEDS),
    form(&[one(M::Load), one(M::B), one(M::Sync), req(&LAYOUT), req(&SHAPE), opt(&SPACE), T.of(&[F16])], &[out(F16x2, n(8)), addr().named("p"), stride()]).fixed(2).ptx(6, 0).sm(70).until(6, 3, 0).only(NEEDS),
    form(&[one(M::Load), one(M::C), one(M::Sync), req(&LAYOUT), req(&SHAPE), opt(&SPACE), T.of(&[F16])], &[out(F16x2, n(4)), addr().named("p"), stride()]).fixed(2).ptx(6, 0).sm(70).until(6, 3, 0).only(NEEDS),
    form(&[one(M::Load), one(M::C), one(M::Sync), req(&LAYOUT), req(&SHAPE), opt(&SPACE), T.of(&[F32])], &[out(F32, n(8)), addr().named("p"), stride()]).fixed(2).ptx(6, 0).sm(70).until(6, 3, 0).only(NEEDS),
]);
static STORE_OLD: Rows = rows("9.7.14.4.4", &[
    form(&[one(M::Store), one(M::D), one(M::Sync), req(&LAYOUT), req(&SHAPE), opt(&SPACE), T.of(&[F16])], &[addr().named("p"), frag("r", F16x2, n(4)), stride()]).fixed(2).ptx(6, 0).sm(70).until(6, 3, 0).only(NEEDS),
    form(&[one(M::Store), one(M::D), one(M::Sync), req(&LAYOUT), req(&SHAPE), opt(&SPACE), T.of(&[F32])], &[addr().named("p"), frag("r", F32, n(8)), stride()]).fixed(2).ptx(6, 0).sm(70).until(6, 3, 0).only(NEEDS),
]);

static STORE: Rows = rows("9.7.14.4.4", store! {
    req(&SHAPE), F16, F16x2, n(4), (6, 3), 70;
    req(&SHAPE), F32, F32,   n(8), (6, 3), 70;
    req(&SHAPE), S32, S32,   n(8), (6, 3), 72;
    one(M::M16n16k8), F32, F32, n(8), (7, 0), 80;
    one(M::M8n8k4),   F64, F64, n(2), (7, 0), 80;
    one(M::M8n8k32),  S32, S32, n(2), (6, 3), 75;
    one(M::M8n8k128), S32, S32, n(2), (6, 3), 75;
});

/// `.f16` multiplicands: result and addend choose their width apart.
macro_rules! half {
    ([$($words:expr),*], $d:ident $dr:ident $dn:literal, $c:ident $cr:ident $cn:literal $(, $sat:expr)?) => {
        form(&[one(M::Mma), one(M::Sync), $($words,)* req(&LAYOUT), req(&LAYOUT), req(&SHAPE), T.of(&[$d]), W.of(&[$c]) $(, $sat)?],
             &[out($dr, n($dn)), frag("a", F16x2, n(8)), frag("b", F16x2, n(8)), frag("c", $cr, n($cn))]).fixed(1).sm(70).only(NEEDS)
    };
}
macro_rules! product {
    ($($layouts:expr, $layoutb:expr, $shape:expr, $t:ident $d:ident $dn:literal, $a:ident, $b:ident, $r:ident $an:expr, $bn:expr $(, $extra:expr)?; ($major:literal, $minor:literal), $sm:literal;)*) => { &[$(
        form(&[one(M::Mma), one(M::Sync), one(M::Aligned), $layouts, $layoutb, $shape, T.of(&[$t]), U.of(&[$a]), V.of(&[$b]), W.of(&[$t]) $(, $extra)?],
             &[out($d, n($dn)), frag("a", $r, $an), frag("b", $r, $bn), frag("c", $d, n($dn))]).fixed(1).ptx($major, $minor).sm($sm).only(NEEDS),
    )*] };
}
static HALF: Rows = rows("9.7.14.4.5", &[
    half!([one(M::Aligned)], F16 F16x2 4, F16 F16x2 4).ptx(6, 3),
    half!([one(M::Aligned)], F16 F16x2 4, F32 F32 8).ptx(6, 3),
    half!([one(M::Aligned)], F32 F32 8, F16 F16x2 4).ptx(6, 3),
    half!([one(M::Aligned)], F32 F32 8, F32 F32 8).ptx(6, 3),
    // `.satfinite` was removed in 6.5
    half!([one(M::Aligned)], F16 F16x2 4, F16 F16x2 4, one(M::Satfinite)).ptx(6, 3).until(6, 5, 0),
    half!([one(M::Aligned)], F16 F16x2 4, F32 F32 8, one(M::Satfinite)).ptx(6, 3).until(6, 5, 0),
    half!([one(M::Aligned)], F32 F32 8, F16 F16x2 4, one(M::Satfinite)).ptx(6, 3).until(6, 5, 0),
    half!([one(M::Aligned)], F32 F32 8, F32 F32 8, one(M::Satfinite)).ptx(6, 3).until(6, 5, 0),
    // before `.aligned` became a word that must be written
    half!([], F16 F16x2 4, F16 F16x2 4, opt(&SATFINITE)).ptx(6, 0).until(6, 3, 0),
    half!([], F16 F16x2 4, F32 F32 8, opt(&SATFINITE)).ptx(6, 0).until(6, 3, 0),
    half!([], F32 F32 8, F16 F16x2 4, opt(&SATFINITE)).ptx(6, 0).until(6, 3, 0),
    half!([], F32 F32 8, F32 F32 8, opt(&SATFINITE)).ptx(6, 0).until(6, 3, 0),
]);
static PRODUCT: Rows = rows("9.7.14.4.5", product! {
    req(&LAYOUT), req(&LAYOUT), req(&SHAPE), S32 S32 8, S8, S8, S32 by(A8), by(B8_), opt(&SATFINITE); (6, 3), 72;
    req(&LAYOUT), req(&LAYOUT), req(&SHAPE), S32 S32 8, U8, U8, S32 by(A8), by(B8_), opt(&SATFINITE); (6, 3), 72;
    req(&LAYOUT), req(&LAYOUT), req(&SHAPE), F32 F32 8, Bf16, Bf16, Bf16x2 by(A16), by(B16_); (7, 0), 80;
    req(&LAYOUT), req(&LAYOUT), one(M::M16n16k8), F32 F32 8, Tf32, Tf32, Tf32 n(4), n(4); (7, 0), 80;
    req(&LAYOUT), req(&LAYOUT), one(M::M8n8k4), F64 B64 2, F64, F64, F64 n(1), n(1), opt(&RND); (7, 0), 80;
    one(M::Row), one(M::Col), one(M::M8n8k32), S32 S32 2, S4, S4, S32 n(1), n(1), opt(&SATFINITE); (6, 3), 75;
    one(M::Row), one(M::Col), one(M::M8n8k32), S32 S32 2, U4, U4, S32 n(1), n(1), opt(&SATFINITE); (6, 3), 75;
});
static BIT: Rows = rows("9.7.14.4.5", &[
    form(&[one(M::Mma), req(&BIT_OP), one(M::Popc), one(M::Sync), one(M::Aligned), one(M::Row), one(M::Col), one(M::M8n8k128), T.of(&[S32]), U.of(&[B1]), V.of(&[B1]), W.of(&[S32])],
         &[out(S32, n(2)), frag("a", S32, n(1)), frag("b", S32, n(1)), frag("c", S32, n(2))]).fixed(1).ptx(6, 3).sm(75).only(&[m(M::And, 7, 1, 80)]),
]);

pub static WMMA: Op = joined!("wmma", Warp, "Load, store and multiply matrices with whole warps.", LOAD, LOAD_OLD, STORE, STORE_OLD, HALF, PRODUCT, BIT);
