//! The interface of engines: prepare or compile a kernel of a placed program, and run its CTAs in pieces.

use crate::{
    Counts, CtaWindows, Fault, Interest, LANES, Log, Memory, Observer, Snapshot, Stop,
    device::{Driver, Queued},
    mem::{self, Allocation, Kind, Reach, Running},
    texture::Seen,
};
use margay_ir::{BlockId, FuncId, GlobalId, Ir, Placed, SourcePlace};
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

/// A program in memory: placed code, and the addresses of its variables.
#[derive(Clone, Debug)]
pub struct Image {
    /// The placed code.
    pub ir: Arc<Ir<Placed>>,
    /// By [`margay_ir::GlobalId`]: host address for `.global` and `.const`; offset in the CTA's window for `.shared`; handle
    /// for texture, sampler and surface references.
    pub addresses: Vec<u64>,
    /// Size of static shared memory in bytes, with the part reserved by the system.
    pub static_shared: u32,
    /// Bytes reserved by the system at the start of shared memory: [`RESERVED_SHARED`] for programs that ask for their
    /// location, else 0.
    pub reserved_shared: u32,
    /// The size of a CTA's window is a multiple of this number of bytes ([`crate::SharedLayout::unit`]).
    pub shared_unit: u32,
}

/// Bytes of shared memory that the system reserves in each CTA (manual, section 10.29; the programming guide's "1 KB").
pub const RESERVED_SHARED: u32 = 1 << 10;

impl Image {
    /// The same image with another program of the same functions and variables.
    pub fn with(&self, ir: Ir<Placed>) -> Image {
        Image { ir: Arc::new(ir), ..self.clone() }
    }

    /// The address of a function in a program with `address_size` bits to an address: the value of its name, and the operand of
    /// indirect calls. Never a valid data address.
    pub fn function_address(address_size: u32, func: FuncId) -> u64 {
        functions(address_size) + (u64::from(func.0) + 1) * 16
    }

    /// Bytes of a variable in shared memory, with those after its end that a vector of its last elements covers.
    pub fn shared_room(&self, global: GlobalId) -> u64 {
        crate::layout::room(self.ir.global(global), self.shared_unit)
    }

    /// The function at an address, if any.
    pub fn function_at(&self, address: u64) -> Option<FuncId> {
        let index = address.checked_sub(functions(self.ir.address_size))?;
        let id = (index / 16).checked_sub(1)?;
        (index % 16 == 0 && id < self.ir.funcs.len() as u64).then_some(FuncId(id as u32))
    }
}

/// Base of the addresses of functions.
fn functions(address_size: u32) -> u64 {
    if address_size == 32 { 0xf000_0000 } else { 0x0f00_0000_0000_0000 }
}

/// The program needs something that margay lacks.
#[derive(Clone, Debug)]
pub struct Unsupported {
    /// The construct: `tcgen05.mma.cta_group::1.kind::f16`.
    pub what: String,
    /// The function that contains it.
    pub func: Option<FuncId>,
    /// Its place in the source.
    pub at: Option<SourcePlace>,
}

/// The shape of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchShape {
    /// Number of CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y, z; `None` for the kernel's own cluster shape, if any.
    pub cluster: Option<[u32; 3]>,
    /// Size of dynamic shared memory in bytes.
    pub shared: u32,
    /// CTAs may wait for each other, so all must make progress.
    pub cooperative: bool,
    /// It may begin before the grids before it in its stream have ended (`griddepcontrol`). For checks only: grids run one after another.
    pub programmatic: bool,
}

/// The coordinates of the element with this index in a box of `size` elements, x first: of a thread in its CTA, of a CTA in its cluster or
/// grid.
pub fn coordinates(index: u64, size: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = size.map(|n| u64::from(n.max(1)));
    [index % x, index / x % y, index / (x * y)].map(|i| i as u32)
}

/// Index of a lane's thread in its CTA of `block` threads.
pub fn thread_index(block: [u32; 3], warp: u32, lane: u32) -> [u32; 3] {
    coordinates((warp * LANES as u32 + lane).into(), block)
}

impl LaunchShape {
    /// The largest grid in CTAs and the largest CTA in threads, by dimension, and the most threads of a CTA (CUDA C++ Programming Guide,
    /// "Compute Capabilities").
    pub const LARGEST_GRID: [u32; 3] = [0x7fff_ffff, 65535, 65535];
    /// See [`LaunchShape::LARGEST_GRID`].
    pub const LARGEST_BLOCK: [u32; 3] = [1024, 1024, 64];
    /// See [`LaunchShape::LARGEST_GRID`].
    pub const MOST_THREADS: u32 = 1024;
    /// The most CTAs of a cluster, where a kernel allows sizes that are not portable.
    pub const LARGEST_CLUSTER: u32 = 16;

    /// An ordinary launch of `grid` CTAs of `block` threads.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> LaunchShape {
        LaunchShape { grid, block, cluster: None, shared: 0, cooperative: false, programmatic: false }
    }

    /// CTAs of a cluster in x, y, z; all 1 without clusters.
    pub fn cluster_size(&self) -> [u32; 3] {
        self.cluster.map_or([1; 3], |size| size.map(|n| n.max(1)))
    }

    /// Threads of a CTA.
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }
}

