//! Modules: checked and linked files, their variables in memory, and their kernels.
//!
//! A module may hold megabytes of code, and a program may need only one kernel of it. So each kernel is lowered, placed and prepared on
//! first use, with the functions that it reaches. All kernels share the module's variables.

use crate::{Context, Error, Kernel, Rejected, image, kernel::Prepared, tiers::Tiers};
use margay_check::{Checked, Examined, FuncKind, Options};
use margay_exec::{
    Image,
    mem::{Kind, Reach},
    texture::{self, Object},
};
use margay_ir::{Global, GlobalId, GlobalInit, Ir, Linked, LowerOptions, Placed, Pointee, Source, Stage, Virtual, abi};
use margay_isa::{Space, Type};
use margay_syntax::Diagnostic;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Instant,
};

/// A file to load.
#[derive(Clone, Copy, Debug)]
pub struct SourceText<'a> {
    /// Its name, for messages.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// Options of loading.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Options of the check. Several files are always checked as relocatable.
    pub check: Options,
    /// The calling convention; `None` for [`abi::DEFAULT`].
    pub abi: Option<String>,
    /// The engine; `None` for the device's default.
    pub engine: Option<String>,
    /// Whether kernels may write `.const` variables through pointers, as GPUs permit.
    pub writable_constants: bool,
}

/// A loaded module.
#[derive(Debug)]
pub struct Module {
    context: Arc<Context>,
    options: LoadOptions,
    files: Vec<(Arc<Source>, Checked)>,
    /// Computed on first use of a kernel.
    linked: OnceLock<Linked>,
    variables: Arc<Variables>,
    kernels: Mutex<HashMap<String, Kernel>>,
}

/// A module variable in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Device address.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Whether kernels may only read it.
    pub constant: bool,
}

impl Module {
    pub(crate) fn load(
        context: Arc<Context>,
        texts: &[SourceText<'_>],
        options: &LoadOptions,
    ) -> Result<Module, Error> {
        let mut check_options = options.check.clone();
        check_options.relocatable |= texts.len() > 1;
        let (mut files, mut rejected) = (Vec::new(), Vec::new());
        for text in texts {
            let (source, checked, diagnostics) = check(text, &check_options);
            match checked {
                Some(checked) => files.push((source, checked)),
                None => rejected.push(Rejected { source, diagnostics }),
            }
        }
        match rejected.is_empty() {
            true => Ok(Module::load_checked(context, files, options)),
            false => Err(Error::Rejected(rejected)),
        }
    }

    pub(crate) fn load_checked(
        context: Arc<Context>,
        files: Vec<(Arc<Source>, Checked)>,
        options: &LoadOptions,
    ) -> Module {
        let narrow = files.iter().any(|(_, c)| c.module.address_size == 32);
        if narrow {
            context.narrow();
        }
        let reach = if narrow { Reach::Low } else { Reach::Full };
        let (writable_constants, table) = (options.writable_constants, Mutex::default());
        let managed = OnceLock::new();
        let variables = Arc::new(Variables { context: context.clone(), reach, writable_constants, table, managed });
        Module {
            context,
            options: options.clone(),
            files,
            linked: OnceLock::new(),
            variables,
            kernels: Mutex::default(),
        }
    }

    /// The checked files.
    pub fn files(&self) -> &[(Arc<Source>, Checked)] {
        &self.files
    }

    /// Names of all kernels, in source order.
    pub fn kernel_names(&self) -> Vec<&str> {
        let functions = self.files.iter().flat_map(|(_, c)| &c.module.funcs);
        functions.filter(|f| f.kind == FuncKind::Kernel && f.defined).map(|f| &*f.name).collect()
    }

    /// Names of the variables of managed memory.
    pub fn managed_names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().flat_map(|(_, c)| &c.module.globals).filter(|g| g.managed).map(|g| &*g.name)
    }

    /// Makes this module use the managed variables of `with`, which was loaded from the same files on another device: a managed
    /// variable exists once in a process, any other variable once on each device. Must be called before this module's first
    /// kernel or variable is looked up.
    pub fn share_managed(&self, with: &Module) -> Result<(), Error> {
        // Looking up one variable initializes all of them.
        with.managed_names().next().map_or(Ok(()), |name| with.variable(name).map(drop))?;
        let first = with.variables.managed.get().unwrap_or(&with.variables);
        let _ = self.variables.managed.set(first.clone()); // nothing was set before
        Ok(())
    }

