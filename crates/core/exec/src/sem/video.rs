//! Video instructions, scalar and SIMD (manual, section 9.7.18), after the manual's pseudocode.
//!
//! Each operand of which a part may be selected is followed by a constant that selects it ([`margay_isa::Part::code`];
//! bit 31 for `-`); that of the destination precedes all sources.

use super::{
    PureFn,
    mode::{ty, types},
};
use crate::{LANES, Row};
use margay_isa::{Mod, Opcode, Type, Variant};

/// The operation on two elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Add,
    Sub,
    Average,
    AbsDiff,
    Min,
    Max,
    Shl,
    Shr,
    Set,
}

fn operation(op: Opcode) -> Option<Op> {
    Some(match op {
        Opcode::Vadd | Opcode::Vadd2 | Opcode::Vadd4 => Op::Add,
        Opcode::Vsub | Opcode::Vsub2 | Opcode::Vsub4 => Op::Sub,
        Opcode::Vavrg2 | Opcode::Vavrg4 => Op::Average,
        Opcode::Vabsdiff | Opcode::Vabsdiff2 | Opcode::Vabsdiff4 => Op::AbsDiff,
        Opcode::Vmin | Opcode::Vmin2 | Opcode::Vmin4 => Op::Min,
        Opcode::Vmax | Opcode::Vmax2 | Opcode::Vmax4 => Op::Max,
        Opcode::Vshl => Op::Shl,
        Opcode::Vshr => Op::Shr,
        Opcode::Vset | Opcode::Vset2 | Opcode::Vset4 => Op::Set,
        _ => return None,
    })
}

/// The operation and types of a variant.
#[derive(Clone, Copy)]
struct Mode<'a> {
    v: &'a Variant,
    op: Op,
    /// Signedness of destination and sources.
    d: bool,
    a: bool,
    b: bool,
    sat: bool,
}

impl<'a> Mode<'a> {
    fn of(v: &'a Variant) -> Option<Mode<'a>> {
        let signed = |n| ty(v, n) == Some(Type::S32);
        // `vset` has no type of its own for the destination: it is unsigned.
        let first = types(v).saturating_sub(2);
        Some(Mode {
            v,
            op: operation(v.op)?,
            d: first > 0 && signed(0),
            a: signed(first),
            b: signed(first + 1),
            sat: v.has(Mod::Sat),
        })
    }

    fn apply(self, a: i64, b: i64) -> i128 {
        let (a, b) = (i128::from(a), i128::from(b));
        // Shift amounts are unsigned, at most 32 or taken modulo 32.
        let by = if self.v.has(Mod::Wrap) { b & 31 } else { b.min(32) };
        match self.op {
            Op::Add => a + b,
            Op::Sub => a - b,
            Op::Average => (a + b + i128::from(a + b >= 0)) >> 1,
            Op::AbsDiff => (a - b).abs(),
            Op::Min => a.min(b),
            Op::Max => a.max(b),
            Op::Shl => a << by,
            Op::Shr => a >> by,
            Op::Set => i128::from(self.compare(a, b)),
        }
    }

    fn compare(self, a: i128, b: i128) -> bool {
        match () {
            _ if self.v.has(Mod::Eq) => a == b,
            _ if self.v.has(Mod::Ne) => a != b,
            _ if self.v.has(Mod::Lt) => a < b,
            _ if self.v.has(Mod::Le) => a <= b,
            _ if self.v.has(Mod::Gt) => a > b,
            _ => a >= b,
        }
    }

    /// Clamps to a destination of `bits` bits, if requested.
    fn saturate(self, x: i128, bits: u32) -> i128 {
        match (self.sat, self.d) {
            (false, _) => x,
            (true, true) => x.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            (true, false) => x.clamp(0, (1 << bits) - 1),
        }
    }
}

fn extend(x: u64, bits: u32, signed: bool) -> i64 {
    let up = 64 - bits;
    if signed { (x << up) as i64 >> up } else { (x << up >> up) as i64 }
}

/// The width and position of the part that a constant selects; all 32 bits without one.
fn part(code: u32) -> (u32, u32) {
    let bits = if code >> 16 & 1 != 0 { 16 } else { 8 };
    match code & 0xf {
        0 => (32, 0),
        index => (bits, ((index - 1) * bits) & 31),
    }
}

fn select(x: u32, code: u32, signed: bool) -> i64 {
    let (bits, at) = part(code);
    extend(u64::from(x) >> at, bits, signed)
}

/// The lane function of a video instruction.
pub(super) fn video(v: &Variant, sources: usize) -> Option<PureFn> {
    match v.op {
        Opcode::Vmad => return Some(mad),
        Opcode::Vadd2
        | Opcode::Vsub2
        | Opcode::Vavrg2
        | Opcode::Vabsdiff2
        | Opcode::Vmin2
        | Opcode::Vmax2
        | Opcode::Vset2 => return Some(simd::<2>),
        Opcode::Vadd4
        | Opcode::Vsub4
        | Opcode::Vavrg4
        | Opcode::Vabsdiff4
        | Opcode::Vmin4
        | Opcode::Vmax4
        | Opcode::Vset4 => return Some(simd::<4>),
        _ => operation(v.op)?,
    };
    match sources {
        4 => Some(|v, _, s, d| scalar(v, d, |m, i| m.word(s, 0, i))),
        5 => Some(|v, _, s, d| {
            let c = |i: usize| s[4][0].0[i];
            scalar(v, d, |m, i| m.second(m.word(s, 0, i), c(i)))
        }),
        6 => Some(|v, _, s, d| {
            let (bits, at) = part(s[0][0].0[0]);
            let mask = (u32::MAX >> (32 - bits)) << at;
            scalar(v, d, |m, i| {
                let x = m.saturate(m.word(s, 1, i), bits) as u32;
                i128::from(x << at & mask | s[5][0].0[i] & !mask)
            })
        }),
        _ => None,
    }
}

fn scalar(v: &Variant, d: &mut [Row], f: impl Fn(Mode, usize) -> i128) {
    let Some(m) = Mode::of(v) else { return };
    for i in 0..LANES {
        d[0].0[i] = f(m, i) as u32;
    }
}

impl Mode<'_> {
    /// The first operation on operands `at` and `at + 2`, each followed by its selector; clamped to 32 bits unless it
    /// is merged into a part.
    fn word(self, s: &[&[Row]], at: usize, i: usize) -> i128 {
        let x = |k: usize| s[at + k][0].0[i];
        // A shift amount has the type `.u32` in the mnemonic.
        let result = self.apply(select(x(0), x(1), self.a), select(x(2), x(3), self.b));
        if at == 0 { self.saturate(result, 32) } else { result }
    }

