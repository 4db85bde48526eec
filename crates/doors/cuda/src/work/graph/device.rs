//! Launches of graphs by device code (CUDA C++ Programming Guide, "Device Graph Launch").
//!
//! A graph that a kernel launches runs when the kernel's own graph has ended: no kernel can wait for it, so this is one of the orders that
//! the guide allows. First come the graphs that are launched as independent of it ("fire and forget"), each with all that it launches in
//! turn; then those of the tail launch, which the guide orders like that: a tail launch by one of them precedes the rest of the list.

use super::Exec;
use crate::{code::Outcome, context::Context, driver::driver, handle::Handle};
use std::{cell::RefCell, sync::Arc};

/// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`
const DEVICE_LAUNCH: u64 = 4;

thread_local! {
    /// The graph that runs on this thread.
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

/// A graph that runs, and what its kernels have launched.
struct Running {
    graph: u64,
    launched: Vec<Launched>,
    tail: Vec<Launched>,
}

/// A graph with its handle.
struct Launched {
    graph: u64,
    exec: Arc<Exec>,
}

/// The handle of the graph that runs on this thread; 0 if there is none.
pub fn current() -> u64 {
    RUNNING.try_with(|running| running.borrow().as_ref().map_or(0, |r| r.graph)).unwrap_or(0) // it is destroyed as the process exits
}

/// Notes a launch by a kernel of the running graph; else returns why it is impossible.
pub fn launch_later(graph: u64, tail: bool) -> Result<(), String> {
    let found = driver().and_then(|driver| driver.execs.find_number(graph as usize));
    let exec = found.map_err(|_| format!("device code launches a graph, but {graph:#x} is not an executable graph"))?;
    if exec.flags & DEVICE_LAUNCH == 0 {
        return Err(
            "device code launches a graph that was instantiated without `cudaGraphInstantiateFlagDeviceLaunch`".into(),
        );
    }
    const ALONE: &str = "device code launches a graph, but its kernel is not part of one";
    let noted = RUNNING.try_with(|running| {
        let mut running = running.borrow_mut();
        let running = running.as_mut().ok_or(ALONE)?;
        if tail { &mut running.tail } else { &mut running.launched }.push(Launched { graph, exec });
        Ok(())
    });
    noted.unwrap_or_else(|_| Err(ALONE.into()))
}

/// Launches a graph, and all that its kernels launch.
pub fn launch(graph: Handle<Exec>, exec: Arc<Exec>, context: &Arc<Context>) -> Outcome {
    let mut next = vec![Launched { graph: graph.number() as u64, exec }];
    while let Some(Launched { graph, exec }) = next.pop() {
        let running = Running { graph, launched: Vec::new(), tail: Vec::new() };
        let _ = RUNNING.try_with(|current| current.replace(Some(running)));
        let ended = exec.launch(context);
        let running = RUNNING.try_with(RefCell::take);
        ended?;
        if let Ok(Some(Running { launched, tail, .. })) = running {
            next.extend(tail.into_iter().rev());
            next.extend(launched.into_iter().rev());
        }
    }
    Ok(())
}
