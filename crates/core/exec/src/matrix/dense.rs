//! Dense row-major matrices, and their product.

use super::{
    blocked::{self, Loops},
    element::Element,
    fragment::Coord,
};
use crate::{LANES, Row};

/// A row-major matrix.
pub struct Matrix<T> {
    columns: usize,
    cells: Vec<T>,
}

impl<T: Copy + Default> Matrix<T> {
    /// A matrix of zeros.
    pub fn new(rows: usize, columns: usize) -> Matrix<T> {
        Matrix { columns, cells: vec![T::default(); rows * columns] }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.cells.len() / self.columns.max(1)
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// An element.
    pub fn at(&self, (row, column): Coord) -> T {
        self.cells[row * self.columns + column]
    }

    /// Sets an element.
    pub fn set(&mut self, (row, column): Coord, value: T) {
        self.cells[row * self.columns + column] = value;
    }

    /// Sets consecutive elements along a row, or down a column.
    pub fn set_run(&mut self, (row, column): Coord, down: bool, values: &[T]) {
        let cells = &mut self.cells[row * self.columns + column..];
        match down {
            false => cells[..values.len()].copy_from_slice(values),
            true => cells.iter_mut().step_by(self.columns).zip(values).for_each(|(c, v)| *c = *v),
        }
    }

    /// All elements, row by row.
    pub fn cells(&self) -> &[T] {
        &self.cells
    }

    /// See [`Matrix::cells`].
    pub fn cells_mut(&mut self) -> &mut [T] {
        &mut self.cells
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[T] {
        &self.cells[row * self.columns..][..self.columns]
    }

    /// One row.
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        &mut self.cells[row * self.columns..][..self.columns]
    }

    /// Changes every element.
    pub fn map(&mut self, change: impl Fn(T) -> T) {
        self.cells.iter_mut().for_each(|c| *c = change(*c));
    }

    /// Fills the matrix from 32-bit registers.
    pub fn gather(
        &mut self,
        e: Element,
        registers: &[&[Row]],
        place: impl Fn(usize, usize) -> Coord,
        value: impl Fn(u32) -> T,
    ) {
        let per = e.per_register();
        for (r, rows) in registers.iter().enumerate() {
            let Some(row) = rows.first() else { continue };
            for lane in 0..LANES {
                for i in 0..per {
                    self.set(place(lane, r * per + i), value(e.extract(row.0[lane], i)));
                }
            }
        }
    }
}

impl Matrix<f64> {
    /// Adds `left * right`; every element's sum runs over k upwards.
    pub fn add_product(&mut self, left: &Matrix<f64>, right: &Matrix<f64>) {
        blocked::vectorize(Sum(self, left, right));
    }
}

/// The operands of [`Matrix::add_product`]: the sum, and the two factors.
struct Sum<'a>(&'a mut Matrix<f64>, &'a Matrix<f64>, &'a Matrix<f64>);

impl Loops for Sum<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Sum(sum, left, right) = self;
        let n = sum.columns;
        blocked::accumulate::<FUSED, f64>(&mut sum.cells, &left.cells, &right.cells, (n, left.columns), |k| k);
    }
}

impl Matrix<i64> {
    /// Adds `left * right`, with `combine` in place of the multiply-add of elements.
    pub fn add_product(&mut self, left: &Matrix<i64>, right: &Matrix<i64>, combine: impl Fn(i64, i64) -> i64) {
        for row in 0..self.rows() {
            let sums = &mut self.cells[row * self.columns..][..self.columns];
            for (k, x) in left.row(row).iter().enumerate() {
                sums.iter_mut().zip(right.row(k)).for_each(|(s, y)| *s += combine(*x, *y));
            }
        }
    }
}

/// An exact sum as `.s32`, clamped or wrapped.
#[inline(always)]
pub fn to_s32(sum: i64, saturate: bool) -> u32 {
    let clamped = sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
    if saturate { clamped as u32 } else { sum as u32 }
}
