//! The verbs of a model of any kind: train, sample, complete, features, score, ln Z.
//!
//! The command line, Python and a studio are thin faces over these verbs. A verb chooses its method,
//! loops over rows and reports how far it is; a face only asks and shows.
//!
//! ```
//! use harmonium::data::synthetic::{Repeats, bars_and_stripes};
//! use harmonium::{Binarize, Dataset, Method, Plan, Rbm, Sweeps};
//!
//! let data = Dataset::new(bars_and_stripes(2, Repeats::Counted)?, Binarize::None)?;
//! let model = Rbm::binary(4, 3)?.train(&data, &Plan::for_epochs(20))?;
//! let samples = model.sample(10, Sweeps(100), 0)?;
//! assert_eq!(samples.dim(), (10, 4));
//! let score = model.score(&data, Method::Auto)?;
//! assert!(score.mean.is_finite());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod anomaly;
mod answer;
mod autopilot;
mod averages;
mod chains;
mod classify;
mod complete;
mod conditional;
mod diagnose;
mod evidence;
mod features;
mod finetune;
mod given;
mod infer;
mod judge;
mod label_monitor;
mod learn_on;
mod modalities;
mod most_probable;
mod named;
mod portrait;
mod reconstruct;
mod request;
mod retrieve;
mod sample;
mod score;
mod table;
mod tempered;
mod told;
mod train;
mod units;

pub use anomaly::Anomalies;
pub use answer::Answered;
pub use autopilot::{Autopilot, Effort, Hidden, Note, Open, Searched, Shape, Trial};
pub use averages::ERROR_SOUGHT;
pub use classify::{ClassMethod, Classified, Classifying};
pub use complete::{Completed, Completing, Filling};
pub use conditional::Conditional;
pub use diagnose::Diagnosing;
pub use evidence::Knowledge;
pub use features::{Extracting, Features};
pub use finetune::{Finetuned, Finetuning, Looked};
pub use given::Given;
pub use infer::{Answer, Approach, Course, Inferred, Inferring, Side};
pub use judge::Judging;
pub use label_monitor::LabelMonitor;
pub use learn_on::LearnedOn;
pub use most_probable::{Maximiser, Maximising, MostProbable};
pub use named::{is_factors, is_named};
pub use portrait::{Filters, Portrait};
pub use request::{Family, Prepared, Request, Sources};
pub use retrieve::{Nearness, Retrieval, Retrieved};
pub use sample::{Drawing, Drawn, Found, Sampling, Show, Sweeps};
pub use score::{Behind, Method, Score, Scoring, Visits};
pub use table::Observed;
pub use train::{Blueprint, Failed, Training, VALID_SHARE, apart_rows, evenly_labelled, set_apart};
pub use units::{fitting_binarize, fitting_layers, fitting_units, grouped_layers, groups_note};

use crate::engine::Arithmetic;
use crate::error::Error;
use crate::evaluation::log_partition::{self, LogPartition, Settings};
use crate::machine::{Layer, Machine, Role};
use crate::models::Body;
use crate::progress::Listener;
use crate::run::Model;
use crate::schema::{LABELS, Schema};
use harmonium_data::{Dataset, Image};
use std::ops::Range;

impl Model {
    /// The machine that is sampled and whose $\ln Z$ is summed: the whole, or the RBM on top of a deep
    /// belief network.
    ///
    /// # Errors
    ///
    /// If the model is a net, which has no distribution.
    pub fn top(&self) -> Result<&Machine, Error> {
        self.body.top()
    }

    /// Which columns of `data` fill which visible layer: as the model remembers it, or as the number
    /// of columns says where it remembers nothing.
    ///
    /// # Errors
    ///
    /// If the data does not fit.
    pub fn schema(&self, data: &Dataset) -> Result<Schema, Error> {
        Schema::stored_or_of(self.about.data.schema.as_ref(), &self.data_layers()?, data)
    }

    /// The picture in each row of `n_columns` values, as samples and completions have them: its shape and
    /// its columns. Labels are not a part of it.
    pub fn picture(&self, n_columns: usize) -> Option<(Image, Range<usize>)> {
        let (mut start, mut columns) = (0, 0..n_columns);
        for layer in self.body.visible() {
            if layer.name == LABELS && start + layer.len() == n_columns {
                columns.end = start;
            }
            start += layer.len();
        }
        Some((self.about.data.image(columns.len())?, columns))
    }

    /// The layers that data goes into, as a machine without couplings.
    pub(crate) fn data_layers(&self) -> Result<Machine, Error> {
        as_visible(self.body.visible())
    }

    /// $\ln Z$ with its interval; of a deep belief network, that of its top RBM. Annealing starts at
    /// the means of the training data where the model remembers them.
    ///
    /// # Errors
    ///
    /// If a setting is out of range, the sum diverges or has too many terms, memory ends, or the
    /// listener cancels.
    pub fn log_partition(
        &self,
        settings: &Settings,
        listener: &mut dyn Listener,
    ) -> Result<LogPartition, Error> {
        let machine = self.top()?;
        let means = match &self.body {
            Body::Machine(_) => self.about.data.means(visible_entries(machine)),
            Body::Dbn(_) | Body::Network(_) => None,
        };
        let settings = Settings { means: settings.means.clone().or(means), ..settings.clone() };
        log_partition::log_partition(machine, &settings, listener)
    }
}

/// Those of the layers that data goes into, as a machine without couplings. All layers of a deep
/// belief network that take data count, whatever their role in the RBM on top.
fn as_visible<'l>(layers: impl IntoIterator<Item = &'l Layer>) -> Result<Machine, Error> {
    let visible = |layer: &Layer| Layer { role: Role::Visible, ..layer.clone() };
    Machine::new(layers.into_iter().map(visible).collect(), Vec::new())
}

/// Entries of the visible layers.
fn visible_entries(machine: &Machine) -> usize {
    machine.visible_layers().iter().map(|&l| machine.layer(l).len()).sum()
}

/// The arithmetic to work in: the one asked for, or the default of a verb.
fn arithmetic(asked: Option<Arithmetic>, default: Arithmetic) -> Arithmetic {
    asked.unwrap_or(default)
}

/// Pieces of at most `size` rows.
fn pieces(n_rows: usize, size: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..n_rows).step_by(size).map(move |start| start..(start + size).min(n_rows))
}
