//! Areas: memory for the values that a plan passes on the stack, in the parameter block or by pointer, for all 32
//! lanes.
//!
//! The bytes of the lanes are interleaved by unit (a unit is an element of a scalar or vector, a word of an array, or
//! one of the remaining bytes): the unit at byte `b` of the area is a vector of 32 integers at byte `32 * b` of the
//! block. Large arrays are moved by loops, so that code size does not depend on theirs.

use crate::emit::{
    call::signature::integer,
    function::{Emitter, Mode, Result},
    text::{Elem, Ty, Val, fill},
};
use std::ops::Range;

/// The largest array, in words, that is moved by unrolled loads and stores.
const UNROLLED: u32 = 32;

/// Where a value lives within a function: the source or the destination of a transfer.
pub(in crate::emit) enum Side {
    /// In registers: integers of this many bytes each.
    Elements(Vec<Val>, u32),
    /// In a promoted frame variable: words of 32 lanes.
    Words(Val),
    /// In a frame variable in the threads' local windows.
    Window(u32),
    /// Nowhere.
    Nowhere,
}

/// What a store to an area does to the elements of inactive lanes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::emit) enum InactiveLanes {
    /// They keep their values, which lanes of another call may still need.
    Preserved,
    /// They may be overwritten: no other call uses the area at the same time.
    Clobbered,
}

/// Splits a range into naturally aligned parts of 4, 2 or 1 bytes.
fn parts(range: &Range<u32>) -> Vec<Range<u32>> {
    let (mut at, mut parts) = (range.start, Vec::new());
    while at < range.end {
        let size = [4, 2, 1].into_iter().find(|s| at.is_multiple_of(*s) && at + s <= range.end).unwrap_or(1);
        parts.push(at..at + size);
        at += size;
    }
    parts
}

/// Splits a range into units, and bytes for the rest.
fn units(range: &Range<u32>, unit: u32) -> Vec<Range<u32>> {
    let whole = (range.end - range.start) / unit * unit;
    let ends = (0..whole / unit).map(|k| range.start + k * unit..range.start + (k + 1) * unit);
    ends.chain((range.start + whole..range.end).map(|b| b..b + 1)).collect()
}

const MEMCPY: &str = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)";

/// The direction in which words move between rows and an address per lane.
#[derive(Clone, Copy)]
enum Direction {
    /// To the rows.
    Take,
    /// From the rows.
    Give,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Direction::Take => "margay.rows.take",
            Direction::Give => "margay.rows.give",
        }
    }

    /// `take(block, lanes, rows, mask)` or `give`: moves words between rows and an address per lane, in the lanes of `mask`.
    fn text(self) -> String {
        let (from, to) = match self {
            Direction::Take => ("%there, align 1", "%here, align 4"),
            Direction::Give => ("%here, align 4", "%there, align 1"),
        };
        fill(include_str!("area/move.ll"), &[("name", &self.name()), ("from", &from), ("to", &to)])
    }
}

