//! Means of missing units by Gibbs sampling, with error bars.
//!
//! $C$ chains run for each row that differs from the others. After as many sweeps to settle the means
//! $E[x_i \mid x^{(t)}_{\setminus i}]$ of the missing units given all the rest are averaged
//! (Rao–Blackwell: means, not samples). With $\bar m_c$ the average of chain $c$,
//!
//! $$m = \frac1C\sum_c \bar m_c, \qquad
//!   \sigma = \frac{t_{C-1}}{1.96}\sqrt{\frac{1}{C(C-1)}\sum_c (\bar m_c - m)^2},$$
//!
//! where $t_{C-1}$ is the 97.5 % quantile of Student's distribution: $m \pm 1.96\,\sigma$ holds the mean
//! in 95 % of the cases although there are few chains. Chains start dispersed, so that those that stick
//! where they started widen the bar. What is rarer than once in all sweeps was perhaps not seen: of an event that
//! never happened in $N$ independent draws all that is known is that its probability is below $3/N$ (the rule of three), so
//! $1.96\,\sigma$ is at least that. The sweeps double until $\sigma$ is small or the work ends.

use super::given::Given;
use super::pieces;
use crate::error::Error;
use crate::evaluation::verdict::R_HAT_OF_SAMPLES;
use crate::machine::{Clamp, LayerId, Machine, State};
use crate::progress::{Listener, tell};
use crate::random::Stream;
use crate::sampling::Sampler;

/// Chains of each row.
const CHAINS: usize = 8;
/// $t_7/1.96$ at 97.5 %.
const FEW_CHAINS: f64 = 2.364_624 / 1.959_964;
/// Standard errors for one draw beyond which an event that was never seen is improbable: the rule of three.
const UNSEEN: f64 = 3.0 / 1.959_964;
/// Rows that are averaged together.
const ROWS: usize = 64;
/// Sweeps to settle at first; as many are then averaged, and they double.
const FIRST_SWEEPS: usize = 128;
/// Sweeps that are averaged at most.
const MOST_SWEEPS: usize = 8192;
/// The standard error that is sought, in units of the range of a unit, or for a real one of the standard deviation
/// of its column in the training data, where that is known, else of its own given the rest.
pub const ERROR_SOUGHT: f64 = 0.01;

/// Means of the visible units of some rows.
pub(super) struct Averages {
    /// Visible layers side by side, row after row.
    pub(super) means: Vec<Vec<f64>>,
    /// Their standard errors; 0 for what is held.
    pub(super) errors: Vec<Vec<f64>>,
    /// The largest $\hat R$ among cells whose error is larger than the one sought.
    pub(super) r_hat: Option<f64>,
    /// Samples of the same chains, as many for each row as were asked for: visible layers side by side.
    pub(super) draws: Vec<Vec<Vec<f64>>>,
    /// The most sweeps that were averaged.
    pub(super) sweeps: usize,
}

/// Samples of each row, entry by entry.
type Draws = Vec<Vec<Vec<f64>>>;

/// How much is asked of the chains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Sweeps to average, if they are asked for.
    pub(super) sweeps: Option<usize>,
    /// Samples to keep for each row.
    pub(super) draws: usize,
}

impl Wanted {
    /// Most samples that chains of these sweeps have.
    pub(super) fn most_draws(sweeps: Option<usize>) -> usize {
        CHAINS.saturating_mul(sweeps.unwrap_or(FIRST_SWEEPS))
    }
}

impl Averages {
    /// Whether no chain sticks.
    pub(super) fn have_mixed(&self) -> bool {
        self.r_hat.is_none_or(|r| r <= R_HAT_OF_SAMPLES)
    }
}

/// Averages the rows `rows` of what is given.
pub(super) fn average(
    sampler: &Sampler,
    given: &Given<'_>,
    rows: &[usize],
    wanted: Wanted,
    stream: Stream,
    listener: &mut dyn Listener,
) -> Result<Averages, Error> {
    let (means, errors, draws) = (Vec::new(), Vec::new(), Vec::new());
    let mut all = Averages { means, errors, draws, r_hat: None, sweeps: 0 };
    for piece in pieces(rows.len(), ROWS) {
        let (done, some) = (piece.start, &rows[piece]);
        let mut tell = |share: f64| {
            let at = 100.0 * (done as f64 + share * some.len() as f64);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            tell(listener, "completing", at as u64, 100 * rows.len() as u64)
        };
        let mut piece = Piece::new(sampler, given, some, stream.fork(done as u64))?;
        let found = piece.run(wanted, &mut tell)?;
        all.means.extend(found.means);
        all.errors.extend(found.errors);
        all.draws.extend(found.draws);
        all.r_hat = if found.r_hat > all.r_hat { found.r_hat } else { all.r_hat };
        all.sweeps = all.sweeps.max(found.sweeps);
    }
    Ok(all)
}

