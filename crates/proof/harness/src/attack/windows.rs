//! Addresses of one space used in another, and generic addresses at the bounds of windows (manual, sections 5.1,
//! 9.7.9.20 `cvta`).

use super::payload::Payload;
use crate::random::Random;

/// Loads the address of an object into `%d1`, in its space or as a generic one. Returns the space.
fn source(r: &mut Random, b: &mut Payload, name: &str) -> &'static str {
    let space = r.pick(&["global", "const", "shared", "local"]);
    match space {
        "local" => b.body(format!(".local .align 16 .b8 {name}[64]; st.local.u32 [{name}], 5;")),
        "const" => b.module(format!(".const .align 16 .b8 {name}[64] = {{1, 2, 3}};")),
        _ => b.module(format!(".{space} .align 16 .b8 {name}[64];")),
    }
    b.body(format!("mov.u64 %d1, {name};"));
    if r.chance(50) {
        b.body(format!("cvta.{space}.u64 %d1, %d1;"));
    }
    space
}

pub fn make(r: &mut Random, b: &mut Payload) {
    let name = b.name("thing");
    match r.below(11) {
        0..4 => crossing(r, b, &name),
        4 | 5 => edge(r, b),
        6 => local_of_another(r, b, &name),
        7 | 8 => shared_of_another_cta(r, b, &name),
        9 => truncated(r, b),
        _ => null(r, b),
    }
}

/// Any address, any access.
fn crossing(r: &mut Random, b: &mut Payload, name: &str) {
    let of = source(r, b, name);
    let how = r.pick(&["", ".global", ".shared", ".local", ".const"]);
    if r.chance(30) {
        let to = r.pick(&["global", "shared", "local", "const"]);
        b.body(format!("cvta.to.{to}.u64 %d1, %d1;"));
        // The distance between two allocations of the host may be an offset inside a window.
        b.loose = to != of && to != "global";
    }
    let store = how != ".const" && r.chance(50);
    b.body(match store {
        true => format!("st{how}.u32 [%d1], 5;"),
        false => format!("ld{how}.u32 %r0, [%d1];"),
    });
    // Where offsets of two windows coincide, the contents are unspecified.
    b.quiet = of != "global";
}

/// A generic address near a window's bounds.
fn edge(r: &mut Random, b: &mut Payload) {
    let space = r.pick(&["shared", "local"]);
    let offset = r.pick(&[
        -1i64,
        -4,
        -16,
        0,
        1 << 16,
        1 << 18,
        1 << 20,
        (1 << 24) - 4,
        1 << 24,
        (1 << 31),
        (1 << 32) - 4,
        1 << 32,
        -(1 << 32),
    ]);
    b.body(format!("mov.u64 %d1, 0; cvta.{space}.u64 %d1, %d1; add.s64 %d1, %d1, {offset};"));
    b.body(match r.below(5) {
        0 => "st.u32 [%d1], 5;",
        1 => "atom.add.u32 %r1, [%d1], 1;",
        2 => "st.v4.u32 [%d1], {%r0, %r0, %r0, %r0};",
        3 => "ld.u64 %d0, [%d1];",
        _ => "ld.u32 %r0, [%d1];",
    });
    b.quiet = true;
    // The windows lie among host allocations.
    b.loose = (1 << 16..1 << 40).contains(&offset.unsigned_abs());
}

/// A local address used by another thread denotes that thread's own memory, or none.
fn local_of_another(r: &mut Random, b: &mut Payload, name: &str) {
    let slot = b.name("slot");
    b.module(format!(".shared .align 8 .b64 {slot};"));
    b.all(format!(".local .align 16 .b8 {name}[64]; st.local.u32 [{name}], %gid;"));
    b.all(format!("mov.u64 %d1, {name}; cvta.local.u64 %d1, %d1; setp.ne.u32 %p1, %lin, 0;"));
    b.all(format!("@!%p1 st.shared.u64 [{slot}], %d1; bar.sync 0; ld.shared.u64 %d2, [{slot}];"));
    b.body(r.pick(&["ld.u32 %r0, [%d2];", "st.u32 [%d2], 7; ld.u32 %r0, [%d2];", "atom.add.u32 %r0, [%d2], 7;"]));
    b.quiet = true;
    b.loose = true;
}

/// Shared memory of other CTAs of the cluster, existing or not.
fn shared_of_another_cta(r: &mut Random, b: &mut Payload, name: &str) {
    b.module(format!(".shared .align 16 .b8 {name}[64];"));
    b.fix([4, 1, 1], r.pick(&[[1, 1, 1], [32, 1, 1], [64, 1, 1]]));
    b.shape.cluster = r.pick(&[1, 2, 4]);
    b.all(format!("st.shared.u32 [{name}], %gid; barrier.cluster.arrive; barrier.cluster.wait;"));
    let rank = r.pick(&["0", "1", "2", "3", "4", "15", "0xffffffff"]);
    let way = r.below(3);
    b.body(match way {
        0 => format!("mov.u32 %r1, {name}; mov.u32 %r2, {rank}; mapa.shared::cluster.u32 %r1, %r1, %r2;"),
        1 => format!("mov.u64 %d1, {name}; cvta.shared.u64 %d1, %d1; mapa.u64 %d1, %d1, {rank};"),
        _ => format!(
            "mov.u32 %r1, {name}; add.u32 %r1, %r1, {};",
            r.pick(&[1u32 << 24, 1 << 25, 0x0300_0000, 0x1000_0000, 0x8000_0000])
        ),
    });
    let at = if way == 1 { ("", "%d1") } else { (".shared::cluster", "%r1") };
    b.body(match r.below(3) {
        0 => format!("ld{}.u32 %r3, [{}];", at.0, at.1),
        1 => format!("st{}.u32 [{}+4], 9;", at.0, at.1),
        _ => format!("atom{}.add.u32 %r3, [{}+8], 9;", at.0, at.1),
    });
    b.rest("barrier.cluster.arrive; barrier.cluster.wait;");
    b.quiet = true;
}

/// A truncated pointer.
fn truncated(r: &mut Random, b: &mut Payload) {
    b.body(r.pick(&[
        "cvt.u32.u64 %r1, %own; cvt.u64.u32 %d1, %r1;",
        "shr.u64 %d1, %own, 32;",
        "not.b64 %d1, %own;",
        "neg.s64 %d1, %own;",
        "shl.b64 %d1, %own, 17;",
        "mov.u64 %d1, 0x7fffffff;",
        "mov.u64 %d1, 0xdeadbeefdeadbeef;",
    ]));
    b.body(r.pick(&[
        "ld.global.u8 %r0, [%d1];",
        "st.u8 [%d1], 4;",
        "red.global.add.u32 [%d1], 4;",
        "ld.u32 %r0, [%d1];",
    ]));
    // The effect of a corrupted host address is unspecified.
    (b.quiet, b.loose) = (true, true);
}

/// Null and nearby addresses.
fn null(r: &mut Random, b: &mut Payload) {
    let at = r.pick(&[0i64, 4, 8, 256, 4096, 65_536, -4, -8, -256, 1 << 47, 1 << 48, (1 << 47) - 8]);
    b.body(format!("mov.u64 %d1, {at};"));
    b.body(r.pick(&[
        "ld.global.u32 %r0, [%d1];",
        "st.global.u32 [%d1], 4;",
        "ld.u32 %r0, [%d1];",
        "st.v4.u32 [%d1], {%r0, %r0, %r0, %r0};",
        "atom.add.u32 %r0, [%d1], 1;",
        "ld.global.nc.v4.f32 {%f0, %f1, %f2, %f3}, [%d1];",
    ]));
}
