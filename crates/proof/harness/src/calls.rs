//! Random modules whose functions call each other, with the results that they must have.
//!
//! Every function folds all bytes of its formals into a hash, calls others with values derived from it, folds their
//! results, and derives its own result from the hash. The same is computed here on byte vectors, so a byte that is
//! lost, misplaced or overwritten under any calling convention changes the result.

use crate::random::Random;
use std::fmt::Write;

/// A formal parameter, or the argument for it.
#[derive(Clone, Debug)]
struct Formal {
    reg: bool,
    ty: &'static str,
    vector: u32,
    align: u32,
    /// Size in bytes; of an unsized array, the bytes that the callee reads.
    size: u32,
    array: bool,
    is_unsized: bool,
    /// Every call passes a uniform value.
    shared: bool,
}

#[derive(Clone, Debug)]
enum Step {
    /// A call: the callee, whether by address, and the bit of the hash that guards it.
    Call { callee: usize, indirect: bool, guard: Option<u32> },
}

#[derive(Clone, Debug)]
struct Function {
    params: Vec<Formal>,
    ret: Option<Formal>,
    steps: Vec<Step>,
    /// The first formal counts down, and the function calls itself until it is zero.
    recursive: bool,
}

const THREADS: u32 = 40;
const PIECE: u32 = 0x85eb_ca6b;

/// Naturally aligned pieces in which a formal can be moved: offsets and sizes.
fn pieces(f: &Formal) -> Vec<(u32, u32)> {
    let unit = if f.array { f.align.min(8) } else { f.size.min(8) };
    let (mut out, mut at) = (Vec::new(), 0);
    while at < f.size {
        let mut size = unit;
        while size > f.size - at || at % size != 0 {
            size /= 2;
        }
        out.push((at, size));
        at += size;
    }
    out
}

/// The bytes that a caller passes or a callee returns for a hash; different in every piece.
fn fill(hash: u32, f: &Formal) -> Vec<u8> {
    let mut bytes = vec![0; f.size as usize];
    for (p, (at, size)) in pieces(f).into_iter().enumerate() {
        let low = value(hash, p as u32);
        let high = low.wrapping_mul(3).wrapping_add(1);
        let all = u64::from(low) | u64::from(high) << 32;
        bytes[at as usize..(at + size) as usize].copy_from_slice(&all.to_le_bytes()[..size as usize]);
    }
    bytes
}

/// The hash from which a uniform argument is derived.
fn shared(function: usize, formal: usize) -> u32 {
    0x51ed_2701 + 97 * function as u32 + formal as u32
}

fn value(hash: u32, piece: u32) -> u32 {
    hash.wrapping_add(piece.wrapping_mul(PIECE)) ^ piece << 7
}

/// Folds the bytes of a formal into a hash, piece by piece.
fn fold(mut hash: u32, f: &Formal, bytes: &[u8]) -> u32 {
    for (at, size) in pieces(f) {
        let mut all = [0; 8];
        all[..size as usize].copy_from_slice(&bytes[at as usize..(at + size) as usize]);
        let v = u64::from_le_bytes(all);
        hash = hash.wrapping_mul(31).wrapping_add(v as u32 ^ (v >> 32) as u32);
    }
    hash
}

impl Function {
    /// The result of a call.
    fn run(&self, all: &[Function], index: usize, args: &[Vec<u8>]) -> Vec<u8> {
        let mut hash = 17 + index as u32;
        for (f, bytes) in self.params.iter().zip(args) {
            hash = fold(hash, f, bytes);
        }
        if self.recursive {
            let depth = args[0][0];
            if depth > 0 {
                let mut next = self.filled(index, hash);
                next[0] = u32::from(depth - 1).to_le_bytes().to_vec();
                hash = self.take(hash, &self.run(all, index, &next));
            }
        }
        hash = steps(all, &self.steps, hash);
        self.ret.as_ref().map_or(Vec::new(), |f| fill(hash, f))
    }

    /// Folds this function's result into the caller's hash.
    fn take(&self, hash: u32, result: &[u8]) -> u32 {
        self.ret.as_ref().map_or(hash.wrapping_add(1), |f| fold(hash, f, result))
    }

