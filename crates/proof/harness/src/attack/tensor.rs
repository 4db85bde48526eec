//! Matrices by descriptors, tensor memory, asynchronous stores and what else a machine of a later generation has, with descriptors,
//! addresses and sizes that point anywhere (manual, sections 9.7.15, 9.7.16, 9.7.9.13 and 9.7.13.15).

use super::payload::{Blame, Payload, Who};
use crate::random::Random;

pub fn make(r: &mut Random, b: &mut Payload) {
    b.quiet = true;
    match r.below(10) {
        0..3 => warpgroup(r, b),
        3..7 => tensor_memory(r, b),
        _ => stores(r, b),
    }
}

/// A descriptor of a matrix in shared memory: any bits, or one whose address or strides lead out of the window.
fn descriptor(r: &mut Random) -> u64 {
    let fields = |start: u64, leading: u64, stride: u64, layout: u64| {
        start & 0x3fff | (leading & 0x3fff) << 16 | (stride & 0x3fff) << 32 | layout << 62
    };
    match r.below(4) {
        0 => r.bits(),
        1 => fields(r.bits(), r.bits(), r.bits(), r.bits() & 3),
        2 => fields(r.pick(&[0, 1, 8, 0x3fff]), r.pick(&[0, 1, 8, 64]), r.pick(&[0, 8, 64, 0x3fff]), r.bits() & 3),
        _ => fields(0, 8, 8, 0),
    }
}

/// Products of a warpgroup (section 9.7.15.5).
fn warpgroup(r: &mut Random, b: &mut Payload) {
    let name = b.name("matrix");
    let block = r.pick(&[[128, 1, 1], [128, 1, 1], [256, 1, 1], [32, 1, 1]]);
    b.fix(r.pick(&[[1, 1, 1], [2, 1, 1]]), block);
    b.who = Some(match r.below(4) {
        0 => Who::Lanes { cta: 0, warp: 0, mask: u32::MAX },
        1 => Who::One { gid: 0 },
        _ => Who::All,
    });
    b.module(format!(".shared .align 128 .b8 {name}[{}];", r.pick(&[256, 2048, 8192])));
    b.body("mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;");
    b.body(format!("mov.u64 %d1, {:#x}; mov.u64 %d2, {:#x};", descriptor(r), descriptor(r)));
    b.body("mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; setp.eq.u32 %p1, %r1, 0;");
    if r.chance(80) {
        b.body("wgmma.fence.sync.aligned;");
    }
    b.body(r.pick(&[
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d1, %d2, %p1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d1, %d2, %p1, -1, 1, 1, 1;",
        "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0, %f1, %f2, %f3}, %d1, %d2, %p1, 1, 1;",
        "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r1, %r2, %r3, %r4}, %d1, %d2, %p1;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%r1, %r2, %r3, %r4}, %d2, %p1, 1, 1, 0;",
    ]));
    b.body("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
    b.blame = Blame::Anybody;
}

/// Tensor memory (section 9.7.16).
fn tensor_memory(r: &mut Random, b: &mut Payload) {
    let (place, matrix) = (b.name("place"), b.name("matrix"));
    b.target = ("8.6", "sm_100a");
    b.fix(r.pick(&[[1, 1, 1], [2, 1, 1]]), r.pick(&[[32, 1, 1], [128, 1, 1], [128, 1, 1], [64, 1, 1]]));
    b.who = Some(match r.below(4) {
        0 => Who::One { gid: 0 },
        1 => Who::Lanes { cta: 0, warp: r.below(b.threads() as usize / 32) as u32, mask: u32::MAX },
        _ => Who::Lanes { cta: 0, warp: 0, mask: u32::MAX },
    });
    b.module(format!(".shared .align 8 .b8 {place}[16];"));
    b.module(format!(".shared .align 128 .b8 {matrix}[2048];"));
    let columns = r.pick(&["32", "64", "512", "0", "33", "16", "1024"]);
    b.body(format!("mov.u32 %r1, {place}; mov.u32 %r5, {columns}; mov.u32 %r2, 7; setp.eq.u32 %p1, %r2, 7;"));
    if r.chance(70) {
        b.body("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], %r5; ld.shared.u32 %r3, [%r1];");
    } else {
        b.body("mov.u32 %r3, 0;");
    }
    if r.chance(60) {
        b.body(format!("add.u32 %r3, %r3, {};", r.pick(&["0", "1", "32", "511", "0x10000", "0x200000", "0x7fffffff"])));
    }
    b.body(format!("mov.u64 %d1, {:#x}; mov.u64 %d2, {:#x};", descriptor(r), descriptor(r)));
    let any = r.bits() & 0xffff_ffff;
    b.body(format!("mov.u32 %r4, {:#x};", r.pick(&[0x0410_0010, 0, any])));
    for _ in 0..1 + r.below(3) {
        b.body(r.pick(&[
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r3]; tcgen05.wait::ld.sync.aligned;",
            "tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r2}, [%r3]; tcgen05.wait::ld.sync.aligned;",
            "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r2}; tcgen05.wait::st.sync.aligned;",
            "tcgen05.mma.cta_group::1.kind::f16 [%r3], %d1, %d2, %r4, %p1;",
            "tcgen05.mma.cta_group::1.kind::i8 [%r3], %d1, %d2, %r4, %p1;",
            "tcgen05.cp.cta_group::1.128x256b [%r3], %d1;",
            "tcgen05.shift.cta_group::1.down [%r3];",
            "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];",
        ]));
    }
    if r.chance(70) {
        b.body(r.pick(&[
            "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, %r5;",
            "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;",
            "mov.u32 %r3, 77; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, %r5;",
        ]));
    }
    b.blame = Blame::Anybody;
}

