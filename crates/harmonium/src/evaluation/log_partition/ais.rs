//! Annealed importance sampling (Neal 2001; Salakhutdinov & Murray 2008).
//!
//! A chain starts at an exact sample of the base and is led through the temperatures
//! $0 = \beta_0 < \dots < \beta_n = 1$; its weight
//!
//! $$\ln w = \sum_k \ln p^*_{\beta_{k+1}}(x_k) - \ln p^*_{\beta_k}(x_k)$$
//!
//! has mean $Z_1/Z_0$ whatever the temperatures are, because each transition leaves its own
//! $p_{\beta_k}$ where it is. Chains that start at samples of the machine and are led to the base
//! estimate $Z_0/Z_1$ in the same way. Layers that can be summed out are, which leaves less to
//! fluctuate.
//!
//! Transitions run in the precision of the engine, through machines whose weights are rounded: each
//! is a machine like any other, with the same weights in both directions, and so are those between
//! it and the base. The last step leads from the rounded machine to the machine itself, and is
//! weighed in double precision. The mean of $w$ is therefore that of the machine itself.

use super::search::{Report, Search};
use super::weights::Summary;
use super::{Bracket, LogPartition, Method, doubts};
use crate::error::Error;
use crate::machine::State;
use crate::sampling::{Collapsed, Variates, independent};
use harmonium_kernels::random::Stream;

/// Leads the rows of `x` along `betas`; the logarithms of their weights. `tell` hears of the
/// chains that were moved, and may end the work.
pub(crate) fn anneal(
    collapsed: &mut Collapsed<'_>,
    x: &mut State,
    betas: &[f64],
    stream: Stream,
    tell: &mut dyn FnMut(usize) -> Result<(), Error>,
) -> Result<Vec<f64>, Error> {
    let mut log_weights = vec![0.0; x.n_rows()];
    for (sweep, pair) in betas.windows(2).enumerate() {
        collapsed.step(x, (pair[0], pair[1]), &mut log_weights, Variates { stream, sweep });
        tell(x.n_rows())?;
    }
    Ok(log_weights)
}

/// `n` chains from the base to the machine: their weights.
pub(super) fn forward(
    search: &Search,
    n: usize,
    betas: &[f64],
    report: &mut Report<'_>,
) -> Result<Vec<f64>, Error> {
    let (machine, stream) = (search.machine(), search.stream.fork(2));
    let mut x = independent(machine, &search.base, n, stream.fork(0))?;
    let mut collapsed = Collapsed::new(&search.sampler, &search.base, &search.clamp, &x)?;
    let mut tell = |n| report.add(n);
    let mut weights = anneal(&mut collapsed, &mut x, betas, stream.fork(1), &mut tell)?;
    let rounding = search.rounding(&mut x)?;
    weights.iter_mut().zip(rounding).for_each(|(w, r)| *w += r);
    Ok(weights)
}

/// $\ln Z$ by forward chains alone.
pub(super) fn estimate(search: &Search, report: &mut Report<'_>) -> Result<LogPartition, Error> {
    let betas = search.schedule(report)?.betas(search.n_betas());
    let summary = Summary::of(&forward(search, search.n_chains(), &betas, report)?);
    let log_z = search.base.log_partition(search.machine()) + summary.log_mean;
    let doubt = doubts::few(summary.effective_samples, search.n_chains());
    let above = match doubt {
        Some(_) => summary.reach_above(),
        None => summary.margin_above(),
    };
    Ok(LogPartition {
        log_z,
        std_error: summary.std_error,
        lower: log_z - summary.margin_below(),
        upper: log_z + above,
        // The lower end is a bound; nothing keeps the upper one from missing what no chain saw.
        bracket: Bracket::judged(Bracket::Heuristic, doubt.is_none()),
        doubts: doubt.into_iter().collect(),
        method: Method::Ais,
        effective_samples: Some(summary.effective_samples),
        chains: search.n_chains(),
        betas: betas.len(),
        sweeps: (search.n_chains() * (betas.len() - 1)) as u64,
        starts: None,
        least_swaps: None,
        round_trips: None,
        width_reached: None,
    })
}
