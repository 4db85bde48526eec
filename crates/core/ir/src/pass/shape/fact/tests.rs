//! Facts about values in all lanes of a warp, against the values.

use super::*;
use crate::pass::WarpShape;
use margay_isa::{Component, Special};

/// A value of which everything is known: what it is in each lane, and what the analysis says.
#[derive(Clone, Copy)]
struct Known {
    lanes: [u64; 32],
    fact: Fact,
    bits: u32,
}

impl Known {
    fn map(self, bits: u32, fact: Option<Fact>, f: impl Fn(u64) -> u64) -> Known {
        let all = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        Known { lanes: self.lanes.map(|v| f(v) & all), fact: fact.unwrap_or(Fact::VARYING), bits }
    }

    /// Whether what is said is true. A fact that is not sure may fail only where an index wrapped around.
    fn check(&self, made: &str) {
        let Fact { shape, sure, align, high, .. } = self.fact;
        let all = if self.bits == 64 { u64::MAX } else { (1 << self.bits) - 1 };
        if let (Some((width, stride)), true) = (self.fact.rows(), sure) {
            for (l, v) in self.lanes.iter().enumerate() {
                let first = self.lanes[l / width as usize * width as usize];
                let want = first.wrapping_add((stride as u64).wrapping_mul(l as u64 % u64::from(width))) & all;
                assert_eq!(*v, want, "lane {l} of {made}: {shape:?}");
                let zeros = if first == 0 { 64 } else { first.trailing_zeros() };
                assert!(zeros >= u32::from(align), "lane {l} of {made}: {first:#x} is no multiple of 2^{align}");
            }
        }
        if shape != Shape::Varying {
            let most = self.lanes.iter().max().copied().unwrap_or(0);
            assert!(high >= 64 || most >> high == 0, "{made}: {most:#x} is not below 2^{high}");
        }
    }
}

/// `%tid.x < b` is the same along a warp only where `b` divides warps.
#[test]
fn comparisons_that_warps_agree_on() {
    let warp = WarpShape { block: Some([256, 1, 1]), ..WarpShape::default() };
    let tid = warp.fact(Special::Tid, Component::X);
    let setp = Opcode::ALL.iter().find(|op| **op == Opcode::Setp).expect("a row");
    let variant = |m: Mod| {
        let words = [margay_isa::Word::Mod(m), margay_isa::Word::Type(margay_isa::Type::U32)];
        (0..setp.row().forms.len() as u16).find_map(|form| Variant::new(*setp, form, &words)).expect("a variant")
    };
    for m in [Mod::Lt, Mod::Le, Mod::Gt, Mod::Ge, Mod::Eq] {
        for bound in 0..300u64 {
            let agree = (0..8).all(|w| {
                let holds = |t: u64| match m {
                    Mod::Lt => t < bound,
                    Mod::Le => t <= bound,
                    Mod::Gt => t > bound,
                    Mod::Ge => t >= bound,
                    _ => t == bound,
                };
                (0..32).all(|l| holds(32 * w + l) == holds(32 * w))
            });
            let found = compared(&variant(m), tid, Fact::constant(bound), Operand::Imm(bound));
            assert!(found.is_none() || agree, "%tid.x {m:?} {bound}");
            let divides = match m {
                Mod::Lt | Mod::Ge => bound % 32 == 0,
                Mod::Le | Mod::Gt => bound % 32 == 31,
                _ => false,
            };
            assert_eq!(found.is_some(), divides, "%tid.x {m:?} {bound}");
        }
    }
    let varying = Operand::Special(Special::Tid, Component::X);
    assert!(compared(&variant(Mod::Lt), Fact::constant(32), tid, varying).is_none());
}

/// `%tid` in the warp whose first thread has index `first`.
fn tid(warp: &WarpShape, [x, y, _]: [u32; 3], first: u32, c: Component) -> Known {
    let lanes = std::array::from_fn(|l| {
        let t = first + l as u32;
        u64::from(match c {
            Component::X => t % x,
            Component::Y => t / x % y,
            _ => t / (x * y),
        })
    });
    Known { lanes, fact: warp.fact(Special::Tid, c), bits: 32 }
}

