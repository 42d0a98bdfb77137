//! Contenders take turns; the median of each is what it is worth.

use crate::Fallible;
use std::time::Instant;

/// Rounds that are wanted in each second, and those that even slow contenders run: more time means
/// more rounds, not longer ones, since other work on the machine comes in bursts.
const ROUNDS: (f64, f64) = (9.0, 3.0);

/// Work that can be repeated: does it `n` times and says how many seconds that took.
pub(crate) type Contender<'a> = dyn FnMut(usize) -> Fallible<f64> + 'a;

/// Seconds for doing the work once, for each contender and round.
///
/// Everyone works once to warm up and once to see how often a turn has to repeat the work, so that
/// all rounds take about `budget` seconds together.
pub(crate) fn take_turns(
    budget: f64,
    contenders: &mut [&mut Contender],
) -> Fallible<Vec<Vec<f64>>> {
    let wanted = ROUNDS.0 * budget.max(1.0);
    let turn = budget / (wanted * contenders.len() as f64);
    let mut repeats = Vec::new();
    let mut round = 0.0;
    for contender in contenders.iter_mut() {
        contender(1)?;
        let once = contender(1)?;
        let n = (turn / once).clamp(1.0, 10_000.0);
        round += n * once;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        repeats.push(n as usize);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let rounds = (budget / round).clamp(ROUNDS.1, wanted) as usize | 1;
    let mut times = vec![Vec::with_capacity(rounds); contenders.len()];
    for _ in 0..rounds {
        for ((contender, times), &n) in contenders.iter_mut().zip(&mut times).zip(&repeats) {
            times.push(contender(n)? / n as f64);
        }
    }
    Ok(times)
}

/// Makes a contender of work that cannot fail.
pub(crate) fn timed(mut work: impl FnMut()) -> impl FnMut(usize) -> Fallible<f64> {
    move |n| {
        let start = Instant::now();
        (0..n).for_each(|_| work());
        Ok(start.elapsed().as_secs_f64())
    }
}

/// Seconds of each contender: the median over `rounds` rounds, after one that is not counted.
pub(crate) fn medians(rounds: usize, contenders: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    let mut times = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..=rounds {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            let start = Instant::now();
            contender();
            if round > 0 {
                times.push(start.elapsed().as_secs_f64());
            }
        }
    }
    times.into_iter().map(median).collect()
}

/// The middle one; of an even number, the upper of the two.
pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Median over rounds of `times` divided by `first` in the same round; none without a round.
pub(crate) fn ratio(times: &[f64], first: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = times.iter().zip(first).map(|(t, f)| t / f).collect();
    (!ratios.is_empty()).then(|| median(ratios))
}

/// The power of `x` with which `y` grows: least squares on logarithms.
pub(crate) fn exponent(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / n;
    let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
    let covariance: f64 = logs.iter().map(|(x, y)| (x - mx) * (y - my)).sum();
    let variance: f64 = logs.iter().map(|(x, _)| (x - mx) * (x - mx)).sum();
    covariance / variance
}

/// Runs `work` on a pool of `n` threads.
pub(crate) fn on_threads<R: Send>(
    n: usize,
    work: impl FnOnce() -> R + Send,
) -> Result<R, rayon::ThreadPoolBuildError> {
    Ok(pool(n)?.install(work))
}

/// A pool of `n` threads.
pub(crate) fn pool(n: usize) -> Result<rayon::ThreadPool, rayon::ThreadPoolBuildError> {
    rayon::ThreadPoolBuilder::new().num_threads(n).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_one_is_the_median() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), 3.0);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        // The machine was slow in the second round, for both.
        assert_eq!(ratio(&[3.0, 20.0, 2.0], &[1.0, 10.0, 1.0]), Some(2.0));
        assert_eq!(ratio(&[5.0], &[1.0, 10.0, 1.0]), Some(5.0), "a slow peer ran once");
        assert_eq!(ratio(&[], &[1.0]), None);
    }

    #[test]
    fn powers_are_found() {
        let grows = |power: f64| [1.0_f64, 2.0, 5.0, 9.0].map(|x| (x, 7.0 * x.powf(power)));
        for power in [-1.0, 0.0, 0.5, 2.0] {
            assert!((exponent(&grows(power)) - power).abs() < 1e-12, "{power}");
        }
    }

    #[test]
    fn turns_are_as_long_as_the_budget_allows() {
        // Time as the contenders claim it: 1 ms and 40 ms a piece.
        let mut done = [0, 0];
        let [a, b] = &mut done;
        let mut quick = |n: usize| {
            *a += n;
            Ok(n as f64 * 1e-3)
        };
        let mut slow = |n: usize| {
            *b += n;
            Ok(n as f64 * 4e-2)
        };
        let times = take_turns(0.18, &mut [&mut quick, &mut slow]).expect("both work");
        assert!(times.iter().all(|t| t.len() == 3), "at least three rounds");
        assert!((times[0][1] - 1e-3).abs() < 1e-12 && (times[1][2] - 4e-2).abs() < 1e-12);
        assert_eq!(done, [2 + 3 * 10, 2 + 3]);
    }
}
