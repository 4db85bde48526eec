//! Calls and returns (manual, sections 7.1, 9.7.12.5 and 9.7.12.6).
//!
//! All moves follow [`margay_ir::explicit`]. A value goes from its home in one function through its ABI locations
//! (registers of a model register file, the call's parameter block, the caller's outgoing area, a buffer behind a
//! pointer) to its home in the other. Before each transfer, registers and parameter block are poisoned, so that what a
//! plan does not pass cannot arrive by accident.

use super::super::{
    code::{Address, Base, CallOp, Flow, FuncCode, Op, Passed, Target, Transfer},
    ctx::Ctx,
    state::{FrameIndex, lanes},
};
use super::transfer::{Between, Home, Local, Side, make_room};
use super::watch::report_call;
use crate::{FaultKind, LANES, Row, lanes::each, stack_note};
use margay_ir::{FuncId, MemSpace};

/// The contents of model registers and parameter blocks that nothing was written to.
const POISON: Row = Row([0xdead_5eed; LANES]);

/// Resets the parameter block of a call to poison.
fn empty_block(space: &mut Vec<Row>, rows: u32) {
    space.clear();
    space.resize(rows as usize, POISON);
}

/// Reports to the observer that a call or return has written to a variable of a frame, what another frame held at an offset if it comes
/// from there.
#[cold]
fn announce(ctx: &Ctx<'_>, (base, offset): (&Row, u32), from: Option<(&Row, u32)>, size: u32, mask: u32) {
    let local = Local { windows: ctx.warp.local.as_ref(), stride: ctx.windows.stride };
    let address = Address { space: MemSpace::Local, base: Base::Frame, offset: offset.into() };
    let hosts = |base: &Row, offset: u32| std::array::from_fn(|i| local.host(i, base.0[i].wrapping_add(offset)));
    let from = from.map(|(base, offset)| hosts(base, offset));
    report_call(ctx, mask, &address, (from.as_ref(), &hosts(base, offset)), size);
}

/// Reports what a call or return has moved between two frames.
fn announce_all(ctx: &Ctx<'_>, (from, sources): (&Row, &[Transfer]), (to, targets): (&Row, &[Transfer]), mask: u32) {
    for (i, target) in targets.iter().enumerate() {
        let Home::Frame(offset) = target.home else { continue };
        let source = sources.get(i).filter(|source| source.size == target.size);
        let source = source.and_then(|s| if let Home::Frame(offset) = s.home { Some((from, offset)) } else { None });
        announce(ctx, (to, offset), source, target.size, mask);
    }
}

fn offset_row(base: &Row, by: u32) -> Row {
    Row(base.0.map(|b| b.wrapping_add(by)))
}

/// `call`
pub fn call(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let site: &CallOp = &ctx.func.calls[op.x as usize];
    match &site.callee {
        Target::Func(id) => enter(ctx, op.x, *id),
        Target::Builtin(builtin) => super::super::builtin::call(ctx, site, *builtin),
        Target::Undefined(id) => undefined(ctx, *id),
        Target::Indirect(source) => {
            let targets = ctx.doubles(*source);
            let lane = ctx.first();
            let target = targets[lane];
            let image = &ctx.code.image;
            let id = match image.target(&ctx.func.func.calls[site.site as usize], target) {
                Ok(id) => id,
                Err(kind) => return ctx.fault(lane, kind, Vec::new()),
            };
            // Groups lanes by target: the other lanes execute the op again.
            let same = lanes(ctx.active).filter(|i| targets[*i] == target).fold(0, |m, i| m | 1 << i);
            if same != ctx.active {
                let others = ctx.active & !same;
                ctx.put_ready(others, ctx.pc);
                ctx.mask &= !others;
                ctx.active = same;
            }
            match image.ir.func(id).builtin {
                Some(builtin) => super::super::builtin::call(ctx, site, builtin),
                None => enter(ctx, op.x, id),
            }
        }
    }
}

fn undefined(ctx: &mut Ctx<'_>, id: FuncId) -> Flow {
    let name = ctx.code.image.ir.func(id).name.to_string();
    ctx.fault(ctx.first(), FaultKind::Undefined(name), Vec::new())
}

