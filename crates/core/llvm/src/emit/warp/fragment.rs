//! `wmma.load` and `wmma.store` (manual, sections 9.7.14.4.3 and 9.7.14.4.4).
//!
//! Lane `i` moves line `i` of the matrix, 16 bytes at a time (`exec::matrix::wmma`). Eight lines by 16 bytes are a block, one vector of
//! 32 words; each register of the fragment is one block, a transposed one, or a mixture of two.

use crate::emit::{
    function::{Emitter, Result},
    text::{Elem, Ty, Val, constant, int, per_lane},
};
use margay_exec::matrix::wmma::{PIECE, Tile};
use margay_ir::{Inst, MemBase, MemSpace, Operand};
use margay_isa::{Mod, Opcode, Variant};
use std::collections::HashMap;

/// Lines of a block.
const LINES: usize = 8;
/// Bits of a vector of 32 words.
const BITS: usize = 1024;

/// A vector whose elements come from one or two others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Mixture {
    /// Numbers of the vectors; equal if there is one.
    from: [usize; 2],
    /// The element of both, one after the other, for each element.
    picks: Vec<usize>,
}

impl Mixture {
    /// A mixture of the vectors and elements in a list; `None` if they are more than two.
    fn of(sources: &[(usize, usize)]) -> Option<Mixture> {
        let first = sources.first()?.0;
        let second = sources.iter().map(|s| s.0).find(|v| *v != first).unwrap_or(first);
        let pick = |(vector, at): &(usize, usize)| match *vector {
            v if v == first => Some(*at),
            v if v == second => Some(sources.len() + at),
            _ => None,
        };
        Some(Mixture { from: [first, second], picks: sources.iter().map(pick).collect::<Option<_>>()? })
    }

    /// Whether it is a vector as it is.
    fn is_whole(&self) -> bool {
        self.picks.iter().enumerate().all(|(i, at)| i == *at)
    }
}

/// How the registers of a fragment and the blocks of a matrix are made of each other.
pub struct Layout {
    tile: Tile,
    /// Size of what is moved as a whole, in bits.
    bits: usize,
    /// For each register (of a load) or block (of a store), what it consists of.
    made: Vec<Mixture>,
}

impl Layout {
    /// The layout of a variant; `None` if there is no native code for it.
    pub fn of(v: &Variant) -> Option<Layout> {
        let tile = Tile::of(v)?;
        let stores = v.has(Mod::Store);
        let registers = v.operands().nth(usize::from(stores)).and_then(|o| v.count(o)).unwrap_or(1) as usize;
        let (per, blocks) = (tile.per_register(), tile.line_bytes() / PIECE * (tile.lines() / LINES));
        if tile.bits() > 32 || !tile.line_bytes().is_multiple_of(PIECE) {
            return None;
        }
        // Neighbors that share a register and a word of memory are moved together.
        let place = |register: usize, lane: usize, i: usize| tile.place(lane, register * per + i);
        let together = (0..per).all(|i| {
            let (first, this) = (place(0, 1, 0), place(0, 1, i));
            (this.line, this.at) == (first.line, first.at + i)
        });
        let (bits, per) = if together { (32, 1) } else { (tile.bits(), per) };
        if bits < 16 {
            return None;
        }
        let each = BITS / bits;
        // The block, and the element in it.
        let source = |register: usize, element: usize| {
            let (lane, i) = (element / per, element % per);
            let place = place(register, lane, i);
            let bit = place.at * tile.bits();
            let (piece, within) = (bit / (8 * PIECE), bit % (8 * PIECE) / bits);
            (piece * (tile.lines() / LINES) + place.line / LINES, place.line % LINES * (8 * PIECE / bits) + within)
        };
        let registers: Vec<Vec<(usize, usize)>> =
            (0..registers).map(|r| (0..each).map(|e| source(r, e)).collect()).collect();
        if !stores {
            let made = registers.iter().map(|r| Mixture::of(r)).collect::<Option<_>>()?;
            return Some(Layout { tile, bits, made });
        }
        let mut inverse = vec![vec![None; each]; blocks];
        for (r, register) in registers.iter().enumerate() {
            register.iter().enumerate().for_each(|(e, (block, at))| inverse[*block][*at] = Some((r, e)));
        }
        let block = |b: &Vec<Option<(usize, usize)>>| Mixture::of(&b.iter().copied().collect::<Option<Vec<_>>>()?);
        Some(Layout { tile, bits, made: inverse.iter().map(block).collect::<Option<_>>()? })
    }

    /// The blocks: the first of their lines, and the first byte in it.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (lines, bytes) = (self.tile.lines(), self.tile.line_bytes());
        (0..bytes).step_by(PIECE).flat_map(move |byte| (0..lines).step_by(LINES).map(move |line| (line, byte)))
    }

    /// The lanes that move a line, if these are not all.
    fn lanes(&self) -> Option<Val> {
        let lanes = self.tile.lanes();
        (lanes != u32::MAX).then(|| per_lane(Elem::I1, |l| i128::from(lanes >> l & 1)))
    }
}

