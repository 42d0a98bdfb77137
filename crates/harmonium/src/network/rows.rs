//! Rows of data as a net sees them: values, what a machine says of them, and what is to be answered.
//!
//! Grey values that a machine learns as bits drawn anew at each presentation come as what they are,
//! probabilities: the mean of all presentations, which is how fine-tuned nets are used in the literature.

use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Batch, check_memory};
use crate::models::{Network, Posterior, Target};
use crate::progress::{Listener, tell};
use crate::random::Stream;
use crate::sampling::{MeanField, Sampler};
use crate::schema::{Feed, Schema};
use harmonium_data::Dataset;
use harmonium_kernels::neurons::Rows;

/// Rows that mean field looks at together.
const PIECE: usize = 500;

/// Rows of data for a net, and their targets where they are known.
#[derive(Debug)]
pub struct NetworkRows<'d> {
    feed: Feed<'d>,
    /// The means of the machine beside the data, row by row.
    beside: Vec<f32>,
    n_data: usize,
    n_outputs: usize,
    known: Known<'d>,
}

/// What is to be answered.
#[derive(Debug)]
enum Known<'d> {
    Nothing,
    Classes(Vec<usize>),
    Table(&'d Dataset),
    Input,
}

/// Rooms for one row.
#[derive(Debug, Default)]
pub(super) struct RowRoom {
    numbers: Vec<f64>,
    singles: Vec<f32>,
}

impl<'d> NetworkRows<'d> {
    /// Prepares the rows of `data`, whose columns fill the inputs of `network` as `schema` says. What is to be
    /// answered are the labels of the data, the rows of `targets`, or the data itself; nothing where there are none.
    ///
    /// # Errors
    ///
    /// If the data or the targets do not fit, a value is missing, memory ends, or the listener cancels.
    pub fn new(
        network: &Network,
        schema: &Schema,
        data: &'d Dataset,
        targets: Option<&'d Dataset>,
        listener: &mut dyn Listener,
    ) -> Result<Self, Error> {
        let layers = network.data_layers()?;
        let feed = Feed::new(&layers, schema, data)?.whole()?.with_means();
        let known = known(network, data, targets)?;
        let beside = match network.posterior() {
            None => Vec::new(),
            Some(posterior) => beside(posterior, schema, data, listener)?,
        };
        let (n_data, n_outputs) = (network.n_data(), network.n_outputs());
        Ok(Self { feed, beside, n_data, n_outputs, known })
    }

    /// The same with targets for every row: what a net can learn from.
    ///
    /// # Errors
    ///
    /// If there are none, or only one class.
    pub fn known(self) -> Result<Self, Error> {
        match &self.known {
            Known::Nothing => Err(Error::NoLabels),
            Known::Classes(classes) if classes.iter().all(|c| *c == classes[0]) => {
                Err(Error::OneClass)
            }
            _ => Ok(self),
        }
    }

    /// The data.
    pub fn data(&self) -> &Dataset {
        self.feed.data()
    }

    /// The class of each row, where classes are known.
    pub fn classes(&self) -> Option<&[usize]> {
        match &self.known {
            Known::Classes(classes) => Some(classes),
            _ => None,
        }
    }

    /// Whether it is known what is to be answered.
    pub fn has_targets(&self) -> bool {
        !matches!(self.known, Known::Nothing)
    }

    /// An empty batch.
    pub(super) fn batch(&self) -> Batch {
        self.feed.batch([], Stream::new(0))
    }

    /// Puts rows into a batch.
    pub(super) fn load(&self, batch: &mut Batch, rows: &[u32]) {
        self.feed.refill(batch, rows.iter().map(|&row| row as usize), Stream::new(0));
    }

    /// Writes what a net sees of a row, which stands at place `at` of a batch.
    pub(super) fn input_into(&self, batch: &Batch, at: usize, row: u32, out: &mut [f32]) {
        let (data, beside) = out.split_at_mut(self.n_data);
        batch.row_into(at, data);
        let n = beside.len();
        beside.copy_from_slice(&self.beside[row as usize * n..][..n]);
    }

    /// Takes the targets of the rows of a batch away from the outputs.
    pub(super) fn subtract_targets(
        &self,
        (batch, rows): (&Batch, &[u32]),
        (delta, layout): (&mut [f32], Rows),
        room: &mut RowRoom,
    ) {
        for (at, &row) in rows.iter().enumerate() {
            if let Known::Classes(classes) = &self.known {
                delta[classes[row as usize] * layout.stride + at] -= 1.0;
                continue;
            }
            let targets = self.targets(batch, at, row, room);
            for (k, t) in targets.iter().enumerate() {
                delta[k * layout.stride + at] -= t;
            }
        }
    }

