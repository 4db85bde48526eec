//! Asynchronous copies and reductions, done at issue (manual, sections 9.7.9.12, 9.7.9.13 and 9.7.9.25; 9.7.13.7).

use super::super::{
    code::{Address, CopyKind, CopyOp, Flow, ObjectKind, ObjectOp, Op},
    ctx::Ctx,
    state::lanes,
};
use super::address::{Region, WINDOW_BITS, addresses, bad_access, find_allocation, rank_of};
use super::watch::{notify, report_access};
use super::{atomic, matrix, mbarrier};
use crate::{
    AccessKind, FaultKind, LANES, SyncKind,
    mem::{self, Kind},
    sem::atomic::Rmw,
};
use margay_ir::MemSpace;
use margay_isa::Mod;

/// Limit of a bulk copy in bytes: the size of shared memory's address range.
const MOST: u64 = 1 << WINDOW_BITS;

/// The source or destination of one lane's copy.
#[derive(Clone, Copy)]
pub struct End<'o> {
    /// The operand, for messages.
    pub address: &'o Address,
    /// The memory that it may point into.
    pub region: Region,
    /// Host address.
    pub host: u64,
}

fn watched(ctx: &Ctx<'_>, lane: usize, end: End<'_>, bytes: usize, access: AccessKind) {
    if ctx.grid.observer.is_some() {
        report_access(ctx, 1 << lane, end.address, &[end.host; LANES], bytes as u32, access);
    }
}

/// Loads bytes for a lane.
pub fn read(ctx: &mut Ctx<'_>, lane: usize, end: End<'_>, bytes: &mut [u8]) -> Result<(), Flow> {
    watched(ctx, lane, end, bytes.len(), AccessKind::Load);
    let found = find_allocation!(ctx, end.region, end.host, lane);
    match found.and_then(|a| mem::load_bytes(&a.block, end.host, bytes)) {
        Some(()) => Ok(()),
        None => Err(bad_access(ctx, lane, end.address, end.region, end.host, (bytes.len() as u32, 1), false)),
    }
}

/// Stores bytes for a lane.
pub fn write(ctx: &mut Ctx<'_>, lane: usize, end: End<'_>, bytes: &[u8]) -> Result<(), Flow> {
    watched(ctx, lane, end, bytes.len(), AccessKind::Store);
    let found = find_allocation!(ctx, end.region, end.host, lane).filter(|a| a.kind.writable());
    let inside = found.filter(|a| a.block.contains(end.host, bytes.len()));
    match inside.and_then(|a| mem::store_bytes(&a.block, end.host, bytes)) {
        Some(()) => Ok(()),
        None => Err(bad_access(ctx, lane, end.address, end.region, end.host, (bytes.len() as u32, 1), true)),
    }
}

/// `cp.async`, bulk copies and reductions, `st.bulk`.
pub fn copy(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let c: &CopyOp = &ctx.func.copies[op.x as usize];
    match run(ctx, c) {
        Ok(()) => Flow::Next,
        Err(flow) => flow,
    }
}

/// `tensormap.cp_fenceproxy`, which the whole warp executes together.
pub fn copy_together(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    match matrix::gather(ctx, op) {
        Ok(()) => copy(ctx, op),
        Err(flow) => flow,
    }
}

/// Checks that an end of a small copy is in memory that permits the access, and aligned.
fn verify(ctx: &mut Ctx<'_>, lane: usize, end: End<'_>, (size, align): (u32, u32), write: bool) -> Result<(), Flow> {
    let found = find_allocation!(ctx, end.region, end.host, lane).filter(|a| !write || a.kind.writable());
    if found.is_some_and(|a| a.block.contains(end.host, size as usize)) && end.host.is_multiple_of(align.into()) {
        return Ok(());
    }
    Err(bad_access(ctx, lane, end.address, end.region, end.host, (size, align), write))
}