/// Stores that complete later, and other operations on addresses (sections 9.7.9.12, 9.7.9.13, 9.7.9.27 and 9.7.13.16).
fn stores(r: &mut Random, b: &mut Payload) {
    let (place, object) = (b.name("place"), b.name("object"));
    b.module(format!(".shared .align 16 .b8 {place}[64];"));
    b.module(format!(".shared .align 8 .b64 {object};"));
    b.module(format!(".global .align 128 .b8 {place}_g[256] = {{1, 2, 3}};"));
    let at = r.pick(&[0i64, 0, 4, 8, 60, 64, 1, -8, 4096, 1 << 24, 0x7fff_0000]);
    b.body(format!("mov.u32 %r1, {place}; add.s32 %r1, %r1, {at}; mov.u32 %r3, {object}; mov.u32 %r2, 5;"));
    let far = r.pick(&[0i64, 0, 8, 16, 240, 256, -8, 1, 1 << 50]);
    b.body(format!("mov.u64 %d1, {place}_g; add.s64 %d1, %d1, {far}; mov.u64 %d2, 9;"));
    if r.chance(70) {
        b.body("mbarrier.init.shared.b64 [%r3], 1;");
    }
    if r.chance(30) {
        b.body(format!("add.u32 %r3, %r3, {};", r.pick(&["4", "8", "-8", "4096", "0x1000000", "1"])));
    }
    let text = r.pick(&[
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u64 [%r1], {%d2, %d2}, [%r3];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%r1], %d2, [%r3];",
        "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %d2;",
        "tensormap.replace.tile.rank.global.b1024.b32 [%d1], 7;",
        "tensormap.replace.tile.box_dim.global.b1024.b32 [%d1], 4, %r2;",
        "multimem.ld_reduce.relaxed.gpu.global.add.u32 %r2, [%d1];",
        "multimem.red.relaxed.gpu.global.add.u32 [%d1], %r2;",
        "discard.global.L2 [%d1], 128;",
        "applypriority.global.L2::evict_normal [%d1], 128;",
        "atom.global.cas.b128 %big, [%d1], %big, %big;",
        "atom.exch.b128 %big, [%d1], %big;",
        "ld.global.b128 %big, [%d1];",
        "st.shared.b128 [%r1], %big;",
        "ld.volatile.shared.v2.u64 {%d3, %d4}, [%r1];",
    ]);
    if text.contains("%big") {
        b.body("{ .reg .b128 %big; mov.b128 %big, {%d2, %d2};");
        b.body(format!("{text} }}"));
    } else {
        b.body(text);
    }
}
