//! `tcgen05.mma`: the instruction descriptor, the layout of matrices in tensor memory, and the product (manual,
//! sections 9.7.16.4.2, 9.7.16.5 and 9.7.16.10).
//!
//! The layouts of accumulators over the lanes of tensor memory (section 9.7.16.10.5), with `m` rows in one CTA:
//!
//! | layout | rows of a CTA | lane and column of D's element |
//! |---|---|---|
//! | A, D | 128 | row, column |
//! | F, C | 64, half of the lanes | `row % 16 + 32 (row / 16)`, column |
//! | B, E | 64, two by two | `row + 64 (column / (n / 2))`, `column % (n / 2)` |
//! | G | 32, one by four | `row + 32 (column / (n / 4))`, `column % (n / 4)` |
//!
//! "Down" in `.ashift` and `tcgen05.shift` means towards row 0: `im2col::w::128` loads the pixels that follow every 32
//! rows, and `tcgen05.cp.4x256b` writes one row into the lanes of each warp. The two fit together only if the last row
//! is the one to be filled.
//!
//! Precision and order of accumulation are as for the other products, see [`super`].

use super::{
    dense::{Matrix, to_s32},
    descriptor::Descriptor,
    element::{self, Element},
    warpgroup::convert,
};
use margay_isa::{Mod, Type, Variant};

/// A product, as described by the instruction and its descriptor.
#[derive(Clone, Debug)]
pub struct Job {
    /// The number of CTAs that cooperate.
    pub ctas: usize,
    /// Rows of D, over all CTAs.
    pub m: usize,
    /// Columns of D.
    pub n: usize,
    /// The depth of B; a sparse A stores half of it.
    pub k: usize,
    sparse: bool,
    weights: bool,
    shifted: bool,
    a: Element,
    b: Element,
    d: Type,
    negate: [bool; 2],
    transposed: [bool; 2],
    saturate: bool,
    /// The scale factors along K per row of A and column of B, their type, and the first byte of those of A and B.
    scales: Option<(usize, Type, [usize; 2])>,
    /// The elements in 16 bytes of shared memory, and the bits of one.
    packed: [(u32, usize); 2],
}

/// The operands of a product.
#[derive(Clone, Copy, Debug)]
pub struct Operands {
    /// The tensor memory address of D.
    pub d: u32,
    /// The descriptor of A, or its tensor memory address.
    pub a: Result<u64, u32>,
    /// The descriptor of B.
    pub b: u64,
    /// The tensor memory address of the metadata of a sparse A.
    pub metadata: u32,
    /// The tensor memory addresses of the scale factors of A and B.
    pub scales: [u32; 2],
    /// If present, D is accumulated, scaled by 2 to the power of minus this.
    pub input: Option<u32>,
    /// The lanes of each CTA that are not written.
    pub disabled: [u128; 2],
}

/// The memories of the CTAs of the group, by index.
pub trait Memories {
    /// Why an access failed.
    type Error;
    /// Reads 16 bytes of shared memory.
    fn shared(&mut self, cta: usize, address: u64) -> Result<[u8; 16], Self::Error>;
    /// Reads a word of tensor memory.
    fn load(&mut self, cta: usize, lane: usize, column: usize) -> Result<u32, Self::Error>;
    /// Writes a word of tensor memory.
    fn store(&mut self, cta: usize, lane: usize, column: usize, value: u32) -> Result<(), Self::Error>;
}

/// Why an instruction descriptor is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// It contradicts the manual.
    Invalid(String),
    /// The engines do not support what it asks for.
    Unsupported(String),
}

/// An instruction descriptor (section 9.7.16.4.2) and the instruction that uses it.
struct Described<'a> {
    v: &'a Variant,
    bits: u32,
}

