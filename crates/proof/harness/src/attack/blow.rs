//! A blow: the text of an attack, who strikes, and what must be known to judge how it ends.

use super::Shape;
use crate::random::Random;

/// Which threads strike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Who {
    /// The thread of that index in the grid.
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
    /// Mostly one thread, so that there is one who must be named.
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

    /// Code that sets `%strike`.
    pub fn test(&self) -> String {
        match self {
            Who::One { gid } => format!("setp.eq.u32 %strike, %gid, {gid};"),
            Who::Lanes { cta, warp, mask } => format!(
                "div.u32 %r9, %gid, %nthreads; setp.eq.u32 %strike, %r9, {cta};\n    shr.u32 %r9, %lin, 5; \
                 setp.eq.and.u32 %strike, %r9, {warp}, %strike;\n    shl.b32 %r9, 1, %lane; and.b32 %r9, %r9, {mask}; \
                 setp.ne.and.u32 %strike, %r9, 0, %strike;"
            ),
            Who::Cta { cta } => format!("div.u32 %r9, %gid, %nthreads; setp.eq.u32 %strike, %r9, {cta};"),
            Who::All => "setp.eq.u32 %strike, 0, 0;".into(),
        }
    }

    /// Whether a thread of the grid strikes, by the index of its CTA and its own within it.
    pub fn strikes(&self, cta: u32, lin: u32, threads: u32) -> bool {
        match self {
            Who::One { gid } => cta * threads + lin == *gid,
            Who::Lanes { cta: c, warp, mask } => cta == *c && lin / 32 == *warp && mask >> (lin % 32) & 1 == 1,
            Who::Cta { cta: c } => cta == *c,
            Who::All => true,
        }
    }

    /// Whether all of them are lanes of one warp.
    pub fn in_a_warp(&self) -> bool {
        matches!(self, Who::One { .. } | Who::Lanes { .. })
    }
}

/// Who may be blamed for a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// One that strikes; if all of these are lanes of a warp, both engines name the same one.
    Strikers,
    /// Whoever comes first to what the blow spoiled, at whatever place.
    Anybody,
}

/// The text of an attack.
#[derive(Clone, Debug)]
pub struct Blow {
    /// Declarations at module scope.
    pub module: Vec<String>,
    /// Code that all threads execute before, in the blow's own scope.
    pub setup: Vec<String>,
    /// Code of the threads that strike.
    pub strike: Vec<String>,
    /// Code that all threads execute behind it, still in its scope.
    pub rest: Vec<String>,
    /// Parameters of the kernel of the lean form.
    pub params: Vec<String>,
    /// Directives of the kernel of the lean form.
    pub entry: &'static str,
    /// The launch that it asks for.
    pub shape: Shape,
    /// Grid and block matter.
    pub fixed: bool,
    /// Who must strike; `None` for any.
    pub who: Option<Who>,
    /// Who may be named in the fault.
    pub blame: Blame,
    /// Lanes of a warp may wait in vain for others of it. The SIMD engine says so where they stand (`Barrier`), the reference engine
    /// when the others have ended (`Barrier`) or when nobody can move (`Deadlock`); where the others end later without having come, it
    /// goes on (manual, section 9.7.9.6: non-exited threads are waited for).
    pub lanes_wait: bool,
    /// More threads come to a barrier than it waits for: which of them it holds is a matter of order, so it may open for some and
    /// leave others waiting, or be open for one use while it is used in another way (manual, section 9.7.13.1).
    pub crowded: bool,
    /// What it computes is undefined, or depends on addresses: results are not compared.
    pub quiet: bool,
    /// Whether it faults is undefined too: any end is right that is not a crash.
    pub loose: bool,
    /// `.version` and `.target`, for those that need a newer one.
    pub target: (&'static str, &'static str),
    labels: usize,
}

impl Blow {
    /// One that does nothing, yet.
    pub fn new(shape: Shape) -> Blow {
        Blow {
            module: Vec::new(),
            setup: Vec::new(),
            strike: Vec::new(),
            rest: Vec::new(),
            params: Vec::new(),
            entry: "",
            shape,
            fixed: false,
            who: None,
            blame: Blame::Strikers,
            lanes_wait: false,
            crowded: false,
            quiet: false,
            loose: false,
            target: ("8.6", "sm_90a"),
            labels: 0,
        }
    }

    /// A name that no other label or variable has.
    pub fn name(&mut self, stem: &str) -> String {
        self.labels += 1;
        format!("{stem}_{}", self.labels)
    }

    /// Something at module scope.
    pub fn module(&mut self, text: impl Into<String>) {
        self.module.push(text.into());
    }

    /// Code for all threads.
    pub fn all(&mut self, text: impl Into<String>) {
        self.setup.push(text.into());
    }

    /// Code for those that strike.
    pub fn hit(&mut self, text: impl Into<String>) {
        self.strike.push(text.into());
    }

    /// Code for all threads, behind it.
    pub fn behind(&mut self, text: impl Into<String>) {
        self.rest.push(text.into());
    }

    /// The shape is what it is.
    pub fn fix(&mut self, grid: [u32; 3], block: [u32; 3]) {
        (self.shape.grid, self.shape.block, self.fixed) = (grid, block, true);
    }

    /// Threads of a CTA.
    pub fn threads(&self) -> u32 {
        self.shape.block.iter().product()
    }

    /// Blows with one piece left out.
    pub fn smaller(&self) -> Vec<Blow> {
        let lists: [fn(&mut Blow) -> &mut Vec<String>; 4] =
            [|b| &mut b.module, |b| &mut b.setup, |b| &mut b.strike, |b| &mut b.rest];
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
