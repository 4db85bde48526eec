//! Calls lane functions by mnemonic, with operands as plain numbers.

use margay_exec::{
    LANES, Row, lanes,
    sem::{PureFn, pure},
};
use margay_isa::{Mod, Opcode, Role, Ty, Type, Variant, Word, resolve};

/// A lane function with the widths of its operands.
pub struct Case {
    pub variant: Variant,
    pub src: Vec<u32>,
    pub dst: Vec<u32>,
    f: PureFn,
}

/// The variant of a mnemonic with so many source operands (the carry not counted), if the table has it.
pub fn find(text: &str, sources: usize) -> Option<Variant> {
    let mut parts = text.split('.');
    let name = parts.next().unwrap();
    let op = Opcode::from_name(name).unwrap_or_else(|| panic!("no opcode {name}"));
    let words: Vec<Word> =
        parts.map(|w| Word::from_name(w).unwrap_or_else(|| panic!("no word {w} in {text}"))).collect();
    let fits = |v: &Variant| {
        v.operands().filter(|o| o.role != Role::Dst).map(|o| v.count(o).unwrap_or(1) as usize).sum::<usize>() == sources
    };
    resolve(op, &words, fits).ok().map(|found| found.variant).filter(fits)
}

/// See [`find`].
pub fn variant(text: &str, sources: usize) -> Variant {
    find(text, sources).unwrap_or_else(|| panic!("the table has no {text} of {sources}"))
}

/// Widths of the sources and destinations of a variant, in registers of the types' own widths: vectors taken apart, selected
/// parts as constants, partners after `|` there, the carry last.
pub fn widths(v: &Variant) -> (Vec<u32>, Vec<u32>) {
    let (mut src, mut dst) = (Vec::new(), Vec::new());
    for o in v.operands() {
        let side = if o.role == Role::Dst { &mut dst } else { &mut src };
        side.extend(vec![bits_of(v, o.ty); v.count(o).unwrap_or(1) as usize]);
        if o.parts.is_some() || o.neg {
            src.push(32);
        }
        if let (Role::Dst, Some(pair)) = (o.role, o.pair) {
            dst.push(bits_of(v, pair));
        }
    }
    src.extend(matches!(v.op, Opcode::Addc | Opcode::Subc | Opcode::Madc).then_some(1));
    dst.extend(v.has(Mod::Cc).then_some(1));
    (src, dst)
}

/// Width of an operand's registers.
pub fn bits_of(v: &Variant, ty: Ty) -> u32 {
    let bits = |t: Type| if t == Type::Pred { 1 } else { t.bits() };
    match ty {
        Ty::Of(var) => v.ty(var).map_or(32, bits),
        Ty::Is(t) => bits(t),
        Ty::Wide(var) => 2 * v.ty(var).map_or(32, bits),
        _ => 32,
    }
}

impl Case {
    /// A row in registers of its types' own widths.
    pub fn new(text: &str, sources: usize) -> Case {
        let v = variant(text, sources);
        let (src, dst) = widths(&v);
        Case::with(v, &src, &dst)
    }

    /// A row in registers of these widths.
    pub fn with(variant: Variant, src: &[u32], dst: &[u32]) -> Case {
        let f = pure(&variant, src, dst).unwrap_or_else(|| panic!("{variant} is not there"));
        Case { variant, src: src.to_vec(), dst: dst.to_vec(), f }
    }

    /// A row by mnemonic in registers of these widths.
    pub fn sized(text: &str, src: &[u32], dst: &[u32]) -> Case {
        Case::with(variant(text, src.len()), src, dst)
    }

    /// The same where the table has it; not every pair of types takes `.sat`.
    pub fn optional(text: &str, src: &[u32], dst: &[u32]) -> Option<Case> {
        find(text, src.len()).map(|v| Case::with(v, src, dst))
    }

