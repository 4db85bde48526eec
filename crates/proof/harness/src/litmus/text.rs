//! The PTX of a configuration.
//!
//! `k(locations, results, start, rounds)`: in each round every lane runs instances of its own. Roles that are CTAs
//! synchronize at the start of a round, on a counter in `start`, so that they race.

use super::{APART, Config, Distance, Loc, Place, RESULTS, Step, Strength, Sync};
use std::fmt::Write;

/// Maximum number of instances of a launch with locations in shared memory.
const SHARED_INSTANCES: u32 = 384;

impl Config {
    /// Rounds of a launch, given the number for global memory.
    pub fn rounds(&self, wanted: u32) -> u32 {
        if self.is_shared() { wanted.min(SHARED_INSTANCES / self.at_once()) } else { wanted }
    }

    /// Number of instances in this many rounds.
    pub fn instances(&self, rounds: u32) -> u32 {
        rounds * self.at_once()
    }

    /// The module; its kernel is `k`.
    pub fn text(&self, rounds: u32) -> String {
        Text { config: self, out: String::new() }.module(rounds)
    }
}

struct Text<'a> {
    config: &'a Config,
    out: String,
}

macro_rules! line {
    ($text:expr, $($arg:tt)*) => {{ let _ = writeln!($text.out, "    {}", format_args!($($arg)*)); }};
}

