//! Calls and returns (manual, sections 7.1, 9.7.12.5 and 9.7.12.6).
//!
//! All moves follow [`margay_ir::explicit`]. A value goes from its home in one function through its ABI locations
//! (registers of a model register file, the call's parameter block, the caller's outgoing area, a buffer behind a
//! pointer) to its home in the other. Before each transfer, registers and parameter block are poisoned, so that what a
//! plan does not pass cannot arrive by accident.

use super::super::{
    code::{
        Address, Base, CallOp, Dst, Flow, FuncCode, Location, NOWHERE, Op, Passed, Piece, Shape, Src, Target, Transfer,
    },
    ctx::{Ctx, write},
    state::{FrameIndex, Select, lanes},
};
use super::watch::report_call;
use crate::{
    FaultKind, LANES, Row,
    lanes::{each, u32s, u32s_mut, u64s, u128s},
    mem::{Allocation, Scalar},
    stack_note,
};
use margay_ir::{FuncId, MemSpace};
use std::sync::Arc;

/// The contents of model registers and parameter blocks that nothing was written to.
const POISON: Row = Row([0xdead_5eed; LANES]);

/// The home of a value in the caller or callee.
#[derive(Clone, Debug)]
pub enum Home {
    /// Registers to read: elements of this many bytes.
    Read(Vec<Src>, u32),
    /// Registers to write: elements of this many bytes.
    Write(Vec<Dst>, u32),
    /// A frame variable, by its offset.
    Frame(u32),
    /// Nowhere.
    None,
}

/// A value in transit, in words: word `w` of all lanes is row `w`.
type Stage = Vec<Row>;

/// The local memory of a warp's lanes.
struct Local<'m> {
    block: Option<&'m Arc<Allocation>>,
    stride: u64,
}

impl Local<'_> {
    fn host(&self, lane: usize, address: u32) -> u64 {
        self.block.map_or(0, |b| b.block.base()) + lane as u64 * self.stride + u64::from(address)
    }

    fn word(&self, lane: usize, address: u32, len: u32) -> u32 {
        let (Some(local), host) = (self.block, self.host(lane, address)) else { return 0 };
        if len == 4
            && let Some(word) = crate::mem::load::<u32>(&local.block, host)
        {
            return word;
        }
        (0..len).fold(0, |w, k| {
            w | u32::from(crate::mem::load::<u8>(&local.block, host + u64::from(k)).unwrap_or(0)) << (8 * k)
        })
    }

    fn set_word(&self, lane: usize, address: u32, len: u32, word: u32) {
        let (Some(local), host) = (self.block, self.host(lane, address)) else { return };
        if len == 4
            && let Some(cell) = local.block.cell::<<u32 as Scalar>::Cell>(host)
        {
            return u32::set(cell, word);
        }
        for k in 0..len {
            crate::mem::store(&local.block, host + u64::from(k), (word >> (8 * k)) as u8);
        }
    }

    /// Loads `size` bytes at `base[lane] + offset`.
    fn read(&self, base: &Row, offset: u32, size: u32, mask: u32, stage: &mut [Row]) {
        for (w, row) in stage.iter_mut().enumerate().take(size.div_ceil(4) as usize) {
            let (at, len) = (offset + 4 * w as u32, (size - 4 * w as u32).min(4));
            lanes(mask).for_each(|i| row.0[i] = self.word(i, base.0[i] + at, len));
        }
    }

    /// Stores `size` bytes at `base[lane] + offset`.
    fn write(&self, base: &Row, offset: u32, size: u32, mask: u32, stage: &[Row]) {
        for (w, row) in stage.iter().enumerate().take(size.div_ceil(4) as usize) {
            let (at, len) = (offset + 4 * w as u32, (size - 4 * w as u32).min(4));
            lanes(mask).for_each(|i| self.set_word(i, base.0[i] + at, len, row.0[i]));
        }
    }
}

/// Bytes `start..start + len` of a value in transit, as one word.
fn stage_word(stage: &[Row], lane: usize, start: u32, len: u32) -> u32 {
    let row = |w: u32| stage.get(w as usize).map_or(0, |r| r.0[lane]);
    let both = u64::from(row(start / 4)) | u64::from(row(start / 4 + 1)) << 32;
    let cut = if len < 4 { (1u64 << (8 * len)) - 1 } else { 0xffff_ffff };
    (both >> (8 * (start % 4)) & cut) as u32
}

