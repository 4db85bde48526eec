//! Assigns a location to every parameter, argument and frame variable.
//!
//! A frame, from its base upwards: the outgoing area (which the callee sees at the same address, as on the GPU, where it is at
//! R1), then the variables. `.param` variables whose uses are all in one block share storage if their uses do not overlap:
//! compilers declare fresh ones for every call.

use super::{Abi, Buffer, FuncPlaces, NoPlan, Piece, Place, Plan, Signature, kernel_layout};
use crate::{
    Arg, CallSite, FrameId, FrameRole, Func, Ir, Operand, Placed, Virtual,
    explicit::{self, Admitted, Interface, Target},
    pass::{mark_observing_calls, mark_uniform_values},
};
use margay_check::FuncKind;
use std::{collections::HashMap, sync::Arc};

/// Lanes of a vector register, in ABIs with vector registers.
const LANES: u32 = 32;

/// Smallest alignment of a frame: larger loads and stores of formals never straddle.
const FRAME_ALIGN: u32 = 16;

/// Smallest frame of a device function: it accounts for the return address, so that endless recursion ends.
const LEAST_FRAME: u32 = 16;

/// The lowest local address that a kernel's frame may have: programs compare pointers with zero.
const FIRST_LOCAL: u32 = 16;

/// Places a whole program under one ABI.
pub fn place(mut ir: Ir<Virtual>, abi: &dyn Abi) -> Result<Ir<Placed>, NoPlan> {
    abi.accepts(&ir)?;
    mark_observing_calls(&mut ir);
    if abi.distinguishes_uniform() {
        mark_uniform_values(&mut ir);
    }
    let mut plans: HashMap<Signature, Plan> = HashMap::new();
    let mut plan = |sig: &Signature| {
        if let Some(plan) = plans.get(sig) {
            return Ok(plan.clone());
        }
        let plan = abi.plan(sig, LANES)?;
        plans.insert(sig.clone(), plan.clone());
        Ok(plan)
    };
    let mut admitted = Admitted::default();
    let mut funcs = Vec::with_capacity(ir.funcs.len());
    // Of a large module, the requested kernel mostly needs only the names of functions. Their places follow from their signatures, and
    // there are few different ones: linking shares equal signatures, so the address identifies a signature.
    let mut bare: HashMap<(FuncKind, *const Signature), Arc<FuncPlaces>> = HashMap::new();
    for func in &ir.funcs {
        let is_bare = func.blocks.is_empty() && func.frame.is_empty() && func.calls.is_empty();
        if let Some(places) = bare.get(&(func.kind, Arc::as_ptr(&func.sig))).filter(|_| is_bare) {
            funcs.push(places.clone());
            continue;
        }
        let named = |e: NoPlan| NoPlan { value: e.value, reason: format!("{} (in `{}`)", e.reason, func.name) };
        let own = match func.kind {
            FuncKind::Kernel => kernel_plan(&func.sig),
            FuncKind::Device => plan(&func.sig).map_err(named)?,
        };
        let (mut calls, mut sites) = (Vec::new(), Vec::new());
        for call in &func.calls {
            let target = admitted.target(&ir, call);
            let (sig, site) = agree(&ir, call, &target, &mut plan).map_err(named)?;
            calls.push(site);
            sites.push((sig, target));
        }
        let (mut places, buffers) = frame(func, own, calls).map_err(named)?;
        if func.kind == FuncKind::Kernel {
            places.base = ir.thread_block.max(FIRST_LOCAL).next_multiple_of(places.frame_align);
        }
        let sites = sites.into_iter().zip(buffers).map(|((sig, target), buffers)| (sig, target, buffers));
        explicit::make(func, &func.sig, &mut places, sites);
        let places = Arc::new(places);
        if is_bare {
            bare.insert((func.kind, Arc::as_ptr(&func.sig)), places.clone());
        }
        funcs.push(places);
    }
    Ok(Ir {
        funcs: ir.funcs,
        globals: ir.globals,
        address_taken: ir.address_taken,
        func_names: ir.func_names,
        global_names: ir.global_names,
        target: ir.target,
        version: ir.version,
        address_size: ir.address_size,
        thread_block: ir.thread_block,
        ranked_addresses: ir.ranked_addresses,
        stage: Placed { abi: abi.name(), funcs },
    })
}

