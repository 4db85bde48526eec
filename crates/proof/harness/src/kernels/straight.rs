//! Straight-line code: arithmetic, memory, warp operations, exchanges through shared memory.
//!
//! Registers: `%v` 32-bit, `%w` 64-bit, `%h` 16-bit, `%f` and `%g` floats of both widths, `%p` predicates, all private
//! to a thread; `%u` is uniform over the CTA; `%m0` to `%m9` are lane masks, one per depth; `%x`, `%y`, `%a` are
//! scratch.

use super::{COUNTERS, INPUT, THREADS, tree::At};
use crate::random::Random;

/// Registers by kind.
pub(super) const KINDS: [(&str, &str, usize); 6] =
    [("v", "b32", 8), ("w", "b64", 4), ("h", "b16", 4), ("f", "f32", 4), ("g", "f64", 2), ("p", "pred", 4)];

fn own(r: &mut Random, kind: &str) -> String {
    let n = KINDS.iter().find(|k| k.0 == kind).map_or(1, |k| k.2);
    format!("%{kind}{}", r.below(n))
}

/// A 32-bit operand: a register, an index or a constant.
fn word(r: &mut Random) -> String {
    match r.below(12) {
        0 => r.pick(&["%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ntid.x", "%laneid", "%nctaid.y"]).into(),
        1 => r.pick(&["%lin", "%gid", "%lin", "%gid", "%lane"]).into(),
        2 => format!("%u{}", r.below(4)),
        3 => format!("{}", r.pick(&[0, 1, 2, 3, 5, 31, 32, 255, 65_535, 0x8000_0000u32, 0xffff_ffff, 0x7fff_ffff])),
        4 => format!("{}", r.bits() as u32 >> r.below(32)),
        _ => own(r, "v"),
    }
}

/// A 32-bit operand that is a register.
fn register(r: &mut Random, out: &mut Vec<String>) -> String {
    let w = word(r);
    if w.starts_with("%v") || w.starts_with("%u") || w == "%lin" || w == "%gid" || w == "%lane" {
        return w;
    }
    out.push(format!("mov.u32 %x0, {w};"));
    "%x0".into()
}

/// A 32-bit operand that is uniform over the CTA.
fn common(r: &mut Random) -> String {
    match r.below(6) {
        0 => r.pick(&["%ctaid.x", "%ctaid.y", "%ntid.x", "%nctaid.x"]).into(),
        1 => format!("{}", r.below(9)),
        _ => format!("%u{}", r.below(4)),
    }
}

/// Code that loads an index below a power of two into `%x1`.
fn index(r: &mut Random, below: u32, out: &mut Vec<String>) {
    let w = if r.chance(20) { common(r) } else { word(r) };
    out.push(format!("mov.u32 %x1, {w};"));
    if r.chance(30) {
        out.push(format!("mad.lo.u32 %x1, %x1, {}, {};", r.pick(&[1, 2, 3, 4, 8, 0xffff_ffffu32]), r.below(40)));
    }
    out.push(format!("and.b32 %x1, %x1, {};", below - 1));
}

/// A comparison into `%q` of a depth.
pub(super) fn test(r: &mut Random, depth: usize, cta: bool) -> Vec<String> {
    let mut out = Vec::new();
    let op = r.pick(&["eq", "ne", "lt", "le", "gt", "ge"]);
    if cta {
        out.push(format!("mov.u32 %x0, {};", common(r)));
        out.push(format!("and.b32 %x0, %x0, {};", r.pick(&[1, 3, 7])));
        out.push(format!("setp.{op}.u32 %q{depth}, %x0, {};", r.below(4)));
        return out;
    }
    match r.below(6) {
        0 => {
            let a = own(r, "f");
            let op = r.pick(&["lt", "ge", "ltu", "equ", "neu", "num", "nan"]);
            out.push(format!("setp.{op}.f32 %q{depth}, {a}, {};", own(r, "f")));
        }
        1 => out.push(format!("mov.pred %q{depth}, {};", own(r, "p"))),
        2 => {
            let p = own(r, "p");
            let a = own(r, "w");
            out.push(format!("setp.{op}.and.s64 %q{depth}, {a}, {}, {p};", own(r, "w")));
        }
        3 => {
            out.push(format!("and.b32 %x0, %lane, {};", r.pick(&[1, 2, 7, 16, 24, 31])));
            out.push(format!("setp.{op}.u32 %q{depth}, %x0, {};", r.below(20)));
        }
        _ => {
            let a = register(r, &mut out);
            let b = own(r, "v");
            out.push(format!("xor.b32 %x0, {a}, {b};"));
            out.push(format!("and.b32 %x0, %x0, {};", r.pick(&[1, 3, 7, 15, 0x8000_0001u32])));
            out.push(format!("setp.{op}.s32 %q{depth}, %x0, {};", r.below(4)));
        }
    }
    out
}

