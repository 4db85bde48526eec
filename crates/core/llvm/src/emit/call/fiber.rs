//! Calls in which lanes may wait for lanes of their warp that do not participate in the call, or from which lanes return
//! at different times.
//!
//! Such a call ends a block. The calling lanes are parked outside the sweep as at a barrier, while the function runs on
//! a fiber of its own; lanes that return resume after the call.

use crate::ctx::Helper;
use crate::emit::{
    call::signature::{slots, stored},
    call::{Begun, RunsOn},
    function::{Emitter, Mode, Result, symbol},
    site::SiteKind,
    text::{Elem, Ty, Val, int, named},
};
use margay_ir::{
    BlockId, CallSite, Callee,
    explicit::{Carries, Sequence},
};
use std::sync::Arc;

impl Emitter<'_> {
    /// The active lanes call a function; they are parked if it runs on a fiber of its own.
    pub fn call_on_fiber(&mut self, k: u32, number: u32) -> Result<()> {
        let (next, own) = (self.prepared.barriers[k as usize].next, self.prepared.barriers[k as usize].block);
        let position = self.prepared.cfg.position[own.0 as usize];
        // The call is the block's last instruction.
        self.inst = self.func.blocks[own.0 as usize].insts.range().end as u32 - 1;
        self.at = self.func.insts[self.inst as usize].at;
        let call = self.begin_call(number, RunsOn::OwnFiber)?;
        let together = match call.site.callee {
            Callee::Direct(f) => !self.reached.returns_divergent(f),
            Callee::Indirect(..) => false,
        };
        if together && self.mode == Mode::Full {
            return self.call_with_full_warp(&call, next);
        }
        if together {
            self.call_if_alone(&call, next, position)?;
        }
        let mut away = call.lanes.clone();
        match call.site.callee.clone() {
            Callee::Direct(f) => {
                let entry = named(Ty::scalar(Elem::Ptr), format!("@{}.fiber", symbol(f)));
                let frame = self.place_frame(&call, f);
                self.spawn(&call, &entry, &call.lanes, &frame)?;
            }
            Callee::Indirect(..) => {
                let answered = self.each_target(&call, |e, entry, group, frame| e.spawn(&call, entry, group, frame))?;
                if let Some(answered) = answered {
                    let answered = self.w.load(Ty::scalar(Elem::I32), &answered, 4);
                    let back = self.unpack_bits(&answered);
                    self.join_pending(next.0, &back);
                    away = self.w.op("xor", &away, &answered);
                }
            }
        }
        self.park(k, &away);
        self.continue_masked(next, position);
        Ok(())
    }

    /// The full warp calls and returns together, except for threads that exit in the function; `next` is the block after the call.
    fn call_with_full_warp(&mut self, call: &Begun, next: BlockId) -> Result<()> {
        self.call_directly(call)?;
        let alive = self.alive_bits();
        let all = self.w.cmp("icmp eq", &alive, &int(Elem::I32, -1));
        let (full, lost) = (self.full_label(next), self.w.label("lost"));
        self.w.branch(&all, &full, &lost);
        self.w.block(&lost);
        let left = self.unpack_bits(&alive);
        self.set_pending(next.0, &left);
        let label = self.masked_label(next);
        self.w.jump(&label);
        Ok(())
    }

    /// If the calling lanes are all that are alive in the warp, they call without a fiber of its own; otherwise execution continues.
    fn call_if_alone(&mut self, call: &Begun, next: BlockId, position: u32) -> Result<()> {
        let alive = self.alive_bits();
        let away = self.w.op_const("xor", &call.lanes, -1);
        let away = self.w.op("and", &away, &alive);
        let some = self.w.cmp("icmp ne", &away, &int(Elem::I32, 0));
        let (apart, all) = (self.w.label("apart"), self.w.label("together"));
        self.w.branch(&some, &apart, &all);
        self.w.block(&all);
        self.call_directly(call)?;
        let alive = self.alive_bits();
        let left = self.w.op("and", &call.lanes, &alive);
        let left = self.unpack_bits(&left);
        self.join_pending(next.0, &left);
        self.next(position);
        self.w.block(&apart);
        Ok(())
    }

    /// Calls the function on the caller's stack.
    fn call_directly(&mut self, call: &Begun) -> Result<()> {
        let Callee::Direct(f) = call.site.callee else { return Ok(()) };
        let frame = self.place_frame(call, f);
        let outputs = self.invoke(&format!("@{}", symbol(f)), call, &call.lanes, &frame);
        self.take_returns(call, &outputs, None)
    }

    /// Stores the arguments of some of the calling lanes, and has the host start a fiber with the function for them.
    fn spawn(&mut self, call: &Begun, entry: &Val, lanes: &Val, frame: &Val) -> Result<()> {
        let site = int(Elem::I32, self.site(SiteKind::Call) as i128);
        let (Some(args), Some(rets)) = (&call.blocks.args, &call.blocks.rets) else {
            return self.refuse("a call without room for its registers");
        };
        let inputs = &call.sequence.carriers.inputs;
        let (offsets, end) = slots(inputs);
        for ((c, v), at) in inputs.iter().zip(&call.inputs).zip(offsets) {
            let p = self.w.offset_const(args, at);
            match c.carries {
                Carries::Pointer => self.w.store(v, &p, 8),
                Carries::Lanes | Carries::Uniform => {
                    // Lanes parked in an earlier call from this site have their arguments in the same block.
                    let v = self.w.splat(v);
                    let (group, old) = (self.unpack_bits(lanes), self.w.load(v.ty, &p, 64));
                    let v = self.w.select(&group, &v, &old);
                    self.w.store(&v, &p, 64);
                }
            }
        }
        for (i, v) in call.beside.iter().enumerate() {
            let p = self.w.offset_const(args, end + 64 * i as u64);
            self.w.store(v, &p, 8);
        }
        self.helper(Helper::Spawn, &[&site, lanes, frame, args, rets, entry]);
        Ok(())
    }

    /// A call site and its transfers.
    pub fn sequence(&self, number: u32) -> (CallSite, Arc<Sequence>) {
        let sequences = &self.ir.stage.funcs[self.id.0 as usize].sequences;
        (self.func.calls[number as usize].clone(), sequences[number as usize].clone())
    }

    /// Takes the results of lanes that return from a call.
    pub fn return_from_call(&mut self, k: u32, number: u32, lanes: &Val) -> Result<()> {
        let own = self.prepared.barriers[k as usize].block;
        self.inst = self.func.blocks[own.0 as usize].insts.range().end as u32 - 1;
        let (site, sequence) = self.sequence(number);
        let Some(blocks) = self.calls.blocks.get(&self.inst).cloned() else { return self.refuse("a call") };
        let (mode, active) = (self.mode, self.active.clone());
        (self.mode, self.active) = (Mode::Masked, lanes.clone());
        let (offsets, _) = slots(&sequence.carriers.outputs);
        let mut outputs = Vec::new();
        let bits = self.bits(lanes);
        for (c, at) in sequence.carriers.outputs.iter().zip(offsets) {
            let Some(rets) = &blocks.rets else { return self.refuse("a call without room for its results") };
            let p = self.w.offset_const(rets, at);
            let v = self.w.load(stored(c), &p, 64);
            outputs.push(match c.carries {
                Carries::Uniform => self.first_of(&v, &bits),
                Carries::Lanes | Carries::Pointer => v,
            });
        }
        let (inputs, beside) = (Vec::new(), Vec::new());
        let call = Begun { site, sequence, lanes: bits, top: int(Elem::I32, 0), inputs, beside, blocks };
        self.take_returns(&call, &outputs, Some(lanes))?;
        (self.mode, self.active) = (mode, active);
        Ok(())
    }
}
