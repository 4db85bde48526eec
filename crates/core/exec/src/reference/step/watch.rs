//! Reports to observers: actors, memory orderings, stored values (manual, sections 8.4 to 8.6).

use super::super::{
    code::{Address, Base, FuncCode, MemOp, Op, Src},
    ctx::Ctx,
    state::{NO_FRAME, Warp, lanes},
    uninitialized,
};
use crate::{
    AccessKind, Actor, Concern, Frame, LANES, LaunchShape, MemoryEvent, ObjectStep, Ordering, Row, Scope, Semantics,
    SyncEvent, SyncKind, Tensor, TensorEvent, Undefined, UndefinedEvent, coordinates, local_beyond, mem,
};
use margay_ir::{MemSpace, VReg};
use margay_isa::{Mod, Opcode, Variant};
use std::cell::Cell;

/// The maximum number of CTAs of a cluster, which a launch checks.
const MAX_CTAS: usize = LaunchShape::LARGEST_CLUSTER as usize;

/// Bytes that matrices in shared memory are read by.
const UNIT: u32 = 16;

/// Callers that are reported to observers.
pub const MAX_CALLERS: usize = 64;

/// The call stack of a frame, innermost caller first, of at most `most` callers.
pub fn callers(funcs: &[Option<Box<FuncCode>>], warp: &Warp, frame: u32, most: usize) -> Vec<Frame> {
    let mut stack = Vec::new();
    let mut at = frame;
    while let Some(f) = warp.frames.get(at as usize).filter(|f| f.parent != NO_FRAME) {
        if stack.len() >= most {
            break;
        }
        let parent = warp.frames.get(f.parent as usize);
        if let Some(func) = parent.and_then(|p| funcs.get(p.func as usize)?.as_ref()) {
            stack.push(Frame { func: func.id, at: func.place(f.ret.saturating_sub(1)) });
        }
        at = f.parent;
    }
    stack
}

/// The memory ordering of an access by an op.
fn ordering_of(code: &FuncCode, op: &Op, access: AccessKind) -> Ordering {
    let kinds = [AccessKind::Load, AccessKind::Store, AccessKind::Atomic];
    let all =
        code.orders.get_or_init(|| code.variants.iter().map(|v| kinds.map(|kind| Ordering::of(v, kind))).collect());
    all[op.variant as usize][access as usize]
}

/// Calls `run` with the actor: the given lanes at the current instruction.
fn act(ctx: &Ctx<'_>, lanes: u32, run: impl FnOnce(Actor<'_>)) {
    let callers = callers(&ctx.code.funcs, ctx.warp, ctx.frame, MAX_CALLERS);
    let at = (ctx.func.id, ctx.func.place(ctx.pc));
    run(Actor { cta: ctx.cta.id, warp: ctx.warp.index, lanes, at, callers: &callers });
}

/// Reports an access by the current instruction.
#[cold]
pub fn report_access(ctx: &Ctx<'_>, lanes: u32, a: &Address, addresses: &[u64; LANES], size: u32, access: AccessKind) {
    let op = ctx.func.ops.get(ctx.pc as usize);
    access_by(ctx, op, (lanes, a, addresses), (size, Content::Registers), access);
}

/// Whether the current op is a strong access of that kind.
pub fn is_strong(ctx: &Ctx<'_>, access: AccessKind) -> bool {
    let op = ctx.func.ops.get(ctx.pc as usize);
    op.is_some_and(|op| ordering_of(ctx.func, op, access).semantics != Semantics::Weak)
}

/// Reports an access of a lane by a copy, and what it stores, if it stores.
#[cold]
pub fn report_copy(ctx: &Ctx<'_>, lane: usize, (a, at): (&Address, u64), bytes: &[u8], access: AccessKind) {
    let op = ctx.func.ops.get(ctx.pc as usize);
    let content = if access.writes() { Content::Bytes(bytes) } else { Content::Registers };
    let bytes = (bytes.len() as u32, content);
    access_by(ctx, op, (1 << lane, a, &[at; LANES]), bytes, access);
}

