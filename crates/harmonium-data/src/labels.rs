//! One class for each row.

use crate::Error;
#[cfg(feature = "readers")]
use crate::hash::ContentHash;
use std::collections::BTreeMap;

/// The class of each row.
///
/// Whole numbers from 0 on keep their own value, so that the same class has the same number in
/// every file of a set. Anything else (words, -1 and 1, 2.5) is numbered from 0 in sorted order,
/// and [`Labels::name`] gives back what the file said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    values: Vec<u32>,
    names: Option<Vec<String>>,
}

impl Labels {
    /// Labels that are already numbers.
    pub fn from_values(values: Vec<u32>) -> Self {
        Self { values, names: None }
    }

    /// Labels that are already numbers, and what the numbers are called.
    ///
    /// # Errors
    ///
    /// If a number has no name.
    pub fn named(values: Vec<u32>, names: Vec<String>) -> Result<Self, Error> {
        match values.iter().position(|&class| class as usize >= names.len()) {
            None => Ok(Self { values, names: Some(names) }),
            Some(row) => Err(Error::NoLabel {
                row,
                reason: format!("its class is {}, and there are {}", values[row], names.len()),
            }),
        }
    }

    /// Labels as they stand in a file, numbered as the type says.
    pub fn from_texts<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Self {
        let mut gathered = LabelSink::default();
        texts.into_iter().for_each(|t| gathered.push(t.as_ref()));
        gathered.finish()
    }

    /// The class of each row, as a number.
    pub fn values(&self) -> &[u32] {
        &self.values
    }

    /// The words behind the numbers, where the file had words.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// A number that changes with any of them: the classes of the rows, or what they are called.
    #[cfg(feature = "readers")]
    pub fn fingerprint(&self) -> u64 {
        let mut hash = ContentHash::default();
        self.values.iter().for_each(|&value| hash.word(u64::from(value)));
        self.names.iter().flatten().for_each(|name| hash.text(name));
        hash.finish()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// One more than the largest class number.
    pub fn n_classes(&self) -> usize {
        let named = self.names.as_ref().map_or(0, Vec::len);
        self.values.iter().max().map_or(0, |&m| m as usize + 1).max(named)
    }

    /// What the file called a class.
    pub fn name(&self, class: u32) -> String {
        let named = self.names.as_ref().and_then(|n| n.get(class as usize));
        named.cloned().unwrap_or_else(|| class.to_string())
    }

    /// What the file called each class, in order.
    pub fn class_names(&self) -> Vec<String> {
        (0..u32::try_from(self.n_classes()).unwrap_or(u32::MAX)).map(|c| self.name(c)).collect()
    }

    /// The classes that occur, in order, and the position in that list of each row's class.
    pub fn compact(&self) -> (Vec<u32>, Vec<u32>) {
        let mut classes = self.values.clone();
        classes.sort_unstable();
        classes.dedup();
        let place: BTreeMap<u32, u32> = classes.iter().copied().zip(0..).collect();
        let rows = self.values.iter().map(|v| place[v]).collect();
        (classes, rows)
    }

    /// The same labels, the classes that occur numbered from 0 without gaps, each with its name.
    #[must_use]
    pub fn compacted(&self) -> Self {
        let (classes, values) = self.compact();
        let names = classes.iter().map(|&c| self.name(c)).collect();
        Self { values, names: Some(names) }
    }

    /// The same labels with the numbers that `known` gives their names: the classes a model was
    /// trained with, for example.
    ///
    /// # Errors
    ///
    /// If a row is of a class that `known` does not have.
    pub fn numbered_as(&self, known: &[String]) -> Result<Self, Error> {
        let (classes, rows) = self.compact();
        let place = |&class: &u32| {
            let name = self.name(class);
            let at = known.iter().position(|k| *k == name).and_then(|p| u32::try_from(p).ok());
            at.ok_or_else(|| Error::UnknownClass { class: name, known: known.to_vec() })
        };
        let places: Vec<u32> = classes.iter().map(place).collect::<Result<_, _>>()?;
        let values = rows.iter().map(|&r| places[r as usize]).collect();
        Ok(Self { values, names: Some(known.to_vec()) })
    }

    /// The word of the first row, if the file has words and this one occurs in no other row.
    #[cfg(feature = "readers")]
    pub(crate) fn lone_first(&self) -> Option<&str> {
        let (first, others) = self.values.split_first()?;
        let word = self.names.as_ref()?.get(*first as usize)?;
        (word.parse::<f64>().is_err() && !others.contains(first)).then_some(word)
    }

    /// The labels of all rows but the first, numbered as if it had never been there.
    #[cfg(feature = "readers")]
    pub(crate) fn without_first(&self) -> Self {
        Self::from_texts(self.values.iter().skip(1).map(|&class| self.name(class)))
    }

    /// The labels of the rows named, in that order.
    ///
    /// # Panics
    ///
    /// If a row has no label.
    #[must_use]
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        let values = rows.iter().map(|&r| self.values[r]).collect();
        Self { values, names: self.names.clone() }
    }