/// The signature and plan that a call site shares with its callees. Functions that are called through a register may have other types
/// than the prototype; where that matters to an ABI, the site uses the functions' plan.
fn agree(
    ir: &Ir<Virtual>,
    call: &CallSite,
    target: &Target,
    plan: &mut impl FnMut(&Signature) -> Result<Plan, NoPlan>,
) -> Result<(Arc<Signature>, Plan), NoPlan> {
    let ids = match target {
        Target::Function(id) => {
            let sig = &ir.func(*id).sig;
            return Ok((sig.clone(), plan(sig)?));
        }
        Target::Builtin(_) | Target::Undefined(_) => return Ok((call.sig.clone(), plan(&call.sig)?)),
        Target::Admitted(ids) => ids,
    };
    let mut known: Option<(Arc<Signature>, Plan)> = None;
    for id in ids.iter().filter(|id| !ir.func(**id).blocks.is_empty()) {
        let func = ir.func(*id);
        let found = plan(&func.sig)?;
        match &known {
            Some((_, other)) if *other != found => {
                let reason = "the possible callees of a call take their parameters in different locations";
                return Err(NoPlan::new(reason));
            }
            Some(_) => {}
            None => known = Some((func.sig.clone(), found)),
        }
    }
    match known {
        Some(known) => Ok(known),
        None => Ok((call.sig.clone(), plan(&call.sig)?)),
    }
}

/// Kernel parameters are in the block passed to cuLaunchKernel, under every ABI.
pub fn kernel_plan(sig: &Signature) -> Plan {
    let layout = kernel_layout(sig);
    let piece = |(value, offset): (&super::Value, &u32)| {
        vec![Piece { bytes: 0..value.size, at: Place::Space { offset: *offset } }]
    };
    Plan {
        args: sig.params.iter().zip(&layout.offsets).map(piece).collect(),
        rets: Vec::new(),
        stack: layout.size,
        clobbers: Vec::new(),
    }
}

/// Bytes of the outgoing area that a call site needs, the array that it passes for an unsized formal included.
fn outgoing(func: &Func, call: usize, plan: &Plan) -> Option<u32> {
    let site = &func.calls[call];
    let mut end = plan.stack;
    for ((value, arg), pieces) in site.sig.params.iter().zip(&site.args).zip(&plan.args) {
        let (true, Arg::Frame(var), Some(piece)) = (value.is_unsized, arg, pieces.first()) else { continue };
        match piece.at {
            Place::Stack { offset } | Place::Space { offset } => {
                end = end.max(offset.checked_add(func.frame[var.0 as usize].size)?);
            }
            Place::Reg(_) | Place::Behind(_) => {}
        }
    }
    Some(end)
}

/// The frame of a function, and the buffers of its call sites.
fn frame(func: &Func, plan: Plan, calls: Vec<Plan>) -> Result<(FuncPlaces, Vec<Vec<Buffer>>), NoPlan> {
    let too_large = || NoPlan::new("the frame is larger than 4 GiB");
    let mut end = 0u32;
    for (i, plan) in calls.iter().enumerate() {
        end = end.max(outgoing(func, i, plan).ok_or_else(too_large)?);
    }
    let mut align = FRAME_ALIGN;
    let mut offsets = vec![0u32; func.frame.len()];
    let spans = block_local(func);
    for (i, var) in func.frame.iter().enumerate() {
        let is_unsized = matches!(var.role, FrameRole::Formal(f) if func.sig.params[f as usize].is_unsized);
        if spans[i].is_some() || is_unsized {
            continue;
        }
        align = align.max(var.align);
        offsets[i] = end.checked_next_multiple_of(var.align).ok_or_else(too_large)?;
        end = offsets[i].checked_add(var.size).ok_or_else(too_large)?;
    }
    let local = place_local(func, &spans, &mut offsets, end).ok_or_else(too_large)?;
    (end, align) = (end.max(local.end), align.max(local.align));
    let mut buffers = Vec::with_capacity(calls.len());
    let variables = end;
    for plan in &calls {
        let list = hidden_buffers(plan, variables).ok_or_else(too_large)?;
        end = list.iter().fold(end, |end, b| end.max(b.at + b.size));
        buffers.push(list);
    }
    if func.kind == FuncKind::Device {
        end = end.max(LEAST_FRAME);
    }
    let frame_size = end.checked_next_multiple_of(align).ok_or_else(too_large)?;
    let places = FuncPlaces {
        plan,
        frame: offsets,
        base: 0,
        frame_size,
        frame_align: align,
        outgoing: 0,
        calls,
        interface: Interface::default(),
        sequences: Vec::new(),
    };
    Ok((places, buffers))
}

