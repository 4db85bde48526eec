//! The driver of a process: its device, its objects by handle, and the context stack of each thread.

use crate::{
    code::{Code, Outcome},
    context::Context,
    green::{Descriptor, Green},
    handle::{Handle, Table},
    memory::{
        advice::Advice,
        ipc::Ipc,
        pool::{Defaults, Pool, Pooled, Source},
        references::{SurfaceReference, TextureReference},
        texture::{ArrayObject, Surface, Texture},
        virtual_memory::{AddressSpace, Physical},
    },
    module::{
        Module,
        function::Function,
        library::{Library, LibraryKernel},
        link::Link,
    },
    raw::is_forked,
    visible::count,
    work::{
        event::Event,
        graph::{Condition, Exec, Graph, GraphMemories, NodeRef, UserObject},
        stream::Stream,
    },
};
use margay_runtime::Device;
use parking_lot::{Mutex, MutexGuard};
use std::{
    cell::{Cell, RefCell},
    sync::{
        Arc, Once, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// The state of the driver.
pub struct Driver {
    /// The device that runs kernels; all devices that programs see share it.
    pub device: Arc<Device>,
    /// Contexts.
    pub contexts: Table<Context>,
    /// Green contexts, whose handles also denote contexts ([`Driver::context`]).
    pub greens: Table<Green>,
    /// Descriptors of resources, from which green contexts are made.
    pub descriptors: Table<Descriptor>,
    /// Modules.
    pub modules: Table<Module>,
    /// Libraries, which belong to no context.
    pub libraries: Table<Library>,
    /// Kernels of libraries, whose handles the API accepts in place of functions' ([`crate::module::function::get`]).
    pub kernels: Table<LibraryKernel>,
    /// Functions of modules.
    pub functions: Table<Function>,
    /// Created streams.
    pub streams: Table<Stream>,
    /// Events.
    pub events: Table<Event>,
    /// Links in progress.
    pub links: Table<Link>,
    /// Memory pools.
    pub pools: Table<Pool>,
    /// Graphs.
    pub graphs: Table<Graph>,
    /// Nodes of all graphs.
    pub nodes: Table<NodeRef>,
    /// User objects of graphs.
    pub user_objects: Table<UserObject>,
    /// Executable graphs.
    pub execs: Table<Exec>,
    /// Memory of allocation nodes.
    pub graph_memories: GraphMemories,
    /// Values of conditional nodes, by address.
    pub conditions: Mutex<std::collections::HashMap<u64, Arc<Condition>>>,
    /// Arrays and mipmap levels.
    pub arrays: Table<ArrayObject>,
    /// Textures by device handle.
    pub textures: Mutex<std::collections::HashMap<u64, Texture>>,
    /// Texture references of modules.
    pub texture_references: Table<TextureReference>,
    /// Surface references of modules.
    pub surface_references: Table<SurfaceReference>,
    /// Surfaces by device handle.
    pub surfaces: Mutex<std::collections::HashMap<u64, Surface>>,
    /// The default memory pools.
    pub default_pools: Defaults,
    /// The pools of allocations that do not name one.
    pub current_pools: Mutex<Defaults>,
    /// Allocations from pools.
    pub pooled: Pooled,
    /// Advice about managed memory.
    pub advice: Mutex<Vec<Advice>>,
    /// Physical memory allocations (`cuMemCreate`).
    pub physical: Table<Physical>,
    /// Reserved address ranges.
    pub address_space: Mutex<AddressSpace>,
    /// Memory of this process that others share, and of others that this one maps.
    pub ipc: Mutex<Ipc>,
    /// Primary contexts by device number.
    primaries: Vec<Mutex<Primary>>,
}

/// The primary context of a device.
#[derive(Default)]
struct Primary {
    /// Null before the first use, and the same after every reset: programs keep it.
    handle: Handle<Context>,
    is_active: bool,
    users: u32,
    flags: u32,
}

static INITIALIZED: AtomicBool = AtomicBool::new(false);

/// `cuInit`: creates the driver unless it exists.
pub fn initialize() -> Outcome {
    if is_forked() {
        return Err(Code::NOT_INITIALIZED);
    }
    driver_or_error()?;
    static OPENED: Once = Once::new();
    OPENED.call_once(|| {
        crate::process::account::open();
        crate::raw::watch_forks();
    });
    INITIALIZED.store(true, Relaxed);
    Ok(())
}

/// The driver; an error before `cuInit`.
pub fn driver() -> Result<&'static Driver, Code> {
    match INITIALIZED.load(Relaxed) && !is_forked() {
        true => driver_or_error(),
        false => Err(Code::NOT_INITIALIZED),
    }
}

/// Reports leaks and unused memory of all contexts at the end of the process.
pub fn look_for_leaks() {
    if let Ok(driver) = driver() {
        driver.contexts.each(|context| {
            crate::checks::watch::leaks(context);
            crate::checks::usage::left(context);
        });
    }
}

fn driver_or_error() -> Result<&'static Driver, Code> {
    static DRIVER: OnceLock<Result<Driver, Code>> = OnceLock::new();
    DRIVER.get_or_init(Driver::new).as_ref().map_err(|code| *code)
}

