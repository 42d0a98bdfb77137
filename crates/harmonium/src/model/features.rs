//! Features: the means of the hidden units for each row, which grey values enter as they are: exactly where their posterior factorises, by
//! mean field elsewhere (missing cells included), by the recognition distribution in a deep belief
//! network, which takes whole rows. Of a feed-forward net: the values of its hidden units.

use super::sample::array;
use super::{arithmetic, pieces};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Batch, LayerId, Role};
use crate::models::{Body, Dbn, modality_of};
use crate::network::{NetworkRows, hidden_values};
use crate::progress::{Listener, Silent, tell};
use crate::random::Stream;
use crate::run::Model;
use crate::sampling::{ClassSums, DbnSampler, DbnState, Inference, MeanField, Pass, Sampler};
use crate::schema::Feed;
use harmonium_data::Dataset;
use ndarray::Array2;

/// FeatureRows inferred at a time.
const ROWS: usize = 512;

/// How features are extracted.
#[derive(Clone, Debug, Default)]
pub struct Extracting {
    /// The hidden layer; all of them side by side unless given.
    pub layer: Option<String>,
    /// The modality whose own hidden layers are taken, or `joint`; those of all unless given.
    pub of: Option<String>,
    /// The arithmetic; by default single precision.
    pub arithmetic: Option<Arithmetic>,
}

/// Means of hidden units, a row for each row of data.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// The means, the hidden layers side by side.
    pub values: Array2<f64>,
    /// What the columns are called: the layer and the number of the unit, from 0.
    pub names: Vec<String>,
    /// FeatureRows for which mean field had not converged.
    pub unconverged: usize,
}

impl Model {
    /// The means of all hidden units given each row.
    ///
    /// # Errors
    ///
    /// If the model has no hidden units, the data does not fit, or memory ends.
    pub fn features(&self, data: &Dataset) -> Result<Array2<f64>, Error> {
        Ok(self.features_with(data, &Extracting::default(), &mut Silent)?.values)
    }

    /// The same for one layer, and with everything that can be set.
    ///
    /// # Errors
    ///
    /// If there is no such hidden layer, the data does not fit, memory ends, or the listener cancels.
    pub fn features_with(
        &self,
        data: &Dataset,
        extracting: &Extracting,
        listener: &mut dyn Listener,
    ) -> Result<Features, Error> {
        let layers = self.hidden_layers(extracting)?;
        let arithmetic = arithmetic(extracting.arithmetic, Arithmetic::F32);
        let hidden = self.body.hidden();
        let n_columns = layers.iter().map(|&l| hidden[l].len).sum();
        let mut features = FeatureRows::default();
        // Equal rows have equal features: of values that are drawn, their probabilities are taken.
        let means = data.is_sampled().then(|| data.clone().as_means());
        let data = means.as_ref().unwrap_or(data);
        match &self.body {
            Body::Machine(machine) => {
                let sampler = Sampler::new(machine.clone(), arithmetic);
                let feed = Feed::new(machine, &self.schema(data)?, data)?;
                each_piece(&feed, listener, |batch| {
                    features.add_machine(&sampler, batch, &layers)
                })?;
            }
            Body::Dbn(dbn) => {
                let sampler = DbnSampler::new(dbn.clone(), arithmetic);
                let sums = ClassSums::of_top(dbn)?;
                // The recognition distribution knows nothing of missing values.
                let feed = Feed::new(&self.data_layers()?, &self.schema(data)?, data)?;
                each_piece(&feed.without_holes()?, listener, |batch| {
                    let x = DbnState::from_batch(dbn, batch)?;
                    features.add_dbn(&sampler, &sums, x, &layers)
                })?;
            }
            Body::Network(network) => {
                let schema = self.schema(data)?;
                let rows = NetworkRows::new(network, &schema, data, None, listener)?;
                features.values = hidden_values(network, &rows, &layers, listener)?;
            }
        }
        let FeatureRows { values, unconverged } = features;
        let of_layer = |&l: &usize| {
            let (name, len) = (hidden[l].name.to_owned(), hidden[l].len);
            (0..len).map(move |unit| format!("{name}.{unit}"))
        };
        let names = layers.iter().flat_map(of_layer).collect();
        Ok(Features { values: array(data.n_rows(), n_columns, values), names, unconverged })
    }

