//! The transfer of arguments and results between the homes of two functions, through the ABI locations of a call.

use super::super::{
    code::{Dst, Location, NOWHERE, Piece, Shape, Src, Transfer},
    ctx::write,
    state::{LocalWindows, Select, lanes},
};
use crate::{
    LANES, Row,
    lanes::{u32s, u32s_mut, u64s, u128s},
    mem::Scalar,
};

/// The home of a value in the caller or callee.
#[derive(Clone, Debug)]
pub enum Home {
    /// Registers to read: elements of this many bytes.
    Read(Vec<Src>, u32),
    /// Registers to write: elements of this many bytes.
    Write(Vec<Dst>, u32),
    /// A frame variable, by its offset.
    Frame(u32),
    /// Nowhere.
    None,
}

/// A value in transit, in words: word `w` of all lanes is row `w`.
pub type Stage = Vec<Row>;

/// The local memory of a warp's lanes.
pub struct Local<'m> {
    pub windows: Option<&'m LocalWindows>,
    pub stride: u64,
}

impl Local<'_> {
    /// The host address of a local address of a lane.
    pub fn host(&self, lane: usize, address: u32) -> u64 {
        self.windows.map_or(0, |w| w.of_lane(lane, self.stride)) + u64::from(address)
    }

    fn word(&self, lane: usize, address: u32, len: u32) -> u32 {
        let (Some(local), host) = (self.windows, self.host(lane, address)) else { return 0 };
        if len == 4
            && let Some(word) = crate::mem::load::<u32>(&local.memory.block, host)
        {
            return word;
        }
        (0..len).fold(0, |w, k| {
            w | u32::from(crate::mem::load::<u8>(&local.memory.block, host + u64::from(k)).unwrap_or(0)) << (8 * k)
        })
    }

    fn set_word(&self, lane: usize, address: u32, len: u32, word: u32) {
        let (Some(local), host) = (self.windows, self.host(lane, address)) else { return };
        if len == 4
            && let Some(cell) = local.memory.block.cell::<<u32 as Scalar>::Cell>(host)
        {
            return u32::set(cell, word);
        }
        for k in 0..len {
            crate::mem::store(&local.memory.block, host + u64::from(k), (word >> (8 * k)) as u8);
        }
    }

    /// Loads `size` bytes at `base[lane] + offset`.
    pub fn read(&self, base: &Row, offset: u32, size: u32, mask: u32, stage: &mut [Row]) {
        for (w, row) in stage.iter_mut().enumerate().take(size.div_ceil(4) as usize) {
            let (at, len) = (offset + 4 * w as u32, (size - 4 * w as u32).min(4));
            lanes(mask).for_each(|i| row.0[i] = self.word(i, base.0[i] + at, len));
        }
    }

    /// Stores `size` bytes at `base[lane] + offset`.
    pub fn write(&self, base: &Row, offset: u32, size: u32, mask: u32, stage: &[Row]) {
        for (w, row) in stage.iter().enumerate().take(size.div_ceil(4) as usize) {
            let (at, len) = (offset + 4 * w as u32, (size - 4 * w as u32).min(4));
            lanes(mask).for_each(|i| self.set_word(i, base.0[i] + at, len, row.0[i]));
        }
    }
}

/// Bytes `start..start + len` of a value in transit, as one word.
fn stage_word(stage: &[Row], lane: usize, start: u32, len: u32) -> u32 {
    let row = |w: u32| stage.get(w as usize).map_or(0, |r| r.0[lane]);
    let both = u64::from(row(start / 4)) | u64::from(row(start / 4 + 1)) << 32;
    let cut = if len < 4 { (1u64 << (8 * len)) - 1 } else { 0xffff_ffff };
    (both >> (8 * (start % 4)) & cut) as u32
}

/// Sets bytes `start..start + len` of a value in transit.
fn set_stage_word(stage: &mut [Row], lane: usize, start: u32, len: u32, word: u32) {
    for k in 0..len {
        let (w, b) = ((start + k) / 4, (start + k) % 4);
        if let Some(row) = stage.get_mut(w as usize) {
            let shift = 8 * b;
            row.0[lane] = row.0[lane] & !(0xff << shift) | (word >> (8 * k) & 0xff) << shift;
        }
    }
}

