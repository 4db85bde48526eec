//! Emission of one function: options, variables of registers, the order in which blocks are written.

pub(in crate::emit) mod affine;
mod arms;
mod blend;
pub(in crate::emit) mod branch;
pub(in crate::emit) mod context;
pub(in crate::emit) mod control;
pub(in crate::emit) mod count;
mod members;
mod pin;
pub(in crate::emit) mod prepare;
pub(crate) mod reach;
mod serial;
mod state;
mod sweep;
pub(in crate::emit) mod value;

use serial::Serial;
pub(in crate::emit) use state::GridLoop;
use state::{Accesses, Floats, LaneSets, Local};
pub(in crate::emit) use state::{Calls, Emitter, Entry, Mode, Region, Role, Slot};

use crate::ctx::{at, status};
use crate::emit::{
    Interleaved,
    barrier::spill::SpillPlan,
    call::alike,
    call::signature::{parameters, result},
    call::stack::moves_stack,
    function::affine::affine_form,
    function::blend::Blend,
    function::prepare::Prepared,
    function::reach::{Reached, Waits, is_cluster_barrier},
    mask::Masks,
    memory::ahead::ChecksAhead,
    sink::sink,
    site::Site,
    text::{Elem, Ty, Val, Writer, constant, int, named},
    tidy::{PIN, tidy},
};
use margay_ir::{
    BlockId, FuncId, Inst, Ir, MemSpace, Placed,
    pass::{Liveness, Ranges, Shape, Uniformity, WarpShape},
};
use margay_isa::{Opcode, Type};
use std::{collections::HashMap, fmt::Write};

/// What code is specialized for; part of the cache key.
#[derive(Clone, Hash, Debug)]
pub struct Options {
    /// Block shape, if known.
    pub warp: WarpShape,
    /// The first two dimensions of this shape are exchanged ([`crate::emit::exchange`]).
    pub exchanged: bool,
    /// Masks live in mask registers (AVX-512).
    pub mask_registers: bool,
    /// The host has gathers and scatters that are faster than loops over lanes.
    pub gathers: bool,
    /// The host converts `.f16` (F16C).
    pub half_floats: bool,
    /// The host computes in `.f16` (AVX512-FP16).
    pub half_arithmetic: bool,
    /// The host has AVX2 and fused multiplication and addition, 32 bytes at a time.
    pub fused: bool,
    /// Little code, which compiles quickly: blocks have no version for full warps, and helpers loop over the lanes.
    pub lean: bool,
    /// Kernels run one warp per call, on fibers, even if their code does not require it.
    pub stacks: bool,
    /// The code counts what it executes.
    pub count: bool,
    /// What the code reports to the launch's observer (`observe`).
    pub observe: Option<margay_exec::Interest>,
    /// The cluster shape, if there are clusters.
    pub cluster: Option<[u32; 3]>,
}

impl Options {
    /// How masks and words are converted.
    pub fn masks(&self) -> Masks {
        match (self.mask_registers, self.lean) {
            (true, _) => Masks::Registers,
            (false, true) => Masks::Calls,
            (false, false) => Masks::Vectors,
        }
    }

    /// Threads of a CTA, if known.
    pub fn threads(&self) -> Option<u32> {
        self.warp.block.map(|[x, y, z]| x.wrapping_mul(y).wrapping_mul(z))
    }
}

/// Back edges between two yields to other lanes and warps, in functions whose loops may wait for them. Lanes try this many times to take a
/// lock before the lane that holds it continues.
const YIELD_PERIOD: u32 = 32;

/// Back edges between two safepoints, in all other functions.
pub const PERIOD: u32 = 1 << 16;

/// Size of a kernel's LLVM IR in bytes beyond which it is refused: LLVM would take most of a minute.
pub const LARGEST: usize = 24 << 20;

/// Why a function cannot be compiled: the construct, and its location.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The construct.
    pub what: String,
    /// The function.
    pub func: FuncId,
    /// Index into `Func::places`.
    pub at: u32,
}

