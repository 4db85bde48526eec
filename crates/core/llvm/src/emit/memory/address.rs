//! Addresses of memory accesses, by how they depend on the lane; `bounds` checks that every active lane may access its own.

use crate::ctx::at;
use crate::emit::{
    function::affine::{affine_form, rows},
    function::{Emitter, Mode, Result},
    memory::bounds::Check,
    memory::group::{Group, Grouped, Member},
    text::{Elem, Val, Writer, constant, int, per_lane},
};
use margay_ir::{
    Inst, MemBase, MemSpace, Operand, RANK_SHIFT, VReg,
    explicit::{Access, access},
};
use margay_isa::{Component, Special};

/// A 32-bit address does not wrap around if it changes by less than this along a row, or from a register to the address of an access:
/// windows of shared memory are shorter, and other memory for such addresses is further from zero
/// ([`margay_exec::mem::Reach::Low`]).
pub(super) const NEAR: u64 = 1 << 28;

/// Addresses of shared memory without a rank are below this: windows are smaller.
const UNRANKED: i128 = 1 << 20;

/// Host addresses of an access.
#[derive(Clone, Debug)]
pub(in crate::emit) enum Address {
    /// `bases`: addresses of the first lane of each row of `width` lanes; `stride`: bytes from one lane to the next.
    Affine { bases: Vec<Val>, width: u32, stride: i64 },
    /// One address per lane.
    Lanes(Val),
}

impl Address {
    /// The same address in all lanes.
    pub fn uniform(v: Val) -> Address {
        Address::Affine { bases: vec![v], width: 32, stride: 0 }
    }

    /// The addresses `bytes` bytes further on.
    pub(super) fn plus(&self, w: &mut Writer, bytes: i64) -> Address {
        match self {
            Address::Lanes(all) => Address::Lanes(w.op_const("add", all, bytes.into())),
            Address::Affine { bases, width, stride } => Address::Affine {
                bases: bases.iter().map(|base| w.op_const("add", base, bytes.into())).collect(),
                width: *width,
                stride: *stride,
            },
        }
    }
}

/// The access of one lane.
pub(super) struct LaneAccess<'a> {
    pub space: MemSpace,
    /// The name of the space in faults.
    pub name: &'static str,
    /// The operand's constant offset.
    pub offset: i64,
    /// Per lane, from `offset` on.
    pub bytes: u32,
    pub write: bool,
    pub mask: Option<&'a Val>,
    /// Its parts: one access, unless several are performed as one.
    pub members: &'a [Member],
}

impl LaneAccess<'_> {
    /// Whether addresses of the space are 32-bit offsets in a window.
    fn narrow(&self) -> bool {
        matches!(self.space, MemSpace::Shared | MemSpace::Local)
    }

    fn elem(&self) -> Elem {
        if self.narrow() { Elem::I32 } else { Elem::I64 }
    }

    /// The check of this access alone.
    pub fn check(&self) -> Check {
        let &LaneAccess { name: space, offset, write, members, .. } = self;
        Check { members: members.to_vec(), others: Vec::new(), write, space, origin: offset, end: None }
    }
}

