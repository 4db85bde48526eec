//! Loops in which threads may wait for others.

use crate::common::module;
use margay_ir::{
    Func,
    pass::{Cfg, awaits, awaits_result, mark_observing_calls, recomputes, shares_work, spins, tests_and_sets},
};

/// What is true of a kernel with this body; `%d` is the address of a global buffer, `%s` that of a shared one.
fn ask(body: &str, about: fn(&Func, &Cfg) -> bool) -> bool {
    let ir = module(&format!(
        ".func f(.reg .b64 %a) {{ ret; }}
        .visible .entry k(.param .b64 p, .param .b32 q, .param .b64 o) {{
            .shared .b32 shared[64];
            .reg .b32 %r<10>, %s, %t, %free; .reg .b64 %d, %e, %g, %h, %i, %w; .reg .pred %p<5>;
            ld.param.b64 %d, [p]; mov.u32 %t, %tid.x; mov.u32 %s, shared; setp.eq.u32 %p4, %t, 0;
            {body}
            ret;
        }}"
    ));
    let func = ir.funcs.iter().find(|f| &*f.name == "k").unwrap();
    about(func, &Cfg::new(func, |_, _| false))
}

/// Whether its loops may wait.
fn waits(body: &str) -> bool {
    ask(body, spins)
}

const CHANGE: &str = "ld.global.u32 %r2, [%d]; setp.gt.u32 %p1, %r2, 7; @!%p1 bra S; st.global.u32 [%d], 7; \
    st.shared.u32 [%s], 1; S:";
const LOOK: &str = "bar.sync 0; ld.shared.u32 %r3, [%s]; setp.ne.u32 %p2, %r3, 0; @%p2 bra L;";

#[test]
fn a_cta_that_repeats_until_nothing_changes_waits_for_no_other() {
    let clear = "L: bar.sync 0; st.shared.u32 [%s], 0; bar.sync 0;";
    assert!(!waits(&format!("{clear} {CHANGE} {LOOK}")));
    let volatile = LOOK.replace("ld.shared", "ld.volatile.shared");
    assert!(!waits(&format!("{clear} {CHANGE} {volatile}")));
    let reduced = CHANGE.replace("st.shared.u32 [%s], 1;", "mov.u32 %r4, 1;");
    let any = "setp.ne.u32 %p3, %r4, 0; bar.red.or.pred %p2, 0, %p3; @%p2 bra L;";
    assert!(!waits(&format!("L: mov.u32 %r4, 0; {reduced} {any}")));
}

#[test]
fn flags_of_others_are_waited_for() {
    // Other warps set it, or other CTAs, which one thread asks.
    assert!(waits("L: ld.volatile.shared.u32 %r3, [%s]; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;"));
    // However often they have looked.
    let look = |load: &str| format!("L: add.u32 %r4, %r4, 1; {load} %r3, [%d]; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;");
    assert!(["ld.volatile.u32", "ld.acquire.gpu.u32", "ld.global.cv.u32"].iter().all(|load| waits(&look(load))));
    // They sleep for longer each time.
    let doze =
        "L: nanosleep.u32 %r4; shl.b32 %r4, %r4, 1; ld.global.u32 %r3, [%d]; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;";
    assert!(waits(doze));
    assert!(waits(&format!("L: ld.volatile.global.u32 %r2, [%d]; st.shared.u32 [%s], %r2; {LOOK}")));
    assert!(waits(&format!("L: ld.global.u32 %r2, [%d]; st.shared.u32 [%s], %r2; {LOOK}")));
    assert!(waits(&format!("L: ld.global.u32 %r2, [%d]; st.global.u32 [%d+4], 1; st.shared.u32 [%s], %r2; {LOOK}")));
    // Not all threads meet at the barrier, or not each time.
    assert!(waits(&format!("L: {CHANGE} {}", LOOK.replace("bar.sync 0", "bar.sync 0, 64"))));
    assert!(waits(&format!("L: {CHANGE} {}", LOOK.replace("bar.sync 0;", "@!%p4 bra T; bar.sync 0; T:"))));
    // The flag is in global memory.
    assert!(waits(&format!("L: {CHANGE} bar.sync 0; ld.global.u32 %r3, [%d+4]; setp.ne.u32 %p2, %r3, 0; @%p2 bra L;")));
}