impl Refused {
    /// The LLVM IR of a function, and of what it calls, has too many bytes.
    pub fn too_large(bytes: usize, func: FuncId) -> Refused {
        let what = format!("{} MB of code, which would be compiled for longer than it runs", bytes >> 20);
        Refused { what, func, at: 0 }
    }
}

pub(in crate::emit) type Result<T> = std::result::Result<T, Refused>;

/// Element type of a register's variable.
pub(in crate::emit) fn elem_of(ty: Type) -> Elem {
    match ty.bits() {
        1 => Elem::I1,
        0..=16 => Elem::I16,
        17..=32 => Elem::I32,
        33..=64 => Elem::I64,
        _ => Elem::I128,
    }
}

/// The text of one function, and what its callers must provide.
pub struct Emitted {
    /// The `define`.
    pub text: String,
    /// Declarations and definitions that it refers to.
    pub declared: std::collections::BTreeSet<String>,
    /// Size of a CTA's spill area in bytes.
    pub spill_size: u64,
    /// Whether it accesses local windows.
    pub uses_local: bool,
    /// The part of them whose lanes are interleaved.
    pub interleaved: Option<Interleaved>,
    /// Whether the entry runs one warp, on a fiber.
    pub by_warp: bool,
}

/// How a function is executed.
struct Plan {
    role: Role,
    /// Whether lanes may be inactive.
    masks: bool,
    spills: SpillPlan,
    ranges: Ranges,
    /// In the form of loops, all threads reach the same barriers unless they race.
    unless_racing: bool,
}

impl Plan {
    fn new(prepared: &Prepared, live: &Liveness, options: &Options, reached: &Reached) -> Plan {
        let Prepared { func, cfg, uniformity, barriers, divergent, exits_in_call, holds, spins, polls, .. } = prepared;
        let indexes = |i: &Inst| i.space == Some(MemSpace::Shared);
        let ranges = match func.insts.iter().any(indexes) {
            true => Ranges::new(func, cfg, live, options.warp, reached.shared.offsets.clone()),
            false => Ranges::default(),
        };
        let kernel = func.kind == margay_check::FuncKind::Kernel;
        let stacks = options.stacks || reached.waits != Waits::Never;
        let stacked = func.insts.iter().any(|i| moves_stack(func, i));
        let has_cluster_barrier = func.insts.iter().any(|i| is_cluster_barrier(func, i));
        let mut by_warp = match () {
            () if stacks => "its CTAs take turns, or it calls what may wait",
            () if *spins => "a loop may wait for other threads, or not end",
            () if *polls => "it polls memory or barrier objects",
            () if *divergent => "lanes of a warp may wait for each other",
            () if stacked => "it moves the stack",
            () if has_cluster_barrier => "it has cluster barriers",
            () => "",
        };
        let regular = |loads| {
            let cta = Uniformity::new(func, cfg, WarpShape { cta: true, loads, ..options.warp });
            crate::emit::barrier::kernel::fits(func, cfg, &cta, barriers, options).then_some(cta)
        };
        let may_loop = kernel && by_warp.is_empty();
        let known = if may_loop { regular(false) } else { None };
        // Checks want to see how threads part that race.
        let likely = if may_loop && known.is_none() && options.observe.is_none() { regular(true) } else { None };
        let unless_racing = likely.is_some();
        let cta = known.or(likely);
        if by_warp.is_empty() && cta.is_none() {
            by_warp = "not all threads reach the same barriers, as far as one can see";
        }
        let role = match (kernel, &cta) {
            (false, _) => Role::Device,
            (true, Some(_)) => Role::Grid,
            (true, None) => Role::Warp(by_warp),
        };
        let whole = kernel && options.threads().is_some_and(|n| n % 32 == 0);
        let diverges = uniformity.branches.iter().any(|b| *b) || exits_in_call.contains(&true);
        let parts = !barriers.is_empty() || holds.contains(&true);
        let masks = !whole || *spins || role != Role::Grid && parts || diverges;
        let spills = SpillPlan::new(func, (cfg, live), barriers, uniformity, cta);
        Plan { role, masks, spills, ranges, unless_racing }
    }
}

