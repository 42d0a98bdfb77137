//! What a net says of rows: probabilities or values in double precision, and how far they are from the targets.

use super::parameters::Parameters;
use super::passes::Passes;
use super::plan::Keeps;
use super::rows::{NetworkRows, RowRoom};
use crate::error::Error;
use crate::machine::check_memory;
use crate::models::{Loss, Network};
use crate::progress::{Listener, tell};
use crate::units::log_sum_exp;
use std::ops::Range;

/// Rows that go up together.
const PIECE: usize = 500;

/// What a net says of a number of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// Numbers for each row.
    pub n_outputs: usize,
    /// Probabilities of classes or tags, or values, row by row.
    pub values: Vec<f64>,
    /// The loss of each row, where it is known what is to be answered; else empty.
    pub losses: Vec<f64>,
}

impl Answers {
    /// Asks a net.
    ///
    /// # Errors
    ///
    /// If memory ends, or the listener cancels.
    pub fn of(
        network: &Network,
        rows: &NetworkRows<'_>,
        listener: &mut dyn Listener,
    ) -> Result<Self, Error> {
        let (n_rows, n_outputs) = (rows.data().n_rows(), network.n_outputs());
        check_memory(8.0 * n_rows as f64 * n_outputs as f64, || {
            format!("{n_outputs} answers for {n_rows} rows")
        })?;
        let losses = network.losses();
        let mut answers = Self { n_outputs, values: Vec::new(), losses: Vec::new() };
        let (mut room, depth) = (RowRoom::default(), network.layers().len());
        each_piece(network, rows, depth, listener, |passes, batch, numbers| {
            let (output, stride) = (passes.values(depth - 1), passes.rows().stride);
            for (at, &row) in numbers.iter().enumerate() {
                let z = (0..n_outputs).map(|k| f64::from(output[k * stride + at]));
                let start = answers.values.len();
                answers.values.extend(z);
                let targets = rows.targets(batch, at, row, &mut room);
                if let Some(loss) = respond(&mut answers.values[start..], targets, &losses) {
                    answers.losses.push(loss);
                }
            }
        })?;
        Ok(answers)
    }

    /// The mean loss by the weights of the rows, and its standard error; nothing where nothing is known.
    pub fn loss(&self, rows: &NetworkRows<'_>) -> Option<(f64, Option<f64>)> {
        (!self.losses.is_empty()).then(|| {
            let weights: Vec<f64> = (0..self.losses.len()).map(|r| rows.data().weight(r)).collect();
            crate::evaluation::likelihood::weighted_mean(&self.losses, &weights)
        })
    }

    /// The place of the largest number of each row.
    pub fn largest(&self) -> Vec<usize> {
        let of = |row: &[f64]| {
            (0..row.len()).fold(0, |best, y| if row[y] > row[best] { y } else { best })
        };
        self.values.chunks_exact(self.n_outputs).map(of).collect()
    }
}

/// The values of hidden layers, numbered from 0, side by side for each row.
pub(crate) fn hidden_values(
    network: &Network,
    rows: &NetworkRows<'_>,
    layers: &[usize],
    listener: &mut dyn Listener,
) -> Result<Vec<f64>, Error> {
    let mut values = Vec::new();
    let depth = layers.iter().max().map_or(0, |l| l + 1);
    each_piece(network, rows, depth, listener, |passes, _, numbers| {
        let stride = passes.rows().stride;
        for at in 0..numbers.len() {
            for &l in layers {
                let column = passes.values(l).iter().skip(at).step_by(stride);
                values.extend(column.map(|x| f64::from(*x)));
            }
        }
    })?;
    Ok(values)
}

/// The mean of the input and of every hidden unit over some rows, spread over all.
pub(super) fn means(network: &Network, rows: &NetworkRows<'_>, most: usize) -> Vec<Vec<f32>> {
    let parameters = Parameters::new(network, Keeps::ALL, &[]);
    let (n_rows, hidden) = (rows.data().n_rows(), network.layers().len() - 1);
    let n = n_rows.min(most);
    let numbers: Vec<u32> =
        (0..n).map(|k| u32::try_from(k * n_rows / n).unwrap_or(u32::MAX)).collect();
    let (mut passes, mut batch) = (Passes::new(&parameters, n, false), rows.batch());
    rows.load(&mut batch, &numbers);
    passes.start(n, |at, out| rows.input_into(&batch, at, numbers[at], out));
    passes.up(&parameters, hidden, None);
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let single = |means: Vec<f64>| means.into_iter().map(|m| m as f32).collect();
    passes.means(hidden).into_iter().map(single).collect()
}

/// Sends all rows up through the first layers and shows each piece to `look`.
fn each_piece(
    network: &Network,
    rows: &NetworkRows<'_>,
    depth: usize,
    listener: &mut dyn Listener,
    mut look: impl FnMut(&Passes, &crate::machine::Batch, &[u32]),
) -> Result<(), Error> {
    let parameters = Parameters::new(network, Keeps::ALL, &[]);
    let n_rows = rows.data().n_rows();
    let mut passes = Passes::new(&parameters, PIECE.min(n_rows), false);
    let mut batch = rows.batch();
    let numbers: Vec<u32> = (0..u32::try_from(n_rows).unwrap_or(u32::MAX)).collect();
    let mut done = 0;
    for piece in numbers.chunks(PIECE) {
        rows.load(&mut batch, piece);
        passes.start(piece.len(), |at, out| rows.input_into(&batch, at, piece[at], out));
        passes.up(&parameters, depth, None);
        look(&passes, &batch, piece);
        done += piece.len();
        tell(listener, "rows", done as u64, n_rows as u64)?;
    }
    Ok(())
}

/// Replaces the inputs of the outputs by what their losses make of them; the loss, if there are targets.
fn respond(z: &mut [f64], targets: &[f32], losses: &[(Range<usize>, Loss)]) -> Option<f64> {
    let known = !targets.is_empty();
    let mut total = 0.0;
    for (units, loss) in losses {
        let z = &mut z[units.clone()];
        let t = if known { &targets[units.clone()] } else { &[] };
        total += match loss {
            Loss::Softmax => {
                let sum = log_sum_exp(z);
                let loss: f64 = t.iter().zip(&*z).map(|(t, z)| f64::from(*t) * (sum - z)).sum();
                z.iter_mut().for_each(|z| *z = (*z - sum).exp());
                loss
            }
            Loss::Sigmoid => {
                let one = |(t, z): (&f32, &f64)| softplus(*z) - f64::from(*t) * z;
                let loss: f64 = t.iter().zip(&*z).map(one).sum();
                z.iter_mut().for_each(|z| *z = 1.0 / (1.0 + (-*z).exp()));
                loss
            }
            Loss::Squared => {
                t.iter().zip(&*z).map(|(t, z)| 0.5 * (z - f64::from(*t)).powi(2)).sum()
            }
        };
    }
    known.then_some(total)
}

/// $\ln(1 + e^z)$.
fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}
