//! Decodes tensor copies and tensor map updates (manual, sections 9.7.9.27.1 and 9.7.9.28).

use super::super::{
    code::{Address, Base, CopyKind, CopyOp, MapOp, Src, TensorKind, TensorMode, TensorOp},
    step,
};
use super::{Decoder, append};
use crate::{Stop, sem::atomic::AtomicOp, tensor_map};
use margay_ir::{Func, Inst, MemBase, MemSpace, Operand, operand_types};
use margay_isa::{Mod, Opnd, Role, Type, Variant, name};

/// A source operand with its properties in the table row.
#[derive(Clone, Copy)]
pub(super) struct Named {
    /// Operand name in the row.
    pub(super) name: &'static str,
    space: Option<Mod>,
    pub(super) operand: Operand,
    pub(super) ty: Type,
}

/// The sources of an instruction, with vectors and groups flattened.
pub(super) fn named(func: &Func, inst: &Inst) -> Vec<Named> {
    let v = func.variant(inst);
    let types = operand_types(func, inst).srcs;
    let mut roles: Vec<(&'static str, Option<Mod>)> = Vec::new();
    let mut add = |o: &'static Opnd| {
        let n = v.count(o).unwrap_or(1) as usize;
        roles.extend(std::iter::repeat_n((o.name, o.space), n));
    };
    for o in v.operands() {
        match o.role {
            Role::Dst => {}
            Role::Group(inner) => v.inside(inner).for_each(&mut add),
            _ => add(o),
        }
    }
    let operands = func.operands(inst.srcs).iter().zip(types);
    roles.into_iter().zip(operands).map(|((name, space), (o, ty))| Named { name, space, operand: *o, ty }).collect()
}

impl Decoder<'_> {
    fn no_tensor(&self, v: &Variant) -> Stop {
        self.unsupported(format!("`{v}`"))
    }

    /// The address of a tensor map: a generic address, or that of a kernel parameter.
    fn map_address(&mut self, o: &Operand) -> Result<Address, Stop> {
        Ok(match o {
            Operand::ParamAddr(offset) => Address { space: MemSpace::KernelParam, base: Base::Fixed, offset: *offset },
            Operand::Mem(MemBase::KernelParam, _) => self.address(o, MemSpace::KernelParam)?,
            Operand::Mem(..) => self.address(o, MemSpace::Generic)?,
            _ => {
                let base = Base::Reg(self.source(o, Type::U64)?);
                Address { space: MemSpace::Generic, base, offset: 0 }
            }
        })
    }

    /// Tensor copies and reductions.
    pub(super) fn tensor(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        let (mut map, mut shared, mut mbarrier, mut mask) = (None, None, None, None);
        let (mut coordinates, mut offsets): (Vec<Src>, Vec<Src>) = (Vec::new(), Vec::new());
        for n in named(func, inst) {
            let space = match n.space {
                Some(Mod::SharedCluster) => MemSpace::SharedCluster,
                _ => MemSpace::Shared,
            };
            match n.name {
                name::TENSOR_MAP => map = Some(self.map_address(&n.operand)?),
                name::TENSOR_COORDS => coordinates.push(self.source(&n.operand, n.ty)?),
                name::DST_MEM | name::SRC_MEM => shared = Some(self.address(&n.operand, space)?),
                name::MBAR => mbarrier = Some(self.address(&n.operand, space)?),
                name::IM2COL_INFO => offsets.push(self.source(&n.operand, n.ty)?),
                name::CTA_MASK => mask = Some(self.source(&n.operand, n.ty)?),
                _ => {}
            }
        }
        let kind = match AtomicOp::of(v) {
            _ if mbarrier.is_some() => TensorKind::Load,
            Some(op) if v.has(Mod::Reduce) => TensorKind::Reduce(op),
            _ => TensorKind::Store,
        };
        let mode = match () {
            _ if v.has(Mod::TileGather4) || v.has(Mod::TileScatter4) => TensorMode::Rows,
            _ if v.has(Mod::Im2colW) || v.has(Mod::Im2colNoOffsW) => TensorMode::Wide { grouped: false },
            _ if v.has(Mod::Im2colW128) => TensorMode::Wide { grouped: true },
            _ if v.has(Mod::Im2col) || v.has(Mod::Im2colNoOffs) => TensorMode::Pixels,
            _ => TensorMode::Tile,
        };
        let (Some(map), Some(shared)) = (map, shared) else { return Err(self.no_tensor(v)) };
        let pair = v.has(Mod::CtaGroup2);
        let x = append(
            &mut self.code.tensors,
            TensorOp { map, coordinates, shared, mbarrier, offsets, mask, kind, mode, pair },
        );
        self.emit(inst, step::tensor::copy, x);
        Ok(())
    }

    /// `tensormap.replace`, `tensormap.cp_fenceproxy`
    pub(super) fn tensor_map(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        let operands = named(func, inst);
        let find = |name: &str| operands.iter().find(|n| n.name == name).copied();
        if v.has(Mod::CpFenceproxy) {
            let (Some(to), Some(from)) = (find(name::DST), find(name::SRC)) else { return Err(self.no_tensor(v)) };
            let (to, from) =
                (self.address(&to.operand, MemSpace::Global)?, self.address(&from.operand, MemSpace::Shared)?);
            let size = self.constant(tensor_map::SIZE as u64, Type::U32);
            let copy = CopyOp { to, from: Some(from), mbarrier: None, size, extra: None, kind: CopyKind::Bulk };
            let x = append(&mut self.code.copies, copy);
            self.emit(inst, step::copy::copy_together, x);
            return Ok(());
        }
        let address = operands.iter().find(|n| matches!(n.operand, Operand::Mem(..)));
        let (Some(address), Some(value)) = (address.copied(), find(name::NEW_VAL)) else {
            return Err(self.no_tensor(v));
        };
        let Some((at, size, most)) = tensor_map::field(|m| v.has(m)) else { return Err(self.no_tensor(v)) };
        let ordinal = match find(name::ORD).map(|n| n.operand) {
            Some(Operand::Imm(ordinal)) if ordinal <= most => ordinal,
            None => 0,
            _ => return Err(self.no_tensor(v)),
        };
        let address = self.address(&address.operand, inst.space.unwrap_or(MemSpace::Generic))?;
        let value = self.source(&value.operand, value.ty)?;
        let at = (at + ordinal as usize * size) as u64;
        let x = append(&mut self.code.maps, MapOp { address, value, at, size });
        self.emit(inst, step::tensor::replace, x);
        Ok(())
    }
}
