//! Warp operations whose masks name lanes that do not arrive, have exited or do not exist, or leave out the lane itself
//! (manual, sections 9.7.9.6 `shfl.sync`, 9.7.13.2 and 9.7.13.9 to 9.7.13.14).

use super::payload::{Blame, Payload, Who};
use crate::random::Random;

fn operation(r: &mut Random, mask: &str) -> String {
    match r.below(14) {
        0 => format!("shfl.sync.idx.b32 %r0, %lane, {}, 31, {mask};", r.below(32)),
        1 => format!("shfl.sync.bfly.b32 %r0|%p2, %lane, 1, 31, {mask};"),
        2 => format!("shfl.sync.up.b32 %r0, %gid, 3, 0, {mask};"),
        3 => format!("shfl.sync.down.b32 %r0, %gid, %r3, 0x1c03, {mask};"),
        4 => format!("vote.sync.ballot.b32 %r0, %p1, {mask};"),
        5 => format!("vote.sync.all.pred %p2, %p1, {mask}; selp.u32 %r0, 1, 2, %p2;"),
        6 => format!("match.any.sync.b32 %r0, %r4, {mask};"),
        7 => format!("match.all.sync.b32 %r0|%p2, %r4, {mask};"),
        8 => format!("redux.sync.add.u32 %r0, %lane, {mask};"),
        9 => format!("redux.sync.xor.b32 %r0, %lane, {mask};"),
        10 => format!("elect.sync %r0|%p2, {mask};"),
        11 => format!("bar.warp.sync {mask};"),
        12 => "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %lane;".into(),
        _ => "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r4, %r4}, {%r4}, {%f0, %f1, %f2, %f3};".into(),
    }
}

/// Has the payload's lanes poll a word that the other lanes of their warp write.
fn late(b: &mut Payload) {
    b.module(".shared .align 4 .b8 turns[4];");
    b.body("POLL: ld.volatile.shared.u32 %r6, [turns]; setp.eq.u32 %p3, %r6, 0; @%p3 bra POLL;");
    b.rest("@!%executes st.volatile.shared.u32 [turns], 1;");
}

pub fn make(r: &mut Random, b: &mut Payload) {
    b.blame = Blame::Anybody;
    b.fix(
        r.pick(&[[1, 1, 1], [1, 1, 1], [2, 1, 1]]),
        r.pick(&[[32, 1, 1], [32, 1, 1], [64, 1, 1], [20, 1, 1], [33, 1, 1]]),
    );
    let threads = b.threads();
    let warp = r.below(threads.div_ceil(32) as usize) as u32;
    let exist = u32::MAX >> (32 - (threads - warp * 32).min(32));
    let come = match r.below(4) {
        0 => exist,
        1 => r.bits() as u32 & exist,
        2 => 0xffff & exist,
        _ => 1 << r.below(32) & exist,
    };
    let come = if come == 0 { exist } else { come };
    let cta = r.below(b.shape.grid[0] as usize) as u32;
    b.who = Some(Who::Lanes { cta, warp, mask: come });
    let mask = match r.below(9) {
        0 | 1 => come,
        2 => exist,
        3 => u32::MAX,
        4 => 0,
        5 => come & (come - 1),
        6 => come | 1 << r.below(32),
        7 => !come,
        _ => r.bits() as u32,
    };
    b.all("mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;");
    b.all(format!("setp.lt.u32 %p1, %lane, 9; mov.u32 %r3, {}; and.b32 %r4, %lane, 3;", r.pick(&[0, 1, 31, 32, 100])));
    let mask = match r.below(5) {
        // Lanes with different masks.
        0 => {
            b.all(format!("mov.u32 %r5, {mask:#x}; @%p1 mov.u32 %r5, {:#x};", r.bits() as u32 | come));
            "%r5".to_owned()
        }
        1 => {
            b.all(format!("mov.u32 %r5, {mask:#x};"));
            "%r5".into()
        }
        _ => format!("{mask:#x}"),
    };
    arrive(r, b, &mask);
    // Shuffles from lanes that do not participate are undefined.
    b.quiet = true;
}

/// Lets the lanes of the payload arrive at an operation, and the others elsewhere, later or not at all.
fn arrive(r: &mut Random, b: &mut Payload, mask: &str) {
    match r.below(8) {
        0..3 => {
            let text = operation(r, mask);
            b.body(text);
        }
        // The payload's lanes come later than the others: they poll a word that these write.
        6 => {
            late(b);
            let text = operation(r, mask);
            b.rest(text);
        }
        // The same, and one part has another operation before.
        7 => {
            late(b);
            let (one, two) = (operation(r, mask), operation(r, "0xffffffff"));
            b.rest(format!("@{}%executes bra JOIN; {one} JOIN: {two}", r.pick(&["", "!"])));
        }
        // The others arrive at another operation, of the same kind or not.
        3 => {
            let one = operation(r, mask);
            let other = if r.chance(50) { one.clone() } else { operation(r, mask) };
            b.body(format!("{one} bra JOIN;"));
            b.rest(format!("{other} JOIN:"));
        }
        // The others have exited.
        4 => {
            b.body("exit;");
            let text = operation(r, mask);
            b.rest(text);
        }
        _ => {
            let text = operation(r, mask);
            b.body(text);
            b.rest("@!%executes exit;");
            let text = operation(r, "0xffffffff");
            b.rest(text);
        }
    }
}