/// Sets bytes `start..start + len` of a value in transit.
fn set_stage_word(stage: &mut [Row], lane: usize, start: u32, len: u32, word: u32) {
    for k in 0..len {
        let (w, b) = ((start + k) / 4, (start + k) % 4);
        if let Some(row) = stage.get_mut(w as usize) {
            let shift = 8 * b;
            row.0[lane] = row.0[lane] & !(0xff << shift) | (word >> (8 * k) & 0xff) << shift;
        }
    }
}

/// Packs registers into a value in transit.
fn pack(srcs: &[Src], bytes: u32, regs: &[Row], consts: &[Row], mask: u32, stage: &mut [Row]) {
    for (k, s) in srcs.iter().enumerate() {
        let (rows, start) = (s.of(regs, consts), k as u32 * bytes);
        match (s.shape(), bytes) {
            (Shape::Pred, _) => {
                lanes(mask).for_each(|i| set_stage_word(stage, i, start, bytes, rows[0].0[0] >> i & 1));
            }
            (Shape::Word, 4) => stage[k].0 = *u32s(rows),
            (Shape::Word, _) => lanes(mask).for_each(|i| set_stage_word(stage, i, start, bytes.min(4), u32s(rows)[i])),
            (Shape::Double, 8) => {
                let values = u64s(rows);
                for i in 0..LANES {
                    stage[2 * k].0[i] = values[i] as u32;
                    stage[2 * k + 1].0[i] = (values[i] >> 32) as u32;
                }
            }
            (Shape::Double, _) => {
                let values = u64s(rows);
                for i in lanes(mask) {
                    set_stage_word(stage, i, start, bytes.min(4), values[i] as u32);
                    set_stage_word(stage, i, start + 4, bytes.saturating_sub(4).min(4), (values[i] >> 32) as u32);
                }
            }
            (Shape::Quad, _) => {
                let values = u128s(rows);
                for (i, w) in lanes(mask).flat_map(|i| (0..bytes.div_ceil(4)).map(move |w| (i, w))) {
                    set_stage_word(stage, i, start + 4 * w, (bytes - 4 * w).min(4), (values[i] >> (32 * w)) as u32);
                }
            }
        }
    }
}

/// Unpacks a value in transit to registers.
fn unpack(dsts: &[Dst], bytes: u32, regs: &mut [Row], select: &mut Select, mask: u32, stage: &[Row]) {
    for (k, d) in dsts.iter().enumerate().filter(|(_, d)| d.row != NOWHERE) {
        let start = k as u32 * bytes;
        if d.shape == Shape::Quad {
            let rows = &mut regs[d.row as usize..d.row as usize + 4];
            let mut all = u128s(rows);
            for i in lanes(mask) {
                let word = |w: u32| u128::from(stage_word(stage, i, start + 4 * w, bytes.saturating_sub(4 * w).min(4)));
                all[i] = (0..bytes.div_ceil(4)).fold(0, |v, w| v | word(w) << (32 * w));
            }
            crate::lanes::set_u128s(rows, &all);
            continue;
        }
        if (d.shape, bytes, d.bits) == (Shape::Word, 4, 32) {
            select.merge_words(u32s_mut(&mut regs[d.row as usize..]), &stage[k].0, mask);
            continue;
        }
        let mut values = [0; LANES];
        if (d.shape, bytes) == (Shape::Double, 8) {
            let (low, high) = (&stage[2 * k].0, &stage[2 * k + 1].0);
            for i in 0..LANES {
                values[i] = u64::from(low[i]) | u64::from(high[i]) << 32;
            }
            write(regs, select, *d, &values, mask);
            continue;
        }
        for i in lanes(mask) {
            values[i] = stage_word(stage, i, start, bytes.min(4)).into();
            if bytes > 4 {
                values[i] |= u64::from(stage_word(stage, i, start + 4, (bytes - 4).min(4))) << 32;
            }
        }
        write(regs, select, *d, &values, mask);
    }
}

/// Makes room for a value, zeroed.
fn make_room(stage: &mut Stage, size: u32) -> &mut [Row] {
    stage.clear();
    stage.resize(size.div_ceil(4) as usize, Row::ZERO);
    stage
}

/// The caller's or the callee's side of a transfer.
struct Side<'s> {
    regs: &'s mut [Row],
    consts: &'s [Row],
    base: Row,
}

