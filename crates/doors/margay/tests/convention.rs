//! What `margay abi` says is what compiled functions do: the plans of every ABI against the signatures of LLVM functions.
#![cfg(feature = "simd")]

use serde_json::Value;
use std::process::Command;

const MODULE: &str = "\
.version 8.0
.target sm_70
.address_size 64

.func (.param .b32 r) scaled(.param .b64 base, .param .b32 i, .param .b32 factor)
{
    .reg .b64 %b, %o;
    .reg .b32 %i, %f, %x;
    ld.param.b64 %b, [base];
    ld.param.b32 %i, [i];
    ld.param.b32 %f, [factor];
    mul.wide.u32 %o, %i, 4;
    add.u64 %b, %b, %o;
    ld.global.u32 %x, [%b];
    mul.lo.u32 %x, %x, %f;
    st.param.b32 [r], %x;
    ret;
}

.func (.param .align 8 .b8 r[24]) triple(.param .align 8 .b8 s[24], .param .f32 a, .param .f64 b)
{
    .reg .b64 %x;
    ld.param.b64 %x, [s+8];
    st.param.b64 [r], %x;
    st.param.b64 [r+16], %x;
    ret;
}

.func (.param .align 8 .b8 r[200]) large(.param .align 8 .b8 s[200], .param .b16 w)
{
    .reg .b64 %x;
    ld.param.b64 %x, [s+192];
    st.param.b64 [r+192], %x;
    ret;
}

.func (.param .b32 r) next(.param .b32 i)
{
    .reg .b32 %i;
    ld.param.b32 %i, [i];
    add.u32 %i, %i, 1;
    st.param.b32 [r], %i;
    ret;
}

.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 s)
{
    .reg .b64 %in, %out, %o, %d;
    .reg .b32 %t, %s, %x;
    .reg .b16 %w;
    .reg .f32 %f;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    ld.param.u32 %s, [s];
    mov.u32 %t, %tid.x;
    mov.f32 %f, 0f3f800000;
    cvt.u64.u32 %d, %t;
    cvt.u16.u32 %w, %t;
    {
        .param .b64 a;
        .param .b32 b, c, r;
        st.param.b64 [a], %in;
        st.param.b32 [b], %t;
        st.param.b32 [c], %s;
        call (r), scaled, (a, b, c);
        ld.param.b32 %x, [r];
    }
    {
        .param .align 8 .b8 p[24], q[24];
        .param .f32 a;
        .param .f64 b;
        st.param.b64 [p+8], %d;
        st.param.f32 [a], %f;
        st.param.b64 [b], %d;
        call (q), triple, (p, a, b);
        ld.param.b64 %o, [q];
    }
    {
        .param .align 8 .b8 p[200], q[200];
        .param .b16 w;
        st.param.b64 [p+192], %d;
        st.param.b16 [w], %w;
        call (q), large, (p, w);
        ld.param.b64 %o, [q+192];
    }
    {
        .param .b32 i, r;
        st.param.b32 [i], %s;
        call (r), next, (i);
        ld.param.b32 %s, [r];
    }
    add.u32 %x, %x, %s;
    shl.b64 %o, %o, 2;
    add.u64 %out, %out, %o;
    st.global.u32 [%out], %x;
    ret;
}
";

