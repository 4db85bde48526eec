//! One function: slots for registers, the entry, values in and out of slots, calls of helpers.

use super::{
    rows::{self, Row, Shadow, rows_of},
    site::{Site, SiteKind},
    text::{Elem, Ty, Val, Writer, constant, int, named, per_lane},
};
use crate::ctx::{Helper, at, status};
use margay_ir::{
    BlockId, FormalHome, Func, FuncId, Inst, Ir, Operand, Placed, Terminator, VReg,
    pass::{BitSet, Cfg, Liveness, Shape, Uniformity, WarpShape},
};
use margay_isa::{Component, Special, Type};
use std::{collections::HashMap, fmt::Write};

/// What code is specialised for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Block shape, if known.
    pub warp: WarpShape,
    /// Masks live in mask registers (AVX-512), so a packed mask is an `i32`; else it is `<32 x i32>`.
    pub mask_registers: bool,
}

/// Back edges that lanes take before others get their turn, in functions whose loops may wait for them.
pub(super) const PATIENCE: u32 = 256;

/// Why a function cannot be compiled for the SIMD engine: the construct, and the instruction.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What.
    pub what: String,
    /// The function.
    pub func: FuncId,
    /// Index into `Func::places`.
    pub at: u32,
}

/// Where a register lives.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub pointer: Val,
    pub shape: Shape,
    pub elem: Elem,
    /// Of varying registers that form rows unless an index wrapped around.
    pub shadow: Option<Shadow>,
}

/// Which of the two versions is being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Full,
    Masked,
}

pub(super) struct Emitter<'a> {
    pub ir: &'a Ir<Placed>,
    pub id: FuncId,
    pub func: &'a Func,
    pub options: &'a Options,
    pub cfg: Cfg,
    pub uniformity: Uniformity,
    pub live: Liveness,
    pub w: Writer,
    pub slots: Vec<Slot>,
    /// Needs a masked version at all.
    pub masks: bool,
    /// Loops may wait for other threads, so lanes that loop must let others go on.
    pub spins: bool,
    /// Back edges left until they do.
    pub fuel: Option<Val>,
    pub mode: Mode,
    /// Active lanes, `<32 x i1>`; in full mode all.
    pub active: Val,
    /// Waiting lanes by block.
    pub pending: Vec<Val>,
    pub sites: &'a mut Vec<Site>,
    /// Registers whose writes under a mask must keep the other lanes.
    pub blended: Vec<bool>,
    /// Registers that may hold the host's NaNs.
    pub lazy: Vec<bool>,
    /// Promoted frame variables: words of `<32 x i32>`.
    pub frame: Vec<Option<Val>>,
    pub save_offsets: HashMap<u32, u64>,
    pub save_size: u64,
    /// Resume points: label by number, from 1 on.
    pub resumes: Vec<String>,
    pub inst: u32,
    pub at: u32,
    /// Operands read as the scalars of this row's first lane.
    pub row: Option<Row>,
    /// Some code goes to the thread's local window.
    pub uses_local: bool,
}

pub(super) type Result<T> = std::result::Result<T, Refused>;

/// Element of a register's slot.
pub(super) fn elem_of(ty: Type) -> Elem {
    match ty.bits() {
        1 => Elem::I1,
        0..=16 => Elem::I16,
        17..=32 => Elem::I32,
        33..=64 => Elem::I64,
        _ => Elem::I128,
    }
}

/// Text of one function, and bytes of the save area that it needs.
pub struct Emitted {
    /// `define …`
    pub text: String,
    /// Declarations of intrinsics.
    pub declared: std::collections::BTreeSet<String>,
    /// Bytes.
    pub save_size: u64,
    /// Whether threads need local windows.
    pub uses_local: bool,
}

/// Symbol of a function.
pub fn symbol(id: FuncId) -> String {
    format!("f{}", id.0)
}

