//! Accesses to local memory outside of the kernel's variables. The window of a thread is as large as its stack may become, so they fault nowhere.

use crate::ctx::{Helper, at};
use crate::emit::{
    function::Emitter,
    memory::address::Address,
    site::SiteKind,
    text::{Elem, Val, constant, int},
};
use margay_exec::AccessKind;
use margay_ir::{
    FrameRole, Inst, MemSpace,
    explicit::{Access, access},
};

impl Emitter<'_> {
    /// Reports an access to the local windows of its lanes that leaves the kernel's variables. Of kernels that call functions, the
    /// frames differ by lane; they are not compiled for checks of bounds.
    pub(super) fn observe_frame(
        &mut self,
        (inst, kind): (&Inst, AccessKind),
        address: &Address,
        bytes: u32,
        mask: Option<&Val>,
    ) {
        let func = self.func;
        let local = matches!(inst.space, Some(MemSpace::Local | MemSpace::Generic));
        if !local || !func.frame.iter().any(|v| v.role == FrameRole::Local) {
            return;
        }
        let proven = |operand| matches!(access(self.ir, func, operand, bytes), Access::Proven(_));
        if func.operands(inst.srcs).first().is_some_and(proven) {
            return;
        }
        let place = &self.ir.stage.funcs[self.id.0 as usize];
        let (bottom, top) = (self.ir.first_local(self.id), place.base + place.frame_size);
        // Addresses elsewhere are far away from the windows.
        let windows = self.local_lanes(&int(Elem::I32, 0));
        let (addresses, windows) = (self.spread(address), self.spread(&windows));
        let offsets = self.w.op("sub", &addresses, &windows);
        let end = self.w.op_const("add", &offsets, i128::from(bytes));
        let beyond = self.w.cmp("icmp ugt", &end, &constant(end.ty, top.into()));
        let before = self.w.cmp("icmp ult", &offsets, &constant(offsets.ty, bottom.into()));
        let outside = self.w.op("or", &beyond, &before);
        let size = self.ctx_value(Elem::I64, at::LOCAL_SIZE);
        let size = self.w.splat(&size);
        let inside = self.w.cmp("icmp ult", &offsets, &size);
        let bad = self.w.op("and", &outside, &inside);
        let (on, mark) = self.unlikely(&bad, mask);
        let site = self.site(SiteKind::Overrun { bytes, access: kind, bottom, top });
        let (lanes, list) = (self.lane_bits(mask), self.listed(&Address::Lanes(offsets)));
        self.helper(Helper::Strays, &[&int(Elem::I32, site as i128), &lanes, &list]);
        self.w.jump(&on);
        self.w.join(&on, mark);
    }
}
