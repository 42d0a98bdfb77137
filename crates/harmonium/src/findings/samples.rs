//! Whether samples of the model look like data, without labels and without eyes.
//!
//! Values are compared with values, never means with values, and rows of the data are taken from all of
//! it: a file that is sorted begins with one class. A difference counts if it is more than chance and if
//! it matters. With thousands of rows every model differs from its data by many standard errors, so the
//! second condition decides:
//!
//! | seen | warning | problem |
//! |---|---|---|
//! | variance of the samples over that of the data | below 0.5, above 2 | below 0.05 |
//! | means of columns, root mean square, in standard deviations | 0.1 more than chance | 0.5 |
//! | neighbours tell samples from data | 60 % and 4 standard errors | 95 % |
//! | correlations, root mean square of differences | 0.1 and 1.5 times the noise | – |
//!
//! A distribution that is shifted by 0.1 standard deviations in every column puts half a class more or
//! less into the samples; independent columns with the right means are told from 28×28 digits in 99 % of
//! all cases, samples of a good RBM in 55 to 65 %.

use super::chains::temper;
use super::words::{fixed, number, rough};
use super::{Evidence, Finding, Level};
use crate::evaluation::diagnose::NOTABLE;
use crate::evaluation::two_sample::TwoSample;

/// Rows below which nothing is said.
const LEAST_ROWS: usize = 50;
/// Standard errors from which on a difference is more than chance.
const SURE: f64 = 4.0;

/// One way in which samples differ from data.
struct Difference {
    level: Level,
    what: String,
}

/// Everything in which samples of the model differ from data, as one finding.
pub(super) fn samples(evidence: &Evidence) -> Option<Finding> {
    let found = evidence.two_sample.as_ref()?;
    if found.n_generated.min(found.n_held_out) < LEAST_ROWS {
        return None;
    }
    let all = [variance(found), means(found), neighbours(found), correlations(found)];
    let (n, rows) = (fixed(found.n_generated as f64, 0), fixed(found.n_held_out as f64, 0));
    let worst = all.iter().flatten().map(|d| d.level).min();
    let Some(level) = worst else {
        let share = fixed(100.0 * found.adversarial.accuracy, 0);
        let what = format!(
            "{n} samples of the model look like {rows} rows of the data: neighbours tell them apart \
             {share} % of the time, 50 % by chance."
        );
        return Some(Finding::good(what));
    };
    let said: Vec<String> = all.into_iter().flatten().map(|d| d.what).collect();
    let what = format!(
        "{n} samples of the model differ from {rows} rows of the data: {}.",
        said.join("; ")
    );
    let mut remedies = vec![super::score::more_epochs(evidence)];
    remedies.extend(temper(&evidence.plan));
    Some(Finding::new(level, what, remedies))
}

fn variance(found: &TwoSample) -> Option<Difference> {
    let share = found.spread.filter(|s| s.is_finite())?;
    let level = match share {
        s if s < 0.05 => Level::Problem,
        s if !(0.5..=2.0).contains(&s) => Level::Warning,
        _ => return None,
    };
    let percent = format!("they vary {} % as much", fixed(100.0 * share, usize::from(share < 0.1)));
    let what = match share {
        s if s < 0.05 => format!("{percent}, all alike"),
        _ => percent,
    };
    Some(Difference { level, what })
}

fn means(found: &TwoSample) -> Option<Difference> {
    let m = &found.means;
    let excess = (m.rms_standardised.powi(2) - m.rms_by_chance.powi(2)).max(0.0).sqrt();
    // Columns are correlated, so the largest of them has to be beyond chance too.
    if excess < 0.1 || m.max_z <= m.max_z_by_chance {
        return None;
    }
    let level = if excess < 0.5 { Level::Warning } else { Level::Problem };
    let what = format!(
        "means of columns are off by {} standard deviations ({} by chance), most in column {}",
        rough(m.rms_standardised),
        rough(m.rms_by_chance),
        m.column
    );
    Some(Difference { level, what })
}

fn neighbours(found: &TwoSample) -> Option<Difference> {
    let a = found.adversarial;
    if a.accuracy < 0.6 || a.accuracy - 0.5 <= SURE * a.std_error {
        return None;
    }
    let level = if a.accuracy < 0.95 { Level::Warning } else { Level::Problem };
    let share = fixed(100.0 * a.accuracy, 0);
    let what = format!("neighbours tell them apart {share} % of the time (50 % by chance)");
    Some(Difference { level, what })
}

fn correlations(found: &TwoSample) -> Option<Difference> {
    let c = found.correlations.as_ref()?;
    if c.rms_difference < 0.1 || c.rms_difference <= NOTABLE * c.rms_noise {
        return None;
    }
    let what = format!(
        "correlations are off by {} ({} by chance)",
        number(c.rms_difference),
        number(c.rms_noise)
    );
    Some(Difference { level: Level::Warning, what })
}