/// A condition that few threads meet, into `%q9`.
pub(super) fn rare(r: &mut Random) -> Vec<String> {
    let mut out = Vec::new();
    if r.chance(50) {
        out.push(format!("add.u32 %x0, %gid, {};", r.below(64)));
        out.push(format!("and.b32 %x0, %x0, {};", r.pick(&[7, 15, 31])));
        out.push(format!("setp.eq.u32 %q9, %x0, {};", r.below(8)));
    } else {
        out.push(format!("setp.ge.u32 %q9, %lin, {};", 3 + r.below(120)));
    }
    out
}

/// A trip count, into `%n` of a depth.
pub(super) fn bound(r: &mut Random, depth: usize, cta: bool) -> Vec<String> {
    let mut out = Vec::new();
    if cta {
        out.push(format!("mov.u32 %x0, {};", common(r)));
        out.push("and.b32 %x0, %x0, 3;".into());
        out.push(format!("add.u32 %n{depth}, %x0, {};", 1 + r.below(3)));
    } else {
        let a = register(r, &mut out);
        out.push(format!("bfe.u32 %x0, {a}, {}, 3;", r.below(20)));
        out.push(format!("mov.u32 %n{depth}, %x0;"));
    }
    out
}

/// A number below `count`, into `%n` of a depth.
pub(super) fn select(r: &mut Random, depth: usize, count: usize) -> Vec<String> {
    let mut out = Vec::new();
    let a = register(r, &mut out);
    out.push(format!("rem.u32 %n{depth}, {a}, {count};"));
    out
}

/// Some pieces of code that are valid at a place. A piece of several lines is left out as a whole, since its parts
/// depend on each other.
pub(super) fn lines(r: &mut Random, at: At) -> Vec<String> {
    let piece = |r: &mut Random, make: &dyn Fn(&mut Random, &mut Vec<String>)| {
        let mut out = Vec::new();
        make(r, &mut out);
        out.join("\n    ")
    };
    if at.cta && r.chance(30) {
        return vec![piece(r, &exchange)];
    }
    let one = |r: &mut Random, out: &mut Vec<String>| match r.below(20) {
        0..2 if at.warp => warp(r, at, out),
        2..5 => load(r, at, out),
        5..8 => store(r, at, out),
        8 => atomic(r, out),
        9 if at.cta => {
            // Uniform over the CTA.
            let (a, b) = (common(r), r.below(4));
            out.push(format!("mov.u32 %x0, {a};"));
            out.push(format!("mad.lo.u32 %u{}, %x0, {}, %u{b};", r.below(4), r.below(99)));
        }
        10 if !at.movable && r.chance(30) => allocate(r, at, out),
        11 if !at.movable && r.chance(20) => locked(r, out),
        12 if r.chance(50) => parts(r, at, out),
        _ => arithmetic(r, out),
    };
    (0..1 + r.below(4)).map(|_| piece(r, &one)).collect()
}

fn guard(r: &mut Random) -> String {
    match r.chance(15) {
        true => format!("@{}{} ", r.pick(&["", "!"]), own(r, "p")),
        false => String::new(),
    }
}