impl Driver {
    fn new() -> Result<Driver, Code> {
        let device = margay::device().map_err(|e| Code::from(&e))?;
        let pools = Table::default();
        let default_pools = Source::ALL.map(|source| pools.add(Pool::default_of(source)));
        Ok(Driver {
            device,
            contexts: Table::default(),
            greens: Table::default(),
            descriptors: Table::default(),
            modules: Table::default(),
            libraries: Table::default(),
            kernels: Table::default(),
            functions: Table::default(),
            streams: Table::default(),
            events: Table::default(),
            links: Table::default(),
            pools,
            graphs: Table::default(),
            nodes: Table::default(),
            user_objects: Table::default(),
            execs: Table::default(),
            graph_memories: GraphMemories::default(),
            conditions: Mutex::default(),
            arrays: Table::default(),
            textures: Mutex::default(),
            texture_references: Table::default(),
            surface_references: Table::default(),
            surfaces: Mutex::default(),
            default_pools,
            current_pools: Mutex::new(default_pools),
            pooled: Pooled::default(),
            advice: Mutex::default(),
            physical: Table::default(),
            address_space: Mutex::default(),
            ipc: Mutex::default(),
            primaries: (0..count()).map(|_| Mutex::new(Primary::default())).collect(),
        })
    }

    /// The context of a handle; the primary one for a green context.
    pub fn context(&self, handle: Handle<Context>) -> Result<Arc<Context>, Code> {
        self.contexts.get(handle).or_else(|code| match self.greens.get(Handle::of(handle.number())) {
            Ok(green) => self.contexts.get(green.primary),
            Err(_) => Err(code),
        })
    }

    fn primary(&self, number: i32) -> Result<MutexGuard<'_, Primary>, Code> {
        let primary = usize::try_from(number).ok().and_then(|n| self.primaries.get(n)).ok_or(Code::INVALID_DEVICE)?;
        Ok(primary.lock())
    }

    /// Retains the primary context of a device, creating it if necessary.
    pub fn retain_primary(&self, number: i32) -> Result<Handle<Context>, Code> {
        let mut primary = self.primary(number)?;
        if !primary.is_active {
            let create = |handle| Context::new(&self.device, number, handle, primary.flags);
            match primary.handle {
                handle if handle.is_null() => primary.handle = self.contexts.add_with(create).0,
                handle => self.contexts.put_back(handle, create(handle)),
            }
            primary.is_active = true;
        }
        primary.users += 1;
        Ok(primary.handle)
    }

    /// Releases the primary context, which is destroyed with its last user.
    pub fn release_primary(&self, number: i32) -> Outcome {
        let mut primary = self.primary(number)?;
        primary.users = primary.users.checked_sub(1).ok_or(Code::INVALID_CONTEXT)?;
        match primary.users {
            0 => self.destroy_primary(&mut primary),
            _ => Ok(()),
        }
    }

    /// Destroys the primary context regardless of its users.
    pub fn reset_primary(&self, number: i32) -> Outcome {
        let mut primary = self.primary(number)?;
        primary.users = 0;
        self.destroy_primary(&mut primary)
    }

    fn destroy_primary(&self, primary: &mut Primary) -> Outcome {
        match std::mem::take(&mut primary.is_active) {
            true => self.destroy_context(primary.handle),
            false => Ok(()),
        }
    }

    /// The device whose primary context has a handle.
    pub fn device_of_primary(&self, handle: Handle<Context>) -> Option<i32> {
        let is_its = |number: &i32| self.primary(*number).is_ok_and(|primary| primary.handle == handle);
        (0..self.primaries.len() as i32).find(is_its).filter(|_| !handle.is_null())
    }

    /// Flags of the primary context, and whether it is active.
    pub fn primary_state(&self, number: i32) -> Result<(u32, bool), Code> {
        let primary = self.primary(number)?;
        Ok((primary.flags, primary.is_active))
    }

    /// Sets the flags of the primary context.
    pub fn set_primary_flags(&self, number: i32, flags: u32) -> Outcome {
        self.primary(number)?.flags = flags;
        Ok(())
    }

    /// Destroys a context and all of its objects.
    pub fn destroy_context(&self, handle: Handle<Context>) -> Outcome {
        let context = self.contexts.remove(handle).map_err(|_| Code::INVALID_CONTEXT)?;
        context.settle();
        context.write_printed();
        context.free_memory();
        self.kernels.each(|k| k.forget(handle));
        self.libraries.each(|l| l.forget(handle));
        self.functions.remove_if(|f| f.module.context == handle);
        self.modules.remove_if(|m| m.context == handle);
        self.streams.remove_if(|s| s.context == handle);
        self.events.remove_if(|e| e.context == handle);
        Ok(())
    }
}

thread_local! {
    /// The current context of this thread: the top of its stack. It has no destructor, so it is still valid in `atexit` functions and
    /// C++ destructors, which run after thread-local destructors.
    static TOP: Cell<Option<Handle<Context>>> = const { Cell::new(None) };
    /// The rest of the stack.
    static BELOW: RefCell<Vec<Handle<Context>>> = const { RefCell::new(Vec::new()) };
}

/// Handle of the current context; null if there is none.
pub fn current_handle() -> Handle<Context> {
    TOP.get().unwrap_or(Handle::NULL)
}

/// Pushes a context; null means none.
pub fn push(handle: Handle<Context>) {
    if let Some(top) = TOP.replace(Some(handle)) {
        let _ = BELOW.try_with(|below| below.borrow_mut().push(top)); // already destroyed while the thread exits
    }
}

/// Pops the current context.
pub fn pop() -> Option<Handle<Context>> {
    TOP.replace(BELOW.try_with(|below| below.borrow_mut().pop()).ok().flatten())
}

/// The current context; its sticky error if a kernel has failed.
pub fn current() -> Result<Arc<Context>, Code> {
    let context = current_even_failed()?;
    context.check()?;
    Ok(context)
}

/// The current context, even if it has a sticky error.
pub fn current_even_failed() -> Result<Arc<Context>, Code> {
    let driver = driver()?;
    match current_handle() {
        handle if handle.is_null() => Err(Code::INVALID_CONTEXT),
        handle => driver.context(handle).map_err(|_| Code::CONTEXT_IS_DESTROYED),
    }
}
