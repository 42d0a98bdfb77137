//! Factor graphs in the format of libDAI (`.fg`), read as machines.
//!
//! A file is the number of its factors, then each factor: the number of its variables, their labels,
//! their numbers of states, the number of its entries that are not zero, and those entries, each behind
//! its place. The state of the first variable runs fastest; lines that start with `#` are comments
//! (Mooij, JMLR 11, 2010). As in UAI files, factors have one or two variables of two states each, and
//! a zero would need an infinite energy.

use super::uai::{Factors, Scope, UaiModel, Words, energy, foreign, load_text};
use crate::error::Error;
use std::collections::BTreeMap;
use std::path::Path;

const HINT: &str = "give a factor graph of libDAI whose variables have two states and whose factors have one or two variables";

/// Reads the text of a factor graph. Variables are numbered in the order of their labels; which of them
/// become which units is as for [`read_uai`](super::read_uai).
///
/// # Errors
///
/// If the text is not a factor graph of two-valued variables in pairs, or a factor is zero somewhere.
pub fn read_fg(text: &str) -> Result<UaiModel, Error> {
    let without_comments: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut words = Words::new(&without_comments, HINT);
    let n_factors: usize = words.next(|| "the number of factors".into())?;
    let mut read = Vec::new();
    for f in 0..n_factors {
        read.push(read_factor(&mut words, f)?);
    }
    words.end()?;
    let labels = read.iter().flat_map(|(labels, _)| labels.iter().copied());
    let mut numbers: BTreeMap<usize, usize> = labels.map(|label| (label, 0)).collect();
    if numbers.is_empty() {
        return Err(foreign("it has no variables", HINT));
    }
    numbers.values_mut().enumerate().for_each(|(i, number)| *number = i);
    let mut factors = Factors::none(numbers.len());
    for (labels, energies) in &read {
        let scope = match labels[..] {
            [] => Scope::None,
            [i] => Scope::One(numbers[&i]),
            // There the last variable runs fastest.
            [i, j, ..] => Scope::Two(numbers[&j], numbers[&i]),
        };
        factors.add(&scope, energies);
    }
    factors.into_model()
}

/// Reads a factor graph of libDAI.
///
/// # Errors
///
/// If the system refuses, and as [`read_fg`].
pub fn load_fg(path: impl AsRef<Path>) -> Result<UaiModel, Error> {
    load_text(path.as_ref(), read_fg)
}

/// The labels of a factor and its energies, the first variable running fastest.
fn read_factor(words: &mut Words<'_>, f: usize) -> Result<(Vec<usize>, Vec<f64>), Error> {
    let size: usize = words.next(|| format!("the number of variables of factor {f}"))?;
    if size > 2 {
        return Err(foreign(format!("factor {f} has {size} variables, more than 2"), HINT));
    }
    let mut labels: Vec<usize> = Vec::with_capacity(size);
    for _ in 0..size {
        let label = words.next(|| format!("a variable of factor {f}"))?;
        if labels.contains(&label) {
            return Err(foreign(format!("factor {f} names variable {label} twice"), HINT));
        }
        labels.push(label);
    }
    for label in &labels {
        let n_states: usize = words.next(|| format!("the states of variable {label}"))?;
        if n_states != 2 {
            let reason = format!("variable {label} has {n_states} states, not 2");
            return Err(foreign(reason, HINT));
        }
    }
    let mut table = vec![0.0; 1 << size];
    let n_entries: usize = words.next(|| format!("the number of entries of factor {f}"))?;
    if n_entries > table.len() {
        let most = table.len();
        let reason = format!("factor {f} must have at most {most} entries, found {n_entries}");
        return Err(foreign(reason, HINT));
    }
    for _ in 0..n_entries {
        let at: usize = words.next(|| format!("the place of an entry of factor {f}"))?;
        let value: f64 = words.next(|| format!("entry {at} of factor {f}"))?;
        let n = table.len();
        let Some(entry) = table.get_mut(at) else {
            let reason = format!("factor {f} has an entry {at}, but it has {n} states");
            return Err(foreign(reason, HINT));
        };
        *entry = value;
    }
    let energies = table.iter().enumerate().map(|(k, &value)| energy(value, f, k, HINT));
    Ok((labels, energies.collect::<Result<_, Error>>()?))
}
