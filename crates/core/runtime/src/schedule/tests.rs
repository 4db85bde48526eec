//! The scheduler with CTAs that do what a test tells them.

use super::*;
use crate::tiers::{Attempt, Moved};
use margay_exec::{Batch, Cta, Image, Kernel, Launch, LaunchShape, Memory, Progress as Step, Slice};
use margay_ir::{Ir, Placed};
use margay_isa::{Target, Version};

/// What a CTA of the fake kernel does when it is given fuel: its number and how often it ran before.
type Behavior = Box<dyn Fn(u64, u32) -> Result<Step, Stop> + Send + Sync>;

struct Fake {
    behavior: Behavior,
    log: Mutex<Vec<(u64, bool)>>,
}

/// One code for the whole launch.
struct Only(Arc<dyn Kernel>);

impl CodeSource for Only {
    fn version(&self) -> u32 {
        0
    }

    fn best(&self) -> (Arc<dyn Kernel>, Tier) {
        (self.0.clone(), Tier::Reference)
    }

    fn ran(&self, _: Tier, _: u64, _: Duration, _: u64, _: usize) {}

    fn holds_back(&self, _: u64, _: usize) -> bool {
        false
    }
}

struct FakeCta {
    fake: Arc<Fake>,
    number: u64,
    runs: u32,
}

impl Kernel for Fake {
    fn start<'a>(self: Arc<Self>, grid: &'a Grid<'a>, first: [u32; 3]) -> Result<Box<dyn Cta + 'a>, Stop> {
        let [x, y, _] = grid.launch.shape.grid.map(u64::from);
        let number = u64::from(first[0]) + x * (u64::from(first[1]) + y * u64::from(first[2]));
        self.log.lock().push((number, false));
        Ok(Box::new(FakeCta { fake: self, number, runs: 0 }))
    }
}

impl Cta for FakeCta {
    fn run(&mut self, fuel: u64) -> Result<Slice, Stop> {
        let step = (self.fake.behavior)(self.number, self.runs)?;
        self.runs += 1;
        if step == Step::Done {
            self.fake.log.lock().push((self.number, true));
        }
        Ok(Slice { progress: step, executed: fuel })
    }
}

struct Setting {
    grid: [u32; 3],
    cluster: [u32; 3],
    seed: u64,
    cooperative: bool,
    workers: usize,
    instructions: Option<u64>,
}

const PLAIN: Setting =
    Setting { grid: [5, 3, 2], cluster: [1; 3], seed: 0, cooperative: false, workers: 4, instructions: None };

/// Runs the fake kernel; the log has (CTA, false) for its start and (CTA, true) for its end.
fn go(setting: &Setting, behavior: Behavior) -> (Result<(), Ended>, Vec<(u64, bool)>) {
    let fake = Arc::new(Fake { behavior, log: Mutex::default() });
    let result = launch(&Only(fake.clone()), setting);
    let log = fake.log.lock().clone();
    (result, log)
}

fn launch(code: &dyn CodeSource, setting: &Setting) -> Result<(), Ended> {
    let ir = Ir {
        funcs: Vec::new(),
        globals: Vec::new(),
        address_taken: Default::default(),
        func_names: Default::default(),
        global_names: Default::default(),
        target: Target::sm(80),
        version: Version::LAST,
        address_size: 64,
        thread_block: 0,
        ranked_addresses: false,
        stage: Placed { abi: "ptx", funcs: Vec::new() },
    };
    let image = Image { ir: Arc::new(ir), addresses: Vec::new(), static_shared: 0, reserved_shared: 0, shared_unit: 1 };
    let launch = Launch {
        shape: LaunchShape {
            cluster: Some(setting.cluster),
            cooperative: setting.cooperative,
            ..LaunchShape::new(setting.grid, [1; 3])
        },
        params: Vec::new(),
        seed: setting.seed,
        real_time: false,
        stack_limit: 0,
        count: false,
        observe: None,
        graph: 0,
    };
    let (memory, pool) = (Memory::default(), rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap());
    let grid = Grid::new(&launch, &image, &memory, &|_| {}).unwrap();
    let (workers, instructions) = (setting.workers, setting.instructions);
    run(
        code,
        &grid,
        &Schedule {
            pool: &pool,
            workers,
            instructions,
            stall: Duration::from_millis(50),
            cancel: None,
            progress: None,
            spans: None,
            cost: &Cost::default(),
        },
    )
}

