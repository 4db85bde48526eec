//! Conversion of node parameters (CUDA Driver API, `CUDA_*_NODE_PARAMS`) from and to C structures.

use super::{
    Graph, Inner, NodeRef,
    conditional::{Condition, Conditional},
    memory::GraphMemory,
};
use crate::{
    code::{Code, Outcome},
    context::Context,
    driver::driver,
    handle::Handle,
    memory::copy::Copy3d,
    module::function::Function,
    raw::{Callback, Host, In, UserData},
    work::{
        Fill, Work,
        event::Event,
        launch::{self, Launch},
        memory_operation::Batch,
    },
};
use bytemuck::AnyBitPattern;
use margay_exec::LaunchShape;
use std::sync::Arc;

/// `CUgraphNodeType`
pub mod kind {
    pub const KERNEL: u32 = 0;
    pub const COPY: u32 = 1;
    pub const FILL: u32 = 2;
    pub const HOST: u32 = 3;
    pub const GRAPH: u32 = 4;
    pub const EMPTY: u32 = 5;
    pub const WAIT: u32 = 6;
    pub const RECORD: u32 = 7;
    pub const ALLOC: u32 = 10;
    pub const FREE: u32 = 11;
    pub const MEMORY: u32 = 12;
    pub const CONDITIONAL: u32 = 13;
}

/// The node type of some work.
pub fn kind_of(work: &Work) -> u32 {
    match work {
        Work::Kernel(_) => kind::KERNEL,
        Work::Copy(_) => kind::COPY,
        Work::Fill(_) => kind::FILL,
        Work::Host(..) => kind::HOST,
        Work::Inner(_) | Work::Graph(_) => kind::GRAPH,
        Work::Nothing => kind::EMPTY,
        Work::Wait(_) => kind::WAIT,
        Work::Record(_) => kind::RECORD,
        Work::Alloc(_) => kind::ALLOC,
        Work::Free(_) => kind::FREE,
        Work::Memory(_) => kind::MEMORY,
        Work::Conditional(_) | Work::Branch(_) => kind::CONDITIONAL,
    }
}

/// `CUDA_KERNEL_NODE_PARAMS`, first version.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct KernelNode {
    function: Handle<Function>,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    params: In<u64>,
    extra: In<u64>,
}

/// `CUDA_KERNEL_NODE_PARAMS`, later versions: may have a kernel instead of a function.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct KernelNode2 {
    first: KernelNode,
    kernel: Handle<Function>,
    context: Handle<Context>,
}

impl KernelNode {
    /// The launch that the structure describes.
    pub fn work(&self) -> Result<Work, Code> {
        let shape = launch::shape(self.grid, self.block, self.shared);
        Ok(Work::Kernel(Launch::new(self.function, shape, self.params, self.extra)?))
    }

    /// Describes the launch of a node. The arguments belong to the node.
    pub fn of(node: &NodeRef) -> Result<KernelNode, Code> {
        let state = node.state.lock();
        let Work::Kernel(launch) = &state.work else { return Err(Code::INVALID_VALUE) };
        let mut arguments = node.arguments.lock();
        let given = match &*arguments {
            Some(given) => given,
            None => arguments.insert(Arguments::of(launch)?),
        };
        let function = driver()?.functions.find(|f| std::ptr::eq(f, &*launch.function)).ok_or(Code::INVALID_HANDLE)?;
        let LaunchShape { grid, block, shared, .. } = launch.shape;
        let params = In::list_of(&given.addresses);
        Ok(KernelNode { function, grid, block, shared, params, extra: In::null() })
    }
}

impl KernelNode2 {
    /// The launch that the structure describes.
    pub fn work(&self) -> Result<Work, Code> {
        let function = if self.first.function.is_null() { self.kernel } else { self.first.function };
        KernelNode { function, ..self.first }.work()
    }

