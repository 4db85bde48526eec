//! Loops in which threads may wait for others.

use crate::common::module;
use margay_ir::pass::{Cfg, spins};

/// Whether the loops of a kernel with this body may wait; `%d` is the address of a global buffer, `%s` that of a shared one.
fn waits(body: &str) -> bool {
    let ir = module(&format!(
        ".visible .entry k(.param .b64 p) {{
            .shared .b32 shared[64];
            .reg .b32 %r<10>, %s, %t; .reg .b64 %d; .reg .pred %p<5>;
            ld.param.b64 %d, [p]; mov.u32 %t, %tid.x; mov.u32 %s, shared; setp.eq.u32 %p4, %t, 0;
            {body}
            ret;
        }}"
    ));
    let func = &ir.funcs[0];
    spins(func, &Cfg::new(func, |_, _| false))
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
}