/// Where the variables of single blocks end, and the largest of their alignments.
struct LocalArea {
    end: u32,
    align: u32,
}

/// Assigns offsets from `base` on to the variables that have a span. In the order of their first uses, each takes the lowest gap that the
/// variables still in use leave.
fn place_local(func: &Func, spans: &[Option<Span>], offsets: &mut [u32], base: u32) -> Option<LocalArea> {
    let mut area = LocalArea { end: base, align: 1 };
    let mut local: Vec<(Span, usize)> = spans.iter().enumerate().filter_map(|(i, s)| Some(((*s)?, i))).collect();
    local.sort_unstable_by_key(|(s, i)| (s.block, s.first, *i));
    let mut live: Vec<(Span, u32, u32)> = Vec::new();
    for (span, i) in local {
        let var = &func.frame[i];
        live.retain(|(s, ..)| s.block == span.block && s.last >= span.first);
        live.sort_unstable_by_key(|l| l.1);
        let mut at = base.checked_next_multiple_of(var.align)?;
        for (_, from, to) in &live {
            if at.checked_add(var.size)? <= *from {
                break;
            }
            at = at.max(to.checked_next_multiple_of(var.align)?);
        }
        let to = at.checked_add(var.size.max(1))?;
        live.push((span, at, to));
        offsets[i] = at;
        area = LocalArea { end: area.end.max(to), align: area.align.max(var.align) };
    }
    Some(area)
}

/// Space in the caller's frame for the values of a call that are passed by pointer. Call sites share it.
fn hidden_buffers(plan: &Plan, variables: u32) -> Option<Vec<Buffer>> {
    let mut buffers: Vec<Buffer> = Vec::new();
    for piece in plan.args.iter().chain(&plan.rets).flatten() {
        let Place::Behind(pointer) = piece.at else { continue };
        match buffers.iter_mut().find(|b| b.pointer == pointer) {
            Some(buffer) => buffer.size = buffer.size.max(piece.bytes.end),
            None => buffers.push(Buffer { pointer, at: 0, size: piece.bytes.end }),
        }
    }
    let mut end = variables;
    for buffer in &mut buffers {
        buffer.at = end.checked_next_multiple_of(FRAME_ALIGN)?;
        end = buffer.at.checked_add(buffer.size)?;
    }
    Some(buffers)
}

/// First and last use of a variable inside one block, by index of the instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    block: u32,
    first: u32,
    last: u32,
}

/// By frame variable: its span, for `.param` variables of the body whose uses all lie in one block.
fn block_local(func: &Func) -> Vec<Option<Span>> {
    #[derive(Clone, Copy)]
    enum Uses {
        None,
        One(Span),
        Many,
    }
    let mut uses = vec![Uses::None; func.frame.len()];
    // A variable that is read first may carry a value around a loop.
    let mut note = |id: FrameId, block: u32, at: u32| {
        let u = &mut uses[id.0 as usize];
        *u = match *u {
            Uses::None if !func.insts[at as usize].dsts.is_empty() => Uses::Many,
            Uses::None => Uses::One(Span { block, first: at, last: at }),
            Uses::One(s) if s.block == block => Uses::One(Span { last: at, ..s }),
            Uses::One(_) | Uses::Many => Uses::Many,
        };
    };
    for (b, block) in func.blocks.iter().enumerate() {
        for i in block.insts.range() {
            for operand in func.operands(func.insts[i].srcs) {
                let mut note = |id| note(id, b as u32, i as u32);
                operand.frame_variable().into_iter().for_each(&mut note);
                if let Operand::Call(call) = operand {
                    let site = &func.calls[*call as usize];
                    site.args.iter().chain(&site.rets).filter_map(Arg::frame_variable).for_each(note);
                }
            }
        }
    }
    let one = |(u, var): (Uses, &crate::FrameVar)| match u {
        Uses::One(span) if var.role == FrameRole::Param && !var.address_taken => Some(span),
        _ => None,
    };
    uses.into_iter().zip(&func.frame).map(one).collect()
}
