//! The layouts of fragments: which lane holds which element (manual, sections 9.7.14.5.1 to 9.7.14.5.13).
//!
//! All shapes of `mma` but one follow one rule. With `group = lane / 4` and `thread = lane % 4`, a register holds `e`
//! adjacent elements along k, the four threads of a group hold adjacent registers, and further registers advance by
//! eight rows (for A with 16 rows) and then by `4 e` along k. The exception is `.m8n8k4` on `.f16`, in which a warp
//! computes four products by eight lanes each ([`Quad`]).

use crate::LANES;

/// Row and column.
pub type Coord = (usize, usize);

/// Row and depth of element `i` of A, of `rows` rows, with `e` elements per register.
pub fn a(rows: usize, e: usize, lane: usize, i: usize) -> Coord {
    let (group, thread, register) = (lane / 4, lane % 4, i / e);
    let (row, block) = if rows == 16 { (group + 8 * (register % 2), register / 2) } else { (group, register) };
    (row, thread * e + i % e + 4 * e * block)
}

/// Depth and column of element `i` of B.
pub fn b(e: usize, lane: usize, i: usize) -> Coord {
    let (group, thread, register) = (lane / 4, lane % 4, i / e);
    (thread * e + i % e + 4 * e * register, group)
}

/// Row and column of element `i` of C and D.
pub fn c(lane: usize, i: usize) -> Coord {
    (lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2)
}

/// Which matrix of a product a fragment belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Factor {
    /// A, of `m` rows.
    A,
    /// B, of `n` columns.
    B,
    /// C or D.
    C,
}

/// Row and column of element `i` of a fragment of `wmma`, for a product of `m` by `n` elements and depth `k`, with `e` elements per
/// register.
///
/// The manual leaves this layout open. Here the matrix is cut into tiles of at most 16 rows of A and eight columns of B, whose
/// fragments, those of `mma`, follow each other; they repeat where a fragment has more room than the matrix has elements. Programs that
/// rely on the layout found on GPUs of compute capability 8.0 and newer expect the same.
pub fn wmma(factor: Factor, (m, n, k): (usize, usize, usize), e: usize, lane: usize, i: usize) -> Coord {
    let rows = m.min(TILE_ROWS);
    let tile = |held: usize, tiles: usize| (i / held % tiles, i % held);
    match factor {
        Factor::A => {
            let (tile, i) = tile(rows * k / LANES, m / rows);
            let (row, depth) = a(rows, e, lane, i);
            (row + tile * rows, depth)
        }
        Factor::B => {
            let (tile, i) = tile(TILE_COLUMNS * k / LANES, n / TILE_COLUMNS);
            let (depth, column) = b(e, lane, i);
            (depth, column + tile * TILE_COLUMNS)
        }
        Factor::C => {
            let across = n / TILE_COLUMNS;
            let (tile, i) = tile(rows * TILE_COLUMNS / LANES, m / rows * across);
            let (row, column) = c(lane, i);
            (row + tile / across * rows, column + tile % across * TILE_COLUMNS)
        }
    }
}

/// Rows of a tile of A, C and D.
pub const TILE_ROWS: usize = 16;
/// Columns of a tile of B, C and D.
pub const TILE_COLUMNS: usize = 8;

/// One of the four products of `.m8n8k4` on `.f16`.
pub struct Quad;

impl Quad {
    /// The product that a lane belongs to.
    pub fn of(lane: usize) -> usize {
        lane % 16 / 4
    }

    /// Row and depth of element `i` of A; `column_major` as the instruction says.
    pub fn a(column_major: bool, lane: usize, i: usize) -> Coord {
        let high = if lane < 16 { 0 } else { 4 };
        if column_major { (i + high, lane % 4) } else { (lane % 4 + high, i) }
    }

    /// Depth and column of element `i` of B.
    pub fn b(column_major: bool, lane: usize, i: usize) -> Coord {
        let high = if lane < 16 { 0 } else { 4 };
        if column_major { (i, lane % 4 + high) } else { (lane % 4, i + high) }
    }

    /// Row and column of element `i` of C and D, of `.f16` or `.f32`.
    pub fn c(single: bool, lane: usize, i: usize) -> Coord {
        let high = if lane < 16 { 0 } else { 4 };
        if !single {
            return (lane % 4 + high, i);
        }
        ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1))
    }
}

/// The four bits of metadata that select the positions of two stored elements in a row of a sparse A (section
/// 9.7.14.6).
///
/// `word` returns the metadata register of a lane; `chunks` is the number of such nibbles per row, `half` whether a
/// lane's register serves two rows with 16 bits each (16- and 32-bit elements) or one with 32.
pub fn metadata(
    word: impl Fn(usize) -> u32,
    half: bool,
    chunks: usize,
    selector: usize,
    row: usize,
    chunk: usize,
) -> u32 {
    let (group, lower) = (row % 8, row / 8);
    if half {
        // One thread of a group, or two that share the row: columns up to 15, then the rest.
        let thread = if chunks <= 4 { selector } else { 2 * selector + chunk / 4 };
        word(4 * group + thread % 4) >> (16 * lower + chunk % 4 * 4) & 15
    } else {
        let thread = if chunks <= 8 { 2 * selector + lower } else { 2 * (chunk / 8) + lower };
        word(4 * group + thread % 4) >> (chunk % 8 * 4) & 15
    }
}
