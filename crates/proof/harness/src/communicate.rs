//! Random kernels whose CTAs communicate, with results that are the same in every execution order.
//!
//! A kernel is a sequence of [`Phase`]s, each a common algorithm: tickets, decoupled look-back, a reduction by the last
//! block, locks, chains of flags, queues. CTAs wait only for CTAs that took an earlier ticket, or that arrive without
//! waiting themselves. How results are published (manual, section 8.8) and in which width is chosen per phase.

use crate::random::Random;
use std::fmt::Write;

/// Size of a phase's memory in 32-bit words.
pub const REGION: usize = 1 << 14;

/// How a CTA publishes data for another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// `st.release`, `ld.acquire`
    Access,
    /// `fence.acq_rel` with relaxed accesses.
    Fence,
    /// `membar` with volatile accesses.
    Volatile,
    /// `atom.exch.release`, `atom.or.acquire`
    Atomic,
}

/// The algorithm of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Each CTA takes a ticket.
    Tickets,
    /// An inclusive sum over all threads by decoupled look-back; state and value are one vector of this many bytes.
    LookBack(u32),
    /// The last CTA to arrive adds up what all have written.
    LastBlock,
    /// Sums protected by a lock: by one thread per CTA, or by all.
    Lock(bool),
    /// Each CTA continues from what the CTA with the previous ticket has written.
    Chain,
    /// Each CTA puts this many items into a queue and takes as many out.
    Queue(u32),
}

/// A phase of a kernel.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Phase {
    pub kind: Kind,
    pub order: Order,
    pub scope: &'static str,
    /// State space of the accesses: `.global`, or empty.
    pub space: &'static str,
}

/// A kernel.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Module {
    pub phases: Vec<Phase>,
    pub ctas: u32,
    pub threads: u32,
}

impl Module {
    /// The module of a seed.
    pub fn new(seed: u64) -> Module {
        let mut r = Random::new(seed);
        let kinds = [
            Kind::Tickets,
            Kind::LookBack(r.pick(&[8, 16, 32])),
            Kind::LastBlock,
            Kind::Lock(r.chance(50)),
            Kind::Chain,
            Kind::Queue(1 + r.below(5) as u32),
        ];
        let phase = |r: &mut Random| Phase {
            kind: r.pick(&kinds),
            order: r.pick(&[Order::Access, Order::Fence, Order::Volatile, Order::Atomic]),
            scope: r.pick(&["gpu", "sys"]),
            space: r.pick(&[".global", ""]),
        };
        let phases = (0..1 + r.below(4)).map(|_| phase(&mut r)).collect();
        Module { phases, ctas: 2 + r.below(30) as u32, threads: r.pick(&[1, 31, 32, 33, 64, 128]) }
    }

    /// Modules with one phase less.
    pub fn smaller(&self) -> Vec<Module> {
        let without = |i: usize| {
            let mut m = self.clone();
            m.phases.remove(i);
            m
        };
        if self.phases.len() < 2 { Vec::new() } else { (0..self.phases.len()).map(without).collect() }
    }

    /// `k(memory)` as PTX; the memory has [`REGION`] zeroed words per phase.
    pub fn text(&self) -> String {
        let mut w = Writer { out: String::new() };
        w.out.push_str(
            ".version 8.0\n.target sm_80\n.address_size 64\n\n.visible .entry k(.param .u64 memory)\n{\n    \
             .shared .align 16 .b32 ours[160];\n    .reg .b32 %t, %n, %c, %g, %k, %v, %i, %j, %s, %x, %y, %sum, %total, %before, %e<4>;\n    \
             .reg .b64 %m, %a, %b, %q, %d<4>;\n    .reg .pred %p, %first, %done;\n    \
             mov.u32 %t, %tid.x;\n    mov.u32 %n, %ntid.x;\n    mov.u32 %c, %ctaid.x;\n    mov.u32 %g, %nctaid.x;\n    \
             setp.eq.u32 %first, %t, 0;\n",
        );
        for (i, phase) in self.phases.iter().enumerate() {
            let _ = writeln!(
                w.out,
                "    // {phase:?}\n    ld.param.u64 %m, [memory];\n    add.u64 %m, %m, {};",
                i * REGION * 4
            );
            w.phase(i, phase);
            w.line("bar.sync 0;");
        }
        w.out.push_str("    ret;\n}\n");
        w.out
    }

