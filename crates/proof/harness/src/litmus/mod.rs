//! Litmus tests: small races whose outcomes the memory consistency model limits (manual, chapter 8).
//!
//! A [`Shape`] says what a few *roles* do to a few locations, and which outcomes are forbidden, each with the section
//! that forbids it. A [`Config`] says how the shape is instantiated: size and strength of accesses, kind of
//! synchronization, scope and state space, and whether the roles are lanes, warps or CTAs. [`Config::text`] generates a
//! kernel that runs many instances, each with locations of its own.
//!
//! Values are small numbers repeated in each byte of a location, so that a torn access is detected: it reads as
//! [`TORN`].

mod shapes;
mod text;

pub use shapes::{Rule, SHAPES, Shape};

use crate::random::Random;

/// The value of a register after a torn read.
pub const TORN: u8 = 255;
/// Maximum number of registers of a shape.
pub const REGISTERS: usize = 5;
/// Size of an instance's results in 32-bit words: registers, then final values of the locations.
pub const RESULTS: usize = REGISTERS + LOCATIONS;
/// Number of locations of an instance.
pub const LOCATIONS: usize = 3;
/// Distance between locations of two instances in bytes.
pub const APART: usize = 32;

/// A location of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Loc {
    X,
    Y,
    Z,
}

/// A step of a role; each register of an instance is written by one role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Writes a constant.
    Write(Loc, u8),
    /// Writes the value of a register.
    Copy(Loc, usize),
    /// Reads into a register.
    Read(Loc, usize),
    /// A release pattern that ends in a write of a constant (section 8.8).
    Release(Loc, u8),
    /// An acquire pattern that starts with a read into a register (section 8.8).
    Acquire(Loc, usize),
    /// `fence.sc`, or the equivalent `membar`.
    Fence,
    /// Adds a constant by a relaxed atomic; the register receives the old value.
    Add(Loc, u8, usize),
    /// The barrier of the CTA, or of the warp if the roles are lanes.
    Barrier,
}

/// The outcome of an instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Outcome {
    /// Registers.
    pub r: [u8; REGISTERS],
    /// Final values of the locations.
    pub last: [u8; LOCATIONS],
}

/// The type of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    /// Bits per element.
    pub bits: u32,
    /// Number of elements.
    pub count: u32,
}

/// All access types of up to 16 bytes.
pub const FORMS: &[Form] = &[
    Form { bits: 8, count: 1 },
    Form { bits: 16, count: 1 },
    Form { bits: 32, count: 1 },
    Form { bits: 64, count: 1 },
    Form { bits: 128, count: 1 },
    Form { bits: 8, count: 2 },
    Form { bits: 8, count: 4 },
    Form { bits: 16, count: 2 },
    Form { bits: 16, count: 4 },
    Form { bits: 32, count: 2 },
    Form { bits: 32, count: 4 },
    Form { bits: 64, count: 2 },
];

impl Form {
    /// Whether `atom.exch` and `atom.cas` support it.
    fn has_exchange(self) -> bool {
        self.count == 1 && self.bits >= 32
    }

    /// Whether `atom.add` supports it.
    fn has_add(self) -> bool {
        self.count == 1 && matches!(self.bits, 32 | 64)
    }
}

/// The strength of plain reads and writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Strength {
    Weak,
    Relaxed,
    Volatile,
    Mmio,
}

/// How release and acquire patterns are formed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sync {
    /// `st.release`, `ld.acquire`
    Access,
    /// `fence.acq_rel` with relaxed accesses.
    FenceAcqRel,
    /// `fence.release`, `fence.acquire`
    FenceHalves,
    /// `fence.sc`
    FenceSc,
    /// `membar` with volatile accesses.
    Membar,
    /// `atom.exch.release`, `atom.or.acquire` or `atom.cas.acquire`
    Atomic,
    /// The same with `.acq_rel`.
    AtomicBoth,
    /// `red.add.release`, `ld.acquire`
    Reduction,
}

