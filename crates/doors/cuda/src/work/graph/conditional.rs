//! Conditional nodes (CUDA C++ Programming Guide, "Conditional Graph Nodes"): their bodies run depending on a value
//! that kernels set by `cudaGraphSetConditional`. The handle of a value is the address of a word of device memory, so
//! the device function is a store (`image/devrt.ptx`).

use super::{Exec, Graph, Inner};
use crate::{
    api::api,
    code::{Code, Outcome},
    context::{Context, Owner},
    driver::{current, driver},
    handle::Handle,
    memory::{DevicePtr, allocate},
    raw::Out,
};
use std::sync::Arc;

/// `CUgraphConditionalNodeType`
mod kind {
    pub const IF: u32 = 0;
    pub const WHILE: u32 = 1;
    pub const SWITCH: u32 = 2;
}

/// The value of conditional nodes.
pub struct Condition {
    /// Its device address, which is its handle.
    pub word: DevicePtr,
    /// The value at the start of every launch, if any.
    default: Option<u32>,
}

impl Condition {
    /// The condition with this handle.
    pub fn find(word: u64) -> Result<Arc<Condition>, Code> {
        let conditions = driver()?.conditions.lock();
        conditions.get(&word).cloned().ok_or(Code::INVALID_VALUE)
    }

    fn value(&self, context: &Context) -> Result<u32, Code> {
        let mut bytes = [0; 4];
        context.device_memory().read(self.word, &mut bytes).map_err(|_| Code::INVALID_VALUE)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    fn reset(&self, context: &Context) -> Outcome {
        let Some(value) = self.default else { return Ok(()) };
        context.device_memory().write(self.word, &value.to_ne_bytes()).map_err(|_| Code::INVALID_VALUE)
    }
}

/// A conditional node.
pub struct Conditional {
    /// The value it depends on.
    pub condition: Arc<Condition>,
    /// Its kind.
    pub kind: u32,
    /// Its body graphs.
    pub bodies: Vec<Arc<Inner>>,
    handles: Box<[Handle<Graph>]>,
}

impl Conditional {
    /// Creates a node with empty bodies.
    pub fn new(condition: Arc<Condition>, kind: u32, count: u32) -> Result<Conditional, Code> {
        let fits = match kind {
            kind::IF => matches!(count, 1 | 2),
            kind::WHILE => count == 1,
            kind::SWITCH => count > 0,
            _ => false,
        };
        if !fits {
            return Err(Code::INVALID_VALUE);
        }
        let bodies = (0..count).map(|_| Inner::new(Arc::default())).collect::<Result<_, _>>()?;
        Ok(Conditional::with(condition, kind, bodies))
    }

    fn with(condition: Arc<Condition>, kind: u32, bodies: Vec<Arc<Inner>>) -> Conditional {
        let handles = bodies.iter().map(|b| b.handle).collect();
        Conditional { condition, kind, bodies, handles }
    }

    /// Copies the node with its bodies.
    pub fn copy(&self) -> Result<Conditional, Code> {
        let bodies = self.bodies.iter().map(|b| Inner::new(b.graph.copy()?)).collect::<Result<_, Code>>()?;
        Ok(Conditional::with(self.condition.clone(), self.kind, bodies))
    }

    /// The bodies as a C array that lives as long as the node.
    pub fn graphs_for_c(&self) -> u64 {
        self.handles.as_ptr().expose_provenance() as u64
    }

    /// Instantiates the node.
    pub fn branch(&self) -> Result<Branch, Code> {
        let bodies = self.bodies.iter().map(|b| Exec::new(&b.graph, 0)).collect::<Result<_, _>>()?;
        Ok(Branch { condition: self.condition.clone(), kind: self.kind, bodies })
    }
}

/// A conditional node of an executable graph.
pub struct Branch {
    condition: Arc<Condition>,
    kind: u32,
    /// Its bodies.
    pub bodies: Vec<Arc<Exec>>,
}

impl Branch {
    /// Resets the values for a launch, here and in the bodies.
    pub fn reset(&self, context: &Arc<Context>) -> Outcome {
        self.condition.reset(context)?;
        self.bodies.iter().try_for_each(|body| body.reset(context))
    }

    /// Runs the bodies that the value selects.
    pub fn run(&self, context: &Arc<Context>) -> Outcome {
        let value = self.condition.value(context)?;
        let chosen = match (self.kind, value) {
            (kind::WHILE, _) => {
                while self.condition.value(context)? != 0 {
                    self.bodies[0].run(context)?;
                }
                return Ok(());
            }
            (kind::IF, 0) => 1,
            (kind::IF, _) => 0,
            (_, value) => value as usize,
        };
        self.bodies.get(chosen).map_or(Ok(()), |body| body.run(context))
    }
}

api! {
    12030 fn cuGraphConditionalHandleCreate(
        out: Out<u64>, graph: Handle<Graph>, _context: Handle<Context>, default: u32, flags: u32,
    ) {
        const ASSIGN_DEFAULT: u32 = 1;
        driver()?.graphs.get(graph)?;
        let context = current()?;
        let word = allocate(4, Owner::Device)?;
        let default = (flags & ASSIGN_DEFAULT != 0).then_some(default);
        // An unset value is undefined; zero runs nothing.
        Condition { word, default: default.or(Some(0)) }.reset(&context)?;
        let condition = Condition { word, default };
        let mut conditions = driver()?.conditions.lock();
        conditions.insert(word, Arc::new(condition));
        out.set(word)
    }
}
