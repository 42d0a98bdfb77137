//! Units that are a whole number from 0 to $n$, by sums over the $n + 1$ values:
//! $p(k) \propto e^{\theta k - \epsilon(k)}$ with an own energy $\epsilon(k) = \sum_j \text{own}_j s_j(k)$.
//!
//! The kinds differ in $\epsilon$ alone: [`binomial`](super::binomial), [`counts`](super::counts),
//! [`ordinal`](super::ordinal). All sums are finite, so no parameter can make one diverge.
//!
//! Between whole numbers a statistic is continued by straight lines: what a mean has of it is then off by the spread
//! around the mean, which `statistics_of_mean` knows and `entropy` makes up for.

use super::{Draw, OwnParameters, Units};

/// The most values a unit may have: sums over them are taken at every visit.
pub const MOST_LEVELS: usize = 1024;

/// How far means are kept off the ends of their range where biases are made of them.
const OFF_THE_END: f64 = 1e-3;
/// Halvings and Newton steps that find $\theta$ from a mean.
const STEPS: usize = 200;

/// One unit: its kind, its largest value and the own parameters of its entry.
#[derive(Clone, Copy)]
struct Unit<'a> {
    units: Units,
    n: usize,
    own: OwnParameters<'a>,
}

impl<'a> Unit<'a> {
    fn new(units: Units, own: OwnParameters<'a>, i: usize) -> Self {
        Self { units, n: units.largest(), own: own.piece(i..i + 1) }
    }

    /// $\epsilon(k)$.
    fn energy(self, k: usize) -> f64 {
        self.units.level_energy(self.own, k)
    }

    /// $\max_k$ of $\theta k - \epsilon(k)$, and the first $k$ that has it.
    fn best(self, theta: f64) -> (usize, f64) {
        let mut best = (0, -self.energy(0));
        for k in 1..=self.n {
            let log = theta * k as f64 - self.energy(k);
            if log > best.1 {
                best = (k, log);
            }
        }
        best
    }

    /// Calls `f` with every value and its weight relative to the largest; the logarithm of that.
    fn each(self, theta: f64, mut f: impl FnMut(usize, f64)) -> f64 {
        let (_, top) = self.best(theta);
        (0..=self.n).for_each(|k| f(k, (theta * k as f64 - self.energy(k) - top).exp()));
        top
    }

    fn log_partition(self, theta: f64) -> f64 {
        let mut sum = 0.0;
        let top = self.each(theta, |_, w| sum += w);
        top + sum.ln()
    }

    /// Mean and variance.
    fn moments(self, theta: f64) -> (f64, f64) {
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        self.each(theta, |k, w| {
            let x = k as f64;
            (sum, first, second) = (sum + w, first + w * x, second + w * x * x);
        });
        let mean = first / sum;
        (mean, (second / sum - mean * mean).max(0.0))
    }

    /// The $\theta$ at which the mean is this one, which lies inside the range: Newton's steps, halved
    /// where they leave what is known to hold it.
    fn theta_of_mean(self, mean: f64) -> f64 {
        let (mut low, mut high) = (-1.0, 1.0);
        while self.moments(low).0 > mean && low > -1e6 {
            low *= 2.0;
        }
        while self.moments(high).0 < mean && high < 1e6 {
            high *= 2.0;
        }
        let mut theta = 0.5 * (low + high);
        for _ in 0..STEPS {
            let (at, variance) = self.moments(theta);
            if at < mean {
                low = theta;
            } else {
                high = theta;
            }
            let newton = theta + (mean - at) / variance;
            let inside = newton > low && newton < high;
            let next = if inside { newton } else { 0.5 * (low + high) };
            if (next - theta).abs() <= f64::EPSILON * (1.0 + theta.abs()) {
                return next;
            }
            theta = next;
        }
        theta
    }
}

