//! Work that device code queues: launches of kernels (dynamic parallelism) and graphs, copies and fills. A grid collects it; the runtime
//! performs it when the grid has ended (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism"; headers `cuda_device_runtime_api.h`).
//!
//! No grid can wait for what it has queued, so performing it later is one of the orders that the guide allows. What is queued to one
//! stream is performed in the order of the calls, and so is everything else here; the tail stream comes last.

use crate::{Grid, Image, Initiator, LaunchShape, mem::Path};
use margay_check::FuncKind;
use margay_ir::{FuncId, abi::kernel_layout};
use parking_lot::Mutex;
use std::collections::HashMap;

/// Bytes in front of a parameter block that describe its launch.
const HEADER: u64 = 64;
/// `cudaStreamTailLaunch`
const TAIL: u64 = 3;
/// `cudaStreamFireAndForget`
pub const FIRE_AND_FORGET: u64 = 4;

/// The streams to which graphs are launched.
mod graph_stream {
    /// `cudaStreamGraphTailLaunch`
    pub const TAIL: u64 = 1 << 56;
    /// `cudaStreamGraphFireAndForget`
    pub const INDEPENDENT: u64 = 2 << 56;
    /// `cudaStreamGraphFireAndForgetAsSibling`
    pub const SIBLING: u64 = 3 << 56;
}

/// Error codes (`cudaError_t`).
mod error {
    pub const INVALID_VALUE: u64 = 1;
    pub const INVALID_CONFIGURATION: u64 = 9;
    pub const INVALID_FUNCTION: u64 = 98;
    pub const NOT_SUPPORTED: u64 = 801;
}

/// What device code can ask the driver (`cudaDeviceGetLimit`, `cudaFuncGetAttributes` and the like in device code). Their numbers, the first
/// argument of `__margay_ask`, are those of `Query::of`.
#[derive(Clone, Copy, Debug)]
pub enum Query<'a> {
    /// A limit of the context, by its number (`cudaLimit`).
    Limit(u32),
    /// The preferred split of the first cache (`cudaFuncCache`).
    CacheConfig,
    /// The number of the device.
    Device,
    /// How many devices there are.
    DeviceCount,
    /// An attribute (`cudaDeviceAttr`) of a device.
    DeviceAttribute {
        /// Its number.
        attribute: u32,
        /// The device.
        device: i32,
    },
    /// An attribute of a kernel.
    KernelAttribute {
        /// Its name.
        kernel: &'a str,
        /// Its number (`CUfunction_attribute`).
        attribute: u32,
    },
    /// How many CTAs of a kernel a multiprocessor holds.
    Occupancy {
        /// Its name.
        kernel: &'a str,
        /// Threads of a CTA.
        threads: i32,
        /// Dynamic shared memory of a CTA in bytes.
        shared: usize,
    },
}

/// A change of a kernel node of a graph by device code (`cudaGraphKernelNodeUpdatesApply`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Number of CTAs in x, y, z.
    Grid([u32; 3]),
    /// Bytes of the parameter block.
    Parameter {
        /// Where they begin.
        offset: u64,
        /// The new bytes.
        bytes: Vec<u8>,
    },
    /// Whether the node is part of launches.
    Enabled(bool),
}

/// The largest parameter block in bytes (manual, section 5.1.6.1).
const MAX_PARAMETERS: u64 = 32764;

