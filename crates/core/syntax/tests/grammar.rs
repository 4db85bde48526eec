//! What the grammar takes and refuses. The verdicts are those of ptxas 13.5, asked for each of these lines.

use margay_syntax::{Code, Parsed, Severity, eval, parse, tree::*};

const HEAD: &str = ".version 8.7\n.target sm_80\n.address_size 64\n";

fn module(text: &str) -> Parsed {
    parse(&format!("{HEAD}{text}\n"))
}

fn body(text: &str) -> Parsed {
    parse(&format!("{HEAD}.visible .entry k(.param .u64 out)\n{{\n{text}\nret;\n}}\n"))
}

fn refused(parsed: &Parsed) -> bool {
    parsed.diagnostics.iter().any(|d| d.severity == Severity::Error)
}

#[track_caller]
fn all(texts: &str, read: fn(&str) -> Parsed, want_refused: bool) {
    for text in texts.lines().filter(|l| !l.trim().is_empty()) {
        let text = text.replace("\\n", "\n");
        let parsed = read(&text);
        assert_eq!(refused(&parsed), want_refused, "{text}\n{:#?}", parsed.diagnostics);
    }
}

#[test]
fn the_sample_reads() {
    let parsed = parse(include_str!("sample.ptx"));
    assert!(parsed.diagnostics.is_empty(), "{:#?}", parsed.diagnostics);
    let tree = &parsed.tree;
    let kinds: Vec<FuncKind> = tree.funcs.iter().map(|f| f.kind).collect();
    assert_eq!(kinds.iter().filter(|k| **k == FuncKind::Entry).count(), 3);
    assert_eq!(kinds.iter().filter(|k| **k == FuncKind::Prototype).count(), 1);
    assert_eq!(tree.comments.len(), 7 + 1, "seven comments and a line marker, those of the section included");
}

#[test]
fn takes_statements_of_bodies() {
    all(
        "L:\nL: M: add.s32 %r1, %r1, 1;\n{}\n{ ret; }\n@! %p1 bra L; L:\nadd .s32 %r1,%r1,1;\nadd/*x*/.s32 %r1,%r1,1;\n\
         add.s32%r1,%r1,1;\n.reg.b32 x;\n.reg .b32;\n.reg .b32 add; add.u32 add, add, 1;\n.reg .b32 x<3>, y <0x4>;\n\
         .reg .align 4 .b32 x;\n.local .b32 x, y[3], z;\n.shared .align 4 .align 8 .b32 x;\n.shared .b32 x[2][3];\n.func f();\n\
         .extern .func (.param .b32 r) f(.param .b32 a);\n.alias a, b;\n.loc 0x1 2 3\n.pragma \"a\", \"b\";\nL : ret;\n\
         P: .callprototype _;\nP: Q: .callprototype (.reg .b32 _) _ (.param .b8 %r5[]);\nT: .branchtargets A, L<3>; A:\n%p1: ret;\n\
         call d;\ncall d, ();\ncall (), d, (), P;\ncall (%r1), d, (5, -5, 1+1, _);\ncall(%r1),d,P;\n\
         foo %tid .x;\nfoo a[b+1];\nfoo a[-1];\nfoo a+ +4;\nfoo a+4-4;\nfoo _|a;\nfoo ! a;\nfoo -a.x;\nfoo --4;\nfoo {1, a.x, _};\n\
         foo {a}|b;\nfoo (0f3F800000);\nfoo 1?2:3?4:5;\nfoo 1?2?3:4:5;\nfoo (.s64)-1;\nfoo [4+4*(2)];\nfoo [a,s,t,{b}];\nfoo.x .y a;",
        body,
        false,
    );
}

