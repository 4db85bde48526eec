//! Performs the work that grids have queued (dynamic parallelism).

use crate::{Cancel, Error, Kernel, LaunchConfig, LaunchStats, Module};
use margay_exec::device::{Origin, Piece, Pieces, Work};

/// How deep launches may nest; those in the tail stream do not count (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism", "Limits").
const DEPTH: u32 = 24;

/// Performs the launches that grids have queued.
pub trait Launcher {
    /// Launches a kernel with a configuration and a parameter block.
    fn launch(
        &mut self,
        by: By,
        kernel: &Kernel,
        config: LaunchConfig<'static>,
        params: &[u8],
    ) -> Result<LaunchStats, Error>;

    /// A copy or fill was performed that has read and written ranges: addresses and sizes.
    fn moved(&mut self, by: By, read: Option<(u64, u64)>, written: (u64, u64)) {
        let _ = (by, read, written);
    }

    /// Launches an executable graph by its handle, if `tail` when the graph that launches it has ended.
    fn launch_graph(&mut self, graph: u64, tail: bool) -> Result<(), Error>;
}

/// Who has queued a piece of work. The pieces are numbered in the order in which they are performed, and the grid that was launched by
/// the host has number 0.
#[derive(Clone, Copy, Debug)]
pub struct By {
    /// The number of the grid.
    pub grid: usize,
    /// Its thread, and the stream.
    pub origin: Origin,
}

impl Module {
    /// Performs the work that the grid of `parent` has queued, and in turn all work queued by that, as if in one stream: a grid, then its work in
    /// the order of the calls, then the work of its tail stream. `launcher` launches each grid.
    pub fn perform(
        &self,
        parent: &Kernel,
        queued: Pieces,
        cancel: Option<&Cancel>,
        launcher: &mut dyn Launcher,
    ) -> Result<(), Error> {
        let mut stack = Vec::new();
        push(&mut stack, parent, (0, 0), queued);
        let memory = parent.inner.context.device().memory();
        for number in 1.. {
            let Some(Pending { parent, grid, depth, piece: Piece { work, origin } }) = stack.pop() else { break };
            let by = By { grid, origin };
            let grid = match work {
                Work::Copy { to, from, bytes } => {
                    let outside = |_| Error::BadAddress { address: to, size: bytes };
                    memory.copy(to, from, bytes).map_err(outside)?;
                    launcher.moved(by, Some((from, bytes)), (to, bytes));
                    continue;
                }
                Work::Fill { to, byte, bytes } => {
                    let outside = |_| Error::BadAddress { address: to, size: bytes };
                    if bytes > 0 {
                        memory.fill(to, &[byte], bytes).map_err(outside)?;
                    }
                    launcher.moved(by, None, (to, bytes));
                    continue;
                }
                Work::Graph { graph, tail } => {
                    launcher.launch_graph(graph, tail)?;
                    // A graph is no part of the grid that launches it.
                    launcher.moved(by, None, (0, 0));
                    continue;
                }
                Work::Launch(grid) => grid,
            };
            let kernel = self.kernel(&parent.image().ir.func(grid.kernel).name)?;
            if depth > DEPTH {
                let name = kernel.name();
                return Err(Error::BadLaunch(format!(
                    "launches from device code are nested more than {DEPTH} deep: `{name}`"
                )));
            }
            let config = LaunchConfig { cancel: cancel.cloned(), ..LaunchConfig::of(grid.shape) };
            let mut stats = launcher.launch(by, &kernel, config, &grid.params)?;
            push(&mut stack, &kernel, (number, depth), std::mem::take(&mut stats.queued));
        }
        Ok(())
    }
}

/// A piece of work that is not performed yet.
struct Pending {
    /// The kernel of the grid that has queued it, and the grid's number.
    parent: Kernel,
    grid: usize,
    /// How deep a grid that it launches is nested.
    depth: u32,
    piece: Piece,
}

/// Pushes the work that a grid at a depth has queued on a stack, so that the work of its tail stream comes last.
fn push(stack: &mut Vec<Pending>, parent: &Kernel, (grid, depth): (usize, u32), queued: Pieces) {
    let pending = |depth| move |piece| Pending { parent: parent.clone(), grid, depth, piece };
    stack.extend(queued.tail.into_iter().rev().map(pending(depth)));
    stack.extend(queued.work.into_iter().rev().map(pending(depth + 1)));
}