/// A driver, as device code sees it. What fails returns an error code (`cudaError_t`).
pub trait Driver: Sync {
    /// Answers a query.
    fn answer(&self, query: Query<'_>) -> Result<u64, u32>;

    /// Changes a kernel node, by its handle for device code.
    fn change(&self, node: u64, change: Change) -> Result<(), u32>;
}

impl<'a> Query<'a> {
    fn of([number, a, b, c]: [u64; 4], image: &'a Image) -> Result<Query<'a>, u64> {
        let kernel = || {
            let kernel = kernel_at(image, a).ok_or(error::INVALID_FUNCTION)?;
            Ok::<_, u64>(&*image.ir.func(kernel).name)
        };
        Ok(match number {
            0 => Query::Limit(a as u32),
            1 => Query::CacheConfig,
            2 => Query::Device,
            3 => Query::DeviceCount,
            4 => Query::DeviceAttribute { attribute: a as u32, device: b as i32 },
            5 => Query::KernelAttribute { kernel: kernel()?, attribute: b as u32 },
            6 => Query::Occupancy { kernel: kernel()?, threads: b as i32, shared: c as usize },
            _ => return Err(error::INVALID_VALUE),
        })
    }
}

/// Changes a kernel node: `data` depends on the field (`cudaGraphKernelNodeField`), and `byte` reads the lane's memory. Returns the error
/// code.
pub(crate) fn update_node(
    grid: &Grid<'_>,
    node: u64,
    field: u64,
    data: [u64; 3],
    byte: &mut dyn FnMut(u64) -> Option<u8>,
) -> u64 {
    let change = match (field, data) {
        (1, [x, y, z]) => Some(Change::Grid([x, y, z].map(|n| n as u32))),
        (2, [from, offset, size]) if size <= MAX_PARAMETERS => {
            let bytes: Option<Vec<u8>> = (0..size).map(|i| byte(from.wrapping_add(i))).collect();
            bytes.map(|bytes| Change::Parameter { offset, bytes })
        }
        (3, [enabled, ..]) => Some(Change::Enabled(enabled & 0xff != 0)),
        _ => None,
    };
    let Some(change) = change else { return error::INVALID_VALUE };
    let Some(driver) = grid.driver else { return error::NOT_SUPPORTED };
    driver.change(node, change).map_or_else(u64::from, |()| 0)
}

/// Asks the driver; returns its answer, or the negative error code.
pub(crate) fn ask(grid: &Grid<'_>, query: [u64; 4]) -> u64 {
    let answer = Query::of(query, grid.image).and_then(|query| match grid.driver {
        Some(driver) => driver.answer(query).map_err(u64::from),
        None => Err(error::NOT_SUPPORTED),
    });
    answer.unwrap_or_else(u64::wrapping_neg)
}

/// One piece of queued work.
#[derive(Clone, Debug)]
pub enum Work {
    /// A launch.
    Launch(Launch),
    /// Copies bytes.
    Copy {
        /// Destination.
        to: u64,
        /// Source.
        from: u64,
        /// Size in bytes.
        bytes: u64,
    },
    /// Sets bytes. Of size 0, it represents a wait of its stream for an event.
    Fill {
        /// Destination.
        to: u64,
        /// The value of each byte.
        byte: u8,
        /// Size in bytes.
        bytes: u64,
    },
    /// Launches an executable graph of the program.
    Graph {
        /// Its handle.
        graph: u64,
        /// Whether it begins after the graph of the launching grid has ended, with all that it has launched.
        tail: bool,
    },
}

/// A launch from device code. Its description lies in front of the parameters: address of the kernel (8 bytes), grid and CTA (3 x 4
/// bytes each), dynamic shared memory (4 bytes), size of the parameter block at byte 40 (8 bytes).
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel, in the image of the launching grid.
    pub kernel: FuncId,
    /// Its shape.
    pub shape: LaunchShape,
    /// The parameter block.
    pub params: Vec<u8>,
}

/// Work, and who has queued it where.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The work.
    pub work: Work,
    /// Who has queued it.
    pub origin: Origin,
}

/// Who has queued a piece of work, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The thread.
    pub thread: Initiator,
    /// How much it had tried to queue before.
    pub number: u32,
    /// The stream.
    pub stream: u64,
}

impl Origin {
    /// Whether it is queued to the tail stream.
    pub fn is_tail(&self) -> bool {
        self.stream == TAIL
    }
}

/// Pieces that a grid has queued, each in the order of the calls.
#[derive(Clone, Default, Debug)]
pub struct Pieces {
    /// Those of all streams except the tail stream.
    pub work: Vec<Piece>,
    /// Those of the tail stream, which come after all others.
    pub tail: Vec<Piece>,
}

impl Pieces {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.work.is_empty() && self.tail.is_empty()
    }
}

/// The work that a grid has queued.
#[derive(Default, Debug)]
pub struct Queued {
    lists: Mutex<Lists>,
}

#[derive(Default, Debug)]
struct Lists {
    pieces: Pieces,
    /// By thread.
    errors: HashMap<Initiator, u64>,
    /// By thread, how much it has tried to queue.
    attempts: HashMap<Initiator, u32>,
}

impl Queued {
    /// A thread tries to queue something to a stream.
    pub(crate) fn origin(&self, thread: Initiator, stream: u64) -> Origin {
        let mut lists = self.lists.lock();
        let attempts = lists.attempts.entry(thread).or_default();
        *attempts += 1;
        Origin { thread, number: *attempts - 1, stream }
    }