#[test]
fn a_thread_that_gives_up_after_some_attempts_waits_until_then() {
    let attempts =
        |look: &str| format!("L: {look} @%p2 bra E; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 99999; @%p1 bra L; E:");
    assert!(waits(&attempts("ld.acquire.gpu.u32 %r3, [%d]; setp.ne.u32 %p2, %r3, 0;")));
    let lock = attempts("atom.global.cas.b32 %r3, [%d], 0, 1; setp.eq.u32 %p2, %r3, 0;");
    assert!(waits(&format!("{lock} st.global.u32 [%d], 0;")));
    // Nobody gives it back.
    assert!(!waits(&lock));
    assert!(waits(&attempts("atom.global.or.b32 %r3, [%d], 1; setp.eq.u32 %p2, %r3, 0;")));
    // It looks at one place after the other, or works until something is found.
    assert!(!waits(&attempts("add.u64 %d, %d, 4; ld.volatile.u32 %r3, [%d]; setp.ne.u32 %p2, %r3, 0;")));
    assert!(!waits(&attempts("ld.volatile.u32 %r3, [%d]; st.global.u32 [%d+4], %r4; setp.ne.u32 %p2, %r3, 0;")));
}

#[test]
fn an_update_is_tried_again_only_by_what_its_own_word_held() {
    let update = |from: &str| {
        format!(
            "L: ld.global.u32 %r2, [{from}]; add.u32 %r3, %r2, 1; atom.global.cas.b32 %r4, [%d], %r2, %r3; \
            setp.ne.u32 %p1, %r4, %r2; @%p1 bra L;"
        )
    };
    assert!(!waits(&update("%d")));
    // Another thread may have to make the two words equal.
    assert!(waits(&update("%d+4")));
    assert!(waits(&update("%d").replace("add.u32", "add.u64 %d, %d, 4; add.u32")));
    // It looks again only if a predicate says so that stays what it is.
    assert!(waits(
        &update("%d").replace("ld.global.u32", "@%p4 bra M; ld.global.u32").replace("add.u32", "M: add.u32")
    ));
}

#[test]
fn a_bit_that_is_set_already_is_waited_for_whatever_else_a_loop_does() {
    let set = |then: &str| {
        format!("L: atom.global.or.b32 %r2, [%d], 8; {then} and.b32 %r3, %r2, 8; setp.ne.u32 %p1, %r3, 0; @%p1 bra L;")
    };
    assert!(waits(&set("add.u32 %r4, %r4, 1;")));
    assert!(waits(&set("add.u32 %r4, %r4, 1; st.shared.u32 [%s], %r4;")));
    // So is a maximum, and a count that is taken back, as that of a semaphore.
    assert!(waits(&set("st.global.u32 [%d+4], %r4;").replace("or.b32", "max.u32")));
    let taken_back =
        "atom.global.add.s32 %r2, [%d], -1; setp.gt.s32 %p1, %r2, 0; @%p1 bra E; red.global.add.s32 [%d], 1;";
    assert!(waits(&format!("L: {taken_back} bra L; E:")));
    // Each iteration sets another bit.
    let mark = set("st.shared.u32 [%s], %r4; add.u64 %d, %d, 4;");
    assert!(!waits(&mark));
    // A thread that takes pieces of work by number waits for nobody.
    let work = "st.global.u32 [%d+4], %r2;";
    assert!(!waits(&format!("L: atom.global.add.u32 %r2, [%d], 1; {work} setp.lt.u32 %p1, %r2, 99; @%p1 bra L;")));
}

