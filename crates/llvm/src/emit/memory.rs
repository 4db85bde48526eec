//! Memory: addresses and their checks, loads and stores by how addresses depend on the lane, atomics, frame variables.

use super::{
    func::{Emitter, Mode, Result},
    site::SiteKind,
    text::{Elem, Ty, Val, int, per_lane},
};
use crate::ctx::{Helper, at};
use margay_ir::{FrameRole, Inst, MemBase, MemSpace, Operand};
use margay_isa::{Mod, Type};

/// Host addresses of an access, by lane.
#[derive(Clone, Debug)]
enum Address {
    /// Lane 0's address and the bytes between lanes.
    Affine(Val, i64),
    /// One for each lane.
    Lanes(Val),
}

/// Chooses frame variables that can live in vectors of words: those that are only loaded, stored and passed at constant
/// offsets. They never have an address.
pub(super) fn promote(e: &mut Emitter<'_>) -> Vec<Option<Val>> {
    let func = e.func;
    let mut fits: Vec<bool> = func
        .frame
        .iter()
        .map(|v| !v.address_taken && v.size > 0 && v.size <= 4096 && v.role != FrameRole::Local)
        .collect();
    for inst in &func.insts {
        let variant = func.variant(inst);
        let name = variant.op.row().name;
        for operand in func.operands(inst.srcs).iter().chain(func.operands(inst.dsts)) {
            match operand {
                Operand::FrameAddr(f, _) => fits[f.0 as usize] = false,
                Operand::Mem(MemBase::Frame(f), offset) => {
                    let bytes = i64::from(variant.t().bytes());
                    let total = bytes * i64::from(variant.vec());
                    let inside = *offset >= 0 && offset + total <= i64::from(func.frame[f.0 as usize].size);
                    let plain = matches!(name, "ld" | "st") && bytes <= 8 && bytes > 0 && offset % bytes == 0 && inside;
                    fits[f.0 as usize] &= plain;
                }
                _ => {}
            }
        }
    }
    let sizes: Vec<Option<u32>> = func.frame.iter().zip(&fits).map(|(v, f)| f.then(|| v.size.div_ceil(4))).collect();
    sizes.into_iter().map(|s| s.map(|words| e.w.alloca(&format!("[{words} x <32 x i32>]"), 64))).collect()
}