/// Reports that lanes read ranges of a CTA's shared memory, by the offset of the first byte and that behind the last one, for a product.
#[cold]
pub fn report_units(ctx: &Ctx<'_>, lanes: u32, window: &mem::Block, ranges: &[(u64, u64)]) {
    let op = ctx.func.ops.get(ctx.pc as usize);
    let a = Address { space: MemSpace::Shared, base: Base::Fixed, offset: 0 };
    for (first, end) in ranges {
        let addresses = [window.base().wrapping_add(*first); LANES];
        access_by(ctx, op, (lanes, &a, &addresses), ((end - first) as u32, Content::Registers), AccessKind::Load);
    }
}

/// Cells of tensor memory that an instruction accesses, if somebody observes them.
#[derive(Default)]
pub struct Cells(Option<Vec<(u32, u32)>>);

impl Cells {
    /// None yet.
    pub fn new(ctx: &Ctx<'_>) -> Cells {
        Cells(ctx.grid.observer.map(|_| Vec::new()))
    }

    /// Adds one, by lane and column.
    pub fn note(&mut self, lane: usize, column: usize) {
        if let Some(list) = &mut self.0 {
            list.push((lane as u32, column as u32));
        }
    }

    /// Reports that lanes access these in the CTA of that rank.
    pub fn report(self, ctx: &Ctx<'_>, lanes: u32, rank: usize, access: AccessKind) {
        let (Some(mut list), Some(observer)) = (self.0.filter(|list| !list.is_empty()), ctx.grid.observer) else {
            return;
        };
        list.sort_unstable();
        list.dedup();
        let mut runs: Vec<(u32, u32, u32)> = Vec::new();
        for (lane, column) in list {
            match runs.last_mut().filter(|(known, first, count)| *known == lane && first + count == column) {
                Some((_, _, count)) => *count += 1,
                None => runs.push((lane, column, 1)),
            }
        }
        let Some(op) = ctx.func.ops.get(ctx.pc as usize) else { return };
        let order = ordering_of(ctx.func, op, if access == AccessKind::Load { access } else { AccessKind::Store });
        let (size, first) = (ctx.windows.cluster_size, ctx.windows.cluster);
        let within = coordinates(rank as u64, size);
        let cta = std::array::from_fn(|d| first[d] * size[d] + within[d]);
        act(ctx, lanes, |actor| observer.tensor(&TensorEvent { actor, cta, runs: &runs, access, order }));
    }
}

/// Reports what a call or return writes to a frame, which no instruction does; what is undefined in the frame that it comes `from` stays so.
#[cold]
pub fn report_call(
    ctx: &Ctx<'_>,
    lanes: u32,
    a: &Address,
    (from, to): (Option<&[u64; LANES]>, &[u64; LANES]),
    size: u32,
) {
    let Some(from) = from.filter(|_| uninitialized::follows(ctx)) else {
        return access_by(ctx, None, (lanes, a, to), (size, Content::Registers), AccessKind::Store);
    };
    let element = if size.is_multiple_of(4) { 4 } else { 1 };
    let most = element * Undefined::default().len() as u32;
    for at in (0..size).step_by(most as usize) {
        let bytes = most.min(size - at);
        let part = |whole: &[u64; LANES]| whole.map(|host| host.wrapping_add(at.into()));
        let content = Content::Passed(element, Undefined::default());
        access_by(ctx, None, (lanes, a, &part(from)), (bytes, content), AccessKind::Load);
        let content = Content::Passed(element, ctx.undefined_lanes.take().0);
        access_by(ctx, None, (lanes, a, &part(to)), (bytes, content), AccessKind::Store);
    }
}

/// Reports what `free` ends: allocations of the device's heap, by lane.
#[cold]
pub fn report_free(ctx: &Ctx<'_>, addresses: &[u64; LANES]) {
    let a = Address { space: MemSpace::Global, base: Base::Fixed, offset: 0 };
    for lane in lanes(ctx.active) {
        let found = ctx.grid.memory.find(addresses[lane]);
        if let Some(block) = found.filter(|f| f.kind == mem::Kind::Heap && f.block.base() == addresses[lane]) {
            let size = u32::try_from(block.block.len()).unwrap_or(u32::MAX);
            access_by(ctx, None, (1 << lane, &a, addresses), (size, Content::Registers), AccessKind::Free);
        }
    }
}

