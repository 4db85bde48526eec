//! Warp-level matrix instructions: once all 32 lanes have arrived, one operation works on whole registers (manual,
//! section 9.7.14).

use super::super::{
    code::{Address, Code, Dst, Flow, MatrixOp, NOWHERE, Op},
    ctx::Ctx,
    in_flight,
    state::{Group, Wait, Warp},
};
use super::address::{Region, addresses, bad_access, count, find_allocation, out_of_bounds};
use super::watch::{notify, report_access, report_units};
use crate::{
    AccessKind, Convergence, Grouped, LANES, Row, SyncKind, incomplete,
    lanes::u32s,
    matrix::{
        self, warpgroup,
        wmma::{PIECE, Tile},
    },
    mem::{self, Allocation},
    only_converges,
};
use margay_ir::MemSpace;
use margay_isa::{Mod, Variant};

/// Blocks until all lanes of the warp are at this instruction, and then makes them one group.
///
/// The instructions are `.sync.aligned`: all threads execute the same one. Lanes that arrive in groups (after a divergent
/// branch whose paths have not joined) wait for the rest. Lanes that have exited never arrive, but the lanes that wait fault only
/// when no other lane of the warp can continue ([`abandoned`]): the order of arrival depends on the engine, the set of lanes at that point
/// does not.
pub fn gather(ctx: &mut Ctx<'_>, op: &Op) -> Result<(), Flow> {
    if ctx.active == u32::MAX {
        return Ok(());
    }
    debug_assert_eq!(Convergence::of(ctx.func.variant(op)), Convergence::Warp, "the engines disagree on who waits");
    let here = (ctx.frame, ctx.pc);
    let waits = |(g, why): &(Group, Wait)| *why == Wait::Warp && (g.frame, g.pc) == here;
    let arrived = ctx.warp.blocked.iter().filter(|b| waits(b)).fold(ctx.active, |m, (g, _)| m | g.mask);
    if arrived == u32::MAX {
        ctx.warp.blocked.retain(|b| !waits(b));
        (ctx.mask, ctx.active) = (u32::MAX, u32::MAX);
        return Ok(());
    }
    let skipped = ctx.mask & !ctx.active;
    if skipped != 0 {
        ctx.put_ready(skipped, ctx.pc + 1);
    }
    ctx.block(ctx.active, Wait::Warp);
    ctx.give_back();
    Err(Flow::Park)
}

/// Instructions that only wait for the rest of the warp ([`only_converges`]). What they do needs no lane that has ended.
pub fn converge(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    if ctx.warp.live != u32::MAX {
        return Flow::Next;
    }
    match gather(ctx, op) {
        Ok(()) => Flow::Next,
        Err(flow) => flow,
    }
}

/// After lanes of a warp have exited, lets groups continue that only wait for the rest of the warp.
pub fn release_converging(code: &Code, warp: &mut Warp) {
    if !warp.blocked.iter().any(|(_, why)| *why == Wait::Warp) {
        return;
    }
    let frames = &warp.frames;
    let only_converge = |g: &Group| {
        let func = frames.get(g.frame as usize).and_then(|f| code.funcs.get(f.func as usize)?.as_ref());
        func.is_some_and(|f| f.ops.get(g.pc as usize).is_some_and(|op| only_converges(f.variant(op))))
    };
    let ready = &mut warp.ready;
    warp.blocked.retain(|(g, why)| {
        let stays = *why != Wait::Warp || !only_converge(g);
        if !stays {
            ready.push(*g);
        }
        stays
    });
}

/// A group that waits for the rest of the warp at an instruction that all its lanes execute together, and the message if they never come.
pub fn abandoned(code: &Code, warp: &Warp) -> Option<(Group, String)> {
    let at_matrix = || warp.blocked.iter().filter(|(_, why)| *why == Wait::Warp).map(|(g, _)| *g);
    let mut group = at_matrix().min_by_key(|g| g.mask.trailing_zeros())?;
    let same = |g: &Group| (g.frame, g.pc) == (group.frame, group.pc);
    group.mask = at_matrix().filter(same).fold(0, |m, g| m | g.mask);
    let func = code.funcs.get(warp.frames.get(group.frame as usize)?.func as usize)?.as_ref()?;
    let variant = func.variant(func.ops.get(group.pc as usize)?);
    Some((group, incomplete(variant, !group.mask)))
}

