//! Performs what grids have queued (dynamic parallelism).

use crate::{Cancel, Error, Kernel, LaunchConfig, LaunchStats, Module};
use margay_exec::device::Work;

/// How deep launches may nest; the tail stream's do not count (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism", "Limits").
const DEPTH: u32 = 24;

/// Launches what grids have queued.
pub trait Launcher {
    /// Launches a kernel with a configuration and a parameter block.
    fn launch(&mut self, kernel: &Kernel, config: LaunchConfig<'static>, params: &[u8]) -> Result<LaunchStats, Error>;

    /// Launches an executable graph by its handle, if `tail` when the graph that launches it has ended.
    fn launch_graph(&mut self, graph: u64, tail: bool) -> Result<(), Error>;
}

impl Module {
    /// Performs what the grid of `parent` has queued, and what is queued by that, as if by one stream: a grid, then its work in the
    /// order of the calls, then the work of its tail stream. `launcher` launches each grid.
    pub fn perform(
        &self,
        parent: &Kernel,
        queued: (Vec<Work>, Vec<Work>),
        cancel: Option<&Cancel>,
        launcher: &mut dyn Launcher,
    ) -> Result<(), Error> {
        let mut next: Vec<(Kernel, u32, Work)> = Vec::new();
        let add = |next: &mut Vec<_>, parent: &Kernel, depth: u32, (work, tail): (Vec<Work>, Vec<Work>)| {
            next.extend(tail.into_iter().rev().map(|w| (parent.clone(), depth, w)));
            next.extend(work.into_iter().rev().map(|w| (parent.clone(), depth + 1, w)));
        };
        add(&mut next, parent, 0, queued);
        let memory = parent.inner.context.device().memory();
        while let Some((parent, depth, work)) = next.pop() {
            let grid = match work {
                Work::Copy { to, from, bytes } => {
                    let outside = |_| Error::BadAddress { address: to, size: bytes };
                    memory.copy(to, from, bytes).map_err(outside)?;
                    continue;
                }
                Work::Fill { to, byte, bytes } => {
                    let outside = |_| Error::BadAddress { address: to, size: bytes };
                    memory.fill(to, &[byte], bytes).map_err(outside)?;
                    continue;
                }
                Work::Graph { graph, tail } => {
                    launcher.launch_graph(graph, tail)?;
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
            let mut stats = launcher.launch(&kernel, config, &grid.params)?;
            let queued = std::mem::take(&mut stats.queued);
            add(&mut next, &kernel, depth, queued);
        }
        Ok(())
    }
}
