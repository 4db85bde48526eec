//! `ldmatrix`, `stmatrix`, `movmatrix`, `wmma.load`, `wmma.store`: transfers between memory and fragments, and across
//! lanes.

use super::{element::Element, fragment, shape};
use crate::{LANES, Row, lanes::u64s, lanes::u64s_mut};
use margay_isa::{Mod, Type, Variant, Word};

/// Memory as seen by these instructions: bytes at the address of a lane, in the instruction's state space.
pub trait Memory {
    /// Why an access failed.
    type Error;

    /// Reads at the address of a lane.
    fn read(&mut self, lane: usize, address: u64, to: &mut [u8]) -> Result<(), Self::Error>;

    /// Writes at the address of a lane.
    fn write(&mut self, lane: usize, address: u64, from: &[u8]) -> Result<(), Self::Error>;

    /// Reads bytes for all lanes at once; false if one of them may not read them, or if somebody has to be told who reads what.
    fn try_read(&mut self, address: u64, to: &mut [u8]) -> bool;

    /// Writes bytes for all lanes at once; false as for [`Memory::try_read`].
    fn try_write(&mut self, address: u64, from: &[u8]) -> bool;
}

/// The lane and the half of a register that hold an element of an 8 by 8 matrix.
fn lane_and_half(transposed: bool, row: usize, column: usize) -> (usize, usize) {
    let (row, column) = if transposed { (column, row) } else { (row, column) };
    (4 * row + column / 2, column % 2)
}

/// The row (a lane's address) and the byte in it that byte `i` of a thread comes from: 8-bit elements of `.m16n16` with
/// `.trans`, and of `.m16n8` (figures 105 and 108). Rows are columns of the matrix, so a thread receives four adjacent
/// elements of two columns of memory.
fn byte_transposed(lane: usize, i: usize) -> (usize, usize) {
    (4 * (lane % 4) + i % 2 + 2 * (i / 4), lane / 4 + 8 * (i / 2 % 2))
}

/// The 16 bytes of a row: as stored, or with 6- and 4-bit elements unpacked into bytes (section 9.7.16.9.1), the former
/// in the low bits of their byte, the latter in the middle, as the products expect them.
pub fn unpack(v: &Variant, row: [u8; 16]) -> [u8; 16] {
    let all = u128::from_le_bytes(row);
    match () {
        _ if v.has(Mod::B6x16P32) => std::array::from_fn(|i| (all >> (6 * i)) as u8 & 0x3f),
        _ if v.has(Mod::B4x16P64) => std::array::from_fn(|i| ((all >> (4 * i)) as u8 & 15) << 2),
        _ if signed_fours(v) => std::array::from_fn(|i| ((all << (124 - 4 * i)) as i128 >> 124) as u8),
        _ => row,
    }
}

/// `.s8.s4`: rows of eight bytes hold numbers of four bits, which are widened to bytes.
fn signed_fours(v: &Variant) -> bool {
    v.words.contains(&Word::Type(Type::S4))
}

/// `ldmatrix`: lane `8 j + i` supplies the address of row `i` of matrix `j` (of 16 rows: lane `16 j + i`). A matrix of
/// 16-bit elements fills one register, `.m16n16` of 8-bit elements two.
pub fn ldmatrix<M: Memory>(
    v: &Variant,
    addresses: &[u64; LANES],
    memory: &mut M,
    dst: &mut [Row],
) -> Result<(), M::Error> {
    let transposed = v.has(Mod::Trans);
    let bytes = !v.has(Mod::M8n8);
    for j in 0..dst.len().min(4) {
        for row in 0..8 {
            let source = 8 * j + row;
            let mut bytes_of_row = [0; 16];
            let size = if signed_fours(v) { 8 } else { 16 };
            memory.read(source, addresses[source], &mut bytes_of_row[..size])?;
            if bytes {
                scatter_bytes(transposed, source, &unpack(v, bytes_of_row), dst);
                continue;
            }
            for (column, pair) in bytes_of_row.chunks_exact(2).enumerate() {
                let (lane, half) = lane_and_half(transposed, row, column);
                let value = u32::from(pair[0]) | u32::from(pair[1]) << 8;
                let register = &mut dst[j].0[lane];
                *register = *register & !(0xffff << (16 * half)) | value << (16 * half);
            }
        }
    }
    Ok(())
}

