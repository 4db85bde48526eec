//! Constant folding by ptxas: the constants that it writes into machine code are what the hardware would compute.
//!
//! [`probe`] generates a kernel of one instruction with constant sources whose destinations are stored. ptxas folds it
//! if it can; [`folded`] reads the stored constants from the machine code.

use margay_isa::{
    Role, Shape, Type, Variant,
    sample::{self, Rng},
};
use std::{collections::HashMap, fmt::Write};

/// Bytes of output per destination.
pub const SLOT: u64 = 16;
/// Maximum number of destinations of an instruction.
pub const SLOTS: usize = 8;

/// An instruction with constant sources.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The instruction.
    pub instruction: String,
    /// Its sources: registers and their values.
    pub sources: Vec<(String, u64)>,
    /// The body of a kernel that stores every destination through `%out`.
    pub body: String,
    /// Sizes in bytes of the destinations, by slot.
    pub sizes: Vec<usize>,
}

const SINGLES: [u32; 26] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x3f00_0000,
    0x3fc0_0000,
    0xc020_0000,
    0x4f00_0000,
    0xcf00_0000,
    0x4f80_0000,
    0x5f00_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc1_2345,
    0x7f80_0001,
    0x477f_e000,
    0x477f_f000,
    0x3300_0001,
    0x43e8_0000,
];
const INTEGERS: [u64; 18] = [
    0,
    1,
    2,
    3,
    7,
    31,
    32,
    33,
    63,
    64,
    255,
    0x7f,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x8000_0000_0000_0000,
];

/// An interesting constant for a source of a type.
fn value(ty: Type, rng: &mut Rng) -> u64 {
    let single = |rng: &mut Rng| match rng.below(3) {
        0 => rng.bits() as u32,
        1 => (rng.bits() as u32 & 0x807f_ffff) | (100 + rng.below(60) as u32) << 23,
        _ => SINGLES[rng.below(SINGLES.len())],
    };
    let half = |rng: &mut Rng| match rng.below(3) {
        0 => rng.bits() as u16,
        1 => (rng.bits() as u16 & 0x83ff) | (rng.below(31) as u16) << 10,
        _ => (f32::from_bits(single(rng)).to_bits() >> 16) as u16,
    };
    let integer = |rng: &mut Rng| match rng.below(4) {
        0 => rng.bits(),
        1 => rng.bits() >> rng.below(64),
        2 => (rng.below(70) as u64).wrapping_neg(),
        _ => INTEGERS[rng.below(INTEGERS.len())],
    };
    match ty {
        Type::F32 => single(rng).into(),
        Type::F64 => match rng.below(3) {
            0 => rng.bits(),
            1 => f64::from(f32::from_bits(single(rng))).to_bits(),
            _ => (rng.bits() & 0x800f_ffff_ffff_ffff) | (1023 - 70 + rng.below(140) as u64) << 52,
        },
        Type::F16 | Type::Bf16 => half(rng).into(),
        Type::F16x2 | Type::Bf16x2 => u64::from(half(rng)) | u64::from(half(rng)) << 16,
        Type::F32x2 => u64::from(single(rng)) | u64::from(single(rng)) << 32,
        _ => integer(rng),
    }
}

/// Numbers the source registers and draws their constants.
fn fill(shape: &mut Shape, ty: Type, next: &mut u8, found: &mut Vec<(String, u64)>, rng: &mut Rng) {
    match shape {
        Shape::Reg(t, number) => {
            *number = *next % 8;
            *next += 1;
            let mask = if t.bits() >= 64 { u64::MAX } else { (1 << t.bits()) - 1 };
            found.push((format!("%{}_{number}", t.name()), value(ty, rng) & mask));
        }
        Shape::Not(inner) => fill(inner, ty, next, found, rng),
        Shape::Vector(all) => all.iter_mut().for_each(|s| fill(s, ty, next, found, rng)),
        _ => {}
    }
}

fn registers(shape: &Shape, found: &mut Vec<(Type, String)>) {
    match shape {
        Shape::Reg(t, number) => found.push((*t, format!("%{}_{number}", t.name()))),
        Shape::Pair(a, b) => [a, b].into_iter().for_each(|s| registers(s, found)),
        Shape::Vector(all) => all.iter().for_each(|s| registers(s, found)),
        _ => {}
    }
}

/// A probe for an instruction of a variant; `None` if some operand is neither a register nor a constant.
pub fn probe(variant: &Variant, rng: &mut Rng) -> Option<Probe> {
    let mut shapes = sample::operands(variant, rng)?;
    let (mut sources, mut dests) = (Vec::new(), Vec::new());
    let mut next = 2;
    for (opnd, shape) in variant.operands().zip(&mut shapes) {
        match opnd.role {
            Role::Dst => registers(shape, &mut dests),
            Role::Src => {
                let ty = variant.resolve_ty(opnd.ty).unwrap_or(Type::B64);
                fill(shape, ty, &mut next, &mut sources, rng);
            }
            Role::Imm => {}
            _ => return None,
        }
    }
    if next > 8 || dests.is_empty() || dests.len() > SLOTS {
        return None;
    }
    let instruction = sample::text(&variant.to_string(), &shapes);
    let mut body = String::new();
    for (name, value) in &sources {
        let ty = name.trim_start_matches('%').split('_').next().unwrap_or_default();
        let _ = match ty {
            "pred" => writeln!(body, "    setp.ne.u32 {name}, {}, 0;", value & 1),
            "b8" | "s8" | "u8" => writeln!(body, "    mov.b16 %h, {value:#x};\n    mov.b16 {{{name}, _}}, %h;"),
            "b128" => return None,
            _ if ty.ends_with("16") => writeln!(body, "    mov.b16 {name}, {value:#x};"),
            _ if ty.ends_with("64") => writeln!(body, "    mov.b64 {name}, {value:#x};"),
            _ => writeln!(body, "    mov.b32 {name}, {value:#x};"),
        };
    }
    let _ = writeln!(body, "    {instruction};");
    let mut sizes = Vec::new();
    for (slot, (ty, name)) in dests.iter().enumerate() {
        let at = slot as u64 * SLOT;
        let _ = match ty.bits() {
            1 => writeln!(body, "    selp.u32 %w, 1, 0, {name};\n    st.global.u32 [%out+{at}], %w;"),
            8 => writeln!(body, "    mov.b16 %h, {{{name}, 0}};\n    st.global.b16 [%out+{at}], %h;"),
            bits @ (16 | 32 | 64) => writeln!(body, "    st.global.b{bits} [%out+{at}], {name};"),
            _ => return None,
        };
        sizes.push(match ty.bits() {
            1 => 4,
            8 => 2,
            bits => bits as usize / 8,
        });
    }
    Some(Probe { instruction, sources, body, sizes })
}

