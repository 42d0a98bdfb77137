//! What the inference competitions of the UAI conference ask with and answer in: evidence, $\log_{10} Z$, marginals
//! and most probable states.
//!
//! | ending | first word | then |
//! |---|---|---|
//! | `.evid` | | the number of observed variables, and each with its state |
//! | `.PR` | `PR` | $\log_{10}\sum$ over the states that agree with the evidence |
//! | `.MAR` | `MAR` | the number of variables, and for each its number of states and their probabilities |
//! | `.MAP` | `MAP` | the number of variables, and the state of each |
//!
//! Variables and states are numbered from 0. Files of the first competitions put the number of samples, 1, before
//! the evidence.

use super::uai::{Words, load_text};
use crate::error::Error;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const HINT: &str = "evidence is the number of observed variables, then each variable with its state: `2  0 1  5 0`";

/// Reads the text of a file of evidence: variables and their states, in the order of the variables.
///
/// # Errors
///
/// If the text is something else, or a variable has two different states, which has probability 0.
pub fn read_evidence(text: &str) -> Result<Vec<(usize, usize)>, Error> {
    let n_words = text.split_ascii_whitespace().count();
    let mut words = Words::new(text, HINT);
    let mut n: usize = words.next(|| "the number of observed variables".into())?;
    let fits = |n: usize, words: usize| n.checked_mul(2).is_some_and(|w| w == words);
    if n == 1 && !fits(n, n_words - 1) && n_words >= 2 {
        // One sample of evidence, as the first competitions wrote it.
        n = words.next(|| "the number of observed variables".into())?;
    }
    let mut evidence: BTreeMap<usize, usize> = BTreeMap::new();
    for k in 0..n {
        let variable: usize = words.next(|| format!("observed variable {k}"))?;
        let state: usize = words.next(|| format!("the state of variable {variable}"))?;
        match evidence.insert(variable, state) {
            Some(before) if before != state => {
                let (unit, first) = (format!("variable {variable}"), before.to_string());
                return Err(Error::Contradiction { unit, first, second: state.to_string() });
            }
            _ => {}
        }
    }
    words.end()?;
    Ok(evidence.into_iter().collect())
}

/// Reads a file of evidence.
///
/// # Errors
///
/// If the system refuses, and as [`read_evidence`].
pub fn load_evidence(path: impl AsRef<Path>) -> Result<Vec<(usize, usize)>, Error> {
    load_text(path.as_ref(), read_evidence)
}

/// The text of a `.PR` file, from $\ln\sum$.
pub fn write_pr(log_sum: f64) -> String {
    format!("PR\n{}\n", log_sum / std::f64::consts::LN_10)
}

/// The text of a `.MAR` file: the probabilities of the states of each variable.
pub fn write_mar<'p>(variables: impl ExactSizeIterator<Item = &'p [f64]>) -> String {
    let mut text = format!("MAR\n{}", variables.len());
    for states in variables {
        let _ = write!(text, " {}", states.len());
        for p in states {
            let _ = write!(text, " {p}");
        }
    }
    text.push('\n');
    text
}

/// The text of a `.MAP` file: the state of each variable.
pub fn write_map(states: &[usize]) -> String {
    let mut text = format!("MAP\n{}", states.len());
    for state in states {
        let _ = write!(text, " {state}");
    }
    text.push('\n');
    text
}
