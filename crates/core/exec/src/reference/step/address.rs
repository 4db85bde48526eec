//! Resolves memory operands to host addresses, and host addresses to allocations (manual, sections 5.1 and 6.4.1).
//!
//! `.shared` addresses are 32-bit offsets into the CTA's window. In a cluster of several CTAs whose program names clusters
//! ([`margay_ir::Ir::ranked_addresses`]), the bits from [`WINDOW_BITS`] on hold the rank of the CTA, so that every `.shared::cta` address is a
//! `.shared::cluster` address of the same CTA.

use super::super::{
    code::{Address, Base, Flow, Shape},
    ctx::{Ctx, Windows},
    state::{CtaState, LocalWindows, lanes},
};
use super::watch::{is_strong, report_access};
use crate::{
    Access, AccessKind, FaultKind, LANES,
    lanes::{u32s, u64s},
    mem::{Allocation, Kind, Lookaside, Memory},
    parameter_beyond,
};
use margay_ir::MemSpace;
use margay_isa::{Mod, Opcode, Variant};
use std::sync::Arc;

/// The note of a fault at a generic address in the local window of another thread.
pub const OTHER_THREAD: &str = "this is the local memory of another thread, or past the end of the thread's own";

/// Width of an offset into one CTA's shared window.
pub const WINDOW_BITS: u32 = margay_ir::RANK_SHIFT;

/// The memory that host addresses of an access may point into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Region {
    /// The CTA's shared window.
    Shared,
    /// The lane's local window.
    Local,
    /// The parameter block.
    Params,
    /// Global memory.
    Global,
    /// Anywhere.
    Generic,
}

/// The name of a space in messages.
pub fn space_name(space: MemSpace) -> &'static str {
    match space {
        MemSpace::Generic => "generic",
        MemSpace::Global => ".global",
        MemSpace::Const => ".const",
        MemSpace::Shared => ".shared",
        MemSpace::SharedCluster => ".shared::cluster",
        MemSpace::Local => ".local",
        MemSpace::KernelParam => ".param",
    }
}

/// Addresses in the operand's space, by lane; unspecified in inactive lanes.
#[inline(always)]
pub fn offsets(ctx: &Ctx<'_>, a: &Address, out: &mut [u64; LANES]) {
    // Window addresses are 32 bits wide: wider registers are truncated, and intermediate negative addresses wrap around
    // (manual, section 6.4.1.1).
    let windowed = matches!(a.space, MemSpace::Shared | MemSpace::SharedCluster | MemSpace::Local);
    let mask = if windowed { u64::from(u32::MAX) } else { u64::MAX };
    match a.base {
        Base::Reg(s) if s.shape() == Shape::Double => {
            let base = u64s(ctx.src(s));
            for i in 0..LANES {
                out[i] = base[i].wrapping_add_signed(a.offset) & mask;
            }
        }
        Base::Reg(s) => {
            let base = u32s(ctx.src(s));
            for i in 0..LANES {
                out[i] = u64::from(base[i]).wrapping_add_signed(a.offset) & mask;
            }
        }
        Base::Fixed => *out = [a.offset as u64 & mask; LANES],
        Base::Frame | Base::Incoming | Base::Outside(_) => {
            let frame = &ctx.warp.frames[ctx.frame as usize];
            let base = if a.base == Base::Incoming { &frame.incoming.0 } else { &frame.base.0 };
            for i in 0..LANES {
                out[i] = u64::from(base[i]).wrapping_add_signed(a.offset);
            }
        }
    }
}

