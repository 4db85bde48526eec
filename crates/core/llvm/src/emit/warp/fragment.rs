//! `wmma.load` and `wmma.store` (manual, sections 9.7.14.4.3 and 9.7.14.4.4).
//!
//! Lane `i` moves line `i` of the matrix, 16 bytes at a time (`exec::matrix::wmma`). Eight lines by 16 bytes are a block, one vector of
//! 32 words; each register of the fragment is one block, a transposed one, or a mixture of two.

use super::{
    matrix::{load_text, store_text},
    rows::Purpose,
};
use crate::{
    ctx::{Helper, at},
    emit::{
        function::{Emitter, Result},
        memory::{address::Address, bounds::Lines},
        site::SiteKind,
        text::{Elem, Ty, Val, Writer, elements, fill, int, per_lane},
    },
};
use margay_exec::{
    matrix::wmma::{PIECE, Tile},
    single_step,
};
use margay_ir::{Inst, MemBase, MemSpace, Operand, VReg};
use margay_isa::{Mod, Opcode, Variant};

/// Lines of a block.
const LINES: usize = 8;
/// Bits of a vector of 32 words.
const BITS: usize = 1024;

/// A vector whose elements come from one or two others.
#[derive(PartialEq, Eq, Debug)]
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
}

/// How the registers of a fragment and the blocks of a matrix are made of each other.
pub struct Layout {
    tile: Tile,
    /// Name of the function that moves the matrix.
    name: String,
    /// Size of what is moved as a whole, in bits.
    bits: usize,
    /// The parts of registers (of a load) or blocks (of a store), each once.
    mixtures: Vec<Mixture>,
    /// For each register or block, its mixture.
    made: Vec<usize>,
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
        let sources = if stores {
            let mut inverse = vec![vec![None; each]; blocks];
            for (r, register) in registers.iter().enumerate() {
                register.iter().enumerate().for_each(|(e, (block, at))| inverse[*block][*at] = Some((r, e)));
            }
            inverse.into_iter().map(|block| block.into_iter().collect()).collect::<Option<Vec<Vec<_>>>>()?
        } else {
            registers
        };
        let mut mixtures = Vec::new();
        let mut made = Vec::new();
        for source in &sources {
            let mixture = Mixture::of(source)?;
            let known = mixtures.iter().position(|m| *m == mixture);
            made.push(known.unwrap_or(mixtures.len()));
            mixtures.extend(known.is_none().then_some(mixture));
        }
        let name: Vec<String> =
            v.words.iter().map(|w| w.name().replace(|c: char| !c.is_ascii_alphanumeric(), "")).collect();
        Some(Layout { tile, name: format!("margay.fragment.{}", name.join(".")), bits, mixtures, made })
    }

    /// The blocks: the first of their lines, and the first byte in it.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (lines, bytes) = (self.tile.lines(), self.tile.line_bytes());
        (0..bytes).step_by(PIECE).flat_map(move |byte| (0..lines).step_by(LINES).map(move |line| (line, byte)))
    }

    /// The mixtures of vectors that are called `%{from}0` and so on, as `%mixed0` and so on.
    fn mix(&self, from: &str) -> String {
        let of = format!("<{} x i{}>", BITS / self.bits, self.bits);
        let mix = |(i, mixture): (usize, &Mixture)| {
            let [a, b] = &mixture.from;
            fill(
                include_str!("fragment/mix.ll"),
                &[
                    ("i", &i),
                    ("from", &from),
                    ("a", a),
                    ("b", b),
                    ("elements", &of),
                    ("count", &mixture.picks.len()),
                    ("picks", &elements("i32", &mixture.picks)),
                ],
            )
        };
        self.mixtures.iter().enumerate().map(mix).collect()
    }

    /// The function that loads the mixtures to a buffer.
    fn load_function(&self) -> String {
        let block = |(i, (line, byte))| {
            fill(include_str!("fragment/load_block.ll"), &[("i", &i), ("line", &line), ("byte", &byte)])
        };
        let blocks: String = self.blocks().enumerate().map(block).collect();
        let store = |i: usize| fill(include_str!("fragment/store_mixture.ll"), &[("i", &i)]);
        let stores: String = (0..self.mixtures.len()).map(store).collect();
        fill(
            include_str!("fragment/load.ll"),
            &[("name", &self.name), ("blocks", &blocks), ("mixtures", &self.mix("block")), ("stores", &stores)],
        )
    }

    /// Name of the function that loads with checks, where the reference engine reads these inputs.
    fn checked_name(&self, inputs: &Inputs) -> String {
        inputs.0.iter().fold(format!("{}.checked", self.name), |name, v| format!("{name}.{}", v.ty))
    }

    /// The function that loads lines `%distance` bytes apart if they may be accessed, and has the reference engine execute the instruction
    /// otherwise; returns its status.
    fn checked_load_function(&self, inputs: &Inputs) -> String {
        let arguments: String = inputs.0.iter().enumerate().map(|(i, v)| format!(", {} %in{i}", v.ty)).collect();
        let mut row = 0;
        let mut stored = String::new();
        for (i, v) in inputs.0.iter().enumerate() {
            let all = format!("<32 x {}>", v.ty);
            stored +=
                &fill(include_str!("fragment/input.ll"), &[("i", &i), ("one", &v.ty), ("all", &all), ("row", &row)]);
            row += v.ty.elem.bits().div_ceil(32);
        }
        // The register of each mixture.
        let result = |mixture: usize| {
            let register = self.made.iter().position(|m| *m == mixture).unwrap_or(0);
            fill(include_str!("fragment/result.ll"), &[("mixture", &mixture), ("register", &register)])
        };
        let results: String = (0..self.mixtures.len()).map(result).collect();
        fill(
            include_str!("fragment/checked_load.ll"),
            &[
                ("name", &self.name),
                ("checked", &self.checked_name(inputs)),
                ("arguments", &arguments),
                ("rows", &inputs.rows()),
                ("registers", &self.made.len()),
                ("lanes", &elements("i64", 0..32)),
                ("mask", &(self.tile.lanes() as i32)),
                ("bytes", &self.tile.line_bytes()),
                ("inputs", &stored),
                ("helpers", &at::HELPERS),
                ("effect", &(Helper::Effect as u64 * 8)),
                ("results", &results),
            ],
        )
    }

    /// The function that stores `registers` registers.
    fn store_function(&self, registers: usize) -> String {
        let arguments: String = (0..registers).map(|r| format!(", <32 x i32> %register{r}")).collect();
        let block = |((i, mixture), (line, byte)): ((usize, &usize), (usize, usize))| {
            fill(
                include_str!("fragment/store_block.ll"),
                &[("i", &i), ("line", &line), ("byte", &byte), ("mixture", mixture)],
            )
        };
        let blocks: String = self.made.iter().enumerate().zip(self.blocks()).map(block).collect();
        fill(
            include_str!("fragment/store.ll"),
            &[
                ("name", &self.name),
                ("arguments", &arguments),
                ("mixtures", &self.mix("register")),
                ("blocks", &blocks),
            ],
        )
    }
}

