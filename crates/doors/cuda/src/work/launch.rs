//! Launches (CUDA Driver API, "Execution Control").

use crate::{
    api::{api, because},
    checks::{order, watch},
    code::{Code, Outcome},
    context::Context,
    device::profile,
    driver::{current, current_handle, driver},
    handle::Handle,
    module::function::Function,
    process::account,
    raw::{Host, In},
    work::{Work, graph, hints, queries::QueryHandler, stream::StreamHandle},
};
use bytemuck::AnyBitPattern;
use margay_exec::LaunchShape;
use margay_runtime::{By, Error, Kernel, LaunchConfig, LaunchStats, Launcher};
use std::{backtrace::Backtrace, sync::Arc};

/// A launch with its arguments.
#[derive(Clone)]
pub struct Launch {
    /// The kernel.
    pub function: Arc<Function>,
    /// Grid, block, cluster and dynamic shared memory.
    pub shape: LaunchShape,
    /// The parameter block.
    pub params: Vec<u8>,
    /// The call, if checks are requested.
    pub from: Option<Arc<Backtrace>>,
}

/// The shape of an ordinary launch.
pub fn shape(grid: [u32; 3], block: [u32; 3], shared: u32) -> LaunchShape {
    LaunchShape { shared, ..LaunchShape::new(grid, block) }
}

/// Applies a launch attribute to a shape; hints have no effect.
pub fn set_attribute(shape: &mut LaunchShape, id: u32, value: [u32; 16]) {
    match id {
        attribute::COOPERATIVE => shape.cooperative = value[0] != 0,
        attribute::PROGRAMMATIC_STREAM_SERIALIZATION => shape.programmatic = value[0] != 0,
        attribute::CLUSTER_DIMENSION => shape.cluster = Some([value[0], value[1], value[2]]),
        _ => {}
    }
}

/// Refuses more dynamic shared memory than a kernel may have.
fn check_shared(function: &Function, shared: i32) -> Outcome {
    let (allowed, most) = (function.dynamic_shared()?, function.most_dynamic_shared()?);
    if shared <= allowed {
        return Ok(());
    }
    let remedy = match shared <= most {
        true => {
            format!("`cudaFuncSetAttribute` with `cudaFuncAttributeMaxDynamicSharedMemorySize` allows up to {most}")
        }
        false => format!("this device has at most {most} for it (see `--device`)"),
    };
    let name = margay::render::demangled(function.name());
    crate::api::report_error(&format!(
        "error: a launch of `{name}` with {shared} bytes of dynamic shared memory exceeds the {allowed} that the kernel may have; {remedy}"
    ));
    Err(Code::INVALID_VALUE)
}

impl Launch {
    /// Collects the arguments: an address per parameter, or one block (`CU_LAUNCH_PARAM_BUFFER_POINTER`).
    pub fn new(
        function: Handle<Function>,
        shape: LaunchShape,
        params: In<u64>,
        extra: In<u64>,
    ) -> Result<Launch, Code> {
        let function = crate::module::function::get(function)?;
        if !params.is_null() && !extra.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        function.kernel().inspect_err(|_| account::refused())?;
        let shared = i32::try_from(shape.shared).map_err(|_| Code::INVALID_VALUE)?;
        check_shared(&function, shared)?;
        let formals = function.kernel()?.params();
        let size = function.params_size()?;
        let mut block = vec![0; size];
        if !params.is_null() {
            for (i, formal) in formals.iter().enumerate() {
                let (from, len) = (formal.offset as usize, formal.size as usize);
                params.pointers().nth(i)?.read(&mut block[from..from + len])?;
            }
        } else if !extra.is_null() {
            let (buffer, len) = buffer(extra)?;
            let len = len.min(size);
            buffer.read(&mut block[..len])?;
        } else if size > 0 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(Launch { function, shape, params: block, from: crate::checks::stacks::launch() })
    }

    /// Whether a device would take it.
    pub fn check(&self) -> Outcome {
        self.function.kernel()?.check(&LaunchConfig::of(self.shape), &self.params).map_err(|error| {
            let (words, name) = (crate::module::image::words(&error), margay::render::demangled(self.function.name()));
            let why = words.strip_prefix("error: ").unwrap_or(&words);
            crate::api::report_error(&format!("error: a launch of `{name}` is refused: {why}"));
            Code::from(&error)
        })?;
        if self.shape.cooperative { self.check_resident() } else { Ok(()) }
    }

