//! Products of bytes: factors are widened to 16 bits, and pairs of neighbors along k multiplied and added at once.

use super::{COLUMNS, Product, REGISTER, ROWS, Side, picks_of, place};
use std::fmt::Write;

impl Product {
    /// The function that widens A, to rows, or B, to rows of pairs of neighbors along k, in the order of `COLUMNS`.
    pub(super) fn integer_widening(self, side: Side) -> String {
        let (depth, wide) = (self.depth, self.wide());
        let extend = if self.factors[side as usize].is_signed() { "sext" } else { "zext" };
        let mut text = self.widening_head(side);
        for register in 0..self.fragment(side, (0, 0)).len() {
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
    pub(super) fn integer_text(self) -> String {
        let pairs = self.depth / 2;
        let all = picks_of(0..8);
        let mut text = format!(
            "{}  br label %next\nnext:\n  \
             %row = phi i64 [ 0, %entry ], [ %row.next, %next ]\n  %half = lshr i64 %row, 3\n  %at.half = mul i64 %half, {}\n  \
             %within = and i64 %row, 7\n  %at.row = mul i64 %within, 16\n  %at = add i64 %at.half, %at.row\n  \
             %c0.from = getelementptr i8, ptr %in, i64 %at\n  %c1.from = getelementptr i8, ptr %c0.from, i64 {REGISTER}\n  \
             %c0 = load <4 x i32>, ptr %c0.from, align 16\n  %c1 = load <4 x i32>, ptr %c1.from, align 16\n  \
             %c = shufflevector <4 x i32> %c0, <4 x i32> %c1, <8 x i32> <{all}>\n  \
             %a = getelementptr [{pairs} x i32], ptr %left, i64 %row\n",
            self.head(),
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
