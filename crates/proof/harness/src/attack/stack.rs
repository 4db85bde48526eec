//! Stacks: recursion, large frames, `alloca`, `stacksave` and `stackrestore` (manual, section 9.7.17).

use super::payload::{Blame, Payload};
use crate::random::Random;

pub fn recursion(r: &mut Random, b: &mut Payload) {
    b.shape.stack = r.pick(&[1024, 4096, 65_536]);
    let frame = r.pick(&[0, 16, 256, 1024, 4000, 20_000]);
    let depth = r.pick(&[1, 3, 10, 100, 2000, 100_000, u32::MAX]);
    let (f, g) = (b.name("f"), b.name("g"));
    let passed = r.pick(&[0, 0, 8, 200, 4000]);
    let signature = |name: &str| {
        let more = if passed > 0 { format!(", .param .align 8 .b8 s[{passed}]") } else { String::new() };
        format!(".func (.param .b32 y) {name}(.param .b32 x{more})")
    };
    let mutual = r.chance(40);
    let indirect = r.chance(30);
    let tail = r.chance(30);
    let body = |other: &str| {
        let local = match frame {
            0 => String::new(),
            n => format!(".local .align 8 .b8 frame[{n}]; st.local.u32 [frame+{}], %w;", n - 4),
        };
        let (kept, given) = match passed {
            0 => (String::new(), ""),
            n => (format!(".param .align 8 .b8 t[{n}]; st.param.b32 [t+{}], %w;", n - 4), ", t"),
        };
        let more = if passed > 0 { format!(", .param .align 8 .b8 _[{passed}]") } else { String::new() };
        let call = if indirect {
            format!(
                "mov.u64 %a, {other}; P: .callprototype (.param .b32 _) _ (.param .b32 _{more}); call (q), %a, (p{given}), P;"
            )
        } else {
            format!("call (q), {other}, (p{given});")
        };
        let read = if frame > 0 {
            format!("ld.local.u32 %u, [frame+{}]; add.u32 %w, %w, %u;", frame - 4)
        } else {
            String::new()
        };
        let after = if tail {
            "ld.param.b32 %w, [q];".to_owned()
        } else {
            format!("ld.param.b32 %v, [q]; {read} add.u32 %w, %w, %v;")
        };
        format!(
            "{{ .reg .b32 %w, %v, %u; .reg .b64 %a; .reg .pred %p;\n    ld.param.b32 %w, [x]; {local}\n    \
             setp.eq.u32 %p, %w, 0; @%p bra END;\n    {{ .param .b32 p, q; {kept} sub.u32 %v, %w, 1; st.param.b32 [p], %v;\n    \
             {call}\n    {after} }}\n    END: st.param.b32 [y], %w; ret; }}"
        )
    };
    b.module(format!("{};", signature(&g)));
    b.module(format!("{}\n{}", signature(&f), body(if mutual { &g } else { &f })));
    b.module(format!("{}\n{}", signature(&g), body(&f)));
    let (kept, given) = match passed {
        0 => (String::new(), ""),
        n => (format!(".param .align 8 .b8 t[{n}]; st.param.b32 [t+{}], 7;", n - 4), ", t"),
    };
    let more = if r.chance(30) { " and.b32 %r1, %gid, 3; add.u32 %r2, %r2, %r1;" } else { "" };
    let depth = if more.is_empty() { depth } else { depth.min(100_000) };
    b.body(format!("mov.u32 %r2, {depth};{more}"));
    b.body(format!(
        "{{ .param .b32 p, q; {kept} st.param.b32 [p], %r2; call (q), {f}, (p{given}); ld.param.b32 %r0, [q]; }}"
    ));
}

pub fn alloca(r: &mut Random, b: &mut Payload) {
    b.shape.stack = r.pick(&[1024, 4096, 65_536]);
    match r.below(11) {
        0..3 => sized(r, b),
        3 => oversized(r, b),
        4 => until_full(r, b),
        5 => save_and_restore(b),
        6 | 7 => restore_unsaved(r, b),
        8 => restore_from_returned(b),
        9 => use_after_restore(b),
        _ => in_calls(r, b),
    }
}

/// Various sizes, with accesses in and around the allocation.
fn sized(r: &mut Random, b: &mut Payload) {
    let size = r.pick(&[
        "0",
        "1",
        "8",
        "16",
        "100",
        "1000",
        "4000",
        "60000",
        "70000",
        "0x7fffffff",
        "0x80000000",
        "0xfffffff0",
        "0xffffffff",
    ]);
    let wide = r.pick(&["64", "32"]);
    match wide {
        "32" => b.body(format!("mov.u32 %r1, {size}; cvt.u64.u32 %d2, %r1; alloca.u64 %d1, %d2;")),
        _ => b.body(format!("alloca.u64 %d1, {size};")),
    }
    if r.chance(70) {
        let at = r.pick(&[0i64, 0, 8, 96, 4096, 65_536, -8, 1 << 31]);
        b.body(format!("add.s64 %d1, %d1, {at}; st.local.u32 [%d1], 5; ld.local.u32 %r0, [%d1];"));
        b.quiet = true;
    }
}

