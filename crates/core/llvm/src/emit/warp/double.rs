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
    text::{Elem, Val, per_lane},
};
use margay_exec::matrix::{self, wmma::Tile};
use margay_ir::{Inst, Operand};
use margay_isa::{Mod, Opcode, Type, Variant, Word};
use std::fmt::Write;

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
        let mut text = format!("define internal void @{}(ptr %a, ptr %b, ptr %c, ptr %d) #1 {{\nentry:\n", self.name());
        for register in 0..self.deep {
            place(&mut text, &format!("b{register}.from"), "b", register * REGISTER);
            let _ = writeln!(text, "  %b{register} = load <32 x double>, ptr %b{register}.from, align 64");
            for k in 0..DEPTH {
                let picks = COLUMNS.map(|c| format!("i32 {}", c * DEPTH + k)).join(", ");
                let _ = writeln!(
                    text,
                    "  %right{} = shufflevector <32 x double> %b{register}, <32 x double> poison, <8 x i32> <{picks}>",
                    register * DEPTH + k
                );
            }
        }
        text += "  br label %next\nnext:\n  %row = phi i64 [ 0, %entry ], [ %row.next, %next ]\n  %at = mul i64 %row, 32\n  \
                 %a.row = getelementptr i8, ptr %a, i64 %at\n  %c.row = getelementptr i8, ptr %c, i64 %at\n  \
                 %d.row = getelementptr i8, ptr %d, i64 %at\n";
        (0..self.blocks).for_each(|block| self.row(&mut text, block));
        text + "  %row.next = add i64 %row, 1\n  %more = icmp ult i64 %row.next, 8\n  br i1 %more, label %next, label %done\n\
                done:\n  ret void\n}\ndeclare <8 x double> @llvm.fma.v8f64(<8 x double>, <8 x double>, <8 x double>)"
    }

    /// Row `%row` of a block.
    fn row(self, text: &mut String, block: usize) {
        let all: Vec<String> = (0..8).map(|i| format!("i32 {i}")).collect();
        let parts = [0, 1].map(|part| (part, format!("{block}.{part}"), (2 * block + part) * REGISTER));
        for (_, part, at) in &parts {
            place(text, &format!("c{part}.from"), "c.row", *at);
            let _ = writeln!(text, "  %c{part} = load <4 x double>, ptr %c{part}.from, align 32");
        }
        let mut sum = format!("%c{block}");
        let _ = writeln!(
            text,
            "  {sum} = shufflevector <4 x double> %c{block}.0, <4 x double> %c{block}.1, <8 x i32> <{}>",
            all.join(", ")
        );
        for k in 0..self.deep * DEPTH {
            let name = format!("s{block}.{k}");
            place(text, &format!("{name}.from"), "a.row", (k / DEPTH * self.blocks + block) * REGISTER + k % DEPTH * 8);
            let _ = writeln!(
                text,
                "  %{name}.a = load double, ptr %{name}.from, align 8\n  \
                 %{name}.one = insertelement <8 x double> poison, double %{name}.a, i32 0\n  \
                 %{name}.all = shufflevector <8 x double> %{name}.one, <8 x double> poison, <8 x i32> zeroinitializer\n  \
                 %{name} = call <8 x double> @llvm.fma.v8f64(<8 x double> %{name}.all, <8 x double> %right{k}, <8 x double> {sum})"
            );
            sum = format!("%{name}");
        }
        // NaN results are canonical.
        let _ = writeln!(
            text,
            "  %b{block}.bits = bitcast <8 x double> {sum} to <8 x i64>\n  %b{block}.nan = fcmp uno <8 x double> {sum}, zeroinitializer\n  \
             %d{block} = select <8 x i1> %b{block}.nan, <8 x i64> splat (i64 9223372036854775807), <8 x i64> %b{block}.bits"
        );
        for (i, part, at) in &parts {
            place(text, &format!("d{part}.to"), "d.row", *at);
            let _ = writeln!(
                text,
                "  %d{part} = shufflevector <8 x i64> %d{block}, <8 x i64> poison, <4 x i32> <{}>\n  \
                 store <4 x i64> %d{part}, ptr %d{part}.to, align 32",
                all[4 * i..4 * i + 4].join(", ")
            );
        }
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
                let from = pick_lanes(&mut e.w, starts, |lane| tile.place(lane, i).line);
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