/// Gets the operation of an op once all lanes have arrived; else returns from the handler.
macro_rules! matrix_op {
    ($ctx:expr, $op:expr) => {{
        if let Err(flow) = gather($ctx, $op) {
            return flow;
        }
        let func = $ctx.func;
        let m: &MatrixOp = &func.matrices[$op.x as usize];
        m
    }};
}

/// Copies result rows to the destinations, in all lanes.
fn scatter(ctx: &mut Ctx<'_>, m: &MatrixOp, results: &[Row]) {
    scatter_rows(ctx, &m.dst, results);
}

/// Copies result rows to registers, in all lanes.
pub fn scatter_rows(ctx: &mut Ctx<'_>, dst: &[Dst], results: &[Row]) {
    let mut from = results;
    for d in dst {
        let n = d.shape.rows().min(from.len());
        let (result, rest) = from.split_at(n);
        from = rest;
        if d.row != NOWHERE {
            ctx.regs[d.row as usize..d.row as usize + n].copy_from_slice(result);
        }
    }
}

/// Number of rows of the destinations.
fn result_rows(m: &MatrixOp) -> usize {
    m.dst.iter().map(|d| d.shape.rows()).sum()
}

/// `mma`, `wmma.mma`, `movmatrix`.
pub fn product(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m = matrix_op!(ctx, op);
    let variant = ctx.func.variant(op);
    let Some(run) = m.pure else { return ctx.bug("a matrix instruction without semantics") };
    let src: Vec<&[Row]> = m.src.iter().map(|s| ctx.src(*s)).collect();
    let mut results = vec![Row::ZERO; result_rows(m)];
    run(variant, u32::MAX, &src, &mut results);
    scatter(ctx, m, &results);
    Flow::Next
}

/// Adapts device memory to [`matrix::Memory`].
struct LaneMemory<'c, 'x> {
    ctx: &'c mut Ctx<'x>,
    address: Address,
    region: Region,
    /// Required alignment of every access.
    align: u64,
}

impl matrix::Memory for LaneMemory<'_, '_> {
    type Error = Flow;

    fn read(&mut self, lane: usize, address: u64, to: &mut [u8]) -> Result<(), Flow> {
        self.report(lane, address, to.len(), AccessKind::Load);
        let found = find_allocation!(self.ctx, self.region, address, lane);
        let done =
            found.filter(|_| address.is_multiple_of(self.align)).and_then(|a| mem::load_bytes(&a.block, address, to));
        done.ok_or(()).or_else(|()| self.fail(lane, address, to.len(), false))
    }

    fn write(&mut self, lane: usize, address: u64, from: &[u8]) -> Result<(), Flow> {
        self.report(lane, address, from.len(), AccessKind::Store);
        let found = find_allocation!(self.ctx, self.region, address, lane);
        let found = found.filter(|a| a.kind.writable() && address.is_multiple_of(self.align));
        let done = found.and_then(|a| mem::store_bytes(&a.block, address, from));
        done.ok_or(()).or_else(|()| self.fail(lane, address, from.len(), true))
    }

    fn try_read(&mut self, address: u64, to: &mut [u8]) -> bool {
        self.shared_by_lanes(address).is_some_and(|a| mem::load_bytes(&a.block, address, to).is_some())
    }

    fn try_write(&mut self, address: u64, from: &[u8]) -> bool {
        let found = self.shared_by_lanes(address).filter(|a| a.kind.writable());
        found.is_some_and(|a| mem::store_bytes(&a.block, address, from).is_some())
    }
}

impl LaneMemory<'_, '_> {
    /// The memory at an aligned address, if it is the same for all lanes and no observer waits for their accesses.
    fn shared_by_lanes(&mut self, address: u64) -> Option<&Allocation> {
        let found = find_allocation!(self.ctx, self.region, address, 0)?;
        let open = self.ctx.grid.observer.is_none() && address.is_multiple_of(self.align);
        (open && found.kind != mem::Kind::Local).then_some(found)
    }

    fn report(&self, lane: usize, address: u64, size: usize, access: AccessKind) {
        if self.ctx.grid.observer.is_some() {
            report_access(self.ctx, 1 << lane, &self.address, &[address; LANES], size as u32, access);
        }
    }

