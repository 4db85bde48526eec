//! Asynchronous copies and reductions, done at issue (manual, sections 9.7.9.12, 9.7.9.13 and 9.7.9.25; 9.7.13.7).

use super::super::{
    code::{Address, CopyKind, CopyOp, Flow, MbarrierOp, Op},
    ctx::Ctx,
    state::lanes,
};
use super::address::{Region, WINDOW_BITS, addresses, bad_access, find_allocation, rank_of};
use super::watch::{notify, report_copy};
use super::{atomic, matrix, mbarrier};
use crate::{
    AccessKind, FaultKind, Grouped, LANES, SyncKind,
    mem::{self, Kind},
    object::MbarrierKind,
    sem::atomic::Rmw,
};
use margay_ir::MemSpace;
use margay_isa::Mod;

/// Limit of a bulk copy in bytes: the size of shared memory's address range.
const LIMIT: u64 = 1 << WINDOW_BITS;

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

fn watched(ctx: &Ctx<'_>, lane: usize, end: End<'_>, bytes: &[u8], access: AccessKind) {
    if ctx.grid.observer.is_some() {
        report_copy(ctx, lane, (end.address, end.host), bytes, access);
    }
}

/// Loads bytes for a lane.
pub fn read(ctx: &mut Ctx<'_>, lane: usize, end: End<'_>, bytes: &mut [u8]) -> Result<(), Flow> {
    watched(ctx, lane, end, bytes, AccessKind::Load);
    let found = find_allocation!(ctx, end.region, end.host, lane);
    match found.and_then(|a| mem::load_bytes(&a.block, end.host, bytes)) {
        Some(()) => Ok(()),
        None => Err(bad_access(ctx, lane, end.address, end.region, end.host, (bytes.len() as u32, 1), false)),
    }
}

/// Stores bytes for a lane.
pub fn write(ctx: &mut Ctx<'_>, lane: usize, end: End<'_>, bytes: &[u8]) -> Result<(), Flow> {
    watched(ctx, lane, end, bytes, AccessKind::Store);
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

/// The operands of a copy, by lane.
struct Operands<'o> {
    copy: &'o CopyOp,
    /// Bytes to write.
    sizes: [u64; LANES],
    /// The last operand, if there is one: a source size (zero for sources that are ignored), a byte mask, a CTA mask, or the
    /// bytes to ignore on the left.
    extra: Option<[u64; LANES]>,
    /// Bytes to ignore on the right.
    right: [u64; LANES],
    to: Addresses,
    from: Addresses,
    mbarrier: Addresses,
}

/// Where the lanes' addresses may point into, and their host addresses.
type Addresses = (Region, [u64; LANES]);