/// Emits a kernel or device function.
pub fn emit(ir: &Ir<Placed>, id: FuncId, options: &Options, sites: &mut Vec<Site>) -> Result<Emitted> {
    let func = ir.func(id);
    let trivial = |b: BlockId| trivial_exit(func, b);
    let cfg = Cfg::new(func, |from, to| {
        trivial(to) && matches!(func.blocks[from.0 as usize].term, Terminator::Branch { .. })
    });
    let spins = spins(func, &cfg);
    let warp = WarpShape { interleaved: spins, ..options.warp };
    let uniformity = Uniformity::new(func, &cfg, warp);
    let live = Liveness::new(func, &cfg);
    let kernel = func.kind == margay_check::FuncKind::Kernel;
    let whole = kernel && options.warp.block.is_some_and(|b| b[0].wrapping_mul(b[1]).wrapping_mul(b[2]) % 32 == 0);
    let masks = !whole || spins || uniformity.branches.iter().any(|b| *b);
    let mut e = Emitter {
        ir,
        id,
        func,
        options,
        cfg,
        uniformity,
        live,
        w: Writer::default(),
        slots: Vec::new(),
        masks,
        spins,
        fuel: None,
        mode: Mode::Full,
        active: constant(Ty::lanes(Elem::I1), 1),
        pending: Vec::new(),
        sites,
        blended: Vec::new(),
        lazy: super::alu::lazy_registers(func),
        frame: Vec::new(),
        save_offsets: HashMap::new(),
        save_size: 0,
        resumes: Vec::new(),
        inst: 0,
        at: 0,
        row: None,
        uses_local: false,
    };
    e.function(kernel)
}

/// A block that does nothing but end the thread: lanes that branch to it are done at once. Not in functions that return
/// registers, where the values must be kept.
pub(super) fn trivial_exit(func: &Func, b: BlockId) -> bool {
    let block = &func.blocks[b.0 as usize];
    block.insts.is_empty()
        && match block.term {
            Terminator::Ret => func.rets.is_empty(),
            Terminator::Exit => func.kind == margay_check::FuncKind::Kernel,
            _ => false,
        }
}

/// Whether loops of a function may wait for other threads: a lock taken by `atom.cas` or `atom.exch`, or a flag that is
/// watched by ordered loads.
fn spins(func: &Func, cfg: &Cfg) -> bool {
    use margay_isa::{Mod, Opcode};
    let watches = |inst: &Inst| {
        let v = func.variant(inst);
        let has = |mods: &[Mod]| mods.iter().any(|m| v.has(*m));
        v.op == Opcode::Atom && has(&[Mod::Cas, Mod::Exch])
            || v.op == Opcode::Ld && has(&[Mod::Volatile, Mod::Acquire, Mod::Relaxed, Mod::Mmio])
    };
    let looped = |b: &BlockId| cfg.innermost(cfg.position[b.0 as usize]).is_some();
    cfg.order.iter().filter(|b| looped(b)).any(|b| func.insts(&func.blocks[b.0 as usize]).iter().any(watches))
}

