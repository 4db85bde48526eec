//! Functions of modules and kernels of libraries: attributes, parameters, occupancy (CUDA Driver API, "Execution Control" and
//! "Occupancy").

use crate::{
    api::api,
    code::{Code, Outcome},
    device::{capability, multiprocessors, profile},
    driver::driver,
    handle::Handle,
    module::Module,
    raw::{In, Out, SizeCallback, forever},
    work::old_launch::Setting,
};
use margay_ir::{
    Func,
    pass::{Cfg, Liveness, reachable},
};
use margay_isa::Space;
use margay_runtime::{Kernel, StopReport};
use parking_lot::Mutex;
use std::sync::{
    Arc, Once, OnceLock,
    atomic::{AtomicI32, Ordering::Relaxed},
};

/// Shared memory of a CTA that needs no opt-in, in bytes.
const DEFAULT_SHARED: i32 = 48 << 10;

/// Maximum shared memory of a CTA in bytes.
fn most_shared() -> i32 {
    profile().limits.shared_of_cta as i32
}

/// Threads, CTAs and bytes of shared memory per multiprocessor.
fn multiprocessor() -> (i32, i32, i32) {
    let limits = profile().limits;
    (limits.threads as i32, limits.ctas as i32, limits.shared as i32)
}

/// Registers per thread that a compiler needs that never spills: for the values that live at once in the kernel or a function that it
/// reaches, and for the addresses of code and stack. Limits that the program sets count, and what a multiprocessor has for a full CTA.
fn registers(kernel: &Kernel, limit: Option<u32>) -> u32 {
    const RESERVED: u32 = 4;
    const LIMIT: u32 = 255;
    const OF_MULTIPROCESSOR: u32 = 1 << 16;
    let image = kernel.image();
    let entry = image.ir.func(kernel.func());
    let pressure = |func| Liveness::new(func, &Cfg::new(func, |_, _| false)).pressure(func);
    let reached = reachable(&image.ir, kernel.func());
    let needed = RESERVED + reached.into_iter().map(|id| pressure(image.ir.func(id))).max().unwrap_or(0);
    let threads = entry.reqntid.or(entry.maxntid).map_or(1, |n| n.iter().product::<u32>());
    let limits = [entry.maxnreg, limit, Some(LIMIT), Some(OF_MULTIPROCESSOR / threads.max(1))];
    limits.into_iter().flatten().fold(needed, u32::min)
}

/// The maximum number of threads of a CTA: "depends on both the function and the device" (`CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK`). A kernel may
/// require more than any device has.
fn most_threads(func: &Func) -> i32 {
    const OF_DEVICE: u64 = 1024;
    let own = func.reqntid.or(func.maxntid);
    own.map_or(OF_DEVICE, |n| n.iter().fold(1, |all: u64, n| all.saturating_mul(u64::from(*n)))).min(OF_DEVICE) as i32
}

/// A function.
pub struct Function {
    /// Its module.
    pub module: Arc<Module>,
    name: String,
    kernel: OnceLock<Result<Kernel, Code>>,
    /// Registers per thread.
    registers: OnceLock<u32>,
    address_of_name: OnceLock<usize>,
    /// Maximum dynamic shared memory of a launch in bytes; negative if not set.
    dynamic_shared: AtomicI32,
    carveout: AtomicI32,
    non_portable_clusters: AtomicI32,
    reported: Once,
    /// Parameters set for launches by the deprecated functions.
    pub setting: Mutex<Setting>,
}

impl Function {
    /// A function by name in a module that defines it.
    pub fn new(module: Arc<Module>, name: &str) -> Function {
        Function {
            module,
            name: name.into(),
            kernel: OnceLock::new(),
            address_of_name: OnceLock::new(),
            dynamic_shared: AtomicI32::new(-1),
            registers: OnceLock::new(),
            carveout: AtomicI32::new(-1),
            non_portable_clusters: AtomicI32::new(0),
            reported: Once::new(),
            setting: Mutex::default(),
        }
    }

    /// The function's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel, prepared on first use.
    pub fn kernel(&self) -> Result<&Kernel, Code> {
        let made = self.kernel.get_or_init(|| {
            self.module.loaded.kernel(&self.name).map_err(|error| {
                let words = crate::module::image::words(&error);
                crate::process::account::unpreparable(&words);
                crate::api::report_error(&words);
                Code::from(&error)
            })
        });
        made.as_ref().map_err(|code| *code)
    }

    /// Reports, once, that a launch did what PTX leaves undefined.
    pub fn report_undefined(&self, report: &StopReport) {
        self.reported.call_once(|| crate::api::report_error(&margay::render::undefined(report, false)));
    }

    /// Size of the parameter block in bytes.
    pub fn params_size(&self) -> Result<usize, Code> {
        Ok(self.kernel()?.params().iter().map(|p| p.offset + p.size).max().unwrap_or(0) as usize)
    }

    fn static_shared(&self) -> Result<i32, Code> {
        Ok(self.kernel()?.static_shared() as i32)
    }

