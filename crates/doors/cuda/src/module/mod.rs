//! Modules (CUDA Driver API, "Module Management").

pub mod function;
pub mod image;
pub mod library;
pub mod link;

use crate::{
    api::api,
    code::{Code, Outcome},
    context::Context,
    driver::{current, driver},
    handle::Handle,
    memory::DevicePtr,
    module::{function::Function, image::JitOptions},
    raw::{Host, In, Out, Text},
};
use margay_runtime::{LoadOptions, SourceText};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};

/// A loaded module.
pub struct Module {
    /// Handle of its context.
    pub context: Handle<Context>,
    /// The maximum number of registers that a thread may have, if the program limits them (`CU_JIT_MAX_REGISTERS`).
    pub max_registers: Option<u32>,
    /// The loaded module.
    pub loaded: margay_runtime::Module,
    functions: Mutex<HashMap<String, Handle<Function>>>,
}

impl Module {
    /// Checks and loads texts; diagnostics go to the program's error log, or to standard error.
    pub fn load(context: &Arc<Context>, texts: &[String], options: &JitOptions) -> Result<Module, Code> {
        let names: Vec<String> = match texts {
            [_] => vec!["module.ptx".into()],
            many => (0..many.len()).map(|i| format!("module{i}.ptx")).collect(),
        };
        let mut files: Vec<SourceText<'_>> =
            names.iter().zip(texts).map(|(name, text)| SourceText { name, text }).collect();
        files.extend(image::own_runtime(texts).map(|text| SourceText { name: "device runtime", text }));
        let mut load = LoadOptions { engine: engine(), writable_constants: true, ..LoadOptions::default() };
        load.check.address_size = Some(64);
        match context.runtime.load(&files, &load) {
            // Its kernels could not be given any of the addresses that the driver hands out.
            Ok(loaded) if loaded.files().iter().any(|(_, c)| c.module.address_size == 32) => {
                let words = "a module with `.address_size 32` cannot be loaded: the driver's addresses have 64 bits";
                options.report(words)?;
                if !options.reads_errors() {
                    crate::api::report_error(words);
                }
                Err(Code::NOT_SUPPORTED)
            }
            Ok(loaded) => {
                options.report("")?;
                Ok(Module {
                    context: context.handle,
                    max_registers: options
                        .max_registers()
                        .or_else(|| texts.iter().filter_map(|text| image::limit_of(text)).min()),
                    loaded,
                    functions: Mutex::default(),
                })
            }
            Err(error) => {
                let words = image::words(&error);
                crate::process::account::unloadable(&words);
                options.report(&words)?;
                if !options.reads_errors() {
                    crate::api::report_error(&words);
                }
                Err(Code::from(&error))
            }
        }
    }

    /// A function of the module by name; always the same handle.
    pub fn function(self: &Arc<Module>, name: &str) -> Result<Handle<Function>, Code> {
        if !self.loaded.kernel_names().contains(&name) {
            return Err(Code::NOT_FOUND);
        }
        let mut functions = self.functions.lock();
        if let Some(known) = functions.get(name) {
            return Ok(*known);
        }
        let handle = driver()?.functions.add(Function::new(self.clone(), name));
        functions.insert(name.into(), handle);
        Ok(handle)
    }

    /// The number of the module's target: 80 for `sm_80`.
    pub fn target(&self) -> i32 {
        self.loaded.files().first().map_or(0, |(_, checked)| i32::from(checked.module.target.sm))
    }

    /// Whether the module has a variable of managed memory of this name.
    pub fn has_managed(&self, name: &str) -> bool {
        self.loaded.managed_names().any(|managed| managed == name)
    }

    /// Address and size of a variable of the module.
    pub fn variable(&self, name: &str) -> Result<(DevicePtr, usize), Code> {
        let found = self.loaded.variable(name).map_err(|e| Code::from(&e))?;
        Ok((found.address, found.size as usize))
    }
}

/// The engine named by `MARGAY_ENGINE`; `None` for the default.
fn engine() -> Option<String> {
    std::env::var("MARGAY_ENGINE").ok().filter(|name| !name.is_empty())
}

fn load(out: Out<Handle<Module>>, texts: &[String], options: JitOptions) -> Outcome {
    let module = Module::load(&current()?, texts, &options)?;
    out.set(driver()?.modules.add(module))
}

/// Reads the file of an image.
pub fn file_bytes(name: Text) -> Result<Vec<u8>, Code> {
    std::fs::read(name.text()?).map_err(|_| Code::FILE_NOT_FOUND)
}

/// The PTX texts of a file.
pub fn file_texts(name: Text) -> Result<Vec<String>, Code> {
    let bytes = file_bytes(name)?;
    image::named(name.text().ok(), || image::texts_of(&bytes))
}

api! {
    2000 fn cuModuleLoad(module: Out<Handle<Module>>, name: Text) {
        load(module, &file_texts(name)?, JitOptions::none())
    }
    2000 fn cuModuleLoadData(module: Out<Handle<Module>>, image: Host) {
        load(module, &image::texts(image)?, JitOptions::none())
    }
    2010 fn cuModuleLoadDataEx(
        module: Out<Handle<Module>>, image: Host, count: u32, options: In<u32>, values: Out<u64>,
    ) {
        load(module, &image::texts(image)?, JitOptions::new(count, options, values))
    }
    2000 fn cuModuleLoadFatBinary(module: Out<Handle<Module>>, image: Host) {
        load(module, &image::texts(image)?, JitOptions::none())
    }
    2000 fn cuModuleUnload(module: Handle<Module>) { unload(module) }
    11070 fn cuModuleGetLoadingMode(mode: Out<u32>) {
        driver()?;
        mode.set(2) // lazily
    }
    2000 fn cuModuleGetFunction(function: Out<Handle<Function>>, module: Handle<Module>, name: Text) {
        function.set(driver()?.modules.get(module)?.function(&name.text()?)?)
    }
    12040 fn cuModuleGetFunctionCount(count: Out<u32>, module: Handle<Module>) {
        count.set(driver()?.modules.get(module)?.loaded.kernel_names().len() as u32)
    }
    12040 fn cuModuleEnumerateFunctions(functions: Out<Handle<Function>>, room: u32, module: Handle<Module>) {
        enumerate(functions, room, &driver()?.modules.get(module)?)
    }
    3020 fn cuModuleGetGlobal_v2(address: Out<DevicePtr>, bytes: Out<usize>, module: Handle<Module>, name: Text) {
        let (at, size) = driver()?.modules.get(module)?.variable(&name.text()?)?;
        address.offer(at);
        bytes.offer(size);
        Ok(())
    }
}

/// Unloads a module and drops the handles of its functions, which would keep it alive.
pub fn unload(module: Handle<Module>) -> Outcome {
    let gone = driver()?.modules.remove(module)?;
    driver()?.functions.remove_if(|f| Arc::ptr_eq(&f.module, &gone));
    Ok(())
}

/// Writes the handles of functions, at most `room`.
pub fn enumerate(out: Out<Handle<Function>>, room: u32, module: &Arc<Module>) -> Outcome {
    let names = module.loaded.kernel_names();
    names.into_iter().take(room as usize).enumerate().try_for_each(|(i, name)| out.set_nth(i, module.function(name)?))
}