impl Emitter<'_> {
    fn word(&mut self, frame: &Val, index: u32) -> Val {
        self.w.offset_const(frame, u64::from(index) * 128)
    }

    /// Reads an integer of a promoted variable.
    fn frame_load(&mut self, frame: &Val, offset: u32, bytes: u32) -> Val {
        let p = self.word(frame, offset / 4);
        let low = self.w.load(Ty::lanes(Elem::I32), &p, 64);
        match bytes {
            8 => {
                let p = self.word(frame, offset / 4 + 1);
                let high = self.w.load(Ty::lanes(Elem::I32), &p, 64);
                let (low, high) = (self.w.cast("zext", &low, Elem::I64), self.w.cast("zext", &high, Elem::I64));
                let high = self.w.op_const("shl", &high, 32);
                self.w.op("or", &low, &high)
            }
            4 => low,
            _ => {
                let shifted = self.w.op_const("lshr", &low, i128::from(offset % 4 * 8));
                self.w.cast("trunc", &shifted, Elem::int(bytes * 8))
            }
        }
    }

    /// Writes an integer of a promoted variable for the active lanes that `mask` allows.
    fn frame_store(&mut self, frame: &Val, offset: u32, bytes: u32, v: &Val, mask: Option<&Val>) {
        let v = self.w.splat(v);
        let put = |e: &mut Self, index: u32, word: Val| {
            let p = e.word(frame, index);
            let word = match e.lanes(mask) {
                Some(m) => {
                    let old = e.w.load(word.ty, &p, 64);
                    e.w.select(&m, &word, &old)
                }
                None => word,
            };
            e.w.store(&word, &p, 64);
        };
        match bytes {
            8 => {
                let low = self.w.cast("trunc", &v, Elem::I32);
                let high = self.w.op_const("lshr", &v, 32);
                let high = self.w.cast("trunc", &high, Elem::I32);
                put(self, offset / 4, low);
                put(self, offset / 4 + 1, high);
            }
            4 => put(self, offset / 4, v),
            _ => {
                let p = self.word(frame, offset / 4);
                let old = self.w.load(Ty::lanes(Elem::I32), &p, 64);
                let shift = offset % 4 * 8;
                let field = ((1u64 << (bytes * 8)) - 1) << shift;
                let wide = self.w.resize(&v, Elem::I32, false);
                let wide = self.w.op_const("shl", &wide, i128::from(shift));
                let kept = self.w.op_const("and", &old, i128::from(!(field as u32)));
                let word = self.w.op("or", &kept, &wide);
                put(self, offset / 4, word);
            }
        }
    }

    /// Active lanes, and those of a mask, as a vector; `None` when that is all of them for sure.
    fn lanes(&mut self, mask: Option<&Val>) -> Option<Val> {
        let active = (self.mode == Mode::Masked).then(|| self.active.clone());
        match (active, mask) {
            (None, None) => None,
            (Some(a), None) => Some(a),
            (None, Some(m)) => Some(self.w.splat(m)),
            (Some(a), Some(m)) => Some(self.w.op("and", &a, m)),
        }
    }

    /// Copies a whole frame variable from (`load`) or to a block of words of 32 lanes.
    pub fn frame_copy(&mut self, frame: u32, size: u32, block: &Val, load: bool) -> Result<()> {
        if let Some(words) = self.frame[frame as usize].clone() {
            for i in 0..size.div_ceil(4) {
                let (inner, outer) = (self.word(&words, i), self.w.offset_const(block, u64::from(i) * 128));
                if load {
                    let v = self.w.load(Ty::lanes(Elem::I32), &outer, 64);
                    self.store_lanes(&v, &inner);
                } else {
                    let v = self.w.load(Ty::lanes(Elem::I32), &inner, 64);
                    self.store_lanes(&v, &outer);
                }
            }
            return Ok(());
        }
        let mut offset = 0;
        while offset < size {
            let bytes = if size - offset >= 4 { 4 } else { 1 };
            let elem = Elem::int(bytes * 8);
            let here = self.frame_address(frame, i64::from(offset));
            let address = self.local_address(&here);
            let outer = self.w.offset_const(block, u64::from(offset / 4) * 128);
            if load {
                let word = self.w.load(Ty::lanes(Elem::I32), &outer, 64);
                let v = self.w.op_const("lshr", &word, i128::from(offset % 4 * 8));
                let v = self.w.resize(&v, elem, false);
                let mask = self.lanes(None);
                self.scatter(&address, &v, mask.as_ref());
            } else {
                let mask = self.lanes(None);
                let v = self.gather(&address, elem, mask.as_ref());
                let v = self.w.resize(&v, Elem::I32, false);
                let v = self.w.op_const("shl", &v, i128::from(offset % 4 * 8));
                let v = if offset % 4 == 0 {
                    v
                } else {
                    let old = self.w.load(Ty::lanes(Elem::I32), &outer, 64);
                    self.w.op("or", &old, &v)
                };
                self.store_lanes(&v, &outer);
            }
            offset += bytes;
        }
        Ok(())
    }

    /// Promoted variables across a barrier.
    pub fn save_frame(&mut self, save: &Val, out: bool) {
        for (f, words) in self.frame.clone().into_iter().enumerate() {
            let Some(words) = words else { continue };
            let key = u32::MAX - f as u32;
            let next = self.save_size;
            let offset = *self.save_offsets.entry(key).or_insert(next);
            let size = u64::from(self.func.frame[f].size.div_ceil(4)) * 128;
            if offset == next {
                self.save_size += size;
            }
            let p = self.w.offset_const(save, offset);
            let (to, from) = if out { (&p, &words) } else { (&words, &p) };
            self.w.declared.insert("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)".into());
            self.w.line(format_args!(
                "call void @llvm.memcpy.p0.p0.i64(ptr align 64 {to}, ptr align 64 {from}, i64 {size}, i1 false)"
            ));
        }
    }

    // ---- addresses ----

    /// Host address of an offset into the thread's local window.
    fn local_address(&mut self, offset: &Val) -> Address {
        self.uses_local = true;
        let base = self.ctx_value(Elem::I64, at::LOCAL);
        let stride = self.ctx_value(Elem::I64, at::LOCAL_STRIDE);
        let lanes = per_lane(Elem::I64, i128::from);
        let windows = self.w.op("mul", &stride, &lanes);
        let windows = self.w.op("add", &base, &windows);
        let offset = self.w.resize(offset, Elem::I64, false);
        Address::Lanes(self.w.op("add", &windows, &offset))
    }

    /// The address operand of an instruction, as host addresses, checked for `bytes` bytes a lane.
    fn address(
        &mut self,
        inst: &Inst,
        operand: &Operand,
        bytes: u32,
        write: bool,
        mask: Option<&Val>,
    ) -> Result<Address> {
        let Operand::Mem(base, offset) = operand else { return self.refuse("an address") };
        let space = inst.space.unwrap_or(MemSpace::Generic);
        let narrow = matches!(space, MemSpace::Shared | MemSpace::Local);
        let elem = if narrow { Elem::I32 } else { Elem::I64 };
        let raw = match base {
            MemBase::Reg(r) => match self.read_base(*r) {
                Some((base, stride)) => {
                    let base = self.w.resize(&base, elem, false);
                    Address::Affine(self.w.op_const("add", &base, i128::from(*offset)), stride)
                }
                None => {
                    let v = self.read(*r);
                    let v = self.w.resize(&v, elem, false);
                    Address::Lanes(self.w.op_const("add", &v, i128::from(*offset)))
                }
            },
            MemBase::Global(g) => {
                let v = self.global_address(g.0, *offset);
                Address::Affine(self.w.resize(&v, elem, false), 0)
            }
            MemBase::Frame(f) => Address::Affine(self.frame_address(f.0, *offset), 0),
            MemBase::KernelParam => {
                let base = self.ctx_value(Elem::I64, at::PARAMS);
                return Ok(Address::Affine(self.w.op_const("add", &base, i128::from(*offset)), 0));
            }
            MemBase::Absolute => Address::Affine(int(elem, i128::from(*offset)), 0),
            #[allow(unreachable_patterns)]
            _ => return self.refuse("an address of this kind"),
        };
        let based = |e: &mut Self, field: u64, raw: Address| {
            let base = e.ctx_value(Elem::I64, field);
            match raw {
                Address::Affine(v, s) => {
                    // Lane 0 may lie below the window while active lanes lie inside: its offset is negative then.
                    let v = e.w.resize(&v, Elem::I64, true);
                    Address::Affine(e.w.op("add", &base, &v), s)
                }
                Address::Lanes(v) => {
                    let v = e.w.resize(&v, Elem::I64, false);
                    Address::Lanes(e.w.op("add", &base, &v))
                }
            }
        };
        let (address, name) = match space {
            MemSpace::Shared => (based(self, at::SHARED, raw), ".shared"),
            MemSpace::Local => {
                let v = match raw {
                    Address::Affine(v, 0) => v,
                    Address::Affine(v, s) => {
                        self.w.op("add", &v, &per_lane(Elem::I32, |l| i128::from(l) * i128::from(s)))
                    }
                    Address::Lanes(v) => v,
                };
                (self.local_address(&v), ".local")
            }
            MemSpace::KernelParam => (based(self, at::PARAMS, raw), ".param"),
            MemSpace::Global => (raw, ".global"),
            MemSpace::Const => (raw, ".const"),
            MemSpace::Generic => (raw, "generic"),
            MemSpace::SharedCluster => return self.refuse(".shared::cluster"),
        };
        self.check(&address, bytes, write, name, mask);
        Ok(address)
    }

    fn spread(&mut self, address: &Address) -> Val {
        match address {
            Address::Lanes(v) => v.clone(),
            Address::Affine(v, s) => self.w.op("add", v, &per_lane(Elem::I64, |l| i128::from(l) * i128::from(*s))),
        }
    }

    /// Branches to the slow check unless all (possibly active) lanes are aligned and inside the range that was valid last.
    fn check(&mut self, address: &Address, bytes: u32, write: bool, space: &'static str, mask: Option<&Val>) {
        let site = self.site(SiteKind::Access { size: bytes, write, space });
        let sites = self.ctx_value(Elem::Ptr, at::SITES);
        let entry = self.w.offset_const(&sites, site as u64 * 16);
        let low = self.w.load(Ty::scalar(Elem::I64), &entry, 8);
        let entry = self.w.offset_const(&entry, 8);
        let len = self.w.load(Ty::scalar(Elem::I64), &entry, 8);
        let span = match address {
            Address::Affine(_, s) => 31 * s.unsigned_abs() + u64::from(bytes),
            Address::Lanes(_) => u64::from(bytes),
        };
        let limit =
            self.w.intrinsic("llvm.usub.sat", Ty::scalar(Elem::I64), &[&len, &int(Elem::I64, i128::from(span - 1))]);
        let first = match address {
            Address::Affine(v, s) if *s < 0 => self.w.op_const("add", v, i128::from(31 * s)),
            Address::Affine(v, _) | Address::Lanes(v) => v.clone(),
        };
        let within = self.w.op("sub", &first, &low);
        let mut bad = self.w.cmp("icmp uge", &within, &limit);
        let natural = bytes.next_power_of_two().min(32);
        if natural > 1 {
            let low_bits = self.w.op_const("and", &first, i128::from(natural - 1));
            let crooked = self.w.cmp("icmp ne", &low_bits, &int(Elem::I64, 0));
            bad = self.w.op("or", &bad, &crooked);
            if let Address::Affine(_, s) = address
                && s % i64::from(natural) != 0
            {
                bad = int(Elem::I1, 1);
            }
        }
        if bad.ty.vector {
            if let Some(m) = self.lanes(mask) {
                bad = self.w.op("and", &bad, &m);
            }
            bad = self.any(&bad);
        }
        let (slow, fast) = (self.w.label("check"), self.w.label("checked"));
        self.w.branch_unlikely(&bad, &slow, &fast);
        self.w.block(&slow);
        let lanes = self.spread(address);
        let buffer = self.w.alloca("[32 x i64]", 64);
        self.w.store(&lanes, &buffer, 64);
        let bits = match self.lanes(mask) {
            Some(m) => self.bits(&m),
            None => int(Elem::I32, -1),
        };
        self.helper(Helper::Check, &[&int(Elem::I32, site as i128), &bits, &buffer], true);
        self.w.jump(&fast);
        self.w.block(&fast);
    }

    // ---- loads and stores ----

    /// Runs `f` only if some active lane passes the guard; gives it the guard as a mask where it is one.
    fn guarded(&mut self, inst: &Inst, f: impl FnOnce(&mut Self, Option<&Val>) -> Result<()>) -> Result<()> {
        let Some(guard) = self.guard(inst) else { return f(self, None) };
        let some = if guard.ty.vector {
            let lanes = self.lanes(Some(&guard)).unwrap_or(guard.clone());
            self.any(&lanes)
        } else {
            guard.clone()
        };
        let (go, skip) = (self.w.label("guarded"), self.w.label("over"));
        self.w.branch(&some, &go, &skip);
        self.w.block(&go);
        f(self, guard.ty.vector.then_some(&guard))?;
        self.w.jump(&skip);
        self.w.block(&skip);
        Ok(())
    }

    /// A row with effect `Memory`.
    pub fn memory(&mut self, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        match variant.op.row().name {
            "ld" | "ldu" => self.guarded(inst, |e, mask| e.load(inst, mask)),
            "st" => self.guarded(inst, |e, mask| e.store(inst, mask)),
            "atom" | "red" => self.guarded(inst, |e, mask| e.atomic(inst, mask)),
            "membar" | "fence" => {
                self.w.line(format_args!("fence seq_cst"));
                Ok(())
            }
            "prefetch" | "prefetchu" | "discard" | "applypriority" => Ok(()),
            _ => self.effect(inst),
        }
    }

    /// Generic addresses: window bases are added or taken away.
    pub fn cvta(&mut self, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let (Some(src), Some(Operand::Reg(dst))) =
            (self.func.operands(inst.srcs).first().copied(), self.func.operands(inst.dsts).first().copied())
        else {
            return self.refuse("cvta");
        };
        let elem = self.slots[dst.0 as usize].elem;
        let to = variant.has(Mod::To);
        let shared = variant.has(Mod::Shared) || variant.has(Mod::SharedCta);
        let local = variant.has(Mod::Local);
        let param = variant.has(Mod::Param) || variant.has(Mod::ParamEntry);
        let v = match (src, self.slots[dst.0 as usize].shape) {
            // The base of an affine address stays affine.
            (Operand::Reg(r), s) if s != margay_ir::pass::Shape::Varying => match self.read_base(r) {
                Some((v, _)) => v,
                None => self.read(r),
            },
            _ => self.value(&src, elem)?,
        };
        let v = self.w.resize(&v, Elem::I64, false);
        let v = if shared || param {
            let base = self.ctx_value(Elem::I64, if shared { at::SHARED } else { at::PARAMS });
            self.w.op(if to { "sub" } else { "add" }, &v, &base)
        } else if local {
            let windows = match self.local_address(&int(Elem::I32, 0)) {
                Address::Lanes(v) | Address::Affine(v, _) => v,
            };
            self.w.op(if to { "sub" } else { "add" }, &v, &windows)
        } else {
            v
        };
        let v = self.w.resize(&v, elem, false);
        let guard = self.guard(inst);
        self.write(dst, &v, guard.as_ref());
        Ok(())
    }

    /// Whether a generic address lies in a window.
    pub fn isspacep(&mut self, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let (Some(src), Some(Operand::Reg(dst))) =
            (self.func.operands(inst.srcs).first().copied(), self.func.operands(inst.dsts).first().copied())
        else {
            return self.refuse("isspacep");
        };
        let v = self.value(&src, Elem::I64)?;
        let within = |e: &mut Self, base: &Val, size: &Val| {
            let offset = e.w.op("sub", &v, base);
            e.w.cmp("icmp ult", &offset, size)
        };
        let shared = |e: &mut Self| {
            let (base, size) = (e.ctx_value(Elem::I64, at::SHARED), e.ctx_value(Elem::I64, at::SHARED_SIZE));
            within(e, &base, &size)
        };
        let local = |e: &mut Self| {
            let windows = match e.local_address(&int(Elem::I32, 0)) {
                Address::Lanes(v) | Address::Affine(v, _) => v,
            };
            let size = e.ctx_value(Elem::I64, at::LOCAL_STRIDE);
            within(e, &windows, &size)
        };
        let inside = if variant.has(Mod::Shared) || variant.has(Mod::SharedCta) || variant.has(Mod::SharedCluster) {
            shared(self)
        } else if variant.has(Mod::Local) {
            local(self)
        } else if variant.has(Mod::Global) {
            let (s, l) = (shared(self), local(self));
            let either = self.w.op("or", &s, &l);
            self.w.op_const("xor", &either, 1)
        } else {
            return self.refuse(variant.to_string());
        };
        let guard = self.guard(inst);
        self.write(dst, &inside, guard.as_ref());
        Ok(())
    }

    fn load(&mut self, inst: &Inst, mask: Option<&Val>) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let ty = variant.t();
        let dsts: Vec<Operand> = self.func.operands(inst.dsts).to_vec();
        let Some(source) = self.func.operands(inst.srcs).first().copied() else { return self.refuse("a load") };
        let bytes = ty.bytes();
        if let Operand::Mem(MemBase::Frame(f), offset) = source
            && let Some(words) = self.frame[f.0 as usize].clone()
        {
            for (i, d) in dsts.iter().enumerate() {
                let v = self.frame_load(&words, offset as u32 + i as u32 * bytes, bytes);
                self.write_extended(d, &v, ty, mask);
            }
            return Ok(());
        }
        let total = bytes * dsts.len() as u32;
        let address = self.address(inst, &source, total, false, mask)?;
        let elem = Elem::int(ty.bits());
        let values = self.fetch(&address, elem, dsts.len() as u32, mask);
        for (d, v) in dsts.iter().zip(&values) {
            self.write_extended(d, v, ty, mask);
        }
        Ok(())
    }

    /// Writes a loaded value to a register that may be wider than it.
    fn write_extended(&mut self, dst: &Operand, v: &Val, ty: Type, mask: Option<&Val>) {
        if let Operand::Reg(r) = dst {
            let elem = self.slots[r.0 as usize].elem;
            let v = self.w.resize(v, elem, ty.is_signed());
            self.write(*r, &v, mask);
        }
    }

    /// Loads `count` consecutive elements of each lane.
    fn fetch(&mut self, address: &Address, elem: Elem, count: u32, mask: Option<&Val>) -> Vec<Val> {
        let bytes = elem.bits() / 8;
        if let Address::Affine(base, stride) = address {
            let pointer = self.w.cast("inttoptr", base, Elem::Ptr);
            if *stride == 0 {
                return (0..count)
                    .map(|i| {
                        let p = self.w.offset_const(&pointer, u64::from(i * bytes));
                        self.w.load(Ty::scalar(elem), &p, bytes)
                    })
                    .collect();
            }
            let lanes = self.lanes(mask);
            if *stride == i64::from(bytes) && count == 1 {
                let ty = Ty::lanes(elem);
                return vec![match lanes {
                    None => self.w.load(ty, &pointer, bytes),
                    Some(m) => {
                        let name = format!("llvm.masked.load.{}.p0", super::text::mangle(ty));
                        self.masked_load(&name, ty, &pointer, bytes, &m)
                    }
                }];
            }
            if *stride == i64::from(bytes * count) && lanes.is_none() {
                return self.deinterleave(&pointer, elem, count);
            }
        }
        let first = self.spread(address);
        let lanes = self.lanes(mask);
        (0..count)
            .map(|i| {
                let here = self.w.op_const("add", &first, i128::from(i * bytes));
                self.gather(&Address::Lanes(here), elem, lanes.as_ref())
            })
            .collect()
    }

    fn masked_load(&mut self, name: &str, ty: Ty, pointer: &Val, align: u32, mask: &Val) -> Val {
        self.w.declared.insert(format!("declare {ty} @{name}(ptr, <32 x i1>, {ty})"));
        self.w.value(
            ty,
            format_args!("call {ty} @{name}(ptr align {align} {pointer}, <32 x i1> {mask}, {ty} zeroinitializer)"),
        )
    }

    /// 32 groups of `count` elements in a row, as `count` vectors.
    fn deinterleave(&mut self, pointer: &Val, elem: Elem, count: u32) -> Vec<Val> {
        let (scalar, total) = (Ty::scalar(elem), 32 * count);
        let ty = Ty::lanes(elem);
        let whole = format!("<{total} x {scalar}>");
        let all = self.w.value(ty, format_args!("load {whole}, ptr {pointer}, align {}", elem.bits() / 8));
        (0..count)
            .map(|k| {
                let picks: Vec<String> = (0..32).map(|l| format!("i32 {}", l * count + k)).collect();
                self.w.value(
                    ty,
                    format_args!("shufflevector {whole} {all}, {whole} poison, <32 x i32> <{}>", picks.join(", ")),
                )
            })
            .collect()
    }

    /// Loads one element a lane from anywhere.
    fn gather(&mut self, address: &Address, elem: Elem, mask: Option<&Val>) -> Val {
        let lanes = self.spread(address);
        let (scalar, ty) = (Ty::scalar(elem), Ty::lanes(elem));
        let bits = match mask {
            Some(m) => self.bits(m),
            None => int(Elem::I32, -1),
        };
        self.w.declared.insert(gather_function(elem));
        self.w.value(ty, format_args!("call {ty} @margay.gather.{scalar}(<32 x i64> {lanes}, i32 {bits})"))
    }

    /// Stores one element a lane to anywhere.
    fn scatter(&mut self, address: &Address, v: &Val, mask: Option<&Val>) {
        let lanes = self.spread(address);
        let (v, scalar) = (self.w.splat(v), Ty::scalar(v.ty.elem));
        let bits = match mask {
            Some(m) => self.bits(m),
            None => int(Elem::I32, -1),
        };
        self.w.declared.insert(scatter_function(v.ty.elem));
        self.w.line(format_args!("call void @margay.scatter.{scalar}(<32 x i64> {lanes}, {} {v}, i32 {bits})", v.ty));
    }

    fn store(&mut self, inst: &Inst, mask: Option<&Val>) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let ty = variant.t();
        let srcs: Vec<Operand> = self.func.operands(inst.srcs).to_vec();
        let Some((target, values)) = srcs.split_first() else { return self.refuse("a store") };
        let (bytes, elem) = (ty.bytes(), Elem::int(ty.bits()));
        let values =
            values.iter().take(variant.vec() as usize).map(|v| self.value(v, elem)).collect::<Result<Vec<Val>>>()?;
        if let Operand::Mem(MemBase::Frame(f), offset) = target
            && let Some(words) = self.frame[f.0 as usize].clone()
        {
            for (i, v) in values.iter().enumerate() {
                self.frame_store(&words, *offset as u32 + i as u32 * bytes, bytes, v, mask);
            }
            return Ok(());
        }
        let address = self.address(inst, target, bytes * values.len() as u32, true, mask)?;
        let lanes = self.lanes(mask);
        if let Address::Affine(base, stride) = &address {
            let pointer = self.w.cast("inttoptr", base, Elem::Ptr);
            if *stride == 0 {
                // All active lanes write one place; some lane wins: the last active one.
                for (i, v) in values.iter().enumerate() {
                    let v = if v.ty.vector {
                        let lane = match &lanes {
                            None => int(Elem::I32, 31),
                            Some(m) => {
                                let bits = self.bits(m);
                                let zeros = self.w.intrinsic_named(
                                    "llvm.ctlz.i32",
                                    Ty::scalar(Elem::I32),
                                    &[&bits, &int(Elem::I1, 1)],
                                );
                                self.w.op("sub", &int(Elem::I32, 31), &zeros)
                            }
                        };
                        self.w.extract(v, &lane)
                    } else {
                        v.clone()
                    };
                    let p = self.w.offset_const(&pointer, i as u64 * u64::from(bytes));
                    self.w.store(&v, &p, bytes);
                }
                return Ok(());
            }
            if *stride == i64::from(bytes) && values.len() == 1 {
                let v = self.w.splat(&values[0]);
                match lanes {
                    None => self.w.store(&v, &pointer, bytes),
                    Some(m) => {
                        let name = format!("llvm.masked.store.{}.p0", super::text::mangle(v.ty));
                        self.w.declared.insert(format!("declare void @{name}({}, ptr, <32 x i1>)", v.ty));
                        self.w.line(format_args!(
                            "call void @{name}({} {v}, ptr align {bytes} {pointer}, <32 x i1> {m})",
                            v.ty
                        ));
                    }
                }
                return Ok(());
            }
        }
        let first = self.spread(&address);
        for (i, v) in values.iter().enumerate() {
            let here = self.w.op_const("add", &first, i as i128 * i128::from(bytes));
            self.scatter(&Address::Lanes(here), v, lanes.as_ref());
        }
        Ok(())
    }

    // ---- atomics ----

    /// `atom`, `red`: the active lanes one after another.
    fn atomic(&mut self, inst: &Inst, mask: Option<&Val>) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let ty = variant.t();
        let Some((name, elem)) = rmw(&variant) else { return self.effect(inst) };
        if variant.vec() > 1 {
            return self.effect(inst);
        }
        let srcs: Vec<Operand> = self.func.operands(inst.srcs).to_vec();
        let address = self.address(inst, &srcs[0], ty.bytes(), true, mask)?;
        let addresses = self.spread(&address);
        let integer = Elem::int(ty.bits());
        let operands = srcs[1..]
            .iter()
            .take(if name == "cas" { 2 } else { 1 })
            .map(|o| self.value(o, integer))
            .collect::<Result<Vec<_>>>()?;
        let bits = match self.lanes(mask) {
            Some(m) => self.bits(&m),
            None => int(Elem::I32, -1),
        };
        let operands: Vec<Val> = operands.iter().map(|v| self.w.splat(v)).collect();
        self.w.declared.insert(atomic_function(name, integer, elem));
        let ty_lanes = Ty::lanes(integer);
        let list: String = operands.iter().map(|v| format!(", {ty_lanes} {v}")).collect();
        let function = format!("margay.atomic.{name}.{}", Ty::scalar(elem));
        let old = self
            .w
            .value(ty_lanes, format_args!("call {ty_lanes} @{function}(<32 x i64> {addresses}, i32 {bits}{list})"));
        if let Some(Operand::Reg(r)) = self.func.operands(inst.dsts).first().copied() {
            let slot = self.slots[r.0 as usize].elem;
            let old = self.w.resize(&old, slot, false);
            self.write(r, &old, mask);
        }
        Ok(())
    }
}