#[test]
fn a_call_may_tell_whether_others_have_made_progress() {
    let waits = |body: &str, how: &str| {
        let mut ir = module(&format!(
            ".func (.reg .b32 r) f(.reg .b64 a) {{ .reg .pred %p; .reg .b32 %n, %m; {body} ret; }}
            .func (.reg .b32 r) g(.reg .b64 a) {{ call (r), f, (a); ret; }}
            .visible .entry k(.param .b64 p) {{
                  .reg .b32 %r, %n; .reg .b64 %d, %f; .reg .pred %p, %q;
                ld.param.b64 %d, [p]; mov.u64 %f, f;
                L: add.u32 %n, %n, 1;
                P: .callprototype (.reg .b32 _) _ (.reg .b64 _);
                call (%r), {how};
                setp.ne.u32 %q, %r, 0; @%q bra L;
                E: st.global.u32 [%d+8], %n;
                ret;
            }}"
        ));
        mark_observing_calls(&mut ir);
        let func = ir.funcs.iter().find(|f| &*f.name == "k").unwrap();
        spins(func, &Cfg::new(func, |_, _| false))
    };
    let takes = "atom.global.cas.b32 r, [a], 0, 1;";
    for how in ["f, (%d)", "g, (%d)", "%f, (%d), P"] {
        assert!(waits(takes, how), "{how}");
    }
    assert!(waits("ld.acquire.gpu.global.b32 r, [a];", "f, (%d)"));
    assert!(waits("mbarrier.test_wait.parity.shared.b64 %p, [a], 0; selp.b32 r, 0, 1, %p;", "f, (%d)"));
    assert!(waits(takes, "f, (%d); setp.gt.u32 %p, %n, 99999; @%p bra E"));
    assert!(!waits("ld.global.b32 r, [a];", "f, (%d)"));
    // A function that succeeds in the end does not show how often it has tried.
    let update = "M: ld.global.u32 %n, [a]; atom.global.cas.b32 %m, [a], %n, 5; setp.ne.u32 %p, %m, %n; @%p bra M; \
        and.b32 r, %n, 1;";
    assert!(!waits(update, "f, (%d)"));
}

/// The loop of an insertion into a table of pairs of 8 bytes in global memory; `%r2` is the key, `%r3` the index.
fn insertion(test: &str) -> String {
    format!(
        "ld.param.u32 %free, [q]; mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.x; \
         L: and.b32 %r4, %r3, 1023; mul.wide.u32 %e, %r4, 8; add.s64 %w, %d, %e; atom.global.cas.b32 %r5, [%w], -1, %r2; add.u32 %r3, %r4, 1; {test}"
    )
}

const TAKEN: &str = "setp.ne.u32 %p1, %r5, -1; setp.ne.u32 %p2, %r5, %r2; and.pred %p3, %p1, %p2; @%p3 bra L;";

#[test]
fn an_insertion_waits_for_nobody() {
    assert!(!waits(&insertion(TAKEN)));
    // The exits one by one, and by what must not hold.
    assert!(!waits(&insertion("setp.eq.u32 %p1, %r5, -1; @%p1 bra T; setp.ne.u32 %p2, %r5, %r2; @%p2 bra L; T:")));
    let either = "setp.eq.u32 %p1, %r5, -1; setp.eq.u32 %p2, %r5, %r2; or.pred %p3, %p1, %p2; @!%p3 bra L;";
    assert!(!waits(&insertion(either)));
    // What is free is a parameter.
    assert!(!waits(&insertion(TAKEN).replace("-1", "%free")));
    // The value lies beside the key.
    let value = "cvt.u64.u32 %g, %r4; shl.b64 %i, %g, 3; add.s64 %h, %d, %i; st.global.u32 [%h+4], %r2;";
    assert!(!waits(&format!("{} {value}", insertion(TAKEN))));
    // Statistics in shared memory.
    assert!(!waits(&format!("{} atom.shared.add.u32 %r6, [%s], 1;", insertion(TAKEN))));
}

#[test]
fn a_word_that_may_be_freed_is_waited_for() {
    // Locks and pools of slots, which somebody else must give back: also by an update, by a parameter that may be the same, or as a part.
    let freeing = [
        "st.global.u32 [%w], -1;",
        "atom.global.exch.b32 %r6, [%w], -1;",
        "atom.global.cas.b32 %r6, [%w], %r2, -1;",
        "red.global.add.u32 [%w], 1;",
        "st.global.u16 [%w+2], 7;",
        "st.global.v2.u32 [%w+4], {%r2, %r2};",
        "cvt.u64.u32 %g, %r4; shl.b64 %i, %g, 2; add.s64 %h, %d, %i; st.global.u32 [%h+4], %r2;",
        "ld.param.b64 %h, [o]; st.global.u32 [%h+4], %r2;",
        "st.u32 [%w], -1;",
        "call f, (%d);",
    ];
    for free in freeing {
        assert!(waits(&format!("{} {free}", insertion(TAKEN))), "{free}");
        assert!(waits(&format!("@%p4 bra K; {free} K: {}", insertion(TAKEN))), "{free}");
    }
    // The loop continues where it has found a free word.
    assert!(waits(&insertion("setp.ne.u32 %p2, %r5, %r2; @%p2 bra L;")));
    assert!(waits(&insertion(&TAKEN.replace("and.pred", "or.pred"))));
    assert!(waits(&insertion(&TAKEN.replace("%r5, -1", "%r5, -2"))));
    // An earlier iteration has looked.
    assert!(waits(&insertion("@%p3 bra L;").replace("atom.", &format!("{} atom.", TAKEN.replace("@%p3 bra L;", "")))));
    // The thread waits for a word that another makes its own.
    assert!(waits(&insertion(TAKEN).replace("-1", "%t")));
    // Or for a flag.
    assert!(waits(
        &insertion(&TAKEN.replace("%r5, %r2", "%r6, 0")).replace("atom.", "ld.global.u32 %r6, [%d+8]; atom.")
    ));
}

