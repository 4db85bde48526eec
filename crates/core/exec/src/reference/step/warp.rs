//! Warp operations (manual, sections 9.7.9.5, 9.7.9.6 and 9.7.13.8 to 9.7.13.14).
//!
//! A `.sync` instruction blocks until all lanes of its member mask that have not exited are at an instruction with the
//! same qualifiers and the same mask, be it this one or another.
//!
//! If a lane's own member mask omits the lane, the manual leaves its result undefined. On a GPU, the mask only says whom
//! to wait for, and all lanes that then execute the instruction together participate. This engine does the same, and the
//! launch notes it.

use super::super::uninitialized::note_stray;
use super::super::{
    code::{Code, Flow, FuncCode, Op, Reduction, WarpKind, WarpOp},
    ctx::{Ctx, write},
    state::{Select, Wait, Warp, lanes},
};
use super::watch::{MAX_CALLERS, callers, inactive};
use crate::{
    Actor, Concern, FaultKind, Frame, Grid, LANES, Observer, Row, SyncEvent, SyncKind, UndefinedEvent,
    lanes::{u32s, u64s},
    sem::fp,
};
use margay_isa::{Mod, Type};

/// Operands of the participating lanes.
#[derive(Default)]
struct Input {
    a: [u64; LANES],
    b: [u32; LANES],
    c: [u32; LANES],
    /// A predicate operand.
    truth: u32,
}

/// Results of the participating lanes.
struct Output {
    d: [u64; LANES],
    truth: u32,
}

fn gather(w: &WarpOp, regs: &[Row], consts: &[Row], mask: u32, input: &mut Input) {
    if matches!(w.kind, WarpKind::Vote(_)) {
        input.truth = input.truth & !mask | w.src[0].of(regs, consts)[0].0[0] & mask;
        return;
    }
    let Some(a) = w.src.first() else { return };
    if w.ty.bits() == 64 {
        let rows = u64s(a.of(regs, consts));
        lanes(mask).for_each(|i| input.a[i] = rows[i]);
    } else {
        let rows = u32s(a.of(regs, consts));
        lanes(mask).for_each(|i| input.a[i] = rows[i].into());
    }
    if let (WarpKind::Shuffle(_), [_, b, c, ..]) = (w.kind, &w.src[..]) {
        let (b, c) = (u32s(b.of(regs, consts)), u32s(c.of(regs, consts)));
        for i in lanes(mask) {
            (input.b[i], input.c[i]) = (b[i], c[i]);
        }
    }
}

/// The lanes that the current group reads by a shuffle.
pub fn sources(ctx: &Ctx<'_>, op: &Op) -> [u32; LANES] {
    let mut input = Input::default();
    let Some(w) = ctx.func.warps.get(op.x as usize) else { return std::array::from_fn(|lane| lane as u32) };
    gather(w, &ctx.regs, &ctx.func.consts, ctx.mask, &mut input);
    std::array::from_fn(|lane| match w.kind {
        WarpKind::Shuffle(mode) => shuffle_source(mode, lane as u32, input.b[lane], input.c[lane]).0 & 31,
        _ => lane as u32,
    })
}

fn scatter(w: &WarpOp, regs: &mut [Row], select: &mut Select, mask: u32, output: &Output) {
    match (w.kind, &w.dst[..]) {
        (WarpKind::Vote(mode), [d]) if mode != Mod::Ballot => write_truth(regs, select, *d, output.truth, mask),
        (_, [d]) => write(regs, select, *d, &output.d, mask),
        (_, [d, p]) => {
            write(regs, select, *d, &output.d, mask);
            write_truth(regs, select, *p, output.truth, mask);
        }
        _ => {}
    }
}

fn write_truth(regs: &mut [Row], select: &mut Select, d: super::super::code::Dst, truth: u32, mask: u32) {
    let values = std::array::from_fn(|i| u64::from(truth >> i & 1));
    write(regs, select, d, &values, mask);
}

