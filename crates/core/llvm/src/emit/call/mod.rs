//! Calls, lowered from [`margay_ir::explicit`]: formals and returns, call sites, indirect calls by groups of lanes with
//! one target.

pub(in crate::emit) mod alike;
pub(in crate::emit) mod area;
pub(in crate::emit) mod builtin;
pub(in crate::emit) mod fiber;
pub(in crate::emit) mod frame;
mod guard;
pub(in crate::emit) mod signature;
pub(in crate::emit) mod stack;

use crate::ctx::{Helper, at};
use crate::emit::{
    call::area::{InactiveLanes, Side},
    function::{Emitter, PERIOD, Result, Role, elem_of, symbol},
    site::SiteKind,
    text::{Elem, Ty, Val, int, named},
};
use margay_exec::FaultKind;
use margay_ir::{
    Arg, CallSite, FormalHome, Func, Inst, Operand, VReg,
    abi::{Piece, Place, Reg},
    explicit::{Carriers, Carries, Home, Passed, Sequence, Target, Transfer},
    pass::{Shape, passes_uniform, returns_uniform},
};
use margay_isa::{Opcode, Type};
use std::{collections::HashMap, sync::Arc};

/// A piece of a value without a location is a bug of the plan, and refused.
const NOWHERE: &str = "a piece of a value that is nowhere";

/// Where the function that a call enters runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::emit) enum RunsOn {
    /// On the caller's native stack: all lanes that call together return before the caller continues.
    CallerStack,
    /// On a fiber of its own: the caller may reach the call site again, with other lanes, before all have returned.
    OwnFiber,
}

impl RunsOn {
    /// The lanes that do not call now may have called earlier and not have returned yet.
    fn inactive_lanes(self) -> InactiveLanes {
        match self {
            RunsOn::CallerStack => InactiveLanes::Clobbered,
            RunsOn::OwnFiber => InactiveLanes::Preserved,
        }
    }
}

/// Memory of a call site: areas, and the argument and result blocks of a call on a fiber. Both versions of the code
/// share it, since lanes of one may still be in the function while lanes of the other call it.
#[derive(Clone, Default)]
pub(in crate::emit) struct Blocks {
    pub stack: Option<Val>,
    pub space: Option<Val>,
    /// Areas of values passed by pointer, by register.
    pub behind: HashMap<Reg, Val>,
    /// Argument and result blocks of a call on a fiber.
    pub args: Option<Val>,
    pub rets: Option<Val>,
}

/// A call whose arguments have been stored.
pub(in crate::emit) struct Begun {
    pub site: CallSite,
    pub sequence: Arc<Sequence>,
    /// The calling lanes.
    pub lanes: Val,
    /// End of the caller's stack, as an offset in the local window.
    pub top: Val,
    /// Values of the plan's argument registers.
    pub inputs: Vec<Val>,
    /// The arguments after the registers: areas, then the unsized parameter's location.
    pub beside: Vec<Val>,
    pub blocks: Blocks,
}

/// Index of the call site of a call instruction; `None` for other instructions.
pub(in crate::emit) fn call_number(func: &Func, inst: &Inst) -> Option<u32> {
    match func.operands(inst.srcs).last() {
        Some(Operand::Call(site)) if func.variant(inst).op == Opcode::Call => Some(*site),
        _ => None,
    }
}

/// The call site of a call instruction.
pub(in crate::emit) fn call_site<'f>(func: &'f Func, inst: &Inst) -> Option<&'f CallSite> {
    func.calls.get(call_number(func, inst)? as usize)
}

