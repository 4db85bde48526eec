//! Decodes placed functions to [`FuncCode`], once per kernel.

mod call;
mod copy;
mod effect;
mod matrix;
mod operand;
mod rows;
mod tcgen05;
mod tensor;
mod texture;

use super::code::{Code, Dst, FuncCode, Handler, NEGATED, NOWHERE, Op, OperandList, Shape, Src, UNGUARDED};
use super::step;
use crate::{Image, Row, Stop, Unsupported, sem};
use margay_check::FuncKind;
use margay_ir::{
    BlockId, Func, FuncId, Inst, Operand, Terminator, VReg,
    abi::{FuncPlaces, Reg},
    operand_types,
    pass::{Cfg, reachable},
};
use margay_isa::{Effect, Opcode, Type};
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

/// Decodes a kernel and all functions that it may call.
pub fn decode(image: Arc<Image>, kernel: FuncId) -> Result<Code, Stop> {
    let reached = reachable(&image.ir, kernel);
    let mut registers = Registers::default();
    let mut funcs: Vec<Option<Box<FuncCode>>> = (0..image.ir.funcs.len()).map(|_| None).collect();
    let mut local = image.ir.thread_block > 0;
    for id in reached {
        let func = &image.ir.funcs[id.0 as usize];
        if func.blocks.is_empty() {
            continue;
        }
        let decoded = Decoder::new(&image, id, &mut registers).function()?;
        local |= decoded.local || decoded.frame_size > 0 || !decoded.calls.is_empty();
        funcs[id.0 as usize] = Some(Box::new(decoded));
    }
    Ok(Code { image, kernel, funcs, registers: registers.end, local })
}

/// Numbers the ABI's registers: their rows in the model register file.
#[derive(Default)]
struct Registers {
    rows: HashMap<Reg, u32>,
    end: u32,
}

impl Registers {
    fn row(&mut self, reg: Reg) -> u32 {
        *self.rows.entry(reg).or_insert_with(|| {
            let row = self.end;
            self.end += u32::from(reg.bytes).div_ceil(4).max(1);
            row
        })
    }
}

/// The state of decoding one function.
struct Decoder<'i> {
    image: &'i Image,
    places: &'i FuncPlaces,
    registers: &'i mut Registers,
    code: FuncCode,
    /// First row by register.
    rows: Vec<u32>,
    /// Rows of temporaries of the current instruction; and the maximum over all instructions.
    temps: u32,
    pred_temps: u32,
    most_temps: u32,
    /// Constants that have rows already.
    known: HashMap<(u64, u8), Src>,
    /// First op per block.
    starts: Vec<u32>,
    /// Ops whose `x` is still a block.
    branches: Vec<usize>,
    /// Index of the current instruction's place.
    at: u32,
}