    /// Queues work; returns `cudaSuccess`.
    pub(crate) fn push(&self, work: Work, origin: Origin) -> u64 {
        let pieces = &mut self.lists.lock().pieces;
        if origin.is_tail() { &mut pieces.tail } else { &mut pieces.work }.push(Piece { work, origin });
        0
    }

    /// The last error of a thread.
    pub(crate) fn last_error(&self, thread: Initiator, keep: bool) -> u64 {
        let errors = &mut self.lists.lock().errors;
        let found = if keep { errors.get(&thread).copied() } else { errors.remove(&thread) };
        found.unwrap_or(0)
    }

    /// Takes what is queued.
    pub fn take(&self) -> Pieces {
        std::mem::take(&mut self.lists.lock().pieces)
    }
}

fn kernel_at(image: &Image, address: u64) -> Option<FuncId> {
    image.function_at(address).filter(|f| image.ir.func(*f).kind == FuncKind::Kernel)
}

/// Size in bytes of the parameter block of the kernel at an address; all ones if there is none.
pub(crate) fn parameter_bytes(image: &Image, address: u64) -> u64 {
    let Some(kernel) = kernel_at(image, address) else { return u64::MAX };
    kernel_layout(&image.ir.func(kernel).sig).size.into()
}

/// Queues the launch that is described in front of `params`, and frees the block. Returns the error code, which also becomes the
/// thread's last error.
pub(crate) fn launch(grid: &Grid<'_>, params: u64, stream: u64, thread: Initiator) -> u64 {
    let origin = grid.queued.origin(thread, stream);
    let queued = read(grid, params).and_then(|launch| {
        let LaunchShape { grid: ctas, block, .. } = launch.shape;
        let fits = |n: [u32; 3], most: [u32; 3]| (0..3).all(|i| (1..=most[i]).contains(&n[i]));
        let sizes_fit = fits(ctas, LaunchShape::LARGEST_GRID) && fits(block, LaunchShape::LARGEST_BLOCK);
        match sizes_fit && launch.shape.threads() <= LaunchShape::MAX_THREADS {
            true => Ok(grid.queued.push(Work::Launch(launch), origin)),
            false => Err(error::INVALID_CONFIGURATION),
        }
    });
    let freed = grid.memory.heap_free(params.wrapping_sub(HEADER), thread, Path::default());
    let code = match (queued, freed) {
        (Err(code), _) => code,
        (Ok(_), Err(_)) => error::INVALID_VALUE,
        (Ok(code), Ok(())) => code,
    };
    if code != 0 {
        grid.queued.lists.lock().errors.insert(thread, code);
    }
    code
}

/// Queues the launch of a graph, which only grids of a graph may do (CUDA C++ Programming Guide, "Device Graph Launch"). Returns the error
/// code, which also becomes the thread's last error.
pub(crate) fn launch_graph(grid: &Grid<'_>, graph: u64, stream: u64, thread: Initiator) -> u64 {
    let origin = grid.queued.origin(thread, stream);
    let tail = match stream {
        graph_stream::TAIL => Some(true),
        graph_stream::INDEPENDENT | graph_stream::SIBLING => Some(false),
        _ => None,
    };
    match tail.filter(|_| grid.launch.graph != 0) {
        Some(tail) => grid.queued.push(Work::Graph { graph, tail }, origin),
        None => {
            grid.queued.lists.lock().errors.insert(thread, error::INVALID_VALUE);
            error::INVALID_VALUE
        }
    }
}

fn read(grid: &Grid<'_>, params: u64) -> Result<Launch, u64> {
    let invalid = |_| error::INVALID_VALUE;
    let mut header = [0; HEADER as usize];
    grid.memory.read(params.wrapping_sub(HEADER), &mut header).map_err(invalid)?;
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| header[at + i]));
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let kernel = kernel_at(grid.image, long(0)).ok_or(error::INVALID_FUNCTION)?;
    // The block of `cudaGetParameterBuffer` has the size that the program says.
    let size = parameter_bytes(grid.image, long(0));
    if long(40) < size {
        return Err(error::INVALID_VALUE);
    }
    let mut block = vec![0; size as usize];
    grid.memory.read(params, &mut block).map_err(invalid)?;
    let three = |at: usize| [word(at), word(at + 4), word(at + 8)];
    let shape = LaunchShape { shared: word(32), ..LaunchShape::new(three(8), three(20)) };
    Ok(Launch { kernel, shape, params: block })
}