/// The `atomicrmw` operation of a variant, and the element that it works on.
fn rmw(variant: &margay_isa::Variant) -> Option<(&'static str, Elem)> {
    let ty = variant.t();
    let (integer, signed) = (Elem::int(ty.bits()), ty.is_signed());
    let operation =
        [Mod::Add, Mod::Min, Mod::Max, Mod::And, Mod::Or, Mod::Xor, Mod::Exch, Mod::Cas, Mod::Inc, Mod::Dec]
            .into_iter()
            .find(|m| variant.has(*m))?;
    Some(match (operation, ty) {
        (Mod::Add, Type::F32) => ("fadd", Elem::F32),
        (Mod::Add, Type::F64) => ("fadd", Elem::F64),
        (_, t) if t.is_float() || t.bits() > 64 || t.bits() < 16 => return None,
        (Mod::Add, _) => ("add", integer),
        (Mod::Min, _) => (if signed { "min" } else { "umin" }, integer),
        (Mod::Max, _) => (if signed { "max" } else { "umax" }, integer),
        (Mod::And, _) => ("and", integer),
        (Mod::Or, _) => ("or", integer),
        (Mod::Xor, _) => ("xor", integer),
        (Mod::Exch, _) => ("xchg", integer),
        (Mod::Cas, _) => ("cas", integer),
        (Mod::Inc, _) => ("uinc_wrap", integer),
        (Mod::Dec, _) => ("udec_wrap", integer),
        _ => return None,
    })
}

