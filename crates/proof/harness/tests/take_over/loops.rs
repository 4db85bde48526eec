//! Random loops over registers of every type, for kernels with what `kernel` of the test declares.

use margay_harness::random::Random;
use std::fmt::Write;

/// The body of a kernel, with a loop that the seed determines.
pub fn body(seed: u64) -> String {
    let mut loops = Loops { random: Random::new(seed), text: String::new(), labels: 0 };
    loops.write();
    loops.text
}

struct Loops {
    random: Random,
    text: String,
    labels: u32,
}

impl Loops {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "    {line}");
    }

    fn word(&mut self) -> String {
        format!("%r{}", self.random.below(6))
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    /// One operation on the registers.
    fn operation(&mut self) {
        let (a, b, c) = (self.word(), self.word(), self.word());
        let (d, e) = (self.random.below(4), self.random.below(4));
        let (p, q) = (1 + self.random.below(3), 1 + self.random.below(3));
        let line = match self.random.below(16) {
            0 => format!("add.u32 {a}, {b}, {c};"),
            1 => format!("mad.lo.u32 {a}, {b}, 1664525, {c};"),
            2 => format!("xor.b32 {a}, {b}, %i;"),
            3 => format!("add.u32 {a}, {a}, 4;"),
            4 => format!("add.u64 %d{d}, %d{d}, 8;"),
            5 => format!("mad.wide.u32 %d{d}, {a}, 3, %d{e};"),
            6 => format!("sub.u64 %d{d}, %d{d}, %d{e};"),
            7 => "fma.rn.f32 %f0, %f0, 0f3F7FF000, 0f3DCCCCCD;".into(),
            8 => "fma.rn.f64 %w0, %w0, 0d3FEFFFFF00000000, 0d3FB999999999999A;".into(),
            9 => "add.u16 %h0, %h0, 3;".into(),
            10 => format!("setp.lt.u32 %p{p}, {a}, {b};"),
            11 => format!("xor.pred %p{p}, %p{p}, %p{q};"),
            12 => format!("selp.u32 {a}, {b}, {c}, %p{p};"),
            13 => format!("@%p{p} add.u32 {a}, {a}, {b};"),
            14 => format!("add.u32 {a}, %tx, %i;"),
            _ => format!("cvt.u32.u64 {a}, %d{d};"),
        };
        self.line(&line);
    }

    /// Statements of a loop's body. All threads execute `together` ones.
    fn body(&mut self, depth: u32, together: bool) {
        for _ in 0..1 + self.random.below(4) {
            self.operation();
            match self.random.below(10) {
                0 if depth < 2 => {
                    let (p, end) = (1 + self.random.below(3), self.label());
                    self.line(&format!("@%p{p} bra {end};"));
                    self.body(depth + 1, false);
                    let _ = writeln!(self.text, "{end}:");
                }
                1 if depth < 2 => {
                    // As many times as three bits of a register or of the counter say.
                    let (from, top) = (self.random.pick(&["%r1", "%i", "%tx"]), self.label());
                    let count = format!("%r{}", 6 + 2 * depth);
                    let limit = format!("%r{}", 7 + 2 * depth);
                    self.line(&format!("and.b32 {limit}, {from}, 7;"));
                    self.line(&format!("mov.u32 {count}, 0;"));
                    let _ = writeln!(self.text, "{top}:");
                    self.body(depth + 1, false);
                    self.line(&format!("add.u32 {count}, {count}, 1;"));
                    self.line(&format!("setp.lt.u32 %p{}, {count}, {limit};", 4 + depth));
                    self.line(&format!("@%p{} bra {top};", 4 + depth));
                }
                2 if together => {
                    let a = self.word();
                    self.line(&format!("st.shared.u32 [%mine], {a};"));
                    self.line("bar.sync 0;");
                    let a = self.word();
                    self.line(&format!("ld.shared.u32 {a}, [%next];"));
                    self.line("bar.sync 0;");
                }
                3 => {
                    let a = self.word();
                    self.line(&format!("st.global.u32 [%own], {a};"));
                }
                _ => {}
            }
        }
    }

    /// The whole body.
    fn write(&mut self) {
        let l = self;
        let together = l.random.below(2) == 0;
        l.line(".reg .b32 %mine, %next, %bound;");
        l.line(".reg .b64 %rel;");
        l.line("sub.u64 %rel, %own, %out;");
        l.line("mad.lo.u32 %r6, %ty, %z, %tx;");
        l.line("shl.b32 %mine, %r6, 2;");
        l.line("add.u32 %r7, %r6, 1;");
        l.line("setp.ge.u32 %p0, %r7, %r14;");
        l.line("selp.u32 %r7, 0, %r7, %p0;");
        l.line("shl.b32 %next, %r7, 2;");
        l.line("mov.u32 %r8, tile;");
        l.line("add.u32 %mine, %mine, %r8;");
        l.line("add.u32 %next, %next, %r8;");
        for i in 0..6 {
            let start = l.random.pick(&["%t", "%tx", "%ty", "%n", "%r15", "17", "0"]);
            l.line(&format!("mov.u32 %r{i}, {start};"));
        }
        for i in 0..4 {
            let start = l.random.pick(&["%rel", "5", "0"]);
            l.line(&format!("mov.u64 %d{i}, {start};"));
        }
        for i in 1..4 {
            let a = l.word();
            l.line(&format!("setp.gt.u32 %p{i}, {a}, 9;"));
        }
        l.line("mov.f32 %f0, 0f3F800000;");
        l.line("mov.f64 %w0, 0d3FF0000000000000;");
        l.line("mov.b16 %h0, 7;");
        // Loops that all threads leave together may hold barriers.
        match together || l.random.below(2) == 0 {
            true => l.line("mov.u32 %bound, %n;"),
            false => l.line("mad.lo.u32 %bound, %t, 5, %n;"),
        }
        let end = l.label();
        if !together && l.random.below(2) == 0 {
            l.line("and.b32 %r9, %t, 5;");
            l.line("setp.eq.u32 %p0, %r9, 4;");
            l.line(&format!("@%p0 bra {end};"));
        }
        l.line("mov.u32 %i, 0;");
        let _ = writeln!(l.text, "top:");
        l.body(0, together);
        if !together && l.random.below(3) == 0 {
            l.line("setp.eq.u32 %p0, %r0, 77;");
            l.line(&format!("@%p0 bra {end};"));
        }
        let test = l.random.pick(&["lt", "ne"]);
        l.line("add.u32 %i, %i, 1;");
        l.line(&format!("setp.{test}.u32 %p0, %i, %bound;"));
        l.line("@%p0 bra top;");
        l.line("mov.b32 %r6, %f0;");
        l.line("cvt.rn.f32.f64 %f1, %w0;");
        l.line("mov.b32 %r7, %f1;");
        l.line("cvt.u32.u16 %r8, %h0;");
        for i in 0..9 {
            l.line(&format!("xor.b32 %r0, %r0, %r{i};"));
            l.line("mul.lo.u32 %r0, %r0, 1664525;");
        }
        for i in 1..4 {
            l.line(&format!("@%p{i} add.u32 %r0, %r0, {};", 1 << i));
        }
        l.line("st.global.u32 [%own], %r0;");
        let _ = writeln!(l.text, "{end}:");
        l.line("ret;");
    }
}
