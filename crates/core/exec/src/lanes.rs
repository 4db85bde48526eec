//! The registers of a warp: rows of 32 lanes.
//!
//! A register of up to 32 bits is one [`Row`] (narrow values zero-extended in their 32-bit slot); 64 bits take two rows that
//! together are `[u64; 32]`; 128 bits take four. A predicate is one row whose word 0 is the lane mask.

/// Number of lanes of a warp.
pub const LANES: usize = 32;

/// 32 words, one per lane; wider registers take two or four rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub struct Row(pub [u32; LANES]);

impl Row {
    /// All zero.
    pub const ZERO: Row = Row([0; LANES]);
}

/// Number of rows of a register of `bits` bits.
#[inline]
pub const fn rows(bits: u32) -> usize {
    match bits {
        0..=32 => 1,
        33..=64 => 2,
        _ => 4,
    }
}

/// Converts the values of all lanes. A loop, which becomes vector code; `map` of an array this long does not.
#[inline(always)]
pub fn each<A: Copy, B: Copy + Default>(lanes: &[A; LANES], f: impl Fn(A) -> B) -> [B; LANES] {
    let mut all = [B::default(); LANES];
    for (to, from) in all.iter_mut().zip(lanes) {
        *to = f(*from);
    }
    all
}

/// Rows as 32-bit lanes. The slice must have [`rows`] of that width; so for the other views.
pub fn u32s(rows: &[Row]) -> &[u32; LANES] {
    &rows[0].0
}

/// See [`u32s`].
pub fn u64s(rows: &[Row]) -> &[u64; LANES] {
    bytemuck::from_bytes(&bytemuck::cast_slice::<Row, u8>(rows)[..256])
}

/// See [`u32s`].
pub fn u32s_mut(rows: &mut [Row]) -> &mut [u32; LANES] {
    &mut rows[0].0
}

/// See [`u32s`].
pub fn u64s_mut(rows: &mut [Row]) -> &mut [u64; LANES] {
    bytemuck::from_bytes_mut(&mut bytemuck::cast_slice_mut::<Row, u8>(rows)[..256])
}

/// See [`u32s`]. Lane `i` is words `4 i .. 4 i + 4`.
pub fn u128s(rows: &[Row]) -> [u128; LANES] {
    let words: &[u64] = bytemuck::cast_slice(rows);
    std::array::from_fn(|i| u128::from(words[2 * i]) | u128::from(words[2 * i + 1]) << 64)
}

/// See [`u128s`].
pub fn set_u128s(rows: &mut [Row], lanes: &[u128; LANES]) {
    let words: &mut [u64] = bytemuck::cast_slice_mut(rows);
    for (pair, v) in words.chunks_exact_mut(2).zip(lanes) {
        pair[0] = *v as u64;
        pair[1] = (*v >> 64) as u64;
    }
}
