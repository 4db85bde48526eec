//! Asynchronous copies, barrier objects, matrices in shared memory, textures and tensor maps, with wrong addresses,
//! sizes and states (manual, sections 9.7.9.25, 9.7.13.15, 9.7.14.5, 9.7.10).

use super::payload::{Blame, Payload};
use crate::random::Random;

/// Loads an address in or around an array of 256 bytes in shared memory.
fn shared(r: &mut Random, b: &mut Payload, name: &str, to: &str) {
    b.module(format!(".shared .align 128 .b8 {name}[256];"));
    let at = r.pick(&[0i64, 0, 0, 16, 32, 240, 248, 256, 4096, 1 << 20, -16, -256, 4, 8, 1, 0x7fff_0000]);
    b.body(format!("mov.u32 {to}, {name}; add.s32 {to}, {to}, {at};"));
}

/// Loads an address in or around an array of 256 bytes in global memory.
fn global(r: &mut Random, b: &mut Payload, name: &str, to: &str) {
    b.module(format!(".global .align 128 .b8 {name}[256] = {{1, 2, 3, 4}};"));
    let at = r.pick(&[0i64, 0, 0, 16, 240, 244, 256, 320, -16, 4, 8, 1, 1 << 50]);
    b.body(format!("mov.u64 {to}, {name}; add.s64 {to}, {to}, {at};"));
}

pub fn make(r: &mut Random, b: &mut Payload) {
    let (place, source, object) = (b.name("place"), b.name("source"), b.name("object"));
    b.quiet = true;
    match r.below(13) {
        0..2 => small_copy(r, b, &place, &source),
        2..4 => bulk_copy(r, b, &place, &source, &object),
        4..7 => barrier_object(r, b, &place),
        7 => wait(r, b, &object),
        8..10 => matrix(r, b, &place),
        10 => texture(r, b, &object),
        11 => surface(r, b),
        _ => tensor_map(r, b, &place, &source, &object),
    }
}

/// `cp.async` of a few bytes.
fn small_copy(r: &mut Random, b: &mut Payload, place: &str, source: &str) {
    shared(r, b, place, "%r1");
    global(r, b, source, "%d1");
    b.body(r.pick(&[
        "cp.async.ca.shared.global [%r1], [%d1], 4;",
        "cp.async.ca.shared.global [%r1], [%d1], 8;",
        "cp.async.cg.shared.global [%r1], [%d1], 16;",
        "cp.async.ca.shared.global [%r1], [%d1], 8, 3;",
        "cp.async.cg.shared.global [%r1], [%d1], 16, 0;",
        "mov.u32 %r2, 99; cp.async.ca.shared.global [%r1], [%d1], 8, %r2;",
    ]));
    b.body("cp.async.commit_group; cp.async.wait_all;");
}

/// Bulk copies with a valid barrier object.
fn bulk_copy(r: &mut Random, b: &mut Payload, place: &str, source: &str, object: &str) {
    shared(r, b, place, "%r1");
    global(r, b, source, "%d1");
    b.module(format!(".shared .align 8 .b64 {object};"));
    let size = r.pick(&[0u32, 1, 8, 15, 16, 32, 128, 256, 272, 4096, 0x7fff_fff0, 0xffff_fff0]);
    b.body(format!("mov.u32 %r3, {object}; mbarrier.init.shared.b64 [%r3], 1; mov.u32 %r2, {size};"));
    b.body(r.pick(&[
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], %r2, [%r3];",
        "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], %r2; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1], [%r1], %r2; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
        "cp.async.bulk.prefetch.L2.global [%d1], %r2;",
    ]));
}

/// Barrier objects in every state.
fn barrier_object(r: &mut Random, b: &mut Payload, place: &str) {
    shared(r, b, place, "%r1");
    let init = r.pick(&["1", "2", "0", "33", "0xfffff", "0x100000", "0xffffffff"]);
    if r.chance(70) {
        b.body(format!("mov.u32 %r2, {init}; mbarrier.init.shared.b64 [%r1], %r2;"));
    }
    let operation = |r: &mut Random| {
        r.pick(&[
            "mbarrier.arrive.shared.b64 %d1, [%r1];",
            "mbarrier.arrive.shared.b64 %d1, [%r1], 3;",
            "mbarrier.arrive_drop.shared.b64 %d1, [%r1];",
            "mbarrier.arrive.noComplete.shared.b64 %d1, [%r1], 1;",
            "mbarrier.test_wait.shared.b64 %p1, [%r1], %d1;",
            "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0;",
            "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 1;",
            "mbarrier.pending_count.b64 %r5, %d1;",
            "mbarrier.inval.shared.b64 [%r1];",
            "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r1], 64;",
            "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r1], 64;",
            "mbarrier.arrive.expect_tx.shared.b64 %d1, [%r1], 0xfffff;",
            "mbarrier.init.shared.b64 [%r1], 5;",
            "st.shared.u64 [%r1], -1;",
            "cp.async.mbarrier.arrive.shared.b64 [%r1];",
            "mov.u64 %d1, -1;",
        ])
    };
    b.unordered = true;
    b.body("mov.u64 %d1, 0;");
    for _ in 0..1 + r.below(4) {
        let text = operation(r);
        b.body(text);
    }
    b.blame = Blame::Anybody;
}

