//! Pure rows: the functions of [`crate::sem`] mapped over a group.

use super::super::{
    code::{Dst, Flow, NOWHERE, Op, Shape, Src},
    ctx::Ctx,
    state::Select,
};
use crate::{
    LANES, Row,
    lanes::{u32s, u32s_mut, u64s, u64s_mut},
};

/// Copies the lanes of `mask`.
#[inline(always)]
pub fn merge(select: &mut Select, to: &mut [Row], from: &[Row], shape: Shape, mask: u32) {
    match shape {
        Shape::Word => select.merge_words(u32s_mut(to), u32s(from), mask),
        Shape::Double => select.merge_doubles(u64s_mut(to), u64s(from), mask),
        Shape::Quad => {
            let (to, from): (&mut [u64], &[u64]) = (bytemuck::cast_slice_mut(to), bytemuck::cast_slice(from));
            for i in (0..LANES).filter(|i| mask >> i & 1 == 1) {
                to[2 * i..2 * i + 2].copy_from_slice(&from[2 * i..2 * i + 2]);
            }
        }
        Shape::Pred => to[0].0[0] = to[0].0[0] & !mask | from[0].0[0] & mask,
    }
}

/// Copies all lanes, row by row and inline: a library call costs more than such short copies.
#[inline(always)]
fn copy_rows(to: &mut [Row], from: &[Row], shape: Shape) {
    match shape {
        Shape::Pred => to[0].0[0] = from[0].0[0],
        Shape::Word => to[0] = from[0],
        Shape::Double | Shape::Quad => to.iter_mut().zip(from).for_each(|(t, f)| *t = *f),
    }
}

/// A pure row with `N` sources and one destination.
#[inline(always)]
fn masked<const N: usize>(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let variant = ctx.func.variant(op);
    // A loop, since `array::from_fn` is not always inlined.
    let mut src: [&[Row]; N] = [&[]; N];
    for i in 0..N {
        src[i] = op.src[i].of(&ctx.regs, &ctx.func.consts);
    }
    let n = op.shape.rows();
    let warp = &mut *ctx.warp;
    let result = &mut warp.scratch[..n];
    (op.pure)(variant, ctx.active, &src, result);
    let to = &mut ctx.regs[op.dst as usize..op.dst as usize + n];
    if ctx.active == ctx.full {
        copy_rows(to, result, op.shape);
    } else {
        merge(&mut warp.select, to, result, op.shape, ctx.active);
    }
    Flow::Next
}

/// The same if the destination shares no row with a source: with all lanes active, the function writes to it directly.
#[inline(always)]
fn direct<const N: usize>(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    if ctx.active != ctx.full {
        return masked::<N>(ctx, op);
    }
    let variant = ctx.func.variant(op);
    let (d, n) = (op.dst as usize, op.shape.rows());
    let (low, rest) = ctx.regs.split_at_mut(d);
    let (result, high) = rest.split_at_mut(n);
    let consts = &ctx.func.consts;
    let get = |s: Src| {
        let (at, k) = (s.row(), s.rows());
        match () {
            _ if s.is_const() => &consts[at..at + k],
            _ if at < d => &low[at..at + k],
            _ => &high[at - d - n..][..k],
        }
    };
    let mut src: [&[Row]; N] = [&[]; N];
    for i in 0..N {
        src[i] = get(op.src[i]);
    }
    (op.pure)(variant, ctx.active, &src, result);
    Flow::Next
}

pub fn masked0(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    masked::<0>(ctx, op)
}
pub fn masked1(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    masked::<1>(ctx, op)
}
pub fn masked2(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    masked::<2>(ctx, op)
}
pub fn masked3(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    masked::<3>(ctx, op)
}
pub fn direct1(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    direct::<1>(ctx, op)
}
pub fn direct2(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    direct::<2>(ctx, op)
}
pub fn direct3(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    direct::<3>(ctx, op)
}

/// A pure row with any number of sources and destinations.
pub fn wide(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    const LIMIT: usize = 40;
    let table = &ctx.func.operand_lists[op.x as usize];
    let variant = ctx.func.variant(op);
    let mut src: [&[Row]; LIMIT] = [&[]; LIMIT];
    if table.src.len() > LIMIT {
        return ctx.bug("a pure row has more than forty sources");
    }
    for (to, s) in src.iter_mut().zip(&table.src) {
        *to = s.of(&ctx.regs, &ctx.func.consts);
    }
    let rows: usize = table.dst.iter().map(|d| d.shape.rows()).sum();
    let warp = &mut *ctx.warp;
    let results = &mut warp.scratch[..rows];
    (op.pure)(variant, ctx.active, &src[..table.src.len()], results);
    let mut from = &results[..];
    for Dst { row, shape, .. } in &table.dst {
        let (result, rest) = from.split_at(shape.rows());
        from = rest;
        if *row != NOWHERE {
            merge(
                &mut warp.select,
                &mut ctx.regs[*row as usize..*row as usize + shape.rows()],
                result,
                *shape,
                ctx.active,
            );
        }
    }
    Flow::Next
}

/// `mov` between registers of one shape.
pub fn copy(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let n = op.shape.rows();
    let (d, s) = (op.dst as usize, op.src[0]);
    if ctx.active == ctx.full {
        if s.is_const() {
            ctx.regs[d..d + n].copy_from_slice(&ctx.func.consts[s.row()..s.row() + n]);
        } else {
            ctx.regs.copy_within(s.row()..s.row() + n, d);
        }
        return Flow::Next;
    }
    masked::<1>(ctx, op)
}

/// Inverts the predicate of an operand `!p` into a temporary.
pub fn invert(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let truth = ctx.pred(op.src[0]);
    let word = &mut ctx.regs[op.dst as usize].0[0];
    *word = *word & !ctx.mask | !truth & ctx.mask;
    Flow::Next
}
