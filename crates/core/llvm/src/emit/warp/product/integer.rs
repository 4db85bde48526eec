//! Products of bytes: factors are widened to 16 bits, and pairs of neighbors along k multiplied and added at once.

use super::{COLUMNS, Product, REGISTER, ROWS, Side, place};
use crate::emit::text::{elements, fill};

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
                    let (from, to) = (register * REGISTER + group * wide, (row * depth + register / 2 * wide) * 2);
                    text += &fill(
                        include_str!("integer/widen_left.ll"),
                        &[("a", &a), ("from", &from), ("to", &to), ("wide", &wide), ("extend", &extend)],
                    );
                }
                continue;
            }
            let b = format!("b{register}");
            place(&mut text, &format!("{b}.from"), "in", register * REGISTER);
            text += &format!("  %{b} = load <{REGISTER} x i8>, ptr %{b}.from, align 64\n");
            for pair in 0..wide / 2 {
                let picks = COLUMNS.into_iter().flat_map(|c| c * wide + 2 * pair..c * wide + 2 * pair + 2);
                text += &fill(
                    include_str!("integer/widen_right.ll"),
                    &[
                        ("row", &format_args!("{b}.{pair}")),
                        ("b", &b),
                        ("to", &((register * wide / 2 + pair) * 32)),
                        ("bytes", &REGISTER),
                        ("picks", &elements("i32", picks)),
                        ("extend", &extend),
                    ],
                );
            }
        }
        text + "  ret void\n}"
    }

    /// The product of integers, row by row.
    pub(super) fn integer_text(self) -> String {
        let pairs = self.depth / 2;
        let product = |k: usize| {
            let before = if k == 0 { "zeroinitializer".into() } else { format!("%sum{}", k - 1) };
            fill(
                include_str!("integer/pair.ll"),
                &[("k", &k), ("x_at", &(4 * k)), ("y_at", &(32 * k)), ("before", &before)],
            )
        };
        let products: String = (0..pairs).map(product).collect();
        let last = format!("%sum{}", pairs - 1);
        let sum = match self.clamps {
            true => format!("call <8 x i32> @llvm.sadd.sat.v8i32(<8 x i32> %c, <8 x i32> {last})"),
            false => format!("add <8 x i32> %c, {last}"),
        };
        fill(
            include_str!("integer/product.ll"),
            &[
                ("head", &self.head()),
                ("register", &REGISTER),
                ("two_registers", &(2 * REGISTER)),
                ("all", &elements("i32", 0..8)),
                ("pairs", &pairs),
                ("products", &products),
                ("sum", &sum),
                ("even", &elements("i32", 0..4)),
                ("odd", &elements("i32", 4..8)),
                ("rows", &ROWS),
            ],
        )
    }
}