/// Host addresses of an access of `size` bytes, by lane; `write` is for messages only.
#[inline(always)]
pub fn addresses(
    ctx: &mut Ctx<'_>,
    a: &Address,
    (size, write): (u32, bool),
    out: &mut [u64; LANES],
) -> Result<Region, Flow> {
    offsets(ctx, a, out);
    Ok(match a.space {
        MemSpace::Global | MemSpace::Const => Region::Global,
        MemSpace::Generic => Region::Generic,
        MemSpace::Shared | MemSpace::SharedCluster => {
            let base = ctx.cta.shared.block.base();
            let mut high = 0;
            for i in 0..LANES {
                high |= if ctx.active >> i & 1 == 1 { out[i] } else { 0 };
            }
            // A variable of the CTA itself, or an address without a rank, is in the own window.
            let ranked = matches!(a.base, Base::Reg(_)) && ctx.cta.rank != 0 && has_ranks(ctx);
            if high >> WINDOW_BITS == 0 && !ranked {
                for o in out.iter_mut() {
                    *o = o.wrapping_add(base);
                }
                Region::Shared
            } else {
                // In `mbarrier` and bulk copies `.shared` may refer to the cluster's windows; elsewhere it is `.shared::cta`
                // (section 5.1.7).
                let plain = ctx.func.ops.get(ctx.pc as usize).is_some_and(|op| is_plain(ctx.func.variant(op)));
                let own = a.space == MemSpace::Shared && plain;
                for i in lanes(ctx.active) {
                    let host = if own { own_host(ctx, out[i]) } else { cluster_host(ctx, out[i]) };
                    out[i] = match host {
                        Some(host) => host,
                        None => return Err(outside(ctx, a.space, i, (size, write), out)),
                    };
                }
                if own { Region::Shared } else { Region::Generic }
            }
        }
        MemSpace::Local => {
            if let Some((bytes, passed)) = left_parameter(ctx, a, size) {
                let lane = ctx.first();
                let access = Access { write, address: out[lane], size, space: ".param" };
                let (kind, note) = parameter_beyond(access, bytes, passed);
                return Err(ctx.fault(lane, kind, vec![note]));
            }
            let limit = u64::from(ctx.windows.local_size.saturating_sub(size));
            let mut far = false;
            for i in 0..LANES {
                far |= (ctx.active >> i & 1 == 1) & (out[i] > limit);
            }
            let bad = if far { lanes(ctx.active).find(|i| out[*i] > limit) } else { None };
            let Some(local) = ctx.warp.local.as_ref().filter(|_| bad.is_none()) else {
                let lane = bad.unwrap_or(ctx.first());
                return Err(outside(ctx, a.space, lane, (size, write), out));
            };
            let (base, stride) = (local.base, ctx.windows.stride);
            for (i, o) in out.iter_mut().enumerate() {
                *o = o.wrapping_add(base + i as u64 * stride);
            }
            Region::Local
        }
        MemSpace::KernelParam => {
            for o in out.iter_mut() {
                *o = o.wrapping_add(ctx.windows.params);
            }
            Region::Params
        }
    })
}

/// If an access of `size` bytes by name leaves its `.param` variable: the variable's bytes, and whether they are what the call passed.
#[inline(always)]
fn left_parameter(ctx: &Ctx<'_>, a: &Address, size: u32) -> Option<(u32, bool)> {
    match a.base {
        Base::Outside(bytes) => Some((bytes, false)),
        Base::Incoming => {
            let passed = ctx.warp.frames[ctx.frame as usize].passed;
            let start = a.offset.wrapping_sub(ctx.func.start.into());
            let inside = start >= 0 && start.saturating_add(size.into()) <= i64::from(passed);
            (!inside).then_some((passed, true))
        }
        Base::Reg(_) | Base::Fixed | Base::Frame => None,
    }
}

/// Whether `.shared` without a qualifier means the CTA's own window in an instruction.
fn is_plain(v: &Variant) -> bool {
    use Opcode::{Atom, Cp, Ld, Ldmatrix, Ldu, Red, St, Stmatrix, Wmma};
    match v.op {
        Ld | Ldu | St | Atom | Red | Ldmatrix | Stmatrix | Wmma => true,
        Cp => !v.has(Mod::Bulk) && !v.has(Mod::Mbarrier),
        _ => false,
    }
}

/// The fault of an access whose first out-of-bounds lane is `lane`, unless an earlier lane is misaligned.
#[cold]
fn outside(ctx: &mut Ctx<'_>, space: MemSpace, lane: usize, (size, write): (u32, bool), at: &[u64; LANES]) -> Flow {
    let aligned = !size.is_power_of_two() || size > 32;
    let before = lanes(ctx.active).find(|i| *i >= lane || !aligned && !at[*i].is_multiple_of(size.into()));
    match before.filter(|i| *i < lane) {
        Some(i) => misaligned(ctx, i, Access { write, address: at[i], size, space: space_name(space) }, size),
        None => out_of_bounds(ctx, lane, space, at[lane], size, write),
    }
}