#[test]
fn threads_that_take_work_from_a_counter_share_it() {
    let shares = |body: &str| ask(body, shares_work);
    let test = "setp.ge.u32 %p1, %r2, 64; @%p1 bra D; st.global.u32 [%d+8], %r2; bra L; D:";
    assert!(shares(&format!("L: atom.global.add.u32 %r2, [%d], 1; {test}")));
    assert!(shares(&format!("L: atom.shared.inc.u32 %r2, [%s], 64; {test}")));
    // One thread takes it for its warp, or for its CTA.
    let take = "L: @%p4 atom.global.add.u32 %r1, [%d], 1;";
    assert!(shares(&format!("{take} shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; {test}")));
    let pass = "@%p4 st.shared.u32 [%s], %r1; bar.sync 0; ld.shared.u32 %r2, [%s]; bar.sync 0;";
    assert!(shares(&format!("{take} {pass} {test}")));
    // A place in a list is no work, nor is an update that is tried again, nor a look at the counter.
    let counted = "add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 8; @%p2 bra L;";
    assert!(!shares(&format!("{take} st.global.u32 [%d+8], %r1; {counted}")));
    let again = "atom.global.cas.b32 %r2, [%d], %r1, %r3; setp.ne.u32 %p1, %r2, %r1; @%p1 bra L;";
    assert!(!shares(&format!("L: ld.global.u32 %r1, [%d]; add.u32 %r3, %r1, 1; {again}")));
    assert!(!shares(&format!("L: atom.global.add.u32 %r2, [%d], 0; {test}")));
}

/// Whether a thread waits by some instruction.
fn awaited(func: &Func, cfg: &Cfg) -> bool {
    (0..func.insts.len() as u32).any(|i| awaits(func, cfg, i))
}

#[test]
fn threads_wait_by_reads_that_they_repeat() {
    let waits = |body: &str| ask(body, awaited);
    let until = "setp.ne.u32 %p1, %r2, 0; @%p1 bra L;";
    assert!(waits(&format!("L: ld.volatile.global.u32 %r2, [%d]; {until}")));
    assert!(waits(&format!("L: atom.global.cas.b32 %r2, [%d], 0, 1; {until}")));
    assert!(waits(&format!("L: atom.global.exch.b32 %r2, [%d], 1; {until}")));
    // The first iteration was moved before the loop: that read waits, too.
    let both = |func: &Func, cfg: &Cfg| (0..func.insts.len() as u32).filter(|i| awaits(func, cfg, *i)).count() == 2;
    let first = "ld.volatile.global.u32 %r1, [%d]; setp.eq.u32 %p2, %r1, 0; @%p2 bra D;";
    assert!(ask(&format!("{first} L: ld.volatile.global.u32 %r2, [%d]; {until} D:"), both));
    // A ticket is drawn once, an update is tried again, and a plain read depends on nobody.
    assert!(!waits(
        "atom.global.add.u32 %r2, [%d], 1; setp.ne.u32 %p1, %r2, 3; @%p1 bra L; st.global.u32 [%d+8], 1; L:"
    ));
    let again = "atom.global.cas.b32 %r2, [%d], %r1, %r3; setp.ne.u32 %p1, %r2, %r1; @%p1 bra L;";
    assert!(!waits(&format!("L: ld.global.u32 %r1, [%d]; add.u32 %r3, %r1, 1; {again}")));
    assert!(!waits(&format!("L: ld.global.u32 %r2, [%d]; {until}")));
}