/// Addresses and sizes of the shared windows of the cluster, the CTA's own first, and their number.
fn shared_windows(ctx: &Ctx<'_>) -> ([(u64, u64); MAX_CTAS], usize) {
    let own = &ctx.cta.shared.block;
    let others = ctx.windows.shared.iter().map(|w| &w.block).filter(|b| b.base() != own.base());
    let mut windows = [(0, 0); MAX_CTAS];
    let mut count = 0;
    for (window, b) in windows.iter_mut().zip(std::iter::once(own).chain(others)) {
        *window = (b.base(), b.len() as u64);
        count += 1;
    }
    (windows, count)
}

/// The data that an access moves.
#[derive(Clone, Copy)]
enum Content<'b> {
    /// Values of registers, or nothing known.
    Registers,
    /// The bytes that a copy stores.
    Bytes(&'b [u8]),
    /// Arguments or results: the size of an element, and the lanes in which they are undefined.
    Passed(u32, Undefined),
}

/// The ordering of accesses that no instruction makes by itself.
const WEAK: Ordering = Ordering {
    semantics: Semantics::Weak,
    scope: Scope::Cta,
    volatile: false,
    asynchronous: false,
    proxy: false,
    tensor: Tensor::No,
    reduction: false,
    cached: false,
};

/// Reports an access of `size` bytes by lanes to the observer; `op` is the instruction, if one does it.
fn access_by(
    ctx: &Ctx<'_>,
    op: Option<&Op>,
    (lanes, a, addresses): (u32, &Address, &[u64; LANES]),
    (size, content): (u32, Content<'_>),
    access: AccessKind,
) {
    let Some(observer) = ctx.grid.observer else { return };
    let (windows, count) = shared_windows(ctx);
    let variant = op.map(|op| ctx.func.variant(op));
    let is = |ops: &[Opcode]| variant.is_some_and(|v| ops.contains(&v.op));
    let order = op.map_or(WEAK, |op| ordering_of(ctx.func, op, access));
    let stored = op.zip(variant).and_then(|(op, v)| stored(ctx, op, v)).filter(|_| access == AccessKind::Store);
    let reads = is(&[Opcode::Ld, Opcode::Ldu, Opcode::Atom, Opcode::Red]);
    let table = op.filter(|_| reads).and_then(|op| ctx.func.mems.get(op.x as usize));
    let element = match content {
        Content::Passed(element, _) => element,
        _ if order.tensor.is_product() => UNIT,
        _ => table.or(stored).map_or(size, |m| m.size),
    };
    let copied = if let Content::Bytes(bytes) = content { Some(bytes) } else { None };
    let value = |lane: usize, at: usize| -> u8 {
        let Some(m) = stored else { return copied.and_then(|bytes| bytes.get(at).copied()).unwrap_or(0) };
        let (part, byte) = (at / m.size as usize, at % m.size as usize);
        m.src.get(part).map_or(0, |s| byte_of(ctx, *s, lane, byte))
    };
    let peek = |host: u64, to: &mut [u8]| peek(ctx, host, to);
    let moves = is(&[Opcode::Ld, Opcode::St, Opcode::Atom, Opcode::Red]);
    if moves && (matches!(a.space, MemSpace::Local | MemSpace::Generic) || matches!(a.base, Base::Frame)) {
        overrun(ctx, lanes, addresses, size, access);
    }
    let loads = is(&[Opcode::Ld, Opcode::Ldu]) && access == AccessKind::Load;
    let passes = matches!(content, Content::Passed(..));
    let tracked = loads && uninitialized::follows(ctx) || passes && access == AccessKind::Load;
    let (undefined, loads) = match content {
        Content::Passed(_, undefined) => (undefined, Default::default()),
        _ if stored.is_some() => uninitialized::stored(ctx),
        _ => Default::default(),
    };
    for (element, load) in loads.into_iter().enumerate() {
        if let Some(pc) = load {
            observer.passes_on(element, (ctx.func.id, ctx.func.place(pc)));
        }
    }
    let registers = |r: VReg| ctx.regs.get(ctx.func.rows_of(r)?).map(<[Row]>::to_vec);
    act(ctx, lanes, |actor| {
        let event = MemoryEvent {
            actor,
            addresses,
            size,
            element,
            space: a.space,
            access,
            order,
            windows: &windows[..count],
            local: ctx.warp.local.as_ref().map_or((0, 0), |l| (l.base, LANES as u64 * ctx.windows.stride)),
            values: (stored.is_some() || copied.is_some()).then_some(&value as &dyn Fn(usize, usize) -> u8),
            undefined,
            peek: &peek,
            memory: ctx.grid.memory,
            tracked,
            row: None,
            memo: &Cell::new(0),
            registers: Some(&registers),
        };
        observer.memory(&event);
        if tracked {
            let (base, size) = event.local;
            let own = lanes.checked_ilog2().is_some_and(|lane| addresses[lane as usize].wrapping_sub(base) < size);
            ctx.undefined_lanes.set((observer.undefined_lanes(&event), own));
        }
    });
}

/// Reads what the shared windows of the cluster, local memory or global memory hold; returns whether all of it exists.
fn peek(ctx: &Ctx<'_>, host: u64, to: &mut [u8]) -> bool {
    let windows = ctx.windows.shared.iter().chain([&ctx.cta.shared]).chain(ctx.warp.local.as_ref().map(|l| &l.memory));
    match windows.into_iter().find(|w| w.block.contains(host, to.len())) {
        Some(w) => mem::load_bytes(&w.block, host, to).is_some(),
        None => ctx.grid.memory.read(host, to).is_ok(),
    }
}

/// The operands of a store of register values.
fn stored<'c>(ctx: &Ctx<'c>, op: &Op, v: &Variant) -> Option<&'c MemOp> {
    let plain = v.op == Opcode::St && !v.has(Mod::Bulk);
    if plain { ctx.func.mems.get(op.x as usize) } else { None }
}