    /// The places of the hidden layers named among all of them.
    fn hidden_layers(&self, extracting: &Extracting) -> Result<Vec<usize>, Error> {
        let (layer, of) = (extracting.layer.as_deref(), extracting.of.as_deref());
        let names: Vec<&str> = self.body.hidden().iter().map(|l| l.name).collect();
        let wanted = |name: &str| {
            layer.is_none_or(|layer| name == layer) && of.is_none_or(|of| modality_of(name) == of)
        };
        let chosen: Vec<usize> = (0..names.len()).filter(|&l| wanted(names[l])).collect();
        if chosen.is_empty() {
            let name = layer.or(of).unwrap_or_default().to_owned();
            return Err(Error::NoHidden { name, layers: names.join(", ") });
        }
        Ok(chosen)
    }
}

/// Calls `work` with the rows, some at a time.
fn each_piece(
    feed: &Feed<'_>,
    listener: &mut dyn Listener,
    mut work: impl FnMut(&Batch) -> Result<(), Error>,
) -> Result<(), Error> {
    let n_rows = feed.data().n_rows();
    for rows in pieces(n_rows, ROWS) {
        let end = rows.end;
        work(&feed.batch(rows, Stream::new(0)))?;
        tell(listener, "rows", end as u64, n_rows as u64)?;
    }
    Ok(())
}

/// Features while they are gathered.
#[derive(Default)]
struct FeatureRows {
    values: Vec<f64>,
    unconverged: usize,
}

impl FeatureRows {
    fn add_machine(
        &mut self,
        sampler: &Sampler,
        batch: &Batch,
        layers: &[usize],
    ) -> Result<(), Error> {
        let machine = sampler.machine();
        let mut x = batch.to_state(machine)?;
        let found = sampler.infer(batch.clamp(), &mut x, MeanField::default())?;
        if let Inference::MeanField(report) = found {
            self.unconverged += report.unconverged;
        }
        let hidden: Vec<LayerId> =
            machine.layer_ids().filter(|&l| machine.layer(l).role == Role::Hidden).collect();
        for row in 0..x.n_rows() {
            layers.iter().for_each(|&l| self.values.extend_from_slice(x.row(hidden[l], row)));
        }
        Ok(())
    }

    fn add_dbn(
        &mut self,
        sampler: &DbnSampler,
        sums: &ClassSums,
        mut x: DbnState,
        layers: &[usize],
    ) -> Result<(), Error> {
        let dbn: &Dbn = sampler.dbn();
        let found = sampler.means(sums, &mut x, layers)?;
        for row in 0..x.n_rows() {
            for (&l, means) in layers.iter().zip(&found) {
                let len = dbn.layer(l + 1).len();
                self.values.extend_from_slice(&means[row * len..(row + 1) * len]);
            }
        }
        Ok(())
    }
}

impl DbnSampler {
    /// The means of hidden layers, numbered from 0, in all rows: those of the recognition
    /// distribution, and of the top RBM given them.
    pub(crate) fn means(
        &self,
        sums: &ClassSums,
        x: &mut DbnState,
        layers: &[usize],
    ) -> Result<Vec<Vec<f64>>, Error> {
        self.recognise(x, Pass::Means)?;
        let dbn = self.dbn();
        let of = |&l: &usize| {
            if l + 1 < dbn.depth() {
                return Ok(x.layer(l + 1).to_vec());
            }
            Ok(sums.hidden_means(&x.to_top(dbn)?, &x.labels()))
        };
        layers.iter().map(of).collect()
    }
}
