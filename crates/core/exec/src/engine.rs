//! What an engine is: it prepares a kernel of a placed program, or compiles it, and runs CTAs of it piece by piece.

use crate::{
    Counts, Fault, Log, Memory, Observer, Stop,
    mem::{self, Allocation, Kind, Running},
};
use margay_ir::{FuncId, Ir, Placed, SourcePlace};
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
    time::Instant,
};

/// A program in memory: placed code, and the addresses that its variables got.
#[derive(Debug)]
pub struct Image {
    /// The code.
    pub ir: Arc<Ir<Placed>>,
    /// By [`margay_ir::GlobalId`]: host address for `.global` and `.const`; offset in the CTA's window for `.shared`; handle
    /// for texture, sampler and surface references.
    pub addresses: Vec<u64>,
    /// Bytes of static shared memory, those that the system reserves included.
    pub static_shared: u32,
    /// The first bytes of shared memory, if they are the system's: [`RESERVED_SHARED`] for programs that ask where these are, or 0.
    pub reserved_shared: u32,
}

/// Bytes of shared memory that the system reserves in each CTA (manual, section 10.29; the programming guide's "1 KB").
pub const RESERVED_SHARED: u32 = 1 << 10;

impl Image {
    /// The address of a function: what `mov` of its name yields and what indirect calls take. Never a valid data address.
    pub fn function_address(func: FuncId) -> u64 {
        0x0f00_0000_0000_0000 + (u64::from(func.0) + 1) * 16
    }

    /// The function at an address.
    pub fn function_at(&self, address: u64) -> Option<FuncId> {
        let index = address.checked_sub(0x0f00_0000_0000_0000)?;
        let id = (index / 16).checked_sub(1)?;
        (index % 16 == 0 && id < self.ir.funcs.len() as u64).then_some(FuncId(id as u32))
    }
}

/// Margay lacks something: a construct, and where it stands.
#[derive(Clone, Debug)]
pub struct Unsupported {
    /// What: `tcgen05.mma.cta_group::1.kind::f16`.
    pub what: String,
    /// In which function.
    pub func: Option<FuncId>,
    /// Where.
    pub at: Option<SourcePlace>,
}

/// One launch of a kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y, z; all 1 without clusters.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// The parameter block, laid out by offset.
    pub params: Vec<u8>,
    /// Scheduling seed: 0 is the natural order.
    pub seed: u64,
    /// Bytes of a thread's stack for what the kernel calls and allocates; its own frame comes on top.
    pub stack_limit: u32,
    /// CTAs may wait for each other: all must make progress.
    pub cooperative: bool,
    /// Code is to count what it executes.
    pub count: bool,
}

/// What all CTAs of a launch share.
pub struct Grid<'a> {
    /// The launch.
    pub launch: &'a Launch,
    /// The program.
    pub image: &'a Image,
    /// The device's memory.
    pub memory: &'a Memory,
    /// Where `vprintf` writes.
    pub output: &'a (dyn Fn(&[u8]) + Sync),
    /// Who wants to see every access, if anybody.
    pub observer: Option<&'a dyn Observer>,
    /// Sums of what is executed, if anybody wants them.
    pub counts: Option<&'a Counts>,
    /// See [`Grid::note_undefined`].
    undefined: OnceLock<Box<Fault>>,
    /// The parameter block, inside device memory (`cvta.param` yields a generic address of it).
    params: Arc<Allocation>,
    /// What cooperative groups synchronise the grid with, in cooperative launches.
    workspace: Option<Arc<Allocation>>,
    /// Host time at which the launch began.
    pub started: Instant,
    /// What is freed meanwhile stays with the device. (The last field: what the launch itself frees does too.)
    running: Running<'a>,
}

impl<'a> Grid<'a> {
    /// Prepares a launch: its parameter block is copied into device memory, and freed when the grid is dropped.
    pub fn new(
        launch: &'a Launch,
        image: &'a Image,
        memory: &'a Memory,
        output: &'a (dyn Fn(&[u8]) + Sync),
    ) -> Result<Grid<'a>, Stop> {
        let running = memory.begin();
        let params = memory.alloc_as(launch.params.len() as u64, 128, Kind::Param, "").map_err(Stop::Exhausted)?;
        mem::store_bytes(&params.block, params.block.base(), &launch.params);
        // `struct grid_workspace { unsigned size, barrier; }` of the toolkit's cooperative_groups/details/driver_abi.h.
        let workspace = match launch.cooperative {
            true => match memory.alloc_as(8, 16, Kind::Global, "grid workspace") {
                Ok(workspace) => Some(workspace),
                Err(e) => {
                    memory.free_own(params.block.base());
                    return Err(Stop::Exhausted(e));
                }
            },
            false => None,
        };
        if let Some(w) = &workspace {
            mem::store_bytes(&w.block, w.block.base(), &8u32.to_le_bytes());
            memory.writes().mark(w.block.base(), 8);
        }
        Ok(Grid {
            launch,
            image,
            memory,
            output,
            observer: None,
            counts: None,
            undefined: OnceLock::new(),
            params,
            workspace,
            started: Instant::now(),
            running,
        })
    }

    /// The same grid, watched.
    pub fn observed(mut self, observer: &'a dyn Observer) -> Grid<'a> {
        self.observer = Some(observer);
        self
    }

    /// The same grid, counted: the launch must say so too.
    pub fn counted(mut self, counts: Option<&'a Counts>) -> Grid<'a> {
        self.counts = counts;
        self
    }

    /// A thread did what PTX leaves undefined and every GPU does: the launch goes on, and the first such use is kept.
    pub fn note_undefined(&self, what: impl FnOnce() -> Fault) {
        self.undefined.get_or_init(|| Box::new(what()));
    }

    /// The first undefined use, as data like a fault's.
    pub fn undefined(&self) -> Option<&Fault> {
        self.undefined.get().map(|fault| &**fault)
    }

    /// The launch as its memory knows it.
    pub fn running(&self) -> &Running<'a> {
        &self.running
    }

    /// The parameter block.
    pub fn params(&self) -> &Arc<Allocation> {
        &self.params
    }

    /// An environment register. Drivers tell cooperative grids the address of their workspace in `%envreg1` (upper half) and
    /// `%envreg2`; all others are zero.
    pub fn environment(&self, index: u8) -> u32 {
        let address = self.workspace.as_ref().map_or(0, |w| w.block.base());
        match index {
            1 => (address >> 32) as u32,
            2 => address as u32,
            _ => 0,
        }
    }
}

