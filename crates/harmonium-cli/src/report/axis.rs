//! Where numbers stand on a line, and which of them are written beside it.

use super::markup::{count, fixed, scientific};

/// How numbers are spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    /// Equal differences, equal lengths.
    Linear,
    /// Equal ratios, equal lengths.
    Log,
}

/// A range of numbers and the pixels it covers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    lo: f64,
    hi: f64,
    spacing: Spacing,
    /// Where `lo` and `hi` stand.
    pub(super) pixels: (f64, f64),
}

/// A number beside an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// The number.
    pub(super) value: f64,
    /// How it is written.
    pub(super) label: String,
}

/// Beyond that, sums and differences could overflow.
const LARGEST: f64 = 1e150;

impl Axis {
    /// An axis that ends exactly at the least and the largest value.
    pub(super) fn tight(values: impl Iterator<Item = f64>) -> Self {
        let (lo, hi) = extent(values);
        Self { lo, hi, spacing: Spacing::Linear, pixels: (0.0, 1.0) }
    }

    /// An axis with a little room beyond the least and the largest value. Without a positive
    /// value there is nothing to take a logarithm of, and the axis is linear.
    pub(super) fn roomy(values: impl Iterator<Item = f64> + Clone, spacing: Spacing) -> Self {
        let positive = values.clone().filter(|x| *x > 0.0);
        if spacing == Spacing::Log && positive.clone().next().is_some() {
            let (lo, hi) = extent(positive.map(f64::log10));
            let room = 0.06 * (hi - lo);
            return Self::log(lo - room, hi + room);
        }
        let negative = values.clone().any(|x| x < 0.0);
        let mut axis = Self::tight(values);
        let room = 0.06 * (axis.hi - axis.lo);
        (axis.lo, axis.hi) = (axis.lo - room, axis.hi + room);
        // Counts and rates should not seem to fall below zero.
        axis.lo = if negative { axis.lo } else { axis.lo.max(0.0) };
        axis
    }

    /// From `10^lo` to `10^hi`.
    fn log(lo: f64, hi: f64) -> Self {
        Self { lo, hi, spacing: Spacing::Log, pixels: (0.0, 1.0) }
    }

    /// The axis over other pixels.
    pub(super) fn over(mut self, from: f64, to: f64) -> Self {
        self.pixels = (from, to);
        self
    }

    /// The numbers at its ends, if it is linear, and their logarithms else.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.lo, self.hi)
    }

    /// Whether the axis can show a number.
    pub(super) fn shows(&self, x: f64) -> bool {
        x.is_finite() && (self.spacing == Spacing::Linear || x > 0.0)
    }

    /// Whether a number lies between the ends.
    pub(super) fn contains(&self, x: f64) -> bool {
        self.shows(x) && (self.lo..=self.hi).contains(&self.position(x))
    }

    fn position(&self, x: f64) -> f64 {
        match self.spacing {
            Spacing::Linear => x.clamp(-LARGEST, LARGEST),
            Spacing::Log => x.log10(),
        }
    }

    /// The pixel of a number.
    pub(super) fn place(&self, x: f64) -> f64 {
        let t = (self.position(x) - self.lo) / (self.hi - self.lo);
        self.pixels.0 + t * (self.pixels.1 - self.pixels.0)
    }

    /// About `n` round numbers on the axis.
    pub(super) fn ticks(&self, n: usize) -> Vec<Tick> {
        match self.spacing {
            Spacing::Linear => linear_ticks(self.lo, self.hi, step(self.lo, self.hi, n)),
            Spacing::Log => log_ticks(self.lo, self.hi, n),
        }
    }

    /// About `n` whole numbers on the axis.
    pub(super) fn whole_ticks(&self, n: usize) -> Vec<Tick> {
        if self.spacing == Spacing::Log {
            return self.ticks(n);
        }
        linear_ticks(self.lo, self.hi, step(self.lo, self.hi, n).max(1.0))
    }
}

/// The least and the largest finite value, never equal.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|x| x.is_finite()).map(|x| x.clamp(-LARGEST, LARGEST));
    let (lo, hi) = finite
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (f64::min(lo, x), f64::max(hi, x)));
    if lo > hi {
        return (0.0, 1.0);
    }
    let least = (lo.abs().max(hi.abs()) * 1e-9).max(1e-150);
    if hi - lo > least {
        return (lo, hi);
    }
    let half = if lo == 0.0 { 1.0 } else { 0.1 * lo.abs() };
    (lo - half, hi + half)
}

/// 1, 2 or 5 times a power of ten, whichever comes nearest to `n` steps.
fn step(lo: f64, hi: f64, n: usize) -> f64 {
    let raw = (hi - lo) / n.max(1) as f64;
    let power = 10_f64.powf(raw.log10().floor());
    // Each is nearest up to the geometric mean with the next.
    let nearest = match raw / power {
        r if r < 2_f64.sqrt() => 1.0,
        r if r < 10_f64.sqrt() => 2.0,
        r if r < 50_f64.sqrt() => 5.0,
        _ => 10.0,
    };
    nearest * power
}

fn linear_ticks(lo: f64, hi: f64, step: f64) -> Vec<Tick> {
    const MOST: usize = 20;
    let first = (lo / step - 1e-9).ceil();
    let n = count((hi / step + 1e-9).floor() - first + 1.0).min(MOST);
    let values = (0..n).map(|i| (first + i as f64) * step);
    values.map(|value| Tick { value, label: label(value, step, lo.abs().max(hi.abs())) }).collect()
}

