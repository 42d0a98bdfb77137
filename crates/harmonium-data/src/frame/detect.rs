//! What a column seems to hold, and why.

use super::code::{Curve, MOST_COUNTED, number};
use super::{Cells, Kind};
use std::collections::BTreeSet;

/// Most words of a category that are learned unasked.
pub(super) const MOST_LEVELS: usize = 64;
/// Different whole numbers up to which they are more likely levels than counts.
const FEW_LEVELS: usize = 10;
/// Skewness from which a logarithm is looked at.
const SKEWED: f64 = 2.0;
/// Numbers from which a few words among them are taken for slips of the pen, and the share they must have.
const NUMBERS: (usize, f64) = (10, 0.9);
/// Rows from which a column of consecutive numbers counts them.
const COUNTING: usize = 10;
/// The share of neighbouring rows that must differ by one.
const CONSECUTIVE: f64 = 0.95;

/// What was found out about a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Detected {
    pub(super) kind: Kind,
    pub(super) curve: Curve,
    pub(super) why: String,
}

/// A cell that keeps a column from being what the others say it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Odd {
    pub(super) row: usize,
    pub(super) cell: String,
    /// Cells that hold numbers.
    pub(super) n_numbers: usize,
}

impl Detected {
    fn new(kind: Kind, why: impl Into<String>) -> Self {
        Self { kind, curve: Curve::Linear, why: why.into() }
    }
}

/// Looks at all cells of a column.
///
/// # Errors
///
/// Where nearly all cells are numbers and one is not: leaving it out, or learning the numbers as words, would
/// both be wrong.
pub(super) fn detect(name: &str, cells: &Cells) -> Result<Detected, Odd> {
    let there = cells.len() - cells.n_missing();
    let words: BTreeSet<&str> = cells.iter().flatten().collect();
    match words.len() {
        0 => return Ok(Detected::new(Kind::Ignore, "it has no value")),
        1 => {
            let word = words.first().copied().unwrap_or_default();
            return Ok(Detected::new(Kind::Ignore, format!("every value is `{}`", brief(word))));
        }
        _ => {}
    }
    if words.len() == 2 {
        let both: Vec<String> = words.iter().map(|w| format!("`{}`", brief(w))).collect();
        return Ok(Detected::new(Kind::Binary, both.join(" or ")));
    }
    if let Some(odd) = odd_cell(cells, there) {
        return Err(odd);
    }
    if words.iter().all(|w| number(w).is_some()) {
        return Ok(numbers(name, cells, words.len()));
    }
    Ok(texts(&words, there))
}

/// The first word among numbers, where there are many numbers and few words.
fn odd_cell(cells: &Cells, there: usize) -> Option<Odd> {
    let n_numbers = cells.iter().flatten().filter(|cell| number(cell).is_some()).count();
    if n_numbers < NUMBERS.0 || n_numbers == there || (n_numbers as f64) < NUMBERS.1 * there as f64
    {
        return None;
    }
    let mut all = cells.iter().enumerate();
    let (row, cell) =
        all.find_map(|(row, cell)| Some((row, cell.filter(|c| number(c).is_none())?)))?;
    Some(Odd { row, cell: cell.to_owned(), n_numbers })
}

/// A column of words.
fn texts(words: &BTreeSet<&str>, there: usize) -> Detected {
    let n = words.len();
    let most = |is: fn(&str) -> bool| words.iter().filter(|w| is(w)).count() * 10 >= n * 9;
    if most(is_date) {
        return Detected::new(Kind::Ignore, "dates and times are not learned");
    }
    if most(|w| number(&w.replace(',', ".")).is_some()) {
        let why = "numbers with a decimal comma: write 1.5 instead of 1,5 to have them learned";
        return Detected::new(Kind::Ignore, why);
    }
    if most(|w| number(w.trim_matches(|c: char| "%$€£¥ ".contains(c))).is_some()) {
        let why =
            "numbers with a sign of a unit: write 12 instead of 12% or $12 to have them learned";
        return Detected::new(Kind::Ignore, why);
    }
    if n * 2 > there {
        let why = format!("{n} different texts in {there} rows: an id or free text");
        return Detected::new(Kind::Ignore, why);
    }
    if words.iter().filter(|w| is_sentence(w)).count() * 2 > n {
        return Detected::new(Kind::Ignore, "free text");
    }
    if n > MOST_LEVELS {
        let why = format!("{n} categories, more than {MOST_LEVELS}");
        return Detected::new(Kind::Ignore, why);
    }
    Detected::new(Kind::Categorical, format!("{n} words"))
}

