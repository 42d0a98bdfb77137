//! Whether chains mix: autocorrelation times, effective samples, $\hat R$, round trips.
//!
//! A scalar is seen in many chains, each cut into two halves of $N$ sweeps. With $W$ the mean
//! variance inside a half and $B/N$ the variance of the halves' means,
//!
//! $$\hat R = \sqrt{V/W}, \qquad V = \tfrac{N-1}{N} W + \tfrac{B}{N}, \qquad
//!   \rho_t = 1 - \frac{W - \langle\gamma_t\rangle}{V}, \qquad
//!   \tau = -1 + 2\sum_k (\rho_{2k} + \rho_{2k+1}),$$
//!
//! $\gamma_t$ being the autocovariance of a half. The sum ends before the first pair that is not
//! positive, and pairs may not rise (Geyer 1992). $n$ draws are worth $n/\tau$ independent ones.
//! $\hat R$ is taken of normal scores of the ranks, so that heavy tails do not hide what differs
//! (Vehtari, Gelman, Simpson, Carpenter & Bürkner, Bayesian Analysis 16, 2021). With many chains
//! $\hat R^2 - 1$ is about $\tau/N$: it falls below 1.01 when a chain is a hundred $\tau$ long.

use crate::error::Error;
use crate::machine::{LayerId, Machine, State};
use crate::sampling::Tempering;
use rayon::prelude::*;
use serde::Serialize;

/// The fewest draws of a chain that anything is said about.
pub const LEAST_DRAWS: usize = 8;
/// Above it chains have not mixed (Vehtari et al. 2021).
pub const R_HAT_LIMIT: f64 = 1.01;
/// Below it neither means nor the diagnostics themselves are to be trusted (Vehtari et al. 2021).
pub const LEAST_EFFECTIVE_SAMPLES: f64 = 400.0;
/// Directions in which the chains are watched.
const DIRECTIONS: usize = 2;
/// Steps of the power method; a direction need not be exact to be worth watching.
const POWER_STEPS: usize = 30;

/// What one scalar says about the chains it was seen in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mixing {
    /// Mean over all chains.
    pub mean: f64,
    /// Standard deviation, $\sqrt V$.
    pub std: f64,
    /// Standard error of the mean, of as many draws as there are effective ones.
    pub std_error: Option<f64>,
    /// $\tau$ in sweeps: 1 if draws are independent. None of these is known if the scalar never
    /// changed.
    pub autocorrelation_time: Option<f64>,
    /// Draws divided by $\tau$.
    pub effective_samples: Option<f64>,
    /// $\hat R$; infinite if every half stands still at a value of its own.
    pub r_hat: Option<f64>,
    /// Lags that were summed.
    pub window: usize,
}

impl Mixing {
    /// What `chains` of one length say.
    ///
    /// # Errors
    ///
    /// If there is no chain, one is shorter than [`LEAST_DRAWS`] or than another, or a value is
    /// not finite.
    pub fn of(chains: &[Vec<f64>]) -> Result<Self, Error> {
        let n = chains.first().map_or(0, Vec::len);
        if n < LEAST_DRAWS {
            let value = n.to_string();
            return Err(Error::Setting { name: "sweeps", value, range: "at least 8" });
        }
        if let Some(other) = chains.iter().find(|c| c.len() != n) {
            let what = "the length of a chain".into();
            return Err(Error::Shape { what, expected: n, found: other.len() });
        }
        for (c, chain) in chains.iter().enumerate() {
            if let Some(entry) = chain.iter().position(|x| !x.is_finite()) {
                let place = format!("chain {c}");
                return Err(Error::ParameterValue {
                    place,
                    what: "series",
                    entry,
                    value: chain[entry],
                });
            }
        }
        let all = Halves::of(chains);
        let draws = (n * chains.len()) as f64;
        let mean = chains.iter().flatten().sum::<f64>() / draws;
        let std = all.overall().sqrt();
        if chains.iter().flatten().all(|x| *x == chains[0][0]) {
            return Ok(Self {
                mean,
                std,
                std_error: None,
                autocorrelation_time: None,
                effective_samples: None,
                r_hat: None,
                window: 0,
            });
        }
        let (tau, window) = all.autocorrelation_time();
        // Antithetic chains can have a tau near 0, of which a sample knows little (Stan's bound).
        let tau = tau.max(1.0 / draws.log10());
        let ranked = Halves::of(&normal_scores(chains));
        Ok(Self {
            mean,
            std,
            std_error: Some(std * (tau / draws).sqrt()),
            autocorrelation_time: Some(tau),
            effective_samples: Some(draws / tau),
            r_hat: Some((ranked.overall() / ranked.within).sqrt()),
            window,
        })
    }