/// The active lanes enter a function.
fn enter(ctx: &mut Ctx<'_>, call: u32, id: FuncId) -> Flow {
    let code = ctx.code;
    let Some(callee) = code.funcs.get(id.0 as usize).and_then(Option::as_ref) else {
        return ctx.bug("a function that was called is not decoded");
    };
    let caller: &FuncCode = ctx.func;
    let site = &caller.calls[call as usize];
    let (mask, parent) = (ctx.active, ctx.frame);
    let rest = ctx.mask & !mask;
    let new: FrameIndex = ctx.warp.new_frame(id.0, callee.rows, mask);
    if ctx.check_registers().is_err() {
        return Flow::Stop;
    }
    let (depth, caller_base) = {
        let f = &ctx.warp.frames[parent as usize];
        (f.depth, f.base)
    };
    let base = match frame_base(ctx, callee, id) {
        Ok(base) => base,
        Err(flow) => return flow,
    };
    let top = offset_row(&base, callee.frame_size);
    let area = offset_row(&caller_base, caller.outgoing);
    let mut regs = std::mem::take(&mut ctx.warp.frames[new as usize].regs);
    let mut registers = std::mem::take(&mut ctx.warp.registers);
    let mut space = std::mem::take(&mut ctx.warp.space);
    let mut room = std::mem::take(&mut ctx.warp.stage);
    registers.fill(POISON);
    for (r, offset) in &site.buffers {
        registers[*r as usize] = offset_row(&caller_base, *offset);
    }
    empty_block(&mut space, site.space);
    {
        let local = Local { windows: ctx.warp.local.as_ref(), stride: ctx.windows.stride };
        let from = Side { regs: &mut ctx.regs, consts: &caller.consts, base: caller_base };
        let mut to = Side { regs: &mut regs, consts: &callee.consts, base };
        let mut between = Between { registers: &mut registers, space: &mut space, area };
        between.send_all(&local, &from, &site.args, mask, &mut room);
        if let Some(Passed { from: Some(offset), size, at }) = site.passed {
            let stage = make_room(&mut room, size);
            local.read(&caller_base, offset, size, mask, stage);
            local.write(&area, at, size, mask, stage);
        }
        between.receive_all(&local, (&mut to, &mut ctx.warp.select), &callee.args, mask, &mut room);
    }
    ctx.warp.stage = room;
    if ctx.grid.observer.is_some() {
        announce_all(ctx, (&caller_base, &site.args), (&base, &callee.args), mask);
        if let Some(Passed { from: Some(offset), size, at }) = site.passed {
            announce(ctx, (&area, at), Some((&caller_base, offset)), size, mask);
        }
    }
    let frame = &mut ctx.warp.frames[new as usize];
    frame.hidden.clear();
    frame.hidden.extend(callee.hidden.iter().map(|r| registers[*r as usize]));
    frame.regs = regs;
    let passed = site.passed.as_ref().map_or(0, |p| p.size);
    (frame.base, frame.top, frame.incoming, frame.passed) = (base, top, area, passed);
    (frame.parent, frame.ret, frame.call, frame.depth) = (parent, ctx.pc + 1, call, depth + 1);
    (ctx.warp.registers, ctx.warp.space) = (registers, space);
    if rest != 0 {
        ctx.put_ready(rest, ctx.pc + 1);
    }
    ctx.give_back();
    ctx.enter(new);
    (ctx.mask, ctx.active) = (mask, mask);
    Flow::Jump(0)
}

/// The local address of a callee's frame: the callers share one, above the longest stack among them. A fault if the stack is full.
fn frame_base(ctx: &mut Ctx<'_>, callee: &FuncCode, id: FuncId) -> Result<Row, Flow> {
    let caller = &ctx.warp.frames[ctx.frame as usize];
    let longest = lanes(ctx.active).map(|i| caller.top.0[i]).max().unwrap_or(0);
    // The alignment is a power of two.
    let low = callee.frame_align.max(1) - 1;
    let base = longest.wrapping_add(low) & !low;
    let end = u64::from(base) + u64::from(callee.frame_size);
    if end > u64::from(ctx.windows.local_size) {
        let note = stack_note(ctx.windows.local_size, caller.depth);
        return Err(ctx.fault(ctx.first(), ctx.code.image.stack_full(id), vec![note]));
    }
    ctx.warp.local_high = ctx.warp.local_high.max(end as u32);
    Ok(Row([base; LANES]))
}

/// The note about a function with `.noreturn` that returns (manual, section 11.4.6: undefined).
pub fn returned(function: &str) -> FaultKind {
    FaultKind::Hazard(format!("`{function}` returns, although it is declared `.noreturn`"))
}

