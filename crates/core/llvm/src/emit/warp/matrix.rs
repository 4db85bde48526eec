//! Warp-level matrix instructions (manual, section 9.7.14): products by the functions of `exec`, moves of 8 by 8
//! matrices of 16-bit elements between memory and fragments by native code (`fragment` has those of `wmma`).
//!
//! The words of such a fragment, in lane order, are the matrix row by row, so a register is eight rows of 16 bytes. All
//! 32 lanes must be active; else the reference engine executes the instruction.

use super::{
    double::Doubles,
    fragment::{Layout, moves},
    product::{Product, Side},
    rows::Purpose,
};
use crate::code::target;
use crate::emit::{
    function::{Emitter, Result},
    memory::address::Address,
    text::{Elem, Ty, Val, elements, fill, per_lane},
};
use margay_exec::matrix;
use margay_ir::{Inst, Operand};
use margay_isa::{Mod, Opcode, Variant};

/// Factors of each side that are kept in double precision.
const MAX_FACTORS: usize = 8;

/// Whether a matrix instruction other than those of [`moves`] has native code.
fn known(variant: &Variant) -> bool {
    match variant.op {
        Opcode::Ldmatrix | Opcode::Stmatrix => variant.has(Mod::M8n8),
        _ => matrix::pure(variant).is_some(),
    }
}

impl Emitter<'_> {
    /// `mma`, `wmma`, `ldmatrix`, `stmatrix`, `movmatrix`.
    pub fn matrix(&mut self, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        if moves(&variant) {
            return match Layout::of(&variant) {
                Some(layout) => self.move_fragment(inst, &variant, &layout),
                None => self.move_doubles(inst, &variant),
            };
        }
        if !known(&variant) {
            return self.effect(inst);
        }
        let all = self.all_active();
        if all.unsigned() == Some(1) {
            return self.whole_matrix(inst, &variant);
        }
        let [whole, part, done] = ["matrix.whole", "matrix.part", "matrix.done"].map(|l| self.w.label(l));
        self.w.branch(&all, &whole, &part);
        let (whole, part) =
            self.diamond([&whole, &part, &done], |e| e.whole_matrix(inst, &variant), |e| e.effect(inst));
        whole.and(part)
    }

    fn whole_matrix(&mut self, inst: &Inst, variant: &Variant) -> Result<()> {
        let srcs: Vec<Operand> = self.func.operands(inst.srcs).to_vec();
        let dsts: Vec<Operand> = self.func.operands(inst.dsts).to_vec();
        match variant.op {
            Opcode::Ldmatrix => self.load_matrices(inst, variant, &srcs[0], &dsts),
            Opcode::Stmatrix => self.store_matrices(inst, variant, &srcs[0], &srcs[1..]),
            Opcode::Movmatrix => {
                let v = self.fragment(&srcs[0])?;
                let v = self.transpose(&v);
                self.write_matrix(&dsts[0], &v);
                Ok(())
            }
            _ => match Doubles::of(variant) {
                Some(product) => self.double_product(inst, product, &srcs, &dsts),
                None => self.matrix_product(inst, variant, &srcs, &dsts),
            },
        }
    }

    fn matrix_product(&mut self, inst: &Inst, variant: &Variant, srcs: &[Operand], dsts: &[Operand]) -> Result<()> {
        let native = |p: &Product| if p.is_integer() { target::wide_integers() } else { self.options.half_floats };
        let Some(product) = Product::of(variant).filter(native) else {
            return self.thunk(inst, srcs, dsts);
        };
        // All rows of sums fit into the vector registers of AVX-512.
        let text = product.text(if self.options.mask_registers { 16 } else { 4 });
        self.w.declared.insert(text);
        let guard = self.guard(inst);
        let [added, sums] = product.sum_registers();
        let mut results = Vec::new();
        for (i, tile) in product.tiles().enumerate() {
            let left = self.factor(product, Side::Left, &srcs[product.fragment(Side::Left, tile)])?;
            let right = self.factor(product, Side::Right, &srcs[product.fragment(Side::Right, tile)])?;
            let addend = self.registers(&srcs[product.addend(i)])?;
            let from = self.rows_of(&addend, Purpose::Sum);
            let to = if added == sums { from.clone() } else { self.new_rows((sums, Elem::I32), Purpose::Sum) };
            let [c, d] = [&from, &to].map(|rows| self.rows_pointer(rows));
            self.w.line(format_args!("call void @{}(ptr {left}, ptr {right}, ptr {c}, ptr {d})", product.name()));
            results.extend(self.left_in(&to));
        }
        for (d, v) in dsts.iter().zip(&results) {
            if let Operand::Reg(r) = d {
                self.write(*r, v, guard.as_ref());
            }
        }
        Ok(())
    }

    /// A buffer that holds a factor in double precision: one that an earlier product has filled, if there is one.
    fn factor(&mut self, product: Product, side: Side, registers: &[Operand]) -> Result<Val> {
        let values = self.registers(registers)?;
        let names: Vec<String> = values.iter().map(Val::to_string).collect();
        let content = format!("{} {}", product.widening(side), names.join(" "));
        let kind = product.buffer(side);
        let buffers = self.entry.factors.entry((side, kind.clone())).or_default().clone();
        if let Some(filled) = buffers.iter().find(|b| self.w.holds(b, &content)) {
            return Ok(filled.clone());
        }
        let all = self.entry.factors.entry((side, kind.clone())).or_default();
        let buffer = if all.len() < MAX_FACTORS { self.w.alloca(&kind, 64) } else { all.remove(0) };
        all.push(buffer.clone());
        self.w.declared.insert(product.widening_text(side));
        let rows = self.rows_of(&values, Purpose::Factor);
        let from = self.rows_pointer(&rows);
        self.w.line(format_args!("call void @{}(ptr {buffer}, ptr {from})", product.widening(side)));
        self.w.fill(&buffer, &content);
        Ok(buffer)
    }

    /// Registers of a product, to which all NaNs are the same.
    fn registers(&mut self, operands: &[Operand]) -> Result<Vec<Val>> {
        let each = operands.iter().map(|o| {
            let v = self.raw_value(o, Elem::I32)?;
            Ok(self.w.splat(&v))
        });
        each.collect()
    }

    pub(super) fn fragment(&mut self, o: &Operand) -> Result<Val> {
        let v = self.value(o, Elem::I32)?;
        Ok(self.w.splat(&v))
    }

    pub(super) fn write_matrix(&mut self, to: &Operand, v: &Val) {
        if let Operand::Reg(r) = to {
            let v = self.w.resize(v, self.slots[r.0 as usize].elem, false);
            self.write(*r, &v, None);
        }
    }

    /// Transposes an 8 by 8 matrix of halves.
    fn transpose(&mut self, v: &Val) -> Val {
        let picks: Vec<String> = (0..64).map(|i| format!("i32 {}", i % 8 * 8 + i / 8)).collect();
        let (words, halves) = (v.ty, "<64 x i16>");
        let v = self.w.value(words, format_args!("bitcast {words} {v} to {halves}"));
        let picks = picks.join(", ");
        let v = self.w.value(words, format_args!("shufflevector {halves} {v}, {halves} poison, <64 x i32> <{picks}>"));
        self.w.value(words, format_args!("bitcast {halves} {v} to {words}"))
    }

    /// The lanes that provide the row addresses of `count` matrices; `None` for all.
    fn rows_of_matrices(count: usize) -> Option<Val> {
        (count < 4).then(|| per_lane(Elem::I1, |l| i128::from(l < 8 * count as u32)))
    }

    fn load_matrices(&mut self, inst: &Inst, variant: &Variant, source: &Operand, dsts: &[Operand]) -> Result<()> {
        let used = Self::rows_of_matrices(dsts.len());
        let transposed = variant.has(Mod::Trans);
        self.access(inst, source, (16, false), used.as_ref(), |e, address| {
            let rows = e.address_list(address);
            e.w.declared.insert(load_text());
            let words = Ty::lanes(Elem::I32);
            // All are loaded before any is written: the address register may be among the destinations.
            let values: Vec<Val> = (0..dsts.len())
                .map(|j| {
                    let p = e.w.offset_const(&rows, 64 * j as u64);
                    let v = e.w.value(words, format_args!("call {words} @margay.matrix.load(ptr {p}, i64 0)"));
                    if transposed { e.transpose(&v) } else { v }
                })
                .collect();
            dsts.iter().zip(&values).for_each(|(d, v)| e.write_matrix(d, v));
            Ok(())
        })
    }

    fn store_matrices(&mut self, inst: &Inst, variant: &Variant, target: &Operand, values: &[Operand]) -> Result<()> {
        let used = Self::rows_of_matrices(values.len());
        let mut words = Vec::new();
        for v in values {
            let v = self.fragment(v)?;
            words.push(if variant.has(Mod::Trans) { self.transpose(&v) } else { v });
        }
        self.access(inst, target, (16, true), used.as_ref(), |e, address| {
            let rows = e.address_list(address);
            e.w.declared.insert(store_text());
            for (j, v) in words.iter().enumerate() {
                let p = e.w.offset_const(&rows, 64 * j as u64);
                e.w.line(format_args!("call void @margay.matrix.store(ptr {p}, i64 0, {} {v})", v.ty));
            }
            Ok(())
        })
    }

    /// Stores the host address of each lane to memory.
    fn address_list(&mut self, address: &Address) -> Val {
        let lanes = self.spread(address);
        let list = self.w.alloca("[32 x i64]", 64);
        self.w.store(&lanes, &list, 64);
        list
    }
}

