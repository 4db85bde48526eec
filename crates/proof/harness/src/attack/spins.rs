//! Loops that poll memory, forever or until another thread writes (manual, section 8.9 and "independent thread
//! scheduling").

use super::payload::{Blame, Payload, Who};
use crate::random::Random;

/// Code that loads the flag into `%r3`.
fn poll(r: &mut Random, flag: &str, space: &str) -> String {
    match r.below(12) {
        0 => format!("ld.volatile.{space}.u32 %r3, [{flag}];"),
        1 => format!("ld.relaxed.gpu.{space}.u32 %r3, [{flag}];"),
        2 => format!("ld.acquire.gpu.{space}.u32 %r3, [{flag}];"),
        3 => format!("atom.{space}.add.u32 %r3, [{flag}], 0;"),
        4 => format!("atom.{space}.or.b32 %r3, [{flag}], 0;"),
        5 => format!("atom.{space}.and.b32 %r3, [{flag}], 0xffffffff;"),
        6 => format!("atom.{space}.max.u32 %r3, [{flag}], 0;"),
        7 => format!("atom.{space}.cas.b32 %r3, [{flag}], 0, 0;"),
        8 => format!("atom.acquire.gpu.{space}.cas.b32 %r3, [{flag}], 9, 9;"),
        9 => format!("atom.{space}.xor.b32 %r3, [{flag}], 0;"),
        10 => format!("mov.u64 %d3, {flag}; cvta.{space}.u64 %d3, %d3; ld.volatile.u32 %r3, [%d3];"),
        _ => format!("mov.u64 %d3, {flag}; cvta.{space}.u64 %d3, %d3; atom.add.u32 %r3, [%d3], 0;"),
    }
}

fn signal(r: &mut Random, flag: &str, space: &str) -> String {
    match r.below(5) {
        0 => format!("st.volatile.{space}.u32 [{flag}], 1;"),
        1 => format!("st.release.gpu.{space}.u32 [{flag}], 1;"),
        2 => format!("atom.{space}.exch.b32 %r4, [{flag}], 1;"),
        3 => format!("red.{space}.add.u32 [{flag}], 1;"),
        _ => format!("st.relaxed.sys.{space}.u32 [{flag}], 1;"),
    }
}

/// An atomic operation whose result nobody reads, and that leaves memory as it is, changes it once, or every time.
fn unread(r: &mut Random, flag: &str, space: &str) -> String {
    let (op, operand) = r.pick(&[
        ("add.u32", "0"),
        ("add.u32", "1"),
        ("or.b32", "1"),
        ("and.b32", "-1"),
        ("xor.b32", "0"),
        ("max.s32", "0x80000000"),
        ("min.u32", "-1"),
        ("exch.b32", "7"),
        ("inc.u32", "0"),
        ("dec.u32", "0"),
        ("add.f32", "0f00000000"),
    ]);
    let result = if op.ends_with("f32") { "%f1" } else { "%r4" };
    match op.starts_with("exch") || r.chance(50) {
        true => format!("atom.{space}.{op} {result}, [{flag}], {operand};"),
        false => format!("red.{space}.{op} [{flag}], {operand};"),
    }
}

