//! Whether addresses that are linear functions of the thread's coordinates are disjoint between threads.

use margay_ir::pass::{AXES, Condition, Linear};

/// `count` places, `step` bytes apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Axis {
    step: i64,
    count: i64,
}

/// The layout of an access in memory: the sums of one place of each axis.
pub struct Layout {
    axes: Vec<Axis>,
    /// The distances of the first and last address from the constant.
    least: i64,
    most: i64,
}

/// If the places of `size` bytes are disjoint, returns the number of bytes from the start of the first to the end of the last. They are
/// disjoint if each step is no smaller than the reach of all axes with smaller steps.
fn reach(mut axes: Vec<Axis>, size: i64) -> Option<i64> {
    axes.retain(|axis| axis.count > 1);
    axes.sort_by_key(|axis| axis.step.unsigned_abs());
    axes.iter().try_fold(size, |reach, Axis { step, count }| {
        let step = step.checked_abs().filter(|step| *step >= reach)?;
        step.checked_mul(count - 1)?.checked_add(reach)
    })
}

impl Layout {
    /// Layouts of an address, all of them valid: a condition may replace the axes of its value by one axis with fewer places.
    pub fn all<'c>(
        address: Linear,
        conditions: &'c [Condition],
        extents: &'c [i64; AXES],
    ) -> impl Iterator<Item = Layout> + 'c {
        let order = move |first: usize| conditions.iter().cycle().skip(first).take(conditions.len());
        (0..conditions.len().max(1)).filter_map(move |first| Layout::new(address, order(first), extents))
    }

    fn new<'c>(
        address: Linear,
        conditions: impl Iterator<Item = &'c Condition>,
        extents: &[i64; AXES],
    ) -> Option<Layout> {
        let mut left = extents.map(|extent| extent > 1);
        let mut all = Layout { axes: Vec::new(), least: 0, most: 0 };
        for condition in conditions {
            let axes: Vec<usize> =
                (0..AXES).filter(|axis| extents[*axis] > 1 && condition.value.factors[*axis] != 0).collect();
            let Some(step) = step(address, condition, &axes).filter(|_| axes.iter().all(|axis| left[*axis])) else {
                continue;
            };
            let own = axes.iter().map(|axis| Axis { step: condition.value.factors[*axis], count: extents[*axis] });
            let less = condition
                .value
                .range(extents)
                .is_some_and(|(low, high)| (low, high) != (condition.least, condition.most));
            if less && condition.least <= condition.most && reach(own.collect(), 1).is_some() {
                axes.iter().for_each(|axis| left[*axis] = false);
                all.add(step, condition.least, condition.most)?;
            }
        }
        (0..AXES)
            .filter(|axis| left[*axis])
            .try_for_each(|axis| all.add(address.factors[axis], 0, extents[axis] - 1))?;
        Some(all)
    }

    /// Adds an axis whose places have the numbers `from..=to`.
    fn add(&mut self, step: i64, from: i64, to: i64) -> Option<()> {
        let ends = [step.checked_mul(from)?, step.checked_mul(to)?];
        self.least = self.least.checked_add(ends[0].min(ends[1]))?;
        self.most = self.most.checked_add(ends[0].max(ends[1]))?;
        self.axes.push(Axis { step, count: to.checked_sub(from)?.checked_add(1)? });
        Some(())
    }

    /// The first and the last address of an access without a period.
    pub fn extent(address: Linear, conditions: &[Condition], extents: &[i64; AXES]) -> Option<(i64, i64)> {
        let all = Layout::all(address, conditions, extents);
        let ends =
            all.filter_map(|l| Some((address.constant.checked_add(l.least)?, address.constant.checked_add(l.most)?)));
        ends.min_by_key(|(least, most)| most.saturating_sub(*least))
    }

    /// Whether no two threads access the same byte, if each thread accesses `size` bytes at each of these sorted offsets, repeated at multiples
    /// of the period.
    pub fn is_apart(&self, offsets: &[i64], size: i64, period: i64) -> bool {
        let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return false };
        let fits = |axes: &[Axis], size: i64| {
            let reach = reach([&self.axes, axes].concat(), size);
            reach.is_some_and(|reach| period == 0 || reach <= period)
        };
        let window = last.checked_sub(*first).and_then(|apart| apart.checked_add(size));
        // Evenly spaced offsets, such as those of an unrolled loop, are another axis.
        let step = offsets.windows(2).map(|pair| pair[1] - pair[0]).reduce(|a, b| if a == b { a } else { 0 });
        let stepped = step.filter(|step| *step > 0).map(|step| Axis { step, count: offsets.len() as i64 });
        window.is_some_and(|window| fits(&[], window)) || stepped.is_some_and(|axis| fits(&[axis], size))
    }
}

