//! How well a machine with labels tells classes while it learns them: what counts where that is its objective.

use super::portrait::some_rows;
use crate::error::Error;
use crate::run::{About, Memory, Model};
use crate::training::{Measurement, Metric, MetricName, On, View};
use harmonium_data::{Dataset, Labels};

/// Rows looked at in each set: every class of each is a sum of its own.
const ROWS: usize = 1000;

/// Measures `error_rate.train` and `error_rate.valid` of a machine with labels.
#[derive(Clone, Debug)]
pub struct LabelMonitor {
    sets: Vec<(On, Dataset)>,
}

impl LabelMonitor {
    /// Looks at rows spread over both sets; sets without labels are left out.
    ///
    /// # Errors
    ///
    /// If a set is empty.
    pub fn new(train: &Dataset, valid: Option<&Dataset>) -> Result<Self, Error> {
        let mut sets = Vec::new();
        for (on, data) in [(On::Valid, valid), (On::Train, Some(train))] {
            if let Some(data) = data.filter(|data| data.labels().is_some()) {
                sets.push((on, some_rows(data, ROWS)?));
            }
        }
        Ok(Self { sets })
    }
}

impl Metric for LabelMonitor {
    fn measure(&mut self, view: &View<'_>) -> Result<Vec<Measurement>, Error> {
        // A stage of pre-training has no labels yet.
        if view.stage().is_some() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for (on, data) in &self.sets {
            let classes = data.labels().map(Labels::class_names).unwrap_or_default();
            let about = About { data: Memory { classes, ..Memory::default() }, ..About::default() };
            let model = Model { body: view.body(), about };
            if let Some(errors) = model.classify(data)?.errors {
                let (name, std_error) = (MetricName::ErrorRate(*on), errors.std_error);
                found.push(Measurement { name, value: errors.rate, std_error });
            }
        }
        Ok(found)
    }
}