/// The source lane of a shuffle, and whether it is in range.
fn shuffle_source(mode: Mod, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (bval, cval, segment) = (b & 31, c & 31, c >> 8 & 31);
    let max = lane & segment | cval & !segment & 31;
    let min = lane & segment;
    let (j, valid) = match mode {
        // Signed, since lane - b may lie below the segment.
        Mod::Up => (lane.wrapping_sub(bval), lane as i32 - bval as i32 >= max as i32),
        Mod::Down => (lane + bval, lane + bval <= max),
        Mod::Bfly => (lane ^ bval, lane ^ bval <= max),
        _ => {
            let j = min | bval & !segment & 31;
            (j, j <= max)
        }
    };
    if valid { (j & 31, true) } else { (lane, false) }
}

fn compute(kind: WarpKind, ty: Type, mask: u32, input: &Input) -> Output {
    let mut out = Output { d: [0; LANES], truth: 0 };
    match kind {
        WarpKind::Shuffle(mode) => {
            for i in lanes(mask) {
                let (j, valid) = shuffle_source(mode, i as u32, input.b[i], input.c[i]);
                // Undefined for a lane that does not participate (manual, section 9.7.9.6). Programs that are right on GPUs add what they
                // get from such lanes, so it has to be 0.
                out.d[i] = if mask >> j & 1 == 1 { input.a[j as usize] } else { 0 };
                out.truth |= u32::from(valid) << i;
            }
        }
        WarpKind::Vote(mode) => {
            let truth = input.truth & mask;
            let all = |v: bool| if v { u32::MAX } else { 0 };
            match mode {
                Mod::All => out.truth = all(truth == mask),
                Mod::Any => out.truth = all(truth != 0),
                Mod::Uni => out.truth = all(truth == mask || truth == 0),
                _ => out.d = [truth.into(); LANES],
            }
        }
        WarpKind::MatchAny => {
            for i in lanes(mask) {
                let same = lanes(mask).filter(|j| input.a[*j] == input.a[i]);
                out.d[i] = same.fold(0, |m, j| m | 1 << j);
            }
        }
        WarpKind::MatchAll => {
            let first = input.a[mask.trailing_zeros() as usize & 31];
            if lanes(mask).all(|i| input.a[i] == first) {
                out.d = [mask.into(); LANES];
                out.truth = u32::MAX;
            }
        }
        WarpKind::Redux(reduction) => {
            let result = reduce(reduction, ty, lanes(mask).map(|i| input.a[i] as u32));
            out.d = [result.into(); LANES];
        }
        WarpKind::Elect => {
            let leader = mask.trailing_zeros() & 31;
            out.d = [leader.into(); LANES];
            out.truth = 1 << leader;
        }
        WarpKind::Barrier => {}
    }
    out
}

/// Reduces values of 32 bits; `ty` is `.u32`, `.s32`, `.b32` or `.f32`.
pub fn reduce(reduction: Reduction, ty: Type, values: impl Iterator<Item = u32>) -> u32 {
    let signed = ty.is_signed();
    match reduction.op {
        _ if ty == Type::F32 => reduce_floats(reduction, values),
        Mod::Add => values.fold(0, u32::wrapping_add),
        Mod::And => values.fold(u32::MAX, |a, b| a & b),
        Mod::Or => values.fold(0, |a, b| a | b),
        Mod::Xor => values.fold(0, |a, b| a ^ b),
        Mod::Min if signed => values.map(|v| v as i32).min().unwrap_or(0) as u32,
        Mod::Min => values.min().unwrap_or(0),
        _ if signed => values.map(|v| v as i32).max().unwrap_or(0) as u32,
        _ => values.max().unwrap_or(0),
    }
}

/// Minimum or maximum of `.f32`: +0.0 > -0.0; NaNs count only with `.NaN` (section 9.7.13.12).
fn reduce_floats(Reduction { op, abs, propagate_nan }: Reduction, values: impl Iterator<Item = u32>) -> u32 {
    let mut best: Option<f32> = None;
    for bits in values {
        let v = f32::from_bits(if abs { bits & 0x7fff_ffff } else { bits });
        if v.is_nan() {
            if propagate_nan {
                return fp::NAN32;
            }
            continue;
        }
        let better = |b: f32| {
            let below = v < b || v == b && v.is_sign_negative() && b.is_sign_positive();
            let above = v > b || v == b && v.is_sign_positive() && b.is_sign_negative();
            if op == Mod::Min { below } else { above }
        };
        if best.is_none_or(better) {
            best = Some(v);
        }
    }
    best.map_or(fp::NAN32, f32::to_bits)
}

