//! The inner loops of products: blocks of four rows by eight columns, compiled for the host's widest vectors and with
//! fused multiply-add where available.
//!
//! Every element's sum runs over k upwards, so blocking does not affect the result. Products of two elements of up to
//! 26 bits are exact in double precision, so neither does fusing.

/// Columns of a block: two vectors of doubles.
pub const COLUMNS: usize = 8;
/// Rows of a block.
const ROWS: usize = 4;

/// Runs `f` compiled for AVX2 and fused multiply-add where the host has them, as the argument says; elsewhere as
/// compiled by default.
#[inline(always)]
pub fn vectorize<R>(f: impl Loops<Output = R>) -> R {
    #[cfg(target_arch = "x86_64")]
    if let Some(host) = pulp::x86::V3::try_new() {
        return host.vectorize(Wide(f));
    }
    f.run::<false>()
}

/// Whether [`vectorize`] uses fused multiply-add.
pub fn fuses() -> bool {
    #[cfg(target_arch = "x86_64")]
    let found = pulp::x86::V3::try_new().is_some();
    #[cfg(not(target_arch = "x86_64"))]
    let found = false;
    found
}

/// Loops that are compiled more than once. `run` and all its callees must be `#[inline(always)]`.
pub trait Loops {
    /// The result of the loops.
    type Output;
    /// Runs the loops; `FUSED` if fused multiply-add is an instruction.
    fn run<const FUSED: bool>(self) -> Self::Output;
}

#[cfg(target_arch = "x86_64")]
struct Wide<F>(F);

#[cfg(target_arch = "x86_64")]
impl<F: Loops> pulp::NullaryFnOnce for Wide<F> {
    type Output = F::Output;
    #[inline(always)]
    fn call(self) -> F::Output {
        self.0.run::<true>()
    }
}

/// The number type of a sum.
pub trait Number: Copy + Default {
    /// `x * y + s`
    fn add_product<const FUSED: bool>(x: Self, y: Self, s: Self) -> Self;
}

impl Number for f64 {
    #[inline(always)]
    fn add_product<const FUSED: bool>(x: f64, y: f64, s: f64) -> f64 {
        if FUSED { x.mul_add(y, s) } else { s + x * y }
    }
}

/// Modulo 2^32.
impl Number for i32 {
    #[inline(always)]
    fn add_product<const FUSED: bool>(x: i32, y: i32, s: i32) -> i32 {
        s.wrapping_add(x.wrapping_mul(y))
    }
}

/// Adds `left * right` to `sum`, all row-major, `sum` with `n` columns and `left` with `k`. Rows of `left` hold depth
/// `i` at index `order(i)`.
#[inline(always)]
pub fn accumulate<const FUSED: bool, T: Number>(
    sum: &mut [T],
    left: &[T],
    right: &[T],
    (n, k): (usize, usize),
    order: impl Fn(usize) -> usize + Copy,
) {
    let whole = n - n % COLUMNS;
    let mut sums = sum.chunks_exact_mut(ROWS * n);
    let mut lefts = left.chunks_exact(ROWS * k);
    for (sum, left) in (&mut sums).zip(&mut lefts) {
        for at in (0..whole).step_by(COLUMNS) {
            block::<FUSED, T, ROWS>(sum, left, right, (n, k, at), order);
        }
        rest::<FUSED, T>(sum, left, right, (n, k, whole), order);
    }
    let (sum, left) = (sums.into_remainder(), lefts.remainder());
    rest::<FUSED, T>(sum, left, right, (n, k, 0), order);
}

/// Columns `at` to `at + 7` of `R` rows.
#[inline(always)]
fn block<const FUSED: bool, T: Number, const R: usize>(
    sum: &mut [T],
    left: &[T],
    right: &[T],
    (n, k, at): (usize, usize, usize),
    order: impl Fn(usize) -> usize + Copy,
) {
    let mut sums = [[T::default(); COLUMNS]; R];
    for (sums, from) in sums.iter_mut().zip(sum.chunks_exact(n)) {
        sums.copy_from_slice(&from[at..at + COLUMNS]);
    }
    let lefts: [&[T]; R] = std::array::from_fn(|r| &left[r * k..r * k + k]);
    for (depth, row) in right.chunks_exact(n).take(k).enumerate() {
        let Some(ys) = row[at..].first_chunk::<COLUMNS>() else { return };
        let from = order(depth);
        for r in 0..R {
            let x = lefts[r][from];
            for c in 0..COLUMNS {
                sums[r][c] = T::add_product::<FUSED>(x, ys[c], sums[r][c]);
            }
        }
    }
    for (sums, to) in sums.iter().zip(sum.chunks_exact_mut(n)) {
        to[at..at + COLUMNS].copy_from_slice(sums);
    }
}

/// The columns from `first` on, row by row.
#[inline(always)]
fn rest<const FUSED: bool, T: Number>(
    sum: &mut [T],
    left: &[T],
    right: &[T],
    (n, k, first): (usize, usize, usize),
    order: impl Fn(usize) -> usize + Copy,
) {
    if first == n {
        return;
    }
    for (sums, left) in sum.chunks_exact_mut(n).zip(left.chunks_exact(k)) {
        for (depth, ys) in right.chunks_exact(n).take(k).enumerate() {
            let x = left[order(depth)];
            for (s, y) in sums[first..].iter_mut().zip(&ys[first..]) {
                *s = T::add_product::<FUSED>(x, *y, *s);
            }
        }
    }
}