/// Packs registers into a value in transit.
fn pack(srcs: &[Src], bytes: u32, regs: &[Row], consts: &[Row], mask: u32, stage: &mut [Row]) {
    for (k, s) in srcs.iter().enumerate() {
        let (rows, start) = (s.of(regs, consts), k as u32 * bytes);
        match (s.shape(), bytes) {
            (Shape::Pred, _) => {
                lanes(mask).for_each(|i| set_stage_word(stage, i, start, bytes, rows[0].0[0] >> i & 1));
            }
            (Shape::Word, 4) => stage[k].0 = *u32s(rows),
            (Shape::Word, _) => lanes(mask).for_each(|i| set_stage_word(stage, i, start, bytes.min(4), u32s(rows)[i])),
            (Shape::Double, 8) => {
                let values = u64s(rows);
                for i in 0..LANES {
                    stage[2 * k].0[i] = values[i] as u32;
                    stage[2 * k + 1].0[i] = (values[i] >> 32) as u32;
                }
            }
            (Shape::Double, _) => {
                let values = u64s(rows);
                for i in lanes(mask) {
                    set_stage_word(stage, i, start, bytes.min(4), values[i] as u32);
                    set_stage_word(stage, i, start + 4, bytes.saturating_sub(4).min(4), (values[i] >> 32) as u32);
                }
            }
            (Shape::Quad, _) => {
                let values = u128s(rows);
                for (i, w) in lanes(mask).flat_map(|i| (0..bytes.div_ceil(4)).map(move |w| (i, w))) {
                    set_stage_word(stage, i, start + 4 * w, (bytes - 4 * w).min(4), (values[i] >> (32 * w)) as u32);
                }
            }
        }
    }
}

/// Unpacks a value in transit to registers.
fn unpack(dsts: &[Dst], bytes: u32, regs: &mut [Row], select: &mut Select, mask: u32, stage: &[Row]) {
    for (k, d) in dsts.iter().enumerate().filter(|(_, d)| d.row != NOWHERE) {
        let start = k as u32 * bytes;
        if d.shape == Shape::Quad {
            let rows = &mut regs[d.row as usize..d.row as usize + 4];
            let mut all = u128s(rows);
            for i in lanes(mask) {
                let word = |w: u32| u128::from(stage_word(stage, i, start + 4 * w, bytes.saturating_sub(4 * w).min(4)));
                all[i] = (0..bytes.div_ceil(4)).fold(0, |v, w| v | word(w) << (32 * w));
            }
            crate::lanes::set_u128s(rows, &all);
            continue;
        }
        if (d.shape, bytes, d.bits) == (Shape::Word, 4, 32) {
            select.merge_words(u32s_mut(&mut regs[d.row as usize..]), &stage[k].0, mask);
            continue;
        }
        let mut values = [0; LANES];
        if (d.shape, bytes) == (Shape::Double, 8) {
            let (low, high) = (&stage[2 * k].0, &stage[2 * k + 1].0);
            for i in 0..LANES {
                values[i] = u64::from(low[i]) | u64::from(high[i]) << 32;
            }
            write(regs, select, *d, &values, mask);
            continue;
        }
        for i in lanes(mask) {
            values[i] = stage_word(stage, i, start, bytes.min(4)).into();
            if bytes > 4 {
                values[i] |= u64::from(stage_word(stage, i, start + 4, (bytes - 4).min(4))) << 32;
            }
        }
        write(regs, select, *d, &values, mask);
    }
}

/// Makes room for a value, zeroed.
pub fn make_room(stage: &mut Stage, size: u32) -> &mut [Row] {
    stage.clear();
    stage.resize(size.div_ceil(4) as usize, Row::ZERO);
    stage
}

/// The caller's or the callee's side of a transfer.
pub struct Side<'s> {
    pub regs: &'s mut [Row],
    pub consts: &'s [Row],
    /// Local address of the function's frame, by lane.
    pub base: Row,
}

