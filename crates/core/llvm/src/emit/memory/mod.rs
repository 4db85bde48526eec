//! Loads, stores, atomics, copies and address conversions.

pub(in crate::emit) mod address;
pub(in crate::emit) mod ahead;
pub(in crate::emit) mod atomic;
pub(in crate::emit) mod bounds;
mod branchless;
pub(in crate::emit) mod combine;
mod convert;
pub(in crate::emit) mod copy;
mod failed;
pub(in crate::emit) mod fused;
pub(in crate::emit) mod group;
mod hardware;
mod indexed;
pub(in crate::emit) mod interleaved;
mod lanes;
mod object;
mod partial;
mod prefetch;
mod slow;
mod strided;
mod together;
mod transpose;
mod unit;
mod updated;

use crate::code::target;
use crate::emit::{
    function::affine::rows,
    function::{Emitter, Result},
    memory::address::Address,
    memory::lanes::{LaneCode, at_words, gather_all, gather_some, scatter_all, scatter_some},
    memory::transpose::{Owner, Vectors},
    memory::unit::{Strength, in_units, near, strength},
    text::{Elem, Ty, Val, constant},
};
use margay_exec::AccessKind;
use margay_ir::{
    Inst, MemBase, MemSpace, Operand,
    explicit::{Access, access},
    pass::Shape,
};
use margay_isa::{Mod, Opcode, Type, Variant};

/// Alias scope of accesses to the program's memory, which is disjoint from the engine's tables.
pub(in crate::emit) const PROGRAM: &str = "!alias.scope !3";

/// Whether other threads need not see a load or store at once, or in any order.
pub(in crate::emit) fn is_weak(variant: &Variant) -> bool {
    strength(variant) == Strength::Weak
}

