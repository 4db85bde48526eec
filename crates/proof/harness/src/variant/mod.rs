//! Variations of existing modules that must end alike on all engines.
//!
//! ```text
//! seed → a module of a list, varied (`vary`), and a launch → a child process per engine (`attack::worker`) → End → `Verdict`
//! ```
//!
//! A variation may have any error, and races make outcomes depend on the order of threads. So two outcomes may differ only if
//! * both are faults: of several threads that do wrong, each engine stops the one that comes first;
//! * the launch depends on the order of threads or on addresses ([`Variant::judge`]).
//!
//! A single thread has only one order, so its faults must be equal too.

mod vary;

use crate::{
    attack::{
        Shape,
        end::{End, Fault, never_ends},
        watch::Watch,
        worker::Job,
    },
    random::Random,
};

/// Limit of warp instructions; a variation that never ends takes all of them.
const FUEL: u64 = 200_000;
/// Limit if only one engine ran out: the engines count slices of different sizes.
const MORE_FUEL: u64 = 20_000_000;
/// Number of other orders of threads in which a launch is repeated before engines are blamed.
const ORDERS: u64 = 3;
/// Size in bytes of the largest modules that are varied: large ones are slow to compile and rarely vary where they execute.
const LARGEST: usize = 60_000;
/// Special registers whose values differ between any two launches.
const CLOCKS: [&str; 3] = ["%clock", "%globaltimer", "%pm"];

/// A variation of a module, and its launch.
pub struct Variant {
    /// Name of the module that was varied.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The launch.
    pub shape: Shape,
}

/// The result of a comparison.
#[derive(Debug)]
pub enum Verdict {
    /// The check or the launch rejects the variation.
    Rejected,
    /// The outcomes are equivalent: a word for the kind of the reference engine's.
    Alike(String),
    /// The outcomes differ because the launch depends on the order of threads or on addresses.
    Unordered,
    /// An engine other than the reference engine differs: its name, and both outcomes.
    Differs(&'static str, Box<[End; 2]>),
}

impl Verdict {
    /// A word for tallies.
    pub fn word(&self) -> &str {
        match self {
            Verdict::Rejected => "rejected",
            Verdict::Alike(kind) => kind,
            Verdict::Unordered => "unordered",
            Verdict::Differs(..) => "different",
        }
    }
}

/// The modules of `files`, as names and texts, that [`Variant::new`] can vary.
pub fn bases(files: impl IntoIterator<Item = (String, std::path::PathBuf)>) -> Vec<(String, String)> {
    let read = |(name, path): (String, std::path::PathBuf)| Some((name, std::fs::read_to_string(path).ok()?));
    let suits = |(_, text): &(String, String)| text.len() < LARGEST && !CLOCKS.iter().any(|clock| text.contains(clock));
    files.into_iter().filter_map(read).filter(suits).collect()
}

impl Variant {
    /// The variation of a seed. `bases` are names and texts of modules.
    pub fn new(seed: u64, bases: &[(String, String)]) -> Variant {
        let mut random = Random::new(seed);
        let (name, text) = &bases[random.below(bases.len())];
        let text = vary::vary(&mut random, text);
        let block = random.pick(&[[1, 1, 1], [1, 1, 1], [32, 1, 1], [20, 1, 1], [64, 1, 1]]);
        let shape = Shape { grid: [1, 1, 1], block, cluster: 1, shared: 1024, stack: 4096, threads: 1 };
        Variant { name: name.clone(), text, shape }
    }

    /// Runs the variation on all engines.
    pub fn judge(&self, watch: &mut Watch) -> Verdict {
        if margay::Module::parse(&self.text).and_then(|m| m.check()).is_err() {
            return Verdict::Rejected;
        }
        let mut reference = self.end(watch, "reference", FUEL);
        if matches!(reference, End::Rejected(_) | End::BadLaunch(_)) {
            return Verdict::Rejected;
        }
        let mut unordered = false;
        for engine in ["simd", "simd-full"] {
            if !margay::engines().iter().any(|e| e.name() == engine) {
                continue;
            }
            let mut other = self.end(watch, engine, FUEL);
            match (&reference, &other) {
                (End::Exhausted(_), End::Exhausted(_)) => {}
                (a, b) if never_ends(a, b) => {}
                (End::Exhausted(_), _) => reference = self.end(watch, "reference", MORE_FUEL),
                (_, End::Exhausted(_)) => other = self.end(watch, engine, MORE_FUEL),
                _ => {}
            }
            if self.are_alike(&reference, &other) {
                continue;
            }
            if reference.is_a_crash() || other.is_a_crash() || self.is_ordered(watch, &reference) {
                return Verdict::Differs(engine, Box::new([reference, other]));
            }
            unordered = true;
        }
        let kind = match &reference {
            End::Fault(fault) => fault.kind.clone(),
            end => format!("{end:?}").split('(').next().unwrap_or_default().to_owned(),
        };
        if unordered { Verdict::Unordered } else { Verdict::Alike(kind) }
    }

    /// A description of a difference: the module, the launch, and the outcomes.
    pub fn report(&self, verdict: &Verdict) -> String {
        let (Variant { name, shape, .. }, block) = (self, self.shape.block);
        match verdict {
            Verdict::Differs(engine, ends) => {
                let [reference, other] = &**ends;
                let (reference, other) = (reference.show(), other.show());
                format!("{name} with blocks of {block:?}: on the reference engine\n  {reference}\n{engine}:\n  {other}")
            }
            _ => format!("{name}, {shape:?}: {verdict:?}"),
        }
    }

    fn end(&self, watch: &mut Watch, engine: &str, fuel: u64) -> End {
        watch.run(&Job::new(engine, &self.shape, fuel, &self.text))
    }

    fn threads(&self) -> u32 {
        self.shape.block.iter().product()
    }

    fn are_alike(&self, a: &End, b: &End) -> bool {
        if a.is_a_crash() || b.is_a_crash() {
            return false;
        }
        match (a, b) {
            (End::Done(a), End::Done(b)) => a == b,
            (End::Fault(a), End::Fault(b)) => {
                // Where a thread is that polls is a matter of the moment.
                let polls = |f: &Fault| f.kind == "Deadlock" && f.notes.contains("poll memory");
                let same_party = (a.thread, &a.places) == (b.thread, &b.places);
                let same = a.kind == b.kind && a.words == b.words && a.same_address(b);
                polls(a) && polls(b) || if same_party { same } else { self.threads() > 1 }
            }
            (End::Exhausted(_), End::Exhausted(_)) => true,
            (End::Unsupported(a), End::Unsupported(b)) => a == b,
            (a, b) => never_ends(a, b),
        }
    }

    /// Whether the launch does not depend on the order of threads, as far as can be found: the sanitizer finds no error, and other orders have
    /// the same outcome, `end`, even if buffers have other addresses. Both on the reference engine.
    fn is_ordered(&self, watch: &mut Watch, end: &End) -> bool {
        let job = |seed, checked| Job { seed, checked, ..Job::new("reference", &self.shape, MORE_FUEL, &self.text) };
        if matches!(watch.run(&job(0, true)), End::Flawed(_)) {
            return false;
        }
        (1..=ORDERS).all(|seed| self.are_alike(end, &watch.run(&job(seed, false))))
    }
}
