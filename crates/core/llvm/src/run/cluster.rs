//! The CTAs of one cluster (or a single CTA): they synchronize and access each other's shared memory, and take turns on
//! one thread.

use crate::{
    code::callable::Code,
    run::cta::{CtaPosition, SimdCta, Waiter},
    run::deadlock::Watch,
    run::windows::Windows,
};
use margay_exec::{Cta, CtaWindows, Fault, Grid, Progress, Slice, Stop, coordinates, deadlock};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Time slice of a cluster, after which the thread runs another one.
const SLICE: Duration = Duration::from_millis(5);

/// A cluster in flight.
pub struct SimdCluster<'a> {
    members: Vec<SimdCta<'a>>,
    watch: Watch,
}

impl<'a> SimdCluster<'a> {
    /// Starts the CTAs of the cluster whose first CTA is `first`.
    pub fn new(code: Arc<Code>, grid: &'a Grid<'a>, first: [u32; 3]) -> Result<SimdCluster<'a>, Stop> {
        let size = grid.launch.shape.cluster_size();
        let windows = (0..size.iter().product::<u32>())
            .map(|_| code.pool.take(&code.compiled, grid))
            .collect::<Result<Vec<_>, Stop>>()?;
        let cluster: Arc<[_]> = windows.iter().map(|w| w.shared.clone()).collect();
        let member = |(rank, windows)| {
            let rank: u32 = rank;
            let offset = coordinates(rank.into(), size);
            let cta = std::array::from_fn(|d| first[d] + offset[d]);
            SimdCta::new(code.clone(), grid, windows, CtaPosition { cta, rank, cluster: cluster.clone() })
        };
        let members = (0..).zip(windows).map(member).collect::<Result<Vec<_>, Stop>>()?;
        Ok(SimdCluster { members, watch: Watch::default() })
    }

    /// Continues a single CTA that another engine has begun and that has these windows.
    pub fn taken_over(
        code: Arc<Code>,
        grid: &'a Grid<'a>,
        cta: [u32; 3],
        windows: CtaWindows,
    ) -> Result<SimdCluster<'a>, Stop> {
        let windows = Windows::of(&code.compiled, grid, windows, true)?;
        let place = CtaPosition { cta, rank: 0, cluster: Arc::new([windows.shared.clone()]) };
        let members = vec![SimdCta::new(code, grid, windows, place)?];
        Ok(SimdCluster { members, watch: Watch::default() })
    }

    /// Runs every fiber of the cluster until it parks or yields; returns whether any was runnable.
    fn round(&mut self) -> Result<bool, Stop> {
        let mut ran = false;
        for m in 0..self.members.len() {
            let mut from = None;
            loop {
                ran |= self.members[m].round(&mut from, &mut self.watch)?;
                if from.is_none() {
                    break;
                }
                self.complete_phase();
            }
        }
        Ok(self.complete_phase() || ran)
    }

    /// Completes the phase of the cluster's barrier when all threads that have not exited have arrived; returns whether
    /// they had.
    fn complete_phase(&self) -> bool {
        let arrivals = self.members.iter().map(SimdCta::cluster_arrivals);
        let (some, all) = arrivals.fold((false, true), |(some, all), a| (some | a.0, all & a.1));
        if some && all {
            self.members.iter().for_each(SimdCta::open_cluster_barrier);
        }
        some && all
    }

    /// The fault of threads that all wait: at an instruction that not all lanes of a warp execute, or a deadlock, with a note per
    /// group of waiting threads.
    fn deadlock(&mut self) -> Stop {
        if let Some(stop) = self.members.iter_mut().find_map(SimdCta::abandoned) {
            return stop;
        }
        let of = |m: &SimdCta<'a>, w: Waiter| deadlock::Waiter {
            cta: m.index(),
            warp: w.0 as u32,
            lanes: w.1,
            what: m.describe(&w),
            source: w,
        };
        let waiters = self.members.iter().flat_map(|m| m.waiters().into_iter().map(move |w| of(m, w)));
        let (kind, notes, first) = deadlock::deadlock(waiters.collect());
        let first = first.and_then(|w| Some((self.members.iter().position(|m| m.index() == w.cta)?, w)));
        match first.and_then(|(m, w)| Some((self.members.get_mut(m)?, w))) {
            Some((member, waiter)) => member.fault_of(&waiter.source, waiter.lanes, kind, notes),
            None => {
                let cta = self.members.first().map_or([0; 3], SimdCta::index);
                Stop::Fault(Box::new(Fault { kind, thread: [0; 3], cta, at: None, stack: Vec::new(), notes }))
            }
        }
    }

    fn rounds(&mut self, fuel: u64, start: Instant) -> Result<Progress, Stop> {
        // One turn of a warp is at least 1024 units of fuel: the back edges between two safepoints.
        for _ in 0..=fuel / 1024 {
            if !self.round()? {
                let done = self.members.iter().all(SimdCta::is_done);
                return if done { Ok(Progress::Done) } else { Err(self.deadlock()) };
            }
            if self.watch.is_due() {
                let state = self.members.iter().fold(0, |all, m| m.fingerprint(all));
                if self.watch.repeats(state) {
                    break;
                }
            }
            if start.elapsed() > SLICE {
                break;
            }
        }
        // CTAs that wait in memory do not progress while the thread runs another cluster: time alone is not a sign of
        // progress.
        let waits = self.watch.report() && self.members.iter().all(SimdCta::only_waits);
        Ok(if waits { Progress::Waiting { repeats: true } } else { Progress::More })
    }
}

impl Cta for SimdCluster<'_> {
    fn stuck(&mut self) -> Stop {
        self.deadlock()
    }

    fn run(&mut self, fuel: u64) -> Result<Slice, Stop> {
        let progress = self.rounds(fuel, Instant::now())?;
        // A slice that its time has ended counts as a whole one.
        let warps = || self.members.iter().map(SimdCta::warps).sum::<usize>() as u64;
        Ok(Slice { progress, executed: if progress == Progress::Done { warps().min(fuel) } else { fuel } })
    }
}
