//! Decodes instructions with effects: memory, warps, barriers, the stack.

use super::super::{
    code::{Address, BarrierKind, BarrierOp, Base, Handler, MemOp, OperandList, Order, Reduction, WarpKind, WarpOp},
    step,
};
use super::{Decoder, append, operand::plain};
use crate::{
    Stop,
    barrier::Operands,
    sem::atomic::{AtomicOp, Rmw},
};
use margay_ir::{
    Func, Inst, MemSpace, Operand,
    explicit::{Access, access},
    operand_types,
};
use margay_isa::{Mod, Opcode, Type, Var, Variant};
use std::hash::{DefaultHasher, Hash, Hasher};

fn order(v: &Variant) -> Order {
    match () {
        _ if v.has(Mod::Acquire) => Order::Acquire,
        _ if v.has(Mod::Release) => Order::Release,
        _ => Order::Relaxed,
    }
}

/// Whether an access is one that programs poll memory with.
fn is_polled(v: &Variant) -> bool {
    [Mod::Volatile, Mod::Relaxed, Mod::Acquire, Mod::Cv].iter().any(|m| v.has(*m))
}

/// The class of a warp operation: a hash of opcode and qualifiers.
fn class(v: &Variant) -> u32 {
    let mut h = DefaultHasher::new();
    (v.op, &v.words).hash(&mut h);
    h.finish() as u32
}

/// The handler of an instruction that needs none of its operands.
fn without_operands(v: &Variant) -> Option<Handler> {
    Some(match v.op {
        Opcode::Fence | Opcode::Membar => step::memory::barrier,
        Opcode::Griddepcontrol => step::memory::dependents,
        Opcode::Prefetch | Opcode::Prefetchu | Opcode::Applypriority | Opcode::Discard | Opcode::Pmevent => {
            step::memory::no_op
        }
        Opcode::Setmaxnreg => step::matrix::converge,
        Opcode::Bar | Opcode::Barrier if v.has(Mod::Cluster) && v.has(Mod::Wait) => step::barrier::cluster_wait,
        Opcode::Bar | Opcode::Barrier if v.has(Mod::Cluster) => step::barrier::cluster_arrive,
        Opcode::Trap => step::control::trap,
        Opcode::Brkpt => step::control::breakpoint,
        _ => return None,
    })
}

/// The operation of an instruction that exchanges values within a warp, and its handler.
fn warp_operation(v: &Variant) -> Option<(WarpKind, Handler)> {
    let mode = |of: &[Mod], default| of.iter().copied().find(|m| v.has(*m)).unwrap_or(default);
    // Without `.sync` (deprecated since PTX ISA 6.0), the active lanes take part.
    let run: Handler = if v.has(Mod::Sync) { step::warp::synced } else { step::warp::converged };
    Some(match v.op {
        Opcode::Shfl => (WarpKind::Shuffle(mode(&[Mod::Up, Mod::Down, Mod::Bfly], Mod::Idx)), run),
        Opcode::Vote => (WarpKind::Vote(mode(&[Mod::All, Mod::Any, Mod::Uni], Mod::Ballot)), run),
        Opcode::Match if v.has(Mod::Any) => (WarpKind::MatchAny, step::warp::synced),
        Opcode::Match => (WarpKind::MatchAll, step::warp::synced),
        Opcode::Redux => (WarpKind::Redux(Reduction::of(v)), step::warp::synced),
        Opcode::Elect => (WarpKind::Elect, step::warp::synced),
        Opcode::Bar if v.has(Mod::Warp) => (WarpKind::Barrier, step::warp::synced),
        Opcode::Activemask => (WarpKind::Barrier, step::warp::active_mask),
        Opcode::Nanosleep => (WarpKind::Barrier, step::warp::nanosleep),
        _ => return None,
    })
}

