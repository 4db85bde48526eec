//! Products of matrices (manual, sections 9.7.14.4.5 and 9.7.14.5) of 16 by 8 elements, or of several such tiles: `mma` and `wmma.mma`
//! with factors of `.f16`, `.bf16`, `.tf32` or eight bits and `.f16` or `.f32` sums, or `.s8` or `.u8` factors and `.s32` sums.
//!
//! A register of a fragment is a block of eight rows of A (columns of B), row by row: with `per` elements to a word,
//! `4 per` neighbors along k. The sums are those of `exec::matrix`: from C over k upwards, in double precision, where
//! the product of two factors is exact; sums of integers (`integer`) are exact. Rows of C and D are computed with their even columns before
//! the odd ones, since these are in registers of their own unless two halves share one.
//!
//! Fragments of A and B are widened by functions of their own, into buffers that later products with the same fragments find
//! filled: in a loop over tiles each fragment has a part in several products.

mod integer;

use crate::emit::text::{elements, fill};
use margay_exec::matrix;
use margay_isa::{Mod, Opcode, Type, Variant, Word};
use std::fmt::{Display, Write};

/// Rows of A, C and D.
const ROWS: usize = 16;
/// Columns of B, C and D, in the order in which rows of C and D hold them.
pub(super) const COLUMNS: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];
/// Steps along k in one block of a product's code.
const UNROLLED: usize = 16;
/// Bytes of a register of a warp.
const REGISTER: usize = 128;

/// A factor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// A
    Left,
    /// B
    Right,
}

/// Writes that `%name` is the address `bytes` bytes behind `%base`.
pub(super) fn place(text: &mut String, name: &str, base: &str, bytes: usize) {
    let _ = writeln!(text, "  %{name} = getelementptr i8, ptr %{base}, i64 {bytes}");
}

/// A product whose tiles have a function of their own.
#[derive(Clone, Copy)]
pub struct Product {
    /// Types of the elements of A and B.
    factors: [Type; 2],
    /// Types of the elements of C and D.
    sums: [Type; 2],
    /// Columns of A, rows of B.
    depth: usize,
    /// Sums of integers are clamped.
    clamps: bool,
    /// Number of tiles down, and across.
    tiles: (usize, usize),
    /// Registers of A and B, some of which may repeat others.
    held: [usize; 2],
}

impl Product {
    /// The product of a variant; `None` if there is no such function.
    pub fn of(v: &Variant) -> Option<Product> {
        let [m, n, depth] = v.words.iter().find_map(|w| match w {
            Word::Mod(m) => m.matrix_shape(),
            Word::Type(_) => None,
        })?;
        let product = v.op == Opcode::Mma || v.op == Opcode::Wmma && v.has(Mod::Mma);
        let tiles = (m / ROWS, n / COLUMNS.len());
        if !product || !m.is_multiple_of(ROWS) || !n.is_multiple_of(COLUMNS.len()) || matrix::pure(v).is_none() {
            return None;
        }
        let o = matrix::operands(v)?;
        let [_, a, b, _] = o.registers;
        let (factors, sums) = ([o.a.ty, o.b.ty], [o.c, o.d]);
        let float = |ty: &Type| matches!(ty, Type::F16 | Type::Bf16 | Type::Tf32 | Type::E4m3 | Type::E5m2);
        let clamps = v.has(Mod::Satfinite);
        let fits = match factors {
            [Type::S8 | Type::U8, Type::S8 | Type::U8] => sums == [Type::S32; 2],
            [left, right] => {
                factors.iter().all(float)
                    && left.bits() == right.bits()
                    && sums.iter().all(|ty| matches!(ty, Type::F16 | Type::F32))
                    && !clamps
            }
        };
        let plain = ![Mod::Sp, Mod::SpOrderedMetadata, Mod::BlockScale].iter().any(|m| v.has(*m));
        (fits && plain).then_some(Product { factors, sums, depth, clamps, tiles, held: [a, b] })
    }

    /// The tiles: their place down and across, in the order of their registers in C and D.
    pub fn tiles(self) -> impl Iterator<Item = (usize, usize)> {
        let (down, across) = self.tiles;
        (0..down).flat_map(move |i| (0..across).map(move |j| (i, j)))
    }

