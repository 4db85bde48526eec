//! Calls: formals from and to blocks of lanes, call sites, indirect calls lane group by lane group.

pub(in crate::emit) mod builtin;
pub(in crate::emit) mod fiber;
pub(in crate::emit) mod frame;
pub(in crate::emit) mod stack;

use crate::ctx::{Helper, at};
use crate::emit::{
    function::{Emitter, Mode, PERIOD, Result, Role, elem_of, symbol},
    site::SiteKind,
    text::{Elem, Ty, Val, int, named},
};
use margay_exec::FaultKind;
use margay_ir::{Arg, CallSite, Callee, FormalHome, Func, FuncId, Inst, Operand, VReg, abi::Value, explicit::admits};
use margay_isa::Opcode;
use std::hash::{DefaultHasher, Hash, Hasher};

/// An entry of a table of targets: the function's code, the bytes of its frame, and its alignment less one.
const TARGET: &str = "{ ptr, i32, i32 }";

/// A call whose arguments are in place.
pub(in crate::emit) struct Begun {
    pub site: CallSite,
    /// Lanes that call.
    pub lanes: Val,
    /// Where the caller's stack ends, in the thread's local window.
    pub top: Val,
    /// Blocks of lanes for arguments and returns.
    pub args: Val,
    pub rets: Val,
}

/// The call that an instruction is.
pub(in crate::emit) fn call_site<'f>(func: &'f Func, inst: &Inst) -> Option<&'f CallSite> {
    match func.operands(inst.srcs).last() {
        Some(Operand::Call(site)) if func.variant(inst).op == Opcode::Call => func.calls.get(*site as usize),
        _ => None,
    }
}

