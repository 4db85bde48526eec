//! Video instructions, scalar and SIMD (manual, section 9.7.18).
//!
//! All operands are 32-bit registers; a selector after a register names the byte or half-word that participates, and the types
//! on the instruction determine how it is extended. ptxas also accepts `c` without a selector on `d` (the merge then replaces all of
//! `d`), and immediates in scalar forms but not in SIMD ones.

use super::class::*;
use crate::{
    Effect::Pure,
    Mod, Type,
    Var::{T, U, V},
    *,
};

/// Second operation with `c`.
static OP2: Class = Class::new("secondary operation", &[Mod::Add, Mod::Min, Mod::Max]);
/// The only second operation of SIMD forms.
static ADD2: Class = Class::new("accumulation", &[Mod::Add]);
/// Scaling of `vmad`.
static SCALE: Class = Class::new("scale", &[Mod::Shr7, Mod::Shr15]);

static U32: &[Type] = &[Type::U32];

const fn part(v: Var, name: &'static str) -> Opnd {
    a(v).named(name).parts(Parts::One)
}
const fn u32_out() -> Opnd {
    dst(Ty::Is(Type::U32))
}
const fn u32_c() -> Opnd {
    src(Ty::Is(Type::U32)).named("c")
}
const fn simd(v: Var, name: &'static str, parts: Parts) -> Opnd {
    a(v).named(name).parts(parts).reg()
}

macro_rules! scalar {
    ($($name:ident = $text:literal, $doc:literal;)*) => {$(
        pub static $name: Op = op($text, "9.7.18.1.1", Pure, $doc, &[
            form(&[T.of(INT32), U.of(INT32), V.of(INT32), opt(&SAT)],            &[d(T), part(U, "a"), part(V, "b")]).ptx(2, 0).sm(20),
            form(&[T.of(INT32), U.of(INT32), V.of(INT32), opt(&SAT)],            &[d(T).parts(Parts::One), part(U, "a"), part(V, "b"), c(T)]).ptx(2, 0).sm(20),
            form(&[T.of(INT32), U.of(INT32), V.of(INT32), opt(&SAT), req(&OP2)], &[d(T), part(U, "a"), part(V, "b"), c(T)]).ptx(2, 0).sm(20),
        ]);
    )*};
}
scalar! {
    VADD = "vadd", "Add bytes, half-words or words; then a second operation, or a merge into `c`.";
    VSUB = "vsub", "Subtract bytes, half-words or words; then a second operation, or a merge into `c`.";
    VABSDIFF = "vabsdiff", "Absolute difference of bytes, half-words or words; then a second operation, or a merge into `c`.";
    VMIN = "vmin", "Minimum of bytes, half-words or words; then a second operation, or a merge into `c`.";
    VMAX = "vmax", "Maximum of bytes, half-words or words; then a second operation, or a merge into `c`.";
}

macro_rules! shifts {
    ($($name:ident = $text:literal, $doc:literal;)*) => {$(
        pub static $name: Op = op($text, "9.7.18.1.2", Pure, $doc, &[
            form(&[T.of(INT32), U.of(INT32), V.of(U32), opt(&SAT), req(&CLAMP_WRAP)],            &[d(T), part(U, "a"), part(V, "b")]).ptx(2, 0).sm(20),
            form(&[T.of(INT32), U.of(INT32), V.of(U32), opt(&SAT), req(&CLAMP_WRAP)],            &[d(T).parts(Parts::One), part(U, "a"), part(V, "b"), c(T)]).ptx(2, 0).sm(20),
            form(&[T.of(INT32), U.of(INT32), V.of(U32), opt(&SAT), req(&CLAMP_WRAP), req(&OP2)], &[d(T), part(U, "a"), part(V, "b"), c(T)]).ptx(2, 0).sm(20),
        ]);
    )*};
}
shifts! {
    VSHL = "vshl", "Shift left a byte, half-word or word; then a second operation, or a merge into `c`.";
    VSHR = "vshr", "Shift right a byte, half-word or word; then a second operation, or a merge into `c`.";
}