impl<'i> Decoder<'i> {
    fn new(image: &'i Image, id: FuncId, registers: &'i mut Registers) -> Decoder<'i> {
        let func = image.ir.funcs[id.0 as usize].clone();
        let places = &image.ir.stage.funcs[id.0 as usize];
        let code = FuncCode {
            id,
            ops: Vec::new(),
            at: Vec::new(),
            by_inst: vec![(0, 0); func.insts.len()],
            by_term: vec![u32::MAX; func.blocks.len()],
            sites: OnceLock::new(),
            orders: OnceLock::new(),
            tests: OnceLock::new(),
            row_of: Vec::new(),
            consts: Vec::new(),
            rows: 0,
            variants: func.variants.clone(),
            func,
            operand_lists: Vec::new(),
            mems: Vec::new(),
            warps: Vec::new(),
            barriers: Vec::new(),
            copies: Vec::new(),
            mbarriers: Vec::new(),
            textures: Vec::new(),
            surfaces: Vec::new(),
            queries: Vec::new(),
            matrices: Vec::new(),
            tensors: Vec::new(),
            tcgen05s: Vec::new(),
            maps: Vec::new(),
            calls: Vec::new(),
            specials: Vec::new(),
            switches: Vec::new(),
            args: Vec::new(),
            rets: Vec::new(),
            hidden: Vec::new(),
            space: 0,
            start: 0,
            frame_size: places.frame_size,
            frame_align: places.frame_align.max(1),
            outgoing: places.outgoing,
            local: false,
        };
        Decoder {
            image,
            places,
            registers,
            code,
            rows: Vec::new(),
            temps: 0,
            pred_temps: 0,
            most_temps: 0,
            known: HashMap::new(),
            starts: Vec::new(),
            branches: Vec::new(),
            at: 0,
        }
    }

    fn func(&self) -> Arc<Func> {
        self.code.func.clone()
    }

    fn function(mut self) -> Result<FuncCode, Stop> {
        let func = self.func();
        let cfg = Cfg::new(&func, |_, _| false);
        let (rows, end) = rows::assign(&func, &cfg);
        (self.rows, self.code.rows) = (rows, end);
        self.starts = vec![u32::MAX; func.blocks.len()];
        self.formals();
        for (i, b) in cfg.order.iter().enumerate() {
            self.starts[b.0 as usize] = self.code.ops.len() as u32;
            let block = &func.blocks[b.0 as usize];
            for i in block.insts.range() {
                let first = self.code.ops.len() as u32;
                self.inst(&func, &func.insts[i])?;
                self.code.by_inst[i] = (first, self.code.ops.len() as u32);
            }
            self.temps = 0;
            self.at = block.at;
            self.code.by_term[b.0 as usize] = self.code.ops.len() as u32;
            self.terminator(&func, &cfg, block.term.clone(), cfg.order.get(i + 1).copied())?;
        }
        self.patch();
        self.code.rows += self.most_temps;
        self.code.row_of = self.rows;
        Ok(self.code)
    }

    /// Replaces block numbers in branches by op indices.
    fn patch(&mut self) {
        let starts = &self.starts;
        for i in &self.branches {
            let op = &mut self.code.ops[*i];
            op.x = starts[op.x as usize];
        }
        for table in &mut self.code.switches {
            table.iter_mut().for_each(|t| *t = starts[*t as usize]);
        }
    }

    fn push(&mut self, op: Op) {
        self.code.ops.push(op);
        self.code.at.push(self.at);
    }

    fn push_branch(&mut self, op: Op) {
        self.branches.push(self.code.ops.len());
        self.push(op);
    }

    /// An op without operands.
    fn blank(run: Handler) -> Op {
        Op {
            run,
            pure: |_, _, _, _| {},
            guard: UNGUARDED,
            dst: NOWHERE,
            src: [Src::reg(0, Shape::Word); 3],
            x: 0,
            variant: 0,
            shape: Shape::Word,
            y: 0,
        }
    }

    /// Adds an op with the instruction's guard and an index into a side table.
    fn emit(&mut self, inst: &Inst, run: Handler, x: u32) {
        let guard = self.guard(inst);
        self.push(Op { guard, x, variant: inst.variant, ..Self::blank(run) });
    }

    fn guard(&self, inst: &Inst) -> u32 {
        match inst.guard {
            Some((p, negated)) => self.row(p) | if negated { NEGATED } else { 0 },
            None => UNGUARDED,
        }
    }

    fn row(&self, r: VReg) -> u32 {
        match self.rows[r.0 as usize] {
            // Never accessed, so any row will do.
            u32::MAX => 0,
            row => row,
        }
    }

    fn unsupported(&self, what: String) -> Stop {
        let at = self.code.func.places.get(self.at as usize).copied();
        Stop::Unsupported(Unsupported { what, func: Some(self.code.id), at })
    }

    fn inst(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        (self.temps, self.pred_temps) = (0, 0);
        self.at = inst.at;
        let variant = func.variant(inst);
        if crate::unmodeled(variant) {
            return Err(self.unsupported(format!("`{variant}`")));
        }
        match variant.op.row().effect {
            Effect::Pure => self.pure(func, inst),
            Effect::Machine if variant.op == Opcode::Istypep => self.query(func, inst),
            Effect::Machine => self.machine(func, inst),
            Effect::Call => self.call(func, inst),
            Effect::Memory | Effect::Control | Effect::Warp => self.effect(func, inst),
        }
    }

    fn pure(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let variant = func.variant(inst);
        let types = operand_types(func, inst);
        let (sources, dests) = (func.operands(inst.srcs).to_vec(), func.operands(inst.dsts).to_vec());
        if variant.op == Opcode::Mov
            && let ([source], [d @ Operand::Reg(_)]) = (&sources[..], &dests[..])
            && self.move_special(func, inst, source, *d, types.srcs[0])
        {
            return Ok(());
        }
        let mut src = Vec::with_capacity(sources.len());
        for (o, ty) in sources.iter().zip(&types.srcs) {
            src.push(self.source(o, *ty)?);
        }
        let dst: Vec<Dst> = dests.iter().zip(&types.dsts).map(|(o, ty)| self.dst(func, o, *ty)).collect();
        let bits = |types: &[Type]| types.iter().map(|t| t.bits()).collect::<Vec<_>>();
        let Some(pure) = sem::pure(variant, &bits(&types.srcs), &bits(&types.dsts)) else {
            return Err(self.unsupported(format!("`{variant}`")));
        };
        let guard = self.guard(inst);
        let op = Op { pure, guard, variant: inst.variant, ..Self::blank(step::pure::wide) };
        match (&src[..], &dst[..]) {
            ([..], [d]) if src.len() <= 3 && d.row != NOWHERE => {
                let overlaps = |s: &Src| {
                    let (a, b) = (s.row() as u32, d.row);
                    !s.is_const() && a < b + d.shape.rows() as u32 && b < a + s.rows() as u32
                };
                let free = !src.iter().any(overlaps);
                let run: Handler = match (src.len(), free) {
                    (1, _) if variant.op == Opcode::Mov && src[0].shape() == d.shape => step::pure::copy,
                    (1, true) => step::pure::direct1,
                    (2, true) => step::pure::direct2,
                    (3, true) => step::pure::direct3,
                    (1, false) => step::pure::masked1,
                    (2, false) => step::pure::masked2,
                    (3, false) => step::pure::masked3,
                    _ => step::pure::masked0,
                };
                let mut all = [Src::reg(0, Shape::Word); 3];
                all[..src.len()].copy_from_slice(&src);
                self.push(Op { run, dst: d.row, shape: d.shape, src: all, ..op });
            }
            _ => {
                let x = append(&mut self.code.operand_lists, OperandList { src, dst });
                self.push(Op { x, ..op });
            }
        }
        Ok(())
    }

    fn terminator(&mut self, func: &Func, cfg: &Cfg, term: Terminator, next: Option<BlockId>) -> Result<(), Stop> {
        // Groups merge at blocks with several predecessors, so even falling into one is a jump.
        let falls = |b: BlockId| Some(b) == next && cfg.preds[b.0 as usize].len() == 1;
        let jump = |b: BlockId| Op { x: b.0, ..Self::blank(step::control::jump) };
        match term {
            Terminator::Jump(b) if falls(b) => {}
            Terminator::Jump(b) => self.push_branch(jump(b)),
            Terminator::Branch { then, other, .. } if then == other => self.push_branch(jump(then)),
            Terminator::Branch { pred, negated, then, other, .. } => {
                let (to, rest, inverted) =
                    if Some(then) == next { (other, then, !negated) } else { (then, other, negated) };
                let dst = self.row(pred);
                self.push_branch(Op { x: to.0, dst, y: inverted.into(), ..Self::blank(step::control::branch) });
                if Some(rest) != next {
                    self.push_branch(jump(rest));
                }
            }
            Terminator::Switch { index, targets, .. } => {
                let index = self.source(&index, Type::U32)?;
                let x = append(&mut self.code.switches, targets.iter().map(|b| b.0).collect());
                self.push(Op { x, src: [index; 3], ..Self::blank(step::control::switch) });
            }
            Terminator::Ret if func.noreturn => self.push(Self::blank(step::call::unexpected_ret)),
            Terminator::Ret if func.kind == FuncKind::Device => self.push(Self::blank(step::call::ret)),
            Terminator::Ret | Terminator::Exit => self.push(Self::blank(step::control::exit)),
        }
        Ok(())
    }
}

/// Appends an item to a side table of [`FuncCode`]; returns its index, for [`Op::x`].
fn append<T>(table: &mut Vec<T>, item: T) -> u32 {
    table.push(item);
    table.len() as u32 - 1
}

/// A constant in all lanes.
fn splat(bits: u64, ty: Type) -> Vec<Row> {
    match Shape::of(ty) {
        Shape::Pred => vec![Row([if bits & 1 == 1 { u32::MAX } else { 0 }; crate::LANES])],
        Shape::Word => vec![Row([bits as u32; crate::LANES])],
        Shape::Double => {
            let mut rows = vec![Row::ZERO; 2];
            *crate::lanes::u64s_mut(&mut rows) = [bits; crate::LANES];
            rows
        }
        Shape::Quad => {
            let mut rows = vec![Row::ZERO; 4];
            crate::lanes::set_u128s(&mut rows, &[bits.into(); crate::LANES]);
            rows
        }
    }
}
