//! Whether numbers rise or fall, beyond their noise.

/// A straight line through the end of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    /// By how much the line rises.
    pub(super) change: f64,
    /// Standard error of that, from the scatter about the line.
    pub(super) std_error: f64,
}

/// Fewer points than that have no trend.
const FEWEST: usize = 4;

impl Trend {
    /// The least-squares line through values at equal distances.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        if values.len() < FEWEST || values.iter().any(|x| !x.is_finite()) {
            return None;
        }
        let (middle, mean) = ((n - 1.0) / 2.0, values.iter().sum::<f64>() / n);
        let points = || values.iter().enumerate().map(|(i, y)| (i as f64 - middle, y - mean));
        let spread: f64 = points().map(|(x, _)| x * x).sum();
        let slope = points().map(|(x, y)| x * y).sum::<f64>() / spread;
        let residual: f64 = points().map(|(x, y)| (y - slope * x).powi(2)).sum();
        let std_error = (residual / (n - 2.0) / spread).sqrt();
        Some(Self { change: slope * (n - 1.0), std_error: std_error * (n - 1.0) })
    }

    /// Whether the rise is larger than `least` and than its noise.
    pub(super) fn rises_by(self, least: f64) -> bool {
        self.change > least.max(2.0 * self.std_error)
    }

    /// Whether the fall is larger than `least` and than its noise.
    pub(super) fn falls_by(self, least: f64) -> bool {
        Self { change: -self.change, ..self }.rises_by(least)
    }
}

/// The last `share` of the values, but enough of them for a trend where there are.
pub(super) fn tail(values: &[f64], share: f64) -> &[f64] {
    let wanted = super::words::count((values.len() as f64 * share).ceil());
    let n = wanted.max(FEWEST).min(values.len());
    &values[values.len() - n..]
}

/// The middle value; nothing of no values.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_its_own_trend() {
        let values: Vec<f64> = (0..10).map(|i| 3.0 - 0.5 * f64::from(i)).collect();
        let trend = Trend::of(&values).unwrap();
        assert!((trend.change + 4.5).abs() < 1e-12 && trend.std_error < 1e-12);
        assert!(trend.falls_by(4.0) && !trend.falls_by(5.0) && !trend.rises_by(0.0));
    }

    #[test]
    fn noise_is_no_trend() {
        let values = [0.0, 1.0, 0.1, 0.9, 0.05, 1.1, 0.0, 1.0];
        let trend = Trend::of(&values).unwrap();
        assert!(!trend.rises_by(0.0) && !trend.falls_by(0.0));
    }

    #[test]
    fn too_few_or_broken_values_have_none() {
        assert_eq!(Trend::of(&[1.0, 2.0, 3.0]), None);
        assert_eq!(Trend::of(&[1.0, 2.0, f64::NAN, 3.0]), None);
        assert_eq!(tail(&[1.0, 2.0], 0.25), [1.0, 2.0]);
        assert_eq!(tail(&[0.0; 100], 0.25).len(), 25);
        assert_eq!((median(&[]), median(&[3.0, f64::NAN, 1.0, 2.0])), (None, Some(2.0)));
    }
}
