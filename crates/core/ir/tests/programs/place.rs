//! Frames and plans of whole programs.

use crate::common::{module, program};
use margay_ir::{
    LowerOptions,
    abi::{self, Place},
};

#[test]
fn variables_of_separate_calls_share_their_place() {
    let ir = module(
        ".func g(.param .align 8 .b8 a[64]) { ret; }
        .func f(.reg .b64 x) {
            .local .align 16 .b8 keep[32];
            { .param .align 8 .b8 p[64]; st.param.b64 [p], x; call g, (p); }
            { .param .align 8 .b8 p[64]; st.param.b64 [p], x; call g, (p); }
            st.local.b64 [keep], x;
        }",
    );
    let placed = abi::place(ir, &abi::Ptx).unwrap();
    let index = placed.funcs.iter().position(|f| &*f.name == "f").unwrap();
    let (f, places) = (&placed.funcs[index], &placed.stage.funcs[index]);
    let of = |name: &str| -> Vec<u32> {
        f.frame.iter().zip(&places.frame).filter(|(v, _)| &*v.name == name).map(|(_, at)| *at).collect()
    };
    let (p, keep) = (of("p"), of("keep")[0]);
    assert_eq!(p[0], p[1], "two calls, one place");
    assert!(keep % 16 == 0 && places.frame_align >= 16 && places.frame_size % places.frame_align == 0);
    assert!(keep >= 64, "the outgoing area of 64 bytes comes first");
    assert!(p[0] >= keep + 32 || p[0] + 64 <= keep, "no overlap with what lives longer");
}

#[test]
fn the_outgoing_area_holds_the_array_that_is_passed() {
    let ir = module(
        ".func g(.param .b32 n, .param .align 8 .b8 rest[]) { ret; }
        .func f() {
            .param .b32 n; .param .align 8 .b8 va[40];
            st.param.b32 [n], 1; st.param.b64 [va+32], 0;
            call g, (n, va);
        }",
    );
    for abi in [&abi::Ptx as &dyn abi::Abi, &abi::Sm] {
        let placed = abi::place(ir.clone(), abi).unwrap();
        let index = placed.funcs.iter().position(|f| &*f.name == "f").unwrap();
        let places = &placed.stage.funcs[index];
        let start = match places.calls[0].args[1][0].at {
            Place::Stack { offset } | Place::Space { offset } => offset,
            Place::Reg(_) | Place::Behind(_) => panic!(),
        };
        assert!(start % 8 == 0 && places.frame.iter().all(|at| *at >= start + 40), "{}", abi.name());
    }
}

#[test]
fn legacy_refuses_what_needs_a_stack() {
    let declared = module(".extern .func g(.reg .b32 n);\n.func f(.reg .b32 n) { call g, (n); ret; }");
    assert!(abi::place(declared, &abi::Legacy).unwrap_err().reason.contains("defined elsewhere"));
    let recursive = module(".func f(.reg .b32 n) { call f, (n); ret; }");
    assert!(abi::place(recursive, &abi::Legacy).unwrap_err().reason.contains("recursive"));
    let plain = module(".func g() { ret; }\n.func f(.reg .b32 n) { call g, (); ret; }");
    assert!(abi::place(plain, &abi::Legacy).is_ok());
}

#[test]
fn the_report_shows_both_sides_of_a_call() {
    let ir = module(
        ".func (.reg .b32 r) g(.param .align 4 .b8 s[12], .reg .b64 p) { mov.b32 r, 1; ret; }
        .entry k(.param .b32 n, .param .b64 q) {
            .reg .b32 %r; .reg .b64 %q;
            .param .align 4 .b8 arg[12];
            st.param.b32 [arg], 1; st.param.b32 [arg+4], 1; st.param.b32 [arg+8], 1;
            call (%r), g, (arg, %q);
        }",
    );
    let report = abi::report::report(&ir, &abi::Sm);
    let k = report.functions.iter().find(|f| f.name == "k").unwrap();
    let block = k.block.unwrap();
    assert_eq!((block.size, block.padding, block.limit), (16, 4, 32764));
    let call = &k.calls[0];
    assert_eq!((call.line, &*call.callee, &*call.args[0].what), (9, "g", "arg (12 bytes)"));
    assert_eq!(abi::report::places(&call.args[0].pieces), "R4 R5 R6");
    assert_eq!(abi::report::places(&call.args[1].pieces), "R8 R9");
    assert_eq!((&*call.args[1].formal, &*call.rets[0].what), ("p", "%r"));
    let page = abi::html::page(&report, &abi::Sm, "k.ptx");
    assert!(page.contains("<svg") && !page.contains("http"), "self-contained, with a picture");
    let json = report.json("k.ptx");
    assert!(json.starts_with('{') && json.contains("\"offset\":8"));
}

/// What is written at a declaration and changes a call, or says what a pointer is, is in the report.
#[test]
fn the_report_shows_attributes() {
    let text = ".version 9.0
        .target sm_80
        .address_size 64
        .extern .func (.param .b32 r) kept(.param .b32 a) .abi_preserve 8;
        .extern .func ends(.param .b32 a) .noreturn;
        .entry k(.param .u64 .ptr .global .align 16 p, .param .u64 .ptr q, .param .u64 r) { ret; }";
    let ir = program(&[text], &LowerOptions { kernel: None, relocatable: true }).unwrap();
    let report = abi::report::report(&ir, &abi::Ptx);
    let titles: Vec<String> = report.functions.iter().map(|f| f.title()).collect();
    assert_eq!(titles, ["function kept .abi_preserve 8 (declared)", "function ends .noreturn (declared)", "kernel k"]);
    let types: Vec<&str> = report.functions[2].params.iter().map(|p| &*p.ty).collect();
    assert_eq!(types, [".param .u64 .ptr .global .align 16", ".param .u64 .ptr .align 4", ".param .u64"]);
}