fn byte_of(ctx: &Ctx<'_>, s: Src, lane: usize, byte: usize) -> u8 {
    (ctx.quads(s)[lane] >> (8 * byte.min(15))) as u8
}

/// Reports accesses to the thread's own local window below the kernel's variables and above its stack's end, which no variable occupies.
fn overrun(ctx: &Ctx<'_>, mask: u32, addresses: &[u64; LANES], size: u32, access: AccessKind) {
    let (Some(observer), Some(local)) = (ctx.grid.observer, ctx.warp.local.as_ref()) else { return };
    let Some(frame) = ctx.warp.frames.get(ctx.frame as usize) else { return };
    let bottom = u64::from(ctx.code.image.ir.first_local(ctx.code.kernel));
    let offset_of = |lane: usize| addresses[lane].wrapping_sub(local.of_lane(lane, ctx.windows.stride));
    let Some(lane) = lanes(mask).find(|lane| {
        let offset = offset_of(*lane);
        let outside = offset < bottom || offset + u64::from(size) > u64::from(frame.top.0[*lane]);
        offset < u64::from(ctx.windows.local_size) && outside
    }) else {
        return;
    };
    let what = local_beyond(&ctx.func.func, access, (offset_of(lane), size), bottom..frame.top.0[lane].into());
    act(ctx, 1 << lane, |actor| {
        observer.undefined(UndefinedEvent { actor, concern: Concern::Bounds, what, origin: None, usage: None });
    });
}

/// Reports a synchronization.
pub fn notify(ctx: &Ctx<'_>, lanes: u32, kind: SyncKind) {
    if let Some(observer) = ctx.grid.observer
        && lanes != 0
    {
        act(ctx, lanes, |actor| observer.sync(&SyncEvent { actor, kind }));
    }
}

