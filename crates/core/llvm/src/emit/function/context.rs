//! Masks and their packed form, fields of the context, kernel parameters, calls of helpers.

use crate::ctx::{Helper, at};
use crate::emit::{
    function::{Emitter, Mode, Role},
    mask::Masks,
    site::{Site, SiteKind},
    text::{Elem, Ty, Val, constant, int, named},
};
use margay_ir::{
    Operand,
    explicit::{Access, Object, access},
};
use std::fmt::Write;

impl Emitter<'_> {
    /// Type of a mask in memory: 32 bits with mask registers and in code that must compile quickly, else a vector of words.
    pub fn packed_type(&self) -> Ty {
        match self.options.masks() {
            Masks::Registers | Masks::Calls => Ty::scalar(Elem::I32),
            Masks::Vectors => Ty::lanes(Elem::I32),
        }
    }

    /// Packs a `<32 x i1>` into the form in memory.
    pub fn pack(&mut self, mask: &Val) -> Val {
        let mask = self.w.splat(mask);
        let ty = self.packed_type();
        if ty.vector {
            let packed = self.w.cast("sext", &mask, Elem::I32);
            self.w.same(format_args!("icmp slt {ty} {packed}, {}", constant(ty, 0)), &mask);
            packed
        } else {
            self.bits(&mask)
        }
    }

    /// Unpacks the form in memory to `<32 x i1>`.
    pub fn unpack(&mut self, packed: &Val) -> Val {
        if packed.ty.vector {
            self.w.cmp("icmp slt", packed, &constant(packed.ty, 0))
        } else {
            self.unpack_bits(packed)
        }
    }

    /// Converts 32 bits to `<32 x i1>`.
    pub fn unpack_bits(&mut self, bits: &Val) -> Val {
        self.w.mask(bits)
    }

    /// Converts `<32 x i1>` to 32 bits.
    pub fn bits(&mut self, mask: &Val) -> Val {
        self.w.bits(mask)
    }

    /// Whether any lane of a mask is set: `i1`.
    pub fn any(&mut self, mask: &Val) -> Val {
        let bits = self.bits(mask);
        self.w.cmp("icmp ne", &bits, &int(Elem::I32, 0))
    }

    /// The active lanes as 32 bits.
    pub fn active_bits(&mut self) -> Val {
        match self.mode {
            Mode::Full => int(Elem::I32, -1),
            Mode::Masked => {
                let active = self.active.clone();
                self.bits(&active)
            }
        }
    }

    /// Whether all lanes of the warp are active: `i1`, constant where that is known.
    pub fn all_active(&mut self) -> Val {
        let here = self.active_bits();
        self.w.cmp("icmp eq", &here, &int(Elem::I32, -1))
    }

    /// The lanes that have not exited, as 32 bits.
    pub fn alive_bits(&mut self) -> Val {
        match self.lane_sets.alive.clone() {
            Some(alive) => self.w.load(Ty::scalar(Elem::I32), &alive, 4),
            None => int(Elem::I32, -1),
        }
    }

    /// Lanes finish: their threads in a kernel, the function in a device function (where nothing is recorded).
    pub fn retire(&mut self, lanes: &Val) {
        if self.role != Role::Device {
            self.exit_threads(lanes);
        }
    }

    /// Threads exit.
    pub fn exit_threads(&mut self, lanes: &Val) {
        let Some(alive) = self.lane_sets.alive.clone() else { return };
        let bits = self.bits(lanes);
        let rest = self.w.op_const("xor", &bits, -1);
        let old = self.w.load(Ty::scalar(Elem::I32), &alive, 4);
        let left = self.w.op("and", &old, &rest);
        self.w.store(&left, &alive, 4);
    }

    /// The lanes pending at a block.
    pub fn get_pending(&mut self, b: u32) -> Val {
        let (ty, p) = (self.packed_type(), self.lane_sets.pending[b as usize].clone());
        let packed = self.w.get(ty, &p, 0, 4);
        self.unpack(&packed)
    }

    /// Replaces the lanes pending at a block.
    pub fn set_pending(&mut self, b: u32, mask: &Val) {
        let (packed, p) = (self.pack(mask), self.lane_sets.pending[b as usize].clone());
        self.w.set(&packed, &p, 0, 4);
    }

    /// Adds lanes to those pending at a block.
    pub fn join_pending(&mut self, b: u32, lanes: &Val) {
        let packed = self.pack(lanes);
        self.join_packed(b, &packed);
    }

    /// The same if a condition holds that is one for all lanes.
    pub fn join_pending_if(&mut self, b: u32, condition: &Val, lanes: &Val) {
        let packed = self.pack(lanes);
        let packed = self.w.select(condition, &packed, &constant(packed.ty, 0));
        self.join_packed(b, &packed);
    }

    /// Joins lanes in the form in memory, which needs the fewest conversions.
    fn join_packed(&mut self, b: u32, packed: &Val) {
        let p = self.lane_sets.pending[b as usize].clone();
        let waiting = self.w.get(packed.ty, &p, 0, 4);
        let joined = self.w.op("or", &waiting, packed);
        self.w.set(&joined, &p, 0, 4);
    }

    // ---- context and helpers ----

    /// Address of a field of the context.
    pub fn ctx_pointer(&mut self, offset: u64) -> Val {
        self.w.offset_const(&named(Ty::scalar(Elem::Ptr), "%ctx"), offset)
    }

    /// Loads a scalar field of the context; constant fields are loaded once, in the entry block.
    pub fn ctx_value(&mut self, elem: Elem, offset: u64) -> Val {
        if let (at::LOCAL, Some(current)) = (offset, &self.grid_loop.current) {
            self.local.used = true;
            return current.local.clone();
        }
        let constant = at::is_constant(offset) || self.role != Role::Grid && matches!(offset, at::LOCAL | at::WARP);
        if !constant {
            let p = self.ctx_pointer(offset);
            return self.w.load(Ty::scalar(elem), &p, 4);
        }
        if let Some(known) = self.entry.context.get(&(offset, elem)) {
            return known.clone();
        }
        let p = self.w.at_entry(Ty::scalar(Elem::Ptr), format_args!("getelementptr i8, ptr %ctx, i64 {offset}"));
        let v = self.w.at_entry(Ty::scalar(elem), format_args!("load {}, ptr {p}, align 4", Ty::scalar(elem)));
        self.entry.context.insert((offset, elem), v.clone());
        v
    }

    /// Elements of the kernel's parameters, loaded once in the entry block; `None` if they are not proven to lie
    /// inside.
    pub fn parameters(&mut self, source: &Operand, elem: Elem, count: u32) -> Option<Vec<Val>> {
        let bytes = elem.bits() / 8;
        let Operand::Mem(_, offset) = source else { return None };
        let Access::Proven(Object::Parameters) = access(self.ir, self.func, source, bytes * count) else { return None };
        let (first, bytes) = (*offset as u64, u64::from(bytes));
        let block = self.ctx_value(Elem::Ptr, at::PARAMS);
        let ty = Ty::scalar(elem);
        let mut values = Vec::new();
        for i in 0..u64::from(count) {
            let place = first + i * bytes;
            if let Some(known) = self.entry.parameters.get(&(place, elem)) {
                values.push(known.clone());
                continue;
            }
            let p = self.w.at_entry(Ty::scalar(Elem::Ptr), format_args!("getelementptr i8, ptr {block}, i64 {place}"));
            let v = self.w.at_entry(ty, format_args!("load {ty}, ptr {p}, align 1"));
            self.entry.parameters.insert((place, elem), v.clone());
            values.push(v);
        }
        Some(values)
    }

    /// Registers a site of the current instruction; returns its number.
    pub fn site(&mut self, kind: SiteKind) -> usize {
        self.sites.push(Site { func: self.id.0, inst: self.inst, at: self.at, kind });
        self.sites.len() - 1
    }

    /// Calls a helper with the context and `args`; if it returns a status, a nonzero one leaves the function.
    pub fn helper(&mut self, helper: Helper, args: &[&Val]) {
        if !helper.has_status() {
            let (f, list) = self.helper_call(helper, args);
            self.w.line(format_args!("call void {f}(ptr %ctx{list})"));
            return;
        }
        let status = self.helper_status(helper, args);
        self.stop_unless_zero(&status);
    }

    /// Ends the function if a call's status is not zero.
    pub fn stop_unless_zero(&mut self, status: &Val) {
        let bad = self.w.cmp("icmp ne", status, &int(Elem::I32, 0));
        let go_on = self.w.label("ok");
        self.w.branch_unlikely(&bad, "stop", &go_on);
        self.w.follow(&go_on);
    }

    /// Calls a helper; returns its status.
    pub fn helper_status(&mut self, helper: Helper, args: &[&Val]) -> Val {
        let (f, list) = self.helper_call(helper, args);
        self.w.value(Ty::scalar(Elem::I32), format_args!("call i32 {f}(ptr %ctx{list})"))
    }

    /// A helper's address, and its arguments after the context.
    fn helper_call(&mut self, helper: Helper, args: &[&Val]) -> (Val, String) {
        let p = self.ctx_pointer(at::HELPERS);
        let table = self.w.fixed_load(Ty::scalar(Elem::Ptr), &p, 8);
        let entry = self.w.offset_const(&table, helper as u64 * 8);
        let f = self.w.fixed_load(Ty::scalar(Elem::Ptr), &entry, 8);
        let list = args.iter().fold(String::new(), |mut s, a| {
            let _ = write!(s, ", {} {a}", a.ty);
            s
        });
        (f, list)
    }
}