/// Waits for a phase that completes or never does.
fn wait(r: &mut Random, b: &mut Payload, object: &str) {
    b.unordered = true;
    b.module(format!(".shared .align 8 .b64 {object};"));
    b.body(format!(
        "mbarrier.init.shared.b64 [{object}], {}; mbarrier.arrive.shared.b64 %d1, [{object}];",
        r.pick(&[1, 2])
    ));
    b.body(format!(
        "WAIT: {} @!%p1 bra WAIT;",
        r.pick(&[
            "mbarrier.test_wait.shared.b64 %p1, [OBJECT], %d1;",
            "mbarrier.try_wait.shared.b64 %p1, [OBJECT], %d1;",
            "mbarrier.try_wait.parity.shared.b64 %p1, [OBJECT], 0, 100;"
        ])
        .replace("OBJECT", object)
    ));
    b.blame = Blame::Anybody;
}

/// Matrices in shared memory.
fn matrix(r: &mut Random, b: &mut Payload, place: &str) {
    shared(r, b, place, "%r1");
    b.body(r.pick(&[
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r1];",
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r2, %r3}, [%r1];",
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};",
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%r2, %r3, %r4, %r5};",
        "mov.u32 %r6, 16; wmma.load.c.sync.aligned.m16n16k16.row.shared.f32 {%f0, %f1, %f2, %f3, %f0, %f1, %f2, %f3}, [%r1], %r6;",
    ]));
    b.blame = Blame::Anybody;
}

/// Textures with invalid handles and distant coordinates.
fn texture(r: &mut Random, b: &mut Payload, object: &str) {
    let handle = match r.below(3) {
        0 => {
            b.module(format!(".global .texref {object};"));
            object.to_owned()
        }
        1 => {
            b.body("mov.u64 %d1, %own;");
            "%d1".into()
        }
        _ => {
            b.body(format!("mov.u64 %d1, {};", r.bits() >> r.below(64)));
            "%d1".into()
        }
    };
    b.body(format!("mov.u32 %r1, {};", r.pick(&["0", "-1", "0x7fffffff", "100000"])));
    b.body(
        r.pick(&[
            "tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [HANDLE, {%r1}];",
            "tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [HANDLE, {%r1, %r1}];",
            "txq.width.b32 %r2, [HANDLE];",
        ])
        .replace("HANDLE", &handle),
    );
}

/// Surfaces with invalid handles.
fn surface(r: &mut Random, b: &mut Payload) {
    b.body(r.pick(&["mov.u64 %d1, %own;", "mov.u64 %d1, 0;", "mov.u64 %d1, 0x123456789;"]));
    b.body("mov.u32 %r1, 0;");
    b.body(r.pick(&[
        "suld.b.1d.b32.trap %r2, [%d1, {%r1}];",
        "sust.b.2d.b32.clamp [%d1, {%r1, %r1}], %r1;",
        "sured.b.add.1d.u32.trap [%d1, {%r1}], %r1;",
    ]));
}

/// Invalid tensor maps.
fn tensor_map(r: &mut Random, b: &mut Payload, place: &str, source: &str, object: &str) {
    shared(r, b, place, "%r1");
    global(r, b, source, "%d1");
    b.module(format!(".shared .align 8 .b64 {object};"));
    b.body(format!("mov.u32 %r3, {object}; mbarrier.init.shared.b64 [%r3], 1; mov.u32 %r2, 0;"));
    b.body(r.pick(&[
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, {%r2}], [%r3];",
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {%r2, %r2}], [%r1]; cp.async.bulk.commit_group;",
        "cp.async.bulk.prefetch.tensor.1d.L2.global [%d1, {%r2}];",
        "prefetch.tensormap [%d1];",
    ]));
}
