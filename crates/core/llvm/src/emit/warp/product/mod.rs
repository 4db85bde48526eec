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

use margay_exec::matrix;
use margay_isa::{Mod, Opcode, Type, Variant, Word};
use std::fmt::Write;

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

/// Elements of a mask of `shufflevector`.
fn picks_of(range: std::ops::Range<usize>) -> String {
    range.map(|i| format!("i32 {i}")).collect::<Vec<_>>().join(", ")
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

    /// What the function that widens A or B is called; it takes a buffer, and a place with the fragment's registers.
    pub fn widening(self, side: Side) -> String {
        let factors = self.factors[side as usize].name();
        let side = if side == Side::Left { "left" } else { "right" };
        format!("margay.{side}.{factors}.{}", self.depth)
    }

    /// What the function is called that takes the buffers of A and B, and places with the registers of C and for those of D, which
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

    /// Widens `lanes` elements with the bits `%name` to `%name.d`.
    fn widen(self, side: Side, text: &mut String, name: &str, lanes: usize) {
        let (single, double, word) =
            (format!("<{lanes} x float>"), format!("<{lanes} x double>"), format!("<{lanes} x i32>"));
        let _ = match self.factors[side as usize] {
            Type::F16 => writeln!(
                text,
                "  %{name}.h = bitcast <{lanes} x i16> %{name} to <{lanes} x half>\n  \
                 %{name}.s = fpext <{lanes} x half> %{name}.h to {single}"
            ),
            Type::E5m2 => writeln!(
                text,
                "  %{name}.w = zext <{lanes} x i8> %{name} to <{lanes} x i16>\n  \
                 %{name}.u = shl <{lanes} x i16> %{name}.w, splat (i16 8)\n  \
                 %{name}.h = bitcast <{lanes} x i16> %{name}.u to <{lanes} x half>\n  \
                 %{name}.s = fpext <{lanes} x half> %{name}.h to {single}"
            ),
            // The fields of an `.e4m3` in those of an `.f32` have the value times a power of two, subnormals included.
            Type::E4m3 => writeln!(
                text,
                "  %{name}.w = zext <{lanes} x i8> %{name} to {word}\n  %{name}.m = and {word} %{name}.w, splat (i32 127)\n  \
                 %{name}.e = shl {word} %{name}.m, splat (i32 20)\n  %{name}.f = bitcast {word} %{name}.e to {single}\n  \
                 %{name}.p = fmul {single} %{name}.f, splat (float 0x4770000000000000)\n  \
                 %{name}.b = bitcast {single} %{name}.p to {word}\n  \
                 %{name}.n = icmp eq {word} %{name}.m, splat (i32 127)\n  \
                 %{name}.v = select <{lanes} x i1> %{name}.n, {word} splat (i32 2147483647), {word} %{name}.b\n  \
                 %{name}.g = and {word} %{name}.w, splat (i32 128)\n  %{name}.t = shl {word} %{name}.g, splat (i32 24)\n  \
                 %{name}.u = or {word} %{name}.v, %{name}.t\n  %{name}.s = bitcast {word} %{name}.u to {single}"
            ),
            Type::Bf16 => writeln!(
                text,
                "  %{name}.w = zext <{lanes} x i16> %{name} to {word}\n  %{name}.u = shl {word} %{name}.w, splat (i32 16)\n  \
                 %{name}.s = bitcast {word} %{name}.u to {single}"
            ),
            // The low bits of the register are ignored.
            _ => writeln!(
                text,
                "  %{name}.u = and {word} %{name}, splat (i32 -8192)\n  %{name}.s = bitcast {word} %{name}.u to {single}"
            ),
        };
        let _ = writeln!(text, "  %{name}.d = fpext {single} %{name}.s to {double}");
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
                let _ = writeln!(text, "  store <{wide} x double> %{a}.d, ptr %{a}.to, align 32");
            }
        }
        for register in (0..registers).filter(|_| side == Side::Right) {
            let all = 8 * wide;
            let b = format!("b{register}");
            place(&mut text, &format!("{b}.from"), "in", register * REGISTER);
            let _ = writeln!(text, "  %{b} = load <{all} x {bits}>, ptr %{b}.from, align 64");
            let picks: Vec<String> = (0..wide).flat_map(|k| COLUMNS.map(|c| format!("i32 {}", c * wide + k))).collect();
            let _ = writeln!(
                text,
                "  %{b}.t = shufflevector <{all} x {bits}> %{b}, <{all} x {bits}> poison, <{all} x i32> <{}>",
                picks.join(", ")
            );
            for k in 0..wide {
                let row = format!("{b}.{k}");
                let _ = writeln!(
                    text,
                    "  %{row} = shufflevector <{all} x {bits}> %{b}.t, <{all} x {bits}> poison, <8 x i32> <{}>",
                    picks_of(8 * k..8 * k + 8)
                );
                self.widen(side, &mut text, &row, 8);
                place(&mut text, &format!("{row}.to"), "wide", (register * wide + k) * 64);
                let _ = writeln!(text, "  store <8 x double> %{row}.d, ptr %{row}.to, align 64");
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
                "  %d{row}.d = load <8 x double>, ptr %d{row}.from, align 64\n  %d{row} = fptrunc <8 x double> %d{row}.d to <8 x float>"
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
        let columns = COLUMNS.map(|c| format!("i32 {c}")).join(", ");
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
                picks_of(0..8)
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
        let _ = writeln!(
            text,
            "  br label %deep\ndeep:\n  %k = phi i64 [ 0, %entry ], [ %k.next, %deeper ]\n  \
             %right.at = getelementptr [8 x double], ptr %right, i64 %k\n  br label %block\n\
             block:\n  %row = phi i64 [ 0, %deep ], [ %row.next, %block ]\n  \
             %sums.at = getelementptr [8 x double], ptr %sums, i64 %row\n  \
             %left.row = getelementptr [{depth} x double], ptr %left, i64 %row\n  %left.at = getelementptr double, ptr %left.row, i64 %k"
        );
        for r in 0..rows {
            place(text, &format!("s{r}.at"), "sums.at", 64 * r);
            let _ = writeln!(text, "  %s{r}.0 = load <8 x double>, ptr %s{r}.at, align 64");
        }
        for k in 0..steps {
            place(text, &format!("y{k}.at"), "right.at", 64 * k);
            let _ = writeln!(text, "  %y{k} = load <8 x double>, ptr %y{k}.at, align 64");
            for r in 0..rows {
                let x = format!("x{r}.{k}");
                place(text, &format!("{x}.at"), "left.at", 8 * (depth * r + k));
                let _ = writeln!(
                    text,
                    "  %{x} = load double, ptr %{x}.at, align 8\n  \
                     %{x}.one = insertelement <8 x double> poison, double %{x}, i32 0\n  \
                     %{x}.all = shufflevector <8 x double> %{x}.one, <8 x double> poison, <8 x i32> zeroinitializer\n  \
                     %s{r}.{} = call <8 x double> @llvm.fmuladd.v8f64(<8 x double> %{x}.all, <8 x double> %y{k}, <8 x double> %s{r}.{k})",
                    k + 1
                );
            }
        }
        for r in 0..rows {
            let _ = writeln!(text, "  store <8 x double> %s{r}.{steps}, ptr %s{r}.at, align 64");
        }
        let _ = writeln!(
            text,
            "  %row.next = add i64 %row, {rows}\n  %again = icmp ult i64 %row.next, {ROWS}\n  br i1 %again, label %block, label %deeper\n\
             deeper:\n  %k.next = add i64 %k, {steps}\n  %more = icmp ult i64 %k.next, {depth}\n  br i1 %more, label %deep, label %done\ndone:"
        );
    }
}

