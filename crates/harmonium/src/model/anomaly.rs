//! Anomalies: rows that a model finds less probable than rows that are known to be normal.
//!
//! The score $s$ of a row is its log-likelihood up to a constant, which needs no $\ln Z$. Beside the scores $s_i$ of
//! $n$ normal rows that the model was not trained on it has the p-value
//! $$p = \frac{1 + \#\{i : s_i \le s\}}{n + 1}.$$
//! If the row is normal as well, so that it could have been any of them, $P(p \le \alpha) \le \alpha$, whatever the model has
//! learned (Vovk, Gammerman and Shafer 2005; Bates et al., *Testing for outliers with conformal p-values*, Ann. Stat. 2023).
//! A better model finds more of the others.

use super::{Method, Scoring};
use crate::error::Error;
use crate::models::Body;
use crate::progress::Listener;
use crate::run::Model;
use harmonium_data::Dataset;
use serde_json::{Value, json};

/// Levels at which rows are counted.
const LEVELS: [f64; 3] = [0.05, 0.01, 0.001];

/// How unusual rows are.
#[derive(Clone, Debug, PartialEq)]
pub struct Anomalies {
    /// The score of each row: the higher, the more probable.
    pub scores: Vec<f64>,
    /// The p-value of each row.
    pub p_values: Vec<f64>,
    /// Normal rows that they are calibrated on.
    pub n_normal: usize,
    /// How rows were scored.
    pub method: Method,
}

impl Anomalies {
    /// The p-values of scores beside those of normal rows.
    ///
    /// # Errors
    ///
    /// If there are no normal rows.
    pub fn new(scores: Vec<f64>, normal: &[f64], method: Method) -> Result<Self, Error> {
        if normal.is_empty() {
            return Err(Error::Empty { what: "the set of normal rows".into() });
        }
        let mut normal = normal.to_vec();
        normal.sort_by(f64::total_cmp);
        let n = normal.len() as f64;
        let p = |s: &f64| (1.0 + normal.partition_point(|x| x <= s) as f64) / (n + 1.0);
        let p_values = scores.iter().map(p).collect();
        Ok(Self { scores, p_values, n_normal: normal.len(), method })
    }

    /// Rows with a p-value of at most `level`, and how many normal ones would be expected among so many.
    pub fn found_at(&self, level: f64) -> (usize, f64) {
        let found = self.p_values.iter().filter(|p| **p <= level).count();
        (found, level * self.p_values.len() as f64)
    }

    /// `n`, `n_normal`, `method`, `smallest_p`, and for each level how many rows are below it.
    pub fn to_json(&self) -> Value {
        let at = LEVELS.map(|level| {
            let (found, expected) = self.found_at(level);
            json!({ "level": level, "found": found, "expected": expected })
        });
        json!({
            "method": self.method, "n": self.scores.len(), "n_normal": self.n_normal,
            "smallest_p": self.p_values.iter().copied().reduce(f64::min), "found": at,
        })
    }

    /// The same in words.
    pub fn in_words(&self) -> String {
        let lines = LEVELS.map(|level| {
            let (found, expected) = self.found_at(level);
            let enough = 1.0 / (self.n_normal + 1) as f64 <= level;
            let few = format!("; {} normal rows cannot tell", self.n_normal);
            format!(
                "\n  p ≤ {level}: {found} rows, where {expected:.1} normal ones would be{}",
                if enough { "" } else { &few }
            )
        });
        format!(
            "{} rows beside {} normal ones that the model was not trained on ({}):{}",
            self.scores.len(),
            self.n_normal,
            self.method,
            lines.concat()
        )
    }
}

impl Model {
    /// How unusual the rows of `data` are beside those of `normal`, which are normal and were not trained on.
    ///
    /// # Errors
    ///
    /// If the data does not fit, there are no normal rows, or the listener cancels.
    pub fn anomalies(
        &self,
        data: &Dataset,
        normal: &Dataset,
        scoring: &Scoring,
        listener: &mut dyn Listener,
    ) -> Result<Anomalies, Error> {
        let method = match (scoring.method, &self.body) {
            (Method::Auto, Body::Machine(_)) => Method::FreeEnergy,
            (method, _) => method,
        };
        let scoring = Scoring { method, ..scoring.clone() };
        let mut found = Vec::new();
        for rows in [data, normal] {
            let score = self.score_with(rows, &scoring, listener)?;
            let sign = if score.method == Method::FreeEnergy { -1.0 } else { 1.0 };
            found.push((score.method, score.rows.iter().map(|s| sign * s).collect::<Vec<f64>>()));
        }
        let Some((_, normal)) = found.pop() else { return Err(Error::NoDistribution) };
        let Some((method, scores)) = found.pop() else { return Err(Error::NoDistribution) };
        Anomalies::new(scores, &normal, method)
    }
}