    /// A kernel by name, prepared on first use.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        let mut kernels = self.kernels.lock();
        if let Some(kernel) = kernels.get(name) {
            return Ok(kernel.clone());
        }
        let kernel = self.prepare(name)?;
        kernels.insert(name.into(), kernel.clone());
        Ok(kernel)
    }

    fn prepare(&self, name: &str) -> Result<Kernel, Error> {
        let no_such = || {
            let known = self.kernel_names().iter().map(|n| n.to_string()).collect();
            Error::NoSuch { what: "kernel", name: name.into(), known }
        };
        if !self.kernel_names().contains(&name) {
            return Err(no_such());
        }
        let engine = self.context.device().engine(self.options.engine.as_deref())?;
        let start = Instant::now();
        let placed = self.place(Some(name))?;
        let func = *placed.func_names.get(name).ok_or_else(no_such)?;
        let (image, cooperative) = image::build(placed, func, &self.variables)?;
        let image = Arc::new(image);
        let stopped = |stop| Error::Stopped(Box::new(crate::StopReport { stop, image: image.clone() }));
        let device = self.context.device();
        let code = Tiers::new(image.clone(), func, engine, device.queue(), device.waiting()).map_err(stopped)?;
        let params = crate::kernel::params(&image, func, &self.param_names(name));
        let inner = Prepared {
            context: self.context.clone(),
            params,
            code,
            func,
            prepare_time: start.elapsed(),
            engine: engine.name(),
            cooperative,
            cost: Default::default(),
            _variables: self.variables.clone(),
            image,
        };
        Ok(Kernel { inner: Arc::new(inner) })
    }

    /// Links and lowers one kernel with what it reaches, or everything.
    pub fn lower(&self, kernel: Option<&str>) -> Result<Ir<Virtual>, Error> {
        let linked = match self.linked.get() {
            Some(linked) => linked,
            None => {
                let linked = Linked::new(&self.files)?;
                self.linked.get_or_init(|| linked)
            }
        };
        Ok(linked.lower(&LowerOptions { kernel, relocatable: false })?)
    }

    /// Lowers one kernel with what it reaches, or everything, and places it under the module's ABI.
    pub fn place(&self, kernel: Option<&str>) -> Result<Ir<Placed>, Error> {
        let abi = find_abi(self.options.abi.as_deref().unwrap_or(abi::DEFAULT))?;
        Ok(abi::place(self.lower(kernel)?, abi)?)
    }

    /// Binds an object to a reference variable.
    pub(crate) fn bind(&self, name: &str, index: u32, object: Object) -> Result<(), Error> {
        // Any kernel will do: the variables of the whole module are there.
        let ir = self.lower(self.kernel_names().first().copied())?;
        let is_reference = |g: &&GlobalId| ir.global(**g).reference.is_some();
        // Internal variables are not linker symbols, but are found by name too.
        let all = || (0..ir.globals.len() as u32).map(GlobalId);
        let found = ir.global_names.get(name).filter(is_reference).copied();
        let found = found.or_else(|| all().find(|g| &*ir.global(*g).name == name && ir.global(*g).reference.is_some()));
        let Some(id) = found.filter(|id| u64::from(index) < (ir.global(*id).size / 8).max(1)) else {
            let known = all().filter(|g| ir.global(*g).reference.is_some()).map(|g| ir.global(g).name.to_string());
            return Err(Error::NoSuch { what: "reference", name: name.into(), known: known.collect() });
        };
        let handle = self.variables.addresses(&ir)?[id.0 as usize] + 8 * u64::from(index);
        let kind = object.kind();
        match self.context.device().memory().objects().bind(handle, object) {
            true => Ok(()),
            false => Err(Error::BadArray(format!("`{name}` does not refer to a {kind:?}").to_lowercase())),
        }
    }

    /// A variable of `.global` or `.const` by name, for `cuModuleGetGlobal`.
    pub fn variable(&self, name: &str) -> Result<Variable, Error> {
        let kernel = self.kernel_names().first().map(|n| n.to_string());
        let image = match &kernel {
            Some(kernel) => self.kernel(kernel)?.image().clone(),
            None => {
                let placed = self.place(None)?;
                let addresses = self.variables.addresses(&placed)?;
                self.variables.initialize(&placed, &addresses)?;
                Arc::new(Image {
                    ir: Arc::new(placed),
                    addresses,
                    static_shared: 0,
                    reserved_shared: 0,
                    shared_unit: 1,
                })
            }
        };
        let in_memory = |g: &GlobalId| matches!(image.ir.global(*g).space, Space::Global | Space::Const);
        // Internal variables are not linker symbols, but drivers find them: nvcc emits `__device__` variables that way.
        let all = || (0..image.ir.globals.len() as u32).map(GlobalId).filter(in_memory);
        let linked = image.ir.global_names.get(name).copied().filter(in_memory);
        match linked.or_else(|| all().find(|g| &*image.ir.global(*g).name == name)) {
            Some(id) => {
                let Global { size, space, .. } = image.ir.global(id);
                Ok(Variable { address: image.addresses[id.0 as usize], size: *size, constant: *space == Space::Const })
            }
            None => {
                let known = all().map(|g| image.ir.global(g).name.to_string()).collect();
                Err(Error::NoSuch { what: "variable", name: name.into(), known })
            }
        }
    }

    fn param_names(&self, kernel: &str) -> Vec<Box<str>> {
        let functions = self.files.iter().flat_map(|(_, c)| &c.module.funcs);
        let found = functions.filter(|f| f.defined).find(|f| &*f.name == kernel);
        found.map(|f| f.params.iter().map(|p| p.name.clone()).collect()).unwrap_or_default()
    }
}

