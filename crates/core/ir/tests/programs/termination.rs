//! Which loops terminate as far as one can see. What each loop does follows from its arithmetic modulo a power of two.

use crate::common::module;
use margay_ir::pass::{Cfg, Ends, Termination};

/// What is known of the only loop of a kernel with this body.
fn ends(body: &str) -> Ends {
    let all = all_ends(body);
    assert_eq!(all.len(), 1, "{body}");
    all[0]
}

/// What is known of the loops of a kernel with this body; `%n` is a parameter, `%t` the thread index.
fn all_ends(body: &str) -> Vec<Ends> {
    let ir = module(&format!(
        ".visible .entry k(.param .b32 n, .param .b64 p) {{
            .reg .b32 %r<10>; .reg .b32 %n, %t; .reg .b64 %d<10>; .reg .pred %p<5>; .reg .f32 %f<5>;
            ld.param.b32 %n, [n]; ld.param.b64 %d9, [p]; mov.u32 %t, %tid.x;
            {body}
            ret;
        }}"
    ));
    let func = &ir.funcs[0];
    let cfg = Cfg::new(func, |_, _| false);
    let termination = Termination::new(func, &cfg);
    cfg.loops.iter().map(|l| termination.of(l)).collect()
}

/// A loop over `%r1` that continues while a comparison holds.
fn counter(first: &str, step: &str, test: &str) -> Ends {
    ends(&format!("mov.u32 %r1, {first}; L: {step} setp.{test}; @%p1 bra L;"))
}

