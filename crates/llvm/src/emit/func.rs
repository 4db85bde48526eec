//! One function: slots for registers, values in and out of slots, the context, calls of helpers.

use super::{
    group::Grouped,
    rows::{self, Row, Shadow, rows_of},
    site::{Site, SiteKind},
    text::{Elem, Ty, Val, Writer, constant, int, named, per_lane},
};
use crate::ctx::{Helper, at, status};
use margay_ir::{
    BlockId, FormalHome, Func, FuncId, Inst, Ir, Operand, Placed, Terminator, VReg,
    pass::{
        Barrier, Cfg, Liveness, Shape, Uniformity, WarpShape, is_cta_barrier, propagate_constants, split_at_barriers,
    },
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
    /// Write kernels to be called warp by warp, on stacks.
    pub stacks: bool,
}

/// Back edges that lanes take before others get their turn, in functions whose loops may wait for them.
const PATIENCE: u32 = 256;

/// Back edges that code takes before it asks the host whether to go on.
pub const PERIOD: u32 = 1 << 16;

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

/// What a function is to its callers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// A device function: called for the lanes of a mask.
    Device,
    /// A kernel that is called for one warp, on a stack of its own, and can wait there.
    Warp,
    /// A kernel that loops over CTAs and warps itself.
    Grid,
}

pub(super) struct Emitter<'a> {
    pub ir: &'a Ir<Placed>,
    pub id: FuncId,
    pub func: &'a Func,
    pub options: &'a Options,
    pub role: Role,
    /// How the device functions wait that the kernel reaches.
    waits: Waits,
    pub cfg: Cfg,
    pub uniformity: Uniformity,
    pub live: Liveness,
    pub w: Writer,
    pub slots: Vec<Slot>,
    /// Needs a masked version at all.
    pub masks: bool,
    /// Loops may wait for other threads, so lanes that loop must let others go on.
    pub spins: bool,
    /// Back edges left until they do, or until the host is asked.
    pub fuel: Option<Val>,
    pub mode: Mode,
    /// Active lanes, `<32 x i1>`; in full mode all.
    pub active: Val,
    /// Waiting lanes by block.
    pub pending: Vec<Val>,
    /// Barriers, which end blocks; by block, which.
    pub barriers: Vec<Barrier>,
    pub barrier_at: Vec<Option<u32>>,
    /// Lanes that wait at a barrier, by barrier; where warps can wait.
    pub waiting: Vec<Val>,
    /// Blocks being written, by layout position, and what their labels begin with.
    pub region: Vec<BlockId>,
    pub tag: String,
    /// Lanes that have not ended: a variable of 32 bits.
    pub alive: Option<Val>,
    /// For kernels that loop: the current warp and its local window, and variables of the CTA's index.
    pub current: Option<super::kernel::Current>,
    /// By barrier with a reduction: variables that count true predicates and all predicates.
    pub sums: HashMap<u32, [Val; 2]>,
    /// Fields of the context that were loaded at the entry.
    constants: HashMap<(u64, Elem), Val>,
    /// Parameters that were loaded there: by offset and element.
    loaded: HashMap<(u64, Elem), Val>,
    pub keep: super::keep::Keep,
    pub sites: &'a mut Vec<Site>,
    /// Registers whose writes under a mask must keep the other lanes.
    pub blended: Vec<bool>,
    /// Registers that may hold the host's NaNs.
    pub lazy: Vec<bool>,
    /// Promoted frame variables: words of `<32 x i32>`.
    pub frame: Vec<Option<Val>>,
    pub inst: u32,
    pub at: u32,
    /// Accesses that share a check, by instruction.
    pub groups: HashMap<u32, Grouped>,
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

/// Text of one function, and what its callers must provide.
pub struct Emitted {
    /// `define …`
    pub text: String,
    /// Declarations of intrinsics.
    pub declared: std::collections::BTreeSet<String>,
    /// Bytes that all warps together keep across barriers.
    pub keep_size: u64,
    /// Whether threads need local windows.
    pub uses_local: bool,
    /// The kernel is called warp by warp, and warps need stacks of their own.
    pub by_warp: bool,
}

/// Symbol of a function.
pub fn symbol(id: FuncId) -> String {
    format!("f{}", id.0)
}