    /// What is wrong with the results of a launch, if anything.
    pub fn wrong(&self, memory: &[u32]) -> Option<String> {
        let regions = memory.chunks_exact(REGION).zip(&self.phases).enumerate();
        regions.into_iter().find_map(|(i, (words, phase))| {
            self.wrong_phase(phase.kind, words).map(|why| format!("phase {i}, {phase:?}: {why}"))
        })
    }

    fn wrong_phase(&self, kind: Kind, words: &[u32]) -> Option<String> {
        let (g, n) = (self.ctas, self.threads);
        let is = |what: &str, at: usize, want: u32| {
            (words[at] != want).then(|| format!("{what} at word {at} is {}, not {want}", words[at]))
        };
        match kind {
            Kind::Tickets => {
                let mut order: Vec<u32> = words[4..4 + g as usize].to_vec();
                order.sort_unstable();
                let good = order.iter().copied().eq(1..=g);
                is("the counter", 0, g).or((!good).then(|| format!("the CTAs by tickets are {order:?}")))
            }
            Kind::LookBack(_) => {
                let mut sum = 0;
                (0..g * n).find_map(|i| {
                    sum += value(i / n, i % n);
                    is("the sum", OUT + i as usize, sum)
                })
            }
            Kind::LastBlock => {
                let want = (0..g).flat_map(|c| (0..n).map(move |t| value(c, t))).sum();
                is("the total", 1, want)
            }
            Kind::Lock(all) => {
                let each = if all { n } else { 1 };
                let want = (1..=g).sum::<u32>() * each;
                is("the sum", 1, want).or_else(|| is("the count", 2, g * each)).or_else(|| is("the lock", 0, 0))
            }
            Kind::Chain => {
                let mut row: Vec<u32> = (0..n).collect();
                (0..g).find_map(|k| {
                    row.iter_mut().for_each(|x| *x = x.wrapping_mul(3).wrapping_add(k + 1));
                    (0..n as usize).find_map(|t| is("the row", OUT + k as usize * n as usize + t, row[t]))
                })
            }
            Kind::Queue(items) => {
                let want = (0..g).flat_map(|c| (0..items).map(move |i| value(c, i))).sum();
                is("the sum of items", 2, want)
                    .or_else(|| is("the end", 0, g * items))
                    .or_else(|| is("the front", 1, g * items))
            }
        }
    }
}

/// The contribution of a thread of a CTA, or of a ticket.
fn value(c: u32, t: u32) -> u32 {
    (c * 7 + t * 3) & 15
}

/// Words before a phase's results, for its flags: 32 bytes per CTA.
const OUT: usize = 64 + 8 * 32;

struct Writer {
    out: String,
}

impl Writer {
    fn line(&mut self, text: impl AsRef<str>) {
        for line in text.as_ref().split(';').filter(|l| !l.trim().is_empty()) {
            let _ = writeln!(self.out, "    {};", line.trim());
        }
    }

    fn label(&mut self, name: &str, i: usize) {
        let _ = writeln!(self.out, "{name}{i}:");
    }

    /// Thread 0 takes a ticket from the phase's first word; all threads get it in `%k`.
    fn ticket(&mut self, p: &Phase) {
        let (scope, space) = (p.scope, p.space);
        self.line(format!("@%first atom.relaxed.{scope}{space}.add.u32 %k, [%m], 1"));
        self.share();
    }

    /// Broadcasts `%k` of thread 0 to all threads.
    fn share(&mut self) {
        self.line("bar.sync 0; @%first st.shared.u32 [ours], %k; bar.sync 0; ld.shared.u32 %k, [ours]; bar.sync 0");
    }