/// Reports the use of an uninitialized value, which the op at `origin` has loaded, if any.
pub fn undefined(ctx: &Ctx<'_>, lane: usize, what: String, origin: Option<u32>) {
    if let Some(observer) = ctx.grid.observer {
        let origin = origin.map(|pc| (ctx.func.id, ctx.func.place(pc)));
        let concern = Concern::Uninitialized;
        act(ctx, 1 << lane, |actor| observer.undefined(UndefinedEvent { actor, concern, what, origin, usage: None }));
    }
}

/// The report about a shuffle that reads an inactive lane.
pub fn inactive(shuffle: &Variant, from: u32) -> String {
    format!("`{shuffle}` reads operand `a` of lane {from}, which is inactive")
}

/// Reports the use of what the shuffle at `pc` has read from an inactive lane.
pub fn stray(ctx: &Ctx<'_>, lane: usize, (pc, from): (u32, u32), usage: String) {
    if let (Some(observer), Some(op)) = (ctx.grid.observer, ctx.func.ops.get(pc as usize)) {
        let origin = Some((ctx.func.id, ctx.func.place(pc)));
        let (concern, what) = (Concern::Participants, inactive(ctx.func.variant(op), from));
        let usage = Some(usage);
        act(ctx, 1 << lane, |actor| observer.undefined(UndefinedEvent { actor, concern, what, origin, usage }));
    }
}

/// Reports that an instruction accesses what the product at `origin` has not written yet.
pub fn in_flight(ctx: &Ctx<'_>, what: String, origin: u32) {
    products(ctx, Concern::InFlight, what, Some(origin));
}

/// Reports a product without the fence that it needs; `origin` has written the register in question.
pub fn unfenced(ctx: &Ctx<'_>, what: String, origin: Option<u32>) {
    products(ctx, Concern::Participants, what, origin);
}

fn products(ctx: &Ctx<'_>, concern: Concern, what: String, origin: Option<u32>) {
    if let Some(observer) = ctx.grid.observer {
        let origin = origin.map(|pc| (ctx.func.id, ctx.func.place(pc)));
        act(ctx, ctx.active, |actor| observer.undefined(UndefinedEvent { actor, concern, what, origin, usage: None }));
    }
}

/// Reports a `fence` or `membar`; proxy fences alone do not order threads.
pub fn fence(ctx: &Ctx<'_>, op: &Op) {
    if ctx.grid.observer.is_none() {
        return;
    }
    let variant = ctx.func.variant(op);
    for kind in [SyncKind::of_proxy_fence(variant), SyncKind::of_fence(variant)].into_iter().flatten() {
        notify(ctx, ctx.active, kind);
    }
}

/// Reports a `griddepcontrol`.
pub fn dependents(ctx: &Ctx<'_>, op: &Op) {
    if ctx.grid.observer.is_some() {
        let waits = ctx.func.variant(op).has(Mod::Wait);
        let kind = if waits { SyncKind::WaitPrerequisites } else { SyncKind::LaunchDependents };
        notify(ctx, ctx.active, kind);
    }
}

/// Reports a lane's operation on the barrier object at a host address.
pub fn object(ctx: &Ctx<'_>, lane: usize, at: u64, done: ObjectStep, completes: bool) {
    if ctx.grid.observer.is_none() {
        return;
    }
    let Some(v) = ctx.func.ops.get(ctx.pc as usize).map(|op| ctx.func.variant(op)) else { return };
    let acquires = matches!(done, ObjectStep::Waited { .. } | ObjectStep::Pending { .. });
    let standard = if acquires { Semantics::Acquire } else { Semantics::Release };
    let semantics = if v.op == Opcode::Mbarrier { Semantics::of(v).unwrap_or(standard) } else { standard };
    let order = Ordering {
        semantics,
        scope: if v.op == Opcode::Mbarrier { Scope::of(v).unwrap_or(Scope::Cta) } else { Scope::Cluster },
        volatile: false,
        asynchronous: matches!(done, ObjectStep::Complete | ObjectStep::ArriveAfterProducts),
        proxy: false,
        tensor: Tensor::No,
        reduction: false,
        cached: false,
    };
    notify(ctx, 1 << lane, SyncKind::Object { at, done, completes, order });
}
