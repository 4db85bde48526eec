//! Hostile modules: kernels that do one thing that is forbidden or undefined.
//!
//! ```text
//! seed → Attack (a payload and the threads that execute it, in a lean kernel or in a random one of `kernels`)
//!      → text and launch → a child process (`worker`), once per engine → End
//!      → compare: the same result, or the same kind of fault at the same place for the same thread
//! ```
//!
//! A payload is text that the threads of [`Who`] execute after text that all threads execute. Both engines must have
//! equivalent outcomes, and no signal, panic or hang ([`end`] defines equivalence). [`Attack::smaller`] leaves out
//! pieces; variants that no longer pass the check are dropped when shrinking.

mod bounds;
mod calls;
mod control;
mod copies;
pub mod end;
mod heap;
mod launch;
mod payload;
mod spins;
mod stack;
mod sync;
mod tensor;
mod text;
mod warps;
pub mod watch;
mod windows;
pub mod worker;

pub use payload::{Blame, Payload, Who};

use crate::{kernels, random::Random};

/// The subject of an attack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Class {
    /// Calls with wrong prototypes and target lists.
    Calls,
    /// Accesses at the bounds of every kind of object.
    Bounds,
    /// Misaligned accesses.
    Misaligned,
    /// `malloc` and `free` of device code.
    Heap,
    /// Addresses of one space used in another.
    Windows,
    /// Recursion and large frames.
    Recursion,
    /// `alloca`, `stacksave`, `stackrestore`.
    Alloca,
    /// CTA barriers in wrong places and with wrong counts.
    Barriers,
    /// Warp operations with wrong member masks.
    Warps,
    /// Loops that poll memory, terminating or not.
    Spins,
    /// Branches, traps, undefined arithmetic.
    Control,
    /// Asynchronous copies, barrier objects, matrices, textures.
    Copies,
    /// Matrix descriptors, tensor memory, stores that complete later.
    Tensor,
    /// Launches at the limits of a device and beyond.
    Launch,
}

impl Class {
    /// All classes.
    pub const ALL: &[Class] = &[
        Class::Calls,
        Class::Bounds,
        Class::Misaligned,
        Class::Heap,
        Class::Windows,
        Class::Recursion,
        Class::Alloca,
        Class::Barriers,
        Class::Warps,
        Class::Spins,
        Class::Control,
        Class::Copies,
        Class::Tensor,
        Class::Launch,
    ];

    /// The class with this name, in any case.
    pub fn named(name: &str) -> Option<Class> {
        Class::ALL.iter().copied().find(|c| c.name().eq_ignore_ascii_case(name))
    }

    /// Its name.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// The launch of an attack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Grid in CTAs.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// CTAs of a cluster, in x.
    pub cluster: u32,
    /// Size of dynamic shared memory in bytes.
    pub shared: u32,
    /// Stack size of a thread in bytes.
    pub stack: u32,
    /// Number of host threads.
    pub threads: usize,
}

/// A hostile module and its launch.
#[derive(Clone, Debug)]
pub struct Attack {
    /// Its subject.
    pub class: Class,
    /// The payload.
    pub payload: Payload,
    /// The threads that execute it.
    pub who: Who,
    /// Harmless code before it in a lean kernel; each piece can be left out.
    pub before: Vec<String>,
    /// See `before`.
    pub after: Vec<String>,
    /// The random kernel into which it is inserted, and the place ([`kernels::Module::plant`]); `None` for a lean kernel.
    pub host: Option<(kernels::Module, usize)>,
    /// The launch.
    pub shape: Shape,
}