impl Drop for Grid<'_> {
    fn drop(&mut self) {
        self.memory.free_own(self.params.block.base());
        if let Some(w) = &self.workspace {
            self.memory.free_own(w.block.base());
        }
    }
}

/// How far a cluster of CTAs got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// All threads ended.
    Done,
    /// Fuel ran out; it can go on. CTAs that wait for others by spinning end up here too, so that in cooperative launches
    /// every cluster must get its turn.
    More,
    /// It only polls memory, and has changed nothing since it was last asked: only somebody else can help it. The flag says that
    /// its threads are also exactly where they were, with the same values in all registers.
    Waiting(bool),
}

/// A way of executing programs as they stand.
pub trait Engine: Send + Sync {
    /// `reference`
    fn name(&self) -> &'static str;

    /// Makes a kernel ready to run. An instruction that the engine lacks is an error here, not in the middle of a launch.
    fn prepare(&self, image: Arc<Image>, kernel: FuncId) -> Result<Arc<dyn Kernel>, Stop>;
}

/// How much work to put into code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Effort {
    /// Soon there: cheap passes only.
    Light,
    /// For kernels that run for long.
    Full,
}

/// What of a launch code depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y, z; all 1 without clusters.
    pub cluster: [u32; 3],
    /// CTAs must take turns: they may wait for each other, or a seed mixes them.
    pub turns: bool,
    /// Code is to count what it executes.
    pub count: bool,
}

impl Shape {
    /// Of a launch.
    pub fn of(launch: &Launch) -> Shape {
        let turns = launch.cooperative || launch.seed != 0;
        Shape { block: launch.block, cluster: launch.cluster.map(|n| n.max(1)), turns, count: launch.count }
    }
}

/// Why there is no code.
#[derive(Clone, Debug)]
pub enum NoCode {
    /// The compiler leaves the kernel to another engine.
    Refused(Unsupported),
    /// The compiler itself is not there, or the process ends.
    Unavailable(String),
    /// Margay has a bug.
    Bug(String),
}

/// An engine that makes code.
pub trait Compiler: Send + Sync {
    /// A kernel of a program, of which nothing is compiled yet.
    fn program(&self, image: Arc<Image>, kernel: FuncId) -> Arc<dyn Program>;
}

/// A kernel that can be compiled.
pub trait Program: Send + Sync {
    /// Instructions of the kernel and of what it reaches: what the time of compiling follows from.
    fn instructions(&self) -> usize;

    /// The best code that an earlier compilation left on disk, of an effort at least. Cheap where there is none.
    fn find(&self, shape: &Shape, least: Effort, log: &Log) -> Option<(Arc<dyn Kernel>, Effort)>;

    /// Makes code, and leaves it on disk.
    fn compile(&self, shape: &Shape, effort: Effort, log: &Log) -> Result<Arc<dyn Kernel>, NoCode>;
}

/// A kernel ready to run: decoded, or code for launches of one shape.
pub trait Kernel: Send + Sync {
    /// Begins the cluster whose first CTA has index `first` in the grid. Without clusters ([`Launch::cluster`] all 1) that is
    /// one CTA; otherwise all CTAs of the cluster run as one unit, so that only whole clusters are handed out to threads.
    fn start<'a>(self: Arc<Self>, grid: &'a Grid<'a>, first: [u32; 3]) -> Result<Box<dyn Cta + 'a>, Stop>;

    /// Whether CTAs run by the range ([`Kernel::batch`]), or else one by one ([`Kernel::start`]).
    fn by_range(&self) -> bool {
        false
    }

    /// A worker that runs CTAs of the grid by the range, for kernels of which no CTA ever waits for another one. `None` where
    /// that cannot be promised, or where there is no such way: then CTAs are started one by one.
    /// `meter` is asked now and then whether to go on.
    fn batch<'a>(self: Arc<Self>, _: &'a Grid<'a>, _: &'a dyn Meter) -> Result<Option<Box<dyn Batch + 'a>>, Stop> {
        Ok(None)
    }

    /// Instructions that the reference engine executes one at a time, because there is no code for them: mnemonics, each once.
    fn single_steps(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A worker that runs one CTA after another, each to its end.
pub trait Batch {
    /// Runs the CTAs of a range of linear indices, x fastest.
    fn run(&mut self, ctas: Range<u64>) -> Result<(), Stop>;
}

/// What a batch asks while it runs.
pub trait Meter: Sync {
    /// About so many warp instructions were executed since the last time. An error ends the batch.
    fn spend(&self, instructions: u64) -> Result<(), Stop>;
}

/// A CTA (or a cluster of them) in flight.
pub trait Cta {
    /// Runs until done, or until about `fuel` warp instructions were executed.
    fn run(&mut self, fuel: u64) -> Result<Progress, Stop>;

    /// The fault of a launch in which everybody polls and nobody can help: who waits, and where.
    fn stuck(&self) -> Stop {
        Stop::Exhausted(crate::Exhausted("all threads wait for something that nobody does".into()))
    }
}
