//! Samples with a part given: observed values are held while the rest is sampled.

use crate::error::Error;
use crate::machine::{Base, Clamp, LayerId, State};
use crate::models::{Body, Dbn};
use crate::random::Stream;
use crate::run::Model;
use crate::sampling::{Chains, independent};
use crate::schema::Feed;
use harmonium_data::Dataset;
use ndarray::ArrayView2;

/// A model with part of each sample given; see [`Model::given`] and [`Model::of_class`].
pub struct Given<'m> {
    pub(super) model: &'m Model,
    pub(super) known: Known,
}

/// What is known.
pub(super) enum Known {
    /// Nothing: free samples.
    Nothing,
    /// The observed part of a number of rows, in the machine that is sampled.
    Rows { values: State, clamp: Clamp },
    /// The class of the labels.
    Class(usize),
}

impl Model {
    /// Holds what `data` observes while the rest is sampled or completed. Where `observed` is given it
    /// says which cells count (one row holds for all rows); missing cells never do.
    ///
    /// # Errors
    ///
    /// If the data or the mask does not fit, or the model is a deep belief network, of which only the
    /// class can be given.
    pub fn given(
        &self,
        data: &Dataset,
        observed: Option<ArrayView2<'_, bool>>,
    ) -> Result<Given<'_>, Error> {
        let Body::Machine(machine) = &self.body else {
            self.top()?;
            return Err(Error::Topology {
                model: "sampling with part of a sample given",
                expected: "a machine whose visible units can be held",
                found: "a deep belief network can only be given a class".into(),
            });
        };
        let masked = observed.map(|mask| masked(data, mask)).transpose()?;
        let data = masked.as_ref().unwrap_or(data);
        let feed = Feed::new(machine, &self.schema(data)?, data)?;
        let batch = feed.batch(0..data.n_rows(), Stream::new(0));
        let values = batch.to_state(machine)?;
        Ok(Given { model: self, known: Known::Rows { values, clamp: batch.clamp().clone() } })
    }

    /// Holds the label at a class, by its name.
    ///
    /// # Errors
    ///
    /// If the model has learned no labels, or none of that name.
    pub fn of_class(&self, name: &str) -> Result<Given<'_>, Error> {
        let classes = &self.about.data.classes;
        if self.labels().is_none() || classes.is_empty() {
            return Err(Error::NoClass { name: name.into(), classes: "none".into() });
        }
        let class = classes.iter().position(|c| c == name);
        let class = class
            .ok_or_else(|| Error::NoClass { name: name.into(), classes: classes.join(", ") })?;
        Ok(Given { model: self, known: Known::Class(class) })
    }

    /// The layer of labels in the machine that is sampled, if labels were learned.
    pub(super) fn labels(&self) -> Option<LayerId> {
        match &self.body {
            Body::Machine(machine) => {
                machine.visible_layers().into_iter().find(|&l| machine.layer(l).name == "labels")
            }
            Body::Dbn(dbn) => dbn.labels().map(|_| Dbn::LABELS),
            Body::Network(_) => None,
        }
    }
}

impl Given<'_> {
    /// Rows that are given; 1 if nothing is, or the same for all.
    pub(super) fn n_rows(&self) -> usize {
        match &self.known {
            Known::Rows { values, .. } => values.n_rows(),
            Known::Nothing | Known::Class(_) => 1,
        }
    }

    /// The standard deviation of each column of numbers in the training data, where one is remembered for each.
    pub(super) fn deviations(&self) -> Option<Vec<f64>> {
        self.model.about.data.spread.as_ref()?.deviations(self.model.body.visible())
    }

    /// Chains of the machine that is sampled, each for the given row that `of` names, and what they
    /// hold. What is free starts at units with the machine's biases, or at units that do not care
    /// in the chains that are `dispersed`.
    pub(super) fn start(
        &self,
        of: &[usize],
        dispersed: impl Fn(usize) -> bool,
        stream: Stream,
    ) -> Result<(State, Clamp), Error> {
        let machine = self.model.top()?;
        let mut x = Chains::new(machine, of.len(), stream.fork(0))?.into_state();
        if (0..of.len()).any(&dispersed) {
            let uniform = independent(machine, &Base::uniform(machine), of.len(), stream.fork(1))?;
            for row in (0..of.len()).filter(|&row| dispersed(row)) {
                for l in machine.layer_ids() {
                    x.set_row(l, row, uniform.row(l, row))?;
                }
            }
        }
        let (held, clamp) = self.held()?;
        x.hold(machine, &clamp, &held, of)?;
        Ok((x, clamp.select_rows(of)))
    }

    /// What is given, a row each, and which units of it are.
    pub(super) fn held(&self) -> Result<(State, Clamp), Error> {
        let machine = self.model.top()?;
        match &self.known {
            Known::Nothing => Ok((State::zeros(machine, 1)?, Clamp::none())),
            Known::Class(class) => {
                let mut x = State::zeros(machine, 1)?;
                let labels = self.model.labels().unwrap_or(Dbn::LABELS);
                let one: Vec<f64> = (0..machine.layer(labels).len())
                    .map(|k| f64::from(u8::from(k == *class)))
                    .collect();
                x.set_row(labels, 0, &one)?;
                Ok((x, Clamp::layers([labels])))
            }
            Known::Rows { values, clamp } => Ok((values.clone(), clamp.clone())),
        }
    }
}

/// The data without the cells that were not observed.
fn masked(data: &Dataset, observed: ArrayView2<'_, bool>) -> Result<Dataset, Error> {
    let (expected, found) = ((data.n_rows(), data.n_columns()), observed.dim());
    data.clone().with_mask(observed).map_err(|_| Error::MaskShape { expected, found })
}
