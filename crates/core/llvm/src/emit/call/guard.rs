//! The guards of a call: the site admits the callee, and the callee's frame fits into the thread's stack.

use crate::ctx::{Helper, at};
use crate::emit::{
    call::Begun,
    function::{Emitter, Mode, Result, symbol},
    site::SiteKind,
    text::{Elem, Ty, Val, int, named},
};
use margay_exec::Image;
use margay_ir::{Callee, FuncId, explicit::Target};
use std::hash::{DefaultHasher, Hash, Hasher};

/// An entry of a table of call targets: code address, frame size in bytes, frame alignment minus one.
const TARGET: &str = "{ ptr, i32, i32 }";

impl Emitter<'_> {
    /// The offset of a directly called function's frame in the local window, checked against the stack's size.
    pub(in crate::emit) fn place_frame(&mut self, call: &Begun, callee: FuncId) -> Val {
        let places = &self.ir.stage.funcs[callee.0 as usize];
        let low = i128::from(places.frame_align.max(1)) - 1;
        let (size, low) = (int(Elem::I32, i128::from(places.frame_size)), int(Elem::I32, low));
        let address = int(Elem::I64, i128::from(Image::function_address(self.ir.address_size, callee)));
        self.fit_frame(call, &size, &low, (&call.lanes, &address))
    }

    /// The offset of a frame of `size` bytes, aligned to `low + 1`; faults if the thread's stack has no room for it.
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

    /// Faults in `lanes` if `bad`: they call the function at `address`, which may not be entered; the helper finds out
    /// why.
    fn refuse_call_if(&mut self, bad: &Val, lanes: &Val, address: &Val) {
        let (refused, admitted) = (self.w.label("refused"), self.w.label("admitted"));
        self.w.branch_unlikely(bad, &refused, &admitted);
        self.leave(&refused, "stop", &admitted, |e| {
            let site = int(Elem::I32, e.site(SiteKind::Call) as i128);
            let none = int(Elem::I64, 0);
            e.helper(Helper::Refuse, &[&site, lanes, address, &none, &none]);
        });
    }

    /// Faults in the lanes of `bad`, whose stack is full or gets an invalid end, or that jump beyond a table; `numbers` describe the
    /// first of them.
    pub(in crate::emit) fn refuse_if(&mut self, bad: &Val, kind: SiteKind, numbers: [&Val; 3]) {
        let bad = self.w.splat(bad);
        let bad = match self.lanes(None) {
            Some(active) => self.w.op("and", &bad, &active),
            None => bad,
        };
        let lanes = self.bits(&bad);
        let some = self.w.cmp("icmp ne", &lanes, &int(Elem::I32, 0));
        let (refused, admitted) = (self.w.label("refused"), self.w.label("admitted"));
        self.w.branch_unlikely(&some, &refused, &admitted);
        self.leave(&refused, "stop", &admitted, |e| {
            let lane = e.w.intrinsic_named("llvm.cttz.i32", Ty::scalar(Elem::I32), &[&lanes, &int(Elem::I1, 1)]);
            let [a, b, c] = numbers.map(|v| {
                let v = e.w.splat(v);
                e.w.extract(&v, &lane)
            });
            let site = int(Elem::I32, e.site(kind) as i128);
            e.helper(Helper::Refuse, &[&site, &lanes, &a, &b, &c]);
        });
    }

    /// Calls `act` for each target of an indirect call that the site admits, with its entry, the lanes that call it and
    /// the offset of its frame. Functions of the device library are called here; their lanes are returned in a
    /// variable, if there may be any.
    pub(in crate::emit) fn each_target(
        &mut self,
        call: &Begun,
        mut act: impl FnMut(&mut Self, &Val, &Val, &Val) -> Result<()>,
    ) -> Result<Option<Val>> {
        let (Callee::Indirect(target, _), Target::Admitted(admitted)) = (&call.site.callee, &call.sequence.target)
        else {
            return self.refuse("an indirect call of a function by its name");
        };
        let builtins: Vec<FuncId> = admitted.iter().copied().filter(|f| self.ir.func(*f).builtin.is_some()).collect();
        let answered = (!builtins.is_empty()).then(|| self.w.alloca("i32", 4));
        if let Some(answered) = &answered {
            self.w.store(&int(Elem::I32, 0), answered, 4);
        }
        let target = self.read(*target);
        let target = self.w.resize(&target, Elem::I64, false);
        let (table, first, count) = self.targets(admitted);
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
        for (f, answered) in builtins.iter().zip(answered.iter().cycle()) {
            self.indirect_builtin(call, *f, (&address, &group), answered, &head)?;
        }
        // Functions have addresses 16 apart; what lies between two becomes a huge number by the rotation.
        let base = i128::from(Image::function_address(self.ir.address_size, first));
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
        act(self, &f, &group, &frame)?;
        self.w.jump(&head);
        self.w.block(&end);
        Ok(answered)
    }

    /// Calls the device library's function `f` for a group of lanes, if `address` is that of `f`.
    fn indirect_builtin(
        &mut self,
        call: &Begun,
        f: FuncId,
        (address, group): (&Val, &Val),
        answered: &Val,
        then: &str,
    ) -> Result<()> {
        let Some(builtin) = self.ir.func(f).builtin else { return Ok(()) };
        let own = int(Elem::I64, i128::from(Image::function_address(self.ir.address_size, f)));
        let hit = self.w.cmp("icmp eq", address, &own);
        let (yes, no) = (self.w.label("builtin"), self.w.label("other"));
        self.w.branch(&hit, &yes, &no);
        self.w.block(&yes);
        let lanes = self.unpack_bits(group);
        let (mode, active) = (self.mode, self.active.clone());
        (self.mode, self.active) = (Mode::Masked, lanes.clone());
        self.builtin(builtin, &call.site, Some(&lanes))?;
        (self.mode, self.active) = (mode, active);
        let old = self.w.load(Ty::scalar(Elem::I32), answered, 4);
        let all = self.w.op("or", &old, group);
        self.w.store(&all, answered, 4);
        self.w.jump(then);
        self.w.block(&no);
        Ok(())
    }

    /// The table of the functions that an indirect call site may enter, indexed by id relative to the first of them:
    /// its symbol, that first function, its length.
    fn targets(&mut self, admitted: &[FuncId]) -> (Val, FuncId, u32) {
        let compiled: Vec<FuncId> = admitted.iter().copied().filter(|f| self.reached.compiled[f.0 as usize]).collect();
        let (first, last) = match (compiled.first(), compiled.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ => (FuncId(0), FuncId(0)),
        };
        let entered = if self.reached.fibers { ".fiber" } else { "" };
        let mut entries = Vec::new();
        for id in (first.0..=last.0).map(FuncId) {
            let places = &self.ir.stage.funcs[id.0 as usize];
            entries.push(if compiled.contains(&id) {
                let low = places.frame_align.max(1) - 1;
                format!("{TARGET} {{ ptr @{}{entered}, i32 {}, i32 {low} }}", symbol(id), places.frame_size)
            } else {
                format!("{TARGET} zeroinitializer")
            });
        }
        let (count, entries) = (entries.len() as u32, entries.join(", "));
        // Sites that admit the same functions share a table.
        let mut hasher = DefaultHasher::new();
        entries.hash(&mut hasher);
        let name = format!("@targets.{:016x}", hasher.finish());
        self.w.declared.insert(format!("{name} = internal unnamed_addr constant [{count} x {TARGET}] [{entries}]"));
        (named(Ty::scalar(Elem::Ptr), name), first, count)
    }
}
