//! A grid: the state that all CTAs of a launch share.

use crate::{
    Counts, Fault, Image, Launch, Memory, Observer, Stop, Units,
    device::{Driver, Queued},
    mem::{self, Allocation, Kind, Reach, Running},
    texture::Seen,
};
use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

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
    /// Its clusters, and which of them have not been handed out. Forms of the grid that finish its CTAs share them.
    pub units: Arc<Units>,
    /// The work that its threads have queued.
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
            units: Arc::new(Units::new(&launch.shape)),
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

    /// The same grid with the units of another, some of whose CTAs it finishes.
    pub fn with_units_of(mut self, grid: &Grid<'_>) -> Grid<'a> {
        self.units = grid.units.clone();
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