/// Distributes the 8-bit elements of a row.
fn scatter_bytes(transposed: bool, source: usize, bytes: &[u8; 16], dst: &mut [Row]) {
    let mut put = |register: usize, lane: usize, i: usize, byte: u8| {
        if let Some(row) = dst.get_mut(register) {
            row.0[lane] |= u32::from(byte) << (8 * i);
        }
    };
    if !transposed {
        // `.m8n16`: four adjacent elements per thread.
        (0..16).for_each(|c| put(source / 8, 4 * (source % 8) + c / 4, c % 4, bytes[c]));
        return;
    }
    for lane in 0..LANES {
        for i in (0..8).filter(|i| byte_transposed(lane, *i).0 == source % 16) {
            put(source / 16 * 2 + i / 4, lane, i % 4, bytes[byte_transposed(lane, i).1]);
        }
    }
}

/// `stmatrix`
pub fn stmatrix<M: Memory>(
    v: &Variant,
    addresses: &[u64; LANES],
    src: &[&[Row]],
    memory: &mut M,
) -> Result<(), M::Error> {
    let transposed = v.has(Mod::Trans);
    for (j, register) in src.iter().enumerate().take(4) {
        let Some(register) = register.first() else { continue };
        for row in 0..8 {
            let target = 8 * j + row;
            let mut bytes = [0; 16];
            if v.has(Mod::M8n8) {
                for (column, pair) in bytes.chunks_exact_mut(2).enumerate() {
                    let (lane, half) = lane_and_half(transposed, row, column);
                    pair.copy_from_slice(&((register.0[lane] >> (16 * half)) as u16).to_le_bytes());
                }
            } else {
                // `.m16n8` of bytes: a row of memory is a column of the matrix.
                for lane in 0..LANES {
                    for i in (0..4).filter(|i| 2 * (lane % 4) + i % 2 == row) {
                        bytes[lane / 4 + 8 * (i / 2)] = (register.0[lane] >> (8 * i)) as u8;
                    }
                }
            }
            memory.write(target, addresses[target], &bytes)?;
        }
    }
    Ok(())
}

/// `movmatrix.trans` of an 8 by 8 matrix of 16-bit elements.
pub fn movmatrix(src: &[&[Row]], dst: &mut [Row]) {
    let (Some(from), Some(to)) = (src.first().and_then(|s| s.first()), dst.first_mut()) else { return };
    let mut out = [0u32; LANES];
    for row in 0..8 {
        for column in 0..8 {
            let (lane, half) = lane_and_half(false, row, column);
            let (target, target_half) = lane_and_half(true, row, column);
            out[target] |= (from.0[lane] >> (16 * half) & 0xffff) << (16 * target_half);
        }
    }
    to.0 = out;
}

/// The matrix moved by a `wmma.load` or `wmma.store`.
struct Tile {
    rows: usize,
    columns: usize,
    element: Element,
    /// The stride of the slow axis, in elements.
    column_major: bool,
}

impl Tile {
    fn new(v: &Variant) -> Option<Tile> {
        let (m, n, k) = shape(v)?;
        let (rows, columns) = match () {
            _ if v.has(Mod::A) => (m, k),
            _ if v.has(Mod::B) => (k, n),
            _ => (m, n),
        };
        Some(Tile { rows, columns, element: Element::of(v.t(), v), column_major: v.has(Mod::Col) })
    }

    /// The offset of an element in elements, with the given leading dimension or that of a dense matrix.
    fn offset(&self, (row, column): fragment::Coord, stride: Option<u32>) -> u64 {
        let dense = if self.column_major { self.rows } else { self.columns };
        let stride = stride.map_or(dense as u64, u64::from);
        let (slow, fast) = if self.column_major { (column, row) } else { (row, column) };
        slow as u64 * stride + fast as u64
    }

    /// The elements that a lane holds in a number of registers.
    fn held(&self, registers: usize) -> usize {
        registers * if self.element.bits == 64 { 1 } else { self.element.per_register() }
    }

    /// The lines of a matrix that all lanes access at one address: that address, the distance from one line to the next, and the size of a
    /// line, in bytes. `None` if lanes differ, or elements are less than a byte.
    fn lines(&self, addresses: &[u64; LANES], stride: Option<&[u32; LANES]>) -> Option<(u64, u64, usize)> {
        let size = self.element.bits as usize / 8;
        let (slow, fast) = self.lengths();
        let same = addresses.iter().all(|a| *a == addresses[0]) && stride.is_none_or(|s| s.iter().all(|n| *n == s[0]));
        let fits = self.element.bits.is_multiple_of(8) && slow * fast * size <= MOST_BYTES;
        let distance = stride.map_or(fast as u64, |s| s[0].into()) * size as u64;
        (same && fits).then_some((addresses[0], distance, fast * size))
    }