/// The distance in bytes between neighboring values of a condition, if the address depends on the axes of the condition only through its value.
fn step(address: Linear, condition: &Condition, axes: &[usize]) -> Option<i64> {
    let mut steps = axes.iter().map(|axis| {
        let (of_address, of_value) = (address.factors[*axis], condition.value.factors[*axis]);
        (of_address % of_value == 0).then_some(of_address / of_value)
    });
    let first = steps.next()??;
    steps.all(|step| step == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(factors: [i64; AXES], period: i64) -> Linear {
        Linear { constant: 0, factors, period }
    }

    fn apart(address: Linear, conditions: &[Condition], extents: [i64; AXES], offsets: &[i64], size: i64) -> bool {
        Layout::all(address, conditions, &extents).any(|layout| layout.is_apart(offsets, size, address.period))
    }

    #[test]
    fn each_thread_has_an_element() {
        let extents = [256, 1, 1, 8, 1, 1];
        let row = |step| linear([step, 0, 0, 256 * step, 0, 0], 0);
        assert!(apart(row(4), &[], extents, &[0], 4) && apart(row(-4), &[], extents, &[0], 4));
        assert!(apart(row(16), &[], extents, &[0, 4, 8, 12], 4), "members of a structure");
        assert!(!apart(row(4), &[], extents, &[0], 8), "half of the next one's element");
        assert!(!apart(row(4), &[], extents, &[0, 4], 4), "the next one's element");
        assert!(!apart(linear([4, 0, 0, 0, 0, 0], 0), &[], extents, &[0], 4), "all CTAs access the same elements");
        assert!(!apart(linear([4, 0, 0, 512, 0, 0], 0), &[], extents, &[0], 4), "CTAs overlap");
    }

    #[test]
    fn loops_must_step_over_all_threads() {
        let extents = [256, 1, 1, 8, 1, 1];
        let of = |period| linear([4, 0, 0, 1024, 0, 0], period);
        assert!(apart(of(8192), &[], extents, &[0], 4) && !apart(of(4), &[], extents, &[0], 4));
        assert!(!apart(of(4096), &[], extents, &[0], 4));
    }

    #[test]
    fn conditions_narrow_rows() {
        // CTAs of 16 x 16, 4 x 4 of them, and rows of 60 elements.
        let extents = [16, 16, 1, 4, 4, 1];
        let address = linear([4, 240, 0, 64, 3840, 0], 0);
        let column = |most| Condition { value: linear([1, 0, 0, 16, 0, 0], 0), least: 0, most };
        assert!(!apart(address, &[], extents, &[0], 4));
        assert!(apart(address, &[column(59)], extents, &[0], 4) && !apart(address, &[column(60)], extents, &[0], 4));
        // One thread of each CTA.
        let partial = linear([0, 0, 0, 4, 0, 0], 0);
        let first = Condition { value: linear([1, 0, 0, 0, 0, 0], 0), least: 0, most: 0 };
        assert!(apart(partial, &[first], [256, 1, 1, 8, 1, 1], &[0], 4));
        assert!(!apart(partial, &[Condition { most: 1, ..first }], [256, 1, 1, 8, 1, 1], &[0], 4));
    }

    #[test]
    fn unrolled_loops_have_steps() {
        // A transposition by CTAs of 32 x 8, whose threads store four rows that are eight apart.
        let extents = [32, 8, 1, 2, 2, 1];
        let address = linear([4, 256, 0, 32 * 256, 128, 0], 0);
        assert!(apart(address, &[], extents, &[0, 2048, 4096, 6144], 4));
        assert!(!apart(address, &[], extents, &[0, 1024], 4));
    }
}