fn execute(ctx: &mut Ctx<'_>, w: &WarpOp, mask: u32) {
    let mut input = Input::default();
    gather(w, &ctx.regs, &ctx.func.consts, mask, &mut input);
    let output = compute(w.kind, w.ty, mask, &input);
    scatter(w, &mut ctx.regs, &mut ctx.warp.select, mask, &output);
}

/// An instruction without `.sync`: the active lanes participate.
pub fn converged(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let w = &ctx.func.warps[op.x as usize];
    examine_here(ctx, op, w, ctx.active, ctx.active);
    execute(ctx, w, ctx.active);
    Flow::Next
}

/// The observer of undefined uses in a CTA.
#[derive(Clone, Copy)]
pub struct Witness<'w> {
    observer: &'w dyn Observer,
    cta: [u32; 3],
    threads: u32,
}

/// The context of a warp operation, for the observer.
#[derive(Clone, Copy)]
struct OpContext<'s> {
    warp: u32,
    site: WarpSite<'s>,
    callers: &'s [Frame],
}

impl<'w> Witness<'w> {
    /// The witness of a CTA, if the grid has an observer.
    pub fn of(grid: &Grid<'w>, cta: [u32; 3]) -> Option<Witness<'w>> {
        let threads = grid.launch.shape.threads();
        grid.observer.map(|observer| Witness { observer, cta, threads })
    }

    /// Reports member masks with exited lanes, and shuffles from lanes that are not `present`, unless `note` takes care of those.
    fn examine(
        self,
        context: OpContext<'_>,
        lanes_here: u32,
        (members, present): (u32, u32),
        input: &Input,
        note: impl FnOnce(u32, u32) -> bool,
    ) {
        let OpContext { warp, site: WarpSite { func, op, pc, kind }, callers } = context;
        let name = func.variant(op);
        let at = (func.id, func.place(pc));
        let actor = |lanes: u32| Actor { cta: self.cta, warp, lanes, at, callers };
        let report = |lane: usize, what: String| {
            let concern = Concern::Participants;
            self.observer.undefined(UndefinedEvent {
                actor: actor(1 << lane),
                concern,
                what,
                origin: None,
                usage: None,
            });
        };
        if let Some(lane) = lanes(lanes_here & !members).next() {
            report(lane, format!("`{name}` has member mask {members:#010x}, which omits the executing lane {lane}"));
        }
        let threads = self.threads.saturating_sub(warp * LANES as u32);
        let existing = if threads < LANES as u32 { (1 << threads) - 1 } else { u32::MAX };
        if let Some(gone) = lanes(members & !present & existing).next() {
            let first = lanes_here.trailing_zeros() as usize;
            report(first, format!("`{name}` has member mask {members:#010x}, which includes the exited lane {gone}"));
        }
        let WarpKind::Shuffle(mode) = kind else { return };
        let source = |lane: usize| shuffle_source(mode, lane as u32, input.b[lane], input.c[lane]).0;
        let stray = |lane: &usize| present >> source(*lane) & 1 == 0;
        let strays = lanes(lanes_here).filter(stray).fold(0, |mask, lane| mask | 1 << lane);
        if strays == 0 || note(strays, source(strays.trailing_zeros() as usize)) {
            return;
        }
        lanes(strays).for_each(|lane| report(lane, inactive(name, source(lane))));
    }

    /// Reports the completion of a warp operation.
    fn report_sync(self, context: OpContext<'_>, lanes: u32) {
        let OpContext { warp, site: WarpSite { func, pc, kind, .. }, callers } = context;
        let kind = if kind == WarpKind::Barrier { SyncKind::Warp } else { SyncKind::Exchange };
        let actor = Actor { cta: self.cta, warp, lanes, at: (func.id, func.place(pc)), callers };
        self.observer.sync(&SyncEvent { actor, kind });
    }
}

/// The place of a warp operation.
#[derive(Clone, Copy)]
struct WarpSite<'s> {
    func: &'s FuncCode,
    op: &'s Op,
    pc: u32,
    kind: WarpKind,
}