    /// Results for up to 32 tuples of operands.
    pub fn warp(&self, inputs: &[Vec<u128>]) -> Vec<Vec<u128>> {
        assert!(inputs.len() <= LANES);
        let mut rows: Vec<Vec<Row>> = Vec::new();
        for (k, bits) in self.src.iter().enumerate() {
            rows.push(splat(*bits, &std::array::from_fn(|i| inputs[i.min(inputs.len() - 1)][k])));
        }
        let src: Vec<&[Row]> = rows.iter().map(Vec::as_slice).collect();
        let count: usize = self.dst.iter().map(|b| lanes::rows(*b)).sum();
        // What a destination held before must not matter.
        let mut dst = vec![Row([0xdead_beef; LANES]); count];
        (self.f)(&self.variant, u32::MAX, &src, &mut dst);
        let mut out = vec![Vec::new(); inputs.len()];
        let mut at = 0;
        for bits in &self.dst {
            let n = lanes::rows(*bits);
            for (i, out) in out.iter_mut().enumerate() {
                out.push(lane(&dst[at..at + n], *bits, i));
            }
            at += n;
        }
        out
    }

    /// The first destination for one tuple of operands.
    pub fn one(&self, inputs: &[u128]) -> u128 {
        self.warp(&[inputs.to_vec()])[0][0]
    }

    /// All destinations for one tuple of operands.
    pub fn all(&self, inputs: &[u128]) -> Vec<u128> {
        self.warp(&[inputs.to_vec()]).remove(0)
    }

    /// Compares the first destination with `expect` for every tuple.
    pub fn check(&self, inputs: impl IntoIterator<Item = Vec<u128>>, expect: impl Fn(&[u128]) -> u128) {
        let inputs: Vec<Vec<u128>> = inputs.into_iter().collect();
        assert!(!inputs.is_empty());
        for chunk in inputs.chunks(LANES) {
            for (input, out) in chunk.iter().zip(self.warp(chunk)) {
                let want = expect(input);
                assert_eq!(out[0], want, "{} of {input:x?}: {:#x}, not {want:#x}", self.variant, out[0]);
            }
        }
    }
}

fn splat(bits: u32, values: &[u128; LANES]) -> Vec<Row> {
    let mut rows = vec![Row::ZERO; lanes::rows(bits)];
    match bits {
        1 => rows[0].0[0] = values.iter().enumerate().fold(0, |m, (i, v)| m | ((*v as u32 & 1) << i)),
        ..=32 => *lanes::u32s_mut(&mut rows) = values.map(|v| v as u32),
        33..=64 => *lanes::u64s_mut(&mut rows) = values.map(|v| v as u64),
        _ => lanes::set_u128s(&mut rows, values),
    }
    rows
}

fn lane(rows: &[Row], bits: u32, i: usize) -> u128 {
    match bits {
        1 => u128::from(rows[0].0[0] >> i & 1),
        ..=32 => u128::from(lanes::u32s(rows)[i]),
        33..=64 => u128::from(lanes::u64s(rows)[i]),
        _ => lanes::u128s(rows)[i],
    }
}

/// A deterministic source of numbers.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn flip(&mut self) -> bool {
        self.next() >> 63 != 0
    }
}

/// Integers at which something changes, of a width.
pub fn edges(bits: u32) -> Vec<u128> {
    let all = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
    let top = 1 << (bits - 1);
    let mut list = vec![0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 0x55, 0xff, top - 1, top, top + 1, all - 1, all];
    list.extend([0x1234_5678_9abc_def0_0fed_cba9_8765_4321, 0x00ff_ff00_ff00_00ff_8000_7fff_0001_fffe]);
    list.iter_mut().for_each(|x| *x &= all);
    list.sort();
    list.dedup();
    list
}

/// Every pair of the values.
pub fn pairs(values: &[u128]) -> Vec<Vec<u128>> {
    values.iter().flat_map(|a| values.iter().map(move |b| vec![*a, *b])).collect()
}

/// Every triple of the values.
pub fn triples(values: &[u128]) -> Vec<Vec<u128>> {
    values.iter().flat_map(|a| pairs(values).into_iter().map(move |p| vec![*a, p[0], p[1]])).collect()
}

/// The low bits of a word as a signed or unsigned number.
pub fn value(x: u128, bits: u32, signed: bool) -> i128 {
    if signed { (x << (128 - bits)) as i128 >> (128 - bits) } else { (x << (128 - bits) >> (128 - bits)) as i128 }
}

/// The low bits of a number.
pub fn cut(x: i128, bits: u32) -> u128 {
    x as u128 & ((1 << bits) - 1)
}