/// The statistic at a value, or between two of them by a straight line.
pub(super) fn between(n: usize, x: f64, at: impl Fn(usize) -> f64) -> f64 {
    let x = x.clamp(0.0, n as f64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and n")]
    let below = x as usize;
    let share = x - below as f64;
    if share == 0.0 { at(below) } else { (1.0 - share) * at(below) + share * at(below + 1) }
}

pub(super) fn mean_in_place(units: Units, theta: &mut [f64], own: OwnParameters<'_>) {
    for (i, t) in theta.iter_mut().enumerate() {
        *t = Unit::new(units, own, i).moments(*t).0;
    }
}

pub(super) fn sample_in_place(units: Units, theta: &mut [f64], own: OwnParameters<'_>, draw: Draw) {
    for (i, t) in theta.iter_mut().enumerate() {
        let unit = Unit::new(units, own, i);
        let mut sum = 0.0;
        unit.each(*t, |_, w| sum += w);
        let mut left = sum * draw.stream.uniform(draw.site, draw.start + i);
        // Rounding may leave something: the most probable value takes the rest.
        let mut chosen = None;
        let (best, _) = unit.best(*t);
        unit.each(*t, |k, w| {
            left -= w;
            if left < 0.0 && chosen.is_none() {
                chosen = Some(k);
            }
        });
        *t = chosen.unwrap_or(best) as f64;
    }
}

pub(super) fn mode_in_place(units: Units, theta: &mut [f64], own: OwnParameters<'_>) {
    for (i, t) in theta.iter_mut().enumerate() {
        *t = Unit::new(units, own, i).best(*t).0 as f64;
    }
}

pub(super) fn log_partition(units: Units, theta: &[f64], own: OwnParameters<'_>) -> f64 {
    theta.iter().enumerate().map(|(i, &t)| Unit::new(units, own, i).log_partition(t)).sum()
}

/// $H - \langle\epsilon\rangle + \epsilon(\langle x\rangle)$: together with minus the energy at the means it is the
/// free energy of independent units.
pub(super) fn entropy(units: Units, mean: &[f64], own: OwnParameters<'_>) -> f64 {
    let of_unit = |(i, &m): (usize, &f64)| {
        let unit = Unit::new(units, own, i);
        if m <= 0.0 || m >= unit.n as f64 {
            return 0.0;
        }
        let theta = unit.theta_of_mean(m);
        unit.log_partition(theta) - theta * m + units.own_energy(unit.own, &[m])
    };
    mean.iter().enumerate().map(of_unit).sum()
}

/// The biases with which uncoupled units have these means.
pub(super) fn bias_of_means(units: Units, means: &[f64], own: OwnParameters<'_>) -> Vec<f64> {
    let of_unit = |(i, &m): (usize, &f64)| {
        let unit = Unit::new(units, own, i);
        unit.theta_of_mean(m.clamp(OFF_THE_END, unit.n as f64 - OFF_THE_END))
    };
    means.iter().enumerate().map(of_unit).collect()
}

/// Writes $\langle s_j\rangle$ of one unit that receives $\theta$.
pub(super) fn statistics(units: Units, theta: f64, own: OwnParameters<'_>, out: &mut [f64]) {
    let unit = Unit::new(units, own, 0);
    let mut sum = 0.0;
    out.fill(0.0);
    unit.each(theta, |k, w| {
        sum += w;
        let terms = out.iter_mut().enumerate();
        terms.for_each(|(j, out)| *out += units.own_term(j, w, k as f64));
    });
    out.iter_mut().for_each(|s| *s /= sum);
}

/// The same of one unit whose mean is known.
pub(super) fn statistics_of_mean(units: Units, mean: f64, own: OwnParameters<'_>, out: &mut [f64]) {
    let unit = Unit::new(units, own, 0);
    if mean <= 0.0 || mean >= unit.n as f64 {
        out.iter_mut().enumerate().for_each(|(j, s)| *s = units.own_term(j, 1.0, mean));
        return;
    }
    statistics(units, unit.theta_of_mean(mean), own, out);
}

/// The coefficient $c$ with which a unit of own energy $c\,\epsilon_1$ has this mean and, as near as `bounds` allow, this
/// variance, which must fall as $c$ grows. `set` writes the own parameters of a coefficient.
pub(super) fn coefficient(
    units: Units,
    (mean, variance): (f64, f64),
    bounds: (f64, f64),
    set: impl Fn(f64, &mut [f64]),
) -> f64 {
    let mut own = vec![0.0; units.own_parameters().len()];
    let mut spread = |c: f64| {
        set(c, &mut own);
        let unit = Unit::new(units, OwnParameters::new(&own, 1), 0);
        let mean = mean.clamp(OFF_THE_END, unit.n as f64 - OFF_THE_END);
        unit.moments(unit.theta_of_mean(mean)).1
    };
    let (mut low, mut high) = bounds;
    if spread(high) > variance {
        return high;
    }
    if spread(low) < variance {
        return low;
    }
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if spread(middle) > variance {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The first entry that is not one of the values 0 … n.
pub(super) fn impossible(n: usize, unit: &[f64]) -> Option<usize> {
    unit.iter().position(|x| x.fract() != 0.0 || *x < 0.0 || *x > n as f64)
}
