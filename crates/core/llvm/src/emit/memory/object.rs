//! Operations of all active lanes on one barrier object (`mbarrier`) in the CTA's shared memory (manual, section 9.7.13.15). The reference
//! engine executes unusual cases and reports faults.

use crate::emit::{
    function::{Emitter, Result},
    memory::{PROGRAM, address::Address},
    text::{Elem, Ty, Val, constant, fill, int, per_lane},
};
use margay_exec::object::{EXPECTED_AT, LIMIT, MbarrierKind, PHASE, TX_AT, TX_MASK, VALID};
use margay_ir::{Inst, MemSpace, Operand, pass::Shape};
use margay_isa::Mod;

/// An operation with native code.
enum Operation {
    /// Each lane arrives `count` times, after adding `bytes` to the transaction count.
    Arrive { count: Val, bytes: Option<Val> },
    /// Tests whether the phase of a state, or the phase with a parity, is complete.
    Wait { state: Val, parity: bool },
    /// Initializes the object for this number of arrivals in each phase.
    Init(Val),
}

impl Emitter<'_> {
    /// `mbarrier`.
    pub(super) fn barrier_object(&mut self, inst: &Inst) -> Result<()> {
        let observed = self.options.observe.is_some_and(|interest| interest.order);
        // The reference engine does not count these operations as accesses.
        let native = inst.space == Some(MemSpace::Shared) && !observed && !self.options.count;
        let operation = if native { self.operation(inst)? } else { None };
        let Some(operation) = operation else { return self.effect(inst) };
        let address = self.func.operands(inst.srcs)[0];
        self.guarded(inst, |e, mask| {
            e.access(inst, &address, (8, true), mask, |e, address| {
                let (at, differs) = e.common_address(address, mask);
                e.operate(inst, &operation, (&at, differs), mask)
            })
        })
    }

    /// The operation of an instruction; `None` if it has no native code.
    fn operation(&mut self, inst: &Inst) -> Result<Option<Operation>> {
        const WITHOUT: [Mod; 5] =
            [Mod::PhasePrimary, Mod::PhaseConditional, Mod::MulticastCluster32b, Mod::NoComplete, Mod::LayoutV1];
        let variant = self.func.variant(inst);
        let srcs = self.func.operands(inst.srcs);
        if WITHOUT.iter().any(|m| variant.has(*m)) || !matches!(srcs.first(), Some(Operand::Mem(..))) {
            return Ok(None);
        }
        let one = int(Elem::I64, 1);
        Ok(match MbarrierKind::of(variant) {
            Some(MbarrierKind::Init) => self.common_number(srcs.get(1))?.map(Operation::Init),
            Some(kind @ (MbarrierKind::Wait | MbarrierKind::WaitParity)) => {
                let parity = kind == MbarrierKind::WaitParity;
                let state = self.value(&srcs[1], if parity { Elem::I32 } else { Elem::I64 })?;
                Some(Operation::Wait { state, parity })
            }
            // The states of several lanes could not be computed by one subtraction.
            Some(MbarrierKind::ArriveExpect)
                if self.func.operands(inst.dsts).iter().any(|d| matches!(d, Operand::Reg(_))) =>
            {
                None
            }
            Some(MbarrierKind::ArriveExpect) => {
                self.common_number(srcs.get(1))?.map(|bytes| Operation::Arrive { count: one, bytes: Some(bytes) })
            }
            Some(MbarrierKind::Arrive) if srcs.len() == 1 => Some(Operation::Arrive { count: one, bytes: None }),
            Some(MbarrierKind::Arrive) => {
                self.common_number(srcs.get(1))?.map(|count| Operation::Arrive { count, bytes: None })
            }
            _ => None,
        })
    }

    /// The value of a 32-bit operand, if there is one and all lanes have the same.
    fn common_number(&mut self, operand: Option<&Operand>) -> Result<Option<Val>> {
        let operand = match operand {
            Some(Operand::Reg(r)) => self.constant_or(*r),
            Some(operand) => *operand,
            None => return Ok(None),
        };
        let v = self.value(&operand, Elem::I32)?;
        let v = self.w.resize(&v, Elem::I64, false);
        Ok(Some(v).filter(|v| !v.ty.vector))
    }

    /// The address of the first lane and, unless the address is uniform, whether other lanes have a different one.
    fn common_address(&mut self, address: &Address, mask: Option<&Val>) -> (Val, Option<Val>) {
        if let Address::Affine { bases, width: 32, stride: 0 } = address {
            return (bases[0].clone(), None);
        }
        let (all, lanes) = (self.spread(address), self.lane_bits(mask));
        let first = self.first_of(&all, &lanes);
        let one = self.w.splat(&first);
        let others = self.w.cmp("icmp ne", &all, &one);
        let others = self.bits(&others);
        let others = self.w.op("and", &others, &lanes);
        (first, Some(self.w.cmp("icmp ne", &others, &int(Elem::I32, 0))))
    }

    /// Operates on the object at a host address; the reference engine does if the address `differs` between lanes.
    fn operate(
        &mut self,
        inst: &Inst,
        operation: &Operation,
        (at, differs): (&Val, Option<Val>),
        mask: Option<&Val>,
    ) -> Result<()> {
        let object = self.pointer(at);
        let (usual, result) = match operation {
            Operation::Arrive { count, bytes } => {
                // Zero arrivals are not performed natively.
                let none = int(Elem::I64, 0);
                let count = differs.as_ref().map_or(count.clone(), |differs| self.w.select(differs, &none, count));
                self.arrive(&object, &count, bytes.as_ref(), mask)
            }
            Operation::Wait { state, parity } => {
                let bits =
                    self.w.value(Ty::scalar(Elem::I64), format_args!("load i64, ptr {object}, align 8, {PROGRAM}"));
                let mark = self.w.op_const("and", &bits, VALID.into());
                let valid = self.w.cmp("icmp ne", &mark, &int(Elem::I64, 0));
                (valid, Some(self.has_completed(&bits, state, *parity)))
            }
            Operation::Init(count) => {
                let less = self.w.op_const("sub", count, 1);
                (self.w.cmp("icmp ult", &less, &int(Elem::I64, LIMIT.into())), None)
            }
        };
        let dst = match self.func.operands(inst.dsts).first() {
            Some(Operand::Reg(r)) => Some(*r),
            _ => None,
        };
        let [quick, slow, done] = ["object", "object.slow", "object.done"].map(|l| self.w.label(l));
        let unusual = self.w.op_const("xor", &usual, 1);
        let unusual = self.either(differs, unusual);
        self.w.branch_unlikely(&unusual, &slow, &quick);
        let ((), slow) = self.diamond(
            [&quick, &slow, &done],
            |e| {
                if let Operation::Init(count) = operation {
                    let expected = e.w.op_const("shl", count, EXPECTED_AT.into());
                    let bits = e.w.op("or", count, &expected);
                    let bits = e.w.op_const("or", &bits, VALID.into());
                    e.w.line(format_args!("store i64 {bits}, ptr {object}, align 8, {PROGRAM}"));
                }
                if let (Some(r), Some(v)) = (dst, &result) {
                    let same = e.slots[r.0 as usize].shape == Shape::Uniform;
                    let v = if same && v.ty.vector { e.first_active(v) } else { v.clone() };
                    e.write(r, &v, mask);
                }
                match operation {
                    Operation::Wait { .. } => e.yield_unless(inst),
                    _ => e.note_change(None),
                }
            },
            |e| e.cold_effect(inst),
        );
        slow
    }

    /// Arrives for all lanes. Returns whether that was done, and the object before each lane's arrival.
    fn arrive(&mut self, object: &Val, count: &Val, bytes: Option<&Val>, mask: Option<&Val>) -> (Val, Option<Val>) {
        let lanes = self.lane_bits(mask);
        let number = self.w.intrinsic("llvm.ctpop", lanes.ty, &[&lanes]);
        let number = self.w.resize(&number, Elem::I64, false);
        let arrivals = self.w.op("mul", &number, count);
        let zero = int(Elem::I64, 0);
        let numbers: [(&str, &dyn std::fmt::Display); 9] = [
            ("program", &PROGRAM),
            ("valid", &VALID),
            ("limit", &LIMIT),
            ("twice", &(2 * LIMIT)),
            ("tx_at", &TX_AT),
            ("tx_mask", &TX_MASK),
            ("other", &!TX_MASK),
            ("open", &(TX_MASK | LIMIT)),
            ("expected_at", &EXPECTED_AT),
        ];
        self.w.declared.insert(fill(include_str!("object/arrive.ll"), &[&numbers[..], &[("phase", &PHASE)]].concat()));
        let bytes = bytes.map_or(zero.clone(), |bytes| self.w.op("mul", &number, bytes));
        let call = format_args!("call i64 @margay.arrive(ptr {object}, i64 {arrivals}, i64 {bytes})");
        let old = self.w.value(Ty::scalar(Elem::I64), call);
        let made = self.w.cmp("icmp ne", &old, &zero);
        let below = per_lane(Elem::I32, |lane| (1 << lane) - 1);
        let before = self.w.splat(&lanes);
        let before = self.w.op("and", &before, &below);
        let before = self.w.intrinsic("llvm.ctpop", before.ty, &[&before]);
        let before = self.w.resize(&before, Elem::I64, false);
        let (count, old) = (self.w.splat(count), self.w.splat(&old));
        let earlier = self.w.op("mul", &before, &count);
        (made, Some(self.w.op("sub", &old, &earlier)))
    }

    /// Whether an object with these bits has completed the phase of a state, or the phase with a parity.
    fn has_completed(&mut self, bits: &Val, state: &Val, parity: bool) -> Val {
        let bits = if state.ty.vector { self.w.splat(bits) } else { bits.clone() };
        if parity {
            let phase = self.w.op_const("lshr", &bits, 63);
            let phase = self.w.resize(&phase, Elem::I32, false);
            let asked = self.w.op_const("and", state, 1);
            return self.w.cmp("icmp ne", &phase, &asked);
        }
        let changed = self.w.op("xor", &bits, state);
        self.w.cmp("icmp slt", &changed, &constant(changed.ty, 0))
    }
}
