//! The shapes, with the arguments why outcomes are forbidden.
//!
//! They use the manual's terms. A write *precedes* a read in observation order if the read returns it and both are
//! morally strong (8.9.2). A release pattern *synchronizes* with an acquire pattern that observes it (8.9.4), which
//! puts everything before the former before everything after the latter in base causality order (8.9.5). *Causality*
//! (8.10.6): a read does not return a write that follows it, nor a write older than one that precedes it.

use super::{
    Loc::{X, Y, Z},
    Outcome,
    Step::{self, Acquire, Add, Barrier, Copy, Fence, Read, Release, Write},
};

/// A forbidden outcome.
#[derive(Debug)]
pub struct Rule {
    /// The predicate.
    pub forbidden: fn(&Outcome) -> bool,
    /// Section and argument.
    pub why: &'static str,
}

/// A litmus test.
#[derive(Debug)]
pub struct Shape {
    /// Its name in the literature.
    pub name: &'static str,
    /// Steps of each role.
    pub roles: &'static [&'static [Step]],
    /// Number of registers used.
    pub registers: usize,
    /// The rules hold only if plain reads and writes are strong.
    pub strong: bool,
    /// The forbidden outcomes.
    pub rules: &'static [Rule],
}

impl Shape {
    /// Whether some role has such a step.
    pub fn has(&self, what: impl Fn(Step) -> bool) -> bool {
        self.roles.iter().any(|steps| steps.iter().any(|s| what(*s)))
    }
}