    /// Whether it is a product of integers.
    pub fn is_integer(self) -> bool {
        self.factors[0].is_int()
    }

    /// Elements of A or B to a word.
    fn per(self) -> usize {
        32 / self.factors[0].bits() as usize
    }

    /// Neighbors along k in a register.
    fn wide(self) -> usize {
        4 * self.per()
    }

    /// Registers of B; A has twice as many.
    fn registers(self) -> usize {
        self.depth / self.wide()
    }

    /// Name of the function that widens A or B; it takes a buffer, and a place with the fragment's registers.
    pub fn widening(self, side: Side) -> String {
        let factors = self.factors[side as usize].name();
        let side = if side == Side::Left { "left" } else { "right" };
        format!("margay.{side}.{factors}.{}", self.depth)
    }

    /// Name of the function that takes the buffers of A and B, and places with the registers of C and for those of D, which
    /// may be the same.
    pub fn name(self) -> String {
        let kind = if self.clamps { "clamped." } else { "" };
        let [c, d] = self.sums.map(Type::name);
        format!("margay.product.{kind}{c}.{d}.{}", self.depth)
    }

    /// Registers of a tile's C, and D.
    pub fn sum_registers(self) -> [usize; 2] {
        self.sums.map(|ty| if ty == Type::F16 { 2 } else { 4 })
    }

    /// Operands that make up the part of A, or B, that a tile multiplies.
    pub fn fragment(self, side: Side, (down, across): (usize, usize)) -> std::ops::Range<usize> {
        let (first, registers) = match side {
            Side::Left => (down * 2 * self.registers(), 2 * self.registers()),
            Side::Right => (self.held[0] + across * self.registers(), self.registers()),
        };
        first..first + registers
    }

    /// Operands that make up a tile of C.
    pub fn addend(self, tile: usize) -> std::ops::Range<usize> {
        let ([first, second], [registers, _]) = (self.held, self.sum_registers());
        first + second + tile * registers..first + second + (tile + 1) * registers
    }

    /// The type of a buffer for A or B.
    pub fn buffer(self, side: Side) -> String {
        let wide = if self.is_integer() { "i16" } else { "double" };
        format!("[{} x {wide}]", self.depth * if side == Side::Left { ROWS } else { COLUMNS.len() })
    }

    /// The integer type of an element.
    fn bits(self) -> String {
        format!("i{}", 32 / self.per())
    }

    /// Widens `lanes` elements with the bits `%name` to `%name.double`.
    fn widen(self, side: Side, text: &mut String, name: &str, lanes: usize) {
        let [single, double, word] = ["float", "double", "i32"].map(|ty| format!("<{lanes} x {ty}>"));
        let [v, n, s, d, w]: [(&str, &dyn Display); 5] =
            [("v", &name), ("lanes", &lanes), ("single", &single), ("double", &double), ("word", &word)];
        *text += &match self.factors[side as usize] {
            Type::F16 => fill(include_str!("widen_f16.ll"), &[v, n, s, d]),
            Type::E5m2 => fill(include_str!("widen_e5m2.ll"), &[v, n, s, d]),
            Type::E4m3 => fill(include_str!("widen_e4m3.ll"), &[v, n, s, d, w]),
            Type::Bf16 => fill(include_str!("widen_bf16.ll"), &[v, n, s, d, w]),
            _ => fill(include_str!("widen_tf32.ll"), &[v, s, d, w]),
        };
    }

    /// The beginning of a function that widens.
    fn widening_head(self, side: Side) -> String {
        format!("define internal void @{}(ptr %wide, ptr %in) #1 {{\nentry:\n", self.widening(side))
    }

    /// The beginning of the function that multiplies.
    fn head(self) -> String {
        format!("define internal void @{}(ptr %left, ptr %right, ptr %in, ptr %out) #1 {{\nentry:\n", self.name())
    }