/// Decades, with 2 and 5 between them where there are few.
fn log_ticks(lo: f64, hi: f64, n: usize) -> Vec<Tick> {
    let decades = hi - lo;
    if decades < 1.0 {
        let (from, to) = (10_f64.powf(lo), 10_f64.powf(hi));
        // Fewer, since they crowd at the upper end.
        return linear_ticks(from, to, step(from, to, n.div_ceil(2)));
    }
    let stride = (decades / n.max(1) as f64).ceil().max(1.0);
    let factors: &[f64] = if decades < 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let mut ticks = Vec::new();
    let mut exponent = (lo.floor() / stride).floor() * stride;
    while exponent <= hi {
        for factor in factors {
            let value = factor * 10_f64.powf(exponent);
            if (lo..=hi).contains(&value.log10()) {
                ticks.push(Tick { value, label: power_label(value) });
            }
        }
        exponent += stride;
    }
    ticks
}

fn power_label(value: f64) -> String {
    if (9e-5..2e5).contains(&value) {
        fixed(value, count(-(value.log10() + 1e-9).floor()))
    } else {
        scientific(value, 0)
    }
}

/// A tick's number with as many decimals as its step needs.
fn label(value: f64, step: f64, largest: f64) -> String {
    let decimals = -(step.log10() + 1e-9).floor();
    if largest >= 1e7 || decimals > 6.0 {
        if value.abs() < 0.5 * step {
            return "0".into();
        }
        let digits = ((value.abs() / step).log10() + 1e-9).floor().clamp(0.0, 8.0);
        return scientific(value, count(digits));
    }
    fixed(value, count(decimals))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(lo: f64, hi: f64, n: usize) -> Vec<String> {
        let axis = Axis::tight([lo, hi].into_iter());
        axis.ticks(n).into_iter().map(|t| t.label).collect()
    }

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(labels(0.0, 10.0, 5), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(-137.2, -84.6, 5), ["−130", "−120", "−110", "−100", "−90"]);
        assert_eq!(labels(0.0, 0.01, 5), ["0.000", "0.002", "0.004", "0.006", "0.008", "0.010"]);
        assert_eq!(labels(0.0, 60_000.0, 3), ["0", "20,000", "40,000", "60,000"]);
        assert_eq!(labels(0.0, 2e-8, 2), ["0", "1e−8", "2e−8"]);
    }

    #[test]
    fn any_range_has_a_few_ticks() {
        for (lo, hi) in [
            (0.0, 0.0),
            (5.0, 5.0),
            (-1e300, 1e300),
            (1e16, 1e16 + 2.0),
            (-1e-300, 1e-300),
            (f64::NAN, f64::INFINITY),
            (0.1, 0.3),
        ] {
            for axis in [
                Axis::tight([lo, hi].into_iter()),
                Axis::roomy([lo, hi].into_iter(), Spacing::Linear),
                Axis::roomy([lo, hi].into_iter(), Spacing::Log),
            ] {
                let ticks = axis.ticks(5);
                assert!((1..=20).contains(&ticks.len()), "{axis:?}: {ticks:?}");
                assert!(ticks.iter().all(|t| axis.place(t.value).is_finite()), "{axis:?}");
            }
        }
    }

    #[test]
    fn logarithmic_ticks_are_decades() {
        let axis = |lo: f64, hi: f64| Axis::log(lo.log10(), hi.log10());
        let labels = |a: Axis| a.ticks(5).into_iter().map(|t| t.label).collect::<Vec<_>>();
        assert_eq!(labels(axis(1e-5, 1e-2)), ["1e−5", "0.0001", "0.001", "0.01"]);
        assert_eq!(labels(axis(2e-3, 6e-2)), ["0.002", "0.005", "0.01", "0.02", "0.05"]);
        assert_eq!(labels(axis(0.5, 2.0)), ["0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(labels(axis(1e-12, 1e0)).len(), 5);
    }

    #[test]
    fn places_follow_the_spacing() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        let line = Axis::tight([2.0, 4.0].into_iter()).over(100.0, 0.0);
        close(line.place(2.0), 100.0);
        close(line.place(3.5), 25.0);
        let log = Axis::log(-4.0, -2.0).over(0.0, 10.0);
        close(log.place(1e-3), 5.0);
        assert!(log.shows(1.0) && !log.shows(0.0) && !log.shows(-1.0) && !log.shows(f64::NAN));
        assert!(log.contains(1e-3) && !log.contains(1.0));
    }

    #[test]
    fn whole_ticks_have_no_halves() {
        let axis = Axis::tight([1.0, 3.0].into_iter());
        let labels: Vec<_> = axis.whole_ticks(8).into_iter().map(|t| t.label).collect();
        assert_eq!(labels, ["1", "2", "3"]);
    }

    #[test]
    fn what_is_never_negative_has_an_axis_from_zero() {
        assert_eq!(Axis::roomy([0.0, 0.0].into_iter(), Spacing::Linear).ends().0.to_bits(), 0);
        assert_eq!(Axis::roomy([0.1, 9.0].into_iter(), Spacing::Linear).ends().0.to_bits(), 0);
        assert!(Axis::roomy([8.0, 9.0].into_iter(), Spacing::Linear).ends().0 > 7.0);
        assert!(Axis::roomy([-1.0, 9.0].into_iter(), Spacing::Linear).ends().0 < -1.0);
    }

    #[test]
    fn a_logarithm_of_nothing_positive_is_linear() {
        let axis = Axis::roomy([0.0, -1.0].into_iter(), Spacing::Log);
        assert_eq!(axis.spacing, Spacing::Linear);
    }
}