    /// Writes a word with release semantics; after a barrier, this covers the whole CTA.
    fn release(&mut self, p: &Phase, at: &str, word: &str) {
        let (scope, space) = (p.scope, p.space);
        match p.order {
            Order::Access => self.line(format!("st.release.{scope}{space}.u32 [{at}], {word}")),
            Order::Fence => {
                self.line(format!("fence.acq_rel.{scope}; st.relaxed.{scope}{space}.u32 [{at}], {word}"));
            }
            Order::Volatile => self.line(format!("membar.gl; st.volatile{space}.u32 [{at}], {word}")),
            Order::Atomic => self.line(format!("atom.release.{scope}{space}.exch.b32 %y, [{at}], {word}")),
        }
    }

    /// Polls a word until it is nonzero.
    fn acquire(&mut self, p: &Phase, at: &str, i: usize) {
        let (scope, space) = (p.scope, p.space);
        self.label("POLL", i);
        match p.order {
            Order::Access => self.line(format!("ld.acquire.{scope}{space}.u32 %x, [{at}]")),
            Order::Fence => self.line(format!("ld.relaxed.{scope}{space}.u32 %x, [{at}]")),
            Order::Volatile => self.line(format!("ld.volatile{space}.u32 %x, [{at}]")),
            Order::Atomic => self.line(format!("atom.acquire.{scope}{space}.or.b32 %x, [{at}], 0")),
        }
        self.line(format!("setp.eq.u32 %p, %x, 0; @%p bra POLL{i}"));
        match p.order {
            Order::Fence => self.line(format!("fence.acq_rel.{scope}")),
            Order::Volatile => self.line("membar.gl"),
            Order::Access | Order::Atomic => {}
        }
    }

    /// Computes [`value`] of two registers into `%v`.
    fn value(&mut self, c: &str, t: &str) {
        self.line(format!("mul.lo.u32 %v, {c}, 7; mad.lo.u32 %v, {t}, 3, %v; and.b32 %v, %v, 15"));
    }

    /// Loads the address of a word of the region into `%{to}`.
    fn word(&mut self, to: &str, index: &str, scale: u32, offset: usize) {
        self.line(format!(
            "mul.wide.u32 %{to}, {index}, {}; add.u64 %{to}, %{to}, %m; add.u64 %{to}, %{to}, {}",
            4 * scale,
            4 * offset
        ));
    }

    fn phase(&mut self, i: usize, p: &Phase) {
        match p.kind {
            Kind::Tickets => {
                self.ticket(p);
                self.word("a", "%k", 1, 4);
                self.line("add.u32 %x, %c, 1");
                self.line(format!("@%first st{}.u32 [%a], %x", p.space));
            }
            Kind::LookBack(bytes) => self.look_back(i, p, bytes),
            Kind::LastBlock => self.last_block(i, p),
            Kind::Lock(all) => self.lock(i, p, all),
            Kind::Chain => self.chain(i, p),
            Kind::Queue(items) => self.queue(i, p, items),
        }
    }

    /// The CTA that comes last adds up what all have stored.
    fn last_block(&mut self, i: usize, p: &Phase) {
        let (scope, space) = (p.scope, p.space);
        self.value("%c", "%t");
        self.line("mov.u32 %x, 0; @%first st.shared.u32 [ours+8], %x; bar.sync 0; red.shared.add.u32 [ours+8], %v; bar.sync 0");
        self.word("a", "%c", 1, OUT);
        self.line(format!("@!%first bra COUNTED{i}; ld.shared.u32 %x, [ours+8]; st{space}.u32 [%a], %x"));
        match p.order {
            Order::Volatile => self.line(format!("membar.gl; atom{space}.add.u32 %k, [%m], 1; membar.gl")),
            Order::Fence => self.line(format!(
                "fence.acq_rel.{scope}; atom.relaxed.{scope}{space}.inc.u32 %k, [%m], 0xffffffff; fence.acq_rel.{scope}"
            )),
            Order::Access | Order::Atomic => {
                self.line(format!("atom.acq_rel.{scope}{space}.add.u32 %k, [%m], 1"));
            }
        }
        self.label("COUNTED", i);
        self.share();
        self.line(format!("sub.u32 %x, %g, 1; setp.ne.u32 %p, %k, %x; @%p bra NOTLAST{i}; mov.u32 %j, %t"));
        self.label("PART", i);
        self.word("a", "%j", 1, OUT);
        self.line(format!("setp.ge.u32 %p, %j, %g; @%p bra NOTLAST{i}; ld{space}.u32 %x, [%a]"));
        self.line(format!("red.relaxed.{scope}{space}.add.u32 [%m+4], %x; add.u32 %j, %j, %n; bra PART{i}"));
        self.label("NOTLAST", i);
    }