#[test]
fn counters_that_approach_a_bound_terminate() {
    let up = "add.u32 %r1, %r1, 1;";
    for test in ["lt.u32 %p1, %r1, %n", "lt.s32 %p1, %r1, %n", "le.s32 %p1, %r1, 7", "ne.u32 %p1, %r1, %n"] {
        assert_eq!(counter("0", up, test), Ends::Always, "{test}");
        assert_eq!(counter("%t", up, test), Ends::Always, "{test}");
    }
    assert_eq!(counter("%n", "add.s32 %r1, %r1, -1;", "gt.s32 %p1, %r1, 0"), Ends::Always);
    assert_eq!(counter("%n", "sub.u32 %r1, %r1, 1;", "ne.u32 %p1, %r1, 0"), Ends::Always);
    assert_eq!(counter("%n", "sub.u32 %r1, %r1, 1;", "lt.u32 %p1, %r1, %n"), Ends::Always, "it wraps below zero");
    // By a stride, as in loops over a grid.
    assert_eq!(counter("%t", "mov.u32 %r2, %ntid.x; add.u32 %r1, %r1, %r2;", "lt.u32 %p1, %r1, %n"), Ends::Always);
    // Through copies, as compilers write phis, and widened.
    assert_eq!(
        ends(
            "mov.u32 %r1, 0; L: mov.u32 %r2, %r1; add.u32 %r1, %r2, 4; cvt.u64.u32 %d1, %r1; setp.lt.u64 %p1, %d1, %d9; @%p1 bra L;"
        ),
        Ends::Always
    );
    // In floating point.
    let float = |step: &str, test: &str, bound: &str| {
        let begin = "mov.f32 %f2, 0fC0400000; mov.f32 %f1, %f2;";
        ends(&format!("{begin} L: add.f32 %f1, %f1, {step}; setp.{test}.f32 %p1, %f1, {bound}; @%p1 bra L;"))
    };
    assert_eq!(float("0f3F800000", "le", "0f40400000"), Ends::Always);
    assert_eq!(float("0fBF800000", "gt", "0fC1200000"), Ends::Always);
    assert_ne!(float("0fBF800000", "le", "0f40400000"), Ends::Always, "it goes away from the bound");
    assert_ne!(float("0f3F800000", "lt", "0f7F000000"), Ends::Always, "at 2^24 it stays as it is");
    // Unrolled by four: a bound that is rounded down.
    let rounded = "and.b32 %r3, %n, 3; sub.u32 %r4, %n, %r3;";
    let by_four = "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 4; setp.ne.u32 %p1, %r1, %r4; @%p1 bra L;";
    assert_eq!(ends(&format!("{rounded} {by_four}")), Ends::Always);
    assert_eq!(ends(&format!("and.b32 %r4, %n, -4; {by_four}")), Ends::Always);
    // The same, as a number that the counter leaves of a negative one.
    // The parameter is loaded once more.
    let again = "ld.param.b32 %r5, [n]; and.b32 %r3, %r5, 3; sub.u32 %r1, %n, %r3;";
    assert_eq!(ends(&format!("{again} L: add.u32 %r1, %r1, -4; setp.ne.s32 %p1, %r1, 0; @%p1 bra L;")), Ends::Always);
    let other = "ld.param.b32 %r5, [p]; and.b32 %r3, %r5, 3; sub.u32 %r1, %n, %r3;";
    assert_ne!(ends(&format!("{other} L: add.u32 %r1, %r1, -4; setp.ne.s32 %p1, %r1, 0; @%p1 bra L;")), Ends::Always);
    let negative = "and.b32 %r3, %n, 3; sub.u32 %r4, %r3, %n; mov.u32 %r1, 0;";
    let summed = |step: u32| {
        let next = format!("add.u32 %r1, %r1, {step}; add.u32 %r2, %r4, %r1; setp.ne.u32 %p1, %r2, 0;");
        ends(&format!("{negative} L: {next} @%p1 bra L;"))
    };
    assert_eq!(summed(4), Ends::Always);
    assert_ne!(summed(8), Ends::Always, "it may step over 0");
    // The counter begins at a multiple of four whatever the parameter is.
    let begins = |first: &str, step: i32, end: i32| {
        let next = format!("add.u32 %r1, %r1, {step}; setp.ne.u32 %p1, %r1, {end};");
        ends(&format!("{first} L: {next} @%p1 bra L;"))
    };
    let ahead = "add.u32 %r2, %n, -2; and.b32 %r3, %r2, 3; add.u32 %r4, %r3, 2; sub.u32 %r1, %r4, %n;";
    assert_eq!(begins(ahead, 4, 0), Ends::Always);
    assert_ne!(begins(ahead, 4, 2), Ends::Always, "it steps over 2");
    let shifted = "shr.u32 %r2, %n, 2; add.u32 %r3, %r2, 1; and.b32 %r4, %r3, 3; sub.u32 %r1, %r2, %r4;";
    assert_eq!(begins(shifted, -4, -1), Ends::Always);
    assert_ne!(begins(shifted, -4, 0), Ends::Always, "it steps over 0");
    let inverted = "mov.u32 %r5, %nctaid.x; not.b32 %r2, %r5; add.u32 %r3, %r2, %n; and.b32 %r4, %r3, 3; sub.u32 %r6, %n, %r4; sub.u32 %r1, %r6, %r5;";
    assert_eq!(begins(inverted, -4, 1), Ends::Always);
    assert_ne!(begins(inverted, -4, 0), Ends::Always, "it steps over 0");
    let multiple = "mul.lo.u32 %r2, %n, 12; and.b32 %r3, %r2, 7; sub.u32 %r1, %r3, %r2;";
    assert_eq!(begins(multiple, 8, 0), Ends::Always);
    assert_ne!(begins(multiple, 16, 0), Ends::Always, "it may step over 0");
    // What is left is counted down in a second loop, and both stand in a third.
    let nested = "mov.u32 %r9, 0; M: or.b32 %r2, %r9, 40; and.b32 %r3, %r2, 3; sub.u32 %r1, %r2, %r3; \
        L: add.u32 %r1, %r1, -4; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; \
        N: add.u32 %r3, %r3, -1; setp.gt.s32 %p2, %r3, 0; @%p2 bra N; \
        add.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, %n; @%p3 bra M;";
    assert_eq!(all_ends(nested), [Ends::Always; 3]);
    // What is left is counted down in a second loop.
    let left = "mov.u32 %r1, %r4; L: add.u32 %r1, %r1, -4; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; sub.u32 %r3, %r3, 1; st.global.u32 [%d9], %r3;";
    assert_eq!(ends(&format!("{rounded} {left}")), Ends::Always);
}

#[test]
fn products_of_counters_that_pass_a_bound_terminate() {
    let square = "add.u32 %r1, %r1, 2; mul.lo.u32 %r2, %r1, %r1;";
    assert_eq!(counter("3", square, "le.u32 %p1, %r2, %n"), Ends::Always);
    assert_ne!(counter("3", square, "ne.u32 %p1, %r2, %n"), Ends::Always, "it may step over the bound");
}

