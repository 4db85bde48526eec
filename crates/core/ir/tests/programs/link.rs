//! Several modules become one program (manual, sections 11.2.3 and 11.6).

use crate::common::program;
use margay_ir::{Callee, GlobalInit, Ir, LowerOptions, Pointee, Virtual};

const HEAD: &str = ".version 8.3\n.target sm_80\n.address_size 64\n";

fn link(texts: &[&str], kernel: Option<&str>) -> Result<Ir<Virtual>, margay_ir::LowerError> {
    let texts: Vec<String> = texts.iter().map(|t| format!("{HEAD}{t}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    program(&texts, &LowerOptions { kernel, relocatable: false })
}

/// Name and file of the function that the first call of a function reaches.
fn reached(ir: &Ir<Virtual>, caller: &str) -> (String, String) {
    let caller = ir.funcs.iter().find(|f| &*f.name == caller).unwrap();
    let Callee::Direct(id) = caller.calls[0].callee else { panic!("an indirect call") };
    (ir.func(id).name.to_string(), ir.func(id).source.name.clone())
}

const CALL_F: &str = ".extern .func f();\n.visible .entry k() { call f, (); ret; }";

#[test]
fn externals_find_definitions_of_other_modules() {
    let ir = link(&[CALL_F, ".visible .func f() { ret; }"], Some("k")).unwrap();
    assert_eq!(reached(&ir, "k"), ("f".into(), "b.ptx".into()));
}

#[test]
fn strong_definitions_override_weak_ones_in_any_order() {
    let weak = ".weak .func f() { ret; }\n.visible .entry k() { call f, (); ret; }";
    let ir = link(&[weak, ".visible .func f() { ret; }"], None).unwrap();
    assert_eq!(reached(&ir, "k").1, "b.ptx");
    let ir = link(&[weak, ".weak .func f() { ret; }"], None).unwrap();
    assert_eq!(reached(&ir, "k").1, "a.ptx");
}

#[test]
fn symbols_without_linkage_are_local_to_their_module() {
    let own = |k: &str| format!(".func f() {{ ret; }}\n.visible .entry {k}() {{ call f, (); ret; }}");
    let ir = link(&[&own("k"), &own("l")], None).unwrap();
    assert_eq!(reached(&ir, "k").1, "a.ptx");
    assert_eq!(reached(&ir, "l").1, "b.ptx");
}

#[test]
fn duplicate_and_missing_definitions_are_errors() {
    let twice = link(&[".visible .func f() { ret; }", ".visible .func f() { ret; }"], None).unwrap_err();
    assert!(twice.message.contains("`f` is defined twice") && twice.file == "b.ptx");
    assert_eq!(twice.other.unwrap().0, "a.ptx");
    let none = link(&[CALL_F], Some("k")).unwrap_err();
    assert!(none.message.contains("no module defines") && none.other.is_some() && !none.unsupported);
}

#[test]
fn launches_from_device_code_are_named_as_unsupported() {
    let module =
        ".extern .func __cudaCDP2LaunchDeviceV2();\n.visible .entry k() { call __cudaCDP2LaunchDeviceV2, (); ret; }";
    let error = link(&[module], Some("k")).unwrap_err();
    assert!(error.message.contains("dynamic parallelism") && error.unsupported, "{}", error.message);
}

#[test]
fn waiting_in_device_code_is_named_as_unsupported() {
    let module = ".extern .func cudaDeviceSynchronize();\n.visible .entry k() { call cudaDeviceSynchronize, (); ret; }";
    let error = link(&[module], Some("k")).unwrap_err();
    assert!(error.message.contains("waits for its launches") && error.unsupported, "{}", error.message);
}

#[test]
fn an_interface_that_differs_is_an_error() {
    let other = link(&[CALL_F, ".visible .func f(.param .b32 a) { ret; }"], None).unwrap_err();
    assert!(other.message.contains("a different signature"), "{}", other.message);
}

#[test]
fn aliases_reach_their_function() {
    let text =
        ".visible .func f() { ret; }\n.visible .func g();\n.alias g, f;\n.visible .entry k() { call g, (); ret; }";
    let ir = link(&[text], Some("k")).unwrap();
    assert_eq!(reached(&ir, "k").0, "f");
    let outside = ".extern .func g();\n.visible .entry l() { call g, (); ret; }";
    let ir = link(&[text, outside], Some("l")).unwrap();
    assert_eq!(reached(&ir, "l"), ("f".into(), "a.ptx".into()));
}

#[test]
fn common_variables_merge_into_the_largest() {
    let small = ".common .global .b8 c[4];\n.visible .entry k() { .reg .b64 %a; mov.u64 %a, c; ret; }";
    let ir = link(&[small, ".common .global .b8 c[12];"], Some("k")).unwrap();
    let c: Vec<_> = ir.globals.iter().filter(|g| &*g.name == "c").collect();
    assert_eq!((c.len(), c[0].size), (1, 12));
}

#[test]
fn a_kernel_is_lowered_with_exactly_what_it_reaches() {
    let text = ".func used() { ret; }\n.func unused() { ret; }\n.func by_address() { ret; }
        .global .u64 table[1] = { by_address };
        .visible .entry k() { .reg .b64 %a; call used, (); ld.global.u64 %a, [table]; ret; }
        .visible .entry other() { call unused, (); ret; }";
    let ir = link(&[text], Some("k")).unwrap();
    let lowered: Vec<&str> = ir.funcs.iter().filter(|f| !f.blocks.is_empty()).map(|f| &*f.name).collect();
    assert_eq!(lowered, ["used", "by_address", "k"]);
    let Some(GlobalInit::Address { of: Pointee::Func(id), .. }) = ir.globals[0].init.first() else { panic!() };
    assert_eq!(&*ir.func(*id).name, "by_address");
}

#[test]
fn a_missing_kernel_is_reported_with_the_existing_ones() {
    let e = link(&[".visible .entry saxpy() { ret; }"], Some("sxpy")).unwrap_err();
    assert!(e.message.contains("`sxpy`") && e.message.contains("`saxpy`"), "{}", e.message);
}

#[test]
fn declarations_of_a_variable_must_agree_in_size() {
    // Each as nvlink 13 has it.
    let with = |declared: &str, defined: &str| {
        let user = format!("{declared}\n.visible .entry k() {{ .reg .b64 %a; mov.u64 %a, x; ret; }}");
        link(&[&user, defined], Some("k")).map(drop).map_err(|e| e.message)
    };
    let eight = ".visible .global .u32 x[8];";
    for good in [".extern .global .u32 x[8];", ".extern .global .u32 x[];", ".extern .global .f32 x[2][4];"] {
        with(good, eight).unwrap();
    }
    for bad in [
        ".extern .global .u32 x[4];",
        ".extern .global .u32 x[16];",
        ".weak .global .u32 x[4];",
        ".weak .global .u32 x[16];",
        ".common .global .u32 x[4];",
    ] {
        let why = with(bad, eight).unwrap_err();
        assert!(why.contains("bytes here and"), "{bad}: {why}");
    }
    with(".common .global .u32 x[4];", ".common .global .u32 x[8];").unwrap();
    assert!(with(".extern .global .u32 x[4];", ".common .global .u32 x[8];").is_err());
}