/// A loop that carries a register, accesses hardly any memory and is never left: counters that miss their bound or wrap around, walks
/// that never come to a value, tests that nothing changes.
fn endless(r: &mut Random) -> String {
    let odd = 1 + 2 * r.below(500);
    let again = "@%p1 bra AGAIN;";
    match r.below(10) {
        0 => format!("mov.u32 %r3, {}; AGAIN: add.u32 %r3, %r3, 2; setp.ne.u32 %p1, %r3, {odd}; {again}", odd + 1),
        1 => format!("mov.u32 %r3, %lane; AGAIN: add.u32 %r3, %r3, {odd}; setp.ge.u32 %p1, %r3, 0; {again}"),
        2 => format!("mov.u32 %r3, 0; AGAIN: sub.s32 %r3, %r3, {odd}; setp.le.s32 %p1, %r3, 0x7fffffff; {again}"),
        3 => format!("setp.ne.u32 %p1, %lane, {}; AGAIN: add.u32 %r3, %r3, {odd}; {again}", 32 + odd),
        4 => format!(
            "mov.u32 %r3, {odd}; AGAIN: shl.b32 %r4, %r3, 13; xor.b32 %r3, %r3, %r4; shr.u32 %r4, %r3, 17; xor.b32 %r3, %r3, %r4; \
             shl.b32 %r4, %r3, 5; xor.b32 %r3, %r3, %r4; setp.ne.u32 %p1, %r3, 0; {again}"
        ),
        5 => format!(
            "mov.u32 %r3, %tid.x; AGAIN: mad.lo.u32 %r3, %r3, {}, 6; and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 0; {again}",
            2 * odd
        ),
        6 => format!("mov.u64 %d3, {odd}; AGAIN: add.u64 %d3, %d3, 1; setp.ne.u64 %p1, %d3, -1; {again}"),
        7 => format!(
            "mov.f32 %f1, 0f3F800000; AGAIN: add.f32 %f1, %f1, 0f3F800000; setp.lt.f32 %p1, %f1, 0f7F000000; {again}"
        ),
        8 => format!(
            "AGAIN: st.global.u32 [%own+4], %r3; add.u32 %r3, %r3, {odd}; setp.eq.u32 %p1, %lane, %lane; {again}"
        ),
        _ => format!("AGAIN: add.u32 %r3, %r3, {odd}; setp.gt.u32 %p1, %r3, %r3; @%p1 bra LEFT; bra AGAIN; LEFT:"),
    }
}

/// Some threads never leave a loop, while others do something that ends the launch, or end.
fn besides(r: &mut Random, b: &mut Payload) {
    b.quiet = true;
    let (grid, block) =
        r.pick(&[([1, 1, 1], [32, 1, 1]), ([1, 1, 1], [96, 1, 1]), ([3, 1, 1], [32, 1, 1]), ([2, 1, 1], [64, 1, 1])]);
    b.fix(grid, block);
    b.body(match r.below(10) {
        0 => "trap;",
        1 => "exit;",
        2 => "ld.global.u32 %r4, [%own+2];",
        3 => "mov.u64 %d4, 8; ld.global.u32 %r4, [%d4];",
        4 => "mov.u32 %r4, 0x100000; ld.shared.u32 %r4, [%r4];",
        5 => "brkpt;",
        6 => "bar.sync 1, 2048;",
        _ => "st.global.u32 [%own+0x10000000], %gid;",
    });
    let block = block[0];
    let threads = grid[0] * block;
    let gid = r.below(threads as usize) as u32;
    b.who = Some(match r.below(3) {
        0 => Who::Lanes { cta: gid / block, warp: gid % block / 32, mask: 0x8421_0842u32.rotate_left(gid) },
        _ => Who::One { gid },
    });
    let after = r.chance(30);
    let endless = endless(r);
    // The loop lies before the fault in the code, or behind it.
    b.rest(if after { format!("@%executes bra AFTER; {endless} AFTER:") } else { endless.clone() });
    if !after {
        // Those that come out of the payload would loop too.
        b.body("bra OUT;");
        b.rest("OUT:");
    }
}

