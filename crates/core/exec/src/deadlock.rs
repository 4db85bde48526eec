//! The deadlock fault, which is the same for all engines and orders of arrival.

use crate::FaultKind;

/// The largest number of notes of a fault.
const MAX_NOTES: usize = 64;

/// A group of lanes of one warp that wait, and where an engine finds their place.
pub struct Waiter<T> {
    /// `%ctaid`
    pub cta: [u32; 3],
    /// The warp in its CTA.
    pub warp: u32,
    /// The lanes; at least one.
    pub lanes: u32,
    /// What they wait for, and where: "wait at barrier 0, … in `f`, line 3".
    pub what: String,
    /// What the engine needs to blame the first of the lanes.
    pub source: T,
}

/// The deadlock of these waiters: the fault, a note for each group of lanes that wait for the same at the same place, and the group
/// whose first lane is to blame: that of the first CTA, warp and lane.
pub fn deadlock<T>(mut waiters: Vec<Waiter<T>>) -> (FaultKind, Vec<String>, Option<Waiter<T>>) {
    let order = |w: &Waiter<T>| ([w.cta[2], w.cta[1], w.cta[0]], w.warp, w.lanes.trailing_zeros());
    waiters.sort_by_key(order);
    let mut groups: Vec<Waiter<T>> = Vec::new();
    for waiter in waiters {
        let same = |g: &&mut Waiter<T>| (g.cta, g.warp, &g.what) == (waiter.cta, waiter.warp, &waiter.what);
        match groups.iter_mut().rev().find(same) {
            Some(group) => group.lanes |= waiter.lanes,
            None => groups.push(waiter),
        }
    }
    let kind = FaultKind::Deadlock(match groups.len() {
        1 => "the threads wait for what none of them will do".into(),
        n => format!("all {n} groups of threads wait for each other"),
    });
    let note = |Waiter { cta: [x, y, z], warp, lanes, what, .. }: &Waiter<T>| {
        format!("CTA ({x}, {y}, {z}), warp {warp}, lanes {lanes:#010x}: {what}")
    };
    let notes = groups.iter().take(MAX_NOTES).map(note).collect();
    (kind, notes, groups.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_arrival_does_not_matter() {
        let waiter = |warp, lanes, what: &str| Waiter { cta: [0; 3], warp, lanes, what: what.into(), source: lanes };
        let lists = [
            vec![waiter(1, 1, "a"), waiter(0, 0xc, "b"), waiter(0, 2, "a"), waiter(0, 1, "b")],
            vec![waiter(0, 1, "b"), waiter(0, 0xc, "b"), waiter(0, 2, "a"), waiter(1, 1, "a")],
        ];
        for list in lists {
            let (kind, notes, first) = deadlock(list);
            assert_eq!(kind, FaultKind::Deadlock("all 3 groups of threads wait for each other".into()));
            assert_eq!(
                notes,
                [
                    "CTA (0, 0, 0), warp 0, lanes 0x0000000d: b",
                    "CTA (0, 0, 0), warp 0, lanes 0x00000002: a",
                    "CTA (0, 0, 0), warp 1, lanes 0x00000001: a"
                ]
            );
            assert_eq!(first.map(|w| w.source), Some(1));
        }
    }
}