/// The elements of a vector that each lane picks.
pub(super) fn pick_lanes<N: std::fmt::Display>(w: &mut Writer, v: &Val, pick: impl Fn(u32) -> N) -> Val {
    let picks: Vec<String> = (0..32).map(|lane| format!("i32 {}", pick(lane))).collect();
    let ty = v.ty;
    w.value(ty, format_args!("shufflevector {ty} {v}, {ty} poison, <32 x i32> <{}>", picks.join(", ")))
}

/// The lanes that move a line, if these are not all.
fn line_lanes(tile: &Tile) -> Option<Val> {
    let lanes = tile.lanes();
    (lanes != u32::MAX).then(|| per_lane(Elem::I1, |l| i128::from(lanes >> l & 1)))
}

/// The inputs of the reference engine where it executes a load: uniform words and double words.
struct Inputs(Vec<Val>);

impl Inputs {
    fn rows(&self) -> usize {
        self.0.iter().map(|v| v.ty.elem.bits().div_ceil(32) as usize).sum()
    }
}

/// The operand of a matrix in memory: a register and an offset.
pub(super) struct LineAddress {
    /// Its place among the sources.
    at: usize,
    base: VReg,
    offset: i64,
    space: MemSpace,
}

impl Emitter<'_> {
    /// Emits a `wmma.load` or `wmma.store`.
    pub(super) fn move_fragment(&mut self, inst: &Inst, variant: &Variant, layout: &Layout) -> Result<()> {
        let Some(address) = self.line_address(inst) else { return self.effect(inst) };
        if self.load_uniform(inst, variant, &address, layout)? {
            return Ok(());
        }
        self.move_lines(inst, variant, (&layout.tile, &address), |e, starts| match variant.has(Mod::Store) {
            true => e.store_fragment(inst, starts, layout),
            false => {
                e.load_fragment(inst, starts, layout);
                Ok(())
            }
        })
    }

    /// Checks the lines of a matrix, and moves them by `native`, which takes their addresses. What a part of a warp does, lines that are not
    /// aligned to 16 bytes, as they should be, and what must not be accessed are left to the reference engine.
    pub(super) fn move_lines(
        &mut self,
        inst: &Inst,
        variant: &Variant,
        (tile, address): (&Tile, &LineAddress),
        native: impl FnOnce(&mut Self, &Val) -> Result<()>,
    ) -> Result<()> {
        let [apart, whole, done] = ["lines.apart", "lines", "moved"].map(|l| self.w.label(l));
        let mark = self.w.mark();
        let all = self.all_active();
        if all.unsigned() != Some(1) {
            let whole = self.w.label("matrix.whole");
            self.w.branch(&all, &whole, &apart);
            self.w.follow(&whole);
        }
        let (space, starts) = (address.space, self.line_starts(inst, address, tile)?);
        let (bytes, write) = (tile.line_bytes() as u32, variant.has(Mod::Store));
        let lines = self.lines(space, bytes, write);
        let bad = self.lines_apart(&lines, &starts, bytes, tile.lanes());
        self.w.branch_unlikely(&bad, &apart, &whole);
        self.w.follow(&whole);
        let used = line_lanes(tile);
        self.count_lines((space, bytes), &starts, used.as_ref());
        self.settle(space, bytes, &Address::Lanes(starts.clone()), used.as_ref());
        native(self, &starts)?;
        self.w.jump(&done);
        self.w.join(&apart, mark);
        self.cold_effect(inst)?;
        self.w.jump(&done);
        self.w.join(&done, mark);
        Ok(())
    }

    /// Loads by one call if all lanes are active, address and stride are uniform, and nothing else is to be done; whether it did.
    fn load_uniform(&mut self, inst: &Inst, variant: &Variant, address: &LineAddress, layout: &Layout) -> Result<bool> {
        let global = address.space != MemSpace::Shared;
        let more = self.options.count || global && self.accesses.combined.is_some();
        let whole = self.all_active().unsigned() == Some(1);
        if variant.has(Mod::Store) || more || !whole {
            return Ok(false);
        }
        let (func, original) = (self.ir.func(self.id), self.inst);
        let (reads, writes) = single_step::registers(func, &func.insts[original as usize]);
        let mut inputs = Vec::new();
        for r in &reads {
            let bits = func.regs[r.0 as usize].bits();
            let v = self.value(&self.constant_or(*r), self.slots[r.0 as usize].elem)?;
            if v.ty.vector || !matches!(bits, 32 | 64) {
                return Ok(false);
            }
            inputs.push(self.w.resize(&v, Elem::int(bits), false));
        }
        let (base, distance) = self.line_base(inst, address, &layout.tile)?;
        if base.ty.vector || distance.ty.vector || writes.len() != layout.made.len() {
            return Ok(false);
        }
        let inputs = Inputs(inputs);
        let lines = self.lines(address.space, layout.tile.line_bytes() as u32, false);
        let step = self.site(SiteKind::Effect { reads: inputs.rows(), writes: writes.len(), seldom: true });
        let loads = [load_text(), layout.load_function(), layout.checked_load_function(&inputs)];
        self.w.declared.extend(loads);
        let rows = self.new_rows((layout.mixtures.len(), Elem::I32), Purpose::Factor);
        let to = self.rows_pointer(&rows);
        let arguments: String = inputs.0.iter().map(|v| format!(", {} {v}", v.ty)).collect();
        let Lines { site, low, limit } = lines;
        let name = layout.checked_name(&inputs);
        let status = self.w.value(
            Ty::scalar(Elem::I32),
            format_args!(
                "call i32 @{name}(ptr %ctx, i32 {site}, i32 {step}, i64 {base}, i64 {distance}, i64 {low}, i64 {limit}, ptr {to}{arguments})"
            ),
        );
        self.stop_unless_zero(&status);
        let mixtures = self.left_in(&rows);
        self.write_mixtures(inst, layout, &mixtures);
        Ok(true)
    }

    fn write_mixtures(&mut self, inst: &Inst, layout: &Layout, mixtures: &[Val]) {
        let dsts = self.func.operands(inst.dsts).to_vec();
        dsts.iter().zip(&layout.made).for_each(|(d, i)| self.write_matrix(d, &mixtures[*i]));
    }

    fn count_lines(&mut self, (space, bytes): (MemSpace, u32), starts: &Val, lanes: Option<&Val>) {
        for piece in (0..bytes).step_by(PIECE) {
            let here = self.w.op_const("add", starts, piece.into());
            self.count_access(space, PIECE as u32, &Address::Lanes(here), lanes);
        }
    }

    /// The address of a matrix; `None` if it has no register.
    pub(super) fn line_address(&self, inst: &Inst) -> Option<LineAddress> {
        let srcs = self.func.operands(inst.srcs);
        let at = srcs.iter().position(|o| matches!(o, Operand::Mem(..)))?;
        let Operand::Mem(MemBase::Reg(base), offset) = srcs[at] else { return None };
        let space = inst.space.unwrap_or(MemSpace::Generic);
        matches!(space, MemSpace::Shared | MemSpace::Global | MemSpace::Generic).then_some(LineAddress {
            at,
            base,
            offset,
            space,
        })
    }

    /// The host address of each lane's line.
    fn line_starts(&mut self, inst: &Inst, address: &LineAddress, tile: &Tile) -> Result<Val> {
        let (base, distance) = self.line_base(inst, address, tile)?;
        let lines = per_lane(Elem::I64, i128::from);
        let from = self.w.op("mul", &distance, &lines);
        Ok(self.w.op("add", &base, &from))
    }

    /// The host address of the first line, and the distance between lines in bytes.
    fn line_base(&mut self, inst: &Inst, address: &LineAddress, tile: &Tile) -> Result<(Val, Val)> {
        let LineAddress { at, base, offset, space } = *address;
        let narrow = if space == MemSpace::Shared { Elem::I32 } else { Elem::I64 };
        let v = self.read(base);
        let v = self.w.resize(&v, narrow, false);
        let v = self.without_rank(space, v);
        let v = self.w.op_const("add", &v, offset.into());
        let base = self.host_lanes(space, &v);
        // The stride is the last source, behind the address or the registers to be stored.
        let stored = if inst.dsts.is_empty() { self.stored_registers(inst) } else { 0 };
        let distance = match self.func.operands(inst.srcs).get(at + 1 + stored).copied() {
            None => int(Elem::I64, tile.distance(None).into()),
            Some(Operand::Imm(stride)) => int(Elem::I64, tile.distance(Some(stride as u32)).into()),
            Some(stride) => {
                let stride = self.value(&stride, Elem::I32)?;
                let stride = self.w.resize(&stride, Elem::I64, false);
                let bits = self.w.op_const("mul", &stride, tile.bits() as i128);
                self.w.op_const("lshr", &bits, 3)
            }
        };
        Ok((base, distance))
    }

    pub(super) fn stored_registers(&self, inst: &Inst) -> usize {
        let variant = self.func.variant(inst);
        variant.operands().nth(1).and_then(|o| variant.count(o)).unwrap_or(1) as usize
    }

    fn load_fragment(&mut self, inst: &Inst, starts: &Val, layout: &Layout) {
        self.w.declared.extend([load_text(), layout.load_function()]);
        let rows = self.new_rows((layout.mixtures.len(), Elem::I32), Purpose::Factor);
        let to = self.rows_pointer(&rows);
        self.w.line(format_args!("call void @{}({} {starts}, ptr {to})", layout.name, starts.ty));
        let mixtures = self.left_in(&rows);
        self.write_mixtures(inst, layout, &mixtures);
    }

    fn store_fragment(&mut self, inst: &Inst, starts: &Val, layout: &Layout) -> Result<()> {
        let srcs = self.func.operands(inst.srcs).to_vec();
        let registers = srcs.iter().filter(|o| !matches!(o, Operand::Mem(..))).take(self.stored_registers(inst));
        let values = registers.map(|o| self.fragment(o)).collect::<Result<Vec<Val>>>()?;
        self.w.declared.extend([store_text(), layout.store_function(values.len())]);
        let arguments: String = values.iter().map(|v| format!(", {} {v}", v.ty)).collect();
        self.w.line(format_args!("call void @{}({} {starts}{arguments})", layout.name, starts.ty));
        Ok(())
    }
}

/// Whether a variant is a `wmma.load` or `wmma.store`.
pub fn moves(v: &Variant) -> bool {
    v.op == Opcode::Wmma && !v.has(Mod::Mma)
}