impl Emitter<'_> {
    /// Emits a `wmma.load` or `wmma.store` by all lanes of a warp. Lines that are not aligned to 16 bytes, as they should be, are left to
    /// the reference engine.
    pub(super) fn move_fragment(&mut self, inst: &Inst, variant: &Variant, layout: &Layout) -> Result<()> {
        let Some((space, starts)) = self.line_starts(inst, layout)? else { return self.effect(inst) };
        let used = layout.lanes();
        let odd = self.w.op_const("and", &starts, PIECE as i128 - 1);
        let odd = self.w.cmp("icmp ne", &odd, &constant(odd.ty, 0));
        let odd = match &used {
            Some(used) => self.w.op("and", &odd, used),
            None => odd,
        };
        let odd = self.any(&odd);
        let [aligned, odd_lines, done] = ["lines", "lines.odd", "moved"].map(|l| self.w.label(l));
        self.w.branch_unlikely(&odd, &odd_lines, &aligned);
        let mark = self.w.mark();
        self.w.follow(&odd_lines);
        self.seldom_effect(inst)?;
        self.w.jump(&done);
        self.w.join(&aligned, mark);
        let writes = variant.has(Mod::Store);
        self.check_pieces(space, &starts, (layout.tile.line_bytes() as u32, writes), used.as_ref());
        match writes {
            true => self.store_fragment(inst, &starts, layout)?,
            false => self.load_fragment(inst, &starts, layout),
        }
        self.w.jump(&done);
        self.w.join(&done, mark);
        Ok(())
    }

    /// The state space, and the host address of each lane's line; `None` if the address has no register.
    fn line_starts(&mut self, inst: &Inst, layout: &Layout) -> Result<Option<(MemSpace, Val)>> {
        let space = inst.space.unwrap_or(MemSpace::Generic);
        let srcs = self.func.operands(inst.srcs).to_vec();
        let at = srcs.iter().position(|o| matches!(o, Operand::Mem(..)));
        let Some((at, Operand::Mem(MemBase::Reg(r), offset))) = at.map(|i| (i, srcs[i])) else { return Ok(None) };
        let narrow = match space {
            MemSpace::Shared => Elem::I32,
            MemSpace::Global | MemSpace::Generic => Elem::I64,
            _ => return Ok(None),
        };
        let v = self.read(r);
        let v = self.w.resize(&v, narrow, false);
        let v = self.w.op_const("add", &v, offset.into());
        let base = self.host_lanes(space, &v);
        // The stride is the last source, behind the address or the registers to be stored.
        let stored = if inst.dsts.is_empty() { self.stored_registers(inst) } else { 0 };
        let distance = match srcs.get(at + 1 + stored) {
            None => int(Elem::I64, layout.tile.distance(None).into()),
            Some(Operand::Imm(stride)) => int(Elem::I64, layout.tile.distance(Some(*stride as u32)).into()),
            Some(stride) => {
                let stride = self.value(stride, Elem::I32)?;
                let stride = self.w.resize(&stride, Elem::I64, false);
                let bits = self.w.op_const("mul", &stride, layout.tile.bits() as i128);
                self.w.op_const("lshr", &bits, 3)
            }
        };
        let lines = per_lane(Elem::I64, i128::from);
        let from = self.w.op("mul", &distance, &lines);
        Ok(Some((space, self.w.op("add", &base, &from))))
    }

    fn stored_registers(&self, inst: &Inst) -> usize {
        let variant = self.func.variant(inst);
        variant.operands().nth(1).and_then(|o| variant.count(o)).unwrap_or(1) as usize
    }

    /// The vectors of a layout, made of others.
    fn mix(&mut self, vectors: &[Val], layout: &Layout) -> Vec<Val> {
        let (words, elements) = (Ty::lanes(Elem::I32), format!("<{} x i{}>", BITS / layout.bits, layout.bits));
        let mut known: HashMap<&Mixture, Val> = HashMap::new();
        let mut made = Vec::new();
        for mixture in &layout.made {
            if let Some(v) = known.get(mixture) {
                made.push(v.clone());
                continue;
            }
            let v = if mixture.is_whole() {
                vectors[mixture.from[0]].clone()
            } else {
                let picks: Vec<String> = mixture.picks.iter().map(|i| format!("i32 {i}")).collect();
                let [a, b] = mixture.from.map(|v| {
                    let v = &vectors[v];
                    self.w.value(words, format_args!("bitcast {words} {v} to {elements}"))
                });
                let mixed = self.w.value(
                    words,
                    format_args!(
                        "shufflevector {elements} {a}, {elements} {b}, <{} x i32> <{}>",
                        picks.len(),
                        picks.join(", ")
                    ),
                );
                self.w.value(words, format_args!("bitcast {elements} {mixed} to {words}"))
            };
            known.insert(mixture, v.clone());
            made.push(v);
        }
        made
    }

    fn load_fragment(&mut self, inst: &Inst, starts: &Val, layout: &Layout) {
        let list = self.listed_addresses(starts);
        let blocks: Vec<Val> = layout.blocks().map(|(line, byte)| self.load_block(&list, line, byte)).collect();
        let registers = self.mix(&blocks, layout);
        let dsts = self.func.operands(inst.dsts).to_vec();
        dsts.iter().zip(&registers).for_each(|(d, v)| self.write_matrix(d, v));
    }

    fn store_fragment(&mut self, inst: &Inst, starts: &Val, layout: &Layout) -> Result<()> {
        let srcs = self.func.operands(inst.srcs).to_vec();
        let values = srcs.iter().filter(|o| !matches!(o, Operand::Mem(..))).take(self.stored_registers(inst));
        let registers = values.map(|o| self.fragment(o)).collect::<Result<Vec<Val>>>()?;
        let blocks = self.mix(&registers, layout);
        let list = self.listed_addresses(starts);
        for (v, (line, byte)) in blocks.iter().zip(layout.blocks()) {
            self.store_block(&list, (line, byte), v);
        }
        Ok(())
    }
}

/// Whether a variant is a `wmma.load` or `wmma.store`.
pub fn moves(v: &Variant) -> bool {
    v.op == Opcode::Wmma && !v.has(Mod::Mma)
}