    /// Whether the chains agree and say enough: $\hat R$ and effective samples inside the limits.
    /// A scalar that never changed says nothing against it.
    pub fn is_fine(&self) -> bool {
        self.r_hat.is_none_or(|r| r <= R_HAT_LIMIT)
            && self.effective_samples.is_none_or(|n| n >= LEAST_EFFECTIVE_SAMPLES)
    }
}

/// Chains cut in the middle, each half minus its mean.
struct Halves {
    centered: Vec<Vec<f64>>,
    /// $N$.
    n: usize,
    /// $W$.
    within: f64,
    /// $B/N$.
    between: f64,
}

impl Halves {
    fn of(chains: &[Vec<f64>]) -> Self {
        let n = chains[0].len() / 2;
        let halves = chains.iter().flat_map(|c| [&c[..n], &c[c.len() - n..]]);
        let (mut centered, mut means) = (Vec::new(), Vec::new());
        for half in halves {
            let mean = half.iter().sum::<f64>() / n as f64;
            // A half that stands still has no variance, not even that of rounding its mean.
            let still = half.iter().all(|x| *x == half[0]);
            let mean = if still { half[0] } else { mean };
            centered.push(half.iter().map(|x| x - mean).collect::<Vec<f64>>());
            means.push(mean);
        }
        let squares = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
        let m = centered.len() as f64;
        let within = centered.iter().map(|c| squares(c)).sum::<f64>() / (m * (n as f64 - 1.0));
        let grand = means.iter().sum::<f64>() / m;
        means.iter_mut().for_each(|x| *x -= grand);
        let between = squares(&means) / (m - 1.0);
        Self { centered, n, within, between }
    }

    /// $V$.
    fn overall(&self) -> f64 {
        let n = self.n as f64;
        (n - 1.0) / n * self.within + self.between
    }

    /// $\tau$, and how many lags it took.
    fn autocorrelation_time(&self) -> (f64, usize) {
        let overall = self.overall();
        let rho = |lag: usize| {
            let products = self
                .centered
                .iter()
                .map(|c| c.iter().zip(&c[lag..]).map(|(a, b)| a * b).sum::<f64>());
            let gamma = products.sum::<f64>() / (self.n * self.centered.len()) as f64;
            1.0 - (self.within - gamma) / overall
        };
        let (mut sum, mut least, mut lag) = (0.0, f64::INFINITY, 0);
        while lag + 1 < self.n {
            let pair = rho(lag) + rho(lag + 1);
            if pair <= 0.0 {
                break;
            }
            least = pair.min(least);
            sum += least;
            lag += 2;
        }
        (2.0 * sum - 1.0, lag)
    }
}

/// Each value replaced by the normal quantile of its rank among all; ties share their mean rank.
fn normal_scores(chains: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = chains[0].len();
    let values: Vec<f64> = chains.concat();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut scores = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let same = |&&i: &&usize| values[i] == values[order[first]];
        let ties = order[first..].iter().take_while(same).count();
        let rank = first as f64 + f64::midpoint(1.0, ties as f64);
        let score = normal_quantile((rank - 0.375) / (values.len() as f64 + 0.25));
        order[first..first + ties].iter().for_each(|&i| scores[i] = score);
        first += ties;
    }
    scores.chunks_exact(n).map(<[f64]>::to_vec).collect()
}