/// Stores the rows of D, `%d0` to `%d15`, to registers of single floats.
fn store_singles(text: &mut String) {
    for pair in 0..ROWS / 2 {
        // NaN results are canonical.
        let _ = writeln!(
            text,
            "  %e{pair}.s = shufflevector <8 x float> %d{}, <8 x float> %d{}, <16 x i32> <{}>\n  \
             %e{pair}.b = bitcast <16 x float> %e{pair}.s to <16 x i32>\n  \
             %e{pair}.n = fcmp uno <16 x float> %e{pair}.s, zeroinitializer\n  \
             %e{pair} = select <16 x i1> %e{pair}.n, <16 x i32> splat (i32 2147483647), <16 x i32> %e{pair}.b",
            2 * pair,
            2 * pair + 1,
            picks_of(0..16)
        );
    }
    // Whole halves of registers are stored, so that they are loaded without waiting for the stores.
    for (quad, part) in (0..ROWS / 4).flat_map(|q| [(q, 0), (q, 1)]) {
        let picks: Vec<String> = (0..4).map(|row| picks_of(8 * row + 4 * part..8 * row + 4 * part + 4)).collect();
        place(text, &format!("f{quad}.{part}.to"), "out", (quad / 2 * 2 + part) * REGISTER + quad % 2 * 64);
        let _ = writeln!(
            text,
            "  %f{quad}.{part} = shufflevector <16 x i32> %e{}, <16 x i32> %e{}, <16 x i32> <{}>\n  \
             store <16 x i32> %f{quad}.{part}, ptr %f{quad}.{part}.to, align 64",
            2 * quad,
            2 * quad + 1,
            picks.join(", ")
        );
    }
}

