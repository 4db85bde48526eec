//! Random modules about functions and parameters: declarations, definitions, calls, and uses of formals.
//!
//! Most choices are valid; now and then one breaks a rule, or may: a module has between zero and a few deviations.
//! Which of them are errors is for the two checkers to decide.

use crate::Random;
use std::fmt::Write;

/// Writes a line of a body; the arguments may use the writer.
macro_rules! emit {
    ($writer:expr, $($text:tt)*) => {{
        let text = format!($($text)*);
        $writer.line(&text);
    }};
}

/// A module, and how to compile it.
#[derive(Clone, Debug)]
pub struct Case {
    /// PTX.
    pub text: String,
    /// Compiled with `-c`.
    pub relocatable: bool,
    /// The first architecture of ptxas that accepts the module's target.
    pub arch: &'static str,
}

/// A formal or a `.param` variable of a caller.
#[derive(Clone, Debug, PartialEq)]
struct Formal {
    space: &'static str,
    ty: &'static str,
    vector: u32,
    align: Option<u32>,
    extent: Extent,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Extent {
    Scalar,
    Array(u32),
    Unsized,
}

/// A function that bodies may call.
#[derive(Clone, Debug)]
struct Callee {
    name: String,
    rets: Vec<Formal>,
    params: Vec<Formal>,
    defined: bool,
    suffix: String,
}

struct Writer<'r> {
    random: &'r mut Random,
    out: String,
    /// Percentage of deviating choices.
    odd: u64,
    next: u32,
}

const TYPES: [&str; 12] = ["u32", "b32", "s32", "f32", "u64", "b64", "s64", "f64", "b8", "b16", "u16", "f16"];
const WIDE: [&str; 8] = ["u32", "b32", "s32", "f32", "u64", "b64", "s64", "f64"];

fn bytes(ty: &str) -> u32 {
    match ty.trim_start_matches(|c: char| c.is_ascii_alphabetic()) {
        "8" => 1,
        "16" => 2,
        "32" => 4,
        "64" => 8,
        _ => 16,
    }
}

/// The register class for a type.
fn register(ty: &str) -> &'static str {
    match ty {
        "f32" => "%f",
        "f64" => "%fd",
        "b8" | "u8" | "s8" | "b16" | "u16" | "s16" | "f16" => "%h",
        "b64" | "u64" | "s64" => "%rd",
        "b128" => "%q",
        _ => "%r",
    }
}

/// The type of an access to a value: `ld.param.b8` and the like.
fn access(ty: &str) -> String {
    if ty == "f16" { "b16".into() } else { ty.into() }
}

impl Formal {
    fn scalar(space: &'static str, ty: &'static str) -> Formal {
        Formal { space, ty, vector: 1, align: None, extent: Extent::Scalar }
    }

    fn declare(&self, name: &str) -> String {
        let align = self.align.map(|a| format!(" .align {a}")).unwrap_or_default();
        let vector = if self.vector > 1 { format!(" .v{}", self.vector) } else { String::new() };
        let extent = match self.extent {
            Extent::Scalar => String::new(),
            Extent::Array(n) => format!("[{n}]"),
            Extent::Unsized => "[]".into(),
        };
        format!(".{}{align}{vector} .{} {name}{extent}", self.space, self.ty)
    }
}