    /// Changes to several words under a lock, by all threads or the first of each CTA.
    fn lock(&mut self, i: usize, p: &Phase, all: bool) {
        let (scope, space) = (p.scope, p.space);
        if !all {
            self.line(format!("@!%first bra UNLOCKED{i}"));
        }
        self.label("LOCK", i);
        let take = match p.order {
            Order::Fence => format!("atom.relaxed.{scope}{space}.cas.b32 %x, [%m], 0, 1"),
            Order::Volatile => format!("atom{space}.exch.b32 %x, [%m], 1"),
            Order::Access | Order::Atomic => format!("atom.acquire.{scope}{space}.cas.b32 %x, [%m], 0, 1"),
        };
        self.line(format!("{take}; setp.ne.u32 %p, %x, 0; @%p bra LOCK{i}"));
        match p.order {
            Order::Fence => self.line(format!("fence.acq_rel.{scope}")),
            Order::Volatile => self.line("membar.gl"),
            Order::Access | Order::Atomic => {}
        }
        self.line(format!("ld{space}.v2.u32 {{%e0, %e1}}, [%m+8]; ld{space}.u32 %s, [%m+4]; add.u32 %e0, %e0, 1"));
        self.line("add.u32 %s, %s, %c; add.u32 %s, %s, 1");
        self.line(format!("st{space}.u32 [%m+4], %s; st{space}.u32 [%m+8], %e0; mov.u32 %x, 0"));
        self.release(p, "%m", "%x");
        self.label("UNLOCKED", i);
    }

    /// Each CTA continues with what the one before it has stored.
    fn chain(&mut self, i: usize, p: &Phase) {
        let space = p.space;
        self.ticket(p);
        self.line(format!("mov.u32 %v, %t; setp.eq.u32 %p, %k, 0; @%p bra FIRST{i}; sub.u32 %j, %k, 1"));
        self.word("a", "%j", 8, 64);
        self.line(format!("@!%first bra SEEN{i}"));
        self.acquire(p, "%a", i);
        self.label("SEEN", i);
        self.line("bar.sync 0; mad.lo.u32 %x, %j, %n, %t");
        self.word("a", "%x", 1, OUT);
        self.line(format!("ld{space}.u32 %v, [%a]"));
        self.label("FIRST", i);
        self.line("mul.lo.u32 %v, %v, 3; add.u32 %v, %v, %k; add.u32 %v, %v, 1; mad.lo.u32 %x, %k, %n, %t");
        self.word("a", "%x", 1, OUT);
        self.line(format!("st{space}.u32 [%a], %v; bar.sync 0"));
        self.word("a", "%k", 8, 64);
        self.line(format!("mov.u32 %x, 1; @!%first bra PASSED{i}"));
        self.release(p, "%a", "%x");
        self.label("PASSED", i);
    }

    /// Each CTA puts items into a queue and takes as many.
    fn queue(&mut self, i: usize, p: &Phase, items: u32) {
        let (scope, space) = (p.scope, p.space);
        self.line(format!("@!%first bra EMPTY{i}; mov.u32 %i, 0"));
        self.label("PUT", i);
        self.line(format!("atom.relaxed.{scope}{space}.add.u32 %k, [%m], 1"));
        self.value("%c", "%i");
        self.word("a", "%k", 2, OUT);
        self.line(format!("st{space}.u32 [%a], %v; add.u64 %b, %a, 4; mov.u32 %x, 1"));
        self.release(p, "%b", "%x");
        self.line(format!(
            "add.u32 %i, %i, 1; setp.lt.u32 %p, %i, {items}; @%p bra PUT{i}; mov.u32 %i, 0; mov.u32 %s, 0"
        ));
        self.label("TAKE", i);
        self.line(format!("atom.relaxed.{scope}{space}.add.u32 %k, [%m+4], 1"));
        self.word("a", "%k", 2, OUT);
        self.line("add.u64 %b, %a, 4");
        self.acquire(p, "%b", i);
        self.line(format!("ld{space}.u32 %x, [%a]; add.u32 %s, %s, %x"));
        self.line(format!("add.u32 %i, %i, 1; setp.lt.u32 %p, %i, {items}; @%p bra TAKE{i}"));
        self.line(format!("red.relaxed.{scope}{space}.add.u32 [%m+8], %s"));
        self.label("EMPTY", i);
    }

