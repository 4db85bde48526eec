//! Launches begin without waiting for the compiler, and whole CTAs move to what it makes.
//!
//! The compiler of these tests makes code of the reference engine's form of a kernel, when it is told to, and counts what runs on it.

use margay_exec::{
    Batch, CodeShape, Compiler, Cta, Effort, Engine as _, Grid, Image, Kernel, Launch, Log, MemoryEvent, Meter, NoCode,
    Observer, Program, Progress, Reference, Stop, Unsupported,
};
use margay_ir::FuncId;
use margay_runtime::{Buffer, Device, DeviceOptions, Engine, LaunchConfig, LaunchShape, LoadOptions, SourceText, Tier};
use parking_lot::{Condvar, Mutex};
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

/// Every CTA adds 1 to its own word, after `%rounds` rounds of a loop.
const TEXT: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry count(.param .u64 words, .param .u32 rounds) {
    .reg .pred %p;
    .reg .b32 %i, %n, %x;
    .reg .b64 %at, %offset;
    ld.param.u32 %n, [rounds];
    mov.u32 %i, 0;
again:
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra again;
    ld.param.u64 %at, [words];
    mov.u32 %x, %ctaid.x;
    mul.wide.u32 %offset, %x, 4;
    add.u64 %at, %at, %offset;
    red.global.add.u32 [%at], 1;
    ret;
}";

/// What the compiler does, and what was done with its code.
#[derive(Default)]
struct State {
    /// Compilation waits until this is true.
    open: Mutex<bool>,
    opened: Condvar,
    refuses: bool,
    by_range: bool,
    compilations: AtomicU64,
    ctas: AtomicU64,
}

impl State {
    fn open(&self) {
        *self.open.lock() = true;
        self.opened.notify_all();
    }
}

struct Fake(Arc<State>);

struct FakeProgram {
    state: Arc<State>,
    image: Arc<Image>,
    kernel: FuncId,
}

struct Code {
    state: Arc<State>,
    kernel: Arc<dyn Kernel>,
}

impl Compiler for Fake {
    fn program(&self, image: Arc<Image>, kernel: FuncId) -> Arc<dyn Program> {
        Arc::new(FakeProgram { state: self.0.clone(), image, kernel })
    }
}

impl Program for FakeProgram {
    fn estimate(&self, _: Effort) -> Duration {
        Duration::from_millis(12)
    }

    fn find(&self, _: &CodeShape, _: Effort, _: &Log) -> Option<(Arc<dyn Kernel>, Effort)> {
        None
    }

    fn compile(&self, _: &CodeShape, _: Effort, _: &Log) -> Result<Arc<dyn Kernel>, NoCode> {
        self.state.compilations.fetch_add(1, SeqCst);
        self.state.opened.wait_while(&mut self.state.open.lock(), |open| !*open);
        if self.state.refuses {
            return Err(NoCode::Refused(Unsupported { what: "a loop".into(), func: None, at: None }));
        }
        let kernel = Reference.prepare(self.image.clone(), self.kernel).map_err(|_| NoCode::Bug("decode".into()))?;
        Ok(Arc::new(Code { state: self.state.clone(), kernel }))
    }
}

impl Kernel for Code {
    fn start<'a>(self: Arc<Self>, grid: &'a Grid<'a>, first: [u32; 3]) -> Result<Box<dyn Cta + 'a>, Stop> {
        assert!(!self.state.by_range);
        self.state.ctas.fetch_add(1, SeqCst);
        self.kernel.clone().start(grid, first)
    }

    fn by_range(&self) -> bool {
        self.state.by_range
    }

    fn batch<'a>(self: Arc<Self>, grid: &'a Grid<'a>, _: &'a dyn Meter) -> Result<Option<Box<dyn Batch + 'a>>, Stop> {
        Ok(Some(Box::new(Worker(self, grid))))
    }
}

struct Worker<'a>(Arc<Code>, &'a Grid<'a>);

impl Batch for Worker<'_> {
    fn run(&mut self, ctas: Range<u64>) -> Result<(), Stop> {
        for cta in ctas {
            self.0.state.ctas.fetch_add(1, SeqCst);
            let mut cta = self.0.kernel.clone().start(self.1, [cta as u32, 0, 0])?;
            while cta.run(u64::MAX)?.progress != Progress::Done {}
        }
        Ok(())
    }
}

/// Counts accesses.
struct Witness(AtomicU64);

impl Observer for Witness {
    fn memory(&self, _: &MemoryEvent<'_>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A kernel on an engine with that compiler.
struct Setting {
    state: Arc<State>,
    kernel: margay_runtime::Kernel,
    words: Buffer,
}

fn setting(state: State, engine: fn(Arc<Fake>) -> Engine) -> Setting {
    let state = Arc::new(state);
    let engines = vec![engine(Arc::new(Fake(state.clone())))];
    let device = Device::with(DeviceOptions { threads: Some(2), engines, ..DeviceOptions::default() }).unwrap();
    let context = device.context();
    let module = context.load(&[SourceText { name: "count", text: TEXT }], &LoadOptions::default()).unwrap();
    let kernel = module.kernel("count").unwrap();
    Setting { state, kernel, words: context.buffer(4 * 4096).unwrap() }
}

fn tiered(fake: Arc<Fake>) -> Engine {
    Engine::tiered("tiered", Arc::new(Reference), fake)
}

fn compiled(fake: Arc<Fake>) -> Engine {
    Engine::compiled("compiled", fake, Effort::Light, Some(Arc::new(Reference)))
}

impl Setting {
    /// A launch of so many CTAs; every one must have run once.
    fn launch<'c>(&self, ctas: u32, rounds: u32, change: impl FnOnce(LaunchConfig<'c>) -> LaunchConfig<'c>) {
        self.words.write(0, &[0; 4 * 4096]).unwrap();
        let mut block = self.kernel.arguments();
        block.push_address(self.words.address()).unwrap();
        block.push(&rounds.to_le_bytes()).unwrap();
        let config = change(LaunchConfig::new([ctas, 1, 1], [1, 1, 1]));
        self.kernel.launch(&config, &block.finish().unwrap()).unwrap();
        let words = self.words.to_vec().unwrap();
        let words: Vec<u32> = words.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
        assert!(words.iter().enumerate().all(|(i, n)| *n == u32::from(i < ctas as usize)), "{words:?}");
    }

