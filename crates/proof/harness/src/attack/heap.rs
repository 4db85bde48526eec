//! Misuse of device `malloc` and `free` (CUDA C++ Programming Guide, "Dynamic Global Memory Allocation and
//! Operations").

use super::payload::{Blame, Payload, Who};
use crate::random::Random;

const MALLOC: &str = ".extern .func (.param .b64 r) malloc (.param .b64 a);";
const FREE: &str = ".extern .func free (.param .b64 a);";

/// Code that loads a new block's address into a register.
fn malloc(to: &str, bytes: &str) -> String {
    format!(
        "{{ .param .b64 a; .param .b64 p; st.param.b64 [a], {bytes}; call (p), malloc, (a); ld.param.b64 {to}, [p]; }}"
    )
}

fn free(from: &str) -> String {
    format!("{{ .param .b64 a; st.param.b64 [a], {from}; call free, (a); }}")
}

/// A 4-byte access at the address in a register; what it reads is kept only sometimes.
fn touch(r: &mut Random, at: &str, b: &mut Payload) {
    let space = r.pick(&["", ".global"]);
    b.body(match r.below(6) {
        0 => format!("st{space}.u32 [{at}], 5;"),
        1 => format!("st{space}.v4.u32 [{at}], {{%gid, %gid, %gid, %gid}};"),
        2 => format!("atom{space}.add.u32 %r1, [{at}], 1;"),
        3 => format!("red{space}.add.u32 [{at}], 1;"),
        4 => format!("ld.volatile{space}.u32 %r1, [{at}];"),
        _ => format!("ld{space}.u32 %r1, [{at}];"),
    });
}

pub fn make(r: &mut Random, b: &mut Payload) {
    b.module(MALLOC);
    b.module(FREE);
    // Blocks of all threads together fit on the heap: which thread finds it full would depend on the schedule.
    let bytes = r.pick(&["0", "1", "16", "100", "2000", "4000"]);
    match r.below(13) {
        0 | 1 => double_free(r, b, bytes),
        2 => free_inside(r, b),
        3 | 4 => free_foreign(r, b),
        5 => use_after_free(r, b, bytes),
        6 | 7 => use_after_free_in_loop(r, b),
        8 | 9 => free_by_another(r, b),
        10 => free_before_last_cta(b),
        11 => too_large(r, b),
        _ => until_full(r, b),
    }
}

/// Double free, immediately or with other operations in between.
fn double_free(r: &mut Random, b: &mut Payload, bytes: &str) {
    b.body(malloc("%d1", bytes));
    b.body(free("%d1"));
    if r.chance(50) {
        b.body(malloc("%d2", r.pick(&["64", "300000"])));
        // The address may have been reused.
        b.loose = true;
    }
    b.body(free("%d1"));
}

/// Frees an address that is not the first byte of the block.
fn free_inside(r: &mut Random, b: &mut Payload) {
    b.body(malloc("%d1", "64"));
    b.body(format!("add.u64 %d2, %d1, {};", r.pick(&[1, 4, 8, 16, 63, 64, 128, -1, -16])));
    b.body(free("%d2"));
}

/// Frees an address that `malloc` did not return.
fn free_foreign(r: &mut Random, b: &mut Payload) {
    let name = b.name("thing");
    let what = match r.below(9) {
        0 => "mov.u64 %d1, %own;".to_owned(),
        1 => "mov.u64 %d1, %input;".into(),
        2 => {
            b.module(format!(".global .align 8 .b8 {name}[64];"));
            format!("mov.u64 %d1, {name};")
        }
        3 => {
            b.module(format!(".const .align 8 .b8 {name}[64];"));
            format!("mov.u64 %d1, {name}; cvta.const.u64 %d1, %d1;")
        }
        4 => {
            b.module(format!(".shared .align 8 .b8 {name}[64];"));
            format!("mov.u64 %d1, {name}; cvta.shared.u64 %d1, %d1;")
        }
        5 => format!(".local .align 8 .b8 {name}[64]; mov.u64 %d1, {name}; cvta.local.u64 %d1, %d1;"),
        6 => {
            b.module(format!(".func {name}() {{ ret; }}"));
            format!("mov.u64 %d1, {name};")
        }
        7 => format!("mov.u64 %d1, {};", r.bits() >> r.below(20)),
        _ => format!("mov.u64 %d1, {};", r.pick(&[0u64, 1, 8, 16, 4096, u64::MAX, 1 << 63])),
    };
    b.body(what);
    b.body(free("%d1"));
}