/// Chains of some rows.
struct Piece<'a> {
    sampler: &'a Sampler,
    visible: Vec<LayerId>,
    /// What an error of each visible entry is measured in.
    scales: Vec<f64>,
    x: State,
    clamp: Clamp,
    stream: Stream,
    done: usize,
    /// The rows whose chains still run, by their place in the answer.
    open: Vec<usize>,
}

/// A cell of a row: what was averaged, how well it is known, and how well its chains agree.
#[derive(Clone, Copy)]
struct Cell {
    mean: f64,
    error: f64,
    r_hat: f64,
}

impl<'a> Piece<'a> {
    fn new(
        sampler: &'a Sampler,
        given: &Given<'_>,
        rows: &[usize],
        stream: Stream,
    ) -> Result<Self, Error> {
        let of: Vec<usize> =
            rows.iter().flat_map(|&row| std::iter::repeat_n(row, CHAINS)).collect();
        let (x, clamp) = given.start(&of, |chain| chain % 2 == 1, stream)?;
        let visible = sampler.machine().visible_layers();
        let open = (0..rows.len()).collect();
        let scales = scales(sampler.machine(), given.deviations());
        Ok(Self { sampler, visible, scales, x, clamp, stream, done: 0, open })
    }

    fn run(
        &mut self,
        wanted: Wanted,
        tell: &mut dyn FnMut(f64) -> Result<(), Error>,
    ) -> Result<Averages, Error> {
        let (sweeps, scales) = (wanted.sweeps, self.scales.clone());
        let n = self.open.len();
        let mut found = Averages {
            means: vec![Vec::new(); n],
            errors: vec![Vec::new(); n],
            draws: vec![Vec::new(); n],
            r_hat: None,
            sweeps: 0,
        };
        let mut window = sweeps.unwrap_or(FIRST_SWEEPS);
        let most = (window + 1).max(if sweeps.is_some() { window } else { 2 * MOST_SWEEPS });
        self.settle(window, most, tell)?;
        loop {
            let (cells, mut draws) = self.window(window, wanted.draws, most, tell)?;
            found.sweeps = window;
            let last = sweeps.is_some() || window >= MOST_SWEEPS;
            let mut open = Vec::new();
            for (k, cells) in cells.chunks_exact(scales.len()).enumerate() {
                let far = cells.iter().zip(&scales).filter(|(c, s)| c.error > ERROR_SOUGHT * *s);
                let worst = far
                    .map(|(c, _)| c.r_hat)
                    .fold(None, |a: Option<f64>, r| Some(a.map_or(r, |a| a.max(r))));
                if worst.is_some() && !last {
                    open.push(k);
                    continue;
                }
                found.r_hat = if worst > found.r_hat { worst } else { found.r_hat };
                found.means[self.open[k]] = cells.iter().map(|c| c.mean).collect();
                found.errors[self.open[k]] = cells.iter().map(|c| c.error).collect();
                found.draws[self.open[k]] = std::mem::take(&mut draws[k]);
            }
            if open.is_empty() {
                return Ok(found);
            }
            self.keep(&open);
            window *= 2;
        }
    }

    /// Goes on with some of the rows alone.
    fn keep(&mut self, open: &[usize]) {
        let chains: Vec<usize> = open.iter().flat_map(|k| k * CHAINS..(k + 1) * CHAINS).collect();
        self.x = self.x.select_rows(&chains);
        self.clamp = self.clamp.select_rows(&chains);
        self.open = open.iter().map(|&k| self.open[k]).collect();
    }

