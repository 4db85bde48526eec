//! Calls whose prototype, target list or address is wrong (manual, sections 9.7.12.5 `call`, 11.3.2 and 11.3.3).

use super::payload::{Payload, Who};
use crate::random::Random;

/// A parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Formal {
    Scalar(&'static str),
    Struct { align: u32, bytes: u32 },
}

impl Formal {
    fn draw(r: &mut Random) -> Formal {
        match r.below(3) {
            0 => Formal::Struct {
                align: r.pick(&[1, 4, 8, 16]),
                bytes: r.pick(&[1, 3, 4, 8, 12, 16, 20, 64, 256, 1024, 4000]),
            },
            _ => Formal::Scalar(r.pick(&["b32", "b32", "u32", "s32", "f32", "b64", "u64", "f64"])),
        }
    }

    fn bytes(&self) -> u32 {
        match self {
            Formal::Scalar(ty) => ty[1..].parse().unwrap_or(32) / 8,
            Formal::Struct { bytes, .. } => *bytes,
        }
    }

    fn declare(&self, name: &str) -> String {
        match self {
            Formal::Scalar(ty) => format!(".param .{ty} {name}"),
            Formal::Struct { align, bytes } => format!(".param .align {align} .b8 {name}[{bytes}]"),
        }
    }