fn ended(log: &[(u64, bool)]) -> Vec<u64> {
    let mut all: Vec<u64> = log.iter().filter(|(_, end)| *end).map(|(n, _)| *n).collect();
    all.sort_unstable();
    all
}

#[test]
fn every_cta_runs_once() {
    for (workers, seed) in [(1, 0), (4, 0), (4, 9)] {
        let (result, log) = go(&Setting { workers, seed, ..PLAIN }, Box::new(|_, _| Ok(Step::Done)));
        assert!(result.is_ok());
        assert_eq!(ended(&log), (0..30).collect::<Vec<_>>(), "{workers} workers, seed {seed}");
    }
}

#[test]
fn clusters_start_at_their_first_cta() {
    let (_, log) = go(&Setting { grid: [4, 4, 1], cluster: [2, 2, 1], ..PLAIN }, Box::new(|_, _| Ok(Step::Done)));
    assert_eq!(ended(&log), [0, 2, 8, 10]);
}

#[test]
fn a_cta_may_wait_for_a_later_one() {
    let last = Arc::new(AtomicBool::new(false));
    let seen = last.clone();
    // CTA 0 spins until CTA 29 has run; with one worker, the scheduler starts CTA 29 only after suspecting that.
    let behavior = move |n: u64, _| match n {
        29 => {
            last.store(true, Relaxed);
            Ok(Step::Done)
        }
        0 if !last.load(Relaxed) => Ok(Step::More),
        _ => Ok(Step::Done),
    };
    let (result, log) = go(&Setting { workers: 1, ..PLAIN }, Box::new(behavior));
    assert!(result.is_ok() && seen.load(Relaxed));
    assert_eq!(ended(&log).len(), 30);
}

/// Grids in which all CTAs wait for each other, as they may where a GPU holds all of them at once.
#[test]
fn hundreds_of_ctas_may_wait_for_the_last_one() {
    for workers in [1, 4] {
        let last = AtomicBool::new(false);
        let behavior = move |n: u64, _| match n {
            2999 => {
                last.store(true, Relaxed);
                Ok(Step::Done)
            }
            _ if !last.load(Relaxed) => Ok(Step::Waiting { repeats: true }),
            _ => Ok(Step::Done),
        };
        let (result, log) = go(&Setting { grid: [3000, 1, 1], workers, ..PLAIN }, Box::new(behavior));
        assert!(result.is_ok());
        assert_eq!(ended(&log).len(), 3000);
    }
}

/// No CTA does what the others wait for: the launch ends although not all of them can start.
#[test]
fn more_waiting_ctas_than_can_start_are_stuck() {
    let setting = Setting { grid: [1_000_000, 1, 1], workers: 1, ..PLAIN };
    let (result, log) = go(&setting, Box::new(|_, _| Ok(Step::Waiting { repeats: true })));
    assert!(matches!(result, Err(Ended::Stopped(_))));
    assert!(log.len() < 100_000);
}

#[test]
fn a_cooperative_grid_starts_as_a_whole() {
    let (_, log) = go(
        &Setting { workers: 1, cooperative: true, ..PLAIN },
        Box::new(|_, runs| Ok(if runs < 3 { Step::More } else { Step::Done })),
    );
    assert!(log[..30].iter().all(|(_, end)| !end), "{log:?}");
}

#[test]
fn others_run_when_a_cta_yields() {
    let behavior = |_, runs| Ok(if runs == 0 { Step::Yielded } else { Step::Done });
    let (_, log) = go(&Setting { workers: 1, ..PLAIN }, Box::new(behavior));
    assert!(log[..8].iter().all(|(_, end)| !end), "a few begin: {log:?}");
    assert_eq!(log[8], (0, true), "those that have yielded go on in turn");
    assert_eq!(ended(&log).len(), 30);
}

#[test]
fn each_seed_gives_an_order_of_its_own() {
    let order = |seed| {
        let behavior = |_, runs| Ok(if runs < 3 { Step::More } else { Step::Done });
        go(&Setting { seed, ..PLAIN }, Box::new(behavior)).1
    };
    assert_eq!(order(5), order(5));
    assert_ne!(order(5), order(6));
    assert_ne!(order(5), order(0));
}