/// Parses and checks a file.
pub fn check(text: &SourceText<'_>, options: &Options) -> (Arc<Source>, Option<Checked>, Vec<Diagnostic>) {
    check_shared(text.name, Arc::new(text.text.into()), options)
}

/// Like [`check`], for a shared text; saves a copy.
pub fn check_shared(
    name: &str,
    text: Arc<String>,
    options: &Options,
) -> (Arc<Source>, Option<Checked>, Vec<Diagnostic>) {
    let (checked, examined) = margay_check::check_text(text, options);
    let (source, diagnostics) = source(name, examined);
    (source, checked, diagnostics)
}

/// The findings of [`check_shared`] alone, in less memory; the source has no bodies.
pub fn examine_shared(name: &str, text: Arc<String>, options: &Options) -> (Arc<Source>, Vec<Diagnostic>) {
    source(name, margay_check::examine(text, options))
}

fn source(name: &str, examined: Examined) -> (Arc<Source>, Vec<Diagnostic>) {
    (Arc::new(Source::new(name, examined.tree, examined.files)), examined.diagnostics)
}

/// The ABI of this name.
pub fn find_abi(name: &str) -> Result<&'static dyn abi::Abi, Error> {
    let known = || abi::registry().iter().map(|a| a.name().into()).collect();
    abi::by_name(name).ok_or_else(|| Error::NoSuch { what: "ABI", name: name.into(), known: known() })
}

/// The variables of a module: one allocation each, freed with the module and its last kernel.
#[derive(Debug)]
pub(crate) struct Variables {
    context: Arc<Context>,
    reach: Reach,
    writable_constants: bool,
    table: Mutex<HashMap<Key, Entry>>,
    /// The variables that have the managed ones, if those are another module's.
    managed: OnceLock<Arc<Variables>>,
}

/// Name of a variable, and its index among those of that name (internal variables of linked files may share one).
type Key = (Box<str>, u32);

#[derive(Clone, Copy, Debug)]
struct Entry {
    address: u64,
    initialized: bool,
    /// For references: the number of handles starting at the address; no memory.
    handles: u32,
}