impl Side<'_> {
    /// Copies a value from its home to `stage`.
    pub fn fetch(&self, local: &Local<'_>, t: &Transfer, mask: u32, stage: &mut [Row]) {
        match &t.home {
            Home::Read(srcs, bytes) => pack(srcs, *bytes, self.regs, self.consts, mask, stage),
            Home::Frame(offset) => local.read(&self.base, *offset, t.size, mask, stage),
            Home::Write(dsts, bytes) => {
                let srcs: Vec<Src> = dsts.iter().map(|d| Src::reg(d.row, d.shape)).collect();
                pack(&srcs, *bytes, self.regs, self.consts, mask, stage);
            }
            Home::None => {}
        }
    }

    /// Copies a value from `stage` to its home.
    pub fn deliver(&mut self, local: &Local<'_>, select: &mut Select, t: &Transfer, mask: u32, stage: &[Row]) {
        match &t.home {
            Home::Write(dsts, bytes) => unpack(dsts, *bytes, self.regs, select, mask, stage),
            Home::Frame(offset) => local.write(&self.base, *offset, t.size, mask, stage),
            Home::Read(..) | Home::None => {}
        }
    }
}

/// The ABI locations of a call.
pub struct Between<'b> {
    pub registers: &'b mut [Row],
    pub space: &'b mut [Row],
    /// Local address of the caller's outgoing area.
    pub area: Row,
}

impl Between<'_> {
    /// The row of a whole, aligned word.
    fn row(&mut self, at: Location, word: u32) -> Option<&mut Row> {
        match at {
            Location::Reg(r) => self.registers.get_mut((r + word) as usize),
            Location::Space(offset) if offset.is_multiple_of(4) => self.space.get_mut((offset / 4 + word) as usize),
            Location::Space(_) | Location::Stack(_) | Location::Behind(_) => None,
        }
    }

    /// Stores a value in transit to its locations.
    fn send(&mut self, local: &Local<'_>, pieces: &[Piece], mask: u32, stage: &[Row]) {
        for p in pieces {
            for w in 0..p.len.div_ceil(4) {
                let (start, len) = (p.start + 4 * w, (p.len - 4 * w).min(4));
                if start.is_multiple_of(4)
                    && len == 4
                    && let (Some(to), Some(from)) = (self.row(p.at, w), stage.get((start / 4) as usize))
                {
                    *to = *from;
                    continue;
                }
                for i in lanes(mask) {
                    let word = stage_word(stage, i, start, len);
                    match p.at {
                        Location::Reg(r) => self.registers[(r + w) as usize].0[i] = word,
                        Location::Space(offset) => set_stage_word(self.space, i, offset + 4 * w, len, word),
                        Location::Stack(offset) => local.set_word(i, self.area.0[i] + offset + 4 * w, len, word),
                        Location::Behind(r) => local.set_word(i, self.registers[r as usize].0[i] + start, len, word),
                    }
                }
            }
        }
    }

    /// Loads a value in transit from its locations.
    fn receive(&mut self, local: &Local<'_>, pieces: &[Piece], mask: u32, stage: &mut [Row]) {
        for p in pieces {
            for w in 0..p.len.div_ceil(4) {
                let (start, len) = (p.start + 4 * w, (p.len - 4 * w).min(4));
                if start.is_multiple_of(4)
                    && len == 4
                    && let (Some(from), Some(to)) = (self.row(p.at, w), stage.get_mut((start / 4) as usize))
                {
                    *to = *from;
                    continue;
                }
                for i in lanes(mask) {
                    let word = match p.at {
                        Location::Reg(r) => self.registers[(r + w) as usize].0[i],
                        Location::Space(offset) => stage_word(self.space, i, offset + 4 * w, len),
                        Location::Stack(offset) => local.word(i, self.area.0[i] + offset + 4 * w, len),
                        Location::Behind(r) => local.word(i, self.registers[r as usize].0[i] + start, len),
                    };
                    set_stage_word(stage, i, start, len, word);
                }
            }
        }
    }

    /// Sends values from their homes in a function.
    pub fn send_all(&mut self, local: &Local<'_>, from: &Side<'_>, values: &[Transfer], mask: u32, stage: &mut Stage) {
        for value in values {
            let stage = make_room(stage, value.size);
            from.fetch(local, value, mask, stage);
            self.send(local, &value.pieces, mask, stage);
        }
    }

    /// Receives values in their homes in a function.
    pub fn receive_all(
        &mut self,
        local: &Local<'_>,
        (to, select): (&mut Side<'_>, &mut Select),
        values: &[Transfer],
        mask: u32,
        stage: &mut Stage,
    ) {
        for value in values {
            let stage = make_room(stage, value.size);
            self.receive(local, &value.pieces, mask, stage);
            to.deliver(local, select, value, mask, stage);
        }
    }
}
