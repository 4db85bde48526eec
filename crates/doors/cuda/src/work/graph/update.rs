//! Kernel nodes that device code may change (`CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE`; header `cuda_device_runtime_api.h`). Device
//! code knows such a node by the number of its handle. A change takes effect for the next time that the node runs: later in the same launch if
//! the node depends on the grid that changes it.

use super::{Exec, Graph, NodeRef};
use crate::{
    api::because,
    code::{Code, Outcome},
    driver::driver,
    handle::Handle,
    raw::Host,
    work::{Work, launch::attribute},
};
use margay_exec::device::Change;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak, atomic::Ordering::Relaxed},
};

/// The executable graphs that hold nodes which device code may change, by the number of the node: graph and node may be gone.
static HOLDERS: Mutex<BTreeMap<usize, Weak<Exec>>> = Mutex::new(BTreeMap::new());

/// Changes a node of the executable graph that its graph was instantiated to.
pub fn change(node: u64, change: Change) -> Outcome {
    let number = node as usize;
    let exec = HOLDERS.lock().get(&number).and_then(Weak::upgrade);
    exec.ok_or(Code::INVALID_VALUE)?.change(Handle::of(number), change)
}

impl Exec {
    /// Lets device code find it by those of its nodes that it may change.
    pub fn register(self: &Arc<Exec>) -> Outcome {
        let driver = driver()?;
        let mut holders = HOLDERS.lock();
        holders.retain(|_, exec| exec.strong_count() > 0);
        for step in self.steps.lock().iter() {
            if driver.nodes.get(step.node).is_ok_and(|node| node.updatable.load(Relaxed)) {
                holders.insert(step.node.number(), Arc::downgrade(self));
            }
        }
        Ok(())
    }

    /// Whether device code may change one of its nodes.
    pub fn is_updatable(&self) -> bool {
        let holders = HOLDERS.lock();
        holders.values().any(|exec| std::ptr::eq(exec.as_ptr(), self))
    }

    fn change(&self, node: Handle<NodeRef>, change: Change) -> Outcome {
        let mut steps = self.steps.lock();
        let step = steps.iter_mut().find(|step| step.node == node).ok_or(Code::INVALID_VALUE)?;
        let Work::Kernel(launch) = &mut step.work else { return Err(Code::INVALID_VALUE) };
        match change {
            Change::Enabled(enabled) => step.enabled = enabled,
            Change::Grid(grid) => {
                let mut changed = launch.clone();
                changed.shape.grid = grid;
                changed.check()?;
                *launch = changed;
            }
            Change::Parameter { offset, bytes } => {
                let range = usize::try_from(offset).ok().and_then(|at| Some(at..at.checked_add(bytes.len())?));
                let place = range.and_then(|range| launch.params.get_mut(range)).ok_or(Code::INVALID_VALUE)?;
                place.copy_from_slice(&bytes);
            }
        }
        Ok(())
    }
}

impl Handle<NodeRef> {
    /// Writes the handle for device code into an attribute's value (`CUlaunchAttributeValue`).
    pub fn write_device_node(self, value: Host) -> Outcome {
        value.offset(attribute::DEVICE_NODE).write(&(self.number() as u64).to_ne_bytes())
    }
}

impl NodeRef {
    /// Lets device code change the node, which must be a kernel's; this cannot be taken back.
    pub fn make_updatable(&self, wanted: u32) -> Outcome {
        match (wanted, &self.state.lock().work) {
            (1, Work::Kernel(_)) => {
                self.updatable.store(true, Relaxed);
                Ok(())
            }
            _ => {
                because(|| "`deviceUpdatable` can only be set to 1, for kernel nodes".into());
                Err(Code::INVALID_VALUE)
            }
        }
    }
}

impl Graph {
    /// Whether it has a node that device code may change, itself or in child graphs.
    pub fn is_updatable(&self) -> Result<bool, Code> {
        self.has_node(&|node| node.updatable.load(Relaxed))
    }

    /// Whether a node has a property, in the graph or in child graphs.
    pub fn has_node(&self, property: &dyn Fn(&NodeRef) -> bool) -> Result<bool, Code> {
        let driver = driver()?;
        for handle in self.nodes.lock().clone() {
            let node = driver.nodes.get(handle)?;
            if property(&node) {
                return Ok(true);
            }
            let inner = match &node.state.lock().work {
                Work::Inner(inner) => vec![inner.graph.clone()],
                Work::Conditional(conditional) => conditional.bodies.iter().map(|body| body.graph.clone()).collect(),
                _ => Vec::<Arc<Graph>>::new(),
            };
            for graph in inner {
                if graph.has_node(property)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
