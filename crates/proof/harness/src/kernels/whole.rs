//! Random kernels whose branches part whole warps only: no lane ever waits for another one, so engines need no masks.
//!
//! A thread adds to a value of its own, exchanges it with threads of other warps between two barriers, and stores it now and then. Warps
//! leave out parts, and end before barriers that others reach.

use crate::random::Random;
use std::fmt::Write;

const WARP: usize = 32;

/// A kernel `k` with the parameters of [`super::Module`]'s, of which it uses the first scalar and the output.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The text of the module.
    pub text: String,
    /// The grid.
    pub grid: [u32; 3],
    /// The block, in whole warps.
    pub block: [u32; 3],
}

impl Whole {
    /// The kernel of a seed.
    pub fn new(seed: u64) -> Whole {
        let mut random = Random::new(seed);
        let warps = 1 + random.below(4);
        let mut writer = Writer { random, warps, labels: 0, out: String::new() };
        writer.kernel();
        Whole { text: writer.out, grid: [2, 1, 1], block: [(warps * WARP) as u32, 1, 1] }
    }
}

struct Writer {
    random: Random,
    warps: usize,
    labels: usize,
    out: String,
}

impl Writer {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "    {text}");
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn kernel(&mut self) {
        self.out.push_str(".version 8.0\n.target sm_80\n.address_size 64\n");
        let _ = writeln!(self.out, ".shared .align 4 .b8 s[{}];", 4 * self.warps * WARP);
        self.out.push_str(
            ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 sums, .param .u32 c, .param .u32 d)\n{\n",
        );
        for text in [
            ".reg .b32 %t, %v, %x, %y, %l, %n; .reg .b64 %o; .reg .pred %p, %q;",
            "ld.param.u64 %o, [out]; ld.param.u32 %n, [c]; and.b32 %n, %n, 3;",
            "mov.u32 %t, %tid.x; mov.u32 %x, %ctaid.x; mov.u32 %y, %ntid.x; mad.lo.u32 %x, %x, %y, %t;",
            &format!("mad.wide.u32 %o, %x, {}, %o;", super::WORDS * 4),
            "mov.u32 %v, %x; mov.u32 %l, 0;",
        ] {
            self.line(text);
        }
        let count = 2 + self.random.below(6);
        self.statements(count, false);
        self.line("st.global.u32 [%o+4], %v;");
        self.line("ret;");
        self.out.push_str("}\n");
    }

    fn statements(&mut self, count: usize, in_loop: bool) {
        for _ in 0..count {
            match self.random.below(10) {
                0..3 => self.exit(in_loop),
                3 => self.line("bar.sync 0;"),
                4..6 => self.exchange(),
                6 => self.part(),
                7 if !in_loop => self.repeat(),
                8 => self.line("st.global.u32 [%o], %v;"),
                _ => self.add(),
            }
        }
    }

    /// Sets `%p` for the warps from one on, in a loop for fewer with each turn.
    fn later_warps(&mut self, in_loop: bool) {
        let from = (WARP * self.random.below(self.warps + 2)) as u32;
        if in_loop && self.random.chance(50) {
            self.line("mad.lo.u32 %x, %l, 32, %t;");
            self.line(&format!("setp.ge.u32 %p, %x, {};", from + 2 * WARP as u32));
        } else {
            self.line(&format!("setp.ge.u32 %p, %t, {from};"));
        }
    }

    fn exit(&mut self, in_loop: bool) {
        self.later_warps(in_loop);
        let how = self.random.pick(&["exit", "ret"]);
        self.line(&format!("@%p {how};"));
    }

    /// The value of a thread of another warp, or of one that has ended.
    fn exchange(&mut self) {
        let distance = 4 * WARP * self.random.below(self.warps);
        let size = 4 * self.warps * WARP;
        for text in [
            "shl.b32 %x, %t, 2; mov.u32 %y, s; add.u32 %y, %y, %x;",
            "st.shared.u32 [%y], %v;",
            "bar.sync 0;",
            &format!("add.u32 %x, %x, {distance}; rem.u32 %x, %x, {size}; mov.u32 %y, s; add.u32 %y, %y, %x;"),
            "ld.shared.u32 %y, [%y];",
            "mad.lo.u32 %v, %v, 5, %y;",
            "bar.sync 0;",
        ] {
            self.line(text);
        }
    }

    fn part(&mut self) {
        let (other, end) = (self.label(), self.label());
        self.later_warps(false);
        self.line(&format!("@%p bra {other};"));
        self.add();
        self.line(&format!("bra {end};"));
        let _ = writeln!(self.out, "{other}:");
        if self.random.chance(50) {
            self.line("st.global.u32 [%o+8], %v;");
        }
        let _ = writeln!(self.out, "{end}:");
    }

    fn repeat(&mut self) {
        let top = self.label();
        self.line("mov.u32 %l, 0;");
        let _ = writeln!(self.out, "{top}:");
        let count = 1 + self.random.below(4);
        self.statements(count, true);
        self.line("add.u32 %l, %l, 1; setp.le.u32 %q, %l, %n;");
        self.line(&format!("@%q bra {top};"));
    }

    fn add(&mut self) {
        let factor = 3 + 2 * self.random.below(9);
        self.line(&format!("mad.lo.u32 %v, %v, {factor}, %t;"));
    }
}