    /// Maximum dynamic shared memory of a launch in bytes.
    pub fn dynamic_shared(&self) -> Result<i32, Code> {
        match self.dynamic_shared.load(Relaxed) {
            set if set >= 0 => Ok(set),
            _ => Ok((DEFAULT_SHARED - self.static_shared()?).max(0)),
        }
    }

    /// The maximum dynamic shared memory that a program can allow the kernel.
    pub fn most_dynamic_shared(&self) -> Result<i32, Code> {
        Ok((most_shared() - self.static_shared()?).max(0))
    }

    /// An attribute by its number (`CUfunction_attribute`).
    pub fn attribute(&self, number: u32) -> Result<i32, Code> {
        let kernel = self.kernel()?;
        let func = kernel.image().ir.func(kernel.func());
        let cluster = func.reqnctapercluster.unwrap_or([0; 3]);
        let frame = kernel.image().ir.stage.funcs.get(kernel.func().0 as usize).map_or(0, |p| p.frame_size);
        let constants = kernel.image().ir.globals.iter().filter(|g| g.space == Space::Const).map(|g| g.size);
        let device = capability().0 * 10 + capability().1;
        Ok(match number {
            0 => most_threads(func),
            1 => self.static_shared()?,
            2 => constants.sum::<u64>() as i32,
            3 => frame as i32,
            4 => *self.registers.get_or_init(|| registers(kernel, self.module.max_registers)) as i32,
            5 => self.module.target(), // programs choose among their variants by what the PTX was compiled for
            6 => device,
            7 => 0,
            8 => self.dynamic_shared()?,
            9 => self.carveout.load(Relaxed),
            10 => 0,
            11 => cluster[0] as i32,
            12 => cluster[1] as i32,
            13 => cluster[2] as i32,
            14 => self.non_portable_clusters.load(Relaxed),
            15..=17 => 0,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    /// Sets an attribute (`cuFuncSetAttribute`).
    pub fn set_attribute(&self, number: u32, value: i32) -> Outcome {
        match number {
            8 if value < 0 || value > self.most_dynamic_shared()? => Err(Code::INVALID_VALUE),
            8 => {
                self.dynamic_shared.store(value, Relaxed);
                Ok(())
            }
            // A percentage, or -1 for no preference.
            9 if !(-1..=100).contains(&value) => Err(Code::INVALID_VALUE),
            9 => {
                self.carveout.store(value, Relaxed);
                Ok(())
            }
            14 => {
                self.non_portable_clusters.store(value, Relaxed);
                Ok(())
            }
            15 => Ok(()),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn parameter(&self, index: usize, offset: Out<usize>, size: Out<usize>) -> Outcome {
        let param = self.kernel()?.params().get(index).ok_or(Code::INVALID_VALUE)?;
        offset.set(param.offset as usize)?;
        size.offer(param.size as usize);
        Ok(())
    }

    fn name_for_c(&self) -> usize {
        *self.address_of_name.get_or_init(|| forever(&self.name).expose_provenance())
    }

    /// Number of CTAs that a multiprocessor of the profile's device holds at a time.
    pub fn active(&self, block: i32, dynamic: usize) -> Result<i32, Code> {
        if block <= 0 {
            return Err(Code::INVALID_VALUE);
        }
        let (threads, ctas, shared) = multiprocessor();
        let per_cta = (self.static_shared()? as usize).saturating_add(dynamic).saturating_add(1 << 10);
        if block > self.attribute(0)? || per_cta > shared as usize {
            return Ok(0);
        }
        let warps = (block + 31) / 32 * 32;
        Ok(ctas.min(threads / warps).min((shared as usize / per_cta) as i32))
    }

    /// The block size of highest occupancy, and the number of CTAs that fill the device.
    fn best_block(&self, shared: impl Fn(i32) -> usize, limit: i32) -> Result<(i32, i32), Code> {
        let most = self.attribute(0)?;
        let most = if limit > 0 { most.min(limit) } else { most };
        let mut best = (0, 0, 0);
        for block in (1..=most).rev().filter(|b| b % 32 == 0 || *b == most) {
            let active = self.active(block, shared(block))?;
            if active * block > best.0 {
                best = (active * block, active, block);
            }
        }
        Ok((best.1 * multiprocessors(), best.2))
    }
}

/// The function of a handle; that of the current context for a kernel of a library.
pub fn get(function: Handle<Function>) -> Result<Arc<Function>, Code> {
    let driver = driver()?;
    driver.functions.get(function).or_else(|code| match driver.kernels.get(Handle::of(function.number())) {
        Ok(kernel) => kernel.here(),
        Err(_) => Err(code),
    })
}

/// The function of a kernel's handle on a device.
fn get_on(kernel: Handle<Function>, device: i32) -> Result<Arc<Function>, Code> {
    crate::device::check(device)?;
    match driver()?.kernels.get(Handle::of(kernel.number())) {
        Ok(kernel) => kernel.on(device),
        Err(_) => get(kernel),
    }
}

fn potential(
    grid: Out<i32>,
    block: Out<i32>,
    function: Handle<Function>,
    size: SizeCallback,
    dynamic: usize,
    limit: i32,
) -> Outcome {
    let (ctas, threads) = get(function)?.best_block(|b| size.call(b).unwrap_or(dynamic), limit)?;
    grid.set(ctas)?;
    block.set(threads)
}

api! {
    2020 fn cuFuncGetAttribute(value: Out<i32>, number: u32, function: Handle<Function>) {
        value.set(get(function)?.attribute(number)?)
    }
    9000 fn cuFuncSetAttribute(function: Handle<Function>, number: u32, value: i32) {
        get(function)?.set_attribute(number, value)
    }
    3000 fn cuFuncSetCacheConfig(function: Handle<Function>, _config: u32) { get(function).map(drop) }
    4020 fn cuFuncSetSharedMemConfig(function: Handle<Function>, _config: u32) { get(function).map(drop) }
    11000 fn cuFuncGetModule(module: Out<Handle<Module>>, function: Handle<Function>) {
        let wanted = get(function)?;
        let found = driver()?.modules.find(|m| std::ptr::eq(m, &*wanted.module)).ok_or(Code::NOT_FOUND)?;
        module.set(found)
    }
    12030 fn cuFuncGetName(name: Out<usize>, function: Handle<Function>) { name.set(get(function)?.name_for_c()) }
    12040 fn cuFuncGetParamInfo(function: Handle<Function>, index: usize, offset: Out<usize>, size: Out<usize>) {
        get(function)?.parameter(index, offset, size)
    }
    13020 fn cuFuncGetParamCount(function: Handle<Function>, count: Out<usize>) {
        count.set(get(function)?.kernel()?.params().len())
    }
    12040 fn cuFuncIsLoaded(state: Out<u32>, function: Handle<Function>) {
        state.set(u32::from(get(function)?.kernel.get().is_some()))
    }
    12040 fn cuFuncLoad(function: Handle<Function>) { get(function)?.kernel().map(drop) }

    12000 fn cuKernelGetAttribute(value: Out<i32>, number: u32, kernel: Handle<Function>, device: i32) {
        value.set(get_on(kernel, device)?.attribute(number)?)
    }
    12000 fn cuKernelSetAttribute(number: u32, value: i32, kernel: Handle<Function>, device: i32) {
        crate::device::check(device)?;
        match driver()?.kernels.get(Handle::of(kernel.number())) {
            Ok(kernel) => kernel.set_on(device, number, value),
            Err(_) => get(kernel)?.set_attribute(number, value),
        }
    }
    12000 fn cuKernelSetCacheConfig(kernel: Handle<Function>, _config: u32, device: i32) {
        get_on(kernel, device).map(drop)
    }
    12030 fn cuKernelGetName(name: Out<usize>, kernel: Handle<Function>) { name.set(get(kernel)?.name_for_c()) }
    12040 fn cuKernelGetParamInfo(kernel: Handle<Function>, index: usize, offset: Out<usize>, size: Out<usize>) {
        get(kernel)?.parameter(index, offset, size)
    }
    13020 fn cuKernelGetParamCount(kernel: Handle<Function>, count: Out<usize>) {
        count.set(get(kernel)?.kernel()?.params().len())
    }

    6050 fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        count: Out<i32>, function: Handle<Function>, block: i32, dynamic: usize,
    ) {
        count.set(get(function)?.active(block, dynamic)?)
    }
    7000 fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Out<i32>, function: Handle<Function>, block: i32, dynamic: usize, _flags: u32,
    ) {
        count.set(get(function)?.active(block, dynamic)?)
    }
    6050 fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<i32>, block: Out<i32>, function: Handle<Function>, size: SizeCallback, dynamic: usize, limit: i32,
    ) {
        potential(grid, block, function, size, dynamic, limit)
    }
    7000 fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<i32>, block: Out<i32>, function: Handle<Function>, size: SizeCallback, dynamic: usize, limit: i32,
        _flags: u32,
    ) {
        potential(grid, block, function, size, dynamic, limit)
    }
    10020 fn cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: Out<usize>, function: Handle<Function>, ctas: i32, block: i32,
    ) {
        let function = get(function)?;
        if ctas <= 0 || block <= 0 {
            return Err(Code::INVALID_VALUE);
        }
        let each = multiprocessor().2 / ctas - (1 << 10) - function.static_shared()?;
        bytes.set(each.clamp(0, most_shared()) as usize)
    }
    11070 fn cuOccupancyMaxPotentialClusterSize(
        size: Out<i32>, function: Handle<Function>, _config: In<crate::work::launch::Config>,
    ) {
        get(function)?;
        size.set(8)
    }
    11070 fn cuOccupancyMaxActiveClusters(
        count: Out<i32>, function: Handle<Function>, _config: In<crate::work::launch::Config>,
    ) {
        get(function)?;
        count.set(multiprocessors())
    }
}