fn misaligned(ctx: &mut Ctx<'_>, lane: usize, access: Access, align: u32) -> Flow {
    ctx.fault(lane, FaultKind::Misaligned(access), vec![format!("{align}-byte alignment is required")])
}

/// Whether addresses of shared memory have the rank of a CTA in their upper bits ([`margay_ir::Ir::ranked_addresses`]), so that they may be
/// other than zero.
fn has_ranks(ctx: &Ctx<'_>) -> bool {
    ctx.windows.shared.len() > 1 && ctx.code.image.ir.ranked_addresses
}

/// An address of shared memory with the rank of its CTA.
pub fn with_rank(ctx: &Ctx<'_>, rank: u32, offset: u64) -> u64 {
    if has_ranks(ctx) { u64::from(rank) << WINDOW_BITS | offset } else { offset }
}

/// The rank and the offset in the window of an address of shared memory.
pub fn rank_and_offset(ctx: &Ctx<'_>, address: u64) -> (u64, u64) {
    let (rank, offset) = (address >> WINDOW_BITS, address & ((1 << WINDOW_BITS) - 1));
    if has_ranks(ctx) || rank != 0 { (rank, offset) } else { (ctx.cta.rank.into(), offset) }
}

/// The host address of a `.shared::cluster` address.
fn cluster_host(ctx: &Ctx<'_>, address: u64) -> Option<u64> {
    let (rank, offset) = rank_and_offset(ctx, address);
    let window = match rank == u64::from(ctx.cta.rank) {
        true => &ctx.cta.shared,
        false if has_ranks(ctx) => ctx.windows.shared.get(usize::try_from(rank).ok()?)?,
        false => return None,
    };
    Some(window.block.base() + offset)
}

/// The host address of a `.shared::cta` address, which may be one without a rank.
fn own_host(ctx: &Ctx<'_>, address: u64) -> Option<u64> {
    let (rank, offset) = (address >> WINDOW_BITS, address & ((1 << WINDOW_BITS) - 1));
    let own = rank == 0 || has_ranks(ctx) && rank == u64::from(ctx.cta.rank);
    own.then(|| ctx.cta.shared.block.base() + offset)
}

/// The allocation that contains a lane's host address.
#[inline(always)]
pub fn allocation<'x>(
    (windows, cta): (&'x Windows, &'x CtaState),
    local: &'x Option<LocalWindows>,
    lookaside: &'x mut Lookaside,
    (memory, params): (&'x Memory, &'x Arc<Allocation>),
    region: Region,
    (address, lane): (u64, usize),
) -> Option<&'x Allocation> {
    match region {
        Region::Shared => Some(&cta.shared),
        Region::Local => local.as_ref().map(|l| &*l.memory),
        Region::Params => Some(params),
        Region::Global => lookaside.find((memory, params), address).map(|a| &**a),
        Region::Generic => {
            if cta.shared.block.contains(address, 1) {
                return Some(&cta.shared);
            }
            if let Some(local) = local
                && local.memory.block.contains(address, 1)
            {
                let start = local.of_lane(lane, windows.stride);
                let own = address.wrapping_sub(start) < u64::from(windows.local_size);
                return own.then_some(&*local.memory);
            }
            if let Some(peer) = windows.shared.iter().find(|w| w.block.contains(address, 1)) {
                return Some(peer);
            }
            lookaside.find((memory, params), address).map(|a| &**a)
        }
    }
}

/// [`allocation`] for a handler.
#[macro_export]
#[doc(hidden)]
macro_rules! find_allocation {
    ($ctx:expr, $region:expr, $address:expr, $lane:expr) => {
        $crate::reference::step::address::allocation(
            ($ctx.windows, &*$ctx.cta),
            &$ctx.warp.local,
            &mut $ctx.warp.lookaside,
            ($ctx.grid.memory, $ctx.grid.params()),
            $region,
            ($address, $lane),
        )
    };
}
pub(crate) use find_allocation;

