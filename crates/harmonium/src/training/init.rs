//! First parameters, from the data.
//!
//! Small random weights; visible biases at which independent units have the means of the data
//! (kept finite for constant features); offsets at the means, where the gradient of a centered machine is
//! best conditioned.
//!
//! Real columns start as one Gaussian: where their layer is coupled with itself, its precision is the inverse of
//! the shrunk covariance, $\gamma_i = \Lambda_{ii}$ and $J_{ij} = -\Lambda_{ij}$, else one over the variances. Hidden
//! units that start without weights would stay there, because one Gaussian is a saddle of the likelihood. So each
//! starts off in most rows, and moves the mean of the columns by $m_j$, random in coordinates in which the data is white;
//! the precision makes up for what that explains, so that the whole keeps the covariance of the data,
//! $$\Lambda^{-1} = I - \sum_j p(1-p)\, m_j m_j^\top, \qquad W = \Lambda M.$$

use super::coordinates::{Ends, White, columns_of, dense_lateral, ends};
use super::plan::Plan;
use super::trainer::purpose;
use crate::error::Error;
use crate::gaussian::Block;
use crate::machine::{Coupling, LayerId, Machine, Role, Weights, row_range};
use crate::schema::Feed;
use crate::spread::least_variance;
use harmonium_data::Dataset;
use harmonium_kernels::dense::add_scaled;
use harmonium_kernels::random::{Site, Stream};

/// The share of rows in which a hidden unit that sees real columns is on when it starts: less than half,
/// because in either half it would be on as well; rarer ones start further below one Gaussian.
const RARELY: f64 = 0.3;

/// The share of the variance that hidden units explain at the start, on average over directions that some
/// of them move, at the usual size of first weights.
const EXPLAINED: f64 = 0.3;
const USUAL_STD: f64 = 0.01;
const LEAST_DEVIATION: f64 = 0.1;

/// The largest share of the variance in any direction that hidden units explain at the start.
const MOST_EXPLAINED: f64 = 0.5;

/// Sets all parameters of `machine` as the data and the plan ask.
///
/// # Errors
///
/// If the data does not fit the machine.
pub fn initialise(machine: &mut Machine, data: &Dataset, plan: &Plan) -> Result<(), Error> {
    let feed = Feed::of(machine, data)?.filled_layers()?;
    let real = crate::spread::real_layers(machine);
    let sees_real = |l: LayerId| real.iter().any(|&m| machine.coupled(l, m));
    let rare: Vec<bool> = machine.layer_ids().map(sees_real).collect();
    let (means, variances) = visible_statistics(machine, &feed);
    let mut means = means.into_iter();
    let mut variances = variances.into_iter();
    for (layer, rare) in machine.layers_mut().iter_mut().zip(rare) {
        let neutral = vec![layer.units.neutral_mean(); layer.len()];
        let mean = match layer.role {
            Role::Hidden if rare && layer.units.is_zero_or_one() => vec![RARELY; layer.len()],
            Role::Hidden => neutral,
            Role::Visible => {
                let (mean, mut variance) =
                    (means.next().unwrap_or(neutral), variances.next().unwrap_or_default());
                variance.iter_mut().zip(&mean).for_each(|(v, m)| *v = least_variance(*m, *v));
                layer.units.set_own(&mut layer.own, &mean, &variance);
                mean
            }
        };
        layer.bias = layer.bias_of_means(&mean);
        // Real columns are centered until they have their start.
        let center = plan.center || !real.is_empty();
        layer.offset = if center { mean } else { vec![0.0; layer.len()] };
    }
    let stream = Stream::new(plan.seed).fork(purpose::INIT);
    for (i, c) in machine.couplings_mut().iter_mut().enumerate() {
        let site = Site::new(0, 0, i);
        stream.normals_into(site, c.weights.entries_mut());
        c.weights.entries_mut().iter_mut().for_each(|w| *w *= plan.initial_std);
    }
    clear_inside_units(machine);
    machine.set_constant(0.0);
    if real.is_empty() && machine.joining().next().is_none() {
        return Ok(());
    }
    for &l in &real {
        start_reals(machine, &feed, l)?;
    }
    weaken_until_normal(machine, &real);
    if !plan.center {
        let zeros: Vec<Vec<f64>> = machine.layers().iter().map(|l| vec![0.0; l.len()]).collect();
        machine.recenter(&zeros)?;
    }
    Ok(())
}

