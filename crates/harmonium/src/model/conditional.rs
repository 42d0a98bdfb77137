//! Conditional scores: how probable a part of each row is given another part.
//!
//! $$\ln p(x_\text{asked} \mid x_\text{known})
//!   = \ln\sum_{\text{rest}} e^{-E(x)} - \ln\sum_{\text{rest},\,x_\text{asked}} e^{-E(x)}$$
//!
//! $\ln Z$ stands in both and cancels, so each row costs two sums over what is free in it
//! ([`row_sums`]): in closed form or by enumeration where that is affordable, by annealing
//! to the conditional distribution and back elsewhere. Each end of the interval takes the far end of either sum.

use super::pieces;
use super::score::weights;
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::evaluation::likelihood::{Ends, weighted_mean};
use crate::evaluation::log_partition::{self, Bracket, Doubt};
use crate::evaluation::row_sums::{self, How, RowWork, Sums};
use crate::models::Body;
use crate::progress::{Listener, tell};
use crate::random::Stream;
use crate::run::Model;
use crate::sampling::Sampler;
use crate::schema::Feed;
use harmonium_data::Dataset;
use ndarray::Array2;

/// Rows scored at a time.
const ROWS: usize = 128;

/// How probable a part of each row is given another part.
#[derive(Clone, Debug)]
pub struct Conditional {
    /// The mean over the rows, in nats.
    pub mean: f64,
    /// Of each row.
    pub rows: Vec<f64>,
    /// Standard error of what was estimated.
    pub std_error: f64,
    /// Standard error of the mean, from the spread over the rows.
    pub data_std_error: Option<f64>,
    /// The mean is above it, with a margin of 97.5 %.
    pub lower: f64,
    /// And below it.
    pub upper: f64,
    /// What the two are.
    pub bracket: Bracket,
    /// What speaks against the sums.
    pub doubts: Vec<Doubt>,
    /// Cells that were asked about, in all rows.
    pub n_asked: usize,
    /// Whether sums are exact or annealed.
    pub how: How,
    /// What the same cells reach if each is independent of all others, as it was in the training data; else why that is
    /// unknown.
    pub baseline: Result<f64, &'static str>,
}

impl Conditional {
    /// The mean over the cells that were asked about, in nats.
    pub fn per_cell(&self) -> f64 {
        self.in_cells(self.mean)
    }

    /// A mean over rows as one over the cells that were asked about.
    pub fn in_cells(&self, of_rows: f64) -> f64 {
        of_rows * self.rows.len() as f64 / self.n_asked as f64
    }

    /// In a word, how it was found.
    pub fn method(&self) -> &'static str {
        if self.how == How::Exact { "exact" } else { "ais" }
    }
}

impl Model {
    /// How probable what `data` holds is given what `known` holds: the same rows, of which some cells
    /// are missing. Whatever both lack is summed out.
    ///
    /// # Errors
    ///
    /// If the rows do not fit, nothing is asked about, the model is not a machine, memory ends, or the
    /// listener cancels.
    pub fn score_given(
        &self,
        data: &Dataset,
        known: &Dataset,
        seed: u64,
        listener: &mut dyn Listener,
    ) -> Result<Conditional, Error> {
        let Body::Machine(machine) = &self.body else {
            self.top()?;
            return Err(Error::Topology {
                model: "a conditional score",
                expected: "a machine whose visible units can be held",
                found: "a deep belief network can only be given a class".into(),
            });
        };
        let asked = asked_cells(data, known)?;
        let classes = data.labels().is_some() && known.labels().is_none();
        let n_cells = asked.iter().filter(|cell| **cell).count();
        let n_asked = n_cells + if classes { data.n_rows() } else { 0 };
        if n_asked == 0 {
            return Err(Error::Empty { what: "what is asked about".into() });
        }
        let feeds = [data, known].map(|part| Feed::new(machine, &self.schema(part)?, part));
        let [all, part] = feeds;
        let (all, part) = (all?, part?);
        let sampler = Sampler::new(machine.clone(), Arithmetic::F32);
        let work = RowWork { seed, ..RowWork::default() };
        let n_rows = data.n_rows();
        let share = ROWS as f64 / n_rows.max(ROWS) as f64;
        let budget = share * log_partition::sweeps_of_budget(machine);
        let (mut above, mut below) = (Sums::none(), Sums::none());
        let mut most_betas = work.betas;
        for piece in pieces(n_rows, ROWS) {
            let (first, end) = (piece.start, piece.end);
            for (feed, sums) in [(&all, &mut above), (&part, &mut below)] {
                let batch = feed.batch(piece.clone(), Stream::new(0));
                let x = batch.to_state(machine)?;
                let work = (&work, budget);
                let (found, betas) =
                    row_sums::settled_log_sums(&sampler, batch.clamp(), &x, first, work)?;
                sums.extend(found);
                most_betas = most_betas.max(betas);
            }
            tell(listener, "conditional score", end as u64, n_rows as u64)?;
        }
        if most_betas > work.betas {
            listener.note(&format!(
                "rows do not settle over {} temperatures: annealed once more over {most_betas}",
                work.betas
            ));
        }
        let mut found = difference(&above, &below, &weights(data));
        found.n_asked = n_asked;
        let alone = data.clone().with_mask(asked.view())?;
        let alone = if classes { alone } else { alone.without_labels() };
        found.baseline = self.baseline(&alone)?.map(|found| found.independent.mean);
        Ok(found.in_units(data, known))
    }
}

/// Which cells `data` has and `known` does not.
fn asked_cells(data: &Dataset, known: &Dataset) -> Result<Array2<bool>, Error> {
    let shape = |d: &Dataset| (d.n_rows(), d.n_columns());
    if shape(data) != shape(known) {
        return Err(Error::MaskShape { expected: shape(data), found: shape(known) });
    }
    let (all, part) = (data.table(), known.table());
    let asked = |(row, column)| !all.is_missing(row, column) && part.is_missing(row, column);
    Ok(Array2::from_shape_fn(shape(data), asked))
}

/// The difference of two sums of each row, with its interval.
fn difference(above: &Sums, below: &Sums, weights: &[f64]) -> Conditional {
    let rows: Vec<f64> = above.rows.iter().zip(&below.rows).map(|(a, b)| a - b).collect();
    let (mean, data_std_error) = weighted_mean(&rows, weights);
    let (up, down) = (Ends::of(above, weights), Ends::of(below, weights));
    let how = if above.how == How::Exact { below.how } else { above.how };
    Conditional {
        mean,
        rows,
        std_error: up.std_error.hypot(down.std_error),
        data_std_error,
        lower: (up.lower - down.upper).min(mean),
        upper: (up.upper - down.lower).max(mean),
        bracket: above.bracket().and(below.bracket()),
        doubts: above.doubts().into_iter().chain(below.doubts()).collect(),
        n_asked: 0,
        how,
        baseline: Err("it was not asked for"),
    }
}

impl Conditional {
    /// Log-densities of scaled values in the units of their table, where there is one.
    fn in_units(mut self, data: &Dataset, known: &Dataset) -> Self {
        let (Some(all), Some(part)) = (data.log_slopes(), known.log_slopes()) else { return self };
        let slopes: Vec<f64> = all.iter().zip(&part).map(|(a, b)| a - b).collect();
        let weights = weights(data);
        let shift = weighted_mean(&slopes, &weights).0;
        self.rows.iter_mut().zip(&slopes).for_each(|(row, slope)| *row += slope);
        (self.mean, self.data_std_error) = weighted_mean(&self.rows, &weights);
        self.lower += shift;
        self.upper += shift;
        self
    }
}