pub static VMAD: Op = op("vmad", "9.7.18.1.3", Pure, "`d = a * b + c` of bytes, half-words or words, with negation, rounding up and scaling.", &[
    form(&[T.of(INT32), U.of(INT32), V.of(INT32), opt(&SAT), opt(&SCALE)],               &[d(T), part(U, "a").neg(), part(V, "b").neg(), c(T).neg()]).ptx(2, 0).sm(20).rules(&[Rule::VmadNegation]),
    form(&[T.of(INT32), U.of(INT32), V.of(INT32), one(Mod::Po), opt(&SAT), opt(&SCALE)], &[d(T), part(U, "a"), part(V, "b"), c(T)]).ptx(2, 0).sm(20),
]);
pub static VSET: Op = op("vset", "9.7.18.1.4", Pure, "Compare bytes, half-words or words, giving 1 or 0; then apply a second operation, or merge into `c`.", &[
    form(&[U.of(INT32), V.of(INT32), req(&CMP)],                   &[u32_out(), part(U, "a"), part(V, "b")]).ptx(2, 0).sm(20),
    form(&[U.of(INT32), V.of(INT32), req(&CMP)],                   &[u32_out().parts(Parts::One), part(U, "a"), part(V, "b"), u32_c()]).ptx(2, 0).sm(20),
    form(&[U.of(INT32), V.of(INT32), req(&CMP), req(&OP2)],        &[u32_out(), part(U, "a"), part(V, "b"), u32_c()]).ptx(2, 0).sm(20),
]);

macro_rules! vectors {
    ($($name:ident = $text:literal, $section:literal, $mask:ident, $lanes:ident, $doc:literal;)*) => {$(
        pub static $name: Op = op($text, $section, Pure, $doc, &[
            form(&[T.of(INT32), U.of(INT32), V.of(INT32), opt(&SAT)],  &[d(T).parts(Parts::$mask), simd(U, "a", Parts::$lanes), simd(V, "b", Parts::$lanes), c(T).reg()]).ptx(3, 0).sm(30),
            form(&[T.of(INT32), U.of(INT32), V.of(INT32), req(&ADD2)], &[d(T).parts(Parts::$mask), simd(U, "a", Parts::$lanes), simd(V, "b", Parts::$lanes), c(T).reg()]).ptx(3, 0).sm(30),
        ]);
    )*};
}
vectors! {
    VADD2 = "vadd2", "9.7.18.2.1", HalfMask, Halves, "Add two half-words; merge with or accumulate into `c`.";
    VSUB2 = "vsub2", "9.7.18.2.1", HalfMask, Halves, "Subtract two half-words; merge with or accumulate into `c`.";
    VAVRG2 = "vavrg2", "9.7.18.2.1", HalfMask, Halves, "Average two half-words; merge with or accumulate into `c`.";
    VABSDIFF2 = "vabsdiff2", "9.7.18.2.1", HalfMask, Halves, "Absolute difference of two half-words; merge with or accumulate into `c`.";
    VMIN2 = "vmin2", "9.7.18.2.1", HalfMask, Halves, "Minimum of two half-words; merge with or accumulate into `c`.";
    VMAX2 = "vmax2", "9.7.18.2.1", HalfMask, Halves, "Maximum of two half-words; merge with or accumulate into `c`.";
    VADD4 = "vadd4", "9.7.18.2.3", ByteMask, Bytes, "Add four bytes; merge with or accumulate into `c`.";
    VSUB4 = "vsub4", "9.7.18.2.3", ByteMask, Bytes, "Subtract four bytes; merge with or accumulate into `c`.";
    VAVRG4 = "vavrg4", "9.7.18.2.3", ByteMask, Bytes, "Average four bytes; merge with or accumulate into `c`.";
    VABSDIFF4 = "vabsdiff4", "9.7.18.2.3", ByteMask, Bytes, "Absolute difference of four bytes; merge with or accumulate into `c`.";
    VMIN4 = "vmin4", "9.7.18.2.3", ByteMask, Bytes, "Minimum of four bytes; merge with or accumulate into `c`.";
    VMAX4 = "vmax4", "9.7.18.2.3", ByteMask, Bytes, "Maximum of four bytes; merge with or accumulate into `c`.";
}

macro_rules! vector_sets {
    ($($name:ident = $text:literal, $section:literal, $mask:ident, $lanes:ident, $doc:literal;)*) => {$(
        pub static $name: Op = op($text, $section, Pure, $doc, &[
            form(&[U.of(INT32), V.of(INT32), req(&CMP), opt(&ADD2)],        &[u32_out().parts(Parts::$mask), simd(U, "a", Parts::$lanes), simd(V, "b", Parts::$lanes), u32_c().reg()]).ptx(3, 0).sm(30),
        ]);
    )*};
}
vector_sets! {
    VSET2 = "vset2", "9.7.18.2.2", HalfMask, Halves, "Compare two half-words to 1 or 0; merge with or accumulate into `c`.";
    VSET4 = "vset4", "9.7.18.2.4", ByteMask, Bytes, "Compare four bytes to 1 or 0; merge with or accumulate into `c`.";
}
