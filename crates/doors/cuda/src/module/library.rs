//! Libraries and their kernels (CUDA Driver API, "Library Management"). A library belongs to no context: it is a module in each context
//! that uses it, with variables of its own there, and its kernels' handles are valid in all of them, also after a reset.

use crate::{
    api::api,
    code::{Code, Outcome},
    context::Context,
    driver::{Driver, current_even_failed, driver},
    handle::Handle,
    memory::DevicePtr,
    module::{
        Module, file_texts,
        function::Function,
        image::{self, JitOptions},
        unload,
    },
    raw::{Host, In, Out, Text},
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// A library.
pub struct Library {
    texts: Vec<String>,
    max_registers: Option<u32>,
    names: Vec<String>,
    /// By the number of the context's handle.
    modules: Mutex<HashMap<usize, Handle<Module>>>,
    kernels: Mutex<HashMap<String, Handle<LibraryKernel>>>,
}

impl Library {
    /// Whether this is one of its modules.
    pub fn has(&self, module: &Arc<Module>) -> bool {
        let modules = self.modules.lock();
        driver().is_ok_and(|d| modules.values().any(|m| d.modules.get(*m).is_ok_and(|m| Arc::ptr_eq(&m, module))))
    }

    /// Its module in a context, loaded on first use.
    fn module(&self, driver: &Driver, context: &Arc<Context>) -> Result<(Handle<Module>, Arc<Module>), Code> {
        let mut modules = self.modules.lock();
        if let Some(known) = modules.get(&context.handle.number()) {
            return Ok((*known, driver.modules.get(*known)?));
        }
        let mut module = Module::load(context, &self.texts, &JitOptions::none())?;
        module.max_registers = self.max_registers;
        if let Some(other) = modules.values().find_map(|other| driver.modules.get(*other).ok()) {
            module.loaded.share_managed(&other.loaded).map_err(|error| Code::from(&error))?;
        }
        let (handle, module) = driver.modules.add_with(|_| module);
        modules.insert(context.handle.number(), handle);
        Ok((handle, module))
    }

    /// Its module in the current context.
    fn here(&self) -> Result<(Handle<Module>, Arc<Module>), Code> {
        let driver = driver()?;
        self.module(driver, &place(driver)?)
    }

    /// Drops its module in a context that is destroyed.
    pub fn forget(&self, context: Handle<Context>) {
        self.modules.lock().remove(&context.number());
    }
}

/// A kernel of a library (`CUkernel`): a function in each context.
pub struct LibraryKernel {
    library: Handle<Library>,
    name: String,
    /// By the number of the context's handle.
    functions: Mutex<HashMap<usize, Arc<Function>>>,
    /// Attributes set for a device, by the number of the device and of the attribute.
    settings: Mutex<BTreeMap<(i32, u32), i32>>,
}

impl LibraryKernel {
    /// Its function in a context.
    fn function(&self, driver: &Driver, context: &Arc<Context>) -> Result<Arc<Function>, Code> {
        if let Some(known) = self.functions.lock().get(&context.handle.number()) {
            return Ok(known.clone());
        }
        let (_, module) = driver.libraries.get(self.library)?.module(driver, context)?;
        let function = driver.functions.get(module.function(&self.name)?)?;
        for ((_, number), value) in self.settings.lock().range((context.device, 0)..=(context.device, u32::MAX)) {
            function.set_attribute(*number, *value)?;
        }
        self.functions.lock().insert(context.handle.number(), function.clone());
        Ok(function)
    }

    /// Its function in the current context.
    pub fn here(&self) -> Result<Arc<Function>, Code> {
        let driver = driver()?;
        self.function(driver, &place(driver)?)
    }

    /// Its function on a device: in the current context if that is of the device, else in the primary one.
    pub fn on(&self, device: i32) -> Result<Arc<Function>, Code> {
        let driver = driver()?;
        let context = match current_even_failed() {
            Ok(context) if context.device == device => context,
            _ => driver.contexts.get(driver.retain_primary(device)?)?,
        };
        self.function(driver, &context)
    }

    /// Sets an attribute of its functions on a device, also of those that do not exist yet.
    pub fn set_on(&self, device: i32, number: u32, value: i32) -> Outcome {
        self.on(device)?;
        let functions: Vec<_> = self.functions.lock().iter().map(|(c, f)| (*c, f.clone())).collect();
        let contexts = &driver()?.contexts;
        let of_device = |context| contexts.get(Handle::of(context)).is_ok_and(|c| c.device == device);
        functions.into_iter().filter(|(c, _)| of_device(*c)).try_for_each(|(_, f)| f.set_attribute(number, value))?;
        self.settings.lock().insert((device, number), value);
        Ok(())
    }

    /// Whether this is its function in some context.
    pub fn has(&self, function: &Arc<Function>) -> bool {
        self.functions.lock().values().any(|known| Arc::ptr_eq(known, function))
    }

    /// Drops its function in a context that is destroyed.
    pub fn forget(&self, context: Handle<Context>) {
        self.functions.lock().remove(&context.number());
    }
}

/// The context in which a library is used: the current one, or without one the primary one, as with the runtime API.
fn place(driver: &Driver) -> Result<Arc<Context>, Code> {
    match current_even_failed() {
        Err(Code::INVALID_CONTEXT) => driver.contexts.get(driver.retain_primary(0)?),
        found => found,
    }
}

fn load(out: Out<Handle<Library>>, texts: Vec<String>, options: JitOptions) -> Outcome {
    let driver = driver()?;
    let context = place(driver)?;
    context.check()?;
    let module = Module::load(&context, &texts, &options)?;
    let names = module.loaded.kernel_names().into_iter().map(String::from).collect();
    let max_registers = module.max_registers;
    let modules = Mutex::new(HashMap::from([(context.handle.number(), driver.modules.add(module))]));
    let kernels = Mutex::default();
    out.set(driver.libraries.add(Library { texts, max_registers, names, modules, kernels }))
}

fn get(library: Handle<Library>) -> Result<Arc<Library>, Code> {
    driver()?.libraries.get(library)
}

/// The handle of a kernel; always the same one.
fn kernel(library: Handle<Library>, name: &str) -> Result<Handle<Function>, Code> {
    let of = get(library)?;
    if !of.names.iter().any(|known| known == name) {
        return Err(Code::NOT_FOUND);
    }
    let mut kernels = of.kernels.lock();
    if let Some(known) = kernels.get(name) {
        return Ok(Handle::of(known.number()));
    }
    let new = LibraryKernel { library, name: name.into(), functions: Mutex::default(), settings: Mutex::default() };
    let handle = driver()?.kernels.add(new);
    kernels.insert(name.into(), handle);
    Ok(Handle::of(handle.number()))
}

api! {
    12000 fn cuLibraryLoadData(
        library: Out<Handle<Library>>, image: Host, options: In<u32>, values: Out<u64>, count: u32, _library_options: Host,
        _library_values: Host, _library_count: u32,
    ) {
        load(library, image::texts(image)?, JitOptions::new(count, options, values))
    }
    12000 fn cuLibraryLoadFromFile(
        library: Out<Handle<Library>>, name: Text, options: In<u32>, values: Out<u64>, count: u32, _library_options: Host,
        _library_values: Host, _library_count: u32,
    ) {
        load(library, file_texts(name)?, JitOptions::new(count, options, values))
    }
    12000 fn cuLibraryUnload(library: Handle<Library>) {
        let driver = driver()?;
        let gone = driver.libraries.remove(library)?;
        driver.kernels.remove_if(|kernel| kernel.library == library);
        let modules: Vec<_> = gone.modules.lock().values().copied().collect();
        modules.into_iter().try_for_each(unload)
    }
    12000 fn cuLibraryGetKernel(handle: Out<Handle<Function>>, library: Handle<Library>, name: Text) {
        handle.set(kernel(library, &name.text()?)?)
    }
    12040 fn cuLibraryGetKernelCount(count: Out<u32>, library: Handle<Library>) {
        count.set(get(library)?.names.len() as u32)
    }
    12040 fn cuLibraryEnumerateKernels(kernels: Out<Handle<Function>>, room: u32, library: Handle<Library>) {
        let of = get(library)?;
        let mut names = of.names.iter().take(room as usize).enumerate();
        names.try_for_each(|(i, name)| kernels.set_nth(i, kernel(library, name)?))
    }
    12000 fn cuLibraryGetModule(module: Out<Handle<Module>>, library: Handle<Library>) {
        module.set(get(library)?.here()?.0)
    }
    12000 fn cuLibraryGetGlobal(address: Out<DevicePtr>, bytes: Out<usize>, library: Handle<Library>, name: Text) {
        variable(address, bytes, library, name)
    }
    12000 fn cuLibraryGetManaged(address: Out<DevicePtr>, bytes: Out<usize>, library: Handle<Library>, name: Text) {
        if !get(library)?.here()?.1.has_managed(&name.text()?) {
            return Err(Code::NOT_FOUND);
        }
        variable(address, bytes, library, name)
    }
    12000 fn cuKernelGetFunction(function: Out<Handle<Function>>, kernel: Handle<Function>) {
        let driver = driver()?;
        // Functions are taken for kernels too.
        let Ok(of) = driver.kernels.get(Handle::of(kernel.number())) else {
            driver.functions.get(kernel)?;
            return function.set(kernel);
        };
        let here = of.here()?;
        function.set(here.module.function(here.name())?)
    }
    12050 fn cuKernelGetLibrary(library: Out<Handle<Library>>, kernel: Handle<Function>) {
        let driver = driver()?;
        if let Ok(of) = driver.kernels.get(Handle::of(kernel.number())) {
            return library.set(of.library);
        }
        let module = driver.functions.get(kernel)?.module.clone();
        let found = driver.libraries.find(|l| l.has(&module)).ok_or(Code::NOT_FOUND)?;
        library.set(found)
    }
}

fn variable(address: Out<DevicePtr>, bytes: Out<usize>, library: Handle<Library>, name: Text) -> Outcome {
    let (at, size) = get(library)?.here()?.1.variable(&name.text()?)?;
    address.offer(at);
    bytes.offer(size);
    Ok(())
}
