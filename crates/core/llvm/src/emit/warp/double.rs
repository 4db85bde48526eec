//! Matrices of `.f64`: products by `mma` and `wmma.mma`, and `wmma.load` and `wmma.store` (manual, sections 9.7.14.4 and 9.7.14.5).
//!
//! A register of A is a block of 8 rows and 4 columns, row by row; one of B a block of 4 rows and 8 columns, column by column; a pair of
//! registers of C or D has the even and the odd columns of 8 rows. Sums go from C over k upwards, one `fma` each, as in `exec::matrix`.

use super::{
    fragment::pick_lanes,
    product::{COLUMNS, place},
    rows::Purpose,
};
use crate::emit::{
    function::{Emitter, Result},
    memory::address::Address,
    text::{Elem, Val, elements, fill, per_lane},
};
use margay_exec::matrix::{self, wmma::Tile};
use margay_ir::{Inst, Operand};
use margay_isa::{Mod, Opcode, Type, Variant, Word};

/// Bytes of a register of a warp.
const REGISTER: usize = 256;
/// Columns of a block of A.
const DEPTH: usize = 4;

/// A product of doubles, rounded to the nearest, with a function of its own.
#[derive(Clone, Copy)]
pub struct Doubles {
    /// Blocks of eight rows of A, C and D.
    blocks: usize,
    /// Blocks of four columns of A.
    deep: usize,
}

impl Doubles {
    /// The product of a variant; `None` for others.
    pub fn of(v: &Variant) -> Option<Doubles> {
        let [m, n, k] = v.words.iter().find_map(|w| match w {
            Word::Mod(m) => m.matrix_shape(),
            Word::Type(_) => None,
        })?;
        let product = v.op == Opcode::Mma || v.op == Opcode::Wmma && v.has(Mod::Mma);
        let nearest = ![Mod::Rz, Mod::Rm, Mod::Rp].iter().any(|r| v.has(*r));
        let doubles = product && matrix::operands(v)?.d == Type::F64;
        (doubles && nearest && n == COLUMNS.len()).then_some(Doubles { blocks: m / 8, deep: k / DEPTH })
    }

    fn name(self) -> String {
        format!("margay.product.f64.{}.{}", self.blocks, self.deep)
    }

    /// The function, which takes places with the registers of A, B and C, and for those of D, which may be C's.
    fn text(self) -> String {
        let mut right = String::new();
        for register in 0..self.deep {
            place(&mut right, &format!("b{register}.from"), "b", register * REGISTER);
            right += &format!("  %b{register} = load <32 x double>, ptr %b{register}.from, align 64\n");
            for k in 0..DEPTH {
                let (column, picks) = (register * DEPTH + k, elements("i32", COLUMNS.map(|c| c * DEPTH + k)));
                right += &format!(
                    "  %right{column} = shufflevector <32 x double> %b{register}, <32 x double> poison, <8 x i32> <{picks}>\n"
                );
            }
        }
        let rows: String = (0..self.blocks).map(|block| self.row(block)).collect();
        fill(include_str!("double/product.ll"), &[("name", &self.name()), ("right", &right), ("rows", &rows)])
    }

    /// Row `%row` of a block.
    fn row(self, block: usize) -> String {
        let mut text = String::new();
        let parts = [0, 1].map(|part| (part, format!("{block}.{part}"), (2 * block + part) * REGISTER));
        for (_, part, at) in &parts {
            place(&mut text, &format!("c{part}.from"), "c.row", *at);
            text += &format!("  %c{part} = load <4 x double>, ptr %c{part}.from, align 32\n");
        }
        let mut sum = format!("%c{block}");
        text += &format!(
            "  {sum} = shufflevector <4 x double> %c{block}.0, <4 x double> %c{block}.1, <8 x i32> <{}>\n",
            elements("i32", 0..8)
        );
        for k in 0..self.deep * DEPTH {
            let s = format!("s{block}.{k}");
            place(
                &mut text,
                &format!("{s}.from"),
                "a.row",
                (k / DEPTH * self.blocks + block) * REGISTER + k % DEPTH * 8,
            );
            text += &fill(include_str!("double/step.ll"), &[("s", &s), ("k", &k), ("sum", &sum)]);
            sum = format!("%{s}");
        }
        text += &fill(include_str!("double/canonical.ll"), &[("block", &block), ("sum", &sum)]);
        for (i, part, at) in &parts {
            place(&mut text, &format!("d{part}.to"), "d.row", *at);
            let picks = elements("i32", 4 * i..4 * i + 4);
            text += &format!(
                "  %d{part} = shufflevector <8 x i64> %d{block}, <8 x i64> poison, <4 x i32> <{picks}>\n  \
                 store <4 x i64> %d{part}, ptr %d{part}.to, align 32\n"
            );
        }
        text
    }
}

