//! Memory of graphs (CUDA Driver API, "Graph Management": memory nodes; CUDA C++ Programming Guide, "Graph Memory
//! Nodes"). The address is known when the node is created and the same in every launch, so the memory is allocated
//! then, and freed when neither a graph nor the program uses it.

use super::{Graph, NodeRef, nodes, params};
use crate::{
    api::{api, because},
    code::{Code, Outcome},
    context::{Context, Owner},
    driver::{current, driver},
    handle::Handle,
    memory::{DevicePtr, allocate},
    raw::{Host, In, Out},
    work::Work,
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc, Weak,
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
    /// Allocated by a launch that has run, and not freed by anything that has run since.
    live: AtomicBool,
    /// The same by what calls have submitted: the program learns from the call that it allocates or frees twice.
    claimed: AtomicBool,
}

/// Memory of all graphs, by address.
#[derive(Default)]
pub struct GraphMemories {
    all: Mutex<BTreeMap<DevicePtr, Weak<GraphMemory>>>,
    /// The bytes that a GPU's driver would have reserved: launches reserve what they allocate, and only trimming returns it
    /// (CUDA C++ Programming Guide, "Physical Memory Management Performance").
    reserved: AtomicU64,
    most_used: AtomicU64,
    most_reserved: AtomicU64,
}

impl GraphMemories {
    fn find(&self, address: DevicePtr) -> Option<Arc<GraphMemory>> {
        self.all.lock().get(&address).and_then(Weak::upgrade)
    }

    /// Bytes that launches allocate and nothing frees.
    fn claimed(&self) -> u64 {
        let all: Vec<_> = self.all.lock().values().filter_map(Weak::upgrade).collect();
        all.iter().filter(|m| m.claimed.load(SeqCst)).map(|m| m.bytes as u64).sum()
    }

    fn note_usage(&self) {
        let reserved = self.reserved.fetch_max(self.claimed(), Relaxed).max(self.claimed());
        self.most_used.fetch_max(reserved, Relaxed);
        self.most_reserved.fetch_max(reserved, Relaxed);
    }

    /// A call frees memory of a graph, for which it must be allocated; `None` if the address belongs to none.
    pub fn release(&self, address: DevicePtr) -> Option<Outcome> {
        let memory = self.find(address)?;
        Some(if memory.claimed.swap(false, SeqCst) { Ok(()) } else { Err(Code::INVALID_VALUE) })
    }

    /// Frees memory of a graph, in the order of a stream; whether the address belongs to one.
    pub fn free(&self, address: DevicePtr) -> bool {
        let memory = self.find(address);
        memory.inspect(|memory| memory.live.store(false, SeqCst)).is_some()
    }

    /// A launch performs the allocations and frees of its graph's steps, in order. If memory of an earlier launch is still allocated, or memory
    /// to be freed is not, this is an error of the call, and nothing changes.
    pub fn claim(&self, steps: &[Work]) -> Outcome {
        let mut states: HashMap<DevicePtr, bool> = HashMap::new();
        for step in steps {
            let (memory, allocates) = match step {
                Work::Alloc(memory) => (Some(memory.clone()), true),
                Work::Free(address) => (self.find(*address), false),
                _ => continue,
            };
            let Some(memory) = memory else { continue };
            let state = states.entry(memory.address).or_insert_with(|| memory.claimed.load(SeqCst));
            if *state == allocates {
                because(|| match allocates {
                    true => "memory that an earlier launch of the graph allocated was not freed".into(),
                    false => format!("the graph frees {:#x}, which is not allocated", memory.address),
                });
                return Err(Code::INVALID_VALUE);
            }
            *state = allocates;
        }
        for step in steps {
            match step {
                Work::Alloc(memory) => {
                    memory.claimed.store(true, SeqCst);
                    self.note_usage();
                }
                Work::Free(address) => drop(self.release(*address)),
                _ => {}
            }
        }
        Ok(())
    }
}

impl GraphMemory {
    /// Reserves memory for a node.
    fn new(bytes: usize) -> Result<Arc<GraphMemory>, Code> {
        let (context, address) = (current()?, allocate(bytes, Owner::Device)?);
        let made = Arc::new(GraphMemory {
            context,
            address,
            bytes,
            live: AtomicBool::new(false),
            claimed: AtomicBool::new(false),
        });
        driver()?.graph_memories.all.lock().insert(address, Arc::downgrade(&made));
        Ok(made)
    }