/// The bytes that a copy reads in order to write `size` bytes.
fn wanted(kind: CopyKind, size: u64, extra: Option<u64>) -> u64 {
    match (kind, extra) {
        // A predicate: whether the source is ignored.
        (CopyKind::SmallIgnored, Some(0)) => 0,
        (CopyKind::Small, Some(bytes)) => bytes.min(size),
        _ => size,
    }
}

fn run(ctx: &mut Ctx<'_>, c: &CopyOp) -> Result<(), Flow> {
    let sizes = ctx.doubles(c.size);
    let extra = c.extra.map(|s| match c.kind {
        CopyKind::SmallIgnored => {
            let truth = ctx.pred(s);
            std::array::from_fn(|i| if truth >> i & 1 == 1 { 0 } else { u64::MAX })
        }
        _ => ctx.doubles(s),
    });
    let small = matches!(c.kind, CopyKind::Small | CopyKind::SmallIgnored);
    // A small copy is two accesses of constant size, of which the write is checked first; sizes of bulk copies are checked per lane below.
    let least = if small { sizes[ctx.first()] as u32 } else { 1 };
    let (mut to, mut from, mut signal) = ([0; LANES], [0; LANES], [0; LANES]);
    let to_region = addresses(ctx, &c.to, (least, true), &mut to)?;
    let from_region = match &c.from {
        Some(a) => addresses(ctx, a, (1, false), &mut from)?,
        None => Region::Generic,
    };
    let signal_region = match &c.mbarrier {
        Some(a) => addresses(ctx, a, (8, true), &mut signal)?,
        None => Region::Generic,
    };
    if small {
        for i in lanes(ctx.active) {
            let end = End { address: &c.to, region: to_region, host: to[i] };
            verify(ctx, i, end, (sizes[i] as u32, sizes[i] as u32), true)?;
        }
        for (i, a) in lanes(ctx.active).zip(c.from.iter().cycle()) {
            let wanted = wanted(c.kind, sizes[i], extra.map(|e: [u64; LANES]| e[i]));
            let end = End { address: a, region: from_region, host: from[i] };
            if wanted > 0 {
                verify(ctx, i, end, (wanted as u32, sizes[i] as u32), false)?;
            }
        }
    }
    ctx.cta.note_effect();
    let right = match c.kind {
        CopyKind::Trimmed { right } => ctx.doubles(right),
        _ => [0; LANES],
    };
    let mut buffer = Vec::new();
    for i in lanes(ctx.active) {
        let size = sizes[i];
        // A bulk copy of zero bytes does nothing, wherever it points; CUB's device-wide merge issues such copies.
        if size == 0 && !small {
            continue;
        }
        let unit = match c.kind {
            CopyKind::Zero => 8,
            _ if small => size,
            _ => 16,
        };
        if size > MOST || !size.is_multiple_of(unit.max(1)) {
            let what = format!("an asynchronous copy of {size} bytes, which must be a multiple of {unit} up to {MOST}");
            return Err(ctx.fault(i, FaultKind::Barrier(what), Vec::new()));
        }
        let align = unit as u32;
        let end = End { address: &c.to, region: to_region, host: to[i] };
        if !to[i].is_multiple_of(unit.max(1)) {
            return Err(bad_access(ctx, i, &c.to, to_region, to[i], (size as u32, align), true));
        }
        buffer.clear();
        buffer.resize(size as usize, 0);
        if let Some(a) = &c.from {
            if !small && !from[i].is_multiple_of(unit.max(1)) {
                return Err(bad_access(ctx, i, a, from_region, from[i], (size as u32, align), false));
            }
            let wanted = wanted(c.kind, size, extra.map(|e| e[i]));
            if matches!(c.kind, CopyKind::Trimmed { .. }) {
                trimmed(ctx, c, i, (end, from_region, from[i]), (extra.map_or(0, |e| e[i]), right[i]), &mut buffer)?;
                if let Some(a) = c.mbarrier {
                    mbarrier::complete(ctx, i, (signal_region, signal[i]), &transactions(a), size)?;
                }
                continue;
            }
            let source = End { address: a, region: from_region, host: from[i] };
            if wanted > 0 {
                read(ctx, i, source, &mut buffer[..wanted as usize])?;
            }
        }
        // Without a mask, to all CTAs.
        let all = (1 << ctx.windows.shared.len()) - 1;
        let masks = extra.map_or(all, |e| e[i]);
        let place = (signal_region, signal[i]);
        match c.kind {
            CopyKind::Multicast => multicast(ctx, i, c, end, place, masks as u32, &buffer)?,
            CopyKind::Masked => {
                let mut old = vec![0; buffer.len()];
                read(ctx, i, end, &mut old)?;
                let keep = |k: usize| masks >> (k % 16) & 1 == 0;
                (0..buffer.len()).filter(|k| keep(*k)).for_each(|k| buffer[k] = old[k]);
                write(ctx, i, end, &buffer)?;
            }
            CopyKind::Reduce(rmw) => reduce(ctx, i, end, rmw, &buffer)?,
            CopyKind::Small | CopyKind::SmallIgnored | CopyKind::Bulk | CopyKind::Trimmed { .. } | CopyKind::Zero => {
                write(ctx, i, end, &buffer)?;
            }
        }
        if let Some(a) = c.mbarrier
            && c.kind != CopyKind::Multicast
        {
            mbarrier::complete(ctx, i, place, &transactions(a), size)?;
        }
    }
    Ok(())
}