fn arithmetic(r: &mut Random, out: &mut Vec<String>) {
    let g = guard(r);
    let (v, w, h, f, d, p) = (own(r, "v"), own(r, "w"), own(r, "h"), own(r, "f"), own(r, "g"), own(r, "p"));
    let a = register(r, out);
    let (b, c) = (word(r), own(r, "v"));
    let b = if b.contains('.') || b == "%laneid" { own(r, "v") } else { b };
    let (w1, h1, f1, d1, p1) = (own(r, "w"), own(r, "h"), own(r, "f"), own(r, "g"), own(r, "p"));
    let (w2, f2, p2) = (own(r, "w"), own(r, "f"), own(r, "p"));
    let n = r.below(32);
    let line = match r.below(34) {
        0 => format!("{} {v}, {a}, {b};", r.pick(&["add.u32", "sub.s32", "mul.lo.u32", "mul.hi.s32", "mul.hi.u32"])),
        1 => format!("{} {v}, {a}, {b};", r.pick(&["and.b32", "or.b32", "xor.b32", "min.s32", "max.u32", "min.u32"])),
        2 => format!("{} {v}, {a}, {b};", r.pick(&["shl.b32", "shr.u32", "shr.s32"])),
        3 => {
            out.push(format!("or.b32 %x0, {c}, 1;"));
            format!("{} {v}, {a}, %x0;", r.pick(&["div.u32", "rem.u32", "rem.s32"]))
        }
        4 => format!("mad.lo.s32 {v}, {a}, {b}, {c};"),
        5 => format!("mad.wide.{} {w}, {a}, {c}, {w1};", r.pick(&["u32", "s32"])),
        6 => format!("mul.wide.{} {w}, {a}, {c};", r.pick(&["u32", "s32"])),
        7 => format!(
            "{} {w}, {w1}, {w2};",
            r.pick(&["add.s64", "sub.u64", "mul.lo.u64", "mul.hi.u64", "xor.b64", "min.s64"])
        ),
        8 => format!("{} {w}, {w1}, {a};", r.pick(&["shl.b64", "shr.u64", "shr.s64"])),
        9 => {
            out.push(format!("or.b64 %y0, {w2}, 1;"));
            format!("{} {w}, {w1}, %y0;", r.pick(&["div.u64", "rem.u64"]))
        }
        10 => format!("cvt.{} {v}, {h1};", r.pick(&["u32.u16", "s32.s16", "s32.s8", "u32.u8"])),
        11 => format!("cvt.{} {h}, {a};", r.pick(&["u16.u32", "s16.s32", "sat.u8.s32", "sat.s16.s32"])),
        12 => format!("cvt.{} {w}, {a};", r.pick(&["u64.u32", "s64.s32"])),
        13 => format!("cvt.{} {v}, {w1};", r.pick(&["u32.u64", "sat.s32.s64"])),
        14 => format!(
            "{} {h}, {h1}, {};",
            r.pick(&["add.u16", "sub.s16", "mul.lo.u16", "max.s16", "xor.b16"]),
            own(r, "h")
        ),
        15 => format!(
            "{} {f}, {f1}, {f2};",
            r.pick(&["add.f32", "sub.rn.f32", "mul.f32", "add.ftz.f32", "min.f32", "max.NaN.f32"])
        ),
        16 => format!("fma.{} {f}, {f1}, {f2}, {f};", r.pick(&["rn.f32", "rz.f32", "rn.ftz.f32"])),
        17 => format!("{} {d}, {d1}, {d};", r.pick(&["add.f64", "mul.f64", "div.rn.f64", "min.f64"])),
        18 => format!("cvt.{} {f}, {a};", r.pick(&["rn.f32.s32", "rz.f32.u32"])),
        19 => format!("cvt.{} {v}, {f1};", r.pick(&["rzi.s32.f32", "rni.u32.f32"])),
        20 => format!("cvt.{} {d}, {};", r.pick(&["f64.f32"]), f1),
        21 => format!("mov.b32 {f}, {a};"),
        22 => format!("mov.b32 {v}, {f1};"),
        23 => format!("mov.b64 {w}, {{{a}, {c}}};"),
        24 => format!("mov.b64 {{{v}, %x3}}, {w1};"),
        25 => format!("prmt.b32 {v}, {a}, {c}, {};", r.bits() & 0x7777),
        26 => format!("lop3.b32 {v}, {a}, {c}, {v}, {};", r.bits() & 255),
        27 => format!("shf.{}.wrap.b32 {v}, {a}, {c}, {n};", r.pick(&["l", "r"])),
        28 => format!("{} {v}, {a}, {n}, {};", r.pick(&["bfe.u32", "bfe.s32"]), r.below(33)),
        29 => format!("{} {v}, {a};", r.pick(&["popc.b32", "clz.b32", "brev.b32", "not.b32", "neg.s32", "abs.s32"])),
        30 => format!("selp.b32 {v}, {a}, {c}, {p};"),
        31 => format!("setp.{}.{} {p}, {a}, {c};", r.pick(&["lt", "ge", "eq", "ne"]), r.pick(&["u32", "s32"])),
        32 => format!("{} {p}, {p1}, {p2};", r.pick(&["and.pred", "or.pred", "xor.pred"])),
        _ => {
            out.push(format!("{g}add.cc.u32 {v}, {a}, {c};"));
            return out.push(format!("addc.u32 {}, {c}, 0;", own(r, "v")));
        }
    };
    out.push(format!("{g}{line}"));
}

