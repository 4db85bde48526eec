//! Products of matrices (manual, section 9.7.14.5) whose elements are at most 32 bits wide: `mma` with `.f16`, `.bf16`
//! or `.tf32` factors and `.f32` sums, or `.s8` or `.u8` factors and `.s32` sums, of 16 by 8 elements.
//!
//! A register of a fragment is a block of eight rows of A (columns of B), row by row: with `per` elements to a word,
//! `4 per` neighbors along k. The sums are those of `exec::matrix`: from C over k upwards, in double precision, where
//! the product of two factors is exact. Sums of integers are exact; factors are widened to 16 bits, and pairs of neighbors along k
//! multiplied and added at once. Rows of C and D hold their even columns before the odd ones, since these are
//! in registers of their own.
//!
//! Fragments of A and B are widened by functions of their own, into buffers that later products with the same fragments find
//! filled: in a loop over tiles each fragment has a part in several products.

use margay_exec::matrix;
use margay_isa::{Mod, Opcode, Type, Var, Variant};
use std::fmt::Write;

/// Rows of A, C and D.
const ROWS: usize = 16;
/// Columns of B, C and D, in the order in which rows of C and D hold them.
const COLUMNS: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];
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
fn place(text: &mut String, name: &str, base: &str, bytes: usize) {
    let _ = writeln!(text, "  %{name} = getelementptr i8, ptr %{base}, i64 {bytes}");
}

/// Elements of a mask of `shufflevector`.
fn picks_of(range: std::ops::Range<usize>) -> String {
    range.map(|i| format!("i32 {i}")).collect::<Vec<_>>().join(", ")
}

/// A product that has a function of its own.
#[derive(Clone, Copy)]
pub struct Product {
    /// Types of the elements of A and B.
    factors: [Type; 2],
    /// Columns of A, rows of B.
    depth: usize,
    /// Sums of integers are clamped.
    clamps: bool,
}