/// Sizes beyond 32 bits.
fn oversized(r: &mut Random, b: &mut Payload) {
    let size =
        r.pick(&["0x100000000", "0x100000010", "0x8000000000000000", "0xffffffffffffffff", "0xfffffffffffffff0"]);
    b.body(format!("mov.u64 %d2, {size}; alloca.u64 %d1, %d2;"));
    b.body("st.local.u32 [%d1], 5;");
}

/// Until the stack is full.
fn until_full(r: &mut Random, b: &mut Payload) {
    b.body(format!(
        "mov.u32 %r1, 0; AGAIN: alloca.u64 %d1, {}; st.local.u32 [%d1], %r1;",
        r.pick(&[16, 64, 1000, 4096])
    ));
    b.body(format!("add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, {}; @%p1 bra AGAIN;", r.pick(&[10, 100, 100_000])));
    b.body("mov.u32 %r0, %r1;");
}

/// Saved, allocated, restored in a loop: stays within the limit.
fn save_and_restore(b: &mut Payload) {
    b.body("mov.u32 %r1, 0; AGAIN: stacksave.u64 %d2; alloca.u64 %d1, 512; st.local.u32 [%d1], %r1; ld.local.u32 %r0, [%d1]; stackrestore.u64 %d2;");
    b.body("add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 200; @%p1 bra AGAIN;");
}

/// Restoring a value that was not saved.
fn restore_unsaved(r: &mut Random, b: &mut Payload) {
    b.body("stacksave.u64 %d2; alloca.u64 %d1, 64; st.local.u32 [%d1], 1;");
    b.body(match r.below(6) {
        0 => format!("mov.u64 %d2, {};", r.bits() >> r.below(64)),
        1 => format!("add.s64 %d2, %d2, {};", r.pick(&[4, 8, 16, 64, 4096, -4, -8, -16, -64, -4096])),
        2 => "mov.u64 %d2, 0;".into(),
        3 => "mov.u64 %d2, %d1;".into(),
        4 => "cvta.local.u64 %d2, %d2;".into(),
        _ => "not.b64 %d2, %d2;".into(),
    });
    b.body("stackrestore.u64 %d2;");
    if r.chance(50) {
        b.body("alloca.u64 %d1, 64; st.local.u32 [%d1], 2; ld.local.u32 %r0, [%d1];");
    }
}

/// Restoring what another function has saved that has returned.
fn restore_from_returned(b: &mut Payload) {
    let f = b.name("saves");
    b.module(format!(
        ".func (.param .b64 y) {f}() {{ .reg .b64 %s, %t; alloca.u64 %t, 128; st.local.u32 [%t], 1; stacksave.u64 %s; st.param.b64 [y], %s; ret; }}"
    ));
    b.body(format!("{{ .param .b64 y; call (y), {f}, (); ld.param.b64 %d2, [y]; }}"));
    b.body("stackrestore.u64 %d2; alloca.u64 %d1, 64; st.local.u32 [%d1], 2; ld.local.u32 %r0, [%d1];");
}

/// Using an allocation after the restore.
fn use_after_restore(b: &mut Payload) {
    b.body("stacksave.u64 %d2; alloca.u64 %d1, 64; st.local.u32 [%d1], 1; stackrestore.u64 %d2;");
    b.body("ld.local.u32 %r0, [%d1];");
    b.quiet = true;
}

/// Sizes that vary by lane; a function's own allocations end when it returns.
fn in_calls(r: &mut Random, b: &mut Payload) {
    let f = b.name("takes");
    b.module(format!(
        ".func (.param .b32 y) {f}(.param .b32 x) {{ .reg .b64 %t, %n; .reg .b32 %w; ld.param.b32 %w, [x]; mul.wide.u32 %n, %w, {}; \
         alloca.u64 %t, %n; st.local.u32 [%t], %w; ld.local.u32 %w, [%t]; st.param.b32 [y], %w; ret; }}",
        r.pick(&[8, 100, 1000])
    ));
    b.body("mov.u32 %r1, 0; mov.u32 %r0, 0;");
    b.body(format!(
        "AGAIN: {{ .param .b32 x, y; add.u32 %r2, %r1, %lane; add.u32 %r2, %r2, 1; st.param.b32 [x], %r2; call (y), {f}, (x); \
         ld.param.b32 %r2, [y]; add.u32 %r0, %r0, %r2; }}"
    ));
    b.body("add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 20; @%p1 bra AGAIN;");
    b.blame = Blame::Executors;
}