/// Examines an operation that the lanes `here` complete on their own.
fn examine_here(ctx: &mut Ctx<'_>, op: &Op, w: &WarpOp, here: u32, members: u32) {
    let Some(witness) = Witness::of(ctx.grid, ctx.cta.id) else { return };
    let mut input = Input::default();
    gather(w, &ctx.regs, &ctx.func.consts, here, &mut input);
    let site = WarpSite { func: ctx.func, op, pc: ctx.pc, kind: w.kind };
    let callers = callers(&ctx.code.funcs, ctx.warp, ctx.frame, MAX_CALLERS);
    let context = OpContext { warp: ctx.warp.index, site, callers: &callers };
    witness.report_sync(context, here);
    // Where all lanes were to take part, those that are missing have ended too early.
    let note = |strays, from| members != u32::MAX && note_stray(ctx, strays, from);
    witness.examine(context, here, (members, here), &input, note);
}

/// The note about a lane that executes a `.sync` instruction whose member mask leaves it out (manual, sections 9.7.9.6 and
/// 9.7.13.2: undefined).
pub fn left_out(lane: usize, name: impl std::fmt::Display) -> FaultKind {
    FaultKind::Hazard(format!("lane {lane} executes `{name}` with a member mask that omits it"))
}

/// A `.sync` instruction; the last source is the member mask.
pub fn synced(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let w = &ctx.func.warps[op.x as usize];
    let Some(mask_source) = w.src.last() else { return ctx.bug("a warp instruction without member mask") };
    let masks = ctx.words(*mask_source);
    let first = ctx.first();
    let members = masks[first];
    let watched = ctx.grid.observer.is_some();
    if ctx.active == ctx.mask && members == ctx.active && masks == [members; LANES] && !watched {
        execute(ctx, w, members);
        return Flow::Next;
    }
    // Lanes with different masks form separate rendezvous; complete ones proceed at once.
    let (mut left, mut waiting) = (ctx.active, Vec::new());
    while left != 0 {
        let members = masks[left.trailing_zeros() as usize];
        let same = lanes(left).filter(|i| masks[*i] == members).fold(0u32, |m, i| m | 1 << i);
        left &= !same;
        let (inside, outside) = (same & members, same & !members);
        if let Some(lane) = lanes(outside).next() {
            ctx.note_undefined(lane, || left_out(lane, ctx.func.variant(op)));
        }
        // Nobody waits for lanes that their own mask leaves out.
        let together = match inside == members & ctx.warp.live {
            true => same,
            false => outside,
        };
        if together != 0 {
            examine_here(ctx, op, w, together, members);
            execute(ctx, w, together);
        }
        if inside & !together != 0 {
            waiting.push((inside, members));
        }
    }
    if waiting.is_empty() {
        return Flow::Next;
    }
    let done = waiting.iter().fold(ctx.mask, |m, (same, _)| m & !same);
    if done != 0 {
        ctx.put_ready(done, ctx.pc + 1);
    }
    for (same, members) in &waiting {
        ctx.block(*same, Wait::Lanes { class: w.class, members: *members });
    }
    ctx.give_back();
    for (_, members) in waiting {
        complete(ctx.code, ctx.warp, w.class, members, Witness::of(ctx.grid, ctx.cta.id));
    }
    Flow::Park
}