/// A module with kernels `k0`, `k1`, ..., one per probe.
pub fn module(head: &str, probes: &[Probe]) -> String {
    let mut out = head.to_owned();
    for (i, p) in probes.iter().enumerate() {
        let _ =
            writeln!(out, ".visible .entry k{i}(.param .u64 out)\n{{\n    .reg .b64 %out; .reg .b32 %w; .reg .b16 %h;");
        for t in Type::ALL.iter().filter(|t| t.is_register()) {
            if p.body.contains(&format!("%{}_", t.name())) {
                let _ = writeln!(out, "    .reg .{0} %{0}_<8>;", t.name());
            }
        }
        let _ = writeln!(out, "    ld.param.u64 %out, [out];\n{}    ret;\n}}", p.body);
    }
    out
}

/// The constants that each kernel in a listing of `cuobjdump -sass` stores, by offset, in 32-bit words. Values that are
/// not known to be constant are missing.
pub fn folded(listing: &str) -> HashMap<String, HashMap<u64, u32>> {
    let mut found: HashMap<String, HashMap<u64, u32>> = HashMap::new();
    let (mut name, mut known): (String, HashMap<String, u32>) = Default::default();
    for line in listing.lines() {
        if let Some(function) = line.trim().strip_prefix("Function : ") {
            (name, known) = (function.to_owned(), HashMap::new());
            found.entry(name.clone()).or_default();
        } else if let Some((code, word)) = instruction(line)
            && let Some(stores) = found.get_mut(&name)
        {
            step(code, (word >> 32) as u32, &mut known, stores);
        }
    }
    found
}

/// The instruction on a line, and the first half of its encoding.
fn instruction(line: &str) -> Option<(&str, u64)> {
    let rest = line.trim_start().strip_prefix("/*")?;
    let (_, rest) = rest.split_once("*/")?;
    let (code, rest) = rest.split_once(';')?;
    let hex = rest.trim().strip_prefix("/* 0x")?.strip_suffix(" */")?;
    Some((code.trim(), u64::from_str_radix(hex, 16).ok()?))
}

/// The next register, which is the upper half of a pair.
fn upper(register: &str) -> String {
    match register.strip_prefix('R').and_then(|n| n.parse::<u32>().ok()) {
        Some(n) => format!("R{}", n + 1),
        None => register.to_owned(),
    }
}

fn step(code: &str, immediate: u32, known: &mut HashMap<String, u32>, stores: &mut HashMap<u64, u32>) {
    let Some((op, rest)) = code.split_once(' ') else { return };
    let operands: Vec<&str> = rest.split(',').map(str::trim).collect();
    if op.starts_with("ST") {
        let (Some(place), Some(data)) = (operands.first(), operands.last()) else { return };
        let at = place
            .split_once('+')
            .and_then(|(_, o)| u64::from_str_radix(o.trim_start_matches("0x").trim_end_matches(']'), 16).ok());
        let words = if op.contains(".64") { 2 } else { 1 };
        let mut register = (*data).to_owned();
        for i in 0..words {
            let value = if register == "RZ" { Some(0) } else { known.get(&register).copied() };
            if let Some(value) = value {
                stores.insert(at.unwrap_or(0) + 4 * i, value);
            }
            register = upper(&register);
        }
        return;
    }
    let Some(target) = operands.first() else { return };
    let last = operands.last().copied().unwrap_or_default();
    let number = last.starts_with("0x") || last.starts_with("-0x");
    let constant = match op {
        "MOV" | "UMOV" | "IMAD.MOV.U32" | "IMAD.U32" if number => Some(immediate),
        _ if op.starts_with("HFMA2") && operands.get(1..3) == Some(&["-RZ", "RZ"]) => Some(immediate),
        "MOV" | "UMOV" | "IMAD.MOV.U32" | "IMAD.U32" if last == "RZ" || last == "URZ" => Some(0),
        "MOV" | "UMOV" | "IMAD.MOV.U32" | "IMAD.U32" => known.get(last).copied(),
        "CS2R" | "CS2R.32" if last == "SRZ" => Some(0),
        _ => None,
    };
    match constant {
        Some(value) => {
            known.insert((*target).to_owned(), value);
            if op == "CS2R" {
                known.insert(upper(target), value);
            }
        }
        // Invalidates whatever it may write: a register or a pair, after or before a predicate.
        None => operands.iter().take(2).for_each(|r| {
            known.remove(*r);
            known.remove(&upper(r));
        }),
    }
}