    /// Refuses a cooperative launch whose CTAs the device cannot hold at once (`cuLaunchCooperativeKernel`). margay's own device has few
    /// multiprocessors, but holds what some GPU would.
    fn check_resident(&self) -> Outcome {
        /// Of the largest GPU, an RTX PRO 6000.
        const MAX_MULTIPROCESSORS: u64 = 188;
        let count = |dims: [u32; 3]| dims.iter().map(|n| u64::from(*n)).product::<u64>();
        let (ctas, threads) = (count(self.shape.grid), count(self.shape.block));
        let each = self.function.active(threads as i32, self.shape.shared as usize)?.max(0) as u64;
        let device = profile().multiprocessors.map_or(MAX_MULTIPROCESSORS, u64::from);
        if ctas <= each * device {
            return Ok(());
        }
        let whose = if profile().multiprocessors.is_some() { "" } else { " of the largest GPU" };
        crate::api::report_error(&format!(
            "margay: a cooperative launch of {ctas} CTAs of `{}` is too large: {device} multiprocessors{whose} hold {each} of them each",
            margay::render::demangled(self.function.name()),
        ));
        Err(Code::COOPERATIVE_LAUNCH_TOO_LARGE)
    }

    /// Runs the kernel. A failure becomes the context's sticky error, which later calls return.
    pub fn run(&self, context: &Arc<Context>) -> Outcome {
        let kernel = self.function.kernel()?;
        let (cancel, graph) = (Some(context.cancel.clone()), graph::current());
        let config = LaunchConfig { cancel, graph, ..LaunchConfig::of(self.shape) };
        crate::work::capture::launch(&self.function, kernel, context, &config, &self.params);
        let mut family = watch::LaunchFamily::default();
        let answers = QueryHandler { context, module: &self.function.module };
        let from = self.from.as_deref();
        let ended =
            watched(answers, (kernel, from), config, &self.params, (&mut family, None)).and_then(|mut stats| {
                let (queued, cancel) = (std::mem::take(&mut stats.queued), Some(&context.cancel));
                self.function.module.loaded.perform(kernel, queued, cancel, &mut Children { answers, family })?;
                Ok(stats)
            });
        match ended {
            Ok(stats) => {
                if let Some(undefined) = &stats.undefined {
                    self.function.report_undefined(undefined);
                }
                Ok(())
            }
            Err(error) => {
                let error = hints::explain(error, kernel, &self.params, context.device_memory());
                match context.fail(&hints::launched(error, kernel, from)) {
                    code if code.is_sticky() => Ok(()),
                    code => Err(code),
                }
            }
        }
    }
}

/// Launches what device code launches.
struct Children<'c> {
    answers: QueryHandler<'c>,
    family: watch::LaunchFamily,
}

impl Launcher for Children<'_> {
    fn launch(
        &mut self,
        by: By,
        kernel: &Kernel,
        config: LaunchConfig<'static>,
        params: &[u8],
    ) -> Result<LaunchStats, Error> {
        watched(self.answers, (kernel, None), config, params, (&mut self.family, Some(by)))
    }

    fn moved(&mut self, by: By, read: Option<(u64, u64)>, written: (u64, u64)) {
        self.family.moved(by, (read, written), self.answers.context.device_memory());
    }

    fn launch_graph(&mut self, graph: u64, tail: bool) -> Result<(), Error> {
        graph::launch_later(graph, tail).map_err(Error::BadLaunch)
    }
}

/// Launches a kernel under the checks that are requested for it, and reports their findings, with the call that launched it.
fn watched(
    answers: QueryHandler<'_>,
    (kernel, from): (&Kernel, Option<&Backtrace>),
    config: LaunchConfig<'static>,
    params: &[u8],
    (family, by): (&mut watch::LaunchFamily, Option<By>),
) -> Result<LaunchStats, Error> {
    let context = answers.context;
    let config = LaunchConfig { driver: Some(&answers), ..config };
    let _under_way = account::begins(kernel);
    let LaunchShape { grid, block, .. } = config.shape;
    let threads = grid.iter().chain(&block).map(|n| u64::from(*n)).product();
    let alone = by.is_none() && order::is_alone(context, threads);
    let Some(sanitizer) = watch::sanitizer(kernel, config.shape, params, alone) else {
        let stats = kernel.launch(&config, params)?;
        family.launched(by, kernel, None, context.device_memory());
        account::launched(kernel, &stats);
        return Ok(stats);
    };
    let clock = watch::Clock::new(kernel);
    let progress = |done, total| clock.progress(done, total);
    let config = LaunchConfig { seed: watch::seed(), observer: Some(&sanitizer), progress: Some(&progress), ..config };
    let ended = kernel.launch(&config, params);
    let touched = sanitizer.footprint();
    order::launched(&touched, sanitizer.overlap());
    if watch::report_findings((kernel, from), &sanitizer) {
        context.give_up(Code::LAUNCH_FAILED);
    }
    let mut stats = ended?;
    if by.is_some() || !stats.queued.is_empty() {
        family.launched(by, kernel, Some((sanitizer, touched)), context.device_memory());
    }
    account::launched(kernel, &stats);
    if watch::wanted().is_some_and(|what| what.sync) {
        stats.undefined = None; // the sanitizer has reported it
    }
    Ok(stats)
}

