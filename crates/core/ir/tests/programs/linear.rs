//! Addresses and conditions as linear functions of a thread's place in the grid, as compilers compute them.

use crate::common::module;
use margay_ir::pass::{Condition, LaunchValues, Linear, LinearValues};
use margay_isa::Opcode;

const BASE: i64 = 0x7000_0000_0000;
const N: i64 = 1000;

/// The addresses of the stores of a kernel with this body, and what holds there, in a launch of 8 x 4 CTAs of 32 x 16 threads. `%d1` is the
/// argument [`BASE`], `%r1` the argument [`N`], `%r2` and `%r3` the column and the row of the thread.
fn stores(body: &str) -> Vec<(Option<Linear>, Vec<Condition>)> {
    let ir = module(&format!(
        ".visible .entry k(.param .b64 p, .param .b32 n) {{
            .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .pred %p<5>;
            ld.param.b64 %d1, [p]; ld.param.b32 %r1, [n];
            mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x; mov.u32 %r12, %tid.x; mad.lo.s32 %r2, %r10, %r11, %r12;
            mov.u32 %r13, %ctaid.y; mov.u32 %r14, %ntid.y; mov.u32 %r15, %tid.y; mad.lo.s32 %r3, %r13, %r14, %r15;
            {body}
            DONE: ret;
        }}"
    ));
    let mut params = BASE.to_le_bytes().to_vec();
    params.extend((N as u32).to_le_bytes());
    let func = &ir.funcs[0];
    let launch = LaunchValues { grid: [8, 4, 1], block: [32, 16, 1], params: &params, address: &|_| None };
    let values = LinearValues::new(func, launch);
    let stores = func.insts.iter().enumerate().filter(|(_, inst)| func.variant(inst).op == Opcode::St);
    stores.map(|(i, inst)| (values.address(inst), values.conditions(i as u32))).collect()
}

fn address(body: &str) -> Option<Linear> {
    let [(address, _)] = &stores(body)[..] else { panic!("one store: {body}") };
    *address
}

fn linear(constant: i64, factors: [i64; 6]) -> Option<Linear> {
    Some(Linear { constant, factors, period: 0 })
}

#[test]
fn elements_of_a_matrix_are_linear() {
    let found = address(
        "mad.lo.s32 %r4, %r3, %r1, %r2; mul.wide.s32 %d2, %r4, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3+8], %r1;",
    );
    assert_eq!(found, linear(BASE + 8, [4, 4 * N, 0, 4 * 32, 4 * N * 16, 0]));
    let shifted = address(
        "shl.b32 %r4, %r10, 5; or.b32 %r5, %r4, %r12; cvt.u64.u32 %d2, %r5; shl.b64 %d2, %d2, 3; sub.s64 %d3, %d1, %d2; st.global.u64 [%d3], %d1;",
    );
    assert_eq!(shifted, linear(BASE, [-8, 0, 0, -8 * 32, 0, 0]));
}

#[test]
fn what_is_not_linear_is_not_known() {
    for body in [
        "and.b32 %r4, %r2, 15; mul.wide.s32 %d2, %r4, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r1;",
        "mul.lo.s32 %r4, %r2, %r3; mul.wide.s32 %d2, %r4, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r1;",
        "ld.global.u32 %r4, [%d1]; mul.wide.s32 %d2, %r4, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r1;",
        // Bits of the column that the row has, too.
        "or.b32 %r4, %r2, %r3; mul.wide.s32 %d2, %r4, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r1;",
        // Wraps around: threads with high columns have a negative index.
        "shl.b32 %r4, %r2, 24; mul.wide.s32 %d2, %r4, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r1;",
        "sub.s32 %r4, 0, %r2; mul.wide.u32 %d2, %r4, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r1;",
    ] {
        assert_eq!(address(body), None, "{body}");
    }
}

#[test]
fn loops_have_a_period() {
    let body = "mul.wide.s32 %d2, %r2, 4; add.s64 %d3, %d1, %d2; mov.u32 %r4, %r2;
        LOOP: st.global.u32 [%d3], %r1; add.s64 %d3, %d3, 1024; add.s32 %r4, %r4, 256;
        setp.lt.s32 %p1, %r4, %r1; @%p1 bra LOOP;";
    assert_eq!(address(body), Some(Linear { constant: BASE % 1024, factors: [4, 0, 0, 128, 0, 0], period: 1024 }));
}

#[test]
fn branches_and_guards_bound_values() {
    let store = "st.global.u32 [%d1], %r1;";
    let column = Linear { constant: 0, factors: [1, 0, 0, 32, 0, 0], period: 0 };
    let row = Linear { constant: 0, factors: [0, 1, 0, 0, 16, 0], period: 0 };
    let (all_columns, all_rows) = (255, 63);
    let bound = |value, least, most| Condition { value, least, most };
    let conditions = |body: &str| stores(&format!("{body} {store}"))[0].1.clone();
    assert_eq!(conditions("setp.ge.s32 %p1, %r2, 100; @%p1 bra DONE;"), [bound(column, 0, 99)]);
    assert_eq!(conditions("setp.gt.u32 %p1, %r2, 99; @%p1 bra DONE;"), [bound(column, 0, 99)]);
    assert_eq!(conditions("setp.lt.s32 %p1, %r2, %r1; @!%p1 bra DONE;"), [bound(column, 0, all_columns)]);
    assert_eq!(
        conditions("setp.ge.s32 %p1, %r2, 100; setp.ge.s32 %p2, %r3, 50; or.pred %p3, %p1, %p2; @%p3 bra DONE;"),
        [bound(column, 0, 99), bound(row, 0, 49)]
    );
    assert_eq!(conditions("setp.ne.s32 %p1, %r3, 7; @%p1 bra DONE;"), [bound(row, 7, 7)]);
    // Of a product with 3, the least that is over 20 is 21.
    assert_eq!(
        conditions("mul.lo.s32 %r4, %r3, 3; setp.le.s32 %p1, %r4, 20; @%p1 bra DONE;"),
        [bound(row, 7, all_rows)]
    );
    // One of both may hold.
    assert_eq!(
        conditions("setp.ge.s32 %p1, %r2, 100; setp.ge.s32 %p2, %r3, 50; and.pred %p3, %p1, %p2; @%p3 bra DONE;"),
        []
    );
    // Where paths meet, nothing of either is known.
    assert_eq!(conditions("setp.ge.s32 %p1, %r2, 100; @%p1 bra ON; add.u32 %r1, %r1, 1; ON:"), []);
    let guarded = stores(&format!("setp.lt.s32 %p1, %r2, 100; @%p1 {store} @!%p1 {store}"));
    assert_eq!(guarded[0].1, [bound(column, 0, 99)]);
    assert_eq!(guarded[1].1, [bound(column, 100, all_columns)]);
}