/// A random operation on two values, and its result; `None` if it does not fit their widths. `even` selects among similar ones.
fn operation(random: &mut impl FnMut(u64) -> u64, even: bool, a: Known, b: Known) -> Option<(String, Known)> {
    let k = random(12) as u32;
    let constant = [1, 2, 3, 4, 8, 12, 16, 31, 32, 0x1fff_fffc, 0xffff_fff0, 0xffff_fffb][random(12) as usize];
    let both = |f: &dyn Fn(u64, u64) -> u64, fact| {
        let all = if a.bits == 64 { u64::MAX } else { (1 << a.bits) - 1 };
        let lanes = std::array::from_fn(|l| f(a.lanes[l], b.lanes[l]) & all);
        Known { lanes, fact: Option::unwrap_or(fact, Fact::VARYING), bits: a.bits }
    };
    let sign = |v: u64, bits: u64| ((v << (64 - bits)) as i64 >> (64 - bits)) as u64;
    let (name, v) = match random(13) {
        0 if a.bits == b.bits => ("add", both(&|a, b| a.wrapping_add(b), sum(a.fact, b.fact, 1, a.bits))),
        1 if a.bits == b.bits => ("sub", both(&|a, b| a.wrapping_sub(b), sum(a.fact, b.fact, -1, a.bits))),
        2 => {
            let fact = sum(a.fact, Fact::constant(constant), 1, a.bits);
            ("add", a.map(a.bits, fact, |v| v.wrapping_add(constant)))
        }
        3 => ("mul", a.map(a.bits, scaled(a.fact, constant as i64, a.bits), |v| v.wrapping_mul(constant))),
        4 => ("shl", a.map(a.bits, scaled(a.fact, 1 << k, a.bits), |v| v << k)),
        5 => ("shr", a.map(a.bits, shifted(a.fact, k, a.bits, false), |v| v >> k)),
        6 if a.bits == 32 => ("shr.s32", a.map(32, shifted(a.fact, k, 32, true), |v| (v as i32 >> k) as u32 as u64)),
        7 => ("and", a.map(a.bits, masked(a.fact, constant, a.bits), |v| v & constant)),
        8 if a.bits == 32 && even => ("cvt.u64.u32", a.map(64, widened(a.fact, false), |v| v)),
        8 if a.bits == 32 => ("cvt.s64.s32", a.map(64, widened(a.fact, true), |v| v as i32 as i64 as u64)),
        9 if a.bits == b.bits => {
            let found = mixed(a.fact, b.fact, a.bits).or_else(|| mixed(b.fact, a.fact, a.bits));
            if even { ("xor", both(&|a, b| a ^ b, found)) } else { ("or", both(&|a, b| a | b, found)) }
        }
        10 => {
            let (from, length) = (random(6), 1 + u64::from(k));
            let found = field(a.fact, from, length, a.bits, false);
            ("bfe.u", a.map(a.bits, found, |v| v >> from & ((1 << length) - 1)))
        }
        11 if a.bits == 32 => {
            let (from, length) = (random(6), 1 + u64::from(k));
            ("bfe.s", a.map(32, field(a.fact, from, length, 32, true), |v| sign(v >> from, length)))
        }
        12 if a.bits == b.bits => ("selp", both(&|a, b| if even { a } else { b }, Some(a.fact.join(b.fact)))),
        _ => return None,
    };
    Some((format!("{name} ({constant:#x} or {k})"), v))
}

/// Chains of operations on `%tid` in blocks of all shapes, against what they compute.
#[test]
fn shapes_hold() {
    let mut state = 1u64;
    let mut random = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let blocks =
        [[256, 1, 1], [16, 16, 1], [8, 8, 4], [48, 2, 1], [4, 64, 1], [32, 8, 1], [64, 4, 1], [24, 4, 3], [12, 8, 1]];
    for round in 0..60_000u64 {
        let block: [u32; 3] = blocks[random(blocks.len() as u64) as usize];
        let warp = WarpShape { block: Some(block), ..WarpShape::default() };
        let threads = block.iter().product::<u32>() / 32;
        let first = random(u64::from(threads)) as u32 * 32;
        let mut values: Vec<Known> =
            [Component::X, Component::Y, Component::Z].map(|c| tid(&warp, block, first, c)).into();
        values.iter().zip("xyz".chars()).for_each(|(v, c)| v.check(&format!("tid.{c} of {block:?}")));
        let mut made = format!("{block:?}, warp {first}");
        for _ in 0..6 {
            let [a, b] = [0, 1].map(|_| values[random(values.len() as u64) as usize]);
            let Some((name, v)) = operation(&mut random, round % 2 == 0, a, b) else { continue };
            made = format!("{made}; {name}");
            v.check(&made);
            values.push(v);
        }
    }
}
