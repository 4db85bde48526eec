//! `wmma.load` and `wmma.store` (manual, sections 9.7.14.4.3 and 9.7.14.4.4).
//!
//! A matrix lies in memory as lines, its rows or its columns, with a stride between them. The manual says what the warp moves but not
//! which lane: here lane `i` moves line `i`, 16 bytes at a time.

use super::{element::Element, fragment, fragment::Factor, shape, transfer::Memory};
use crate::{
    LANES, Row,
    lanes::{u64s, u64s_mut},
};
use margay_isa::{Mod, Variant};

/// Size in bytes of the largest matrices: 16 by 16 of `.f32`, and 8 by 32.
const MAX_BYTES: usize = 1024;
/// Most bytes that a lane moves at once.
pub const PIECE: usize = 16;

/// The matrix that a `wmma.load` or `wmma.store` moves.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    factor: Factor,
    /// Rows, columns and depth of the product.
    size: (usize, usize, usize),
    element: Element,
    column_major: bool,
}

/// The place of an element in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The number of the element in its line.
    pub at: usize,
}

impl Tile {
    /// The matrix of a variant; `None` if it is neither a load nor a store.
    pub fn of(v: &Variant) -> Option<Tile> {
        let factor = match () {
            _ if v.has(Mod::A) => Factor::A,
            _ if v.has(Mod::B) => Factor::B,
            _ if v.has(Mod::C) || v.has(Mod::D) => Factor::C,
            _ => return None,
        };
        Some(Tile { factor, size: shape(v)?, element: Element::of(v.t(), v), column_major: v.has(Mod::Col) })
    }

    /// Number of lines, at most 32.
    pub fn lines(&self) -> usize {
        self.lengths().0
    }

    /// Size of a line in bytes.
    pub fn line_bytes(&self) -> usize {
        self.lengths().1 * self.bits() / 8
    }

    /// Size of an element in bits.
    pub fn bits(&self) -> usize {
        self.element.bits as usize
    }

    /// Elements to a register of a fragment.
    pub fn per_register(&self) -> usize {
        self.element.per_register()
    }

    /// Bytes from a line to the next one, with a stride in elements or that of a dense matrix.
    pub fn distance(&self, stride: Option<u32>) -> u64 {
        stride.map_or(self.lengths().1 as u64, u64::from) * u64::from(self.element.bits) / 8
    }

    /// The place of element `i` of a lane's fragment.
    pub fn place(&self, lane: usize, i: usize) -> Place {
        let (row, column) = fragment::wmma(self.factor, self.size, self.per_register(), lane, i);
        if self.column_major { Place { line: column, at: row } } else { Place { line: row, at: column } }
    }

    /// Number of lines, and of elements in one.
    fn lengths(&self) -> (usize, usize) {
        let (m, n, k) = self.size;
        let (rows, columns) = match self.factor {
            Factor::A => (m, k),
            Factor::B => (k, n),
            Factor::C => (m, n),
        };
        if self.column_major { (columns, rows) } else { (rows, columns) }
    }

    /// Whether the elements of a register are neighbors in a line.
    fn along_lines(&self) -> bool {
        self.per_register() == 1 || self.column_major == (self.factor == Factor::B)
    }

    /// The lanes that move a line.
    pub fn lanes(&self) -> u32 {
        u32::MAX >> (LANES - self.lines())
    }

    /// The lines that all lanes access at one address: that address, and the distance from one line to the next. `None` if lanes
    /// differ.
    fn shared_by_lanes(&self, addresses: &[u64; LANES], stride: Option<&[u32; LANES]>) -> Option<(u64, u64)> {
        let lines = self.lines();
        let same = addresses[..lines].iter().all(|a| *a == addresses[0])
            && stride.is_none_or(|s| s[..lines].iter().all(|n| *n == s[0]));
        same.then(|| (addresses[0], self.distance(stride.map(|s| s[0]))))
    }

    /// The address of each lane's line.
    pub fn starts(&self, addresses: &[u64; LANES], stride: Option<&[u32; LANES]>) -> [u64; LANES] {
        std::array::from_fn(|line| {
            let distance = self.distance(stride.map(|s| s[line]));
            addresses[line].wrapping_add(distance.wrapping_mul(line as u64))
        })
    }