impl Product {
    /// The product of a variant; `None` if it has no such function.
    pub fn of(v: &Variant) -> Option<Product> {
        let [m, n, depth] = v.words.iter().find_map(|w| match w {
            margay_isa::Word::Mod(m) => m.matrix_shape(),
            margay_isa::Word::Type(_) => None,
        })?;
        let factors = [v.ty(Var::U)?, v.ty(Var::V)?];
        let float = matches!(factors, [Type::F16, Type::F16] | [Type::Bf16, Type::Bf16] | [Type::Tf32, Type::Tf32]);
        let integer = factors.iter().all(|f| matches!(f, Type::S8 | Type::U8));
        let sums = if integer { Type::S32 } else { Type::F32 };
        let single = v.t() == sums && v.ty(Var::W) == Some(sums);
        let clamps = v.has(Mod::Satfinite);
        let plain = ![Mod::Sp, Mod::SpOrderedMetadata, Mod::BlockScale].iter().any(|m| v.has(*m));
        (v.op == Opcode::Mma
            && (m, n) == (ROWS, COLUMNS.len())
            && (float && !clamps || integer)
            && single
            && plain
            && matrix::pure(v).is_some())
        .then_some(Product { factors, depth, clamps })
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

    /// What the function that widens A or B is called; it takes the fragment's registers, one after the other, and a buffer.
    pub fn widening(self, side: Side) -> String {
        let factors = match self.factors[side as usize] {
            Type::F16 => "f16",
            Type::Bf16 => "bf16",
            Type::S8 => "s8",
            Type::U8 => "u8",
            _ => "tf32",
        };
        let side = if side == Side::Left { "left" } else { "right" };
        format!("margay.{side}.{factors}.{}", self.depth)
    }

    /// What the function is called that takes the buffers of A and B, the registers of C, and a place for those of D.
    pub fn name(self) -> String {
        let kind = if self.clamps { "clamped." } else { "" };
        let sums = if self.is_integer() { "s32" } else { "f32" };
        format!("margay.product.{kind}{sums}.{}", self.depth)
    }

    /// Operands that make up A, or B.
    pub fn fragment(self, side: Side) -> std::ops::Range<usize> {
        match side {
            Side::Left => 0..2 * self.registers(),
            Side::Right => 2 * self.registers()..3 * self.registers(),
        }
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
    fn widen(self, text: &mut String, name: &str, lanes: usize) {
        let (single, double, word) =
            (format!("<{lanes} x float>"), format!("<{lanes} x double>"), format!("<{lanes} x i32>"));
        let _ = match self.factors[0] {
            Type::F16 => writeln!(
                text,
                "  %{name}.h = bitcast <{lanes} x i16> %{name} to <{lanes} x half>\n  \
                 %{name}.s = fpext <{lanes} x half> %{name}.h to {single}"
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

    /// The function that widens A, to rows, or B, to rows of `COLUMNS`.
    pub fn widening_text(self, side: Side) -> String {
        if self.is_integer() {
            return self.integer_widening(side);
        }
        let (depth, wide, bits) = (self.depth, self.wide(), self.bits());
        let mut text = format!("define internal void @{}(ptr %in, ptr %wide) #1 {{\nentry:\n", self.widening(side));
        let registers = self.fragment(side).len();
        for register in (0..registers).filter(|_| side == Side::Left) {
            for group in 0..8 {
                let (a, row) = (format!("a{register}.{group}"), group + 8 * (register % 2));
                place(&mut text, &format!("{a}.from"), "in", register * REGISTER + group * 16);
                let _ = writeln!(text, "  %{a} = load <{wide} x {bits}>, ptr %{a}.from, align 16");
                self.widen(&mut text, &a, wide);
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
                self.widen(&mut text, &row, 8);
                place(&mut text, &format!("{row}.to"), "wide", (register * wide + k) * 64);
                let _ = writeln!(text, "  store <8 x double> %{row}.d, ptr %{row}.to, align 64");
            }
        }
        text + "  ret void\n}"
    }

    /// The product. With `rows` rows of sums in vector registers, the inner loop loads a row of B and an element of A for
    /// each of them.
    pub fn text(self, rows: usize) -> String {
        if self.is_integer() {
            return self.integer_text();
        }
        let mut text = format!(
            "define internal void @{}(ptr %left, ptr %right, ptr %in, ptr %out) #1 {{\nentry:\n  \
             %sums = alloca [{ROWS} x <8 x double>], align 64\n",
            self.name()
        );
        for row in 0..ROWS {
            // Even columns, then odd ones.
            for part in 0..2 {
                place(&mut text, &format!("c{row}.{part}.from"), "in", (row / 8 * 2 + part) * REGISTER + row % 8 * 16);
                let _ = writeln!(text, "  %c{row}.{part} = load <4 x float>, ptr %c{row}.{part}.from, align 16");
            }
            place(&mut text, &format!("c{row}.to"), "sums", row * 64);
            let _ = writeln!(
                text,
                "  %c{row} = shufflevector <4 x float> %c{row}.0, <4 x float> %c{row}.1, <8 x i32> <{}>\n  \
                 %c{row}.d = fpext <8 x float> %c{row} to <8 x double>\n  store <8 x double> %c{row}.d, ptr %c{row}.to, align 64",
                picks_of(0..8)
            );
        }
        self.multiply(&mut text, rows);
        for row in 0..ROWS {
            place(&mut text, &format!("d{row}.from"), "sums", row * 64);
            let _ = writeln!(
                text,
                "  %d{row}.d = load <8 x double>, ptr %d{row}.from, align 64\n  %d{row} = fptrunc <8 x double> %d{row}.d to <8 x float>"
            );
        }
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
            place(&mut text, &format!("f{quad}.{part}.to"), "out", (quad / 2 * 2 + part) * REGISTER + quad % 2 * 64);
            let _ = writeln!(
                text,
                "  %f{quad}.{part} = shufflevector <16 x i32> %e{}, <16 x i32> %e{}, <16 x i32> <{}>\n  \
                 store <16 x i32> %f{quad}.{part}, ptr %f{quad}.{part}.to, align 64",
                2 * quad,
                2 * quad + 1,
                picks.join(", ")
            );
        }
        text + "  ret void\n}\ndeclare <8 x double> @llvm.fmuladd.v8f64(<8 x double>, <8 x double>, <8 x double>)"
    }

    /// Adds the product to `%sums`, `rows` rows at a time.
    fn multiply(self, text: &mut String, rows: usize) {
        let (depth, bytes) = (self.depth, 8 * self.depth);
        let each = |text: &mut String, f: &dyn Fn(usize) -> String| (0..rows).for_each(|r| text.push_str(&f(r)));
        let _ = writeln!(
            text,
            "  br label %block\nblock:\n  %row = phi i64 [ 0, %entry ], [ %row.next, %stored ]\n  \
             %sums.at = getelementptr [8 x double], ptr %sums, i64 %row\n  %left.at = getelementptr [{depth} x double], ptr %left, i64 %row"
        );
        each(text, &|r| {
            format!(
                "  %s{r}.at = getelementptr i8, ptr %sums.at, i64 {}\n  %s{r}.first = load <8 x double>, ptr %s{r}.at, align 64\n",
                64 * r
            )
        });
        text.push_str("  br label %deep\ndeep:\n  %k = phi i64 [ 0, %block ], [ %k.next, %deep ]\n");
        each(text, &|r| format!("  %s{r} = phi <8 x double> [ %s{r}.first, %block ], [ %s{r}.next, %deep ]\n"));
        text.push_str(
            "  %y.at = getelementptr [8 x double], ptr %right, i64 %k\n  %y = load <8 x double>, ptr %y.at, align 64\n  \
             %x.at = getelementptr double, ptr %left.at, i64 %k\n",
        );
        each(text, &|r| {
            format!(
                "  %x{r}.at = getelementptr i8, ptr %x.at, i64 {}\n  %x{r} = load double, ptr %x{r}.at, align 8\n  \
                 %x{r}.one = insertelement <8 x double> poison, double %x{r}, i32 0\n  \
                 %x{r}.all = shufflevector <8 x double> %x{r}.one, <8 x double> poison, <8 x i32> zeroinitializer\n  \
                 %s{r}.next = call <8 x double> @llvm.fmuladd.v8f64(<8 x double> %x{r}.all, <8 x double> %y, <8 x double> %s{r})\n",
                bytes * r
            )
        });
        let _ = writeln!(
            text,
            "  %k.next = add i64 %k, 1\n  %more = icmp ult i64 %k.next, {depth}\n  br i1 %more, label %deep, label %stored\nstored:"
        );
        each(text, &|r| format!("  store <8 x double> %s{r}.next, ptr %s{r}.at, align 64\n"));
        let _ = writeln!(
            text,
            "  %row.next = add i64 %row, {rows}\n  %again = icmp ult i64 %row.next, {ROWS}\n  br i1 %again, label %block, label %done\ndone:"
        );
    }

    /// The function that widens A, to rows, or B, to rows of pairs of neighbors along k, in the order of `COLUMNS`.
    fn integer_widening(self, side: Side) -> String {
        let (depth, wide) = (self.depth, self.wide());
        let extend = if self.factors[side as usize].is_signed() { "sext" } else { "zext" };
        let mut text = format!("define internal void @{}(ptr %in, ptr %wide) #1 {{\nentry:\n", self.widening(side));
        for register in 0..self.fragment(side).len() {
            if side == Side::Left {
                for group in 0..8 {
                    let (a, row) = (format!("a{register}.{group}"), group + 8 * (register % 2));
                    place(&mut text, &format!("{a}.from"), "in", register * REGISTER + group * wide);
                    place(&mut text, &format!("{a}.to"), "wide", (row * depth + register / 2 * wide) * 2);
                    let _ = writeln!(
                        text,
                        "  %{a} = load <{wide} x i8>, ptr %{a}.from, align 16\n  \
                         %{a}.w = {extend} <{wide} x i8> %{a} to <{wide} x i16>\n  store <{wide} x i16> %{a}.w, ptr %{a}.to, align 32"
                    );
                }
                continue;
            }
            let b = format!("b{register}");
            place(&mut text, &format!("{b}.from"), "in", register * REGISTER);
            let _ = writeln!(text, "  %{b} = load <{REGISTER} x i8>, ptr %{b}.from, align 64");
            for pair in 0..wide / 2 {
                let row = format!("{b}.{pair}");
                let picks = COLUMNS.map(|c| picks_of(c * wide + 2 * pair..c * wide + 2 * pair + 2)).join(", ");
                place(&mut text, &format!("{row}.to"), "wide", (register * wide / 2 + pair) * 32);
                let _ = writeln!(
                    text,
                    "  %{row} = shufflevector <{REGISTER} x i8> %{b}, <{REGISTER} x i8> poison, <16 x i32> <{picks}>\n  \
                     %{row}.w = {extend} <16 x i8> %{row} to <16 x i16>\n  store <16 x i16> %{row}.w, ptr %{row}.to, align 32"
                );
            }
        }
        text + "  ret void\n}"
    }

    /// The product of integers, row by row.
    fn integer_text(self) -> String {
        let (pairs, name) = (self.depth / 2, self.name());
        let all = picks_of(0..8);
        let mut text = format!(
            "define internal void @{name}(ptr %left, ptr %right, ptr %in, ptr %out) #1 {{\nentry:\n  br label %next\nnext:\n  \
             %row = phi i64 [ 0, %entry ], [ %row.next, %next ]\n  %half = lshr i64 %row, 3\n  %at.half = mul i64 %half, {}\n  \
             %within = and i64 %row, 7\n  %at.row = mul i64 %within, 16\n  %at = add i64 %at.half, %at.row\n  \
             %c0.from = getelementptr i8, ptr %in, i64 %at\n  %c1.from = getelementptr i8, ptr %c0.from, i64 {REGISTER}\n  \
             %c0 = load <4 x i32>, ptr %c0.from, align 16\n  %c1 = load <4 x i32>, ptr %c1.from, align 16\n  \
             %c = shufflevector <4 x i32> %c0, <4 x i32> %c1, <8 x i32> <{all}>\n  \
             %a = getelementptr [{pairs} x i32], ptr %left, i64 %row\n",
            2 * REGISTER
        );
        for pair in 0..pairs {
            let before = if pair == 0 { "zeroinitializer".into() } else { format!("%s{}", pair - 1) };
            place(&mut text, &format!("x{pair}.from"), "a", 4 * pair);
            place(&mut text, &format!("y{pair}.from"), "right", 32 * pair);
            let _ = writeln!(
                text,
                "  %x{pair} = load i32, ptr %x{pair}.from, align 4\n  %x{pair}.one = insertelement <8 x i32> poison, i32 %x{pair}, i32 0\n  \
                 %x{pair}.all = shufflevector <8 x i32> %x{pair}.one, <8 x i32> poison, <8 x i32> zeroinitializer\n  \
                 %x{pair}.w = bitcast <8 x i32> %x{pair}.all to <16 x i16>\n  %y{pair} = load <16 x i16>, ptr %y{pair}.from, align 32\n  \
                 %p{pair} = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %x{pair}.w, <16 x i16> %y{pair})\n  \
                 %s{pair} = add <8 x i32> {before}, %p{pair}"
            );
        }
        let sum = format!("%s{}", pairs - 1);
        let _ = match self.clamps {
            true => writeln!(text, "  %d = call <8 x i32> @llvm.sadd.sat.v8i32(<8 x i32> %c, <8 x i32> {sum})"),
            false => writeln!(text, "  %d = add <8 x i32> %c, {sum}"),
        };
        for part in 0..2 {
            let picks = picks_of(4 * part..4 * part + 4);
            let _ = writeln!(
                text,
                "  %d{part}.to = getelementptr i8, ptr %out, i64 %at\n  %d{part}.at = getelementptr i8, ptr %d{part}.to, i64 {}\n  \
                 %d{part} = shufflevector <8 x i32> %d, <8 x i32> poison, <4 x i32> <{picks}>\n  store <4 x i32> %d{part}, ptr %d{part}.at, align 16",
                part * REGISTER
            );
        }
        text + &format!(
            "  %row.next = add i64 %row, 1\n  %more = icmp ult i64 %row.next, {ROWS}\n  br i1 %more, label %next, label %done\ndone:\n  \
             ret void\n}}\ndeclare <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16>, <16 x i16>)\n\
             declare <8 x i32> @llvm.sadd.sat.v8i32(<8 x i32>, <8 x i32>)"
        )
    }
}