/// All shapes.
pub static SHAPES: &[Shape] = &[
    Shape {
        name: "message passing",
        roles: &[&[Write(X, 1), Release(Y, 1)], &[Acquire(Y, 0), Read(X, 1)]],
        registers: 2,
        strong: false,
        rules: &[Rule {
            forbidden: |o| o.r[0] == 1 && o.r[1] != 1,
            why: "8.10.6: the release pattern was observed, so the write of x precedes the read of x in causality order",
        }],
    },
    Shape {
        name: "message passing through an atomic operation",
        roles: &[&[Write(X, 1), Release(Y, 1)], &[Add(Y, 1, 0)], &[Acquire(Y, 1), Read(X, 2)]],
        registers: 3,
        strong: false,
        rules: &[Rule {
            forbidden: |o| o.r[1] == 2 && o.r[2] != 1,
            why: "8.9.2: 2 was written by the atomic operation that read the release, or by the release itself; either way the \
                  write of the release precedes the acquire's read in observation order, and 8.10.6 holds",
        }],
    },
    Shape {
        name: "store buffering",
        roles: &[&[Write(X, 1), Fence, Read(Y, 0)], &[Write(Y, 1), Fence, Read(X, 1)]],
        registers: 2,
        strong: false,
        rules: &[Rule {
            forbidden: |o| o.r[0] == 0 && o.r[1] == 0,
            why: "8.9.3: one fence.sc precedes the other, so by 8.9.4 the write before it precedes the read behind the other in \
                  causality order (8.10.6)",
        }],
    },
    Shape {
        name: "load buffering with data",
        roles: &[&[Read(X, 0), Copy(Y, 0)], &[Read(Y, 1), Copy(X, 1)]],
        registers: 2,
        strong: false,
        rules: &[Rule {
            forbidden: |o| o.r[0] != 0 || o.r[1] != 0 || o.last[0] != 0 || o.last[1] != 0,
            why: "8.10.4: nobody ever wrote another number than zero",
        }],
    },
    Shape {
        name: "load buffering",
        roles: &[&[Acquire(X, 0), Release(Y, 1)], &[Acquire(Y, 1), Release(X, 1)]],
        registers: 2,
        strong: false,
        rules: &[Rule {
            forbidden: |o| o.r[0] == 1 && o.r[1] == 1,
            why: "8.10.6: if the first role observed the second one's release, the second one's read precedes the first one's write \
                  in causality order and cannot read from it",
        }],
    },
    Shape {
        name: "CoRR",
        roles: &[&[Write(X, 1)], &[Read(X, 0), Read(X, 1)]],
        registers: 2,
        strong: true,
        rules: &[Rule {
            forbidden: |o| o.r[0] == 1 && o.r[1] != 1,
            why: "8.10.5: the second read would precede the write in communication order, and the write the first read",
        }],
    },
    Shape {
        name: "CoRR of two readers",
        roles: &[&[Write(X, 1)], &[Write(X, 2)], &[Read(X, 0), Read(X, 1)], &[Read(X, 2), Read(X, 3)]],
        registers: 4,
        strong: true,
        rules: &[
            Rule {
                forbidden: |o| {
                    let (a, b) = ((o.r[0], o.r[1]), (o.r[2], o.r[3]));
                    (a, b) == ((1, 2), (2, 1)) || (a, b) == ((2, 1), (1, 2))
                },
                why: "8.9.6, 8.10.5: morally strong writes have one coherence order, which all readers see",
            },
            Rule {
                forbidden: |o| (o.r[0] != 0 && o.r[1] == 0) || (o.r[2] != 0 && o.r[3] == 0),
                why: "8.10.5: the initial write is the first of the coherence order",
            },
        ],
    },
    Shape {
        name: "CoWW",
        roles: &[&[Write(X, 1), Write(X, 2)], &[Read(X, 0), Read(X, 1)]],
        registers: 2,
        strong: true,
        rules: &[
            Rule {
                forbidden: |o| o.last[0] != 2,
                why: "8.10.1: the write of 1 precedes that of 2 in program order, so in causality and coherence order",
            },
            Rule { forbidden: |o| o.r[0] > o.r[1], why: "8.10.5: reads in program order follow the coherence order" },
        ],
    },
    Shape {
        name: "CoWR",
        roles: &[&[Write(X, 1), Read(X, 0)], &[Write(X, 2)]],
        registers: 1,
        strong: true,
        rules: &[
            Rule { forbidden: |o| o.r[0] == 0, why: "8.10.6: the own write precedes the read in causality order" },
            Rule {
                forbidden: |o| o.r[0] == 2 && o.last[0] == 1,
                why: "8.10.5: the write of 2 would precede that of 1 in coherence order, and be read behind it",
            },
        ],
    },
    Shape {
        name: "CoRW",
        roles: &[&[Read(X, 0), Write(X, 1)], &[Write(X, 2)]],
        registers: 1,
        strong: true,
        rules: &[
            Rule { forbidden: |o| o.r[0] == 1, why: "8.10.6: the read precedes the own write in causality order" },
            Rule {
                forbidden: |o| o.r[0] == 2 && o.last[0] == 2,
                why: "8.10.5: the write of 2 was read before the write of 1, so it precedes that in coherence order",
            },
        ],
    },
    Shape {
        name: "IRIW",
        roles: &[&[Write(X, 1)], &[Write(Y, 1)], &[Read(X, 0), Fence, Read(Y, 1)], &[Read(Y, 2), Fence, Read(X, 3)]],
        registers: 4,
        strong: true,
        rules: &[Rule {
            forbidden: |o| o.r[0] == 1 && o.r[1] == 0 && o.r[2] == 1 && o.r[3] == 0,
            why: "8.9.5: of the two fence.sc one precedes; the write that was read before it precedes, by observation and base \
                  causality order, the read behind the other, which must see it (8.10.6)",
        }],
    },
    Shape {
        name: "WRC",
        roles: &[&[Write(X, 1)], &[Read(X, 0), Release(Y, 1)], &[Acquire(Y, 1), Read(X, 2)]],
        registers: 3,
        strong: true,
        rules: &[Rule {
            forbidden: |o| o.r[0] == 1 && o.r[1] == 1 && o.r[2] != 1,
            why: "8.9.5: the write of x precedes its first read in observation order, and that the last read in base causality \
                  order (8.10.6)",
        }],
    },
    Shape {
        name: "ISA2",
        roles: &[&[Write(X, 1), Release(Y, 1)], &[Acquire(Y, 0), Release(Z, 1)], &[Acquire(Z, 1), Read(X, 2)]],
        registers: 3,
        strong: false,
        rules: &[Rule {
            forbidden: |o| o.r[0] == 1 && o.r[1] == 1 && o.r[2] != 1,
            why: "8.9.5: base causality order is transitive over both synchronizations (8.10.6)",
        }],
    },
    Shape {
        name: "S",
        roles: &[&[Write(X, 2), Release(Y, 1)], &[Acquire(Y, 0), Write(X, 1)]],
        registers: 1,
        strong: false,
        rules: &[Rule {
            forbidden: |o| o.r[0] == 1 && o.last[0] != 1,
            why: "8.10.1: the write of 2 precedes that of 1 in causality order, so in coherence order",
        }],
    },
    Shape {
        name: "R",
        roles: &[&[Write(X, 1), Fence, Write(Y, 1)], &[Write(Y, 2), Fence, Read(X, 0)]],
        registers: 1,
        strong: true,
        rules: &[Rule {
            forbidden: |o| o.last[1] == 2 && o.r[0] == 0,
            why: "8.9.3: if the first fence.sc precedes, x is read behind its write (8.10.6), else y ends as 1 (8.10.1)",
        }],
    },
    Shape {
        name: "2+2W",
        roles: &[&[Write(X, 1), Fence, Write(Y, 2)], &[Write(Y, 1), Fence, Write(X, 2)]],
        registers: 0,
        strong: true,
        rules: &[Rule {
            forbidden: |o| o.last[0] == 1 && o.last[1] == 1,
            why: "8.9.3, 8.10.1: the role whose fence.sc precedes writes its first location before the other one does",
        }],
    },
    Shape {
        name: "increments",
        roles: &[&[Add(X, 1, 0)], &[Add(X, 1, 1)], &[Add(X, 1, 2)], &[Add(X, 1, 3)]],
        registers: 4,
        strong: false,
        rules: &[Rule {
            forbidden: |o| {
                let seen = o.r[..4].iter().fold(0u8, |set, r| set | 1u8.checked_shl((*r).into()).unwrap_or(0));
                o.last[0] != 4 || seen != 0b1111
            },
            why: "8.10.3: morally strong atomic operations come one after another, and each reads what the one before wrote",
        }],
    },
    Shape {
        name: "a barrier",
        roles: &[&[Write(X, 1), Barrier, Read(Y, 0)], &[Write(Y, 1), Barrier, Read(X, 1)]],
        registers: 2,
        strong: false,
        rules: &[Rule {
            forbidden: |o| o.r[0] != 1 || o.r[1] != 1,
            why: "8.9.4: barriers synchronize, so what was written before is read behind (8.10.6; 9.7.13.2 for the warp's)",
        }],
    },
];