impl Text<'_> {
    fn module(mut self, rounds: u32) -> String {
        let config = self.config;
        let instances = config.instances(rounds);
        let _ = write!(
            self.out,
            "// {config}\n.version 8.8\n.target sm_90\n.address_size 64\n\n\
             .visible .entry k(.param .u64 locations, .param .u64 results, .param .u64 start, .param .u32 rounds)\n{{\n"
        );
        let bytes = instances as usize * APART;
        if config.is_shared() {
            line!(self, ".shared .align 16 .b8 ours[{}];", 3 * bytes);
        }
        line!(self, ".reg .b32 %t, %role, %lane, %round, %rounds, %i, %n, %v, %m, %r<8>, %e<4>;");
        line!(self, ".reg .b16 %h<4>;\n    .reg .b64 %x, %y, %z, %X, %Y, %Z, %out, %o, %start, %d<4>;");
        line!(self, ".reg .b128 %q, %q1;\n    .reg .pred %p, %bad, %other;");
        line!(
            self,
            "ld.param.u64 %X, [locations];\n    ld.param.u64 %out, [results];\n    ld.param.u64 %start, [start];"
        );
        line!(self, "ld.param.u32 %rounds, [rounds];\n    mov.u32 %t, %tid.x;");
        match config.place {
            Place::Shared => line!(self, "mov.u64 %X, ours;"),
            Place::GenericShared => line!(self, "mov.u64 %X, ours;\n    cvta.shared.u64 %X, %X;"),
            Place::Global | Place::GenericGlobal => {}
        }
        line!(self, "add.u64 %Y, %X, {bytes};\n    add.u64 %Z, %Y, {bytes};");
        if config.is_shared() {
            self.clear(instances);
        }
        let roles = config.shape.roles.len() as u32;
        match config.distance {
            Distance::Ctas => line!(self, "mov.u32 %role, %ctaid.x;\n    mov.u32 %lane, %t;"),
            Distance::Warps => line!(self, "shr.u32 %role, %t, 5;\n    and.b32 %lane, %t, 31;"),
            Distance::Lanes => {
                let bits = roles.next_power_of_two().trailing_zeros();
                line!(self, "and.b32 %role, %t, {};\n    shr.u32 %lane, %t, {bits};", roles.next_power_of_two() - 1);
            }
        }
        line!(self, "mov.u32 %round, 0;");
        let _ = writeln!(self.out, "ROUND:");
        if config.distance == Distance::Ctas {
            self.gather(roles);
        }
        line!(self, "mad.lo.u32 %i, %round, {}, %lane;", config.at_once());
        line!(self, "mul.wide.u32 %o, %i, {APART};");
        ["x", "y", "z"].iter().zip(["X", "Y", "Z"]).for_each(|(at, from)| line!(self, "add.u64 %{at}, %{from}, %o;"));
        line!(self, "mul.wide.u32 %o, %i, {};\n    add.u64 %o, %o, %out;", 4 * RESULTS);
        for role in 1..roles {
            line!(self, "setp.eq.u32 %p, %role, {role};\n    @%p bra ROLE{role};");
        }
        if config.distance == Distance::Lanes && !roles.is_power_of_two() {
            line!(self, "setp.ge.u32 %p, %role, {roles};\n    @%p bra DONE;");
        }
        self.roles();
        let _ = writeln!(self.out, "DONE:");
        line!(self, "add.u32 %round, %round, 1;\n    setp.lt.u32 %p, %round, %rounds;\n    @%p bra ROUND;");
        if config.is_shared() {
            self.last(instances);
        }
        line!(self, "ret;");
        self.out.push_str("}\n");
        self.out
    }

    /// What each role does, and stores of the values that it has read.
    fn roles(&mut self) {
        for (role, steps) in self.config.shape.roles.iter().enumerate() {
            if role > 0 {
                let _ = writeln!(self.out, "ROLE{role}:");
            }
            for step in *steps {
                self.step(*step);
            }
            for step in *steps {
                if let Step::Read(_, r) | Step::Acquire(_, r) | Step::Add(_, _, r) = step {
                    line!(self, "st.global.u32 [%o+{}], %r{r};", 4 * r);
                }
            }
            line!(self, "bra DONE;");
        }
    }

    /// Zeroes all locations in shared memory.
    fn clear(&mut self, instances: u32) {
        let words = 3 * instances as usize * APART / 4;
        line!(self, "mov.u32 %i, %t;\n    mov.u64 %x, ours;\n    mul.wide.u32 %o, %t, 4;\n    add.u64 %x, %x, %o;");
        let _ = writeln!(self.out, "CLEAR:");
        line!(self, "st.shared.u32 [%x], 0;\n    add.u64 %x, %x, {};", 4 * self.config.block());
        line!(self, "add.u32 %i, %i, {};\n    setp.lt.u32 %p, %i, {words};\n    @%p bra CLEAR;", self.config.block());
        line!(self, "bar.sync 0;");
    }

    /// Waits until all CTAs have reached the round.
    fn gather(&mut self, roles: u32) {
        line!(self, "mul.wide.u32 %o, %round, 4;\n    add.u64 %o, %o, %start;\n    setp.eq.u32 %p, %t, 0;");
        line!(self, "@%p red.relaxed.gpu.global.add.u32 [%o], 1;");
        let _ = writeln!(self.out, "GATHER:");
        line!(self, "ld.relaxed.gpu.global.u32 %n, [%o];\n    setp.lt.u32 %p, %n, {roles};\n    @%p bra GATHER;");
    }

    /// Copies the final values in shared memory to the results.
    fn last(&mut self, instances: u32) {
        line!(self, "bar.sync 0;\n    mov.u32 %i, %t;\n    setp.ge.u32 %p, %i, {instances};\n    @%p bra OUT;");
        let _ = writeln!(self.out, "LAST:");
        line!(self, "mul.wide.u32 %o, %i, {};\n    add.u64 %o, %o, %out;", 4 * RESULTS);
        for (k, at) in ["X", "Y", "Z"].iter().enumerate() {
            let space = if self.config.place == Place::Shared { ".shared" } else { "" };
            line!(self, "mul.wide.u32 %x, %i, {APART};\n    add.u64 %x, %x, %{at};\n    ld{space}.u8 %v, [%x];");
            line!(self, "st.global.u32 [%o+{}], %v;", 4 * (super::REGISTERS + k));
        }
        line!(self, "add.u32 %i, %i, {};", self.config.block());
        line!(self, "setp.lt.u32 %p, %i, {instances};\n    @%p bra LAST;");
        let _ = writeln!(self.out, "OUT:");
    }

    fn step(&mut self, step: Step) {
        let scope = self.config.scope;
        let space = self.space();
        let plain = match self.config.strength {
            Strength::Weak => String::new(),
            Strength::Relaxed => format!(".relaxed.{scope}"),
            Strength::Volatile => ".volatile".into(),
            Strength::Mmio => ".mmio.relaxed.sys".into(),
        };
        let relaxed = format!(".relaxed.{scope}");
        match step {
            Step::Write(l, v) => {
                line!(self, "mov.u32 %v, {v};");
                self.write(&plain, l);
            }
            Step::Copy(l, r) => {
                line!(self, "mov.u32 %v, %r{r};");
                self.write(&plain, l);
            }
            Step::Read(l, r) => self.read(&plain, l, r),
            Step::Fence => match self.config.sync {
                Sync::Membar => self.membar(),
                _ => line!(self, "fence.sc.{scope};"),
            },
            Step::Barrier if self.config.distance == Distance::Lanes => line!(self, "bar.warp.sync -1;"),
            Step::Barrier => line!(self, "bar.sync 0;"),
            Step::Add(l, v, r) => {
                line!(self, "mov.u32 %v, {v};");
                self.spread();
                let (ty, e) = self.whole();
                line!(self, "atom{relaxed}{space}.add.u{ty} {e}, [{}], {e};", at(l));
                self.gathered(r);
            }
            Step::Release(l, v) => self.release(l, v),
            Step::Acquire(l, r) => self.acquire(l, r),
        }
    }

    fn release(&mut self, l: Loc, v: u8) {
        let (scope, space) = (self.config.scope, self.space());
        let before = match self.config.sync {
            Sync::FenceAcqRel => Some("fence.acq_rel"),
            Sync::FenceHalves => Some("fence.release"),
            Sync::FenceSc => Some("fence.sc"),
            _ => None,
        };
        if let Some(fence) = before {
            line!(self, "{fence}.{scope};");
        }
        line!(self, "mov.u32 %v, {v};");
        match self.config.sync {
            Sync::Membar => {
                self.membar();
                self.write(".volatile", l);
            }
            Sync::Access => self.write(&format!(".release.{scope}"), l),
            Sync::Atomic => self.atomic(".release", "exch", l),
            Sync::AtomicBoth => self.atomic(".acq_rel", "exch", l),
            Sync::Reduction => {
                self.spread();
                let (ty, e) = self.whole();
                line!(self, "red.release.{scope}{space}.add.u{ty} [{}], {e};", at(l));
            }
            _ => self.write(&format!(".relaxed.{scope}"), l),
        }
    }

    fn acquire(&mut self, l: Loc, r: usize) {
        let scope = self.config.scope;
        match self.config.sync {
            Sync::Membar => self.read(".volatile", l, r),
            Sync::Access | Sync::Reduction => self.read(&format!(".acquire.{scope}"), l, r),
            Sync::Atomic | Sync::AtomicBoth => {
                let order = if self.config.sync == Sync::Atomic { ".acquire" } else { ".acq_rel" };
                line!(self, "mov.u32 %v, 0;");
                let op = if self.config.form.bits == 128 { "cas" } else { "or" };
                self.atomic(order, op, l);
                self.gathered(r);
            }
            _ => self.read(&format!(".relaxed.{scope}"), l, r),
        }
        match self.config.sync {
            Sync::FenceAcqRel => line!(self, "fence.acq_rel.{scope};"),
            Sync::FenceHalves => line!(self, "fence.acquire.{scope};"),
            Sync::FenceSc => line!(self, "fence.sc.{scope};"),
            Sync::Membar => self.membar(),
            _ => {}
        }
    }

    fn space(&self) -> &'static str {
        match self.config.place {
            Place::Global => ".global",
            Place::Shared => ".shared",
            Place::GenericGlobal | Place::GenericShared => "",
        }
    }

    /// `membar` with the configured scope; there is none for clusters.
    fn membar(&mut self) {
        match self.config.scope {
            "cta" => line!(self, "membar.cta;"),
            "gpu" => line!(self, "membar.gl;"),
            "cluster" => line!(self, "fence.sc.cluster;"),
            _ => line!(self, "membar.sys;"),
        }
    }

    /// Width and register of a scalar.
    fn whole(&self) -> (u32, &'static str) {
        match self.config.form.bits {
            128 => (128, "%q"),
            64 => (64, "%d0"),
            16 => (16, "%h0"),
            bits => (bits, "%e0"),
        }
    }

    /// An atomic operation with `%v`; the old value replaces the scalar.
    fn atomic(&mut self, order: &str, op: &str, l: Loc) {
        self.spread();
        let (scope, space) = (self.config.scope, self.space());
        let (bits, e) = self.whole();
        let values = if op == "cas" { format!("{e}, {e}") } else { e.into() };
        line!(self, "atom{order}.{scope}{space}.{op}.b{bits} {e}, [{}], {values};", at(l));
    }

    /// Fills the first element with `%v` in each byte.
    fn spread(&mut self) {
        match self.config.form.bits {
            8 => line!(self, "mov.u32 %e0, %v;"),
            16 => line!(self, "mul.lo.u32 %m, %v, 0x0101;\n    cvt.u16.u32 %h0, %m;"),
            32 => line!(self, "mul.lo.u32 %e0, %v, 0x01010101;"),
            bits => {
                line!(self, "cvt.u64.u32 %d0, %v;\n    mul.lo.u64 %d0, %d0, 0x0101010101010101;");
                if bits == 128 {
                    line!(self, "mov.b128 %q, {{%d0, %d0}};");
                }
            }
        }
    }

    /// The registers of the elements.
    fn elements(&self, same: bool) -> String {
        let (form, (_, one)) = (self.config.form, self.whole());
        if form.count == 1 {
            return one.into();
        }
        let name = one.trim_end_matches('0');
        let all: Vec<String> = (0..form.count).map(|k| format!("{name}{}", if same { 0 } else { k })).collect();
        format!("{{{}}}", all.join(", "))
    }

    /// `.v2.u32`
    fn suffix(&self) -> String {
        let form = self.config.form;
        let vector = if form.count > 1 { format!(".v{}", form.count) } else { String::new() };
        format!("{vector}.{}{}", if form.bits == 128 { "b" } else { "u" }, form.bits)
    }

    fn write(&mut self, how: &str, l: Loc) {
        self.spread();
        let (space, suffix, elements) = (self.space(), self.suffix(), self.elements(true));
        line!(self, "st{how}{space}{suffix} [{}], {elements};", at(l));
    }

    fn read(&mut self, how: &str, l: Loc, r: usize) {
        let (space, suffix, elements) = (self.space(), self.suffix(), self.elements(false));
        line!(self, "ld{how}{space}{suffix} {elements}, [{}];", at(l));
        self.gathered(r);
    }

    /// Converts the elements to a register, or to the value for a torn read.
    fn gathered(&mut self, r: usize) {
        let form = self.config.form;
        let pattern = match form.bits {
            8 => {
                line!(self, "mov.u32 %r{r}, %e0;\n    setp.ne.u32 %bad, %e0, %e0;");
                "%e"
            }
            16 => {
                line!(self, "cvt.u32.u16 %m, %h0;\n    and.b32 %r{r}, %m, 255;\n    mul.lo.u32 %v, %r{r}, 0x0101;");
                line!(self, "setp.ne.u32 %bad, %v, %m;");
                "%h"
            }
            32 => {
                line!(
                    self,
                    "and.b32 %r{r}, %e0, 255;\n    mul.lo.u32 %v, %r{r}, 0x01010101;\n    setp.ne.u32 %bad, %v, %e0;"
                );
                "%e"
            }
            bits => {
                if bits == 128 {
                    line!(self, "mov.b128 {{%d0, %d1}}, %q;");
                }
                line!(self, "cvt.u32.u64 %r{r}, %d0;\n    and.b32 %r{r}, %r{r}, 255;\n    cvt.u64.u32 %d3, %r{r};");
                line!(self, "mul.lo.u64 %d3, %d3, 0x0101010101010101;\n    setp.ne.u64 %bad, %d3, %d0;");
                "%d"
            }
        };
        let (ty, count) = match form.bits {
            8 | 32 => (32, form.count),
            128 => (64, 2),
            bits => (bits, form.count),
        };
        for k in 1..count {
            line!(self, "setp.ne.u{ty} %other, {pattern}{k}, {pattern}0;\n    or.pred %bad, %bad, %other;");
        }
        line!(self, "selp.u32 %r{r}, {}, %r{r}, %bad;", super::TORN);
    }
}

/// The register with the address of a location.
fn at(l: Loc) -> &'static str {
    match l {
        Loc::X => "%x",
        Loc::Y => "%y",
        Loc::Z => "%z",
    }
}