/// All of them.
pub const SYNCS: &[Sync] = &[
    Sync::Access,
    Sync::FenceAcqRel,
    Sync::FenceHalves,
    Sync::FenceSc,
    Sync::Membar,
    Sync::Atomic,
    Sync::AtomicBoth,
    Sync::Reduction,
];

/// The state space of the locations, and how they are addressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Place {
    Global,
    GenericGlobal,
    Shared,
    GenericShared,
}

/// What the roles are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Distance {
    Lanes,
    Warps,
    Ctas,
}

/// An instance of a shape.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Config {
    pub shape: &'static Shape,
    pub form: Form,
    pub strength: Strength,
    pub sync: Sync,
    pub scope: &'static str,
    pub place: Place,
    pub distance: Distance,
}

impl std::fmt::Display for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Config { shape, form, strength, sync, scope, place, distance } = self;
        write!(
            f,
            "{} of {} x {} bits, {strength:?}, {sync:?}, .{scope}, {place:?}, {distance:?}",
            shape.name, form.count, form.bits
        )
    }
}

impl Config {
    /// The configuration of a seed; cycles through shapes and distances.
    pub fn random(seed: u64) -> Config {
        let shape = &SHAPES[seed as usize % SHAPES.len()];
        let mut random = Random::new(seed);
        loop {
            let far = [Distance::Ctas, Distance::Lanes, Distance::Ctas, Distance::Warps];
            let distance = far[(seed as usize / SHAPES.len() + seed as usize) % far.len()];
            let config = Config {
                shape,
                form: random.pick(FORMS),
                strength: random.pick(&[
                    Strength::Weak,
                    Strength::Relaxed,
                    Strength::Relaxed,
                    Strength::Volatile,
                    Strength::Mmio,
                ]),
                sync: random.pick(SYNCS),
                scope: random.pick(&["cta", "cluster", "gpu", "sys"]),
                place: random.pick(&[Place::Global, Place::GenericGlobal, Place::Shared, Place::GenericShared]),
                distance: if shape.has(|s| s == Step::Barrier) && distance == Distance::Ctas {
                    Distance::Warps
                } else {
                    distance
                },
            };
            if config.is_allowed() {
                return config;
            }
        }
    }

    /// Whether PTX has such accesses, and the scope includes all roles, so that strong accesses are morally strong
    /// (section 8.7).
    fn is_allowed(&self) -> bool {
        let form = self.form;
        let shared = matches!(self.place, Place::Shared | Place::GenericShared);
        let apart = self.distance == Distance::Ctas;
        let synchronizes = self.shape.has(|s| matches!(s, Step::Release(..) | Step::Acquire(..)));
        let adds = self.shape.has(|s| matches!(s, Step::Add(..)));
        let atomics = match self.sync {
            _ if !synchronizes => true,
            Sync::Atomic | Sync::AtomicBoth => form.has_exchange(),
            Sync::Reduction => form.has_add(),
            _ => true,
        };
        let mmio =
            self.strength != Strength::Mmio || form.count == 1 && form.bits <= 64 && !shared && self.scope == "sys";
        atomics
            && mmio
            && !(apart && (shared || matches!(self.scope, "cta" | "cluster")))
            && (!adds || form.has_add())
            && !(self.shape.strong && self.strength == Strength::Weak)
    }