    /// The pieces of lines in the order in which they are moved: the lane, the address, and the bytes of all lines that it is.
    fn pieces(
        &self,
        addresses: &[u64; LANES],
        stride: Option<&[u32; LANES]>,
    ) -> impl Iterator<Item = (usize, u64, std::ops::Range<usize>)> + use<'_> {
        let (bytes, starts) = (self.line_bytes(), self.starts(addresses, stride));
        (0..bytes).step_by(PIECE).flat_map(move |at| (0..self.lines()).map(move |line| (at, line))).map(
            move |(at, line)| {
                let end = bytes.min(at + PIECE);
                (line, starts[line].wrapping_add(at as u64), line * bytes + at..line * bytes + end)
            },
        )
    }

    /// Reads all lines.
    fn read<M: Memory>(
        &self,
        addresses: &[u64; LANES],
        stride: Option<&[u32; LANES]>,
        memory: &mut M,
    ) -> Result<[u8; MAX_BYTES], M::Error> {
        let mut lines = [0; MAX_BYTES];
        if let Some((at, distance)) = self.shared_by_lanes(addresses, stride) {
            let mut all = (0..).zip(lines.chunks_exact_mut(self.line_bytes()).take(self.lines()));
            if all.all(|(i, line)| memory.try_read(at.wrapping_add(distance.wrapping_mul(i)), line)) {
                return Ok(lines);
            }
        }
        for (lane, address, bytes) in self.pieces(addresses, stride) {
            memory.read(lane, address, &mut lines[bytes])?;
        }
        Ok(lines)
    }

    /// The bytes of all lines that hold an element of at least a byte.
    fn bytes_of(&self, lane: usize, i: usize) -> std::ops::Range<usize> {
        let (size, Place { line, at }) = (self.bits() / 8, self.place(lane, i));
        let first = line * self.line_bytes() + at * size;
        first..first + size
    }

    /// The bytes of all lines that hold the elements of a register, if these are neighbors.
    fn word(&self, lane: usize, register: usize) -> std::ops::Range<usize> {
        let Place { line, at } = self.place(lane, register * self.per_register());
        let first = line * self.line_bytes() + at * self.bits() / 8;
        first..first + 4
    }
}

/// `wmma.load`
pub fn wmma_load<M: Memory>(
    v: &Variant,
    addresses: &[u64; LANES],
    stride: Option<&[u32; LANES]>,
    memory: &mut M,
    dst: &mut [Row],
) -> Result<(), M::Error> {
    let Some(tile) = Tile::of(v) else { return Ok(()) };
    let lines = tile.read(addresses, stride, memory)?;
    if tile.bits() == 64 {
        for (i, pair) in dst.chunks_exact_mut(2).enumerate() {
            for (lane, to) in u64s_mut(pair).iter_mut().enumerate() {
                *to = little_endian(&lines[tile.bytes_of(lane, i)]);
            }
        }
        return Ok(());
    }
    let (per, size, along) = (tile.per_register(), tile.bits() / 8, tile.along_lines());
    for (r, row) in dst.iter_mut().enumerate() {
        for (lane, to) in row.0.iter_mut().enumerate() {
            *to = match along {
                true => little_endian(&lines[tile.word(lane, r)]),
                false => (0..per).fold(0, |word, i| {
                    word | little_endian(&lines[tile.bytes_of(lane, r * per + i)]) << (8 * size * i)
                }),
            } as u32;
        }
    }
    Ok(())
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, b| all << 8 | u64::from(*b))
}

/// `wmma.store`
pub fn wmma_store<M: Memory>(
    v: &Variant,
    addresses: &[u64; LANES],
    stride: Option<&[u32; LANES]>,
    src: &[&[Row]],
    memory: &mut M,
) -> Result<(), M::Error> {
    let Some(tile) = Tile::of(v) else { return Ok(()) };
    let mut lines = [0; MAX_BYTES];
    // Accumulators have no elements of less than a byte.
    let (per, size) = (tile.per_register(), tile.bits() / 8);
    for (r, register) in src.iter().enumerate() {
        for lane in 0..LANES {
            let bytes = match register {
                [_, _, ..] if size == 8 => u64s(register)[lane].to_le_bytes(),
                [row, ..] => u64::from(row.0[lane]).to_le_bytes(),
                [] => continue,
            };
            for (i, element) in bytes.chunks_exact(size).take(per).enumerate() {
                lines[tile.bytes_of(lane, r * per + i)].copy_from_slice(element);
            }
        }
    }
    if let Some((at, distance)) = tile.shared_by_lanes(addresses, stride) {
        let mut all = (0..).zip(lines.chunks_exact(tile.line_bytes()).take(tile.lines()));
        if all.all(|(i, line)| memory.try_write(at.wrapping_add(distance.wrapping_mul(i)), line)) {
            return Ok(());
        }
    }
    for (lane, address, bytes) in tile.pieces(addresses, stride) {
        memory.write(lane, address, &lines[bytes])?;
    }
    Ok(())
}