#[test]
fn threads_wait_for_what_functions_return() {
    let waits = |function: &str, body: &str| {
        let mut ir = module(&format!(
            ".func (.param .b32 r) f(.param .b64 a, .param .b32 b) {{
                .reg .b32 %x, %y; .reg .b64 %a;
                ld.param.b64 %a, [a]; ld.param.b32 %y, [b]; {function} st.param.b32 [r], %x; ret;
            }}
            .visible .entry k(.param .b64 p) {{
                .reg .b32 %r<4>; .reg .b64 %d; .reg .pred %p;
                ld.param.b64 %d, [p]; mov.b32 %r1, 0;
                L: {{ .param .b64 a; .param .b32 b, r;
                st.param.b64 [a], %d; st.param.b32 [b], %r1; call.uni (r), f, (a, b); ld.param.b32 %r2, [r]; }}
                {body}
                ret;
            }}"
        ));
        mark_observing_calls(&mut ir);
        let func = ir.funcs.iter().find(|f| &*f.name == "k").unwrap();
        let cfg = Cfg::new(func, |_, _| false);
        (0..func.insts.len() as u32).any(|i| awaits_result(func, &cfg, i))
    };
    let (look, until) = ("ld.volatile.u32 %x, [%a];", "setp.eq.u32 %p, %r2, 0; @%p bra L;");
    assert!(waits(look, until));
    assert!(waits("atom.cas.b32 %x, [%a], 0, 1;", until));
    // A plain load, no loop, one of a number of times, and an update that is tried again with what it has found.
    assert!(!waits("ld.u32 %x, [%a];", until));
    assert!(!waits(look, "st.global.u32 [%d], %r2;"));
    assert!(!waits(look, "st.global.u32 [%d], %r2; add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, 9; @%p bra L;"));
    assert!(!waits("atom.cas.b32 %x, [%a], %y, 7;", "setp.ne.u32 %p, %r2, %r1; mov.b32 %r1, %r2; @%p bra L;"));
}

#[test]
fn updates_by_a_load_and_a_store_are_found() {
    let updates = |body: &str| ask(body, |func, _| (0..func.insts.len() as u32).any(|i| recomputes(func, i).is_some()));
    let load = "ld.volatile.global.u32 %r1, [%d];";
    assert!(updates(&format!("{load} add.u32 %r2, %r1, 1; st.volatile.global.u32 [%d], %r2;")));
    assert!(updates("ld.relaxed.gpu.u32 %r1, [%d+4]; mad.lo.u32 %r2, %r1, 3, %t; st.release.gpu.u32 [%d+4], %r2;"));
    // Another place, nothing computed, a maximum, one of the two plain.
    assert!(!updates(&format!("{load} add.u32 %r2, %r1, 1; st.volatile.global.u32 [%d+4], %r2;")));
    assert!(!updates(&format!("{load} st.volatile.global.u32 [%d], %r1;")));
    assert!(!updates(&format!("{load} max.u32 %r2, %r1, 1; st.volatile.global.u32 [%d], %r2;")));
    assert!(!updates(&format!("{load} add.u32 %r2, %r1, 1; st.global.u32 [%d], %r2;")));
    assert!(!updates("ld.global.u32 %r1, [%d]; add.u32 %r2, %r1, 1; st.volatile.global.u32 [%d], %r2;"));
}

#[test]
fn places_that_are_tested_and_then_set_are_found() {
    let found = |body: &str| ask(body, |func, _| !tests_and_sets(func).is_empty());
    let test = "ld.volatile.global.u32 %r1, [%d]; setp.ne.u32 %p1, %r1, 0; @%p1 bra E;";
    assert!(found(&format!("{test} st.volatile.global.u32 [%d], 1; E:")));
    assert!(found(&format!("{test} st.global.u32 [%d+4], 5; st.release.gpu.global.u32 [%d], 1; E:")));
    // Another place, a store in any case, a plain one, and a place that an atomic operation claims.
    assert!(!found(&format!("{test} st.volatile.global.u32 [%d+4], 1; E:")));
    assert!(!found(&format!("{test} st.global.u32 [%d+4], 5; E: st.volatile.global.u32 [%d], 1;")));
    assert!(!found(&format!("{test} st.global.u32 [%d], 1; E:")));
    let claim = "atom.global.cas.b32 %r2, [%d], 0, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra E;";
    assert!(!found(&format!("{test} {claim} st.volatile.global.u32 [%d], 2; E:")));
}