/// The parameter block in `extra`: pairs of a key and a value, terminated by 0.
fn buffer(extra: In<u64>) -> Result<(Host, usize), Code> {
    const POINTER: u64 = 1;
    const SIZE: u64 = 2;
    let (mut at, mut len) = (None, None);
    for i in (0..).step_by(2) {
        match extra.nth(i)? {
            0 => break,
            POINTER => at = Some(extra.pointers().nth(i + 1)?),
            SIZE => len = Some(extra.pointers().nth(i + 1)?.value::<usize>(0)?),
            _ => return Err(Code::INVALID_VALUE),
        }
    }
    at.zip(len).ok_or(Code::INVALID_VALUE)
}

/// `CUlaunchConfig`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: StreamHandle,
    attributes: In<Attribute>,
    attribute_count: u32,
}

/// `CUlaunchAttribute`: an id, and 64 bytes of value.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
struct Attribute {
    id: u32,
    pad: u32,
    value: [u32; 16],
}

/// `CUlaunchAttributeID`: the attributes that affect results.
pub mod attribute {
    pub const COOPERATIVE: u32 = 2;
    pub const CLUSTER_DIMENSION: u32 = 4;
    pub const PROGRAMMATIC_STREAM_SERIALIZATION: u32 = 6;
    pub const DEVICE_UPDATABLE: u32 = 13;
    /// Offset in the value of the last one, in bytes, of the handle for device code.
    pub const DEVICE_NODE: usize = 8;
}

impl Config {
    /// The value of the attribute that lets device code change the node of a captured launch, if it is set.
    fn updatable(&self) -> Result<Option<Host>, Code> {
        for i in 0..self.attribute_count as usize {
            if self.attributes.nth(i)?.id == attribute::DEVICE_UPDATABLE {
                let value = i * size_of::<Attribute>() + std::mem::offset_of!(Attribute, value);
                return Ok(Some(Host::unified(self.attributes.address()).offset(value)));
            }
        }
        Ok(None)
    }

    fn shape(&self) -> Result<LaunchShape, Code> {
        let mut shape = shape(self.grid, self.block, self.shared);
        for i in 0..self.attribute_count as usize {
            let Attribute { id, value, .. } = self.attributes.nth(i)?;
            set_attribute(&mut shape, id, value);
        }
        Ok(shape)
    }
}

fn launch(
    function: Handle<Function>,
    shape: LaunchShape,
    stream: StreamHandle,
    params: In<u64>,
    extra: In<u64>,
) -> Outcome {
    let used = stream.get()?;
    let launch = Launch::new(function, shape, params, extra)?;
    check_place(&launch.function, used.context())?;
    stream.submit(Work::Kernel(launch))
}

/// Refuses a launch into a stream of another context than the function's, which for kernels of libraries is the current one (CUDA C++
/// Programming Guide, "Stream and Event Behavior": a launch fails in a stream that is not associated with the current device).
fn check_place(function: &Function, used: &Context) -> Outcome {
    let (own, place) = (function.module.context, used.handle);
    if own == place && current_handle() == place {
        return Ok(());
    }
    let of_library = driver()?.libraries.find(|library| library.has(&function.module)).is_some();
    let expected = if of_library { current()?.handle } else { own };
    if expected == place { Ok(()) } else { Err(Code::INVALID_HANDLE) }
}

api! {
    4000 + ptsz fn cuLaunchKernel(
        function: Handle<Function>, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: StreamHandle,
        params: In<u64>, extra: In<u64>,
    ) {
        launch(function, shape([gx, gy, gz], [bx, by, bz], shared), stream, params, extra)
    }
    11060 + ptsz fn cuLaunchKernelEx(config: In<Config>, function: Handle<Function>, params: In<u64>, extra: In<u64>) {
        let config = config.get()?;
        let updatable = config.updatable()?;
        if updatable.is_some() && config.stream.get()?.stream().capture.lock().is_none() {
            because(|| "only a launch into a stream that is captured can make a device-updatable node".into());
            return Err(Code::INVALID_VALUE);
        }
        launch(function, config.shape()?, config.stream, params, extra)?;
        updatable.map_or(Ok(()), |place| match &*config.stream.get()?.stream().capture.lock() {
            Some(capture) => capture.make_last_updatable(place),
            None => Err(Code::INVALID_VALUE),
        })
    }
    9000 + ptsz fn cuLaunchCooperativeKernel(
        function: Handle<Function>, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: StreamHandle,
        params: In<u64>,
    ) {
        let shape = LaunchShape { cooperative: true, ..shape([gx, gy, gz], [bx, by, bz], shared) };
        launch(function, shape, stream, params, In::null())
    }
}