    /// Memory for a new node of a graph with the given dependencies: memory of this size that other nodes allocate and have
    /// freed by then (CUDA C++ Programming Guide, "Address Reuse within a Graph"), or new memory.
    pub fn for_node(graph: &Graph, after: &[Handle<NodeRef>], bytes: usize) -> Result<Arc<GraphMemory>, Code> {
        graph.freed_before(after, bytes)?.map_or_else(|| GraphMemory::new(bytes), Ok)
    }

    /// Performs the node's allocation.
    pub fn run(&self) {
        self.live.store(true, SeqCst);
    }

    /// A launch frees what an earlier one has left (`CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`).
    pub fn forget(&self) {
        self.claimed.store(false, SeqCst);
    }
}

impl Graph {
    /// Memory of a size that is free whenever nodes after these run: all nodes of the graph that allocate or free it are
    /// among their predecessors. Graphs with such nodes lose neither nodes nor edges.
    fn freed_before(&self, after: &[Handle<NodeRef>], bytes: usize) -> Result<Option<Arc<GraphMemory>>, Code> {
        let driver = driver()?;
        let (mut before, mut next) = (HashSet::new(), after.to_vec());
        while let Some(node) = next.pop() {
            if before.insert(node.number()) {
                next.extend(driver.nodes.get(node)?.state.lock().after.iter().copied());
            }
        }
        // The memory of this size, and its allocations less its frees; `None` if one of them may run later.
        let mut found: Vec<(Arc<GraphMemory>, Option<i64>)> = Vec::new();
        for handle in self.nodes.lock().clone() {
            let (address, change) = match &driver.nodes.get(handle)?.state.lock().work {
                Work::Alloc(memory) if memory.bytes == bytes => {
                    if !found.iter().any(|(known, _)| Arc::ptr_eq(known, memory)) {
                        found.push((memory.clone(), Some(0)));
                    }
                    (memory.address, 1)
                }
                Work::Free(address) => (*address, -1),
                _ => continue,
            };
            if let Some((_, count)) = found.iter_mut().find(|(memory, _)| memory.address == address) {
                *count = count.filter(|_| before.contains(&handle.number())).map(|count| count + change);
            }
        }
        Ok(found.into_iter().find(|(_, count)| *count == Some(0)).map(|(memory, _)| memory))
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        if let Ok(driver) = driver() {
            driver.graph_memories.all.lock().remove(&self.address);
        }
        // Memory that a launch allocated and did not free now belongs to the program.
        if !self.live.load(SeqCst) && self.context.allocations.lock().remove(&self.address).is_some() {
            let _ = self.context.device_memory().free(self.address); // the context may be gone
        }
    }
}

/// `CUgraphMem_attribute`
mod attribute {
    pub const USED: u32 = 0;
    pub const MAX_USED: u32 = 1;
    pub const RESERVED: u32 = 2;
    pub const MAX_RESERVED: u32 = 3;
}

api! {
    11040 fn cuGraphAddMemAllocNode(
        out: Out<Handle<NodeRef>>, to: Handle<Graph>, after: In<Handle<NodeRef>>, count: usize, params: Host,
    ) {
        nodes::add_allocation(out, to, after, count, params)
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
        value.set(match number {
            attribute::USED | attribute::RESERVED => memories.reserved.load(Relaxed),
            attribute::MAX_USED => memories.most_used.load(Relaxed),
            attribute::MAX_RESERVED => memories.most_reserved.load(Relaxed),
            _ => return Err(Code::INVALID_VALUE),
        })
    }
    11040 fn cuDeviceSetGraphMemAttribute(device: i32, number: u32, value: Out<u64>) {
        crate::device::check(device)?;
        let memories = &driver()?.graph_memories;
        let now = memories.reserved.load(Relaxed);
        match (number, value.get()?) {
            (attribute::MAX_USED, 0) => memories.most_used.store(now, Relaxed),
            (attribute::MAX_RESERVED, 0) => memories.most_reserved.store(now, Relaxed),
            _ => return Err(Code::INVALID_VALUE), // a high-water mark can only be taken back to now
        }
        Ok(())
    }
    11040 fn cuDeviceGraphMemTrim(device: i32) {
        crate::device::check(device)?;
        let memories = &driver()?.graph_memories;
        memories.reserved.store(memories.claimed(), Relaxed);
        Ok(())
    }
}