/// Decodes the instruction descriptor.
pub fn job(v: &Variant, bits: u32) -> Result<Job, Refused> {
    let described = Described { v, bits };
    let field = |at: u32, size: u32| described.field(at, size);
    let scaled = v.has(Mod::BlockScale);
    let ctas = if v.has(Mod::CtaGroup2) { 2 } else { 1 };
    let (n, m) = (field(17, 6) * 8, if scaled { field(27, 2) * 128 } else { field(24, 5) * 16 });
    let (a_type, b_type, d) = described.types()?;
    described.check((m, n), ctas)?;
    let (a, b) = (Element::of(a_type, v), Element::of(b_type, v));
    let sparse = v.has(Mod::Sp);
    let stored = 256 / a.bits as usize;
    Ok(Job {
        ctas,
        m,
        n,
        k: if sparse { 2 * stored } else { stored },
        sparse,
        weights: v.has(Mod::Ws),
        shifted: v.has(Mod::Ashift),
        a,
        b,
        d,
        negate: [field(13, 1) == 1, field(14, 1) == 1],
        transposed: [field(15, 1) == 1, field(16, 1) == 1],
        saturate: field(3, 1) == 1 && d == Type::S32,
        scales: scaled.then(|| described.scales()),
        packed: [a_type, b_type].map(|t| described.packed(t)),
    })
}

impl Described<'_> {
    fn field(&self, at: u32, size: u32) -> usize {
        (self.bits >> at & ((1 << size) - 1)) as usize
    }

    /// Elements of four bits only, which are stored without gaps.
    fn fours(&self) -> bool {
        self.v.has(Mod::KindMxf4) || self.v.has(Mod::KindMxf4nvf4)
    }

    fn invalid<T>(&self, what: &str) -> Result<T, Refused> {
        Err(Refused::Invalid(format!("the instruction descriptor {:#010x} {what}", self.bits)))
    }

    fn lacks(&self, what: &str) -> Result<(), Refused> {
        Err(Refused::Unsupported(format!("`{}` {what}", self.v)))
    }

    /// The types of A, B and D.
    fn types(&self) -> Result<(Type, Type, Type), Refused> {
        let v = self.v;
        let b = if self.fours() { self.field(10, 2) } else { self.field(10, 3) };
        let (Some(a), Some(b)) = (self.input(self.field(7, 3)), self.input(b)) else {
            return self.invalid("has a type that its kind does not support");
        };
        let d = match self.field(4, 2) {
            _ if v.has(Mod::BlockScale) => Type::F32,
            0 if v.has(Mod::KindF16) || v.has(Mod::KindF8f6f4) => Type::F16,
            1 if !v.has(Mod::KindI8) => Type::F32,
            2 if v.has(Mod::KindI8) => Type::S32,
            _ => return self.invalid("has a result type that its kind does not support"),
        };
        Ok((a, b, d))
    }

    /// The type of A or B that a number means.
    fn input(&self, number: usize) -> Option<Type> {
        let v = self.v;
        let one_of = |types: &[Type]| types.get(number).copied();
        match number {
            _ if v.has(Mod::KindF16) => one_of(&[Type::F16, Type::Bf16]),
            _ if v.has(Mod::KindTf32) => (number == 2).then_some(Type::Tf32),
            _ if v.has(Mod::KindI8) => one_of(&[Type::U8, Type::S8]),
            _ if self.fours() => (number == 1).then_some(Type::E2m1),
            0 => Some(Type::E4m3),
            1 => Some(Type::E5m2),
            3 => Some(Type::E2m3),
            4 => Some(Type::E3m2),
            5 => Some(Type::E2m1),
            _ => None,
        }
    }

    /// Checks the shape and what else goes together or does not.
    fn check(&self, (m, n): (usize, usize), ctas: usize) -> Result<(), Refused> {
        let v = self.v;
        let (sparse, rows) = (v.has(Mod::Sp), m / ctas);
        if sparse != (self.field(2, 1) == 1) {
            return Err(Refused::Invalid(
                "the instruction descriptor and the instruction disagree about sparsity".into(),
            ));
        }
        let fits = matches!(rows, 64 | 128) || v.has(Mod::Ws) && rows == 32;
        if !fits || n == 0 || n > 256 {
            return Err(Refused::Invalid(format!("a product of {m} rows and {n} columns by {ctas} CTAs")));
        }
        if v.has(Mod::Ashift) && rows != 128 {
            let what = format!("`.ashift` with {m} rows by {ctas} CTAs; each CTA must have 128");
            return Err(Refused::Invalid(what));
        }
        let selector = if v.has(Mod::BlockScale) { 0 } else { self.field(0, 2) };
        match () {
            _ if self.fours() && self.field(31, 1) == 1 => self.lacks("with a depth of 96"),
            _ if !sparse => Ok(()),
            _ if v.has(Mod::Ashift) => self.lacks("with a sparse A, whose metadata move with the rows or do not"),
            _ if rows != 128 => self.lacks("with a sparse A of 64 rows"),
            _ if selector != 0 => self.lacks(&format!("with the sparsity selector {selector}")),
            _ => Ok(()),
        }
    }

    /// See [`Job::scales`].
    fn scales(&self) -> (usize, Type, [usize; 2]) {
        let v = self.v;
        let factors = match () {
            _ if v.has(Mod::ScaleVec4X) || v.has(Mod::Block16) => 4,
            _ if self.fours() => 2,
            _ => 1,
        };
        let ty = if self.field(23, 1) == 1 { Type::Ue8m0 } else { Type::Ue4m3 };
        (factors, ty, [self.field(29, 2), self.field(4, 2)])
    }

    /// See [`Job::packed`].
    fn packed(&self, ty: Type) -> (u32, usize) {
        match ty {
            Type::E2m1 if self.fours() => (4, 32),
            Type::E2m1 => (4, 16),
            Type::E2m3 | Type::E3m2 => (6, 16),
            ty => {
                let bits = Element::of(ty, self.v).bits;
                (bits, 128 / bits as usize)
            }
        }
    }
}