    fn fail(&mut self, lane: usize, address: u64, size: usize, write: bool) -> Result<(), Flow> {
        let shape = (size as u32, self.align as u32);
        Err(bad_access(self.ctx, lane, &self.address, self.region, address, shape, write))
    }
}

/// The accesses of `ldmatrix` and `stmatrix`: a row by every lane that provides an address.
fn count_rows(v: &Variant) -> impl Fn(&Ctx<'_>, &Address, &[u64; LANES], AccessKind) {
    let (bytes, _) = matrix::alignment(v);
    move |ctx, address, at, kind| count(ctx, address, at, bytes as u32, kind)
}

/// The accesses of `wmma.load` and `wmma.store`: a piece of its line by every lane, one after the other.
fn count_lines(tile: Tile, stride: Option<&[u32; LANES]>) -> impl Fn(&Ctx<'_>, &Address, &[u64; LANES], AccessKind) {
    move |ctx, address, at, kind| {
        let starts = tile.starts(at, stride);
        for piece in (0..tile.line_bytes()).step_by(PIECE) {
            let size = PIECE.min(tile.line_bytes() - piece);
            count(ctx, address, &starts.map(|s| s.wrapping_add(piece as u64)), size as u32, kind);
        }
    }
}

/// Performs a transfer: `run` gets the host addresses by lane; only the lanes of `used` provide one.
fn transfer(
    ctx: &mut Ctx<'_>,
    op: &Op,
    m: &MatrixOp,
    (used, count): (u32, impl Fn(&Ctx<'_>, &Address, &[u64; LANES], AccessKind)),
    run: impl FnOnce(&mut LaneMemory<'_, '_>, &[u64; LANES], &mut [Row]) -> Result<(), Flow>,
) -> Flow {
    let Some(address) = m.address else { return ctx.bug("a matrix is moved without an address") };
    let (align, writes) = matrix::alignment(ctx.func.variant(op));
    let mut at = [0; LANES];
    ctx.active = used;
    let region = match addresses(ctx, &address, (align as u32, writes), &mut at) {
        Ok(region) => region,
        Err(flow) => return flow,
    };
    let kind = if writes { AccessKind::Store } else { AccessKind::Load };
    count(ctx, &address, &at, kind);
    ctx.active = u32::MAX;
    let mut results = vec![Row::ZERO; result_rows(m)];
    match run(&mut LaneMemory { ctx, address, region, align }, &at, &mut results) {
        Ok(()) => {
            scatter(ctx, m, &results);
            Flow::Next
        }
        Err(flow) => flow,
    }
}

/// The lanes that provide row addresses: eight per 8x8 matrix.
fn row_lanes(ctx: &Ctx<'_>, op: &Op) -> u32 {
    let v = ctx.func.variant(op);
    let matrices = if v.has(Mod::X4) {
        4
    } else if v.has(Mod::X2) {
        2
    } else {
        1
    };
    let tall = if v.has(Mod::M16n16) { 2 } else { 1 };
    u32::MAX >> (32 - (8 * matrices * tall).min(32))
}

/// `ldmatrix`
pub fn load(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m = matrix_op!(ctx, op);
    let variant = ctx.func.variant(op);
    let used = row_lanes(ctx, op);
    transfer(ctx, op, m, (used, count_rows(variant)), |window, at, results| {
        matrix::ldmatrix(variant, at, window, results)
    })
}

/// `stmatrix`
pub fn store(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m = matrix_op!(ctx, op);
    let variant = ctx.func.variant(op);
    let values: Vec<Row> = m.src.iter().map(|s| ctx.src(*s)[0]).collect();
    let used = row_lanes(ctx, op);
    transfer(ctx, op, m, (used, count_rows(variant)), |window, at, _| {
        let src: Vec<&[Row]> = values.chunks(1).collect();
        matrix::stmatrix(variant, at, &src, window)
    })
}

/// `wmma.load`; the only source is the stride.
pub fn wmma_load(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m = matrix_op!(ctx, op);
    let variant = ctx.func.variant(op);
    let stride = m.src.first().map(|s| *u32s(ctx.src(*s)));
    let Some(tile) = Tile::of(variant) else { return ctx.bug("a fragment without a matrix") };
    transfer(ctx, op, m, (tile.lanes(), count_lines(tile, stride.as_ref())), |window, at, results| {
        matrix::wmma_load(variant, at, stride.as_ref(), window, results)
    })
}

/// `wmma.store`; if there are more sources than registers of the fragment, the last one is the stride.
pub fn wmma_store(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m = matrix_op!(ctx, op);
    let variant = ctx.func.variant(op);
    let registers = variant.operands().nth(1).and_then(|o| variant.count(o)).unwrap_or(1) as usize;
    let stride = m.src.get(registers).map(|s| *u32s(ctx.src(*s)));
    let values: Vec<Vec<Row>> = m.src.iter().take(registers).map(|s| ctx.src(*s).to_vec()).collect();
    let Some(tile) = Tile::of(variant) else { return ctx.bug("a fragment without a matrix") };
    transfer(ctx, op, m, (tile.lanes(), count_lines(tile, stride.as_ref())), |window, at, _| {
        let src: Vec<&[Row]> = values.iter().map(Vec::as_slice).collect();
        matrix::wmma_store(variant, at, stride.as_ref(), &src, window)
    })
}

/// `wgmma.mma_async`
pub fn warpgroup(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m = matrix_op!(ctx, op);
    if ctx.grid.observer.is_some() {
        in_flight::start(ctx);
    }
    let shared = ctx.cta.shared.clone();
    let zero = [Row::ZERO];
    let d = m.dst.iter().map(|d| match d.row {
        NOWHERE => &zero[..],
        row => &ctx.regs[row as usize..row as usize + 1],
    });
    let src = m.src.iter().map(|s| ctx.src(*s)).collect();
    let operands = warpgroup::Operands { warp: ctx.warp.index as usize % 4, d: d.collect(), src };
    let mut units = Units::new(ctx);
    let mut read = |at| {
        units.note(at);
        read_unit(&shared, at)
    };
    match warpgroup::multiply(ctx.func.variant(op), &operands, &mut read) {
        Ok(results) => {
            report_units(ctx, u32::MAX, &shared.block, &units.ranges());
            scatter(ctx, m, &results);
            Flow::Next
        }
        Err(address) => out_of_bounds(ctx, 0, MemSpace::Shared, address, 16, false),
    }
}

/// `wgmma.fence`, `commit_group` and `wait_group`
pub fn warpgroup_group(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let flow = converge(ctx, op);
    if matches!(flow, Flow::Next) && ctx.grid.observer.is_some() {
        let (v, of) = (ctx.func.variant(op), Grouped::Products);
        match () {
            _ if v.has(Mod::CommitGroup) => {
                ctx.warp.in_flight.commit();
                notify(ctx, ctx.active, SyncKind::Commit { of });
            }
            _ if v.has(Mod::WaitGroup) => {
                ctx.warp.in_flight.wait(op.x.into());
                notify(ctx, ctx.active, SyncKind::Wait { of, pending: Some(op.x), read: false });
            }
            _ => ctx.warp.in_flight.fence(),
        }
    }
    flow
}

/// The offsets in shared memory that a product reads, 16 bytes each, if somebody observes them.
#[derive(Default)]
pub struct Units(Option<Vec<u64>>);

impl Units {
    /// None yet.
    pub fn new(ctx: &Ctx<'_>) -> Units {
        Units(ctx.grid.observer.map(|_| Vec::new()))
    }

    /// Adds one.
    pub fn note(&mut self, at: u64) {
        if let Some(list) = &mut self.0 {
            list.push(at);
        }
    }

    /// The ranges that they form.
    pub fn ranges(self) -> Vec<(u64, u64)> {
        let mut list = self.0.unwrap_or_default();
        list.sort_unstable();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for at in list {
            match ranges.last_mut().filter(|(_, end)| at <= *end) {
                Some((_, end)) => *end = (*end).max(at + 16),
                None => ranges.push((at, at + 16)),
            }
        }
        ranges
    }
}

/// Loads 16 bytes of a shared window; the error is the address.
pub fn read_unit(shared: &Allocation, address: u64) -> Result<[u8; 16], u64> {
    let mut unit = [0; 16];
    mem::load_bytes(&shared.block, shared.block.base().wrapping_add(address), &mut unit).ok_or(address)?;
    Ok(unit)
}