impl Writer<'_> {
    fn one(&mut self, list: &[&'static str]) -> &'static str {
        let at = self.random.below(list.len() as u64);
        list[at as usize]
    }

    fn odd(&mut self) -> bool {
        self.random.chance(self.odd)
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "    {text}");
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}", self.next)
    }

    fn reg(&mut self, ty: &str) -> String {
        format!("{}{}", register(ty), self.random.below(4))
    }

    fn formal(&mut self, input: bool, last: bool) -> Formal {
        let r = self.random.below(100);
        let mut f = match r {
            0..40 => Formal::scalar("param", self.one(&TYPES)),
            40..60 => Formal::scalar("reg", self.one(&WIDE)),
            60..90 => {
                let align = 1 << self.random.below(5);
                let size = *self.random.pick(&[1, 2, 4, 8, 12, 16, 20, 32, 64]);
                Formal {
                    align: self.random.chance(85).then_some(align),
                    extent: Extent::Array(size),
                    ..Formal::scalar("param", "b8")
                }
            }
            90..94 if last && input => Formal {
                align: Some(1 << self.random.below(5)),
                extent: Extent::Unsized,
                ..Formal::scalar("param", "b8")
            },
            _ => Formal { vector: *self.random.pick(&[2, 4]), ..Formal::scalar("reg", self.one(&["u32", "f32"])) },
        };
        if self.odd() {
            match self.random.below(9) {
                0 => f.align = Some(*self.random.pick(&[0, 3, 12, 32, 64, 128, 256])),
                1 => f.ty = self.one(&["pred", "f16x2", "b128", "s8", "u8", "s16", "bf16", "bf16x2", "texref"]),
                2 => f.vector = *self.random.pick(&[2, 3, 4, 8]),
                3 => f.extent = Extent::Unsized,
                4 => f.extent = Extent::Array(*self.random.pick(&[0, 1, 5000])),
                5 => f.space = self.one(&["local", "global", "shared", "const"]),
                6 => f.ty = self.one(&["u8", "b16", "b64"]),
                7 => f.space = if f.space == "reg" { "param" } else { "reg" },
                _ => f.align = Some(*self.random.pick(&[1, 2, 4, 8, 16])),
            }
        }
        f
    }

    fn suffix(&mut self, rets: usize) -> String {
        let mut parts = Vec::new();
        if self.random.chance(if rets == 0 { 12 } else { 3 }) {
            parts.push(".noreturn".to_owned());
        }
        if self.random.chance(6) {
            parts.push(format!(".abi_preserve {}", self.one(&["0", "4", "16", "24", "40", "300", "0x10", "-1"])));
        }
        if self.random.chance(4) {
            parts.push(format!(".abi_preserve_control {}", self.one(&["0", "2", "8", "14"])));
        }
        if self.odd() && parts.len() > 1 {
            parts.reverse();
        }
        if self.odd() {
            parts.push(self.one(&[".maxnreg 32", ".noreturn", ".pragma \"nounroll\"", ".abi_preserve 4"]).to_owned());
        }
        parts.join(" ")
    }

    /// The header of a function, without linkage.
    fn header(&mut self, name: &str, rets: &[Formal], params: &[Formal], suffix: &str) -> String {
        let list = |formals: &[Formal], prefix: &str| {
            let all: Vec<String> =
                formals.iter().enumerate().map(|(i, f)| f.declare(&format!("{prefix}{i}"))).collect();
            all.join(", ")
        };
        let rets = if rets.is_empty() { String::new() } else { format!("({}) ", list(rets, "o")) };
        let params = if params.is_empty() && self.random.chance(50) {
            String::new()
        } else {
            format!("({})", list(params, "a"))
        };
        format!(".func {rets}{name}{params} {suffix}")
    }

    fn callee(&mut self, known: &[Callee]) -> Callee {
        let name = if self.odd() && !known.is_empty() { known[0].name.clone() } else { self.fresh("f") };
        let rets = if self.random.chance(55) { 1 } else { usize::from(self.odd()) * 2 };
        let rets: Vec<Formal> = (0..rets).map(|_| self.formal(false, false)).collect();
        let count = self.random.below(4) as usize;
        let params: Vec<Formal> = (0..count).map(|i| self.formal(true, i + 1 == count)).collect();
        let suffix = self.suffix(rets.len());
        let mut callee = Callee { name, rets, params, defined: true, suffix };
        let header = self.header(&callee.name, &callee.rets, &callee.params, &callee.suffix);
        let kind = self.random.below(100);
        let linkage = self.one(&["", "", ".visible ", ".weak "]);
        if kind < 18 {
            // A prototype, and mostly a definition after it.
            let linkage = if self.random.chance(30) { ".extern " } else { linkage };
            let _ = writeln!(self.out, "{linkage}{header};");
            callee.defined = linkage != ".extern " && self.random.chance(80);
            if callee.defined {
                let mut again = callee.clone();
                if self.odd() {
                    match self.random.below(5) {
                        0 if !again.params.is_empty() => again.params[0] = self.formal(true, false),
                        1 => again.params.push(Formal::scalar("param", "u32")),
                        2 => again.rets = vec![Formal::scalar("param", "u32")],
                        3 => again.suffix = ".noreturn".into(),
                        _ => again.suffix = String::new(),
                    }
                }
                let header = self.header(&again.name, &again.rets, &again.params, &again.suffix);
                self.function(linkage, &header, &again, known);
            }
        } else {
            let linkage = if self.odd() { self.one(&[".extern ", ".common ", ".visible .weak "]) } else { linkage };
            self.function(linkage, &header, &callee, known);
        }
        callee
    }

    fn registers(&mut self) {
        self.line(
            ".reg .b16 %h<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .f64 %fd<4>; .reg .pred %p<4>;",
        );
    }

    fn function(&mut self, linkage: &str, header: &str, callee: &Callee, known: &[Callee]) {
        let _ = writeln!(self.out, "{linkage}{header} {{");
        self.registers();
        for (i, f) in callee.params.iter().enumerate() {
            self.use_formal(f, &format!("a{i}"), true);
        }
        if !known.is_empty() && self.random.chance(35) {
            let callee = self.random.pick(known).clone();
            self.call(&callee);
        }
        if self.random.chance(6) {
            self.stack();
        }
        for (i, f) in callee.rets.iter().enumerate() {
            self.use_formal(f, &format!("o{i}"), false);
        }
        self.line("ret;");
        self.out.push_str("}\n");
    }

    /// Reads or writes a formal in its function's body, or takes its address.
    fn use_formal(&mut self, f: &Formal, name: &str, input: bool) {
        let ty = access(f.ty);
        let r = self.reg(f.ty);
        let deviate = self.odd();
        if f.space == "reg" {
            if f.vector == 1 && bytes(f.ty) >= 4 {
                let (d, s) = if input { (r, name.to_owned()) } else { (name.to_owned(), r) };
                emit!(self, "mov.{ty} {d}, {s};");
            }
            return;
        }
        let func = if self.random.chance(15) { self.one(&["::func", "::func", "::entry"]) } else { "" };
        let guard = if self.random.chance(8) { "@%p1 " } else { "" };
        let reads = input != deviate;
        match self.random.below(if deviate { 8 } else { 12 }) {
            0 => emit!(self, "mov.{} %rd1, {name};", self.one(&["u64", "b64"])),
            1 => {
                emit!(self, "mov.b64 %rd1, {name};");
                let space = self.one(&["local", "local", "param", "global"]);
                let what = if self.random.chance(50) { "ld" } else { "st" };
                let text = if what == "ld" {
                    format!("ld.{space}.{ty} {r}, [%rd1];")
                } else {
                    format!("st.{space}.{ty} [%rd1], {r};")
                };
                self.line(&text);
            }
            2 if deviate => {
                let space = self.one(&["local", "global", "shared", "const"]);
                emit!(self, "ld.{space}.{ty} {r}, [{name}];");
            }
            3 if deviate => emit!(self, "ld.{ty} {r}, [{name}];"),
            4 if deviate => emit!(self, "cvta.{}.u64 %rd2, {name};", self.one(&["param", "local", "global"])),
            _ if reads => {
                let offset = if f.extent == Extent::Scalar { 0 } else { bytes(f.ty) * self.random.below(3) as u32 };
                emit!(self, "{guard}ld.param{func}.{ty} {r}, [{name}+{offset}];");
            }
            _ => emit!(self, "{guard}st.param{func}.{ty} [{name}], {r};"),
        }
    }

    fn stack(&mut self) {
        let ty = if self.odd() { self.one(&["u32", "b64", "s64"]) } else { "u64" };
        match self.random.below(4) {
            0 => emit!(self, "stacksave.{ty} %rd1;"),
            1 => {
                let operand = if self.odd() { "8" } else { "%rd1" };
                emit!(self, "stackrestore.{ty} {operand};");
            }
            _ => {
                let align = if self.odd() { ", 3" } else { self.one(&["", ", 8", ", 64"]) };
                let size = self.one(&["%rd2", "64", "0"]);
                emit!(self, "alloca.{ty} %rd1, {size}{align};");
            }
        }
    }

    /// Declares a `.param` variable or register for a formal. Returns the operand.
    fn argument(&mut self, f: &Formal, input: bool) -> String {
        let mut f = f.clone();
        if self.odd() {
            match self.random.below(5) {
                0 => f.ty = self.one(&TYPES),
                1 => f.align = Some(1 << self.random.below(5)),
                2 if f.extent != Extent::Scalar => f.extent = Extent::Array(1 + self.random.below(40) as u32),
                3 => f.extent = Extent::Array(4),
                _ => {
                    return self
                        .one(&["_", "5", "-1", "1.5", "0f3f800000", "%p1", "%tid.x", "undeclared", "WARP_SZ", "300"])
                        .to_owned();
                }
            }
        }
        if f.extent == Extent::Unsized {
            f.extent = Extent::Array(16);
        }
        let scalar = f.extent == Extent::Scalar && f.vector == 1 && bytes(f.ty) >= 4;
        if scalar && input && self.random.chance(10) {
            return if f.ty.starts_with('f') { "0f3f800000".into() } else { "7".into() };
        }
        if !input && self.random.chance(8) {
            return "_".into();
        }
        if f.vector > 1 {
            let name = self.fresh("%v");
            emit!(self, ".reg .v{} .{} {name};", f.vector, f.ty);
            return name;
        }
        if scalar && (f.space == "reg" || self.random.chance(40)) {
            if self.random.chance(70) {
                return self.reg(f.ty);
            }
            let name = self.fresh("%x");
            emit!(self, ".reg .{} {name};", f.ty);
            return name;
        }
        let name = self.fresh("y");
        let declared = Formal { space: if self.odd() { "local" } else { "param" }, ..f.clone() };
        emit!(self, "{};", declared.declare(&name));
        if input {
            let r = self.reg(f.ty);
            let guard = if self.odd() { "@%p1 " } else { "" };
            let func = if self.random.chance(10) { self.one(&["::func", "::func", "::entry"]) } else { "" };
            emit!(self, "{guard}st.param{func}.{} [{name}], {r};", access(f.ty));
            if self.odd() {
                let other = *self.random.pick(&[
                    "bar.sync 0;",
                    "mov.b64 %rd3, {};",
                    "ld.param.b32 %r1, [{}];",
                    "add.s32 %r1, %r1, 1;",
                ]);
                self.line(&other.replace("{}", &name));
            }
        }
        name
    }

    fn call(&mut self, callee: &Callee) {
        self.line("{");
        let rets: Vec<String> = callee.rets.iter().map(|f| self.argument(f, false)).collect();
        let mut params: Vec<String> = callee.params.iter().map(|f| self.argument(f, true)).collect();
        if callee.params.last().is_some_and(|f| f.extent == Extent::Unsized) && self.random.chance(30) {
            params.pop();
        }
        if self.odd() {
            match self.random.below(3) {
                0 => params.push("%r1".into()),
                1 => drop(params.pop()),
                _ => params.reverse(),
            }
        }
        let guard = if self.random.chance(8) { "@%p1 " } else { "" };
        let uni = if self.random.chance(15) { ".uni" } else { "" };
        let indirect = self.random.chance(15);
        let left = if rets.is_empty() || self.odd() { String::new() } else { format!("({}), ", rets.join(", ")) };
        let right = if params.is_empty() && self.random.chance(60) {
            String::new()
        } else {
            format!(", ({})", params.join(", "))
        };
        if indirect {
            let label = self.fresh("P");
            emit!(self, "mov.{} %rd0, {};", if self.odd() { "u32" } else { "u64" }, callee.name);
            if self.random.chance(60) {
                let name = if self.odd() { "proto" } else { "_" };
                let head = self.header(name, &callee.rets, &callee.params, &callee.suffix);
                let head = head.trim_start_matches(".func").trim().to_owned();
                emit!(self, "{label}: .callprototype {head};");
            } else {
                let more = if self.odd() { ", undeclared" } else { "" };
                emit!(self, "{label}: .calltargets {}{more};", callee.name);
            }
            emit!(self, "{guard}call{uni} {left}%rd0{}, {label};", if right.is_empty() { ", ()" } else { &right });
        } else {
            let name = if self.odd() { "nobody".to_owned() } else { callee.name.clone() };
            emit!(self, "{guard}call{uni} {left}{name}{right};");
        }
        for (f, operand) in callee.rets.iter().zip(&rets) {
            if operand.starts_with('y') {
                let r = self.reg(f.ty);
                let guard = if self.odd() { "@%p1 " } else { "" };
                emit!(self, "{guard}ld.param.{} {r}, [{operand}];", access(f.ty));
            }
        }
        self.line("}");
    }

    fn kernel(&mut self, name: &str, known: &[Callee]) {
        let count = self.random.below(4);
        let mut params = Vec::new();
        for i in 0..count {
            let mut f = self.formal(true, false);
            if f.space == "reg" && !self.odd() {
                f.space = "param";
                f.vector = 1;
            }
            let mut text = f.declare(&format!("k{i}"));
            if self.random.chance(20) {
                let space = self.one(&["", "", " .global", " .shared", " .const", " .local"]);
                let align = self.one(&["", " .align 4", " .align 16", " .align 3"]);
                text = format!(".param .u64 .ptr{space}{align} k{i}");
            }
            params.push((f, text));
        }
        let list: Vec<&str> = params.iter().map(|(_, t)| t.as_str()).collect();
        let visible = if self.random.chance(80) { ".visible " } else { "" };
        let _ = writeln!(self.out, "{visible}.entry {name}({}) {{", list.join(", "));
        self.registers();
        for (i, (f, text)) in params.iter().enumerate() {
            if !text.contains(".ptr") && self.random.chance(50) {
                self.use_formal(f, &format!("k{i}"), true);
            }
        }
        if self.random.chance(8) {
            self.stack();
        }
        for _ in 0..self.random.below(3) {
            if !known.is_empty() {
                let callee = self.random.pick(known).clone();
                self.call(&callee);
            }
        }
        let end = if self.random.chance(70) { "ret;" } else { "exit;" };
        self.line(end);
        self.out.push_str("}\n");
    }
}

