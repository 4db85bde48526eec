//! Functions of the device library: `vprintf`, `malloc`, `free`, `__assertfail`, and what our device runtime is made of
//! ([`crate::device`]). Engines differ only in how they read a lane's memory.

mod printf;

use crate::{
    Access, FaultKind, Grid, Initiator, LANES, device,
    mem::{BadFree, Path},
};
use margay_ir::Builtin;
use printf::format;

/// Why a function of the device library stopped the launch.
pub struct Failure {
    /// The calling lane.
    pub lane: usize,
    /// The fault.
    pub kind: FaultKind,
    /// Further facts.
    pub notes: Vec<String>,
}

/// A call by the lanes of one warp, and what the functions need of the engine.
pub struct Call<'c, 'g> {
    /// The grid of the warp.
    pub grid: &'c Grid<'g>,
    /// The arguments, each by lane.
    pub args: &'c [[u64; LANES]],
    /// Reads the byte at a generic address of a lane; `None` where that is no memory of the lane's.
    pub byte: &'c mut dyn FnMut(u64, usize) -> Option<u8>,
    /// The thread of a lane.
    pub thread: &'c dyn Fn(usize) -> Initiator,
    /// Where the call is.
    pub path: &'c dyn Fn() -> Path,
}

/// Calls a function for the lanes of `mask`, in order. Returns the results by lane, zeros for functions without one; or the failure of the
/// first lane that fails.
pub fn call(builtin: Builtin, mask: u32, mut call: Call<'_, '_>) -> Result<[u64; LANES], Failure> {
    let mut results = [0; LANES];
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 == 1) {
        results[lane] = call.lane(builtin, lane)?;
    }
    Ok(results)
}

impl Call<'_, '_> {
    /// The argument of index `k`.
    fn arg(&self, k: usize, lane: usize) -> u64 {
        self.args.get(k).map_or(0, |by_lane| by_lane[lane])
    }

    fn lane(&mut self, builtin: Builtin, lane: usize) -> Result<u64, Failure> {
        let grid = self.grid;
        let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|k| self.arg(k, lane));
        Ok(match builtin {
            Builtin::Vprintf => return self.vprintf(lane),
            Builtin::Malloc => self.malloc(lane),
            Builtin::Free => return self.free(lane),
            Builtin::AssertFail => return Err(self.assert_fail(lane)),
            Builtin::ParameterBytes => device::parameter_bytes(grid.image, a),
            Builtin::Launch => device::launch(grid, a, b, (self.thread)(lane)),
            Builtin::Copy => {
                let work = device::Work::Copy { to: a, from: b, bytes: c };
                grid.queued.push(work, grid.queued.origin((self.thread)(lane), d))
            }
            Builtin::Fill => {
                let work = device::Work::Fill { to: a, byte: b as u8, bytes: c };
                grid.queued.push(work, grid.queued.origin((self.thread)(lane), d))
            }
            Builtin::LaunchGraph => device::launch_graph(grid, a, b, (self.thread)(lane)),
            Builtin::Ask => device::ask(grid, [a, b, c, d]),
            Builtin::UpdateNode => device::update_node(grid, a, b, [c, d, e], &mut |at| (self.byte)(at, lane)),
            Builtin::LastError => grid.queued.last_error((self.thread)(lane), a != 0),
        })
    }

    fn vprintf(&mut self, lane: usize) -> Result<u64, Failure> {
        let pointer_bytes = u64::from(self.grid.image.ir.address_size / 8);
        let (text, arguments) = (self.arg(0, lane), self.arg(1, lane));
        match format(text, arguments, pointer_bytes, |at| (self.byte)(at, lane)) {
            Ok((bytes, count)) => {
                (self.grid.output)(&bytes);
                Ok(count.into())
            }
            Err(address) => {
                let access = Access { write: false, address, size: 1, space: "generic" };
                let notes = vec![
                    "`vprintf` reads its format, its arguments or a string".into(),
                    self.grid.memory.describe(address),
                ];
                Err(Failure { lane, kind: FaultKind::OutOfBounds(access), notes })
            }
        }
    }

    /// The address of new memory, or null if there is no room.
    fn malloc(&self, lane: usize) -> u64 {
        let (grid, bytes) = (self.grid, self.arg(0, lane));
        let address = grid.memory.heap_alloc(grid.reach(), bytes);
        if address != 0 {
            if grid.memory.origins().is_on() {
                grid.memory.origins().add(address, (self.thread)(lane), self.path);
            }
            if let Some(observer) = grid.observer {
                observer.allocated(address, bytes);
            }
        }
        address
    }

    fn free(&self, lane: usize) -> Result<u64, Failure> {
        let address = self.arg(0, lane);
        match self.grid.memory.heap_free(address, (self.thread)(lane), (self.path)()) {
            Ok(()) => Ok(0),
            Err(BadFree { twice, note }) => {
                Err(Failure { lane, kind: FaultKind::BadFree { address, twice }, notes: vec![note] })
            }
        }
    }

    fn assert_fail(&mut self, lane: usize) -> Failure {
        let [message, file, line, function] = [0, 1, 2, 3].map(|k| self.arg(k, lane));
        let [message, file, function] = [message, file, function].map(|at| text(at, lane, self.byte));
        Failure { lane, kind: FaultKind::Assert(message, file, line as u32, function), notes: Vec::new() }
    }
}

/// A string that ends with a zero byte, up to 1024 bytes of it.
fn text(at: u64, lane: usize, byte: &mut dyn FnMut(u64, usize) -> Option<u8>) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < 1024 {
        match byte(at.wrapping_add(bytes.len() as u64), lane) {
            Some(c) if c != 0 => bytes.push(c),
            _ => break,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