/// Loads the address of a location that the thread owns into `%a`, for accesses of `bytes` bytes. Returns the space.
fn place(r: &mut Random, at: At, bytes: u32, out: &mut Vec<String>) -> &'static str {
    let spaces = ["global", "global", "rows", "shared", "shared", "local", "generic", "generic"];
    let space = r.pick(if at.movable { &spaces[..5] } else { &spaces });
    let slots = if space == "shared" { 16 / bytes } else { 64 / bytes };
    if r.chance(50) {
        out.push(format!("mov.u32 %x1, {};", r.below(slots as usize)));
    } else {
        index(r, slots, out);
    }
    match space {
        "global" => out.push(format!("mad.wide.u32 %a, %x1, {bytes}, %own;")),
        // Word by word, neighboring threads side by side: coalesced.
        "rows" => {
            out.push("and.b32 %x1, %x1, 15;".into());
            out.push("mad.lo.u32 %x1, %x1, %threads, %gid;".into());
            out.push("mad.wide.u32 %a, %x1, 8, %rows;".into());
            return "global";
        }
        "shared" => {
            out.push(format!("mad.lo.u32 %x1, %x1, {bytes}, %mine;"));
            out.push("cvt.u64.u32 %a, %x1;".into());
        }
        "local" => {
            out.push("mov.u64 %a, stack;".into());
            out.push(format!("mad.wide.u32 %a, %x1, {bytes}, %a;"));
        }
        _ => {
            // One of three spaces, depending on the thread's values.
            out.push(format!("and.b32 %x1, %x1, {};", 16 / bytes - 1));
            out.push("cvt.u64.u32 %a, %mine;".into());
            out.push("cvta.shared.u64 %a, %a;".into());
            out.push("mov.u64 %y0, stack;".into());
            out.push("cvta.local.u64 %y0, %y0;".into());
            out.push(format!("selp.b64 %a, %a, %y0, {};", own(r, "p")));
            out.push("cvta.global.u64 %y0, %own;".into());
            out.push(format!("selp.b64 %a, %a, %y0, {};", own(r, "p")));
            out.push(format!("mad.wide.u32 %a, %x1, {bytes}, %a;"));
            return "";
        }
    }
    space
}

/// The type of an access: its size in bytes, the suffix of the mnemonic, and the registers.
fn access(r: &mut Random, loading: bool) -> (u32, String, String) {
    let (v, w) = (own(r, "v"), own(r, "w"));
    match r.below(9) {
        0 => (1, if loading { r.pick(&[".u8", ".s8"]).into() } else { ".u8".into() }, v),
        1 => (2, ".u16".into(), own(r, "h")),
        2 => (8, ".u64".into(), w),
        3 => (8, ".v2.u32".into(), if loading { "{%v0, %v3}".into() } else { format!("{{{v}, %v1}}") }),
        4 => (
            16,
            ".v4.u32".into(),
            if loading { "{%v1, %v5, %v2, %v0}".into() } else { format!("{{{v}, %v1, %v6, %v2}}") },
        ),
        5 => (4, ".f32".into(), own(r, "f")),
        6 => (8, ".f64".into(), own(r, "g")),
        _ => (4, ".u32".into(), v),
    }
}

