//! Whether chains mix, and whether they are where the model's probability is.
//!
//! Chains that follow the model have, once it fits, about the free energy of the training data: at
//! a maximum of the likelihood the mean energies of data and model agree, and free energies differ
//! only by the entropy of the hidden units. Chains that do not mix stay behind. Learning then digs
//! wells where they are not seen to leave, and their free energy lies far below that of the data;
//! or the data's own wells are never reached, and it lies far above.
//!
//! A difference counts if it is larger than its noise, [`SURE`] standard errors of both means, and
//! if it matters, beyond [`ALLOWED`] nats and [`ALLOWED_PER_VALUE`] for each value of a sample. RBMs
//! of 16 to 256 hidden units that learned 8×8 digits, and whose chains mix by R-hat, ended 0.1 to
//! 1.4 nats away at a standard error of 0.5, mostly above the data because the model moves on
//! while the chains follow. With 5 chains and a learning rate of 0.3 they ended 40 nats below, at
//! a standard error of 3, and R-hat of the energy was 1.15: so neither condition is close.

use super::trend::tail;
use super::words::{count, fixed, number};
use super::{Evidence, Finding, Level, Remedy};
use crate::evaluation::diagnose::{APART, Scalar};
use crate::training::{Measurement, MetricName, On, Plan, Rule};

/// Standard errors from which on a difference is more than noise.
const SURE: f64 = 4.0;
/// Nats that free energies may differ by.
const ALLOWED: f64 = 5.0;
/// Nats more, for each value of a sample.
const ALLOWED_PER_VALUE: f64 = 0.05;

/// The free energy of the chains beside that of the training data, at the end of the run.
pub(super) fn free_energy(evidence: &Evidence) -> Option<Finding> {
    let (data, data_error) = end(evidence, &MetricName::FreeEnergy(On::Train))?;
    let (chains, chains_error) = end(evidence, &MetricName::ChainsFreeEnergy)?;
    let samples = evidence.data_samples.iter().chain(&evidence.model_samples);
    let n_values = samples.map(Vec::len).max().unwrap_or(0);
    let (away, std_error) = (chains - data, data_error.hypot(chains_error));
    let allowed = (ALLOWED + ALLOWED_PER_VALUE * n_values as f64).max(SURE * std_error);
    if !away.is_finite() {
        return None;
    }
    let seen = format!(
        "The free energy of the chains is {} nats, that of the data {}",
        number(chains),
        number(data)
    );
    if away.abs() <= allowed {
        return Some(Finding::good(format!("{seen}: the chains stay with the data.")));
    }
    let why = if away > 0.0 {
        "the chains do not reach where the data lies"
    } else {
        "the chains sit in deep wells that the data does not fill"
    };
    let what = format!("{seen}: {why}, so they do not mix.");
    Some(Finding::new(Level::Warning, what, temper(&evidence.plan)))
}

/// The mean of a metric and of its standard error over the last quarter of the run. The rows that
/// are looked at are always the same and chains forget slowly, so the error does not shrink by
/// averaging over epochs.
fn end(evidence: &Evidence, name: &MetricName) -> Option<(f64, f64)> {
    let found = evidence.epochs.iter().filter_map(|e| e.measurements.get(name));
    let found: Vec<&Measurement> = found.collect();
    let mean = |of: &dyn Fn(&Measurement) -> f64| {
        let values: Vec<f64> = found.iter().map(|m| of(m)).collect();
        let end = tail(&values, 0.25);
        end.iter().sum::<f64>() / end.len() as f64
    };
    (!found.is_empty()).then(|| (mean(&|m| m.value), mean(&|m| m.std_error.unwrap_or(0.0))))
}

/// More chains and more sweeps, where the rule keeps some.
pub(super) fn more(plan: &Plan) -> Vec<Remedy> {
    let k = count(5.0 * plan.k.range().1.ceil());
    let sweeps = Remedy::MoreSweeps(k.max(5));
    match plan.rule {
        Rule::Pcd | Rule::Pt | Rule::Ptt => vec![Remedy::MoreChains(5 * plan.chains), sweeps],
        Rule::Cd => vec![sweeps],
        Rule::Exact | Rule::Pseudo => Vec::new(),
    }
}

/// Remedies of chains that do not mix.
pub(super) fn temper(plan: &Plan) -> Vec<Remedy> {
    let temper = match plan.rule {
        Rule::Pt => Remedy::MoreReplicas(2 * plan.replicas),
        _ => Remedy::Tempering,
    };
    more(plan).into_iter().chain([temper]).collect()
}

/// Whether chains of the finished model agree with each other: the worst of the scalars that were
/// watched.
pub(super) fn mixing(evidence: &Evidence) -> Option<Finding> {
    let r_hat = |s: &&Scalar| s.mixing.r_hat.filter(|r| !r.is_nan());
    let known = evidence.mixing.iter().filter(|s| r_hat(s).is_some());
    let worst = known.max_by(|a, b| r_hat(a).unwrap_or(0.0).total_cmp(&r_hat(b).unwrap_or(0.0)))?;
    let (r, name) = (worst.mixing.r_hat?, &worst.name);
    let tau = worst.mixing.autocorrelation_time.unwrap_or(f64::NAN);
    let seen = format!("R-hat is {} for {name}", fixed(r, 2));
    if r > APART {
        let what = format!(
            "Chains of the model stand apart: {seen} (1 where chains agree, {APART} at most). Samples \
             depend on where their chains started."
        );
        return Some(Finding::new(Level::Warning, what, temper(&evidence.plan)));
    }
    if evidence.mixing.iter().any(|s| !s.mixing.is_fine()) {
        let what = format!(
            "Chains of the model agree but are slow: {seen}, and a chain forgets in about {} sweeps. \
             Samples want many times as many.",
            number(tau)
        );
        return Some(Finding::new(Level::Note, what, []));
    }
    Some(Finding::good(format!("Chains of the model mix: {seen}.")))
}