/// Puts a visible layer of real units where it starts. The weights of its couplings are taken for the first
/// moves of its mean, in coordinates in which its data is white.
fn start_reals(machine: &mut Machine, feed: &Feed<'_>, l: LayerId) -> Result<(), Error> {
    let (n, lateral) = (machine.layer(l).len(), dense_lateral(machine, l));
    let white = White::new(l, lateral, columns_of(machine, feed, l), true);
    let seen = |c: usize| Some((c, ends(machine, c, l)?, deviations_beyond(machine, c, l)?));
    let seen: Vec<_> = (0..machine.couplings().len()).filter_map(seen).collect();
    let n_seen: usize = seen.iter().map(|(_, _, deviations)| deviations.len()).sum();
    for (c, ends, deviations) in &seen {
        let crowd = (n as f64 / n_seen as f64).min(1.0) / n as f64;
        let usual = (EXPLAINED * crowd).sqrt() / USUAL_STD;
        let weights = machine.couplings_mut()[*c].weights.entries_mut();
        for (k, w) in weights.iter_mut().enumerate() {
            let unit = match ends {
                Ends::Rows(width) => k % width,
                Ends::Columns => k / n,
            };
            // A unit that hardly ever changes would have to move the mean beyond all bounds.
            *w *= usual / deviations[unit].max(LEAST_DEVIATION);
        }
    }
    let explained = |machine: &Machine| {
        let mut explained = Explained::nothing(n, white.is_together());
        for (c, ends, deviations) in &seen {
            explained.add(machine.couplings()[*c].weights.entries(), *ends, deviations);
        }
        explained
    };
    let found = explained(machine);
    let scale = found.scale();
    let precision = found.precision(scale)?;
    for (c, ends, _) in &seen {
        let weights = machine.couplings_mut()[*c].weights.entries_mut();
        weights.iter_mut().for_each(|w| *w *= scale);
        multiply(&precision, n, weights, *ends);
        white.send_weights(weights, *ends);
    }
    if precision.len() == n {
        // So many units start as independent ones.
        let entries = lateral.map(|c| machine.couplings_mut()[c].weights.entries_mut());
        entries.into_iter().for_each(|entries| entries.fill(0.0));
        let layer = &mut machine.layers_mut()[l.0];
        let own = layer.own.iter_mut().zip(&precision).zip(white.start());
        own.for_each(|((own, p), start)| *own = p * start);
    } else if let Some(c) = lateral {
        let mut precision = precision;
        white.send_precision(&mut precision);
        let layer = &mut machine.layers_mut()[l.0];
        let own = layer.own.iter_mut().zip(precision.iter().step_by(n + 1));
        own.for_each(|(own, p)| *own = *p);
        let entries = machine.couplings_mut()[c].weights.entries_mut();
        for i in 0..n {
            let row = entries[row_range(n, i)].iter_mut().enumerate();
            row.for_each(|(k, w)| *w = -precision[i * n + i + 1 + k]);
        }
    }
    let layer = &mut machine.layers_mut()[l.0];
    // The offset is the mean, around which couplings send nothing.
    layer.bias = layer.bias_of_means(&layer.offset);
    Ok(())
}

/// The standard deviation, at its mean, of each entry of the other end of a coupling; nothing for real
/// ones.
fn deviations_beyond(machine: &Machine, c: usize, l: LayerId) -> Option<Vec<f64>> {
    let other = machine.layer(machine.couplings()[c].other_end(l)?);
    let bits = other.units.bit_coordinates()?;
    let deviation = |mean: &f64| {
        let p = ((mean - bits.shift) / bits.scale).clamp(0.0, 1.0);
        bits.scale * (p * (1.0 - p)).sqrt()
    };
    Some(other.offset.iter().map(deviation).collect())
}

/// What the moves of all hidden units explain of the white data: its covariance, or its diagonal.
struct Explained {
    n: usize,
    covariance: Vec<f64>,
}

impl Explained {
    fn nothing(n: usize, together: bool) -> Self {
        Self { n, covariance: vec![0.0; if together { n * n } else { n }] }
    }

    fn is_together(&self) -> bool {
        self.covariance.len() > self.n
    }

    /// Adds $\sum_j v_j m_j m_j^\top$ over the moves that stand in the weights of a coupling.
    fn add(&mut self, weights: &[f64], ends: Ends, deviations: &[f64]) {
        let n = self.n;
        let at = |i: usize, j: usize| match ends {
            Ends::Rows(width) => weights[i * width + j],
            Ends::Columns => weights[j * n + i],
        };
        for (j, deviation) in deviations.iter().enumerate() {
            let moved: Vec<f64> = (0..n).map(|i| deviation * at(i, j)).collect();
            if self.is_together() {
                for (row, m) in self.covariance.chunks_exact_mut(n).zip(&moved) {
                    add_scaled(row, *m, &moved);
                }
            } else {
                self.covariance.iter_mut().zip(&moved).for_each(|(c, m)| *c += m * m);
            }
        }
    }

