//! Launches at the limits of a device, and beyond them: blocks, grids, clusters, shared memory and stacks (manual, section 11.4).

use super::payload::Payload;
use crate::random::Random;

pub fn make(r: &mut Random, b: &mut Payload) {
    let grid = r.pick(&[[1, 1, 1], [1, 1, 1], [3, 1, 1], [1, 70, 1], [1, 1, 80], [200, 1, 1]]);
    let block =
        r.pick(&[[1, 1, 1], [32, 1, 1], [1, 1, 64], [1, 1, 65], [1024, 1, 1], [1025, 1, 1], [512, 4, 1], [0, 1, 1]]);
    match r.below(6) {
        0 => b.fix(grid, block),
        1 => b.fix(r.pick(&[[0, 1, 1], [1, 65_536, 1], [1, 1, 65_536], [1, 0, 1]]), [1, 1, 1]),
        2 => {
            b.fix(r.pick(&[[4, 1, 1], [6, 1, 1], [16, 2, 1]]), r.pick(&[[32, 1, 1], [1024, 1, 1]]));
            b.shape.cluster = r.pick(&[2, 3, 4, 8, 16, 17, 32]);
        }
        3 => {
            b.fix([2, 1, 1], [32, 1, 1]);
            b.shape.shared = r.pick(&[0, 1, 49_152, 49_153, 101_376, 232_448, 232_449, 1 << 24, u32::MAX]);
        }
        4 => {
            b.fix([2, 1, 1], [32, 1, 1]);
            b.shape.stack = r.pick(&[0, 1, 16, 100, 524_288, 1 << 20, 1 << 28]);
        }
        _ => {
            // What the kernel asks for, and what it gets.
            b.fix([2, 1, 1], r.pick(&[[32, 1, 1], [64, 1, 1], [128, 1, 1]]));
            b.entry = r.pick(&[
                ".maxntid 64",
                ".reqntid 64",
                ".reqntid 32, 2",
                ".maxntid 32, 1, 1 .minnctapersm 2",
                ".reqnctapercluster 2 .reqntid 64",
                ".maxclusterrank 4",
                ".explicitcluster .maxclusterrank 2",
            ]);
            b.shape.cluster = r.pick(&[1, 1, 2]);
        }
    }
    let name = b.name("words");
    match r.below(5) {
        0 => {
            b.module(format!(".extern .shared .align 16 .b8 {name}[];"));
            let at = b.shape.shared.min(1 << 20) as i64 + r.pick(&[-4i64, 0, 4, -8]);
            b.body(format!("st.shared.u32 [{name}+{}], %gid;", at & !3));
        }
        1 => {
            let bytes = r.pick(&[16, 4096, 40_000, 49_152, 60_000, 600_000]);
            b.module(format!(".shared .align 16 .b8 {name}[{bytes}];"));
            b.body(format!("st.shared.u32 [{name}+{}], %gid; ld.shared.u32 %r0, [{name}+{}];", bytes - 4, bytes - 4));
        }
        2 => {
            let bytes = r.pick(&[16, 4096, 100_000, 500_000]);
            b.body(format!(
                ".local .align 16 .b8 {name}[{bytes}]; mov.u64 %d1, {name}; add.u64 %d1, %d1, {};",
                bytes - 4
            ));
            b.body("st.local.u32 [%d1], %gid; ld.local.u32 %r0, [%d1];");
        }
        3 => {
            b.module(format!(".func (.param .b32 y) {name}(.param .b32 x) {{ .local .align 8 .b8 m[200]; .reg .b32 %w; ld.param.b32 %w, [x]; st.local.u32 [m+8], %w; ld.local.u32 %w, [m+8]; st.param.b32 [y], %w; ret; }}"));
            b.body(format!(
                "{{ .param .b32 x, y; st.param.b32 [x], %gid; call (y), {name}, (x); ld.param.b32 %r0, [y]; }}"
            ));
        }
        _ => b.all("bar.sync 0;"),
    }
}