#[test]
fn refuses_statements_of_bodies() {
    all(
        "L: ;\n;\n{;}\n@%p1 ;\n@%p1 L: bra L;\n@%p1 {ret;}\n@1 bra L;L:\n@%p1.x bra L;\nadd . s32 %r1,%r1,1;\nadd. s32 %r1;\n.foo 3;\n\
         %r1 = 5;\n5;\n.reg .b32 x,;\n.reg .b32 x y;\n.reg x;\n.reg .b32 .v2 x;\n.reg .b32 x<>;\n.reg .b32 x<-1>;\n.reg .b32 x<3>[2];\n\
         .reg .b32 x<1+1>;\n.reg .b32 1x;\n.reg .b32 WARP_SZ;\n.reg .b32 _;\n.local .b8 .align 4 x[4];\n.local .b8 x[4] .align 4;\n\
         .shared .v4 .align 16 .b32 x;\n.shared .b32 x[2][];\n.shared .b32 x[1+1];\n.shared .align (4) .b32 x;\n.extern .shared .b32 x[];\n\
         .loc 1 2 3;\n.loc 1 2\n.loc 1,2,3\n.loc 1 2 3, function_name L0\n.file 2 \"a\"\n.version 8.0\n.entry k2() {}\n\
         .callprototype _ ();\nP: .callprototype ();\nP: .callprototype (.param .b32 r) foo (.param .b32 a);\n.branchtargets A; A:\n\
         T: .branchtargets; A:\n_: ret;\n1: ret;\nL:: ret;\n.func f() { ret; }\ncall d,;\ncall;\ncall (%r1) d, (%r2);\ncall d (%r2);\n\
         call d, (a+4);\ncall d, (a), P, Q;\ncall 5;\ncall r, d, (a);\ncall d, (a.x);\n\
         foo a.x+4;\nfoo [a.x];\nfoo [a,b+4];\nfoo [a+4,{b}];\nfoo [{a}];\nfoo [a,{b},c];\nfoo [];\nfoo [-a];\nfoo [a][b];\nfoo a[1][2];\n\
         foo a+b;\nfoo a|b|c;\nfoo _|_;\nfoo !!a;\nfoo !a.x;\nfoo -(a);\nfoo -a+4;\nfoo +a;\nfoo {};\nfoo {-a};\nfoo {a+4};\nfoo (a);\n\
         foo 1(a);\nfoo a(b);\nfoo a&b;\nfoo \"s\";\nfoo 1+0f3F800000;\nfoo (1,2);\nfoo (.foo)1;\nfoo a,;\nfoo [a]+4;\nfoo [_];\nfoo a,,b;\n\
         mov.u32 %r1, 5%3;\nmov.u32 %r1, 0f3f8;\nmov.u32 %r1, 0f3F8000000;\nmov.u32 %r1, 08;\nmov.u32 %r1, 0b12;\nmov.u32 %r1, 5u;\n\
         mov.u32 %r1, 1.0f;\nmov.u32 %r1, 0x;\nmov.f64 %fd1, 1e400;\nmov.f64 %fd1, 1e-310;\nmov.u64 %rd1, 99999999999999999999;",
        body,
        true,
    );
}

#[test]
fn takes_statements_of_modules() {
    all(
        ".global .b32 x = 3, y = 4;\n.global .b32 x[2] = {};\n.global .b32 x = (1);\n.align 4 .global .u32 x;\n.global .u32;\n\
         .attribute(.managed) .global .u32 x;\n.const[3] .u32 x;\n.extern .const[2] .u32 x[];\n.u32 x;\n.tex .u32 t;\n.func f\n\
         .func f() .global .u32 x;\n.func f() .func g() { ret; }\n.func add() { ret; }\n.func () f() { ret; }\n\
         .func f(.param .b8 a[]){ret;}\n.func f(.align 4 .param .b32 a){ret;}\n.func f() .noreturn .abi_preserve 4 { ret; }\n.entry k {ret;}\n\
         .entry k;\n.entry k(.param .u64 .align 8 a) {ret;}\n.entry k(.param.u64.ptr.global.align 16 p) {ret;}\n.entry k .maxntid 1,2 {ret;}\n\
         .file 1 \"a.cu\", 1\n.section .foo { .b8 1,2 }\n@@DWARF .byte 0x01\n# 1 \"x\"\n#line 33 \"a.c\"\n/* \u{e9} */ // \u{201c}\n\
         .pragma \"a\\nb\";\n.global .u64 generic = 3;\n.global .u64 x = 20000000000000000000;",
        module,
        false,
    );
}