impl<'o> Operands<'o> {
    fn read(ctx: &mut Ctx<'_>, copy: &'o CopyOp) -> Result<Operands<'o>, Flow> {
        let sizes = ctx.doubles(copy.size);
        let extra = copy.extra.map(|s| match copy.kind {
            CopyKind::SmallIgnored => {
                let ignored = ctx.pred(s);
                std::array::from_fn(|i| if ignored >> i & 1 == 1 { 0 } else { u64::MAX })
            }
            _ => ctx.doubles(s),
        });
        let right = match copy.kind {
            CopyKind::Trimmed { right } => ctx.doubles(right),
            _ => [0; LANES],
        };
        // A small copy is two accesses of constant size, and the write is checked first. The sizes of bulk copies are checked by
        // lane.
        let least = if copy.is_small() { sizes[ctx.first()] as u32 } else { 1 };
        let mut all = |address: Option<&Address>, access| {
            let mut hosts = [0; LANES];
            let region = address.map_or(Ok(Region::Generic), |a| addresses(ctx, a, access, &mut hosts))?;
            Ok((region, hosts))
        };
        let to = all(Some(&copy.to), (least, true))?;
        let from = all(copy.from.as_ref(), (1, false))?;
        let mbarrier = all(copy.mbarrier.as_ref(), (8, true))?;
        Ok(Operands { copy, sizes, extra, right, to, from, mbarrier })
    }

    fn to(&self, lane: usize) -> End<'o> {
        End { address: &self.copy.to, region: self.to.0, host: self.to.1[lane] }
    }

    fn from(&self, lane: usize) -> Option<End<'o>> {
        let address = self.copy.from.as_ref()?;
        Some(End { address, region: self.from.0, host: self.from.1[lane] })
    }

    /// The bytes that a lane reads.
    fn source_size(&self, lane: usize) -> u64 {
        match (self.copy.kind, self.extra) {
            (CopyKind::Small | CopyKind::SmallIgnored, Some(bytes)) => bytes[lane].min(self.sizes[lane]),
            _ => self.sizes[lane],
        }
    }

    /// Checks both ends of small copies before one of them writes.
    fn verify_small(&self, ctx: &mut Ctx<'_>) -> Result<(), Flow> {
        for lane in lanes(ctx.active) {
            let size = self.sizes[lane] as u32;
            verify(ctx, lane, self.to(lane), (size, size), true)?;
        }
        for lane in lanes(ctx.active) {
            let (size, source) = (self.sizes[lane] as u32, self.source_size(lane) as u32);
            if let Some(from) = self.from(lane).filter(|_| source > 0) {
                verify(ctx, lane, from, (source, size), false)?;
            }
        }
        Ok(())
    }

    /// Checks the size of a lane's copy, and the alignment of the ends of bulk copies.
    fn verify(&self, ctx: &mut Ctx<'_>, lane: usize) -> Result<(), Flow> {
        let size = self.sizes[lane];
        let unit = match self.copy.kind {
            CopyKind::Zero => 8,
            _ if self.copy.is_small() => size.max(1),
            _ => 16,
        };
        if size > LIMIT || !size.is_multiple_of(unit) {
            let what =
                format!("an asynchronous copy of {size} bytes, which must be a multiple of {unit} up to {LIMIT}");
            return Err(ctx.fault(lane, FaultKind::Barrier(what), Vec::new()));
        }
        let from = self.from(lane).filter(|_| !self.copy.is_small());
        for (end, write) in [(Some(self.to(lane)), true), (from, false)] {
            let Some(end) = end.filter(|end| !end.host.is_multiple_of(unit)) else { continue };
            let access = (size as u32, unit as u32);
            return Err(bad_access(ctx, lane, end.address, end.region, end.host, access, write));
        }
        Ok(())
    }

    /// Copies for one lane, through `buffer`.
    fn copy(&self, ctx: &mut Ctx<'_>, lane: usize, buffer: &mut Vec<u8>) -> Result<(), Flow> {
        self.verify(ctx, lane)?;
        let to = self.to(lane);
        buffer.clear();
        buffer.resize(self.sizes[lane] as usize, 0);
        if let CopyKind::Trimmed { .. } = self.copy.kind {
            self.copy_trimmed(ctx, lane, buffer)?;
            return self.complete(ctx, lane);
        }
        let source = self.source_size(lane) as usize;
        if let Some(from) = self.from(lane).filter(|_| source > 0) {
            read(ctx, lane, from, &mut buffer[..source])?;
        }
        // Without a mask, to all CTAs.
        let all = (1 << ctx.windows.shared.len()) - 1;
        let mask = self.extra.map_or(all, |e| e[lane]);
        match self.copy.kind {
            CopyKind::Cancel { multicast } => {
                buffer.copy_from_slice(&response(ctx.grid.units.cancel()));
                if multicast {
                    return self.multicast(ctx, lane, all as u32, buffer);
                }
                write(ctx, lane, to, buffer)?;
            }
            CopyKind::Multicast => return self.multicast(ctx, lane, mask as u32, buffer),
            CopyKind::Masked => {
                let mut old = vec![0; buffer.len()];
                read(ctx, lane, to, &mut old)?;
                let keep = |k: usize| mask >> (k % 16) & 1 == 0;
                (0..buffer.len()).filter(|k| keep(*k)).for_each(|k| buffer[k] = old[k]);
                write(ctx, lane, to, buffer)?;
            }
            CopyKind::Reduce(rmw) => reduce(ctx, lane, to, rmw, buffer)?,
            CopyKind::Small | CopyKind::SmallIgnored | CopyKind::Bulk | CopyKind::Trimmed { .. } | CopyKind::Zero => {
                write(ctx, lane, to, buffer)?;
            }
        }
        self.complete(ctx, lane)
    }

    /// A bulk copy whose first and last bytes may be outside the source. The destination bytes for them are
    /// indeterminate in PTX, and left unchanged here.
    fn copy_trimmed(&self, ctx: &mut Ctx<'_>, lane: usize, buffer: &mut [u8]) -> Result<(), Flow> {
        let Some(from) = self.from(lane) else { return Err(ctx.bug("a copy from nowhere")) };
        let (left, right) = (self.extra.map_or(0, |e| e[lane]), self.right[lane]);
        if left > 15 || right > 15 {
            let what = format!("a bulk copy that ignores {left} and {right} bytes; each must be 0 to 15");
            return Err(ctx.fault(lane, FaultKind::Barrier(what), Vec::new()));
        }
        let inner = left as usize..buffer.len().saturating_sub(right as usize);
        if inner.is_empty() {
            return Ok(());
        }
        let after = |end: End<'o>| End { region: Region::Generic, host: end.host.wrapping_add(left), ..end };
        read(ctx, lane, End { region: from.region, ..after(from) }, &mut buffer[inner.clone()])?;
        write(ctx, lane, after(self.to(lane)), &buffer[inner])
    }

    /// Copies to the same offsets in every CTA of the mask, and signals their barrier objects.
    fn multicast(&self, ctx: &mut Ctx<'_>, lane: usize, ctas: u32, bytes: &[u8]) -> Result<(), Flow> {
        let (end, (signal_region, signal)) = (self.to(lane), (self.mbarrier.0, self.mbarrier.1[lane]));
        for rank in lanes(ctas) {
            let [data, flag] = peers(ctx, lane, rank, [end.host, signal])?;
            write(ctx, lane, End { region: Region::Generic, host: data, ..end }, bytes)?;
            if let Some(a) = self.copy.mbarrier {
                debug_assert!(a.space == MemSpace::SharedCluster || signal_region == Region::Shared);
                let place = (Region::Generic, flag);
                mbarrier::complete(ctx, lane, place, &transactions(a), bytes.len() as u64)?;
            }
        }
        Ok(())
    }

    /// Signals the bytes written to the barrier object, if there is one.
    fn complete(&self, ctx: &mut Ctx<'_>, lane: usize) -> Result<(), Flow> {
        let Some(a) = self.copy.mbarrier else { return Ok(()) };
        mbarrier::complete(ctx, lane, (self.mbarrier.0, self.mbarrier.1[lane]), &transactions(a), self.sizes[lane])
    }
}

