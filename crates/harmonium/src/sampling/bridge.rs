//! What samples of two neighbouring machines say of each other: how many jumps from one to the other are accepted, how
//! soon chains forget by them, and how sure sums over independent groups are.

/// What two machines saw of each other: $u = \ln p^*_1 - \ln p^*_0$ at one sample of each for every chain.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// At samples of the lower machine.
    pub(crate) lower: Vec<f64>,
    /// At samples of the upper machine.
    pub(crate) upper: Vec<f64>,
}

impl Seen {
    /// The share of jumps that are accepted, over all pairs of a lower and an upper sample: less
    /// noisy than what the chains happen to do, at the same energies.
    pub(crate) fn acceptance(&self) -> f64 {
        let weights = vec![1.0; self.upper.len()];
        acceptance(&self.lower, &self.upper, &weights)
    }
}

/// The mean of $\min(1, e^{a - b})$ over all pairs, each `b` with its weight.
pub(crate) fn acceptance(lower: &[f64], upper: &[f64], weights: &[f64]) -> f64 {
    let mut sorted: Vec<(f64, f64)> = upper.iter().copied().zip(weights.iter().copied()).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Behind each place, the sum of what lies there, seen from there; before it, the weights alone.
    let mut behind = vec![0.0; sorted.len() + 1];
    for i in (0..sorted.len()).rev() {
        let step = sorted.get(i + 1).map_or(0.0, |next| (sorted[i].0 - next.0).exp());
        behind[i] = sorted[i].1 + step * behind[i + 1];
    }
    let mut before = vec![0.0; sorted.len() + 1];
    for (i, (_, w)) in sorted.iter().enumerate() {
        before[i + 1] = before[i] + w;
    }
    let total = before[sorted.len()] * lower.len() as f64;
    let of = |&a: &f64| {
        let first = sorted.partition_point(|(b, _)| *b <= a);
        let rest = sorted.get(first).map_or(0.0, |(b, _)| (a - b).exp() * behind[first]);
        before[first] + rest
    };
    lower.iter().map(of).sum::<f64>() / total
}

/// Rounds in which a chain forgets where it was, from who jumped in each round so far: the integrated autocorrelation time
/// of a coin that every jump turns over, up to a window of six times itself (Sokal 1997). Chains that hardly ever jump hold it up.
/// Unbounded before the first round.
pub(crate) fn forgetting(jumped: &[Vec<bool>]) -> f64 {
    let n = jumped.len();
    let Some(first) = jumped.first() else { return f64::INFINITY };
    let mut side = vec![1.0; first.len()];
    let mut sides: Vec<Vec<f64>> = Vec::with_capacity(n);
    for round in jumped {
        side.iter_mut().zip(round).filter(|(_, jumped)| **jumped).for_each(|(s, _)| *s = -*s);
        sides.push(side.clone());
    }
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut time = 0.5;
    for lag in 1..=n / 2 {
        let pairs = sides[lag..].iter().zip(&sides);
        let sum: f64 = pairs.map(|(a, b)| dot(a, b)).sum();
        time += sum / ((n - lag) * first.len()) as f64;
        if lag as f64 >= 6.0 * time {
            break;
        }
    }
    time.max(0.5)
}

/// The mean of independent numbers, and its standard error, widened because few of them do not know their own spread;
/// infinite for one alone.
pub(crate) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if n < 2.0 {
        return (mean, f64::INFINITY);
    }
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    // The variance of Student's distribution over that of a normal one; three degrees of freedom are the fewest that have one.
    let few = if n > 3.0 { (n - 1.0) / (n - 3.0) } else { 3.0 };
    (mean, (few * squares / (n * (n - 1.0))).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use harmonium_kernels::random::{Site, Stream};

    fn normals(n: usize, row: usize) -> Vec<f64> {
        let mut out = vec![0.0; n];
        Stream::new(8).normals_into(Site::new(row, 0, 0), &mut out);
        out
    }

    #[test]
    fn acceptance_is_the_mean_over_all_pairs() {
        let (lower, upper) = (normals(13, 0), normals(7, 1));
        let weights: Vec<f64> = (1..=7).map(f64::from).collect();
        let pairs = lower
            .iter()
            .flat_map(|a| upper.iter().zip(&weights).map(move |(b, w)| w * (a - b).exp().min(1.0)));
        let expected = pairs.sum::<f64>() / (13.0 * weights.iter().sum::<f64>());
        assert!((acceptance(&lower, &upper, &weights) - expected).abs() < 1e-12);
        assert_eq!(acceptance(&[2.0], &[2.0, 1.0], &[1.0, 1.0]), 1.0);
        assert_eq!(acceptance(&[-1e6], &[1e6], &[1.0]), 0.0);
    }

    /// If every chain jumps with probability $a$, what is left of the coin after a round is $1 - 2a$.
    #[test]
    fn chains_that_jump_forget_and_those_that_do_not_hold_it_up() {
        let jumps = |a: f64, stuck: usize| -> Vec<Vec<bool>> {
            let of = |round: usize, c: usize| {
                c >= stuck && Stream::new(3).uniform(Site::new(c, round, 0), 0) < a
            };
            (0..200).map(|round| (0..100).map(|c| of(round, c)).collect()).collect()
        };
        for a in [0.1, 0.3, 0.45] {
            let expected = 0.5 + (1.0 - 2.0 * a) / (2.0 * a);
            let found = forgetting(&jumps(a, 0));
            assert!((found - expected).abs() < 0.15 * expected, "{a}: {found}, {expected}");
        }
        assert!(forgetting(&jumps(0.3, 20)) > 5.0 * forgetting(&jumps(0.3, 0)));
        assert_eq!(forgetting(&[]), f64::INFINITY);
    }

    #[test]
    fn the_error_of_few_numbers_is_that_of_students_distribution() {
        let (n, m) = (8, 4000);
        let mut squares = 0.0;
        for row in 0..m {
            let (mean, error) = mean_and_error(&normals(n, row));
            squares += (mean / error).powi(2);
        }
        let found = squares / m as f64;
        assert!((found - 1.0).abs() < 0.15, "mean square {found}");
        assert_eq!(mean_and_error(&[2.0]), (2.0, f64::INFINITY));
    }
}