/// The lane and column of a tensor memory address.
pub fn split(address: u32) -> (usize, usize) {
    ((address >> 16) as usize, (address & 0xffff) as usize)
}

impl Job {
    /// The rows of one CTA.
    fn rows(&self) -> usize {
        self.m / self.ctas
    }

    /// Whether 64 rows are spread over the lanes of all four warps, 16 each.
    fn halved(&self) -> bool {
        self.rows() == 64 && !self.weights && (self.ctas == 1 || self.sparse)
    }

    /// The lane of a row of A.
    fn lane(&self, row: usize) -> usize {
        if self.halved() { row % 16 + 32 * (row / 16) } else { row }
    }

    /// The lane and column of an element of D.
    fn place(&self, row: usize, column: usize) -> (usize, usize) {
        let parts = if self.halved() { 1 } else { 128 / self.rows().max(1) };
        let width = self.n / parts;
        (self.lane(row) + 128 / parts * (column / width), column % width)
    }

    /// The rows of A in a CTA.
    fn left<M: Memories>(&self, o: &Operands, cta: usize, memory: &mut M) -> Result<Matrix<u32>, M::Error> {
        let depth = if self.sparse { self.k / 2 } else { self.k };
        let mut left = Matrix::new(self.rows(), depth);
        match o.a {
            Ok(bits) => {
                let Some(d) = Descriptor::tcgen05(bits) else { return Ok(left) };
                let mut read = |at| memory.shared(cta, at);
                let by_k = !self.transposed[0];
                let put = |row, k, xs: &[u32]| left.set_run((row, k), !by_k, xs);
                d.read(by_k, self.packed[0], 0..self.rows(), depth, &mut read, put)?;
                self.widen(0, &mut left);
            }
            Err(address) => {
                let (lane, column) = split(address);
                let per = self.a.per_register();
                let last = self.rows() - 1;
                for row in 0..=last {
                    // Shifted down by a row; the last one stays.
                    let from = if self.shifted { last.min(row + 1) } else { row };
                    for word in 0..depth / per {
                        let value = memory.load(cta, lane + self.lane(from), column + word)?;
                        (0..per).for_each(|i| left.set((row, word * per + i), self.a.extract(value, i)));
                    }
                }
            }
        }
        if self.sparse { self.spread(o, cta, &left, memory) } else { Ok(left) }
    }