impl Emitter<'_> {
    // ---- callee ----

    /// Loads the formals from where the plan passes them, before full and masked version part.
    pub fn load_formals(&mut self) -> Result<()> {
        if self.func.kind == margay_check::FuncKind::Kernel {
            return Ok(());
        }
        let interface = self.interface().clone();
        let inputs: Vec<Val> = interface.carriers.inputs.iter().map(|c| signature::argument(self.ir, c)).collect();
        let places = Crossing {
            registers: interface.carriers.inputs.iter().map(|c| c.reg).zip(inputs).collect(),
            ..Crossing::own()
        };
        let lanes = named(Ty::scalar(Elem::I32), "%mask");
        let called = self.unpack_bits(&lanes);
        let homes = self.func.params.clone();
        let values = self.func.sig.clone();
        for ((t, home), value) in interface.args.iter().zip(&homes).zip(&values.params) {
            match (t.home, home) {
                (Home::Elements(_), FormalHome::Regs(regs)) => {
                    let dsts: Vec<Operand> = regs.iter().map(|r| Operand::Reg(*r)).collect();
                    self.deliver_elements(t, &dsts, value.ty, &places, None)?;
                }
                (Home::Variable(f), _) => {
                    // The frame's place in the windows of lanes that do not call may hold data of theirs.
                    let side = self.variable(f.0);
                    let mask = matches!(side, Side::Window(_)).then_some(&called);
                    let first = (!value.varying).then_some(&lanes);
                    self.deliver_variable(t, &side, &places, (mask, first))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Stores the return values of the active lanes where the plan returns them.
    pub fn store_returns(&mut self) -> Result<()> {
        if self.func.kind == margay_check::FuncKind::Kernel {
            return Ok(());
        }
        let interface = self.interface().clone();
        let homes = self.func.rets.clone();
        let values = self.func.sig.clone();
        let places = Crossing {
            registers: interface.carriers.inputs.iter().map(|c| (c.reg, signature::argument(self.ir, c))).collect(),
            ..Crossing::own()
        };
        let mut next = 0;
        for (i, ((t, home), value)) in interface.rets.iter().zip(&homes).zip(&values.rets).enumerate() {
            if t.uniform && !returns_uniform(self.func, &self.prepared.cfg, &self.prepared.uniformity, i) {
                return self.refuse("a return that the plan takes for the same in all lanes");
            }
            let side = match home {
                FormalHome::Regs(regs) => {
                    let srcs: Vec<Operand> = regs.iter().map(|r| Operand::Reg(*r)).collect();
                    self.elements(t, &srcs, value.ty)?
                }
                FormalHome::Frame(f) => self.variable(f.0),
                FormalHome::Kernel(_) => Side::Nowhere,
            };
            for p in &t.pieces {
                match places.memory(p) {
                    Some((block, at)) => {
                        self.store_area(&side, &p.bytes, t.unit, (&block, at), InactiveLanes::Preserved)?;
                    }
                    None => {
                        let v = self.side_bytes(&side, &p.bytes)?;
                        let (ty, slot) = self.calls.results[next].clone();
                        let v = self.w.resize(&v, ty.elem, false);
                        next += 1;
                        match (ty.vector, v.ty.vector) {
                            (true, _) => {
                                let v = self.w.splat(&v);
                                self.store_lanes(&v, &slot);
                            }
                            (false, true) => {
                                let v = self.first_active(&v);
                                self.w.store(&v, &slot, 64);
                            }
                            (false, false) => self.w.store(&v, &slot, 64),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Creates variables for the results, or uses the caller's result block.
    pub fn allocate_results(&mut self) {
        if self.role != Role::Device {
            return;
        }
        let outputs = self.interface().carriers.outputs.clone();
        let stores = self.stores_results();
        let (offsets, _) = signature::slots(&outputs);
        self.calls.results = outputs
            .iter()
            .zip(offsets)
            .map(|(c, at)| {
                let ty = if stores { signature::stored(c) } else { signature::carried(c) };
                let slot = match stores {
                    true => {
                        let p = format_args!("getelementptr i8, ptr %returned, i64 {at}");
                        self.w.at_entry(Ty::scalar(Elem::Ptr), p)
                    }
                    false => self.w.alloca(&ty.to_string(), 64),
                };
                (ty, slot)
            })
            .collect();
    }

    // ---- transfers ----

    /// The elements of a value in registers or constants.
    fn elements(&mut self, t: &Transfer, operands: &[Operand], ty: Type) -> Result<Side> {
        let Home::Elements(bytes) = t.home else { return Ok(Side::Nowhere) };
        let mut values = Vec::new();
        for o in operands {
            let v = self.value(o, elem_of(ty))?;
            values.push(self.w.resize(&v, Elem::int(bytes * 8), false));
        }
        Ok(Side::Elements(values, bytes))
    }

    /// Writes the elements of a value in the active lanes of `mask`.
    fn deliver_elements(
        &mut self,
        t: &Transfer,
        dsts: &[Operand],
        ty: Type,
        places: &Crossing,
        mask: Option<&Val>,
    ) -> Result<()> {
        let Home::Elements(bytes) = t.home else { return Ok(()) };
        for (k, dst) in dsts.iter().enumerate() {
            let Operand::Reg(r) = dst else { continue };
            let (first, end) = (k as u32 * bytes, (k as u32 + 1) * bytes);
            let elem = Elem::int(bytes * 8);
            let mut whole = None;
            for p in t.pieces.iter().filter(|p| p.bytes.start < end && first < p.bytes.end) {
                let v = match places.memory(p) {
                    Some((block, at)) => self.area_unit((&block, at + (first - p.bytes.start)), bytes),
                    None => {
                        let Some(v) = places.register(p) else { return self.refuse(NOWHERE) };
                        let below = i128::from(first.saturating_sub(p.bytes.start)) * 8;
                        if below > 0 { self.w.op_const("lshr", &v, below) } else { v }
                    }
                };
                let v = match (self.slots[r.0 as usize].shape, &places.lanes) {
                    (Shape::Uniform, Some(lanes)) if v.ty.vector => self.first_of(&v, lanes),
                    _ => v,
                };
                let v = self.w.resize(&v, elem, false);
                whole = Some(self.join(whole, &v, p.bytes.start.saturating_sub(first)));
            }
            let Some(v) = whole else { continue };
            self.write_element(*r, &v, ty, mask);
        }
        Ok(())
    }

    fn write_element(&mut self, r: VReg, v: &Val, ty: Type, mask: Option<&Val>) {
        let v = if ty == Type::Pred { self.w.cast("trunc", v, Elem::I1) } else { v.clone() };
        let v = self.w.resize(&v, self.slots[r.0 as usize].elem, false);
        self.write(r, &v, mask);
    }

    /// Writes a frame variable in the active lanes of `mask`; with `first`, lanes that all pass one value, what the first of them passes.
    fn deliver_variable(
        &mut self,
        t: &Transfer,
        side: &Side,
        places: &Crossing,
        (mask, first): (Option<&Val>, Option<&Val>),
    ) -> Result<()> {
        for p in &t.pieces {
            match places.memory(p) {
                Some((block, at)) => self.load_area(side, &p.bytes, t.unit, (&block, at), mask),
                None => {
                    let Some(v) = places.register(p) else { return self.refuse(NOWHERE) };
                    let v = match first {
                        Some(lanes) if v.ty.vector => self.first_of(&v, lanes),
                        _ => v,
                    };
                    let v = self.w.splat(&v);
                    self.set_variable(side, &p.bytes, &v, mask);
                }
            }
        }
        Ok(())
    }

    /// Stores a vector to a variable; inactive lanes keep their value.
    pub fn store_lanes(&mut self, v: &Val, pointer: &Val) {
        let v = match self.lanes(None) {
            Some(active) => {
                let old = self.w.load(v.ty, pointer, 64);
                self.w.select(&active, v, &old)
            }
            None => v.clone(),
        };
        self.w.store(&v, pointer, 64);
    }

    // ---- caller ----

    /// Emits a call: guards, arguments, the call itself, return values.
    pub fn call(&mut self, inst: &Inst) -> Result<()> {
        let Some(number) = call_number(self.func, inst) else { return self.refuse("a call without a call site") };
        let (site, sequence) = self.sequence(number);
        self.require_observable_call(&sequence.target)?;
        match &sequence.target {
            Target::Builtin(builtin) => self.builtin(*builtin, &site, None),
            Target::Undefined(f) => {
                let kind = FaultKind::Undefined(self.ir.func(*f).name.to_string());
                self.fail(kind);
                Ok(())
            }
            Target::Function(f) => {
                let f = *f;
                let call = self.begin_call(number, RunsOn::CallerStack)?;
                let frame = self.place_frame(&call, f);
                let outputs = self.invoke(&format!("@{}", symbol(f)), &call, &call.lanes, &frame);
                self.take_returns(&call, &outputs, None)
            }
            Target::Admitted(_) => {
                let call = self.begin_call(number, RunsOn::CallerStack)?;
                self.each_target(&call, |e, f, group, frame| {
                    let outputs = e.invoke(&f.to_string(), &call, group, frame);
                    let lanes = e.unpack_bits(group);
                    e.take_returns(&call, &outputs, Some(&lanes))
                })
                .map(drop)
            }
        }
    }

    /// The memory of the current call site.
    fn blocks_of_call(&mut self, sequence: &Sequence, runs_on: RunsOn) -> Blocks {
        if let Some(blocks) = self.calls.blocks.get(&self.inst) {
            return blocks.clone();
        }
        let carriers = &sequence.carriers;
        let mut area = |bytes: u32| (bytes > 0).then(|| self.w.alloca(&format!("[{bytes} x [32 x i8]]"), 64));
        let mut blocks = Blocks { stack: area(carriers.stack), space: area(carriers.space), ..Blocks::default() };
        for b in &sequence.buffers {
            if let Some(block) = area(b.size.max(1)) {
                blocks.behind.insert(b.pointer, block);
            }
        }
        if runs_on == RunsOn::OwnFiber {
            let size = |c| signature::slots(c).1;
            let beside = 64 * signature::beside(carriers).len() as u64;
            let mut block = |bytes: u64| Some(self.w.alloca(&format!("[{} x i8]", bytes.max(64)), 64));
            blocks.args = block(size(&carriers.inputs) + beside);
            blocks.rets = block(size(&carriers.outputs));
        }
        self.calls.blocks.insert(self.inst, blocks.clone());
        blocks
    }

    /// Everything before the call itself: stores the arguments and checks the native stack.
    pub(in crate::emit) fn begin_call(&mut self, number: u32, runs_on: RunsOn) -> Result<Begun> {
        let (site, sequence) = self.sequence(number);
        let blocks = self.blocks_of_call(&sequence, runs_on);
        let carriers = &sequence.carriers;
        let mut found: HashMap<Reg, Val> = blocks.behind.clone();
        let (stack, space) = (blocks.stack.clone(), blocks.space.clone());
        let places = Crossing { lanes: None, stack, space, registers: found.clone() };
        for (i, ((t, arg), value)) in sequence.args.iter().zip(&site.args).zip(&site.sig.params).enumerate() {
            if t.uniform && !passes_uniform(self.ir.func(self.id), &self.prepared.uniformity, number, i) {
                return self.refuse("an argument that the plan takes for the same in all lanes");
            }
            let side = match arg {
                Arg::Values(values) => self.elements(t, values, value.ty)?,
                Arg::Frame(f) => self.variable(f.0),
                Arg::Omitted => Side::Nowhere,
            };
            for p in &t.pieces {
                if let Some((block, at)) = places.memory(p) {
                    self.store_area(&side, &p.bytes, t.unit, (&block, at), runs_on.inactive_lanes())?;
                } else if let Place::Reg(reg) = p.at {
                    let v = self.side_bytes(&side, &p.bytes)?;
                    found.insert(reg, v);
                }
            }
        }
        let inputs = self.register_arguments(carriers, &found)?;
        let mut beside: Vec<Val> = blocks.stack.iter().chain(&blocks.space).cloned().collect();
        if let Some(passed) = sequence.passed {
            beside.extend(self.pass_unsized(passed)?);
        }
        let lanes = self.active_bits();
        if self.role == Role::Grid {
            let (alive, to) = (self.alive_bits(), self.ctx_pointer(at::ALIVE));
            self.w.store(&alive, &to, 4);
        }
        let top = self.next_frame();
        self.check_stack();
        self.count_call();
        Ok(Begun { site, sequence, lanes, top, inputs, beside, blocks })
    }

    /// The values of the plan's argument registers, as the callee takes them.
    fn register_arguments(&mut self, carriers: &Carriers, found: &HashMap<Reg, Val>) -> Result<Vec<Val>> {
        let mut inputs = Vec::new();
        for c in &carriers.inputs {
            let Some(v) = found.get(&c.reg) else { return self.refuse("a register that nothing is in") };
            let v = match c.carries {
                Carries::Pointer => v.clone(),
                Carries::Lanes => self.w.splat(v),
                Carries::Uniform if !v.ty.vector => v.clone(),
                // A uniform value held in a vector: it comes from the frame, or was not known to be uniform.
                Carries::Uniform => self.first_active(v),
            };
            inputs.push(v);
        }
        Ok(inputs)
    }

    /// Copies the argument for an unsized parameter to the outgoing area of the caller's frame. Returns the area's offset in the local
    /// window, and the number of bytes there.
    fn pass_unsized(&mut self, passed: Passed) -> Result<[Val; 2]> {
        let places = &self.ir.stage.funcs[self.id.0 as usize];
        let outgoing = i128::from(places.outgoing);
        let incoming = match self.func.kind {
            margay_check::FuncKind::Kernel => int(Elem::I32, i128::from(places.base) + outgoing),
            margay_check::FuncKind::Device => self.w.op_const("add", &named(Ty::scalar(Elem::I32), "%frame"), outgoing),
        };
        if let Some(var) = passed.var {
            let to = self.w.op_const("add", &incoming, passed.offset.into());
            self.pass_variable(var.0, passed.bytes, &to)?;
        }
        Ok([incoming, int(Elem::I32, passed.bytes.into())])
    }

    /// Takes the return values in the active lanes of `mask`.
    pub(in crate::emit) fn take_returns(&mut self, call: &Begun, outputs: &[Val], mask: Option<&Val>) -> Result<()> {
        let regs = call.sequence.carriers.outputs.iter().map(|c| c.reg).zip(outputs.iter().cloned());
        let places = Crossing {
            lanes: Some(call.lanes.clone()),
            stack: call.blocks.stack.clone(),
            space: call.blocks.space.clone(),
            registers: regs.collect(),
        };
        let behind = Crossing { registers: call.blocks.behind.clone(), ..places.clone() };
        for ((t, ret), value) in call.sequence.rets.iter().zip(&call.site.rets).zip(&call.site.sig.rets) {
            let hidden = t.pieces.iter().any(|p| matches!(p.at, Place::Behind(_)));
            let places = if hidden { &behind } else { &places };
            match ret {
                Arg::Values(values) => self.deliver_elements(t, values, value.ty, places, mask)?,
                Arg::Frame(f) => {
                    let side = self.variable(f.0);
                    self.deliver_variable(t, &side, places, (mask, None))?;
                }
                Arg::Omitted => {}
            }
        }
        Ok(())
    }

    /// Faults if the native stack is exhausted, by too deep a recursion.
    fn check_stack(&mut self) {
        let here = self.w.intrinsic_named("llvm.frameaddress.p0", Ty::scalar(Elem::Ptr), &[&int(Elem::I32, 0)]);
        let here = self.w.cast("ptrtoint", &here, Elem::I64);
        let end = self.ctx_value(Elem::I64, at::STACK_END);
        let deep = self.w.cmp("icmp ult", &here, &end);
        self.fault_if(&deep, "native stack");
    }

    /// Counts calls, so that a recursion without loops reaches a safepoint too.
    fn count_call(&mut self) {
        let p = self.ctx_pointer(at::CALLS);
        let left = self.w.load(Ty::scalar(Elem::I32), &p, 4);
        let less = self.w.op_const("sub", &left, 1);
        self.w.store(&less, &p, 4);
        let spent = self.w.cmp("icmp eq", &less, &int(Elem::I32, 0));
        let (tired, on) = (self.w.label("tired"), self.w.label("counted"));
        self.w.branch_unlikely(&spent, &tired, &on);
        self.w.block(&tired);
        self.w.store(&int(Elem::I32, i128::from(PERIOD)), &p, 4);
        self.helper(Helper::Tick, &[]);
        self.w.jump(&on);
        self.w.block(&on);
    }

    /// Calls a function for some lanes of a call; returns the values of its result registers.
    pub(in crate::emit) fn invoke(&mut self, callee: &str, call: &Begun, lanes: &Val, frame: &Val) -> Vec<Val> {
        let carriers = &call.sequence.carriers;
        let list: String = call.inputs.iter().chain(&call.beside).map(|v| format!(", {} {v}", v.ty)).collect();
        let ty = signature::result(carriers, false);
        let result = self
            .w
            .value(Ty::scalar(Elem::I32), format_args!("call {ty} {callee}(ptr %ctx, i32 {lanes}, i32 {frame}{list})"));
        let status = if carriers.outputs.is_empty() {
            result.clone()
        } else {
            self.w.value(Ty::scalar(Elem::I32), format_args!("extractvalue {ty} {result}, 0"))
        };
        let bad = self.w.cmp("icmp ne", &status, &int(Elem::I32, 0));
        let (unwind, go_on) = (self.w.label("unwind"), self.w.label("back"));
        self.w.branch_unlikely(&bad, &unwind, &go_on);
        self.w.block(&unwind);
        let site = self.site(SiteKind::Call);
        self.helper(Helper::Unwind, &[&int(Elem::I32, site as i128)]);
        self.w.jump("stop");
        self.w.block(&go_on);
        let value = |(i, c)| self.w.value(signature::carried(c), format_args!("extractvalue {ty} {result}, {}", i + 1));
        carriers.outputs.iter().enumerate().map(value).collect()
    }
}

/// The locations of values that cross a call: areas and registers.
#[derive(Clone, Default)]
struct Crossing {
    /// Lanes that participate in the call, as bits.
    lanes: Option<Val>,
    stack: Option<Val>,
    space: Option<Val>,
    registers: HashMap<Reg, Val>,
}

impl Crossing {
    /// The locations as the callee sees them.
    fn own() -> Crossing {
        let area = |name: &str| Some(named(Ty::scalar(Elem::Ptr), name));
        let lanes = Some(named(Ty::scalar(Elem::I32), "%mask"));
        Crossing { lanes, stack: area("%stack"), space: area("%space"), registers: HashMap::new() }
    }

    /// The area that a piece lies in, and its offset there.
    fn memory(&self, p: &Piece) -> Option<(Val, u32)> {
        match p.at {
            Place::Reg(_) => None,
            Place::Stack { offset } => self.stack.clone().map(|block| (block, offset)),
            Place::Space { offset } => self.space.clone().map(|block| (block, offset)),
            Place::Behind(pointer) => self.registers.get(&pointer).map(|block| (block.clone(), p.bytes.start)),
        }
    }

    /// The value of a piece's register.
    fn register(&self, p: &Piece) -> Option<Val> {
        match p.at {
            Place::Reg(reg) => self.registers.get(&reg).cloned(),
            Place::Stack { .. } | Place::Space { .. } | Place::Behind(_) => None,
        }
    }
}