    /// The function that widens A, to rows, or B, to rows of `COLUMNS`.
    pub fn widening_text(self, side: Side) -> String {
        if self.is_integer() {
            return self.integer_widening(side);
        }
        let (depth, wide, bits) = (self.depth, self.wide(), self.bits());
        let mut text = self.widening_head(side);
        let registers = self.fragment(side, (0, 0)).len();
        for register in (0..registers).filter(|_| side == Side::Left) {
            for group in 0..8 {
                let (a, row) = (format!("a{register}.{group}"), group + 8 * (register % 2));
                place(&mut text, &format!("{a}.from"), "in", register * REGISTER + group * 16);
                let _ = writeln!(text, "  %{a} = load <{wide} x {bits}>, ptr %{a}.from, align 16");
                self.widen(side, &mut text, &a, wide);
                place(&mut text, &format!("{a}.to"), "wide", (row * depth + register / 2 * wide) * 8);
                let _ = writeln!(text, "  store <{wide} x double> %{a}.double, ptr %{a}.to, align 32");
            }
        }
        for register in (0..registers).filter(|_| side == Side::Right) {
            let all = 8 * wide;
            let b = format!("b{register}");
            place(&mut text, &format!("{b}.from"), "in", register * REGISTER);
            let _ = writeln!(text, "  %{b} = load <{all} x {bits}>, ptr %{b}.from, align 64");
            let picks = elements("i32", (0..wide).flat_map(|k| COLUMNS.map(|c| c * wide + k)));
            let _ = writeln!(
                text,
                "  %{b}.t = shufflevector <{all} x {bits}> %{b}, <{all} x {bits}> poison, <{all} x i32> <{picks}>"
            );
            for k in 0..wide {
                let row = format!("{b}.{k}");
                let _ = writeln!(
                    text,
                    "  %{row} = shufflevector <{all} x {bits}> %{b}.t, <{all} x {bits}> poison, <8 x i32> <{}>",
                    elements("i32", 8 * k..8 * k + 8)
                );
                self.widen(side, &mut text, &row, 8);
                place(&mut text, &format!("{row}.to"), "wide", (register * wide + k) * 64);
                let _ = writeln!(text, "  store <8 x double> %{row}.double, ptr %{row}.to, align 64");
            }
        }
        text + "  ret void\n}"
    }

    /// The product, with `rows` rows of sums in vector registers.
    pub fn text(self, rows: usize) -> String {
        if self.is_integer() {
            return self.integer_text();
        }
        let mut text = format!("{}  %sums = alloca [{ROWS} x <8 x double>], align 64\n", self.head());
        (0..ROWS).for_each(|row| self.load_sums(&mut text, row));
        self.multiply(&mut text, rows);
        for row in 0..ROWS {
            place(&mut text, &format!("d{row}.from"), "sums", row * 64);
            let _ = writeln!(
                text,
                "  %d{row}.double = load <8 x double>, ptr %d{row}.from, align 64\n  %d{row} = fptrunc <8 x double> %d{row}.double to <8 x float>"
            );
        }
        match self.sums[1] {
            Type::F16 => (0..ROWS).for_each(|row| store_halves(&mut text, row)),
            _ => store_singles(&mut text),
        }
        text + "  ret void\n}\ndeclare <8 x double> @llvm.fmuladd.v8f64(<8 x double>, <8 x double>, <8 x double>)\n\
                declare <8 x double> @llvm.fabs.v8f64(<8 x double>)"
    }

    /// Loads a row of C to `%sums`.
    fn load_sums(self, text: &mut String, row: usize) {
        let columns = elements("i32", COLUMNS);
        if self.sums[0] == Type::F16 {
            place(text, &format!("c{row}.from"), "in", row / 8 * REGISTER + row % 8 * 16);
            let _ = writeln!(
                text,
                "  %c{row}.h = load <8 x half>, ptr %c{row}.from, align 16\n  \
                 %c{row}.c = shufflevector <8 x half> %c{row}.h, <8 x half> poison, <8 x i32> <{columns}>\n  \
                 %c{row} = fpext <8 x half> %c{row}.c to <8 x float>"
            );
        } else {
            // Even columns, then odd ones.
            for part in 0..2 {
                place(text, &format!("c{row}.{part}.from"), "in", (row / 8 * 2 + part) * REGISTER + row % 8 * 16);
                let _ = writeln!(text, "  %c{row}.{part} = load <4 x float>, ptr %c{row}.{part}.from, align 16");
            }
            let _ = writeln!(
                text,
                "  %c{row} = shufflevector <4 x float> %c{row}.0, <4 x float> %c{row}.1, <8 x i32> <{}>",
                elements("i32", 0..8)
            );
        }
        place(text, &format!("c{row}.to"), "sums", row * 64);
        let _ = writeln!(
            text,
            "  %c{row}.d = fpext <8 x float> %c{row} to <8 x double>\n  store <8 x double> %c{row}.d, ptr %c{row}.to, align 64"
        );
    }