    /// Number of lines, and of elements in one.
    fn lengths(&self) -> (usize, usize) {
        if self.column_major { (self.columns, self.rows) } else { (self.rows, self.columns) }
    }

    fn transpose(&self, from: &[u8; MOST_BYTES], shape: (usize, usize)) -> [u8; MOST_BYTES] {
        let mut to = [0; MOST_BYTES];
        match self.element.bits {
            8 => transpose::<1>(from, &mut to, shape),
            16 => transpose::<2>(from, &mut to, shape),
            32 => transpose::<4>(from, &mut to, shape),
            _ => transpose::<8>(from, &mut to, shape),
        }
        to
    }

    /// Reads a matrix line by line; returns it row by row. `None` if it has to be read lane by lane.
    fn try_read<M: Memory>(
        &self,
        addresses: &[u64; LANES],
        stride: Option<&[u32; LANES]>,
        memory: &mut M,
    ) -> Option<[u8; MOST_BYTES]> {
        let (at, distance, len) = self.lines(addresses, stride)?;
        let (slow, fast) = self.lengths();
        let mut lines = [0; MOST_BYTES];
        let mut all = (0..).zip(lines.chunks_exact_mut(len).take(slow));
        let read = all.all(|(i, line)| memory.try_read(at.wrapping_add(distance.wrapping_mul(i)), line));
        read.then(|| if self.column_major { self.transpose(&lines, (slow, fast)) } else { lines })
    }

    /// Writes a matrix that is given row by row; false if it has to be written lane by lane.
    fn try_write<M: Memory>(
        &self,
        addresses: &[u64; LANES],
        stride: Option<&[u32; LANES]>,
        rows: &[u8; MOST_BYTES],
        memory: &mut M,
    ) -> bool {
        let Some((at, distance, len)) = self.lines(addresses, stride) else { return false };
        let (slow, fast) = self.lengths();
        let turned = if self.column_major { &self.transpose(rows, (fast, slow)) } else { rows };
        let mut all = (0..).zip(turned.chunks_exact(len).take(slow));
        all.all(|(i, line)| memory.try_write(at.wrapping_add(distance.wrapping_mul(i)), line))
    }

    /// Size of the matrix in bytes.
    fn bytes(&self) -> usize {
        self.rows * self.columns * self.element.bits as usize / 8
    }

    /// The byte address and the first bit of an element.
    fn address(&self, base: u64, offset: u64) -> (u64, u32) {
        let bits = offset.wrapping_mul(u64::from(self.element.bits));
        (base.wrapping_add(bits / 8), (bits % 8) as u32)
    }
}

/// Size in bytes of the largest matrices: 16 by 16 of `.f32`, and 8 by 32.
const MOST_BYTES: usize = 1024;

/// Transposes lines of elements of `SIZE` bytes.
fn transpose<const SIZE: usize>(lines: &[u8], rows: &mut [u8], (slow, fast): (usize, usize)) {
    let (lines, rows) = (lines.as_chunks::<SIZE>().0, rows.as_chunks_mut::<SIZE>().0);
    for (i, line) in lines.chunks_exact(fast).take(slow).enumerate() {
        line.iter().enumerate().for_each(|(j, element)| rows[j * slow + i] = *element);
    }
}

/// The numbers of the words of a matrix that the lanes hold, lane by lane ([`fragment::wmma`]), with lane and register.
fn deal(words: usize, registers: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let held = (0..LANES).flat_map(move |lane| (0..registers).map(move |r| (lane, r)));
    (0..words).cycle().zip(held).map(|(word, (lane, r))| (word, lane, r))
}

/// Gives every lane its elements of a matrix.
fn deal_out(rows: &[u8], wide: bool, dst: &mut [Row]) {
    if wide {
        let words = rows.as_chunks::<8>().0;
        for (word, lane, r) in deal(words.len(), dst.len() / 2) {
            u64s_mut(&mut dst[2 * r..2 * r + 2])[lane] = u64::from_le_bytes(words[word]);
        }
        return;
    }
    let words = rows.as_chunks::<4>().0;
    deal(words.len(), dst.len()).for_each(|(word, lane, r)| dst[r].0[lane] = u32::from_le_bytes(words[word]));
}