#[test]
fn divided_counters_that_pass_a_bound_terminate() {
    // Tiles of a matrix, row by row: the row is a part of the tile's number.
    let tile = "mov.u32 %r2, %nctaid.x; add.u32 %r1, %r1, %r2; shr.u32 %r4, %r1, 2; and.b32 %r3, %r4, 134217727;";
    assert_eq!(counter("%t", tile, "lt.u32 %p1, %r3, 4"), Ends::Always);
    assert_eq!(counter("0", "add.u32 %r1, %r1, 3; div.u32 %r3, %r1, 7;", "lt.u32 %p1, %r3, %n"), Ends::Always);
    // The same, as compilers write `tile / 4 == 0` for a tile's number of 10 bits.
    let row = "mov.u32 %r2, %nctaid.x; add.u32 %r1, %r1, %r2; and.b32 %r3, %r1, 1020;";
    assert_eq!(counter("%t", row, "eq.u32 %p1, %r3, 0"), Ends::Always);
    assert_eq!(counter("0", "add.u32 %r1, %r1, 2; and.b32 %r3, %r1, 12;", "eq.u32 %p1, %r3, 0"), Ends::Always);
    assert_ne!(
        counter("0", "add.u32 %r1, %r1, 16; and.b32 %r3, %r1, 12;", "eq.u32 %p1, %r3, 0"),
        Ends::Always,
        "the field stays 0"
    );
    assert_ne!(
        counter("0", "add.u32 %r1, %r1, 8; and.b32 %r3, %r1, 7;", "lt.u32 %p1, %r3, %n"),
        Ends::Always,
        "0 stays 0"
    );
    assert_ne!(
        counter("0", "add.u32 %r1, %r1, 2; and.b32 %r3, %r1, 7;", "ne.u32 %p1, %r3, 3"),
        Ends::Always,
        "never odd"
    );
}

#[test]
fn one_terminating_exit_suffices() {
    let both = "L: add.u32 %r1, %r1, 1; cvt.u64.u32 %d1, %r1; add.u64 %d2, %d9, %d1; ld.global.u32 %r2, [%d2]; setp.lt.u32 %p1, %r1, 9; setp.ne.u32 %p2, %r2, 0;";
    assert_eq!(ends(&format!("mov.u32 %r1, 0; {both} and.pred %p3, %p1, %p2; @%p3 bra L;")), Ends::Always);
    assert_eq!(ends(&format!("mov.u32 %r1, 0; {both} or.pred %p3, %p1, %p2; @%p3 bra L;")), Ends::Unknown);
    assert_eq!(ends(&format!("mov.u32 %r1, 0; {both} @!%p1 bra DONE; @%p2 bra L; DONE:")), Ends::Always);
    // The counter counts only sometimes.
    let sometimes = "mov.u32 %r1, 0; L: add.u64 %d9, %d9, 4; ld.global.u32 %r2, [%d9]; setp.eq.u32 %p2, %r2, 0; @%p2 bra M; add.u32 %r1, %r1, 1; \
                     M: setp.lt.u32 %p1, %r1, 9; @%p1 bra L;";
    assert_eq!(ends(sometimes), Ends::Unknown);
}

#[test]
fn shifts_divisions_and_clocks_terminate() {
    assert_eq!(counter("%n", "shr.u32 %r1, %r1, 1;", "ne.u32 %p1, %r1, 0"), Ends::Always);
    assert_eq!(counter("%n", "shr.s32 %r1, %r1, 1;", "gt.s32 %p1, %r1, 0"), Ends::Always);
    assert_ne!(counter("%n", "shr.s32 %r1, %r1, 1;", "ne.s32 %p1, %r1, 0"), Ends::Always, "-1 stays -1");
    assert_eq!(counter("1", "shl.b32 %r1, %r1, 1;", "lt.u32 %p1, %r1, %n"), Ends::Always);
    assert_ne!(counter("0", "shl.b32 %r1, %r1, 1;", "lt.u32 %p1, %r1, %n"), Ends::Always);
    assert_eq!(counter("%n", "div.u32 %r1, %r1, 10;", "ne.u32 %p1, %r1, 0"), Ends::Always);
    assert_eq!(counter("%n", "sub.u32 %r2, %r1, 1; and.b32 %r1, %r1, %r2;", "ne.u32 %p1, %r1, 0"), Ends::Always);
    // Signed division, as compilers write it.
    let half = "shr.u32 %r2, %r1, 31; add.s32 %r3, %r1, %r2; shr.s32 %r4, %r3, 1; mov.u32 %r5, %r1; mov.u32 %r1, %r4;";
    assert_eq!(counter("%n", half, "gt.s32 %p1, %r5, 3"), Ends::Always);
    assert_eq!(counter("%n", half, "ne.s32 %p1, %r1, 0"), Ends::Always);
    let eighth = "shr.s32 %r2, %r1, 31; shr.u32 %r3, %r2, 29; add.s32 %r4, %r1, %r3; shr.s32 %r1, %r4, 3;";
    assert_eq!(counter("%n", eighth, "ne.s32 %p1, %r1, 0"), Ends::Always);
    assert_ne!(counter("%n", &eighth.replace("29", "28"), "ne.s32 %p1, %r1, 0"), Ends::Always);
    // Euclid's algorithm.
    assert_eq!(
        counter("%n", "rem.u32 %r3, %r2, %r1; mov.u32 %r2, %r1; mov.u32 %r1, %r3;", "ne.u32 %p1, %r1, 0"),
        Ends::Always
    );
    let wait =
        "mov.u64 %d1, %clock64; L: mov.u64 %d2, %clock64; sub.u64 %d3, %d2, %d1; setp.lt.u64 %p1, %d3, 99; @%p1 bra L;";
    assert_eq!(ends(wait), Ends::Always);
}

