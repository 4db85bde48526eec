//! Registers of fragments as consecutive rows in memory, where the functions of matrix instructions read and write them.
//!
//! The rows that a function has written are loaded after its call, whether or not they are used (`tidy` removes unused loads), so
//! a buffer may be overwritten at any time. Fragments that a buffer still holds are passed on without being loaded: sums go
//! from product to product in one place.

use crate::emit::{
    function::Emitter,
    text::{Elem, Ty, Val},
};

/// The purpose of a buffer. The sums of a tile are used again and again, factors hardly ever, so factors must not displace sums.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::emit) enum Purpose {
    /// Fragments of A and B, and what was loaded.
    Factor,
    /// Fragments of C and D.
    Sum,
}

impl Purpose {
    /// Buffers, at most; threads have registers for about 60 fragments of four.
    fn most(self) -> usize {
        match self {
            Purpose::Factor => 8,
            Purpose::Sum => 64,
        }
    }
}

/// Buffers of a function; those used last are last.
#[derive(Default)]
pub(in crate::emit) struct Buffers(Vec<Buffer>);

#[derive(Clone)]
struct Buffer {
    at: Val,
    rows: usize,
    /// A row's elements, one to a lane.
    elem: Elem,
    purpose: Purpose,
}

/// Consecutive rows of a buffer.
#[derive(Clone)]
pub(super) struct Rows {
    buffer: Val,
    elem: Elem,
    first: usize,
    count: usize,
}

impl Rows {
    /// Whether both are in one buffer.
    pub(super) fn is_beside(&self, other: &Rows) -> bool {
        self.buffer == other.buffer
    }
}

/// Bytes of a row: a register of a warp.
fn bytes(elem: Elem) -> u64 {
    u64::from(elem.bits()) / 8 * 32
}

impl Emitter<'_> {
    /// Rows that hold values, one after the other: some that do already, or new ones.
    pub(super) fn rows_of(&mut self, values: &[Val], purpose: Purpose) -> Rows {
        let count = values.len();
        let elem = values.first().map_or(Elem::I32, |v| v.ty.elem);
        let holds = |at: &Val, first: usize| {
            let mut rows = (first..).zip(values);
            rows.all(|(row, v)| self.w.known_part(at, row as u64 * bytes(elem)) == Some(v))
        };
        let found = self.entry.rows.0.iter().enumerate().find_map(|(i, Buffer { at, rows, elem: held, .. })| {
            if *held != elem {
                return None;
            }
            let first = (0..(rows + 1).saturating_sub(count)).find(|first| holds(at, *first))?;
            Some((i, first))
        });
        if let Some((i, first)) = found {
            let buffer = self.entry.rows.0.remove(i);
            let at = buffer.at.clone();
            self.entry.rows.0.push(buffer);
            return Rows { buffer: at, elem, first, count };
        }
        let rows = self.new_rows((count, elem), purpose);
        for (i, v) in values.iter().enumerate() {
            self.w.set(v, &rows.buffer, i as u64 * bytes(elem), 64);
        }
        rows
    }

    /// Rows to be overwritten: in a buffer without known content, in a new one, or in the least recently used one.
    pub(super) fn new_rows(&mut self, (count, elem): (usize, Elem), purpose: Purpose) -> Rows {
        let all = &mut self.entry.rows.0;
        let fits = |b: &Buffer| b.rows == count && b.elem == elem && b.purpose == purpose;
        let free = all.iter().position(|b| fits(b) && self.w.known_part(&b.at, 0).is_none());
        let oldest = || all.iter().position(fits).filter(|_| all.iter().filter(|b| fits(b)).count() >= purpose.most());
        let buffer = match free.or_else(oldest) {
            Some(i) => all.remove(i),
            None => {
                let at = self.w.alloca(&format!("[{count} x {}]", Ty::lanes(elem)), 64);
                Buffer { at, rows: count, elem, purpose }
            }
        };
        let rows = Rows { buffer: buffer.at.clone(), elem, first: 0, count };
        all.push(buffer);
        rows
    }

    /// Their address.
    pub(super) fn rows_pointer(&mut self, rows: &Rows) -> Val {
        self.w.offset_const(&rows.buffer, rows.first as u64 * bytes(rows.elem))
    }

    /// The values that a function has just left in rows.
    pub(super) fn left_in(&mut self, rows: &Rows) -> Vec<Val> {
        let ty = Ty::lanes(rows.elem);
        (rows.first..rows.first + rows.count)
            .map(|row| self.w.get_changed(ty, &rows.buffer, row as u64 * bytes(rows.elem), 64))
            .collect()
    }
}
