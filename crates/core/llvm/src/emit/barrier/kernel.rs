//! Kernels that loop over CTAs and warps themselves: one call runs a range of CTAs.
//!
//! The code between two barriers is a *region*, and a region is a loop over the warps of the CTA (loop fission). All threads of
//! the CTA must reach the same barriers in the same order; a kernel for which that is not known runs one fiber per warp instead.

use crate::ctx::{at, status};
use crate::emit::{
    function::prepare::trivial_exit,
    function::{Emitter, Options, Region, Result},
    site::Moment,
    text::{Elem, Ty, Val, int},
};
use margay_ir::{
    BlockId, Func, GlobalId, Inst, MemBase, MemSpace, Operand, Terminator, VReg,
    pass::{Cfg, Cut, Regions, Uniformity, cfg::successors},
};
use margay_isa::{Effect, Mod, Opcode, Space};

/// Warp and CTA of the loop iteration that is being emitted.
#[derive(Clone, Debug)]
pub struct Current {
    /// Index of the warp.
    pub warp: Val,
    /// Address of the local window of its lane 0.
    pub local: Val,
    /// Index of the CTA.
    pub cta: [Val; 3],
    /// Variable that holds the number of the region to run next; 0 if there is none.
    pub next: Val,
}

fn instruction<'f>(func: &'f Func, barrier: &Cut) -> Option<&'f Inst> {
    func.insts(&func.blocks[barrier.block.0 as usize]).last()
}

/// Whether a kernel can be split into regions: barriers that all threads reach, not too much duplicated code.
pub fn fits(func: &Func, cfg: &Cfg, cta: &Uniformity, barriers: &[Cut], options: &Options) -> bool {
    let Some(block) = options.warp.block else { return false };
    if barriers.is_empty() {
        return true;
    }
    let threads = block.iter().product::<u32>().next_multiple_of(32);
    let plain = |barrier: &Cut| {
        let Some(inst) = instruction(func, barrier) else { return false };
        let variant = func.variant(inst);
        let numbers = func.operands(inst.srcs);
        let numbers = if variant.has(Mod::Red) { &numbers[..numbers.len().saturating_sub(1)] } else { numbers };
        let known = match numbers {
            [Operand::Imm(id)] | [Operand::Imm(id), Operand::Sink] => *id < 16,
            [Operand::Imm(id), Operand::Imm(count)] => *id < 16 && *count == u64::from(threads),
            _ => false,
        };
        known && inst.guard.is_none() && !variant.has(Mod::Arrive) && !cta.divergent[barrier.block.0 as usize]
    };
    // Code shared by several regions is emitted once for each.
    let size = Regions::new(cfg, barriers).size();
    cfg.reducible && barriers.iter().all(plain) && size <= 4 * func.blocks.len() + 32
}