pub fn make(r: &mut Random, b: &mut Payload) {
    if r.chance(30) {
        return besides(r, b);
    }
    let flag = b.name("flag");
    let space = r.pick(&["global", "shared"]);
    b.module(format!(".{space} .align 4 .b32 {flag};"));
    b.blame = Blame::Anybody;
    b.quiet = true;
    let sleep = if r.chance(15) { "nanosleep.u32 20;" } else { "" };
    let ready = match space {
        "shared" => format!("st.shared.u32 [{flag}], 0; bar.sync 0;"),
        _ => String::new(),
    };
    b.all(ready);
    let polls = poll(r, &flag, space);
    match r.below(8) {
        // Nothing that the loop finds ends it.
        7 => {
            let acts = unread(r, &flag, space);
            let counts = r.pick(&["", "", "add.u32 %r4, %r4, 1;", "xor.b32 %r4, %r4, 1;"]);
            b.body(format!(
                "mov.u32 %r3, %tid.z; AGAIN: {acts} {counts} {sleep} setp.eq.u32 %p1, %r3, 0; @%p1 bra AGAIN;"
            ));
        }
        // The flag is never written.
        0 | 1 => b.body(format!("AGAIN: {polls} {sleep} setp.eq.u32 %p1, %r3, 0; @%p1 bra AGAIN;")),
        2 => lanes_wait(r, b, &flag, (space, &polls, sleep)),
        // Warps wait for one of them.
        3 => {
            b.fix([1, 1, 1], r.pick(&[[64, 1, 1], [128, 1, 1]]));
            let warps = b.threads() / 32;
            b.who = Some(Who::One { gid: r.below(warps as usize) as u32 * 32 });
            let sets = signal(r, &flag, space);
            b.body(sets);
            b.rest(format!("AGAIN: {polls} {sleep} setp.eq.u32 %p1, %r3, 0; @%p1 bra AGAIN;"));
        }
        4 => ctas_wait(r, b, &flag, sleep),
        5 => take_lock(r, b, &flag, space),
        // Endless loops without memory accesses.
        _ => b.body(r.pick(&[
            "AGAIN: add.u32 %r3, %r3, 1; bra AGAIN;",
            "mov.u32 %r3, 0; AGAIN: add.u32 %r3, %r3, 2; setp.ne.u32 %p1, %r3, 7; @%p1 bra AGAIN;",
            "AGAIN: bra AGAIN;",
            "AGAIN: st.global.u32 [%own+4], %r3; add.u32 %r3, %r3, 1; bra AGAIN;",
            "AGAIN: nanosleep.u32 10; bra AGAIN;",
        ])),
    }
}

/// Lanes of a warp wait for one of them.
fn lanes_wait(r: &mut Random, b: &mut Payload, flag: &str, (space, polls, sleep): (&str, &str, &str)) {
    b.fix([1, 1, 1], r.pick(&[[32, 1, 1], [64, 1, 1]]));
    let writer = r.below(32);
    b.who = Some(Who::Lanes { cta: 0, warp: 0, mask: u32::MAX });
    let sets = signal(r, flag, space);
    let (yes, no) =
        (format!("{sets} bra DONE;"), format!("AGAIN: {polls} {sleep} setp.eq.u32 %p1, %r3, 0; @%p1 bra AGAIN;"));
    b.body(format!("setp.eq.u32 %p2, %lane, {writer};"));
    match r.chance(50) {
        true => b.body(format!("@%p2 bra WRITE; {no} bra DONE; WRITE: {yes} DONE:")),
        false => b.body(format!("@!%p2 bra READ; {yes} READ: {no} DONE:")),
    }
}

/// CTAs wait for a later or an earlier one.
fn ctas_wait(r: &mut Random, b: &mut Payload, flag: &str, sleep: &str) {
    b.module(format!(".global .align 4 .b32 {flag}g;"));
    let flag = format!("{flag}g");
    let (polls, sets) = (poll(r, &flag, "global"), signal(r, &flag, "global"));
    b.fix([4, 1, 1], r.pick(&[[1, 1, 1], [32, 1, 1], [64, 1, 1]]));
    b.who = Some(Who::One { gid: b.threads() * r.below(4) as u32 });
    b.body(sets);
    b.rest(format!("AGAIN: {polls} {sleep} setp.eq.u32 %p1, %r3, 0; @%p1 bra AGAIN;"));
}

/// A lock that its holder takes again, or that is never released.
fn take_lock(r: &mut Random, b: &mut Payload, flag: &str, space: &str) {
    b.body(format!("TAKE: atom.{space}.cas.b32 %r3, [{flag}], 0, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra TAKE;"));
    if r.chance(50) {
        b.body(format!("AGAIN: atom.{space}.cas.b32 %r3, [{flag}], 0, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra AGAIN;"));
    } else {
        b.body(format!("atom.{space}.exch.b32 %r3, [{flag}], 0;"));
    }
}
