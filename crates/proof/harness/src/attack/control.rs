//! Branches beyond tables, traps and exits in odd places, undefined arithmetic, library functions with invalid
//! arguments.

use super::payload::{Blame, Payload};
use crate::random::Random;

pub fn make(r: &mut Random, b: &mut Payload) {
    let f = b.name("f");
    match r.below(14) {
        0..2 => jump_table(r, b),
        2 => stop(r, b),
        3 => stop_in_function(r, b, &f),
        4 => stop_apart(r, b),
        5..7 => undefined_integer(r, b),
        7 => undefined_conversion(r, b),
        8 => undefined_function(b, &f),
        9 | 10 => vprintf(r, b),
        11 => assertion(r, b),
        12 => function_without_return(b, &f),
        _ => special_registers(r, b),
    }
}

/// `brx.idx` with an index beyond its table.
fn jump_table(r: &mut Random, b: &mut Payload) {
    let index = r.pick(&["0", "2", "3", "4", "100", "0xffffffff", "0x80000000", "%lane", "%r1"]);
    b.body(format!("and.b32 %r1, %lane, 7; mov.u32 %r2, {index};"));
    b.body("TABLE: .branchtargets ONE, TWO, THREE;");
    b.body("brx.idx %r2, TABLE;");
    b.body("ONE: mov.u32 %r0, 1; bra OVER;");
    b.body("TWO: mov.u32 %r0, 2; bra OVER;");
    b.body("THREE: mov.u32 %r0, 3;");
    b.body("OVER:");
}

/// Stops, by all lanes or some.
fn stop(r: &mut Random, b: &mut Payload) {
    b.body(r.pick(&["trap;", "brkpt;", "exit;", "@%p1 trap;", "trap; exit;"]));
}

/// Stops in functions, by some lanes.
fn stop_in_function(r: &mut Random, b: &mut Payload, f: &str) {
    let how = r.pick(&["trap", "exit", "brkpt", "ret"]);
    b.module(format!(".func (.param .b32 y) {f}(.param .b32 x) {{ .reg .b32 %w; .reg .pred %p; ld.param.b32 %w, [x]; setp.eq.u32 %p, %w, 1; @%p {how}; st.param.b32 [y], %w; ret; }}"));
    b.body(format!("and.b32 %r1, %lane, {};", r.pick(&[0, 1, 3])));
    b.body(format!("{{ .param .b32 x, y; st.param.b32 [x], %r1; call (y), {f}, (x); ld.param.b32 %r1, [y]; }}"));
    // The result of a function that does not store one is undefined.
    b.quiet = how == "ret";
}

/// Lanes stop at different places.
fn stop_apart(r: &mut Random, b: &mut Payload) {
    b.body(format!("setp.lt.u32 %p1, %lane, {}; @%p1 bra LOW;", r.below(33)));
    b.body(format!("{}; bra OVER;", r.pick(&["trap", "exit", "brkpt"])));
    b.body(format!("LOW: {};", r.pick(&["trap", "exit", "brkpt"])));
    b.body("OVER:");
    b.blame = Blame::Anybody;
}

/// Results that the manual leaves undefined: the engines must agree, and not crash.
fn undefined_integer(r: &mut Random, b: &mut Payload) {
    let x = r.pick(&["0", "1", "-1", "0x80000000", "%lane", "%gid"]);
    let y = r.pick(&["0", "-1", "0", "1", "%r1"]);
    b.body(format!("mov.u32 %r1, 0; mov.u32 %r2, {x}; mov.u32 %r3, {y};"));
    b.body("cvt.s64.s32 %d1, %r2; cvt.s64.s32 %d2, %r3; cvt.u16.u32 %h0, %r2; cvt.u16.u32 %h1, %r3;");
    if x == "0x80000000" {
        b.body("shl.b64 %d1, %d1, 32; shl.b16 %h0, %h0, 15; or.b16 %h0, %h0, 0x8000;");
    }
    b.body(r.pick(&[
        "div.s32 %r0, %r2, %r3;",
        "rem.s32 %r0, %r2, %r3;",
        "div.u32 %r0, %r2, %r3;",
        "rem.u32 %r0, %r2, %r3;",
        "div.s64 %d0, %d1, %d2;",
        "rem.s64 %d0, %d1, %d2;",
        "div.u64 %d0, %d1, %d2;",
        "rem.u64 %d0, %d1, %d2;",
        "div.s16 %h2, %h0, %h1; cvt.u32.u16 %r0, %h2;",
        "rem.s16 %h2, %h0, %h1; cvt.u32.u16 %r0, %h2;",
        "div.u16 %h2, %h0, %h1; cvt.u32.u16 %r0, %h2;",
        "bfe.u32 %r0, %r2, %r3, %r2;",
        "bfe.s64 %d0, %d1, %r3, %r2;",
        "bfi.b32 %r0, %r2, %r3, %r2, %r3;",
        "shl.b32 %r0, %r2, %r3;",
        "shr.s64 %d0, %d1, %r3;",
        "shf.l.clamp.b32 %r0, %r2, %r3, %r3;",
        "prmt.b32.f4e %r0, %r2, %r3, %r3;",
        "bmsk.clamp.b32 %r0, %r2, %r3;",
        "fns.b32 %r0, %r2, %r3, %r2;",
        "szext.wrap.u32 %r0, %r2, %r3;",
    ]));
}