/// Loop over the set bits of `%mask`, by spilling vectors to the stack; `step` is written for lane `%lane`.
fn lane_loop(header: &str, before: &str, step: &str, after: &str) -> String {
    format!(
        "define internal {header} #1 {{\nentry:\n{before}  %some = icmp ne i32 %mask, 0\n  br i1 %some, label %each, label %end\neach:\n  \
         %left = phi i32 [ %mask, %entry ], [ %rest, %each ]\n  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)\n  \
         %less = sub i32 %left, 1\n  %rest = and i32 %left, %less\n  %ap = getelementptr i64, ptr %addresses, i32 %lane\n  \
         %a = load i64, ptr %ap, align 8\n  %p = inttoptr i64 %a to ptr\n{step}  %more = icmp ne i32 %rest, 0\n  \
         br i1 %more, label %each, label %end\nend:\n{after}}}\ndeclare i32 @llvm.cttz.i32(i32, i1)"
    )
}

const SPILL: &str = "  %addresses = alloca <32 x i64>, align 64\n  store <32 x i64> %at, ptr %addresses, align 64\n";

fn gather_function(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    let before = format!(
        "{SPILL}  %out = alloca <32 x {t}>, align 64\n  store <32 x {t}> zeroinitializer, ptr %out, align 64\n"
    );
    let step = format!(
        "  %v = load {t}, ptr %p, align {align}\n  %op = getelementptr {t}, ptr %out, i32 %lane\n  store {t} %v, ptr %op, align {align}\n"
    );
    let after = format!("  %result = load <32 x {t}>, ptr %out, align 64\n  ret <32 x {t}> %result\n");
    lane_loop(&format!("<32 x {t}> @margay.gather.{t}(<32 x i64> %at, i32 %mask)"), &before, &step, &after)
}