/// A column of numbers: those that count rows or name things are no measurements, and lopsided positive
/// ones are better seen through a logarithm.
fn numbers(name: &str, cells: &Cells, n_distinct: usize) -> Detected {
    let values: Vec<f64> = cells.iter().flatten().filter_map(number).collect();
    let steps = values.windows(2).filter(|w| w[1] - w[0] == 1.0).count();
    if values.len() >= COUNTING && steps as f64 >= CONSECUTIVE * (values.len() - 1) as f64 {
        return Detected::new(Kind::Ignore, "it numbers the rows");
    }
    let whole = values.iter().all(|x| x.fract() == 0.0);
    if whole && n_distinct * 10 >= values.len() * 9 && values.len() >= COUNTING && is_id(name) {
        let why = format!("{n_distinct} different whole numbers in {} rows: an id", values.len());
        return Detected::new(Kind::Ignore, why);
    }
    let why = format!("{n_distinct} different numbers");
    let why = counting_advice(name, &values, n_distinct).map_or(why.clone(), |a| why + &a);
    let plain = skewness(&values);
    if let Some(curve) = Curve::logarithm(&values).filter(|_| plain > SKEWED) {
        let bent: Vec<f64> = values.iter().filter_map(|&x| curve.apply(x)).collect();
        if skewness(&bent).abs() < plain {
            let why = format!("{why}, skewness {plain:.1}");
            return Detected { kind: Kind::Gaussian, curve, why };
        }
    }
    Detected::new(Kind::Gaussian, why)
}

/// What else whole numbers may be learned as: few of them as levels in an order, others from 0 on as counts.
fn counting_advice(name: &str, values: &[f64], n_distinct: usize) -> Option<String> {
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
    let whole = values.iter().all(|x| x.fract() == 0.0);
    if !whole {
        return None;
    }
    // Few, most of which occur between their ends.
    if n_distinct <= FEW_LEVELS && n_distinct as f64 >= 0.5 * (high - low) {
        return Some(format!(" (their order alone: `--kind {name}=ordinal`)"));
    }
    let counts = low == 0.0 && high <= MOST_COUNTED as f64 && n_distinct > FEW_LEVELS;
    counts.then(|| format!(" (if they count: `--kind {name}=counts`)"))
}

/// Whether a column is called an id.
fn is_id(name: &str) -> bool {
    let parts = name.split(|c: char| !c.is_alphanumeric());
    parts
        .into_iter()
        .any(|p| p.eq_ignore_ascii_case("id") || p.ends_with("Id") || p.ends_with("ID"))
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

/// Whether a text is a sentence: it ends like one, or has many words.
fn is_sentence(text: &str) -> bool {
    let n_words = text.split_whitespace().count();
    n_words >= 8 || (n_words >= 3 && text.ends_with(['.', '!', '?']))
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
        detect("x", &texts.iter().map(|t| Some(*t)).collect()).unwrap()
    }

    fn named(name: &str, f: impl Fn(usize) -> String) -> Result<Detected, Odd> {
        let texts: Vec<String> = (0..40).map(f).collect();
        detect(name, &texts.iter().map(|t| Some(t.as_str())).collect())
    }

    fn many(f: impl Fn(usize) -> String) -> Detected {
        named("x", f).unwrap()
    }

    #[test]
    fn columns_are_what_they_look_like() {
        assert_eq!(of(&["True", "False", "True"]).kind, Kind::Binary);
        assert_eq!(many(|i| format!("{}", i % 3)).kind, Kind::Gaussian);
        assert_eq!(many(|i| ["a", "b", "c"][i % 3].into()).kind, Kind::Categorical);
        let left_out: [(&str, &dyn Fn(usize) -> String); 9] = [
            ("ids", &|i| format!("N{i}A")),
            ("dates", &|i| format!("2007-11-{:02}", i % 20 + 1)),
            ("times", &|i| format!("2013-01-01T{:02}:00:00Z", i % 20)),
            ("row numbers", &|i| i.to_string()),
            ("row numbers that start again", &|i| (i % 25).to_string()),
            ("a constant", &|_| "x".into()),
            ("sentences", &|i| format!("Nest {} was never seen.", i % 4)),
            ("decimal commas", &|i| format!("{},5", i % 7)),
            ("percentages", &|i| format!("{}%", i % 7)),
        ];
        for (what, f) in left_out {
            assert_eq!(many(f).kind, Kind::Ignore, "{what}");
        }
        let numbers = |i: usize| ((i * 7919) % 1000).to_string();
        assert_eq!(named("customer_id", numbers).unwrap().kind, Kind::Ignore);
        assert_eq!(named("width", numbers).unwrap().kind, Kind::Gaussian);
        assert_eq!(named("humid", numbers).unwrap().kind, Kind::Gaussian);
    }

    #[test]
    fn a_word_among_numbers_is_named() {
        let slip = |i: usize| if i == 7 { "O.5".into() } else { format!("{}.5", i % 9) };
        let odd = named("x", slip).unwrap_err();
        assert_eq!((odd.row, odd.cell.as_str(), odd.n_numbers), (7, "O.5", 39));
        let bits = |i: usize| if i == 7 { "x".into() } else { (i % 2).to_string() };
        assert_eq!(named("x", bits).unwrap_err().row, 7);
        // Codes that are often words are words.
        assert!(named("x", |i| if i % 3 == 0 { "A".into() } else { (i % 4).to_string() }).is_ok());
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
