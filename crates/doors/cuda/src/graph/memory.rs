//! Memory of graphs (CUDA Driver API, "Graph Management": memory nodes; CUDA C++ Programming Guide, "Graph Memory
//! Nodes"). The address is known when the node is created and the same in every launch, so the memory is allocated
//! then, and freed when neither a graph nor the program uses it.

use super::{Graph, NodeRef, nodes, params};
use crate::{
    api::api,
    code::{Code, Outcome},
    context::{Context, Owner},
    driver::{current, driver},
    handle::Handle,
    memory::{DevicePtr, allocate},
    raw::{Host, In, Out},
    work::Work,
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
};

/// Memory of an allocation node.
pub struct GraphMemory {
    context: Arc<Context>,
    /// Device address.
    pub address: DevicePtr,
    /// Requested size in bytes.
    pub bytes: usize,
    /// Allocated by a launch and not freed since.
    live: AtomicBool,
}

/// Memory of all graphs, by address.
#[derive(Default)]
pub struct GraphMemories {
    all: Mutex<BTreeMap<DevicePtr, Weak<GraphMemory>>>,
    most_used: AtomicU64,
    most_reserved: AtomicU64,
}

impl GraphMemories {
    fn all(&self) -> MutexGuard<'_, BTreeMap<DevicePtr, Weak<GraphMemory>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, address: DevicePtr) -> Option<Arc<GraphMemory>> {
        self.all().get(&address).and_then(Weak::upgrade)
    }

    /// Bytes allocated by launches, and bytes reserved for graphs.
    fn usage(&self) -> (u64, u64) {
        let all: Vec<_> = self.all().values().filter_map(Weak::upgrade).collect();
        let used = all.iter().filter(|m| m.live.load(SeqCst)).map(|m| m.bytes as u64).sum();
        (used, all.iter().map(|m| m.bytes as u64).sum())
    }

    fn note_usage(&self) {
        let (used, reserved) = self.usage();
        self.most_used.fetch_max(used, Relaxed);
        self.most_reserved.fetch_max(reserved, Relaxed);
    }

    /// Whether an address is that of a graph's memory.
    pub fn holds(&self, address: DevicePtr) -> bool {
        self.find(address).is_some()
    }

    /// Frees memory of a graph; `None` if the address belongs to none.
    pub fn free(&self, address: DevicePtr) -> Option<Outcome> {
        let memory = self.find(address)?;
        Some(if memory.live.swap(false, SeqCst) { Ok(()) } else { Err(Code::INVALID_VALUE) })
    }
}

impl GraphMemory {
    /// Reserves memory for a node.
    pub fn new(bytes: usize) -> Result<Arc<GraphMemory>, Code> {
        let (context, address) = (current()?, allocate(bytes, Owner::Device)?);
        let made = Arc::new(GraphMemory { context, address, bytes, live: AtomicBool::new(false) });
        let memories = &driver()?.graph_memories;
        memories.all().insert(address, Arc::downgrade(&made));
        memories.note_usage();
        Ok(made)
    }

    /// Performs the node's allocation; an error if the memory is still in use from an earlier launch.
    pub fn run(&self) -> Outcome {
        if self.live.swap(true, SeqCst) {
            return Err(Code::INVALID_VALUE);
        }
        driver()?.graph_memories.note_usage();
        Ok(())
    }

    /// Frees what an earlier launch has left (`CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`).
    pub fn forget(&self) {
        self.live.store(false, SeqCst);
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        if let Ok(driver) = driver() {
            driver.graph_memories.all().remove(&self.address);
        }
        // Memory that a launch allocated and did not free now belongs to the program.
        if !self.live.load(SeqCst) && self.context.memory().remove(&self.address).is_some() {
            let _ = self.context.device_memory().free(self.address); // the context may be gone
        }
    }
}

/// `CUgraphMem_attribute`
mod attribute {
    pub const USED: u32 = 0;
    pub const MOST_USED: u32 = 1;
    pub const RESERVED: u32 = 2;
    pub const MOST_RESERVED: u32 = 3;
}

api! {
    11040 fn cuGraphAddMemAllocNode(
        out: Out<Handle<NodeRef>>, to: Handle<Graph>, after: In<Handle<NodeRef>>, count: usize, params: Host,
    ) {
        nodes::add(out, to, after, count, params::allocation(params)?)
    }
    11040 fn cuGraphAddMemFreeNode(
        out: Out<Handle<NodeRef>>, to: Handle<Graph>, after: In<Handle<NodeRef>>, count: usize, address: DevicePtr,
    ) {
        nodes::add(out, to, after, count, Work::Free(address))
    }
    11040 fn cuGraphMemAllocNodeGetParams(node: Handle<NodeRef>, params: Host) {
        params::describe_allocation(&nodes::work_of(node)?, params)
    }
    11040 fn cuGraphMemFreeNodeGetParams(node: Handle<NodeRef>, address: Out<DevicePtr>) {
        match nodes::work_of(node)? {
            Work::Free(freed) => address.set(freed),
            _ => Err(Code::INVALID_VALUE),
        }
    }
    11040 fn cuDeviceGetGraphMemAttribute(device: i32, number: u32, value: Out<u64>) {
        crate::device::check(device)?;
        let memories = &driver()?.graph_memories;
        let (used, reserved) = memories.usage();
        value.set(match number {
            attribute::USED => used,
            attribute::MOST_USED => memories.most_used.load(Relaxed),
            attribute::RESERVED => reserved,
            attribute::MOST_RESERVED => memories.most_reserved.load(Relaxed),
            _ => return Err(Code::INVALID_VALUE),
        })
    }
    11040 fn cuDeviceSetGraphMemAttribute(device: i32, number: u32, value: Out<u64>) {
        crate::device::check(device)?;
        let memories = &driver()?.graph_memories;
        let (used, reserved) = memories.usage();
        match (number, value.get()?) {
            (attribute::MOST_USED, 0) => memories.most_used.store(used, Relaxed),
            (attribute::MOST_RESERVED, 0) => memories.most_reserved.store(reserved, Relaxed),
            _ => return Err(Code::INVALID_VALUE), // a high-water mark can only be taken back to now
        }
        Ok(())
    }
    11040 fn cuDeviceGraphMemTrim(device: i32) { crate::device::check(device) }
}
