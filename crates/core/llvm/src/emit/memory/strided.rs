//! Rows of lanes whose addresses are a constant apart, such as the column of a tile: one scalar access per lane, at a
//! constant distance from the row's first.

use super::PROGRAM;
use crate::emit::{
    function::{Emitter, affine::rows},
    text::{Elem, Ty, Val, int},
};

/// How many such accesses of a function are unrolled; each is about a hundred lines.
const MOST: u32 = 32;

impl Emitter<'_> {
    /// Whether another access is unrolled over the lanes.
    pub(super) fn unrolls(&mut self, elem: Elem) -> bool {
        let yes = !self.options.lean && elem != Elem::I128 && self.unrolled < MOST;
        self.unrolled += u32::from(yes);
        yes
    }

    /// Loads one element per lane, `stride` bytes after that of the lane before.
    pub(super) fn load_strided(&mut self, pointers: &[Val], elem: Elem, width: u32, stride: i64) -> Val {
        let (scalar, ty) = (Ty::scalar(elem), Ty::lanes(elem));
        let mut all = "poison".to_string();
        let mut last = None;
        for (row, first) in rows(width).zip(pointers) {
            for lane in 0..width {
                let p = self.step(first, lane, stride);
                let align = elem.bits() / 8;
                let v = self.w.value(scalar, format_args!("load {scalar}, ptr {p}, align {align}, {PROGRAM}"));
                let index = row.index * width + lane;
                let one = self.w.value(ty, format_args!("insertelement {ty} {all}, {scalar} {v}, i32 {index}"));
                all = one.to_string();
                last = Some(one);
            }
        }
        last.unwrap_or_else(|| crate::emit::text::constant(ty, 0))
    }

    /// Stores one element per lane, `stride` bytes after that of the lane before; in the order of the lanes.
    pub(super) fn store_strided(&mut self, v: &Val, pointers: &[Val], width: u32, stride: i64) {
        let (v, scalar, align) = (self.w.splat(v), Ty::scalar(v.ty.elem), v.ty.elem.bits() / 8);
        for (row, first) in rows(width).zip(pointers) {
            for lane in 0..width {
                let p = self.step(first, lane, stride);
                let one = self.w.extract(&v, &int(Elem::I32, i128::from(row.index * width + lane)));
                self.w.line(format_args!("store {scalar} {one}, ptr {p}, align {align}, {PROGRAM}"));
            }
        }
    }

    fn step(&mut self, first: &Val, lane: u32, stride: i64) -> Val {
        match i128::from(lane) * i128::from(stride) {
            0 => first.clone(),
            apart => self.w.offset(first, &int(Elem::I64, apart)),
        }
    }
}
