//! `mov` (manual, sections 9.7.9.3 and 9.7.9.4): copies, and packs and unpacks vectors.

use super::PureFn;
use crate::{LANES, Row, lanes};
use margay_isa::{Type, Variant};

/// `mov`. With one source and one destination it copies; else vectors are packed or unpacked, the first element lowest.
pub(super) fn mov(v: &Variant, src_bits: &[u32], dst_bits: &[u32]) -> Option<PureFn> {
    let total = match v.t() {
        Type::Pred => return Some(|_, _, s, d| d[0].0[0] = s[0][0].0[0]),
        t => t.bits(),
    };
    if v.vec() > 1 {
        // Element by element; a single source is broadcast to all elements.
        return Some(|v, _, s, d| {
            let rows = (d.len() / v.vec() as usize).max(1);
            for (i, d) in d.chunks_mut(rows).enumerate() {
                let from = s[i.min(s.len() - 1)];
                let n = d.len().min(from.len());
                d[..n].copy_from_slice(&from[..n]);
            }
        });
    }
    match (src_bits.len(), dst_bits.len(), total) {
        (1, 1, _) if lanes::rows(src_bits[0]) == lanes::rows(dst_bits[0]) => Some(|_, _, s, d| d.copy_from_slice(s[0])),
        // A constant or a special register of another width.
        (1, 1, _) => Some(|_, _, s, d| {
            let wide = gather(s, if s[0].len() == 1 { 32 } else { 32 * s[0].len() as u32 });
            scatter(&wide, d, 32 * d.len() as u32);
        }),
        (2, 1, 64) => Some(|_, _, s, d| {
            let (low, high, d) = (lanes::u32s(s[0]), lanes::u32s(s[1]), lanes::u64s_mut(d));
            for i in 0..LANES {
                d[i] = u64::from(low[i]) | u64::from(high[i]) << 32;
            }
        }),
        (1, 2, 64) => Some(|_, _, s, d| {
            let a = lanes::u64s(s[0]);
            let (low, high) = d.split_at_mut(1);
            for i in 0..LANES {
                low[0].0[i] = a[i] as u32;
                high[0].0[i] = (a[i] >> 32) as u32;
            }
        }),
        (2, 1, 32) => Some(|_, _, s, d| {
            let (low, high, d) = (lanes::u32s(s[0]), lanes::u32s(s[1]), lanes::u32s_mut(d));
            for i in 0..LANES {
                d[i] = low[i] & 0xffff | high[i] << 16;
            }
        }),
        (1, 2, 32) => Some(|_, _, s, d| {
            let a = lanes::u32s(s[0]);
            let (low, high) = d.split_at_mut(1);
            for i in 0..LANES {
                low[0].0[i] = a[i] & 0xffff;
                high[0].0[i] = a[i] >> 16;
            }
        }),
        (from, to, total) if from > 0 && to > 0 && total % from as u32 == 0 && total % to as u32 == 0 => {
            match total / to as u32 {
                8 => Some(|v, _, s, d| scatter(&gather(s, v.t().bits() / s.len() as u32), d, 8)),
                16 => Some(|v, _, s, d| scatter(&gather(s, v.t().bits() / s.len() as u32), d, 16)),
                32 => Some(|v, _, s, d| scatter(&gather(s, v.t().bits() / s.len() as u32), d, 32)),
                64 => Some(|v, _, s, d| scatter(&gather(s, v.t().bits() / s.len() as u32), d, 64)),
                128 => Some(|v, _, s, d| scatter(&gather(s, v.t().bits() / s.len() as u32), d, 128)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Concatenates sources of `bits` bits, the first lowest.
fn gather(s: &[&[Row]], bits: u32) -> [u128; LANES] {
    let cut = if bits < 128 { (1 << bits) - 1 } else { u128::MAX };
    let mut out = [0; LANES];
    for (k, rows) in s.iter().enumerate() {
        let at = (k as u32 * bits) & 127;
        match rows.len() {
            1 => out.iter_mut().zip(lanes::u32s(rows)).for_each(|(o, x)| *o |= (u128::from(*x) & cut) << at),
            2 => out.iter_mut().zip(lanes::u64s(rows)).for_each(|(o, x)| *o |= (u128::from(*x) & cut) << at),
            _ => out.iter_mut().zip(lanes::u128s(rows)).for_each(|(o, x)| *o |= (x & cut) << at),
        }
    }
    out
}

/// Splits values into destinations of `bits` bits each.
fn scatter(wide: &[u128; LANES], d: &mut [Row], bits: u32) {
    let cut = if bits < 128 { (1 << bits) - 1 } else { u128::MAX };
    for (k, rows) in d.chunks_exact_mut(lanes::rows(bits)).enumerate() {
        let at = (k as u32 * bits) & 127;
        let part = wide.map(|x| x >> at & cut);
        match rows.len() {
            1 => lanes::u32s_mut(rows).iter_mut().zip(part).for_each(|(d, x)| *d = x as u32),
            2 => lanes::u64s_mut(rows).iter_mut().zip(part).for_each(|(d, x)| *d = x as u64),
            _ => lanes::set_u128s(rows, &part),
        }
    }
}
