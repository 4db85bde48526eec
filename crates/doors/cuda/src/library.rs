//! Libraries and kernels: modules without a context (CUDA Driver API, "Library Management").

use crate::{
    api::api,
    code::{Code, Outcome},
    driver::{current, driver},
    function::Function,
    handle::Handle,
    image::{self, JitOptions},
    memory::DevicePtr,
    module::{Module, enumerate, file_bytes, unload},
    raw::{Host, In, Out, Text},
};
use std::sync::Arc;

/// A library. There is one device, so its module is the same in every context.
pub struct Library {
    handle: Handle<Module>,
    module: Arc<Module>,
}

impl Library {
    /// Whether this is its module.
    pub fn has(&self, module: &Arc<Module>) -> bool {
        Arc::ptr_eq(&self.module, module)
    }
}

fn load(out: Out<Handle<Library>>, texts: &[String], options: JitOptions) -> Outcome {
    let driver = driver()?;
    // Without a current context, it lives in the primary one, as with the runtime API.
    let context = match current() {
        Ok(context) => context,
        Err(Code::INVALID_CONTEXT) => driver.contexts.get(driver.retain_primary(0)?)?,
        Err(other) => return Err(other),
    };
    let module = Module::load(&context, texts, options)?;
    let (handle, module) = driver.modules.add_with(|_| module);
    out.set(driver.libraries.add(Library { handle, module }))
}

fn get(library: Handle<Library>) -> Result<Arc<Library>, Code> {
    driver()?.libraries.get(library)
}

api! {
    12000 fn cuLibraryLoadData(
        library: Out<Handle<Library>>, image: Host, options: In<u32>, values: Out<u64>, count: u32, _library_options: Host,
        _library_values: Host, _library_count: u32,
    ) {
        load(library, &image::texts(image)?, JitOptions::new(count, options, values))
    }
    12000 fn cuLibraryLoadFromFile(
        library: Out<Handle<Library>>, name: Text, options: In<u32>, values: Out<u64>, count: u32, _library_options: Host,
        _library_values: Host, _library_count: u32,
    ) {
        load(library, &image::texts_of(&file_bytes(name)?)?, JitOptions::new(count, options, values))
    }
    12000 fn cuLibraryUnload(library: Handle<Library>) {
        let gone = driver()?.libraries.remove(library)?;
        unload(gone.handle)
    }
    12000 fn cuLibraryGetKernel(kernel: Out<Handle<Function>>, library: Handle<Library>, name: Text) {
        kernel.set(get(library)?.module.function(&name.text()?)?)
    }
    12040 fn cuLibraryGetKernelCount(count: Out<u32>, library: Handle<Library>) {
        count.set(get(library)?.module.loaded.kernel_names().len() as u32)
    }
    12040 fn cuLibraryEnumerateKernels(kernels: Out<Handle<Function>>, room: u32, library: Handle<Library>) {
        enumerate(kernels, room, &get(library)?.module)
    }
    12000 fn cuLibraryGetModule(module: Out<Handle<Module>>, library: Handle<Library>) {
        module.set(get(library)?.handle)
    }
    12000 fn cuLibraryGetGlobal(address: Out<DevicePtr>, bytes: Out<usize>, library: Handle<Library>, name: Text) {
        variable(address, bytes, library, name)
    }
    12000 fn cuLibraryGetManaged(address: Out<DevicePtr>, bytes: Out<usize>, library: Handle<Library>, name: Text) {
        variable(address, bytes, library, name)
    }
    12000 fn cuKernelGetFunction(function: Out<Handle<Function>>, kernel: Handle<Function>) {
        driver()?.functions.get(kernel)?;
        function.set(kernel)
    }
    12050 fn cuKernelGetLibrary(library: Out<Handle<Library>>, kernel: Handle<Function>) {
        let driver = driver()?;
        let module = driver.functions.get(kernel)?.module.clone();
        let found = driver.libraries.find(|l| l.has(&module)).ok_or(Code::NOT_FOUND)?;
        library.set(found)
    }
}

fn variable(address: Out<DevicePtr>, bytes: Out<usize>, library: Handle<Library>, name: Text) -> Outcome {
    let (at, size) = get(library)?.module.variable(&name.text()?)?;
    address.offer(at);
    bytes.offer(size);
    Ok(())
}