#[test]
fn the_first_fault_and_the_limit_end_the_grid() {
    let trap = |n, _| match n {
        7 => Err(Stop::Exhausted(Exhausted("seven".into()))),
        _ => Ok(Step::Done),
    };
    let (result, log) = go(&PLAIN, Box::new(trap));
    assert!(matches!(result, Err(Ended::Stopped(Stop::Exhausted(e))) if e.0 == "seven"));
    assert!(ended(&log).len() < 30);
    let forever = Setting { instructions: Some(1_000_000), ..PLAIN };
    let (result, _) = go(&forever, Box::new(|_, _| Ok(Step::More)));
    assert!(matches!(result, Err(Ended::Stopped(Stop::Exhausted(e))) if e.0.contains("1000000")));
    // Units that end within a slice count, too.
    let short = Setting { grid: [1000, 1, 1], instructions: Some(100), ..PLAIN };
    let (result, log) = go(&short, Box::new(|_, _| Ok(Step::Done)));
    assert!(matches!(result, Err(Ended::Stopped(Stop::Exhausted(e))) if e.0.contains("100 warp")));
    assert!(ended(&log).len() < 30);
}

#[test]
fn a_panic_ends_the_grid_and_nobody_waits_for_it() {
    // The others wait for CTA 7, which never says anything.
    let behavior = |n, _| match n {
        7 => panic!("seven"),
        _ => Ok(Step::Waiting { repeats: true }),
    };
    let (result, _) = go(&PLAIN, Box::new(behavior));
    assert!(matches!(result, Err(Ended::Stopped(Stop::Bug(b))) if b.0.contains("seven")));
}

/// A kernel of which ranges of CTAs run at once; each of its two CTAs waits until the other one has begun.
struct Pair(std::sync::Barrier);

struct Half(Arc<Pair>);

impl Kernel for Pair {
    fn start<'a>(self: Arc<Self>, _: &'a Grid<'a>, _: [u32; 3]) -> Result<Box<dyn Cta + 'a>, Stop> {
        Err(Stop::Exhausted(Exhausted("one by one".into())))
    }

    fn by_range(&self) -> bool {
        true
    }

    fn batch<'a>(self: Arc<Self>, _: &'a Grid<'a>, _: &'a dyn Meter) -> Result<Option<Box<dyn Batch + 'a>>, Stop> {
        Ok(Some(Box::new(Half(self))))
    }
}

impl Batch for Half {
    fn run(&mut self, ctas: std::ops::Range<u64>) -> Result<(), Stop> {
        assert_eq!(ctas.end - ctas.start, 1);
        self.0.0.wait();
        Ok(())
    }
}

#[test]
fn the_first_launch_uses_all_threads_from_its_first_cta_on() {
    let setting = Setting { grid: [2, 1, 1], workers: 2, ..PLAIN };
    let pair = Only(Arc::new(Pair(std::sync::Barrier::new(2))));
    assert!(launch(&pair, &setting).is_ok());
}

/// Holds the first CTA when it has run for a slice.
struct Holding {
    code: Arc<dyn Kernel>,
    held: std::sync::OnceLock<Instant>,
}

/// A third of the time for which a CTA is held.
const HELD: Duration = Duration::from_millis(10);

impl CodeSource for Holding {
    fn version(&self) -> u32 {
        0
    }

    fn best(&self) -> (Arc<dyn Kernel>, Tier) {
        (self.code.clone(), Tier::Reference)
    }

    fn ran(&self, _: Tier, _: u64, _: Duration, _: u64, _: usize) {}

    fn holds_back(&self, _: u64, _: usize) -> bool {
        false
    }

    fn take_over(&self, attempt: &mut Attempt, _: &mut dyn Cta) -> Result<Option<Moved<'_>>, Stop> {
        self.held.get_or_init(|| {
            attempt.hold(HELD);
            Instant::now()
        });
        Ok(None)
    }
}

#[test]
fn a_cta_that_is_held_in_vain_runs_on_later() {
    let again = Arc::new(std::sync::OnceLock::new());
    let seen = again.clone();
    let behavior = move |_, runs| {
        if runs == 1 {
            seen.get_or_init(Instant::now);
        }
        Ok(if runs < 3 { Step::More } else { Step::Done })
    };
    let fake = Arc::new(Fake { behavior: Box::new(behavior), log: Mutex::default() });
    let code = Holding { code: fake.clone(), held: Default::default() };
    assert!(launch(&code, &Setting { grid: [1, 1, 1], workers: 1, ..PLAIN }).is_ok());
    let waited = again.get().unwrap().duration_since(*code.held.get().unwrap());
    assert!(waited >= 3 * HELD, "{waited:?}");
    assert_eq!(ended(&fake.log.lock()), [0]);
}

/// Code that runs ranges of CTAs, and is ready when the first CTA is held.
struct Better {
    first: Holding,
    ranges: Arc<Ranges>,
}