/// An access after the free.
fn use_after_free(r: &mut Random, b: &mut Payload, bytes: &str) {
    b.body(malloc("%d1", bytes.max("16")));
    b.body("st.u32 [%d1], 1;");
    b.body(free("%d1"));
    touch(r, "%d1", b);
}

/// An access that is valid until a later iteration frees the block.
fn use_after_free_in_loop(r: &mut Random, b: &mut Payload) {
    let bytes = r.pick(&["16", "4000"]);
    b.body(malloc("%d1", bytes));
    b.body("mov.u32 %r2, 0;");
    b.body("AGAIN:");
    touch(r, "%d1", b);
    b.body(format!("add.u32 %r2, %r2, 1; setp.eq.u32 %p1, %r2, {};", 1 + r.below(3)));
    b.body("@!%p1 bra LATER;");
    b.body(free("%d1"));
    b.body("LATER: setp.lt.u32 %p1, %r2, 6; @%p1 bra AGAIN;");
}

/// One thread frees, another one accesses.
fn free_by_another(r: &mut Random, b: &mut Payload) {
    let slot = b.name("slot");
    b.module(format!(".shared .align 8 .b64 {slot};"));
    // Both must exist.
    b.fixed = true;
    let (one, other) = (r.below(b.threads() as usize), r.below(b.threads() as usize));
    b.all(format!("setp.ne.u32 %p1, %lin, {one}; @%p1 bra GIVEN;"));
    b.all(malloc("%d1", r.pick(&["16", "200000"])));
    b.all(format!("st.shared.u64 [{slot}], %d1;"));
    b.all(format!("GIVEN: bar.sync 0; ld.shared.u64 %d1, [{slot}];"));
    b.all("ld.u32 %r1, [%d1]; bar.sync 0;");
    b.all(format!("setp.ne.u32 %p1, %lin, {other}; @%p1 bra TAKEN;"));
    b.all(free("%d1"));
    b.all("TAKEN: bar.sync 0;");
    touch(r, "%d1", b);
}

/// The last CTA uses what another one has freed.
fn free_before_last_cta(b: &mut Payload) {
    let (slot, count) = (b.name("slot"), b.name("count"));
    b.module(format!(".global .align 8 .b64 {slot};"));
    b.module(format!(".global .align 4 .b32 {count};"));
    b.fix([4, 1, 1], [32, 1, 1]);
    b.all("setp.ne.u32 %p1, %lin, 0; @%p1 bra WAIT;");
    b.all(format!("atom.acq_rel.gpu.global.add.u32 %r1, [{count}], 1;"));
    b.all("setp.ne.u32 %p2, %r1, 0; @%p2 bra SECOND;");
    b.all(malloc("%d1", "64"));
    b.all("st.u32 [%d1], 1;");
    b.all(format!("st.release.gpu.global.u64 [{slot}], %d1; bra WAIT;"));
    b.all(format!("SECOND: ld.acquire.gpu.global.u64 %d1, [{slot}]; setp.eq.u64 %p2, %d1, 0; @%p2 bra SECOND;"));
    b.all("ld.u32 %r2, [%d1];");
    b.all("setp.ne.u32 %p2, %r1, 3; @%p2 bra WAIT;");
    b.all(free("%d1"));
    b.all("ld.u32 %r2, [%d1];");
    b.all("WAIT: bar.sync 0;");
    (b.who, b.blame, b.quiet) = (Some(Who::One { gid: 0 }), Blame::Anybody, true);
    // Earlier CTAs may still read it.
    b.loose = true;
}

/// Excessive sizes.
fn too_large(r: &mut Random, b: &mut Payload) {
    let size = r.pick(&[
        "0x7fffffffffffffff",
        "0xffffffffffffffff",
        "0x100000000",
        "0xfffffffffffffff0",
        "8388609",
        "9000000",
    ]);
    b.body(malloc("%d1", size));
    b.body("setp.eq.u64 %p1, %d1, 0; selp.u32 %r0, 1, 2, %p1;");
    if r.chance(40) {
        touch(r, "%d1", b);
    }
}

/// Allocates until the heap is full.
fn until_full(r: &mut Random, b: &mut Payload) {
    b.body("mov.u32 %r2, 0;");
    b.body("AGAIN:");
    b.body(malloc("%d1", "1000000"));
    b.body("add.u32 %r2, %r2, 1; setp.ne.u64 %p1, %d1, 0; setp.lt.and.u32 %p1, %r2, 50, %p1; @%p1 bra AGAIN;");
    if r.chance(50) {
        b.body("st.u32 [%d1], 1;");
    } else {
        b.quiet = true;
    }
}