/// Pointers `%p0` to `%p7` to byte `%byte` behind the addresses of a list.
fn pointers() -> String {
    (0..8).map(|i| fill(include_str!("matrix/pointer.ll"), &[("i", &i)])).collect()
}

/// A helper that loads eight rows of 16 bytes as one vector: `%byte` bytes behind the addresses of a list.
pub(super) fn load_text() -> String {
    let rows: String = (0..8).map(|i| format!("  %v4.{i} = load <4 x i32>, ptr %p{i}, align 16\n")).collect();
    let join = |width: u32, i: u32| {
        let (to, half, picks) = (2 * width, format!("<{width} x i32>"), elements("i32", 0..2 * width));
        let (a, b) = (2 * i, 2 * i + 1);
        format!("  %v{to}.{i} = shufflevector {half} %v{width}.{a}, {half} %v{width}.{b}, <{to} x i32> <{picks}>\n")
    };
    let joined: String =
        [4, 8, 16].into_iter().flat_map(|width| (0..16 / width).map(move |i| join(width, i))).collect();
    fill(include_str!("matrix/load.ll"), &[("pointers", &pointers()), ("rows", &rows), ("joined", &joined)])
}

/// A helper that stores a vector as eight rows of 16 bytes, likewise.
pub(super) fn store_text() -> String {
    let store =
        |i: u32| fill(include_str!("matrix/store_row.ll"), &[("i", &i), ("picks", &elements("i32", 4 * i..4 * i + 4))]);
    let stores: String = (0..8).map(store).collect();
    fill(include_str!("matrix/store.ll"), &[("pointers", &pointers()), ("stores", &stores)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::assert_names;

    #[test]
    fn helpers_define_what_they_use() {
        assert_names(&load_text());
        assert_names(&store_text());
    }
}