fn spaced(space: &str) -> String {
    if space.is_empty() { String::new() } else { format!(".{space}") }
}

fn load(r: &mut Random, at: At, out: &mut Vec<String>) {
    let (bytes, ty, to) = access(r, true);
    if r.chance(40) {
        // From read-only memory.
        let global = r.chance(60);
        index(r, if global { INPUT * 4 / bytes } else { 64 / bytes }, out);
        let g = guard(r);
        if global {
            out.push(format!("mad.wide.u32 %a, %x1, {bytes}, %input;"));
            let how = r.pick(&[".global", ".global.nc", "", ".global"]);
            return out.push(format!("{g}ld{how}{ty} {to}, [%a];"));
        }
        out.push("mov.u64 %a, table;".into());
        out.push(format!("mad.wide.u32 %a, %x1, {bytes}, %a;"));
        return out.push(format!("{g}ld.const{ty} {to}, [%a];"));
    }
    // A row holds 8 bytes.
    let (bytes, ty, to) = if bytes == 16 { (4, ".u32".into(), own(r, "v")) } else { (bytes, ty, to) };
    let space = place(r, at, bytes, out);
    out.push(format!("{}ld{}{ty} {to}, [%a];", guard(r), spaced(space)));
}

fn store(r: &mut Random, at: At, out: &mut Vec<String>) {
    let (bytes, ty, from) = access(r, false);
    let (bytes, ty, from) =
        if bytes == 16 && r.chance(70) { (4, ".u32".into(), own(r, "v")) } else { (bytes, ty, from) };
    if bytes == 16 {
        index(r, 4, out);
        out.push("mad.wide.u32 %a, %x1, 16, %own;".into());
        return out.push(format!("{}st.global{ty} [%a], {from};", guard(r)));
    }
    let space = place(r, at, bytes, out);
    out.push(format!("{}st{}{ty} [%a], {from};", guard(r), spaced(space)));
}

/// Accesses to parts of eight bytes that the thread owns, at constant offsets from one address; most of them stores, some of the same bytes.
fn parts(r: &mut Random, at: At, out: &mut Vec<String>) {
    let space = spaced(place(r, at, 8, out));
    for _ in 0..3 + r.below(6) {
        let bytes = r.pick(&[1, 1, 2, 2, 4]);
        let (ty, register) = match bytes {
            1 => ("u8", own(r, "v")),
            2 => ("u16", own(r, "h")),
            _ => ("u32", own(r, "v")),
        };
        let offset = bytes * r.below(8 / bytes);
        out.push(match r.chance(15) {
            true => format!("ld{space}.{ty} {register}, [%a+{offset}];"),
            false => format!("st{space}.{ty} [%a+{offset}], {register};"),
        });
    }
}

/// Memory from the thread's stack, allocated, used and released, or left to be released by the function's return.
fn allocate(r: &mut Random, at: At, out: &mut Vec<String>) {
    let back = at.depth > 0 || r.chance(50);
    if back {
        out.push("stacksave.u64 %y1;".into());
    }
    let (bytes, align) = (r.pick(&[16u32, 24, 64]), r.pick(&[4u32, 8, 16]));
    match r.chance(50) {
        true => out.push(format!("alloca.u64 %a, {bytes}, {align};")),
        false => {
            // A size that depends on the thread's values.
            out.push(format!("and.b32 %x0, {}, 48;", own(r, "v")));
            out.push("cvt.u64.u32 %y0, %x0;".into());
            out.push(format!("add.u64 %y0, %y0, {bytes};"));
            out.push(format!("alloca.u64 %a, %y0, {align};"));
        }
    }
    let (first, second) = (own(r, "v"), own(r, "v"));
    out.push(format!("st.local.u32 [%a+{}], {first};", bytes - 4));
    out.push(format!("st.local.v2.u16 [%a], {{{}, {}}};", own(r, "h"), own(r, "h")));
    out.push(format!("ld.local.u32 {second}, [%a];"));
    out.push(format!("ld.local.u32 {}, [%a+{}];", own(r, "v"), bytes - 4));
    if back {
        out.push("stackrestore.u64 %y1;".into());
    }
}

