//! Reads and writes of registers, operands, special registers.

use crate::ctx::{Helper, at};
use crate::emit::{
    function::affine::affine_form,
    function::{Emitter, Mode, Result, elem_of},
    text::{Elem, Ty, Val, int, named, per_lane},
};
use margay_exec::SharedSizes;
use margay_ir::{FrameRole, GlobalId, Inst, Operand, VReg, pass::Shape};
use margay_isa::{Component, Special};

impl Emitter<'_> {
    /// Reads a register: a scalar if it is uniform, else a vector, to which affine values are expanded. Predicates are
    /// `i1` or `<32 x i1>`.
    pub fn read(&mut self, r: VReg) -> Val {
        let slot = self.slots[r.0 as usize].clone();
        match (slot.shape, slot.elem) {
            (Shape::Varying, Elem::I1) => {
                let packed = self.w.get(self.packed_type(), &slot.pointer, 0, 4);
                self.unpack(&packed)
            }
            (Shape::Varying, e) => self.w.get(Ty::lanes(e), &slot.pointer, 0, 64),
            (Shape::Uniform, e) => self.w.get(Ty::scalar(e), &slot.pointer, 0, 1),
            (Shape::Affine { width, stride }, _) => self.read_spread(&slot, width, stride),
        }
    }

    /// Writes a register in the active lanes of `mask`.
    pub fn write(&mut self, r: VReg, v: &Val, mask: Option<&Val>) {
        let slot = self.slots[r.0 as usize].clone();
        if slot.shape != Shape::Varying {
            return self.write_shaped(&slot, v, mask);
        }
        match &slot.shadow {
            Some(s) if !v.ty.vector && mask.is_none() && s.stride == 0 && self.keeps(s) => {
                let bases = vec![v.clone(); (32 / s.width) as usize];
                self.write_rows(&s.bases, slot.elem, &bases);
                let valid = self.written_lanes(s);
                self.w.set(&valid, &s.valid, 0, 4);
            }
            _ => self.invalidate_shadow(r),
        }
        let v = self.w.splat(v);
        let blend = match (self.mode, mask) {
            (Mode::Full, None) => None,
            (Mode::Full, Some(m)) => Some(self.w.splat(m)),
            (Mode::Masked, None) => self.blends(r).then(|| self.active.clone()),
            (Mode::Masked, Some(m)) => {
                let active = self.active.clone();
                Some(self.w.op("and", &active, m))
            }
        };
        let v = match blend.filter(|mask| mask.unsigned() != Some(1)) {
            Some(mask) => {
                let old = self.read(r);
                self.w.select(&mask, &v, &old)
            }
            None => v,
        };
        let packed = if slot.elem == Elem::I1 { self.pack(&v) } else { v };
        self.w.set(&packed, &slot.pointer, 0, if slot.elem == Elem::I1 { 4 } else { 64 });
    }

    /// An operand as integer bits of type `elem`, with NaNs of lazy registers canonicalized.
    pub fn value(&mut self, operand: &Operand, elem: Elem) -> Result<Val> {
        match operand {
            Operand::Reg(r) if self.floats.lazy_nans[r.0 as usize] => {
                let v = self.raw_value(operand, Elem::I32)?;
                let v = self.canonical(&v);
                Ok(self.w.resize(&v, elem, false))
            }
            _ => self.raw_value(operand, elem),
        }
    }

    /// An operand as integer bits of type `elem`; a register of another width is truncated or zero-extended.
    pub fn raw_value(&mut self, operand: &Operand, elem: Elem) -> Result<Val> {
        Ok(match operand {
            Operand::Reg(r) => {
                let v = match self.row {
                    Some(row) => match self.read_row(*r, row) {
                        Some(v) => v,
                        None => return self.refuse("rows of a varying register"),
                    },
                    None => self.read(*r),
                };
                self.w.resize(&v, elem, false)
            }
            Operand::Not(r) => {
                let v = self.read(*r);
                self.w.op_const("xor", &v, 1)
            }
            Operand::Imm(bits) => match elem {
                Elem::I64 => int(elem, i128::from(*bits as i64)),
                Elem::I128 => int(elem, i128::from(*bits)),
                _ => int(elem, i128::from(*bits as i64)),
            },
            Operand::Special(s, c) => {
                let v = match self.row {
                    Some(row) => self.special_row(*s, *c, row)?,
                    None => self.special(*s, *c)?,
                };
                self.w.resize(&v, elem, false)
            }
            Operand::GlobalAddr(g, offset) => {
                let v = self.global_address(g.0, *offset);
                self.w.resize(&v, elem, false)
            }
            Operand::FrameAddr(f, offset) => {
                let v = self.frame_address(f.0, *offset);
                self.w.resize(&v, elem, false)
            }
            Operand::ParamAddr(offset) => int(elem, i128::from(*offset)),
            Operand::Func(f) => int(elem, i128::from(margay_exec::Image::function_address(self.ir.address_size, *f))),
            Operand::Mem(..) | Operand::Call(_) | Operand::Sink => return self.refuse("operand"),
        })
    }

    /// Address of a module variable in its space.
    pub fn global_address(&mut self, global: u32, offset: i64) -> Val {
        if let Some(base) = self.reached.shared.offset(GlobalId(global)) {
            return int(Elem::I64, i128::from(base) + i128::from(offset));
        }
        let table = self.ctx_value(Elem::Ptr, at::GLOBALS);
        let entry = self.w.offset_const(&table, u64::from(global) * 8);
        let base = self.w.fixed_load(Ty::scalar(Elem::I64), &entry, 8);
        self.w.op_const("add", &base, i128::from(offset))
    }

    /// Offset of an unsized parameter in the caller's outgoing area; `None` for other variables.
    pub fn incoming(&self, frame: u32) -> Option<u32> {
        let incoming = self.interface().incoming?;
        (self.func.frame[frame as usize].role == FrameRole::Formal(incoming.formal)).then_some(incoming.offset)
    }

    /// Offset of a frame variable in the thread's local window.
    pub fn frame_address(&mut self, frame: u32, offset: i64) -> Val {
        let places = &self.ir.stage.funcs[self.id.0 as usize];
        if let Some(incoming) = self.incoming(frame) {
            let at = i128::from(incoming) + i128::from(offset);
            return self.w.op_const("add", &named(Ty::scalar(Elem::I32), "%incoming"), at);
        }
        let within = i128::from(places.frame[frame as usize]) + i128::from(offset);
        if self.func.kind == margay_check::FuncKind::Kernel {
            int(Elem::I32, i128::from(places.base) + within)
        } else {
            self.w.op_const("add", &named(Ty::scalar(Elem::I32), "%frame"), within)
        }
    }

    /// A special register: a scalar where it is uniform, else a vector.
    pub fn special(&mut self, s: Special, c: Component) -> Result<Val> {
        use Special::*;
        let index = c as u64;
        if index == 3 && matches!(s, Tid | Ctaid) {
            return Ok(int(Elem::I32, 0));
        }
        if index == 3 && matches!(s, Ntid | Nctaid) {
            return Ok(int(Elem::I32, 1));
        }
        Ok(match s {
            Tid => self.tid(c),
            Ntid => match self.options.warp.block {
                Some(b) => int(Elem::I32, i128::from(b[c as usize])),
                None => self.ctx_value(Elem::I32, at::BLOCK + 4 * index),
            },
            Ctaid => match self.grid_loop.current.as_ref().map(|c| c.cta[index as usize].clone()) {
                Some(index) => index,
                None => self.ctx_value(Elem::I32, at::CTA + 4 * index),
            },
            Nctaid => self.ctx_value(Elem::I32, at::GRID + 4 * index),
            LaneId => per_lane(Elem::I32, i128::from),
            WarpId => self.warp_index(),
            NwarpId => match self.options.warp.block {
                Some(b) => int(Elem::I32, i128::from((b[0] * b[1] * b[2]).div_ceil(32))),
                None => return self.refuse("%nwarpid without a known block shape"),
            },
            LanemaskEq => per_lane(Elem::I32, |l| 1 << l),
            LanemaskLt => per_lane(Elem::I32, |l| (1 << l) - 1),
            LanemaskLe => per_lane(Elem::I32, |l| (2 << l) - 1),
            LanemaskGt => per_lane(Elem::I32, |l| !((2i128 << l) - 1)),
            LanemaskGe => per_lane(Elem::I32, |l| !((1i128 << l) - 1)),
            SmId => self.multiprocessor(),
            NsmId => int(Elem::I32, i128::from(margay_exec::MULTIPROCESSORS)),
            GridId => int(Elem::I64, 1),
            ClusterId | NclusterId | ClusterCtaid | ClusterCtarank | IsExplicitCluster | ClusterNctaid
            | ClusterNctarank => self.cluster_special(s, c)?,
            CurrentGraphExec => self.ctx_value(Elem::I64, at::GRAPH),
            EnvReg(1) => self.ctx_value(Elem::I32, at::ENVIRONMENT),
            EnvReg(2) => self.ctx_value(Elem::I32, at::ENVIRONMENT + 4),
            EnvReg(_) | Pm(_) | Pm64(_) => int(elem_of(s.info().ty), 0),
            ReservedSmemOffsetEnd | ReservedSmemOffsetCap => {
                int(elem_of(s.info().ty), margay_exec::RESERVED_SHARED.into())
            }
            ReservedSmemOffsetBegin | ReservedSmemOffset0 | ReservedSmemOffset1 => int(elem_of(s.info().ty), 0),
            DynamicSmemSize => self.ctx_value(Elem::I32, at::DYNAMIC_SHARED),
            TotalSmemSize | AggrSmemSize => self.shared_size(s),
            Clock | ClockHi | Clock64 | GlobalTimer | GlobalTimerLo | GlobalTimerHi => self.clock(s),
        })
    }

    /// `%total_smem_size`, `%aggr_smem_size`.
    fn shared_size(&mut self, s: Special) -> Val {
        let aggregate = s == Special::AggrSmemSize;
        let (up, mask, more) = SharedSizes::new(self.ir.target, self.reached.shared.reserved, aggregate).steps();
        let window = self.ctx_value(Elem::I64, at::SHARED_SIZE);
        let size = self.w.op_const("add", &window, (up as i64).into());
        let size = self.w.op_const("and", &size, (mask as i64).into());
        let size = self.w.op_const("add", &size, more.into());
        self.w.resize(&size, Elem::I32, false)
    }

    /// `%clock` and `%globaltimer`, whole or in halves.
    fn clock(&mut self, s: Special) -> Val {
        use Special::{Clock, Clock64, ClockHi, GlobalTimerHi};
        let v = match s {
            Clock | ClockHi | Clock64 => self.w.intrinsic_named("llvm.readcyclecounter", Ty::scalar(Elem::I64), &[]),
            _ => {
                let time = self.w.alloca("i64", 8);
                self.helper(Helper::Time, &[&time]);
                self.w.get_changed(Ty::scalar(Elem::I64), &time, 0, 8)
            }
        };
        let v = if matches!(s, ClockHi | GlobalTimerHi) { self.w.op_const("lshr", &v, 32) } else { v };
        self.w.resize(&v, elem_of(s.info().ty), false)
    }

    /// A special register of clusters; without clusters, each CTA is a cluster of its own.
    fn cluster_special(&mut self, s: Special, c: Component) -> Result<Val> {
        use Special::{ClusterCtaid, ClusterCtarank, ClusterId, ClusterNctaid, ClusterNctarank, IsExplicitCluster};
        let elem = elem_of(s.info().ty);
        let sizes = self.options.cluster.unwrap_or([1; 3]);
        let size = sizes.get(c as usize).map_or(1, |n| i128::from(*n));
        Ok(match s {
            ClusterId => {
                let at = self.special(Special::Ctaid, c)?;
                self.w.op_const("udiv", &at, size)
            }
            ClusterCtaid if c == Component::W => int(elem, 0),
            ClusterCtaid => {
                let at = self.special(Special::Ctaid, c)?;
                self.w.op_const("urem", &at, size)
            }
            ClusterCtarank => {
                let mut rank = int(elem, 0);
                for (c, n) in [(Component::Z, sizes[1]), (Component::Y, sizes[0]), (Component::X, 1)] {
                    let at = self.cluster_special(ClusterCtaid, c)?;
                    let sum = self.w.op("add", &rank, &at);
                    rank = self.w.op_const("mul", &sum, i128::from(n));
                }
                rank
            }
            ClusterNctaid => int(elem, size),
            ClusterNctarank => int(elem, sizes.iter().map(|n| i128::from(*n)).product()),
            IsExplicitCluster => int(elem, i128::from(self.options.cluster.is_some())),
            _ => {
                let all = self.special(Special::Nctaid, c)?;
                self.w.op_const("udiv", &all, size)
            }
        })
    }

    /// `%smid`, derived from the linear index of the CTA.
    fn multiprocessor(&mut self) -> Val {
        let [x, y, z] = [Component::X, Component::Y, Component::Z].map(|c| self.special(Special::Ctaid, c));
        let [Ok(x), Ok(y), Ok(z)] = [x, y, z] else { return int(Elem::I32, 0) };
        let [wide, high] = [0, 4].map(|o| self.ctx_value(Elem::I32, at::GRID + o));
        let rows = self.w.op("mul", &z, &high);
        let rows = self.w.op("add", &rows, &y);
        let linear = self.w.op("mul", &rows, &wide);
        let linear = self.w.op("add", &linear, &x);
        self.w.op_const("urem", &linear, i128::from(margay_exec::MULTIPROCESSORS))
    }

    /// `%warpid`
    pub fn warp_index(&mut self) -> Val {
        match &self.grid_loop.current {
            Some(current) => current.warp.clone(),
            None => self.ctx_value(Elem::I32, at::WARP),
        }
    }

    /// `%tid` of one lane, from the index of the warp and the block shape.
    pub fn tid_of(&mut self, c: Component, lane: u32) -> Val {
        let Some([x, y, z]) = self.options.warp.block else {
            let p = self.tid_row(c);
            let p = self.w.offset_const(&p, u64::from(4 * lane));
            return self.w.fixed_load(Ty::scalar(Elem::I32), &p, 4);
        };
        // Threads per increment of the component, number of its values, and whether it wraps around.
        let (step, size, again) = match c {
            Component::X => (1, x, y * z > 1),
            Component::Y => (x, y, z > 1),
            Component::Z => (x * y, z, false),
            Component::W => (1, 1, false),
        };
        if size == 1 {
            return int(Elem::I32, 0);
        }
        let warp = self.warp_index();
        let mut v = self.w.op_const("mul", &warp, 32);
        if lane > 0 {
            v = self.w.op_const("add", &v, i128::from(lane));
        }
        if step > 1 {
            v = self.w.op_const("udiv", &v, i128::from(step));
        }
        if again { self.w.op_const("urem", &v, i128::from(size)) } else { v }
    }

    /// Address of `%tid` of the warp's lanes in the context's table.
    fn tid_row(&mut self, c: Component) -> Val {
        let table = self.ctx_value(Elem::Ptr, at::TIDS);
        let warp = self.warp_index();
        let row = self.w.op_const("mul", &warp, 3);
        let row = self.w.op_const("add", &row, i128::from(c as u8));
        let bytes = self.w.op_const("mul", &row, 128);
        self.w.offset(&table, &bytes)
    }

    /// `%tid` of all lanes.
    fn tid(&mut self, c: Component) -> Val {
        if let (Some([x, y, z]), Some((width, stride))) =
            (self.options.warp.block, affine_form(self.options.warp.special(Special::Tid, c)))
        {
            if (width, stride) == (32, 0) {
                return self.tid_of(c, 0);
            }
            // The pattern over the lanes is the same in every warp, up to whole rows.
            let per_warp = 32 / x.min(32);
            let steps = match c {
                Component::X if 32 % x == 0 => return per_lane(Elem::I32, |l| i128::from(l % x)),
                Component::Y if 32 % x == 0 && (y % per_warp == 0 || z == 1) => {
                    Some(per_lane(Elem::I32, |l| i128::from(l / x)))
                }
                _ if width == 32 => Some(per_lane(Elem::I32, i128::from)),
                _ => None,
            };
            if let Some(steps) = steps {
                let base = self.tid_of(c, 0);
                return self.w.op("add", &base, &steps);
            }
        }
        let p = self.tid_row(c);
        self.w.fixed_load(Ty::lanes(Elem::I32), &p, 64)
    }

    /// The guard of an instruction as a scalar or a mask.
    pub fn guard(&mut self, inst: &Inst) -> Option<Val> {
        let (p, negated) = inst.guard?;
        let v = self.read(p);
        Some(if negated { self.w.op_const("xor", &v, 1) } else { v })
    }
}
