//! The PTX of random kernels.

use super::{
    COUNTERS, INPUT, LOCKS, THREADS, WORDS,
    straight::KINDS,
    tree::{Callers, Function, Module, Node},
};
use std::fmt::Write;

impl Module {
    /// The text of the module.
    pub fn text(&self) -> String {
        let mut w = Writer { movable: self.movable, ..Writer::default() };
        w.out.push_str(".version 8.0\n.target sm_80\n.address_size 64\n");
        let table: Vec<String> = (0..16u32).map(|i| i.wrapping_mul(0x9e37_79b9).to_string()).collect();
        let _ = writeln!(w.out, ".const .align 16 .b32 table[16] = {{{}}};", table.join(", "));
        let _ = writeln!(w.out, ".shared .align 16 .b8 exchanged[{}];", THREADS * 4);
        let _ = writeln!(w.out, ".shared .align 16 .b8 private[{}];", THREADS * 16);
        let _ = writeln!(w.out, ".shared .align 16 .b8 counters[{}];", COUNTERS * 4);
        let _ = writeln!(w.out, ".shared .align 16 .b8 locks[{}];", LOCKS * 4);
        for (i, f) in self.functions.iter().enumerate() {
            let needs = counted(&f.body, &w.needs);
            w.needs.push(needs);
            let _ = writeln!(w.out, "{};", signature(".func", &format!("f{i}"), true));
        }
        if !self.functions.is_empty() {
            w.out.push_str(SHARED);
        }
        for (i, f) in self.functions.iter().enumerate() {
            w.function(i, f);
        }
        w.kernel(self);
        w.out
    }
}

/// Functions that return one value to all lanes if they are given such.
const SHARED: &str = "\
.func (.param .b32 r) chosen(.param .b32 p, .param .b32 q)
{
.reg .pred %c;
.reg .b32 %p, %q;
ld.param.u32 %p, [p];
ld.param.u32 %q, [q];
setp.gt.u32 %c, %p, %q;
@%c bra greater;
mad.lo.u32 %p, %p, 3, %q;
st.param.u32 [r], %p;
ret;
greater:
sub.u32 %p, %p, %q;
st.param.u32 [r], %p;
ret;
}
.func (.reg .b32 %r) near(.reg .b32 %p)
{
mad.lo.u32 %r, %p, 5, 1;
ret;
}
";

/// The head of a function, a declaration or a prototype; the latter has no parameter names.
fn signature(head: &str, name: &str, named: bool) -> String {
    let n = |name: &'static str| if named { name } else { "_" };
    let formals = [
        format!(".param .b32 {}", n("a")),
        format!(".param .b64 {}", n("b")),
        format!(".param .b32 {}", n("m")),
        format!(".param .align 4 .b8 {}[12]", n("s")),
        format!(".param .b32 {}", n("depth")),
        format!(".param .align 8 .b8 {}[40]", n("frame")),
    ];
    format!("{head} (.param .align 8 .b8 {}[24]) {name} ({})", n("r"), formals.join(", "))
}

/// Writes a module.
#[derive(Default)]
pub(super) struct Writer {
    out: String,
    labels: usize,
    /// Per function: whether it needs the mask of active lanes.
    needs: Vec<bool>,
    /// Labels of the enclosing loops: next iteration, and exit.
    leave: Vec<(String, String)>,
    /// Label of the function's return.
    out_of: String,
    /// See [`Module::movable`].
    movable: bool,
}