/// How functions wait for other threads: then the warps of a kernel that calls them need stacks of their own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Waits {
    /// Not at all.
    Never,
    /// In loops.
    Spinning,
    /// At barriers.
    AtBarriers,
}

/// How a function waits.
pub fn waits(func: &Func) -> Waits {
    match () {
        _ if func.insts.iter().any(|i| is_cta_barrier(func, i)) => Waits::AtBarriers,
        _ if spins(func, &Cfg::new(func, |_, _| false)) => Waits::Spinning,
        _ => Waits::Never,
    }
}

/// Emits a kernel or device function; `waits` says how the functions wait that the kernel calls.
pub fn emit(ir: &Ir<Placed>, id: FuncId, options: &Options, waits: Waits, sites: &mut Vec<Site>) -> Result<Emitted> {
    let stacks = options.stacks || waits != Waits::Never;
    let original = ir.func(id);
    let (mut copy, barriers) = split_at_barriers(original);
    propagate_constants(&mut copy);
    let func = &copy;
    let trivial = |b: BlockId| trivial_exit(func, b);
    let cfg = Cfg::new(func, |from, to| {
        trivial(to) && matches!(func.blocks[from.0 as usize].term, Terminator::Branch { .. })
    });
    let spins = spins(func, &cfg);
    let warp = WarpShape { interleaved: spins, ..options.warp };
    let uniformity = Uniformity::new(func, &cfg, warp);
    let live = Liveness::new(func, &cfg);
    let kernel = func.kind == margay_check::FuncKind::Kernel;
    let cta = (kernel && !stacks && !spins)
        .then(|| Uniformity::new(func, &cfg, WarpShape { cta: true, ..options.warp }))
        .filter(|cta| super::kernel::fits(func, &cfg, cta, &barriers, options));
    let role = match (kernel, &cta) {
        (false, _) => Role::Device,
        (true, Some(_)) => Role::Grid,
        (true, None) => Role::Warp,
    };
    let whole = kernel && options.warp.block.is_some_and(|b| b[0].wrapping_mul(b[1]).wrapping_mul(b[2]) % 32 == 0);
    let masks = !whole || spins || role != Role::Grid && !barriers.is_empty() || uniformity.branches.iter().any(|b| *b);
    let mut barrier_at = vec![None; func.blocks.len()];
    barriers.iter().enumerate().for_each(|(k, b)| barrier_at[b.block.0 as usize] = Some(k as u32));
    let keep = super::keep::Keep::new(func, &cfg, &uniformity, cta);
    let region = cfg.order.clone();
    let mut e = Emitter {
        ir,
        id,
        func,
        options,
        role,
        waits,
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
        barriers,
        barrier_at,
        waiting: Vec::new(),
        region,
        tag: String::new(),
        alive: None,
        current: None,
        sums: HashMap::new(),
        constants: HashMap::new(),
        loaded: HashMap::new(),
        keep,
        sites,
        blended: Vec::new(),
        lazy: super::lazy::lazy_registers(func),
        frame: Vec::new(),
        inst: 0,
        at: 0,
        groups: super::group::find(func),
        row: None,
        uses_local: false,
    };
    e.function()
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
    fn function(&mut self) -> Result<Emitted> {
        self.allocate();
        self.meetings()?;
        self.w.block("start");
        match self.role {
            Role::Grid => self.grid()?,
            Role::Warp | Role::Device => self.whole()?,
        }
        self.w.block("stop");
        self.w.line(format_args!("ret i32 {}", status::STOP));
        Ok(self.assemble())
    }

    /// The whole function as one region, for the lanes of one mask.
    fn whole(&mut self) -> Result<()> {
        self.load_formals()?;
        let lanes = match self.role {
            Role::Device => named(Ty::scalar(Elem::I32), "%mask"),
            _ => self.ctx_value(Elem::I32, at::ALIVE),
        };
        self.begin(&lanes, BlockId(0));
        self.bodies()?;
        self.w.block("done");
        self.w.line(format_args!("ret i32 {}", status::DONE));
        Ok(())
    }

    /// Lanes begin a region: all 32 in the full version.
    pub fn begin(&mut self, lanes: &Val, entry: BlockId) {
        if let Some(alive) = self.alive.clone() {
            self.w.store(lanes, &alive, 4);
        }
        let full = self.full_label(entry);
        if !self.masks {
            return self.w.jump(&full);
        }
        let all = self.w.cmp("icmp eq", lanes, &int(Elem::I32, -1));
        let part = self.w.label("enter.masked");
        self.w.branch(&all, &full, &part);
        self.w.block(&part);
        let mask = self.unpack_bits(lanes);
        self.set_pending(entry.0, &mask);
        let masked = self.masked_label(entry);
        self.w.jump(&masked);
    }

    /// Both versions of the blocks of the current region.
    pub fn bodies(&mut self) -> Result<()> {
        for b in self.region.clone() {
            self.mode = Mode::Full;
            self.active = constant(Ty::lanes(Elem::I1), 1);
            self.block(b)?;
        }
        if self.masks {
            for b in self.region.clone() {
                self.mode = Mode::Masked;
                self.block(b)?;
            }
            let swept = self.swept_label();
            self.w.block(&swept);
            self.finish_sweep();
            if self.spins {
                self.let_others_go_on();
            }
        }
        self.mode = Mode::Full;
        self.active = constant(Ty::lanes(Elem::I1), 1);
        Ok(())
    }

    /// Refuses functions in which lanes on different sides of a branch may take part in one warp operation, or wait in a
    /// function that they call from there: a sweep runs one side after the other. Barriers may stand on both sides.
    fn meetings(&mut self) -> Result<()> {
        use margay_isa::{Mod, Opcode};
        let meets = |inst: &&Inst| {
            let v = self.func.variant(inst);
            v.has(Mod::Sync)
                && matches!(v.op, Opcode::Shfl | Opcode::Vote | Opcode::Match | Opcode::Redux | Opcode::Bar)
                || is_cta_barrier(self.func, inst)
        };
        let mut found: Vec<(BlockId, u32, bool)> = Vec::new();
        for b in &self.cfg.order {
            for inst in self.func.insts(&self.func.blocks[b.0 as usize]).iter().filter(meets) {
                found.push((*b, inst.at, is_cta_barrier(self.func, inst)));
            }
        }
        found.dedup_by_key(|(b, _, barrier)| (*b, *barrier));
        for (i, (a, at, barrier)) in found.iter().enumerate() {
            let meet = |(b, _, other): &(BlockId, u32, bool)| !(*barrier && *other) && self.uniformity.apart(*a, *b);
            if found[..i].iter().any(meet) {
                self.at = *at;
                return self.refuse("warp operations on two sides of a branch");
            }
        }
        for b in &self.cfg.order {
            if self.waits != Waits::AtBarriers || !self.uniformity.divergent[b.0 as usize] {
                continue;
            }
            let call = |inst: &&Inst| self.func.variant(inst).op == Opcode::Call;
            if let Some(inst) = self.func.insts(&self.func.blocks[b.0 as usize]).iter().find(call) {
                self.at = inst.at;
                return self.refuse("a call in divergent code, where some device function waits at barriers");
            }
        }
        Ok(())
    }

    fn assemble(&mut self) -> Emitted {
        let mut text = String::with_capacity(self.w.body.len() + self.w.entry.len() + 1024);
        let args = match self.role {
            Role::Device => "ptr noalias %ctx, i32 %mask, i32 %frame, ptr %args, ptr %rets",
            Role::Warp | Role::Grid => "ptr noalias %ctx",
        };
        let _ = writeln!(text, "define i32 @{}({args}) #0 {{\nentry:", symbol(self.id));
        text.push_str(&self.w.entry);
        text.push_str("  br label %start\n");
        text.push_str(&self.w.body);
        text.push_str("}\n");
        Emitted {
            text,
            declared: std::mem::take(&mut self.w.declared),
            keep_size: self.keep.size,
            uses_local: self.uses_local,
            by_warp: self.role == Role::Warp,
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
                let _ = writeln!(self.w.entry, "  store {ty} zeroinitializer, ptr {p}, align 4");
            }
            // The host must know which lanes live where warps wait for each other.
            self.alive = Some(match self.role {
                Role::Warp => {
                    let p = format_args!("getelementptr i8, ptr %ctx, i64 {}", at::ALIVE);
                    self.w.at_entry(Ty::scalar(Elem::Ptr), p)
                }
                Role::Device | Role::Grid => self.w.alloca("i32", 4),
            });
        }
        if self.role != Role::Grid {
            self.waiting = (0..self.barriers.len()).map(|_| self.w.alloca("i32", 4)).collect();
            for p in self.waiting.clone() {
                let _ = writeln!(self.w.entry, "  store i32 0, ptr {p}, align 4");
            }
        }
        if !self.cfg.loops.is_empty() || !self.cfg.reducible {
            let fuel = self.w.alloca("i32", 4);
            let _ = writeln!(self.w.entry, "  store i32 {}, ptr {fuel}, align 4", self.period());
            self.fuel = Some(fuel);
        }
        self.blended = self.find_blended();
        self.frame = super::frame::promote(self);
    }

    /// Back edges from one break to the next.
    pub fn period(&self) -> u32 {
        if self.spins { PATIENCE } else { PERIOD }
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

    /// Type of a slot.
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

    /// Lanes that have not ended, as bits.
    pub fn alive_bits(&mut self) -> Val {
        match self.alive.clone() {
            Some(alive) => self.w.load(Ty::scalar(Elem::I32), &alive, 4),
            None => int(Elem::I32, -1),
        }
    }

    /// Lanes have ended.
    pub fn bury(&mut self, lanes: &Val) {
        let Some(alive) = self.alive.clone() else { return };
        let bits = self.bits(lanes);
        let rest = self.w.op_const("xor", &bits, -1);
        let old = self.w.load(Ty::scalar(Elem::I32), &alive, 4);
        let left = self.w.op("and", &old, &rest);
        self.w.store(&left, &alive, 4);
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

    /// A scalar of the context. What stays the same is loaded once, at the entry.
    pub fn ctx_value(&mut self, elem: Elem, offset: u64) -> Val {
        if let (at::LOCAL, Some(current)) = (offset, &self.current) {
            self.uses_local = true;
            return current.local.clone();
        }
        let constant = at::is_constant(offset) || self.role != Role::Grid && matches!(offset, at::LOCAL | at::WARP);
        if !constant {
            let p = self.ctx_pointer(offset);
            return self.w.load(Ty::scalar(elem), &p, 4);
        }
        if let Some(known) = self.constants.get(&(offset, elem)) {
            return known.clone();
        }
        let p = self.w.at_entry(Ty::scalar(Elem::Ptr), format_args!("getelementptr i8, ptr %ctx, i64 {offset}"));
        let v = self.w.at_entry(Ty::scalar(elem), format_args!("load {}, ptr {p}, align 4", Ty::scalar(elem)));
        self.constants.insert((offset, elem), v.clone());
        v
    }

    /// Elements of the kernel's parameters, loaded once at the entry; `None` if they lie outside of them.
    pub fn parameters(&mut self, offset: i64, elem: Elem, count: u32) -> Option<Vec<Val>> {
        let bytes = u64::from(elem.bits() / 8);
        let ends = self.func.params.iter().zip(&self.func.sig.params).map(|(home, value)| match home {
            FormalHome::Kernel(at) => u64::from(at + value.size),
            _ => 0,
        });
        let (first, end) = (u64::try_from(offset).ok()?, ends.max().unwrap_or(0));
        if first + bytes * u64::from(count) > end {
            return None;
        }
        let block = self.ctx_value(Elem::Ptr, at::PARAMS);
        let ty = Ty::scalar(elem);
        let mut values = Vec::new();
        for i in 0..u64::from(count) {
            let place = first + i * bytes;
            if let Some(known) = self.loaded.get(&(place, elem)) {
                values.push(known.clone());
                continue;
            }
            let p = self.w.at_entry(Ty::scalar(Elem::Ptr), format_args!("getelementptr i8, ptr {block}, i64 {place}"));
            let v = self.w.at_entry(ty, format_args!("load {ty}, ptr {p}, align 1"));
            self.loaded.insert((place, elem), v.clone());
            values.push(v);
        }
        Some(values)
    }

    /// A scalar of the context that never changes while the context is in use.
    pub fn ctx_fixed(&mut self, elem: Elem, offset: u64) -> Val {
        self.ctx_value(elem, offset)
    }

    /// Registers a site and gives its number.
    pub fn site(&mut self, kind: SiteKind) -> usize {
        self.sites.push(Site { func: self.id.0, inst: self.inst, at: self.at, kind });
        self.sites.len() - 1
    }

    /// Calls a helper; `args` follow the context. Stops the function when a status says so.
    pub fn helper(&mut self, helper: Helper, args: &[&Val], returns: bool) {
        let p = self.ctx_pointer(at::HELPERS);
        let table = self.w.fixed_load(Ty::scalar(Elem::Ptr), &p, 8);
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
            Some(s) if !v.ty.vector && mask.is_none() && s.stride == 0 && !(s.whole && self.mode == Mode::Masked) => {
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
        let table = self.ctx_value(Elem::Ptr, at::GLOBALS);
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
            Tid => self.tid(c),
            Ntid => match self.options.warp.block {
                Some(b) => int(Elem::I32, i128::from(b[c as usize])),
                None => self.ctx_value(Elem::I32, at::BLOCK + 4 * index),
            },
            Ctaid => match self.current.as_ref().map(|c| c.cta[index as usize].clone()) {
                Some(p) => self.w.load(Ty::scalar(Elem::I32), &p, 4),
                None => self.ctx_value(Elem::I32, at::CTA + 4 * index),
            },
            Nctaid => self.ctx_value(Elem::I32, at::GRID + 4 * index),
            LaneId => per_lane(Elem::I32, i128::from),
            WarpId => self.warp_index(),
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

    /// `%warpid`
    pub fn warp_index(&mut self) -> Val {
        match &self.current {
            Some(current) => current.warp.clone(),
            None => self.ctx_value(Elem::I32, at::WARP),
        }
    }

    /// `%tid` of a lane, from the warp's index and the block shape.
    pub fn tid_of(&mut self, c: Component, lane: u32) -> Val {
        let Some([x, y, z]) = self.options.warp.block else {
            let p = self.tid_row(c);
            let p = self.w.offset_const(&p, u64::from(4 * lane));
            return self.w.fixed_load(Ty::scalar(Elem::I32), &p, 4);
        };
        // Threads in one step of the component, how many steps there are, and whether they begin anew.
        let (step, size, again) = match c {
            Component::X => (1, x, y * z > 1),
            Component::Y => (x, y, z > 1),
            Component::Z => (x * y, z, false),
            Component::W => (1, 1, false),
        };
        if size == 1 {
            return int(Elem::I32, 0);
        }
        let warp = self.warp_index();
        let mut v = self.w.op_const("mul", &warp, 32);
        if lane > 0 {
            v = self.w.op_const("add", &v, i128::from(lane));
        }
        if step > 1 {
            v = self.w.op_const("udiv", &v, i128::from(step));
        }
        if again { self.w.op_const("urem", &v, i128::from(size)) } else { v }
    }

    /// Pointer to `%tid` of the warp's lanes.
    fn tid_row(&mut self, c: Component) -> Val {
        let table = self.ctx_value(Elem::Ptr, at::TIDS);
        let warp = self.warp_index();
        let row = self.w.op_const("mul", &warp, 3);
        let row = self.w.op_const("add", &row, i128::from(c as u8));
        let bytes = self.w.op_const("mul", &row, 128);
        self.w.offset(&table, &bytes)
    }

    /// `%tid` of all lanes.
    fn tid(&mut self, c: Component) -> Val {
        if let (Some([x, y, z]), Some((width, stride))) =
            (self.options.warp.block, rows_of(self.options.warp.special(Special::Tid, c)))
        {
            if (width, stride) == (32, 0) {
                return self.tid_of(c, 0);
            }
            // Lanes do the same in every warp but for a whole number of rows.
            let per_warp = 32 / x.min(32);
            let steps = match c {
                Component::X if 32 % x == 0 => return per_lane(Elem::I32, |l| i128::from(l % x)),
                Component::Y if 32 % x == 0 && (y % per_warp == 0 || z == 1) => {
                    Some(per_lane(Elem::I32, |l| i128::from(l / x)))
                }
                _ if width == 32 => Some(per_lane(Elem::I32, i128::from)),
                _ => None,
            };
            if let Some(steps) = steps {
                let base = self.tid_of(c, 0);
                return self.w.op("add", &base, &steps);
            }
        }
        let p = self.tid_row(c);
        self.w.fixed_load(Ty::lanes(Elem::I32), &p, 64)
    }

    /// The guard as a mask or scalar, if there is one.
    pub fn guard(&mut self, inst: &Inst) -> Option<Val> {
        let (p, negated) = inst.guard?;
        let v = self.read(p);
        Some(if negated { self.w.op_const("xor", &v, 1) } else { v })
    }
}