impl Side<'_> {
    fn fetch(&self, local: &Local<'_>, t: &Transfer, mask: u32, stage: &mut [Row]) {
        match &t.home {
            Home::Read(srcs, bytes) => pack(srcs, *bytes, self.regs, self.consts, mask, stage),
            Home::Frame(offset) => local.read(&self.base, *offset, t.size, mask, stage),
            Home::Write(dsts, bytes) => {
                let srcs: Vec<Src> = dsts.iter().map(|d| Src::reg(d.row, d.shape)).collect();
                pack(&srcs, *bytes, self.regs, self.consts, mask, stage);
            }
            Home::None => {}
        }
    }

    fn deliver(&mut self, local: &Local<'_>, select: &mut Select, t: &Transfer, mask: u32, stage: &[Row]) {
        match &t.home {
            Home::Write(dsts, bytes) => unpack(dsts, *bytes, self.regs, select, mask, stage),
            Home::Frame(offset) => local.write(&self.base, *offset, t.size, mask, stage),
            Home::Read(..) | Home::None => {}
        }
    }
}

/// The ABI locations of a call.
struct Between<'b> {
    registers: &'b mut [Row],
    space: &'b mut [Row],
    /// Local address of the caller's outgoing area.
    area: Row,
}

impl Between<'_> {
    /// The row of a whole, aligned word.
    fn row(&mut self, at: Location, word: u32) -> Option<&mut Row> {
        match at {
            Location::Reg(r) => self.registers.get_mut((r + word) as usize),
            Location::Space(offset) if offset.is_multiple_of(4) => self.space.get_mut((offset / 4 + word) as usize),
            Location::Space(_) | Location::Stack(_) | Location::Behind(_) => None,
        }
    }

    /// Stores a value in transit to its locations.
    fn send(&mut self, local: &Local<'_>, pieces: &[Piece], mask: u32, stage: &[Row]) {
        for p in pieces {
            for w in 0..p.len.div_ceil(4) {
                let (start, len) = (p.start + 4 * w, (p.len - 4 * w).min(4));
                if start.is_multiple_of(4)
                    && len == 4
                    && let (Some(to), Some(from)) = (self.row(p.at, w), stage.get((start / 4) as usize))
                {
                    *to = *from;
                    continue;
                }
                for i in lanes(mask) {
                    let word = stage_word(stage, i, start, len);
                    match p.at {
                        Location::Reg(r) => self.registers[(r + w) as usize].0[i] = word,
                        Location::Space(offset) => set_stage_word(self.space, i, offset + 4 * w, len, word),
                        Location::Stack(offset) => local.set_word(i, self.area.0[i] + offset + 4 * w, len, word),
                        Location::Behind(r) => local.set_word(i, self.registers[r as usize].0[i] + start, len, word),
                    }
                }
            }
        }
    }

    /// Loads a value in transit from its locations.
    fn receive(&mut self, local: &Local<'_>, pieces: &[Piece], mask: u32, stage: &mut [Row]) {
        for p in pieces {
            for w in 0..p.len.div_ceil(4) {
                let (start, len) = (p.start + 4 * w, (p.len - 4 * w).min(4));
                if start.is_multiple_of(4)
                    && len == 4
                    && let (Some(from), Some(to)) = (self.row(p.at, w), stage.get_mut((start / 4) as usize))
                {
                    *to = *from;
                    continue;
                }
                for i in lanes(mask) {
                    let word = match p.at {
                        Location::Reg(r) => self.registers[(r + w) as usize].0[i],
                        Location::Space(offset) => stage_word(self.space, i, offset + 4 * w, len),
                        Location::Stack(offset) => local.word(i, self.area.0[i] + offset + 4 * w, len),
                        Location::Behind(r) => local.word(i, self.registers[r as usize].0[i] + start, len),
                    };
                    set_stage_word(stage, i, start, len, word);
                }
            }
        }
    }
}

/// Resets the parameter block of a call to poison.
fn empty_block(space: &mut Vec<Row>, rows: u32) {
    space.clear();
    space.resize(rows as usize, POISON);
}

