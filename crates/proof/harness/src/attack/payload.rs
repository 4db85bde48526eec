//! A payload: the hostile text of an attack, the threads that execute it, and what is needed to judge the outcome.

use super::Shape;
use crate::random::Random;

/// The threads that execute the payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Who {
    /// The thread with this index in the grid.
    One {
        /// Index in the grid.
        gid: u32,
    },
    /// Some lanes of one warp.
    Lanes {
        /// Index of the CTA.
        cta: u32,
        /// Index of the warp in its CTA.
        warp: u32,
        /// Its lanes.
        mask: u32,
    },
    /// All threads of a CTA.
    Cta {
        /// Index of the CTA.
        cta: u32,
    },
    /// Every thread.
    All,
}

impl Who {
    /// Draws the threads: mostly a single one, so that it is clear who must be blamed.
    pub fn draw(r: &mut Random, ctas: u32, threads: u32) -> Who {
        let cta = r.below(ctas as usize) as u32;
        match r.below(20) {
            0 => Who::All,
            1 => Who::Cta { cta },
            2..6 => {
                let warp = r.below(threads.div_ceil(32) as usize) as u32;
                let exist = u32::MAX >> (32 - (threads - warp * 32).min(32));
                let mask = match r.below(3) {
                    0 => u32::MAX,
                    1 => r.bits() as u32,
                    _ => 1 << r.below(32) | 1 << r.below(32),
                };
                Who::Lanes { cta, warp, mask: if mask & exist == 0 { exist } else { mask & exist } }
            }
            _ => Who::One { gid: r.below((ctas * threads) as usize) as u32 },
        }
    }

    /// Code that sets `%executes` in these threads.
    pub fn test(&self) -> String {
        match self {
            Who::One { gid } => format!("setp.eq.u32 %executes, %gid, {gid};"),
            Who::Lanes { cta, warp, mask } => format!(
                "div.u32 %r9, %gid, %nthreads; setp.eq.u32 %executes, %r9, {cta};\n    shr.u32 %r9, %lin, 5; \
                 setp.eq.and.u32 %executes, %r9, {warp}, %executes;\n    shl.b32 %r9, 1, %lane; and.b32 %r9, %r9, {mask}; \
                 setp.ne.and.u32 %executes, %r9, 0, %executes;"
            ),
            Who::Cta { cta } => format!("div.u32 %r9, %gid, %nthreads; setp.eq.u32 %executes, %r9, {cta};"),
            Who::All => "setp.eq.u32 %executes, 0, 0;".into(),
        }
    }

    /// Whether a thread executes the payload, by the index of its CTA and its own index within.
    pub fn executes(&self, cta: u32, lin: u32, threads: u32) -> bool {
        match self {
            Who::One { gid } => cta * threads + lin == *gid,
            Who::Lanes { cta: c, warp, mask } => cta == *c && lin / 32 == *warp && mask >> (lin % 32) & 1 == 1,
            Who::Cta { cta: c } => cta == *c,
            Who::All => true,
        }
    }

    /// Whether all of these threads are lanes of one warp.
    pub fn in_a_warp(&self) -> bool {
        matches!(self, Who::One { .. } | Who::Lanes { .. })
    }
}

/// Which threads may be blamed for a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// One of the threads that execute the payload; if they are lanes of one warp, both engines must blame the same
    /// one.
    Executors,
    /// Any thread that is affected by the payload, at any place.
    Anybody,
}

/// The text of a payload.
#[derive(Clone, Debug)]
pub struct Payload {
    /// Declarations at module scope.
    pub module: Vec<String>,
    /// Code that all threads execute first, in the payload's scope.
    pub setup: Vec<String>,
    /// Code of the threads that execute the payload.
    pub body: Vec<String>,
    /// Code that all threads execute afterwards, still in its scope.
    pub rest: Vec<String>,
    /// Parameters of the kernel in the lean form.
    pub params: Vec<String>,
    /// Directives of the kernel in the lean form.
    pub entry: &'static str,
    /// The required launch shape.
    pub shape: Shape,
    /// Grid and block must not be changed.
    pub fixed: bool,
    /// The required threads; `None` for any.
    pub who: Option<Who>,
    /// Who may be blamed for the fault.
    pub blame: Blame,
    /// More threads arrive at a barrier than it waits for. Which of them it counts depends on the order, so it may complete for some and
    /// leave others waiting, or be in use while it is used in another way (manual, section 9.7.13.1).
    pub crowded: bool,
    /// Threads initialize and use one barrier object without waiting for each other, so what warps find there depends on their order.
    pub unordered: bool,
    /// Results are undefined or depend on addresses, so they are not compared.
    pub quiet: bool,
    /// Even whether it faults is undefined: any outcome but a crash is correct.
    pub loose: bool,
    /// `.version` and `.target`, for payloads that need newer ones.
    pub target: (&'static str, &'static str),
    labels: usize,
}

impl Payload {
    /// An empty payload.
    pub fn new(shape: Shape) -> Payload {
        Payload {
            module: Vec::new(),
            setup: Vec::new(),
            body: Vec::new(),
            rest: Vec::new(),
            params: Vec::new(),
            entry: "",
            shape,
            fixed: false,
            who: None,
            blame: Blame::Executors,
            crowded: false,
            unordered: false,
            quiet: false,
            loose: false,
            target: ("8.6", "sm_90a"),
            labels: 0,
        }
    }

    /// A unique name for a label or variable.
    pub fn name(&mut self, stem: &str) -> String {
        self.labels += 1;
        format!("{stem}_{}", self.labels)
    }

    /// Adds a declaration at module scope.
    pub fn module(&mut self, text: impl Into<String>) {
        self.module.push(text.into());
    }

    /// Adds code for all threads.
    pub fn all(&mut self, text: impl Into<String>) {
        self.setup.push(text.into());
    }

    /// Adds code for the threads that execute the payload.
    pub fn body(&mut self, text: impl Into<String>) {
        self.body.push(text.into());
    }

    /// Adds code for all threads, after the payload.
    pub fn rest(&mut self, text: impl Into<String>) {
        self.rest.push(text.into());
    }

    /// Fixes grid and block.
    pub fn fix(&mut self, grid: [u32; 3], block: [u32; 3]) {
        (self.shape.grid, self.shape.block, self.fixed) = (grid, block, true);
    }

    /// Whether threads execute it without regard to others, so that it may lie in divergent code and in loops.
    pub fn is_alone(&self) -> bool {
        let code = || self.setup.iter().chain(&self.body).chain(&self.rest);
        !self.fixed && !code().any(|l| ["bar", ".sync", ".aligned", "cluster", "alloca"].iter().any(|w| l.contains(w)))
    }

    /// Threads per CTA.
    pub fn threads(&self) -> u32 {
        self.shape.block.iter().product()
    }

    /// Payloads with one piece left out.
    pub fn smaller(&self) -> Vec<Payload> {
        let lists: [fn(&mut Payload) -> &mut Vec<String>; 4] =
            [|b| &mut b.module, |b| &mut b.setup, |b| &mut b.body, |b| &mut b.rest];
        let mut out = Vec::new();
        for list in lists {
            let n = list(&mut self.clone()).len();
            for i in 0..n {
                let mut less = self.clone();
                list(&mut less).remove(i);
                out.push(less);
            }
        }
        out
    }
}