impl Emitter<'_> {
    /// The active lanes of `mask` as a vector; `None` if these are certainly all lanes.
    pub fn lanes(&mut self, mask: Option<&Val>) -> Option<Val> {
        let active = (self.mode == Mode::Masked).then(|| self.active.clone());
        match (active, mask) {
            (None, None) => None,
            (Some(a), None) => Some(a),
            (None, Some(m)) => Some(self.w.splat(m)),
            (Some(a), Some(m)) => Some(self.w.op("and", &a, m)),
        }
    }

    /// The active lanes of `mask` as 32 bits.
    pub fn lane_bits(&mut self, mask: Option<&Val>) -> Val {
        match self.lanes(mask) {
            Some(m) => self.bits(&m),
            None => int(Elem::I32, -1),
        }
    }

    /// Host addresses of an offset in the threads' local windows.
    pub fn local_lanes(&mut self, offset: &Val) -> Address {
        self.local.used = true;
        let base = self.ctx_value(Elem::I64, at::LOCAL);
        let steps = self.local_steps();
        let windows = self.w.op("add", &base, &steps);
        let offset = self.w.resize(offset, Elem::I64, false);
        Address::Lanes(self.w.op("add", &windows, &offset))
    }

    /// The lanes' local windows, in bytes from that of the first lane.
    fn local_steps(&mut self) -> Val {
        let stride = self.ctx_value(Elem::I64, at::LOCAL_STRIDE);
        let lanes = per_lane(Elem::I64, i128::from);
        let ty = lanes.ty;
        let one = self.w.once(ty, format_args!("insertelement {ty} poison, i64 {stride}, i32 0"));
        let all = self.w.once(ty, format_args!("shufflevector {ty} {one}, {ty} poison, <32 x i32> zeroinitializer"));
        self.w.once(ty, format_args!("mul {ty} {all}, {lanes}"))
    }

    /// The address of each lane, as a vector.
    pub fn spread(&mut self, address: &Address) -> Val {
        match address {
            Address::Lanes(v) => v.clone(),
            Address::Affine { bases, width, stride } => self.spread_rows(bases, Elem::I64, *width, *stride),
        }
    }

    /// Evaluates and checks an address operand for accesses of `bytes` bytes per lane, and lets `f` emit the access:
    /// once, or twice where only run time shows whether the address is affine.
    pub fn access(
        &mut self,
        inst: &Inst,
        operand: &Operand,
        (bytes, write): (u32, bool),
        mask: Option<&Val>,
        f: impl FnMut(&mut Self, &Address) -> Result<()>,
    ) -> Result<()> {
        let Operand::Mem(base, offset) = operand else { return self.refuse("an address") };
        let space = inst.space.unwrap_or(MemSpace::Generic);
        let Some(name) = name(space) else { return self.refuse(".shared::cluster") };
        let members = &[Member { inst: self.inst, offset: *offset, bytes }];
        self.access_as(operand, base, &LaneAccess { space, name, offset: *offset, bytes, write, mask, members }, f)
    }

    /// The same for an access through an operand with this base.
    pub(super) fn access_as(
        &mut self,
        operand: &Operand,
        base: &MemBase,
        what: &LaneAccess<'_>,
        mut f: impl FnMut(&mut Self, &Address) -> Result<()>,
    ) -> Result<()> {
        let &LaneAccess { space, bytes, mask, .. } = what;
        let mut f = |e: &mut Self, address: &Address| {
            e.count_access(space, bytes, address, mask);
            e.settle(space, bytes, address, mask);
            f(e, address)
        };
        if let MemBase::Reg(r) = base {
            return self.access_by_register(*r, what, f);
        }
        let known = access(self.ir, self.func, operand, bytes);
        let address = self.address_without_register(base, &known, what);
        f(self, &address)
    }

    /// The checked address of an access without a register, which is the same in all lanes.
    fn address_without_register(&mut self, base: &MemBase, known: &Access, what: &LaneAccess<'_>) -> Address {
        let (space, offset) = (what.space, what.offset);
        let check = what.check();
        let unproven = (!matches!(known, Access::Proven(_))).then_some(&check);
        match base {
            MemBase::Global(g) => {
                let v = self.global_address(g.0, offset);
                let v = self.w.resize(&v, what.elem(), false);
                match unproven {
                    None => Address::uniform(self.based(space, &v, 0)),
                    check => self.checked(space, Address::uniform(v), check, what.mask),
                }
            }
            MemBase::Frame(frame) => {
                let check = match known {
                    Access::Proven(_) | Access::Straddling => None,
                    Access::Passed(_) => {
                        self.check_passed(frame.0, what);
                        Some(&check)
                    }
                    Access::Outside(_) => {
                        self.refuse_parameter(frame.0, what);
                        Some(&check)
                    }
                    Access::Checked => Some(&check),
                };
                let v = self.frame_address(frame.0, offset);
                self.checked(space, Address::uniform(v), check, what.mask)
            }
            MemBase::KernelParam => {
                let address = Address::uniform(int(Elem::I64, i128::from(offset)));
                self.checked(space, address, unproven, what.mask)
            }
            MemBase::Absolute | MemBase::Reg(_) => {
                let v = int(what.elem(), i128::from(offset));
                self.checked(space, Address::uniform(v), Some(&check), what.mask)
            }
        }
    }

    /// Emits an access whose address is a register and an offset.
    fn access_by_register(
        &mut self,
        r: VReg,
        what: &LaneAccess<'_>,
        mut f: impl FnMut(&mut Self, &Address) -> Result<()>,
    ) -> Result<()> {
        let own = self.unless_in_shared(r, what.space, what.check());
        let grouped = match self.accesses.groups.get(&self.inst).cloned() {
            Some(Grouped::First(Group { members, others })) => {
                let check = Check { members, others, ..what.check() };
                self.unless_in_shared(r, what.space, check)
            }
            Some(Grouped::Later) => None,
            None => own.clone(),
        };
        let slot = self.slots[r.0 as usize].clone();
        // Rows whose addresses span too much to be compared without overflow are checked lane by lane, and so are those that may wrap
        // around at 32 bits. Local addresses are always computed in these.
        let most = match what.space {
            MemSpace::Local => 1 << 48,
            MemSpace::Shared => NEAR,
            _ if slot.elem == Elem::I32 => NEAR,
            _ => 1 << 48,
        };
        let near = |width: u32, stride: i64| {
            stride.checked_mul(i64::from(width)).is_some_and(|reach| reach.unsigned_abs() < most)
        };
        if let Some((width, stride)) = affine_form(slot.shape).filter(|(w, s)| near(*w, *s)) {
            let address = self.address_in_rows(r, (width, stride), what, grouped.as_ref());
            return f(self, &address);
        }
        let Some(shadow) = slot.shadow.filter(|s| self.keeps(s) && near(s.width, s.stride)) else {
            let address = self.address_by_lanes(r, what, grouped.as_ref());
            return f(self, &address);
        };
        let wrapped = self.is_wrapped(&shadow);
        let (cold, hot, done) = (self.w.label("wrapped"), self.w.label("straight"), self.w.label("accessed"));
        self.w.branch_unlikely(&wrapped, &cold, &hot);
        self.leave(&cold, &done, &hot, |e| {
            let address = e.address_by_lanes(r, what, own.as_ref());
            f(e, &address)
        })?;
        let mark = self.w.mark();
        let address = self.address_in_rows(r, (shadow.width, shadow.stride), what, grouped.as_ref());
        f(self, &address)?;
        self.w.jump(&done);
        self.w.join(&done, mark);
        Ok(())
    }

    /// A check of accesses at register `r`, unless they certainly lie in shared memory.
    fn unless_in_shared(&self, r: VReg, space: MemSpace, mut check: Check) -> Option<Check> {
        let end = if space == MemSpace::Shared { self.shared_end(r, &check.members) } else { None };
        // Only the launch determines the size of dynamic shared memory.
        check.end = end.filter(|_| self.reached.shared.dynamic);
        (!end.is_some_and(|end| self.shared_reaches(end))).then_some(check)
    }

    /// The addresses of rows of `width` lanes, `stride` bytes from one lane to the next.
    fn address_in_rows(
        &mut self,
        r: VReg,
        (width, stride): (u32, i64),
        what: &LaneAccess<'_>,
        check: Option<&Check>,
    ) -> Address {
        // Within a window, the offset is added to the host address: there it cannot wrap around, unless it is large.
        let (added, displacement) = match what.narrow() {
            true if what.offset.unsigned_abs() < NEAR => (0, what.offset),
            true => (i64::from(what.offset as i32), 0),
            false => (what.offset, 0),
        };
        let mut bases = Vec::new();
        for row in rows(width) {
            let Some(v) = self.read_row(r, row) else { continue };
            let v = self.w.resize(&v, what.elem(), false);
            let v = self.without_rank(what.space, v);
            bases.push(self.w.op_const("add", &v, i128::from(added)));
        }
        if let (Some(check), false) = (check, what.narrow() || what.space == MemSpace::KernelParam) {
            let address = Address::Affine { bases, width, stride };
            self.check_unless_ahead(r, &address, what, check);
            return address;
        }
        self.checked_at(what.space, Address::Affine { bases, width, stride }, displacement, check, what.mask)
    }

    /// The address of each lane.
    fn address_by_lanes(&mut self, r: VReg, what: &LaneAccess<'_>, check: Option<&Check>) -> Address {
        let v = self.read(r);
        let v = self.w.resize(&v, what.elem(), false);
        let v = self.without_rank(what.space, v);
        let v = self.w.op_const("add", &v, i128::from(what.offset));
        self.checked(what.space, Address::Lanes(v), check, what.mask)
    }

    /// The rank of the CTA as addresses of shared memory have it; `None` if they have none.
    pub(in crate::emit) fn rank_in_addresses(&mut self) -> Option<Val> {
        if !self.ir.ranked_addresses || self.options.cluster.is_none() {
            return None;
        }
        let rank = self.special(Special::ClusterCtarank, Component::X).ok()?;
        let rank = self.w.resize(&rank, Elem::I32, false);
        Some(self.w.op_const("shl", &rank, RANK_SHIFT.into()))
    }

    /// The offset in the CTA's window of an address of 32 bits that a register holds: with the CTA's rank, or without one.
    pub(in crate::emit) fn without_rank(&mut self, space: MemSpace, v: Val) -> Val {
        if space != MemSpace::Shared {
            return v;
        }
        let Some(rank) = self.rank_in_addresses() else { return v };
        let bare = self.w.cmp("icmp ult", &v, &constant(v.ty, UNRANKED));
        let offset = self.w.op("sub", &v, &rank);
        self.w.select(&bare, &v, &offset)
    }

    /// The host address of a scalar offset in a space; `displacement` is added after the offset has wrapped around.
    fn based(&mut self, space: MemSpace, v: &Val, displacement: i64) -> Val {
        let field = match space {
            MemSpace::Shared => at::SHARED,
            MemSpace::KernelParam => at::PARAMS,
            _ => return self.w.op_const("add", v, i128::from(displacement)),
        };
        // Sign-extended: the first lane of a row may lie below the window while the active lanes lie inside it.
        let v = self.w.resize(v, Elem::I64, true);
        let base = self.ctx_value(Elem::I64, field);
        let v = self.w.op("add", &base, &v);
        self.w.op_const("add", &v, i128::from(displacement))
    }

    fn checked(&mut self, space: MemSpace, raw: Address, check: Option<&Check>, mask: Option<&Val>) -> Address {
        self.checked_at(space, raw, 0, check, mask)
    }

    /// Converts offsets in a space to host addresses that pass a check; without one, the access is proven. `displacement` is
    /// added to the 64-bit addresses: within a window nothing wraps around.
    fn checked_at(
        &mut self,
        space: MemSpace,
        raw: Address,
        displacement: i64,
        check: Option<&Check>,
        mask: Option<&Val>,
    ) -> Address {
        match (space, raw) {
            (MemSpace::Local, raw) => {
                let offsets = match raw {
                    Address::Lanes(v) => v,
                    Address::Affine { bases, width, stride } => match (&bases[..], stride) {
                        ([one], 0) => one.clone(),
                        _ => self.spread_rows(&bases, Elem::I32, width, stride),
                    },
                };
                let offsets = self.w.op_const("add", &offsets, i128::from(displacement));
                self.checked_local(&offsets, check, mask)
            }
            (MemSpace::Shared, Address::Lanes(offsets)) => self.checked_shared_lanes(&offsets, check, mask),
            (_, Address::Affine { bases, width, stride }) => {
                let bases = bases.iter().map(|b| self.based(space, b, displacement)).collect();
                let address = Address::Affine { bases, width, stride };
                if let Some(check) = check {
                    self.unless_within(check, |e| _ = e.check(&address, check, space, mask));
                }
                address
            }
            (_, Address::Lanes(v)) => {
                let address = Address::Lanes(self.host_lanes(space, &v));
                if let Some(check) = check {
                    self.check(&address, check, space, mask);
                }
                address
            }
        }
    }

    /// The host addresses of the lanes' offsets in a space other than `.local`.
    pub(in crate::emit) fn host_lanes(&mut self, space: MemSpace, offsets: &Val) -> Val {
        let field = match space {
            MemSpace::Shared => at::SHARED,
            MemSpace::KernelParam => at::PARAMS,
            _ => return offsets.clone(),
        };
        let base = self.ctx_value(Elem::I64, field);
        let wide = self.w.resize(offsets, Elem::I64, false);
        self.w.op("add", &base, &wide)
    }

    fn checked_shared_lanes(&mut self, offsets: &Val, check: Option<&Check>, mask: Option<&Val>) -> Address {
        let lanes = self.host_lanes(MemSpace::Shared, offsets);
        if let Some(check) = check {
            let size = self.ctx_value(Elem::I64, at::SHARED_SIZE);
            self.unless_within(check, |e| e.check_offsets((offsets, &lanes), (MemSpace::Shared, &size), check, mask));
        }
        Address::Lanes(lanes)
    }

    pub(super) fn checked_local(&mut self, offsets: &Val, check: Option<&Check>, mask: Option<&Val>) -> Address {
        let address = self.local_lanes(offsets);
        if let Some(check) = check {
            let size = self.ctx_value(Elem::I64, at::LOCAL_SIZE);
            let lanes = self.spread(&address);
            self.check_offsets((offsets, &lanes), (MemSpace::Local, &size), check, mask);
        }
        address
    }

    /// Converts a scalar host address to a pointer.
    pub fn pointer(&mut self, address: &Val) -> Val {
        self.w.cast("inttoptr", address, Elem::Ptr)
    }
}

/// The name of a space in faults; `None` for spaces that only helpers access.
pub(super) fn name(space: MemSpace) -> Option<&'static str> {
    Some(match space {
        MemSpace::Shared => ".shared",
        MemSpace::Local => ".local",
        MemSpace::KernelParam => ".param",
        MemSpace::Global => ".global",
        MemSpace::Const => ".const",
        MemSpace::Generic => "generic",
        MemSpace::SharedCluster => return None,
    })
}
