//! One launch of a kernel: its shape, its parameters, and how it is executed.

use crate::{Interest, LANES};

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
    pub const MAX_THREADS: u32 = 1024;
    /// The maximum number of CTAs of a cluster, where a kernel allows sizes that are not portable.
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
    /// The events that interest the observer, if there is one.
    pub observe: Option<Interest>,
    /// `%current_graph_exec`: the handle of the executable graph that the launch is part of; 0 if there is none.
    pub graph: u64,
}