impl Emitter<'_> {
    /// Number of warps of a CTA.
    pub fn warps(&self) -> u32 {
        self.options.warp.block.map_or(1, |b| b.iter().product::<u32>().div_ceil(32))
    }

    /// Emits the loop over CTAs and, inside it, one loop over warps per region.
    pub fn grid(&mut self) -> Result<()> {
        let wide = Ty::scalar(Elem::I64);
        let linear = self.w.alloca("i64", 8);
        let (warp, next) = (self.w.alloca("i32", 4), self.w.alloca("i32", 4));
        let (first, end) = (self.ctx_value(Elem::I64, at::FIRST), self.ctx_value(Elem::I64, at::END));
        let size = [0, 4].map(|o| self.ctx_value(Elem::I32, at::GRID + o));
        self.w.store(&first, &linear, 8);
        let cta = self.store_first_index(first, &size);
        self.w.jump("cta.next");
        self.w.block("cta.next");
        let here = self.w.load(wide, &linear, 8);
        let over = self.w.cmp("icmp eq", &here, &end);
        self.w.branch(&over, "finished", "cta.begin");
        self.w.block("finished");
        self.end_combining();
        self.w.line(format_args!("ret i32 {}", status::DONE));
        self.w.block("cta.begin");
        self.observe(Moment::Begin);
        let indices = cta.clone().map(|p| self.w.load(Ty::scalar(Elem::I32), &p, 4));
        if self.mentions_shared() {
            self.clear_shared();
        }
        self.w.jump("r0.head");
        let regions = Regions::new(&self.prepared.cfg, &self.prepared.barriers);
        self.grid_loop.synchronous = self.is_synchronous();
        self.begin_checks_ahead();
        for (k, region) in regions.list.iter().enumerate() {
            let (blocks, tag) = (region.blocks.clone(), format!("r{k}."));
            let only_loads = self.only_loads_shared(&blocks);
            self.region = Region { blocks, tag, lone_barrier: region.barriers.len() <= 1, only_loads };
            self.region_loop(k, region.entry, &indices, [&warp, &next], &region.barriers)?;
        }
        self.grid_loop.current = None;
        self.w.block("cta.done");
        self.observe(Moment::End);
        let here = self.w.load(wide, &linear, 8);
        let here = self.w.op_const("add", &here, 1);
        self.w.store(&here, &linear, 8);
        self.advance_index(&cta, &size);
        Ok(())
    }

    /// Stores the index of the CTA with the linear index `first` in the context, where components that the kernel does not read cost no
    /// registers. Returns their addresses.
    fn store_first_index(&mut self, first: Val, size: &[Val; 2]) -> [Val; 3] {
        let mut rest = first;
        let cta = [0, 1, 2].map(|i| self.ctx_pointer(at::CTA + 4 * i));
        for (p, n) in cta.iter().zip(size) {
            let n = self.w.cast("zext", n, Elem::I64);
            let index = self.w.op("urem", &rest, &n);
            let index = self.w.cast("trunc", &index, Elem::I32);
            self.w.store(&index, p, 4);
            rest = self.w.op("udiv", &rest, &n);
        }
        let index = self.w.cast("trunc", &rest, Elem::I32);
        self.w.store(&index, &cta[2], 4);
        cta
    }

    /// Goes to the next CTA: increments x, carries into y, then into z; most grids only use x.
    fn advance_index(&mut self, cta: &[Val; 3], size: &[Val; 2]) {
        for (i, p) in cta.iter().enumerate() {
            let old = self.w.load(Ty::scalar(Elem::I32), p, 4);
            let new = self.w.op_const("add", &old, 1);
            self.w.store(&new, p, 4);
            let Some(n) = size.get(i) else { break };
            let wraps = self.w.cmp("icmp eq", &new, n);
            let carry = self.w.label("carry");
            self.w.branch_unlikely(&wraps, &carry, "cta.next");
            self.w.block(&carry);
            self.w.store(&int(Elem::I32, 0), p, 4);
        }
        self.w.jump("cta.next");
    }

    /// Whether all threads reach every barrier, in full warps: in a region that another one may follow, no thread exits without the others.
    pub fn stay_together(&self) -> bool {
        let (func, regions) = (self.func, Regions::new(&self.prepared.cfg, &self.prepared.barriers));
        let whole = self.options.warp.block.is_some_and(|b| b.iter().product::<u32>() % 32 == 0);
        let apart = |b: usize, cta: &Uniformity| {
            let term = &func.blocks[b].term;
            let exits = |to: BlockId| trivial_exit(func, to);
            let ends = matches!(term, Terminator::Ret | Terminator::Exit);
            let may_end = ends || successors(term).into_iter().any(exits);
            may_end && (cta.divergent[b] || !ends && cta.branches[b])
        };
        let ends = |b: &BlockId| self.spills.cta.as_ref().is_none_or(|cta| apart(b.0 as usize, cta));
        let waits = regions.list.iter().filter(|r| !r.barriers.is_empty());
        whole && !self.grid_loop.unless_racing && func.calls.is_empty() && !waits.flat_map(|r| &r.blocks).any(ends)
    }

    /// Whether the kernel or its callees may access shared memory.
    fn mentions_shared(&self) -> bool {
        let func = self.func;
        let shared = |g: GlobalId| self.ir.globals[g.0 as usize].space == Space::Shared;
        let mentions = |inst: &Inst| {
            let variant = func.variant(inst);
            let operands = func.operands(inst.srcs).iter().chain(func.operands(inst.dsts));
            let named = |o: &Operand| match o {
                Operand::GlobalAddr(g, _) | Operand::Mem(MemBase::Global(g), _) => shared(*g),
                _ => false,
            };
            let plain = matches!(variant.op.row().effect, Effect::Pure | Effect::Machine)
                || matches!(variant.op, Opcode::Ld | Opcode::St | Opcode::Atom | Opcode::Red);
            let known = plain && !matches!(inst.space, Some(MemSpace::Shared | MemSpace::SharedCluster));
            !known && !matches!(variant.op, Opcode::Cvta if !variant.has(Mod::Shared))
                || operands.into_iter().any(named)
        };
        !func.calls.is_empty() || func.insts.iter().any(mentions)
    }

    /// Zeroes the shared window, which is padded to a multiple of 64 bytes, unless the CTA brings it along.
    fn clear_shared(&mut self) {
        let wide = Ty::scalar(Elem::I64);
        let at = self.w.alloca("i64", 8);
        let size = self.ctx_value(Elem::I64, at::ZEROED);
        let shared = self.ctx_value(Elem::Ptr, at::SHARED);
        let [head, clear, on] = ["clearing", "clear", "cleared"].map(|l| self.w.label(l));
        self.w.store(&int(Elem::I64, 0), &at, 8);
        self.w.jump(&head);
        self.w.block(&head);
        let offset = self.w.load(wide, &at, 8);
        let more = self.w.cmp("icmp ult", &offset, &size);
        self.w.branch(&more, &clear, &on);
        self.w.block(&clear);
        let p = self.w.offset(&shared, &offset);
        self.w.line(format_args!("store <16 x i32> zeroinitializer, ptr {p}, align 64"));
        let next = self.w.op_const("add", &offset, 64);
        self.w.store(&next, &at, 8);
        self.w.jump(&head);
        self.w.block(&on);
    }

    /// Emits region `k`, the loop over warps from its block `entry` to one of `barriers`: region 0 begins the kernel, the others follow
    /// barrier `k - 1`. `cta` is the CTA's index; variables hold the warp, and the number of the next region.
    fn region_loop(
        &mut self,
        k: usize,
        entry: BlockId,
        cta: &[Val; 3],
        [warp_slot, next]: [&Val; 2],
        barriers: &[u32],
    ) -> Result<()> {
        let scalar = Ty::scalar(Elem::I32);
        let (tag, warps) = (self.region.tag.clone(), self.warps());
        let [head, ahead, loops, after, end] = ["head", "ahead", "warp", "next", "end"].map(|s| format!("{tag}{s}"));
        let before = k.checked_sub(1).map(|k| k as u32);
        self.find_touched(before);
        self.w.block(&head);
        if let Some(i) = before
            .and_then(|b| self.func.blocks[self.prepared.barriers[b as usize].block.0 as usize].insts.range().last())
        {
            (self.inst, self.at) = (i as u32, self.func.insts[i].at);
            self.observe(Moment::Complete);
        }
        self.w.store(&int(Elem::I32, 0), next, 4);
        self.w.store(&int(Elem::I32, 0), warp_slot, 4);
        let shared = before.map_or(Vec::new(), |b| self.shared_values(b));
        let reduced = match before {
            Some(b) => self.reduction(b)?,
            None => None,
        };
        self.clear_sums(barriers);
        self.w.jump(&ahead);
        self.w.block(&loops);
        let warp = self.w.load(scalar, warp_slot, 4);
        self.select_warp(&warp, cta, next);
        let lanes = match before {
            Some(_) => self.remaining_lanes(&after),
            None => self.initial_lanes(),
        };
        self.reset_registers(before);
        if let Some(b) = before {
            self.restore_registers(b, &shared)?;
            if let Some((r, v)) = reduced {
                self.write(r, &v, None);
            }
        }
        self.begin(&lanes, entry);
        self.bodies()?;
        self.end_warp();
        self.w.jump(&after);
        self.w.block(&after);
        let following = self.w.op_const("add", &warp, 1);
        self.w.store(&following, warp_slot, 4);
        let more = self.w.cmp("icmp ult", &following, &int(Elem::I32, i128::from(warps)));
        self.w.branch(&more, &loops, &end);
        // The warps' code is known now, and with it what to check for all of them.
        self.w.block(&ahead);
        self.check_ahead()?;
        self.w.jump(&loops);
        self.w.block(&end);
        self.go_to_region(next, barriers);
        Ok(())
    }

    /// Continues after the barrier that the warps have arrived at; `next` holds its number plus one, or 0 for the end of the CTA.
    fn go_to_region(&mut self, next: &Val, barriers: &[u32]) {
        if barriers.is_empty() {
            return self.w.jump("cta.done");
        }
        let n = self.w.load(Ty::scalar(Elem::I32), next, 4);
        let arms: String = barriers.iter().map(|b| format!(" i32 {}, label %r{}.head", b + 1, b + 1)).collect();
        self.w.line(format_args!("switch i32 {n}, label %cta.done [{arms} ]"));
    }

    /// The block in which all lanes of the current warp have exited.
    fn end_warp(&mut self) {
        let done = self.done_label();
        self.w.block(&done);
        if !self.prepared.barriers.is_empty() && !self.grid_loop.together {
            let p = self.alive_lanes();
            self.w.store(&int(Elem::I32, 0), &p, 4);
        }
    }

    /// Makes a warp of the CTA the current one, whose local windows follow those of the warps before it.
    fn select_warp(&mut self, warp: &Val, cta: &[Val; 3], next: &Val) {
        let to = self.ctx_pointer(at::WARP);
        self.w.store(warp, &to, 4);
        let stride = self.ctx_value(Elem::I64, at::LOCAL_STRIDE);
        let window = self.w.op_const("shl", &stride, 5);
        let rows = self.local.interleaved.map_or(0, |frame| frame.size * 32);
        let window = self.w.op_const("add", &window, rows.into());
        let wide = self.w.cast("zext", warp, Elem::I64);
        let offset = self.w.op("mul", &wide, &window);
        let locals = self.ctx_value(Elem::I64, at::LOCALS);
        let local = self.w.op("add", &locals, &offset);
        let to = self.ctx_pointer(at::LOCAL);
        let line = self.w.body.len();
        self.w.store(&local, &to, 8);
        self.local.address_lines.insert(self.w.body[line..].trim_end().to_owned());
        self.grid_loop.current = Some(Current { warp: warp.clone(), local, cta: cta.clone(), next: next.clone() });
    }

    /// A warp arrives at a barrier: spills live values; the next warp runs.
    pub fn leave_region(&mut self, barrier: u32) -> Result<()> {
        self.observe(Moment::Arrive);
        if self.is_reduction(barrier) {
            self.vote_at(barrier)?;
        }
        // Whole warps may have exited although no branch diverges.
        if !self.grid_loop.together {
            let lanes = self.active_bits();
            let p = self.alive_lanes();
            self.w.store(&lanes, &p, 4);
        }
        self.spill_registers(barrier);
        if let Some(next) = self.grid_loop.current.as_ref().map(|c| c.next.clone()) {
            if self.grid_loop.unless_racing {
                self.refuse_another(barrier, &next);
            }
            self.w.store(&int(Elem::I32, i128::from(barrier) + 1), &next, 4);
        }
        let after = format!("{}next", self.region.tag);
        self.w.jump(&after);
        Ok(())
    }

    /// Stops if an earlier warp of the CTA waits at another barrier.
    fn refuse_another(&mut self, barrier: u32, next: &Val) {
        let before = self.w.load(Ty::scalar(Elem::I32), next, 4);
        let some = self.w.cmp("icmp ne", &before, &int(Elem::I32, 0));
        let other = self.w.cmp("icmp ne", &before, &int(Elem::I32, i128::from(barrier) + 1));
        let apart = self.w.op("and", &some, &other);
        self.fault_if(
            &apart,
            "threads of the CTA wait at different barriers, for they loaded different values from one place",
        );
    }

    fn is_reduction(&self, barrier: u32) -> bool {
        instruction(self.func, &self.prepared.barriers[barrier as usize])
            .is_some_and(|i| self.func.variant(i).has(Mod::Red))
    }

    /// Variables that count the true predicates, and all predicates, at a barrier.
    fn sums(&mut self, barrier: u32) -> [Val; 2] {
        if let Some(sums) = self.grid_loop.sums.get(&barrier) {
            return sums.clone();
        }
        let sums = [0; 2].map(|_| self.w.alloca("i32", 4));
        self.grid_loop.sums.insert(barrier, sums.clone());
        sums
    }

    /// Clears the counts of those barriers that reduce predicates.
    fn clear_sums(&mut self, barriers: &[u32]) {
        for b in barriers {
            if self.is_reduction(*b) {
                let sums = self.sums(*b);
                sums.iter().for_each(|p| self.w.store(&int(Elem::I32, 0), p, 4));
            }
        }
    }

    /// Adds the predicates of the current warp to the counts of a barrier's reduction.
    fn vote_at(&mut self, barrier: u32) -> Result<()> {
        let func = self.func;
        let srcs =
            instruction(func, &self.prepared.barriers[barrier as usize]).map_or(&[][..], |i| func.operands(i.srcs));
        let Some(p) = srcs.last() else { return self.refuse("a reduction without a predicate") };
        let p = self.value(p, Elem::I1)?;
        let (truth, here) = (self.bits(&p), self.active_bits());
        let truth = self.w.op("and", &truth, &here);
        for (bits, sum) in [truth, here].iter().zip(self.sums(barrier)) {
            let count = self.w.intrinsic("llvm.ctpop", bits.ty, &[bits]);
            let old = self.w.load(count.ty, &sum, 4);
            let new = self.w.op("add", &old, &count);
            self.w.store(&new, &sum, 4);
        }
        Ok(())
    }

    /// The result of a barrier's reduction and the register that receives it.
    fn reduction(&mut self, barrier: u32) -> Result<Option<(VReg, Val)>> {
        let func = self.func;
        let inst =
            instruction(func, &self.prepared.barriers[barrier as usize]).filter(|i| func.variant(i).has(Mod::Red));
        let Some((inst, Some(Operand::Reg(r)))) = inst.map(|i| (i, func.operands(i.dsts).first())) else {
            return Ok(None);
        };
        let [truths, votes] = self.sums(barrier).map(|p| self.w.load(Ty::scalar(Elem::I32), &p, 4));
        let variant = func.variant(inst);
        let v = match () {
            _ if variant.has(Mod::Popc) => truths,
            _ if variant.has(Mod::And) => self.w.cmp("icmp eq", &truths, &votes),
            _ => self.w.cmp("icmp ne", &truths, &int(Elem::I32, 0)),
        };
        Ok(Some((*r, v)))
    }

    /// Address of the current warp's mask of lanes that have not exited.
    fn alive_lanes(&mut self) -> Val {
        let table = self.ctx_value(Elem::Ptr, at::ALIVE_LANES);
        let warp = self.warp_index();
        self.w.value(Ty::scalar(Elem::Ptr), format_args!("getelementptr i32, ptr {table}, i32 {warp}"))
    }

    /// The lanes of the current warp that run a region after a barrier: those that have not exited. Jumps to `after` if there are none.
    fn remaining_lanes(&mut self, after: &str) -> Val {
        if self.grid_loop.together {
            return int(Elem::I32, -1);
        }
        let p = self.alive_lanes();
        let lanes = self.w.load(Ty::scalar(Elem::I32), &p, 4);
        let none = self.w.cmp("icmp eq", &lanes, &int(Elem::I32, 0));
        let some = self.w.label("some");
        self.w.branch(&none, after, &some);
        self.w.block(&some);
        lanes
    }

    /// The lanes of the current warp that have threads.
    fn initial_lanes(&mut self) -> Val {
        if !self.masks {
            return int(Elem::I32, -1);
        }
        let threads = self.options.warp.block.map_or(32, |b| b.iter().product::<u32>());
        match threads % 32 {
            0 => int(Elem::I32, -1),
            tail => {
                let last = int(Elem::I32, i128::from(self.warps() - 1));
                let warp = self.warp_index();
                let is_last = self.w.cmp("icmp eq", &warp, &last);
                self.w.select(&is_last, &int(Elem::I32, (1i128 << tail) - 1), &int(Elem::I32, -1))
            }
        }
    }
}