/// Executes a `.sync` instruction whose members have all arrived, which fixes the participating lanes.
pub fn complete(code: &Code, warp: &mut Warp, class: u32, members: u32, witness: Option<Witness<'_>>) {
    let why = Wait::Lanes { class, members };
    let arrived = warp.blocked.iter().filter(|(_, w)| *w == why).fold(0, |m, (g, _)| m | g.mask);
    if arrived == 0 || arrived != members & warp.live {
        return;
    }
    let mut input = Input::default();
    let mut kind = None;
    let table = |warp: &Warp, frame: u32, pc: u32| -> Option<(&FuncCode, usize)> {
        let func = code.funcs.get(warp.frames[frame as usize].func as usize)?.as_ref()?;
        Some((func, func.ops.get(pc as usize)?.x as usize))
    };
    for (g, _) in warp.blocked.iter().filter(|(_, w)| *w == why) {
        if let Some((func, at)) = table(warp, g.frame, g.pc) {
            gather(&func.warps[at], &warp.frames[g.frame as usize].regs, &func.consts, g.mask, &mut input);
            kind = Some((func.warps[at].kind, func.warps[at].ty));
        }
    }
    let Some((kind, ty)) = kind else { return };
    if let Some(witness) = witness {
        let mut meeting = true;
        for (g, _) in warp.blocked.iter().filter(|(_, w)| *w == why) {
            if let Some((func, _)) = table(warp, g.frame, g.pc) {
                let site = WarpSite { func, op: &func.ops[g.pc as usize], pc: g.pc, kind };
                let callers = callers(&code.funcs, warp, g.frame, MAX_CALLERS);
                let context = OpContext { warp: warp.index, site, callers: &callers };
                witness.examine(context, g.mask, (members, arrived), &input, |_, _| false);
                if std::mem::take(&mut meeting) {
                    witness.report_sync(context, arrived);
                }
            }
        }
    }
    let output = compute(kind, ty, arrived, &input);
    for (mut g, w) in std::mem::take(&mut warp.blocked) {
        if w != why {
            warp.blocked.push((g, w));
            continue;
        }
        if let Some((func, at)) = table(warp, g.frame, g.pc) {
            scatter(&func.warps[at], &mut warp.frames[g.frame as usize].regs, &mut warp.select, g.mask, &output);
        }
        g.pc += 1;
        g.since = warp.turn;
        warp.ready.push(g);
    }
}

/// Rechecks all blocked `.sync` instructions after lanes have exited.
pub fn recheck(code: &Code, warp: &mut Warp, witness: Option<Witness<'_>>) {
    let waits: Vec<Wait> = warp.blocked.iter().map(|(_, w)| *w).collect();
    for wait in waits {
        if let Wait::Lanes { class, members } = wait {
            complete(code, warp, class, members, witness);
        }
    }
}

/// `activemask`
pub fn active_mask(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let w = &ctx.func.warps[op.x as usize];
    if let Some(d) = w.dst.first() {
        ctx.write(*d, &[ctx.active.into(); LANES], ctx.active);
    }
    Flow::Next
}

/// `nanosleep`: advances the clock and yields to everybody else.
pub fn nanosleep(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let w = &ctx.func.warps[op.x as usize];
    let time = w.src.first().map_or(0, |s| ctx.words(*s)[ctx.first()]);
    ctx.cta.clock += u64::from(time.min(1_000_000));
    ctx.warp.slept = true;
    ctx.put_ready(ctx.mask, ctx.pc + 1);
    ctx.give_back();
    Flow::Park
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_follow_the_manual() {
        // __shfl_up_sync(.., 1) in whole warps: c = 0.
        assert_eq!(shuffle_source(Mod::Up, 0, 1, 0), (0, false));
        assert_eq!(shuffle_source(Mod::Up, 5, 1, 0), (4, true));
        // Width 8: segment mask 0x18, c = 0x1800.
        assert_eq!(shuffle_source(Mod::Up, 8, 1, 0x1800), (8, false));
        assert_eq!(shuffle_source(Mod::Down, 30, 1, 0x1f), (31, true));
        assert_eq!(shuffle_source(Mod::Down, 31, 1, 0x1f), (31, false));
        assert_eq!(shuffle_source(Mod::Down, 7, 1, 0x181f), (7, false));
        assert_eq!(shuffle_source(Mod::Bfly, 3, 16, 0x1f), (19, true));
        assert_eq!(shuffle_source(Mod::Idx, 13, 2, 0x181f), (10, true));
        assert_eq!(shuffle_source(Mod::Idx, 13, 33, 0x1f), (1, true), "b is taken modulo 32");
    }

    #[test]
    fn float_reductions_order_zeros_and_skip_nans() {
        let bits = |v: &[f32]| v.iter().map(|f| f.to_bits()).collect::<Vec<_>>();
        let min = |v: &[f32], propagate_nan| {
            reduce(Reduction { op: Mod::Min, abs: false, propagate_nan }, Type::F32, bits(v).into_iter())
        };
        assert_eq!(min(&[0.0, -0.0], false), (-0.0f32).to_bits());
        assert_eq!(min(&[f32::NAN, 3.0], false), 3.0f32.to_bits());
        assert_eq!(min(&[f32::NAN, 3.0], true), fp::NAN32);
        assert_eq!(min(&[f32::NAN], false), fp::NAN32);
    }
}