/// The module of a random state.
pub fn module(random: &mut Random) -> Case {
    let recent =
        [("8.5", "sm_80"), ("9.0", "sm_80"), ("9.0", "sm_90"), ("9.3", "sm_100"), ("7.8", "sm_75"), ("8.0", "sm_90")];
    let old = [
        ("1.4", "sm_13"),
        ("2.0", "sm_20"),
        ("2.3", "sm_20"),
        ("3.0", "sm_30"),
        ("3.2", "sm_35"),
        ("5.0", "sm_50"),
        ("6.0", "sm_60"),
        ("6.3", "sm_70"),
        ("6.4", "sm_30"),
        ("4.0", "sm_30"),
        ("2.1", "sm_20"),
        ("2.2", "sm_11"),
        ("7.3", "sm_52"),
        ("8.3", "sm_61"),
    ];
    let (version, target) = if random.chance(75) { *random.pick(&recent) } else { *random.pick(&old) };
    let arch = match target {
        "sm_90" | "sm_100" => target,
        _ => "sm_80",
    };
    let relocatable = random.chance(35);
    let odd = *random.pick(&[0, 1, 1, 2]);
    let size = if version >= "2.3" { ".address_size 64\n" } else { "" };
    let mut w = Writer { random, out: format!(".version {version}\n.target {target}\n{size}"), odd, next: 0 };
    if w.odd() {
        let what = *w.random.pick(&[
            ".reg .b32 mr;",
            ".local .b32 ml[4];",
            ".param .b32 mp;",
            ".global .b32 mg;",
            ".shared .b32 ms;",
        ]);
        w.out.push_str(what);
        w.out.push('\n');
    }
    let mut known = Vec::new();
    for _ in 0..1 + w.random.below(3) {
        let callee = w.callee(&known);
        known.push(callee);
    }
    if w.random.chance(8) {
        let aliased = known[0].clone();
        let mut other = aliased.clone();
        other.name = w.fresh("alias");
        if w.odd() {
            other.params.push(Formal::scalar("param", "u32"));
        }
        let header = w.header(&other.name, &other.rets, &other.params, &other.suffix);
        let _ = writeln!(w.out, ".visible {header};\n.alias {}, {};", other.name, aliased.name);
        known.push(other);
    }
    if w.random.chance(10) {
        let names: Vec<&str> = known.iter().map(|c| c.name.as_str()).collect();
        let _ = writeln!(w.out, ".global .u64 table[{}] = {{{}}};", names.len(), names.join(", "));
    }
    w.kernel("k", &known);
    Case { text: w.out, relocatable, arch }
}