/// A bulk copy whose first and last bytes may be outside the source. The destination bytes for them are
/// indeterminate in PTX, and left unchanged here.
fn trimmed(
    ctx: &mut Ctx<'_>,
    c: &CopyOp,
    lane: usize,
    (to, region, host): (End<'_>, Region, u64),
    (left, right): (u64, u64),
    buffer: &mut [u8],
) -> Result<(), Flow> {
    let Some(address) = &c.from else { return Err(ctx.bug("a copy from nowhere")) };
    if left > 15 || right > 15 {
        let what = format!("a bulk copy that ignores {left} and {right} bytes; each must be 0 to 15");
        return Err(ctx.fault(lane, FaultKind::Barrier(what), Vec::new()));
    }
    let (left, right) = (left as usize, right as usize);
    if left + right < buffer.len() {
        let inner = left..buffer.len() - right;
        let (to, from) = (to.host + left as u64, host.wrapping_add(left as u64));
        read(ctx, lane, End { address, region, host: from }, &mut buffer[inner.clone()])?;
        write(ctx, lane, End { address: &c.to, region: Region::Generic, host: to }, &buffer[inner])?;
    }
    Ok(())
}

/// The operation that completes transactions of the object at an address.
pub fn transactions(address: Address) -> ObjectOp {
    ObjectOp { address, operand: None, ctas: None, dst: None, kind: ObjectKind::Complete }
}

/// Copies to the same offsets in every CTA of the mask.
fn multicast(
    ctx: &mut Ctx<'_>,
    lane: usize,
    c: &CopyOp,
    end: End<'_>,
    (signal_region, signal): (Region, u64),
    ctas: u32,
    bytes: &[u8],
) -> Result<(), Flow> {
    for rank in lanes(ctas) {
        let [data, flag] = peers(ctx, lane, rank, [end.host, signal])?;
        write(ctx, lane, End { region: Region::Generic, host: data, ..end }, bytes)?;
        if let Some(a) = c.mbarrier {
            debug_assert!(a.space == MemSpace::SharedCluster || signal_region == Region::Shared);
            let place = (Region::Generic, flag);
            mbarrier::complete(ctx, lane, place, &transactions(a), bytes.len() as u64)?;
        }
    }
    Ok(())
}

/// Maps host addresses in shared windows to the same offsets in the window of CTA `rank`.
pub fn peers<const N: usize>(ctx: &mut Ctx<'_>, lane: usize, rank: usize, hosts: [u64; N]) -> Result<[u64; N], Flow> {
    let Some(base) = ctx.windows.shared.get(rank).map(|w| w.block.base()) else {
        let what = format!("a multicast to CTA {rank} of a cluster of {}", ctx.windows.shared.len());
        return Err(ctx.fault(lane, FaultKind::BadTarget(what), Vec::new()));
    };
    Ok(hosts.map(|host| match rank_of(ctx, host) {
        Some((_, offset)) => base.wrapping_add(offset),
        None => base.wrapping_add(host.wrapping_sub(ctx.cta.shared.block.base())),
    }))
}

/// Reduces elements into memory, one after another.
pub fn reduce(ctx: &mut Ctx<'_>, lane: usize, end: End<'_>, rmw: Rmw, bytes: &[u8]) -> Result<(), Flow> {
    let size = rmw.ty.bytes() as usize;
    watched(ctx, lane, end, bytes.len(), AccessKind::Atomic);
    for (k, element) in bytes.chunks_exact(size.max(1)).enumerate() {
        let mut value = [0; 8];
        value[..size].copy_from_slice(element);
        let host = end.host + (k * size) as u64;
        let found = find_allocation!(ctx, end.region, host, lane).filter(|a| a.kind.writable());
        let done = found.and_then(|a| {
            let flush = rmw.flushes(a.kind == Kind::Shared);
            atomic::element(&a.block, host, rmw, flush, u64::from_le_bytes(value), 0)
        });
        if done.is_none() {
            return Err(bad_access(ctx, lane, end.address, end.region, host, (size as u32, size as u32), true));
        }
    }
    Ok(())
}

/// Signals `y` completed bytes to the barrier object of the preceding `st.async` or `red.async`.
pub fn signal(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let b: &ObjectOp = &ctx.func.objects[op.x as usize];
    let mut at = [0; LANES];
    let region = match addresses(ctx, &b.address, (8, true), &mut at) {
        Ok(region) => region,
        Err(flow) => return flow,
    };
    for i in lanes(ctx.active) {
        if let Err(flow) = mbarrier::complete(ctx, i, (region, at[i]), b, op.y.into()) {
            return flow;
        }
    }
    Flow::Next
}

/// `clusterlaunchcontrol.query_cancel`: bit 0 of the response says whether a cluster was canceled, words 1 to 3 which
/// one.
pub fn query_cancel(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let func = ctx.func;
    let table = &func.wides[op.x as usize];
    let Some(response) = table.src.first().map(|s| ctx.quads(*s)) else { return ctx.bug("a query of nothing") };
    let v = func.variant(op);
    let first = [Mod::GetFirstCtaidX, Mod::GetFirstCtaidY, Mod::GetFirstCtaidZ].iter().position(|m| v.has(*m));
    for (k, d) in table.dst.iter().enumerate() {
        let word = if v.has(Mod::IsCanceled) { 0 } else { 1 + first.unwrap_or(k) };
        let mask = if word == 0 { 1 } else { u32::MAX };
        // The fourth component is unused.
        let values = response.map(|r| if word > 3 { 0 } else { u64::from((r >> (32 * word)) as u32 & mask) });
        ctx.write(*d, &values, ctx.active);
    }
    Flow::Next
}

/// Reports groups of asynchronous copies to the observer; the copies themselves were done at issue.
pub fn group(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    if ctx.grid.observer.is_some() {
        let v = ctx.func.variant(op);
        let bulk = v.has(Mod::Bulk);
        let kind = match () {
            _ if v.has(Mod::CommitGroup) => SyncKind::Commit { bulk },
            _ if v.has(Mod::WaitAll) => SyncKind::Wait { bulk, pending: None, read: false },
            _ => SyncKind::Wait { bulk, pending: Some(op.x), read: v.has(Mod::Read) },
        };
        notify(ctx, ctx.active, kind);
    }
    Flow::Next
}