/// `ret` of a function with `.noreturn`.
pub fn unexpected_ret(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    ctx.note_undefined(ctx.first(), || returned(&ctx.func.func.name));
    ret(ctx, op)
}

/// `ret` of a device function.
pub fn ret(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let code = ctx.code;
    let (mask, frame) = (ctx.active, ctx.frame);
    let (parent, back, call, area, base) = {
        let f = &ctx.warp.frames[frame as usize];
        (f.parent, f.ret, f.call, f.incoming, f.base)
    };
    let callee: &FuncCode = ctx.func;
    let caller = ctx.warp.frames.get(parent as usize).and_then(|f| code.funcs.get(f.func as usize)?.as_ref());
    let Some(caller) = caller else { return super::control::exit(ctx, op) };
    let site = &caller.calls[call as usize];
    if !callee.rets.is_empty() {
        let mut registers = std::mem::take(&mut ctx.warp.registers);
        let mut space = std::mem::take(&mut ctx.warp.space);
        let mut regs = std::mem::take(&mut ctx.warp.frames[parent as usize].regs);
        let hidden = std::mem::take(&mut ctx.warp.frames[frame as usize].hidden);
        let mut room = std::mem::take(&mut ctx.warp.stage);
        registers.fill(POISON);
        // A function returns the hidden pointer in the register in which it got it, so that the caller finds its
        // buffer.
        for (r, pointer) in callee.hidden.iter().zip(&hidden) {
            registers[*r as usize] = *pointer;
        }
        empty_block(&mut space, callee.space);
        {
            let local = Local { windows: ctx.warp.local.as_ref(), stride: ctx.windows.stride };
            let from = Side { regs: &mut ctx.regs, consts: &callee.consts, base };
            let caller_base = ctx.warp.frames[parent as usize].base;
            let mut to = Side { regs: &mut regs, consts: &caller.consts, base: caller_base };
            let mut between = Between { registers: &mut registers, space: &mut space, area };
            between.send_all(&local, &from, &callee.rets, mask, &mut room);
            between.receive_all(&local, (&mut to, &mut ctx.warp.select), &site.rets, mask, &mut room);
        }
        ctx.warp.stage = room;
        if ctx.grid.observer.is_some() {
            let caller_base = ctx.warp.frames[parent as usize].base;
            announce_all(ctx, (&base, &callee.rets), (&caller_base, &site.rets), mask);
        }
        ctx.warp.frames[frame as usize].hidden = hidden;
        ctx.warp.frames[parent as usize].regs = regs;
        (ctx.warp.registers, ctx.warp.space) = (registers, space);
    }
    ctx.give_back();
    ctx.warp.leave(frame, mask);
    ctx.enter(parent);
    (ctx.mask, ctx.active) = (mask, mask);
    Flow::Jump(back)
}

/// The value of an argument of up to 64 bits per lane, for device library functions.
pub fn argument(ctx: &mut Ctx<'_>, site: &CallOp, index: usize) -> [u64; LANES] {
    let Some(t) = site.args.get(index) else { return [0; LANES] };
    let base = ctx.warp.frames[ctx.frame as usize].base;
    let local = Local { windows: ctx.warp.local.as_ref(), stride: ctx.windows.stride };
    let mut stage = vec![Row::ZERO; t.size.max(8).div_ceil(4) as usize];
    let (mask, side) = (ctx.active, Side { regs: &mut ctx.regs, consts: &ctx.func.consts, base });
    side.fetch(&local, t, mask, &mut stage);
    let high = if t.size > 4 { stage[1].0 } else { [0; LANES] };
    std::array::from_fn(|i| u64::from(stage[0].0[i]) | u64::from(high[i]) << 32)
}

/// Stores the result of a device library function.
pub fn result(ctx: &mut Ctx<'_>, site: &CallOp, values: &[u64; LANES]) {
    let Some(t) = site.rets.first() else { return };
    let base = ctx.warp.frames[ctx.frame as usize].base;
    let local = Local { windows: ctx.warp.local.as_ref(), stride: ctx.windows.stride };
    let stage = [Row(each(values, |v| v as u32)), Row(each(values, |v| (v >> 32) as u32))];
    let mask = ctx.active;
    let mut side = Side { regs: &mut ctx.regs, consts: &ctx.func.consts, base };
    side.deliver(&local, &mut ctx.warp.select, t, mask, &stage);
    if let (Home::Frame(offset), Some(_)) = (&t.home, ctx.grid.observer) {
        announce(ctx, (&base, *offset), None, t.size, mask);
    }
}