impl Decoder<'_> {
    /// Decodes instructions with effects on memory, control flow or other threads.
    pub(super) fn effect(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        if let Some(run) = without_operands(v) {
            self.emit(inst, run, 0);
            return Ok(());
        }
        if let Some((kind, run)) = warp_operation(v) {
            return self.warp(func, inst, kind, run);
        }
        match v.op {
            Opcode::Ld | Opcode::Ldu => self.load(func, inst),
            Opcode::Cp => self.copy(func, inst),
            // A single device has one replica of a multicast object, so a reduction over all replicas is its own value.
            Opcode::Multimem if v.has(Mod::LdReduce) => self.load(func, inst),
            Opcode::Multimem if v.has(Mod::St) => self.store(func, inst),
            Opcode::Multimem if v.has(Mod::Red) => self.atomic(func, inst),
            Opcode::Multimem => self.copy(func, inst),
            Opcode::Tensormap => self.tensor_map(func, inst),
            Opcode::Mbarrier => self.mbarrier(func, inst),
            Opcode::St if v.has(Mod::Bulk) => self.store_bulk(func, inst),
            Opcode::St if v.has(Mod::MbarrierCompleteTxBytes) => {
                self.store(func, inst)?;
                self.signal(func, inst)
            }
            Opcode::St => self.store(func, inst),
            Opcode::Red if v.has(Mod::MbarrierCompleteTxBytes) => {
                self.atomic(func, inst)?;
                self.signal(func, inst)
            }
            Opcode::Atom | Opcode::Red => self.atomic(func, inst),
            Opcode::Bar | Opcode::Barrier => self.barrier(func, inst),
            Opcode::Mma | Opcode::Wmma | Opcode::Ldmatrix | Opcode::Stmatrix | Opcode::Movmatrix => {
                self.matrix(func, inst)
            }
            Opcode::Clusterlaunchcontrol if v.has(Mod::TryCancel) => self.try_cancel(func, inst),
            Opcode::Clusterlaunchcontrol => self.wide(func, inst, step::copy::query_cancel),
            Opcode::Tcgen05 => self.tcgen05(func, inst),
            Opcode::Wgmma => self.warpgroup(func, inst),
            Opcode::Tex | Opcode::Tld4 => self.texture(func, inst),
            Opcode::Suld | Opcode::Sust | Opcode::Sured => self.surface(func, inst),
            Opcode::Txq | Opcode::Suq => self.query(func, inst),
            Opcode::Stacksave => self.wide(func, inst, step::stack::save),
            Opcode::Stackrestore => self.wide(func, inst, step::stack::restore),
            Opcode::Alloca => self.alloca(func, inst),
            _ => Err(self.unsupported(format!("`{v}`"))),
        }
    }

    fn memory(&mut self, func: &Func, inst: &Inst, at: usize) -> Result<MemOp, Stop> {
        let v = func.variant(inst);
        let ty = v.ty(Var::T).unwrap_or(Type::B32);
        let Some(o) = func.operands(inst.srcs).get(at).copied() else {
            return Err(self.unsupported(format!("`{v}` without an address")));
        };
        let mut address = self.address(&o, inst.space.unwrap_or(MemSpace::Generic))?;
        let known = access(&self.image.ir, func, &o, ty.bytes() * v.vec());
        if let Access::Outside(variable) = known {
            address.base = Base::Outside(func.frame[variable.0 as usize].size);
        }
        Ok(MemOp {
            straddles: known == Access::Straddling,
            ty,
            size: ty.bytes(),
            count: v.vec(),
            order: order(v),
            ..plain(address)
        })
    }

    fn load(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        let m = self.memory(func, inst, 0)?;
        let dst: Vec<_> = func.operands(inst.dsts).iter().map(|d| self.dst(func, d, m.ty)).collect();
        if dst.len() < m.count as usize {
            return Err(self.unsupported(format!("`{v}` with too few operands")));
        }
        let aligned = (m.address.offset as u64).is_multiple_of(u64::from(m.size) * u64::from(m.count));
        let fixed = m.address.base == Base::Fixed && m.address.space == MemSpace::KernelParam && m.size <= 8 && aligned;
        let run: Handler = match () {
            _ if fixed => step::memory::load_param,
            _ if is_polled(v) => step::memory::poll,
            _ => step::memory::loader(m.size, m.count),
        };
        let x = append(&mut self.code.mems, MemOp { dst, ..m });
        self.emit(inst, run, x);
        Ok(())
    }

    fn store(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let m = self.memory(func, inst, 0)?;
        let mut src = Vec::new();
        for o in func.operands(inst.srcs).iter().skip(1).take(m.count as usize) {
            src.push(self.source(o, m.ty)?);
        }
        if src.len() < m.count as usize {
            return Err(self.unsupported(format!("`{}` with too few operands", func.variant(inst))));
        }
        let run = step::memory::storer(m.size, m.count);
        let x = append(&mut self.code.mems, MemOp { src, ..m });
        self.emit(inst, run, x);
        Ok(())
    }

    fn atomic(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        let m = self.memory(func, inst, 0)?;
        let Some(atomic) = Rmw::of(v) else { return Err(self.unsupported(format!("`{v}`"))) };
        let n = m.count as usize + usize::from(atomic.op == AtomicOp::Cas);
        let mut src = Vec::new();
        for o in func.operands(inst.srcs).iter().skip(1).take(n) {
            src.push(self.source(o, m.ty)?);
        }
        if src.len() < n {
            return Err(self.unsupported(format!("`{v}` with too few operands")));
        }
        let dst = func.operands(inst.dsts).iter().map(|d| self.dst(func, d, m.ty)).collect();
        let run: Handler = if m.size == 16 { step::atomic::atomic_quad } else { step::atomic::atomic };
        let x = append(&mut self.code.mems, MemOp { src, dst, atomic, ..m });
        self.emit(inst, run, x);
        Ok(())
    }

    /// The rows of all operands.
    fn operand_rows(&mut self, func: &Func, inst: &Inst) -> Result<OperandList, Stop> {
        let types = operand_types(func, inst);
        let mut src = Vec::new();
        for (o, ty) in func.operands(inst.srcs).to_vec().iter().zip(&types.srcs) {
            src.push(self.source(o, *ty)?);
        }
        let dst = self.destinations(func, inst);
        Ok(OperandList { src, dst })
    }

    fn warp(&mut self, func: &Func, inst: &Inst, kind: WarpKind, run: Handler) -> Result<(), Stop> {
        let v = func.variant(inst);
        let OperandList { src, dst } = self.operand_rows(func, inst)?;
        let ty = v.ty(Var::T).unwrap_or(Type::B32);
        let x = append(&mut self.code.warps, WarpOp { dst, src, ty, kind, class: class(v) });
        self.emit(inst, run, x);
        Ok(())
    }

    fn barrier(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        let OperandList { src, dst } = self.operand_rows(func, inst)?;
        let Some(Operands { id, count, predicate: pred, aligned, arrives, reduction }) = Operands::of(v, &src) else {
            return Err(self.unsupported(format!("`{v}` without a barrier number")));
        };
        let kind = match reduction {
            Some(mode) => BarrierKind::Red(mode),
            None if arrives => BarrierKind::Arrive,
            None => BarrierKind::Sync,
        };
        let op = BarrierOp { id, count, pred, dst: dst.first().copied(), kind, aligned };
        let x = append(&mut self.code.barriers, op);
        self.emit(inst, step::barrier::sync, x);
        Ok(())
    }

    /// An op whose handler reads all operands from the side table.
    fn wide(&mut self, func: &Func, inst: &Inst, run: Handler) -> Result<(), Stop> {
        let operands = self.operand_rows(func, inst)?;
        let x = append(&mut self.code.operand_lists, operands);
        self.emit(inst, run, x);
        Ok(())
    }

    fn alloca(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let align = match func.operands(inst.srcs).get(1) {
            Some(Operand::Imm(align)) => *align as u32,
            _ => 8,
        };
        if !align.is_power_of_two() || align > 1 << 23 {
            return Err(self.unsupported(format!("`alloca` with an alignment of {align}")));
        }
        self.code.local = true;
        self.wide(func, inst, step::stack::alloca)?;
        if let Some(op) = self.code.ops.last_mut() {
            op.dst = align;
        }
        Ok(())
    }

    /// Decodes instructions whose result depends on the windows or the cache of the machine: `cvta`, `isspacep`, `mapa`,
    /// `getctarank`, `createpolicy`.
    pub(super) fn machine(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        let policy = v.op == Opcode::Createpolicy;
        let types = operand_types(func, inst);
        let mut src = Vec::new();
        for (o, ty) in func.operands(inst.srcs).to_vec().iter().zip(&types.srcs) {
            if !policy {
                src.push(self.source(o, *ty)?);
            }
        }
        let dst = self.destinations(func, inst);
        let space = inst.space.unwrap_or(MemSpace::Generic);
        self.code.local |= space == MemSpace::Local;
        let address = Address { space, base: Base::Fixed, offset: 0 };
        let run: Handler = match v.op {
            Opcode::Cvta if v.has(Mod::To) => step::convert::from_generic_row,
            Opcode::Cvta => step::convert::to_generic_row,
            Opcode::Isspacep => step::convert::is_space,
            Opcode::Mapa => step::convert::map_address,
            Opcode::Getctarank => step::convert::cta_rank,
            _ => step::convert::policy,
        };
        let x = append(&mut self.code.mems, MemOp { src, dst, ..plain(address) });
        self.emit(inst, run, x);
        Ok(())
    }
}