/// Symbol of a function.
pub fn symbol(id: FuncId) -> String {
    format!("f{}", id.0)
}

/// Emits a kernel or a device function; `reached` describes the device functions that the kernel calls.
pub fn emit(
    ir: &Ir<Placed>,
    id: FuncId,
    options: &Options,
    reached: &Reached,
    sites: &mut Vec<Site>,
) -> Result<Emitted> {
    let prepared = Prepared::new(id, ir.func(id), options, reached);
    let Some((alike, first)) = alike::prepare(ir, id, options, reached) else {
        return emit_body(ir, (id, ""), &prepared, options, reached, sites);
    };
    let apart = emit_body(ir, (id, alike::APART), &prepared, options, reached, sites)?;
    let alike = emit_body(ir, (id, alike::ALIKE), &alike, options, reached, sites)?;
    Ok(alike::join(ir, id, first, (apart, alike)))
}

/// Emits a function as it was prepared, under its symbol with a suffix.
fn emit_body(
    ir: &Ir<Placed>,
    (id, suffix): (FuncId, &'static str),
    prepared: &Prepared,
    options: &Options,
    reached: &Reached,
    sites: &mut Vec<Site>,
) -> Result<Emitted> {
    let live = Liveness::new(&prepared.func, &prepared.cfg);
    let plan = Plan::new(prepared, &live, options, reached);
    let Plan { role, masks, spills, ranges, unless_racing } = plan;
    let func = &prepared.func;
    let blocks = prepared.cfg.order.clone();
    let serial = serial::find(prepared, &live, options);
    let mut e = Emitter {
        ir,
        id,
        suffix,
        prepared,
        func,
        options,
        role,
        reached,
        live,
        w: Writer::new(options.masks()),
        slots: Vec::new(),
        masks,
        fuel: None,
        mode: Mode::Full,
        active: constant(Ty::lanes(Elem::I1), 1),
        lane_sets: LaneSets::default(),
        grid_loop: GridLoop { unless_racing, ..GridLoop::default() },
        region: Region { blocks, ..Region::default() },
        here: BlockId(0),
        inst: 0,
        at: 0,
        row: None,
        spills,
        sites,
        entry: Entry::default(),
        blend: Blend::default(),
        pins_masks: false,
        floats: Floats {
            lazy_nans: crate::emit::arithmetic::nan::lazy_registers(func),
            normal: crate::emit::arithmetic::subnormal::normal_registers(func),
            roots: func.insts.iter().any(|i| matches!(func.variant(i).op, Opcode::Sqrt | Opcode::Rsqrt)),
        },
        accesses: Accesses {
            ranges,
            fused: HashMap::new(),
            aligned: None,
            groups: crate::emit::memory::group::find(func),
            combined: None,
            prefetched: 0,
            unrolled: 0,
            ahead: ChecksAhead::default(),
        },
        local: Local::default(),
        calls: Calls::default(),
        serial: Serial::default(),
    };
    e.function(serial)
}

impl Emitter<'_> {
    fn function(&mut self, serial: Vec<serial::Section>) -> Result<Emitted> {
        self.require_observable()?;
        self.allocate();
        self.allocate_serial(serial);
        self.fuse_accesses();
        self.grid_loop.together = self.role == Role::Grid && self.stay_together();
        self.interleave_frame();
        self.w.block("start");
        self.begin_combining();
        match self.role {
            Role::Grid => self.grid()?,
            Role::Warp(_) | Role::Device => self.whole()?,
        }
        self.w.block("stop");
        self.end_combining();
        self.return_status(status::STOP);
        Ok(self.assemble())
    }

    /// Emits the function as a single region for one mask of lanes.
    fn whole(&mut self) -> Result<()> {
        self.clear_uninitialized();
        self.load_formals()?;
        self.begin_stack();
        let lanes = match self.role {
            Role::Device => named(Ty::scalar(Elem::I32), "%mask"),
            _ => self.ctx_value(Elem::I32, at::ALIVE),
        };
        self.begin(&lanes, BlockId(0));
        self.bodies()?;
        self.w.block("done");
        self.return_status(status::DONE);
        Ok(())
    }

    /// Whether blocks have a masked version only: in lean code, and where no warp is full.
    pub fn only_masked(&self) -> bool {
        self.masks && (self.options.lean || self.options.threads().is_some_and(|n| n < 32))
    }

    /// Enters a region with `lanes`: its full version if all 32 are set.
    pub fn begin(&mut self, lanes: &Val, entry: BlockId) {
        if let Some(alive) = self.lane_sets.alive.clone().filter(|_| self.role != Role::Device) {
            self.w.store(lanes, &alive, 4);
        }
        let full = self.full_label(entry);
        if !self.masks {
            return self.w.jump(&full);
        }
        if !self.only_masked() {
            let all = self.w.cmp("icmp eq", lanes, &int(Elem::I32, -1));
            let part = self.w.label("enter.masked");
            self.w.branch(&all, &full, &part);
            self.w.block(&part);
        }
        let mask = self.unpack_bits(lanes);
        self.set_pending(entry.0, &mask);
        let masked = self.masked_label(entry);
        self.w.jump(&masked);
    }

    /// Emits the versions of the blocks of the current region.
    pub fn bodies(&mut self) -> Result<()> {
        let full = if self.only_masked() { Vec::new() } else { self.region.blocks.clone() };
        for b in full {
            self.mode = Mode::Full;
            self.active = constant(Ty::lanes(Elem::I1), 1);
            self.block(b)?;
            self.check_size()?;
        }
        if self.masks {
            for b in self.region.blocks.clone() {
                self.mode = Mode::Masked;
                self.block(b)?;
                self.check_size()?;
            }
            let swept = self.swept_label();
            self.w.block(&swept);
            self.finish_sweep()?;
            if self.prepared.spins {
                self.yield_to_others()?;
            }
        }
        self.serial_bodies()?;
        self.mode = Mode::Full;
        self.active = constant(Ty::lanes(Elem::I1), 1);
        Ok(())
    }

    /// Refuses a function whose text is so large that it will hardly become small enough when what is unused has been removed.
    fn check_size(&self) -> Result<()> {
        let bytes = self.w.body.len();
        if bytes > 2 * LARGEST { Err(Refused::too_large(bytes, self.id)) } else { Ok(()) }
    }

    fn assemble(&mut self) -> Emitted {
        let mut text = String::with_capacity(self.w.body.len() + self.w.entry.len() + 1024);
        let carriers = &self.interface().carriers;
        let args = match self.role {
            Role::Device => {
                let returned = if self.stores_results() { ", ptr %returned" } else { "" };
                format!("ptr noalias %ctx, i32 %mask, i32 %frame{}{returned}", parameters(self.ir, carriers))
            }
            Role::Warp(_) | Role::Grid => "ptr noalias %ctx".into(),
        };
        if let Role::Warp(why) = self.role {
            let _ = writeln!(text, "; one fiber per warp, since {why}");
        }
        if self.options.exchanged {
            text.push_str("; lanes follow %tid.y\n");
        }
        let result = result(carriers, self.stores_results());
        let _ = writeln!(text, "define {result} @{}{}({args}) #0 {{\nentry:", symbol(self.id), self.suffix);
        let body = format!("{}  br label %start\n{}", self.w.entry, self.w.body);
        // Without local windows, those of all warps begin at the address that the context has.
        let idle = !self.local.used && self.func.calls.is_empty();
        let body = tidy(&body, |line| idle && self.local.address_lines.contains(line));
        text.push_str(&if self.options.lean { body } else { sink(&body) });
        text.push_str("}\n");
        if self.role == Role::Device && self.reached.fibers {
            self.declare_cttz();
            text.push_str(&self.trampoline());
        }
        Emitted {
            text,
            declared: std::mem::take(&mut self.w.declared),
            spill_size: self.spills.size,
            uses_local: self.local.used,
            interleaved: self.local.interleaved,
            by_warp: matches!(self.role, Role::Warp(_)),
        }
    }

    fn allocate(&mut self) {
        let func = self.func;
        self.blend.registers = self.find_blended();
        self.blend.needed = self.find_kept();
        let pinned = self.find_pinned();
        self.pins_masks = pinned.masks;
        for (r, ty) in func.regs.iter().enumerate() {
            let (shape, elem) = (self.prepared.uniformity.shapes[r], elem_of(*ty));
            let slot = self.slot_type(shape, elem);
            let pointer = self.w.alloca(&slot, if shape == Shape::Varying { 64 } else { 8 });
            if pinned.registers[r] {
                self.pin(&pointer);
            }
            self.slots.push(Slot { pointer, shape, elem, shadow: None });
        }
        self.make_shadows();
        if self.masks {
            let ty = self.packed_type().to_string();
            self.lane_sets.pending = (0..func.blocks.len()).map(|_| self.w.alloca(&ty, 64)).collect();
            for p in self.lane_sets.pending.clone() {
                self.pin_if_many(&p);
                // Code for all warps of a CTA clears the sets of each warp.
                if self.role != Role::Grid {
                    let _ = writeln!(self.w.entry, "  store {ty} zeroinitializer, ptr {p}, align 4");
                }
            }
            // The host reads this mask where warps synchronize, and device functions read their caller's: it lives in
            // the context.
            self.lane_sets.alive = Some(match self.role {
                Role::Warp(_) | Role::Device => {
                    let p = format_args!("getelementptr i8, ptr %ctx, i64 {}", at::ALIVE);
                    self.w.at_entry(Ty::scalar(Elem::Ptr), p)
                }
                Role::Grid => self.w.alloca("i32", 4),
            });
        }
        if self.role != Role::Grid {
            self.lane_sets.waiting = (0..self.prepared.barriers.len()).map(|_| self.w.alloca("i32", 4)).collect();
            for p in self.lane_sets.waiting.clone() {
                self.pin_if_many(&p);
                let _ = writeln!(self.w.entry, "  store i32 0, ptr {p}, align 4");
            }
        }
        self.allocate_held();
        if !self.prepared.cfg.loops.is_empty() || !self.prepared.cfg.reducible {
            let fuel = self.w.alloca("i32", 4);
            self.pin_if_many(&fuel);
            let _ = writeln!(self.w.entry, "  store i32 {}, ptr {fuel}, align 4", self.period());
            self.fuel = Some(fuel);
        }
        self.allocate_results();
        self.local.frame = crate::emit::call::frame::promote(self);
    }

    /// Pins a mask, or another variable that all blocks use, if there are many.
    pub fn pin_if_many(&mut self, pointer: &Val) {
        if self.pins_masks {
            self.pin(pointer);
        }
    }

    /// Pins a variable in memory: its address escapes.
    fn pin(&mut self, pointer: &Val) {
        let _ = writeln!(self.w.entry, "  {PIN}{pointer})");
    }

    /// The budget of back edges between two yields or safepoints.
    pub fn period(&self) -> u32 {
        if self.prepared.spins { YIELD_PERIOD } else { PERIOD }
    }

    /// LLVM type of a register's variable.
    pub fn slot_type(&self, shape: Shape, elem: Elem) -> String {
        match (shape, elem) {
            (Shape::Varying, Elem::I1) => self.packed_type().to_string(),
            (Shape::Varying, e) => Ty::lanes(e).to_string(),
            (shape, e) => affine::slot_type(affine_form(shape).map_or(32, |(w, _)| w), e),
        }
    }

    /// Refuses the function for a construct at the current instruction.
    pub fn refuse<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(Refused { what: what.into(), func: self.id, at: self.at })
    }
}