impl Emitter<'_> {
    /// Loads the formals from the argument block, before the two versions part.
    pub fn load_formals(&mut self) -> Result<()> {
        if self.func.kind == margay_check::FuncKind::Kernel {
            return Ok(());
        }
        let args = named(Ty::scalar(Elem::Ptr), "%args");
        let mut word = 0u64;
        let homes = self.func.params.clone();
        for (home, value) in homes.iter().zip(&self.func.sig.clone().params) {
            if value.is_unsized {
                return self.refuse("an unsized array parameter");
            }
            match home {
                FormalHome::Regs(regs) => {
                    for r in regs {
                        let slot = self.slots[r.0 as usize].clone();
                        let p = self.w.offset_const(&args, word * 128);
                        let bits = slot.elem.bits().max(32);
                        let v = self.load_words(&p, bits);
                        let v = self.w.resize(&v, slot.elem, false);
                        let packed = if slot.elem == Elem::I1 { self.pack(&v) } else { v };
                        self.w.store(&packed, &slot.pointer, 4);
                        word += u64::from(bits / 32);
                    }
                }
                FormalHome::Frame(f) => {
                    let words = u64::from(value.size.div_ceil(4));
                    let p = self.w.offset_const(&args, word * 128);
                    self.frame_copy(f.0, value.size, &p, true)?;
                    word += words;
                }
                FormalHome::Kernel(_) => return self.refuse("a kernel as a function"),
            }
        }
        Ok(())
    }

    /// Puts the returns of the active lanes into the caller's block.
    pub fn store_returns(&mut self) -> Result<()> {
        if self.func.kind == margay_check::FuncKind::Kernel {
            return Ok(());
        }
        let rets = named(Ty::scalar(Elem::Ptr), "%rets");
        let mut word = 0u64;
        let homes = self.func.rets.clone();
        for (home, value) in homes.iter().zip(&self.func.sig.clone().rets) {
            match home {
                FormalHome::Regs(regs) => {
                    for r in regs {
                        let v = self.read(*r);
                        let bits = v.ty.elem.bits().max(32);
                        let v = self.w.resize(&v, Elem::int(bits), false);
                        let v = self.w.splat(&v);
                        let p = self.w.offset_const(&rets, word * 128);
                        self.store_words(&v, &p);
                        word += u64::from(bits / 32);
                    }
                }
                FormalHome::Frame(f) => {
                    let p = self.w.offset_const(&rets, word * 128);
                    self.frame_copy(f.0, value.size, &p, false)?;
                    word += u64::from(value.size.div_ceil(4));
                }
                FormalHome::Kernel(_) => {}
            }
        }
        Ok(())
    }

    /// Stores integers to a block of lanes: one row of 32 lanes for each word of 32 bits, low words first, as formals that live in
    /// the frame are read.
    pub fn store_words(&mut self, v: &Val, pointer: &Val) {
        if v.ty.elem.bits() <= 32 {
            return self.store_lanes(v, pointer);
        }
        for word in 0..u64::from(v.ty.elem.bits() / 32) {
            let part = self.w.op_const("lshr", v, i128::from(word * 32));
            let part = self.w.cast("trunc", &part, Elem::I32);
            let p = self.w.offset_const(pointer, word * 128);
            self.store_lanes(&part, &p);
        }
    }

    /// Loads integers of so many bits (32 at least) from a block of lanes.
    pub fn load_words(&mut self, pointer: &Val, bits: u32) -> Val {
        let mut whole = self.w.load(Ty::lanes(Elem::I32), pointer, 64);
        if bits > 32 {
            whole = self.w.cast("zext", &whole, Elem::int(bits));
            for word in 1..u64::from(bits / 32) {
                let p = self.w.offset_const(pointer, word * 128);
                let part = self.w.load(Ty::lanes(Elem::I32), &p, 64);
                let part = self.w.cast("zext", &part, Elem::int(bits));
                let part = self.w.op_const("shl", &part, i128::from(word * 32));
                whole = self.w.op("or", &whole, &part);
            }
        }
        whole
    }

    /// Stores a vector to a block of lanes, keeping inactive ones.
    pub fn store_lanes(&mut self, v: &Val, pointer: &Val) {
        let v = if self.mode == Mode::Masked {
            let old = self.w.load(v.ty, pointer, 64);
            let active = self.active.clone();
            self.w.select(&active, v, &old)
        } else {
            v.clone()
        };
        self.w.store(&v, pointer, 64);
    }

    fn words_of(values: &[Value]) -> u64 {
        values.iter().map(|v| u64::from(v.size.div_ceil(4)).max(1)).sum::<u64>().max(1)
    }

    /// A call: arguments into a block of lanes, the callee, returns out of a block of lanes.
    pub fn call(&mut self, inst: &Inst) -> Result<()> {
        let Some(site) = call_site(self.func, inst).cloned() else { return self.refuse("a call without a call site") };
        if let Callee::Direct(f) = &site.callee
            && self.ir.func(*f).blocks.is_empty()
        {
            let func = self.ir.func(*f);
            return match func.builtin {
                Some(builtin) => self.builtin(builtin, &site),
                None => {
                    let kind = FaultKind::Undefined(func.name.to_string());
                    self.fail(kind);
                    Ok(())
                }
            };
        }
        let call = self.begin_call(site)?;
        match call.site.callee.clone() {
            Callee::Direct(f) => {
                let frame = self.place_frame(&call, f);
                self.invoke(&format!("@{}", symbol(f)), &call, &call.lanes, &frame);
            }
            Callee::Indirect(r, _) => {
                self.each_target(r, &call, |e, f, group, frame| e.invoke(&f.to_string(), &call, group, frame))?
            }
        }
        let lanes = self.unpack_bits(&call.lanes);
        self.take_returns(&call, &lanes)
    }

    /// Room for the arguments and returns of a call: the same in both versions of the code, for lanes of one version may still be
    /// in the function while others call it in the other.
    fn blocks_of_call(&mut self, site: &CallSite) -> [Val; 2] {
        let words = |v: &[Value]| Self::words_of(v) + 2 * v.len() as u64;
        if let Some(blocks) = self.call_blocks.get(&self.inst) {
            return blocks.clone();
        }
        let sig = &site.sig;
        let blocks = [&sig.params, &sig.rets].map(|v| self.w.alloca(&format!("[{} x <32 x i32>]", words(v)), 64));
        self.call_blocks.insert(self.inst, blocks.clone());
        blocks
    }

    /// Everything before the call itself: arguments, room.
    pub(in crate::emit) fn begin_call(&mut self, site: CallSite) -> Result<Begun> {
        let sig = site.sig.clone();
        let [args, rets] = self.blocks_of_call(&site);
        let mut word = 0u64;
        for (arg, value) in site.args.iter().zip(&sig.params) {
            let p = self.w.offset_const(&args, word * 128);
            match arg {
                Arg::Values(values) => {
                    let elem = elem_of(value.ty);
                    let mut at = 0;
                    for v in values {
                        let v = self.value(v, elem)?;
                        let wide = Elem::int(elem.bits().max(32));
                        let v = self.w.resize(&v, wide, false);
                        let v = self.w.splat(&v);
                        let q = self.w.offset_const(&p, at * 128);
                        self.store_words(&v, &q);
                        at += u64::from(wide.bits() / 32);
                    }
                    word += at;
                }
                Arg::Frame(f) => {
                    self.frame_copy(f.0, value.size, &p, false)?;
                    word += u64::from(value.size.div_ceil(4));
                }
                Arg::Omitted => return self.refuse("a call without its unsized argument"),
            }
        }
        let lanes = self.active_bits();
        if self.role == Role::Grid {
            let (alive, to) = (self.alive_bits(), self.ctx_pointer(at::ALIVE));
            self.w.store(&alive, &to, 4);
        }
        let top = self.next_frame();
        self.check_stack();
        self.count_call();
        Ok(Begun { site, lanes, top, args, rets })
    }

    /// What a call returned to some of its lanes.
    pub(in crate::emit) fn take_returns(&mut self, call: &Begun, lanes: &Val) -> Result<()> {
        let mut word = 0u64;
        for (ret, value) in call.site.rets.iter().zip(&call.site.sig.rets) {
            let p = self.w.offset_const(&call.rets, word * 128);
            match ret {
                Arg::Values(values) => {
                    let elem = elem_of(value.ty);
                    let wide = Elem::int(elem.bits().max(32));
                    let mut at = 0;
                    for v in values {
                        let q = self.w.offset_const(&p, at * 128);
                        if let Operand::Reg(r) = v {
                            let loaded = self.load_words(&q, wide.bits());
                            let slot = self.slots[r.0 as usize].elem;
                            let loaded = self.w.resize(&loaded, slot, false);
                            self.write(*r, &loaded, Some(lanes));
                        }
                        at += u64::from(wide.bits() / 32);
                    }
                }
                Arg::Frame(f) => self.frame_copy(f.0, value.size, &p, true)?,
                Arg::Omitted => {}
            }
            word += u64::from(value.size.div_ceil(4)).max(1);
        }
        Ok(())
    }

    /// Where the frame of a function begins that is called by name.
    pub(in crate::emit) fn place_frame(&mut self, call: &Begun, callee: FuncId) -> Val {
        let places = &self.ir.stage.funcs[callee.0 as usize];
        let low = i128::from(places.frame_align.max(1)) - 1;
        let (size, low) = (int(Elem::I32, i128::from(places.frame_size)), int(Elem::I32, low));
        let address = int(Elem::I64, i128::from(margay_exec::Image::function_address(callee)));
        self.fit_frame(call, &size, &low, (&call.lanes, &address))
    }

    /// Where a frame of a size begins, whose address ends in as many zeros as `low` has ones; a fault if the thread's stack has no
    /// room for it.
    fn fit_frame(&mut self, call: &Begun, size: &Val, low: &Val, (lanes, address): (&Val, &Val)) -> Val {
        let frame = self.w.op("add", &call.top, low);
        let high = self.w.op_const("xor", low, -1);
        let frame = self.w.op("and", &frame, &high);
        let end = self.w.resize(&frame, Elem::I64, false);
        let size = self.w.resize(size, Elem::I64, false);
        let end = self.w.op("add", &end, &size);
        let limit = self.ctx_value(Elem::I64, at::LOCAL_SIZE);
        let full = self.w.cmp("icmp ugt", &end, &limit);
        self.refuse_call_if(&full, lanes, address);
        frame
    }

    /// Lanes fault that call the function at an address, if it cannot be entered: the host finds out why.
    fn refuse_call_if(&mut self, bad: &Val, lanes: &Val, address: &Val) {
        let (refused, admitted) = (self.w.label("refused"), self.w.label("admitted"));
        self.w.branch_unlikely(bad, &refused, &admitted);
        self.w.block(&refused);
        let site = int(Elem::I32, self.site(SiteKind::Call) as i128);
        self.helper(Helper::Refuse, &[&site, lanes, address], true);
        self.w.jump("stop");
        self.w.block(&admitted);
    }

    /// Native stack left? A device recursion that is too deep is a fault, not a crash.
    fn check_stack(&mut self) {
        let here = self.w.intrinsic_named("llvm.frameaddress.p0", Ty::scalar(Elem::Ptr), &[&int(Elem::I32, 0)]);
        let here = self.w.cast("ptrtoint", &here, Elem::I64);
        let end = self.ctx_value(Elem::I64, at::STACK_END);
        let deep = self.w.cmp("icmp ult", &here, &end);
        self.fault_if(&deep, "native stack");
    }

    /// Counts calls, so that a recursion without loops can be ended from outside.
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
        self.helper(Helper::Tick, &[], true);
        self.w.jump(&on);
        self.w.block(&on);
    }

    /// Calls a function for some of a call's lanes.
    pub(in crate::emit) fn invoke(&mut self, callee: &str, call: &Begun, lanes: &Val, frame: &Val) {
        let Begun { args, rets, .. } = call;
        let result = self.w.value(
            Ty::scalar(Elem::I32),
            format_args!("call i32 {callee}(ptr %ctx, i32 {lanes}, i32 {frame}, ptr {args}, ptr {rets})"),
        );
        let bad = self.w.cmp("icmp ne", &result, &int(Elem::I32, 0));
        let (unwind, go_on) = (self.w.label("unwind"), self.w.label("back"));
        self.w.branch_unlikely(&bad, &unwind, &go_on);
        self.w.block(&unwind);
        let site = self.site(SiteKind::Call);
        self.helper(Helper::Unwind, &[&int(Elem::I32, site as i128)], false);
        self.w.jump("stop");
        self.w.block(&go_on);
    }

    /// Does something for each function that a register names and the call site admits: with its entry, the lanes that call it,
    /// and where its frame begins.
    pub(in crate::emit) fn each_target(
        &mut self,
        target: VReg,
        call: &Begun,
        mut act: impl FnMut(&mut Self, &Val, &Val, &Val),
    ) -> Result<()> {
        let target = self.read(target);
        let target = self.w.resize(&target, Elem::I64, false);
        let (table, first, count) = self.targets(&call.site);
        let left = self.w.alloca("i32", 4);
        self.w.store(&call.lanes, &left, 4);
        let target = self.w.splat(&target);
        let (head, go, end) = (self.w.label("each"), self.w.label("group"), self.w.label("grouped"));
        self.w.jump(&head);
        self.w.block(&head);
        let remaining = self.w.load(Ty::scalar(Elem::I32), &left, 4);
        let some = self.w.cmp("icmp ne", &remaining, &int(Elem::I32, 0));
        self.w.branch(&some, &go, &end);
        self.w.block(&go);
        let lane = self.w.intrinsic_named("llvm.cttz.i32", Ty::scalar(Elem::I32), &[&remaining, &int(Elem::I1, 1)]);
        let address = self.w.extract(&target, &lane);
        let same = self.w.cmp("icmp eq", &target, &address);
        let same = self.bits(&same);
        let group = self.w.op("and", &same, &remaining);
        let rest = self.w.op("xor", &remaining, &group);
        self.w.store(&rest, &left, 4);
        // Functions have addresses 16 apart; what lies between two becomes a huge number by the rotation.
        let base = i128::from(margay_exec::Image::function_address(first));
        let off = self.w.op_const("sub", &address, base);
        let index = self.w.intrinsic("llvm.fshr", off.ty, &[&off, &off, &int(Elem::I64, 4)]);
        let beyond = self.w.cmp("icmp uge", &index, &int(Elem::I64, i128::from(count)));
        self.refuse_call_if(&beyond, &group, &address);
        let entry =
            self.w.value(Ty::scalar(Elem::Ptr), format_args!("getelementptr {TARGET}, ptr {table}, i64 {index}"));
        let f = self.w.fixed_load(Ty::scalar(Elem::Ptr), &entry, 8);
        let null = self.w.cmp("icmp eq", &f, &named(Ty::scalar(Elem::Ptr), "null"));
        self.refuse_call_if(&null, &group, &address);
        let [size, low] = [8, 12].map(|at| {
            let p = self.w.offset_const(&entry, at);
            self.w.fixed_load(Ty::scalar(Elem::I32), &p, 4)
        });
        let frame = self.fit_frame(call, &size, &low, (&group, &address));
        act(self, &f, &group, &frame);
        self.w.jump(&head);
        self.w.block(&end);
        Ok(())
    }
    /// A table of the functions that an indirect call site may enter, by id from the first of them on: its name, that function,
    /// and how many entries it has.
    fn targets(&mut self, site: &CallSite) -> (Val, FuncId, u32) {
        let ids = || (0..self.ir.funcs.len() as u32).map(FuncId);
        let fits = |f: &FuncId| self.reached.compiled[f.0 as usize] && admits(site, *f, self.ir.func(*f)).is_ok();
        let admitted: Vec<FuncId> = ids().filter(fits).collect();
        let (first, last) = match (admitted.first(), admitted.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ => (FuncId(0), FuncId(0)),
        };
        let mut entries = Vec::new();
        for id in (first.0..=last.0).map(FuncId) {
            let places = &self.ir.stage.funcs[id.0 as usize];
            entries.push(if admitted.contains(&id) {
                let low = places.frame_align.max(1) - 1;
                format!("{TARGET} {{ ptr @{}, i32 {}, i32 {low} }}", symbol(id), places.frame_size)
            } else {
                format!("{TARGET} zeroinitializer")
            });
        }
        let (count, entries) = (entries.len() as u32, entries.join(", "));
        // Sites that admit the same functions share one.
        let mut hasher = DefaultHasher::new();
        entries.hash(&mut hasher);
        let name = format!("@targets.{:016x}", hasher.finish());
        self.w.declared.insert(format!("{name} = internal unnamed_addr constant [{count} x {TARGET}] [{entries}]"));
        (named(Ty::scalar(Elem::Ptr), name), first, count)
    }
}
