//! Decodes asynchronous copies and barrier objects, with the state space of every address operand.

use super::super::{
    code::{Address, CopyKind, CopyOp, MbarrierOp, Op, Src},
    step,
};
use super::{Decoder, append};
use crate::{
    Stop,
    object::MbarrierKind,
    sem::atomic::{AtomicOp, Rmw},
};
use margay_ir::{Func, Inst, MemSpace, Operand, operand_types};
use margay_isa::{Mod, Role, Type, Var, Variant, name};

/// The state space of an address operand.
fn space(m: Option<Mod>, otherwise: MemSpace) -> MemSpace {
    match m {
        Some(Mod::Global) => MemSpace::Global,
        Some(Mod::Shared | Mod::SharedCta) => MemSpace::Shared,
        Some(Mod::SharedCluster) => MemSpace::SharedCluster,
        _ => otherwise,
    }
}

/// A value with the name of its operand in the row.
type Named = (&'static str, Src);

impl Decoder<'_> {
    /// Addresses and values of an instruction, in order, with their operand names.
    fn operands(&mut self, func: &Func, inst: &Inst) -> Result<(Vec<Address>, Vec<Named>), Stop> {
        let v = func.variant(inst);
        let types = operand_types(func, inst);
        let general = inst.space.unwrap_or(MemSpace::Generic);
        let (mut addresses, mut values) = (Vec::new(), Vec::new());
        let roles = v.operands().filter(|o| o.role != Role::Dst);
        let srcs = func.operands(inst.srcs).to_vec();
        for (opnd, (o, ty)) in roles.zip(srcs.iter().zip(&types.srcs)) {
            match o {
                Operand::Mem(..) => addresses.push(self.address(o, space(opnd.space, general))?),
                Operand::Sink => {}
                _ => values.push((opnd.name, self.source(o, *ty)?)),
            }
        }
        Ok((addresses, values))
    }

    fn lacks(&self, v: &Variant) -> Stop {
        self.unsupported(format!("`{v}`"))
    }

    /// `cp`
    pub(super) fn copy(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        if v.has(Mod::CommitGroup) || v.has(Mod::WaitGroup) || v.has(Mod::WaitAll) {
            let pending =
                func.operands(inst.srcs).iter().find_map(|o| if let Operand::Imm(n) = o { Some(*n) } else { None });
            self.emit(inst, step::copy::group, pending.unwrap_or(0) as u32);
            return Ok(());
        }
        if v.has(Mod::Prefetch) {
            self.emit(inst, step::memory::no_op, 0);
            return Ok(());
        }
        if v.has(Mod::Mbarrier) {
            let (addresses, _) = self.operands(func, inst)?;
            let Some(address) = addresses.first().copied() else { return Err(self.lacks(v)) };
            let kind = MbarrierKind::AfterCopies(v.has(Mod::Noinc));
            return self.push_mbarrier(inst, MbarrierOp { address, operand: None, ctas: None, dst: None, kind });
        }
        if v.has(Mod::Tensor) {
            return self.tensor(func, inst);
        }
        let (addresses, values) = self.operands(func, inst)?;
        let value = |name: &str| values.iter().find(|(n, _)| *n == name).map(|(_, s)| *s);
        let (Some(to), Some(from)) = (addresses.first().copied(), addresses.get(1).copied()) else {
            return Err(self.lacks(v));
        };
        let small = value(name::CP_SIZE);
        let Some(size) = small.or(value(name::SIZE)) else { return Err(self.lacks(v)) };
        let (kind, extra) = match () {
            _ if v.has(Mod::Reduce) => match (AtomicOp::of(v), v.ty(Var::T)) {
                (Some(op), Some(ty)) => (CopyKind::Reduce(Rmw { op, ty }), None),
                _ => return Err(self.lacks(v)),
            },
            _ if value(name::IGNORE_SRC).is_some() => (CopyKind::SmallIgnored, value(name::IGNORE_SRC)),
            _ if small.is_some() => (CopyKind::Small, value(name::SRC_SIZE)),
            _ if value(name::CTA_MASK).is_some() => (CopyKind::Multicast, value(name::CTA_MASK)),
            _ if value(name::BYTE_MASK).is_some() => (CopyKind::Masked, value(name::BYTE_MASK)),
            _ if v.has(Mod::IgnoreOob) => match (value(name::IGNORE_BYTES_LEFT), value(name::IGNORE_BYTES_RIGHT)) {
                (Some(left), Some(right)) => (CopyKind::Trimmed { right }, Some(left)),
                _ => return Err(self.lacks(v)),
            },
            _ => (CopyKind::Bulk, None),
        };
        let mbarrier = addresses.get(2).copied();
        let x = append(&mut self.code.copies, CopyOp { to, from: Some(from), mbarrier, size, extra, kind });
        self.emit(inst, step::copy::copy, x);
        Ok(())
    }

    /// `clusterlaunchcontrol.try_cancel`: a copy of the response.
    pub(super) fn try_cancel(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        let (addresses, _) = self.operands(func, inst)?;
        let (Some(to), Some(mbarrier)) = (addresses.first().copied(), addresses.get(1).copied()) else {
            return Err(self.lacks(v));
        };
        let kind = CopyKind::Cancel { multicast: v.has(Mod::MulticastClusterAll) };
        let size = self.constant(16, Type::U32);
        let x =
            append(&mut self.code.copies, CopyOp { to, from: None, mbarrier: Some(mbarrier), size, extra: None, kind });
        self.emit(inst, step::copy::copy, x);
        Ok(())
    }

    /// `st.bulk`
    pub(super) fn store_bulk(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let (addresses, values) = self.operands(func, inst)?;
        let (Some(to), Some((_, size))) = (addresses.first().copied(), values.first().copied()) else {
            return Err(self.lacks(func.variant(inst)));
        };
        let x = append(
            &mut self.code.copies,
            CopyOp { to, from: None, mbarrier: None, size, extra: None, kind: CopyKind::Zero },
        );
        self.emit(inst, step::copy::copy, x);
        Ok(())
    }

    /// Adds the completion signal of the preceding store or reduction.
    pub(super) fn signal(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        let general = inst.space.unwrap_or(MemSpace::Generic);
        let Some(mbar) = func.operands(inst.srcs).iter().filter(|o| matches!(o, Operand::Mem(..))).nth(1).copied()
        else {
            return Err(self.lacks(v));
        };
        let address = self.address(&mbar, general)?;
        let bytes = v.vec() * v.ty(Var::T).unwrap_or(Type::B32).bytes();
        let x = append(
            &mut self.code.mbarriers,
            MbarrierOp { address, operand: None, ctas: None, dst: None, kind: MbarrierKind::Complete },
        );
        let guard = self.guard(inst);
        self.push(Op { guard, x, y: bytes as u8, variant: inst.variant, ..Self::blank(step::copy::signal) });
        Ok(())
    }

    fn push_mbarrier(&mut self, inst: &Inst, op: MbarrierOp) -> Result<(), Stop> {
        let x = append(&mut self.code.mbarriers, op);
        self.emit(inst, step::mbarrier::execute, x);
        Ok(())
    }

    /// `mbarrier`
    pub(super) fn mbarrier(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        let Some(kind) = MbarrierKind::of(v) else { return Err(self.lacks(v)) };
        let (addresses, values) = self.operands(func, inst)?;
        let types = operand_types(func, inst);
        let dst = func.operands(inst.dsts).first().map(|d| self.dst(func, d, types.dsts[0]));
        let nowhere = Address { space: MemSpace::Generic, base: super::super::code::Base::Fixed, offset: 0 };
        let address = match addresses.first() {
            Some(a) => *a,
            None if kind == MbarrierKind::Pending => nowhere,
            None => return Err(self.lacks(v)),
        };
        let operand = values.iter().find(|(n, _)| *n != name::CTA_MASK).map(|(_, s)| *s);
        let ctas = values.iter().find(|(n, _)| *n == name::CTA_MASK).map(|(_, s)| *s);
        self.push_mbarrier(inst, MbarrierOp { address, operand, ctas, dst, kind })
    }
}