    /// Whether there is one label for each of `n_rows` rows.
    ///
    /// # Errors
    ///
    /// If there are more or fewer.
    pub fn check_rows(&self, n_rows: usize) -> Result<(), Error> {
        if self.len() == n_rows {
            return Ok(());
        }
        Err(Error::LabelCount { n_rows, found: self.len() })
    }
}

/// Labels while they are read: each distinct text is kept once.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelSink {
    rows: Vec<u32>,
    known: BTreeMap<String, u32>,
}

impl LabelSink {
    pub(crate) fn push(&mut self, text: &str) {
        let text = text.trim();
        let number = if let Some(&n) = self.known.get(text) {
            n
        } else {
            let n = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
            self.known.insert(text.to_owned(), n);
            n
        };
        self.rows.push(number);
    }

    pub(crate) fn finish(self) -> Labels {
        let mut texts: Vec<(String, u32)> = self.known.into_iter().collect();
        let numbers: Option<Vec<f64>> =
            texts.iter().map(|(t, _)| t.parse().ok().filter(|x: &f64| x.is_finite())).collect();
        let mut renumber = vec![0; texts.len()];
        if let Some(values) = numbers.as_ref().and_then(|n| whole_numbers(n)) {
            for ((_, seen), value) in texts.iter().zip(values) {
                renumber[*seen as usize] = value;
            }
            return Labels::from_values(apply(&renumber, &self.rows));
        }
        if let Some(numbers) = numbers {
            let mut order: Vec<usize> = (0..texts.len()).collect();
            order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
            texts = order.into_iter().map(|i| texts[i].clone()).collect();
        }
        for ((_, seen), value) in texts.iter().zip(0..) {
            renumber[*seen as usize] = value;
        }
        let names = texts.into_iter().map(|(t, _)| t).collect();
        Labels { values: apply(&renumber, &self.rows), names: Some(names) }
    }
}

fn apply(renumber: &[u32], rows: &[u32]) -> Vec<u32> {
    rows.iter().map(|&r| renumber[r as usize]).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range and the fraction are checked first"
)]
fn whole_numbers(numbers: &[f64]) -> Option<Vec<u32>> {
    let whole = |x: &f64| x.fract() == 0.0 && (0.0..f64::from(u32::MAX)).contains(x);
    numbers.iter().all(whole).then(|| numbers.iter().map(|&x| x as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_keep_their_value() {
        let labels = Labels::from_texts(["9.0000", "1", "0", "1.0"]);
        assert_eq!(labels.values(), [9, 1, 0, 1]);
        assert_eq!((labels.n_classes(), labels.name(9)), (10, "9".into()));
        assert_eq!(labels.compact(), (vec![0, 1, 9], vec![2, 1, 0, 1]));
    }

    #[test]
    fn words_are_numbered_in_sorted_order() {
        let labels = Labels::from_texts(["dog", " cat", "dog", "eel"]);
        assert_eq!(labels.values(), [1, 0, 1, 2]);
        assert_eq!(labels.names().unwrap(), ["cat", "dog", "eel"]);
        assert_eq!(labels.select_rows(&[3, 0]).values(), [2, 1]);
    }

    #[test]
    fn signed_numbers_are_numbered_by_size() {
        let labels = Labels::from_texts(["1", "-1", "10", "-2", "1"]);
        assert_eq!(labels.values(), [2, 1, 3, 0, 2]);
        assert_eq!(labels.name(0), "-2");
    }

    #[test]
    fn labels_take_the_numbers_of_known_classes() {
        let labels = Labels::from_texts(["dog", "cat", "dog"]);
        let known = ["eel", "dog", "cat"].map(str::to_owned);
        let numbered = labels.numbered_as(&known).unwrap();
        assert_eq!((numbered.values(), numbered.n_classes()), (&[1, 2, 1][..], 3));
        assert_eq!(numbered.name(0), "eel");
        let error = labels.numbered_as(&known[..2]).unwrap_err();
        assert!(error.to_string().contains("`cat`"));
        assert!(error.hint().contains("eel, dog"));
        let gaps = Labels::from_values(vec![7, 2, 7]).compacted();
        assert_eq!(
            (gaps.values(), gaps.names().unwrap()),
            (&[1, 0, 1][..], &["2", "7"].map(str::to_owned)[..])
        );
    }

    #[test]
    fn a_wrong_number_of_labels_is_an_error() {
        let labels = Labels::from_values(vec![1, 2]);
        assert!(labels.check_rows(2).is_ok());
        let error = labels.check_rows(3).unwrap_err();
        assert!(error.to_string().contains("2 labels for 3 rows"));
    }
}