fn run(ctx: &mut Ctx<'_>, copy: &CopyOp) -> Result<(), Flow> {
    let operands = Operands::read(ctx, copy)?;
    if copy.is_small() {
        operands.verify_small(ctx)?;
    }
    ctx.cta.note_effect();
    let mut buffer = Vec::new();
    for lane in lanes(ctx.active) {
        // A bulk copy of zero bytes does nothing, wherever it points; CUB's device-wide merge issues such copies.
        if operands.sizes[lane] > 0 || copy.is_small() {
            operands.copy(ctx, lane, &mut buffer)?;
        }
    }
    Ok(())
}

/// The operation that completes transactions of the object at an address.
pub fn transactions(address: Address) -> MbarrierOp {
    MbarrierOp { address, operand: None, ctas: None, dst: None, kind: MbarrierKind::Complete }
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
    watched(ctx, lane, end, bytes, AccessKind::Atomic);
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
    let b: &MbarrierOp = &ctx.func.mbarriers[op.x as usize];
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

/// The response to `clusterlaunchcontrol.try_cancel`: bit 0 says whether a cluster was canceled, words 1 to 3 which CTA is its first.
fn response(first: Option<[u32; 3]>) -> [u8; 16] {
    let [x, y, z] = first.unwrap_or_default().map(u128::from);
    (u128::from(first.is_some()) | x << 32 | y << 64 | z << 96).to_le_bytes()
}

/// `clusterlaunchcontrol.query_cancel` of a [`response`].
pub fn query_cancel(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let func = ctx.func;
    let table = &func.operand_lists[op.x as usize];
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
        let of = if v.has(Mod::Bulk) { Grouped::Bulk } else { Grouped::Small };
        let kind = match () {
            _ if v.has(Mod::CommitGroup) => SyncKind::Commit { of },
            _ if v.has(Mod::WaitAll) => SyncKind::Wait { of, pending: None, read: false },
            _ => SyncKind::Wait { of, pending: Some(op.x), read: v.has(Mod::Read) },
        };
        notify(ctx, ctx.active, kind);
    }
    Flow::Next
}