    /// The arguments of a call with a hash.
    fn filled(&self, index: usize, hash: u32) -> Vec<Vec<u8>> {
        let from = |(i, f): (usize, &Formal)| fill(if f.shared { shared(index, i) } else { hash }, f);
        self.params.iter().enumerate().map(from).collect()
    }

    fn arguments(&self, index: usize, hash: u32) -> Vec<Vec<u8>> {
        let mut args = self.filled(index, hash);
        if self.recursive {
            args[0] = (hash >> 9 & 3).to_le_bytes().to_vec();
        }
        args
    }
}

fn steps(all: &[Function], steps: &[Step], mut hash: u32) -> u32 {
    for Step::Call { callee, guard, .. } in steps {
        if guard.is_none_or(|bit| hash >> bit & 1 == 1) {
            let f = &all[*callee];
            hash = f.take(hash, &f.run(all, *callee, &f.arguments(*callee, hash)));
        }
    }
    hash
}

/// A case file in the format of `tests/README.ptx`.
pub fn case(seed: u64) -> String {
    let mut random = Random::new(seed);
    let count = 1 + random.below(4);
    let functions: Vec<Function> = (0..count).map(|i| function(&mut random, i)).collect();
    let calls: Vec<Step> = (0..1 + random.below(3)).map(|_| step(&mut random, count, 40)).collect();
    let mut w = Writer { out: String::new(), functions: &functions, next: 0 };
    let results: Vec<String> =
        (0..THREADS).map(|t| steps(&functions, &calls, t.wrapping_mul(0x9e37_79b1)).to_string()).collect();
    let _ = writeln!(w.out, "//@ launch: k<<<1, {THREADS}>>>(out out: u32[{THREADS}])");
    let _ = writeln!(w.out, "//@ expect: out[0..{THREADS}] == {{{}}}", results.join(", "));
    w.out.push_str("//@ source: the same hash over byte vectors\n//@ seeds: 1..1\n");
    w.out.push_str(".version 8.0\n.target sm_80\n.address_size 64\n");
    for i in 0..count {
        w.function(i);
    }
    w.out.push_str(".visible .entry k(.param .u64 out)\n{\n");
    w.registers();
    w.line("mov.u32 %r9, %tid.x;");
    w.line("mul.lo.u32 %r0, %r9, 0x9e3779b1;");
    w.steps(&calls);
    w.line("ld.param.u64 %rd1, [out];");
    w.line("mad.wide.u32 %rd1, %r9, 4, %rd1;");
    w.line("st.global.u32 [%rd1], %r0;");
    w.line("ret;");
    w.out.push_str("}\n");
    w.out
}

fn formal(random: &mut Random, last: bool) -> Formal {
    let scalar = |reg, ty: &'static str, size| Formal {
        reg,
        ty,
        vector: 1,
        align: size,
        size,
        array: false,
        is_unsized: false,
        shared: false,
    };
    match random.below(10) {
        0..3 => {
            let (ty, size) =
                random.pick(&[("b8", 1), ("b16", 2), ("b32", 4), ("f32", 4), ("s32", 4), ("u64", 8), ("f64", 8)]);
            scalar(false, ty, size)
        }
        3..5 => {
            let (ty, size) = random.pick(&[("b32", 4), ("f32", 4), ("u32", 4), ("b64", 8), ("f64", 8)]);
            scalar(true, ty, size)
        }
        5 => {
            let vector = random.pick(&[2, 4]);
            let ty = random.pick(&["f32", "u32"]);
            Formal { vector, align: 4, size: 4 * vector, array: true, ..scalar(true, ty, 4) }
        }
        6 if last => {
            let align = random.pick(&[1, 4, 8]);
            Formal { array: true, is_unsized: true, align, size: 1 + random.below(23) as u32, ..scalar(false, "b8", 1) }
        }
        _ => {
            let align = random.pick(&[1, 2, 4, 8, 16]);
            Formal { array: true, align, size: 1 + random.below(47) as u32, ..scalar(false, "b8", 1) }
        }
    }
}