    /// The targets of all rows, row by row.
    pub fn all_targets(&self) -> Vec<f32> {
        let (mut batch, mut room, mut all) = (self.batch(), RowRoom::default(), Vec::new());
        for row in 0..u32::try_from(self.data().n_rows()).unwrap_or(u32::MAX) {
            self.load(&mut batch, &[row]);
            all.extend_from_slice(self.targets(&batch, 0, row, &mut room));
        }
        all
    }

    /// The targets of a row that stands at place `at` of a batch; empty where there are none.
    pub(super) fn targets<'r>(
        &self,
        batch: &Batch,
        at: usize,
        row: u32,
        room: &'r mut RowRoom,
    ) -> &'r [f32] {
        let RowRoom { numbers, singles } = room;
        match &self.known {
            Known::Nothing => return &[],
            Known::Classes(classes) => {
                singles.clear();
                singles.resize(self.n_outputs, 0.0);
                singles[classes[row as usize]] = 1.0;
            }
            Known::Table(table) => {
                numbers.resize(self.n_outputs, 0.0);
                table.means_into(row as usize, numbers);
                singles.clear();
                #[expect(clippy::cast_possible_truncation, reason = "single precision")]
                singles.extend(numbers.iter().map(|x| *x as f32));
            }
            Known::Input => {
                singles.resize(self.n_data, 0.0);
                batch.row_into(at, singles);
            }
        }
        singles
    }
}

/// What is to be answered about the rows of `data`.
fn known<'d>(
    network: &Network,
    data: &'d Dataset,
    targets: Option<&'d Dataset>,
) -> Result<Known<'d>, Error> {
    let n = network.n_outputs();
    match network.target() {
        Target::Input => Ok(Known::Input),
        Target::Classes => {
            let Some(labels) = data.labels() else { return Ok(Known::Nothing) };
            let classes: Vec<usize> = labels.values().iter().map(|&c| c as usize).collect();
            if classes.iter().any(|&class| class >= n) {
                let (layer, found) = ("output".into(), labels.n_classes());
                return Err(Error::Classes { layer, expected: n, found });
            }
            Ok(Known::Classes(classes))
        }
        Target::Tags | Target::Values => {
            let Some(table) = targets else { return Ok(Known::Nothing) };
            check_table(table, data.n_rows(), n, network.target())?;
            Ok(Known::Table(table))
        }
    }
}

/// Whether a table has a target for each row and output.
fn check_table(table: &Dataset, n_rows: usize, n: usize, target: Target) -> Result<(), Error> {
    if (table.n_rows(), table.n_columns()) != (n_rows, n) {
        return Err(Error::TargetShape {
            expected: (n_rows, n),
            found: (table.n_rows(), table.n_columns()),
        });
    }
    let mut values = vec![0.0; n];
    for row in 0..n_rows {
        table.means_into(row, &mut values);
        let fits = |x: &f64| x.is_finite() && (target != Target::Tags || (0.0..=1.0).contains(x));
        if let Some(column) = values.iter().position(|x| !fits(x)) {
            let (layer, value) = ("output".into(), values[column]);
            let units = if value.is_finite() { "binary" } else { "finite" };
            return Err(Error::Value { units, layer, row, column, value });
        }
    }
    Ok(())
}

/// The means of a layer of a machine given each row, by mean field.
#[expect(clippy::cast_possible_truncation, reason = "single precision")]
fn beside(
    Posterior { machine, layer }: &Posterior,
    schema: &Schema,
    data: &Dataset,
    listener: &mut dyn Listener,
) -> Result<Vec<f32>, Error> {
    let (n_rows, n) = (data.n_rows(), machine.layer(*layer).len());
    check_memory(4.0 * n_rows as f64 * n as f64, || {
        format!("means of {n} units for {n_rows} rows")
    })?;
    // Labels are what the net is asked for: the machine must not see them.
    let data = data.clone().without_labels();
    let feed = Feed::new(machine, schema, &data)?.without_holes()?.with_means();
    let sampler = Sampler::new(machine.clone(), Arithmetic::F32);
    let mut means = Vec::with_capacity(n_rows * n);
    for start in (0..n_rows).step_by(PIECE) {
        let end = (start + PIECE).min(n_rows);
        let batch = feed.batch(start..end, Stream::new(0));
        let mut x = batch.to_state(machine)?;
        sampler.start_outwards(batch.clamp(), &mut x)?;
        sampler.infer(batch.clamp(), &mut x, MeanField::default())?;
        means.extend(x.layer(*layer).iter().map(|m| *m as f32));
        tell(listener, "mean field", end as u64, n_rows as u64)?;
    }
    Ok(means)
}
