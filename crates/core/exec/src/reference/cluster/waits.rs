//! What the threads of a cluster wait for when nothing proceeds: the fault of a deadlock, and whether a state repeats.

use super::super::{
    code::Code,
    ctx::make_fault,
    state::{CtaState, Wait, Warp},
    step::matrix::abandoned,
};
use super::{Cluster, Member};
use crate::{
    Bug, FaultKind, Stop,
    deadlock::{Waiter, deadlock},
};
use std::hash::{DefaultHasher, Hash, Hasher};

impl Cluster<'_> {
    /// A hash of what decides how the cluster continues, except for memory.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for w in self.members.iter().flat_map(|m| &m.warps) {
            w.live.hash(&mut hasher);
            let groups = w.ready.iter().chain(w.blocked.iter().map(|(g, _)| g));
            let mut places: Vec<(u32, u32, u32)> = groups.map(|g| (g.frame, g.pc, g.mask)).collect();
            places.sort_unstable();
            places.hash(&mut hasher);
            for frame in w.frames.iter().filter(|f| f.lanes != 0) {
                hasher.write(bytemuck::cast_slice(&frame.regs));
            }
        }
        hasher.finish()
    }

    /// Whether the cluster does more than poll, but only others can end it. Random schedules repeat nothing.
    pub(super) fn is_cycling(&mut self) -> bool {
        let mut polling = std::mem::take(&mut self.polling);
        let found = self.random.is_none() && polling.is_cycling(|| self.whole_fingerprint());
        self.polling = polling;
        found
    }

    /// A hash of the same with shared memory.
    fn whole_fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.fingerprint().hash(&mut hasher);
        for m in &self.members {
            let block = &m.state.shared.block;
            for i in 0..block.len() as u64 / 8 {
                crate::mem::load::<u64>(block, block.base() + 8 * i).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// The fault of threads that all wait: a matrix instruction that not all lanes of a warp execute, or a deadlock.
    pub(super) fn deadlock(&self) -> Stop {
        let code = &self.kernel.code;
        let mut waiters = Vec::new();
        for m in &self.members {
            for w in &m.warps {
                if let Some(stop) = incomplete(code, &m.state, w) {
                    return stop;
                }
                let blocked = w.blocked.iter().map(|(g, why)| (g, Some(*why)));
                waiters.extend(blocked.chain(w.ready.iter().map(|g| (g, None))).map(|(g, why)| Waiter {
                    cta: m.state.id,
                    warp: w.index,
                    lanes: g.mask,
                    what: waits_for(code, m, w, (g.frame, g.pc), why),
                    source: (m, w, g),
                }));
            }
        }
        let (kind, notes, first) = deadlock(waiters);
        let Some(Waiter { lanes, source: (m, w, g), .. }) = first else {
            return Stop::Bug(Bug("no lane runs and no lane waits".into()));
        };
        let lane = lanes.trailing_zeros() as usize;
        Stop::Fault(Box::new(make_fault(code, &m.state, w, (g.frame, g.pc), lane, kind, notes)))
    }
}

/// The fault of a warp in which some lanes wait at a matrix instruction for lanes that never reach it.
pub(super) fn incomplete(code: &Code, state: &CtaState, warp: &Warp) -> Option<Stop> {
    let (g, what) = abandoned(code, warp)?;
    let lane = g.mask.trailing_zeros() as usize;
    let fault = make_fault(code, state, warp, (g.frame, g.pc), lane, FaultKind::Barrier(what), Vec::new());
    Some(Stop::Fault(Box::new(fault)))
}

/// The reason why a group waits, and the place.
fn waits_for(code: &Code, m: &Member, w: &Warp, (frame, pc): (u32, u32), why: Option<Wait>) -> String {
    let what = match why {
        None => return format!("poll memory{}", position(code, w, frame, pc)),
        Some(Wait::Lanes { members, .. }) => format!("for the other lanes of member mask {members:#010x}"),
        Some(Wait::Warp) => "for the other lanes of the warp".to_owned(),
        Some(Wait::TensorMemory) => "for free columns of tensor memory".to_owned(),
        Some(Wait::Barrier(id)) => m.state.barriers[id as usize].describe(id as usize),
        Some(Wait::Cluster) => "at the cluster barrier".to_owned(),
        Some(Wait::Pause) => "for the other threads of the CTA".to_owned(),
    };
    format!("wait {what}{}", position(code, w, frame, pc))
}

fn position(code: &Code, w: &Warp, frame: u32, pc: u32) -> String {
    let func = w.frames.get(frame as usize).and_then(|f| code.funcs.get(f.func as usize)?.as_ref());
    func.map_or(String::new(), |func| {
        let line = func.func.source.lines().line(func.place(pc).span.start);
        format!(" in `{}`, line {line}", func.func.name)
    })
}
