//! `margay bindgen`: for each kernel a C or Rust struct whose members have the offsets of its parameters.

use super::{Result, abi::checked, name, read};
use crate::{
    args::{BindgenArgs, Language},
    exit::Outcome,
    report::{Style, emit},
};
use margay_check::{Extent, Formal, FuncKind, Function};
use margay_ir::{abi::kernel_layout, signature};
use margay_isa::{Kind, Type};

/// Runs the command.
pub fn run(args: &BindgenArgs, style: Style) -> Result {
    let (name, text) = (name(&args.file), read(&args.file)?);
    let (_, module) = checked(&name, &text, style)?;
    let kernels = module.module.funcs.iter().filter(|f| f.kind == FuncKind::Kernel);
    emit(&match args.lang {
        Language::C => c_header(&name, kernels),
        Language::Rust => rust_structs(&name, kernels),
    });
    Ok(Outcome::Clean)
}

/// A member: a parameter, or padding before one.
struct Member<'a> {
    name: String,
    offset: u32,
    size: u32,
    formal: Option<&'a Formal>,
}

/// Parameters in order with explicit padding, the block's size and its alignment.
fn members(kernel: &Function) -> (Vec<Member<'_>>, u32, u32) {
    let layout = kernel_layout(&signature(kernel));
    let (mut members, mut end) = (Vec::new(), 0);
    for (i, (formal, offset)) in kernel.params.iter().zip(&layout.offsets).enumerate() {
        if *offset > end {
            members.push(Member { name: format!("padding{i}_"), offset: end, size: offset - end, formal: None });
        }
        members.push(Member {
            name: identifier(&formal.name, i),
            offset: *offset,
            size: formal.size,
            formal: Some(formal),
        });
        end = offset + formal.size;
    }
    (members, layout.size, kernel.params.iter().map(|p| p.align).max().unwrap_or(1))
}

/// A name that C and Rust take.
fn identifier(name: &str, index: usize) -> String {
    let cleaned: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let cleaned = cleaned.trim_start_matches('_');
    match cleaned.chars().next() {
        Some(c) if c.is_ascii_alphabetic() => {
            format!("{cleaned}_").trim_end_matches('_').to_string() + if reserved(cleaned) { "_" } else { "" }
        }
        _ => format!("arg{index}"),
    }
}

fn reserved(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "as", "auto", "bool", "break", "case", "char", "const", "continue", "default", "do", "double", "dyn", "else",
        "enum", "extern", "false", "float", "fn", "for", "goto", "if", "impl", "in", "inline", "int", "let", "long",
        "loop", "match", "mod", "move", "mut", "pub", "ref", "register", "restrict", "return", "self", "short",
        "signed", "sizeof", "static", "struct", "super", "switch", "trait", "true", "type", "typedef", "union",
        "unsafe", "unsigned", "use", "void", "volatile", "where", "while", "async", "await",
    ];
    WORDS.contains(&name)
}

/// The type of one element: C's and Rust's. Formats that the languages lack are unsigned integers of their size.
fn scalar(ty: Type) -> (&'static str, &'static str) {
    match (ty.kind(), ty.bytes()) {
        (Kind::Float, 4) if ty == Type::F32 => ("float", "f32"),
        (Kind::Float, 8) if ty == Type::F64 => ("double", "f64"),
        (Kind::Signed, 1) => ("int8_t", "i8"),
        (Kind::Signed, 2) => ("int16_t", "i16"),
        (Kind::Signed, 4) => ("int32_t", "i32"),
        (Kind::Signed, 8) => ("int64_t", "i64"),
        (_, 2) => ("uint16_t", "u16"),
        (_, 4) => ("uint32_t", "u32"),
        (_, 8) => ("uint64_t", "u64"),
        _ => ("uint8_t", "u8"),
    }
}

/// Type and number of elements of a member. A struct by value is bytes.
fn shape(member: &Member<'_>) -> (Type, Option<u32>) {
    match member.formal {
        None => (Type::U8, Some(member.size)),
        Some(f) if f.extent == Extent::Scalar && f.vector == 1 && f.ty.bytes() <= 8 => (f.ty, None),
        Some(f) if f.ty.bytes() <= 8 && f.ty.bytes() > 0 => (f.ty, Some(f.size / f.ty.bytes())),
        Some(f) => (Type::U8, Some(f.size)),
    }
}

fn c_header<'a>(file: &str, kernels: impl Iterator<Item = &'a Function>) -> String {
    let mut out =
        format!("/* Parameter blocks of the kernels of {file}, as cuLaunchKernel reads them. Made by margay. */\n");
    out += "#pragma once\n#include <stddef.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\n#define MARGAY_ASSERT static_assert\n#define MARGAY_ALIGN(n) alignas(n)\n#else\n#define MARGAY_ASSERT _Static_assert\n#define MARGAY_ALIGN(n) _Alignas(n)\n#endif\n";
    for (i, kernel) in kernels.enumerate() {
        let (members, size, _) = members(kernel);
        let name = identifier(&kernel.name, i);
        out +=
            &format!("\n/* kernel {}: {size} bytes of parameters */\ntypedef struct {name}_params {{\n", kernel.name);
        if members.is_empty() {
            out += "    uint8_t none;\n";
        }
        for m in &members {
            let (ty, count) = shape(m);
            let extent = count.map(|n| format!("[{n}]")).unwrap_or_default();
            let align = m.formal.map(|f| format!("MARGAY_ALIGN({}) ", f.align)).unwrap_or_default();
            out += &format!("    {align}{} {}{extent};\n", scalar(ty).0, m.name);
        }
        out += &format!("}} {name}_params;\n");
        for m in members.iter().filter(|m| m.formal.is_some()) {
            out += &format!("MARGAY_ASSERT(offsetof({name}_params, {}) == {}, \"{}\");\n", m.name, m.offset, m.name);
        }
    }
    out
}

fn rust_structs<'a>(file: &str, kernels: impl Iterator<Item = &'a Function>) -> String {
    let mut out =
        format!("//! Parameter blocks of the kernels of {file}, as cuLaunchKernel reads them. Made by margay.\n");
    for (i, kernel) in kernels.enumerate() {
        let (members, size, align) = members(kernel);
        let name = camel(&identifier(&kernel.name, i));
        let align = if align > 8 { format!(", align({align})") } else { String::new() };
        out += &format!(
            "\n/// Parameters of kernel `{}`: {size} bytes.\n#[derive(Clone, Copy, Debug)]\n#[repr(C{align})]\n",
            kernel.name
        );
        out += &format!("pub struct {name}Params {{\n");
        for m in &members {
            let (ty, count) = shape(m);
            let ty = count.map_or(scalar(ty).1.to_string(), |n| format!("[{}; {n}]", scalar(ty).1));
            let doc = m
                .formal
                .map_or("    /// Padding.\n".to_string(), |f| format!("    /// `{}`, offset {}.\n", f.name, m.offset));
            out += &format!("{doc}    pub {}: {ty},\n", m.name);
        }
        out += "}\n";
        for m in members.iter().filter(|m| m.formal.is_some()) {
            out +=
                &format!("const _: () = assert!(core::mem::offset_of!({name}Params, {}) == {});\n", m.name, m.offset);
        }
    }
    out
}

/// `saxpy_kernel` as `SaxpyKernel`.
fn camel(name: &str) -> String {
    let part = |p: &str| p.chars().take(1).flat_map(char::to_uppercase).chain(p.chars().skip(1)).collect::<String>();
    name.split('_').map(part).collect()
}
