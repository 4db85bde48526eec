//! Rows of lanes whose addresses are a constant apart, such as the column of a tile: the host's gathers, or one scalar access per lane, at
//! a constant distance from the row's first.

use super::PROGRAM;
use crate::emit::{
    function::{Emitter, affine::rows},
    text::{Elem, Ty, Val, constant, int},
};

/// Number of such accesses of a function that are unrolled; each is about a hundred lines.
const LIMIT: u32 = 32;

impl Emitter<'_> {
    /// Whether another access is unrolled over the lanes.
    pub(super) fn unrolls(&mut self, elem: Elem) -> bool {
        let yes = !self.options.lean && elem != Elem::I128 && self.accesses.unrolled < LIMIT;
        self.accesses.unrolled += u32::from(yes);
        yes
    }

    /// The same as [`Emitter::load_strided`] by gathers of the host, which take half the time; `None` if rows are too short for them, or
    /// too long for their offsets of 32 bits.
    pub(super) fn gather_strided(&mut self, pointers: &[Val], elem: Elem, width: u32, stride: i64) -> Option<Val> {
        let (lanes, suffix) = match elem.bits() {
            32 => (16, "dpi"),
            64 => (8, "dpq"),
            _ => return None,
        };
        let far = stride.checked_mul(i64::from(lanes)).is_none_or(|apart| i32::try_from(apart).is_err());
        if !self.options.gathers || width < lanes || far {
            return None;
        }
        let ty = Ty::lanes(elem);
        let part = ty.part(lanes);
        let name = format!("llvm.x86.avx512.mask.gather.{suffix}.512");
        self.w.declared.insert(format!("declare {part} @{name}({part}, ptr, <{lanes} x i32>, <{lanes} x i1>, i32)"));
        let offsets = (0..i64::from(lanes)).map(|l| format!("i32 {}", l * stride)).collect::<Vec<_>>().join(", ");
        let mut pieces = Vec::new();
        for first in pointers {
            for piece in 0..width / lanes {
                let p = self.step(first, piece * lanes, stride);
                let how = format_args!(
                    "call {part} @{name}({part} zeroinitializer, ptr {p}, <{lanes} x i32> <{offsets}>, <{lanes} x i1> splat (i1 true), i32 1)"
                );
                pieces.push(self.w.value(ty, how));
            }
        }
        Some(self.concat(pieces, elem, lanes))
    }

    /// Loads one element per lane, `stride` bytes after that of the lane before.
    pub(super) fn load_strided(&mut self, pointers: &[Val], elem: Elem, width: u32, stride: i64) -> Val {
        let (scalar, ty) = (Ty::scalar(elem), Ty::lanes(elem));
        let mut all = "poison".to_string();
        let mut last = None;
        for (row, first) in rows(width).zip(pointers) {
            for lane in 0..width {
                let p = self.step(first, lane, stride);
                let align = self.accesses.aligned.unwrap_or(elem.bits() / 8);
                let v = self.w.value(scalar, format_args!("load {scalar}, ptr {p}, align {align}, {PROGRAM}"));
                let index = row.index * width + lane;
                let one = self.w.value(ty, format_args!("insertelement {ty} {all}, {scalar} {v}, i32 {index}"));
                all = one.to_string();
                last = Some(one);
            }
        }
        last.unwrap_or_else(|| constant(ty, 0))
    }

    /// Stores one element per lane, `stride` bytes after that of the lane before; in the order of the lanes.
    pub(super) fn store_strided(&mut self, v: &Val, pointers: &[Val], width: u32, stride: i64) {
        let (v, scalar) = (self.w.splat(v), Ty::scalar(v.ty.elem));
        let align = self.accesses.aligned.unwrap_or(v.ty.elem.bits() / 8);
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