    /// Describes the launch of a node.
    pub fn of(node: &NodeRef) -> Result<KernelNode2, Code> {
        let first = KernelNode::of(node)?;
        let function = driver()?.functions.get(first.function)?;
        let kernel = driver()?.kernels.find(|k| k.has(&function)).map_or(Handle::NULL, |k| Handle::of(k.number()));
        Ok(KernelNode2 { first, kernel, context: Handle::NULL })
    }
}

/// Arguments of a kernel as C sees them: values, and the address of each. The program may write to them.
pub struct Arguments {
    _values: Box<[u64]>,
    addresses: Box<[u64]>,
}

impl Arguments {
    fn of(launch: &Launch) -> Result<Arguments, Code> {
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_ne_bytes(word)
        };
        let values: Box<[u64]> = launch.params.chunks(8).map(word).collect();
        let first = values.as_ptr().expose_provenance() as u64;
        let addresses = launch.function.kernel()?.params().iter().map(|p| first + u64::from(p.offset)).collect();
        Ok(Arguments { _values: values, addresses })
    }
}

/// `CUDA_MEMSET_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct FillNode {
    to: u64,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
}

impl FillNode {
    /// The fill that the structure describes.
    pub fn work(&self) -> Result<Work, Code> {
        let FillNode { to, pitch, value, element, width, height } = *self;
        if !matches!(element, 1 | 2 | 4) {
            return Err(Code::INVALID_VALUE);
        }
        let pattern = value.to_le_bytes()[..element as usize].into();
        Ok(Work::Fill(Fill { to, pattern, pitch: pitch as u64, width: width as u64, height: height as u64 }))
    }

    /// Describes a fill.
    pub fn of(work: &Work) -> Result<FillNode, Code> {
        let Work::Fill(Fill { to, pattern, pitch, width, height }) = work else { return Err(Code::INVALID_VALUE) };
        let mut value = [0; 4];
        value[..pattern.len()].copy_from_slice(pattern);
        let (pitch, width, height) = (*pitch as usize, *width as usize, *height as usize);
        Ok(FillNode { to: *to, pitch, value: u32::from_le_bytes(value), element: pattern.len() as u32, width, height })
    }
}

/// `CUDA_HOST_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct HostNode {
    function: Callback,
    data: UserData,
}

impl HostNode {
    /// The call that the structure describes.
    pub fn work(&self) -> Work {
        Work::Host(self.function, self.data)
    }