/// An out-of-bounds fault at an address in `space`.
pub fn out_of_bounds(ctx: &mut Ctx<'_>, lane: usize, space: MemSpace, address: u64, size: u32, write: bool) -> Flow {
    let access = Access { write, address, size, space: space_name(space) };
    let note = match space {
        MemSpace::Shared | MemSpace::SharedCluster => {
            format!("the CTA's shared window has {} bytes", ctx.cta.shared.block.len())
        }
        MemSpace::Local => format!("the thread's local window has {} bytes", ctx.windows.local_size),
        MemSpace::KernelParam => format!("the parameter block has {} bytes", ctx.grid.params().block.len()),
        MemSpace::Generic if ctx.warp.local.as_ref().is_some_and(|l| l.memory.block.contains(address, 1)) => {
            OTHER_THREAD.to_owned()
        }
        MemSpace::Generic => ctx.grid.memory.describe_among(address, &ctx.windows.shared),
        MemSpace::Global | MemSpace::Const => ctx.grid.memory.describe(address),
    };
    let freed = matches!(space, MemSpace::Generic | MemSpace::Global) && ctx.grid.memory.freed(address).is_some();
    let kind = if freed { FaultKind::UseAfterFree(access) } else { FaultKind::OutOfBounds(access) };
    ctx.fault(lane, kind, vec![note])
}

/// The fault of an access without a cell at its host address: out of bounds, misaligned or read-only.
pub fn bad_access(
    ctx: &mut Ctx<'_>,
    lane: usize,
    a: &Address,
    region: Region,
    host: u64,
    (size, align): (u32, u32),
    write: bool,
) -> Flow {
    let base = match region {
        Region::Shared => ctx.cta.shared.block.base(),
        Region::Local => local_bases(ctx)[lane],
        Region::Params => ctx.windows.params,
        Region::Global | Region::Generic => 0,
    };
    let address = host.wrapping_sub(base);
    let access = Access { write, address, size, space: space_name(a.space) };
    let (inside, writable) = match find_allocation!(ctx, region, host, lane) {
        Some(found) => (found.block.contains(host, size as usize), found.kind.writable()),
        None => (false, true),
    };
    if !inside {
        return out_of_bounds(ctx, lane, a.space, address, size, write);
    }
    if !host.is_multiple_of(u64::from(align)) {
        return misaligned(ctx, lane, access, align);
    }
    if write && !writable {
        return ctx.fault(lane, FaultKind::ReadOnly(access), vec![ctx.grid.memory.describe(host)]);
    }
    ctx.bug("an access failed without a reason")
}

/// The fault of an access that failed in some lane: that of the first such lane.
#[cold]
pub fn first_bad(
    ctx: &mut Ctx<'_>,
    a: &Address,
    region: Region,
    at: &[u64; LANES],
    (size, align): (u32, u32),
    write: bool,
) -> Flow {
    let bad = lanes(ctx.active).find(|i| {
        let found = find_allocation!(ctx, region, at[*i], *i);
        let inside = found.is_some_and(|f| f.block.contains(at[*i], size as usize) && (!write || f.kind.writable()));
        !inside || !at[*i].is_multiple_of(u64::from(align))
    });
    let lane = bad.unwrap_or(ctx.first());
    bad_access(ctx, lane, a, region, at[lane], (size, align), write)
}

/// Counts an access as a side effect and in the launch's counters.
#[inline(always)]
pub fn count(ctx: &Ctx<'_>, a: &Address, addresses: &[u64; LANES], size: u32, access: AccessKind) {
    match (access, a.space) {
        (AccessKind::Store, MemSpace::Shared) => ctx.cta.note_shared_effect(),
        (AccessKind::Store, _) => ctx.cta.note_effect(),
        _ => {}
    }
    if let Some(counts) = ctx.grid.counts {
        counts.access(a.space, ctx.active, addresses, size);
    }
}

/// Reports an access to the observer before it takes effect.
#[inline(always)]
pub fn observe(ctx: &Ctx<'_>, a: &Address, addresses: &[u64; LANES], size: u32, access: AccessKind) {
    count(ctx, a, addresses, size, access);
    if ctx.grid.observer.is_some() {
        report_access(ctx, ctx.active, a, addresses, size, access);
        let (shared, yielding) = (a.space == MemSpace::Shared, &ctx.cta.yielding);
        match access {
            AccessKind::Store if yielding.when.publishes && is_strong(ctx, access) => {
                yielding.publish(shared, ctx.warp.index)
            }
            AccessKind::Load if yielding.when.tested && ctx.func.tests_before_setting(ctx.pc) => {
                yielding.test(shared, ctx.warp.index)
            }
            _ => {}
        }
    }
}