impl Emitter<'_> {
    fn function(&mut self, kernel: bool) -> Result<Emitted> {
        self.allocate();
        self.meetings()?;
        // The entry: whole warps begin in the full version.
        self.w.block("start");
        self.load_formals()?;
        if self.masks {
            let alive =
                if kernel { self.ctx_value(Elem::I32, at::ALIVE) } else { named(Ty::scalar(Elem::I32), "%mask") };
            let all = self.w.cmp("icmp eq", &alive, &int(Elem::I32, -1));
            self.w.branch(&all, "b0.full", "enter.masked");
            self.w.block("enter.masked");
            let mask = self.unpack_bits(&alive);
            self.set_pending(0, &mask);
            self.w.jump("b0.masked");
        } else {
            self.w.jump("b0.full");
        }
        for position in 0..self.cfg.order.len() {
            let b = self.cfg.order[position];
            self.mode = Mode::Full;
            self.active = constant(Ty::lanes(Elem::I1), 1);
            self.block(b)?;
        }
        if self.masks {
            for position in 0..self.cfg.order.len() {
                let b = self.cfg.order[position];
                self.mode = Mode::Masked;
                self.block(b)?;
            }
            self.w.block("swept");
            self.finish_sweep();
            if self.spins {
                self.let_others_go_on();
            }
        }
        self.w.block("done");
        self.w.line(format_args!("ret i32 {}", status::DONE));
        self.w.block("stop");
        self.w.line(format_args!("ret i32 {}", status::STOP));
        Ok(self.assemble(kernel))
    }

    /// Refuses functions in which lanes on different sides of a branch may take part in one warp operation: a sweep runs one
    /// side after the other.
    fn meetings(&mut self) -> Result<()> {
        use margay_isa::{Mod, Opcode};
        let meets = |inst: &&Inst| {
            let v = self.func.variant(inst);
            v.has(Mod::Sync)
                && matches!(v.op, Opcode::Shfl | Opcode::Vote | Opcode::Match | Opcode::Redux | Opcode::Bar)
        };
        let mut found: Vec<(BlockId, u32)> = Vec::new();
        for b in &self.cfg.order {
            let first = self.func.insts(&self.func.blocks[b.0 as usize]).iter().find(meets);
            found.extend(first.map(|i| (*b, i.at)));
        }
        for (i, (a, at)) in found.iter().enumerate() {
            if found[..i].iter().any(|(b, _)| self.uniformity.apart(*a, *b)) {
                self.at = *at;
                return self.refuse("warp operations on two sides of a branch");
            }
        }
        Ok(())
    }

    fn assemble(&mut self, kernel: bool) -> Emitted {
        let mut text = String::with_capacity(self.w.body.len() + self.w.allocas.len() + 1024);
        let args =
            if kernel { "ptr noalias %ctx" } else { "ptr noalias %ctx, i32 %mask, i32 %frame, ptr %args, ptr %rets" };
        let _ = writeln!(text, "define i32 @{}({args}) #0 {{\nentry:", symbol(self.id));
        text.push_str(&self.w.allocas);
        if self.resumes.is_empty() {
            text.push_str("  br label %start\n");
        } else {
            let _ = writeln!(text, "  %resume.p = getelementptr i8, ptr %ctx, i64 {}", at::RESUME);
            text.push_str("  %resume = load i32, ptr %resume.p, align 4\n  switch i32 %resume, label %start [\n");
            for (i, label) in self.resumes.iter().enumerate() {
                let _ = writeln!(text, "    i32 {}, label %{label}", i + 1);
            }
            text.push_str("  ]\n");
        }
        text.push_str(&self.w.body);
        text.push_str("}\n");
        Emitted {
            text,
            declared: std::mem::take(&mut self.w.declared),
            save_size: self.save_size,
            uses_local: self.uses_local,
        }
    }

    fn allocate(&mut self) {
        let func = self.func;
        for (r, ty) in func.regs.iter().enumerate() {
            let (shape, elem) = (self.uniformity.shapes[r], elem_of(*ty));
            let slot = self.slot_type(shape, elem);
            let pointer = self.w.alloca(&slot, if shape == Shape::Varying { 64 } else { 8 });
            self.slots.push(Slot { pointer, shape, elem, shadow: None });
        }
        self.make_shadows();
        if self.masks {
            let ty = self.packed_type().to_string();
            self.pending = (0..func.blocks.len()).map(|_| self.w.alloca(&ty, 64)).collect();
            for p in self.pending.clone() {
                let _ = writeln!(self.w.allocas, "  store {ty} zeroinitializer, ptr {p}, align 4");
            }
        }
        if self.spins {
            let fuel = self.w.alloca("i32", 4);
            let _ = writeln!(self.w.allocas, "  store i32 {PATIENCE}, ptr {fuel}, align 4");
            self.fuel = Some(fuel);
        }
        self.blended = self.find_blended();
        self.frame = super::frame::promote(self);
    }

    /// Registers whose masked writes must keep inactive lanes: those with several definitions, and those that lanes which
    /// left the loop of their definition still need.
    fn find_blended(&self) -> Vec<bool> {
        let n = self.func.regs.len();
        let (mut defs, mut def_block) = (vec![0u32; n], vec![0u32; n]);
        for (b, block) in self.func.blocks.iter().enumerate() {
            for inst in self.func.insts(block) {
                margay_ir::pass::liveness::inst_writes(self.func, inst, &mut |r| {
                    defs[r.0 as usize] += 1 + u32::from(inst.guard.is_some());
                    def_block[r.0 as usize] = b as u32;
                });
            }
        }
        for home in self.func.params.iter().chain(&self.func.rets) {
            if let FormalHome::Regs(regs) = home {
                regs.iter().for_each(|r| defs[r.0 as usize] += 2);
            }
        }
        (0..n)
            .map(|r| {
                let position = self.cfg.position[def_block[r] as usize];
                let escapes = || {
                    self.cfg.loops.iter().filter(|l| l.first <= position && position <= l.last).any(|l| {
                        (0..self.cfg.order.len() as u32)
                            .filter(|p| *p < l.first || *p > l.last)
                            .any(|p| self.live.live_in[self.cfg.order[p as usize].0 as usize].has(r as u32))
                    })
                };
                defs[r] > 1 || !self.cfg.reducible || self.spins || escapes()
            })
            .collect()
    }

    pub fn slot_type(&self, shape: Shape, elem: Elem) -> String {
        match (shape, elem) {
            (Shape::Varying, Elem::I1) => self.packed_type().to_string(),
            (Shape::Varying, e) => Ty::lanes(e).to_string(),
            (shape, e) => rows::slot_type(rows_of(shape).map_or(32, |(w, _)| w), e),
        }
    }

    /// The instruction cannot be compiled.
    pub fn refuse<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(Refused { what: what.into(), func: self.id, at: self.at })
    }

    // ---- masks ----

    /// Type of a mask in a slot.
    pub fn packed_type(&self) -> Ty {
        if self.options.mask_registers { Ty::scalar(Elem::I32) } else { Ty::lanes(Elem::I32) }
    }

    /// `<32 x i1>` to the form that slots hold.
    pub fn pack(&mut self, mask: &Val) -> Val {
        let mask = self.w.splat(mask);
        let ty = self.packed_type();
        if ty.vector {
            self.w.cast("sext", &mask, Elem::I32)
        } else {
            self.w.value(ty, format_args!("bitcast {} {mask} to i32", mask.ty))
        }
    }

    /// From the form that slots hold to `<32 x i1>`.
    pub fn unpack(&mut self, packed: &Val) -> Val {
        if packed.ty.vector { self.w.cast("trunc", packed, Elem::I1) } else { self.unpack_bits(packed) }
    }

    /// From 32 bits to `<32 x i1>`.
    pub fn unpack_bits(&mut self, bits: &Val) -> Val {
        let ty = Ty::lanes(Elem::I1);
        self.w.value(ty, format_args!("bitcast i32 {bits} to {ty}"))
    }

    /// `<32 x i1>` to 32 bits.
    pub fn bits(&mut self, mask: &Val) -> Val {
        let mask = self.w.splat(mask);
        self.w.value(Ty::scalar(Elem::I32), format_args!("bitcast {} {mask} to i32", mask.ty))
    }

    /// Whether any lane is in it: `i1`.
    pub fn any(&mut self, mask: &Val) -> Val {
        let bits = self.bits(mask);
        self.w.cmp("icmp ne", &bits, &int(Elem::I32, 0))
    }

    /// Bits of the active lanes.
    pub fn active_bits(&mut self) -> Val {
        match self.mode {
            Mode::Full => int(Elem::I32, -1),
            Mode::Masked => {
                let active = self.active.clone();
                self.bits(&active)
            }
        }
    }

    /// Lanes that wait to execute a block.
    pub fn get_pending(&mut self, b: u32) -> Val {
        let (ty, p) = (self.packed_type(), self.pending[b as usize].clone());
        let packed = self.w.load(ty, &p, 4);
        self.unpack(&packed)
    }

    /// Replaces them.
    pub fn set_pending(&mut self, b: u32, mask: &Val) {
        let (packed, p) = (self.pack(mask), self.pending[b as usize].clone());
        self.w.store(&packed, &p, 4);
    }

    // ---- context and helpers ----

    /// Pointer into the context.
    pub fn ctx_pointer(&mut self, offset: u64) -> Val {
        self.w.offset_const(&named(Ty::scalar(Elem::Ptr), "%ctx"), offset)
    }

    /// A scalar of the context.
    pub fn ctx_value(&mut self, elem: Elem, offset: u64) -> Val {
        let p = self.ctx_pointer(offset);
        self.w.load(Ty::scalar(elem), &p, 4)
    }

    /// A scalar of the context that never changes while the context is in use.
    pub fn ctx_fixed(&mut self, elem: Elem, offset: u64) -> Val {
        let p = self.ctx_pointer(offset);
        self.w.fixed_load(Ty::scalar(elem), &p, 4)
    }

    /// Registers a site and gives its number.
    pub fn site(&mut self, kind: SiteKind) -> usize {
        self.sites.push(Site { func: self.id.0, inst: self.inst, at: self.at, kind });
        self.sites.len() - 1
    }

    /// Calls a helper; `args` follow the context. Stops the function when a status says so.
    pub fn helper(&mut self, helper: Helper, args: &[&Val], returns: bool) {
        let table = self.ctx_fixed(Elem::Ptr, at::HELPERS);
        let entry = self.w.offset_const(&table, helper as u64 * 8);
        let f = self.w.fixed_load(Ty::scalar(Elem::Ptr), &entry, 8);
        let list: String = args.iter().fold(String::new(), |mut s, a| {
            let _ = write!(s, ", {} {a}", a.ty);
            s
        });
        if !returns {
            self.w.line(format_args!("call void {f}(ptr %ctx{list})"));
            return;
        }
        let result = self.w.value(Ty::scalar(Elem::I32), format_args!("call i32 {f}(ptr %ctx{list})"));
        let bad = self.w.cmp("icmp ne", &result, &int(Elem::I32, 0));
        let go_on = self.w.label("ok");
        self.w.branch_unlikely(&bad, "stop", &go_on);
        self.w.block(&go_on);
    }

    // ---- registers ----

    /// A register's value in its natural shape: scalar if uniform, else vector (affine ones are spread out). Predicates are
    /// `i1` or `<32 x i1>`.
    pub fn read(&mut self, r: VReg) -> Val {
        let slot = self.slots[r.0 as usize].clone();
        match (slot.shape, slot.elem) {
            (Shape::Varying, Elem::I1) => {
                let packed = self.w.load(self.packed_type(), &slot.pointer, 4);
                self.unpack(&packed)
            }
            (Shape::Varying, e) => self.w.load(Ty::lanes(e), &slot.pointer, 64),
            (Shape::Uniform, e) => self.w.load(Ty::scalar(e), &slot.pointer, 1),
            (Shape::Rows { width, stride }, _) => self.read_spread(&slot, width, stride),
        }
    }

    /// Writes a register for the active lanes (and, where `mask` is given, only for those of them).
    pub fn write(&mut self, r: VReg, v: &Val, mask: Option<&Val>) {
        let slot = self.slots[r.0 as usize].clone();
        if slot.shape != Shape::Varying {
            return self.write_shaped(&slot, v, mask);
        }
        match &slot.shadow {
            Some(s) if !v.ty.vector && mask.is_none() && s.stride == 0 => {
                let bases = vec![v.clone(); (32 / s.width) as usize];
                self.write_rows(&s.bases, slot.elem, &bases);
                self.w.store(&int(Elem::I1, 0), &s.bent, 1);
            }
            _ => self.bend(r),
        }
        let v = self.w.splat(v);
        let keep = match (self.mode, mask) {
            (Mode::Full, None) => None,
            (Mode::Full, Some(m)) => Some(self.w.splat(m)),
            (Mode::Masked, None) => self.blended[r.0 as usize].then(|| self.active.clone()),
            (Mode::Masked, Some(m)) => {
                let active = self.active.clone();
                Some(self.w.op("and", &active, m))
            }
        };
        let v = match keep {
            Some(mask) => {
                let old = self.read(r);
                self.w.select(&mask, &v, &old)
            }
            None => v,
        };
        let packed = if slot.elem == Elem::I1 { self.pack(&v) } else { v };
        self.w.store(&packed, &slot.pointer, if slot.elem == Elem::I1 { 4 } else { 64 });
    }

    /// An operand's value as integer bits of `elem`, NaNs made canonical where arithmetic left the host's.
    pub fn value(&mut self, operand: &Operand, elem: Elem) -> Result<Val> {
        match operand {
            Operand::Reg(r) if self.lazy[r.0 as usize] => {
                let v = self.raw_value(operand, Elem::I32)?;
                let v = self.canonical(&v);
                Ok(self.w.resize(&v, elem, false))
            }
            _ => self.raw_value(operand, elem),
        }
    }

    /// An operand's value as integer bits of `elem`; registers of another width are cut or zero-extended.
    pub fn raw_value(&mut self, operand: &Operand, elem: Elem) -> Result<Val> {
        Ok(match operand {
            Operand::Reg(r) => {
                let v = match self.row {
                    Some(row) => match self.read_row(*r, row) {
                        Some(v) => v,
                        None => return self.refuse("rows of a varying register"),
                    },
                    None => self.read(*r),
                };
                self.w.resize(&v, elem, false)
            }
            Operand::Not(r) => {
                let v = self.read(*r);
                self.w.op_const("xor", &v, 1)
            }
            Operand::Imm(bits) => match elem {
                Elem::I64 => int(elem, i128::from(*bits as i64)),
                Elem::I128 => int(elem, i128::from(*bits)),
                _ => int(elem, i128::from(*bits as i64)),
            },
            Operand::Special(s, c) => {
                let v = match self.row {
                    Some(row) => self.special_row(*s, *c, row)?,
                    None => self.special(*s, *c)?,
                };
                self.w.resize(&v, elem, false)
            }
            Operand::GlobalAddr(g, offset) => {
                let v = self.global_address(g.0, *offset);
                self.w.resize(&v, elem, false)
            }
            Operand::FrameAddr(f, offset) => {
                let v = self.frame_address(f.0, *offset);
                self.w.resize(&v, elem, false)
            }
            Operand::ParamAddr(offset) => int(elem, i128::from(*offset)),
            Operand::Func(f) => int(elem, i128::from(margay_exec::Image::function_address(*f))),
            Operand::Mem(..) | Operand::Call(_) | Operand::Sink => return self.refuse("operand"),
        })
    }

    /// Address of a module variable in its space.
    pub fn global_address(&mut self, global: u32, offset: i64) -> Val {
        let table = self.ctx_fixed(Elem::Ptr, at::GLOBALS);
        let entry = self.w.offset_const(&table, u64::from(global) * 8);
        let base = self.w.fixed_load(Ty::scalar(Elem::I64), &entry, 8);
        self.w.op_const("add", &base, i128::from(offset))
    }

    /// Offset of a frame variable in the thread's local window.
    pub fn frame_address(&mut self, frame: u32, offset: i64) -> Val {
        let within = i128::from(self.ir.stage.funcs[self.id.0 as usize].frame[frame as usize]) + i128::from(offset);
        if self.func.kind == margay_check::FuncKind::Kernel {
            int(Elem::I32, within)
        } else {
            self.w.op_const("add", &named(Ty::scalar(Elem::I32), "%frame"), within)
        }
    }

    /// A special register: scalar where it is uniform, else a vector.
    pub fn special(&mut self, s: Special, c: Component) -> Result<Val> {
        use Special::*;
        let index = c as u64;
        if index == 3 && matches!(s, Tid | Ctaid) {
            return Ok(int(Elem::I32, 0));
        }
        if index == 3 && matches!(s, Ntid | Nctaid) {
            return Ok(int(Elem::I32, 1));
        }
        Ok(match s {
            Tid => {
                let p = self.ctx_pointer(at::TID + 128 * index);
                match self.options.warp.special(s, c) {
                    Shape::Uniform => self.w.fixed_load(Ty::scalar(Elem::I32), &p, 4),
                    _ => self.w.fixed_load(Ty::lanes(Elem::I32), &p, 64),
                }
            }
            Ntid => match self.options.warp.block {
                Some(b) => int(Elem::I32, i128::from(b[c as usize])),
                None => self.ctx_value(Elem::I32, at::BLOCK + 4 * index),
            },
            Ctaid => self.ctx_value(Elem::I32, at::CTA + 4 * index),
            Nctaid => self.ctx_value(Elem::I32, at::GRID + 4 * index),
            LaneId => per_lane(Elem::I32, i128::from),
            WarpId => self.ctx_value(Elem::I32, at::WARP),
            NwarpId => match self.options.warp.block {
                Some(b) => int(Elem::I32, i128::from((b[0] * b[1] * b[2]).div_ceil(32))),
                None => return self.refuse("%nwarpid without a known block shape"),
            },
            LanemaskEq => per_lane(Elem::I32, |l| 1 << l),
            LanemaskLt => per_lane(Elem::I32, |l| (1 << l) - 1),
            LanemaskLe => per_lane(Elem::I32, |l| (2 << l) - 1),
            LanemaskGt => per_lane(Elem::I32, |l| !((2i128 << l) - 1)),
            LanemaskGe => per_lane(Elem::I32, |l| !((1i128 << l) - 1)),
            SmId | GridId => int(elem_of(s.info().ty), 0),
            NsmId => int(Elem::I32, 1),
            DynamicSmemSize => self.ctx_value(Elem::I32, at::DYNAMIC_SHARED),
            TotalSmemSize => {
                let size = self.ctx_value(Elem::I64, at::SHARED_SIZE);
                self.w.resize(&size, Elem::I32, false)
            }
            Clock | ClockHi | Clock64 | GlobalTimer | GlobalTimerLo | GlobalTimerHi => {
                let v = self.w.intrinsic_named("llvm.readcyclecounter", Ty::scalar(Elem::I64), &[]);
                let v = if matches!(s, ClockHi | GlobalTimerHi) { self.w.op_const("lshr", &v, 32) } else { v };
                self.w.resize(&v, elem_of(s.info().ty), false)
            }
            _ => return self.refuse(s.info().name),
        })
    }

    /// Registers live after the current instruction.
    pub fn live_after(&self, block: BlockId, inst: u32) -> BitSet {
        let first = self.func.blocks[block.0 as usize].insts.start;
        self.live.after(self.func, block.0, (inst - first) as usize)
    }

    /// The guard as a mask or scalar, if there is one.
    pub fn guard(&mut self, inst: &Inst) -> Option<Val> {
        let (p, negated) = inst.guard?;
        let v = self.read(p);
        Some(if negated { self.w.op_const("xor", &v, 1) } else { v })
    }
}