/// A sum protected by a lock that one thread of the CTA holds at a time, lanes of one warp included.
fn locked(r: &mut Random, out: &mut Vec<String>) {
    let label = format!("lock{:x}", r.bits());
    out.push(format!("mov.u64 %a, locks+{};", r.pick(&[0, 8])));
    out.push(format!("{label}:"));
    out.push("atom.shared.cas.b32 %x3, [%a], 0, 1;".into());
    out.push("setp.ne.u32 %q8, %x3, 0;".into());
    out.push(format!("@%q8 bra {label};"));
    out.push("ld.volatile.shared.u32 %x4, [%a+4];".into());
    out.push(format!("add.u32 %x4, %x4, {};", own(r, "v")));
    out.push("st.volatile.shared.u32 [%a+4], %x4;".into());
    out.push("membar.cta;".into());
    out.push("atom.shared.exch.b32 %x3, [%a], 0;".into());
}

/// Atomic operations on locations shared by threads, whose order has no effect.
fn atomic(r: &mut Random, out: &mut Vec<String>) {
    let ops = ["add.u32", "min.u32", "max.u32", "and.b32", "or.b32", "xor.b32", "min.s32", "max.s32", "inc.u32"];
    let which = r.below(COUNTERS as usize / 16);
    index(r, 16, out);
    let value = if which == 8 { "1000".into() } else { register(r, out) };
    out.push(format!("add.u32 %x1, %x1, {};", which * 16));
    let shared = r.chance(40);
    if shared {
        // Shared counters have the same initial values in every CTA and are written out at the end by `text`.
        out.push("mov.u64 %a, counters;".into());
        out.push("mad.wide.u32 %a, %x1, 4, %a;".into());
    } else {
        out.push("mad.wide.u32 %a, %x1, 4, %counters;".into());
    }
    let space = if shared { "shared" } else { "global" };
    let g = guard(r);
    match which == 8 || r.chance(30) {
        true => out.push(format!("{g}atom.{space}.{} %x3, [%a], {value};", ops[which])),
        false => out.push(format!("{g}red.{space}.{} [%a], {value};", ops[which])),
    }
    if r.chance(30) {
        // On a word of the thread's own, the result is used.
        index(r, 8, out);
        out.push("mad.wide.u32 %a, %x1, 4, %own;".into());
        let (v, a) = (own(r, "v"), own(r, "v"));
        out.push(match r.below(4) {
            0 => format!("atom.global.cas.b32 {v}, [%a], {a}, {};", own(r, "v")),
            1 => format!("atom.global.exch.b32 {v}, [%a], {a};"),
            2 => format!("atom.global.add.f32 {}, [%a], {};", own(r, "f"), own(r, "f")),
            _ => format!("atom.global.add.u32 {v}, [%a], {a};"),
        });
    }
}

