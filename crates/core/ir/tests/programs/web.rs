//! Registers that serve several values.

use crate::common::{expect, lines, module};

#[test]
fn unrelated_values_have_registers_of_their_own() {
    let ir = module(
        ".func f(.reg .b32 a, .reg .b64 p) {
            .reg .b32 %x; .reg .pred %p;
            setp.eq.u32 %p, a, 1;
            @%p bra A;
            setp.eq.u32 %p, a, 2;
            @!%p bra A;
            mov.u32 %x, 1;
            add.u32 %x, %x, a;
            st.u32 [p], %x;
         A: ret;
        }",
    );
    let wanted = ["branch %p, ", "branch !%p'2, ", "%x = mov.u32 1", "%x'2 = add.u32 %x, a", "st.u32 generic[p], %x'2"];
    let f = lines(&ir, "f");
    assert!(wanted.iter().all(|w| f.iter().any(|l| l.starts_with(w))), "{f:#?}");
}

#[test]
fn a_value_that_several_definitions_reach_has_one_register() {
    // An `if`, a counter, and a guarded definition, which keeps what was there.
    let ir = module(
        ".func f(.reg .b32 a, .reg .b64 p) {
            .reg .b32 %x, %i; .reg .pred %p;
            setp.eq.u32 %p, a, 1;
            mov.u32 %x, 7;
            st.u32 [p], %x;
            mov.u32 %x, 8;
            @%p bra A;
            mov.u32 %x, 9;
         A: mov.u32 %i, 0;
         L: @%p add.u32 %x, %x, %i;
            add.u32 %i, %i, 1;
            setp.lt.u32 %p, %i, a;
            @%p bra L;
            st.u32 [p+4], %x;
            mov.u32 %i, %x;
            st.u32 [p+8], %i;
        }",
    );
    expect(
        &ir,
        "f",
        &[
            "%p = setp.eq.u32 a, 1",
            "%x = mov.u32 7",
            "%x'2 = mov.u32 8",
            "%x'2 = mov.u32 9",
            "%i = mov.u32 0",
            "@%p %x'2 = add.u32 %x'2, %i",
            "%i = add.u32 %i, 1",
            "%p = setp.lt.u32 %i, a",
            "st.u32 generic[p+4], %x'2",
            "%i'2 = mov.u32 %x'2",
        ],
    );
}

#[test]
fn a_register_that_is_read_before_it_is_written_keeps_its_name() {
    let ir = module(
        ".func f(.reg .b64 p) {
            .reg .b32 %x;
            st.u32 [p], %x;
            mov.u32 %x, 1;
            st.u32 [p], %x;
        }",
    );
    expect(&ir, "f", &["st.u32 generic[p], %x", "%x = mov.u32 1", "st.u32 generic[p], %x"]);
}

#[test]
fn formals_keep_their_registers() {
    let ir = module(
        ".func (.reg .b32 r) f(.reg .b32 a) {
            mov.u32 r, a;
            add.u32 a, r, 1;
            mov.u32 r, a;
            ret;
        }",
    );
    expect(&ir, "f", &["r = mov.u32 a", "a = add.u32 r, 1", "r = mov.u32 a", "ret"]);
}

#[test]
fn arguments_and_results_of_calls_are_renamed() {
    let ir = module(
        ".func (.reg .b32 r) g(.reg .b32 a) { add.u32 r, a, 1; ret; }
        .func f(.reg .b64 p) {
            .reg .b32 %x;
            mov.u32 %x, 1;
            call (%x), g, (%x);
            st.u32 [p], %x;
            call (%x), g, (3);
            st.u32 [p], %x;
        }",
    );
    expect(
        &ir,
        "f",
        &[
            "%x = mov.u32 1",
            "call g(%x) -> (%x'2)",
            "st.u32 generic[p], %x'2",
            "call g(3) -> (%x'3)",
            "st.u32 generic[p], %x'3",
        ],
    );
}