impl Variables {
    /// Addresses of all variables, allocated on first use; 0 for variables outside memory.
    pub(crate) fn addresses<S: Stage>(&self, ir: &Ir<S>) -> Result<Vec<u64>, Error> {
        let mut table = self.table.lock();
        let address = |(global, key): (&Arc<Global>, Key)| match global.space {
            Space::Global | Space::Const | Space::Tex => match self.managed.get().filter(|_| global.managed) {
                Some(first) => first.address(&mut first.table.lock(), global, key),
                None => self.address(&mut table, global, key),
            },
            _ => Ok(0),
        };
        ir.globals.iter().zip(keys(ir)).map(address).collect()
    }

    /// The address of a variable, allocated on first use.
    fn address(&self, table: &mut HashMap<Key, Entry>, global: &Global, key: Key) -> Result<u64, Error> {
        if let Some(entry) = table.get(&key) {
            return Ok(entry.address);
        }
        if global.external && global.size == 0 {
            return Ok(0);
        }
        if let Some(ty) = global.reference {
            let kind = match ty {
                Type::SamplerRef => texture::Kind::Sampler,
                Type::SurfRef => texture::Kind::Surface,
                _ => texture::Kind::Texture,
            };
            let property = |init: &'_ GlobalInit| match init {
                GlobalInit::Property(name, value) => Some((name.to_string(), value.to_string())),
                GlobalInit::Bytes(..) | GlobalInit::Address { .. } => None,
            };
            let properties: Vec<(String, String)> = global.init.iter().filter_map(property).collect();
            let properties: Vec<(&str, &str)> = properties.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            let address = crate::texture::handles(&self.context, kind, global.size, &properties);
            let count = (global.size / 8).max(1) as u32;
            table.insert(key, Entry { address, initialized: true, handles: count });
            return Ok(address);
        }
        let memory = self.context.device().memory();
        let constant = Kind::Const { writable: self.writable_constants };
        let variable = Kind::Variable { managed: global.managed };
        let kind = if global.space == Space::Const { constant } else { variable };
        // libcu++ accesses the whole word around a variable of a byte or a halfword to update it atomically.
        let size = if global.size == 0 { 0 } else { global.size.max(4) };
        let address = image::allocate(memory, self.reach, kind, &global.name, (size, global.align.max(16)))?;
        table.insert(key, Entry { address, initialized: false, handles: 0 });
        Ok(address)
    }

    /// Writes the initial contents of variables that do not have them yet.
    pub(crate) fn initialize(&self, ir: &Ir<Placed>, addresses: &[u64]) -> Result<(), Error> {
        let mut table = self.table.lock();
        for (global, key) in ir.globals.iter().zip(keys(ir)) {
            let Some(entry) = table.get_mut(&key).filter(|e| !e.initialized) else { continue };
            for init in &global.init {
                match init {
                    GlobalInit::Property(..) => {}
                    GlobalInit::Bytes(at, bytes) => self.context.write(entry.address + at, bytes)?,
                    GlobalInit::Address { at, size, shift, of, offset, generic: _ } => {
                        // Global addresses are generic addresses here, so `generic()` is the identity.
                        let base = match of {
                            Pointee::Global(g) => addresses[g.0 as usize],
                            Pointee::Func(f) => Image::function_address(ir.address_size, *f),
                        };
                        let value = base.wrapping_add_signed(*offset) >> shift;
                        let size = usize::from(*size).min(8);
                        self.context.write(entry.address + at, &value.to_le_bytes()[..size])?;
                    }
                }
            }
            entry.initialized = true;
        }
        Ok(())
    }
}

/// The keys of all variables, in order.
fn keys<S: Stage>(ir: &Ir<S>) -> impl Iterator<Item = Key> {
    let mut seen: HashMap<&str, u32> = HashMap::new();
    ir.globals.iter().map(move |global| {
        let next = seen.entry(&global.name).or_insert(0);
        let key = (global.name.clone(), *next);
        *next += 1;
        key
    })
}

impl Drop for Variables {
    fn drop(&mut self) {
        let table = self.table.get_mut();
        for entry in table.values() {
            let memory = self.context.device().memory();
            for i in 0..u64::from(entry.handles) {
                memory.objects().remove(entry.address + 8 * i);
            }
            if entry.handles == 0 {
                // Cannot fail: only this code frees variables.
                let _ = memory.free(entry.address);
            }
        }
    }
}