/// Reports to the observer that a call has written to variables of a frame.
#[cold]
fn announce(ctx: &Ctx<'_>, base: &Row, offset: u32, size: u32, mask: u32) {
    let local = Local { block: ctx.warp.local.as_ref(), stride: ctx.windows.stride };
    let address = Address { space: MemSpace::Local, base: Base::Frame, offset: offset.into() };
    let hosts = std::array::from_fn(|i| local.host(i, base.0[i].wrapping_add(offset)));
    report_call(ctx, mask, &address, &hosts, size);
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
    let tops = ctx.warp.frames[parent as usize].top;
    // The alignment is a power of two.
    let low = callee.frame_align.max(1) - 1;
    // The callers share one frame address: above the longest stack among them.
    let longest = lanes(mask).map(|i| tops.0[i]).max().unwrap_or(0);
    let base = Row([longest.wrapping_add(low) & !low; LANES]);
    let top = offset_row(&base, callee.frame_size);
    let highest = lanes(mask).map(|i| u64::from(base.0[i]) + u64::from(callee.frame_size)).max().unwrap_or(0);
    if highest > u64::from(ctx.windows.local_size) {
        let note = stack_note(ctx.windows.local_size, depth);
        return ctx.fault(ctx.first(), code.image.stack_full(id), vec![note]);
    }
    ctx.warp.local_high = ctx.warp.local_high.max(highest as u32);
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
        let local = Local { block: ctx.warp.local.as_ref(), stride: ctx.windows.stride };
        let from = Side { regs: &mut ctx.regs, consts: &caller.consts, base: caller_base };
        let mut to = Side { regs: &mut regs, consts: &callee.consts, base };
        let mut between = Between { registers: &mut registers, space: &mut space, area };
        for out in &site.args {
            let stage = make_room(&mut room, out.size);
            from.fetch(&local, out, mask, stage);
            between.send(&local, &out.pieces, mask, stage);
        }
        if let Some(Passed { from: Some(offset), size, at }) = site.passed {
            let stage = make_room(&mut room, size);
            local.read(&caller_base, offset, size, mask, stage);
            local.write(&area, at, size, mask, stage);
        }
        for home in &callee.args {
            let stage = make_room(&mut room, home.size);
            between.receive(&local, &home.pieces, mask, stage);
            to.deliver(&local, &mut ctx.warp.select, home, mask, stage);
        }
    }
    ctx.warp.stage = room;
    if ctx.grid.observer.is_some() {
        for home in &callee.args {
            if let Home::Frame(offset) = home.home {
                announce(ctx, &base, offset, home.size, mask);
            }
        }
        if let Some(Passed { from: Some(_), size, at }) = site.passed {
            announce(ctx, &area, at, size, mask);
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
            let local = Local { block: ctx.warp.local.as_ref(), stride: ctx.windows.stride };
            let from = Side { regs: &mut ctx.regs, consts: &callee.consts, base };
            let caller_base = ctx.warp.frames[parent as usize].base;
            let mut to = Side { regs: &mut regs, consts: &caller.consts, base: caller_base };
            let mut between = Between { registers: &mut registers, space: &mut space, area };
            for value in &callee.rets {
                let stage = make_room(&mut room, value.size);
                from.fetch(&local, value, mask, stage);
                between.send(&local, &value.pieces, mask, stage);
            }
            for home in &site.rets {
                let stage = make_room(&mut room, home.size);
                between.receive(&local, &home.pieces, mask, stage);
                to.deliver(&local, &mut ctx.warp.select, home, mask, stage);
            }
        }
        ctx.warp.stage = room;
        if ctx.grid.observer.is_some() {
            let base = ctx.warp.frames[parent as usize].base;
            for home in &site.rets {
                if let Home::Frame(offset) = home.home {
                    announce(ctx, &base, offset, home.size, mask);
                }
            }
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
    let local = Local { block: ctx.warp.local.as_ref(), stride: ctx.windows.stride };
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
    let local = Local { block: ctx.warp.local.as_ref(), stride: ctx.windows.stride };
    let stage = [Row(each(values, |v| v as u32)), Row(each(values, |v| (v >> 32) as u32))];
    let mask = ctx.active;
    let mut side = Side { regs: &mut ctx.regs, consts: &ctx.func.consts, base };
    side.deliver(&local, &mut ctx.warp.select, t, mask, &stage);
    if let (Home::Frame(offset), Some(_)) = (&t.home, ctx.grid.observer) {
        announce(ctx, &base, *offset, t.size, mask);
    }
}
