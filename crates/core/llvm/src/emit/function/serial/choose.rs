//! The choice between the two versions of a section.

use super::{LANE, Past, Variables};
use crate::emit::{
    function::Emitter,
    text::{Elem, Ty, Val, int},
};

/// What is old counts for less: with each entry, a sum loses one part of 2^DECAY.
const DECAY: u32 = 3;
/// One entry of so many tries the version that was slower; a power of two.
const TRIAL: u32 = 64;
/// Cycles from one entry to the next beyond which the thread was probably interrupted.
const INTERRUPTED: u64 = 1 << 24;

impl Emitter<'_> {
    /// Whether lanes that enter a section, a mask of 32 bits, should run it one after another.
    pub(super) fn alone_pays(&mut self, k: usize, lanes: &Val) -> Val {
        let Variables { together, apart, past, .. } = self.variables(k);
        let (together, apart, past) = (together.clone(), apart.clone(), past.clone());
        let ty = Ty::scalar(Elem::I64);
        let [since, work] = [&together, &apart].map(|sum| self.w.load(ty, sum, 8));
        let begun = self.w.intrinsic("llvm.ctpop", Ty::scalar(Elem::I32), &[lanes]);
        let begun = self.w.op_const("mul", &begun, LANE.into());
        let begun = self.w.resize(&begun, Elem::I64, false);
        self.w.store(&int(Elem::I64, 0), &together, 8);
        self.w.store(&begun, &apart, 8);
        let always = int(Elem::I1, 1);
        let [together, apart] =
            [(&past.together, &since), (&past.apart, &work)].map(|(sum, more)| self.add_recent(sum, more, &always));
        let expected = self.w.cmp("icmp ult", &apart, &together);
        let faster = self.measure(&past, &work, &expected);
        let number = self.w.load(ty, &past.entries, 8);
        let next = self.w.op_const("add", &number, 1);
        self.w.store(&next, &past.entries, 8);
        let turn = self.w.op_const("and", &next, i128::from(TRIAL - 1));
        let trial = self.w.cmp("icmp eq", &turn, &int(Elem::I64, 0));
        let trial = self.w.op("and", &trial, &expected);
        let pays = self.w.op("xor", &faster, &trial);
        let version = self.w.resize(&pays, Elem::I64, false);
        self.w.store(&version, &past.alone, 8);
        pays
    }

    /// Adds to a sum of which what is old counts for less, if a condition holds; returns the sum.
    fn add_recent(&mut self, sum: &Val, more: &Val, condition: &Val) -> Val {
        let old = self.w.load(Ty::scalar(Elem::I64), sum, 8);
        let part = self.w.op_const("lshr", &old, DECAY.into());
        let kept = self.w.op("sub", &old, &part);
        let new = self.w.op("add", &kept, more);
        let new = self.w.select(condition, &new, &old);
        self.w.store(&new, sum, 8);
        new
    }

    /// Accounts for the time since the last entry, in which `work` was done. Whether the scalar version has taken less time for its work, or
    /// is expected to if it has done none yet.
    fn measure(&mut self, past: &Past, work: &Val, expected: &Val) -> Val {
        let ty = Ty::scalar(Elem::I64);
        let now = self.w.intrinsic_named("llvm.readcyclecounter", ty, &[]);
        let before = self.w.load(ty, &past.entered, 8);
        self.w.store(&now, &past.entered, 8);
        let took = self.w.op("sub", &now, &before);
        let counts = self.w.cmp("icmp ult", &took, &int(Elem::I64, INTERRUPTED.into()));
        let alone = self.w.load(ty, &past.alone, 8);
        let [times, works] = [(&past.times, &took), (&past.works, work)].map(|(sums, more)| {
            [0, 1].map(|version| {
                let chosen = self.w.cmp("icmp eq", &alone, &int(Elem::I64, version as i128));
                let chosen = self.w.op("and", &chosen, &counts);
                self.add_recent(&sums[version], more, &chosen)
            })
        });
        // Cycles by work of one version against those of the other.
        let slow = self.w.op("mul", &times[1], &works[0]);
        let fast = self.w.op("mul", &times[0], &works[1]);
        let faster = self.w.cmp("icmp ult", &slow, &fast);
        let untried = self.w.cmp("icmp eq", &works[1], &int(Elem::I64, 0));
        self.w.select(&untried, expected, &faster)
    }
}