#[test]
fn counters_that_miss_their_bound_never_end() {
    let (one, two) = ("add.u32 %r1, %r1, 1;", "add.u32 %r1, %r1, 2;");
    for (first, step, test) in [
        ("0", two, "ne.u32 %p1, %r1, 7"),
        ("0", two, "ne.u32 %p1, %r1, %n"),
        ("0", "add.u32 %r1, %r1, 0;", "ne.u32 %p1, %r1, 7"),
        ("%n", one, "ge.u32 %p1, %r1, 0"),
        ("0", one, "le.u32 %p1, %r1, 0xffffffff"),
        ("0", one, "le.s32 %p1, %r1, 0x7fffffff"),
        ("0", "sub.u32 %r1, %r1, 1;", "ge.u32 %p1, %r1, 0"),
        ("0", "add.u32 %r1, %r1, 3;", "ne.u32 %p1, %r1, 10"),
        ("10", one, "ne.u64 %p1, %d8, 5"),
    ] {
        assert_eq!(counter(first, step, test), Ends::Never, "{first}; {step} {test}");
    }
    // 64 bits are too many to count.
    assert_eq!(ends("mov.u64 %d1, 0; L: add.u64 %d1, %d1, 1; setp.ne.u64 %p1, %d1, -1; @%p1 bra L;"), Ends::Never);
}

#[test]
fn invariant_conditions_never_end_a_loop() {
    assert_eq!(ends("setp.ne.u32 %p1, %n, 0; L: add.u32 %r1, %r1, 1; @%p1 bra L;"), Ends::Never);
    assert_eq!(ends("L: add.u32 %r1, %r1, 1; setp.eq.u32 %p1, %n, %n; @%p1 bra L;"), Ends::Never);
    assert_eq!(
        ends("L: st.global.u32 [%d9], %r1; add.u32 %r1, %r1, 1; setp.eq.f32 %p1, %f1, %f1; @%p1 bra L;"),
        Ends::Never
    );
    // A walk without input: it ends or does not, but no real kernel's does not.
    let walk = "xor.b32 %r2, %r1, %r1; shl.b32 %r2, %r1, 13; xor.b32 %r1, %r1, %r2; shr.u32 %r2, %r1, 17; xor.b32 %r1, %r1, %r2;";
    assert_eq!(counter("7", walk, "ne.u32 %p1, %r1, 0"), Ends::Never);
    let reused = format!(
        "ld.global.u32 %r2, [%d9]; st.global.u32 [%d9], %r2; mov.u32 %r1, 7; L: {walk} setp.ne.u32 %p1, %r1, 0; @%p1 bra L;"
    );
    assert_eq!(ends(&reused), Ends::Never);
    assert_eq!(counter("%n", walk, "ne.u32 %p1, %r1, 0"), Ends::Unknown);
    // Each thread walks from its index, as to find the length of Collatz's sequences.
    assert_eq!(counter("%t", walk, "ne.u32 %p1, %r1, 0"), Ends::Unknown);
}

#[test]
fn conditions_that_depend_on_memory_may_end_a_loop() {
    let chase = "mov.u32 %r1, 0; L: cvt.u64.u32 %d1, %r1; add.u64 %d2, %d9, %d1; ld.global.u32 %r1, [%d2]; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;";
    assert_eq!(ends(chase), Ends::Unknown);
    // What a load found it finds again, unless another thread writes: whoever that is must be let run.
    let count = "L: ld.global.u32 %r1, [%d9]; add.u32 %r2, %r2, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; st.global.u32 [%d9], %r2;";
    assert_eq!(ends(count), Ends::Never);
    let sum = "L: ld.global.u32 %r1, [%d9]; add.u32 %r2, %r2, %r1; setp.ne.u32 %p1, %r2, 1; @%p1 bra L;";
    assert_eq!(ends(sum), Ends::Never);
    assert_eq!(ends(&sum.replace("ne", "lt")), Ends::Always);
    let newton = "ld.global.f32 %f1, [%d9]; L: mul.f32 %f2, %f1, %f1; sub.f32 %f1, %f1, %f2; setp.gt.f32 %p1, %f1, 0f3F800000; @%p1 bra L;";
    assert_eq!(ends(newton), Ends::Unknown);
    let ticket = "L: atom.global.add.u32 %r1, [%d9], 1; setp.lt.u32 %p1, %r1, %n; @%p1 bra L;";
    assert_eq!(ends(ticket), Ends::Always);
}
