//! What a column seems to hold, and why.

use super::code::{Curve, number};
use super::{Cells, Kind};
use std::collections::BTreeSet;

/// Most words of a category that are learned unasked.
const MOST_LEVELS: usize = 64;
/// Skewness from which a logarithm is looked at.
const SKEWED: f64 = 2.0;

/// What was found out about a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Detected {
    pub(super) kind: Kind,
    pub(super) curve: Curve,
    pub(super) why: String,
}

impl Detected {
    fn new(kind: Kind, why: impl Into<String>) -> Self {
        Self { kind, curve: Curve::Linear, why: why.into() }
    }
}

/// Looks at all cells of a column.
pub(super) fn detect(cells: &Cells) -> Detected {
    let there = cells.len() - cells.n_missing();
    let words: BTreeSet<&str> = cells.iter().flatten().collect();
    match words.len() {
        0 => return Detected::new(Kind::Ignore, "it has no value"),
        1 => {
            let word = words.iter().next().copied().unwrap_or_default();
            return Detected::new(Kind::Ignore, format!("every value is `{}`", brief(word)));
        }
        2 => return Detected::new(Kind::Binary, "two values"),
        _ => {}
    }
    if words.iter().all(|w| number(w).is_some()) {
        return numbers(cells, &words);
    }
    if words.iter().filter(|w| is_date(w)).count() * 10 >= words.len() * 9 {
        return Detected::new(Kind::Ignore, "dates and times are not learned");
    }
    if words.len() * 2 > there {
        let why = format!("{} different texts in {there} rows: an id or free text", words.len());
        return Detected::new(Kind::Ignore, why);
    }
    if words.len() > MOST_LEVELS {
        let why = format!("{} categories, more than {MOST_LEVELS}", words.len());
        return Detected::new(Kind::Ignore, why);
    }
    Detected::new(Kind::Categorical, format!("{} words", words.len()))
}

/// A column of numbers: counted rows are no measurements, and lopsided positive ones are better seen
/// through a logarithm.
fn numbers(cells: &Cells, words: &BTreeSet<&str>) -> Detected {
    let values: Vec<f64> = cells.iter().flatten().filter_map(number).collect();
    let counts = values.len() > 9 && values.windows(2).all(|w| w[1] - w[0] == 1.0);
    if counts {
        return Detected::new(Kind::Ignore, "it numbers the rows");
    }
    let why = format!("{} different numbers", words.len());
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let plain = skewness(&values);
    let curve = if least > 0.0 { Curve::Log } else { Curve::Log1p };
    if least >= 0.0 && plain > SKEWED {
        let bent: Vec<f64> = values.iter().filter_map(|&x| curve.apply(x)).collect();
        if skewness(&bent).abs() < plain {
            let why = format!("{why}, skewness {plain:.1}");
            return Detected { kind: Kind::Gaussian, curve, why };
        }
    }
    Detected::new(Kind::Gaussian, why)
}

/// The third standardised moment.
fn skewness(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let moment = |k: i32| values.iter().map(|x| (x - mean).powi(k)).sum::<f64>() / n;
    let variance = moment(2);
    if variance > 0.0 { moment(3) / variance.powf(1.5) } else { 0.0 }
}

/// Whether a text looks like a date, perhaps with a time: three numbers with `-`, `/` or `.` between
/// them, the first or the last of which may be a year.
fn is_date(text: &str) -> bool {
    let day = text.trim().split(['T', ' ']).next().unwrap_or_default();
    let parts: Vec<&str> = day.split(['-', '/', '.']).collect();
    let digits = |p: &&str| (1..=4).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(digits) && parts.iter().any(|p| p.len() >= 2)
}

/// Not too much of a word.
fn brief(word: &str) -> String {
    match word.char_indices().nth(30) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Detected {
        detect(&texts.iter().map(|t| Some(*t)).collect())
    }

    fn many(f: impl Fn(usize) -> String) -> Detected {
        let texts: Vec<String> = (0..40).map(f).collect();
        of(&texts.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn columns_are_what_they_look_like() {
        assert_eq!(of(&["True", "False", "True"]).kind, Kind::Binary);
        assert_eq!(many(|i| format!("{}", i % 3)).kind, Kind::Gaussian);
        assert_eq!(many(|i| ["a", "b", "c"][i % 3].into()).kind, Kind::Categorical);
        assert_eq!(many(|i| format!("N{i}A")).kind, Kind::Ignore);
        assert_eq!(many(|i| format!("2007-11-{:02}", i % 20 + 1)).kind, Kind::Ignore);
        assert_eq!(many(|i| i.to_string()).kind, Kind::Ignore, "row numbers");
        assert_eq!(many(|_| "x".into()).kind, Kind::Ignore);
    }

    #[test]
    fn lopsided_positive_numbers_get_a_logarithm() {
        assert_eq!(many(|i| (1.3_f64.powf(i as f64)).to_string()).curve, Curve::Log);
        let costs =
            many(|i| if i % 2 == 0 { "0".into() } else { 1.4_f64.powf(i as f64).to_string() });
        assert_eq!(costs.curve, Curve::Log1p);
        assert_eq!(many(|i| ((i * 7) % 40).to_string()).curve, Curve::Linear);
        assert_eq!(many(|i| format!("-{}", 1.3_f64.powf(i as f64))).curve, Curve::Linear);
    }
}