    /// By what moves are multiplied so that they explain no more than [`MOST_EXPLAINED`] in any direction.
    fn scale(&self) -> f64 {
        const SMALLER: f64 = 0.9;
        let fits = |scale: f64| {
            let left = self.left(scale, MOST_EXPLAINED);
            if self.is_together() {
                Block::new(left, self.n).is_ok()
            } else {
                left.iter().all(|x| *x > 0.0)
            }
        };
        std::iter::successors(Some(1.0), |s| Some(SMALLER * s)).find(|s| fits(*s)).unwrap_or(0.0)
    }

    /// $aI - s^2 E$.
    fn left(&self, scale: f64, a: f64) -> Vec<f64> {
        let n = self.n;
        let unit = |k: usize| !self.is_together() || k.is_multiple_of(n + 1);
        let left = self.covariance.iter().enumerate();
        left.map(|(k, e)| if unit(k) { a } else { 0.0 } - scale * scale * e).collect()
    }

    /// The precision that is left, its diagonal or row by row.
    fn precision(&self, scale: f64) -> Result<Vec<f64>, Error> {
        let left = self.left(scale, 1.0);
        if self.is_together() {
            return Ok(Block::new(left, self.n)?.covariance());
        }
        Ok(left.iter().map(|x| x.recip()).collect())
    }
}

/// Multiplies the vectors that stand in the weights of a coupling with a symmetric matrix, or a diagonal.
fn multiply(matrix: &[f64], n: usize, weights: &mut [f64], ends: Ends) {
    let before = weights.to_vec();
    let entry = |i: usize, k: usize| match (matrix.len() == n, i == k) {
        (true, true) => matrix[i],
        (true, false) => 0.0,
        (false, _) => matrix[i * n + k],
    };
    match ends {
        Ends::Rows(width) => {
            for (i, row) in weights.chunks_exact_mut(width).enumerate() {
                row.fill(0.0);
                for (k, other) in before.chunks_exact(width).enumerate() {
                    if entry(i, k) != 0.0 {
                        add_scaled(row, entry(i, k), other);
                    }
                }
            }
        }
        Ends::Columns => {
            for (vector, before) in weights.chunks_exact_mut(n).zip(before.chunks_exact(n)) {
                let sum = |i: usize| (0..n).map(|k| entry(i, k) * before[k]).sum();
                (0..n).for_each(|i| vector[i] = sum(i));
            }
        }
    }
}

/// Weakens random couplings of Gaussian units with each other until they have a density.
fn weaken_until_normal(machine: &mut Machine, started: &[LayerId]) {
    const HALVINGS: usize = 60;
    for _ in 0..HALVINGS {
        if machine.check_normalises().is_ok() {
            return;
        }
        let random: Vec<bool> = machine
            .couplings()
            .iter()
            .map(|c| {
                let start = c.is_lateral()
                    && started.contains(&c.between.0)
                    && matches!(c.weights, Weights::Lateral(_));
                machine.joins_reals(c) && !start
            })
            .collect();
        for (c, random) in machine.couplings_mut().iter_mut().zip(random) {
            if random {
                c.weights.entries_mut().iter_mut().for_each(|w| *w *= 0.5);
            }
        }
    }
}

/// Entries of one unit exclude each other and have no weight.
fn clear_inside_units(machine: &mut Machine) {
    let units: Vec<_> = machine.layers().iter().map(|l| (l.units, l.len())).collect();
    let dense = |c: &&mut Coupling| matches!(c.weights, Weights::Lateral(_));
    for c in machine.couplings_mut().iter_mut().filter(dense) {
        let (units, n) = units[c.between.0.0];
        for i in 0..n {
            let inside = crate::moments::inside_unit(units, i, n);
            c.weights.entries_mut()[row_range(n, i)][..inside].fill(0.0);
        }
    }
}

/// Weighted mean and variance of every entry of the visible layers.
fn visible_statistics(machine: &Machine, feed: &Feed<'_>) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let visible = machine.visible_layers();
    let own_nothing = |&l: &LayerId| machine.layer(l).units.own_parameters().is_empty();
    // Variances are for own parameters only.
    if visible.iter().all(own_nothing)
        && let Some(means) = feed.counted_means()
    {
        return (means, vec![Vec::new(); visible.len()]);
    }
    feed.statistics()
}