    /// Code that adds the parameter's value to `%h`; of a struct, a few bytes.
    fn read(&self, name: &str) -> String {
        match self {
            Formal::Scalar(ty) => match self.bytes() {
                8 => format!("ld.param.b64 %l, [{name}]; add.u64 %s, %s, %l;"),
                4 => format!("ld.param.b32 %w, [{name}]; cvt.u64.u32 %l, %w; add.u64 %s, %s, %l;"),
                _ => {
                    let bits = if ty.ends_with('8') { "u8" } else { "u16" };
                    format!("ld.param.{bits} %w16, [{name}]; cvt.u64.u16 %l, %w16; add.u64 %s, %s, %l;")
                }
            },
            Formal::Struct { bytes, .. } => {
                let ends = [0, bytes / 2, bytes - 1];
                let read = |at: &u32| {
                    format!("ld.param.u8 %w16, [{name}+{at}]; cvt.u64.u16 %l, %w16; mad.lo.u64 %s, %s, 3, %l;")
                };
                ends.iter().map(read).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// Code that fills the parameter from `%l`.
    fn fill(&self, name: &str) -> String {
        match self {
            Formal::Scalar(_) => match self.bytes() {
                8 => format!("st.param.b64 [{name}], %l;"),
                4 => format!("cvt.u32.u64 %w, %l; st.param.b32 [{name}], %w;"),
                2 => format!("cvt.u16.u64 %w16, %l; st.param.b16 [{name}], %w16;"),
                _ => format!("cvt.u16.u64 %w16, %l; st.param.b8 [{name}], %w16;"),
            },
            Formal::Struct { bytes, .. } => {
                let mut ends = vec![0, bytes / 2, bytes - 1];
                ends.dedup();
                let store = |at: &u32| format!("st.param.b8 [{name}+{at}], %w16;");
                format!("cvt.u16.u64 %w16, %l; {}", ends.iter().map(store).collect::<Vec<_>>().join(" "))
            }
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Signature {
    ret: Option<Formal>,
    args: Vec<Formal>,
}

impl Signature {
    fn draw(r: &mut Random) -> Signature {
        let ret = r.chance(60).then(|| Formal::draw(r));
        Signature { ret, args: (0..r.below(4)).map(|_| Formal::draw(r)).collect() }
    }

    /// The signature with one change.
    fn altered(&self, r: &mut Random) -> Signature {
        let mut s = self.clone();
        match r.below(8) {
            0 => drop(s.args.pop()),
            1 => s.args.push(Formal::draw(r)),
            2 => s.ret = None,
            3 => s.ret = Some(Formal::draw(r)),
            4 if !s.args.is_empty() => {
                let i = r.below(s.args.len());
                s.args[i] = Formal::draw(r);
            }
            5 if s.args.len() > 1 => s.args.reverse(),
            6 => {
                // Same size, but another type or alignment.
                for f in s.args.iter_mut().chain(&mut s.ret) {
                    let bytes = f.bytes();
                    *f = match f {
                        Formal::Scalar(_) => Formal::Struct { align: bytes, bytes },
                        Formal::Struct { align, bytes } => {
                            Formal::Struct { align: *align % 16 + *align, bytes: *bytes }
                        }
                    };
                }
            }
            _ => s.args.insert(0, Formal::draw(r)),
        }
        s
    }

    fn list(&self, named: bool) -> (String, String) {
        let name = |i: usize| if named { format!("a{i}") } else { "_".into() };
        let args: Vec<String> = self.args.iter().enumerate().map(|(i, f)| f.declare(&name(i))).collect();
        let ret = self.ret.as_ref().map(|f| format!("({}) ", f.declare(if named { "back" } else { "_" })));
        (ret.unwrap_or_default(), args.join(", "))
    }

    fn function(&self, name: &str, salt: usize) -> String {
        let (ret, args) = self.list(true);
        let mut out = format!(".func {ret}{name}({args})\n{{\n    .reg .b64 %s, %l; .reg .b32 %w; .reg .b16 %w16;\n");
        out += &format!("    mov.u64 %s, {salt};\n");
        for (i, f) in self.args.iter().enumerate() {
            out += &format!("    {}\n", f.read(&format!("a{i}")));
        }
        if let Some(ret) = &self.ret {
            out += &format!("    mov.u64 %l, %s;\n    {}\n", ret.fill("back"));
        }
        out + "    ret;\n}"
    }

    fn prototype(&self, label: &str) -> String {
        let (ret, args) = self.list(false);
        format!("{label}: .callprototype {ret}_ ({args});")
    }

    /// A call of the address in `%d1`, by prototype or target list.
    fn call(&self, label: &str) -> String {
        let mut out = String::from("{ .reg .b64 %s, %l; .reg .b32 %w; .reg .b16 %w16; mov.u64 %s, 0;\n");
        let names: Vec<String> = (0..self.args.len()).map(|i| format!("x{i}")).collect();
        for (i, f) in self.args.iter().enumerate() {
            out += &format!(
                "    {}; cvt.u64.u32 %l, %gid; mad.lo.u64 %l, %l, 77, {};\n",
                f.declare(&names[i]),
                i * 1000 + 5
            );
            out += &format!("    {}\n", f.fill(&names[i]));
        }
        let mut back = String::new();
        if let Some(ret) = &self.ret {
            out += &format!("    {};\n", ret.declare("y"));
            back = "(y), ".into();
        }
        let args = if names.is_empty() { String::new() } else { format!("({}), ", names.join(", ")) };
        out += &format!("    call {back}%d1, {args}{label};\n");
        if let Some(ret) = &self.ret {
            out += &format!("    {}\n", ret.read("y"));
        }
        out + "    mov.u64 %d0, %s; }"
    }
}

pub fn make(r: &mut Random, b: &mut Payload) {
    let (f, g) = (b.name("f"), b.name("g"));
    let said = Signature::draw(r);
    match r.below(12) {
        // A wrong prototype.
        0..4 => {
            let is = said.altered(r);
            b.module(is.function(&f, 3));
            address(r, b, &f);
            b.body(said.prototype("PROTO"));
            b.body(said.call("PROTO"));
        }
        // A correct one.
        4 => {
            b.module(said.function(&f, 3));
            address(r, b, &f);
            b.body(said.prototype("PROTO"));
            b.body(said.call("PROTO"));
        }
        // A target inside or outside the list.
        5 | 6 => {
            let h = b.name("h");
            for (i, name) in [&f, &g, &h].into_iter().enumerate() {
                b.module(said.function(name, i));
            }
            let target = r.pick(&[&f, &g, &h]).clone();
            address(r, b, &target);
            b.body(format!("LIST: .calltargets {f}, {g};"));
            b.body(said.call("LIST"));
        }
        7 => divergent(r, b, [&f, &g], &said),
        // The callee is a kernel.
        8 => {
            let none = Signature { ret: None, args: Vec::new() };
            let said = if r.chance(70) { none } else { said };
            let k = b.name("other");
            b.module(format!(".visible .entry {k}() {{ ret; }}"));
            address(r, b, &k);
            b.body(said.prototype("PROTO"));
            b.body(said.call("PROTO"));
        }
        9 | 10 => no_function(r, b, &f, &said),
        // Two prototypes for one function, one after the other: the check of the first call must not count for the
        // second.
        _ => {
            let is = said.altered(r);
            b.module(is.function(&f, 3));
            b.body(format!("mov.u64 %d1, {f};"));
            b.body(format!("{}\n    {}", is.prototype("RIGHT"), is.call("RIGHT")));
            b.body(format!("{}\n    {}", said.prototype("WRONG"), said.call("WRONG")));
        }
    }
}

/// Lanes call different functions, some of them correctly.
fn divergent(r: &mut Random, b: &mut Payload, [f, g]: [&str; 2], said: &Signature) {
    let is = if r.chance(70) { said.altered(r) } else { said.clone() };
    b.module(said.function(f, 1));
    b.module(is.function(g, 2));
    b.body(format!("mov.u64 %d1, {f}; mov.u64 %d2, {g}; and.b32 %r1, %lane, {};", r.pick(&[1, 2, 16])));
    b.body("setp.ne.u32 %p1, %r1, 0; selp.b64 %d1, %d2, %d1, %p1;");
    b.body(said.prototype("PROTO"));
    b.body(said.call("PROTO"));
    let threads = b.threads();
    let (mask, warp) = (r.bits() as u32 | 1, r.below(threads.div_ceil(32) as usize) as u32);
    let exist = u32::MAX >> (32 - (threads - warp * 32).min(32));
    if mask & exist != 0 && r.chance(50) {
        b.fixed = true;
        b.who = Some(Who::Lanes { cta: 0, warp, mask: mask & exist });
    }
}

/// The callee is not a function.
fn no_function(r: &mut Random, b: &mut Payload, f: &str, said: &Signature) {
    b.module(said.function(f, 3));
    let var = b.name("var");
    b.module(format!(".global .align 8 .b8 {var}[64];"));
    let from = match r.below(6) {
        0 => "mov.u64 %d1, 0;".to_owned(),
        1 => format!("mov.u64 %d1, {};", r.bits() >> r.below(64)),
        2 => {
            b.quiet = true;
            format!("mov.u64 %d1, {var};")
        }
        3 => format!("mov.u64 %d1, {f}; add.u64 %d1, %d1, {};", r.pick(&[1, 2, 4, 7, 8, 16, 32, 64, 128])),
        4 => format!("mov.u64 %d1, {f}; sub.u64 %d1, %d1, {};", r.pick(&[1, 4, 8, 16])),
        _ => format!("mov.u64 %d1, {f}; or.b64 %d1, %d1, {:#x};", 1u64 << (33 + r.below(31))),
    };
    b.body(from);
    b.body(said.prototype("PROTO"));
    b.body(said.call("PROTO"));
}

/// Loads a function's address into `%d1`: directly, through memory, or opaquely.
fn address(r: &mut Random, b: &mut Payload, f: &str) {
    match r.below(4) {
        0 => {
            let table = b.name("table");
            b.module(format!(".global .align 8 .u64 {table}[2] = {{{f}, {f}}};"));
            b.body(format!("ld.global.u64 %d1, [{table}+8];"));
        }
        1 => b.body(format!("mov.u64 %d1, {f}; cvt.u64.u32 %d2, %lane; xor.b64 %d1, %d1, %d2; xor.b64 %d1, %d1, %d2;")),
        _ => b.body(format!("mov.u64 %d1, {f};")),
    }
}