/// Stores row `%d` of D, the sums `%d.d` rounded to `.f32`, to registers of pairs of halves: rounded to odd first, so that the second rounding is
/// correct. The rounding to nearest differs from that to odd where it was inexact and the result is even.
fn store_halves(text: &mut String, row: usize) {
    let d = format!("d{row}");
    let natural: Vec<String> = (0..8).map(|c| format!("i32 {}", c % 2 * 4 + c / 2)).collect();
    place(text, &format!("{d}.to"), "out", row / 8 * REGISTER + row % 8 * 16);
    let _ = writeln!(
        text,
        "  %{d}.w = fpext <8 x float> %{d} to <8 x double>\n  %{d}.x = fcmp one <8 x double> %{d}.w, %{d}.d\n  \
         %{d}.b = bitcast <8 x float> %{d} to <8 x i32>\n  %{d}.l = and <8 x i32> %{d}.b, splat (i32 1)\n  \
         %{d}.e = icmp eq <8 x i32> %{d}.l, zeroinitializer\n  %{d}.m = and <8 x i1> %{d}.x, %{d}.e\n  \
         %{d}.aw = call <8 x double> @llvm.fabs.v8f64(<8 x double> %{d}.w)\n  \
         %{d}.ad = call <8 x double> @llvm.fabs.v8f64(<8 x double> %{d}.d)\n  \
         %{d}.up = fcmp ogt <8 x double> %{d}.aw, %{d}.ad\n  \
         %{d}.by = select <8 x i1> %{d}.up, <8 x i32> splat (i32 -1), <8 x i32> splat (i32 1)\n  \
         %{d}.o = add <8 x i32> %{d}.b, %{d}.by\n  \
         %{d}.r = select <8 x i1> %{d}.m, <8 x i32> %{d}.o, <8 x i32> %{d}.b\n  \
         %{d}.s = bitcast <8 x i32> %{d}.r to <8 x float>\n  %{d}.h = fptrunc <8 x float> %{d}.s to <8 x half>\n  \
         %{d}.i = bitcast <8 x half> %{d}.h to <8 x i16>\n  %{d}.n = fcmp uno <8 x float> %{d}.s, zeroinitializer\n  \
         %{d}.c = select <8 x i1> %{d}.n, <8 x i16> splat (i16 32767), <8 x i16> %{d}.i\n  \
         %{d}.z = shufflevector <8 x i16> %{d}.c, <8 x i16> poison, <8 x i32> <{}>\n  \
         store <8 x i16> %{d}.z, ptr %{d}.to, align 16",
        natural.join(", ")
    );
}