/// Logs CTAs; each takes longer than a CTA is held.
#[derive(Default)]
struct Ranges(Mutex<Vec<u64>>);
struct Logged(Arc<Ranges>);

impl Kernel for Ranges {
    fn start<'a>(self: Arc<Self>, _: &'a Grid<'a>, _: [u32; 3]) -> Result<Box<dyn Cta + 'a>, Stop> {
        Err(Stop::Exhausted(Exhausted("only ranges".into())))
    }

    fn by_range(&self) -> bool {
        true
    }

    fn batch<'a>(self: Arc<Self>, _: &'a Grid<'a>, _: &'a dyn Meter) -> Result<Option<Box<dyn Batch + 'a>>, Stop> {
        Ok(Some(Box::new(Logged(self))))
    }
}

impl Batch for Logged {
    fn run(&mut self, ctas: std::ops::Range<u64>) -> Result<(), Stop> {
        std::thread::sleep(4 * HELD);
        self.0.0.lock().extend(ctas);
        Ok(())
    }
}

impl CodeSource for Better {
    fn version(&self) -> u32 {
        self.first.held.get().is_some().into()
    }

    fn best(&self) -> (Arc<dyn Kernel>, Tier) {
        match self.first.held.get() {
            None => self.first.best(),
            Some(_) => (self.ranges.clone(), Tier::Light),
        }
    }

    fn ran(&self, _: Tier, _: u64, _: Duration, _: u64, _: usize) {}

    fn holds_back(&self, _: u64, _: usize) -> bool {
        false
    }

    fn take_over(&self, attempt: &mut Attempt, cta: &mut dyn Cta) -> Result<Option<Moved<'_>>, Stop> {
        self.first.take_over(attempt, cta)
    }
}

#[test]
fn better_code_runs_the_other_ctas_while_one_is_held_and_after() {
    // The first CTA runs for so many slices that others would be started beside it.
    let behavior = |_, runs| Ok(if runs < 200 { Step::More } else { Step::Done });
    let fake = Arc::new(Fake { behavior: Box::new(behavior), log: Mutex::default() });
    let first = Holding { code: fake.clone(), held: Default::default() };
    let better = Better { first, ranges: Arc::default() };
    assert!(launch(&better, &Setting { grid: [4, 1, 1], workers: 1, ..PLAIN }).is_ok());
    assert_eq!(ended(&fake.log.lock()), [0]);
    assert_eq!(*better.ranges.0.lock(), [1, 2, 3]);
}

/// Code for CTAs that becomes better once the first one has run.
struct Improving {
    old: Arc<Fake>,
    new: Arc<Fake>,
    improved: Arc<AtomicBool>,
}

impl CodeSource for Improving {
    fn version(&self) -> u32 {
        self.improved.load(Relaxed).into()
    }

    fn best(&self) -> (Arc<dyn Kernel>, Tier) {
        match self.improved.load(Relaxed) {
            false => (self.old.clone(), Tier::Reference),
            true => (self.new.clone(), Tier::Light),
        }
    }

    fn ran(&self, _: Tier, _: u64, _: Duration, _: u64, _: usize) {}

    fn holds_back(&self, _: u64, _: usize) -> bool {
        false
    }
}

#[test]
fn better_code_runs_the_ctas_that_one_in_flight_waits_for() {
    let improved = Arc::new(AtomicBool::new(false));
    let arrived = Arc::new(AtomicU64::new(0));
    let (now, count) = (improved.clone(), arrived.clone());
    let waits = move |_, _| {
        now.store(true, Relaxed);
        Ok(if count.load(Relaxed) < 3 { Step::More } else { Step::Done })
    };
    // The others wait for each other too, and do more than poll.
    let meets = move |_, runs| {
        arrived.fetch_add(u64::from(runs == 0), Relaxed);
        Ok(if arrived.load(Relaxed) < 3 { Step::More } else { Step::Done })
    };
    let fake = |behavior: Behavior| Arc::new(Fake { behavior, log: Mutex::default() });
    let (old, new) = (fake(Box::new(waits)), fake(Box::new(meets)));
    let code = Improving { old: old.clone(), new: new.clone(), improved };
    let instructions = Some(200 << 16);
    assert!(launch(&code, &Setting { grid: [4, 1, 1], workers: 1, instructions, ..PLAIN }).is_ok(), "too many slices");
    assert_eq!(ended(&old.log.lock()), [0]);
    assert_eq!(ended(&new.log.lock()), [1, 2, 3]);
}
