//! The interface of engines: prepare or compile a kernel of a placed program, and run its CTAs in pieces.

use crate::{CtaWindows, Grid, Image, Interest, Launch, LaunchShape, Log, Snapshot, Stop, Unsupported};
use margay_ir::{BlockId, FuncId};
use std::{ops::Range, sync::Arc, time::Duration};

/// The outcome of a call of [`Cta::run`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// Where the cluster stands.
    pub progress: Progress,
    /// About how many instructions its warps have executed, at most the fuel of the call; if it is done, at least one for each warp.
    pub executed: u64,
}

/// The state of a cluster after a call of [`Cta::run`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// All threads have exited.
    Done,
    /// Fuel ran out; the cluster can continue. So can CTAs that poll for others, which is why every cluster of a
    /// cooperative launch must get its turn.
    More,
    /// In an observed launch: it has published something to other clusters, or claimed work that they could have claimed, so one of them runs
    /// next.
    Yielded,
    /// Fuel ran out, and it may depend on another cluster to end its loop: it keeps returning to one state without effects beyond its shared
    /// memory, or only sleeps and polls.
    Circling,
    /// It only polls memory and has changed nothing since the last call, so only another cluster can unblock it.
    Waiting {
        /// Its whole state is a repeated one.
        repeats: bool,
    },
}

/// An engine that executes programs without compiling them.
pub trait Engine: Send + Sync {
    /// The name in messages and options: `reference`.
    fn name(&self) -> &'static str;

    /// Prepares a kernel. An instruction that the engine lacks is an error here, not in the middle of a launch.
    fn prepare(&self, image: Arc<Image>, kernel: FuncId) -> Result<Arc<dyn Kernel>, Stop>;
}

/// How much time to spend on optimizing code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Effort {
    /// Cheap passes only, for code that is needed soon.
    Light,
    /// Full optimization, for kernels that run for long.
    Full,
}

/// The properties of a launch that code is specialized for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CodeShape {
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y, z; all 1 without clusters.
    pub cluster: [u32; 3],
    /// CTAs take turns on a thread: they may wait for each other, or a seed interleaves them.
    pub turns: bool,
    /// The code counts what it executes.
    pub count: bool,
    /// The events that the code reports to an observer.
    pub observe: Option<Interest>,
}

impl CodeShape {
    /// The shape of a launch.
    pub fn of(launch: &Launch) -> CodeShape {
        let LaunchShape { block, cooperative, .. } = launch.shape;
        CodeShape {
            block,
            cluster: launch.shape.cluster_size(),
            turns: cooperative || launch.seed != 0,
            count: launch.count,
            observe: launch.observe,
        }
    }
}

/// Why there is no code for a kernel.
#[derive(Clone, Debug)]
pub enum NoCode {
    /// The compiler lacks a construct and leaves the kernel to another engine.
    Refused(Unsupported),
    /// The compiler cannot be loaded, or the process is ending.
    Unavailable(String),
    /// Margay has a bug.
    Bug(String),
}

/// An engine that compiles.
pub trait Compiler: Send + Sync {
    /// A kernel of a program; nothing is compiled yet.
    fn program(&self, image: Arc<Image>, kernel: FuncId) -> Arc<dyn Program>;

    /// Whether its code can take CTAs over from another engine ([`Kernel::take_over`]).
    fn takes_over(&self) -> bool {
        false
    }
}

/// A kernel that can be compiled for shapes of launches.
pub trait Program: Send + Sync {
    /// How long a compilation with an effort probably takes on this host.
    fn estimate(&self, effort: Effort) -> Duration;

    /// Notes for later processes that this one has run launches of a shape for this long without code of an effort that would have paid. The
    /// note is gone once there is such code.
    fn note_demand(&self, _shape: &CodeShape, _effort: Effort, _spent: Duration) {}

    /// The best effort for which an earlier process noted that, and left no code.
    fn demand(&self, _shape: &CodeShape) -> Option<Effort> {
        None
    }

    /// The best code in the cache on disk, of effort `least` or better. Cheap if there is none.
    fn find(&self, shape: &CodeShape, least: Effort, log: &Log) -> Option<(Arc<dyn Kernel>, Effort)>;

    /// Compiles the kernel and stores the code in the cache.
    fn compile(&self, shape: &CodeShape, effort: Effort, log: &Log) -> Result<Arc<dyn Kernel>, NoCode>;
}

/// A kernel ready to run: decoded, or code for one shape of launches.
pub trait Kernel: Send + Sync {
    /// Starts the cluster whose first CTA has index `first` in the grid, or a single CTA without clusters
    /// ([`LaunchShape::cluster_size`] all 1). All CTAs of a cluster run on one thread.
    fn start<'a>(self: Arc<Self>, grid: &'a Grid<'a>, first: [u32; 3]) -> Result<Box<dyn Cta + 'a>, Stop>;

    /// Whether CTAs run in ranges ([`Kernel::batch`]), rather than one by one ([`Kernel::start`]).
    fn by_range(&self) -> bool {
        false
    }

    /// A worker that runs ranges of CTAs, for kernels in which no CTA waits for another one; `None` for other kernels,
    /// whose CTAs are started one by one. The code charges its instructions to `meter`, which may stop it.
    fn batch<'a>(self: Arc<Self>, _: &'a Grid<'a>, _: &'a dyn Meter) -> Result<Option<Box<dyn Batch + 'a>>, Stop> {
        Ok(None)
    }

    /// Runs a CTA to its end that another engine has begun and that has these windows; only for kernels in which no CTA waits for another
    /// one.
    fn take_over(
        self: Arc<Self>,
        _grid: &Grid<'_>,
        _meter: &dyn Meter,
        _cta: u64,
        _windows: CtaWindows,
    ) -> Result<(), Stop> {
        Err(Stop::Bug(crate::Bug("an engine that takes no CTA over".into())))
    }

    /// Mnemonics of instructions that the reference engine executes, for lack of native code; each once.
    fn single_steps(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A worker that runs CTAs to their end, one after another.
pub trait Batch {
    /// Runs the CTAs with linear indices in `ctas`, x fastest.
    fn run(&mut self, ctas: Range<u64>) -> Result<(), Stop>;
}

/// The receiver of a batch's progress.
pub trait Meter: Sync {
    /// Charges about `instructions` warp instructions. An error ends the batch.
    fn spend(&self, instructions: u64) -> Result<(), Stop>;
}

/// A CTA (or a cluster of them) in flight.
pub trait Cta {
    /// Runs until all threads have exited, or for about `fuel` warp instructions.
    fn run(&mut self, fuel: u64) -> Result<Slice, Stop>;

    /// Lets the threads run on, for at most about `fuel` warp instructions, until all have arrived at the header of one loop: this one, or
    /// one that they have passed often. The CTA can continue afterwards in any case. `None` if they have not all arrived, or if no other
    /// engine can take the CTA over.
    fn pause(&mut self, _fuel: u64, _header: Option<BlockId>) -> Result<Option<Snapshot>, Stop> {
        Ok(None)
    }

    /// Whether some of the threads can no longer arrive at the header of this loop, so that [`Cta::pause`] could never succeed.
    fn cannot_reach(&mut self, _header: BlockId) -> bool {
        false
    }

    /// The deadlock fault of a launch in which everybody polls: who waits, and where.
    fn stuck(&mut self) -> Stop {
        Stop::Exhausted(crate::Exhausted("all threads wait for an event that never happens".into()))
    }
}