    /// Adds the product to `%sums`: `rows` rows at a time, and at most [`UNROLLED`] steps along k without a jump, since the light tier's
    /// register allocator keeps nothing in registers where blocks end.
    fn multiply(self, text: &mut String, rows: usize) {
        let (depth, steps) = (self.depth, self.depth.min(UNROLLED));
        let [mut loads, mut unrolled, mut stores] = [const { String::new() }; 3];
        for r in 0..rows {
            place(&mut loads, &format!("sum{r}.at"), "sums.at", 64 * r);
            let _ = writeln!(loads, "  %sum{r}.0 = load <8 x double>, ptr %sum{r}.at, align 64");
            let _ = writeln!(stores, "  store <8 x double> %sum{r}.{steps}, ptr %sum{r}.at, align 64");
        }
        for k in 0..steps {
            place(&mut unrolled, &format!("y{k}.at"), "right.at", 64 * k);
            let _ = writeln!(unrolled, "  %y{k} = load <8 x double>, ptr %y{k}.at, align 64");
            for r in 0..rows {
                let x = format!("x{r}.{k}");
                place(&mut unrolled, &format!("{x}.at"), "left.at", 8 * (depth * r + k));
                unrolled += &fill(include_str!("step.ll"), &[("x", &x), ("r", &r), ("k", &k), ("next", &(k + 1))]);
            }
        }
        *text += &fill(
            include_str!("multiply.ll"),
            &[
                ("depth", &depth),
                ("loads", &loads),
                ("steps", &unrolled),
                ("stores", &stores),
                ("rows", &rows),
                ("all_rows", &ROWS),
                ("unrolled", &steps),
            ],
        );
    }
}

/// Stores the rows of D, `%d0` to `%d15`, to registers of single floats.
fn store_singles(text: &mut String) {
    let order = elements("i32", 0..16);
    for pair in 0..ROWS / 2 {
        *text += &fill(
            include_str!("store_pair.ll"),
            &[("pair", &pair), ("first", &(2 * pair)), ("second", &(2 * pair + 1)), ("order", &order)],
        );
    }
    // Whole halves of registers are stored, so that they are loaded without waiting for the stores.
    for (quad, part) in (0..ROWS / 4).flat_map(|q| [(q, 0), (q, 1)]) {
        let picks = elements("i32", (0..4).flat_map(|row| 8 * row + 4 * part..8 * row + 4 * part + 4));
        place(text, &format!("f{quad}.{part}.to"), "out", (quad / 2 * 2 + part) * REGISTER + quad % 2 * 64);
        *text += &fill(
            include_str!("store_half_register.ll"),
            &[("quad", &quad), ("part", &part), ("first", &(2 * quad)), ("second", &(2 * quad + 1)), ("picks", &picks)],
        );
    }
}

/// Stores row `%d` of D, the sums `%d.double` rounded to `.f32`, to registers of pairs of halves: rounded to odd first, so that the second
/// rounding is correct.
fn store_halves(text: &mut String, row: usize) {
    let d = format!("d{row}");
    place(text, &format!("{d}.to"), "out", row / 8 * REGISTER + row % 8 * 16);
    let natural = elements("i32", (0..8).map(|c| c % 2 * 4 + c / 2));
    *text += &fill(include_str!("store_halves.ll"), &[("d", &d), ("natural", &natural)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::assert_names;

    #[test]
    fn helpers_define_what_they_use() {
        use Type::{Bf16, E4m3, E5m2, F16, F32, S8, S32, Tf32, U8};
        for (factors, sum) in
            [([F16, F16], F16), ([Bf16, Bf16], F32), ([Tf32, Tf32], F32), ([E4m3, E5m2], F16), ([S8, U8], S32)]
        {
            let sums = [sum; 2];
            let mut product = Product { factors, sums, depth: 0, clamps: false, tiles: (1, 1), held: [4, 2] };
            product.depth = 2 * product.wide();
            assert_names(&product.widening_text(Side::Left));
            assert_names(&product.widening_text(Side::Right));
            assert_names(&product.text(4));
        }
    }
}