fn step(random: &mut Random, callees: usize, guarded: usize) -> Step {
    Step::Call {
        callee: random.below(callees),
        indirect: random.chance(25),
        guard: random.chance(guarded).then(|| random.below(12) as u32),
    }
}

fn function(random: &mut Random, index: usize) -> Function {
    let recursive = random.chance(25);
    let count = random.below(6);
    let mut params: Vec<Formal> = (0..count).map(|i| formal(random, i + 1 == count)).collect();
    params.iter_mut().for_each(|f| f.shared = random.chance(30));
    if recursive {
        params.insert(
            0,
            Formal {
                reg: random.chance(50),
                ty: "b32",
                vector: 1,
                align: 4,
                size: 4,
                array: false,
                is_unsized: false,
                shared: false,
            },
        );
    }
    let ret = random.chance(80).then(|| formal(random, false));
    let calls = if index == 0 { 0 } else { random.below(3) };
    let steps = (0..calls).map(|_| step(random, index, 30)).collect();
    Function { params, ret, steps, recursive }
}

struct Writer<'f> {
    out: String,
    functions: &'f [Function],
    next: u32,
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "    {text}");
    }

    fn registers(&mut self) {
        self.line(".reg .b16 %h<2>; .reg .b32 %r<10>; .reg .b64 %rd<4>; .reg .pred %p<2>;");
    }

    fn declare(f: &Formal, name: &str) -> String {
        let space = if f.reg { ".reg" } else { ".param" };
        match () {
            () if f.vector > 1 => format!("{space} .v{} .{} {name}", f.vector, f.ty),
            () if f.is_unsized => format!("{space} .align {} .b8 {name}[]", f.align),
            () if f.array => format!("{space} .align {} .b8 {name}[{}]", f.align, f.size),
            () => format!("{space} .{} {name}", f.ty),
        }
    }

    fn lists(&self, index: usize, named: bool) -> (String, String) {
        let f = &self.functions[index];
        let name = |n: String| if named { n } else { "_".to_owned() };
        let params: Vec<String> =
            f.params.iter().enumerate().map(|(i, p)| Self::declare(p, &name(format!("a{i}")))).collect();
        let ret = f.ret.as_ref().map(|r| format!("({}) ", Self::declare(r, &name("o".into())))).unwrap_or_default();
        (ret, params.join(", "))
    }

    fn function(&mut self, index: usize) {
        let f = &self.functions[index];
        let (ret, params) = self.lists(index, true);
        let _ = writeln!(self.out, ".func {ret}f{index}({params})\n{{");
        self.registers();
        self.line(&format!("mov.u32 %r0, {};", 17 + index));
        for (i, p) in f.params.iter().enumerate() {
            self.fold(p, &format!("a{i}"));
        }
        if f.recursive {
            let load = if f.params[0].reg { "mov.b32 %r8, a0;" } else { "ld.param.b32 %r8, [a0];" };
            self.line(load);
            self.line("setp.eq.u32 %p0, %r8, 0;");
            let over = self.label();
            self.line(&format!("@%p0 bra {over};"));
            self.line("sub.u32 %r8, %r8, 1;");
            self.call(index, false);
            self.out.push_str(&format!("{over}:\n"));
        }
        self.steps(&f.steps);
        if let Some(r) = &f.ret {
            self.fill(r, "o", "%r0");
        }
        self.line("ret;");
        self.out.push_str("}\n");
    }

    fn label(&mut self) -> String {
        self.next += 1;
        format!("L{}", self.next)
    }

    fn steps(&mut self, steps: &[Step]) {
        for Step::Call { callee, indirect, guard } in steps {
            let over = self.label();
            if let Some(bit) = guard {
                self.line(&format!("bfe.u32 %r7, %r0, {bit}, 1;"));
                self.line("setp.eq.u32 %p1, %r7, 0;");
                self.line(&format!("@%p1 bra {over};"));
            }
            if self.functions[*callee].recursive {
                self.line("bfe.u32 %r8, %r0, 9, 2;");
            }
            self.call(*callee, *indirect);
            self.out.push_str(&format!("{over}:\n"));
        }
    }

    /// Emits a call with values from `%r0`; the first formal of a recursive function comes from `%r8`.
    fn call(&mut self, index: usize, indirect: bool) {
        let f = &self.functions[index];
        self.line("{");
        let mut args = Vec::new();
        for (i, p) in f.params.iter().enumerate() {
            self.next += 1;
            let name = format!("y{}", self.next);
            let passed = Formal { is_unsized: false, ..p.clone() };
            self.line(&format!("{};", Self::declare(&passed, &name)));
            if f.recursive && i == 0 {
                let store =
                    if p.reg { format!("mov.b32 {name}, %r8;") } else { format!("st.param.b32 [{name}], %r8;") };
                self.line(&store);
            } else if p.shared {
                self.line(&format!("mov.u32 %r3, {};", shared(index, i)));
                self.fill(&passed, &name, "%r3");
            } else {
                self.fill(&passed, &name, "%r0");
            }
            args.push(name);
        }
        let mut ret = String::new();
        if let Some(r) = &f.ret {
            self.next += 1;
            ret = format!("y{}", self.next);
            self.line(&format!("{};", Self::declare(r, &ret)));
        }
        let left = if ret.is_empty() { String::new() } else { format!("({ret}), ") };
        if indirect {
            let label = self.label();
            let (rets, params) = self.lists(index, false);
            self.line(&format!("mov.u64 %rd3, f{index};"));
            self.line(&format!("{label}: .callprototype {rets}_ ({params});"));
            self.line(&format!("call {left}%rd3, ({}), {label};", args.join(", ")));
        } else {
            self.line(&format!("call {left}f{index}, ({});", args.join(", ")));
        }
        match &f.ret {
            Some(r) => self.fold(r, &ret),
            None => self.line("add.u32 %r0, %r0, 1;"),
        }
        self.line("}");
    }

    /// Fills a variable with pieces derived from a register.
    fn fill(&mut self, f: &Formal, name: &str, from: &str) {
        for (p, (at, size)) in pieces(f).into_iter().enumerate() {
            let p = p as u32;
            self.line(&format!("add.u32 %r1, {from}, {};", p.wrapping_mul(PIECE)));
            self.line(&format!("xor.b32 %r1, %r1, {};", p << 7));
            if size == 8 {
                self.line("mad.lo.u32 %r2, %r1, 3, 1;");
                self.line("mov.b64 %rd1, {%r1, %r2};");
            }
            let register = if size == 8 { "%rd1" } else { "%r1" };
            let text = match (f.reg, size) {
                (true, _) if f.vector > 1 => format!("mov.b32 {name}.{}, %r1;", ["x", "y", "z", "w"][p as usize]),
                (true, _) => format!("mov.b{} {name}, {register};", size * 8),
                (false, 2) => {
                    self.line("cvt.u16.u32 %h1, %r1;");
                    format!("st.param.b16 [{name}+{at}], %h1;")
                }
                (false, _) => format!("st.param.b{} [{name}+{at}], {register};", size * 8),
            };
            self.line(&text);
        }
    }

    /// Folds a variable into `%r0`.
    fn fold(&mut self, f: &Formal, name: &str) {
        for (p, (at, size)) in pieces(f).into_iter().enumerate() {
            let register = if size == 8 { "%rd1" } else { "%r1" };
            let text = match (f.reg, size) {
                (true, _) if f.vector > 1 => format!("mov.b32 %r1, {name}.{};", ["x", "y", "z", "w"][p]),
                (true, _) => format!("mov.b{} {register}, {name};", size * 8),
                (false, 2) => format!("ld.param.u16 %h1, [{name}+{at}];\n    cvt.u32.u16 %r1, %h1;"),
                (false, _) => {
                    format!("ld.param.{}{} {register}, [{name}+{at}];", if size == 1 { "u" } else { "b" }, size * 8)
                }
            };
            self.line(&text);
            if size == 8 {
                self.line("mov.b64 {%r1, %r2}, %rd1;");
                self.line("xor.b32 %r1, %r1, %r2;");
            }
            self.line("mad.lo.u32 %r0, %r0, 31, %r1;");
        }
    }
}