impl Emitter<'_> {
    /// Emits `f` for the lanes that pass the guard, skipped if there are none; passes the guard as a mask if it is
    /// varying.
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
        self.detour(&go, &skip, |e| f(e, guard.ty.vector.then_some(&guard)))
    }

    /// Emits a row with effect `Memory`.
    pub fn memory(&mut self, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        if copy::is_idle(&variant) {
            return Ok(());
        }
        let elsewhere = inst.space == Some(MemSpace::SharedCluster);
        // Without 16-byte atomics, such accesses take the lock that the reference engine takes.
        let bytes = variant.t().bytes() * variant.vec();
        let elsewhere = elsewhere || strength(&variant) == Strength::Strong && bytes >= 16 && !target::wide_atomics();
        if elsewhere || variant.has(Mod::Bulk) || variant.has(Mod::MbarrierCompleteTxBytes) {
            return self.effect(inst);
        }
        match variant.op {
            Opcode::Ld | Opcode::Ldu => self.guarded(inst, |e, mask| e.load(inst, mask)),
            Opcode::St => self.guarded(inst, |e, mask| e.store(inst, mask)),
            Opcode::Atom | Opcode::Red => self.guarded(inst, |e, mask| e.atomic(inst, mask)),
            Opcode::Cp if copy::is_small(&variant) => self.guarded(inst, |e, mask| e.copy_small(inst, mask)),
            Opcode::Mbarrier => self.barrier_object(inst),
            // `membar` is `fence.sc`, and a fence without semantics is `.acq_rel` (manual, section 9.7.13.4).
            Opcode::Membar | Opcode::Fence => {
                let sc = variant.op == Opcode::Membar || variant.has(Mod::Sc);
                self.w.line(format_args!("fence {}", if sc { "seq_cst" } else { "acq_rel" }));
                Ok(())
            }
            Opcode::Prefetch | Opcode::Prefetchu | Opcode::Discard | Opcode::Applypriority => Ok(()),
            _ => self.effect(inst),
        }
    }

    // ---- loads ----

    fn load(&mut self, inst: &Inst, mask: Option<&Val>) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let ty = variant.t();
        let dsts: Vec<Operand> = self.func.operands(inst.dsts).to_vec();
        let Some(source) = self.func.operands(inst.srcs).first().copied() else { return self.refuse("a load") };
        let bytes = ty.bytes();
        if let Operand::Mem(MemBase::Frame(f), offset) = source
            && let Some(words) = self.local.frame[f.0 as usize].clone()
        {
            for (i, d) in dsts.iter().enumerate() {
                let v = self.frame_load(&words, offset as u32 + i as u32 * bytes, bytes);
                self.write_extended(d, &v, ty, mask);
            }
            return Ok(());
        }
        let total = bytes * dsts.len() as u32;
        let elem = Elem::int(ty.bits());
        if let Some(values) = self.parameters(&source, elem, dsts.len() as u32) {
            for (d, v) in dsts.iter().zip(&values) {
                self.write_extended(d, v, ty, mask);
            }
            return Ok(());
        }
        if self.interleaved(inst).is_some() {
            return self.load_interleaved(&source, (elem, dsts.len() as u32), mask, |e, values| {
                dsts.iter().zip(values).for_each(|(d, v)| e.write_extended(d, v, ty, mask));
            });
        }
        if access(self.ir, self.func, &source, total) == Access::Straddling {
            return self.access(inst, &source, (total, false), mask, |e, address| {
                e.observe_access((inst, AccessKind::Load), address, total, &[], mask);
                let first = e.spread(address);
                for (i, d) in dsts.iter().enumerate() {
                    let v = e.gather_bytes(&first, i as u32 * bytes, elem, mask);
                    e.write_extended(d, &v, ty, mask);
                }
                Ok(())
            });
        }
        if let Some(part) = self.fused(&source) {
            return self.load_fused(&source, part, ty, &dsts);
        }
        let strength = self.ordered(inst, &variant);
        self.access(inst, &source, (total, false), mask, |e, address| {
            e.observe_access((inst, AccessKind::Load), address, total, &[], mask);
            e.prefetch(inst, address, total, strength);
            let values = e.fetch(address, elem, dsts.len() as u32, mask, strength);
            for (d, v) in dsts.iter().zip(&values) {
                e.write_extended(d, v, ty, mask);
            }
            Ok(())
        })?;
        self.ordered(inst, &variant);
        if variant.has(Mod::Acquire) {
            self.w.line(format_args!("fence acquire"));
        }
        Ok(())
    }

    /// Loads an element `offset` bytes after an address, byte by byte.
    fn gather_bytes(&mut self, first: &Val, offset: u32, elem: Elem, mask: Option<&Val>) -> Val {
        let lanes = self.lanes(mask);
        let mut whole: Option<Val> = None;
        for byte in 0..elem.bits() / 8 {
            let at = self.w.op_const("add", first, i128::from(offset + byte));
            let v = self.gather_from(&at, Elem::I8, lanes.as_ref(), Strength::Weak);
            let v = self.w.resize(&v, elem, false);
            whole = Some(match whole {
                Some(low) => {
                    let high = self.w.op_const("shl", &v, i128::from(8 * byte));
                    self.w.op("or", &low, &high)
                }
                None => v,
            });
        }
        whole.unwrap_or_else(|| constant(Ty::lanes(elem), 0))
    }

    /// Stores an element `offset` bytes after an address, byte by byte.
    fn scatter_bytes(&mut self, first: &Val, offset: u32, v: &Val, mask: Option<&Val>) {
        let lanes = self.lanes(mask);
        let v = self.w.splat(v);
        for byte in 0..v.ty.elem.bits() / 8 {
            let at = self.w.op_const("add", first, i128::from(offset + byte));
            let part = if byte == 0 { v.clone() } else { self.w.op_const("lshr", &v, i128::from(8 * byte)) };
            let part = self.w.resize(&part, Elem::I8, false);
            self.scatter_to(&at, &part, lanes.as_ref(), Strength::Weak);
        }
    }

    /// Writes a loaded value to a register, which may be wider.
    fn write_extended(&mut self, dst: &Operand, v: &Val, ty: Type, mask: Option<&Val>) {
        if let Operand::Reg(r) = dst {
            let slot = &self.slots[r.0 as usize];
            let (elem, uniform) = (slot.elem, slot.shape == Shape::Uniform);
            // A uniform formal, loaded from each lane's own copy.
            let v = if uniform && v.ty.vector { self.first_active(v) } else { v.clone() };
            let v = self.w.resize(&v, elem, ty.is_signed());
            self.write(*r, &v, mask);
        }
    }

    /// Declares a function that takes a vector of addresses as `%at`; returns the end of its name and the argument with which to call it.
    pub(super) fn call_at(&mut self, lanes: &Val, text: String) -> (&'static str, String) {
        let parts = self.w.base_and_words(lanes).zip(at_words(&text));
        self.w.declared.insert(text);
        match parts {
            Some(((base, words), text)) => {
                self.w.declared.insert(text);
                (".at", format!("i64 {base}, <32 x i32> {words}"))
            }
            None => ("", format!("<32 x i64> {lanes}")),
        }
    }

    /// Loads a scalar or a piece of a vector from the program's memory.
    fn load_piece(&mut self, ty: &str, like: Ty, pointer: &Val, align: u32) -> Val {
        let align = self.accesses.aligned.unwrap_or(align);
        self.w.value(like, format_args!("load {ty}, ptr {pointer}, align {align}, {PROGRAM}"))
    }

    /// Loads `count` consecutive elements per lane.
    fn fetch(&mut self, address: &Address, elem: Elem, count: u32, mask: Option<&Val>, strength: Strength) -> Vec<Val> {
        let bytes = elem.bits() / 8;
        let lanes = self.lanes(mask);
        if let Address::Affine { bases, width, stride } = address {
            let (width, ty) = (*width, Ty::lanes(elem));
            let masked = lanes.as_ref().filter(|_| width < 32 || *stride != 0);
            let pointers: Vec<Val> = bases.iter().map(|b| self.pointer(b)).collect();
            if *stride == 0 && masked.is_none() {
                return self.fetch_rows(&pointers, elem, count, width, strength);
            }
            if *stride == i64::from(bytes) && count == 1 && strength == Strength::Weak {
                let piece = ty.part(width);
                let pieces: Vec<Val> = rows(width)
                    .zip(&pointers)
                    .map(|(row, p)| match masked {
                        None => self.load_piece(&piece, ty, p, bytes),
                        Some(m) => self.masked_load(&piece, ty, p, bytes, m, row),
                    })
                    .collect();
                return vec![self.concat(pieces, elem, width)];
            }
            if *stride == i64::from(bytes * count) && masked.is_none() && strength == Strength::Weak {
                return self.deinterleave(&pointers, elem, count, width);
            }
            if count == 1
                && masked.is_none()
                && strength == Strength::Weak
                && let Some(elements) = near(*stride, elem, width)
            {
                let pieces = pointers.iter().map(|p| self.load_strided_by_shuffle(p, elem, width, elements)).collect();
                return vec![self.concat(pieces, elem, width)];
            }
            if count == 1 && masked.is_none() && strength == Strength::Weak {
                if let Some(v) = self.gather_strided(&pointers, elem, width, *stride) {
                    return vec![v];
                }
                if !self.by_hardware(elem, strength) && self.unrolls(elem) {
                    return vec![self.load_strided(&pointers, elem, width, *stride)];
                }
            }
        }
        let first = self.spread(address);
        if in_units(elem, count) {
            return self.gather_units(&first, elem, count, lanes.as_ref(), strength);
        }
        vec![self.gather_from(&first, elem, lanes.as_ref(), strength)]
    }

    /// Loads rows in which each lane has `count` consecutive elements, as `count` vectors.
    fn deinterleave(&mut self, pointers: &[Val], elem: Elem, count: u32, width: u32) -> Vec<Val> {
        let rows: Vec<Vec<Val>> =
            pointers.iter().map(|p| self.load_vectors(Vectors { elem, count, width }, p, Owner::Program)).collect();
        (0..count as usize)
            .map(|k| {
                let pieces = rows.iter().map(|row| row[k].clone()).collect();
                self.concat(pieces, elem, width)
            })
            .collect()
    }

    /// Loads one element per lane from arbitrary addresses.
    pub fn gather(&mut self, address: &Address, elem: Elem, mask: Option<&Val>) -> Val {
        let lanes = self.spread(address);
        self.gather_from(&lanes, elem, mask, Strength::Weak)
    }

    fn gather_from(&mut self, lanes: &Val, elem: Elem, mask: Option<&Val>, strength: Strength) -> Val {
        if !self.by_hardware(elem, strength)
            && let Some(v) = self.gather_by_index(lanes, elem, mask, strength)
        {
            return v;
        }
        let (scalar, ty) = (Ty::scalar(elem), Ty::lanes(elem));
        let suffix = strength.suffix();
        let every = self.looped(mask);
        match mask.or(every.as_ref()) {
            None => {
                self.w.declared.insert(gather_all(
                    elem,
                    strength,
                    self.by_hardware(elem, strength) || self.bytes_by_hardware(elem, strength),
                ));
                self.w.value(ty, format_args!("call {ty} @margay.gather.all.{scalar}{suffix}(<32 x i64> {lanes})"))
            }
            Some(m) => {
                let bits = self.bits(m);
                let (at, addresses) = self.call_at(lanes, gather_some(elem, strength, self.lane_code(elem, strength)));
                self.w.value(ty, format_args!("call {ty} @margay.gather.{scalar}{suffix}{at}({addresses}, i32 {bits})"))
            }
        }
    }

    fn lane_code(&self, elem: Elem, strength: Strength) -> LaneCode {
        LaneCode { hardware: self.by_hardware(elem, strength), lean: self.options.lean }
    }

    /// Whether the host has gathers and scatters for elements of a type that are worth using.
    fn by_hardware(&self, elem: Elem, strength: Strength) -> bool {
        self.options.gathers && strength == Strength::Weak && matches!(elem.bits(), 32 | 64)
    }

    /// The same for loads of bytes by all lanes, which gathers find in words; for few lanes, loops are faster.
    fn bytes_by_hardware(&self, elem: Elem, strength: Strength) -> bool {
        self.options.gathers && strength == Strength::Weak && elem == Elem::I8
    }

    /// A mask of all lanes where helpers loop over a mask instead of being unrolled.
    pub(super) fn looped(&self, mask: Option<&Val>) -> Option<Val> {
        (mask.is_none() && self.options.lean).then(|| constant(Ty::lanes(Elem::I1), 1))
    }

    /// Loads one 32-bit word per lane from valid host addresses.
    pub fn gather_lanes(&mut self, addresses: &Val) -> Val {
        self.gather_from(addresses, Elem::I32, None, Strength::Weak)
    }

    // ---- stores ----

    fn store(&mut self, inst: &Inst, mask: Option<&Val>) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let ty = variant.t();
        let srcs: Vec<Operand> = self.func.operands(inst.srcs).to_vec();
        let Some((target, values)) = srcs.split_first() else { return self.refuse("a store") };
        let (bytes, elem) = (ty.bytes(), Elem::int(ty.bits()));
        let values =
            values.iter().take(variant.vec() as usize).map(|v| self.value(v, elem)).collect::<Result<Vec<Val>>>()?;
        if let Operand::Mem(MemBase::Frame(f), offset) = target
            && let Some(words) = self.local.frame[f.0 as usize].clone()
        {
            for (i, v) in values.iter().enumerate() {
                self.frame_store(&words, *offset as u32 + i as u32 * bytes, bytes, v, mask);
            }
            return Ok(());
        }
        if self.interleaved(inst).is_some() {
            return self.store_interleaved(target, &values, mask);
        }
        let total = bytes * values.len() as u32;
        if access(self.ir, self.func, target, total) == Access::Straddling {
            return self.access(inst, target, (total, true), mask, |e, address| {
                e.observe_access((inst, AccessKind::Store), address, total, &values, mask);
                let first = e.spread(address);
                for (i, v) in values.iter().enumerate() {
                    e.scatter_bytes(&first, i as u32 * bytes, v, mask);
                }
                Ok(())
            });
        }
        if let ([value], Some(part)) = (&values[..], self.fused(target)) {
            return self.store_fused(inst, target, part, value);
        }
        if variant.has(Mod::Release) {
            self.w.line(format_args!("fence release"));
        }
        let strength = self.ordered(inst, &variant);
        self.access(inst, target, (total, true), mask, |e, address| {
            e.observe_access((inst, AccessKind::Store), address, total, &values, mask);
            e.put(address, &values, bytes, mask, strength);
            Ok(())
        })?;
        self.ordered(inst, &variant);
        Ok(())
    }

    /// Stores a scalar or a piece of a vector to the program's memory.
    fn store_piece(&mut self, ty: &str, v: &Val, pointer: &Val, align: u32) {
        let align = self.accesses.aligned.unwrap_or(align);
        self.w.line(format_args!("store {ty} {v}, ptr {pointer}, align {align}, {PROGRAM}"));
    }

    /// Stores consecutive elements per lane.
    fn put(&mut self, address: &Address, values: &[Val], bytes: u32, mask: Option<&Val>, strength: Strength) {
        let lanes = self.lanes(mask);
        let elem = values.first().map_or(Elem::I32, |v| v.ty.elem);
        if let Address::Affine { bases, width, stride } = address {
            let (width, ty) = (*width, Ty::lanes(elem));
            let pointers: Vec<Val> = bases.iter().map(|b| self.pointer(b)).collect();
            if *stride == 0 && (width == 32 || lanes.is_none()) {
                for (row, p) in rows(width).zip(&pointers) {
                    let last: Vec<Val> = values.iter().map(|v| self.last_of(v, row, lanes.as_ref())).collect();
                    self.put_one(p, &last, elem, strength);
                }
                return;
            }
            if *stride == i64::from(bytes) && values.len() == 1 && strength == Strength::Weak {
                let v = self.w.splat(&values[0]);
                for (row, p) in rows(width).zip(&pointers) {
                    let piece = self.piece(&v, row);
                    match &lanes {
                        None => self.store_piece(&ty.part(width), &piece, p, bytes),
                        Some(m) => self.masked_store(&piece, ty, p, bytes, m, row),
                    }
                }
                return;
            }
            let count = values.len() as u32;
            if *stride == i64::from(bytes * count)
                && lanes.is_none()
                && strength == Strength::Weak
                && (2..=4).contains(&count)
            {
                let values: Vec<Val> = values.iter().map(|v| self.w.splat(v)).collect();
                for (row, p) in rows(width).zip(&pointers) {
                    self.store_vectors(&values, elem, row, p, Owner::Program);
                }
                return;
            }
        }
        if let ([one], Address::Affine { bases, width, stride }, None, Strength::Weak) =
            (values, address, &lanes, strength)
            && self.unrolls(elem)
        {
            let pointers: Vec<Val> = bases.iter().map(|b| self.pointer(b)).collect();
            return self.store_strided(one, &pointers, *width, *stride);
        }
        let first = self.spread(address);
        match values {
            [one] if !in_units(elem, 1) => self.scatter_to(&first, one, lanes.as_ref(), strength),
            _ => self.scatter_units(&first, values, elem, lanes.as_ref(), strength),
        }
    }

    /// Stores one element per lane to arbitrary addresses.
    pub fn scatter(&mut self, address: &Address, v: &Val, mask: Option<&Val>) {
        let lanes = self.spread(address);
        self.scatter_to(&lanes, v, mask, Strength::Weak);
    }

    fn scatter_to(&mut self, lanes: &Val, v: &Val, mask: Option<&Val>, strength: Strength) {
        let (v, scalar) = (self.w.splat(v), Ty::scalar(v.ty.elem));
        let suffix = strength.suffix();
        let every = self.looped(mask);
        match mask.or(every.as_ref()) {
            None => {
                self.w.declared.insert(scatter_all(v.ty.elem, strength, self.by_hardware(v.ty.elem, strength)));
                self.w.line(format_args!(
                    "call void @margay.scatter.all.{scalar}{suffix}(<32 x i64> {lanes}, {} {v})",
                    v.ty
                ));
            }
            Some(m) => {
                let bits = self.bits(m);
                let text = scatter_some(v.ty.elem, strength, self.lane_code(v.ty.elem, strength));
                let (at, addresses) = self.call_at(lanes, text);
                self.w.line(format_args!(
                    "call void @margay.scatter.{scalar}{suffix}{at}({addresses}, {} {v}, i32 {bits})",
                    v.ty
                ));
            }
        }
    }
}
