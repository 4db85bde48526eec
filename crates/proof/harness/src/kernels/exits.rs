//! Random kernels whose lanes leave nested constructs by more than one level, and at different times: out of several loops at once, on with
//! the next iteration of an outer loop, to the end from the arm of a switch.
//!
//! Registers are first set within a construct, to values that are the same in all lanes which come there together (constants, loads from one
//! address, loop counters), and used behind it. Each use is dominated by a definition: a register is [`Writer::set`] before every way to the
//! places where it is in `Writer::known`. A thread only reads the input and writes its own output.

use crate::random::Random;
use std::{fmt::Write, mem::take};

/// Levels of constructs.
const DEPTH: usize = 5;
/// Of the registers that are set, so many of the last ones are used.
const RECENT: usize = 6;

/// A kernel `k` with the parameters of [`super::Module`]'s, of which it uses the input and the output.
#[derive(Clone, Debug)]
pub struct Exits {
    /// The text of the module.
    pub text: String,
    /// The block.
    pub block: [u32; 3],
}

impl Exits {
    /// The kernel of a seed.
    pub fn new(seed: u64) -> Exits {
        let mut random = Random::new(seed);
        let block = random.pick(&[7, 20, 32, 33, 64]);
        let known = vec!["%c".into(), "%s".into()];
        let (loops, counters) = (Vec::new(), Vec::new());
        let (out, apart) = (String::new(), String::new());
        let mut w =
            Writer { random, labels: 0, registers: 0, predicates: 0, addresses: 0, known, counters, loops, out, apart };
        let count = 1 + w.random.below(3);
        w.statements(DEPTH, count);
        Exits { text: w.module(), block: [block, 1, 1] }
    }
}

/// The labels of a loop.
#[derive(Clone)]
struct Loop {
    /// Goes on with the next iteration.
    next: String,
    /// Leaves the loop.
    out: String,
    /// Leaves it for code that stands apart, where what the loop holds is used.
    found: String,
    /// Something goes to `found`.
    finds: bool,
}

struct Writer {
    random: Random,
    labels: usize,
    registers: usize,
    predicates: usize,
    addresses: usize,
    /// Registers that are set wherever control flow comes to this place from.
    known: Vec<String>,
    /// Registers that count iterations, which nothing else may set.
    counters: Vec<String>,
    /// The loops around this place.
    loops: Vec<Loop>,
    out: String,
    /// Code behind the end of the kernel.
    apart: String,
}