#[test]
fn refuses_statements_of_modules() {
    all(
        ".global .b32 x\n.global .b32 x[2] = {1,2,};\n.global .f32 x = -0f3F800000;\n.global .b8 x[4] = \"abc\";\n.global .b64 x = y-8;\n\
         .global .b64 x = 8+y;\n.global .b64 x = (y);\n.global .b64 x = generic(y+8);\n.global .b64 x = y[1];\n.global .b8 x[2] = {0xFF(y)+8};\n\
         .global .b8 x[2] = {(0xFF00)(y)};\n.global .b8 x = 0xFF(0xFF(y));\n.global x;\n.global;\n;\n{}\nL: .global .u32 x;\nmov.u32 x, 3;\n\
         .visible .extern .global .u32 x;\n.global .extern .u32 x;\n.const [3] .u32 x;\n.global .u32 .attribute(.managed) x;\n\
         .global .attribute() .u32 x;\n.global .foo x;\n.global .v3 .u32 x;\n.sreg .u32 x;\n.surf .u32 t;\n.func f(.param .u32);\n\
         .func f(.param .u32 a,){ret;}\n.func f(.param .u32 a .param .u32 b){ret;}\n.func f(.reg .u32 a, b){ret;}\n\
         .func f(.param .b8 .align 8 a[12]){ret;}\n.func f(.param .b8 a[2][3]){ret;}\n.func f(.param .b32 a = 3){ret;}\n\
         .func f(.reg .b32 a<3>){ret;}\n.func f(.param .b32 a) {ret;};\n.func .noreturn f() {ret;}\n.func f() .maxnreg 5 {ret;}\n\
         .func f() .abi_preserve 4 .noreturn {ret;}\n.func f() .noreturn .noreturn {ret;}\n.func f() .abi_preserve 2+2 {ret;}\n\
         .func f() .pragma \"nounroll\"; {ret;}\n.func .attribute(.managed) f();\n.common .func f() {ret;}\n.func .visible f();\n\
         .entry (.param .u32 r) k() {ret;}\n.entry k() .entry g() {ret;}\n.entry k()\n.entry k(.param .u64 .ptr .align 8 .global a) {ret;}\n\
         .entry k(.param .ptr .u64 a) {ret;}\n.entry k() .maxntid 1 2 3 {ret;}\n.entry k() .maxntid 1,2,3,4 {ret;}\n.entry k() .maxntid {ret;}\n\
         .entry k() .maxntid -1 {ret;}\n.entry k() .noreturn {ret;}\n.entry k() .pragma \"nounroll\" {ret;}\n.maxnreg 32 .entry k() {ret;}\n\
         .entry k() .maxnreg 32; {ret;}\n.entry .attribute(.managed) k() {ret;}\n.entry k() {ret;}}\n.entry k() {{ret;}\n.entry k() {ret}\n\
         .alias a b;\n.alias a;\n.pragma a;\n.file 1 \"a.cu\";\n.file 1 a.cu\n.loc 1 2 3\n.target sm_80\n.address_size 64\n\
         .section debug_str { }\n.section .debug_str {\\n.b8 1;\\n}\n.section .debug_info {\\n.f32 1.0\\n}\n@@dwarf .byte 1\n@@DWARF .8byte 1\n@@DWARF .2byte 1\n# foo\n\
         #include <x>\n  # 3\n/* unclosed\n/* a /* b */ */\n.pragma \"\u{e9}\";\n.pragma \"unclosed;\n\u{0}\n\u{1}\n`",
        module,
        true,
    );
}

#[test]
fn modules_begin_with_version_and_target() {
    for text in [
        "",
        ".target sm_80\n.version 8.7",
        ".version 8.7\n.global .u32 x;",
        ".version 8\n.target sm_80",
        ".version\n8.7\n.target sm_80",
        ".version 8.7\n.target sm_80,",
    ] {
        assert!(refused(&parse(text)), "{text}");
    }
    for text in [".version 8.7\n.target sm_80", "// c\n\n/* x */ .version \t 8.7\n.target sm_80, debug"] {
        assert!(!refused(&parse(text)), "{text}");
    }
}