fn margay(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_margay")).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The integer that holds a piece, in all lanes or in one value for all.
fn carried(piece: &Value) -> String {
    let bytes = (piece["to"].as_u64().unwrap() - piece["from"].as_u64().unwrap()).next_power_of_two();
    match piece["class"].as_str() {
        Some("S") => format!("i{}", 8 * bytes),
        _ => format!("<32 x i{}>", 8 * bytes),
    }
}

fn pieces(values: &Value) -> Vec<&Value> {
    values.as_array().unwrap().iter().flat_map(|v| v["pieces"].as_array().unwrap()).collect()
}

/// The signature that a function with these places has.
fn expected(function: &Value) -> (String, Vec<String>) {
    let (params, rets) = (pieces(&function["params"]), pieces(&function["rets"]));
    let register = |p: &&&Value| p["kind"] == "register";
    let results: Vec<String> = rets.iter().filter(register).map(|p| carried(p)).collect();
    let result = match &results[..] {
        [] => "i32".to_string(),
        all => format!("{{ i32, {} }}", all.join(", ")),
    };
    let mut arguments: Vec<String> = ["ptr noalias %ctx", "i32 %mask", "i32 %frame"].map(str::to_string).to_vec();
    for hidden in rets.iter().filter(|p| p["kind"] == "behind") {
        let at = hidden["at"].as_str().unwrap().trim_matches(['[', ']']);
        arguments.push(format!("ptr %{}", at.split('+').next().unwrap()));
    }
    arguments.extend(params.iter().filter(register).map(|p| format!("{} %{}", carried(p), p["at"].as_str().unwrap())));
    let lies = |kind: &str, pieces: &[&Value]| pieces.iter().any(|p| p["kind"] == kind);
    if lies("stack", &params) {
        arguments.push("ptr %stack".into());
    }
    if lies("param", &params) || lies("param", &rets) {
        arguments.push("ptr %space".into());
    }
    (result, arguments)
}

#[test]
fn llvm_functions_have_the_signatures_of_their_plans() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("convention.ptx");
    std::fs::write(&file, MODULE).unwrap();
    let file = file.to_str().unwrap();
    let (mut scalars, mut scalar_results) = (0, 0);
    for abi in ["simd", "ptx", "sm", "sysv", "legacy"] {
        let report: Value = serde_json::from_str(&margay(&["abi", file, "--abi", abi, "--json"])).unwrap();
        let code = margay(&["ir", file, "--kernel", "k", "--stage", "llvm", "--abi", abi, "--block", "32"]);
        let functions = report["functions"].as_array().unwrap();
        for (id, function) in functions.iter().enumerate().filter(|(_, f)| f["kind"] == "function") {
            let define = format!("@f{id}(");
            let line = code.lines().find(|l| l.starts_with("define ") && l.contains(&define)).unwrap();
            let (result, rest) = line.strip_prefix("define ").unwrap().split_once(&format!(" {define}")).unwrap();
            let arguments: Vec<&str> = rest.split_once(')').unwrap().0.split(", ").collect();
            let (wanted, list) = expected(function);
            assert_eq!(
                (result, arguments),
                (&*wanted, list.iter().map(|a| &**a).collect()),
                "{abi}: {}",
                function["name"]
            );
            scalars += list.iter().filter(|a| a.contains(" %S")).count();
            scalar_results += usize::from(result == "{ i32, i32 }");
        }
    }
    // `base` and `factor` of `scaled`, `a` of `triple`, the pointer to the large return, and `i` of `next`: nothing else is uniform.
    assert_eq!(scalars, 5, "the arguments that all lanes share travel in scalar registers of `simd`");
    assert_eq!(scalar_results, 1, "so does what `next` returns");
}

#[test]
fn the_code_of_either_tier_is_shown() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("tiers.ptx");
    let kernel = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 d) { .reg .b64 %d; .reg .b32 %t, %l; \
         .reg .pred %p; ld.param.u64 %d, [d]; ld.global.u32 %t, [%d]; mov.u32 %l, %laneid; setp.eq.u32 %p, %t, %l; @%p bra OUT; \
         st.global.u32 [%d], %t; OUT: ret; }\n";
    std::fs::write(&file, kernel).unwrap();
    let show = |tier: &str| margay(&["ir", file.to_str().unwrap(), "--stage", "llvm", "--tier", tier]);
    let (light, full) = (show("light"), show("full"));
    assert!(light.contains("define i32 @f"), "{light}");
    // Only the full tier has a version of divergent blocks for full warps.
    assert!(light.lines().count() < full.lines().count(), "{light}\n{full}");
}

/// A struct of so many bytes through three functions.
fn nested(bytes: u32) -> String {
    let param = |names: &str| format!(".param .align 8 .b8 {names}[{bytes}]");
    let last = bytes - 8;
    let body = |inner: &str| {
        format!("{{ .reg .b64 %x; ld.param.b64 %x, [a+{last}]; {inner} st.param.b64 [r+{last}], %x; ret; }}\n")
    };
    let call = |f: &str| {
        format!(
            "{}; {}; st.param.b64 [p+{last}], %x; call (q), {f}, (p); ld.param.b64 %x, [q+{last}];",
            param("p"),
            param("q")
        )
    };
    let mut text = String::from(".version 8.0\n.target sm_70\n.address_size 64\n");
    text += &format!(".func ({}) f0({}) {}", param("r"), param("a"), body("add.u64 %x, %x, 1;"));
    for (name, inner) in [("f1", "f0"), ("f2", "f1")] {
        text += &format!(".func ({}) {name}({}) {}", param("r"), param("a"), body(&call(inner)));
    }
    text + &format!(
        ".visible .entry k(.param .u64 d) {{ .reg .b64 %x, %d; mov.u64 %x, 1; {} ld.param.u64 %d, [d]; st.global.u64 [%d], %x; ret; }}\n",
        call("f2")
    )
}

#[test]
fn the_size_of_code_does_not_depend_on_that_of_structs() {
    for abi in ["simd", "ptx", "sm", "sysv"] {
        let size = |bytes: u32| {
            let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nested_{bytes}.ptx"));
            std::fs::write(&file, nested(bytes)).unwrap();
            margay(&["ir", file.to_str().unwrap(), "--kernel", "k", "--stage", "llvm", "--abi", abi]).len()
        };
        for (small, large) in [(1000, 4000), (5000, 60_000)] {
            let (a, b) = (size(small), size(large));
            assert!(b < a + a / 10, "{abi}: {a} bytes of code for {small} bytes, {b} for {large}");
        }
    }
}
