//! Address conversions and queries (manual, sections 9.7.9.18 to 9.7.9.20, 9.7.9.23 and 9.7.9.24).

use super::super::{
    code::{Flow, Op},
    ctx::Ctx,
    state::lanes,
};
use super::address::{WINDOW_BITS, from_generic, in_space, rank_and_offset, rank_of, to_generic, with_rank};
use crate::{FaultKind, LANES};
use margay_ir::MemSpace;

/// `cvta`: from a space to generic.
pub fn to_generic_row(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m = &ctx.func.mems[op.x as usize];
    let mut values = ctx.doubles(m.src[0]);
    to_generic(ctx, m.address.space, &mut values);
    ctx.write(m.dst[0], &values, ctx.active);
    Flow::Next
}

/// `cvta.to.space`
pub fn from_generic_row(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m = &ctx.func.mems[op.x as usize];
    let mut values = ctx.doubles(m.src[0]);
    from_generic(ctx, m.address.space, &mut values);
    ctx.write(m.dst[0], &values, ctx.active);
    Flow::Next
}

/// `isspacep`
pub fn is_space(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m = &ctx.func.mems[op.x as usize];
    let values = ctx.doubles(m.src[0]);
    let mut truth = 0;
    for i in lanes(ctx.active) {
        truth |= u32::from(in_space(ctx, m.address.space, values[i], i)) << i;
    }
    ctx.write_pred(m.dst[0], truth, ctx.active);
    Flow::Next
}

/// `mapa`
pub fn map_address(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m = &ctx.func.mems[op.x as usize];
    let (mut values, ranks) = (ctx.doubles(m.src[0]), ctx.words(m.src[1]));
    for i in lanes(ctx.active) {
        let rank = ranks[i] as usize;
        let Some(window) = ctx.windows.shared.get(rank) else {
            let what = format!("`mapa` to CTA {rank} of a cluster of {}", ctx.windows.shared.len());
            return ctx.fault(i, FaultKind::BadTarget(what), Vec::new());
        };
        let offset = match m.address.space {
            MemSpace::Generic => match rank_of(ctx, values[i]) {
                Some((_, offset)) => offset,
                None => values[i].wrapping_sub(ctx.cta.shared.block.base()),
            },
            _ => values[i] & ((1 << WINDOW_BITS) - 1),
        };
        values[i] = match m.address.space {
            MemSpace::Generic => window.block.base().wrapping_add(offset),
            _ => with_rank(ctx, rank as u32, offset),
        };
    }
    ctx.write(m.dst[0], &values, ctx.active);
    Flow::Next
}

/// `getctarank`
pub fn cta_rank(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m = &ctx.func.mems[op.x as usize];
    let values = ctx.doubles(m.src[0]);
    let mut ranks = [0; LANES];
    for i in lanes(ctx.active) {
        ranks[i] = match m.address.space {
            MemSpace::Generic => rank_of(ctx, values[i]).map_or(ctx.cta.rank, |r| r.0).into(),
            _ => rank_and_offset(ctx, values[i]).0,
        };
    }
    ctx.write(m.dst[0], &ranks, ctx.active);
    Flow::Next
}

/// `createpolicy`: yields an opaque value that nothing interprets.
pub fn policy(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m = &ctx.func.mems[op.x as usize];
    ctx.write(m.dst[0], &[0; LANES], ctx.active);
    Flow::Next
}
