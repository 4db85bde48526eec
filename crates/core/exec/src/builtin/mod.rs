//! Functions of the device library: `vprintf`, `malloc`, `free`, `__assertfail`, and what our device runtime is made of
//! ([`crate::device`]). Engines differ only in how they read a lane's memory.

mod printf;

use crate::{
    Access, FaultKind, Freer, Grid, LANES, device,
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

/// Calls a function for the lanes of `mask`. `args` holds its arguments by lane, `byte` reads a byte at a generic
/// address of a lane, `thread` identifies the thread of a lane, `path` says where the call is. Returns the results by lane, zeros for functions
/// without one.
pub fn call(
    builtin: Builtin,
    grid: &Grid<'_>,
    mask: u32,
    args: &[[u64; LANES]],
    byte: &mut dyn FnMut(u64, usize) -> Option<u8>,
    (thread, path): (&dyn Fn(usize) -> Freer, &dyn Fn() -> Path),
) -> Result<[u64; LANES], Failure> {
    let lanes = || (0..LANES).filter(|i| mask >> i & 1 == 1);
    let arg = |k: usize, lane: usize| args.get(k).map_or(0, |a| a[lane]);
    let mut results = [0; LANES];
    let pointer = u64::from(grid.image.ir.address_size / 8);
    match builtin {
        Builtin::Vprintf => {
            for i in lanes() {
                match format(arg(0, i), arg(1, i), pointer, |at| byte(at, i)) {
                    Ok((bytes, n)) => {
                        (grid.output)(&bytes);
                        results[i] = n.into();
                    }
                    Err(address) => {
                        let access = Access { write: false, address, size: 1, space: "generic" };
                        let notes = vec![
                            "`vprintf` reads its format, its arguments or a string".into(),
                            grid.memory.describe(address),
                        ];
                        return Err(Failure { lane: i, kind: FaultKind::OutOfBounds(access), notes });
                    }
                }
            }
        }
        Builtin::Malloc => {
            for i in lanes() {
                results[i] = grid.memory.heap_alloc(grid.reach(), arg(0, i));
                if grid.memory.origins().is_on() && results[i] != 0 {
                    grid.memory.origins().add(results[i], thread(i), path);
                }
                if let Some(observer) = grid.observer
                    && results[i] != 0
                {
                    observer.allocated(results[i], arg(0, i));
                }
            }
        }
        Builtin::Free => {
            for i in lanes() {
                let address = arg(0, i);
                if let Err(BadFree { twice, note }) = grid.memory.heap_free(address, thread(i), path()) {
                    return Err(Failure { lane: i, kind: FaultKind::BadFree { address, twice }, notes: vec![note] });
                }
            }
        }
        Builtin::AssertFail => {
            let lane = lanes().next().unwrap_or(0);
            let [message, file, function] = [0, 1, 3].map(|k| text(arg(k, lane), lane, byte));
            let kind = FaultKind::Assert(message, file, arg(2, lane) as u32, function);
            return Err(Failure { lane, kind, notes: Vec::new() });
        }
        Builtin::ParameterBytes => lanes().for_each(|i| results[i] = device::parameter_bytes(grid.image, arg(0, i))),
        Builtin::Launch => lanes().for_each(|i| results[i] = device::launch(grid, arg(0, i), arg(1, i), thread(i))),
        Builtin::Copy => {
            for i in lanes() {
                let work = device::Work::Copy { to: arg(0, i), from: arg(1, i), bytes: arg(2, i) };
                results[i] = grid.queued.push(work, grid.queued.origin(thread(i), arg(3, i)));
            }
        }
        Builtin::Fill => {
            for i in lanes() {
                let work = device::Work::Fill { to: arg(0, i), byte: arg(1, i) as u8, bytes: arg(2, i) };
                results[i] = grid.queued.push(work, grid.queued.origin(thread(i), arg(3, i)));
            }
        }
        Builtin::LaunchGraph => {
            lanes().for_each(|i| results[i] = device::launch_graph(grid, arg(0, i), arg(1, i), thread(i)));
        }
        Builtin::Ask => lanes().for_each(|i| results[i] = device::ask(grid, [0, 1, 2, 3].map(|k| arg(k, i)))),
        Builtin::UpdateNode => {
            for i in lanes() {
                let [node, field, data @ ..] = [0, 1, 2, 3, 4].map(|k| arg(k, i));
                results[i] = device::update_node(grid, node, field, data, &mut |at| byte(at, i));
            }
        }
        Builtin::LastError => lanes().for_each(|i| results[i] = grid.queued.last_error(thread(i), arg(0, i) != 0)),
    }
    Ok(results)
}

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