impl Writer {
    fn module(&self) -> String {
        let Writer { out, apart, .. } = self;
        let [registers, predicates, addresses] = [self.registers, self.predicates, self.addresses].map(|n| n.max(1));
        let bytes = super::WORDS * 4;
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n\
            .visible .entry k(.param .u64 in, .param .u64 out, .param .u64 sums, .param .u32 c, .param .u32 d)\n{{\n    \
            .reg .b32 %v<{registers}>, %t, %own, %all, %c, %s, %a, %b; \
            .reg .b64 %d<{addresses}>, %i, %o, %at; .reg .pred %p<{predicates}>;\n    \
            ld.param.u64 %i, [in]; ld.param.u64 %o, [out];\n    \
            mov.u32 %t, %tid.x; mad.wide.u32 %o, %t, {bytes}, %o; mad.wide.u32 %at, %t, 4, %i;\n    \
            ld.global.u32 %own, [%at]; ld.global.u32 %all, [%i+100];\n    \
            mov.u32 %c, 3; ld.global.u32 %s, [%i+48]; and.b32 %s, %s, 7;\n    \
            mov.u32 %a, 0; mov.u32 %b, 0;\n\
            {out}    bra END;\n{apart}END:\n    st.global.v2.u32 [%o], {{%a, %b}};\n    ret;\n}}\n"
        )
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "    {text}");
    }

    fn place(&mut self, label: &str) {
        let _ = writeln!(self.out, "{label}:");
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn fresh(&mut self) -> String {
        self.registers += 1;
        format!("%v{}", self.registers - 1)
    }

    /// A register that is set.
    fn known(&mut self) -> String {
        let last = self.known.len() - 1;
        self.known[last - self.random.below(RECENT.min(last + 1))].clone()
    }

    fn address(&mut self) -> String {
        self.addresses += 1;
        format!("%d{}", self.addresses - 1)
    }

    fn predicate(&mut self) -> String {
        self.predicates += 1;
        format!("%p{}", self.predicates - 1)
    }

    /// A predicate, mostly different in the lanes.
    fn test(&mut self) -> String {
        let (known, p, x) = (self.known(), self.predicate(), self.fresh());
        match self.random.below(8) {
            0..4 => {
                let (shift, mask) = (self.random.below(28), self.random.pick(&[1, 3, 7]));
                let (shifted, sum) = (self.fresh(), self.fresh());
                self.line(&format!("shr.u32 {shifted}, %own, {shift}; add.u32 {sum}, {shifted}, {known};"));
                let (op, value) = (self.random.pick(&["eq", "ne"]), self.random.below(2));
                self.line(&format!("and.b32 {x}, {sum}, {mask}; setp.{op}.u32 {p}, {x}, {value};"));
            }
            4 => {
                let op = self.random.pick(&["eq", "lt"]);
                self.line(&format!("and.b32 {x}, %own, 15; setp.{op}.u32 {p}, {x}, {known};"));
            }
            5 => {
                let value = self.random.below(4);
                self.line(&format!("and.b32 {x}, {known}, 3; setp.ne.u32 {p}, {x}, {value};"));
            }
            6 => {
                let value = self.random.below(12);
                self.line(&format!("setp.lt.u32 {p}, {known}, {value};"));
            }
            _ => {
                let mask = self.random.pick(&[1, 2, 4]);
                self.line(&format!("and.b32 {x}, %all, {mask}; setp.eq.u32 {p}, {x}, 0;"));
            }
        }
        p
    }

    /// Goes to a label if a test succeeds, or if it does not.
    fn branch(&mut self, to: &str) {
        let (p, not) = (self.test(), self.random.pick(&["", "!"]));
        self.line(&format!("@{not}{p} bra {to};"));
    }

    fn set(&mut self, register: &str) {
        let known = self.known();
        let text = match self.random.below(6) {
            0..2 => format!("mov.u32 {register}, {};", self.random.below(50)),
            2 => {
                let (at, word) = (4 * self.random.below(16), self.fresh());
                format!("ld.global.u32 {word}, [%i+{at}]; and.b32 {register}, {word}, 63;")
            }
            3 => format!("add.u32 {register}, {known}, {};", 1 + self.random.below(8)),
            4 => {
                let product = self.fresh();
                format!("mul.lo.u32 {product}, {known}, 3; and.b32 {register}, {product}, 127;")
            }
            _ => {
                let (index, word, at) = (self.fresh(), self.fresh(), self.address());
                format!(
                    "and.b32 {index}, {known}, 63; mad.wide.u32 {at}, {index}, 4, %i; \
                    ld.global.u32 {word}, [{at}]; and.b32 {register}, {word}, 63;"
                )
            }
        };
        self.line(&text);
    }

    /// Sets a new register.
    fn introduce(&mut self) {
        let register = self.fresh();
        self.set(&register);
        self.known.push(register);
    }

    fn use_one(&mut self) {
        let known = self.known();
        self.line(&format!("mad.lo.u32 %a, %a, 5, {known};"));
        if self.random.chance(30) {
            let known = self.known();
            self.line(&format!("mad.lo.u32 %b, %b, 3, {known};"));
        }
    }

    /// Leaves any number of constructs.
    fn leave(&mut self) {
        if self.loops.is_empty() || self.random.chance(5) {
            if self.random.chance(50) {
                self.line("bra END;");
            } else {
                let how = self.random.pick(&["exit", "ret"]);
                self.line(&format!("st.global.v2.u32 [%o], {{%a, %b}}; {how};"));
            }
            return;
        }
        let kind = self.random.below(6);
        let last = self.loops.len() - 1;
        let from = &mut self.loops[last - self.random.below(3.min(last + 1))];
        let to = match kind {
            0 => &from.next,
            1 => &from.out,
            _ => {
                from.finds = true;
                &from.found
            }
        };
        let text = format!("bra {to};");
        self.line(&text);
    }

    /// Statements whose registers nothing behind them uses.
    fn statements(&mut self, depth: usize, count: usize) {
        let known = self.known.len();
        for _ in 0..count {
            self.statement(depth);
        }
        self.known.truncate(known);
    }

    fn statement(&mut self, depth: usize) {
        let leaves = if self.loops.is_empty() { 52 } else { 68 };
        match self.random.below(100) {
            kind if depth == 0 || kind < 30 => match self.random.below(100) {
                0..45 => self.introduce(),
                45..60 => {
                    let known = self.known();
                    if !self.counters.contains(&known) {
                        self.set(&known);
                    }
                }
                _ => self.use_one(),
            },
            30..42 => self.choose(depth - 1),
            kind if kind < leaves => {
                let stay = self.label();
                self.branch(&stay);
                if self.random.chance(50) {
                    self.use_one();
                }
                self.leave();
                self.place(&stay);
            }
            52..84 => self.repeat(depth - 1),
            _ => self.switch(depth - 1),
        }
    }

    /// An `if` with an `else`, both of which set a register.
    fn choose(&mut self, depth: usize) {
        let (other, end, register) = (self.label(), self.label(), self.fresh());
        self.branch(&other);
        self.set(&register);
        self.known.push(register.clone());
        let count = self.random.below(3);
        self.statements(depth, count);
        if self.random.chance(15) {
            self.leave();
        } else {
            self.line(&format!("bra {end};"));
        }
        self.known.pop();
        self.place(&other);
        self.set(&register);
        self.known.push(register);
        let count = self.random.below(3);
        self.statements(depth, count);
        if self.random.chance(12) {
            self.leave();
        }
        self.place(&end);
        self.use_one();
    }

    /// A loop, and what lanes do that find something in it.
    fn repeat(&mut self, depth: usize) {
        let (header, next, out, found) = (self.label(), self.label(), self.label(), self.label());
        let (counter, bound) = (self.fresh(), 2 + self.random.below(5));
        if self.random.chance(40) {
            self.set(&counter);
        } else {
            self.line(&format!("mov.u32 {counter}, 0;"));
        }
        self.counters.push(counter.clone());
        self.known.push(counter.clone());
        self.place(&header);
        self.introduce();
        let within = self.known.clone();
        let first = self.random.chance(30);
        if first {
            let p = self.predicate();
            self.line(&format!("setp.ge.u32 {p}, {counter}, {bound}; @{p} bra {out};"));
        }
        self.loops.push(Loop { next: next.clone(), out: out.clone(), found, finds: false });
        let count = 1 + self.random.below(3);
        self.statements(depth, count);
        let left = self.loops.pop().expect("the loop is there");
        self.place(&next);
        self.line(&format!("add.u32 {counter}, {counter}, 1;"));
        if first {
            self.line(&format!("bra {header};"));
        } else {
            let p = self.predicate();
            self.line(&format!("setp.lt.u32 {p}, {counter}, {bound}; @{p} bra {header};"));
        }
        self.place(&out);
        self.use_one();
        if left.finds {
            self.find(&left.found, within);
        }
    }

    /// The code that lanes come to which leave a loop for it; they end, or go to loops around that.
    fn find(&mut self, label: &str, within: Vec<String>) {
        let here = take(&mut self.out);
        let known = std::mem::replace(&mut self.known, within);
        self.place(label);
        self.use_one();
        self.use_one();
        if self.random.chance(25) {
            self.leave();
        } else {
            let loops = take(&mut self.loops);
            self.leave();
            self.loops = loops;
        }
        self.apart.push_str(&std::mem::replace(&mut self.out, here));
        self.known = known;
    }

    /// A switch whose arms set a register and then fall through, meet, leave it past that place, or leave loops.
    fn switch(&mut self, depth: usize) {
        let count = 3 + self.random.below(3);
        let arms: Vec<String> = (0..count).map(|_| self.label()).collect();
        let (targets, meet, end, register) = (self.label(), self.label(), self.label(), self.fresh());
        let (known, from) = (self.known(), self.random.pick(&["%own", "%own", "%all"]));
        let (shift, [shifted, sum, x]) = (self.random.below(20), [(); 3].map(|()| self.fresh()));
        self.line(&format!(
            "shr.u32 {shifted}, {from}, {shift}; add.u32 {sum}, {shifted}, {known}; rem.u32 {x}, {sum}, {count};"
        ));
        let mut table = arms.clone();
        table.rotate_left(self.random.below(count));
        if self.random.chance(50) {
            table[self.random.below(count)].clone_from(&end);
        }
        self.line(&format!("{targets}: .branchtargets {}; brx.idx {x}, {targets};", table.join(", ")));
        for arm in &arms {
            self.place(arm);
            self.set(&register);
            self.known.push(register.clone());
            let count = self.random.below(3);
            self.statements(depth, count);
            self.known.pop();
            match self.random.below(10) {
                0..5 => self.line(&format!("bra {meet};")),
                5 => self.leave(),
                6..8 => self.line(&format!("bra {end};")),
                _ => {}
            }
        }
        self.place(&meet);
        self.known.push(register);
        self.use_one();
        self.use_one();
        self.known.pop();
        self.place(&end);
    }
}