impl Attack {
    /// The attack of a seed, in one of the given classes.
    pub fn new(seed: u64, classes: &[Class]) -> Attack {
        let mut random = Random::new(seed ^ 0xa77a_c4ed_0000_0000);
        let r = &mut random;
        let class = r.pick(classes);
        // Random kernels have arrays for blocks of their own.
        let planted = r.chance(12) && class != Class::Launch;
        let (grid, block, threads) = (r.pick(GRIDS), r.pick(BLOCKS), 1 + r.below(2));
        let shape = Shape { grid, block, cluster: 1, shared: 0, stack: 64 << 10, threads };
        let mut payload = Payload::new(shape);
        match class {
            Class::Calls => calls::make(r, &mut payload),
            Class::Bounds => bounds::make(r, &mut payload, !planted),
            Class::Misaligned => bounds::misaligned(r, &mut payload, !planted),
            Class::Heap => heap::make(r, &mut payload),
            Class::Windows => windows::make(r, &mut payload),
            Class::Recursion => stack::recursion(r, &mut payload),
            Class::Alloca => stack::alloca(r, &mut payload),
            Class::Barriers => sync::make(r, &mut payload),
            Class::Warps => warps::make(r, &mut payload),
            Class::Spins => spins::make(r, &mut payload),
            Class::Control => control::make(r, &mut payload),
            Class::Copies => copies::make(r, &mut payload),
            Class::Tensor => tensor::make(r, &mut payload),
            Class::Launch => launch::make(r, &mut payload),
        }
        let mut shape = payload.shape.clone();
        let host = planted.then(|| {
            let mut module = kernels::Module::new(r.bits());
            // Small ones only, since they are compiled for every seed.
            while module.text().len() > HOST && (module.kernel.len() > 1 || !module.functions.is_empty()) {
                if module.functions.pop().is_none() {
                    module.kernel.pop();
                }
            }
            shape.grid = if payload.fixed { shape.grid } else { module.grid };
            shape.block = if payload.fixed { shape.block } else { module.block };
            // Threads that must exist may have ended behind a node.
            let at = if payload.fixed { 0 } else { r.below(module.kernel.len() + 1) };
            (module, at)
        });
        let count = |v: [u32; 3]| v.iter().product::<u32>();
        let mut who =
            payload.who.clone().unwrap_or_else(|| Who::draw(r, count(shape.grid).max(1), count(shape.block).max(1)));
        let host = host.map(|(module, at)| {
            let nested = payload.is_alone() && class != Class::Spins && payload.who.is_none() && r.chance(70);
            if !nested {
                return (module, at);
            }
            // Lanes that loops have parted come in any order, so only one thread executes it.
            who = Who::One { gid: r.below((count(shape.grid) * count(shape.block)).max(1) as usize) as u32 };
            let at = r.below(module.places());
            (module, at)
        });
        // These have arrays for small blocks too.
        let most = if class == Class::Launch { 1 } else { 3 };
        let pieces = |r: &mut Random| (0..r.below(most)).map(|_| text::harmless(r)).collect();
        Attack { class, who, before: pieces(r), after: pieces(r), host, shape, payload }
    }

    /// Smaller attacks, the largest reductions first.
    pub fn smaller(&self) -> Vec<Attack> {
        let mut out = Vec::new();
        if let Some((module, at)) = &self.host {
            out.push(Attack { host: None, ..self.clone() });
            for smaller in module.smaller() {
                // Within the kernel's nodes, or not.
                let at = if *at > module.kernel.len() { *at } else { (*at).min(smaller.kernel.len()) };
                out.push(Attack { host: Some((smaller, at)), ..self.clone() });
            }
        }
        for (i, _) in self.before.iter().enumerate() {
            let mut less = self.clone();
            less.before.remove(i);
            out.push(less);
        }
        for (i, _) in self.after.iter().enumerate() {
            let mut less = self.clone();
            less.after.remove(i);
            out.push(less);
        }
        for payload in self.payload.smaller() {
            out.push(Attack { payload, ..self.clone() });
        }
        for (grid, block) in
            [([1, 1, 1], self.shape.block), (self.shape.grid, [32, 1, 1]), (self.shape.grid, [1, 1, 1])]
        {
            if grid != self.shape.grid || block != self.shape.block {
                let first = Who::One { gid: 0 };
                for who in [self.who.clone(), first] {
                    out.push(Attack { who, shape: Shape { grid, block, ..self.shape.clone() }, ..self.clone() });
                }
            }
        }
        if self.shape.threads > 1 {
            out.push(Attack { shape: Shape { threads: 1, ..self.shape.clone() }, ..self.clone() });
        }
        out
    }
}

/// Limit of a host kernel's text in bytes; an empty one takes 6,000.
const HOST: usize = 10_000;

/// Block shapes: partial warps, full warps, several dimensions.
const BLOCKS: &[[u32; 3]] =
    &[[1, 1, 1], [32, 1, 1], [32, 1, 1], [33, 1, 1], [64, 1, 1], [8, 4, 1], [96, 1, 1], [7, 5, 2], [128, 1, 1]];
const GRIDS: &[[u32; 3]] = &[[1, 1, 1], [1, 1, 1], [2, 1, 1], [4, 1, 1], [2, 2, 1]];