/// Collects the elements of a matrix from the lanes; `None` if they hold another number of elements.
fn collect(src: &[&[Row]], wide: bool, bytes: usize) -> Option<[u8; MOST_BYTES]> {
    let mut rows = [0; MOST_BYTES];
    let size = if wide { 8 } else { 4 };
    if bytes > MOST_BYTES || bytes != src.len() * LANES * size {
        return None;
    }
    for (word, lane, r) in deal(bytes / size, src.len()) {
        let to = &mut rows[word * size..][..size];
        match src[r] {
            [_, _, ..] if wide => to.copy_from_slice(&u64s(src[r])[lane].to_le_bytes()),
            [row, ..] if !wide => to.copy_from_slice(&row.0[lane].to_le_bytes()),
            _ => return None,
        }
    }
    Some(rows)
}

/// `wmma.load`: every lane reads its elements of the fragment.
pub fn wmma_load<M: Memory>(
    v: &Variant,
    addresses: &[u64; LANES],
    stride: Option<&[u32; LANES]>,
    memory: &mut M,
    dst: &mut [Row],
) -> Result<(), M::Error> {
    let Some(tile) = Tile::new(v) else { return Ok(()) };
    let wide = tile.element.bits == 64;
    if let Some(rows) = tile.try_read(addresses, stride, memory) {
        deal_out(&rows[..tile.bytes()], wide, dst);
        return Ok(());
    }
    let (registers, per) = if wide { (dst.len() / 2, 1) } else { (dst.len(), tile.element.per_register()) };
    let held = tile.held(registers);
    let bytes = (tile.element.bits as usize).div_ceil(8);
    for lane in 0..LANES {
        for r in 0..registers {
            let mut register = 0u64;
            for i in 0..per {
                let place = fragment::wmma(tile.rows, tile.columns, held, lane, r * per + i);
                let offset = tile.offset(place, stride.map(|s| s[lane]));
                let (address, bit) = tile.address(addresses[lane], offset);
                let mut raw = [0; 8];
                memory.read(lane, address, &mut raw[..bytes])?;
                let value = u64::from_le_bytes(raw) >> bit;
                let value = if wide { value } else { value & ((1 << tile.element.bits) - 1) };
                register |= value << (i as u32 * tile.element.bits % 64);
            }
            if wide {
                u64s_mut(&mut dst[2 * r..2 * r + 2])[lane] = register;
            } else {
                dst[r].0[lane] = register as u32;
            }
        }
    }
    Ok(())
}

/// `wmma.store`: every lane writes its elements of the fragment. Accumulators have no elements of less than a byte.
pub fn wmma_store<M: Memory>(
    v: &Variant,
    addresses: &[u64; LANES],
    stride: Option<&[u32; LANES]>,
    src: &[&[Row]],
    memory: &mut M,
) -> Result<(), M::Error> {
    let Some(tile) = Tile::new(v) else { return Ok(()) };
    let wide = tile.element.bits == 64;
    if collect(src, wide, tile.bytes()).is_some_and(|rows| tile.try_write(addresses, stride, &rows, memory)) {
        return Ok(());
    }
    let per = if wide { 1 } else { tile.element.per_register() };
    let held = tile.held(src.len());
    let bytes = tile.element.bits as usize / 8;
    for lane in 0..LANES {
        for (r, register) in src.iter().enumerate() {
            let value = match register {
                [_, _, ..] if wide => u64s(register)[lane],
                [row, ..] => u64::from(row.0[lane]),
                [] => continue,
            };
            for i in 0..per {
                let place = fragment::wmma(tile.rows, tile.columns, held, lane, r * per + i);
                let offset = tile.offset(place, stride.map(|s| s[lane]));
                let (address, _) = tile.address(addresses[lane], offset);
                let element = value >> (i as u32 * tile.element.bits % 64);
                memory.write(lane, address, &element.to_le_bytes()[..bytes])?;
            }
        }
    }
    Ok(())
}

/// The required alignment of a transfer's addresses in bytes, and whether it writes.
pub fn alignment(v: &Variant) -> (u64, bool) {
    let writes = v.op == margay_isa::Opcode::Stmatrix || v.has(Mod::Store);
    let bytes = match v.op {
        margay_isa::Opcode::Wmma => u64::from(v.t().bits().div_ceil(8)),
        _ if signed_fours(v) => 8,
        _ => 16,
    };
    (bytes.max(1), writes)
}