    /// State and value in one vector: state 1 for the sum of the tile, 2 for the inclusive prefix.
    fn look_back(&mut self, i: usize, p: &Phase, bytes: u32) {
        let (scope, space) = (p.scope, p.space);
        let how = if p.order == Order::Volatile { ".volatile".into() } else { format!(".relaxed.{scope}") };
        self.ticket(p);
        self.value("%k", "%t");
        self.line(
            "mul.wide.u32 %a, %t, 4; mov.u64 %b, ours; add.u64 %a, %a, %b; st.shared.u32 [%a+16], %v; bar.sync 0",
        );
        // The inclusive sum within the tile, and the sum of the tile.
        self.line("mov.u32 %sum, 0; mov.u32 %total, 0; mov.u32 %j, 0");
        self.label("SUM", i);
        self.line(
            "ld.shared.u32 %x, [%b+16]; add.u32 %total, %total, %x; setp.le.u32 %p, %j, %t; @%p mov.u32 %sum, %total",
        );
        self.line(format!("add.u64 %b, %b, 4; add.u32 %j, %j, 1; setp.lt.u32 %p, %j, %n; @%p bra SUM{i}"));
        self.line(format!("mov.u32 %before, 0; @!%first bra KNOWN{i}"));
        self.word("a", "%k", 8, 64);
        self.line("setp.eq.u32 %p, %k, 0; selp.u32 %s, 2, 1, %p");
        self.publish(&how, space, bytes, "%s", "%total");
        self.line(format!("@%p bra KNOWN{i}; mov.u64 %b, %a"));
        self.label("BACK", i);
        self.line("sub.u64 %b, %b, 32");
        self.label("POLL", i);
        match bytes {
            8 => self.line(format!("ld{how}{space}.v2.u32 {{%s, %x}}, [%b]")),
            16 => {
                self.line(format!("ld{how}{space}.v2.u64 {{%d0, %d1}}, [%b]; cvt.u32.u64 %s, %d0; cvt.u32.u64 %x, %d1"))
            }
            _ => self.line(format!("ld{how}{space}.v4.u32 {{%e0, %s, %e1, %x}}, [%b]")),
        }
        self.line(format!("setp.eq.u32 %p, %s, 0; @%p bra POLL{i}; add.u32 %before, %before, %x; setp.eq.u32 %p, %s, 1; @%p bra BACK{i}"));
        self.line("add.u32 %x, %before, %total; mov.u32 %s, 2");
        self.publish(&how, space, bytes, "%s", "%x");
        self.label("KNOWN", i);
        self.line("bar.sync 0; @%first st.shared.u32 [ours], %before; bar.sync 0; ld.shared.u32 %before, [ours]; add.u32 %sum, %sum, %before");
        self.line("mad.lo.u32 %x, %k, %n, %t");
        self.word("a", "%x", 1, OUT);
        self.line(format!("st{space}.u32 [%a], %sum"));
    }

    fn publish(&mut self, how: &str, space: &str, bytes: u32, state: &str, value: &str) {
        match bytes {
            8 => self.line(format!("st{how}{space}.v2.u32 [%a], {{{state}, {value}}}")),
            16 => self.line(format!(
                "cvt.u64.u32 %d0, {state}; cvt.u64.u32 %d1, {value}; st{how}{space}.v2.u64 [%a], {{%d0, %d1}}"
            )),
            _ => self.line(format!("st{how}{space}.v4.u32 [%a], {{{value}, {state}, {state}, {value}}}")),
        }
    }
}