    /// Why an outcome is forbidden; `None` if it is allowed.
    pub fn forbids(&self, outcome: &Outcome) -> Option<&'static str> {
        // Weak accesses race here, so they may be torn.
        let whole = self.strength != Strength::Weak;
        if whole && outcome.r[..self.shape.registers].contains(&TORN) {
            return Some(
                "8.10.3, single-copy atomicity (of a vector: what GPUs do with the up to 16 bytes of a thread)",
            );
        }
        self.shape.rules.iter().find(|rule| (rule.forbidden)(outcome)).map(|rule| rule.why)
    }

    /// Threads of a CTA.
    pub fn block(&self) -> u32 {
        if self.distance == Distance::Warps { 32 * self.shape.roles.len() as u32 } else { 32 }
    }

    /// Number of CTAs with roles of one instance.
    pub fn ctas(&self) -> u32 {
        if self.distance == Distance::Ctas { self.shape.roles.len() as u32 } else { 1 }
    }

    /// Instances that a warp runs at the same time.
    pub fn at_once(&self) -> u32 {
        if self.distance == Distance::Lanes { 32 / self.shape.roles.len().next_power_of_two() as u32 } else { 32 }
    }

    /// Whether the final values of locations are in the results, rather than in memory.
    pub fn is_shared(&self) -> bool {
        matches!(self.place, Place::Shared | Place::GenericShared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the steps sequentially in an order.
    fn run(shape: &Shape, order: &[usize]) -> Outcome {
        let mut o = Outcome { r: [0; REGISTERS], last: [0; LOCATIONS] };
        let mut next = vec![0; shape.roles.len()];
        for role in order {
            let step = shape.roles[*role][next[*role]];
            next[*role] += 1;
            match step {
                Step::Write(l, v) | Step::Release(l, v) => o.last[l as usize] = v,
                Step::Copy(l, r) => o.last[l as usize] = o.r[r],
                Step::Read(l, r) | Step::Acquire(l, r) => o.r[r] = o.last[l as usize],
                Step::Add(l, v, r) => (o.r[r], o.last[l as usize]) = (o.last[l as usize], o.last[l as usize] + v),
                Step::Fence | Step::Barrier => {}
            }
        }
        o
    }

    /// All interleavings of the steps; barriers are respected.
    fn orders(shape: &Shape, next: &mut Vec<usize>, order: &mut Vec<usize>, f: &mut impl FnMut(&[usize])) {
        if next.iter().zip(shape.roles).all(|(n, steps)| *n == steps.len()) {
            return f(order);
        }
        for role in 0..next.len() {
            let Some(_) = shape.roles[role].get(next[role]) else { continue };
            let after = next[role] > 0 && shape.roles[role][next[role] - 1] == Step::Barrier;
            let all = (0..next.len()).all(|r| shape.roles[r][..next[r]].contains(&Step::Barrier));
            if after && !all {
                continue;
            }
            next[role] += 1;
            order.push(role);
            orders(shape, next, order, f);
            order.pop();
            next[role] -= 1;
        }
    }

    #[test]
    fn what_one_step_after_the_other_can_do_is_never_forbidden() {
        for shape in SHAPES {
            let mut count = 0;
            orders(shape, &mut vec![0; shape.roles.len()], &mut Vec::new(), &mut |order| {
                let o = run(shape, order);
                count += 1;
                for rule in shape.rules {
                    assert!(!(rule.forbidden)(&o), "{}: {order:?} gives {o:?}: {}", shape.name, rule.why);
                }
            });
            assert!(count > 0);
        }
    }

    #[test]
    fn every_rule_forbids_something() {
        for shape in SHAPES {
            for rule in shape.rules {
                let all = (0..4u32.pow((shape.registers + 2) as u32)).map(|n| {
                    let digit = |i: usize| (n >> (2 * i) & 3) as u8;
                    let mut o =
                        Outcome { r: [0; REGISTERS], last: [digit(shape.registers), digit(shape.registers + 1), 0] };
                    (0..shape.registers).for_each(|i| o.r[i] = digit(i));
                    o
                });
                assert!(all.into_iter().any(|o| (rule.forbidden)(&o)), "{}: {}", shape.name, rule.why);
            }
        }
    }

    #[test]
    fn registers_have_one_writer() {
        for shape in SHAPES {
            let mut written = vec![0; shape.registers];
            for step in shape.roles.iter().copied().flatten() {
                if let Step::Read(_, r) | Step::Acquire(_, r) | Step::Add(_, _, r) = step {
                    written[*r] += 1;
                }
            }
            assert!(written.iter().all(|n| *n == 1), "{}", shape.name);
        }
    }
}