    /// Expands a sparse A by its metadata. For 16- and 32-bit elements, a word holds the nibbles of two rows eight
    /// apart, and a row is spread over two lanes; for others, a row has 64 bits in its own lane.
    fn spread<M: Memories>(
        &self,
        o: &Operands,
        cta: usize,
        stored: &Matrix<u32>,
        memory: &mut M,
    ) -> Result<Matrix<u32>, M::Error> {
        let (lane, column) = split(o.metadata);
        let mut whole = Matrix::new(self.rows(), self.k);
        let wide = self.a.bits >= 16;
        let pairs = self.a.bits == 4;
        let kept = if self.a.bits == 32 {
            1
        } else if pairs {
            4
        } else {
            2
        };
        for row in 0..self.rows() {
            for chunk in 0..stored.columns() / kept {
                let (at, word, bit) = match wide {
                    true => (row % 8 + row / 16 * 16 + 8 * (chunk / 4), 0, 16 * (row / 8 % 2) + chunk % 4 * 4),
                    false => (row, chunk / 8, chunk % 8 * 4),
                };
                let nibble = (memory.load(cta, lane + at, column + word)? >> bit & 15) as usize;
                for i in 0..kept {
                    let index = nibble >> (2 * (if pairs { i / 2 } else { i })) & 3;
                    let to = match self.a.bits {
                        32 => 2 * chunk + index / 2,
                        4 => 8 * chunk + 2 * index + i % 2,
                        _ => 4 * chunk + index,
                    };
                    whole.set((row, to), stored.at((row, chunk * kept + i)));
                }
            }
        }
        Ok(whole)
    }

    /// Packed elements of less than a byte are centered in a byte, as in tensor memory.
    fn widen(&self, which: usize, matrix: &mut Matrix<u32>) {
        if [self.a.ty, self.b.ty][which] == Type::E2m1 && self.packed[which].1 == 16 {
            matrix.map(|x| x << 2);
        }
    }

    /// Reads all of B: every CTA of the group holds a share of the columns.
    fn right<M: Memories>(&self, o: &Operands, memory: &mut M) -> Result<Matrix<u32>, M::Error> {
        let mut right = Matrix::new(self.k, self.n);
        let Some(d) = Descriptor::tcgen05(o.b) else { return Ok(right) };
        let width = self.n / self.ctas;
        let by_k = !self.transposed[1];
        for cta in 0..self.ctas {
            let mut read = |at| memory.shared(cta, at);
            let put = |column, k, xs: &[u32]| right.set_run((k, cta * width + column), by_k, xs);
            d.read(by_k, self.packed[1], 0..width, self.k, &mut read, put)?;
        }
        self.widen(1, &mut right);
        Ok(right)
    }

    /// Scale factor `j` of a row of A or a column of B: rows fill 32 lanes, then continue in the next column.
    fn scale<M: Memories>(
        &self,
        address: u32,
        which: usize,
        cta: usize,
        (index, j): (usize, usize),
        memory: &mut M,
    ) -> Result<f64, M::Error> {
        let Some((_, ty, first)) = self.scales else { return Ok(1.0) };
        let (lane, column) = split(address);
        let word = memory.load(cta, lane + index % 32, column + index / 32)?;
        Ok(element::scale(ty, (word >> ((first[which] + j) % 4 * 8)) as u8))
    }