/// Operations over the lanes named by `%m` of the depth.
fn warp(r: &mut Random, at: At, out: &mut Vec<String>) {
    let m = format!("%m{}", at.depth);
    let (v, a, p) = (own(r, "v"), own(r, "v"), own(r, "p"));
    match r.below(10) {
        9 => meet(r, &m, out),
        0 => out.push(format!("vote.sync.ballot.b32 {v}, {p}, {m};")),
        1 => out.push(format!("vote.sync.{}.pred {p}, {}, {m};", r.pick(&["any", "all", "uni"]), own(r, "p"))),
        2 => out.push(format!("redux.sync.{} {v}, {a}, {m};", r.pick(&["add.s32", "min.u32", "max.s32", "xor.b32"]))),
        3 => {
            out.push(format!("and.b32 %x0, {a}, 7;"));
            out.push(format!("match.any.sync.b32 {v}, %x0, {m};"));
        }
        4 => out.push(format!("match.all.sync.b32 {v}|{p}, {a}, {m};")),
        _ => {
            let (way, bounds) = r.pick(&[
                ("idx", 31u32),
                ("up", 0),
                ("down", 31),
                ("bfly", 31),
                ("idx", 0x181f),
                ("bfly", 0x1c1f),
                ("down", 0x181f),
            ]);
            let by = if r.chance(50) { format!("{}", 1 + r.below(16)) } else { register(r, out) };
            out.push(format!("mov.u32 %x2, {by};"));
            out.push("and.b32 %x2, %x2, 31;".into());
            let by = if by.starts_with('%') { "%x2".into() } else { by };
            out.push(format!("shfl.sync.{way}.b32 %x3|%q7, {a}, {by}, {bounds}, {m};"));
            // A shuffle from an inactive lane is undefined: then the lane keeps its own value.
            let segment = bounds >> 8;
            out.push(match way {
                "up" => format!("sub.u32 %x4, %lane, {by};"),
                "down" => format!("add.u32 %x4, %lane, {by};"),
                "bfly" => format!("xor.b32 %x4, %lane, {by};"),
                _ => format!("lop3.b32 %x4, %lane, %x2, {segment}, 0xe4;"),
            });
            out.push("and.b32 %x4, %x4, 31;".into());
            out.push(format!("shr.u32 %x4, {m}, %x4;"));
            out.push("and.b32 %x4, %x4, 1;".into());
            out.push("setp.ne.u32 %q8, %x4, 0;".into());
            out.push("not.pred %q7, %q7;".into());
            out.push("or.pred %q8, %q8, %q7;".into());
            out.push(format!("selp.b32 {v}, %x3, {a}, %q8;"));
        }
    }
}

/// An exchange through shared memory of the lanes of a mask, between two barriers of theirs.
fn meet(r: &mut Random, m: &str, out: &mut Vec<String>) {
    let (v, word) = (own(r, "v"), 4 * r.below(4));
    out.push(format!("st.shared.u32 [%mine+{word}], {};", own(r, "v")));
    out.push(format!("bar.warp.sync {m};"));
    // Of another lane, if it takes part.
    out.push(format!("xor.b32 %x4, %lane, {};", 1 + r.below(31)));
    out.push(format!("shr.u32 %x2, {m}, %x4;"));
    out.push("and.b32 %x2, %x2, 1;".into());
    out.push("setp.ne.u32 %q8, %x2, 0;".into());
    out.push("sub.u32 %x4, %x4, %lane;".into());
    out.push("mad.lo.u32 %x4, %x4, 16, %mine;".into());
    out.push(format!("@%q8 ld.shared.u32 {v}, [%x4+{word}];"));
    out.push(format!("bar.warp.sync {m};"));
}

/// A phase in which each thread writes one word, and one in which all may read any of them.
fn exchange(r: &mut Random, out: &mut Vec<String>) {
    let barrier = |r: &mut Random| -> String {
        r.pick(&["bar.sync 0;", "barrier.sync 1;", "bar.sync 7;", "barrier.sync.aligned 0;", "bar.sync 0;"]).into()
    };
    let bits = THREADS - 1;
    match r.below(3) {
        0 => out.push(format!("xor.b32 %x1, %lin, {};", r.below(THREADS as usize))),
        1 => out.push(format!("mad.lo.u32 %x1, %lin, {}, {};", 1 + 2 * r.below(20), r.below(300))),
        _ => out.push("mov.u32 %x1, %lin;".into()),
    }
    out.push(format!("and.b32 %x1, %x1, {bits};"));
    out.push("mov.u64 %a, exchanged;".into());
    out.push("mad.wide.u32 %a, %x1, 4, %a;".into());
    out.push(format!("st.shared.u32 [%a], {};", own(r, "v")));
    match r.below(4) {
        0 => out.push(format!("bar.red.popc.u32 {}, 0, {};", own(r, "v"), own(r, "p"))),
        1 => out.push(format!("bar.red.{}.pred {}, 2, {};", r.pick(&["and", "or"]), own(r, "p"), own(r, "p"))),
        _ => out.push(barrier(r)),
    }
    for _ in 0..1 + r.below(3) {
        index(r, THREADS, out);
        out.push("mov.u64 %a, exchanged;".into());
        out.push("mad.wide.u32 %a, %x1, 4, %a;".into());
        out.push(format!("ld.shared.u32 {}, [%a];", own(r, "v")));
        if r.chance(40) {
            arithmetic(r, out);
        }
    }
    out.push(barrier(r));
}