/// Converts addresses of a space to generic ones in place (`cvta`).
pub fn to_generic(ctx: &Ctx<'_>, space: MemSpace, values: &mut [u64; LANES]) {
    let base: [u64; LANES] = match space {
        MemSpace::Shared | MemSpace::SharedCluster => {
            for v in values.iter_mut() {
                let own = (space == MemSpace::Shared).then(|| own_host(ctx, *v)).flatten();
                *v = own.or_else(|| cluster_host(ctx, *v)).unwrap_or(v.wrapping_add(ctx.cta.shared.block.base()));
            }
            return;
        }
        MemSpace::Local => local_bases(ctx),
        MemSpace::KernelParam => [ctx.windows.params; LANES],
        MemSpace::Generic | MemSpace::Global | MemSpace::Const => return,
    };
    values.iter_mut().zip(base).for_each(|(v, b)| *v = v.wrapping_add(b));
}

/// Converts generic addresses to addresses of a space in place (`cvta.to`). Without `::cluster`, those in another CTA's window are undefined
/// (section 9.7.9.20), but libcu++ converts what `mapa` yields like this, which nvcc compiles so.
pub fn from_generic(ctx: &Ctx<'_>, space: MemSpace, values: &mut [u64; LANES]) {
    let base: [u64; LANES] = match space {
        MemSpace::Shared | MemSpace::SharedCluster if has_ranks(ctx) => {
            for v in values.iter_mut() {
                *v = match rank_of(ctx, *v) {
                    Some((rank, offset)) => with_rank(ctx, rank, offset),
                    None => with_rank(ctx, ctx.cta.rank, 0).wrapping_add(v.wrapping_sub(ctx.cta.shared.block.base())),
                };
            }
            return;
        }
        MemSpace::Shared | MemSpace::SharedCluster => [ctx.cta.shared.block.base(); LANES],
        MemSpace::Local => local_bases(ctx),
        MemSpace::KernelParam => [ctx.windows.params; LANES],
        MemSpace::Generic | MemSpace::Global | MemSpace::Const => return,
    };
    values.iter_mut().zip(base).for_each(|(v, b)| *v = v.wrapping_sub(b));
}

fn local_bases(ctx: &Ctx<'_>) -> [u64; LANES] {
    let base = ctx.warp.local.as_ref().map_or(0, |l| l.base);
    std::array::from_fn(|i| base + i as u64 * ctx.windows.stride)
}

/// The rank of the CTA whose shared window contains a generic address, and the offset there.
pub fn rank_of(ctx: &Ctx<'_>, address: u64) -> Option<(u32, u64)> {
    let at = ctx.windows.shared.iter().position(|w| w.block.contains(address, 1))?;
    Some((at as u32, address - ctx.windows.shared[at].block.base()))
}

/// Whether a generic address lies in the window of a space (`isspacep`).
pub fn in_space(ctx: &mut Ctx<'_>, space: MemSpace, address: u64, lane: usize) -> bool {
    let own = ctx.cta.shared.block.contains(address, 1);
    let cluster = own || rank_of(ctx, address).is_some();
    let all = ctx.warp.local.as_ref().is_some_and(|l| l.memory.block.contains(address, 1));
    let start = local_bases(ctx)[lane];
    let local = all && address.wrapping_sub(start) < u64::from(ctx.windows.local_size);
    let kind = find_allocation!(ctx, Region::Generic, address, lane).map(|a| a.kind);
    match space {
        MemSpace::Shared => own,
        MemSpace::SharedCluster => cluster,
        MemSpace::Local => local,
        MemSpace::Const => matches!(kind, Some(Kind::Const { .. })),
        MemSpace::KernelParam => kind == Some(Kind::Param),
        MemSpace::Global => !cluster && !all && !matches!(kind, Some(Kind::Const { .. })),
        MemSpace::Generic => true,
    }
}
