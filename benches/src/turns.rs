//! Contenders take turns; the median of each is what it is worth.

use std::time::Instant;

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

/// Runs `work` on a pool of `n` threads.
pub(crate) fn on_threads<R: Send>(
    n: usize,
    work: impl FnOnce() -> R + Send,
) -> Result<R, rayon::ThreadPoolBuildError> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(n).build()?.install(work))
}
