//! What a net says that was trained for something else than classes: tags, values, or the input itself.

use super::sample::array;
use crate::error::Error;
use crate::evaluation::ranking::Ranking;
use crate::models::{Body, Target};
use crate::network::{Answers, NetworkRows};
use crate::progress::Listener;
use crate::run::Model;
use harmonium_data::Dataset;
use ndarray::Array2;

/// What a net says of a number of rows, and how far that is from what was to be said.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Probabilities of classes or tags, or values: a row for each row of data.
    pub values: Array2<f64>,
    /// What the columns are called; empty if unknown.
    pub names: Vec<String>,
    /// The mean loss and its standard error, where it is known what was to be said.
    pub loss: Option<(f64, Option<f64>)>,
    /// How well tags order the rows, where they are known.
    pub ranking: Option<Ranking>,
}

impl Model {
    /// What a feed-forward net says of each row; with `targets`, or where it gives its input back, compared with
    /// what was to be said.
    ///
    /// # Errors
    ///
    /// If the model is not a net, the data or the targets do not fit, memory ends, or the listener cancels.
    pub fn answer(
        &self,
        data: &Dataset,
        targets: Option<&Dataset>,
        listener: &mut dyn Listener,
    ) -> Result<Answered, Error> {
        let Body::Network(network) = &self.body else {
            return Err(Error::Topology {
                model: "answering",
                expected: "a feed-forward net",
                found: format!("found a {}", self.body.kind()),
            });
        };
        let rows = NetworkRows::new(network, &self.schema(data)?, data, targets, listener)?;
        let found = Answers::of(network, &rows, listener)?;
        let tags = network.target() == Target::Tags && rows.has_targets();
        let ranking =
            tags.then(|| Ranking::new(&found.values, &rows.all_targets(), found.n_outputs));
        let names = self.about.data.classes.clone();
        Ok(Answered {
            loss: found.loss(&rows),
            names: if names.len() == found.n_outputs { names } else { Vec::new() },
            values: array(data.n_rows(), found.n_outputs, found.values),
            ranking,
        })
    }
}
