//! Special registers (manual, chapter 10).
//!
//! Clocks count nanoseconds: those of the host where compiled code may run parts of the launch ([`crate::Launch::real_time`]); else one
//! for each warp instruction of the CTA, and those slept, so that runs are reproducible. There are 16 multiprocessors; CTA `n` runs on
//! number `n` modulo 16. Performance counters read as zero.

use super::super::{
    code::{Dst, Flow, Op},
    ctx::Ctx,
};
use crate::{LANES, SharedSizes, lanes::each, unix_time};
use margay_isa::{Component, Special};

/// The value of `%nsmid`.
pub const MULTIPROCESSORS: u32 = 16;

fn pick(v: [u32; 3], c: Component, fourth: u32) -> u64 {
    match c {
        Component::X => v[0],
        Component::Y => v[1],
        Component::Z => v[2],
        Component::W => fourth,
    }
    .into()
}

fn linear(at: [u32; 3], size: [u32; 3]) -> u32 {
    at[0].wrapping_add(size[0].wrapping_mul(at[1].wrapping_add(size[1].wrapping_mul(at[2]))))
}

/// The value of a special register in every lane.
fn value(ctx: &Ctx<'_>, special: Special, c: Component) -> [u64; LANES] {
    let launch = ctx.grid.launch;
    let by_lane = |f: fn(u32) -> u32| std::array::from_fn(|i| u64::from(f(i as u32)));
    let (cluster, size) = (ctx.windows.cluster, ctx.windows.cluster_size);
    let clock = || if launch.real_time { unix_time() } else { ctx.cta.clock + ctx.executed };
    let shared = |aggregate| {
        let image = &ctx.grid.image;
        SharedSizes::new(image.ir.target, image.reserved_shared, aggregate).of(ctx.cta.shared.block.len() as u64)
    };
    let same = match special {
        Special::Tid => match c {
            Component::W => 0,
            _ => return each(&ctx.warp.tid[c as usize].0, u64::from),
        },
        Special::LaneId => return by_lane(|i| i),
        Special::LanemaskEq => return by_lane(|i| 1 << i),
        Special::LanemaskLe => return by_lane(|i| u32::MAX >> (31 - i)),
        Special::LanemaskLt => return by_lane(|i| (1 << i) - 1),
        Special::LanemaskGe => return by_lane(|i| u32::MAX << i),
        Special::LanemaskGt => return by_lane(|i| (u32::MAX << i) << 1),
        Special::Ntid => pick(launch.shape.block, c, 1),
        Special::Ctaid => pick(ctx.cta.id, c, 0),
        Special::Nctaid => pick(launch.shape.grid, c, 1),
        Special::WarpId => ctx.warp.index.into(),
        Special::NwarpId => u64::from(launch.shape.threads().div_ceil(LANES as u32)),
        Special::SmId => (linear(ctx.cta.id, launch.shape.grid) % MULTIPROCESSORS).into(),
        Special::NsmId => MULTIPROCESSORS.into(),
        Special::GridId => 1,
        Special::IsExplicitCluster => u64::from(size != [1; 3]),
        Special::ClusterId => pick(cluster, c, 0),
        Special::NclusterId => pick(std::array::from_fn(|d| launch.shape.grid[d] / size[d].max(1)), c, 1),
        Special::ClusterCtaid => pick(std::array::from_fn(|d| ctx.cta.id[d] - cluster[d] * size[d]), c, 0),
        Special::ClusterNctaid => pick(size, c, 1),
        Special::ClusterCtarank => ctx.cta.rank.into(),
        Special::ClusterNctarank => size.iter().product::<u32>().into(),
        Special::Clock | Special::GlobalTimerLo => clock() & 0xffff_ffff,
        Special::ClockHi | Special::GlobalTimerHi => clock() >> 32,
        Special::Clock64 | Special::GlobalTimer => clock(),
        Special::TotalSmemSize => shared(false),
        Special::AggrSmemSize => shared(true),
        Special::CurrentGraphExec => launch.graph,
        Special::EnvReg(index) => ctx.grid.environment(index).into(),
        Special::DynamicSmemSize => launch.shape.shared.into(),
        // The reserved part of shared memory comes first.
        Special::ReservedSmemOffsetEnd | Special::ReservedSmemOffsetCap => crate::RESERVED_SHARED.into(),
        Special::ReservedSmemOffsetBegin
        | Special::ReservedSmemOffset0
        | Special::ReservedSmemOffset1
        | Special::Pm(_)
        | Special::Pm64(_) => 0,
    };
    [same; LANES]
}

/// Reads a special register.
pub fn read(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let (special, c) = ctx.func.specials[op.x as usize];
    let values = value(ctx, special, c);
    let d = Dst { row: op.dst, shape: op.shape, bits: op.y };
    ctx.write(d, &values, ctx.active);
    Flow::Next
}
