//! `ldmatrix`, `stmatrix`, `movmatrix`: transfers between memory and fragments, and across lanes.

use crate::{LANES, Row};
use margay_isa::{Mod, Type, Variant, Word};

/// Memory as seen by these instructions: bytes at the address of a lane, in the instruction's state space.
pub trait Memory {
    /// Why an access failed.
    type Error;

    /// Reads at the address of a lane.
    fn read(&mut self, lane: usize, address: u64, to: &mut [u8]) -> Result<(), Self::Error>;

    /// Writes at the address of a lane.
    fn write(&mut self, lane: usize, address: u64, from: &[u8]) -> Result<(), Self::Error>;

    /// Reads bytes for all lanes at once; false if one of them may not read them, or if each must be reported to an observer
    /// lane's access.
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
