//! What registers always hold.

use crate::common::{expect, module};
use margay_ir::pass::propagate_constants;
use std::sync::Arc;

#[test]
fn accesses_inside_a_local_variable_name_it() {
    let mut ir = module(
        ".func f(.reg .b64 i) {
            .local .align 4 .b8 depot[12];
            .reg .b64 %base, %copy, %second, %moves; .reg .b16 %h; .reg .b32 %r; .reg .pred %p;
            mov.u64 %base, depot;
            mov.b64 %copy, %base;
            add.s64 %second, %copy, 4;
            add.s64 %moves, %base, 4;
            @%p add.s64 %moves, %moves, 4;
            st.local.u32 [%base], %r;
            ld.local.u32 %r, [%second+4];
            ld.local.u32 %r, [%second+-4];
            ld.local.v2.b16 {%h, _}, [%second];
            // Outside, misaligned, an address with two values, one that only depends on it.
            ld.local.u32 %r, [%second+8];
            ld.local.u32 %r, [%second+1];
            ld.local.u64 i, [%base];
            ld.local.u32 %r, [%moves];
            add.s64 i, %base, i;
            ld.local.u32 %r, [i];
            // Not the local variable.
            ld.global.u32 %r, [%second];
        }",
    );
    propagate_constants(Arc::make_mut(&mut ir.funcs[0]));
    expect(
        &ir,
        "f",
        &[
            "st.local.u32 local[f0], %r",
            "%r'2 = ld.local.u32 local[f0+8]",
            "%r'3 = ld.local.u32 local[f0]",
            "%h, _ = ld.local.v2.b16 local[f0+4]",
            "%r'4 = ld.local.u32 local[%second+8]",
            "%r'5 = ld.local.u32 local[%second+1]",
            "i = ld.local.u64 local[%base]",
            "%r'6 = ld.local.u32 local[%moves]",
            "%r'7 = ld.local.u32 local[i]",
            "%r'8 = ld.global.u32 global[%second]",
        ],
    );
}