    /// The second operation, with a third operand of the destination's signedness.
    fn second(self, x: i128, c: u32) -> i128 {
        let c = i128::from(extend(u64::from(c), 32, self.d));
        match () {
            _ if self.v.has(Mod::Add) => x + c,
            _ if self.v.has(Mod::Min) => x.min(c),
            _ => x.max(c),
        }
    }
}

/// `vmad`: `a * b + c` with negations, plus one, scaling and saturation.
fn mad(v: &Variant, _: u32, s: &[&[Row]], d: &mut [Row]) {
    let signed = |n| ty(v, n) == Some(Type::S32);
    let (a_signed, b_signed) = (signed(1), signed(2));
    let constant = |k: usize| s.get(k).map_or(0, |rows| rows[0].0[0]);
    let negated = |k: usize| constant(k) >> 31 != 0;
    let (product, third) = (negated(1) != negated(3), negated(5));
    let signed_final = a_signed || b_signed || product || third;
    let shift = match () {
        _ if v.has(Mod::Shr7) => 7,
        _ if v.has(Mod::Shr15) => 15,
        _ => 0,
    };
    for i in 0..LANES {
        let x = |k: usize| s[k][0].0[i];
        let ab = i128::from(select(x(0), x(1), a_signed)) * i128::from(select(x(2), x(3), b_signed));
        let c = x(4);
        let (ab, c, one) = match () {
            _ if v.has(Mod::Po) => (ab, c, 1),
            _ if product => (!ab, c, 1),
            _ if third => (ab, !c, 1),
            _ => (ab, c, 0),
        };
        let sum = ab + i128::from(extend(u64::from(c), 32, signed_final)) + one;
        let result = sum >> shift;
        let result = match (v.has(Mod::Sat), signed_final) {
            (false, _) => result,
            (true, true) => result.clamp(i32::MIN.into(), i32::MAX.into()),
            (true, false) => result.clamp(0, u32::MAX.into()),
        };
        d[0].0[i] = result as u32;
    }
}

/// Two halves or four bytes: merged into `c`, or added to it.
fn simd<const N: usize>(v: &Variant, _: u32, s: &[&[Row]], d: &mut [Row]) {
    let Some(m) = Mode::of(v) else { return };
    let bits = 32 / N as u32;
    // Element `i` of a selector, or its default.
    let index = |code: u32, i: usize, default: u32| match code >> (4 * i) & 0xf {
        0 => default + i as u32,
        index => (index - 1) % (2 * N as u32),
    };
    let constant = |k: usize| s[k][0].0[0];
    let (mask, a_select, b_select) = (constant(0), constant(2), constant(4));
    let written = |place: u32| mask & 0xffff == 0 || (0..N).any(|i| mask >> (4 * i) & 0xf == place + 1);
    let accumulate = v.has(Mod::Add);
    for lane in 0..LANES {
        let x = |k: usize| s[k][0].0[lane];
        let both = u64::from(x(3)) << 32 | u64::from(x(1));
        let element = |index: u32, signed: bool| extend(both >> (index * bits), bits, signed);
        let c = x(5);
        let mut out = c;
        for i in 0..N {
            let a = element(index(a_select, i, 0), m.a);
            let b = element(index(b_select, i, N as u32), m.b);
            let t = m.saturate(m.apply(a, b), bits) as u32;
            let (at, place) = (i as u32 * bits, (u32::MAX >> (32 - bits)) << (i as u32 * bits));
            if !written(i as u32) {
                continue;
            }
            out = if accumulate { out.wrapping_add(t) } else { out & !place | t << at & place };
        }
        d[0].0[lane] = out;
    }
}