fn scatter_function(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    let before = format!("{SPILL}  %in = alloca <32 x {t}>, align 64\n  store <32 x {t}> %values, ptr %in, align 64\n");
    let step = format!(
        "  %ip = getelementptr {t}, ptr %in, i32 %lane\n  %v = load {t}, ptr %ip, align {align}\n  store {t} %v, ptr %p, align {align}\n"
    );
    lane_loop(
        &format!("void @margay.scatter.{t}(<32 x i64> %at, <32 x {t}> %values, i32 %mask)"),
        &before,
        &step,
        "  ret void\n",
    )
}

fn atomic_function(name: &str, integer: Elem, elem: Elem) -> String {
    let (i, t, align) = (Ty::scalar(integer), Ty::scalar(elem), elem.bits() / 8);
    let second = if name == "cas" { format!(", <32 x {i}> %new") } else { String::new() };
    let mut before = format!(
        "{SPILL}  %in = alloca <32 x {i}>, align 64\n  store <32 x {i}> %values, ptr %in, align 64\n  %out = alloca <32 x {i}>, align 64\n  store <32 x {i}> zeroinitializer, ptr %out, align 64\n"
    );
    let mut step = format!("  %ip = getelementptr {i}, ptr %in, i32 %lane\n  %v = load {t}, ptr %ip, align {align}\n");
    if name == "cas" {
        before
            .push_str(&format!("  %ins = alloca <32 x {i}>, align 64\n  store <32 x {i}> %new, ptr %ins, align 64\n"));
        step.push_str(&format!(
            "  %np = getelementptr {i}, ptr %ins, i32 %lane\n  %n = load {i}, ptr %np, align {align}\n  \
             %pair = cmpxchg ptr %p, {i} %v, {i} %n seq_cst seq_cst\n  %old = extractvalue {{ {i}, i1 }} %pair, 0\n"
        ));
    } else {
        step.push_str(&format!("  %old = atomicrmw {name} ptr %p, {t} %v seq_cst, align {align}\n"));
    }
    step.push_str(&format!(
        "  %op = getelementptr {i}, ptr %out, i32 %lane\n  store {t} %old, ptr %op, align {align}\n"
    ));
    let after = format!("  %result = load <32 x {i}>, ptr %out, align 64\n  ret <32 x {i}> %result\n");
    let header = format!("<32 x {i}> @margay.atomic.{name}.{t}(<32 x i64> %at, i32 %mask, <32 x {i}> %values{second})");
    lane_loop(&header, &before, &step, &after)
}

impl Emitter<'_> {
    /// Loads a 32-bit word a lane from host addresses that are known to be good.
    pub fn gather_lanes(&mut self, addresses: &Val) -> Val {
        self.gather(&Address::Lanes(addresses.clone()), Elem::I32, None)
    }
}