#[test]
fn operands_have_their_shapes() {
    let parsed = body("foo a, a.x, 5, -5, 1.5, 0f3F800000, a+4, a[3], !p, p|q, {a, b}, [a], [a+4], -a, WARP_SZ;");
    let tree = &parsed.tree;
    let operands = tree.operands(tree.instrs[0].operands);
    let shapes: Vec<&str> = operands
        .iter()
        .map(|o| match o.kind {
            Kind::Name => "name",
            Kind::Int { .. } => "int",
            Kind::Float { single: false, .. } => "double",
            Kind::Float { single: true, .. } => "single",
            Kind::Expr(_) => "expr",
            Kind::Sum { .. } => "sum",
            Kind::Index { .. } => "index",
            Kind::Not(_) => "not",
            Kind::Pair(_) => "pair",
            Kind::Braces(_) => "braces",
            Kind::Brackets(_) => "brackets",
            _ => "other",
        })
        .collect();
    let wanted = "name name int expr double single sum index not pair braces brackets brackets expr name";
    assert_eq!(shapes.join(" "), wanted);
    let texts: Vec<&str> = operands.iter().map(|o| tree.str(o.span)).collect();
    assert_eq!(texts.join(" "), "a a.x 5 -5 1.5 0f3F800000 a+4 a[3] !p p|q {a, b} [a] [a+4] -a WARP_SZ");
}

#[test]
fn functions_and_aliases_in_bodies_belong_to_the_module() {
    let parsed = body(".func f();\n.alias a, f;\nadd.s32 %r1, %r1, 1;");
    assert!(parsed.diagnostics.is_empty());
    assert_eq!(parsed.tree.items.len(), 3 + 3);
    assert_eq!(parsed.tree.stmts.len(), 2);
}

/// Values as ptxas 13.5 put them into the cubin, or `/0` for its "division by zero".
#[test]
fn constants_have_the_values_of_ptxas() {
    let cases: &[(&str, u64)] = &[
        ("1 + 2 * 3", 7),
        ("-5 / 2", -2i64 as u64),
        ("-1 % 10", 5),
        ("7 % 1U - 0b101 * 64", -320i64 as u64),
        ("63 <= 7 % 1U - 0b101 * 64", 1),
        ("65 >> 65", 32),
        ("1 << 64", 1),
        ("- 0x8000000000000000 >> 64", 0x8000000000000000),
        ("-8 >> 1", -4i64 as u64),
        ("0x8000000000000000 >> 1", 0x4000000000000000),
        ("(.s64) 0x8000000000000000 >> 1", 0xC000000000000000),
        ("~0", u64::MAX),
        ("(-8 & -1) >> 1", -4i64 as u64),
        ("(-8 & 0xffffffffffffffff) >> 1", 0x7ffffffffffffffc),
        ("(-7 % 5) - 100 < 0", 0),
        ("(1 ? -8 : 3U) >> 1", -4i64 as u64),
        ("(3 << 2U) - 100 < 0", 1),
        ("(1U << 2) - 100 < 0", 0),
        ("!5 || 0 && 1", 0),
        ("1 ? 2 : 3 ? 4 : 5", 2),
        ("0xffffffffffffffff > 0x7fffffffffffffff == 64 != 3 << ~ WARP_SZ ^ 0xffffffffffffffff", 0xfffffffffffffffe),
        ("1.5 < 2.0", 1),
        ("0x1FFFFFFFFFFFFFFF1", 0xfffffffffffffff1),
        ("20000000000000000000", 0x158e460913d00000),
        ("18446744073709551616", 0),
    ];
    for (text, value) in cases {
        let parsed = module(&format!(".global .u64 x = {text};"));
        assert!(!refused(&parsed), "{text}");
        let init = parsed.tree.declarators[0].init.expect("an initializer");
        assert_eq!(
            eval(&parsed.tree, &parsed.tree.operands[init as usize]).ok().and_then(|v| v.bits()),
            Some(*value),
            "{text}"
        );
    }
    for text in ["5 / 0", "5 % 0", "1.0 / 0.0", "1 + 1.5", "1.5 % 2.0", "~1.5", "1 ? 1.0 : 2.0", "1.0 ? 1 : 2"] {
        let parsed = module(&format!(".global .u64 x = {text};"));
        let init = parsed.tree.declarators[0].init.expect("an initializer");
        assert!(eval(&parsed.tree, &parsed.tree.operands[init as usize]).is_err(), "{text}");
    }
}

#[test]
fn wrapped_literals_are_a_warning() {
    let parsed = body("mov.u64 %rd1, 18446744073709551616;");
    assert_eq!(parsed.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::LiteralWraps]);
    assert!(!refused(&parsed));
}