    fn sweep(
        &mut self,
        most: usize,
        tell: &mut dyn FnMut(f64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let stream = self.stream.fork(3).fork(self.done as u64);
        self.sampler.gibbs(&self.clamp, &mut self.x, 1, stream)?;
        self.done += 1;
        tell((self.done as f64 / most as f64).min(1.0))
    }

    fn settle(
        &mut self,
        sweeps: usize,
        most: usize,
        tell: &mut dyn FnMut(f64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        (0..sweeps).try_for_each(|_| self.sweep(most, tell))
    }

    /// Averages over `window` sweeps: the cells of all open rows, one row after the other, and `draws` samples of each
    /// row, spread evenly over the window.
    fn window(
        &mut self,
        window: usize,
        draws: usize,
        most: usize,
        tell: &mut dyn FnMut(f64) -> Result<(), Error>,
    ) -> Result<(Vec<Cell>, Draws), Error> {
        let scales = self.scales.clone();
        let n_columns = scales.len();
        let mut drawn = vec![Vec::with_capacity(draws); self.open.len()];
        // Sums and squares of both halves of each chain.
        let mut sums = vec![[[0.0_f64; 2]; 2]; self.x.n_rows() * n_columns];
        let mut counts = [0.0_f64; 2];
        for sweep in 0..window {
            self.sweep(most, tell)?;
            // Of each chain this many samples, at evenly spaced sweeps.
            let of_chain = draws.div_ceil(CHAINS);
            if (sweep + 1) * of_chain / window > sweep * of_chain / window {
                self.keep_draws(draws, &mut drawn);
            }
            let half = usize::from(sweep >= window / 2);
            counts[half] += 1.0;
            let mut start = 0;
            for &l in &self.visible {
                let means = self.sampler.unit_means(&mut self.x, l)?;
                let len = self.sampler.machine().layer(l).len();
                for (row, means) in means.chunks_exact(len).enumerate() {
                    let at = row * n_columns + start;
                    for (sum, m) in sums[at..at + len].iter_mut().zip(means) {
                        sum[half][0] += m;
                        sum[half][1] += m * m;
                    }
                }
                start += len;
            }
        }
        let mut cells = Vec::with_capacity(self.open.len() * n_columns);
        for row in 0..self.open.len() {
            for column in 0..n_columns {
                let chain = |c: usize| sums[(row * CHAINS + c) * n_columns + column];
                let chains: [[[f64; 2]; 2]; CHAINS] = std::array::from_fn(chain);
                let unseen = UNSEEN * scales[column] / (CHAINS * window) as f64;
                cells.push(Cell::of(&chains, counts).with_error_of(unseen));
            }
        }
        self.mark_held(&mut cells, n_columns);
        Ok((cells, drawn))
    }

    /// Adds the states of the chains of each row to its samples, until there are enough.
    fn keep_draws(&self, draws: usize, drawn: &mut [Vec<Vec<f64>>]) {
        for (k, drawn) in drawn.iter_mut().enumerate() {
            let missing = draws.saturating_sub(drawn.len());
            for chain in (k * CHAINS..(k + 1) * CHAINS).take(missing) {
                let layers = self.visible.iter();
                drawn.push(layers.flat_map(|&l| self.x.row(l, chain)).copied().collect());
            }
        }
    }

    /// Held units stand where they stand.
    fn mark_held(&self, cells: &mut [Cell], n_columns: usize) {
        for (row, cells) in cells.chunks_exact_mut(n_columns).enumerate() {
            let mut start = 0;
            for &l in &self.visible {
                let layer = self.sampler.machine().layer(l);
                for (i, x) in self.x.row(l, row * CHAINS).iter().enumerate() {
                    if self.clamp.holds(l, row * CHAINS, i / layer.units.group()) {
                        cells[start + i] = Cell { mean: *x, error: 0.0, r_hat: 1.0 };
                    }
                }
                start += layer.len();
            }
        }
    }
}

impl Cell {
    /// The same, known no better than to `least`.
    fn with_error_of(self, least: f64) -> Self {
        Self { error: self.error.max(least), ..self }
    }

    /// From sums and squares of both halves of each chain, and the number of sweeps in each half.
    fn of(chains: &[[[f64; 2]; 2]; CHAINS], counts: [f64; 2]) -> Self {
        let n = counts[0] + counts[1];
        let of_chain = chains.map(|c| (c[0][0] + c[1][0]) / n);
        let mean = of_chain.iter().sum::<f64>() / CHAINS as f64;
        let spread: f64 = of_chain.iter().map(|m| (m - mean).powi(2)).sum();
        let error = FEW_CHAINS * (spread / (CHAINS * (CHAINS - 1)) as f64).sqrt();
        let (mut within, mut between, mut halves) = (0.0, 0.0, 0.0_f64);
        for chain in chains {
            for (half, count) in chain.iter().zip(counts).filter(|h| h.1 > 1.0) {
                let m = half[0] / count;
                within += ((half[1] - count * m * m) / (count - 1.0)).max(0.0);
                between += (m - mean).powi(2);
                halves += 1.0;
            }
        }
        let shorter = counts[0].min(counts[1]).max(1.0);
        let ratio = (between / (halves - 1.0)) / (within / halves);
        let r_hat = ((shorter - 1.0) / shorter + ratio).sqrt();
        // Rounding alone moves a mean that never moves.
        let still = error <= 1e-9 * (1.0 + mean.abs());
        Self { mean, error, r_hat: if still || r_hat.is_nan() { 1.0 } else { r_hat } }
    }
}

/// What an error of each visible entry is measured in; `deviations` are those of columns of numbers.
fn scales(machine: &Machine, deviations: Option<Vec<f64>>) -> Vec<f64> {
    let mut deviations = deviations.into_iter().flatten();
    let of = |&l: &LayerId| {
        let layer = machine.layer(l);
        let mut real = |i: usize| {
            let precision = layer.own.get(i).filter(|_| !layer.units.is_finite());
            let own = || precision.map_or(1.0, |precision| precision.powf(-0.5));
            deviations.next().filter(|d| *d > 0.0).unwrap_or_else(own)
        };
        let scale = |i| layer.units.bit_coordinates().map_or_else(|| real(i), |c| c.scale);
        (0..layer.len()).map(scale).collect::<Vec<f64>>()
    };
    machine.visible_layers().iter().flat_map(of).collect()
}