    /// Describes a host call.
    pub fn of(work: &Work) -> Result<HostNode, Code> {
        match work {
            Work::Host(function, data) => Ok(HostNode { function: *function, data: *data }),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

/// Describes a copy.
pub fn copy_of(work: &Work) -> Result<Copy3d, Code> {
    match work {
        Work::Copy(copy) => Copy3d::of(copy),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// The event that some work records or waits for.
pub fn event_of(work: &Work, wanted: u32) -> Result<Handle<Event>, Code> {
    let event = match work {
        Work::Record(event) | Work::Wait(event) if kind_of(work) == wanted => event,
        _ => return Err(Code::INVALID_VALUE),
    };
    driver()?.events.find(|e| std::ptr::eq(e, &**event)).ok_or(Code::INVALID_HANDLE)
}

/// `CUgraphNodeParams`: the type, and at this offset a union of the structures of all types.
const UNION: usize = 16;
/// `CUDA_MEMCPY_NODE_PARAMS`: flags and a context precede the copy.
const COPY: usize = UNION + 16;

/// Offsets in `CUDA_MEM_ALLOC_NODE_PARAMS` of the size and of the address returned.
mod alloc {
    pub const BYTES: usize = 104;
    pub const ADDRESS: usize = 112;
}

/// Offsets in `CUDA_CONDITIONAL_NODE_PARAMS` of type, number of bodies, and graphs returned.
mod conditional {
    pub const KIND: usize = 8;
    pub const COUNT: usize = 12;
    pub const GRAPHS: usize = 16;
}

/// Allocates the memory that `CUDA_MEM_ALLOC_NODE_PARAMS` describes and returns its address there.
pub fn allocation(params: Host, graph: &Graph, after: &[Handle<NodeRef>]) -> Result<Work, Code> {
    let memory = GraphMemory::for_node(graph, after, params.value(alloc::BYTES)?)?;
    params.set_value(alloc::ADDRESS, memory.address)?;
    Ok(Work::Alloc(memory))
}

/// The `CUDA_MEM_ALLOC_NODE_PARAMS` in a `CUgraphNodeParams` of an allocation.
pub fn allocated_by(params: Host) -> Result<Option<Host>, Code> {
    Ok((params.value::<u32>(0)? == kind::ALLOC).then(|| params.offset(UNION)))
}

/// Writes the `CUDA_MEM_ALLOC_NODE_PARAMS` of some work.
pub fn describe_allocation(work: &Work, params: Host) -> Outcome {
    let Work::Alloc(memory) = work else { return Err(Code::INVALID_VALUE) };
    params.write(&[0; 120])?;
    params.set_value(0, [1u32, 0, 1, 0])?; // pinned, without handles, on device 0
    params.set_value(alloc::BYTES, memory.bytes)?;
    params.set_value(alloc::ADDRESS, memory.address)
}

/// The work that `CUgraphNodeParams` describes; results of node creation are written there.
pub fn work(params: Host) -> Result<Work, Code> {
    let of = params.offset(UNION);
    Ok(match params.value::<u32>(0)? {
        kind::KERNEL => of.value::<KernelNode2>(0)?.work()?,
        kind::COPY => Work::Copy(params.value::<Copy3d>(COPY)?.copy()?),
        kind::FILL => of.value::<FillNode>(0)?.work()?,
        kind::HOST => of.value::<HostNode>(0)?.work(),
        kind::GRAPH => {
            const MOVED: u32 = 1;
            let handle = of.value(0)?;
            match of.value::<u32>(8)? {
                MOVED => Work::Inner(Inner::adopt(handle)?),
                _ => Work::Inner(Inner::copied(handle)?),
            }
        }
        kind::EMPTY => Work::Nothing,
        kind::WAIT => Work::Wait(driver()?.events.get(of.value(0)?)?),
        kind::RECORD => Work::Record(driver()?.events.get(of.value(0)?)?),
        kind::FREE => Work::Free(of.value(0)?),
        kind::MEMORY => of.value::<Batch>(0)?.work()?,
        kind::CONDITIONAL => {
            let condition = Condition::find(of.value(0)?)?;
            let made = Conditional::new(condition, of.value(conditional::KIND)?, of.value(conditional::COUNT)?)?;
            of.set_value(conditional::GRAPHS, made.graphs_for_c())?;
            Work::Conditional(Arc::new(made))
        }
        _ => return Err(Code::NOT_SUPPORTED),
    })
}

/// Writes the `CUgraphNodeParams` of a node.
pub fn describe(node: &NodeRef, params: Host) -> Outcome {
    let work = node.state.lock().work.clone();
    let of = params.offset(UNION);
    params.write(&[0; 256])?;
    params.set_value(0, kind_of(&work))?;
    match &work {
        Work::Kernel(_) => of.set_value(0, KernelNode2::of(node)?),
        Work::Copy(_) => params.set_value(COPY, copy_of(&work)?),
        Work::Fill(_) => of.set_value(0, FillNode::of(&work)?),
        Work::Host(..) => of.set_value(0, HostNode::of(&work)?),
        Work::Inner(inner) => of.set_value(0, inner.handle),
        Work::Record(_) | Work::Wait(_) => of.set_value(0, event_of(&work, kind_of(&work))?),
        Work::Alloc(_) => describe_allocation(&work, of),
        Work::Free(address) => of.set_value(0, *address),
        Work::Memory(_) => of.set_value(0, Batch::of(&work)?),
        Work::Conditional(made) => {
            of.set_value(0, made.condition.word)?;
            of.set_value(conditional::KIND, made.kind)?;
            of.set_value(conditional::COUNT, made.bodies.len() as u32)?;
            of.set_value(conditional::GRAPHS, made.graphs_for_c())
        }
        Work::Nothing | Work::Graph(_) | Work::Branch(_) => Ok(()),
    }
}
