//! Loads and stores of `.b128` elements (manual, sections 9.7.9.8 to 9.7.9.13).

use super::super::{
    code::{Dst, Flow, MemOp, NOWHERE, Op, Order, Shape},
    ctx::Ctx,
    state::lanes,
};
use super::address::{addresses, bad_access, find_allocation, observe};
use super::memory::LIMIT;
use crate::{
    AccessKind, LANES,
    lanes::{each, set_u128s, u128s},
    mem::{self, Scalar},
};
use std::sync::atomic::{Ordering, fence};

/// A load of `.b128` elements.
pub fn load(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m: &MemOp = &ctx.func.mems[op.x as usize];
    let size = m.count * 16;
    let mut at = [0; LANES];
    let region = match addresses(ctx, &m.address, (size, false), &mut at) {
        Ok(region) => region,
        Err(flow) => return flow,
    };
    observe(ctx, &m.address, &at, size, AccessKind::Load);
    let align = if m.straddles { 1 } else { size.next_power_of_two() };
    let mut values = [[0u128; LANES]; LIMIT];
    for i in lanes(ctx.active) {
        let found = find_allocation!(ctx, region, at[i], i).filter(|_| at[i].is_multiple_of(align.into()));
        let read = found.and_then(|a| match a.block.cells(at[i], m.count as usize) {
            Some(cells) => {
                values.iter_mut().zip(cells).for_each(|(values, cell)| values[i] = u128::get(cell));
                Some(())
            }
            None if m.straddles => values.iter_mut().take(m.count as usize).enumerate().try_for_each(|(k, values)| {
                let mut bytes = [0; 16];
                mem::load_bytes(&a.block, at[i] + 16 * k as u64, &mut bytes)?;
                values[i] = u128::from_le_bytes(bytes);
                Some(())
            }),
            None => None,
        });
        if read.is_none() {
            return bad_access(ctx, i, &m.address, region, at[i], (size, align), false);
        }
    }
    if m.order == Order::Acquire {
        fence(Ordering::Acquire);
    }
    for (d, values) in m.dst.iter().zip(&values) {
        put(ctx, *d, values);
    }
    Flow::Next
}

/// Writes 128-bit lanes to a register.
pub fn put(ctx: &mut Ctx<'_>, d: Dst, values: &[u128; LANES]) {
    if d.row == NOWHERE {
        return;
    }
    if d.shape != Shape::Quad {
        return ctx.write(d, &each(values, |v| v as u64), ctx.active);
    }
    let to = &mut ctx.regs[d.row as usize..d.row as usize + 4];
    let mut all = u128s(to);
    lanes(ctx.active).for_each(|i| all[i] = values[i]);
    set_u128s(to, &all);
}

/// A store of `.b128` elements.
pub fn store(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let m: &MemOp = &ctx.func.mems[op.x as usize];
    let size = m.count * 16;
    let mut at = [0; LANES];
    let region = match addresses(ctx, &m.address, (size, true), &mut at) {
        Ok(region) => region,
        Err(flow) => return flow,
    };
    observe(ctx, &m.address, &at, size, AccessKind::Store);
    let align = if m.straddles { 1 } else { size.next_power_of_two() };
    let values: Vec<[u128; LANES]> = m.src.iter().map(|s| ctx.quads(*s)).collect();
    if m.order == Order::Release {
        fence(Ordering::Release);
    }
    for i in lanes(ctx.active) {
        let found = find_allocation!(ctx, region, at[i], i).filter(|a| a.kind.writable());
        let written = found.filter(|_| at[i].is_multiple_of(align.into())).and_then(|a| {
            match a.block.cells(at[i], m.count as usize) {
                Some(cells) => {
                    cells.iter().zip(&values).for_each(|(cell, values)| u128::set(cell, values[i]));
                    Some(())
                }
                None if m.straddles => values.iter().enumerate().try_for_each(|(k, values)| {
                    mem::store_bytes(&a.block, at[i] + 16 * k as u64, &values[i].to_le_bytes())
                }),
                None => None,
            }
        });
        if written.is_none() {
            return bad_access(ctx, i, &m.address, region, at[i], (size, align), true);
        }
    }
    Flow::Next
}