impl Emitter<'_> {
    /// A product of doubles by a whole warp.
    pub(super) fn double_product(
        &mut self,
        inst: &Inst,
        product: Doubles,
        srcs: &[Operand],
        dsts: &[Operand],
    ) -> Result<()> {
        if !self.options.half_floats {
            return self.thunk(inst, srcs, dsts);
        }
        self.w.declared.insert(product.text());
        let Doubles { blocks, deep } = product;
        let mut fragments = Vec::new();
        let mut rest = srcs;
        for (count, purpose) in [(blocks * deep, Purpose::Factor), (deep, Purpose::Factor), (2 * blocks, Purpose::Sum)]
        {
            let (registers, others) = rest.split_at(count);
            rest = others;
            let values = registers.iter().map(|o| {
                let v = self.value(o, Elem::I64)?;
                Ok(self.w.splat(&v))
            });
            let values = values.collect::<Result<Vec<Val>>>()?;
            fragments.push(self.rows_of(&values, purpose));
        }
        let guard = self.guard(inst);
        // Sums stay in place, unless a factor is there too.
        let [a, b, c] = [0, 1, 2].map(|i| &fragments[i]);
        let apart = !a.is_beside(c) && !b.is_beside(c);
        let to = if apart { c.clone() } else { self.new_rows((2 * blocks, Elem::I64), Purpose::Sum) };
        let [a, b, c, d] = [a, b, c, &to].map(|rows| self.rows_pointer(rows));
        self.w.line(format_args!("call void @{}(ptr {a}, ptr {b}, ptr {c}, ptr {d})", product.name()));
        let results = self.left_in(&to);
        for (d, v) in dsts.iter().zip(&results) {
            if let Operand::Reg(r) = d {
                self.write(*r, v, guard.as_ref());
            }
        }
        Ok(())
    }

    /// Emits a `wmma.load` or `wmma.store` of doubles: lanes move elements of their own, after a check of lines.
    pub(super) fn move_doubles(&mut self, inst: &Inst, variant: &Variant) -> Result<()> {
        let tile = Tile::of(variant).filter(|tile| tile.bits() == 64);
        let (Some(tile), Some(address)) = (tile, self.line_address(inst)) else { return self.effect(inst) };
        self.move_lines(inst, variant, (&tile, &address), |e, starts| {
            let dsts = e.func.operands(inst.dsts).to_vec();
            let srcs = e.func.operands(inst.srcs).to_vec();
            let stored: Vec<Operand> = match variant.has(Mod::Store) {
                true => {
                    let registers = srcs.into_iter().filter(|o| !matches!(o, Operand::Mem(..)));
                    registers.take(e.stored_registers(inst)).collect()
                }
                false => Vec::new(),
            };
            for i in 0..dsts.len().max(stored.len()) {
                let from = pick_lanes(&mut e.w, starts, |lane| tile.place(lane as usize, i).line);
                let within = per_lane(Elem::I64, |lane| 8 * tile.place(lane as usize, i).at as i128);
                let addresses = Address::Lanes(e.w.op("add", &from, &within));
                if let Some(o) = stored.get(i) {
                    let v = e.value(o, Elem::I64)?;
                    let v = e.w.splat(&v);
                    e.scatter(&addresses, &v, None);
                } else if let Some(Operand::Reg(r)) = dsts.get(i) {
                    let v = e.gather(&addresses, Elem::I64, None);
                    e.write(*r, &v, None);
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::assert_names;

    #[test]
    fn helpers_define_what_they_use() {
        assert_names(&Doubles { blocks: 2, deep: 2 }.text());
    }
}
