//! Structured sparse vectors: `spcompress` and `spdecompress` (sections 9.7.10.30 and 9.7.10.31 of the manual of PTX ISA 9.4).

use crate::{Effect::Warp, Mod as M, Type::*, Var::{T, U}, *};

static A107: &[Target] = &[Target::arch(107)];
static NUM: Class = Class::new("repetitions", &[M::X1, M::X2, M::X4, M::X8, M::X16, M::X32, M::X64]);
static NUM_FROM2: Class = Class::new("repetitions", &[M::X2, M::X4, M::X8, M::X16, M::X32, M::X64]);
static NUM_TO32: Class = Class::new("repetitions", &[M::X1, M::X2, M::X4, M::X8, M::X16, M::X32]);
static NUM_TO16: Class = Class::new("repetitions", &[M::X1, M::X2, M::X4, M::X8, M::X16]);

/// The number of registers by repetitions, for `bits` bits per repetition.
const fn registers(bits: u32) -> [(M, u8); 7] {
    let nums = [M::X1, M::X2, M::X4, M::X8, M::X16, M::X32, M::X64];
    let mut table = [(M::X1, 1); 7];
    let mut i = 0;
    while i < 7 {
        table[i] = (nums[i], (bits << i).div_ceil(32) as u8);
        i += 1;
    }
    table
}

macro_rules! compressions {
    ($($elem:ident $idx:ident: $meta:literal;)*) => { &[$(
        form(&[T.of(&[$elem]), U.of(&[$idx]), one(M::Sp2to4), req(&NUM)], &[
            dst(Ty::Is(B32)).named("mdata").count(Count::Table(const { &registers($meta) })),
            dst(Ty::Is(B32)).named("cdata").count(Count::Table(const { &registers(32) })),
            src(Ty::Is(B32)).named("data").count(Count::Table(const { &registers(64) })).reg(),
            src(Ty::Is(B32)).named("spdesc").reg(),
        ]).ptx(9, 4).targets(A107),
    )*] };
}
pub static SPCOMPRESS: Op = op("spcompress", "9.7.10.30", Warp, "Keep two of every four elements, and their positions.", compressions! {
    // bits of indices to a register of what is kept
    B8 B2: 8;
    B8 B4: 16;
    B16 B2: 4;
    B16 B4: 8;
});

macro_rules! decompressions {
    ($($elem:ident $idx:ident $sp:ident $nums:ident: $data:literal $meta:literal $kept:literal;)*) => { &[$(
        form(&[T.of(&[$elem]), U.of(&[$idx]), one(M::$sp), req(&$nums)], &[
            dst(Ty::Is(B32)).named("data").count(Count::Table(const { &registers($data) })),
            src(Ty::Is(B32)).named("mdata").count(Count::Table(const { &registers($meta) })).reg(),
            src(Ty::Is(B32)).named("cdata").count(Count::Table(const { &registers($kept) })).reg(),
        ]).ptx(9, 4).targets(A107),
    )*] };
}
pub static SPDECOMPRESS: Op = op("spdecompress", "9.7.10.31", Warp, "Restore elements to their positions, with zeros in between.", decompressions! {
    // bits of the result, of indices and of what is kept, a repetition
    B8 B2 Sp1to2 NUM_FROM2: 16 2 8;
    B8 B2 Sp1to4 NUM: 32 2 8;
    B8 B2 Sp2to4 NUM: 32 4 16;
    B8 B4 Sp1to2 NUM_FROM2: 16 4 8;
    B8 B4 Sp1to4 NUM: 32 4 8;
    B8 B4 Sp1to8 NUM: 64 4 8;
    B8 B4 Sp1to16 NUM_TO32: 128 4 8;
    B8 B4 Sp2to4 NUM: 32 8 16;
    B8 B4 Sp2to8 NUM: 64 8 16;
    B8 B4 Sp2to16 NUM_TO32: 128 8 16;
    B8 B4 Sp4to8 NUM: 64 16 32;
    B8 B4 Sp4to16 NUM_TO32: 128 16 32;
    B16 B2 Sp1to2 NUM: 32 2 16;
    B16 B2 Sp1to4 NUM: 64 2 16;
    B16 B2 Sp2to4 NUM: 64 4 32;
    B16 B4 Sp1to2 NUM: 32 4 16;
    B16 B4 Sp1to4 NUM: 64 4 16;
    B16 B4 Sp1to8 NUM_TO32: 128 4 16;
    B16 B4 Sp1to16 NUM_TO16: 256 4 16;
    B16 B4 Sp2to4 NUM: 64 8 32;
    B16 B4 Sp2to8 NUM_TO32: 128 8 32;
    B16 B4 Sp2to16 NUM_TO16: 256 8 32;
});