/// One launch of a kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Its shape.
    pub shape: LaunchShape,
    /// The parameter block, laid out by offset.
    pub params: Vec<u8>,
    /// Scheduling seed; 0 for the natural order.
    pub seed: u64,
    /// Clocks of the reference engine are the host's, as those of compiled code are, which may run parts of the launch. Otherwise they
    /// count instructions, so that runs are reproducible.
    pub real_time: bool,
    /// Size of a thread's stack in bytes, for what the kernel calls and allocates; the kernel's own frame comes on top.
    pub stack_limit: u32,
    /// The launch counts what it executes.
    pub count: bool,
    /// What interests the observer, if there is one.
    pub observe: Option<Interest>,
    /// `%current_graph_exec`: the handle of the executable graph that the launch is part of; 0 if there is none.
    pub graph: u64,
}

/// The state that all CTAs of a launch share.
pub struct Grid<'a> {
    /// The launch.
    pub launch: &'a Launch,
    /// The program.
    pub image: &'a Image,
    /// The device's memory.
    pub memory: &'a Memory,
    /// Where `vprintf` writes.
    pub output: &'a (dyn Fn(&[u8]) + Sync),
    /// Receives every access, if the launch is observed.
    pub observer: Option<&'a dyn Observer>,
    /// Answers what its threads ask a driver, if there is one.
    pub driver: Option<&'a dyn Driver>,
    /// Counters, if the launch counts.
    pub counts: Option<&'a Counts>,
    /// What its threads have queued.
    pub queued: Queued,
    /// The texture, sampler and surface objects that it has used.
    pub objects: Seen,
    /// See [`Grid::note_undefined`].
    undefined: OnceLock<Box<Fault>>,
    /// The parameter block, inside device memory (`cvta.param` yields a generic address of it).
    params: Arc<Allocation>,
    /// The workspace of cooperative groups for grid synchronization, in cooperative launches.
    workspace: Option<Arc<Allocation>>,
    /// Host time at which the launch began.
    pub started: Instant,
    /// Keeps freed memory alive during the launch. The last field, so that this covers what dropping the grid frees.
    running: Running<'a>,
}

impl<'a> Grid<'a> {
    /// Size of a CTA's shared window in bytes.
    pub fn shared_size(&self) -> u64 {
        let used = u64::from(self.image.static_shared) + u64::from(self.launch.shape.shared);
        used.next_multiple_of(self.image.shared_unit.into())
    }

    /// Prepares a launch: copies the parameter block into device memory, where it lives as long as the grid.
    pub fn new(
        launch: &'a Launch,
        image: &'a Image,
        memory: &'a Memory,
        output: &'a (dyn Fn(&[u8]) + Sync),
    ) -> Result<Grid<'a>, Stop> {
        let running = memory.begin();
        let reach = Reach::of(image.ir.address_size);
        let size = launch.params.len() as u64;
        let params = memory.alloc_in(reach, size, 128, Kind::Param, "").map_err(Stop::Exhausted)?;
        mem::store_bytes(&params.block, params.block.base(), &launch.params);
        // `struct grid_workspace { unsigned size, barrier; }` of the toolkit's cooperative_groups/details/driver_abi.h.
        let workspace = match launch.shape.cooperative {
            true => match memory.alloc_in(reach, 8, 16, Kind::Global, "grid workspace") {
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
            driver: None,
            counts: None,
            queued: Queued::default(),
            objects: Seen::default(),
            undefined: OnceLock::new(),
            params,
            workspace,
            started: Instant::now(),
            running,
        })
    }

    /// The same grid with an observer.
    pub fn observed(mut self, observer: &'a dyn Observer) -> Grid<'a> {
        self.observer = Some(observer);
        self
    }

    /// The same grid with a driver.
    pub fn with_driver(mut self, driver: Option<&'a dyn Driver>) -> Grid<'a> {
        self.driver = driver;
        self
    }

    /// The same grid with counters; [`Launch::count`] must be set too.
    pub fn counted(mut self, counts: Option<&'a Counts>) -> Grid<'a> {
        self.counts = counts;
        self
    }

    /// Notes a use that PTX leaves undefined but every GPU tolerates; the launch continues, and the first such use is
    /// kept.
    pub fn note_undefined(&self, what: impl FnOnce() -> Fault) {
        self.undefined.get_or_init(|| Box::new(what()));
    }

    /// The first undefined use, described like a fault.
    pub fn undefined(&self) -> Option<&Fault> {
        self.undefined.get().map(|fault| &**fault)
    }

    /// The registration of the launch with its memory.
    pub fn running(&self) -> &Running<'a> {
        &self.running
    }

    /// Where its memory must lie.
    pub fn reach(&self) -> Reach {
        Reach::of(self.image.ir.address_size)
    }

    /// The parameter block.
    pub fn params(&self) -> &Arc<Allocation> {
        &self.params
    }

    /// The value of the environment register with this index. In cooperative launches, drivers pass the address of the grid's workspace in
    /// `%envreg1` (high half) and `%envreg2`; all others are zero.
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

/// What a call of [`Cta::run`] did.
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
    /// It has told other clusters something, or taken work that they could have had, in an observed launch: one of them runs next.
    Yielded,
    /// Fuel ran out, but another cluster may have to end what it does: it keeps returning to one state, without effects beyond its shared
    /// memory, or does nothing but sleep and look around.
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
    /// What the code reports to an observer.
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

/// What a batch reports its progress to.
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

    /// Whether some of the threads can no longer arrive at the header of this loop, so that [`Cta::pause`] would be in vain.
    fn cannot_reach(&mut self, _header: BlockId) -> bool {
        false
    }

    /// The deadlock fault of a launch in which everybody polls: who waits, and where.
    fn stuck(&mut self) -> Stop {
        Stop::Exhausted(crate::Exhausted("all threads wait for an event that never happens".into()))
    }
}