impl Writer {
    pub(super) fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "    {text}");
    }

    pub(super) fn all(&mut self, lines: &[String]) {
        lines.iter().for_each(|l| self.line(l));
    }

    pub(super) fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    pub(super) fn set(&mut self, label: &str) {
        let _ = writeln!(self.out, "{label}:");
    }

    fn registers(&mut self) {
        for (name, ty, n) in KINDS {
            self.line(&format!(".reg .{ty} %{name}<{n}>;"));
        }
        self.line(
            ".reg .b32 %u<4>, %m<10>, %n<10>, %l<10>, %k<10>, %x<8>, %lin, %gid, %lane, %threads, %mine, %depth;",
        );
        self.line(".reg .b64 %y<4>, %a, %input, %own, %rows, %counters; .reg .pred %q<10>;");
        self.line("mov.u32 %lane, %laneid; mov.u32 %l0, 0;");
        if self.movable {
            return;
        }
        self.line(".local .align 16 .b8 stack[64];");
        for i in 0..4 {
            self.line(&format!("st.local.v4.u32 [stack+{}], {{{i}, %lane, 7, 0}};", 16 * i));
        }
    }

    /// Derives the initial values of the thread's registers from `%v0` and `%w0`.
    fn values(&mut self) {
        for i in 1..8 {
            self.line(&format!("mad.lo.u32 %v{i}, %v{}, 0x9e3779b1, {};", i - 1, i * 77));
        }
        for i in 1..4 {
            self.line(&format!("mad.wide.u32 %w{i}, %v{i}, %v{}, %w{};", i + 1, i - 1));
        }
        for i in 0..4 {
            self.line(&format!("cvt.u16.u32 %h{i}, %v{i};"));
            self.line(&format!("cvt.rn.f32.s32 %f{i}, %v{};", i + 2));
            self.line(&format!("and.b32 %x0, %v{i}, 2;"));
            self.line(&format!("setp.ne.u32 %p{i}, %x0, 0;"));
        }
        self.line("cvt.rn.f64.s32 %g0, %v1;");
        self.line("cvt.rn.f64.s32 %g1, %v2;");
    }

    fn kernel(&mut self, m: &Module) {
        self.out.push_str(
            ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 sums, .param .u32 c, .param .u32 d)\n{\n",
        );
        self.registers();
        self.indices();
        self.line("mov.u32 %mine, private;");
        self.line("mad.lo.u32 %mine, %lin, 16, %mine;");
        self.line("st.shared.v4.u32 [%mine], {%lin, 1, 2, 3};");
        self.clear_shared();
        self.line(&format!("and.b32 %x0, %gid, {};", INPUT - 1));
        self.line("mad.wide.u32 %a, %x0, 4, %input;");
        self.line("ld.global.u32 %v0, [%a];");
        self.line("mul.wide.u32 %w0, %gid, 77;");
        self.values();
        self.line("mov.u32 %depth, 2;");
        self.line("bar.sync 0;");
        // The existing lanes of the warp.
        self.line("and.b32 %x0, %lin, 0xffffffe0;");
        self.line("sub.u32 %x0, %x1, %x0;");
        self.line("shl.b32 %m0, 1, %x0;");
        self.line("sub.u32 %m0, %m0, 1;");
        self.nodes(&m.kernel, 0);
        self.store_values();
        self.store_counters();
        self.line("ret;");
        self.out.push_str("}\n");
    }

    /// Loads the parameters and computes the indices of the thread, and the addresses of its words and rows.
    fn indices(&mut self) {
        for text in [
            "ld.param.u64 %input, [in];",
            "ld.param.u64 %own, [out];",
            "ld.param.u64 %counters, [sums];",
            "ld.param.u32 %u0, [c];",
            "ld.param.u32 %u1, [d];",
            "mov.u32 %x0, %tid.y; mov.u32 %x1, %ntid.x; mov.u32 %x2, %tid.z; mov.u32 %x3, %ntid.y; mov.u32 %x4, %ntid.z;",
            "mad.lo.u32 %x0, %x2, %x3, %x0;",
            "mov.u32 %lin, %tid.x;",
            "mad.lo.u32 %lin, %x0, %x1, %lin;",
            "mul.lo.u32 %x3, %x3, %x4;",
            "mul.lo.u32 %x1, %x1, %x3;",
            "mov.u32 %x2, %ctaid.y; mov.u32 %x3, %nctaid.x; mov.u32 %x4, %ctaid.z; mov.u32 %x5, %nctaid.y; mov.u32 %x6, %nctaid.z;",
            "mad.lo.u32 %x2, %x4, %x5, %x2;",
            "mov.u32 %u2, %ctaid.x;",
            "mad.lo.u32 %u2, %x2, %x3, %u2;",
            "mul.lo.u32 %x5, %x5, %x6;",
            "mul.lo.u32 %x3, %x3, %x5;",
            "mul.lo.u32 %threads, %x1, %x3;",
            "mad.lo.u32 %gid, %u2, %x1, %lin;",
            "xor.b32 %u3, %u0, %u2;",
        ] {
            self.line(text);
        }
        // The rows follow the threads' own words.
        self.line(&format!("mad.wide.u32 %rows, %threads, {}, %own;", WORDS * 4));
        self.line(&format!("mad.wide.u32 %own, %gid, {}, %own;", WORDS * 4));
    }

    /// Sets the shared arrays to zero, by all threads of the CTA, whose number `%x1` is.
    fn clear_shared(&mut self) {
        for (name, words) in [("exchanged", THREADS), ("counters", COUNTERS), ("locks", LOCKS)] {
            let (top, end) = (self.label(), self.label());
            self.line("mov.u32 %x0, %lin;");
            self.set(&top);
            self.line(&format!("setp.ge.u32 %q0, %x0, {words};"));
            self.line(&format!("@%q0 bra {end};"));
            self.line(&format!("mov.u64 %a, {name};"));
            self.line("mad.wide.u32 %a, %x0, 4, %a;");
            self.line("st.shared.u32 [%a], 0;");
            self.line("add.u32 %x0, %x0, %x1;");
            self.line(&format!("bra {top};"));
            self.set(&end);
        }
    }

    /// Stores the registers into the words of the thread.
    fn store_values(&mut self) {
        for i in 0..8 {
            self.line(&format!("st.global.u32 [%own+{}], %v{i};", 128 + 4 * i));
        }
        for i in 0..4 {
            self.line(&format!("st.global.u64 [%own+{}], %w{i};", 160 + 8 * i));
            self.line(&format!("st.global.u16 [%own+{}], %h{i};", 192 + 2 * i));
            self.line(&format!("st.global.f32 [%own+{}], %f{i};", 200 + 4 * i));
            self.line(&format!("selp.u32 %x0, 1, 0, %p{i};"));
            self.line(&format!("st.global.u8 [%own+{}], %x0;", 216 + i));
            self.line(&format!("st.global.u32 [%own+{}], %u{i};", 236 + 4 * i));
        }
        self.line("ld.shared.v4.u32 {%x0, %x1, %x2, %x3}, [%mine];");
        self.line("xor.b32 %x0, %x0, %x1;");
        self.line("mad.lo.u32 %x0, %x2, 31, %x0;");
        self.line("mad.lo.u32 %x0, %x3, 37, %x0;");
        self.line("st.global.u32 [%own+252], %x0;");
        self.line("st.global.f64 [%own+224], %g0;");
    }

    /// One remaining thread writes out the shared counters of its CTA.
    fn store_counters(&mut self) {
        let (top, end) = (self.label(), self.label());
        self.line("bar.sync 0;");
        self.line("setp.ne.u32 %q0, %lin, 0;");
        self.line(&format!("@%q0 bra {end};"));
        self.line("mov.u32 %x0, 0;");
        self.set(&top);
        self.line("mov.u64 %a, counters;");
        self.line("mad.wide.u32 %a, %x0, 4, %a;");
        self.line("ld.shared.u32 %x1, [%a];");
        self.line("mad.lo.u32 %x2, %x2, 31, %x1;");
        self.line("add.u32 %x0, %x0, 1;");
        self.line(&format!("setp.lt.u32 %q0, %x0, {COUNTERS};"));
        self.line(&format!("@%q0 bra {top};"));
        self.line("ld.shared.v4.u32 {%x0, %x3, %x1, %x4}, [locks];");
        self.line("xor.b32 %x2, %x2, %x3;");
        self.line("mad.lo.u32 %x2, %x2, 31, %x4;");
        self.line("st.global.u32 [%own+124], %x2;");
        self.set(&end);
    }

    fn function(&mut self, index: usize, f: &Function) {
        let _ = writeln!(self.out, "{}\n{{", signature(".func", &format!("f{index}"), true));
        self.registers();
        for text in [
            "ld.param.u32 %v0, [a];",
            "ld.param.u64 %w0, [b];",
            "ld.param.u32 %m0, [m];",
            "ld.param.u32 %u0, [s];",
            "ld.param.u32 %u1, [s+4];",
            "ld.param.u32 %u2, [s+8];",
            "ld.param.u32 %depth, [depth];",
            "ld.param.u64 %input, [frame];",
            "ld.param.u64 %own, [frame+8];",
            "ld.param.u64 %rows, [frame+16];",
            "ld.param.u64 %counters, [frame+24];",
            "ld.param.u32 %lin, [frame+32];",
            "ld.param.u32 %gid, [frame+36];",
            "mov.u32 %u3, %u2;",
            "mov.u32 %x1, %nctaid.x; mov.u32 %x2, %nctaid.y; mov.u32 %x3, %nctaid.z;",
            "mul.lo.u32 %threads, %x1, %x2;",
            "mul.lo.u32 %threads, %threads, %x3;",
            "mov.u32 %x1, %ntid.x; mov.u32 %x2, %ntid.y; mov.u32 %x3, %ntid.z;",
            "mul.lo.u32 %x1, %x1, %x2;",
            "mul.lo.u32 %x1, %x1, %x3;",
            "mul.lo.u32 %threads, %threads, %x1;",
            "mov.u32 %mine, private;",
            "mad.lo.u32 %mine, %lin, 16, %mine;",
        ] {
            self.line(text);
        }
        self.values();
        if f.recursive {
            let over = self.label();
            self.line("setp.ne.u32 %q0, %depth, 0;");
            if self.needs[index] {
                self.line("vote.sync.ballot.b32 %m1, %q0, %m0;");
            }
            self.line(&format!("@!%q0 bra {over};"));
            self.line("sub.u32 %depth, %depth, 1;");
            self.call(index, None, None, 1);
            self.set(&over);
        }
        self.out_of = self.label();
        self.nodes(&f.body, 0);
        let out_of = self.out_of.clone();
        self.set(&out_of);
        self.line("xor.b32 %v0, %v0, %v3;");
        self.line("st.param.u32 [r], %v0;");
        self.line("st.param.u32 [r+4], %v1;");
        self.line("st.param.u64 [r+8], %w1;");
        self.line("st.param.f64 [r+16], %g0;");
        self.line("ret;");
        self.out.push_str("}\n");
    }

    pub(super) fn nodes(&mut self, list: &[Node], depth: usize) {
        list.iter().for_each(|n| self.node(n, depth));
    }

    /// Emits a node; `%m` of the depth names the active lanes, where these are known.
    fn node(&mut self, node: &Node, depth: usize) {
        match node {
            Node::Straight(lines) => self.all(lines),
            Node::If { test, then, other } => self.branch(test, then, other, depth),
            Node::Loop { bound, tail, body } => self.repeat(bound, *tail, body, depth),
            Node::Leave { test, next, out } => {
                let outer = self.leave.len().saturating_sub(1 + out);
                if let Some((again, behind)) = self.leave.get(outer).cloned() {
                    self.all(test);
                    self.line(&format!("@%q9 bra {};", if *next { again } else { behind }));
                }
            }
            Node::Graph(graph) => {
                let counted = graph.counted(|n| counted(n, &self.needs));
                self.graph(graph, counted, depth);
            }
            Node::Switch { select, cases } => self.switch(select, cases, depth),
            Node::Tangle { blocks } => self.tangle(blocks, depth),
            Node::Exit { test } => {
                self.all(test);
                self.line(&format!("vote.sync.ballot.b32 %x0, %q9, %m{depth};"));
                self.line("not.b32 %x0, %x0;");
                self.line(&format!("and.b32 %m{depth}, %m{depth}, %x0;"));
                self.line("@%q9 exit;");
            }
            Node::Return { test } => {
                self.all(test);
                self.line(&format!("@%q9 bra {};", self.out_of));
            }
            Node::Call { callee, other, when } => self.call(*callee, other.as_ref(), when.as_deref(), depth),
        }
    }

    fn branch(&mut self, test: &[String], then: &[Node], other: &[Node], depth: usize) {
        let inner = depth + 1;
        let (otherwise, end) = (self.label(), self.label());
        self.all(test);
        if counted(then, &self.needs) || counted(other, &self.needs) {
            self.line(&format!("vote.sync.ballot.b32 %m{inner}, %q{depth}, %m{depth};"));
        }
        self.line(&format!("@!%q{depth} bra {otherwise};"));
        self.nodes(then, inner);
        self.line(&format!("bra {end};"));
        self.set(&otherwise);
        if counted(other, &self.needs) {
            self.line(&format!("not.b32 %m{inner}, %m{inner};"));
            self.line(&format!("and.b32 %m{inner}, %m{inner}, %m{depth};"));
        }
        self.nodes(other, inner);
        self.set(&end);
    }

    fn switch(&mut self, select: &[String], cases: &[(Vec<Node>, bool)], depth: usize) {
        self.all(select);
        let labels: Vec<String> = cases.iter().map(|_| self.label()).collect();
        let (table, end) = (self.label(), self.label());
        self.line(&format!("{table}: .branchtargets {};", labels.join(", ")));
        self.line(&format!("brx.idx %n{depth}, {table};"));
        for ((body, through), label) in cases.iter().zip(&labels) {
            self.set(label);
            self.nodes(body, depth + 1);
            if !through {
                self.line(&format!("bra {end};"));
            }
        }
        self.set(&end);
    }

    fn tangle(&mut self, blocks: &[(Vec<Node>, Vec<String>, usize)], depth: usize) {
        let labels: Vec<String> = blocks.iter().map(|_| self.label()).collect();
        let end = self.label();
        self.line(&format!("mov.u32 %l{depth}, 0;"));
        for (i, (body, test, to)) in blocks.iter().enumerate() {
            self.set(&labels[i]);
            self.line(&format!("add.u32 %l{depth}, %l{depth}, 1;"));
            self.line(&format!("setp.gt.u32 %q{depth}, %l{depth}, 9;"));
            self.line(&format!("@%q{depth} bra {end};"));
            self.nodes(body, depth + 1);
            self.all(test);
            self.line(&format!("@%q{depth} bra {};", labels[*to]));
        }
        self.set(&end);
    }

    fn repeat(&mut self, bound: &[String], tail: bool, body: &[Node], depth: usize) {
        let inner = depth + 1;
        let (top, next, end) = (self.label(), self.label(), self.label());
        self.all(bound);
        self.line(&format!("mov.u32 %l{depth}, 0;"));
        if counted(body, &self.needs) {
            self.line(&format!("mov.u32 %m{inner}, %m{depth};"));
        }
        self.leave.push((next.clone(), end.clone()));
        self.set(&top);
        if !tail {
            self.line(&format!("setp.lt.u32 %q{depth}, %l{depth}, %n{depth};"));
            if counted(body, &self.needs) {
                self.line(&format!("vote.sync.ballot.b32 %m{inner}, %q{depth}, %m{inner};"));
            }
            self.line(&format!("@!%q{depth} bra {end};"));
        }
        self.nodes(body, inner);
        self.set(&next);
        self.line(&format!("add.u32 %l{depth}, %l{depth}, 1;"));
        if tail {
            self.line(&format!("setp.lt.u32 %q{depth}, %l{depth}, %n{depth};"));
            self.line(&format!("@%q{depth} bra {top};"));
        } else {
            self.line(&format!("bra {top};"));
        }
        self.set(&end);
        self.leave.pop();
    }

    /// Loads the address of one of two functions, as `choose` decides for each lane; returns the register, and the depth whose mask
    /// names the lanes that call the same one.
    fn choose_callee(&mut self, callee: usize, second: usize, choose: &[String], depth: usize) -> (String, usize) {
        self.all(choose);
        self.line(&format!("mov.u64 %y1, f{callee};"));
        self.line(&format!("mov.u64 %y2, f{second};"));
        self.line("selp.b64 %y1, %y1, %y2, %q9;");
        if !self.needs[callee] && !self.needs[second] {
            return ("%y1".to_owned(), depth);
        }
        // Lanes that call the other function participate in other votes.
        self.line(&format!("vote.sync.ballot.b32 %m{}, %q9, %m{depth};", depth + 1));
        self.line(&format!("@!%q9 xor.b32 %m{0}, %m{0}, %m{depth};", depth + 1));
        ("%y1".to_owned(), depth + 1)
    }

    fn call(&mut self, callee: usize, other: Option<&(usize, Vec<String>)>, when: Option<&[String]>, depth: usize) {
        if callee >= self.needs.len() {
            return;
        }
        let other = other.filter(|(second, _)| *second < self.needs.len());
        let (target, mut members) = match other {
            Some((second, choose)) => self.choose_callee(callee, *second, choose, depth),
            None => (format!("f{callee}"), depth),
        };
        let guard = if when.is_some() { "@%q9 " } else { "" };
        if let Some(when) = when {
            self.all(when);
            if self.needs[callee] {
                self.line(&format!("vote.sync.ballot.b32 %m{}, %q9, %m{depth};", depth + 1));
                members = depth + 1;
            }
        }
        self.line("{");
        for text in [
            ".param .b32 to_a; .param .b64 to_b; .param .b32 to_m; .param .align 4 .b8 to_s[12]; .param .b32 to_d;",
            ".param .align 8 .b8 to_frame[40]; .param .align 8 .b8 to_r[24];",
            "st.param.u32 [to_a], %v2;",
            "st.param.u64 [to_b], %w2;",
            // Uniform values stay uniform.
            match Callers::of(callee) {
                Callers::Ctas => "st.param.u32 [to_s], %u0; st.param.u32 [to_s+4], %u1; st.param.u32 [to_s+8], %u2;",
                _ => "st.param.u32 [to_s], %u0; st.param.u32 [to_s+4], %v1; st.param.u32 [to_s+8], %l0;",
            },
            "st.param.u32 [to_d], %depth;",
            "st.param.u64 [to_frame], %input; st.param.u64 [to_frame+8], %own; st.param.u64 [to_frame+16], %rows;",
            "st.param.u64 [to_frame+24], %counters; st.param.u32 [to_frame+32], %lin; st.param.u32 [to_frame+36], %gid;",
        ] {
            self.line(text);
        }
        self.line(&format!("st.param.u32 [to_m], %m{members};"));
        if other.is_some() {
            let label = self.label();
            let prototype = signature(".callprototype", "_", false);
            self.line(&format!("{label}: {prototype};"));
            self.line(&format!("call (to_r), {target}, (to_a, to_b, to_m, to_s, to_d, to_frame), {label};"));
        } else {
            self.line(&format!("{guard}call (to_r), {target}, (to_a, to_b, to_m, to_s, to_d, to_frame);"));
        }
        // What a function returns that was not called is undefined.
        for text in ["ld.param.u32 %x0, [to_r];", "ld.param.u32 %x1, [to_r+4];", "ld.param.u64 %y0, [to_r+8];"] {
            self.line(text);
        }
        self.line("ld.param.b64 %y1, [to_r+16];");
        for text in ["xor.b32 %v1, %v1, %x0;", "mov.b32 %v4, %x1;", "mov.b64 %w3, %y0;", "mov.b64 %g1, %y1;"] {
            self.line(&format!("{guard}{text}"));
        }
        self.call_small_functions();
        self.line("}");
    }

    /// Calls `chosen` by all lanes and `near` by some.
    fn call_small_functions(&mut self) {
        for text in [
            ".param .b32 to_p; .param .b32 to_q; .param .b32 to_o;",
            "st.param.u32 [to_p], %u0; st.param.u32 [to_q], %u1;",
            "call (to_o), chosen, (to_p, to_q);",
            "ld.param.u32 %x0, [to_o];",
            "xor.b32 %v1, %v1, %x0;",
            // Lanes that do not call keep what they have.
            "mov.u32 %x0, %u0;",
            "setp.lt.u32 %q9, %lane, 9;",
            "@%q9 call (%x0), near, (%u1);",
            "add.u32 %v1, %v1, %x0;",
        ] {
            self.line(text);
        }
    }
}

/// Whether nodes need the mask of active lanes.
fn counted(list: &[Node], needs: &[bool]) -> bool {
    list.iter().any(|n| match n {
        Node::Straight(lines) => lines.iter().any(|l| l.contains(".sync") && l.contains("%m")),
        Node::If { then, other, .. } => counted(then, needs) || counted(other, needs),
        Node::Loop { body, .. } => counted(body, needs),
        Node::Graph(graph) => graph.counted(|n| counted(n, needs)),
        Node::Call { callee, other, .. } => {
            let of = |f: usize| needs.get(f).copied().unwrap_or(false);
            of(*callee) || other.as_ref().is_some_and(|(f, _)| of(*f))
        }
        Node::Exit { .. } => true,
        Node::Switch { .. } | Node::Tangle { .. } | Node::Leave { .. } | Node::Return { .. } => false,
    })
}