/// $\Phi^{-1}(p)$ to seven digits for $p$ down to 1e-11 (Wichura, Applied Statistics 37, 1988,
/// AS 241): ranks do not reach further out.
fn normal_quantile(p: f64) -> f64 {
    let polynomial = |c: &[f64], x: f64| c.iter().rev().fold(0.0, |sum, c| sum * x + c);
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        let above = [3.387_132_717_9, 50.434_271_938, 159.291_132_02, 59.109_374_72];
        let below = [1.0, 17.895_169_469, 78.757_757_664, 67.187_563_6];
        return q * polynomial(&above, r) / polynomial(&below, r);
    }
    let r = (-p.min(1.0 - p).ln()).sqrt() - 1.6;
    let above = [1.423_437_277_7, 2.756_815_39, 1.306_728_481_6, 0.170_238_211_03];
    let below = [1.0, 0.737_001_642_5, 0.120_211_329_75];
    q.signum() * polynomial(&above, r) / polynomial(&below, r)
}

/// A scalar with a name, in every chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// One value per look, for each chain.
    pub chains: Vec<Vec<f64>>,
}

/// Scalars of chains, taken down sweep after sweep: the energy, how active each layer is, and
/// where the chains stand along the directions in which they differed most at the start.
///
/// Modes that chains do not leave lie apart in such a direction, while the energy may well be the
/// same in all of them.
#[derive(Clone, Debug)]
pub struct Watch {
    directions: Vec<Vec<f64>>,
    series: Vec<Series>,
}

impl Watch {
    /// Begins with chains that stand at `x`, where they should have settled.
    ///
    /// # Errors
    ///
    /// If the state belongs to another machine.
    pub fn new(machine: &Machine, x: &State) -> Result<Self, Error> {
        x.check(machine)?;
        let directions = principal_directions(machine, x);
        let layers = machine.layers().iter().map(|l| format!("activity of `{}`", l.name));
        let names = std::iter::once("energy".to_owned())
            .chain(layers)
            .chain((1..=directions.len()).map(|k| format!("direction {k}")));
        let series =
            names.map(|name| Series { name, chains: vec![Vec::new(); x.n_rows()] }).collect();
        Ok(Self { directions, series })
    }

    /// Takes down where the chains stand.
    ///
    /// # Errors
    ///
    /// If the state is of another machine, or has other chains.
    pub fn look(&mut self, machine: &Machine, x: &State) -> Result<(), Error> {
        x.check(machine)?;
        let expected = self.series[0].chains.len();
        if x.n_rows() != expected {
            let what = "the number of chains".into();
            return Err(Error::Shape { what, expected, found: x.n_rows() });
        }
        let rows = (0..expected).into_par_iter();
        let scalars: Vec<Vec<f64>> = rows.map(|row| self.scalars(machine, x, row)).collect();
        for (row, scalars) in scalars.into_iter().enumerate() {
            for (series, value) in self.series.iter_mut().zip(scalars) {
                series.chains[row].push(value);
            }
        }
        Ok(())
    }

    fn scalars(&self, machine: &Machine, x: &State, row: usize) -> Vec<f64> {
        let activity = |l: LayerId| {
            // All choices of a categorical unit add up to 1; the first alone can vary.
            let group = machine.layer(l).units.group();
            let firsts = x.row(l, row).iter().step_by(group);
            firsts.sum::<f64>() / machine.layer(l).n_units() as f64
        };
        let visible = visible_row(machine, x, row);
        let along = |d: &Vec<f64>| dot(d, &visible);
        std::iter::once(machine.energy_of_row(x, row))
            .chain(machine.layer_ids().map(activity))
            .chain(self.directions.iter().map(along))
            .collect()
    }