    /// Executes the product.
    pub fn run<M: Memories>(&self, o: &Operands, memory: &mut M) -> Result<(), M::Error> {
        let right = self.right(o, memory)?;
        for cta in 0..self.ctas {
            let left = self.left(o, cta, memory)?;
            if self.d == Type::S32 {
                self.integers(o, cta, &left, &right, memory)?;
            } else {
                self.floats(o, cta, &left, &right, memory)?;
            }
        }
        Ok(())
    }

    fn integers<M: Memories>(
        &self,
        o: &Operands,
        cta: usize,
        left: &Matrix<u32>,
        right: &Matrix<u32>,
        memory: &mut M,
    ) -> Result<(), M::Error> {
        let (left, right) = (convert(left, |x| self.a.integer(x)), convert(right, |x| self.b.integer(x)));
        let mut sum: Matrix<i64> = Matrix::new(self.rows(), self.n);
        self.accumulator(o, cta, memory, &mut sum, |word| i64::from(word as i32))?;
        sum.add_product(&left, &right, |x, y| x * y);
        self.write(o, cta, memory, |row, column| to_s32(sum.at((row, column)), self.saturate))
    }

    fn floats<M: Memories>(
        &self,
        o: &Operands,
        cta: usize,
        left: &Matrix<u32>,
        right: &Matrix<u32>,
        memory: &mut M,
    ) -> Result<(), M::Error> {
        let sign = self.negate.map(|n| if n { -1.0 } else { 1.0 });
        let (mut left, mut right) = (self.a.floats(left, sign[0]), self.b.floats(right, sign[1]));
        if let Some((factors, ..)) = self.scales {
            let block = self.k / factors;
            for row in 0..self.rows() {
                for j in 0..factors {
                    let factor = self.scale(o.scales[0], 0, cta, (row, j), memory)?;
                    left.row_mut(row)[j * block..(j + 1) * block].iter_mut().for_each(|x| *x *= factor);
                }
            }
            for column in 0..self.n {
                for j in 0..factors {
                    let factor = self.scale(o.scales[1], 1, cta, (column, j), memory)?;
                    for k in j * block..(j + 1) * block {
                        right.set((k, column), right.at((k, column)) * factor);
                    }
                }
            }
        }
        let half = self.d == Type::F16;
        let scale = 2f64.powi(-(o.input.unwrap_or(0) as i32));
        let mut sum: Matrix<f64> = Matrix::new(self.rows(), self.n);
        self.accumulator(o, cta, memory, &mut sum, |word| match half {
            true => f64::from(crate::sem::fp::from_f16(word as u16)) * scale,
            false => f64::from(f32::from_bits(word)) * scale,
        })?;
        sum.add_product(&left, &right);
        self.write(o, cta, memory, |row, column| match half {
            true => element::to_f16(sum.at((row, column))).into(),
            false => element::to_f32(sum.at((row, column))),
        })
    }

    fn accumulator<M: Memories, T: Copy + Default>(
        &self,
        o: &Operands,
        cta: usize,
        memory: &mut M,
        sum: &mut Matrix<T>,
        value: impl Fn(u32) -> T,
    ) -> Result<(), M::Error> {
        let (lane, column) = split(o.d);
        for row in (0..self.rows()).filter(|_| o.input.is_some()) {
            for c in 0..self.n {
                let (l, at) = self.place(row, c);
                sum.set((row, c), value(memory.load(cta, lane + l, column + at)?));
            }
        }
        Ok(())
    }

    fn write<M: Memories>(
        &self,
        o: &Operands,
        cta: usize,
        memory: &mut M,
        value: impl Fn(usize, usize) -> u32,
    ) -> Result<(), M::Error> {
        let (lane, column) = split(o.d);
        for row in 0..self.rows() {
            for c in 0..self.n {
                let (l, at) = self.place(row, c);
                if o.disabled[cta.min(1)] >> ((lane + l) % 128) & 1 == 0 {
                    memory.store(cta, lane + l, column + at, value(row, c))?;
                }
            }
        }
        Ok(())
    }
}
