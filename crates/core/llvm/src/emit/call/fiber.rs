//! Calls of functions in which lanes may wait for others of their warp that do not take part in the call, or from which they come
//! back at different times.
//!
//! Such a call ends a block, and the lanes that call wait beside the sweep as at a barrier, while a stack of its own executes
//! the function. Lanes that come back go on behind the call.

use crate::ctx::Helper;
use crate::emit::{
    call::Begun,
    function::{Emitter, Mode, Result, symbol},
    site::SiteKind,
    text::{Elem, Ty, Val, int, named},
};
use margay_ir::{CallSite, Callee};

impl Emitter<'_> {
    /// The active lanes call a function.
    pub fn call_apart(&mut self, k: u32, site: CallSite) -> Result<()> {
        let (next, own) = (self.barriers[k as usize].next, self.barriers[k as usize].block);
        let position = self.cfg.position[own.0 as usize];
        // The block's last instruction.
        self.inst = self.func.blocks[own.0 as usize].insts.range().end as u32 - 1;
        self.at = self.func.insts[self.inst as usize].at;
        let call = self.begin_call(site)?;
        let together = match call.site.callee {
            Callee::Direct(f) => !self.reached.parts(f),
            Callee::Indirect(..) => false,
        };
        if together && self.mode == Mode::Full {
            // The whole warp calls, and comes back as one but for threads that ended.
            self.call_directly(&call)?;
            let alive = self.alive_bits();
            let all = self.w.cmp("icmp eq", &alive, &int(Elem::I32, -1));
            let (full, lost) = (self.full_label(next), self.w.label("lost"));
            self.w.branch(&all, &full, &lost);
            self.w.block(&lost);
            let left = self.unpack_bits(&alive);
            self.set_pending(next.0, &left);
            let label = self.masked_label(next);
            self.w.jump(&label);
            return Ok(());
        }
        if together {
            let alive = self.alive_bits();
            let away = self.w.op_const("xor", &call.lanes, -1);
            let away = self.w.op("and", &away, &alive);
            let some = self.w.cmp("icmp ne", &away, &int(Elem::I32, 0));
            let (apart, all) = (self.w.label("apart"), self.w.label("together"));
            self.w.branch(&some, &apart, &all);
            self.w.block(&all);
            self.call_directly(&call)?;
            let alive = self.alive_bits();
            let left = self.w.op("and", &call.lanes, &alive);
            let left = self.unpack_bits(&left);
            let old = self.get_pending(next.0);
            let left = self.w.op("or", &old, &left);
            self.set_pending(next.0, &left);
            self.next(position);
            self.w.block(&apart);
        }
        match call.site.callee.clone() {
            Callee::Direct(f) => {
                let entry = named(Ty::scalar(Elem::Ptr), format!("@{}", symbol(f)));
                let frame = self.place_frame(&call, f);
                self.spawn(&call, &entry, &call.lanes, &frame);
            }
            Callee::Indirect(r, _) => {
                self.each_target(r, &call, |e, entry, group, frame| e.spawn(&call, entry, group, frame))?;
            }
        }
        self.leave_waiting(k, &call.lanes);
        self.go_on_masked(next, position);
        Ok(())
    }

    fn call_directly(&mut self, call: &Begun) -> Result<()> {
        if let Callee::Direct(f) = call.site.callee {
            let frame = self.place_frame(call, f);
            self.invoke(&format!("@{}", symbol(f)), call, &call.lanes, &frame);
        }
        let lanes = self.unpack_bits(&call.lanes);
        self.take_returns(call, &lanes)
    }

    fn spawn(&mut self, call: &Begun, entry: &Val, lanes: &Val, frame: &Val) {
        let site = int(Elem::I32, self.site(SiteKind::Call) as i128);
        let Begun { args, rets, .. } = call;
        self.helper(Helper::Spawn, &[&site, lanes, frame, args, rets, entry], true);
    }

    /// Lanes come back from a call.
    pub fn come_back(&mut self, k: u32, site: CallSite, lanes: &Val) -> Result<()> {
        let own = self.barriers[k as usize].block;
        self.inst = self.func.blocks[own.0 as usize].insts.range().end as u32 - 1;
        let Some([args, rets]) = self.call_blocks.get(&self.inst).cloned() else { return self.refuse("a call") };
        let (mode, active) = (self.mode, self.active.clone());
        (self.mode, self.active) = (Mode::Masked, lanes.clone());
        let zero = int(Elem::I32, 0);
        let call = Begun { site, lanes: zero.clone(), top: zero, args, rets };
        self.take_returns(&call, lanes)?;
        (self.mode, self.active) = (mode, active);
        Ok(())
    }
}