    /// What was taken down.
    pub fn series(&self) -> &[Series] {
        &self.series
    }
}

fn visible_row(machine: &Machine, x: &State, row: usize) -> Vec<f64> {
    machine.visible_layers().iter().flat_map(|&l| x.row(l, row)).copied().collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Unit vectors along which the visible rows of `x` spread most; fewer if they do not spread.
fn principal_directions(machine: &Machine, x: &State) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = (0..x.n_rows()).map(|row| visible_row(machine, x, row)).collect();
    let n = rows.len().max(1) as f64;
    let mut mean = vec![0.0; rows.first().map_or(0, Vec::len)];
    rows.iter().for_each(|r| add_scaled(&mut mean, 1.0 / n, r));
    rows.iter_mut().for_each(|r| add_scaled(r, -1.0, &mean));
    let mut directions = Vec::new();
    while directions.len() < DIRECTIONS {
        let longest = rows.iter().max_by(|a, b| dot(a, a).total_cmp(&dot(b, b)));
        let Some(mut direction) = longest.cloned().and_then(unit) else { break };
        for _ in 0..POWER_STEPS {
            let mut next = vec![0.0; direction.len()];
            rows.iter().for_each(|r| add_scaled(&mut next, dot(r, &direction), r));
            direction = unit(next).unwrap_or(direction);
        }
        for r in &mut rows {
            let along = dot(r, &direction);
            add_scaled(r, -along, &direction);
        }
        directions.push(direction);
    }
    directions
}

fn add_scaled(y: &mut [f64], a: f64, x: &[f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x);
}

/// The vector at length 1, unless it is nothing but rounding errors.
fn unit(mut v: Vec<f64>) -> Option<Vec<f64>> {
    let length = dot(&v, &v).sqrt();
    v.iter_mut().for_each(|x| *x /= length);
    (length > 1e-9).then_some(v)
}

/// How replicas of parallel tempering move between the base and the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Travel {
    /// The inverse temperatures.
    pub betas: Vec<f64>,
    /// Share of swaps accepted between each temperature and the next.
    pub swap_rates: Vec<f64>,
    /// Ways from the base to the machine and back, of all replicas.
    pub round_trips: u64,
    /// Rounds times replicas over round trips: how long one takes; `2 betas` if all swap.
    pub rounds_per_trip: Option<f64>,
}

impl Travel {
    /// What the ladders have counted.
    pub fn of(tempering: &Tempering) -> Self {
        let (trips, replicas) = (tempering.round_trips(), tempering.replicas().n_rows());
        let travelled = tempering.rounds() as f64 * replicas as f64;
        Self {
            betas: tempering.betas().to_vec(),
            swap_rates: tempering.swap_rates().iter().map(|s| s.rate()).collect(),
            round_trips: trips,
            rounds_per_trip: (trips > 0).then(|| travelled / trips as f64),
        }
    }

    /// The place in the ladder where the fewest swaps are accepted, and their share.
    pub fn narrowest(&self) -> Option<(usize, f64)> {
        self.swap_rates.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        let table = [
            (0.5, 0.0),
            (0.9, 1.281_551_565_5),
            (0.975, 1.959_963_984_5),
            (0.999, 3.090_232_306_2),
            (1e-6, -4.753_424_308_8),
            (0.925, 1.439_531_470_9),
        ];
        for (p, z) in table {
            assert!((normal_quantile(p) - z).abs() < 1e-6, "{p}: {}", normal_quantile(p));
        }
    }

    #[test]
    fn ties_share_their_rank() {
        let scores = normal_scores(&[vec![1.0, 3.0], vec![3.0, 2.0]]);
        assert_eq!(scores[0][1], scores[1][0]);
        assert!(scores[0][0] < scores[1][1] && scores[1][1] < scores[0][1]);
        let p = (3.5 - 0.375) / 4.25;
        assert_eq!(scores[0][1], normal_quantile(p));
    }
}
