//! The canonical layout.

use margay_syntax::{FormatOptions, format, parse};

#[track_caller]
fn prints(text: &str, wanted: &str) {
    let head = ".version 8.7\n.target sm_80\n";
    let printed = format(&parse(&format!("{head}{text}")), &FormatOptions::default()).expect("no syntax errors");
    assert_eq!(printed.strip_prefix(head).expect("the head stays"), wanted);
}

#[test]
fn statements_stand_on_lines_of_their_own() {
    prints(
        ".entry k(.param .u64 out){.reg .pred %p<2>;L:@!%p1 add .s32 %r1,%r2 , - 5 ;{ld.global.u32 %r1,[ %rd1 + 4 ];}ret;}",
        ".entry k(.param .u64 out)\n{\n    .reg .pred      %p<2>;\nL:\n    @!%p1 add.s32   %r1, %r2, -5;\n    {\n        \
         ld.global.u32   %r1, [%rd1+4];\n    }\n    ret;\n}\n",
    );
}

#[test]
fn empty_lines_are_kept_singly() {
    prints("\n\n.global .u32 x;\n\n\n\n.global .u32 y;\n\n\n", "\n.global .u32 x;\n\n.global .u32 y;\n");
    prints(".entry k()\n\n{\n\nret;\n\n\nret;\n\n}", ".entry k()\n{\n    ret;\n\n    ret;\n}\n");
}

#[test]
fn comments_stay_where_they_were() {
    prints(
        "// a\n.global .u32 x; // b\n/* c\n   d */\n\n// e\n.entry k() // f\n{ // g\n  // h\n  ret; /* i */\n  // j\n}\n// k",
        "// a\n.global .u32 x; // b\n/* c\n   d */\n\n// e\n.entry k() // f\n{ // g\n    // h\n    ret; /* i */\n    // j\n}\n// k\n",
    );
}

#[test]
fn expressions_have_blanks_where_they_help() {
    prints(
        ".global .u64 x[]={y+ -4,generic( y )+8,(1+2)*- 3<<4?~5:! 6,(.s64) - 1 % 3,a|b&c}"
            .replace(",a|b&c", ",5 % 3 | 4 & 2")
            .replace('}', "};")
            .as_str(),
        ".global .u64 x[] = {y+-4, generic(y) + 8, (1 + 2) * -3 << 4 ? ~5 : !6, (.s64)-1 % 3, 5 % 3 | 4 & 2};\n",
    );
}

#[test]
fn long_lists_are_wrapped_between_their_elements() {
    let values: Vec<String> = (100..140).map(|n| n.to_string()).collect();
    let text = format!(".version 8.7\n.target sm_80\n.global .u32 x[40] = {{{}}};\n", values.join(","));
    let options = FormatOptions { width: 60, ..Default::default() };
    let printed = format(&parse(&text), &options).expect("no syntax errors");
    assert!(printed.lines().all(|l| l.len() <= 60), "{printed}");
    // 22 characters and 7 elements of 5 on the first line, then 8 blanks and 10 elements each.
    assert_eq!(printed.lines().filter(|l| l.starts_with("        1")).count(), 4);
}

#[test]
fn modifiers_are_reordered_by_whom_it_concerns() {
    let order = |written: &str| (written == "ld.u32.global").then(|| "ld.global.u32".to_string());
    let options = FormatOptions { mnemonic: Some(&order), ..Default::default() };
    let text = ".version 8.7\n.target sm_80\n.entry k()\n{\n    @%p ld.u32 .global %r, [a];\n}\n";
    let printed = format(&parse(text), &options).expect("no syntax errors");
    assert!(printed.contains("    @%p ld.global.u32 %r, [a];\n"), "{printed}");
}

#[test]
fn files_keep_their_kind_of_line_ends() {
    let text = ".version 8.7\r\n.target sm_80\r\n/* a\r\n b */\r\n.global   .u32 x;\r\n";
    let printed = format(&parse(text), &FormatOptions::default()).expect("no syntax errors");
    assert_eq!(printed, ".version 8.7\r\n.target sm_80\r\n/* a\r\n b */\r\n.global .u32 x;\r\n");
}

#[test]
fn files_with_syntax_errors_are_left_alone() {
    let why = format(&parse(".version 8.7\n.target sm_80\n.global .u32 x\n"), &FormatOptions::default())
        .expect_err("a semicolon is missing");
    assert_eq!((why.diagnostic, why.errors), (0, 1));
    assert_eq!(why.to_string(), "1 syntax error");
}