impl Emitter<'_> {
    /// A frame variable as one end of a transfer.
    pub fn variable(&self, f: u32) -> Side {
        match self.local.frame[f as usize].clone() {
            Some(words) => Side::Words(words),
            None => Side::Window(f),
        }
    }

    /// Reads a range of bytes of a value as an integer, lowest byte first.
    pub fn side_bytes(&mut self, side: &Side, range: &Range<u32>) -> Result<Val> {
        let elem = integer(range.end - range.start);
        match side {
            Side::Elements(values, bytes) => {
                let mut whole: Option<Val> = None;
                for (k, v) in values.iter().enumerate() {
                    let (first, end) = (k as u32 * bytes, (k as u32 + 1) * bytes);
                    if end <= range.start || range.end <= first {
                        continue;
                    }
                    let below = range.start.saturating_sub(first) * 8;
                    let v = if below > 0 { self.w.op_const("lshr", v, below.into()) } else { v.clone() };
                    let v = self.w.resize(&v, elem, false);
                    whole = Some(self.join(whole, &v, first.saturating_sub(range.start)));
                }
                match whole {
                    Some(whole) => Ok(whole),
                    None => self.refuse("a value without bytes"),
                }
            }
            Side::Words(words) => {
                let length = range.end - range.start;
                if length == 8 && range.start.is_multiple_of(4) {
                    return Ok(self.frame_load(words, range.start, 8));
                }
                let mut whole = None;
                for part in parts(range) {
                    let v = self.frame_load(words, part.start, part.end - part.start);
                    let v = self.w.resize(&v, elem, false);
                    whole = Some(self.join(whole, &v, part.start - range.start));
                }
                whole.map_or_else(|| self.refuse("a value without bytes"), Ok)
            }
            Side::Window(f) => {
                let mut whole = None;
                for part in parts(range) {
                    let here = self.frame_address(*f, i64::from(part.start));
                    let address = self.local_lanes(&here);
                    let mask = self.lanes(None);
                    let v = self.gather(&address, integer(part.end - part.start), mask.as_ref());
                    let v = self.w.resize(&v, elem, false);
                    whole = Some(self.join(whole, &v, part.start - range.start));
                }
                whole.map_or_else(|| self.refuse("a value without bytes"), Ok)
            }
            Side::Nowhere => self.refuse("a value from nowhere"),
        }
    }

    /// Ors `v`, shifted up by `at` bytes, into an integer.
    pub fn join(&mut self, whole: Option<Val>, v: &Val, at: u32) -> Val {
        let v = if at > 0 { self.w.op_const("shl", v, i128::from(at) * 8) } else { v.clone() };
        match whole {
            Some(whole) => self.w.op("or", &whole, &v),
            None => v,
        }
    }

    /// Writes a range of bytes of a variable in the active lanes of `mask`.
    pub fn set_variable(&mut self, side: &Side, range: &Range<u32>, v: &Val, mask: Option<&Val>) {
        let whole = range.end - range.start == 8 && range.start.is_multiple_of(4);
        let pieces = if whole && matches!(side, Side::Words(_)) { vec![range.clone()] } else { parts(range) };
        for part in pieces {
            let below = i128::from(part.start - range.start) * 8;
            let bytes = part.end - part.start;
            let v = if below > 0 { self.w.op_const("lshr", v, below) } else { v.clone() };
            let v = self.w.resize(&v, integer(bytes), false);
            match side {
                Side::Words(words) => self.frame_store(words, part.start, bytes, &v, mask),
                Side::Window(f) => {
                    let here = self.frame_address(*f, i64::from(part.start));
                    let address = self.local_lanes(&here);
                    let lanes = self.lanes(mask);
                    let v = self.w.splat(&v);
                    self.scatter(&address, &v, lanes.as_ref());
                }
                Side::Elements(..) | Side::Nowhere => {}
            }
        }
    }

    /// Address of the unit at byte `at` of an area.
    fn unit(&mut self, block: &Val, at: u32) -> Val {
        self.w.offset_const(block, u64::from(at) * 32)
    }

    /// Copies a range of bytes of a value to byte `at` of an area.
    pub fn store_area(
        &mut self,
        side: &Side,
        range: &Range<u32>,
        unit: u32,
        (block, at): (&Val, u32),
        inactive: InactiveLanes,
    ) -> Result<()> {
        let rows = (range.end - range.start) / 4;
        let mut rest = range.clone();
        if unit == 4 && rows > UNROLLED && range.start.is_multiple_of(4) && !matches!(side, Side::Elements(..)) {
            let to = self.unit(block, at);
            self.rows_to(side, range.start, &to, rows, inactive);
            rest.start += rows * 4;
        }
        for part in units(&rest, unit) {
            let v = self.side_bytes(side, &part)?;
            let v = self.w.splat(&v);
            let p = self.unit(block, at + (part.start - range.start));
            let v = match self.lanes(None).filter(|_| inactive == InactiveLanes::Preserved) {
                Some(active) => {
                    let old = self.w.load(v.ty, &p, 32);
                    self.w.select(&active, &v, &old)
                }
                None => v,
            };
            self.w.store(&v, &p, 32);
        }
        Ok(())
    }

    /// Copies a range of bytes of a variable from byte `at` of an area, in the active lanes of `mask`.
    pub fn load_area(
        &mut self,
        side: &Side,
        range: &Range<u32>,
        unit: u32,
        (block, at): (&Val, u32),
        mask: Option<&Val>,
    ) {
        let rows = (range.end - range.start) / 4;
        let mut rest = range.clone();
        if unit == 4 && rows > UNROLLED && range.start.is_multiple_of(4) {
            let from = self.unit(block, at);
            self.rows_from(side, range.start, &from, rows, mask);
            rest.start += rows * 4;
        }
        for part in units(&rest, unit) {
            let v = self.area_unit((block, at + (part.start - range.start)), part.end - part.start);
            self.set_variable(side, &part, &v, mask);
        }
    }

    /// Reads a unit of an area as an integer of `bytes` bytes.
    pub fn area_unit(&mut self, (block, at): (&Val, u32), bytes: u32) -> Val {
        let p = self.unit(block, at);
        self.w.load(Ty::lanes(integer(bytes)), &p, 32)
    }

    /// Copies words of a variable to rows of an area.
    fn rows_to(&mut self, side: &Side, start: u32, to: &Val, rows: u32, inactive: InactiveLanes) {
        let bits = self.lane_bits(None);
        match side {
            Side::Words(words) => {
                let from = self.w.offset_const(words, u64::from(start) * 32);
                if inactive == InactiveLanes::Preserved && self.mode == Mode::Masked {
                    self.blend_rows(to, &from, rows, &bits);
                } else {
                    self.copy_rows(to, &from, rows);
                }
            }
            Side::Window(f) => {
                let here = self.frame_address(*f, i64::from(start));
                self.take_rows(to, &here, rows, &bits);
            }
            Side::Elements(..) | Side::Nowhere => {}
        }
    }

    /// Copies rows of an area to words of a variable, in the active lanes of `mask`.
    fn rows_from(&mut self, side: &Side, start: u32, from: &Val, rows: u32, mask: Option<&Val>) {
        let some = self.lanes(mask).is_some();
        let bits = self.lane_bits(mask);
        match side {
            Side::Words(words) => {
                let to = self.w.offset_const(words, u64::from(start) * 32);
                if some {
                    self.blend_rows(&to, from, rows, &bits);
                } else {
                    self.copy_rows(&to, from, rows);
                }
            }
            Side::Window(f) => {
                let here = self.frame_address(*f, i64::from(start));
                self.give_rows(&here, from, rows, &bits);
            }
            Side::Elements(..) | Side::Nowhere => {}
        }
    }

    fn copy_rows(&mut self, to: &Val, from: &Val, rows: u32) {
        self.w.declared.insert(MEMCPY.into());
        let bytes = u64::from(rows) * 128;
        self.w.line(format_args!(
            "call void @llvm.memcpy.p0.p0.i64(ptr align 32 {to}, ptr align 32 {from}, i64 {bytes}, i1 false)"
        ));
    }

    /// Copies rows in the lanes of `bits`; the others keep their values.
    fn blend_rows(&mut self, to: &Val, from: &Val, rows: u32, bits: &Val) {
        self.w.declared.insert(fill(include_str!("area/blend.ll"), &[]));
        self.w.line(format_args!("call void @margay.rows.blend(ptr {to}, ptr {from}, i64 {rows}, i32 {bits})"));
    }

    /// Copies words from the threads' local windows to rows; the offset is uniform or per lane.
    pub fn take_rows(&mut self, to: &Val, offset: &Val, rows: u32, bits: &Val) {
        self.move_rows(Direction::Take, to, offset, rows, bits);
    }

    /// Copies words from rows to the threads' local windows.
    pub fn give_rows(&mut self, offset: &Val, from: &Val, rows: u32, bits: &Val) {
        self.move_rows(Direction::Give, from, offset, rows, bits);
    }

    fn move_rows(&mut self, way: Direction, block: &Val, offset: &Val, rows: u32, bits: &Val) {
        let address = self.local_lanes(offset);
        let lanes = self.spread(&address);
        self.declare_cttz();
        self.w.declared.insert(way.text());
        let name = way.name();
        self.w.line(format_args!("call void @{name}(ptr {block}, <32 x i64> {lanes}, i64 {rows}, i32 {bits})"));
    }

    pub fn declare_cttz(&mut self) {
        self.w.declared.insert("declare i32 @llvm.cttz.i32(i32, i1)".into());
    }

    /// Copies a variable of the caller to the outgoing area of its frame, in the threads' local windows.
    pub fn pass_variable(&mut self, f: u32, bytes: u32, to: &Val) -> Result<()> {
        let side = self.variable(f);
        let rows = bytes / 4;
        let bits = self.lane_bits(None);
        let mut rest = 0..bytes;
        if rows > 0 {
            let from = match &side {
                Side::Words(words) => words.clone(),
                _ => {
                    let block = self.w.alloca(&format!("[{rows} x <32 x i32>]"), 64);
                    let here = self.frame_address(f, 0);
                    self.take_rows(&block, &here, rows, &bits);
                    block
                }
            };
            self.give_rows(to, &from, rows, &bits);
            rest.start = rows * 4;
        }
        for part in parts(&rest) {
            let v = self.side_bytes(&side, &part)?;
            let here = self.w.op_const("add", to, i128::from(part.start));
            let address = self.local_lanes(&here);
            let lanes = self.lanes(None);
            let v = self.w.resize(&v, Elem::int((part.end - part.start) * 8), false);
            let v = self.w.splat(&v);
            self.scatter(&address, &v, lanes.as_ref());
        }
        Ok(())
    }
}