/// Conversions of values that the type does not have.
fn undefined_conversion(r: &mut Random, b: &mut Payload) {
    let bits = r.pick(&[
        "0x7f800000",
        "0xff800000",
        "0x7fc00000",
        "0x7f800001",
        "0x5f000000",
        "0xdf800001",
        "0x4f000000",
        "0x80000000",
    ]);
    b.body(format!("mov.b32 %f0, {bits}; cvt.f64.f32 %g0, %f0;"));
    b.body(r.pick(&[
        "cvt.rzi.s32.f32 %r0, %f0;",
        "cvt.rzi.u64.f32 %d0, %f0;",
        "cvt.rni.s64.f64 %d0, %g0;",
        "cvt.rzi.u32.f64 %r0, %g0;",
        "cvt.rmi.s16.f32 %h0, %f0; cvt.u32.u16 %r0, %h0;",
        "cvt.rzi.u8.f32 %r0, %f0;",
    ]));
}

/// A function without a definition.
fn undefined_function(b: &mut Payload, f: &str) {
    b.module(format!(".extern .func (.param .b32 y) {f}(.param .b32 x);"));
    b.body(format!("{{ .param .b32 x, y; st.param.b32 [x], 1; call (y), {f}, (x); ld.param.b32 %r0, [y]; }}"));
}

/// `vprintf` with an invalid format or arguments.
fn vprintf(r: &mut Random, b: &mut Payload) {
    let text = b.name("format");
    let written: Vec<String> = r
        .pick(&[&b"%d %s %n\n\0"[..], b"%s%s%s\0", b"%*d %lld %f\0", b"no end", b"%", b"\0", b"%1000000d\n\0"])
        .iter()
        .map(u8::to_string)
        .collect();
    b.module(format!(".global .align 1 .b8 {text}[{}] = {{{}}};", written.len(), written.join(", ")));
    b.module(".extern .func (.param .b32 y) vprintf(.param .b64 f, .param .b64 a);");
    b.body(format!(".local .align 8 .b8 arguments_{text}[16]; st.local.u64 [arguments_{text}], {}; st.local.u64 [arguments_{text}+8], 7;", r.pick(&["0", "%own", "0xdeadbeef", "-1"])));
    b.body(format!(
        "mov.u64 %d1, {text}; cvta.global.u64 %d1, %d1; mov.u64 %d2, arguments_{text}; cvta.local.u64 %d2, %d2;"
    ));
    if r.chance(40) {
        b.body(r.pick(&[
            "mov.u64 %d1, 0;",
            "mov.u64 %d2, 0;",
            "mov.u64 %d2, 0xdeadbeef;",
            "mov.u64 %d1, -1;",
            "add.u64 %d1, %d1, 400;",
            "mov.u64 %d1, %d2;",
        ]));
    }
    b.body("{ .param .b64 f, a; .param .b32 y; st.param.b64 [f], %d1; st.param.b64 [a], %d2; call (y), vprintf, (f, a); ld.param.b32 %r1, [y]; }");
}

/// `__assertfail` with invalid strings.
fn assertion(r: &mut Random, b: &mut Payload) {
    b.module(".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);");
    let at = r.pick(&["0", "%own", "0xdeadbeef", "-1"]);
    b.body(format!("mov.u64 %d1, {at};"));
    b.body("{ .param .b64 m, f, n, s; .param .b32 l; st.param.b64 [m], %d1; st.param.b64 [f], %d1; st.param.b32 [l], 7; st.param.b64 [n], %d1; st.param.b64 [s], 1; call __assertfail, (m, f, l, n, s); }");
}

/// A direct call of a function that does not return.
fn function_without_return(b: &mut Payload, f: &str) {
    b.module(format!(".func {f}() {{ .reg .pred %p; setp.eq.u32 %p, 0, 0; @%p exit; ret; }}"));
    b.body(format!("call {f}, ();"));
    b.rest("bar.sync 0;");
}

/// Special registers and address queries.
fn special_registers(r: &mut Random, b: &mut Payload) {
    b.body(r.pick(&[
        "mov.u32 %r0, %dynamic_smem_size; mov.u32 %r1, %total_smem_size;",
        "mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, %is_explicit_cluster;",
        "mov.u32 %r0, %nsmid; mov.u32 %r0, 0;",
        "getctarank.u64 %r0, %own;",
        "isspacep.shared %p1, %own; selp.u32 %r0, 1, 2, %p1;",
        "isspacep.param %p1, %own; selp.u32 %r0, 1, 2, %p1;",
        "mov.u64 %d1, -1; isspacep.local %p1, %d1; selp.u32 %r0, 1, 2, %p1;",
        "setmaxnreg.inc.sync.aligned.u32 240;",
        "griddepcontrol.wait;",
        "pmevent 1;",
    ]));
}