    fn units(&self, tier: Tier) -> u64 {
        self.kernel.tiers().iter().filter(|t| t.tier == tier).map(|t| t.units).sum()
    }

    fn compilations(&self) -> u64 {
        self.state.compilations.load(SeqCst)
    }
}

#[test]
fn a_launch_waits_for_no_compiler_and_a_later_one_takes_its_code() {
    for by_range in [false, true] {
        let s = setting(State { by_range, ..State::default() }, tiered);
        // The compiler is stuck until the launch is over.
        s.launch(64, 200_000, |c| c);
        assert_eq!((s.units(Tier::Reference), s.state.ctas.load(SeqCst)), (64, 0));
        s.state.open();
        while s.units(Tier::Light) == 0 {
            s.launch(8, 1000, |c| c);
        }
        assert!(s.compilations() >= 1 && s.state.ctas.load(SeqCst) > 0);
    }
}

#[test]
fn ctas_that_have_not_begun_move() {
    for by_range in [false, true] {
        let s = setting(State { by_range, ..State::default() }, tiered);
        s.state.open();
        s.launch(4096, 20_000, |c| c);
        let (stayed, moved) = (s.units(Tier::Reference), s.units(Tier::Light) + s.units(Tier::Full));
        assert_eq!((stayed + moved, moved), (4096, s.state.ctas.load(SeqCst)));
        assert!(stayed > 0 && moved > 0, "{stayed} stayed, {moved} moved");
    }
}

#[test]
fn what_is_small_is_never_compiled() {
    let s = setting(State::default(), tiered);
    for _ in 0..5 {
        s.launch(2, 10, |c| c);
    }
    assert_eq!((s.compilations(), s.units(Tier::Reference)), (0, 10));
}

#[test]
fn a_refusal_is_told_and_asked_for_once() {
    let s = setting(State { refuses: true, ..State::default() }, tiered);
    s.state.open();
    while s.kernel.fallback().is_none() {
        s.launch(64, 200_000, |c| c);
    }
    s.launch(64, 200_000, |c| c);
    assert_eq!((s.compilations(), s.kernel.fallback().as_deref()), (1, Some("a loop")));
}

#[test]
fn launches_that_could_tell_stay_on_one_engine() {
    let s = setting(State::default(), tiered);
    s.state.open();
    // All CTAs of a cooperative launch begin at once; with a seed and under observation everything is the reference engine's.
    s.launch(64, 200_000, |c| LaunchConfig { shape: LaunchShape { cooperative: true, ..c.shape }, ..c });
    assert_eq!(s.state.ctas.load(SeqCst), 0);
    s.launch(64, 2000, |c| LaunchConfig { seed: 3, ..c });
    let witness = Witness(AtomicU64::new(0));
    s.launch(8, 2000, |c| LaunchConfig { observer: Some(&witness), ..c });
    assert!(witness.0.load(SeqCst) >= 8);
    assert_eq!((s.state.ctas.load(SeqCst), s.units(Tier::Reference)), (0, 136));
}

#[test]
fn who_asks_for_compiled_code_gets_nothing_else() {
    let s = setting(State::default(), compiled);
    s.state.open();
    s.launch(3, 10, |c| c);
    assert_eq!((s.state.ctas.load(SeqCst), s.units(Tier::Reference), s.compilations()), (3, 0, 1));
}

#[test]
fn an_engine_for_tests_alternates() {
    for by_range in [false, true] {
        let s = setting(State { by_range, ..State::default() }, |fake| {
            Engine::alternating("alternating", Arc::new(Reference), fake)
        });
        s.state.open();
        s.launch(256, 10, |c| c);
        let on_code = s.state.ctas.load(SeqCst);
        assert!(on_code > 0 && s.units(Tier::Reference) > 0 && on_code + s.units(Tier::Reference) == 256);
    }
}

/// The launch is what the shape is of.
#[test]
fn shapes_tell_what_code_depends_on() {
    let shape = LaunchShape { cluster: Some([1, 0, 1]), ..LaunchShape::new([7, 1, 1], [32, 2, 1]) };
    let launch = Launch {
        shape: LaunchShape { cooperative: true, ..shape },
        params: Vec::new(),
        seed: 0,
        real_time: false,
        stack_limit: 0,
        count: false,
        observe: None,
        graph: 0,
    };
    assert_eq!(
        CodeShape::of(&launch),
        CodeShape { block: [32, 2, 1], cluster: [1; 3], turns: true, count: false, observe: None }
    );
    let larger = Launch { shape: LaunchShape { grid: [9, 1, 1], ..shape }, ..launch };
    assert_eq!(
        CodeShape::of(&larger),
        CodeShape { block: [32, 2, 1], cluster: [1; 3], turns: false, count: false, observe: None }
    );
}
