//! Linear functions of a thread's coordinates in the grid.

/// The axes: `%tid.x`, `.y`, `.z`, `%ctaid.x`, `.y`, `.z`.
pub const AXES: usize = 6;

/// `constant + factors · coordinates + k * period`, for some integer `k`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Linear {
    /// The value of the first thread of the grid, or one that differs from it by periods.
    pub constant: i64,
    /// By axis.
    pub factors: [i64; AXES],
    /// The possible values of a thread differ by multiples of this; 0 if each thread has one value.
    pub period: i64,
}

fn gcd(a: i64, b: i64) -> Option<i64> {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).ok()
}

impl Linear {
    /// The same number for all threads.
    pub const fn number(constant: i64) -> Linear {
        Linear { constant, factors: [0; AXES], period: 0 }
    }

    /// A thread's coordinate on an axis.
    pub(super) fn axis(axis: usize) -> Linear {
        let mut factors = [0; AXES];
        factors[axis] = 1;
        Linear { constant: 0, factors, period: 0 }
    }

    /// The number, if it is the same for all threads and has no period.
    pub fn as_number(self) -> Option<i64> {
        (self == Linear::number(self.constant)).then_some(self.constant)
    }

    fn with_period(self, period: i64) -> Linear {
        let constant = if period == 0 { self.constant } else { self.constant.rem_euclid(period) };
        Linear { constant, period, ..self }
    }

    /// The sum; `None` if a part overflows.
    pub(super) fn plus(self, other: Linear) -> Option<Linear> {
        let mut factors = self.factors;
        for (own, more) in factors.iter_mut().zip(other.factors) {
            *own = own.checked_add(more)?;
        }
        let sum = Linear { constant: self.constant.checked_add(other.constant)?, factors, period: 0 };
        Some(sum.with_period(gcd(self.period, other.period)?))
    }

    /// The product, if one factor is a number.
    pub(super) fn times(self, other: Linear) -> Option<Linear> {
        let (v, by) = match (self.as_number(), other.as_number()) {
            (_, Some(by)) => (self, by),
            (Some(by), _) => (other, by),
            _ => return None,
        };
        let mut factors = v.factors;
        for factor in &mut factors {
            *factor = factor.checked_mul(by)?;
        }
        let product = Linear { constant: v.constant.checked_mul(by)?, factors, period: 0 };
        Some(product.with_period(v.period.checked_mul(by)?.checked_abs()?))
    }

    /// The function divided by the greatest common divisor of its factors, and that divisor; `None` if it is the same for all threads.
    pub(super) fn in_units(self) -> Option<(Linear, i64)> {
        let unit = self.factors.iter().try_fold(0, |all, factor| gcd(all, *factor)).filter(|unit| *unit > 0)?;
        Some((Linear { factors: self.factors.map(|factor| factor / unit), ..self }, unit))
    }

    /// A function that includes the values of both.
    pub(super) fn join(self, other: Linear) -> Option<Linear> {
        let apart = self.constant.checked_sub(other.constant)?;
        let period = gcd(gcd(self.period, other.period)?, apart)?;
        (self.factors == other.factors).then(|| self.with_period(period))
    }

    /// `self | other`, if no bit can be set in both.
    pub(super) fn mixed(self, other: Linear, extents: &[i64; AXES]) -> Option<Linear> {
        let disjoint = |a: Linear, b: Linear| {
            let steps = a.factors.iter().chain([&a.constant, &a.period]);
            let zeros = steps.fold(0, |all, step| all | *step).trailing_zeros().min(62);
            b.range(extents).is_some_and(|(least, most)| b.period == 0 && least >= 0 && most < 1 << zeros)
        };
        (disjoint(self, other) || disjoint(other, self)).then(|| self.plus(other))?
    }

    /// The least and the largest value over all threads, without the period.
    pub fn range(self, extents: &[i64; AXES]) -> Option<(i64, i64)> {
        let (mut least, mut most) = (self.constant, self.constant);
        for (factor, extent) in self.factors.iter().zip(extents) {
            let reach = factor.checked_mul(extent.checked_sub(1)?)?;
            least = least.checked_add(reach.min(0))?;
            most = most.checked_add(reach.max(0))?;
        }
        Some((least, most))
    }
}
